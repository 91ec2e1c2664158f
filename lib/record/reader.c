/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/shown.h"
#include "lib/record/cut.h"
#include "lib/record/dialect.h"
#include "lib/record/foreign.h"
#include "lib/record/header.h"
#include "lib/record/lines.h"
#include "lib/record/ndjson.h"
#include "lib/record/scan.h"
#include "lib/record/tsv.h"
#include "lib/record/writer.h"

/* Behind the data, readable: for the scan, for the index of NDJSON, and for loads of whole words. */
#define SLACK_BYTES 64
_Static_assert(SLACK_BYTES >= WM_SCAN_SLACK && SLACK_BYTES >= WM_NDJSON_SLACK, "slack for both");

/* What the first batch behind a record that was cut back looks at; each that follows is twice as long. */
#define BATCH_BYTES_FIRST ((size_t)512)

/* What looking ahead reads at once; a header is rarely longer. */
#define CHECK_READ_BYTES ((size_t)64 << 10)

/* No record has this length: where there is no header line to be repeated. */
#define NO_HEADER_LEN ((size_t)1 << 62)

#define NO_FIELD UINT32_MAX

/* So many bytes without LF, and lines may end in CR alone. */
#define LINE_END_BYTES ((size_t)64 << 10)

/* Behind what is wrong with a line that tail wrote. */
static const char tail_hint[] = ": tail wrote this line between files, use tail -q";

static const char byte_order_mark[] = "\xEF\xBB\xBF";

enum stage {
	STAGE_CLOSED,
	STAGE_AGAIN,  /* goes on where it was left, and what it is is known */
	STAGE_BEGIN,  /* nothing looked at: a byte order mark may come */
	STAGE_SNIFF,  /* the first line that is not blank has not come */
	STAGE_HEADER, /* the next record is a CSV header */
	STAGE_CSV,
	STAGE_NDJSON,
	STAGE_LINES,
	STAGE_SKIP_CSV, /* in a line that is too long and was told of */
	STAGE_SKIP_NDJSON,
	STAGE_SKIP_LINES,
};

/* Where an input is to go on. */
struct go_on {
	bool is_due;       /* the place was not reached yet */
	bool is_continued; /* nothing is to be skipped */
	bool is_joining;   /* the next bytes may be the header once more */
	bool is_skipping;  /* in a line that is too long */
	uint64_t offset;
	uint64_t lines;
	bool has_no_rows;
	size_t header_len; /* bytes at the begin of the buffer that repeat the header, and are none of the input */
	size_t rest_len;   /* bytes behind them that were read before */
};

struct wm_reader {
	/* What was asked for. */
	struct wm_reader_options options; /* sizes and no_header are set, columns is not */
	struct wm_header names;           /* that --columns gives */
	enum wm_format names_format; /* of the FILE they came from: what is no NDJSON is that; else WM_FORMAT_AUTO */
	struct wm_column *wants;
	bool *is_optional; /* of each */
	size_t wants_count;

	/* The stream. */
	enum wm_format format;
	char delimiter;
	const char *line_end;
	bool had_quotes; /* it was kept as TSV when that had quotes */
	struct wm_buf header_line;
	struct wm_header columns; /* count 0: not known yet */
	char *first_name;         /* of the input that has fixed all this; NULL: none yet */
	struct wm_reader_counts counts;
	struct wm_reader *checker; /* looks ahead; its stream is what was looked at */

	/* The current input. */
	int fd;
	char *name;
	enum stage stage;
	enum stage last_stage; /* of one that is closed */
	bool is_borrowed;      /* fd is not ours to close */
	bool is_at_end;
	uint64_t read_offset; /* where data[end] stands */
	uint64_t records_at;  /* where the records begin; UINT64_MAX before it is known */
	size_t filled;        /* bytes that the last read gave */
	struct go_on go_on;
	uint64_t line; /* where data[begin] stands */
	enum wm_format input_format;
	char input_delimiter;
	const char *input_line_end;
	struct wm_buf input_header; /* its header line, without line end */
	size_t input_header_len;    /* of it, or NO_HEADER_LEN */
	bool is_in_layout;          /* it is written as the stream is */
	/*
	 * Its lines end in CR alone: each CR is an LF here, and each LF a CR, so that all else is as ever. What leaves is put back
	 * (wm_reader_as_came), but for the line ends of records.
	 */
	bool is_of_cr;
	bool is_line_end_known; /* whether it is so was looked at */
	struct wm_buf swapped;  /* such a text put back */
	uint32_t *order;        /* field of the input for each column of the stream; NULL: the same order */

	/* The buffer: what was read and not yet taken is data[begin] to data[end]. */
	char *data;
	size_t begin;
	size_t end;
	size_t capacity; /* SLACK_BYTES are behind it */
	size_t looked;   /* bytes behind begin that need no second look */

	/* Read before it was wanted. */
	struct wm_buf ahead;
	size_t ahead_taken;
	bool is_ahead_at_end;

	/* Fields of the current record; of CSV, the place of each in the input. */
	struct wm_value *values;
	uint32_t *fields;      /* NO_FIELD: an optional column that the input lacks */
	size_t active_count;   /* CSV: of the wanted columns, up to the last one that is there */
	bool has_gaps;         /* among them is one that is not */
	bool is_plain;         /* fields stand in the record as they are read */
	struct wm_value *came; /* with nulls: what they say as they came; else NULL */
	bool wants_last;       /* the field that may have a CR behind it is one of them */

	/* CSV: a batch of records, and one record at a time where the scan does not go. */
	struct wm_scan *scan;
	const char *batch;
	size_t row;
	uint64_t rows_before; /* of all batches before */
	size_t row_other;     /* the row after the last call that did not find an ordinary record */
	size_t batch_bytes;   /* how much the next one is to look at */
	struct wm_cut cut;
	struct wm_buf *said; /* of each wanted column: what a field says that holds doubled quotes or escapes */
	struct wm_cut_finder finder;
	bool is_finding;                    /* looked and finder belong to an unfinished record at begin */
	struct wm_reader_lines long_record; /* first 0: there was none */
	bool looks_for_quotes;              /* TSV: the header and the first record are looked at */
	uint64_t quoted_line;               /* where these have a field in quotes; 0: nowhere */

	struct wm_ndjson *ndjson;
	bool has_lines; /* a batch of NDJSON is not at its end */

	struct wm_lines *lines; /* of a format that is one of lines of text */
};

static bool
is_text_lines(enum wm_format format)
{
	return format == WM_FORMAT_CLF || format == WM_FORMAT_LOGFMT || format == WM_FORMAT_LINES;
}

static struct wm_dialect
dialect_of(const struct wm_reader *reader, enum wm_format format, char delimiter)
{
	enum wm_marks of_tsv = reader->options.refuse_value == NULL ? WM_MARKS_ESCAPES : WM_MARKS_NONE;

	return (struct wm_dialect){ delimiter, format == WM_FORMAT_TSV ? of_tsv : WM_MARKS_QUOTES };
}

static struct wm_dialect
input_dialect(const struct wm_reader *reader)
{
	return dialect_of(reader, reader->input_format, reader->input_delimiter);
}

static const char *
format_name(enum wm_format format)
{
	return format == WM_FORMAT_NDJSON ? "NDJSON" : format == WM_FORMAT_TSV ? "TSV" : "CSV";
}

static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

/* ---- options ---- */

static bool
check_options(const struct wm_reader_options *options, struct wm_err *err)
{
	char delimiter = options->delimiter;

	if (delimiter == '"' || delimiter == '\n' || delimiter == '\r')
		return wm_err_set(err, WM_ERR_USAGE, "a quote or line end cannot be the delimiter: name another byte");
	if (delimiter != '\0' && options->format == WM_FORMAT_NDJSON)
		return wm_err_set(err, WM_ERR_USAGE, "NDJSON has no delimiter: leave it out, or read CSV");
	if (delimiter != '\0' && delimiter != '\t' && options->format == WM_FORMAT_TSV)
		return wm_err_set(err, WM_ERR_USAGE, "TSV has a tab as its delimiter: leave yours out, or read CSV");
	if (delimiter != '\0' && is_text_lines(options->format))
		return wm_err_set(err, WM_ERR_USAGE, "lines of text have no delimiter: leave it out, or read CSV");
	if (options->pattern != NULL && options->format != WM_FORMAT_LINES &&
		(options->format != WM_FORMAT_AUTO || delimiter != '\0'))
		return wm_err_set(err, WM_ERR_USAGE, "a pattern is for lines of text: read lines, or leave it out");
	if (options->pattern == NULL && options->format == WM_FORMAT_LINES)
		return wm_err_set(err, WM_ERR_USAGE,
			"lines need a pattern: give --pattern REGEX, or @kubectl, @syslog, @haproxy");
	if (options->columns != NULL && (options->format == WM_FORMAT_CLF || options->format == WM_FORMAT_LOGFMT))
		return wm_err_set(err, WM_ERR_USAGE,
			"the columns of clf and logfmt have names of their own: leave --columns out");
	if (options->record_bytes_max > WM_RECORD_BYTES_HIGHEST)
		return wm_err_set(err, WM_ERR_USAGE, "a record limit of %zu bytes is too high: %zu is the highest",
			options->record_bytes_max, WM_RECORD_BYTES_HIGHEST);
	return true;
}

static bool
read_names(struct wm_reader *reader, const char *list, struct wm_err *err)
{
	struct wm_span rest = wm_span_of(list), part;
	struct wm_span *names = NULL;
	struct wm_buf text;
	size_t count = 0, at = 0;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	while (wm_list_next(&rest, ',', &part)) {
		size_t begin = text.len;

		wm_list_unescape(part, &text);
		names = wm_reallocarray(names, count + 1, sizeof(*names));
		names[count++].len = text.len - begin;
	}
	for (size_t i = 0; i < count; at += names[i++].len)
		names[i].data = text.len == 0 ? "" : text.data + at;
	wm_header_take(&reader->names, names, count);
	free(names);
	wm_buf_reset(&text);

	size_t twice = wm_header_find_twice(&reader->names);
	if (count > WM_COLUMNS_MAX) {
		wm_err_set(err, WM_ERR_USAGE, "%zu columns are named: at most %d can be read", count, WM_COLUMNS_MAX);
	} else if (twice < count) {
		wm_shown(reader->names.names[twice], &text);
		wm_err_set(err, WM_ERR_USAGE, "column '%.*s' is named twice: give each its own name", (int)text.len,
			text.data);
	}
	wm_buf_release(&text);
	return count <= WM_COLUMNS_MAX && twice == count;
}

/* The options are fine; names of columns are for the caller to set. */
static struct wm_reader *
new_reader(const struct wm_reader_options *options)
{
	struct wm_reader *reader = wm_calloc(1, sizeof(*reader));

	reader->options = *options;
	reader->is_borrowed = options->keeps_open;
	reader->options.columns = NULL; /* both are for wm_reader_new() alone */
	reader->options.pattern = NULL;
	reader->fd = -1;
	reader->batch_bytes = WM_SCAN_BYTES_MAX;
	reader->values = wm_calloc(1, sizeof(*reader->values)); /* a place to count from where no column is wanted */
	wm_buf_init(&reader->header_line, WM_BUF_UNBOUNDED);
	wm_buf_init(&reader->input_header, WM_BUF_UNBOUNDED);
	wm_buf_init(&reader->ahead, WM_BUF_UNBOUNDED);
	wm_buf_init(&reader->swapped, WM_BUF_UNBOUNDED);
	if (options->record_bytes_max == 0)
		reader->options.record_bytes_max = WM_RECORD_BYTES_DEFAULT;
	if (options->read_buffer_bytes == 0)
		reader->options.read_buffer_bytes = WM_READ_BYTES;
	if (options->read_bytes_max == 0)
		reader->options.read_bytes_max = WM_READ_BYTES;
	if (options->delimiter != '\0' && options->format == WM_FORMAT_AUTO)
		reader->options.format = WM_FORMAT_CSV;
	if (options->pattern != NULL)
		reader->options.format = WM_FORMAT_LINES;
	reader->line_end = "\n";
	reader->delimiter = options->delimiter != '\0' ? options->delimiter
		: options->format == WM_FORMAT_TSV     ? '\t'
						       : ',';
	return reader;
}

void
wm_reader_free(struct wm_reader *reader)
{
	if (reader == NULL)
		return;
	wm_reader_free(reader->checker);
	if (reader->fd >= 0 && !reader->is_borrowed)
		close(reader->fd);
	for (size_t i = 0; i < reader->wants_count; i++) {
		wm_column_release(&reader->wants[i]);
		wm_buf_release(&reader->said[i]);
	}
	free(reader->wants);
	free(reader->is_optional);
	free(reader->said);
	wm_header_release(&reader->names);
	wm_header_release(&reader->columns);
	wm_buf_release(&reader->header_line);
	wm_buf_release(&reader->input_header);
	wm_buf_release(&reader->ahead);
	wm_buf_release(&reader->swapped);
	free(reader->first_name);
	free(reader->name);
	free(reader->order);
	free(reader->data);
	free(reader->values);
	free(reader->came);
	free(reader->fields);
	wm_scan_free(reader->scan);
	wm_cut_release(&reader->cut);
	wm_ndjson_free(reader->ndjson);
	wm_lines_free(reader->lines);
	free(reader);
}

static struct wm_span
name_of(const struct wm_column *column)
{
	return wm_span(column->name, column->name_len);
}

/* By name and path: "a.b" and "a\.b" are two in NDJSON. */
static bool
is_same_column(const struct wm_column *a, const struct wm_column *b)
{
	bool is_same = wm_span_equal(name_of(a), name_of(b)) && a->path_count == b->path_count;

	for (size_t i = 0; is_same && i < a->path_count; i++)
		is_same = wm_span_equal(wm_span(a->path[i], a->path_len[i]), wm_span(b->path[i], b->path_len[i]));
	return is_same;
}

static size_t
want(struct wm_reader *reader, const struct wm_column *column, bool is_optional)
{
	size_t index = 0;

	assert(reader->name == NULL && reader->checker == NULL);
	while (index < reader->wants_count && !is_same_column(&reader->wants[index], column))
		index++;
	if (index < reader->wants_count) {
		reader->is_optional[index] = reader->is_optional[index] && is_optional;
		return index;
	}
	reader->wants_count++;
	reader->wants = wm_reallocarray(reader->wants, index + 1, sizeof(*reader->wants));
	reader->is_optional = wm_reallocarray(reader->is_optional, index + 1, sizeof(*reader->is_optional));
	reader->is_optional[index] = is_optional;
	reader->values = wm_reallocarray(reader->values, index + 1, sizeof(*reader->values));
	if (reader->options.nulls != NULL)
		reader->came = wm_reallocarray(reader->came, index + 1, sizeof(*reader->came));
	reader->fields = wm_reallocarray(reader->fields, index + 1, sizeof(*reader->fields));
	reader->said = wm_reallocarray(reader->said, index + 1, sizeof(*reader->said));
	reader->fields[index] = is_optional ? NO_FIELD : 0;
	wm_buf_init(&reader->said[index], WM_BUF_UNBOUNDED);
	struct wm_column *copy = &reader->wants[index];
	*copy = (struct wm_column){
		.name = wm_memdup(column->name, column->name_len),
		.name_len = column->name_len,
		.path = wm_calloc(column->path_count, sizeof(*copy->path)),
		.path_len = wm_calloc(column->path_count, sizeof(*copy->path_len)),
		.path_count = column->path_count,
	};
	for (size_t i = 0; i < column->path_count; i++) {
		copy->path[i] = wm_memdup(column->path[i], column->path_len[i]);
		copy->path_len[i] = column->path_len[i];
	}
	if (reader->lines != NULL && reader->options.format == WM_FORMAT_LOGFMT)
		wm_lines_want(reader->lines, name_of(copy));
	return index;
}

size_t
wm_reader_want(struct wm_reader *reader, const struct wm_column *column)
{
	return want(reader, column, false);
}

size_t
wm_reader_want_optional(struct wm_reader *reader, const struct wm_column *column)
{
	return want(reader, column, true);
}

/* ---- the input and its bytes ---- */

static void
grow_buffer(struct wm_reader *reader, size_t capacity)
{
	reader->data = wm_reallocarray(reader->data, capacity + SLACK_BYTES, 1);
	reader->capacity = capacity;
}

static void
begin_input(struct wm_reader *reader, int fd, const char *name)
{
	assert(reader->fd < 0);
	reader->fd = fd;
	free(reader->name);
	reader->name = wm_memdup(name, strlen(name));
	reader->stage = STAGE_BEGIN;
	reader->is_at_end = false;
	reader->line = 1;
	reader->begin = reader->end = reader->looked = reader->filled = 0;
	reader->read_offset = 0;
	reader->records_at = UINT64_MAX;
	reader->go_on = (struct go_on){ 0 };
	reader->is_finding = false;
	reader->has_lines = false;
	wm_buf_reset(&reader->ahead);
	reader->ahead_taken = 0;
	reader->is_ahead_at_end = false;
	if (reader->scan != NULL)
		reader->row = reader->scan->rows_count;
	reader->long_record = (struct wm_reader_lines){ 0 };
	reader->looks_for_quotes = false;
	reader->quoted_line = 0;
	reader->is_of_cr = reader->is_line_end_known = false;
	reader->input_header_len = NO_HEADER_LEN;
	free(reader->order);
	reader->order = NULL;
	if (reader->data == NULL)
		grow_buffer(reader,
			reader->options.read_bytes_max < reader->options.read_buffer_bytes
				? reader->options.read_bytes_max
				: reader->options.read_buffer_bytes);
}

static void
advise(const struct wm_reader *reader, int fd)
{
	struct stat status;

	/* Both only make it faster, and may fail. */
	if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode))
		(void)fcntl(fd, F_SETPIPE_SZ, (int)reader->options.read_buffer_bytes);
	else
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

void
wm_reader_open(struct wm_reader *reader, int fd, const char *name)
{
	begin_input(reader, fd, name);
	advise(reader, fd);
}

static void
close_input(struct wm_reader *reader)
{
	if (!reader->is_borrowed)
		close(reader->fd);
	reader->fd = -1;
	reader->last_stage = reader->stage;
	reader->stage = STAGE_CLOSED;
}

/* What was read ahead goes first; 0: it is at its end. */
static size_t
take_ahead(struct wm_reader *reader, size_t room)
{
	struct wm_buf *ahead = &reader->ahead;
	size_t left = ahead->len - reader->ahead_taken, len = left < room ? left : room;

	if (len != 0)
		memcpy(reader->data + reader->end, ahead->data + reader->ahead_taken, len);
	reader->ahead_taken += len;
	if (reader->ahead_taken == ahead->len) {
		wm_buf_reset(ahead);
		reader->ahead_taken = 0;
	}
	return len;
}

bool
wm_reader_read_ahead(struct wm_reader *reader, uint64_t *bytes, struct wm_err *err)
{
	struct wm_buf *ahead = &reader->ahead;

	assert(reader->fd >= 0);
	if (!reader->is_ahead_at_end) {
		char *room = wm_buf_room(ahead, reader->options.read_bytes_max);
		ssize_t got = read(reader->fd, room, reader->options.read_bytes_max);

		if (got < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
			wm_err_set(err, WM_ERR_IO, "%s: %s", reader->name, strerror(errno));
			close_input(reader);
			return false;
		}
		reader->is_ahead_at_end = got == 0;
		ahead->len += got > 0 ? (size_t)got : 0;
	}
	*bytes = ahead->len - reader->ahead_taken;
	return true;
}

bool
wm_reader_has_ahead(const struct wm_reader *reader)
{
	return reader->ahead.len != 0 || reader->is_ahead_at_end;
}

struct wm_span
wm_reader_ahead(const struct wm_reader *reader)
{
	if (reader->ahead.len == 0)
		return wm_span(NULL, 0);
	return wm_span(reader->ahead.data + reader->ahead_taken, reader->ahead.len - reader->ahead_taken);
}

bool
wm_reader_is_ahead_at_end(const struct wm_reader *reader)
{
	return reader->is_ahead_at_end;
}

/* CR for LF and LF for CR. */
static __attribute__((noinline)) void
swap_line_ends(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool is_line_end = text[i] == '\n' || text[i] == '\r';

		text[i] = (char)(is_line_end ? text[i] ^ '\n' ^ '\r' : text[i]);
	}
}

struct wm_span
wm_reader_as_came(const struct wm_reader *reader, struct wm_span text, struct wm_buf *scratch)
{
	if (!reader->is_of_cr || text.len == 0)
		return text;
	wm_buf_reset(scratch);
	wm_buf_add(scratch, text.data, text.len);
	swap_line_ends(scratch->data, scratch->len);
	return wm_buf_span(scratch);
}

bool
wm_reader_fill(struct wm_reader *reader, struct wm_err *err)
{
	size_t highest = reader->options.record_bytes_max + WM_READ_BYTES;

	assert(reader->fd >= 0 && !reader->has_lines &&
		(reader->scan == NULL || reader->row == reader->scan->rows_count));
	if (reader->begin > 0) {
		memmove(reader->data, reader->data + reader->begin, reader->end - reader->begin);
		reader->end -= reader->begin;
		reader->begin = 0;
	}
	if (reader->end == reader->capacity)
		grow_buffer(reader, reader->capacity > highest / 2 ? highest : reader->capacity * 2);
	size_t room = reader->capacity - reader->end, most = reader->options.read_bytes_max;
	assert(room > 0); /* a record that fills the highest capacity is too long */
	ssize_t got = reader->ahead.len != 0 || reader->is_ahead_at_end
		? (ssize_t)take_ahead(reader, room < most ? room : most)
		: read(reader->fd, reader->data + reader->end, room < most ? room : most);
	reader->filled = 0;
	if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
		return true;
	if (got < 0) {
		wm_err_set(err, WM_ERR_IO, "%s: %s", reader->name, strerror(errno));
		close_input(reader);
		return false;
	}
	reader->is_at_end = got == 0;
	if (reader->is_of_cr)
		swap_line_ends(reader->data + reader->end, (size_t)got);
	reader->end += (size_t)got;
	reader->filled = (size_t)got;
	reader->read_offset += (uint64_t)got;
	reader->counts.bytes += (uint64_t)got;
	return true;
}

struct wm_span
wm_reader_filled(const struct wm_reader *reader)
{
	return wm_span(reader->data + reader->end - reader->filled, reader->filled);
}

/* Whether what was read is all that there is, so that its last record needs no line end. */
static bool
is_final(const struct wm_reader *reader)
{
	return reader->is_at_end && !reader->options.keeps_partial;
}

/* What was read and not taken. */
static struct wm_span
unread(const struct wm_reader *reader)
{
	return wm_span(reader->data + reader->begin, reader->end - reader->begin);
}

/* The place of the first of these in the input. */
static uint64_t
unread_offset(const struct wm_reader *reader)
{
	return reader->read_offset - unread(reader).len;
}

/* The next bytes are dealt with. */
static void
take(struct wm_reader *reader, size_t len)
{
	reader->begin += len;
	reader->looked = 0;
}

/* The stream ends here, with the place and the message. */
WM_PRINTF(3, 4) static enum wm_read_result refuse(struct wm_reader *reader, struct wm_err *err, const char *format, ...)
{
	char message[WM_ERR_MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	wm_err_set(err, WM_ERR_USAGE, "%s:%llu: %s", reader->name, (unsigned long long)reader->line, message);
	close_input(reader);
	return WM_READ_FAILED;
}

static enum wm_read_result
end_input(struct wm_reader *reader)
{
	close_input(reader);
	return WM_READ_END;
}

/* ---- the begin of an input: format and header ---- */

/* What is left to do before records come; WM_READ_RECORD where the stage has been passed. */
#define PASSED WM_READ_RECORD

static enum wm_read_result
drop_byte_order_mark(struct wm_reader *reader)
{
	struct wm_span text = unread(reader);
	size_t mark_len = sizeof(byte_order_mark) - 1;
	bool may_be_one = memcmp(text.data, byte_order_mark, text.len < mark_len ? text.len : mark_len) == 0;

	if (may_be_one && text.len < mark_len && !is_final(reader))
		return WM_READ_MORE;
	if (may_be_one && text.len >= mark_len)
		take(reader, mark_len);
	reader->stage = STAGE_SNIFF;
	return PASSED;
}

/* Before the header and in NDJSON blanks alone are no line; a record without header may consist of them. */
static bool
is_blank_line(const struct wm_reader *reader, struct wm_span line)
{
	struct wm_span content = wm_cut_content(line);
	size_t at = 0;

	if ((reader->options.no_header && reader->options.format != WM_FORMAT_NDJSON) ||
		is_text_lines(reader->options.format))
		return content.len == 0;
	while (at < content.len && is_blank(content.data[at]))
		at++;
	return at == content.len;
}

static enum wm_format
detect_format(const struct wm_reader *reader, struct wm_span line)
{
	size_t at = 0;

	while (is_blank(line.data[at]) && at + 1 < line.len)
		at++;
	if (line.data[at] == '{')
		return WM_FORMAT_NDJSON;
	if (reader->names_format != WM_FORMAT_AUTO)
		return reader->names_format;
	if (memchr(line.data, '\t', line.len) != NULL && memchr(line.data, ',', line.len) == NULL)
		return WM_FORMAT_TSV;
	return WM_FORMAT_CSV;
}

/* What an input is: as was asked for, or by its first line. */
static enum wm_format
choose_format(const struct wm_reader *reader, struct wm_span line)
{
	return reader->options.format != WM_FORMAT_AUTO ? reader->options.format : detect_format(reader, line);
}

static char
choose_delimiter(const struct wm_reader *reader, enum wm_format format)
{
	if (reader->options.delimiter != '\0')
		return reader->options.delimiter;
	return format == WM_FORMAT_TSV ? '\t' : ',';
}

/* Whether a record of the input, but for its line end, is one of the stream as it stands. */
static bool
is_as_stream(const struct wm_reader *reader)
{
	return reader->order == NULL &&
		wm_dialect_equal(input_dialect(reader), dialect_of(reader, reader->format, reader->delimiter));
}

/* The first input with a header or record is the measure of all. */
static void
fix_stream(struct wm_reader *reader)
{
	if (reader->first_name != NULL) {
		reader->is_in_layout = is_as_stream(reader) && !reader->is_of_cr &&
			strcmp(reader->input_line_end, reader->line_end) == 0;
		return;
	}
	reader->is_in_layout = !reader->is_of_cr;
	reader->first_name = wm_memdup(reader->name, strlen(reader->name));
	reader->format = reader->input_format;
	reader->delimiter = reader->input_delimiter;
	reader->line_end = reader->input_line_end;
}

/*
 * Whether a name is one side of a plus in the name of an optional column that the input has: then it need not be there
 * itself. "Time (GMT+1)" is asked for as a whole and, should the input not have that, as the two columns "Time (GMT" and "1)".
 */
static bool
is_part_of_whole(const struct wm_reader *reader, const struct wm_header *header, struct wm_span name)
{
	for (size_t i = 0; i < reader->wants_count; i++) {
		struct wm_span whole = name_of(&reader->wants[i]);
		size_t rest = whole.len - name.len;

		if (!reader->is_optional[i] || whole.len <= name.len || !wm_header_has(header, whole))
			continue;
		if ((whole.data[name.len] == '+' && wm_span_equal(wm_span(whole.data, name.len), name)) ||
			(whole.data[rest - 1] == '+' && wm_span_equal(wm_span(whole.data + rest, name.len), name)))
			return true;
	}
	return false;
}

/* Sets where in the input the wanted columns are; header is the input's. */
static bool
find_wanted(struct wm_reader *reader, const struct wm_header *header, struct wm_err *err)
{
	struct wm_buf place;
	bool is_well = true;

	wm_buf_init(&place, WM_BUF_UNBOUNDED);
	wm_buf_addf(&place, "%s:%llu%c", reader->name, (unsigned long long)reader->line, '\0');
	reader->wants_last = reader->has_gaps = false;
	reader->active_count = 0;
	for (size_t i = 0; i < reader->wants_count && is_well; i++) {
		struct wm_span name = name_of(&reader->wants[i]);
		size_t index = 0;

		reader->fields[i] = NO_FIELD;
		reader->values[i] = (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
		if (reader->came != NULL)
			reader->came[i] = reader->values[i];
		if (!wm_header_has(header, name) && (reader->is_optional[i] || is_part_of_whole(reader, header, name)))
			continue;
		is_well = wm_header_find(header, name, place.data, &index, err);
		reader->fields[i] = (uint32_t)index;
		reader->wants_last |= index + 1 == header->count;
		reader->values[i].kind = WM_KIND_TEXT;
		reader->has_gaps |= i > reader->active_count;
		reader->active_count = i + 1;
	}
	reader->is_plain = !reader->has_gaps && reader->options.nulls == NULL;
	wm_buf_release(&place);
	if (!is_well)
		close_input(reader);
	return is_well;
}

/* What the input is is known: records come, or the header before them. */
static enum wm_read_result
begin_records(struct wm_reader *reader, struct wm_err *err)
{
	enum wm_format format = reader->input_format;

	if (format == WM_FORMAT_NDJSON) {
		if (reader->ndjson == NULL)
			reader->ndjson = wm_ndjson_new(reader->wants, reader->wants_count);
		fix_stream(reader);
		reader->stage = STAGE_NDJSON;
		return PASSED;
	}
	if (is_text_lines(format)) {
		if (reader->columns.count == 0)
			wm_header_take(&reader->columns, reader->names.names, reader->names.count);
		if (format != WM_FORMAT_LOGFMT && !find_wanted(reader, &reader->columns, err))
			return WM_READ_FAILED;
		fix_stream(reader);
		reader->stage = STAGE_LINES;
		return PASSED;
	}
	if (reader->scan == NULL || !wm_dialect_equal(reader->scan->dialect, input_dialect(reader))) {
		wm_scan_free(reader->scan);
		reader->scan = wm_scan_new(input_dialect(reader), wm_scan_best_way());
		reader->rows_before += reader->row;
		reader->row = 0;
	}
	reader->looks_for_quotes = format == WM_FORMAT_TSV;
	if (!reader->options.no_header) {
		reader->stage = STAGE_HEADER;
		return PASSED;
	}
	if (reader->columns.count == 0 && reader->names.count != 0)
		wm_header_take(&reader->columns, reader->names.names, reader->names.count);
	if (reader->columns.count != 0 && !find_wanted(reader, &reader->columns, err))
		return WM_READ_FAILED;
	fix_stream(reader);
	reader->stage = STAGE_CSV;
	return PASSED;
}

/* The first line that is not blank says what the input is. */
static enum wm_read_result
begin_format(struct wm_reader *reader, struct wm_span line, struct wm_err *err)
{
	const char *foreign = wm_foreign_find(line, reader->options.format, !reader->options.no_header);
	enum wm_format format = choose_format(reader, line);

	if (foreign != NULL)
		return refuse(reader, err, "%s", foreign);
	if (reader->first_name != NULL && (format == WM_FORMAT_NDJSON) != (reader->format == WM_FORMAT_NDJSON))
		return refuse(reader, err, "is %s, but %s is %s: name inputs of one format", format_name(format),
			reader->first_name, format_name(reader->format));
	reader->input_format = format;
	reader->input_delimiter = choose_delimiter(reader, format);
	if (line.data[line.len - 1] != '\n')
		reader->input_line_end = reader->line_end;
	else
		reader->input_line_end = line.len > 1 && line.data[line.len - 2] == '\r' ? "\r\n" : "\n";
	return begin_records(reader, err);
}

/* Whether the first line of a text, whose CRs and LFs have changed places, ends outside quotes, and not with the text. */
static bool
ends_in_cr(const struct wm_reader *reader, struct wm_span text)
{
	const char *line_feed = memchr(text.data, '\n', text.len);
	struct wm_cut_finder finder = { 0 };
	bool has_ended;

	if (line_feed == NULL)
		return false;
	struct wm_span line = { text.data, (size_t)(line_feed - text.data) + 1 };
	enum wm_format format = choose_format(reader, line);
	if (format != WM_FORMAT_CSV && format != WM_FORMAT_TSV)
		return false;
	size_t len = wm_dialect_find(
		&finder, dialect_of(reader, format, choose_delimiter(reader, format)), text, &has_ended);
	return has_ended && len < text.len;
}

/* In CSV and TSV lines may end in CR alone, as the old Macintosh had them: that is seen where there is no LF for long. */
static enum wm_read_result
find_line_end(struct wm_reader *reader, struct wm_err *err)
{
	struct wm_span text = unread(reader);
	struct stat status;

	if (text.len > LINE_END_BYTES)
		text.len = LINE_END_BYTES;
	/* Whatever the reads were, the first LF decides, or that there is none. */
	bool has_line_feed = text.len > 0 && memchr(text.data, '\n', text.len) != NULL;
	if (!has_line_feed && text.len < LINE_END_BYTES && !reader->is_at_end)
		return WM_READ_MORE;
	reader->is_line_end_known = true;
	if (has_line_feed || text.len == 0 || memchr(text.data, '\r', text.len) == NULL)
		return PASSED;
	/* The last byte may be the first half of a CR LF, of which the other has not come. */
	swap_line_ends(reader->data + reader->begin, text.len);
	bool is_of_cr = ends_in_cr(reader, text);
	swap_line_ends(reader->data + reader->begin, text.len);
	if (!is_of_cr)
		return PASSED;
	if (reader->fd == STDIN_FILENO || fstat(reader->fd, &status) == -1 || !S_ISREG(status.st_mode))
		return refuse(reader, err,
			"lines end in CR alone, which is read from regular FILEs: put tr '\\r' '\\n' before it");
	reader->is_of_cr = true;
	swap_line_ends(reader->data + reader->begin, reader->end - reader->begin);
	return PASSED;
}

/* Skips blank lines; what follows is looked at once its line is there, or too long. */
static enum wm_read_result
sniff(struct wm_reader *reader, struct wm_err *err)
{
	size_t limit = reader->options.record_bytes_max;

	if (!reader->is_line_end_known && reader->options.format <= WM_FORMAT_TSV) {
		enum wm_read_result result = find_line_end(reader, err);

		if (result != PASSED)
			return result;
	}
	for (;;) {
		struct wm_span text = unread(reader);
		const char *line_feed = memchr(text.data + reader->looked, '\n', text.len - reader->looked);
		struct wm_span line = { text.data, line_feed == NULL ? text.len : (size_t)(line_feed - text.data) + 1 };
		bool is_whole = line_feed != NULL || is_final(reader);

		if (line.len == 0 && is_whole)
			return end_input(reader);
		bool is_too_long = wm_cut_content(line).len > limit;
		if (!is_whole && !is_too_long) {
			reader->looked = line.len;
			return WM_READ_MORE;
		}
		if (is_too_long || !is_blank_line(reader, line)) {
			reader->looked = 0;
			/* Of a longer one no more counts than had to come, whatever the reads were. */
			return begin_format(reader, is_too_long ? wm_span(line.data, limit) : line, err);
		}
		/* One before the place to go on from has been counted by the run that processed it. */
		reader->counts.lines_blank += unread_offset(reader) >= reader->go_on.offset;
		reader->line++;
		take(reader, line.len);
	}
}

enum found {
	FOUND_NOTHING, /* the input has ended */
	FOUND_PART,    /* the rest has not come */
	FOUND_RECORD,  /* well-formed or not: see the finder's state */
};

/* A part of a record is so if it would be with whatever line end. */
static bool
is_too_long(const struct wm_reader *reader, struct wm_span raw)
{
	return wm_cut_content(raw).len > reader->options.record_bytes_max;
}

/* The CSV record that begins what was read; raw is as much of it as is there. */
static enum found
find_record(struct wm_reader *reader, struct wm_span *raw)
{
	struct wm_span text = unread(reader);
	bool has_ended;

	if (!reader->is_finding) {
		reader->finder = (struct wm_cut_finder){ 0 };
		reader->looked = 0;
		reader->is_finding = true;
	}
	struct wm_span rest = { text.data + reader->looked, text.len - reader->looked };
	reader->looked += wm_dialect_find(&reader->finder, input_dialect(reader), rest, &has_ended);
	*raw = wm_span(text.data, reader->looked);
	if (!has_ended && (!is_final(reader) || (reader->options.keeps_quoted && wm_cut_is_open(reader->finder.state))))
		return FOUND_PART;
	reader->is_finding = false;
	return raw->len == 0 ? FOUND_NOTHING : FOUND_RECORD;
}

static bool
is_malformed(const struct wm_cut_finder *finder)
{
	return finder->state == WM_CUT_MALFORMED || wm_cut_is_open(finder->state);
}

/* Later inputs: the same columns, and in which order. */
static bool
match_header(struct wm_reader *reader, const struct wm_header *header, struct wm_err *err)
{
	struct wm_buf place;
	bool is_well, is_same = true;

	wm_buf_init(&place, WM_BUF_UNBOUNDED);
	wm_buf_addf(&place, "%s:%llu%c", reader->name, (unsigned long long)reader->line, '\0');
	reader->order = wm_calloc(reader->columns.count, sizeof(*reader->order));
	is_well = wm_header_match(&reader->columns, reader->first_name, header, place.data, reader->order, err);
	wm_buf_release(&place);
	if (!is_well) {
		close_input(reader);
		return false;
	}
	for (size_t i = 0; i < header->count && is_same; i++)
		is_same = reader->order[i] == i;
	if (is_same) {
		free(reader->order);
		reader->order = NULL;
	}
	return true;
}

/* Keeps the line of TSV whose fields, which were just cut, have quotes around one: it may be of a program that writes tabs as CSV. */
static void
look_for_quotes(struct wm_reader *reader)
{
	const struct wm_cut *cut = &reader->cut;

	if (reader->input_format != WM_FORMAT_TSV || reader->quoted_line != 0)
		return;
	for (size_t i = 0; i < cut->count && i < WM_COLUMNS_MAX; i++) {
		struct wm_span field = cut->fields[i];

		if (field.len > 1 && field.data[0] == '"' && field.data[field.len - 1] == '"')
			reader->quoted_line = reader->line;
	}
}

/* The fields of a header line as names. */
static void
take_names(const struct wm_cut *cut, struct wm_dialect dialect, struct wm_header *header)
{
	struct wm_span *names = wm_calloc(cut->count, sizeof(*names));
	struct wm_buf *said = wm_calloc(cut->count, sizeof(*said));

	for (size_t i = 0; i < cut->count; i++) {
		wm_buf_init(&said[i], WM_BUF_UNBOUNDED);
		names[i] = wm_dialect_read(dialect, cut->fields[i], &said[i]);
	}
	wm_header_take(header, names, cut->count);
	for (size_t i = 0; i < cut->count; i++)
		wm_buf_release(&said[i]);
	free(said);
	free(names);
}

/* Adds to a message that a column is missing why that may be. */
static void
advise_on(const struct wm_reader *reader, const struct wm_header *header, struct wm_err *err)
{
	const char *advice = reader->quoted_line != 0 ? "if the quotes are none of the names, say -i csv -d '\\t'"
						      : wm_foreign_advise(header->names, header->count);
	struct wm_err missing = *err;

	if (advice != NULL)
		wm_err_set(err, missing.code, "%s: %s", missing.message, advice);
}

static enum wm_read_result
read_header(struct wm_reader *reader, struct wm_err *err)
{
	struct wm_span raw, content;
	struct wm_header header = { 0 };
	enum found found = find_record(reader, &raw);

	if (is_too_long(reader, raw))
		return refuse(reader, err,
			"the header is longer than the record limit of %zu bytes: raise --record-limit",
			reader->options.record_bytes_max);
	if (found == FOUND_PART)
		return WM_READ_MORE;
	if (is_malformed(&reader->finder))
		return refuse(reader, err, "the header cannot be read: %s",
			reader->finder.state == WM_CUT_QUOTED              ? "a quoted name never ends"
				: reader->finder.state == WM_CUT_MALFORMED ? "text behind a closing quote"
									   : "a backslash stands before its line end");
	content = wm_reader_as_came(reader, wm_cut_content(raw), &reader->swapped);
	wm_dialect_cut(&reader->cut, input_dialect(reader), content);
	if (reader->cut.count > WM_COLUMNS_MAX)
		return refuse(reader, err, "%zu columns: at most %d can be read", reader->cut.count, WM_COLUMNS_MAX);
	look_for_quotes(reader);
	take_names(&reader->cut, input_dialect(reader), &header);
	for (size_t i = 0; i < header.count; i++) {
		if (wm_foreign_is_time(header.names[i])) {
			wm_header_release(&header);
			return refuse(reader, err,
				"the first line holds a time, so the header is missing: name the columns with "
				"--columns, or let it through (tail -n +1 -F)");
		}
	}
	bool is_first = reader->first_name == NULL;
	bool is_well = (is_first || match_header(reader, &header, err)) && find_wanted(reader, &header, err);
	if (!is_well)
		advise_on(reader, &header, err);
	if (!is_well || !is_first) {
		wm_header_release(&header);
		if (!is_well)
			return WM_READ_FAILED;
		fix_stream(reader);
	} else {
		reader->columns = header;
		fix_stream(reader);
		wm_buf_add(&reader->header_line, content.data, content.len);
		wm_buf_add_text(&reader->header_line, reader->line_end);
	}
	wm_buf_reset(&reader->input_header);
	wm_buf_add(&reader->input_header, content.data, content.len);
	reader->input_header_len = content.len;
	reader->line += reader->finder.lines_count;
	take(reader, raw.len);
	reader->stage = STAGE_CSV;
	return PASSED;
}

/* All that comes before the records. */
static enum wm_read_result
prepare(struct wm_reader *reader, struct wm_err *err)
{
	enum wm_read_result result = PASSED;

	if (reader->stage == STAGE_AGAIN)
		result = begin_records(reader, err);
	if (reader->stage == STAGE_BEGIN)
		result = drop_byte_order_mark(reader);
	if (result == PASSED && reader->stage == STAGE_SNIFF)
		result = sniff(reader, err);
	if (result == PASSED && reader->stage == STAGE_HEADER)
		result = read_header(reader, err);
	return result;
}

/* Names from the first line of a file. */
static bool
read_names_file(struct wm_reader *reader, const char *path, struct wm_err *err)
{
	struct wm_reader_options options = {
		.format = is_text_lines(reader->options.format) ? WM_FORMAT_AUTO : reader->options.format,
		.delimiter = reader->options.delimiter,
		.refuse_value = reader->options.refuse_value,
		.record_bytes_max = reader->options.record_bytes_max,
		.read_buffer_bytes = CHECK_READ_BYTES,
	};
	enum wm_read_result result;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return wm_err_set(err, WM_ERR_IO, "%s: %s", path, strerror(errno));
	struct wm_reader *source = new_reader(&options);
	wm_reader_open(source, fd, path);
	while ((result = prepare(source, err)) == WM_READ_MORE)
		if (!wm_reader_fill(source, err))
			break;
	if (result == WM_READ_END) {
		wm_err_set(err, WM_ERR_USAGE, "%s: is empty: its first line is to name the columns", path);
	} else if (result == PASSED && source->format == WM_FORMAT_NDJSON) {
		wm_err_set(err, WM_ERR_USAGE, "%s: is NDJSON: --columns @FILE takes names from a header of CSV", path);
		result = WM_READ_FAILED;
	} else if (result == PASSED) {
		wm_header_take(&reader->names, source->columns.names, source->columns.count);
		/* One column has no delimiter that could be known. */
		if (source->columns.count > 1)
			reader->names_format = source->format;
	}
	wm_reader_free(source);
	return result == PASSED;
}

struct wm_reader *
wm_reader_new(const struct wm_reader_options *options, struct wm_err *err)
{
	if (!check_options(options, err))
		return NULL;
	struct wm_reader *reader = new_reader(options);
	enum wm_format format = reader->options.format;
	if (options->columns != NULL && format != WM_FORMAT_NDJSON) {
		reader->options.no_header = true;
		if (options->columns[0] == '@' ? !read_names_file(reader, options->columns + 1, err)
					       : !read_names(reader, options->columns, err))
			goto fail;
	}
	if (is_text_lines(format)) {
		reader->lines = wm_lines_new(format, options->pattern, &reader->names, err);
		if (reader->lines == NULL)
			goto fail;
		const struct wm_header *columns = wm_lines_columns(reader->lines);
		wm_header_take(&reader->names, columns->names, columns->count);
	}
	return reader;

fail:
	wm_reader_free(reader);
	return NULL;
}

/* A reader of the same options and wanted columns, to look ahead. */
static struct wm_reader *
new_checker(const struct wm_reader *reader)
{
	struct wm_reader *checker = new_reader(&reader->options);

	checker->options.read_buffer_bytes = CHECK_READ_BYTES;
	checker->is_borrowed = true;
	checker->names_format = reader->names_format;
	wm_header_take(&checker->names, reader->names.names, reader->names.count);
	for (size_t i = 0; i < reader->wants_count; i++)
		want(checker, &reader->wants[i], reader->is_optional[i]);
	return checker;
}

bool
wm_reader_check(struct wm_reader *reader, int fd, const char *name, struct wm_err *err)
{
	off_t offset = lseek(fd, 0, SEEK_CUR);
	enum wm_read_result result;
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err found = { 0 };

	if (offset < 0)
		return true;
	if (reader->checker == NULL)
		reader->checker = new_checker(reader);
	struct wm_reader *checker = reader->checker;
	begin_input(checker, fd, name);
	do {
		result = checker->stage < STAGE_CSV ? prepare(checker, &found)
						    : wm_reader_next(checker, &rec, &reject, &found);
		if (result == WM_READ_MORE && (checker->is_at_end || !wm_reader_fill(checker, &found)))
			break;
		/* Without a header the first record says how many columns there are. */
	} while (result == WM_READ_MORE ||
		(result == PASSED && checker->stage == STAGE_CSV && checker->columns.count == 0));
	if (checker->fd >= 0)
		close_input(checker);
	if (lseek(fd, offset, SEEK_SET) < 0 || result != WM_READ_FAILED)
		return true;
	*err = found;
	return false;
}

bool
wm_reader_checked_lacks(const struct wm_reader *reader, size_t index)
{
	const struct wm_reader *checker = reader->checker;

	return checker != NULL && checker->first_name != NULL && checker->format != WM_FORMAT_NDJSON &&
		checker->format != WM_FORMAT_LOGFMT && checker->fields[index] == NO_FIELD;
}

bool
wm_reader_adopt(struct wm_reader *reader, const struct wm_reader *from)
{
	const struct wm_reader *layout = from->first_name != NULL ? from : from->checker;

	assert(reader->name == NULL);
	if (layout == NULL || layout->first_name == NULL ||
		(layout->format != WM_FORMAT_NDJSON && layout->format != WM_FORMAT_LOGFMT &&
			layout->columns.count == 0))
		return false;
	reader->format = layout->format;
	reader->delimiter = layout->delimiter;
	reader->line_end = layout->line_end;
	wm_header_take(&reader->columns, layout->columns.names, layout->columns.count);
	wm_buf_reset(&reader->header_line);
	wm_buf_add(&reader->header_line, layout->header_line.data, layout->header_line.len);
	free(reader->first_name);
	reader->first_name = wm_memdup(layout->first_name, strlen(layout->first_name));
	return true;
}

/*
 * A format as it is kept. TSV had quotes once, and was 2: a reader of CSV with tabs goes on with that as it was begun, another one has to know
 * (wm_reader_had_quotes).
 */
#define KEPT_TSV_WITH_QUOTES 2
#define KEPT_TSV 7

static uint8_t
kept_format(enum wm_format format)
{
	return format == WM_FORMAT_TSV ? KEPT_TSV : (uint8_t)format;
}

enum wm_format
wm_reader_format_kept(uint8_t kept)
{
	return kept == KEPT_TSV ? WM_FORMAT_TSV : kept <= WM_FORMAT_LINES ? (enum wm_format)kept : WM_FORMAT_AUTO;
}

/* For this reader. */
static enum wm_format
format_kept(const struct wm_reader *reader, uint8_t kept)
{
	return kept == KEPT_TSV_WITH_QUOTES && reader->options.format == WM_FORMAT_CSV ? WM_FORMAT_CSV
										       : wm_reader_format_kept(kept);
}

/* u8 format · u8 delimiter · flag CR LF · text header · text name of the first input · varint columns · text each; nothing: none is known. */
void
wm_reader_encode_layout(const struct wm_reader *reader, struct wm_buf *out)
{
	if (reader->first_name == NULL)
		return;
	wm_put_u8(out, kept_format(reader->format));
	wm_put_u8(out, (uint8_t)reader->delimiter);
	wm_put_u8(out, reader->line_end[0] == '\r');
	wm_put_span(out, wm_buf_span(&reader->header_line));
	wm_put_span(out, wm_span_of(reader->first_name));
	wm_put_varint(out, reader->columns.count);
	for (size_t i = 0; i < reader->columns.count; i++)
		wm_put_span(out, reader->columns.names[i]);
}

bool
wm_reader_decode_layout(struct wm_reader *reader, struct wm_get *in)
{
	assert(reader->name == NULL && reader->first_name == NULL);
	if (wm_get_left(in) == 0)
		return !in->failed;
	uint8_t kept = wm_get_u8(in), delimiter = wm_get_u8(in);
	enum wm_format format = format_kept(reader, kept);
	bool is_crlf = wm_get_u8(in) != 0;
	struct wm_span header = wm_get_span(in), first_name = wm_get_span(in);
	uint64_t count = wm_get_varint(in);
	if (in->failed || format == WM_FORMAT_AUTO || count > WM_COLUMNS_MAX ||
		is_text_lines(format) != is_text_lines(reader->options.format))
		return false;
	struct wm_span *names = wm_calloc((size_t)count + 1, sizeof(*names));
	for (uint64_t i = 0; i < count; i++)
		names[i] = wm_get_span(in);
	if (!in->failed) {
		wm_header_take(&reader->columns, names, (size_t)count);
		reader->format = format;
		reader->had_quotes = format == WM_FORMAT_TSV && kept == KEPT_TSV_WITH_QUOTES;
		reader->delimiter = (char)delimiter;
		reader->line_end = is_crlf ? "\r\n" : "\n";
		wm_buf_add(&reader->header_line, header.data, header.len);
		reader->first_name = wm_memdup(first_name.data, first_name.len);
	}
	free(names);
	return !in->failed;
}

/* ---- records ---- */

WM_PRINTF(5, 6)
static enum wm_read_result
reject_record(struct wm_reject *reject, struct wm_record *rec, struct wm_span raw, const char *reason,
	const char *detail, ...)
{
	va_list args;

	*reject = (struct wm_reject){ .reason = reason, .line = rec->line, .lines = 1, .raw = raw };
	rec->raw = raw;
	va_start(args, detail);
	vsnprintf(reject->detail, sizeof(reject->detail), detail, args);
	va_end(args);
	return WM_READ_REJECTED;
}

static enum wm_read_result
reject_too_long(const struct wm_reader *reader, struct wm_reject *reject, struct wm_record *rec, struct wm_span raw)
{
	size_t limit = reader->options.record_bytes_max;

	/* No more than is there in any case when it is found out, so that it does not depend on the reads. */
	raw.len = limit < WM_SHOWN_BYTES_MAX ? limit : WM_SHOWN_BYTES_MAX;
	return reject_record(reject, rec, raw, "too-long", "longer than the record limit of %zu bytes", limit);
}

static enum wm_read_result
reject_ragged(const struct wm_reader *reader, struct wm_reject *reject, struct wm_record *rec, struct wm_span raw,
	size_t fields_count)
{
	const char *who = reader->names.count != 0 ? "--columns names"
		: reader->options.no_header        ? "the first record has"
						   : "the header has";

	return reject_record(reject, rec, raw, "ragged", "%zu field%s, %s %zu%s", fields_count,
		fields_count == 1 ? "" : "s", who, reader->columns.count, wm_foreign_is_tail(raw) ? tail_hint : "");
}

/*
 * What a CSV line with so many fields is: WM_READ_RECORD if it is one (its
 * fields are not yet set), WM_READ_MORE if it is to be skipped. rec has its line.
 */
static enum wm_read_result
judge(struct wm_reader *reader, struct wm_span raw, size_t fields_count, struct wm_record *rec,
	struct wm_reject *reject, struct wm_err *err)
{
	struct wm_span content = wm_cut_content(raw);

	if (content.len == 0) {
		reader->counts.lines_blank++;
		return WM_READ_MORE;
	}
	if (content.len > reader->options.record_bytes_max)
		return reject_too_long(reader, reject, rec, raw);
	if (reader->columns.count == 0) {
		/* Without a header the first record says how many there are. */
		if (fields_count > WM_COLUMNS_MAX)
			return refuse(reader, err, "%zu columns: at most %d can be read", fields_count, WM_COLUMNS_MAX);
		wm_header_number(&reader->columns, fields_count);
		if (!find_wanted(reader, &reader->columns, err))
			return WM_READ_FAILED;
	}
	if (content.len == reader->input_header_len &&
		memcmp(content.data, reader->input_header.data, content.len) == 0) {
		reader->counts.headers_repeated++;
		return WM_READ_MORE;
	}
	if (fields_count != reader->columns.count)
		return reject_ragged(reader, reject, rec, raw, fields_count);
	return WM_READ_RECORD;
}

static uint64_t
count_line_feeds(struct wm_span raw)
{
	const char *at = raw.data, *end = raw.data + raw.len;
	uint64_t count = 0;

	while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		at++;
		count++;
	}
	return count;
}

WM_PRINTF(2, 3) static void add_detail(struct wm_reject *reject, const char *detail, ...)
{
	size_t len = strlen(reject->detail);
	va_list args;

	va_start(args, detail);
	vsnprintf(reject->detail + len, sizeof(reject->detail) - len, detail, args);
	va_end(args);
}

/* The offset behind so many lines of a text; 0: it has not so many line ends. */
static size_t
offset_behind_lines(struct wm_span text, uint64_t lines)
{
	const char *at = text.data, *end = text.data + text.len;

	for (; lines > 0; lines--) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (at == NULL)
			return 0;
		at++;
	}
	return (size_t)(at - text.data);
}

/*
 * A rejected record of several lines is rejected as the line in which its last quoted field opens, or whose end a backslash
 * has last taken along, with those before it: the quote or backslash there may be a stray one, and the lines behind it records. Of a record that is too long no more counts
 * than the limit lets in, so that nothing depends on how much was read of it. raw is as much of it as is known.
 *
 * This is linear. The line ends in the record are all inside quotes, so a line in which no field opens holds doubled
 * quotes alone, and ends, read by itself, outside quotes; of TSV all lines but the last are rejected: of the lines that are read once more only the last, where the
 * record ended, can begin another of several lines.
 */
static void
cut_back(struct wm_reader *reader, struct wm_span raw, struct wm_reject *reject, struct wm_record *rec)
{
	size_t limit = reader->options.record_bytes_max;
	bool is_long = is_too_long(reader, raw), has_ended;
	struct wm_span known = { raw.data, is_long ? limit : raw.len };
	struct wm_cut_finder finder = { 0 };

	wm_dialect_find(&finder, input_dialect(reader), known, &has_ended);
	reject->lines = finder.quote_line + 1;
	size_t len = offset_behind_lines(raw, reject->lines);
	bool goes_back = len != 0 && (is_long ? len <= limit : len < raw.len);
	if (goes_back && (is_long || !wm_cut_is_open(finder.state)))
		add_detail(reject,
			input_dialect(reader).marks == WM_MARKS_QUOTES
				? ": a quoted field begins in line %llu"
				: ": a backslash takes the end of line %llu along (where it is a letter: --tsv-escapes "
				  "none)",
			(unsigned long long)(rec->line + finder.quote_line));
	if (goes_back)
		add_detail(reject, ": reading goes on in line %llu", (unsigned long long)(rec->line + reject->lines));
	reader->line += len == 0 ? finder.quote_line : reject->lines;
	reader->stage = len == 0 && !is_final(reader) ? STAGE_SKIP_CSV : STAGE_CSV;
	len = len == 0 ? raw.len : len;
	if (len < raw.len)
		reader->batch_bytes = BATCH_BYTES_FIRST;
	if (reject->raw.len > len)
		reject->raw.len = len;
	rec->raw = reject->raw;
	reader->begin = (size_t)(raw.data - reader->data) + len;
	reader->looked = 0;
	reader->row = reader->scan->rows_count;
}

/* Keeps the place of the first record of so many lines that a stray quote may have made it. */
static void
note_long(struct wm_reader *reader, const struct wm_record *rec, uint64_t lines)
{
	if (lines > WM_RECORD_LINES_TOLD && reader->long_record.first == 0)
		reader->long_record = (struct wm_reader_lines){ rec->line, rec->line + lines - 1 };
}

uint64_t
wm_reject_lines(const struct wm_reject *reject)
{
	struct wm_span raw = reject->raw;

	if (reject->lines != 0)
		return reject->lines;
	return count_line_feeds(raw) + (raw.len == 0 || raw.data[raw.len - 1] != '\n');
}

/* A field whose value is set is read as no value if its bytes say that there is none: those that it says, but of TSV those that stand there. */
static void
judge_missing(struct wm_reader *reader, size_t index, struct wm_span bytes, enum wm_nulls_place place)
{
	struct wm_value *value = &reader->values[index];
	struct wm_value judged = { bytes, value->kind };

	reader->came[index] = *value;
	if (wm_nulls_are_in(reader->options.nulls, &judged, place))
		*value = (struct wm_value){ wm_span(value->text.data, 0), WM_KIND_NULL };
}

/* The wanted fields of a record say what stands there: which of them hold no value. */
static void
judge_fields(struct wm_reader *reader)
{
	for (size_t i = 0; i < reader->active_count; i++)
		if (reader->fields[i] != NO_FIELD)
			judge_missing(reader, i, reader->values[i].text, WM_NULLS_FIELD);
}

/* What a field says where CR and LF have changed places. */
static __attribute__((noinline)) struct wm_span
read_field_as_came(struct wm_reader *reader, size_t index, struct wm_span raw)
{
	struct wm_buf *said = &reader->said[index];
	struct wm_span text =
		wm_dialect_read(input_dialect(reader), wm_reader_as_came(reader, raw, &reader->swapped), said);

	if (text.len == 0 || text.data == said->data)
		return text;
	wm_buf_reset(said);
	wm_buf_add(said, text.data, text.len);
	return wm_buf_span(said);
}

/* The wanted fields stand as they are in the record: what they say. */
static void
read_fields(struct wm_reader *reader)
{
	struct wm_dialect dialect = input_dialect(reader);
	bool has_quotes = dialect.marks == WM_MARKS_QUOTES;

	for (size_t i = 0; i < reader->active_count; i++) {
		struct wm_span *field = &reader->values[i].text, raw = *field;
		bool is_quoted = has_quotes && raw.len > 0 && raw.data[0] == '"';

		if (raw.len > 0 && (is_quoted || !has_quotes))
			*field = reader->is_of_cr ? read_field_as_came(reader, i, raw)
						  : wm_dialect_read(dialect, raw, &reader->said[i]);
		if (reader->options.nulls != NULL && reader->fields[i] != NO_FIELD)
			judge_missing(
				reader, i, has_quotes ? *field : raw, is_quoted ? WM_NULLS_QUOTED : WM_NULLS_FIELD);
	}
}

/* Whether a CSV line with so many fields is a record, as nearly all are, and not to be judged. */
static inline bool
is_ordinary(const struct wm_reader *reader, struct wm_span raw, size_t fields_count)
{
	return fields_count == reader->columns.count && raw.len > 2 && raw.len - reader->input_header_len - 1 > 1 &&
		raw.len <= reader->options.record_bytes_max;
}

/* The CR before the line feed is no part of the last field. */
static __attribute__((noinline)) void
drop_cr(const struct wm_reader *reader)
{
	for (size_t i = 0; i < reader->active_count; i++)
		reader->values[i].text.len -= reader->fields[i] + 1 == reader->columns.count;
}

/* Whether the record's line end has a CR, which is no part of a wanted field that stands before it. */
static inline bool
has_cr(const struct wm_reader *reader, struct wm_span raw)
{
	return reader->wants_last && raw.len > 1 && raw.data[raw.len - 2] == '\r';
}

/* Sets the wanted fields where some are not there, or texts stand for missing values. */
static __attribute__((noinline)) void
set_with_care(struct wm_reader *reader, struct wm_span raw, const uint32_t *after)
{
	for (size_t i = 0; i < reader->active_count; i++) {
		if (reader->fields[i] == NO_FIELD)
			continue;
		const uint32_t *field = after + reader->fields[i];
		struct wm_span text = wm_span(reader->batch + field[0], field[1] - 1 - field[0]);

		reader->values[i] = (struct wm_value){ text, WM_KIND_TEXT };
	}
	if (has_cr(reader, raw))
		drop_cr(reader);
	if (reader->options.nulls != NULL && !reader->scan->has_marks)
		judge_fields(reader);
}

/* A record of the batch whose fields begin at these offsets, as they stand there. */
static inline void
set_record(struct wm_reader *reader, struct wm_span raw, const uint32_t *after, struct wm_record *rec)
{
	const char *batch = reader->batch;
	const uint32_t *fields = reader->fields;
	struct wm_value *value = reader->values, *end = value + reader->active_count;

	rec->raw = raw;
	rec->fields = value;
	if (!reader->is_plain) {
		set_with_care(reader, raw, after);
		return;
	}
	for (; value < end; value++) {
		const uint32_t *field = after + *fields++;

		value->text = wm_span(batch + field[0], field[1] - 1 - field[0]);
	}
	if (has_cr(reader, raw))
		drop_cr(reader);
}

/* The next line of the batch, if it is an ordinary record without quotes; false leaves it to next_of_batch(). */
static inline bool
next_ordinary(struct wm_reader *reader, struct wm_record *rec)
{
	const struct wm_scan *scan = reader->scan;
	size_t row = reader->row;

	if (row >= scan->rows_count || scan->has_marks)
		return false;
	size_t first = scan->rows[row], last = scan->rows[row + 1];
	const uint32_t *after = &scan->after[first];
	struct wm_span raw = { reader->batch + after[0], scan->after[last] - after[0] };
	if (!is_ordinary(reader, raw, last - first))
		return false;
	reader->row = row + 1;
	rec->line = reader->line++;
	set_record(reader, raw, after, rec);
	return true;
}

/* The first record says more than the header, whose names may need no quotes. */
static __attribute__((noinline)) void
look_at_first(struct wm_reader *reader, struct wm_span raw)
{
	wm_dialect_cut(&reader->cut, input_dialect(reader), wm_cut_content(raw));
	look_for_quotes(reader);
	reader->looks_for_quotes = reader->cut.count == 0; /* an empty line is none */
}

/* Lines end in CR, and this one holds an LF (a CR here) outside quotes, or behind no backslash. */
static bool
has_bad_line_end(struct wm_reader *reader, struct wm_span raw)
{
	struct wm_dialect dialect = input_dialect(reader);
	struct wm_cut *cut = &reader->cut;

	if (raw.len > 0 && raw.data[raw.len - 1] == '\n')
		raw.len--;
	if (raw.len == 0 || memchr(raw.data, '\r', raw.len) == NULL)
		return false;
	wm_dialect_cut(cut, dialect, raw);
	for (size_t i = 0; i < cut->count && i < WM_COLUMNS_MAX; i++) {
		struct wm_span field = cut->fields[i];
		const char *end = field.data + field.len;

		if (dialect.marks == WM_MARKS_QUOTES && field.len > 0 && field.data[0] == '"') {
			if (end[-1] == '\r')
				return true;
			continue;
		}
		for (const char *at = field.data; at < end; at++) {
			if (*at == '\r')
				return true;
			at += *at == '\\' && dialect.marks == WM_MARKS_ESCAPES;
		}
	}
	return false;
}

/* As judge(), which comes behind it. */
static __attribute__((noinline)) enum wm_read_result
judge_line_end(struct wm_reader *reader, struct wm_span raw, size_t fields_count, struct wm_record *rec,
	struct wm_reject *reject, struct wm_err *err)
{
	if (!is_too_long(reader, raw) && has_bad_line_end(reader, raw))
		return reject_record(
			reject, rec, raw, "bad-line-end", "an LF outside quotes, where lines end in CR alone");
	return judge(reader, raw, fields_count, rec, reject, err);
}

/* The next record of the batch; WM_READ_MORE at its end. */
static enum wm_read_result
next_of_batch(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err)
{
	const struct wm_scan *scan = reader->scan;

	while (reader->row < scan->rows_count) {
		size_t first = scan->rows[reader->row], last = scan->rows[reader->row + 1];
		const uint32_t *after = &scan->after[first];
		struct wm_span raw = { reader->batch + after[0], scan->after[last] - after[0] };
		uint64_t lines = scan->has_inner_line_feeds ? count_line_feeds(raw) : 1;

		reader->row++;
		rec->line = reader->line;
		if (reader->looks_for_quotes)
			look_at_first(reader, raw);
		enum wm_read_result result = WM_READ_RECORD;
		if (reader->is_of_cr)
			result = judge_line_end(reader, raw, last - first, rec, reject, err);
		else if (!is_ordinary(reader, raw, last - first))
			result = judge(reader, raw, last - first, rec, reject, err);
		if (result == WM_READ_REJECTED && lines > 1) {
			cut_back(reader, raw, reject, rec);
			return result;
		}
		reader->line += lines;
		if (result == WM_READ_MORE)
			continue;
		if (result != WM_READ_RECORD)
			return result;
		if (lines > 1)
			note_long(reader, rec, lines);
		set_record(reader, raw, after, rec);
		if (scan->has_marks)
			read_fields(reader);
		return WM_READ_RECORD;
	}
	return WM_READ_MORE;
}

/* What cannot be a record, by the finder's state. */
static enum wm_read_result
reject_malformed(struct wm_reader *reader, struct wm_reject *reject, struct wm_record *rec, struct wm_span raw)
{
	unsigned long long line = reader->line + reader->finder.quote_line;

	switch (reader->finder.state) {
	case WM_CUT_QUOTED:
		return reject_record(reject, rec, raw, "malformed-csv",
			"the quoted field that begins in line %llu never ends", line);
	case WM_CUT_MALFORMED:
		return reject_record(reject, rec, raw, "malformed-csv", "text behind a closing quote%s",
			memmem(raw.data, raw.len, "\\\"", 2) != NULL
				? ": a backslash escapes no quote, a quote in quotes is doubled"
				: "");
	default:
		return reject_record(reject, rec, raw, "malformed-tsv",
			"a backslash takes the end of line %llu along, and nothing is behind it (where it is a letter: "
			"--tsv-escapes none)",
			line);
	}
}

/* A record that the scan left: it holds a quote out of place, is longer than a batch, ends the input, or has not wholly come. */
static enum wm_read_result
next_by_rules(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err)
{
	struct wm_span raw;
	const struct wm_cut_finder *finder = &reader->finder;
	enum found found = find_record(reader, &raw);
	enum wm_read_result result;

	if (found == FOUND_NOTHING)
		return end_input(reader);
	rec->line = reader->line;
	if (found == FOUND_PART) {
		if (!is_too_long(reader, raw))
			return WM_READ_MORE;
		reader->is_finding = false;
		result = reject_too_long(reader, reject, rec, raw);
	} else if (is_malformed(finder) && !is_too_long(reader, raw)) {
		result = reject_malformed(reader, reject, rec, raw);
	} else {
		if (reader->looks_for_quotes)
			look_at_first(reader, raw);
		wm_dialect_cut(&reader->cut, input_dialect(reader), wm_cut_content(raw));
		result = reader->is_of_cr ? judge_line_end(reader, raw, reader->cut.count, rec, reject, err)
					  : judge(reader, raw, reader->cut.count, rec, reject, err);
	}
	if (result == WM_READ_REJECTED) {
		cut_back(reader, raw, reject, rec);
		return result;
	}
	reader->line += finder->lines_count;
	take(reader, raw.len);
	if (result == WM_READ_RECORD) {
		for (size_t i = 0; i < reader->active_count; i++)
			if (reader->fields[i] != NO_FIELD)
				reader->values[i] =
					(struct wm_value){ reader->cut.fields[reader->fields[i]], WM_KIND_TEXT };
		read_fields(reader);
		note_long(reader, rec, finder->lines_count);
		rec->raw = raw;
		rec->fields = reader->values;
	}
	return result;
}

/* The rest of a line that is too long; what follows is for the stage next. */
static enum wm_read_result
skip_line(struct wm_reader *reader, enum stage next)
{
	struct wm_span text = unread(reader);
	const char *line_feed = memchr(text.data, '\n', text.len);

	take(reader, line_feed == NULL ? text.len : (size_t)(line_feed - text.data) + 1);
	if (line_feed == NULL && !is_final(reader))
		return WM_READ_MORE;
	reader->line++;
	reader->stage = next;
	return PASSED;
}

static enum wm_read_result
next_csv(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err)
{
	for (;;) {
		enum wm_read_result result = next_of_batch(reader, rec, reject, err);

		if (result != WM_READ_MORE)
			return result;
		if (reader->stage == STAGE_SKIP_CSV && skip_line(reader, STAGE_CSV) == WM_READ_MORE)
			return WM_READ_MORE;
		if (!reader->is_finding) {
			struct wm_span text = unread(reader);

			if (text.len > reader->batch_bytes)
				text.len = reader->batch_bytes;
			if (reader->batch_bytes < WM_SCAN_BYTES_MAX)
				reader->batch_bytes *= 2;
			wm_scan_batch(reader->scan, text);
			reader->scan->has_marks |= reader->is_of_cr; /* each record is looked at by itself */
			reader->rows_before += reader->row;
			reader->row = 0;
			reader->batch = text.data;
			if (reader->scan->rows_count > 0) {
				take(reader, reader->scan->bytes);
				continue;
			}
		}
		result = next_by_rules(reader, rec, reject, err);
		if (result != WM_READ_MORE || reader->is_finding)
			return result;
	}
}

/* Begins the next batch of lines: WM_READ_RECORD if there is one. */
static enum wm_read_result
begin_lines(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject)
{
	struct wm_span text = unread(reader);
	const char *line_feed = NULL;
	size_t len;

	if (reader->looked == 0)
		line_feed = memrchr(text.data, '\n', text.len < WM_NDJSON_BYTES_MAX ? text.len : WM_NDJSON_BYTES_MAX);
	if (line_feed == NULL)
		line_feed = memchr(text.data + reader->looked, '\n', text.len - reader->looked);
	len = line_feed == NULL ? text.len : (size_t)(line_feed - text.data) + 1;
	if (len == 0 && reader->is_at_end)
		return end_input(reader);
	if (line_feed == NULL && !is_final(reader)) {
		reader->looked = len;
		if (!is_too_long(reader, text))
			return WM_READ_MORE;
		rec->line = reader->line;
		take(reader, len);
		reader->stage = STAGE_SKIP_NDJSON;
		return reject_too_long(reader, reject, rec, text);
	}
	wm_ndjson_batch(reader->ndjson, wm_span(text.data, len));
	reader->has_lines = true;
	take(reader, len);
	return PASSED;
}

static enum wm_read_result
next_ndjson(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject)
{
	for (;;) {
		struct wm_ndjson_line line;
		enum wm_ndjson_result got = WM_NDJSON_END;
		enum wm_read_result result;

		if (reader->stage == STAGE_SKIP_NDJSON && skip_line(reader, STAGE_NDJSON) == WM_READ_MORE)
			return WM_READ_MORE;
		if (reader->has_lines)
			got = wm_ndjson_next(reader->ndjson, &line, reader->values);
		if (got == WM_NDJSON_END) {
			reader->has_lines = false;
			result = begin_lines(reader, rec, reject);
			if (result != PASSED)
				return result;
			continue;
		}
		rec->line = reader->line++;
		if (is_too_long(reader, line.raw))
			return reject_too_long(reader, reject, rec, line.raw);
		if (got == WM_NDJSON_MALFORMED)
			return reject_record(reject, rec, line.raw, "malformed-json", "%s, at byte %zu%s", line.wrong,
				line.wrong_at + 1, wm_foreign_is_tail(line.raw) ? tail_hint : "");
		for (size_t i = 0; i < reader->wants_count && got == WM_NDJSON_RECORD && reader->came != NULL; i++)
			judge_missing(reader, i, reader->values[i].text, WM_NULLS_JSON);
		if (got == WM_NDJSON_RECORD) {
			rec->raw = line.raw;
			rec->fields = reader->values;
			return WM_READ_RECORD;
		}
		reader->counts.lines_blank++;
	}
}

/* The next line of text, taken; WM_READ_RECORD if there is one. */
static enum wm_read_result
take_line(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject, struct wm_span *raw)
{
	struct wm_span text = unread(reader);
	const char *line_feed = memchr(text.data + reader->looked, '\n', text.len - reader->looked);

	*raw = line_feed == NULL ? text : wm_span(text.data, (size_t)(line_feed - text.data) + 1);
	if (raw->len == 0 && reader->is_at_end)
		return end_input(reader);
	rec->line = reader->line;
	if (line_feed == NULL && !is_final(reader)) {
		reader->looked = text.len;
		if (!is_too_long(reader, text))
			return WM_READ_MORE;
		take(reader, text.len);
		reader->stage = STAGE_SKIP_LINES;
		return reject_too_long(reader, reject, rec, text);
	}
	take(reader, raw->len);
	reader->line++;
	return is_too_long(reader, *raw) ? reject_too_long(reader, reject, rec, *raw) : PASSED;
}

static enum wm_read_result
next_line(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject)
{
	bool is_logfmt = reader->format == WM_FORMAT_LOGFMT;

	for (;;) {
		struct wm_span raw, content;

		if (reader->stage == STAGE_SKIP_LINES && skip_line(reader, STAGE_LINES) == WM_READ_MORE)
			return WM_READ_MORE;
		enum wm_read_result result = take_line(reader, rec, reject, &raw);
		if (result != PASSED)
			return result;
		content = wm_cut_content(raw);
		if (content.len == 0) {
			reader->counts.lines_blank++;
			continue;
		}
		const char *wrong = wm_lines_read(reader->lines, content);
		if (wrong != NULL && reader->options.skips_unmatched) {
			reader->counts.lines_unmatched++;
			continue;
		}
		if (wrong != NULL)
			return reject_record(reject, rec, raw, "malformed-line", "%s%s", wrong,
				wm_foreign_is_tail(raw) ? tail_hint : "");
		for (size_t i = 0; i < reader->wants_count; i++)
			if (is_logfmt || reader->fields[i] != NO_FIELD)
				reader->values[i] = wm_lines_field(reader->lines, is_logfmt ? i : reader->fields[i]);
		for (size_t i = 0; i < reader->wants_count && reader->came != NULL; i++)
			judge_missing(reader, i, reader->values[i].text, WM_NULLS_FIELD);
		rec->raw = raw;
		rec->fields = reader->values;
		return WM_READ_RECORD;
	}
}

/* ---- going on where an input was left ---- */

/* How its lines end. */
enum { KEPT_LF, KEPT_CRLF, KEPT_CR };

enum input_begun { INPUT_NEW, INPUT_IN_RECORDS, INPUT_IN_TOO_LONG };

static bool
is_skipping(enum stage stage)
{
	return stage == STAGE_SKIP_CSV || stage == STAGE_SKIP_NDJSON || stage == STAGE_SKIP_LINES;
}

/* u8 begun; and if it is: u8 0 (once a state in a record that is too long) · u8 format · u8 delimiter · u8 line end · flag header · its text. */
void
wm_reader_encode_input(const struct wm_reader *reader, struct wm_buf *out)
{
	enum stage stage = reader->stage == STAGE_CLOSED ? reader->last_stage : reader->stage;
	bool was_begun = reader->go_on.is_continued && reader->go_on.is_due;
	bool is_in_too_long = was_begun ? reader->go_on.is_skipping : is_skipping(stage);
	bool has_header = reader->input_header_len != NO_HEADER_LEN;

	if (!was_begun && stage < STAGE_CSV) {
		wm_put_u8(out, INPUT_NEW);
		return;
	}
	wm_put_u8(out, is_in_too_long ? INPUT_IN_TOO_LONG : INPUT_IN_RECORDS);
	wm_put_u8(out, 0);
	wm_put_u8(out, kept_format(reader->input_format));
	wm_put_u8(out, (uint8_t)reader->input_delimiter);
	wm_put_u8(out, reader->is_of_cr ? KEPT_CR : reader->input_line_end[0] == '\r' ? KEPT_CRLF : KEPT_LF);
	wm_put_u8(out, has_header);
	wm_put_span(out, has_header ? wm_buf_span(&reader->input_header) : wm_span("", 0));
}

/* False for what cannot be: then the input is read as if nothing was known of it. */
static bool
decode_input(struct wm_reader *reader, struct wm_span text)
{
	struct wm_get in;

	wm_get_init(&in, text);
	uint8_t begun = wm_get_u8(&in), state = wm_get_u8(&in), kept = wm_get_u8(&in), delimiter = wm_get_u8(&in);
	enum wm_format format = format_kept(reader, kept);
	uint8_t line_end = wm_get_u8(&in);
	bool has_header = wm_get_u8(&in) != 0;
	struct wm_span header = wm_get_span(&in);

	if (in.failed || begun == INPUT_NEW || state > WM_CUT_MALFORMED || format == WM_FORMAT_AUTO ||
		is_text_lines(format) != is_text_lines(reader->options.format) ||
		has_header == (reader->options.no_header || format >= WM_FORMAT_NDJSON))
		return false;
	reader->go_on.is_skipping = begun == INPUT_IN_TOO_LONG;
	reader->input_format = format;
	reader->input_delimiter = (char)delimiter;
	reader->input_line_end = line_end == KEPT_CRLF ? "\r\n" : "\n";
	reader->is_of_cr = line_end == KEPT_CR;
	reader->is_line_end_known = true;
	wm_buf_reset(&reader->input_header);
	wm_buf_add(&reader->input_header, header.data, header.len);
	reader->input_header_len = has_header ? header.len : NO_HEADER_LEN;
	return true;
}

/* Puts bytes behind those that are in the buffer. */
static void
put_bytes(struct wm_reader *reader, const void *bytes, size_t len)
{
	if (reader->capacity - reader->end < len)
		grow_buffer(reader, reader->end + len + reader->options.read_buffer_bytes);
	if (len != 0)
		memcpy(reader->data + reader->end, bytes, len);
	reader->end += len;
}

void
wm_reader_open_at(struct wm_reader *reader, int fd, const char *name, const struct wm_reader_start *start)
{
	struct go_on *go_on = &reader->go_on;

	wm_reader_open(reader, fd, name);
	go_on->is_due = true;
	go_on->is_continued = start->is_continued;
	go_on->offset = start->offset;
	go_on->lines = start->lines;
	go_on->has_no_rows = start->has_no_rows;
	bool is_begun = decode_input(reader, start->input);
	if (!start->is_continued)
		return;
	if (is_begun) {
		/* The header is read as it was, so that its columns are found as they were. */
		if (reader->input_header_len != NO_HEADER_LEN) {
			put_bytes(reader, reader->input_header.data, reader->input_header.len);
			put_bytes(reader, "\n", 1);
		}
		go_on->header_len = reader->end;
		reader->stage = STAGE_AGAIN;
	} else {
		go_on->is_due = go_on->is_continued = false;
		reader->line = start->lines + 1;
	}
	put_bytes(reader, start->rest.data, start->rest.len);
	go_on->rest_len = start->rest.len;
	reader->read_offset = start->offset + start->rest.len;
}

struct wm_reader_position
wm_reader_position(const struct wm_reader *reader)
{
	const struct go_on *go_on = &reader->go_on;
	const char *at = reader->data + reader->begin, *end = reader->data + reader->end;

	if (go_on->is_due && !go_on->is_continued)
		return (struct wm_reader_position){ go_on->offset, go_on->lines, reader->stage == STAGE_CLOSED,
			go_on->has_no_rows, wm_span(end, 0) };
	if (go_on->is_due)
		return (struct wm_reader_position){ go_on->offset, go_on->lines, reader->stage == STAGE_CLOSED,
			go_on->has_no_rows,
			wm_span(reader->data + go_on->header_len, reader->end - go_on->header_len) };
	if (reader->stage == STAGE_CSV && reader->scan != NULL && reader->row < reader->scan->rows_count)
		at = reader->batch + reader->scan->after[reader->scan->rows[reader->row]];
	else if (reader->has_lines)
		at -= wm_ndjson_left(reader->ndjson);
	uint64_t offset = reader->read_offset - (uint64_t)(end - at);
	return (struct wm_reader_position){
		.offset = offset,
		.lines = reader->line - 1,
		.is_at_end = reader->stage == STAGE_CLOSED,
		.has_no_rows = offset <= reader->records_at,
		.rest = wm_span(at, (size_t)(end - at)),
	};
}

struct wm_reader_position
wm_reader_position_before(const struct wm_reader *reader, const struct wm_record *rec)
{
	struct wm_reader_position position = wm_reader_position(reader);

	if (rec == NULL)
		return position;
	size_t more = (size_t)(position.rest.data - rec->raw.data);
	position.offset -= more;
	position.has_no_rows = position.offset <= reader->records_at;
	position.lines = rec->line - 1;
	position.rest = wm_span(rec->raw.data, position.rest.len + more);
	position.is_at_end = false;
	return position;
}

/* Goes over what was processed, as it comes. */
static enum wm_read_result
skip_processed(struct wm_reader *reader, struct wm_err *err)
{
	uint64_t at = unread_offset(reader), left = reader->go_on.offset - at;
	size_t here = unread(reader).len;

	if (here < left && reader->is_at_end) {
		wm_err_set(err, WM_ERR_IO, "%s: ends at byte %llu, and was processed up to byte %llu before",
			reader->name, (unsigned long long)reader->read_offset,
			(unsigned long long)reader->go_on.offset);
		close_input(reader);
		return WM_READ_FAILED;
	}
	take(reader, here < left ? here : (size_t)left);
	return here < left ? WM_READ_MORE : PASSED;
}

/* The records begin: goes to the one that is next. */
static enum wm_read_result
reach(struct wm_reader *reader, struct wm_err *err)
{
	struct go_on *go_on = &reader->go_on;
	uint64_t at = unread_offset(reader);
	enum wm_read_result result = PASSED;

	/* What stands before the header may have been all that was processed. */
	bool is_behind = !go_on->is_continued && at < go_on->offset;
	if (is_behind && lseek(reader->fd, (off_t)go_on->offset, SEEK_SET) >= 0) {
		reader->counts.bytes += go_on->offset - reader->read_offset;
		reader->read_offset = go_on->offset;
		reader->begin = reader->end = reader->looked = 0;
		reader->is_at_end = false;
	} else if (is_behind) {
		result = skip_processed(reader, err);
	}
	if (result != PASSED)
		return result;
	go_on->is_due = false;
	if (is_behind || go_on->is_continued)
		reader->line = go_on->lines + 1;
	go_on->is_joining = go_on->is_continued && go_on->rest_len > 0 && reader->input_header_len != NO_HEADER_LEN &&
		!go_on->is_skipping;
	if (go_on->is_skipping) {
		reader->stage = reader->stage == STAGE_CSV ? STAGE_SKIP_CSV
			: reader->stage == STAGE_NDJSON    ? STAGE_SKIP_NDJSON
							   : STAGE_SKIP_LINES;
	}
	return PASSED;
}

/* An input goes on with its header once more: what was kept of its last line is a record, which lacks its line end. */
static enum wm_read_result
join(struct wm_reader *reader)
{
	struct wm_span text = unread(reader), header = wm_buf_span(&reader->input_header);
	size_t rest_len = reader->go_on.rest_len;
	struct wm_span more = { text.data + rest_len, text.len - rest_len };
	size_t len = more.len < header.len ? more.len : header.len;

	bool may_be = memcmp(more.data, header.data, len) == 0;
	if (may_be && more.len <= header.len && !reader->is_at_end)
		return WM_READ_MORE;
	reader->go_on.is_joining = false;
	if (!may_be || more.len <= header.len || (more.data[header.len] != '\n' && more.data[header.len] != '\r'))
		return PASSED;
	put_bytes(reader, "\n", 1);
	char *place = reader->data + reader->begin + rest_len;
	memmove(place + 1, place, more.len);
	*place = '\n';
	reader->read_offset++;
	return PASSED;
}

/* All that may come before records. */
static enum wm_read_result
arrive(struct wm_reader *reader, struct wm_err *err)
{
	enum wm_read_result result = PASSED;

	if (reader->stage < STAGE_CSV)
		result = reader->stage == STAGE_CLOSED ? WM_READ_END : prepare(reader, err);
	if (result == PASSED && reader->records_at == UINT64_MAX)
		reader->records_at = unread_offset(reader);
	if (result == PASSED && reader->go_on.is_due)
		result = reach(reader, err);
	if (result == PASSED && reader->go_on.is_joining)
		result = join(reader);
	return result;
}

static enum wm_read_result
next_in_stage(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err)
{
	if (reader->stage < STAGE_CSV || reader->go_on.is_due || reader->go_on.is_joining) {
		enum wm_read_result result = arrive(reader, err);

		if (result != PASSED)
			return result;
	}
	if (reader->stage == STAGE_NDJSON || reader->stage == STAGE_SKIP_NDJSON)
		return next_ndjson(reader, rec, reject);
	if (reader->stage == STAGE_LINES || reader->stage == STAGE_SKIP_LINES)
		return next_line(reader, rec, reject);
	return next_csv(reader, rec, reject, err);
}

/* All but ordinary records of CSV. */
static __attribute__((noinline)) enum wm_read_result
next_other(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err)
{
	enum wm_read_result result = next_in_stage(reader, rec, reject, err);
	reader->row_other = reader->row;

	/* What wants more at the end is a part of a record, and stays. */
	return result == WM_READ_MORE && reader->is_at_end ? end_input(reader) : result;
}

enum wm_read_result
wm_reader_next(struct wm_reader *reader, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err)
{
	if (reader->stage == STAGE_CSV && next_ordinary(reader, rec))
		return WM_READ_RECORD;
	return next_other(reader, rec, reject, err);
}

bool
wm_reader_foresee(const struct wm_reader *reader, size_t ahead, size_t index, struct wm_value *value, uint64_t *number)
{
	const struct wm_scan *scan = reader->scan;
	size_t row = reader->row + ahead - 1, field = reader->fields[index];

	if (reader->stage != STAGE_CSV || row >= scan->rows_count || scan->has_marks ||
		scan->rows[row + 1] - scan->rows[row] <= field)
		return false;
	const uint32_t *after = &scan->after[scan->rows[row] + field];
	struct wm_span text = wm_span(reader->batch + after[0], after[1] - 1 - after[0]);

	/* As drop_cr() has it: exactly what the record will say, as its number says so. */
	text.len -= field + 1 == reader->columns.count && text.len > 0 && text.data[text.len - 1] == '\r';
	*value = (struct wm_value){ text, WM_KIND_TEXT };
	if (reader->options.nulls != NULL && wm_nulls_are_in(reader->options.nulls, value, WM_NULLS_FIELD))
		*value = (struct wm_value){ wm_span(text.data, 0), WM_KIND_NULL };
	*number = reader->rows_before + row + 1;
	return true;
}

uint64_t
wm_reader_number(const struct wm_reader *reader)
{
	return reader->row == reader->row_other ? 0 : reader->rows_before + reader->row;
}

/* ---- what is known ---- */

int
wm_reader_fd(const struct wm_reader *reader)
{
	return reader->fd;
}

const char *
wm_reader_name(const struct wm_reader *reader)
{
	return reader->name;
}

enum wm_format
wm_reader_format(const struct wm_reader *reader)
{
	bool has_columns = reader->format == WM_FORMAT_CSV || reader->format == WM_FORMAT_TSV;

	return has_columns && reader->columns.count == 0 ? WM_FORMAT_AUTO : reader->format;
}

char
wm_reader_delimiter(const struct wm_reader *reader)
{
	return reader->delimiter;
}

void (*wm_reader_refuse_value(const struct wm_reader *reader))(struct wm_span value)
{
	return reader->options.refuse_value;
}

const char *
wm_reader_line_end(const struct wm_reader *reader)
{
	return reader->line_end;
}

struct wm_span
wm_reader_header(const struct wm_reader *reader)
{
	return wm_buf_span(&reader->header_line);
}

const struct wm_header *
wm_reader_columns(const struct wm_reader *reader)
{
	return &reader->columns;
}

const struct wm_header *
wm_reader_names(const struct wm_reader *reader)
{
	return &reader->names;
}

struct wm_value
wm_reader_line_field(struct wm_reader *reader, size_t column)
{
	return wm_lines_field(reader->lines, column);
}

struct wm_span
wm_reader_line(struct wm_reader *reader, const struct wm_record *rec, struct wm_buf *scratch)
{
	struct wm_span raw = rec->raw;

	if (raw.data[raw.len - 1] == '\n' && reader->is_in_layout)
		return raw;
	wm_buf_reset(scratch);
	wm_reader_render(reader, rec, scratch);
	return wm_buf_span(scratch);
}

void
wm_reader_render(struct wm_reader *reader, const struct wm_record *rec, struct wm_buf *out)
{
	struct wm_span raw = rec->raw, content = wm_reader_as_came(reader, wm_cut_content(raw), &reader->swapped);
	struct wm_row_format format = {
		.format = reader->format == WM_FORMAT_TSV ? WM_FORMAT_TSV : WM_FORMAT_CSV,
		.delimiter = reader->delimiter,
		.line_end = reader->line_end,
		.refuse_value = reader->options.refuse_value,
	};

	if (raw.data[raw.len - 1] == '\n' && reader->is_in_layout) {
		wm_buf_add(out, raw.data, raw.len);
		return;
	}
	/* At the end of the input a backslash is itself: it must not take the line end along that is put behind it. */
	bool is_unfinished = input_dialect(reader).marks == WM_MARKS_ESCAPES && wm_tsv_is_unfinished(content);
	if (is_as_stream(reader)) {
		wm_buf_add(out, content.data, content.len);
		wm_buf_add_text(out, is_unfinished ? "\\" : "");
		wm_buf_add_text(out, wm_row_line_end(&format, content));
		return;
	}
	struct wm_cut *cut = &reader->cut;
	struct wm_buf said;

	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	wm_dialect_cut(cut, input_dialect(reader), content);
	/* A ragged record has no fields to put in order. */
	bool is_ordered = reader->order != NULL && cut->count == reader->columns.count;
	for (size_t i = 0; i < cut->count && i < WM_COLUMNS_MAX; i++) {
		struct wm_span field = cut->fields[is_ordered ? reader->order[i] : i];
		struct wm_value value = { wm_dialect_read(input_dialect(reader), field, &said), WM_KIND_TEXT };

		if (format.format == WM_FORMAT_TSV && reader->input_format == WM_FORMAT_TSV &&
			!wm_tsv_is_unfinished(field) && (field.len == 0 || field.data[field.len - 1] != '\r'))
			wm_row_put_raw(out, &format, i, field);
		else
			wm_row_put(out, &format, i, wm_span(NULL, 0), &value);
	}
	wm_row_end(out, &format, cut->count);
	wm_buf_release(&said);
}

bool
wm_reader_column_seen(const struct wm_reader *reader, size_t index)
{
	if (reader->format == WM_FORMAT_NDJSON)
		return reader->ndjson != NULL && wm_ndjson_seen(reader->ndjson, index);
	if (reader->format == WM_FORMAT_LOGFMT)
		return wm_lines_seen(reader->lines, index);
	return reader->columns.count != 0 && reader->fields[index] != NO_FIELD;
}

struct wm_value
wm_reader_said(const struct wm_reader *reader, size_t index)
{
	return reader->came == NULL ? reader->values[index] : reader->came[index];
}

bool
wm_reader_long_record(const struct wm_reader *reader, struct wm_reader_lines *lines)
{
	*lines = reader->long_record;
	return lines->first != 0;
}

bool
wm_reader_had_quotes(const struct wm_reader *reader)
{
	return reader->had_quotes;
}

uint64_t
wm_reader_quoted_line(const struct wm_reader *reader)
{
	return reader->quoted_line;
}

uint64_t
wm_reader_open_field(const struct wm_reader *reader)
{
	return reader->is_finding && wm_cut_is_open(reader->finder.state) ? reader->line + reader->finder.quote_line
									  : 0;
}

size_t
wm_reader_held_bytes(const struct wm_reader *reader)
{
	size_t first = reader->options.read_buffer_bytes;

	return reader->capacity > first ? reader->capacity - first : 0;
}

struct wm_reader_counts
wm_reader_counts(const struct wm_reader *reader)
{
	return reader->counts;
}
