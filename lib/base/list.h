/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list - lists as a command line writes them: "a,b,name=sum:c".
 *
 * A backslash takes its meaning from the separator behind it: "a\\,b" is one part.
 */
#ifndef WM_BASE_LIST_H
#define WM_BASE_LIST_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"

/*
 * Cuts the next part off *rest at the first unescaped separator, which is
 * dropped. The part keeps its escapes. False when *rest had ended: its data is
 * NULL then, which is how a caller tells "a," (two parts, the second empty) from "a".
 */
bool wm_list_next(struct wm_span *rest, char separator, struct wm_span *part);

/* The text with its escapes undone: a backslash is dropped and what stands behind it kept. Appended to out. */
void wm_list_unescape(struct wm_span text, struct wm_buf *out);

#endif
