/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/series.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define MODEL_MAX 30000

/* The same as one sorted array. */
struct model {
	struct wm_series_item items[MODEL_MAX];
	size_t count;
};

static size_t
model_seek(const struct model *model, int64_t time_us)
{
	size_t at = 0;

	while (at < model->count && model->items[at].time_us < time_us)
		at++;
	return at;
}

static void
model_put(struct model *model, int64_t time_us, void *item)
{
	size_t at = model->count++;

	for (; at > 0 && model->items[at - 1].time_us > time_us; at--)
		model->items[at] = model->items[at - 1];
	model->items[at] = (struct wm_series_item){ time_us, item };
}

static void
model_cut(struct model *model, int64_t from_us, int64_t to_us)
{
	size_t from = model_seek(model, from_us), to = to_us == INT64_MAX ? model->count : model_seek(model, to_us + 1);

	if (to <= from)
		return;
	memmove(model->items + from, model->items + to, (model->count - to) * sizeof(model->items[0]));
	model->count -= to - from;
}

static bool
is_same_from(struct wm_series *series, const struct model *model, int64_t time_us)
{
	struct wm_series_at at = wm_series_seek(series, time_us);
	size_t want = model_seek(model, time_us);

	for (const struct wm_series_item *item; (item = wm_series_next(series, &at)) != NULL; want++)
		if (want == model->count || item->time_us != model->items[want].time_us ||
			item->item != model->items[want].item)
			return false;
	return want == model->count;
}

static bool
is_same_last(struct wm_series *series, const struct model *model, int64_t time_us)
{
	size_t behind = time_us == INT64_MAX ? model->count : model_seek(model, time_us + 1);
	const struct wm_series_item *item = wm_series_last(series, time_us);

	if (behind == 0 || item == NULL)
		return behind == 0 && item == NULL;
	return item->time_us == model->items[behind - 1].time_us && item->item == model->items[behind - 1].item;
}

/*
 * Puts, drops and cuts at random. Of times that rise mostly, that fall, that are all alike, and that are at random; more puts
 * than drops, then the other way round.
 */
static bool
run(uint64_t seed, size_t *bytes_max)
{
	static struct model model;
	static char names[MODEL_MAX];
	struct wm_series series = { 0 };
	size_t bytes = 0, steps = (size_t)200 << tap_random(&seed) % 6, puts = 0;
	unsigned kind = (unsigned)(tap_random(&seed) % 4);
	bool ok = true;

	model.count = 0;
	for (size_t i = 0; i < steps && ok; i++) {
		int64_t now_us = kind == 0 ? (int64_t)i * 10 - (int64_t)(tap_random(&seed) % 100)
			: kind == 1        ? -(int64_t)i
			: kind == 2        ? 7
					   : (int64_t)(tap_random(&seed) % 5000);
		uint64_t step = tap_random(&seed) % 64;

		if (step < (i < steps / 2 ? 60 : 40)) {
			void *item = &names[puts++ % MODEL_MAX];

			wm_series_put(&series, now_us, item, &bytes);
			model_put(&model, now_us, item);
		} else if (step < 62 && model.count != 0) {
			int64_t before_us =
				model.items[tap_random(&seed) % model.count].time_us + (int64_t)(tap_random(&seed) % 2);

			if (kind != 0 && tap_random(&seed) % 8 != 0)
				before_us = model.items[0].time_us + (int64_t)(tap_random(&seed) % 2 == 0);
			if (kind == 0)
				before_us = now_us - 1000;
			wm_series_drop(&series, before_us, &bytes);
			model_cut(&model, INT64_MIN, before_us - 1);
		} else if (model.count != 0) {
			int64_t from_us = model.items[tap_random(&seed) % model.count].time_us;
			int64_t to_us = from_us + (int64_t)(tap_random(&seed) % 40) - 2;

			if (kind != 2 || tap_random(&seed) % 16 == 0) {
				wm_series_cut(&series, from_us, to_us, &bytes);
				model_cut(&model, from_us, to_us);
			}
		}
		if (bytes > *bytes_max)
			*bytes_max = bytes;
		ok = wm_series_is_empty(&series) == (model.count == 0);
		ok = ok && is_same_last(&series, &model, now_us) && is_same_last(&series, &model, now_us - 60);
		if (i % 16 == 0 || model.count < 8)
			ok = ok && is_same_from(&series, &model, now_us - 50) &&
				is_same_from(&series, &model, INT64_MIN);
	}
	wm_series_cut(&series, INT64_MIN, INT64_MAX, &bytes);
	ok = ok && wm_series_is_empty(&series) && bytes == 0;
	wm_series_release(&series, &bytes);
	return ok;
}

static void
test_memory(void)
{
	static char name;
	struct wm_series series = { 0 };
	size_t bytes = 0, steady = 0;

	wm_series_put(&series, 1, &name, &bytes);
	tap_int((int64_t)bytes, 0, "one item takes no memory beside the series");
	for (int64_t i = 2; i <= 100000; i++)
		wm_series_put(&series, i, &name, &bytes);
	tap_ok(bytes < 100000 * 18, "an item of many takes less than 18 bytes");
	for (int64_t i = 100001; i <= 400000; i++) {
		wm_series_put(&series, i, &name, &bytes);
		wm_series_drop(&series, i - 1000, &bytes);
		if (i > 101000 && bytes > steady)
			steady = bytes;
	}
	tap_ok(steady < 1000 * 24, "what has been dropped is given back");
	/* One in two hundred stays. */
	for (int64_t i = 400001; i <= 600000; i++)
		wm_series_put(&series, i, &name, &bytes);
	for (int64_t i = 400001; i <= 600000; i += 200)
		wm_series_cut(&series, i, i + 198, &bytes);
	if (!tap_ok(bytes < 1000 * 180, "and what has been cut out"))
		printf("#   %zu bytes\n", bytes);
	wm_series_release(&series, &bytes);
	tap_int((int64_t)bytes, 0, "release gives back the rest");
	tap_ok(wm_series_is_empty(&series), "and leaves it empty");
}

int
main(void)
{
	uint64_t seed = 0, failed = UINT64_MAX;
	size_t bytes_max = 0;

	for (; seed < 200 && failed == UINT64_MAX; seed++)
		if (!run(seed, &bytes_max))
			failed = seed;
	if (!tap_ok(failed == UINT64_MAX, "200 random series are what a sorted array is"))
		printf("#   seed %" PRIu64 "\n", failed);
	tap_ok(bytes_max > 32768, "some of them long");
	test_memory();
	return tap_done();
}
