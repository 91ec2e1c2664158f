/* SPDX-License-Identifier: Apache-2.0 */
/* Event times: every format, what is refused and why, and printing. */
#include "lib/time/instant.h"

#include <stdlib.h>

#include "lib/base/decimal.h"
#include "lib/time/civil.h"
#include "tests/unit/tap.h"

#define S INT64_C(1000000)

static const char why_none[] = "no time";
static const char why_day[] = "no such day";
static const char why_clock[] = "no such time of day";
static const char why_offset[] = "no such offset from UTC";
static const char why_range[] = "outside of the years 1 to 9999";
static const char why_fit[] = "it does not fit the time format";
static const char why_end[] = "it goes on after the end of the time format";

/* A parser of a format and zone; the reference is used if it is not 0. */
static struct wm_instant_parser *
open_parser(const char *format, const struct wm_zone *zone, int64_t reference_us)
{
	struct wm_err err = { 0 };
	struct wm_instant_parser *parser = wm_instant_parser_new(
		wm_span_of(format), zone, WM_REPEATED_EARLIER, reference_us == 0 ? NULL : &reference_us, &err);

	if (parser == NULL) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	return parser;
}

static struct wm_zone *
open_zone(const char *name)
{
	struct wm_err err = { 0 };
	struct wm_zone *zone = wm_zone_open(wm_span_of(name), &err);

	if (zone == NULL) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	return zone;
}

/* The text is in memory of its own size, so that reading past it is seen. */
static bool
parse(struct wm_instant_parser *parser, const char *text, int64_t *time_us, const char **why)
{
	size_t len = strlen(text);
	char *tight = malloc(len == 0 ? 1 : len);

	memcpy(tight, text, len);
	bool ok = wm_instant_parse(parser, wm_span(tight, len), time_us, why);
	free(tight);
	return ok;
}

static void
expect(struct wm_instant_parser *parser, const char *text, int64_t want_us)
{
	int64_t time_us = -77;
	const char *why = "";
	bool ok = parse(parser, text, &time_us, &why);

	if (!tap_ok(ok && time_us == want_us, "%s: %s", wm_time_family_name(wm_instant_parser_family(parser)), text))
		printf("#   got %s %" PRId64 ", want %" PRId64 " %s\n", ok ? "time" : "refusal", time_us, want_us, why);
}

static void
refuse(struct wm_instant_parser *parser, const char *text, const char *want)
{
	int64_t time_us = -77;
	const char *why = "no reason given";
	bool ok = parse(parser, text, &time_us, &why);

	tap_text(ok ? "accepted" : why, want, text);
	if (ok || time_us != -77)
		tap_ok(false, "a refused text leaves the time alone");
}

struct point {
	const char *text;
	int64_t us;
};

/* All of them by a new parser each and by one for all. */
static void
expect_all(
	const char *format, const struct wm_zone *zone, int64_t reference_us, const struct point *points, size_t count)
{
	struct wm_instant_parser *parser = open_parser(format, zone, reference_us);
	size_t bad = 0;

	for (size_t i = 0; i < count; i++) {
		struct wm_instant_parser *fresh = open_parser(format, zone, reference_us);
		int64_t time_us = 0, fresh_us = 0;
		const char *why = "";

		if (!parse(parser, points[i].text, &time_us, &why) || time_us != points[i].us ||
			!parse(fresh, points[i].text, &fresh_us, &why) || fresh_us != points[i].us) {
			if (bad++ == 0)
				printf("#   '%s': got %" PRId64 ", want %" PRId64 " %s\n", points[i].text, time_us,
					points[i].us, why);
		}
		wm_instant_parser_free(fresh);
	}
	tap_int((int64_t)bad, 0, format);
	wm_instant_parser_free(parser);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define EXPECT_ALL(format, zone, reference_us, points) expect_all(format, zone, reference_us, points, COUNT(points))

static void
test_iso(void)
{
	static const struct point points[] = {
		{ "2024-02-29T12:34:56Z", 1709210096000000 },
		{ "2024-02-29 12:34:56Z", 1709210096000000 },
		{ "2024-02-29T12:34:56z", 1709210096000000 },
		{ "2024-02-29t12:34:56Z", 1709210096000000 },
		{ "2024-02-29T12:34:56+00:00", 1709210096000000 },
		{ "2024-02-29T12:34:56-00:00", 1709210096000000 },
		{ "2024-02-29T12:34:56+05:30", 1709190296000000 },
		{ "2024-02-29T12:34:56+0530", 1709190296000000 },
		{ "2024-02-29T12:34:56-08", 1709238896000000 },
		{ "2024-02-29T12:34:56.1Z", 1709210096100000 },
		{ "2024-02-29T12:34:56.12Z", 1709210096120000 },
		{ "2024-02-29T12:34:56.123456Z", 1709210096123456 },
		{ "2024-02-29T12:34:56.1234567Z", 1709210096123456 },
		{ "2024-02-29T12:34:56.123456789Z", 1709210096123456 },
		{ "2024-02-29T12:34:56,789Z", 1709210096789000 },
		{ "2024-02-29T12:34:56.533+0100", 1709206496533000 },
		{ "1945-03-08T09:58:48.1Z", -783180071900000 },
		{ "1965-10-26T14:01:12.762Z", -131968727238000 },
		{ "2020-02-28T24:00:00Z", 1582934400 * S },
		{ "2020-12-31T24:00:00Z", 1609459200 * S },
		{ "2020-12-31T24:00Z", 1609459200 * S },
		{ "2020-12-31T24:00:00.000Z", 1609459200 * S },
		{ "2016-12-31T23:59:59.999999Z", 1483228799999999 },
		{ "2016-12-31T23:59:60Z", 1483228800000000 },
		{ "2016-12-31T23:59:60.5Z", 1483228800500000 },
		{ "2017-01-01T00:00:00Z", 1483228800000000 },
		{ "2016-12-31T15:59:60-08:00", 1483228800000000 },
		{ "2024-07-27T12:00:00.123Z", 1722081600123000 },
		{ "2024-07-27T12:00:10.750+00:00", 1722081610750000 },
		{ "2024-07-27T12:00:35.900Z", 1722081635900000 },
		{ "2024-07-27T12:00:30.800Z", 1722081630800000 },
		{ "2024-07-27T14:00:40+02:00", 1722081640000000 },
		{ "2024-02-29", 1709164800000000 },
		{ "2024-02-29T12:34", 1709210040000000 },
		{ "2024-02-29T12:34Z", 1709210040000000 },
		{ "2024-02-29T12:34+05:30", 1709190240000000 },
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1969-12-31T23:59:59.999999999Z", -1 },
		{ "1969-12-31T23:59:59Z", -S },
		{ "0001-01-01T00:00:00Z", -62135596800000000 },
		{ "9999-12-31T23:59:59.999999Z", 253402300799999999 },
	};
	struct wm_instant_parser *parser = open_parser("iso", wm_zone_utc(), 0);

	expect_all("iso", wm_zone_utc(), 0, points, COUNT(points));
	expect_all("auto", wm_zone_utc(), 0, points, COUNT(points));
	refuse(parser, "2020-02-28T24:00:01Z", why_clock);
	refuse(parser, "2020-02-28T24:30:00Z", why_clock);
	refuse(parser, "2020-02-28T25:00:00Z", why_clock);
	refuse(parser, "2020-02-28T23:60:00Z", why_clock);
	refuse(parser, "2020-05-05T12:00:61Z", why_clock);
	expect(parser, "2020-02-28T24:00:00Z", 1582934400 * S);
	refuse(parser, "2020-02-28T24:00:01Z", why_clock); /* with its prefix just read */
	expect(parser, "2020-05-05T12:00:59Z", 1588680059 * S);
	refuse(parser, "2020-05-05T12:00:61Z", why_clock);
	refuse(parser, "2020-05-05T12:00:5Z", why_none);
	refuse(parser, "2020-05-05T12:00:59.Z", "no time: give --time-format '%Y-%m-%dT%H:%M:%S.%z'");
	refuse(parser, "2020-05-05T12:00:59.1234567890Z", "more than 9 digits of a second");
	refuse(parser, "2020-05-05T12:00:59Zx", why_none);
	refuse(parser, "2020-05-05T12:00:59 ", "no time: give --time-format '%Y-%m-%dT%H:%M:%S '");
	refuse(parser, "2020-05-05T12:00:", why_none);
	refuse(parser, "2020-05-05T12:00:59+24:00", why_offset);
	refuse(parser, "2020-05-05T12:00:59+5", why_offset);
	refuse(parser, "2020-05-05T12:00:59+053", why_offset);
	refuse(parser, "2020-05-05T12:00:59+05:60", why_offset);
	refuse(parser, "2023-02-29T00:00:00Z", why_day);
	refuse(parser, "2100-02-29", why_day);
	refuse(parser, "2024-13-01", why_day);
	refuse(parser, "2024-00-01", why_day);
	refuse(parser, "2024-04-31", why_day);
	refuse(parser, "2024-04-00", why_day);
	refuse(parser, "0000-01-01T00:00:00Z", why_range);
	refuse(parser, "0001-01-01T00:00:00+00:01", why_range);
	refuse(parser, "9999-12-31T23:59:60Z", why_range);
	expect(parser, "9999-12-31T23:59:59Z", 253402300799 * S);
	refuse(parser, "9999-12-31T23:59:60Z", why_range); /* with its prefix just read */
	refuse(parser, "9999-12-31T24:00:00Z", why_range);
	refuse(parser, "9999-12-31T23:59:59-00:01", why_range);
	refuse(parser, "NOT_A_TIMESTAMP", why_none);
	refuse(parser, "", why_none);
	refuse(parser, "2024-2-29", "no time: give --time-format '%Y-%m-%d'");
	refuse(parser, "2024/02/29", "no time: give --time-format '%Y/%m/%d'");
	refuse(parser, " 2024-02-29", "no time: give --time-format ' %Y-%m-%d'");
	refuse(parser, "1709210096", why_none);
	refuse(parser, "01/02/2024", "month first or day first? give --time-format '%m/%d/%Y' or '%d/%m/%Y'");
	wm_instant_parser_free(parser);
}

static void
test_epoch(void)
{
	static const struct point seconds[] = {
		{ "1577836800.123457", 1577836800123457 },
		{ "1577836800.123456789", 1577836800123456 },
		{ "1700000000.9999999", 1700000000999999 },
		{ "1577836800.5", 1577836800500000 },
		{ "1577836800", 1577836800000000 },
		{ "0.000001", 1 },
		{ "1499816949.527975237", 1499816949527975 },
		{ "1700199982.015838", 1700199982015838 },
		{ "1700299973.023757", 1700299973023757 },
		{ "1700499955.039595", 1700499955039595 },
		{ "1700599946.047514", 1700599946047514 },
		{ "1700899919.071271", 1700899919071271 },
		{ "1701199892.095028", 1701199892095028 },
		{ "1701299883.102947", 1701299883102947 },
		{ "1701499865.118785", 1701499865118785 },
		{ "0", 0 },
		{ "-0", 0 },
		{ "-0.5", -500000 },
		{ "-0.0000001", -1 },
		{ "-1.0000001", -1000001 },
		{ "007", 7 * S },
		{ "1.5e9", 1500000000 * S },
		{ "1.5E+9", 1500000000 * S },
		{ "15000000000e-1", 1500000000 * S },
		{ "1762265258239e-3", 1762265258239000 },
		{ "1e-7", 0 },
		{ "-1e-7", -1 },
		{ "1e-99999999999999999999", 0 },
		{ "0e99999999999999999999", 0 },
		{ "00000000000000000000001762265258", 1762265258 * S },
		{ "123456789", 123456789 * S },
		{ "99999999999", 99999999999 * S },
		{ "-62135596800", -62135596800 * S },
	};
	static const struct point milli[] = { { "1762265258239", 1762265258239000 },
		{ "762265258239", 762265258239000 }, { "100000000000", 100000000000000 },
		{ "-762265258239.0001", -762265258239001 }, { "762265258239.1239", 762265258239123 } };
	static const struct point micro[] = { { "1762265258239123", 1762265258239123 },
		{ "-1762265258239123", -1762265258239123 }, { "1762265258239123.9", 1762265258239123 },
		{ "-1762265258239123.9", -1762265258239124 } };
	static const struct point nano[] = { { "1762265258239123456", 1762265258239123 },
		{ "-1762265258239123456", -1762265258239124 }, { "-1762265258239123000", -1762265258239123 },
		{ "253402300799999999999", 253402300799999999 }, { "9999999999999999999", 9999999999999999 } };
	static const struct point minus_one[] = { { "-1", -S }, { "-1.0000000", -S } };
	static const struct point far_seconds[] = { { "100000000000", 100000000000000000 },
		{ "253402300799", 253402300799 * S }, { "253402300799.9999999", 253402300799999999 },
		{ "20240115", 20240115 * S } };
	static const struct point small_nano[] = { { "999", 0 }, { "-1", -1 }, { "1000", 1 }, { "0", 0 },
		{ "-1000", -1 } };
	static const struct point date_like[] = { { "20240115123456", 20240115123456000 } };

	EXPECT_ALL("auto", wm_zone_utc(), 0, seconds);
	EXPECT_ALL("s", wm_zone_utc(), 0, seconds);
	EXPECT_ALL("auto", wm_zone_utc(), 0, milli);
	EXPECT_ALL("ms", wm_zone_utc(), 0, milli);
	EXPECT_ALL("auto", wm_zone_utc(), 0, micro);
	EXPECT_ALL("us", wm_zone_utc(), 0, micro);
	EXPECT_ALL("auto", wm_zone_utc(), 0, nano);
	EXPECT_ALL("ns", wm_zone_utc(), 0, nano);
	EXPECT_ALL("s", wm_zone_utc(), 0, far_seconds);
	EXPECT_ALL("s", wm_zone_utc(), 0, minus_one);
	EXPECT_ALL("ns", wm_zone_utc(), 0, small_nano);
	EXPECT_ALL("ms", wm_zone_utc(), 0, date_like);

	struct wm_instant_parser *parser = open_parser("s", wm_zone_utc(), 0);
	static const char *const none[] = { "+1", "1.", ".5", "1,5", "1e", "1e+", "0x10", "1_000", "nan", "inf", " 1",
		"1 ", "--1", "-", "1.2.3", "12345678x", "123456789012x", "x1234567890" };
	for (size_t i = 0; i < COUNT(none); i++)
		refuse(parser, none[i], why_none);
	refuse(parser, "253402300800", why_range);
	refuse(parser, "-62135596801", why_range);
	refuse(parser, "-62135596800.0000001", why_range);
	refuse(parser, "1762265258239", why_range);
	refuse(parser, "99999999999999999999999999", why_range);
	refuse(parser, "9223372036854775808", why_range);
	refuse(parser, "1e99999999999999999999", why_range);
	wm_instant_parser_free(parser);
	parser = open_parser("ns", wm_zone_utc(), 0);
	refuse(parser, "253402300800000000000", why_range);
	wm_instant_parser_free(parser);
	parser = open_parser("us", wm_zone_utc(), 0);
	refuse(parser, "253402300800000000", why_range);
	refuse(parser, "-62135596800000001", why_range);
	wm_instant_parser_free(parser);
}

/* Digits at random against plain 128-bit arithmetic. */
static void
test_epoch_random(void)
{
	static const char *const formats[] = { "s", "ms", "us", "ns" };
	static const int64_t units[] = { 1000000000, 1000000, 1000, 1 }; /* ns of each */
	uint64_t random = 21;
	size_t bad = 0;

	for (size_t f = 0; f < 4; f++) {
		struct wm_instant_parser *parser = open_parser(formats[f], wm_zone_utc(), 0);

		for (int i = 0; i < 30000; i++) {
			int64_t whole = (int64_t)(tap_random(&random) >> (1 + tap_random(&random) % 63));
			int64_t nano = (int64_t)(tap_random(&random) % 1000000000);
			bool is_negative = tap_random(&random) % 2 == 1;
			char text[64];
			int len = snprintf(text, sizeof(text), "%s%" PRId64, is_negative ? "-" : "", whole);

			if (tap_random(&random) % 2 == 0)
				snprintf(text + len, sizeof(text) - (size_t)len, ".%09" PRId64, nano);
			else
				nano = 0;
			wm_int128 exact = ((wm_int128)whole * 1000000000 + nano) * units[f];
			if (is_negative)
				exact = -exact;
			wm_int128 per_us = (wm_int128)1000 * 1000000000;
			wm_int128 want = exact / per_us - (exact % per_us < 0);
			bool in_range = want >= INT64_C(-62135596800000000) && want <= INT64_C(253402300799999999);
			int64_t time_us = 0;
			const char *why;
			bool ok = wm_instant_parse(parser, wm_span_of(text), &time_us, &why);

			if ((ok != in_range || (ok && time_us != (int64_t)want)) && bad++ == 0)
				printf("#   %s of %s: got %d %" PRId64 "\n", text, formats[f], ok, time_us);
		}
		wm_instant_parser_free(parser);
	}
	tap_int((int64_t)bad, 0, "random epoch numbers are exact");
}

static void
test_auto(void)
{
	static const struct {
		const char *first;
		enum wm_time_family family;
		const char *other;
		const char *why;
	} cases[] = {
		{ "2024-02-29T12:34:56Z", WM_TIME_ISO, "1762265258",
			"a number of the size of epoch s where the times before are iso: give --time-format" },
		{ "1762265258", WM_TIME_EPOCH_S, "2024-02-29T12:34:56Z",
			"an iso time where the times before are epoch s: give --time-format" },
		{ "1762265258", WM_TIME_EPOCH_S, "1762265258239",
			"a number of the size of epoch ms where the times before are epoch s: give --time-format" },
		{ "1762265258239", WM_TIME_EPOCH_MS, "1762265258",
			"a number of the size of epoch s where the times before are epoch ms: give --time-format" },
		{ "1762265258239123", WM_TIME_EPOCH_US, "1762265258239",
			"a number of the size of epoch ms where the times before are epoch us: give --time-format" },
		{ "1762265258239123456", WM_TIME_EPOCH_NS, "10/Oct/2000:13:55:36 -0700",
			"a clf time where the times before are epoch ns: give --time-format" },
		{ "10/Oct/2000:13:55:36 -0700", WM_TIME_CLF, "Fri, 21 Nov 1997 09:55:06 -0600",
			"an rfc2822 time where the times before are clf: give --time-format" },
		{ "Fri, 21 Nov 1997 09:55:06 -0600", WM_TIME_RFC2822, "2024-02-29",
			"an iso time where the times before are rfc2822: give --time-format" },
		{ "99999999999", WM_TIME_EPOCH_S, "01/02/2024",
			"month first or day first? give --time-format '%m/%d/%Y' or '%d/%m/%Y'" },
		{ "100000000000", WM_TIME_EPOCH_MS, "NaN", why_none },
		{ "99999999999999", WM_TIME_EPOCH_MS, "", why_none },
		{ "100000000000000", WM_TIME_EPOCH_US, "x", why_none },
		{ "99999999999999999", WM_TIME_EPOCH_US, "x", why_none },
		{ "100000000000000000", WM_TIME_EPOCH_NS, "x", why_none },
		{ "-100000000000", WM_TIME_EPOCH_MS, "x", why_none },
		{ "1e11", WM_TIME_EPOCH_MS, "x", why_none },
		{ "99999999999.999999", WM_TIME_EPOCH_S, "x", why_none },
	};
	static const char day_or_number[] = "8 digits could be a date or a number: give --time-format %Y%m%d or s";
	static const char second_or_number[] =
		"14 digits could be a date or a number: give --time-format %Y%m%d%H%M%S or ms";
	struct wm_instant_parser *parser;
	int64_t time_us;
	const char *why;

	for (size_t i = 0; i < COUNT(cases); i++) {
		parser = open_parser("auto", wm_zone_utc(), 0);
		tap_ok(parse(parser, cases[i].first, &time_us, &why), "auto takes %s", cases[i].first);
		tap_text(wm_time_family_name(wm_instant_parser_family(parser)), wm_time_family_name(cases[i].family),
			"and decides");
		refuse(parser, cases[i].other, cases[i].why);
		tap_int(wm_instant_parser_family(parser), cases[i].family, "and keeps to it");
		wm_instant_parser_free(parser);
	}

	parser = open_parser("auto", wm_zone_utc(), 0);
	static const struct {
		const char *text, *why;
	} guesses[] = {
		{ "01/02/2024", "month first or day first? give --time-format '%m/%d/%Y' or '%d/%m/%Y'" },
		{ "4/13/2014 0:01:00", "month first or day first? give --time-format '%m/%d/%Y %H:%M:%S'" },
		{ "13.04.2014", "month first or day first? give --time-format '%d.%m.%Y'" },
		{ "1-2-24", "month first or day first? give --time-format '%m-%d-%y' or '%d-%m-%y'" },
		{ "13/04/2014 10:00", "month first or day first? give --time-format '%d/%m/%Y %H:%M'" },
		{ "13/13/2014 10:00", "month first or day first? give --time-format" },
	};
	for (size_t i = 0; i < COUNT(guesses); i++)
		refuse(parser, guesses[i].text, guesses[i].why);
	refuse(parser, "20240115", day_or_number);
	refuse(parser, "19000101", day_or_number);
	refuse(parser, "20240229", day_or_number);
	refuse(parser, "20240115123456", second_or_number);
	refuse(parser, "", why_none);
	refuse(parser, "hello", why_none);
	refuse(parser, "2024-02-30", why_day);
	refuse(parser, "40/Oct/2000:13:55:36 -0700", why_day);
	tap_int(wm_instant_parser_family(parser), WM_TIME_AUTO, "what is refused decides nothing");
	wm_instant_parser_free(parser);

	static const struct point numbers[] = { { "20230229", 20230229 * S }, { "9991231", 9991231 * S },
		{ "30000101", 30000101 * S }, { "20241301", 20241301 * S }, { "-20240115", -20240115 * S },
		{ "20240115.5", 20240115500000 } };
	EXPECT_ALL("auto", wm_zone_utc(), 0, numbers);
	parser = open_parser("auto", wm_zone_utc(), 0);
	expect(parser, "1762265258239", 1762265258239000);
	expect(parser, "0", 0);
	wm_instant_parser_free(parser);
}

static void
test_zones(void)
{
	static const struct point in_utc[] = { { "2026-10-25 01:59:59", 1792893599 * S },
		{ "2026-10-25 02:15:00", 1792894500 * S }, { "2026-10-25 03:00:00", 1792897200 * S },
		{ "2026-03-29 01:59:59", 1774749599 * S }, { "2026-03-29 02:30:00", 1774751400 * S },
		{ "2026-03-29 03:00:00", 1774753200 * S } };
	static const struct point in_prague[] = { { "2026-10-25 01:59:59", 1792886399 * S },
		{ "2026-10-25 02:15:00", 1792887300 * S }, { "2026-10-25 03:00:00", 1792893600 * S },
		{ "2026-03-29 01:59:59", 1774745999 * S }, { "2026-03-29 02:30:00", 1774747800 * S },
		{ "2026-03-29 03:00:00", 1774746000 * S },
		/* The same minute with and without a zone of its own. */
		{ "2026-10-25 02:15:01Z", 1792894501 * S }, { "2026-10-25 02:15:02", 1792887302 * S },
		{ "2026-10-25 02:15:03+05:30", 1792874703 * S }, { "2026-07-01 12:00:00", 1782900000 * S },
		{ "2026-07-01 12:00:01Z", 1782907201 * S }, { "2026-07-01", 1782856800 * S } };
	/* Transitions within a minute, recorded from Python's zoneinfo: Amsterdam's mean time ended 1937-07-01 at
	   00:00:00 +01:19:32, and the clock skipped 28 seconds. */
	static const struct point in_amsterdam[] = { { "1937-06-30 23:59:59", -1025745573 * S },
		{ "1937-07-01 00:00:10", -1025745562 * S }, { "1937-07-01 00:00:27", -1025745545 * S },
		{ "1937-07-01 00:00:28", -1025745572 * S } };
	struct wm_zone *prague = open_zone("Europe/Prague");
	struct wm_zone *amsterdam = open_zone("Europe/Amsterdam");

	EXPECT_ALL("auto", wm_zone_utc(), 0, in_utc);
	EXPECT_ALL("auto", prague, 0, in_prague);
	if (wm_zone_offset_us(amsterdam, INT64_C(-1025745573) * S) == 4772 * S)
		EXPECT_ALL("iso", amsterdam, 0, in_amsterdam);
	else
		tap_ok(true, "iso in Amsterdam # SKIP this tz database has no times of its own before 1970");

	struct wm_err err;
	struct wm_instant_parser *later =
		wm_instant_parser_new(wm_span_of("iso"), prague, WM_REPEATED_LATER, NULL, &err);
	expect(later, "2026-10-25 02:15:00", 1792890900 * S);
	tap_int(wm_instant_parser_local_kind(later), WM_LOCAL_REPEATED, "is in a repeated hour");
	expect(later, "2026-10-25 02:15:30", 1792890930 * S);
	tap_int(wm_instant_parser_local_kind(later), WM_LOCAL_REPEATED, "so is the next of its minute");
	expect(later, "2026-10-25 02:15:30Z", 1792894530 * S);
	tap_int(wm_instant_parser_local_kind(later), WM_LOCAL_ONCE, "but not with an offset");
	expect(later, "2026-03-29 02:30:00", 1774747800 * S);
	tap_int(wm_instant_parser_local_kind(later), WM_LOCAL_SKIPPED, "is in a skipped hour");
	wm_instant_parser_free(later);
	wm_zone_close(amsterdam);
	wm_zone_close(prague);
}

static void
test_clf_rfc2822(void)
{
	static const struct point clf[] = { { "10/Oct/2000:13:55:36 -0700", 971211336 * S },
		{ "29/Apr/2018:22:00:00 -0200", 1525046400 * S }, { "30/Apr/2018:00:00:00 +0000", 1525046400 * S },
		{ "30/Apr/2018:02:00:00 +0200", 1525046400 * S }, { "16/Aug/2013:15:45:34 +0435", 1376651434 * S },
		{ "[10/Oct/2000:13:55:36 -0700]", 971211336 * S }, { "10/Oct/2000:20:55:36", 971211336 * S },
		{ "10/Oct/2000:20:55:36.250", 971211336250000 }, { "10/OCT/2000:13:55:36 -07:00", 971211336 * S } };
	/* Worked out with date(1). */
	static const struct point mail[] = { { "Fri, 21 Nov 1997 09:55:06 -0600", 880127706 * S },
		{ "21 Nov 1997 09:55:06 -0600", 880127706 * S }, { "Fri, 21 Nov 97 09:55:06 -0600", 880127706 * S },
		{ "Fri, 21 Nov 1997 15:55:06 GMT", 880127706 * S }, { "Fri, 21 Nov 1997 09:55:06 CST", 880127706 * S },
		{ "Fri, 21 Nov 1997 15:55:06", 880127706 * S },
		{ "Fri, 21 Nov 1997 09:55:06 -0600 (CST)", 880127706 * S },
		{ "Fri,  21  Nov  1997  09:55:06  -0600", 880127706 * S },
		{ "Tue, 1 Jul 2003 10:52 +0200", 1057049520 * S }, { "1 Jul 03 10:52:00 +0200", 1057049520 * S },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 784111777 * S } };
	struct wm_instant_parser *parser = open_parser("clf", wm_zone_utc(), 0);

	EXPECT_ALL("clf", wm_zone_utc(), 0, clf);
	EXPECT_ALL("auto", wm_zone_utc(), 0, clf);
	refuse(parser, "[10/Oct/2000:13:55:36 -0700", "no time: give --time-format '[%d/%b/%Y:%H:%M:%S %z'");
	refuse(parser, "10/Oct/2000:13:55:36 -0700]", "no time: give --time-format '%d/%b/%Y:%H:%M:%S %z]'");
	refuse(parser, "10/Okt/2000:13:55:36 -0700", why_none);
	refuse(parser, "31/Nov/2000:13:55:36 -0700", why_day);
	refuse(parser, "10/Oct/2000:13:60:36 -0700", why_clock);
	refuse(parser, "10/Oct/2000:13:55:36 PST", why_offset);
	refuse(parser, "10/10/2000", "month first or day first? give --time-format '%m/%d/%Y' or '%d/%m/%Y'");
	wm_instant_parser_free(parser);

	EXPECT_ALL("rfc2822", wm_zone_utc(), 0, mail);
	EXPECT_ALL("auto", wm_zone_utc(), 0, mail);
	parser = open_parser("rfc2822", wm_zone_utc(), 0);
	refuse(parser, "Sat, 21 Nov 1997 09:55:06 -0600", "the weekday is not that of the date");
	refuse(parser, "Fri, 21 Nov 1997 09:55:06 CEST", why_offset);
	refuse(parser, "Fri, 21 Nov 1997 09:55:06 -0600 (CST", why_none);
	refuse(parser, "Fri, 21 Nov 1997", "no time: give --time-format '%a, %d %b %Y'");
	refuse(parser, "Fri 21 Nov 1997 09:55:06 -0600", "no time: give --time-format '%a %d %b %Y %H:%M:%S %z'");
	refuse(parser, "30 Feb 2001 09:55:06 -0600", why_day);
	wm_instant_parser_free(parser);
}

static void
refuse_format(const char *format, const char *message)
{
	struct wm_err err = { 0 };
	struct wm_instant_parser *parser =
		wm_instant_parser_new(wm_span_of(format), wm_zone_utc(), WM_REPEATED_EARLIER, NULL, &err);

	tap_text(parser != NULL ? "accepted" : err.message, message, format);
	if (parser == NULL)
		tap_int(err.code, WM_ERR_USAGE, "is a usage error");
	wm_instant_parser_free(parser);
}

static void
test_patterns(void)
{
	static const struct {
		const char *format;
		struct point point;
	} cases[] = {
		{ "%m/%d/%Y %H:%M:%S", { "4/13/2014 0:01:00", 1397347260 * S } },
		{ "%m/%d/%Y %H:%M:%S", { "4/1/2014 0:11:00", 1396311060 * S } },
		{ "%m/%d/%Y %H:%M:%S", { "12/4/2014 23:59:00", 1417737540 * S } },
		{ "%d/%b/%Y:%H:%M:%S %z", { "16/Aug/2013:15:45:34 +0435", 1376651434 * S } },
		{ "%d/%b/%Y:%T %z", { "10/Oct/2000:13:55:36 -07:00", 971211336 * S } },
		{ "%Y%m%d", { "20240229", 1709164800 * S } },
		{ "%Y%m%d%H%M%S", { "20240229123456", 1709210096 * S } },
		{ "%Y%m%dT%H%M%S%z", { "20240229T123456Z", 1709210096 * S } },
		{ "%F %T", { "2024-02-29 12:34:56", 1709210096 * S } },
		{ "%F%n%R", { "2024-02-29 12:34", 1709210040 * S } },
		{ "%F%t%T.%f", { "2024-02-29\t12:34:56.1234567", 1709210096123456 } },
		{ "%D %I:%M %p", { "02/29/24 12:34 PM", 1709210040 * S } },
		{ "%D %I:%M %p", { "02/29/24 12:34 am", 1709166840 * S } },
		{ "%y-%j", { "24-060", 1709164800 * S } },
		{ "%Y.%j", { "2024.366", 1735603200 * S } },
		{ "%d %B %Y", { "29 February 2024", 1709164800 * S } },
		{ "%d %B %Y", { "29 feb 2024", 1709164800 * S } },
		{ "%d %h %Y", { "1 May 2024", 1714521600 * S } },
		{ "%a %b %e %H:%M:%S %Z %Y", { "Thu Feb 29 12:34:56 UTC 2024", 1709210096 * S } },
		{ "%A, %d. %b %Y", { "Thursday, 29. Feb 2024", 1709164800 * S } },
		{ "%s", { "1709210096", 1709210096 * S } },
		{ "%s.%f", { "1709210096.5", 1709210096500000 } },
		{ "%s.%f", { "-0.0000001", -1 } },
		{ "%s.%f", { "-0.5", -500000 } },
		{ "100%% %Y", { "100% 2024", 1704067200 * S } },
		{ "%y-%m-%d", { "69-01-01", -31536000 * S } },
		{ "%y-%m-%d", { "68-01-01", 3092601600 * S } },
		{ "%F %H", { "2020-02-28 24", 1582934400 * S } },
		{ "%F %T", { "2016-12-31 23:59:60", 1483228800 * S } },
	};
	static const struct point syslog[] = { { "Dec 31 23:59:58", 1640995198 * S },
		{ "Jan  1 00:00:01", 1640995201 * S }, { "Dec 31 23:59:59", 1640995199 * S },
		{ "Jan  1 00:00:05", 1640995205 * S }, { "Feb  3 04:05:06", 1643861106 * S },
		{ "Feb 29 00:00:00", 1582934400 * S } }; /* 2020 is nearer to 2022-01-01 than 2024 */
	struct wm_instant_parser *parser;

	for (size_t i = 0; i < COUNT(cases); i++)
		expect_all(cases[i].format, wm_zone_utc(), 0, &cases[i].point, 1);
	EXPECT_ALL("%b %e %H:%M:%S", wm_zone_utc(), 1640995200 * S, syslog);
	/* Around 1900, which was no leap year: from 1899-12-31 the 29th of 1896 is the nearest; 1904's is from 1901. */
	parser = open_parser("%b %e", wm_zone_utc(), wm_civil_days(1899, 12, 31) * WM_US_PER_DAY);
	expect(parser, "Feb 29", wm_civil_days(1896, 2, 29) * WM_US_PER_DAY);
	refuse(parser, "Feb 30", why_day);
	wm_instant_parser_free(parser);
	parser = open_parser("%b %e", wm_zone_utc(), wm_civil_days(1901, 1, 1) * WM_US_PER_DAY);
	expect(parser, "Feb 29", wm_civil_days(1904, 2, 29) * WM_US_PER_DAY);
	wm_instant_parser_free(parser);

	parser = open_parser("%m/%d/%Y %H:%M:%S", wm_zone_utc(), 0);
	refuse(parser, "13/4/2014 0:01:00", why_day);
	refuse(parser, "4/13/14 0:01:00", "it does not fit the time format: it looks like '%m/%d/%y %H:%M:%S'");
	refuse(parser, "4/13/2014 0:01:00Z", why_end);
	refuse(parser, "4/13/2014 25:01:00", why_clock);
	refuse(parser, "4/13/2014", "it does not fit the time format: it looks like '%m/%d/%Y'");
	refuse(parser, "", why_fit);
	refuse(parser, "4/13/0000 0:01:00", why_range);
	wm_instant_parser_free(parser);
	parser = open_parser("%F %Z", wm_zone_utc(), 0);
	refuse(parser, "2024-01-01 CET", "of zone names only UTC and GMT can be read");
	wm_instant_parser_free(parser);
	parser = open_parser("%Y-%j", wm_zone_utc(), 0);
	refuse(parser, "2023-366", why_day);
	refuse(parser, "2023-000", why_fit);
	wm_instant_parser_free(parser);

#define LIST "%Y %m %d %e %H %I %p %M %S %y %j %b %B %h %a %A %z %Z %s %f %T %D %F %R %n %t %%"
	refuse_format("%Y-%U", "time format '%Y-%U': unknown conversion '%U': there are " LIST);
	refuse_format("%Y-%", "time format '%Y-%': unknown conversion '%': there are " LIST);
	refuse_format(
		"%b %e %H:%M:%S", "time format '%b %e %H:%M:%S': no year: say which is meant with --time-reference");
	refuse_format("%H:%M", "time format '%H:%M': no date: it needs a day, month and year");
	refuse_format("%F %I:%M", "time format '%F %I:%M': %I and %p need each other");
	refuse_format("%F %H:%M %p", "time format '%F %H:%M %p': %I and %p need each other");
	refuse_format("%F %H %I %p", "time format '%F %H %I %p': %I and %H are both the hour");
	refuse_format("unix",
		"unknown time format 'unix': there are auto, iso, s, ms, us, ns, clf, rfc2822, and patterns such "
		"as '%d.%m.%Y %H:%M:%S'");
	refuse_format("",
		"unknown time format '': there are auto, iso, s, ms, us, ns, clf, rfc2822, and patterns such as "
		"'%d.%m.%Y %H:%M:%S'");
}

static void
test_looks(void)
{
	static const char *const yes[] = { "2024-02-29T12:34:56Z", "2024-02-29 12:34", "10/Oct/2000:13:55:36 -0700",
		"[10/Oct/2000:13:55:36 -0700]", "Fri, 21 Nov 1997 09:55:06 -0600" };
	static const char *const no[] = { "time", "", "1762265258", "2024-02-29", "20240115", "2024-02-30T00:00:00Z",
		"[x]", "01/02/2024 10:00:00", "12 months" };

	for (size_t i = 0; i < COUNT(yes); i++)
		tap_ok(wm_instant_looks_like_time(wm_span_of(yes[i])), "looks like a time: %s", yes[i]);
	for (size_t i = 0; i < COUNT(no); i++)
		tap_ok(!wm_instant_looks_like_time(wm_span_of(no[i])), "does not: %s", no[i]);
}

static bool
carry_over(const char *from_format, const char *first, const char *to_format, enum wm_time_family *family)
{
	struct wm_instant_parser *from = open_parser(from_format, wm_zone_utc(), 0);
	struct wm_instant_parser *to = open_parser(to_format, wm_zone_utc(), 0);
	struct wm_buf buf;
	struct wm_get in;
	int64_t time_us;
	const char *why;

	if (first != NULL)
		(void)parse(from, first, &time_us, &why);
	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	wm_instant_parser_encode(from, &buf);
	wm_get_init(&in, wm_buf_span(&buf));
	bool ok = wm_instant_parser_decode(to, &in);
	*family = wm_instant_parser_family(to);
	wm_buf_release(&buf);
	wm_instant_parser_free(from);
	wm_instant_parser_free(to);
	return ok;
}

/* A parser of a format, or of it or auto, that goes on from one that has read a text. */
static struct wm_instant_parser *
go_on_as(const char *format, bool is_either, const char *first)
{
	struct wm_instant_parser *parsers[2];
	struct wm_buf buf;
	struct wm_get in;
	int64_t time_us;
	const char *why;

	for (int i = 0; i < 2; i++) {
		parsers[i] = open_parser(format, wm_zone_utc(), 0);
		if (is_either)
			wm_instant_parser_or_auto(parsers[i]);
	}
	(void)wm_instant_parse(parsers[0], wm_span_of(first), &time_us, &why);
	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	wm_instant_parser_encode(parsers[0], &buf);
	wm_get_init(&in, wm_buf_span(&buf));
	tap_ok(wm_instant_parser_decode(parsers[1], &in), "%s goes on behind %s", format, first);
	wm_get_init(&in, wm_buf_span(&buf));
	tap_ok(wm_instant_parser_pass(&in) && wm_get_left(&in) == 0, "or is gone over");
	wm_buf_release(&buf);
	wm_instant_parser_free(parsers[0]);
	return parsers[1];
}

static void
test_refused_is_kept(void)
{
	struct wm_instant_parser *parser = go_on_as("auto", false, "20240115");

	refuse(parser, "1764410401", "8 digits could be a date or a number: give --time-format %Y%m%d or s");
	wm_instant_parser_free(parser);
	parser = go_on_as("auto", false, "0");
	expect(parser, "1764410401000", 1764410401 * S);
	wm_instant_parser_free(parser);
	parser = go_on_as("%m/%d/%Y", true, "nothing");
	expect(parser, "11/29/2025", 1764374400 * S);
	wm_instant_parser_free(parser);
	parser = go_on_as("%m/%d/%Y", true, "11/29/2025");
	expect(parser, "11/29/2025", 1764374400 * S);
	refuse(parser, "1764410401", why_fit);
	wm_instant_parser_free(parser);
	parser = go_on_as("%m/%d/%Y", true, "1764410401000");
	expect(parser, "1764410401000", 1764410401 * S);
	refuse(parser, "11/29/2025", "month first or day first? give --time-format '%m/%d/%Y'");
	wm_instant_parser_free(parser);
	parser = go_on_as("%m/%d/%Y", true, "202511291000");
	tap_ok(wm_instant_parser_is_refused(parser), "what is refused");
	wm_instant_parser_free(parser);
	parser = go_on_as("ms", true, "2025-11-29");
	refuse(parser, "1764410401000",
		"a number of the size of epoch ms where the times before are iso: give --time-format");
	wm_instant_parser_free(parser);
}

static void
test_checkpoint(void)
{
	enum wm_time_family family;

	tap_ok(carry_over("auto", "1762265258239", "auto", &family) && family == WM_TIME_EPOCH_MS,
		"what auto decided is kept");
	tap_ok(carry_over("auto", NULL, "auto", &family) && family == WM_TIME_AUTO, "also that it has not");
	tap_ok(carry_over("auto", NULL, "s", &family) && family == WM_TIME_EPOCH_S,
		"which leaves a fixed format as it is");
	tap_ok(carry_over("auto", "1762265258239", "ms", &family) && family == WM_TIME_EPOCH_MS, "the same format");
	tap_ok(!carry_over("auto", "1762265258239", "s", &family), "another format");
	tap_ok(carry_over("%F", NULL, "%Y-%m-%d", &family) && family == WM_TIME_PATTERN,
		"the same pattern, spelt otherwise");
	tap_ok(!carry_over("%F", NULL, "%D", &family), "another pattern");
	test_refused_is_kept();
	tap_ok(!carry_over("%F", NULL, "auto", &family), "a pattern into auto");

	struct wm_instant_parser *parser = open_parser("auto", wm_zone_utc(), 0);
	struct wm_get in;
	wm_get_init(&in, wm_span("\x2a\0", 2));
	tap_ok(!wm_instant_parser_decode(parser, &in) && in.failed, "a family that does not exist");
	wm_get_init(&in, wm_span("\x01", 1));
	tap_ok(!wm_instant_parser_decode(parser, &in), "bytes that are cut");
	tap_int(wm_instant_parser_family(parser), WM_TIME_AUTO, "leave the parser as it was");
	wm_instant_parser_free(parser);
}

/* What is told by the values of a column, one after the other: digits that are dates, and what stands for no time. */
static void
test_columns(void)
{
	static const struct {
		const char *dates[3]; /* NULL: no more */
		const char *numbers[3];
		const char *format, *unit;
	} packed[] = {
		{ { "2017", "1000", "2999" }, { "999", "3000", "02017" }, "%Y", "s" },
		{ { "202405", "100001", "299912" }, { "202400", "202413", "300001" }, "%Y%m", "s" },
		{ { "20240229", "10000101", "29991231" }, { "20230229", "20240431", "30000101" }, "%Y%m%d", "s" },
		{ { "2025112924", "1900010100", "2099123123" }, { "1899123123", "2100010100", "2025112925" },
			"%Y%m%d%H", "s" },
		{ { "202511291000", "100001010000", "299912312359" },
			{ "202511291060", "202513291000", "300001010000" }, "%Y%m%d%H%M", "ms" },
		{ { "20251129100059", "20251129100060", "10000101000000" },
			{ "20251129100061", "20251129250000", "30000101000000" }, "%Y%m%d%H%M%S", "ms" },
		{ { "20251129100059999", "10000101000000000", "29991231235959000" },
			{ "20251129100061000", "20251100100059000", "30000101000000000" }, "%Y%m%d%H%M%S%f", "us" },
	};
	struct wm_instant_parser *parser;
	struct wm_buf why;
	int64_t time_us;
	const char *unused;

	wm_buf_init(&why, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < COUNT(packed); i++) {
		wm_buf_reset(&why);
		wm_buf_addf(&why, "%zu digits could be a date or a number: give --time-format %s or %s%c",
			strlen(packed[i].dates[0]), packed[i].format, packed[i].unit, '\0');
		for (size_t j = 0; j < 3; j++) {
			parser = open_parser("auto", wm_zone_utc(), 0);
			refuse(parser, packed[i].dates[j], why.data);
			/* That holds for all numbers, and for them alone. */
			refuse(parser, "1764410401", why.data);
			refuse(parser, "0", why.data);
			refuse(parser, "hello", why_none);
			tap_ok(wm_instant_parser_is_refused(parser), "numbers are refused");
			expect(parser, "2025-11-29", 1764374400 * S);
			wm_instant_parser_free(parser);

			parser = open_parser("auto", wm_zone_utc(), 0);
			tap_ok(wm_instant_parse(parser, wm_span_of(packed[i].numbers[j]), &time_us, &unused) &&
					wm_instant_parser_took_numbers(parser),
				"%s is a number", packed[i].numbers[j]);
			wm_instant_parser_free(parser);

			parser = open_parser("auto", wm_zone_utc(), 0);
			wm_instant_parser_trust_numbers(parser);
			tap_ok(wm_instant_parse(parser, wm_span_of(packed[i].dates[j]), &time_us, &unused) &&
					!wm_instant_parser_took_numbers(parser),
				"%s is one in a column of ours", packed[i].dates[j]);
			wm_instant_parser_free(parser);
		}
		/* The format that is named reads it, and once numbers are epochs none is looked at for this. */
		parser = open_parser(packed[i].format, wm_zone_utc(), 0);
		tap_ok(wm_instant_parse(parser, wm_span_of(packed[i].dates[1]), &time_us, &unused), "%s reads %s",
			packed[i].format, packed[i].dates[1]);
		wm_instant_parser_free(parser);
		parser = open_parser(packed[i].unit, wm_zone_utc(), 0);
		tap_ok(wm_instant_parse(parser, wm_span_of(packed[i].dates[0]), &time_us, &unused), "%s reads %s",
			packed[i].unit, packed[i].dates[0]);
		wm_instant_parser_free(parser);
	}
	parser = open_parser("auto", wm_zone_utc(), 0);
	expect(parser, "1764410401", 1764410401 * S);
	expect(parser, "2017", 2017 * S);
	expect(parser, "20240229", 20240229 * S);
	expect(parser, "-1", -S);
	wm_instant_parser_free(parser);

	static const char *const zeros[] = { "0", "0.0", "-0", "00", "0e5" };
	static const char *const placeholders[] = { "-1", "-1.0", "0000-00-00", "0000-00-00 00:00:00",
		"0000-00-00T00:00:00Z" };
	static const struct point after[] = { { "1542205104057741601", 1542205104057741 },
		{ "1542205104057", 1542205104057000 }, { "2025-11-29", 1764374400 * S } };
	for (size_t i = 0; i < COUNT(after); i++) {
		parser = open_parser("auto", wm_zone_utc(), 0);
		for (size_t j = 0; j < COUNT(zeros); j++)
			expect(parser, zeros[j], 0);
		for (size_t j = 0; j < COUNT(placeholders); j++)
			tap_ok(!wm_instant_parse(parser, wm_span_of(placeholders[j]), &time_us, &unused),
				"%s is no time", placeholders[j]);
		tap_int(wm_instant_parser_family(parser), WM_TIME_AUTO, "nothing is decided");
		expect(parser, after[i].text, after[i].us);
		wm_instant_parser_free(parser);
	}
	wm_buf_release(&why);
}

/* A format that may be that of another column. */
static void
test_either(void)
{
	struct wm_instant_parser *parser = open_parser("%m/%d/%Y %H:%M", wm_zone_utc(), 0);

	wm_instant_parser_or_auto(parser);
	refuse(parser, "later", why_none);
	expect(parser, "3/13/2025 20:02", 1741896120 * S);
	refuse(parser, "2025-03-13T20:02:00Z", "it does not fit the time format: it looks like '%Y-%m-%dT%H:%M:%S%z'");
	wm_instant_parser_free(parser);

	parser = open_parser("%m/%d/%Y %H:%M", wm_zone_utc(), 0);
	wm_instant_parser_or_auto(parser);
	expect(parser, "0", 0);
	expect(parser, "1741896120250", 1741896120250000);
	refuse(parser, "3/13/2025 20:02", "month first or day first? give --time-format '%m/%d/%Y %H:%M'");
	wm_instant_parser_free(parser);

	parser = open_parser("ms", wm_zone_utc(), 0);
	wm_instant_parser_or_auto(parser);
	expect(parser, "1700000000", 1700000000000);
	expect(parser, "2017", 2017000);
	wm_instant_parser_free(parser);

	parser = open_parser("ms", wm_zone_utc(), 0);
	wm_instant_parser_or_auto(parser);
	expect(parser, "2025-03-13", 1741824000 * S);
	refuse(parser, "1700000000",
		"a number of the size of epoch s where the times before are iso: give --time-format");
	wm_instant_parser_free(parser);
}

static void
expect_print(int64_t time_us, enum wm_time_unit unit, const struct wm_zone *zone, const char *want)
{
	char text[WM_INSTANT_TEXT_MAX];

	tap_span(wm_span(text, wm_instant_print(time_us, unit, zone, text)), want, want);
}

/* What is written of a time beyond the years can be read again; expected is what it is read as. */
static void
expect_held(int64_t time_us, const struct wm_zone *zone, const char *want, int64_t want_us)
{
	struct wm_instant_parser *parser = open_parser("auto", zone, 0);
	struct wm_instant_text last = { .len = 0 };
	int64_t read_us = -77;
	const char *why = "";

	/* A time before in the same minute changes nothing. */
	wm_instant_reprint(&last, time_us - 1000000, WM_UNIT_ISO, zone);
	wm_instant_reprint(&last, time_us, WM_UNIT_ISO, zone);
	tap_span(wm_span(last.text, last.len), want, want);
	wm_instant_parser_take_edges(parser);
	bool ok = wm_instant_parse(parser, wm_span(last.text, last.len), &read_us, &why);
	if (!tap_ok(ok && read_us == want_us && read_us == wm_instant_hold(time_us, zone), "is read: %s", want))
		printf("#   got %" PRId64 ", want %" PRId64 " %s\n", read_us, want_us, why);
	wm_instant_parser_free(parser);
}

static void
test_edges(void)
{
	struct wm_zone *berlin = open_zone("Europe/Berlin");
	struct wm_zone *york = open_zone("America/New_York");
	const struct wm_zone *utc = wm_zone_utc();
	static const enum wm_time_unit units[] = { WM_UNIT_S, WM_UNIT_MS, WM_UNIT_US, WM_UNIT_NS };
	/* By GNU date: date -ud 0000-12-31T23:00Z +%s. */
	const int64_t year_0_us = -62135600400 * S;

	expect_held(year_0_us, utc, "0000-12-31T23:00:00Z", year_0_us);
	expect_held(-62167219200 * S, utc, "0000-01-01T00:00:00Z", -62167219200 * S);
	expect_held(-62167219200 * S - 1, utc, "0000-01-01T00:00:00Z", -62167219200 * S);
	expect_held(253402300799999999, utc, "9999-12-31T23:59:59.999999Z", 253402300799999999);
	expect_held(253402300800 * S, utc, "10000-01-01T00:00:00Z", 253402300800 * S);
	expect_held(315569520000 * S, utc, "10000-01-01T00:00:00Z", 253402300800 * S); /* 11970-01-01 */
	expect_held(-315569520000 * S, utc, "0000-01-01T00:00:00Z", -62167219200 * S);
	/* The last day of a zone ends by its clock; the first began by the local time of the place. */
	expect_held(315569520000 * S, berlin, "10000-01-01T00:00:00+01:00", 253402297200 * S);
	expect_held(315569520000 * S, york, "10000-01-01T00:00:00-05:00", 253402318800 * S);
	expect_held(-315569520000 * S, york, "0000-01-01T00:00:00-04:56:02", (-62167219200 + 17762) * S);

	struct wm_instant_parser *parser = open_parser("auto", utc, 0);
	wm_instant_parser_take_edges(parser);
	expect(parser, "10000-01-01", 253402300800 * S);
	expect(parser, "10000-01-01 00:00", 253402300800 * S);
	expect(parser, "2024-02-29T00:00:00Z", 1709164800 * S);
	expect(parser, "0000-02-29", -62162121600 * S);
	refuse(parser, "10000-01-01T00:00:01Z", "outside of the years 1 to 9999");
	refuse(parser, "10000-01-02", why_none);
	refuse(parser, "0000-02-30", "no such day");
	wm_instant_parser_free(parser);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		char text[WM_INSTANT_TEXT_MAX + 1] = "";

		text[wm_instant_print(year_0_us, units[i], utc, text)] = '\0';
		parser = open_parser("auto", utc, 0);
		refuse(parser, text, "outside of the years 1 to 9999");
		wm_instant_parser_take_edges(parser);
		expect(parser, text, year_0_us);
		wm_instant_parser_free(parser);
	}
	wm_zone_close(york);
	wm_zone_close(berlin);
}

static void
test_print(void)
{
	struct wm_zone *berlin = open_zone("Europe/Berlin");
	struct wm_zone *west = open_zone("-03:30");
	const struct wm_zone *zone = wm_zone_utc();

	expect_print(1762265258000000, WM_UNIT_ISO, zone, "2025-11-04T14:07:38Z");
	expect_print(1762265258239000, WM_UNIT_ISO, zone, "2025-11-04T14:07:38.239Z");
	expect_print(1762265258239123, WM_UNIT_ISO, zone, "2025-11-04T14:07:38.239123Z");
	expect_print(0, WM_UNIT_ISO, zone, "1970-01-01T00:00:00Z");
	expect_print(-1, WM_UNIT_ISO, zone, "1969-12-31T23:59:59.999999Z");
	expect_print(-62135596800000000, WM_UNIT_ISO, zone, "0001-01-01T00:00:00Z");
	expect_print(-62135596800000001, WM_UNIT_ISO, zone, "0000-12-31T23:59:59.999999Z");
	expect_print(-62167219200000001, WM_UNIT_ISO, zone, "-0001-12-31T23:59:59.999999Z");
	expect_print(253402300799999999, WM_UNIT_ISO, zone, "9999-12-31T23:59:59.999999Z");
	expect_print(253402300800000000, WM_UNIT_ISO, zone, "10000-01-01T00:00:00Z");
	/* The ends, by GNU date -ud @9223372036854.775807 and @-9223372036854.775808. */
	expect_print(INT64_MAX, WM_UNIT_ISO, zone, "294247-01-10T04:00:54.775807Z");
	expect_print(INT64_MIN, WM_UNIT_ISO, zone, "-290308-12-21T19:59:05.224192Z");
	expect_print(1762265258000000, WM_UNIT_ISO, berlin, "2025-11-04T15:07:38+01:00");
	expect_print(1751328000000000, WM_UNIT_ISO, berlin, "2025-07-01T02:00:00+02:00");
	expect_print(-2500000000000000, WM_UNIT_ISO, berlin, "1890-10-11T20:26:48+00:53:28");
	expect_print(0, WM_UNIT_ISO, west, "1969-12-31T20:30:00-03:30");
	expect_print(0, WM_UNIT_S, zone, "0");
	expect_print(1762265258000000, WM_UNIT_S, berlin, "1762265258");
	expect_print(1500000, WM_UNIT_S, zone, "1.5");
	expect_print(1000001, WM_UNIT_S, zone, "1.000001");
	expect_print(-500000, WM_UNIT_S, zone, "-0.5");
	expect_print(-1, WM_UNIT_S, zone, "-0.000001");
	expect_print(1762265258239123, WM_UNIT_MS, zone, "1762265258239");
	expect_print(-1, WM_UNIT_MS, zone, "-1");
	expect_print(-1000, WM_UNIT_MS, zone, "-1");
	expect_print(-1, WM_UNIT_US, zone, "-1");
	expect_print(INT64_MIN, WM_UNIT_US, zone, "-9223372036854775808");
	expect_print(0, WM_UNIT_NS, zone, "0");
	expect_print(1762265258239123, WM_UNIT_NS, zone, "1762265258239123000");
	expect_print(INT64_MIN, WM_UNIT_NS, zone, "-9223372036854775808000");
	wm_zone_close(west);
	wm_zone_close(berlin);
}

/* Texts close to each other in time, or ten minutes apart, so that the minute or its last digit is shared as often as not. */
static void
test_round_trips(void)
{
	static const char *const zones[] = { "UTC", "Europe/Berlin", "Australia/Lord_Howe", "-03:30" };
	static const struct {
		const char *format;
		enum wm_time_unit unit;
	} forms[] = { { "iso", WM_UNIT_ISO }, { "s", WM_UNIT_S }, { "us", WM_UNIT_US }, { "ns", WM_UNIT_NS } };
	uint64_t random = 99;
	size_t bad = 0, differing = 0;

	for (size_t z = 0; z < COUNT(zones); z++) {
		struct wm_zone *zone = open_zone(zones[z]);

		for (size_t f = 0; f < COUNT(forms); f++) {
			struct wm_instant_parser *parser = open_parser(forms[f].format, zone, 0);
			struct wm_instant_text last = { .len = 0 };
			int64_t near_us = 0;

			for (int i = 0; i < 20000; i++) {
				char text[WM_INSTANT_TEXT_MAX];
				int64_t back_us = 0;
				const char *why = "";

				if (i % 20 == 0)
					near_us = (int64_t)(tap_random(&random) % UINT64_C(315000000000000000)) -
						INT64_C(62130000000000000);
				int64_t time_us = near_us + (int64_t)(tap_random(&random) % 90000000) +
					(int64_t)(tap_random(&random) % 3) * 600 * S;
				time_us -= i % 3 == 0 ? time_us % S : i % 3 == 1 ? time_us % 1000 : 0;
				size_t len = wm_instant_print(time_us, forms[f].unit, zone, text);
				wm_instant_reprint(&last, time_us, forms[f].unit, zone);
				differing += !wm_span_equal(wm_span(text, len), wm_span(last.text, last.len));
				if ((!wm_instant_parse(parser, wm_span(text, len), &back_us, &why) ||
					    back_us != time_us) &&
					bad++ == 0)
					printf("#   %" PRId64 " as %.*s: %" PRId64 " %s\n", time_us, (int)len, text,
						back_us, why);
			}
			wm_instant_parser_free(parser);
		}
		wm_zone_close(zone);
	}
	tap_int((int64_t)bad, 0, "printed times read back the same");
	tap_int((int64_t)differing, 0, "and are the same behind one that is near");
}

/*
 * A parser that remembers and one that is new must agree on altered texts; what
 * both take stays in the range, and reading stays in the text.
 */
static void
test_altered(void)
{
	static const char *const seeds[] = { "2024-02-29T12:34:56.789Z", "2024-02-29 12:34:56+05:30", "1762265258.239",
		"1762265258239123456", "10/Oct/2000:13:55:36 -0700", "Fri, 21 Nov 1997 09:55:06 -0600" };
	static const char letters[] = "0123456789-+:.,TZ /eE[()\0\xff";
	static const char *const formats[] = { "auto", "iso", "s", "ns", "clf", "rfc2822", "%F %T.%f" };
	struct wm_zone *zone = open_zone("Europe/Berlin");
	uint64_t random = 17;
	size_t bad = 0;

	for (size_t f = 0; f < COUNT(formats); f++) {
		struct wm_instant_parser *parser = open_parser(formats[f], zone, 0);

		for (int i = 0; i < 6000; i++) {
			const char *seed = seeds[tap_random(&random) % COUNT(seeds)];
			size_t len = strlen(seed);
			char *text = malloc(len);
			int64_t time_us = 1, fresh_us = 1;
			const char *why = NULL, *why_fresh = NULL;

			memcpy(text, seed, len);
			for (uint64_t n = tap_random(&random) % 3; n > 0; n--)
				text[tap_random(&random) % len] = letters[tap_random(&random) % (sizeof(letters) - 1)];
			if (tap_random(&random) % 4 == 0) {
				len = 1 + tap_random(&random) % len;
				text = realloc(text, len);
			}
			struct wm_instant_parser *fresh = open_parser(formats[f], zone, 0);
			bool ok = wm_instant_parse(parser, wm_span(text, len), &time_us, &why);
			bool ok_fresh = wm_instant_parse(fresh, wm_span(text, len), &fresh_us, &why_fresh);
			bool agree = f == 0
				? !ok || (ok_fresh && time_us == fresh_us)
				: ok == ok_fresh && time_us == fresh_us && (ok || strcmp(why, why_fresh) == 0);
			if ((!agree || (!ok && why == NULL) || time_us < INT64_C(-62135596800000000) ||
				    time_us > INT64_C(253402300799999999)) &&
				bad++ == 0)
				printf("#   %s: '%.*s': %d %" PRId64 ", alone %d %" PRId64 "\n", formats[f], (int)len,
					text, ok, time_us, ok_fresh, fresh_us);
			wm_instant_parser_free(fresh);
			free(text);
		}
		wm_instant_parser_free(parser);
	}
	tap_int((int64_t)bad, 0, "altered texts mean the same whatever came before");
	wm_zone_close(zone);
}

int
main(void)
{
	/* Nothing here may listen to this. */
	setenv("TZ", "Asia/Tokyo", 1);
	setenv("LC_ALL", "de_DE.UTF-8", 1);
	test_iso();
	test_epoch();
	test_epoch_random();
	test_auto();
	test_zones();
	test_clf_rfc2822();
	test_patterns();
	test_looks();
	test_checkpoint();
	test_print();
	test_edges();
	test_columns();
	test_either();
	test_round_trips();
	test_altered();
	return tap_done();
}
