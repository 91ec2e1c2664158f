/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/explain.h"

#include "cmd/band.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/shown.h"
#include "lib/event/combine.h"
#include "lib/event/watermark.h"
#include "lib/time/civil.h"

/* Paragraphs: a word, then text from a column on. */
#define TEXT_WIDTH 80
#define TEXT_COLUMN 11

/* The example row: within a window of five minutes, and on none of its borders. */
#define EXAMPLE_DAY_US (wm_civil_days(2025, 1, 1) * WM_US_PER_DAY)
#define EXAMPLE_LOCAL_US (EXAMPLE_DAY_US + INT64_C(36120) * WM_US_PER_SECOND) /* 10:02 */

/* Of the example row, where each row has a gap of its own. */
#define EXAMPLE_GAP_US (10 * 60 * WM_US_PER_SECOND)

/* Files and windows that are named one by one. */
#define NAMED_MAX 3

struct explanation {
	const struct cli_common *common;
	const struct explain_windowing *op;
	struct wm_buf *out;
	struct wm_buf text; /* of the paragraph that is being written */

	const struct wm_zone *zone;
	bool has_watermark;
	bool is_batch;
	bool is_dated; /* times are shown with their dates: not all are of the example's day */
	int64_t example_us;
	struct wm_slice slice; /* of the example row */
	/* the first of its windows to be written */
	int64_t start_us;
	int64_t end_us;
	int64_t next_start_us; /* of the window behind it */
	/* the least event time that completes it, and the watermark then */
	int64_t closing_us;
	int64_t closing_watermark_us;
	int64_t forgetting_us; /* the least event time that ends its allowed lateness */
};

/* Writing */

static void say(struct explanation *e, const char *format, ...) WM_PRINTF(2, 3);

/* A sentence of the paragraph. */
static void
say(struct explanation *e, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (e->text.len != 0)
		wm_buf_add_byte(&e->text, ' ');
	bool fits = wm_buf_reserve(&e->text, (size_t)len + 1);
	assert(len >= 0 && fits);
	vsnprintf(e->text.data + e->text.len, (size_t)len + 1, format, args);
	va_end(args);
	e->text.len += (size_t)len;
}

/* A text of the command line or of a list of names, appended as messages show it. */
static void
add_shown(struct explanation *e, const char *text)
{
	wm_shown(wm_span_of(text), &e->text);
}

/* A name of a list, its escapes undone. */
static void
add_name(struct explanation *e, struct wm_span name)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_list_unescape(name, &text);
	wm_shown(wm_buf_span(&text), &e->text);
	wm_buf_release(&text);
}

/* Columns that a word of UTF-8 takes. */
static size_t
width_of(struct wm_span word)
{
	size_t width = 0;

	for (size_t i = 0; i < word.len; i++)
		width += (word.data[i] & 0xC0) != 0x80;
	return width;
}

/* Ends the paragraph, if anything was said in it. */
static void
end_paragraph(struct explanation *e, const char *label)
{
	struct wm_span rest = wm_buf_span(&e->text), word;
	size_t used = TEXT_COLUMN;

	if (e->text.len == 0)
		return;
	wm_buf_addf(e->out, "%-*s", TEXT_COLUMN, label);
	while (wm_list_next(&rest, ' ', &word)) {
		size_t blanks = used > TEXT_COLUMN;

		if (used + blanks + width_of(word) > TEXT_WIDTH && blanks != 0) {
			wm_buf_addf(e->out, "\n%*s", TEXT_COLUMN, "");
			used = TEXT_COLUMN;
			blanks = 0;
		}
		wm_buf_addf(e->out, "%*s", (int)blanks, "");
		wm_buf_add(e->out, word.data, word.len);
		used += blanks + width_of(word);
	}
	wm_buf_add_byte(e->out, '\n');
	wm_buf_reset(&e->text);
}

/* Times */

static int64_t
local_us(const struct explanation *e, int64_t time_us)
{
	return time_us + wm_zone_offset_us(e->zone, time_us);
}

/* A time of the clock in the zone, with its date where that is not the example's. */
struct clock {
	char text[48];
};

static struct clock
clock_of(const struct explanation *e, int64_t time_us)
{
	struct clock clock;
	int64_t local = local_us(e, time_us);
	struct wm_civil date = wm_civil_from_days(wm_floor_div(local, WM_US_PER_DAY));
	int64_t rest_us = wm_floor_mod(local, WM_US_PER_DAY), seconds = rest_us / WM_US_PER_SECOND;
	int fraction = (int)(rest_us % WM_US_PER_SECOND), len = 0;

	if (e->is_dated)
		len = snprintf(
			clock.text, sizeof(clock.text), "%04" PRId64 "-%02d-%02dT", date.year, date.month, date.day);
	len += snprintf(clock.text + len, sizeof(clock.text) - (size_t)len, "%02d:%02d", (int)(seconds / 3600),
		(int)(seconds / 60 % 60));
	if (seconds % 60 != 0 || fraction != 0)
		len += snprintf(clock.text + len, sizeof(clock.text) - (size_t)len, ":%02d", (int)(seconds % 60));
	if (fraction % 1000 != 0)
		snprintf(clock.text + len, sizeof(clock.text) - (size_t)len, ".%06d", fraction);
	else if (fraction != 0)
		snprintf(clock.text + len, sizeof(clock.text) - (size_t)len, ".%03d", fraction / 1000);
	return clock;
}

struct range {
	char text[2 * sizeof(struct clock) + 8];
};

static struct range
range_of(const struct explanation *e, int64_t start_us, int64_t end_us)
{
	struct range range;

	snprintf(range.text, sizeof(range.text), "%s\u2013%s", clock_of(e, start_us).text, clock_of(e, end_us).text);
	return range;
}

static bool
is_other_day(const struct explanation *e, int64_t time_us)
{
	return wm_floor_div(local_us(e, time_us), WM_US_PER_DAY) != EXAMPLE_DAY_US / WM_US_PER_DAY;
}

/* The first multiple of the trigger's period behind the example row. */
static int64_t
next_multiple_us(const struct explanation *e)
{
	int64_t period_us = e->common->trigger_period_us;

	return (wm_floor_div(e->example_us, period_us) + 1) * period_us;
}

/* The least event time that brings the watermark to end_us, and the watermark then, by watching one. */
static int64_t
event_time_reaching(const struct explanation *e, int64_t end_us, int64_t *watermark_us)
{
	struct wm_watermark first, second;
	int64_t time_us;

	if (e->common->is_spark)
		wm_watermark_init_spark(&first, e->common->delay.us);
	else
		wm_watermark_init(&first, e->common->delay.us);
	second = first;
	time_us = wm_time_add(end_us, first.delay_us);
	wm_watermark_observe(&first, time_us);
	wm_watermark_advance(&first);
	/* the watermark is cut to the millisecond: less than one is missing */
	if (!wm_is_complete(end_us, first.watermark_us))
		time_us += first.watermark_us + 1000 - end_us;
	wm_watermark_observe(&second, time_us);
	wm_watermark_advance(&second);
	assert(wm_is_complete(end_us, second.watermark_us));
	*watermark_us = second.watermark_us;
	return time_us;
}

/* The session of the example row alone. */
static void
find_session(struct explanation *e)
{
	int64_t gap_us = e->op->gap_us == 0 ? EXAMPLE_GAP_US : e->op->gap_us;

	e->start_us = e->example_us;
	e->end_us = e->next_start_us = e->slice.window_last_end_us = e->example_us + gap_us;
}

static void
find_times(struct explanation *e)
{
	const struct wm_windows *windows = e->op->windows;

	e->example_us = wm_zone_from_local(e->zone, EXAMPLE_LOCAL_US, WM_REPEATED_EARLIER, NULL);
	if (e->op->is_session) {
		find_session(e);
	} else {
		wm_windows_slice(windows, e->example_us, &e->slice);
		e->start_us = wm_window_start_us(windows, e->slice.window_first);
		e->end_us = wm_window_end_us(windows, e->slice.window_first);
		e->next_start_us = wm_window_start_us(windows, e->slice.window_first + 1);
	}
	if (e->has_watermark) {
		int64_t watermark_us;

		e->closing_us = event_time_reaching(e, e->end_us, &e->closing_watermark_us);
		e->forgetting_us = event_time_reaching(
			e, wm_time_add(e->end_us, e->op->panes->allowed_lateness_us), &watermark_us);
	}
	e->is_dated = is_other_day(e, e->start_us) || is_other_day(e, e->slice.window_last_end_us) ||
		(e->has_watermark && is_other_day(e, e->forgetting_us)) ||
		(e->common->trigger_word == CLI_TRIGGER_EVENT && is_other_day(e, next_multiple_us(e)));
}

/* Whether an event time can be late as far as years go. */
static bool
is_reachable(const struct explanation *e)
{
	return local_us(e, e->forgetting_us) < wm_civil_days(WM_YEAR_MAX + 1, 1, 1) * WM_US_PER_DAY;
}

/* Paragraphs */

/* Says what is read as no value, with --null. */
static void
add_nulls(const struct cli_common *common, struct wm_buf *out)
{
	const struct wm_nulls *nulls = cli_nulls(common);

	wm_buf_add_text(out, nulls->count == 0 ? "The empty field is" : "The empty field");
	for (size_t i = 0; i < nulls->count; i++) {
		wm_buf_add_text(out, i + 1 == nulls->count ? " and '" : ", '");
		wm_shown(nulls->texts[i], out);
		wm_buf_add_byte(out, '\'');
	}
	wm_buf_addf(out, "%s no value, in keys too%s%s.", nulls->count == 0 ? "" : " are",
		nulls->has_empty ? ", and so is the empty string of JSON" : "",
		nulls->count == 0             ? ""
			: nulls->takes_quoted ? ", with or without quotes in CSV"
					      : "; in quotes of CSV they are texts");
}

void
explain_nulls(const struct cli_common *common, struct wm_buf *out)
{
	if (common->null == NULL)
		return;
	add_nulls(common, out);
	wm_buf_add_byte(out, '\n');
}

static void
explain_input(struct explanation *e)
{
	const struct cli_common *common = e->common;
	size_t count = common->files_count;
	bool is_list = common->files0_from != NULL;

	if (is_list) {
		wm_buf_add_text(&e->text, "The files that ");
		add_shown(e, strcmp(common->files0_from, "-") == 0 ? "standard input" : common->files0_from);
		wm_buf_add_text(&e->text, " names");
	} else if (count == 0) {
		wm_buf_add_text(&e->text, "Standard input");
	}
	for (size_t i = 0; i < count && (count <= NAMED_MAX || i < NAMED_MAX - 1); i++) {
		wm_buf_add_text(&e->text, i == 0 ? "" : i + 1 == count ? " and " : ", ");
		add_shown(e, strcmp(common->files[i], "-") == 0 ? "standard input" : common->files[i]);
	}
	if (count > NAMED_MAX)
		wm_buf_addf(&e->text, " and %zu more", count - NAMED_MAX + 1);
	if (!is_list && count < 2)
		wm_buf_add_text(&e->text, ".");
	else if (common->merge)
		wm_buf_add_text(&e->text, ", side by side: the file whose watermark is furthest behind is read next.");
	else if (common->order == CLI_ORDER_TIME)
		wm_buf_add_text(&e->text, ", one after the other, in the order of their first event times.");
	else
		wm_buf_add_text(&e->text, ", one after the other, as named: together they are one stream.");
	if (common->tsv_escapes == CLI_TSV_NONE)
		wm_buf_add_text(&e->text, " In TSV a backslash is a letter: each tab and each line end parts.");
	if (common->null != NULL) {
		wm_buf_add_byte(&e->text, ' ');
		add_nulls(common, &e->text);
	}
	end_paragraph(e, "Input");
}

static void
explain_time(struct explanation *e)
{
	const struct cli_common *common = e->common;
	struct wm_span rest = wm_span_of(common->time_column == NULL ? BAND_TIME : common->time_column), part;
	bool is_first = true, is_two = false;

	wm_buf_add_text(&e->text, "Column ");
	while (wm_list_next(&rest, '+', &part)) {
		wm_buf_add_text(&e->text, is_first ? "'" : " and, behind a blank, '");
		add_name(e, part);
		wm_buf_add_byte(&e->text, '\'');
		is_two = !is_first;
		is_first = false;
	}
	if (is_two)
		wm_buf_addf(&e->text, "; or one column '%s', where there is one", common->time_column);
	wm_buf_add_text(&e->text, common->time_column == NULL ? ", which wm-stamp writes." : ".");
	wm_buf_add_text(&e->text, " Times that carry no zone, and the times below, are those of ");
	add_shown(e, common->tz == NULL ? "UTC" : common->tz);
	wm_buf_add_text(&e->text, e->is_dated ? "." : ", on one day.");
	end_paragraph(e, "Time");
}

static void
explain_sliding(struct explanation *e)
{
	struct wm_span rest = wm_span_of(e->op->windows_text), size, slide;

	if (wm_list_next(&rest, ',', &size) && wm_list_next(&rest, ',', &slide))
		say(e, "%.*s each, one every %.*s, so they overlap.", (int)size.len, size.data, (int)slide.len,
			slide.data);
}

static void
explain_cumulating(struct explanation *e)
{
	struct wm_span rest = wm_span_of(e->op->windows_text), longest, step;

	if (wm_list_next(&rest, ',', &longest) && wm_list_next(&rest, ',', &step))
		say(e, "They share a start every %.*s, and one ends at each %.*s from it.", (int)longest.len,
			longest.data, (int)step.len, step.data);
}

static void
explain_sessions(struct explanation *e)
{
	if (e->op->gap_us != 0)
		say(e, "A session of a key is its rows up to a gap of %s without one.", e->op->windows_text);
	else
		say(e,
			"A session of a key goes on while its next row comes within the gap of one before; each row "
			"has its own.");
	say(e, "It begins with its first row and ends a gap behind its last.");
	if (e->op->gap_us == 0)
		say(e, "With a gap of 10m a");
	else
		say(e, "A");
	say(e, "row of %s alone is the session %s.", clock_of(e, e->example_us).text,
		range_of(e, e->start_us, e->end_us).text);
}

static void
explain_grid(struct explanation *e)
{
	const struct wm_windows *windows = e->op->windows;
	int64_t count = e->slice.window_last - e->slice.window_first + 1;
	bool is_tumbling = windows->calendar != WM_CALENDAR_NONE || windows->slide_us == windows->size_us;

	if (windows->steps != 0)
		explain_cumulating(e);
	else if (windows->calendar != WM_CALENDAR_NONE)
		say(e, "%s each, by the calendar and from midnight, one after the other.", e->op->windows_text);
	else if (is_tumbling)
		say(e, "%.*s each, one after the other.", (int)strcspn(e->op->windows_text, ","), e->op->windows_text);
	else
		explain_sliding(e);
	if (windows->offset_us != 0) {
		say(e, "All are shifted by ");
		wm_duration_print(windows->offset_us, &e->text);
		wm_buf_add_byte(&e->text, '.');
	}
	say(e, "A row of %s counts in ", clock_of(e, e->example_us).text);
	if (count > NAMED_MAX) {
		wm_buf_addf(&e->text, "%" PRId64 " windows, from ", count);
		wm_buf_add_text(&e->text, range_of(e, e->start_us, e->end_us).text);
		wm_buf_add_text(&e->text, " to ");
	}
	for (int64_t i = count > NAMED_MAX ? count - 1 : 0; i < count; i++) {
		int64_t number = e->slice.window_first + i;

		if (count <= NAMED_MAX && i != 0)
			wm_buf_add_text(&e->text, i + 1 == count ? " and " : ", ");
		wm_buf_add_text(&e->text,
			range_of(e, wm_window_start_us(windows, number), wm_window_end_us(windows, number)).text);
	}
	wm_buf_add_text(&e->text, ".");
	say(e, "A window holds its start and not its end.");
}

static void
explain_fill(struct explanation *e)
{
	const char *fill = e->op->fill;

	if (fill == NULL)
		return;
	say(e, "The empty windows between two %sare written too (--fill %s),",
		e->op->group_by == NULL ? "" : "of one value ", fill);
	say(e,
		strcmp(fill, "zero") == 0           ? "with 0 for counts and sums and no other value."
			: strcmp(fill, "prev") == 0 ? "with the values of the window before."
						    : "without a value.");
}

static void
explain_windows(struct explanation *e)
{
	if (e->op->is_session)
		explain_sessions(e);
	else
		explain_grid(e);
	end_paragraph(e, "Windows");

	wm_buf_add_text(&e->text, e->op->is_session ? "For each session" : "For each window");
	if (e->op->group_by != NULL) {
		wm_buf_add_text(&e->text, " and each value of ");
		add_shown(e, e->op->group_by);
	}
	wm_buf_add_text(&e->text, ": ");
	add_shown(e, e->op->aggregate);
	wm_buf_add_text(&e->text, e->common->out_path == NULL ? ", to standard output." : ", to ");
	if (e->common->out_path != NULL) {
		add_shown(e, e->common->out_path);
		wm_buf_add_byte(&e->text, '.');
	}
	if (e->op->is_partial)
		say(e,
			"Not values are written but states, which wm-merge --partial combines with those of other "
			"runs.");
	explain_fill(e);
	end_paragraph(e, "Results");
}

static void
explain_batches(struct explanation *e)
{
	const struct cli_common *common = e->common;

	switch (common->trigger_word) {
	case CLI_TRIGGER_EACH:
		return;
	case CLI_TRIGGER_ROWS:
		say(e, "A batch is %" PRIu64 " row%s, rejected ones among them.", common->trigger_rows,
			common->trigger_rows == 1 ? "" : "s");
		break;
	case CLI_TRIGGER_EVENT:
		say(e, "A batch ends with the row that brings the highest event time into the next multiple of ");
		wm_duration_print(common->trigger_period_us, &e->text);
		say(e, "since 1970: after a row of %s with the first row of %s or later.",
			clock_of(e, e->example_us).text, clock_of(e, next_multiple_us(e)).text);
		break;
	case CLI_TRIGGER_WALL:
		say(e, "A batch ends when ");
		wm_duration_print(common->trigger_period_us, &e->text);
		say(e, "have passed on the clock since its first row came.");
		break;
	case CLI_TRIGGER_COLUMN:
		say(e, "A batch is the rows that follow each other with one value of column '");
		add_shown(e, common->trigger_column);
		wm_buf_add_text(&e->text, "'.");
		break;
	case CLI_TRIGGER_FILE:
		say(e, "Each file is a batch, an empty one too.");
		break;
	case CLI_TRIGGER_EOF:
		say(e, "All input is one batch.");
		break;
	}
	if (e->has_watermark)
		say(e, "Its rows are judged by the watermark from before it.");
	end_paragraph(e, "Batches");
}

static bool
has_sources(const struct explanation *e)
{
	return e->common->merge || e->common->source_column != NULL;
}

/* Whether rows may carry a watermark that is followed: a stamped input goes with no event time but its own. */
static bool
may_come_in_band(const struct explanation *e)
{
	const char *column = e->common->watermark_column, *time = e->common->time_column;

	if (column != NULL)
		return strcmp(column, "none") != 0;
	return e->common->delay.text == NULL && (time == NULL || strcmp(time, BAND_TIME) == 0);
}

/* Without a delay. */
static void
explain_band(struct explanation *e)
{
	if (may_come_in_band(e)) {
		say(e, "As it comes with the rows, in column '");
		add_shown(e, e->common->watermark_column == NULL ? BAND_WATERMARK : e->common->watermark_column);
		wm_buf_add_text(&e->text, "'.");
	}
	if (e->common->watermark_column == NULL || !may_come_in_band(e))
		say(e,
			"%s, as there is no -w: no row is late. For input in order, or to see results before the input "
			"ends, give a delay (-w 0s).",
			may_come_in_band(e) ? "Where that is missing there is none" : "None");
}

/* Behind the delay: sources with one of their own, and a comma. */
static void
explain_other_delays(struct explanation *e)
{
	struct wm_span rest = e->common->delay.others == NULL ? wm_span(NULL, 0) : wm_span_of(e->common->delay.others);
	struct wm_span name;
	int64_t delay_us;

	for (const char *before = " ("; cli_next_source_delay(&rest, &name, &delay_us); before = ", ") {
		wm_buf_add_text(&e->text, before);
		add_name(e, name);
		wm_buf_add_text(&e->text, ": ");
		wm_duration_print(delay_us, &e->text);
		if (rest.data == NULL)
			wm_buf_add_byte(&e->text, ')');
	}
	wm_buf_add_byte(&e->text, ',');
}

/* Sources known beforehand. */
static void
explain_sources(struct explanation *e)
{
	struct wm_span rest = e->common->sources == NULL ? wm_span(NULL, 0) : wm_span_of(e->common->sources), name;
	bool can_be_idle = e->common->idle.text != NULL || e->common->idle_wall.text != NULL;
	size_t count = 0;

	if (rest.data == NULL)
		return;
	wm_buf_add_byte(&e->text, ' ');
	while (wm_list_next(&rest, ',', &name)) {
		wm_buf_add_text(&e->text, count++ == 0 ? "" : rest.data == NULL ? " and " : ", ");
		add_name(e, name);
	}
	wm_buf_addf(&e->text, " hold%s it back from the start, until %s spoken%s (--sources).", count == 1 ? "s" : "",
		count == 1 ? "it has" : "each has", can_be_idle ? " or is left out" : "");
}

static void
explain_watermark(struct explanation *e)
{
	const struct cli_common *common = e->common;

	if (!e->has_watermark) {
		explain_band(e);
		end_paragraph(e, "Watermark");
		return;
	}
	if (common->merge) {
		say(e, "Each file has one: its");
	} else if (common->source_column != NULL) {
		say(e, "Each value of column '");
		add_shown(e, common->source_column);
		wm_buf_add_text(&e->text, "' has one: its");
	} else {
		say(e, "The");
	}
	say(e, "highest event time so far less %s", common->delay.text);
	explain_other_delays(e);
	say(e, e->is_batch ? "moved at the end of each batch and never back." : "moved with each row and never back.");
	say(e, "A row of %s makes it %s%s.", clock_of(e, e->closing_us).text, clock_of(e, e->closing_watermark_us).text,
		e->is_batch ? " when its batch has ended" : "");
	if (e->closing_us - common->delay.us != e->closing_watermark_us)
		say(e, "It is cut to whole milliseconds.");
	if (has_sources(e))
		say(e, "The one that counts is the %s of those of the %s.",
			common->policy == WM_POLICY_MAX ? "greatest" : "least",
			common->merge ? "files that have not ended" : "values that have come");
	explain_sources(e);
	if (common->idle.text != NULL)
		say(e, "One that is silent while the highest event time of all rises by %s is left out (--idle).",
			common->idle.text);
	if (common->idle_wall.text != NULL && has_sources(e))
		say(e, "One that is silent for %s of the clock is left out (--idle-wall).", common->idle_wall.text);
	if (common->idle_close.text != NULL)
		say(e, "When nothing has come for %s of the clock it goes on with the clock (--idle-close).",
			common->idle_close.text);
	if (common->is_spark)
		say(e, "As in Spark it begins at 1970-01-01T00:00:00Z: rows of windows before that are late.");
	end_paragraph(e, "Watermark");
}

/* "a row of 10:07 or later comes", as far as merging and guards let one row do that. */
struct event {
	char text[256];
};

/* What brings the watermark as far as a row of that time does. */
static struct event
event_of(const struct explanation *e, int64_t time_us)
{
	struct event event;
	struct clock clock = clock_of(e, time_us);
	const char *sources = e->common->merge ? "file has ended or" : "source has";

	const char *own = e->common->delay.others == NULL
		? ""
		: ", by the difference earlier or later where its delay is another";

	if (has_sources(e) && e->common->policy == WM_POLICY_MIN)
		snprintf(event.text, sizeof(event.text), "each %s shown a row of %s or later%s", sources, clock.text,
			own);
	else if (e->common->max_jump.text != NULL)
		snprintf(event.text, sizeof(event.text), "the highest event time is raised to %s or later", clock.text);
	else
		snprintf(event.text, sizeof(event.text), "a row of %s or later comes", clock.text);
	return event;
}

/* From when on which rows are late, once the first window is complete. */
static void
explain_lateness(struct explanation *e)
{
	const char *since = e->is_batch ? "from the next batch on" : "after that";

	if (e->op->is_session) {
		say(e, "%s rows of %s or before are late.", since, clock_of(e, e->start_us).text);
		return;
	}
	if (e->next_start_us == e->end_us) {
		say(e, "%s rows before %s are late.", since, clock_of(e, e->end_us).text);
		return;
	}
	say(e,
		"%s rows before %s are late, and rows from there to before %s partly late: they miss the windows that "
		"are complete and count in those that are open.",
		since, clock_of(e, e->next_start_us).text, clock_of(e, e->end_us).text);
}

static const char *
at_trigger(const struct explanation *e)
{
	if (!e->is_batch)
		return "After each row";
	if (e->common->trigger_word == CLI_TRIGGER_EOF)
		return "At the end of the input";
	return "At the end of each batch";
}

static void
explain_append(struct explanation *e)
{
	const struct range window = range_of(e, e->start_us, e->end_us);

	if (!e->has_watermark && may_come_in_band(e)) {
		say(e,
			"A window is written when the watermark in the rows has reached its end, and the others at the "
			"end of the input.");
	} else if (!e->has_watermark) {
		say(e, "All windows are written at the end of the input.");
	} else if (!is_reachable(e)) {
		say(e, "%s is written at the end of the input: no time of the years 1 to %d completes it.", window.text,
			WM_YEAR_MAX);
	} else if (e->common->trigger_word == CLI_TRIGGER_EOF) {
		say(e, "%s is written when the batch has ended if a row of %s or later was in it.", window.text,
			clock_of(e, e->closing_us).text);
		if (!e->common->is_spark)
			say(e, "No row is late, as there is no batch before.");
	} else {
		const char *when = e->is_batch ? "at the end of the batch in which" : "when";
		bool is_kept = e->op->panes->allowed_lateness_us > 0;

		say(e, "%s is written%s %s %s;", window.text, wm_pane_options_many(e->op->panes) ? "" : " once,", when,
			event_of(e, e->closing_us).text);
		if (is_kept)
			say(e, "again %s a late row has reached it, until %s;",
				e->is_batch ? "at the end of each batch in which" : "when",
				event_of(e, e->forgetting_us).text);
		explain_lateness(e);
	}
}

/* Early panes. */
static void
explain_early(struct explanation *e)
{
	const struct wm_pane_options *panes = e->op->panes;

	if (panes->early_rows != 0)
		say(e, "Before that a window is written after each %" PRIu64 " row%s of it.", panes->early_rows,
			panes->early_rows == 1 ? "" : "s");
	if (panes->early_period_us != 0) {
		say(e,
			"Before that the windows that got rows are written when the highest event time enters a new "
			"multiple of ");
		wm_duration_print(panes->early_period_us, &e->text);
		wm_buf_add_byte(&e->text, '.');
	}
	if (wm_pane_options_many(panes) && panes->is_discarding)
		say(e, "Each time it holds what is new since the time before.");
	else if (wm_pane_options_many(panes))
		say(e, "Each time it holds everything so far.");
}

static void
explain_update(struct explanation *e)
{
	say(e, "%s the windows that got a row are written.", at_trigger(e));
	if (!e->has_watermark || !is_reachable(e)) {
		say(e, "Windows stay in memory to the end.");
	} else if (e->common->trigger_word != CLI_TRIGGER_EOF) {
		say(e, "%s is forgotten %s %s;", range_of(e, e->start_us, e->end_us).text,
			e->is_batch ? "at the end of the batch in which" : "when", event_of(e, e->forgetting_us).text);
		explain_lateness(e);
	}
}

static void
explain_end(struct explanation *e)
{
	const struct cli_common *common = e->common;
	/* batches of these end with their input, whatever --eof says */
	bool is_ended = common->trigger_word == CLI_TRIGGER_FILE || common->trigger_word == CLI_TRIGGER_EOF;
	bool is_held = common->eof == CLI_EOF_HOLD || common->eof == CLI_EOF_TRIGGER;

	if (e->is_batch && (common->eof != CLI_EOF_HOLD || is_ended))
		say(e, "The last batch ends with the input.");
	else if (e->is_batch)
		say(e, "The batch that is open does not end.");
	if (e->op->mode != WM_MODE_APPEND)
		say(e, "No further window is written.");
	else if (is_held)
		say(e,
			common->checkpoint == NULL
				? "Windows that are still open are not written; how many is said."
				: "Windows that are still open are kept, and the next run goes on with "
				  "them.");
	else
		say(e, "Windows that are still open are written, complete or not.");
	end_paragraph(e, "At the end");
}

static void
explain_written(struct explanation *e)
{
	switch (e->op->mode) {
	case WM_MODE_APPEND:
		explain_append(e);
		explain_early(e);
		break;
	case WM_MODE_UPDATE:
		explain_update(e);
		break;
	case WM_MODE_COMPLETE:
		say(e, "%s all windows are written, changed or not. No row is late and no window is forgotten.",
			at_trigger(e));
		break;
	}
	end_paragraph(e, "Written");

	explain_end(e);
}

/* Guards: what holds rows back from the watermark, or rejects them. */
static void
explain_guards(struct explanation *e)
{
	const struct cli_common *common = e->common;

	if (common->max_jump.text != NULL)
		say(e,
			"A row more than %s ahead of the highest event time counts in its windows, but raises it only "
			"when 15 of 20 rows are as far ahead and within %s of each other. So it is with the first "
			"rows: before 15 agree there is no watermark.",
			common->max_jump.text, common->max_jump.text);
	if (common->max_ahead.text != NULL) {
		say(e, "A row more than %s ahead of ", common->max_ahead.text);
		if (common->is_ingest_now) {
			wm_buf_add_text(&e->text, "the clock");
		} else {
			wm_buf_add_text(&e->text, "its arrival time, column '");
			add_shown(e, common->ingest);
			wm_buf_add_byte(&e->text, '\'');
		}
		wm_buf_add_text(&e->text, ", is rejected.");
	}
	end_paragraph(e, "Guards");
}

static void
explain_rows_left_out(struct explanation *e)
{
	const struct cli_common *common = e->common;

	if (e->has_watermark && e->op->mode != WM_MODE_COMPLETE && common->trigger_word != CLI_TRIGGER_EOF) {
		if (common->late_path != NULL) {
			say(e, "Go to ");
			add_shown(e, common->late_path);
			wm_buf_add_text(&e->text, " as they came.");
		} else {
			say(e, "Are dropped and counted; --late FILE keeps them.");
		}
		if (common->fail_late != NULL)
			say(e, "The status is 5 if more than %s of the rows were late.", common->fail_late);
	}
	end_paragraph(e, "Late rows");

	say(e, "Rows without a time that can be read, or with a text where a number is needed, ");
	if (common->rejects_path != NULL) {
		wm_buf_add_text(&e->text, "go to ");
		add_shown(e, common->rejects_path);
		wm_buf_add_text(&e->text, common->strict ? "; the first ends the run (--strict)." : ".");
	} else if (common->strict) {
		wm_buf_add_text(&e->text, "end the run at the first (--strict).");
	} else {
		wm_buf_add_text(&e->text, "are rejected, counted, and make the status 1; --rejects FILE keeps them.");
	}
	end_paragraph(e, "Rejected");
}

void
explain_windowing(const struct cli_common *common, const struct explain_windowing *op, struct wm_buf *out)
{
	struct explanation e = {
		.common = common,
		.op = op,
		.out = out,
		.zone = common->zone == NULL ? wm_zone_utc() : common->zone,
		.has_watermark = common->delay.text != NULL,
		.is_batch = common->trigger_word != CLI_TRIGGER_EACH,
	};

	wm_buf_init(&e.text, WM_BUF_UNBOUNDED);
	find_times(&e);
	explain_input(&e);
	explain_time(&e);
	explain_windows(&e);
	explain_batches(&e);
	explain_watermark(&e);
	explain_written(&e);
	explain_rows_left_out(&e);
	explain_guards(&e);
	wm_buf_release(&e.text);
}
