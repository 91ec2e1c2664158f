/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/time/instant.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#include "lib/base/ascii.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/time/civil.h"
#include "lib/time/duration.h"
#include "lib/time/shape.h"

#define US_PER_MINUTE INT64_C(60000000)
#define US_PER_HOUR INT64_C(3600000000)

/* The first microsecond of WM_YEAR_MIN and the last of WM_YEAR_MAX. */
#define TIME_US_MIN INT64_C(-62135596800000000)
#define TIME_US_MAX INT64_C(253402300799999999)

/* 0000-01-01 and 10000-01-01, by the clock of a zone: no time is written that lies beyond. */
#define EDGE_US_MIN INT64_C(-62167219200000000)
#define EDGE_US_MAX INT64_C(253402300800000000)

/* After 400 years the calendar comes again. */
#define CYCLE_US (INT64_C(146097) * WM_US_PER_DAY)

/* "YYYY-MM-DDTHH:MM" */
#define PREFIX_BYTES 16

/* Years to either side of the reference that hold every kind of date: 1896 to 1904 has no leap year between. */
#define NEAREST_YEARS 8

/* With what a text looks like behind it, where that is known: see advise(). */
static const char NO_TIME[] = "no time";
static const char MISFIT[] = "it does not fit the time format";
static const char WHICH_FIRST[] = "month first or day first? give --time-format";

#define ADVICE_BYTES_MAX 160

#define NO_DAY "no such day"
#define NO_CLOCK "no such time of day"
#define NO_OFFSET "no such offset from UTC"
#define OUT_OF_RANGE "outside of the years 1 to 9999"

/* For messages, so with each '%' twice. */
#define CONVERSIONS                                                                                                    \
	"%%Y %%m %%d %%e %%H %%I %%p %%M %%S %%y %%j %%b %%B %%h %%a %%A %%z %%Z %%s %%f %%T %%D %%F %%R %%n %%t %%%%"

/* A place for each last digit of a minute: rows that come out of order go back and forth between neighbours. */
#define MINUTES 16

/* An ISO text up to its minute, and the local time of it. */
struct minute {
	uint64_t prefix[2];
	int64_t local_us;
};

/* A whole number that reads as a date too. */
struct packed {
	size_t digits;
	const char *pattern;
	int year_min, year_max;
	const char *why;
};

struct wm_instant_parser {
	struct minute minutes[MINUTES]; /* that texts were last in, by minute_of(); at first one of 1970 */
	struct wm_zone_steady steady;
	bool is_utc;
	bool is_auto; /* the family is undecided, or was decided by a value */
	/* of auto, while it is undecided: what a number of this column may be as well, so that no number of it is read; or NULL */
	const struct packed *refused;
	bool trusts_numbers;
	/* Where either: the family is undecided, and the first value tells whether it is what was asked for, or auto. */
	bool is_either;
	enum wm_time_family asked;
	bool takes_edges;
	int64_t least_us, most_us; /* that a time may be */
	enum wm_time_family family;
	enum wm_local_kind local_kind;

	const struct wm_zone *zone; /* borrowed */
	enum wm_repeated_hour repeated;
	bool has_reference;
	int64_t reference_us;
	char *pattern; /* with the conversions that stand for others written out; NULL without one */
	bool pattern_has_year;
	char advice[ADVICE_BYTES_MAX];
};

/* What a text with a date says. */
struct reading {
	int64_t local_us;
	int64_t minute_us; /* local_us without its seconds */
	int64_t offset_us;
	bool has_offset;
	bool has_clock;
};

/* An epoch number, cut into its digits. */
struct number {
	const char *whole;
	size_t whole_digits;
	const char *fraction;
	size_t fraction_digits;
	int64_t exponent;
	bool is_negative;
};

static const struct unit {
	int shift; /* of the point, to microseconds */
	uint64_t whole_max;
	uint64_t auto_min; /* whole numbers that auto takes for this unit: from here ... */
	uint64_t auto_max; /* ... up to and with this */
} units[] = {
	[WM_TIME_EPOCH_S] = { 6, UINT64_C(253402300799), 0, UINT64_C(99999999999) },
	[WM_TIME_EPOCH_MS] = { 3, UINT64_C(253402300799999), UINT64_C(100000000000), UINT64_C(99999999999999) },
	[WM_TIME_EPOCH_US] = { 0, UINT64_C(253402300799999999), UINT64_C(100000000000000),
		UINT64_C(99999999999999999) },
	[WM_TIME_EPOCH_NS] = { -3, UINT64_MAX, UINT64_C(100000000000000000), UINT64_MAX },
};

static const char *const family_names[] = {
	[WM_TIME_AUTO] = "auto",
	[WM_TIME_ISO] = "iso",
	[WM_TIME_EPOCH_S] = "s",
	[WM_TIME_EPOCH_MS] = "ms",
	[WM_TIME_EPOCH_US] = "us",
	[WM_TIME_EPOCH_NS] = "ns",
	[WM_TIME_CLF] = "clf",
	[WM_TIME_RFC2822] = "rfc2822",
	[WM_TIME_PATTERN] = "pattern",
	[WM_TIME_REFUSED] = "refused",
};

/* other_family[found][decided]: what auto says of a text of another family than it has decided on. */
#define OTHER(found, decided) found " where the times before are " decided ": give --time-format"
#define OTHER_ROW(found)                                                                                               \
	{                                                                                                              \
		[WM_TIME_ISO] = OTHER(found, "iso"), [WM_TIME_EPOCH_S] = OTHER(found, "epoch s"),                      \
		[WM_TIME_EPOCH_MS] = OTHER(found, "epoch ms"), [WM_TIME_EPOCH_US] = OTHER(found, "epoch us"),          \
		[WM_TIME_EPOCH_NS] = OTHER(found, "epoch ns"), [WM_TIME_CLF] = OTHER(found, "clf"),                    \
		[WM_TIME_RFC2822] = OTHER(found, "rfc2822"),                                                           \
	}
static const char *const other_family[][WM_TIME_RFC2822 + 1] = {
	[WM_TIME_ISO] = OTHER_ROW("an iso time"),
	[WM_TIME_EPOCH_S] = OTHER_ROW("a number of the size of epoch s"),
	[WM_TIME_EPOCH_MS] = OTHER_ROW("a number of the size of epoch ms"),
	[WM_TIME_EPOCH_US] = OTHER_ROW("a number of the size of epoch us"),
	[WM_TIME_EPOCH_NS] = OTHER_ROW("a number of the size of epoch ns"),
	[WM_TIME_CLF] = OTHER_ROW("a clf time"),
	[WM_TIME_RFC2822] = OTHER_ROW("an rfc2822 time"),
};

/* The first three letters of each are its abbreviation. */
static const char *const month_names[] = { "january", "february", "march", "april", "may", "june", "july", "august",
	"september", "october", "november", "december" };
static const char *const weekday_names[] = { "sunday", "monday", "tuesday", "wednesday", "thursday", "friday",
	"saturday" };

/* Pieces --------------------------------------------------------------------- */

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
fail(const char **why, const char *text)
{
	*why = text;
	return false;
}

static void
skip(struct wm_span *rest, size_t len)
{
	*rest = wm_span(rest->data + len, rest->len - len);
}

static bool
take_byte(struct wm_span *rest, char byte)
{
	if (rest->len == 0 || rest->data[0] != byte)
		return false;
	skip(rest, 1);
	return true;
}

static bool
skip_blanks(struct wm_span *rest)
{
	size_t len = 0;

	while (len < rest->len && is_blank(rest->data[len]))
		len++;
	skip(rest, len);
	return len != 0;
}

/* From min to max digits, as many as there are. */
static inline bool
take_digits(struct wm_span *rest, size_t min, size_t max, int *value)
{
	size_t len = 0;

	*value = 0;
	while (len < max && len < rest->len && wm_is_digit(rest->data[len]))
		*value = *value * 10 + (rest->data[len++] - '0');
	skip(rest, len);
	return len >= min;
}

/* Two digits at a place that is known to be there. */
static inline bool
two_digits(const char *at, int *value)
{
	unsigned tens = (unsigned char)(at[0] - '0');
	unsigned ones = (unsigned char)(at[1] - '0');

	*value = (int)(tens * 10 + ones);
	return tens < 10 && ones < 10;
}

/* Three digits at a place that is known to be there. */
static inline bool
three_digits(const char *at, int *value)
{
	unsigned first = (unsigned char)(at[0] - '0');
	unsigned second = (unsigned char)(at[1] - '0');
	unsigned third = (unsigned char)(at[2] - '0');

	*value = (int)(first * 100 + second * 10 + third);
	return first < 10 && second < 10 && third < 10;
}

/* 1 to 9 digits at *at as nanoseconds; *at is left behind them. Fast for 3 and 6. */
static inline bool
take_fraction(const char **at, const char *end, int *nanoseconds)
{
	const char *from = *at;
	int value = 0, unit = 1000000000, three;

	while (unit > 1 && end - from >= 3 && three_digits(from, &three)) {
		unit /= 1000;
		value += three * unit;
		from += 3;
	}
	while (unit > 1 && from < end && wm_is_digit(*from)) {
		unit /= 10;
		value += (*from++ - '0') * unit;
	}
	if (from == *at)
		return false;
	*nanoseconds = value;
	*at = from;
	return true;
}

/* "+05:30", "+0530", "+05", and "+00:53:28", which old local times have. */
static bool
take_offset(struct wm_span *rest, int64_t *offset_us)
{
	int hours, minutes = 0, seconds = 0;
	bool is_negative = take_byte(rest, '-');

	if ((!is_negative && !take_byte(rest, '+')) || !take_digits(rest, 2, 2, &hours))
		return false;
	if (take_byte(rest, ':')) {
		if (!take_digits(rest, 2, 2, &minutes))
			return false;
		if (take_byte(rest, ':') && !take_digits(rest, 2, 2, &seconds))
			return false;
	} else if (rest->len != 0 && wm_is_digit(rest->data[0]) && !take_digits(rest, 2, 2, &minutes)) {
		return false;
	}
	*offset_us = ((hours * 60 + minutes) * 60 + seconds) * WM_US_PER_SECOND;
	if (is_negative)
		*offset_us = -*offset_us;
	return hours < 24 && minutes < 60 && seconds < 60;
}

/* An English name or its first three letters, in any case. */
static bool
take_name(struct wm_span *rest, const char *const *names, int count, int *index)
{
	size_t letters = 0;

	while (letters < rest->len && wm_is_letter(rest->data[letters]))
		letters++;
	for (int i = 0; i < count; i++) {
		size_t name_len = strlen(names[i]);
		size_t same = 0;

		while (same < letters && same < name_len && wm_lower(rest->data[same]) == names[i][same])
			same++;
		if (same == letters && (same == 3 || same == name_len)) {
			skip(rest, letters);
			*index = i;
			return true;
		}
	}
	return false;
}

static inline bool
is_day(int64_t year, int month, int day)
{
	return month >= 1 && month <= 12 && day >= 1 &&
		(day <= 28 || (day <= 30 && month != 2) || day <= wm_civil_month_days(year, month));
}

/* Second 60 is the next second, 24:00:00 the next day. */
static inline bool
is_clock(int hour, int minute, int second, int nanoseconds)
{
	if (hour > 23)
		return hour == 24 && minute == 0 && second == 0 && nanoseconds == 0;
	return minute < 60 && second <= 60;
}

/* Local times of a date and a clock. */
static inline bool
set_local(struct reading *reading, int64_t year, int month, int day, int hour, int minute, int second, int nanoseconds,
	const char **why)
{
	if (year < WM_YEAR_MIN || year > WM_YEAR_MAX)
		return fail(why, OUT_OF_RANGE);
	if (!is_day(year, month, day))
		return fail(why, NO_DAY);
	if (!is_clock(hour, minute, second, nanoseconds))
		return fail(why, NO_CLOCK);
	reading->minute_us =
		wm_civil_days(year, month, day) * WM_US_PER_DAY + hour * US_PER_HOUR + minute * US_PER_MINUTE;
	reading->local_us = reading->minute_us + second * WM_US_PER_SECOND + nanoseconds / 1000;
	return true;
}

/* The instant of a local time in the parser's zone. */
static int64_t
from_local(struct wm_instant_parser *parser, int64_t local_us, enum wm_local_kind *kind)
{
	*kind = WM_LOCAL_ONCE;
	if (parser->is_utc)
		return local_us;
	if (local_us >= parser->steady.from_local_us && local_us < parser->steady.to_local_us)
		return local_us - parser->steady.offset_us;
	if (wm_zone_steady(parser->zone, local_us, &parser->steady))
		return local_us - parser->steady.offset_us;
	return wm_zone_from_local(parser->zone, local_us, parser->repeated, kind);
}

static bool
settle(struct wm_instant_parser *parser, const struct reading *reading, int64_t *time_us, const char **why)
{
	enum wm_local_kind kind = WM_LOCAL_ONCE;
	int64_t us = reading->has_offset ? reading->local_us - reading->offset_us
					 : from_local(parser, reading->local_us, &kind);

	if (us < parser->least_us || us > parser->most_us)
		return fail(why, OUT_OF_RANGE);
	parser->local_kind = kind;
	*time_us = us;
	return true;
}

/* ISO 8601 ------------------------------------------------------------------ */

/* What may follow a minute or second: nothing, Z or an offset. */
static bool
read_suffix(struct wm_span rest, struct reading *reading)
{
	reading->has_offset = rest.len != 0;
	reading->offset_us = 0;
	if (rest.len == 0 || (rest.len == 1 && (rest.data[0] | 0x20) == 'z'))
		return true;
	return take_offset(&rest, &reading->offset_us) && rest.len == 0;
}

static bool
read_iso(struct wm_span text, struct reading *reading, const char **why)
{
	const char *at = text.data;
	const char *end = at + text.len;
	int century, year, month, day, hour, minute, second = 0, nanoseconds = 0;

	*reading = (struct reading){ 0 };
	if (text.len < 10 || at[4] != '-' || at[7] != '-' || !two_digits(at, &century) || !two_digits(at + 2, &year) ||
		!two_digits(at + 5, &month) || !two_digits(at + 8, &day))
		return fail(why, NO_TIME);
	year += century * 100;
	if (text.len == 10)
		return set_local(reading, year, month, day, 0, 0, 0, 0, why);

	if (text.len < PREFIX_BYTES || (at[10] != 'T' && at[10] != 't' && at[10] != ' ') || at[13] != ':' ||
		!two_digits(at + 11, &hour) || !two_digits(at + 14, &minute))
		return fail(why, NO_TIME);
	at += PREFIX_BYTES;
	if (at < end && *at == ':') {
		if (end - at < 3 || !two_digits(at + 1, &second))
			return fail(why, NO_TIME);
		at += 3;
		if (at < end && (*at == '.' || *at == ',')) {
			at++;
			if (!take_fraction(&at, end, &nanoseconds))
				return fail(why, NO_TIME);
			if (at < end && wm_is_digit(*at))
				return fail(why, "more than 9 digits of a second");
		}
	}
	reading->has_clock = true;
	if (!set_local(reading, year, month, day, hour, minute, second, nanoseconds, why))
		return false;
	return read_suffix(wm_span(at, (size_t)(end - at)), reading) ||
		fail(why, at < end && (*at == '+' || *at == '-') ? NO_OFFSET : NO_TIME);
}

static inline uint64_t
load8(const char *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

/* The one of the remembered minutes that a text may be in. */
static inline struct minute *
minute_of(struct wm_instant_parser *parser, const char *text)
{
	return &parser->minutes[text[PREFIX_BYTES - 1] & (MINUTES - 1)];
}

static void
remember_minute(struct wm_instant_parser *parser, const char *text, int64_t local_us)
{
	*minute_of(parser, text) = (struct minute){ { load8(text), load8(text + 8) }, local_us };
}

static inline bool
is_in_minute(const struct minute *minute, const char *text)
{
	return ((load8(text + 8) ^ minute->prefix[1]) | (load8(text) ^ minute->prefix[0])) == 0;
}

/* ":SS.mmmZ" as one word, in microseconds; -1 if it is anything else. */
static inline int64_t
read_seconds_word(const char *at)
{
	const uint64_t frame = htole64(UINT64_C(0x5a3030302e30303a)), all = UINT64_C(0x0101010101010101);
	uint64_t word = le64toh(load8(at) ^ frame);

	/* What is left of each byte is a digit's value, and nothing of the ':', '.' and 'Z'. */
	if (((word & UINT64_C(0xff808080ff8080ff)) | ((word + all * (0x80 - 10)) & all * 0x80)) != 0)
		return -1;
	/* Each byte becomes ten times itself and the one behind. */
	word = word * 10 + (word >> 8);
	int64_t second = (int64_t)(word >> 8 & 0xff);
	return second > 60
		? -1
		: second * WM_US_PER_SECOND + (int64_t)(word >> 32 & 0xff) * 10000 + (int64_t)(word >> 48 & 0xff) * 100;
}

/*
 * The usual form of a time with milliseconds, in a minute that is remembered:
 * worth a way of its own. False says nothing but "the long way".
 */
static inline bool
parse_usual(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us)
{
	if (text.len != PREFIX_BYTES + 8)
		return false;
	const struct minute *minute = minute_of(parser, text.data);
	int64_t seconds_us = read_seconds_word(text.data + PREFIX_BYTES);
	if (!is_in_minute(minute, text.data) || seconds_us < 0 || minute->local_us + seconds_us > TIME_US_MAX)
		return false;
	parser->local_kind = WM_LOCAL_ONCE;
	*time_us = minute->local_us + seconds_us;
	return true;
}

/* The same for any text with seconds. */
static inline bool
parse_same_minute(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us)
{
	const char *at = text.data;
	const char *end = at + text.len;
	int second, nanoseconds = 0;

	if (text.len < PREFIX_BYTES + 3)
		return false;
	const struct minute *minute = minute_of(parser, at);
	if (!is_in_minute(minute, at))
		return false;
	if (at[16] != ':' || !two_digits(at + 17, &second) || second > 60)
		return false;
	at += PREFIX_BYTES + 3;
	if (at < end && (*at == '.' || *at == ',')) {
		at++;
		if (!take_fraction(&at, end, &nanoseconds))
			return false;
	}
	int64_t local_us = minute->local_us + second * WM_US_PER_SECOND + (unsigned)nanoseconds / 1000;
	if (end - at == 1 && *at == 'Z' && local_us <= TIME_US_MAX) {
		parser->local_kind = WM_LOCAL_ONCE;
		*time_us = local_us;
		return true;
	}
	struct reading reading = { .local_us = local_us };
	const char *why;
	return read_suffix(wm_span(at, (size_t)(end - at)), &reading) && settle(parser, &reading, time_us, &why);
}

static bool
parse_iso(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	struct reading reading;

	if (!read_iso(text, &reading, why) || !settle(parser, &reading, time_us, why))
		return false;
	/* 24:00 is good for no other second than 0. */
	if (reading.has_clock && memcmp(text.data + 11, "24", 2) != 0)
		remember_minute(parser, text.data, reading.minute_us);
	return true;
}

/* Epoch numbers ---------------------------------------------------------------- */

/* "-12", "12.5", "1.5e9"; leading zeros are decimal. */
static bool
scan_number(struct wm_span text, struct number *number)
{
	const char *at = text.data;
	const char *end = at + text.len;

	*number = (struct number){ 0 };
	if (at < end && *at == '-') {
		number->is_negative = true;
		at++;
	}
	number->whole = at;
	while (at < end && wm_is_digit(*at))
		at++;
	number->whole_digits = (size_t)(at - number->whole);
	if (number->whole_digits == 0)
		return false;
	if (at < end && *at == '.') {
		number->fraction = ++at;
		while (at < end && wm_is_digit(*at))
			at++;
		number->fraction_digits = (size_t)(at - number->fraction);
		if (number->fraction_digits == 0)
			return false;
	}
	if (at < end && (*at | 0x20) == 'e') {
		bool is_negative = ++at < end && *at == '-';

		at += at < end && (*at == '-' || *at == '+');
		if (at == end)
			return false;
		/* Held far outside of what any time has, so that the point below cannot overflow. */
		for (; at < end && wm_is_digit(*at); at++)
			if (number->exponent < INT64_C(1) << 40)
				number->exponent = number->exponent * 10 + (*at - '0');
		if (is_negative)
			number->exponent = -number->exponent;
	}
	return at == end;
}

static int
number_digit(const struct number *number, int64_t index)
{
	int64_t in_fraction = index - (int64_t)number->whole_digits;

	if (in_fraction < 0)
		return number->whole[index] - '0';
	return in_fraction < (int64_t)number->fraction_digits ? number->fraction[in_fraction] - '0' : 0;
}

/* Index of the first digit that is not zero; all of them if there is none. */
static int64_t
number_leading_zeros(const struct number *number)
{
	int64_t count = (int64_t)(number->whole_digits + number->fraction_digits);
	int64_t zeros = 0;

	while (zeros < count && number_digit(number, zeros) == 0)
		zeros++;
	return zeros;
}

static bool
number_is_zero(const struct number *number)
{
	return number_leading_zeros(number) == (int64_t)(number->whole_digits + number->fraction_digits);
}

/* The unit that auto takes a number of this size for. */
static enum wm_time_family
number_family(const struct number *number)
{
	int64_t digits = (int64_t)number->whole_digits + number->exponent - number_leading_zeros(number);

	if (number_is_zero(number) || digits <= 11)
		return WM_TIME_EPOCH_S;
	return digits <= 14 ? WM_TIME_EPOCH_MS : digits <= 17 ? WM_TIME_EPOCH_US : WM_TIME_EPOCH_NS;
}

/* Exact; what is finer than a microsecond is cut toward the past. */
static bool
number_to_us(const struct wm_instant_parser *parser, const struct number *number, int shift, int64_t *time_us,
	const char **why)
{
	int64_t count = (int64_t)(number->whole_digits + number->fraction_digits);
	int64_t first = number_leading_zeros(number);
	int64_t kept = (int64_t)number->whole_digits + number->exponent + shift; /* digits that are microseconds */
	int64_t us = 0;
	bool has_rest = false;

	if (first < count && kept - first > 18)
		return fail(why, OUT_OF_RANGE);
	for (int64_t i = first; first < count && i < kept; i++)
		us = us * 10 + number_digit(number, i);
	for (int64_t i = kept > first ? kept : first; i < count && !has_rest; i++)
		has_rest = number_digit(number, i) != 0;
	if (number->is_negative)
		us = -us - has_rest;
	if (us < parser->least_us || us > parser->most_us)
		return fail(why, OUT_OF_RANGE);
	*time_us = us;
	return true;
}

#define EIGHT_ZEROS UINT64_C(0x3030303030303030)

/* Of 8 bytes that are digits, the first one lowest; -1 if one of them is none. */
static inline int64_t
eight_digits(uint64_t bytes)
{
	uint64_t values = bytes - EIGHT_ZEROS;

	if (((bytes + UINT64_C(0x4646464646464646)) | values) & UINT64_C(0x8080808080808080))
		return -1;
	/* Neighbours are joined: to pairs, to fours, to eight. */
	values = (values * 10 + (values >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
	values = (values * 100 + (values >> 16)) & UINT64_C(0x0000ffff0000ffff);
	values = (values * 10000 + (values >> 32)) & UINT64_C(0x00000000ffffffff);
	return (int64_t)values;
}

/* Whole numbers of up to 19 digits. False says nothing but "the long way". */
static inline bool
parse_whole_epoch(const struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us)
{
	const struct unit *unit = &units[parser->family];
	bool is_negative = text.len != 0 && text.data[0] == '-';
	const char *at = text.data + is_negative;
	const char *end = text.data + text.len;
	uint64_t value = 0;

	if (end - at < 1 || end - at > 19)
		return false;
	size_t head = (size_t)(end - at) % 8;
	if (end - at > 8 && head != 0) {
		/* The digits before the last 8 or 16, with zeros before them. */
		int64_t digits = eight_digits(load8(at) << (64 - 8 * head) | EIGHT_ZEROS >> 8 * head);

		if (digits < 0)
			return false;
		value = (uint64_t)digits;
		at += head;
	}
	for (; end - at >= 8; at += 8) {
		int64_t digits = eight_digits(load8(at));

		if (digits < 0)
			return false;
		value = value * 100000000 + (uint64_t)digits;
	}
	for (; at < end; at++) {
		if (!wm_is_digit(*at))
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	if (value > unit->whole_max)
		return false;
	if (parser->is_auto && (value < unit->auto_min || value > unit->auto_max))
		return false;
	int64_t us;
	switch (parser->family) {
	case WM_TIME_EPOCH_S:
		us = (int64_t)value * 1000000;
		break;
	case WM_TIME_EPOCH_MS:
		us = (int64_t)value * 1000;
		break;
	case WM_TIME_EPOCH_NS:
		us = (int64_t)(value / 1000 + (is_negative && value % 1000 != 0));
		break;
	default:
		us = (int64_t)value;
		break;
	}
	us = is_negative ? -us : us;
	if (us < TIME_US_MIN)
		return false;
	*time_us = us;
	return true;
}

static bool
parse_epoch(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	struct number number;

	if (!scan_number(text, &number))
		return fail(why, NO_TIME);
	if (parser->is_auto && number_family(&number) != parser->family && !number_is_zero(&number))
		return fail(why, other_family[number_family(&number)][parser->family]);
	return number_to_us(parser, &number, units[parser->family].shift, time_us, why);
}

/* CLF and RFC 2822 ---------------------------------------------------------------- */

/* "10/Oct/2000:13:55:36 -0700", also in brackets and with a fraction, as HAProxy writes it. */
static bool
read_clf(struct wm_span text, struct reading *reading, const char **why)
{
	struct wm_span rest = text;
	int day, month, year, hour, minute, second, nanoseconds = 0;
	bool has_bracket = take_byte(&rest, '[');

	*reading = (struct reading){ .has_clock = true };
	if (!take_digits(&rest, 2, 2, &day) || !take_byte(&rest, '/') || !take_name(&rest, month_names, 12, &month) ||
		!take_byte(&rest, '/') || !take_digits(&rest, 4, 4, &year) || !take_byte(&rest, ':') ||
		!take_digits(&rest, 2, 2, &hour) || !take_byte(&rest, ':') || !take_digits(&rest, 2, 2, &minute) ||
		!take_byte(&rest, ':') || !take_digits(&rest, 2, 2, &second))
		return fail(why, NO_TIME);
	if (take_byte(&rest, '.')) {
		const char *at = rest.data;

		if (!take_fraction(&at, rest.data + rest.len, &nanoseconds))
			return fail(why, NO_TIME);
		skip(&rest, (size_t)(at - rest.data));
	}
	if (take_byte(&rest, ' ')) {
		reading->has_offset = true;
		if (!take_offset(&rest, &reading->offset_us))
			return fail(why, NO_OFFSET);
	}
	if ((has_bracket && !take_byte(&rest, ']')) || rest.len != 0)
		return fail(why, NO_TIME);
	return set_local(reading, year, month + 1, day, hour, minute, second, nanoseconds, why);
}

/* The zone names of RFC 2822 and 822. */
static bool
take_zone_name(struct wm_span *rest, int64_t *offset_us)
{
	static const struct {
		const char *name;
		int hours;
	} zones[] = { { "ut", 0 }, { "utc", 0 }, { "gmt", 0 }, { "z", 0 }, { "est", -5 }, { "edt", -4 }, { "cst", -6 },
		{ "cdt", -5 }, { "mst", -7 }, { "mdt", -6 }, { "pst", -8 }, { "pdt", -7 } };
	size_t letters = 0;

	while (letters < rest->len && wm_is_letter(rest->data[letters]))
		letters++;
	for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
		size_t same = 0;

		while (same < letters && wm_lower(rest->data[same]) == zones[i].name[same])
			same++;
		if (same == letters && zones[i].name[same] == '\0') {
			*offset_us = zones[i].hours * US_PER_HOUR;
			skip(rest, letters);
			return true;
		}
	}
	return false;
}

/* "Fri, 21 Nov 1997 09:55:06 -0600 (CST)": weekday, seconds, zone and comment may be left out. */
static bool
read_rfc2822(struct wm_span text, struct reading *reading, const char **why)
{
	struct wm_span rest = text;
	int weekday = -1, day, month, year, hour, minute, second = 0;

	*reading = (struct reading){ .has_clock = true };
	if (rest.len != 0 && wm_is_letter(rest.data[0])) {
		if (!take_name(&rest, weekday_names, 7, &weekday) || !take_byte(&rest, ','))
			return fail(why, NO_TIME);
		skip_blanks(&rest);
	}
	if (!take_digits(&rest, 1, 2, &day) || !skip_blanks(&rest) || !take_name(&rest, month_names, 12, &month) ||
		!skip_blanks(&rest))
		return fail(why, NO_TIME);
	size_t before_year = rest.len;
	if (!take_digits(&rest, 2, 4, &year))
		return fail(why, NO_TIME);
	if (before_year - rest.len == 2)
		year += year < 50 ? 2000 : 1900;
	else if (before_year - rest.len == 3)
		year += 1900;
	if (!skip_blanks(&rest) || !take_digits(&rest, 2, 2, &hour) || !take_byte(&rest, ':') ||
		!take_digits(&rest, 2, 2, &minute) || (take_byte(&rest, ':') && !take_digits(&rest, 2, 2, &second)))
		return fail(why, NO_TIME);
	if (skip_blanks(&rest) && rest.len != 0 && rest.data[0] != '(') {
		reading->has_offset = true;
		if (wm_is_letter(rest.data[0]) ? !take_zone_name(&rest, &reading->offset_us)
					       : !take_offset(&rest, &reading->offset_us))
			return fail(why, NO_OFFSET);
		skip_blanks(&rest);
	}
	if (take_byte(&rest, '(')) {
		const char *closing = memchr(rest.data, ')', rest.len);

		if (closing == NULL)
			return fail(why, NO_TIME);
		skip(&rest, (size_t)(closing + 1 - rest.data));
	}
	if (rest.len != 0)
		return fail(why, NO_TIME);
	if (!set_local(reading, year, month + 1, day, hour, minute, second, 0, why))
		return false;
	if (weekday >= 0 && wm_floor_mod(wm_civil_days(year, month + 1, day) + 4, 7) != weekday)
		return fail(why, "the weekday is not that of the date");
	return true;
}

/* Patterns --------------------------------------------------------------------- */

#define HAS_YEAR 1u
#define HAS_MONTH 2u
#define HAS_YEAR_DAY 4u
#define HAS_EPOCH 8u
#define HAS_HOUR_12 16u
#define HAS_HALF 32u
#define HAS_HOUR 64u

/* What each conversion stands for: itself or others, and what it says. */
static const struct {
	char conversion;
	const char *meaning;
	unsigned has;
} conversions[] = {
	{ 'Y', "%Y", HAS_YEAR },
	{ 'y', "%y", HAS_YEAR },
	{ 'm', "%m", HAS_MONTH },
	{ 'b', "%b", HAS_MONTH },
	{ 'B', "%b", HAS_MONTH },
	{ 'h', "%b", HAS_MONTH },
	{ 'd', "%d", 0 },
	{ 'e', "%d", 0 },
	{ 'j', "%j", HAS_YEAR_DAY },
	{ 's', "%s", HAS_EPOCH },
	{ 'F', "%Y-%m-%d", HAS_YEAR | HAS_MONTH },
	{ 'D', "%m/%d/%y", HAS_YEAR | HAS_MONTH },
	{ 'H', "%H", HAS_HOUR },
	{ 'T', "%H:%M:%S", HAS_HOUR },
	{ 'R', "%H:%M", HAS_HOUR },
	{ 'I', "%I", HAS_HOUR_12 },
	{ 'p', "%p", HAS_HALF },
	{ 'M', "%M", 0 },
	{ 'S', "%S", 0 },
	{ 'f', "%f", 0 },
	{ 'a', "%a", 0 },
	{ 'A', "%a", 0 },
	{ 'z', "%z", 0 },
	{ 'Z', "%Z", 0 },
	{ 'n', " ", 0 },
	{ 't', " ", 0 },
	{ '%', "%%", 0 },
};
#define CONVERSIONS_COUNT (sizeof(conversions) / sizeof(conversions[0]))

static bool
compile_pattern(struct wm_instant_parser *parser, struct wm_span pattern, struct wm_err *err)
{
	struct wm_buf meaning;
	unsigned has = 0;
	int shown = (int)(pattern.len < WM_SHOWN_BYTES_MAX ? pattern.len : WM_SHOWN_BYTES_MAX);
	bool ok = true;

	wm_buf_init(&meaning, WM_BUF_UNBOUNDED);
	for (size_t i = 0; ok && i < pattern.len; i++) {
		if (pattern.data[i] != '%') {
			wm_buf_add_byte(&meaning, pattern.data[i]);
			continue;
		}
		size_t known = 0;

		i++;
		while (known < CONVERSIONS_COUNT &&
			(i == pattern.len || conversions[known].conversion != pattern.data[i]))
			known++;
		if (known < CONVERSIONS_COUNT) {
			wm_buf_add_text(&meaning, conversions[known].meaning);
			has |= conversions[known].has;
		} else {
			ok = wm_err_set(err, WM_ERR_USAGE,
				"time format '%.*s': unknown conversion '%%%.*s': there are " CONVERSIONS, shown,
				pattern.data, i < pattern.len, pattern.data + i);
		}
	}
	if (ok && !(has & HAS_HOUR_12) != !(has & HAS_HALF))
		ok = wm_err_set(
			err, WM_ERR_USAGE, "time format '%.*s': %%I and %%p need each other", shown, pattern.data);
	else if (ok && (has & HAS_HOUR_12) && (has & HAS_HOUR))
		ok = wm_err_set(
			err, WM_ERR_USAGE, "time format '%.*s': %%I and %%H are both the hour", shown, pattern.data);
	else if (ok && !(has & (HAS_YEAR | HAS_MONTH | HAS_YEAR_DAY | HAS_EPOCH)))
		ok = wm_err_set(err, WM_ERR_USAGE, "time format '%.*s': no date: it needs a day, month and year", shown,
			pattern.data);
	else if (ok && !(has & (HAS_YEAR | HAS_EPOCH)) && !parser->has_reference)
		ok = wm_err_set(err, WM_ERR_USAGE,
			"time format '%.*s': no year: say which is meant with --time-reference", shown, pattern.data);
	parser->pattern_has_year = (has & (HAS_YEAR | HAS_EPOCH)) != 0;
	wm_buf_add_byte(&meaning, '\0');
	parser->pattern = meaning.data;
	return ok;
}

/* What a pattern has read; the defaults are those of conversions that it lacks. */
struct fields {
	int year, month, day, year_day;
	int hour, hour_12, minute, second, nanoseconds;
	bool is_afternoon, has_hour_12;
	bool has_epoch, epoch_is_negative;
	int64_t epoch_s;
	int64_t offset_us;
	bool has_offset;
};

/* One or two digits, a blank before them allowed. */
static bool
take_padded(struct wm_span *rest, int *value)
{
	(void)take_byte(rest, ' ');
	return take_digits(rest, 1, 2, value);
}

static bool
take_epoch_seconds(struct wm_span *rest, struct fields *fields)
{
	size_t digits = 0;

	fields->has_epoch = true;
	fields->epoch_is_negative = take_byte(rest, '-');
	fields->epoch_s = 0;
	/* 12 digits hold every year there is. */
	for (; rest->len != 0 && wm_is_digit(rest->data[0]) && digits < 12; digits++) {
		fields->epoch_s = fields->epoch_s * 10 + (rest->data[0] - '0');
		skip(rest, 1);
	}
	return digits != 0;
}

static bool
read_conversion(char conversion, struct wm_span *rest, struct fields *fields)
{
	int index;

	switch (conversion) {
	case 'Y':
		return take_digits(rest, 4, 4, &fields->year);
	case 'y':
		if (!take_digits(rest, 2, 2, &fields->year))
			return false;
		fields->year += fields->year < 69 ? 2000 : 1900;
		return true;
	case 'm':
		return take_padded(rest, &fields->month);
	case 'b':
		if (!take_name(rest, month_names, 12, &index))
			return false;
		fields->month = index + 1;
		return true;
	case 'd':
		return take_padded(rest, &fields->day);
	case 'j':
		return take_digits(rest, 1, 3, &fields->year_day) && fields->year_day != 0;
	case 'H':
		return take_padded(rest, &fields->hour);
	case 'I':
		fields->has_hour_12 = true;
		return take_padded(rest, &fields->hour_12) && fields->hour_12 >= 1 && fields->hour_12 <= 12;
	case 'p':
		if (rest->len < 2 || wm_lower(rest->data[1]) != 'm' ||
			(wm_lower(rest->data[0]) != 'a' && wm_lower(rest->data[0]) != 'p'))
			return false;
		fields->is_afternoon = wm_lower(rest->data[0]) == 'p';
		skip(rest, 2);
		return true;
	case 'M':
		return take_padded(rest, &fields->minute);
	case 'S':
		return take_padded(rest, &fields->second);
	case 'f': {
		const char *at = rest->data;

		if (!take_fraction(&at, rest->data + rest->len, &fields->nanoseconds))
			return false;
		skip(rest, (size_t)(at - rest->data));
		return true;
	}
	case 'a':
		return take_name(rest, weekday_names, 7, &index);
	case 's':
		return take_epoch_seconds(rest, fields);
	case 'z':
		fields->has_offset = true;
		fields->offset_us = 0;
		return take_byte(rest, 'Z') || take_byte(rest, 'z') || take_offset(rest, &fields->offset_us);
	case 'Z':
		fields->has_offset = true;
		fields->offset_us = 0;
		if (rest->len < 3 || (memcmp(rest->data, "UTC", 3) != 0 && memcmp(rest->data, "GMT", 3) != 0))
			return false;
		skip(rest, 3);
		return true;
	default:
		assert(conversion == '%');
		return take_byte(rest, '%');
	}
}

/* The instant of what was read, in a year. */
static bool
settle_fields(
	struct wm_instant_parser *parser, const struct fields *fields, int64_t year, int64_t *time_us, const char **why)
{
	struct reading reading = { .offset_us = fields->offset_us, .has_offset = fields->has_offset };
	int month = fields->month, day = fields->day;
	int hour = fields->has_hour_12 ? fields->hour_12 % 12 + 12 * fields->is_afternoon : fields->hour;

	if (fields->year_day != 0) {
		struct wm_civil date = wm_civil_from_days(wm_civil_days(year, 1, 1) + fields->year_day - 1);

		if (date.year != year)
			return fail(why, NO_DAY);
		month = date.month;
		day = date.day;
	}
	return set_local(&reading, year, month, day, hour, fields->minute, fields->second, fields->nanoseconds, why) &&
		settle(parser, &reading, time_us, why);
}

/* Of the years that have the date, the one whose instant is nearest to the reference; of two the earlier. */
static bool
settle_nearest(struct wm_instant_parser *parser, const struct fields *fields, int64_t *time_us, const char **why)
{
	int64_t middle = wm_civil_from_days(wm_floor_div(parser->reference_us, WM_US_PER_DAY)).year;
	enum wm_local_kind kind = WM_LOCAL_ONCE;
	int64_t nearest_us = 0;
	bool is_found = false;

	*why = NO_DAY;
	for (int64_t year = middle - NEAREST_YEARS; year <= middle + NEAREST_YEARS; year++) {
		int64_t us;

		if (!settle_fields(parser, fields, year, &us, why))
			continue;
		if (is_found && llabs(us - parser->reference_us) >= llabs(nearest_us - parser->reference_us))
			continue;
		is_found = true;
		nearest_us = us;
		kind = parser->local_kind;
	}
	if (!is_found)
		return false;
	parser->local_kind = kind;
	*time_us = nearest_us;
	return true;
}

static bool
parse_pattern(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	struct wm_span rest = text;
	struct fields fields = { .month = 1, .day = 1 };

	for (const char *at = parser->pattern; *at != '\0'; at++) {
		if (*at == '%') {
			if (!read_conversion(*++at, &rest, &fields))
				return fail(why, *at == 'Z' ? "of zone names only UTC and GMT can be read" : MISFIT);
		} else if (is_blank(*at)) {
			while (is_blank(at[1]))
				at++;
			if (!skip_blanks(&rest))
				return fail(why, MISFIT);
		} else if (!take_byte(&rest, *at)) {
			return fail(why, MISFIT);
		}
	}
	if (rest.len != 0)
		return fail(why, "it goes on after the end of the time format");
	if (!fields.has_epoch)
		return parser->pattern_has_year ? settle_fields(parser, &fields, fields.year, time_us, why)
						: settle_nearest(parser, &fields, time_us, why);

	struct reading reading = { .has_offset = true };
	/* A fraction belongs to the number, so its sign is the number's; cut toward the past. */
	reading.local_us = fields.epoch_is_negative
		? -fields.epoch_s * WM_US_PER_SECOND - (fields.nanoseconds + 999) / 1000
		: fields.epoch_s * WM_US_PER_SECOND + fields.nanoseconds / 1000;
	return settle(parser, &reading, time_us, why);
}

/* Which family ------------------------------------------------------------------ */

/* "1/2/2024", "13.04.14", "01-02-2024 ...": the order of day and month is anybody's guess. */
static bool
is_month_or_day_first(struct wm_span text)
{
	struct wm_span rest = text;
	int value;

	if (!take_digits(&rest, 1, 2, &value) || rest.len == 0 || memchr("/-.", rest.data[0], 3) == NULL)
		return false;
	char separator = rest.data[0];
	skip(&rest, 1);
	return take_digits(&rest, 1, 2, &value) && take_byte(&rest, separator) && take_digits(&rest, 2, 4, &value);
}

/* By its looks; WM_TIME_AUTO for none. The text need not be right in all its parts. */
static enum wm_time_family
guess_family(struct wm_span text)
{
	struct number number;
	size_t digits = 0;

	if (scan_number(text, &number))
		return number_family(&number);
	if (text.len != 0 && text.data[0] == '[')
		return WM_TIME_CLF;
	while (digits < text.len && wm_is_digit(text.data[digits]))
		digits++;
	char separator = digits < text.len ? text.data[digits] : '\0';
	char next = digits + 1 < text.len ? text.data[digits + 1] : '\0';
	if (digits == 4 && separator == '-')
		return WM_TIME_ISO;
	if (digits == 2 && separator == '/' && wm_is_letter(next))
		return WM_TIME_CLF;
	if ((digits == 1 || digits == 2) && separator == ' ' && wm_is_letter(next))
		return WM_TIME_RFC2822;
	const char *comma = text.len != 0 && wm_is_letter(text.data[0]) ? memchr(text.data, ',', text.len) : NULL;
	struct wm_span weekday = wm_span(text.data, comma == NULL ? 0 : (size_t)(comma - text.data));
	int index;
	if (take_name(&weekday, weekday_names, 7, &index) && weekday.len == 0)
		return WM_TIME_RFC2822;
	return WM_TIME_AUTO;
}

#define PACKED(digits, pattern, unit)                                                                                  \
	digits " digits could be a date or a number: give --time-format " pattern " or " unit

/* As epochs, the ten digits begin in 2030. */
static const struct packed packed_dates[] = {
	{ 4, "%Y", 1000, 2999, PACKED("4", "%Y", "s") },
	{ 6, "%Y%m", 1000, 2999, PACKED("6", "%Y%m", "s") },
	{ 8, "%Y%m%d", 1000, 2999, PACKED("8", "%Y%m%d", "s") },
	{ 10, "%Y%m%d%H", 1900, 2099, PACKED("10", "%Y%m%d%H", "s") },
	{ 12, "%Y%m%d%H%M", 1000, 2999, PACKED("12", "%Y%m%d%H%M", "ms") },
	{ 14, "%Y%m%d%H%M%S", 1000, 2999, PACKED("14", "%Y%m%d%H%M%S", "ms") },
	{ 17, "%Y%m%d%H%M%S%f", 1000, 2999, PACKED("17", "%Y%m%d%H%M%S%f", "us") },
};
#define PACKED_COUNT (sizeof(packed_dates) / sizeof(packed_dates[0]))

/* Whether a text is digits alone that read as a date; NULL: it is not. */
static const struct packed *
find_packed(struct wm_span text)
{
	const struct packed *found = NULL;
	struct wm_span rest = text;
	int year, month = 1, day = 1, hour = 0, minute = 0, second = 0, more;

	for (size_t i = 0; i < PACKED_COUNT; i++)
		if (packed_dates[i].digits == text.len)
			found = &packed_dates[i];
	if (found == NULL || !take_digits(&rest, 4, 4, &year))
		return NULL;
	for (int *parts[] = { &month, &day, &hour, &minute, &second }, **part = parts;
		rest.len >= 2 && part < parts + 5;)
		if (!take_digits(&rest, 2, 2, *part++))
			return NULL;
	if (rest.len != 0 && !take_digits(&rest, rest.len, rest.len, &more))
		return NULL;
	if (year < found->year_min || year > found->year_max || !is_day(year, month, day) ||
		!is_clock(hour, minute, second, 0))
		return NULL;
	return found;
}

static bool
parse_as(struct wm_instant_parser *parser, enum wm_time_family family, struct wm_span text, int64_t *time_us,
	const char **why)
{
	struct reading reading;

	switch (family) {
	case WM_TIME_ISO:
		return parse_iso(parser, text, time_us, why);
	case WM_TIME_EPOCH_S:
	case WM_TIME_EPOCH_MS:
	case WM_TIME_EPOCH_US:
	case WM_TIME_EPOCH_NS:
		return parse_epoch(parser, text, time_us, why);
	case WM_TIME_CLF:
		return read_clf(text, &reading, why) && settle(parser, &reading, time_us, why);
	case WM_TIME_RFC2822:
		return read_rfc2822(text, &reading, why) && settle(parser, &reading, time_us, why);
	case WM_TIME_PATTERN:
		return parse_pattern(parser, text, time_us, why);
	default:
		return fail(why, NO_TIME);
	}
}

/* A number where none was taken yet; true if it tells nothing but that time. */
static bool
look_at_number(struct wm_instant_parser *parser, struct wm_span text, const struct number *number, const char **why)
{
	bool is_one = number->whole_digits == 1 && number->whole[0] == '1' && number->exponent == 0;

	for (size_t i = 0; is_one && i < number->fraction_digits; i++)
		is_one = number->fraction[i] == '0';
	if (is_one && number->is_negative)
		return fail(why, "-1 often stands for no time: give --time-format s if it is one");
	const struct packed *packed = find_packed(text);
	if (parser->refused == NULL)
		parser->refused = packed;
	if (parser->refused != NULL)
		return fail(why, packed != NULL ? packed->why : parser->refused->why);
	return true;
}

/* The first value that parses decides, but for one that often stands for no time. */
static bool
parse_auto(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	enum wm_time_family family = guess_family(text);
	struct number number;

	if (scan_number(text, &number)) {
		if (number_is_zero(&number) && parser->refused == NULL) {
			parser->local_kind = WM_LOCAL_ONCE;
			*time_us = 0;
			return true;
		}
		if (!parser->trusts_numbers && !look_at_number(parser, text, &number, why))
			return false;
	}
	if (family == WM_TIME_AUTO)
		return fail(why, is_month_or_day_first(text) ? WHICH_FIRST : NO_TIME);
	parser->family = family;
	if (parse_as(parser, family, text, time_us, why))
		return true;
	parser->family = WM_TIME_AUTO;
	return false;
}

/* What was asked for, from now on. */
static void
settle_asked(struct wm_instant_parser *parser)
{
	parser->family = parser->asked;
	parser->is_auto = parser->is_either = false;
}

/* Or auto. */
static void
settle_auto(struct wm_instant_parser *parser)
{
	free(parser->pattern);
	parser->pattern = NULL;
	parser->is_either = false;
}

static bool
parse_undecided(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	if (parser->is_either) {
		settle_asked(parser);
		if (parse_as(parser, parser->asked, text, time_us, why))
			return true;
		parser->family = WM_TIME_AUTO;
		parser->is_auto = parser->is_either = true;
	}
	bool is_parsed = parse_auto(parser, text, time_us, why);
	if (parser->is_either && (parser->family != WM_TIME_AUTO || parser->refused != NULL))
		settle_auto(parser);
	return is_parsed;
}

/* Appends a pattern that reads a text, by its looks; false if there is none. *has_year: else it needs a reference. */
static bool
find_pattern(const struct wm_instant_parser *parser, struct wm_span text, enum wm_shape_order order, bool *is_ordered,
	bool *has_year, struct wm_buf *out)
{
	struct wm_instant_parser trial = *parser;
	size_t before = out->len;
	const char *why;
	struct wm_err err;
	int64_t time_us;

	if (!wm_shape_guess(text, order, is_ordered, out))
		return false;
	trial.family = WM_TIME_PATTERN;
	trial.has_reference = true;
	bool is_read = compile_pattern(&trial, wm_span(out->data + before, out->len - before), &err) &&
		parse_pattern(&trial, text, &time_us, &why);
	free(trial.pattern);
	*has_year = trial.pattern_has_year;
	if (!is_read)
		out->len = before;
	return is_read;
}

/* Says behind *why which pattern would read the text, if one is known. */
static __attribute__((noinline)) void
advise(struct wm_instant_parser *parser, struct wm_span text, const char **why)
{
	bool is_ordered = false, has_year = false, is_first = true;
	struct wm_buf out, pattern;

	if (text.len > WM_SHOWN_BYTES_MAX)
		return;
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_buf_init(&pattern, WM_BUF_UNBOUNDED);
	wm_buf_add_text(&out, *why);
	for (int order = WM_SHAPE_MONTH_FIRST; order == 0 || (is_ordered && order <= WM_SHAPE_DAY_FIRST); order++) {
		wm_buf_reset(&pattern);
		if (!find_pattern(parser, text, (enum wm_shape_order)order, &is_ordered, &has_year, &pattern))
			continue;
		wm_buf_add_text(&out,
			!is_first                 ? " or"
				: *why == MISFIT  ? ": it looks like"
				: *why == NO_TIME ? ": give --time-format"
						  : "");
		wm_buf_addf(&out, " '%.*s'", (int)pattern.len, pattern.data);
		is_first = false;
	}
	if (!is_first && !has_year && !parser->has_reference)
		wm_buf_add_text(&out, " and --time-reference");
	if (!is_first && out.len < sizeof(parser->advice)) {
		memcpy(parser->advice, out.data, out.len);
		parser->advice[out.len] = '\0';
		*why = parser->advice;
	}
	wm_buf_release(&pattern);
	wm_buf_release(&out);
}

static bool parse_any(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why);

/* Whether all digits of a time of day are zero; what stands behind it is an offset. */
static bool
is_midnight(struct wm_span clock)
{
	for (size_t i = 1; i < clock.len && memchr("Zz+-", clock.data[i], 4) == NULL; i++)
		if (wm_is_digit(clock.data[i]) && clock.data[i] != '0')
			return false;
	return true;
}

/* A date of the year 0 or 10000 is read as the same day of another cycle of the calendar. False, and *why NULL, for another text. */
static bool
parse_edge(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	static const char last_day[] = "10000-01-01";
	const size_t last_day_len = sizeof(last_day) - 1;
	bool is_after = text.len >= last_day_len && memcmp(text.data, last_day, last_day_len) == 0;
	char moved[WM_INSTANT_TEXT_MAX];

	*why = NULL;
	if (text.len > sizeof(moved) || (!is_after && (text.len < 5 || memcmp(text.data, "0000-", 5) != 0)))
		return false;
	if (is_after && !is_midnight(wm_span(text.data + last_day_len, text.len - last_day_len)))
		return fail(why, OUT_OF_RANGE);
	size_t year_len = is_after ? 5 : 4;
	memcpy(moved, is_after ? "9600" : "0400", 4);
	memcpy(moved + 4, text.data + year_len, text.len - year_len);
	if (!parse_any(parser, wm_span(moved, text.len - year_len + 4), time_us, why))
		return false;
	*time_us += is_after ? CYCLE_US : -CYCLE_US;
	return true;
}

static bool
parse_decided(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	if (parse_as(parser, parser->family, text, time_us, why))
		return true;
	if (parser->family == WM_TIME_PATTERN)
		return false;
	enum wm_time_family found = guess_family(text);
	if (parser->is_auto && found != WM_TIME_AUTO && found != parser->family)
		*why = other_family[found][parser->family];
	else if (found == WM_TIME_AUTO && is_month_or_day_first(text))
		*why = WHICH_FIRST;
	return false;
}

static bool
parse_any(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	if (parser->takes_edges && (parse_edge(parser, text, time_us, why) || *why != NULL))
		return *why == NULL;
	bool is_parsed = parser->family == WM_TIME_AUTO ? parse_undecided(parser, text, time_us, why)
							: parse_decided(parser, text, time_us, why);
	if (!is_parsed && (*why == NO_TIME || *why == MISFIT || *why == WHICH_FIRST))
		advise(parser, text, why);
	return is_parsed;
}

__attribute__((noinline)) static bool
parse_other(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	switch (parser->family) {
	case WM_TIME_ISO:
		if (parse_same_minute(parser, text, time_us))
			return true;
		break;
	case WM_TIME_EPOCH_S:
	case WM_TIME_EPOCH_MS:
	case WM_TIME_EPOCH_US:
	case WM_TIME_EPOCH_NS:
		if (parse_whole_epoch(parser, text, time_us))
			return true;
		break;
	default:
		break;
	}
	return parse_any(parser, text, time_us, why);
}

/* Without a call that it has to return from: then no register is to be saved. */
bool
wm_instant_parse(struct wm_instant_parser *parser, struct wm_span text, int64_t *time_us, const char **why)
{
	return (parser->family == WM_TIME_ISO && parse_usual(parser, text, time_us)) ||
		parse_other(parser, text, time_us, why);
}

/* The parser itself -------------------------------------------------------------- */

struct wm_instant_parser *
wm_instant_parser_new(struct wm_span format, const struct wm_zone *zone, enum wm_repeated_hour repeated,
	const int64_t *reference_us, struct wm_err *err)
{
	struct wm_instant_parser *parser = wm_calloc(1, sizeof(*parser));
	bool is_known = false;

	parser->zone = zone;
	parser->is_utc = wm_zone_is_utc(zone);
	parser->repeated = repeated;
	parser->least_us = TIME_US_MIN;
	parser->most_us = TIME_US_MAX;
	parser->has_reference = reference_us != NULL;
	if (reference_us != NULL)
		parser->reference_us = *reference_us < TIME_US_MIN ? TIME_US_MIN
			: *reference_us > TIME_US_MAX              ? TIME_US_MAX
								   : *reference_us;
	for (size_t i = 0; i < MINUTES; i++)
		memcpy(parser->minutes[i].prefix, "1970-01-01T00:00", PREFIX_BYTES);
	for (enum wm_time_family family = WM_TIME_AUTO; family < WM_TIME_PATTERN; family++) {
		if (!wm_span_is(format, family_names[family]))
			continue;
		parser->family = family;
		parser->is_auto = family == WM_TIME_AUTO;
		is_known = true;
	}
	if (!is_known && format.len != 0 && memchr(format.data, '%', format.len) != NULL) {
		parser->family = WM_TIME_PATTERN;
		is_known = compile_pattern(parser, format, err);
	} else if (!is_known) {
		(void)wm_err_set(err, WM_ERR_USAGE,
			"unknown time format '%.*s': there are auto, iso, s, ms, us, ns, clf, rfc2822, and patterns "
			"such "
			"as '%%d.%%m.%%Y %%H:%%M:%%S'",
			(int)(format.len < WM_SHOWN_BYTES_MAX ? format.len : WM_SHOWN_BYTES_MAX), format.data);
	}
	if (is_known)
		return parser;
	wm_instant_parser_free(parser);
	return NULL;
}

void
wm_instant_parser_free(struct wm_instant_parser *parser)
{
	if (parser == NULL)
		return;
	free(parser->pattern);
	free(parser);
}

void
wm_instant_parser_trust_numbers(struct wm_instant_parser *parser)
{
	parser->trusts_numbers = true;
}

void
wm_instant_parser_or_auto(struct wm_instant_parser *parser)
{
	if (parser->is_auto)
		return;
	parser->asked = parser->family;
	parser->family = WM_TIME_AUTO;
	parser->is_auto = parser->is_either = true;
}

bool
wm_instant_parser_took_numbers(const struct wm_instant_parser *parser)
{
	return parser->is_auto && !parser->trusts_numbers && parser->family >= WM_TIME_EPOCH_S &&
		parser->family <= WM_TIME_EPOCH_NS;
}

bool
wm_instant_parser_is_refused(const struct wm_instant_parser *parser)
{
	return parser->refused != NULL && parser->family == WM_TIME_AUTO;
}

void
wm_instant_parser_take_edges(struct wm_instant_parser *parser)
{
	parser->takes_edges = true;
	parser->least_us = EDGE_US_MIN - WM_US_PER_DAY;
	parser->most_us = EDGE_US_MAX + WM_US_PER_DAY;
}

enum wm_local_kind
wm_instant_parser_local_kind(const struct wm_instant_parser *parser)
{
	return parser->local_kind;
}

enum wm_time_family
wm_instant_parser_family(const struct wm_instant_parser *parser)
{
	return parser->family;
}

const char *
wm_time_family_name(enum wm_time_family family)
{
	return family_names[family];
}

bool
wm_instant_looks_like_time(struct wm_span text)
{
	struct reading reading = { 0 };
	const char *why;

	switch (guess_family(text)) {
	case WM_TIME_ISO:
		return read_iso(text, &reading, &why) && reading.has_clock;
	case WM_TIME_CLF:
		return read_clf(text, &reading, &why);
	case WM_TIME_RFC2822:
		return read_rfc2822(text, &reading, &why);
	default:
		return false;
	}
}

void
wm_instant_parser_encode(const struct wm_instant_parser *parser, struct wm_buf *out)
{
	bool is_refused = wm_instant_parser_is_refused(parser);
	bool has_pattern = parser->pattern != NULL && !parser->is_either;

	wm_put_u8(out, (uint8_t)(is_refused ? WM_TIME_REFUSED : parser->family));
	wm_put_span(out, wm_span_of(is_refused ? parser->refused->pattern : has_pattern ? parser->pattern : ""));
}

bool
wm_instant_parser_pass(struct wm_get *in)
{
	uint8_t family = wm_get_u8(in);

	(void)wm_get_span(in);
	return !in->failed && family <= WM_TIME_REFUSED;
}

/* The refused column's pattern, into a parser of auto. */
static bool
decode_refused(struct wm_instant_parser *parser, struct wm_span pattern)
{
	for (size_t i = 0; i < PACKED_COUNT; i++)
		if (wm_span_is(pattern, packed_dates[i].pattern))
			parser->refused = &packed_dates[i];
	return parser->refused != NULL;
}

/* What was found, of a family and with a pattern: whether it is the one that was asked for. */
static bool
is_asked(enum wm_time_family asked, const char *asked_pattern, uint8_t family, struct wm_span pattern)
{
	return family == asked && wm_span_is(pattern, asked_pattern == NULL ? "" : asked_pattern);
}

bool
wm_instant_parser_decode(struct wm_instant_parser *parser, struct wm_get *in)
{
	uint8_t family = wm_get_u8(in);
	struct wm_span pattern = wm_get_span(in);
	bool is_undecided = family == WM_TIME_AUTO && pattern.len == 0;

	if (!in->failed && !is_undecided && parser->is_either) {
		if (is_asked(parser->asked, parser->pattern, family, pattern))
			settle_asked(parser);
		else
			settle_auto(parser);
	}
	bool is_same = is_undecided || is_asked(parser->family, parser->pattern, family, pattern);
	bool can_decide = parser->is_auto && family < WM_TIME_PATTERN && pattern.len == 0;
	bool is_refused = parser->is_auto && family == WM_TIME_REFUSED;
	if (in->failed || !(is_same || can_decide || (is_refused && decode_refused(parser, pattern)))) {
		wm_get_fail(in);
		return false;
	}
	if (!is_same && can_decide)
		parser->family = (enum wm_time_family)family;
	return true;
}

/* Printing ------------------------------------------------------------------------ */

/* Digits of a number, at least width of them. */
static char *
put_digits(char *at, uint64_t value, int width)
{
	char digits[20];
	int count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0 || count < width);
	while (count > 0)
		*at++ = digits[--count];
	return at;
}

static char *
put_signed(char *at, int64_t value, int width)
{
	if (value < 0)
		*at++ = '-';
	return put_digits(at, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, width);
}

static inline char *
put_two(char *at, char before, int64_t value)
{
	at[0] = before;
	at[1] = (char)('0' + value / 10);
	at[2] = (char)('0' + value % 10);
	return at + 3;
}

static char *
put_iso(char *at, int64_t time_us, const struct wm_zone *zone)
{
	int64_t offset_us = wm_zone_offset_us(zone, time_us);
	int64_t local_us = wm_time_add(time_us, offset_us);
	int64_t days = wm_floor_div(local_us, WM_US_PER_DAY);
	int64_t in_day = wm_floor_mod(local_us, WM_US_PER_DAY);
	struct wm_civil date = wm_civil_from_days(days);
	int64_t seconds = in_day / WM_US_PER_SECOND;
	int64_t fraction = in_day % WM_US_PER_SECOND;

	at = put_signed(at, date.year, 4);
	at = put_two(at, '-', date.month);
	at = put_two(at, '-', date.day);
	at = put_two(at, 'T', seconds / 3600);
	at = put_two(at, ':', seconds / 60 % 60);
	at = put_two(at, ':', seconds % 60);
	if (fraction != 0) {
		bool is_ms = fraction % 1000 == 0;

		*at++ = '.';
		at = put_digits(at, (uint64_t)(is_ms ? fraction / 1000 : fraction), is_ms ? 3 : 6);
	}
	if (wm_zone_is_utc(zone)) {
		*at++ = 'Z';
		return at;
	}
	int64_t offset_s = (offset_us < 0 ? -offset_us : offset_us) / WM_US_PER_SECOND;
	at = put_two(at, offset_us < 0 ? '-' : '+', offset_s / 3600);
	at = put_two(at, ':', offset_s / 60 % 60);
	if (offset_s % 60 != 0)
		at = put_two(at, ':', offset_s % 60);
	return at;
}

static char *
put_seconds(char *at, int64_t time_us)
{
	uint64_t us = time_us < 0 ? 0 - (uint64_t)time_us : (uint64_t)time_us;
	uint64_t fraction = us % 1000000;
	int digits = 6;

	if (time_us < 0)
		*at++ = '-';
	at = put_digits(at, us / 1000000, 1);
	if (fraction == 0)
		return at;
	for (; fraction % 10 == 0; digits--)
		fraction /= 10;
	*at++ = '.';
	return put_digits(at, fraction, digits);
}

size_t
wm_instant_print(int64_t time_us, enum wm_time_unit unit, const struct wm_zone *zone, char *out)
{
	char *end = out;

	switch (unit) {
	case WM_UNIT_ISO:
		end = put_iso(out, time_us, zone);
		break;
	case WM_UNIT_S:
		end = put_seconds(out, time_us);
		break;
	case WM_UNIT_MS:
		end = put_signed(out, wm_floor_div(time_us, 1000), 1);
		break;
	case WM_UNIT_US:
		end = put_signed(out, time_us, 1);
		break;
	case WM_UNIT_NS:
		/* Nanoseconds of all times do not fit 64 bits; their digits do. */
		end = put_signed(out, time_us, 1);
		if (time_us != 0) {
			memcpy(end, "000", 3);
			end += 3;
		}
		break;
	}
	return (size_t)(end - out);
}

int64_t
wm_instant_hold(int64_t time_us, const struct wm_zone *zone)
{
	/* No clock is a day off UTC. */
	if (time_us < EDGE_US_MIN + WM_US_PER_DAY) {
		int64_t first_us = wm_zone_from_local(zone, EDGE_US_MIN, WM_REPEATED_EARLIER, NULL);

		return time_us < first_us ? first_us : time_us;
	}
	if (time_us > EDGE_US_MAX - WM_US_PER_DAY) {
		int64_t last_us = wm_zone_from_local(zone, EDGE_US_MAX, WM_REPEATED_EARLIER, NULL);

		return time_us > last_us ? last_us : time_us;
	}
	return time_us;
}

/* Where hours, minutes and seconds stand in a text of UTC with a year of four digits, each with what is before it. */
#define HOURS_AT 10
#define MINUTES_AT 13
#define SECONDS_AT 16

/* All of it anew. */
static __attribute__((noinline)) void
print_anew(struct wm_instant_text *last, int64_t time_us, enum wm_time_unit unit, const struct wm_zone *zone)
{
	int64_t held_us = wm_instant_hold(time_us, unit == WM_UNIT_ISO ? zone : wm_zone_utc());

	last->len = wm_instant_print(held_us, unit, zone, last->text);
	last->has_minute = unit == WM_UNIT_ISO && wm_zone_is_utc(zone) && last->text[MINUTES_AT] == ':' &&
		last->text[SECONDS_AT] == ':' && held_us == time_us;
	last->minute_us = time_us - wm_floor_mod(time_us, US_PER_MINUTE);
	last->day_us = time_us - wm_floor_mod(time_us, WM_US_PER_DAY);
}

/* Another minute of the same day; false if it is none. */
static inline bool
change_minute(struct wm_instant_text *last, int64_t time_us)
{
	uint64_t in_day = (uint64_t)time_us - (uint64_t)last->day_us;

	if (in_day >= WM_US_PER_DAY)
		return false;
	uint32_t minutes = (uint32_t)(in_day / US_PER_MINUTE);
	put_two(last->text + HOURS_AT, 'T', minutes / 60);
	put_two(last->text + MINUTES_AT, ':', minutes % 60);
	last->minute_us = last->day_us + (int64_t)minutes * US_PER_MINUTE;
	return true;
}

/* The common case makes no call, and so saves no register. */
void
wm_instant_reprint(struct wm_instant_text *last, int64_t time_us, enum wm_time_unit unit, const struct wm_zone *zone)
{
	if (last->len != 0 && last->time_us == time_us)
		return;
	last->time_us = time_us;
	uint64_t in_minute = (uint64_t)time_us - (uint64_t)last->minute_us;
	if (!last->has_minute || in_minute >= US_PER_MINUTE) {
		if (!last->has_minute || !change_minute(last, time_us)) {
			print_anew(last, time_us, unit, zone);
			return;
		}
		in_minute = (uint64_t)time_us - (uint64_t)last->minute_us;
	}
	uint32_t ms = (uint32_t)in_minute / 1000, us = (uint32_t)in_minute % 1000;
	uint32_t second = ms / 1000, fraction = ms % 1000;
	char *at = put_two(last->text + SECONDS_AT, ':', second);
	if ((fraction | us) != 0) {
		at = put_two(at, '.', fraction / 10);
		*at++ = (char)('0' + fraction % 10);
	}
	if (us != 0)
		at = put_two(at, (char)('0' + us / 100), us % 100);
	*at++ = 'Z';
	last->len = (size_t)(at - last->text);
}

struct wm_value
wm_instant_value(struct wm_instant_text *last, int64_t time_us, enum wm_time_unit unit, const struct wm_zone *zone)
{
	wm_instant_reprint(last, time_us, unit, zone);
	return (struct wm_value){ wm_span(last->text, last->len), unit == WM_UNIT_ISO ? WM_KIND_TEXT : WM_KIND_NUMBER };
}
