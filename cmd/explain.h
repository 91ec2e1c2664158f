/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain - what a command will do, in words (--explain).
 *
 * The times in it are those of an example, 2025-01-01T10:02 in the zone of the
 * command, and computed by the windows and the watermark that a run would use.
 * Nothing is read.
 */
#ifndef WM_CMD_EXPLAIN_H
#define WM_CMD_EXPLAIN_H

#include "cmd/cli.h"
#include "lib/base/buf.h"
#include "lib/event/window.h"
#include "lib/op/windowing.h"

struct explain_windowing {
	const struct wm_windows *windows; /* unless they are sessions */
	const char *windows_text;         /* as typed: "5m", "1h,5m" */
	bool is_session;
	int64_t gap_us; /* of sessions; 0: each row has its own */
	const struct wm_pane_options *panes;
	enum wm_window_mode mode;
	const char *group_by;  /* as typed; NULL: none */
	const char *aggregate; /* as typed */
	const char *fill;      /* "zero", "null", "prev"; NULL: empty windows are not written */
	bool is_partial;       /* states are written instead of values */
};

/* Appends what is read as no value, as a line: nothing without --null. Of every tool. */
void explain_nulls(const struct cli_common *common, struct wm_buf *out);

/* Appends the explanation to out (born WM_BUF_UNBOUNDED): paragraphs with a word in front, 80 columns wide. */
void explain_windowing(const struct cli_common *common, const struct explain_windowing *op, struct wm_buf *out);

#endif
