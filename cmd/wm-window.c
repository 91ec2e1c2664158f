/*
 * wm-window - aggregate by event-time window and key.
 *
 * A window is written when the watermark (highest event time - delay) has
 * reached its end; records that come after that are late. See wm-window(1).
 */
#include "cmd/cli.h"
#include "cmd/stream.h"
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
	CLI_COMMON_INPUT,
	CLI_COMMON_TIME,
	CLI_COMMON_REPORTS,
	CLI_COMMON_OUTPUT,
	CLI_COMMON_HELP,
};
static const struct cli_tool tool = {
	.name = "wm-window",
	.summary = "aggregate by event-time window and key",
	.usage = "[OPTION]... [FILE]...",
	.examples = "wm-window -t time -w 10m --tumbling 1m -g status access.csv\n"
		    "tail -F events.ndjson | wm-window -t ts -w 30s --sliding 5m,1m -a count,avg:ms",
	.options = table,
};

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

static int64_t
parse_fixed(const char *option, struct wm_span text)
{
	struct wm_duration duration = parse_duration(option, text);

	if (duration.us == 0)
		cli_misuse("%s: '%.*s': months and years have no fixed length: they work with --tumbling alone", option,
			(int)text.len, text.data);
	return duration.us;
}

static void
set_tumbling(struct wm_windows *windows, const struct options *opt)
{
	const struct wm_zone *zone = opt->common.zone == NULL ? wm_zone_utc() : opt->common.zone;
	struct wm_duration size = parse_duration("--tumbling", wm_span_of(opt->tumbling));
	bool is_month = size.calendar == WM_CALENDAR_MONTH || size.calendar == WM_CALENDAR_YEAR;

	if (opt->common.is_spark && is_month)
		cli_misuse("--tumbling: '%s': Spark refuses months and years as window sizes", opt->tumbling);
	if (size.calendar != WM_CALENDAR_NONE && !opt->common.is_spark)
		wm_windows_init_calendar(windows, size.calendar, size.calendar_count, opt->offset.us, zone);
	else
		wm_windows_init(windows, size.us, size.us, opt->offset.us);
}

static void
set_sliding(struct wm_windows *windows, const struct options *opt)
{
	struct wm_span rest = wm_span_of(opt->sliding), size, slide, more;

	if (!wm_list_next(&rest, ',', &size) || !wm_list_next(&rest, ',', &slide) || wm_list_next(&rest, ',', &more))
		cli_misuse("--sliding: '%s': write SIZE,SLIDE, as in 1h,5m", opt->sliding);
	int64_t size_us = parse_fixed("--sliding", size);
	int64_t slide_us = parse_fixed("--sliding", slide);
	if (slide_us > size_us)
		cli_misuse("--sliding: '%s': the slide is longer than the size, so rows between windows would be lost",
			opt->sliding);
	wm_windows_init(windows, size_us, slide_us, opt->offset.us);
}

static void
set_windows(struct wm_windows *windows, const struct options *opt)
{
	if (opt->tumbling != NULL && opt->sliding != NULL)
		cli_misuse("--tumbling and --sliding exclude each other");
	if (opt->tumbling != NULL)
		set_tumbling(windows, opt);
	else if (opt->sliding != NULL)
		set_sliding(windows, opt);
	else
		cli_misuse("no window given: say --tumbling SIZE or --sliding SIZE,SLIDE");
}

/* What a row of results is made of. */
struct results {
	const struct wm_agg *agg;
	struct wm_buf *names; /* of the keys */
	size_t keys_count;
	struct wm_buf row;
	struct wm_buf text;
	const struct wm_zone *zone;
	bool is_begun; /* a header, where there is one, was written */
};

static void
add_keys(struct results *results, struct stream *s, const char *group_by)
{
	struct wm_span rest = group_by == NULL ? wm_span(NULL, 0) : wm_span_of(group_by), name;

	while (wm_list_next(&rest, ',', &name)) {
		if (results->keys_count == WM_KEYS_MAX)
			cli_misuse("--group-by: more than %d columns", WM_KEYS_MAX);
		results->names = wm_reallocarray(results->names, results->keys_count + 1, sizeof(results->names[0]));
		wm_buf_init(&results->names[results->keys_count], WM_BUF_UNBOUNDED);
		wm_list_unescape(name, &results->names[results->keys_count]);
		results->keys_count++;
		stream_want(s, name, STREAM_TEXT);
	}
}

/* Value columns stand behind the keys in row.readings. */
static void
add_value_columns(struct stream *s, const struct wm_agg *agg)
{
	for (size_t i = 0; i < wm_agg_columns_count(agg); i++) {
		enum stream_need need = wm_agg_column_needs_number(agg, i) ? STREAM_NUMBER
			: wm_agg_column_reads_number(agg, i)               ? STREAM_MAYBE_NUMBER
									   : STREAM_TEXT;

		stream_want(s, wm_agg_column(agg, i), need);
	}
}

/* Two columns of one name would make a result that nobody can read by name. */
static void
check_names(const struct results *results)
{
	for (size_t i = 0; i < wm_agg_outputs_count(results->agg); i++) {
		struct wm_span name = wm_agg_output_name(results->agg, i);
		bool is_taken = wm_span_is(name, "window_start") || wm_span_is(name, "window_end");

		for (size_t key = 0; key < results->keys_count && !is_taken; key++)
			is_taken = wm_span_equal(name, wm_buf_span(&results->names[key]));
		if (is_taken)
			cli_misuse("--aggregate: the result has a column '%.*s' already: rename with NAME=%.*s",
				(int)name.len, name.data, (int)name.len, name.data);
	}
}

static void
write_header(struct results *results, struct stream *s)
{
	const struct wm_row_format *format = stream_row_format(s);
	struct wm_span start = wm_span_of("window_start"), end = wm_span_of("window_end");
	size_t index = 0;

	results->is_begun = true;
	if (format == NULL || format->format == WM_FORMAT_NDJSON)
		return;
	wm_buf_reset(&results->row);
	wm_row_put(&results->row, format, index++, start, &(struct wm_value){ start, WM_KIND_TEXT });
	wm_row_put(&results->row, format, index++, end, &(struct wm_value){ end, WM_KIND_TEXT });
	for (size_t i = 0; i < results->keys_count; i++) {
		struct wm_value name = { wm_buf_span(&results->names[i]), WM_KIND_TEXT };

		wm_row_put(&results->row, format, index++, name.text, &name);
	}
	for (size_t i = 0; i < wm_agg_outputs_count(results->agg); i++) {
		struct wm_value name = { wm_agg_output_name(results->agg, i), WM_KIND_TEXT };

		wm_row_put(&results->row, format, index++, name.text, &name);
	}
	wm_row_end(&results->row, format, index);
	stream_put_header(s, wm_buf_span(&results->row));
}

static void
put_time(struct results *results, const struct wm_row_format *format, size_t index, const char *name, int64_t time_us)
{
	char text[WM_INSTANT_TEXT_MAX];
	struct wm_value value = {
		wm_span(text, wm_instant_print(time_us, WM_UNIT_ISO, results->zone, text)),
		WM_KIND_TEXT,
	};

	wm_row_put(&results->row, format, index, wm_span_of(name), &value);
}

static void
put_value(struct results *results, const struct stream *s, size_t index, struct wm_span name, struct wm_value value)
{
	const struct wm_row_format *format = stream_row_format(s);

	/* CSV has no types: what is a number is told from its text. */
	if (stream_is_csv(s) && value.kind == WM_KIND_TEXT && format->format == WM_FORMAT_NDJSON)
		value = wm_value_from_csv(value.text);
	wm_row_put(&results->row, format, index, name, &value);
}

static void
write_row(struct results *results, struct stream *s, const struct wm_window_row *row)
{
	const struct wm_row_format *format = stream_row_format(s);
	size_t index = 0;

	wm_buf_reset(&results->row);
	put_time(results, format, index++, "window_start", row->window_start_us);
	put_time(results, format, index++, "window_end", row->window_end_us);
	for (size_t i = 0; i < results->keys_count; i++)
		put_value(results, s, index++, wm_buf_span(&results->names[i]), row->keys[i]);
	for (size_t i = 0; i < wm_agg_outputs_count(results->agg); i++) {
		struct wm_value value;

		wm_buf_reset(&results->text);
		value.kind = wm_agg_cell_print(
			results->agg, row->cell, i, row->window_end_us - row->window_start_us, &results->text);
		value.text = wm_buf_span(&results->text);
		put_value(results, s, index++, wm_agg_output_name(results->agg, i), value);
	}
	wm_row_end(&results->row, format, index);
	stream_put(s, wm_buf_span(&results->row));
}

static void
release_results(struct results *results)
{
	for (size_t i = 0; i < results->keys_count; i++)
		wm_buf_release(&results->names[i]);
	free(results->names);
	wm_buf_release(&results->row);
	wm_buf_release(&results->text);
}

/* Writes what an advance to this watermark lets go. */
static void
advance(struct wm_windowing *windowing, struct stream *s, struct results *results, int64_t watermark_us)
{
	struct wm_window_row row;

	wm_windowing_advance(windowing, watermark_us);
	while (wm_windowing_next(windowing, &row))
		write_row(results, s, &row);
	if (stream_wants_state(s))
		stream_set_state(s,
			&(struct report_state){
				.groups = wm_windowing_open_count(windowing),
				.bytes = wm_windowing_bytes(windowing),
			});
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

	struct results results = { .agg = agg, .zone = opt.common.zone == NULL ? wm_zone_utc() : opt.common.zone };
	wm_buf_init(&results.row, WM_BUF_UNBOUNDED);
	wm_buf_init(&results.text, WM_BUF_UNBOUNDED);
	struct stream *s = stream_open(&opt.common, "windowing", opt.mode == WM_MODE_APPEND);
	add_keys(&results, s, opt.group_by);
	check_names(&results);
	add_value_columns(s, agg);
	stream_begin(s);

	struct wm_windowing *windowing = wm_windowing_new(&windows, agg, results.keys_count,
		(enum wm_window_mode)opt.mode, opt.common.is_spark && opt.common.delay.text != NULL);
	struct wm_value keys[WM_KEYS_MAX];
	struct stream_row row;
	int64_t missed;
	enum stream_item item;
	while ((item = stream_next(s, wm_windowing_due_us(windowing), &row)) != STREAM_END) {
		if (!results.is_begun)
			write_header(&results, s);
		if (item == STREAM_WATERMARK) {
			advance(windowing, s, &results, row.watermark_us);
			continue;
		}
		for (size_t i = 0; i < results.keys_count; i++)
			keys[i] = row.readings[i].value;
		if (wm_windowing_add(windowing, row.watermark_us, keys, row.readings + results.keys_count,
			    row.event_time_us, &missed) == WM_WINDOW_LATE)
			stream_late(s, missed);
		else
			stream_used(s, missed);
	}
	if (!results.is_begun)
		write_header(&results, s);

	uint64_t open_count = stream_is_held(s) ? wm_windowing_open_count(windowing) : 0;
	int status = stream_finish(s, open_count); /* flushes and checks every output */
	wm_windowing_free(windowing);
	wm_agg_free(agg);
	release_results(&results);
	cli_release(&opt.common);
	return status;
}
