/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shown - text from the data as a message may show it.
 *
 * A terminal must not be steered by data: control characters and bytes that are
 * no UTF-8 become \xNN.
 */
#ifndef WM_BASE_SHOWN_H
#define WM_BASE_SHOWN_H

#include "lib/base/buf.h"
#include "lib/base/span.h"

/*
 * Appends to out (born WM_BUF_UNBOUNDED) at most the first WM_SHOWN_BYTES_MAX
 * bytes of the text, whole characters only, then "..." if something was cut.
 */
void wm_shown(struct wm_span text, struct wm_buf *out);

#endif
