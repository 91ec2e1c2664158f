/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/hash.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

static int
compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Published values of XXH3-64 with seed 0. */
static void
test_stable(void)
{
	tap_ok(wm_hash_stable(wm_span("", 0)) == UINT64_C(0x2d06800538d394c2), "XXH3-64 of nothing");
	tap_ok(wm_hash_stable(wm_span("a", 1)) == UINT64_C(0xe6c632b61e964e1f), "of one byte");
	tap_ok(wm_hash_stable(wm_span("abc", 3)) == UINT64_C(0x78af5f94892f3950), "of three");
}

/* Whatever the pieces, the hash of the whole, and of what there was in between. */
static void
test_stream(void)
{
	struct wm_hash_stream *stream = wm_hash_stream_new();
	char text[3000];
	size_t wrong = 0;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 7 % 251);
	for (size_t piece = 1; piece < sizeof(text); piece = piece * 3 + 1) {
		wm_hash_stream_reset(stream);
		for (size_t at = 0; at < sizeof(text); at += piece) {
			size_t len = piece < sizeof(text) - at ? piece : sizeof(text) - at;

			wrong += wm_hash_stream_value(stream) != wm_hash_stable(wm_span(text, at));
			wm_hash_stream_add(stream, wm_span(text + at, len));
		}
		wrong += wm_hash_stream_value(stream) != wm_hash_stable(wm_span(text, sizeof(text)));
	}
	tap_int((int64_t)wrong, 0, "a text in pieces has the hash of the whole");
	wm_hash_stream_free(stream);
	wm_hash_stream_free(NULL);
}

/* Texts of 0 to 40 bytes that differ in one byte, in length or in tag: no two with one hash. */
static void
test_distinct(void)
{
	enum { LENGTHS = 41, TEXTS = 40 * 41 / 2 * 3 + LENGTHS + 3 };
	static uint64_t hashes[TEXTS];
	size_t count = 0, same = 0;
	char text[LENGTHS] = { 0 };

	for (size_t len = 0; len < LENGTHS; len++) {
		hashes[count++] = wm_hash(wm_span(text, len), 0);
		for (size_t at = 0; at < len; at++) {
			for (char byte = 1; byte <= 3; byte++) {
				text[at] = byte;
				hashes[count++] = wm_hash(wm_span(text, len), 0);
				text[at] = 0;
			}
		}
	}
	for (uint64_t tag = 1; tag <= 3; tag++)
		hashes[count++] = wm_hash(wm_span("", 0), tag);
	qsort(hashes, count, sizeof(hashes[0]), compare_u64);
	for (size_t i = 1; i < count; i++)
		same += hashes[i] == hashes[i - 1];
	tap_int((int64_t)count, TEXTS, "texts that differ little");
	tap_int((int64_t)same, 0, "have different hashes");
	tap_ok(wm_hash(wm_span_of("a long text of more than sixteen"), 1) !=
			wm_hash(wm_span_of("a long text of more than sixteen"), 2),
		"the tag counts for long texts too");

	char copy[64] = "?seventeen bytes!";
	tap_ok(wm_hash(wm_span(copy + 1, 16), 3) == wm_hash(wm_span_of("seventeen bytes!"), 3),
		"where a text stands in memory has no part in it");
}

/* Texts of 0 to 40 bytes, with bytes that differ behind them. */
static void
test_equal(void)
{
	char a[42], b[42];
	bool ok = true;

	for (size_t len = 0; len <= 40; len++) {
		memset(a, 'x', sizeof(a));
		memset(b, 'x', sizeof(b));
		b[len] = 'y';
		ok = ok && wm_span_equal(wm_span(a, len), wm_span(b, len)) &&
			!wm_span_equal(wm_span(a, len), wm_span(a, len + 1));
		for (size_t at = 0; at < len; at++) {
			b[at] = 'y';
			ok = ok && !wm_span_equal(wm_span(a, len), wm_span(b, len));
			b[at] = 'x';
		}
	}
	tap_ok(ok, "texts are equal to their copies, and to none that differs in one byte");
}

/* Numbers in sequence, as keys often are, fill the buckets of a table evenly: by the low bits and by the high ones. */
static void
test_spread(void)
{
	enum { BUCKETS = 256, KEYS = BUCKETS * 64 };
	unsigned low[BUCKETS] = { 0 }, high[BUCKETS] = { 0 };
	double low_sum = 0, high_sum = 0;

	for (unsigned i = 0; i < KEYS; i++) {
		char text[24];
		int len = snprintf(text, sizeof(text), i % 2 ? "user%u" : "%u", i);
		uint64_t hash = wm_hash(wm_span(text, (size_t)len), 1);

		low[hash % BUCKETS]++;
		high[hash >> 56]++;
	}
	/* Chi squared with 255 degrees of freedom: 385 is passed once in 10 million. */
	for (size_t i = 0; i < BUCKETS; i++) {
		low_sum += (low[i] - 64.0) * (low[i] - 64.0) / 64;
		high_sum += (high[i] - 64.0) * (high[i] - 64.0) / 64;
	}
	tap_ok(low_sum < 385, "low bits are spread evenly: chi squared %.0f", low_sum);
	tap_ok(high_sum < 385, "high bits are: %.0f", high_sum);
}

int
main(void)
{
	test_stable();
	test_stream();
	test_distinct();
	test_equal();
	test_spread();

	uint64_t fixed = wm_hash(wm_span_of("key"), 0),
		 fixed_long = wm_hash(wm_span_of("a key of more than sixteen bytes"), 0);
	uint64_t stable = wm_hash_stable(wm_span_of("key"));
	wm_hash_init();
	tap_ok(wm_hash(wm_span_of("key"), 0) != fixed, "a secret that is drawn changes the hashes");
	tap_ok(wm_hash(wm_span_of("a key of more than sixteen bytes"), 0) != fixed_long, "those of long texts too");
	tap_ok(wm_hash_stable(wm_span_of("key")) == stable, "but not the stable ones");
	return tap_done();
}
