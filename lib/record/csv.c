/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/csv.h"

#include <assert.h>
#include <csv.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/limits.h"

/* libcsv's buffer grows by this; its own 128 bytes make a long field slow. */
#define FIELD_BLOCK_BYTES ((size_t)64 << 10)

struct wm_csv {
	struct csv_parser parser;
	struct wm_buf text;     /* of all fields, one behind the other */
	struct wm_span *fields; /* data is set once the text no longer moves */
	size_t fields_count;
	size_t fields_capacity;
};

static int
is_blank(unsigned char byte)
{
	(void)byte;
	return 0;
}

static int
is_line_end(unsigned char byte)
{
	return byte == '\n';
}

static void *
grow(void *old, size_t size)
{
	return wm_reallocarray(old, size, 1);
}

struct wm_csv *
wm_csv_new(void)
{
	struct wm_csv *csv = wm_calloc(1, sizeof(*csv));
	int failed = csv_init(&csv->parser, 0);

	assert(!failed);
	(void)failed;
	csv_set_space_func(&csv->parser, is_blank);
	csv_set_term_func(&csv->parser, is_line_end);
	csv_set_realloc_func(&csv->parser, grow);
	csv_set_blk_size(&csv->parser, FIELD_BLOCK_BYTES);
	wm_buf_init(&csv->text, WM_BUF_UNBOUNDED);
	return csv;
}

void
wm_csv_free(struct wm_csv *csv)
{
	if (csv == NULL)
		return;
	csv_free(&csv->parser);
	wm_buf_release(&csv->text);
	free(csv->fields);
	free(csv);
}

static void
take_field(void *text, size_t len, void *context)
{
	struct wm_csv *csv = context;
	size_t index = csv->fields_count++;

	if (index >= WM_COLUMNS_MAX)
		return;
	if (index == csv->fields_capacity) {
		csv->fields_capacity = csv->fields_capacity == 0 ? 64 : csv->fields_capacity * 2;
		csv->fields = wm_reallocarray(csv->fields, csv->fields_capacity, sizeof(*csv->fields));
	}
	csv->fields[index].len = len;
	wm_buf_add(&csv->text, text, len);
}

static void
take_end(int line_end, void *context)
{
	(void)line_end;
	(void)context;
}

size_t
wm_csv_split(struct wm_csv *csv, char delimiter, struct wm_span content, const struct wm_span **fields)
{
	wm_buf_reset(&csv->text);
	csv->fields_count = 0;
	csv_set_delim(&csv->parser, (unsigned char)delimiter);
	size_t taken = csv_parse(&csv->parser, content.data, content.len, take_field, take_end, csv);
	int failed = csv_fini(&csv->parser, take_field, take_end, csv);
	assert(taken == content.len && !failed); /* without strictness libcsv refuses nothing but want of memory */
	(void)taken;
	(void)failed;

	const char *at = csv->text.data;
	for (size_t i = 0; i < csv->fields_count && i < WM_COLUMNS_MAX; i++) {
		csv->fields[i].data = at == NULL ? "" : at;
		at = at == NULL ? NULL : at + csv->fields[i].len;
	}
	*fields = csv->fields;
	return csv->fields_count;
}
