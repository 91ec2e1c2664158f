/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passing - records that go through a tool: as they came, with columns of ours
 * (wm-stamp), or in another format (-o).
 *
 * A record is a line in the layout of the stream. Where nothing is added and no
 * other format asked for, that line is what is written. Lines of logs are
 * written as they came by tools that add nothing; else they become CSV.
 */
#ifndef WM_CMD_PASSING_H
#define WM_CMD_PASSING_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/cli.h"
#include "cmd/outputs.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"
#include "lib/record/fields.h"
#include "lib/record/reader.h"

struct passing;

/* Columns that a tool writes into each record; names are borrowed, none twice. */
struct passing_stamps {
	const struct wm_span *names;
	size_t *fields; /* of rec.fields: where each is, should records have it already; optional columns */
	size_t count;
};

/* is_part: lines are a part of the rows of the result, and nothing is written here. */
struct passing *passing_open(
	const struct cli_common *common, struct outputs *outputs, const struct passing_stamps *stamps, bool is_part);
void passing_close(struct passing *passing);

/* The layout is known, or the end has come: writes the header, unless the first record has to tell it. After outputs_settle(). */
void passing_settle(struct passing *passing, const struct wm_reader *layout);

/* The columns of the result, where the first record has told them. Decode before passing_settle(). */
void passing_encode(const struct passing *passing, struct wm_buf *out);
WM_MUST_CHECK bool passing_decode(struct passing *passing, struct wm_get *in);

/*
 * The record as a line, to be kept or written; borrowed until the next call. False, with what is wrong in *reject (but for its line and raw), for
 * one with a member that is no column of the result.
 */
WM_MUST_CHECK bool passing_admit(struct passing *passing, struct wm_reader *reader, const struct wm_record *rec,
	struct wm_span *line, struct wm_reject *reject);

/* The same as far as the record tells the columns, should none have done so: those of another stream are written before it. */
void passing_tell(struct passing *passing, struct wm_reader *reader, const struct wm_record *rec);

/*
 * is_part, once the layout is known: of its lines the format, and the columns: those of the header, or of the first record that was
 * admitted, where there is none; count 0 before.
 */
const struct wm_row_format *passing_layout(const struct passing *passing);
struct wm_columns *passing_columns(struct passing *passing, size_t *count);

/* Writes a record that was admitted, with values for the stamps. rec: where the stamps' fields are; NULL: there are no stamps. */
void passing_put(
	struct passing *passing, struct wm_span line, const struct wm_record *rec, const struct wm_value *values);

/* What makes an admitted record the same as another: all of it but the columns that wm's tools add; appended to out. */
void passing_identity(struct passing *passing, struct wm_span line, struct wm_buf *out);

/* Writes a record that has a value in this column (one of the stream's, or a stamp) and none in any other. */
void passing_put_lone(struct passing *passing, struct wm_span name, const struct wm_value *value);

#endif
