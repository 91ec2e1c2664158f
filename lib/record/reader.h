/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader - inputs of any format as one stream of records.
 *
 * A reader takes several inputs one after the other (CSV, TSV, NDJSON, or lines
 * of logs). The first that has a header or record fixes the format, the header,
 * the delimiter and the line end of the stream. Headers of later ones must name
 * the same columns; another order, delimiter or line end is put right when a
 * record is rendered (wm_reader_render). Readers of inputs side by side share
 * one such layout (wm_reader_adopt).
 *
 * Columns are asked for by name before the first input (wm_reader_want) and
 * come as rec.fields[], resolved once at each header. Nothing else of a record
 * is looked at, except that lines of NDJSON and of logs are walked whole:
 * whether a line is rejected never depends on the columns asked for.
 *
 * Reading never waits by itself: wm_reader_next() answers WM_READ_MORE when it
 * needs bytes, and the caller calls wm_reader_fill(), which reads once, when it
 * is ready to wait.
 *
 * Lines that are no records (empty lines, a header, a repeated header) are
 * skipped and counted apart. A byte order mark is dropped. CR LF ends a line as
 * LF does; a last line needs no line end. In CSV and TSV of a regular file that
 * has no LF in its first 64 KiB, CR alone does; elsewhere it is a letter.
 *
 * A reader says how far an input was taken (wm_reader_position), and begins one
 * there (wm_reader_open_at), in this process or another.
 */
#ifndef WM_RECORD_READER_H
#define WM_RECORD_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/err.h"
#include "lib/record/header.h"
#include "lib/record/nulls.h"
#include "lib/record/record.h"

enum wm_format {
	WM_FORMAT_AUTO = 0,
	WM_FORMAT_CSV,
	WM_FORMAT_TSV,
	WM_FORMAT_NDJSON,
	WM_FORMAT_CLF, /* this and the following: lines of text, see lines.h; never found by WM_FORMAT_AUTO */
	WM_FORMAT_LOGFMT,
	WM_FORMAT_LINES,
};

struct wm_reader_options {
	/* WM_FORMAT_AUTO: '{' as the first byte that is no blank or line end is NDJSON; else a tab in the first line and
	   no comma is TSV; else CSV. A delimiter or a pattern that is given decides it too. */
	enum wm_format format;
	char delimiter; /* of CSV; 0: by the format (',' or tab) */
	/* NULL: TSV has escapes; else it has none, and this is told of a value of another format that is to be written in it and
	   cannot stand there: it does not return. */
	void (*refuse_value)(struct wm_span value);
	bool no_header; /* columns are "1", "2", ... by the first record */
	/* NULL, or a comma list of names: CSV without a header line. "@FILE" takes them from the first line of FILE, a
	   header of CSV (a name that begins with @ is written "\@"). For WM_FORMAT_LINES it names the groups of the
	   pattern; for NDJSON it does nothing. */
	const char *columns;
	const char *pattern;     /* of WM_FORMAT_LINES: see wm_lines_new() */
	bool skips_unmatched;    /* lines of text that are not of their format are counted, not rejected */
	size_t record_bytes_max; /* longest record, its line end not counted; 0: WM_RECORD_BYTES_DEFAULT */
	/* The read buffer to begin with, it grows with the records; 0: WM_READ_BYTES. Less where many inputs are open. */
	size_t read_buffer_bytes;
	size_t read_bytes_max; /* most bytes of one read, for tests; 0: WM_READ_BYTES */
	bool keeps_partial;    /* a record that the end of its input cuts off is none: it is left for later */
	bool keeps_quoted; /* the same for a record of CSV with a quoted field that has not ended, and its like of TSV */
	bool keeps_open;   /* descriptors are the caller's to close, after WM_READ_END */
	/* Texts that are read as no value in rec.fields; borrowed; NULL: none, and an empty field of CSV is the empty text. */
	const struct wm_nulls *nulls;
};

struct wm_reader;

/*
 * Fails (WM_ERR_USAGE) on options that contradict each other, a delimiter that is a quote or line end, names given
 * twice, or a FILE of names that has no header; with WM_ERR_IO if it cannot be read. Cheap: buffers come with the input.
 */
struct wm_reader *wm_reader_new(const struct wm_reader_options *options, struct wm_err *err);
void wm_reader_free(struct wm_reader *reader);

/* Asks for a column; returns its index in rec.fields. The same name twice is one. The column is copied. Before the first input only. */
size_t wm_reader_want(struct wm_reader *reader, const struct wm_column *column);

/*
 * The same for a column that an input may lack: its value is absent then (wm_value_is_absent), and costs a record of CSV nothing where it was asked for
 * behind all that are there.
 */
size_t wm_reader_want_optional(struct wm_reader *reader, const struct wm_column *column);

/*
 * Takes over the layout (format, header, delimiter, line end) of another reader of the same options: what it has read,
 * else what wm_reader_check() has looked at. The inputs of both are held to it then, and rendered in it. False, and
 * nothing is changed, while from knows none (no header has come, or, without headers, no record). Before the first input only.
 */
WM_MUST_CHECK bool wm_reader_adopt(struct wm_reader *reader, const struct wm_reader *from);

enum wm_read_result {
	WM_READ_RECORD,   /* *rec is filled */
	WM_READ_REJECTED, /* *reject is filled: one record that cannot be read */
	WM_READ_MORE,     /* call wm_reader_fill() */
	WM_READ_END,      /* the current input has ended and was closed */
	WM_READ_FAILED,   /* *err is filled; the stream is at its end */
};

/*
 * A record of CSV of several lines that is rejected is rejected as the line in which its last quoted field opens (of TSV:
 * whose end a backslash has last taken along), with those before it, and the next line is read as the begin of a record: so one stray quote or backslash costs one line. A record is
 * too long by its bytes from its begin.
 *
 * Fields are for reading; reason is one of the static texts "ragged", "malformed-csv", "malformed-tsv",
 * "malformed-json", "malformed-line", "too-long", "bad-line-end".
 */
struct wm_reject {
	const char *reason;
	const char *column; /* its name where one is to blame, else NULL */
	char detail[256];   /* what is wrong, for a message: "3 fields, the header has 4" */
	uint64_t line;      /* where the record begins, from 1 */
	uint64_t lines;     /* that it took; 0: those of raw */
	struct wm_span
		raw; /* as it stands (wm_reader_as_came); of a too long one the first bytes, at most WM_SHOWN_BYTES_MAX */
};

/* Lines that it took. */
uint64_t wm_reject_lines(const struct wm_reject *reject);

/*
 * Begins the next input. The reader takes over fd and closes it. name is for
 * messages and is copied. On a pipe it asks for the largest pipe buffer.
 */
void wm_reader_open(struct wm_reader *reader, int fd, const char *name);

/* How far the current input, or the last one, was taken. */
struct wm_reader_position {
	uint64_t offset; /* bytes of records that were handed out, of lines that are none, and of the header */
	uint64_t lines;  /* and lines of these */
	bool is_at_end;  /* its end was met */
	bool has_no_rows; /* nothing stands before offset but a header; the same as told to wm_reader_open_at() until its records are reached */
	struct wm_span rest; /* what was read behind offset; borrowed until the next call */
};
struct wm_reader_position wm_reader_position(const struct wm_reader *reader);

/* The same before the record that was handed out last; NULL: after it. */
struct wm_reader_position wm_reader_position_before(const struct wm_reader *reader, const struct wm_record *rec);

/* What has to be known of that input to go on in it. */
void wm_reader_encode_input(const struct wm_reader *reader, struct wm_buf *out);

struct wm_reader_start {
	uint64_t offset;
	uint64_t lines;
	bool has_no_rows;
	struct wm_span input; /* of wm_reader_encode_input() */
	/* fd gives what follows rest, which is what was read behind offset; else it gives the input from its first byte, so that its header is
	   read once more. */
	bool is_continued;
	struct wm_span rest;
};

/*
 * The same for an input that was taken that far before. The texts of start are copied. One that is not continued is sought, or, where
 * that cannot be, read and skipped up to there; if it ends before, reading fails (WM_ERR_IO). One that is continued may repeat its header: then
 * rest is a record that lacked its line end.
 */
void wm_reader_open_at(struct wm_reader *reader, int fd, const char *name, const struct wm_reader_start *start);

/*
 * The layout of the stream, for a reader of the same options that has no input yet. Decoding is false for what is
 * no layout.
 */
void wm_reader_encode_layout(const struct wm_reader *reader, struct wm_buf *out);
WM_MUST_CHECK bool wm_reader_decode_layout(struct wm_reader *reader, struct wm_get *in);

/* The format of a layout by its first byte, for who has no reader; WM_FORMAT_AUTO: there is none such. */
enum wm_format wm_reader_format_kept(uint8_t kept);

/* Whether a layout was decoded of TSV from when that had quotes, and is not read as CSV now: texts of then may differ from those of the same bytes. */
bool wm_reader_had_quotes(const struct wm_reader *reader);

/*
 * The next thing in the current input. WM_READ_FAILED with WM_ERR_USAGE: a
 * header lacks a wanted column (the message names the nearest and lists the columns) or has it twice, a
 * later header does not name the same columns, a later input is of another format. WM_ERR_IO: reading failed.
 * Messages begin with "NAME:LINE: ".
 */
enum wm_read_result wm_reader_next(
	struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err);

/* Reads once. False with WM_ERR_IO; an interrupted read (EINTR) is true and no progress. */
WM_MUST_CHECK bool wm_reader_fill(struct wm_reader *reader, struct wm_err *err);

/*
 * What a wanted column says in a record that has not come yet, 1 being the next: for work that can be begun early. False where that is not
 * known without reading it: only lines of CSV without quotes can be looked into. It may prove to be no record after all; if it is one,
 * its number is *number, as wm_reader_number() will tell.
 */
bool wm_reader_foresee(
	const struct wm_reader *reader, size_t ahead, size_t index, struct wm_value *value, uint64_t *number);

/* The number of the record that came last, which no other of the reader has, if it could have been foreseen; else 0. */
uint64_t wm_reader_number(const struct wm_reader *reader);

/*
 * Reads once, while it is not this input's turn: what came is kept, and given out by wm_reader_fill() before anything else. After
 * its end nothing more is read. *bytes: how much is kept.
 */
WM_MUST_CHECK bool wm_reader_read_ahead(struct wm_reader *reader, uint64_t *bytes, struct wm_err *err);

/* Whether wm_reader_fill() has something that was read ahead, be it the end. */
bool wm_reader_has_ahead(const struct wm_reader *reader);
bool wm_reader_is_ahead_at_end(const struct wm_reader *reader);

/* What was read ahead and not given out; borrowed until the next call. */
struct wm_span wm_reader_ahead(const struct wm_reader *reader);

/* What the last call of wm_reader_fill() has read; borrowed until the next call. */
struct wm_span wm_reader_filled(const struct wm_reader *reader);

/* The descriptor of the current input, to poll; -1 between inputs. */
int wm_reader_fd(const struct wm_reader *reader);
const char *wm_reader_name(const struct wm_reader *reader);

/*
 * Looks at the beginning of an input before it is its turn (regular files):
 * false, with the message that reading it would give, if its header or format would be refused as a usage error. The first call
 * fixes the format and header that later calls are held to; it changes nothing for reading. The offset of fd is left where it was.
 */
WM_MUST_CHECK bool wm_reader_check(struct wm_reader *reader, int fd, const char *name, struct wm_err *err);

/* Whether what it has looked at lacks an optional column; false where that is not known before records are read (NDJSON, logfmt). */
bool wm_reader_checked_lacks(const struct wm_reader *reader, size_t index);

/*
 * Of the stream, once its first input with a header or record was begun; WM_FORMAT_AUTO before. CSV without a header
 * has a format with its first record that is whole, which says how many columns there are.
 */
enum wm_format wm_reader_format(const struct wm_reader *reader);
char wm_reader_delimiter(const struct wm_reader *reader);
const char *wm_reader_line_end(const struct wm_reader *reader); /* "\n" or "\r\n"; "\n" before */

/* As asked for; NULL: TSV has escapes. */
void (*wm_reader_refuse_value(const struct wm_reader *reader))(struct wm_span value);

/* The header line as it came, with a line end, without byte order mark; empty for NDJSON, lines of text, --no-header and --columns. */
struct wm_span wm_reader_header(const struct wm_reader *reader);

/* The columns of the stream, in their order; none for NDJSON and logfmt. Lines of text: those of the format. */
const struct wm_header *wm_reader_columns(const struct wm_reader *reader);

/* The names that the options tell (columns), whatever the format; none where they tell none. */
const struct wm_header *wm_reader_names(const struct wm_reader *reader);

/* Lines of text, logfmt aside: what a column of the current record says; borrowed until the next one. */
struct wm_value wm_reader_line_field(struct wm_reader *reader, size_t column);

/*
 * A text of the current input, such as rec.raw, as it stands there: of an input whose lines end in CR alone readers hold CR for LF and LF for
 * CR. It is text, or in scratch (born WM_BUF_UNBOUNDED), whose content is replaced.
 */
struct wm_span wm_reader_as_came(const struct wm_reader *reader, struct wm_span text, struct wm_buf *scratch);

/* What wm_reader_render() would append: the record's own text where that is it, else a text in scratch (born WM_BUF_UNBOUNDED),
   whose content is replaced. */
struct wm_span wm_reader_line(struct wm_reader *reader, const struct wm_record *rec, struct wm_buf *scratch);

/* The current record (also a rejected one that is whole) in the layout of the stream, with its line end; appended to out
   (born WM_BUF_UNBOUNDED). Byte for byte what came where the layout is the same, but for a line end that the last line lacked. */
void wm_reader_render(struct wm_reader *reader, const struct wm_record *rec, struct wm_buf *out);

/* Whether a wanted column was there in any record so far (NDJSON, logfmt; else the header or format says so: true for all but optional ones). */
bool wm_reader_column_seen(const struct wm_reader *reader, size_t index);

/* What a wanted column of the current record says as it came, a text that stands for a missing value included. */
struct wm_value wm_reader_said(const struct wm_reader *reader, size_t index);

struct wm_reader_lines {
	uint64_t first;
	uint64_t last;
};

/* Whether a record of the current input had more than WM_RECORD_LINES_TOLD lines, and which: the first of them. */
bool wm_reader_long_record(const struct wm_reader *reader, struct wm_reader_lines *lines);

/* The line of the header or first record of the current or last input, if it is TSV, that has a field with quotes around it; 0: none has. */
uint64_t wm_reader_quoted_line(const struct wm_reader *reader);

/* The line in which a quoted field of CSV begins that has not ended where the current or last input stands (of TSV: whose end a
   backslash takes along, and nothing is behind it); 0: there is none. */
uint64_t wm_reader_open_field(const struct wm_reader *reader);

/* Memory that records take which are longer than the first buffer. */
size_t wm_reader_held_bytes(const struct wm_reader *reader);

/* Counts so far, over all inputs. */
struct wm_reader_counts {
	uint64_t bytes;
	uint64_t lines_blank;
	uint64_t headers_repeated;
	uint64_t lines_unmatched; /* with skips_unmatched */
};
struct wm_reader_counts wm_reader_counts(const struct wm_reader *reader);

#endif
