/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/results.h"

#include "cmd/band.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/agg/partial.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/op/merge.h"

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
	size_t keys_end = WINDOW_COLUMNS + results->keys_count;
	size_t aggregates_end = keys_end + wm_agg_outputs_count(results->agg);

	for (size_t i = WINDOW_COLUMNS; i < results->count; i++) {
		struct wm_span name = results->names[i];

		for (size_t other = 0; other < i; other++) {
			/* What a person chose the name of is renamed: an aggregate rather than a key. */
			bool is_key = i < keys_end || (i >= aggregates_end && other < keys_end);

			if (wm_span_equal(name, results->names[other]))
				cli_misuse("%s: the result has a column '%.*s' already: rename with NAME=%.*s",
					is_key ? "--group-by" : "--aggregate", (int)name.len, name.data, (int)name.len,
					name.data);
		}
	}
}

static void
add_keys(struct results *results, struct stream *s)
{
	const char *group_by = results->options.group_by;
	struct wm_span rest = group_by == NULL ? wm_span(NULL, 0) : wm_span_of(group_by), key, shown;
	struct wm_buf name;

	wm_buf_init(&name, WM_BUF_UNBOUNDED);
	while (wm_list_next(&rest, ',', &key)) {
		if (results->keys_count++ == WM_KEYS_MAX)
			cli_misuse("--group-by: more than %d columns", WM_KEYS_MAX);
		struct wm_span column = key;
		wm_list_next(&column, '=', &shown);
		if (column.data == NULL)
			column = key;
		if (shown.len == 0 || column.len == 0)
			cli_misuse("--group-by: '%.*s': write COLUMN, or NAME=COLUMN", (int)key.len, key.data);
		wm_buf_reset(&name);
		wm_list_unescape(shown, &name);
		add_name(results, wm_span(wm_memdup(name.data, name.len), name.len));
		stream_want(s, column, STREAM_TEXT);
	}
	wm_buf_release(&name);
}

static bool
takes(const void *self, const struct wm_reading *readings, size_t *column)
{
	const struct results *results = self;

	if (wm_agg_takes(results->agg, readings + results->keys_count, column))
		return true;
	*column += results->keys_count;
	return false;
}

void
results_open(struct results *results, struct stream *s, const struct cli_common *common, const struct wm_agg *agg,
	const struct results_options *options)
{
	*results = (struct results){
		.options = *options,
		.agg = agg,
		.zone = common->zone == NULL ? wm_zone_utc() : common->zone,
		.common = common,
		.ofmt = common->ofmt,
		.is_rounded = common->ofmt == NULL && common->output_format == CLI_OUTPUT_TABLE,
	};
	wm_buf_init(&results->text, WM_BUF_UNBOUNDED);
	add_name(results, wm_span_of("window_start"));
	add_name(results, wm_span_of("window_end"));
	add_keys(results, s);
	for (size_t i = 0; i < wm_agg_columns_count(agg); i++) {
		enum stream_need need = wm_agg_column_needs_number(agg, i) ? STREAM_NUMBER
			: wm_agg_column_is_ranked(agg, i)                  ? STREAM_RANKED
			: wm_agg_column_reads_number(agg, i)               ? STREAM_MAYBE_NUMBER
									   : STREAM_TEXT;

		stream_want(s, wm_agg_column(agg, i), need);
	}
	if (wm_agg_has_guards(agg))
		stream_guard(s, takes, results);
	for (size_t i = 0; i < wm_agg_outputs_count(agg); i++)
		add_name(results, wm_agg_output_name(agg, i));
	if (options->gap != NULL)
		add_name(results, wm_span_of(WM_MERGE_GAP));
	if (options->has_panes) {
		add_name(results, wm_span_of("_pane"));
		add_name(results, wm_span_of("_pane_index"));
	}
	if (options->is_stamped) {
		add_name(results, wm_span_of(BAND_TIME));
		add_name(results, wm_span_of(BAND_WATERMARK));
	}
	check_names(results);
	results->values = wm_calloc(results->count, sizeof(results->values[0]));
}

void
results_release(struct results *results)
{
	for (size_t i = 0; i < results->keys_count; i++)
		free((void *)(uintptr_t)results->names[WINDOW_COLUMNS + i].data);
	free(results->names);
	free(results->values);
	wm_buf_release(&results->text);
}

/* The format of a fraction in a table: 6 digits behind the point, of what is below 0.1 the first 6; NULL: it has no more. */
static const char *
table_format(struct wm_span number)
{
	const char *point = memchr(number.data, '.', number.len);
	bool is_small = number.data[number.data[0] == '-'] == '0' && point != NULL && point[1] == '0';

	if (memchr(number.data, 'e', number.len) != NULL || is_small)
		return "%.6g";
	return point == NULL || (size_t)(number.data + number.len - point) <= 7 ? NULL : "%.6f";
}

/* A computed number that is no integer, from offset at on, by --ofmt, or as a table has it. */
static void
format_fraction(struct results *results, size_t at)
{
	struct wm_span number = wm_span(results->text.data + at, results->text.len - at);
	const char *format = results->ofmt != NULL ? results->ofmt : table_format(number);
	struct wm_buf formatted;

	if (format == NULL ||
		(memchr(number.data, '.', number.len) == NULL && memchr(number.data, 'e', number.len) == NULL))
		return;
	wm_buf_init(&formatted, WM_BUF_UNBOUNDED);
	wm_number_format(number, format, &formatted);
	/* Rounded, it may end in zeros, which say nothing there. */
	while (results->ofmt == NULL && memchr(formatted.data, 'e', formatted.len) == NULL &&
		formatted.data[formatted.len - 1] == '0')
		formatted.len--;
	if (results->ofmt == NULL && formatted.data[formatted.len - 1] == '.')
		formatted.len--;
	results->text.len = at;
	wm_buf_add(&results->text, formatted.data, formatted.len);
	wm_buf_release(&formatted);
}

/* Appends one aggregate of a window to results->text. */
static enum wm_kind
print_output(struct results *results, const struct wm_window_row *row, size_t output)
{
	size_t before = results->text.len;

	if (row->cell == NULL) {
		if (!results->options.is_filled_zero || !wm_agg_output_is_zero_for_none(results->agg, output))
			return WM_KIND_NULL;
		wm_buf_add_byte(&results->text, '0');
		return WM_KIND_NUMBER;
	}
	if (results->options.is_partial) {
		wm_agg_cell_print_state(results->agg, row->cell, output, &results->text);
		return WM_KIND_TEXT;
	}
	enum wm_kind kind = wm_agg_cell_print(
		results->agg, row->cell, output, row->window_end_us - row->window_start_us, &results->text);
	if ((results->ofmt != NULL || results->is_rounded) && kind == WM_KIND_NUMBER &&
		!wm_agg_output_is_chosen(results->agg, output))
		format_fraction(results, before);
	return kind;
}

/* The watermark that results may claim: complete windows are written again for as long as lateness is allowed. */
static int64_t
held_back(const struct results *results, int64_t watermark_us)
{
	return watermark_us == WM_TIME_NONE ? WM_TIME_NONE : wm_time_sub(watermark_us, results->options.hold_back_us);
}

void
results_put(struct results *results, struct stream *s, const struct wm_window_row *row)
{
	enum wm_time_unit unit = (enum wm_time_unit)results->common->output_time;
	char index[24];
	size_t outputs_count = wm_agg_outputs_count(results->agg);
	struct wm_value *value = results->values;

	*value++ = wm_instant_value(&results->start, row->window_start_us, unit, results->zone);
	*value++ = wm_instant_value(&results->end, row->window_end_us, unit, results->zone);
	for (size_t i = 0; i < results->keys_count; i++)
		*value++ = row->keys[i];
	/* Lengths first: the buffer may move while it grows. */
	wm_buf_reset(&results->text);
	for (size_t i = 0; i < outputs_count; i++) {
		size_t before = results->text.len;

		value[i].kind = print_output(results, row, i);
		value[i].text.len = results->text.len - before;
	}
	for (const char *at = results->text.data; outputs_count > 0; outputs_count--, value++) {
		value->text.data = at;
		at += value->text.len;
	}
	if (results->options.gap != NULL)
		*value++ = (struct wm_value){ wm_span_of(results->options.gap), WM_KIND_TEXT };
	if (results->options.has_panes) {
		int len = snprintf(index, sizeof(index), "%llu", (unsigned long long)row->pane_index);

		*value++ = (struct wm_value){ wm_span_of(wm_pane_timing_name(row->pane)), WM_KIND_TEXT };
		*value++ = (struct wm_value){ wm_span(index, (size_t)len), WM_KIND_NUMBER };
	}
	if (results->options.is_stamped) {
		int64_t end_us = wm_instant_hold(row->window_end_us, wm_zone_utc());

		band_put_time(value++, &results->time, results->common, end_us - 1);
		band_put_time(value++, &results->watermark, results->common, results->stamp_us);
		results->is_stamp_due = true;
	}
	stream_put_row(s, results->values);
}

void
results_begin(struct results *results, const struct stream_row *to)
{
	results->stamp_us = results->options.is_stamped ? held_back(results, to->watermark_before_us) : WM_TIME_NONE;
	results->is_stamp_due = to->is_punctuated;
}

void
results_end(struct results *results, struct stream *s, const struct stream_row *to)
{
	if (!results->options.is_stamped || !results->is_stamp_due || to->watermark_us == WM_TIME_NONE ||
		to->watermark_us == WM_TIME_END)
		return;
	struct wm_value value = band_time(&results->watermark, results->common, held_back(results, to->watermark_us));
	stream_put_punctuation(s, results->count - 1, &value);
}
