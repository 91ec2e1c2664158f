/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stamps - columns of wm's own in records that pass through.
 *
 * A record stands as it came, with the columns added behind its last field, or
 * replaced where it has them already. In CSV the header says which it has; an
 * NDJSON object may differ from its neighbours, and is looked at by itself.
 */
#ifndef WM_RECORD_STAMPS_H
#define WM_RECORD_STAMPS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"
#include "lib/base/value.h"
#include "lib/record/fields.h"
#include "lib/record/header.h"
#include "lib/record/writer.h"

/* Fields are for reading. */
struct wm_stamps {
	struct wm_columns columns; /* those of the records, and behind them the ones that are added */
	size_t *places;            /* of the stamps, among the columns */
	size_t count;
	size_t own_count; /* columns that records of CSV bring with them */
	bool adds_only;   /* records of CSV have none of them */
	bool is_plain;    /* stamps need no quotes */
	struct wm_fields fields;
	struct wm_buf plain; /* of a record of CSV that is to be changed: with empty fields for what is added */
};

/* names: of the stamps, none twice. header: the columns of the records; empty for NDJSON. All are copied. */
void wm_stamps_init(struct wm_stamps *stamps, const struct wm_row_format *format, const struct wm_header *header,
	const struct wm_span *names, size_t count);
void wm_stamps_release(struct wm_stamps *stamps);

/* The header line of the stream with those that are added; appended to out. */
void wm_stamps_put_header(const struct wm_stamps *stamps, struct wm_span line, struct wm_buf *out);

/*
 * A record with a value for each stamp, which is a time or number in our own words, or null; appended to out (born WM_BUF_UNBOUNDED). line is whole, in the layout of the stream, with its line
 * end. is_new: it is known to have none of the columns; only asked of NDJSON.
 */
void wm_stamps_put(
	struct wm_stamps *stamps, struct wm_span line, bool is_new, const struct wm_value *values, struct wm_buf *out);

/* The same where they go behind a line of CSV (wm_stamps_are_behind()), to a place with room for wm_stamps_behind_bytes(). Returns the place behind it. */
bool wm_stamps_are_behind(const struct wm_stamps *stamps);
size_t wm_stamps_behind_bytes(const struct wm_stamps *stamps, struct wm_span line, const struct wm_value *values);
char *wm_stamps_put_behind(
	const struct wm_stamps *stamps, struct wm_span line, const struct wm_value *values, char *to);

/* Takes a record of the stream apart into stamps->fields, those that are added empty; borrowed until the next call. */
void wm_stamps_split(struct wm_stamps *stamps, struct wm_span line);

/*
 * A record with further columns behind its own, whatever these are called: fields of CSV before the line end, members of NDJSON before the closing
 * brace; appended. The names are for NDJSON.
 */
void wm_record_append(struct wm_span line, const struct wm_row_format *format, const struct wm_span *names,
	const struct wm_value *values, size_t count, struct wm_buf *out);

/* A record in which one column has a value and no other has: punctuation. columns_count is for CSV, and at its column place. */
void wm_lone_put(struct wm_buf *out, const struct wm_row_format *format, size_t columns_count, size_t place,
	struct wm_span name, const struct wm_value *value);

#endif
