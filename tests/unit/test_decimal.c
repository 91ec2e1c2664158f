/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/decimal.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include <gmp.h>

#include "tests/unit/decimal_model.h"
#include "tests/unit/tap.h"

static struct wm_decimal
number_of(const char *text)
{
	struct wm_decimal number;

	if (!wm_decimal_parse(wm_span_of(text), &number))
		tap_ok(false, "'%s' is a number", text);
	return number;
}

static struct wm_decimal_sum
sum_of(const char *const *texts, size_t count)
{
	struct wm_decimal_sum sum = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct wm_decimal number = number_of(texts[i]);

		wm_decimal_sum_add(&sum, &number);
	}
	return sum;
}

static const char *
sum_text(const struct wm_decimal_sum *sum)
{
	static char text[512];
	struct wm_buf buf;

	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	wm_decimal_sum_print(sum, &buf);
	snprintf(text, sizeof(text), "%.*s", (int)buf.len, buf.data == NULL ? "" : buf.data);
	wm_buf_release(&buf);
	return text;
}

static const char *
double_text(double value)
{
	static char text[64];
	struct wm_buf buf;

	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	wm_double_print(value, &buf);
	snprintf(text, sizeof(text), "%.*s", (int)buf.len, buf.data == NULL ? "" : buf.data);
	wm_buf_release(&buf);
	return text;
}

/* A word of the number grammar, now and then broken. */
static void
random_text(uint64_t *seed, char *text, size_t digits_max, int exponent_max)
{
	size_t len = 0, digits = tap_random(seed) % (digits_max + 1);
	size_t point = tap_random(seed) % (2 * digits_max);
	bool sparse = tap_random(seed) % 4 == 0;

	if (tap_random(seed) % 3 == 0)
		text[len++] = '-';
	for (size_t i = 0; i < digits; i++) {
		if (i == point)
			text[len++] = '.';
		text[len++] = (char)('0' + (sparse && tap_random(seed) % 8 != 0 ? 0 : tap_random(seed) % 10));
	}
	if (point == digits)
		text[len++] = '.';
	if (exponent_max > 0 && tap_random(seed) % 3 == 0)
		len += (size_t)sprintf(text + len, "%c%s%d", tap_random(seed) % 2 ? 'e' : 'E',
			(const char *[]){ "", "-", "+" }[tap_random(seed) % 3],
			(int)(tap_random(seed) % (unsigned)exponent_max));
	if (len > 0 && tap_random(seed) % 16 == 0)
		text[tap_random(seed) % len] = "+-. 0x,_/:\xff"[tap_random(seed) % 11];
	text[len] = '\0';
}

static void
test_grammar(void)
{
	static const struct {
		const char *text, *value; /* value: NULL if it is no number */
	} cases[] = {
		{ "17", "17" },
		{ "1834.2", "1834.2" },
		{ "123.45", "123.45" },
		{ "-123.45", "-123.45" },
		{ "0000007", "7" },
		{ "08", "8" },
		{ "0000010", "10" },
		{ ".5", "0.5" },
		{ "-.5", "-0.5" },
		{ "5.", "5" },
		{ "5.e1", "50" },
		{ "1e3", "1000" },
		{ "1E+3", "1000" },
		{ "1.5e-3", "0.0015" },
		{ "-0", "0" },
		{ "-0.0", "0" },
		{ "0e999999999999999999999", "0" },
		{ "0.000", "0" },
		{ "12345678", "12345678" },
		{ "123456789", "123456789" },
		{ "1234567.8", "1234567.8" },
		{ "123456.78", "123456.78" },
		{ "1577836800.5", "1577836800.5" },
		{ "0.000000000000000001", "0.000000000000000001" },
		{ "1000000000000000000000000000000e-48", "0.000000000000000001" },
		{ "0.0000000000000000010", "0.000000000000000001" },
		{ "99999999999999999999999999999999999999.999999999999999999",
			"99999999999999999999999999999999999999.999999999999999999" },
		{ "1e37", "10000000000000000000000000000000000000" },
		{ "9223372036854775808", "9223372036854775808" },
		{ "", NULL },
		{ "-", NULL },
		{ ".", NULL },
		{ "-.", NULL },
		{ "e5", NULL },
		{ ".e5", NULL },
		{ "1e", NULL },
		{ "1e+", NULL },
		{ "1e5.5", NULL },
		{ "+1", NULL },
		{ "--1", NULL },
		{ "1-", NULL },
		{ " 1", NULL },
		{ "1 ", NULL },
		{ "1.2.3", NULL },
		{ "1..2", NULL },
		{ "..........", NULL },
		{ "1,5", NULL },
		{ "1_000", NULL },
		{ "0x10", NULL },
		{ "NaN", NULL },
		{ "nan(7)", NULL },
		{ "inf", NULL },
		{ "-inf", NULL },
		{ "Infinity", NULL },
		{ "abc", NULL },
		{ "1e999", NULL },
		{ "-1e309", NULL },
		{ "1.8e308", NULL },
		{ "1e999999999999999999999999", NULL },
		{ "123456789x", NULL },
		{ "1\xff", NULL },
	};
	struct wm_decimal number;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is_number = wm_decimal_parse(wm_span_of(cases[i].text), &number);

		if (cases[i].value == NULL) {
			tap_ok(!is_number, "'%s' is no number", cases[i].text);
		} else if (tap_ok(is_number && number.is_exact, "'%s' is exact", cases[i].text)) {
			struct wm_decimal_sum sum = { 0 };

			wm_decimal_sum_add(&sum, &number);
			tap_text(sum_text(&sum), cases[i].value, "and its value");
		}
	}
	tap_ok(!wm_decimal_parse(wm_span("1\0", 2), &number), "NUL is no digit");
}

static void
test_limits(void)
{
	struct wm_decimal number = number_of("1e38");

	tap_ok(!number.is_exact && number.nearest == 1e38, "39 digits before the point do not fit");
	number = number_of("1e-19");
	tap_ok(!number.is_exact && number.nearest == 1e-19, "19 digits after the point do not fit");
	number = number_of("0.1234567890123456789");
	tap_ok(!number.is_exact && number.nearest == 0.1234567890123456789, "nor with others before them");
	number = number_of("-1.7976931348623157e308");
	tap_ok(!number.is_exact && number.nearest == -DBL_MAX, "the greatest double is a number");
	number = number_of("1.7976931348623158e308");
	tap_ok(number.nearest == DBL_MAX, "and what rounds to it");
	number = number_of("5e-324");
	tap_ok(!number.is_exact && number.nearest == 5e-324, "the least double");
	number = number_of("1e-999999999");
	tap_ok(!number.is_exact && number.nearest == 0, "less than it is 0 as a double");
	number = number_of("1e-99999999999999999999999");
	tap_ok(!number.is_exact && number.nearest == 0, "also with an exponent of 23 digits");
	number = number_of("123456789012345678");
	tap_ok(number.whole == 123456789012345678 && number.fraction == 0, "18 digits");
	number = number_of("-1234567890123456789.1234567890123456780");
	tap_ok(number.whole == -1234567890123456789 && number.fraction == -123456789012345678,
		"both parts have the sign of the number");

	/* 2^-1075, half of the least double, has 751 digits; one more digit behind decides. */
	char text[1200];
	mpz_t power;
	mpz_init(power);
	mpz_ui_pow_ui(power, 5, 1075);
	mpz_get_str(text, 10, power);
	mpz_clear(power);
	size_t len = strlen(text);
	memcpy(text + len, "e-1075", 7);
	tap_ok(number_of(text).nearest == 0, "a tie of %zu digits goes to the even double", len);
	memset(text + len, '0', 300);
	memcpy(text + len + 300, "1e-1376", 8);
	tap_ok(number_of(text).nearest == 5e-324, "digit %zu breaks it", len + 301);
}

static void
test_parse_random(void)
{
	uint64_t seed = 1;
	const char *wrong = NULL;
	char text[256];
	mpq_t want, got;
	long numbers = 0, doubles = 0;

	mpq_inits(want, got, NULL);
	for (int i = 0; i < 60000 && wrong == NULL; i++) {
		struct wm_decimal number;

		random_text(&seed, text, i % 2 ? 12 : 50, i % 3 ? 30 : 0);
		bool is_number = wm_decimal_parse(wm_span_of(text), &number);
		if (is_number != model_parse(text, want)) {
			wrong = "whether it is a number";
		} else if (is_number) {
			numbers++;
			doubles += !number.is_exact;
			/* It fits if the 18th decimal is the last one and there are no more than 38 digits before the point. */
			mpz_t unit, rest;
			mpz_inits(unit, rest, NULL);
			mpz_ui_pow_ui(unit, 10, 18);
			mpz_mul(rest, unit, mpq_numref(want));
			bool fits = mpz_divisible_p(rest, mpq_denref(want)) != 0;
			mpz_ui_pow_ui(unit, 10, 38);
			mpz_tdiv_q(rest, mpq_numref(want), mpq_denref(want));
			fits = fits && mpz_cmpabs(rest, unit) < 0;
			mpz_clears(unit, rest, NULL);
			if (fits != number.is_exact)
				wrong = "whether it fits";
			else if (!fits && !is_nearest(want, number.nearest))
				wrong = "the nearest double";
			if (fits) {
				exact_value(got, &number);
				if (!mpq_equal(got, want))
					wrong = "the exact value";
				if ((number.whole < 0 && number.fraction > 0) ||
					(number.whole > 0 && number.fraction < 0))
					wrong = "the sign of the parts";
			}
		}
	}
	mpq_clears(want, got, NULL);
	if (!tap_ok(wrong == NULL && numbers > 10000 && doubles > 5000, "random texts agree with fractions"))
		printf("#   %s of '%s' (%ld numbers, %ld doubles)\n", wrong == NULL ? "too few" : wrong, text, numbers,
			doubles);
}

static int
order_of(const char *a, const char *b)
{
	struct wm_decimal a_number = number_of(a), b_number = number_of(b);
	int order = wm_decimal_compare(&a_number, wm_span_of(a), &b_number, wm_span_of(b));

	return (order > 0) - (order < 0);
}

static void
test_compare(void)
{
	/* Each is less than the next. */
	static const char *const rising[] = { "-1e300", "-1e38", "-99999999999999999999999999999999999999", "-2",
		"-1.5", "-1.0000000000000000001", "-1", "-1e-19", "-1e-20", "-1e-999999999",
		"-1e-100000000000000000000", "0", "1e-100000000000000000001", "1e-100000000000000000000",
		"2e-100000000000000000000", "1e-99999999999999999999", "1e-99999999999999999", "1e-999999999", "5e-324",
		"1e-20", "0.1000000000000000000", "0.10000000000000000001", "0.1000000000000000000100000000001", "0.2",
		"12345678901234567890123456789012345678", "123456789012345678901234567890123456789",
		"123456789012345678901234567890123456790", "1e40", "1e300" };
	static const char *const equal[][2] = { { "1e40", "10000000000000000000000000000000000000000" },
		{ "0.10000000000000000000000", ".1" }, { "0.00000000000000000000123", "12.3e-22" }, { "-0", "0e5" },
		{ "1e-100000000000000000000", "0.01e-99999999999999999998" },
		{ "0.001e-99999999999999999", "1e-100000000000000002" } };
	size_t count = sizeof(rising) / sizeof(rising[0]);
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			if (order_of(rising[i], rising[j]) == (i > j) - (i < j))
				continue;
			if (wrong++ == 0)
				printf("#   %s and %s\n", rising[i], rising[j]);
		}
	}
	tap_int((int64_t)wrong, 0, "a rising list compares so in all pairs");
	for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++)
		tap_ok(order_of(equal[i][0], equal[i][1]) == 0, "%s equals %s", equal[i][0], equal[i][1]);

	uint64_t seed = 2;
	char a[256], b[256] = "0";
	mpq_t a_value, b_value;
	bool ok = true;
	mpq_inits(a_value, b_value, NULL);
	model_parse(b, b_value);
	for (int i = 0; i < 20000 && ok; i++) {
		random_text(&seed, a, i % 2 ? 4 : 45, 25);
		if (!model_parse(a, a_value))
			continue;
		int want = mpq_cmp(a_value, b_value);
		ok = order_of(a, b) == (want > 0) - (want < 0) && order_of(b, a) == (want < 0) - (want > 0);
		if (!ok)
			printf("#   %s and %s\n", a, b);
		mpq_swap(a_value, b_value);
		memcpy(b, a, sizeof(a));
	}
	mpq_clears(a_value, b_value, NULL);
	tap_ok(ok, "random pairs compare as fractions do");
}

#define SUM(...)                                                                                                       \
	sum_of((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void
check_sum(struct wm_decimal_sum sum, const char *want, const char *name)
{
	tap_text(sum_text(&sum), want, name);
}

static void
test_sums(void)
{
	check_sum(SUM("0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1"), "1", "ten times 0.1");
	check_sum(SUM("10.01", "20"), "30.01", "10.01 + 20");
	check_sum(SUM("1.01", "2.02", "3.03"), "6.06", "prices");
	check_sum(SUM("0.1", "0.2"), "0.3", "0.1 + 0.2");
	check_sum(SUM("122255000", "426"), "122255426", "no exponent");
	check_sum(SUM("1e300", "5e-324"), "1e+300", "the tiny term vanishes");
	check_sum(SUM("9223372036854775807", "1"), "9223372036854775808", "beyond 63 bits");
	check_sum(SUM("9000000000000000000", "9000000000000000000"), "18000000000000000000", "beyond 64 bits");
	check_sum(SUM("-9223372036854775808", "-1"), "-9223372036854775809", "beyond -2^63");
	check_sum(SUM("0000007", "0000008", "0000009", "0000010", "08", "8"), "50", "leading zeros are decimal");
	check_sum(SUM("1e16", "1", "-1e16"), "1", "1e16, 1, -1e16");
	check_sum(SUM("1e100", "1", "-1e100", "1"), "2", "1e100, 1, -1e100, 1");
	check_sum(SUM("1", "-1e100", "1e100", "1"), "2", "in another order");
	check_sum(SUM("-0.5"), "-0.5", "-0.5");
	check_sum(SUM("-0.5", "0.25"), "-0.25", "-0.25");
	check_sum(SUM("-1.000000000000000001"), "-1.000000000000000001", "18 digits");
	check_sum(SUM("0.5", "-1.5", "1"), "0", "0 has no sign");
	check_sum(SUM("0.1", "1e-19"), "0.1", "with a rest the double nearest to both");
	check_sum(SUM("12345678901234567890", "1e-30"), "12345678901234567168", "which may be a large integer");
	check_sum(SUM("1e308", "1e308"), "", "no value beyond the range of doubles");
	check_sum(SUM("1e308", "1e308", "-1e308", "1"), "", "and none comes back");
	check_sum((struct wm_decimal_sum){ 0 }, "0", "the empty sum");

	/* 4 * (10^38 - 1) leaves 128 bits; so do the sums on the way. */
	static const char greatest[] = "99999999999999999999999999999999999999.999999999999999999";
	static const char least[] = "-99999999999999999999999999999999999999.999999999999999999";
	check_sum(SUM(greatest, greatest, greatest, greatest),
		"399999999999999999999999999999999999999.999999999999999996", "beyond 128 bits");
	check_sum(SUM(least, least, least, least), "-399999999999999999999999999999999999999.999999999999999996",
		"beyond -2^127");
	check_sum(SUM(least, least, least, least, "0.999999999999999996"), "-399999999999999999999999999999999999999",
		"a carry with a whole sum");
	check_sum(SUM(greatest, greatest, greatest, least, least, least), "0", "and back");
	struct wm_decimal_sum sum = SUM(greatest), other = SUM(greatest);
	wm_decimal_sum_merge(&sum, &other);
	check_sum(sum, "199999999999999999999999999999999999999.999999999999999998", "merged beyond 2^127");
	other = sum;
	wm_decimal_sum_merge(&sum, &other);
	check_sum(sum, "399999999999999999999999999999999999999.999999999999999996", "a merged carry");
	sum = SUM(least);
	other = SUM(least);
	wm_decimal_sum_merge(&sum, &other);
	check_sum(sum, "-199999999999999999999999999999999999999.999999999999999998", "merged beyond -2^127");

	/* The small one is lost in rest and kept in rest_error, whichever comes first. */
	check_sum(SUM("1e-25", "1e100", "-1e100"), "1e-25", "a rest that is compensated");
	check_sum(SUM("1e100", "1e-25", "-1e100"), "1e-25", "in another order");
	sum = SUM("1e100", "1e-25");
	other = SUM("-1e100");
	wm_decimal_sum_merge(&other, &sum);
	check_sum(other, "1e-25", "merged");
}

/* Sums in random splits and orders: the same bytes, and the value of the fractions. */
static void
test_sum_random(void)
{
	enum { NUMBERS = 40 };
	uint64_t seed = 3;
	bool ok = true;
	mpq_t want, value;

	mpq_inits(want, value, NULL);
	for (int round = 0; round < 1500 && ok; round++) {
		char texts[NUMBERS][256];
		struct wm_decimal numbers[NUMBERS];
		struct wm_decimal_sum sum = { 0 }, parts[5] = { { 0 } };
		struct wm_square_sum squares = { 0 }, square_parts[5] = { { { 0 }, 0, 0 } };
		size_t count = 0;

		mpq_set_ui(want, 0, 1);
		while (count < NUMBERS) {
			random_text(&seed, texts[count], round % 2 ? 8 : 36, 0);
			if (!wm_decimal_parse(wm_span_of(texts[count]), &numbers[count]) || !numbers[count].is_exact)
				continue;
			model_parse(texts[count], value);
			mpq_add(want, want, value);
			wm_decimal_sum_add(&sum, &numbers[count]);
			/* of a size whose square fits */
			if (round % 2)
				wm_square_sum_add(&squares, &numbers[count]);
			count++;
		}
		for (size_t left = count; left > 0; left--) {
			size_t pick = tap_random(&seed) % left, part = tap_random(&seed) % 5;

			wm_decimal_sum_add(&parts[part], &numbers[pick]);
			if (round % 2)
				wm_square_sum_add(&square_parts[part], &numbers[pick]);
			numbers[pick] = numbers[left - 1];
		}
		for (size_t part = 1; part < 5; part++) {
			wm_decimal_sum_merge(&parts[0], &parts[part]);
			wm_square_sum_merge(&square_parts[0], &square_parts[part]);
		}
		model_parse(sum_text(&sum), value);
		ok = mpq_equal(value, want) && memcmp(&sum, &parts[0], sizeof(sum)) == 0 &&
			memcmp(&squares, &square_parts[0], sizeof(squares)) == 0;
		if (!ok)
			printf("#   round %d: %s\n", round, sum_text(&sum));
		mpz_mul_ui(mpq_denref(want), mpq_denref(want), NUMBERS);
		mpq_canonicalize(want);
		if (ok && !is_nearest(want, wm_decimal_sum_mean(&sum, NUMBERS))) {
			ok = false;
			printf("#   round %d: mean %.17g of %s\n", round, wm_decimal_sum_mean(&sum, NUMBERS),
				sum_text(&sum));
		}
	}
	mpq_clears(want, value, NULL);
	tap_ok(ok, "random sums and means: exact in every split and order");
}

static void
test_mean(void)
{
	struct wm_decimal_sum sum = SUM("1", "2", "7");

	tap_text(double_text(wm_decimal_sum_mean(&sum, 3)), "3.3333333333333335", "10 / 3");
	sum = SUM("9223372036854775807", "1");
	tap_text(double_text(wm_decimal_sum_mean(&sum, 2)), "4611686018427387904", "2^63 / 2");
	sum = SUM("9000000000000000000", "9000000000000000000");
	tap_text(double_text(wm_decimal_sum_mean(&sum, 2)), "9000000000000000000", "18e18 / 2");
	sum = SUM("-9223372036854775808", "-1");
	tap_text(double_text(wm_decimal_sum_mean(&sum, 2)), "-4611686018427387904", "a large odd sum / 2");
	sum = SUM("0.1", "0.2");
	tap_text(double_text(wm_decimal_sum_mean(&sum, 2)), "0.15", "0.3 / 2");
	sum = SUM("-0.000001", "0");
	tap_text(double_text(wm_decimal_sum_mean(&sum, 2)), "-5e-7", "-0.0000005");
	sum = SUM("5e-324", "5e-324", "5e-324");
	tap_ok(wm_decimal_sum_mean(&sum, 3) == 5e-324, "a mean of the least doubles");
	tap_ok(wm_decimal_sum_mean(&sum, 2) == 1e-323, "1.5 of the least double ties to even");
	tap_ok(wm_decimal_sum_mean(&sum, 6) == 0, "half of it too");
	tap_ok(wm_decimal_sum_mean(&sum, 5) == 5e-324, "and 0.6 rounds up");
	tap_ok(wm_decimal_sum_mean(&sum, UINT64_MAX) == 0, "much less is 0");
	sum = SUM("1e308", "1e308");
	tap_ok(!isfinite(wm_decimal_sum_mean(&sum, 2)), "no mean of a sum without value");
	sum = SUM("9903520314283043298704621569"); /* (2^53 + 1) * 2^40 + 1: above a tie by less than 2^-90 */
	tap_ok(wm_decimal_sum_mean(&sum, UINT64_C(1) << 40) == 0x1p53 + 2, "a little more than a tie");
	sum = SUM("1e300", "1", "-1e300", "2");
	tap_text(double_text(wm_decimal_sum_mean(&sum, 2)), "1.5", "rest and exact part together");

	uint64_t seed = 10;
	bool ok = true;
	mpq_t want;
	mpq_init(want);
	for (int i = 0; i < 20000 && ok; i++) {
		char text[64];
		uint64_t count = (tap_random(&seed) >> tap_random(&seed) % 64) | 1;

		snprintf(text, sizeof(text), "%s%" PRIu64 ".%0*u", i % 2 ? "-" : "",
			(tap_random(&seed) | 1) >> tap_random(&seed) % 64, 1 + i % 9,
			(unsigned)(tap_random(&seed) % 10));
		sum = SUM(text);
		model_parse(text, want);
		mpz_mul_ui(mpq_denref(want), mpq_denref(want), count);
		mpq_canonicalize(want);
		ok = is_nearest(want, wm_decimal_sum_mean(&sum, count));
		if (!ok)
			printf("#   %s / %" PRIu64 "\n", text, count);
	}
	mpq_clear(want);
	tap_ok(ok, "random means are the nearest doubles");
}

/* A mean's text is that of its double, however it is found. */
static void
test_mean_print(void)
{
	uint64_t seed = 12;
	bool ok = true;
	struct wm_buf got, want;

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 100000 && ok; i++) {
		char text[64];
		int digits = i % 20;
		uint64_t count = 1 + (tap_random(&seed) & ((UINT64_C(1) << tap_random(&seed) % 12) - 1));
		uint64_t below = tap_random(&seed) % 1000000;

		snprintf(text, sizeof(text), "%s%" PRIu64 ".%0*" PRIu64, i % 7 == 0 ? "-" : "",
			tap_random(&seed) >> (20 + tap_random(&seed) % 44), digits < 7 ? digits : i % 3, below);
		struct wm_decimal_sum sum = SUM(text);
		if (i % 11 == 0)
			sum = SUM(text, i % 2 ? "1e200" : "1e-40");
		wm_buf_reset(&got);
		wm_buf_reset(&want);
		wm_decimal_mean_print(&sum, count, &got);
		wm_double_print(wm_decimal_sum_mean(&sum, count), &want);
		ok = wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
		if (!ok)
			printf("#   %s / %" PRIu64 ": '%.*s'\n", text, count, (int)got.len, got.data);
	}
	struct wm_decimal_sum sum = SUM("1e308", "1e308");
	wm_buf_reset(&got);
	wm_decimal_mean_print(&sum, 2, &got);
	tap_ok(ok && got.len == 0, "random means are printed as their doubles");
	wm_buf_release(&got);
	wm_buf_release(&want);
}

static void
check_integer(uint64_t value, bool *ok)
{
	char text[32];
	struct wm_buf buf;

	if (!*ok)
		return;
	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	snprintf(text, sizeof(text), "%" PRIu64, value);
	wm_integer_print(value, &buf);
	*ok = wm_span_is(wm_buf_span(&buf), text);
	if (!*ok)
		printf("#   %s: '%.*s'\n", text, (int)buf.len, buf.data);
	wm_buf_release(&buf);
}

static void
test_integer_print(void)
{
	uint64_t seed = 13, power = 1;
	bool ok = true;

	for (int digits = 1; digits <= 20; digits++, power *= 10) {
		check_integer(power - 1, &ok);
		check_integer(power, &ok);
		check_integer(power + 1, &ok);
	}
	for (int bit = 0; bit < 64; bit++)
		check_integer((UINT64_C(1) << bit) - 1, &ok);
	check_integer(UINT64_MAX, &ok);
	for (int i = 0; i < 20000; i++)
		check_integer(tap_random(&seed) >> tap_random(&seed) % 64, &ok);
	tap_ok(ok, "integers of all lengths are printed as the C library prints them");
}

static double
variance_of(const char *const *texts, size_t count)
{
	struct wm_decimal_sum sum = sum_of(texts, count);
	struct wm_square_sum squares = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct wm_decimal number = number_of(texts[i]);

		wm_square_sum_add(&squares, &number);
	}
	return wm_square_sum_variance(&squares, &sum, count);
}

#define VARIANCE(...)                                                                                                  \
	variance_of((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* The values wanted are from Python's fractions, which divides integers correctly rounded. */
static void
test_variance(void)
{
	tap_ok(VARIANCE("1", "2", "3", "4") == 1.6666666666666667, "1 to 4");
	tap_ok(VARIANCE("0.1", "0.2", "0.4") == 0.023333333333333334, "decimals");
	tap_ok(VARIANCE("1000000000.1", "1000000000.2", "1000000000.3") == 0.01, "close together, far from 0");
	tap_ok(VARIANCE("-5.5", "7.25", "1e-18") == 40.895833333333336, "of both signs");
	tap_ok(VARIANCE("9999999999999999999.999999999999999999", "-9999999999999999999.999999999999999999") == 2e38,
		"as large as fits");
	tap_ok(VARIANCE("7.1", "7.1", "7.1") == 0, "equal values");
	tap_ok(VARIANCE("1e20", "-1e20") == 2e40, "beyond what fits");
	tap_ok(fabs(VARIANCE("1e-30", "3e-30") - 2e-60) < 1e-75, "below what fits: as doubles");
	tap_ok(fabs(VARIANCE("0.10000000000000000001", "0.10000001000000000001") - 5e-17) < 1e-24,
		"of doubles that are close together");
	tap_ok(VARIANCE("1e100", "1e100") >= 0, "never negative");
	tap_ok(!isfinite(VARIANCE("1e200", "0")), "no value where squares leave the range");

	uint64_t seed = 4;
	bool ok = true;
	mpq_t mean, total, value;
	mpq_inits(mean, total, value, NULL);
	for (int round = 0; round < 500 && ok; round++) {
		size_t count = 2 + tap_random(&seed) % 20;
		char texts[22][64];
		const char *pointers[22];

		mpq_set_ui(mean, 0, 1);
		for (size_t i = 0; i < count; i++) {
			snprintf(texts[i], sizeof(texts[i]), "%s%u.%0*u", tap_random(&seed) % 2 ? "" : "-",
				(unsigned)(tap_random(&seed) % 1000000), 1 + round % 9,
				(unsigned)(tap_random(&seed) % 10));
			pointers[i] = texts[i];
			model_parse(texts[i], value);
			mpq_add(mean, mean, value);
		}
		mpq_set_ui(value, count, 1);
		mpq_div(mean, mean, value);
		mpq_set_ui(total, 0, 1);
		for (size_t i = 0; i < count; i++) {
			model_parse(texts[i], value);
			mpq_sub(value, value, mean);
			mpq_mul(value, value, value);
			mpq_add(total, total, value);
		}
		mpq_set_ui(value, count - 1, 1);
		mpq_div(total, total, value);
		ok = is_nearest(total, variance_of(pointers, count));
	}
	mpq_clears(mean, total, value, NULL);
	tap_ok(ok, "random variances are the nearest doubles");
}

static void
test_ratio(void)
{
	mpq_t want;
	uint64_t seed = 5;
	bool ok = true;

	tap_ok(wm_ratio(1, 3) == 1.0 / 3, "1 / 3");
	tap_ok(wm_ratio(0, 7) == 0, "0 / 7");
	tap_ok(wm_ratio(UINT64_MAX, 1) == 0x1p64, "2^64 - 1 rounds up");
	tap_ok(wm_ratio((UINT64_C(1) << 53) + 1, 1) == 0x1p53, "a tie goes to even");
	mpq_init(want);
	for (int i = 0; i < 5000 && ok; i++) {
		uint64_t a = tap_random(&seed) >> tap_random(&seed) % 64;
		uint64_t b = (tap_random(&seed) >> tap_random(&seed) % 64) | 1;

		mpq_set_ui(want, a, b);
		mpq_canonicalize(want);
		ok = a == 0 || is_nearest(want, wm_ratio(a, b));
		if (!ok)
			printf("#   %" PRIu64 " / %" PRIu64 "\n", a, b);
	}
	mpq_clear(want);
	tap_ok(ok, "random ratios are the nearest doubles");
}

/* The texts are Python's repr(), laid out as the header says. */
static void
test_double_print(void)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ -0.0, "0" },
		{ 1, "1" },
		{ -17, "-17" },
		{ 0.1, "0.1" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 2.0 / 3, "0.6666666666666666" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 4.35, "4.35" },
		{ -123456.789, "-123456.789" },
		{ 1e300, "1e+300" },
		{ 1.5e300, "1.5e+300" },
		{ -1e300, "-1e+300" },
		{ 5e-324, "5e-324" },
		{ 1e-323, "1e-323" },
		{ DBL_MIN, "2.2250738585072014e-308" },
		{ DBL_MAX, "1.7976931348623157e+308" },
		{ 1e21, "1000000000000000000000" },
		{ -1.5e21, "-1500000000000000000000" },
		{ 0x1p80, "1208925819614629200000000" },
		{ 9.99999999999999e37, "99999999999999900000000000000000000000" },
		{ 1e38, "1e+38" },
		{ 1e20, "100000000000000000000" },
		{ 0x1p53, "9007199254740992" },
		{ 0x1p60, "1152921504606846976" },
		{ 0x1p69, "590295810358705651712" },
		{ 123456789012345680.0, "123456789012345680" },
		{ 1e-6, "0.000001" },
		{ 1.5e-6, "0.0000015" },
		{ 9.999999999999997e-7, "9.999999999999997e-7" },
		{ 1e-7, "1e-7" },
		{ 2.5e-5, "0.000025" },
		{ 0.001, "0.001" },
		{ 0.0009999999999999998, "0.0009999999999999998" },
		{ 0x1p-9, "0.001953125" },
		{ 0x1p-44, "5.684341886080802e-14" },
		{ 0x1p-60, "8.673617379884035e-19" },
		{ 4503599627370495.5, "4503599627370495.5" },
		{ 562949953421312.25, "562949953421312.2" },
		{ 562949953421312.75, "562949953421312.8" },
		{ 9.5367431640625e-07, "9.5367431640625e-7" },
		{ (double)INFINITY, "" },
		{ (double)-INFINITY, "" },
		{ (double)NAN, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap_text(double_text(cases[i].value), cases[i].text, "a double as text");
}

/* Whether a text with one digit less, near value, reads back as value. */
static bool
has_shorter(double value, int digits)
{
	char text[64];
	long long significant, exponent;

	if (digits < 2)
		return false;
	snprintf(text, sizeof(text), "%.*e", digits - 2, value);
	char *mark = strchr(text, 'e');
	exponent = atoll(mark + 1) - (digits - 2);
	if (digits > 2)
		memmove(text + 1, text + 2, (size_t)(mark - text - 1));
	significant = atoll(text);
	for (int step = -1; step <= 1; step++) {
		snprintf(text, sizeof(text), "%llde%lld", significant + step, exponent);
		if (strtod(text, NULL) == value)
			return true;
	}
	return false;
}

static void
test_double_print_random(void)
{
	uint64_t seed = 6;
	const char *wrong = NULL;
	double value = 0;

	for (int i = 0; i < 40000 && wrong == NULL; i++) {
		uint64_t bits = tap_random(&seed) >> 1;

		if (i % 8 == 0) /* powers of two */
			bits = (bits % 2046 + 1) << 52;
		else if (i % 8 == 1) /* subnormal */
			bits &= (UINT64_C(1) << 52 >> bits % 52) - 1;
		else if (i % 8 < 5) /* where averages are */
			bits = bits % (UINT64_C(70) << 52) + (UINT64_C(1010) << 52);
		memcpy(&value, &bits, sizeof(value));
		if (i % 8 == 5)
			value = (double)(bits % 100000000) / (double)(1 + bits % 977);
		if (!isfinite(value))
			continue;
		const char *text = double_text(value);
		int digits = 0, zeros = 0;
		bool is_integer = strpbrk(text, ".e") == NULL;
		for (const char *at = text; *at != '\0' && *at != 'e'; at++) {
			if (*at == '.' || (digits == 0 && *at == '0'))
				continue;
			digits++;
			zeros = *at == '0' ? zeros + 1 : 0;
		}
		if (strtod(text, NULL) != value)
			wrong = "reads back as another double";
		else if (!is_integer && (zeros != 0 || has_shorter(value, digits)))
			wrong = "is not the shortest text";
		else if (is_integer && value >= 1e21 && has_shorter(value, digits - zeros))
			wrong = "has more digits than it needs";
		else if ((strchr(text, 'e') != NULL) != (value != 0 && (value >= 1e38 || value < 1e-6)))
			wrong = "has the wrong form";
	}
	if (!tap_ok(wrong == NULL, "random doubles read back and have no shorter text"))
		printf("#   %s: %s (%.17g)\n", double_text(value), wrong, value);
}

static void
test_codec(void)
{
	struct wm_decimal_sum sum = SUM("-99999999999999999999999999999999999999",
				      "-99999999999999999999999999999999999999", "0.25", "1e-30"),
			      decoded;
	struct wm_square_sum squares = { 0 }, squares_decoded;
	struct wm_decimal number = number_of("9999999999.5");
	struct wm_buf buf;
	struct wm_get in;

	wm_square_sum_add(&squares, &number);
	number = number_of("1e-30");
	wm_square_sum_add(&squares, &number);
	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	wm_decimal_sum_encode(&sum, &buf);
	wm_square_sum_encode(&squares, &buf);
	wm_get_init(&in, wm_buf_span(&buf));
	tap_ok(wm_decimal_sum_decode(&decoded, &in) && memcmp(&decoded, &sum, sizeof(sum)) == 0, "a sum comes back");
	tap_ok(wm_square_sum_decode(&squares_decoded, &in) && memcmp(&squares_decoded, &squares, sizeof(squares)) == 0,
		"so does a sum of squares");
	tap_int((int64_t)wm_get_left(&in), 0, "and nothing is left");

	size_t refused = 0;
	for (size_t len = 0; len < buf.len; len++) {
		wm_get_init(&in, wm_span(buf.data, len));
		refused += !(wm_decimal_sum_decode(&decoded, &in) && wm_square_sum_decode(&squares_decoded, &in));
	}
	tap_int((int64_t)refused, (int64_t)buf.len, "every shorter text is refused");

	for (int i = 0; i < 3; i++) {
		struct wm_decimal_sum bad = { .whole = 1 };

		if (i == 0)
			bad.fraction = WM_FRACTION_ONE;
		else if (i == 1)
			bad.fraction = -1;
		else
			bad.rest = (double)NAN;
		wm_buf_reset(&buf);
		wm_decimal_sum_encode(&bad, &buf);
		wm_get_init(&in, wm_buf_span(&buf));
		tap_ok(!wm_decimal_sum_decode(&decoded, &in), "an impossible sum is refused");
	}
	struct wm_decimal_sum endless = SUM("1e308", "1e308");
	wm_buf_reset(&buf);
	wm_decimal_sum_encode(&endless, &buf);
	wm_get_init(&in, wm_buf_span(&buf));
	tap_ok(wm_decimal_sum_decode(&decoded, &in) && *sum_text(&decoded) == '\0', "a sum without value comes back");
	wm_buf_release(&buf);
}

static void
test_locale(void)
{
	if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL) {
		tap_ok(true, "a decimal comma # SKIP no locale de_DE.UTF-8");
		return;
	}
	tap_text(double_text(1.5e-9), "1.5e-9", "a decimal comma is not printed");
	tap_text(double_text(1.0 / 3), "0.3333333333333333", "nor in averages");
	tap_ok(number_of("0.12345678901234567891").nearest == 0.12345678901234567891, "nor does it stop the reading");
	tap_ok(number_of("1.5e200").nearest == 1.5e200, "of large numbers");
	setlocale(LC_ALL, "C");
}

static void
test_format(void)
{
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_number_format(wm_span_of("2.0005"), "%.3f", &out);
	tap_span(wm_buf_span(&out), "2.001", "%.3f of 2.0005, whose double lies above it");
	wm_number_format(wm_span_of("-1e+300"), "|%8.1e|", &out);
	tap_span(wm_buf_span(&out), "2.001|-1.0e+300|", "appended, with what stands around the conversion");
	wm_buf_release(&out);
}

int
main(void)
{
	test_grammar();
	test_limits();
	test_parse_random();
	test_compare();
	test_sums();
	test_sum_random();
	test_mean();
	test_mean_print();
	test_integer_print();
	test_variance();
	test_ratio();
	test_double_print();
	test_double_print_random();
	test_codec();
	test_locale();
	test_format();
	return tap_done();
}
