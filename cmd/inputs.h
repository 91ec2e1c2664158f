/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs - the FILEs of a command as records: one after the other, or side by
 * side (--merge), where each is a source of its own.
 *
 * Sources are numbered from 0; without --merge there is one, which goes through
 * all FILEs. What is wrong with FILEs before anything is read ends the process:
 * one that cannot be opened (status 3), a header or format that does not fit
 * (status 2).
 */
#ifndef WM_CMD_INPUTS_H
#define WM_CMD_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cli.h"
#include "cmd/resume.h"
#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/record/reader.h"
#include "lib/record/record.h"

struct inputs;

struct inputs *inputs_open(const struct cli_common *common);
void inputs_close(struct inputs *inputs);

/* Asks for a column; returns its index in rec.fields. A name that is no column exits 2. */
size_t inputs_want(struct inputs *inputs, struct wm_span name);

/* The same for a column that may be missing; best behind all others. */
size_t inputs_want_optional(struct inputs *inputs, struct wm_span name);

/* Whether it is known already, from a header that inputs_begin() has looked at, that such a column is missing. */
bool inputs_lack(const struct inputs *inputs, size_t field);

/* All columns were asked for: checks the FILEs that can be checked before anything is read, so that one that would be refused later
   is refused now. */
void inputs_begin(struct inputs *inputs);

/* Between inputs_begin() and the first record, for --order time: a reader of its own over one of the FILEs (the
   caller frees it), and the FILEs put in the order of keys, equal ones as they were named. Exits 2 on a FILE that is no regular file. */
size_t inputs_files_count(const struct inputs *inputs);
struct wm_reader *inputs_peek(const struct inputs *inputs, size_t file);
void inputs_sort(struct inputs *inputs, const int64_t *keys);

/*
 * Appends the names of the columns that hold times (", " between them) by the first record of the first FILE, where that is a CSV file that can be
 * looked into: for advice.
 */
void inputs_suggest_times(const struct inputs *inputs, struct wm_buf *out);

/*
 * With a checkpoint, between inputs_begin() and the first record: tells resume the operands, and, when it has decided, goes on in each as it says.
 * The positions of those that have ended are told to it by the way; inputs_tell_positions() tells those of the open ones.
 */
void inputs_tell_operands(struct inputs *inputs, struct resume *resume);
void inputs_go_on(struct inputs *inputs);
/* A record that a source has read, and that is not processed yet; NULL: there is none. Its position is before that. Until the next one is read. */
void inputs_set_pending(struct inputs *inputs, size_t source, const struct wm_record *rec);
WM_MUST_CHECK bool inputs_tell_positions(struct inputs *inputs, struct wm_err *err);

/* A signal ends the run: says so where a pipe was left in the middle of a line, which no run will see. */
void inputs_tell_cut(const struct inputs *inputs);

/* Whether an input was all read in a run before, so that it is not to be read now. Of sources side by side, that of a source. */
bool inputs_is_done(const struct inputs *inputs, size_t source);

/* Whether what a source reads can be sought, so that it may be left anywhere. */
bool inputs_is_seekable(const struct inputs *inputs, size_t source);

/* Whether a source goes on in the middle of its FILE. */
bool inputs_is_amid(const struct inputs *inputs, size_t source);

/*
 * A row of a source of --source (NULL: without it) has this value in the column of --position: it is noted as its last one. False for a row that was
 * processed in a run before: of numbers those up to the one noted then, of texts the first row, if it has the same.
 */
bool inputs_pass_position(
	struct inputs *inputs, size_t number, const struct wm_value *source, const struct wm_value *value);

/* How many rows came again. */
uint64_t inputs_positions_skipped(const struct inputs *inputs);

/* Says of each input that is open where a quoted field has not ended, as a run that stops there leaves it. */
void inputs_tell_open_fields(const struct inputs *inputs);

/* Says once that the header or first record of TSV has a field in quotes, which stay there. */
void inputs_tell_quoted(const struct wm_reader *reader, bool *has_told);

/* Says of each FILE under --merge where the rest is left, as a run that keeps its state ends with the FILE that is furthest behind. */
void inputs_tell_left(const struct inputs *inputs);

/* Memory that records take which are longer than a buffer. */
size_t inputs_held_bytes(const struct inputs *inputs);

/* The layout of the stream, and which columns were in any record. Decode before inputs_go_on(). */
void inputs_encode_layout(const struct inputs *inputs, struct wm_buf *out);
WM_MUST_CHECK bool inputs_decode_layout(struct inputs *inputs, struct wm_get *in);

enum inputs_item {
	INPUTS_RECORD,
	INPUTS_REJECTED, /* *reject is filled */
	INPUTS_WAIT,     /* bytes are needed: inputs_fill() */
	INPUTS_FILE_END, /* a FILE has ended */
	INPUTS_END,      /* so have all of the source */
	INPUTS_FAILED,   /* *err is filled */
};

enum inputs_item inputs_next(
	struct inputs *inputs, size_t source, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err);

/*
 * Two inputs that are read in turn (wm-join): the FILE is opened before it is its turn, for a writer of both may wait for that; a FIFO
 * without waiting for a writer. Once, after inputs_begin(). Exits 3.
 */
void inputs_open_early(struct inputs *inputs);

/* Reads once while another input is being waited for; see wm_reader_read_ahead(). */
WM_MUST_CHECK bool inputs_read_ahead(struct inputs *inputs, uint64_t *bytes, struct wm_err *err);

bool inputs_has_ahead(const struct inputs *inputs);
bool inputs_is_ahead_at_end(const struct inputs *inputs);

/* Reads once. */
WM_MUST_CHECK bool inputs_fill(struct inputs *inputs, size_t source, struct wm_err *err);

/* The descriptor to poll, and the reader, of a source. */
int inputs_fd(const struct inputs *inputs, size_t source);
struct wm_reader *inputs_reader(const struct inputs *inputs, size_t source);

/* The FILE that a source is at, as it was named. */
const char *inputs_name(const struct inputs *inputs, size_t source);

/* The reader that knows the layout of the stream; its format is WM_FORMAT_AUTO until an input has told it. */
const struct wm_reader *inputs_layout(const struct inputs *inputs);

/* Whether a column was in any record so far. */
bool inputs_column_seen(const struct inputs *inputs, size_t field);

/* Over all sources. */
struct wm_reader_counts inputs_counts(const struct inputs *inputs);

/* Bytes of all FILEs where all are regular; 0 where one is not: for a progress bar. */
uint64_t inputs_bytes_total(const struct inputs *inputs);

#endif
