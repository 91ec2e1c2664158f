#include "lib/record/csv.h"

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "tests/unit/csv_model.h"
#include "tests/unit/tap.h"

static struct wm_csv *csv;
static struct wm_buf got;

/* Finds the record at the begin of text, in pieces of step bytes, and cuts it. Returns its length. */
static size_t
read_record(struct wm_span text, char delimiter, size_t step, struct wm_csv_finder *finder, size_t *fields_count)
{
	const struct wm_span *fields;
	size_t len = 0;
	bool has_ended = false;

	*finder = (struct wm_csv_finder){ 0 };
	while (len < text.len && !has_ended) {
		size_t left = text.len - len;

		len += wm_csv_find(finder, delimiter, wm_span(text.data + len, left < step ? left : step), &has_ended);
	}
	*fields_count = wm_csv_split(csv, delimiter, wm_csv_content(wm_span(text.data, len)), &fields);
	wm_buf_reset(&got);
	for (size_t i = 0; i < *fields_count; i++) {
		wm_buf_addf(&got, "[%zu:", fields[i].len);
		wm_buf_add(&got, fields[i].data, fields[i].len);
		wm_buf_add_byte(&got, ']');
	}
	return len;
}

static void
check(const char *text, size_t len, const char *fields, enum wm_csv_state state, const char *name)
{
	struct wm_csv_finder finder;
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
	bool is_well = true;

	wm_buf_init(&model.fields, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 60000 && is_well; i++) {
		char text[16];
		size_t len = tap_random(&random) % (sizeof(text) + 1);

		for (size_t k = 0; k < len; k++)
			text[k] = letters[tap_random(&random) % (sizeof(letters) - 1)];
		for (size_t at = 0; at < len && is_well;) {
			struct wm_csv_finder finder;
			size_t count, next = csv_model_read(&model, wm_span(text, len), ',', at);
			size_t got_len = read_record(
				wm_span(text + at, len - at), ',', 1 + tap_random(&random) % 5, &finder, &count);
			bool is_malformed = finder.state == WM_CSV_MALFORMED || finder.state == WM_CSV_QUOTED;
			uint64_t lines = 0;

			for (size_t k = at; k < next; k++)
				lines += text[k] == '\n';
			is_well = at + got_len == next && is_malformed == model.is_malformed &&
				lines == finder.lines_count;
			if (is_well && !model.is_malformed)
				is_well = count == model.fields_count &&
					wm_span_equal(wm_buf_span(&got), wm_buf_span(&model.fields));
			if (!is_well)
				printf("# '%.*s' at %zu: '%.*s', want '%.*s'\n", (int)len, text, at, (int)got.len,
					got.data, (int)model.fields.len, model.fields.data);
			at = next;
		}
	}
	wm_buf_release(&model.fields);
	tap_ok(is_well, "random texts: ends, lines and fields as the model has them");
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
	struct wm_csv_finder finder;
	size_t count;

	csv = wm_csv_new();
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	check("a,b\nc", 4, "[1:a][1:b]", WM_CSV_UNQUOTED, "two fields");
	check("a,b\r\nc", 5, "[1:a][1:b]", WM_CSV_UNQUOTED, "CR LF");
	check("a,\r\r\n", 5, "[1:a][1:\r]", WM_CSV_UNQUOTED, "one CR is dropped, another is data");
	check("a\rb,c\n", 6, "[3:a\rb][1:c]", WM_CSV_UNQUOTED, "a bare CR is data");
	check(" a , b \n", 8, "[3: a ][3: b ]", WM_CSV_UNQUOTED, "blanks belong to the field");
	check("\t\n", 2, "[1:\t]", WM_CSV_UNQUOTED, "a tab is no delimiter of CSV");
	check(",\n", 2, "[0:][0:]", WM_CSV_FIELD_BEGIN, "two empty fields");
	check("\"\"\n", 3, "[0:]", WM_CSV_QUOTE_SEEN, "a quoted empty field");
	check("1,a,\"line one\nline two\"\n", 24, "[1:1][1:a][17:line one\nline two]", WM_CSV_QUOTE_SEEN,
		"a line feed inside");
	check("2,a,\"ends in newline\n\"\n", 23, "[1:2][1:a][16:ends in newline\n]", WM_CSV_QUOTE_SEEN,
		"a field that ends in LF");
	check("3,\"b,1\",\"say \"\"hi\"\"\"\n", 21, "[1:3][3:b,1][8:say \"hi\"]", WM_CSV_QUOTE_SEEN,
		"comma and doubled quotes");
	check("4,b,\"\"\"\"\n", 9, "[1:4][1:b][1:\"]", WM_CSV_QUOTE_SEEN, "a field that is a quote");
	check("3,30,\"x\r\ny\"\r\n", 13, "[1:3][2:30][4:x\r\ny]", WM_CSV_CR_SEEN, "CR LF inside stays, outside goes");
	check("a\"b\",c\"\n", 8, "[4:a\"b\"][2:c\"]", WM_CSV_UNQUOTED, "a quote inside an unquoted field is a letter");
	check("2,\"b\"", 5, "[1:2][1:b]", WM_CSV_QUOTE_SEEN, "a quoted last field without line end");
	check("2,\"b\"\r", 6, "[1:2][1:b]", WM_CSV_CR_SEEN, "and with half of one");
	read_record(wm_span_of("a,\"b\"c\",\"\nd,e\n"), ',', SIZE_MAX, &finder, &count);
	tap_int(finder.state, WM_CSV_MALFORMED, "text behind a closing quote");
	tap_int((int64_t)finder.lines_count, 1, "ends with its line, whatever quotes follow");
	read_record(wm_span_of("a,\"b\n\",\nc"), ',', SIZE_MAX, &finder, &count);
	tap_int((int64_t)finder.lines_count, 2, "lines inside a record count");
	read_record(wm_span_of("a,\"b\n\",\"c\n\n"), ',', SIZE_MAX, &finder, &count);
	tap_ok(finder.state == WM_CSV_QUOTED && finder.quote_line == 1, "a quoted field that never ends, and its line");
	read_record(wm_span_of("a;\"b;c\";d,e\n"), ';', SIZE_MAX, &finder, &count);
	tap_span(wm_buf_span(&got), "[1:a][3:b;c][3:d,e]", "another delimiter");
	test_against_model();
	test_long();
	wm_csv_free(csv);
	wm_buf_release(&got);
	return tap_done();
}
