/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/part.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

/* The least room that a text takes in the arena. */
#define FAR_BYTES_MIN ((size_t)32)

const struct wm_part_layout wm_part_layouts[WM_PARTS_COUNT] = {
	[WM_PART_COUNT] = { "count", sizeof(uint64_t), alignof(uint64_t) },
	[WM_PART_SUM] = { "sum", sizeof(struct wm_sum), alignof(struct wm_sum) },
	[WM_PART_SQUARES] = { "squares", sizeof(struct wm_square_sum), alignof(struct wm_square_sum) },
	[WM_PART_MIN] = { "min", sizeof(struct wm_extreme), alignof(struct wm_extreme) },
	[WM_PART_MAX] = { "max", sizeof(struct wm_extreme), alignof(struct wm_extreme) },
	[WM_PART_FIRST] = { "first", sizeof(struct wm_timed), alignof(struct wm_timed) },
	[WM_PART_LAST] = { "last", sizeof(struct wm_timed), alignof(struct wm_timed) },
	[WM_PART_QUANTILE] = { "quantile", sizeof(struct wm_quantile), alignof(struct wm_quantile) },
	[WM_PART_DISTINCT] = { "distinct", sizeof(struct wm_distinct), alignof(struct wm_distinct) },
};

static void
kept_set(struct wm_kept *kept, struct wm_arena *arena, const struct wm_value *value)
{
	size_t room = kept->is_far ? kept->far.capacity : sizeof(kept->near);

	assert(value->text.len <= UINT32_MAX); /* a record is no longer */
	if (value->text.len > room) {
		room = FAR_BYTES_MIN;
		while (room < value->text.len)
			room *= 2;
		kept->far.data = wm_arena_alloc(arena, room);
		kept->far.capacity = room;
		kept->is_far = true;
	}
	memcpy(kept->is_far ? kept->far.data : kept->near, value->text.data, value->text.len);
	kept->len = (uint32_t)value->text.len;
	kept->kind = (uint8_t)value->kind;
}

static struct wm_reading
reading_of(const struct wm_extreme *extreme)
{
	struct wm_reading reading = { .value = wm_kept_value(&extreme->kept), .is_number = extreme->kept.is_number };

	if (extreme->kept.is_short)
		reading.number =
			(struct wm_decimal){ .whole = extreme->whole, .fraction = extreme->fraction, .is_exact = true };
	else if (reading.is_number)
		reading.is_number = wm_decimal_parse(reading.value.text, &reading.number);
	return reading;
}

void
wm_extreme_add(struct wm_extreme *extreme, struct wm_arena *arena, const struct wm_reading *reading, int direction)
{
	if (wm_extreme_add_short(extreme, reading, direction))
		return;
	if (extreme->kept.kind != WM_KIND_NULL) {
		struct wm_reading kept = reading_of(extreme);

		if (!wm_reading_replaces(reading, &kept, direction))
			return;
	}
	extreme->kept.is_number = reading->is_number;
	extreme->kept.is_short =
		reading->is_number && reading->number.is_exact && wm_decimal_is_short(&reading->number);
	if (extreme->kept.is_short) {
		extreme->whole = (int64_t)reading->number.whole;
		extreme->fraction = reading->number.fraction;
	}
	kept_set(&extreme->kept, arena, &reading->value);
}

void
wm_first_add(struct wm_timed *first, struct wm_arena *arena, const struct wm_value *value, int64_t event_time_us)
{
	if (first->kept.kind == WM_KIND_NULL || event_time_us < first->event_time_us) {
		first->event_time_us = event_time_us;
		kept_set(&first->kept, arena, value);
	}
}

void
wm_last_add(struct wm_timed *last, struct wm_arena *arena, const struct wm_value *value, int64_t event_time_us)
{
	if (last->kept.kind == WM_KIND_NULL || event_time_us >= last->event_time_us) {
		last->event_time_us = event_time_us;
		kept_set(&last->kept, arena, value);
	}
}

static void
widen(struct wm_sum *sum, struct wm_arena *arena)
{
	if (sum->wide != NULL)
		return;
	struct wm_decimal_sum *wide = wm_arena_alloc(arena, sizeof(*wide));
	*wide = wm_sum_value(sum);
	sum->wide = wide;
}

void
wm_sum_add(struct wm_sum *sum, struct wm_arena *arena, const struct wm_decimal *number)
{
	if (wm_sum_add_short(sum, number))
		return;
	widen(sum, arena);
	wm_decimal_sum_add(sum->wide, number);
}

static void
sum_merge(struct wm_sum *into, struct wm_arena *arena, const struct wm_sum *from)
{
	if (from->wide == NULL) {
		struct wm_decimal whole = { .whole = from->whole, .is_exact = true };
		struct wm_decimal fraction = { .fraction = from->fraction, .is_exact = true };

		wm_sum_add(into, arena, &whole);
		wm_sum_add(into, arena, &fraction);
		return;
	}
	widen(into, arena);
	wm_decimal_sum_merge(into->wide, from->wide);
}

static bool
sum_decode(struct wm_sum *sum, struct wm_arena *arena, struct wm_get *in)
{
	struct wm_decimal_sum value;

	if (!wm_decimal_sum_decode(&value, in))
		return false;
	*sum = (struct wm_sum){ .whole = (int64_t)value.whole, .fraction = value.fraction };
	if ((int64_t)value.whole != value.whole || value.carry != 0 || value.rest != 0 || value.rest_error != 0) {
		widen(sum, arena);
		*sum->wide = value;
	}
	return true;
}

static void
extreme_merge(struct wm_extreme *into, struct wm_arena *arena, const struct wm_extreme *from, int direction)
{
	if (from->kept.kind != WM_KIND_NULL) {
		struct wm_reading reading = reading_of(from);

		wm_extreme_add(into, arena, &reading, direction);
	}
}

static void
timed_merge(struct wm_timed *into, struct wm_arena *arena, const struct wm_timed *from, bool is_last)
{
	struct wm_value value = wm_kept_value(&from->kept);

	if (value.kind == WM_KIND_NULL)
		return;
	if (is_last)
		wm_last_add(into, arena, &value, from->event_time_us);
	else
		wm_first_add(into, arena, &value, from->event_time_us);
}

void
wm_part_merge(enum wm_part part, void *into, struct wm_arena *arena, const void *from)
{
	switch (part) {
	case WM_PART_COUNT:
		*(uint64_t *)into += *(const uint64_t *)from;
		break;
	case WM_PART_SUM:
		sum_merge(into, arena, from);
		break;
	case WM_PART_SQUARES:
		wm_square_sum_merge(into, from);
		break;
	case WM_PART_MIN:
	case WM_PART_MAX:
		extreme_merge(into, arena, from, part == WM_PART_MIN ? -1 : 1);
		break;
	case WM_PART_FIRST:
	case WM_PART_LAST:
		timed_merge(into, arena, from, part == WM_PART_LAST);
		break;
	case WM_PART_QUANTILE:
		wm_quantile_merge(into, arena, from);
		break;
	case WM_PART_DISTINCT:
		wm_distinct_merge(into, arena, from);
		break;
	case WM_PARTS_COUNT:
		assert(false);
	}
}

static void
kept_encode(const struct wm_kept *kept, struct wm_buf *out)
{
	wm_put_u8(out, (uint8_t)kept->kind);
	if (kept->kind != WM_KIND_NULL)
		wm_put_span(out, wm_kept_value(kept).text);
}

/* The value points into the bytes read; WM_KIND_NULL if none was kept, or it is an impossible one. */
static struct wm_value
kept_decode(struct wm_get *in)
{
	struct wm_value value = { .text = wm_span("", 0), .kind = WM_KIND_NULL };
	unsigned kind = wm_get_u8(in);

	if (kind != WM_KIND_NULL)
		value.text = wm_get_span(in);
	if (kind > WM_KIND_JSON || (kind != WM_KIND_NULL && value.text.len == 0))
		wm_get_fail(in);
	else
		value.kind = (enum wm_kind)kind;
	return value;
}

void
wm_part_encode(enum wm_part part, const void *from, struct wm_buf *out)
{
	const struct wm_timed *timed;
	struct wm_decimal_sum sum;

	switch (part) {
	case WM_PART_COUNT:
		wm_put_varint(out, *(const uint64_t *)from);
		break;
	case WM_PART_SUM:
		sum = wm_sum_value(from);
		wm_decimal_sum_encode(&sum, out);
		break;
	case WM_PART_SQUARES:
		wm_square_sum_encode(from, out);
		break;
	case WM_PART_MIN:
	case WM_PART_MAX: /* the number is read anew from the text */
		kept_encode(&((const struct wm_extreme *)from)->kept, out);
		break;
	case WM_PART_FIRST:
	case WM_PART_LAST:
		timed = from;
		kept_encode(&timed->kept, out);
		if (timed->kept.kind != WM_KIND_NULL)
			wm_put_i64(out, timed->event_time_us);
		break;
	case WM_PART_QUANTILE:
		wm_quantile_encode(from, out);
		break;
	case WM_PART_DISTINCT:
		wm_distinct_encode(from, out);
		break;
	case WM_PARTS_COUNT:
		assert(false);
	}
}

bool
wm_part_decode(enum wm_part part, void *into, struct wm_arena *arena, struct wm_get *in)
{
	struct wm_value value;
	struct wm_reading reading;

	switch (part) {
	case WM_PART_COUNT:
		*(uint64_t *)into = wm_get_varint(in);
		break;
	case WM_PART_SUM:
		return sum_decode(into, arena, in);
	case WM_PART_SQUARES:
		return wm_square_sum_decode(into, in);
	case WM_PART_MIN:
	case WM_PART_MAX:
		value = kept_decode(in);
		if (value.kind != WM_KIND_NULL) {
			wm_reading_take(&reading, &value);
			wm_extreme_add(into, arena, &reading, 1);
		}
		break;
	case WM_PART_FIRST:
	case WM_PART_LAST:
		value = kept_decode(in);
		if (value.kind != WM_KIND_NULL)
			wm_first_add(into, arena, &value, wm_get_i64(in));
		break;
	case WM_PART_QUANTILE:
		return wm_quantile_decode(into, arena, in);
	case WM_PART_DISTINCT:
		return wm_distinct_decode(into, arena, in);
	case WM_PARTS_COUNT:
		assert(false);
	}
	return !in->failed;
}
