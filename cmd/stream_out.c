/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stream_inside.h"

#include <inttypes.h>

#include "cmd/band.h"
#include "cmd/inputs.h"
#include "cmd/outputs.h"
#include "cmd/passing.h"
#include "cmd/sources.h"
#include "lib/event/watermark.h"
#include "lib/time/instant.h"

int64_t
stream_position_us(const struct stream *s)
{
	/* Either has one source, whose watermark in a batch is ahead of the one in force. */
	return s->sources.combine.sources[0].own.watermark_us;
}

bool
stream_is_amid(const struct stream *s)
{
	return s->phase == PHASE_DELIVER || s->phase == PHASE_PUNCTUATION;
}

bool
stream_has_layout(const struct stream *s)
{
	return wm_reader_format(inputs_layout(s->inputs)) != WM_FORMAT_AUTO;
}

bool
stream_has_ended(const struct stream *s)
{
	return s->phase == PHASE_FLUSH || s->phase == PHASE_END;
}

/* A row of results goes out. The first tells of columns that no record had so far: a stream may have no end at which that would be said. */
static inline void
count_out(struct stream *s)
{
	if (s->run->report.rows_out++ == 0)
		stream_warn_so_far(s->run);
	if (stream_signals.stop_signal != 0)
		stream_hurry(s);
}

void
stream_pause(void *self)
{
	if (stream_signals.stop_signal != 0)
		stream_hurry(self);
}

/* Below it the number of a record has room, above it that of its input. */
#define INPUT_FROM 44

/* The number that a record of one of several inputs has among those of all. */
static uint64_t
number_of_all(const struct stream *s, uint64_t number)
{
	return number == 0 ? 0 : (uint64_t)s->input << INPUT_FROM | number;
}

bool
stream_foresee(const struct stream *s, size_t ahead, struct wm_value *values, size_t count, uint64_t *number)
{
	const struct wm_reader *reader = inputs_reader(s->inputs, s->input);
	bool is_known = true;

	for (size_t i = 0; i < count && is_known; i++)
		is_known = wm_reader_foresee(reader, ahead, s->wanted[i].field, &values[i], number);
	*number = is_known ? number_of_all(s, *number) : 0;
	return is_known;
}

uint64_t
stream_number(const struct stream *s)
{
	return number_of_all(s, wm_reader_number(inputs_reader(s->inputs, s->input)));
}

void
stream_used(struct stream *s, int64_t windows_missed)
{
	s->run->report.rows_used++;
	if (s->disorder_us > s->run->report.disorder_used_max_us)
		s->run->report.disorder_used_max_us = s->disorder_us;
	if (windows_missed != 0) {
		s->run->report.rows_partly_late++;
		s->run->report.windows_missed += (uint64_t)windows_missed;
		s->run->report.windows_missed_partly += (uint64_t)windows_missed;
	}
}

/* A late row as it came; but what of it was the watermark in band would hold for the file as a whole. */
static __attribute__((noinline)) void
put_late(struct stream *s)
{
	static const struct wm_value none = { { NULL, 0 }, WM_KIND_NULL };
	struct wm_reader *reader = inputs_reader(s->inputs, s->input);
	struct wm_span line = wm_reader_line(reader, &s->rec, &s->text);

	if (s->band.is_there && !wm_value_is_empty(&s->rec.fields[s->band.field]))
		line = band_restate(&s->band, line, &none);
	outputs_put_late(
		s->run->outputs, s->number, line, wm_time_sub(s->watermark_us, s->event_time_us), s->watermark_us);
}

void
stream_duplicate(struct stream *s)
{
	s->run->report.rows_duplicate++;
	if (s->common->duplicates_path != NULL)
		outputs_put_duplicate(
			s->run->outputs, wm_reader_line(inputs_reader(s->inputs, s->input), &s->rec, &s->text));
}

/* The first record that is late in an input that was taken to be in order: no delay is at fault, but the input. */
static __attribute__((noinline)) void
warn_out_of_order(struct stream *s)
{
	char time[WM_INSTANT_TEXT_MAX];
	size_t len = wm_instant_print(s->event_time_us, WM_UNIT_ISO, wm_zone_utc(), time);

	if (s->run->report.rows_late == 0 && !s->common->quiet)
		cli_warn("%s:%" PRIu64
			 ": %.*s is out of order, where each FILE is taken to be in order: row late: leave "
			 "-m out, and give -w D if the rows are not all to be held",
			inputs_name(s->inputs, s->input), s->rec.line, (int)len, time);
}

void
stream_late(struct stream *s, int64_t windows_missed)
{
	if (s->facts.is_in_order)
		warn_out_of_order(s);
	report_late(&s->run->report);
	s->run->report.windows_missed += (uint64_t)windows_missed;
	if (outputs_has_late(s->run->outputs))
		put_late(s);
}

void
stream_pass(struct stream *s, const struct wm_value *values)
{
	count_out(s);
	passing_put(s->passing, s->line, &s->rec, values);
}

struct wm_value
stream_said(const struct stream *s, size_t number)
{
	return wm_reader_said(inputs_reader(s->inputs, s->input), s->wanted[number].field);
}

struct wm_span
stream_line(const struct stream *s)
{
	return s->line;
}

void
stream_put_line(struct stream *s, struct wm_span line, int64_t watermark_us)
{
	count_out(s);
	if (s->band.is_there) {
		struct wm_value value = band_time(&s->told, s->common, watermark_us);

		line = band_restate(&s->band, line, &value);
	}
	passing_put(s->passing, line, NULL, NULL);
}

void
stream_count_row(struct stream *s)
{
	count_out(s);
}

int64_t
stream_watermark_us(const struct stream *s)
{
	return s->watermark_us;
}

struct passing *
stream_passing(struct stream *s)
{
	return s->passing;
}

struct outputs *
stream_outputs(struct stream *s)
{
	return s->run->outputs;
}

void
stream_tell_watermark(struct stream *s, int64_t watermark_us)
{
	if (!s->band.is_there || watermark_us == WM_TIME_NONE)
		return;
	struct wm_value value = band_time(&s->told, s->common, watermark_us);
	passing_put_lone(s->passing, s->band.columns.names[s->band.own], &value);
}

void
stream_identity(struct stream *s, struct wm_buf *out)
{
	passing_identity(s->passing, s->line, out);
}

void
stream_pass_punctuation(struct stream *s)
{
	passing_put_lone(s->passing, s->band.columns.names[s->band.own], &s->rec.fields[s->band.field]);
}

void
stream_put_lone(struct stream *s, struct wm_span name, const struct wm_value *value)
{
	passing_put_lone(s->passing, name, value);
}

bool
stream_is_in_band(const struct stream *s)
{
	return s->band.is_followed;
}

void
stream_put_punctuation(struct stream *s, size_t column, const struct wm_value *value)
{
	outputs_put_lone(s->run->outputs, column, value);
}

void
stream_put_text(struct stream *s, struct wm_span text)
{
	outputs_put_text(s->run->outputs, text);
}

void
stream_put_row(struct stream *s, const struct wm_value *values)
{
	count_out(s);
	outputs_put_row(s->run->outputs, values);
}
