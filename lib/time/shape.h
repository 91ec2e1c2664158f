/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape - what pattern a text of a time may have: for messages about a text that cannot be read.
 */
#ifndef WM_TIME_SHAPE_H
#define WM_TIME_SHAPE_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"

/* Of a date with numbers alone and the year last, which comes first. */
enum wm_shape_order { WM_SHAPE_MONTH_FIRST = 0, WM_SHAPE_DAY_FIRST };

/*
 * Appends a pattern (see instant.h) by the looks of a text: "2025/11/29 10:00" is "%Y/%m/%d %H:%M". False, and nothing appended, for a
 * text that has no date, or one that is unlike all that is known. It is a guess: whether the pattern reads the text is for the caller to
 * try. *is_ordered: the text does not tell whether the month or the day comes first, and has been taken in this order.
 */
bool wm_shape_guess(struct wm_span text, enum wm_shape_order order, bool *is_ordered, struct wm_buf *out);

#endif
