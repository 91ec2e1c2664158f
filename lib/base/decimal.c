/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/decimal.h"

#include <assert.h>
#include <endian.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gmp.h>

#include "lib/base/ascii.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"

__extension__ typedef unsigned __int128 uint128;

/*
 * The exact decimal form of a point between two doubles has at most 768
 * significant digits: of longer texts, what stands behind the first 800 counts
 * only as being there.
 */
#define SIGNIFICANT_DIGITS_MAX 800

/* 0.DIGITS * 10^point is infinite above, and nearer to 0 than to the least double below. */
#define POINT_MAX 310
#define POINT_MIN (-330)

/* Exponents of up to so many digits can be added to without leaving int64_t. */
#define EXPONENT_DIGITS_MAX 17

/* All integers up to here are doubles. */
#define DOUBLE_WHOLE_MAX (INT64_C(1) << 53)

/* Room for the 39 digits of a 128-bit integer. */
#define UINT128_DIGITS_MAX 40

static const uint64_t power_of_ten[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
	10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000,
	100000000000000000, 1000000000000000000, UINT64_C(10000000000000000000) };

/* A number's text taken apart: its size is 0.DIGITS * 10^(shift + exponent). */
struct digits {
	const char *at; /* the first digit that is not 0; the point may stand between the digits */
	size_t count;   /* up to the last digit that is not 0; none: the number is 0 */
	int64_t shift;
	struct wm_span exponent; /* its digits, without leading zeros */
	bool exponent_is_negative;
	bool is_negative;
};

static inline unsigned
next_digit(const char **at)
{
	if (**at == '.')
		++*at;
	return (unsigned)(*(*at)++ - '0');
}

static uint128
magnitude(wm_int128 value)
{
	return value < 0 ? -(uint128)value : (uint128)value;
}

/* False if the text is no number. */
static bool
take_apart(struct wm_span text, struct digits *digits)
{
	const char *at = text.data, *end = at + text.len;
	size_t index = 0, whole_count = 0, first = 0;
	bool has_point = false;

	*digits = (struct digits){ .is_negative = at < end && *at == '-' };
	for (at += digits->is_negative; at < end && (wm_is_digit(*at) || (*at == '.' && !has_point)); at++) {
		if (*at == '.') {
			has_point = true;
			whole_count = index;
			continue;
		}
		if (*at != '0') {
			if (digits->count == 0) {
				digits->at = at;
				first = index;
			}
			digits->count = index - first + 1;
		}
		index++;
	}
	if (index == 0)
		return false;
	digits->shift = (int64_t)(has_point ? whole_count : index) - (int64_t)first;
	if (at == end)
		return true;
	if (*at != 'e' && *at != 'E')
		return false;
	at++;
	if (at < end && (*at == '-' || *at == '+')) {
		digits->exponent_is_negative = *at == '-';
		at++;
	}
	if (at == end)
		return false;
	for (const char *scan = at; scan < end; scan++)
		if (!wm_is_digit(*scan))
			return false;
	while (at < end && *at == '0')
		at++;
	digits->exponent = wm_span(at, (size_t)(end - at));
	return true;
}

/* Shift and exponent together; longer exponents than EXPONENT_DIGITS_MAX give a number beyond all others. */
static int64_t
point_of(const struct digits *digits)
{
	int64_t exponent = 0;

	if (digits->exponent.len > EXPONENT_DIGITS_MAX) {
		exponent = INT64_MAX / 2;
	} else {
		for (size_t i = 0; i < digits->exponent.len; i++)
			exponent = exponent * 10 + (digits->exponent.data[i] - '0');
	}
	return digits->shift + (digits->exponent_is_negative ? -exponent : exponent);
}

/* DIGITS * 10^exponent. Without a point in the text, strtod asks no locale. */
static double
read_double(const char *digits, size_t count, int64_t exponent)
{
	char text[SIGNIFICANT_DIGITS_MAX + 32];

	snprintf(text, sizeof(text), "%.*se%lld", (int)count, digits, (long long)exponent);
	return strtod(text, NULL);
}

/* 0.DIGITS * 10^point for a number that is not 0. */
static double
nearest_double(const struct digits *digits, int64_t point)
{
	char significant[SIGNIFICANT_DIGITS_MAX + 1];
	size_t count = 0;
	const char *at = digits->at;

	if (point > POINT_MAX)
		return INFINITY;
	if (point < POINT_MIN)
		return 0;
	while (count < digits->count && count < SIGNIFICANT_DIGITS_MAX)
		significant[count++] = (char)('0' + next_digit(&at));
	if (count < digits->count)
		significant[count++] = '1';
	return read_double(significant, count, point - (int64_t)count);
}

__attribute__((noinline)) static bool
parse_slow(struct wm_span text, struct wm_decimal *number)
{
	struct digits digits;

	if (!take_apart(text, &digits))
		return false;
	int64_t point = digits.count == 0 ? 0 : point_of(&digits);
	if (point > WM_WHOLE_DIGITS_MAX || (int64_t)digits.count - point > WM_FRACTION_DIGITS_MAX) {
		double nearest = nearest_double(&digits, point);

		if (isinf(nearest))
			return false;
		number->nearest = digits.is_negative ? -nearest : nearest;
		number->is_exact = false;
		return true;
	}
	wm_int128 whole = 0;
	int64_t fraction = 0;
	for (int64_t place = point - 1; place >= -WM_FRACTION_DIGITS_MAX; place--) {
		unsigned digit = 0;

		if (digits.count > 0) {
			digit = next_digit(&digits.at);
			digits.count--;
		}
		if (place >= 0)
			whole = whole * 10 + digit;
		else
			fraction = fraction * 10 + digit;
	}
	number->whole = digits.is_negative ? -whole : whole;
	number->fraction = digits.is_negative ? -fraction : fraction;
	number->is_exact = true;
	return true;
}

/* 1 to 8 bytes, of which the last becomes the highest of the word; below the first are zeros, in so many bits. */
static inline uint64_t
load_word(const char *at, size_t len, size_t empty)
{
	if (len >= 4) {
		uint32_t head, tail;

		memcpy(&head, at, 4);
		memcpy(&tail, at + len - 4, 4);
		return (uint64_t)le32toh(head) << empty | (uint64_t)le32toh(tail) << 32;
	}
	return (uint64_t)(unsigned char)at[0] << empty | (uint64_t)(unsigned char)at[len / 2] << (empty + len / 2 * 8) |
		(uint64_t)(unsigned char)at[len - 1] << 56;
}

/* The number whose eight digits, the first one lowest, are the bytes of the word. */
static inline uint64_t
digits_value(uint64_t word)
{
	word = (word * (10 * 256 + 1) >> 8) & UINT64_C(0x00ff00ff00ff00ff);
	word = (word * (100 * 65536 + 1) >> 16) & UINT64_C(0x0000ffff0000ffff);
	return word * (10000 * (UINT64_C(1) << 32) + 1) >> 32;
}

/* For a number of up to 7 digits in a word of eight bytes, by the byte that the point is in. */
static const struct scale {
	uint64_t
		reciprocal; /* 2^63 / 10^(digits behind it), rounded up: near enough for all quotients of up to 7 digits */
	uint64_t unit;      /* of the last digit, in 10^-18 */
} scales[] = {
	{ UINT64_C(922337203686), UINT64_C(100000000000) },
	{ UINT64_C(9223372036855), UINT64_C(1000000000000) },
	{ UINT64_C(92233720368548), UINT64_C(10000000000000) },
	{ UINT64_C(922337203685478), UINT64_C(100000000000000) },
	{ UINT64_C(9223372036854776), UINT64_C(1000000000000000) },
	{ UINT64_C(92233720368547759), UINT64_C(10000000000000000) },
	{ UINT64_C(922337203685477581), UINT64_C(100000000000000000) },
	{ UINT64_C(9223372036854775808), UINT64_C(1000000000000000000) },
};

/*
 * Unsigned texts of 1 to 8 bytes, of digits and at most one point, all bytes at
 * once: most fields are no longer, and a loop of unforeseeable length costs
 * more than the rest. False for others, which are not judged here.
 */
static inline bool
parse_word(const char *at, size_t len, uint64_t *whole, uint64_t *fraction)
{
	const uint64_t all = UINT64_C(0x0101010101010101);
	size_t empty = 64 - 8 * len;
	uint64_t word = load_word(at, len, empty) ^ (all * '0' << empty);
	uint64_t others = ((word + all * (0x80 - 10)) | word) & all * 0x80;

	if (others == 0) {
		*whole = digits_value(word);
		*fraction = 0;
		return true;
	}
	unsigned place = (unsigned)__builtin_ctzll(others) - 7; /* of the first other byte, in bits */
	if ((others & (others - 1)) != 0 || (unsigned char)(word >> place) != ('.' ^ '0') || len == 1)
		return false;
	/* The digits before the point move up into its place and make one number with those behind. */
	uint64_t before = (others >> 7) - 1;
	uint64_t number = digits_value((word & before) << 8 | (word & (0 - (others << 1))));
	const struct scale *scale = &scales[place / 8];
	*whole = (uint64_t)((uint128)(2 * number) * scale->reciprocal >> 64);
	/* Both products may leave 64 bits; their difference is below 10^18. */
	*fraction = number * scale->unit - *whole * (uint64_t)WM_FRACTION_ONE;
	return true;
}

/* The same for up to 18 digits before and behind the point. */
static inline bool
parse_loop(const char *at, size_t len, uint64_t *whole, uint64_t *fraction)
{
	const char *start = at, *end = at + len;
	size_t fraction_digits = 0;

	for (*whole = 0; at < end && wm_is_digit(*at); at++)
		*whole = *whole * 10 + (unsigned)(*at - '0');
	size_t whole_digits = (size_t)(at - start);
	*fraction = 0;
	if (at < end && *at == '.') {
		start = ++at;
		for (; at < end && wm_is_digit(*at); at++)
			*fraction = *fraction * 10 + (unsigned)(*at - '0');
		fraction_digits = (size_t)(at - start);
	}
	if (at < end || whole_digits > 18 || fraction_digits > WM_FRACTION_DIGITS_MAX)
		return false;
	*fraction *= power_of_ten[WM_FRACTION_DIGITS_MAX - fraction_digits];
	return true;
}

/* whole is below 10^18. */
static inline void
set_exact(struct wm_decimal *number, bool is_negative, uint64_t whole, uint64_t fraction)
{
	int64_t sign = -(int64_t)is_negative;

	number->whole = ((int64_t)whole ^ sign) - sign;
	number->fraction = ((int64_t)fraction ^ sign) - sign;
	number->is_exact = true;
}

/* Longer ones than parse_word() takes, and the minus alone. */
__attribute__((noinline)) static bool
parse_long(struct wm_span text, struct wm_decimal *number)
{
	uint64_t whole, fraction;
	bool is_negative = text.data[0] == '-';

	if (text.len == 1 || !parse_loop(text.data + is_negative, text.len - is_negative, &whole, &fraction))
		return parse_slow(text, number);
	set_exact(number, is_negative, whole, fraction);
	return true;
}

/* Without a call that it has to return from: then no register is to be saved. */
bool
wm_decimal_parse(struct wm_span text, struct wm_decimal *number)
{
	uint64_t whole, fraction;

	if (text.len == 0)
		return false;
	bool is_negative = text.data[0] == '-';
	size_t len = text.len - is_negative;
	if (len - 1 >= 8)
		return parse_long(text, number);
	if (!parse_word(text.data + is_negative, len, &whole, &fraction))
		return parse_slow(text, number);
	set_exact(number, is_negative, whole, fraction);
	return true;
}

static void *
grow_limbs(void *old, size_t old_bytes, size_t bytes)
{
	(void)old_bytes;
	return wm_reallocarray(old, bytes, 1);
}

static void
free_limbs(void *old, size_t bytes)
{
	(void)bytes;
	free(old);
}

/* Left to itself the library aborts where there is no memory. */
static __attribute__((constructor)) void
lend_memory(void)
{
	mp_set_memory_functions(wm_malloc, grow_limbs, free_limbs);
}

/* Into what mpz_init() made. */
static void
set_whole(mpz_t result, uint128 value)
{
	uint64_t limbs[2] = { (uint64_t)value, (uint64_t)(value >> 64) };

	mpz_import(result, 2, -1, sizeof(limbs[0]), 0, 0, limbs);
}

static void
point_init(mpz_t point, const struct digits *digits)
{
	char *exponent = wm_memdup(digits->exponent.data, digits->exponent.len);
	mpz_t shift;

	mpz_init(point);
	if (digits->exponent.len != 0)
		mpz_set_str(point, exponent, 10);
	free(exponent);
	if (digits->exponent_is_negative)
		mpz_neg(point, point);
	mpz_init(shift);
	set_whole(shift, magnitude(digits->shift));
	if (digits->shift < 0)
		mpz_sub(point, point, shift);
	else
		mpz_add(point, point, shift);
	mpz_clear(shift);
}

static int
compare_points(const struct digits *a, const struct digits *b)
{
	if (a->exponent.len <= EXPONENT_DIGITS_MAX && b->exponent.len <= EXPONENT_DIGITS_MAX) {
		int64_t a_point = point_of(a), b_point = point_of(b);

		return (a_point > b_point) - (a_point < b_point);
	}
	mpz_t a_point, b_point;
	point_init(a_point, a);
	point_init(b_point, b);
	int order = mpz_cmp(a_point, b_point);
	mpz_clears(a_point, b_point, NULL);
	return order;
}

/* By size; neither is 0. */
static int
compare_sizes(const struct digits *a, const struct digits *b)
{
	const char *a_at = a->at, *b_at = b->at;
	int order = compare_points(a, b);

	for (size_t i = 0; order == 0 && i < a->count && i < b->count; i++)
		order = (int)next_digit(&a_at) - (int)next_digit(&b_at);
	return order != 0 ? order : (a->count > b->count) - (a->count < b->count);
}

static int
sign_of(const struct digits *digits)
{
	return digits->count == 0 ? 0 : digits->is_negative ? -1 : 1;
}

__attribute__((noinline)) static int
compare_texts(struct wm_span a_text, struct wm_span b_text)
{
	struct digits a, b;
	bool are_numbers = take_apart(a_text, &a) && take_apart(b_text, &b);

	assert(are_numbers);
	(void)are_numbers;
	int sign = sign_of(&a);
	if (sign != sign_of(&b) || sign == 0)
		return sign - sign_of(&b);
	int order = compare_sizes(&a, &b);
	return sign < 0 ? -order : order;
}

int
wm_decimal_compare(const struct wm_decimal *a, struct wm_span a_text, const struct wm_decimal *b, struct wm_span b_text)
{
	return a->is_exact && b->is_exact ? wm_decimal_compare_exact(a, b) : compare_texts(a_text, b_text);
}

/* Out of range once is out of range for good. */
static void
rest_settle(double *rest, double *error)
{
	if (!isfinite(*rest) || !isfinite(*error)) {
		*rest = INFINITY;
		*error = 0;
	}
}

/* Neumaier: error takes what is lost of the smaller of the two. */
static void
rest_add(double *rest, double *error, double value)
{
	double total = *rest + value;

	*error += fabs(*rest) >= fabs(value) ? (*rest - total) + value : (value - total) + *rest;
	*rest = total;
	rest_settle(rest, error);
}

static void
rest_merge(double *rest, double *error, double from_rest, double from_error)
{
	rest_add(rest, error, from_rest);
	*error += from_error;
	rest_settle(rest, error);
}

static void
rest_encode(double rest, double error, struct wm_buf *out)
{
	wm_put_double(out, rest);
	wm_put_double(out, error);
}

static void
rest_decode(double *rest, double *error, struct wm_get *in)
{
	*rest = wm_get_double(in);
	*error = wm_get_double(in);
	if (!isfinite(*error) || (!isfinite(*rest) && !(*rest > 0 && *error == 0)))
		wm_get_fail(in);
}

void
wm_decimal_sum_add(struct wm_decimal_sum *sum, const struct wm_decimal *number)
{
	if (!number->is_exact) {
		rest_add(&sum->rest, &sum->rest_error, number->nearest);
		return;
	}
	int64_t fraction = sum->fraction + number->fraction;
	int64_t carried = (int64_t)(fraction >= WM_FRACTION_ONE) - (int64_t)(fraction < 0);
	wm_int128 whole = number->whole + carried; /* fits: a number has at most 38 digits */

	sum->fraction = fraction - carried * WM_FRACTION_ONE;
	if (__builtin_add_overflow(sum->whole, whole, &sum->whole))
		sum->carry += whole < 0 ? -1 : 1;
}

void
wm_decimal_sum_merge(struct wm_decimal_sum *into, const struct wm_decimal_sum *from)
{
	int64_t fraction = into->fraction + from->fraction;
	int64_t carried = fraction >= WM_FRACTION_ONE;
	uint64_t carry = (uint64_t)into->carry + (uint64_t)from->carry;

	into->fraction = fraction - carried * WM_FRACTION_ONE;
	if (__builtin_add_overflow(into->whole, from->whole, &into->whole))
		carry += from->whole < 0 ? UINT64_MAX : 1;
	if (__builtin_add_overflow(into->whole, carried, &into->whole))
		carry++;
	into->carry = (int64_t)carry;
	rest_merge(&into->rest, &into->rest_error, from->rest, from->rest_error);
}

/* The double nearest to numerator / denominator, ties to even; denominator > 0. */
static double
round_ratio(const mpz_t numerator, const mpz_t denominator)
{
	mpz_t dividend, divisor, quotient, remainder;
	uint64_t limbs[2] = { 0, 0 };
	long shift = 66 - ((long)mpz_sizeinbase(numerator, 2) - (long)mpz_sizeinbase(denominator, 2));

	if (mpz_sgn(numerator) == 0)
		return 0;
	mpz_inits(dividend, divisor, quotient, remainder, NULL);
	mpz_abs(dividend, numerator);
	mpz_set(divisor, denominator);
	if (shift > 0)
		mpz_mul_2exp(dividend, dividend, (mp_bitcnt_t)shift);
	else
		mpz_mul_2exp(divisor, divisor, (mp_bitcnt_t)-shift);
	mpz_tdiv_qr(quotient, remainder, dividend, divisor);
	bool is_above = mpz_sgn(remainder) != 0;
	long bits = (long)mpz_sizeinbase(quotient, 2); /* 66 or 67 */
	mpz_export(limbs, NULL, -1, sizeof(limbs[0]), 0, 0, quotient);
	mpz_clears(dividend, divisor, quotient, remainder, NULL);

	/* The quotient times 2^-shift; a double has 53 bits, and none below 2^-1074. */
	uint128 whole = (uint128)limbs[1] << 64 | limbs[0];
	long dropped = bits - DBL_MANT_DIG;
	if (dropped - shift < DBL_MIN_EXP - DBL_MANT_DIG)
		dropped = DBL_MIN_EXP - DBL_MANT_DIG + shift;
	if (dropped > bits)
		return mpz_sgn(numerator) < 0 ? -0.0 : 0.0;
	uint128 kept = whole >> dropped, half = (uint128)1 << (dropped - 1), below = whole & (2 * half - 1);
	if (below > half || (below == half && (is_above || (kept & 1) != 0)))
		kept++;
	double size = ldexp((double)kept, (int)(dropped - shift));
	return mpz_sgn(numerator) < 0 ? -size : size;
}

static void
add_double(mpq_t value, double more)
{
	mpq_t exact;

	mpq_init(exact);
	mpq_set_d(exact, more);
	mpq_add(value, value, exact);
	mpq_clear(exact);
}

/* value / 10^digits. */
static void
scale_down(mpq_t value, unsigned long digits)
{
	mpz_ui_pow_ui(mpq_denref(value), 10, digits);
	mpq_canonicalize(value);
}

/* The whole part of a sum. */
static void
whole_init(mpz_t whole, const struct wm_decimal_sum *sum)
{
	mpz_t low;

	mpz_init(low);
	mpz_init(whole);
	set_whole(whole, magnitude(sum->carry));
	mpz_mul_2exp(whole, whole, 128);
	if (sum->carry < 0)
		mpz_neg(whole, whole);
	set_whole(low, magnitude(sum->whole));
	if (sum->whole < 0)
		mpz_sub(whole, whole, low);
	else
		mpz_add(whole, whole, low);
	mpz_clear(low);
}

/* All of a sum that has a value. */
static void
sum_init(mpq_t value, const struct wm_decimal_sum *sum)
{
	mpz_t whole;

	mpq_init(value);
	whole_init(whole, sum);
	set_whole(mpq_numref(value), (uint128)sum->fraction);
	mpz_ui_pow_ui(mpq_denref(value), 10, WM_FRACTION_DIGITS_MAX);
	mpz_addmul(mpq_numref(value), whole, mpq_denref(value));
	mpz_clear(whole);
	mpq_canonicalize(value);
	add_double(value, sum->rest);
	add_double(value, sum->rest_error);
}

/* All numbers of two digits. */
static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				  "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				  "8081828384858687888990919293949596979899";

static inline void
put_pair(char *at, uint64_t value)
{
	memcpy(at, digit_pairs + 2 * value, 2);
}

/* Writes the digits of value so that they end before end; returns where they begin. */
static inline char *
digits_before_short(char *end, uint64_t value)
{
	for (; value >= 100; value /= 100)
		put_pair(end -= 2, value % 100);
	if (value >= 10)
		put_pair(end -= 2, value);
	else
		*--end = (char)('0' + value);
	return end;
}

static char *
digits_before(char *end, uint128 value)
{
	for (; value > UINT64_MAX; value /= 10)
		*--end = (char)('0' + (unsigned)(value % 10));
	return digits_before_short(end, (uint64_t)value);
}

/* Writes the digits of value from at on; returns where they end. */
static inline char *
put_short_whole(char *at, uint64_t value)
{
	if (value < 10) {
		*at = (char)('0' + value);
		return at + 1;
	}
	/* log10(2) is 1233 / 4096, near enough for 64 bits: the count of digits or one less. */
	size_t count = (size_t)(64 - __builtin_clzll(value)) * 1233 >> 12;
	count += value >= power_of_ten[count];
	digits_before_short(at + count, value);
	return at + count;
}

/* ".25" for 250000 millionths; 0 < millionths < 10^6. */
static inline char *
put_millionths(char *at, uint32_t millionths)
{
	uint32_t high = millionths / 10000, middle = millionths / 100 % 100, low = millionths % 100;
	size_t len = low != 0 ? 7 : middle != 0 ? 5 : 3;

	at[0] = '.';
	put_pair(at + 1, high);
	put_pair(at + 3, middle);
	put_pair(at + 5, low);
	return at + len - (at[len - 1] == '0');
}

/* Room for what the two above write. */
#define SHORT_BYTES_MAX 32
#define MILLION UINT64_C(1000000)

/* 10^-18 in a millionth. */
#define MILLIONTH (WM_FRACTION_ONE / (int64_t)MILLION)

void
wm_integer_print(uint64_t value, struct wm_buf *out)
{
	char *at = wm_buf_room(out, SHORT_BYTES_MAX);

	out->len += (size_t)(put_short_whole(at, value) - at);
}

static void
print_whole(uint128 value, struct wm_buf *out)
{
	char text[UINT128_DIGITS_MAX], *end = text + sizeof(text);
	char *start = digits_before(end, value);

	wm_buf_add(out, start, (size_t)(end - start));
}

/* ".25" for a quarter; 0 < fraction < 10^18. */
static void
print_fraction(int64_t fraction, struct wm_buf *out)
{
	char text[WM_FRACTION_DIGITS_MAX + 2];
	size_t len = WM_FRACTION_DIGITS_MAX + 1;

	digits_before(text + len, (uint128)(fraction + WM_FRACTION_ONE)); /* the 1 in front keeps the zeros */
	text[0] = '.';
	while (text[len - 1] == '0')
		len--;
	wm_buf_add(out, text, len);
}

static bool
has_rest(const struct wm_decimal_sum *sum)
{
	return sum->rest + sum->rest_error != 0;
}

static void
print_long_whole(const struct wm_decimal_sum *sum, bool is_negative, struct wm_buf *out)
{
	mpz_t whole;

	whole_init(whole, sum);
	if (is_negative && sum->fraction != 0)
		mpz_add_ui(whole, whole, 1);
	mpz_abs(whole, whole);
	char *text = wm_malloc(mpz_sizeinbase(whole, 10) + 2);
	mpz_get_str(text, 10, whole);
	wm_buf_add_text(out, text);
	free(text);
	mpz_clear(whole);
}

/* Whether it is an exact sum, not below 0, of 64 bits before the point and up to 6 digits behind it: as most are. */
static inline bool
is_short(const struct wm_decimal_sum *sum)
{
	return !has_rest(sum) && sum->carry == 0 && (uint64_t)(sum->whole >> 64) == 0 && sum->fraction % MILLIONTH == 0;
}

static void
print_short(uint64_t whole, uint32_t millionths, struct wm_buf *out)
{
	char *start = wm_buf_room(out, SHORT_BYTES_MAX), *at = put_short_whole(start, whole);

	if (millionths != 0)
		at = put_millionths(at, millionths);
	out->len += (size_t)(at - start);
}

void
wm_decimal_sum_print(const struct wm_decimal_sum *sum, struct wm_buf *out)
{
	if (is_short(sum)) {
		print_short((uint64_t)sum->whole, (uint32_t)(sum->fraction / MILLIONTH), out);
		return;
	}
	if (has_rest(sum)) {
		wm_double_print(wm_decimal_sum_mean(sum, 1), out);
		return;
	}
	/* whole is rounded down, so a negative sum is -(-whole - 1 + (1 - fraction)). */
	bool is_negative = sum->carry != 0 ? sum->carry < 0 : sum->whole < 0;
	int64_t fraction = is_negative && sum->fraction != 0 ? WM_FRACTION_ONE - sum->fraction : sum->fraction;

	if (is_negative)
		wm_buf_add_byte(out, '-');
	if (sum->carry != 0)
		print_long_whole(sum, is_negative, out);
	else
		print_whole(magnitude(sum->whole) - (is_negative && sum->fraction != 0), out);
	if (fraction != 0)
		print_fraction(fraction, out);
}

#define SMALL_WHOLE_MAX (UINT64_C(1) << 33)

/*
 * Sum / count by one division of doubles, which is correctly rounded when both
 * operands are exact: small sums of few digits after the point. False for others.
 */
static bool
mean_of_small(const struct wm_decimal_sum *sum, uint64_t count, double *mean)
{
	if (sum->carry != 0 || magnitude(sum->whole) > (uint128)DOUBLE_WHOLE_MAX || count > (uint64_t)DOUBLE_WHOLE_MAX)
		return false;
	/* In millionths below 2^53, as most are: the loop's numbers times a power of ten, and so the same quotient. */
	if (magnitude(sum->whole) < SMALL_WHOLE_MAX && count < SMALL_WHOLE_MAX && sum->fraction % MILLIONTH == 0) {
		*mean = (double)((int64_t)sum->whole * (int64_t)MILLION + sum->fraction / MILLIONTH) /
			(double)(int64_t)(count * MILLION);
		return true;
	}
	for (unsigned digits = 0; digits <= 6; digits += 2) {
		uint64_t scale = power_of_ten[digits], unit = power_of_ten[WM_FRACTION_DIGITS_MAX - digits];

		if ((uint64_t)sum->fraction % unit != 0)
			continue;
		wm_int128 dividend = sum->whole * (wm_int128)scale + (wm_int128)((uint64_t)sum->fraction / unit);
		uint128 divisor = (uint128)count * scale;
		if (magnitude(dividend) > (uint128)DOUBLE_WHOLE_MAX || divisor > (uint128)DOUBLE_WHOLE_MAX)
			return false;
		*mean = (double)dividend / (double)divisor;
		return true;
	}
	return false;
}

double
wm_decimal_sum_mean(const struct wm_decimal_sum *sum, uint64_t count)
{
	double mean;
	mpz_t factor;
	mpq_t value;

	assert(count > 0);
	if (!isfinite(sum->rest))
		return sum->rest;
	if (!has_rest(sum) && mean_of_small(sum, count, &mean))
		return mean;
	sum_init(value, sum);
	mpz_init(factor);
	set_whole(factor, count);
	mpz_mul(mpq_denref(value), mpq_denref(value), factor);
	mean = round_ratio(mpq_numref(value), mpq_denref(value));
	mpz_clear(factor);
	mpq_clear(value);
	return mean;
}

/* A mean of up to 15 digits that is exact is the text of its nearest double: no other text of so few reads back as that one. */
void
wm_decimal_mean_print(const struct wm_decimal_sum *sum, uint64_t count, struct wm_buf *out)
{
	assert(count > 0);
	if (is_short(sum) && (uint64_t)sum->whole < power_of_ten[9]) {
		uint64_t millionths = (uint64_t)sum->whole * MILLION + (uint64_t)(sum->fraction / MILLIONTH);

		if (millionths % count == 0) {
			millionths /= count;
			print_short(millionths / MILLION, (uint32_t)(millionths % MILLION), out);
			return;
		}
	}
	wm_double_print(wm_decimal_sum_mean(sum, count), out);
}

void
wm_decimal_sum_encode(const struct wm_decimal_sum *sum, struct wm_buf *out)
{
	wm_put_u64(out, (uint64_t)(uint128)sum->whole);
	wm_put_u64(out, (uint64_t)((uint128)sum->whole >> 64));
	wm_put_i64(out, sum->fraction);
	wm_put_i64(out, sum->carry);
	rest_encode(sum->rest, sum->rest_error, out);
}

bool
wm_decimal_sum_decode(struct wm_decimal_sum *sum, struct wm_get *in)
{
	uint64_t low = wm_get_u64(in), high = wm_get_u64(in);

	sum->whole = (wm_int128)((uint128)high << 64 | low);
	sum->fraction = wm_get_i64(in);
	sum->carry = wm_get_i64(in);
	rest_decode(&sum->rest, &sum->rest_error, in);
	if (sum->fraction < 0 || sum->fraction >= WM_FRACTION_ONE)
		wm_get_fail(in);
	return !in->failed;
}

/* Adds value * 2^(64 * limb). */
static void
limbs_add(uint64_t limbs[6], size_t limb, uint128 value)
{
	for (; value != 0 && limb < 6; limb++) {
		value += limbs[limb];
		limbs[limb] = (uint64_t)value;
		value >>= 64;
	}
}

void
wm_square_sum_add(struct wm_square_sum *sum, const struct wm_decimal *number)
{
	if (!number->is_exact || magnitude(number->whole) >= power_of_ten[19]) {
		double value =
			number->is_exact ? (double)number->whole + (double)number->fraction / 1e18 : number->nearest;
		double square = value * value;

		rest_add(&sum->rest, &sum->rest_error, square);
		if (isfinite(sum->rest))
			rest_add(&sum->rest, &sum->rest_error, fma(value, value, -square));
		return;
	}
	uint128 size = magnitude(number->whole) * (uint128)WM_FRACTION_ONE + magnitude(number->fraction);
	uint64_t low = (uint64_t)size, high = (uint64_t)(size >> 64);
	uint128 middle = (uint128)low * high;

	limbs_add(sum->limbs, 0, (uint128)low * low);
	limbs_add(sum->limbs, 1, middle);
	limbs_add(sum->limbs, 1, middle);
	limbs_add(sum->limbs, 2, (uint128)high * high);
}

void
wm_square_sum_merge(struct wm_square_sum *into, const struct wm_square_sum *from)
{
	for (size_t i = 0; i < 6; i++)
		limbs_add(into->limbs, i, from->limbs[i]);
	rest_merge(&into->rest, &into->rest_error, from->rest, from->rest_error);
}

double
wm_square_sum_variance(const struct wm_square_sum *squares, const struct wm_decimal_sum *sum, uint64_t count)
{
	mpz_t factor;
	mpq_t value, mean_part;

	assert(count > 1);
	if (!isfinite(squares->rest) || !isfinite(sum->rest))
		return INFINITY;
	mpq_init(value);
	mpz_import(mpq_numref(value), 6, -1, sizeof(squares->limbs[0]), 0, 0, squares->limbs);
	scale_down(value, 2 * WM_FRACTION_DIGITS_MAX);
	add_double(value, squares->rest);
	add_double(value, squares->rest_error);
	sum_init(mean_part, sum);
	mpq_mul(mean_part, mean_part, mean_part);
	mpz_init(factor);
	set_whole(factor, count);
	mpz_mul(mpq_denref(mean_part), mpq_denref(mean_part), factor);
	mpq_canonicalize(mean_part);
	mpq_sub(value, value, mean_part);
	set_whole(factor, count - 1);
	mpz_mul(mpq_denref(value), mpq_denref(value), factor);
	double variance = mpq_sgn(value) <= 0 ? 0 : round_ratio(mpq_numref(value), mpq_denref(value));
	mpz_clear(factor);
	mpq_clears(value, mean_part, NULL);
	return variance;
}

void
wm_square_sum_encode(const struct wm_square_sum *sum, struct wm_buf *out)
{
	for (size_t i = 0; i < 6; i++)
		wm_put_u64(out, sum->limbs[i]);
	rest_encode(sum->rest, sum->rest_error, out);
}

bool
wm_square_sum_decode(struct wm_square_sum *sum, struct wm_get *in)
{
	for (size_t i = 0; i < 6; i++)
		sum->limbs[i] = wm_get_u64(in);
	rest_decode(&sum->rest, &sum->rest_error, in);
	return !in->failed;
}

double
wm_ratio(uint64_t numerator, uint64_t denominator)
{
	mpz_t dividend, divisor;

	assert(denominator > 0);
	if (numerator <= (uint64_t)DOUBLE_WHOLE_MAX && denominator <= (uint64_t)DOUBLE_WHOLE_MAX)
		return (double)numerator / (double)denominator;
	mpz_inits(dividend, divisor, NULL);
	set_whole(dividend, numerator);
	set_whole(divisor, denominator);
	double ratio = round_ratio(dividend, divisor);
	mpz_clears(dividend, divisor, NULL);
	return ratio;
}

/* A positive double as DIGITS * 10^exponent. */
struct shortest {
	char digits[DBL_DECIMAL_DIG + 16];
	size_t count;
	int exponent;
};

static void
drop_trailing_zeros(struct shortest *shortest)
{
	while (shortest->count > 1 && shortest->digits[shortest->count - 1] == '0') {
		shortest->count--;
		shortest->exponent++;
	}
}

/* One more in the last place. */
static void
step_up(struct shortest *shortest)
{
	size_t at = shortest->count;

	while (at > 0 && shortest->digits[at - 1] == '9')
		shortest->digits[--at] = '0';
	if (at > 0) {
		shortest->digits[at - 1]++;
	} else { /* 999 becomes 1000, of which three digits tell all */
		shortest->digits[0] = '1';
		shortest->exponent++;
	}
}

/*
 * Any double, by way of the C library, which rounds correctly. 15 digits are
 * the fewest to try, as the shorter texts are among them; not so where doubles
 * have less than 53 bits. At a power of two the doubles below are twice as
 * close as those above, so that the next text above may do where the nearest
 * one does not.
 */
static void
shortest_of_any(double value, struct shortest *shortest)
{
	int exponent;
	bool is_power_of_two = frexp(value, &exponent) == 0.5;

	for (int precision = value < DBL_MIN ? 1 : DBL_DIG;; precision++) {
		char text[DBL_DECIMAL_DIG + 32];

		/* Digits alone are taken from it: the point in it is the locale's. */
		snprintf(text, sizeof(text), "%.*e", precision - 1, value);
		char *mark = strchr(text, 'e');
		shortest->count = 0;
		for (const char *at = text; at < mark; at++)
			if (wm_is_digit(*at))
				shortest->digits[shortest->count++] = *at;
		exponent = 0;
		for (const char *at = mark + 2; wm_is_digit(*at); at++)
			exponent = exponent * 10 + (*at - '0');
		shortest->exponent = (mark[1] == '-' ? -exponent : exponent) - (precision - 1);
		if (precision == DBL_DECIMAL_DIG ||
			read_double(shortest->digits, shortest->count, shortest->exponent) == value)
			break;
		if (is_power_of_two) {
			step_up(shortest);
			if (read_double(shortest->digits, shortest->count, shortest->exponent) == value)
				break;
		}
	}
	drop_trailing_zeros(shortest);
}

/*
 * The same for doubles from 0.001 to 2^52 that are no integers, which is what
 * averages are, in 128-bit integers and many times as fast. value is
 * mantissa / 2^shift; a text is decimal / 10^places, and reads back as value if
 * the two are less than half the distance of doubles apart, which is
 * 1 / 2^shift (17 digits are too few to stand half way between two of them).
 * The powers of two, 0.5 to 1 / 2^9, are exact in 15 digits.
 */
static void
shortest_of_middle(double value, struct shortest *shortest)
{
	uint64_t bits;
	int point = 0; /* value is 0.DIGITS * 10^point */

	memcpy(&bits, &value, sizeof(bits));
	uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
	int shift = 1075 - (int)(bits >> 52);
	if (value >= 1) {
		for (uint64_t whole = (uint64_t)value; point < 16 && whole >= power_of_ten[point];)
			point++;
	} else {
		point = value >= 0.1 ? 0 : value >= 0.01 ? -1 : -2;
	}
	uint64_t decimal;
	int places = point > DBL_DIG ? 0 : DBL_DIG - point;
	for (;; places++) { /* to 17 digits at most, which always do */
		uint128 one = power_of_ten[places], exact = mantissa * one;
		uint128 half = (uint128)1 << (shift - 1), below = exact & (2 * half - 1);

		decimal = (uint64_t)(exact >> shift);
		bool is_up = below > half || (below == half && (decimal & 1) != 0);
		uint128 distance = is_up ? 2 * half - below : below;
		decimal += is_up;
		if (2 * distance < one)
			break;
	}
	shortest->count = (size_t)(put_short_whole(shortest->digits, decimal) - shortest->digits);
	shortest->exponent = -places;
	drop_trailing_zeros(shortest);
}

/* A number from here on is printed with an exponent: sums are not exact beyond. */
#define EXPONENT_FROM 1e38

static void
print_positional(const struct shortest *shortest, struct wm_buf *out)
{
	static const char zeros[] = "00000000000000000000000000000000000000";
	int point = (int)shortest->count + shortest->exponent;

	if (point <= 0) {
		wm_buf_add_text(out, "0.");
		wm_buf_add(out, zeros, (size_t)-point);
		wm_buf_add(out, shortest->digits, shortest->count);
	} else if (shortest->exponent >= 0) {
		wm_buf_add(out, shortest->digits, shortest->count);
		wm_buf_add(out, zeros, (size_t)shortest->exponent);
	} else {
		wm_buf_add(out, shortest->digits, (size_t)point);
		wm_buf_add_byte(out, '.');
		wm_buf_add(out, shortest->digits + point, shortest->count - (size_t)point);
	}
}

static void
print_scientific(const struct shortest *shortest, struct wm_buf *out)
{
	wm_buf_add(out, shortest->digits, 1);
	if (shortest->count > 1) {
		wm_buf_add_byte(out, '.');
		wm_buf_add(out, shortest->digits + 1, shortest->count - 1);
	}
	wm_buf_addf(out, "e%+d", (int)shortest->count - 1 + shortest->exponent);
}

void
wm_double_print(double value, struct wm_buf *out)
{
	struct shortest shortest;

	if (!isfinite(value))
		return;
	if (value < 0)
		wm_buf_add_byte(out, '-');
	value = fabs(value);
	if (value < 1e21 && value == trunc(value)) {
		print_whole((uint128)value, out);
		return;
	}
	if (value >= 0.001 && value < 1e21)
		shortest_of_middle(value, &shortest);
	else
		shortest_of_any(value, &shortest);
	if (value >= 1e-6 && value < EXPONENT_FROM)
		print_positional(&shortest, out);
	else
		print_scientific(&shortest, out);
}

void
wm_number_format(struct wm_span text, const char *format, struct wm_buf *out)
{
	char *copy = wm_memdup(text.data, text.len);
	double value = strtod(copy, NULL);
	int len = snprintf(NULL, 0, format, value);

	free(copy);
	assert(len >= 0);
	bool fits = wm_buf_reserve(out, (size_t)len + 1);
	assert(fits);
	(void)fits;
	snprintf(out->data + out->len, (size_t)len + 1, format, value);
	out->len += (size_t)len;
}
