/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Written or read at once: past this, larger pieces gain nothing. */
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

/* The bytes of a checkpoint: in memory, or of a file. */
struct origin {
	const char *bytes; /* NULL: of a file */
	const struct wm_checkpoint_calls *calls;
	int fd;
	const char *path;
	uint64_t len;
};

/* Bytes that a file no longer has are a failure. */
static bool
take(const struct origin *origin, void *data, size_t len, uint64_t at, struct wm_err *err)
{
	size_t got;

	if (origin->bytes != NULL) {
		memcpy(data, origin->bytes + at, len);
		return true;
	}
	if (!wm_checkpoint_read(origin->calls, origin->fd, data, len, at, &got, origin->path, err))
		return false;
	return got == len || wm_err_set(err, WM_ERR_IO, "%s: became shorter while it was read", origin->path);
}

static bool
hash_of(const struct origin *origin, uint64_t len, uint64_t at, uint64_t *hash, struct wm_err *err)
{
	struct wm_hash_stream *stream = wm_hash_stream_new();
	char *piece = wm_malloc(BUFFER_BYTES);
	bool is_read = true;

	for (size_t part; len > 0 && is_read; at += part, len -= part) {
		part = len < BUFFER_BYTES ? (size_t)len : BUFFER_BYTES;
		is_read = take(origin, piece, part, at, err);
		if (is_read)
			wm_hash_stream_add(stream, wm_span(piece, part));
	}
	*hash = wm_hash_stream_value(stream);
	free(piece);
	wm_hash_stream_free(stream);
	return is_read;
}

/* What is being parsed, for messages. */
struct place {
	const char *path;
	uint64_t at;
	char name[NAME_BYTES + 1]; /* of the section; "" in the header */
	struct wm_err *err;
};

static bool
fail_damaged(const struct place *place, const char *what)
{
	return wm_err_set(place->err, WM_ERR_IO, "%s: damaged at byte %" PRIu64 ", in %s%s: %s", place->path, place->at,
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

bool
wm_checkpoint_begins(struct wm_span bytes)
{
	return memcmp(bytes.data, MAGIC, bytes.len < MAGIC_BYTES ? bytes.len : MAGIC_BYTES) == 0;
}

static bool
parse_header(struct wm_checkpoint *checkpoint, const struct origin *origin, struct place *place)
{
	char header[HEADER_BYTES];
	struct wm_span bytes = { header, origin->len < HEADER_BYTES ? (size_t)origin->len : HEADER_BYTES };
	struct wm_get in;

	if (!take(origin, header, bytes.len, 0, place->err))
		return false;
	if (bytes.len == 0)
		return wm_err_set(place->err, WM_ERR_IO, "%s: damaged: it is empty", place->path);
	if (!wm_checkpoint_begins(bytes))
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
		"%s: has a section %s at byte %" PRIu64
		" that this program does not know and must not skip: use the newer wm "
		"that wrote it",
		place->path, place->name, place->at);
}

static bool
parse_end(const struct origin *origin, uint64_t length, enum wm_checkpoint_part next, const struct wm_buf *hashes,
	const struct place *place)
{
	uint64_t payload_at = place->at + FRAME_BYTES;
	char payload[HASH_BYTES];

	if (next != WM_CHECKPOINT_PARTS) {
		char what[64];

		snprintf(what, sizeof(what), "there is no section %s before it", part_names[next]);
		return fail_damaged(place, what);
	}
	if (length == HASH_BYTES && !take(origin, payload, HASH_BYTES, payload_at, place->err))
		return false;
	if (length != HASH_BYTES || hash_at(payload) != wm_hash_stable(wm_buf_span(hashes)))
		return fail_damaged(place, "the sections are not those that were written together");
	return payload_at + 2 * HASH_BYTES == origin->len || fail_damaged(place, "bytes follow it");
}

/* Bytes of a section that its hash is of. */
static uint64_t
hashed_bytes(uint64_t length)
{
	return FRAME_BYTES + (length + 7) / 8 * 8;
}

/* Begins at place->at; true when END. was met and all is well. */
static bool
parse_sections(struct wm_checkpoint *checkpoint, const struct origin *origin, uint64_t section_bytes_max,
	struct wm_buf *hashes, struct place *place)
{
	enum wm_checkpoint_part next = 0, part;

	for (;;) {
		uint64_t left = origin->len - place->at, hash;
		char frame[FRAME_BYTES], written_hash[HASH_BYTES];
		struct wm_get in;

		if (left < FRAME_BYTES + HASH_BYTES) {
			place->at = origin->len;
			return fail_damaged(place, "the file ends here");
		}
		if (!take(origin, frame, FRAME_BYTES, place->at, place->err))
			return false;
		memcpy(place->name, frame, NAME_BYTES);
		for (size_t i = 0; i < NAME_BYTES; i++)
			if (frame[i] <= ' ' || frame[i] > '~')
				place->name[i] = '?';
		wm_get_init(&in, wm_span(frame + NAME_BYTES, FRAME_BYTES - NAME_BYTES));
		uint32_t version = wm_get_u32(&in);
		uint64_t length = wm_get_u64(&in);
		left -= FRAME_BYTES + HASH_BYTES;
		if (length > left || (length + 7) / 8 * 8 > left)
			return fail_damaged(place, "it is longer than the rest of the file");
		uint64_t hashed_len = hashed_bytes(length);
		if (!hash_of(origin, hashed_len, place->at, &hash, place->err) ||
			!take(origin, written_hash, HASH_BYTES, place->at + hashed_len, place->err))
			return false;
		if (hash_at(written_hash) != hash)
			return fail_damaged(place, "its bytes are not those that were written");
		if (strcmp(place->name, end_name) == 0)
			return parse_end(origin, length, next, hashes, place);
		if (!find_part(place, next, &part))
			return false;
		if (length > section_bytes_max)
			return wm_err_set(place->err, WM_ERR_LIMIT,
				"%s: its section %s of %" PRIu64 " bytes is above the limit of %" PRIu64
				" bytes: raise --state-limit",
				place->path, place->name, length, section_bytes_max);
		if (part != WM_CHECKPOINT_PARTS) {
			const char *payload = origin->bytes == NULL ? NULL : origin->bytes + place->at + FRAME_BYTES;

			checkpoint->sections[part] =
				(struct wm_checkpoint_section){ version, { payload, (size_t)length } };
			checkpoint->places[part].at = place->at;
			checkpoint->places[part].hash = hash;
			next++;
		}
		wm_put_u64(hashes, hash);
		place->at += hashed_len + HASH_BYTES;
	}
}

static bool
parse(struct wm_checkpoint *checkpoint, const struct origin *origin, uint64_t section_bytes_max, struct wm_err *err)
{
	struct place place = { .path = origin->path, .err = err };
	struct wm_buf hashes;

	if (!parse_header(checkpoint, origin, &place))
		return false;
	wm_buf_init(&hashes, WM_BUF_UNBOUNDED);
	place.at = HEADER_BYTES;
	bool is_whole = parse_sections(checkpoint, origin, section_bytes_max, &hashes, &place);
	wm_buf_release(&hashes);
	return is_whole;
}

bool
wm_checkpoint_parse(struct wm_checkpoint *checkpoint, struct wm_span bytes, const char *path,
	uint64_t section_bytes_max, struct wm_err *err)
{
	const struct origin origin = { .bytes = bytes.data, .path = path, .len = bytes.len };

	*checkpoint = (struct wm_checkpoint){ .fd = -1 };
	return parse(checkpoint, &origin, section_bytes_max, err);
}

static struct origin
origin_of(const struct wm_checkpoint *checkpoint)
{
	return (struct origin){ .calls = checkpoint->calls, .fd = checkpoint->fd, .path = checkpoint->path };
}

static bool
fail_changed(const struct wm_checkpoint *checkpoint, struct wm_err *err)
{
	return wm_err_set(err, WM_ERR_IO, "%s: changed while it was read", checkpoint->path);
}

/* Takes all sections into memory but the state's; each is small beside what is made of it. */
static bool
hold_sections(struct wm_checkpoint *checkpoint, struct wm_err *err)
{
	struct origin origin = origin_of(checkpoint);
	uint64_t len = 0;

	for (enum wm_checkpoint_part part = 0; part < WM_CHECKPOINT_STAT; part++)
		len += hashed_bytes(checkpoint->sections[part].payload.len);
	char *at = checkpoint->held = wm_malloc(len);
	for (enum wm_checkpoint_part part = 0; part < WM_CHECKPOINT_STAT; part++) {
		struct wm_span *payload = &checkpoint->sections[part].payload;
		size_t hashed_len = (size_t)hashed_bytes(payload->len);

		if (!take(&origin, at, hashed_len, checkpoint->places[part].at, err))
			return false;
		if (wm_hash_stable(wm_span(at, hashed_len)) != checkpoint->places[part].hash)
			return fail_changed(checkpoint, err);
		payload->data = at + FRAME_BYTES;
		at += hashed_len;
	}
	return true;
}

static bool
load(struct wm_checkpoint *checkpoint, uint64_t section_bytes_max, struct wm_err *err)
{
	const struct wm_checkpoint_calls *calls = checkpoint->calls;
	struct origin origin = origin_of(checkpoint);
	struct stat found;

	if (calls->fstat(calls->self, checkpoint->fd, &found) == -1)
		return fail_errno(err, checkpoint->path, "read");
	if (!S_ISREG(found.st_mode))
		return wm_err_set(err, WM_ERR_IO, "%s: is no checkpoint: it is no regular file", checkpoint->path);
	origin.len = (uint64_t)found.st_size;
	return parse(checkpoint, &origin, section_bytes_max, err) && hold_sections(checkpoint, err);
}

enum wm_checkpoint_found
wm_checkpoint_load(struct wm_checkpoint *checkpoint, const struct wm_checkpoint_calls *calls, const char *path,
	uint64_t section_bytes_max, struct wm_err *err)
{
	*checkpoint = (struct wm_checkpoint){ 0 };
	/* Without waiting: it may be a pipe. */
	int fd = calls->open(calls->self, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);
	if (fd == -1) {
		if (errno == ENOENT)
			return WM_CHECKPOINT_ABSENT;
		(void)fail_errno(err, path, "open");
		return WM_CHECKPOINT_FAILED;
	}
	checkpoint->calls = calls;
	checkpoint->path = wm_memdup(path, strlen(path));
	checkpoint->fd = fd;
	if (load(checkpoint, section_bytes_max, err))
		return WM_CHECKPOINT_LOADED;
	wm_checkpoint_release(checkpoint);
	return WM_CHECKPOINT_FAILED;
}

struct wm_checkpoint_state {
	const struct wm_checkpoint *checkpoint;
	uint64_t at; /* of the next byte in the file */
	struct wm_hash_stream *hash;
	bool failed;
	struct wm_err err;
};

/* The next bytes of the section, frame and padding included. */
static bool
read_state(void *self, void *data, size_t len)
{
	struct wm_checkpoint_state *state = self;
	struct origin origin = origin_of(state->checkpoint);

	state->failed = state->failed || !take(&origin, data, len, state->at, &state->err);
	if (state->failed)
		return false;
	wm_hash_stream_add(state->hash, wm_span(data, len));
	state->at += len;
	return true;
}

void
wm_checkpoint_open_state(struct wm_checkpoint *checkpoint, struct wm_get *in)
{
	struct wm_span payload = checkpoint->sections[WM_CHECKPOINT_STAT].payload;
	char frame[FRAME_BYTES];

	assert(checkpoint->state == NULL);
	if (checkpoint->calls == NULL) {
		wm_get_init(in, payload);
		return;
	}
	struct wm_checkpoint_state *state = wm_calloc(1, sizeof(*state));
	state->checkpoint = checkpoint;
	state->at = checkpoint->places[WM_CHECKPOINT_STAT].at;
	state->hash = wm_hash_stream_new();
	checkpoint->state = state;
	const struct wm_get_source source = { state, read_state };
	wm_get_open(in, &source, payload.len);
	if (!read_state(state, frame, FRAME_BYTES))
		wm_get_fail(in);
}

static void
free_state(struct wm_checkpoint *checkpoint)
{
	if (checkpoint->state != NULL)
		wm_hash_stream_free(checkpoint->state->hash);
	free(checkpoint->state);
	checkpoint->state = NULL;
}

bool
wm_checkpoint_close_state(struct wm_checkpoint *checkpoint, struct wm_get *in, struct wm_err *err)
{
	struct wm_checkpoint_state *state = checkpoint->state;
	size_t length = checkpoint->sections[WM_CHECKPOINT_STAT].payload.len;
	bool is_same = true;
	char padding[8];

	if (checkpoint->calls == NULL)
		return true;
	/* Where a decoder stopped before the end there is no hash to compare. */
	bool is_all = !in->failed && wm_get_left(in) == 0;
	wm_get_close(in);
	if (is_all && read_state(state, padding, (size_t)(hashed_bytes(length) - FRAME_BYTES - length)))
		is_same = wm_hash_stream_value(state->hash) == checkpoint->places[WM_CHECKPOINT_STAT].hash;
	bool failed = state->failed;
	if (failed)
		*err = state->err;
	else if (!is_same)
		(void)fail_changed(checkpoint, err);
	free_state(checkpoint);
	return !failed && is_same;
}

void
wm_checkpoint_release(struct wm_checkpoint *checkpoint)
{
	if (checkpoint->calls != NULL)
		checkpoint->calls->close(checkpoint->calls->self, checkpoint->fd);
	free_state(checkpoint);
	free(checkpoint->path);
	free(checkpoint->held);
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
	const struct origin origin = { .calls = calls, .fd = writer->fd, .path = writer->tmp_path };
	uint64_t hash;
	if (!hash_of(&origin, writer->written - writer->section_at, writer->section_at, &hash, err))
		return false;
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
