/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/band.h"

#include <string.h>

#include "lib/event/watermark.h"

void
band_open(struct band *band, struct inputs *inputs, const struct cli_common *common)
{
	const char *column = common->watermark_column;
	struct wm_err err;

	*band = (struct band){ .column = column == NULL || strcmp(column, "none") == 0 ? BAND_WATERMARK : column };
	wm_buf_init(&band->text, WM_BUF_UNBOUNDED);
	wm_buf_init(&band->line, WM_BUF_UNBOUNDED);
	wm_buf_init(&band->restated, WM_BUF_UNBOUNDED);
	band->parser = wm_instant_parser_new(wm_span_of("auto"), wm_zone_utc(), WM_REPEATED_EARLIER, NULL, &err);
	/* A watermark is behind the times that it is of, and these may be of the year 1. */
	wm_instant_parser_take_edges(band->parser);
	wm_instant_parser_trust_numbers(band->parser);
	band->watermark_us = WM_TIME_NONE;
	/* A column that was named must be there. */
	band->is_followed = column != NULL && strcmp(column, "none") != 0;
	band->field = band->is_followed ? inputs_want(inputs, wm_span_of(column))
					: inputs_want_optional(inputs, wm_span_of(BAND_WATERMARK));
}

void
band_release(struct band *band)
{
	wm_instant_parser_free(band->parser);
	wm_buf_release(&band->text);
	wm_buf_release(&band->line);
	wm_buf_release(&band->restated);
	if (band->is_there) {
		wm_fields_release(&band->fields);
		wm_columns_release(&band->columns);
	}
}

struct wm_value
band_time(struct wm_instant_text *last, const struct cli_common *common, int64_t time_us)
{
	if (time_us == WM_TIME_NONE || time_us == WM_TIME_END)
		return (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
	return wm_instant_value(last, time_us, (enum wm_time_unit)common->output_time, wm_zone_utc());
}

/* The columns that records have, to look at all of them. */
static void
learn_columns(struct band *band, const struct wm_reader *layout)
{
	const struct wm_row_format format = wm_row_format_of(layout);
	const struct wm_header *header = wm_reader_columns(layout);
	struct wm_column column;
	struct wm_err err;

	wm_columns_init(&band->columns, &format);
	for (size_t i = 0; i < header->count; i++)
		wm_columns_append(&band->columns, header->names[i]);
	/* It was asked for, so it is a column. */
	if (wm_column_parse(wm_span_of(band->column), &column, &err)) {
		struct wm_span name = wm_span(column.name, column.name_len);

		if (!wm_columns_find(&band->columns, name, &band->own)) {
			wm_columns_append(&band->columns, name);
			band->own = band->columns.count - 1;
		}
		wm_column_release(&column);
	}
	wm_columns_settle(&band->columns);
	wm_fields_init(&band->fields, &band->columns);
}

void
band_decide(struct band *band, const struct inputs *inputs, const struct cli_common *common, bool is_reckoned)
{
	const struct wm_reader *layout = inputs_layout(inputs);

	/* Lines of text carry no watermark. */
	band->is_there = wm_reader_format(layout) <= WM_FORMAT_NDJSON && inputs_column_seen(inputs, band->field);
	if (!band->is_there)
		return;
	learn_columns(band, layout);
	if (common->watermark_column == NULL && common->delay.text == NULL && !is_reckoned)
		band->is_followed = true;
}

/* flag there · flag followed · kind of time. */
void
band_encode(const struct band *band, struct wm_buf *out)
{
	wm_put_u8(out, band->is_there);
	wm_put_u8(out, band->is_followed);
	wm_instant_parser_encode(band->parser, out);
}

bool
band_decode(struct band *band, const struct wm_reader *layout, struct wm_get *in)
{
	bool is_there = wm_get_u8(in) != 0, is_followed = wm_get_u8(in) != 0;

	if (!wm_instant_parser_decode(band->parser, in))
		return false;
	band->is_there = is_there;
	band->is_followed = band->is_followed || is_followed;
	if (is_there)
		learn_columns(band, layout);
	return true;
}

bool
band_read(struct band *band, const struct wm_record *rec, int64_t *watermark_us, const char **why)
{
	const struct wm_value *value = &rec->fields[band->field];

	*watermark_us = WM_TIME_NONE;
	if (wm_value_is_empty(value))
		return true;
	if (!wm_span_equal(value->text, wm_buf_span(&band->text))) {
		*why = "neither text nor number";
		if ((value->kind != WM_KIND_TEXT && value->kind != WM_KIND_NUMBER) ||
			!wm_instant_parse(band->parser, value->text, &band->watermark_us, why)) {
			wm_buf_reset(&band->text);
			return false;
		}
		wm_buf_reset(&band->text);
		wm_buf_add(&band->text, value->text.data, value->text.len);
	}
	*watermark_us = band->watermark_us;
	return true;
}

bool
band_is_punctuation(struct band *band, struct wm_reader *reader, const struct wm_record *rec)
{
	int64_t watermark_us;
	const char *why;

	if (wm_value_is_empty(&rec->fields[band->field]) || !band_read(band, rec, &watermark_us, &why))
		return false;
	wm_fields_split(&band->fields, wm_reader_line(reader, rec, &band->line));
	return wm_fields_is_lone(&band->fields, band->own);
}

struct wm_span
band_restate(struct band *band, struct wm_span line, const struct wm_value *watermark)
{
	wm_fields_split(&band->fields, line);
	/* A path into an object is no member that could be set. */
	if (band->fields.fields[band->own].raw.data == NULL)
		return line;
	wm_fields_set(&band->fields, band->own, watermark);
	wm_buf_reset(&band->restated);
	wm_fields_render(&band->fields, &band->restated);
	return wm_buf_span(&band->restated);
}
