/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held - a tool's own state, out of a checkpoint and without the tool.
 *
 * The operator is made anew from the options that stand in the file, and decodes STAT itself. So what is said of it is
 * what the tool would do: what it lets go at the end of time is what it holds. Options that cannot be are damage.
 */
#ifndef WM_CMD_HELD_H
#define WM_CMD_HELD_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/contents.h"
#include "lib/op/dedup.h"
#include "lib/op/join.h"
#include "lib/op/lag.h"
#include "lib/op/sessions.h"
#include "lib/op/sort.h"
#include "lib/op/windowing.h"

/* Fields are for reading. At most one of the operators is there: none for wm-stamp, which has none, and where the state begins anew. */
struct held {
	struct wm_agg *agg;
	struct wm_windows windows;
	struct wm_pane_options panes;
	size_t keys_count;
	enum wm_window_mode mode;
	struct wm_windowing *windowing;
	struct wm_sessions *sessions;
	struct wm_sort *sort;
	struct wm_dedup *dedup;
	struct wm_join *join;
	struct wm_buf waiting; /* of wm-join: rows that wait for the columns of a side, as cmd/pairs keeps them */
	struct wm_lag *lag;
	bool has_told;   /* wm-stamp: */
	int64_t told_us; /* the watermark that was written last, or WM_TIME_NONE */
};

/* The contents have to outlive it. On failure (WM_ERR_IO) there is nothing to close. */
WM_MUST_CHECK bool held_open(struct contents *c, struct held *held, struct wm_err *err);
void held_close(struct held *held);

/*
 * All windows of mode update, of which the operator lets go only what changed: it becomes one of mode complete, which lets go
 * everything at each advance but the last. The state is read anew; on failure (WM_ERR_IO) there is the close alone.
 */
WM_MUST_CHECK bool held_turn_complete(struct contents *c, struct held *held, struct wm_err *err);

/* The windows of wm-window; *has_windows is false where there are none: sessions, another tool. */
WM_MUST_CHECK bool held_windows(struct contents *c, struct wm_windows *windows, bool *has_windows, struct wm_err *err);

/* "FILE: damaged: section OPTS does not hold what belongs in it"; false. */
bool held_fail_options(const struct contents *c, struct wm_err *err);

#endif
