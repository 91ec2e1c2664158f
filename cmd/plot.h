/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot - a histogram for a terminal (wm-lag --plot).
 *
 * A bar for each size class, three a decade, in linear length; the longest
 * fills the width. Empty classes below the least size are left out.
 */
#ifndef WM_CMD_PLOT_H
#define WM_CMD_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/op/lag.h"

struct plot_screen {
	size_t width; /* in places */
	bool is_utf8; /* else nothing but ASCII is written */
	bool has_colour;
};

/* Appends it to out (born WM_BUF_UNBOUNDED); name is its heading. The series has values. */
void plot_series(
	const char *name, const struct wm_lag_series *series, const struct plot_screen *screen, struct wm_buf *out);

#endif
