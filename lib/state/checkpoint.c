#include "lib/state/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/hash.h"

#define MAGIC "\x89WMC\r\n\x1a\n"
#define MAGIC_BYTES 8
#define HEADER_BYTES ((size_t)64) /* its hash included */
#define FRAME_BYTES ((size_t)16)  /* of a section before its payload */
#define HASH_BYTES ((size_t)8)
#define NAME_BYTES 4
#define TOOL_OFFSET 16

/* Written at once: past this, larger writes gain nothing. */
#define BUFFER_BYTES ((size_t)256 << 10)

static const char part_names[WM_CHECKPOINT_PARTS][NAME_BYTES + 1] = { "OPTS", "WMRK", "INPT", "OUTP", "CNTR", "STAT" };
static const char end_name[] = "END.";

const char *
wm_checkpoint_part_name(enum wm_checkpoint_part part)
{
	return part_names[part];
}

static int
system_open(void *self, const char *path, int flags, mode_t mode)
{
	int fd;

	(void)self;
	do
		fd = open(path, flags, mode);
	while (fd == -1 && errno == EINTR);
	return fd;
}

static int
system_close(void *self, int fd)
{
	(void)self;
	return close(fd);
}

static ssize_t
system_pread(void *self, int fd, void *data, size_t len, off_t offset)
{
	(void)self;
	return pread(fd, data, len, offset);
}

static ssize_t
system_write(void *self, int fd, const void *data, size_t len)
{
	(void)self;
	return write(fd, data, len);
}

static ssize_t
system_pwrite(void *self, int fd, const void *data, size_t len, off_t offset)
{
	ssize_t put;

	(void)self;
	do
		put = pwrite(fd, data, len, offset);
	while (put == -1 && errno == EINTR);
	return put;
}

static off_t
system_seek(void *self, int fd, off_t offset)
{
	(void)self;
	return lseek(fd, offset, SEEK_SET);
}

static int
system_fsync(void *self, int fd)
{
	int status;

	(void)self;
	do
		status = fsync(fd);
	while (status == -1 && errno == EINTR);
	return status;
}

static int
system_ftruncate(void *self, int fd, off_t len)
{
	int status;

	(void)self;
	do
		status = ftruncate(fd, len);
	while (status == -1 && errno == EINTR);
	return status;
}

static int
system_stat(void *self, const char *path, struct stat *found)
{
	(void)self;
	return stat(path, found);
}

static int
system_fstat(void *self, int fd, struct stat *found)
{
	(void)self;
	return fstat(fd, found);
}

static int
system_link(void *self, const char *from, const char *to)
{
	(void)self;
	return link(from, to);
}

static int
system_rename(void *self, const char *from, const char *to)
{
	(void)self;
	return rename(from, to);
}

static int
system_unlink(void *self, const char *path)
{
	(void)self;
	return unlink(path);
}

static const void *
system_map(void *self, int fd, size_t len)
{
	(void)self;
	void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);

	return data == MAP_FAILED ? NULL : data;
}

static void
system_unmap(void *self, const void *data, size_t len)
{
	(void)self;
	munmap((void *)(uintptr_t)data, len);
}

static int
system_lock(void *self, int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	(void)self;
	return fcntl(fd, F_OFD_SETLK, &whole);
}

static char *
system_resolve(void *self, const char *path)
{
	(void)self;
	return realpath(path, NULL);
}

static char *
system_path_of(void *self, int fd)
{
	char link_path[32], target[PATH_MAX];

	(void)self;
	snprintf(link_path, sizeof(link_path), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link_path, target, sizeof(target));
	return len < 0 ? NULL : wm_memdup(target, (size_t)len);
}

static int
system_reopen(void *self, int fd)
{
	char link_path[32];

	snprintf(link_path, sizeof(link_path), "/proc/self/fd/%d", fd);
	return system_open(self, link_path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
}

const struct wm_checkpoint_calls wm_checkpoint_system = {
	.open = system_open,
	.close = system_close,
	.pread = system_pread,
	.write = system_write,
	.pwrite = system_pwrite,
	.seek = system_seek,
	.fsync = system_fsync,
	.ftruncate = system_ftruncate,
	.stat = system_stat,
	.fstat = system_fstat,
	.link = system_link,
	.rename = system_rename,
	.unlink = system_unlink,
	.map = system_map,
	.unmap = system_unmap,
	.lock = system_lock,
	.resolve = system_resolve,
	.path_of = system_path_of,
	.reopen = system_reopen,
};

static bool
fail_errno(struct wm_err *err, const char *path, const char *doing)
{
	return wm_err_set(err, WM_ERR_IO, "%s: cannot %s: %s", path, doing, strerror(errno));
}

bool
wm_checkpoint_write(
	const struct wm_checkpoint_calls *calls, int fd, struct wm_span bytes, const char *path, struct wm_err *err)
{
	while (bytes.len > 0) {
		ssize_t put = calls->write(calls->self, fd, bytes.data, bytes.len);

		if (put == -1 && errno == EINTR)
			continue;
		if (put == -1)
			return fail_errno(err, path, "write");
		bytes = wm_span(bytes.data + put, bytes.len - (size_t)put);
	}
	return true;
}

bool
wm_checkpoint_read(const struct wm_checkpoint_calls *calls, int fd, void *data, size_t len, uint64_t offset,
	size_t *got, const char *path, struct wm_err *err)
{
	*got = 0;
	while (*got < len) {
		ssize_t part = calls->pread(calls->self, fd, (char *)data + *got, len - *got, (off_t)(offset + *got));

		if (part == -1 && errno == EINTR)
			continue;
		if (part == -1)
			return fail_errno(err, path, "read");
		if (part == 0)
			break;
		*got += (size_t)part;
	}
	return true;
}

bool
wm_checkpoint_sync_folder(const struct wm_checkpoint_calls *calls, const char *path, struct wm_err *err)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash == NULL ? wm_memdup(".", 1) : wm_memdup(path, slash == path ? 1 : (size_t)(slash - path));
	bool is_synced = false;

	int fd = calls->open(calls->self, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd == -1) {
		(void)fail_errno(err, folder, "open");
	} else {
		/* A file system that cannot sync a folder says EINVAL; there is nothing better to be had from it. */
		is_synced = calls->fsync(calls->self, fd) == 0 || errno == EINVAL;
		if (!is_synced)
			(void)fail_errno(err, folder, "sync");
		calls->close(calls->self, fd);
	}
	free(folder);
	return is_synced;
}

char *
wm_checkpoint_beside(const char *path, const char *suffix)
{
	size_t path_len = strlen(path), suffix_len = strlen(suffix);
	char *name = wm_malloc(path_len + suffix_len + 1);

	memcpy(name, path, path_len);
	memcpy(name + path_len, suffix, suffix_len + 1);
	return name;
}

/* What is being parsed, for messages. */
struct place {
	const char *path;
	size_t at;
	char name[NAME_BYTES + 1]; /* of the section; "" in the header */
	struct wm_err *err;
};

static bool
fail_damaged(const struct place *place, const char *what)
{
	return wm_err_set(place->err, WM_ERR_IO, "%s: damaged at byte %zu, in %s%s: %s", place->path, place->at,
		place->name[0] == '\0' ? "the header" : "section ", place->name, what);
}

static uint64_t
hash_at(const char *data)
{
	struct wm_get in;

	wm_get_init(&in, wm_span(data, HASH_BYTES));
	return wm_get_u64(&in);
}

/* A tool's name: what the tools are called, then NUL to the end. */
static bool
take_tool(const char *bytes, char *tool)
{
	size_t len = 0;

	while (len < WM_CHECKPOINT_TOOL_BYTES && bytes[len] != '\0' &&
		strchr("abcdefghijklmnopqrstuvwxyz0123456789-", bytes[len]) != NULL)
		len++;
	memcpy(tool, bytes, len);
	tool[len] = '\0';
	for (size_t i = len; i < WM_CHECKPOINT_TOOL_BYTES; i++)
		if (bytes[i] != '\0')
			return false;
	return len > 0;
}

static bool
parse_header(struct wm_checkpoint *checkpoint, struct wm_span bytes, struct place *place)
{
	struct wm_get in;

	if (bytes.len == 0)
		return wm_err_set(place->err, WM_ERR_IO, "%s: damaged: it is empty", place->path);
	if (memcmp(bytes.data, MAGIC, bytes.len < MAGIC_BYTES ? bytes.len : MAGIC_BYTES) != 0)
		return wm_err_set(place->err, WM_ERR_IO, "%s: is no checkpoint: it does not begin as one", place->path);
	if (bytes.len < HEADER_BYTES)
		return fail_damaged(place, "the file ends here");
	/* The header keeps its layout in all versions, so that damage is not taken for a version. */
	if (wm_hash_stable(wm_span(bytes.data, HEADER_BYTES - HASH_BYTES)) !=
		hash_at(bytes.data + HEADER_BYTES - HASH_BYTES))
		return fail_damaged(place, "its bytes are not those that were written");
	wm_get_init(&in, wm_span(bytes.data + MAGIC_BYTES, TOOL_OFFSET - MAGIC_BYTES));
	checkpoint->format_version = wm_get_u32(&in);
	uint32_t flags = wm_get_u32(&in);
	if (checkpoint->format_version > WM_CHECKPOINT_VERSION)
		return wm_err_set(place->err, WM_ERR_IO,
			"%s: has format version %" PRIu32
			", and this program knows up to %d: use the newer wm that wrote it",
			place->path, checkpoint->format_version, WM_CHECKPOINT_VERSION);
	if (checkpoint->format_version == 0 || flags != 0)
		return fail_damaged(place, "its version or its flags are none that were ever written");
	if (!take_tool(bytes.data + TOOL_OFFSET, checkpoint->tool))
		return fail_damaged(place, "it does not hold the name of a tool");
	wm_get_init(&in, wm_span(bytes.data + TOOL_OFFSET + WM_CHECKPOINT_TOOL_BYTES, 16));
	checkpoint->written_at_us = wm_get_i64(&in);
	checkpoint->generation = wm_get_u64(&in);
	return true;
}

/* A section whose hash is right: its place in the order, or WM_CHECKPOINT_PARTS for one to skip. */
static bool
find_part(const struct place *place, enum wm_checkpoint_part next, enum wm_checkpoint_part *part)
{
	for (*part = 0; *part < WM_CHECKPOINT_PARTS; (*part)++)
		if (strcmp(part_names[*part], place->name) == 0)
			return *part == next || fail_damaged(place, "the sections are not in their order, each once");
	for (size_t i = 0; i < NAME_BYTES; i++)
		if (place->name[i] >= 'a' && place->name[i] <= 'z')
			return true;
	return wm_err_set(place->err, WM_ERR_IO,
		"%s: has a section %s at byte %zu that this program does not know and must not skip: use the newer wm "
		"that wrote it",
		place->path, place->name, place->at);
}

static bool
parse_end(struct wm_span payload, enum wm_checkpoint_part next, const struct wm_buf *hashes, size_t left,
	const struct place *place)
{
	if (next != WM_CHECKPOINT_PARTS) {
		char what[64];

		snprintf(what, sizeof(what), "there is no section %s before it", part_names[next]);
		return fail_damaged(place, what);
	}
	if (payload.len != HASH_BYTES || hash_at(payload.data) != wm_hash_stable(wm_buf_span(hashes)))
		return fail_damaged(place, "the sections are not those that were written together");
	return left == 0 || fail_damaged(place, "bytes follow it");
}

/* Begins at place->at; true when END. was met and all is well. */
static bool
parse_sections(struct wm_checkpoint *checkpoint, struct wm_span bytes, uint64_t section_bytes_max,
	struct wm_buf *hashes, struct place *place)
{
	enum wm_checkpoint_part next = 0, part;

	for (;;) {
		const char *section = bytes.data + place->at;
		size_t left = bytes.len - place->at;
		struct wm_get in;

		if (left < FRAME_BYTES + HASH_BYTES) {
			place->at = bytes.len;
			return fail_damaged(place, "the file ends here");
		}
		memcpy(place->name, section, NAME_BYTES);
		for (size_t i = 0; i < NAME_BYTES; i++)
			if (section[i] <= ' ' || section[i] > '~')
				place->name[i] = '?';
		wm_get_init(&in, wm_span(section + NAME_BYTES, FRAME_BYTES - NAME_BYTES));
		uint32_t version = wm_get_u32(&in);
		uint64_t length = wm_get_u64(&in);
		left -= FRAME_BYTES + HASH_BYTES;
		if (length > left || (length + 7) / 8 * 8 > left)
			return fail_damaged(place, "it is longer than the rest of the file");
		size_t hashed_len = FRAME_BYTES + (size_t)(length + 7) / 8 * 8;
		uint64_t hash = hash_at(section + hashed_len);
		if (wm_hash_stable(wm_span(section, hashed_len)) != hash)
			return fail_damaged(place, "its bytes are not those that were written");
		struct wm_span payload = { section + FRAME_BYTES, (size_t)length };
		if (strcmp(place->name, end_name) == 0)
			return parse_end(payload, next, hashes, bytes.len - place->at - hashed_len - HASH_BYTES, place);
		if (!find_part(place, next, &part))
			return false;
		if (length > section_bytes_max)
			return wm_err_set(place->err, WM_ERR_LIMIT,
				"%s: its section %s of %" PRIu64 " bytes is above the limit of %" PRIu64
				" bytes: raise --state-limit",
				place->path, place->name, length, section_bytes_max);
		if (part != WM_CHECKPOINT_PARTS) {
			checkpoint->sections[part] = (struct wm_checkpoint_section){ version, payload };
			next++;
		}
		wm_put_u64(hashes, hash);
		place->at += hashed_len + HASH_BYTES;
	}
}

bool
wm_checkpoint_parse(struct wm_checkpoint *checkpoint, struct wm_span bytes, const char *path,
	uint64_t section_bytes_max, struct wm_err *err)
{
	struct place place = { .path = path, .err = err };
	struct wm_buf hashes;

	*checkpoint = (struct wm_checkpoint){ 0 };
	if (!parse_header(checkpoint, bytes, &place))
		return false;
	wm_buf_init(&hashes, WM_BUF_UNBOUNDED);
	place.at = HEADER_BYTES;
	bool is_whole = parse_sections(checkpoint, bytes, section_bytes_max, &hashes, &place);
	wm_buf_release(&hashes);
	return is_whole;
}

enum wm_checkpoint_found
wm_checkpoint_load(struct wm_checkpoint *checkpoint, const struct wm_checkpoint_calls *calls, const char *path,
	uint64_t section_bytes_max, struct wm_err *err)
{
	struct stat found;
	const void *mapped = NULL;
	size_t len = 0;
	bool is_whole = false;

	/* Without waiting: it may be a pipe. */
	int fd = calls->open(calls->self, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);
	if (fd == -1) {
		if (errno == ENOENT)
			return WM_CHECKPOINT_ABSENT;
		(void)fail_errno(err, path, "open");
		return WM_CHECKPOINT_FAILED;
	}
	if (calls->fstat(calls->self, fd, &found) == -1) {
		(void)fail_errno(err, path, "read");
	} else if (!S_ISREG(found.st_mode)) {
		(void)wm_err_set(err, WM_ERR_IO, "%s: is no checkpoint: it is no regular file", path);
	} else {
		len = (size_t)found.st_size;
		if (len > 0 && (mapped = calls->map(calls->self, fd, len)) == NULL)
			(void)fail_errno(err, path, "read");
		else
			is_whole = wm_checkpoint_parse(checkpoint, wm_span(mapped, len), path, section_bytes_max, err);
	}
	calls->close(calls->self, fd);
	if (!is_whole) {
		if (mapped != NULL)
			calls->unmap(calls->self, mapped, len);
		return WM_CHECKPOINT_FAILED;
	}
	checkpoint->calls = calls;
	checkpoint->mapped = mapped;
	checkpoint->mapped_len = len;
	return WM_CHECKPOINT_LOADED;
}

void
wm_checkpoint_release(struct wm_checkpoint *checkpoint)
{
	if (checkpoint->mapped != NULL)
		checkpoint->calls->unmap(checkpoint->calls->self, checkpoint->mapped, checkpoint->mapped_len);
	*checkpoint = (struct wm_checkpoint){ 0 };
}

struct wm_checkpoint_writer {
	const struct wm_checkpoint_calls *calls;
	char *path;
	char *tmp_path;
	int fd;
	struct wm_buf buffer; /* not yet written */
	struct wm_buf hashes; /* of the sections so far */
	uint64_t written;     /* bytes in the file */
	uint64_t section_at;  /* where the section that is written piece by piece begins */
	enum wm_checkpoint_part next;
};

static void
free_writer(struct wm_checkpoint_writer *writer)
{
	wm_buf_release(&writer->buffer);
	wm_buf_release(&writer->hashes);
	free(writer->path);
	free(writer->tmp_path);
	free(writer);
}

void
wm_checkpoint_abandon(struct wm_checkpoint_writer *writer)
{
	if (writer == NULL)
		return;
	if (writer->fd != -1) {
		writer->calls->close(writer->calls->self, writer->fd);
		writer->calls->unlink(writer->calls->self, writer->tmp_path);
	}
	free_writer(writer);
}

static bool
flush(struct wm_checkpoint_writer *writer, struct wm_err *err)
{
	if (!wm_checkpoint_write(writer->calls, writer->fd, wm_buf_span(&writer->buffer), writer->tmp_path, err))
		return false;
	writer->written += writer->buffer.len;
	wm_buf_reset(&writer->buffer);
	return true;
}

/* Bytes in the file, once what is buffered is written. */
static uint64_t
position(const struct wm_checkpoint_writer *writer)
{
	return writer->written + writer->buffer.len;
}

static void
add_padding(struct wm_checkpoint_writer *writer)
{
	while (position(writer) % 8 != 0)
		wm_buf_add_byte(&writer->buffer, '\0');
}

static void
add_frame(struct wm_checkpoint_writer *writer, const char *name, uint32_t version, uint64_t length)
{
	wm_buf_add(&writer->buffer, name, NAME_BYTES);
	wm_put_u32(&writer->buffer, version);
	wm_put_u64(&writer->buffer, length);
}

/* A section that is there as a whole. */
static bool
add_section(
	struct wm_checkpoint_writer *writer, const char *name, struct wm_checkpoint_section section, struct wm_err *err)
{
	size_t begin = writer->buffer.len;

	add_frame(writer, name, section.version, section.payload.len);
	wm_buf_add(&writer->buffer, section.payload.data, section.payload.len);
	add_padding(writer);
	uint64_t hash = wm_hash_stable(wm_span(writer->buffer.data + begin, writer->buffer.len - begin));
	wm_put_u64(&writer->buffer, hash);
	wm_put_u64(&writer->hashes, hash);
	return writer->buffer.len < BUFFER_BYTES || flush(writer, err);
}

struct wm_checkpoint_writer *
wm_checkpoint_create(const struct wm_checkpoint_calls *calls, const char *path, const char *tool, int64_t now_us,
	uint64_t generation, struct wm_err *err)
{
	struct wm_checkpoint_writer *writer = wm_calloc(1, sizeof(*writer));
	char tool_bytes[WM_CHECKPOINT_TOOL_BYTES] = { 0 };
	size_t tool_len = strlen(tool);

	assert(tool_len > 0 && tool_len <= sizeof(tool_bytes));
	memcpy(tool_bytes, tool, tool_len);
	writer->calls = calls;
	writer->path = wm_memdup(path, strlen(path));
	writer->tmp_path = wm_checkpoint_beside(path, ".tmp");
	wm_buf_init(&writer->buffer, WM_BUF_UNBOUNDED);
	wm_buf_init(&writer->hashes, WM_BUF_UNBOUNDED);
	writer->fd = -1;
	if (calls->unlink(calls->self, writer->tmp_path) == 0 || errno == ENOENT)
		writer->fd = calls->open(
			calls->self, writer->tmp_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (writer->fd == -1) {
		(void)fail_errno(err, writer->tmp_path, "create");
		wm_checkpoint_abandon(writer);
		return NULL;
	}
	wm_buf_add(&writer->buffer, MAGIC, MAGIC_BYTES);
	wm_put_u32(&writer->buffer, WM_CHECKPOINT_VERSION);
	wm_put_u32(&writer->buffer, 0);
	wm_buf_add(&writer->buffer, tool_bytes, sizeof(tool_bytes));
	wm_put_i64(&writer->buffer, now_us);
	wm_put_u64(&writer->buffer, generation);
	wm_put_u64(&writer->buffer, 0);
	wm_put_u64(&writer->buffer, wm_hash_stable(wm_buf_span(&writer->buffer)));
	return writer;
}

static void
take_turn(struct wm_checkpoint_writer *writer, enum wm_checkpoint_part part)
{
	assert(part == writer->next && part < WM_CHECKPOINT_PARTS);
	writer->next++;
}

bool
wm_checkpoint_put_section(struct wm_checkpoint_writer *writer, enum wm_checkpoint_part part,
	struct wm_checkpoint_section section, struct wm_err *err)
{
	take_turn(writer, part);
	return add_section(writer, part_names[part], section, err);
}

void
wm_checkpoint_begin_section(struct wm_checkpoint_writer *writer, enum wm_checkpoint_part part, uint32_t version)
{
	take_turn(writer, part);
	writer->section_at = position(writer);
	add_frame(writer, part_names[part], version, 0);
}

bool
wm_checkpoint_put(struct wm_checkpoint_writer *writer, struct wm_span bytes, struct wm_err *err)
{
	if (bytes.len > BUFFER_BYTES - writer->buffer.len && !flush(writer, err))
		return false;
	if (bytes.len <= BUFFER_BYTES) {
		wm_buf_add(&writer->buffer, bytes.data, bytes.len);
		return true;
	}
	if (!wm_checkpoint_write(writer->calls, writer->fd, bytes, writer->tmp_path, err))
		return false;
	writer->written += bytes.len;
	return true;
}

/* The length, which stands before the payload, is known only now; so the hash is taken of the file. */
bool
wm_checkpoint_end_section(struct wm_checkpoint_writer *writer, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = writer->calls;
	uint64_t length = position(writer) - writer->section_at - FRAME_BYTES;
	struct wm_buf field;
	ssize_t put = 0;

	add_padding(writer);
	if (!flush(writer, err))
		return false;
	wm_buf_init(&field, WM_BUF_UNBOUNDED);
	wm_put_u64(&field, length);
	off_t field_at = (off_t)(writer->section_at + FRAME_BYTES - field.len);
	for (size_t at = 0; at < field.len && put != -1; at += (size_t)put)
		put = calls->pwrite(calls->self, writer->fd, field.data + at, field.len - at, field_at + (off_t)at);
	wm_buf_release(&field);
	if (put == -1)
		return fail_errno(err, writer->tmp_path, "write");
	size_t len = (size_t)writer->written;
	const char *mapped = calls->map(calls->self, writer->fd, len);
	if (mapped == NULL)
		return fail_errno(err, writer->tmp_path, "read");
	uint64_t hash = wm_hash_stable(wm_span(mapped + writer->section_at, len - (size_t)writer->section_at));
	calls->unmap(calls->self, mapped, len);
	wm_put_u64(&writer->buffer, hash);
	wm_put_u64(&writer->hashes, hash);
	return true;
}

/* Everything is in FILE.tmp, whatever happens from now on. */
static bool
finish_file(struct wm_checkpoint_writer *writer, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = writer->calls;
	struct wm_buf end;

	assert(writer->next == WM_CHECKPOINT_PARTS);
	wm_buf_init(&end, WM_BUF_UNBOUNDED);
	wm_put_u64(&end, wm_hash_stable(wm_buf_span(&writer->hashes)));
	bool is_put = add_section(writer, end_name, (struct wm_checkpoint_section){ 1, wm_buf_span(&end) }, err) &&
		flush(writer, err);
	wm_buf_release(&end);
	if (!is_put)
		return false;
	return calls->fsync(calls->self, writer->fd) == 0 || fail_errno(err, writer->tmp_path, "sync");
}

/* FILE also becomes FILE.prev: by a second name that is renamed, so that there is no moment without either. */
static bool
keep_old(const struct wm_checkpoint_writer *writer, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = writer->calls;
	char *link_path = wm_checkpoint_beside(writer->path, ".prev.tmp");
	char *prev_path = wm_checkpoint_beside(writer->path, ".prev");
	bool is_kept = false;

	if (calls->unlink(calls->self, link_path) == -1 && errno != ENOENT)
		(void)fail_errno(err, link_path, "remove");
	else if (calls->link(calls->self, writer->path, link_path) == -1) {
		/* The first one has none before it. */
		is_kept = errno == ENOENT || fail_errno(err, link_path, "create");
	} else {
		is_kept =
			calls->rename(calls->self, link_path, prev_path) == 0 || fail_errno(err, prev_path, "replace");
	}
	free(link_path);
	free(prev_path);
	return is_kept;
}

bool
wm_checkpoint_commit(struct wm_checkpoint_writer *writer, bool keeps_old, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = writer->calls;
	bool is_renamed = false, is_committed = false;

	if (finish_file(writer, err) && (!keeps_old || keep_old(writer, err))) {
		is_renamed = calls->rename(calls->self, writer->tmp_path, writer->path) == 0 ||
			fail_errno(err, writer->path, "replace");
		is_committed = is_renamed && wm_checkpoint_sync_folder(calls, writer->path, err);
	}
	if (!is_renamed) {
		wm_checkpoint_abandon(writer);
		return false;
	}
	calls->close(calls->self, writer->fd);
	free_writer(writer);
	return is_committed;
}
