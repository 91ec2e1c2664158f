/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap - the few lines that a unit test needs to speak TAP.
 *
 * Each check prints "ok N - name" or "not ok N - name" with both values; the
 * program ends with tap_done(), whose value is its exit status.
 */
#ifndef WM_TESTS_UNIT_TAP_H
#define WM_TESTS_UNIT_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/span.h"

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3), unused)) static bool
tap_ok(bool ok, const char *format, ...)
{
	va_list args;

	printf("%sok %d - ", ok ? "" : "not ", ++tap_count);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	tap_failed += !ok;
	return ok;
}

__attribute__((unused)) static bool
tap_int(int64_t got, int64_t want, const char *name)
{
	if (!tap_ok(got == want, "%s", name))
		printf("#   got %" PRId64 ", want %" PRId64 "\n", got, want);
	return got == want;
}

__attribute__((unused)) static bool
tap_span(struct wm_span got, const char *want, const char *name)
{
	bool ok = wm_span_is(got, want);

	if (!tap_ok(ok, "%s", name))
		printf("#   got '%.*s', want '%s'\n", (int)got.len, got.data, want);
	return ok;
}

__attribute__((unused)) static bool
tap_text(const char *got, const char *want, const char *name)
{
	return tap_span(wm_span_of(got), want, name);
}

__attribute__((unused)) static int
tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed != 0;
}

/* A generator of random numbers that is the same everywhere; not for secrets. */
__attribute__((unused)) static uint64_t
tap_random(uint64_t *state)
{
	uint64_t x = (*state += UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

#endif
