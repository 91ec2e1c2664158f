/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/window.h"

#include "lib/event/watermark.h"
#include "lib/time/civil.h"
#include "lib/time/instant.h"
#include "tests/unit/tap.h"

/* Spark's rule, word for word: last = t - ((t - start) mod slide); windows [s, s + size) for s = last, last - slide, ... while s > t - size. */
static bool
slice_agrees(const struct wm_windows *w, int64_t size, int64_t slide, int64_t offset, int64_t t)
{
	int64_t last = t - (((t - offset) % slide + slide) % slide), first = last;
	struct wm_slice slice;

	while (first - slide > t - size)
		first -= slide;
	wm_windows_slice(w, t, &slice);
	return slice.start_us <= t && t < slice.end_us && wm_window_start_us(w, slice.window_last) == last &&
		slice.window_last_end_us == last + size && wm_window_start_us(w, slice.window_first) == first &&
		slice.window_first_end_us == first + size &&
		slice.window_last - slice.window_first == (last - first) / slide &&
		slice.number >= wm_window_slice_begin(w, slice.window_first) &&
		slice.number < wm_window_slice_end(w, slice.window_first) &&
		slice.number >= wm_window_slice_begin(w, slice.window_last) &&
		slice.number < wm_window_slice_end(w, slice.window_last);
}

/* The slices of a window, by their numbers, fill it without gap. */
static bool
slices_fill(const struct wm_windows *w, int64_t number)
{
	int64_t at = wm_window_start_us(w, number), expected = wm_window_slice_begin(w, number);
	struct wm_slice slice;

	while (at < wm_window_end_us(w, number)) {
		wm_windows_slice(w, at, &slice);
		if (slice.start_us != at || slice.number != expected++ || slice.end_us <= at)
			return false;
		at = slice.end_us;
	}
	return at == wm_window_end_us(w, number) && expected == wm_window_slice_end(w, number);
}

static void
test_fixed(void)
{
	uint64_t seed = 11;
	bool assigned = true, filled = true, opened = true;

	for (int i = 0; i < 20000; i++) {
		int64_t size = 1 + (int64_t)(tap_random(&seed) % 40),
			slide = 1 + (int64_t)(tap_random(&seed) % (uint64_t)size);
		int64_t offset = (int64_t)(tap_random(&seed) % 101) - 50, t = (int64_t)(tap_random(&seed) % 401) - 200;
		struct wm_windows w;

		wm_windows_init(&w, size, slide, offset);
		assigned = assigned && slice_agrees(&w, size, slide, offset, t);
		filled = filled && slices_fill(&w, t / 10);
		int64_t open = wm_window_first_open(&w, t);
		opened = opened && wm_window_end_us(&w, open) > t && wm_window_end_us(&w, open - 1) <= t;
	}
	tap_ok(assigned, "20000 random windows: assignment as Spark's rule");
	tap_ok(filled, "slices fill each window without gap");
	tap_ok(opened, "the first open window is the first that ends behind the watermark");
}

/* Windows that share a start, by trying each multiple of the step. */
static bool
cumulating_agrees(const struct wm_windows *w, int64_t size, int64_t step, int64_t offset, int64_t t)
{
	int64_t start = t - (((t - offset) % size + size) % size), end = start + step;
	struct wm_slice slice;

	wm_windows_slice(w, t, &slice);
	for (int64_t number = slice.window_first; number <= slice.window_last; number++) {
		while (end <= t)
			end += step;
		if (wm_window_start_us(w, number) != start || wm_window_end_us(w, number) != end)
			return false;
		end += step;
	}
	return end == start + size + step && slice.start_us <= t && t < slice.end_us &&
		slice.window_first_end_us == slice.end_us && slice.window_last_end_us == start + size &&
		slice.number >= wm_window_slice_begin(w, slice.window_first) &&
		slice.number < wm_window_slice_end(w, slice.window_first) &&
		slice.number >= wm_window_slice_begin(w, slice.window_last) &&
		slice.number < wm_window_slice_end(w, slice.window_last);
}

static void
test_cumulating(void)
{
	uint64_t seed = 12;
	bool assigned = true, filled = true, opened = true;

	for (int i = 0; i < 20000; i++) {
		int64_t step = 1 + (int64_t)(tap_random(&seed) % 12),
			size = step * (1 + (int64_t)(tap_random(&seed) % 9));
		int64_t offset = (int64_t)(tap_random(&seed) % 101) - 50, t = (int64_t)(tap_random(&seed) % 401) - 200;
		struct wm_windows w;

		wm_windows_init_cumulating(&w, size, step, offset);
		assigned = assigned && cumulating_agrees(&w, size, step, offset, t);
		filled = filled && slices_fill(&w, t / 10);
		int64_t open = wm_window_first_open(&w, t);
		opened = opened && wm_window_end_us(&w, open) > t && wm_window_end_us(&w, open - 1) <= t &&
			wm_windows_are_disjoint(&w) == (size == step);
	}
	tap_ok(assigned, "20000 random cumulating windows: each multiple of the step behind a time, from one start");
	tap_ok(filled, "slices fill each of them without gap");
	tap_ok(opened, "the first open one is the first that ends behind the watermark");
}

static int64_t
instant(const char *text)
{
	struct wm_err err;
	struct wm_instant_parser *parser = wm_instant_parser_new(wm_span_of("iso"), wm_zone_utc(), 0, NULL, &err);
	const char *why;
	int64_t time_us = 0;

	if (!wm_instant_parse(parser, wm_span_of(text), &time_us, &why))
		tap_ok(false, "%s: %s", text, why);
	wm_instant_parser_free(parser);
	return time_us;
}

static void
tap_window(const struct wm_windows *w, const char *at, const char *start, const char *end)
{
	struct wm_slice slice;

	wm_windows_slice(w, instant(at), &slice);
	tap_ok(slice.start_us == instant(start) && slice.end_us == instant(end) &&
			slice.window_first == slice.window_last && slice.window_last_end_us == slice.end_us,
		"%s lies in [%s, %s)", at, start, end);
}

static void
test_calendar(void)
{
	struct wm_err err;
	struct wm_zone *berlin = wm_zone_open(wm_span_of("Europe/Berlin"), &err);
	struct wm_windows w;

	wm_windows_init_calendar(&w, WM_CALENDAR_DAY, 1, 0, wm_zone_utc());
	tap_window(&w, "2024-02-29T23:59:59Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z");
	wm_windows_init_calendar(&w, WM_CALENDAR_WEEK, 1, 0, wm_zone_utc());
	/* 2024-01-01 was a Monday. */
	tap_window(&w, "2023-12-31T23:59:59Z", "2023-12-25T00:00:00Z", "2024-01-01T00:00:00Z");
	tap_window(&w, "2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "2024-01-08T00:00:00Z");
	wm_windows_init_calendar(&w, WM_CALENDAR_MONTH, 1, 0, wm_zone_utc());
	tap_window(&w, "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z");
	tap_window(&w, "1969-12-31T12:00:00Z", "1969-12-01T00:00:00Z", "1970-01-01T00:00:00Z");
	wm_windows_init_calendar(&w, WM_CALENDAR_MONTH, 3, 0, wm_zone_utc());
	tap_window(&w, "2024-05-05T12:00:00Z", "2024-04-01T00:00:00Z", "2024-07-01T00:00:00Z");
	wm_windows_init_calendar(&w, WM_CALENDAR_YEAR, 1, 0, wm_zone_utc());
	tap_window(&w, "1900-06-01T00:00:00Z", "1900-01-01T00:00:00Z", "1901-01-01T00:00:00Z");

	/* The clock went forward on 2025-03-30 and back on 2025-10-26: 23 and 25 hours. */
	wm_windows_init_calendar(&w, WM_CALENDAR_DAY, 1, 0, berlin);
	tap_window(&w, "2025-03-30T12:00:00Z", "2025-03-29T23:00:00Z", "2025-03-30T22:00:00Z");
	tap_window(&w, "2025-10-26T12:00:00Z", "2025-10-25T22:00:00Z", "2025-10-26T23:00:00Z");
	wm_windows_init_calendar(&w, WM_CALENDAR_WEEK, 1, 0, berlin);
	tap_window(&w, "2025-10-26T12:00:00Z", "2025-10-19T22:00:00Z", "2025-10-26T23:00:00Z");
	wm_windows_init_calendar(&w, WM_CALENDAR_MONTH, 1, 0, berlin);
	tap_window(&w, "2025-10-26T12:00:00Z", "2025-09-30T22:00:00Z", "2025-10-31T23:00:00Z");
	tap_ok(wm_window_first_open(&w, instant("2025-10-31T23:00:00Z")) ==
			wm_window_first_open(&w, instant("2025-10-31T22:59:59Z")) + 1,
		"October is complete at its end, not a second before");
	wm_zone_close(berlin);
}

int
main(void)
{
	test_fixed();
	test_cumulating();
	test_calendar();
	return tap_done();
}
