/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_model - the rules of CSV and TSV once more, slowly and over the whole text at once:
 * what the reader's answers are held to.
 */
#ifndef WM_TESTS_UNIT_CSV_MODEL_H
#define WM_TESTS_UNIT_CSV_MODEL_H

#include "lib/base/buf.h"

struct csv_model {
	struct wm_buf fields; /* of the last record, each as "[LEN:BYTES]" */
	size_t fields_count;
	bool is_malformed;
	bool is_open; /* malformed, as a quoted field never ends; of TSV, as the last line end belongs to a field */
	bool is_blank;
	size_t quoted; /* offset where the last quoted field begins that begins before bound; 0: none does. Of TSV, that of the last CR or LF behind a backslash */
	size_t bound;
};

static void
csv_model_field(struct csv_model *model, const char *data, size_t len)
{
	wm_buf_addf(&model->fields, "[%zu:", len);
	wm_buf_add(&model->fields, data, len);
	wm_buf_add_byte(&model->fields, ']');
	model->fields_count++;
}

/* Bytes of the line end at offset at, 0 if there is none; at the end of the text CR alone is one. */
static size_t
csv_model_line_end(struct wm_span text, size_t at)
{
	if (at < text.len && text.data[at] == '\n')
		return 1;
	if (at < text.len && text.data[at] == '\r' && (at + 1 == text.len || text.data[at + 1] == '\n'))
		return at + 1 == text.len ? 1 : 2;
	return 0;
}

/* A field that begins with a quote at offset at. Returns the offset behind its closing quote, or SIZE_MAX. */
static size_t
csv_model_quoted(struct csv_model *model, struct wm_span text, size_t at)
{
	struct wm_buf said;
	bool is_closed = false;

	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	at++;
	while (at < text.len && !is_closed) {
		bool is_quote = text.data[at] == '"',
		     is_double = is_quote && at + 1 < text.len && text.data[at + 1] == '"';

		is_closed = is_quote && !is_double;
		if (!is_closed)
			wm_buf_add_byte(&said, text.data[at]);
		at += is_double ? 2 : 1;
	}
	csv_model_field(model, said.data, said.len);
	wm_buf_release(&said);
	return is_closed ? at : SIZE_MAX;
}

/* Reads the record at offset at and returns where the next one begins. */
__attribute__((unused)) static size_t
csv_model_read(struct csv_model *model, struct wm_span text, char delimiter, size_t at)
{
	wm_buf_reset(&model->fields);
	model->fields_count = 0;
	model->is_malformed = model->is_open = false;
	model->quoted = 0;
	model->is_blank = csv_model_line_end(text, at) > 0;
	if (model->is_blank)
		return at + csv_model_line_end(text, at);
	for (;; at++) {
		if (at < text.len && text.data[at] == '"') {
			if (at < model->bound)
				model->quoted = at;
			at = csv_model_quoted(model, text, at);
			if (at == SIZE_MAX) {
				model->is_malformed = model->is_open = true;
				return text.len;
			}
		} else {
			size_t begin = at;

			while (at < text.len && text.data[at] != delimiter && csv_model_line_end(text, at) == 0)
				at++;
			csv_model_field(model, text.data + begin, at - begin);
		}
		if (at == text.len || csv_model_line_end(text, at) > 0)
			return at + csv_model_line_end(text, at);
		if (text.data[at] != delimiter) {
			const char *line_feed = memchr(text.data + at, '\n', text.len - at);

			model->is_malformed = true;
			return line_feed == NULL ? text.len : (size_t)(line_feed - text.data) + 1;
		}
	}
}

/* The same for TSV. */
__attribute__((unused)) static size_t
tsv_model_read(struct csv_model *model, struct wm_span text, bool has_escapes, size_t at)
{
	struct wm_buf said;

	wm_buf_reset(&model->fields);
	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	model->fields_count = 0;
	model->is_malformed = model->is_open = false;
	model->quoted = 0;
	model->is_blank = csv_model_line_end(text, at) > 0;
	while (!model->is_blank && at < text.len && csv_model_line_end(text, at) == 0) {
		char byte = text.data[at], next = at + 1 < text.len ? text.data[at + 1] : 'x';
		bool is_escape = byte == '\\' && has_escapes && next != '\0' && strchr("tnr\\\t\n\r", next) != NULL;

		model->is_open = false;
		at++;
		if (is_escape) {
			bool is_line_end = next == '\r' || next == '\n';

			wm_buf_add_byte(&said, next == 't' ? '\t' : next == 'n' ? '\n' : next == 'r' ? '\r' : next);
			at++;
			if (is_line_end && at - 1 < model->bound)
				model->quoted = at - 1;
			if (next == '\r' && at < text.len && text.data[at] == '\n') {
				wm_buf_add_byte(&said, '\n');
				if (at < model->bound)
					model->quoted = at;
				at++;
			}
			model->is_open = is_line_end;
		} else if (byte == '\t') {
			csv_model_field(model, said.data, said.len);
			wm_buf_reset(&said);
		} else {
			wm_buf_add_byte(&said, byte);
		}
	}
	csv_model_field(model, said.data, said.len);
	wm_buf_release(&said);
	model->is_open = model->is_malformed = model->is_open && at == text.len;
	return at + csv_model_line_end(text, at);
}

#endif
