/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/terminal.h"
#include "cmd/uses.h"
#include "lib/base/mem.h"
#include "lib/base/shown.h"
#include "lib/record/display.h"
#include "lib/record/stamps.h"
#include "lib/state/checkpoint.h"
#include "lib/time/civil.h"
#include "lib/time/instant.h"

/* One side file. */
struct side {
	const char *option; /* "--late", for messages */
	const char *path;   /* NULL: not asked for */
	struct wm_writer *writer;
	bool is_regular; /* no pipe and no device */
	bool was_empty;  /* nothing was in it before: a header is due */
	bool had_no_end; /* its last line got one, which is yet to be said */
	char *created;   /* the name that was made for it by this run; NULL: it was there */
};

/* Inputs that have late rows of their own. */
#define OUTPUTS_STREAMS_MAX 2

struct outputs {
	const struct cli_common *common;
	struct side out; /* path NULL: standard output */
	struct side late[OUTPUTS_STREAMS_MAX];
	struct wm_stamps late_info[OUTPUTS_STREAMS_MAX]; /* the columns of --late-info in rows of a stream */
	bool has_late_info[OUTPUTS_STREAMS_MAX];         /* whether these are known yet */
	struct side duplicates;
	struct side rejects;
	struct side report;
	bool is_begun;    /* nothing stands against the run any more, but for misuse that the first record shows */
	bool is_reopened; /* after SIGHUP: they may be other files */
	struct wm_row_format row_format;
	struct wm_display *display; /* -o table; else NULL */
	bool is_from_csv;           /* fields have no types */
	const struct wm_span *names;
	struct wm_value *told; /* a row on its way to a table */
	size_t names_count;
	struct wm_buf line;
	struct wm_buf header; /* of results: for a file that SIGHUP lets begin */
	struct wm_writer_wait wait;
};

void
outputs_guard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		/* The lowest free descriptor is the closed one; opened the wrong way round, so that its use fails. */
		int flags = fd == 0 ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", flags | O_CLOEXEC) == -1)
			cli_misuse("cannot open /dev/null: %s", strerror(errno));
	}
}

static void
put(struct wm_writer *writer, struct wm_span bytes)
{
	struct wm_err err;

	if (!wm_writer_put(writer, bytes, &err))
		cli_die(&err);
}

struct outputs *
outputs_open(const struct cli_common *common)
{
	struct outputs *outputs = wm_calloc(1, sizeof(struct outputs));

	outputs->common = common;
	outputs->out = (struct side){ .option = "--out", .path = common->out_path };
	outputs->late[0] =
		(struct side){ .option = common->has_sides ? "--late-left" : "--late", .path = common->late_path };
	outputs->late[1] = (struct side){ .option = "--late-right", .path = common->late_right_path };
	outputs->duplicates = (struct side){ .option = "--duplicates", .path = common->duplicates_path };
	outputs->rejects = (struct side){ .option = "--rejects", .path = common->rejects_path };
	outputs->report = (struct side){ .option = "--report", .path = common->report_path };
	wm_buf_init(&outputs->line, WM_BUF_UNBOUNDED);
	wm_buf_init(&outputs->header, WM_BUF_UNBOUNDED);
	return outputs;
}

void
outputs_set_wait(struct outputs *outputs, const struct wm_writer_wait *wait)
{
	outputs->wait = *wait;
}

void
outputs_set_columns(struct outputs *outputs, const struct wm_span *names, size_t count)
{
	outputs->names = names;
	outputs->names_count = count;
	free(outputs->told); /* columns of a join are told anew */
	outputs->told = wm_calloc(count, sizeof(outputs->told[0]));
}

static void
flush(struct wm_writer *writer)
{
	struct wm_err err;

	if (writer != NULL && wm_writer_is_pending(writer) && !wm_writer_flush(writer, &err))
		cli_die(&err);
}

static void
close_writer(struct wm_writer **writer)
{
	struct wm_writer *closed = *writer;
	struct wm_err err;

	flush(closed);
	*writer = NULL;
	if (closed != NULL && !wm_writer_close(closed, &err))
		cli_die(&err);
}

/* The number-th of all outputs; NULL: there are no more. */
static struct side *
side_at(struct outputs *outputs, size_t number)
{
	struct side *sides[] = { &outputs->out, &outputs->late[0], &outputs->late[1], &outputs->duplicates,
		&outputs->rejects, &outputs->report };

	return number < sizeof(sides) / sizeof(sides[0]) ? sides[number] : NULL;
}

/* The same to look at. */
static const struct side *
side_shown(const struct outputs *outputs, size_t number)
{
	return side_at((struct outputs *)(uintptr_t)outputs, number);
}

/* Those of this process, while it may still be refused. */
static struct outputs *started;

/* A run that is refused leaves nothing: files that it made, and that are empty, go. */
static void
remove_created(int status, void *unused)
{
	const struct side *side;
	struct stat ours, found;

	(void)unused;
	if (started == NULL || !(status == CLI_MISUSE || (status != CLI_DONE && !started->is_begun)))
		return;
	for (size_t i = 0; (side = side_at(started, i)) != NULL; i++)
		if (side->created != NULL && side->writer != NULL && fstat(wm_writer_fd(side->writer), &ours) == 0 &&
			stat(side->created, &found) == 0 && found.st_dev == ours.st_dev &&
			found.st_ino == ours.st_ino && found.st_size == 0)
			unlink(side->created);
}

static _Noreturn void
die_of_path(const char *path, const char *why)
{
	struct wm_err err;

	(void)wm_err_set(&err, WM_ERR_IO, "%s: %s", path, why);
	cli_die(&err);
}

/* Opens a side file and locks it: of two runs that write to one file each would tear the lines of the other. */
static void
open_side(const struct outputs *outputs, struct side *side)
{
	struct stat found;

	if (side->path == NULL)
		return;
	free(side->created);
	side->created = uses_find(side->path, &found) ? NULL : uses_resolve(side->path);
	int fd = cli_open(side->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
	if (fd == -1)
		die_of_path(side->path, strerror(errno));
	side->writer = wm_writer_new(fd, side->path);
	wm_writer_set_wait(side->writer, &outputs->wait);
	if (fstat(fd, &found) == -1)
		die_of_path(side->path, strerror(errno));
	/* Where there are no locks nothing is known against the run. */
	if (S_ISREG(found.st_mode) && wm_checkpoint_system.lock(NULL, fd) == -1 &&
		(errno == EAGAIN || errno == EACCES)) {
		free(side->created);
		side->created = NULL;
		die_of_path(side->path, "another run writes to it: wait for its end, or name another file");
	}
	side->is_regular = S_ISREG(found.st_mode);
	side->was_empty = !side->is_regular || found.st_size == 0;
}

/* Refuses a file to which rows of another kind would be added: what they are there is said, and what they would be. */
static _Noreturn void
refuse_content(const struct outputs *outputs, const struct side *side, struct wm_span begin, struct wm_span wanted)
{
	struct wm_buf text;
	struct wm_err err;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_addf(&text, "%s: %s begins with '", side->option, side->path);
	wm_shown(begin, &text);
	wm_buf_add_text(&text, "', and this run would add ");
	if (wanted.len == 0) {
		wm_buf_add_text(&text, "NDJSON");
	} else {
		wm_buf_add_text(&text, "rows of '");
		wm_shown(wanted, &text);
		wm_buf_add_byte(&text, '\'');
	}
	wm_buf_add_text(&text, ": name another file");
	(void)wm_err_set(&err, outputs->is_reopened ? WM_ERR_IO : WM_ERR_USAGE, "%.*s", (int)text.len, text.data);
	wm_buf_release(&text);
	cli_die(&err);
}

/* The first line of a text, without its end and a byte order mark. */
static struct wm_span
first_line(struct wm_span text)
{
	static const char mark[] = "\xEF\xBB\xBF";
	const char *line_end = text.len == 0 ? NULL : memchr(text.data, '\n', text.len);

	if (line_end != NULL)
		text.len = (size_t)(line_end - text.data);
	if (text.len > 0 && text.data[text.len - 1] == '\r')
		text.len--;
	if (text.len >= 3 && memcmp(text.data, mark, 3) == 0)
		text = wm_span(text.data + 3, text.len - 3);
	return text;
}

/* What a file holds that is added to begins with the same header; without one, with an object. */
static void
check_content(struct outputs *outputs, const struct side *side, struct wm_span header)
{
	struct wm_span wanted = first_line(header);
	size_t len_max = wanted.len + 80, len, blanks = 0;
	struct wm_err err;

	if (side->path == NULL || side->writer == NULL || side->was_empty)
		return;
	char *bytes = wm_malloc(len_max);
	if (!wm_writer_first_bytes(side->writer, bytes, len_max, &len, &err))
		cli_die(&err);
	struct wm_span begin = first_line(wm_span(bytes, len));
	while (blanks < begin.len && (begin.data[blanks] == ' ' || begin.data[blanks] == '\t'))
		blanks++;
	bool is_object = blanks < begin.len && begin.data[blanks] == '{';
	bool is_good = wanted.len == 0 ? begin.len == 0 || is_object : wm_span_equal(begin, wanted);
	/* A file that may be written, and not be read, is taken as it is. */
	if (!is_good && len != 0)
		refuse_content(outputs, side, begin, wanted);
	free(bytes);
}

/* Once it is known that the file is not refused. */
static void
tell_line_end(const struct outputs *outputs, struct side *side)
{
	if (side->had_no_end && !outputs->common->quiet)
		cli_warn("%s: its last line had no end, and gets one before rows are added",
			side->path == NULL ? "standard output" : side->path);
	side->had_no_end = false;
}

/* Before the first byte to a file that may hold something: what is added begins a line there. */
static void
ready_side(struct outputs *outputs, struct side *side)
{
	struct wm_err err;

	if (side == &outputs->rejects || side == &outputs->report)
		check_content(outputs, side, wm_span(NULL, 0));
	if (side->writer != NULL && !wm_writer_end_line(side->writer, &side->had_no_end, &err))
		cli_die(&err);
}

static enum wm_format
result_format(int asked, enum wm_format of_stream)
{
	switch (asked) {
	case CLI_OUTPUT_CSV:
	case CLI_OUTPUT_TABLE:
		return WM_FORMAT_CSV;
	case CLI_OUTPUT_TSV:
		return WM_FORMAT_TSV;
	case CLI_OUTPUT_NDJSON:
		return WM_FORMAT_NDJSON;
	default:
		/* Lines of text have no form for what is computed. */
		return of_stream > WM_FORMAT_NDJSON ? WM_FORMAT_CSV : of_stream;
	}
}

/* What --late-info adds to a row. */
#define LATE_INFO 2
static const struct wm_span late_info_names[LATE_INFO] = { { "_late_by", 8 }, { "_late_watermark", 15 } };

/* A header where one is due; what is there already is to have the same. Of NDJSON it is empty. */
static void
put_side_header(struct outputs *outputs, struct side *side, struct wm_span header)
{
	if (side->was_empty)
		put(side->writer, header);
	else
		check_content(outputs, side, header);
	tell_line_end(outputs, side);
}

/* Rows that were late before have the columns already: these get new values where they stand. */
static void
begin_late_info(struct outputs *outputs, size_t stream, const struct wm_reader *reader)
{
	static const struct wm_header none = { 0 };
	const struct wm_row_format format = wm_row_format_of(reader);

	if (outputs->has_late_info[stream])
		return;
	outputs->has_late_info[stream] = true;
	wm_stamps_init(&outputs->late_info[stream], &format,
		format.format == WM_FORMAT_NDJSON ? &none : wm_reader_columns(reader), late_info_names, LATE_INFO);
}

void
outputs_begin_side(struct outputs *outputs, size_t stream, const struct wm_reader *reader)
{
	struct side *late = &outputs->late[stream];
	struct wm_span header = wm_reader_header(reader);
	struct wm_buf *line = &outputs->line;
	bool is_ndjson = wm_reader_format(reader) == WM_FORMAT_NDJSON;

	if (stream == 0 && outputs->duplicates.writer != NULL && (header.len != 0 || is_ndjson))
		put_side_header(outputs, &outputs->duplicates, header);
	if (late->writer == NULL)
		return;
	if (outputs->common->late_info)
		begin_late_info(outputs, stream, reader);
	if (header.len == 0 && !is_ndjson)
		return;
	wm_buf_reset(line);
	if (outputs->common->late_info && header.len != 0)
		wm_stamps_put_header(&outputs->late_info[stream], header, line);
	else
		wm_buf_add(line, header.data, header.len);
	put_side_header(outputs, late, wm_buf_span(line));
}

void
outputs_start(struct outputs *outputs)
{
	struct side *side;

	started = outputs;
	on_exit(remove_created, NULL);
	outputs->out.was_empty = true;
	if (outputs->out.path == NULL) {
		outputs->out.writer = wm_writer_new(STDOUT_FILENO, "standard output");
		wm_writer_set_wait(outputs->out.writer, &outputs->wait);
	}
	for (size_t i = 0; (side = side_at(outputs, i)) != NULL; i++)
		open_side(outputs, side);
	/* Only now: each of them could be had. */
	for (size_t i = 0; (side = side_at(outputs, i)) != NULL && outputs->common->overwrite; i++) {
		if (side->path == NULL || side->was_empty)
			continue;
		if (ftruncate(wm_writer_fd(side->writer), 0) == -1)
			die_of_path(side->path, strerror(errno));
		side->was_empty = true;
	}
	/* With a checkpoint not a byte is written before the first commit: see outputs_begin_at(). */
	for (size_t i = 0; (side = side_at(outputs, i)) != NULL && outputs->common->checkpoint == NULL; i++)
		ready_side(outputs, side);
	outputs->is_begun = outputs->common->checkpoint == NULL;
}

const char *
outputs_option(const struct outputs *outputs, size_t number, int *fd)
{
	const struct side *side = side_shown(outputs, number);

	if (side == NULL)
		return NULL;
	*fd = side->writer == NULL ? -1 : wm_writer_fd(side->writer);
	return number == 0 && side->path == NULL ? "standard output" : side->option;
}

void
outputs_begin_at(struct outputs *outputs, size_t number, uint64_t length)
{
	struct side *side = side_at(outputs, number);

	outputs->is_begun = true;
	side->was_empty = length == 0;
	if (length != 0)
		ready_side(outputs, side);
}

/* A table as wide as the terminal, where results go to one. */
static void
open_display(struct outputs *outputs)
{
	struct wm_display_options options = {
		.width = outputs->out.path == NULL ? terminal_width(STDOUT_FILENO) : 0,
		.is_utf8 = terminal_is_utf8(),
	};

	outputs->display = wm_display_new(outputs->names, outputs->names_count, &options);
}

void
outputs_put_header(struct outputs *outputs, struct wm_span line)
{
	if (outputs->common->no_output_header)
		return;
	wm_buf_reset(&outputs->header);
	wm_buf_add(&outputs->header, line.data, line.len);
	put_side_header(outputs, &outputs->out, line);
}

/* A pipe that is opened anew would end for its reader: results stay in it. */
static bool
can_reopen(const struct outputs *outputs, const struct side *side)
{
	return side->path != NULL && (side != &outputs->out || side->is_regular);
}

void
outputs_begin_again(struct outputs *outputs)
{
	if (can_reopen(outputs, &outputs->out) && outputs->header.len != 0)
		put_side_header(outputs, &outputs->out, wm_buf_span(&outputs->header));
}

static void
put_header(struct outputs *outputs)
{
	const struct wm_row_format *format = &outputs->row_format;
	struct wm_buf *line = &outputs->line;

	if (format->format == WM_FORMAT_NDJSON || outputs->names_count == 0)
		return;
	wm_buf_reset(line);
	for (size_t i = 0; i < outputs->names_count; i++) {
		struct wm_value name = { outputs->names[i], WM_KIND_TEXT };

		wm_row_put(line, format, i, name.text, &name);
	}
	wm_row_end(line, format, outputs->names_count);
	outputs_put_header(outputs, wm_buf_span(line));
}

struct wm_row_format
outputs_row_format(const struct outputs *outputs)
{
	return outputs->row_format;
}

enum wm_format
outputs_format(const struct outputs *outputs)
{
	return outputs->row_format.format;
}

static void
begin_rows(struct outputs *outputs)
{
	if (outputs->common->output_format == CLI_OUTPUT_TABLE)
		open_display(outputs);
	else if (outputs->row_format.format != WM_FORMAT_AUTO) /* an input without a byte told nothing */
		put_header(outputs);
}

void
outputs_settle(struct outputs *outputs, const struct wm_reader *reader)
{
	enum wm_format of_stream = wm_reader_format(reader);
	enum wm_format format = result_format(outputs->common->output_format, of_stream);
	char delimiter = ',';

	if (format == WM_FORMAT_TSV)
		delimiter = '\t';
	else if (format == WM_FORMAT_CSV && of_stream == WM_FORMAT_CSV)
		delimiter = wm_reader_delimiter(reader);
	outputs->row_format = (struct wm_row_format){
		format,
		delimiter,
		wm_reader_line_end(reader),
		wm_reader_refuse_value(reader),
	};
	outputs->is_from_csv = of_stream != WM_FORMAT_NDJSON;
	if (format == WM_FORMAT_NDJSON)
		check_content(outputs, &outputs->out, wm_span(NULL, 0));
	if (outputs->names != NULL)
		begin_rows(outputs);
}

void
outputs_begin_rows(struct outputs *outputs, const struct wm_span *names, size_t count)
{
	outputs_set_columns(outputs, names, count);
	begin_rows(outputs);
}

/* The values of a row as its format wants them: those from CSV are texts, and where types count, numbers are told from these. */
static const struct wm_value *
told_values(struct outputs *outputs, const struct wm_value *values)
{
	bool has_types = outputs->row_format.format == WM_FORMAT_NDJSON || outputs->display != NULL;

	if (!has_types || !outputs->is_from_csv)
		return values;
	for (size_t i = 0; i < outputs->names_count; i++)
		outputs->told[i] = values[i].kind == WM_KIND_TEXT ? wm_value_from_csv(values[i].text) : values[i];
	return outputs->told;
}

void
outputs_put_row(struct outputs *outputs, const struct wm_value *values)
{
	const struct wm_row_format *format = &outputs->row_format;
	struct wm_buf *line = &outputs->line;

	/* An input without a byte told nothing, and gives nothing. */
	if (format->format == WM_FORMAT_AUTO && outputs->display == NULL)
		return;
	wm_buf_reset(line);
	values = told_values(outputs, values);
	if (outputs->display != NULL)
		wm_display_put(outputs->display, values, line);
	else
		wm_row_put_all(line, format, outputs->names, values, outputs->names_count);
	put(outputs->out.writer, wm_buf_span(line));
}

void
outputs_put_lone(struct outputs *outputs, size_t column, const struct wm_value *value)
{
	if (outputs->display != NULL || outputs->row_format.format == WM_FORMAT_AUTO)
		return;
	wm_buf_reset(&outputs->line);
	wm_lone_put(&outputs->line, &outputs->row_format, outputs->names_count, column, outputs->names[column], value);
	put(outputs->out.writer, wm_buf_span(&outputs->line));
}

/* What a table holds back to learn how wide its columns are. */
static void
flush_display(struct outputs *outputs, bool is_last)
{
	if (outputs->display == NULL)
		return;
	wm_buf_reset(&outputs->line);
	if (is_last)
		wm_display_end(outputs->display, &outputs->line);
	else
		wm_display_flush(outputs->display, &outputs->line);
	put(outputs->out.writer, wm_buf_span(&outputs->line));
}

/* A table ends with its file. */
static void
end_display(struct outputs *outputs)
{
	flush_display(outputs, true);
	wm_display_free(outputs->display);
	outputs->display = NULL;
}

void
outputs_reopen(struct outputs *outputs)
{
	bool has_table = outputs->display != NULL && can_reopen(outputs, &outputs->out);
	struct side *side;

	outputs->is_reopened = true;
	if (has_table)
		end_display(outputs);
	for (size_t i = 0; (side = side_at(outputs, i)) != NULL; i++) {
		if (!can_reopen(outputs, side))
			continue;
		close_writer(&side->writer);
		open_side(outputs, side);
		if (outputs->common->checkpoint == NULL)
			ready_side(outputs, side);
	}
	if (has_table)
		open_display(outputs);
}

static void
add_late_info(struct wm_buf *line, struct wm_stamps *info, struct wm_span row, int64_t late_by_us, int64_t watermark_us)
{
	char late_by[WM_INSTANT_TEXT_MAX], watermark[WM_INSTANT_TEXT_MAX];
	const struct wm_value values[LATE_INFO] = {
		/* seconds with as many digits as they need */
		{ wm_span(late_by, wm_instant_print(late_by_us, WM_UNIT_S, NULL, late_by)), WM_KIND_NUMBER },
		{ wm_span(watermark, wm_instant_print(watermark_us, WM_UNIT_ISO, wm_zone_utc(), watermark)),
			WM_KIND_TEXT },
	};

	wm_stamps_put(info, row, false, values, line);
}

void
outputs_put_text(struct outputs *outputs, struct wm_span text)
{
	put(outputs->out.writer, text);
}

char *
outputs_room(struct outputs *outputs, size_t len)
{
	struct wm_err err;
	char *room = wm_writer_room(outputs->out.writer, len, &err);

	if (room == NULL)
		cli_die(&err);
	return room;
}

void
outputs_take(struct outputs *outputs, size_t len)
{
	wm_writer_take(outputs->out.writer, len);
}

void
outputs_put_late(struct outputs *outputs, size_t stream, struct wm_span row, int64_t late_by_us, int64_t watermark_us)
{
	if (outputs->late[stream].writer == NULL)
		return;
	wm_buf_reset(&outputs->line);
	if (outputs->common->late_info)
		add_late_info(&outputs->line, &outputs->late_info[stream], row, late_by_us, watermark_us);
	else
		wm_buf_add(&outputs->line, row.data, row.len);
	put(outputs->late[stream].writer, wm_buf_span(&outputs->line));
}

void
outputs_put_duplicate(struct outputs *outputs, struct wm_span row)
{
	put(outputs->duplicates.writer, row);
}

bool
outputs_has_late(const struct outputs *outputs)
{
	return outputs->late[0].path != NULL || outputs->late[1].path != NULL;
}

/* Whether a text is valid UTF-8, and so can stand in JSON as it is. */
static bool
is_utf8(struct wm_span text)
{
	const unsigned char *at = (const unsigned char *)text.data, *end = at + text.len;

	while (at < end) {
		size_t more = *at < 0x80 ? 0 : *at >> 5 == 6 ? 1 : *at >> 4 == 14 ? 2 : *at >> 3 == 30 ? 3 : 4;
		uint32_t code = *at & (0xffu >> (more == 0 ? 0 : more + 1));

		if (more == 4 || (size_t)(end - at) <= more)
			return false;
		for (size_t i = 1; i <= more; i++) {
			if ((at[i] & 0xc0) != 0x80)
				return false;
			code = code << 6 | (at[i] & 0x3f);
		}
		static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
		if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return false;
		at += more + 1;
	}
	return true;
}

static void
add_base64(struct wm_buf *out, struct wm_span text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *bytes = (const unsigned char *)text.data;

	for (size_t at = 0; at < text.len; at += 3) {
		size_t left = text.len - at;
		uint32_t group = (uint32_t)bytes[at] << 16 | (left > 1 ? (uint32_t)bytes[at + 1] << 8 : 0) |
			(left > 2 ? bytes[at + 2] : 0);

		wm_buf_add_byte(out, digits[group >> 18]);
		wm_buf_add_byte(out, digits[group >> 12 & 63]);
		wm_buf_add_byte(out, left > 1 ? digits[group >> 6 & 63] : '=');
		wm_buf_add_byte(out, left > 2 ? digits[group & 63] : '=');
	}
}

void
outputs_put_reject(struct outputs *outputs, const char *input, const struct wm_reject *reject, const int64_t *time_us)
{
	struct wm_buf *line = &outputs->line;
	struct wm_span raw = reject->raw;

	if (outputs->rejects.writer == NULL)
		return;
	while (raw.len > 0 && (raw.data[raw.len - 1] == '\n' || raw.data[raw.len - 1] == '\r'))
		raw.len--;
	wm_buf_reset(line);
	wm_buf_addf(line, "{\"reason\":\"%s\",\"input\":", reject->reason);
	wm_json_put_string(line, wm_span_of(input));
	wm_buf_addf(line, ",\"line\":%llu,\"lines\":%llu,\"column\":", (unsigned long long)reject->line,
		(unsigned long long)wm_reject_lines(reject));
	if (reject->column != NULL)
		wm_json_put_string(line, wm_span_of(reject->column));
	else
		wm_buf_add_text(line, "null");
	wm_buf_add_text(line, ",\"detail\":");
	wm_json_put_string(line, wm_span_of(reject->detail));
	wm_buf_add_text(line, ",\"time\":");
	if (time_us != NULL) {
		char text[WM_INSTANT_TEXT_MAX];

		wm_json_put_string(line, wm_span(text, wm_instant_print(*time_us, WM_UNIT_ISO, wm_zone_utc(), text)));
	} else {
		wm_buf_add_text(line, "null");
	}
	if (is_utf8(raw)) {
		wm_buf_add_text(line, ",\"raw\":");
		wm_json_put_string(line, raw);
	} else {
		wm_buf_add_text(line, ",\"raw_base64\":\"");
		add_base64(line, raw);
		wm_buf_add_byte(line, '"');
	}
	wm_buf_add_text(line, "}\n");
	put(outputs->rejects.writer, wm_buf_span(line));
}

bool
outputs_has_rejects(const struct outputs *outputs)
{
	return outputs->rejects.path != NULL;
}

void
outputs_put_report(struct outputs *outputs, struct wm_span line)
{
	if (outputs->report.writer != NULL)
		put(outputs->report.writer, line);
}

bool
outputs_has_report(const struct outputs *outputs)
{
	return outputs->report.path != NULL;
}

void
outputs_flush(struct outputs *outputs)
{
	struct side *side;

	flush_display(outputs, false);
	for (size_t i = 0; (side = side_at(outputs, i)) != NULL; i++)
		flush(side->writer);
}

bool
outputs_have_written(const struct outputs *outputs)
{
	const struct side *side;

	for (size_t i = 0; (side = side_shown(outputs, i)) != NULL; i++)
		if (side->writer != NULL && wm_writer_bytes(side->writer) != 0)
			return true;
	return false;
}

void
outputs_end(struct outputs *outputs)
{
	struct side *side;

	end_display(outputs);
	outputs_flush(outputs);
	for (size_t i = 0; (side = side_at(outputs, i)) != NULL; i++)
		tell_line_end(outputs, side);
}

void
outputs_close(struct outputs *outputs)
{
	struct side *side;

	outputs_end(outputs);
	started = NULL;
	/* Results are closed last, so that what is said of them comes behind all else. */
	for (size_t i = 1; (side = side_at(outputs, i)) != NULL; i++)
		close_writer(&side->writer);
	close_writer(&outputs->out.writer);
	for (size_t i = 0; (side = side_at(outputs, i)) != NULL; i++)
		free(side->created);
	for (size_t i = 0; i < OUTPUTS_STREAMS_MAX; i++)
		if (outputs->has_late_info[i])
			wm_stamps_release(&outputs->late_info[i]);
	wm_buf_release(&outputs->line);
	wm_buf_release(&outputs->header);
	free(outputs->told);
	free(outputs);
}
