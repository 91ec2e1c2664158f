/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/keep.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"

/* A commit takes one part in so many of the time, at most. */
#define SHARE_OF_TIME 20

struct keep {
	const struct cli_common *common;
	const struct keep_options *own;
	struct keep_options options; /* the common ones, and those of the tool */
	struct keep_stream streams[KEEP_STREAMS_MAX];
	size_t streams_count;
	struct outputs *outputs;
	const struct report *report;
	const struct report *before;
	const struct keep_state *state;
	struct resume *resume;
	size_t *numbers; /* of the outputs in resume; SIZE_MAX: not asked for */
	size_t outputs_count;
	uint64_t due_row;
	int64_t due_us;
};

/* Options */

static void
add_option(struct keep_options *options, const struct resume_option *option)
{
	options->options = wm_reallocarray(options->options, options->count + 1, sizeof(options->options[0]));
	options->options[options->count] = *option;
	options->options[options->count++].value = wm_memdup(option->value, strlen(option->value));
}

void
keep_option(struct keep_options *options, const char *name, const char *value)
{
	if (value != NULL)
		add_option(options, &(struct resume_option){ .name = name, .value = value });
}

void
keep_option_flag(struct keep_options *options, const char *name, bool is_given)
{
	keep_option(options, name, is_given ? "" : NULL);
}

void
keep_option_us(struct keep_options *options, const char *name, int64_t duration_us)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_duration_print(duration_us, &text);
	wm_buf_add_byte(&text, '\0');
	keep_option(options, name, text.data);
	wm_buf_release(&text);
}

void
keep_option_duration(struct keep_options *options, const char *name, const struct cli_duration *duration)
{
	if (duration->text != NULL)
		keep_option_us(options, name, duration->us);
}

void
keep_option_durations(struct keep_options *options, const char *name, const char *list)
{
	struct wm_duration duration;
	struct wm_span rest, part;
	struct wm_buf text;
	struct wm_err err;

	if (list == NULL)
		return;
	rest = wm_span_of(list);
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	while (wm_list_next(&rest, ',', &part)) {
		if (text.len != 0)
			wm_buf_add_byte(&text, ',');
		if (!wm_duration_parse(part, &duration, &err))
			wm_buf_add(&text, part.data, part.len);
		else if (duration.calendar == WM_CALENDAR_NONE)
			wm_duration_print(duration.us, &text);
		else
			wm_buf_addf(&text, "%" PRId64 "%s", duration.calendar_count,
				duration.calendar == WM_CALENDAR_DAY             ? "d"
					: duration.calendar == WM_CALENDAR_WEEK  ? "w"
					: duration.calendar == WM_CALENDAR_MONTH ? "mo"
										 : "y");
	}
	wm_buf_add_byte(&text, '\0');
	keep_option(options, name, text.data);
	wm_buf_release(&text);
}

void
keep_options_release(struct keep_options *options)
{
	for (size_t i = 0; i < options->count; i++)
		free((char *)(uintptr_t)options->options[i].value);
	free(options->options);
	*options = (struct keep_options){ 0 };
}

static void
add_delay(struct keep_options *options, const struct cli_common *common)
{
	const struct cli_delay *delay = &common->delay;
	struct wm_span rest = delay->others == NULL ? wm_span(NULL, 0) : wm_span_of(delay->others), name;
	struct wm_buf text;
	int64_t own_us;

	if (delay->text == NULL)
		return;
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_duration_print(delay->us, &text);
	wm_buf_add_byte(&text, '\0');
	add_option(options,
		&(struct resume_option){
			.name = "--delay", .value = text.data, .may_rise = true, .amount = delay->us });
	wm_buf_reset(&text);
	while (cli_next_source_delay(&rest, &name, &own_us)) {
		wm_buf_addf(&text, "%s%.*s=", text.len == 0 ? "" : ",", (int)name.len, name.data);
		wm_duration_print(own_us, &text);
	}
	if (text.len != 0) {
		wm_buf_add_byte(&text, '\0');
		keep_option(options, "-w of sources", text.data);
	}
	wm_buf_release(&text);
}

static void
add_trigger(struct keep_options *options, const struct cli_common *common)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	switch (common->trigger_word) {
	case CLI_TRIGGER_EACH:
		wm_buf_add_text(&text, "each");
		break;
	case CLI_TRIGGER_ROWS:
		wm_buf_addf(&text, "%" PRIu64 "rows", common->trigger_rows);
		break;
	case CLI_TRIGGER_EVENT:
	case CLI_TRIGGER_WALL:
		wm_buf_add_text(&text, common->trigger_word == CLI_TRIGGER_EVENT ? "event:" : "wall:");
		wm_duration_print(common->trigger_period_us, &text);
		break;
	case CLI_TRIGGER_COLUMN:
		wm_buf_addf(&text, "column:%s", common->trigger_column);
		break;
	case CLI_TRIGGER_FILE:
		wm_buf_add_text(&text, "file");
		break;
	case CLI_TRIGGER_EOF:
		wm_buf_add_text(&text, "eof");
		break;
	}
	wm_buf_add_byte(&text, '\0');
	keep_option(options, "--trigger", text.data);
	wm_buf_release(&text);
}

/* In one spelling for one meaning: in order, each text once. */
static void
add_nulls(struct keep_options *options, const struct cli_common *common)
{
	struct wm_buf text;

	if (common->null == NULL)
		return;
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_nulls_print(&common->nulls, &text);
	wm_buf_add_byte(&text, '\0');
	keep_option(options, "--null", text.data);
	keep_option_flag(options, "--null-quoted", common->null_quoted);
	wm_buf_release(&text);
}

/* Which columns there are, what a time is, and whose watermark moves how: not how anything looks, or where it goes. */
static void
add_common(struct keep_options *options, const struct cli_common *common)
{
	keep_option(options, "--columns", common->columns);
	keep_option_flag(options, "--no-header", common->no_header);
	keep_option(options, "--tsv-escapes", common->tsv_escapes == CLI_TSV_NONE ? "none" : NULL);
	keep_option(options, "--pattern", common->pattern);
	add_nulls(options, common);
	keep_option_flag(options, "--merge", common->merge);
	keep_option(options, "--time", common->time_column);
	keep_option(options, "--time-format", common->time_format == NULL ? "auto" : common->time_format);
	keep_option(options, "--tz", common->tz == NULL ? "UTC" : common->tz);
	keep_option(options, "--time-reference", common->time_reference);
	keep_option(options, "--repeated-hour", common->repeated_hour == WM_REPEATED_LATER ? "later" : "earlier");
	add_delay(options, common);
	keep_option(options, "--watermark-column", common->watermark_column);
	keep_option(options, "--source", common->source_column);
	keep_option(options, "--sources", common->sources);
	keep_option(options, "--policy", common->policy == WM_POLICY_MAX ? "max" : "min");
	keep_option_duration(options, "--idle", &common->idle);
	keep_option_duration(options, "--max-jump", &common->max_jump);
	add_trigger(options, common);
	keep_option(options, "--compat", common->compat);
}

struct keep *
keep_open(const struct cli_common *common, const struct keep_options *own)
{
	if (common->checkpoint == NULL)
		return NULL;
	struct keep *keep = wm_calloc(1, sizeof(*keep));
	keep->common = common;
	keep->own = own;
	return keep;
}

void
keep_add_stream(struct keep *keep, const struct keep_stream *stream)
{
	assert(keep->streams_count < KEEP_STREAMS_MAX);
	keep->streams[keep->streams_count++] = *stream;
}

/* That of this process, from its beginning to its close. */
static struct keep *begun;

void
keep_close(struct keep *keep)
{
	if (keep == NULL)
		return;
	begun = NULL;
	resume_close(keep->resume);
	keep_options_release(&keep->options);
	free(keep->numbers);
	free(keep);
}

/* Sections */

/*
 * Of each stream: layout (inputs.c) · flag decided · band (band.c) · columns of the result (passing.c) · i64 highest time · i64 watermark ·
 * flag punctuated · batch (trigger.c) · sources (sources.c).
 */
static void
encode_stream(const struct keep_stream *stream, struct wm_buf *out)
{
	inputs_encode_layout(stream->inputs, out);
	wm_put_u8(out, *stream->is_decided);
	band_encode(stream->band, out);
	wm_put_u8(out, stream->passing != NULL);
	if (stream->passing != NULL)
		passing_encode(stream->passing, out);
	wm_put_i64(out, *stream->highest_us);
	wm_put_i64(out, *stream->watermark_us);
	wm_put_u8(out, *stream->is_punctuated);
	wm_trigger_encode(stream->trigger, out);
	sources_encode(stream->sources, out);
}

static bool
decode_stream(const struct keep_stream *stream, struct wm_get *in)
{
	if (!inputs_decode_layout(stream->inputs, in))
		return false;
	*stream->is_decided = wm_get_u8(in) != 0;
	if (!band_decode(stream->band, inputs_layout(stream->inputs), in))
		return false;
	bool has_passing = wm_get_u8(in) != 0;
	if (in->failed || has_passing != (stream->passing != NULL) ||
		(has_passing && !passing_decode(stream->passing, in)))
		return false;
	*stream->highest_us = wm_get_i64(in);
	*stream->watermark_us = wm_get_i64(in);
	*stream->is_punctuated = wm_get_u8(in) != 0;
	/* It is an event time, and others are taken from it. */
	if (*stream->highest_us != WM_TIME_NONE &&
		(*stream->highest_us < -WM_DURATION_US_MAX || *stream->highest_us > WM_DURATION_US_MAX))
		return false;
	return wm_trigger_decode(stream->trigger, in) && sources_decode(stream->sources, in);
}

/* flag written at the end of a run · varint streams, each as above. */
static void
encode_watermarks(const struct keep *keep, bool is_last, struct wm_buf *out)
{
	wm_put_u8(out, is_last);
	wm_put_varint(out, keep->streams_count);
	for (size_t i = 0; i < keep->streams_count; i++)
		encode_stream(&keep->streams[i], out);
}

static bool
decode_watermarks(struct keep *keep, bool *was_last, struct wm_get *in)
{
	*was_last = wm_get_u8(in) != 0;
	if (wm_get_varint(in) != keep->streams_count)
		return false;
	for (size_t i = 0; i < keep->streams_count; i++)
		if (!decode_stream(&keep->streams[i], in))
			return false;
	return true;
}

/* What auto has found out about times: of each stream, that of the event times, of the arrival times if they are asked for. */
static void
encode_found(const struct keep *keep, struct wm_buf *out)
{
	for (size_t i = 0; i < keep->streams_count; i++) {
		const struct keep_stream *stream = &keep->streams[i];

		wm_instant_parser_encode(stream->time_parser, out);
		wm_put_u8(out, stream->ingest_parser != NULL);
		if (stream->ingest_parser != NULL)
			wm_instant_parser_encode(stream->ingest_parser, out);
	}
}

static bool
decode_found(struct keep *keep, struct wm_get *in)
{
	for (size_t i = 0; i < keep->streams_count; i++) {
		const struct keep_stream *stream = &keep->streams[i];

		if (!wm_instant_parser_decode(stream->time_parser, in))
			return false;
		if (wm_get_u8(in) == 0)
			continue;
		/* Arrival times may be asked for in one run and not in the other. */
		if (stream->ingest_parser == NULL ? !wm_instant_parser_pass(in)
						  : !wm_instant_parser_decode(stream->ingest_parser, in))
			return false;
	}
	return true;
}

/* Opens a section that a module decodes, which then says whether it did. */
static void
open_section(const struct keep *keep, enum wm_checkpoint_part part, uint32_t version, struct wm_get *in)
{
	struct wm_err err;

	if (!sections_open(resume_loaded(keep->resume), part, version, keep->common->checkpoint, in, &err))
		cli_die(&err);
}

static void
close_section(const struct keep *keep, enum wm_checkpoint_part part, bool is_decoded, struct wm_get *in)
{
	struct wm_err err;

	if (sections_close(resume_loaded(keep->resume), part, keep->common->checkpoint, is_decoded, in, &err))
		return;
	resume_name_way_back(keep->resume, &err);
	cli_die(&err);
}

/* Whether something that came from the fields of records is kept: an operator's keys and values, names of sources. */
static bool
holds_texts(const struct keep *keep, const struct keep_stream *stream)
{
	const struct keep_state *state = keep->state;

	return (state != NULL && state->holds_texts != NULL && state->holds_texts(state->self)) ||
		(keep->common->source_column != NULL && stream->sources->combine.sources_count > 0);
}

/* Texts that were read from TSV when it had quotes would not be equal to those that are read now. */
static void
check_texts(const struct keep *keep)
{
	struct wm_err err;

	for (size_t i = 0; i < keep->streams_count; i++) {
		const struct keep_stream *stream = &keep->streams[i];

		if (!wm_reader_had_quotes(inputs_layout(stream->inputs)) || !holds_texts(keep, stream))
			continue;
		(void)wm_err_set(&err, WM_ERR_IO,
			"%s: holds texts of TSV from when that had quotes, which are letters now: read on with -i csv "
			"-d "
			"'\\t', as it was read then, or name another checkpoint",
			keep->common->checkpoint);
		cli_die(&err);
	}
}

static void
decode_state(struct keep *keep)
{
	uint32_t version = keep->state == NULL ? KEEP_STATE_ANEW : keep->state->version;
	bool is_anew = resume_loaded(keep->resume)->sections[WM_CHECKPOINT_STAT].version == KEEP_STATE_ANEW;
	struct wm_get in;

	open_section(keep, WM_CHECKPOINT_STAT, version, &in);
	close_section(keep, WM_CHECKPOINT_STAT, is_anew || keep->state->decode(keep->state->self, &in), &in);
	check_texts(keep);
}

/*
 * FILEs side by side that were finished in an earlier run and have not grown hold nothing back; those that have take part. A run that was killed
 * goes on with what it had begun with.
 */
static void
settle_sources(const struct keep_stream *stream, bool was_last)
{
	struct wm_combine *combine = &stream->sources->combine;

	for (size_t i = 0; i < combine->sources_count && stream->sources->files != NULL; i++) {
		bool is_done = inputs_is_done(stream->inputs, i);

		if (!is_done)
			wm_combine_begin(combine, i);
		else if (was_last)
			(void)!wm_combine_end(combine, i);
	}
}

static void
decode_sections(struct keep *keep, struct report *before, int64_t steady_us)
{
	bool was_last;
	struct wm_get in;

	wm_get_init(&in, resume_found(keep->resume));
	close_section(keep, WM_CHECKPOINT_OPTS, decode_found(keep, &in), &in);
	open_section(keep, WM_CHECKPOINT_WMRK, KEEP_SECTION_VERSION, &in);
	close_section(keep, WM_CHECKPOINT_WMRK, decode_watermarks(keep, &was_last, &in), &in);
	open_section(keep, WM_CHECKPOINT_CNTR, KEEP_SECTION_VERSION, &in);
	close_section(keep, WM_CHECKPOINT_CNTR, report_decode(before, &in), &in);
	decode_state(keep);
	for (size_t i = 0; i < keep->streams_count; i++) {
		settle_sources(&keep->streams[i], was_last);
		/* A batch by the clock begins anew. */
		keep->streams[i].trigger->began_us = steady_us;
	}
}

/* Beginning */

static void
open_resume(struct keep *keep)
{
	const struct cli_common *common = keep->common;
	struct wm_err err;

	add_common(&keep->options, common);
	for (size_t i = 0; keep->own != NULL && i < keep->own->count; i++)
		add_option(&keep->options, &keep->own->options[i]);
	const struct resume_setup setup = {
		.calls = &wm_checkpoint_system,
		.tool = cli_tool_name(),
		.path = common->checkpoint,
		.mode = (enum resume_mode)common->resume,
		.new_output = common->new_output,
		.writes_anew = keep->state != NULL && keep->state->writes_anew,
		.file_age_max_us = common->max_file_age.us,
		.state_bytes_max = common->state_bytes_max == 0 ? UINT64_MAX : common->state_bytes_max,
		.options = keep->options.options,
		.options_count = keep->options.count,
	};
	keep->resume = resume_open(&setup, &err);
	if (keep->resume == NULL)
		cli_die(&err);
}

static void
tell_outputs(struct keep *keep)
{
	const char *option;
	int fd;

	for (size_t i = 0; (option = outputs_option(keep->outputs, i, &fd)) != NULL; i++) {
		keep->numbers = wm_reallocarray(keep->numbers, i + 1, sizeof(keep->numbers[0]));
		keep->numbers[i] = fd == -1 ? SIZE_MAX : resume_add_output(keep->resume, option, fd);
		keep->outputs_count = i + 1;
	}
}

static void
say_pipe(const struct cli_common *common)
{
	struct stat found;

	if (common->out_path != NULL || common->quiet || fstat(STDOUT_FILENO, &found) == -1 ||
		!(S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode)))
		return;
	cli_warn("-C: standard output is a pipe: the checkpoint says that results were handed to it, not that they "
		 "arrived: give -C to the last tool of a pipeline alone");
}

/* A pipe that ends at once has nothing new either. */
static bool
has_new_input(const struct keep *keep)
{
	char byte;
	struct stat found;

	if (!resume_has_new_input(keep->resume))
		return false;
	bool is_pipe_alone =
		keep->common->files_count == 0 && fstat(STDIN_FILENO, &found) == 0 && S_ISFIFO(found.st_mode);
	return !is_pipe_alone || read(STDIN_FILENO, &byte, 1) > 0;
}

/* The run before has written all of its state: there is nothing to add to. */
static _Noreturn void
end_closed(const struct keep *keep)
{
	const char *path = keep->common->checkpoint;
	struct wm_err err;

	if (has_new_input(keep)) {
		(void)wm_err_set(&err, WM_ERR_IO,
			"%s: is closed: all was written at the end of the run before (--eof flush), and new rows "
			"cannot be "
			"added to it: name another checkpoint; --eof hold keeps one open",
			path);
		cli_die(&err);
	}
	if (keep->common->quiet)
		exit(CLI_DONE);
	cli_done("%s: is closed, and there is no new input: nothing was done", path);
}

static void
set_lengths(struct keep *keep)
{
	for (size_t i = 0; i < keep->outputs_count; i++)
		if (keep->numbers[i] != SIZE_MAX)
			outputs_begin_at(keep->outputs, i, resume_output_length(keep->resume, keep->numbers[i]));
}

/* A run that is refused leaves nothing, also where only its first record shows that. */
static void
withdraw(int status, void *unused)
{
	(void)unused;
	if (begun != NULL && status == CLI_MISUSE)
		resume_withdraw(begun->resume);
}

void
keep_begin(struct keep *keep, struct outputs *outputs, const struct report *report, struct report *before,
	const struct keep_state *state, int64_t wall_us, int64_t steady_us)
{
	const char *note;
	struct wm_err err;

	keep->outputs = outputs;
	keep->report = report;
	keep->before = before;
	keep->state = state;
	open_resume(keep);
	begun = keep;
	on_exit(withdraw, NULL);
	for (size_t i = 0; i < keep->streams_count; i++)
		inputs_tell_operands(keep->streams[i].inputs, keep->resume);
	outputs_start(outputs);
	tell_outputs(keep);
	if (!resume_decide(keep->resume, &err))
		cli_die(&err);
	for (size_t i = 0; (note = resume_note(keep->resume, i)) != NULL; i++)
		if (!keep->common->quiet)
			cli_warn("%s", note);
	if (resume_is_closed(keep->resume))
		end_closed(keep);
	say_pipe(keep->common);
	if (!resume_is_fresh(keep->resume))
		decode_sections(keep, before, steady_us);
	for (size_t i = 0; i < keep->streams_count; i++)
		inputs_go_on(keep->streams[i].inputs);
	keep_commit(keep, KEEP_ON, wall_us);
	set_lengths(keep);
}

/* Committing */

/* Where the state goes as it is encoded. */
struct state_sink {
	struct resume *resume;
	bool failed;
	struct wm_err *err;
};

static void
put_piece(void *self, struct wm_span bytes)
{
	struct state_sink *to = self;

	to->failed = to->failed || !resume_commit_put(to->resume, bytes, to->err);
}

static bool
put_state(struct keep *keep, struct wm_err *err)
{
	struct state_sink to = { .resume = keep->resume, .err = err };
	const struct wm_buf_sink sink = { &to, put_piece };
	struct wm_buf state;

	wm_buf_init_sink(&state, &sink);
	keep->state->encode(keep->state->self, &state);
	wm_buf_flush(&state);
	wm_buf_release(&state);
	return !to.failed;
}

void
keep_commit(struct keep *keep, enum keep_end end, int64_t wall_us)
{
	struct wm_buf watermarks, ledger, found;
	bool has_state = keep->state != NULL && end != KEEP_ANEW;
	bool is_last = end != KEEP_ON && end != KEEP_REOPEN;
	struct report total = *keep->report;
	struct wm_err err;

	outputs_flush(keep->outputs);
	for (size_t i = 0; i < keep->streams_count; i++)
		if (!inputs_tell_positions(keep->streams[i].inputs, &err))
			cli_die(&err);
	wm_buf_init(&watermarks, WM_BUF_UNBOUNDED);
	wm_buf_init(&ledger, WM_BUF_UNBOUNDED);
	wm_buf_init(&found, WM_BUF_UNBOUNDED);
	encode_watermarks(keep, is_last, &watermarks);
	report_add_before(&total, keep->before);
	report_encode(&total, &ledger);
	encode_found(keep, &found);
	const struct resume_commit commit = {
		.now_us = wall_us,
		.is_last = is_last,
		.is_reopening = end == KEEP_REOPEN,
		.is_closed = end == KEEP_CLOSED,
		.found = wm_buf_span(&found),
		.watermarks = { KEEP_SECTION_VERSION, wm_buf_span(&watermarks) },
		.ledger = { KEEP_SECTION_VERSION, wm_buf_span(&ledger) },
		.state_version = has_state ? keep->state->version : KEEP_STATE_ANEW,
	};
	if (!resume_commit_begin(keep->resume, &commit, &err) || (has_state && !put_state(keep, &err)) ||
		!resume_commit_end(keep->resume, &err))
		cli_die(&err);
	wm_buf_release(&watermarks);
	wm_buf_release(&ledger);
	wm_buf_release(&found);
}

void
keep_plan(struct keep *keep, uint64_t rows_in, int64_t began_us, int64_t now_us)
{
	const struct cli_common *common = keep->common;
	int64_t stretched_us = (now_us - began_us) * (SHARE_OF_TIME - 1);

	keep->due_row = common->checkpoint_rows == 0 ? 0 : rows_in + common->checkpoint_rows;
	keep->due_us = now_us + stretched_us;
	if (common->checkpoint_rows == 0 && common->checkpoint_us > stretched_us)
		keep->due_us = now_us + common->checkpoint_us;
}

uint64_t
keep_due_row(const struct keep *keep)
{
	return keep->due_row;
}

int64_t
keep_due_us(const struct keep *keep)
{
	return keep->due_us;
}

void
keep_reopened(struct keep *keep)
{
	struct wm_err err;
	int fd;

	for (size_t i = 0; i < keep->outputs_count; i++)
		if (keep->numbers[i] != SIZE_MAX && outputs_option(keep->outputs, i, &fd) != NULL &&
			!resume_replace_output(keep->resume, keep->numbers[i], fd, &err))
			cli_die(&err);
	set_lengths(keep);
}
