/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/window.h"

#include <assert.h>

#include "lib/base/limits.h"
#include "lib/event/watermark.h"
#include "lib/time/civil.h"

/* 1970-01-05, the first Monday. */
#define FIRST_MONDAY_DAYS 4

void
wm_windows_init(struct wm_windows *windows, int64_t size_us, int64_t slide_us, int64_t offset_us)
{
	assert(0 < slide_us && slide_us <= size_us && size_us <= WM_DURATION_US_MAX);
	*windows = (struct wm_windows){
		.size_us = size_us,
		.slide_us = slide_us,
		.offset_us = wm_floor_mod(offset_us, slide_us),
		.rest_us = size_us % slide_us,
	};
}

void
wm_windows_init_cumulating(struct wm_windows *windows, int64_t size_us, int64_t step_us, int64_t offset_us)
{
	assert(0 < step_us && step_us <= size_us && size_us <= WM_DURATION_US_MAX && size_us % step_us == 0);
	*windows = (struct wm_windows){
		.size_us = size_us,
		.slide_us = step_us,
		.offset_us = wm_floor_mod(offset_us, size_us),
		.steps = size_us / step_us,
	};
}

void
wm_windows_init_calendar(struct wm_windows *windows, enum wm_calendar_unit unit, int64_t count, int64_t offset_us,
	const struct wm_zone *zone)
{
	bool is_days = unit == WM_CALENDAR_DAY || unit == WM_CALENDAR_WEEK;

	assert(unit != WM_CALENDAR_NONE && count > 0);
	if (is_days && wm_zone_is_utc(zone)) {
		int64_t first_us = unit == WM_CALENDAR_WEEK ? FIRST_MONDAY_DAYS * WM_US_PER_DAY : 0;
		int64_t size_us = count * (unit == WM_CALENDAR_WEEK ? 7 : 1) * WM_US_PER_DAY;

		wm_windows_init(windows, size_us, size_us, first_us + offset_us);
		return;
	}
	*windows = (struct wm_windows){
		.offset_us = offset_us,
		.calendar = unit,
		.calendar_count = count,
		.zone = zone,
	};
}

/* The instant at which the calendar window of a number starts: the offset counts on from midnight by the clock, whose days have 23 and 25 hours. */
static int64_t
calendar_start_us(const struct wm_windows *windows, int64_t number)
{
	int64_t unit = number * windows->calendar_count;
	int64_t days;

	switch (windows->calendar) {
	case WM_CALENDAR_WEEK:
		days = unit * 7 + FIRST_MONDAY_DAYS;
		break;
	case WM_CALENDAR_MONTH:
		days = wm_civil_days(1970 + wm_floor_div(unit, 12), (int)wm_floor_mod(unit, 12) + 1, 1);
		break;
	case WM_CALENDAR_YEAR:
		days = wm_civil_days(1970 + unit, 1, 1);
		break;
	default:
		days = unit;
		break;
	}
	return wm_zone_from_local(windows->zone, days * WM_US_PER_DAY + windows->offset_us, WM_REPEATED_EARLIER, NULL);
}

static int64_t
calendar_number(const struct wm_windows *windows, int64_t time_us)
{
	int64_t local_us = time_us + wm_zone_offset_us(windows->zone, time_us);
	int64_t days = wm_floor_div(local_us - windows->offset_us, WM_US_PER_DAY);
	struct wm_civil date = wm_civil_from_days(days);
	int64_t unit;

	switch (windows->calendar) {
	case WM_CALENDAR_WEEK:
		unit = wm_floor_div(days - FIRST_MONDAY_DAYS, 7);
		break;
	case WM_CALENDAR_MONTH:
		unit = (date.year - 1970) * 12 + date.month - 1;
		break;
	case WM_CALENDAR_YEAR:
		unit = date.year - 1970;
		break;
	default:
		unit = days;
		break;
	}
	int64_t number = wm_floor_div(unit, windows->calendar_count);
	/* Where a clock change repeats the hour of a start, the clock alone may name a neighbour. */
	while (time_us < calendar_start_us(windows, number))
		number--;
	while (time_us >= calendar_start_us(windows, number + 1))
		number++;
	return number;
}

bool
wm_windows_are_disjoint(const struct wm_windows *windows)
{
	return windows->calendar != WM_CALENDAR_NONE || (windows->slide_us == windows->size_us);
}

/* Number of the first of the cumulating windows that share a start with this one. */
static int64_t
first_step(const struct wm_windows *windows, int64_t number)
{
	return number - wm_floor_mod(number, windows->steps);
}

int64_t
wm_window_start_us(const struct wm_windows *windows, int64_t number)
{
	if (windows->calendar != WM_CALENDAR_NONE)
		return calendar_start_us(windows, number);
	if (windows->steps != 0)
		number = first_step(windows, number);
	return windows->offset_us + number * windows->slide_us;
}

int64_t
wm_window_end_us(const struct wm_windows *windows, int64_t number)
{
	if (windows->calendar != WM_CALENDAR_NONE)
		return calendar_start_us(windows, number + 1);
	int64_t length_us = windows->steps != 0 ? windows->slide_us : windows->size_us;

	return windows->offset_us + number * windows->slide_us + length_us;
}

int64_t
wm_window_first_open(const struct wm_windows *windows, int64_t watermark_us)
{
	if (watermark_us == WM_TIME_NONE || watermark_us == WM_TIME_END)
		return watermark_us;
	/* A calendar window that holds the watermark is the first to end behind it. */
	if (windows->calendar != WM_CALENDAR_NONE)
		return calendar_number(windows, watermark_us);
	int64_t length_us = windows->steps != 0 ? windows->slide_us : windows->size_us;

	return wm_floor_div(watermark_us - length_us - windows->offset_us, windows->slide_us) + 1;
}

void
wm_windows_slice(const struct wm_windows *windows, int64_t time_us, struct wm_slice *slice)
{
	if (windows->calendar != WM_CALENDAR_NONE) {
		int64_t number = calendar_number(windows, time_us);
		int64_t end_us = calendar_start_us(windows, number + 1);

		*slice = (struct wm_slice){ number, calendar_start_us(windows, number), end_us, number, number, end_us,
			end_us };
		return;
	}
	int64_t window_last = wm_floor_div(time_us - windows->offset_us, windows->slide_us);
	int64_t start_us = windows->offset_us + window_last * windows->slide_us;

	if (windows->steps != 0) {
		slice->number = slice->window_first = window_last;
		slice->window_last = first_step(windows, window_last) + windows->steps - 1;
		slice->start_us = start_us;
		slice->end_us = slice->window_first_end_us = start_us + windows->slide_us;
		slice->window_last_end_us = wm_window_end_us(windows, slice->window_last);
		return;
	}
	bool is_cut = windows->rest_us != 0;
	bool is_second = is_cut && time_us - start_us >= windows->rest_us;

	slice->number = is_cut ? 2 * window_last + is_second : window_last;
	slice->start_us = start_us + (is_second ? windows->rest_us : 0);
	slice->end_us = start_us + (is_cut && !is_second ? windows->rest_us : windows->slide_us);
	slice->window_last = window_last;
	slice->window_last_end_us = start_us + windows->size_us;
	/* The first window whose end lies behind the slice's start. */
	slice->window_first = wm_window_first_open(windows, slice->start_us);
	slice->window_first_end_us = wm_window_end_us(windows, slice->window_first);
}

int64_t
wm_window_slice_begin(const struct wm_windows *windows, int64_t number)
{
	if (windows->steps != 0)
		return first_step(windows, number);
	return windows->rest_us != 0 ? 2 * number : number;
}

int64_t
wm_window_slice_end(const struct wm_windows *windows, int64_t number)
{
	if (windows->calendar != WM_CALENDAR_NONE || windows->steps != 0)
		return number + 1;
	int64_t slides = windows->size_us / windows->slide_us;

	return windows->rest_us != 0 ? 2 * (number + slides) + 1 : number + slides;
}
