/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/shown.h"

#include "lib/base/limits.h"
#include "lib/base/utf8.h"
#include "tests/unit/tap.h"

static struct wm_buf out;

static void
check(struct wm_span text, const char *want, const char *name)
{
	wm_buf_reset(&out);
	wm_shown(text, &out);
	tap_span(wm_buf_span(&out), want, name);
}

/* Every text of up to 4 bytes with bytes from the borders of the table in RFC 3629, against its decoded value. */
static void
test_utf8_len(void)
{
	static const unsigned char bytes[] = { 0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
		0xE0, 0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF };
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = sizeof(bytes);
	bool is_well = true;

	for (size_t i = 0; i < n * n * n * n; i++) {
		unsigned char text[4] = { bytes[i % n], bytes[i / n % n], bytes[i / n / n % n], bytes[i / n / n / n] };
		size_t want = text[0] < 0x80 ? 1
			: text[0] < 0xC0     ? 0
			: text[0] < 0xE0     ? 2
			: text[0] < 0xF0     ? 3
			: text[0] < 0xF8     ? 4
					     : 0;
		uint32_t code = want == 1 ? text[0] : text[0] & (0x7Fu >> want);

		for (size_t k = 1; k < want; k++) {
			if ((text[k] & 0xC0) != 0x80) {
				want = 0;
				break;
			}
			code = code << 6 | (text[k] & 0x3F);
		}
		if (want > 1 && (code < least[want] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)))
			want = 0;
		for (size_t len = 1; len <= 4 && is_well; len++) {
			size_t got = wm_utf8_len((const char *)text, len);

			is_well = got == (want <= len ? want : 0);
			if (!is_well)
				printf("# %02x %02x %02x %02x, %zu bytes: got %zu\n", text[0], text[1], text[2],
					text[3], len, got);
		}
	}
	tap_ok(is_well, "wm_utf8_len agrees with decoding, whole or cut off");
}

int
main(void)
{
	char text[100];

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	check(wm_span_of("plain text, 'quoted'"), "plain text, 'quoted'", "plain text stays");
	check(wm_span("a\0b\n\x1b[31m\x7f", 10), "a\\x00b\\x0A\\x1B[31m\\x7F", "control characters");
	check(wm_span_of("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		"UTF-8 stays");
	check(wm_span_of("\xc2\x9b"
			 "31m"),
		"\\xC2\\x9B31m", "C1 is control");
	check(wm_span_of("\xc2\xa0"), "\xc2\xa0", "the first character behind C1 is none");
	check(wm_span_of("\xff\xc3(\xed\xa0\x80"), "\\xFF\\xC3(\\xED\\xA0\\x80", "invalid bytes one by one");
	check(wm_span(NULL, 0), "", "nothing");
	memset(text, 'x', sizeof(text));
	check(wm_span(text, WM_SHOWN_BYTES_MAX),
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"80 bytes are shown whole");
	check(wm_span(text, WM_SHOWN_BYTES_MAX + 1),
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...", "81 are cut");
	memcpy(text + 79, "\xc3\xa9", 2);
	check(wm_span(text, 81), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...",
		"a character is not cut in two");
	test_utf8_len();
	wm_buf_release(&out);
	return tap_done();
}
