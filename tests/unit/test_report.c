/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/report.h"

#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

/* A line that is compared whole: the members and their order are the contract. */
static void
tap_line(struct wm_buf *got, const char *want, const char *name)
{
	tap_span(got->len == 0 ? wm_span_of("") : wm_buf_span(got), want, name);
	wm_buf_reset(got);
}

/* A stream of rows; which of them are late stands in a text of '.', 'L' (late), 'P' (partly late, one window missed). */
static void
feed(struct report *report, const char *rows)
{
	for (; *rows != '\0'; rows++) {
		report->rows_in++;
		if (*rows == 'L') {
			report_late(report);
			report->windows_missed++;
			continue;
		}
		report->rows_used++;
		if (*rows == 'P') {
			report->rows_partly_late++;
			report->windows_missed++;
			report->windows_missed_partly++;
		}
	}
}

static void
feed_many(struct report *report, const char *rows, unsigned times)
{
	while (times-- != 0)
		feed(report, rows);
}

/* Two batches with all members set; the sums are by hand. */
static void
test_objects(struct wm_buf *out)
{
	struct report report;
	struct report_state state = { .groups = 2, .updated = 3, .removed = 1, .bytes = 640 };

	report_init(&report, "wm-window", "windowing");
	report_clock(&report, 5000000, 0);
	feed(&report, "...");
	report.rows_in++;
	tap_ok(report_reject(&report, "bad-time"), "the first row of a reason");
	report_times_add(&report.batch_times, -2000000);
	report_times_add(&report.batch_times, 1000000);
	report_times_add(&report.batch_times, 0);
	report.rows_out = 1;
	report_clock(&report, 7000000, 500000);
	report_progress(&report, &state, 1000000, out);
	tap_line(out,
		"{\"type\":\"progress\",\"batchId\":0,\"timestamp\":\"1970-01-01T00:00:01Z\",\"numInputRows\":4,"
		"\"inputRowsPerSecond\":2.0,\"processedRowsPerSecond\":2.7,\"batchDuration\":1500,"
		"\"eventTime\":{\"min\":\"1969-12-31T23:59:58Z\",\"max\":\"1970-01-01T00:00:01Z\","
		"\"avg\":\"1969-12-31T23:59:59.666666Z\",\"watermark\":null},"
		"\"stateOperators\":[{\"operatorName\":\"windowing\",\"numRowsTotal\":2,\"numRowsUpdated\":3,"
		"\"numRowsRemoved\":1,\"numRowsDroppedByWatermark\":0,\"memoryUsedBytes\":640}],"
		"\"sink\":{\"numOutputRows\":1},\"lateShare\":0}\n",
		"progress of the first batch; a mean before 1970 is cut toward the past");

	/* Asked for twice in a batch it says the same twice. */
	report_progress(&report, &state, 1000000, out);
	wm_buf_reset(out);
	report_next_batch(&report, 500000);
	feed(&report, "LP..");
	report.rows_in++;
	tap_ok(!report_reject(&report, "bad-time"), "the second row of a reason");
	report.rows_out = 3;
	state = (struct report_state){ .groups = 1, .updated = 5, .removed = 4, .bytes = 320 };
	report_clock(&report, 9000000, 2500000);
	report_progress(&report, &state, 3000000, out);
	tap_line(out,
		"{\"type\":\"progress\",\"batchId\":1,\"timestamp\":\"1970-01-01T00:00:03Z\",\"numInputRows\":5,"
		"\"inputRowsPerSecond\":2.5,\"processedRowsPerSecond\":null,\"batchDuration\":0,"
		"\"eventTime\":{\"min\":null,\"max\":null,\"avg\":null,\"watermark\":\"1970-01-01T00:00:00.500Z\"},"
		"\"stateOperators\":[{\"operatorName\":\"windowing\",\"numRowsTotal\":1,\"numRowsUpdated\":2,"
		"\"numRowsRemoved\":3,\"numRowsDroppedByWatermark\":2,\"memoryUsedBytes\":320}],"
		"\"sink\":{\"numOutputRows\":2},\"lateShare\":0.2}\n",
		"progress of the second batch: what came in it alone");
	report_next_batch(&report, 500000);
	tap_ok(report_is_closed(&report), "the ledger closes");

	struct report_place place = { "a\"b\n\xff.csv", 7, 86400000000 };
	report_unconfirmed(&report, false, &(struct report_place){ "early", 1, 0 });
	report_unconfirmed(&report, true, &place);
	report_unconfirmed(&report, true, &(struct report_place){ "late", 9, 0 });
	report.rows_repeated_hour = 6;
	report.lines_blank = 8;
	report.headers_repeated = 9;
	report.disorder_max_us = 2500000;
	report.disorder_used_max_us = 1000000;
	report.ended_us = 4000000;
	report_final(&report, &state, 500000, 11, 5, out);
	tap_line(out,
		"{\"type\":\"report\",\"tool\":\"wm-window\",\"rows_in\":9,\"rows_punctuation\":0,\"rows_rejected\":2,"
		"\"rows_late\":1,\"rows_duplicate\":0,\"rows_used\":6,\"rejected\":{\"bad-time\":2},"
		"\"rows_partly_late\":1,\"rows_unconfirmed\":3,\"rows_repeated_hour\":6,\"windows_missed\":2,"
		"\"windows_missed_partly\":1,\"rows_out\":3,\"lines_blank\":8,\"headers_repeated\":9,\"lines_"
		"unmatched\":0,"
		"\"windows_open\":11,"
		"\"unconfirmed_first\":{\"input\":\"a\\\"b\\n\\ufffd.csv\",\"line\":7,\"time\":\"1970-01-02T00:00:"
		"00Z\"},"
		"\"disorder_max\":2.5,\"disorder_used_max\":1,\"timestamp\":\"1970-01-01T00:00:04Z\","
		"\"numInputRows\":9,\"inputRowsPerSecond\":2.2,\"processedRowsPerSecond\":6.0,\"batchDuration\":1500,"
		"\"eventTime\":{\"min\":\"1969-12-31T23:59:58Z\",\"max\":\"1970-01-01T00:00:01Z\","
		"\"avg\":\"1969-12-31T23:59:59.666666Z\",\"watermark\":\"1970-01-01T00:00:00.500Z\"},"
		"\"stateOperators\":[{\"operatorName\":\"windowing\",\"numRowsTotal\":1,\"numRowsUpdated\":5,"
		"\"numRowsRemoved\":4,\"numRowsDroppedByWatermark\":2,\"memoryUsedBytes\":320}],"
		"\"sink\":{\"numOutputRows\":3},\"lateShare\":0.1111111111111111,\"status\":5}\n",
		"the final report: of the whole run, with a name that needs escapes");
}

static void
test_nothing_told(struct wm_buf *out)
{
	static const char dropped[] = "\"numRowsDroppedByWatermark\":1,";
	struct report report;

	report_init(&report, "wm-dedup", NULL);
	feed(&report, "L");
	report.windows_missed = 0;
	report_progress(&report, &(struct report_state){ 0 }, 0, out);
	tap_line(out,
		"{\"type\":\"progress\",\"batchId\":0,\"timestamp\":\"1970-01-01T00:00:00Z\",\"numInputRows\":1,"
		"\"inputRowsPerSecond\":null,\"processedRowsPerSecond\":null,\"batchDuration\":null,"
		"\"eventTime\":{\"min\":null,\"max\":null,\"avg\":null,\"watermark\":null},\"stateOperators\":[],"
		"\"sink\":{\"numOutputRows\":0},\"lateShare\":1}\n",
		"without clock and operator");
	report.operator_name = "dedup";
	report_progress(&report, &(struct report_state){ 0 }, 0, out);
	tap_ok(memmem(out->data, out->len, dropped, strlen(dropped)) != NULL,
		"without windows it is rows that are dropped");
	wm_buf_reset(out);
}

/* Against the same by 128-bit fractions in the test's own words: exact at the edge, also with numbers near 2^64. */
static void
test_share(void)
{
	struct report report;

	report_init(&report, "wm-window", NULL);
	tap_ok(!report_late_share_exceeds(&report, 0, 1), "no rows pass no share");
	report.rows_in = 3000;
	report.rows_late = 2;
	report.rows_partly_late = 1;
	tap_ok(!report_late_share_exceeds(&report, 1, 1000), "3 of 3000 is 1/1000, not more");
	report.rows_in = 2999;
	tap_ok(report_late_share_exceeds(&report, 1, 1000), "3 of 2999 is more");
	report.rows_in = INT64_MAX;
	report.rows_late = INT64_MAX / 2;
	report.rows_partly_late = 0;
	tap_ok(!report_late_share_exceeds(&report, INT64_MAX, INT64_MAX), "no overflow below");
	tap_ok(report_late_share_exceeds(&report, INT64_MAX / 2 - 1, INT64_MAX), "nor above");
	report.rows_late = 1;
	tap_ok(report_late_share_exceeds(&report, 0, 1), "one row is more than none");
}

static void
test_summary(struct wm_buf *out)
{
	struct report report;
	struct report_context context = { .delay_text = "10m", .delay_us = 600000000 };

	report_init(&report, "wm-window", NULL);
	feed_many(&report, "..........", 10);
	report.disorder_max_us = 125000000;
	report_summary(&report, &context, out);
	tap_line(out, "", "silence where nothing was late");
	context.is_verbose = true;
	report_summary(&report, &context, out);
	tap_line(out,
		"100 rows, none late: a delay of 2m5s would have dropped nothing, so 10m may be longer than needed",
		"none late");
	report.disorder_max_us = 599000000;
	report_summary(&report, &context, out);
	tap_line(out, "100 rows, none late: a delay of 9m59s would have dropped nothing", "none late, just so");
	report.headers_repeated = 2;
	report.rows_repeated_hour = 1;
	context.delay_text = NULL;
	report_summary(&report, &context, out);
	tap_line(out,
		"100 rows, none late\n1 row of an hour that a clock change repeats, taken as the earlier one; "
		"2 repeated headers skipped",
		"without a delay; what is told beside");
	context = (struct report_context){ .delay_text = "10m", .delay_us = 600000000 };
	report_summary(&report, &context, out);
	tap_line(out, "", "repeated headers and hours do not speak up by themselves");

	report_init(&report, "wm-window", NULL);
	feed_many(&report, "...................L", 50);
	report.disorder_max_us = 3599000000;
	report_summary(&report, &context, out);
	tap_line(out,
		"50 of 1000 rows were late and dropped (5.0%): --late FILE keeps such rows\n"
		"a small, steady share is normal; a delay of 1h would have dropped nothing",
		"a small, steady share");
	feed_many(&report, "L..L", 10);
	context.late_path = "late.csv";
	report.rows_partly_late = 3;
	report.windows_missed_partly = 4;
	context.fail_late_text = "1/1000";
	report_summary(&report, &context, out);
	tap_line(out,
		"70 of 1040 rows were late and dropped (6.7%, more than --fail-late 1/1000 allows): in late.csv; "
		"3 more were partly late: they missed 4 windows and count in the others\n"
		"the delay of 10m is short for this source; a delay of 1h would have dropped nothing",
		"more than one in 20, some of them partly");

	context = (struct report_context){ .delay_text = "10m", .delay_us = 600000000 };
	report_init(&report, "wm-window", NULL);
	feed_many(&report, "....................", 49);
	feed(&report, "LLLLLLLLLLLLLLLLLLLL");
	report.disorder_max_us = 601000000;
	report_summary(&report, &context, out);
	tap_line(out,
		"20 of 1000 rows were late and dropped (2.0%): --late FILE keeps such rows\n"
		"late rows grow in number: the source runs later than the delay of 10m; a delay of 11m would have "
		"dropped nothing",
		"growing");

	report_init(&report, "wm-window", NULL);
	feed_many(&report, "LLL.", 5);
	report.disorder_max_us = 86400000000 * 30;
	report_summary(&report, &context, out);
	tap_line(out,
		"15 of 20 rows were late and dropped (75%): --late FILE keeps such rows\n"
		"most rows were late: the delay of 10m is far too short, or the input is not in order; a delay of 30d "
		"would have dropped nothing",
		"most rows");

	report_init(&report, "wm-window", NULL);
	feed_many(&report, "...P", 1);
	report.disorder_max_us = 600700000;
	report_summary(&report, &context, out);
	tap_line(out,
		"1 of 4 rows was partly late (25%): it missed 1 window and counts in the others\n"
		"the delay of 10m is short for this source; a delay of 11m would have dropped nothing",
		"partly late alone");
	report.disorder_max_us = 599000000;
	report_summary(&report, &context, out);
	tap_line(out,
		"1 of 4 rows was partly late (25%): it missed 1 window and counts in the others\n"
		"the delay of 10m is short for this source",
		"no delay is named that was given, and has dropped something");
}

static void
test_summary_of_guards(struct wm_buf *out)
{
	struct report report;
	struct report_context context = { .delay_text = "5s", .delay_us = 5000000 };

	report_init(&report, "wm-window", NULL);
	feed(&report, ".....");
	report.jump_us = 3600000000;
	report.jump_time_us = 3605000000;
	report.jump_line = 6;
	report.jump_input = "in.csv";
	report.jump_rows_before = 4;
	feed_many(&report, "L", 5);
	report_summary(&report, &context, out);
	tap_line(out,
		"5 of 10 rows were late and dropped (50%): --late FILE keeps such rows\n"
		"in.csv:6: this row, of 1970-01-01T01:00:05Z, moved the watermark on by 1h: 5 of the 5 rows behind it "
		"were late: is its clock right? --max-jump D keeps the watermark from such rows",
		"a sudden jump: the row is named");

	report_init(&report, "wm-window", NULL);
	feed(&report, "........");
	context = (struct report_context){ .delay_text = "5s", .max_jump_text = "1h", .has_confirmed = true };
	report.rows_unconfirmed = 15;
	report_summary(&report, &context, out);
	tap_line(out, "", "the first rows of every stream are unconfirmed: nothing to speak of");
	report_unconfirmed(&report, true, &(struct report_place){ "in.csv", 17, 0 });
	report_summary(&report, &context, out);
	tap_line(out,
		"1 row ahead by more than --max-jump 1h did not move the watermark: in.csv:17, of 1970-01-01T00:00:00Z",
		"one unconfirmed row");
	report_unconfirmed(&report, true, &(struct report_place){ "in.csv", 18, 0 });
	report.headers_repeated = 1;
	report.rows_in += 2;
	report_reject(&report, "bad-time");
	report_reject(&report, "ragged");
	report_summary(&report, &context, out);
	tap_line(out,
		"2 of 10 rows were rejected (1 bad-time, 1 ragged): --rejects FILE keeps such rows; 2 rows ahead by "
		"more "
		"than "
		"--max-jump 1h did not move the watermark: the first is in.csv:17, of 1970-01-01T00:00:00Z; "
		"1 repeated header skipped",
		"with rejected rows it is one line");
	feed(&report, "L");
	context.rejects_path = "r.ndjson";
	report_summary(&report, &context, out);
	tap_int(wm_span_is(wm_span(out->data, 9), "1 of 11 r"), 1, "late rows first, where rejected ones are kept");
	unsigned lines = 1;
	for (size_t i = 0; i < out->len; i++)
		lines += out->data[i] == '\n';
	tap_int(lines, 3, "three lines are the most");
	wm_buf_reset(out);
	context.rejects_path = NULL;
	report_summary(&report, &context, out);
	tap_int(wm_span_is(wm_span(out->data, 9), "2 of 11 r"), 1, "rejected rows first, where they are lost");
	wm_buf_reset(out);

	report_init(&report, "wm-window", NULL);
	feed(&report, "..");
	report_unconfirmed(&report, false, &(struct report_place){ "in.csv", 2, 0 });
	context.has_confirmed = false;
	report_summary(&report, &context, out);
	tap_line(out, "there was no watermark: no 15 of 20 rows were within 1h of each other (--max-jump)",
		"nothing was confirmed");

	report_init(&report, "wm-window", NULL);
	report.rows_in = 1;
	report_reject(&report, "bad-time");
	report_summary(&report, &(struct report_context){ .rejects_path = "r" }, out);
	tap_line(out, "1 of 1 row was rejected (1 bad-time): in r; is this the right column and format?",
		"all rows rejected");
}

/* The share of the late line, by itself. */
static void
test_digits(struct wm_buf *out)
{
	static const struct {
		uint64_t late, rows;
		const char *share;
	} cases[] = {
		{ 1, 3, "(33%)" },
		{ 40, 1707, "(2.3%)" },
		{ 234, 100000, "(0.23%)" },
		{ 23, 100000, "(0.023%)" },
		{ 1, 1000000000, "(less than 0.001%)" },
		{ 999, 1000, "(99.90%)" },
		{ 999999999, 1000000000, "(more than 99.999%)" },
		{ 7, 7, "(100%)" },
		{ 1989, 20000, "(9.9%)" },
		{ 1996, 20000, "(10%)" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct report report;

		report_init(&report, "wm-window", NULL);
		report.rows_in = cases[i].rows;
		report.rows_late = cases[i].late;
		report_summary(&report, &(struct report_context){ .delay_text = "1s" }, out);
		tap_ok(memmem(out->data, out->len, cases[i].share, strlen(cases[i].share)) != NULL,
			"%" PRIu64 " of %" PRIu64 " is %s", cases[i].late, cases[i].rows, cases[i].share);
		wm_buf_reset(out);
	}
}

/* Two runs, the first as a checkpoint keeps it: their totals are those of one. */
static void
test_totals(struct wm_buf *out)
{
	struct report one, first, before, second;
	struct wm_get in;

	report_init(&one, "wm-window", "windowing");
	report_init(&first, "wm-window", "windowing");
	report_init(&before, "wm-window", "windowing");
	report_init(&second, "wm-window", "windowing");
	feed(&one, "..L.P..LL");
	feed(&first, "..L.");
	feed(&second, "P..LL");
	struct report *const parts[] = { &one, &first, &one, &second };
	for (size_t i = 0; i < 4; i++) {
		parts[i]->rows_in += 2;
		report_reject(parts[i], "bad-time");
		report_reject(parts[i], i % 2 == 0 ? "ragged" : i == 1 ? "ragged" : "ragged");
		report_times_add(&parts[i]->batch_times, i < 2 ? 5000000 : -7000000);
		report_next_batch(parts[i], WM_TIME_NONE);
		parts[i]->lines_blank += 3;
		parts[i]->disorder_max_us = i < 2 ? 9000000 : one.disorder_max_us;
	}
	second.disorder_max_us = 4000000;
	report_encode(&first, out);
	wm_get_init(&in, wm_buf_span(out));
	tap_ok(report_decode(&before, &in) && wm_get_left(&in) == 0, "counts come back from bytes");
	for (size_t len = 0; len < out->len; len++) {
		struct report cut;

		report_init(&cut, "wm-window", "windowing");
		wm_get_init(&in, wm_span(out->data, len));
		if (report_decode(&cut, &in))
			tap_ok(false, "%zu bytes are no counts", len);
	}
	wm_buf_reset(out);
	report_add_before(&second, &before);
	const struct report_state none = { 0 };
	struct wm_buf want;
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	report_final(&one, &none, WM_TIME_NONE, 0, 0, &want);
	report_final(&second, &none, WM_TIME_NONE, 0, 0, out);
	tap_ok(wm_span_equal(wm_buf_span(&want), wm_buf_span(out)), "two runs count as one");
	wm_buf_reset(out);
	second.run = &first;
	report_final(&second, &none, WM_TIME_NONE, 0, 0, out);
	tap_ok(memmem(out->data, out->len, "\"run\":{\"rows_in\":6,", 19) != NULL,
		"and the last one is told by itself");
	wm_buf_reset(out);
	wm_buf_release(&want);
}

int
main(void)
{
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	test_objects(&out);
	test_nothing_told(&out);
	test_share();
	test_summary(&out);
	test_summary_of_guards(&out);
	test_digits(&out);
	test_totals(&out);
	wm_buf_release(&out);
	return tap_done();
}
