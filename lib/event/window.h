/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window - which windows a time belongs to.
 *
 * Windows are half open, [start, end), and numbered along the time line.
 * Fixed windows start at offset + number * slide and are size long; a tumbling
 * one has slide = size. Calendar windows (days, weeks from Monday, months,
 * years of a zone) tumble too; they start at local midnight and so are not all
 * of one length. Cumulating windows share a start, on a grid of their size, and
 * end one slide after the other up to that size: number n ends at offset +
 * (n + 1) * slide. All divisions are floored: right before 1970. Both starts and
 * ends never fall as numbers rise.
 *
 * A slice is the time between two neighbouring window borders (starts or ends);
 * every window is a row of whole slices, at most two a slide. So a record is
 * aggregated once, in its slice, whatever size / slide may be. Slices are
 * numbered without gaps.
 */
#ifndef WM_EVENT_WINDOW_H
#define WM_EVENT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/time/duration.h"
#include "lib/time/zone.h"

/* Fields are for reading. */
struct wm_windows {
	int64_t size_us;  /* of fixed windows */
	int64_t slide_us; /* 0 < slide_us <= size_us */
	int64_t offset_us;
	enum wm_calendar_unit calendar; /* WM_CALENDAR_NONE: fixed */
	int64_t calendar_count;
	const struct wm_zone *zone; /* of calendar windows; borrowed */
	int64_t rest_us;            /* size mod slide: where a window end cuts a slide in two, or 0 */
	int64_t steps;              /* of cumulating windows: how many share a start; else 0 */
};

struct wm_slice {
	int64_t number;
	int64_t start_us;
	int64_t end_us;
	int64_t window_first; /* numbers of the first and last window that hold it */
	int64_t window_last;
	int64_t window_first_end_us; /* their ends */
	int64_t window_last_end_us;
};

/* The smallest size and slide is 1 us; offset is taken as it is. Asserted: 0 < slide_us <= size_us <= WM_DURATION_US_MAX. */
void wm_windows_init(struct wm_windows *windows, int64_t size_us, int64_t slide_us, int64_t offset_us);

/*
 * Windows that share a start, offset + k * size_us, and end at each multiple of step_us from it up to the size. Asserted: 0 < step_us <=
 * size_us <= WM_DURATION_US_MAX, and step_us divides size_us.
 */
void wm_windows_init_cumulating(struct wm_windows *windows, int64_t size_us, int64_t step_us, int64_t offset_us);

/*
 * count > 0 units of the calendar of zone, counted from 1970-01-01 (weeks from 1970-01-05), that start offset_us after midnight by the
 * clock: of a start that the clock skips, forward by the gap; of one that it repeats, the earlier. In UTC days and weeks are fixed windows.
 */
void wm_windows_init_calendar(struct wm_windows *windows, enum wm_calendar_unit unit, int64_t count, int64_t offset_us,
	const struct wm_zone *zone);

/* Whether no time is in two windows: slices are windows then, and have their numbers. */
bool wm_windows_are_disjoint(const struct wm_windows *windows);

/* The slice of a time; times are within the years of limits.h. */
void wm_windows_slice(const struct wm_windows *windows, int64_t time_us, struct wm_slice *slice);

int64_t wm_window_start_us(const struct wm_windows *windows, int64_t number);
int64_t wm_window_end_us(const struct wm_windows *windows, int64_t number);

/* Numbers of the first slice of a window, and of the one behind its last. */
int64_t wm_window_slice_begin(const struct wm_windows *windows, int64_t number);
int64_t wm_window_slice_end(const struct wm_windows *windows, int64_t number);

/* Number of the first window that is not complete at a watermark: INT64_MIN and INT64_MAX at the ends of time. */
int64_t wm_window_first_open(const struct wm_windows *windows, int64_t watermark_us);

#endif
