/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/inputs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/positions.h"
#include "cmd/sections.h"
#include "cmd/uses.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/cut.h"
#include "lib/time/instant.h"

/* With many inputs open at once each has a small buffer. */
#define MERGE_BUFFER_BYTES ((size_t)1 << 16)

struct source {
	struct wm_reader *reader;
	size_t file; /* of the one that it is at */
	bool is_open;
	bool is_begun;  /* its first record has come, be it rejected */
	bool is_at_end; /* --merge: its one FILE was read */
	/* with a checkpoint */
	int fd;
	bool is_seekable;
	bool is_amid;         /* it was begun in a run before */
	bool is_fed;          /* of a pipe, its first bytes are wanted */
	uint64_t at;          /* of a pipe: bytes read so far */
	uint64_t from;        /* of these, the first that was not processed before */
	struct wm_buf head;   /* of a pipe that is to begin as before: its first bytes */
	uint64_t known_bytes; /* and how many are to be the same; 0: that is not known */
	uint64_t known_hash;
	struct wm_hash_stream *hash; /* of all that was read of a pipe from its first byte; NULL: not from there */
	struct positions positions;  /* of --position */
};

struct inputs {
	const struct cli_common *common;
	const char **files;
	size_t files_count;
	size_t file_next; /* without --merge */
	struct source *sources;
	size_t sources_count;
	const struct wm_record *pending; /* was read from the source pending_source, and is not processed */
	size_t pending_source;
	struct resume *resume;     /* NULL: there is no checkpoint */
	size_t resume_first;       /* the number of the first FILE there */
	bool *is_seen;             /* of the fields of records: a run before had them */
	struct wm_column *columns; /* that were asked for */
	bool *is_optional;
	size_t *fields; /* of the columns: those asked for twice have one */
	size_t columns_count;
	bool has_told_long;   /* of a record of many lines */
	bool has_told_quoted; /* of quotes in TSV */
};

static size_t
want(struct wm_reader *reader, const struct wm_column *column, bool is_optional)
{
	return is_optional ? wm_reader_want_optional(reader, column) : wm_reader_want(reader, column);
}

/* Whether a last line without line end is left, as more of it may be to come. */
static bool
keeps_partial(const struct cli_common *common)
{
	return common->eof == CLI_EOF_HOLD || (common->checkpoint != NULL && common->eof != CLI_EOF_FLUSH);
}

static struct wm_reader *
new_reader(const struct inputs *inputs)
{
	const struct cli_common *common = inputs->common;
	struct wm_err err;
	struct wm_reader_options options = {
		.format = (enum wm_format)common->input_format,
		.delimiter = common->delimiter_byte,
		.refuse_value = common->tsv_escapes == CLI_TSV_NONE ? cli_refuse_value : NULL,
		.no_header = common->no_header,
		.columns = common->columns,
		.pattern = common->pattern,
		.skips_unmatched = common->unmatched == CLI_UNMATCHED_SKIP,
		.record_bytes_max = common->record_limit,
		.read_buffer_bytes = inputs->sources_count > 1 ? MERGE_BUFFER_BYTES : 0,
		.keeps_partial = keeps_partial(common),
		.keeps_quoted = common->eof == CLI_EOF_TRIGGER,
		.keeps_open = common->checkpoint != NULL,
		.nulls = cli_nulls(common),
	};
	struct wm_reader *reader = wm_reader_new(&options, &err);

	if (reader == NULL)
		cli_die(&err);
	for (size_t i = 0; i < inputs->columns_count; i++)
		want(reader, &inputs->columns[i], inputs->is_optional[i]);
	return reader;
}

struct inputs *
inputs_open(const struct cli_common *common)
{
	struct inputs *inputs = wm_calloc(1, sizeof(struct inputs));

	inputs->common = common;
	inputs->files_count = common->files_count == 0 ? 1 : common->files_count;
	inputs->files = wm_reallocarray(NULL, inputs->files_count, sizeof(inputs->files[0]));
	inputs->files[0] = "-";
	for (size_t i = 0; i < common->files_count; i++)
		inputs->files[i] = common->files[i];
	inputs->sources_count = common->merge ? inputs->files_count : 1;
	inputs->sources = wm_calloc(inputs->sources_count, sizeof(inputs->sources[0]));
	for (size_t i = 0; i < inputs->sources_count; i++) {
		struct source *source = &inputs->sources[i];

		*source = (struct source){ .reader = new_reader(inputs), .file = i, .fd = -1 };
		wm_buf_init(&source->head, RESUME_KNOWN_BYTES);
		positions_init(&source->positions);
	}
	return inputs;
}

void
inputs_close(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->sources_count; i++) {
		struct source *source = &inputs->sources[i];

		wm_reader_free(source->reader);
		wm_hash_stream_free(source->hash);
		if (source->is_open && source->fd != -1)
			close(source->fd);
		wm_buf_release(&source->head);
		positions_release(&source->positions);
	}
	free(inputs->is_seen);
	for (size_t i = 0; i < inputs->columns_count; i++)
		wm_column_release(&inputs->columns[i]);
	free(inputs->columns);
	free(inputs->is_optional);
	free(inputs->fields);
	free(inputs->sources);
	free(inputs->files);
	free(inputs);
}

static size_t
want_everywhere(struct inputs *inputs, struct wm_span name, bool is_optional)
{
	struct wm_column column;
	struct wm_err err;
	size_t field = 0;

	if (!wm_column_parse(name, &column, &err))
		cli_misuse("%s", err.message);
	inputs->columns = wm_reallocarray(inputs->columns, inputs->columns_count + 1, sizeof(inputs->columns[0]));
	inputs->is_optional =
		wm_reallocarray(inputs->is_optional, inputs->columns_count + 1, sizeof(inputs->is_optional[0]));
	inputs->is_optional[inputs->columns_count] = is_optional;
	inputs->columns[inputs->columns_count++] = column;
	for (size_t i = 0; i < inputs->sources_count; i++)
		field = want(inputs->sources[i].reader, &column, is_optional);
	inputs->fields = wm_reallocarray(inputs->fields, inputs->columns_count, sizeof(inputs->fields[0]));
	inputs->fields[inputs->columns_count - 1] = field;
	return field;
}

size_t
inputs_want(struct inputs *inputs, struct wm_span name)
{
	return want_everywhere(inputs, name, false);
}

size_t
inputs_want_optional(struct inputs *inputs, struct wm_span name)
{
	return want_everywhere(inputs, name, true);
}

bool
inputs_lack(const struct inputs *inputs, size_t field)
{
	return wm_reader_checked_lacks(inputs->sources[0].reader, field);
}

static bool
is_standard_input(const char *file)
{
	return strcmp(file, "-") == 0;
}

/* A FILE as messages name it. */
static const char *
shown_name(const char *file)
{
	return is_standard_input(file) ? "standard input" : file;
}

/* -1 and *err where it cannot be opened. */
static int
open_file(const char *file, struct wm_err *err)
{
	int fd = cli_open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);

	if (fd == -1 && errno == EMFILE)
		(void)wm_err_set(err, WM_ERR_IO,
			"%s: %s: raise the limit of open files (ulimit -Hn), or name fewer FILEs", file,
			strerror(errno));
	else if (fd == -1)
		(void)wm_err_set(err, WM_ERR_IO, "%s: %s", file, strerror(errno));
	return fd;
}

void
inputs_begin(struct inputs *inputs)
{
	struct stat found;
	struct wm_err err;

	for (size_t i = 0; i < inputs->files_count; i++) {
		const char *file = inputs->files[i];

		if (is_standard_input(file))
			continue;
		if (stat(file, &found) == -1) {
			(void)wm_err_set(&err, WM_ERR_IO, "%s: %s", file, strerror(errno));
			cli_die(&err);
		}
		/* A pipe gives its bytes once; it is checked when it is its turn. */
		if (!S_ISREG(found.st_mode))
			continue;
		int fd = open_file(file, &err);
		if (fd == -1 || !wm_reader_check(inputs->sources[0].reader, fd, file, &err))
			cli_die(&err);
		close(fd);
	}
}

size_t
inputs_files_count(const struct inputs *inputs)
{
	return inputs->files_count;
}

struct wm_reader *
inputs_peek(const struct inputs *inputs, size_t file)
{
	const char *name = inputs->files[file];
	struct stat found;
	struct wm_err err;

	if (is_standard_input(name) || !uses_find(name, &found) || !S_ISREG(found.st_mode))
		cli_misuse("--order time: %s is no regular file, and cannot be looked into before its turn",
			shown_name(name));
	int fd = open_file(name, &err);
	if (fd == -1)
		cli_die(&err);
	struct wm_reader *reader = new_reader(inputs);
	wm_reader_open(reader, fd, name);
	return reader;
}

void
inputs_sort(struct inputs *inputs, const int64_t *keys)
{
	int64_t *sorted = wm_reallocarray(NULL, inputs->files_count, sizeof(sorted[0]));

	/* By insertion: stable, and in the common case they are in order already. */
	for (size_t i = 0; i < inputs->files_count; i++) {
		const char *file = inputs->files[i];
		size_t place = i;

		for (; place > 0 && sorted[place - 1] > keys[i]; place--) {
			sorted[place] = sorted[place - 1];
			inputs->files[place] = inputs->files[place - 1];
		}
		sorted[place] = keys[i];
		inputs->files[place] = file;
	}
	free(sorted);
}

/* The first record of an input; false if there is none, or nothing to be said of it here. */
static bool
read_first(struct wm_reader *reader, struct wm_record *rec)
{
	struct wm_reject reject;
	struct wm_err err;

	for (;;) {
		switch (wm_reader_next(reader, rec, &reject, &err)) {
		case WM_READ_RECORD:
			return true;
		case WM_READ_MORE:
			if (!wm_reader_fill(reader, &err))
				return false;
			break;
		case WM_READ_REJECTED:
			break;
		case WM_READ_END:
		case WM_READ_FAILED:
			return false;
		}
	}
}

static void
suggest_time(const struct inputs *inputs, const char *file, struct wm_span name, struct wm_buf *out)
{
	struct wm_reader *reader = new_reader(inputs);
	struct wm_column column;
	struct wm_record rec;
	struct wm_err err;
	int fd = open_file(file, &err);

	if (fd != -1 && wm_column_parse(name, &column, &err)) {
		size_t field = wm_reader_want(reader, &column);

		wm_column_release(&column);
		wm_reader_open(reader, fd, file);
		if (read_first(reader, &rec) && wm_instant_looks_like_time(rec.fields[field].text))
			wm_buf_addf(out, "%s%.*s", out->len == 0 ? "" : ", ", (int)name.len, name.data);
	}
	wm_reader_free(reader);
}

void
inputs_suggest_times(const struct inputs *inputs, struct wm_buf *out)
{
	const char *file = inputs->files[0];
	struct wm_record rec;
	struct stat found;
	struct wm_err err;

	if (is_standard_input(file) || stat(file, &found) == -1 || !S_ISREG(found.st_mode))
		return;
	int fd = open_file(file, &err);
	if (fd == -1)
		return;
	struct wm_reader *reader = new_reader(inputs);
	wm_reader_open(reader, fd, file);
	if (read_first(reader, &rec)) {
		const struct wm_header *columns = wm_reader_columns(reader);
		size_t count = wm_reader_header(reader).len == 0 ? 0 : columns->count;

		for (size_t i = 0; i < count; i++)
			suggest_time(inputs, file, columns->names[i], out);
	}
	wm_reader_free(reader);
}

/* Going on */

void
inputs_tell_operands(struct inputs *inputs, struct resume *resume)
{
	inputs->resume = resume;
	for (size_t i = 0; i < inputs->files_count; i++) {
		const char *file = inputs->files[i];
		size_t number = is_standard_input(file) ? resume_add_input(resume, "standard input", STDIN_FILENO)
							: resume_add_input(resume, file, -1);

		if (i == 0)
			inputs->resume_first = number;
	}
}

static struct resume_start
start_of(const struct inputs *inputs, size_t file)
{
	return resume_start(inputs->resume, inputs->resume_first + file);
}

/* Whether a FILE is not read in this run. */
static bool
is_passed_over(const struct inputs *inputs, size_t file)
{
	if (inputs->resume == NULL)
		return false;
	enum resume_action action = start_of(inputs, file).action;
	return action == RESUME_DONE || action == RESUME_TOO_OLD;
}

bool
inputs_is_done(const struct inputs *inputs, size_t source)
{
	return is_passed_over(inputs, inputs->sources[source].file);
}

void
inputs_go_on(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->sources_count && inputs->sources_count > 1; i++)
		inputs->sources[i].is_at_end = is_passed_over(inputs, i);
}

bool
inputs_is_seekable(const struct inputs *inputs, size_t source)
{
	return inputs->sources[source].is_seekable;
}

bool
inputs_is_amid(const struct inputs *inputs, size_t source)
{
	return inputs->sources[source].is_amid;
}

bool
inputs_pass_position(struct inputs *inputs, size_t number, const struct wm_value *source, const struct wm_value *value)
{
	return positions_pass(&inputs->sources[number].positions, source, value);
}

uint64_t
inputs_positions_skipped(const struct inputs *inputs)
{
	uint64_t skipped = 0;

	for (size_t i = 0; i < inputs->sources_count; i++)
		skipped += inputs->sources[i].positions.skipped;
	return skipped;
}

void
inputs_set_pending(struct inputs *inputs, size_t source, const struct wm_record *rec)
{
	inputs->pending = rec;
	inputs->pending_source = source;
}

static bool
tell_position(const struct inputs *inputs, const struct source *source, struct wm_err *err)
{
	const struct wm_record *pending = source == &inputs->sources[inputs->pending_source] ? inputs->pending : NULL;
	struct wm_reader_position at = wm_reader_position_before(source->reader, pending);
	struct wm_span ahead = wm_reader_ahead(source->reader);
	bool has_sources = inputs->common->source_column != NULL;
	struct wm_buf layout, tail, positions;

	wm_buf_init(&positions, WM_BUF_UNBOUNDED);
	if (has_sources)
		positions_encode(&source->positions, &positions);
	wm_buf_init(&layout, WM_BUF_UNBOUNDED);
	wm_buf_init(&tail, WM_BUF_UNBOUNDED);
	wm_reader_encode_input(source->reader, &layout);
	if (!source->is_seekable) {
		wm_buf_add(&tail, at.rest.data, at.rest.len);
		wm_buf_add(&tail, ahead.data, ahead.len);
	}
	struct resume_position position = {
		.offset = at.offset,
		.lines = at.lines,
		.is_at_end = at.is_at_end,
		.has_no_rows = at.has_no_rows,
		.tail = tail.len == 0 ? wm_span("", 0) : wm_buf_span(&tail),
		.position = has_sources ? wm_span("", 0) : positions_alone(&source->positions),
		.positions = positions.len == 0 ? wm_span("", 0) : wm_buf_span(&positions),
		.layout = wm_buf_span(&layout),
	};
	if (source->hash != NULL) {
		/* While it is behind what a run before has read, that is what has to come once more. */
		bool is_behind = source->at < source->known_bytes;

		position.read_bytes = is_behind ? source->known_bytes : source->at;
		position.read_hash = is_behind ? source->known_hash : wm_hash_stream_value(source->hash);
	}
	bool is_told =
		resume_set_input(inputs->resume, inputs->resume_first + source->file, source->fd, &position, err);
	wm_buf_release(&positions);
	wm_buf_release(&layout);
	wm_buf_release(&tail);
	return is_told;
}

bool
inputs_tell_positions(struct inputs *inputs, struct wm_err *err)
{
	for (size_t i = 0; i < inputs->sources_count; i++)
		if (inputs->sources[i].is_open && !tell_position(inputs, &inputs->sources[i], err))
			return false;
	return true;
}

/* The positions that a run before has left. */
static void
take_positions(const struct inputs *inputs, struct source *source, const struct resume_start *start, const char *name)
{
	bool has_sources = inputs->common->source_column != NULL;
	struct wm_err err;

	positions_forget(&source->positions);
	if (has_sources && start->position.positions.len == 0 && start->position.position.len != 0)
		cli_warn(
			"%s: the checkpoint is of a version that kept one position for all of %s: rows that come again "
			"are taken for new ones, once",
			name, inputs->common->source_column);
	if (!has_sources)
		positions_set_alone(&source->positions, start->position.position);
	else if (!positions_decode(&source->positions, start->position.positions)) {
		(void)sections_damaged(WM_CHECKPOINT_INPT, inputs->common->checkpoint, &err);
		cli_die(&err);
	}
	if (start->action == RESUME_CONTINUE)
		positions_expect(&source->positions);
}

/* Opens a FILE where a run before has left it. */
static void
open_at(const struct inputs *inputs, struct source *source, int fd, const char *name)
{
	struct resume_start start = start_of(inputs, source->file);
	struct wm_reader_start at = {
		.offset = start.position.offset,
		.lines = start.position.lines,
		.has_no_rows = start.position.has_no_rows,
		.input = start.position.layout,
		.is_continued = start.action == RESUME_CONTINUE,
		.rest = start.position.tail,
	};
	struct stat found;
	struct wm_err err;

	if (fstat(fd, &found) == -1) {
		(void)wm_err_set(&err, WM_ERR_IO, "%s: %s", name, strerror(errno));
		cli_die(&err);
	}
	source->fd = fd;
	source->is_seekable = S_ISREG(found.st_mode);
	if (source->is_seekable == resume_is_pipe(inputs->resume, inputs->resume_first + source->file)) {
		(void)wm_err_set(&err, WM_ERR_IO, "%s: was replaced while it was opened: start again", name);
		cli_die(&err);
	}
	source->is_amid = start.action != RESUME_BEGIN && start.position.offset > 0;
	source->is_fed = !source->is_seekable;
	source->at = source->from = 0;
	wm_buf_reset(&source->head);
	take_positions(inputs, source, &start, name);
	/* Who begins at a position by itself sends the row that was cut off once more. */
	if (inputs->common->position != NULL && at.is_continued)
		at.rest = wm_span("", 0);
	if (start.action == RESUME_SKIP)
		source->from = at.offset;
	source->known_bytes = start.position.read_bytes;
	source->known_hash = start.position.read_hash;
	wm_hash_stream_free(source->hash);
	source->hash = source->is_seekable || at.is_continued ? NULL : wm_hash_stream_new();
	if (at.is_continued && at.rest.len != 0)
		source->is_fed = resume_feed(inputs->resume, inputs->resume_first + source->file, at.rest);
	if (start.action == RESUME_BEGIN)
		wm_reader_open(source->reader, fd, name);
	else
		wm_reader_open_at(source->reader, fd, name, &at);
}

/* The first bytes of a pipe are kept, and held to those of the run before where they are to be the same. */
static bool
feed(const struct inputs *inputs, struct source *source, struct wm_span bytes, struct wm_err *err)
{
	size_t number = inputs->resume_first + source->file;

	if (source->at < source->from) {
		size_t known = source->from < RESUME_KNOWN_BYTES ? (size_t)source->from : RESUME_KNOWN_BYTES;
		size_t room = known - source->head.len, old = source->from - source->at;
		bool is_checked = source->head.len == known;

		/* No more than the buffer was born for. */
		bool fits = wm_buf_append(&source->head, bytes.data, bytes.len < room ? bytes.len : room);
		assert(fits);
		(void)fits;
		if (!is_checked && (source->head.len == known || bytes.len == 0) &&
			!resume_check_head(inputs->resume, number, wm_buf_span(&source->head), err))
			return false;
		old = bytes.len < old ? bytes.len : old;
		bytes = wm_span(bytes.data + old, bytes.len - old);
	}
	if (bytes.len != 0)
		source->is_fed = resume_feed(inputs->resume, number, bytes);
	return true;
}

/* All bytes of a pipe go into a hash: of those that a run before has read it has to be the same. */
static bool
add_to_hash(struct source *source, const char *name, struct wm_span bytes, struct wm_err *err)
{
	uint64_t known = source->known_bytes;

	if (source->at < known) {
		bool is_last = bytes.len >= known - source->at;
		size_t old = is_last ? (size_t)(known - source->at) : bytes.len;

		wm_hash_stream_add(source->hash, wm_span(bytes.data, old));
		/* If it ends before what was processed, the reader says so. */
		if (bytes.len == 0 && source->at >= source->from)
			return wm_err_set(err, WM_ERR_IO,
				"%s: ends at byte %" PRIu64 ", and was read up to byte %" PRIu64 " before", name,
				source->at, known);
		if (is_last && wm_hash_stream_value(source->hash) != source->known_hash)
			return wm_err_set(err, WM_ERR_IO,
				"%s: is not what it was, up to byte %" PRIu64
				": --resume replay needs the same input from its first byte",
				name, known);
		bytes = wm_span(bytes.data + old, bytes.len - old);
	}
	wm_hash_stream_add(source->hash, bytes);
	return true;
}

/* Bytes of a pipe have come. */
static bool
watch(const struct inputs *inputs, struct source *source, struct wm_err *err)
{
	struct wm_span bytes = wm_reader_filled(source->reader);
	const char *file = inputs->files[source->file];
	const char *name = shown_name(file);

	if (source->is_fed && !feed(inputs, source, bytes, err))
		return false;
	if (source->hash != NULL && !add_to_hash(source, name, bytes, err))
		return false;
	source->at += bytes.len;
	return true;
}

static void
open_source(const struct inputs *inputs, struct source *source, int fd)
{
	const char *file = inputs->files[source->file];
	const char *name = shown_name(file);

	if (inputs->resume != NULL)
		open_at(inputs, source, fd, name);
	else
		wm_reader_open(source->reader, fd, name);
	source->is_open = true;
	source->is_begun = false;
}

/* A FIFO is opened without waiting for its writer, and read as others are. */
static int
open_without_waiting(const char *file, struct wm_err *err)
{
	int fd = cli_open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);

	if (fd == -1 || fcntl(fd, F_SETFL, 0) == -1)
		(void)wm_err_set(err, WM_ERR_IO, "%s: %s", file, strerror(errno));
	return fd;
}

void
inputs_open_early(struct inputs *inputs)
{
	struct source *source = &inputs->sources[0];
	const char *file = inputs->files[inputs->file_next];
	struct wm_err err;

	source->file = inputs->file_next++;
	if (is_passed_over(inputs, source->file))
		return;
	int fd = is_standard_input(file) ? STDIN_FILENO : open_without_waiting(file, &err);
	if (fd == -1)
		cli_die(&err);
	open_source(inputs, source, fd);
}

bool
inputs_read_ahead(struct inputs *inputs, uint64_t *bytes, struct wm_err *err)
{
	return wm_reader_read_ahead(inputs->sources[0].reader, bytes, err);
}

bool
inputs_has_ahead(const struct inputs *inputs)
{
	return wm_reader_has_ahead(inputs->sources[0].reader);
}

bool
inputs_is_ahead_at_end(const struct inputs *inputs)
{
	return wm_reader_is_ahead_at_end(inputs->sources[0].reader);
}

/* Opens the next FILE of a source. */
static enum inputs_item
open_next(struct inputs *inputs, struct source *source, struct wm_err *err)
{
	bool is_merged = inputs->sources_count > 1;

	if (is_merged ? source->is_at_end : inputs->file_next == inputs->files_count)
		return INPUTS_END;
	if (!is_merged)
		source->file = inputs->file_next++;
	while (!is_merged && is_passed_over(inputs, source->file)) {
		if (inputs->file_next == inputs->files_count)
			return INPUTS_END;
		source->file = inputs->file_next++;
	}
	const char *file = inputs->files[source->file];
	int fd = is_standard_input(file) ? STDIN_FILENO : open_file(file, err);
	if (fd == -1)
		return INPUTS_FAILED;
	open_source(inputs, source, fd);
	return INPUTS_WAIT;
}

static void
adopt_layout(const struct inputs *inputs, struct source *source)
{
	const struct wm_reader *layout = inputs_layout(inputs);

	/* Where none has told it yet, this one may be the first. */
	bool is_told = layout != source->reader && wm_reader_adopt(source->reader, layout);
	(void)is_told;
}

/* A field that goes over lines has not ended, which a stray quote or backslash may have made; false if none is open. */
static bool
tell_open_field(const struct inputs *inputs, const struct source *source)
{
	struct wm_reader_position at = wm_reader_position_before(source->reader, NULL);
	uint64_t line = wm_reader_open_field(source->reader);
	bool is_tsv = wm_reader_format(source->reader) == WM_FORMAT_TSV;
	const char *name = inputs->files[source->file];

	if (line == 0 || at.rest.len == 0)
		return false;
	if (!inputs->common->quiet)
		cli_warn("%s:%" PRIu64 ": %s: what stands from line %" PRIu64 " on is left%s", shown_name(name), line,
			is_tsv ? "a backslash takes the end of this line along, and nothing is behind it"
			       : "the quoted field that begins here has not ended",
			at.lines + 1, inputs->common->checkpoint != NULL ? " for the next run" : "");
	return true;
}

void
inputs_tell_open_fields(const struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->sources_count; i++)
		if (inputs->sources[i].is_open)
			tell_open_field(inputs, &inputs->sources[i]);
}

/* Says once that a record has many lines: a stray quote and the next one may have made it. */
static void
tell_long(struct inputs *inputs, const struct source *source)
{
	const char *name = inputs->files[source->file];
	struct wm_reader_lines lines;

	if (inputs->has_told_long || !wm_reader_long_record(source->reader, &lines))
		return;
	inputs->has_told_long = true;
	if (!inputs->common->quiet)
		cli_warn("%s:%" PRIu64 ": a record of %" PRIu64 " lines, up to line %" PRIu64
			 ": look whether it begins with a stray quote",
			shown_name(name), lines.first, lines.last - lines.first + 1, lines.last);
}

void
inputs_tell_quoted(const struct wm_reader *reader, bool *has_told)
{
	uint64_t line = wm_reader_quoted_line(reader);

	if (*has_told || line == 0)
		return;
	*has_told = true;
	cli_warn("%s:%" PRIu64 ": a field is in quotes, which are letters in TSV: if they are not, say -i csv -d '\\t'",
		shown_name(wm_reader_name(reader)), line);
}

/* Whether something of an open input is left to be read. */
static bool
has_more(const struct source *source)
{
	struct wm_reader_position at = wm_reader_position(source->reader);
	struct stat found;

	if (fstat(source->fd, &found) == 0 && S_ISREG(found.st_mode))
		return (uint64_t)found.st_size > at.offset;
	return at.rest.len != 0;
}

void
inputs_tell_left(const struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->sources_count && inputs->sources_count > 1; i++) {
		const struct source *source = &inputs->sources[i];

		if (source->is_open && has_more(source))
			cli_warn("%s: the rest, from line %" PRIu64
				 " on, is left for the next run: a FILE that is behind it has ended, and may grow",
				inputs_name(inputs, i), wm_reader_position(source->reader).lines + 1);
	}
}

/* What was read of a line that has no end is left: nobody would miss it. */
static void
tell_partial(const struct inputs *inputs, const struct source *source)
{
	struct wm_reader_position at = wm_reader_position_before(source->reader, NULL);
	const char *name = inputs->files[source->file];

	if (tell_open_field(inputs, source))
		return;
	if (at.rest.len != 0 && keeps_partial(inputs->common) && !inputs->common->quiet)
		cli_warn("%s: its last line has no line end and may not be whole: it is left%s", shown_name(name),
			inputs->common->checkpoint != NULL ? " for the next run" : "");
}

void
inputs_tell_cut(const struct inputs *inputs)
{
	if (inputs->common->checkpoint != NULL || inputs->common->quiet)
		return;
	for (size_t i = 0; i < inputs->sources_count; i++) {
		const struct source *source = &inputs->sources[i];
		const char *name = inputs->files[source->file];
		struct stat found;

		/* A file is still there. */
		if (!source->is_open || fstat(wm_reader_fd(source->reader), &found) == -1 || S_ISREG(found.st_mode) ||
			wm_reader_position_before(source->reader, NULL).rest.len == 0)
			continue;
		cli_warn("%s: stopped by a signal in the middle of a line, which is left", shown_name(name));
	}
}

/* Its position is told now: later it is closed. */
static bool
end_file(const struct inputs *inputs, struct source *source, struct wm_err *err)
{
	bool is_told = inputs->resume == NULL || tell_position(inputs, source, err);

	tell_partial(inputs, source);
	source->is_open = source->is_begun = false;
	if (inputs->common->checkpoint != NULL)
		close(source->fd);
	source->fd = -1;
	return is_told;
}

/* What a result of the reader is here. */
static enum inputs_item
item_of(struct inputs *inputs, struct source *source, enum wm_read_result result, struct wm_err *err)
{
	switch (result) {
	case WM_READ_RECORD:
		return INPUTS_RECORD;
	case WM_READ_REJECTED:
		return INPUTS_REJECTED;
	case WM_READ_MORE:
		tell_long(inputs, source);
		return INPUTS_WAIT;
	case WM_READ_END:
		source->is_at_end = true;
		tell_long(inputs, source);
		if (!end_file(inputs, source, err))
			return INPUTS_FAILED;
		return INPUTS_FILE_END;
	case WM_READ_FAILED:
		break;
	}
	return INPUTS_FAILED;
}

/* Up to its first record, which may be one that is rejected: what it says of the input is told at once. */
static enum inputs_item
begin_source(struct inputs *inputs, struct source *source, struct wm_record *rec, struct wm_reject *reject,
	struct wm_err *err)
{
	if (!source->is_open) {
		/* All are held to the layout of the first that told one, if one has. */
		if (inputs->sources_count > 1 && !source->is_at_end &&
			wm_reader_format(source->reader) == WM_FORMAT_AUTO)
			adopt_layout(inputs, source);

		enum inputs_item item = open_next(inputs, source, err);

		if (item != INPUTS_WAIT)
			return item;
	}
	enum wm_read_result result = wm_reader_next(source->reader, rec, reject, err);
	source->is_begun = result == WM_READ_RECORD || result == WM_READ_REJECTED;
	if ((source->is_begun || result == WM_READ_END) && !inputs->common->quiet)
		inputs_tell_quoted(source->reader, &inputs->has_told_quoted);
	return item_of(inputs, source, result, err);
}

enum inputs_item
inputs_next(struct inputs *inputs, size_t number, struct wm_record *rec, struct wm_reject *reject, struct wm_err *err)
{
	struct source *source = &inputs->sources[number];

	if (!source->is_begun)
		return begin_source(inputs, source, rec, reject, err);
	enum wm_read_result result = wm_reader_next(source->reader, rec, reject, err);
	return result == WM_READ_RECORD ? INPUTS_RECORD : item_of(inputs, source, result, err);
}

bool
inputs_fill(struct inputs *inputs, size_t source, struct wm_err *err)
{
	if (!wm_reader_fill(inputs->sources[source].reader, err))
		return false;
	return inputs->resume == NULL || inputs->sources[source].is_seekable ||
		watch(inputs, &inputs->sources[source], err);
}

int
inputs_fd(const struct inputs *inputs, size_t source)
{
	return wm_reader_fd(inputs->sources[source].reader);
}

struct wm_reader *
inputs_reader(const struct inputs *inputs, size_t source)
{
	return inputs->sources[source].reader;
}

const char *
inputs_name(const struct inputs *inputs, size_t source)
{
	const char *file = inputs->files[inputs->sources[source].file];

	return shown_name(file);
}

const struct wm_reader *
inputs_layout(const struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->sources_count; i++)
		if (wm_reader_format(inputs->sources[i].reader) != WM_FORMAT_AUTO)
			return inputs->sources[i].reader;
	return inputs->sources[0].reader;
}

bool
inputs_column_seen(const struct inputs *inputs, size_t field)
{
	if (inputs->is_seen != NULL && inputs->is_seen[field])
		return true;
	for (size_t i = 0; i < inputs->sources_count; i++)
		if (wm_reader_column_seen(inputs->sources[i].reader, field))
			return true;
	return false;
}

static struct wm_span
name_of(const struct wm_column *column)
{
	return wm_span(column->name, column->name_len);
}

/* text layout · varint columns that some record had · text name of each. */
void
inputs_encode_layout(const struct inputs *inputs, struct wm_buf *out)
{
	struct wm_buf layout;

	wm_buf_init(&layout, WM_BUF_UNBOUNDED);
	wm_reader_encode_layout(inputs_layout(inputs), &layout);
	wm_put_span(out, wm_buf_span(&layout));
	wm_buf_release(&layout);
	size_t count = 0;
	for (size_t i = 0; i < inputs->columns_count; i++)
		count += inputs_column_seen(inputs, inputs->fields[i]);
	wm_put_varint(out, count);
	for (size_t i = 0; i < inputs->columns_count; i++)
		if (inputs_column_seen(inputs, inputs->fields[i]))
			wm_put_span(out, name_of(&inputs->columns[i]));
}

bool
inputs_decode_layout(struct inputs *inputs, struct wm_get *in)
{
	struct wm_span layout = wm_get_span(in);

	inputs->is_seen = wm_calloc(inputs->columns_count + 1, sizeof(inputs->is_seen[0]));
	for (uint64_t left = wm_get_varint(in); left > 0 && !in->failed; left--) {
		struct wm_span name = wm_get_span(in);

		for (size_t i = 0; i < inputs->columns_count; i++)
			inputs->is_seen[inputs->fields[i]] |= wm_span_equal(name, name_of(&inputs->columns[i]));
	}
	for (size_t i = 0; i < inputs->sources_count; i++) {
		struct wm_get each;

		wm_get_init(&each, layout);
		if (!wm_reader_decode_layout(inputs->sources[i].reader, &each))
			return false;
	}
	return !in->failed;
}

size_t
inputs_held_bytes(const struct inputs *inputs)
{
	size_t bytes = 0;

	for (size_t i = 0; i < inputs->sources_count; i++)
		bytes += wm_reader_held_bytes(inputs->sources[i].reader);
	return bytes;
}

struct wm_reader_counts
inputs_counts(const struct inputs *inputs)
{
	struct wm_reader_counts all = { 0 };

	for (size_t i = 0; i < inputs->sources_count; i++) {
		struct wm_reader_counts counts = wm_reader_counts(inputs->sources[i].reader);

		all.bytes += counts.bytes;
		all.lines_blank += counts.lines_blank;
		all.headers_repeated += counts.headers_repeated;
		all.lines_unmatched += counts.lines_unmatched;
	}
	return all;
}

uint64_t
inputs_bytes_total(const struct inputs *inputs)
{
	uint64_t bytes = 0;
	struct stat found;

	for (size_t i = 0; i < inputs->files_count; i++) {
		const char *file = inputs->files[i];
		bool is_there = is_standard_input(file) ? fstat(STDIN_FILENO, &found) == 0 : stat(file, &found) == 0;

		if (!is_there || !S_ISREG(found.st_mode))
			return 0;
		bytes += (uint64_t)found.st_size;
	}
	return bytes;
}
