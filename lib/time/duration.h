/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duration - lengths of time as people write them.
 *
 * "250us", "250ms", "90s", "10m", "1h30m", "7d", "2w", with a fraction ("1.5h")
 * where it is whole microseconds; words ("10 minutes", "1 hour 30 minutes");
 * ISO 8601 ("PT10M", "P1DT12H"). A leading minus makes all of it negative, a leading plus says nothing.
 * Units come in any order, each once; words of three letters and more in any case.
 * "1mo" and "1y" are calendar units: they have no fixed length.
 */
#ifndef WM_TIME_DURATION_H
#define WM_TIME_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/span.h"

enum wm_calendar_unit { WM_CALENDAR_NONE = 0, WM_CALENDAR_DAY, WM_CALENDAR_WEEK, WM_CALENDAR_MONTH, WM_CALENDAR_YEAR };

/*
 * Fields are for reading. A text of calendar units of one kind alone ("1d",
 * "2w", "3mo", "1 year", "P1M") has that kind and number beside its length.
 */
struct wm_duration {
	int64_t us;                     /* a day is 24 hours, a week 7 days; 0 for months and years */
	enum wm_calendar_unit calendar; /* WM_CALENDAR_NONE: an elapsed time ("24h", "1d12h") */
	int64_t calendar_count;         /* of that unit; 0 with WM_CALENDAR_NONE */
};

/*
 * Fails (WM_ERR_USAGE) on what is no duration. The message quotes the text and says what to
 * write: a bare number is asked what it counts ('10': ten what? write 10s, 10m
 * or 10h), 1M is offered 1m and 1mo, a length above WM_DURATION_US_MAX is named as too long.
 * It holds no option name: the caller puts "--tumbling: " before it.
 */
WM_MUST_CHECK bool wm_duration_parse(struct wm_span text, struct wm_duration *duration, struct wm_err *err);

/* The same where a fixed length is needed: months and years are refused with "write 31d". */
WM_MUST_CHECK bool wm_duration_parse_fixed(struct wm_span text, int64_t *us, struct wm_err *err);

/* "1h30m", "250ms", "2d"; exact, the largest units first; "0s". */
void wm_duration_print(int64_t us, struct wm_buf *out);

/* Up to what a person would type: whole units, of the largest of which there are ten or more. Not negative, at most WM_DURATION_US_MAX. */
int64_t wm_duration_round_up(int64_t us);

/* a + b and a - b, held at the ends of int64_t instead of wrapping. */
int64_t wm_time_add(int64_t a_us, int64_t b_us);
int64_t wm_time_sub(int64_t a_us, int64_t b_us);

#endif
