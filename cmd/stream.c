#include "cmd/stream.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/band.h"
#include "cmd/inputs.h"
#include "cmd/keep.h"
#include "cmd/memory.h"
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
#include "lib/base/shown.h"
#include "lib/event/trigger.h"
#include "lib/event/watermark.h"
#include "lib/time/instant.h"

/* There are two of each such function: one for plain records, without what these do not need, and one for all. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* How long an input may go on before it is said that nothing is written without a watermark. */
#define NOTICE_AFTER_US 10000000

/* After so many rows it is looked again whether a commit is due that had to wait. */
#define ATTEND_ROWS 64

/* Whether the state is too large is looked at once in so many rows; the farther the limit, the later. */
#define STATE_ROWS 2048
#define STATE_BYTES_A_ROW 4096

/* Progress by the clock comes at most so often. */
#define TICK_US 1000000

struct wanted {
	size_t field; /* in rec.fields */
	enum stream_need need;
	int64_t unit_us; /* of STREAM_LENGTH */
	char *name;      /* for messages */
};

enum phase {
	PHASE_READ,        /* the next record is to be read */
	PHASE_TAKE_IN,     /* one was read and waits for the batch before it to end */
	PHASE_DELIVER,     /* one was taken in and waits for what is due before it */
	PHASE_PUNCTUATION, /* the same of punctuation */
	PHASE_FLUSH,       /* all inputs have ended: everything is to be written */
	PHASE_END,
};

/* Two columns at most make an event time: a date and a time of day. */
#define TIME_COLUMNS_MAX 2

/* A join has two. */
#define STREAMS_MAX 2

/* So much is read ahead of one input while another is waited for. */
#define AHEAD_BYTES_MAX ((uint64_t)1 << 30)

/* What a run has once, whatever the number of its streams. */
struct run {
	struct stream *streams[STREAMS_MAX];
	size_t streams_count;
	struct outputs *outputs;
	bool is_started;      /* the outputs are */
	bool is_settled;      /* so is their form */
	struct report report; /* of this run alone */
	struct report before; /* of those before it, as the checkpoint has them */
	struct keep *keep;    /* NULL: there is no checkpoint */
	const struct keep_state *kept;
	uint64_t state_bytes_max;
	uint64_t state_row; /* before it the state is looked at; UINT64_MAX: never */
	bool is_at_limit;
	uint64_t rows_committed; /* rows_in at the last commit */
	bool is_flushed;         /* the end of time was handed out */
	struct report_state state;
	struct metrics metrics;
	struct progress progress;
	int64_t started_us;   /* monotonic clock */
	int64_t waited_us;    /* for input, so far */
	int64_t tick_next_us; /* monotonic clock */
};

struct stream {
	struct run *run;
	size_t number;          /* among those of the run */
	struct stream *partner; /* the other of two */
	enum stream_patience patience;
	bool is_hungry; /* it has asked for bytes, and none have come since */
	bool has_yielded;
	uint64_t ahead_bytes;
	bool has_records;     /* of its own */
	int64_t batch_number; /* of the record that was read, where batches are numbers */
	int64_t fed_at_us;    /* monotonic clock; for --idle-wall of one of two */
	const struct cli_common *common;
	struct stream_facts facts;
	struct inputs *inputs;
	struct band band;
	bool is_settled; /* the outputs know its layout */
	bool is_decided; /* whether the watermark comes in band */
	size_t input;    /* that is read: the one furthest behind */
	size_t source;   /* whose watermark the current record moves */
	size_t source_field;
	struct wm_instant_parser *time_parser;
	const char *time_name; /* of the event time's column, as typed */
	size_t time_fields[TIME_COLUMNS_MAX];
	size_t time_fields_count;
	struct wm_value time_value;              /* of two columns */
	struct wm_buf time_text;                 /* and its text */
	bool reads_arrival;                      /* rows that have none are rejected */
	struct wm_instant_parser *ingest_parser; /* NULL: the arrival time is not asked for, or is now */
	size_t ingest_field;
	size_t trigger_field;
	struct wanted *wanted;
	struct wm_reading *readings;
	size_t wanted_count;

	struct sources sources;
	bool has_sources;    /* more than the one that all records are of, or one that can be idle */
	int64_t highest_us;  /* highest event time of all; WM_TIME_NONE before the first */
	int64_t disorder_us; /* how far the record is behind it; 0 before any time is confirmed */
	bool has_watermark;
	int64_t watermark_us; /* in force; WM_TIME_NONE without one */
	int64_t watermark_before_us;
	bool is_punctuated;
	bool is_notice_due;  /* it was not said yet that nothing is written without a watermark */
	int64_t spoke_at_us; /* when the last record came; only where sources can be idle */
	int64_t due_us;      /* the operator's */
	struct wm_trigger trigger;
	bool is_each;
	bool is_batch_full; /* the record that was delivered is its batch's last */

	enum phase phase;
	struct wm_record rec;
	int64_t event_time_us; /* of the record that is delivered */
	int64_t arrival_us;    /* of the same, if it was read */
	bool is_file_begun;    /* a record of the FILE was taken in */
	bool is_plain;         /* the next record needs nothing but what all records need */
	size_t files_begun;
	size_t files_behind;  /* of these, that began behind the watermark */
	bool is_batch_ending; /* STREAM_WATERMARK for it was handed out: its progress is due */
	bool is_ticking;      /* STREAM_TICK was handed out */
	bool is_strict_stop;
	uint64_t attend_row;   /* before the row of this number it is looked whether a commit is due */
	size_t position_field; /* of --position */

	struct passing *passing; /* NULL: no record passes */
	struct passing_stamps stamps;
	struct wm_span line; /* of the current record, where records pass */
	struct wm_buf text;
};

/* Signals */

static volatile sig_atomic_t stop_signal, wants_object, wants_reopen;

static void
on_signal(int number)
{
	if (number == SIGUSR1)
		wants_object = 1;
	else if (number == SIGHUP)
		wants_reopen = 1;
	else
		stop_signal = number;
}

static const int caught_signals[] = { SIGINT, SIGTERM, SIGUSR1, SIGHUP };

#define CAUGHT_SIGNALS (sizeof(caught_signals) / sizeof(caught_signals[0]))

/* The first SIGINT or SIGTERM lets what was read be finished; a second one kills. One that was ignored stays so. */
static void
catch_signals(void)
{
	for (size_t i = 0; i < CAUGHT_SIGNALS; i++) {
		bool is_stop = caught_signals[i] == SIGINT || caught_signals[i] == SIGTERM;
		struct sigaction action = { 0 }, before;

		action.sa_handler = on_signal;
		action.sa_flags = is_stop ? (int)SA_RESETHAND : SA_RESTART;
		sigemptyset(&action.sa_mask);
		if (sigaction(caught_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(caught_signals[i], &action, NULL);
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

static void
misuse_of(const char *option, const struct wm_err *err)
{
	cli_misuse("%s: %s", option, err->message);
}

static struct wm_instant_parser *
new_time_parser(const struct cli_common *common, const char *format)
{
	struct wm_err err;
	struct wm_instant_parser *parser = wm_instant_parser_new(wm_span_of(format),
		common->zone == NULL ? wm_zone_utc() : common->zone, (enum wm_repeated_hour)common->repeated_hour,
		common->time_reference != NULL ? &common->time_reference_us : NULL, &err);

	if (parser == NULL)
		misuse_of("--time-format", &err);
	return parser;
}

static const char *
time_format(const struct cli_common *common)
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
	if (column == NULL)
		s->time_fields[s->time_fields_count++] = inputs_want_optional(s->inputs, rest);
	else
		while (wm_list_next(&rest, '+', &part))
			s->time_fields[s->time_fields_count++] = inputs_want(s->inputs, part);
	s->time_parser = new_time_parser(common, time_format(common));
	if (common->ingest != NULL && !common->is_ingest_now) {
		s->ingest_parser = new_time_parser(common, "auto");
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
	wm_buf_init(&s->time_text, WM_BUF_UNBOUNDED);
	open_times(s);
	s->fed_at_us = run->started_us;
	s->has_watermark = common->delay.text != NULL || facts->is_in_order;
	s->highest_us = WM_TIME_NONE;
	sources_open(&s->sources, common, common->files, common->merge ? common->files_count : 0, run->started_us);
	s->has_sources = common->merge || common->source_column != NULL || s->sources.can_be_idle;
	if (common->source_column != NULL)
		s->source_field = inputs_want(s->inputs, wm_span_of(common->source_column));
	s->watermark_us = s->has_watermark ? s->sources.combine.watermark_us : WM_TIME_NONE;
	s->reads_arrival = common->ingest != NULL && (facts->wants_arrival || common->max_ahead.text != NULL);
	s->is_notice_due = facts->needs_watermark && !s->has_watermark;
	wm_trigger_init(
		&s->trigger, trigger_kind(common->trigger_word), common->trigger_rows, common->trigger_period_us);
	s->is_each = s->trigger.kind == WM_TRIGGER_EACH;
	if (s->trigger.kind == WM_TRIGGER_COLUMN)
		s->trigger_field = inputs_want(s->inputs, wm_span_of(common->trigger_column));
	if (common->position != NULL)
		s->position_field = inputs_want(s->inputs, wm_span_of(common->position));
	s->attend_row = UINT64_MAX;
	return s;
}

struct stream *
stream_open(const struct cli_common *common, const struct stream_facts *facts)
{
	struct run *run = wm_calloc(1, sizeof(*run));
	struct wm_err err;

	wm_hash_init();
	outputs_guard_descriptors();
	run->started_us = clock_us(CLOCK_MONOTONIC);
	struct stream *s = open_stream(run, common, facts);
	run->keep = keep_open(common, facts->options);
	run->kept = facts->state;
	run->outputs = outputs_open(common);
	if (!metrics_init(&run->metrics, common->metrics_path, &err))
		cli_misuse("%s", err.message);
	report_init(&run->report, cli_tool_name(), facts->operator_name);
	report_init(&run->before, cli_tool_name(), facts->operator_name);
	report_clock(&run->report, run->started_us, 0);
	run->report.batch_watermark_us = s->watermark_us;
	catch_signals();
	return s;
}

/* Of two streams the lower watermark of those that have one. */
static int64_t
run_watermark_us(const struct run *run)
{
	int64_t watermark_us = WM_TIME_END;

	for (size_t i = 0; i < run->streams_count; i++)
		if (run->streams[i]->has_watermark && run->streams[i]->watermark_us < watermark_us)
			watermark_us = run->streams[i]->watermark_us;
	return watermark_us == WM_TIME_END ? WM_TIME_NONE : watermark_us;
}

struct stream *
stream_open_beside(struct stream *first, const struct cli_common *common, const struct stream_facts *facts)
{
	struct stream *s = open_stream(first->run, common, facts);

	first->partner = s;
	s->partner = first;
	first->run->report.batch_watermark_us = run_watermark_us(first->run);
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
stream_want_length(struct stream *s, struct wm_span name, int64_t unit_us)
{
	size_t number = stream_want(s, name, STREAM_LENGTH);

	s->wanted[number].unit_us = unit_us;
	return number;
}

/* Event times */

/* A date and a time of day with a blank between. */
static void
join_time(struct stream *s, const struct wm_record *rec)
{
	const struct wm_value *date = &rec->fields[s->time_fields[0]], *clock = &rec->fields[s->time_fields[1]];

	wm_buf_reset(&s->time_text);
	wm_buf_add(&s->time_text, date->text.data, date->text.len);
	if (date->text.len != 0 && clock->text.len != 0)
		wm_buf_add_byte(&s->time_text, ' ');
	wm_buf_add(&s->time_text, clock->text.data, clock->text.len);
	s->time_value = (struct wm_value){ wm_buf_span(&s->time_text), WM_KIND_TEXT };
}

/* The record's event time: its column, or two of them joined. */
static inline const struct wm_value *
time_value(struct stream *s, const struct wm_record *rec)
{
	if (s->time_fields_count == 1)
		return &rec->fields[s->time_fields[0]];
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

/* The first event time of a FILE; WM_TIME_END if it has none, so that it is read last. */
static int64_t
first_event_time(struct stream *s, size_t file)
{
	struct wm_reader *reader = inputs_peek(s->inputs, file);
	struct wm_instant_parser *parser = new_time_parser(s->common, time_format(s->common));
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

/* The first record has come, and with it what of a stamp the input has. */
static __attribute__((noinline)) void
decide(struct stream *s)
{
	bool was_followed = s->band.is_followed;

	s->is_decided = true;
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

/* Failing and rejecting */

/* What was computed is kept: outputs are written as far as the stream came. */
static _Noreturn void
fail(struct stream *s, const struct wm_err *err)
{
	if (s->run->is_started)
		outputs_flush(s->run->outputs);
	cli_die(err);
}

static void
count_rejected(struct stream *s, const struct wm_reject *reject, const int64_t *time_us)
{
	const char *input = inputs_name(s->inputs, s->input);
	bool is_first = report_reject(&s->run->report, reject->reason);

	outputs_put_reject(s->run->outputs, input, reject, time_us);
	if (s->common->strict) {
		cli_warn("%s:%" PRIu64 ": %s (%s): stopped, as --strict asks", input, reject->line, reject->detail,
			reject->reason);
		s->is_strict_stop = true;
		s->phase = PHASE_END;
	} else if (is_first && !s->common->quiet) {
		cli_warn("%s:%" PRIu64 ": %s: row rejected (%s)", input, reject->line, reject->detail, reject->reason);
	}
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
	return false;
}

/* Waiting */

enum wait_end { WAIT_INPUT, WAIT_YIELD, WAIT_BATCH_DUE, WAIT_SILENCE, WAIT_TICK, WAIT_SIGNAL };

static void
notice_no_watermark(struct stream *s)
{
	s->is_notice_due = false;
	cli_warn("without a watermark nothing is written before the input ends: set a delay with -w (0s for input in "
		 "order)");
}

/* When silence moves the watermark: a source has become idle, or windows are due as the watermark goes on with the clock. */
static int64_t
silence_due_us(const struct stream *s)
{
	int64_t until_us = INT64_MAX;

	if (s->common->idle_wall.text != NULL)
		until_us = wm_combine_idle_wall_due_us(&s->sources.combine, s->common->idle_wall.us);
	if (s->common->idle_close.text != NULL && s->watermark_us != WM_TIME_NONE &&
		(s->due_us != WM_TIME_END || s->facts.tells_moves)) {
		int64_t due_us = s->facts.tells_moves ? wm_time_add(s->watermark_us, TICK_US) : s->due_us;
		int64_t needed_us = wm_time_sub(due_us, s->watermark_us);
		int64_t silent_us = needed_us > s->common->idle_close.us ? needed_us : s->common->idle_close.us;
		int64_t close_us = wm_time_add(s->spoke_at_us, silent_us);

		if (close_us < until_us)
			until_us = close_us;
	}
	return until_us;
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

/* It has been silent for long enough; true if the operator is due by that. */
static bool
pass_silence(struct stream *s)
{
	int64_t now_us = clock_us(CLOCK_MONOTONIC), silent_us = now_us - s->spoke_at_us;
	struct wm_combine *combine = &s->sources.combine;

	if (s->common->idle_wall.text != NULL)
		wm_combine_idle_wall(combine, s->common->idle_wall.us, now_us);
	if (s->common->idle_close.text != NULL && silent_us >= s->common->idle_close.us &&
		s->watermark_us != WM_TIME_NONE) {
		wm_combine_raise(combine, wm_time_add(s->watermark_us, silent_us));
		s->spoke_at_us = now_us - s->common->idle_close.us;
	}
	return raise_each(s) && is_move_due(s, s->due_us);
}

/* When one of two streams is idle by the clock, so that the other need not wait for it. */
static int64_t
yield_due_us(const struct stream *s)
{
	return s->patience == STREAM_WAITS_FOR_IDLE ? wm_time_add(s->fed_at_us, s->common->idle_wall.us) : INT64_MAX;
}

/* Whether there is something to commit, some time. */
static bool
is_commit_to_come(const struct stream *s)
{
	return s->run->keep != NULL && s->run->report.rows_in != s->run->rows_committed &&
		s->run->report.rows_in >= keep_due_row(s->run->keep);
}

static bool
is_commit_due(const struct stream *s)
{
	return is_commit_to_come(s) && clock_us(CLOCK_MONOTONIC) >= keep_due_us(s->run->keep);
}

/* How long to wait at most; -1: for ever. */
static int64_t
wait_limit_us(const struct stream *s)
{
	int64_t until_us = wm_trigger_due_us(&s->trigger), now_us;

	if (yield_due_us(s) < until_us)
		until_us = yield_due_us(s);

	if (s->sources.can_be_idle && silence_due_us(s) < until_us)
		until_us = silence_due_us(s);

	if (s->run->is_started && metrics_due_us(&s->run->metrics) < until_us)
		until_us = metrics_due_us(&s->run->metrics);
	if (is_commit_to_come(s) && keep_due_us(s->run->keep) < until_us)
		until_us = keep_due_us(s->run->keep);

	if (s->is_notice_due && s->run->started_us + NOTICE_AFTER_US < until_us)
		until_us = s->run->started_us + NOTICE_AFTER_US;
	if (until_us == INT64_MAX)
		return -1;
	now_us = clock_us(CLOCK_MONOTONIC);
	return until_us > now_us ? until_us - now_us : 0;
}

static bool
is_signalled(void)
{
	return stop_signal != 0 || wants_object != 0 || wants_reopen != 0;
}

/* Whether the other of two streams is read ahead while this one waits. */
static bool
reads_partner_ahead(const struct stream *s)
{
	const struct stream *partner = s->partner;

	return partner != NULL && partner->phase != PHASE_END && inputs_fd(partner->inputs, 0) >= 0 &&
		!inputs_is_ahead_at_end(partner->inputs) && partner->ahead_bytes < AHEAD_BYTES_MAX;
}

static void
read_partner_ahead(struct stream *s)
{
	struct stream *partner = s->partner;
	struct wm_err err;

	if (!inputs_read_ahead(partner->inputs, &partner->ahead_bytes, &err))
		fail(partner, &err);
}

static bool
is_past(int64_t time_us)
{
	return time_us != INT64_MAX && clock_us(CLOCK_MONOTONIC) >= time_us;
}

/* Waits for input, the end of a batch of wall time, or a signal, having written what waits to be written. */
static enum wait_end
wait_for_input(struct stream *s)
{
	struct pollfd inputs[STREAMS_MAX] = { { .fd = inputs_fd(s->inputs, s->input), .events = POLLIN } };
	enum wait_end end = WAIT_INPUT;
	sigset_t caught, before;

	sigemptyset(&caught);
	for (size_t i = 0; i < CAUGHT_SIGNALS; i++)
		sigaddset(&caught, caught_signals[i]);
	/* Blocked from the look at the flags to the wait, so that a signal between them still ends it. */
	sigprocmask(SIG_BLOCK, &caught, &before);
	for (;;) {
		int64_t limit_us = wait_limit_us(s);
		struct timespec limit = { .tv_sec = limit_us / 1000000, .tv_nsec = limit_us % 1000000 * 1000 };

		if (is_signalled()) {
			end = WAIT_SIGNAL;
			break;
		}
		inputs[1] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (reads_partner_ahead(s))
			inputs[1].fd = inputs_fd(s->partner->inputs, 0);
		int ready = ppoll(inputs, STREAMS_MAX, limit_us < 0 ? NULL : &limit, &before);
		if (inputs[0].revents != 0 || (ready == -1 && errno != EINTR))
			break;
		if (ready > 0) {
			read_partner_ahead(s);
			if (s->patience != STREAM_YIELDS)
				continue;
			end = WAIT_YIELD;
			break;
		}
		if (ready == 0 && is_past(yield_due_us(s))) {
			end = WAIT_YIELD;
			break;
		}
		if (ready == 0 && clock_us(CLOCK_MONOTONIC) >= wm_trigger_due_us(&s->trigger)) {
			end = WAIT_BATCH_DUE;
			break;
		}
		if (ready == 0 && s->sources.can_be_idle && clock_us(CLOCK_MONOTONIC) >= silence_due_us(s)) {
			end = WAIT_SILENCE;
			break;
		}
		if (ready == 0 &&
			((s->run->is_started && clock_us(CLOCK_MONOTONIC) >= metrics_due_us(&s->run->metrics)) ||
				is_commit_due(s))) {
			end = WAIT_TICK;
			break;
		}
		if (ready == 0 && s->is_notice_due && s->is_decided)
			notice_no_watermark(s);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return end;
}

/* Before a read. */
static enum wait_end
before_read(struct stream *s)
{
	struct pollfd input = { .fd = inputs_fd(s->inputs, s->input), .events = POLLIN };

	if (is_signalled())
		return WAIT_SIGNAL;
	if (s->trigger.kind == WM_TRIGGER_WALL && clock_us(CLOCK_MONOTONIC) >= wm_trigger_due_us(&s->trigger))
		return WAIT_BATCH_DUE;
	if (s->sources.can_be_idle && clock_us(CLOCK_MONOTONIC) >= silence_due_us(s))
		return WAIT_SILENCE;
	if (s->is_notice_due && s->is_decided && clock_us(CLOCK_MONOTONIC) - s->run->started_us >= NOTICE_AFTER_US)
		notice_no_watermark(s);
	if ((s->partner != NULL && inputs_has_ahead(s->inputs)) || poll(&input, 1, 0) == 1)
		return WAIT_INPUT;
	if (s->patience == STREAM_YIELDS && stream_is_ready(s->partner))
		return WAIT_YIELD;
	if (s->run->is_started)
		outputs_flush(s->run->outputs);
	int64_t before_us = clock_us(CLOCK_MONOTONIC);
	enum wait_end end = wait_for_input(s);
	s->run->waited_us += clock_us(CLOCK_MONOTONIC) - before_us;
	return end;
}

void
stream_set_patience(struct stream *s, enum stream_patience patience)
{
	s->patience = patience;
}

bool
stream_is_ready(const struct stream *s)
{
	struct pollfd input = { .fd = inputs_fd(s->inputs, 0), .events = POLLIN };

	return s->phase != PHASE_END && (!s->is_hungry || inputs_has_ahead(s->inputs) || poll(&input, 1, 0) == 1);
}

int64_t
stream_position_us(const struct stream *s)
{
	return s->sources.combine.watermark_us;
}

bool
stream_has_layout(const struct stream *s)
{
	return wm_reader_format(inputs_layout(s->inputs)) != WM_FORMAT_AUTO;
}

bool
stream_has_ended(const struct stream *s)
{
	return s->phase == PHASE_END;
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

	if (!metrics_write(&s->run->metrics, &total, &s->run->state, run_watermark_us(s->run), clock_us(CLOCK_REALTIME),
		    clock_us(CLOCK_MONOTONIC), &err))
		fail(s, &err);
}

/* Something will be written: creates the side files, and settles how results look as soon as an input has told it. */
static void
start_outputs(struct stream *s, bool is_last)
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
	/* Results look as the first stream does, unless that has ended without a word. */
	if (!s->run->is_settled && (s == first || first->phase == PHASE_END)) {
		outputs_settle(s->run->outputs, layout);
		s->run->is_settled = true;
	}
	if (s->is_settled || !s->run->is_settled)
		return;
	s->is_settled = true;
	outputs_begin_side(s->run->outputs, s->number, layout);
	if (s->passing != NULL)
		passing_settle(s->passing, layout);
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
			times[i] = first_event_time(s, i);
		inputs_sort(s->inputs, times);
		free(times);
	}
	if (s->run->keep != NULL)
		lend(s);
}

/* Going on, and keeping */

/* Before which row it is looked next whether the state is too large, or a commit due. */
static void
plan_attention(struct run *run)
{
	uint64_t rows_in = run->report.rows_in, attend_row = run->state_row;

	if (run->keep != NULL && run->streams[0]->common->checkpoint_rows != 0) {
		uint64_t due_row = keep_due_row(run->keep);

		/* One that is due waits for a better moment. */
		due_row = due_row > rows_in ? due_row : rows_in + ATTEND_ROWS;
		attend_row = due_row < attend_row ? due_row : attend_row;
	}
	for (size_t i = 0; i < run->streams_count; i++)
		run->streams[i]->attend_row = attend_row;
}

static void
plan_commit(struct stream *s, int64_t began_us)
{
	struct keep *keep = s->run->keep;

	keep_plan(keep, s->run->report.rows_in, began_us, clock_us(CLOCK_MONOTONIC));
	s->run->rows_committed = s->run->report.rows_in;
	plan_attention(s->run);
}

/* What follows from what was kept. */
static void
settle_kept(struct stream *s)
{
	s->run->report.batch_watermark_us = s->watermark_us;
	s->files_begun += s->highest_us != WM_TIME_NONE;
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
	run->state_row = run->kept == NULL || run->kept->bytes == NULL || limit == UINT64_MAX ? UINT64_MAX : 0;
	if (run->keep == NULL) {
		plan_attention(run);
		return;
	}
	int64_t began_us = clock_us(CLOCK_MONOTONIC);
	keep_begin(run->keep, run->outputs, &run->report, &run->before, run->kept, clock_us(CLOCK_REALTIME), began_us);
	run->is_started = true;
	run->report.batch_id = run->before.batch_id;
	for (size_t i = 0; i < run->streams_count; i++) {
		settle_kept(run->streams[i]);
		/* Only now it is known where they begin. */
		if (run->streams_count > 1)
			inputs_open_early(run->streams[i]->inputs);
		/* What one holds has the form that both were found to have. */
		if (run->streams_count > 1)
			start_outputs(run->streams[i], false);
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

/* Of two streams, one may have taken in a record that it has not given out yet. */
static bool
can_commit(const struct run *run)
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
		inputs_set_pending(s->inputs, s->input, s->phase == PHASE_TAKE_IN ? &s->rec : NULL);
	}
	keep_commit(run->keep, end, clock_us(CLOCK_REALTIME));
}

/* All that the records before let go was written: a commit. */
static void
commit(struct stream *s)
{
	int64_t began_us = clock_us(CLOCK_MONOTONIC);

	keep(s->run, KEEP_ON);
	plan_commit(s, began_us);
}

/* The state is larger than it may be: the run ends here. */
static void
stop_at_limit(struct stream *s, size_t bytes)
{
	const char *bound = s->run->kept->bound;

	cli_warn("the state takes %zu KiB, and %" PRIu64 " KiB are allowed: stopped%s: raise --state-limit%s%s",
		bytes >> 10, s->run->state_bytes_max >> 10, s->run->keep == NULL ? "" : " (the checkpoint is good)",
		bound == NULL ? "" : ", or bound it with ", bound == NULL ? "" : bound);
	s->run->is_at_limit = true;
}

/* Whether the operator holds too much. */
static void
check_state(struct stream *s)
{
	struct run *run = s->run;

	if (run->state_row == UINT64_MAX)
		return;
	size_t bytes = run->kept->bytes(run->kept->self);
	if (bytes > run->state_bytes_max) {
		stop_at_limit(s, bytes);
		return;
	}
	uint64_t rows = (run->state_bytes_max - bytes) / STATE_BYTES_A_ROW;
	run->state_row = run->report.rows_in + (rows > STATE_ROWS ? rows : STATE_ROWS);
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
		s->run->report.batch_watermark_us = run_watermark_us(s->run);
	report_clock(&s->run->report, clock_us(CLOCK_MONOTONIC), s->run->waited_us);
	wm_buf_reset(&s->text);
	report_progress(&s->run->report, &s->run->state, clock_us(CLOCK_REALTIME), &s->text);
}

/* What the batch let go has been written: its progress is told. */
static void
finish_batch(struct stream *s)
{
	if (stream_wants_state(s)) {
		make_object(s);
		outputs_put_report(s->run->outputs, wm_buf_span(&s->text));
		if (s->common->progress == CLI_PROGRESS_JSON)
			cli_progress(wm_buf_span(&s->text));
	}
	s->is_batch_ending = false;
	report_next_batch(&s->run->report, run_watermark_us(s->run));
}

/* With the trigger "each" a batch of the report is a second. */
static bool
has_second(const struct stream *s)
{
	return s->is_each && stream_has_progress(s);
}

static bool
is_tick_due(const struct stream *s)
{
	return wants_object != 0 ||
		(s->run->is_started && clock_us(CLOCK_MONOTONIC) >= metrics_due_us(&s->run->metrics)) ||
		(has_second(s) && clock_us(CLOCK_MONOTONIC) >= s->run->tick_next_us);
}

/* The operator has said what it holds. */
static void
finish_tick(struct stream *s)
{
	bool is_asked = wants_object != 0, is_second = clock_us(CLOCK_MONOTONIC) >= s->run->tick_next_us;

	s->is_ticking = false;
	wants_object = 0;
	if (s->run->is_started && clock_us(CLOCK_MONOTONIC) >= metrics_due_us(&s->run->metrics))
		write_metrics(s);
	if (!is_asked && !(is_second && has_second(s)))
		return;
	make_object(s);
	if (is_asked || (has_second(s) && is_second && s->common->progress == CLI_PROGRESS_JSON))
		cli_progress(wm_buf_span(&s->text));
	if (!is_second || !has_second(s))
		return;
	outputs_put_report(s->run->outputs, wm_buf_span(&s->text));
	report_next_batch(&s->run->report, run_watermark_us(s->run));
	s->run->tick_next_us = clock_us(CLOCK_MONOTONIC) + TICK_US;
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

	wm_trigger_join(&s->trigger, value, is_timed ? clock_us(CLOCK_MONOTONIC) : 0);
}

/* The last record of the batch was judged: the watermark moves. Always true: results are due. */
static bool
end_batch(struct stream *s)
{
	s->watermark_before_us = s->watermark_us;
	if (s->has_watermark)
		s->watermark_us = s->sources.combine.watermark_us;
	wm_trigger_end(&s->trigger);
	s->is_batch_full = false;
	s->is_batch_ending = !s->facts.shares_batches;
	return true;
}

void
stream_end_common_batch(struct stream *s, const struct report_state *state, int64_t watermark_us)
{
	s->run->state = *state;
	if (stream_has_progress(s)) {
		make_object(s);
		outputs_put_report(s->run->outputs, wm_buf_span(&s->text));
		if (s->common->progress == CLI_PROGRESS_JSON)
			cli_progress(wm_buf_span(&s->text));
	}
	report_next_batch(&s->run->report, watermark_us);
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
		s->arrival_us = clock_us(CLOCK_REALTIME);
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

/* Reads the record's event time and numbers; false if it was rejected. */
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
	const struct wm_value *fields = s->rec.fields;
	const struct wanted *wanted = s->wanted, *end = wanted + s->wanted_count;
	for (struct wm_reading *reading = s->readings; wanted < end; wanted++, reading++) {
		const struct wm_value *value = &fields[wanted->field];

		if (wanted->need == STREAM_TEXT) {
			wm_value_copy(&reading->value, value);
			reading->is_empty = wm_value_is_empty(value);
			reading->is_number = false;
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
			return reject_field(
				s, "bad-number", wanted->name, &s->event_time_us, "no number", value->text, NULL);
	}
	return (is_plain || !s->reads_arrival || admit_arrival(s)) && (s->passing == NULL || admit_line(s));
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
		s->sources.guards == NULL && s->common->zone == NULL && !s->facts.nulls_move_nothing;
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
	return s->facts.nulls_move_nothing && has_null(s) ? before_us : highest_us;
}

/* The record counts: its event time is observed; true if it is the highest of its source. */
static ALWAYS_INLINE bool
observe(struct stream *s, bool is_plain)
{
	struct wm_watermark *own = &s->sources.combine.sources[s->source].own;
	int64_t before_us = own->highest_time_us, highest_us = s->event_time_us;

	report_times_add(&s->run->report.batch_times, s->event_time_us);
	if (!is_plain)
		highest_us = observe_more(s, before_us);
	bool is_highest = highest_us > s->highest_us;
	if (is_highest) {
		if (s->highest_us != WM_TIME_NONE && highest_us - s->highest_us > s->run->report.jump_us)
			note_jump(s, highest_us - s->highest_us);
		s->highest_us = highest_us;
	}
	s->disorder_us = s->highest_us == WM_TIME_NONE ? 0 : s->highest_us - s->event_time_us;
	if (s->disorder_us > s->run->report.disorder_max_us && !is_highest)
		s->run->report.disorder_max_us = s->disorder_us;
	if (highest_us <= before_us)
		return false;
	own->highest_time_us = highest_us;
	return true;
}

/* Which source the record is of, where there can be several; true if the watermark moved, as another one has become idle. */
static __attribute__((noinline)) bool
find_source(struct stream *s)
{
	struct wm_err err;

	s->source = s->input;
	int64_t now_us = s->sources.can_be_idle ? clock_us(CLOCK_MONOTONIC) : 0;
	if (s->common->source_column != NULL &&
		!sources_find(&s->sources, &s->rec.fields[s->source_field], now_us, &s->source, &err))
		fail(s, &err);
	s->spoke_at_us = now_us;
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
	if (!is_plain && !s->is_each) {
		s->is_batch_full = wm_trigger_is_full(&s->trigger);
		if (s->trigger.kind == WM_TRIGGER_EVENT)
			s->is_batch_full = wm_trigger_enters(&s->trigger, s->highest_us);
		return false;
	}
	return has_moved && raise_each(s) && due_us <= s->watermark_us;
}

static bool
take_rejected(struct stream *s, const struct wm_reject *reject)
{
	start_outputs(s, false);
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
	bool is_stopped = stop_signal != 0 || s->run->is_at_limit;

	start_outputs(s, true);
	s->phase = !is_stopped && is_flushed ? PHASE_FLUSH : PHASE_END;
	return !is_stopped && ends_batch(s, true) && end_batch(s);
}

/* A FILE has ended. Side by side with others it holds nothing back any more, unless what is open is to be kept. */
static bool
end_file(struct stream *s, int64_t due_us)
{
	bool is_kept = s->common->eof == CLI_EOF_HOLD || s->common->eof == CLI_EOF_TRIGGER;

	start_outputs(s, false);
	s->is_file_begun = s->is_plain = false;
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

	cli_bar(&s->run->progress, &status, clock_us(CLOCK_MONOTONIC));
}

/* SIGHUP: the side files may be other ones now. */
static void
reopen(struct stream *s)
{
	struct run *run = s->run;

	if (run->keep != NULL)
		keep(run, KEEP_REOPEN);
	outputs_reopen(run->outputs);
	/* Their headers come behind the commit: until it is made nothing may be written. */
	if (run->keep != NULL) {
		keep_reopened(run->keep);
		commit(s);
	}
	for (size_t i = 0; i < run->streams_count; i++)
		if (run->streams[i]->is_settled)
			outputs_begin_side(run->outputs, i, inputs_layout(run->streams[i]->inputs));
}

/* Between two records, when all that those before let go was written: true if the run ends here. */
static __attribute__((noinline)) bool
attend(struct stream *s)
{
	if (s->run->keep != NULL && stop_signal != 0 && inputs_is_seekable(s->inputs, s->input))
		return true;
	check_state(s);
	if (s->run->is_at_limit)
		return true;
	if (is_commit_due(s) && can_commit(s->run))
		commit(s);
	plan_attention(s->run);
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
	switch (before_read(s)) {
	case WAIT_YIELD:
		s->has_yielded = true;
		return true;
	case WAIT_BATCH_DUE:
		return end_batch(s);
	case WAIT_SILENCE:
		return pass_silence(s);
	case WAIT_SIGNAL:
		if (wants_reopen != 0 && s->run->is_started)
			reopen(s);
		wants_reopen = 0;
		if (stop_signal != 0)
			return begin_end(s);
		break;
	case WAIT_TICK:
		break;
	case WAIT_INPUT:
		if (s->run->progress.is_wanted)
			show_bar(s);
		if (!inputs_fill(s->inputs, s->input, &err))
			fail(s, &err);
		s->is_hungry = false;
		if (s->partner != NULL)
			s->fed_at_us = clock_us(CLOCK_MONOTONIC);
		break;
	}
	s->is_ticking = is_tick_due(s);
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
	fail(s, err);
}

/* The batch of a record as a whole number; false: it is none, and the record is rejected. */
static bool
read_batch(struct stream *s)
{
	const struct wm_value *value = &s->rec.fields[s->trigger_field];
	struct wm_reading reading;

	wm_reading_take(&reading, value);
	if (reading.is_number && reading.number.is_exact && reading.number.fraction == 0 &&
		reading.number.whole > INT64_MIN && reading.number.whole < INT64_MAX) {
		s->batch_number = (int64_t)reading.number.whole;
		return true;
	}
	s->run->report.rows_in++;
	return reject_field(s, "bad-number", s->common->trigger_column, NULL, "no batch number", value->text, NULL);
}

/* What comes before a record that was read is judged by its batch; true if the record stands by itself. */
static bool
look_at_record(struct stream *s, int64_t due_us, bool *is_due)
{
	if (!s->is_decided)
		decide(s);
	if (!s->is_settled)
		start_outputs(s, false);
	if (s->common->position != NULL &&
		!inputs_pass_position(s->inputs, s->input, &s->rec.fields[s->position_field]))
		return false;
	if (s->band.is_there && wm_value_is_empty(time_value(s, &s->rec)) &&
		band_is_punctuation(&s->band, inputs_reader(s->inputs, s->input), &s->rec)) {
		*is_due = take_punctuation(s, due_us);
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

/* Comes a step nearer to the next record; true if there is one. *is_due: the operator has something to do. */
static ALWAYS_INLINE bool
read_record(struct stream *s, int64_t due_us, bool *is_due, bool is_plain)
{
	struct wm_reject reject;
	struct wm_err err;

	if (s->run->report.rows_in >= s->attend_row && attend(s)) {
		*is_due = begin_end(s);
		return false;
	}
	/* Of several inputs the one furthest behind is read; when none is left, that is the end. */
	if (!is_plain && s->has_sources && s->common->merge && !wm_combine_lowest(&s->sources.combine, &s->input)) {
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
			finish_tick(s);
	}
	*number = s->batch_number;
	return s->phase == PHASE_TAKE_IN;
}

static ALWAYS_INLINE void
hand_out(struct stream *s, struct stream_row *row, bool is_plain)
{
	s->phase = PHASE_READ;
	row->watermark_us = s->watermark_us;
	row->event_time_us = s->event_time_us;
	row->highest_time_us = s->highest_us;
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
	return STREAM_WATERMARK;
}

/* Not the plain way: from wherever the stream stands to the next item. */
static __attribute__((noinline)) enum stream_item
next_item(struct stream *s, int64_t due_us, struct stream_row *row)
{
	if (s->is_batch_ending)
		finish_batch(s);
	if (s->is_ticking)
		finish_tick(s);
	/* What the record before left due: a window that it changed; or it was the last of its batch. */
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
		s->run->is_flushed = true;
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

bool
stream_foresee(const struct stream *s, size_t ahead, struct wm_value *values, size_t count)
{
	const struct wm_reader *reader = inputs_reader(s->inputs, s->input);
	bool is_known = true;

	for (size_t i = 0; i < count && is_known; i++)
		is_known = wm_reader_foresee(reader, ahead, s->wanted[i].field, &values[i]);
	return is_known;
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
	outputs_put_late(s->run->outputs, s->number, reader, line, wm_time_sub(s->watermark_us, s->event_time_us),
		s->watermark_us);
}

void
stream_duplicate(struct stream *s)
{
	s->run->report.rows_duplicate++;
	if (s->common->duplicates_path != NULL)
		outputs_put_duplicate(
			s->run->outputs, wm_reader_line(inputs_reader(s->inputs, s->input), &s->rec, &s->text));
}

void
stream_late(struct stream *s, int64_t windows_missed)
{
	report_late(&s->run->report);
	s->run->report.windows_missed += (uint64_t)windows_missed;
	if (outputs_has_late(s->run->outputs))
		put_late(s);
}

void
stream_pass(struct stream *s, const struct wm_value *values)
{
	s->run->report.rows_out++;
	passing_put(s->passing, s->line, &s->rec, values);
}

struct wm_span
stream_line(const struct stream *s)
{
	return s->line;
}

/* A watermark as a value; text has room for it. */
static struct wm_value
watermark_value(const struct stream *s, int64_t watermark_us, char *text)
{
	enum wm_time_unit unit = (enum wm_time_unit)s->common->output_time;

	if (watermark_us == WM_TIME_NONE)
		return (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
	return (struct wm_value){ wm_span(text, wm_instant_print(watermark_us, unit, wm_zone_utc(), text)),
		unit == WM_UNIT_ISO ? WM_KIND_TEXT : WM_KIND_NUMBER };
}

void
stream_put_line(struct stream *s, struct wm_span line, int64_t watermark_us)
{
	char text[WM_INSTANT_TEXT_MAX];

	s->run->report.rows_out++;
	if (s->band.is_there) {
		struct wm_value value = watermark_value(s, watermark_us, text);

		line = band_restate(&s->band, line, &value);
	}
	passing_put(s->passing, line, NULL, NULL);
}

void
stream_count_row(struct stream *s)
{
	s->run->report.rows_out++;
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
	char text[WM_INSTANT_TEXT_MAX];

	if (!s->band.is_there || watermark_us == WM_TIME_NONE)
		return;
	struct wm_value value = watermark_value(s, watermark_us, text);
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
	s->run->report.rows_out++;
	outputs_put_row(s->run->outputs, values);
}

bool
stream_is_held(const struct stream *s)
{
	return stop_signal != 0 || s->is_strict_stop || s->run->is_at_limit || s->common->eof == CLI_EOF_HOLD ||
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

/* Columns that no record had: NDJSON has no header that could have told before. */
static bool
warn_unseen_columns(const struct stream *s)
{
	bool is_any = false;

	if (s->run->report.rows_in == s->run->report.rows_punctuation || (s->partner != NULL && !s->has_records))
		return false;
	for (size_t i = 0; i < s->time_fields_count; i++) {
		if (inputs_column_seen(s->inputs, s->time_fields[i]))
			continue;
		cli_warn("no record had the column '%s' (-t)", s->time_name);
		is_any = true;
	}
	for (size_t i = 0; i < s->wanted_count; i++) {
		if (inputs_column_seen(s->inputs, s->wanted[i].field))
			continue;
		cli_warn("no record had the column '%s'", s->wanted[i].name);
		is_any = true;
	}
	return is_any;
}

/* The first was told when it began. */
static void
warn_files_behind(const struct stream *s)
{
	if (s->files_behind > 1)
		cli_warn("%zu FILEs in all began behind the watermark that was left to them", s->files_behind);
}

static void
warn_held(const struct stream *s, uint64_t open_count)
{
	const char *what = stop_signal != 0                ? "stopped by a signal"
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

static void
warn_summary(struct stream *s, bool is_too_late)
{
	struct report_context context = {
		.delay_text = s->common->delay.text,
		.delay_us = s->common->delay.us,
		.is_in_band = s->band.is_followed,
		.passes_late = s->facts.passes_late,
		.late_path = s->common->late_path,
		.has_sides = s->common->has_sides,
		.late_right_path = s->common->late_right_path,
		.rejects_path = s->common->rejects_path,
		.max_jump_text = s->common->max_jump.text,
		.has_confirmed = has_confirmed(s),
		.repeated_hour_text = s->common->repeated_hour == WM_REPEATED_LATER ? "later" : "earlier",
		.fail_late_text = is_too_late ? s->common->fail_late : NULL,
		.is_verbose = s->common->verbose,
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
	for (size_t i = 0; i < s->wanted_count; i++)
		free(s->wanted[i].name);
	free(s->wanted);
	free(s->readings);
	passing_close(s->passing);
	free(s->stamps.fields);
	inputs_close(s->inputs);
	band_release(&s->band);
	sources_release(&s->sources);
	wm_instant_parser_free(s->time_parser);
	wm_instant_parser_free(s->ingest_parser);
	wm_trigger_release(&s->trigger);
	wm_buf_release(&s->text);
	wm_buf_release(&s->time_text);
	free(s);
}

/* How the run has ended, for the next one. */
static enum keep_end
end_of_run(const struct stream *s)
{
	const struct keep_state *kept = s->run->kept;

	if (!s->run->is_flushed || kept == NULL || !kept->is_gone_by_flush)
		return KEEP_HELD;
	return s->has_watermark ? KEEP_CLOSED : KEEP_ANEW;
}

int
stream_finish(struct stream *s, uint64_t open_count)
{
	struct run *run = s->run;
	bool has_unseen = false, has_lost = run->report.rows_rejected != 0 && !outputs_has_rejects(run->outputs);

	for (size_t i = 0; i < run->streams_count; i++)
		has_unseen |= warn_unseen_columns(run->streams[i]);
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
	for (size_t i = 0; i < run->streams_count; i++)
		start_outputs(run->streams[i], true);
	note_lines(run);
	outputs_end(run->outputs);
	warn_held(s, open_count);
	if (!s->common->quiet) {
		warn_files_behind(s);
		warn_summary(s, is_too_late);
	}
	report_clock(&s->run->report, clock_us(CLOCK_MONOTONIC), s->run->waited_us);
	report_next_batch(&s->run->report, run_watermark_us(s->run));
	s->run->report.ended_us = clock_us(CLOCK_REALTIME);
	wm_buf_reset(&s->text);
	struct report total = totals(s);
	report_final(&total, &s->run->state, run_watermark_us(s->run), open_count, status, &s->text);
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
	free(run);
	if (stop_signal != 0) {
		signal((int)stop_signal, SIG_DFL);
		raise((int)stop_signal);
	}
	return status;
}
