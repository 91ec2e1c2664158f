/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wm-lag - how late data runs, and what delay to set.
 *
 * Measures the lag and the disorder of every row and writes their distribution
 * once, at the end, or as the watermark closes each window of --every; with --advise what each delay would lose, exactly as a run with it would.
 * See wm-lag(1).
 */
#include "cmd/advice.h"
#include "cmd/cli.h"
#include "cmd/explain.h"
#include "cmd/expose.h"
#include "cmd/plot.h"
#include "cmd/stream.h"
#include "cmd/terminal.h"
#include "cmd/windows.h"
#include "lib/base/decimal.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/base/shown.h"
#include "lib/event/watermark.h"
#include "lib/event/window.h"
#include "lib/op/lag.h"
#include "lib/record/display.h"
#include "lib/time/civil.h"
#include "lib/time/instant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* enum cli_output_format, and what it lacks. */
enum { FORMAT_DEFAULT = -1, FORMAT_PROMETHEUS = CLI_OUTPUT_TABLE + 1 };

#define PERCENTILES_MAX 100

struct options {
	struct cli_common common;
	const char *group_by;
	const char *every;
	const char *percentiles;
	bool advise;
	const char *target;
	const char *tumbling;
	const char *sliding;
	bool plot;
};

/* Drives parsing and --help; tests hold the man page and the completion to it. */
#define AT(field) offsetof(struct options, field)
static const struct cli_option table[] = {
	CLI_HEADING("Measures"),
	{ 0, "ingest", "COLUMN|now", "arrival time of a row: measure the lag too", CLI_COLUMN, AT(common.ingest),
		CLI_SCREEN },
	{ 'g', "group-by", "COLUMNS", "keys: each is measured by itself", CLI_COLUMNS, AT(group_by), CLI_SCREEN },
	{ 0, "every", "SIZE", "measure each window of event time by itself (1h, 1d)", CLI_SPAN_LIST, AT(every),
		CLI_ALL },
	{ 0, "percentiles", "LIST", "which ones (default 50,95,99,99.9)", CLI_TEXT, AT(percentiles), CLI_ALL },
	CLI_HEADING("Advice and plot"),
	{ 0, "advise", NULL, "what each delay would lose, and the -w to use", CLI_FLAG, AT(advise), CLI_SCREEN },
	{ 0, "target", "SHARE", "share of rows behind to aim at (1/1000; default 1%)", CLI_TEXT, AT(target),
		CLI_SCREEN },
	{ 0, "tumbling", "SIZE", "also what such windows would drop", CLI_SPAN_LIST, AT(tumbling), CLI_SCREEN },
	{ 0, "sliding", "SIZE,SLIDE", "the same for windows of SIZE, one every SLIDE", CLI_SPAN_LIST, AT(sliding),
		CLI_ALL },
	{ 0, "plot", NULL, "a histogram of the lag, or of the disorder", CLI_FLAG, AT(plot), CLI_SCREEN },
	{ 'o', "output-format", "same|csv|tsv|ndjson|table|prometheus",
		"default table on a terminal, else same: as the input", CLI_CHOICE, AT(common.output_format),
		CLI_SCREEN },
	CLI_END,
};
static const struct cli_tool tool = {
	.name = "wm-lag",
	.summary = "how late data runs, and what delay to set",
	.usage = "[OPTION]... [FILE]...",
	.examples = "wm-lag -t time --ingest received --advise --tumbling 1h events.csv\n"
		    "wm-lag -t time -g host --plot access.csv",
	.options = table,
	.groups = CLI_GROUP_STREAM,
	.measures_arrival = true,
};

/* The options, understood. */
struct plan {
	const struct options *opt;
	const struct wm_zone *zone;
	struct advice_plan advice;
	struct wm_windows every;
	struct wm_windows windows;
	bool has_every;
	bool closes;                                      /* windows of every, as the watermark passes their ends */
	bool is_grouped;                                  /* else all rows are one group */
	struct wm_span percentile_texts[PERCENTILES_MAX]; /* as typed */
	uint64_t percentiles[PERCENTILES_MAX];            /* in units of quantile.h */
	size_t percentiles_count;
	struct wm_span *keys; /* unescaped, owned */
	size_t keys_count;
	int format; /* not FORMAT_DEFAULT */
};

/* Understanding the options */

/* A percentage in units of quantile.h: digits and at most one point, 0 to 100; false if it is none. */
static bool
parse_percent(struct wm_span text, uint64_t *percent)
{
	struct wm_decimal number;
	int64_t unit = WM_FRACTION_ONE / WM_PERCENT_ONE;

	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] != '.' && (text.data[i] < '0' || text.data[i] > '9'))
			return false;
	if (!wm_decimal_parse(text, &number) || !number.is_exact || number.fraction % unit != 0 || number.whole > 100 ||
		(number.whole == 100 && number.fraction != 0))
		return false;
	*percent = (uint64_t)number.whole * WM_PERCENT_ONE + (uint64_t)(number.fraction / unit);
	return true;
}

static void
set_percentiles(struct plan *plan)
{
	const char *text = plan->opt->percentiles == NULL ? "50,95,99,99.9" : plan->opt->percentiles;
	struct wm_span rest = wm_span_of(text), part;

	while (wm_list_next(&rest, ',', &part)) {
		size_t count = plan->percentiles_count;

		if (count == PERCENTILES_MAX)
			cli_misuse("--percentiles: more than %d", PERCENTILES_MAX);
		if (!parse_percent(part, &plan->percentiles[count]))
			cli_misuse("--percentiles: '%.*s' is no percentage: write 50, 99 or 99.9", (int)part.len,
				part.data);
		for (size_t i = 0; i < count; i++)
			if (plan->percentiles[i] == plan->percentiles[count])
				cli_misuse(
					"--percentiles: '%.*s' is named twice: name it once", (int)part.len, part.data);
		plan->percentile_texts[count] = part;
		plan->percentiles_count++;
	}
}

/* Digits alone, up to a million million; false for anything else. */
static bool
parse_count(struct wm_span text, int64_t *count)
{
	*count = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' || i == 12)
			return false;
		*count = *count * 10 + (text.data[i] - '0');
	}
	return text.len != 0;
}

/* "1/1000" or "0.1%". */
static void
set_target(struct plan *plan)
{
	const char *text = plan->opt->target == NULL ? "1%" : plan->opt->target;
	struct wm_span all = wm_span_of(text);
	const char *slash = strchr(text, '/');
	uint64_t percent;
	bool is_good;

	plan->advice.target_text = text;
	if (slash != NULL) {
		is_good = parse_count(wm_span(text, (size_t)(slash - text)), &plan->advice.target.part) &&
			parse_count(wm_span_of(slash + 1), &plan->advice.target.whole) &&
			plan->advice.target.whole != 0;
	} else {
		is_good =
			all.len != 0 && text[all.len - 1] == '%' && parse_percent(wm_span(text, all.len - 1), &percent);
		if (is_good)
			plan->advice.target = (struct advice_share){ (int64_t)percent, WM_PERCENT_ALL };
		else if (parse_percent(all, &percent))
			cli_misuse("--target: '%s': of what? write 1/1000 or 0.1%%", text);
	}
	if (!is_good)
		cli_misuse("--target: '%s' is no share: write 1/1000 or 0.1%%", text);
	if (plan->advice.target.part > plan->advice.target.whole)
		cli_misuse("--target: '%s' is more than all rows", text);
}

static void
set_keys(struct plan *plan)
{
	struct wm_span rest = wm_span(NULL, 0), key;
	struct wm_buf name;

	if (plan->opt->group_by != NULL)
		rest = wm_span_of(plan->opt->group_by);
	wm_buf_init(&name, WM_BUF_UNBOUNDED);
	while (wm_list_next(&rest, ',', &key)) {
		if (plan->keys_count == WM_KEYS_MAX)
			cli_misuse("--group-by: more than %d columns", WM_KEYS_MAX);
		wm_buf_reset(&name);
		wm_list_unescape(key, &name);
		plan->keys = wm_reallocarray(plan->keys, plan->keys_count + 1, sizeof(plan->keys[0]));
		plan->keys[plan->keys_count++] = wm_span(wm_memdup(name.data, name.len), name.len);
	}
	wm_buf_release(&name);
}

static void
set_format(struct plan *plan)
{
	const struct options *opt = plan->opt;
	int asked = opt->common.output_format;
	bool is_terminal = opt->common.out_path == NULL && isatty(STDOUT_FILENO) == 1;

	if (opt->plot && asked != FORMAT_DEFAULT && asked != CLI_OUTPUT_TABLE)
		cli_misuse("--plot: a histogram is for eyes: leave out -o, or write -o table");
	if (asked == FORMAT_PROMETHEUS && opt->every != NULL)
		cli_misuse("--every: Prometheus keeps the time itself: leave it out, or write -o csv");
	if (asked != FORMAT_DEFAULT)
		plan->format = asked;
	else
		plan->format = opt->plot || is_terminal ? CLI_OUTPUT_TABLE : CLI_OUTPUT_SAME;
}

static struct expose_plan
expose_plan_of(const struct plan *plan)
{
	return (struct expose_plan){
		.keys = plan->keys,
		.keys_count = plan->keys_count,
		.percentiles = plan->percentiles,
		.percentiles_count = plan->percentiles_count,
		.has_arrival = plan->advice.has_arrival,
		.has_advice = plan->advice.is_wanted,
		.target = plan->advice.target,
	};
}

static void
check_labels(const struct plan *plan)
{
	struct expose_plan expose = expose_plan_of(plan);
	size_t key;

	if (!expose_can_label(&expose, &key))
		cli_misuse("--group-by: '%.*s' is a label that there is already: rename it in the input",
			(int)plan->keys[key].len, plan->keys[key].data);
}

static void
set_plan(struct plan *plan, const struct options *opt)
{
	*plan = (struct plan){
		.opt = opt,
		.zone = opt->common.zone == NULL ? wm_zone_utc() : opt->common.zone,
		.advice = {
			.is_wanted = opt->advise,
			.given_us = opt->common.delay.text != NULL ? opt->common.delay.us : -1,
			.has_arrival = opt->common.ingest != NULL,
			.has_windows = opt->tumbling != NULL || opt->sliding != NULL,
		},
		.has_every = opt->every != NULL,
		.closes = opt->every != NULL && opt->common.delay.text != NULL,
		.is_grouped = opt->every != NULL || opt->group_by != NULL,
	};
	if (opt->common.is_spark)
		cli_misuse("--compat: the advice is for wm's own rule, by which a row at the watermark is in time: "
			   "leave it out");
	if (!opt->advise && opt->target != NULL)
		cli_misuse("--target: it is a part of the advice: add --advise");
	if (!opt->advise && plan->advice.has_windows)
		cli_misuse("--%s: what windows would drop is a part of the advice: add --advise (measures by window: "
			   "--every)",
			opt->tumbling != NULL ? "tumbling" : "sliding");
	if (opt->tumbling != NULL && opt->sliding != NULL)
		cli_misuse("--tumbling and --sliding exclude each other");
	if (opt->every != NULL)
		windows_tumbling(&plan->every, "--every", opt->every, &opt->common, 0);
	if (opt->tumbling != NULL)
		windows_tumbling(&plan->windows, "--tumbling", opt->tumbling, &opt->common, 0);
	if (opt->sliding != NULL)
		windows_sliding(&plan->windows, "--sliding", opt->sliding, 0);
	set_percentiles(plan);
	set_target(plan);
	set_keys(plan);
	set_format(plan);
	if (plan->format == FORMAT_PROMETHEUS)
		check_labels(plan);
}

static void
release_plan(struct plan *plan)
{
	for (size_t i = 0; i < plan->keys_count; i++)
		free((void *)(uintptr_t)plan->keys[i].data);
	free(plan->keys);
}

/* Rows of results: names, then one row after the other */

struct rows {
	struct wm_span *names;
	struct wm_value *values; /* texts point into text once the row is whole */
	size_t count;
	size_t at; /* values of the row that is being made */
	struct wm_buf names_text;
	struct wm_buf text;
	const char *ofmt;
};

static void
add_name(struct rows *rows, struct wm_span name)
{
	rows->names = wm_reallocarray(rows->names, rows->count + 1, sizeof(rows->names[0]));
	rows->values = wm_reallocarray(rows->values, rows->count + 1, sizeof(rows->values[0]));
	rows->names[rows->count++] = name;
}

static void
add_names(struct rows *rows, const char *const *names)
{
	for (; *names != NULL; names++)
		add_name(rows, wm_span_of(*names));
}

static void
open_rows(struct rows *rows, const struct plan *plan)
{
	*rows = (struct rows){ .ofmt = plan->opt->common.ofmt };
	wm_buf_init(&rows->names_text, WM_BUF_UNBOUNDED);
	wm_buf_init(&rows->text, WM_BUF_UNBOUNDED);
}

static void
release_rows(struct rows *rows)
{
	free(rows->names);
	free(rows->values);
	wm_buf_release(&rows->names_text);
	wm_buf_release(&rows->text);
}

/* The windows and keys that a group is known by. */
static void
add_group_names(struct rows *rows, const struct plan *plan)
{
	static const char *const window_names[] = { "window_start", "window_end", NULL };

	if (plan->has_every)
		add_names(rows, window_names);
	for (size_t i = 0; i < plan->keys_count; i++)
		add_name(rows, plan->keys[i]);
}

/* Two columns of one name would make a result that nobody can read by name. */
static void
check_names(const struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		for (size_t other = 0; other < i; other++)
			if (wm_span_equal(rows->names[i], rows->names[other]))
				cli_misuse("--group-by: the result has a column '%.*s' of its own: rename it in the "
					   "input",
					(int)rows->names[i].len, rows->names[i].data);
}

static void
add_measure_names(struct rows *rows, const struct plan *plan)
{
	static const char *const before[] = { "measure", "count", "avg", "min", NULL };
	static const char *const behind[] = { "max", "negative", NULL };
	size_t at = 0;

	add_names(rows, before);
	for (size_t i = 0; i < plan->percentiles_count; i++)
		wm_buf_addf(
			&rows->names_text, "p%.*s", (int)plan->percentile_texts[i].len, plan->percentile_texts[i].data);
	for (size_t i = 0; i < plan->percentiles_count; i++) {
		size_t len = plan->percentile_texts[i].len + 1;

		add_name(rows, wm_span(rows->names_text.data + at, len));
		at += len;
	}
	add_names(rows, behind);
}

static void
add_advice_names(struct rows *rows, const struct plan *plan)
{
	static const char *const names[] = { "advice", "delay", "rows", "rows_behind", "behind_share", NULL };
	static const char *const window_names[] = { "rows_dropped", "dropped_share", NULL };

	add_names(rows, names);
	if (plan->advice.has_windows)
		add_names(rows, window_names);
	add_name(rows, wm_span_of("notes"));
}

/* Values are begun with these, after their text was appended to rows->text; from is where it begins. */
static void
end_value(struct rows *rows, size_t from, enum wm_kind kind)
{
	rows->values[rows->at++] = (struct wm_value){ wm_span(NULL, rows->text.len - from), kind };
}

static void
put_value(struct rows *rows, struct wm_span text, enum wm_kind kind)
{
	size_t from = rows->text.len;

	wm_buf_add(&rows->text, text.data, text.len);
	end_value(rows, from, kind);
}

static void
put_text(struct rows *rows, const char *text)
{
	put_value(rows, wm_span_of(text), WM_KIND_TEXT);
}

static void
put_null(struct rows *rows)
{
	put_value(rows, wm_span("", 0), WM_KIND_NULL);
}

static void
put_count(struct rows *rows, uint64_t count)
{
	size_t from = rows->text.len;

	wm_buf_addf(&rows->text, "%" PRIu64, count);
	end_value(rows, from, WM_KIND_NUMBER);
}

/* Microseconds as seconds, exactly. */
static void
put_seconds(struct rows *rows, int64_t us)
{
	char text[WM_INSTANT_TEXT_MAX];

	put_value(rows, wm_span(text, wm_instant_print(us, WM_UNIT_S, NULL, text)), WM_KIND_NUMBER);
}

/* A computed number: by --ofmt, if it is no integer. */
static void
put_computed(struct rows *rows, double number)
{
	size_t from = rows->text.len;

	wm_double_print(number, &rows->text);
	struct wm_span text = wm_span(rows->text.data + from, rows->text.len - from);
	if (rows->ofmt != NULL && memchr(text.data, '.', text.len) != NULL) {
		struct wm_buf formatted;

		wm_buf_init(&formatted, WM_BUF_UNBOUNDED);
		wm_number_format(text, rows->ofmt, &formatted);
		rows->text.len = from;
		wm_buf_add(&rows->text, formatted.data, formatted.len);
		wm_buf_release(&formatted);
	}
	end_value(rows, from, WM_KIND_NUMBER);
}

static void
put_time(struct rows *rows, const struct plan *plan, int64_t time_us)
{
	char text[WM_INSTANT_TEXT_MAX];
	enum wm_time_unit unit = (enum wm_time_unit)plan->opt->common.output_time;
	const struct wm_zone *zone = unit == WM_UNIT_ISO ? plan->zone : wm_zone_utc();
	size_t len = wm_instant_print(wm_instant_hold(time_us, zone), unit, zone, text);

	put_value(rows, wm_span(text, len), unit == WM_UNIT_ISO ? WM_KIND_TEXT : WM_KIND_NUMBER);
}

static void
put_group(struct rows *rows, const struct plan *plan, const struct wm_lag_group *group)
{
	if (plan->has_every && group->window_start_us == WM_LAG_NO_WINDOW) {
		put_null(rows);
		put_null(rows);
	} else if (plan->has_every) {
		put_time(rows, plan, group->window_start_us);
		put_time(rows, plan, group->window_end_us);
	}
	for (size_t i = 0; i < plan->keys_count; i++)
		put_value(rows, group->keys[i].text, group->keys[i].kind);
}

/* The row is whole: its values, until the next one is begun. */
static const struct wm_value *
end_row(struct rows *rows)
{
	const char *at = rows->text.data;

	for (size_t i = 0; i < rows->at; i++) {
		rows->values[i].text.data = at;
		at += rows->values[i].text.len;
	}
	rows->at = 0;
	wm_buf_reset(&rows->text);
	return rows->values;
}

/* csv, tsv and ndjson */

static void
put_rounded(struct rows *rows, int64_t us)
{
	size_t from = rows->text.len;

	advice_print_rounded(us, &rows->text);
	end_value(rows, from, WM_KIND_NUMBER);
}

/* A line of what was measured: exact, in seconds, or as a person reads it. */
static void
put_measure(struct rows *rows, const struct plan *plan, const struct wm_lag_group *group, enum wm_lag_kind kind,
	bool is_rounded)
{
	const struct wm_lag_series *series = &group->series[kind];
	void (*put)(struct rows * rows, int64_t us) = is_rounded ? put_rounded : put_seconds;

	put_group(rows, plan, group);
	put_text(rows, kind == WM_LAG_LAG ? "lag" : "disorder");
	put_count(rows, series->count);
	if (series->count == 0) {
		for (size_t i = 0; i < plan->percentiles_count + 3; i++)
			put_null(rows);
	} else {
		if (is_rounded)
			put_rounded(rows, (int64_t)(wm_lag_mean_s(series) * (double)WM_US_PER_SECOND));
		else
			put_computed(rows, wm_lag_mean_s(series));
		put(rows, series->min_us);
		for (size_t p = 0; p < plan->percentiles_count; p++)
			put(rows, wm_lag_percentile(series, plan->percentiles[p]));
		put(rows, series->max_us);
	}
	put_count(rows, series->negative);
}

static void
put_notes(struct rows *rows, unsigned notes)
{
	size_t from = rows->text.len;

	for (size_t i = 0; i < ADVICE_NOTES; i++)
		if ((notes >> i & 1) != 0)
			wm_buf_addf(&rows->text, "%s%s", rows->text.len == from ? "" : " ", advice_note_name(i));
	end_value(rows, from, rows->text.len == from ? WM_KIND_NULL : WM_KIND_TEXT);
}

static void
write_advice(struct rows *rows, const struct plan *plan, const struct wm_lag_group *group, struct stream *s)
{
	struct advice advice[ADVICE_KINDS] = { { .kind = ADVICE_TARGET } };
	bool is_empty = group->count == 0;
	size_t count = is_empty ? 1 : advice_make(&plan->advice, group, false, advice);
	unsigned notes = advice_notes(&plan->advice, group);

	for (size_t i = 0; i < count; i++) {
		put_group(rows, plan, group);
		put_text(rows, advice_name(advice[i].kind));
		if (is_empty)
			put_null(rows);
		else
			put_seconds(rows, advice[i].delay_us);
		put_count(rows, group->count);
		put_count(rows, advice[i].behind);
		if (is_empty)
			put_null(rows);
		else
			put_computed(rows, wm_ratio(advice[i].behind, group->count));
		if (plan->advice.has_windows) {
			put_count(rows, advice[i].dropped);
			if (is_empty)
				put_null(rows);
			else
				put_computed(rows, wm_ratio(advice[i].dropped, group->count));
		}
		put_notes(rows, advice[i].kind == ADVICE_TARGET ? notes : notes & NOTE_APPROXIMATE);
		stream_put_row(s, end_row(rows));
	}
}

/* Notes stand beside the results: of groups only what concerns them all. */
static void
warn_notes(const struct plan *plan, const struct wm_lag_group *group, unsigned notes)
{
	struct wm_buf text;

	if (plan->opt->common.quiet)
		return;
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < ADVICE_NOTES; i++) {
		if ((notes >> i & 1) == 0)
			continue;
		wm_buf_reset(&text);
		advice_print_note((enum advice_note)(1 << i), &plan->advice, group, &text);
		cli_warn("note: %.*s", (int)text.len, text.data);
	}
	wm_buf_release(&text);
}

/* Where results go. */
struct output {
	struct rows rows;           /* of csv, tsv and ndjson */
	struct rows shown;          /* of a table that has begun, */
	struct wm_display *display; /* and this is it; NULL: none has */
	bool has_table;             /* one was written */
	bool is_told;               /* that values are approximate */
};

static void
write_rows(struct output *to, const struct plan *plan, struct wm_lag *lag, struct stream *s)
{
	bool is_approximate = false;
	struct rows *rows = &to->rows;
	struct wm_lag_group group;

	while (wm_lag_next(lag, &group)) {
		unsigned notes = advice_notes(&plan->advice, &group);

		if (plan->advice.is_wanted) {
			write_advice(rows, plan, &group, s);
		} else {
			if (plan->advice.has_arrival) {
				put_measure(rows, plan, &group, WM_LAG_LAG, false);
				stream_put_row(s, end_row(rows));
			}
			put_measure(rows, plan, &group, WM_LAG_DISORDER, false);
			stream_put_row(s, end_row(rows));
		}
		if (!plan->is_grouped)
			warn_notes(plan, &group, plan->advice.is_wanted ? notes : notes & NOTE_APPROXIMATE);
		is_approximate = is_approximate || (plan->is_grouped && (notes & NOTE_APPROXIMATE) != 0);
	}
	if (is_approximate && !to->is_told)
		warn_notes(plan, &group, NOTE_APPROXIMATE);
	to->is_told |= is_approximate;
}

/* Terminals */

struct screen {
	size_t width; /* in places; 0: it is none, or not known */
	bool is_utf8;
	bool has_colour;
};

static size_t
width_of(const struct screen *screen)
{
	return screen->width == 0 ? 80 : screen->width;
}

static struct screen
screen_of(const struct plan *plan)
{
	struct screen screen = { .is_utf8 = terminal_is_utf8() };
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	if (plan->opt->common.out_path != NULL || isatty(STDOUT_FILENO) != 1)
		return screen;
	screen.width = terminal_width(STDOUT_FILENO);
	screen.has_colour = (no_colour == NULL || no_colour[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0;
	return screen;
}

/* The table */

static void
put_percent(struct rows *rows, uint64_t count, uint64_t all)
{
	size_t from = rows->text.len;

	wm_buf_addf(&rows->text, "%.3g%%", wm_ratio(count, all) * 100);
	end_value(rows, from, WM_KIND_NUMBER);
}

static struct wm_display *
new_display(const struct rows *rows, const struct screen *screen)
{
	struct wm_display_options options = { screen->width, screen->is_utf8 };

	return wm_display_new(rows->names, rows->count, &options);
}

static void
begin_table(struct output *to, const struct plan *plan, const struct screen *screen, struct wm_buf *out)
{
	open_rows(&to->shown, plan);
	add_group_names(&to->shown, plan);
	add_measure_names(&to->shown, plan);
	to->display = new_display(&to->shown, screen);
	if (to->has_table)
		wm_buf_add_byte(out, '\n');
	to->has_table = true;
}

static void
end_table(struct output *to, struct wm_buf *out)
{
	wm_display_end(to->display, out);
	wm_display_free(to->display);
	to->display = NULL;
	release_rows(&to->shown);
}

static void
show_measures(struct output *to, const struct plan *plan, struct wm_lag *lag, struct wm_buf *out)
{
	struct wm_lag_group group;

	while (wm_lag_next(lag, &group)) {
		if (plan->advice.has_arrival) {
			put_measure(&to->shown, plan, &group, WM_LAG_LAG, true);
			wm_display_put(to->display, end_row(&to->shown), out);
		}
		put_measure(&to->shown, plan, &group, WM_LAG_DISORDER, true);
		wm_display_put(to->display, end_row(&to->shown), out);
	}
	wm_display_flush(to->display, out);
}

/* "net=ak, 2018-02-01T00:00:00Z to 2018-02-02T00:00:00Z": what a group is known by. */
static void
show_group(const struct plan *plan, const struct wm_lag_group *group, struct wm_buf *out)
{
	char start[WM_INSTANT_TEXT_MAX], end[WM_INSTANT_TEXT_MAX];

	for (size_t i = 0; i < plan->keys_count; i++) {
		wm_buf_add_text(out, i == 0 ? "" : ", ");
		wm_shown(plan->keys[i], out);
		wm_buf_add_byte(out, '=');
		wm_shown(group->keys[i].text, out);
	}
	if (plan->has_every && group->window_start_us == WM_LAG_NO_WINDOW) {
		wm_buf_addf(out, "%swithout a window", plan->keys_count == 0 ? "" : ", ");
	} else if (plan->has_every) {
		size_t start_len = wm_instant_print(group->window_start_us, WM_UNIT_ISO, plan->zone, start);
		size_t end_len = wm_instant_print(group->window_end_us, WM_UNIT_ISO, plan->zone, end);

		wm_buf_addf(out, "%s%.*s to %.*s", plan->keys_count == 0 ? "" : ", ", (int)start_len, start,
			(int)end_len, end);
	}
	wm_buf_add_text(out, ":\n");
}

/* A sentence in lines of a width. */
static void
show_wrapped(struct wm_span text, size_t width, struct wm_buf *out)
{
	struct wm_span word;
	size_t used = 0;

	while (wm_list_next(&text, ' ', &word)) {
		if (used != 0 && used + 1 + word.len > width) {
			wm_buf_add_byte(out, '\n');
			used = 0;
		}
		wm_buf_addf(out, "%s%.*s", used == 0 ? "" : " ", (int)word.len, word.data);
		used += (used != 0) + word.len;
	}
	wm_buf_add_byte(out, '\n');
}

static void
show_advice(const struct plan *plan, const struct wm_lag_group *group, const struct screen *screen, struct wm_buf *out)
{
	struct advice advice[ADVICE_KINDS];
	struct rows rows;
	size_t count = advice_make(&plan->advice, group, true, advice);
	int64_t exact_us = advice_delay_us(&group->series[WM_LAG_BEHIND], plan->advice.target);

	open_rows(&rows, plan);
	static const char *const names[] = { "delay", "behind", "share", NULL };
	static const char *const window_names[] = { "dropped", "of windows", NULL };
	add_names(&rows, names);
	if (plan->advice.has_windows)
		add_names(&rows, window_names);
	add_name(&rows, wm_span_of("for"));
	struct wm_display *display = new_display(&rows, screen);
	for (size_t i = 0; i < count; i++) {
		size_t from = rows.text.len;

		advice_print_delay(advice[i].delay_us, &rows.text);
		end_value(&rows, from, WM_KIND_NUMBER);
		put_count(&rows, advice[i].behind);
		put_percent(&rows, advice[i].behind, group->count);
		if (plan->advice.has_windows) {
			put_count(&rows, advice[i].dropped);
			put_percent(&rows, advice[i].dropped, group->count);
		}
		put_text(&rows, advice_words(advice[i].kind));
		wm_display_put(display, end_row(&rows), out);
	}
	wm_display_end(display, out);
	wm_display_free(display);
	release_rows(&rows);

	char exact[WM_INSTANT_TEXT_MAX];
	struct wm_buf text;
	size_t exact_len = wm_instant_print(exact_us, WM_UNIT_S, NULL, exact);
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_add_text(&text, "Use -w ");
	advice_print_delay(advice_rounded_up(exact_us), &text);
	wm_buf_addf(&text, " to have no more than %s of the rows behind (exactly: -w %.*ss).", plan->advice.target_text,
		(int)exact_len, exact);
	wm_buf_add_byte(out, '\n');
	show_wrapped(wm_buf_span(&text), width_of(screen), out);
	wm_buf_release(&text);
}

static void
show_notes(unsigned notes, const struct plan *plan, const struct wm_lag_group *group, size_t width, struct wm_buf *out)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < ADVICE_NOTES; i++) {
		if ((notes >> i & 1) == 0)
			continue;
		wm_buf_reset(&text);
		wm_buf_add_text(&text, "Note: ");
		advice_print_note((enum advice_note)(1 << i), &plan->advice, group, &text);
		wm_buf_add_byte(&text, '.');
		show_wrapped(wm_buf_span(&text), width, out);
	}
	wm_buf_release(&text);
}

/* Whether anything stands below the measures about a group. */
static bool
has_details(const struct plan *plan, const struct wm_lag_group *group)
{
	return group->count != 0 &&
		(plan->advice.is_wanted || plan->opt->plot || advice_notes(&plan->advice, group) != 0);
}

/* What stands there. */
static void
show_details(const struct plan *plan, const struct wm_lag_group *group, const struct screen *screen, struct wm_buf *out)
{
	const struct plot_screen plot = { width_of(screen), screen->is_utf8, screen->has_colour };
	enum wm_lag_kind plotted = plan->advice.has_arrival ? WM_LAG_LAG : WM_LAG_DISORDER;
	unsigned notes = advice_notes(&plan->advice, group);

	wm_buf_add_byte(out, '\n');
	if (plan->is_grouped)
		show_group(plan, group, out);
	if (plan->advice.is_wanted)
		show_advice(plan, group, screen, out);
	show_notes(notes, plan, group, plot.width, out);
	if (plan->opt->plot && (plan->advice.is_wanted || notes != 0))
		wm_buf_add_byte(out, '\n');
	if (plan->opt->plot)
		plot_series(plotted == WM_LAG_LAG ? "lag" : "disorder", &group->series[plotted], &plot, out);
}

static void
show_table(struct output *to, const struct plan *plan, struct wm_lag *lag, struct wm_buf *out)
{
	struct screen screen = screen_of(plan);
	struct wm_lag_group group;

	if (to->display == NULL)
		begin_table(to, plan, &screen, out);
	show_measures(to, plan, lag, out);
	while (wm_lag_next(lag, &group)) {
		if (!has_details(plan, &group))
			continue;
		if (to->display != NULL)
			end_table(to, out);
		show_details(plan, &group, &screen, out);
	}
}

static void
write_results(struct output *to, const struct plan *plan, struct wm_lag *lag, struct stream *s)
{
	struct expose_plan expose = expose_plan_of(plan);
	struct wm_buf text;

	if (plan->format != CLI_OUTPUT_TABLE && plan->format != FORMAT_PROMETHEUS) {
		write_rows(to, plan, lag, s);
		return;
	}
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	if (plan->format == CLI_OUTPUT_TABLE)
		show_table(to, plan, lag, &text);
	else
		expose_lag(&expose, lag, &text);
	stream_put_text(s, wm_buf_span(&text));
	wm_buf_release(&text);
}

/* Writes the windows that the watermark has passed, and forgets them. */
static void
close_windows(struct output *to, const struct plan *plan, struct wm_lag *lag, struct stream *s, int64_t watermark_us)
{
	if (!wm_lag_close(lag, watermark_us))
		return;
	write_results(to, plan, lag, s);
	wm_lag_forget(lag);
}

/* A table has its header though it has no row. */
static void
end_results(struct output *to, const struct plan *plan, struct stream *s)
{
	struct wm_buf text;

	if (plan->format != CLI_OUTPUT_TABLE || (to->has_table && to->display == NULL))
		return;
	struct screen screen = screen_of(plan);
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	if (to->display == NULL)
		begin_table(to, plan, &screen, &text);
	end_table(to, &text);
	stream_put_text(s, wm_buf_span(&text));
	wm_buf_release(&text);
}

static _Noreturn void
explain(const struct plan *plan)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_addf(&text,
		"Every row is measured; what was measured is written once, when %s.\n"
		"Disorder is how far a row is behind the highest event time before it.\n",
		plan->closes ? "the watermark has passed the end of its window" : "the input ends");
	if (plan->advice.has_arrival)
		wm_buf_add_text(&text, "Lag is its arrival time less its event time.\n");
	if (plan->keys_count != 0)
		wm_buf_addf(&text, "Each value of %s is measured by itself.\n", plan->opt->group_by);
	if (plan->has_every)
		wm_buf_addf(&text, "Each %s of event time is measured by itself.\n", plan->opt->every);
	if (plan->opt->advise)
		wm_buf_addf(&text, "The advice is the least -w with which no more than %s of the rows is behind.\n",
			plan->advice.target_text);
	if (plan->opt->common.delay.text != NULL)
		wm_buf_addf(&text,
			"Rows that are behind under -w %s are counted as late, and measured all the same%s.\n",
			plan->opt->common.delay.text,
			plan->closes ? ": those whose window was written before, together, in rows without a window"
				     : "");
	explain_nulls(&plan->opt->common, &text);
	cli_answer(&text);
}

static void
say_state(const struct wm_lag *lag, struct stream *s)
{
	struct report_state state = { .groups = wm_lag_groups_count(lag), .bytes = wm_lag_bytes(lag) };

	stream_set_state(s, &state);
}

/* What is kept from run to run */

/* Version of a state whose windows are closed: it may hold groups without a window. */
#define STATE_CLOSES 2

static void
encode(void *self, struct wm_buf *out)
{
	wm_lag_encode(*(struct wm_lag **)self, out);
}

static bool
decode(void *self, struct wm_get *in)
{
	return wm_lag_decode(*(struct wm_lag **)self, in);
}

static size_t
bytes(const void *self)
{
	return wm_lag_bytes(*(struct wm_lag *const *)self);
}

static bool
holds_texts(const void *self)
{
	return wm_lag_groups_count(*(struct wm_lag *const *)self) > 0;
}

static struct keep_options
kept_options(const struct options *opt)
{
	struct keep_options kept = { 0 };

	keep_option(&kept, "--ingest", opt->common.ingest);
	keep_option(&kept, "--group-by", opt->group_by);
	keep_option_durations(&kept, "--every", opt->every);
	keep_option_flag(&kept, "--advise", opt->advise);
	keep_option_durations(&kept, "--tumbling", opt->tumbling);
	keep_option_durations(&kept, "--sliding", opt->sliding);
	return kept;
}

static void
measure(struct wm_lag *lag, const struct plan *plan, const struct stream_row *row)
{
	struct wm_value keys[WM_KEYS_MAX];
	struct wm_lag_record record = {
		.event_time_us = row->event_time_us,
		.highest_time_us = row->highest_time_us,
		.arrival_us = row->arrival_us,
		.watermark_us = row->watermark_us,
		.keys = keys,
	};

	for (size_t i = 0; i < plan->keys_count; i++)
		keys[i] = row->readings[i].value;
	wm_lag_add(lag, &record);
}

/* From so many groups on it is said that none is forgotten. */
#define GROUPS_MANY 100000

/* Without a watermark a group is written when the input ends, so an input without end has groups without end. */
static void
tell_many(const struct plan *plan, const struct wm_lag *lag, bool *is_told)
{
	if (*is_told || wm_lag_groups_count(lag) < GROUPS_MANY)
		return;
	*is_told = true;
	if (!plan->opt->common.quiet)
		cli_warn("%d groups are measured by themselves, and none is forgotten before the input ends: %s, or a "
			 "run for each file, bounds the memory",
			GROUPS_MANY,
			plan->opt->group_by == NULL ? "a delay (-w), a longer --every"
				: plan->has_every   ? "a delay (-w), a longer --every, fewer keys (-g)"
						    : "fewer keys (-g)");
}

/* Their rows of results are no windows'. */
static void
tell_overdue(const struct plan *plan, const struct wm_lag *lag)
{
	uint64_t count = wm_lag_overdue_count(lag);

	if (count != 0 && !plan->opt->common.quiet)
		cli_warn("%" PRIu64 " row%s came when the window of --every had been written: measured %s, without a "
			 "window; a longer -w leaves windows open for longer",
			count, count == 1 ? "" : "s", plan->keys_count == 0 ? "together" : "by key");
}

int
main(int argc, char **argv)
{
	struct options opt = { .common.eof = CLI_EOF_DEFAULT, .common.output_format = FORMAT_DEFAULT };
	struct plan plan;

	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	set_plan(&plan, &opt);
	bool is_text = plan.format == CLI_OUTPUT_TABLE || plan.format == FORMAT_PROMETHEUS;
	opt.common.output_format = is_text ? CLI_OUTPUT_CSV : plan.format;
	if (opt.common.explain)
		explain(&plan);

	struct wm_lag *lag = NULL;
	const struct keep_state state = {
		.self = &lag,
		.version = plan.closes ? STATE_CLOSES : 1,
		.encode = encode,
		.decode = decode,
		.bytes = bytes,
		.holds_texts = holds_texts,
		.is_bound_by_delay = plan.closes,
		.bound = opt.group_by != NULL ? "fewer keys (-g)"
			: opt.every != NULL   ? "a longer --every"
					      : NULL,
		.writes_anew = !plan.closes,
		.is_gone_by_flush = plan.closes,
	};
	struct keep_options kept = kept_options(&opt);
	const struct stream_facts facts = {
		.operator_name = "lag",
		.wants_arrival = true,
		.state = &state,
		.options = &kept,
		.late_fate = "measured all the same",
		.held_unit = "group",
	};
	struct stream *s = stream_open(&opt.common, &facts);
	struct output to = { 0 };
	open_rows(&to.rows, &plan);
	struct wm_span rest = wm_span(NULL, 0), key;
	if (opt.group_by != NULL)
		rest = wm_span_of(opt.group_by);
	while (wm_list_next(&rest, ',', &key))
		stream_want(s, key, STREAM_TEXT);
	add_group_names(&to.rows, &plan);
	if (opt.advise)
		add_advice_names(&to.rows, &plan);
	else
		add_measure_names(&to.rows, &plan);
	check_names(&to.rows);
	stream_begin(s, to.rows.names, is_text ? 0 : to.rows.count);

	struct wm_lag_options lag_options = {
		.keys_count = plan.keys_count,
		.every = plan.has_every ? &plan.every : NULL,
		.windows = plan.advice.has_windows ? &plan.windows : NULL,
		.closes = plan.closes,
		.has_arrival = plan.advice.has_arrival,
		.has_advice = opt.advise,
	};
	lag = wm_lag_new(&lag_options);
	stream_resume(s);
	struct stream_row row;
	enum stream_item item;
	bool is_told = !plan.is_grouped || plan.closes, is_begun = false;
	/* Nothing is due where no window is closed, nor before a record has begun the outputs, though an old checkpoint holds such windows. */
	int64_t due_us = WM_TIME_END;
	for (; (item = stream_next(s, due_us, &row)) != STREAM_END; due_us = wm_lag_due_us(lag)) {
		/* A watermark in band is known with the first record, which is too late for what a checkpoint holds. */
		if (item == STREAM_RECORD && !is_begun && plan.has_every && opt.common.checkpoint == NULL &&
			stream_is_in_band(s) && !plan.closes) {
			plan.closes = is_told = true;
			wm_lag_set_closes(lag);
		}
		is_begun |= item == STREAM_RECORD;
		if (item == STREAM_WATERMARK && plan.closes)
			close_windows(&to, &plan, lag, s, row.watermark_us);
		if (item == STREAM_TICK || (item == STREAM_WATERMARK && stream_wants_state(s)))
			say_state(lag, s);
		if (item != STREAM_RECORD)
			continue;
		measure(lag, &plan, &row);
		tell_many(&plan, lag, &is_told);
		if (wm_is_behind(row.event_time_us, row.watermark_us))
			stream_late(s, 0);
		else
			stream_used(s, 0);
	}
	say_state(lag, s);
	/* At a limit the next run will write them, of all that was read. */
	bool is_left = !plan.closes && stream_is_kept_at_limit(s);
	if (!plan.closes && !is_left)
		write_results(&to, &plan, lag, s);
	if (!is_left)
		end_results(&to, &plan, s);
	tell_overdue(&plan, lag);
	uint64_t held_count = plan.closes && stream_is_held(s) ? wm_lag_groups_count(lag) : 0;
	int status = stream_finish(s, held_count); /* flushes and checks every output */
	wm_lag_free(lag);
	keep_options_release(&kept);
	release_rows(&to.rows);
	release_plan(&plan);
	cli_release(&opt.common);
	return status;
}
