/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/ndjson.h"

#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "tests/unit/json_model.h"
#include "tests/unit/tap.h"

#define COLUMNS_MAX 8

/* Columns of the next batches; a list parted by blanks. */
static struct wm_ndjson *
reader_of(const char *names, size_t *count)
{
	struct wm_column columns[COLUMNS_MAX];
	struct wm_err err;

	for (*count = 0; *names != '\0'; ++*count) {
		size_t len = strcspn(names, " ");

		if (!wm_column_parse(wm_span(names, len), &columns[*count], &err))
			abort();
		names += len + (names[len] == ' ');
	}
	struct wm_ndjson *ndjson = wm_ndjson_new(columns, *count);
	for (size_t i = 0; i < *count; i++)
		wm_column_release(&columns[i]);
	return ndjson;
}

/* Reads all lines; one word a line in out: "blank", "bad", or its values as K(text). */
static void
read_lines(struct wm_ndjson *ndjson, size_t columns_count, struct wm_span text, struct wm_buf *out)
{
	static const char kinds[] = { [WM_KIND_NULL] = '-',
		[WM_KIND_TEXT] = 't',
		[WM_KIND_NUMBER] = 'n',
		[WM_KIND_BOOL] = 'b',
		[WM_KIND_JSON] = 'j' };
	struct wm_ndjson_line line;
	struct wm_value fields[COLUMNS_MAX];
	enum wm_ndjson_result result;
	char *copy = malloc(text.len + WM_NDJSON_SLACK);

	memcpy(copy, text.data, text.len);
	memset(copy + text.len, '{', WM_NDJSON_SLACK);
	wm_ndjson_batch(ndjson, wm_span(copy, text.len));
	while ((result = wm_ndjson_next(ndjson, &line, fields)) != WM_NDJSON_END) {
		wm_buf_add_text(out, out->len == 0 ? "" : " ");
		if (result != WM_NDJSON_RECORD)
			wm_buf_add_text(out, result == WM_NDJSON_BLANK ? "blank" : "bad");
		for (size_t i = 0; result == WM_NDJSON_RECORD && i < columns_count; i++) {
			wm_buf_add_byte(out, kinds[fields[i].kind]);
			if (fields[i].kind != WM_KIND_NULL)
				wm_buf_addf(out, "(%.*s)", (int)fields[i].text.len, fields[i].text.data);
		}
		if (result == WM_NDJSON_RECORD && columns_count == 0)
			wm_buf_add_text(out, "ok");
	}
	free(copy);
}

static void
check(const char *names, const char *text, const char *want)
{
	size_t count;
	struct wm_ndjson *ndjson = reader_of(names, &count);
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	read_lines(ndjson, count, wm_span_of(text), &out);
	wm_buf_add_byte(&out, '\0');
	tap_text(out.data, want, names[0] != '\0' ? names : want);
	wm_buf_release(&out);
	wm_ndjson_free(ndjson);
}

/* What is said of a line that is malformed, and where. */
static void
check_wrong(const char *text, size_t len, const char *want)
{
	size_t count;
	struct wm_ndjson *ndjson = reader_of("a", &count);
	struct wm_ndjson_line line;
	struct wm_value field;
	char copy[400] = { 0 }, got[200];

	memcpy(copy, text, len);
	wm_ndjson_batch(ndjson, wm_span(copy, len));
	bool is_bad = wm_ndjson_next(ndjson, &line, &field) == WM_NDJSON_MALFORMED;
	snprintf(got, sizeof(got), "%s@%zu", is_bad ? line.wrong : "fine", is_bad ? line.wrong_at : 0);
	tap_text(got, want, want);
	wm_ndjson_free(ndjson);
}

static void
test_values(void)
{
	check("a b c d e", "{\"a\":1,\"b\":\"x\",\"c\":true,\"d\":null,\"e\":[1, {\"z\":2}]}\n",
		"n(1)t(x)b(true)-j([1, {\"z\":2}])");
	check("a", "{\"a\":false}\n{\"a\":{}}\n{\"a\": [ ] }\n{\"a\":\"\"}\n{}\n{\"b\":1}\n",
		"b(false) j({}) j([ ]) t() - -");
	check("a", " { \"a\" : 1 , \"b\" : 2 } \r\n", "n(1)");
	check("d e i g",
		"{\"ts\":1, "
		"\"a\":1.10,\"b\":1e5,\"c\":-0,\"d\":12345678901234567890123,\"e\":0."
		"1000000000000000055511151231257827,\"f\":\"caf\\u00e9\",\"g\":null,\"h\":[1, 2],\"i\":1E+2}\n",
		"n(12345678901234567890123)n(0.1000000000000000055511151231257827)n(1E+2)-");
	check("a", "{\"a\":1e400}\n{\"a\":-1e-400}\n{\"a\":-0.0e+00}\n", "n(1e400) n(-1e-400) n(-0.0e+00)");
	check("s", "{\"s\":\"tab\\tnl\\n\\/\\\\\\\"\\b\\f\\r\"}\n", "t(tab\tnl\n/\\\"\b\f\r)");
	check("f", "{\"f\":\"caf\\u00e9 \\u20AC \\ud83d\\ude00!\"}\n", "t(caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80!)");
	check("a b", "{\"a\":\"\\ud800\",\"b\":\"\\udc00x\\ud800\\u0041\\ud800\\\\\"}\n",
		"t(\xed\xa0\x80)t(\xed\xb0\x80x\xed\xa0\x80"
		"A\xed\xa0\x80\\)");
	check("a", "{\"a\":\"\\ud83d\\ue000\"}\n", "t(\xed\xa0\xbd\xee\x80\x80)");
	check("\xed\xa0\xbd \xed\xb0\x80", "{\"\\ud83d\":1,\"\\udc00\":2,\"\\ufffd\":3}\n", "n(1)n(2)");
	check("a b", "{\"a\":\"1\\n\",\"b\":\"2\\n\"}\n{\"a\":\"3\",\"b\":\"4\\t\"}\n", "t(1\n)t(2\n) t(3)t(4\t)");
	check("naïve", "{\"na\xc3\xafve\":1}\n{\"na\\u00efve\":2}\n{\"\\u006ea\\u00EFve\":3}\n", "n(1) n(2) n(3)");
}

static void
test_paths(void)
{
	/* Whole names before paths, an array on the way, a missing parent. */
	check("meta.time data.user.id",
		"{\"meta\":{\"time\":1},\"data\":{\"user\":{\"id\":\"u1\"}}}\n"
		"{\"meta\":{\"time\":2},\"data\":{\"user\":{\"id\":\"u1\"}},\"meta.time\":99}\n"
		"{\"meta\":{\"time\":3},\"data\":{\"user\":null}}\n"
		"{\"meta\":{\"time\":4},\"data\":{}}\n"
		"{\"meta\":7,\"data\":{\"user\":{\"id\":\"u2\"}}}\n"
		"{\"meta\":{\"time\":6},\"data\":{\"user\":[{\"id\":\"u3\"}]}}\n",
		"n(1)t(u1) n(99)t(u1) n(3)- n(4)- -t(u2) n(6)-");
	check("items.0 items.2.x items.10 items.01",
		"{\"items\":[1,2,{\"x\":3},4,5,6,7,8,9,10,11]}\n{\"items\":{\"0\":\"a\",\"01\":\"b\"}}\n{\"items\":[[1]"
		"]}\n",
		"n(1)n(3)n(11)- t(a)--t(b) j([1])---");
	check("a\\.b a.b", "{\"a.b\":1,\"a\":{\"b\":2}}\n{\"a\":{\"b\":2}}\n", "n(1)n(1) -n(2)");
	check("a a.b a.b.c", "{\"a\":{\"b\":{\"c\":1}}}\n", "j({\"b\":{\"c\":1}})j({\"c\":1})n(1)");
	check("a.b.c", "{\"a.b\":{\"c\":1},\"a\":{\"b.c\":2}}\n", "-");
	check("a.b", "{\"a.b\":null,\"a\":{\"b\":2}}\n", "-");
}

static void
test_repeated(void)
{
	check("ts key",
		"{\"ts\":1,\"key\":\"a\",\"ts\":25}\n{\"key\":\"b\",\"ts\":2,\"key\":\"c\"}\n{\"ts\":3,\"x\":{\"ts\":"
		"99},\"key\":\"d\"}\n",
		"n(25)t(a) n(2)t(c) n(3)t(d)");
	check("meta.time",
		"{\"meta\":{\"time\":1},\"meta\":{}}\n{\"meta\":{\"time\":1},\"meta\":{\"time\":2}}\n{\"meta\":{"
		"\"time\":1},\"meta\":3}\n"
		"{\"meta\":{\"time\":1,\"time\":2,\"time\":3}}\n{\"meta\":1,\"meta\":{\"time\":4}}\n",
		"- n(2) - n(3) n(4)");
	check("a.b.c",
		"{\"a\":{\"b\":{\"c\":1}},\"a\":{\"b\":2}}\n{\"a\":{\"b\":{\"c\":1},\"b\":{\"c\":2}}}\n{\"a\":{\"b\":{"
		"\"c\":1}},\"a\":[]}\n",
		"- n(2) -");
	check("a", "{\"a\":1,\"\\u0061\":2}\n{\"a\":1,\"a\":null}\n", "n(2) -");
}

static void
test_order_changes(void)
{
	check("time page",
		"{\"time\":1,\"page\":\"p\"}\n{\"page\":\"q\",\"time\":2}\n{\"tim\":3,\"page\":\"r\"}\n{\"timf\":4,"
		"\"pagf\":\"s\"}\n{\"time\":5,\"page\":\"t\"}\n",
		"n(1)t(p) n(2)t(q) -t(r) -- n(5)t(t)");
	check("a_name_longer_than_a_head",
		"{\"a_name_longer_than_a_head\":1}\n{\"a_name_longer_than_a_hEad\":2}\n{\"a_name_longer_than_a_heads\":"
		"3}\n{\"a_name_longer_than_a_head\":4}\n",
		"n(1) - - n(4)");
}

static void
test_malformed(void)
{
	check("ts key",
		"{\"ts\":1,\"key\":\"a\"}\n{\"ts\":2,\"key\":\"a\"}{\"ts\":3,\"key\":\"b\"}\n{\"ts\":4,\"key\":\"b\"} "
		"x\n{\"ts\":5,\"key\":\"c\"},\n{\"ts\":6,\"key\":\"c\",}\n{\"ts\":7,\"key\":\"d\"}\n",
		"n(1)t(a) bad bad bad bad n(7)t(d)");
	check("ts v",
		"{\"ts\":1,\"v\":1}\n{\"ts\":\"2\",\"v\":\"5\"}\n{\"ts\":NaN,\"v\":1}\n{\"ts\":{\"t\":3},\"v\":1}\n{"
		"\"ts\":4,\"v\":NaN}\n{\"ts\":5,\"v\":Infinity}\n{\"ts\":7}\n",
		"n(1)n(1) t(2)t(5) bad j({\"t\":3})n(1) bad bad n(7)-");
	/* A string that does not end, in every place: the neighbours are read. */
	check("a", "{\"a\":1}\n{\"a\":\"x\n{\"a\":2}\n{\"a\":\"y\n{\"a\":3}\n", "n(1) bad n(2) bad n(3)");
	check("a", "{\"a\":\"x\n{\"a\":\"y\"}\n", "bad t(y)");
	check("a", "{\"a\":\"\xff\"}\n{\"a\":\"\xc3\xa9\"}\n", "bad t(\xc3\xa9)");
	check("a", "{\"a\":\"\t\"}\n{\"a\":2}", "bad n(2)");
	check("a", "{\"a\":\n1}\n{\"a\":[\n]}\n{\n}\n{\"a\"\n:1}\n{\"a\":1\n}\n{\"a\":1,\n\"b\":2}\n{\"a\":9}\n",
		"bad bad bad bad bad bad bad bad bad bad bad bad n(9)");
	check("",
		"[1]\n1\n\"{}\"\nnull\n{}{}\n{\"a\":1}}\n{\"a\":[}]}\n{\"a\":1 "
		"\"b\":2}\n{1:2}\n{a:1}\n{'a':1}\n{\"a\"}\n{\"a\":}\n{,}\n{\"a\":1,,\"b\":2}\n{\"a\":[1,]}\n{\"a\":[,1]"
		"}\n{\"a\":[1 2]}\n//\n{} //\n{\"a\":1\"b\":2}\n{\"a\":\"b\"\"c\"}\n{\"a\" \"b\":1}\n",
		"bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad bad");
	check("",
		"{\"a\":01}\n{\"a\":1.}\n{\"a\":.5}\n{\"a\":+1}\n{\"a\":1e}\n{\"a\":-}\n{\"a\":0x1}\n{\"a\":1_0}\n{"
		"\"a\":1e5.5}\n{\"a\":truE}\n{\"a\":nul}\n{\"a\":falsey}\n{\"a\":--1}\n",
		"bad bad bad bad bad bad bad bad bad bad bad bad bad");
	check("",
		"{\"a\":\"\\x\"}\n{\"a\":\"\\u12\"}\n{\"a\":\"\\u12g4\"}\n{\"\\q\":1}\n{\"a\":\\\"b\"}\n{\"a\":1\\\"}"
		"\n{\"b\":{\"\\q\":1}}\n{}\n",
		"bad bad bad bad bad bad bad ok");
	check("", "\n   \n\t\r\n\r\n{}", "blank blank blank blank ok");
	check("", "{}\\\n{}\n\\\n{}\n", "bad ok bad ok");
	check_wrong("{\"a\":1,}", 8, "no name where a member must begin@7");
	check_wrong("{\"a\" 1}", 7, "no colon behind a name@5");
	check_wrong("{\"a\":1", 6, "it ends too early@6");
	check_wrong("{\"a\":NaN}\n", 10, "no JSON value@5");
	check_wrong("{\"a\":1 2}", 9, "neither a comma nor the end behind a value@7");
	check_wrong("{} {}", 5, "more behind the object@3");
	check_wrong("[1]", 3, "no object@0");
	check_wrong("{\"a\":\"b\\c\"}", 11, "no such escape in JSON@7");
	check_wrong("{\"a\":\"\\u12\"}", 12, "\\u without four hexadecimal digits@8");
	check_wrong("{\"a\":\"b", 7, "a string that never ends@0");
	check_wrong("{\"a\":\"\x01\"}", 9, "a control character in a string@0");
	check_wrong("{\"a\":\"\xed\xa0\x80\"}", 11, "invalid UTF-8@0");
	check_wrong("{\"a\":\"\0\"}", 9, "a control character in a string@0");
	check_wrong("{\"a\":1\0}", 8, "no JSON value@5");
}

/* depth brackets, the object of the line among them. */
static void
test_depth(int depth, const char *want)
{
	for (int is_array = 0; is_array < 2; is_array++) {
		char text[1000] = "";
		const char *open = is_array ? "[" : "{\"a\":";

		for (int i = 0; i < depth; i++)
			strcat(text, i == 0 ? "{\"a\":" : open);
		strcat(text, "1");
		for (int i = depth; i-- > 0;)
			strcat(text, i == 0 || !is_array ? "}" : "]");
		check("", text, want);
	}
}

/* Members beyond those whose places are remembered, and a line longer than a batch. */
static void
test_wide_and_long(void)
{
	struct wm_buf text, out;
	size_t count;
	struct wm_ndjson *ndjson = reader_of("m69 m99 long", &count);

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (int line = 0; line < 2; line++) {
		wm_buf_add_text(&text, "{\"m\":0");
		for (int i = 0; i < 70; i++)
			wm_buf_addf(&text, ",\"m%d\":%d", i, i + line);
		wm_buf_add_text(&text, "}\n");
	}
	read_lines(ndjson, count, wm_buf_span(&text), &out);
	tap_span(wm_buf_span(&out), "n(69)-- n(70)--", "more members than are remembered");
	wm_buf_reset(&text);
	wm_buf_reset(&out);
	wm_buf_add_text(&text, "{\"m99\":1,\"x\":\"");
	for (int i = 0; i < 300000; i++)
		wm_buf_add_text(&text, "y");
	wm_buf_add_text(&text, "\\n\",\"long\":2}\n");
	read_lines(ndjson, count, wm_buf_span(&text), &out);
	tap_span(wm_buf_span(&out), "-n(1)n(2)", "a line longer than the first index");
	tap_ok(wm_ndjson_seen(ndjson, 0) && wm_ndjson_seen(ndjson, 1), "columns that were there");
	wm_ndjson_free(ndjson);
	ndjson = reader_of("a b.c", &count);
	wm_buf_reset(&out);
	read_lines(ndjson, count, wm_span_of("{\"b\":{\"c\":null}}\n{\"a\":1"), &out);
	tap_ok(!wm_ndjson_seen(ndjson, 0) && wm_ndjson_seen(ndjson, 1),
		"a null was there, a member of a malformed line was not");
	wm_ndjson_free(ndjson);
	wm_buf_release(&text);
	wm_buf_release(&out);
}

/* Batches of lines that are good, damaged by a byte or two, or random, against the model line by line. */
static void
test_against_model(void)
{
	static const char *const good[] = { "{\"a\":1,\"b\":\"x\\u00e9\\\\\",\"c\":[1,2.5e-3,{\"d\":null}],\"e\":true}",
		"{\"k\":{\"k\":{\"k\":[[],{},\"\"]}},\"s\":\"\xc3\xa9\xf0\x9f\x98\x80\"}", "{}", " { \"a\" : -0.0 } \r",
		"", "  " };
	static const char bytes[] = "{}[]:,\"\\ \t\n\r0123-+.eEutrfalsn\x01\xff\xc3\xa9\xed\xa0xyz";
	uint64_t random = 3;
	size_t count, lines = 0, bad = 0;
	struct wm_ndjson *ndjson = reader_of("a k.k c.2.d", &count);
	struct wm_buf text, out, want;
	bool is_well = true;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 40000 && is_well; i++) {
		wm_buf_reset(&text);
		wm_buf_reset(&out);
		wm_buf_reset(&want);
		for (uint64_t n = tap_random(&random) % 5; n-- > 0;) {
			size_t begin = text.len;

			wm_buf_add_text(&text, good[tap_random(&random) % 6]);
			for (uint64_t k = tap_random(&random) % 3; k-- > 0 && text.len > begin && i % 4 != 0;) {
				size_t at = begin + tap_random(&random) % (text.len - begin);

				text.data[at] = bytes[tap_random(&random) % (sizeof(bytes) - 1)];
				if (tap_random(&random) % 3 == 0)
					text.len--;
			}
			wm_buf_add_byte(&text, '\n');
		}
		if (text.len > 0 && i % 2 == 0)
			text.len--;
		for (size_t at = 0, len; at < text.len; at += len + 1) {
			const char *line_feed = memchr(text.data + at, '\n', text.len - at);

			len = line_feed == NULL ? text.len - at : (size_t)(line_feed - (text.data + at));
			wm_buf_add_text(&want,
				json_model_is_blank(text.data + at, len)            ? "blank "
					: json_model_is_object(text.data + at, len) ? "ok "
										    : "bad ");
		}
		if (text.len == 0)
			continue;
		read_lines(ndjson, 0, wm_buf_span(&text), &out);
		wm_buf_add_byte(&out, ' ');
		is_well = wm_span_equal(wm_buf_span(&out), wm_buf_span(&want));
		if (!is_well)
			printf("# '%.*s': got %.*s, want %.*s\n", (int)text.len, text.data, (int)out.len, out.data,
				(int)want.len, want.data);
		for (size_t k = 0; k + 1 < out.len; k++) {
			lines += out.data[k + 1] == ' ';
			bad += out.data[k] == 'a' && out.data[k + 1] == 'd';
		}
	}
	tap_ok(is_well, "random batches are judged as the model judges");
	tap_ok(bad > lines / 10 && bad < lines * 9 / 10, "and hold lines of both kinds");
	printf("# %zu lines, %zu malformed\n", lines, bad);
	wm_buf_release(&text);
	wm_buf_release(&out);
	wm_buf_release(&want);
	wm_ndjson_free(ndjson);
}

/* An object of so many members: what is said of the line. */
static void
test_members(int members, const char *want)
{
	size_t count;
	struct wm_ndjson *ndjson = reader_of("m7", &count);
	struct wm_buf text, out;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (int i = 0; i < members; i++)
		wm_buf_addf(&text, "%c\"m%d\":%d", i == 0 ? '{' : ',', i, i);
	wm_buf_add_text(&text, "}\n{\"m7\":\"next\"}\n");
	read_lines(ndjson, count, wm_buf_span(&text), &out);
	wm_buf_add_byte(&out, '\0');
	tap_text(out.data, want, members > WM_COLUMNS_MAX ? "one member too many" : "as many members as there may be");
	wm_buf_release(&out);
	wm_buf_release(&text);
	wm_ndjson_free(ndjson);
}

int
main(void)
{
	test_values();
	test_paths();
	test_repeated();
	test_order_changes();
	test_malformed();
	test_members(WM_COLUMNS_MAX, "n(7) t(next)");
	test_members(WM_COLUMNS_MAX + 1, "bad t(next)");
	test_depth(WM_JSON_DEPTH_MAX, "ok");
	test_depth(WM_JSON_DEPTH_MAX + 1, "bad");
	test_wide_and_long();
	test_against_model();
	return tap_done();
}
