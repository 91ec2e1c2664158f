/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/codec.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/unit/tap.h"

static void
check_bytes(const struct wm_buf *buf, const char *bytes, size_t len, const char *name)
{
	if (!tap_ok(wm_span_equal(wm_buf_span(buf), wm_span(bytes, len)), "%s", name)) {
		printf("#   got");
		for (size_t i = 0; i < buf->len; i++)
			printf(" %02x", (unsigned char)buf->data[i]);
		printf("\n");
	}
}

/* LEB128 examples of the DWARF standard, and the ends. */
static void
test_bytes(void)
{
	static const struct {
		uint64_t value;
		const char *bytes;
		size_t len;
	} varints[] = {
		{ 0, "\0", 1 },
		{ 2, "\x02", 1 },
		{ 127, "\x7f", 1 },
		{ 128, "\x80\x01", 2 },
		{ 129, "\x81\x01", 2 },
		{ 12857, "\xb9\x64", 2 },
		{ 624485, "\xe5\x8e\x26", 3 },
		{ UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10 },
	};
	struct wm_buf buf;
	struct wm_get in;

	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	wm_put_u8(&buf, 0xfe);
	wm_put_u32(&buf, 0x01020304);
	wm_put_u64(&buf, UINT64_C(0x1122334455667788));
	wm_put_i64(&buf, -2);
	wm_put_double(&buf, 1.5);
	wm_put_span(&buf, wm_span("a\0b", 3));
	check_bytes(&buf,
		"\xfe\x04\x03\x02\x01\x88\x77\x66\x55\x44\x33\x22\x11\xfe\xff\xff\xff\xff\xff\xff\xff"
		"\0\0\0\0\0\0\xf8\x3f\x03"
		"a\0b",
		33, "little-endian, whatever the machine");
	wm_get_init(&in, wm_buf_span(&buf));
	tap_int(wm_get_u8(&in), 0xfe, "u8");
	tap_int(wm_get_u32(&in), 0x01020304, "u32");
	tap_int((int64_t)wm_get_u64(&in), INT64_C(0x1122334455667788), "u64");
	tap_int(wm_get_i64(&in), -2, "i64");
	tap_ok(wm_get_double(&in) == 1.5, "double");
	tap_ok(wm_span_equal(wm_get_span(&in), wm_span("a\0b", 3)), "span");
	tap_ok(wm_get_left(&in) == 0 && !in.failed, "nothing is left");

	for (size_t i = 0; i < sizeof(varints) / sizeof(varints[0]); i++) {
		wm_buf_reset(&buf);
		wm_put_varint(&buf, varints[i].value);
		check_bytes(&buf, varints[i].bytes, varints[i].len, "a varint");
		wm_get_init(&in, wm_span(varints[i].bytes, varints[i].len));
		tap_ok(wm_get_varint(&in) == varints[i].value && !in.failed && wm_get_left(&in) == 0, "and back");
	}
	wm_buf_release(&buf);
}

static void
test_failures(void)
{
	struct wm_get in;

	wm_get_init(&in, wm_span("\1\2\3", 3));
	tap_ok(wm_get_u32(&in) == 0 && in.failed, "a number that is cut off is 0 and a failure");
	tap_ok(wm_get_left(&in) == 0 && wm_get_u8(&in) == 0 && in.failed, "after which nothing is read any more");

	wm_get_init(&in, wm_span("\x80\x80", 2));
	tap_ok(wm_get_varint(&in) == 0 && in.failed, "a varint that is cut off");
	wm_get_init(&in, wm_span("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10));
	tap_ok(wm_get_varint(&in) == 0 && in.failed, "a varint of 65 bits");
	wm_get_init(&in, wm_span("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11));
	tap_ok(wm_get_varint(&in) == 0 && in.failed, "a varint of 11 bytes");

	wm_get_init(&in, wm_span("\3ab", 3));
	tap_ok(wm_get_span(&in).len == 0 && in.failed, "a text longer than what is left");
	wm_get_init(&in,
		wm_span("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
			"a",
			11));
	tap_ok(wm_get_span(&in).len == 0 && in.failed, "a text of 2^64 - 1 bytes");

	wm_get_init(&in, wm_span("ab", 2));
	tap_int((int64_t)wm_get_left(&in), 2, "bytes left");
	wm_get_fail(&in);
	tap_ok(in.failed && wm_get_left(&in) == 0 && wm_get_u8(&in) == 0, "a failure that the caller found");

	wm_get_init(&in, wm_span("", 0));
	tap_ok(wm_get_left(&in) == 0 && !in.failed, "no bytes are no failure");
}

static void
test_random(void)
{
	uint64_t seed = 1;
	bool ok = true;
	struct wm_buf buf;

	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	for (int round = 0; round < 300 && ok; round++) {
		uint64_t values[100];
		struct wm_get in;

		wm_buf_reset(&buf);
		for (size_t i = 0; i < 100; i++) {
			values[i] = tap_random(&seed) >> tap_random(&seed) % 64;
			wm_put_varint(&buf, values[i]);
			wm_put_span(&buf, wm_span((const char *)values, values[i] % 700));
		}
		char *bytes = wm_memdup(buf.data, buf.len);
		wm_get_init(&in, wm_span(bytes, buf.len));
		for (size_t i = 0; i < 100; i++) {
			ok = ok && wm_get_varint(&in) == values[i];
			ok = ok && wm_get_span(&in).len == values[i] % 700;
		}
		ok = ok && !in.failed && wm_get_left(&in) == 0;

		/* Any bytes end in a value or a failure (the sanitizers watch). */
		size_t len = tap_random(&seed) % buf.len;
		for (size_t i = 0; i < len; i++)
			bytes[i] = (char)tap_random(&seed);
		wm_get_init(&in, wm_span(bytes, len));
		while (!in.failed && wm_get_left(&in) > 0)
			(void)(tap_random(&seed) % 2 ? wm_get_varint(&in) : wm_get_span(&in).len);
		free(bytes);
	}
	wm_buf_release(&buf);
	tap_ok(ok, "random numbers and texts come back");

	struct wm_buf special;
	struct wm_get in;
	wm_buf_init(&special, WM_BUF_UNBOUNDED);
	wm_put_double(&special, -0.0);
	wm_put_double(&special, (double)NAN);
	wm_put_i64(&special, INT64_MIN);
	wm_get_init(&in, wm_buf_span(&special));
	double zero = wm_get_double(&in);
	tap_ok(zero == 0 && signbit(zero), "minus zero keeps its sign");
	tap_ok(isnan(wm_get_double(&in)), "NaN stays NaN");
	tap_ok(wm_get_i64(&in) == INT64_MIN, "the least integer");
	wm_buf_release(&special);
}

/* A source that fails at its n-th read; 0: at none. */
struct source {
	struct wm_span left;
	size_t reads, fail_at;
	size_t asked; /* bytes of all reads */
};

static bool
read_source(void *self, void *data, size_t len)
{
	struct source *source = self;

	source->asked += len;
	if (++source->reads == source->fail_at || len > source->left.len)
		return false;
	memcpy(data, source->left.data, len);
	source->left = wm_span(source->left.data + len, source->left.len - len);
	return true;
}

/* Bytes that tell their place. */
static bool
is_pattern(struct wm_span text, uint64_t number)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] != (unsigned char)(number * 31 + i))
			return false;
	return true;
}

/* Items of a number and a few texts of up to a multiple of a piece. */
#define ITEMS 400
#define TEXTS 5

static size_t
text_len(uint64_t number)
{
	return (size_t)(number % 97 == 0 ? 70000 + number * 100 : number * 7919 % 900);
}

static void
put_items(struct wm_buf *out)
{
	for (uint64_t number = 0; number < (uint64_t)ITEMS * TEXTS; number++) {
		if (number % TEXTS == 0)
			wm_put_u64(out, number);
		wm_put_varint(out, text_len(number));
		for (size_t i = 0; i < text_len(number); i++)
			wm_buf_add_byte(out, (char)(unsigned char)(number * 31 + i));
	}
}

/* Whether all items are as they were put, the texts of each until it is given back; without giving back: to the end. */
static bool
get_items(struct wm_get *in, bool gives_back)
{
	static struct wm_span texts[ITEMS * TEXTS];
	bool is_right = true;
	uint64_t first = 0;

	for (uint64_t number = 0; number < (uint64_t)ITEMS * TEXTS; number++) {
		if (number % TEXTS == 0 && gives_back) {
			wm_get_give_back(in);
			first = number;
		}
		if (number % TEXTS == 0)
			is_right = is_right && wm_get_u64(in) == number;
		texts[number] = wm_get_span(in);
		is_right = is_right && texts[number].len == text_len(number);
		if (number % TEXTS == TEXTS - 1)
			for (uint64_t i = first; i <= number && is_right; i++)
				is_right = is_pattern(texts[i], i);
	}
	return is_right && !in->failed && wm_get_left(in) == 0;
}

static void
test_source(void)
{
	struct source source = { 0 };
	const struct wm_get_source reader = { &source, read_source };
	struct wm_buf all;
	struct wm_get in;
	bool is_right = true;

	wm_buf_init(&all, WM_BUF_UNBOUNDED);
	put_items(&all);
	for (int gives_back = 0; gives_back < 2; gives_back++) {
		source = (struct source){ .left = wm_buf_span(&all) };
		wm_get_open(&in, &reader, all.len);
		tap_ok(wm_get_left(&in) == all.len && source.reads == 0, "before the first read all is left");
		tap_ok(get_items(&in, gives_back), "items come piece by piece, texts stay where they are until %s",
			gives_back ? "they are given back" : "the end");
		tap_ok(source.reads > 20 && source.asked == all.len, "each byte is read once");
		wm_get_close(&in);
	}

	size_t reads = source.reads;
	for (size_t fail_at = 1; fail_at <= reads && is_right; fail_at++) {
		source = (struct source){ .left = wm_buf_span(&all), .fail_at = fail_at };
		wm_get_open(&in, &reader, all.len);
		is_right = !get_items(&in, true) && in.failed && wm_get_left(&in) == 0 && source.reads == fail_at;
		wm_get_close(&in);
	}
	tap_ok(is_right, "a read that fails is a failure, and nothing is read after it");

	wm_buf_reset(&all);
	wm_put_varint(&all, 200000);
	wm_buf_add(&all, "too short", 9);
	source = (struct source){ .left = wm_buf_span(&all) };
	wm_get_open(&in, &reader, all.len);
	tap_ok(wm_get_span(&in).len == 0 && in.failed && source.reads == 1,
		"a text longer than the rest is refused before anything is read for it");
	wm_get_close(&in);
	wm_get_open(&in, &reader, 0);
	tap_ok(wm_get_left(&in) == 0 && wm_get_u8(&in) == 0 && in.failed && source.reads == 1, "a source of no bytes");
	wm_get_close(&in);
	wm_buf_release(&all);
}

int
main(void)
{
	test_source();
	test_bytes();
	test_failures();
	test_random();
	return tap_done();
}
