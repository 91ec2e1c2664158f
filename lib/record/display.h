/* SPDX-License-Identifier: Apache-2.0 */
/*
 * display - rows for eyes: a table with aligned columns.
 *
 * Numbers stand right, texts left, a rule parts the header from the rows. What
 * could steer a terminal is shown as \xNN (shown.h), and a cell is cut at
 * WM_SHOWN_BYTES_MAX bytes, with an ellipsis. Wide characters take two places,
 * combining ones none.
 *
 * How wide the columns are is decided once, from the first WM_DISPLAY_ROWS_MAX
 * rows, or those that there are when the caller flushes because it is about to
 * wait. A wider cell that comes later pushes its line. With a terminal's width
 * given no line is longer: where there is no room, columns of times whose date is
 * the same in all of these rows leave it away (a later one with another date
 * shows it), and then the widest are cut until all have room (but not below 4
 * places, so that very many columns may be wider all the same).
 */
#ifndef WM_RECORD_DISPLAY_H
#define WM_RECORD_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"
#include "lib/base/value.h"

struct wm_display_options {
	size_t width; /* of the terminal, in places; 0: without limit */
	bool is_utf8; /* else nothing but ASCII is written */
};

struct wm_display;

/* The names are copied. */
struct wm_display *wm_display_new(
	const struct wm_span *names, size_t columns_count, const struct wm_display_options *options);
void wm_display_free(struct wm_display *display);

/*
 * All append what is ready to out (born WM_BUF_UNBOUNDED). A row has a value
 * for each column. wm_display_end() writes the header also if no row has come.
 */
void wm_display_put(struct wm_display *display, const struct wm_value *row, struct wm_buf *out);
void wm_display_flush(struct wm_display *display, struct wm_buf *out);
void wm_display_end(struct wm_display *display, struct wm_buf *out);

#endif
