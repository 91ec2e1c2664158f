/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_contents - bytes as a checkpoint whose hashes are right, decoded as wm-checkpoint does, held to three laws:
 *
 *   - each section is refused with a message, or taken;
 *   - an operator that takes the state lets all of it go at the end of time;
 *   - what is refused says which file it is.
 *
 * Every tool's operator, sources, guards, trigger, inputs, outputs and ledger are reached so: the options in the file
 * say which there are.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/contents.h"
#include "cmd/held.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/seal.h"

/* More rows than that are not asked for: a window of a year that slides by a microsecond has many. */
#define ROWS_MAX 5000

static void
drain(struct held *held)
{
	struct wm_window_row window;
	struct wm_sort_record record;
	struct wm_join_row row;
	size_t left = ROWS_MAX;

	if (held->windowing != NULL) {
		wm_windowing_advance(held->windowing, WM_TIME_END);
		while (left-- > 0 && wm_windowing_next(held->windowing, &window))
			;
	}
	if (held->sessions != NULL) {
		wm_sessions_advance(held->sessions, WM_TIME_END);
		while (left-- > 0 && wm_sessions_next(held->sessions, &window))
			;
	}
	if (held->sort != NULL) {
		wm_sort_advance(held->sort, WM_TIME_END);
		while (left-- > 0 && wm_sort_next(held->sort, &record))
			;
	}
	for (int side = 0; held->join != NULL && side < WM_JOIN_SIDES; side++) {
		wm_join_advance(held->join, (enum wm_join_side)side, WM_TIME_END);
		while (wm_join_next(held->join, &row))
			;
	}
	if (held->dedup != NULL)
		wm_dedup_advance(held->dedup, WM_TIME_END);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = wm_malloc(size == 0 ? 1 : size), path[64];
	int fd = memfd_create("st", MFD_CLOEXEC);
	struct contents contents;
	struct held held;
	struct wm_err err = { 0 };

	if (size > 0)
		memcpy(bytes, data, size);
	seal(bytes, size);
	expect(fd >= 0 && write(fd, bytes, size) == (ssize_t)size, "a file in memory");
	free(bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (contents_load(&contents, path, &err)) {
		if (held_open(&contents, &held, &err)) {
			drain(&held);
			held_close(&held);
		}
		contents_release(&contents);
	}
	expect(err.code == 0 || strncmp(err.message, path, strlen(path)) == 0, "a refusal names the file");
	close(fd);
	return 0;
}
