/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ndjson - JSON objects, one a line: whole validation, and members by path.
 *
 * simdjson finds the structure of a batch of lines at once (and checks UTF-8
 * and control characters); the walk over that structure is ours and checks the
 * rest: grammar of objects, arrays, numbers, literals and escapes, the depth,
 * and that nothing stands behind the object. Each line is judged for itself,
 * whatever stands in its neighbours, and whichever columns are asked for.
 *
 * A number may have any size. A \u escape that is half of a surrogate pair is
 * well-formed JSON: it is read as the three bytes that it would have in UTF-8
 * (WTF-8), so that two of them differ, and is written as the escape again. An
 * object has at most WM_COLUMNS_MAX members, as each may become a column.
 */
#ifndef WM_RECORD_NDJSON_H
#define WM_RECORD_NDJSON_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/span.h"
#include "lib/base/value.h"
#include "lib/record/record.h"

/* Text of one batch, unless a single line is longer. */
#define WM_NDJSON_BYTES_MAX ((size_t)32 << 10)

/* Bytes behind a batch that must be readable; what they hold does not matter. */
#define WM_NDJSON_SLACK 64

struct wm_ndjson;

/* The columns are copied. */
struct wm_ndjson *wm_ndjson_new(const struct wm_column *columns, size_t columns_count);
void wm_ndjson_free(struct wm_ndjson *ndjson);

/* A new batch: whole lines, of which the last may lack its line feed. Borrowed until the next batch. */
void wm_ndjson_batch(struct wm_ndjson *ndjson, struct wm_span lines);

enum wm_ndjson_result {
	WM_NDJSON_END,    /* of the batch */
	WM_NDJSON_RECORD, /* the fields are set */
	WM_NDJSON_BLANK,  /* nothing but blanks */
	WM_NDJSON_MALFORMED,
};

struct wm_ndjson_line {
	struct wm_span raw; /* with its line feed, if it has one */
	const char *wrong;  /* of a malformed line: what, static */
	size_t wrong_at;    /* and where: bytes from the begin of the line; 0 if that is not known */
};

/*
 * The next line. fields has one value for each column; texts are borrowed until
 * the next call. A member of a column's whole name goes before its path; of
 * repeated members the last counts.
 */
enum wm_ndjson_result wm_ndjson_next(struct wm_ndjson *ndjson, struct wm_ndjson_line *line, struct wm_value *fields);

/* Bytes of the batch behind the lines that were given. */
size_t wm_ndjson_left(const struct wm_ndjson *ndjson);

/* Whether any line had the column. */
bool wm_ndjson_seen(const struct wm_ndjson *ndjson, size_t column);

#endif
