/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/function.h"

#include "tests/unit/cells.h"

static void
test_find(void)
{
	static const struct {
		const char *word;
		uint64_t percent;
	} words[] = { { "p0", 0 }, { "p5", UINT64_C(5000000000000000) }, { "p100", UINT64_C(100000000000000000) },
		{ "p99.9", UINT64_C(99900000000000000) }, { "p050", UINT64_C(50000000000000000) },
		{ "p99.999999999999999", UINT64_C(99999999999999999) } };
	struct wm_err err = { 0 };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint64_t percent = 7;
		const struct wm_function *function = wm_function_find(wm_span_of(words[i].word), &percent, &err);

		tap_ok(function != NULL && strcmp(function->name, "pNN") == 0 && percent == words[i].percent,
			"%s in 10^-15 percent", words[i].word);
	}
	tap_ok(wm_function_find(wm_span_of("p"), &(uint64_t){ 0 }, &err) == NULL && err.code == WM_ERR_USAGE,
		"p alone is no function");
}

static void
test_results(void)
{
	CHECK("count,sum:v", "count=2 v_sum=122255426", "122255000", "426");
	CHECK("sum:v", "v_sum=0.3", "0.1", "0.2");
	CHECK("sum:v", "v_sum=1e+300", "1e300", "5e-324");
	CHECK("sum:v,avg:v,var:v", "v_sum=3000000000000000000000 v_avg=1500000000000000000000 v_var=5e+41", "1e21",
		"2e21");
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

	/* nearest rank, ceil(p n / 100); the mean of the middle two */
	CHECK("p0:v,p25:v,p50:v,p95:v,p100:v,median:v", "v_p0=1 v_p25=1 v_p50=2 v_p95=10.5 v_p100=10.5 v_median=2.5",
		"3", "1", "10.50", "2");
	CHECK("p50:v,median:v", "v_p50=7 v_median=7", "7");
	CHECK("median:v", "v_median=0.15", "0.1", "0.2");
	CHECK("median:v", "v_median=0.3", "0.1", "0.30", "100");
	CHECK("median:v", "v_median=9007199254740992", "9007199254740993", "9007199254740993"); /* ties to even */
	CHECK("p50:v", "v_p50=9007199254740993", "9007199254740993", "9007199254740993");
	CHECK("p50:v,median:v", "v_p50=-0.5 v_median=-0.25", "-.5", "-0");
	CHECK("p99:v,median:v", "v_p99=1e+300 v_median=1e+300", "1e300", "1e300");
	CHECK("p100:v,median:v", "v_p100=1.7e+308 v_median=1.6499999999999999e+308", "1.7e308", "1.6e308");
	CHECK("p0:v,p100:v", "v_p0=1e-20 v_p100=123456789012345678901234567890.123456789012345678",
		"123456789012345678901234567890.123456789012345678", "1e-20", "0.5");
	CHECK("p50:v,median:v,distinct:v", "v_p50=? v_median=? v_distinct=0", "", "");
	CHECK("distinct:v", "v_distinct=5", "7", "7.0", "", "07", "x", "7", "X", "x");
	CHECK("distinct:v", "v_distinct=2", "#1", "\"1", "#1", "\"1");
	CHECK("count:v:ge:5,share:v:ge:5", "v_ge_5_count=2 v_ge_5_share=0.5", "5.0", "4", "", "50", "-9");
	CHECK("share:v:ge:5", "v_ge_5_share=?", "", "");
	CHECK("share:v:ge:5,count:v:ge:5", "v_ge_5_share=0 v_ge_5_count=0", "1");
	CHECK("sum:v:if:v:gt:2,avg:v:if:v:gt:2,count:v:if:v:gt:2,rate:if:v:gt:2,count:if:v:gt:2,sum:v,p50:v:if:v:gt:2",
		"v_sum_if_v_gt_2=7 v_avg_if_v_gt_2=3.5 v_count_if_v_gt_2=2 rate_if_v_gt_2=0.03333333333333333 "
		"count_if_v_gt_2=2 v_sum=10 v_p50_if_v_gt_2=3",
		"1", "2", "3", "4", "");
	CHECK("max:v:if:v:lt:2,rate:if:v:lt:2", "v_max_if_v_lt_2=? rate_if_v_lt_2=?", "3");

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

int
main(void)
{
	test_find();
	test_results();
	return tap_done();
}
