/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/stamps.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define NAMES_MAX 4

static struct wm_buf out;

static struct wm_value
value_of(const char *text, enum wm_kind kind)
{
	return (struct wm_value){ wm_span_of(text), kind };
}

/* Names parted by blanks. */
static size_t
names_of(const char *list, struct wm_span *names)
{
	size_t count = 0;

	while (*list != '\0') {
		size_t len = strcspn(list, " ");

		names[count++] = wm_span(list, len);
		list += len + (list[len] == ' ');
	}
	return count;
}

static void
begin(struct wm_stamps *stamps, const struct wm_row_format *format, const char *columns, const char *stamped)
{
	struct wm_span names[NAMES_MAX], own[NAMES_MAX];
	struct wm_header header = { 0 };
	size_t own_count = names_of(columns, own), names_count = names_of(stamped, names);

	wm_header_take(&header, own, own_count);
	wm_stamps_init(stamps, format, &header, names, names_count);
	wm_header_release(&header);
}

static struct wm_span
put(struct wm_stamps *stamps, const char *line, bool is_new)
{
	static const struct wm_value values[] = {
		{ { "T", 1 }, WM_KIND_TEXT },
		{ { "7", 1 }, WM_KIND_NUMBER },
	};

	wm_buf_reset(&out);
	wm_stamps_put(stamps, wm_span_of(line), is_new, values, &out);
	return wm_buf_span(&out);
}

static struct wm_span
header(struct wm_stamps *stamps, const char *line)
{
	wm_buf_reset(&out);
	wm_stamps_put_header(stamps, wm_span_of(line), &out);
	return wm_buf_span(&out);
}

static void
test_csv(void)
{
	static const struct wm_row_format csv = { WM_FORMAT_CSV, ',', "\n", NULL },
					  tsv = { WM_FORMAT_TSV, '\t', "\r\n", NULL },
					  semicolon = { WM_FORMAT_CSV, ';', "\n", NULL };
	struct wm_stamps stamps;

	begin(&stamps, &csv, "a b", "_t _w");
	tap_span(header(&stamps, "a,\"b\"\n"), "a,\"b\",_t,_w\n", "a header gets the columns behind its own");
	tap_span(put(&stamps, "1,2\n", false), "1,2,T,7\n", "and a row their values");
	tap_span(put(&stamps, "\"1\"\"\n,\",\n", false), "\"1\"\"\n,\",,T,7\n", "quotes and an empty field stay");
	tap_span(put(&stamps, "1,2\r\n", false), "1,2,T,7\r\n", "the end of a line is its own");
	wm_stamps_release(&stamps);

	begin(&stamps, &csv, "a", "_t _w");
	tap_span(put(&stamps, "\"\"\n", false), "\"\",T,7\n", "a lone empty field");
	wm_stamps_release(&stamps);

	begin(&stamps, &csv, "_w a _t b", "_t _w");
	tap_span(header(&stamps, "_w,a,_t,b\n"), "_w,a,_t,b\n", "a header that has them stays");
	tap_span(put(&stamps, "old,\"1\",,2\n", false), "7,\"1\",T,2\n", "values are replaced where they stand");
	wm_stamps_release(&stamps);

	begin(&stamps, &csv, "_w a", "_t _w");
	tap_span(header(&stamps, "_w,a\n"), "_w,a,_t\n", "one of two is there");
	tap_span(put(&stamps, "old,1\n", false), "7,1,T\n", "one is replaced, one added");
	tap_span(put(&stamps, "old,\"\"\r\n", false), "7,\"\",T\r\n", "with its line end");
	wm_stamps_release(&stamps);

	begin(&stamps, &tsv, "a b", "_t _w");
	tap_span(header(&stamps, "a\tb\r\n"), "a\tb\t_t\t_w\r\n", "TSV");
	tap_span(put(&stamps, "1,1\t2\r\n", false), "1,1\t2\tT\t7\r\n", "its rows");
	wm_stamps_release(&stamps);

	begin(&stamps, &semicolon, "a b", "x;y _w");
	tap_span(header(&stamps, "a;b\n"), "a;b;\"x;y\";_w\n", "a name is quoted where it must be");
	wm_stamps_release(&stamps);
}

static void
test_json(void)
{
	static const struct wm_row_format json = { WM_FORMAT_NDJSON, ',', "\n", NULL };
	struct wm_stamps stamps;

	begin(&stamps, &json, "", "_t _w");
	tap_span(put(&stamps, "{\"a\":1}\n", true), "{\"a\":1,\"_t\":\"T\",\"_w\":7}\n", "members go before the brace");
	tap_span(put(&stamps, "  { \"a\" : {\"b\":[]} }\t\r\n", true),
		"  { \"a\" : {\"b\":[]} ,\"_t\":\"T\",\"_w\":7}\t\r\n", "blanks stay");
	tap_span(put(&stamps, "{}\n", true), "{\"_t\":\"T\",\"_w\":7}\n", "an object without members");
	tap_span(put(&stamps, "{ }\n", true), "{ \"_t\":\"T\",\"_w\":7}\n", "and with a blank in it");
	tap_span(put(&stamps, "{\"a\":\"}{\"}\n", true), "{\"a\":\"}{\",\"_t\":\"T\",\"_w\":7}\n", "braces in a text");
	tap_span(put(&stamps, "{\"a\":1}\n", false), "{\"a\":1,\"_t\":\"T\",\"_w\":7}\n",
		"not known to be new, but without them");
	tap_span(put(&stamps, "{\"_w\":\"old\", \"a\":1 , \"_t\" : null}\n", false),
		"{\"_w\":7, \"a\":1 , \"_t\" : \"T\"}\n", "members are replaced where they stand");
	tap_span(put(&stamps, "{\"b\":2,\"_t\":0}\n", false), "{\"b\":2,\"_t\":\"T\",\"_w\":7}\n",
		"one is replaced, one added");
	tap_span(put(&stamps, "{\"a\":{\"_t\":1}}\n", false), "{\"a\":{\"_t\":1},\"_t\":\"T\",\"_w\":7}\n",
		"a member further in is another");
	tap_span(put(&stamps, "{\"\\u005ft\":0,\"_w\":1}\n", false), "{\"\\u005ft\":\"T\",\"_w\":7}\n",
		"a name that is written with an escape");
	wm_stamps_release(&stamps);
}

static struct wm_span
lone(const struct wm_row_format *format, size_t columns_count, size_t place)
{
	const struct wm_value value = value_of("7", WM_KIND_NUMBER);

	wm_buf_reset(&out);
	wm_lone_put(&out, format, columns_count, place, wm_span_of("_w"), &value);
	return wm_buf_span(&out);
}

static void
test_lone(void)
{
	static const struct wm_row_format csv = { WM_FORMAT_CSV, ',', "\n", NULL },
					  tsv = { WM_FORMAT_TSV, '\t', "\r\n", NULL },
					  json = { WM_FORMAT_NDJSON, ',', "\n", NULL };

	tap_span(lone(&csv, 4, 3), ",,,7\n", "punctuation in CSV");
	tap_span(lone(&csv, 3, 0), "7,,\n", "in its first column");
	tap_span(lone(&csv, 1, 0), "7\n", "in its only column");
	tap_span(lone(&tsv, 3, 1), "\t7\t\r\n", "in TSV with CR LF");
	tap_span(lone(&json, 3, 1), "{\"_w\":7}\n", "in NDJSON");
}

/* What is appended, or replaced, is what a record taken apart and put together again says; the rest stands as it came. */
static void
test_random(void)
{
	static const struct wm_row_format csv = { WM_FORMAT_CSV, ',', "\n", NULL };
	static const char *const fields[] = { "", "x", "\"\"", "\"a,b\"", "\"q\"\"q\"", " y ", "\"\n\"" };
	uint64_t seed = 20;
	bool is_well = true;

	for (int round = 0; round < 2000 && is_well; round++) {
		/* Columns a, b and c, two of which may be the stamps. */
		bool has_stamp = tap_random(&seed) % 2 == 0;
		struct wm_stamps stamps;
		struct wm_buf line, want;
		size_t place = tap_random(&seed) % 3;

		begin(&stamps, &csv,
			has_stamp && place == 0           ? "_t b c"
				: has_stamp && place == 1 ? "a _t c"
							  : "a b _t",
			has_stamp || place == 2 ? "_t _w" : "_u _w");
		bool is_replaced = has_stamp || place == 2;
		size_t own = has_stamp ? place : 2;
		wm_buf_init(&line, WM_BUF_UNBOUNDED);
		wm_buf_init(&want, WM_BUF_UNBOUNDED);
		for (size_t i = 0; i < 3; i++) {
			const char *field = fields[tap_random(&seed) % (sizeof(fields) / sizeof(fields[0]))];

			wm_buf_addf(&line, "%s%s", i == 0 ? "" : ",", field);
			wm_buf_addf(&want, "%s%s", i == 0 ? "" : ",", is_replaced && i == own ? "T" : field);
		}
		wm_buf_add_text(&line, "\n");
		wm_buf_add_text(&want, is_replaced ? ",7\n" : ",T,7\n");
		wm_buf_add_byte(&line, '\0');
		is_well = wm_span_equal(put(&stamps, line.data, false), wm_buf_span(&want));
		if (!is_well)
			printf("# line %s# got %.*s# want %.*s", line.data, (int)out.len, out.data, (int)want.len,
				want.data);
		wm_buf_release(&line);
		wm_buf_release(&want);
		wm_stamps_release(&stamps);
	}
	tap_ok(is_well, "2000 random records keep all other fields");
}

int
main(void)
{
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	test_csv();
	test_json();
	test_lone();
	test_random();
	wm_buf_release(&out);
	return tap_done();
}
