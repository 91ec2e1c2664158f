/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields - all fields of a record, and the record with some of them changed.
 *
 * A reader hands out the columns that were asked for. Where whole rows are
 * compared or changed, the columns are those that the rows have: of CSV the
 * names of the header, of NDJSON the members of the objects, in order of first
 * mention. A record that is taken apart says what each column is, and is put
 * together again with only the changed fields rewritten.
 *
 * Records are whole lines in the layout of the stream, as wm_reader_render()
 * gives them. In NDJSON a column is a member of the outermost object: there are
 * no paths here. Of repeated members the last counts, and is the one that changes.
 */
#ifndef WM_RECORD_FIELDS_H
#define WM_RECORD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/value.h"
#include "lib/record/cut.h"
#include "lib/record/nulls.h"
#include "lib/record/writer.h"

/* Fields are for reading. */
struct wm_columns {
	struct wm_row_format format;
	struct wm_span *names; /* the texts are copies */
	size_t count;
	size_t capacity;
	uint32_t *slots; /* a hash table: 0, or the number of a column, from 1, the first of its name */
	size_t slots_count;
	bool is_settled;
	size_t settled_count;         /* where is_settled */
	const struct wm_nulls *nulls; /* texts that stand for missing values; borrowed; NULL: none; set by the owner */
	bool are_lines;               /* set by the owner: lines of text as CSV, whose quotes were not in them */
};

void wm_columns_init(struct wm_columns *columns, const struct wm_row_format *format);
void wm_columns_release(struct wm_columns *columns);

/* One more column behind the others, whatever it is called: CSV headers may have a name twice. The name is copied. */
void wm_columns_append(struct wm_columns *columns, struct wm_span name);

/* The names of a CSV header line (one that a reader has accepted). */
void wm_columns_append_header(struct wm_columns *columns, struct wm_span line);

/* Index of the first column of that name; false if there is none. */
bool wm_columns_find(const struct wm_columns *columns, struct wm_span name, size_t *column);

/*
 * These are the columns: of further members that records of NDJSON have, no more than WM_COLUMNS_EXTRA are remembered from record to record, as
 * an input may have new ones without end.
 */
void wm_columns_settle(struct wm_columns *columns);
#define WM_COLUMNS_EXTRA 256

/* Forgets the columns behind the first count ones. Before the next record is taken apart. */
void wm_columns_trim(struct wm_columns *columns, size_t count);

/* A record taken apart; fields are for reading. */
struct wm_fields {
	struct wm_columns *columns; /* borrowed; of NDJSON it grows with the records */
	struct wm_span line;
	struct wm_field *fields; /* of the columns that there were when it was taken apart, and those set since */
	size_t count;
	size_t capacity;
	bool is_changed;
	struct wm_cut cut;
	struct wm_buf said;    /* what quoted fields say */
	struct wm_buf scratch; /* of one of them */
	struct wm_arena set;   /* texts of changed fields */
};

struct wm_field {
	struct wm_value value;
	struct wm_span raw; /* where it stands in the line; data NULL: the record has no such member */
	bool is_set;
};

void wm_fields_init(struct wm_fields *fields, struct wm_columns *columns);
void wm_fields_release(struct wm_fields *fields);

/*
 * Takes a record apart, borrowed until the next one. It is well-formed: a reader has accepted it. A CSV record has as many fields as there are columns
 * (asserted).
 */
void wm_fields_split(struct wm_fields *fields, struct wm_span line);

/* Whether a column has a value, and no other has one. */
bool wm_fields_is_lone(const struct wm_fields *fields, size_t column);

/* What a column says as it came; WM_KIND_NULL where the record lacks it. Borrowed until the next record, or until it is set. */
struct wm_value wm_fields_at(const struct wm_fields *fields, size_t column);

/* The same, WM_KIND_NULL too where a text stands for a missing value (columns->nulls), unless it was set. */
struct wm_value wm_fields_value(const struct wm_fields *fields, size_t column);

/* Changes a column; the text is copied. */
void wm_fields_set(struct wm_fields *fields, size_t column, const struct wm_value *value);

/*
 * What a record says but for some columns, appended. Of CSV, name and text of each other one, as they stand there and in that order, told apart; of
 * NDJSON the object as it stands there, without these members: what it was before they were put behind the others.
 */
void wm_fields_put_others(const struct wm_fields *fields, bool (*is_left_out)(struct wm_span name), struct wm_buf *out);

/* The record with its line end, appended to out (born WM_BUF_UNBOUNDED): what was not set stands as it came. */
void wm_fields_render(const struct wm_fields *fields, struct wm_buf *out);

#endif
