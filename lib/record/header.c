/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/header.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/near.h"
#include "lib/base/shown.h"

#define LISTED_MAX 10 /* names that a message lists */

void
wm_header_release(struct wm_header *header)
{
	free(header->names);
	free(header->text);
	*header = (struct wm_header){ 0 };
}

void
wm_header_take(struct wm_header *header, const struct wm_span *names, size_t count)
{
	struct wm_header taken = { .names = wm_calloc(count, sizeof(*taken.names)), .count = count };
	size_t text_len = 0;

	for (size_t i = 0; i < count; i++)
		text_len += names[i].len;
	taken.text = wm_malloc(text_len);
	text_len = 0;
	for (size_t i = 0; i < count; i++) {
		taken.names[i] = wm_span(taken.text + text_len, names[i].len);
		if (names[i].len != 0)
			memcpy(taken.text + text_len, names[i].data, names[i].len);
		text_len += names[i].len;
	}
	wm_header_release(header);
	*header = taken;
}

void
wm_header_number(struct wm_header *header, size_t count)
{
	struct wm_span *names = wm_calloc(count, sizeof(*names));
	struct wm_buf text;
	size_t at = 0;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < count; i++) {
		size_t begin = text.len;

		wm_buf_addf(&text, "%zu", i + 1);
		names[i].len = text.len - begin;
	}
	for (size_t i = 0; i < count; at += names[i++].len)
		names[i].data = text.data + at;
	wm_header_take(header, names, count);
	wm_buf_release(&text);
	free(names);
}

static void
list_names(const struct wm_header *header, struct wm_buf *out)
{
	for (size_t i = 0; i < header->count && i < LISTED_MAX; i++) {
		wm_buf_add_text(out, i == 0 ? "" : ", ");
		wm_shown(header->names[i], out);
	}
	if (header->count > LISTED_MAX)
		wm_buf_addf(out, ", ... (%zu in all)", header->count);
}

bool
wm_header_has(const struct wm_header *header, struct wm_span name)
{
	for (size_t i = 0; i < header->count; i++)
		if (wm_span_equal(header->names[i], name))
			return true;
	return false;
}

bool
wm_header_find(
	const struct wm_header *header, struct wm_span name, const char *place, size_t *index, struct wm_err *err)
{
	size_t found = 0, last = 0;
	struct wm_buf text;

	for (size_t i = 0; i < header->count; i++) {
		if (wm_span_equal(header->names[i], name)) {
			found++;
			last = i;
		}
	}
	if (found == 1) {
		*index = last;
		return true;
	}
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_add_text(&text, found == 0 ? "no column '" : "column '");
	wm_shown(name, &text);
	if (found == 0) {
		struct wm_near near = wm_near_to(name);

		for (size_t i = 0; i < header->count; i++)
			wm_near_try(&near, header->names[i]);
		wm_buf_add_text(&text, "': ");
		if (near.best.data != NULL) {
			wm_buf_add_text(&text, "did you mean '");
			wm_shown(near.best, &text);
			wm_buf_add_text(&text, "'? ");
		}
		wm_buf_add_text(&text, "there are: ");
		list_names(header, &text);
	} else {
		wm_buf_addf(&text, "' is there %s: give each its own name", found == 2 ? "twice" : "several times");
	}
	wm_err_set(err, WM_ERR_USAGE, "%s: %.*s", place, (int)text.len, text.data);
	wm_buf_release(&text);
	return false;
}

struct named {
	struct wm_span name;
	uint32_t index;
};

static int
compare_named(const void *a, const void *b)
{
	const struct named *left = a, *right = b;
	int order = wm_span_compare(left->name, right->name);

	return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

/* Columns by name, those of one name by place. To be freed. */
static struct named *
sort_by_name(const struct wm_header *header)
{
	struct named *sorted = wm_calloc(header->count, sizeof(*sorted));

	for (size_t i = 0; i < header->count; i++)
		sorted[i] = (struct named){ header->names[i], (uint32_t)i };
	qsort(sorted, header->count, sizeof(*sorted), compare_named);
	return sorted;
}

static void
refuse_column(const char *what, struct wm_span name, const char *place, const char *first_name, struct wm_err *err)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_shown(name, &text);
	wm_err_set(err, WM_ERR_USAGE, "%s: %s '%.*s': inputs must have the columns of %s", place, what, (int)text.len,
		text.data, first_name);
	wm_buf_release(&text);
}

bool
wm_header_match(const struct wm_header *stream, const char *first_name, const struct wm_header *input,
	const char *place, uint32_t *order, struct wm_err *err)
{
	struct named *wanted = sort_by_name(stream), *found = sort_by_name(input);
	size_t i = 0;
	bool is_same;

	while (i < stream->count && i < input->count && wm_span_equal(wanted[i].name, found[i].name)) {
		order[wanted[i].index] = found[i].index;
		i++;
	}
	is_same = i == stream->count && i == input->count;
	if (!is_same &&
		(i == input->count || (i < stream->count && wm_span_compare(wanted[i].name, found[i].name) < 0)))
		refuse_column("no column", wanted[i].name, place, first_name, err);
	else if (!is_same)
		refuse_column("another column", found[i].name, place, first_name, err);
	free(wanted);
	free(found);
	return is_same;
}

size_t
wm_header_find_twice(const struct wm_header *header)
{
	struct named *sorted = sort_by_name(header);
	size_t twice = header->count;

	for (size_t i = 1; i < header->count && twice == header->count; i++)
		if (wm_span_equal(sorted[i - 1].name, sorted[i].name))
			twice = sorted[i].index;
	free(sorted);
	return twice;
}
