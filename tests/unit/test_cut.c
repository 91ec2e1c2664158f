/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/cut.h"

#include <stdlib.h>

#include "lib/base/limits.h"
#include "lib/record/csv.h"
#include "tests/unit/csv_model.h"
#include "tests/unit/tap.h"

static struct wm_cut cut;
static struct wm_buf got;

static bool
is_malformed(const struct wm_cut_finder *finder)
{
	return finder->state == WM_CUT_MALFORMED || finder->state == WM_CUT_QUOTED;
}

/* What libcsv makes of the record, as the log has it. */
static bool
agrees_with_libcsv(struct wm_csv *csv, struct wm_span raw, size_t fields_count)
{
	const struct wm_span *fields;
	struct wm_buf want;

	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	size_t count = wm_csv_split(csv, ',', wm_cut_content(raw), &fields);
	for (size_t i = 0; i < count; i++) {
		wm_buf_addf(&want, "[%zu:", fields[i].len);
		wm_buf_add(&want, fields[i].data, fields[i].len);
		wm_buf_add_byte(&want, ']');
	}
	bool is_well = count == fields_count && wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
	wm_buf_release(&want);
	return is_well;
}

/* Finds the record at the begin of text, in pieces of step bytes, and cuts it. Returns its length. */
static size_t
read_record(struct wm_span text, char delimiter, size_t step, struct wm_cut_finder *finder, size_t *fields_count)
{
	size_t len = 0;
	bool has_ended = false;

	*finder = (struct wm_cut_finder){ 0 };
	while (len < text.len && !has_ended) {
		size_t left = text.len - len;

		len += wm_cut_find(finder, delimiter, wm_span(text.data + len, left < step ? left : step), &has_ended);
	}
	struct wm_buf said;

	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	wm_buf_reset(&got);
	wm_cut_record(&cut, delimiter, wm_cut_content(wm_span(text.data, len)));
	*fields_count = cut.count;
	for (size_t i = 0; i < cut.count && !is_malformed(finder); i++) {
		struct wm_span field = wm_cut_unquote(cut.fields[i], &said);

		wm_buf_addf(&got, "[%zu:", field.len);
		wm_buf_add(&got, field.data, field.len);
		wm_buf_add_byte(&got, ']');
	}
	wm_buf_release(&said);
	return len;
}

static void
check(const char *text, size_t len, const char *fields, enum wm_cut_state state, const char *name)
{
	struct wm_cut_finder finder;
	size_t count, record_len = read_record(wm_span_of(text), ',', SIZE_MAX, &finder, &count);

	tap_ok(record_len == len && finder.state == state && wm_span_is(wm_buf_span(&got), fields), "%s", name);
	if (record_len != len || finder.state != state || !wm_span_is(wm_buf_span(&got), fields))
		printf("# %zu bytes, state %d, %.*s\n", record_len, (int)finder.state, (int)got.len, got.data);
}

static void
test_against_model(void)
{
	static const char letters[] = "a,\"\n\r \"";
	uint64_t random = 1;
	struct csv_model model = { 0 };
	struct wm_csv *csv = wm_csv_new();
	bool is_well = true;

	wm_buf_init(&model.fields, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 60000 && is_well; i++) {
		char text[16];
		size_t len = tap_random(&random) % (sizeof(text) + 1);

		for (size_t k = 0; k < len; k++)
			text[k] = letters[tap_random(&random) % (sizeof(letters) - 1)];
		for (size_t at = 0; at < len && is_well;) {
			struct wm_cut_finder finder;
			size_t count, next = csv_model_read(&model, wm_span(text, len), ',', at);
			size_t got_len = read_record(
				wm_span(text + at, len - at), ',', 1 + tap_random(&random) % 5, &finder, &count);
			uint64_t lines = 0;

			for (size_t k = at; k < next; k++)
				lines += text[k] == '\n';
			is_well = at + got_len == next && is_malformed(&finder) == model.is_malformed &&
				lines == finder.lines_count;
			if (is_well && !model.is_malformed)
				is_well = count == model.fields_count &&
					wm_span_equal(wm_buf_span(&got), wm_buf_span(&model.fields)) &&
					agrees_with_libcsv(csv, wm_span(text + at, got_len), count);
			if (!is_well)
				printf("# '%.*s' at %zu: '%.*s', want '%.*s'\n", (int)len, text, at, (int)got.len,
					got.data, (int)model.fields.len, model.fields.data);
			at = next;
		}
	}
	wm_buf_release(&model.fields);
	wm_csv_free(csv);
	tap_ok(is_well, "random texts: ends, lines and fields as the model and libcsv have them");
}

static void
test_limits(void)
{
	struct wm_buf text, said;
	struct wm_span field;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (int i = 0; i < WM_COLUMNS_MAX + 1; i++)
		wm_buf_add_text(&text, "x,");
	wm_cut_record(&cut, ',', wm_buf_span(&text));
	tap_int((int64_t)cut.count, WM_COLUMNS_MAX + 2, "more fields than are kept are counted");
	tap_span(cut.fields[WM_COLUMNS_MAX - 1], "x", "the last that is kept");
	wm_cut_record(&cut, ',', wm_span(NULL, 0));
	tap_int((int64_t)cut.count, 0, "an empty text has no fields");

	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	field = wm_span_of("\"a,b\"");
	tap_ok(wm_cut_unquote(field, &said).data == field.data + 1 && said.capacity == 0,
		"without doubled quotes nothing is copied");
	tap_span(wm_cut_unquote(wm_span_of("\"\"\"a\"\"\"\"b\"\"\""), &said), "\"a\"\"b\"", "with them they are one");
	tap_span(wm_cut_unquote(wm_span_of("a\"\"b"), &said), "a\"\"b", "not where nothing is quoted");
	wm_buf_release(&said);
	wm_buf_release(&text);
}

int
main(void)
{
	struct wm_cut_finder finder;
	size_t count;

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	check("a,b\nc", 4, "[1:a][1:b]", WM_CUT_UNQUOTED, "two fields");
	check("a,b\r\nc", 5, "[1:a][1:b]", WM_CUT_UNQUOTED, "CR LF");
	check("a,\r\r\n", 5, "[1:a][1:\r]", WM_CUT_UNQUOTED, "one CR is dropped, another is data");
	check("a\rb,c\n", 6, "[3:a\rb][1:c]", WM_CUT_UNQUOTED, "a bare CR is data");
	check(" a , b \n", 8, "[3: a ][3: b ]", WM_CUT_UNQUOTED, "blanks belong to the field");
	check("\t\n", 2, "[1:\t]", WM_CUT_UNQUOTED, "a tab is no delimiter of CSV");
	check(",\n", 2, "[0:][0:]", WM_CUT_FIELD_BEGIN, "two empty fields");
	check("\"\"\n", 3, "[0:]", WM_CUT_QUOTE_SEEN, "a quoted empty field");
	check("1,a,\"line one\nline two\"\n", 24, "[1:1][1:a][17:line one\nline two]", WM_CUT_QUOTE_SEEN,
		"a line feed inside");
	check("2,a,\"ends in newline\n\"\n", 23, "[1:2][1:a][16:ends in newline\n]", WM_CUT_QUOTE_SEEN,
		"a field that ends in LF");
	check("3,\"b,1\",\"say \"\"hi\"\"\"\n", 21, "[1:3][3:b,1][8:say \"hi\"]", WM_CUT_QUOTE_SEEN,
		"comma and doubled quotes");
	check("4,b,\"\"\"\"\n", 9, "[1:4][1:b][1:\"]", WM_CUT_QUOTE_SEEN, "a field that is a quote");
	check("3,30,\"x\r\ny\"\r\n", 13, "[1:3][2:30][4:x\r\ny]", WM_CUT_CR_SEEN, "CR LF inside stays, outside goes");
	check("a\"b\",c\"\n", 8, "[4:a\"b\"][2:c\"]", WM_CUT_UNQUOTED, "a quote inside an unquoted field is a letter");
	check("2,\"b\"", 5, "[1:2][1:b]", WM_CUT_QUOTE_SEEN, "a quoted last field without line end");
	check("2,\"b\"\r", 6, "[1:2][1:b]", WM_CUT_CR_SEEN, "and with half of one");
	read_record(wm_span_of("a,\"b\"c\",\"\nd,e\n"), ',', SIZE_MAX, &finder, &count);
	tap_int(finder.state, WM_CUT_MALFORMED, "text behind a closing quote");
	tap_int((int64_t)finder.lines_count, 1, "ends with its line, whatever quotes follow");
	read_record(wm_span_of("a,\"b\n\",\nc"), ',', SIZE_MAX, &finder, &count);
	tap_int((int64_t)finder.lines_count, 2, "lines inside a record count");
	read_record(wm_span_of("a,\"b\n\",\"c\n\n"), ',', SIZE_MAX, &finder, &count);
	tap_ok(finder.state == WM_CUT_QUOTED && finder.quote_line == 1, "a quoted field that never ends, and its line");
	read_record(wm_span_of("a;\"b;c\";d,e\n"), ';', SIZE_MAX, &finder, &count);
	tap_span(wm_buf_span(&got), "[1:a][3:b;c][3:d,e]", "another delimiter");
	test_against_model();
	test_limits();
	wm_cut_release(&cut);
	wm_buf_release(&got);
	return tap_done();
}
