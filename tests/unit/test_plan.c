/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/plan.h"

#include "lib/base/limits.h"
#include "tests/unit/cells.h"

static void
check_error(const char *list, const char *message)
{
	struct wm_err err = { 0 };
	struct wm_agg *agg = wm_agg_parse(wm_span_of(list), &err);

	tap_ok(agg == NULL && err.code == WM_ERR_USAGE, "'%s' is refused", list);
	tap_text(err.message, message, "with its message");
	wm_agg_free(agg);
}

#define ALL "there are: count, sum, avg, min, max, first, last, var, stddev, median, pNN, distinct, rate, share"

#define COLON "\\: where a ':' belongs to a name or a value"

static void
test_errors(void)
{
	check_error("cuont", "no aggregate 'cuont'; did you mean count? " ALL);
	check_error("COUNT", "no aggregate 'COUNT'; did you mean count? " ALL);
	check_error("stdev:c", "no aggregate 'stdev'; did you mean stddev? " ALL);
	check_error("summ:c", "no aggregate 'summ'; did you mean sum? " ALL);
	check_error("p:c", "no aggregate 'p'; " ALL);
	check_error("p95x:c", "no aggregate 'p95x'; " ALL);
	check_error("page:c", "no aggregate 'page'; did you mean rate? " ALL);
	check_error("p9.9.9:c", "no aggregate 'p9.9.9'; " ALL);
	check_error("pNN:c", "no aggregate 'pNN': say p95");
	check_error("percentile:c", "no aggregate 'percentile': say p95");
	check_error("p101:c", "no percentile 'p101': they are p0 to p100, with up to 15 digits after the point");
	check_error("p100.1:c", "no percentile 'p100.1': they are p0 to p100, with up to 15 digits after the point");
	check_error("p99.9999999999999999:c",
		"no percentile 'p99.9999999999999999': they are p0 to p100, with up to 15 digits after the point");
	check_error("p95", "p95 needs a column: p95:COLUMN");
	check_error("nunique:c", "no aggregate 'nunique': say distinct");
	check_error("approximately_distinct:c", "no aggregate 'approximately_distinct'; " ALL);
	check_error(":c", "no aggregate ''; " ALL);
	check_error("mean:c", "no aggregate 'mean': say avg");
	check_error("variance:c", "no aggregate 'variance': say var");
	check_error("sum", "sum needs a column: sum:COLUMN");
	check_error("sum:", "sum needs a column: sum:COLUMN");
	check_error("count:", "count needs a column: count:COLUMN");
	check_error("count,max", "max needs a column: max:COLUMN");
	check_error("rate:c", "'rate:c': rate takes no column; write rate or rate:if:COLUMN:OP:VALUE");
	check_error("sum:a:b", "'sum:a:b': write sum:COLUMN or sum:COLUMN:if:COLUMN:OP:VALUE, and " COLON);
	check_error("count,count", "two aggregates are named 'count': rename one with NAME=count");
	check_error("sum:c,sum:c", "two aggregates are named 'c_sum': rename one with NAME=sum:c");
	check_error("c_sum=count,sum:c", "two aggregates are named 'c_sum': rename one with NAME=sum:c");
	check_error("", "an aggregate is empty: write the list as count,sum:COLUMN");
	check_error("count,", "an aggregate is empty: write the list as count,sum:COLUMN");
	check_error("=count", "no name before the '=' of '=count'");
	check_error("n=", "no aggregate ''; " ALL);
	check_error("a=b=count", "more than one '=' in 'a=b=count': write \\= where it belongs to a name or a value");
	check_error("count:url:eq:a=b",
		"a '=' behind a ':' in 'count:url:eq:a=b': comparisons are eq, ne, lt, le, gt, ge; write \\= where it "
		"belongs to a value or a name");
	check_error("n=count:c:>=:5",
		"more than one '=' in 'n=count:c:>=:5': write \\= where it belongs to a name or a value");
	check_error("count:c:gte:5", "no comparison 'gte': say ge");
	check_error("count:c:<:5", "no comparison '<': say lt");
	check_error("count:c:like:5", "no comparison 'like'; there are: eq, ne, lt, le, gt, ge");
	check_error("count:c:eq:",
		"no value behind 'eq': an empty field fulfils no condition, and count:COLUMN counts the others");
	check_error("count::eq:5", "count needs a column: count:COLUMN:OP:VALUE");
	check_error("count:c:eq",
		"'count:c:eq': write count, count:COLUMN, count:COLUMN:OP:VALUE or count:COLUMN:if:COLUMN:OP:VALUE, "
		"and " COLON);
	check_error("sum:c:ge:5", "'sum:c:ge:5': write sum:COLUMN or sum:COLUMN:if:COLUMN:OP:VALUE, and " COLON);
	check_error("sum:c:if:d:ge", "'sum:c:if:d:ge': write sum:COLUMN or sum:COLUMN:if:COLUMN:OP:VALUE, and " COLON);
	check_error("sum:if:d:ge:5", "'sum:if:d:ge:5': write sum:COLUMN or sum:COLUMN:if:COLUMN:OP:VALUE, and " COLON);
	check_error("sum:c:if:d:ge:5:6",
		"'sum:c:if:d:ge:5:6': write sum:COLUMN or sum:COLUMN:if:COLUMN:OP:VALUE, and " COLON);
	check_error("sum:c:if::ge:5", "sum needs a column: sum:COLUMN:if:COLUMN:OP:VALUE");
	check_error("sum::if:d:ge:5", "sum needs a column: sum:COLUMN:if:COLUMN:OP:VALUE");
	check_error("sum:c:when:d:ge:5",
		"'sum:c:when:d:ge:5': write sum:COLUMN or sum:COLUMN:if:COLUMN:OP:VALUE, and " COLON);
	check_error(
		"rate:c:if:d:ge:5", "'rate:c:if:d:ge:5': rate takes no column; write rate or rate:if:COLUMN:OP:VALUE");
	check_error("share:c", "'share:c': write share:COLUMN:OP:VALUE, as in share:status:ge:500");
	check_error("share", "'share': write share:COLUMN:OP:VALUE, as in share:status:ge:500");
	check_error("share:c:if:d:ge:5", "'share:c:if:d:ge:5': write share:COLUMN:OP:VALUE, as in share:status:ge:500");
	check_error("count:c:ge:5,count:c:ge:5",
		"two aggregates are named 'c_ge_5_count': rename one with NAME=count:c:ge:5");

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
	tap_int((int64_t)wm_agg_cell_bytes(agg), 48, "rows, count and sum of a column take 48 bytes");
	wm_agg_free(agg);
	agg = plan_of("count");
	tap_ok(wm_agg_cell_bytes(agg) <= 16, "a count alone takes no more than 16");
	wm_agg_free(agg);
	agg = plan_of("count");
	tap_ok(wm_agg_columns_count(agg) == 0, "a count has no column");
	wm_agg_free(agg);

	/* columns of conditions are columns like others: read as numbers where they are compared with one, and never needed */
	agg = plan_of("errors=count:status:ge:500,err_share=share:status:ge:500,sum:status,p99.9:ms:if:method:eq:GET,"
		      "count:method:lt:P,count:path:ne:/a\\,b\\:c\\=d,distinct:path");
	static const char *const more[] = { "status", "method", "ms", "path" };
	static const bool more_needs[] = { true, false, false, false }, more_reads[] = { true, false, true, false };
	tap_int((int64_t)wm_agg_columns_count(agg), 4, "columns of conditions stand once too");
	tap_ok(wm_agg_has_guards(agg), "ms is needed of a GET alone");
	struct wm_reading row[4];
	const char *texts[4] = { "200", "POST", "-", "/" };
	size_t column = 77;
	for (size_t i = 0; i < 4; i++)
		wm_reading_take(&row[i], &(struct wm_value){ wm_span_of(texts[i]), WM_KIND_TEXT });
	tap_ok(wm_agg_takes(agg, row, &column), "so a POST has none");
	row[1].value.text = wm_span_of("GET");
	tap_ok(!wm_agg_takes(agg, row, &column) && column == 2, "and a GET without one is told by its column");
	wm_reading_take(&row[2], &(struct wm_value){ wm_span_of(""), WM_KIND_TEXT });
	tap_ok(wm_agg_takes(agg, row, &column), "nothing is no text");
	for (size_t i = 0; i < 4; i++) {
		tap_span(wm_agg_column(agg, i), more[i], "a column");
		tap_ok(wm_agg_column_needs_number(agg, i) == more_needs[i], "%s needs a number: %d", more[i],
			more_needs[i]);
		tap_ok(wm_agg_column_reads_number(agg, i) == more_reads[i], "%s reads a number: %d", more[i],
			more_reads[i]);
	}
	wm_agg_free(agg);

	agg = plan_of("count:status:ge:500,share:status:ge:500,avg:latency:if:status:ge:500,count:c:if:d:eq:x,"
		      "count:if:d:lt:-0.5,rate:if:d:ne:/a "
		      "b\\:c,p99.9:v,p95.0:v,median:v:if:d:le:\xc3\xa4_9,distinct:a\\:b,count:if:eq:2");
	static const char *const defaults[] = { "status_ge_500_count", "status_ge_500_share",
		"latency_avg_if_status_ge_500", "c_count_if_d_eq_x", "count_if_d_lt__0_5", "rate_if_d_ne__a_b_c",
		"v_p99.9", "v_p95.0", "v_median_if_d_le_\xc3\xa4_9", "a:b_distinct", "if_eq_2_count" };
	for (size_t i = 0; i < 11; i++)
		tap_span(wm_agg_output_name(agg, i), defaults[i], "a default name");
	wm_agg_free(agg);

	static const char *const same[][2] = {
		{ "count,sum:c,max:d", "n=avg:c,max:d,rate" },
		{ "count", "rate" },
		{ "var:c", "stddev:c,sum:c" },
		{ "p50:c,p95:c", "x=median:c" },
		{ "count:c:ge:5", "rate:if:c:ge:5" },
		{ "sum:c:if:d:ge:5,share:d:ge:5", "share:d:ge:5,avg:c:if:d:ge:5" },
	};
	static const char *const other[][2] = { { "sum:c", "sum:d" }, { "sum:c", "count:c" }, { "max:c", "min:c" },
		{ "count:a.b", "count:a\\.b" }, { "sum:a,sum:b", "sum:b,sum:a" }, { "count:c:ge:5", "count:c:ge:6" },
		{ "count:c:ge:5", "count:c:gt:5" }, { "sum:c", "sum:c:if:d:ge:5" }, { "p95:c", "distinct:c" },
		{ "count:c:ge:5", "share:c:ge:5" } };
	const size_t same_count = sizeof(same) / sizeof(same[0]), count = same_count + sizeof(other) / sizeof(other[0]);
	for (size_t i = 0; i < count; i++) {
		const char *const *pair = i < same_count ? same[i] : other[i - same_count];
		struct wm_buf out[2];

		for (size_t j = 0; j < 2; j++) {
			agg = plan_of(pair[j]);
			wm_buf_init(&out[j], WM_BUF_UNBOUNDED);
			wm_agg_fingerprint(agg, &out[j]);
			wm_agg_free(agg);
		}
		tap_ok(wm_span_equal(wm_buf_span(&out[0]), wm_buf_span(&out[1])) == (i < same_count),
			"%s and %s: %s cells", pair[0], pair[1], i < same_count ? "the same" : "other");
		wm_buf_release(&out[0]);
		wm_buf_release(&out[1]);
	}
}

int
main(void)
{
	test_errors();
	test_plan();
	return tap_done();
}
