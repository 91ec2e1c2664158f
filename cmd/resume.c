/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/resume.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/hash.h"

/* An entry of INPT: an input as it was left. */
struct entry {
	bool is_pipe;
	bool is_at_end;
	bool is_operand; /* of the run that wrote it */
	bool has_no_rows;
	bool is_taken; /* an input of this run goes on from it */
	bool is_told;  /* that none does, by a note */
	char *path;
	uint64_t device;
	uint64_t inode;
	int64_t modified_us;
	uint64_t place; /* among the operands */
	uint64_t offset;
	uint64_t lines;
	uint64_t head_hash;  /* of the first known bytes; of a pipe: of all that was read */
	uint64_t last_hash;  /* of the last before offset */
	uint64_t read_bytes; /* of a pipe; stands in the place of last_hash */
	struct wm_buf head;  /* of a pipe: the bytes themselves, as they cannot be read again */
	struct wm_buf tail;
	struct wm_buf position;
	struct wm_buf positions;
	struct wm_buf layout;
};

struct input {
	char *name; /* as the command line has it */
	char *path; /* where it leads */
	int fd;     /* of standard input, or -1 */
	bool is_pipe;
	struct stat facts;
	enum resume_action action;
	struct entry *entry;  /* NULL with RESUME_TOO_OLD */
	uint64_t path_offset; /* of the furthest entry of the same path that it holds */
};

/* An entry of OUTP. */
struct written {
	char *path;
	char *option;
	uint64_t device;
	uint64_t inode;
	uint64_t length;
	uint64_t hash; /* of the last known bytes before length */
	bool is_finished;
};

struct output {
	const char *option;
	char *path;
	int fd;      /* the caller's */
	int read_fd; /* ours; -1: no regular file */
	bool is_taken;
	bool is_to_cut;
	uint64_t device;
	uint64_t inode;
	uint64_t length; /* good bytes, when is_to_cut; else as found last */
};

struct resume {
	struct resume_setup setup;
	char *path;      /* FILE, resolved */
	char *prev_path; /* FILE.prev */
	int lock_fd;
	bool is_fresh;
	bool has_begun; /* the first commit is made */
	struct wm_checkpoint loaded;
	uint64_t generation;
	/* OPTS */
	struct wm_buf found;
	/* INPT */
	struct entry **entries;
	size_t entries_count;
	size_t entries_capacity;
	int64_t floor_us; /* files not newer than this may have been forgotten; INT64_MIN: none was */
	/* OUTP */
	bool is_closed;
	struct written *written;
	size_t written_count;

	struct input *inputs;
	size_t inputs_count;
	struct output *outputs;
	size_t outputs_count;
	char **notes;
	size_t notes_count;
	/* a commit between its begin and its end */
	struct wm_checkpoint_writer *writer;
};

/* Text of a checkpoint as a message may show it; the file may be anybody's. */
struct shown {
	char text[320];
};

static const char *
show(struct wm_span text, struct shown *shown)
{
	size_t len_max = sizeof(shown->text) - 4;
	size_t len = text.len < len_max ? text.len : len_max;

	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text.data[i];

		shown->text[i] = byte < ' ' || byte == 0x7f ? '?' : (char)byte;
	}
	memcpy(shown->text + len, len < text.len ? "..." : "", len < text.len ? 4 : 1);
	return shown->text;
}

static bool
fail_errno(struct wm_err *err, const char *path, const char *doing)
{
	return wm_err_set(err, WM_ERR_IO, "%s: cannot %s: %s", path, doing, strerror(errno));
}

static void
set_buf(struct wm_buf *buf, struct wm_span text)
{
	struct wm_buf copy;

	/* Those who have it borrowed may keep it as long as it is the same. */
	if (wm_span_equal(text, wm_buf_span(buf)))
		return;
	wm_buf_init(&copy, WM_BUF_UNBOUNDED);
	wm_buf_add(&copy, text.data, text.len);
	wm_buf_release(buf);
	*buf = copy;
}

static int64_t
modified_us(const struct stat *facts)
{
	return (int64_t)facts->st_mtim.tv_sec * 1000000 + facts->st_mtim.tv_nsec / 1000;
}

static size_t
known_len(uint64_t offset)
{
	return offset < RESUME_KNOWN_BYTES ? (size_t)offset : RESUME_KNOWN_BYTES;
}

/* Hashes the bytes before an offset by which it is known again; *is_there: the file reaches so far. */
static bool
hash_last(const struct resume *r, int fd, uint64_t offset, const char *path, uint64_t *hash, bool *is_there,
	struct wm_err *err)
{
	char bytes[RESUME_KNOWN_BYTES];
	size_t len = known_len(offset), got;

	if (!wm_checkpoint_read(r->setup.calls, fd, bytes, len, offset - len, &got, path, err))
		return false;
	*is_there = got == len;
	*hash = wm_hash_stable(wm_span(bytes, got));
	return true;
}

static bool
hash_head(const struct resume *r, int fd, uint64_t offset, const char *path, uint64_t *hash, bool *is_there,
	struct wm_err *err)
{
	return hash_last(r, fd, known_len(offset), path, hash, is_there, err);
}

static struct entry *
add_entry(struct resume *r)
{
	struct entry *entry = wm_calloc(1, sizeof(*entry));

	wm_buf_init(&entry->head, WM_BUF_UNBOUNDED);
	wm_buf_init(&entry->tail, WM_BUF_UNBOUNDED);
	wm_buf_init(&entry->position, WM_BUF_UNBOUNDED);
	wm_buf_init(&entry->positions, WM_BUF_UNBOUNDED);
	wm_buf_init(&entry->layout, WM_BUF_UNBOUNDED);
	r->entries = wm_grown(r->entries, r->entries_count, &r->entries_capacity, sizeof(r->entries[0]));
	r->entries[r->entries_count++] = entry;
	return entry;
}

static void
free_entry(struct entry *entry)
{
	free(entry->path);
	wm_buf_release(&entry->head);
	wm_buf_release(&entry->tail);
	wm_buf_release(&entry->position);
	wm_buf_release(&entry->positions);
	wm_buf_release(&entry->layout);
	free(entry);
}

static void
encode_options(const struct resume *r, struct wm_span found, struct wm_buf *out)
{
	wm_put_varint(out, r->setup.options_count);
	for (size_t i = 0; i < r->setup.options_count; i++) {
		const struct resume_option *option = &r->setup.options[i];

		sections_put_option(&(struct sections_option){ option->may_rise, wm_span_of(option->name),
					    wm_span_of(option->value), option->amount },
			out);
	}
	wm_put_span(out, found);
}

static bool
fail_option(const struct resume *r, const char *name, const char *old, const char *new, struct wm_err *err)
{
	return wm_err_set(err, WM_ERR_IO,
		"%s: was made %s%s%s%s, and this run is %s%s%s%s: the state would change its meaning; "
		"go on as before, or name another checkpoint",
		r->setup.path, old == NULL ? "without " : "with ", name, old == NULL ? "" : " ", old == NULL ? "" : old,
		new == NULL ? "without " : "with ", name, new == NULL ? "" : " ", new == NULL ? "" : new);
}

static bool
compare_options(struct resume *r, struct wm_get *in, bool *is_same, struct wm_err *err)
{
	const struct resume_option *options = r->setup.options;
	size_t count = r->setup.options_count;
	bool *is_met = wm_calloc(count + 1, sizeof(is_met[0]));
	struct shown name_shown, value_shown;

	*is_same = true;
	for (uint64_t left = wm_get_varint(in); left > 0 && !in->failed && *is_same; left--) {
		struct sections_option old;
		size_t i = 0;

		sections_get_option(in, &old);
		if (in->failed)
			break;
		while (i < count && !wm_span_is(old.name, options[i].name))
			i++;
		if (i == count) {
			*is_same =
				fail_option(r, show(old.name, &name_shown), show(old.value, &value_shown), NULL, err);
			break;
		}
		is_met[i] = true;
		*is_same = options[i].may_rise && old.may_rise ? options[i].amount >= old.amount
							       : wm_span_is(old.value, options[i].value);
		if (!*is_same)
			(void)fail_option(r, options[i].name, show(old.value, &value_shown), options[i].value, err);
	}
	for (size_t i = 0; i < count && *is_same && !in->failed; i++)
		if (!is_met[i])
			*is_same = fail_option(r, options[i].name, NULL, options[i].value, err);
	free(is_met);
	set_buf(&r->found, wm_get_span(in));
	return !in->failed;
}

static void
encode_inputs(const struct resume *r, struct wm_buf *out)
{
	wm_put_i64(out, r->floor_us);
	wm_put_varint(out, r->entries_count);
	for (size_t i = 0; i < r->entries_count; i++) {
		const struct entry *entry = r->entries[i];
		/* What was read ahead of the offset comes again. */
		size_t head_len = known_len(entry->offset);
		const struct sections_input input = {
			.is_pipe = entry->is_pipe,
			.is_at_end = entry->is_at_end,
			.is_operand = entry->is_operand,
			.has_no_rows = entry->has_no_rows,
			.path = wm_span_of(entry->path),
			.device = entry->device,
			.inode = entry->inode,
			.modified_us = entry->modified_us,
			.place = entry->place,
			.offset = entry->offset,
			.lines = entry->lines,
			.head_hash = entry->head_hash,
			.last_hash = entry->last_hash,
			.read_bytes = entry->read_bytes,
			.head = wm_span(entry->head.data, entry->head.len < head_len ? entry->head.len : head_len),
			.tail = wm_buf_span(&entry->tail),
			.position = wm_buf_span(&entry->position),
			.positions = wm_buf_span(&entry->positions),
			.layout = wm_buf_span(&entry->layout),
		};

		sections_put_input(&input, out);
	}
}

static char *
copy_of(struct wm_span text)
{
	return wm_memdup(text.data, text.len);
}

static void
decode_inputs(struct resume *r, struct wm_get *in)
{
	r->floor_us = wm_get_i64(in);
	for (uint64_t left = sections_get_inputs_count(in); left > 0 && !in->failed; left--) {
		struct entry *entry = add_entry(r);
		struct sections_input input;

		sections_get_input(in, r->loaded.sections[WM_CHECKPOINT_INPT].version, &input);
		entry->is_pipe = input.is_pipe;
		entry->is_at_end = input.is_at_end;
		entry->is_operand = input.is_operand;
		entry->has_no_rows = input.has_no_rows;
		entry->path = copy_of(input.path);
		entry->device = input.device;
		entry->inode = input.inode;
		entry->modified_us = input.modified_us;
		entry->place = input.place;
		entry->offset = input.offset;
		entry->lines = input.lines;
		entry->head_hash = input.head_hash;
		entry->last_hash = input.last_hash;
		entry->read_bytes = input.read_bytes;
		set_buf(&entry->head, input.head);
		set_buf(&entry->tail, input.tail);
		set_buf(&entry->position, input.position);
		set_buf(&entry->positions, input.positions);
		set_buf(&entry->layout, input.layout);
	}
}

static void
decode_outputs(struct resume *r, struct wm_get *in)
{
	r->is_closed = wm_get_u8(in) != 0;
	uint64_t count = sections_get_outputs_count(in);
	r->written = wm_calloc((size_t)count + 1, sizeof(r->written[0]));
	for (uint64_t i = 0; i < count && !in->failed; i++) {
		struct written *written = &r->written[r->written_count++];
		struct sections_output output;

		sections_get_output(in, &output);
		written->path = copy_of(output.path);
		written->option = copy_of(output.option);
		written->device = output.device;
		written->inode = output.inode;
		written->length = output.length;
		written->hash = output.hash;
		written->is_finished = output.is_finished;
	}
}

/* A section of ours. */
static bool
open_section(struct resume *r, enum wm_checkpoint_part part, struct wm_get *in, struct wm_err *err)
{
	return sections_open(&r->loaded, part, sections_version(part), r->setup.path, in, err);
}

void
resume_name_way_back(const struct resume *r, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	struct wm_err damage = *err;
	struct stat facts;

	if (damage.code == WM_ERR_IO && r->setup.mode != RESUME_PREV &&
		calls->stat(calls->self, r->prev_path, &facts) == 0)
		(void)wm_err_set(
			err, WM_ERR_IO, "%.900s; --resume prev goes back to %.100s", damage.message, r->prev_path);
}

static bool
close_section(struct resume *r, enum wm_checkpoint_part part, struct wm_get *in, struct wm_err *err)
{
	if (sections_close(&r->loaded, part, r->setup.path, true, in, err))
		return true;
	resume_name_way_back(r, err);
	return false;
}

static bool
decode(struct resume *r, struct wm_err *err)
{
	bool is_same;
	struct wm_get in;

	if (strcmp(r->loaded.tool, r->setup.tool) != 0)
		return wm_err_set(err, WM_ERR_IO, "%s: is a checkpoint of %s: name another for %s", r->setup.path,
			r->loaded.tool, r->setup.tool);
	if (!open_section(r, WM_CHECKPOINT_OPTS, &in, err))
		return false;
	if (compare_options(r, &in, &is_same, err) && !is_same)
		return false;
	if (!close_section(r, WM_CHECKPOINT_OPTS, &in, err) || !open_section(r, WM_CHECKPOINT_INPT, &in, err))
		return false;
	decode_inputs(r, &in);
	if (!close_section(r, WM_CHECKPOINT_INPT, &in, err) || !open_section(r, WM_CHECKPOINT_OUTP, &in, err))
		return false;
	decode_outputs(r, &in);
	return close_section(r, WM_CHECKPOINT_OUTP, &in, err);
}

/* Where FILE is, once and for all: a symbolic link must lead to the same file when it is replaced. */
static bool
resolve(struct resume *r, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	const char *path = r->setup.path;
	const char *slash = strrchr(path, '/');

	r->path = calls->resolve(calls->self, path);
	if (r->path == NULL && errno != ENOENT)
		return fail_errno(err, path, "open");
	if (r->path == NULL) {
		/* Not there yet: its folder has to be. */
		char *named = slash == NULL ? wm_memdup(".", 1) : wm_memdup(path, (size_t)(slash - path) + 1);
		char *folder = calls->resolve(calls->self, named);

		free(named);
		if (folder == NULL)
			return fail_errno(err, path, "create");
		char *base = wm_checkpoint_beside("/", slash == NULL ? path : slash + 1);
		r->path = wm_checkpoint_beside(strcmp(folder, "/") == 0 ? "" : folder, base);
		free(base);
		free(folder);
		/* A name that is taken all the same is a link that leads nowhere, which a rename would replace. */
		int fd = calls->open(calls->self, r->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
		if (fd == -1 && errno == ELOOP)
			return wm_err_set(err, WM_ERR_IO, "%s: is a symbolic link that leads nowhere: remove it", path);
		if (fd != -1)
			calls->close(calls->self, fd);
	}
	r->prev_path = wm_checkpoint_beside(r->path, ".prev");
	return true;
}

/* Says who holds the lock, as far as that can be read. */
static bool
fail_locked(const struct resume *r, int fd, const char *lock_path, struct wm_err *err)
{
	char holder[256];
	size_t len;
	struct shown shown;

	if (!wm_checkpoint_read(r->setup.calls, fd, holder, sizeof(holder), 0, &len, lock_path, err))
		return false;
	while (len > 0 && holder[len - 1] == '\n')
		len--;
	return wm_err_set(err, WM_ERR_IO, "%s: another run has it (%s): wait for its end, or name another checkpoint",
		r->setup.path, len == 0 ? "it does not say which" : show(wm_span(holder, len), &shown));
}

/* The lock's file stays for ever: a lock on a name that comes and goes could be held twice. */
static bool
lock(struct resume *r, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	char *lock_path = wm_checkpoint_beside(r->path, ".lock");
	char host[128] = "";
	struct wm_buf holder;
	bool is_locked = false;

	wm_buf_init(&holder, WM_BUF_UNBOUNDED);
	(void)gethostname(host, sizeof(host) - 1);
	wm_buf_addf(&holder, "process %ld on %s\n", (long)getpid(), host);
	r->lock_fd = calls->open(calls->self, lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (r->lock_fd == -1)
		(void)fail_errno(err, lock_path, "create");
	else if (calls->lock(calls->self, r->lock_fd) == -1)
		(void)(errno == EAGAIN || errno == EACCES ? fail_locked(r, r->lock_fd, lock_path, err)
							  : fail_errno(err, lock_path, "lock"));
	else if (calls->ftruncate(calls->self, r->lock_fd, 0) == -1)
		(void)fail_errno(err, lock_path, "write");
	else
		is_locked = wm_checkpoint_write(calls, r->lock_fd, wm_buf_span(&holder), lock_path, err);
	wm_buf_release(&holder);
	free(lock_path);
	return is_locked;
}

/* Looks whether a file is there. */
static bool
look_for(const struct resume *r, const char *path, struct stat *facts, bool *is_there, struct wm_err *err)
{
	*is_there = r->setup.calls->stat(r->setup.calls->self, path, facts) == 0;
	return *is_there || errno == ENOENT || errno == ENOTDIR || fail_errno(err, path, "open");
}

/* Loads FILE or FILE.prev. */
static bool
load(struct resume *r, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	bool is_prev = r->setup.mode == RESUME_PREV;
	enum wm_checkpoint_found found =
		wm_checkpoint_load(&r->loaded, calls, is_prev ? r->prev_path : r->path, r->setup.state_bytes_max, err);
	struct stat facts;
	bool has_prev;

	switch (found) {
	case WM_CHECKPOINT_LOADED:
		r->generation = r->loaded.generation;
		return decode(r, err);
	case WM_CHECKPOINT_FAILED:
		resume_name_way_back(r, err);
		return false;
	case WM_CHECKPOINT_ABSENT:
		break;
	}
	if (is_prev)
		return wm_err_set(err, WM_ERR_IO, "%s: is not there: there is nothing to go back to", r->prev_path);
	if (!look_for(r, r->prev_path, &facts, &has_prev, err))
		return false;
	if (has_prev)
		return wm_err_set(err, WM_ERR_IO,
			"%s: is gone, but %s is there: go on from that with --resume prev, or remove it to begin anew",
			r->setup.path, r->prev_path);
	r->is_fresh = true;
	return true;
}

struct resume *
resume_open(const struct resume_setup *setup, struct wm_err *err)
{
	struct resume *r = wm_calloc(1, sizeof(*r));

	r->setup = *setup;
	if (r->setup.files_max == 0)
		r->setup.files_max = RESUME_FILES_MAX;
	r->lock_fd = -1;
	r->floor_us = INT64_MIN;
	wm_buf_init(&r->found, WM_BUF_UNBOUNDED);
	if (resolve(r, err) && lock(r, err) && load(r, err))
		return r;
	resume_close(r);
	return NULL;
}

void
resume_close(struct resume *r)
{
	if (r == NULL)
		return;
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	wm_checkpoint_abandon(r->writer);
	wm_checkpoint_release(&r->loaded);
	for (size_t i = 0; i < r->entries_count; i++)
		free_entry(r->entries[i]);
	for (size_t i = 0; i < r->written_count; i++) {
		free(r->written[i].path);
		free(r->written[i].option);
	}
	for (size_t i = 0; i < r->inputs_count; i++) {
		free(r->inputs[i].name);
		free(r->inputs[i].path);
	}
	for (size_t i = 0; i < r->outputs_count; i++) {
		free(r->outputs[i].path);
		if (r->outputs[i].read_fd != -1)
			calls->close(calls->self, r->outputs[i].read_fd);
	}
	for (size_t i = 0; i < r->notes_count; i++)
		free(r->notes[i]);
	free(r->entries);
	free(r->written);
	free(r->inputs);
	free(r->outputs);
	free(r->notes);
	wm_buf_release(&r->found);
	free(r->path);
	free(r->prev_path);
	/* The lock goes with its descriptor. */
	if (r->lock_fd != -1)
		calls->close(calls->self, r->lock_fd);
	free(r);
}

void
resume_withdraw(struct resume *r)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	struct stat facts;

	if (!r->is_fresh || !r->has_begun || r->generation != 1)
		return;
	/* What was written belongs to it. */
	for (size_t i = 0; i < r->outputs_count; i++)
		if (r->outputs[i].read_fd != -1 &&
			(calls->fstat(calls->self, r->outputs[i].fd, &facts) == -1 ||
				(uint64_t)facts.st_size != r->outputs[i].length))
			return;
	calls->unlink(calls->self, r->path);
}

bool
resume_is_fresh(const struct resume *r)
{
	return r->is_fresh;
}

bool
resume_is_closed(const struct resume *r)
{
	return r->is_closed;
}

struct wm_checkpoint *
resume_loaded(struct resume *r)
{
	assert(!r->is_fresh && !r->has_begun);
	return &r->loaded;
}

struct wm_span
resume_found(const struct resume *r)
{
	return wm_buf_span(&r->found);
}

size_t
resume_add_input(struct resume *r, const char *name, int fd)
{
	r->inputs = wm_reallocarray(r->inputs, r->inputs_count + 1, sizeof(r->inputs[0]));
	r->inputs[r->inputs_count] = (struct input){ .name = wm_memdup(name, strlen(name)), .fd = fd };
	return r->inputs_count++;
}

size_t
resume_add_output(struct resume *r, const char *option, int fd)
{
	r->outputs = wm_reallocarray(r->outputs, r->outputs_count + 1, sizeof(r->outputs[0]));
	r->outputs[r->outputs_count] = (struct output){ .option = option, .fd = fd, .read_fd = -1 };
	return r->outputs_count++;
}

static void
note(struct resume *r, struct wm_buf *line)
{
	r->notes = wm_reallocarray(r->notes, r->notes_count + 1, sizeof(r->notes[0]));
	r->notes[r->notes_count++] = wm_memdup(line->data, line->len);
	wm_buf_release(line);
}

const char *
resume_note(const struct resume *r, size_t number)
{
	return number < r->notes_count ? r->notes[number] : NULL;
}

/* A regular file by its path; *fd is -1 if there is none. */
static bool
open_file(const struct resume *r, const char *path, int *fd, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	struct stat facts;
	bool is_there;

	*fd = -1;
	/* Not by opening it: that would be noticed at the other end of a pipe. */
	if (!look_for(r, path, &facts, &is_there, err))
		return false;
	if (!is_there || !S_ISREG(facts.st_mode))
		return true;
	*fd = calls->open(calls->self, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
	return *fd != -1 || fail_errno(err, path, "open");
}

static void
close_file(const struct resume *r, int fd)
{
	if (fd != -1)
		r->setup.calls->close(r->setup.calls->self, fd);
}

/* Whether a file begins with what was read of an entry's. */
static bool
holds(const struct resume *r, int fd, const char *path, const struct entry *entry, bool *is_same, struct wm_err *err)
{
	uint64_t hash;

	if (!hash_head(r, fd, entry->offset, path, &hash, is_same, err))
		return false;
	*is_same = *is_same && hash == entry->head_hash;
	if (!*is_same || entry->offset == 0)
		return true;
	if (!hash_last(r, fd, entry->offset, path, &hash, is_same, err))
		return false;
	*is_same = *is_same && hash == entry->last_hash;
	return true;
}

/* The same for an input. */
static bool
input_holds(
	const struct resume *r, const struct input *input, const struct entry *entry, bool *is_same, struct wm_err *err)
{
	int fd = input->fd;

	*is_same = false;
	if ((uint64_t)input->facts.st_size < entry->offset)
		return true;
	if (fd == -1 && !open_file(r, input->path, &fd, err))
		return false;
	if (fd == -1)
		return true;
	bool is_read = holds(r, fd, input->path, entry, is_same, err);
	if (fd != input->fd)
		close_file(r, fd);
	return is_read;
}

/* Whether an entry's content is no longer where it was. */
static bool
is_moved(const struct resume *r, const struct entry *entry, bool *moved, struct wm_err *err)
{
	int fd;
	bool is_same = false;

	if (!open_file(r, entry->path, &fd, err))
		return false;
	bool is_read = fd == -1 || holds(r, fd, entry->path, entry, &is_same, err);
	close_file(r, fd);
	*moved = !is_same;
	return is_read;
}

/* Whether no row was read of it: any file of the same header begins so. */
static bool
is_bare(const struct entry *entry)
{
	return entry->offset == 0 || entry->has_no_rows;
}

static void
take(struct input *input, struct entry *entry)
{
	input->entry = entry;
	entry->is_taken = true;
}

static int
compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int
by_path_alone(const void *a, const void *b)
{
	const struct entry *one = *(const struct entry *const *)a, *other = *(const struct entry *const *)b;

	return strcmp(one->path, other->path);
}

/* Where one path has several entries, those that reach furthest come first. */
static int
by_path(const void *a, const void *b)
{
	const struct entry *one = *(const struct entry *const *)a, *other = *(const struct entry *const *)b;
	int order = by_path_alone(a, b);

	return order != 0 ? order : compare_numbers(other->offset, one->offset);
}

static int
by_inode(const void *a, const void *b)
{
	const struct entry *one = *(const struct entry *const *)a, *other = *(const struct entry *const *)b;
	int order = compare_numbers(one->inode, other->inode);

	return order != 0 ? order : compare_numbers(one->device, other->device);
}

static int
by_head(const void *a, const void *b)
{
	const struct entry *one = *(const struct entry *const *)a, *other = *(const struct entry *const *)b;
	int order = compare_numbers(known_len(one->offset), known_len(other->offset));

	return order != 0 ? order : compare_numbers(one->head_hash, other->head_hash);
}

typedef int compare(const void *, const void *);

/* The first place in sorted entries that is not before a key. */
static size_t
find(struct entry *const *entries, size_t count, const struct entry *key, compare *order)
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;

		if (order(&entries[middle], &key) < 0)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

enum rule { BY_PATH, BY_INODE, BY_CONTENT };

/* An input that holds what was read of an entry. */
struct candidate {
	struct input *input;
	struct entry *entry;
	enum rule rule;
};

struct matching {
	struct entry **files; /* entries of files, in the order of the rule at hand */
	size_t files_count;
	struct candidate *candidates;
	size_t count;
	size_t capacity;
};

/* Adds a candidate if the input holds the entry; by content alone only where the entry's own path no longer does. */
static bool
offer(struct resume *r, struct matching *m, struct input *input, struct entry *entry, enum rule rule,
	struct wm_err *err)
{
	bool is_same, moved = true;

	if (entry->is_taken || (is_bare(entry) && rule != BY_PATH))
		return true;
	if (!input_holds(r, input, entry, &is_same, err) ||
		(is_same && rule == BY_CONTENT && !is_moved(r, entry, &moved, err)))
		return false;
	if (!is_same || !moved)
		return true;
	m->candidates = wm_grown(m->candidates, m->count, &m->capacity, sizeof(m->candidates[0]));
	m->candidates[m->count++] = (struct candidate){ input, entry, rule };
	if (rule == BY_PATH && entry->offset > input->path_offset)
		input->path_offset = entry->offset;
	return true;
}

/* Offers the entries that are the same as a key by the order that they stand in. */
static bool
offer_same(struct resume *r, struct matching *m, struct input *input, const struct entry *key, compare *order,
	compare *same, enum rule rule, struct wm_err *err)
{
	bool is_read = true;

	for (size_t i = find(m->files, m->files_count, key, order);
		i < m->files_count && is_read && same(&m->files[i], &key) == 0; i++)
		is_read = offer(r, m, input, m->files[i], rule, err);
	return is_read;
}

static bool
offer_path(struct resume *r, struct matching *m, struct input *input, struct wm_err *err)
{
	const struct entry key = { .path = input->path, .offset = UINT64_MAX };

	return offer_same(r, m, input, &key, by_path, by_path_alone, BY_PATH, err);
}

static bool
offer_inode(struct resume *r, struct matching *m, struct input *input, struct wm_err *err)
{
	const struct entry key = { .device = input->facts.st_dev, .inode = input->facts.st_ino };

	return offer_same(r, m, input, &key, by_inode, by_inode, BY_INODE, err);
}

/* For each length of a known beginning that there is, those with the hash of this one. */
static bool
offer_heads(struct resume *r, struct matching *m, struct input *input, struct wm_span head, struct wm_err *err)
{
	struct entry *const *files = m->files;
	size_t count = m->files_count;

	for (size_t i = 0; i < count;) {
		struct entry key = { .offset = known_len(files[i]->offset) };
		const struct entry *wanted = &key;

		if (key.offset > head.len)
			break;
		key.head_hash = wm_hash_stable(wm_span(head.data, (size_t)key.offset));
		for (i = find(files, count, &key, by_head); i < count && by_head(&files[i], &wanted) == 0; i++)
			/* One that reaches no further than that of its path will not be preferred. */
			if (files[i]->offset > input->path_offset && !offer(r, m, input, files[i], BY_CONTENT, err))
				return false;
		key.head_hash = UINT64_MAX;
		i = find(files, count, &key, by_head);
		while (i < count && by_head(&files[i], &wanted) == 0)
			i++;
	}
	return true;
}

static bool
offer_content(struct resume *r, struct matching *m, struct input *input, struct wm_err *err)
{
	char head[RESUME_KNOWN_BYTES];
	size_t len;
	int fd = input->fd;

	/* Nothing can reach further than all of it. */
	if (input->path_offset == (uint64_t)input->facts.st_size)
		return true;
	if (fd == -1 && !open_file(r, input->path, &fd, err))
		return false;
	if (fd == -1)
		return true;
	bool is_read = wm_checkpoint_read(r->setup.calls, fd, head, sizeof(head), 0, &len, input->path, err);
	if (fd != input->fd)
		close_file(r, fd);
	return is_read && offer_heads(r, m, input, wm_span(head, len), err);
}

/* Same path, inode and content, and nothing behind it, so that no entry can reach further: nearly all files of a spool. */
static bool
take_unmoved(struct resume *r, struct matching *m, struct input *input, struct wm_err *err)
{
	const struct entry key = { .path = input->path, .offset = UINT64_MAX }, *wanted = &key;
	bool is_same;

	for (size_t i = find(m->files, m->files_count, &key, by_path);
		i < m->files_count && input->entry == NULL && by_path_alone(&m->files[i], &wanted) == 0; i++) {
		struct entry *entry = m->files[i];

		if (entry->is_taken || is_bare(entry) || entry->offset != (uint64_t)input->facts.st_size ||
			entry->inode != input->facts.st_ino || entry->device != input->facts.st_dev)
			continue;
		if (!input_holds(r, input, entry, &is_same, err))
			return false;
		if (is_same)
			take(input, entry);
	}
	return true;
}

/* What reaches furthest first, then by the rules, then as the command line has the inputs. */
static int
by_preference(const void *a, const void *b)
{
	const struct candidate *one = a, *other = b;
	int order = compare_numbers(other->entry->offset, one->entry->offset);

	if (order == 0)
		order = (one->rule > other->rule) - (one->rule < other->rule);
	return order != 0 ? order : (one->input > other->input) - (one->input < other->input);
}

static void
take_best(struct resume *r, struct matching *m)
{
	if (m->count != 0)
		qsort(m->candidates, m->count, sizeof(m->candidates[0]), by_preference);
	for (size_t i = 0; i < m->count; i++) {
		const struct candidate *best = &m->candidates[i];
		struct wm_buf line;
		struct shown shown;

		if (best->entry->is_taken || best->input->entry != NULL)
			continue;
		take(best->input, best->entry);
		if (best->rule != BY_CONTENT)
			continue;
		wm_buf_init(&line, WM_BUF_UNBOUNDED);
		wm_buf_addf(&line, "%s: is taken for what was %s, and goes on at byte %" PRIu64, best->input->name,
			show(wm_span_of(best->entry->path), &shown), best->entry->offset);
		note(r, &line);
	}
}

typedef bool look(struct resume *, struct matching *, struct input *, struct wm_err *);

/*
 * Each entry goes to one input that holds what was read of it. Where one input holds several, as all parts of a rotated log begin
 * with the same header, it is the one that reaches furthest: a file that took the name of a part of which little was read is
 * still known by all that was read of it under its old name.
 */
static bool
match_files(struct resume *r, struct wm_err *err)
{
	static const struct {
		compare *order;
		look *look;
	} steps[] = { { by_path, take_unmoved }, { by_path, offer_path }, { by_inode, offer_inode },
		{ by_head, offer_content } };
	struct matching m = { .files = wm_reallocarray(NULL, r->entries_count + 1, sizeof(m.files[0])) };
	bool is_read = true;

	for (size_t i = 0; i < r->entries_count; i++)
		if (!r->entries[i]->is_pipe)
			m.files[m.files_count++] = r->entries[i];
	for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); step++) {
		qsort(m.files, m.files_count, sizeof(m.files[0]), steps[step].order);
		for (size_t i = 0; i < r->inputs_count && is_read; i++)
			if (!r->inputs[i].is_pipe && r->inputs[i].entry == NULL)
				is_read = steps[step].look(r, &m, &r->inputs[i], err);
	}
	if (is_read)
		take_best(r, &m);
	free(m.candidates);
	free(m.files);
	return is_read;
}

static void
match_pipes(struct resume *r)
{
	for (size_t i = 0; i < r->inputs_count; i++)
		for (size_t j = 0; j < r->entries_count && r->inputs[i].is_pipe && r->inputs[i].entry == NULL; j++)
			if (r->entries[j]->is_pipe && r->entries[j]->place == i && !r->entries[j]->is_taken)
				take(&r->inputs[i], r->entries[j]);
}

static bool
look_at_inputs(struct resume *r, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;

	for (size_t i = 0; i < r->inputs_count; i++) {
		struct input *input = &r->inputs[i];
		bool is_named = input->fd == -1;
		int status = is_named ? calls->stat(calls->self, input->name, &input->facts)
				      : calls->fstat(calls->self, input->fd, &input->facts);

		if (status == -1)
			return fail_errno(err, input->name, "open");
		input->is_pipe = !S_ISREG(input->facts.st_mode);
		input->path =
			is_named ? calls->resolve(calls->self, input->name) : calls->path_of(calls->self, input->fd);
		if (input->path == NULL)
			input->path = wm_memdup(input->name, strlen(input->name));
	}
	return true;
}

/* Files not newer than this are too old, by the newest one seen; INT64_MIN: none is. */
static int64_t
age_floor_us(const struct resume *r)
{
	int64_t newest_us = INT64_MIN, age_us = r->setup.file_age_max_us;

	for (size_t i = 0; i < r->entries_count; i++)
		if (!r->entries[i]->is_pipe && r->entries[i]->modified_us > newest_us)
			newest_us = r->entries[i]->modified_us;
	return age_us == 0 || newest_us < INT64_MIN + age_us + 1 ? INT64_MIN : newest_us - age_us - 1;
}

static int64_t
later_us(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* An unknown file: it begins, or is left out. */
static void
decide_unknown(struct resume *r, struct input *input, int64_t floor_us)
{
	struct shown shown;
	struct wm_buf line;

	wm_buf_init(&line, WM_BUF_UNBOUNDED);
	if (!input->is_pipe && modified_us(&input->facts) <= floor_us) {
		wm_buf_addf(&line, "%s: is older than the files that are remembered, and is not read", input->name);
		note(r, &line);
		input->action = RESUME_TOO_OLD;
		return;
	}
	input->action = RESUME_BEGIN;
	for (size_t i = 0; i < r->entries_count && !input->is_pipe; i++) {
		struct entry *entry = r->entries[i];

		if (entry->is_pipe || entry->is_taken || is_bare(entry) || strcmp(entry->path, input->path) != 0)
			continue;
		wm_buf_addf(&line,
			"%s: is another file now; what was under this name, processed up to byte %" PRIu64
			", is not among the inputs",
			show(wm_span_of(entry->path), &shown), entry->offset);
		note(r, &line);
		entry->is_told = true;
		return;
	}
}

/* Says what the run before was to read to its end, did not, and is no input of this one: what is left of it would be missed by nobody. */
static void
tell_left(struct resume *r)
{
	for (size_t i = 0; i < r->entries_count; i++) {
		const struct entry *entry = r->entries[i];
		struct shown shown;
		struct wm_buf line;

		if (entry->is_pipe || entry->is_taken || entry->is_told || entry->is_at_end || !entry->is_operand)
			continue;
		wm_buf_init(&line, WM_BUF_UNBOUNDED);
		wm_buf_addf(&line,
			"%s: was read up to byte %" PRIu64
			" when the run before ended, and is not among the inputs: name it to have the rest",
			show(wm_span_of(entry->path), &shown), entry->offset);
		note(r, &line);
	}
}

static enum resume_action
known_action(const struct resume *r, const struct input *input)
{
	const struct entry *entry = input->entry;

	if (input->is_pipe && r->setup.mode == RESUME_REPLAY)
		return entry->offset > 0 ? RESUME_SKIP : RESUME_BEGIN;
	if (input->is_pipe)
		return entry->offset > 0 || entry->tail.len > 0 ? RESUME_CONTINUE : RESUME_BEGIN;
	if (entry->is_at_end && (uint64_t)input->facts.st_size == entry->offset)
		return RESUME_DONE;
	return entry->offset > 0 ? RESUME_SEEK : RESUME_BEGIN;
}

/* Going back to FILE.prev: what the run read that wrote FILE has to be read again, and any of its inputs may have been. */
static bool
check_readable(const struct resume *r, struct wm_err *err)
{
	struct shown shown;

	for (size_t i = 0; i < r->entries_count; i++) {
		const struct entry *entry = r->entries[i];
		bool moved = entry->is_pipe;

		if (!entry->is_pipe && !entry->is_taken && !is_moved(r, entry, &moved, err))
			return false;
		if (moved)
			return wm_err_set(err, WM_ERR_IO,
				"%s: cannot go back, as %s %s and cannot be read again from byte %" PRIu64,
				r->setup.path, show(wm_span_of(entry->path), &shown),
				entry->is_pipe ? "is a pipe" : "is no longer what it was", entry->offset);
	}
	return true;
}

static bool
decide_inputs(struct resume *r, struct wm_err *err)
{
	if (!look_at_inputs(r, err) || !match_files(r, err))
		return false;
	match_pipes(r);
	if (r->setup.mode == RESUME_PREV && !check_readable(r, err))
		return false;
	int64_t floor_us = later_us(r->floor_us, age_floor_us(r));
	for (size_t i = 0; i < r->inputs_count; i++) {
		struct input *input = &r->inputs[i];

		if (input->entry != NULL)
			input->action = known_action(r, input);
		else
			decide_unknown(r, input, floor_us);
	}
	tell_left(r);
	for (size_t i = 0; i < r->entries_count; i++)
		r->entries[i]->is_operand = false;
	for (size_t i = 0; i < r->inputs_count; i++) {
		struct input *input = &r->inputs[i];

		if (input->action == RESUME_TOO_OLD)
			continue;
		if (input->entry == NULL)
			take(input, add_entry(r));
		struct entry *entry = input->entry;
		free(entry->path);
		entry->path = wm_memdup(input->path, strlen(input->path));
		entry->is_pipe = input->is_pipe;
		entry->is_operand = true;
		entry->place = i;
		entry->device = input->facts.st_dev;
		entry->inode = input->facts.st_ino;
		entry->modified_us = input->is_pipe ? 0 : modified_us(&input->facts);
		if (entry->offset == 0 && !entry->is_pipe)
			entry->head_hash = entry->last_hash = wm_hash_stable(wm_span("", 0));
	}
	return true;
}

/* What can be known of an output; a second descriptor, as the first may be for writing alone. */
static bool
look_at_output(struct resume *r, struct output *output, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	struct stat facts;

	if (output->read_fd != -1)
		calls->close(calls->self, output->read_fd);
	output->read_fd = -1;
	free(output->path);
	output->path = calls->path_of(calls->self, output->fd);
	if (output->path == NULL)
		output->path = wm_memdup(output->option, strlen(output->option));
	output->length = 0;
	if (calls->fstat(calls->self, output->fd, &facts) == -1)
		return fail_errno(err, output->path, "look at");
	if (!S_ISREG(facts.st_mode))
		return true;
	output->device = facts.st_dev;
	output->inode = facts.st_ino;
	output->length = (uint64_t)facts.st_size;
	output->read_fd = calls->reopen(calls->self, output->fd);
	return output->read_fd != -1 || fail_errno(err, output->path, "read what was written");
}

/* Whether the run before wrote an output of this name. */
static bool
was_written(const struct resume *r, const char *path)
{
	for (size_t i = 0; i < r->written_count; i++)
		if (strcmp(r->written[i].path, path) == 0)
			return true;
	return false;
}

/*
 * The output of this run that is the one written before: that of the same name, else the same file under a name that is new. An inode
 * alone tells little: where files were removed, those that are made anew have the old inodes, in any order.
 */
static struct output *
find_output(struct resume *r, const struct written *written)
{
	for (size_t i = 0; i < r->outputs_count; i++) {
		struct output *output = &r->outputs[i];

		if (output->read_fd != -1 && !output->is_taken && strcmp(output->path, written->path) == 0)
			return output;
	}
	for (size_t i = 0; i < r->outputs_count; i++) {
		struct output *output = &r->outputs[i];

		if (output->read_fd != -1 && !output->is_taken && output->device == written->device &&
			output->inode == written->inode && !was_written(r, output->path))
			return output;
	}
	return NULL;
}

/* Whether an output that a run left unfinished still has the bytes that were good; what follows them is to be cut. */
static bool
check_output(struct resume *r, const struct written *written, struct wm_err *err)
{
	struct output *output = find_output(r, written);
	struct shown path_shown, option_shown;
	uint64_t hash;

	if (output == NULL)
		return wm_err_set(err, WM_ERR_IO,
			"%s: the run before did not finish its output %s (%s): name it as an output once more, so that "
			"it "
			"can be cut back",
			r->setup.path, show(wm_span_of(written->path), &path_shown),
			show(wm_span_of(written->option), &option_shown));
	output->is_taken = true;
	bool is_good = output->length >= written->length;
	if (is_good) {
		if (!hash_last(r, output->read_fd, written->length, output->path, &hash, &is_good, err))
			return false;
		is_good = is_good && hash == written->hash;
	}
	if (!is_good && r->setup.new_output)
		return true;
	if (output->length < written->length)
		return wm_err_set(err, WM_ERR_IO,
			"%s: has %" PRIu64 " bytes, and %" PRIu64
			" were written%s: put them back, or take it as it is with --new-output",
			output->path, output->length, written->length,
			output->length == 0 ? " (> empties a file, >> adds to it)" : "");
	if (!is_good)
		return wm_err_set(err, WM_ERR_IO,
			"%s: is not what was written, up to byte %" PRIu64
			": put that back, or take it as it is with --new-output",
			output->path, written->length);
	output->is_to_cut = output->length > written->length;
	output->length = written->length;
	return true;
}

/*
 * Says where an output was emptied or cut since the run that finished it: the shell does that for > where >> was meant. A new file under the
 * name is what moving an output away leaves, and is right.
 */
static void
tell_shorter(struct resume *r, const struct written *written)
{
	for (size_t i = 0; i < r->outputs_count; i++) {
		const struct output *output = &r->outputs[i];
		struct wm_buf line;

		if (output->read_fd == -1 || output->device != written->device || output->inode != written->inode ||
			output->length >= written->length)
			continue;
		wm_buf_init(&line, WM_BUF_UNBOUNDED);
		wm_buf_addf(&line, "%s: held %" PRIu64 " bytes when the run before ended, and ", output->path,
			written->length);
		if (output->length == 0)
			wm_buf_add_text(&line, "is now empty: was >> meant, which adds to a file?");
		else
			wm_buf_addf(&line, "now has %" PRIu64 ": results go behind them", output->length);
		note(r, &line);
		return;
	}
}

static bool
decide_outputs(struct resume *r, struct wm_err *err)
{
	bool is_prev = r->setup.mode == RESUME_PREV;

	for (size_t i = 0; i < r->outputs_count; i++)
		if (!look_at_output(r, &r->outputs[i], err))
			return false;
	for (size_t i = 0; i < r->written_count; i++)
		if ((is_prev || !r->written[i].is_finished) && !check_output(r, &r->written[i], err))
			return false;
	for (size_t i = 0; i < r->written_count && !is_prev && !r->setup.writes_anew; i++)
		if (r->written[i].is_finished)
			tell_shorter(r, &r->written[i]);
	for (size_t i = 0; i < r->outputs_count && is_prev && !r->setup.new_output; i++)
		if (r->outputs[i].read_fd != -1 && !r->outputs[i].is_taken && r->outputs[i].length > 0)
			return wm_err_set(err, WM_ERR_IO,
				"%s: was no output then, and has bytes: move it away, or take it as it is with "
				"--new-output",
				r->outputs[i].path);
	return true;
}

bool
resume_decide(struct resume *r, struct wm_err *err)
{
	return decide_outputs(r, err) && decide_inputs(r, err);
}

struct resume_start
resume_start(const struct resume *r, size_t input)
{
	const struct entry *entry = r->inputs[input].entry;
	struct resume_start start = { .action = r->inputs[input].action };

	if (start.action != RESUME_BEGIN && start.action != RESUME_TOO_OLD)
		start.position = (struct resume_position){ entry->offset, entry->lines, entry->is_at_end,
			entry->has_no_rows, wm_buf_span(&entry->tail), wm_buf_span(&entry->position),
			wm_buf_span(&entry->positions), wm_buf_span(&entry->layout), entry->read_bytes,
			entry->is_pipe ? entry->head_hash : 0 };
	return start;
}

bool
resume_is_pipe(const struct resume *r, size_t input)
{
	return r->inputs[input].is_pipe;
}

bool
resume_has_new_input(const struct resume *r)
{
	for (size_t i = 0; i < r->inputs_count; i++)
		if (r->inputs[i].action != RESUME_DONE && r->inputs[i].action != RESUME_TOO_OLD)
			return true;
	return false;
}

bool
resume_check_head(const struct resume *r, size_t input, struct wm_span head, struct wm_err *err)
{
	const struct entry *entry = r->inputs[input].entry;

	return wm_span_equal(head, wm_buf_span(&entry->head)) ||
		wm_err_set(err, WM_ERR_IO,
			"%s: does not begin as before: --resume replay needs the same input from its first byte",
			r->inputs[input].name);
}

bool
resume_feed(struct resume *r, size_t input, struct wm_span bytes)
{
	struct wm_buf *head = &r->inputs[input].entry->head;
	size_t room = RESUME_KNOWN_BYTES - head->len;

	assert(r->inputs[input].is_pipe);
	wm_buf_add(head, bytes.data, bytes.len < room ? bytes.len : room);
	return head->len < RESUME_KNOWN_BYTES;
}

bool
resume_set_input(struct resume *r, size_t input, int fd, const struct resume_position *position, struct wm_err *err)
{
	struct entry *entry = r->inputs[input].entry;
	const char *name = r->inputs[input].name;
	bool is_head_there, is_last_there;
	struct stat facts;

	if (entry->is_pipe) {
		entry->head_hash = position->read_hash;
		entry->read_bytes = position->read_bytes;
	} else {
		if (r->setup.calls->fstat(r->setup.calls->self, fd, &facts) == -1)
			return fail_errno(err, name, "look at");
		if (!hash_head(r, fd, position->offset, name, &entry->head_hash, &is_head_there, err) ||
			!hash_last(r, fd, position->offset, name, &entry->last_hash, &is_last_there, err))
			return false;
		if (!is_head_there || !is_last_there)
			return wm_err_set(err, WM_ERR_IO, "%s: became shorter while it was read", name);
		entry->modified_us = modified_us(&facts);
	}
	entry->offset = position->offset;
	entry->lines = position->lines;
	entry->is_at_end = position->is_at_end;
	entry->has_no_rows = position->has_no_rows;
	set_buf(&entry->tail, position->tail);
	set_buf(&entry->position, position->position);
	set_buf(&entry->positions, position->positions);
	set_buf(&entry->layout, position->layout);
	return true;
}

uint64_t
resume_output_length(const struct resume *r, size_t output)
{
	return r->outputs[output].length;
}

bool
resume_replace_output(struct resume *r, size_t output, int fd, struct wm_err *err)
{
	struct output *replaced = &r->outputs[output];

	replaced->fd = fd;
	return look_at_output(r, replaced, err) &&
		(replaced->read_fd == -1 || wm_checkpoint_sync_folder(r->setup.calls, replaced->path, err));
}

static int
by_age(const void *a, const void *b)
{
	const struct entry *one = *(const struct entry *const *)a, *other = *(const struct entry *const *)b;

	int order = (one->modified_us < other->modified_us) - (one->modified_us > other->modified_us);

	return order != 0 ? order : strcmp(one->path, other->path);
}

/*
 * Forgets files that are too old or too many, and those not begun that are no longer named. At the end of a run alone: until
 * then each of its inputs has to be known, however old it is.
 */
static void
forget(struct resume *r)
{
	struct entry **files = wm_reallocarray(NULL, r->entries_count + 1, sizeof(files[0]));
	size_t count = 0, files_max = r->setup.files_max, kept = 0;
	int64_t floor_us = age_floor_us(r);

	for (size_t i = 0; i < r->entries_count; i++)
		if (!r->entries[i]->is_pipe)
			files[count++] = r->entries[i];
	qsort(files, count, sizeof(files[0]), by_age);
	for (size_t i = 0; i < count; i++)
		files[i]->is_taken = i < files_max && files[i]->modified_us > floor_us &&
			(files[i]->offset > 0 || files[i]->is_operand);
	r->floor_us = later_us(r->floor_us, floor_us);
	/* Some that are as old as the first one without room may stay: those are known, so the floor does not hit them. */
	if (count > files_max)
		r->floor_us = later_us(r->floor_us, files[files_max]->modified_us);
	free(files);
	for (size_t i = 0; i < r->entries_count; i++) {
		if (r->entries[i]->is_pipe || r->entries[i]->is_taken)
			r->entries[kept++] = r->entries[i];
		else
			free_entry(r->entries[i]);
	}
	r->entries_count = kept;
}

/* Syncs an output and fixes how long it is. */
static bool
settle_output(struct resume *r, struct output *output, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	struct stat facts;

	if (calls->fsync(calls->self, output->fd) == -1)
		return fail_errno(err, output->path, "sync");
	/* It may have been created for this run. */
	if (!r->has_begun && !wm_checkpoint_sync_folder(calls, output->path, err))
		return false;
	if (output->is_to_cut)
		return true;
	if (calls->fstat(calls->self, output->fd, &facts) == -1)
		return fail_errno(err, output->path, "look at");
	output->length = (uint64_t)facts.st_size;
	return true;
}

static bool
encode_outputs(struct resume *r, bool is_finished, bool is_closed, struct wm_buf *out, struct wm_err *err)
{
	size_t files_count = 0;
	bool is_there;

	for (size_t i = 0; i < r->outputs_count; i++)
		files_count += r->outputs[i].read_fd != -1;
	wm_put_u8(out, is_closed);
	wm_put_varint(out, files_count);
	for (size_t i = 0; i < r->outputs_count; i++) {
		struct output *output = &r->outputs[i];

		if (output->read_fd == -1)
			continue;
		if (!settle_output(r, output, err))
			return false;
		struct sections_output written = { wm_span_of(output->path), wm_span_of(output->option), output->device,
			output->inode, output->length, 0, is_finished };
		if (!hash_last(r, output->read_fd, output->length, output->path, &written.hash, &is_there, err))
			return false;
		if (!is_there)
			return wm_err_set(err, WM_ERR_IO, "%s: became shorter while it was written", output->path);
		sections_put_output(&written, out);
	}
	return true;
}

static bool
put_section(struct resume *r, enum wm_checkpoint_part part, struct wm_buf *payload, struct wm_err *err)
{
	struct wm_checkpoint_section section = { sections_version(part), wm_buf_span(payload) };
	bool is_put = wm_checkpoint_put_section(r->writer, part, section, err);

	wm_buf_reset(payload);
	return is_put;
}

bool
resume_commit_begin(struct resume *r, const struct resume_commit *commit, struct wm_err *err)
{
	struct wm_buf outputs, payload;
	bool is_put = false;

	/* A run that ends as it begins still has outputs to cut back first. */
	assert(r->writer == NULL && (r->has_begun || !commit->is_last));
	if (commit->is_last)
		forget(r);
	wm_buf_init(&outputs, WM_BUF_UNBOUNDED);
	wm_buf_init(&payload, WM_BUF_UNBOUNDED);
	if (encode_outputs(
		    r, commit->is_last || commit->is_reopening, commit->is_last && commit->is_closed, &outputs, err))
		r->writer = wm_checkpoint_create(
			r->setup.calls, r->path, r->setup.tool, commit->now_us, ++r->generation, err);
	if (r->writer != NULL) {
		encode_options(r, commit->found, &payload);
		is_put = put_section(r, WM_CHECKPOINT_OPTS, &payload, err) &&
			wm_checkpoint_put_section(r->writer, WM_CHECKPOINT_WMRK, commit->watermarks, err);
	}
	if (is_put) {
		encode_inputs(r, &payload);
		is_put = put_section(r, WM_CHECKPOINT_INPT, &payload, err) &&
			put_section(r, WM_CHECKPOINT_OUTP, &outputs, err) &&
			wm_checkpoint_put_section(r->writer, WM_CHECKPOINT_CNTR, commit->ledger, err);
	}
	if (is_put)
		wm_checkpoint_begin_section(r->writer, WM_CHECKPOINT_STAT, commit->state_version);
	wm_buf_release(&outputs);
	wm_buf_release(&payload);
	return is_put;
}

bool
resume_commit_put(struct resume *r, struct wm_span bytes, struct wm_err *err)
{
	return wm_checkpoint_put(r->writer, bytes, err);
}

/* Copies what is to be cut from an output to the end of a file beside it. */
static bool
save_cut(const struct resume *r, const struct output *output, const char *path, int fd, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	char bytes[RESUME_KNOWN_BYTES];
	uint64_t at = output->length;
	size_t len;

	do {
		if (!wm_checkpoint_read(calls, output->read_fd, bytes, sizeof(bytes), at, &len, output->path, err) ||
			!wm_checkpoint_write(calls, fd, wm_span(bytes, len), path, err))
			return false;
		at += len;
	} while (len == sizeof(bytes));
	if (calls->fsync(calls->self, fd) == -1)
		return fail_errno(err, path, "sync");
	return wm_checkpoint_sync_folder(calls, path, err);
}

static bool
cut_output(const struct resume *r, struct output *output, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	char *path = wm_checkpoint_beside(output->path, ".uncommitted");
	bool is_saved = false;

	int fd = calls->open(calls->self, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		(void)fail_errno(err, path, "create");
	else
		is_saved = save_cut(r, output, path, fd, err);
	close_file(r, fd);
	free(path);
	if (!is_saved)
		return false;
	output->is_to_cut = false;
	return calls->ftruncate(calls->self, output->fd, (off_t)output->length) == 0 ||
		fail_errno(err, output->path, "cut back");
}

bool
resume_commit_end(struct resume *r, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = r->setup.calls;
	struct wm_checkpoint_writer *writer = r->writer;

	if (!wm_checkpoint_end_section(writer, err))
		return false;
	r->writer = NULL;
	/* Gone back to FILE.prev, it stays, and the FILE that was not wanted goes. */
	if (!wm_checkpoint_commit(writer, r->has_begun || r->setup.mode != RESUME_PREV, err))
		return false;
	if (r->has_begun)
		return true;
	r->has_begun = true;
	wm_checkpoint_release(&r->loaded);
	/* Only now: until here the run might end with the old FILE, and its outputs have to fit that. */
	for (size_t i = 0; i < r->outputs_count; i++) {
		struct output *output = &r->outputs[i];

		if (output->read_fd == -1)
			continue;
		if (output->is_to_cut && !cut_output(r, output, err))
			return false;
		if (calls->seek(calls->self, output->fd, (off_t)output->length) == -1)
			return fail_errno(err, output->path, "write at its end");
	}
	return true;
}
