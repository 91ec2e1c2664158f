/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/time/duration.h"

#include <inttypes.h>

#include "lib/base/ascii.h"
#include "lib/base/decimal.h"
#include "lib/base/limits.h"
#include "lib/time/civil.h"

/* More digits than this behind the point, zeros aside, are never whole microseconds of any unit. */
#define FRACTION_DIGITS_USED 18

#define UNITS_SHOWN "us, ms, s, m, h, d, w, mo, y"

enum unit_index { UNIT_US, UNIT_MS, UNIT_S, UNIT_M, UNIT_H, UNIT_D, UNIT_W, UNIT_MO, UNIT_Y, UNIT_COUNT };

static const struct unit {
	const char *symbol;
	int64_t us; /* 0: no fixed length */
	int64_t count_max;
	enum wm_calendar_unit calendar;
	const char *names; /* blank-separated; those of three letters and more in any case */
} units[UNIT_COUNT] = {
	[UNIT_US] = { "us", 1, 0, WM_CALENDAR_NONE, "us \u00b5s \u03bcs usec usecs microsecond microseconds" },
	[UNIT_MS] = { "ms", 1000, 0, WM_CALENDAR_NONE, "ms msec msecs millisecond milliseconds" },
	[UNIT_S] = { "s", 1000000, 0, WM_CALENDAR_NONE, "s sec secs second seconds" },
	[UNIT_M] = { "m", 60000000, 0, WM_CALENDAR_NONE, "m min mins minute minutes" },
	[UNIT_H] = { "h", 3600000000, 0, WM_CALENDAR_NONE, "h hr hrs hour hours" },
	[UNIT_D] = { "d", 86400000000, 0, WM_CALENDAR_DAY, "d day days" },
	[UNIT_W] = { "w", 604800000000, 0, WM_CALENDAR_WEEK, "w week weeks" },
	[UNIT_MO] = { "mo", 0, 120000, WM_CALENDAR_MONTH, "mo month months" },
	[UNIT_Y] = { "y", 0, 10000, WM_CALENDAR_YEAR, "y yr yrs year years" },
};

/* The units of ISO 8601 in the order they must come in. */
static const struct {
	char letter;
	bool after_t;
	enum unit_index unit;
} iso_units[] = {
	{ 'Y', false, UNIT_Y },
	{ 'M', false, UNIT_MO },
	{ 'W', false, UNIT_W },
	{ 'D', false, UNIT_D },
	{ 'H', true, UNIT_H },
	{ 'M', true, UNIT_M },
	{ 'S', true, UNIT_S },
};
#define ISO_UNITS_COUNT (sizeof(iso_units) / sizeof(iso_units[0]))

struct number {
	struct wm_span text;
	int64_t whole;    /* held at WM_DURATION_US_MAX + 1 */
	int64_t fraction; /* without its trailing zeros */
	int fraction_digits;
	bool too_fine; /* more than FRACTION_DIGITS_USED of them */
};

/* What has been read so far. The length is that of the text without its sign. */
struct sum {
	struct wm_span whole_text; /* for messages */
	int64_t us;
	int64_t count; /* of the last unit, if it is whole */
	bool is_whole;
	unsigned units_seen; /* bit 1 << index */
	int parts;
	enum unit_index last;
};

static bool
skip_blanks(struct wm_span *rest)
{
	size_t len = 0;

	while (len < rest->len && (rest->data[len] == ' ' || rest->data[len] == '\t'))
		len++;
	*rest = wm_span(rest->data + len, rest->len - len);
	return len != 0;
}

/* Arguments for a %.*s that shows a text in a message. */
#define SHOWN(text) (int)((text).len < WM_SHOWN_BYTES_MAX ? (text).len : WM_SHOWN_BYTES_MAX), (text).data

static bool
fail_no_duration(struct wm_span text, struct wm_err *err)
{
	return wm_err_set(
		err, WM_ERR_USAGE, "'%.*s' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'", SHOWN(text));
}

static bool
fail_too_long(struct wm_span text, struct wm_err *err)
{
	return wm_err_set(
		err, WM_ERR_USAGE, "'%.*s' is too long: a duration has at most 10000 years (3652500d)", SHOWN(text));
}

static bool
fail_no_unit(struct wm_span text, struct wm_span number, struct wm_err *err)
{
	static const char *const words[] = { "zero", "one", "two", "three", "four", "five", "six", "seven", "eight",
		"nine", "ten", "eleven", "twelve" };
	size_t value = SIZE_MAX;

	if (number.len == 1)
		value = (size_t)(number.data[0] - '0');
	else if (number.len == 2 && number.data[0] == '1')
		value = (size_t)(10 + number.data[1] - '0');
	struct wm_span what = value < sizeof(words) / sizeof(words[0]) ? wm_span_of(words[value]) : number;
	return wm_err_set(err, WM_ERR_USAGE, "'%.*s': %.*s what? write %.*ss, %.*sm or %.*sh", SHOWN(text), SHOWN(what),
		SHOWN(number), SHOWN(number), SHOWN(number));
}

/* Digits with an optional fraction. False if there are none. */
static bool
take_number(struct wm_span *rest, bool comma_allowed, struct number *number)
{
	const char *at = rest->data;
	const char *end = at + rest->len;

	*number = (struct number){ 0 };
	for (; at < end && wm_is_digit(*at); at++)
		if (number->whole <= WM_DURATION_US_MAX)
			number->whole = number->whole * 10 + (*at - '0');
	if (number->whole > WM_DURATION_US_MAX)
		number->whole = WM_DURATION_US_MAX + 1;
	if (at == rest->data)
		return false;
	if (at + 1 < end && (*at == '.' || (comma_allowed && *at == ',')) && wm_is_digit(at[1])) {
		int zeros = 0;

		for (at++; at < end && wm_is_digit(*at); at++) {
			if (*at == '0' && !number->too_fine) {
				zeros += zeros <= FRACTION_DIGITS_USED;
				continue;
			}
			if (*at == '0')
				continue;
			if (number->fraction_digits + zeros >= FRACTION_DIGITS_USED) {
				number->too_fine = true;
				continue;
			}
			for (; zeros > 0; zeros--, number->fraction_digits++)
				number->fraction *= 10;
			number->fraction = number->fraction * 10 + (*at - '0');
			number->fraction_digits++;
		}
	}
	number->text = wm_span(rest->data, (size_t)(at - rest->data));
	*rest = wm_span(at, (size_t)(end - at));
	return true;
}

static bool
sum_add(struct sum *sum, const struct number *number, enum unit_index index, struct wm_err *err)
{
	const struct unit *unit = &units[index];
	bool is_whole = number->fraction_digits == 0 && !number->too_fine;

	if (sum->units_seen & 1u << index)
		return wm_err_set(
			err, WM_ERR_USAGE, "'%.*s' has the unit %s twice", SHOWN(sum->whole_text), unit->symbol);
	sum->units_seen |= 1u << index;
	sum->parts++;
	sum->last = index;
	sum->count = number->whole;
	sum->is_whole = is_whole;
	if (unit->us == 0) {
		if (!is_whole)
			return wm_err_set(err, WM_ERR_USAGE,
				"'%.*s': months and years have no fixed length and no fractions: write whole ones or "
				"days",
				SHOWN(sum->whole_text));
		return number->whole <= unit->count_max || fail_too_long(sum->whole_text, err);
	}

	wm_int128 us = (wm_int128)number->whole * unit->us;
	if (!is_whole) {
		wm_int128 scaled = (wm_int128)number->fraction * unit->us;
		int digits = number->fraction_digits;

		for (; digits > 0 && scaled % 10 == 0; digits--)
			scaled /= 10;
		if (digits > 0 || number->too_fine)
			return wm_err_set(
				err, WM_ERR_USAGE, "'%.*s' is finer than a microsecond", SHOWN(sum->whole_text));
		us += scaled;
	}
	if (us > WM_DURATION_US_MAX - sum->us)
		return fail_too_long(sum->whole_text, err);
	sum->us += (int64_t)us;
	return true;
}

static bool
name_matches(struct wm_span name, struct wm_span text)
{
	if (name.len != text.len)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if ((text.len < 3 ? text.data[i] : wm_lower(text.data[i])) != name.data[i])
			return false;
	return true;
}

static enum unit_index
find_unit(struct wm_span text)
{
	for (enum unit_index i = 0; i < UNIT_COUNT; i++) {
		for (const char *name = units[i].names; *name != '\0';) {
			size_t len = strcspn(name, " ");

			if (name_matches(wm_span(name, len), text))
				return i;
			name += len + (name[len] == ' ');
		}
	}
	return UNIT_COUNT;
}

/* "1h30m", "1 hour 30 minutes". */
static bool
parse_plain(struct wm_span rest, struct sum *sum, struct wm_err *err)
{
	do {
		struct number number;
		size_t len = 0;

		if (!take_number(&rest, false, &number))
			return fail_no_duration(sum->whole_text, err);
		skip_blanks(&rest);
		while (len < rest.len && !wm_is_digit(rest.data[len]) && strchr(" \t.,+-:/", rest.data[len]) == NULL)
			len++;
		struct wm_span name = wm_span(rest.data, len);
		if (len == 0)
			return rest.len == 0 ? fail_no_unit(sum->whole_text, number.text, err)
					     : fail_no_duration(sum->whole_text, err);
		rest = wm_span(rest.data + len, rest.len - len);
		if (wm_span_is(name, "M"))
			return wm_err_set(err, WM_ERR_USAGE, "'%.*s': minutes or months? write %.*sm or %.*smo",
				SHOWN(sum->whole_text), SHOWN(number.text), SHOWN(number.text));
		enum unit_index unit = find_unit(name);
		if (unit == UNIT_COUNT)
			return wm_err_set(err, WM_ERR_USAGE, "'%.*s': unknown unit '%.*s': units are " UNITS_SHOWN,
				SHOWN(sum->whole_text), SHOWN(name));
		if (!sum_add(sum, &number, unit, err))
			return false;
	} while (skip_blanks(&rest) || rest.len != 0);
	return true;
}

/* "P1DT12H", without the P. */
static bool
parse_iso(struct wm_span rest, struct sum *sum, struct wm_err *err)
{
	bool after_t = false;
	size_t next = 0; /* first of iso_units that may still come */

	do {
		struct number number;

		if (!after_t && rest.len != 0 && rest.data[0] == 'T') {
			after_t = true;
			rest = wm_span(rest.data + 1, rest.len - 1);
		}
		if (!take_number(&rest, true, &number) || rest.len == 0)
			return fail_no_duration(sum->whole_text, err);
		while (next < ISO_UNITS_COUNT &&
			(iso_units[next].letter != rest.data[0] || iso_units[next].after_t != after_t))
			next++;
		if (next == ISO_UNITS_COUNT)
			return fail_no_duration(sum->whole_text, err);
		if (!sum_add(sum, &number, iso_units[next].unit, err))
			return false;
		rest = wm_span(rest.data + 1, rest.len - 1);
	} while (rest.len != 0);
	return true;
}

bool
wm_duration_parse(struct wm_span text, struct wm_duration *duration, struct wm_err *err)
{
	struct sum sum = { .whole_text = text };
	struct wm_span rest = text;
	int64_t sign = 1;

	if (rest.len != 0 && (rest.data[0] == '-' || rest.data[0] == '+')) {
		sign = rest.data[0] == '-' ? -1 : 1;
		rest = wm_span(rest.data + 1, rest.len - 1);
	}
	bool is_iso = rest.len != 0 && rest.data[0] == 'P';
	if (is_iso ? !parse_iso(wm_span(rest.data + 1, rest.len - 1), &sum, err) : !parse_plain(rest, &sum, err))
		return false;
	if (sum.parts > 1 && (sum.units_seen & (1u << UNIT_MO | 1u << UNIT_Y)))
		return wm_err_set(err, WM_ERR_USAGE,
			"'%.*s': months and years have no fixed length and stand alone: write 18mo, not 1y6mo",
			SHOWN(text));

	*duration = (struct wm_duration){ .us = sign * sum.us };
	if (sum.parts == 1 && sum.is_whole && units[sum.last].calendar != WM_CALENDAR_NONE) {
		duration->calendar = units[sum.last].calendar;
		duration->calendar_count = sign * sum.count;
	}
	return true;
}

bool
wm_duration_parse_fixed(struct wm_span text, int64_t *us, struct wm_err *err)
{
	struct wm_duration duration;

	if (!wm_duration_parse(text, &duration, err))
		return false;
	bool is_month = duration.calendar == WM_CALENDAR_MONTH;
	if (is_month || duration.calendar == WM_CALENDAR_YEAR)
		return wm_err_set(err, WM_ERR_USAGE, "'%.*s': a %s has no fixed length: write %" PRId64 "d",
			SHOWN(text), is_month ? "month" : "year", duration.calendar_count * (is_month ? 31 : 365));
	*us = duration.us;
	return true;
}

void
wm_duration_print(int64_t us, struct wm_buf *out)
{
	uint64_t rest = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;

	if (us < 0)
		wm_buf_add_byte(out, '-');
	if (us == 0)
		wm_buf_add_text(out, "0s");
	for (int i = UNIT_D; i >= UNIT_US; i--) {
		uint64_t unit_us = (uint64_t)units[i].us;

		if (rest >= unit_us)
			wm_buf_addf(out, "%" PRIu64 "%s", rest / unit_us, units[i].symbol);
		rest %= unit_us;
	}
}

int64_t
wm_duration_round_up(int64_t us)
{
	static const int64_t steps_us[] = { WM_US_PER_DAY, 3600 * WM_US_PER_SECOND, 60 * WM_US_PER_SECOND,
		WM_US_PER_SECOND, 1000 };
	int64_t step_us = 1;

	for (size_t i = 0; i < sizeof(steps_us) / sizeof(steps_us[0]) && step_us == 1; i++)
		if (us >= 10 * steps_us[i])
			step_us = steps_us[i];
	return (us + step_us - 1) / step_us * step_us;
}

int64_t
wm_time_add(int64_t a_us, int64_t b_us)
{
	int64_t sum_us;

	if (__builtin_add_overflow(a_us, b_us, &sum_us))
		return b_us < 0 ? INT64_MIN : INT64_MAX;
	return sum_us;
}

int64_t
wm_time_sub(int64_t a_us, int64_t b_us)
{
	int64_t difference_us;

	if (__builtin_sub_overflow(a_us, b_us, &difference_us))
		return b_us < 0 ? INT64_MAX : INT64_MIN;
	return difference_us;
}
