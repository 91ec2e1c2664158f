/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer - buffered, checked output, and computed rows in CSV, TSV or NDJSON.
 *
 * Bytes are held until the buffer is full or wm_writer_flush(); every write is
 * checked, and the first failure is kept: after it nothing more is written and
 * each call fails with the same message. wm_writer_close() flushes and checks
 * close() too.
 */
#ifndef WM_RECORD_WRITER_H
#define WM_RECORD_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/record/dialect.h"
#include "lib/record/nulls.h"
#include "lib/record/reader.h"
#include "lib/record/record.h"

struct wm_writer;

/* fd is taken over and closed with the writer; name is for messages ("standard output") and copied. */
struct wm_writer *wm_writer_new(int fd, const char *name);

/*
 * A write that waits for whoever reads ends early by a signal. Then told is called, before it goes on: has_written says whether
 * anything went out since it began or was told last. It may end the process, and must not use the writer. Copied.
 */
struct wm_writer_wait {
	void (*told)(void *self, bool has_written);
	void *self;
};
void wm_writer_set_wait(struct wm_writer *writer, const struct wm_writer_wait *wait);

/* Flushes, closes, checks, frees. On failure *err is filled (WM_ERR_IO: "NAME: No space left on device") and the writer is gone all the same. */
WM_MUST_CHECK bool wm_writer_close(struct wm_writer *writer, struct wm_err *err);

WM_MUST_CHECK bool wm_writer_put(struct wm_writer *writer, struct wm_span bytes, struct wm_err *err);

/*
 * For what is put together where it goes out: room in the buffer for len bytes, WM_WRITER_ROOM_MAX at most, of which those that are used
 * are taken with wm_writer_take(), before anything else is done with the writer. NULL with *err when there is none, as the buffer could not be written.
 */
#define WM_WRITER_ROOM_MAX ((size_t)32 << 10)
WM_MUST_CHECK char *wm_writer_room(struct wm_writer *writer, size_t len, struct wm_err *err);
void wm_writer_take(struct wm_writer *writer, size_t len);

WM_MUST_CHECK bool wm_writer_flush(struct wm_writer *writer, struct wm_err *err);

/*
 * Before the first byte: where that would stand behind a line without an end in a regular file, puts a line end, as those of the file are.
 * *was_open: that was so. A file that may not be read is taken to be in order; a read that fails is false.
 */
WM_MUST_CHECK bool wm_writer_end_line(struct wm_writer *writer, bool *was_open, struct wm_err *err);

/*
 * The first bytes of the regular file that it writes to, at most len_max, and in *len how many these are: 0 where it is none or may not be
 * read. False with WM_ERR_IO where reading fails.
 */
WM_MUST_CHECK bool wm_writer_first_bytes(
	const struct wm_writer *writer, char *bytes, size_t len_max, size_t *len, struct wm_err *err);

int wm_writer_fd(const struct wm_writer *writer);

/* Whether bytes wait in the buffer. */
bool wm_writer_is_pending(const struct wm_writer *writer);

/* Bytes taken since it was opened, those in the buffer included. */
uint64_t wm_writer_bytes(const struct wm_writer *writer);

/*
 * How computed rows look. CSV: fields quoted where needed (delimiter, quote, CR, LF, and a lone empty
 * field of a one-column row). TSV: with escapes (tsv.h); a lone empty field of a one-column row is an empty line. In both
 * WM_KIND_NULL is empty. NDJSON: numbers, true, false and JSON as their text, texts escaped
 * (invalid UTF-8 byte by byte as \ufffd), WM_KIND_NULL as null.
 */
struct wm_row_format {
	enum wm_format format; /* not WM_FORMAT_AUTO */
	char delimiter;        /* of CSV */
	const char *line_end;  /* "\n" or "\r\n"; borrowed, static */
	/* NULL: TSV has escapes; else it has none, and this is told of a value that cannot stand there: it does not return. */
	void (*refuse_value)(struct wm_span value);
};

/* How rows of CSV and TSV are read. */
struct wm_dialect wm_row_dialect(const struct wm_row_format *format);

/* Of a stream's records; lines of logs have the form of CSV, those of logfmt that of NDJSON. */
struct wm_row_format wm_row_format_of(const struct wm_reader *reader);

/* Append one field to a row that is being built in out (born WM_BUF_UNBOUNDED). index counts from 0. name is for NDJSON. */
void wm_row_put(struct wm_buf *out, const struct wm_row_format *format, size_t index, struct wm_span name,
	const struct wm_value *value);
/*
 * The line end for a row of CSV or TSV that was put together as it stands: CR LF where it ends in a CR, which would be taken for a part of
 * the line end else.
 */
const char *wm_row_line_end(const struct wm_row_format *format, struct wm_span row);

/* The same for a field of CSV or TSV as it stands in a row of the same form. */
void wm_row_put_raw(struct wm_buf *out, const struct wm_row_format *format, size_t index, struct wm_span field);

void wm_row_end(struct wm_buf *out, const struct wm_row_format *format, size_t fields_count);

/*
 * The same for a field of CSV or TSV whose value is text: one that would be read as a missing value (nulls; NULL: there are none) gets quotes in CSV.
 */
void wm_row_put_guarded(struct wm_buf *out, const struct wm_row_format *format, const struct wm_nulls *nulls,
	size_t index, const struct wm_value *value);

/* As wm_row_put(), for all fields of a row and its end at once: names are for NDJSON, one for each value. */
void wm_row_put_all(struct wm_buf *out, const struct wm_row_format *format, const struct wm_span *names,
	const struct wm_value *values, size_t count);

/* Whether times and numbers that are printed here need no quotes in CSV: the delimiter is none of their characters. */
bool wm_row_is_plain(const struct wm_row_format *format);

/*
 * A line of CSV or TSV with such fields behind its last one, its line end as it came: put to a place with room for
 * wm_row_behind_bytes(). Returns the place behind it.
 */
size_t wm_row_behind_bytes(struct wm_span line, const struct wm_value *values, size_t count);
char *wm_row_put_behind(
	char *to, const struct wm_row_format *format, struct wm_span line, const struct wm_value *values, size_t count);

/* A JSON string with its quotes, as above. */
void wm_json_put_string(struct wm_buf *out, struct wm_span text);

/* The name of a member, a plain word, with what stands before it: a comma unless out ends in the opening brace. */
void wm_json_put_name(struct wm_buf *out, const char *name);

/* The same for a text; numbers, words and nested values as they are, null as null. */
void wm_json_put_value(struct wm_buf *out, const struct wm_value *value);

/* Whether a text is wholly a JSON number. */
bool wm_json_is_number(struct wm_span text);

/* A CSV text as a value of an NDJSON row: a JSON number is one, the empty text null, all else a text. */
struct wm_value wm_value_from_csv(struct wm_span text);

#endif
