/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/tsv.h"

#include <string.h>

/* Behind a backslash: its letter and what both stand for. */
static const char letters[] = "tnr\\", meant[] = "\t\n\r\\";

size_t
wm_tsv_find(struct wm_cut_finder *finder, bool has_escapes, struct wm_span text, bool *has_ended)
{
	enum wm_cut_state state = finder->state;
	size_t at = 0;

	*has_ended = false;
	while (at < text.len && !*has_ended) {
		char byte = text.data[at++];
		bool is_taken = state == WM_CUT_ESCAPE || (state == WM_CUT_ESCAPED_CR && byte == '\n');

		if (byte == '\n' && !is_taken) {
			finder->lines_count++;
			state = WM_CUT_UNQUOTED;
			*has_ended = true;
		} else if (byte == '\n') {
			finder->quote_line = finder->lines_count++;
			state = WM_CUT_ESCAPED_END;
		} else if (byte == '\r' && is_taken) {
			finder->quote_line = finder->lines_count;
			state = WM_CUT_ESCAPED_CR;
		} else {
			state = byte == '\\' && has_escapes && !is_taken ? WM_CUT_ESCAPE : WM_CUT_UNQUOTED;
		}
	}
	finder->state = state;
	return at;
}

/* Bytes of the field that a text begins with. */
static size_t
field_len(struct wm_span text, bool has_escapes)
{
	size_t from = 0;

	for (;;) {
		const char *tab = memchr(text.data + from, '\t', text.len - from);
		size_t len = tab == NULL ? text.len : (size_t)(tab - text.data);
		const char *escape = has_escapes ? memchr(text.data + from, '\\', len - from) : NULL;

		if (escape == NULL)
			return len;
		from = (size_t)(escape - text.data) + 2;
		if (from >= text.len)
			return text.len;
	}
}

void
wm_tsv_cut(struct wm_cut *cut, bool has_escapes, struct wm_span content)
{
	struct wm_span rest = content;

	cut->count = 0;
	if (content.len == 0)
		return;
	for (;;) {
		size_t len = field_len(rest, has_escapes);

		wm_cut_keep(cut, wm_span(rest.data, len));
		if (len == rest.len)
			return;
		rest = wm_span(rest.data + len + 1, rest.len - len - 1);
	}
}

/* Whether a backslash before a byte stands for another one, and for which. */
static bool
find_meant(char byte, char *found)
{
	const char *letter = byte == '\0' ? NULL : strchr(letters, byte);

	if (letter != NULL)
		*found = meant[letter - letters];
	else if (byte == '\t' || byte == '\n' || byte == '\r')
		*found = byte;
	else
		return false;
	return true;
}

struct wm_span
wm_tsv_read(struct wm_span field, struct wm_buf *said)
{
	const char *at = field.data, *end = field.data + field.len;
	const char *escape = field.len == 0 ? NULL : memchr(at, '\\', field.len);
	char found;

	if (escape == NULL)
		return field;
	wm_buf_reset(said);
	for (; escape != NULL && escape + 1 < end; escape = memchr(at, '\\', (size_t)(end - at))) {
		bool is_escape = find_meant(escape[1], &found);

		wm_buf_add(said, at, (size_t)(escape - at) + !is_escape);
		at = escape + 1;
		if (is_escape) {
			wm_buf_add_byte(said, found);
			at++;
		}
	}
	wm_buf_add(said, at, (size_t)(end - at));
	return wm_buf_span(said);
}

void
wm_tsv_put(struct wm_buf *out, struct wm_span value)
{
	size_t plain = 0; /* where what is not yet copied begins */
	char found;

	for (size_t at = 0; at < value.len; at++) {
		char byte = value.data[at];
		bool is_last = at + 1 == value.len;
		const char *parts = byte == '\0' ? NULL : strchr(meant, byte);

		/* At its end the backslash would take the tab or line end behind the field along. */
		if (parts == NULL || (byte == '\\' && !is_last && !find_meant(value.data[at + 1], &found)))
			continue;
		wm_buf_add(out, value.data + plain, at - plain);
		wm_buf_add(out, (char[]){ '\\', letters[parts - meant] }, 2);
		plain = at + 1;
	}
	if (plain < value.len)
		wm_buf_add(out, value.data + plain, value.len - plain);
}

bool
wm_tsv_is_unfinished(struct wm_span text)
{
	size_t count = 0;

	while (count < text.len && text.data[text.len - 1 - count] == '\\')
		count++;
	return count % 2 != 0;
}

bool
wm_tsv_is_literal(struct wm_span value)
{
	return value.len == 0 ||
		(memchr(value.data, '\t', value.len) == NULL && memchr(value.data, '\n', value.len) == NULL &&
			value.data[value.len - 1] != '\r');
}
