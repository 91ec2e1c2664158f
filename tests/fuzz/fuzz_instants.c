/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_instants - lines as times, in each format and several zones, held to four laws:
 *
 *   - a parser that has read others before says what a new one of the same state says: what is remembered of the last
 *     text, and what a checkpoint keeps, changes nothing;
 *   - a time is within the years that there are, and printed in any way it is read again;
 *   - a number of seconds or less is cut to microseconds toward the past, as GMP has it;
 *   - what is no time is refused with a text.
 *
 * The first byte of the input chooses the format, the second the zone.
 */
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/time/civil.h"
#include "lib/time/instant.h"
#include "tests/fuzz/expect.h"
#include "tests/unit/decimal_model.h"

static const char *const formats[] = { "auto", "auto", "iso", "s", "ms", "us", "ns", "clf", "rfc2822",
	"%Y-%m-%d %H:%M:%S.%f", "%d.%m.%y %I:%M:%S %p", "%b %d %H:%M:%S", "%s", "%Y%j%z" };
static const char *const zones[] = { "UTC", "+05:30", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe" };

static struct wm_instant_parser *
parser_of(const char *format, const struct wm_zone *zone)
{
	static const int64_t reference_us = INT64_C(1764374400000000);
	struct wm_err err;
	struct wm_instant_parser *parser =
		wm_instant_parser_new(wm_span_of(format), zone, WM_REPEATED_EARLIER, &reference_us, &err);

	expect(parser != NULL, "the format is good");
	return parser;
}

static void
hold_printed(int64_t time_us, const struct wm_zone *zone, struct wm_instant_text *texts)
{
	for (int unit = WM_UNIT_ISO; unit <= WM_UNIT_NS; unit++) {
		char text[WM_INSTANT_TEXT_MAX];
		size_t len = wm_instant_print(time_us, (enum wm_time_unit)unit, zone, text);
		static const char *const names[] = { "iso", "s", "ms", "us", "ns" };
		int64_t back_us, want_us = unit == WM_UNIT_MS ? wm_floor_div(time_us, 1000) * 1000 : time_us;
		const char *why;

		wm_instant_reprint(&texts[unit], time_us, (enum wm_time_unit)unit, zone);
		expect(texts[unit].len == len && memcmp(texts[unit].text, text, len) == 0,
			"behind others a time is printed the same");
		struct wm_instant_parser *parser = parser_of(names[unit], wm_zone_utc());
		expect(wm_instant_parse(parser, wm_span(text, len), &back_us, &why) && back_us == want_us,
			"what is printed is read again");
		wm_instant_parser_free(parser);
	}
}

/* A text that is a number of units of 10^-digits seconds: the microsecond that it is in. */
static void
hold_number(struct wm_span text, int digits, bool is_time, int64_t time_us)
{
	char copy[64];
	const char *exponent;
	mpq_t value;
	mpz_t power, whole;

	if (text.len >= sizeof(copy) || memchr(text.data, '\0', text.len) != NULL)
		return;
	memcpy(copy, text.data, text.len);
	copy[text.len] = '\0';
	exponent = strpbrk(copy, "eE");
	if (exponent != NULL && strlen(exponent) > 4)
		return;
	mpq_init(value);
	mpz_inits(power, whole, NULL);
	if (is_time && model_parse(copy, value)) {
		mpz_ui_pow_ui(power, 10, (unsigned long)(digits > 6 ? digits - 6 : 6 - digits));
		if (digits > 6)
			mpz_mul(mpq_denref(value), mpq_denref(value), power);
		else
			mpz_mul(mpq_numref(value), mpq_numref(value), power);
		mpz_fdiv_q(whole, mpq_numref(value), mpq_denref(value));
		expect(mpz_cmp_si(whole, (long)time_us) == 0, "a number is cut toward the past");
	}
	mpz_clears(power, whole, NULL);
	mpq_clear(value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wm_zone *open_zones[sizeof(zones) / sizeof(zones[0])];
	struct wm_instant_text texts[WM_UNIT_NS + 1] = { 0 };
	struct wm_err err;

	if (size < 2)
		return 0;
	const char *format = formats[data[0] % (sizeof(formats) / sizeof(formats[0]))];
	size_t number = data[1] % (sizeof(zones) / sizeof(zones[0]));
	if (open_zones[number] == NULL)
		open_zones[number] = wm_zone_open(wm_span_of(zones[number]), &err);
	const struct wm_zone *zone = open_zones[number] != NULL ? open_zones[number] : wm_zone_utc();
	struct wm_instant_parser *parser = parser_of(format, zone);
	const char *at = (const char *)data + 2, *end = (const char *)data + size;

	while (at < end) {
		const char *line_feed = memchr(at, '\n', (size_t)(end - at)), *why = NULL, *other_why = NULL;
		struct wm_span text = wm_span(at, (size_t)((line_feed == NULL ? end : line_feed) - at));
		struct wm_instant_parser *other = parser_of(format, zone);
		int64_t time_us = 0, other_us = 0;
		struct wm_buf state;
		struct wm_get in;

		at += text.len + 1;
		wm_buf_init(&state, WM_BUF_UNBOUNDED);
		wm_instant_parser_encode(parser, &state);
		wm_get_init(&in, wm_buf_span(&state));
		expect(wm_instant_parser_decode(other, &in) && wm_get_left(&in) == 0, "a state is read again");
		bool is_time = wm_instant_parse(parser, text, &time_us, &why);
		bool is_other = wm_instant_parse(other, text, &other_us, &other_why);
		expect(is_time == is_other && time_us == other_us &&
				wm_instant_parser_family(parser) == wm_instant_parser_family(other) &&
				(!is_time ||
					wm_instant_parser_local_kind(parser) == wm_instant_parser_local_kind(other)),
			"what was read before changes nothing");
		expect(is_time || (why != NULL && *why != '\0'), "what is no time is refused with a text");
		if (is_time) {
			expect(time_us >= wm_civil_days(WM_YEAR_MIN, 1, 1) * WM_US_PER_DAY - WM_US_PER_DAY &&
					time_us < wm_civil_days(WM_YEAR_MAX + 1, 1, 1) * WM_US_PER_DAY + WM_US_PER_DAY,
				"a time is in a year that there is");
			if (time_us >= wm_civil_days(WM_YEAR_MIN, 1, 2) * WM_US_PER_DAY &&
				time_us < wm_civil_days(WM_YEAR_MAX, 12, 31) * WM_US_PER_DAY)
				hold_printed(time_us, zone, texts);
		}
		enum wm_time_family family = wm_instant_parser_family(parser);
		if (family >= WM_TIME_EPOCH_S && family <= WM_TIME_EPOCH_NS)
			hold_number(text, 3 * (int)(family - WM_TIME_EPOCH_S), is_time, time_us);
		wm_instant_parser_free(other);
		wm_buf_release(&state);
	}
	wm_instant_parser_free(parser);
	return 0;
}
