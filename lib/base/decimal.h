/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decimal - decimal texts as exact numbers, and numbers as text.
 *
 * A text is a number here when it is a JSON number, or one written the way data
 * files write it: an optional minus, digits, at most one point (".5" and "5."
 * are numbers, leading zeros are decimal), an optional exponent. NaN, inf, hex,
 * digit separators, blanks and a leading plus are not numbers.
 *
 * A number whose value has at most WM_FRACTION_DIGITS_MAX digits after the
 * point and WM_WHOLE_DIGITS_MAX before it (trailing and leading zeros aside, so
 * an exponent is fine) is held exactly, as whole + fraction / 10^18. What does
 * not fit is held as the nearest double. No result depends on the locale.
 * Overflow to infinity ("1e999") makes a text no number.
 *
 * This is the only place of the project that calls strtod.
 */
#ifndef WM_BASE_DECIMAL_H
#define WM_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/span.h"

__extension__ typedef __int128 wm_int128; /* the one typedef: the type has no ISO name */

#define WM_FRACTION_ONE INT64_C(1000000000000000000) /* 10^18 */

/* Fields are for reading. */
struct wm_decimal {
	wm_int128 whole; /* exact: the part before the point */
	union {
		int64_t fraction; /* exact: the part after it in 10^-18, |fraction| < 10^18, never of the other sign */
		double nearest;   /* not exact: the value as a double */
	};
	bool is_exact;
};

/* Of a number that is exact: whether its whole part fits 64 bits. */
static inline bool
wm_decimal_is_short(const struct wm_decimal *number)
{
	return (int64_t)number->whole == number->whole;
}

/* False, and *number unset, if the text is no number (the empty text is none). */
bool wm_decimal_parse(struct wm_span text, struct wm_decimal *number);

/* For two exact numbers: <0, 0, >0. */
static inline int
wm_decimal_compare_exact(const struct wm_decimal *a, const struct wm_decimal *b)
{
	if (a->whole != b->whole)
		return a->whole < b->whole ? -1 : 1;
	return (a->fraction > b->fraction) - (a->fraction < b->fraction);
}

/* By value, exactly, also where one or both do not fit: then from their texts. <0, 0, >0. */
int wm_decimal_compare(
	const struct wm_decimal *a, struct wm_span a_text, const struct wm_decimal *b, struct wm_span b_text);

/*
 * A running sum. Exact for exact numbers: any order and any grouping gives the
 * same bytes, and it cannot overflow (2^64 additions). The others go to a
 * compensated (Neumaier) double beside it. All zero bytes are the empty sum.
 *
 * A rest that leaves the range of doubles is infinite for good: the sum has no
 * value then, and neither has what is computed of it.
 */
struct wm_decimal_sum {
	wm_int128 whole;  /* of the sum, rounded down */
	int64_t fraction; /* above it in 10^-18, 0 <= fraction < 10^18 */
	int64_t carry;    /* in 2^128: what left whole */
	double rest;      /* +infinity: no value */
	double rest_error;
};

void wm_decimal_sum_add(struct wm_decimal_sum *sum, const struct wm_decimal *number);

void wm_decimal_sum_merge(struct wm_decimal_sum *into, const struct wm_decimal_sum *from);

/*
 * Exact sums whole, in decimal, without exponent and trailing zeros. With a rest, the double nearest to
 * whole + fraction + rest + rest_error (rounded once), as wm_double_print() writes it. Nothing where the sum has no value.
 */
void wm_decimal_sum_print(const struct wm_decimal_sum *sum, struct wm_buf *out);

/* Sum / count, rounded once, to be printed by wm_double_print(); not finite where it has no value. count > 0. */
double wm_decimal_sum_mean(const struct wm_decimal_sum *sum, uint64_t count);

/* What wm_double_print() makes of that mean; nothing where it has no value. count > 0. */
void wm_decimal_mean_print(const struct wm_decimal_sum *sum, uint64_t count, struct wm_buf *out);

void wm_decimal_sum_encode(const struct wm_decimal_sum *sum, struct wm_buf *out);
bool wm_decimal_sum_decode(struct wm_decimal_sum *sum, struct wm_get *in);

/*
 * A running sum of squares, for the variance. Exact for exact numbers below
 * 10^19 in size, so that any order gives the same bytes; the others go to a
 * compensated double. All zero bytes are the empty sum.
 */
struct wm_square_sum {
	uint64_t limbs[6]; /* sum of (number * 10^18)^2, little-endian */
	double rest;
	double rest_error;
};

void wm_square_sum_add(struct wm_square_sum *sum, const struct wm_decimal *number);
void wm_square_sum_merge(struct wm_square_sum *into, const struct wm_square_sum *from);

/*
 * Variance of the sample, (squares - sum^2 / count) / (count - 1), rounded once, and so the nearest double where both
 * are exact; never negative; not finite where it has no value. count > 1.
 */
double wm_square_sum_variance(const struct wm_square_sum *squares, const struct wm_decimal_sum *sum, uint64_t count);

void wm_square_sum_encode(const struct wm_square_sum *sum, struct wm_buf *out);
bool wm_square_sum_decode(struct wm_square_sum *sum, struct wm_get *in);

/* numerator / denominator correctly rounded; denominator > 0. For rates and shares. */
double wm_ratio(uint64_t numerator, uint64_t denominator);

void wm_integer_print(uint64_t value, struct wm_buf *out);

/*
 * The shortest text that reads back as the same double; integers from 2^53 to 10^21 with all their digits.
 * Integers have neither exponent nor point below 10^38, up to where sums are exact; an exponent ("1e+300", "5e-324") stands only
 * there and above and below 10^-6. Minus zero is "0". Nothing for what is not finite.
 */
void wm_double_print(double value, struct wm_buf *out);

/*
 * A number's text by a printf format with one conversion of a double ("%.3f"), which the caller has checked; appended to out. The text is
 * one that this module printed or parses.
 */
void wm_number_format(struct wm_span text, const char *format, struct wm_buf *out);

#endif
