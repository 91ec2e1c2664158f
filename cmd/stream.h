/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream - what all streaming tools share: inputs, event time, watermark,
 * triggers, signals, outputs and the ledger; one item at a time.
 *
 *     s = stream_open(&options.common, &facts);
 *     stream_want(s, "page", STREAM_TEXT);
 *     stream_begin(s, names, names_count);
 *     stream_resume(s);
 *     while ((item = stream_next(s, wm_x_due_us(x), &row)) != STREAM_END)
 *             STREAM_RECORD:    judge it, and say what became of it
 *             STREAM_WATERMARK: advance to row.watermark_us, write what that lets go
 *             STREAM_TICK:      say what the operator holds
 *     return stream_finish(s, open_count);
 *
 * With the trigger "each" the watermark rises with every record, and nearly
 * none of these rises lets anything go. So the operator says at which watermark
 * it is due next: STREAM_WATERMARK comes before the record that reaches it,
 * after a record that left something due (WM_TIME_NONE), at the end of each
 * batch, and, when everything is to be written at the end, once with
 * WM_TIME_END.
 *
 * Records that cannot be used (no event time, a text where a number is
 * needed) are rejected here, before they move the watermark or touch any state.
 * All failures end in cli_die(). This is the only place that reads a clock.
 */
#ifndef WM_CMD_STREAM_H
#define WM_CMD_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cli.h"
#include "cmd/keep.h"
#include "cmd/report.h"
#include "lib/base/value.h"

struct outputs;
struct passing;
struct stream;

/* What a tool is, for the stream. */
struct stream_facts {
	const char *operator_name; /* in progress objects */
	const char *held_unit;     /* what is held, and not written where the run is stopped; NULL: windows */

	/* Messages that depend on where the watermark comes from, which the first record tells; NULL: none. */
	const char *no_watermark;      /* misuse, if there is none */
	const char *in_band;           /* misuse, if it comes in band */
	const char *warn_watermark;    /* a warning, if there is one */
	const char *warn_no_watermark; /* and if not */
	/* Without a watermark nothing is written before the end: said on an input that does not end soon. */
	bool needs_watermark;
	bool holds_without_watermark; /* or some of it is not: then a checkpoint would keep it for good */

	bool wants_arrival; /* rows come with their arrival times, if --ingest tells them */
	bool is_in_order;   /* records of a source are: its watermark is its last event time, to the microsecond */
	bool is_bounded;    /* event times out of these bounds are rejected (implausible-time) */
	int64_t not_before_us;
	int64_t not_after_us;

	bool batches_are_numbers; /* --trigger column:C is of whole numbers; another value rejects the record (bad-number) */
	bool nulls_move_nothing; /* a record with a null in one of the columns asked for does not move the watermark */
	bool shares_batches;     /* two streams have them in common: stream_end_common_batch() */
	bool is_part;            /* with is_passing: lines are a part of the rows of the result */
	bool is_passing;       /* records pass through: stream_pass(); STREAM_PUNCTUATION comes for each punctuation */
	bool is_restating;     /* results carry a watermark: STREAM_WATERMARK comes for each punctuation */
	const char *late_fate; /* what becomes of late records, for the summary; NULL: they are dropped */
	bool tells_moves;      /* STREAM_WATERMARK comes when the watermark has moved without a record */

	/* With a checkpoint. Both are borrowed. */
	const struct keep_state *state;     /* what the operator holds; NULL: nothing */
	const struct keep_options *options; /* of the tool, that give it its meaning; NULL: none */
};

/* Exits 2 on misuse that the options alone show. */
struct stream *stream_open(const struct cli_common *common, const struct stream_facts *facts);

/*
 * A second stream of the same run, for a tool that takes two: it has inputs, event time, watermark and trigger of its own; outputs, ledger
 * and clock are those of the first, which finishes both. What of the options is about these is read from the first's. While one
 * waits for input the other's is read ahead, so that one who writes to both does not wait for ever.
 */
struct stream *stream_open_beside(
	struct stream *first, const struct cli_common *common, const struct stream_facts *facts);

enum stream_need {
	STREAM_TEXT,         /* as it is */
	STREAM_NUMBER,       /* read as a number; a value that is none rejects the record (bad-number) */
	STREAM_MAYBE_NUMBER, /* read as a number where it is one */
	STREAM_RANKED,       /* the same, and it is said if there are numbers and texts both */
	STREAM_LENGTH /* a length of time above zero, in number.whole as microseconds; anything else rejects the record (bad-gap) */
};

/* Asks for a column, before stream_begin(); returns its index in row.readings. A name that is no column exits 2. */
size_t stream_want(struct stream *s, struct wm_span name, enum stream_need need);

/* Asks for each column of a comma list, as a text; returns how many (NULL: 0). More than WM_KEYS_MAX exit 2. */
size_t stream_want_keys(struct stream *s, const char *option, const char *list);

/*
 * Of numbers that only some records need: takes() says whether a record has those that it needs, else which of the columns asked for has none;
 * such a record is rejected (bad-number). Before stream_begin().
 */
void stream_guard(struct stream *s, bool (*takes)(const void *self, const struct wm_reading *readings, size_t *column),
	const void *self);

/* The same for STREAM_LENGTH: unit_us is what a number counts; 0: texts such as "30s". */
size_t stream_want_length(struct stream *s, struct wm_span name, int64_t unit_us);

/*
 * Columns that the tool writes into the records that pass, where is_passing; borrowed. Those that records have already are replaced.
 * Before stream_begin().
 */
void stream_stamp(struct stream *s, const struct wm_span *names, size_t count);

/*
 * All columns were asked for: checks what can be checked of the inputs before anything is read (exits 2 or 3). names: of the columns of
 * results, borrowed.
 */
void stream_begin(struct stream *s, const struct wm_span *names, size_t names_count);

/*
 * The operator is there: with a checkpoint, it and the stream go on where the run before stopped. Of several streams of a run, once, when all have
 * begun. Before the first stream_next().
 */
void stream_resume(struct stream *s);

enum stream_item {
	STREAM_RECORD,
	STREAM_WATERMARK,
	STREAM_PUNCTUATION,
	STREAM_TICK,
	STREAM_YIELD, /* of two streams: it would wait, and the other one need not, or this one is idle; see stream_set_patience() */
	STREAM_END
};

/* Fields are for reading, borrowed until the next call of stream_next(). */
struct stream_row {
	int64_t watermark_us; /* in force; WM_TIME_END: write everything */
	/* of STREAM_WATERMARK */
	int64_t watermark_before_us; /* in force before; the same where it did not move */
	bool is_punctuated; /* it came as punctuation, this or an earlier one of the batch; only if is_restating */
	/* of STREAM_RECORD */
	int64_t event_time_us;
	int64_t highest_time_us; /* so far; of several sources the one that their watermark follows */
	int64_t arrival_us;      /* with wants_arrival and --ingest */
	size_t source; /* its FILE with --merge, else 0; of STREAM_WATERMARK the one furthest behind of those that take part */
	const struct wm_reading *readings; /* in the order in which they were asked for */
};

/* due_us: the next watermark at which the operator has something to do; WM_TIME_NONE: now. */
enum stream_item stream_next(struct stream *s, int64_t due_us, struct stream_row *row);

/* How long a stream of two waits for input. */
enum stream_patience {
	STREAM_WAITS = 0,      /* for ever */
	STREAM_WAITS_FOR_IDLE, /* until it is idle by --idle-wall */
	STREAM_YIELDS          /* until the other one has input */
};
void stream_set_patience(struct stream *s, enum stream_patience patience);

/* Of two streams: whether it has something to give without waiting. */
bool stream_is_ready(const struct stream *s);

/* Of two streams: whether a record was read that has moved the watermark, and is not handed out yet. Nothing comes between these two. */
bool stream_is_amid(const struct stream *s);

/* How far the stream has come: its own watermark, without -w the highest event time; WM_TIME_NONE before the first. Tells which of two is behind. */
int64_t stream_position_us(const struct stream *s);

/* Whether its layout is known, so that its columns are; and whether it has given all records that it has. */
bool stream_has_layout(const struct stream *s);
bool stream_has_ended(const struct stream *s);

/*
 * With --trigger column:C whose values are whole numbers (batches_are_numbers): the batch that comes next, read as far as its first record.
 * False when none comes. Where no batch is open: at the beginning, and after the STREAM_WATERMARK that ends one.
 */
bool stream_peek_batch(struct stream *s, int64_t *number);

/* The number of the batch that is open: one in which the run before was stopped, and of which nothing more may come. False: none is. */
bool stream_open_batch(const struct stream *s, int64_t *number);

/* Whether the run ends before its inputs do, at a record: a signal came, or the state is at its limit. */
bool stream_is_stopping(const struct stream *s);

/* The end of a batch that two streams have in common: its progress is told, and the next begins. state as for stream_set_state(). */
void stream_end_common_batch(struct stream *s, const struct report_state *state, int64_t watermark_us);

/* What a column that was asked for says in the current record as it came, where its reading is null for a text of --null too. */
struct wm_value stream_said(const struct stream *s, size_t number);

/*
 * Values of the first columns that were asked for in the record that comes so many after this one, and its number: a hint, see
 * wm_reader_foresee(). False: not known.
 */
bool stream_foresee(const struct stream *s, size_t ahead, struct wm_value *values, size_t count, uint64_t *number);

/* The number of the current record, which no other has, if it could have been foreseen; else 0. */
uint64_t stream_number(const struct stream *s);

/* What became of the current record: exactly one of these. windows_missed: of its windows, how many were complete. */
void stream_used(struct stream *s, int64_t windows_missed);
void stream_late(struct stream *s, int64_t windows_missed);
void stream_duplicate(struct stream *s);

/* Writes the current record, with a value for each stamp (NULL: there are none). */
void stream_pass(struct stream *s, const struct wm_value *values);

/* What passes, for a tool that makes rows of several records; only if is_passing. */
struct passing *stream_passing(struct stream *s);
struct outputs *stream_outputs(struct stream *s);

/*
 * The current record as a line that can be kept, and one that was kept, which is written, with this watermark in it if it is stamped. Between them
 * the rows of a stamped input are told the watermark by punctuation.
 */
struct wm_span stream_line(const struct stream *s);
void stream_put_line(struct stream *s, struct wm_span line, int64_t watermark_us);
void stream_tell_watermark(struct stream *s, int64_t watermark_us);

/* What makes a whole record the same as another: all of it but wm's own columns; appended to out. */
void stream_identity(struct stream *s, struct wm_buf *out);

/* Writes the current punctuation as it came. */
void stream_pass_punctuation(struct stream *s);

/* Writes punctuation into a stream of records that pass: a value in the column of that name, which is the band's or a stamp. */
void stream_put_lone(struct stream *s, struct wm_span name, const struct wm_value *value);

/* For a long step without rows: where a signal asks for an end, and nothing is lost by it, it ends the run, as among rows. self: the stream. */
void stream_pause(void *self);

/* Counts a row of results that was written by other ways. */
void stream_count_row(struct stream *s);

/* The watermark in force, or WM_TIME_NONE. */
int64_t stream_watermark_us(const struct stream *s);

/* Whether the watermark comes with the records; known once the first has come. */
bool stream_is_in_band(const struct stream *s);

/* Writes a row of results: a value for each column. */
void stream_put_row(struct stream *s, const struct wm_value *values);

/* Punctuation among rows of results: a value in this column, and nothing else. */
void stream_put_punctuation(struct stream *s, size_t column, const struct wm_value *value);

/* Writes results that are no rows, as they are. The stream was begun without columns, and has ended. */
void stream_put_text(struct stream *s, struct wm_span text);

/* Whether the input goes on behind this end: what is open was kept back (--eof hold), or the run was stopped. */
bool stream_is_held(const struct stream *s);

/* Whether the run ended as its state was too large, and keeps it for one with a higher limit. */
bool stream_is_kept_at_limit(const struct stream *s);

/* Whether progress objects are made, so that the operator is to count what they say. */
bool stream_has_progress(const struct stream *s);

/* Whether stream_set_state() is wanted after what an advance let go was written: a progress object is about to be made. Always at STREAM_TICK. */
bool stream_wants_state(const struct stream *s);
void stream_set_state(struct stream *s, const struct report_state *state);

/*
 * Writes the report and the summary, flushes and checks every output, frees, and returns the exit status. open_count: windows
 * that are not written. After a signal it does not return: the process dies by it.
 */
int stream_finish(struct stream *s, uint64_t open_count);

#endif
