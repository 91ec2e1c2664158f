/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - a finished table of windows, or the late results that belong to it,
 * for measuring wm-merge. The same numbers give the same bytes.
 *
 *   table main ROWS           the table, in order of window and page
 *   table late ROWS COUNT     COUNT late rows, in that order too, spread over all
 *                             of the table; one in ten has a page of its own
 *
 * Windows of a minute with 1000 pages each: window_start, window_end, page,
 * count, latency_ms_sum, latency_ms_max.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGES 1000
#define BEGIN_S INT64_C(1704067200) /* 2024-01-01 */

static uint64_t state;

/* splitmix64: below n, evenly enough for this. */
static uint32_t
below(uint32_t n)
{
	uint64_t x = (state += UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return (uint32_t)((x >> 32) * n >> 32);
}

static void
print_start(char *text, size_t size, int64_t minute)
{
	time_t at = BEGIN_S + minute * 60;
	struct tm parts;

	strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &parts));
}

static void
print_row(int64_t row, const char *more)
{
	static char start[32], end[32];
	static int64_t minute = -1;

	if (row / PAGES != minute) {
		minute = row / PAGES;
		print_start(start, sizeof(start), minute);
		print_start(end, sizeof(end), minute + 1);
	}
	uint32_t count = 1 + below(500);
	printf("%s,%s,/item/%03d%s,%" PRIu32 ",%" PRIu32 ".%02" PRIu32 ",%" PRIu32 ".%02" PRIu32 "\n", start, end,
		(int)(row % PAGES), more, count, count * below(90), below(100), below(3000), below(100));
}

int
main(int argc, char **argv)
{
	int is_late = argc == 4 && strcmp(argv[1], "late") == 0;
	int64_t rows = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
	int64_t count = is_late ? strtoll(argv[3], NULL, 10) : rows;

	if (rows <= 0 || count <= 0 || count > rows || (!is_late && (argc != 3 || strcmp(argv[1], "main") != 0))) {
		fputs("usage: table main ROWS | table late ROWS COUNT\n", stderr);
		return 2;
	}
	state = is_late ? 2 : 1;
	puts("window_start,window_end,page,count,latency_ms_sum,latency_ms_max");
	for (int64_t i = 0; i < count; i++) {
		/* One of each stretch of the table: in order, and no row twice. */
		int64_t stretch = rows / count;
		int64_t row = is_late ? i * stretch + below((uint32_t)stretch) : i;

		print_row(row, is_late && i % 10 == 0 ? "/new" : "");
	}
	if (fflush(stdout) || ferror(stdout)) {
		perror("table: standard output");
		return 3;
	}
	return 0;
}
