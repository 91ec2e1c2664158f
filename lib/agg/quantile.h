/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantile - the values of a group by rank: exact while they are few, then within a stated error.
 *
 * Up to WM_QUANTILE_EXACT_MAX values are kept as they are. With the next one they
 * go into a DDSketch: a count for each bucket of sizes, where a bucket is an
 * octave's 128th. A double's sign, exponent and first 7 bits behind the point
 * are its bucket, so that no logarithm is taken and every machine finds the
 * same one. A bucket [l, l + w) has w <= l / 128, and stands for its middle
 * l + w / 2, which is at most w / 2 <= l / 256 from any value x >= l in it:
 *
 *     |answer - x| <= x / 256 < 0.4 % of x
 *
 * for negative values by their size. (What is lost on the way from a decimal to a
 * double, 2^-51 of it, does not count here.) Nothing is collapsed, so that this
 * holds always. Sizes below 2^-1022, the least normal double, count as 0; the
 * least and the greatest value are kept exactly, and no answer is beyond them.
 *
 * Whether values are exact depends on their number alone and a bucket on the
 * value alone: any order and any grouping of adding and merging gives the same
 * answers and the same encoded bytes.
 *
 * Memory, from an arena: 8 bytes a value (48 where a value does not fit 64 bits
 * at the digits that all need) by doubling from 2. Then 520 bytes for each octave
 * in which there are values (1032 where a bucket has 2^32 of them), of which there
 * are at most 2 * 2046, and 8 for each octave between the first and the last. What
 * is outgrown is garbage, at most as much again.
 */
#ifndef WM_AGG_QUANTILE_H
#define WM_AGG_QUANTILE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/decimal.h"

/* Values that are kept exactly; the 1025th makes a sketch of all. */
#define WM_QUANTILE_EXACT_MAX 1024

/* The whole in the units of percentages, 10^-15 percent: digits enough for any, and a product with a count fits 128 bits. */
#define WM_PERCENT_DIGITS_MAX 15
#define WM_PERCENT_ONE INT64_C(1000000000000000)
#define WM_PERCENT_ALL (100 * WM_PERCENT_ONE)

struct wm_quantile_sketch;

enum wm_quantile_form { WM_QUANTILE_SCALED, WM_QUANTILE_DECIMALS, WM_QUANTILE_SKETCH };

/* All zero bytes are no values. Memory is the arena's: nothing to release. Fields are for reading. */
struct wm_quantile {
	uint64_t count;
	union {
		int64_t *scaled; /* in 10^-digits */
		struct wm_decimal *decimals;
		struct wm_quantile_sketch *sketch;
	};
	uint16_t capacity; /* of scaled or decimals, in values */
	uint8_t digits;    /* after the point, as many as the values need; for scaled */
	uint8_t form;      /* enum wm_quantile_form */
};

void wm_quantile_add(struct wm_quantile *quantile, struct wm_arena *arena, const struct wm_decimal *number);

/* The same of an integer, without a decimal for nearly all of them. */
void wm_quantile_add_integer(struct wm_quantile *quantile, struct wm_arena *arena, int64_t integer);

/* from stays as it is; arena is that of into. */
void wm_quantile_merge(struct wm_quantile *into, struct wm_arena *arena, const struct wm_quantile *from);

/* The rank of a percentage in units of 10^-15 percent: ceil(percent / 100 * count), at least 1. count > 0. */
uint64_t wm_quantile_rank(uint64_t percent, uint64_t count);

/* The value of a rank, 1 to count. Sorts the values that are kept, which changes no answer. */
struct wm_decimal wm_quantile_at(const struct wm_quantile *quantile, uint64_t rank);

/* The middle value, or the mean of the middle two, correctly rounded. Appended as text. count > 0. */
void wm_quantile_print_median(const struct wm_quantile *quantile, struct wm_buf *out);

void wm_quantile_encode(const struct wm_quantile *quantile, struct wm_buf *out);

/* Into one without values. Takes memory for values and octaves that are there, and 64 KB besides, whatever counts the bytes tell. */
WM_MUST_CHECK bool wm_quantile_decode(struct wm_quantile *quantile, struct wm_arena *arena, struct wm_get *in);

#endif
