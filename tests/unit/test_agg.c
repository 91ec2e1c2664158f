#include "lib/agg/agg.h"

#include <stdlib.h>

#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "tests/unit/tap.h"

#define MINUTE_US INT64_C(60000000)

static struct wm_agg *
plan_of(const char *list)
{
	struct wm_err err = { 0 };
	struct wm_agg *agg = wm_agg_parse(wm_span_of(list), &err);

	if (agg == NULL) {
		printf("Bail out! '%s': %s\n", list, err.message);
		exit(1);
	}
	return agg;
}

/* One cell with its arena. */
struct group {
	const struct wm_agg *agg;
	void *cell;
	struct wm_arena arena;
};

static struct group
group_new(const struct wm_agg *agg)
{
	struct group group = { .agg = agg, .cell = aligned_alloc(16, wm_agg_cell_bytes(agg)) };

	memset(group.cell, 0xa5, wm_agg_cell_bytes(agg));
	wm_agg_cell_init(agg, group.cell);
	return group;
}

static void
group_free(struct group *group)
{
	free(group->cell);
	wm_arena_release(&group->arena);
}

static struct wm_reading
reading_of(const char *text, enum wm_kind kind)
{
	struct wm_reading reading;
	struct wm_value value = { .text = wm_span_of(text), .kind = kind };

	wm_reading_take(&reading, &value);
	return reading;
}

/* Adds one field as a row: "" is empty; a text of '"' and more is a JSON string, of '#' a JSON number, else CSV. */
static void
add_field(struct group *group, const char *field, int64_t event_time_us)
{
	struct wm_reading reading = *field == '"' ? reading_of(field + 1, WM_KIND_TEXT)
		: *field == '#'                   ? reading_of(field + 1, WM_KIND_NUMBER)
						  : reading_of(field, WM_KIND_TEXT);

	wm_agg_cell_add(group->agg, group->cell, &group->arena, &reading, event_time_us);
}

/* All outputs of a cell, "name=text" with the kinds that are no numbers behind: "?" null, "'" text, "b" bool, "j" JSON. */
static void
print_cell(const struct wm_agg *agg, const void *cell, int64_t window_us, struct wm_buf *out)
{
	for (size_t i = 0; i < wm_agg_outputs_count(agg); i++) {
		struct wm_span name = wm_agg_output_name(agg, i);

		if (i > 0)
			wm_buf_add_byte(out, ' ');
		wm_buf_add(out, name.data, name.len);
		wm_buf_add_byte(out, '=');
		switch (wm_agg_cell_print(agg, cell, i, window_us, out)) {
		case WM_KIND_NULL:
			wm_buf_add_byte(out, '?');
			break;
		case WM_KIND_TEXT:
			wm_buf_add_byte(out, '\'');
			break;
		case WM_KIND_BOOL:
			wm_buf_add_byte(out, 'b');
			break;
		case WM_KIND_JSON:
			wm_buf_add_byte(out, 'j');
			break;
		case WM_KIND_NUMBER:
			break;
		}
	}
}

static void
check_cell(const struct group *group, const char *want, const char *name)
{
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	print_cell(group->agg, group->cell, MINUTE_US, &out);
	tap_span(wm_buf_span(&out), want, name);
	wm_buf_release(&out);
}

/* Rows of one column, in event time 0, 1, …; what the list gives of them. */
static void
check_fields(const char *list, const char *const *fields, size_t count, const char *want)
{
	struct wm_agg *agg = plan_of(list);
	struct group group = group_new(agg);

	for (size_t i = 0; i < count; i++)
		add_field(&group, fields[i], (int64_t)i);
	check_cell(&group, want, list);
	group_free(&group);
	wm_agg_free(agg);
}

#define CHECK(list, want, ...)                                                                                         \
	check_fields(list, (const char *const[]){ __VA_ARGS__ },                                                       \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), want)

static void
check_error(const char *list, const char *message)
{
	struct wm_err err = { 0 };
	struct wm_agg *agg = wm_agg_parse(wm_span_of(list), &err);

	tap_ok(agg == NULL && err.code == WM_ERR_USAGE, "'%s' is refused", list);
	tap_text(err.message, message, "with its message");
	wm_agg_free(agg);
}

#define ALL "there are: count, sum, avg, min, max, first, last, var, stddev, rate"

static void
test_errors(void)
{
	check_error("cuont", "no aggregate 'cuont'; did you mean count? " ALL);
	check_error("COUNT", "no aggregate 'COUNT'; did you mean count? " ALL);
	check_error("stdev:c", "no aggregate 'stdev'; did you mean stddev? " ALL);
	check_error("summ:c", "no aggregate 'summ'; did you mean sum? " ALL);
	check_error("p95:c", "no aggregate 'p95'; " ALL);
	check_error("approximately_distinct:c", "no aggregate 'approximately_distinct'; " ALL);
	check_error(":c", "no aggregate ''; " ALL);
	check_error("mean:c", "no aggregate 'mean': say avg");
	check_error("variance:c", "no aggregate 'variance': say var");
	check_error("sum", "sum needs a column: sum:COLUMN");
	check_error("sum:", "sum needs a column: sum:COLUMN");
	check_error("count:", "count needs a column: count:COLUMN");
	check_error("count,max", "max needs a column: max:COLUMN");
	check_error("rate:c", "rate takes no column, but has 'c'");
	check_error("sum:a:b", "'sum:a:b': sum takes one column: write \\: where a ':' belongs to its name");
	check_error("count,count", "two aggregates are named 'count': rename one with NAME=count");
	check_error("sum:c,sum:c", "two aggregates are named 'c_sum': rename one with NAME=sum:c");
	check_error("c_sum=count,sum:c", "two aggregates are named 'c_sum': rename one with NAME=sum:c");
	check_error("", "an aggregate is empty: write the list as count,sum:COLUMN");
	check_error("count,", "an aggregate is empty: write the list as count,sum:COLUMN");
	check_error("=count", "no name before the '=' of '=count'");
	check_error("n=", "no aggregate ''; " ALL);
	check_error("a=b=count", "more than one '=' in 'a=b=count': write \\= where it belongs to a name");

	struct wm_buf list;
	struct wm_err err = { 0 };
	wm_buf_init(&list, WM_BUF_UNBOUNDED);
	for (int i = 0; i < WM_AGGREGATES_MAX; i++)
		wm_buf_addf(&list, "%ssum:c%d", i == 0 ? "" : ",", i);
	struct wm_agg *agg = wm_agg_parse(wm_buf_span(&list), &err);
	tap_ok(agg != NULL && wm_agg_outputs_count(agg) == 1024, "1024 aggregates are taken");
	wm_agg_free(agg);
	wm_buf_add_text(&list, ",count");
	agg = wm_agg_parse(wm_buf_span(&list), &err);
	tap_ok(agg == NULL && err.code == WM_ERR_USAGE, "1025 are refused");
	tap_text(err.message, "1025 aggregates: at most 1024 in one command", "with the limit");
	wm_buf_release(&list);
}

static void
test_plan(void)
{
	struct wm_agg *agg = plan_of("count,sum:b,n=count:a,max:b,min:c\\,d,x\\=y=first:e\\:f.g\\.h,rate,first:a");

	tap_int((int64_t)wm_agg_outputs_count(agg), 8, "outputs");
	static const char *const names[] = { "count", "b_sum", "n", "b_max", "c,d_min", "x=y", "rate", "a_first" };
	for (size_t i = 0; i < 8; i++)
		tap_span(wm_agg_output_name(agg, i), names[i], "an output's name");
	tap_int((int64_t)wm_agg_columns_count(agg), 4, "columns, each once");
	static const char *const columns[] = { "b", "a", "c\\,d", "e\\:f.g\\.h" };
	static const bool needs[] = { true, false, false, false }, reads[] = { true, false, true, false };
	for (size_t i = 0; i < 4; i++) {
		tap_span(wm_agg_column(agg, i), columns[i], "a column keeps its escapes");
		tap_ok(wm_agg_column_needs_number(agg, i) == needs[i], "%s needs a number: %d", columns[i], needs[i]);
		tap_ok(wm_agg_column_reads_number(agg, i) == reads[i], "%s reads a number: %d", columns[i], reads[i]);
	}
	wm_agg_free(agg);

	agg = plan_of("max:c");
	tap_ok(wm_agg_column_reads_number(agg, 0) && !wm_agg_column_needs_number(agg, 0), "max looks at numbers");
	wm_agg_free(agg);
	agg = plan_of("count,sum:c,avg:c");
	tap_int((int64_t)wm_agg_cell_bytes(agg), 64, "rows, count and sum of a column fill 64 bytes");
	wm_agg_free(agg);
	agg = plan_of("count");
	tap_ok(wm_agg_cell_bytes(agg) <= 16, "a count alone takes no more than 16");
	wm_agg_free(agg);
	agg = plan_of("count");
	tap_ok(wm_agg_columns_count(agg) == 0, "a count has no column");
	wm_agg_free(agg);

	static const char *const same[][2] = {
		{ "count,sum:c,max:d", "n=avg:c,max:d,rate" },
		{ "count", "rate" },
		{ "var:c", "stddev:c,sum:c" },
	};
	static const char *const other[][2] = { { "sum:c", "sum:d" }, { "sum:c", "count:c" }, { "max:c", "min:c" },
		{ "count:a.b", "count:a\\.b" }, { "sum:a,sum:b", "sum:b,sum:a" } };
	for (size_t i = 0; i < 8; i++) {
		const char *const *pair = i < 3 ? same[i] : other[i - 3];
		struct wm_buf out[2];

		for (size_t j = 0; j < 2; j++) {
			agg = plan_of(pair[j]);
			wm_buf_init(&out[j], WM_BUF_UNBOUNDED);
			wm_agg_fingerprint(agg, &out[j]);
			wm_agg_free(agg);
		}
		tap_ok(wm_span_equal(wm_buf_span(&out[0]), wm_buf_span(&out[1])) == (i < 3), "%s and %s: %s cells",
			pair[0], pair[1], i < 3 ? "the same" : "other");
		wm_buf_release(&out[0]);
		wm_buf_release(&out[1]);
	}
}

static void
test_results(void)
{
	CHECK("count,sum:v", "count=2 v_sum=122255426", "122255000", "426");
	CHECK("sum:v", "v_sum=0.3", "0.1", "0.2");
	CHECK("sum:v", "v_sum=1e+300", "1e300", "5e-324");
	CHECK("sum:v,avg:v", "v_sum=9223372036854775808 v_avg=4611686018427387904", "9223372036854775807", "1");
	CHECK("sum:v,avg:v", "v_sum=18000000000000000000 v_avg=9000000000000000000", "9000000000000000000",
		"9000000000000000000");
	CHECK("sum:v,avg:v", "v_sum=-9223372036854775809 v_avg=-4611686018427387904", "-9223372036854775808", "-1");
	CHECK("sum:v", "v_sum=50", "0000007", "0000008", "0000009", "0000010", "08", "8");
	CHECK("sum:v", "v_sum=1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1");
	CHECK("sum:v", "v_sum=30.01", "10.01", "20");
	CHECK("sum:v", "v_sum=6.06", "1.01", "2.02", "3.03");
	CHECK("sum:v", "v_sum=2", "1e100", "1", "-1e100", "1");
	CHECK("sum:v", "v_sum=3.75", "1.5", "2.25");
	/* the rows of NaN, inf, abc, … are rejected before they come here */
	CHECK("count,sum:v,n=count:v", "count=4 v_sum=7 n=3", "1", "", "2", "4");

	static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 },
		{ 2, 1, 0 } };
	static const char *const numbers[] = { "1e16", "1", "-1e16" };
	for (size_t i = 0; i < 6; i++)
		CHECK("sum:v", "v_sum=1", numbers[orders[i][0]], numbers[orders[i][1]], numbers[orders[i][2]]);

	CHECK("count,c=count:v,sum:v,avg:v,min:v,max:v,first:v,last:v,var:v,stddev:v",
		"count=2 c=0 v_sum=? v_avg=? v_min=? v_max=? v_first=? v_last=? v_var=? v_stddev=?", "", "");
	/* from Python's fractions */
	CHECK("avg:v,var:v,stddev:v", "v_avg=2.5 v_var=1.6666666666666667 v_stddev=1.2909944487358056", "1", "2", "3",
		"4");
	CHECK("avg:v,var:v,stddev:v", "v_avg=5 v_var=? v_stddev=?", "5", "");
	CHECK("var:v,stddev:v", "v_var=0 v_stddev=0", "0.1", "0.1", "0.1");
	CHECK("sum:v,avg:v,var:v,max:v", "v_sum=? v_avg=? v_var=? v_max=1e308'", "1e308", "1e308");
	CHECK("count,rate", "count=4 rate=0.06666666666666667", "a", "b", "c", "d");
	CHECK("avg:v,max:v", "v_avg=3.3333333333333335 v_max=7'", "1", "2", "7");

	struct wm_agg *agg = plan_of("count,rate");
	struct group group = group_new(agg);
	struct wm_buf out;
	check_cell(&group, "count=0 rate=?", "a group without rows");
	add_field(&group, "", 0);
	tap_int((int64_t)wm_agg_cell_rows(agg, group.cell), 1, "rows");
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	print_cell(agg, group.cell, 0, &out);
	tap_span(wm_buf_span(&out), "count=1 rate=?", "no rate without a window");
	wm_buf_reset(&out);
	print_cell(agg, group.cell, 250000, &out);
	tap_span(wm_buf_span(&out), "count=1 rate=4", "four a second");
	wm_buf_release(&out);
	group_free(&group);
	wm_agg_free(agg);
}

static void
test_extremes(void)
{
	CHECK("min:v,max:v", "v_min=5' v_max=abc'", "5", "abc");
	CHECK("min:v,max:v", "v_min=-2' v_max=10'", "9", "10", "-2", "3");
	CHECK("min:v,max:v", "v_min=+1' v_max=abd'", "abc", "ab", "abd", "+1");
	CHECK("min:v,max:v", "v_min=-1' v_max=zz'", "zz", "-1", "");
	/* of equal numbers the text first in byte order, whatever comes first */
	CHECK("min:v,max:v", "v_min=007' v_max=007'", "7", "7.0", "007");
	CHECK("min:v,max:v", "v_min=007' v_max=007'", "007", "7.0", "7");
	CHECK("min:v,max:v", "v_min=10e39' v_max=10e39'", "1e40", "10e39", "1e40");
	CHECK("max:v", "v_max=0.10000000000000000001'", "0.1", "0.10000000000000000001", "0.1");
	CHECK("min:v", "v_min=1e-999999999'", "1e-20", "1e-999999999", "5e-324");
	/* in NDJSON, of 1 and "1", the first to come */
	CHECK("min:v,max:v", "v_min=1 v_max=1", "#1", "\"1", "#1");
	CHECK("min:v,max:v", "v_min=1' v_max=1'", "\"1", "#1");
	CHECK("min:v,max:v", "v_min=2 v_max=x'", "\"10", "#2", "\"x");
	/* JSON numbers beyond doubles are no numbers here */
	CHECK("min:v,max:v", "v_min=3 v_max=1e999", "#1e999", "#3");

	struct wm_agg *agg = plan_of("min:v,max:v,first:v,last:v");
	struct group group = group_new(agg);
	static const struct {
		const char *text;
		enum wm_kind kind;
	} values[] = { { "true", WM_KIND_BOOL }, { "[1]", WM_KIND_JSON }, { "tru", WM_KIND_TEXT },
		{ "{}", WM_KIND_JSON } };
	for (size_t i = 0; i < 4; i++) {
		struct wm_reading reading = reading_of(values[i].text, values[i].kind);

		wm_agg_cell_add(agg, group.cell, &group.arena, &reading, (int64_t)i);
	}
	check_cell(&group, "v_min=[1]j v_max={}j v_first=trueb v_last={}j",
		"other kinds compare as texts and keep their kind");
	group_free(&group);
	wm_agg_free(agg);
}

static void
test_first_last(void)
{
	struct wm_agg *agg = plan_of("first:v,last:v");
	struct group group = group_new(agg), later = group_new(agg);

	add_field(&group, "b", 5);
	add_field(&group, "c", 5);
	add_field(&group, "", 1);
	check_cell(&group, "v_first=b' v_last=c'", "ties go by input order; empty is no value");
	add_field(&group, "a", -7);
	add_field(&group, "d", 6);
	add_field(&group, "x", 0);
	check_cell(&group, "v_first=a' v_last=d'", "by event time, not by input order");
	add_field(&later, "tie", -7);
	add_field(&later, "tie too", 6);
	wm_agg_cell_merge(agg, group.cell, &group.arena, later.cell);
	check_cell(&group, "v_first=a' v_last=d'", "merged: ties go to the cell that is merged into");
	add_field(&later, "before", -8);
	add_field(&later, "behind", 7);
	wm_agg_cell_merge(agg, group.cell, &group.arena, later.cell);
	check_cell(&group, "v_first=before' v_last=behind'", "else to the earlier and the later");
	group_free(&group);
	group_free(&later);

	group = group_new(agg);
	add_field(&group, "at the end of time", INT64_MAX);
	add_field(&group, "at its begin", INT64_MIN);
	check_cell(&group, "v_first=at its begin' v_last=at the end of time'", "all times are legal");
	group_free(&group);
	wm_agg_free(agg);
}

/* Texts of any length, and longer ones in place of shorter; room in the arena is used again. */
static void
test_texts(void)
{
	struct wm_agg *agg = plan_of("last:v");
	struct group group = group_new(agg);
	bool ok = true;
	char text[3000];
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (size_t len = 1; len < sizeof(text) && ok; len = len < 70 ? len + 1 : len * 3 / 2) {
		memset(text, 'a' + (char)(len % 26), len);
		text[len] = '\0';
		add_field(&group, text, 0);
		wm_buf_reset(&out);
		wm_agg_cell_print(agg, group.cell, 0, 0, &out);
		ok = wm_span_is(wm_buf_span(&out), text);
	}
	tap_ok(ok, "texts of 1 to some thousand bytes are kept whole");
	size_t bytes = group.arena.bytes;
	for (int i = 0; i < 10000; i++)
		add_field(&group, i % 2 ? text : "short", 0);
	tap_ok(group.arena.bytes == bytes, "shorter and longer by turns take no more room");
	add_field(&group, "short", 0);
	check_cell(&group, "v_last=short'", "a short text in the place of a long one");
	wm_buf_release(&out);
	group_free(&group);
	wm_agg_free(agg);
}

enum { COLUMNS = 2, ROWS = 60, PARTS = 4 };

static const char all_of_two[] =
	"count,n=count:a,sum:a,avg:a,min:a,max:a,first:a,last:a,var:a,stddev:a,min:b,max:b,first:b,last:b,count:b,rate";

struct row {
	char text[COLUMNS][64];
	struct wm_reading readings[COLUMNS];
	int64_t event_time_us;
};

static void
random_row(uint64_t *seed, struct row *row)
{
	static const char *const words[] = { "", "x", "abc", "a text that is longer than a cell", "7", "07", "7.0",
		"-3", "1e40", "10000000000000000000000000000000000000000", "1e-25" };

	snprintf(row->text[0], sizeof(row->text[0]), "%s%u.%02u", tap_random(seed) % 4 ? "" : "-",
		(unsigned)(tap_random(seed) % 50), (unsigned)(tap_random(seed) % 100));
	if (tap_random(seed) % 5 == 0)
		*row->text[0] = '\0';
	strcpy(row->text[1], words[tap_random(seed) % (sizeof(words) / sizeof(words[0]))]);
	for (size_t i = 0; i < COLUMNS; i++) {
		struct wm_value value = { .text = wm_span_of(row->text[i]), .kind = WM_KIND_TEXT };

		wm_reading_take(&row->readings[i], &value);
	}
}

/* Rows in random orders, split over cells that are merged, some by way of their encoding: the same results. */
static void
test_merge_random(void)
{
	struct wm_agg *agg = plan_of(all_of_two);
	uint64_t seed = 7;
	bool ok = true;
	struct wm_buf want, got, bytes, again;

	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&again, WM_BUF_UNBOUNDED);
	for (int round = 0; round < 400 && ok; round++) {
		struct row rows[ROWS];
		struct group whole = group_new(agg), parts[PARTS];

		for (size_t i = 0; i < PARTS; i++)
			parts[i] = group_new(agg);
		for (size_t i = 0; i < ROWS; i++) {
			random_row(&seed, &rows[i]);
			rows[i].event_time_us = (int64_t)(i * 1000 + tap_random(&seed) % 1000); /* no ties */
			wm_agg_cell_add(agg, whole.cell, &whole.arena, rows[i].readings, rows[i].event_time_us);
		}
		for (size_t left = ROWS; left > 0; left--) {
			size_t pick = tap_random(&seed) % left;
			struct group *part = &parts[tap_random(&seed) % PARTS];
			struct row row = rows[pick];

			for (size_t i = 0; i < COLUMNS; i++)
				row.readings[i].value.text.data = row.text[i];
			wm_agg_cell_add(agg, part->cell, &part->arena, row.readings, row.event_time_us);
			rows[pick] = rows[left - 1];
			for (size_t i = 0; i < COLUMNS; i++)
				rows[pick].readings[i].value.text.data = rows[pick].text[i];
		}
		for (size_t i = 0; i < PARTS && ok; i++) {
			struct wm_get in;

			if (tap_random(&seed) % 2)
				continue;
			wm_buf_reset(&bytes);
			wm_agg_cell_encode(agg, parts[i].cell, &bytes);
			group_free(&parts[i]);
			parts[i] = group_new(agg);
			wm_get_init(&in, wm_buf_span(&bytes));
			ok = wm_agg_cell_decode(agg, parts[i].cell, &parts[i].arena, &in) && wm_get_left(&in) == 0;
			wm_buf_reset(&again);
			wm_agg_cell_encode(agg, parts[i].cell, &again);
			ok = ok && wm_span_equal(wm_buf_span(&bytes), wm_buf_span(&again));
		}
		for (size_t i = 1; i < PARTS; i++)
			wm_agg_cell_merge(agg, parts[0].cell, &parts[0].arena, parts[i].cell);
		wm_buf_reset(&want);
		wm_buf_reset(&got);
		print_cell(agg, whole.cell, MINUTE_US, &want);
		print_cell(agg, parts[0].cell, MINUTE_US, &got);
		ok = ok && wm_span_equal(wm_buf_span(&want), wm_buf_span(&got));
		if (!ok)
			printf("# whole  %.*s\n# merged %.*s\n", (int)want.len, want.data, (int)got.len, got.data);
		group_free(&whole);
		for (size_t i = 0; i < PARTS; i++)
			group_free(&parts[i]);
	}
	wm_buf_release(&want);
	wm_buf_release(&got);
	wm_buf_release(&bytes);
	wm_buf_release(&again);
	tap_ok(ok, "random splits, orders and encodings give the same results");
	wm_agg_free(agg);
}

/* Results against sums in long long hundredths and comparisons of plain doubles, which are exact for such numbers. */
static void
test_model_random(void)
{
	struct wm_agg *agg = plan_of("count,n=count:a,sum:a,min:a,max:a");
	uint64_t seed = 8;
	bool ok = true;

	for (int round = 0; round < 300 && ok; round++) {
		struct group group = group_new(agg);
		long long total = 0, least = 0, greatest = 0;
		int count = 0, rows = (int)(tap_random(&seed) % 30);
		char text[32], want[200], extremes[2][32];
		struct wm_buf out;

		for (int i = 0; i < rows; i++) {
			long long value = (long long)(tap_random(&seed) % 20000) - 10000;
			bool empty = tap_random(&seed) % 4 == 0;

			snprintf(text, sizeof(text), "%s%lld.%02lld", value < 0 ? "-" : "", llabs(value) / 100,
				llabs(value) % 100);
			add_field(&group, empty ? "" : text, 0);
			if (empty)
				continue;
			if (count == 0 || value < least) {
				least = value;
				strcpy(extremes[0], text);
			}
			if (count == 0 || value > greatest) {
				greatest = value;
				strcpy(extremes[1], text);
			}
			total += value;
			count++;
		}
		int len = snprintf(want, sizeof(want), "count=%d n=%d a_sum=", rows, count);
		if (count == 0) {
			snprintf(want + len, sizeof(want) - (size_t)len, "? a_min=? a_max=?");
		} else {
			len += snprintf(want + len, sizeof(want) - (size_t)len, "%s%lld.%02lld", total < 0 ? "-" : "",
				llabs(total) / 100, llabs(total) % 100);
			while (want[len - 1] == '0')
				len--;
			len -= want[len - 1] == '.';
			snprintf(want + len, sizeof(want) - (size_t)len, " a_min=%s' a_max=%s'", extremes[0],
				extremes[1]);
		}
		wm_buf_init(&out, WM_BUF_UNBOUNDED);
		print_cell(agg, group.cell, MINUTE_US, &out);
		ok = wm_span_is(wm_buf_span(&out), want);
		if (!ok)
			printf("# got  %.*s\n# want %s\n", (int)out.len, out.data, want);
		wm_buf_release(&out);
		group_free(&group);
	}
	tap_ok(ok, "random groups agree with whole hundredths");
	wm_agg_free(agg);
}

/* Damaged bytes give an error or a cell that prints, merges and encodes; nothing else (the sanitizers watch). */
static void
test_damage(void)
{
	struct wm_agg *agg = plan_of(all_of_two);
	uint64_t seed = 9;
	struct group group = group_new(agg);
	struct wm_buf bytes, scratch;
	size_t accepted = 0, refused = 0;
	struct wm_get in;

	for (int i = 0; i < 40; i++) {
		struct row row;

		random_row(&seed, &row);
		wm_agg_cell_add(agg, group.cell, &group.arena, row.readings, i);
	}
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&scratch, WM_BUF_UNBOUNDED);
	wm_agg_cell_encode(agg, group.cell, &bytes);
	for (size_t len = 0; len < bytes.len; len++) {
		struct group other = group_new(agg);
		char *part = wm_memdup(bytes.data, len); /* so that a read behind the end is seen */

		wm_get_init(&in, wm_span(part, len));
		refused += !wm_agg_cell_decode(agg, other.cell, &other.arena, &in);
		free(part);
		group_free(&other);
	}
	tap_int((int64_t)refused, (int64_t)bytes.len, "every shorter encoding is refused");

	refused = 0;
	for (int i = 0; i < 4000; i++) {
		struct group other = group_new(agg);
		char *damaged = wm_memdup(bytes.data, bytes.len);

		for (uint64_t n = 1 + tap_random(&seed) % 3; n > 0; n--)
			damaged[tap_random(&seed) % bytes.len] = (char)tap_random(&seed);
		wm_get_init(&in, wm_span(damaged, bytes.len));
		if (wm_agg_cell_decode(agg, other.cell, &other.arena, &in)) {
			accepted++;
			wm_agg_cell_merge(agg, other.cell, &other.arena, group.cell);
			wm_buf_reset(&scratch);
			print_cell(agg, other.cell, MINUTE_US, &scratch);
			wm_agg_cell_encode(agg, other.cell, &scratch);
		} else {
			refused++;
		}
		free(damaged);
		group_free(&other);
	}
	tap_ok(accepted > 100 && refused > 100, "damaged encodings: %zu read, %zu refused, none does harm", accepted,
		refused);
	wm_buf_release(&bytes);
	wm_buf_release(&scratch);
	group_free(&group);
	wm_agg_free(agg);

	agg = plan_of("count:v");
	group = group_new(agg);
	wm_get_init(&in, wm_span("\1\2", 2));
	tap_ok(!wm_agg_cell_decode(agg, group.cell, &group.arena, &in), "more values than rows are refused");
	group_free(&group);
	wm_agg_free(agg);
	agg = plan_of("max:v");
	group = group_new(agg);
	wm_get_init(&in, wm_span("\1\5\1x", 4));
	tap_ok(!wm_agg_cell_decode(agg, group.cell, &group.arena, &in), "so is a kind that there is not");
	wm_get_init(&in, wm_span("\1\1\0", 3));
	tap_ok(!wm_agg_cell_decode(agg, group.cell, &group.arena, &in), "and an empty text that is kept");
	group_free(&group);
	wm_agg_free(agg);
}

int
main(void)
{
	test_errors();
	test_plan();
	test_results();
	test_extremes();
	test_first_last();
	test_texts();
	test_merge_random();
	test_model_random();
	test_damage();
	return tap_done();
}
