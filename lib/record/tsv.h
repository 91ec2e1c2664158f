/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tsv - records of TSV: where they end, their fields, what these say, and how a
 * value is written.
 *
 * There are no quotes. A backslash takes the byte behind it along: before t, n,
 * r or another backslash both stand for a tab, LF, CR or backslash; before a
 * real tab, LF, CR or CR LF they stand for that, which parts nothing then;
 * before any other byte, and at the end of a field, it is itself. So it is in
 * what PostgreSQL (COPY) and MySQL (-B) write.
 *
 * Without escapes a backslash is a letter: each tab and each line end parts.
 */
#ifndef WM_RECORD_TSV_H
#define WM_RECORD_TSV_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"
#include "lib/record/cut.h"

/* As wm_cut_find(): quote_line is the last line whose end a backslash has taken along. */
size_t wm_tsv_find(struct wm_cut_finder *finder, bool has_escapes, struct wm_span text, bool *has_ended);

/* As wm_cut_record(). */
void wm_tsv_cut(struct wm_cut *cut, bool has_escapes, struct wm_span content);

/* What a field says. It is the field, or, where a backslash stands for another byte, in said (born WM_BUF_UNBOUNDED), whose content it replaces. */
struct wm_span wm_tsv_read(struct wm_span field, struct wm_buf *said);

/*
 * A value as a field: tabs, line ends, and the backslashes that would be read as escapes, get one before them. One value is
 * written in one way, whatever it was read from. Appended to out (born WM_BUF_UNBOUNDED).
 */
void wm_tsv_put(struct wm_buf *out, struct wm_span value);

/* Whether a text ends in a backslash that would take along what is put behind it. */
bool wm_tsv_is_unfinished(struct wm_span text);

/* Whether a field without escapes can hold a value. A CR at its end could be taken for a part of the line end. */
bool wm_tsv_is_literal(struct wm_span value);

#endif
