/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/combine.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/time/civil.h"
#include "lib/time/duration.h"

#define NO_PLACE SIZE_MAX

/* Whether a source takes part, as it is encoded. */
enum part { PART_NONE = 0, PART_NOW, PART_LATER, PARTS };

void
wm_combine_init(struct wm_combine *combine, enum wm_policy policy, int64_t idle_us)
{
	*combine = (struct wm_combine){
		.policy = policy,
		.idle_us = idle_us,
		.watermark_us = WM_TIME_NONE,
		.data_us = WM_TIME_NONE,
		.highest_us = WM_TIME_NONE,
		.highest_time_us = WM_TIME_NONE,
		.first_confirmed_us = WM_TIME_NONE,
		.oldest = NO_PLACE,
		.newest = NO_PLACE,
	};
	wm_guard_init(&combine->guard, idle_us);
}

void
wm_combine_set_batched(struct wm_combine *combine)
{
	combine->is_batched = true;
}

void
wm_combine_release(struct wm_combine *combine)
{
	free(combine->sources);
	free(combine->order);
	wm_combine_init(combine, combine->policy, combine->idle_us);
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

/* Takes a source out of those that take part. */
static void
leave(struct wm_combine *combine, size_t source)
{
	size_t place = combine->sources[source].place;
	size_t last = combine->order[--combine->order_count];

	combine->sources[source].place = NO_PLACE;
	if (last != source) {
		put_at(combine, place, last);
		sift_up(combine, place);
		sift_down(combine, combine->sources[last].place);
	}
}

static void
take_part(struct wm_combine *combine, size_t source)
{
	put_at(combine, combine->order_count++, source);
	sift_up(combine, combine->order_count - 1);
}

/* The order of last records */

static void
unlink_source(struct wm_combine *combine, size_t number)
{
	struct wm_source *source = &combine->sources[number];

	if (source->older == NO_PLACE)
		combine->oldest = source->newer;
	else
		combine->sources[source->older].newer = source->newer;
	if (source->newer == NO_PLACE)
		combine->newest = source->older;
	else
		combine->sources[source->newer].older = source->older;
}

static void
link_newest(struct wm_combine *combine, size_t number)
{
	struct wm_source *source = &combine->sources[number];

	source->older = combine->newest;
	source->newer = NO_PLACE;
	if (combine->newest == NO_PLACE)
		combine->oldest = number;
	else
		combine->sources[combine->newest].newer = number;
	combine->newest = number;
}

size_t
wm_combine_add(struct wm_combine *combine, const struct wm_watermark *own, int64_t now_us)
{
	size_t number = combine->sources_count++;

	combine->sources = wm_reallocarray(combine->sources, combine->sources_count, sizeof(combine->sources[0]));
	combine->order = wm_reallocarray(combine->order, combine->sources_count, sizeof(combine->order[0]));
	combine->sources[number] =
		(struct wm_source){ .own = *own, .mark_us = combine->highest_time_us, .spoke_at_us = now_us };
	link_newest(combine, number);
	take_part(combine, number);
	/* What a watermark begins with (Spark's epoch) holds before any record. */
	if (combine->sources_count == 1)
		combine->watermark_us = combine->data_us = own->watermark_us;
	return number;
}

void
wm_combine_wait(struct wm_combine *combine, size_t source)
{
	combine->sources[source].is_unconfirmed = true;
	leave(combine, source);
}

void
wm_combine_confirm(struct wm_combine *combine, size_t source)
{
	if (!combine->sources[source].is_unconfirmed)
		return;
	combine->sources[source].is_unconfirmed = false;
	take_part(combine, source);
}

static inline bool
rise(struct wm_combine *combine, int64_t watermark_us)
{
	if (watermark_us <= combine->watermark_us)
		return false;
	combine->watermark_us = watermark_us;
	return true;
}

/* What the policy "max" settles at. */
static inline void
note_highest(struct wm_combine *combine, size_t source)
{
	if (combine->policy == WM_POLICY_MAX && combine->sources[source].own.watermark_us > combine->highest_us)
		combine->highest_us = combine->sources[source].own.watermark_us;
}

static inline bool
rise_by_data(struct wm_combine *combine, int64_t watermark_us)
{
	if (watermark_us > combine->data_us)
		combine->data_us = watermark_us;
	return rise(combine, watermark_us);
}

/* The same where a source has moved or left, which in a batch is for its end. */
static inline bool
rise_now(struct wm_combine *combine, int64_t watermark_us)
{
	return !combine->is_batched && rise_by_data(combine, watermark_us);
}

bool
wm_combine_raise(struct wm_combine *combine, int64_t watermark_us)
{
	return rise(combine, wm_floor_div(watermark_us, 1000) * 1000);
}

static bool
rise_to_lowest(struct wm_combine *combine)
{
	size_t lowest;

	return wm_combine_lowest(combine, &lowest) && rise_now(combine, combine->sources[lowest].own.watermark_us);
}

void
wm_combine_settle(struct wm_combine *combine)
{
	size_t lowest;

	if (combine->policy == WM_POLICY_MAX) {
		rise_by_data(combine, combine->highest_us);
		return;
	}
	/* When all have become idle in the batch, the one that spoke last was the last to do so. */
	if (!wm_combine_lowest(combine, &lowest))
		for (lowest = combine->newest; lowest != NO_PLACE && combine->sources[lowest].is_unconfirmed;)
			lowest = combine->sources[lowest].older;
	if (lowest != NO_PLACE && !combine->sources[lowest].has_ended)
		rise_by_data(combine, combine->sources[lowest].own.watermark_us);
}

bool
wm_combine_moved(struct wm_combine *combine, size_t source)
{
	const struct wm_source *moved = &combine->sources[source];

	/* A watermark in its records says that its clock is right. */
	wm_combine_confirm(combine, source);
	/* It was idle in a run before, and nothing is told of its records in this one, in which none can be. */
	if (moved->place == NO_PLACE)
		take_part(combine, source);
	note_highest(combine, source);
	if (combine->order_count == 1)
		return rise_now(combine, moved->own.watermark_us);
	sift_down(combine, moved->place);
	return combine->policy == WM_POLICY_MAX ? rise_now(combine, moved->own.watermark_us) : rise_to_lowest(combine);
}

bool
wm_combine_speak(struct wm_combine *combine, size_t number, int64_t event_time_us, int64_t now_us)
{
	struct wm_source *source = &combine->sources[number];
	bool is_unconfirmed, has_moved = false;

	if (combine->idle_us > 0) {
		combine->highest_time_us =
			wm_guard_take(&combine->guard, combine->highest_time_us, event_time_us, &is_unconfirmed);
		if (combine->first_confirmed_us == WM_TIME_NONE)
			combine->first_confirmed_us = combine->highest_time_us;
	}
	source->mark_us = combine->highest_time_us;
	source->spoke_at_us = now_us;
	unlink_source(combine, number);
	link_newest(combine, number);
	if (wm_combine_is_idle(combine, number))
		take_part(combine, number);
	if (combine->idle_us <= 0 || combine->highest_time_us == WM_TIME_NONE)
		return false;
	/* Those that spoke longest ago come first; the others have marks that are no lower. */
	for (size_t at = combine->oldest; at != NO_PLACE; at = combine->sources[at].newer) {
		int64_t mark_us = combine->sources[at].mark_us;

		if (mark_us == WM_TIME_NONE)
			mark_us = combine->first_confirmed_us;
		if (wm_time_sub(combine->highest_time_us, mark_us) < combine->idle_us)
			break;
		if (combine->sources[at].place != NO_PLACE) {
			leave(combine, at);
			has_moved = true;
		}
	}
	return has_moved && combine->policy == WM_POLICY_MIN && rise_to_lowest(combine);
}

bool
wm_combine_idle_wall(struct wm_combine *combine, int64_t idle_wall_us, int64_t now_us)
{
	bool has_moved = false;

	for (size_t at = combine->oldest; at != NO_PLACE; at = combine->sources[at].newer) {
		if (wm_time_sub(now_us, combine->sources[at].spoke_at_us) < idle_wall_us)
			break;
		if (combine->sources[at].place != NO_PLACE) {
			leave(combine, at);
			/* One after the other, as if it had been looked each time one became idle: how often the clock is read must not matter. */
			has_moved |= combine->policy == WM_POLICY_MIN && rise_to_lowest(combine);
		}
	}
	return has_moved;
}

int64_t
wm_combine_idle_wall_due_us(const struct wm_combine *combine, int64_t idle_wall_us)
{
	for (size_t at = combine->oldest; at != NO_PLACE; at = combine->sources[at].newer)
		if (combine->sources[at].place != NO_PLACE)
			return wm_time_add(combine->sources[at].spoke_at_us, idle_wall_us);
	return INT64_MAX;
}

bool
wm_combine_end(struct wm_combine *combine, size_t source)
{
	if (combine->sources[source].place != NO_PLACE)
		leave(combine, source);
	combine->sources[source].has_ended = true;
	return combine->policy == WM_POLICY_MIN && rise_to_lowest(combine);
}

void
wm_combine_begin(struct wm_combine *combine, size_t source)
{
	combine->sources[source].has_ended = false;
	if (combine->sources[source].place == NO_PLACE)
		take_part(combine, source);
}

void
wm_combine_copy(struct wm_combine *combine, size_t source, const struct wm_combine *from, size_t from_source)
{
	const struct wm_source *old = &from->sources[from_source];
	struct wm_source *new = &combine->sources[source];

	if (new->place != NO_PLACE)
		leave(combine, source);
	new->own.highest_time_us = old->own.highest_time_us;
	new->own.watermark_us = old->own.watermark_us;
	new->has_ended = old->has_ended;
	new->mark_us = old->mark_us;
	new->is_unconfirmed = old->is_unconfirmed;
	note_highest(combine, source);
	if (old->place != NO_PLACE)
		take_part(combine, source);
	rise_by_data(combine, from->data_us);
	rise(combine, from->watermark_us);
}

bool
wm_combine_lowest(const struct wm_combine *combine, size_t *source)
{
	if (combine->order_count == 0)
		return false;
	*source = combine->order[0];
	return true;
}

/*
 * i64 watermark · i64 highest · i64 first confirmed · guard · varint sources, from the one that spoke longest ago, each:
 * varint number · u8 part (0: none, 1: takes part, 2: none before it is confirmed) · u8 ended · i64 mark · watermark.
 */
void
wm_combine_encode(const struct wm_combine *combine, struct wm_buf *out)
{
	wm_put_i64(out, combine->watermark_us);
	wm_put_i64(out, combine->highest_time_us);
	wm_put_i64(out, combine->first_confirmed_us);
	wm_guard_encode(&combine->guard, out);
	wm_put_varint(out, combine->sources_count);
	for (size_t at = combine->oldest; at != NO_PLACE; at = combine->sources[at].newer) {
		const struct wm_source *source = &combine->sources[at];

		wm_put_varint(out, at);
		wm_put_u8(out, source->is_unconfirmed ? PART_LATER : source->place != NO_PLACE ? PART_NOW : PART_NONE);
		wm_put_u8(out, source->has_ended);
		wm_put_i64(out, source->mark_us);
		wm_watermark_encode(&source->own, out);
	}
}

/* Each source comes once; one that has ended takes no part, now or later. */
static bool
decode_sources(struct wm_combine *combine, bool *is_decoded, struct wm_get *in)
{
	for (size_t i = 0; i < combine->sources_count; i++) {
		uint64_t number = wm_get_varint(in);
		uint8_t part = wm_get_u8(in);
		bool has_ended = wm_get_u8(in) != 0;
		int64_t mark_us = wm_get_i64(in);

		if (in->failed || number >= combine->sources_count || is_decoded[number] || part >= PARTS ||
			(part != PART_NONE && has_ended))
			return false;
		struct wm_source *source = &combine->sources[number];
		if (!wm_watermark_decode(&source->own, in))
			return false;
		is_decoded[number] = true;
		source->mark_us = mark_us;
		source->has_ended = has_ended;
		source->is_unconfirmed = part == PART_LATER;
		note_highest(combine, number);
		unlink_source(combine, number);
		link_newest(combine, number);
		if (part == PART_NOW)
			take_part(combine, number);
	}
	return true;
}

bool
wm_combine_decode(struct wm_combine *combine, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in);

	combine->highest_us = WM_TIME_NONE;
	combine->highest_time_us = wm_get_i64(in);
	combine->first_confirmed_us = wm_get_i64(in);
	if (!wm_guard_decode(&combine->guard, in) || wm_get_varint(in) != combine->sources_count)
		return false;
	while (combine->order_count > 0)
		leave(combine, combine->order[0]);
	bool *is_decoded = wm_calloc(combine->sources_count + 1, sizeof(is_decoded[0]));
	bool is_whole = decode_sources(combine, is_decoded, in);
	free(is_decoded);
	/* How much of it came by the clock is not told. */
	if (is_whole)
		combine->watermark_us = combine->data_us = watermark_us;
	return is_whole;
}
