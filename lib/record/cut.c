/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/cut.h"

#include <stdlib.h>

#include "lib/base/limits.h"

#define CAPACITY_FIRST 64

size_t
wm_cut_find(struct wm_cut_finder *finder, char delimiter, struct wm_span text, bool *has_ended)
{
	enum wm_cut_state state = finder->state;
	size_t at = 0;

	*has_ended = false;
	while (at < text.len && !*has_ended) {
		char byte = text.data[at++];

		if (byte == '\n') {
			finder->lines_count++;
			*has_ended = state != WM_CUT_QUOTED;
			continue;
		}
		switch (state) {
		case WM_CUT_FIELD_BEGIN:
		case WM_CUT_UNQUOTED:
			if (byte == delimiter) {
				state = WM_CUT_FIELD_BEGIN;
			} else if (byte == '"' && state == WM_CUT_FIELD_BEGIN) {
				state = WM_CUT_QUOTED;
				finder->quote_line = finder->lines_count;
			} else {
				state = WM_CUT_UNQUOTED;
			}
			break;
		case WM_CUT_QUOTED:
			if (byte == '"')
				state = WM_CUT_QUOTE_SEEN;
			break;
		case WM_CUT_QUOTE_SEEN:
			if (byte == '"')
				state = WM_CUT_QUOTED;
			else if (byte == delimiter)
				state = WM_CUT_FIELD_BEGIN;
			else
				state = byte == '\r' ? WM_CUT_CR_SEEN : WM_CUT_MALFORMED;
			break;
		case WM_CUT_CR_SEEN:
			state = WM_CUT_MALFORMED;
			break;
		default:
			break;
		}
	}
	finder->state = state;
	return at;
}

struct wm_span
wm_cut_content(struct wm_span raw)
{
	if (raw.len > 0 && raw.data[raw.len - 1] == '\n')
		raw.len--;
	if (raw.len > 0 && raw.data[raw.len - 1] == '\r')
		raw.len--;
	return raw;
}

/* Bytes of the quoted field that a text begins with. */
static size_t
quoted_len(struct wm_span text)
{
	size_t at = 1;

	for (;;) {
		const char *quote = memchr(text.data + at, '"', text.len - at);

		if (quote == NULL)
			return text.len;
		at = (size_t)(quote - text.data) + 1;
		if (at == text.len || text.data[at] != '"')
			return at;
		at++;
	}
}

void
wm_cut_keep(struct wm_cut *cut, struct wm_span field)
{
	size_t index = cut->count++;

	if (index >= WM_COLUMNS_MAX)
		return;
	if (index == cut->capacity) {
		cut->capacity = cut->capacity == 0 ? CAPACITY_FIRST : cut->capacity * 2;
		cut->fields = wm_reallocarray(cut->fields, cut->capacity, sizeof(*cut->fields));
	}
	cut->fields[index] = field;
}

void
wm_cut_record(struct wm_cut *cut, char delimiter, struct wm_span content)
{
	struct wm_span rest = content;

	cut->count = 0;
	if (content.len == 0)
		return;
	for (;;) {
		size_t begin = rest.len > 0 && rest.data[0] == '"' ? quoted_len(rest) : 0;
		const char *end = memchr(rest.data + begin, delimiter, rest.len - begin);
		size_t len = end == NULL ? rest.len : (size_t)(end - rest.data);

		wm_cut_keep(cut, wm_span(rest.data, len));
		if (end == NULL)
			return;
		rest = wm_span(end + 1, rest.len - len - 1);
	}
}

void
wm_cut_release(struct wm_cut *cut)
{
	free(cut->fields);
	*cut = (struct wm_cut){ 0 };
}

struct wm_span
wm_cut_unquote(struct wm_span field, struct wm_buf *said)
{
	const char *quote;

	if (field.len < 2 || field.data[0] != '"')
		return field;
	field = wm_span(field.data + 1, field.len - 2);
	quote = memchr(field.data, '"', field.len);
	if (quote == NULL)
		return field;
	wm_buf_reset(said);
	while (quote != NULL) {
		size_t len = (size_t)(quote - field.data) + 1;

		/* With the first of the two; behind the second it goes on. */
		wm_buf_add(said, field.data, len);
		field = wm_span(field.data + len + 1, field.len - len - 1);
		quote = memchr(field.data, '"', field.len);
	}
	wm_buf_add(said, field.data, field.len);
	return wm_buf_span(said);
}
