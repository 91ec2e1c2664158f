/*
 * wm-window - aggregate by event-time window and key.
 *
 * A window is written when the watermark (highest event time - delay) has
 * reached its end; records that come after that are late. See wm-window(1).
 */
#include "cmd/cli.h"
#include "cmd/explain.h"
#include "cmd/stream.h"
#include "cmd/windows.h"
#include "lib/agg/agg.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/event/window.h"
#include "lib/op/windowing.h"
#include "lib/time/instant.h"

#include <stdlib.h>
#include <string.h>

struct options {
	struct cli_common common;
	const char *tumbling;
	const char *sliding;
	struct cli_duration offset;
	const char *group_by;
	const char *aggregate;
	int mode; /* enum wm_window_mode */
};

/* Drives parsing and --help; tests hold the man page and the completion to it. */
#define AT(field) offsetof(struct options, field)
static const struct cli_option table[] = {
	CLI_HEADING("Windows"),
	{ 0, "tumbling", "SIZE", "windows of SIZE, one after the other (5m, 1h, 1d)", CLI_SPAN_LIST, AT(tumbling),
		CLI_SCREEN },
	{ 0, "sliding", "SIZE,SLIDE", "windows of SIZE, one every SLIDE", CLI_SPAN_LIST, AT(sliding), CLI_SCREEN },
	{ 0, "offset", "D", "shift of the window grid, also negative", CLI_OFFSET, AT(offset), CLI_ALL },
	{ 'g', "group-by", "COLUMNS", "keys: each has windows of its own", CLI_COLUMNS, AT(group_by), CLI_SCREEN },
	{ 'a', "aggregate", "LIST", "count (default), sum:c, avg:c, min:c, max:c, first:c, last:c, ...", CLI_TEXT,
		AT(aggregate), CLI_SCREEN },
	{ 0, "mode", "append|update|complete", "write windows when complete (default), when changed, or all",
		CLI_CHOICE, AT(mode), CLI_SCREEN },
	CLI_END,
};
static const struct cli_tool tool = {
	.name = "wm-window",
	.summary = "aggregate by event-time window and key",
	.usage = "[OPTION]... [FILE]...",
	.examples = "wm-window -t time -w 10m --tumbling 1m -g status access.csv\n"
		    "tail -F events.ndjson | wm-window -t ts -w 30s --sliding 5m,1m -a count,avg:ms",
	.options = table,
	.groups = CLI_GROUP_STREAM,
};

static void
set_windows(struct wm_windows *windows, const struct options *opt)
{
	if (opt->tumbling != NULL && opt->sliding != NULL)
		cli_misuse("--tumbling and --sliding exclude each other");
	if (opt->tumbling != NULL)
		windows_tumbling(windows, "--tumbling", opt->tumbling, &opt->common, opt->offset.us);
	else if (opt->sliding != NULL)
		windows_sliding(windows, "--sliding", opt->sliding, opt->offset.us);
	else
		cli_misuse("no window given: say --tumbling SIZE or --sliding SIZE,SLIDE");
}

/* A row of results: the window, its keys, its aggregates. */
struct results {
	const struct wm_agg *agg;
	const struct wm_zone *zone;
	enum wm_time_unit unit;
	const char *ofmt; /* NULL: the shortest text that is exact */
	struct wm_span *names;
	struct wm_value *values;
	size_t count;
	size_t keys_count;
	struct wm_buf names_text;
	struct wm_buf text; /* of the values that are computed */
};

#define WINDOW_COLUMNS 2 /* window_start, window_end */

static void
add_name(struct results *results, struct wm_span name)
{
	results->names = wm_reallocarray(results->names, results->count + 1, sizeof(results->names[0]));
	results->names[results->count++] = name;
}

/* Two columns of one name would make a result that nobody can read by name. */
static void
check_names(const struct results *results)
{
	for (size_t i = WINDOW_COLUMNS + results->keys_count; i < results->count; i++) {
		struct wm_span name = results->names[i];

		for (size_t other = 0; other < i; other++)
			if (wm_span_equal(name, results->names[other]))
				cli_misuse("--aggregate: the result has a column '%.*s' already: rename with NAME=%.*s",
					(int)name.len, name.data, (int)name.len, name.data);
	}
}

/* Keys come first among the readings of a row, value columns behind them. */
static void
open_results(struct results *results, struct stream *s, const struct options *opt, const struct wm_agg *agg)
{
	struct wm_span rest = opt->group_by == NULL ? wm_span(NULL, 0) : wm_span_of(opt->group_by), key;
	struct wm_buf name;

	*results = (struct results){
		.agg = agg,
		.zone = opt->common.zone == NULL ? wm_zone_utc() : opt->common.zone,
		.unit = (enum wm_time_unit)opt->common.output_time,
		.ofmt = opt->common.ofmt,
	};
	wm_buf_init(&results->text, WM_BUF_UNBOUNDED);
	wm_buf_init(&name, WM_BUF_UNBOUNDED);
	add_name(results, wm_span_of("window_start"));
	add_name(results, wm_span_of("window_end"));
	while (wm_list_next(&rest, ',', &key)) {
		if (results->keys_count++ == WM_KEYS_MAX)
			cli_misuse("--group-by: more than %d columns", WM_KEYS_MAX);
		wm_buf_reset(&name);
		wm_list_unescape(key, &name);
		add_name(results, wm_span(wm_memdup(name.data, name.len), name.len));
		stream_want(s, key, STREAM_TEXT);
	}
	wm_buf_release(&name);
	for (size_t i = 0; i < wm_agg_columns_count(agg); i++) {
		enum stream_need need = wm_agg_column_needs_number(agg, i) ? STREAM_NUMBER
			: wm_agg_column_reads_number(agg, i)               ? STREAM_MAYBE_NUMBER
									   : STREAM_TEXT;

		stream_want(s, wm_agg_column(agg, i), need);
	}
	for (size_t i = 0; i < wm_agg_outputs_count(agg); i++)
		add_name(results, wm_agg_output_name(agg, i));
	check_names(results);
	results->values = wm_calloc(results->count, sizeof(results->values[0]));
}

static void
release_results(struct results *results)
{
	for (size_t i = 0; i < results->keys_count; i++)
		free((void *)(uintptr_t)results->names[WINDOW_COLUMNS + i].data);
	free(results->names);
	free(results->values);
	wm_buf_release(&results->text);
}

static struct wm_value
time_value(const struct results *results, int64_t time_us, char *text)
{
	size_t len = wm_instant_print(time_us, results->unit, results->zone, text);

	return (struct wm_value){ wm_span(text, len), results->unit == WM_UNIT_ISO ? WM_KIND_TEXT : WM_KIND_NUMBER };
}

/* A computed number that is no integer, from offset at on, by --ofmt. */
static void
format_fraction(struct results *results, size_t at)
{
	struct wm_span number = wm_span(results->text.data + at, results->text.len - at);
	struct wm_buf formatted;

	if (memchr(number.data, '.', number.len) == NULL && memchr(number.data, 'e', number.len) == NULL)
		return;
	wm_buf_init(&formatted, WM_BUF_UNBOUNDED);
	wm_number_format(number, results->ofmt, &formatted);
	results->text.len = at;
	wm_buf_add(&results->text, formatted.data, formatted.len);
	wm_buf_release(&formatted);
}

static void
write_row(struct results *results, struct stream *s, const struct wm_window_row *row)
{
	char start[WM_INSTANT_TEXT_MAX], end[WM_INSTANT_TEXT_MAX];
	size_t first = WINDOW_COLUMNS + results->keys_count;
	int64_t window_us = row->window_end_us - row->window_start_us;

	results->values[0] = time_value(results, row->window_start_us, start);
	results->values[1] = time_value(results, row->window_end_us, end);
	for (size_t i = 0; i < results->keys_count; i++)
		results->values[WINDOW_COLUMNS + i] = row->keys[i];
	/* Lengths first: the buffer may move while it grows. */
	wm_buf_reset(&results->text);
	for (size_t i = first; i < results->count; i++) {
		size_t before = results->text.len;

		results->values[i].kind =
			wm_agg_cell_print(results->agg, row->cell, i - first, window_us, &results->text);
		if (results->ofmt != NULL && !wm_agg_output_is_chosen(results->agg, i - first))
			format_fraction(results, before);
		results->values[i].text.len = results->text.len - before;
	}
	const char *at = results->text.data;
	for (size_t i = first; i < results->count; i++) {
		results->values[i].text.data = at;
		at += results->values[i].text.len;
	}
	stream_put_row(s, results->values);
}

static struct report_state
state_of(const struct wm_windowing *windowing)
{
	struct wm_windowing_counts counts = wm_windowing_counts(windowing);

	return (struct report_state){
		.groups = counts.groups,
		.updated = counts.updated,
		.removed = counts.removed,
		.bytes = wm_windowing_bytes(windowing),
	};
}

/* Writes what an advance to this watermark lets go. */
static void
advance(struct wm_windowing *windowing, struct stream *s, struct results *results, int64_t watermark_us)
{
	struct wm_window_row row;

	wm_windowing_advance(windowing, watermark_us);
	while (wm_windowing_next(windowing, &row))
		write_row(results, s, &row);
}

static void
say_state(const struct wm_windowing *windowing, struct stream *s)
{
	struct report_state state = state_of(windowing);

	stream_set_state(s, &state);
}

static _Noreturn void
answer_explain(const struct options *opt, const struct wm_windows *windows)
{
	const struct explain_windowing op = {
		.windows = windows,
		.windows_text = opt->tumbling != NULL ? opt->tumbling : opt->sliding,
		.mode = (enum wm_window_mode)opt->mode,
		.group_by = opt->group_by,
		.aggregate = opt->aggregate == NULL ? "count" : opt->aggregate,
	};
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	explain_windowing(&opt->common, &op, &text);
	cli_answer(&text);
}

int
main(int argc, char **argv)
{
	struct options opt = { .common.eof = CLI_EOF_DEFAULT };
	struct wm_windows windows;
	struct wm_err err;

	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	set_windows(&windows, &opt);
	struct wm_agg *agg = wm_agg_parse(wm_span_of(opt.aggregate == NULL ? "count" : opt.aggregate), &err);
	if (agg == NULL)
		cli_misuse("--aggregate: %s", err.message);
	/* Everything, once: what a complete result is asked for. */
	if (opt.mode == WM_MODE_COMPLETE && opt.common.trigger == NULL)
		opt.common.trigger_word = CLI_TRIGGER_EOF;

	const struct stream_facts facts = { "windowing", false, opt.mode == WM_MODE_APPEND };
	struct stream *s = stream_open(&opt.common, &facts);
	struct results results;
	open_results(&results, s, &opt, agg);
	if (opt.common.explain)
		answer_explain(&opt, &windows);
	stream_begin(s, results.names, results.count);

	struct wm_windowing *windowing = wm_windowing_new(&windows, agg, results.keys_count,
		(enum wm_window_mode)opt.mode, opt.common.is_spark && opt.common.delay.text != NULL);
	if (stream_has_progress(s))
		wm_windowing_count_updates(windowing);
	struct wm_value keys[WM_KEYS_MAX];
	struct stream_row row;
	int64_t missed;
	enum stream_item item;
	while ((item = stream_next(s, wm_windowing_due_us(windowing), &row)) != STREAM_END) {
		if (item == STREAM_TICK) {
			say_state(windowing, s);
			continue;
		}
		if (item == STREAM_WATERMARK) {
			advance(windowing, s, &results, row.watermark_us);
			if (stream_wants_state(s))
				say_state(windowing, s);
			continue;
		}
		for (size_t i = 0; i < results.keys_count; i++)
			keys[i] = row.readings[i].value;
		const struct wm_window_record record = {
			.event_time_us = row.event_time_us,
			.watermark_us = row.watermark_us,
			.highest_time_us = row.highest_time_us,
			.keys = keys,
			.readings = row.readings + results.keys_count,
		};
		if (wm_windowing_add(windowing, &record, &missed) == WM_WINDOW_LATE)
			stream_late(s, missed);
		else
			stream_used(s, missed);
	}
	say_state(windowing, s);

	uint64_t open_count = stream_is_held(s) ? wm_windowing_open_count(windowing) : 0;
	int status = stream_finish(s, open_count); /* flushes and checks every output */
	wm_windowing_free(windowing);
	wm_agg_free(agg);
	release_results(&results);
	cli_release(&opt.common);
	return status;
}
