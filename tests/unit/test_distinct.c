/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/distinct.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/unit/tap.h"

/* Texts that differ in their number alone. */
static void
add_numbered(struct wm_distinct *distinct, struct wm_arena *arena, uint64_t number)
{
	char text[32];
	struct wm_value value = { .kind = WM_KIND_TEXT };

	value.text = wm_span(text, (size_t)snprintf(text, sizeof(text), "user-%llu", (unsigned long long)number));
	wm_distinct_add(distinct, arena, &value);
}

/* Up to 1024 values the count is exact, however often they come; the next one makes an estimate. */
static void
test_exact(void)
{
	struct wm_distinct distinct = { 0 };
	struct wm_arena arena = { 0 };
	uint64_t seed = 1;
	bool seen[1024] = { false }, ok = wm_distinct_count(&distinct) == 0;
	uint64_t count = 0;

	for (int i = 0; i < 20000; i++) {
		uint64_t number = tap_random(&seed) % 1024;

		count += !seen[number];
		seen[number] = true;
		add_numbered(&distinct, &arena, number);
		ok = ok && wm_distinct_count(&distinct) == count;
	}
	tap_ok(ok && count == 1024 && !distinct.is_estimate, "counts against a set at every step, up to 1024");
	size_t bytes = arena.bytes;
	add_numbered(&distinct, &arena, 5000);
	tap_ok(distinct.is_estimate, "1025 are estimated");
	tap_ok(arena.bytes == bytes, "in the memory of the set");
	tap_ok(wm_distinct_count(&distinct) >= 1025 && wm_distinct_count(&distinct) <= 1076,
		"the estimate is near, and not below what was counted");
	wm_arena_release(&arena);
}

static void
test_kinds(void)
{
	struct wm_distinct distinct = { 0 };
	struct wm_arena arena = { 0 };
	static const struct wm_value values[] = { { { "1", 1 }, WM_KIND_TEXT }, { { "1", 1 }, WM_KIND_NUMBER },
		{ { "1.0", 3 }, WM_KIND_NUMBER }, { { "true", 4 }, WM_KIND_BOOL }, { { "true", 4 }, WM_KIND_TEXT },
		{ { "a\0b", 3 }, WM_KIND_TEXT }, { { "a", 1 }, WM_KIND_TEXT } };

	for (int i = 0; i < 2; i++)
		for (size_t j = 0; j < 7; j++)
			wm_distinct_add(&distinct, &arena, &values[j]);
	tap_int((int64_t)wm_distinct_count(&distinct), 7, "kind and text, every byte of it, make a value");
	wm_arena_release(&arena);
}

/*
 * The error against the known number, over 30 sets of values each. The standard error is 1.63 %: of 30 draws none
 * is beyond 4.5 of it but once in 5000 tests of other hashes, the mean of 30 is within 4 / sqrt(30), and their
 * root mean square within a half more.
 */
static void
test_error(void)
{
	static const uint64_t sizes[] = { 1100, 2000, 4096, 7000, 10240, 14000, 20000, 40000 };
	const double standard = 1.04 / 64;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		double worst = 0, sum = 0, squares = 0;

		for (uint64_t set = 0; set < 30; set++) {
			struct wm_distinct distinct = { 0 };
			struct wm_arena arena = { 0 };

			for (uint64_t i = 0; i < sizes[s]; i++)
				add_numbered(&distinct, &arena, set * 1000000 + i);
			double error = (double)wm_distinct_count(&distinct) / (double)sizes[s] - 1;
			worst = fmax(worst, fabs(error));
			sum += error;
			squares += error * error;
			wm_arena_release(&arena);
		}
		tap_ok(worst < 4.5 * standard && fabs(sum / 30) < 4 * standard / sqrt(30) &&
				sqrt(squares / 30) < 1.5 * standard,
			"%llu values: mean error %.2f %%, root mean square %.2f %%, worst %.2f %%",
			(unsigned long long)sizes[s], 100 * sum / 30, 100 * sqrt(squares / 30), 100 * worst);
	}
}

static void
encode(const struct wm_distinct *distinct, struct wm_buf *out)
{
	wm_buf_reset(out);
	wm_distinct_encode(distinct, out);
}

/* Values split over sets, in other orders, merged in other orders, by way of bytes: the same bytes as in one. */
static void
test_merge(void)
{
	static const uint64_t sizes[] = { 0, 1, 3, 700, 1023, 1024, 1025, 1026, 3000 };
	uint64_t seed = 2;
	bool ok = true;
	struct wm_buf want, got;

	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	for (int round = 0; round < 90 && ok; round++) {
		uint64_t size = sizes[round % 9];
		struct wm_distinct whole = { 0 }, parts[4] = { 0 };
		struct wm_arena arena = { 0 };

		for (uint64_t i = 0; i < size; i++) {
			uint64_t number = i * 7919 % size;

			add_numbered(&whole, &arena, i);
			add_numbered(&parts[tap_random(&seed) % 4], &arena, number);
			add_numbered(&parts[tap_random(&seed) % 4], &arena, tap_random(&seed) % size);
		}
		for (size_t i = 0; i < 4 && ok; i++) {
			struct wm_get in;

			encode(&parts[i], &got);
			parts[i] = (struct wm_distinct){ 0 };
			wm_get_init(&in, wm_buf_span(&got));
			ok = wm_distinct_decode(&parts[i], &arena, &in) && wm_get_left(&in) == 0;
		}
		size_t first = tap_random(&seed) % 4;
		for (size_t i = 1; i < 4; i++)
			wm_distinct_merge(&parts[first], &arena, &parts[(first + i) % 4]);
		encode(&whole, &want);
		encode(&parts[first], &got);
		ok = ok && wm_span_equal(wm_buf_span(&want), wm_buf_span(&got)) &&
			wm_distinct_count(&whole) == wm_distinct_count(&parts[first]) &&
			whole.is_estimate == (size > 1024);
		wm_arena_release(&arena);
	}
	tap_ok(ok, "any split, order and merge gives the same bytes");
	wm_buf_release(&want);
	wm_buf_release(&got);
}

/* Recorded bytes: XXH3-64 with seed 0 of "a" is e6c632b61e964e1f, as xxhsum -H3 says. */
static void
test_bytes(void)
{
	struct wm_distinct distinct = { 0 };
	struct wm_arena arena = { 0 };
	struct wm_value value = { .text = wm_span("a", 1), .kind = WM_KIND_TEXT };
	struct wm_buf out;
	struct wm_get in;

	wm_distinct_add(&distinct, &arena, &value);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_distinct_encode(&distinct, &out);
	tap_ok(wm_span_equal(wm_buf_span(&out), wm_span("\1\x1f\x4e\x96\x1e\xb6\x32\xc6\xe6", 9)),
		"a set is its hashes, XXH3 with seed 0");
	static const struct {
		struct wm_span bytes;
		const char *name;
	} bad[] = { { { "", 0 }, "nothing" }, { { "\2\1\0\0\0\0\0\0\0", 9 }, "a set cut off" },
		{ { "\2\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 17 }, "a hash twice" },
		{ { "\1\0\0\0\0\0\0\0\0", 9 }, "a hash that there is not" }, { { "\x81\x08", 2 }, "no registers" },
		{ { "\x82\x08", 2 }, "a number above all" } };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		distinct = (struct wm_distinct){ 0 };
		char *bytes = wm_memdup(bad[i].bytes.data, bad[i].bytes.len);
		wm_get_init(&in, wm_span(bytes, bad[i].bytes.len));
		tap_ok(!wm_distinct_decode(&distinct, &arena, &in), "refused: %s", bad[i].name);
		free(bytes);
	}
	wm_buf_reset(&out);
	wm_buf_add(&out, "\x81\x08", 2);
	for (size_t i = 0; i < 3072; i++)
		wm_buf_add_byte(&out, (char)0xff);
	distinct = (struct wm_distinct){ 0 };
	wm_get_init(&in, wm_buf_span(&out));
	tap_ok(!wm_distinct_decode(&distinct, &arena, &in), "refused: a register beyond the bits of a hash");
	wm_buf_release(&out);
	wm_arena_release(&arena);
}

int
main(void)
{
	test_exact();
	test_kinds();
	test_error();
	test_merge();
	test_bytes();
	return tap_done();
}
