/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/report.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/event/watermark.h"
#include "lib/record/writer.h"
#include "lib/time/duration.h"
#include "lib/time/instant.h"

#define AT(field) offsetof(struct report, field)

const struct report_class report_classes[REPORT_CLASSES] = {
	{ "punctuation", AT(rows_punctuation) },
	{ "rejected", AT(rows_rejected) },
	{ "late", AT(rows_late) },
	{ "duplicate", AT(rows_duplicate) },
	{ "used", AT(rows_used) },
};

/* The other counts of the final report. */
static const struct {
	const char *name;
	size_t offset;
} counts[] = {
	{ "rows_partly_late", AT(rows_partly_late) },
	{ "rows_unconfirmed", AT(rows_unconfirmed) },
	{ "rows_repeated_hour", AT(rows_repeated_hour) },
	{ "windows_missed", AT(windows_missed) },
	{ "windows_missed_partly", AT(windows_missed_partly) },
	{ "rows_out", AT(rows_out) },
	{ "lines_blank", AT(lines_blank) },
	{ "headers_repeated", AT(headers_repeated) },
	{ "lines_unmatched", AT(lines_unmatched) },
};

void
report_init(struct report *report, const char *tool, const char *operator_name)
{
	*report = (struct report){
		.tool = tool,
		.operator_name = operator_name,
		.stretch_rows = 1,
		.ended_us = WM_TIME_NONE,
		.batch_watermark_us = WM_TIME_NONE,
	};
}

/* Counting */

bool
report_reject(struct report *report, const char *reason)
{
	size_t at = 0;

	while (report->reasons[at].reason != NULL && strcmp(report->reasons[at].reason, reason) != 0)
		at++;
	assert(at < REPORT_REASONS_MAX);
	report->reasons[at].reason = reason;
	report->rows_rejected++;
	return report->reasons[at].count++ == 0;
}

void
report_late(struct report *report)
{
	uint64_t row = report->rows_in - 1;

	report->rows_late++;
	/* The stream is longer than the stretches reach: make them twice as long. */
	while (row / report->stretch_rows >= REPORT_STRETCHES) {
		for (size_t i = 0; i < REPORT_STRETCHES / 2; i++)
			report->stretch_late[i] = report->stretch_late[2 * i] + report->stretch_late[2 * i + 1];
		memset(report->stretch_late + REPORT_STRETCHES / 2, 0, sizeof(report->stretch_late) / 2);
		report->stretch_rows *= 2;
	}
	report->stretch_late[row / report->stretch_rows]++;
}

void
report_unconfirmed(struct report *report, bool has_confirmed, const struct report_place *place)
{
	report->rows_unconfirmed++;
	if (has_confirmed && report->rows_unconfirmed_later++ == 0)
		report->unconfirmed_first = *place;
}

bool
report_is_closed(const struct report *report)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < REPORT_CLASSES; i++)
		sum += report_class_count(report, i);
	return sum == report->rows_in;
}

bool
report_late_share_exceeds(const struct report *report, uint64_t part, uint64_t whole)
{
	uint64_t late = report->rows_late + report->rows_partly_late;

	return (wm_int128)late * (wm_int128)whole > (wm_int128)report->rows_in * (wm_int128)part;
}

void
report_clock(struct report *report, int64_t steady_us, int64_t waited_us)
{
	report->steady_us = steady_us;
	report->waited_us = waited_us;
	if (report->has_clock)
		return;
	report->has_clock = true;
	report->started_steady_us = report->batch_steady_before_us = steady_us;
	report->batch_waited_before_us = waited_us;
}

/* JSON */

static void
add_count(struct wm_buf *out, const char *name, uint64_t count)
{
	wm_json_put_name(out, name);
	wm_buf_addf(out, "%" PRIu64, count);
}

static void
add_text(struct wm_buf *out, const char *name, const char *text)
{
	wm_json_put_name(out, name);
	wm_json_put_string(out, wm_span_of(text));
}

static void
add_time(struct wm_buf *out, const char *name, int64_t time_us, bool is_set)
{
	char text[WM_INSTANT_TEXT_MAX];

	wm_json_put_name(out, name);
	if (is_set)
		wm_json_put_string(out, wm_span(text, wm_instant_print(time_us, WM_UNIT_ISO, wm_zone_utc(), text)));
	else
		wm_buf_add_text(out, "null");
}

static void
add_seconds(struct wm_buf *out, const char *name, int64_t duration_us)
{
	char text[WM_INSTANT_TEXT_MAX];

	wm_json_put_name(out, name);
	wm_buf_add(out, text, wm_instant_print(duration_us, WM_UNIT_S, wm_zone_utc(), text));
}

/* Rows a second; null where no time has passed. */
static void
add_rate(struct wm_buf *out, const char *name, uint64_t rows, int64_t time_us)
{
	wm_json_put_name(out, name);
	if (time_us > 0)
		wm_buf_addf(out, "%.1f", (double)rows * 1e6 / (double)time_us);
	else
		wm_buf_add_text(out, "null");
}

/* Cut toward the past. */
static int64_t
mean_us(const struct report_times *times)
{
	wm_int128 count = (wm_int128)times->count;
	wm_int128 mean = times->sum_us / count;

	return (int64_t)(mean - (times->sum_us % count < 0));
}

static void
add_event_time(struct wm_buf *out, const struct report_times *times, int64_t watermark_us)
{
	bool has_times = times->count != 0;

	wm_json_put_name(out, "eventTime");
	wm_buf_add_byte(out, '{');
	add_time(out, "min", times->min_us, has_times);
	add_time(out, "max", times->max_us, has_times);
	add_time(out, "avg", has_times ? mean_us(times) : 0, has_times);
	add_time(out, "watermark", watermark_us, watermark_us != WM_TIME_NONE);
	wm_buf_add_byte(out, '}');
}

/* What is told of a batch, and of the whole run. */
struct stage {
	int64_t timestamp_us;
	int64_t elapsed_us; /* from its begin to its end */
	int64_t waited_us;  /* of that, for input */
	uint64_t rows_in;
	uint64_t rows_late;
	uint64_t rows_out;
	uint64_t windows_missed;
	const struct report_times *times;
	int64_t watermark_us;
	struct report_state state;
};

static void
add_state(struct wm_buf *out, const char *operator_name, const struct stage *stage)
{
	/* Of operators with windows every late row missed one at least; the others count none and drop rows. */
	uint64_t dropped = stage->windows_missed > stage->rows_late ? stage->windows_missed : stage->rows_late;

	wm_json_put_name(out, "stateOperators");
	wm_buf_add_byte(out, '[');
	if (operator_name != NULL) {
		wm_buf_add_byte(out, '{');
		add_text(out, "operatorName", operator_name);
		add_count(out, "numRowsTotal", stage->state.groups);
		add_count(out, "numRowsUpdated", stage->state.updated);
		add_count(out, "numRowsRemoved", stage->state.removed);
		add_count(out, "numRowsDroppedByWatermark", dropped);
		add_count(out, "memoryUsedBytes", stage->state.bytes);
		wm_buf_add_byte(out, '}');
	}
	wm_buf_add_byte(out, ']');
}

/* The members that have Spark's names. */
static void
add_stage(struct wm_buf *out, const struct report *report, const struct stage *stage)
{
	int64_t worked_us = stage->elapsed_us - stage->waited_us;

	add_time(out, "timestamp", stage->timestamp_us, stage->timestamp_us != WM_TIME_NONE);
	add_count(out, "numInputRows", stage->rows_in);
	add_rate(out, "inputRowsPerSecond", stage->rows_in, stage->elapsed_us);
	add_rate(out, "processedRowsPerSecond", stage->rows_in, worked_us);
	wm_json_put_name(out, "batchDuration");
	if (report->has_clock)
		wm_buf_addf(out, "%" PRId64, worked_us / 1000);
	else
		wm_buf_add_text(out, "null");
	add_event_time(out, stage->times, stage->watermark_us);
	add_state(out, report->operator_name, stage);
	wm_json_put_name(out, "sink");
	wm_buf_add_byte(out, '{');
	add_count(out, "numOutputRows", stage->rows_out);
	wm_buf_add_byte(out, '}');
	wm_json_put_name(out, "lateShare");
	wm_double_print(stage->rows_in == 0 ? 0 : wm_ratio(stage->rows_late, stage->rows_in), out);
}

static void
begin_object(struct wm_buf *out, const char *type)
{
	wm_buf_add_byte(out, '{');
	add_text(out, "type", type);
}

static void
end_object(struct wm_buf *out)
{
	wm_buf_add_text(out, "}\n");
}

void
report_progress(struct report *report, const struct report_state *state, int64_t now_us, struct wm_buf *out)
{
	struct stage stage = {
		.timestamp_us = now_us,
		.elapsed_us = report->steady_us - report->batch_steady_before_us,
		.waited_us = report->waited_us - report->batch_waited_before_us,
		.rows_in = report->rows_in - report->batch_rows_in_before,
		.rows_late = report->rows_late - report->batch_rows_late_before,
		.rows_out = report->rows_out - report->batch_rows_out_before,
		.windows_missed = report->windows_missed - report->batch_windows_missed_before,
		.times = &report->batch_times,
		.watermark_us = report->batch_watermark_us,
		.state = *state,
	};

	stage.state.updated -= report->batch_state_before.updated;
	stage.state.removed -= report->batch_state_before.removed;
	report->state_told = *state;
	begin_object(out, "progress");
	add_count(out, "batchId", report->batch_id);
	add_stage(out, report, &stage);
	end_object(out);
}

void
report_times_merge(struct report_times *all, const struct report_times *more)
{
	if (more->count == 0)
		return;
	if (all->count == 0 || more->min_us < all->min_us)
		all->min_us = more->min_us;
	if (all->count == 0 || more->max_us > all->max_us)
		all->max_us = more->max_us;
	all->count += more->count;
	all->sum_us += more->sum_us;
}

void
report_next_batch(struct report *report, int64_t watermark_us)
{
	report_times_merge(&report->times, &report->batch_times);
	report->batch_id++;
	report->batch_rows_in_before = report->rows_in;
	report->batch_rows_late_before = report->rows_late;
	report->batch_rows_out_before = report->rows_out;
	report->batch_windows_missed_before = report->windows_missed;
	report->batch_steady_before_us = report->steady_us;
	report->batch_waited_before_us = report->waited_us;
	report->batch_state_before = report->state_told;
	report->batch_watermark_us = watermark_us;
	report->batch_times = (struct report_times){ 0 };
}

void
report_put_ledger(const struct report *report, struct wm_buf *out)
{
	add_count(out, "rows_in", report->rows_in);
	for (size_t i = 0; i < REPORT_CLASSES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "rows_%s", report_classes[i].name);
		add_count(out, name, report_class_count(report, i));
	}
	wm_json_put_name(out, "rejected");
	wm_buf_add_byte(out, '{');
	for (size_t i = 0; report->reasons[i].reason != NULL; i++)
		add_count(out, report->reasons[i].reason, report->reasons[i].count);
	wm_buf_add_byte(out, '}');
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		add_count(out, counts[i].name,
			*(const uint64_t *)(const void *)((const char *)report + counts[i].offset));
}

static void
add_place(struct wm_buf *out, const char *name, const struct report_place *place)
{
	wm_json_put_name(out, name);
	if (place->input == NULL) {
		wm_buf_add_text(out, "null");
		return;
	}
	wm_buf_add_byte(out, '{');
	add_text(out, "input", place->input);
	add_count(out, "line", place->line);
	add_time(out, "time", place->time_us, true);
	wm_buf_add_byte(out, '}');
}

void
report_final(const struct report *report, const struct report_state *state, int64_t watermark_us, uint64_t open_count,
	int status, struct wm_buf *out)
{
	struct stage stage = {
		.timestamp_us = report->ended_us,
		.elapsed_us = report->steady_us - report->started_steady_us,
		.waited_us = report->waited_us,
		.rows_in = report->rows_in,
		.rows_late = report->rows_late,
		.rows_out = report->rows_out,
		.windows_missed = report->windows_missed,
		.times = &report->times,
		.watermark_us = watermark_us,
		.state = *state,
	};

	begin_object(out, "report");
	add_text(out, "tool", report->tool);
	report_put_ledger(report, out);
	if (report->run != NULL) {
		wm_json_put_name(out, "run");
		wm_buf_add_byte(out, '{');
		report_put_ledger(report->run, out);
		wm_buf_add_byte(out, '}');
	}
	add_count(out, "windows_open", open_count);
	add_place(out, "unconfirmed_first", &report->unconfirmed_first);
	add_seconds(out, "disorder_max", report->disorder_max_us);
	add_seconds(out, "disorder_used_max", report->disorder_used_max_us);
	add_stage(out, report, &stage);
	add_count(out, "status", (uint64_t)status);
	end_object(out);
}

/* Totals over several runs */

#define COUNTS (sizeof(counts) / sizeof(counts[0]))

static uint64_t *
count_at(struct report *report, size_t offset)
{
	return (uint64_t *)(void *)((char *)report + offset);
}

/* The place of the counts one by one: rows_in, the classes, the others. */
static size_t
offset_of_count(size_t number)
{
	return number == 0                 ? AT(rows_in)
		: number <= REPORT_CLASSES ? report_classes[number - 1].offset
					   : counts[number - 1 - REPORT_CLASSES].offset;
}

#define ALL_COUNTS (1 + REPORT_CLASSES + COUNTS)

static void
put_int128(struct wm_buf *out, wm_int128 value)
{
	wm_put_u64(out, (uint64_t)value);
	wm_put_i64(out, (int64_t)(value >> 64));
}

/*
 * varint counts, u64 each · varint reasons, each: text · u64 · u64 batches · i64 greatest disorder · i64 of used rows ·
 * u64 event times · i64 lowest · i64 highest · 16 bytes sum.
 */
void
report_encode(const struct report *report, struct wm_buf *out)
{
	struct report_times times = report->times;
	size_t reasons_count = 0;

	report_times_merge(&times, &report->batch_times);
	wm_put_varint(out, ALL_COUNTS);
	for (size_t i = 0; i < ALL_COUNTS; i++)
		wm_put_u64(out, *(const uint64_t *)(const void *)((const char *)report + offset_of_count(i)));
	while (report->reasons[reasons_count].reason != NULL)
		reasons_count++;
	wm_put_varint(out, reasons_count);
	for (size_t i = 0; i < reasons_count; i++) {
		wm_put_span(out, wm_span_of(report->reasons[i].reason));
		wm_put_u64(out, report->reasons[i].count);
	}
	wm_put_u64(out, report->batch_id);
	wm_put_i64(out, report->disorder_max_us);
	wm_put_i64(out, report->disorder_used_max_us);
	wm_put_u64(out, times.count);
	wm_put_i64(out, times.min_us);
	wm_put_i64(out, times.max_us);
	put_int128(out, times.sum_us);
}

/* Reasons are few and static in the program; one of a file is copied once. */
static const char *
reason_of(struct wm_span text)
{
	static const char *const known[] = { "ragged", "malformed-csv", "malformed-tsv", "malformed-json",
		"malformed-line", "too-long", "bad-line-end", "no-time", "bad-time", "bad-number", "bad-gap",
		"bad-ingest", "bad-watermark", "implausible-time", "new-column" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (wm_span_is(text, known[i]))
			return known[i];
	return NULL;
}

bool
report_decode(struct report *report, struct wm_get *in)
{
	if (wm_get_varint(in) != ALL_COUNTS)
		return false;
	for (size_t i = 0; i < ALL_COUNTS; i++)
		*count_at(report, offset_of_count(i)) = wm_get_u64(in);
	uint64_t reasons_count = wm_get_varint(in);
	if (in->failed || reasons_count > REPORT_REASONS_MAX)
		return false;
	for (uint64_t i = 0; i < reasons_count; i++) {
		report->reasons[i].reason = reason_of(wm_get_span(in));
		report->reasons[i].count = wm_get_u64(in);
		if (report->reasons[i].reason == NULL)
			return false;
	}
	report->batch_id = wm_get_u64(in);
	report->disorder_max_us = wm_get_i64(in);
	report->disorder_used_max_us = wm_get_i64(in);
	report->times.count = wm_get_u64(in);
	report->times.min_us = wm_get_i64(in);
	report->times.max_us = wm_get_i64(in);
	report->times.sum_us = wm_get_u64(in);
	report->times.sum_us += (wm_int128)wm_get_i64(in) * ((wm_int128)1 << 64);
	return !in->failed && report_is_closed(report);
}

void
report_add_before(struct report *report, const struct report *before)
{
	for (size_t i = 0; i < ALL_COUNTS; i++)
		*count_at(report, offset_of_count(i)) +=
			*(const uint64_t *)(const void *)((const char *)before + offset_of_count(i));
	for (size_t i = 0; before->reasons[i].reason != NULL; i++) {
		size_t at = 0;

		while (report->reasons[at].reason != NULL &&
			strcmp(report->reasons[at].reason, before->reasons[i].reason) != 0)
			at++;
		assert(at < REPORT_REASONS_MAX);
		report->reasons[at].reason = before->reasons[i].reason;
		report->reasons[at].count += before->reasons[i].count;
	}
	if (before->disorder_max_us > report->disorder_max_us)
		report->disorder_max_us = before->disorder_max_us;
	if (before->disorder_used_max_us > report->disorder_used_max_us)
		report->disorder_used_max_us = before->disorder_used_max_us;
	report_times_merge(&report->times, &before->times);
}

/* Summary */

/* Two digits that tell it apart from nothing and from all. */
static void
add_share(struct wm_buf *out, uint64_t part, uint64_t whole)
{
	double percent = 100 * wm_ratio(part, whole);
	double edge = percent < 50 ? percent : 100 - percent;
	int digits = edge >= 9.95 ? 0 : edge >= 0.995 ? 1 : edge >= 0.0995 ? 2 : 3;

	if (part == 0 || part == whole)
		digits = 0;
	if (part != 0 && percent < 0.001)
		wm_buf_add_text(out, "less than 0.001%");
	else if (part != whole && percent > 99.999)
		wm_buf_add_text(out, "more than 99.999%");
	else
		wm_buf_addf(out, "%.*f%%", digits, percent);
}

/* "1 of 20 rows was", "3 of 20 rows were". */
static void
add_rows_were(struct wm_buf *out, uint64_t part, uint64_t whole)
{
	wm_buf_addf(out, "%" PRIu64 " of %" PRIu64 " row%s %s", part, whole, whole == 1 ? "" : "s",
		part == 1 ? "was" : "were");
}

static void
add_instant(struct wm_buf *out, int64_t time_us)
{
	char text[WM_INSTANT_TEXT_MAX];

	wm_buf_add(out, text, wm_instant_print(time_us, WM_UNIT_ISO, wm_zone_utc(), text));
}

static void
begin_line(struct wm_buf *out)
{
	if (out->len != 0)
		wm_buf_add_byte(out, '\n');
}

/* Late rows of the first and the second half of the stream. */
static void
late_halves(const struct report *report, uint64_t *first, uint64_t *second)
{
	uint64_t last = (report->rows_in - 1) / report->stretch_rows;

	*first = *second = 0;
	for (size_t i = 0; i < REPORT_STRETCHES; i++)
		*(i <= last / 2 ? first : second) += report->stretch_late[i];
}

/* Whether one row, far ahead of all before it, made most rows behind it late. */
static bool
is_jump(const struct report *report, int64_t delay_us)
{
	uint64_t rows_behind = report->rows_in - report->jump_rows_before;
	uint64_t late_behind = report->rows_late - report->jump_late_before;

	return report->jump_input != NULL && report->jump_us > delay_us && late_behind * 2 > rows_behind &&
		late_behind * 2 > report->rows_late;
}

static void
add_jump(struct wm_buf *out, const struct report *report, const struct report_context *context)
{
	begin_line(out);
	wm_buf_addf(out, "%s:%" PRIu64 ": this row, of ", report->jump_input, report->jump_line);
	add_instant(out, report->jump_time_us);
	wm_buf_add_text(out, ", moved the watermark on by ");
	wm_duration_print(wm_duration_round_up(report->jump_us), out);
	wm_buf_addf(out, ": %" PRIu64 " of the %" PRIu64 " rows behind it were late: is its clock right?",
		report->rows_late - report->jump_late_before, report->rows_in - report->jump_rows_before - 1);
	if (context->max_jump_text == NULL)
		wm_buf_add_text(out, " --max-jump D keeps the watermark from such rows");
}

/* The least delay that would have dropped nothing, as a person would type it. */
static int64_t
enough_delay_us(const struct report *report, const struct report_context *context)
{
	/* Spark drops what is at the watermark, which is whole milliseconds. */
	return wm_duration_round_up(wm_time_add(report->disorder_max_us, context->is_spark ? 1000 : 0));
}

/* What the late rows say about the delay. */
static void
add_meaning(struct wm_buf *out, const struct report *report, const struct report_context *context)
{
	uint64_t first, second;
	const char *of = context->delay_text == NULL ? "" : " of ";
	const char *delay = context->is_in_band ? " that the stream was stamped with"
		: context->delay_text == NULL   ? ""
						: context->delay_text;
	/* Partly late rows are of no stretch: where there are no others, it is of their number alone that something is said. */
	uint64_t late = report->rows_late != 0 ? report->rows_late : report->rows_partly_late;

	if (context->is_in_order)
		return;
	if (!context->is_in_band && is_jump(report, context->delay_us)) {
		add_jump(out, report, context);
		return;
	}
	late_halves(report, &first, &second);
	begin_line(out);
	if (late * 2 > report->rows_in && context->is_in_band)
		wm_buf_addf(out, "most rows were late: are they still in the order in which they were stamped?");
	else if (late * 2 > report->rows_in)
		wm_buf_addf(out, "most rows were late: the delay%s%s is far too short, or the input is not in order",
			of, delay);
	else if (second > 2 * first + 10)
		wm_buf_addf(out, "late rows grow in number: the source runs later than the delay%s%s", of, delay);
	else if (late * 20 <= report->rows_in)
		wm_buf_add_text(out, "a small, steady share is normal");
	else
		wm_buf_addf(out, "the delay%s%s is short for this source", of, delay);
	int64_t enough_us = enough_delay_us(report, context);
	/*
	 * The rows that were ahead of the late ones may have been taken out. And what the delay given has dropped was late by more than
	 * the data: the clock, sources that had been idle, or a run before.
	 */
	if (context->is_in_band || (context->delay_text != NULL && enough_us <= context->delay_us))
		return;
	wm_buf_add_text(out, "; a delay of ");
	wm_duration_print(enough_us, out);
	wm_buf_add_text(out, " would have dropped nothing");
}

static void
add_fail_late(struct wm_buf *out, const struct report_context *context)
{
	if (context->fail_late_text != NULL)
		wm_buf_addf(out, ", more than --fail-late %s allows", context->fail_late_text);
}

/* What became of partly late rows. */
static void
add_missed(struct wm_buf *out, const struct report *report)
{
	bool is_one = report->rows_partly_late == 1;

	wm_buf_addf(out, ": %s missed %" PRIu64 " window%s and count%s in the others", is_one ? "it" : "they",
		report->windows_missed_partly, report->windows_missed_partly == 1 ? "" : "s", is_one ? "s" : "");
}

static void
add_late(struct wm_buf *out, const struct report *report, const struct report_context *context)
{
	begin_line(out);
	if (report->rows_late == 0) {
		add_rows_were(out, report->rows_partly_late, report->rows_in);
		wm_buf_add_text(out, " partly late (");
		add_share(out, report->rows_partly_late, report->rows_in);
		add_fail_late(out, context);
		wm_buf_add_byte(out, ')');
		add_missed(out, report);
		return;
	}
	add_rows_were(out, report->rows_late, report->rows_in);
	if (context->late_fate != NULL)
		wm_buf_addf(out, " behind the watermark, and %s (", context->late_fate);
	else
		wm_buf_add_text(out, " late and dropped (");
	add_share(out, report->rows_late, report->rows_in);
	add_fail_late(out, context);
	if (context->late_fate != NULL && context->late_path == NULL)
		wm_buf_add_byte(out, ')');
	else if (context->late_path != NULL && context->late_right_path != NULL)
		wm_buf_addf(out, "): in %s and %s", context->late_path, context->late_right_path);
	else if (context->late_path != NULL)
		wm_buf_addf(out, "): %s %s", context->has_sides ? "those of the left in" : "in", context->late_path);
	else if (context->late_right_path != NULL)
		wm_buf_addf(out, "): those of the right in %s", context->late_right_path);
	else if (context->has_sides)
		wm_buf_add_text(out, "): --late-left FILE and --late-right FILE keep such rows");
	else
		wm_buf_add_text(out, "): --late FILE keeps such rows");
	if (report->rows_partly_late != 0) {
		wm_buf_addf(out, "; %" PRIu64 " more %s partly late", report->rows_partly_late,
			report->rows_partly_late == 1 ? "was" : "were");
		add_missed(out, report);
	}
}

static void
add_none_late(struct wm_buf *out, const struct report *report, const struct report_context *context)
{
	int64_t enough_us = enough_delay_us(report, context);

	begin_line(out);
	wm_buf_addf(out, "%" PRIu64 " row%s, none late", report->rows_in, report->rows_in == 1 ? "" : "s");
	if (report->rows_duplicate != 0)
		wm_buf_addf(out, ", %" PRIu64 " duplicate%s left out", report->rows_duplicate,
			report->rows_duplicate == 1 ? "" : "s");
	if (context->delay_text == NULL || report->rows_in == report->rows_rejected)
		return;
	wm_buf_add_text(out, ": a delay of ");
	wm_duration_print(enough_us, out);
	wm_buf_add_text(out, " would have dropped nothing");
	if (enough_us <= context->delay_us / 2)
		wm_buf_addf(out, ", so %s may be longer than needed", context->delay_text);
}

static bool
is_never_confirmed(const struct report *report, const struct report_context *context)
{
	return context->max_jump_text != NULL && !context->has_confirmed && report->rows_unconfirmed != 0;
}

static void
begin_note(struct wm_buf *out, bool *is_begun)
{
	if (*is_begun)
		wm_buf_add_text(out, "; ");
	else
		begin_line(out);
	*is_begun = true;
}

/* What else there is to say; is_begun: a line is, of something else. */
static void
add_notes(struct wm_buf *out, const struct report *report, const struct report_context *context, bool is_begun)
{
	const struct report_place *first = &report->unconfirmed_first;
	bool is_one = report->rows_unconfirmed_later == 1;

	if (is_never_confirmed(report, context)) {
		begin_note(out, &is_begun);
		wm_buf_addf(out, "there was no watermark: no 15 of 20 rows were within %s of each other (--max-jump)",
			context->max_jump_text);
	}
	if (report->rows_unconfirmed_later != 0) {
		begin_note(out, &is_begun);
		wm_buf_addf(out,
			"%" PRIu64 " row%s ahead by more than --max-jump %s did not move the watermark: %s%s:%" PRIu64
			", of ",
			report->rows_unconfirmed_later, is_one ? "" : "s", context->max_jump_text,
			is_one ? "" : "the first is ", first->input, first->line);
		add_instant(out, first->time_us);
	}
	if (report->rows_repeated_hour != 0) {
		begin_note(out, &is_begun);
		wm_buf_addf(out, "%" PRIu64 " row%s of an hour that a clock change repeats, taken as the %s one",
			report->rows_repeated_hour, report->rows_repeated_hour == 1 ? "" : "s",
			context->repeated_hour_text == NULL ? "earlier" : context->repeated_hour_text);
	}
	if (report->headers_repeated != 0) {
		begin_note(out, &is_begun);
		wm_buf_addf(out, "%" PRIu64 " repeated header%s skipped", report->headers_repeated,
			report->headers_repeated == 1 ? "" : "s");
	}
}

static void
add_rejected_rows(struct wm_buf *out, const struct report *report, const struct report_context *context)
{
	if (report->rows_rejected == 0)
		return;
	begin_line(out);
	add_rows_were(out, report->rows_rejected, report->rows_in);
	wm_buf_add_text(out, " rejected (");
	for (size_t i = 0; report->reasons[i].reason != NULL; i++)
		wm_buf_addf(out, "%s%" PRIu64 " %s", i == 0 ? "" : ", ", report->reasons[i].count,
			report->reasons[i].reason);
	wm_buf_add_byte(out, ')');
	if (report->lines_rejected > report->rows_rejected)
		wm_buf_addf(out, " in %" PRIu64 " lines", report->lines_rejected);
	if (context->rejects_path != NULL)
		wm_buf_addf(out, ": in %s", context->rejects_path);
	else
		wm_buf_add_text(out, ": --rejects FILE keeps such rows");
	if (report->rows_rejected == report->rows_in)
		wm_buf_add_text(out, "; is this the right column and format?");
}

static void
add_rejected(struct wm_buf *out, const struct report *report, const struct report_context *context)
{
	add_rejected_rows(out, report, context);
	add_notes(out, report, context, report->rows_rejected != 0);
}

void
report_summary(const struct report *report, const struct report_context *context, struct wm_buf *out)
{
	bool has_late = report->rows_late + report->rows_partly_late != 0;
	bool is_lost = report->rows_rejected != 0 && context->rejects_path == NULL;
	bool is_rejected_first = is_lost || is_never_confirmed(report, context);

	if (context->is_quiet) {
		if (is_lost)
			add_rejected_rows(out, report, context);
		if (context->fail_late_text != NULL)
			add_late(out, report, context);
		return;
	}
	if (!has_late && report->rows_rejected == 0 && report->rows_unconfirmed_later == 0 &&
		!is_never_confirmed(report, context) && !context->is_verbose)
		return;
	if (is_rejected_first)
		add_rejected(out, report, context);
	if (has_late) {
		add_late(out, report, context);
		add_meaning(out, report, context);
	} else if (context->is_verbose) {
		add_none_late(out, report, context);
	}
	if (!is_rejected_first)
		add_rejected(out, report, context);
}
