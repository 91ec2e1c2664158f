/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part - what a cell may hold of a column's values, piece by piece.
 *
 * A cell has, of each column, the parts that the aggregates of the column need and no
 * more. All zero bytes are a part without values. What does not fit a part stands in the
 * arena of the cell, so that a part needs no releasing.
 *
 * The table in part.c has a row for each part; merging, encoding and decoding go by it.
 */
#ifndef WM_AGG_PART_H
#define WM_AGG_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/agg/distinct.h"
#include "lib/agg/quantile.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/decimal.h"
#include "lib/base/value.h"

/* Cells are laid out, encoded and fingerprinted in this order. */
enum wm_part {
	WM_PART_COUNT, /* uint64_t: values */
	WM_PART_SUM,
	WM_PART_SQUARES,
	WM_PART_MIN,
	WM_PART_MAX,
	WM_PART_FIRST,
	WM_PART_LAST,
	WM_PART_QUANTILE,
	WM_PART_DISTINCT,
	WM_PARTS_COUNT
};

#define WM_PART_BIT(part) (1u << (part))

struct wm_part_layout {
	const char *name;
	size_t size, alignment;
};

extern const struct wm_part_layout wm_part_layouts[WM_PARTS_COUNT];

/* Texts up to here stand in the cell itself. */
#define WM_KEPT_NEAR_MAX 16

/* A text that a cell keeps. Once it has room in the arena it stays there, and takes new room only to grow. */
struct wm_kept {
	union {
		char near[WM_KEPT_NEAR_MAX];
		struct {
			char *data;
			size_t capacity;
		} far;
	};
	uint32_t len;
	uint8_t kind; /* enum wm_kind; WM_KIND_NULL: no value yet */
	bool is_far;
	bool is_number, is_short; /* for extremes */
};

/* min and max */
struct wm_extreme {
	int64_t whole,
		fraction; /* of the number where kept.is_short: that is, where it is exact and its whole part fits */
	struct wm_kept kept;
};

/* The sum of most groups is exact and fits; that of the others is in the arena, as soon as it does not, and stays there. */
struct wm_sum {
	int64_t whole;               /* of the sum, rounded down */
	int64_t fraction;            /* above it in 10^-18, 0 <= fraction < 10^18 */
	struct wm_decimal_sum *wide; /* not NULL: all of the sum; the others are unset then */
};

/* first and last */
struct wm_timed {
	int64_t event_time_us;
	struct wm_kept kept;
};

static inline struct wm_value
wm_kept_value(const struct wm_kept *kept)
{
	return (struct wm_value){ .text = wm_span(kept->is_far ? kept->far.data : kept->near, kept->len),
		.kind = (enum wm_kind)kept->kind };
}

/* Takes in a number for which the sum stays one that fits; false, and nothing done, for another. */
static inline bool
wm_sum_add_short(struct wm_sum *sum, const struct wm_decimal *number)
{
	if (sum->wide != NULL || !number->is_exact || !wm_decimal_is_short(number))
		return false;
	/* Without branches: whether the fraction carries cannot be foreseen. */
	int64_t fraction = sum->fraction + number->fraction, whole;
	int64_t carried = (int64_t)(fraction >= WM_FRACTION_ONE) - (int64_t)(fraction < 0);
	if (__builtin_add_overflow((int64_t)number->whole, carried, &whole) ||
		__builtin_add_overflow(sum->whole, whole, &whole))
		return false;
	sum->whole = whole;
	sum->fraction = fraction - carried * WM_FRACTION_ONE;
	return true;
}

void wm_sum_add(struct wm_sum *sum, struct wm_arena *arena, const struct wm_decimal *number);

static inline struct wm_decimal_sum
wm_sum_value(const struct wm_sum *sum)
{
	return sum->wide != NULL ? *sum->wide
				 : (struct wm_decimal_sum){ .whole = sum->whole, .fraction = sum->fraction };
}

/* The order of values: numbers before texts, numbers by value, texts as bytes. <0, 0, >0. */
static inline int
wm_reading_compare(const struct wm_reading *a, const struct wm_reading *b)
{
	if (a->is_number != b->is_number)
		return a->is_number ? -1 : 1;
	return a->is_number ? wm_decimal_compare(&a->number, a->value.text, &b->number, b->value.text)
			    : wm_span_compare(a->value.text, b->value.text);
}

/*
 * Whether a value takes the place of the one that is kept as the greatest (direction 1) or least (-1). Of equal ones the same stays whatever
 * came first: that with the text first in byte order, and of one text the number.
 */
static inline bool
wm_reading_replaces(const struct wm_reading *reading, const struct wm_reading *kept, int direction)
{
	int order = wm_reading_compare(reading, kept) * direction;

	if (order == 0)
		order = wm_span_compare(kept->value.text, reading->value.text);
	return order > 0 || (order == 0 && reading->value.kind > kept->value.kind);
}

/* Up to 16 bytes, without a call. */
static inline void
wm_kept_set_near(struct wm_kept *kept, const struct wm_value *value)
{
	struct wm_span_words words = wm_span_words(value->text);
	size_t len = value->text.len;

	if (len >= 8) {
		memcpy(kept->near, &words.low, 8);
		memcpy(kept->near + len - 8, &words.high, 8);
	} else if (len >= 4) {
		memcpy(kept->near, &words.low, 4);
		memcpy(kept->near + len - 4, &words.high, 4);
	} else {
		for (size_t i = 0; i < len; i++)
			kept->near[i] = value->text.data[i];
	}
	kept->len = (uint32_t)len;
	kept->kind = (uint8_t)value->kind;
}

/*
 * Takes in an exact number that fits, in the common cases: it is the first, or both are such numbers and differ, and its text is short.
 * False, and nothing done, in others. direction as below.
 */
static inline bool
wm_extreme_add_short(struct wm_extreme *extreme, const struct wm_reading *reading, int direction)
{
	const struct wm_decimal *number = &reading->number;

	if (!reading->is_number || !number->is_exact || !wm_decimal_is_short(number))
		return false;
	int64_t whole = (int64_t)number->whole;
	if (extreme->kept.is_short) {
		/* It is foreseen that the whole parts decide. */
		if (direction < 0 ? extreme->whole < whole : extreme->whole > whole)
			return true;
		if (extreme->whole == whole) {
			if (extreme->fraction == number->fraction)
				return false;
			if ((extreme->fraction < number->fraction) == (direction < 0))
				return true;
		}
	} else if (extreme->kept.kind != WM_KIND_NULL) {
		return false;
	}
	if (reading->value.text.len > WM_KEPT_NEAR_MAX || extreme->kept.is_far)
		return false;
	extreme->whole = whole;
	extreme->fraction = number->fraction;
	extreme->kept.is_number = extreme->kept.is_short = true;
	wm_kept_set_near(&extreme->kept, &reading->value);
	return true;
}

/*
 * direction: -1 for min, 1 for max. Of equal values the text first in byte order stays, of equal texts the first to come.
 */
void wm_extreme_add(
	struct wm_extreme *extreme, struct wm_arena *arena, const struct wm_reading *reading, int direction);

/* Of equal event times the first to come stays. */
void wm_first_add(struct wm_timed *first, struct wm_arena *arena, const struct wm_value *value, int64_t event_time_us);

/* Of equal event times the last to come stays. */
void wm_last_add(struct wm_timed *last, struct wm_arena *arena, const struct wm_value *value, int64_t event_time_us);

/*
 * from stays as it is; arena is that of into. What is in into came before what is in from: this decides between values of
 * one event time for first and last, and between equal texts of different kinds for min and max.
 */
void wm_part_merge(enum wm_part part, void *into, struct wm_arena *arena, const void *from);

void wm_part_encode(enum wm_part part, const void *from, struct wm_buf *out);

/* Into a part without values. */
WM_MUST_CHECK bool wm_part_decode(enum wm_part part, void *into, struct wm_arena *arena, struct wm_get *in);

#endif
