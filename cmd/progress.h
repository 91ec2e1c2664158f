/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress - the bar on a terminal, for long work on files.
 *
 *     42% [########------------] 1234567 rows, 514k/s, 40 late, watermark 2025-11-29T00:00:00Z, 0:12 left
 *
 * One line, redrawn in place at most ten times a second; what the terminal has
 * no room for is left out, the least telling first, so that it never wraps. No
 * colours, and nothing that comes from data but numbers and times. The module
 * reads no clock and writes nothing: it appends to a buffer what is to be
 * written to the terminal in one piece.
 *
 * The bar must be hidden before anything else is written to that terminal:
 * messages, progress objects, results where they go there too. It comes back by itself.
 */
#ifndef WM_CMD_PROGRESS_H
#define WM_CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* What decides whether there is a bar. */
struct progress_facts {
	bool is_forced; /* --progress bar */
	bool is_stderr_terminal;
	bool is_stdout_terminal;
	bool is_input_regular; /* each input is a regular file */
	uint64_t bytes_total;  /* of all inputs, from where reading begins; 0: not known */
	const char *term;      /* TERM of the environment; NULL: not set */
	bool is_utf8;          /* the terminal takes UTF-8 */
};

/* Fields are for reading. */
struct progress {
	bool is_wanted;
	bool is_utf8;
	bool is_visible;
	uint64_t bytes_total;
	int64_t started_us;
	int64_t due_us; /* when it is drawn next */
};

/* How far the work has come. */
struct progress_status {
	uint64_t bytes;
	uint64_t rows;
	uint64_t rows_late;
	bool has_watermark;   /* rows can be late */
	int64_t watermark_us; /* WM_TIME_NONE: none yet */
};

/* now_us: a clock that never jumps, the same in all calls. There is nothing to release. */
void progress_init(struct progress *progress, const struct progress_facts *facts, int64_t now_us);

/* Whether progress_show() would draw: not where no bar is wanted, not in the first two seconds, not for 0.1 s after it did. */
static inline bool
progress_is_due(const struct progress *progress, int64_t now_us)
{
	return progress->is_wanted && now_us >= progress->due_us;
}

/* Draws the bar, if it is due. columns: of the terminal; 0: not known, so 80. */
void progress_show(struct progress *progress, const struct progress_status *status, unsigned columns, int64_t now_us,
	struct wm_buf *out);

/* Wipes the bar, if it is visible. */
void progress_hide(struct progress *progress, struct wm_buf *out);

#endif
