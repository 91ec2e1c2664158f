/* SPDX-License-Identifier: Apache-2.0 */
/* Durations: every spelling, and what each mistake is answered with. */
#include "lib/time/duration.h"

#include "lib/base/limits.h"
#include "tests/unit/tap.h"

#define S INT64_C(1000000)
#define H (3600 * S)
#define D (24 * H)

static const struct {
	const char *text;
	int64_t us;
	enum wm_calendar_unit calendar;
	int64_t count;
} good[] = {
	{ "250us", 250, 0, 0 },
	{ "250\u00b5s", 250, 0, 0 },
	{ "250\u03bcs", 250, 0, 0 },
	{ "250ms", 250000, 0, 0 },
	{ "90s", 90 * S, 0, 0 },
	{ "10m", 600 * S, 0, 0 },
	{ "1h30m", 5400 * S, 0, 0 },
	{ "30m1h", 5400 * S, 0, 0 },
	{ "7d", 7 * D, WM_CALENDAR_DAY, 7 },
	{ "2w", 14 * D, WM_CALENDAR_WEEK, 2 },
	{ "1mo", 0, WM_CALENDAR_MONTH, 1 },
	{ "3mo", 0, WM_CALENDAR_MONTH, 3 },
	{ "1y", 0, WM_CALENDAR_YEAR, 1 },
	{ "24h", 24 * H, 0, 0 },
	{ "1d12h", 36 * H, 0, 0 },
	{ "1w1d", 8 * D, 0, 0 },
	{ "1.5d", 36 * H, 0, 0 },
	{ "1.0d", D, WM_CALENDAR_DAY, 1 },
	{ "0s", 0, 0, 0 },
	{ "0d", 0, WM_CALENDAR_DAY, 0 },
	{ "-5m", -300 * S, 0, 0 },
	{ "-1h30m", -5400 * S, 0, 0 },
	{ "-2d", -2 * D, WM_CALENDAR_DAY, -2 },
	{ "+5m", 300 * S, 0, 0 },
	{ "1.5h", 5400 * S, 0, 0 },
	{ "0.000001s", 1, 0, 0 },
	{ "0.0000010000000000000000000000000000s", 1, 0, 0 },
	{ "0.25ms", 250, 0, 0 },
	{ "0.0001220703125w", 73828125, 0, 0 }, /* 604800 s / 2^13 */
	{ "007s", 7 * S, 0, 0 },
	{ "10 minutes", 600 * S, 0, 0 },
	{ "10 MINUTES", 600 * S, 0, 0 },
	{ "1 hour 30 minutes", 5400 * S, 0, 0 },
	{ "1 hour  30 min", 5400 * S, 0, 0 },
	{ "100 microseconds", 100, 0, 0 },
	{ "1 microsecond", 1, 0, 0 },
	{ "1 usec", 1, 0, 0 },
	{ "2 milliseconds", 2000, 0, 0 },
	{ "1 millisecond", 1000, 0, 0 },
	{ "1 second", S, 0, 0 },
	{ "2 Seconds", 2 * S, 0, 0 },
	{ "3 sec", 3 * S, 0, 0 },
	{ "1 minute", 60 * S, 0, 0 },
	{ "2 hr", 2 * H, 0, 0 },
	{ "2 hours", 2 * H, 0, 0 },
	{ "1 day", D, WM_CALENDAR_DAY, 1 },
	{ "2 weeks", 14 * D, WM_CALENDAR_WEEK, 2 },
	{ "1 month", 0, WM_CALENDAR_MONTH, 1 },
	{ "2 years", 0, WM_CALENDAR_YEAR, 2 },
	{ "PT10M", 600 * S, 0, 0 },
	{ "PT1M", 60 * S, 0, 0 },
	{ "P1M", 0, WM_CALENDAR_MONTH, 1 },
	{ "P1Y", 0, WM_CALENDAR_YEAR, 1 },
	{ "P1D", D, WM_CALENDAR_DAY, 1 },
	{ "P2W", 14 * D, WM_CALENDAR_WEEK, 2 },
	{ "P1DT12H", 36 * H, 0, 0 },
	{ "PT1H30M", 5400 * S, 0, 0 },
	{ "PT0.5S", 500000, 0, 0 },
	{ "PT0,5S", 500000, 0, 0 },
	{ "-PT10M", -600 * S, 0, 0 },
	{ "3652500d", WM_DURATION_US_MAX, WM_CALENDAR_DAY, 3652500 },
	{ "10000y", 0, WM_CALENDAR_YEAR, 10000 },
};

static const struct {
	const char *text;
	const char *message;
} bad[] = {
	{ "10", "'10': ten what? write 10s, 10m or 10h" },
	{ "25", "'25': 25 what? write 25s, 25m or 25h" },
	{ "1 hour 30", "'1 hour 30': 30 what? write 30s, 30m or 30h" },
	{ "1M", "'1M': minutes or months? write 1m or 1mo" },
	{ "10x", "'10x': unknown unit 'x': units are us, ms, s, m, h, d, w, mo, y" },
	{ "10S", "'10S': unknown unit 'S': units are us, ms, s, m, h, d, w, mo, y" },
	{ "10ns", "'10ns': unknown unit 'ns': units are us, ms, s, m, h, d, w, mo, y" },
	{ "", "'' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "abc", "'abc' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ " 5m", "' 5m' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "5m ", "'5m ' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "--5m", "'--5m' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "1h-5m", "'1h-5m' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "1:30", "'1:30' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ ".5h", "'.5h' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "1.h", "'1.h' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "1,5h", "'1,5h' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "-", "'-' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "P", "'P' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "PT", "'PT' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "P1DT", "'P1DT' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "P1H", "'P1H' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "PT1M1H", "'PT1M1H' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "PT10", "'PT10' is no duration: write it as 90s, 10m, 1h30m or '10 minutes'" },
	{ "99999999999999999999s",
		"'99999999999999999999s' is too long: a duration has at most 10000 years (3652500d)" },
	{ "3652501d", "'3652501d' is too long: a duration has at most 10000 years (3652500d)" },
	{ "3652500d1us", "'3652500d1us' is too long: a duration has at most 10000 years (3652500d)" },
	{ "10001y", "'10001y' is too long: a duration has at most 10000 years (3652500d)" },
	{ "120001mo", "'120001mo' is too long: a duration has at most 10000 years (3652500d)" },
	{ "0.0000001s", "'0.0000001s' is finer than a microsecond" },
	{ "0.1us", "'0.1us' is finer than a microsecond" },
	{ "0.0000000000000000000000001w", "'0.0000000000000000000000001w' is finer than a microsecond" },
	{ "1h1h", "'1h1h' has the unit h twice" },
	{ "1.5mo", "'1.5mo': months and years have no fixed length and no fractions: write whole ones or days" },
	{ "1y6mo", "'1y6mo': months and years have no fixed length and stand alone: write 18mo, not 1y6mo" },
	{ "P1MT1H", "'P1MT1H': months and years have no fixed length and stand alone: write 18mo, not 1y6mo" },
};

static void
test_print(void)
{
	static const struct {
		int64_t us;
		const char *text;
	} cases[] = { { 0, "0s" }, { 5400 * S, "1h30m" }, { 250000, "250ms" }, { 2 * D, "2d" }, { -300 * S, "-5m" },
		{ 90500001, "1m30s500ms1us" }, { 14 * D, "14d" },
		{ INT64_MIN, "-106751991d4h54s775ms808us" } }; /* 2^63 us, by bc(1) */
	struct wm_buf out;
	struct wm_err err;
	uint64_t random = 3;
	bool ok = true;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wm_buf_reset(&out);
		wm_duration_print(cases[i].us, &out);
		tap_span(wm_buf_span(&out), cases[i].text, cases[i].text);
	}
	for (int i = 0; ok && i < 50000; i++) {
		int64_t us = (int64_t)(tap_random(&random) >> (6 + tap_random(&random) % 50)) % WM_DURATION_US_MAX;
		int64_t back_us = 0;

		us = tap_random(&random) % 2 ? us : -us;
		wm_buf_reset(&out);
		wm_duration_print(us, &out);
		ok = wm_duration_parse_fixed(wm_buf_span(&out), &back_us, &err) && back_us == us;
		if (!ok)
			printf("#   %" PRId64 " as %.*s\n", us, (int)out.len, out.data);
	}
	tap_ok(ok, "printed durations read back the same");
	wm_buf_release(&out);
}

static void
test_round_up(void)
{
	tap_int(wm_duration_round_up(0), 0, "nothing stays nothing");
	tap_int(wm_duration_round_up(9999), 9999, "below 10 ms every microsecond stays");
	tap_int(wm_duration_round_up(10001), 11000, "10.001 ms are 11 ms");
	tap_int(wm_duration_round_up(INT64_C(575377336000)), INT64_C(576000000000), "6 d 15:49:37 are 160 hours");
	tap_int(wm_duration_round_up(INT64_C(864000000001)), INT64_C(950400000000),
		"a little over ten days are eleven");
}

int
main(void)
{
	struct wm_duration duration;
	struct wm_err err;
	int64_t us = 0;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memset(&duration, 0x55, sizeof(duration));
		bool ok = wm_duration_parse(wm_span_of(good[i].text), &duration, &err);

		if (!tap_ok(ok && duration.us == good[i].us && duration.calendar == good[i].calendar &&
				    duration.calendar_count == good[i].count,
			    "%s", good[i].text))
			printf("#   got %" PRId64 " us, calendar %d x %" PRId64 "\n", duration.us,
				(int)duration.calendar, duration.calendar_count);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bool ok = wm_duration_parse(wm_span_of(bad[i].text), &duration, &err);

		tap_text(ok ? "accepted" : err.message, bad[i].message, bad[i].text);
	}
	tap_ok(wm_duration_parse_fixed(wm_span_of("1d"), &us, &err) && us == D, "a day has a fixed length");
	tap_ok(!wm_duration_parse_fixed(wm_span_of("1mo"), &us, &err) && err.code == WM_ERR_USAGE, "a month has not");
	tap_text(err.message, "'1mo': a month has no fixed length: write 31d", "a month: what to write");
	tap_ok(!wm_duration_parse_fixed(wm_span_of("P2Y"), &us, &err), "a year has not");
	tap_text(err.message, "'P2Y': a year has no fixed length: write 730d", "a year: what to write");
	test_print();
	tap_int(wm_time_add(INT64_MAX, 1), INT64_MAX, "addition is held at the end");
	tap_int(wm_time_add(INT64_MIN, -1), INT64_MIN, "addition is held at the beginning");
	tap_int(wm_time_add(-1, 3), 2, "addition");
	tap_int(wm_time_sub(INT64_MIN, 1), INT64_MIN, "subtraction is held at the beginning");
	tap_int(wm_time_sub(INT64_MAX, -1), INT64_MAX, "subtraction is held at the end");
	tap_int(wm_time_sub(0, INT64_MIN), INT64_MAX, "the negation that does not exist");
	test_round_up();
	return tap_done();
}
