/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/windows.h"

#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/time/duration.h"
#include "lib/time/zone.h"

static bool
read_duration(const char *option, struct wm_span text, struct wm_duration *duration, struct wm_err *err)
{
	struct wm_err why;

	if (!wm_duration_parse(text, duration, &why))
		return wm_err_set(err, WM_ERR_USAGE, "%s: %s", option, why.message);
	if (duration->calendar == WM_CALENDAR_NONE ? duration->us <= 0 : duration->calendar_count <= 0)
		return wm_err_set(
			err, WM_ERR_USAGE, "%s: '%.*s': must be longer than zero", option, (int)text.len, text.data);
	return true;
}

static _Noreturn void
refuse(const struct wm_err *err)
{
	cli_misuse("%s", err->message);
}

bool
windows_read_length(const char *option, struct wm_span text, int64_t *us, struct wm_err *err)
{
	struct wm_duration duration;

	if (!read_duration(option, text, &duration, err))
		return false;
	if (duration.us == 0)
		return wm_err_set(err, WM_ERR_USAGE,
			"%s: '%.*s': months and years have no fixed length: they work with --tumbling alone", option,
			(int)text.len, text.data);
	*us = duration.us;
	return true;
}

int64_t
windows_length_us(const char *option, struct wm_span text)
{
	struct wm_err err;
	int64_t us;

	if (!windows_read_length(option, text, &us, &err))
		refuse(&err);
	return us;
}

int64_t
windows_grid_us(const char *option, struct wm_span text, const struct cli_common *common)
{
	struct wm_duration duration;
	struct wm_err err;
	bool is_local = common->zone != NULL && !wm_zone_is_utc(common->zone);

	if (!read_duration(option, text, &duration, &err))
		refuse(&err);
	if (duration.us == 0 ||
		(!common->is_spark &&
			(duration.calendar == WM_CALENDAR_WEEK || (duration.calendar == WM_CALENDAR_DAY && is_local))))
		cli_misuse("%s: '%.*s': windows of the calendar cannot be joined: write a number of hours, which begin "
			   "at 1970-01-01T00:00:00Z",
			option, (int)text.len, text.data);
	return duration.us;
}

bool
windows_read_tumbling(struct wm_windows *windows, const char *option, const char *text, const struct cli_common *common,
	int64_t offset_us, struct wm_err *err)
{
	const struct wm_zone *zone = common->zone == NULL ? wm_zone_utc() : common->zone;
	struct wm_duration size;

	if (!read_duration(option, wm_span_of(text), &size, err))
		return false;
	bool is_month = size.calendar == WM_CALENDAR_MONTH || size.calendar == WM_CALENDAR_YEAR;
	if (common->is_spark && is_month)
		return wm_err_set(
			err, WM_ERR_USAGE, "%s: '%s': Spark refuses months and years as window sizes", option, text);
	if (size.calendar != WM_CALENDAR_NONE && !common->is_spark)
		wm_windows_init_calendar(windows, size.calendar, size.calendar_count, offset_us, zone);
	else
		wm_windows_init(windows, size.us, size.us, offset_us);
	return true;
}

void
windows_tumbling(struct wm_windows *windows, const char *option, const char *text, const struct cli_common *common,
	int64_t offset_us)
{
	struct wm_err err;

	if (!windows_read_tumbling(windows, option, text, common, offset_us, &err))
		refuse(&err);
}

static bool
read_two_lengths(const char *option, const char *text, const char *form, int64_t *first_us, int64_t *second_us,
	struct wm_err *err)
{
	struct wm_span rest = wm_span_of(text), first, second, more;

	if (!wm_list_next(&rest, ',', &first) || !wm_list_next(&rest, ',', &second) || wm_list_next(&rest, ',', &more))
		return wm_err_set(err, WM_ERR_USAGE, "%s: '%s': write %s", option, text, form);
	return windows_read_length(option, first, first_us, err) && windows_read_length(option, second, second_us, err);
}

/* More windows a row than can be written. */
static bool
refuse_many(const char *option, const char *text, int64_t count, struct wm_err *err)
{
	return wm_err_set(err, WM_ERR_USAGE,
		"%s: '%s': each row would be in %lld windows, and each is written: %d are the most: is a unit wrong?",
		option, text, (long long)count, WM_WINDOWS_A_ROW_MAX);
}

bool
windows_read_sliding(
	struct wm_windows *windows, const char *option, const char *text, int64_t offset_us, struct wm_err *err)
{
	int64_t size_us, slide_us;

	if (!read_two_lengths(option, text, "SIZE,SLIDE, as in 1h,5m", &size_us, &slide_us, err))
		return false;
	if (slide_us > size_us)
		return wm_err_set(err, WM_ERR_USAGE,
			"%s: '%s': the slide is longer than the size, so rows between windows would be lost", option,
			text);
	if (size_us / slide_us > WM_WINDOWS_A_ROW_MAX)
		return refuse_many(option, text, size_us / slide_us, err);
	wm_windows_init(windows, size_us, slide_us, offset_us);
	return true;
}

void
windows_sliding(struct wm_windows *windows, const char *option, const char *text, int64_t offset_us)
{
	struct wm_err err;

	if (!windows_read_sliding(windows, option, text, offset_us, &err))
		refuse(&err);
}

bool
windows_read_cumulating(
	struct wm_windows *windows, const char *option, const char *text, int64_t offset_us, struct wm_err *err)
{
	int64_t max_us, step_us;

	if (!read_two_lengths(option, text, "MAX,STEP, as in 1d,1h", &max_us, &step_us, err))
		return false;
	if (step_us > max_us || max_us % step_us != 0)
		return wm_err_set(err, WM_ERR_USAGE, "%s: '%s': the step does not divide the length", option, text);
	if (max_us / step_us > WM_WINDOWS_A_ROW_MAX)
		return refuse_many(option, text, max_us / step_us, err);
	wm_windows_init_cumulating(windows, max_us, step_us, offset_us);
	return true;
}

void
windows_cumulating(struct wm_windows *windows, const char *option, const char *text, int64_t offset_us)
{
	struct wm_err err;

	if (!windows_read_cumulating(windows, option, text, offset_us, &err))
		refuse(&err);
}

bool
windows_read_early(const char *text, struct wm_pane_options *panes, struct wm_err *err)
{
	static const char prefix[] = "event:";
	uint64_t rows = 0;
	size_t at = 0;

	if (strncmp(text, prefix, sizeof(prefix) - 1) == 0)
		return windows_read_length(
			"--early", wm_span_of(text + sizeof(prefix) - 1), &panes->early_period_us, err);
	for (; wm_is_digit(text[at]) && rows < UINT64_MAX / 100; at++)
		rows = rows * 10 + (uint64_t)(text[at] - '0');
	if (rows == 0 || strcmp(text + at, "rows") != 0)
		return wm_err_set(err, WM_ERR_USAGE,
			"--early: '%s': write a number of rows, as in 100rows, or event:D, as in event:10s", text);
	panes->early_rows = rows;
	return true;
}
