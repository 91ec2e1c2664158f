/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stream_inside.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/band.h"
#include "cmd/inputs.h"
#include "cmd/keep.h"
#include "cmd/metrics.h"
#include "cmd/outputs.h"
#include "cmd/passing.h"
#include "cmd/progress.h"
#include "cmd/sources.h"
#include "cmd/terminal.h"
#include "lib/base/hash.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/event/trigger.h"
#include "lib/event/watermark.h"
#include "lib/time/instant.h"

static void
misuse_of(const char *option, const struct wm_err *err)
{
	cli_misuse("%s: %s", option, err->message);
}

struct wm_instant_parser *
stream_new_time_parser(const struct cli_common *common, const char *format)
{
	struct wm_err err;
	struct wm_instant_parser *parser = wm_instant_parser_new(wm_span_of(format),
		common->zone == NULL ? wm_zone_utc() : common->zone, (enum wm_repeated_hour)common->repeated_hour,
		common->time_reference != NULL ? &common->time_reference_us : NULL, &err);

	if (parser == NULL)
		misuse_of("--time-format", &err);
	return parser;
}

const char *
stream_time_format(const struct cli_common *common)
{
	return common->time_format == NULL ? "auto" : common->time_format;
}

static void
open_times(struct stream *s)
{
	const struct cli_common *common = s->common;
	struct wm_span rest, part;

	const char *column = common->time_column;
	if (column == NULL && common->input_format == WM_FORMAT_CLF)
		column = "time";
	s->time_name = column == NULL ? BAND_TIME : column;
	rest = wm_span_of(s->time_name);
	struct wm_span second = rest;
	if (wm_list_next(&second, '+', &part) && second.data != NULL)
		s->time_whole = inputs_want_optional(s->inputs, rest);
	if (column == NULL)
		s->time_fields[s->time_fields_count++] = inputs_want_optional(s->inputs, rest);
	else
		while (wm_list_next(&rest, '+', &part))
			s->time_fields[s->time_fields_count++] = inputs_want(s->inputs, part);
	s->time_parser = stream_new_time_parser(common, stream_time_format(common));
	if (strcmp(s->time_name, BAND_TIME) == 0)
		wm_instant_parser_trust_numbers(s->time_parser);
	if (common->ingest != NULL && !common->is_ingest_now) {
		s->ingest_parser = stream_new_time_parser(common, stream_time_format(common));
		wm_instant_parser_or_auto(s->ingest_parser);
		s->ingest_field = inputs_want(s->inputs, wm_span_of(common->ingest));
	}
}

/* Without -t the event time is that of a stamped input. */
static bool
is_time_assumed(const struct stream *s)
{
	return s->common->time_column == NULL && s->common->input_format != WM_FORMAT_CLF;
}

static _Noreturn void
die_without_time(struct stream *s)
{
	wm_buf_reset(&s->text);
	inputs_suggest_times(s->inputs, &s->text);
	cli_misuse("no time column: name the column that holds the event time with -t%s%.*s",
		s->text.len == 0 ? "" : "; these hold times: ", (int)s->text.len, s->text.data);
}

static enum wm_trigger_kind
trigger_kind(enum cli_trigger_word word)
{
	switch (word) {
	case CLI_TRIGGER_ROWS:
		return WM_TRIGGER_ROWS;
	case CLI_TRIGGER_EVENT:
		return WM_TRIGGER_EVENT;
	case CLI_TRIGGER_WALL:
		return WM_TRIGGER_WALL;
	case CLI_TRIGGER_COLUMN:
		return WM_TRIGGER_COLUMN;
	case CLI_TRIGGER_FILE:
		return WM_TRIGGER_FILE;
	case CLI_TRIGGER_EOF:
		return WM_TRIGGER_EOF;
	case CLI_TRIGGER_EACH:
		break;
	}
	return WM_TRIGGER_EACH;
}

/* The run is there; of common what is this stream's own. */
static struct stream *
open_stream(struct run *run, const struct cli_common *common, const struct stream_facts *facts)
{
	struct stream *s = wm_calloc(1, sizeof(struct stream));

	s->run = run;
	s->number = run->streams_count;
	run->streams[run->streams_count++] = s;
	s->common = common;
	s->facts = *facts;
	s->inputs = inputs_open(common);
	wm_buf_init(&s->text, WM_BUF_UNBOUNDED);
	wm_buf_init(&s->rejected, WM_BUF_UNBOUNDED);
	wm_buf_init(&s->time_text, WM_BUF_UNBOUNDED);
	/* Where no column is asked for they still stand somewhere: a pointer may not be moved off nothing. */
	s->wanted = wm_calloc(1, sizeof(s->wanted[0]));
	s->readings = wm_calloc(1, sizeof(s->readings[0]));
	open_times(s);
	s->fed_at_us = run->started_us;
	s->has_watermark = common->delay.text != NULL || facts->is_in_order;
	s->highest_us = s->reach_us = s->reach_next_us = WM_TIME_NONE;
	s->has_reach = common->merge || common->source_column != NULL;
	sources_open(&s->sources, common, common->files, common->merge ? common->files_count : 0, run->started_us);
	/* What is held here is held for nobody: without a checkpoint no run goes on with what an input has yet to give. */
	s->reads_all = common->merge && common->checkpoint == NULL &&
		(common->eof == CLI_EOF_HOLD || common->eof == CLI_EOF_TRIGGER);
	wm_combine_init(&s->reading, WM_POLICY_MIN, 0);
	for (size_t i = 0; i < s->sources.combine.sources_count && s->reads_all; i++)
		wm_combine_add(&s->reading, &s->sources.combine.sources[i].own, run->started_us);
	s->has_sources = s->has_reach || s->sources.can_be_idle;
	if (common->source_column != NULL)
		s->source_field = inputs_want(s->inputs, wm_span_of(common->source_column));
	s->watermark_us = s->has_watermark ? s->sources.combine.watermark_us : WM_TIME_NONE;
	s->reads_arrival = common->ingest != NULL && (facts->wants_arrival || common->max_ahead.text != NULL);
	s->is_notice_due = facts->needs_watermark && !s->has_watermark;
	wm_trigger_init(
		&s->trigger, trigger_kind(common->trigger_word), common->trigger_rows, common->trigger_period_us);
	s->is_each = s->trigger.kind == WM_TRIGGER_EACH;
	if (!s->is_each)
		wm_combine_set_batched(&s->sources.combine);
	s->spoke_at_us = run->started_us;
	s->told_at_us = run->started_us - TICK_US;
	if (s->trigger.kind == WM_TRIGGER_COLUMN)
		s->trigger_field = inputs_want(s->inputs, wm_span_of(common->trigger_column));
	if (common->position != NULL)
		s->position_field = inputs_want(s->inputs, wm_span_of(common->position));
	return s;
}

struct stream *
stream_open(const struct cli_common *common, const struct stream_facts *facts)
{
	struct run *run = wm_calloc(1, sizeof(*run));
	struct wm_err err;

	wm_hash_init();
	outputs_guard_descriptors();
	run->started_us = stream_clock_us(CLOCK_MONOTONIC);
	wm_buf_init(&run->nulls_told, WM_BUF_UNBOUNDED);
	struct stream *s = open_stream(run, common, facts);
	run->keep = keep_open(common, facts->options);
	run->kept = facts->state;
	run->outputs = outputs_open(common);
	outputs_set_wait(run->outputs, &(struct wm_writer_wait){ stream_wait_for_reader, run });
	if (!metrics_init(&run->metrics, common->metrics_path, &err))
		cli_misuse("%s", err.message);
	report_init(&run->report, cli_tool_name(), facts->operator_name);
	report_init(&run->before, cli_tool_name(), facts->operator_name);
	report_clock(&run->report, run->started_us, 0);
	run->report.batch_watermark_us = s->watermark_us;
	stream_catch_signals();
	return s;
}

struct stream *
stream_open_beside(struct stream *first, const struct cli_common *common, const struct stream_facts *facts)
{
	struct stream *s = open_stream(first->run, common, facts);

	first->partner = s;
	s->partner = first;
	first->run->report.batch_watermark_us = stream_run_watermark_us(first->run);
	return s;
}

size_t
stream_want(struct stream *s, struct wm_span name, enum stream_need need)
{
	s->wanted = wm_reallocarray(s->wanted, s->wanted_count + 1, sizeof(s->wanted[0]));
	s->readings = wm_reallocarray(s->readings, s->wanted_count + 1, sizeof(s->readings[0]));
	s->wanted[s->wanted_count] = (struct wanted){
		.field = inputs_want(s->inputs, name),
		.need = need,
		.name = wm_memdup(name.data, name.len),
	};
	return s->wanted_count++;
}

size_t
stream_want_keys(struct stream *s, const char *option, const char *list)
{
	struct wm_span rest = list == NULL ? wm_span(NULL, 0) : wm_span_of(list), part;
	size_t count = 0;

	while (wm_list_next(&rest, ',', &part)) {
		if (count++ == WM_KEYS_MAX)
			cli_misuse("%s: more than %d columns", option, WM_KEYS_MAX);
		stream_want(s, part, STREAM_TEXT);
	}
	return count;
}

void
stream_guard(struct stream *s, bool (*takes)(const void *self, const struct wm_reading *readings, size_t *column),
	const void *self)
{
	s->takes = takes;
	s->taker = self;
}

size_t
stream_want_length(struct stream *s, struct wm_span name, int64_t unit_us)
{
	size_t number = stream_want(s, name, STREAM_LENGTH);

	s->wanted[number].unit_us = unit_us;
	return number;
}

/* Whether there will be a bar on the terminal. */
static void
open_progress(struct stream *s)
{
	bool is_forced = s->common->progress == CLI_PROGRESS_BAR;
	bool is_asked = is_forced || (s->common->progress == CLI_PROGRESS_AUTO && !s->common->quiet);
	uint64_t bytes_total = inputs_bytes_total(s->inputs);
	struct progress_facts facts = {
		.is_forced = is_forced,
		.is_stderr_terminal = is_asked && isatty(STDERR_FILENO) == 1,
		.is_stdout_terminal = isatty(STDOUT_FILENO) == 1,
		.is_input_regular = bytes_total != 0,
		.bytes_total = bytes_total,
		.term = getenv("TERM"),
		.is_utf8 = terminal_is_utf8(),
	};

	progress_init(&s->run->progress, &facts, s->run->started_us);
}

/* The watermark comes with the rows. */
static void
follow_band(struct stream *s)
{
	const struct cli_common *common = s->common;

	if (common->watermark_column == NULL && common->time_column != NULL &&
		strcmp(common->time_column, BAND_TIME) != 0)
		cli_misuse("-t %s: the watermark in this input (%s) speaks of %s alone: leave out -t; or give -w to "
			   "reckon "
			   "one here, or --watermark-column",
			common->time_column, BAND_WATERMARK, BAND_TIME);
	if (s->facts.in_band != NULL)
		cli_misuse("%s", s->facts.in_band);
	s->has_watermark = true;
	s->is_notice_due = false;
}

/* There is none in band either. */
static void
check_no_watermark(const struct stream *s)
{
	if (!s->has_watermark && s->facts.no_watermark != NULL)
		cli_misuse("%s", s->facts.no_watermark);
	if (!s->has_watermark && (s->facts.needs_watermark || s->facts.holds_without_watermark) &&
		s->common->checkpoint != NULL && s->common->eof != CLI_EOF_FLUSH)
		cli_misuse("-C: without a watermark what is held would never be written: give a delay with -w (0s for "
			   "input "
			   "in order); or --eof flush: then each run is by itself");
}

/* The names of the first object's members, should one of the columns that were asked for not be among them. */
static void
note_members(struct stream *s)
{
	const struct wm_reader *layout = inputs_layout(s->inputs);
	struct wm_reader *reader = inputs_reader(s->inputs, s->input);
	struct wm_fields fields;

	if (wm_reader_format(layout) != WM_FORMAT_NDJSON)
		return;
	const struct wm_row_format format = wm_row_format_of(layout);
	wm_columns_init(&s->members, &format);
	wm_fields_init(&fields, &s->members);
	wm_fields_split(&fields, wm_reader_line(reader, &s->rec, &s->text));
	wm_fields_release(&fields);
	if (s->members.count == 0)
		wm_columns_release(&s->members);
}

void
stream_decide(struct stream *s)
{
	bool was_followed = s->band.is_followed;

	s->is_decided = true;
	note_members(s);
	band_decide(&s->band, s->inputs, s->common, s->facts.is_in_order);
	if (is_time_assumed(s) && !inputs_column_seen(s->inputs, s->time_fields[0]) &&
		(!s->band.is_there || wm_reader_format(inputs_layout(s->inputs)) != WM_FORMAT_NDJSON))
		die_without_time(s);
	if (s->band.is_followed && !was_followed)
		follow_band(s);
	if (!s->band.is_followed)
		check_no_watermark(s);
	const char *warning = s->has_watermark ? s->facts.warn_watermark : s->facts.warn_no_watermark;
	if (warning != NULL && !s->common->quiet)
		cli_warn("%s", warning);
}

void
stream_stamp(struct stream *s, const struct wm_span *names, size_t count)
{
	s->stamps = (struct passing_stamps){ .names = names, .count = count };
}

static void
open_passing(struct stream *s)
{
	struct passing_stamps *stamps = &s->stamps;

	if (!s->facts.is_passing)
		return;
	stamps->fields = wm_calloc(stamps->count, sizeof(stamps->fields[0]));
	for (size_t i = 0; i < stamps->count; i++)
		stamps->fields[i] = inputs_want_optional(s->inputs, stamps->names[i]);
	s->passing = passing_open(s->common, s->run->outputs, stamps, s->facts.is_part);
}

/* What of the stream is kept. */
static void
lend(struct stream *s)
{
	const struct keep_stream kept = {
		.inputs = s->inputs,
		.sources = &s->sources,
		.trigger = &s->trigger,
		.band = &s->band,
		.passing = s->passing,
		.time_parser = s->time_parser,
		.ingest_parser = s->ingest_parser,
		.highest_us = &s->highest_us,
		.watermark_us = &s->watermark_us,
		.is_decided = &s->is_decided,
		.is_punctuated = &s->is_punctuated,
	};

	keep_add_stream(s->run->keep, &kept);
}

void
stream_begin(struct stream *s, const struct wm_span *names, size_t names_count)
{
	size_t files_count = inputs_files_count(s->inputs);

	if (s->number == 0)
		outputs_set_columns(s->run->outputs, names, names_count);
	band_open(&s->band, s->inputs, s->common);
	open_passing(s);
	inputs_begin(s->inputs);
	if (is_time_assumed(s) && inputs_lack(s->inputs, s->time_fields[0]))
		die_without_time(s);
	if (s->band.is_followed)
		follow_band(s);
	else if (inputs_lack(s->inputs, s->band.field))
		check_no_watermark(s);
	if (s->number == 0)
		open_progress(s);
	if (s->run->keep == NULL && s->partner != NULL)
		inputs_open_early(s->inputs);
	if (s->common->order == CLI_ORDER_TIME) {
		int64_t *times = wm_reallocarray(NULL, files_count, sizeof(times[0]));

		for (size_t i = 0; i < files_count; i++)
			times[i] = stream_first_event_time(s, i);
		inputs_sort(s->inputs, times);
		free(times);
	}
	if (s->run->keep != NULL)
		lend(s);
}
