/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/lag.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "lib/event/watermark.h"
#include "lib/time/civil.h"
#include "tests/unit/tap.h"

#define S INT64_C(1000000)

static struct wm_value
text_value(const char *text)
{
	return (struct wm_value){ wm_span_of(text), WM_KIND_TEXT };
}

static struct wm_lag_group
first_group(struct wm_lag *lag)
{
	struct wm_lag_group group = { 0 };

	if (!wm_lag_next(lag, &group))
		tap_ok(false, "there is a group");
	return group;
}

static void
test_worked_example(void)
{
	const struct wm_lag_options options = { .has_arrival = true, .has_advice = true };
	struct wm_lag *lag = wm_lag_new(&options);
	/* event time and arrival: rows of 100 s that arrive at 95, 100, 101, 103 and 160 s */
	const int64_t arrivals[] = { 95, 100, 101, 103, 160 };

	for (size_t i = 0; i < 5; i++) {
		struct wm_lag_record record = { 100 * S, 100 * S, arrivals[i] * S, NULL, WM_TIME_NONE };

		wm_lag_add(lag, &record);
	}
	struct wm_lag_group group = first_group(lag);
	const struct wm_lag_series *series = &group.series[WM_LAG_LAG];
	tap_int((int64_t)series->count, 5, "lag: count");
	tap_int(series->min_us, -5 * S, "lag: least, negative");
	tap_int(series->max_us, 60 * S, "lag: greatest");
	tap_int((int64_t)series->negative, 1, "lag: one is negative");
	tap_int(wm_lag_percentile(series, 20 * WM_PERCENT_ONE), -5 * S, "lag: p20");
	tap_int(wm_lag_percentile(series, 50 * WM_PERCENT_ONE), 1 * S, "lag: p50");
	tap_int(wm_lag_percentile(series, WM_PERCENT_ALL), 60 * S, "lag: p100");
	tap_ok(wm_lag_mean_s(series) == 11.8, "lag: mean");
	wm_lag_free(lag);
}

static void
test_nearest_rank(void)
{
	const struct wm_lag_options options = { .has_arrival = true };
	struct wm_lag *lag = wm_lag_new(&options);
	const int64_t percents[] = { 1, 7, 14, 28, 50, 55, 56, 90, 95, 99, 100 };
	bool is_good = true;

	for (int64_t i = 0; i < 100; i++) {
		struct wm_lag_record record = { 0, 0, i * 73 % 100 * S, NULL, WM_TIME_NONE };

		wm_lag_add(lag, &record);
	}
	struct wm_lag_group group = first_group(lag);
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		is_good = is_good &&
			wm_lag_percentile(&group.series[WM_LAG_LAG], (uint64_t)percents[i] * WM_PERCENT_ONE) ==
				(percents[i] - 1) * S;
	tap_ok(is_good, "of 0 to 99, p is the value p - 1");
	wm_lag_free(lag);
}

static void
test_empty(void)
{
	const struct wm_lag_options plain = { .has_arrival = true, .has_advice = true }, keyed = { .keys_count = 1 };
	struct wm_lag *lag = wm_lag_new(&plain), *by_key = wm_lag_new(&keyed);
	struct wm_lag_group group;

	tap_ok(wm_lag_next(lag, &group), "of no record there is one group");
	tap_int((int64_t)group.count, 0, "which has none");
	tap_int((int64_t)wm_lag_above(&group.series[WM_LAG_BEHIND], 0), 0, "and none is behind");
	tap_ok(!wm_lag_next(lag, &group), "and no more");
	tap_ok(wm_lag_next(lag, &group), "a walk begins anew");
	tap_ok(!wm_lag_next(by_key, &group), "by key there is no group");
	wm_lag_free(lag);
	wm_lag_free(by_key);
}

/* Streams of a few hundred records, some with times below a millisecond */

#define RECORDS 300

struct stream {
	int64_t times_us[RECORDS];
	int64_t highest_us[RECORDS];
	int64_t arrivals_us[RECORDS];
	size_t keys[RECORDS];
	size_t count;
};

static const char *const key_texts[] = { "", "a", "ab", "b" };

static void
make_stream(struct stream *stream, uint64_t *seed)
{
	int64_t step_us = tap_random(seed) % 2 == 0 ? 1 : 1000, highest_us = INT64_MIN;
	int64_t now_us = (int64_t)(tap_random(seed) % 100000000) - 50000000;

	stream->count = 1 + tap_random(seed) % RECORDS;
	for (size_t i = 0; i < stream->count; i++) {
		int64_t back_us = (int64_t)(tap_random(seed) % 3 == 0 ? tap_random(seed) % 20000 : 0) * step_us;

		now_us += (int64_t)(tap_random(seed) % 3000) * step_us;
		stream->times_us[i] = now_us - back_us;
		if (stream->times_us[i] > highest_us)
			highest_us = stream->times_us[i];
		stream->highest_us[i] = highest_us;
		stream->arrivals_us[i] = now_us + (int64_t)(tap_random(seed) % 2000) * step_us - 500 * step_us;
		stream->keys[i] = tap_random(seed) % 4;
	}
}

static void
add_record(struct wm_lag *lag, const struct stream *stream, size_t i)
{
	const struct wm_value key = text_value(key_texts[stream->keys[i]]);
	const struct wm_lag_record record = { stream->times_us[i], stream->highest_us[i], stream->arrivals_us[i], &key,
		WM_TIME_NONE };

	wm_lag_add(lag, &record);
}

/* Of the records of a key, how many a run with this delay finds behind, and how many its windows drop. */
static void
run_with_delay(const struct stream *stream, size_t key, int64_t delay_us, int64_t size_us, int64_t slide_us,
	uint64_t *behind, uint64_t *dropped)
{
	struct wm_watermark watermark;

	*behind = *dropped = 0;
	wm_watermark_init(&watermark, delay_us);
	for (size_t i = 0; i < stream->count; i++) {
		int64_t start_us = wm_floor_div(stream->times_us[i], slide_us) * slide_us;

		wm_watermark_observe(&watermark, stream->times_us[i]);
		(void)wm_watermark_advance(&watermark);
		if (stream->keys[i] != key)
			continue;
		*behind += wm_is_behind(stream->times_us[i], watermark.watermark_us);
		*dropped += wm_is_complete(start_us + size_us, watermark.watermark_us);
	}
}

static void
test_delays(void)
{
	uint64_t seed = 1;
	bool is_good = true;

	for (int round = 0; round < 400 && is_good; round++) {
		int64_t slide_us = (int64_t)(1 + tap_random(&seed) % 5000000);
		int64_t size_us = slide_us * (int64_t)(1 + tap_random(&seed) % 3) + (int64_t)(tap_random(&seed) % 1000);
		struct wm_windows windows;
		struct stream stream;
		struct wm_lag_group group;

		wm_windows_init(&windows, size_us, slide_us, 0);
		make_stream(&stream, &seed);
		const struct wm_lag_options options = { .keys_count = 1, .windows = &windows, .has_advice = true };
		struct wm_lag *lag = wm_lag_new(&options);
		for (size_t i = 0; i < stream.count; i++)
			add_record(lag, &stream, i);
		while (wm_lag_next(lag, &group) && is_good) {
			size_t key = 0;

			while (!wm_span_is(group.keys[0].text, key_texts[key]))
				key++;
			for (int i = 0; i < 20 && is_good; i++) {
				/* delays of whole milliseconds, others, none, and those at which a record changes sides */
				int64_t delay_us = (int64_t)(tap_random(&seed) % 20000000);
				uint64_t behind, dropped;

				if (i == 0)
					delay_us = 0;
				else if (i % 4 == 1)
					delay_us = delay_us / 1000 * 1000;
				else if (i % 4 == 2)
					delay_us = wm_lag_at(
						&group.series[WM_LAG_BEHIND], 1 + tap_random(&seed) % group.count);
				else if (i % 4 == 3)
					delay_us = wm_lag_at(&group.series[WM_LAG_DROPPED],
							   1 + tap_random(&seed) % group.count) -
						1;
				delay_us = delay_us < 0 ? 0 : delay_us;
				run_with_delay(&stream, key, delay_us, size_us, slide_us, &behind, &dropped);
				is_good = wm_lag_above(&group.series[WM_LAG_BEHIND], delay_us) == behind &&
					wm_lag_above(&group.series[WM_LAG_DROPPED], delay_us) == dropped;
				if (!is_good)
					printf("# round %d: delay %" PRId64 ": a run has %" PRIu64 " behind, %" PRIu64
					       " dropped; told were %" PRIu64 " and %" PRIu64 "\n",
						round, delay_us, behind, dropped,
						wm_lag_above(&group.series[WM_LAG_BEHIND], delay_us),
						wm_lag_above(&group.series[WM_LAG_DROPPED], delay_us));
			}
		}
		wm_lag_free(lag);
	}
	tap_ok(is_good, "rows behind and dropped are those of a run with the delay");
}

static int
compare_i64(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* By key and window, against a plain loop over the records; through bytes and back on the way. */
static bool
check_groups(const struct stream *stream, struct wm_lag *lag, int64_t every_us)
{
	struct wm_lag_group group;
	size_t seen = 0, key_before = 0;
	int64_t start_before = INT64_MIN;

	while (wm_lag_next(lag, &group)) {
		int64_t values[RECORDS], sum_us = 0;
		size_t count = 0, key = 0, negative = 0;
		const struct wm_lag_series *series = &group.series[WM_LAG_LAG];

		while (!wm_span_is(group.keys[0].text, key_texts[key]))
			key++;
		for (size_t i = 0; i < stream->count; i++) {
			if (stream->keys[i] != key ||
				wm_floor_div(stream->times_us[i], every_us) * every_us != group.window_start_us)
				continue;
			values[count] = stream->arrivals_us[i] - stream->times_us[i];
			sum_us += values[count];
			negative += values[count++] < 0;
		}
		qsort(values, count, sizeof(values[0]), compare_i64);
		if (count == 0 || series->count != count || group.count != count ||
			group.window_end_us != group.window_start_us + every_us || series->sum_us != sum_us ||
			series->negative != negative || series->min_us != values[0] ||
			series->max_us != values[count - 1])
			return false;
		for (size_t i = 0; i < count; i++)
			if (wm_lag_at(series, i + 1) != values[i])
				return false;
		if (group.window_start_us < start_before ||
			(group.window_start_us == start_before && key <= key_before))
			return false;
		start_before = group.window_start_us;
		key_before = key;
		seen += count;
	}
	return seen == stream->count;
}

static void
test_groups(void)
{
	uint64_t seed = 2;
	int round;
	bool is_good = true;

	for (round = 0; round < 200 && is_good; round++) {
		int64_t every_us = (int64_t)(1 + tap_random(&seed) % 100) * S;
		struct wm_windows every;
		struct stream stream;
		struct wm_buf bytes;
		struct wm_get in;

		wm_windows_init(&every, every_us, every_us, 0);
		const struct wm_lag_options options = {
			.keys_count = 1, .every = &every, .has_arrival = true, .has_advice = true
		};
		make_stream(&stream, &seed);
		struct wm_lag *lag = wm_lag_new(&options), *again = wm_lag_new(&options);
		size_t half = tap_random(&seed) % stream.count;
		wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
		for (size_t i = 0; i < half; i++)
			add_record(lag, &stream, i);
		wm_lag_encode(lag, &bytes);
		wm_get_init(&in, wm_buf_span(&bytes));
		is_good = wm_lag_decode(again, &in) && wm_get_left(&in) == 0;
		for (size_t i = half; i < stream.count; i++)
			add_record(again, &stream, i);
		is_good = is_good && check_groups(&stream, again, every_us);
		wm_lag_free(lag);
		wm_lag_free(again);
		wm_buf_release(&bytes);
	}
	tap_ok(is_good, "groups, their order and their values are those of a loop over the records");
	if (!is_good)
		printf("# round %d\n", round);
}

/* What was handed out of windows that are closed: records by the start of their window, each start once. */
struct closed {
	int64_t starts_us[RECORDS];
	size_t starts_count;
	uint64_t records;
};

/* Closes windows; false if one is not due, or comes again. */
static bool
close_windows(struct wm_lag *lag, int64_t watermark_us, int64_t every_us, struct closed *closed)
{
	struct wm_lag_group group;

	if (!wm_lag_close(lag, watermark_us))
		return true;
	while (wm_lag_next(lag, &group)) {
		closed->records += group.count;
		if (group.window_start_us == WM_LAG_NO_WINDOW)
			continue;
		if (group.window_end_us > watermark_us || group.window_end_us != group.window_start_us + every_us)
			return false;
		for (size_t i = 0; i < closed->starts_count; i++)
			if (closed->starts_us[i] == group.window_start_us)
				return false;
		closed->starts_us[closed->starts_count++] = group.window_start_us;
	}
	wm_lag_forget(lag);
	return watermark_us == WM_TIME_END || wm_lag_due_us(lag) > watermark_us;
}

static void
test_closing(void)
{
	uint64_t seed = 3, overdue = 0;
	int round;
	bool is_good = true;

	for (round = 0; round < 200 && is_good; round++) {
		int64_t every_us = (int64_t)(1 + tap_random(&seed) % 20) * S, watermark_us = WM_TIME_NONE;
		struct closed closed = { .records = 0 };
		struct wm_watermark watermark;
		struct wm_windows every;
		struct stream stream;
		uint64_t late = 0;

		wm_windows_init(&every, every_us, every_us, 0);
		wm_watermark_init(&watermark, (int64_t)(tap_random(&seed) % 5) * S);
		const struct wm_lag_options options = { .every = &every, .closes = true, .has_arrival = true };
		make_stream(&stream, &seed);
		struct wm_lag *lag = wm_lag_new(&options);
		for (size_t i = 0; i < stream.count && is_good; i++) {
			wm_watermark_observe(&watermark, stream.times_us[i]);
			(void)wm_watermark_advance(&watermark);
			watermark_us = watermark.watermark_us;
			is_good = close_windows(lag, watermark_us, every_us, &closed);
			const struct wm_lag_record record = { stream.times_us[i], stream.highest_us[i],
				stream.arrivals_us[i], NULL, watermark_us };
			wm_lag_add(lag, &record);
			late += (wm_floor_div(stream.times_us[i], every_us) + 1) * every_us <= watermark_us;
			if (tap_random(&seed) % 20 != 0)
				continue;
			struct wm_lag *again = wm_lag_new(&options);
			struct wm_buf bytes;
			struct wm_get in;
			wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
			wm_lag_encode(lag, &bytes);
			wm_get_init(&in, wm_buf_span(&bytes));
			is_good = is_good && wm_lag_decode(again, &in) && wm_get_left(&in) == 0;
			wm_buf_release(&bytes);
			wm_lag_free(lag);
			lag = again;
		}
		is_good = is_good && wm_lag_overdue_count(lag) == late &&
			close_windows(lag, WM_TIME_END, every_us, &closed) && closed.records == stream.count &&
			wm_lag_groups_count(lag) == 0;
		overdue += late;
		wm_lag_free(lag);
	}
	tap_ok(is_good, "windows are closed once, as the watermark passes them, and no record is lost");
	tap_ok(overdue > 100, "records that come later among them");
	if (!is_good)
		printf("# round %d\n", round);
}

static void
test_closed_is_forgotten(void)
{
	struct wm_windows every;
	uint64_t groups = 0;
	size_t bytes = 0, before = 0;

	wm_windows_init(&every, S, S, 0);
	const struct wm_lag_options options = { .keys_count = 1, .every = &every, .closes = true, .has_advice = true };
	struct wm_lag *lag = wm_lag_new(&options);
	for (int64_t i = 0; i < 300000; i++) {
		/* Beyond what is kept exactly from the middle on, if it was not forgotten; and some come too late. */
		int64_t time_us = i * S / 3 - i % 7 * S;
		const struct wm_value key = text_value(key_texts[i % 4]);
		const struct wm_lag_record record = { time_us, i * S / 3, 0, &key, i * S / 3 - 3 * S };

		if (wm_lag_close(lag, record.watermark_us))
			wm_lag_forget(lag);
		wm_lag_add(lag, &record);
		groups = wm_lag_groups_count(lag) > groups ? wm_lag_groups_count(lag) : groups;
		bytes = wm_lag_bytes(lag);
		before = i == 150000 ? bytes : before;
	}
	tap_ok(groups <= 20, "no more groups are held than windows that are open, and keys");
	/* What grows are the values of records without a window. */
	tap_ok(bytes < 2 * before + 100000, "and their memory is given back");
	wm_lag_free(lag);
}

static void
test_key_order(void)
{
	const struct wm_lag_options options = { .keys_count = 2 };
	struct wm_lag *lag = wm_lag_new(&options);
	const struct wm_value null = { wm_span("", 0), WM_KIND_NULL }, number = { wm_span_of("1"), WM_KIND_NUMBER };
	const struct wm_value keys[][2] = {
		{ text_value("b"), text_value("a") },
		{ null, text_value("z") },
		{ text_value(""), text_value("z") },
		{ number, null },
		{ text_value("1"), null },
		{ text_value("ab"), text_value("c") },
		{ text_value("a"), text_value("bc") },
	};
	const char *const want[] = { "z", "z", "", "", "bc", "c", "a" };
	const enum wm_kind want_kinds[] = { WM_KIND_NULL, WM_KIND_TEXT, WM_KIND_TEXT, WM_KIND_NUMBER, WM_KIND_TEXT,
		WM_KIND_TEXT, WM_KIND_TEXT };
	struct wm_lag_group group;
	size_t count = 0;
	bool is_good = true;

	for (size_t i = 0; i < 7; i++) {
		const struct wm_lag_record record = { 0, 0, 0, keys[i], WM_TIME_NONE };

		wm_lag_add(lag, &record);
	}
	for (; wm_lag_next(lag, &group); count++)
		is_good = is_good && group.count == 1 && wm_span_is(group.keys[1].text, want[count]) &&
			group.keys[0].kind == want_kinds[count];
	tap_ok(is_good && count == 7, "keys: null, the empty text, then bytes, then kind; no two run together");
	wm_lag_free(lag);
}

/* Values 1 to n, shuffled: rank r has the value r. */
static struct wm_lag *
lag_of_values(uint64_t count, uint64_t zeros)
{
	const struct wm_lag_options options = { .has_advice = true };
	struct wm_lag *lag = wm_lag_new(&options);

	for (uint64_t i = 0; i < count + zeros; i++) {
		int64_t disorder_us = i < zeros ? 0 : (int64_t)((i - zeros) * 999983 % count + 1) * 1000;
		const struct wm_lag_record record = { 0, disorder_us, 0, NULL, WM_TIME_NONE };

		wm_lag_add(lag, &record);
	}
	return lag;
}

static void
check_sketch(struct wm_lag *lag, const char *name)
{
	struct wm_lag_group group = first_group(lag);
	const struct wm_lag_series *series = &group.series[WM_LAG_DISORDER], *behind = &group.series[WM_LAG_BEHIND];
	uint64_t count = WM_LAG_EXACT_MAX + 1;
	bool is_good = series->count == count + 5 && series->zeros == 5;

	for (uint64_t rank = 6; rank <= count + 5; rank += 997) {
		double value = (double)(rank - 5) * 1000, got = (double)wm_lag_at(series, rank);
		double late = (double)(count + 5 - rank), told = (double)wm_lag_above(behind, (int64_t)value);

		is_good = is_good && fabs(got - value) <= value / 256 && fabs(told - late) <= (double)rank / 128 + 1;
	}
	tap_ok(is_good, "%s: within 1/256 of the value", name);
	tap_ok(wm_lag_is_approximate(series), "%s: it is said", name);
	tap_int(series->max_us, (int64_t)count * 1000, "the greatest is exact");
	tap_int((int64_t)wm_lag_above(behind, (int64_t)count * 1000), 0, "and above it there is none");
	tap_int((int64_t)wm_lag_above(behind, 0), (int64_t)count, "what is 0 is counted exactly");
}

static void
test_sketch(void)
{
	struct wm_lag *exact = lag_of_values(WM_LAG_EXACT_MAX, 5), *sketched = lag_of_values(WM_LAG_EXACT_MAX + 1, 5);
	const struct wm_lag_options options = { .has_advice = true };
	struct wm_lag *again = wm_lag_new(&options);
	struct wm_lag_group group = first_group(exact);
	const struct wm_lag_series *series = &group.series[WM_LAG_DISORDER];
	struct wm_buf bytes;
	struct wm_get in;
	bool is_good = !wm_lag_is_approximate(series);

	for (uint64_t rank = 6; rank <= WM_LAG_EXACT_MAX + 5; rank += 101)
		is_good = is_good && wm_lag_at(series, rank) == (int64_t)(rank - 5) * 1000;
	tap_ok(is_good && wm_lag_at(series, 5) == 0, "as many values as are kept are exact; zeros do not count");
	check_sketch(sketched, "one more");
	struct wm_lag_group last;
	while (wm_lag_next(sketched, &last))
		;
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_lag_encode(sketched, &bytes);
	tap_ok(bytes.len < 200000, "a sketch is small");
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(wm_lag_decode(again, &in) && wm_get_left(&in) == 0, "a sketch is read back");
	check_sketch(again, "read back");
	wm_buf_release(&bytes);
	wm_lag_free(exact);
	wm_lag_free(sketched);
	wm_lag_free(again);
}

static void
test_damaged_state(void)
{
	struct wm_windows every;
	const struct wm_lag_options options = { .keys_count = 1, .every = &every, .has_arrival = true };
	uint64_t seed = 3;
	struct stream stream;
	struct wm_buf bytes;
	bool is_refused = true;

	wm_windows_init(&every, 10 * S, 10 * S, 0);
	make_stream(&stream, &seed);
	struct wm_lag *lag = wm_lag_new(&options);
	for (size_t i = 0; i < stream.count; i++)
		add_record(lag, &stream, i);
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_lag_encode(lag, &bytes);
	for (size_t len = 0; len < bytes.len; len += 1 + len / 64) {
		struct wm_lag *again = wm_lag_new(&options);
		struct wm_get in;

		wm_get_init(&in, wm_span(bytes.data, len));
		is_refused = is_refused && !wm_lag_decode(again, &in);
		wm_lag_free(again);
	}
	tap_ok(is_refused, "a state that was cut is refused");
	for (int i = 0; i < 2000; i++) {
		struct wm_lag *again = wm_lag_new(&options);
		size_t at = tap_random(&seed) % bytes.len;
		char before = bytes.data[at];
		struct wm_lag_group group;
		struct wm_get in;

		bytes.data[at] = (char)tap_random(&seed);
		wm_get_init(&in, wm_buf_span(&bytes));
		if (wm_lag_decode(again, &in))
			while (wm_lag_next(again, &group))
				if (group.series[WM_LAG_LAG].count != 0)
					(void)wm_lag_percentile(&group.series[WM_LAG_LAG], WM_PERCENT_ALL);
		bytes.data[at] = before;
		wm_lag_free(again);
	}
	tap_ok(true, "a state with a wrong byte does no harm");
	wm_buf_release(&bytes);
	wm_lag_free(lag);
}

int
main(void)
{
	test_worked_example();
	test_nearest_rank();
	test_empty();
	test_delays();
	test_groups();
	test_closing();
	test_closed_is_forgotten();
	test_key_order();
	test_sketch();
	test_damaged_state();
	return tap_done();
}
