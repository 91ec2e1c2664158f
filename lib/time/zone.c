/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/time/zone.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/ascii.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/base/near.h"
#include "lib/time/civil.h"
#include "lib/time/duration.h"

#define ZONE_FOLDER "/usr/share/zoneinfo"

/* No zone file, and no list of names, comes near this. */
#define ZONE_FILE_BYTES_MAX ((size_t)1 << 20)

/* Longest name that is looked up; the longest there is has 32 bytes. */
#define ZONE_NAME_BYTES_MAX 64

/* RFC 8536, 3.2: what an offset may be. */
#define OFFSET_SECONDS_MIN (-25 * 3600 + 1)
#define OFFSET_SECONDS_MAX (26 * 3600 - 1)

/* After this many microseconds the calendar, weekdays included, repeats. */
#define CYCLE_YEARS 400
#define CYCLE_US (INT64_C(146097) * WM_US_PER_DAY)

/* Times in a TZif file before and after these are as good as the ends of time. */
#define SECONDS_MIN INT64_C(-62135596800) /* year 1 */
#define SECONDS_MAX INT64_C(253402300800) /* year 10000 */

/* An offset and when it begins; it ends where the next one begins. */
struct period {
	int64_t from_us;
	int64_t offset_us;
};

struct wm_zone {
	const struct period *periods; /* ascending; the first begins at INT64_MIN */
	size_t periods_count;         /* at least 1 */
	int64_t offset_min_us;        /* of all periods */
	int64_t offset_max_us;
	/*
	 * A rule for all later years is laid out in periods for 400 years; times from
	 * cycle_from_us on are moved back by whole cycles into [cycle_base_us, + CYCLE_US).
	 */
	int64_t cycle_from_us; /* INT64_MAX: no such rule */
	int64_t cycle_base_us; /* never negative */
};

/* A day of each year and a local time on it, as in the footer of a TZif file. */
struct rule_day {
	char form; /* 'M' month, week, weekday; 'J' 1 to 365 without 29 February; '0' 0 to 365 */
	int month;
	int week; /* 5: the last */
	int day;
	int64_t time_s; /* -167 to 167 hours */
};

struct rule {
	int64_t standard_s;
	int64_t summer_s;
	struct rule_day summer_begins;
	struct rule_day summer_ends;
};

static const struct period utc_period = { INT64_MIN, 0 };
static const struct wm_zone utc = { &utc_period, 1, 0, 0, INT64_MAX, 0 };

/* Looking up ---------------------------------------------------------------- */

/* How far back a time lies that stands for this one. */
static int64_t
cycle_shift(const struct wm_zone *zone, int64_t time_us)
{
	if (time_us < zone->cycle_from_us || zone->cycle_from_us == INT64_MAX)
		return 0;
	return wm_floor_div(time_us - zone->cycle_base_us, CYCLE_US) * CYCLE_US;
}

/* Index of the period that holds an instant. */
static size_t
find_period(const struct wm_zone *zone, int64_t time_us)
{
	size_t first = 0;
	size_t count = zone->periods_count;

	while (count > 1) {
		size_t half = count / 2;

		if (zone->periods[first + half].from_us <= time_us)
			first += half;
		count -= half;
	}
	return first;
}

static int64_t
period_end(const struct wm_zone *zone, size_t index)
{
	return index + 1 < zone->periods_count ? zone->periods[index + 1].from_us : INT64_MAX;
}

int64_t
wm_zone_offset_us(const struct wm_zone *zone, int64_t time_us)
{
	return zone->periods[find_period(zone, time_us - cycle_shift(zone, time_us))].offset_us;
}

int64_t
wm_zone_from_local(
	const struct wm_zone *zone, int64_t local_us, enum wm_repeated_hour repeated, enum wm_local_kind *kind)
{
	int64_t shift_us = cycle_shift(zone, local_us);
	int64_t local = local_us - shift_us;
	size_t first = find_period(zone, wm_time_sub(local, zone->offset_max_us));
	size_t last = find_period(zone, wm_time_sub(local, zone->offset_min_us));
	int64_t found_us = 0;
	int found = 0;

	for (size_t i = first; i <= last; i++) {
		int64_t time_us = wm_time_sub(local, zone->periods[i].offset_us);

		if (time_us < zone->periods[i].from_us || (i < last && time_us >= period_end(zone, i)))
			continue;
		if (found++ == 0 || repeated == WM_REPEATED_LATER)
			found_us = time_us;
	}
	/* In a gap: what the clock would show had it not been changed. */
	for (size_t i = first; found == 0 && i < last; i++) {
		int64_t time_us = wm_time_sub(local, zone->periods[i].offset_us);

		if (time_us >= period_end(zone, i) &&
			wm_time_sub(local, zone->periods[i + 1].offset_us) < period_end(zone, i)) {
			found_us = time_us;
			break;
		}
	}
	if (kind != NULL)
		*kind = found == 1 ? WM_LOCAL_ONCE : found > 1 ? WM_LOCAL_REPEATED : WM_LOCAL_SKIPPED;
	return wm_time_add(found_us, shift_us);
}

bool
wm_zone_steady(const struct wm_zone *zone, int64_t local_us, struct wm_zone_steady *steady)
{
	int64_t shift_us = cycle_shift(zone, local_us);
	int64_t local = local_us - shift_us;
	size_t index = find_period(zone, wm_time_sub(local, zone->offset_max_us));
	int64_t from_us = zone->periods[index].from_us;
	int64_t to_us = period_end(zone, index);

	/* No offset of the zone leads from a local time in this range out of the period. */
	from_us = from_us == INT64_MIN ? from_us : wm_time_add(from_us, zone->offset_max_us);
	to_us = to_us == INT64_MAX ? to_us : wm_time_add(to_us, zone->offset_min_us);
	if (local < from_us || local >= to_us)
		return false;
	steady->from_local_us = from_us == INT64_MIN ? from_us : wm_time_add(from_us, shift_us);
	steady->to_local_us = to_us == INT64_MAX ? to_us : wm_time_add(to_us, shift_us);
	steady->offset_us = zone->periods[index].offset_us;
	return true;
}

const struct wm_zone *
wm_zone_utc(void)
{
	return &utc;
}

bool
wm_zone_is_utc(const struct wm_zone *zone)
{
	return zone->offset_min_us == 0 && zone->offset_max_us == 0;
}

/* The rule at the end of a TZif file: "CET-1CEST,M3.5.0,M10.5.0/3" -------------- */

static bool
take_byte(struct wm_span *rest, char byte)
{
	if (rest->len == 0 || rest->data[0] != byte)
		return false;
	*rest = wm_span(rest->data + 1, rest->len - 1);
	return true;
}

static bool
take_number(struct wm_span *rest, int min, int max, int *number)
{
	size_t len = 0;

	*number = 0;
	while (len < rest->len && len < 3 && wm_is_digit(rest->data[len]))
		*number = *number * 10 + (rest->data[len++] - '0');
	*rest = wm_span(rest->data + len, rest->len - len);
	return len != 0 && *number >= min && *number <= max;
}

/* The abbreviation of a zone, which nothing here needs. */
static bool
skip_abbreviation(struct wm_span *rest)
{
	size_t len = 0;

	if (take_byte(rest, '<')) {
		while (len < rest->len && rest->data[len] != '>')
			len++;
		*rest = wm_span(rest->data + len, rest->len - len);
		return take_byte(rest, '>');
	}
	while (len < rest->len && wm_is_letter(rest->data[len]))
		len++;
	*rest = wm_span(rest->data + len, rest->len - len);
	return len >= 3;
}

/* [+-]hh[:mm[:ss]] */
static bool
take_clock(struct wm_span *rest, int hours_max, int64_t *seconds)
{
	int hours, minutes = 0, secs = 0;
	bool is_negative = take_byte(rest, '-');

	if (!is_negative)
		(void)take_byte(rest, '+');
	if (!take_number(rest, 0, hours_max, &hours))
		return false;
	if (take_byte(rest, ':')) {
		if (!take_number(rest, 0, 59, &minutes))
			return false;
		if (take_byte(rest, ':') && !take_number(rest, 0, 59, &secs))
			return false;
	}
	*seconds = (hours * 60 + minutes) * 60 + secs;
	if (is_negative)
		*seconds = -*seconds;
	return true;
}

static bool
take_rule_day(struct wm_span *rest, struct rule_day *day)
{
	bool ok;

	if (!take_byte(rest, ','))
		return false;
	if (take_byte(rest, 'M')) {
		day->form = 'M';
		ok = take_number(rest, 1, 12, &day->month) && take_byte(rest, '.') &&
			take_number(rest, 1, 5, &day->week) && take_byte(rest, '.') &&
			take_number(rest, 0, 6, &day->day);
	} else if (take_byte(rest, 'J')) {
		day->form = 'J';
		ok = take_number(rest, 1, 365, &day->day);
	} else {
		day->form = '0';
		ok = take_number(rest, 0, 365, &day->day);
	}
	day->time_s = 2 * 3600;
	return ok && (!take_byte(rest, '/') || take_clock(rest, 167, &day->time_s));
}

/* False on what is no rule; *has_summer is false for a zone that no longer changes its clocks. */
static bool
parse_rule(struct wm_span text, struct rule *rule, bool *has_summer)
{
	int64_t west_s;

	if (!skip_abbreviation(&text) || !take_clock(&text, 24, &west_s))
		return false;
	rule->standard_s = -west_s;
	*has_summer = text.len != 0;
	if (!*has_summer)
		return true;
	if (!skip_abbreviation(&text))
		return false;
	rule->summer_s = rule->standard_s + 3600;
	if (text.len != 0 && text.data[0] != ',') {
		if (!take_clock(&text, 24, &west_s))
			return false;
		rule->summer_s = -west_s;
	}
	return take_rule_day(&text, &rule->summer_begins) && take_rule_day(&text, &rule->summer_ends) && text.len == 0;
}

/* In a year, as seconds of local time. */
static int64_t
rule_day_seconds(const struct rule_day *day, int64_t year)
{
	int64_t days = wm_civil_days(year, 1, 1);

	if (day->form == 'M') {
		int month_days = wm_civil_month_days(year, day->month);

		days = wm_civil_days(year, day->month, 1);
		/* 1970-01-01 was a Thursday, day 4 of the week. */
		int64_t first = wm_floor_mod(day->day - (days + 4), 7);
		int64_t in_month = first + 7 * (day->week - 1);
		days += in_month < month_days ? in_month : in_month - 7;
	} else if (day->form == 'J') {
		days += day->day - 1 + (day->day >= 60 && wm_civil_month_days(year, 2) == 29);
	} else {
		days += day->day;
	}
	return days * 86400 + day->time_s;
}

/* TZif, RFC 8536 ------------------------------------------------------------- */

struct tzif_counts {
	uint32_t is_ut, is_standard, leaps, times, types, chars;
};

#define TZIF_HEADER_BYTES 44

static uint32_t
get_u32(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t
get_i64(const unsigned char *at)
{
	return (int64_t)((uint64_t)get_u32(at) << 32 | get_u32(at + 4));
}

/* Takes a header off *rest; *body_bytes is the size of what it announces. */
static bool
take_header(struct wm_span *rest, size_t time_bytes, struct tzif_counts *counts, uint64_t *body_bytes)
{
	const unsigned char *at = (const unsigned char *)rest->data;

	if (rest->len < TZIF_HEADER_BYTES || memcmp(at, "TZif", 4) != 0 || at[4] < '2')
		return false;
	*counts = (struct tzif_counts){ get_u32(at + 20), get_u32(at + 24), get_u32(at + 28), get_u32(at + 32),
		get_u32(at + 36), get_u32(at + 40) };
	*body_bytes = (uint64_t)counts->times * (time_bytes + 1) + (uint64_t)counts->types * 6 + counts->chars +
		(uint64_t)counts->leaps * (time_bytes + 4) + counts->is_standard + counts->is_ut;
	*rest = wm_span(rest->data + TZIF_HEADER_BYTES, rest->len - TZIF_HEADER_BYTES);
	return *body_bytes <= rest->len;
}

static void
add_period(struct wm_buf *periods, int64_t from_us, int64_t offset_s)
{
	struct period period = { from_us, offset_s * WM_US_PER_SECOND };

	wm_buf_add(periods, &period, sizeof(period));
}

/* Transitions of the file. False on a bad order, type or offset. */
static bool
add_file_periods(struct wm_buf *periods, const unsigned char *times, const struct tzif_counts *counts)
{
	const unsigned char *type_of = times + (size_t)counts->times * 8;
	const unsigned char *types = type_of + counts->times;
	int64_t first_offset_s = (int32_t)get_u32(types);

	for (uint32_t i = 0; i < counts->types; i++) {
		int32_t offset_s = (int32_t)get_u32(types + (size_t)i * 6);

		if (offset_s < OFFSET_SECONDS_MIN || offset_s > OFFSET_SECONDS_MAX)
			return false;
	}
	add_period(periods, INT64_MIN, first_offset_s);
	for (uint32_t i = 0; i < counts->times; i++) {
		int64_t time_s = get_i64(times + (size_t)i * 8);

		if (type_of[i] >= counts->types || (i > 0 && time_s <= get_i64(times + (size_t)(i - 1) * 8)))
			return false;
		int64_t offset_s = (int32_t)get_u32(types + (size_t)type_of[i] * 6);
		if (time_s < SECONDS_MIN) {
			wm_buf_reset(periods);
			add_period(periods, INT64_MIN, offset_s);
		} else if (time_s < SECONDS_MAX) {
			add_period(periods, time_s * WM_US_PER_SECOND, offset_s);
		}
	}
	return true;
}

static int
compare_periods(const void *a, const void *b)
{
	const struct period *left = a;
	const struct period *right = b;

	return (left->from_us > right->from_us) - (left->from_us < right->from_us);
}

/* What the rule says after the periods there are, for as long as it takes to repeat. */
static void
add_rule_periods(struct wm_zone *zone, struct wm_buf *periods, const struct rule *rule)
{
	const struct period *known = (const struct period *)(const void *)periods->data;
	size_t known_count = periods->len / sizeof(*known);
	int64_t known_until_us = known[known_count - 1].from_us;
	bool is_alone = known_count == 1;
	int64_t first_year = is_alone ? 1968 : wm_civil_from_days(wm_floor_div(known_until_us, WM_US_PER_DAY)).year - 1;
	int64_t base_year = first_year + 3 > 1970 ? first_year + 3 : 1970;
	struct wm_buf added;

	wm_buf_init(&added, WM_BUF_UNBOUNDED);
	for (int64_t year = first_year; year <= base_year + CYCLE_YEARS + 1; year++) {
		int64_t begins_us =
			(rule_day_seconds(&rule->summer_begins, year) - rule->standard_s) * WM_US_PER_SECOND;
		int64_t ends_us = (rule_day_seconds(&rule->summer_ends, year) - rule->summer_s) * WM_US_PER_SECOND;

		/* Summer that ends where the next begins never ends: its beginning counts. */
		if (ends_us > known_until_us)
			add_period(&added, ends_us, rule->standard_s);
		if (begins_us > known_until_us)
			add_period(&added, begins_us, rule->summer_s);
	}
	struct period *sorted = (struct period *)(void *)added.data;
	size_t count = added.len / sizeof(*sorted);
	qsort(sorted, count, sizeof(*sorted), compare_periods);
	for (size_t i = 0; i < count; i++) {
		struct period *same =
			i + 1 < count && sorted[i + 1].from_us == sorted[i].from_us ? &sorted[i + 1] : NULL;

		if (same == NULL)
			wm_buf_add(periods, &sorted[i], sizeof(sorted[i]));
		else
			same->offset_us = rule->summer_s * WM_US_PER_SECOND;
	}
	wm_buf_release(&added);
	zone->cycle_base_us = wm_civil_days(base_year, 1, 1) * WM_US_PER_DAY;
	/* A rule alone holds for earlier times too, as far as a cycle can be subtracted. */
	zone->cycle_from_us = is_alone ? INT64_MIN + CYCLE_US : zone->cycle_base_us;
}

/* Takes over the memory of the buffer. */
static void
set_periods(struct wm_zone *zone, struct wm_buf *buf)
{
	const struct period *periods = (const struct period *)(const void *)buf->data;

	zone->periods = periods;
	zone->periods_count = buf->len / sizeof(*periods);
	zone->offset_min_us = zone->offset_max_us = periods[0].offset_us;
	for (size_t i = 1; i < zone->periods_count; i++) {
		if (periods[i].offset_us < zone->offset_min_us)
			zone->offset_min_us = periods[i].offset_us;
		if (periods[i].offset_us > zone->offset_max_us)
			zone->offset_max_us = periods[i].offset_us;
	}
}

struct wm_zone *
wm_zone_from_tzif(struct wm_span tzif, const char **why)
{
	struct wm_span rest = tzif;
	struct tzif_counts counts;
	uint64_t body_bytes;
	struct rule rule;
	bool has_summer = false;
	struct wm_buf periods;
	struct wm_zone *zone = NULL;

	wm_buf_init(&periods, WM_BUF_UNBOUNDED);
	*why = "not TZif data of version 2 or later, or damaged";
	if (!take_header(&rest, 4, &counts, &body_bytes))
		goto fail;
	rest = wm_span(rest.data + body_bytes, rest.len - (size_t)body_bytes);
	if (!take_header(&rest, 8, &counts, &body_bytes) || counts.types == 0)
		goto fail;
	if (counts.leaps != 0) {
		*why = "it counts leap seconds: name the zone without right/";
		goto fail;
	}
	if (!add_file_periods(&periods, (const unsigned char *)rest.data, &counts))
		goto fail;
	rest = wm_span(rest.data + body_bytes, rest.len - (size_t)body_bytes);
	if (!take_byte(&rest, '\n') || rest.len == 0)
		goto fail;
	const char *rule_end = memchr(rest.data, '\n', rest.len);
	if (rule_end == NULL)
		goto fail;
	struct wm_span rule_text = wm_span(rest.data, (size_t)(rule_end - rest.data));
	if (rule_text.len != 0 && !parse_rule(rule_text, &rule, &has_summer))
		goto fail;
	zone = wm_calloc(1, sizeof(*zone));
	zone->cycle_from_us = INT64_MAX;
	if (has_summer)
		add_rule_periods(zone, &periods, &rule);
	set_periods(zone, &periods);
	return zone;
fail:
	wm_buf_release(&periods);
	return NULL;
}

/* Names -------------------------------------------------------------------- */

/* False if it cannot be read or is larger than any such file. */
static bool
read_file(const char *path, struct wm_buf *content)
{
	FILE *file = fopen(path, "re");
	size_t len = 1;

	wm_buf_init(content, ZONE_FILE_BYTES_MAX);
	if (file == NULL)
		return false;
	bool ok = true;
	while (ok && len != 0) {
		ok = wm_buf_reserve(content, 4096);
		len = ok ? fread(content->data + content->len, 1, 4096, file) : 0;
		content->len += len;
	}
	ok = ok && !ferror(file);
	(void)fclose(file);
	return ok;
}

/* The part behind the last slash: what people take for the name. */
static struct wm_span
city_of(struct wm_span name)
{
	const char *slash = memrchr(name.data, '/', name.len);

	return slash == NULL ? name : wm_span(slash + 1, (size_t)(name.data + name.len - slash - 1));
}

/* The n-th (from 0) of the words of a line. */
static struct wm_span
nth_word(struct wm_span line, int n)
{
	size_t at = 0;

	for (;; n--) {
		size_t start;

		while (at < line.len && (line.data[at] == ' ' || line.data[at] == '\t'))
			at++;
		start = at;
		while (at < line.len && line.data[at] != ' ' && line.data[at] != '\t')
			at++;
		if (n == 0 || at == line.len)
			return wm_span(line.data + start, n == 0 ? at - start : 0);
	}
}

/* The nearest name in a list of the tz database, copied to nearest; false if none is near. */
static bool
find_nearest(struct wm_span list, bool is_zi, struct wm_span name, char nearest[ZONE_NAME_BYTES_MAX + 1])
{
	struct wm_near near = wm_near_to(name);

	while (list.len != 0) {
		const char *newline = memchr(list.data, '\n', list.len);
		struct wm_span line = wm_span(list.data, newline == NULL ? list.len : (size_t)(newline - list.data));

		list = newline == NULL ? wm_span("", 0) : wm_span(newline + 1, list.len - line.len - 1);
		if (line.len < 2 || line.data[0] == '#' || (is_zi && line.data[1] != ' '))
			continue;
		if (is_zi && line.data[0] != 'Z' && line.data[0] != 'L')
			continue;
		struct wm_span known = nth_word(line, is_zi && line.data[0] == 'Z' ? 1 : 2);
		if (known.len == 0 || known.len > ZONE_NAME_BYTES_MAX)
			continue;
		size_t edits = near.best_edits;
		wm_near_try(&near, known);
		wm_near_try(&near, city_of(known));
		if (near.best_edits < edits) {
			memcpy(nearest, known.data, known.len);
			nearest[known.len] = '\0';
		}
	}
	/* Short names are near to everything. */
	return near.best.data != NULL && near.best_edits <= name.len / 5;
}

static void
fail_unknown(struct wm_span name, struct wm_err *err)
{
	static const char *const lists[] = { ZONE_FOLDER "/tzdata.zi", ZONE_FOLDER "/zone1970.tab",
		ZONE_FOLDER "/zone.tab" };
	char nearest[ZONE_NAME_BYTES_MAX + 1];
	bool is_found = false;
	int shown = (int)(name.len < WM_SHOWN_BYTES_MAX ? name.len : WM_SHOWN_BYTES_MAX);

	if (access(ZONE_FOLDER, F_OK) != 0) {
		(void)wm_err_set(err, WM_ERR_USAGE,
			"time zone '%.*s': there is no time zone database in " ZONE_FOLDER
			": install the package tzdata",
			shown, name.data);
		return;
	}
	for (size_t i = 0; !is_found && name.len <= ZONE_NAME_BYTES_MAX && i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct wm_buf list;

		if (read_file(lists[i], &list))
			is_found = find_nearest(wm_buf_span(&list), i == 0, name, nearest);
		wm_buf_release(&list);
	}
	if (is_found)
		(void)wm_err_set(
			err, WM_ERR_USAGE, "unknown time zone '%.*s': did you mean '%s'?", shown, name.data, nearest);
	else
		(void)wm_err_set(err, WM_ERR_USAGE,
			"unknown time zone '%.*s': write a name such as Europe/Berlin, or an offset such as +02:00",
			shown, name.data);
}

/* Names are letters, digits, '_', '+', '-' and '.' between single slashes; no part begins with a point. */
static bool
is_safe_name(struct wm_span name)
{
	char before = '/';

	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (before == '/' && (c == '/' || c == '.'))
			return false;
		if (!wm_is_letter(c) && !wm_is_digit(c) && strchr("_+-./", c) == NULL)
			return false;
		if (c == '\0')
			return false;
		before = c;
	}
	return name.len != 0 && name.len <= ZONE_NAME_BYTES_MAX && before != '/';
}

/* "+02:00", "-0330", "+02" */
static bool
parse_offset(struct wm_span text, int64_t *offset_s)
{
	const char *d = text.data;
	bool has_colon = text.len == 6 && d[3] == ':';

	if ((text.len != 3 && text.len != 5 && !has_colon) || (d[0] != '+' && d[0] != '-'))
		return false;
	int value[4] = { 0 };
	for (size_t i = 1, n = 0; i < text.len; i++) {
		if (has_colon && i == 3)
			continue;
		if (!wm_is_digit(d[i]))
			return false;
		value[n++] = d[i] - '0';
	}
	int hours = value[0] * 10 + value[1];
	int minutes = value[2] * 10 + value[3];
	*offset_s = (hours * 60 + minutes) * 60;
	if (d[0] == '-')
		*offset_s = -*offset_s;
	return hours < 24 && minutes < 60;
}

struct wm_zone *
wm_zone_open(struct wm_span name, struct wm_err *err)
{
	char path[sizeof(ZONE_FOLDER) + 1 + ZONE_NAME_BYTES_MAX];
	struct wm_buf content;
	int64_t offset_s = 0;
	const char *why;

	if (wm_span_is(name, "UTC") || wm_span_is(name, "Z") || parse_offset(name, &offset_s)) {
		struct wm_zone *zone = wm_calloc(1, sizeof(*zone));
		struct wm_buf periods;

		wm_buf_init(&periods, WM_BUF_UNBOUNDED);
		add_period(&periods, INT64_MIN, offset_s);
		zone->cycle_from_us = INT64_MAX;
		set_periods(zone, &periods);
		return zone;
	}
	if (!is_safe_name(name)) {
		fail_unknown(name, err);
		return NULL;
	}
	(void)snprintf(path, sizeof(path), ZONE_FOLDER "/%.*s", (int)name.len, name.data);
	if (!read_file(path, &content)) {
		wm_buf_release(&content);
		fail_unknown(name, err);
		return NULL;
	}
	struct wm_zone *zone = wm_zone_from_tzif(wm_buf_span(&content), &why);
	wm_buf_release(&content);
	if (zone == NULL)
		(void)wm_err_set(err, WM_ERR_USAGE, "time zone '%.*s': %s: %s", (int)name.len, name.data, path, why);
	return zone;
}

void
wm_zone_close(struct wm_zone *zone)
{
	if (zone == NULL)
		return;
	free((void *)(uintptr_t)zone->periods);
	free(zone);
}
