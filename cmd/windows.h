/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows - window sizes as the command line gives them.
 *
 * What cannot be a window ends the process with status 2, or, where it was not
 * the command line that gave it (windows_read_...), is an error (WM_ERR_USAGE);
 * option is its name for the message.
 */
#ifndef WM_CMD_WINDOWS_H
#define WM_CMD_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cli.h"
#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/event/pane.h"
#include "lib/event/window.h"

/* A fixed length above zero. */
int64_t windows_length_us(const char *option, struct wm_span text);

/* The same on the grid of the epoch, where windows of the calendar would be others: those are refused. */
int64_t windows_grid_us(const char *option, struct wm_span text, const struct cli_common *common);

/* "SIZE": days, weeks, months and years follow the calendar of the common options' zone (with --compat spark they are of 24 and 168 hours). */
void windows_tumbling(struct wm_windows *windows, const char *option, const char *text, const struct cli_common *common,
	int64_t offset_us);

/* "SIZE,SLIDE". */
void windows_sliding(struct wm_windows *windows, const char *option, const char *text, int64_t offset_us);

/* "MAX,STEP". */
void windows_cumulating(struct wm_windows *windows, const char *option, const char *text, int64_t offset_us);

WM_MUST_CHECK bool windows_read_length(const char *option, struct wm_span text, int64_t *us, struct wm_err *err);
WM_MUST_CHECK bool windows_read_tumbling(struct wm_windows *windows, const char *option, const char *text,
	const struct cli_common *common, int64_t offset_us, struct wm_err *err);
WM_MUST_CHECK bool windows_read_sliding(
	struct wm_windows *windows, const char *option, const char *text, int64_t offset_us, struct wm_err *err);
WM_MUST_CHECK bool windows_read_cumulating(
	struct wm_windows *windows, const char *option, const char *text, int64_t offset_us, struct wm_err *err);

/* "100rows" or "event:10s", for --early. The others of panes stay. */
WM_MUST_CHECK bool windows_read_early(const char *text, struct wm_pane_options *panes, struct wm_err *err);

#endif
