#include "cmd/windows.h"

#include "lib/base/list.h"
#include "lib/time/duration.h"
#include "lib/time/zone.h"

static struct wm_duration
parse_duration(const char *option, struct wm_span text)
{
	struct wm_duration duration;
	struct wm_err err;

	if (!wm_duration_parse(text, &duration, &err))
		cli_misuse("%s: %s", option, err.message);
	if (duration.calendar == WM_CALENDAR_NONE ? duration.us <= 0 : duration.calendar_count <= 0)
		cli_misuse("%s: '%.*s': must be longer than zero", option, (int)text.len, text.data);
	return duration;
}

int64_t
windows_length_us(const char *option, struct wm_span text)
{
	struct wm_duration duration = parse_duration(option, text);

	if (duration.us == 0)
		cli_misuse("%s: '%.*s': months and years have no fixed length: they work with --tumbling alone", option,
			(int)text.len, text.data);
	return duration.us;
}

int64_t
windows_grid_us(const char *option, struct wm_span text, const struct cli_common *common)
{
	struct wm_duration duration = parse_duration(option, text);
	bool is_local = common->zone != NULL && !wm_zone_is_utc(common->zone);

	if (duration.us == 0 ||
		(!common->is_spark &&
			(duration.calendar == WM_CALENDAR_WEEK || (duration.calendar == WM_CALENDAR_DAY && is_local))))
		cli_misuse("%s: '%.*s': windows of the calendar cannot be joined: write a number of hours, which begin "
			   "at 1970-01-01T00:00:00Z",
			option, (int)text.len, text.data);
	return duration.us;
}

void
windows_tumbling(struct wm_windows *windows, const char *option, const char *text, const struct cli_common *common,
	int64_t offset_us)
{
	const struct wm_zone *zone = common->zone == NULL ? wm_zone_utc() : common->zone;
	struct wm_duration size = parse_duration(option, wm_span_of(text));
	bool is_month = size.calendar == WM_CALENDAR_MONTH || size.calendar == WM_CALENDAR_YEAR;

	if (common->is_spark && is_month)
		cli_misuse("%s: '%s': Spark refuses months and years as window sizes", option, text);
	if (size.calendar != WM_CALENDAR_NONE && !common->is_spark)
		wm_windows_init_calendar(windows, size.calendar, size.calendar_count, offset_us, zone);
	else
		wm_windows_init(windows, size.us, size.us, offset_us);
}

void
windows_two_lengths(const char *option, const char *text, const char *form, int64_t *first_us, int64_t *second_us)
{
	struct wm_span rest = wm_span_of(text), first, second, more;

	if (!wm_list_next(&rest, ',', &first) || !wm_list_next(&rest, ',', &second) || wm_list_next(&rest, ',', &more))
		cli_misuse("%s: '%s': write %s", option, text, form);
	*first_us = windows_length_us(option, first);
	*second_us = windows_length_us(option, second);
}

void
windows_sliding(struct wm_windows *windows, const char *option, const char *text, int64_t offset_us)
{
	int64_t size_us, slide_us;

	windows_two_lengths(option, text, "SIZE,SLIDE, as in 1h,5m", &size_us, &slide_us);
	if (slide_us > size_us)
		cli_misuse("%s: '%s': the slide is longer than the size, so rows between windows would be lost", option,
			text);
	wm_windows_init(windows, size_us, slide_us, offset_us);
}

void
windows_cumulating(struct wm_windows *windows, const char *option, const char *text, int64_t offset_us)
{
	int64_t max_us, step_us;

	windows_two_lengths(option, text, "MAX,STEP, as in 1d,1h", &max_us, &step_us);
	if (step_us > max_us || max_us % step_us != 0)
		cli_misuse("%s: '%s': the step does not divide the length", option, text);
	wm_windows_init_cumulating(windows, max_us, step_us, offset_us);
}
