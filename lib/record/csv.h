/*
 * csv - one CSV record by the rules, through libcsv.
 *
 * Finding where a record ends and cutting it into fields are two steps. The
 * first is a small machine that takes bytes as they come and knows a record
 * that is malformed or not yet complete; the second gives the complete record
 * to libcsv. It is the way of all records that hold quotes, and the judge of
 * the faster scan.
 *
 * Only LF ends a line; one CR before it, or before the end of the input, is
 * dropped. Blanks belong to their field. A quote inside an unquoted field is an
 * ordinary character.
 */
#ifndef WM_RECORD_CSV_H
#define WM_RECORD_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/span.h"

enum wm_csv_state {
	WM_CSV_FIELD_BEGIN = 0,
	WM_CSV_UNQUOTED,
	WM_CSV_QUOTED,
	WM_CSV_QUOTE_SEEN, /* inside a quoted field: its end, or the first of two */
	WM_CSV_CR_SEEN,    /* behind the closing quote */
	WM_CSV_MALFORMED,  /* text behind a closing quote: the record goes to the end of this line */
};

/* All zero bytes stand at the begin of a record. Fields are for reading. */
struct wm_csv_finder {
	enum wm_csv_state state;
	uint64_t lines_count; /* line feeds so far, the one that ends the record included */
	uint64_t quote_line;  /* lines_count where the last quoted field began */
};

/*
 * Takes the next bytes of a record and returns how many belong to it. *has_ended
 * is set if its line end is among them. A record that the end of the input ends
 * is malformed if its state is WM_CSV_QUOTED.
 */
size_t wm_csv_find(struct wm_csv_finder *finder, char delimiter, struct wm_span text, bool *has_ended);

/* A record's text without its line end: CR LF, LF, or a CR that stands at the end of the input. */
struct wm_span wm_csv_content(struct wm_span raw);

struct wm_csv;

struct wm_csv *wm_csv_new(void);
void wm_csv_free(struct wm_csv *csv);

/*
 * The fields of a record that wm_csv_find() found well-formed, without its line
 * end; an empty text has none. Returns how many; at most WM_COLUMNS_MAX of them are kept.
 * They are valid until the next call.
 */
size_t wm_csv_split(struct wm_csv *csv, char delimiter, struct wm_span content, const struct wm_span **fields);

#endif
