#include "cmd/report.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "lib/event/watermark.h"
#include "lib/record/writer.h"
#include "lib/time/duration.h"
#include "lib/time/instant.h"

void
report_init(struct report *report, const char *tool, const char *operator_name)
{
	*report = (struct report){
		.tool = tool,
		.operator_name = operator_name,
		.stretch_rows = 1,
		.batch_watermark_us = WM_TIME_NONE,
	};
}

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

/* JSON */

static void
add_time(struct wm_buf *out, const char *name, int64_t time_us, bool is_set)
{
	char text[WM_INSTANT_TEXT_MAX];

	wm_buf_addf(out, "\"%s\":", name);
	if (is_set)
		wm_json_put_string(out, wm_span(text, wm_instant_print(time_us, WM_UNIT_ISO, wm_zone_utc(), text)));
	else
		wm_buf_add_text(out, "null");
}

static void
add_seconds(struct wm_buf *out, const char *name, int64_t duration_us)
{
	char text[WM_INSTANT_TEXT_MAX];

	wm_buf_addf(out, "\"%s\":%.*s", name, (int)wm_instant_print(duration_us, WM_UNIT_S, wm_zone_utc(), text), text);
}

static void
add_event_time(struct wm_buf *out, const struct report_times *times, int64_t watermark_us)
{
	bool has_times = times->count != 0;

	wm_buf_add_text(out, "\"eventTime\":{");
	add_time(out, "min", times->min_us, has_times);
	wm_buf_add_byte(out, ',');
	add_time(out, "max", times->max_us, has_times);
	wm_buf_add_byte(out, ',');
	add_time(out, "avg", has_times ? (int64_t)(times->sum_us / (wm_int128)times->count) : 0, has_times);
	wm_buf_add_byte(out, ',');
	add_time(out, "watermark", watermark_us, watermark_us != WM_TIME_NONE);
	wm_buf_add_byte(out, '}');
}

static void
add_state(struct wm_buf *out, const struct report *report, const struct report_state *state, uint64_t dropped)
{
	if (report->operator_name == NULL)
		return;
	wm_buf_addf(out,
		",\"stateOperators\":[{\"operatorName\":\"%s\",\"numRowsTotal\":%" PRIu64
		",\"numRowsDroppedByWatermark\":%" PRIu64 ",\"memoryUsedBytes\":%" PRIu64 "}]",
		report->operator_name, state->groups, dropped, state->bytes);
}

void
report_progress(const struct report *report, const struct report_state *state, int64_t now_us, struct wm_buf *out)
{
	wm_buf_addf(out, "{\"type\":\"progress\",\"batchId\":%" PRIu64 ",", report->batch_id);
	add_time(out, "timestamp", now_us, true);
	wm_buf_addf(out, ",\"numInputRows\":%" PRIu64 ",", report->rows_in - report->batch_rows_in_before);
	add_event_time(out, &report->batch_times, report->batch_watermark_us);
	add_state(out, report, state, report->windows_missed - report->batch_windows_missed_before);
	wm_buf_addf(
		out, ",\"sink\":{\"numOutputRows\":%" PRIu64 "}}\n", report->rows_out - report->batch_rows_out_before);
}

void
report_next_batch(struct report *report, int64_t watermark_us)
{
	const struct report_times *batch = &report->batch_times;
	struct report_times *all = &report->times;

	if (batch->count != 0) {
		if (all->count == 0 || batch->min_us < all->min_us)
			all->min_us = batch->min_us;
		if (all->count == 0 || batch->max_us > all->max_us)
			all->max_us = batch->max_us;
		all->count += batch->count;
		all->sum_us += batch->sum_us;
	}
	report->batch_id++;
	report->batch_rows_in_before = report->rows_in;
	report->batch_rows_out_before = report->rows_out;
	report->batch_windows_missed_before = report->windows_missed;
	report->batch_watermark_us = watermark_us;
	report->batch_times = (struct report_times){ 0 };
}

void
report_final(const struct report *report, const struct report_state *state, int64_t watermark_us, uint64_t open_count,
	int status, struct wm_buf *out)
{
	wm_buf_addf(out,
		"{\"type\":\"report\",\"tool\":\"%s\",\"rows_in\":%" PRIu64
		",\"rows_punctuation\":0,\"rows_rejected\":%" PRIu64 ",\"rejected\":{",
		report->tool, report->rows_in, report->rows_rejected);
	for (size_t i = 0; report->reasons[i].reason != NULL; i++)
		wm_buf_addf(out, "%s\"%s\":%" PRIu64, i == 0 ? "" : ",", report->reasons[i].reason,
			report->reasons[i].count);
	wm_buf_addf(out,
		"},\"rows_late\":%" PRIu64 ",\"rows_duplicate\":%" PRIu64 ",\"rows_used\":%" PRIu64
		",\"rows_partly_late\":%" PRIu64 ",\"windows_missed\":%" PRIu64 ",\"windows_missed_partly\":%" PRIu64
		",\"rows_out\":%" PRIu64 ",\"windows_open\":%" PRIu64 ",\"lines_blank\":%" PRIu64
		",\"headers_repeated\":%" PRIu64 ",",
		report->rows_late, report->rows_duplicate, report->rows_used, report->rows_partly_late,
		report->windows_missed, report->windows_missed_partly, report->rows_out, open_count,
		report->lines_blank, report->headers_repeated);
	add_seconds(out, "disorder_max", report->disorder_max_us);
	wm_buf_add_byte(out, ',');
	add_seconds(out, "disorder_used_max", report->disorder_used_max_us);
	wm_buf_add_byte(out, ',');
	add_event_time(out, &report->times, watermark_us);
	add_state(out, report, state, report->windows_missed);
	wm_buf_addf(out, ",\"status\":%d}\n", status);
}

/* Summary */

static void
add_share(struct wm_buf *out, uint64_t part, uint64_t whole)
{
	double percent = wm_ratio(part * 100, whole);

	wm_buf_addf(out, percent < 0.1 ? "%.3f%%" : percent < 10 ? "%.1f%%" : "%.0f%%", percent);
}

/* Rounded up to what a person would type. */
static void
add_delay(struct wm_buf *out, int64_t delay_us)
{
	static const int64_t steps_us[] = { 86400000000, 3600000000, 60000000, 1000000, 1000 };
	int64_t step_us = 1;

	for (size_t i = 0; i < sizeof(steps_us) / sizeof(steps_us[0]) && step_us == 1; i++)
		if (delay_us >= 10 * steps_us[i])
			step_us = steps_us[i];
	wm_duration_print((delay_us + step_us - 1) / step_us * step_us, out);
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
add_meaning(const struct report *report, const struct report_context *context, struct wm_buf *out)
{
	uint64_t first, second;
	char time[WM_INSTANT_TEXT_MAX];

	if (is_jump(report, context->delay_us)) {
		wm_buf_addf(out, "\n%s:%" PRIu64 ": this row, of %.*s, moved the watermark on by ", report->jump_input,
			report->jump_line,
			(int)wm_instant_print(report->jump_time_us, WM_UNIT_ISO, wm_zone_utc(), time), time);
		add_delay(out, report->jump_us);
		wm_buf_addf(out, ": %" PRIu64 " of the %" PRIu64 " rows behind it were late: is its clock right?",
			report->rows_late - report->jump_late_before, report->rows_in - report->jump_rows_before - 1);
		return;
	}
	late_halves(report, &first, &second);
	if (report->rows_late * 2 > report->rows_in)
		wm_buf_addf(out,
			"\nmost rows were late: the delay of %s is far too short, or the input is not in order; ",
			context->delay_text);
	else if (second > 2 * first + 10)
		wm_buf_addf(out, "\nlate rows grow in number: the source runs later than the delay of %s; ",
			context->delay_text);
	else
		wm_buf_addf(out, "\na small, steady share is normal; ");
	wm_buf_add_text(out, "a delay of ");
	add_delay(out, report->disorder_max_us);
	wm_buf_add_text(out, " would have dropped nothing");
}

static void
add_rejected(const struct report *report, const struct report_context *context, struct wm_buf *out)
{
	wm_buf_addf(out, "%s%" PRIu64 " of %" PRIu64 " rows were rejected (", out->len == 0 ? "" : "\n",
		report->rows_rejected, report->rows_in);
	for (size_t i = 0; report->reasons[i].reason != NULL; i++)
		wm_buf_addf(out, "%s%" PRIu64 " %s", i == 0 ? "" : ", ", report->reasons[i].count,
			report->reasons[i].reason);
	if (context->rejects_path != NULL)
		wm_buf_addf(out, "): they are in %s", context->rejects_path);
	else
		wm_buf_add_text(out, "): --rejects FILE keeps them");
	if (report->rows_rejected == report->rows_in)
		wm_buf_add_text(out, "; is this the right column and format?");
}

void
report_summary(const struct report *report, const struct report_context *context, struct wm_buf *out)
{
	bool has_late = report->rows_late + report->rows_partly_late != 0;

	if (has_late) {
		wm_buf_addf(out, "%" PRIu64 " of %" PRIu64 " rows were late and dropped (", report->rows_late,
			report->rows_in);
		add_share(out, report->rows_late, report->rows_in);
		wm_buf_add_byte(out, ')');
		if (report->rows_partly_late != 0)
			wm_buf_addf(out,
				", %" PRIu64 " more missed %" PRIu64 " of their windows and count in the others",
				report->rows_partly_late, report->windows_missed_partly);
		if (report->rows_late != 0 && context->late_path != NULL)
			wm_buf_addf(out, ": they are in %s", context->late_path);
		else if (report->rows_late != 0)
			wm_buf_add_text(out, ": --late FILE keeps them");
		add_meaning(report, context, out);
	} else if (context->is_verbose && report->rows_in != 0) {
		wm_buf_addf(out, "%" PRIu64 " rows, none late", report->rows_in);
		if (context->delay_text != NULL) {
			wm_buf_add_text(out, ": a delay of ");
			add_delay(out, report->disorder_max_us);
			wm_buf_addf(out, " would do as well as %s", context->delay_text);
		}
	}
	if (report->rows_rejected != 0)
		add_rejected(report, context, out);
}
