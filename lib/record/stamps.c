/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/stamps.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void
wm_stamps_init(struct wm_stamps *stamps, const struct wm_row_format *format, const struct wm_header *header,
	const struct wm_span *names, size_t count)
{
	*stamps = (struct wm_stamps){ .count = count, .own_count = header->count, .is_plain = wm_row_is_plain(format) };
	wm_columns_init(&stamps->columns, format);
	for (size_t i = 0; i < header->count; i++)
		wm_columns_append(&stamps->columns, header->names[i]);
	stamps->places = wm_calloc(count, sizeof(stamps->places[0]));
	for (size_t i = 0; i < count; i++) {
		if (wm_columns_find(&stamps->columns, names[i], &stamps->places[i]))
			continue;
		stamps->places[i] = stamps->columns.count;
		wm_columns_append(&stamps->columns, names[i]);
	}
	wm_columns_settle(&stamps->columns);
	/* Of objects each is looked at by itself. */
	stamps->adds_only = format->format != WM_FORMAT_NDJSON;
	for (size_t i = 0; i < count; i++)
		stamps->adds_only = stamps->adds_only && stamps->places[i] >= header->count;
	wm_fields_init(&stamps->fields, &stamps->columns);
	wm_buf_init(&stamps->plain, WM_BUF_UNBOUNDED);
}

void
wm_stamps_release(struct wm_stamps *stamps)
{
	wm_fields_release(&stamps->fields);
	wm_columns_release(&stamps->columns);
	wm_buf_release(&stamps->plain);
	free(stamps->places);
}

void
wm_stamps_put_header(const struct wm_stamps *stamps, struct wm_span line, struct wm_buf *out)
{
	const struct wm_row_format *format = &stamps->columns.format;
	struct wm_span content = wm_cut_content(line);

	wm_buf_add(out, content.data, content.len);
	for (size_t i = stamps->own_count; i < stamps->columns.count; i++) {
		const struct wm_value name = { stamps->columns.names[i], WM_KIND_TEXT };

		wm_row_put(out, format, i, name.text, &name);
	}
	wm_buf_add_text(out, format->line_end);
}

/* Behind the last field of CSV. */
static void
append_fields(const struct wm_row_format *format, struct wm_span line, const struct wm_value *values, size_t count,
	struct wm_buf *out)
{
	struct wm_span content = wm_cut_content(line);

	wm_buf_add(out, content.data, content.len);
	for (size_t i = 0; i < count; i++)
		wm_row_put(out, format, 1, wm_span(NULL, 0), &values[i]);
	/* The end of a line is its own. */
	wm_buf_add(out, line.data + content.len, line.len - content.len);
}

static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Before the closing brace of an object. */
static void
append_members(struct wm_span line, const struct wm_span *names, const struct wm_value *values, size_t count,
	struct wm_buf *out)
{
	size_t brace = line.len, last;

	while (line.data[brace - 1] != '}')
		brace--;
	brace--;
	for (last = brace; is_blank(line.data[last - 1]);)
		last--;
	wm_buf_add(out, line.data, brace);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 || line.data[last - 1] != '{')
			wm_buf_add_byte(out, ',');
		wm_json_put_string(out, names[i]);
		wm_buf_add_byte(out, ':');
		wm_json_put_value(out, &values[i]);
	}
	wm_buf_add(out, line.data + brace, line.len - brace);
}

void
wm_record_append(struct wm_span line, const struct wm_row_format *format, const struct wm_span *names,
	const struct wm_value *values, size_t count, struct wm_buf *out)
{
	if (format->format == WM_FORMAT_NDJSON)
		append_members(line, names, values, count, out);
	else
		append_fields(format, line, values, count, out);
}

void
wm_stamps_split(struct wm_stamps *stamps, struct wm_span line)
{
	const struct wm_value none = { wm_span(NULL, 0), WM_KIND_NULL };

	if (stamps->columns.format.format != WM_FORMAT_NDJSON) {
		struct wm_span content = wm_cut_content(line);

		wm_buf_reset(&stamps->plain);
		wm_buf_add(&stamps->plain, content.data, content.len);
		for (size_t i = stamps->own_count; i < stamps->columns.count; i++)
			wm_row_put(&stamps->plain, &stamps->columns.format, 1, wm_span(NULL, 0), &none);
		wm_buf_add(&stamps->plain, line.data + content.len, line.len - content.len);
		line = wm_buf_span(&stamps->plain);
	}
	wm_fields_split(&stamps->fields, line);
}

bool
wm_stamps_are_behind(const struct wm_stamps *stamps)
{
	return stamps->adds_only && stamps->is_plain;
}

size_t
wm_stamps_behind_bytes(const struct wm_stamps *stamps, struct wm_span line, const struct wm_value *values)
{
	return wm_row_behind_bytes(line, values, stamps->count);
}

char *
wm_stamps_put_behind(const struct wm_stamps *stamps, struct wm_span line, const struct wm_value *values, char *to)
{
	return wm_row_put_behind(to, &stamps->columns.format, line, values, stamps->count);
}

void
wm_stamps_put(
	struct wm_stamps *stamps, struct wm_span line, bool is_new, const struct wm_value *values, struct wm_buf *out)
{
	const struct wm_row_format *format = &stamps->columns.format;

	if (wm_stamps_are_behind(stamps)) {
		char *to = wm_buf_room(out, wm_stamps_behind_bytes(stamps, line, values));

		out->len += (size_t)(wm_stamps_put_behind(stamps, line, values, to) - to);
		return;
	}
	/* Objects have no columns but the stamps. */
	if (stamps->adds_only || (format->format == WM_FORMAT_NDJSON && is_new)) {
		wm_record_append(line, format, stamps->columns.names, values, stamps->count, out);
		return;
	}
	wm_stamps_split(stamps, line);
	for (size_t i = 0; i < stamps->count; i++)
		wm_fields_set(&stamps->fields, stamps->places[i], &values[i]);
	wm_fields_render(&stamps->fields, out);
}

void
wm_lone_put(struct wm_buf *out, const struct wm_row_format *format, size_t columns_count, size_t place,
	struct wm_span name, const struct wm_value *value)
{
	const struct wm_value none = { wm_span(NULL, 0), WM_KIND_NULL };

	if (format->format == WM_FORMAT_NDJSON) {
		wm_row_put(out, format, 0, name, value);
		wm_row_end(out, format, 1);
		return;
	}
	for (size_t i = 0; i < columns_count; i++)
		wm_row_put(out, format, i, name, i == place ? value : &none);
	wm_row_end(out, format, columns_count);
}
