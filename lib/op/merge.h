/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - late rows folded into a finished table.
 *
 * The late rows are held; the table (MAIN) is streamed, twice: the first time
 * everything that can go wrong is found, the second time it is written. So
 * a merge is made as a whole or not at all.
 *
 *     wm_merge_hold()    each late row
 *     wm_merge_check()   each row of MAIN
 *     wm_merge_settle()  all were checked
 *     wm_merge_take()    each row of MAIN again, then wm_merge_end();
 *                        after each, wm_merge_next() gives the rows that are to be written
 *
 * By keys: late rows of one key become one row, by the rules of their columns,
 * and so does a row of MAIN with the late row of its key. Late rows that MAIN
 * does not have stand among themselves in the order of their keys, each before
 * the first row of MAIN with a greater key as long as MAIN has been in
 * order, the rest at the end.
 *
 * Keys are the same if each column is: the same instant where both are ISO 8601
 * times, else the same bytes (and JSON type). Their order is, column by column:
 * null, the empty text, numbers by value, times, other texts as bytes. Where MAIN
 * is not in that order from its first row to its last, but is in the order
 * in which wm-window writes keys (times, all else as bytes), that one counts.
 *
 * By range: rows of MAIN with from <= time < to give way to the late rows,
 * which stand as they were held in place of the first of them; where there was
 * none, before the first row at or behind the range as long as MAIN has been in
 * order of time.
 *
 * States of sessions (they have the column WM_MERGE_GAP) are found by their spans: those that overlap or touch, with the same other
 * keys, become one, in MAIN too, from the earliest start to the latest end. So all rows are held until wm_merge_end(), and come
 * in the order of their keys.
 *
 * Rows are lines in one layout (fields.h). Nothing is read or written here.
 */
#ifndef WM_OP_MERGE_H
#define WM_OP_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/base/value.h"
#include "lib/record/fields.h"
#include "lib/time/zone.h"

/* What becomes of a column where two rows are one. An empty value leaves the other as it is, but for the first two. */
enum wm_merge_rule {
	WM_MERGE_EQUAL = 0, /* it must be the same in both */
	WM_MERGE_KEY,
	WM_MERGE_SUM,  /* exact */
	WM_MERGE_MIN,  /* the order of values of wm_reading_compare() */
	WM_MERGE_MAX,  /* the same */
	WM_MERGE_LAST, /* the late one */
	WM_MERGE_STATE /* states as text (partial.h) */
};

struct wm_merge_options {
	size_t keys_count;
	bool is_of_states; /* all columns but keys are states */
	bool is_of_range;  /* from_us and to_us count, keys_count does not */
	bool looks_at_all; /* all rows are taken apart when they are held or checked: for columns that NDJSON brings later */
	bool tells_nulls; /* wm_merge_print() gives texts that stand for missing values (the columns' nulls) as null */
	int64_t from_us, to_us;     /* half open; INT64_MIN, INT64_MAX: without this end */
	const struct wm_zone *zone; /* of key times that carry none; borrowed */
	size_t bytes_max;           /* of late rows */
	size_t start_key, end_key;  /* of states: which keys are window_start and window_end; SIZE_MAX: none is */
};

/* A row; its texts are borrowed for the call. */
struct wm_merge_row {
	const struct wm_value *keys; /* keys_count of them */
	int64_t time_us;             /* by range */
	struct wm_span line;         /* whole, in the layout of the columns */
	const char *input;           /* where it stands, for messages; must outlive the merge */
	uint64_t number;             /* of its line, from 1 */
};

/* A column beside the states: the gap that makes rows one session, the same in all rows. It is no result. */
#define WM_MERGE_GAP "_gap"

struct wm_merge;

/* The columns are borrowed; those of CSV are all there. */
struct wm_merge *wm_merge_new(struct wm_columns *columns, const struct wm_merge_options *options);
void wm_merge_free(struct wm_merge *merge);

/* The rule of a column; the others have WM_MERGE_EQUAL, or WM_MERGE_STATE where all are states. */
void wm_merge_set_rule(struct wm_merge *merge, size_t column, enum wm_merge_rule rule);

/* Fails with WM_ERR_DATA (rows that do not go together, no number to sum, no state, outside of the range) or WM_ERR_LIMIT. */
WM_MUST_CHECK bool wm_merge_hold(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err);

/* Fails with WM_ERR_DATA: the same, and a key that MAIN has twice (seen where the rows are neighbours, or a late row has that key). */
WM_MUST_CHECK bool wm_merge_check(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err);

/* Fails with WM_ERR_DATA where sessions cannot be joined. */
WM_MUST_CHECK bool wm_merge_settle(struct wm_merge *merge, struct wm_err *err);

/* Fails (WM_ERR_IO) only where MAIN is not what was checked. */
WM_MUST_CHECK bool wm_merge_take(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err);
void wm_merge_end(struct wm_merge *merge);

/* The next line to write, borrowed until the next call of the merge or, of a row of MAIN, as long as that is; false if there is none. */
bool wm_merge_next(struct wm_merge *merge, struct wm_span *line);

/*
 * Of states: the columns of a row with the results in place of its states, one
 * value for each column, borrowed until the next call of the merge. A rate needs the columns window_start and
 * window_end. format: of computed fractions, or NULL. Fails with WM_ERR_DATA.
 */
WM_MUST_CHECK bool wm_merge_print(struct wm_merge *merge, struct wm_span line, const char *format,
	const struct wm_value **values, struct wm_err *err);

/* Whether a column is left out of results: the gap of sessions. */
bool wm_merge_leaves_out(const struct wm_merge *merge, size_t column);

/* Bytes that the rows held take. */
size_t wm_merge_bytes(const struct wm_merge *merge);

#endif
