/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/dialect.h"

#include "lib/record/tsv.h"

size_t
wm_dialect_find(struct wm_cut_finder *finder, struct wm_dialect dialect, struct wm_span text, bool *has_ended)
{
	if (dialect.marks == WM_MARKS_QUOTES)
		return wm_cut_find(finder, dialect.delimiter, text, has_ended);
	return wm_tsv_find(finder, dialect.marks == WM_MARKS_ESCAPES, text, has_ended);
}

void
wm_dialect_cut(struct wm_cut *cut, struct wm_dialect dialect, struct wm_span content)
{
	if (dialect.marks == WM_MARKS_QUOTES)
		wm_cut_record(cut, dialect.delimiter, content);
	else
		wm_tsv_cut(cut, dialect.marks == WM_MARKS_ESCAPES, content);
}

struct wm_span
wm_dialect_read(struct wm_dialect dialect, struct wm_span field, struct wm_buf *said)
{
	switch (dialect.marks) {
	case WM_MARKS_QUOTES:
		return wm_cut_unquote(field, said);
	case WM_MARKS_ESCAPES:
		return wm_tsv_read(field, said);
	case WM_MARKS_NONE:
		break;
	}
	return field;
}
