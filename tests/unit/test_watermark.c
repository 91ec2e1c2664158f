/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/watermark.h"

#include "tests/unit/tap.h"

static void
test_worked_example(void)
{
	/* semantics: delay 10 minutes; dog 12:14 gives watermark 12:04 (minutes of a day as microseconds). */
	const int64_t minute = 60000000;
	struct wm_watermark wm;

	wm_watermark_init(&wm, 10 * minute);
	tap_ok(wm.watermark_us == WM_TIME_NONE, "no watermark before the first record");
	tap_ok(!wm_is_behind(INT64_MIN + 1, wm.watermark_us), "nothing is behind before it");
	wm_watermark_observe(&wm, 734 * minute);
	tap_ok(wm.watermark_us == WM_TIME_NONE, "observing alone does not move it");
	tap_ok(wm_watermark_advance(&wm), "advancing does");
	tap_int(wm.watermark_us, 724 * minute, "12:14 less 10 minutes is 12:04");
	wm_watermark_observe(&wm, 729 * minute);
	tap_ok(!wm_watermark_advance(&wm), "a record of 12:09 does not move it back");
	tap_ok(wm_is_behind(724 * minute - 1, wm.watermark_us), "W - 1 is behind");
	tap_ok(!wm_is_behind(724 * minute, wm.watermark_us), "W is not");
	tap_ok(wm_is_complete(724 * minute, wm.watermark_us), "a window that ends at W is complete");
	tap_ok(!wm_is_complete(724 * minute + 1, wm.watermark_us), "one that ends at W + 1 is not");
}

static void
test_milliseconds(void)
{
	struct wm_watermark wm;

	/* Spark 4.2 (02_tumbling_boundary): 24.999999 s less 5 s is 19.999 s. */
	wm_watermark_init(&wm, 5000000);
	wm_watermark_observe(&wm, 24999999);
	wm_watermark_advance(&wm);
	tap_int(wm.watermark_us, 19999000, "cut to the millisecond");
	wm_watermark_init(&wm, 0);
	wm_watermark_observe(&wm, -1);
	wm_watermark_advance(&wm);
	tap_int(wm.watermark_us, -1000, "toward the past before 1970 too");
	wm_watermark_init(&wm, 0);
	wm_watermark_observe(&wm, 0);
	tap_ok(wm_watermark_advance(&wm) && wm.watermark_us == 0, "event time 0 is a time");
}

static void
test_spark(void)
{
	struct wm_watermark wm;

	wm_watermark_init_spark(&wm, 1500);
	tap_int(wm.delay_us, 1000, "Spark cuts 1500 us to 1 ms");
	tap_int(wm.watermark_us, 0, "and begins at the epoch");
	wm_watermark_observe(&wm, -5000000);
	tap_ok(!wm_watermark_advance(&wm) && wm.watermark_us == 0, "and is never below");
}

static void
test_edges(void)
{
	struct wm_watermark wm;

	wm_watermark_init(&wm, 10);
	wm_watermark_observe(&wm, INT64_MIN + 5);
	tap_ok(!wm_watermark_advance(&wm) && wm.watermark_us == WM_TIME_NONE,
		"a subtraction that would wrap leaves it");
}

static void
test_never_back(void)
{
	uint64_t seed = 1;
	bool holds = true;

	for (int stream = 0; stream < 1000; stream++) {
		struct wm_watermark wm;
		int64_t delay_us = (int64_t)(tap_random(&seed) % 5000), highest = INT64_MIN, before;

		wm_watermark_init(&wm, delay_us);
		for (int i = 0; i < 100; i++) {
			int64_t time_us = (int64_t)(tap_random(&seed) % 20000) - 10000;

			before = wm.watermark_us;
			wm_watermark_observe(&wm, time_us);
			if (time_us > highest)
				highest = time_us;
			wm_watermark_advance(&wm);
			holds = holds && wm.watermark_us >= before;
			/* The definition, in whole milliseconds: the largest multiple of 1000 not above highest - delay. */
			holds = holds && wm.watermark_us <= highest - delay_us &&
				wm.watermark_us + 1000 > highest - delay_us && wm.watermark_us % 1000 == 0;
		}
	}
	tap_ok(holds, "1000 random streams: never back, and as defined");
}

static void
test_codec(void)
{
	struct wm_watermark wm, back;
	struct wm_buf bytes;
	struct wm_get in;

	wm_watermark_init(&wm, 7000);
	wm_watermark_observe(&wm, 123456789);
	wm_watermark_advance(&wm);
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_watermark_encode(&wm, &bytes);
	wm_watermark_init(&back, 9000);
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(wm_watermark_decode(&back, &in) && wm_get_left(&in) == 0, "decodes");
	tap_ok(back.highest_time_us == wm.highest_time_us && back.watermark_us == wm.watermark_us, "to the same state");
	tap_int(back.delay_us, 9000, "the delay is an option and stays");
	wm_get_init(&in, wm_span(bytes.data, bytes.len - 1));
	tap_ok(!wm_watermark_decode(&back, &in), "too few bytes are refused");
	wm_buf_release(&bytes);
}

int
main(void)
{
	test_worked_example();
	test_milliseconds();
	test_spark();
	test_edges();
	test_never_back();
	test_codec();
	return tap_done();
}
