/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/csv.h"

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/record/cut.h"
#include "tests/unit/csv_model.h"
#include "tests/unit/tap.h"

static struct wm_csv *csv;
static struct wm_buf got;

/* The fields of a record without its line end, each as "[LEN:BYTES]". */
static size_t
split(struct wm_span content, char delimiter)
{
	const struct wm_span *fields;
	size_t count = wm_csv_split(csv, delimiter, content, &fields);

	wm_buf_reset(&got);
	for (size_t i = 0; i < count; i++) {
		wm_buf_addf(&got, "[%zu:", fields[i].len);
		wm_buf_add(&got, fields[i].data, fields[i].len);
		wm_buf_add_byte(&got, ']');
	}
	return count;
}

static void
check(const char *content, const char *fields, const char *name)
{
	split(wm_span_of(content), ',');
	tap_span(wm_buf_span(&got), fields, name);
}

static void
test_against_model(void)
{
	static const char letters[] = "a,\"\n\r \"";
	uint64_t random = 2;
	struct csv_model model = { 0 };
	bool is_well = true;

	wm_buf_init(&model.fields, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 60000 && is_well; i++) {
		char text[16];
		size_t len = tap_random(&random) % (sizeof(text) + 1);

		for (size_t k = 0; k < len; k++)
			text[k] = letters[tap_random(&random) % (sizeof(letters) - 1)];
		for (size_t at = 0, next; at < len && is_well; at = next) {
			next = csv_model_read(&model, wm_span(text, len), ',', at);
			if (model.is_malformed)
				continue;
			size_t count = split(wm_cut_content(wm_span(text + at, next - at)), ',');
			is_well = count == model.fields_count &&
				wm_span_equal(wm_buf_span(&got), wm_buf_span(&model.fields));
			if (!is_well)
				printf("# '%.*s' at %zu: '%.*s', want '%.*s'\n", (int)len, text, at, (int)got.len,
					got.data, (int)model.fields.len, model.fields.data);
		}
	}
	wm_buf_release(&model.fields);
	tap_ok(is_well, "random records: fields as the model has them");
}

static void
test_long(void)
{
	struct wm_buf text;
	const struct wm_span *fields;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_add_byte(&text, '"');
	for (int i = 0; i < 300000; i++)
		wm_buf_add_text(&text, "x\n");
	wm_buf_add_text(&text, "\",y");
	size_t count = wm_csv_split(csv, ',', wm_buf_span(&text), &fields);
	tap_ok(count == 2 && fields[0].len == 600000 && fields[0].data[599999] == '\n' && wm_span_is(fields[1], "y"),
		"a field longer than libcsv's block");
	wm_buf_reset(&text);
	for (int i = 0; i < WM_COLUMNS_MAX + 1; i++)
		wm_buf_add_text(&text, ",");
	count = wm_csv_split(csv, ',', wm_buf_span(&text), &fields);
	tap_int((int64_t)count, WM_COLUMNS_MAX + 2, "more fields than are kept are counted");
	tap_int((int64_t)fields[WM_COLUMNS_MAX - 1].len, 0, "the last that is kept");
	wm_buf_release(&text);
}

int
main(void)
{
	csv = wm_csv_new();
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	check("a,b", "[1:a][1:b]", "two fields");
	check("", "", "an empty text has none");
	check("a\rb,c", "[3:a\rb][1:c]", "a bare CR is data");
	check(" a , b ", "[3: a ][3: b ]", "blanks belong to the field");
	check("\"\"", "[0:]", "a quoted empty field");
	check("1,a,\"line one\nline two\"", "[1:1][1:a][17:line one\nline two]", "a line feed inside");
	check("3,\"b,1\",\"say \"\"hi\"\"\"", "[1:3][3:b,1][8:say \"hi\"]", "comma and doubled quotes");
	check("a\"b\",c\"", "[4:a\"b\"][2:c\"]", "a quote inside an unquoted field is a letter");
	split(wm_span_of("a;\"b;c\";d,e"), ';');
	tap_span(wm_buf_span(&got), "[1:a][3:b;c][3:d,e]", "another delimiter");
	test_against_model();
	test_long();
	wm_csv_free(csv);
	wm_buf_release(&got);
	return tap_done();
}
