/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/scan.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/unit/tap.h"

/* The text with the slack that a scan needs, full of what it must not see. */
static char *
with_slack(struct wm_span text)
{
	char *copy = wm_malloc(text.len + WM_SCAN_SLACK);

	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	for (size_t i = 0; i < WM_SCAN_SLACK; i++)
		copy[text.len + i] = ",\n\""[i % 3];
	return copy;
}

/*
 * Byte by byte: where the record at offset at ends, with the separators of its
 * fields in ends; 0 if it is not whole, or not for the scan.
 */
static size_t
read_record(struct wm_span text, char delimiter, size_t at, uint32_t *ends, size_t *ends_count)
{
	for (; at < text.len; at++) {
		if (text.data[at] == '"') {
			/* To the quote that has no other behind it. */
			for (at++; at < text.len; at++) {
				if (text.data[at] != '"')
					continue;
				if (at + 1 == text.len || text.data[at + 1] != '"')
					break;
				at++;
			}
			at++;
			if (at + 1 < text.len && text.data[at] == '\r' && text.data[at + 1] == '\n')
				at++;
			if (at >= text.len || (text.data[at] != delimiter && text.data[at] != '\n'))
				return 0;
		} else {
			while (at < text.len && text.data[at] != delimiter && text.data[at] != '\n' &&
				text.data[at] != '"')
				at++;
			if (at == text.len || text.data[at] == '"')
				return 0;
		}
		ends[(*ends_count)++] = (uint32_t)at + 1;
		if (text.data[at] == '\n')
			return at + 1;
	}
	return 0;
}

/* The same for TSV: a backslash takes the next byte along, and CR LF as one. */
static size_t
read_tsv_record(struct wm_span text, bool has_escapes, size_t at, uint32_t *ends, size_t *ends_count)
{
	for (; at < text.len; at++) {
		if (has_escapes && text.data[at] == '\\') {
			at++;
			if (at + 1 < text.len && text.data[at] == '\r' && text.data[at + 1] == '\n')
				at++;
		} else if (text.data[at] == '\t' || text.data[at] == '\n') {
			ends[(*ends_count)++] = (uint32_t)at + 1;
			if (text.data[at] == '\n')
				return at + 1;
		}
	}
	return 0;
}

static size_t
read_record_of(struct wm_span text, struct wm_dialect dialect, size_t at, uint32_t *ends, size_t *ends_count)
{
	return dialect.marks == WM_MARKS_QUOTES
		? read_record(text, dialect.delimiter, at, ends, ends_count)
		: read_tsv_record(text, dialect.marks == WM_MARKS_ESCAPES, at, ends, ends_count);
}

/* False with a "#" line where the index says something else. */
static bool
agrees(const struct wm_scan *scan, struct wm_span text)
{
	static uint32_t ends[WM_SCAN_BYTES_MAX];
	size_t ends_count = 0, rows_count = 0, bytes = 0, next, line_feeds = 0;
	char mark = scan->dialect.marks == WM_MARKS_QUOTES ? '"' : '\\';

	if (text.len > WM_SCAN_BYTES_MAX)
		text.len = WM_SCAN_BYTES_MAX;
	while ((next = read_record_of(text, scan->dialect, bytes, ends, &ends_count)) != 0) {
		rows_count++;
		bytes = next;
		if (rows_count <= scan->rows_count && scan->rows[rows_count] != ends_count) {
			printf("# row %zu: last separator %u, want %zu\n", rows_count, scan->rows[rows_count],
				ends_count);
			return false;
		}
	}
	if (scan->rows_count != rows_count || scan->bytes != bytes || scan->rows[0] != 0 || scan->after[0] != 0) {
		printf("# %zu rows in %zu bytes, want %zu in %zu\n", scan->rows_count, scan->bytes, rows_count, bytes);
		return false;
	}
	for (size_t i = 0; i < scan->rows[rows_count]; i++) {
		if (scan->after[i + 1] != ends[i]) {
			printf("# separator %zu: ends at %u, want %u\n", i + 1, scan->after[i + 1], ends[i]);
			return false;
		}
	}
	for (size_t i = 0; i < bytes; i++)
		line_feeds += text.data[i] == '\n';
	if ((scan->dialect.marks != WM_MARKS_NONE && bytes > 0 && memchr(text.data, mark, bytes) != NULL &&
		    !scan->has_marks) ||
		(scan->dialect.marks == WM_MARKS_NONE && scan->has_marks) ||
		(line_feeds != rows_count && !scan->has_inner_line_feeds)) {
		printf("# there are marks, or line feeds inside fields\n");
		return false;
	}
	return true;
}

static bool
check(struct wm_scan *scan, struct wm_span text)
{
	char *copy = with_slack(text);
	bool is_well;

	wm_scan_batch(scan, wm_span(copy, text.len));
	is_well = agrees(scan, text);
	if (!is_well)
		printf("# '%.*s'\n", (int)(text.len > 200 ? 200 : text.len), text.data);
	free(copy);
	return is_well;
}

/* From nearly no separators to nothing else; in every third text one quote, in another many. */
static bool
check_random(struct wm_scan *scan)
{
	uint64_t random = 7;
	bool is_well = true;
	char text[400];

	for (int i = 0; i < 30000 && is_well; i++) {
		size_t len = tap_random(&random) % sizeof(text), density = 1 + tap_random(&random) % 40;

		for (size_t k = 0; k < len; k++) {
			uint64_t letter = tap_random(&random) % density;

			text[k] = letter == 0               ? '\n'
				: letter <= 3               ? ','
				: letter == 4 && i % 3 == 1 ? '"'
							    : "ab;\r"[letter % 4];
		}
		if (len > 0 && i % 3 == 0)
			text[tap_random(&random) % len] = '"';
		is_well = check(scan, wm_span(text, len));
	}
	return is_well;
}

/* Records whose quotes are mostly in place, at all offsets of a block. */
static bool
check_quoted(struct wm_scan *scan)
{
	static const char *const fields[] = { "", "a", "\"\"", "\"b\"", "\"\"\"\"", "\",\"", "\"\n\"", "\"\r\n\"\"x\"",
		"abcdefghijklmnopqrstuvwxyz",
		"\"a,b \"\"c\"\", and so on to a field that is longer than a block, so that one is wholly inside\"" };
	static const char *const wrong[] = { "a\"b", "\"a\"b", " \"a\"", "\"a\" ", "\"a\"\r", "a\"\"" };
	static char text[2000];
	uint64_t random = 9;
	size_t rows_count = 0;
	bool is_well = true;

	for (int i = 0; i < 30000 && is_well; i++) {
		size_t len = 0;

		for (size_t k = tap_random(&random) % 12 + 1; k > 0; k--) {
			const char *field = tap_random(&random) % 40 == 0 ? wrong[tap_random(&random) % 6]
									  : fields[tap_random(&random) % 10];
			uint64_t end = tap_random(&random) % 6;

			memcpy(text + len, field, strlen(field));
			len += strlen(field);
			if (end == 0)
				text[len++] = '\r';
			text[len++] = end < 2 ? '\n' : ',';
		}
		is_well = check(scan, wm_span(text, len));
		rows_count += scan->rows_count;
	}
	return is_well && rows_count > 30000;
}

/* TSV: backslashes in runs, before tabs and line ends, at all offsets of a block. */
static bool
check_escaped(struct wm_scan *scan)
{
	static const char *const fields[] = { "", "a", "\\", "\\\\", "\\t", "\\\t", "\\\n", "\\\r\n", "\\\r", "\r",
		"\"", "\xFF", "\\\\\\", "abcdefghijklmnopqrstuvwxyz",
		"\\x\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\" };
	static char text[2000];
	uint64_t random = 13;
	size_t rows_count = 0;
	bool is_well = true;

	for (int i = 0; i < 30000 && is_well; i++) {
		size_t len = 0;

		for (size_t k = tap_random(&random) % 30 + 1; k > 0; k--) {
			const char *field = fields[tap_random(&random) % 15];
			uint64_t end = tap_random(&random) % 8;

			memcpy(text + len, field, strlen(field));
			len += strlen(field);
			if (end < 2)
				text[len++] = '\r';
			if (end < 6)
				text[len++] = end == 0 || end > 3 ? '\n' : '\t';
		}
		is_well = check(scan, wm_span(text, len));
		rows_count += scan->rows_count;
	}
	return is_well && rows_count > 30000;
}

/* Borders of blocks and of the batch. */
static bool
check_borders(struct wm_scan *scan)
{
	static char text[WM_SCAN_BYTES_MAX + 200];
	bool is_well = true;

	for (size_t len = 0; len <= 130 && is_well; len++) {
		memset(text, 'x', sizeof(text));
		is_well = check(scan, wm_span(text, len));
		memset(text, ',', sizeof(text));
		text[len] = '\n';
		is_well = is_well && check(scan, wm_span(text, len + 1));
		memset(text, '\n', sizeof(text));
		text[len] = '"';
		is_well = is_well && check(scan, wm_span(text, 140));
	}
	memset(text, '\n', sizeof(text));
	is_well = is_well && check(scan, wm_span(text, sizeof(text))); /* most rows */
	memset(text, ',', sizeof(text));
	is_well = is_well && check(scan, wm_span(text, sizeof(text))); /* no row in the batch */
	text[WM_SCAN_BYTES_MAX - 1] = '\n';
	is_well = is_well && check(scan, wm_span(text, sizeof(text))); /* one that fills it */
	text[WM_SCAN_BYTES_MAX - 1] = ',';
	text[WM_SCAN_BYTES_MAX] = '\n';
	return is_well && check(scan, wm_span(text, sizeof(text))); /* one byte too long */
}

int
main(void)
{
	static const char *const names[] = { "plain", "SSE2", "AVX2", "AVX-512" };
	static const struct wm_dialect csv = { ',', WM_MARKS_QUOTES }, tsv = { '\t', WM_MARKS_ESCAPES },
				       literal = { '\t', WM_MARKS_NONE };
	struct wm_scan *scan = wm_scan_new(csv, wm_scan_best_way());
	char *copy = with_slack(wm_span_of("1,ab\n22,c\r\n\n\"3,\"\"\",\"d\n\"\n4,5\"\n"));

	wm_scan_batch(scan, wm_span(copy, 29));
	tap_int((int64_t)scan->rows_count, 4, "the record with a quote out of place is left");
	tap_int((int64_t)scan->bytes, 24, "and does not count");
	tap_int(scan->rows[4] - scan->rows[3], 2, "one with quotes in place is there");
	tap_ok(scan->has_marks && scan->has_inner_line_feeds, "and is told of");
	tap_int(scan->rows[1], 2, "two fields in the first record");
	tap_int(scan->after[1], 2, "its second begins at 2");
	tap_int(scan->after[2] - 1, 4, "and ends at 4");
	tap_int(scan->rows[3] - scan->rows[2], 1, "an empty line has one");
	wm_scan_batch(scan, wm_span(copy, 4));
	tap_ok(scan->rows_count == 0 && scan->bytes == 0 && !scan->has_marks && !scan->has_inner_line_feeds,
		"half a record is none");
	wm_scan_free(scan);
	scan = wm_scan_new((struct wm_dialect){ '\t', WM_MARKS_QUOTES }, wm_scan_best_way());
	wm_scan_batch(scan, wm_span(copy, 17));
	tap_int(scan->rows[1], 1, "another delimiter");
	wm_scan_free(scan);
	free(copy);
	for (enum wm_scan_way way = WM_SCAN_PLAIN; way <= wm_scan_best_way(); way++) {
		scan = wm_scan_new(csv, way);
		tap_ok(check_random(scan), "%s: random texts as byte by byte", names[way]);
		tap_ok(check_quoted(scan), "%s: quotes in and out of place", names[way]);
		tap_ok(check_borders(scan), "%s: borders of blocks and of the batch", names[way]);
		wm_scan_free(scan);
		scan = wm_scan_new(tsv, way);
		tap_ok(check_escaped(scan), "%s: TSV with escapes", names[way]);
		wm_scan_free(scan);
		scan = wm_scan_new(literal, way);
		tap_ok(check_escaped(scan), "%s: TSV without", names[way]);
		wm_scan_free(scan);
	}
	return tap_done();
}
