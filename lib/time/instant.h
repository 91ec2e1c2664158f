/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instant - event times: texts to microseconds since the epoch, and back.
 *
 * A time is int64_t microseconds since 1970-01-01T00:00:00Z from parsing to
 * printing; no double ever holds one. Further digits are cut toward the past.
 * Years WM_YEAR_MIN to WM_YEAR_MAX. Second 60 is the next second, 24:00:00 the
 * next day. What does not parse is an error; it never becomes zero.
 *
 * Formats: ISO 8601 / RFC 3339 ('T', 't' or a blank; ',' or '.' and 1 to 9
 * digits; 'Z', 'z', "+05:30", "+0530", "+05"; seconds may be left out; a date alone is midnight), epoch
 * numbers with a fraction or an exponent (exact too), CLF ("10/Oct/2000:13:55:36 -0700", brackets around
 * it allowed), RFC 2822, and strptime patterns (English names, %f for a
 * fraction). A time without zone is read in the parser's zone.
 *
 * auto takes a number of at most 11 digits before the point for seconds, 14 for
 * ms, 17 for us, more for ns. Once it has decided, a number of the size of
 * another unit fails, as any other family does; zero is zero in every unit.
 * Until then 0 is 1970-01-01T00:00:00Z, and decides nothing; -1 and a date of
 * zeros are no times, as they often stand for none. Where the first other value
 * is a number that reads as a date (2017, 20251129), this and all numbers behind
 * it are refused: nobody but the user knows what they are.
 */
#ifndef WM_TIME_INSTANT_H
#define WM_TIME_INSTANT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/base/value.h"
#include "lib/time/zone.h"

enum wm_time_family {
	WM_TIME_AUTO = 0, /* not decided yet: the first value that parses decides, for good */
	WM_TIME_ISO,
	WM_TIME_EPOCH_S,
	WM_TIME_EPOCH_MS,
	WM_TIME_EPOCH_US,
	WM_TIME_EPOCH_NS,
	WM_TIME_CLF,
	WM_TIME_RFC2822,
	WM_TIME_PATTERN,
	WM_TIME_REFUSED, /* in checkpoints alone: undecided, and numbers are refused; beside it the pattern that they may have */
};

struct wm_instant_parser;

/*
 * format: "auto", "iso", "s", "ms", "us", "ns", "clf", "rfc2822" or a strptime
 * pattern (anything with a '%'); else NULL with WM_ERR_USAGE and the list. A pattern without a year is
 * refused unless reference_us is given (the year nearest to it is taken; a 29 February takes the nearest leap year).
 * The zone is borrowed and must outlive the parser. reference_us may be NULL.
 */
struct wm_instant_parser *wm_instant_parser_new(struct wm_span format, const struct wm_zone *zone,
	enum wm_repeated_hour repeated, const int64_t *reference_us, struct wm_err *err);
void wm_instant_parser_free(struct wm_instant_parser *parser);

/*
 * False on a text that is no time of the format; then *why says so and what to do, for a message ("no time: give --time-format
 * '%Y/%m/%d'", "month first or day first? give --time-format '%m/%d/%Y' or '%d/%m/%Y'", "8 digits could be a date or a number: give
 * --time-format %Y%m%d or s"). It is borrowed until the next text.
 * Fast where a text shares its minute with the one before.
 */
bool wm_instant_parse(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why);

/* The column is written by tools of this project: its numbers are what auto takes them for, and none is refused as a date. */
void wm_instant_parser_trust_numbers(struct wm_instant_parser *parser);

/*
 * The format may be that of another column: the first value that can be read tells whether it holds for this one, else it is auto from
 * then on.
 */
void wm_instant_parser_or_auto(struct wm_instant_parser *parser);

/* Whether auto has decided that numbers are epochs; and whether it refuses the column's numbers. */
bool wm_instant_parser_took_numbers(const struct wm_instant_parser *parser);
bool wm_instant_parser_is_refused(const struct wm_instant_parser *parser);

/*
 * From now on what stands at the edges of the years is read too, as wm_instant_reprint() writes it: the year 0000, and the moment that
 * ends the year 9999, "10000-01-01". For watermarks, and for ends of windows and ranges; an event time is neither.
 */
void wm_instant_parser_take_edges(struct wm_instant_parser *parser);

/* Whether the last text that parsed was a local time in a repeated or skipped hour. */
enum wm_local_kind wm_instant_parser_local_kind(const struct wm_instant_parser *parser);

/* What auto has decided on, or the format that was asked for. */
enum wm_time_family wm_instant_parser_family(const struct wm_instant_parser *parser);
const char *wm_time_family_name(enum wm_time_family family);

/* True for a text that auto would take as a full date with time (no bare number): a first row with one is no header. */
bool wm_instant_looks_like_time(struct wm_span text);

/*
 * The decided family, or that numbers are refused, for checkpoints. Decoding into a parser of another fixed format fails.
 * wm_instant_parser_pass() goes over one that nobody asks for.
 */
void wm_instant_parser_encode(const struct wm_instant_parser *parser, struct wm_buf *out);
WM_MUST_CHECK bool wm_instant_parser_decode(struct wm_instant_parser *parser, struct wm_get *in);
WM_MUST_CHECK bool wm_instant_parser_pass(struct wm_get *in);

enum wm_time_unit { WM_UNIT_ISO = 0, WM_UNIT_S, WM_UNIT_MS, WM_UNIT_US, WM_UNIT_NS };

/* Longest text of wm_instant_print(), NUL not counted. */
#define WM_INSTANT_TEXT_MAX 40

/*
 * ISO: "2025-11-29T00:00:00Z", with 3 or 6 digits of fraction only where not
 * zero; in a zone other than UTC with its offset ("+01:00"). Year 0 is 0000, years before are "-0001".
 * Numbers: seconds with up to 6 digits where not zero, the others whole (ms cut toward the past).
 * Writes at most WM_INSTANT_TEXT_MAX bytes, no NUL; returns their number.
 */
size_t wm_instant_print(int64_t time_us, enum wm_time_unit unit, const struct wm_zone *zone, char *out);

/*
 * The time, or what is nearest to it of what can be read again: 0000-01-01 to 10000-01-01 by the clock of the zone. A window may be longer
 * than all years.
 */
int64_t wm_instant_hold(int64_t time_us, const struct wm_zone *zone);

/* The time that was printed last and its text: of a time near it most is the same. All zero bytes: none yet. Fields are for reading. */
struct wm_instant_text {
	char text[WM_INSTANT_TEXT_MAX];
	size_t len;
	int64_t time_us;
	int64_t minute_us, day_us; /* where has_minute: of UTC, that the text tells before its seconds, and its day */
	bool has_minute;
};

/* What wm_instant_print() writes of wm_instant_hold(); unit and zone are those of the last time. */
void wm_instant_reprint(
	struct wm_instant_text *last, int64_t time_us, enum wm_time_unit unit, const struct wm_zone *zone);

/* The same as a value, a text or a number, borrowed from last. */
struct wm_value wm_instant_value(
	struct wm_instant_text *last, int64_t time_us, enum wm_time_unit unit, const struct wm_zone *zone);

#endif
