/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/buf.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

static void
test_unbounded(void)
{
	struct wm_buf buf;
	char want[200000];
	size_t len = 0;

	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	tap_ok(buf.len == 0 && buf.data == NULL, "a new buffer holds nothing");
	wm_buf_add(&buf, NULL, 0);
	tap_int((int64_t)buf.len, 0, "nothing can be added");
	while (len + 20 < sizeof(want)) {
		char piece[20];
		size_t size = len % 19 + 1;

		memset(piece, (int)('a' + len % 26), size);
		memcpy(want + len, piece, size);
		wm_buf_add(&buf, piece, size);
		len += size;
	}
	tap_ok(wm_span_equal(wm_buf_span(&buf), wm_span(want, len)), "many pieces stand one behind the other");
	tap_ok(buf.capacity < 4 * len, "and the memory is in proportion");

	size_t capacity = buf.capacity;
	wm_buf_reset(&buf);
	tap_ok(buf.len == 0 && buf.capacity == capacity, "reset empties it and keeps the memory");
	wm_buf_add_text(&buf, "one");
	wm_buf_add_byte(&buf, '\0');
	wm_buf_addf(&buf, "%d-%s", 42, "two");
	tap_ok(wm_span_equal(wm_buf_span(&buf), wm_span("one\00042-two", 10)), "text, byte (also NUL) and format");
	memset(want, 'x', 5000);
	want[5000] = '\0';
	wm_buf_reset(&buf);
	wm_buf_addf(&buf, "<%s>", want);
	tap_ok(buf.len == 5002 && buf.data[0] == '<' && buf.data[5001] == '>', "a long format");
	wm_buf_release(&buf);
	tap_ok(buf.data == NULL && buf.capacity == 0, "released it holds no memory");
}

static void
test_maximum(void)
{
	struct wm_buf buf;

	wm_buf_init(&buf, 10);
	tap_ok(wm_buf_append(&buf, "1234567", 7), "below the maximum");
	tap_ok(!wm_buf_append(&buf, "abcd", 4), "one byte beyond it is refused");
	tap_span(wm_buf_span(&buf), "1234567", "whole: nothing was added");
	tap_ok(wm_buf_append(&buf, "abc", 3), "up to it is not");
	tap_span(wm_buf_span(&buf), "1234567abc", "and stands there");
	tap_ok(!wm_buf_append(&buf, "x", 1) && !wm_buf_reserve(&buf, 1), "then it is full");
	tap_ok(wm_buf_append(&buf, "", 0) && wm_buf_reserve(&buf, 0), "for all but nothing");
	tap_ok(!wm_buf_reserve(&buf, SIZE_MAX), "a size that would wrap is refused");
	tap_ok(buf.capacity <= 10, "no memory beyond the maximum");
	wm_buf_release(&buf);

	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	tap_ok(wm_buf_reserve(&buf, 1000) && buf.capacity >= 1000 && buf.len == 0,
		"reserve makes room and adds nothing");
	const char *data = buf.data;
	for (int i = 0; i < 1000; i++)
		wm_buf_add_byte(&buf, 'x');
	tap_ok(buf.data == data, "that is used without moving");
	wm_buf_release(&buf);
}

/* What a sink was given, and how. */
struct taken {
	struct wm_buf bytes;
	size_t longest;
	uint64_t puts;
};

static void
take(void *self, struct wm_span bytes)
{
	struct taken *taken = self;

	wm_buf_add(&taken->bytes, bytes.data, bytes.len);
	taken->puts++;
	if (bytes.len > taken->longest)
		taken->longest = bytes.len;
}

static void
test_sink(void)
{
	struct taken taken = { 0 };
	const struct wm_buf_sink sink = { &taken, take };
	char *large = wm_malloc(300000);
	struct wm_buf buf, want;
	uint64_t random = 1;
	size_t capacity_max = 0;

	wm_buf_init(&taken.bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	wm_buf_init_sink(&buf, &sink);
	wm_buf_add(&buf, "abc", 3);
	tap_ok(taken.puts == 0 && buf.len == 3, "what is small waits");
	wm_buf_flush(&buf);
	tap_span(wm_buf_span(&taken.bytes), "abc", "until it is handed on");
	wm_buf_flush(&buf);
	tap_int((int64_t)taken.puts, 1, "nothing is not");
	wm_buf_add(&want, "abc", 3);
	for (size_t i = 0; i < 300000; i++)
		large[i] = (char)('a' + tap_random(&random) % 26);
	for (int i = 0; i < 5000; i++) {
		size_t len = tap_random(&random) % (i % 500 == 0 ? 300000 : 900);

		wm_buf_add(&want, large, len);
		wm_buf_add_byte(&want, 'x');
		wm_buf_add(&buf, large, len);
		wm_buf_add_byte(&buf, 'x');
		if (buf.capacity > capacity_max)
			capacity_max = buf.capacity;
	}
	wm_buf_flush(&buf);
	tap_ok(wm_span_equal(wm_buf_span(&taken.bytes), wm_buf_span(&want)), "all that was added arrives, in order");
	tap_int((int64_t)capacity_max, 65536, "never is more than a piece held");
	tap_ok(taken.longest > 200000, "what is larger than a piece is handed on without a copy");
	tap_ok(taken.puts < want.len / 30000, "and the small in full pieces");
	wm_buf_release(&buf);
	wm_buf_release(&want);
	wm_buf_release(&taken.bytes);
	free(large);
}

int
main(void)
{
	test_unbounded();
	test_sink();
	test_maximum();
	return tap_done();
}
