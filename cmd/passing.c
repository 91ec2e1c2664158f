/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/passing.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/base/shown.h"
#include "lib/record/cut.h"
#include "lib/record/fields.h"
#include "lib/record/lines.h"
#include "lib/record/stamps.h"

struct passing {
	const struct cli_common *common;
	struct outputs *outputs;
	struct passing_stamps stamped;
	enum wm_format of_stream;
	struct wm_row_format layout; /* of the lines: CSV, TSV or NDJSON */
	bool is_settled;
	bool is_part;   /* lines are a part of the rows of the result */
	bool is_text;   /* lines of text, written as they came */
	bool is_recast; /* written field by field, in another format */
	bool tells_nulls; /* texts that stand for missing values become null: the result is JSON, and the records are not */
	bool has_columns; /* of that the columns are known */
	struct wm_stamps stamps;
	bool has_own;              /* records of CSV have columns that wm's tools add */
	struct wm_columns columns; /* of what is recast */
	size_t told_count;         /* of these, the ones of the result */
	struct wm_fields fields;
	struct wm_value *values;
	struct wm_header told_before; /* the columns that a run before had been told by its first record */
	struct wm_buf line;           /* of a record that is put into the layout */
	struct wm_buf put;            /* a line that is written, while line is still asked for */
};

struct passing *
passing_open(
	const struct cli_common *common, struct outputs *outputs, const struct passing_stamps *stamps, bool is_part)
{
	struct passing *p = wm_calloc(1, sizeof(*p));

	p->common = common;
	p->outputs = outputs;
	p->is_part = is_part;
	if (stamps != NULL)
		p->stamped = *stamps;
	wm_buf_init(&p->line, WM_BUF_UNBOUNDED);
	wm_buf_init(&p->put, WM_BUF_UNBOUNDED);
	return p;
}

void
passing_close(struct passing *p)
{
	if (p == NULL)
		return;
	if (p->is_settled) {
		wm_stamps_release(&p->stamps);
		wm_fields_release(&p->fields);
		wm_columns_release(&p->columns);
	}
	free(p->values);
	wm_header_release(&p->told_before);
	wm_buf_release(&p->line);
	wm_buf_release(&p->put);
	free(p);
}

static bool
is_lines(enum wm_format format)
{
	return format > WM_FORMAT_NDJSON;
}

/* Whether it is a column that wm's tools add. */
static bool
is_own(struct wm_span name)
{
	static const char *const own[] = { "_time", "_watermark", "_lag", "_late", "_ingest", "_window_start",
		"_window_end", "_pane", "_pane_index", "_late_by", "_late_watermark" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (wm_span_is(name, own[i]))
			return true;
	return false;
}

/* The columns of what is recast are known, the stamps among them: the result can begin. */
static void
tell_columns(struct passing *p)
{
	p->has_columns = true;
	p->told_count = p->columns.count;
	wm_columns_settle(&p->columns);
	if (p->is_part)
		return;
	p->values = wm_calloc(p->told_count, sizeof(p->values[0]));
	outputs_begin_rows(p->outputs, p->columns.names, p->told_count);
}

/* The columns are those of the first record, though others may leave before it, or it not at all; and the stamps. */
static void
tell_first(struct passing *p)
{
	size_t place;

	for (size_t i = 0; i < p->stamped.count; i++)
		if (!wm_columns_find(&p->columns, p->stamped.names[i], &place))
			wm_columns_append(&p->columns, p->stamped.names[i]);
	tell_columns(p);
}

/* What is recast begins with the columns that the header, or --columns, names. */
static void
settle_recast(struct passing *p, const struct wm_reader *layout)
{
	const struct wm_header *names = wm_reader_names(layout);

	if (p->layout.format != WM_FORMAT_NDJSON) {
		for (size_t i = 0; i < p->stamps.columns.count; i++)
			wm_columns_append(&p->columns, p->stamps.columns.names[i]);
		tell_columns(p);
		return;
	}
	if (names->count == 0)
		names = &p->told_before;
	for (size_t i = 0; i < names->count; i++)
		wm_columns_append(&p->columns, names->names[i]);
	if (names->count != 0)
		tell_first(p);
}

static void
put_header(struct passing *p, const struct wm_reader *layout)
{
	struct wm_span header = wm_reader_header(layout);

	if (p->layout.format == WM_FORMAT_NDJSON || header.len == 0 || p->common->no_output_header)
		return;
	wm_buf_reset(&p->put);
	wm_stamps_put_header(&p->stamps, header, &p->put);
	outputs_put_header(p->outputs, wm_buf_span(&p->put));
}

void
passing_settle(struct passing *p, const struct wm_reader *layout)
{
	static const struct wm_header none = { 0 };
	int asked = p->common->output_format;
	enum wm_format of_result;

	p->of_stream = wm_reader_format(layout);
	p->layout = wm_row_format_of(layout);
	of_result = outputs_format(p->outputs);
	p->is_settled = true;
	p->is_text = is_lines(p->of_stream) && asked == CLI_OUTPUT_SAME && p->stamped.count == 0 && !p->is_part;
	p->is_recast = !p->is_text && p->of_stream != WM_FORMAT_AUTO &&
		(p->is_part || of_result != p->layout.format || asked == CLI_OUTPUT_TABLE ||
			(is_lines(p->of_stream) && p->layout.format == WM_FORMAT_CSV));
	p->tells_nulls = p->of_stream != WM_FORMAT_NDJSON && asked == CLI_OUTPUT_NDJSON;
	wm_stamps_init(&p->stamps, &p->layout, p->layout.format == WM_FORMAT_NDJSON ? &none : wm_reader_columns(layout),
		p->stamped.names, p->stamped.count);
	for (size_t i = 0; i < p->stamps.own_count; i++)
		p->has_own |= is_own(p->stamps.columns.names[i]);
	wm_columns_init(&p->columns, &p->layout);
	p->columns.nulls = cli_nulls(p->common);
	p->columns.are_lines = is_lines(p->of_stream);
	wm_fields_init(&p->fields, &p->columns);
	if (p->is_recast)
		settle_recast(p, layout);
	else if (!p->is_text)
		put_header(p, layout);
}

/* varint columns · text name of each. */
void
passing_encode(const struct passing *p, struct wm_buf *out)
{
	bool is_told = p->is_recast && p->has_columns && p->layout.format == WM_FORMAT_NDJSON;
	size_t count = is_told ? p->told_count : p->is_settled && p->is_recast ? 0 : p->told_before.count;

	wm_put_varint(out, count);
	for (size_t i = 0; i < count; i++)
		wm_put_span(out, is_told ? p->columns.names[i] : p->told_before.names[i]);
}

bool
passing_decode(struct passing *p, struct wm_get *in)
{
	uint64_t count = wm_get_varint(in);

	if (in->failed || count > wm_get_left(in))
		return false;
	struct wm_span *names = wm_calloc((size_t)count + 1, sizeof(names[0]));
	for (uint64_t i = 0; i < count; i++)
		names[i] = wm_get_span(in);
	if (!in->failed)
		wm_header_take(&p->told_before, names, (size_t)count);
	free(names);
	return !in->failed;
}

/* A line of text as a record of the layout. */
static struct wm_span
line_of_text(struct passing *p, struct wm_reader *reader, const struct wm_record *rec)
{
	wm_buf_reset(&p->line);
	if (p->of_stream == WM_FORMAT_LOGFMT) {
		wm_logfmt_put_object(wm_cut_content(rec->raw), p->tells_nulls ? cli_nulls(p->common) : NULL, &p->line);
		wm_buf_add_text(&p->line, p->layout.line_end);
		return wm_buf_span(&p->line);
	}
	size_t count = wm_reader_columns(reader)->count;
	for (size_t i = 0; i < count; i++) {
		struct wm_value value = wm_reader_line_field(reader, i);

		wm_row_put(&p->line, &p->layout, i, wm_span(NULL, 0), &value);
	}
	wm_row_end(&p->line, &p->layout, count);
	return wm_buf_span(&p->line);
}

/* A member of a record that no column of the result is. */
static bool
find_unknown(const struct passing *p, struct wm_span *name)
{
	for (size_t i = p->told_count; i < p->fields.count; i++) {
		*name = p->columns.names[i];
		if (p->fields.fields[i].raw.data != NULL)
			return true;
	}
	return false;
}

bool
passing_admit(struct passing *p, struct wm_reader *reader, const struct wm_record *rec, struct wm_span *line,
	struct wm_reject *reject)
{
	struct wm_span name;

	*line = is_lines(p->of_stream) && !p->is_text ? line_of_text(p, reader, rec)
						      : wm_reader_line(reader, rec, &p->line);
	if (!p->is_recast || p->layout.format != WM_FORMAT_NDJSON)
		return true;
	wm_fields_split(&p->fields, *line);
	if (!p->has_columns)
		tell_first(p);
	if (!find_unknown(p, &name) || outputs_format(p->outputs) == WM_FORMAT_NDJSON)
		return true;
	struct wm_buf shown;
	wm_buf_init(&shown, WM_BUF_UNBOUNDED);
	wm_shown(name, &shown);
	*reject = (struct wm_reject){ .reason = "new-column" };
	snprintf(reject->detail, sizeof(reject->detail),
		"'%.*s' is no column of the result, which the first record told: %s", (int)shown.len, shown.data,
		p->of_stream == WM_FORMAT_LOGFMT ? "-o ndjson has room for all" : "--columns names all");
	wm_buf_release(&shown);
	return false;
}

void
passing_tell(struct passing *p, struct wm_reader *reader, const struct wm_record *rec)
{
	struct wm_reject reject;
	struct wm_span line;

	if (!p->has_columns && !passing_admit(p, reader, rec, &line, &reject))
		assert(p->has_columns);
}

const struct wm_row_format *
passing_layout(const struct passing *p)
{
	return &p->layout;
}

struct wm_columns *
passing_columns(struct passing *p, size_t *count)
{
	*count = p->has_columns ? p->told_count : 0;
	return &p->columns;
}

/* Whether the record has none of the stamps' columns. */
static bool
is_unstamped(const struct passing *p, const struct wm_record *rec)
{
	for (size_t i = 0; i < p->stamped.count; i++)
		if (!wm_value_is_absent(&rec->fields[p->stamped.fields[i]]))
			return false;
	return true;
}

static void
put_recast(struct passing *p, struct wm_span line)
{
	wm_fields_split(&p->fields, line);
	for (size_t i = 0; i < p->told_count; i++)
		p->values[i] = p->tells_nulls ? wm_fields_value(&p->fields, i) : wm_fields_at(&p->fields, i);
	outputs_put_row(p->outputs, p->values);
}

void
passing_put(struct passing *p, struct wm_span line, const struct wm_record *rec, const struct wm_value *values)
{
	if (rec != NULL && p->stamped.count != 0 && !p->is_recast && wm_stamps_are_behind(&p->stamps)) {
		size_t bytes = wm_stamps_behind_bytes(&p->stamps, line, values);

		if (bytes <= WM_WRITER_ROOM_MAX) {
			char *to = outputs_room(p->outputs, bytes);

			outputs_take(p->outputs, (size_t)(wm_stamps_put_behind(&p->stamps, line, values, to) - to));
			return;
		}
	}
	if (rec != NULL && p->stamped.count != 0) {
		wm_buf_reset(&p->put);
		bool is_new = p->stamps.adds_only || is_unstamped(p, rec);
		wm_stamps_put(&p->stamps, line, is_new, values, &p->put);
		line = wm_buf_span(&p->put);
	}
	if (p->is_recast)
		put_recast(p, line);
	else
		outputs_put_text(p->outputs, line);
}

/* Records of NDJSON mostly have no name that begins as ours do. */
static bool
may_have_own(const struct passing *p, struct wm_span line)
{
	return p->layout.format == WM_FORMAT_NDJSON ? memmem(line.data, line.len, "\"_", 2) != NULL : p->has_own;
}

void
passing_identity(struct passing *p, struct wm_span line, struct wm_buf *out)
{
	struct wm_span content = wm_cut_content(line);

	if (p->is_text || !may_have_own(p, line)) {
		wm_buf_add(out, content.data, content.len);
		return;
	}
	wm_stamps_split(&p->stamps, line);
	wm_fields_put_others(&p->stamps.fields, is_own, out);
}

void
passing_put_lone(struct passing *p, struct wm_span name, const struct wm_value *value)
{
	size_t place = 0;

	if (p->is_text || p->of_stream == WM_FORMAT_AUTO)
		return;
	if (p->is_recast) {
		/* Before the first record there is no form for it, and nothing that it could be about. */
		if (p->has_columns && wm_columns_find(&p->columns, name, &place) && place < p->told_count)
			outputs_put_lone(p->outputs, place, value);
		return;
	}
	if (p->layout.format != WM_FORMAT_NDJSON && !wm_columns_find(&p->stamps.columns, name, &place))
		return;
	wm_buf_reset(&p->put);
	wm_lone_put(&p->put, &p->layout, p->stamps.columns.count, place, name, value);
	outputs_put_text(p->outputs, wm_buf_span(&p->put));
}
