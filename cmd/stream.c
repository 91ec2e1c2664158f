/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stream_inside.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "cmd/band.h"
#include "cmd/inputs.h"
#include "cmd/keep.h"
#include "cmd/outputs.h"
#include "cmd/passing.h"
#include "cmd/progress.h"
#include "cmd/sources.h"
#include "lib/base/ascii.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/base/shown.h"
#include "lib/event/trigger.h"
#include "lib/event/watermark.h"
#include "lib/record/cut.h"
#include "lib/time/instant.h"

/* There are two of each such function: one for plain records, without what these do not need, and one for all. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Event times */

/* A date and a time of day with a blank between; without one of them there is no time. */
static void
join_time(struct stream *s, const struct wm_record *rec)
{
	const struct wm_value *date = &rec->fields[s->time_fields[0]], *clock = &rec->fields[s->time_fields[1]];

	wm_buf_reset(&s->time_text);
	if (!wm_value_is_empty(date) && !wm_value_is_empty(clock)) {
		wm_buf_add(&s->time_text, date->text.data, date->text.len);
		wm_buf_add_byte(&s->time_text, ' ');
		wm_buf_add(&s->time_text, clock->text.data, clock->text.len);
	}
	s->time_value = (struct wm_value){ wm_buf_span(&s->time_text), WM_KIND_TEXT };
}

/* The record's event time: its column, or two of them joined; a column with the name of both and the plus wins. */
static inline const struct wm_value *
time_value(struct stream *s, const struct wm_record *rec)
{
	if (s->time_fields_count == 1)
		return &rec->fields[s->time_fields[0]];
	if (rec->fields[s->time_whole].kind != WM_KIND_NULL)
		return &rec->fields[s->time_whole];
	join_time(s, rec);
	return &s->time_value;
}

/* False for a value that is no time; *why says what is wrong with it. */
static inline bool
read_time(struct wm_instant_parser *parser, const struct wm_value *value, int64_t *time_us, const char **why)
{
	*why = "neither text nor number";
	return (value->kind == WM_KIND_TEXT || value->kind == WM_KIND_NUMBER) &&
		wm_instant_parse(parser, value->text, time_us, why);
}

int64_t
stream_first_event_time(struct stream *s, size_t file)
{
	struct wm_reader *reader = inputs_peek(s->inputs, file);
	struct wm_instant_parser *parser = stream_new_time_parser(s->common, stream_time_format(s->common));
	int64_t time_us = WM_TIME_END;
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err;
	const char *why;
	bool is_found = false;

	for (enum wm_read_result result = WM_READ_MORE; !is_found && result != WM_READ_END;) {
		result = wm_reader_next(reader, &rec, &reject, &err);
		if (result == WM_READ_FAILED || (result == WM_READ_MORE && !wm_reader_fill(reader, &err)))
			cli_die(&err);
		if (result != WM_READ_RECORD)
			continue;
		is_found = read_time(parser, time_value(s, &rec), &time_us, &why);
	}
	wm_instant_parser_free(parser);
	wm_reader_free(reader);
	return time_us;
}

/* Failing and rejecting */

_Noreturn void
stream_fail(struct stream *s, const struct wm_err *err)
{
	struct wm_err told = *err;

	if (s->run->is_started)
		outputs_flush(s->run->outputs);
	/* Misuse means that nothing was written; an input can show it when its turn comes. */
	if (told.code == WM_ERR_USAGE && outputs_have_written(s->run->outputs))
		told.code = WM_ERR_IO;
	cli_die(&told);
}

static void
count_rejected(struct stream *s, const struct wm_reject *reject, const int64_t *time_us)
{
	const char *input = inputs_name(s->inputs, s->input);
	bool is_first = report_reject(&s->run->report, reject->reason);

	s->run->report.lines_rejected += wm_reject_lines(reject);
	struct wm_reject as_came = *reject;
	as_came.lines = wm_reject_lines(reject);
	as_came.raw = wm_reader_as_came(inputs_reader(s->inputs, s->input), reject->raw, &s->rejected);
	outputs_put_reject(s->run->outputs, input, &as_came, time_us);
	if (s->common->strict) {
		cli_warn("%s:%" PRIu64 ": %s (%s): stopped, as --strict asks", input, reject->line, reject->detail,
			reject->reason);
		s->is_strict_stop = true;
		s->phase = PHASE_END;
	} else if (is_first && !s->common->quiet) {
		cli_warn("%s:%" PRIu64 ": %s: row rejected (%s)", input, reject->line, reject->detail, reject->reason);
	}
}

/* Whether a text of the record stands between quotes of CSV. */
static bool
is_quoted(const struct stream *s, struct wm_span text)
{
	const struct wm_reader *reader = inputs_reader(s->inputs, s->input);

	return wm_reader_format(reader) == WM_FORMAT_CSV && wm_cut_is_quoted(s->rec.raw, text);
}

/* Of a record that was rejected: says once of each text that programs write where they have no value how it is taken as missing. */
static void
advise_null(struct stream *s, const char *column, const char *what, struct wm_span text)
{
	struct wm_buf *told = &s->run->nulls_told, *advice = &s->text;
	struct wm_span rest = told->len == 0 ? wm_span(NULL, 0) : wm_buf_span(told), each;

	if (s->common->quiet || !wm_nulls_is_usual(text))
		return;
	while (wm_list_next(&rest, '\n', &each))
		if (wm_span_equal(each, text))
			return;
	wm_buf_add(told, text.data, text.len);
	wm_buf_add_byte(told, '\n');
	wm_buf_reset(advice);
	wm_buf_addf(advice, "'%.*s' in column ", (int)text.len, text.data);
	wm_shown(wm_span_of(column), advice);
	wm_buf_addf(advice, " is %s: ", what);
	wm_nulls_advise(cli_nulls(s->common), text, is_quoted(s, text), advice);
	wm_buf_add_text(advice, " takes it as missing");
	cli_warn("%.*s", (int)advice->len, advice->data);
}

static bool
reject_field(struct stream *s, const char *reason, const char *column, const int64_t *time_us, const char *what,
	struct wm_span text, const char *why)
{
	struct wm_reject reject = { .reason = reason, .column = column, .line = s->rec.line, .raw = s->rec.raw };
	struct wm_buf *shown = &s->text;

	wm_buf_reset(shown);
	wm_buf_addf(shown, "%s in column '%s'", what, column);
	if (text.len != 0) {
		wm_buf_add_text(shown, ": '");
		wm_shown(text, shown);
		wm_buf_add_byte(shown, '\'');
	}
	if (why != NULL)
		wm_buf_addf(shown, ": %s", why);
	size_t len = shown->len < sizeof(reject.detail) ? shown->len : sizeof(reject.detail) - 1;
	memcpy(reject.detail, shown->data, len);
	reject.detail[len] = '\0';
	count_rejected(s, &reject, time_us);
	if (column != s->time_name || s->time_fields_count == 1)
		advise_null(s, column, what, text);
	for (size_t i = 0; column == s->time_name && i < s->time_fields_count && s->time_fields_count > 1; i++)
		advise_null(s, column, what, s->rec.fields[s->time_fields[i]].text);
	return false;
}

/* With the trigger "each" the watermark in force is the combined one, as soon as that moves; true if it is so. */
static inline bool
raise_each(struct stream *s)
{
	if (!s->is_each || !s->has_watermark)
		return false;
	s->watermark_before_us = s->watermark_us;
	s->watermark_us = s->sources.combine.watermark_us;
	return true;
}

/* The watermark has moved without a record; true if the operator is to know of it. */
static bool
is_move_due(const struct stream *s, int64_t due_us)
{
	return due_us <= s->watermark_us || (s->facts.tells_moves && s->watermark_us != s->watermark_before_us);
}

bool
stream_tells_layout(const struct stream *s)
{
	const struct stream *first = s->run->streams[0];

	if (s != first)
		return first->phase == PHASE_FLUSH || first->phase == PHASE_END;
	return s->partner == NULL || wm_reader_format(inputs_layout(s->inputs)) != WM_FORMAT_AUTO;
}

/* Batches */

/* What tells the batches of a column apart; NULL for the other triggers. */
static const struct wm_value *
batch_value(const struct stream *s)
{
	return s->trigger.kind == WM_TRIGGER_COLUMN ? &s->rec.fields[s->trigger_field] : NULL;
}

/* Whether the record that was read belongs to the next batch. */
static inline bool
begins_batch(const struct stream *s)
{
	return s->trigger.kind == WM_TRIGGER_COLUMN && wm_trigger_begins_batch(&s->trigger, batch_value(s));
}

static void
join_batch(struct stream *s, const struct wm_value *value)
{
	bool is_timed = s->trigger.kind == WM_TRIGGER_WALL && !s->trigger.is_open;

	wm_trigger_join(&s->trigger, value, is_timed ? stream_clock_us(CLOCK_MONOTONIC) : 0);
}

void
stream_raise_reach(struct stream *s)
{
	const struct wm_combine *combine = &s->sources.combine;
	size_t followed = s->source;

	if (combine->policy == WM_POLICY_MIN && !wm_combine_lowest(combine, &followed))
		return;
	const struct wm_watermark *own = &combine->sources[followed].own;
	if (own->highest_time_us == WM_TIME_NONE)
		return;
	int64_t reach_us = wm_time_add(own->highest_time_us, s->common->delay.us - own->delay_us);
	if (reach_us > s->reach_next_us)
		s->reach_next_us = reach_us;
}

/* The last record of the batch was judged: the watermark moves. Always true: results are due. */
static bool
end_batch(struct stream *s)
{
	s->watermark_before_us = s->watermark_us;
	wm_combine_settle(&s->sources.combine);
	/* By the greatest it has risen with the records: there may have been none. */
	if (s->has_reach && s->sources.combine.policy == WM_POLICY_MIN)
		stream_raise_reach(s);
	s->reach_us = s->reach_next_us;
	if (s->has_watermark)
		s->watermark_us = s->sources.combine.watermark_us;
	wm_trigger_end(&s->trigger);
	s->is_batch_full = false;
	s->is_batch_ending = !s->facts.shares_batches;
	return true;
}

/* Sources have become idle by the clock, or all is silent and it goes on; true if the operator is to know of it. */
static bool
pass_silence(struct stream *s, bool is_silent)
{
	int64_t now_us = stream_clock_us(CLOCK_MONOTONIC), silent_us = now_us - s->spoke_at_us;
	struct wm_combine *combine = &s->sources.combine;
	bool is_told;

	if (s->common->idle_wall.text != NULL)
		wm_combine_idle_wall(combine, s->common->idle_wall.us, now_us);
	/* It goes on from where the data left it, so that it never is ahead of that by more than the silence. */
	if (is_silent && stream_follows_clock(s))
		wm_combine_raise(combine, wm_time_add(combine->data_us, silent_us));
	if (s->is_each) {
		is_told = raise_each(s) && is_move_due(s, s->due_us);
	} else {
		/* In a batch it waits for the end of that; between two it is a batch without records. */
		if (s->trigger.is_open)
			return false;
		wm_combine_settle(combine);
		is_told = s->has_watermark && combine->watermark_us > s->watermark_us && end_batch(s);
	}
	if (is_told)
		s->told_at_us = now_us;
	return is_told;
}

/* Whether the batch that is open ends with the end of one FILE, or of all of them. */
static bool
ends_batch(const struct stream *s, bool is_last)
{
	switch (s->trigger.kind) {
	case WM_TRIGGER_EACH:
		return false;
	case WM_TRIGGER_FILE:
		return !is_last;
	case WM_TRIGGER_EOF:
		return is_last;
	default:
		return is_last && s->trigger.is_open && s->common->eof != CLI_EOF_HOLD;
	}
}

/* Records */

/* Whether the event time is too far ahead of the arrival to be true; the record is rejected then. */
static bool
admit_arrival(struct stream *s)
{
	if (s->ingest_parser == NULL) {
		s->arrival_us = stream_clock_us(CLOCK_REALTIME);
	} else {
		const struct wm_value *value = &s->rec.fields[s->ingest_field];
		const char *why;

		if (!read_time(s->ingest_parser, value, &s->arrival_us, &why))
			return reject_field(s, "bad-ingest", s->common->ingest, &s->event_time_us, "no arrival time",
				value->text, wm_value_is_empty(value) ? NULL : why);
	}
	if (s->common->max_ahead.text == NULL ||
		s->event_time_us <= wm_time_add(s->arrival_us, s->common->max_ahead.us))
		return true;
	return reject_field(s, "implausible-time", s->time_name, &s->event_time_us,
		"event time too far ahead of the arrival", time_value(s, &s->rec)->text, NULL);
}

/* A length of time above zero: a text such as "30s", or a number of units that is whole microseconds. */
static bool
read_length(struct wm_reading *reading, int64_t unit_us)
{
	int64_t length_us = 0;
	struct wm_err err;

	if (unit_us == 0) {
		if (!wm_duration_parse_fixed(reading->value.text, &length_us, &err))
			return false;
	} else {
		wm_reading_take(reading, &reading->value);
		if (!reading->is_number || !reading->number.is_exact || reading->number.whole < 0 ||
			reading->number.whole > WM_DURATION_US_MAX / unit_us)
			return false;
		wm_int128 rest = (wm_int128)reading->number.fraction * unit_us;
		length_us = (int64_t)reading->number.whole * unit_us + (int64_t)(rest / WM_FRACTION_ONE);
		if (rest % WM_FRACTION_ONE != 0)
			return false;
	}
	reading->number = (struct wm_decimal){ .whole = length_us, .is_exact = true };
	return length_us > 0;
}

/* Whether the record can be written as those before it; it is rejected if not. */
static bool
admit_line(struct stream *s)
{
	struct wm_reject reject;

	if (passing_admit(s->passing, inputs_reader(s->inputs, s->input), &s->rec, &s->line, &reject))
		return true;
	reject.line = s->rec.line;
	reject.raw = s->rec.raw;
	count_rejected(s, &reject, &s->event_time_us);
	return false;
}

/* The first text of a column that is ranked. */
static __attribute__((noinline)) void
note_text(struct stream *s, struct wanted *wanted, struct wm_span text)
{
	wm_buf_reset(&s->text);
	wm_shown(text, &s->text);
	wanted->text = wm_memdup(s->text.data, s->text.len);
	wm_buf_reset(&s->text);
	(void)wm_nulls_advise(cli_nulls(s->common), text, is_quoted(s, text), &s->text);
	wanted->text_advice = wm_memdup(s->text.data, s->text.len);
	wanted->text_input = inputs_name(s->inputs, s->input);
	wanted->text_line = s->rec.line;
}

/* What may be said of a text that is no number; NULL: nothing. */
static const char *
why_no_number(struct wm_span text)
{
	const char *comma = text.len == 0 ? NULL : memchr(text.data, ',', text.len);
	size_t digits = 0;

	for (size_t i = text.len > 0 && text.data[0] == '-'; i < text.len; i++)
		digits += wm_is_digit(text.data[i]);
	if (comma == NULL || digits + 1 + (text.data[0] == '-') != text.len || !wm_is_digit(text.data[text.len - 1]))
		return NULL;
	return "it has a decimal comma, and numbers have a point: put sed 's/,/./g' before it, unless commas part "
	       "fields";
}

/* Whether the numbers that this record needs are there. */
static __attribute__((noinline)) bool
admit_guarded(struct stream *s)
{
	size_t column;

	return s->takes(s->taker, s->readings, &column) ||
		reject_field(s, "bad-number", s->wanted[column].name, &s->event_time_us, "no number",
			s->readings[column].value.text, why_no_number(s->readings[column].value.text));
}

/* Reads the record's event time and numbers, which come last; false if it was rejected. */
static ALWAYS_INLINE bool
admit(struct stream *s, bool is_plain)
{
	const struct wm_value *time = is_plain ? &s->rec.fields[s->time_fields[0]] : time_value(s, &s->rec);
	const char *why;

	if (wm_value_is_empty(time))
		return reject_field(s, "no-time", s->time_name, NULL, "no event time", time->text, NULL);
	if (!read_time(s->time_parser, time, &s->event_time_us, &why))
		return reject_field(s, "bad-time", s->time_name, NULL, "no time", time->text, why);
	if (!is_plain && s->facts.is_bounded &&
		(s->event_time_us < s->facts.not_before_us || s->event_time_us > s->facts.not_after_us))
		return reject_field(s, "implausible-time", s->time_name, &s->event_time_us,
			s->event_time_us < s->facts.not_before_us ? "event time before --not-before"
								  : "event time after --not-after",
			time->text, NULL);
	if (!is_plain && s->reads_arrival && !admit_arrival(s))
		return false;
	if (s->passing != NULL && !admit_line(s))
		return false;
	const struct wm_value *fields = s->rec.fields;
	struct wanted *wanted = s->wanted;
	const struct wanted *end = wanted + s->wanted_count;
	for (struct wm_reading *reading = s->readings; wanted < end; wanted++, reading++) {
		const struct wm_value *value = &fields[wanted->field];

		if (wanted->need == STREAM_TEXT) {
			wm_value_copy(&reading->value, value);
			reading->is_empty = wm_value_is_empty(value);
			reading->is_number = false;
			continue;
		}
		if (wanted->need == STREAM_RANKED) {
			wm_reading_take(reading, value);
			if (reading->is_number)
				wanted->has_numbers = true;
			else if (!reading->is_empty && wanted->text == NULL)
				note_text(s, wanted, value->text);
			continue;
		}
		if (wanted->need == STREAM_LENGTH) {
			reading->value = *value;
			if (!read_length(reading, wanted->unit_us))
				return reject_field(s, "bad-gap", wanted->name, &s->event_time_us,
					"no length of time above zero", value->text, NULL);
			continue;
		}
		wm_reading_take(reading, value);
		if (!reading->is_number && !reading->is_empty && wanted->need == STREAM_NUMBER)
			return reject_field(s, "bad-number", wanted->name, &s->event_time_us, "no number", value->text,
				why_no_number(value->text));
	}
	return is_plain || s->takes == NULL || admit_guarded(s);
}

static void
note_jump(struct stream *s, int64_t jump_us)
{
	struct report *report = &s->run->report;

	report->jump_us = jump_us;
	report->jump_time_us = s->event_time_us;
	report->jump_line = s->rec.line;
	report->jump_input = inputs_name(s->inputs, s->input);
	report->jump_rows_before = report->rows_in - 1;
	report->jump_late_before = report->rows_late;
}

static struct report_place
place_of_record(const struct stream *s)
{
	return (struct report_place){ inputs_name(s->inputs, s->input), s->rec.line, s->event_time_us };
}

/* A FILE that begins behind what was read before: told at once, as its records are late now. */
static void
begin_file(struct stream *s)
{
	s->is_file_begun = true;
	if (s->files_begun++ == 0 || inputs_is_amid(s->inputs, s->input) || !s->has_watermark || s->common->merge ||
		s->common->quiet || !wm_is_behind(s->event_time_us, s->watermark_us) || s->files_behind++ != 0)
		return;
	wm_buf_reset(&s->text);
	wm_duration_print(wm_duration_round_up(wm_time_sub(s->watermark_us, s->event_time_us)), &s->text);
	cli_warn("%s:%" PRIu64 ": begins %.*s behind the watermark that the FILE before it left: --order time reads "
		 "FILEs by their first event time, --merge side by side",
		inputs_name(s->inputs, s->input), s->rec.line, (int)s->text.len, s->text.data);
}

/* Whether records need nothing that only some runs ask of them. */
static bool
has_plain_records(const struct stream *s)
{
	return s->is_each && s->common->position == NULL && !s->has_sources && !s->band.is_there &&
		!s->facts.is_bounded && !s->facts.is_in_order && !s->reads_arrival && s->time_fields_count == 1 &&
		s->sources.guards == NULL && s->common->zone == NULL && !s->facts.nulls_move_nothing &&
		s->takes == NULL;
}

/* Whether one of the columns that the tool asked for is null. */
static bool
has_null(const struct stream *s)
{
	for (size_t i = 0; i < s->wanted_count; i++)
		if (s->readings[i].value.kind == WM_KIND_NULL)
			return true;
	return false;
}

/* What only some runs ask of a record: the first of a FILE, a guard, hours that come twice. Returns the highest event time. */
static __attribute__((noinline)) int64_t
observe_more(struct stream *s, int64_t before_us)
{
	int64_t highest_us = s->event_time_us > before_us ? s->event_time_us : before_us;
	bool is_unconfirmed = false;

	if (!s->is_file_begun)
		begin_file(s);
	if (wm_instant_parser_local_kind(s->time_parser) == WM_LOCAL_REPEATED)
		s->run->report.rows_repeated_hour++;
	if (s->sources.guards != NULL)
		highest_us = wm_guard_take(&s->sources.guards[s->source], before_us, s->event_time_us, &is_unconfirmed);
	if (is_unconfirmed) {
		struct report_place place = place_of_record(s);

		report_unconfirmed(&s->run->report, before_us != WM_TIME_NONE, &place);
	}
	s->is_plain = has_plain_records(s);
	s->is_observed_plainly = s->sources.guards == NULL && s->common->zone == NULL && !s->facts.nulls_move_nothing;
	if (s->facts.nulls_move_nothing && has_null(s))
		return before_us;
	if (s->sources.guards != NULL && before_us == WM_TIME_NONE && highest_us != WM_TIME_NONE)
		wm_combine_confirm(&s->sources.combine, s->source);
	return highest_us;
}

/* The record counts: its event time is observed; true if it is the highest of its source. */
static ALWAYS_INLINE bool
observe(struct stream *s, bool is_plain)
{
	struct wm_watermark *own = &s->sources.combine.sources[s->source].own;
	int64_t before_us = own->highest_time_us, highest_us = s->event_time_us;

	report_times_add(&s->run->report.batch_times, s->event_time_us);
	if (!is_plain && !s->is_observed_plainly)
		highest_us = observe_more(s, before_us);
	bool is_highest = highest_us > s->highest_us;
	if (is_highest) {
		if (s->highest_us != WM_TIME_NONE && highest_us - s->highest_us > s->run->report.jump_us)
			note_jump(s, highest_us - s->highest_us);
		s->highest_us = highest_us;
	}
	if (is_plain || !s->has_reach) {
		s->disorder_us = s->highest_us == WM_TIME_NONE ? 0 : s->highest_us - s->event_time_us;
		if (s->disorder_us > s->run->report.disorder_max_us && !is_highest)
			s->run->report.disorder_max_us = s->disorder_us;
	}
	if (highest_us <= before_us)
		return false;
	own->highest_time_us = highest_us;
	return true;
}

/* How far the record is behind that. In a batch it stays where it was before. */
static __attribute__((noinline)) void
measure_reach(struct stream *s)
{
	if (s->is_each || s->sources.combine.policy == WM_POLICY_MAX)
		stream_raise_reach(s);
	if (s->is_each)
		s->reach_us = s->reach_next_us;
	s->disorder_us = s->reach_us > s->event_time_us ? wm_time_sub(s->reach_us, s->event_time_us) : 0;
	if (s->disorder_us > s->run->report.disorder_max_us)
		s->run->report.disorder_max_us = s->disorder_us;
}

/* Which source the record is of, where there can be several; true if the watermark moved, as another one has become idle. */
static __attribute__((noinline)) bool
find_source(struct stream *s)
{
	struct wm_err err;

	s->source = s->input;
	int64_t now_us = s->sources.can_be_idle ? stream_clock_us(CLOCK_MONOTONIC) : 0;
	if (s->common->source_column != NULL &&
		!sources_find(&s->sources, &s->rec.fields[s->source_field], now_us, &s->source, &err))
		stream_fail(s, &err);
	return s->sources.can_be_idle && wm_combine_speak(&s->sources.combine, s->source, s->event_time_us, now_us);
}

/* A source's watermark has come to watermark_us in band; true if the combined one moved by it. */
static bool
raise_source(struct stream *s, int64_t watermark_us)
{
	struct wm_watermark *own = &s->sources.combine.sources[s->source].own;

	if (watermark_us <= own->watermark_us)
		return false;
	own->watermark_us = watermark_us;
	return wm_combine_moved(&s->sources.combine, s->source);
}

/* Follows the watermark in a record, which counts even where the record is rejected: it is a fact about the stream. */
static __attribute__((noinline)) bool
follow_record(struct stream *s, bool *has_moved)
{
	const struct wm_value *value = &s->rec.fields[s->band.field];
	int64_t watermark_us;
	const char *why;

	s->source = s->input;
	if (!band_read(&s->band, &s->rec, &watermark_us, &why))
		return reject_field(s, "bad-watermark", s->band.column, NULL, "no watermark", value->text, why);
	*has_moved = raise_source(s, watermark_us);
	return true;
}

/* The record that was read is punctuation: no data, and of no batch. */
static __attribute__((noinline)) bool
take_punctuation(struct stream *s, int64_t due_us)
{
	int64_t watermark_us = WM_TIME_NONE;
	const char *why;

	s->run->report.rows_in++;
	s->run->report.rows_punctuation++;
	s->phase = PHASE_PUNCTUATION;
	if (!s->band.is_followed)
		return false;
	s->source = s->input;
	s->is_punctuated = s->facts.is_restating;
	/* It was read before, to see what it is. */
	if (!band_read(&s->band, &s->rec, &watermark_us, &why) || !raise_source(s, watermark_us)) {
		s->watermark_before_us = s->watermark_us;
		return s->is_each && s->is_punctuated;
	}
	return raise_each(s) && (s->is_punctuated || due_us <= s->watermark_us);
}

/* The record joins its batch, is checked and observed; true if the operator has something to do before it is judged. */
static ALWAYS_INLINE bool
take_in(struct stream *s, int64_t due_us, bool is_plain)
{
	bool has_moved = false, is_followed = !is_plain && s->band.is_followed;

	s->phase = PHASE_READ;
	s->run->report.rows_in++;
	if (!is_plain && !s->is_each)
		join_batch(s, batch_value(s));
	if ((is_followed && !follow_record(s, &has_moved)) || !admit(s, is_plain)) {
		if (has_moved && raise_each(s))
			return due_us <= s->watermark_us;
		return wm_trigger_is_full(&s->trigger) && end_batch(s);
	}
	has_moved |= !is_plain && s->has_sources && find_source(s);
	s->phase = PHASE_DELIVER;
	if (observe(s, is_plain) && !is_followed)
		has_moved |= !is_plain && s->facts.is_in_order ? raise_source(s, s->event_time_us)
							       : wm_combine_advance(&s->sources.combine, s->source);
	if (!is_plain && s->has_reach)
		measure_reach(s);
	if (!is_plain && !s->is_each) {
		s->is_batch_full = wm_trigger_is_full(&s->trigger);
		if (s->trigger.kind == WM_TRIGGER_EVENT && s->highest_us != WM_TIME_NONE)
			s->is_batch_full = wm_trigger_enters(&s->trigger, s->highest_us);
		return false;
	}
	return has_moved && raise_each(s) && due_us <= s->watermark_us;
}

static bool
take_rejected(struct stream *s, const struct wm_reject *reject)
{
	stream_start_outputs(s, false);
	s->run->report.rows_in++;
	count_rejected(s, reject, NULL);
	/* Of a record that cannot be read nobody knows the batch of its column. */
	if (s->is_each || s->trigger.kind == WM_TRIGGER_COLUMN)
		return false;
	join_batch(s, NULL);
	return wm_trigger_is_full(&s->trigger) && end_batch(s);
}

/* The inputs have ended; true if a batch ends with them. */
static bool
begin_end(struct stream *s)
{
	bool is_flushed = s->common->eof == CLI_EOF_FLUSH || s->common->eof == CLI_EOF_DEFAULT;
	bool is_stopped = stream_is_cut_short(s);

	if (stream_signals.stop_signal != 0)
		inputs_tell_cut(s->inputs);
	stream_start_outputs(s, true);
	s->phase = !is_stopped && is_flushed ? PHASE_FLUSH : PHASE_END;
	return !is_stopped && ends_batch(s, true) && end_batch(s);
}

/* A FILE has ended. Side by side with others it holds nothing back any more, unless what is open is to be kept. */
static bool
end_file(struct stream *s, int64_t due_us)
{
	bool is_kept = s->common->eof == CLI_EOF_HOLD || s->common->eof == CLI_EOF_TRIGGER;

	stream_start_outputs(s, false);
	s->is_file_begun = s->is_plain = s->is_observed_plainly = false;
	if (s->reads_all)
		wm_combine_end(&s->reading, s->input);
	if (s->common->merge && !is_kept) {
		bool has_moved = wm_combine_end(&s->sources.combine, s->input);

		if (has_moved && raise_each(s))
			return is_move_due(s, due_us);
	}
	return ends_batch(s, false) && end_batch(s);
}

static void
show_bar(struct stream *s)
{
	struct progress_status status = {
		.bytes = inputs_counts(s->inputs).bytes,
		.rows = s->run->report.rows_in,
		.rows_late = s->run->report.rows_late,
		.has_watermark = s->has_watermark,
		.watermark_us = s->watermark_us,
	};

	cli_bar(&s->run->progress, &status, stream_clock_us(CLOCK_MONOTONIC));
}

/* Between two records, when all that those before let go was written: true if the run ends here. */
static __attribute__((noinline)) bool
attend(struct stream *s)
{
	if (stream_signals.stop_signal != 0 &&
		(s->run->keep == NULL ? stream_is_overdue(s->run, STOP_RECORDS_US)
				      : inputs_is_seekable(s->inputs, s->input)))
		return true;
	stream_check_state(s);
	if (s->run->is_at_limit)
		return true;
	if (stream_is_commit_due(s) && stream_can_commit(s->run))
		stream_commit(s);
	stream_plan_attention(s->run);
	return false;
}

/* Before a read, between two records: what a signal or the clock asks for; true if a batch ends or the operator is asked what it holds. */
static bool
pause_for_input(struct stream *s)
{
	struct wm_err err;

	s->is_hungry = true;
	if (attend(s))
		return begin_end(s);
	switch (stream_wait(s)) {
	case WAIT_YIELD:
		s->has_yielded = true;
		return true;
	case WAIT_BATCH_DUE:
		return end_batch(s);
	case WAIT_IDLE:
		return pass_silence(s, false);
	case WAIT_SILENCE:
		return pass_silence(s, true);
	case WAIT_SIGNAL:
		if (stream_signals.wants_reopen != 0 && s->run->is_started)
			stream_reopen(s);
		stream_signals.wants_reopen = 0;
		if (stream_signals.stop_signal != 0)
			return begin_end(s);
		break;
	case WAIT_TICK:
	case WAIT_NOTICE:
		break;
	case WAIT_INPUT:
		if (s->run->progress.is_wanted)
			show_bar(s);
		if (!inputs_fill(s->inputs, s->input, &err))
			stream_fail(s, &err);
		/* The pipe may end as whatever wrote it got the same signal: an unfinished last line is no record then. */
		if (stream_signals.stop_signal != 0 && wm_reader_filled(inputs_reader(s->inputs, s->input)).len == 0)
			return begin_end(s);
		s->is_hungry = false;
		if (s->partner != NULL)
			s->fed_at_us = stream_clock_us(CLOCK_MONOTONIC);
		break;
	}
	s->is_ticking = stream_is_tick_due(s);
	return s->is_ticking;
}

/* What was read is no record; true if the operator has something to do. */
static __attribute__((noinline)) bool
read_other(struct stream *s, enum inputs_item item, int64_t due_us, const struct wm_reject *reject,
	const struct wm_err *err)
{
	switch (item) {
	case INPUTS_REJECTED:
		return take_rejected(s, reject);
	case INPUTS_WAIT:
		return pause_for_input(s);
	case INPUTS_FILE_END:
		return end_file(s, due_us);
	case INPUTS_END:
		return begin_end(s);
	case INPUTS_RECORD:
	case INPUTS_FAILED:
		break;
	}
	stream_fail(s, err);
}

/* A batch as a whole number; false: it is none. */
static bool
number_of_batch(const struct wm_value *value, int64_t *number)
{
	struct wm_reading reading;

	wm_reading_take(&reading, value);
	if (!reading.is_number || !reading.number.is_exact || reading.number.fraction != 0 ||
		reading.number.whole <= INT64_MIN || reading.number.whole >= INT64_MAX)
		return false;
	*number = (int64_t)reading.number.whole;
	return true;
}

/* The batch of a record; false: the record is rejected. */
static bool
read_batch(struct stream *s)
{
	const struct wm_value *value = &s->rec.fields[s->trigger_field];

	if (number_of_batch(value, &s->batch_number))
		return true;
	s->run->report.rows_in++;
	return reject_field(s, "bad-number", s->common->trigger_column, NULL, "no batch number", value->text, NULL);
}

/* The record that was read is of one source more than there can be: the run ends before it, and the next one begins with it. */
static __attribute__((noinline)) bool
stop_at_source(struct stream *s)
{
	cli_warn("%s:%" PRIu64 ": more than %d sources: stopped%s: is %s the column that tells them apart (--source)?",
		inputs_name(s->inputs, s->input), s->rec.line, WM_SOURCES_MAX,
		s->run->keep == NULL ? "" : " (the checkpoint is good)", s->common->source_column);
	s->run->is_at_limit = s->is_left = true;
	return begin_end(s);
}

/* What comes before a record that was read is judged by its batch; true if the record stands by itself. */
static bool
look_at_record(struct stream *s, int64_t due_us, bool *is_due)
{
	if (!s->is_decided)
		stream_decide(s);
	if (!s->is_settled)
		stream_start_outputs(s, false);
	/* What is rejected later ends a silence too. */
	if (s->common->idle_close.text != NULL)
		s->spoke_at_us = stream_clock_us(CLOCK_MONOTONIC);
	if (s->common->position != NULL &&
		!inputs_pass_position(s->inputs, s->input,
			s->common->source_column == NULL ? NULL : &s->rec.fields[s->source_field],
			&s->rec.fields[s->position_field]))
		return false;
	if (s->band.is_there && wm_value_is_empty(time_value(s, &s->rec)) &&
		band_is_punctuation(&s->band, inputs_reader(s->inputs, s->input), &s->rec)) {
		*is_due = take_punctuation(s, due_us);
		return false;
	}
	if (s->common->source_column != NULL && sources_is_full_for(&s->sources, &s->rec.fields[s->source_field])) {
		*is_due = stop_at_source(s);
		return false;
	}
	s->has_records = true;
	if (s->facts.batches_are_numbers && !read_batch(s))
		return false;
	if (!begins_batch(s))
		return true;
	s->phase = PHASE_TAKE_IN;
	*is_due = end_batch(s);
	return false;
}

/* Of several inputs the one furthest behind is read; false if none is left. */
static __attribute__((noinline)) bool
choose_input(struct stream *s)
{
	if (!s->reads_all)
		return wm_combine_lowest(&s->sources.combine, &s->input);
	s->reading.sources[s->input].own = s->sources.combine.sources[s->input].own;
	if (s->reading.sources[s->input].place != SIZE_MAX)
		wm_combine_moved(&s->reading, s->input);
	return wm_combine_lowest(&s->reading, &s->input);
}

/* Comes a step nearer to the next record; true if there is one. *is_due: the operator has something to do. */
static ALWAYS_INLINE bool
read_record(struct stream *s, int64_t due_us, bool *is_due, bool is_plain)
{
	struct wm_reject reject;
	struct wm_err err;

	if ((s->run->report.rows_in >= s->run->attend_row || stream_signals.stop_signal != 0) && attend(s)) {
		*is_due = begin_end(s);
		return false;
	}
	if (!is_plain && s->has_sources && s->common->merge && !choose_input(s)) {
		*is_due = begin_end(s);
		return false;
	}
	enum inputs_item item = inputs_next(s->inputs, s->input, &s->rec, &reject, &err);
	if (item != INPUTS_RECORD) {
		*is_due = read_other(s, item, due_us, &reject, &err);
		return false;
	}
	return is_plain || look_at_record(s, due_us, is_due);
}

bool
stream_peek_batch(struct stream *s, int64_t *number)
{
	bool is_due = false;

	while (s->phase == PHASE_READ) {
		if (read_record(s, WM_TIME_END, &is_due, false))
			s->phase = PHASE_TAKE_IN;
		if (s->is_ticking)
			stream_finish_tick(s);
	}
	if (s->phase == PHASE_TAKE_IN && s->passing != NULL)
		passing_tell(s->passing, inputs_reader(s->inputs, s->input), &s->rec);
	*number = s->batch_number;
	return s->phase == PHASE_TAKE_IN;
}

bool
stream_open_batch(const struct stream *s, int64_t *number)
{
	const struct wm_value value = { wm_buf_span(&s->trigger.value), s->trigger.value_kind };

	return s->trigger.is_open && !stream_has_ended(s) && number_of_batch(&value, number);
}

static ALWAYS_INLINE void
hand_out(struct stream *s, struct stream_row *row, bool is_plain)
{
	s->phase = PHASE_READ;
	row->watermark_us = s->watermark_us;
	row->event_time_us = s->event_time_us;
	row->highest_time_us = !is_plain && s->has_reach ? s->reach_us : s->highest_us;
	row->arrival_us = s->arrival_us;
	row->source = !is_plain && s->common->merge ? s->input : 0;
	row->readings = s->readings;
}

static enum stream_item
hand_out_watermark(struct stream *s, struct stream_row *row)
{
	row->watermark_us = s->watermark_us;
	if (s->has_yielded) {
		s->has_yielded = false;
		return STREAM_YIELD;
	}
	if (s->is_ticking)
		return STREAM_TICK;
	row->watermark_before_us = s->watermark_before_us;
	row->is_punctuated = s->is_punctuated;
	if (s->facts.is_in_order && !wm_combine_lowest(&s->sources.combine, &row->source))
		row->source = 0;
	s->is_punctuated = false;
	stream_look_sooner(s->run);
	s->mark = (struct mark){ true, s->phase, s->run->report.rows_in, s->watermark_us };
	return STREAM_WATERMARK;
}

/* Whether the operator is due by the watermark that it was told last. */
static bool
is_due_again(const struct stream *s, int64_t due_us)
{
	const struct mark *mark = &s->mark;

	return due_us <= s->watermark_us && mark->is_set && mark->phase == s->phase &&
		mark->rows_in == s->run->report.rows_in && mark->watermark_us == s->watermark_us;
}

/* Not the plain way: from wherever the stream stands to the next item. */
static __attribute__((noinline)) enum stream_item
next_item(struct stream *s, int64_t due_us, struct stream_row *row)
{
	if (s->is_batch_ending)
		stream_finish_batch(s);
	if (s->is_ticking)
		stream_finish_tick(s);
	/* What the record before left due: a window that it changed; or it was the last of its batch. */
	assert(!s->is_each || !is_due_again(s, due_us));
	bool is_due = s->is_each ? due_us <= s->watermark_us : s->is_batch_full && end_batch(s);
	if (is_due && s->is_each)
		s->watermark_before_us = s->watermark_us;

	while (!is_due) {
		bool is_read = s->phase == PHASE_TAKE_IN;

		if (s->phase == PHASE_READ)
			is_read = read_record(s, due_us, &is_due, false);
		if (is_read)
			is_due = take_in(s, due_us, false);
		if (s->phase == PHASE_PUNCTUATION && !is_due) {
			s->phase = PHASE_READ;
			row->watermark_us = s->watermark_us;
			if (s->facts.is_passing)
				return STREAM_PUNCTUATION;
		}
		if (is_due || s->phase == PHASE_READ)
			continue;
		if (s->phase == PHASE_DELIVER) {
			hand_out(s, row, false);
			return STREAM_RECORD;
		}
		if (s->phase == PHASE_END)
			return STREAM_END;
		s->phase = PHASE_END;
		s->run->flushed_count++;
		row->watermark_us = WM_TIME_END;
		row->watermark_before_us = s->watermark_us;
		row->is_punctuated = false;
		return STREAM_WATERMARK;
	}
	return hand_out_watermark(s, row);
}

enum stream_item
stream_next(struct stream *s, int64_t due_us, struct stream_row *row)
{
	bool is_due = false;

	s->due_us = due_us;
	if (!s->is_plain || due_us <= s->watermark_us || s->phase != PHASE_READ || s->is_ticking)
		return next_item(s, due_us, row);
	/* Nearly all records go this way, which leaves out what they do not need. */
	bool is_read = read_record(s, due_us, &is_due, true);
	if (is_read)
		is_due = take_in(s, due_us, true);
	if (is_due)
		return hand_out_watermark(s, row);
	if (!is_read || s->phase != PHASE_DELIVER)
		return next_item(s, due_us, row);
	hand_out(s, row, true);
	return STREAM_RECORD;
}
