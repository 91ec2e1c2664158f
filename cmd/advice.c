/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advice.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/time/civil.h"
#include "lib/time/duration.h"
#include "lib/time/instant.h"

/* A note is made where the advised delay is more than this part of the time that the rows span. */
#define SPAN_PART 10

/* And where the target is fewer rows than this. */
#define TARGET_ROWS_MIN 10

/* Cut to what matters: three digits below a minute, then two units. */
void
advice_print_rounded(int64_t us, struct wm_buf *out)
{
	int64_t size = us < 0 ? -us : us, step = 1;
	char text[WM_INSTANT_TEXT_MAX];

	if (size >= WM_US_PER_DAY)
		step = INT64_C(3600000000);
	else if (size >= INT64_C(3600000000))
		step = 60000000;
	else if (size >= 60000000)
		step = WM_US_PER_SECOND;
	else
		while (size / step >= 1000)
			step *= 10;
	size = (size + step / 2) / step * step;
	if (us < 0)
		wm_buf_add_byte(out, '-');
	if (size >= 60000000 || size < 1000) {
		if (size == 0 || size >= 1000)
			wm_duration_print(size, out);
		else
			wm_buf_addf(out, "%" PRId64 "us", size);
		return;
	}
	bool is_ms = size < WM_US_PER_SECOND;
	size_t len = wm_instant_print(is_ms ? size * 1000 : size, WM_UNIT_S, NULL, text);
	wm_buf_addf(out, "%.*s%s", (int)len, text, is_ms ? "ms" : "s");
}

/* Up to what a person would type: at most a tenth more. */
int64_t
advice_rounded_up(int64_t us)
{
	static const int64_t steps[] = { 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000,
		2000000, 5000000, 10000000, 30000000, 60000000, 120000000, 300000000, 600000000, 1800000000, 3600000000,
		86400000000 };
	int64_t step = steps[0];

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i] <= us / 10)
			step = steps[i];
	return wm_time_add(us, step - 1) / step * step;
}

/* A delay as it would be typed: whole days, hours, or what is needed. */
void
advice_print_delay(int64_t us, struct wm_buf *out)
{
	int64_t hour_us = INT64_C(3600000000);

	if (us > WM_US_PER_DAY && us % WM_US_PER_DAY != 0 && us % hour_us == 0)
		wm_buf_addf(out, "%" PRId64 "h", us / hour_us);
	else
		wm_duration_print(us, out);
}

/* In csv and ndjson, and in the table. */
static const struct {
	const char *name;
	const char *words;
} kinds[ADVICE_KINDS] = {
	{ "no-delay", "no delay" },
	{ "5%", "5% behind" },
	{ "1%", "1% behind" },
	{ "0.1%", "0.1% behind" },
	{ "none-behind", "none behind" },
	{ "2x-p95-lag", "2 x p95 lag, a rule of thumb" },
	{ "3x-p95-lag", "3 x p95 lag, a rule of thumb" },
	{ "given", "-w" },
	{ "target", "the target" },
};

static const struct advice_share one_in_20 = { 1, 20 }, one_in_100 = { 1, 100 }, one_in_1000 = { 1, 1000 };

static int64_t
whole_ms_up(int64_t us)
{
	return wm_time_add(us, 999) / 1000 * 1000;
}

/* The least delay, in whole milliseconds as the watermark has them, with which no more than this share of the rows is behind. */
int64_t
advice_delay_us(const struct wm_lag_series *behind, struct advice_share share)
{
	uint64_t allowed = (uint64_t)((wm_int128)behind->count * share.part / share.whole);

	if (allowed >= behind->count)
		return 0;
	int64_t delay_us = wm_lag_at(behind, behind->count - allowed);
	/* A sketch's answer may be too small by 1/256 of the value: no advice may be. */
	if (wm_lag_is_approximate(behind) && delay_us != 0)
		delay_us += delay_us / 255 + 1;
	return whole_ms_up(delay_us < behind->max_us ? delay_us : behind->max_us);
}

static int64_t
delay_of_lag(const struct wm_lag_series *lag, int64_t times)
{
	int64_t p95_us = wm_lag_percentile(lag, 95 * WM_PERCENT_ONE);

	return p95_us > 0 ? whole_ms_up(p95_us * times) : 0;
}

static int
compare_advice(const void *a, const void *b)
{
	const struct advice *left = a, *right = b;
	int order = (left->delay_us > right->delay_us) - (left->delay_us < right->delay_us);

	return order != 0 ? order : (int)left->kind - (int)right->kind;
}

/* The curve of a group that has rows, by delay; is_rounded: of delays as a person would type them. Returns how many there are. */
size_t
advice_make(const struct advice_plan *plan, const struct wm_lag_group *group, bool is_rounded,
	struct advice advice[ADVICE_KINDS])
{
	const struct wm_lag_series *behind = &group->series[WM_LAG_BEHIND];
	size_t count = 0;

	advice[count++] = (struct advice){ .kind = ADVICE_NO_DELAY };
	advice[count++] = (struct advice){ ADVICE_5_PERCENT, advice_delay_us(behind, one_in_20), 0, 0 };
	advice[count++] = (struct advice){ ADVICE_1_PERCENT, advice_delay_us(behind, one_in_100), 0, 0 };
	advice[count++] = (struct advice){ ADVICE_01_PERCENT, advice_delay_us(behind, one_in_1000), 0, 0 };
	advice[count++] = (struct advice){ ADVICE_NONE_BEHIND, whole_ms_up(behind->max_us), 0, 0 };
	advice[count++] = (struct advice){ ADVICE_TARGET, advice_delay_us(behind, plan->target), 0, 0 };
	if (plan->has_arrival) {
		const struct wm_lag_series *lag = &group->series[WM_LAG_LAG];

		advice[count++] = (struct advice){ ADVICE_2_P95, delay_of_lag(lag, 2), 0, 0 };
		advice[count++] = (struct advice){ ADVICE_3_P95, delay_of_lag(lag, 3), 0, 0 };
	}
	if (plan->given_us >= 0)
		advice[count++] = (struct advice){ ADVICE_GIVEN, plan->given_us, 0, 0 };
	for (size_t i = 0; i < count; i++) {
		struct advice *each = &advice[i];

		if (is_rounded && each->kind != ADVICE_GIVEN)
			each->delay_us = advice_rounded_up(each->delay_us);
		each->behind = wm_lag_above(behind, each->delay_us);
		if (plan->has_windows)
			each->dropped = wm_lag_above(&group->series[WM_LAG_DROPPED], each->delay_us);
	}
	qsort(advice, count, sizeof(advice[0]), compare_advice);
	return count;
}

unsigned
advice_notes(const struct advice_plan *plan, const struct wm_lag_group *group)
{
	const struct wm_lag_series *disorder = &group->series[WM_LAG_DISORDER];
	unsigned notes = 0;

	if (group->count == 0)
		return 0;
	for (size_t kind = 0; kind < WM_LAG_KINDS; kind++)
		if (wm_lag_is_approximate(&group->series[kind]))
			notes |= NOTE_APPROXIMATE;
	if (plan->has_arrival && group->series[WM_LAG_LAG].negative != 0)
		notes |= NOTE_FUTURE;
	if (!plan->is_wanted)
		return notes;
	if (disorder->max_us == 0)
		notes |= NOTE_IN_ORDER;
	int64_t delay_us = advice_delay_us(&group->series[WM_LAG_BEHIND], plan->target);
	if (delay_us > (group->last_time_us - group->first_time_us) / SPAN_PART)
		notes |= NOTE_SHORT;
	if ((wm_int128)group->count * plan->target.part < (wm_int128)TARGET_ROWS_MIN * plan->target.whole)
		notes |= NOTE_FEW;
	return notes;
}

/* One note in words; group has rows. */
void
advice_print_note(
	enum advice_note note, const struct advice_plan *plan, const struct wm_lag_group *group, struct wm_buf *out)
{
	const struct wm_lag_series *lag = &group->series[WM_LAG_LAG];
	int64_t delay_us, span_us = group->last_time_us - group->first_time_us;

	switch (note) {
	case NOTE_SHORT:
		delay_us = advice_delay_us(&group->series[WM_LAG_BEHIND], plan->target);
		wm_buf_add_text(out, "the rows span ");
		advice_print_rounded(span_us, out);
		wm_buf_add_text(out,
			", too short for this advice: rows that come later than that cannot be in them, "
			"and the delay is ");
		if (span_us > 0)
			wm_buf_addf(out, "%.0f%% of it", (double)delay_us * 100 / (double)span_us);
		else
			wm_buf_add_text(out, "more than it");
		wm_buf_add_text(out, ": start wide, then tighten");
		break;
	case NOTE_FEW:
		wm_buf_addf(out, "%" PRIu64 " %s too few to tell a share of %s", group->count,
			group->count == 1 ? "row is" : "rows are", plan->target_text);
		if (plan->target.part != 0)
			wm_buf_addf(out, ": it takes %" PRId64,
				(int64_t)(((wm_int128)TARGET_ROWS_MIN * plan->target.whole + plan->target.part - 1) /
					plan->target.part));
		break;
	case NOTE_FUTURE:
		wm_buf_addf(out, "%" PRIu64 " row%s arrived before %s event time, by up to ", lag->negative,
			lag->negative == 1 ? "" : "s", lag->negative == 1 ? "its" : "their");
		advice_print_rounded(-lag->min_us, out);
		wm_buf_add_text(out,
			": a clock runs ahead, and makes the rows behind it look later than they are (--max-ahead)");
		break;
	case NOTE_IN_ORDER:
		wm_buf_add_text(out, "the rows are in order: -w 0s would lose none of them");
		break;
	case NOTE_APPROXIMATE:
		wm_buf_addf(out,
			"approximate: of more than %d values percentiles and counts are within 0.4%% of a value",
			WM_LAG_EXACT_MAX);
		break;
	}
}

const char *
advice_name(enum advice_kind kind)
{
	return kinds[kind].name;
}

const char *
advice_words(enum advice_kind kind)
{
	return kinds[kind].words;
}

const char *
advice_note_name(size_t note)
{
	static const char *const names[ADVICE_NOTES] = { "short-file", "few-rows", "future-rows", "nothing-late",
		"approximate" };

	return names[note];
}
