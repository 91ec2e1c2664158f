/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/quantile.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/unit/tap.h"

#define VALUES_MAX 100000

static double
uniform(uint64_t *seed)
{
	return ((double)(tap_random(seed) >> 11) + 0.5) / 0x1p53;
}

/* In hundredths, which sort and compare exactly. */
static int64_t
draw_uniform(uint64_t *seed)
{
	return (int64_t)(tap_random(seed) % 1000000);
}

static int64_t
draw_lognormal(uint64_t *seed)
{
	double normal = sqrt(-2 * log(uniform(seed))) * cos(6.283185307179586 * uniform(seed));

	return (int64_t)(100 * exp(4 + 1.5 * normal));
}

static int64_t
draw_pareto(uint64_t *seed)
{
	return (int64_t)(100 * pow(uniform(seed), -1 / 1.1));
}

static int64_t
draw_constant(uint64_t *seed)
{
	(void)seed;
	return 20017;
}

static int64_t
draw_negative(uint64_t *seed)
{
	return -draw_lognormal(seed);
}

static int64_t
draw_mixed(uint64_t *seed)
{
	uint64_t dice = tap_random(seed) % 10;

	return dice == 0 ? 0 : dice < 5 ? draw_pareto(seed) : -draw_lognormal(seed);
}

static const struct {
	const char *name;
	int64_t (*draw)(uint64_t *seed);
} distributions[] = { { "uniform", draw_uniform }, { "lognormal", draw_lognormal }, { "Pareto", draw_pareto },
	{ "constant", draw_constant }, { "negative", draw_negative }, { "mixed", draw_mixed } };

#define DISTRIBUTIONS_COUNT (sizeof(distributions) / sizeof(distributions[0]))

static void
print_hundredths(int64_t value, char *text, size_t size)
{
	int len = snprintf(text, size, "%s%lld.%02lld", value < 0 ? "-" : "", llabs(value) / 100, llabs(value) % 100);

	while (text[len - 1] == '0')
		text[--len] = '\0';
	if (text[len - 1] == '.')
		text[len - 1] = '\0';
}

static void
add_text(struct wm_quantile *quantile, struct wm_arena *arena, const char *text)
{
	struct wm_decimal number;

	if (!wm_decimal_parse(wm_span_of(text), &number)) {
		printf("Bail out! '%s' is no number\n", text);
		exit(1);
	}
	wm_quantile_add(quantile, arena, &number);
}

static void
add_hundredths(struct wm_quantile *quantile, struct wm_arena *arena, int64_t value)
{
	struct wm_decimal number = {
		.whole = value / 100, .fraction = value % 100 * (WM_FRACTION_ONE / 100), .is_exact = true
	};

	wm_quantile_add(quantile, arena, &number);
}

static void
print_at(const struct wm_quantile *quantile, uint64_t rank, struct wm_buf *out)
{
	struct wm_decimal value = wm_quantile_at(quantile, rank);
	struct wm_decimal_sum sum = { 0 };

	wm_buf_reset(out);
	wm_decimal_sum_add(&sum, &value);
	wm_decimal_sum_print(&sum, out);
}

static double
read_number(struct wm_buf *text)
{
	wm_buf_add_byte(text, '\0');
	text->len--;
	return strtod(text->data, NULL);
}

static int
compare_int64(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* Percentages in tenths: 0 to 100. */
static const uint64_t tenths[] = { 0, 1, 10, 250, 333, 500, 750, 900, 950, 990, 999, 1000 };

/* Against sorting: the same text while values are exact, then within the bound that the header states. */
static void
test_against_sorting(void)
{
	static const size_t counts[] = { 1, 2, 3, 10, 1023, 1024, 1025, VALUES_MAX };
	int64_t *values = wm_malloc(VALUES_MAX * sizeof(*values));
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (size_t d = 0; d < DISTRIBUTIONS_COUNT; d++) {
		bool ok = true;
		double worst = 0;
		size_t bytes = 0;

		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]) && ok; c++) {
			struct wm_quantile quantile = { 0 };
			struct wm_arena arena = { 0 };
			size_t count = counts[c];
			uint64_t seed = c;
			char text[64];

			for (size_t i = 0; i < count; i++) {
				values[i] = distributions[d].draw(&seed);
				add_hundredths(&quantile, &arena, values[i]);
			}
			qsort(values, count, sizeof(*values), compare_int64);
			for (size_t p = 0; p < sizeof(tenths) / sizeof(tenths[0]) && ok; p++) {
				size_t rank = (tenths[p] * count + 999) / 1000, at = rank == 0 ? 0 : rank - 1;
				double want = (double)values[at] / 100;

				ok = wm_quantile_rank(tenths[p] * (WM_PERCENT_ONE / 10), count) == at + 1;
				print_at(&quantile, at + 1, &out);
				print_hundredths(values[at], text, sizeof(text));
				double error = fabs(read_number(&out) - want);
				if (count <= 1024 || tenths[p] == 0 || tenths[p] == 1000 || want == 0)
					ok = ok && wm_span_is(wm_buf_span(&out), text);
				else
					worst = fmax(worst, error / fabs(want));
				if (!ok)
					printf("# p%.1f of %zu: got %.*s, want %s\n", (double)tenths[p] / 10, count,
						(int)out.len, out.data, text);
			}
			wm_buf_reset(&out);
			wm_quantile_print_median(&quantile, &out);
			double want = ((double)values[(count - 1) / 2] + (double)values[count / 2]) / 200;
			double error = fabs(read_number(&out) - want);
			if (count <= 1024)
				ok = ok && error == 0;
			else if (values[count / 2] / 2 <=
				values[(count - 1) / 2]) /* of one sign, and near each other */
				worst = fmax(worst, want == 0 ? error : error / fabs(want));
			if (!ok && error != 0)
				printf("# median of %zu: got %.*s, want %.17g\n", count, (int)out.len, out.data, want);
			ok = ok && quantile.count == count && (quantile.form == WM_QUANTILE_SKETCH) == (count > 1024);
			bytes = arena.bytes;
			wm_arena_release(&arena);
		}
		tap_ok(ok && worst <= 1.0 / 256 + 1e-15,
			"%s: as sorting says, exact to 1024 values, then within %.3f %%", distributions[d].name,
			100 * worst);
		tap_ok(bytes < 80000, "%d of them in %zu bytes", VALUES_MAX, bytes);
	}
	free(values);
	wm_buf_release(&out);
}

/* Values at both ends of every 128th of octaves over the whole range of doubles: each within the bound. */
static void
test_bound(void)
{
	struct wm_quantile quantiles[2] = { { 0 }, { 0 } };
	struct wm_arena arena = { 0 };
	struct wm_decimal number = { 0 };
	double *values = wm_malloc(64 * 256 * sizeof(*values)), worst = 0;
	size_t count = 0;
	bool is_right = true;

	for (int exponent = -1022; exponent <= 1023; exponent += 55) {
		for (int i = 0; i < 128; i++) {
			double low = ldexp(128 + i, exponent - 7), high = nextafter(ldexp(129 + i, exponent - 7), 0);

			values[count++] = low;
			values[count++] = high;
		}
	}
	for (size_t i = 0; i < count; i++) {
		number.nearest = values[i];
		wm_quantile_add(&quantiles[0], &arena, &number);
		number.nearest = -values[count - 1 - i];
		wm_quantile_add(&quantiles[1], &arena, &number);
	}
	for (size_t i = 0; i < count; i++) {
		double got = wm_quantile_at(&quantiles[0], i + 1).nearest;
		double mirrored = wm_quantile_at(&quantiles[1], count - i).nearest;

		worst = fmax(worst, fabs(got / values[i] - 1));
		is_right = is_right && got == -mirrored;
	}
	tap_ok(count > 9000 && worst <= 1.0 / 256, "no value of %zu is off by more than 1/256: %.4f %%", count,
		100 * worst);
	tap_ok(worst > 0.99 / 256, "and the bound is met");
	tap_ok(is_right, "negative values mirror positive ones");
	free(values);
	wm_arena_release(&arena);
}

/* Integers are numbers like others: the same state, through few values and many, new ends and old ones. */
static void
test_integers(void)
{
	struct wm_arena arena = { 0 };
	uint64_t seed = 4;
	bool is_same = true;

	for (int round = 0; round < 40; round++) {
		struct wm_quantile quantiles[2] = { 0 };
		struct wm_buf bytes[2];
		size_t count = 1 + tap_random(&seed) % 3000;

		for (size_t i = 0; i < count; i++) {
			int64_t integer = (int64_t)tap_random(&seed) >> tap_random(&seed) % 64;
			const struct wm_decimal number = { .whole = integer, .is_exact = true };

			wm_quantile_add(&quantiles[0], &arena, &number);
			wm_quantile_add_integer(&quantiles[1], &arena, integer);
		}
		for (size_t i = 0; i < 2; i++) {
			wm_buf_init(&bytes[i], WM_BUF_UNBOUNDED);
			wm_quantile_encode(&quantiles[i], &bytes[i]);
		}
		is_same = is_same && wm_span_equal(wm_buf_span(&bytes[0]), wm_buf_span(&bytes[1]));
		wm_buf_release(&bytes[0]);
		wm_buf_release(&bytes[1]);
	}
	tap_ok(is_same, "40 sets of integers: added as such they are what they are as decimals");
	wm_arena_release(&arena);
}

/* A middle beyond the values is none of them: 1.0039 and 255.5 here. */
static void
test_constant(void)
{
	static const char *const texts[] = { "1", "255.9", "-1", "-255.9" };
	struct wm_arena arena = { 0 };
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < 4; i++) {
		struct wm_quantile quantile = { 0 };

		for (int j = 0; j < 2000; j++)
			add_text(&quantile, &arena, texts[i]);
		print_at(&quantile, 1000, &out);
		tap_span(wm_buf_span(&out), texts[i], "the median of equal values is that value");
	}
	wm_buf_release(&out);
	wm_arena_release(&arena);
}

static void
test_ranks(void)
{
	static const struct {
		const char *name;
		uint64_t percent, count, rank;
	} cases[] = {
		{ "p7 of 100", 7 * WM_PERCENT_ONE, 100, 7 },
		{ "p14 of 100", 14 * WM_PERCENT_ONE, 100, 14 },
		{ "p28 of 100", 28 * WM_PERCENT_ONE, 100, 28 },
		{ "p55 of 100", 55 * WM_PERCENT_ONE, 100, 55 },
		{ "p56 of 100", 56 * WM_PERCENT_ONE, 100, 56 },
		{ "p99.9 of 1000", 999 * WM_PERCENT_ONE / 10, 1000, 999 },
		{ "p99.9 of 1001", 999 * WM_PERCENT_ONE / 10, 1001, 1000 },
		{ "p95 of 20", 95 * WM_PERCENT_ONE, 20, 19 },
		{ "p95 of 21", 95 * WM_PERCENT_ONE, 21, 20 },
		{ "p0 of 1", 0, 1, 1 },
		{ "p100 of 2^64 - 1", 100 * WM_PERCENT_ONE, UINT64_MAX, UINT64_MAX },
		{ "10^-15 percent of 10^17", 1, 100000000000000000, 1 },
		{ "10^-15 percent of 10^17 + 1", 1, 100000000000000001, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap_int((int64_t)wm_quantile_rank(cases[i].percent, cases[i].count), (int64_t)cases[i].rank,
			cases[i].name);
}

/* All kinds of numbers, in order, each with the text that it prints. */
static const char *const ladder[][2] = {
	{ "-1.5e300", "-1.5e+300" },
	{ "-99999999999999999999999999999999999999.999999999999999999",
		"-99999999999999999999999999999999999999.999999999999999999" },
	{ "-9223372036854775809", "-9223372036854775809" },
	{ "-9223372036854775808", "-9223372036854775808" },
	{ "-10.000000000000000001", "-10.000000000000000001" },
	{ "-10", "-10" },
	{ "-0.5", "-0.5" },
	{ "-.125", "-0.125" },
	{ "-5e-324", "-5e-324" },
	{ "-0.0", "0" },
	{ "1e-18", "0.000000000000000001" },
	{ "0.1", "0.1" },
	{ "0.10000000000000001", "0.10000000000000001" },
	{ "0.5", "0.5" },
	{ "0.50000000000000000000001", "0.5" },
	{ "9", "9" },
	{ "10.25", "10.25" },
	{ "10.250", "10.25" },
	{ "9223372036854775807", "9223372036854775807" },
	{ "9223372036854775807.5", "9223372036854775807.5" },
	{ "1e38", "1e+38" },
	{ "1.7e308", "1.7e+308" },
};

#define LADDER_COUNT (sizeof(ladder) / sizeof(ladder[0]))

/* From a few neighbours of the ladder to all of it: the values keep, whatever they must be kept as. */
static void
test_kinds_of_numbers(void)
{
	uint64_t seed = 3;
	bool ok = true;
	unsigned forms = 0;
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (int round = 0; round < 400 && ok; round++) {
		size_t first = tap_random(&seed) % LADDER_COUNT, span = 1 + tap_random(&seed) % (LADDER_COUNT - first);
		size_t counts[LADDER_COUNT] = { 0 }, count = 1 + tap_random(&seed) % (round % 20 == 0 ? 1024 : 40);
		struct wm_quantile quantile = { 0 };
		struct wm_arena arena = { 0 };

		for (size_t i = 0; i < count; i++) {
			size_t pick = first + tap_random(&seed) % span;

			counts[pick]++;
			add_text(&quantile, &arena, ladder[pick][0]);
		}
		forms |= 1u << quantile.form;
		size_t rank = 0;
		for (size_t i = 0; i < LADDER_COUNT && ok; i++) {
			for (size_t j = 0; j < counts[i] && ok; j++) {
				print_at(&quantile, ++rank, &out);
				ok = wm_span_is(wm_buf_span(&out), ladder[i][1]);
				if (!ok)
					printf("# rank %zu: got %.*s, want %s\n", rank, (int)out.len, out.data,
						ladder[i][1]);
			}
		}
		wm_arena_release(&arena);
	}
	tap_ok(ok && forms == 3, "numbers of any kind keep their value and order");
	wm_buf_release(&out);
}

static void
encode(const struct wm_quantile *quantile, struct wm_buf *out)
{
	wm_buf_reset(out);
	wm_quantile_encode(quantile, out);
}

static bool
reload(struct wm_quantile *quantile, struct wm_arena *arena, struct wm_buf *scratch)
{
	struct wm_get in;

	encode(quantile, scratch);
	*quantile = (struct wm_quantile){ 0 };
	wm_get_init(&in, wm_buf_span(scratch));
	return wm_quantile_decode(quantile, arena, &in) && wm_get_left(&in) == 0;
}

/* Values split and merged in random orders, some by way of bytes: the same bytes as of all added in one order. */
static void
test_merge(void)
{
	static const size_t counts[] = { 0, 1, 2, 20, 1000, 1023, 1024, 1025, 1026, 2500, 6000 };
	enum { PARTS = 5 };
	uint64_t seed = 4;
	bool ok = true;
	struct wm_buf want, got;

	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	for (int round = 0; round < 132 && ok; round++) {
		size_t count = counts[round % 11];
		bool has_all_kinds = round % 4 == 0;
		struct wm_quantile whole = { 0 }, parts[PARTS] = { 0 };
		struct wm_arena arena = { 0 };
		uint64_t lean = tap_random(&seed) % PARTS; /* most values go to one part */
		int64_t *values = wm_malloc(count * sizeof(*values) + 1);

		for (size_t i = 0; i < count; i++)
			values[i] = has_all_kinds ? (int64_t)(tap_random(&seed) % LADDER_COUNT)
						  : distributions[(size_t)round % DISTRIBUTIONS_COUNT].draw(&seed);
		for (size_t i = 0; i < count; i++) {
			if (has_all_kinds)
				add_text(&whole, &arena, ladder[values[i]][0]);
			else
				add_hundredths(&whole, &arena, values[i]);
		}
		for (size_t left = count; left > 0; left--) {
			size_t pick = tap_random(&seed) % left,
			       part = tap_random(&seed) % 4 == 0 ? tap_random(&seed) % PARTS : lean;

			if (has_all_kinds)
				add_text(&parts[part], &arena, ladder[values[pick]][0]);
			else
				add_hundredths(&parts[part], &arena, values[pick]);
			values[pick] = values[left - 1];
			if (tap_random(&seed) % 500 == 0) /* an answer in between changes nothing */
				wm_quantile_at(&parts[part], 1);
		}
		size_t first = tap_random(&seed) % PARTS;
		for (size_t i = 0; i < PARTS; i++)
			if (tap_random(&seed) % 2)
				ok = ok && reload(&parts[i], &arena, &got);
		for (size_t i = 1; i < PARTS; i++)
			wm_quantile_merge(&parts[first], &arena, &parts[(first + i) % PARTS]);
		encode(&whole, &want);
		encode(&parts[first], &got);
		ok = ok && whole.count == count && parts[first].count == count &&
			wm_span_equal(wm_buf_span(&want), wm_buf_span(&got));
		if (!ok)
			printf("# round %d, %zu values\n", round, count);
		free(values);
		wm_arena_release(&arena);
	}
	tap_ok(ok, "any split, order and merge gives the same bytes");
	wm_buf_release(&want);
	wm_buf_release(&got);
}

/* Merged with its like until buckets hold more than 32 bits: the same answers. */
static void
test_large_counts(void)
{
	struct wm_quantile quantile = { 0 }, other = { 0 };
	struct wm_arena arena = { 0 };
	uint64_t seed = 5;
	bool ok = true;
	double before[11];
	struct wm_buf scratch;

	wm_buf_init(&scratch, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 2000; i++)
		add_hundredths(&quantile, &arena, draw_mixed(&seed));
	for (uint64_t i = 1; i < 10; i++)
		before[i] = wm_quantile_at(&quantile, i * 200).nearest;
	for (int i = 0; i < 30; i++) {
		encode(&quantile, &scratch);
		struct wm_get in;
		other = (struct wm_quantile){ 0 };
		wm_get_init(&in, wm_buf_span(&scratch));
		ok = ok && wm_quantile_decode(&other, &arena, &in);
		wm_quantile_merge(&quantile, &arena, &other);
	}
	ok = ok && quantile.count == UINT64_C(2000) << 30 && reload(&quantile, &arena, &scratch);
	for (uint64_t i = 1; i < 10 && ok; i++)
		ok = wm_quantile_at(&quantile, i * 200 << 30).nearest == before[i];
	tap_ok(ok, "two million million values are counted like two thousand");
	uint64_t count = quantile.count;
	add_hundredths(&quantile, &arena, 100);
	tap_ok(quantile.count == count + 1 && reload(&quantile, &arena, &scratch), "and one more");
	wm_buf_release(&scratch);
	wm_arena_release(&arena);
}

/* An encoding made by hand: a one, and 2^32 - 1 twos. Three more go over the edge of 32 bits one by one. */
static void
test_carry(void)
{
	struct wm_quantile quantile = { 0 };
	struct wm_arena arena = { 0 };
	struct wm_buf bytes, again;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&again, WM_BUF_UNBOUNDED);
	wm_put_varint(&bytes, UINT64_C(1) << 32);
	for (uint64_t i = 1; i <= 2; i++) { /* the least and the greatest, exact */
		wm_put_u8(&bytes, 1);
		wm_put_u64(&bytes, i);
		wm_put_u64(&bytes, 0);
		wm_put_i64(&bytes, 0);
	}
	wm_put_varint(&bytes, 0); /* zeros; none negative */
	wm_put_varint(&bytes, 0);
	wm_put_varint(&bytes, 1023 * 128); /* the bucket of 1, as its exponent is kept, and that an octave on */
	wm_put_varint(&bytes, 1);
	wm_put_varint(&bytes, 128);
	wm_put_varint(&bytes, UINT32_MAX);
	wm_put_varint(&bytes, 0);
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(wm_quantile_decode(&quantile, &arena, &in) && wm_get_left(&in) == 0,
		"bytes as they are stated are read");
	encode(&quantile, &again);
	tap_ok(wm_span_equal(wm_buf_span(&bytes), wm_buf_span(&again)), "and written");
	bytes.data[0]++; /* the lowest byte of the count */
	struct wm_quantile other = { 0 };
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(!wm_quantile_decode(&other, &arena, &in),
		"buckets that are not as many together as is said are refused");
	for (int i = 0; i < 3; i++)
		add_text(&quantile, &arena, "2");
	tap_ok(wm_quantile_at(&quantile, 1).whole == 1 && wm_quantile_at(&quantile, 2).whole == 2 &&
			quantile.count == (UINT64_C(1) << 32) + 3 && reload(&quantile, &arena, &again) &&
			wm_quantile_at(&quantile, (UINT64_C(1) << 32) + 3).whole == 2,
		"a bucket goes from 2^32 - 1 to 2^32 by one");
	wm_buf_release(&bytes);
	wm_buf_release(&again);
	wm_arena_release(&arena);
}

/* Small groups take little. */
static void
test_memory(void)
{
	struct wm_quantile quantiles[64] = { 0 };
	struct wm_arena arena = { 0 };

	tap_int(sizeof(struct wm_quantile), 24, "24 bytes in the cell");
	for (size_t i = 0; i < 64; i++) {
		add_text(&quantiles[i], &arena, "12.25");
		add_text(&quantiles[i], &arena, "12.5");
	}
	tap_ok(arena.bytes <= 2048 + 1024, "64 groups of two values: %zu bytes in the arena", arena.bytes);
	wm_arena_release(&arena);
	quantiles[0] = (struct wm_quantile){ 0 };
	for (int i = 0; i < 1024; i++)
		add_text(&quantiles[0], &arena, "1.5");
	tap_ok(arena.bytes <= 32768, "1024 values: %zu bytes with what was outgrown", arena.bytes);
	wm_arena_release(&arena);
}

/* Damaged bytes are refused or give something that answers, merges and encodes; nothing else (the sanitizers watch). */
static void
test_damage(void)
{
	uint64_t seed = 6;
	size_t accepted = 0, refused = 0, shorter = 0, lengths = 0;
	struct wm_buf bytes, scratch;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&scratch, WM_BUF_UNBOUNDED);
	for (int kind = 0; kind < 3; kind++) {
		struct wm_quantile quantile = { 0 };
		struct wm_arena arena = { 0 };

		for (int i = 0; i < (kind == 2 ? 1500 : 30); i++) {
			if (kind == 1)
				add_text(&quantile, &arena, ladder[tap_random(&seed) % LADDER_COUNT][0]);
			else
				add_hundredths(&quantile, &arena, draw_mixed(&seed) % 3000);
		}
		encode(&quantile, &bytes);
		for (size_t len = 0; len < bytes.len; len++, lengths++) {
			struct wm_quantile other = { 0 };
			struct wm_arena other_arena = { 0 };
			struct wm_get in;
			char *part = wm_memdup(bytes.data, len);

			wm_get_init(&in, wm_span(part, len));
			shorter += !wm_quantile_decode(&other, &other_arena, &in);
			free(part);
			wm_arena_release(&other_arena);
		}
		for (int i = 0; i < 2000; i++) {
			struct wm_quantile other = { 0 };
			struct wm_arena other_arena = { 0 };
			struct wm_get in;
			char *damaged = wm_memdup(bytes.data, bytes.len);

			for (uint64_t n = 1 + tap_random(&seed) % 3; n > 0; n--)
				damaged[tap_random(&seed) % bytes.len] = (char)tap_random(&seed);
			wm_get_init(&in, wm_span(damaged, bytes.len));
			if (wm_quantile_decode(&other, &other_arena, &in)) {
				accepted++;
				wm_quantile_merge(&other, &other_arena, &quantile);
				if (other.count != 0)
					print_at(&other, (other.count + 1) / 2, &scratch);
				encode(&other, &scratch);
			} else {
				refused++;
			}
			free(damaged);
			wm_arena_release(&other_arena);
		}
		wm_arena_release(&arena);
	}
	tap_int((int64_t)shorter, (int64_t)lengths, "every shorter encoding is refused");
	tap_ok(accepted > 100 && refused > 100, "damaged encodings: %zu read, %zu refused, none does harm", accepted,
		refused);

	/* 2^60 values told in a few bytes take no memory. */
	struct wm_quantile quantile = { 0 };
	struct wm_arena arena = { 0 };
	struct wm_get in;
	wm_get_init(&in, wm_span("\x80\x80\x80\x80\x80\x80\x80\x80\x10\1\0\0\0\0", 14));
	tap_ok(!wm_quantile_decode(&quantile, &arena, &in) && arena.bytes < 4096, "a count without values is refused");
	wm_arena_release(&arena);
	wm_buf_release(&bytes);
	wm_buf_release(&scratch);
}

int
main(void)
{
	test_against_sorting();
	test_bound();
	test_integers();
	test_constant();
	test_ranks();
	test_kinds_of_numbers();
	test_merge();
	test_large_counts();
	test_carry();
	test_memory();
	test_damage();
	return tap_done();
}
