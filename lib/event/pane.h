/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pane - one writing of a window: when in its life, and the how manieth.
 *
 * Panes of a window and key follow early* on-time? late* and are counted from
 * 0. An early pane comes before the window is complete, the on-time pane when it is, a late
 * pane when a record reaches it after that, within the allowed lateness. A window that is born after its
 * completion has a late pane with index 0 (Beam, semantics of panes).
 */
#ifndef WM_EVENT_PANE_H
#define WM_EVENT_PANE_H

#include <stdbool.h>
#include <stdint.h>

enum wm_pane_timing { WM_PANE_EARLY, WM_PANE_ON_TIME, WM_PANE_LATE };

/* "early", "on-time", "late". */
const char *wm_pane_timing_name(enum wm_pane_timing timing);

/* What was asked for. All zero: each window is written once, when it is complete. */
struct wm_pane_options {
	int64_t allowed_lateness_us; /* how long a complete window still takes records: until end + this <= watermark */
	bool is_discarding;          /* a pane holds what is new since the one before; else everything */
	uint64_t early_rows; /* an early pane after so many records of a window and key since its last pane; 0: none */
	int64_t early_period_us; /* early panes of what changed when the highest event time enters a new multiple; 0: none */
};

/* Whether a window can be written more than once. */
static inline bool
wm_pane_options_many(const struct wm_pane_options *options)
{
	return options->allowed_lateness_us > 0 || options->early_rows > 0 || options->early_period_us > 0;
}

#endif
