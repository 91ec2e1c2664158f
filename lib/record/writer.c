/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/utf8.h"
#include "lib/record/cut.h"
#include "lib/record/tsv.h"

/* One write: a quarter of what a pipe into a tool of ours holds, so that both work at the same time, and wake each other seldom. */
#define BUFFER_BYTES ((size_t)256 << 10)
_Static_assert(WM_WRITER_ROOM_MAX <= BUFFER_BYTES, "there is room when it is empty");

struct wm_writer {
	int fd;
	char *name;
	char *data;
	size_t len;
	uint64_t bytes;
	bool has_failed;
	struct wm_err failure;
	struct wm_writer_wait wait;
};

struct wm_writer *
wm_writer_new(int fd, const char *name)
{
	struct wm_writer *writer = wm_calloc(1, sizeof(*writer));

	writer->fd = fd;
	writer->name = wm_memdup(name, strlen(name));
	writer->data = wm_malloc(BUFFER_BYTES);
	return writer;
}

void
wm_writer_set_wait(struct wm_writer *writer, const struct wm_writer_wait *wait)
{
	writer->wait = *wait;
}

/* Keeps the first failure, and hands it back. */
static bool
fail(struct wm_writer *writer, int error, struct wm_err *err)
{
	if (!writer->has_failed) {
		writer->has_failed = true;
		wm_err_set(&writer->failure, WM_ERR_IO, "%s: %s", writer->name, strerror(error));
	}
	*err = writer->failure;
	return false;
}

/* All of it, however often the system takes a part only. */
static bool
write_out(struct wm_writer *writer, const char *data, size_t len, struct wm_err *err)
{
	while (len > 0) {
		ssize_t written = write(writer->fd, data, len);

		if (written >= 0) {
			data += written;
			len -= (size_t)written;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			struct pollfd wait = { .fd = writer->fd, .events = POLLOUT };

			if (poll(&wait, 1, -1) < 0 && errno != EINTR)
				return fail(writer, errno, err);
		} else if (errno != EINTR) {
			return fail(writer, errno, err);
		}
		if (len > 0 && writer->wait.told != NULL)
			writer->wait.told(writer->wait.self, written > 0);
	}
	return true;
}

bool
wm_writer_close(struct wm_writer *writer, struct wm_err *err)
{
	bool is_well = wm_writer_flush(writer, err);

	/* After EINTR the descriptor is closed all the same on Linux. */
	if (close(writer->fd) != 0 && errno != EINTR && is_well)
		is_well = fail(writer, errno, err);
	free(writer->name);
	free(writer->data);
	free(writer);
	return is_well;
}

bool
wm_writer_put(struct wm_writer *writer, struct wm_span bytes, struct wm_err *err)
{
	if (writer->has_failed)
		return fail(writer, 0, err);
	writer->bytes += bytes.len;
	if (bytes.len > BUFFER_BYTES - writer->len) {
		if (!wm_writer_flush(writer, err))
			return false;
		if (bytes.len >= BUFFER_BYTES)
			return write_out(writer, bytes.data, bytes.len, err);
	}
	if (bytes.len != 0)
		memcpy(writer->data + writer->len, bytes.data, bytes.len);
	writer->len += bytes.len;
	return true;
}

char *
wm_writer_room(struct wm_writer *writer, size_t len, struct wm_err *err)
{
	assert(len <= WM_WRITER_ROOM_MAX);
	if (writer->has_failed) {
		*err = writer->failure;
		return NULL;
	}
	if (len > BUFFER_BYTES - writer->len && !wm_writer_flush(writer, err))
		return NULL;
	return writer->data + writer->len;
}

void
wm_writer_take(struct wm_writer *writer, size_t len)
{
	writer->len += len;
	writer->bytes += len;
}

bool
wm_writer_flush(struct wm_writer *writer, struct wm_err *err)
{
	size_t len = writer->len;

	if (writer->has_failed)
		return fail(writer, 0, err);
	writer->len = 0;
	return write_out(writer, writer->data, len, err);
}

/* open() and pread() of the whole, which interruptions and short reads do not end; -1: errno says why. */
static ssize_t
read_path(const char *path, char *bytes, size_t len, off_t offset)
{
	int fd;
	size_t filled = 0;
	ssize_t got = 0;

	do
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	while (fd == -1 && errno == EINTR);
	if (fd == -1)
		return -1;
	while (filled < len) {
		got = pread(fd, bytes + filled, len - filled, offset + (off_t)filled);
		if (got > 0)
			filled += (size_t)got;
		else if (got == 0 || errno != EINTR)
			break;
	}
	int error = errno;
	close(fd);
	errno = error;
	return got < 0 ? -1 : (ssize_t)filled;
}

/*
 * Reads at an offset of a regular file, through a descriptor of its own, as that may be for writing alone. A file that may not be read, and
 * a system without /proc, give nothing. False: it failed.
 */
static bool
read_back(const struct wm_writer *writer, char *bytes, size_t len, off_t offset, size_t *filled, struct wm_err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", writer->fd);
	ssize_t got = read_path(path, bytes, len, offset);
	*filled = got < 0 ? 0 : (size_t)got;
	if (got >= 0 || errno == EACCES || errno == EPERM || errno == ENOENT)
		return true;
	wm_err_set(err, WM_ERR_IO, "%s: %s", writer->name, strerror(errno));
	return false;
}

/* Whether output goes to a regular file. False: it could not be asked. */
static bool
find_file(const struct wm_writer *writer, struct stat *found, struct wm_err *err)
{
	if (fstat(writer->fd, found) == 0)
		return true;
	wm_err_set(err, WM_ERR_IO, "%s: %s", writer->name, strerror(errno));
	return false;
}

bool
wm_writer_first_bytes(const struct wm_writer *writer, char *bytes, size_t len_max, size_t *len, struct wm_err *err)
{
	struct stat found;

	*len = 0;
	if (!find_file(writer, &found, err))
		return false;
	return !S_ISREG(found.st_mode) || read_back(writer, bytes, len_max, 0, len, err);
}

/* The bytes of a regular file before the place where the next write goes, at most len_max. */
static bool
read_before(const struct wm_writer *writer, char *bytes, size_t len_max, size_t *len, struct wm_err *err)
{
	struct stat found;

	*len = 0;
	if (!find_file(writer, &found, err))
		return false;
	if (!S_ISREG(found.st_mode))
		return true;
	off_t at = (fcntl(writer->fd, F_GETFL) & O_APPEND) != 0 ? found.st_size : lseek(writer->fd, 0, SEEK_CUR);
	if (at <= 0)
		return true;
	size_t wanted = (uint64_t)at < len_max ? (size_t)at : len_max;
	if (!read_back(writer, bytes, wanted, at - (off_t)wanted, len, err))
		return false;
	/* Another program may have cut the file meanwhile. */
	if (*len < wanted)
		*len = 0;
	return true;
}

bool
wm_writer_end_line(struct wm_writer *writer, bool *was_open, struct wm_err *err)
{
	char bytes[4096];
	size_t len;

	if (!read_before(writer, bytes, sizeof(bytes), &len, err))
		return false;
	const char *line_end = len == 0 ? NULL : memrchr(bytes, '\n', len);

	*was_open = len != 0 && bytes[len - 1] != '\n';
	if (!*was_open)
		return true;
	bool has_return = line_end != NULL && line_end > bytes && line_end[-1] == '\r' && bytes[len - 1] != '\r';
	return wm_writer_put(writer, has_return ? wm_span("\r\n", 2) : wm_span("\n", 1), err);
}

int
wm_writer_fd(const struct wm_writer *writer)
{
	return writer->fd;
}

bool
wm_writer_is_pending(const struct wm_writer *writer)
{
	return writer->len > 0;
}

uint64_t
wm_writer_bytes(const struct wm_writer *writer)
{
	return writer->bytes;
}

static void
put_quoted(struct wm_buf *out, struct wm_span text)
{
	wm_buf_add_byte(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"')
			wm_buf_add_byte(out, '"');
		wm_buf_add_byte(out, text.data[i]);
	}
	wm_buf_add_byte(out, '"');
}

/* Copies and looks at once, as most fields are short and need no quotes. */
static void
put_csv(struct wm_buf *out, char delimiter, struct wm_span text)
{
	bool fits = wm_buf_reserve(out, text.len);
	char *to = out->data + out->len;

	(void)fits; /* it is unbounded */
	for (size_t i = 0; i < text.len; i++) {
		char byte = text.data[i];

		if (byte == delimiter || byte == '"' || byte == '\n' || byte == '\r') {
			put_quoted(out, text);
			return;
		}
		to[i] = byte;
	}
	out->len += text.len;
}

struct wm_row_format
wm_row_format_of(const struct wm_reader *reader)
{
	enum wm_format format = wm_reader_format(reader);

	return (struct wm_row_format){
		.format = format == WM_FORMAT_LOGFMT ? WM_FORMAT_NDJSON
			: format > WM_FORMAT_NDJSON  ? WM_FORMAT_CSV
						     : format,
		.delimiter = wm_reader_delimiter(reader),
		.line_end = wm_reader_line_end(reader),
		.refuse_value = wm_reader_refuse_value(reader),
	};
}

static char
delimiter_of(const struct wm_row_format *format)
{
	return format->format == WM_FORMAT_TSV ? '\t' : format->delimiter;
}

struct wm_dialect
wm_row_dialect(const struct wm_row_format *format)
{
	return (struct wm_dialect){
		.delimiter = delimiter_of(format),
		.marks = format->format != WM_FORMAT_TSV ? WM_MARKS_QUOTES
			: format->refuse_value == NULL   ? WM_MARKS_ESCAPES
							 : WM_MARKS_NONE,
	};
}

/* A value as a field of CSV or TSV. */
static void
put_field(struct wm_buf *out, const struct wm_row_format *format, struct wm_span text)
{
	if (format->format != WM_FORMAT_TSV) {
		put_csv(out, format->delimiter, text);
		return;
	}
	if (format->refuse_value == NULL) {
		wm_tsv_put(out, text);
		return;
	}
	if (!wm_tsv_is_literal(text))
		format->refuse_value(text);
	wm_buf_add(out, text.data, text.len);
}

const char *
wm_row_line_end(const struct wm_row_format *format, struct wm_span row)
{
	return row.len > 0 && row.data[row.len - 1] == '\r' ? "\r\n" : format->line_end;
}

void
wm_row_put_raw(struct wm_buf *out, const struct wm_row_format *format, size_t index, struct wm_span field)
{
	if (index > 0)
		wm_buf_add_byte(out, delimiter_of(format));
	if (field.len > 0)
		wm_buf_add(out, field.data, field.len);
}

void
wm_row_put(struct wm_buf *out, const struct wm_row_format *format, size_t index, struct wm_span name,
	const struct wm_value *value)
{
	if (format->format != WM_FORMAT_NDJSON) {
		if (index > 0)
			wm_buf_add_byte(out, delimiter_of(format));
		if (value->text.len > 0)
			put_field(out, format, value->text);
		return;
	}
	wm_buf_add_byte(out, index == 0 ? '{' : ',');
	wm_json_put_string(out, name);
	wm_buf_add_byte(out, ':');
	wm_json_put_value(out, value);
}

void
wm_row_put_guarded(struct wm_buf *out, const struct wm_row_format *format, const struct wm_nulls *nulls, size_t index,
	const struct wm_value *value)
{
	bool is_guarded = nulls != NULL && format->format == WM_FORMAT_CSV && value->text.len != 0 &&
		wm_nulls_are_in(nulls, value, WM_NULLS_FIELD) && !wm_nulls_are_in(nulls, value, WM_NULLS_QUOTED);

	if (!is_guarded) {
		wm_row_put(out, format, index, wm_span(NULL, 0), value);
		return;
	}
	if (index > 0)
		wm_buf_add_byte(out, format->delimiter);
	put_quoted(out, value->text);
}

void
wm_row_end(struct wm_buf *out, const struct wm_row_format *format, size_t fields_count)
{
	if (format->format == WM_FORMAT_NDJSON)
		wm_buf_add_text(out, fields_count == 0 ? "{}" : "}");
	else if (format->format != WM_FORMAT_TSV && fields_count == 1 &&
		(out->len == 0 || out->data[out->len - 1] == '\n'))
		wm_buf_add_text(out, "\"\""); /* else the row would be an empty line */
	wm_buf_add_text(out, format->line_end);
}

/* Sixteen bytes at a time, in whatever registers the machine has. */
#define LANES 16
typedef unsigned char lanes __attribute__((vector_size(LANES)));

/* So many blocks are counted before a lane could overflow. */
#define BLOCKS_MAX 255

static inline lanes
all_lanes(char byte)
{
	return (lanes){ 0 } + (unsigned char)byte;
}

/*
 * Whether a row that was put together from values as they are can stand so: it has no more delimiters than stand between its fields, no
 * mark (the quote of CSV, the backslash of TSV), and no line end. Behind it stand LANES bytes that are none of these. False, too, for long ones.
 */
static bool
is_plain_row(const char *row, size_t len, char delimiter, char mark, size_t fields_count)
{
	const lanes delimiters = all_lanes(delimiter), marks = all_lanes(mark), feeds = all_lanes('\n'),
		    returns = all_lanes('\r');
	lanes found = { 0 }, counts = { 0 };
	uint64_t halves[2];
	size_t count = 0;

	if (len > LANES * BLOCKS_MAX)
		return false;
	for (size_t at = 0; at < len; at += LANES) {
		lanes block;

		memcpy(&block, row + at, LANES);
		found |= (lanes)(block == marks) | (lanes)(block == feeds) | (lanes)(block == returns);
		counts -= (lanes)(block == delimiters);
	}
	memcpy(halves, &found, LANES);
	if ((halves[0] | halves[1]) != 0)
		return false;
	memcpy(halves, &counts, LANES);
	for (size_t i = 0; i < 2; i++) {
		uint64_t sums =
			(halves[i] & UINT64_C(0x00ff00ff00ff00ff)) + (halves[i] >> 8 & UINT64_C(0x00ff00ff00ff00ff));

		count += sums * UINT64_C(0x0001000100010001) >> 48;
	}
	return count == fields_count - 1;
}

/* A row of CSV or TSV in which no field needs quotes or escapes, as few do; false, and nothing done, for others. */
static bool
put_plain_row(struct wm_buf *out, const struct wm_row_format *format, char delimiter, const struct wm_value *values,
	size_t count)
{
	size_t bytes = count + LANES;

	for (size_t i = 0; i < count; i++)
		bytes += values[i].text.len;
	char *row = wm_buf_room(out, bytes), *to = row;
	for (size_t i = 0; i < count; i++) {
		to = wm_span_copy(to, values[i].text);
		*to++ = delimiter;
	}
	/* The last delimiter is none. Line ends are shorter than what the row had to have behind it. */
	size_t len = (size_t)(--to - row);
	memset(to, 0, LANES);
	if (len == 0 || !is_plain_row(row, len, delimiter, format->format == WM_FORMAT_TSV ? '\\' : '"', count))
		return false;
	*to++ = format->line_end[0];
	if (format->line_end[0] == '\r')
		*to++ = '\n';
	out->len += (size_t)(to - row);
	return true;
}

bool
wm_row_is_plain(const struct wm_row_format *format)
{
	char delimiter = delimiter_of(format);

	return strchr("0123456789+-:.TZe", delimiter) == NULL;
}

size_t
wm_row_behind_bytes(struct wm_span line, const struct wm_value *values, size_t count)
{
	size_t bytes = line.len + count;

	for (size_t i = 0; i < count; i++)
		bytes += values[i].text.len;
	return bytes;
}

char *
wm_row_put_behind(
	char *to, const struct wm_row_format *format, struct wm_span line, const struct wm_value *values, size_t count)
{
	char delimiter = delimiter_of(format);
	struct wm_span content = wm_cut_content(line);

	memcpy(to, content.data, content.len);
	to += content.len;
	for (size_t i = 0; i < count; i++) {
		*to++ = delimiter;
		to = wm_span_copy(to, values[i].text);
	}
	for (size_t i = content.len; i < line.len; i++)
		*to++ = line.data[i];
	return to;
}

void
wm_row_put_all(struct wm_buf *out, const struct wm_row_format *format, const struct wm_span *names,
	const struct wm_value *values, size_t count)
{
	char delimiter = delimiter_of(format);

	if (format->format != WM_FORMAT_NDJSON && count > 0 && put_plain_row(out, format, delimiter, values, count))
		return;
	for (size_t i = 0; i < count; i++)
		wm_row_put(out, format, i, names[i], &values[i]);
	wm_row_end(out, format, count);
}

void
wm_json_put_name(struct wm_buf *out, const char *name)
{
	if (out->data[out->len - 1] != '{')
		wm_buf_add_byte(out, ',');
	wm_buf_addf(out, "\"%s\":", name);
}

void
wm_json_put_value(struct wm_buf *out, const struct wm_value *value)
{
	if (value->kind == WM_KIND_NULL)
		wm_buf_add_text(out, "null");
	else if (value->kind == WM_KIND_TEXT)
		wm_json_put_string(out, value->text);
	else
		wm_buf_add(out, value->text.data, value->text.len);
}

void
wm_json_put_string(struct wm_buf *out, struct wm_span text)
{
	static const char escaped[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	size_t plain = 0; /* where what is not yet copied begins */

	wm_buf_add_byte(out, '"');
	for (size_t at = 0; at < text.len;) {
		unsigned char byte = (unsigned char)text.data[at];
		size_t len = byte < 0x80 ? 1 : wm_utf8_len(text.data + at, text.len - at);

		if (len > 0 && byte >= 0x20 && byte != '"' && byte != '\\') {
			at += len;
			continue;
		}
		wm_buf_add(out, text.data + plain, at - plain);
		const char *found = byte == '\0' ? NULL : strchr(escaped, byte);
		uint32_t half = len == 0 ? wm_utf8_surrogate(text.data + at, text.len - at) : 0;
		if (half != 0)
			wm_buf_addf(out, "\\u%04x", (unsigned)half);
		else if (len == 0)
			wm_buf_add_text(out, "\\ufffd");
		else if (found != NULL)
			wm_buf_add(out, (char[]){ '\\', letters[found - escaped] }, 2);
		else
			wm_buf_addf(out, "\\u%04x", byte);
		at += half != 0 ? 3 : 1;
		plain = at;
	}
	if (plain < text.len)
		wm_buf_add(out, text.data + plain, text.len - plain);
	wm_buf_add_byte(out, '"');
}

static const char *
skip_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

bool
wm_json_is_number(struct wm_span text)
{
	const char *at = text.data, *end = text.data + text.len, *begin;

	if (at < end && *at == '-')
		at++;
	begin = at;
	at = skip_digits(at, end);
	if (at == begin || (*begin == '0' && at - begin > 1))
		return false;
	if (at < end && *at == '.') {
		begin = ++at;
		at = skip_digits(at, end);
		if (at == begin)
			return false;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		if (at < end && (*at == '+' || *at == '-'))
			at++;
		begin = at;
		at = skip_digits(at, end);
		if (at == begin)
			return false;
	}
	return at == end;
}

struct wm_value
wm_value_from_csv(struct wm_span text)
{
	if (text.len == 0)
		return (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
	return (struct wm_value){ text, wm_json_is_number(text) ? WM_KIND_NUMBER : WM_KIND_TEXT };
}
