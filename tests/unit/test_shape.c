/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of texts, by their looks. */
#include "lib/time/shape.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

static void
expect(const char *text, const char *want, const char *day_first)
{
	bool is_ordered = false;
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	bool is_known = wm_shape_guess(wm_span_of(text), WM_SHAPE_MONTH_FIRST, &is_ordered, &out);
	tap_span(wm_buf_span(&out), want == NULL ? "" : want, text);
	if (is_known != (want != NULL) || is_ordered != (day_first != NULL))
		tap_ok(false, "%s: known %d, ordered %d", text, is_known, is_ordered);
	wm_buf_reset(&out);
	if (day_first != NULL) {
		(void)wm_shape_guess(wm_span_of(text), WM_SHAPE_DAY_FIRST, &is_ordered, &out);
		tap_span(wm_buf_span(&out), day_first, text);
	}
	wm_buf_release(&out);
}

/* Any bytes: a guess ends, and reads nothing behind the text. */
static void
test_random(void)
{
	static const char bytes[] = "0123456789/-.: +TZapmJanNovSat@%,\x80\xff";
	uint64_t seed = 1;
	bool is_ordered, is_well = true;
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 100000; i++) {
		size_t len = tap_random(&seed) % 24;
		char *text = malloc(len + 1);

		for (size_t j = 0; j < len; j++)
			text[j] = bytes[tap_random(&seed) % (sizeof(bytes) - 1)];
		wm_buf_reset(&out);
		is_well = is_well &&
			(wm_shape_guess(wm_span(text, len), tap_random(&seed) % 2, &is_ordered, &out) || out.len == 0);
		free(text);
	}
	tap_ok(is_well, "what is not known appends nothing");
	wm_buf_release(&out);
}

int
main(void)
{
	expect("2025/11/29 10:00:01", "%Y/%m/%d %H:%M:%S", NULL);
	expect("2025/11/29 10:00:01.5", "%Y/%m/%d %H:%M:%S.%f", NULL);
	expect("2018/10/15", "%Y/%m/%d", NULL);
	expect("2009-11-10 23:00:00 +0000", "%Y-%m-%d %H:%M:%S %z", NULL);
	expect("2022-04-03 17:38:20 UTC", "%Y-%m-%d %H:%M:%S %Z", NULL);
	expect("2022-04-03T17:38:20.12 UTC", "%Y-%m-%dT%H:%M:%S.%f %Z", NULL);
	expect("3/13/2025 19:23", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M");
	expect("13.04.14", "%m.%d.%y", "%d.%m.%y");
	expect("11/29/2025 07:05:01 PM", "%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M:%S %p");
	expect("29-Nov-2025 10:00", "%d-%b-%Y %H:%M", NULL);
	expect("Sat Nov 29 10:00:01 2025", "%a %b %d %H:%M:%S %Y", NULL);
	expect("Nov  9 10:00:01", "%b  %d %H:%M:%S", NULL);
	expect("20251129T100000Z", "%Y%m%dT%H%M%S%z", NULL);
	expect("20251129 1000", "%Y%m%d %H%M", NULL);
	expect("[29/Nov/2025:10:00:01 +0100]", "[%d/%b/%Y:%H:%M:%S %z]", NULL);
	expect("@1764410401", "@%s", NULL);
	expect("10:00:01", NULL, NULL);
	expect("soon", NULL, NULL);
	expect("", NULL, NULL);
	expect("17", NULL, NULL);
	test_random();
	return tap_done();
}
