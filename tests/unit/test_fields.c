/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/fields.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

static struct wm_buf out;

static void
begin(struct wm_columns *columns, struct wm_fields *fields, enum wm_format format, char delimiter, const char *line_end)
{
	const struct wm_row_format row_format = { format, delimiter, line_end, NULL };

	wm_columns_init(columns, &row_format);
	wm_fields_init(fields, columns);
}

static void
end(struct wm_columns *columns, struct wm_fields *fields)
{
	wm_fields_release(fields);
	wm_columns_release(columns);
}

static struct wm_value
text(const char *value)
{
	return (struct wm_value){ wm_span_of(value), WM_KIND_TEXT };
}

static struct wm_span
rendered(const struct wm_fields *fields)
{
	wm_buf_reset(&out);
	wm_fields_render(fields, &out);
	return wm_buf_span(&out);
}

static struct wm_span
said(const struct wm_fields *fields, size_t column)
{
	return wm_fields_at(fields, column).text;
}

static void
test_csv(void)
{
	struct wm_columns columns;
	struct wm_fields fields;
	size_t column;

	begin(&columns, &fields, WM_FORMAT_CSV, ',', "\n");
	wm_columns_append_header(&columns, wm_span_of("a,\"b \"\"x\"\"\",c,a\n"));
	tap_int((int64_t)columns.count, 4, "a header has its columns");
	tap_span(columns.names[1], "b \"x\"", "a quoted name");
	tap_ok(wm_columns_find(&columns, wm_span_of("a"), &column) && column == 0, "the first of two of one name");
	tap_ok(!wm_columns_find(&columns, wm_span_of("z"), &column), "no such column");

	const char *line = "\"1\",\"say \"\"no\"\"\", x ,\"\"\"q\"\"\"\n";
	wm_fields_split(&fields, wm_span_of(line));
	tap_span(said(&fields, 0), "1", "quotes around a field");
	tap_span(said(&fields, 1), "say \"no\"", "doubled quotes");
	tap_span(said(&fields, 2), " x ", "blanks belong to the field");
	tap_span(said(&fields, 3), "\"q\"", "a second one, and the first still stands");
	tap_span(said(&fields, 1), "say \"no\"", "it does");
	tap_span(rendered(&fields), line, "what was not set is as it came");
	struct wm_value value = text("2,5");
	wm_fields_set(&fields, 2, &value);
	tap_span(rendered(&fields), "\"1\",\"say \"\"no\"\"\",\"2,5\",\"\"\"q\"\"\"\n", "one field is rewritten");
	tap_span(said(&fields, 2), "2,5", "and says so");
	wm_fields_split(&fields, wm_span_of("1,2,,\n"));
	tap_ok(!fields.is_changed && said(&fields, 2).len == 0, "the next record knows nothing of it");
	value = text("");
	wm_fields_set(&fields, 0, &value);
	tap_span(rendered(&fields), ",2,,\n", "an empty field");
	wm_fields_split(&fields, wm_span_of("1,2,3,4\r\n"));
	wm_fields_set(&fields, 3, &value);
	tap_span(rendered(&fields), "1,2,3,\r\n", "a line that ends in another way than the others");
	end(&columns, &fields);

	begin(&columns, &fields, WM_FORMAT_TSV, '\t', "\r\n");
	wm_columns_append_header(&columns, wm_span_of("a\tb\r\n"));
	wm_fields_split(&fields, wm_span_of("x,y\t2\r\n"));
	value = text("3,\t");
	wm_fields_set(&fields, 1, &value);
	tap_span(rendered(&fields), "x,y\t3,\\t\r\n", "TSV with CR LF");
	wm_fields_split(&fields, wm_span_of("\"x\\\t\\\\y\tz\r\n"));
	tap_span(said(&fields, 0), "\"x\t\\y", "what its escapes stand for");
	wm_fields_set(&fields, 1, &value);
	tap_span(rendered(&fields), "\"x\\\t\\\\y\t3,\\t\r\n", "and they stay as they are");
	end(&columns, &fields);

	begin(&columns, &fields, WM_FORMAT_CSV, ',', "\n");
	wm_columns_append_header(&columns, wm_span_of("a\n"));
	wm_fields_split(&fields, wm_span_of("x\n"));
	value = text("");
	wm_fields_set(&fields, 0, &value);
	tap_span(rendered(&fields), "\"\"\n", "a lone empty field is no empty line");
	end(&columns, &fields);
}

static void
test_json(void)
{
	struct wm_columns columns;
	struct wm_fields fields;

	begin(&columns, &fields, WM_FORMAT_NDJSON, ',', "\n");
	const char *line =
		" { \"a\" : 1.50 ,\"b\":\"x\\n\\u00e9\\ud83d\\ude00\\\"\", \"c\\u0031\":null,\"d\":[1,{\"}\":\"]\"}],"
		"\"e\":true,\"f\":{} } \n";
	wm_fields_split(&fields, wm_span_of(line));
	tap_int((int64_t)columns.count, 6, "members are columns");
	tap_span(columns.names[2], "c1", "a name with an escape");
	tap_span(said(&fields, 0), "1.50", "a number is its text");
	tap_span(said(&fields, 1), "x\n\xc3\xa9\xf0\x9f\x98\x80\"", "escapes are undone");
	tap_span(said(&fields, 3), "[1,{\"}\":\"]\"}]", "an array with braces in texts");
	tap_ok(wm_fields_at(&fields, 0).kind == WM_KIND_NUMBER && wm_fields_at(&fields, 1).kind == WM_KIND_TEXT &&
			wm_fields_at(&fields, 2).kind == WM_KIND_NULL &&
			wm_fields_at(&fields, 3).kind == WM_KIND_JSON &&
			wm_fields_at(&fields, 4).kind == WM_KIND_BOOL && wm_fields_at(&fields, 5).kind == WM_KIND_JSON,
		"kinds");
	tap_span(rendered(&fields), line, "what was not set is as it came");
	struct wm_value number = { wm_span_of("2"), WM_KIND_NUMBER }, quoted = text("a\"b");
	wm_fields_set(&fields, 2, &quoted);
	wm_fields_set(&fields, 0, &number);
	tap_span(rendered(&fields),
		" { \"a\" : 2 ,\"b\":\"x\\n\\u00e9\\ud83d\\ude00\\\"\", "
		"\"c\\u0031\":\"a\\\"b\",\"d\":[1,{\"}\":\"]\"}],"
		"\"e\":true,\"f\":{} } \n",
		"two members are rewritten");

	wm_fields_split(&fields, wm_span_of("{\"b\":\"\\ud800!\"}\n"));
	tap_span(said(&fields, 1), "\xed\xa0\x80!", "half a surrogate pair");
	tap_ok(wm_fields_at(&fields, 0).kind == WM_KIND_NULL, "a member that is not there");
	wm_fields_set(&fields, 0, &number);
	tap_span(rendered(&fields), "{\"b\":\"\\ud800!\",\"a\":2}\n", "is put in");
	wm_fields_split(&fields, wm_span_of("{ }\n"));
	wm_fields_set(&fields, 0, &number);
	tap_span(rendered(&fields), "{ \"a\":2}\n", "into an empty object too");
	wm_fields_split(&fields, wm_span_of("{\"a\":1,\"b\":2,\"a\":3}\n"));
	tap_span(said(&fields, 0), "3", "of repeated members the last");
	wm_fields_set(&fields, 0, &number);
	tap_span(rendered(&fields), "{\"a\":1,\"b\":2,\"a\":2}\n", "and that one changes");
	wm_fields_split(&fields, wm_span_of("{\"z\":1,\"a\":4}\n"));
	tap_ok(columns.count == 7 && wm_span_is(said(&fields, 6), "1") && wm_span_is(said(&fields, 0), "4"),
		"a new column behind the others, in any order");
	end(&columns, &fields);
}

/* Whether the column has a value and no other has. */
static bool
is_lone(struct wm_fields *fields, const char *line, size_t column)
{
	wm_fields_split(fields, wm_span_of(line));
	return wm_fields_is_lone(fields, column);
}

static void
test_lone(void)
{
	struct wm_columns columns;
	struct wm_fields fields;

	begin(&columns, &fields, WM_FORMAT_CSV, ',', "\n");
	wm_columns_append_header(&columns, wm_span_of("a,b,c\n"));
	tap_ok(is_lone(&fields, ",7,\n", 1), "one field has a value");
	tap_ok(is_lone(&fields, "\"\",\"7\",\"\"\r\n", 1), "also where the empty ones have quotes");
	tap_ok(!is_lone(&fields, ",7,\n", 0) && !is_lone(&fields, ",7,\n", 2), "it is this column, not another");
	tap_ok(!is_lone(&fields, ",,\n", 1), "no value at all");
	tap_ok(!is_lone(&fields, "1,7,\n", 1) && !is_lone(&fields, ",7,\"x\"\n", 1), "another has one too");
	tap_ok(!is_lone(&fields, ",7, \n", 1), "a blank is a value");
	end(&columns, &fields);

	begin(&columns, &fields, WM_FORMAT_NDJSON, ',', "\n");
	wm_columns_append(&columns, wm_span_of("w"));
	tap_ok(is_lone(&fields, "{\"w\":7}\n", 0), "an object with one member");
	tap_ok(is_lone(&fields, " {\"a\":null, \"w\":7,\"b\":\"\"} \n", 0), "nulls and empty texts are no values");
	tap_ok(!is_lone(&fields, "{\"w\":7,\"c\":0}\n", 0) && !is_lone(&fields, "{\"w\":7,\"d\":[]}\n", 0) &&
			!is_lone(&fields, "{\"w\":7,\"e\":false}\n", 0),
		"0, [] and false are");
	tap_ok(is_lone(&fields, "{\"w\":7}\n", 0), "members of objects before are forgotten");
	tap_ok(!is_lone(&fields, "{}\n", 0) && !is_lone(&fields, "{\"w\":null}\n", 0), "no value at all");
	tap_ok(is_lone(&fields, "{\"a\":1,\"w\":7,\"a\":null}\n", 0), "of repeated members the last counts");
	end(&columns, &fields);
}

/* An input with new members without end. */
static void
test_trim(void)
{
	struct wm_columns columns;
	struct wm_fields fields;
	struct wm_value value = text("t");
	size_t column;

	begin(&columns, &fields, WM_FORMAT_NDJSON, ',', "\n");
	wm_columns_append(&columns, wm_span_of("k"));
	wm_fields_split(&fields, wm_span_of("{\"x\":1,\"k\":2,\"y\":3}\n"));
	tap_ok(columns.count == 3 && wm_columns_find(&columns, wm_span_of("y"), &column) && column == 2,
		"columns come with the records");
	wm_columns_trim(&columns, 1);
	tap_ok(columns.count == 1 && !wm_columns_find(&columns, wm_span_of("y"), &column) &&
			wm_columns_find(&columns, wm_span_of("k"), &column) && column == 0,
		"and are forgotten");
	wm_columns_trim(&columns, 5);
	tap_int((int64_t)columns.count, 1, "fewer are left alone");
	wm_fields_split(&fields, wm_span_of("{\"z\":4,\"k\":5}\n"));
	tap_ok(columns.count == 2 && wm_span_is(columns.names[1], "z") && wm_span_is(said(&fields, 0), "5") &&
			wm_span_is(said(&fields, 1), "4"),
		"a new one takes their place");
	wm_fields_set(&fields, 0, &value);
	tap_span(rendered(&fields), "{\"z\":4,\"k\":\"t\"}\n", "and the record can be changed");
	end(&columns, &fields);
}

/* Values of all kinds as JSON has them, and what changes into what. */
static const char *const raws[] = { "0", "-1.5e3", "\"\"", "\"a,b\"", "\"\\\\\\\"\"", "null", "true", "false", "[]",
	"{}", "[[\"]\"],{\"x\":{\"y\":\"}\"}}]", "\"\\u007d\"" };

#define RAWS_COUNT (sizeof(raws) / sizeof(raws[0]))
#define MEMBERS_MAX 8

/* Objects put together from parts; the model puts them together with another part. */
static void
test_random_json(void)
{
	uint64_t seed = 1;
	bool is_well = true;

	for (int round = 0; round < 20000 && is_well; round++) {
		struct wm_columns columns;
		struct wm_fields fields;
		size_t picks[MEMBERS_MAX], count = 1 + tap_random(&seed) % MEMBERS_MAX;
		bool is_set[MEMBERS_MAX];
		char line[1024] = "{", want[1024] = "{";

		begin(&columns, &fields, WM_FORMAT_NDJSON, ',', "\n");
		for (size_t i = 0; i < count; i++) {
			const char *blank = tap_random(&seed) % 2 == 0 ? " " : "";
			char name[64];

			picks[i] = tap_random(&seed) % RAWS_COUNT;
			is_set[i] = tap_random(&seed) % 3 == 0;
			snprintf(name, sizeof(name), "%s%s\"m%zu\"%s:", i == 0 ? "" : ",", blank, i, blank);
			size_t line_len = strlen(line), want_len = strlen(want);
			snprintf(line + line_len, sizeof(line) - line_len, "%s%s%s", name, raws[picks[i]], blank);
			snprintf(want + want_len, sizeof(want) - want_len, "%s%s%s", name,
				is_set[i] ? "\"new\"" : raws[picks[i]], blank);
		}
		strcat(line, "}\n");
		strcat(want, "}\n");
		wm_fields_split(&fields, wm_span_of(line));
		for (size_t i = 0; i < count; i++) {
			struct wm_value value = text("new");

			if (is_set[i])
				wm_fields_set(&fields, i, &value);
		}
		is_well = wm_span_is(rendered(&fields), want);
		if (!is_well)
			printf("# %s# %s# %.*s", line, want, (int)out.len, out.data);
		end(&columns, &fields);
	}
	tap_ok(is_well, "random objects with some members changed");
}

static bool
begins_with_underscore(struct wm_span name)
{
	return name.len != 0 && name.data[0] == '_';
}

/* Whether two lines say the same but for such columns, which of NDJSON is: as they stand there. */
static bool
says_same(struct wm_fields *fields, const char *left, const char *right)
{
	struct wm_buf others[2];
	bool is_same;

	for (size_t i = 0; i < 2; i++) {
		wm_buf_init(&others[i], WM_BUF_UNBOUNDED);
		wm_fields_split(fields, wm_span_of(i == 0 ? left : right));
		wm_fields_put_others(fields, begins_with_underscore, &others[i]);
	}
	is_same = wm_span_equal(wm_buf_span(&others[0]), wm_buf_span(&others[1]));
	wm_buf_release(&others[0]);
	wm_buf_release(&others[1]);
	return is_same;
}

static void
test_others(void)
{
	static const char *const same[][2] = {
		{ "{\"a\":1}\n", "{\"a\":1,\"_b\":2}\r\n" },
		{ "{\"a\":1}", "{\"_b\":2,\"_c\":3,\"a\":1}" },
		{ "{ \"a\" : 1 }\n", "{ \"a\" : 1 ,\"_b\":{\"a\":\"}\"},\"_b\":[1,2]}\n" },
		{ "{\"a\":1, \"c\":\"\\\"_\"}\n", "{\"a\":1,\"_b\" : \"\\\",\" , \"c\":\"\\\"_\"}\n" },
		{ "{\"_b\":1}", "{}" },
	};
	static const char *const other[][2] = {
		{ "{\"a\":1}", "{\"a\": 1,\"_b\":2}" },
		{ "{\"a\":1,\"c\":2}", "{\"c\":2,\"a\":1,\"_b\":2}" },
		{ "{\"a\":{\"_b\":1}}", "{\"a\":{\"_b\":2}}" },
		{ "{\"a\":1,\"a\":2}", "{\"a\":2,\"_b\":2}" },
	};
	struct wm_columns columns;
	struct wm_fields fields;

	begin(&columns, &fields, WM_FORMAT_NDJSON, ',', "\n");
	bool is_well = true;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		is_well &= says_same(&fields, same[i][0], same[i][1]);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		is_well &= !says_same(&fields, other[i][0], other[i][1]);
	end(&columns, &fields);
	tap_ok(is_well, "what an object says but for some members is its bytes without them");
	begin(&columns, &fields, WM_FORMAT_CSV, ',', "\n");
	wm_columns_append_header(&columns, wm_span_of("a,_b,c\n"));
	tap_ok(says_same(&fields, "1,2,3\n", "1,\"x,\",3\r\n") && !says_same(&fields, "1,2,3\n", "1,2,\"3\"\n") &&
			!says_same(&fields, "1,2,34\n", "13,2,4\n") && !says_same(&fields, ",2,3\n", "3,2,\n"),
		"what a row says but for some columns is the bytes of the others, told apart");
	end(&columns, &fields);
}

int
main(void)
{
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	test_csv();
	test_json();
	test_lone();
	test_trim();
	test_random_json();
	test_others();
	wm_buf_release(&out);
	return tap_done();
}
