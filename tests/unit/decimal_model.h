/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decimal_model - numbers as exact fractions of GMP: what sums, means and comparisons are held to.
 */
#ifndef WM_TESTS_UNIT_DECIMAL_MODEL_H
#define WM_TESTS_UNIT_DECIMAL_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gmp.h>

#include "lib/base/decimal.h"

/* A number's text as an exact fraction, by a plain reader of its own: exponents must be small. False: no number. */
static inline bool
model_parse(const char *text, mpq_t value)
{
	char digits[256] = "";
	size_t count = 0;
	long exponent = 0;
	bool negative = *text == '-', any = false, point = false;
	mpz_t power;

	for (text += negative; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		any = true;
		digits[count++] = *text;
		exponent -= point;
	}
	if (!any)
		return false;
	if (*text == 'e' || *text == 'E') {
		char *end;

		text++;
		if (!((text[0] >= '0' && text[0] <= '9') ||
			    ((text[0] == '-' || text[0] == '+') && text[1] >= '0' && text[1] <= '9')))
			return false;
		exponent += strtol(text, &end, 10);
		text = end;
	}
	if (*text != '\0')
		return false;
	mpz_init(power);
	mpz_ui_pow_ui(power, 10, (unsigned long)labs(exponent));
	mpz_set_str(mpq_numref(value), digits, 10);
	mpz_set_ui(mpq_denref(value), 1);
	if (exponent < 0)
		mpz_set(mpq_denref(value), power);
	else
		mpz_mul(mpq_numref(value), mpq_numref(value), power);
	mpq_canonicalize(value);
	if (negative)
		mpq_neg(value, value);
	mpz_clear(power);
	return true;
}

/* Whether no double is nearer to exact than value, and of two that are equally near it is the even one. */
static inline bool
is_nearest(const mpq_t exact, double value)
{
	mpq_t distance, other;
	uint64_t bits;
	bool nearest = true;

	memcpy(&bits, &value, sizeof(bits));
	mpq_inits(distance, other, NULL);
	mpq_set_d(distance, value);
	mpq_sub(distance, distance, exact);
	mpq_abs(distance, distance);
	for (int side = -1; side <= 1; side += 2) {
		double next = nextafter(value, side * (double)INFINITY);

		if (isinf(next))
			continue;
		mpq_set_d(other, next);
		mpq_sub(other, other, exact);
		mpq_abs(other, other);
		int order = mpq_cmp(distance, other);
		nearest = nearest && (order < 0 || (order == 0 && (bits & 1) == 0));
	}
	mpq_clears(distance, other, NULL);
	return nearest;
}

static inline void
exact_value(mpq_t value, const struct wm_decimal *number)
{
	mpz_t fraction;

	mpz_init_set_si(fraction, number->fraction);
	mpz_set_si(mpq_numref(value), (long)(number->whole >> 64));
	mpz_mul_2exp(mpq_numref(value), mpq_numref(value), 64);
	mpz_add_ui(mpq_numref(value), mpq_numref(value), (unsigned long)(uint64_t)number->whole);
	mpz_mul_ui(mpq_numref(value), mpq_numref(value), (unsigned long)WM_FRACTION_ONE);
	mpz_add(mpq_numref(value), mpq_numref(value), fraction);
	mpz_set_ui(mpq_denref(value), (unsigned long)WM_FRACTION_ONE);
	mpq_canonicalize(value);
	mpz_clear(fraction);
}

#endif
