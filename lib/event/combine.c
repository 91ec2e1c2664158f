#include "lib/event/combine.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

#define NO_PLACE SIZE_MAX

void
wm_combine_init(struct wm_combine *combine, enum wm_policy policy)
{
	*combine = (struct wm_combine){ .policy = policy, .watermark_us = WM_TIME_NONE };
}

void
wm_combine_release(struct wm_combine *combine)
{
	free(combine->sources);
	free(combine->order);
	*combine = (struct wm_combine){ .policy = combine->policy, .watermark_us = WM_TIME_NONE };
}

static bool
is_before(const struct wm_combine *combine, size_t a, size_t b)
{
	int64_t watermark_a = combine->sources[a].own.watermark_us, watermark_b = combine->sources[b].own.watermark_us;

	return watermark_a != watermark_b ? watermark_a < watermark_b : a < b;
}

static void
put_at(struct wm_combine *combine, size_t place, size_t source)
{
	combine->order[place] = source;
	combine->sources[source].place = place;
}

static void
sift_up(struct wm_combine *combine, size_t place)
{
	size_t source = combine->order[place];

	while (place > 0 && is_before(combine, source, combine->order[(place - 1) / 2])) {
		put_at(combine, place, combine->order[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put_at(combine, place, source);
}

static void
sift_down(struct wm_combine *combine, size_t place)
{
	size_t source = combine->order[place];

	for (;;) {
		size_t child = 2 * place + 1;

		if (child + 1 < combine->order_count &&
			is_before(combine, combine->order[child + 1], combine->order[child]))
			child++;
		if (child >= combine->order_count || !is_before(combine, combine->order[child], source))
			break;
		put_at(combine, place, combine->order[child]);
		place = child;
	}
	put_at(combine, place, source);
}

size_t
wm_combine_add(struct wm_combine *combine, const struct wm_watermark *own)
{
	size_t source = combine->sources_count++;

	combine->sources = wm_reallocarray(combine->sources, combine->sources_count, sizeof(combine->sources[0]));
	combine->order = wm_reallocarray(combine->order, combine->sources_count, sizeof(combine->order[0]));
	combine->sources[source].own = *own;
	put_at(combine, combine->order_count++, source);
	sift_up(combine, combine->order_count - 1);
	/* What a watermark begins with (Spark's epoch) holds before any record. */
	if (combine->sources_count == 1)
		combine->watermark_us = own->watermark_us;
	return source;
}

static bool
rise(struct wm_combine *combine, int64_t watermark_us)
{
	if (watermark_us <= combine->watermark_us)
		return false;
	combine->watermark_us = watermark_us;
	return true;
}

static bool
rise_to_lowest(struct wm_combine *combine)
{
	size_t lowest;

	return wm_combine_lowest(combine, &lowest) && rise(combine, combine->sources[lowest].own.watermark_us);
}

bool
wm_combine_moved(struct wm_combine *combine, size_t source)
{
	const struct wm_source *moved = &combine->sources[source];

	assert(moved->place != NO_PLACE);
	if (combine->order_count == 1)
		return rise(combine, moved->own.watermark_us);
	sift_down(combine, moved->place);
	return combine->policy == WM_POLICY_MAX ? rise(combine, moved->own.watermark_us) : rise_to_lowest(combine);
}

bool
wm_combine_end(struct wm_combine *combine, size_t source)
{
	size_t place = combine->sources[source].place;

	assert(place != NO_PLACE);
	combine->sources[source].place = NO_PLACE;
	size_t last = combine->order[--combine->order_count];
	if (last != source) {
		put_at(combine, place, last);
		sift_up(combine, place);
		sift_down(combine, combine->sources[last].place);
	}
	return combine->policy == WM_POLICY_MIN && rise_to_lowest(combine);
}

bool
wm_combine_lowest(const struct wm_combine *combine, size_t *source)
{
	if (combine->order_count == 0)
		return false;
	*source = combine->order[0];
	return true;
}
