/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/fields.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"

#define SLOTS_FIRST 32

/* ---- columns ---- */

void
wm_columns_init(struct wm_columns *columns, const struct wm_row_format *format)
{
	*columns = (struct wm_columns){ .format = *format };
}

void
wm_columns_release(struct wm_columns *columns)
{
	for (size_t i = 0; i < columns->count; i++)
		free((void *)(uintptr_t)columns->names[i].data);
	free(columns->names);
	free(columns->slots);
	*columns = (struct wm_columns){ 0 };
}

/* The slot of the first column of a name, or a free one. */
static uint32_t *
slot_of(const struct wm_columns *columns, struct wm_span name)
{
	size_t mask = columns->slots_count - 1, at = wm_hash(name, 0) & mask;

	while (columns->slots[at] != 0 && !wm_span_equal(columns->names[columns->slots[at] - 1], name))
		at = (at + 1) & mask;
	return &columns->slots[at];
}

static void
enter(const struct wm_columns *columns, size_t column)
{
	uint32_t *slot = slot_of(columns, columns->names[column]);

	if (*slot == 0)
		*slot = (uint32_t)column + 1;
}

/* A new table, at most a quarter full. */
static void
enter_all(struct wm_columns *columns)
{
	size_t count = SLOTS_FIRST;

	while (count < 4 * columns->count)
		count *= 2;
	free(columns->slots);
	columns->slots = wm_calloc(count, sizeof(columns->slots[0]));
	columns->slots_count = count;
	for (size_t i = 0; i < columns->count; i++)
		enter(columns, i);
}

void
wm_columns_append(struct wm_columns *columns, struct wm_span name)
{
	columns->names = wm_grown(columns->names, columns->count, &columns->capacity, sizeof(columns->names[0]));
	columns->names[columns->count++] = wm_span(wm_memdup(name.data, name.len), name.len);
	if (2 * columns->count > columns->slots_count)
		enter_all(columns);
	else
		enter(columns, columns->count - 1);
}

void
wm_columns_append_header(struct wm_columns *columns, struct wm_span line)
{
	const struct wm_dialect dialect = wm_row_dialect(&columns->format);
	struct wm_cut cut = { 0 };
	struct wm_buf said;

	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	wm_dialect_cut(&cut, dialect, wm_cut_content(line));
	for (size_t i = 0; i < cut.count; i++)
		wm_columns_append(columns, wm_dialect_read(dialect, cut.fields[i], &said));
	wm_buf_release(&said);
	wm_cut_release(&cut);
}

void
wm_columns_trim(struct wm_columns *columns, size_t count)
{
	if (columns->count <= count)
		return;
	while (columns->count > count)
		free((void *)(uintptr_t)columns->names[--columns->count].data);
	enter_all(columns);
}

void
wm_columns_settle(struct wm_columns *columns)
{
	columns->is_settled = true;
	columns->settled_count = columns->count;
}

bool
wm_columns_find(const struct wm_columns *columns, struct wm_span name, size_t *column)
{
	const uint32_t *slot = columns->count == 0 ? NULL : slot_of(columns, name);

	if (slot == NULL || *slot == 0)
		return false;
	*column = *slot - 1;
	return true;
}

/* The column of a member. Records mostly have the same members in the same order, so that the one at guess is tried first. */
static size_t
column_of(struct wm_columns *columns, struct wm_span name, size_t guess)
{
	size_t column;

	if (guess < columns->count && wm_span_equal(columns->names[guess], name))
		return guess;
	if (wm_columns_find(columns, name, &column))
		return column;
	wm_columns_append(columns, name);
	return columns->count - 1;
}

/* ---- JSON that is known to be well-formed ---- */

static const char *
skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
		at++;
	return at;
}

/* at is the opening quote; behind the closing one. */
static const char *
skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\';
	return at < end ? at + 1 : end;
}

static const char *
skip_value(const char *at, const char *end)
{
	size_t depth = 0;

	do {
		if (at < end && *at == '"') {
			at = skip_string(at, end);
			continue;
		}
		if (at < end && (*at == '{' || *at == '['))
			depth++;
		else if (at < end && (*at == '}' || *at == ']'))
			depth--;
		else if (depth == 0)
			while (at + 1 < end && memchr(",}] \t\r\n", at[1], 7) == NULL)
				at++;
		at++;
	} while (depth > 0 && at < end);
	return at < end ? at : end;
}

static uint32_t
hex4(const char *at)
{
	uint32_t code = 0;

	for (size_t i = 0; i < 4; i++) {
		uint32_t digit = (unsigned char)at[i];

		code = code << 4 | (digit <= '9' ? digit - (uint32_t)'0' : (digit | 0x20) - (uint32_t)'a' + 10);
	}
	return code;
}

/* What a JSON string says, its quotes included in raw; said has room for it. Half of a surrogate pair is kept (ndjson.h). */
static struct wm_span
unescape(struct wm_span raw, struct wm_buf *said)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *at = raw.data + 1, *end = raw.data + raw.len - 1;
	size_t begin = said->len;

	if (memchr(at, '\\', (size_t)(end - at)) == NULL)
		return wm_span(at, (size_t)(end - at));
	while (at < end) {
		char text[WM_UTF8_LEN_MAX];
		uint32_t code;

		if (*at != '\\') {
			said->data[said->len++] = *at++;
			continue;
		}
		if (at[1] != 'u') {
			said->data[said->len++] = meant[strchr(letters, at[1]) - letters];
			at += 2;
			continue;
		}
		code = hex4(at + 2);
		at += 6;
		if (code >= 0xD800 && code < 0xDC00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
			uint32_t low = hex4(at + 2);

			if (low >= 0xDC00 && low < 0xE000) {
				code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
				at += 6;
			}
		}
		size_t len = wm_utf8_put(code, text);
		memcpy(said->data + said->len, text, len);
		said->len += len;
	}
	return wm_span(said->data + begin, said->len - begin);
}

static struct wm_value
json_value(struct wm_span raw, struct wm_buf *said)
{
	switch (raw.data[0]) {
	case '"':
		return (struct wm_value){ unescape(raw, said), WM_KIND_TEXT };
	case '{':
	case '[':
		return (struct wm_value){ raw, WM_KIND_JSON };
	case 't':
	case 'f':
		return (struct wm_value){ raw, WM_KIND_BOOL };
	case 'n':
		return (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
	default:
		return (struct wm_value){ raw, WM_KIND_NUMBER };
	}
}

/* ---- fields ---- */

void
wm_fields_init(struct wm_fields *fields, struct wm_columns *columns)
{
	*fields = (struct wm_fields){ .columns = columns };
	wm_buf_init(&fields->said, WM_BUF_UNBOUNDED);
	wm_buf_init(&fields->scratch, WM_BUF_UNBOUNDED);
}

void
wm_fields_release(struct wm_fields *fields)
{
	free(fields->fields);
	wm_cut_release(&fields->cut);
	wm_buf_release(&fields->said);
	wm_buf_release(&fields->scratch);
	wm_arena_release(&fields->set);
}

/* Room for all columns that there are; new ones are of a record that lacks them. */
static void
cover_columns(struct wm_fields *fields)
{
	size_t count = fields->columns->count;

	if (count > fields->capacity) {
		fields->capacity = count > fields->capacity * 2 ? count : fields->capacity * 2;
		fields->fields = wm_reallocarray(fields->fields, fields->capacity, sizeof(fields->fields[0]));
	}
	for (; fields->count < count; fields->count++)
		fields->fields[fields->count] = (struct wm_field){ 0 };
}

static void
split_csv(struct wm_fields *fields)
{
	const struct wm_dialect dialect = wm_row_dialect(&fields->columns->format);
	struct wm_cut *cut = &fields->cut;

	wm_dialect_cut(cut, dialect, wm_cut_content(fields->line));
	assert(cut->count == fields->columns->count);
	for (size_t i = 0; i < cut->count; i++) {
		struct wm_span raw = cut->fields[i], text = wm_dialect_read(dialect, raw, &fields->scratch);

		if (text.len != 0 && text.data == fields->scratch.data) {
			char *kept = fields->said.data + fields->said.len;

			memcpy(kept, text.data, text.len);
			fields->said.len += text.len;
			text.data = kept;
		}
		fields->fields[i] = (struct wm_field){ .value = { text, WM_KIND_TEXT }, .raw = raw };
	}
}

static void
split_json(struct wm_fields *fields)
{
	const char *end = fields->line.data + fields->line.len;
	const char *at = skip_blanks(fields->line.data, end);
	size_t guess = 0;

	assert(at < end && *at == '{');
	at = skip_blanks(at + 1, end);
	while (at < end && *at == '"') {
		const char *name_end = skip_string(at, end);
		struct wm_span name = unescape(wm_span(at, (size_t)(name_end - at)), &fields->said);
		size_t column = column_of(fields->columns, name, guess);

		at = skip_blanks(skip_blanks(name_end, end) + 1, end); /* behind the colon */
		const char *value_end = skip_value(at, end);
		struct wm_span raw = wm_span(at, (size_t)(value_end - at));
		if (column >= fields->count)
			cover_columns(fields);
		fields->fields[column] = (struct wm_field){ .value = json_value(raw, &fields->said), .raw = raw };
		guess = column + 1;
		at = skip_blanks(value_end, end);
		if (at < end && *at == ',')
			at = skip_blanks(at + 1, end);
	}
}

void
wm_fields_split(struct wm_fields *fields, struct wm_span line)
{
	struct wm_columns *columns = fields->columns;

	if (columns->is_settled && columns->count > columns->settled_count + WM_COLUMNS_EXTRA)
		wm_columns_trim(columns, columns->settled_count);
	/* What a field says is never longer than what stands there, so that said does not move. */
	wm_buf_reset(&fields->said);
	bool fits = wm_buf_reserve(&fields->said, line.len);
	assert(fits);
	(void)fits;
	if (fields->is_changed)
		wm_arena_release(&fields->set);
	fields->is_changed = false;
	fields->line = line;
	fields->count = 0;
	cover_columns(fields);
	if (fields->columns->format.format == WM_FORMAT_NDJSON)
		split_json(fields);
	else
		split_csv(fields);
}

bool
wm_fields_is_lone(const struct wm_fields *fields, size_t column)
{
	if (column >= fields->count || wm_value_is_empty(&fields->fields[column].value))
		return false;
	for (size_t i = 0; i < fields->count; i++)
		if (i != column && !wm_value_is_empty(&fields->fields[i].value))
			return false;
	return true;
}

struct wm_value
wm_fields_at(const struct wm_fields *fields, size_t column)
{
	return column < fields->count ? fields->fields[column].value
				      : (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
}

struct wm_value
wm_fields_value(const struct wm_fields *fields, size_t column)
{
	const struct wm_columns *columns = fields->columns;
	struct wm_value value = wm_fields_at(fields, column);
	enum wm_nulls_place place = WM_NULLS_FIELD;

	if (columns->nulls == NULL || column >= fields->count || fields->fields[column].is_set)
		return value;
	struct wm_span raw = fields->fields[column].raw;
	struct wm_value judged = value;
	if (columns->format.format == WM_FORMAT_NDJSON)
		place = WM_NULLS_JSON;
	else if (columns->format.format == WM_FORMAT_TSV)
		judged.text = raw; /* as it stands there */
	else if (!columns->are_lines && raw.len != 0 && raw.data[0] == '"')
		place = WM_NULLS_QUOTED;
	if (wm_nulls_are_in(columns->nulls, &judged, place))
		return (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
	return value;
}

void
wm_fields_set(struct wm_fields *fields, size_t column, const struct wm_value *value)
{
	char *text = wm_arena_alloc(&fields->set, value->text.len);

	assert(column < fields->columns->count);
	cover_columns(fields);
	if (value->text.len != 0)
		memcpy(text, value->text.data, value->text.len);
	fields->fields[column].value = (struct wm_value){ wm_span(text, value->text.len), value->kind };
	fields->fields[column].is_set = true;
	fields->is_changed = true;
}

static void
render_csv(const struct wm_fields *fields, struct wm_buf *out)
{
	const struct wm_row_format *format = &fields->columns->format;
	size_t begin = out->len;

	for (size_t i = 0; i < fields->count; i++) {
		const struct wm_field *field = &fields->fields[i];

		if (field->is_set) {
			wm_row_put_guarded(out, format, fields->columns->nulls, i, &field->value);
			continue;
		}
		wm_row_put_raw(out, format, i, field->raw);
	}
	if (out->len == begin && format->format != WM_FORMAT_TSV)
		wm_buf_add_text(out, "\"\""); /* else the row would be an empty line */
	/* The end of a line is its own. */
	size_t content_len = wm_cut_content(fields->line).len;
	wm_buf_add(out, fields->line.data + content_len, fields->line.len - content_len);
}

static int
compare_places(const void *a, const void *b)
{
	const struct wm_field *left = *(const struct wm_field *const *)a, *right = *(const struct wm_field *const *)b;

	return (left->raw.data > right->raw.data) - (left->raw.data < right->raw.data);
}

static void
put_length(struct wm_buf *out, size_t len)
{
	wm_buf_add(out, (const char *)&len, sizeof(len));
}

/* The object as it stands there, without some members and the commas that parted them from others. */
static void
put_other_members(const struct wm_fields *fields, bool (*is_left_out)(struct wm_span name), struct wm_buf *out)
{
	struct wm_span content = wm_cut_content(fields->line);
	const char *end = content.data + content.len;
	const char *begin = skip_blanks(content.data, end) + 1; /* behind the brace or a comma */
	const char *at = skip_blanks(begin, end);
	bool is_first = true;

	wm_buf_add(out, content.data, (size_t)(begin - content.data));
	while (at < end && *at == '"') {
		const char *name_end = skip_string(at, end);
		const char *value = skip_blanks(skip_blanks(name_end, end) + 1, end);
		const char *rest = skip_blanks(skip_value(value, end), end);

		if (!is_left_out(wm_span(at + 1, (size_t)(name_end - at) - 2))) {
			if (!is_first)
				wm_buf_add_byte(out, ',');
			wm_buf_add(out, begin, (size_t)(rest - begin));
			is_first = false;
		}
		begin = rest < end && *rest == ',' ? rest + 1 : rest;
		at = skip_blanks(begin, end);
	}
	wm_buf_add(out, begin, (size_t)(end - begin));
}

void
wm_fields_put_others(const struct wm_fields *fields, bool (*is_left_out)(struct wm_span name), struct wm_buf *out)
{
	if (fields->columns->format.format == WM_FORMAT_NDJSON) {
		put_other_members(fields, is_left_out, out);
		return;
	}
	const struct wm_field **others = wm_calloc(fields->count + 1, sizeof(*others));
	size_t count = 0;

	for (size_t i = 0; i < fields->count; i++)
		if (fields->fields[i].raw.data != NULL && !is_left_out(fields->columns->names[i]))
			others[count++] = &fields->fields[i];
	qsort(others, count, sizeof(*others), compare_places);
	for (size_t i = 0; i < count; i++) {
		struct wm_span name = fields->columns->names[others[i] - fields->fields];

		put_length(out, name.len);
		wm_buf_add(out, name.data, name.len);
		put_length(out, others[i]->raw.len);
		wm_buf_add(out, others[i]->raw.data, others[i]->raw.len);
	}
	free(others);
}

static void
render_json(const struct wm_fields *fields, struct wm_buf *out)
{
	const struct wm_field **changed = wm_calloc(fields->count + 1, sizeof(*changed));
	const char *at = fields->line.data, *end = fields->line.data + fields->line.len;
	size_t changed_count = 0;
	bool has_new = false;

	for (size_t i = 0; i < fields->count; i++) {
		const struct wm_field *field = &fields->fields[i];

		if (field->is_set && field->raw.data != NULL)
			changed[changed_count++] = field;
		has_new = has_new || (field->is_set && field->raw.data == NULL);
	}
	qsort(changed, changed_count, sizeof(*changed), compare_places);
	for (size_t i = 0; i < changed_count; i++) {
		wm_buf_add(out, at, (size_t)(changed[i]->raw.data - at));
		wm_json_put_value(out, &changed[i]->value);
		at = changed[i]->raw.data + changed[i]->raw.len;
	}
	free(changed);
	const char *brace = memrchr(at, '}', (size_t)(end - at));
	assert(brace != NULL);
	if (has_new) {
		wm_buf_add(out, at, (size_t)(brace - at));
		at = brace;
		const char *first = skip_blanks(fields->line.data, end) + 1;
		bool is_empty = skip_blanks(first, end) == brace;
		for (size_t i = 0; i < fields->count; i++) {
			const struct wm_field *field = &fields->fields[i];

			if (!field->is_set || field->raw.data != NULL)
				continue;
			if (!is_empty)
				wm_buf_add_byte(out, ',');
			is_empty = false;
			wm_json_put_string(out, fields->columns->names[i]);
			wm_buf_add_byte(out, ':');
			wm_json_put_value(out, &field->value);
		}
	}
	wm_buf_add(out, at, (size_t)(end - at));
}

void
wm_fields_render(const struct wm_fields *fields, struct wm_buf *out)
{
	if (!fields->is_changed)
		wm_buf_add(out, fields->line.data, fields->line.len);
	else if (fields->columns->format.format == WM_FORMAT_NDJSON)
		render_json(fields, out);
	else
		render_csv(fields, out);
}
