/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_records - bytes as CSV and as NDJSON, held to laws:
 *
 *   - scan and cutter cut well-formed records as libcsv does, and agree on where they end; those of TSV do as tsv.h says;
 *   - a value that is written as TSV is read as it was;
 *   - the reader gives the same in reads of any size;
 *   - a line of NDJSON is a record if and only if a plain validator says so.
 *
 * The first byte of the input chooses format and options, the second the size
 * of the reads; the rest is the text.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/record/csv.h"
#include "lib/record/cut.h"
#include "lib/record/ndjson.h"
#include "lib/record/reader.h"
#include "lib/record/scan.h"
#include "lib/record/tsv.h"
#include "tests/fuzz/expect.h"
#include "tests/unit/json_model.h"

static char *
with_slack(struct wm_span text, size_t slack)
{
	char *copy = wm_malloc(text.len + slack);

	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	memset(copy + text.len, '\n', slack);
	return copy;
}

/* A field as the scan or the cutter left it, and what libcsv says of it. */
static void
hold_field(struct wm_span field, struct wm_span want, struct wm_buf *said)
{
	expect(wm_span_equal(wm_cut_unquote(field, said), want), "they say the same");
}

static void
hold_scan_to_csv(struct wm_span text, char delimiter, enum wm_scan_way way)
{
	char *copy = with_slack(text, WM_SCAN_SLACK);
	struct wm_scan *scan = wm_scan_new((struct wm_dialect){ delimiter, WM_MARKS_QUOTES }, way);
	struct wm_csv *csv = wm_csv_new();
	struct wm_buf said;

	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	wm_scan_batch(scan, wm_span(copy, text.len));
	for (size_t row = 0; row < scan->rows_count; row++) {
		const uint32_t *after = &scan->after[scan->rows[row]];
		size_t count = scan->rows[row + 1] - scan->rows[row];
		struct wm_span raw = { copy + after[0], after[count] - after[0] };
		const struct wm_span *fields;
		struct wm_cut_finder finder = { 0 };
		bool has_ended;

		expect(wm_cut_find(&finder, delimiter, wm_span(raw.data, text.len - after[0]), &has_ended) == raw.len &&
				has_ended && finder.state != WM_CUT_MALFORMED,
			"a record ends where the scan says");
		expect(finder.lines_count == 1 || scan->has_inner_line_feeds, "line feeds inside are told of");
		expect(memchr(raw.data, '"', raw.len) == NULL || scan->has_marks, "quotes are told of");
		struct wm_span content = wm_cut_content(raw);
		if (content.len == 0)
			continue;
		expect(wm_csv_split(csv, delimiter, content, &fields) == count, "it has as many fields");
		for (size_t i = 0; i < count; i++) {
			struct wm_span field = { copy + after[i], after[i + 1] - 1 - after[i] };

			if (i + 1 == count)
				field.len = (size_t)(content.data + content.len - field.data);
			hold_field(field, fields[i], &said);
		}
	}
	wm_buf_release(&said);
	wm_csv_free(csv);
	wm_scan_free(scan);
	free(copy);
}

static void
hold_cut_to_csv(struct wm_span text, char delimiter)
{
	struct wm_csv *csv = wm_csv_new();
	struct wm_cut cut = { 0 };
	struct wm_buf said;

	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	while (text.len > 0) {
		struct wm_cut_finder finder = { 0 };
		const struct wm_span *fields;
		bool has_ended;
		size_t len = wm_cut_find(&finder, delimiter, text, &has_ended);

		expect(len > 0 && (has_ended || len == text.len), "a record goes to its line end, or to the last byte");
		if (finder.state != WM_CUT_MALFORMED && finder.state != WM_CUT_QUOTED) {
			struct wm_span content = wm_cut_content(wm_span(text.data, len));

			wm_cut_record(&cut, delimiter, content);
			expect(wm_csv_split(csv, delimiter, content, &fields) == cut.count,
				"it is cut into as many fields");
			for (size_t i = 0; i < cut.count; i++)
				hold_field(cut.fields[i], fields[i], &said);
		}
		text = wm_span(text.data + len, text.len - len);
	}
	wm_buf_release(&said);
	wm_cut_release(&cut);
	wm_csv_free(csv);
}

static void
hold_scan_to_tsv(struct wm_span text, enum wm_marks marks, enum wm_scan_way way)
{
	char *copy = with_slack(text, WM_SCAN_SLACK);
	struct wm_scan *scan = wm_scan_new((struct wm_dialect){ '\t', marks }, way);
	struct wm_cut cut = { 0 };
	size_t at = 0;

	wm_scan_batch(scan, wm_span(copy, text.len));
	for (size_t row = 0; row < scan->rows_count; row++) {
		const uint32_t *after = &scan->after[scan->rows[row]];
		size_t count = scan->rows[row + 1] - scan->rows[row];
		struct wm_span raw = { copy + after[0], after[count] - after[0] };
		struct wm_cut_finder finder = { 0 };
		bool has_ended;
		size_t len =
			wm_tsv_find(&finder, marks == WM_MARKS_ESCAPES, wm_span(copy + at, text.len - at), &has_ended);

		expect(len == raw.len && has_ended && after[0] == at, "a record of TSV ends where the scan says");
		expect(finder.lines_count == 1 || scan->has_inner_line_feeds, "line feeds inside are told of");
		at += len;
		struct wm_span content = wm_cut_content(raw);
		wm_tsv_cut(&cut, marks == WM_MARKS_ESCAPES, content);
		expect(cut.count == (content.len == 0 ? 0 : count), "it has as many fields");
		for (size_t i = 0; i < cut.count && i < WM_COLUMNS_MAX; i++)
			expect(cut.fields[i].data == copy + after[i], "and they begin where the scan says");
	}
	wm_cut_release(&cut);
	wm_scan_free(scan);
	free(copy);
}

static void
hold_tsv_to_itself(struct wm_span value)
{
	struct wm_cut_finder finder = { 0 };
	struct wm_cut cut = { 0 };
	struct wm_buf line, said;
	bool has_ended;

	wm_buf_init(&line, WM_BUF_UNBOUNDED);
	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	wm_tsv_put(&line, value);
	wm_buf_add_text(&line, "\tx\n");
	expect(wm_tsv_find(&finder, true, wm_buf_span(&line), &has_ended) == line.len && has_ended &&
			finder.lines_count == 1,
		"a value of TSV stays in its line");
	wm_tsv_cut(&cut, true, wm_cut_content(wm_buf_span(&line)));
	expect(cut.count == 2 && wm_span_equal(wm_tsv_read(cut.fields[0], &said), value), "and is read as it was");
	wm_cut_release(&cut);
	wm_buf_release(&line);
	wm_buf_release(&said);
}

static void
hold_ndjson_to_model(struct wm_span text)
{
	char *copy = with_slack(text, WM_NDJSON_SLACK);
	struct wm_ndjson *ndjson = wm_ndjson_new(NULL, 0);
	struct wm_ndjson_line line;
	struct wm_value none;
	enum wm_ndjson_result result;
	size_t len = 0;

	if (text.len > 0)
		wm_ndjson_batch(ndjson, wm_span(copy, text.len));
	while (text.len > 0 && (result = wm_ndjson_next(ndjson, &line, &none)) != WM_NDJSON_END) {
		expect(line.raw.data == copy + len, "lines follow each other");
		len += line.raw.len;
		expect((result == WM_NDJSON_BLANK) == json_model_is_blank(line.raw.data, line.raw.len),
			"blank lines are blank");
		expect((result == WM_NDJSON_RECORD) == json_model_is_object(line.raw.data, line.raw.len),
			"records are objects");
	}
	expect(len == text.len, "no byte is lost");
	wm_ndjson_free(ndjson);
	free(copy);
}

static void
want(struct wm_reader *reader, const char *name)
{
	struct wm_column column;
	struct wm_err err;

	expect(wm_column_parse(wm_span_of(name), &column, &err), "a column");
	wm_reader_want(reader, &column);
	wm_column_release(&column);
}

/* All that comes out of a text, also rendered; appended to out. */
static void
read_all(const struct wm_reader_options *options, struct wm_span text, struct wm_buf *out)
{
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err;
	struct wm_reader *reader = wm_reader_new(options, &err);
	int fd = memfd_create("input", MFD_CLOEXEC);
	enum wm_read_result result;

	expect(reader != NULL && fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len, "an input");
	lseek(fd, 0, SEEK_SET);
	if (!options->no_header) {
		want(reader, "b");
		want(reader, "a.b");
	}
	wm_reader_open(reader, fd, "in");
	while ((result = wm_reader_next(reader, &rec, &reject, &err)) != WM_READ_END) {
		if (result == WM_READ_MORE) {
			expect(wm_reader_fill(reader, &err), "the input can be read");
		} else if (result == WM_READ_FAILED) {
			wm_buf_add_text(out, err.message);
			break;
		} else if (result == WM_READ_REJECTED) {
			wm_buf_addf(out, "%llu %s %s ", (unsigned long long)reject.line, reject.reason, reject.detail);
			wm_buf_add(out, reject.raw.data, reject.raw.len);
		} else {
			wm_buf_addf(out, "%llu ", (unsigned long long)rec.line);
			for (size_t i = 0; i < 2 && !options->no_header; i++) {
				wm_buf_addf(out, "%d:", (int)rec.fields[i].kind);
				wm_buf_add(out, rec.fields[i].text.data, rec.fields[i].text.len);
			}
			wm_reader_render(reader, &rec, out);
		}
	}
	wm_reader_free(reader);
}

static void
hold_reads_to_whole(struct wm_reader_options options, struct wm_span text, size_t read_bytes_max)
{
	struct wm_buf whole, parts;

	wm_buf_init(&whole, WM_BUF_UNBOUNDED);
	wm_buf_init(&parts, WM_BUF_UNBOUNDED);
	read_all(&options, text, &whole);
	options.read_bytes_max = read_bytes_max;
	read_all(&options, text, &parts);
	expect(wm_span_equal(wm_buf_span(&whole), wm_buf_span(&parts)), "reads of any size give the same");
	wm_buf_release(&whole);
	wm_buf_release(&parts);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char delimiters[] = { '\0', ',', ';', '\t' };

	if (size < 2)
		return 0;
	struct wm_span text = { (const char *)data + 2, size - 2 };
	struct wm_reader_options options = {
		.format = (enum wm_format)(data[0] & 3),
		.no_header = (data[0] & 4) != 0,
		.record_bytes_max = (data[0] & 8) != 0 ? 20 : 0,
	};
	if (options.format == WM_FORMAT_CSV)
		options.delimiter = delimiters[data[0] >> 4 & 3];
	char delimiter = options.delimiter == '\0' ? ',' : options.delimiter;
	for (enum wm_scan_way way = WM_SCAN_PLAIN; way <= wm_scan_best_way(); way++) {
		hold_scan_to_csv(text, delimiter, way);
		hold_scan_to_tsv(text, WM_MARKS_ESCAPES, way);
		hold_scan_to_tsv(text, WM_MARKS_NONE, way);
	}
	hold_tsv_to_itself(text);
	hold_cut_to_csv(text, delimiter);
	hold_ndjson_to_model(text);
	hold_reads_to_whole(options, text, 1 + data[1] % 64);
	return 0;
}
