/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_decimals - lines as numbers, held to the fractions of GMP:
 *
 *   - a text is a number if and only if a plain reader says so, and has its value: exactly, or as the nearest double;
 *   - two compare by value, whether they are exact or not;
 *   - sums of exact numbers are exact, with the same bytes in any order and any split, and are read again as printed;
 *   - a mean is the nearest double.
 */
#include "lib/base/buf.h"
#include "tests/fuzz/expect.h"
#include "tests/unit/decimal_model.h"

#define NUMBERS_MAX 64
#define TEXT_MAX 120

struct number {
	struct wm_span text;
	struct wm_decimal value;
	mpq_t exact;
};

/* The model works digit by digit: no exponents in the thousands. */
static bool
is_small(struct wm_span text)
{
	const char *exponent = memchr(text.data, 'e', text.len);

	if (exponent == NULL)
		exponent = memchr(text.data, 'E', text.len);
	return text.len <= TEXT_MAX && memchr(text.data, '\0', text.len) == NULL &&
		(exponent == NULL || text.data + text.len - exponent <= 4);
}

/* Whether no double is near it: from half a step above the greatest, 2^1024 - 2^970. */
static bool
is_infinite(const mpq_t value)
{
	mpz_t limit, size;

	mpz_inits(limit, size, NULL);
	mpz_ui_pow_ui(limit, 2, 54);
	mpz_sub_ui(limit, limit, 1);
	mpz_mul_2exp(limit, limit, 970);
	mpz_tdiv_q(size, mpq_numref(value), mpq_denref(value));
	bool is_beyond = mpz_cmpabs(size, limit) >= 0;
	mpz_clears(limit, size, NULL);
	return is_beyond;
}

static bool
take_number(struct wm_span text, struct number *number)
{
	char copy[TEXT_MAX + 1];

	memcpy(copy, text.data, text.len);
	copy[text.len] = '\0';
	number->text = text;
	mpq_init(number->exact);
	bool is_number = wm_decimal_parse(text, &number->value);
	expect(is_number == (model_parse(copy, number->exact) && !is_infinite(number->exact)),
		"a text is a number if the model says so");
	if (!is_number) {
		mpq_clear(number->exact);
		return false;
	}
	if (!number->value.is_exact) {
		expect(isinf(number->value.nearest) || is_nearest(number->exact, number->value.nearest),
			"what is not exact is the nearest double");
		return true;
	}
	mpq_t value;
	mpq_init(value);
	exact_value(value, &number->value);
	expect(mpq_equal(value, number->exact), "what is exact has its value");
	mpq_clear(value);
	return true;
}

static void
hold_order(const struct number *a, const struct number *b)
{
	int want = mpq_cmp(a->exact, b->exact), got = wm_decimal_compare(&a->value, a->text, &b->value, b->text);

	expect((want > 0) - (want < 0) == (got > 0) - (got < 0), "they compare by value");
}

static void
encode(const struct wm_decimal_sum *sum, struct wm_buf *out)
{
	wm_buf_reset(out);
	wm_decimal_sum_encode(sum, out);
}

static void
hold_sums(const struct number *numbers, size_t count)
{
	struct wm_decimal_sum forward = { 0 }, backward = { 0 }, parts[3] = { 0 };
	struct wm_buf a, b;
	mpq_t exact;
	size_t exact_count = 0;

	wm_buf_init(&a, WM_BUF_UNBOUNDED);
	wm_buf_init(&b, WM_BUF_UNBOUNDED);
	mpq_init(exact);
	for (size_t i = 0; i < count; i++) {
		const struct number *last = &numbers[count - 1 - i];

		if (numbers[i].value.is_exact) {
			wm_decimal_sum_add(&forward, &numbers[i].value);
			wm_decimal_sum_add(&parts[i % 3], &numbers[i].value);
			mpq_add(exact, exact, numbers[i].exact);
			exact_count++;
		}
		if (last->value.is_exact)
			wm_decimal_sum_add(&backward, &last->value);
	}
	wm_decimal_sum_merge(&parts[2], &parts[0]);
	wm_decimal_sum_merge(&parts[2], &parts[1]);
	encode(&forward, &a);
	encode(&backward, &b);
	expect(wm_span_equal(wm_buf_span(&a), wm_buf_span(&b)), "the order of additions does not matter");
	encode(&parts[2], &b);
	expect(wm_span_equal(wm_buf_span(&a), wm_buf_span(&b)), "nor do parts");
	if (exact_count > 0) {
		char text[256];
		mpq_t mean;

		wm_buf_reset(&a);
		wm_decimal_sum_print(&forward, &a);
		expect(a.len < sizeof(text), "a printed sum has an end");
		memcpy(text, a.data, a.len);
		text[a.len] = '\0';
		mpq_init(mean);
		expect(model_parse(text, mean) && mpq_equal(mean, exact), "a printed sum has its value");
		mpq_set_ui(mean, exact_count, 1);
		mpq_div(mean, exact, mean);
		expect(is_nearest(mean, wm_decimal_sum_mean(&forward, exact_count)), "a mean is the nearest double");
		mpq_clear(mean);
	}
	mpq_clear(exact);
	wm_buf_release(&a);
	wm_buf_release(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct number numbers[NUMBERS_MAX];
	const char *at = (const char *)data, *end = at + size;
	size_t count = 0;

	while (at < end && count < NUMBERS_MAX) {
		const char *line_feed = memchr(at, '\n', (size_t)(end - at));
		struct wm_span text = wm_span(at, (size_t)((line_feed == NULL ? end : line_feed) - at));

		at += text.len + 1;
		if (is_small(text) && take_number(text, &numbers[count]))
			count++;
	}
	for (size_t i = 0; i + 1 < count; i++)
		hold_order(&numbers[i], &numbers[i + 1]);
	hold_sums(numbers, count);
	for (size_t i = 0; i < count; i++)
		mpq_clear(numbers[i].exact);
	return 0;
}
