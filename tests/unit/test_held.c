/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints whose hashes are right and whose contents are not: nothing but an error comes of them. */
#include "cmd/held.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/pairs.h"
#include "lib/base/hash.h"
#include "lib/base/limits.h"
#include "tests/unit/tap.h"

#define GOLDEN "tests/golden/checkpoint/v1/tools/"
#define HEADER_BYTES 64
#define FRAME_BYTES 16

/* A file in memory, which has a path too. */
static int memory_fd;
static char path[32];

struct file {
	char bytes[1 << 14];
	size_t len;
};

static void
read_file(const char *name, struct file *file)
{
	char golden[128];

	snprintf(golden, sizeof(golden), GOLDEN "%s.ckpt", name);
	FILE *in = fopen(golden, "rb");
	file->len = in == NULL ? 0 : fread(file->bytes, 1, sizeof(file->bytes), in);
	if (in != NULL)
		fclose(in);
}

static uint64_t
number_at(const char *at)
{
	struct wm_get in;

	wm_get_init(&in, wm_span(at, 8));
	return wm_get_u64(&in);
}

static void
put_number(char *at, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		at[i] = (char)(number >> 8 * i);
}

/* Makes all hashes right. */
static void
seal(struct file *file)
{
	struct wm_buf hashes;

	wm_buf_init(&hashes, WM_BUF_UNBOUNDED);
	for (size_t at = HEADER_BYTES; at < file->len;) {
		char *section = file->bytes + at;
		size_t len = FRAME_BYTES + (size_t)(number_at(section + 8) + 7) / 8 * 8;

		if (memcmp(section, "END.", 4) == 0)
			put_number(section + FRAME_BYTES, wm_hash_stable(wm_buf_span(&hashes)));
		uint64_t hash = wm_hash_stable(wm_span(section, len));
		put_number(section + len, hash);
		wm_put_u64(&hashes, hash);
		at += len + 8;
	}
	wm_buf_release(&hashes);
}

/* Reads each byte of the rows that a side holds (the sanitizers watch). */
static void
take_rows(const struct held *held, enum wm_join_side side)
{
	struct wm_join_held *rows = wm_join_held(held->join, side);
	struct wm_span columns[WM_KEYS_MAX];

	for (uint64_t i = 0; i < wm_join_counts(held->join).rows[side]; i++) {
		struct pairs_kept kept = pairs_kept(rows[i].bytes);

		if (kept.text.len != 0)
			(void)wm_hash_stable(kept.text);
		if (!rows[i].has_key)
			continue;
		wm_join_unpack(held->join, rows[i].key, columns);
		for (size_t column = 0; column < held->keys_count; column++)
			(void)wm_hash_stable(columns[column]);
	}
	free(rows);
}

/* Decodes all that can be, and lets go what is held. False if it was refused. */
static bool
look_into(const struct file *file)
{
	struct contents contents;
	struct held held;
	struct wm_err err = { 0 };
	struct wm_window_row row;
	struct wm_sort_record record;
	struct wm_lag_group group;
	struct wm_windows windows;
	bool has_windows;

	if (pwrite(memory_fd, file->bytes, file->len, 0) != (ssize_t)file->len ||
		ftruncate(memory_fd, (off_t)file->len) == -1)
		return false;
	if (!contents_load(&contents, path, &err))
		return err.code == WM_ERR_NONE;
	bool is_open = held_open(&contents, &held, &err);
	if (is_open) {
		if (held.windowing != NULL) {
			(void)wm_windowing_open_count(held.windowing);
			wm_windowing_advance(held.windowing, WM_TIME_END);
			while (wm_windowing_next(held.windowing, &row))
				;
		} else if (held.sessions != NULL) {
			(void)wm_sessions_open_count(held.sessions);
			wm_sessions_advance(held.sessions, WM_TIME_END);
			while (wm_sessions_next(held.sessions, &row))
				;
		} else if (held.sort != NULL) {
			wm_sort_advance(held.sort, WM_TIME_END);
			while (wm_sort_next(held.sort, &record))
				;
		} else if (held.join != NULL) {
			take_rows(&held, WM_JOIN_LEFT);
			take_rows(&held, WM_JOIN_RIGHT);
		} else if (held.lag != NULL) {
			while (wm_lag_next(held.lag, &group))
				;
		}
		held_close(&held);
	} else if (err.code != WM_ERR_IO) {
		is_open = true; /* which is not what the tests want */
	}
	if (!held_windows(&contents, &windows, &has_windows, &err))
		is_open = false;
	contents_release(&contents);
	return is_open;
}

/* Each byte of each payload, in turn, as other bytes. */
static void
forge(const char *name)
{
	static const unsigned char other[] = { 0x00, 0x01, 0x7F, 0x80, 0xFF };
	static struct file whole, forged;
	size_t refused = 0, count = 0;

	read_file(name, &whole);
	tap_ok(whole.len > 0 && look_into(&whole), "%s", name);
	for (size_t at = HEADER_BYTES; at < whole.len; at += 8) {
		size_t len = (size_t)number_at(whole.bytes + at + 8), begin = at + FRAME_BYTES;

		if (memcmp(whole.bytes + at, "END.", 4) == 0)
			break;
		for (size_t i = begin; i < begin + len; i++) {
			for (size_t j = 0; j < sizeof(other); j++) {
				memcpy(&forged, &whole, sizeof(whole));
				forged.bytes[i] = (char)other[j];
				seal(&forged);
				refused += !look_into(&forged);
				count++;
			}
		}
		at += FRAME_BYTES + (len + 7) / 8 * 8;
	}
	tap_ok(count > 1000 && refused > 100 && refused < count, "forged: refused, or read as something else");
}

/* The payload that ends early, and one of a later version. */
static void
cut(const char *name)
{
	static struct file whole, forged;
	bool is_refused = true, is_newer = true;

	read_file(name, &whole);
	for (size_t at = HEADER_BYTES; at < whole.len && memcmp(whole.bytes + at, "END.", 4) != 0;) {
		size_t len = (size_t)number_at(whole.bytes + at + 8);

		memcpy(&forged, &whole, sizeof(whole));
		forged.bytes[at + 4] = 2;
		seal(&forged);
		is_newer = is_newer && !look_into(&forged);
		/* As long as the padded length stays, so does the rest of the file. */
		memcpy(&forged, &whole, sizeof(whole));
		if (len % 8 != 1) {
			put_number(forged.bytes + at + 8, len - 1);
			seal(&forged);
			is_refused = is_refused && !look_into(&forged);
		}
		at += FRAME_BYTES + (len + 7) / 8 * 8 + 8;
	}
	tap_ok(is_refused, "cut short");
	tap_ok(is_newer, "of a newer version");
}

int
main(void)
{
	static const char *const names[] = { "window", "sliding", "sessions", "complete", "dedup", "sort", "join",
		"lag", "stamp" };

	memory_fd = memfd_create("checkpoint", MFD_CLOEXEC);
	tap_ok(memory_fd != -1, "a file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory_fd);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		forge(names[i]);
		cut(names[i]);
	}
	close(memory_fd);
	return tap_done();
}
