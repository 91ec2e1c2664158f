/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commit logic on a disk in memory that can stop after any call, lose what was not synced, or fail.
 *
 * What a loss of power leaves is as bad as it may be: of each file the synced bytes and any choice of the writes since
 * then, also in part; and of each name, independently, any file that it led to since its folder was synced. (Real file systems
 * keep some order; the code must not need it.)
 */
#include "cmd/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/hash.h"
#include "tests/unit/tap.h"

#define FILES_MAX 400
#define NAMES_MAX 48
#define FDS_MAX 48
#define OPS_MAX 256
#define HISTORY_MAX 64
#define FIXTURES "tests/golden/checkpoint/v1/"

enum { NO_FILE = -1, FOLDER_FILE = FILES_MAX };

/* A write (or, without data, a new length) that is not synced yet. */
struct op {
	size_t offset, len;
	char *data;
};

struct file {
	struct wm_buf data;    /* as programs see it */
	struct wm_buf durable; /* as of the last sync */
	struct op ops[OPS_MAX];
	size_t ops_count;
	bool is_locked;
	bool is_pipe;
	int64_t modified_s;
};

/* A name in the one folder, "/d". */
struct name {
	char path[48];
	int file;
	bool is_link;             /* a symbolic one, to that file */
	int history[HISTORY_MAX]; /* what it was since the folder was synced, the oldest of which is durable */
	size_t history_count;
};

struct descriptor {
	bool is_open;
	int file;
	int flags;
	size_t at;
};

enum stop { STOP_NEVER, STOP_KILL, STOP_POWER, STOP_FAIL };

struct disk {
	struct file *files[FILES_MAX];
	int files_count;
	struct name names[NAMES_MAX];
	size_t names_count;
	struct descriptor fds[FDS_MAX];
	uint64_t random;
	int64_t now_s;
	/* the next accident */
	enum stop stop;
	uint64_t calls, stop_at;
	bool is_dead;
	struct wm_checkpoint_calls table;
};

static uint64_t
below(uint64_t *random, uint64_t limit)
{
	return tap_random(random) % limit;
}

static int
new_file(struct disk *disk)
{
	struct file *file = wm_calloc(1, sizeof(*file));

	wm_buf_init(&file->data, WM_BUF_UNBOUNDED);
	wm_buf_init(&file->durable, WM_BUF_UNBOUNDED);
	file->modified_s = disk->now_s;
	if (disk->files_count == FILES_MAX)
		abort();
	disk->files[disk->files_count] = file;
	return disk->files_count++;
}

static struct name *
name_of(struct disk *disk, const char *path)
{
	for (size_t i = 0; i < disk->names_count; i++)
		if (strcmp(disk->names[i].path, path) == 0)
			return &disk->names[i];
	if (disk->names_count == NAMES_MAX)
		abort();
	struct name *name = &disk->names[disk->names_count++];
	*name = (struct name){ .file = NO_FILE };
	snprintf(name->path, sizeof(name->path), "%s", path);
	return name;
}

static void
set_name(struct disk *disk, const char *path, int file)
{
	struct name *name = name_of(disk, path);

	if (name->history_count == HISTORY_MAX)
		abort();
	name->history[name->history_count++] = name->file;
	name->file = file;
}

static void
sync_names(struct disk *disk)
{
	for (size_t i = 0; i < disk->names_count; i++)
		disk->names[i].history_count = 0;
}

static void
apply(struct wm_buf *data, const struct op *op, size_t len)
{
	if (op->data == NULL) {
		while (data->len < op->len)
			wm_buf_add_byte(data, '\0');
		data->len = op->len;
		return;
	}
	while (data->len < op->offset)
		wm_buf_add_byte(data, '\0');
	for (size_t i = 0; i < len; i++)
		if (op->offset + i < data->len)
			data->data[op->offset + i] = op->data[i];
		else
			wm_buf_add_byte(data, op->data[i]);
}

static void
drop_ops(struct file *file)
{
	for (size_t i = 0; i < file->ops_count; i++)
		free(file->ops[i].data);
	file->ops_count = 0;
}

static void
copy(struct wm_buf *to, const struct wm_buf *from)
{
	wm_buf_reset(to);
	wm_buf_add(to, from->data, from->len);
}

static void
sync_file(struct file *file)
{
	copy(&file->durable, &file->data);
	drop_ops(file);
}

static void
change(struct disk *disk, int number, size_t offset, struct wm_span bytes, bool is_cut)
{
	struct file *file = disk->files[number];

	/* An old system writes back by itself now and then. */
	if (file->ops_count == OPS_MAX)
		sync_file(file);
	struct op *op = &file->ops[file->ops_count++];
	*op = (struct op){ offset, bytes.len, is_cut ? NULL : wm_memdup(bytes.data, bytes.len) };
	apply(&file->data, op, bytes.len);
	file->modified_s = disk->now_s;
}

/* The process is gone, or the machine was without power and is back. */
static void
recover(struct disk *disk)
{
	bool has_lost = disk->stop == STOP_POWER && disk->is_dead;
	uint64_t kept = below(&disk->random, 5);

	for (int i = 0; i < disk->files_count; i++) {
		struct file *file = disk->files[i];

		file->is_locked = false;
		if (!has_lost)
			continue;
		copy(&file->data, &file->durable);
		for (size_t j = 0; j < file->ops_count; j++) {
			uint64_t how = kept == 0 ? 0 : kept == 1 ? 9 : below(&disk->random, 10);

			if (how < 5)
				apply(&file->data, &file->ops[j], file->ops[j].len);
			else if (how < 8 && file->ops[j].data != NULL)
				apply(&file->data, &file->ops[j], below(&disk->random, file->ops[j].len + 1));
		}
		sync_file(file);
	}
	for (size_t i = 0; i < disk->names_count && has_lost; i++) {
		struct name *name = &disk->names[i];
		uint64_t pick = kept == 0 ? name->history_count
			: kept == 1       ? 0
					  : below(&disk->random, name->history_count + 1);

		if (pick < name->history_count)
			name->file = name->history[pick];
		name->history_count = 0;
	}
	memset(disk->fds, 0, sizeof(disk->fds));
	disk->is_dead = false;
	disk->stop = STOP_NEVER;
}

/* Before a call: false if it does nothing. *is_last: the process ends with it. */
static bool
begin_call(struct disk *disk, bool *is_last)
{
	*is_last = false;
	if (disk->is_dead) {
		errno = EIO;
		return false;
	}
	disk->calls++;
	if (disk->stop == STOP_NEVER || disk->calls != disk->stop_at)
		return true;
	if (disk->stop == STOP_FAIL) {
		errno = ENOSPC;
		return false;
	}
	disk->is_dead = true;
	*is_last = true;
	return true;
}

/* What comes back from a call that the process did not live to see. */
#define RETURN(value)                                                                                                  \
	do {                                                                                                           \
		if (is_last)                                                                                           \
			errno = EIO;                                                                                   \
		return is_last ? -1 : (value);                                                                         \
	} while (0)

static int
new_descriptor(struct disk *disk, int file, int flags)
{
	for (int fd = 3; fd < FDS_MAX; fd++)
		if (!disk->fds[fd].is_open) {
			disk->fds[fd] = (struct descriptor){ true, file, flags, 0 };
			return fd;
		}
	abort();
}

static int
disk_open(void *self, const char *path, int flags, mode_t mode)
{
	struct disk *disk = self;
	bool is_last;

	(void)mode;
	if (!begin_call(disk, &is_last))
		return -1;
	if (strcmp(path, "/d") == 0) {
		int fd = new_descriptor(disk, FOLDER_FILE, flags);

		RETURN(fd);
	}
	struct name *name = name_of(disk, path);
	if (name->file != NO_FILE && (flags & O_EXCL) != 0) {
		errno = EEXIST;
		return -1;
	}
	if (name->is_link && (flags & O_NOFOLLOW) != 0) {
		errno = ELOOP;
		return -1;
	}
	if (name->file == NO_FILE) {
		if ((flags & O_CREAT) == 0) {
			errno = ENOENT;
			return -1;
		}
		set_name(disk, path, new_file(disk));
	}
	int fd = new_descriptor(disk, name->file, flags);
	RETURN(fd);
}

static int
disk_close(void *self, int fd)
{
	struct disk *disk = self;

	if (!disk->fds[fd].is_open)
		abort();
	/* Enough of an OFD lock: one descriptor of the lock's file has it. */
	if (disk->fds[fd].file != FOLDER_FILE && disk->fds[fd].at == SIZE_MAX)
		disk->files[disk->fds[fd].file]->is_locked = false;
	disk->fds[fd].is_open = false;
	return 0;
}

static ssize_t
disk_pread(void *self, int fd, void *data, size_t len, off_t offset)
{
	struct disk *disk = self;
	const struct wm_buf *from = &disk->files[disk->fds[fd].file]->data;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	if ((size_t)offset >= from->len)
		RETURN(0);
	size_t left = from->len - (size_t)offset;
	if (len > left)
		len = left;
	/* Short reads are reads. */
	if (len > 1 && below(&disk->random, 8) == 0)
		len = 1 + below(&disk->random, len);
	memcpy(data, from->data + offset, len);
	RETURN((ssize_t)len);
}

static ssize_t
disk_write(void *self, int fd, const void *data, size_t len)
{
	struct disk *disk = self;
	struct descriptor *descriptor = &disk->fds[fd];
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	if (len > 1 && (is_last || below(&disk->random, 8) == 0))
		len = 1 + below(&disk->random, len);
	size_t at = descriptor->at == SIZE_MAX ? 0 : descriptor->at;
	if ((descriptor->flags & O_APPEND) != 0)
		at = disk->files[descriptor->file]->data.len;
	change(disk, descriptor->file, at, wm_span(data, len), false);
	if (descriptor->at != SIZE_MAX)
		descriptor->at = at + len;
	RETURN((ssize_t)len);
}

static ssize_t
disk_pwrite(void *self, int fd, const void *data, size_t len, off_t offset)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	change(disk, disk->fds[fd].file, (size_t)offset, wm_span(data, len), false);
	RETURN((ssize_t)len);
}

static off_t
disk_seek(void *self, int fd, off_t offset)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	disk->fds[fd].at = (size_t)offset;
	RETURN(offset);
}

static int
disk_fsync(void *self, int fd)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	if (disk->fds[fd].file == FOLDER_FILE)
		sync_names(disk);
	else
		sync_file(disk->files[disk->fds[fd].file]);
	RETURN(0);
}

static int
disk_ftruncate(void *self, int fd, off_t len)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	change(disk, disk->fds[fd].file, 0, wm_span(NULL, (size_t)len), true);
	RETURN(0);
}

static void
describe(const struct disk *disk, int number, struct stat *found)
{
	const struct file *file = disk->files[number];

	*found = (struct stat){ .st_mode = file->is_pipe ? S_IFIFO : S_IFREG,
		.st_dev = 1,
		.st_ino = (ino_t)number + 1,
		.st_size = (off_t)file->data.len,
		.st_mtim.tv_sec = file->modified_s };
}

static int
disk_stat(void *self, const char *path, struct stat *found)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	const struct name *name = name_of(disk, path);
	if (name->file == NO_FILE) {
		errno = ENOENT;
		return -1;
	}
	describe(disk, name->file, found);
	RETURN(0);
}

static int
disk_fstat(void *self, int fd, struct stat *found)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	describe(disk, disk->fds[fd].file, found);
	RETURN(0);
}

static int
disk_link(void *self, const char *from, const char *to)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	int file = name_of(disk, from)->file;
	if (file == NO_FILE || name_of(disk, to)->file != NO_FILE) {
		errno = file == NO_FILE ? ENOENT : EEXIST;
		return -1;
	}
	set_name(disk, to, file);
	RETURN(0);
}

static int
disk_rename(void *self, const char *from, const char *to)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	int file = name_of(disk, from)->file;
	if (file == NO_FILE) {
		errno = ENOENT;
		return -1;
	}
	/* Two names of one file: POSIX has nothing happen. */
	if (name_of(disk, to)->file != file) {
		set_name(disk, to, file);
		set_name(disk, from, NO_FILE);
	}
	RETURN(0);
}

static int
disk_unlink(void *self, const char *path)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	if (name_of(disk, path)->file == NO_FILE) {
		errno = ENOENT;
		return -1;
	}
	set_name(disk, path, NO_FILE);
	RETURN(0);
}

static int
disk_lock(void *self, int fd)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	struct file *file = disk->files[disk->fds[fd].file];
	if (file->is_locked) {
		errno = EAGAIN;
		return -1;
	}
	file->is_locked = true;
	disk->fds[fd].at = SIZE_MAX;
	RETURN(0);
}

static char *
disk_resolve(void *self, const char *path)
{
	struct disk *disk = self;

	if (strcmp(path, "/d/") == 0)
		return wm_memdup("/d", 2);
	if (name_of(disk, path)->file != NO_FILE)
		return wm_memdup(path, strlen(path));
	errno = ENOENT;
	return NULL;
}

static char *
disk_path_of(void *self, int fd)
{
	struct disk *disk = self;

	for (size_t i = 0; i < disk->names_count; i++)
		if (disk->names[i].file == disk->fds[fd].file)
			return wm_memdup(disk->names[i].path, strlen(disk->names[i].path));
	return NULL;
}

static int
disk_reopen(void *self, int fd)
{
	struct disk *disk = self;
	bool is_last;

	if (!begin_call(disk, &is_last))
		return -1;
	int second = new_descriptor(disk, disk->fds[fd].file, O_RDONLY);
	RETURN(second);
}

static struct disk *
disk_new(uint64_t seed)
{
	struct disk *disk = wm_calloc(1, sizeof(*disk));

	disk->random = seed;
	disk->now_s = 1000000;
	disk->table = (struct wm_checkpoint_calls){
		.self = disk,
		.open = disk_open,
		.close = disk_close,
		.pread = disk_pread,
		.write = disk_write,
		.pwrite = disk_pwrite,
		.seek = disk_seek,
		.fsync = disk_fsync,
		.ftruncate = disk_ftruncate,
		.stat = disk_stat,
		.fstat = disk_fstat,
		.link = disk_link,
		.rename = disk_rename,
		.unlink = disk_unlink,
		.lock = disk_lock,
		.resolve = disk_resolve,
		.path_of = disk_path_of,
		.reopen = disk_reopen,
	};
	return disk;
}

static void
disk_free(struct disk *disk)
{
	for (int i = 0; i < disk->files_count; i++) {
		drop_ops(disk->files[i]);
		wm_buf_release(&disk->files[i]->data);
		wm_buf_release(&disk->files[i]->durable);
		free(disk->files[i]);
	}
	free(disk);
}

/* What other programs do to the disk; it is synced. */
static struct wm_buf *
contents(struct disk *disk, const char *path)
{
	int file = name_of(disk, path)->file;

	return file == NO_FILE ? NULL : &disk->files[file]->data;
}

static void
append(struct disk *disk, const char *path, struct wm_span text)
{
	if (name_of(disk, path)->file == NO_FILE)
		name_of(disk, path)->file = new_file(disk);
	struct file *file = disk->files[name_of(disk, path)->file];
	wm_buf_add(&file->data, text.data, text.len);
	sync_file(file);
	file->modified_s = disk->now_s;
}

static void
append_text(struct disk *disk, const char *path, const char *text)
{
	append(disk, path, wm_span_of(text));
}

static void
set_length(struct disk *disk, const char *path, size_t len)
{
	struct file *file = disk->files[name_of(disk, path)->file];

	file->data.len = len;
	sync_file(file);
}

static void
move(struct disk *disk, const char *from, const char *to)
{
	name_of(disk, to)->file = name_of(disk, from)->file;
	name_of(disk, from)->file = NO_FILE;
	sync_names(disk);
}

static bool
has_leaked(const struct disk *disk)
{
	for (int fd = 0; fd < FDS_MAX; fd++)
		if (disk->fds[fd].is_open)
			return true;
	return false;
}

/* A run of a tool that numbers the lines of its inputs; its state is the number. */
struct run {
	const char *const *inputs; /* paths */
	size_t inputs_count;
	const char *out;
	enum resume_mode mode;
	bool new_output;
	int64_t file_age_max_us;
	size_t files_max;
	const struct resume_option *options;
	size_t options_count;
	size_t commit_chance; /* of so many lines one is followed by a commit; 0: by none */
	/* what came of it */
	char notes[512];
	char actions[16]; /* enum resume_action of each input, as digits */
	struct wm_err err;
};

struct toy {
	struct disk *disk;
	struct run *run;
	struct resume *r;
	uint64_t count;
	int64_t now_us;
	int out_fd;
	struct wm_buf out;
	struct wm_err *err;
};

static bool
toy_flush(struct toy *toy)
{
	bool is_put = wm_checkpoint_write(&toy->disk->table, toy->out_fd, wm_buf_span(&toy->out), "out", toy->err);

	wm_buf_reset(&toy->out);
	return is_put;
}

static bool
toy_commit(struct toy *toy, bool is_last)
{
	struct resume_commit commit = { .now_us = ++toy->now_us,
		.is_last = is_last,
		.found = wm_span_of("family"),
		.watermarks = { 1, wm_span_of("marks") },
		.ledger = { 1, wm_span_of("ledger") },
		.state_version = 1 };
	struct wm_buf state;

	if (!toy_flush(toy) || !resume_commit_begin(toy->r, &commit, toy->err))
		return false;
	wm_buf_init(&state, WM_BUF_UNBOUNDED);
	wm_put_u64(&state, toy->count);
	bool is_put = resume_commit_put(toy->r, wm_span(state.data, 3), toy->err) &&
		resume_commit_put(toy->r, wm_span(state.data + 3, 5), toy->err);
	wm_buf_release(&state);
	return is_put && resume_commit_end(toy->r, toy->err);
}

static bool
toy_decode(struct toy *toy)
{
	struct wm_get in;

	if (resume_is_fresh(toy->r))
		return true;
	wm_checkpoint_open_state(resume_loaded(toy->r), &in);
	toy->count = wm_get_u64(&in);
	return wm_checkpoint_close_state(resume_loaded(toy->r), &in, toy->err) &&
		wm_span_is(resume_loaded(toy->r)->sections[WM_CHECKPOINT_CNTR].payload, "ledger") &&
		wm_span_is(resume_found(toy->r), "family");
}

static bool
toy_read_all(struct toy *toy, int fd, uint64_t offset, struct wm_buf *text)
{
	char bytes[512];
	size_t len;

	do {
		if (!wm_checkpoint_read(&toy->disk->table, fd, bytes, sizeof(bytes), offset, &len, "in", toy->err))
			return false;
		wm_buf_add(text, bytes, len);
		offset += len;
	} while (len == sizeof(bytes));
	return true;
}

/* The lines of an open input behind a position; a last one without line end stays for a later run. */
static bool
toy_lines(struct toy *toy, size_t input, int fd, struct wm_span text)
{
	struct resume_position at = resume_start(toy->r, input).position;
	const char *end;

	at.is_at_end = false;
	while ((end = text.len == 0 ? NULL : memchr(text.data, '\n', text.len)) != NULL) {
		size_t len = (size_t)(end - text.data) + 1;

		wm_buf_addf(&toy->out, "%llu:", (unsigned long long)++toy->count);
		wm_buf_add(&toy->out, text.data, len);
		text = wm_span(text.data + len, text.len - len);
		at.offset += len;
		at.lines++;
		uint64_t chance = toy->run->commit_chance;
		if (below(&toy->disk->random, 4) == 0 && !toy_flush(toy))
			return false;
		if (chance > 0 && below(&toy->disk->random, chance) == 0 &&
			(!resume_set_input(toy->r, input, fd, &at, toy->err) || !toy_commit(toy, false)))
			return false;
	}
	at.is_at_end = end == NULL;
	at.layout = wm_span_of("layout");
	return resume_set_input(toy->r, input, fd, &at, toy->err);
}

static bool
toy_input(struct toy *toy, size_t input)
{
	struct resume_start start = resume_start(toy->r, input);
	struct wm_buf text;

	if (start.action == RESUME_DONE || start.action == RESUME_TOO_OLD)
		return true;
	int fd = toy->disk->table.open(toy->disk, toy->run->inputs[input], O_RDONLY, 0);
	if (fd == -1)
		return wm_err_set(toy->err, WM_ERR_IO, "in");
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	bool is_read =
		toy_read_all(toy, fd, start.position.offset, &text) && toy_lines(toy, input, fd, wm_buf_span(&text));
	wm_buf_release(&text);
	toy->disk->table.close(toy->disk, fd);
	return is_read;
}

static void
toy_tell(struct toy *toy)
{
	struct run *run = toy->run;
	size_t len = 0;
	const char *line;

	for (size_t i = 0; i < run->inputs_count && i + 1 < sizeof(run->actions); i++)
		run->actions[i] = (char)('0' + resume_start(toy->r, i).action);
	for (size_t i = 0; (line = resume_note(toy->r, i)) != NULL && len < sizeof(run->notes); i++)
		len += (size_t)snprintf(run->notes + len, sizeof(run->notes) - len, "%s\n", line);
}

/* The run proper; true if it ended well. */
static bool
toy_run_open(struct toy *toy)
{
	struct run *run = toy->run;

	for (size_t i = 0; i < run->inputs_count; i++)
		resume_add_input(toy->r, run->inputs[i], -1);
	size_t output = resume_add_output(toy->r, "--out", toy->out_fd);
	if (!resume_decide(toy->r, toy->err))
		return false;
	toy_tell(toy);
	if (!toy_decode(toy) || !toy_commit(toy, false))
		return false;
	if (resume_output_length(toy->r, output) == 0)
		wm_buf_add_text(&toy->out, "number:line\n");
	for (size_t i = 0; i < run->inputs_count; i++)
		if (!toy_input(toy, i))
			return false;
	return toy_commit(toy, true);
}

static bool
toy_run(struct disk *disk, struct run *run)
{
	struct toy toy = { .disk = disk, .run = run, .now_us = disk->now_s * 1000000, .out_fd = -1, .err = &run->err };
	struct resume_setup setup = { .calls = &disk->table,
		.tool = "toy",
		.path = "/d/st",
		.mode = run->mode,
		.new_output = run->new_output,
		.file_age_max_us = run->file_age_max_us,
		.state_bytes_max = UINT64_MAX,
		.files_max = run->files_max,
		.options = run->options,
		.options_count = run->options_count };
	bool is_done = false;

	disk->now_s++;
	run->notes[0] = '\0';
	memset(run->actions, 0, sizeof(run->actions));
	run->err = (struct wm_err){ 0 };
	wm_buf_init(&toy.out, WM_BUF_UNBOUNDED);
	toy.r = resume_open(&setup, &run->err);
	if (toy.r != NULL)
		toy.out_fd = disk->table.open(disk, run->out, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (toy.r != NULL && toy.out_fd == -1)
		(void)wm_err_set(&run->err, WM_ERR_IO, "out");
	if (toy.out_fd != -1)
		is_done = toy_run_open(&toy);
	resume_close(toy.r);
	if (toy.out_fd != -1 && disk->fds[toy.out_fd].is_open)
		disk->table.close(disk, toy.out_fd);
	wm_buf_release(&toy.out);
	return is_done;
}

/* What an undisturbed run adds: the lines of each file behind where it was left. */
struct model {
	struct wm_buf out;
	uint64_t count;
	size_t offsets[16]; /* by input, whatever it is called */
};

static void
model_run(struct model *model, struct disk *disk, const char *const *inputs, size_t count)
{
	if (model->out.len == 0)
		wm_buf_add_text(&model->out, "number:line\n");
	for (size_t i = 0; i < count; i++) {
		const struct wm_buf *data = contents(disk, inputs[i]);
		size_t *offset = &model->offsets[i];
		const char *end;

		while (*offset < data->len && (end = memchr(data->data + *offset, '\n', data->len - *offset)) != NULL) {
			size_t len = (size_t)(end - data->data) + 1 - *offset;

			wm_buf_addf(&model->out, "%llu:", (unsigned long long)++model->count);
			wm_buf_add(&model->out, data->data + *offset, len);
			*offset += len;
		}
	}
}

static void
grow(struct disk *disk, const char *path)
{
	static uint64_t serial;
	struct wm_buf text;
	uint64_t lines = below(&disk->random, 6);

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (uint64_t i = 0; i < lines; i++) {
		wm_buf_addf(&text, "line %llu of %s", (unsigned long long)serial++, path);
		/* Past the bytes by which a file is known, now and then. */
		for (uint64_t j = below(&disk->random, 12) == 0 ? 2500 : 0; j > 0; j--)
			wm_buf_add_byte(&text, 'x');
		wm_buf_add_byte(&text, '\n');
	}
	if (below(&disk->random, 3) == 0)
		wm_buf_add_text(&text, "half a ");
	append(disk, path, wm_buf_span(&text));
	wm_buf_release(&text);
}

static bool
is_expected(struct disk *disk, const char *path, const struct model *model)
{
	const struct wm_buf *out = contents(disk, path);

	return out != NULL && wm_span_equal(wm_buf_span(out), wm_buf_span(&model->out));
}

struct tally {
	uint64_t runs, kills, losses, failures, damages;
};

/* Flips a byte of FILE: it has to be refused with outputs untouched, and FILE.prev to lead on. */
static bool
damage(struct disk *disk, struct run *run, struct tally *tally)
{
	struct wm_buf *st = contents(disk, "/d/st");
	const struct wm_buf *out = contents(disk, run->out);
	struct wm_buf before;

	/* Amid a commit they are two names of one file for a moment. */
	if (st == NULL || contents(disk, "/d/st.prev") == NULL || contents(disk, "/d/st.prev") == st)
		return true;
	st->data[below(&disk->random, st->len)] ^= 0x10;
	sync_file(disk->files[name_of(disk, "/d/st")->file]);
	wm_buf_init(&before, WM_BUF_UNBOUNDED);
	if (out != NULL)
		copy(&before, out);
	bool is_refused = !toy_run(disk, run) && strstr(run->err.message, "--resume prev") != NULL;
	out = contents(disk, run->out);
	is_refused = is_refused && (out == NULL || wm_span_equal(wm_buf_span(out), wm_buf_span(&before)));
	wm_buf_release(&before);
	tally->damages++;
	run->mode = RESUME_PREV;
	return is_refused;
}

/* Runs until one ends well, through accidents; false if one that has none fails. */
static bool
run_to_end(struct disk *disk, struct run *run, bool may_grow, bool may_damage, struct tally *tally)
{
	for (int attempts = 0;; attempts++) {
		disk->stop = attempts < 5 && below(&disk->random, 10) < 7
			? (enum stop)(STOP_KILL + below(&disk->random, 3))
			: STOP_NEVER;
		disk->calls = 0;
		disk->stop_at = 1 + below(&disk->random, below(&disk->random, 2) == 0 ? 60 : 250);
		enum stop stop = disk->stop;
		bool is_done = toy_run(disk, run);
		bool had_accident = stop != STOP_NEVER && disk->calls >= disk->stop_at;

		tally->runs++;
		tally->kills += had_accident && stop == STOP_KILL;
		tally->losses += had_accident && stop == STOP_POWER;
		tally->failures += had_accident && stop == STOP_FAIL;
		if (!disk->is_dead && has_leaked(disk))
			return wm_err_set(&run->err, WM_ERR_IO, "a descriptor is left");
		recover(disk);
		if (is_done) {
			run->mode = RESUME_AUTO;
			return true;
		}
		if (!had_accident)
			return false;
		if (may_damage && run->mode == RESUME_AUTO && below(&disk->random, 4) == 0 && !damage(disk, run, tally))
			return false;
		if (may_grow && below(&disk->random, 3) == 0)
			grow(disk, run->inputs[0]);
	}
}

/* Between two runs that ended well. */
static void
happen(struct disk *disk, struct run *run, struct model *model, char (*paths)[16], bool *is_well)
{
	switch (below(&disk->random, 4)) {
	case 0: /* the output goes elsewhere */
		move(disk, run->out, "/d/away");
		*is_well = *is_well && is_expected(disk, "/d/away", model);
		wm_buf_reset(&model->out);
		break;
	case 1: /* another program writes to it */
		append_text(disk, run->out, "a remark\n");
		wm_buf_add_text(&model->out, "a remark\n");
		break;
	case 2: /* an input is called otherwise */
		if (strlen(paths[0]) + 2 < sizeof(paths[0]) && contents(disk, paths[0])->len > 0) {
			char old[16];

			memcpy(old, paths[0], sizeof(old));
			memcpy(paths[0] + strlen(old), "'", 2);
			move(disk, old, paths[0]);
		}
		break;
	default:
		break;
	}
}

static bool
one_history(uint64_t seed, struct tally *tally, char *what, size_t what_size)
{
	struct disk *disk = disk_new(seed);
	uint64_t kind = below(&disk->random, 3); /* 0: one log that grows at any time; 1: events; 2: damage */
	char paths[3][16] = { "/d/a", "/d/b", "/d/c" };
	const char *inputs[] = { paths[0], paths[1], paths[2] };
	struct run run = { .inputs = inputs, .out = "/d/out", .commit_chance = 1 + below(&disk->random, 6) };
	struct model model = { 0 };
	bool is_well = true;

	wm_buf_init(&model.out, WM_BUF_UNBOUNDED);
	run.inputs_count = kind == 0 ? 1 : 1 + below(&disk->random, 3);
	for (size_t i = 0; i < 3; i++)
		append_text(disk, paths[i], "");
	for (uint64_t round = 2 + below(&disk->random, 3); round > 0 && is_well; round--) {
		for (size_t i = 0; i < run.inputs_count; i++)
			grow(disk, paths[i]);
		/* With several inputs, going back beyond the end of a run would change their order. */
		is_well = run_to_end(disk, &run, kind == 0, kind == 2 && run.inputs_count == 1, tally);
		if (!is_well) {
			snprintf(what, what_size, "a run fails: %s", run.err.message);
			break;
		}
		model_run(&model, disk, inputs, run.inputs_count);
		is_well = is_expected(disk, run.out, &model);
		/* Power may be lost after the end, too. */
		if (is_well && below(&disk->random, 4) == 0) {
			disk->stop = STOP_POWER;
			disk->is_dead = true;
			recover(disk);
			is_well = is_expected(disk, run.out, &model);
		}
		if (is_well && kind == 2 && below(&disk->random, 3) == 0) {
			is_well = damage(disk, &run, tally) && run_to_end(disk, &run, false, false, tally) &&
				is_expected(disk, run.out, &model);
		}
		if (is_well && kind == 1)
			happen(disk, &run, &model, paths, &is_well);
		if (!is_well)
			snprintf(what, what_size, "the output differs, or a run fails: %s", run.err.message);
	}
	wm_buf_release(&model.out);
	disk_free(disk);
	return is_well;
}

static void
test_histories(void)
{
	struct tally tally = { 0 };
	char what[1200] = "";
	uint64_t seed = 0;
	bool is_well = true;

	while (is_well && seed < 5000)
		is_well = one_history(++seed, &tally, what, sizeof(what));
	tap_ok(is_well, "5000 histories end in the bytes of the undisturbed run");
	if (!is_well)
		printf("# history %llu: %s\n", (unsigned long long)seed, what);
	printf("# %llu runs, %llu kills, %llu losses of power, %llu failures, %llu damaged files\n",
		(unsigned long long)tally.runs, (unsigned long long)tally.kills, (unsigned long long)tally.losses,
		(unsigned long long)tally.failures, (unsigned long long)tally.damages);
	tap_ok(tally.kills > 2000 && tally.losses > 2000 && tally.failures > 2000 && tally.damages > 500,
		"with accidents of all kinds");
}

/* One run after another was killed amid, with an accident at each of its calls in turn. */
static void
test_each_call(void)
{
	static const char *const inputs[] = { "/d/a", "/d/b" };
	uint64_t points = 0;
	bool is_well = true;

	for (int stop = STOP_KILL; stop <= STOP_FAIL; stop++)
		for (uint64_t at = 1, hit = 1; hit && is_well; at++)
			for (uint64_t seed = 0; seed < (stop == STOP_POWER ? 6 : 1) && is_well; seed++) {
				struct disk *disk = disk_new(seed * 1000 + at);
				struct run run = { .inputs = inputs, .inputs_count = 2, .out = "/d/out" };
				struct model model = { 0 };

				wm_buf_init(&model.out, WM_BUF_UNBOUNDED);
				append_text(disk, "/d/a", "1\n2\n3\n");
				append_text(disk, "/d/b", "4\n5\n");
				run.commit_chance = 2;
				disk->stop = STOP_KILL;
				disk->stop_at = 60;
				(void)toy_run(disk, &run);
				recover(disk);
				disk->calls = 0;
				disk->stop = (enum stop)stop;
				disk->stop_at = at;
				(void)toy_run(disk, &run);
				hit = disk->calls >= at;
				recover(disk);
				points += hit;
				is_well = toy_run(disk, &run);
				model_run(&model, disk, inputs, 2);
				is_well = is_well && is_expected(disk, "/d/out", &model);
				if (!is_well)
					printf("# stop %d at call %llu: %s\n", stop, (unsigned long long)at,
						run.err.message);
				wm_buf_release(&model.out);
				disk_free(disk);
			}
	tap_ok(is_well && points > 300, "an accident at each call of a run (%llu)", (unsigned long long)points);
}

static void
expect_run(struct disk *disk, struct run *run, const char *actions, const char *notes, const char *name)
{
	bool is_done = toy_run(disk, run);

	if (!tap_ok(is_done && strcmp(run->actions, actions) == 0 && strstr(run->notes, notes) != NULL &&
			    (notes[0] != '\0' || run->notes[0] == '\0'),
		    "%s", name))
		printf("#   actions %s, want %s; notes '%s', want '%s'; %s\n", run->actions, actions, run->notes, notes,
			run->err.message);
}

static void
expect_refusal(struct disk *disk, struct run *run, const char *message, const char *name)
{
	if (!tap_ok(!toy_run(disk, run) && run->err.code == WM_ERR_IO && strstr(run->err.message, message) != NULL,
		    "%s", name))
		printf("#   got '%s', want '%s'\n", run->err.message, message);
}

/* enum resume_action as the digit of expect_run(). */
#define BEGIN "0"
#define SEEK "1"
#define DONE "2"
#define TOO_OLD "3"

static void
test_inputs(void)
{
	const char *inputs[4] = { "/d/log", "/d/log.1" };
	struct disk *disk = disk_new(1);
	struct run run = { .inputs = inputs, .inputs_count = 1, .out = "/d/out" };

	append_text(disk, "/d/log", "one\ntwo\n");
	expect_run(disk, &run, BEGIN, "", "a new file begins");
	expect_run(disk, &run, DONE, "", "once read, it is done");
	append_text(disk, "/d/log", "three\nfo");
	expect_run(disk, &run, SEEK, "", "when it has grown, it goes on");
	expect_run(disk, &run, SEEK, "", "and stays open where its last line has no end");
	append_text(disk, "/d/log", "ur\n");
	expect_run(disk, &run, SEEK, "", "which it gets");

	/* mv and a new one. */
	move(disk, "/d/log", "/d/log.1");
	append_text(disk, "/d/log.1", "five\n");
	append_text(disk, "/d/log", "six\n");
	run.inputs_count = 2;
	expect_run(disk, &run, BEGIN SEEK, "", "rotation: the old one by its inode, the new one begins");
	/* copytruncate. */
	append(disk, "/d/log.2", wm_buf_span(contents(disk, "/d/log")));
	append_text(disk, "/d/log.2", "seven\n");
	set_length(disk, "/d/log", 0);
	append_text(disk, "/d/log", "eight\n");
	inputs[1] = "/d/log.2";
	expect_run(disk, &run, BEGIN SEEK, "/d/log.2: is taken for what was /d/log, and goes on at byte 4",
		"copytruncate: the copy by its content, and that is said");
	/* The old part is elsewhere. */
	move(disk, "/d/log", "/d/log.3");
	append_text(disk, "/d/log", "nine\n");
	run.inputs_count = 1;
	expect_run(disk, &run, BEGIN, "/d/log: is another file now; what was under this name, processed up to byte 6",
		"an old part that is not named is said");
	expect_run(disk, &run, DONE, "", "once");
	/* A copy beside its original is a file of its own. */
	append(disk, "/d/copy", wm_buf_span(contents(disk, "/d/log")));
	inputs[1] = "/d/copy";
	run.inputs_count = 2;
	expect_run(disk, &run, DONE BEGIN, "", "a copy begins while its original is there");
	/* Absent for a run. */
	run.inputs_count = 1;
	expect_run(disk, &run, DONE, "", "one is not named");
	run.inputs_count = 2;
	expect_run(disk, &run, DONE DONE, "", "and is still known");
	/* Same name and other content; and named twice. */
	set_length(disk, "/d/copy", 0);
	append_text(disk, "/d/copy", "other, and longer\n");
	inputs[0] = inputs[1];
	expect_run(disk, &run, BEGIN BEGIN, "another file now",
		"another file under a known name begins; twice, if it is named twice");
	expect_run(disk, &run, DONE DONE, "", "and twice it is done");
	tap_span(wm_buf_span(contents(disk, "/d/out")),
		"number:line\n1:one\n2:two\n3:three\n4:four\n5:six\n6:five\n7:eight\n8:seven\n9:nine\n10:nine\n"
		"11:other, and longer\n12:other, and longer\n",
		"each line was read once");
	disk_free(disk);
}

/* A part of which little was read takes no other's place: what reaches furthest is found first. */
static void
test_rotation(void)
{
	const char *inputs[] = { "/d/log.1", "/d/log" };
	struct disk *disk = disk_new(3);
	struct run run = { .inputs = inputs, .inputs_count = 2, .out = "/d/out" };

	append_text(disk, "/d/log.1", "");
	append_text(disk, "/d/log", "1\n2\n");
	expect_run(disk, &run, BEGIN BEGIN, "", "an empty part, and a log");
	move(disk, "/d/log", "/d/log.1");
	append_text(disk, "/d/log", "begin\n");
	expect_run(disk, &run, DONE BEGIN, "", "the empty part was rotated out: the log is found under its name");
	move(disk, "/d/log", "/d/log.1");
	append_text(disk, "/d/log", "begin\n3\n");
	expect_run(disk, &run, BEGIN SEEK, "/d/log.1: is another file now",
		"the new log begins as the one before it: its beginning is taken for that, and read there");
	append_text(disk, "/d/log", "4\n");
	move(disk, "/d/log", "/d/log.1");
	append_text(disk, "/d/log", "5\n");
	expect_run(disk, &run, SEEK BEGIN, "", "and is found where that one was, which begins the same");
	/* copytruncate over a part that begins the same. */
	set_length(disk, "/d/log.1", 0);
	append_text(disk, "/d/log.1", "5\n");
	expect_run(disk, &run, BEGIN DONE, "/d/log.1: is another file now", "a copy beside its original");
	append_text(disk, "/d/log", "6\n");
	expect_run(disk, &run, DONE SEEK, "", "which grows");
	append_text(disk, "/d/log.1", "6\n");
	set_length(disk, "/d/log", 0);
	append_text(disk, "/d/log", "7\n");
	expect_run(disk, &run, DONE BEGIN, "/d/log.1: is taken for what was /d/log, and goes on at byte 4",
		"and is truncated");
	tap_span(wm_buf_span(contents(disk, "/d/out")),
		"number:line\n1:1\n2:2\n3:begin\n4:begin\n5:3\n6:4\n7:5\n8:5\n9:6\n10:7\n", "each line was read once");

	/* Stopped before its end, and gone. */
	append_text(disk, "/d/log", "8\n9\n");
	run.commit_chance = 1;
	disk->stop = STOP_KILL;
	disk->calls = 0;
	disk->stop_at = 120;
	bool is_done = toy_run(disk, &run);
	tap_ok(!is_done, "killed behind the first line of two");
	recover(disk);
	move(disk, "/d/log", "/d/away");
	run.inputs_count = 1;
	expect_run(disk, &run, DONE,
		"/d/log: was read up to byte 4 when the run before ended, and is not among the inputs",
		"what a run was stopped in and is not there is said");
	expect_run(disk, &run, DONE, "", "once");
	disk_free(disk);
}

/* A file is told by its beginning and by what stands before the position, and a copy from a file that was moved. */
static void
test_content(void)
{
	const char *inputs[] = { "/d/long" };
	struct disk *disk = disk_new(2);
	struct run run = { .inputs = inputs, .inputs_count = 1, .out = "/d/out" };

	for (size_t i = 0; i < 2000; i++)
		append_text(disk, "/d/long", "line\n");
	expect_run(disk, &run, BEGIN, "", "a long file");
	append(disk, "/d/copy", wm_buf_span(contents(disk, "/d/long")));
	inputs[0] = "/d/copy";
	expect_run(disk, &run, BEGIN, "", "a copy begins while its original is there, named or not");
	struct wm_buf *data = contents(disk, "/d/long");
	data->data[10000 - 4097] ^= 1;
	inputs[0] = "/d/long";
	expect_run(disk, &run, DONE, "", "bytes between are not looked at");
	data->data[10000 - 4096] ^= 1;
	expect_run(disk, &run, BEGIN, "is another file now", "the last 4096 before the position are");
	data->data[4096] ^= 1;
	expect_run(disk, &run, DONE, "", "after the first 4096");
	data->data[4095] ^= 1;
	expect_run(disk, &run, BEGIN, "is another file now", "which are too");
	disk_free(disk);
}

static void
test_age(void)
{
	const char *inputs[8] = { "/d/1", "/d/2" };
	struct disk *disk = disk_new(1);
	struct run run = { .inputs = inputs, .inputs_count = 2, .out = "/d/out", .file_age_max_us = 100 * 1000000 };

	append_text(disk, "/d/1", "1\n");
	disk->now_s += 500;
	append_text(disk, "/d/2", "2\n");
	expect_run(disk, &run, BEGIN BEGIN, "", "at first no file is too old");
	expect_run(disk, &run, TOO_OLD DONE, "/d/1: is older than", "later one is, and is forgotten");
	int64_t newest_s = disk->files[name_of(disk, "/d/2")->file]->modified_s;
	inputs[2] = "/d/3";
	append_text(disk, "/d/3", "3\n");
	disk->files[name_of(disk, "/d/3")->file]->modified_s = newest_s - 100;
	inputs[3] = "/d/4";
	append_text(disk, "/d/4", "4\n");
	disk->files[name_of(disk, "/d/4")->file]->modified_s = newest_s - 101;
	run.inputs_count = 4;
	expect_run(disk, &run, TOO_OLD DONE BEGIN TOO_OLD, "/d/4: is older than", "of just that age is not too old");
	disk_free(disk);

	/* Beyond the newest so many. */
	disk = disk_new(1);
	run = (struct run){ .inputs = inputs, .inputs_count = 3, .out = "/d/out", .files_max = 3 };
	for (size_t i = 0; i < 3; i++) {
		disk->now_s += 10;
		append_text(disk, inputs[i], "x\n");
	}
	expect_run(disk, &run, BEGIN BEGIN BEGIN, "", "as many files as are remembered");
	expect_run(disk, &run, DONE DONE DONE, "", "are remembered");
	disk->now_s += 10;
	append_text(disk, "/d/4", "4\n");
	run.inputs_count = 4;
	expect_run(disk, &run, DONE DONE DONE BEGIN, "", "with one more");
	expect_run(disk, &run, TOO_OLD DONE DONE DONE, "/d/1: is older than", "the oldest is not, and not read again");
	/* One is killed amid a run with more than that: all of its inputs are known until its end. */
	disk->now_s += 10;
	inputs[4] = "/d/5";
	inputs[5] = "/d/6";
	append_text(disk, "/d/5", "5\n");
	append_text(disk, "/d/6", "6\n");
	run.inputs_count = 6;
	run.commit_chance = 1;
	disk->stop = STOP_KILL;
	disk->calls = 0;
	disk->stop_at = 60;
	bool is_done = toy_run(disk, &run);
	recover(disk);
	tap_ok(!is_done, "killed");
	tap_ok(toy_run(disk, &run) && run.actions[0] == TOO_OLD[0] && run.actions[1] == DONE[0], "and gone on");
	tap_span(wm_buf_span(contents(disk, "/d/out")), "number:line\n1:x\n2:x\n3:x\n4:4\n5:5\n6:6\n",
		"each was read once");
	disk_free(disk);
}

static void
test_outputs(void)
{
	static const char *const inputs[] = { "/d/in" };
	struct disk *disk = disk_new(3);
	struct run run = { .inputs = inputs, .inputs_count = 1, .out = "/d/out", .commit_chance = 1 };

	append_text(disk, "/d/in", "a\nb\nc\nd\n");
	disk->stop = STOP_KILL;
	disk->stop_at = 120;
	tap_ok(!toy_run(disk, &run), "a run is killed");
	recover(disk);
	struct wm_buf kept;
	wm_buf_init(&kept, WM_BUF_UNBOUNDED);
	copy(&kept, contents(disk, "/d/out"));
	tap_ok(kept.len > 20, "when something was written");

	run.out = "/d/other";
	append_text(disk, "/d/other", "precious\n");
	expect_refusal(disk, &run, "did not finish its output /d/out (--out): name it", "another output is refused");
	tap_span(wm_buf_span(contents(disk, "/d/other")), "precious\n", "and not touched");
	run.out = "/d/out";
	disk->files[name_of(disk, "/d/out")->file]->data.data[15] ^= 1;
	expect_refusal(
		disk, &run, "/d/out: is not what was written, up to byte", "an output with other bytes is refused");
	disk->files[name_of(disk, "/d/out")->file]->data.data[15] ^= 1;
	set_length(disk, "/d/out", 14);
	expect_refusal(disk, &run, "/d/out: has 14 bytes, and ", "a shorter one too");
	set_length(disk, "/d/out", kept.len);

	append_text(disk, "/d/out", "torn");
	run.new_output = true; /* has no effect on one that is as it should be */
	run.commit_chance = 0;
	tap_ok(toy_run(disk, &run), "the same goes on");
	tap_span(wm_buf_span(contents(disk, "/d/out")), "number:line\n1:a\n2:b\n3:c\n4:d\n", "where it was good");
	const struct wm_buf *cut = contents(disk, "/d/out.uncommitted");
	tap_ok(cut != NULL && cut->len >= 4 && memcmp(cut->data + cut->len - 4, "torn", 4) == 0, "what is cut is kept");

	/* After a good end anything goes. */
	run.new_output = false;
	append_text(disk, "/d/in", "e\n");
	run.out = "/d/other";
	tap_ok(toy_run(disk, &run), "after a good end another output will do");
	tap_span(wm_buf_span(contents(disk, "/d/other")), "precious\n5:e\n", "and is appended to");

	/* Taken as it is. */
	append_text(disk, "/d/in", "f\ng\nh\n");
	run.commit_chance = 1;
	disk->stop = STOP_KILL;
	disk->calls = 0;
	disk->stop_at = 110;
	tap_ok(!toy_run(disk, &run), "killed again");
	recover(disk);
	move(disk, "/d/other", "/d/moved");
	expect_refusal(disk, &run, "/d/other: has 0 bytes", "an unfinished output that was moved away is missed");
	run.out = "/d/moved";
	run.commit_chance = 0;
	tap_ok(toy_run(disk, &run), "under its new name it is found by its inode");
	tap_span(wm_buf_span(contents(disk, "/d/moved")), "precious\n5:e\n6:f\n7:g\n8:h\n", "and goes on");
	wm_buf_release(&kept);
	disk_free(disk);

	disk = disk_new(4);
	run = (struct run){ .inputs = inputs, .inputs_count = 1, .out = "/d/out", .commit_chance = 1 };
	append_text(disk, "/d/in", "a\nb\nc\nd\ne\nf\ng\n");
	disk->stop = STOP_KILL;
	disk->stop_at = 120;
	tap_ok(!toy_run(disk, &run), "killed");
	recover(disk);
	set_length(disk, "/d/out", 0);
	run.new_output = true;
	tap_ok(toy_run(disk, &run), "--new-output takes an output as it is");
	const struct wm_buf *out = contents(disk, "/d/out");
	if (!tap_ok(out->len > 20 && memcmp(out->data, "number:line\n", 12) == 0, "an empty one with a header"))
		printf("#   got '%.*s'\n", (int)out->len, out->data);
	disk_free(disk);
}

/* What is cut is on the disk before it is cut, all of it. */
static void
test_uncommitted(void)
{
	static const char *const inputs[] = { "/d/in" };
	bool is_kept = true;

	for (uint64_t seed = 1; seed <= 20 && is_kept; seed++) {
		struct disk *disk = disk_new(seed);
		struct run run = { .inputs = inputs, .inputs_count = 1, .out = "/d/out" };
		char torn[10001];

		memset(torn, 'x', sizeof(torn));
		append_text(disk, "/d/in", "a\nb\n");
		/* The call after the first commit: nothing was written yet. */
		disk->stop = STOP_KILL;
		disk->stop_at = 40;
		is_kept = !toy_run(disk, &run);
		recover(disk);
		set_length(disk, "/d/out", 0);
		append(disk, "/d/out", wm_span(torn, sizeof(torn)));
		is_kept = is_kept && toy_run(disk, &run);
		disk->stop = STOP_POWER;
		disk->is_dead = true;
		recover(disk);
		const struct wm_buf *cut = contents(disk, "/d/out.uncommitted");
		is_kept = is_kept && cut != NULL && wm_span_equal(wm_buf_span(cut), wm_span(torn, sizeof(torn)));
		disk_free(disk);
	}
	tap_ok(is_kept, "all that is cut is kept, even without power");
}

/* Somebody who may write in the folder of an output laid a link there, to a file of the one who runs the tool. */
static void
test_uncommitted_link(void)
{
	static const char *const inputs[] = { "/d/in" };
	struct disk *disk = disk_new(1);
	struct run run = { .inputs = inputs, .inputs_count = 1, .out = "/d/out" };

	append_text(disk, "/d/in", "a\nb\n");
	append_text(disk, "/d/precious", "mine\n");
	disk->stop = STOP_KILL;
	disk->stop_at = 40;
	bool is_killed = !toy_run(disk, &run);
	recover(disk);
	append_text(disk, "/d/out", "torn");
	set_name(disk, "/d/out.uncommitted", name_of(disk, "/d/precious")->file);
	name_of(disk, "/d/out.uncommitted")->is_link = true;
	tap_ok(is_killed && !toy_run(disk, &run) && run.err.code == WM_ERR_IO &&
			strncmp(run.err.message, "/d/out.uncommitted: ", 20) == 0,
		"a link where what is cut would go: an error that names it");
	tap_ok(wm_span_is(wm_buf_span(contents(disk, "/d/precious")), "mine\n"), "it was not followed");
	disk_free(disk);
}

static void
test_prev(void)
{
	static const char *const inputs[] = { "/d/in" };
	struct disk *disk = disk_new(5);
	struct run run = { .inputs = inputs, .inputs_count = 1, .out = "/d/out" };

	append_text(disk, "/d/in", "a\n");
	run.mode = RESUME_PREV;
	expect_refusal(disk, &run, "/d/st.prev: is not there: there is nothing to go back to", "back to nothing");
	run.mode = RESUME_AUTO;
	tap_ok(toy_run(disk, &run), "a run");
	append_text(disk, "/d/in", "b\n");
	tap_ok(toy_run(disk, &run), "and another");
	move(disk, "/d/st", "/d/gone");
	expect_refusal(disk, &run, "/d/st: is gone, but /d/st.prev is there", "never a silent fresh start");
	run.mode = RESUME_PREV;
	move(disk, "/d/in", "/d/aside");
	expect_refusal(disk, &run, "/d/in: cannot open", "an input that is not there");
	static const char *const aside[] = { "/d/other" };
	append_text(disk, "/d/other", "other\n");
	run.inputs = aside;
	expect_refusal(disk, &run, "as /d/in is no longer what it was and cannot be read again from byte 2",
		"a position that cannot be read again");
	run.inputs = inputs;
	move(disk, "/d/aside", "/d/in");
	run.out = "/d/out2";
	append_text(disk, "/d/out2", "x\n");
	expect_refusal(disk, &run, "did not finish its output /d/out (", "an output that was, and is not named");
	run.out = "/d/out";
	tap_ok(toy_run(disk, &run), "it goes on from FILE.prev");
	tap_span(wm_buf_span(contents(disk, "/d/out")), "number:line\n1:a\n2:b\n", "to the same bytes");
	run.mode = RESUME_AUTO;
	append_text(disk, "/d/in", "c\n");
	tap_ok(toy_run(disk, &run), "and on");
	tap_span(wm_buf_span(contents(disk, "/d/out")), "number:line\n1:a\n2:b\n3:c\n", "as ever");
	disk_free(disk);
}

static void
test_options(void)
{
	static const char *const inputs[] = { "/d/in" };
	struct resume_option options[] = { { "--tumbling", "5m", false, 0 }, { "--delay", "10s", true, 10 },
		{ "--key", "page", false, 0 } };
	struct disk *disk = disk_new(6);
	struct run run = {
		.inputs = inputs, .inputs_count = 1, .out = "/d/out", .options = options, .options_count = 2
	};

	append_text(disk, "/d/in", "a\n");
	tap_ok(toy_run(disk, &run), "a run with options");
	options[0].value = "1m";
	expect_refusal(
		disk, &run, "/d/st: was made with --tumbling 5m, and this run is with --tumbling 1m:", "another value");
	options[0].value = "5m";
	options[1] = (struct resume_option){ "--delay", "9s", true, 9 };
	expect_refusal(disk, &run, "with --delay 10s, and this run is with --delay 9s:", "a shorter delay");
	run.options_count = 1;
	expect_refusal(disk, &run, "with --delay 10s, and this run is without --delay:", "no delay");
	run.options_count = 3;
	options[1] = (struct resume_option){ "--delay", "11s", true, 11 };
	expect_refusal(disk, &run, "without --key, and this run is with --key page:", "one more option");
	run.options_count = 2;
	tap_ok(toy_run(disk, &run), "a longer delay may be");
	disk_free(disk);
}

static void
test_lock(void)
{
	struct disk *disk = disk_new(7);
	struct resume_setup setup = {
		.calls = &disk->table, .tool = "toy", .path = "/d/st", .state_bytes_max = UINT64_MAX
	};
	struct wm_err err = { 0 };
	struct resume *first = resume_open(&setup, &err);
	struct resume *second = resume_open(&setup, &err);
	char holder[64];

	snprintf(holder, sizeof(holder), "/d/st: another run has it (process %ld on ", (long)getpid());
	tap_ok(first != NULL && second == NULL && err.code == WM_ERR_IO &&
			strncmp(err.message, holder, strlen(holder)) == 0,
		"a second run is told who has it");
	resume_close(first);
	second = resume_open(&setup, &err);
	tap_ok(second != NULL, "until that has ended");
	resume_close(second);
	resume_close(NULL);
	disk_free(disk);
}

/* Pipes: by their place; what goes on begins with the tail. */
static void
test_pipes(void)
{
	struct disk *disk = disk_new(8);
	struct resume_setup setup = {
		.calls = &disk->table, .tool = "toy", .path = "/d/st", .state_bytes_max = UINT64_MAX
	};
	struct resume_commit commit = { .state_version = 1 };
	struct resume_position at = {
		.offset = 5000, .lines = 70, .tail = wm_span_of("ta"), .position = wm_span_of("p")
	};
	struct wm_err err = { 0 };
	char head[6000];

	append_text(disk, "/d/pipe", "");
	append_text(disk, "/d/file", "");
	disk->files[name_of(disk, "/d/pipe")->file]->is_pipe = true;
	for (size_t i = 0; i < sizeof(head); i++)
		head[i] = (char)('a' + i % 23);
	for (int round = 0; round < 4; round++) {
		setup.mode = round == 2 ? RESUME_REPLAY : round == 3 ? RESUME_PREV : RESUME_AUTO;
		struct resume *r = resume_open(&setup, &err);
		resume_add_input(r, "/d/file", -1);
		resume_add_input(r, "/d/pipe", -1);
		if (round == 3) {
			tap_ok(!resume_decide(r, &err) &&
					strstr(err.message, "as /d/pipe is a pipe and cannot be") != NULL,
				"from a pipe there is no going back");
			resume_close(r);
			break;
		}
		bool is_well = resume_decide(r, &err);
		struct resume_start start = resume_start(r, 1);
		if (round == 0) {
			tap_ok(is_well && start.action == RESUME_BEGIN && resume_has_new_input(r), "a pipe begins");
		} else if (round == 1) {
			tap_ok(is_well && start.action == RESUME_CONTINUE && start.position.offset == 5000 &&
					start.position.lines == 70 && wm_span_is(start.position.tail, "ta") &&
					wm_span_is(start.position.position, "p"),
				"it goes on with its tail");
		} else {
			tap_ok(is_well && start.action == RESUME_SKIP && start.position.offset == 5000,
				"replayed, it is skipped");
			tap_ok(resume_check_head(r, 1, wm_span(head, RESUME_KNOWN_BYTES), &err),
				"if it begins as before");
			head[4095] ^= 1;
			tap_ok(!resume_check_head(r, 1, wm_span(head, RESUME_KNOWN_BYTES), &err) &&
					strstr(err.message, "/d/pipe: does not begin as before") != NULL,
				"and not if it does not");
		}
		is_well = resume_commit_begin(r, &commit, &err) && resume_commit_end(r, &err);
		/* Read ahead of the position. */
		tap_ok(is_well && resume_feed(r, 1, wm_span(head, round == 0 ? 4000 : 0)) == (round == 0),
			"a first commit");
		if (round == 0)
			tap_ok(!resume_feed(r, 1, wm_span(head + 4000, 2000)), "so much is known of a pipe");
		commit.is_last = true;
		tap_ok(resume_set_input(r, 1, -1, round == 0 ? &at : &start.position, &err) &&
				resume_commit_begin(r, &commit, &err) && resume_commit_end(r, &err),
			"a last commit");
		commit.is_last = false;
		resume_close(r);
	}
	tap_ok(!has_leaked(disk), "no descriptor is left");
	disk_free(disk);
}

static bool
commit_now(struct resume *r, bool is_last, bool is_closed, struct wm_err *err)
{
	struct resume_commit commit = { .is_last = is_last, .is_closed = is_closed, .state_version = 1 };

	return resume_commit_begin(r, &commit, err) && resume_commit_end(r, err);
}

/* A run that flushed all; and standard input, which is known as the file that it is. */
static void
test_closed(void)
{
	struct disk *disk = disk_new(11);
	struct resume_setup setup = {
		.calls = &disk->table, .tool = "toy", .path = "/d/st", .state_bytes_max = UINT64_MAX
	};
	struct resume_position at = { .offset = 4, .lines = 2, .is_at_end = true };
	struct wm_err err = { 0 };

	append_text(disk, "/d/in", "a\nb\n");
	for (int round = 0; round < 3; round++) {
		struct resume *r = resume_open(&setup, &err);
		int fd = disk_open(disk, "/d/in", O_RDONLY, 0);

		resume_add_input(r, round == 1 ? "standard input" : "/d/in", round == 1 ? fd : -1);
		tap_ok(resume_decide(r, &err) && resume_is_closed(r) == (round > 0), "whether a run flushed all");
		tap_ok(resume_has_new_input(r) == (round != 1), "and whether there is something new");
		tap_ok(commit_now(r, false, false, &err) && (round == 2 || resume_set_input(r, 0, fd, &at, &err)) &&
				commit_now(r, true, round < 2, &err),
			"a run of two commits");
		disk_close(disk, fd);
		resume_close(r);
		if (round == 1)
			append_text(disk, "/d/in", "c\n");
	}
	struct resume *r = resume_open(&setup, &err);
	tap_ok(r != NULL && !resume_is_closed(r), "one that kept its state is not closed");
	resume_close(r);
	disk_free(disk);
}

/* A side file that is moved away and opened anew amid a run. */
static void
test_replace(void)
{
	struct disk *disk = disk_new(12);
	struct resume_setup setup = {
		.calls = &disk->table, .tool = "toy", .path = "/d/st", .state_bytes_max = UINT64_MAX
	};
	struct wm_err err = { 0 };
	struct resume *r = resume_open(&setup, &err);
	int fd = disk_open(disk, "/d/late", O_WRONLY | O_CREAT | O_APPEND, 0600);

	resume_add_output(r, "--late", fd);
	tap_ok(resume_decide(r, &err) && commit_now(r, false, false, &err) &&
			wm_checkpoint_write(&disk->table, fd, wm_span_of("first\n"), "late", &err) &&
			commit_now(r, false, false, &err),
		"a file is written and committed");
	move(disk, "/d/late", "/d/late.1");
	int second = disk_open(disk, "/d/late", O_WRONLY | O_CREAT | O_APPEND, 0600);
	tap_ok(resume_replace_output(r, 0, second, &err) && resume_output_length(r, 0) == 0, "another takes its place");
	disk_close(disk, fd);
	tap_ok(commit_now(r, false, false, &err) &&
			wm_checkpoint_write(&disk->table, second, wm_span_of("lost\n"), "late", &err),
		"which is committed, and written");
	resume_close(r);

	r = resume_open(&setup, &err);
	resume_add_output(r, "--late", second);
	tap_ok(resume_decide(r, &err) && commit_now(r, false, false, &err), "after a kill");
	tap_span(wm_buf_span(contents(disk, "/d/late")), "", "it is cut");
	tap_span(wm_buf_span(contents(disk, "/d/late.1")), "first\n", "and the one before is left alone");
	disk_close(disk, second);
	resume_close(r);
	tap_ok(!has_leaked(disk), "no descriptor is left");
	disk_free(disk);
}

/* The file that another program wrote from the man page, and what can be done to its sections. */
static bool
put_fixture(struct disk *disk)
{
	static const char *const names[][2] = { { "state.ckpt", "/d/st" }, { "in.csv", "/d/in" },
		{ "out.csv", "/d/out" } };

	for (size_t i = 0; i < 3; i++) {
		char path[64], bytes[16384];

		snprintf(path, sizeof(path), FIXTURES "%s", names[i][0]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t len = fd == -1 ? -1 : read(fd, bytes, sizeof(bytes));
		if (fd != -1)
			close(fd);
		if (len <= 0)
			return false;
		append(disk, names[i][1], wm_span(bytes, (size_t)len));
	}
	append_text(disk, "/d/pipe", "");
	disk->files[name_of(disk, "/d/pipe")->file]->is_pipe = true;
	return true;
}

/* Opens /d/st as the fixture's command would, and decides. */
static struct resume *
open_fixture(struct disk *disk, int *out_fd, struct wm_err *err)
{
	static const struct resume_option options[] = { { "--tumbling", "1m", false, 0 },
		{ "--time", "time", false, 0 }, { "--delay", "10s", true, 10000000 } };
	struct resume_setup setup = { .calls = &disk->table,
		.tool = "wm-window",
		.path = "/d/st",
		.state_bytes_max = UINT64_MAX,
		.options = options,
		.options_count = 3 };
	struct resume *r = resume_open(&setup, err);

	*out_fd = disk->table.open(disk, "/d/out", O_WRONLY | O_APPEND, 0);
	if (r == NULL)
		return NULL;
	resume_add_input(r, "/d/in", -1);
	resume_add_input(r, "/d/pipe", -1);
	resume_add_output(r, "standard output", *out_fd);
	if (resume_decide(r, err))
		return r;
	resume_close(r);
	return NULL;
}

static void
test_fixture(void)
{
	struct disk *disk = disk_new(9);
	struct wm_err err = { 0 };
	int out_fd;

	if (!tap_ok(put_fixture(disk), "the files of version 1"))
		return;
	append_text(disk, "/d/out", "torn");
	struct resume *r = open_fixture(disk, &out_fd, &err);
	if (!tap_ok(r != NULL, "are gone on from")) {
		printf("#   %s\n", err.message);
		return;
	}
	struct resume_start start = resume_start(r, 0);
	tap_ok(start.action == RESUME_SEEK, "a file is sought");
	tap_int((int64_t)start.position.offset, 4997, "behind the last record processed");
	tap_span(start.position.layout, "csv,", "with its layout");
	start = resume_start(r, 1);
	tap_ok(start.action == RESUME_CONTINUE, "a pipe goes on");
	tap_span(start.position.tail, "d,", "with its tail");
	tap_span(start.position.position, "b", "and its position by column");
	tap_int((int64_t)start.position.lines, 2, "and its lines");
	tap_int((int64_t)resume_output_length(r, 0), 36, "the output is good up to here");
	tap_span(resume_found(r), "iso", "what was found out");
	tap_int(resume_loaded(r)->sections[WM_CHECKPOINT_STAT].version, 3, "the version of the state");
	tap_int((int64_t)resume_loaded(r)->sections[WM_CHECKPOINT_STAT].payload.len, 100, "the state");
	tap_span(resume_loaded(r)->sections[WM_CHECKPOINT_WMRK].payload, "watermarks", "the watermarks");

	/* Written again, only what changed differs: time and generation, places, inodes. */
	struct resume_commit commit = { 5, false, false, false, wm_span_of("iso"), { 1, wm_span_of("watermarks") },
		{ 1, wm_span_of("ledger") }, 3 };
	char state_bytes[100];
	struct wm_span state = { state_bytes, sizeof(state_bytes) };
	struct wm_get in;
	wm_checkpoint_open_state(resume_loaded(r), &in);
	memcpy(state_bytes, wm_get_bytes(&in, sizeof(state_bytes)).data, sizeof(state_bytes));
	tap_ok(wm_checkpoint_close_state(resume_loaded(r), &in, &err), "it is read");
	tap_ok(resume_commit_begin(r, &commit, &err) && resume_commit_put(r, state, &err) && resume_commit_end(r, &err),
		"the first commit");
	const struct wm_buf *st = contents(disk, "/d/st"), *prev = contents(disk, "/d/st.prev");
	tap_ok(st->len >= 200 && st->len > prev->len - 40 && memcmp(st->data + 64, prev->data + 64, 120) == 0,
		"its options are the same bytes");
	tap_int((int64_t)contents(disk, "/d/out")->len, 36, "the output is cut");
	disk->table.close(disk, out_fd);
	resume_close(r);
	disk_free(disk);
}

/* Right hashes around wrong contents. */
static void
reseal(struct wm_buf *file)
{
	struct wm_buf hash, hashes;
	struct wm_get in;
	size_t at = 64;

	wm_buf_init(&hash, WM_BUF_UNBOUNDED);
	wm_buf_init(&hashes, WM_BUF_UNBOUNDED);
	for (;;) {
		wm_get_init(&in, wm_span(file->data + at + 8, 8));
		size_t len = 16 + (size_t)(wm_get_u64(&in) + 7) / 8 * 8;
		bool is_end = memcmp(file->data + at, "END.", 4) == 0;

		wm_buf_reset(&hash);
		if (is_end) {
			wm_put_u64(&hash, wm_hash_stable(wm_buf_span(&hashes)));
			memcpy(file->data + at + 16, hash.data, 8);
			wm_buf_reset(&hash);
		}
		wm_put_u64(&hash, wm_hash_stable(wm_span(file->data + at, len)));
		memcpy(file->data + at + len, hash.data, 8);
		wm_buf_add(&hashes, hash.data, 8);
		at += len + 8;
		if (is_end)
			break;
	}
	wm_buf_release(&hash);
	wm_buf_release(&hashes);
}

/* Each byte of the sections that are decoded here, with each of some values: refused or taken, and never a crash. */
static void
test_hostile(void)
{
	struct disk *disk = disk_new(10);
	struct wm_err err;
	size_t refused = 0, taken = 0;
	int out_fd;

	if (!put_fixture(disk))
		return;
	struct file *file = disk->files[name_of(disk, "/d/st")->file];
	for (size_t at = 64; at < 600; at++) {
		static const unsigned char values[] = { 0, 1, 0x7f, 0x80, 0xff };
		char byte = file->data.data[at];

		/* Names, versions and lengths of sections are the business of the file's own test. */
		bool is_frame = false;
		for (size_t begin = 64; begin <= at;) {
			struct wm_get in;

			wm_get_init(&in, wm_span(file->data.data + begin + 8, 8));
			size_t len = 16 + (size_t)(wm_get_u64(&in) + 7) / 8 * 8;
			is_frame = at < begin + 16;
			begin += len + 8;
		}
		for (size_t i = 0; i < sizeof(values) && !is_frame; i++) {
			file->data.data[at] = (char)values[i];
			reseal(&file->data);
			err = (struct wm_err){ 0 };
			struct resume *r = open_fixture(disk, &out_fd, &err);
			refused += r == NULL && err.code == WM_ERR_IO;
			taken += r != NULL;
			resume_close(r);
			disk->table.close(disk, out_fd);
		}
		file->data.data[at] = byte;
		reseal(&file->data);
	}
	tap_ok(refused > 300 && taken > 300 && !has_leaked(disk),
		"contents of any kind are refused or taken (%zu, %zu)", refused, taken);
	tap_int((int64_t)contents(disk, "/d/out")->len, 36, "and nothing was touched");
	disk_free(disk);
}

/* The real system: a symbolic link, a lock between processes, standard output as the shell gives it. */
static void
test_system(void)
{
	char folder[] = "/tmp/wm-resume-XXXXXX", path[64], link_path[64], out_path[64];
	struct resume_setup setup = {
		.calls = &wm_checkpoint_system, .tool = "toy", .path = link_path, .state_bytes_max = UINT64_MAX
	};
	struct resume_commit commit = { .state_version = 1 };
	struct wm_err err = { 0 };
	struct stat facts;
	int status = -1;

	if (mkdtemp(folder) == NULL)
		return;
	snprintf(path, sizeof(path), "%s/real", folder);
	if (mkdir(path, 0700) == -1)
		return;
	snprintf(path, sizeof(path), "%s/real/st", folder);
	snprintf(link_path, sizeof(link_path), "%s/link", folder);
	snprintf(out_path, sizeof(out_path), "%s/out", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	tap_ok(symlink(path, link_path) == 0 && resume_open(&setup, &err) == NULL &&
			strstr(err.message, "it is empty") != NULL,
		"an empty file is no fresh start");
	unlink(path);
	tap_ok(resume_open(&setup, &err) == NULL && strstr(err.message, "leads nowhere") != NULL,
		"nor is a link to nothing");
	unlink(link_path);
	setup.path = path;
	for (int round = 0; round < 2; round++) {
		struct resume *r = resume_open(&setup, &err);
		if (r == NULL)
			break;
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			bool is_refused = resume_open(&setup, &err) == NULL &&
				strstr(err.message, "another run has it (process ") != NULL;

			_exit(is_refused ? 7 : 1);
		}
		waitpid(child, &status, 0);
		tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 7, "another process is refused");
		/* For writing alone, as ">>" opens it. */
		fd = open(out_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		resume_add_output(r, "standard output", fd);
		tap_ok(resume_decide(r, &err) && resume_commit_begin(r, &commit, &err) && resume_commit_end(r, &err),
			"a first commit");
		tap_int((int64_t)resume_output_length(r, 0), 0, "nothing was good yet");
		tap_ok(write(fd, "lost", 4) == 4, "what is written then and not committed");
		resume_close(r);
		close(fd);
		if (round == 0) {
			symlink(path, link_path);
			setup.path = link_path;
		}
	}
	tap_ok(stat(out_path, &facts) == 0 && facts.st_size == 4, "is cut in the next run");
	tap_ok(lstat(link_path, &facts) == 0 && S_ISLNK(facts.st_mode), "a link to a checkpoint stays a link");
	static const char *const names[] = { "real/st", "real/st.prev", "real/st.lock", "link", "out",
		"out.uncommitted" };
	size_t removed = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(out_path, sizeof(out_path), "%s/%s", folder, names[i]);
		removed += unlink(out_path) == 0;
	}
	snprintf(out_path, sizeof(out_path), "%s/real", folder);
	tap_ok(removed == 6 && rmdir(out_path) == 0 && rmdir(folder) == 0, "and nothing else is left behind");
}

int
main(void)
{
	test_inputs();
	test_rotation();
	test_content();
	test_age();
	test_outputs();
	test_uncommitted();
	test_uncommitted_link();
	test_prev();
	test_options();
	test_lock();
	test_pipes();
	test_closed();
	test_replace();
	test_fixture();
	test_hostile();
	test_system();
	test_each_call();
	test_histories();
	return tap_done();
}
