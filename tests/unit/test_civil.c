/* SPDX-License-Identifier: Apache-2.0 */
/* The calendar against a walk, day by day, that knows only the lengths of the months. */
#include "lib/time/civil.h"
#include "tests/unit/tap.h"

static bool
is_leap(int64_t year)
{
	if (year % 400 == 0)
		return true;
	return year % 4 == 0 && year % 100 != 0;
}

static int
month_days(int64_t year, int month)
{
	if (month == 2)
		return is_leap(year) ? 29 : 28;
	return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* From 1970-01-01 to the given year, forward or back. */
static void
walk(int64_t until_year)
{
	int64_t year = 1970, days = 0;
	int month = 1, day = 1;
	bool ok = true;

	while (ok && year != until_year) {
		struct wm_civil civil = wm_civil_from_days(days);

		ok = wm_civil_days(year, month, day) == days && civil.year == year && civil.month == month &&
			civil.day == day && wm_civil_month_days(year, month) == month_days(year, month);
		if (!ok)
			break;
		if (until_year > 1970) {
			days++;
			if (++day > month_days(year, month)) {
				day = 1;
				year += ++month > 12;
				month = month > 12 ? 1 : month;
			}
		} else {
			days--;
			if (--day == 0) {
				year -= --month == 0;
				month = month == 0 ? 12 : month;
				day = month_days(year, month);
			}
		}
	}
	if (!tap_ok(ok, "each day from 1970 to %" PRId64 " both ways", until_year))
		printf("#   at %" PRId64 "-%d-%d, day %" PRId64 "\n", year, month, day, days);
}

int
main(void)
{
	uint64_t random = 1;
	bool ok = true;

	walk(10001);
	walk(-805);
	/* Worked out with date(1): date -ud 0001-01-01 +%s, and so on, by 86400. */
	tap_int(wm_civil_days(1, 1, 1), -719162, "0001-01-01");
	tap_int(wm_civil_days(9999, 12, 31), 2932896, "9999-12-31");
	tap_int(wm_civil_days(2000, 2, 29), 11016, "2000-02-29");
	tap_int(wm_civil_days(2024, 1, 60), wm_civil_days(2024, 2, 29), "a day beyond its month counts on");
	for (int i = 0; ok && i < 200000; i++) {
		int64_t days = (int64_t)(tap_random(&random) % 213000000) -
			106500000; /* all that int64_t microseconds reach */
		struct wm_civil civil = wm_civil_from_days(days);

		ok = wm_civil_days(civil.year, civil.month, civil.day) == days && civil.day >= 1 &&
			civil.day <= month_days(civil.year, civil.month);
		if (!ok)
			printf("#   day %" PRId64 "\n", days);
	}
	tap_ok(ok, "far days there and back");
	tap_int(wm_floor_div(-1, 1000), -1, "floored division below zero");
	tap_int(wm_floor_div(-1000, 1000), -1, "floored division, exact");
	tap_int(wm_floor_mod(-1, 1000), 999, "remainder below zero");
	tap_int(wm_floor_mod(-1000, 1000), 0, "remainder, exact");
	return tap_done();
}
