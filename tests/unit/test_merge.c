/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/merge.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define LINES_MAX 64

static struct wm_buf out;
static struct wm_err err;

/* A merge of CSV lines with the columns of a header; the first keys_count of them are keys. */
struct bench {
	struct wm_columns columns;
	struct wm_fields fields;
	struct wm_merge *merge;
	struct wm_merge_options options;
};

static void
begin(struct bench *bench, enum wm_format format, const char *header, const struct wm_merge_options *options)
{
	const struct wm_row_format row_format = { format, ',', "\n", NULL };

	bench->options = *options;
	bench->options.zone = wm_zone_utc();
	if (bench->options.bytes_max == 0)
		bench->options.bytes_max = SIZE_MAX;
	wm_columns_init(&bench->columns, &row_format);
	wm_fields_init(&bench->fields, &bench->columns);
	wm_columns_append_header(&bench->columns, wm_span_of(header));
	bench->merge = wm_merge_new(&bench->columns, &bench->options);
	for (size_t i = 0; i < options->keys_count; i++)
		wm_merge_set_rule(bench->merge, i, WM_MERGE_KEY);
}

static void
end(struct bench *bench)
{
	wm_merge_free(bench->merge);
	wm_fields_release(&bench->fields);
	wm_columns_release(&bench->columns);
}

/* By range the first column is the time, as a whole number of microseconds. */
static struct wm_merge_row
row_of(struct bench *bench, const char *line, const char *input, uint64_t number, struct wm_value *keys)
{
	wm_fields_split(&bench->fields, wm_span_of(line));
	for (size_t i = 0; i < bench->options.keys_count; i++)
		keys[i] = wm_fields_at(&bench->fields, i);
	return (struct wm_merge_row){
		.keys = keys,
		.time_us = bench->options.is_of_range ? strtoll(line, NULL, 10) : 0,
		.line = wm_span_of(line),
		.input = input,
		.number = number,
	};
}

static bool
hold(struct bench *bench, const char *line, uint64_t number)
{
	struct wm_value keys[8];
	struct wm_merge_row row = row_of(bench, line, "late", number, keys);

	return wm_merge_hold(bench->merge, &row, &err);
}

static bool
check(struct bench *bench, const char *line, uint64_t number)
{
	struct wm_value keys[8];
	struct wm_merge_row row = row_of(bench, line, "main", number, keys);

	return wm_merge_check(bench->merge, &row, &err);
}

static void
put_due(struct bench *bench)
{
	struct wm_span line;

	while (wm_merge_next(bench->merge, &line))
		wm_buf_add(&out, line.data, line.len);
}

/* Lists end with NULL. The merged lines, one after the other; "" and err where it failed. */
static struct wm_span
merged(struct bench *bench, const char *const *main_lines, const char *const *late_lines)
{
	struct wm_value keys[8];

	wm_buf_reset(&out);
	for (size_t i = 0; late_lines[i] != NULL; i++)
		if (!hold(bench, late_lines[i], i + 2))
			return wm_buf_span(&out);
	for (size_t i = 0; main_lines[i] != NULL; i++)
		if (!check(bench, main_lines[i], i + 2))
			return wm_buf_span(&out);
	if (!wm_merge_settle(bench->merge, &err)) {
		wm_buf_reset(&out);
		return wm_buf_span(&out);
	}
	for (size_t i = 0; main_lines[i] != NULL; i++) {
		struct wm_merge_row row = row_of(bench, main_lines[i], "main", i + 2, keys);

		if (!wm_merge_take(bench->merge, &row, &err)) {
			wm_buf_reset(&out);
			return wm_buf_span(&out);
		}
		put_due(bench);
	}
	wm_merge_end(bench->merge);
	put_due(bench);
	return wm_buf_span(&out);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NOTHING ((const char *const[]){ NULL })

static const struct wm_merge_options one_key = { .keys_count = 1 };

/* Of the columns k,v. */
static void
expect(const char *name, enum wm_merge_rule rule, const char *const *main_lines, const char *const *late_lines,
	const char *want)
{
	struct bench bench;

	begin(&bench, WM_FORMAT_CSV, "k,v", &one_key);
	wm_merge_set_rule(bench.merge, 1, rule);
	tap_span(merged(&bench, main_lines, late_lines), want, name);
	end(&bench);
}

static void
expect_failure(const char *name, enum wm_merge_rule rule, const char *const *main_lines, const char *const *late_lines,
	const char *want)
{
	struct bench bench;

	begin(&bench, WM_FORMAT_CSV, "k,v", &one_key);
	wm_merge_set_rule(bench.merge, 1, rule);
	err = (struct wm_err){ 0 };
	struct wm_span got = merged(&bench, main_lines, late_lines);
	if (!tap_ok(got.len == 0 && err.code == WM_ERR_DATA && strncmp(err.message, want, strlen(want)) == 0, "%s",
		    name))
		printf("# '%s'\n", err.message);
	end(&bench);
}

static void
test_rules(void)
{
	expect("sums", WM_MERGE_SUM, LIST("a,1\n", "b,2.50\n"), LIST("b,0.25\n", "a,-1\n"), "a,0\nb,2.75\n");
	expect("a tenth is a tenth", WM_MERGE_SUM, LIST("a,0.1\n"), LIST("a,0.2\n"), "a,0.3\n");
	expect("large sums", WM_MERGE_SUM, LIST("a,9007199254740993\n"), LIST("a,0.000000000000000001\n"),
		"a,9007199254740993.000000000000000001\n");
	expect("an empty value leaves the other as it is", WM_MERGE_SUM, LIST("a,1.50\n", "b,\n", "c,\n"),
		LIST("a,\n", "b,2.0\n", "c,\n"), "a,1.50\nb,2.0\nc,\n");
	expect("zero changes no text", WM_MERGE_SUM, LIST("a,\"7\"\n"), LIST("a,0\n"), "a,\"7\"\n");
	expect("the least, by value", WM_MERGE_MIN, LIST("a,9\n", "b,9\n"), LIST("a,10\n", "b,-10\n"), "a,9\nb,-10\n");
	expect("the greatest: texts are behind numbers", WM_MERGE_MAX, LIST("a,9\n", "b,x\n"), LIST("a,10\n", "b,10\n"),
		"a,10\nb,x\n");
	expect("of equal values the text first in byte order", WM_MERGE_MAX, LIST("a,2\n", "b,2.0\n"),
		LIST("a,2.0\n", "b,2\n"), "a,2\nb,2\n");
	expect("the last", WM_MERGE_LAST, LIST("a,9\n", "b,9\n"), LIST("a,1\n", "b,\n"), "a,1\nb,9\n");
	expect("late rows of one key", WM_MERGE_SUM, LIST("a,1\n"), LIST("b,1\n", "a,1\n", "b,1\n", "b,1\n"),
		"a,2\nb,3\n");
	expect("what is equal", WM_MERGE_EQUAL, LIST("a,x\n"), LIST("a,\"x\"\n"), "a,x\n");
	expect_failure("what is not", WM_MERGE_EQUAL, LIST("a,x\n", "b,y\n"), LIST("b,z\n"),
		"late:2: column 'v': 'z', but 'y' at main:3, and no option");
	expect_failure("an empty one is not equal either", WM_MERGE_EQUAL, LIST("a,x\n"), LIST("a,\n"), "late:2: ");
	expect_failure("two late rows that differ", WM_MERGE_EQUAL, NOTHING, LIST("b,z\n", "b,y\n"),
		"late:3: column 'v': 'y', but 'z' at late:2");
	expect_failure("no number among late rows", WM_MERGE_SUM, LIST("a,1\n"), LIST("c,1\n", "b,x\n"),
		"late:3: column 'v': 'x' is no number");
	expect_failure("no number in MAIN", WM_MERGE_SUM, LIST("a,1\n", "b,NaN\n"), LIST("b,1\n"),
		"main:3: column 'v': 'NaN' is no number");
	expect("one that nothing is added to", WM_MERGE_SUM, LIST("a,1\n", "b,NaN\n"), LIST("a,1\n"), "a,2\nb,NaN\n");
	expect_failure("a key twice in MAIN", WM_MERGE_SUM, LIST("a,1\n", "a,1\n"), NOTHING,
		"main:3: the key stands in line 2 already");
	expect_failure("a key twice in MAIN, apart", WM_MERGE_SUM, LIST("a,1\n", "b,1\n", "a,1\n"), LIST("a,1\n"),
		"main:4: the key stands in line 2 already, and late:2 could mean either");
}

static void
test_order(void)
{
	expect("before the first greater key", WM_MERGE_SUM, LIST("b,1\n", "d,1\n"), LIST("e,2\n", "a,2\n", "c,2\n"),
		"a,2\nb,1\nc,2\nd,1\ne,2\n");
	expect("numbers by value", WM_MERGE_SUM, LIST("2,1\n", "10,1\n"), LIST("9,2\n", "11,2\n"),
		"2,1\n9,2\n10,1\n11,2\n");
	expect("numbers as bytes where MAIN is so", WM_MERGE_SUM, LIST("10,1\n", "8,1\n"),
		LIST("9,2\n", "1,2\n", "20,2\n"), "1,2\n10,1\n20,2\n8,1\n9,2\n");
	expect("as long as MAIN is in order", WM_MERGE_SUM, LIST("b,1\n", "d,1\n", "a,1\n", "g,1\n"),
		LIST("c,2\n", "f,2\n", "e,2\n"), "b,1\nc,2\nd,1\na,1\ng,1\ne,2\nf,2\n");
	expect("a row that MAIN has later is not put in", WM_MERGE_SUM, LIST("b,1\n", "d,1\n", "c,1\n"), LIST("c,2\n"),
		"b,1\nd,1\nc,3\n");
	expect("empty, numbers, times, texts", WM_MERGE_SUM, NOTHING,
		LIST("x,1\n", "2024-01-01,1\n", "7,1\n", ",1\n", "2023-12-31T23:59:59Z,1\n"),
		",1\n7,1\n2023-12-31T23:59:59Z,1\n2024-01-01,1\nx,1\n");
	expect("one instant is one key", WM_MERGE_SUM, LIST("2024-01-01T00:00:00Z,1\n"),
		LIST("2024-01-01T01:00:00+01:00,2\n"), "2024-01-01T00:00:00Z,3\n");
	expect("fractions of a second are in order", WM_MERGE_SUM, LIST("2024-01-01T00:00:00Z,1\n"),
		LIST("2024-01-01T00:00:00.500Z,2\n"), "2024-01-01T00:00:00Z,1\n2024-01-01T00:00:00.500Z,2\n");
	expect("numbers are keys by their text", WM_MERGE_SUM, LIST("01,1\n"), LIST("1,2\n", "1.0,2\n"),
		"01,1\n1,2\n1.0,2\n");
	expect("an empty table", WM_MERGE_SUM, NOTHING, NOTHING, "");
}

static void
test_json(void)
{
	struct bench bench;

	begin(&bench, WM_FORMAT_NDJSON, "k,v,w", &one_key);
	wm_merge_set_rule(bench.merge, 1, WM_MERGE_SUM);
	wm_merge_set_rule(bench.merge, 2, WM_MERGE_MAX);
	tap_span(merged(&bench,
			 LIST("{\"k\":null,\"v\":1}\n", "{\"k\":\"\",\"v\":1}\n", "{\"k\":1, \"v\": \"1\" }\n",
				 "{\"w\":null,\"k\":\"1\",\"v\":1}\n"),
			 LIST("{\"k\":\"1\",\"v\":2,\"w\":\"x\\\"\"}\n", "{\"k\":1,\"v\":4}\n",
				 "{\"v\":8,\"w\":true}\n")),
		"{\"k\":null,\"v\":9,\"w\":true}\n{\"k\":\"\",\"v\":1}\n{\"k\":1, \"v\": \"5\" }\n"
		"{\"w\":\"x\\\"\",\"k\":\"1\",\"v\":3}\n",
		"NDJSON: types are kept, null and the empty text are two keys, a member is put in");
	end(&bench);

	begin(&bench, WM_FORMAT_NDJSON, "k,v", &one_key);
	wm_merge_set_rule(bench.merge, 1, WM_MERGE_SUM);
	struct wm_span got = merged(&bench, LIST("{\"k\":1,\"v\":1}\n"), LIST("{\"k\":1,\"v\":1,\"x\":0}\n"));
	tap_ok(got.len == 0 && strncmp(err.message, "late:2: column 'x': '0', but null at main:2", 43) == 0,
		"a member that MAIN lacks is a difference");
	end(&bench);
}

static void
expect_range(const char *name, const char *const *main_lines, const char *const *late_lines, const char *want)
{
	const struct wm_merge_options options = { .is_of_range = true, .from_us = 10, .to_us = 20 };
	struct bench bench;

	begin(&bench, WM_FORMAT_CSV, "t,v", &options);
	tap_span(merged(&bench, main_lines, late_lines), want, name);
	end(&bench);
}

static void
test_range(void)
{
	expect_range("a range gives way, its end does not", LIST("9,a\n", "10,b\n", "19,c\n", "20,d\n"),
		LIST("12,x\n", "11,y\n"), "9,a\n12,x\n11,y\n20,d\n");
	expect_range("where it stood apart, in place of the first", LIST("12,a\n", "1,b\n", "13,c\n"), LIST("15,x\n"),
		"15,x\n1,b\n");
	expect_range("where nothing stood, before what is behind", LIST("1,a\n", "30,b\n"), LIST("15,x\n"),
		"1,a\n15,x\n30,b\n");
	expect_range("or at the end", LIST("1,a\n"), LIST("15,x\n"), "1,a\n15,x\n");
	expect_range("also where MAIN is in no order", LIST("8,a\n", "1,b\n", "30,b\n"), LIST("15,x\n"),
		"8,a\n1,b\n30,b\n15,x\n");
	expect_range("nothing in place of it", LIST("1,a\n", "15,b\n", "30,c\n"), NOTHING, "1,a\n30,c\n");
	expect_range("nothing at all", NOTHING, LIST("15,x\n"), "15,x\n");
	expect_range("outside", LIST("1,a\n"), LIST("15,x\n", "20,x\n"), "");
	tap_text(err.message,
		"late:3: 1970-01-01T00:00:00.000020Z is outside of the range that is replaced, from "
		"1970-01-01T00:00:00.000010Z to before 1970-01-01T00:00:00.000020Z: compute that range alone, or name "
		"a "
		"wider one",
		"says so");
}

/* States as partial.h describes them; the sums by hand. */
static void
test_states(void)
{
	const struct wm_merge_options options = { .keys_count = 3, .is_of_states = true };
	struct bench bench;
	const struct wm_value *values;

	begin(&bench, WM_FORMAT_CSV, "window_start,window_end,k,n,m,r", &options);
	const char *head = "2024-01-01T00:00:00Z,2024-01-01T00:00:10Z";
	char main_line[256], late_line[256], want[256];
	snprintf(main_line, sizeof(main_line), "%s,a,1:count:3,1:avg:2:1.5,1:rate:3\n", head);
	snprintf(late_line, sizeof(late_line), "%s,a,1:count:4,1:avg:1:3,1:rate:4\n", head);
	snprintf(want, sizeof(want), "%s,a,1:count:7,1:avg:3:4.5,1:rate:7\n", head);
	tap_span(merged(&bench, LIST(main_line), LIST(late_line)), want, "states are combined");
	char *line = strdup(want);
	bool is_printed = wm_merge_print(bench.merge, wm_span_of(line), NULL, &values, &err);
	tap_ok(is_printed && wm_span_is(values[2].text, "a") && wm_span_is(values[3].text, "7") &&
			wm_span_is(values[4].text, "1.5") && wm_span_is(values[5].text, "0.7"),
		"and printed: 7 rows, 4.5 / 3, 7 in 10 seconds");
	is_printed = wm_merge_print(bench.merge, wm_span_of(line), "%.3f", &values, &err);
	tap_ok(is_printed && wm_span_is(values[3].text, "7") && wm_span_is(values[4].text, "1.500"), "by a format");
	free(line);
	end(&bench);

	begin(&bench, WM_FORMAT_CSV, "k,n", &(struct wm_merge_options){ .keys_count = 1, .is_of_states = true });
	tap_ok(merged(&bench, LIST("a,1:count:3\n", "b,7\n"), NOTHING).len == 0 &&
			strncmp(err.message, "main:3: column 'n': ", 20) == 0,
		"a text that is no state");
	end(&bench);
	begin(&bench, WM_FORMAT_CSV, "k,n", &(struct wm_merge_options){ .keys_count = 1, .is_of_states = true });
	tap_ok(merged(&bench, LIST("a,1:count:3\n"), LIST("a,1:sum:1:3\n")).len == 0 &&
			strstr(err.message, "a state of count where states of sum stand") != NULL,
		"states of two functions");
	end(&bench);
}

static void
test_limit(void)
{
	struct bench bench;
	bool is_well = true;
	size_t count = 0;

	begin(&bench, WM_FORMAT_CSV, "k,v", &(struct wm_merge_options){ .keys_count = 1, .bytes_max = 1 << 20 });
	while (is_well && count < 1000000) {
		char line[32];

		snprintf(line, sizeof(line), "%zu,1\n", count);
		is_well = hold(&bench, line, ++count);
	}
	tap_ok(!is_well && err.code == WM_ERR_LIMIT && wm_merge_bytes(bench.merge) > 1 << 20 &&
			wm_merge_bytes(bench.merge) < 1 << 21,
		"the limit of bytes ends it");
	end(&bench);
}

/* Keys 0 to 29, each at most once in MAIN and among late rows. Every line is placed by what the header says, in the plainest way. */
static void
test_random(void)
{
	uint64_t seed = 7;
	bool is_well = true;

	for (int round = 0; round < 20000 && is_well; round++) {
		int main_keys[30], late_keys[30], main_count = 0, late_count = 0, ordered = 0;
		bool in_main[30] = { false }, is_done[30] = { false };
		char texts[60][16], want[1024] = "";
		const char *main_lines[31], *late_lines[31];
		bool is_shuffled = tap_random(&seed) % 2 == 0;
		struct bench bench;

		for (int key = 0; key < 30; key++) {
			if (tap_random(&seed) % 3 == 0) {
				in_main[key] = true;
				main_keys[main_count++] = key;
			}
			if (tap_random(&seed) % 3 == 0)
				late_keys[late_count++] = key;
		}
		for (int i = main_count - 1; i > 0 && is_shuffled; i--) {
			int other = (int)(tap_random(&seed) % (uint64_t)(i + 1)), swapped = main_keys[i];

			main_keys[i] = main_keys[other];
			main_keys[other] = swapped;
		}
		for (int i = 0; i < main_count && (i == 0 || main_keys[i] > main_keys[i - 1]); i++)
			ordered++;
		/* Two digits, so that bytes and numbers have one order. */
		for (int i = 0; i < main_count; i++) {
			snprintf(texts[i], sizeof(texts[i]), "%02d,1\n", main_keys[i]);
			main_lines[i] = texts[i];
		}
		for (int i = 0; i < late_count; i++) {
			int from = i % 2 == 0 ? i / 2 : late_count - 1 - i / 2;

			snprintf(texts[30 + i], sizeof(texts[30 + i]), "%02d,2\n", late_keys[from]);
			late_lines[i] = texts[30 + i];
		}
		main_lines[main_count] = late_lines[late_count] = NULL;
		for (int i = 0; i <= main_count; i++) {
			for (int j = 0; j < late_count; j++) {
				int key = late_keys[j];
				bool goes_here = i == main_count || (i < ordered && key < main_keys[i]);

				if (in_main[key] || is_done[key] || !goes_here)
					continue;
				snprintf(want + strlen(want), 16, "%02d,2\n", key);
				is_done[key] = true;
			}
			bool is_late = false;
			for (int j = 0; j < late_count && i < main_count; j++)
				is_late = is_late || late_keys[j] == main_keys[i];
			if (i < main_count)
				snprintf(want + strlen(want), 16, "%02d,%d\n", main_keys[i], is_late ? 3 : 1);
		}
		begin(&bench, WM_FORMAT_CSV, "k,v", &one_key);
		wm_merge_set_rule(bench.merge, 1, WM_MERGE_SUM);
		is_well = wm_span_is(merged(&bench, main_lines, late_lines), want);
		if (!is_well)
			printf("# round %d\n", round);
		end(&bench);
	}
	tap_ok(is_well, "random tables: every row where it belongs");
}

int
main(void)
{
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	test_rules();
	test_order();
	test_json();
	test_range();
	test_states();
	test_limit();
	test_random();
	wm_buf_release(&out);
	return tap_done();
}
