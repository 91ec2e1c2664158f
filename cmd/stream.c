#include "cmd/stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/base/shown.h"
#include "lib/event/trigger.h"
#include "lib/event/watermark.h"
#include "lib/time/instant.h"

/* How long an input may go on before it is said that nothing is written without a watermark. */
#define NOTICE_AFTER_US 10000000

struct wanted {
	size_t field; /* in rec.fields */
	enum stream_need need;
	char *name; /* for messages */
};

enum phase {
	PHASE_READ,    /* the next record is to be read */
	PHASE_TAKE_IN, /* one was read and waits for the batch before it to end */
	PHASE_DELIVER, /* one was taken in and waits for what is due before it */
	PHASE_FLUSH,   /* all inputs have ended: everything is to be written */
	PHASE_END,
};

struct stream {
	const struct cli_common *common;
	struct wm_reader *reader;
	struct wm_instant_parser *time_parser;
	size_t time_field;
	size_t trigger_field;
	struct wanted *wanted;
	struct wm_reading *readings;
	size_t wanted_count;

	struct wm_watermark watermark;
	bool has_watermark;
	bool is_watermark_needed;
	bool is_notice_due; /* it was not said yet that nothing is written without a watermark */
	int64_t started_us; /* monotonic clock */
	struct wm_trigger trigger;
	bool is_each;

	enum phase phase;
	struct wm_record rec;
	int64_t event_time_us; /* of the record that is delivered */
	size_t file_next;
	bool is_input_open;
	bool is_started;      /* the outputs are */
	bool is_settled;      /* so is their form */
	bool is_batch_ending; /* STREAM_WATERMARK for it was handed out: its progress is due */
	bool is_strict_stop;

	struct outputs *outputs;
	struct report report;
	struct report_state state;
	struct wm_buf text;
};

/* Signals */

static volatile sig_atomic_t stop_signal;

static void
on_stop(int signal_number)
{
	stop_signal = signal_number;
}

/* The first SIGINT or SIGTERM lets what was read be finished; a second one kills. One that was ignored stays so. */
static void
catch_stop_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction action = { 0 }, before;

		action.sa_handler = on_stop;
		action.sa_flags = (int)SA_RESETHAND;
		sigemptyset(&action.sa_mask);
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

static int64_t
clock_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Opening */

static _Noreturn void
misuse_of(const char *option, const struct wm_err *err)
{
	cli_misuse("%s: %s", option, err->message);
}

static size_t
want_field(struct stream *s, struct wm_span name)
{
	struct wm_column column;
	struct wm_err err;

	if (!wm_column_parse(name, &column, &err))
		cli_misuse("%s", err.message);
	size_t field = wm_reader_want(s->reader, &column);
	wm_column_release(&column);
	return field;
}

static struct wm_reader *
open_reader(const struct cli_common *common)
{
	struct wm_err err;
	struct wm_reader_options options = {
		.format = (enum wm_format)common->input_format,
		.delimiter = common->delimiter_byte,
		.no_header = common->no_header,
		.columns = common->columns,
		.record_bytes_max = common->record_limit,
	};
	struct wm_reader *reader = wm_reader_new(&options, &err);

	if (reader == NULL)
		cli_misuse("%s", err.message);
	return reader;
}

static enum wm_trigger_kind
trigger_kind(enum cli_trigger_word word)
{
	switch (word) {
	case CLI_TRIGGER_FILE:
		return WM_TRIGGER_FILE;
	case CLI_TRIGGER_COLUMN:
		return WM_TRIGGER_COLUMN;
	case CLI_TRIGGER_EOF:
		return WM_TRIGGER_EOF;
	default:
		return WM_TRIGGER_EACH;
	}
}

struct stream *
stream_open(const struct cli_common *common, const char *operator_name, bool is_watermark_needed)
{
	struct stream *s = wm_calloc(1, sizeof(struct stream));
	struct wm_err err;
	const char *format = common->time_format == NULL ? "auto" : common->time_format;

	wm_hash_init();
	outputs_guard_descriptors();
	s->common = common;
	s->reader = open_reader(common);
	if (common->time_column == NULL)
		cli_misuse("no time column: name the column that holds the event time with -t");
	s->time_field = want_field(s, wm_span_of(common->time_column));
	s->time_parser = wm_instant_parser_new(wm_span_of(format), common->zone == NULL ? wm_zone_utc() : common->zone,
		WM_REPEATED_EARLIER, NULL, &err);
	if (s->time_parser == NULL)
		misuse_of("--time-format", &err);
	s->has_watermark = common->delay.text != NULL;
	s->is_watermark_needed = is_watermark_needed;
	s->is_notice_due = is_watermark_needed && !s->has_watermark;
	s->started_us = clock_us(CLOCK_MONOTONIC);
	if (common->is_spark && s->has_watermark)
		wm_watermark_init_spark(&s->watermark, common->delay.us);
	else
		wm_watermark_init(&s->watermark, common->delay.us);
	wm_trigger_init(&s->trigger, trigger_kind(common->trigger_word));
	s->is_each = s->trigger.kind == WM_TRIGGER_EACH;
	if (s->trigger.kind == WM_TRIGGER_COLUMN)
		s->trigger_field = want_field(s, wm_span_of(common->trigger_column));
	s->outputs = outputs_open(common);
	report_init(&s->report, cli_tool_name(), operator_name);
	s->report.batch_watermark_us = s->watermark.watermark_us;
	wm_buf_init(&s->text, WM_BUF_UNBOUNDED);
	catch_stop_signals();
	return s;
}

size_t
stream_want(struct stream *s, struct wm_span name, enum stream_need need)
{
	s->wanted = wm_reallocarray(s->wanted, s->wanted_count + 1, sizeof(s->wanted[0]));
	s->readings = wm_reallocarray(s->readings, s->wanted_count + 1, sizeof(s->readings[0]));
	s->wanted[s->wanted_count] = (struct wanted){
		.field = want_field(s, name),
		.need = need,
		.name = wm_memdup(name.data, name.len),
	};
	return s->wanted_count++;
}

static bool
is_standard_input(const char *file)
{
	return strcmp(file, "-") == 0;
}

/* Opens an input; fails the run if it cannot be. */
static int
open_file(const char *file)
{
	struct wm_err err;
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd == -1) {
		(void)wm_err_set(&err, WM_ERR_IO, "%s: %s", file, strerror(errno));
		cli_die(&err);
	}
	return fd;
}

void
stream_begin(struct stream *s)
{
	struct wm_err err;
	struct stat found;
	bool has_standard_input = false;

	for (size_t i = 0; i < s->common->files_count; i++) {
		const char *file = s->common->files[i];

		if (is_standard_input(file)) {
			if (has_standard_input)
				cli_misuse("standard input is named twice");
			has_standard_input = true;
			continue;
		}
		if (stat(file, &found) == -1) {
			(void)wm_err_set(&err, WM_ERR_IO, "%s: %s", file, strerror(errno));
			cli_die(&err);
		}
		/* A pipe gives its bytes once; it is checked when it is its turn. */
		if (!S_ISREG(found.st_mode))
			continue;
		int fd = open_file(file);
		if (!wm_reader_check(s->reader, fd, file, &err))
			cli_die(&err);
		close(fd);
	}
}

/* Failing */

/* What was computed is kept: outputs are written as far as the stream came. */
static _Noreturn void
fail(struct stream *s, const struct wm_err *err)
{
	if (s->is_started)
		outputs_flush(s->outputs);
	cli_die(err);
}

/* Rejecting */

static void
warn_rejected(struct stream *s, const char *input, const struct wm_reject *reject)
{
	if (!s->common->quiet)
		cli_warn("%s:%" PRIu64 ": %s: row rejected (%s)", input, reject->line, reject->detail, reject->reason);
}

static void
count_rejected(struct stream *s, const struct wm_reject *reject, const int64_t *time_us)
{
	const char *input = wm_reader_name(s->reader);
	bool is_first = report_reject(&s->report, reject->reason);

	outputs_put_reject(s->outputs, input, reject, time_us);
	if (s->common->strict) {
		cli_warn("%s:%" PRIu64 ": %s (%s): stopped, as --strict asks", input, reject->line, reject->detail,
			reject->reason);
		s->is_strict_stop = true;
		s->phase = PHASE_END;
	} else if (is_first) {
		warn_rejected(s, input, reject);
	}
}

static void
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
}

/* Reading */

/* Before a read: writes what waits, if the read would, and then waits for input or a signal. False when a signal came. */
static bool
wait_for_input(struct stream *s)
{
	struct pollfd input = { .fd = wm_reader_fd(s->reader), .events = POLLIN };
	sigset_t stops, before;

	if (s->is_notice_due && clock_us(CLOCK_MONOTONIC) - s->started_us >= NOTICE_AFTER_US) {
		s->is_notice_due = false;
		cli_warn("without a watermark nothing is written before the input ends: set a delay with -w (0s for "
			 "input in order)");
	}
	if (poll(&input, 1, 0) == 1)
		return stop_signal == 0;
	outputs_flush(s->outputs);
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	/* Blocked from the look at stop_signal to the wait, so that a signal between them still ends it. */
	sigprocmask(SIG_BLOCK, &stops, &before);
	while (stop_signal == 0) {
		int64_t left_us = s->started_us + NOTICE_AFTER_US - clock_us(CLOCK_MONOTONIC);
		struct timespec timeout = { .tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000 };
		bool has_timeout = s->is_notice_due && left_us > 0;

		int ready = ppoll(&input, 1, has_timeout ? &timeout : NULL, &before);
		if (ready == 1 || (ready == -1 && errno != EINTR))
			break;
		if (ready == 0 && s->is_notice_due) {
			s->is_notice_due = false;
			cli_warn("without a watermark nothing is written before the input ends: set a delay with -w "
				 "(0s for input in order)");
		}
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return stop_signal == 0;
}

/* Something will be written: creates the side files, and settles how results look as soon as an input has told it. */
static void
start_outputs(struct stream *s)
{
	if (!s->is_started)
		outputs_start(s->outputs);
	s->is_started = true;
	if (!s->is_settled && wm_reader_format(s->reader) != WM_FORMAT_AUTO) {
		outputs_settle(s->outputs, s->reader);
		s->is_settled = true;
	}
}

/* Opens the next input; false when there is none left. */
static bool
open_next(struct stream *s)
{
	static const char *const only_standard_input[] = { "-" };
	size_t count = s->common->files_count == 0 ? 1 : s->common->files_count;
	const char *const *files = s->common->files_count == 0 ? only_standard_input : s->common->files;

	if (s->file_next == count)
		return false;
	const char *file = files[s->file_next++];
	if (is_standard_input(file))
		wm_reader_open(s->reader, STDIN_FILENO, "standard input");
	else
		wm_reader_open(s->reader, open_file(file), file);
	s->is_input_open = true;
	return true;
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

/* The last record of the batch was judged: the watermark moves. Always true: results are due. */
static bool
end_batch(struct stream *s)
{
	if (s->has_watermark)
		wm_watermark_advance(&s->watermark);
	wm_trigger_end(&s->trigger);
	s->is_batch_ending = true;
	return true;
}

bool
stream_wants_state(const struct stream *s)
{
	return !s->is_each && (outputs_has_report(s->outputs) || s->common->progress == CLI_PROGRESS_JSON);
}

/* What the batch let go has been written: its progress is told. */
static void
finish_batch(struct stream *s)
{
	s->is_batch_ending = false;
	if (stream_wants_state(s)) {
		wm_buf_reset(&s->text);
		report_progress(&s->report, &s->state, clock_us(CLOCK_REALTIME), &s->text);
		outputs_put_report(s->outputs, wm_buf_span(&s->text));
		if (s->common->progress == CLI_PROGRESS_JSON)
			cli_progress(wm_buf_span(&s->text));
	}
	report_next_batch(&s->report, s->watermark.watermark_us);
}

/* Records */

/* Reads the record's event time and numbers; false if it was rejected. */
static bool
admit(struct stream *s)
{
	const struct wm_value *time = &s->rec.fields[s->time_field];
	const char *why;

	if (wm_value_is_empty(time)) {
		reject_field(s, "no-time", s->common->time_column, NULL, "no event time", time->text, NULL);
		return false;
	}
	if ((time->kind != WM_KIND_TEXT && time->kind != WM_KIND_NUMBER)) {
		reject_field(
			s, "bad-time", s->common->time_column, NULL, "no time", time->text, "not a text or number");
		return false;
	}
	if (!wm_instant_parse(s->time_parser, time->text, &s->event_time_us, &why)) {
		reject_field(s, "bad-time", s->common->time_column, NULL, "no time", time->text, why);
		return false;
	}
	for (size_t i = 0; i < s->wanted_count; i++) {
		const struct wanted *wanted = &s->wanted[i];
		const struct wm_value *value = &s->rec.fields[wanted->field];
		struct wm_reading *reading = &s->readings[i];

		if (wanted->need == STREAM_TEXT) {
			reading->value = *value;
			reading->is_empty = wm_value_is_empty(value);
			reading->is_number = false;
			continue;
		}
		wm_reading_take(reading, value);
		if (wanted->need == STREAM_NUMBER && !reading->is_empty && !reading->is_number) {
			reject_field(s, "bad-number", wanted->name, &s->event_time_us, "no number", value->text, NULL);
			return false;
		}
	}
	return true;
}

static void
note_jump(struct stream *s, int64_t jump_us)
{
	struct report *report = &s->report;

	report->jump_us = jump_us;
	report->jump_time_us = s->event_time_us;
	report->jump_line = s->rec.line;
	report->jump_input = s->common->files_count == 0 ? "standard input" : s->common->files[s->file_next - 1];
	report->jump_rows_before = report->rows_in - 1;
	report->jump_late_before = report->rows_late;
}

/* The record counts: its event time is observed. */
static void
observe(struct stream *s)
{
	int64_t before_us = s->watermark.highest_time_us;

	report_times_add(&s->report.batch_times, s->event_time_us);
	if (s->event_time_us > before_us) {
		if (before_us != WM_TIME_NONE && s->event_time_us - before_us > s->report.jump_us)
			note_jump(s, s->event_time_us - before_us);
		s->watermark.highest_time_us = s->event_time_us;
	} else if (before_us - s->event_time_us > s->report.disorder_max_us) {
		s->report.disorder_max_us = before_us - s->event_time_us;
	}
}

/* The inputs have ended. */
static void
begin_end(struct stream *s)
{
	bool is_flushed = s->common->eof == CLI_EOF_FLUSH || s->common->eof == CLI_EOF_DEFAULT;

	start_outputs(s);
	if (!s->is_settled)
		outputs_settle(s->outputs, s->reader);
	s->is_settled = true;
	s->phase = stop_signal == 0 && is_flushed ? PHASE_FLUSH : PHASE_END;
}

/* Whether the batch that is open ends with the end of one input, or of all of them. */
static bool
ends_batch(const struct stream *s, bool is_last)
{
	switch (s->trigger.kind) {
	case WM_TRIGGER_FILE:
		return !is_last;
	case WM_TRIGGER_EOF:
		return is_last;
	case WM_TRIGGER_COLUMN:
		return is_last && s->trigger.is_open && s->common->eof != CLI_EOF_HOLD;
	default:
		return false;
	}
}

/* The record joins its batch, is checked and observed; true if the operator has something to do before it is judged. */
static inline bool
take_in(struct stream *s, int64_t due_us)
{
	s->phase = PHASE_READ;
	s->report.rows_in++;
	if (!s->is_each)
		wm_trigger_join(&s->trigger, batch_value(s));
	if (!admit(s))
		return false;
	observe(s);
	s->phase = PHASE_DELIVER;
	return s->is_each && s->has_watermark && wm_watermark_advance(&s->watermark) &&
		due_us <= s->watermark.watermark_us;
}

static bool
take_rejected(struct stream *s, const struct wm_reject *reject)
{
	start_outputs(s);
	s->report.rows_in++;
	count_rejected(s, reject, NULL);
	return false;
}

/* Comes a step nearer to the next record; true if the operator has something to do, as a batch has ended or as in take_in(). */
static bool
read_on(struct stream *s, int64_t due_us)
{
	struct wm_reject reject;
	struct wm_err err;

	if (!s->is_input_open) {
		if (stop_signal == 0 && open_next(s))
			return false;
		begin_end(s);
		return stop_signal == 0 && ends_batch(s, true) && end_batch(s);
	}
	switch (wm_reader_next(s->reader, &s->rec, &reject, &err)) {
	case WM_READ_RECORD:
		if (!s->is_settled)
			start_outputs(s);
		if (!begins_batch(s))
			return take_in(s, due_us);
		s->phase = PHASE_TAKE_IN;
		return end_batch(s);
	case WM_READ_REJECTED:
		return take_rejected(s, &reject);
	case WM_READ_END:
		start_outputs(s);
		s->is_input_open = false;
		return ends_batch(s, false) && end_batch(s);
	case WM_READ_MORE:
		if (!wait_for_input(s))
			begin_end(s);
		else if (!wm_reader_fill(s->reader, &err))
			fail(s, &err);
		return false;
	case WM_READ_FAILED:
		break;
	}
	fail(s, &err);
}

enum stream_item
stream_next(struct stream *s, int64_t due_us, struct stream_row *row)
{
	if (s->is_batch_ending)
		finish_batch(s);
	/* What the record before left due: a window that it changed. */
	bool is_due = s->is_each && due_us <= s->watermark.watermark_us;

	while (!is_due) {
		switch (s->phase) {
		case PHASE_READ:
			is_due = read_on(s, due_us);
			break;
		case PHASE_TAKE_IN:
			is_due = take_in(s, due_us);
			break;
		case PHASE_DELIVER:
			s->phase = PHASE_READ;
			row->watermark_us = s->watermark.watermark_us;
			row->event_time_us = s->event_time_us;
			row->readings = s->readings;
			return STREAM_RECORD;
		case PHASE_FLUSH:
			s->phase = PHASE_END;
			row->watermark_us = WM_TIME_END;
			return STREAM_WATERMARK;
		case PHASE_END:
			return STREAM_END;
		}
	}
	row->watermark_us = s->watermark.watermark_us;
	return STREAM_WATERMARK;
}

void
stream_used(struct stream *s, int64_t windows_missed)
{
	int64_t disorder_us = s->watermark.highest_time_us - s->event_time_us;

	s->report.rows_used++;
	if (disorder_us > s->report.disorder_used_max_us)
		s->report.disorder_used_max_us = disorder_us;
	if (windows_missed != 0) {
		s->report.rows_partly_late++;
		s->report.windows_missed += (uint64_t)windows_missed;
		s->report.windows_missed_partly += (uint64_t)windows_missed;
	}
}

void
stream_late(struct stream *s, int64_t windows_missed)
{
	report_late(&s->report);
	s->report.windows_missed += (uint64_t)windows_missed;
	outputs_put_late(s->outputs, s->reader, &s->rec, s->watermark.watermark_us - s->event_time_us,
		s->watermark.watermark_us);
}

const struct wm_row_format *
stream_row_format(const struct stream *s)
{
	return outputs_has_format(s->outputs) ? outputs_row_format(s->outputs) : NULL;
}

bool
stream_is_csv(const struct stream *s)
{
	return wm_reader_format(s->reader) != WM_FORMAT_NDJSON;
}

void
stream_put_header(struct stream *s, struct wm_span line)
{
	outputs_put_result(s->outputs, line);
}

void
stream_put(struct stream *s, struct wm_span line)
{
	s->report.rows_out++;
	outputs_put_result(s->outputs, line);
}

bool
stream_is_held(const struct stream *s)
{
	return stop_signal != 0 || s->is_strict_stop || s->common->eof == CLI_EOF_HOLD ||
		s->common->eof == CLI_EOF_TRIGGER;
}

void
stream_set_state(struct stream *s, const struct report_state *state)
{
	s->state = *state;
}

/* Columns that no record had: NDJSON has no header that could have told before. */
static bool
warn_unseen_columns(const struct stream *s)
{
	bool is_any = false;

	if (s->report.rows_in == s->report.rows_rejected && s->report.rows_in == 0)
		return false;
	if (!wm_reader_column_seen(s->reader, s->time_field)) {
		cli_warn("no record had the column '%s' (-t)", s->common->time_column);
		is_any = true;
	}
	for (size_t i = 0; i < s->wanted_count; i++) {
		if (wm_reader_column_seen(s->reader, s->wanted[i].field))
			continue;
		cli_warn("no record had the column '%s'", s->wanted[i].name);
		is_any = true;
	}
	return is_any;
}

static void
warn_held(const struct stream *s, uint64_t open_count)
{
	const char *what = stop_signal != 0 ? "stopped by a signal"
		: s->is_strict_stop         ? "stopped early"
					    : "held at the end of input";

	if (open_count != 0 && !s->common->quiet)
		cli_warn("%s: %" PRIu64 " open window%s not written", what, open_count,
			open_count == 1 ? " was" : "s were");
}

static void
warn_summary(struct stream *s)
{
	struct report_context context = {
		.delay_text = s->common->delay.text,
		.delay_us = s->common->delay.us,
		.late_path = s->common->late_path,
		.rejects_path = s->common->rejects_path,
		.is_verbose = s->common->verbose,
	};
	struct wm_span rest, line;

	wm_buf_reset(&s->text);
	report_summary(&s->report, &context, &s->text);
	rest = s->text.len == 0 ? wm_span(NULL, 0) : wm_buf_span(&s->text);
	while (wm_list_next(&rest, '\n', &line))
		cli_warn("%.*s", (int)line.len, line.data);
}

static void
free_stream(struct stream *s)
{
	for (size_t i = 0; i < s->wanted_count; i++)
		free(s->wanted[i].name);
	free(s->wanted);
	free(s->readings);
	wm_reader_free(s->reader);
	wm_instant_parser_free(s->time_parser);
	wm_trigger_release(&s->trigger);
	wm_buf_release(&s->text);
	free(s);
}

int
stream_finish(struct stream *s, uint64_t open_count)
{
	struct wm_reader_counts counts = wm_reader_counts(s->reader);
	bool has_unseen = warn_unseen_columns(s);
	bool has_lost = s->report.rows_rejected != 0 && !outputs_has_rejects(s->outputs);
	int status = has_unseen || has_lost || s->is_strict_stop ? CLI_REJECTED : CLI_DONE;

	assert(s->report.rows_in ==
		s->report.rows_rejected + s->report.rows_late + s->report.rows_duplicate + s->report.rows_used);
	warn_held(s, open_count);
	if (!s->common->quiet)
		warn_summary(s);
	s->report.lines_blank = counts.lines_blank;
	s->report.headers_repeated = counts.headers_repeated;
	report_next_batch(&s->report, s->watermark.watermark_us);
	wm_buf_reset(&s->text);
	report_final(&s->report, &s->state, s->watermark.watermark_us, open_count, status, &s->text);
	outputs_put_report(s->outputs, wm_buf_span(&s->text));
	outputs_close(s->outputs);
	free_stream(s);
	if (stop_signal != 0) {
		signal((int)stop_signal, SIG_DFL);
		raise((int)stop_signal);
	}
	return status;
}
