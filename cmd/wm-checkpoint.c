/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wm-checkpoint - look into a checkpoint.
 *
 * Takes no lock and changes nothing. cmd/contents decodes what all tools keep;
 * cmd/held what the operator holds. See wm-checkpoint(1).
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cli.h"
#include "cmd/contents.h"
#include "cmd/held.h"
#include "cmd/outputs.h"
#include "cmd/pairs.h"
#include "cmd/windows.h"
#include "lib/base/hash.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/base/near.h"
#include "lib/base/shown.h"
#include "lib/record/cut.h"
#include "lib/record/writer.h"
#include "lib/time/duration.h"
#include "lib/time/zone.h"

/* Sources that why names before it only counts the rest. */
#define WHY_SOURCES_MAX 20

struct options {
	struct cli_common common;
};

static const struct cli_option table[] = { CLI_END };

static const struct cli_tool tool = {
	.name = "wm-checkpoint",
	.summary = "look into a checkpoint",
	.usage = "show|dump|watermark FILE\n"
		 "       wm-checkpoint verify FILE...\n"
		 "       wm-checkpoint position FILE [INPUT] [SOURCE]\n"
		 "       wm-checkpoint why FILE TIME",
	.examples = "wm-checkpoint show st                     what it says, for eyes\n"
		    "wm-checkpoint verify st st.prev           are they whole?\n"
		    "wm-checkpoint dump st | jq -c .           all of it, NDJSON\n"
		    "wm-checkpoint watermark st                one line, UTC\n"
		    "wm-checkpoint position st                 where a reader goes on\n"
		    "wm-checkpoint why st 2025-11-29T10:00:00Z what its window waits for",
	.options = table,
};

/* ---- texts ---- */

/* A text of the file as eyes may see it, whole. */
static void
add_shown(struct wm_buf *out, struct wm_span text)
{
	wm_shown(text, out);
}

static void
add_time(struct wm_buf *out, int64_t time_us)
{
	char text[WM_INSTANT_TEXT_MAX];

	if (time_us == WM_TIME_NONE)
		wm_buf_add_text(out, "none");
	else if (time_us == WM_TIME_END)
		wm_buf_add_text(out, "end");
	else
		wm_buf_add(out, text, wm_instant_print(time_us, WM_UNIT_ISO, wm_zone_utc(), text));
}

static const char *
plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* The combined watermark: of two streams the one that is behind. */
static int64_t
combined_us(const struct contents *c)
{
	int64_t watermark_us = c->streams[0].combine.watermark_us;

	for (size_t i = 1; i < c->streams_count; i++)
		if (c->streams[i].combine.watermark_us < watermark_us)
			watermark_us = c->streams[i].combine.watermark_us;
	return watermark_us;
}

static const char *
name_of_stream(const struct contents *c, size_t stream)
{
	return c->streams_count == 1 ? NULL : stream == 0 ? "left" : "right";
}

static bool
takes_part(const struct contents_stream *stream, size_t source)
{
	return stream->combine.sources[source].place != SIZE_MAX;
}

/* "web2", or what a source without a name is. */
static void
add_source(struct wm_buf *out, const struct contents *c, size_t number, size_t source)
{
	const struct contents_stream *stream = &c->streams[number];
	const char *side = name_of_stream(c, number);

	if (stream->sources[source].kind == WM_KIND_NULL && c->common.source_column == NULL && !c->common.merge)
		wm_buf_addf(out, "%s%sinput", side == NULL ? "the " : side, side == NULL ? "" : " ");
	else if (stream->sources[source].name.len == 0)
		wm_buf_add_text(out, "the source without a name");
	else
		add_shown(out, stream->sources[source].name);
}

/* ---- show ---- */

static uint64_t
held_rows(const struct held *held, enum wm_join_side side)
{
	return wm_join_counts(held->join).rows[side];
}

/* "7 open windows", where it is a number of things; and its size. */
static void
add_state(struct wm_buf *out, struct contents *c, struct held *held)
{
	const struct wm_checkpoint_section *section = &c->file.sections[WM_CHECKPOINT_STAT];
	uint64_t count = 0;
	const char *what = NULL;

	if (held->windowing != NULL)
		count = wm_windowing_open_count(held->windowing), what = "open window";
	else if (held->sessions != NULL)
		count = wm_sessions_open_count(held->sessions), what = "open session";
	else if (held->sort != NULL)
		count = wm_sort_count(held->sort), what = "held row";
	else if (held->dedup != NULL)
		count = wm_dedup_counts(held->dedup).keys, what = "remembered key";
	else if (held->join != NULL)
		count = held_rows(held, WM_JOIN_LEFT) + held_rows(held, WM_JOIN_RIGHT), what = "held row";
	else if (held->lag != NULL)
		count = wm_lag_groups_count(held->lag), what = "group";
	if (section->version == KEEP_STATE_ANEW)
		wm_buf_add_text(out, "none: the next run begins anew");
	else if (what != NULL)
		wm_buf_addf(out, "%" PRIu64 " %s%s, %zu bytes", count, what, plural(count), section->payload.len);
	else
		wm_buf_addf(out, "%zu bytes", section->payload.len);
}

static void
begin_line(struct wm_buf *out, const char *name)
{
	wm_buf_addf(out, "%-10s ", name);
}

static void
show_watermarks(const struct contents *c, struct wm_buf *out)
{
	for (size_t i = 0; i < c->streams_count; i++) {
		const struct contents_stream *stream = &c->streams[i];
		const char *side = name_of_stream(c, i);

		begin_line(out, "watermark");
		add_time(out, stream->combine.watermark_us);
		if (side != NULL)
			wm_buf_addf(out, " of the %s", side);
		wm_buf_add_text(out, stream->follows_band ? ", as the rows carry it" : "");
		wm_buf_add_text(out, ", highest event time ");
		add_time(out, stream->highest_us);
		if (stream->trigger.is_open)
			wm_buf_addf(out, ", %" PRIu64 " row%s in the open batch", stream->trigger.rows,
				plural(stream->trigger.rows));
		wm_buf_add_byte(out, '\n');
		for (size_t j = 0; j < stream->combine.sources_count && stream->combine.sources_count > 1; j++) {
			const struct wm_source *source = &stream->combine.sources[j];

			begin_line(out, "  source");
			add_time(out, source->own.watermark_us);
			wm_buf_add_byte(out, ' ');
			add_source(out, c, i, j);
			wm_buf_add_text(out,
				source->has_ended                ? ", ended"
					: source->is_unconfirmed ? ", unconfirmed"
					: takes_part(stream, j)  ? ""
								 : ", idle");
			wm_buf_add_byte(out, '\n');
		}
	}
}

/* Of each source, in the order in which they came. */
static void
show_positions(const struct sections_input *input, struct wm_buf *out)
{
	const char *before = ", positions ";
	struct wm_value source;
	struct wm_span value;
	struct wm_get in;

	wm_get_init(&in, input->positions);
	for (; positions_next(&in, &source, &value); before = ", ") {
		wm_buf_add_text(out, before);
		add_shown(out, source.text);
		wm_buf_add_text(out, ": ");
		add_shown(out, value);
	}
}

static void
show_inputs(const struct contents *c, struct wm_buf *out)
{
	for (size_t i = 0; i < c->inputs_count; i++) {
		const struct sections_input *input = &c->inputs[i];

		begin_line(out, "input");
		if (input->is_pipe && input->path.len == 0)
			wm_buf_add_text(out, "a pipe");
		else
			add_shown(out, input->path);
		wm_buf_addf(out, ": %" PRIu64 " bytes, %" PRIu64 " line%s%s%s", input->offset, input->lines,
			plural(input->lines), input->is_at_end ? ", to its end" : "",
			input->is_operand ? "" : ", not among the last run's");
		if (input->tail.len != 0)
			wm_buf_addf(out, ", and %zu of an unfinished line", input->tail.len);
		if (input->position.len != 0) {
			wm_buf_add_text(out, ", position ");
			add_shown(out, input->position);
		}
		show_positions(input, out);
		wm_buf_add_byte(out, '\n');
	}
	for (size_t i = 0; i < c->outputs_count; i++) {
		const struct sections_output *output = &c->outputs[i];

		begin_line(out, "output");
		add_shown(out, output->path);
		wm_buf_add_text(out, " (");
		add_shown(out, output->option);
		wm_buf_addf(out, "): %" PRIu64 " bytes, %s\n", output->length,
			output->is_finished ? "finished" : "unfinished");
	}
}

static void
show_counts(const struct contents *c, struct wm_buf *out)
{
	const struct report *ledger = &c->ledger;

	begin_line(out, "rows");
	wm_buf_addf(out, "%" PRIu64 " in:", ledger->rows_in);
	for (size_t i = 0; i < REPORT_CLASSES; i++)
		wm_buf_addf(out, "%s %" PRIu64 " %s", i == 0 ? "" : ",", report_class_count(ledger, i),
			report_classes[i].name);
	wm_buf_addf(out, "; %" PRIu64 " out\n", ledger->rows_out);
	for (size_t i = 0; ledger->reasons[i].reason != NULL; i++) {
		begin_line(out, "  rejected");
		wm_buf_addf(out, "%" PRIu64 " %s\n", ledger->reasons[i].count, ledger->reasons[i].reason);
	}
	if (ledger->times.count == 0)
		return;
	begin_line(out, "times");
	add_time(out, ledger->times.min_us);
	wm_buf_add_text(out, " to ");
	add_time(out, ledger->times.max_us);
	wm_buf_add_byte(out, '\n');
}

static void
show(struct contents *c, struct wm_buf *out, struct held *held)
{
	begin_line(out, "tool");
	wm_buf_addf(out, "%s\n", c->file.tool);
	begin_line(out, "written");
	add_time(out, c->file.written_at_us);
	wm_buf_addf(out, ", generation %" PRIu64 ", %s\n", c->file.generation,
		c->is_closed        ? "at the end of a run that closed everything"
			: c->is_end ? "at the end of a run"
				    : "during a run");
	for (size_t i = 0; i < c->options_count; i++) {
		begin_line(out, "option");
		add_shown(out, c->options[i].name);
		if (c->options[i].value.len != 0)
			wm_buf_add_byte(out, ' ');
		add_shown(out, c->options[i].value);
		wm_buf_add_byte(out, '\n');
	}
	show_watermarks(c, out);
	show_inputs(c, out);
	show_counts(c, out);
	begin_line(out, "state");
	add_state(out, c, held);
	wm_buf_add_byte(out, '\n');
}

/* ---- dump ---- */

static void
put_text(struct wm_buf *out, const char *name, struct wm_span text)
{
	wm_json_put_name(out, name);
	wm_json_put_string(out, text);
}

static void
put_count(struct wm_buf *out, const char *name, uint64_t count)
{
	wm_json_put_name(out, name);
	wm_buf_addf(out, "%" PRIu64, count);
}

/* Hashes are above what JSON numbers are sure to keep. */
static void
put_hash(struct wm_buf *out, const char *name, uint64_t hash)
{
	wm_json_put_name(out, name);
	wm_buf_addf(out, "\"%016" PRIx64 "\"", hash);
}

static void
put_flag(struct wm_buf *out, const char *name, bool is_set)
{
	wm_json_put_name(out, name);
	wm_buf_add_text(out, is_set ? "true" : "false");
}

static void
put_time(struct wm_buf *out, const char *name, int64_t time_us)
{
	wm_json_put_name(out, name);
	if (time_us == WM_TIME_NONE) {
		wm_buf_add_text(out, "null");
		return;
	}
	wm_buf_add_byte(out, '"');
	add_time(out, time_us);
	wm_buf_add_byte(out, '"');
}

static void
begin_object(struct wm_buf *out, const char *section)
{
	wm_buf_add_byte(out, '{');
	put_text(out, "section", wm_span_of(section));
}

static void
end_object(struct wm_buf *out)
{
	wm_buf_add_text(out, "}\n");
}

static void
put_kind(struct wm_buf *out, const char *name, const struct contents_kind *kind)
{
	put_text(out, name,
		kind->family == WM_TIME_PATTERN ? kind->pattern : wm_span_of(wm_time_family_name(kind->family)));
}

static void
dump_options(const struct contents *c, struct wm_buf *out)
{
	begin_object(out, "header");
	put_text(out, "tool", wm_span_of(c->file.tool));
	put_count(out, "format", c->file.format_version);
	put_time(out, "written", c->file.written_at_us);
	put_count(out, "generation", c->file.generation);
	end_object(out);
	for (size_t i = 0; i < c->options_count; i++) {
		begin_object(out, "OPTS");
		put_text(out, "option", c->options[i].name);
		put_text(out, "value", c->options[i].value);
		put_flag(out, "may_rise", c->options[i].may_rise);
		end_object(out);
	}
}

static const char *
name_of_format(enum wm_format format)
{
	static const char *const names[] = { "auto", "csv", "tsv", "ndjson", "clf", "logfmt", "lines" };

	return names[format];
}

static void
dump_source(const struct contents *c, size_t number, size_t place, struct wm_buf *out)
{
	const struct contents_stream *stream = &c->streams[number];
	const struct wm_source *source = &stream->combine.sources[place];

	begin_object(out, "WMRK");
	put_count(out, "stream", number);
	put_count(out, "source", place);
	put_text(out, "name", stream->sources[place].name);
	put_time(out, "watermark", source->own.watermark_us);
	put_time(out, "highest", source->own.highest_time_us);
	put_time(out, "spoke_at_highest", source->mark_us);
	put_flag(out, "takes_part", takes_part(stream, place));
	put_flag(out, "ended", source->has_ended);
	if (stream->guards != NULL)
		put_count(out, "remembered_times", stream->guards[place].count);
	end_object(out);
}

static void
dump_watermarks(const struct contents *c, struct wm_buf *out)
{
	for (size_t i = 0; i < c->streams_count; i++) {
		const struct contents_stream *stream = &c->streams[i];

		begin_object(out, "WMRK");
		put_count(out, "stream", i);
		put_flag(out, "end_of_run", c->is_end);
		put_text(out, "format", wm_span_of(name_of_format(stream->format)));
		put_kind(out, "times", &stream->times);
		if (stream->has_arrival)
			put_kind(out, "arrival_times", &stream->arrival_times);
		put_flag(out, "began", stream->is_decided);
		put_flag(out, "carries_watermark", stream->has_band);
		put_flag(out, "follows_it", stream->follows_band);
		put_time(out, "watermark", stream->combine.watermark_us);
		put_time(out, "in_force", stream->watermark_us);
		put_time(out, "highest", stream->highest_us);
		put_flag(out, "batch_open", stream->trigger.is_open);
		put_count(out, "batch_rows", stream->trigger.rows);
		end_object(out);
		for (size_t j = 0; j < stream->combine.sources_count; j++)
			dump_source(c, i, j, out);
	}
}

static void
dump_positions(const struct contents *c, struct wm_buf *out)
{
	begin_object(out, "INPT");
	put_time(out, "forgotten_up_to", c->floor_us);
	put_count(out, "inputs", c->inputs_count);
	end_object(out);
	for (size_t i = 0; i < c->inputs_count; i++) {
		const struct sections_input *input = &c->inputs[i];
		struct wm_value source;
		struct wm_span value;
		struct wm_get in;

		begin_object(out, "INPT");
		put_text(out, "path", input->path);
		put_flag(out, "pipe", input->is_pipe);
		put_flag(out, "at_end", input->is_at_end);
		put_flag(out, "operand", input->is_operand);
		put_flag(out, "no_rows", input->has_no_rows);
		put_count(out, "place", input->place);
		put_count(out, "device", input->device);
		put_count(out, "inode", input->inode);
		put_time(out, "modified", input->modified_us);
		put_count(out, "offset", input->offset);
		put_count(out, "lines", input->lines);
		put_hash(out, "head_hash", input->head_hash);
		put_hash(out, "last_hash", input->last_hash);
		put_count(out, "read_bytes", input->read_bytes);
		put_count(out, "head_bytes", input->head.len);
		put_text(out, "tail", input->tail);
		put_text(out, "position", input->position);
		put_count(out, "layout_bytes", input->layout.len);
		end_object(out);
		wm_get_init(&in, input->positions);
		while (positions_next(&in, &source, &value)) {
			begin_object(out, "INPT");
			put_text(out, "path", input->path);
			put_text(out, "source", source.text);
			put_text(out, "position", value);
			end_object(out);
		}
	}
	begin_object(out, "OUTP");
	put_flag(out, "closed", c->is_closed);
	put_count(out, "outputs", c->outputs_count);
	end_object(out);
	for (size_t i = 0; i < c->outputs_count; i++) {
		const struct sections_output *output = &c->outputs[i];

		begin_object(out, "OUTP");
		put_text(out, "path", output->path);
		put_text(out, "option", output->option);
		put_count(out, "device", output->device);
		put_count(out, "inode", output->inode);
		put_count(out, "length", output->length);
		put_hash(out, "hash", output->hash);
		put_flag(out, "finished", output->is_finished);
		end_object(out);
	}
}

static void
put_int128(struct wm_buf *out, const char *name, wm_int128 value)
{
	char digits[40];
	size_t at = sizeof(digits);
	bool is_negative = value < 0;

	do {
		int digit = (int)(value % 10);

		digits[--at] = (char)('0' + (digit < 0 ? -digit : digit));
	} while ((value /= 10) != 0);
	wm_json_put_name(out, name);
	wm_buf_addf(out, "\"%s%.*s\"", is_negative ? "-" : "", (int)(sizeof(digits) - at), digits + at);
}

static void
dump_ledger(const struct contents *c, struct wm_buf *out)
{
	const struct report *ledger = &c->ledger;

	begin_object(out, "CNTR");
	report_put_ledger(ledger, out);
	put_count(out, "batches", ledger->batch_id);
	wm_json_put_name(out, "disorder_max_us");
	wm_buf_addf(out, "%" PRId64, ledger->disorder_max_us);
	wm_json_put_name(out, "disorder_used_max_us");
	wm_buf_addf(out, "%" PRId64, ledger->disorder_used_max_us);
	put_count(out, "times", ledger->times.count);
	put_time(out, "time_min", ledger->times.count == 0 ? WM_TIME_NONE : ledger->times.min_us);
	put_time(out, "time_max", ledger->times.count == 0 ? WM_TIME_NONE : ledger->times.max_us);
	put_int128(out, "time_sum_us", ledger->times.sum_us);
	end_object(out);
}

static void
put_key(struct wm_buf *out, const struct wm_value *keys, size_t count)
{
	wm_json_put_name(out, "key");
	wm_buf_add_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i != 0)
			wm_buf_add_byte(out, ',');
		wm_json_put_value(out, &keys[i]);
	}
	wm_buf_add_byte(out, ']');
}

static void
dump_window(const struct held *held, const struct wm_window_row *row, struct wm_buf *out)
{
	struct wm_buf text;

	begin_object(out, "STAT");
	put_time(out, "window_start", row->window_start_us);
	put_time(out, "window_end", row->window_end_us);
	put_key(out, row->keys, held->keys_count);
	put_count(out, "rows", wm_agg_cell_rows(held->agg, row->cell));
	wm_json_put_name(out, "results");
	wm_buf_add_byte(out, '{');
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < wm_agg_outputs_count(held->agg); i++) {
		wm_buf_reset(&text);
		enum wm_kind kind =
			wm_agg_cell_print(held->agg, row->cell, i, row->window_end_us - row->window_start_us, &text);
		struct wm_value value = { wm_buf_span(&text), kind };

		if (i != 0)
			wm_buf_add_byte(out, ',');
		wm_json_put_string(out, wm_agg_output_name(held->agg, i));
		wm_buf_add_byte(out, ':');
		wm_json_put_value(out, &value);
	}
	wm_buf_release(&text);
	wm_buf_add_byte(out, '}');
	end_object(out);
}

static void
dump_windows(struct contents *c, struct held *held, struct wm_buf *out)
{
	struct wm_window_row row;
	struct wm_err err;

	if (held->mode == WM_MODE_UPDATE && !held_turn_complete(c, held, &err))
		cli_die(&err);
	/* In complete everything is written at each advance but the last. */
	int64_t to_us = held->mode == WM_MODE_COMPLETE ? c->streams[0].watermark_us : WM_TIME_END;
	if (held->windowing != NULL) {
		wm_windowing_advance(held->windowing, to_us);
		while (wm_windowing_next(held->windowing, &row))
			if (!row.is_filler && row.cell != NULL)
				dump_window(held, &row, out);
	} else {
		wm_sessions_advance(held->sessions, to_us);
		while (wm_sessions_next(held->sessions, &row))
			if (row.cell != NULL)
				dump_window(held, &row, out);
	}
}

static void
dump_sorted(struct held *held, struct wm_buf *out)
{
	struct wm_sort_record record;

	wm_sort_advance(held->sort, WM_TIME_END);
	while (wm_sort_next(held->sort, &record)) {
		begin_object(out, "STAT");
		put_time(out, "time", record.event_time_us);
		put_count(out, "source", record.source);
		put_text(out, "record", record.bytes);
		end_object(out);
	}
}

static void
dump_keys(const struct held *held, struct wm_buf *out)
{
	struct wm_value keys[WM_KEYS_MAX];
	struct wm_dedup_walk walk = { 0 };
	int64_t until_us;

	while (wm_dedup_next(held->dedup, &walk, &until_us, keys)) {
		begin_object(out, "STAT");
		put_key(out, keys, held->keys_count);
		put_time(out, "until", until_us);
		end_object(out);
	}
}

/* What cmd/pairs keeps of a row, on either side; null where there is none. */
static void
put_kept(struct wm_buf *out, const char *name, struct wm_span bytes, bool is_there)
{
	wm_json_put_name(out, name);
	if (is_there)
		wm_json_put_string(out, wm_cut_content(pairs_kept(bytes).text));
	else
		wm_buf_add_text(out, "null");
}

static void
dump_joined(const struct held *held, struct wm_buf *out)
{
	static const char *const sides[] = { "left", "right" };
	struct wm_span columns[WM_KEYS_MAX];
	struct wm_value keys[WM_KEYS_MAX], stamps[2];
	struct wm_join_row row;
	struct wm_get waiting;

	for (enum wm_join_side side = 0; side < WM_JOIN_SIDES; side++) {
		struct wm_join_held *rows = wm_join_held(held->join, side);

		for (uint64_t i = 0; i < held_rows(held, side); i++) {
			begin_object(out, "STAT");
			put_text(out, "side", wm_span_of(sides[side]));
			put_time(out, "time", rows[i].time_us);
			if (rows[i].has_key)
				wm_join_unpack(held->join, rows[i].key, columns);
			for (size_t j = 0; rows[i].has_key && j < held->keys_count; j++)
				keys[j] = (struct wm_value){ columns[j], WM_KIND_TEXT };
			if (rows[i].has_key) {
				put_key(out, keys, held->keys_count);
			} else {
				wm_json_put_name(out, "key");
				wm_buf_add_text(out, "null");
			}
			put_flag(out, "matched", rows[i].is_matched);
			put_kept(out, "record", rows[i].bytes, true);
			end_object(out);
		}
		free(rows);
	}
	wm_get_init(&waiting, wm_buf_span(&held->waiting));
	while (pairs_next_waiting(&waiting, &row, stamps)) {
		begin_object(out, "STAT");
		put_kept(out, "left", row.bytes[WM_JOIN_LEFT], row.has[WM_JOIN_LEFT]);
		put_kept(out, "right", row.bytes[WM_JOIN_RIGHT], row.has[WM_JOIN_RIGHT]);
		end_object(out);
	}
}

/* A measure that has values, in microseconds. */
static void
put_series(struct wm_buf *out, const char *name, const struct wm_lag_series *series)
{
	if (series->count == 0)
		return;
	wm_json_put_name(out, name);
	wm_buf_addf(out,
		"{\"count\":%" PRIu64 ",\"zeros\":%" PRIu64 ",\"negative\":%" PRIu64 ",\"min_us\":%" PRId64
		",\"max_us\":%" PRId64,
		series->count, series->zeros, series->negative, series->min_us, series->max_us);
	put_int128(out, "sum_us", series->sum_us);
	put_flag(out, "sketched", wm_lag_is_approximate(series));
	wm_buf_add_byte(out, '}');
}

static void
dump_lags(struct contents *c, const struct held *held, struct wm_buf *out)
{
	static const char *const measures[WM_LAG_KINDS] = { "lag", "disorder", "behind", "dropped" };
	bool has_windows = contents_option(c, "--every") != NULL;
	struct wm_lag_group group;

	while (wm_lag_next(held->lag, &group)) {
		begin_object(out, "STAT");
		if (has_windows) {
			bool is_overdue = group.window_start_us == WM_LAG_NO_WINDOW;

			put_time(out, "window_start", is_overdue ? WM_TIME_NONE : group.window_start_us);
			put_time(out, "window_end", is_overdue ? WM_TIME_NONE : group.window_end_us);
		}
		put_key(out, group.keys, held->keys_count);
		put_count(out, "rows", group.count);
		put_time(out, "first", group.count == 0 ? WM_TIME_NONE : group.first_time_us);
		put_time(out, "last", group.count == 0 ? WM_TIME_NONE : group.last_time_us);
		for (size_t i = 0; i < WM_LAG_KINDS; i++)
			put_series(out, measures[i], &group.series[i]);
		end_object(out);
	}
}

/* So much of the state is hashed at once. */
#define STATE_PIECE_BYTES ((size_t)64 << 10)

static void
put_state_hash(struct contents *c, struct wm_buf *out)
{
	struct wm_hash_stream *hash = wm_hash_stream_new();
	struct wm_get in;
	struct wm_err err;

	wm_checkpoint_open_state(&c->file, &in);
	for (size_t left; (left = wm_get_left(&in)) != 0; wm_get_give_back(&in))
		wm_hash_stream_add(hash, wm_get_bytes(&in, left < STATE_PIECE_BYTES ? left : STATE_PIECE_BYTES));
	if (!wm_checkpoint_close_state(&c->file, &in, &err))
		cli_die(&err);
	put_hash(out, "hash", wm_hash_stream_value(hash));
	wm_hash_stream_free(hash);
}

static void
dump_state(struct contents *c, struct held *held, struct wm_buf *out)
{
	const struct wm_checkpoint_section *section = &c->file.sections[WM_CHECKPOINT_STAT];

	begin_object(out, "STAT");
	put_count(out, "version", section->version);
	put_count(out, "bytes", section->payload.len);
	put_state_hash(c, out);
	if (held->windowing != NULL)
		put_count(out, "windows", wm_windowing_open_count(held->windowing));
	else if (held->sessions != NULL)
		put_count(out, "sessions", wm_sessions_open_count(held->sessions));
	else if (held->sort != NULL)
		put_count(out, "rows", wm_sort_count(held->sort));
	else if (held->dedup != NULL)
		put_count(out, "keys", wm_dedup_counts(held->dedup).keys);
	else if (held->lag != NULL)
		put_count(out, "groups", wm_lag_groups_count(held->lag));
	if (held->join != NULL) {
		put_count(out, "left", held_rows(held, WM_JOIN_LEFT));
		put_count(out, "right", held_rows(held, WM_JOIN_RIGHT));
	}
	if (held->has_told)
		put_time(out, "watermark_told", held->told_us);
	end_object(out);
	if (held->windowing != NULL || held->sessions != NULL)
		dump_windows(c, held, out);
	else if (held->sort != NULL)
		dump_sorted(held, out);
	else if (held->dedup != NULL)
		dump_keys(held, out);
	else if (held->join != NULL)
		dump_joined(held, out);
	else if (held->lag != NULL)
		dump_lags(c, held, out);
}

/* ---- verify ---- */

static bool
is_there(const char *path)
{
	struct stat found;

	return stat(path, &found) == 0;
}

/* The way back from a damaged FILE, where there is one. */
static void
add_way_back(const char *path, struct wm_buf *out)
{
	static const char suffix[] = ".prev";
	char *prev = wm_checkpoint_beside(path, suffix);
	size_t len = strlen(path);
	bool is_prev = len > sizeof(suffix) - 1 && strcmp(path + len - (sizeof(suffix) - 1), suffix) == 0;
	struct contents c;
	struct wm_err err;

	if (!is_prev && is_there(prev)) {
		if (contents_load(&c, prev, &err)) {
			wm_buf_add_text(out, ": --resume prev goes back to ");
			add_shown(out, wm_span_of(prev));
			contents_release(&c);
		} else {
			wm_buf_add_text(out, ": so is ");
			add_shown(out, wm_span_of(prev));
			wm_buf_add_text(out, ": begin anew, from the first input and with another checkpoint");
		}
	} else if (is_prev) {
		wm_buf_add_text(out, ": it is only needed where the checkpoint itself is damaged");
	} else {
		wm_buf_add_text(out, ": there is none before it: begin anew, with another checkpoint");
	}
	free(prev);
}

static bool
verify(const char *path, struct wm_buf *out)
{
	struct contents c;
	struct held held;
	struct wm_err err;
	struct wm_buf text;
	bool is_whole = contents_load(&c, path, &err);

	if (is_whole) {
		is_whole = held_open(&c, &held, &err);
		if (is_whole) {
			add_shown(out, wm_span_of(path));
			wm_buf_addf(
				out, ": whole: %s, generation %" PRIu64 ", written ", c.file.tool, c.file.generation);
			add_time(out, c.file.written_at_us);
			wm_buf_add_byte(out, '\n');
			held_close(&held);
		}
		contents_release(&c);
	}
	if (is_whole)
		return true;
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	/* What is newer, or no checkpoint at all, or cannot be read has no other way. */
	if (strstr(err.message, "damaged") != NULL)
		add_way_back(path, &text);
	cli_warn("%s%.*s", err.message, (int)text.len, text.data);
	wm_buf_release(&text);
	return false;
}

/* ---- position ---- */

static void
add_input_name(struct wm_buf *out, const struct sections_input *input)
{
	if (input->path.len == 0)
		wm_buf_add_byte(out, '-');
	else
		add_shown(out, input->path);
}

/* Whether an input is what somebody calls name: as it stands in the file, where that leads, or standard input. */
static bool
is_called(const struct sections_input *input, const char *name)
{
	char *path = realpath(name, NULL);
	bool is_same = wm_span_is(input->path, name) || (path != NULL && wm_span_is(input->path, path)) ||
		(strcmp(name, "-") == 0 && input->is_pipe);

	free(path);
	return is_same;
}

/* The position of a source in an input; false: it has none. */
static bool
find_position(const struct sections_input *input, const char *source, struct wm_span *value)
{
	struct wm_value each;
	struct wm_get in;

	wm_get_init(&in, input->positions);
	while (positions_next(&in, &each, value))
		if (wm_span_is(each.text, source))
			return true;
	return false;
}

/* The names of an input's sources, for a message; returns how many there are. */
static size_t
add_sources(const struct sections_input *input, struct wm_buf *out)
{
	struct wm_value each;
	struct wm_span value;
	struct wm_get in;
	size_t count = 0;

	wm_get_init(&in, input->positions);
	while (positions_next(&in, &each, &value)) {
		wm_buf_add_text(out, count++ == 0 ? "" : ", ");
		add_shown(out, each.text);
	}
	return count;
}

/* Where one input has the position of a source; false: none has. */
static bool
source_position(const struct contents *c, const char *source, struct wm_buf *out)
{
	struct wm_span value = wm_span("", 0), other;
	size_t count = 0;

	for (size_t i = 0; i < c->inputs_count; i++)
		if (c->inputs[i].is_operand && find_position(&c->inputs[i], source, &other)) {
			value = other;
			count++;
		}
	if (count > 1)
		cli_misuse("position: %zu inputs of %s have the source '%s': write position FILE INPUT SOURCE", count,
			c->path, source);
	wm_buf_add(out, value.data, value.len);
	return count == 1;
}

/* name: an input, or a source where there is one input that has it; source: of that input. */
static bool
position(struct contents *c, const char *name, const char *source, struct wm_buf *out, struct wm_err *err)
{
	const struct sections_input *found = NULL;
	struct wm_span value;
	struct wm_buf names;
	size_t count = 0;

	if (name != NULL && source == NULL && source_position(c, name, out)) {
		wm_buf_add_byte(out, '\n');
		return true;
	}
	wm_buf_init(&names, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < c->inputs_count; i++) {
		const struct sections_input *input = &c->inputs[i];

		/* Those of the last run, unless another is asked for. */
		if (name == NULL ? !input->is_operand : !is_called(input, name))
			continue;
		wm_buf_add_text(&names, count++ == 0 ? "" : ", ");
		add_input_name(&names, input);
		found = input;
	}
	if (count == 0 && name != NULL)
		cli_misuse("position: '%s' is no input of %s%s: see wm-checkpoint show", name, c->path,
			contents_option(c, "--source") == NULL ? "" : ", and no source that has come");
	if (count > 1)
		cli_misuse("position: %s has %zu inputs: name one of %.*s", c->path, count, (int)names.len, names.data);
	wm_buf_reset(&names);
	size_t sources_count = found == NULL ? 0 : add_sources(found, &names);
	if (source != NULL && (found == NULL || !find_position(found, source, &value)))
		cli_misuse("position: '%s' is no source of %s: see wm-checkpoint show", source, name);
	if (source == NULL && sources_count != 0)
		cli_misuse("position: %s has %zu source%s: name one of %.*s", c->path, sources_count,
			plural(sources_count), (int)names.len, names.data);
	wm_buf_release(&names);
	if (source != NULL) {
		wm_buf_add(out, value.data, value.len);
		wm_buf_add_byte(out, '\n');
		return true;
	}
	if (found == NULL || (found->is_pipe && found->position.len == 0 && found->offset == 0))
		return wm_err_set(
			err, WM_ERR_DATA, "%s: nothing was read yet: there is no position to go on from", c->path);
	if (found->position.len != 0)
		wm_buf_add(out, found->position.data, found->position.len);
	else
		wm_buf_addf(out, "%" PRIu64, found->offset);
	wm_buf_add_byte(out, '\n');
	return true;
}

/* ---- why ---- */

/* The least event time that brings a watermark to target_us, which moves in whole milliseconds. */
static int64_t
needed_us(int64_t target_us, int64_t delay_us)
{
	int64_t rest_us = target_us % 1000;

	if (rest_us < 0)
		rest_us += 1000;
	return wm_time_add(rest_us == 0 ? target_us : wm_time_add(target_us, 1000 - rest_us), delay_us);
}

/* The sources of a stream, for qsort: the one furthest behind first. */
static int
by_watermark(const void *a, const void *b)
{
	const struct wm_source *one = *(const struct wm_source *const *)a;
	const struct wm_source *other = *(const struct wm_source *const *)b;

	if (one->own.watermark_us != other->own.watermark_us)
		return one->own.watermark_us < other->own.watermark_us ? -1 : 1;
	return one < other ? -1 : one > other;
}

static void
why_source(
	const struct contents *c, size_t number, const struct wm_source *source, int64_t target_us, struct wm_buf *out)
{
	const struct contents_stream *stream = &c->streams[number];

	add_source(out, c, number, (size_t)(source - stream->combine.sources));
	/* What it takes is compared with what came: an event time with the highest one, a watermark with that. */
	if (!stream->has_delay) {
		wm_buf_add_text(out, " has a watermark of ");
		add_time(out, source->own.watermark_us);
		wm_buf_add_text(out, ": it takes a row that carries a watermark of ");
		add_time(out, target_us);
	} else {
		wm_buf_add_text(out, " is at ");
		add_time(out, source->own.highest_time_us);
		wm_buf_add_text(out, ", its watermark at ");
		add_time(out, source->own.watermark_us);
		wm_buf_add_text(out, ": it takes a row of ");
		add_time(out, needed_us(target_us, source->own.delay_us));
	}
	wm_buf_add_text(out, " or later\n");
}

/* Which sources hold a watermark below target_us. */
static void
why_stream(const struct contents *c, size_t number, int64_t target_us, struct wm_buf *out)
{
	const struct contents_stream *stream = &c->streams[number];
	const struct wm_combine *combine = &stream->combine;
	size_t count = 0;

	if (combine->watermark_us >= target_us)
		return;
	if (!stream->has_delay && !stream->follows_band) {
		wm_buf_add_text(out, "there is no watermark: the end of the input alone closes it\n");
		return;
	}
	const struct wm_source **behind = wm_calloc(combine->sources_count + 1, sizeof(behind[0]));
	for (size_t i = 0; i < combine->sources_count; i++)
		if (takes_part(stream, i) && combine->sources[i].own.watermark_us < target_us)
			behind[count++] = &combine->sources[i];
	qsort(behind, count, sizeof(behind[0]), by_watermark);
	if (count == 0)
		wm_buf_add_text(out, "no source takes part: all have ended or are idle, until one has a row\n");
	if (count != 0 && c->common.policy == WM_POLICY_MAX) {
		wm_buf_add_text(out, "one source is enough (--policy max): ");
		why_source(c, number, behind[count - 1], target_us, out);
		count = 0;
	}
	for (size_t i = 0; i < count && i < WHY_SOURCES_MAX; i++)
		why_source(c, number, behind[i], target_us, out);
	if (count > WHY_SOURCES_MAX)
		wm_buf_addf(out, "and %zu more sources\n", count - WHY_SOURCES_MAX);
	free(behind);
}

static void
why_target(const struct contents *c, int64_t target_us, struct wm_buf *out)
{
	int64_t watermark_us = combined_us(c);

	wm_buf_add_text(out, "the watermark is ");
	add_time(out, watermark_us);
	if (c->is_closed)
		wm_buf_add_text(out, ", and the run that ended closed everything: it is closed\n");
	else if (watermark_us >= target_us)
		wm_buf_add_text(out, ": it is closed\n");
	else
		wm_buf_add_text(out, ": it is open\n");
	if (c->is_closed || watermark_us >= target_us)
		return;
	for (size_t i = 0; i < c->streams_count; i++)
		why_stream(c, i, target_us, out);
	if (c->common.trigger != NULL && strcmp(c->common.trigger, "each") != 0) {
		wm_buf_add_text(out, "and the end of its batch (--trigger ");
		add_shown(out, wm_span_of(c->common.trigger));
		wm_buf_add_text(out, ")\n");
	}
}

static void
why_lateness(struct contents *c, int64_t end_us, struct wm_buf *out)
{
	const char *text = contents_option(c, "--allowed-lateness");
	struct wm_err err;
	int64_t lateness_us;

	if (text == NULL || !wm_duration_parse_fixed(wm_span_of(text), &lateness_us, &err) || lateness_us <= 0)
		return;
	wm_buf_add_text(out, "it takes late rows until the watermark is ");
	add_time(out, wm_time_add(end_us, lateness_us));
	wm_buf_add_byte(out, '\n');
}

static bool
why_windows(struct contents *c, const struct wm_windows *windows, int64_t time_us, struct wm_buf *out)
{
	struct wm_slice slice;

	wm_windows_slice(windows, time_us, &slice);
	for (int64_t number = slice.window_first;; number = slice.window_last) {
		int64_t end_us = wm_window_end_us(windows, number);

		if (number != slice.window_first)
			wm_buf_addf(
				out, "the last of %" PRId64 " windows: ", slice.window_last - slice.window_first + 1);
		else if (slice.window_first != slice.window_last)
			wm_buf_add_text(out, "the first of them: ");
		wm_buf_add_text(out, "window ");
		add_time(out, wm_window_start_us(windows, number));
		wm_buf_add_text(out, " to ");
		add_time(out, end_us);
		wm_buf_add_text(out, ": closed by a watermark of its end\n");
		why_target(c, end_us, out);
		why_lateness(c, end_us, out);
		if (number == slice.window_last)
			return true;
	}
}

static bool
why_session(struct contents *c, const char *text, int64_t time_us, struct wm_buf *out, struct wm_err *err)
{
	struct wm_err unused;
	int64_t gap_us;

	if (strncmp(text, "column:", 7) == 0)
		return wm_err_set(
			err, WM_ERR_USAGE, "why: each row of %s has a gap of its own: dump has its sessions", c->path);
	if (!windows_read_length("--session", wm_span_of(text), &gap_us, &unused))
		return held_fail_options(c, err);
	int64_t end_us = wm_time_add(time_us, gap_us);
	wm_buf_add_text(out, "a session whose last row is of ");
	add_time(out, time_us);
	wm_buf_add_text(out, " ends at ");
	add_time(out, end_us);
	wm_buf_add_text(out, ": closed by a watermark of its end\n");
	why_target(c, end_us, out);
	why_lateness(c, end_us, out);
	return true;
}

static bool
why(struct contents *c, const char *text, struct wm_buf *out, struct wm_err *err)
{
	const struct wm_zone *zone = c->common.zone == NULL ? wm_zone_utc() : c->common.zone;
	struct wm_instant_parser *parser =
		wm_instant_parser_new(wm_span_of("auto"), zone, WM_REPEATED_EARLIER, NULL, err);
	const char *session = strcmp(c->file.tool, "wm-window") == 0 ? contents_option(c, "--session") : NULL;
	struct wm_windows windows;
	const char *reason;
	bool has_windows;
	int64_t time_us;

	if (parser == NULL)
		return false;
	bool is_time = wm_instant_parse(parser, wm_span_of(text), &time_us, &reason);
	if (wm_instant_parser_is_refused(parser))
		reason = "could be a date or a number: write it as 2025-11-29";
	wm_instant_parser_free(parser);
	if (!is_time)
		return wm_err_set(err, WM_ERR_USAGE, "why: '%s': %s", text, reason);
	if (!held_windows(c, &windows, &has_windows, err))
		return false;
	if (has_windows)
		return why_windows(c, &windows, time_us, out);
	if (session != NULL)
		return why_session(c, session, time_us, out, err);
	wm_buf_addf(out, "%s has no windows: a row of ", c->file.tool);
	add_time(out, time_us);
	wm_buf_add_text(out, " is behind a watermark above it\n");
	why_target(c, time_us, out);
	return true;
}

/* ---- commands ---- */

enum command { SHOW, VERIFY, DUMP, WATERMARK, POSITION, WHY, COMMANDS };

static const struct {
	const char *name;
	const char *operands;
	size_t least;
	size_t most;
} commands[COMMANDS] = {
	[SHOW] = { "show", "FILE", 1, 1 },
	[VERIFY] = { "verify", "FILE...", 1, SIZE_MAX },
	[DUMP] = { "dump", "FILE", 1, 1 },
	[WATERMARK] = { "watermark", "FILE", 1, 1 },
	[POSITION] = { "position", "FILE [INPUT] [SOURCE]", 1, 3 },
	[WHY] = { "why", "FILE TIME", 2, 2 },
};

static enum command
command_of(const struct cli_common *common)
{
	static const char list[] = "show, verify, dump, watermark, position, why";
	struct wm_near near;
	struct wm_buf text;

	if (common->files_count == 0)
		cli_misuse("say what to do: %s", list);
	near = wm_near_to(wm_span_of(common->files[0]));
	for (enum command i = 0; i < COMMANDS; i++) {
		size_t count = common->files_count - 1;

		wm_near_try(&near, wm_span_of(commands[i].name));
		if (strcmp(common->files[0], commands[i].name) != 0)
			continue;
		if (count < commands[i].least || count > commands[i].most)
			cli_misuse("%s: write wm-checkpoint %s %s", commands[i].name, commands[i].name,
				commands[i].operands);
		return i;
	}
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	add_shown(&text, wm_span_of(common->files[0]));
	wm_buf_add_text(&text, "': ");
	if (near.best.data != NULL)
		wm_buf_addf(&text, "did you mean %.*s? ", (int)near.best.len, near.best.data);
	cli_misuse("no command '%.*sthere are %s", (int)text.len, text.data, list);
}

/* Show and dump have the state too. */
static void
tell_all(enum command command, struct contents *c, struct wm_buf *out)
{
	struct held held;
	struct wm_err err;

	if (!held_open(c, &held, &err))
		cli_die(&err);
	if (command == SHOW) {
		show(c, out, &held);
	} else {
		dump_options(c, out);
		dump_watermarks(c, out);
		dump_positions(c, out);
		dump_ledger(c, out);
		dump_state(c, &held, out);
	}
	held_close(&held);
}

static void
tell(enum command command, const struct cli_common *common, struct wm_buf *out)
{
	struct contents c;
	struct wm_err err;

	if (!contents_load(&c, common->files[1], &err))
		cli_die(&err);
	if (command == SHOW || command == DUMP) {
		tell_all(command, &c, out);
	} else if (command == WATERMARK) {
		add_time(out, combined_us(&c));
		wm_buf_add_byte(out, '\n');
	} else if (command == POSITION ? !position(&c, common->files_count > 2 ? common->files[2] : NULL,
						 common->files_count > 3 ? common->files[3] : NULL, out, &err)
				       : !why(&c, common->files[2], out, &err)) {
		cli_die(&err);
	}
	contents_release(&c);
}

int
main(int argc, char **argv)
{
	struct options opt = { 0 };
	bool are_whole = true;
	struct wm_buf out;

	outputs_guard_descriptors();
	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	enum command command = command_of(&opt.common);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	if (command == VERIFY) {
		for (size_t i = 1; i < opt.common.files_count; i++)
			are_whole = verify(opt.common.files[i], &out) && are_whole;
	} else {
		tell(command, &opt.common, &out);
	}
	cli_release(&opt.common);
	cli_write(&out);
	return are_whole ? CLI_DONE : CLI_IO;
}
