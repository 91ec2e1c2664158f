/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen - rows of a web service's log for measuring: in order of arrival, with
 * event times that lag behind it. The same seed gives the same bytes.
 *
 *   gen [--rows N] [--format csv|ndjson] [--seed N]
 *
 * A row arrives every millisecond (5 million rows are 83 minutes). 95 % of the
 * rows are within 5 s of order, 4.9 % within 2 min, 0.1 % about an hour late.
 * Of 100 000 users a few make most of the rows.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USERS 100000
#define PAGES 10
#define DAY_MS INT64_C(86400000)

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

static uint32_t
lag_ms(void)
{
	uint32_t kind = below(1000);

	if (kind == 0)
		return 3600000 + below(60000);
	if (kind < 50)
		return 5000 + below(115000);
	return below(5000);
}

/* The cube of an even choice: half of the rows are of an eighth of the users. */
static uint32_t
user(void)
{
	uint64_t r = below(1 << 20);

	return (uint32_t)(((r * r >> 20) * r >> 20) * USERS >> 20);
}

/* Two days are enough: rows before 2024-03-01 are an hour late at most. */
static void
print_time(char *text, int64_t ms)
{
	static const char *const days[] = { "2024-02-29", "2024-03-01", "2024-03-02" };
	int64_t day = ms >= 0 ? ms / DAY_MS : -1;
	int64_t rest = ms - day * DAY_MS;

	if (day > 1) {
		fputs("gen: too many rows for its calendar\n", stderr);
		exit(1);
	}
	sprintf(text, "%sT%02d:%02d:%02d.%03dZ", days[day + 1], (int)(rest / 3600000), (int)(rest / 60000 % 60),
		(int)(rest / 1000 % 60), (int)(rest % 1000));
}

static uint64_t
number_of(const char *option, const char *text)
{
	char *end;
	uint64_t number = text ? strtoull(text, &end, 10) : 0;

	if (!text || end == text || *end) {
		fprintf(stderr, "gen: %s: a number is needed\n", option);
		exit(2);
	}
	return number;
}

int
main(int argc, char **argv)
{
	static const char *const statuses[] = { "200", "200", "200", "200", "200", "200", "304", "404", "302", "500" };
	static const char *const pages[PAGES] = { "/index", "/search", "/cart", "/login", "/item/1", "/item/2",
		"/about", "/checkout", "/api/v1", "/help" };
	const char *row = "%s,%s,u%05" PRIu32 ",%s,%s,%" PRIu32 ".%02" PRIu32 ",%" PRIu32 "\n";
	uint64_t rows = 5000000;
	uint64_t i;
	int a;

	state = 1;
	for (a = 1; a < argc; a += 2) {
		const char *value = a + 1 < argc ? argv[a + 1] : NULL;

		if (strcmp(argv[a], "--rows") == 0) {
			rows = number_of(argv[a], value);
		} else if (strcmp(argv[a], "--seed") == 0) {
			state = number_of(argv[a], value);
		} else if (strcmp(argv[a], "--format") == 0 && value && strcmp(value, "ndjson") == 0) {
			row = "{\"event_time\":\"%s\",\"ingest_time\":\"%s\",\"user\":\"u%05" PRIu32
			      "\",\"page\":\"%s\",\"status\":%s,\"latency_ms\":%" PRIu32 ".%02" PRIu32
			      ",\"bytes\":%" PRIu32 "}\n";
		} else if (strcmp(argv[a], "--format") != 0 || !value || strcmp(value, "csv") != 0) {
			fprintf(stderr, "gen: %s: --rows N, --seed N and --format csv|ndjson are the options\n",
				argv[a]);
			return 2;
		}
	}
	if (row[0] == '%')
		puts("event_time,ingest_time,user,page,status,latency_ms,bytes");
	for (i = 0; i < rows; i++) {
		char event_time[32], ingest_time[32];
		/* Fast as a rule, slow at times. */
		uint32_t latency = below(10) ? below(200) : below(3000);

		print_time(event_time, (int64_t)i - lag_ms());
		print_time(ingest_time, (int64_t)i);
		printf(row, event_time, ingest_time, user(), pages[below(PAGES)], statuses[below(10)], latency,
			below(100), 500 + below(500000));
	}
	if (fflush(stdout) || ferror(stdout)) {
		perror("gen: standard output");
		return 3;
	}
	return 0;
}
