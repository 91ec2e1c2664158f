/* SPDX-License-Identifier: Apache-2.0 */
/*
 * civil - the proleptic Gregorian calendar, without zones.
 *
 * Days are counted from 1970-01-01, which is 0 and a Thursday.
 */
#ifndef WM_TIME_CIVIL_H
#define WM_TIME_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#define WM_US_PER_SECOND INT64_C(1000000)
#define WM_US_PER_DAY INT64_C(86400000000)

struct wm_civil {
	int64_t year;
	int month; /* 1 to 12 */
	int day;   /* 1 to 31 */
};

/* The month is 1 to 12; the day may lie outside of it and counts on. */
int64_t wm_civil_days(int64_t year, int month, int day);
struct wm_civil wm_civil_from_days(int64_t days);
int wm_civil_month_days(int64_t year, int month);

/* Floored division and its remainder in [0, divisor); divisor > 0. Right before 1970. */
static inline int64_t
wm_floor_div(int64_t value, int64_t divisor)
{
	int64_t quotient = value / divisor;

	return quotient - (value % divisor < 0);
}

static inline int64_t
wm_floor_mod(int64_t value, int64_t divisor)
{
	int64_t rest = value % divisor;

	return rest < 0 ? rest + divisor : rest;
}

#endif
