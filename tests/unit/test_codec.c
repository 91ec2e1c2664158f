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

int
main(void)
{
	test_bytes();
	test_failures();
	test_random();
	return tap_done();
}
