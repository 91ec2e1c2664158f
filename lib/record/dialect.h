/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dialect - what the bytes of CSV and TSV mean: which byte parts the fields, and
 * how a field holds what would part it.
 *
 * CSV has quotes (cut.h), TSV has a backslash (tsv.h), or, where that was asked
 * for, nothing at all. Both are taken apart in the same three steps: where a
 * record ends, where its fields are, and what a field says.
 */
#ifndef WM_RECORD_DIALECT_H
#define WM_RECORD_DIALECT_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"
#include "lib/record/cut.h"

enum wm_marks {
	WM_MARKS_QUOTES = 0,
	WM_MARKS_ESCAPES, /* a backslash; the delimiter is a tab */
	WM_MARKS_NONE,    /* every byte stands for itself */
};

struct wm_dialect {
	char delimiter;
	enum wm_marks marks;
};

static inline bool
wm_dialect_equal(struct wm_dialect a, struct wm_dialect b)
{
	return a.delimiter == b.delimiter && a.marks == b.marks;
}

/* As wm_cut_find(). A record that the end of the input ends is malformed if wm_cut_is_open(). */
size_t wm_dialect_find(struct wm_cut_finder *finder, struct wm_dialect dialect, struct wm_span text, bool *has_ended);

/* As wm_cut_record(). */
void wm_dialect_cut(struct wm_cut *cut, struct wm_dialect dialect, struct wm_span content);

/* What a field says: as wm_cut_unquote(). */
struct wm_span wm_dialect_read(struct wm_dialect dialect, struct wm_span field, struct wm_buf *said);

#endif
