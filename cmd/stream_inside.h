/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_inside - what the parts of cmd/stream share, and nobody else.
 *
 *     stream_open    options understood, columns asked for, inputs looked at
 *     stream         records: read, checked, observed, handed out; batches
 *     stream_wait    signals, the clock, and waiting for input
 *     stream_out     what became of a record, and what is written
 *     stream_run     once a run: outputs begun, progress, checkpoints, the end
 */
#ifndef WM_CMD_STREAM_INSIDE_H
#define WM_CMD_STREAM_INSIDE_H

#include "cmd/stream.h"

#include <signal.h>

#include "cmd/band.h"
#include "cmd/keep.h"
#include "cmd/metrics.h"
#include "cmd/passing.h"
#include "cmd/progress.h"
#include "cmd/sources.h"
#include "lib/event/trigger.h"
#include "lib/event/watermark.h"
#include "lib/record/fields.h"

/* How long an input may go on before it is said that nothing is written without a watermark. */
#define NOTICE_AFTER_US 10000000

/* After so many rows it is looked again whether a commit is due that had to wait. */
#define ATTEND_ROWS 64

/*
 * Whether the state is too large is looked at when it may have come half the way to the limit by what rows have cost so far, at
 * least so much, and near the limit when it may have passed it by such a part. So it costs little, and what rows cost may change.
 */
#define STATE_BYTES_A_ROW_LEAST 256
#define STATE_PART_BEYOND 64

/* What is written when the watermark moves may leave state behind: that counts as so many rows. */
#define STATE_ROWS_AN_ADVANCE 64

/*
 * After SIGINT or SIGTERM what was read is still processed, for so long: a record, and then a row of results, can be one of very many.
 * And so long a write waits for somebody who reads.
 */
#define STOP_RECORDS_US 50000
#define STOP_ROWS_US 50000
#define STOP_BLOCKED_US 400000

/* Progress by the clock comes at most so often. */
#define TICK_US 1000000

struct wanted {
	size_t field; /* in rec.fields */
	enum stream_need need;
	int64_t unit_us; /* of STREAM_LENGTH */
	char *name;      /* for messages */
	/* of STREAM_RANKED: whether a number has come, and the first text that has; NULL: none */
	bool has_numbers;
	char *text;
	const char *text_input;
	uint64_t text_line;
	char *text_advice; /* the option that takes it as missing */
};

enum phase {
	PHASE_READ,        /* the next record is to be read */
	PHASE_TAKE_IN,     /* one was read and waits for the batch before it to end */
	PHASE_DELIVER,     /* one was taken in and waits for what is due before it */
	PHASE_PUNCTUATION, /* the same of punctuation */
	PHASE_FLUSH,       /* all inputs have ended: everything is to be written */
	PHASE_END,
};

/* How far a stream has come: one that hands out the same watermark again without a step in between would do so for ever. */
struct mark {
	bool is_set;
	enum phase phase;
	uint64_t rows_in;
	int64_t watermark_us;
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
	uint64_t attend_row; /* before it the state is looked at, or whether a commit is due */
	uint64_t state_row;  /* before it the state is looked at; UINT64_MAX: never */
	/* when it was looked at last: */
	uint64_t state_row_before;
	uint64_t state_rows_ahead; /* until the next look */
	size_t state_bytes_before;
	uint64_t state_bytes_a_row; /* what one may cost */
	bool is_at_limit;
	struct wm_buf nulls_told; /* texts that it was said of how they are taken as missing, each with a line end */
	uint64_t rows_committed;  /* rows_in at the last commit */
	size_t flushed_count;     /* streams of which the end of time was handed out */
	struct report_state state;
	struct metrics metrics;
	struct progress progress;
	int64_t started_us;   /* monotonic clock */
	int64_t waited_us;    /* for input, so far */
	int64_t tick_next_us; /* monotonic clock */
	int64_t stopping_us;  /* monotonic clock: when SIGINT or SIGTERM was seen; 0: not yet */
	int64_t blocked_us;   /* since when nobody takes what is written, as far as is known; 0: no write waits */
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
	bool is_settled;           /* the outputs know its layout */
	bool is_decided;           /* whether the watermark comes in band */
	size_t input;              /* that is read: the one furthest behind */
	size_t source;             /* whose watermark the current record moves */
	struct wm_columns members; /* of NDJSON: names that the first record had, for advice; count 0: not known */
	size_t source_field;
	struct wm_instant_parser *time_parser;
	const char *time_name; /* of the event time's column, as typed */
	size_t time_fields[TIME_COLUMNS_MAX];
	size_t time_whole; /* of two: that of the name as a whole, plus included, which records may have instead */
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
	bool (*takes)(const void *self, const struct wm_reading *readings, size_t *column); /* NULL: every record */
	const void *taker;

	struct sources sources;
	bool reads_all; /* FILEs that are side by side are read to their ends, though one that has ended holds the watermark: */
	struct wm_combine reading; /* in this order; the one furthest behind first */
	bool has_sources;          /* more than the one that all records are of, or one that can be idle */
	int64_t highest_us;        /* highest event time of all; WM_TIME_NONE before the first */
	bool has_reach;            /* of several sources the watermark follows another time: */
	int64_t reach_us;          /* that which it would be without a delay; WM_TIME_NONE: there is none */
	int64_t reach_next_us;     /* and at the end of the batch */
	int64_t disorder_us; /* how far the record is behind what the watermark follows; 0 before any time is confirmed */
	bool has_watermark;
	int64_t watermark_us; /* in force; WM_TIME_NONE without one */
	int64_t watermark_before_us;
	bool is_punctuated;
	bool is_notice_due;  /* it was not said yet that nothing is written without a watermark */
	int64_t spoke_at_us; /* when the last record came; only with --idle-close */
	int64_t told_at_us;  /* when a move without a record was handed out */
	int64_t due_us;      /* the operator's */
	struct mark mark;    /* how far it was when the last STREAM_WATERMARK was handed out */
	struct wm_trigger trigger;
	bool is_each;
	bool is_batch_full; /* the record that was delivered is its batch's last */

	enum phase phase;
	struct wm_record rec;
	int64_t event_time_us;    /* of the record that is delivered */
	int64_t arrival_us;       /* of the same, if it was read */
	bool is_file_begun;       /* a record of the FILE was taken in */
	bool is_observed_plainly; /* it needs nothing of observe_more() */
	bool is_plain;            /* the next record needs nothing but what all records need */
	size_t files_begun;
	size_t files_behind;  /* of these, that began behind the watermark */
	bool is_batch_ending; /* STREAM_WATERMARK for it was handed out: its progress is due */
	bool is_ticking;      /* STREAM_TICK was handed out */
	bool is_strict_stop;
	bool is_left;          /* the record that was read is left to the next run */
	size_t position_field; /* of --position */

	struct passing *passing; /* NULL: no record passes */
	struct passing_stamps stamps;
	struct wm_span line;         /* of the current record, where records pass */
	struct wm_instant_text told; /* the watermark in rows that were kept */
	struct wm_buf text;
	struct wm_buf rejected; /* a record whose line ends are put back */
};

/* What ends a wait. */
enum wait_end {
	WAIT_INPUT,
	WAIT_YIELD,
	WAIT_BATCH_DUE,
	WAIT_IDLE,    /* a source is, by the clock */
	WAIT_SILENCE, /* the watermark has gone on with the clock */
	WAIT_NOTICE,  /* it is to be said that nothing is written without a watermark */
	WAIT_TICK,
	WAIT_SIGNAL
};

/* What signals ask for. */
struct stream_signals {
	volatile sig_atomic_t stop_signal; /* SIGINT or SIGTERM; 0: none came */
	volatile sig_atomic_t wants_object;
	volatile sig_atomic_t wants_reopen;
};
extern struct stream_signals stream_signals;

/* The first event time of a FILE; WM_TIME_END if it has none, so that it is read last. */
int64_t stream_first_event_time(struct stream *s, size_t file);

/* Whether a run that a signal stops has used up the time that it has for this. */
bool stream_is_overdue(struct run *run, int64_t limit_us);

/* Between two rows of results, after such a signal: ends the process if there is no end to them. */
void stream_hurry(struct stream *s);

/* For outputs_set_wait(); self is the run. */
void stream_wait_for_reader(void *self, bool has_written);

_Noreturn void stream_die_by_signal(void);

/* No longer wakes a write that waits: what SIGUSR1 asks for is being done. */
void stream_calm_signals(void);

/* What was computed is kept: outputs are written as far as the stream came. */
_Noreturn void stream_fail(struct stream *s, const struct wm_err *err);

/* Whether results look as this stream does: the first one, unless that has ended without a word. */
bool stream_tells_layout(const struct stream *s);

/* The first SIGINT or SIGTERM lets what was read be finished; a second one kills. One that was ignored stays so. */
void stream_catch_signals(void);

int64_t stream_clock_us(clockid_t clock);

bool stream_is_commit_due(const struct stream *s);

/* Whether the watermark goes on with the clock: in a batch it waits for the end of that. */
bool stream_follows_clock(const struct stream *s);

/* Before a read. */
enum wait_end stream_wait(struct stream *s);

/* Of two streams the lower watermark of those that have one. */
int64_t stream_run_watermark_us(const struct run *run);

/* Something will be written: creates the side files, and settles how results look as soon as an input has told it. */
void stream_start_outputs(struct stream *s, bool is_last);

/* Of two streams, one may have taken in a record that it has not given out yet. */
bool stream_can_commit(const struct run *run);

/* All that the records before let go was written: a commit. */
void stream_commit(struct stream *s);

/* Whether the run ends before its inputs do, and what is open is not written. */
bool stream_is_cut_short(const struct stream *s);

/* How far the watermark of several sources would have come without a delay: to the time of the one that it follows. */
void stream_raise_reach(struct stream *s);

/* A watermark was handed out: the state is looked at sooner. */
static inline void
stream_look_sooner(struct run *run)
{
	uint64_t rows = run->state_row < STATE_ROWS_AN_ADVANCE ? run->state_row : STATE_ROWS_AN_ADVANCE;

	if (run->state_row == UINT64_MAX)
		return;
	run->state_row -= rows;
	run->attend_row = run->attend_row < run->state_row ? run->attend_row : run->state_row;
}

/* Before which row it is looked next whether the state is too large, or a commit due. */
void stream_plan_attention(struct run *run);

/* Whether the operator holds too much. */
void stream_check_state(struct stream *s);

/* SIGHUP: the side files may be other ones now. */
void stream_reopen(struct stream *s);

/* What the batch let go has been written: its progress is told. */
void stream_finish_batch(struct stream *s);

bool stream_is_tick_due(const struct stream *s);

/* The operator has said what it holds. */
void stream_finish_tick(struct stream *s);

struct wm_instant_parser *stream_new_time_parser(const struct cli_common *common, const char *format);

const char *stream_time_format(const struct cli_common *common);

/* The first record has come, and with it what of a stamp the input has. */
void stream_decide(struct stream *s);

/* The first row of the result is written: columns that no record had so far are named, rather than at the end alone. */
void stream_warn_so_far(struct run *run);

#endif
