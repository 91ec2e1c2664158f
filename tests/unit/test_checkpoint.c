/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/hash.h"
#include "tests/unit/tap.h"

#define HEADER_BYTES 64
#define FIXTURES "tests/golden/checkpoint/v1/"

static char folder[] = "/tmp/wm-checkpoint-XXXXXX";

static char *
in_folder(const char *name)
{
	char *path = wm_malloc(sizeof(folder) + strlen(name) + 1);

	memcpy(path, folder, sizeof(folder) - 1);
	path[sizeof(folder) - 1] = '/';
	memcpy(path + sizeof(folder), name, strlen(name) + 1);
	return path;
}

static struct wm_buf
read_file(const char *path)
{
	struct wm_buf bytes;
	char part[4096];
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	while (fd != -1 && (got = read(fd, part, sizeof(part))) > 0)
		wm_buf_add(&bytes, part, (size_t)got);
	if (fd != -1)
		close(fd);
	return bytes;
}

static void
add_header(struct wm_buf *out, uint32_t version, uint32_t flags, const char *tool)
{
	char name[16] = { 0 };

	memcpy(name, tool, strlen(tool));
	wm_buf_add(out, "\x89WMC\r\n\x1a\n", 8);
	wm_put_u32(out, version);
	wm_put_u32(out, flags);
	wm_buf_add(out, name, sizeof(name));
	wm_put_i64(out, -1);
	wm_put_u64(out, 7);
	wm_put_u64(out, 0);
	wm_put_u64(out, wm_hash_stable(wm_buf_span(out)));
}

/* A section with a length that need not be true, as long as it is not above what is there. */
static void
add_section(struct wm_buf *out, struct wm_buf *hashes, const char *name, uint64_t length, struct wm_span payload)
{
	size_t begin = out->len;

	wm_buf_add(out, name, 4);
	wm_put_u32(out, 1);
	wm_put_u64(out, length);
	wm_buf_add(out, payload.data, payload.len);
	while (out->len % 8 != 0)
		wm_buf_add_byte(out, '\0');
	uint64_t hash = wm_hash_stable(wm_span(out->data + begin, out->len - begin));
	wm_put_u64(out, hash);
	wm_put_u64(hashes, hash);
}

/* A file of sections named in a list, each with its own name as payload, and END. */
static struct wm_buf
make(const char *names, const char *behind)
{
	struct wm_buf out, hashes, end;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_buf_init(&hashes, WM_BUF_UNBOUNDED);
	wm_buf_init(&end, WM_BUF_UNBOUNDED);
	add_header(&out, 1, 0, "wm-sort");
	for (; *names != '\0'; names += strcspn(names, " "), names += *names == ' ')
		add_section(&out, &hashes, names, 4, wm_span(names, 4));
	wm_put_u64(&end, wm_hash_stable(wm_buf_span(&hashes)));
	add_section(&out, &hashes, "END.", 8, wm_buf_span(&end));
	wm_buf_add_text(&out, behind);
	wm_buf_release(&hashes);
	wm_buf_release(&end);
	return out;
}

/* Whether bytes are refused, with a message that begins as it should. */
static bool
is_refused(struct wm_span bytes, struct wm_err *err)
{
	struct wm_checkpoint checkpoint;
	/* Of just this size, so that a byte read too far is seen. */
	char *exact = wm_malloc(bytes.len == 0 ? 1 : bytes.len);

	memcpy(exact, bytes.data, bytes.len);
	*err = (struct wm_err){ 0 };
	bool is_parsed = wm_checkpoint_parse(&checkpoint, wm_span(exact, bytes.len), "st", UINT64_MAX, err);
	free(exact);
	return !is_parsed && err->code == WM_ERR_IO && strncmp(err->message, "st: ", 4) == 0;
}

static void
parse_fails(struct wm_span bytes, const char *message, const char *name)
{
	struct wm_err err;

	if (!tap_ok(is_refused(bytes, &err) && strstr(err.message, message) != NULL, "%s", name))
		printf("#   got '%s', want '%s'\n", err.message, message);
}

/* The state of a loaded file, got in pieces of so many bytes. */
static struct wm_buf
state_of(struct wm_checkpoint *checkpoint, size_t piece)
{
	struct wm_err err = { 0 };
	struct wm_buf state;
	struct wm_get in;

	wm_buf_init(&state, WM_BUF_UNBOUNDED);
	wm_checkpoint_open_state(checkpoint, &in);
	for (size_t left; (left = wm_get_left(&in)) > 0; wm_get_give_back(&in)) {
		struct wm_span bytes = wm_get_bytes(&in, left < piece ? left : piece);

		wm_buf_add(&state, bytes.data, bytes.len);
	}
	if (!wm_checkpoint_close_state(checkpoint, &in, &err))
		printf("#   %s\n", err.message);
	return state;
}

static bool
holds_state(struct wm_checkpoint *checkpoint, struct wm_span want, size_t piece)
{
	struct wm_buf state = state_of(checkpoint, piece);
	bool is_same = wm_span_equal(wm_buf_span(&state), want);

	wm_buf_release(&state);
	return is_same;
}

/* Written by another program, from the man page. */
static void
test_fixture(void)
{
	struct wm_checkpoint checkpoint = { 0 };
	struct wm_err err = { 0 };
	enum wm_checkpoint_found found =
		wm_checkpoint_load(&checkpoint, &wm_checkpoint_system, FIXTURES "small.ckpt", 100, &err);

	tap_int(found, WM_CHECKPOINT_LOADED, "a file of version 1 loads");
	tap_text(checkpoint.tool, "wm-sort", "its tool");
	tap_int(checkpoint.written_at_us, -1, "its time");
	tap_int((int64_t)checkpoint.generation, 7, "its generation");
	tap_span(checkpoint.sections[WM_CHECKPOINT_OPTS].payload, "o", "OPTS");
	tap_span(checkpoint.sections[WM_CHECKPOINT_WMRK].payload, "", "WMRK");
	tap_span(checkpoint.sections[WM_CHECKPOINT_INPT].payload, "12345678", "INPT");
	tap_span(checkpoint.sections[WM_CHECKPOINT_OUTP].payload, "p", "OUTP");
	tap_span(checkpoint.sections[WM_CHECKPOINT_CNTR].payload, "c", "CNTR");
	tap_int((int64_t)checkpoint.sections[WM_CHECKPOINT_STAT].payload.len, 5, "the length of STAT");
	tap_ok(holds_state(&checkpoint, wm_span_of("state"), 2) && holds_state(&checkpoint, wm_span_of("state"), 5),
		"STAT, as often as it is asked for");
	wm_checkpoint_release(&checkpoint);

	found = wm_checkpoint_load(&checkpoint, &wm_checkpoint_system, FIXTURES "none.ckpt", 100, &err);
	tap_int(found, WM_CHECKPOINT_ABSENT, "one that is not there");
	found = wm_checkpoint_load(&checkpoint, &wm_checkpoint_system, "/dev/null", 100, &err);
	tap_int(found, WM_CHECKPOINT_FAILED, "a device is none");
}

/* Writes a checkpoint of these sections, the state in pieces of so many bytes; 0: whole. */
static bool
write_sections(const struct wm_checkpoint_calls *calls, const char *path, const struct wm_checkpoint *from,
	size_t piece, bool keeps_old, struct wm_err *err)
{
	struct wm_checkpoint_writer *writer =
		wm_checkpoint_create(calls, path, from->tool, from->written_at_us, from->generation, err);
	struct wm_span state = from->sections[WM_CHECKPOINT_STAT].payload;
	bool is_put = writer != NULL;

	for (int part = 0; part < WM_CHECKPOINT_PARTS && is_put; part++)
		if (part != WM_CHECKPOINT_STAT || piece == 0)
			is_put = wm_checkpoint_put_section(
				writer, (enum wm_checkpoint_part)part, from->sections[part], err);
	if (is_put && piece > 0) {
		wm_checkpoint_begin_section(writer, WM_CHECKPOINT_STAT, from->sections[WM_CHECKPOINT_STAT].version);
		while (state.len > 0 && is_put) {
			size_t len = state.len < piece ? state.len : piece;

			is_put = wm_checkpoint_put(writer, wm_span(state.data, len), err);
			state = wm_span(state.data + len, state.len - len);
		}
		is_put = is_put && wm_checkpoint_end_section(writer, err);
	}
	if (is_put)
		return wm_checkpoint_commit(writer, keeps_old, err);
	wm_checkpoint_abandon(writer);
	return false;
}

static void
test_writer(void)
{
	static const char *const fixtures[] = { FIXTURES "small.ckpt", FIXTURES "state.ckpt" };
	char *path = in_folder("written");
	struct wm_checkpoint checkpoint;
	struct wm_err err = { 0 };

	for (size_t i = 0; i < sizeof(fixtures) / sizeof(fixtures[0]); i++) {
		struct wm_buf want = read_file(fixtures[i]);
		bool is_same = wm_checkpoint_parse(&checkpoint, wm_buf_span(&want), "st", UINT64_MAX, &err);

		for (size_t piece = 0; piece < 9 && is_same; piece++) {
			is_same = write_sections(&wm_checkpoint_system, path, &checkpoint, piece, true, &err);
			struct wm_buf got = read_file(path);
			is_same = is_same && wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
			wm_buf_release(&got);
		}
		tap_ok(is_same, "%s is written byte for byte, its state in pieces of any size", fixtures[i]);
		wm_buf_release(&want);
	}
	free(path);
}

/* A state larger than the buffer, in pieces smaller and larger than that. */
static void
test_large(void)
{
	static const size_t pieces[] = { 0, 1000, 300000, 2000000 };
	size_t len = 1500001;
	char *state = wm_malloc(len), *path = in_folder("large");
	struct wm_checkpoint from = { .tool = "wm-window" }, back;
	struct wm_err err = { 0 };
	bool is_same = true;
	uint64_t random = 1;

	for (size_t i = 0; i < len; i++)
		state[i] = (char)tap_random(&random);
	from.sections[WM_CHECKPOINT_STAT] = (struct wm_checkpoint_section){ 5, wm_span(state, len) };
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]) && is_same; i++) {
		is_same = write_sections(&wm_checkpoint_system, path, &from, pieces[i], true, &err) &&
			wm_checkpoint_load(&back, &wm_checkpoint_system, path, len, &err) == WM_CHECKPOINT_LOADED;
		is_same = is_same && back.sections[WM_CHECKPOINT_STAT].version == 5 &&
			holds_state(&back, wm_span(state, len), pieces[i] == 0 ? 1 : pieces[i]);
		if (is_same)
			wm_checkpoint_release(&back);
	}
	tap_ok(is_same, "a large state comes back");
	tap_ok(wm_checkpoint_load(&back, &wm_checkpoint_system, path, len - 1, &err) == WM_CHECKPOINT_FAILED &&
			err.code == WM_ERR_LIMIT && strstr(err.message, "1500001 bytes") != NULL,
		"a byte above the limit it does not");
	free(state);
	free(path);
}

static void
test_damage(void)
{
	struct wm_buf small = read_file(FIXTURES "small.ckpt");
	struct wm_err err;
	size_t flips_taken = 0, cuts_taken = 0, bytes_taken = 0;

	for (size_t i = 0; i < small.len * 8; i++) {
		small.data[i / 8] = (char)(small.data[i / 8] ^ 1 << i % 8);
		flips_taken += !is_refused(wm_buf_span(&small), &err);
		small.data[i / 8] = (char)(small.data[i / 8] ^ 1 << i % 8);
	}
	tap_int((int64_t)flips_taken, 0, "no flip of a bit is taken");
	for (size_t i = 0; i < small.len; i++) {
		char byte = small.data[i];

		for (int value = 0; value < 256; value++) {
			small.data[i] = (char)value;
			bytes_taken += small.data[i] != byte && !is_refused(wm_buf_span(&small), &err);
		}
		small.data[i] = byte;
	}
	tap_int((int64_t)bytes_taken, 0, "no other value of a byte is taken");
	for (size_t len = 0; len < small.len; len++)
		cuts_taken += !is_refused(wm_span(small.data, len), &err);
	tap_int((int64_t)cuts_taken, 0, "no cut is taken");

	small.data[82] ^= 1;
	parse_fails(wm_buf_span(&small), "st: damaged at byte 64, in section OPTS: its bytes", "damage has its place");
	small.data[82] ^= 1;
	parse_fails(wm_span(small.data, 100), "st: damaged at byte 100, in section OPTS: the file ends here",
		"a cut has its place");
	parse_fails(wm_span(small.data, 40), "the header: the file ends here", "a cut header");
	parse_fails(wm_span("", 0), "st: damaged: it is empty", "an empty file");
	parse_fails(wm_span_of("time,n\n"), "st: is no checkpoint", "another file");
	wm_buf_release(&small);
}

/* What no damage could make: the hashes are right. */
static void
test_hostile(void)
{
	static const struct {
		const char *names, *behind, *message, *test;
	} cases[] = {
		{ "OPTS WMRK NOTE INPT OUTP CNTR STAT", "", "section NOTE at byte 128 that", "unknown, in capitals" },
		{ "OPTS WMRK N-.9 INPT OUTP CNTR STAT", "", "section N-.9", "unknown, without small letters" },
		{ "OPTS WMRK OUTP CNTR STAT", "", "section OUTP: the sections are not in their order", "one missing" },
		{ "OPTS WMRK INPT OUTP CNTR", "", "section END.: there is no section STAT", "the last missing" },
		{ "OPTS OPTS WMRK INPT OUTP CNTR STAT", "", "section OPTS: the sections are not", "one twice" },
		{ "WMRK OPTS INPT OUTP CNTR STAT", "", "section WMRK: the sections are not", "another order" },
		{ "OPTS WMRK INPT OUTP CNTR STAT STAT", "", "section STAT: the sections are not", "the last twice" },
		{ "OPTS WMRK INPT OUTP CNTR STAT", "x", "section END.: bytes follow it", "a byte behind the end" },
		{ "", "", "section END.: there is no section OPTS", "no section at all" },
	};
	struct wm_buf bytes, hashes;
	struct wm_checkpoint checkpoint;
	struct wm_err err = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bytes = make(cases[i].names, cases[i].behind);
		parse_fails(wm_buf_span(&bytes), cases[i].message, cases[i].test);
		wm_buf_release(&bytes);
	}
	bytes = make("note OPTS WMRK INPT OUTP CNTR STAt STAT Zz.. ", "");
	tap_ok(wm_checkpoint_parse(&checkpoint, wm_buf_span(&bytes), "st", UINT64_MAX, &err) &&
			wm_span_is(checkpoint.sections[WM_CHECKPOINT_STAT].payload, "STAT"),
		"unknown ones with small letters are skipped");
	/* The right hash of another list of sections. */
	bytes.data[bytes.len - 16] ^= 1;
	struct wm_buf end;
	wm_buf_init(&end, WM_BUF_UNBOUNDED);
	wm_put_u64(&end, wm_hash_stable(wm_span(bytes.data + bytes.len - 32, 24)));
	memcpy(bytes.data + bytes.len - 8, end.data, 8);
	parse_fails(wm_buf_span(&bytes), "section END.: the sections are not those", "an end of other sections");
	wm_buf_release(&end);
	wm_buf_release(&bytes);

	static const uint64_t lengths[] = { 9, 16, 17, 64, INT64_MAX, UINT64_MAX - 24, UINT64_MAX - 16, UINT64_MAX - 8,
		UINT64_MAX - 7, UINT64_MAX - 1, UINT64_MAX };
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
		wm_buf_init(&hashes, WM_BUF_UNBOUNDED);
		add_header(&bytes, 1, 0, "wm-sort");
		add_section(&bytes, &hashes, "OPTS", lengths[i], wm_span_of("name"));
		parse_fails(wm_buf_span(&bytes), "section OPTS: it is longer than the rest", "a length beyond the end");
		wm_buf_release(&bytes);
		wm_buf_release(&hashes);
	}
	for (int i = 0; i < 4; i++) {
		static const char *const messages[] = { "format version 2, and this program knows up to 1",
			"none that were", "none that were", "not hold the name of a tool" };

		bytes = make("OPTS WMRK INPT OUTP CNTR STAT", "");
		wm_buf_init(&hashes, WM_BUF_UNBOUNDED);
		add_header(&hashes, i == 0 ? 2 : i == 1 ? 0 : 1, i == 2, i == 3 ? "wm-\x1b[2J" : "wm-sort");
		memcpy(bytes.data, hashes.data, HEADER_BYTES);
		parse_fails(wm_buf_span(&bytes), messages[i], "a header that says something else");
		wm_buf_release(&hashes);
		wm_buf_release(&bytes);
	}
}

static bool
holds_generation(const char *path, uint64_t generation)
{
	struct wm_checkpoint checkpoint;
	struct wm_err err;

	if (wm_checkpoint_load(&checkpoint, &wm_checkpoint_system, path, UINT64_MAX, &err) != WM_CHECKPOINT_LOADED)
		return false;
	bool is_same = checkpoint.generation == generation;
	wm_checkpoint_release(&checkpoint);
	return is_same;
}

static void
test_commit(void)
{
	char *path = in_folder("st"), *prev = in_folder("st.prev"), *tmp = in_folder("st.tmp"),
	     *other = in_folder("other");
	struct wm_checkpoint from = { .tool = "wm-dedup" };
	struct wm_err err = { 0 };
	struct stat facts;
	mode_t mask = umask(0);

	tap_ok(symlink(other, tmp) == 0, "somebody laid a trap");
	from.generation = 1;
	tap_ok(write_sections(&wm_checkpoint_system, path, &from, 0, true, &err), "the first commit");
	umask(mask);
	tap_ok(stat(path, &facts) == 0 && (facts.st_mode & 07777) == 0600, "is for its owner alone");
	tap_ok(access(other, F_OK) == -1 && access(tmp, F_OK) == -1 && access(prev, F_OK) == -1,
		"went through no link, and is all there is");
	from.generation = 2;
	tap_ok(write_sections(&wm_checkpoint_system, path, &from, 0, true, &err), "the second");
	tap_ok(holds_generation(path, 2) && holds_generation(prev, 1), "keeps the first");
	from.generation = 3;
	tap_ok(write_sections(&wm_checkpoint_system, path, &from, 3, false, &err), "one that keeps nothing");
	tap_ok(holds_generation(path, 3) && holds_generation(prev, 1), "leaves the one before alone");
	free(path);
	free(prev);
	free(tmp);
	free(other);
}

/* The system, but for the call at which it fails. */
struct failing {
	uint64_t calls, fail_at;
};

static bool
fails(void *self)
{
	struct failing *failing = self;

	errno = ENOSPC;
	return ++failing->calls == failing->fail_at;
}

static int
failing_open(void *self, const char *path, int flags, mode_t mode)
{
	return fails(self) ? -1 : open(path, flags, mode);
}

/* Closes always: a descriptor is gone even where close() fails. */
static int
failing_close(void *self, int fd)
{
	(void)self;
	return close(fd);
}

static ssize_t
failing_write(void *self, int fd, const void *data, size_t len)
{
	return fails(self) ? -1 : write(fd, data, len > 7 ? len / 2 : len);
}

static ssize_t
failing_pwrite(void *self, int fd, const void *data, size_t len, off_t offset)
{
	return fails(self) ? -1 : pwrite(fd, data, len, offset);
}

static int
failing_fsync(void *self, int fd)
{
	return fails(self) ? -1 : fsync(fd);
}

static int
failing_link(void *self, const char *from, const char *to)
{
	return fails(self) ? -1 : link(from, to);
}

static int
failing_rename(void *self, const char *from, const char *to)
{
	return fails(self) ? -1 : rename(from, to);
}

static int
failing_unlink(void *self, const char *path)
{
	return fails(self) ? -1 : unlink(path);
}

static ssize_t
failing_pread(void *self, int fd, void *data, size_t len, off_t offset)
{
	return fails(self) ? -1 : pread(fd, data, len > 7 ? len / 2 : len, offset);
}

/* The system, which notes what it was asked for: names without their folder, writes not at all. */
struct noting {
	char text[1024];
	int file, folder; /* descriptors; -1: none */
};

static void
note(struct noting *noting, const char *what, const char *path, const char *to)
{
	size_t len = strlen(noting->text), folder_len = strlen(folder) + 1;
	const char *behind = to == NULL ? "" : to + folder_len;

	snprintf(noting->text + len, sizeof(noting->text) - len, "%s %s%s%s\n", what,
		strlen(path) > folder_len ? path + folder_len : "folder", to == NULL ? "" : " ", behind);
}

static int
noting_open(void *self, const char *path, int flags, mode_t mode)
{
	struct noting *noting = self;
	bool is_new = (flags & (O_CREAT | O_EXCL | O_NOFOLLOW)) == (O_CREAT | O_EXCL | O_NOFOLLOW) && mode == 0600;
	int fd = open(path, flags, mode);

	note(noting, is_new ? "create" : "open", path, NULL);
	*(is_new ? &noting->file : &noting->folder) = fd;
	return fd;
}

static int
noting_fsync(void *self, int fd)
{
	struct noting *noting = self;

	size_t len = strlen(noting->text);

	snprintf(noting->text + len, sizeof(noting->text) - len, "sync %s\n", fd == noting->file ? "file" : "folder");
	return fsync(fd);
}

static int
noting_link(void *self, const char *from, const char *to)
{
	note(self, "link", from, to);
	return link(from, to);
}

static int
noting_rename(void *self, const char *from, const char *to)
{
	note(self, "rename", from, to);
	return rename(from, to);
}

static int
noting_unlink(void *self, const char *path)
{
	note(self, "remove", path, NULL);
	return unlink(path);
}

/* The order that wm-checkpoint(5) promises: nothing has another name before what is under the new one is durable. */
static void
test_order(void)
{
	static const char order[] = "remove ordered.tmp\n"
				    "create ordered.tmp\n"
				    "sync file\n"
				    "remove ordered.prev.tmp\n"
				    "link ordered ordered.prev.tmp\n"
				    "rename ordered.prev.tmp ordered.prev\n"
				    "rename ordered.tmp ordered\n"
				    "open folder\n"
				    "sync folder\n";
	struct wm_checkpoint_calls calls = wm_checkpoint_system;
	struct wm_checkpoint from = { .tool = "wm-dedup" };
	struct noting noting = { .file = -1, .folder = -1 };
	struct wm_err err = { 0 };
	char *path = in_folder("ordered");

	calls.self = &noting;
	calls.open = noting_open;
	calls.fsync = noting_fsync;
	calls.link = noting_link;
	calls.rename = noting_rename;
	calls.unlink = noting_unlink;
	bool is_first = write_sections(&calls, path, &from, 0, true, &err);
	noting.text[0] = '\0';
	tap_ok(is_first && write_sections(&calls, path, &from, 0, true, &err), "a commit that keeps the one before");
	tap_text(noting.text, order,
		"syncs the file, gives the old one its name, then the new one, then syncs the folder");
	free(path);
}

/* What a file was when it was loaded is what is read of it, or it is said. */
static void
test_changing(void)
{
	struct failing failing = { 0 };
	struct wm_checkpoint_calls calls = wm_checkpoint_system;
	size_t len = 200000;
	char *state = wm_calloc(1, len), *path = in_folder("changing");
	struct wm_checkpoint from = { .tool = "wm-window" }, back;
	struct wm_err err = { 0 };
	struct wm_get in;

	calls.self = &failing;
	calls.close = failing_close;
	calls.pread = failing_pread;
	from.sections[WM_CHECKPOINT_STAT] = (struct wm_checkpoint_section){ 1, wm_span(state, len) };
	if (!tap_ok(write_sections(&wm_checkpoint_system, path, &from, 0, true, &err) &&
			    wm_checkpoint_load(&back, &calls, path, len, &err) == WM_CHECKPOINT_LOADED,
		    "a file that will change"))
		return;
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	off_t end = lseek(fd, 0, SEEK_END);

	wm_checkpoint_open_state(&back, &in);
	failing.fail_at = failing.calls + 1;
	tap_ok(wm_get_bytes(&in, 100000).len == 0 && in.failed, "a disk that fails");
	tap_ok(!wm_checkpoint_close_state(&back, &in, &err) && err.code == WM_ERR_IO &&
			strstr(err.message, "changing: cannot read: No space") != NULL,
		"is not taken for damage");

	wm_checkpoint_open_state(&back, &in);
	tap_ok(wm_get_bytes(&in, 100000).len == 100000 && wm_checkpoint_close_state(&back, &in, &err),
		"a reader may stop where it likes");

	tap_ok(pwrite(fd, "x", 1, end - 100) == 1, "a byte is changed");
	wm_checkpoint_open_state(&back, &in);
	tap_ok(wm_get_bytes(&in, len).len == len, "what is there is read");
	tap_ok(!wm_checkpoint_close_state(&back, &in, &err) && strstr(err.message, "changing: changed while") != NULL,
		"and it is seen");

	tap_ok(ftruncate(fd, end - 1000) == 0, "the file is cut");
	wm_checkpoint_open_state(&back, &in);
	tap_ok(wm_get_bytes(&in, len).len == 0 && !wm_checkpoint_close_state(&back, &in, &err) &&
			strstr(err.message, "changing: became shorter") != NULL,
		"and it is said");
	close(fd);
	wm_checkpoint_release(&back);
	free(state);
	free(path);
}

static void
test_failures(void)
{
	struct failing failing = { 0 };
	struct wm_checkpoint_calls calls = wm_checkpoint_system;
	char *path = in_folder("failing"), *tmp = in_folder("failing.tmp");
	struct wm_checkpoint from = { .tool = "wm-join", .sections = { { 1, wm_span("options", 7) } } };
	uint64_t generation = 1, failed_count = 0;
	bool is_written = false, is_well = true;

	calls.self = &failing;
	calls.open = failing_open;
	calls.close = failing_close;
	calls.write = failing_write;
	calls.pwrite = failing_pwrite;
	calls.fsync = failing_fsync;
	calls.link = failing_link;
	calls.rename = failing_rename;
	calls.unlink = failing_unlink;
	calls.pread = failing_pread;
	/* At first there is no old one, and then there is. */
	for (int round = 0; round < 2; round++) {
		failing.fail_at = 0;
		is_written = false;
		while (!is_written && is_well) {
			struct wm_err err = { 0 };

			failing.calls = 0;
			failing.fail_at++;
			from.generation = generation + 1;
			is_written = write_sections(&calls, path, &from, 2, true, &err);
			bool is_new = holds_generation(path, from.generation);
			is_well = is_written ? is_new : strstr(err.message, folder) != NULL;
			is_well = is_well &&
				(is_new || holds_generation(path, generation) ||
					(generation == 1 && access(path, F_OK) == -1));
			failed_count += !is_written;
			if (is_new)
				generation++;
		}
	}
	tap_ok(is_well && failed_count > 20 && access(tmp, F_OK) == -1,
		"whatever call fails, the old one is there or the new one (%llu failures)",
		(unsigned long long)failed_count);
	free(path);
	free(tmp);
}

int
main(void)
{
	if (mkdtemp(folder) == NULL)
		return 1;
	test_fixture();
	test_writer();
	test_large();
	test_damage();
	test_hostile();
	test_commit();
	test_order();
	test_changing();
	test_failures();

	static const char *const names[] = { "written", "written.prev", "large", "large.prev", "st", "st.prev",
		"changing", "ordered", "ordered.prev", "failing", "failing.prev", "failing.prev.tmp" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = in_folder(names[i]);

		unlink(path);
		free(path);
	}
	tap_ok(rmdir(folder) == 0, "nothing else was left behind");
	return tap_done();
}
