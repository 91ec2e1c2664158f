/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/time/civil.h"

#include <assert.h>

/* From 0001-01-01, where leap years count evenly, to 1970-01-01. */
#define DAYS_TO_1970 719162

#define DAYS_IN_400_YEARS 146097
#define CYCLES_ADDED INT64_C(1000000000)
#define DAYS_IN_100_YEARS 36524 /* the first three centuries of the 400 years; the last has a day more */
#define DAYS_IN_4_YEARS 1461

/* Days of a common year before each month. */
static const int16_t days_before[13] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365 };

static bool
is_leap(int64_t year)
{
	return (year & 3) == 0 && (year % 25 != 0 || (year & 15) == 0);
}

/* Days before a month (0 to 12) of a year that may be leap. */
static int
month_start(int month, bool leap)
{
	return days_before[month] + (leap && month > 1);
}

int64_t
wm_civil_days(int64_t year, int month, int day)
{
	assert(month >= 1 && month <= 12);
	/* Moved by whole cycles to where no year is negative, as unsigned divisions are cheap. */
	uint64_t past = (uint64_t)(year - 1 + CYCLES_ADDED * 400);
	uint64_t centuries = past / 100;
	uint64_t leap_days = past / 4 - centuries + centuries / 4;

	return (int64_t)(past * 365 + leap_days) - CYCLES_ADDED * DAYS_IN_400_YEARS +
		month_start(month - 1, is_leap(year)) + day - 1 - DAYS_TO_1970;
}

struct wm_civil
wm_civil_from_days(int64_t days)
{
	int64_t since_1 = days + DAYS_TO_1970;
	int64_t cycles = wm_floor_div(since_1, DAYS_IN_400_YEARS);
	int rest = (int)(since_1 - cycles * DAYS_IN_400_YEARS);

	/* The last day of 400 and of 4 years is a 366th day, not the first of a fifth part. */
	int centuries = rest / DAYS_IN_100_YEARS - rest / (DAYS_IN_400_YEARS - 1);
	rest -= centuries * DAYS_IN_100_YEARS;
	int fours = rest / DAYS_IN_4_YEARS;
	rest -= fours * DAYS_IN_4_YEARS;
	int years = rest / 365 - rest / (DAYS_IN_4_YEARS - 1);
	rest -= years * 365;

	int64_t year = cycles * 400 + centuries * 100 + fours * 4 + years + 1;
	bool leap = is_leap(year);
	int month = rest / 32; /* this month or the one before */
	if (rest >= month_start(month + 1, leap))
		month++;
	return (struct wm_civil){ year, month + 1, rest - month_start(month, leap) + 1 };
}

int
wm_civil_month_days(int64_t year, int month)
{
	assert(month >= 1 && month <= 12);
	bool leap = is_leap(year);

	return month_start(month, leap) - month_start(month - 1, leap);
}
