/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agg - what is computed of the rows of a group.
 *
 * A plan is a parsed list of aggregates ("count,sum:bytes,lat=avg:latency").
 * The state of one group is a cell: wm_agg_cell_bytes() bytes, aligned to 16, that the caller owns
 * and begins with wm_agg_cell_init(); what does not fit it (texts, the values of percentiles) stands in an arena
 * that lives as long as the cell. A value column has one part in the cell,
 * with what its aggregates need and no more, updated after one parse.
 *
 * Cells are mergeable: adding rows to two cells and merging them gives the
 * same as adding all rows to one, in any order (first and last: ties in event
 * time go to the cell that is merged into).
 *
 * plan.h has what a plan is, function.h the table of functions and how they
 * print, part.h what a cell holds, partial.h the state of a result as text.
 */
#ifndef WM_AGG_AGG_H
#define WM_AGG_AGG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/err.h"
#include "lib/base/value.h"

struct wm_agg;

/*
 * A list of aggregates, each [NAME=] and one of
 *
 *     count                      rows
 *     count:c                    rows that have a value of c
 *     F:c                        F of sum, avg, min, max, first, last, var, stddev, median, pNN (p95, p99.9), distinct
 *     rate                       rows a second
 *     count:c:OP:V               rows whose c fulfils the condition (condition.h); OP is eq, ne, lt, le, gt or ge
 *     share:c:OP:V               of the rows that have a value of c, the share for which the condition holds
 *     F:c:if:c2:OP:V             F or count over the rows whose c2 fulfils the condition
 *     count:if:c2:OP:V, rate:if:c2:OP:V
 *
 * A backslash takes its meaning from ',' ':' '=' in columns and values. Default names: "count" and "rate"; "c_sum";
 * "c_OP_V_count" and "c_OP_V_share"; "c_sum_if_c2_OP_V" and "count_if_c2_OP_V", where columns have their escapes undone and in V
 * what is neither letter, digit nor beyond ASCII is '_'.
 *
 * Fails (WM_ERR_USAGE) on an unknown function or comparison (the message has the list), a missing or superfluous column,
 * two outputs of one name (name= helps), more than WM_AGGREGATES_MAX.
 */
struct wm_agg *wm_agg_parse(struct wm_span list, struct wm_err *err);
void wm_agg_free(struct wm_agg *agg);

/* The value columns, each once, in order of first mention. */
size_t wm_agg_columns_count(const struct wm_agg *agg);
struct wm_span wm_agg_column(const struct wm_agg *agg, size_t column); /* as written, with its escapes */

/* A value that is no number rejects the row: sum, avg, var, stddev, median, pNN of all rows. */
bool wm_agg_column_needs_number(const struct wm_agg *agg, size_t column);

/*
 * Whether numbers are needed of rows that fulfil a condition alone; and whether those of a row are there: false for one that is no number
 * where its condition holds, with its column.
 */
bool wm_agg_has_guards(const struct wm_agg *agg);
bool wm_agg_takes(const struct wm_agg *agg, const struct wm_reading *readings, size_t *column);

/* It is looked at whether it is a number: by those, by min and max, and by most conditions. */
bool wm_agg_column_reads_number(const struct wm_agg *agg, size_t column);

/* min or max of all rows: which rank texts behind numbers. */
bool wm_agg_column_is_ranked(const struct wm_agg *agg, size_t column);

/* The results, in the order of the list. */
size_t wm_agg_outputs_count(const struct wm_agg *agg);
struct wm_span wm_agg_output_name(const struct wm_agg *agg, size_t output);
bool wm_agg_output_is_zero_for_none(
	const struct wm_agg *agg, size_t output); /* count, sum, distinct, rate: 0 where there are no rows */
bool wm_agg_output_is_chosen(
	const struct wm_agg *agg, size_t output); /* min, max, first, last: a field of the data, not computed */

/* Whether cells keep for it what texts say, or hashes of these: the least, the first, distinct values. */
bool wm_agg_output_keeps_texts(const struct wm_agg *agg, size_t output);

size_t wm_agg_cell_bytes(const struct wm_agg *agg); /* a multiple of 16 */
void wm_agg_cell_init(const struct wm_agg *agg, void *cell);

/*
 * Takes in one row. readings[i] is the field of column i; where the column needs a number it is a number or empty, and wm_agg_takes() it
 * (the caller has rejected the others before). Texts that are kept are copied into the arena (a text that
 * grows no longer reuses its place).
 */
void wm_agg_cell_add(const struct wm_agg *agg, void *cell, struct wm_arena *arena, const struct wm_reading *readings,
	int64_t event_time_us);

/* Room for the texts of count readings, and for a text more. */
static inline size_t
wm_readings_text_bytes(const struct wm_reading *readings, size_t count, struct wm_span text)
{
	size_t bytes = text.len;

	for (size_t i = 0; i < count; i++)
		bytes += readings[i].value.text.len;
	return bytes;
}

/* Copies a text to *at, which is moved behind it. */
static inline struct wm_span
wm_text_copy(char **at, struct wm_span text)
{
	char *copy = *at;

	*at = wm_span_copy(copy, text);
	return wm_span(copy, text.len);
}

/* Readings that outlive the record: their texts are copied to at. */
static inline void
wm_readings_copy(struct wm_reading *to, const struct wm_reading *from, size_t count, char *at)
{
	for (size_t i = 0; i < count; i++) {
		to[i] = from[i];
		to[i].value.text = wm_text_copy(&at, from[i].value.text);
	}
}

/* Whether this is the name of a function whose results cannot be combined with each other, but its states alone: "avg", "p95". */
bool wm_agg_is_uncombinable(struct wm_span word);

/* from stays as it is; arena is that of into. */
void wm_agg_cell_merge(const struct wm_agg *agg, void *into, struct wm_arena *arena, const void *from);

/* Rows taken in. */
uint64_t wm_agg_cell_rows(const struct wm_agg *agg, const void *cell);

/*
 * The result of one output. Its text is appended to out (born WM_BUF_UNBOUNDED, at offset out->len before the call); returns its kind:
 * WM_KIND_NULL, with no text, for a group without values (all but count and distinct; rate: without rows), and where a result is
 * beyond the range of doubles. Numbers are WM_KIND_NUMBER; min, max, first and last give the text and kind of the
 * value that they chose. window_us: length of the window, for rate; 0: unknown (null).
 */
enum wm_kind wm_agg_cell_print(
	const struct wm_agg *agg, const void *cell, size_t output, int64_t window_us, struct wm_buf *out);

/* A cell as bytes, and back into a cell that this initialises. A round trip gives the same results and merges. */
void wm_agg_cell_encode(const struct wm_agg *agg, const void *cell, struct wm_buf *out);
WM_MUST_CHECK bool wm_agg_cell_decode(const struct wm_agg *agg, void *cell, struct wm_arena *arena, struct wm_get *in);

/*
 * What a cell holds, as canonical text: equal for plans whose cells mean the same, whatever their outputs are called
 * and in which order they stand ("sum:c" and "avg:c" are equal). For checkpoints.
 */
void wm_agg_fingerprint(const struct wm_agg *agg, struct wm_buf *out);

#endif
