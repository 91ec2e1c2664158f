/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/nulls.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/mem.h"

/* A longer text is no word for a missing value that advice should repeat. */
#define ADVISED_BYTES_MAX 32

static int
compare_texts(const void *a, const void *b)
{
	return wm_span_compare(*(const struct wm_span *)a, *(const struct wm_span *)b);
}

static void
enter(struct wm_nulls *nulls, struct wm_span text)
{
	if (text.len == 0) {
		nulls->has_empty = true;
		return;
	}
	nulls->firsts[(unsigned char)text.data[0]] = true;
	nulls->lengths |= UINT64_C(1) << (text.len < 63 ? text.len : 63);
	nulls->texts[nulls->count++] = text;
}

void
wm_nulls_parse(struct wm_nulls *nulls, const char *list, bool takes_quoted)
{
	size_t len = strlen(list), commas = 0, kept = 0;

	*nulls = (struct wm_nulls){ .takes_quoted = takes_quoted };
	for (size_t at = 0; at < len; at++)
		commas += list[at] == ',';
	nulls->texts = wm_calloc(commas + 1, sizeof(nulls->texts[0]));
	nulls->bytes = wm_malloc(len + 1);
	for (size_t at = 0, begin = 0, end = 0; at <= len; at++) {
		if (at == len || list[at] == ',') {
			enter(nulls, wm_span(nulls->bytes + begin, end - begin));
			begin = end;
			continue;
		}
		at += list[at] == '\\' && list[at + 1] == ',';
		nulls->bytes[end++] = list[at];
	}
	qsort(nulls->texts, nulls->count, sizeof(nulls->texts[0]), compare_texts);
	for (size_t i = 0; i < nulls->count; i++)
		if (kept == 0 || !wm_span_equal(nulls->texts[kept - 1], nulls->texts[i]))
			nulls->texts[kept++] = nulls->texts[i];
	nulls->count = kept;
}

void
wm_nulls_release(struct wm_nulls *nulls)
{
	free(nulls->texts);
	free(nulls->bytes);
	*nulls = (struct wm_nulls){ 0 };
}

bool
wm_nulls_find(const struct wm_nulls *nulls, struct wm_span text)
{
	return nulls->count != 0 &&
		bsearch(&text, nulls->texts, nulls->count, sizeof(nulls->texts[0]), compare_texts) != NULL;
}

static void
put_text(struct wm_span text, struct wm_buf *out)
{
	for (size_t at = 0; at < text.len; at++) {
		if (text.data[at] == ',')
			wm_buf_add_byte(out, '\\');
		wm_buf_add_byte(out, text.data[at]);
	}
}

void
wm_nulls_print(const struct wm_nulls *nulls, struct wm_buf *out)
{
	const char *before = nulls->has_empty ? "," : "";

	/* A text that ends in a backslash would take the comma behind it for its own: it stands at the end, where one can. */
	for (size_t is_last = 0; is_last < 2; is_last++) {
		for (size_t i = 0; i < nulls->count; i++) {
			struct wm_span text = nulls->texts[i];

			if ((text.data[text.len - 1] == '\\') != (is_last == 1))
				continue;
			wm_buf_add_text(out, before);
			put_text(text, out);
			before = ",";
		}
	}
}

bool
wm_nulls_is_usual(struct wm_span text)
{
	static const char *const usual[] = { "NA", "N/A", "NULL", "null", "None", "nan", "NaN", "\\N", "-", "--", "M" };

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (wm_span_is(text, usual[i]))
			return true;
	return false;
}

/* Whether a shell reads the bytes as they are. */
static bool
is_bare(struct wm_span text)
{
	for (size_t at = 0; at < text.len; at++)
		if (!wm_is_digit(text.data[at]) && !wm_is_letter(text.data[at]) &&
			strchr("-/,._", text.data[at]) == NULL)
			return false;
	return text.len != 0;
}

/* Whether the bytes go into a message as they are, and between single quotes. */
static bool
is_shown_as_it_is(struct wm_span text)
{
	for (size_t at = 0; at < text.len; at++)
		if (text.data[at] < ' ' || text.data[at] > '~' || text.data[at] == '\'')
			return false;
	return text.len != 0 && text.len <= ADVISED_BYTES_MAX && text.data[text.len - 1] != '\\';
}

bool
wm_nulls_advise(const struct wm_nulls *nulls, struct wm_span text, bool is_quoted, struct wm_buf *out)
{
	bool is_known = is_shown_as_it_is(text);
	struct wm_buf list;

	wm_buf_init(&list, WM_BUF_UNBOUNDED);
	if (nulls != NULL)
		wm_nulls_print(nulls, &list);
	is_known = is_known && (list.len == 0 || is_shown_as_it_is(wm_buf_span(&list)));
	if (is_known && (nulls == NULL || !wm_nulls_find(nulls, text))) {
		if (nulls != NULL)
			wm_buf_add_byte(&list, ',');
		put_text(text, &list);
	}
	if (!is_known)
		wm_buf_add_text(out, "--null LIST");
	else if (is_bare(wm_buf_span(&list)))
		wm_buf_addf(out, "--null %.*s", (int)list.len, list.data);
	else
		wm_buf_addf(out, "--null '%.*s'", (int)list.len, list.data);
	if (is_quoted)
		wm_buf_add_text(out, " --null-quoted");
	wm_buf_release(&list);
	return is_known;
}
