/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stream_inside.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "cmd/band.h"
#include "cmd/inputs.h"
#include "cmd/keep.h"
#include "cmd/memory.h"
#include "cmd/metrics.h"
#include "cmd/outputs.h"
#include "cmd/passing.h"
#include "cmd/progress.h"
#include "cmd/sources.h"
#include "lib/base/list.h"
#include "lib/base/near.h"
#include "lib/base/shown.h"
#include "lib/event/trigger.h"
#include "lib/event/watermark.h"
#include "lib/time/instant.h"

/* 1980-01-01 and 2101-01-01: times of real data lie between. */
#define ODD_BEFORE_US INT64_C(315532800000000)
#define ODD_FROM_US INT64_C(4133980800000000)

int64_t
stream_run_watermark_us(const struct run *run)
{
	int64_t watermark_us = WM_TIME_END;

	for (size_t i = 0; i < run->streams_count; i++)
		if (run->streams[i]->has_watermark && run->streams[i]->watermark_us < watermark_us)
			watermark_us = run->streams[i]->watermark_us;
	return watermark_us == WM_TIME_END ? WM_TIME_NONE : watermark_us;
}

/* The counts of all runs, of which this is the last. */
static struct report
totals(const struct stream *s)
{
	struct report total = s->run->report;

	if (s->run->keep == NULL)
		return total;
	report_add_before(&total, &s->run->before);
	total.run = &s->run->report;
	return total;
}

static void
write_metrics(struct stream *s)
{
	struct report total = totals(s);
	struct wm_err err;

	if (!metrics_write(&s->run->metrics, &total, &s->run->state, stream_run_watermark_us(s->run),
		    stream_clock_us(CLOCK_REALTIME), stream_clock_us(CLOCK_MONOTONIC), &err))
		stream_fail(s, &err);
}

void
stream_start_outputs(struct stream *s, bool is_last)
{
	const struct wm_reader *layout = inputs_layout(s->inputs);
	struct stream *first = s->run->streams[0];

	if (!s->run->is_started) {
		outputs_start(s->run->outputs);
		s->run->is_started = true;
		if (s->run->metrics.path != NULL)
			write_metrics(s);
	}
	if (!is_last && wm_reader_format(layout) == WM_FORMAT_AUTO)
		return;
	if (!s->run->is_settled && stream_tells_layout(s)) {
		outputs_settle(s->run->outputs, layout);
		s->run->is_settled = true;
	}
	if (s->is_settled || !s->run->is_settled)
		return;
	s->is_settled = true;
	outputs_begin_side(s->run->outputs, s->number, layout);
	if (s->passing != NULL)
		passing_settle(s->passing, layout);
	if (!first->is_settled)
		stream_start_outputs(first, true);
}

/* Going on, and keeping */

void
stream_plan_attention(struct run *run)
{
	uint64_t rows_in = run->report.rows_in, attend_row = run->state_row;

	if (run->keep != NULL && run->streams[0]->common->checkpoint_rows != 0) {
		uint64_t due_row = keep_due_row(run->keep);

		/* One that is due waits for a better moment. */
		due_row = due_row > rows_in ? due_row : rows_in + ATTEND_ROWS;
		attend_row = due_row < attend_row ? due_row : attend_row;
	}
	run->attend_row = attend_row;
}

static void
plan_commit(struct stream *s, int64_t began_us)
{
	struct keep *keep = s->run->keep;

	keep_plan(keep, s->run->report.rows_in, began_us, stream_clock_us(CLOCK_MONOTONIC));
	s->run->rows_committed = s->run->report.rows_in;
	stream_plan_attention(s->run);
}

/* What follows from what was kept. */
static void
settle_kept(struct stream *s)
{
	const struct wm_combine *combine = &s->sources.combine;

	s->run->report.batch_watermark_us = s->watermark_us;
	s->files_begun += s->highest_us != WM_TIME_NONE;
	/* Spark's epoch holds before any row has brought it. */
	if (combine->watermark_us != WM_TIME_NONE && !(s->common->is_spark && combine->watermark_us == 0))
		s->reach_next_us = wm_time_add(combine->watermark_us, s->common->delay.us);
	for (size_t i = 0; i < combine->sources_count && s->has_reach; i++) {
		s->source = i;
		stream_raise_reach(s);
	}
	s->source = 0;
	s->reach_us = s->reach_next_us;
	if (!s->band.is_followed)
		return;
	s->has_watermark = true;
	s->is_notice_due = false;
}

void
stream_resume(struct stream *s)
{
	struct run *run = s->run;
	uint64_t limit = s->common->state_bytes_max;

	run->state_bytes_max = limit == 0 ? memory_usable() / 2 : limit;
	bool has_state = (run->kept != NULL && run->kept->bytes != NULL) || s->common->source_column != NULL;

	run->state_row = !has_state || limit == UINT64_MAX ? UINT64_MAX : 0;
	if (run->keep == NULL) {
		stream_plan_attention(run);
		return;
	}
	int64_t began_us = stream_clock_us(CLOCK_MONOTONIC);
	keep_begin(run->keep, run->outputs, &run->report, &run->before, run->kept, stream_clock_us(CLOCK_REALTIME),
		began_us);
	run->is_started = true;
	run->report.batch_id = run->before.batch_id;
	for (size_t i = 0; i < run->streams_count; i++) {
		settle_kept(run->streams[i]);
		/* Only now it is known where they begin. */
		if (run->streams_count > 1)
			inputs_open_early(run->streams[i]->inputs);
		/* What one holds has the form that both were found to have. */
		if (run->streams_count > 1)
			stream_start_outputs(run->streams[i], false);
	}
	plan_commit(s, began_us);
	if (run->metrics.path != NULL)
		write_metrics(s);
}

/* Lines that are no rows, over all streams of the run. */
static void
note_lines(struct run *run)
{
	run->report.lines_blank = run->report.headers_repeated = run->report.lines_unmatched = 0;
	for (size_t i = 0; i < run->streams_count; i++) {
		struct wm_reader_counts counts = inputs_counts(run->streams[i]->inputs);

		run->report.lines_blank += counts.lines_blank;
		run->report.headers_repeated += counts.headers_repeated;
		run->report.lines_unmatched += counts.lines_unmatched;
	}
}

bool
stream_can_commit(const struct run *run)
{
	for (size_t i = 0; i < run->streams_count; i++) {
		const struct stream *s = run->streams[i];
		enum phase phase = s->phase;

		/* Of a batch that two have in common one may be through. */
		if (s->facts.shares_batches && s->trigger.is_open)
			return false;
		if (phase == PHASE_DELIVER || phase == PHASE_PUNCTUATION || phase == PHASE_FLUSH)
			return false;
	}
	return true;
}

static void
keep(struct run *run, enum keep_end end)
{
	note_lines(run);
	for (size_t i = 0; i < run->streams_count; i++) {
		struct stream *s = run->streams[i];

		/* A record that was read, and waits for the batch before it to end, is not processed. */
		inputs_set_pending(s->inputs, s->input, s->phase == PHASE_TAKE_IN || s->is_left ? &s->rec : NULL);
	}
	keep_commit(run->keep, end, stream_clock_us(CLOCK_REALTIME));
}

void
stream_commit(struct stream *s)
{
	int64_t began_us = stream_clock_us(CLOCK_MONOTONIC);

	keep(s->run, KEEP_ON);
	plan_commit(s, began_us);
}

/* What to do about the delay so that the state gets smaller; NULL: nothing. */
static const char *
advise_on_delay(const struct run *run)
{
	const char *advice = NULL;

	if (!run->kept->is_bound_by_delay)
		return NULL;
	for (size_t i = 0; i < run->streams_count; i++) {
		const struct stream *s = run->streams[i];

		if (s->band.is_followed)
			advice = "a shorter -w of what stamps the input";
		else if (!s->has_watermark)
			return "a delay (-w)";
		else if (s->common->delay.us > 0 || s->common->delay.others != NULL)
			advice = "a shorter -w";
	}
	return advice;
}

/* The state is larger than it may be: the run ends here. held of its bytes are a record that is being read. */
static void
stop_at_limit(struct stream *s, size_t bytes, size_t held)
{
	bool is_record = held > bytes / 2, is_sources = sources_bytes(&s->sources) > bytes / 2;
	const char *delay = is_record || is_sources || s->run->kept == NULL ? NULL : advise_on_delay(s->run);
	const char *bound = is_record  ? "--record-limit, as a long record takes most of it"
		: is_sources           ? "a --source that has fewer values"
		: s->run->kept == NULL ? NULL
				       : s->run->kept->bound;

	cli_warn("the state takes %zu KiB, and %" PRIu64 " KiB are allowed: stopped%s: raise --state-limit%s%s%s%s",
		bytes >> 10, s->run->state_bytes_max >> 10, s->run->keep == NULL ? "" : " (the checkpoint is good)",
		delay == NULL && bound == NULL ? "" : ", or bound it with ", delay == NULL ? "" : delay,
		delay == NULL || bound == NULL ? "" : " or ", bound == NULL ? "" : bound);
	s->run->is_at_limit = true;
}

/* How many rows may come before the state, which takes so many bytes now, is looked at again. */
static uint64_t
rows_to_next_look(struct run *run, size_t bytes)
{
	uint64_t rows = run->report.rows_in - run->state_row_before;
	uint64_t grown = bytes > run->state_bytes_before ? bytes - run->state_bytes_before : 0;
	uint64_t a_row = rows == 0 ? 0 : grown / rows;
	uint64_t room = (run->state_bytes_max - bytes) / 2, beyond = run->state_bytes_max / STATE_PART_BEYOND;

	/* What cost much once may do so again, and is forgotten slowly. */
	run->state_bytes_a_row -= run->state_bytes_a_row / 8;
	if (run->state_bytes_a_row < a_row)
		run->state_bytes_a_row = a_row;
	if (run->state_bytes_a_row < STATE_BYTES_A_ROW_LEAST)
		run->state_bytes_a_row = STATE_BYTES_A_ROW_LEAST;
	run->state_row_before = run->report.rows_in;
	run->state_bytes_before = bytes;
	uint64_t most = (room > beyond ? room : beyond) / run->state_bytes_a_row;
	/* At first nothing is known of what rows cost. */
	run->state_rows_ahead = 2 * run->state_rows_ahead + 1 < most ? 2 * run->state_rows_ahead + 1 : most;
	if (run->state_rows_ahead == 0)
		run->state_rows_ahead = 1;
	return run->state_rows_ahead;
}

void
stream_check_state(struct stream *s)
{
	struct run *run = s->run;

	if (run->state_row == UINT64_MAX || run->is_at_limit)
		return;
	/* How often a read is waited for must not matter: between two looks only a record is new that is longer than a buffer. */
	bool is_due = run->report.rows_in >= run->state_row;
	size_t held = 0, bytes = is_due ? 0 : run->state_bytes_before;

	if (is_due && run->kept != NULL && run->kept->bytes != NULL)
		bytes = run->kept->bytes(run->kept->self);
	for (size_t i = 0; i < run->streams_count; i++) {
		held += inputs_held_bytes(run->streams[i]->inputs);
		bytes += is_due ? sources_bytes(&run->streams[i]->sources) : 0;
	}
	if (bytes + held > run->state_bytes_max)
		stop_at_limit(s, bytes + held, held);
	else if (is_due)
		run->state_row = run->report.rows_in + rows_to_next_look(run, bytes);
}

void
stream_reopen(struct stream *s)
{
	struct run *run = s->run;

	if (run->keep != NULL)
		keep(run, KEEP_REOPEN);
	outputs_reopen(run->outputs);
	/* Their headers come behind the commit: until it is made nothing may be written. */
	if (run->keep != NULL) {
		keep_reopened(run->keep);
		stream_commit(s);
	}
	outputs_begin_again(run->outputs);
	for (size_t i = 0; i < run->streams_count; i++)
		if (run->streams[i]->is_settled)
			outputs_begin_side(run->outputs, i, inputs_layout(run->streams[i]->inputs));
}

/* Progress */

bool
stream_has_progress(const struct stream *s)
{
	return outputs_has_report(s->run->outputs) || s->common->progress == CLI_PROGRESS_JSON ||
		s->run->metrics.path != NULL;
}

bool
stream_wants_state(const struct stream *s)
{
	return s->is_batch_ending && stream_has_progress(s);
}

void
stream_set_state(struct stream *s, const struct report_state *state)
{
	s->run->state = *state;
}

static void
make_object(struct stream *s)
{
	if (s->is_each)
		s->run->report.batch_watermark_us = stream_run_watermark_us(s->run);
	report_clock(&s->run->report, stream_clock_us(CLOCK_MONOTONIC), s->run->waited_us);
	wm_buf_reset(&s->text);
	report_progress(&s->run->report, &s->run->state, stream_clock_us(CLOCK_REALTIME), &s->text);
}

static void
tell_batch(struct stream *s)
{
	make_object(s);
	outputs_put_report(s->run->outputs, wm_buf_span(&s->text));
	if (s->common->progress == CLI_PROGRESS_JSON)
		cli_progress(wm_buf_span(&s->text));
}

void
stream_finish_batch(struct stream *s)
{
	if (stream_wants_state(s))
		tell_batch(s);
	s->is_batch_ending = false;
	report_next_batch(&s->run->report, stream_run_watermark_us(s->run));
}

/* With the trigger "each" a batch of the report is a second. */
static bool
has_second(const struct stream *s)
{
	return s->is_each && stream_has_progress(s);
}

bool
stream_is_tick_due(const struct stream *s)
{
	return stream_signals.wants_object != 0 ||
		(s->run->is_started && stream_clock_us(CLOCK_MONOTONIC) >= metrics_due_us(&s->run->metrics)) ||
		(has_second(s) && stream_clock_us(CLOCK_MONOTONIC) >= s->run->tick_next_us);
}

void
stream_finish_tick(struct stream *s)
{
	bool is_asked = stream_signals.wants_object != 0,
	     is_second = stream_clock_us(CLOCK_MONOTONIC) >= s->run->tick_next_us;

	s->is_ticking = false;
	stream_calm_signals();
	stream_signals.wants_object = 0;
	if (s->run->is_started && stream_clock_us(CLOCK_MONOTONIC) >= metrics_due_us(&s->run->metrics))
		write_metrics(s);
	if (!is_asked && !(is_second && has_second(s)))
		return;
	make_object(s);
	if (is_asked || (has_second(s) && is_second && s->common->progress == CLI_PROGRESS_JSON))
		cli_progress(wm_buf_span(&s->text));
	if (!is_second || !has_second(s))
		return;
	outputs_put_report(s->run->outputs, wm_buf_span(&s->text));
	report_next_batch(&s->run->report, stream_run_watermark_us(s->run));
	s->run->tick_next_us = stream_clock_us(CLOCK_MONOTONIC) + TICK_US;
}

void
stream_end_common_batch(struct stream *s, const struct report_state *state, int64_t watermark_us)
{
	s->run->state = *state;
	if (stream_has_progress(s))
		tell_batch(s);
	report_next_batch(&s->run->report, watermark_us);
}

bool
stream_is_stopping(const struct stream *s)
{
	return stream_signals.stop_signal != 0 || s->run->is_at_limit;
}

bool
stream_is_kept_at_limit(const struct stream *s)
{
	return s->run->keep != NULL && s->run->is_at_limit;
}

/* Without -C, --eof flush asks for what is open at a signal too: nothing else would have it. */
bool
stream_is_cut_short(const struct stream *s)
{
	bool is_flushed = s->run->keep == NULL && s->common->eof == CLI_EOF_FLUSH;

	return s->run->is_at_limit || (stream_signals.stop_signal != 0 && !is_flushed);
}

bool
stream_is_held(const struct stream *s)
{
	return stream_is_cut_short(s) || s->is_strict_stop || s->common->eof == CLI_EOF_HOLD ||
		s->common->eof == CLI_EOF_TRIGGER;
}

/* Finishing */

/* --strict, and a record was rejected. */
static bool
is_strict_stop(const struct run *run)
{
	for (size_t i = 0; i < run->streams_count; i++)
		if (run->streams[i]->is_strict_stop)
			return true;
	return false;
}

/* Names a column that no record had, and the nearest of those that the first one had. */
static bool
warn_unseen(const struct stream *s, size_t field, const char *name, const char *option, bool is_so_far)
{
	struct wm_near near = wm_near_to(wm_span_of(name));
	struct wm_buf guess;

	if (inputs_column_seen(s->inputs, field))
		return false;
	for (size_t i = 0; i < s->members.count; i++)
		wm_near_try(&near, s->members.names[i]);
	wm_buf_init(&guess, WM_BUF_UNBOUNDED);
	if (near.best.data != NULL) {
		wm_buf_add_text(&guess, ": did you mean '");
		wm_shown(near.best, &guess);
		wm_buf_add_text(&guess, "'?");
	}
	cli_warn("no record %shad the column '%s'%s%s%s%.*s", is_so_far ? "so far " : "", name,
		option == NULL ? "" : " (", option == NULL ? "" : option, option == NULL ? "" : ")", (int)guess.len,
		guess.data);
	wm_buf_release(&guess);
	return true;
}

/* Columns that no record had: NDJSON has no header that could have told before. */
static bool
warn_unseen_columns(const struct stream *s, bool is_so_far)
{
	const struct cli_common *common = s->common;
	bool is_any = false;

	if (s->run->report.rows_in == s->run->report.rows_punctuation || (s->partner != NULL && !s->has_records))
		return false;
	bool has_whole = s->time_fields_count == 2 && inputs_column_seen(s->inputs, s->time_whole);
	for (size_t i = 0; i < s->time_fields_count && !has_whole; i++)
		is_any |= warn_unseen(s, s->time_fields[i], s->time_name, "-t", is_so_far);
	if (common->source_column != NULL)
		is_any |= warn_unseen(s, s->source_field, common->source_column, "--source", is_so_far);
	if (s->trigger.kind == WM_TRIGGER_COLUMN)
		is_any |= warn_unseen(s, s->trigger_field, common->trigger_column, "--trigger", is_so_far);
	if (common->position != NULL)
		is_any |= warn_unseen(s, s->position_field, common->position, "--position", is_so_far);
	if (s->ingest_parser != NULL)
		is_any |= warn_unseen(s, s->ingest_field, common->ingest, "--ingest", is_so_far);
	for (size_t i = 0; i < s->wanted_count; i++)
		is_any |= warn_unseen(s, s->wanted[i].field, s->wanted[i].name, NULL, is_so_far);
	return is_any;
}

void
stream_warn_so_far(struct run *run)
{
	for (size_t i = 0; i < run->streams_count; i++) {
		const struct stream *s = run->streams[i];

		/* At the end it is said anyway. */
		if (!s->common->quiet && !stream_has_ended(s))
			warn_unseen_columns(s, true);
	}
}

/* The first was told when it began. */
static void
warn_files_behind(const struct stream *s)
{
	if (s->files_behind > 1)
		cli_warn("%zu FILEs in all began behind the watermark that was left to them", s->files_behind);
}

/* Whoever reads the pipe again from another place than it should would lose rows by it. */
static void
warn_skipped(const struct stream *s)
{
	uint64_t skipped = inputs_positions_skipped(s->inputs);

	if (skipped != 0)
		cli_warn("%" PRIu64 " row%s came again and %s skipped, by the last %s (--position)", skipped,
			skipped == 1 ? "" : "s", skipped == 1 ? "was" : "were", s->common->position);
}

static void
warn_held(const struct stream *s, uint64_t open_count)
{
	const char *what = stream_signals.stop_signal != 0 ? "stopped by a signal"
		: s->is_strict_stop || s->run->is_at_limit ? "stopped early"
							   : "held at the end of input";
	const char *unit = s->facts.held_unit == NULL ? "open window" : s->facts.held_unit;

	if (open_count == 0 || s->common->quiet)
		return;
	if (s->run->keep != NULL)
		cli_warn("%s: %" PRIu64 " %s%s kept in %s", what, open_count, unit, open_count == 1 ? " is" : "s are",
			s->common->checkpoint);
	else
		cli_warn("%s: %" PRIu64 " %s%s not written", what, open_count, unit,
			open_count == 1 ? " was" : "s were");
}

static bool
has_confirmed(const struct stream *s)
{
	for (size_t i = 0; i < s->sources.combine.sources_count; i++)
		if (s->sources.combine.sources[i].own.highest_time_us != WM_TIME_NONE)
			return true;
	return false;
}

/* A column of numbers and texts, of which the greatest is a text: often a word for a missing value. */
static void
warn_mixed(const struct stream *s)
{
	for (size_t i = 0; i < s->wanted_count; i++) {
		const struct wanted *wanted = &s->wanted[i];

		if (wanted->has_numbers && wanted->text != NULL)
			cli_warn("column '%s' holds numbers and texts: for min and max texts rank behind all numbers; "
				 "the first is '%s' (%s:%" PRIu64 "): %s takes it as missing",
				wanted->name, wanted->text, wanted->text_input, wanted->text_line, wanted->text_advice);
	}
}

/* Numbers that nobody said are epochs, and that would all be times that hardly any data has: they may be something else. */
static bool
warn_odd_times(struct stream *s)
{
	const struct report *report = &s->run->report;
	struct report_times times = report->times;
	char from[WM_INSTANT_TEXT_MAX], to[WM_INSTANT_TEXT_MAX];

	report_times_merge(&times, &report->batch_times);
	if (!wm_instant_parser_took_numbers(s->time_parser) || times.count == 0 ||
		(times.max_us >= ODD_BEFORE_US && times.min_us < ODD_FROM_US))
		return false;
	size_t from_len = wm_instant_print(times.min_us, WM_UNIT_ISO, wm_zone_utc(), from);
	size_t to_len = wm_instant_print(times.max_us, WM_UNIT_ISO, wm_zone_utc(), to);
	const char *unit = wm_time_family_name(wm_instant_parser_family(s->time_parser));
	cli_warn("column '%s': all times are from %.*s to %.*s, as its numbers were read as epoch %s: give "
		 "--time-format, %s if that is right",
		s->time_name, (int)from_len, from, (int)to_len, to, unit, unit);
	return true;
}

static void
warn_summary(struct stream *s, bool is_too_late)
{
	struct report_context context = {
		.delay_text = s->common->delay.text,
		.delay_us = s->common->delay.us,
		.is_in_band = s->band.is_followed,
		.is_in_order = s->facts.is_in_order,
		.is_spark = s->common->is_spark,
		.late_fate = s->facts.late_fate,
		.late_path = s->common->late_path,
		.has_sides = s->common->has_sides,
		.late_right_path = s->common->late_right_path,
		.rejects_path = s->common->rejects_path,
		.max_jump_text = s->common->max_jump.text,
		.has_confirmed = has_confirmed(s),
		.repeated_hour_text = s->common->repeated_hour == WM_REPEATED_LATER ? "later" : "earlier",
		.fail_late_text = is_too_late ? s->common->fail_late : NULL,
		.is_verbose = s->common->verbose,
		.is_quiet = s->common->quiet,
	};
	struct wm_span rest, line;

	if (s->partner != NULL) {
		const struct stream *other = s->partner;

		/* Of two delays none is named. */
		context.is_in_band |= other->band.is_followed;
		if (other->common->delay.us != context.delay_us || other->common->delay.text == NULL)
			context.delay_text = NULL;
		if (other->common->delay.us > context.delay_us)
			context.delay_us = other->common->delay.us;
		context.has_confirmed =
			(has_confirmed(s) || !s->has_records) && (has_confirmed(other) || !other->has_records);
	}

	wm_buf_reset(&s->text);
	report_summary(&s->run->report, &context, &s->text);
	rest = s->text.len == 0 ? wm_span(NULL, 0) : wm_buf_span(&s->text);
	while (wm_list_next(&rest, '\n', &line))
		cli_warn("%.*s", (int)line.len, line.data);
}

static void
free_stream(struct stream *s)
{
	for (size_t i = 0; i < s->wanted_count; i++) {
		free(s->wanted[i].name);
		free(s->wanted[i].text);
		free(s->wanted[i].text_advice);
	}
	free(s->wanted);
	free(s->readings);
	passing_close(s->passing);
	free(s->stamps.fields);
	inputs_close(s->inputs);
	band_release(&s->band);
	sources_release(&s->sources);
	if (s->members.count != 0)
		wm_columns_release(&s->members);
	wm_combine_release(&s->reading);
	wm_instant_parser_free(s->time_parser);
	wm_instant_parser_free(s->ingest_parser);
	wm_trigger_release(&s->trigger);
	wm_buf_release(&s->text);
	wm_buf_release(&s->rejected);
	wm_buf_release(&s->time_text);
	free(s);
}

/* How the run has ended, for the next one. */
static enum keep_end
end_of_run(const struct stream *s)
{
	const struct keep_state *kept = s->run->kept;

	/* One of two may have ended before a signal came. */
	if (s->run->flushed_count != s->run->streams_count || kept == NULL || !kept->is_gone_by_flush)
		return KEEP_HELD;
	return s->has_watermark ? KEEP_CLOSED : KEEP_ANEW;
}

int
stream_finish(struct stream *s, uint64_t open_count)
{
	struct run *run = s->run;
	bool has_unseen = false, has_lost = run->report.rows_rejected != 0 && !outputs_has_rejects(run->outputs);

	for (size_t i = 0; i < run->streams_count; i++)
		has_unseen |= warn_unseen_columns(run->streams[i], false);
	int status = has_unseen || has_lost || is_strict_stop(run) ? CLI_REJECTED : CLI_DONE;

	assert(report_is_closed(&s->run->report));
	bool is_too_late = s->common->fail_late_whole != 0 &&
		report_late_share_exceeds(
			&s->run->report, (uint64_t)s->common->fail_late_part, (uint64_t)s->common->fail_late_whole);
	if (is_too_late)
		status = CLI_TOO_LATE;
	if (s->run->is_at_limit && status < CLI_LIMIT)
		status = CLI_LIMIT;
	cli_bar_end();
	for (size_t i = 0; i < run->streams_count && stream_signals.stop_signal != 0; i++)
		inputs_tell_open_fields(run->streams[i]->inputs);
	for (size_t i = 0; i < run->streams_count; i++)
		stream_start_outputs(run->streams[i], true);
	note_lines(run);
	outputs_end(run->outputs);
	if (run->keep != NULL && !s->common->quiet && !stream_is_cut_short(s) && !s->is_strict_stop)
		inputs_tell_left(s->inputs);
	warn_held(s, open_count);
	if (!s->common->quiet) {
		warn_files_behind(s);
		for (size_t i = 0; i < run->streams_count; i++)
			warn_mixed(run->streams[i]);
		if (!warn_odd_times(s) && s->partner != NULL)
			(void)warn_odd_times(s->partner);
	}
	for (size_t i = 0; i < run->streams_count && !s->common->quiet; i++)
		warn_skipped(run->streams[i]);
	warn_summary(s, is_too_late);
	report_clock(&s->run->report, stream_clock_us(CLOCK_MONOTONIC), s->run->waited_us);
	report_next_batch(&s->run->report, stream_run_watermark_us(s->run));
	s->run->report.ended_us = stream_clock_us(CLOCK_REALTIME);
	wm_buf_reset(&s->text);
	struct report total = totals(s);
	report_final(&total, &s->run->state, stream_run_watermark_us(s->run), open_count, status, &s->text);
	outputs_put_report(s->run->outputs, wm_buf_span(&s->text));
	outputs_end(s->run->outputs);
	if (run->keep != NULL)
		keep(run, end_of_run(s));
	if (s->run->metrics.path != NULL)
		write_metrics(s);
	metrics_release(&s->run->metrics);
	outputs_close(run->outputs);
	keep_close(run->keep);
	for (size_t i = 0; i < run->streams_count; i++)
		free_stream(run->streams[i]);
	wm_buf_release(&run->nulls_told);
	free(run);
	if (stream_signals.stop_signal != 0)
		stream_die_by_signal();
	return status;
}
