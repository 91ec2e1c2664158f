/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut - CSV records by the rules: where they end, and their fields.
 *
 * Finding where a record ends and cutting it into fields are two steps. The
 * first is a small machine that takes bytes as they come and knows a record
 * that is malformed or not yet complete; the second takes the complete record
 * apart. It is the way of all records that the faster scan (scan.h) leaves.
 *
 * Only LF ends a line; one CR before it, or before the end of the input, is
 * dropped. Blanks belong to their field. A quote inside an unquoted field is an
 * ordinary character.
 */
#ifndef WM_RECORD_CUT_H
#define WM_RECORD_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"

enum wm_cut_state {
	WM_CUT_FIELD_BEGIN = 0,
	WM_CUT_UNQUOTED,
	WM_CUT_QUOTED,
	WM_CUT_QUOTE_SEEN,  /* inside a quoted field: its end, or the first of two */
	WM_CUT_CR_SEEN,     /* behind the closing quote */
	WM_CUT_MALFORMED,   /* text behind a closing quote: the record goes to the end of this line */
	WM_CUT_ESCAPE,      /* these are of TSV (tsv.h): behind a backslash that may take the next byte along */
	WM_CUT_ESCAPED_CR,  /* behind a CR that was, and takes an LF along */
	WM_CUT_ESCAPED_END, /* behind a line end that was */
};

/* All zero bytes stand at the begin of a record. Fields are for reading. */
struct wm_cut_finder {
	enum wm_cut_state state;
	uint64_t lines_count; /* line feeds so far, the one that ends the record included */
	uint64_t quote_line;  /* lines_count where the last quoted field began */
};

/*
 * Takes the next bytes of a record and returns how many belong to it. *has_ended
 * is set if its line end is among them. A record that the end of the input ends
 * is malformed if its state is WM_CUT_QUOTED.
 */
size_t wm_cut_find(struct wm_cut_finder *finder, char delimiter, struct wm_span text, bool *has_ended);

/* Whether a record that ends here with the input never ends: inside quotes, or behind a line end that belongs to a field. */
static inline bool
wm_cut_is_open(enum wm_cut_state state)
{
	return state == WM_CUT_QUOTED || state == WM_CUT_ESCAPED_CR || state == WM_CUT_ESCAPED_END;
}

/* A record's text without its line end: CR LF, LF, or a CR that stands at the end of the input. */
struct wm_span wm_cut_content(struct wm_span raw);

/* The fields of one record, as they stand there, quotes included. All zero bytes have none. Fields are for reading. */
struct wm_cut {
	struct wm_span *fields; /* borrowed from the record; at most WM_COLUMNS_MAX are kept */
	size_t count;           /* of all */
	size_t capacity;
};

/* Cuts a record that wm_cut_find() found well-formed, without its line end; an empty text has no fields. */
void wm_cut_record(struct wm_cut *cut, char delimiter, struct wm_span content);
void wm_cut_release(struct wm_cut *cut);

/* One more field. */
void wm_cut_keep(struct wm_cut *cut, struct wm_span field);

/*
 * What a field says: without the quotes around it, doubled ones inside made
 * one. It points into the field, or, where a quote was doubled, into said
 * (born WM_BUF_UNBOUNDED), whose content it replaces.
 */
struct wm_span wm_cut_unquote(struct wm_span field, struct wm_buf *said);

/* Whether a text stands in a record, with a quote before it. */
static inline bool
wm_cut_is_quoted(struct wm_span record, struct wm_span text)
{
	return text.data > record.data && text.data < record.data + record.len && text.data[-1] == '"';
}

#endif
