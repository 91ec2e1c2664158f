/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/progress.h"

#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

#define SECOND INT64_C(1000000)

/* What there is a bar for. */
static const struct progress_facts fit = {
	.is_stderr_terminal = true,
	.is_input_regular = true,
	.bytes_total = 1000,
	.term = "xterm",
};

static void
test_where(void)
{
	static const struct {
		bool stderr_terminal, stdout_terminal, regular, forced;
		const char *term;
		bool is_wanted;
	} cases[] = {
		{ true, false, true, false, "xterm", true },
		{ false, false, true, false, "xterm", false },
		{ true, true, true, false, "xterm", false },
		{ true, false, false, false, "xterm", false },
		{ true, false, true, false, "dumb", false },
		{ true, false, true, false, "", false },
		{ true, false, true, false, NULL, false },
		{ true, true, false, true, NULL, true },
		{ false, false, true, true, "xterm", false },
	};
	struct progress progress;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct progress_facts facts = fit;

		facts.is_stderr_terminal = cases[i].stderr_terminal;
		facts.is_stdout_terminal = cases[i].stdout_terminal;
		facts.is_input_regular = cases[i].regular;
		facts.is_forced = cases[i].forced;
		facts.term = cases[i].term;
		progress_init(&progress, &facts, 0);
		tap_int(progress_is_due(&progress, 100 * SECOND), cases[i].is_wanted, "where a bar may be");
	}
	progress_init(&progress, &fit, 7 * SECOND);
	tap_ok(!progress_is_due(&progress, 9 * SECOND - 1), "not in the first two seconds");
	tap_ok(progress_is_due(&progress, 9 * SECOND), "then at once");
	struct progress_facts forced = fit;
	forced.is_forced = true;
	progress_init(&progress, &forced, 7 * SECOND);
	tap_ok(progress_is_due(&progress, 7 * SECOND), "asked for, it is there from the start");
}

static const struct progress_status status = { 420, 1234567, 40, true, 1764374400 * SECOND + 999999 };

/* The line at 10 s of work, without what moves the cursor. */
static void
tap_bar(const struct progress_facts *facts, const struct progress_status *at, unsigned columns, const char *want,
	const char *name)
{
	struct progress progress;
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	progress_init(&progress, facts, 0);
	progress_show(&progress, at, columns, 10 * SECOND, &out);
	tap_ok(out.len >= 4 && memcmp(out.data, "\r\033[K", 4) == 0, "the line before is wiped");
	tap_span(wm_span(out.data + 4, out.len - 4), want, name);
	wm_buf_release(&out);
}

/* Of the rest at 42 % of 10 s, 13.8 s are left; 1234567 rows in 10 s are 123k a second. */
static void
test_widths(void)
{
	struct progress_facts utf8 = fit, unknown = fit;

	tap_bar(&fit, &status, 200,
		" 42% [################------------------------] 1234567 rows, 123k/s, 40 late, watermark "
		"2025-11-29T00:00:00Z, 0:14 left",
		"200 columns");
	tap_bar(&fit, &status, 95,
		" 42% [#####---------] 1234567 rows, 123k/s, 40 late, watermark 2025-11-29T00:00:00Z, 0:14 left",
		"95 columns");
	tap_bar(&fit, &status, 80, " 42% [##-----] 1234567 rows, 40 late, watermark 2025-11-29T00:00:00Z, 0:14 left",
		"80 columns");
	tap_bar(&fit, &status, 0, " 42% [##-----] 1234567 rows, 40 late, watermark 2025-11-29T00:00:00Z, 0:14 left",
		"columns not known");
	tap_bar(&fit, &status, 60, " 42% [#######------------] 1234567 rows, 40 late, 0:14 left", "60 columns");
	tap_bar(&fit, &status, 40, " 42% 1234567 rows, 40 late, 0:14 left", "40 columns");
	tap_bar(&fit, &status, 20, " 42% 0:14 left", "20 columns");
	tap_bar(&fit, &status, 5, " 42%", "5 columns");
	tap_bar(&fit, &status, 4, "", "4 columns hold nothing");
	utf8.is_utf8 = true;
	tap_bar(&utf8, &status, 50, " 42% [███░░░░░░] 1234567 rows, 40 late, 0:14 left", "blocks, a column each");
	unknown.is_forced = true;
	unknown.bytes_total = 0;
	tap_bar(&unknown, &status, 80, "1234567 rows, 123k/s, 40 late, watermark 2025-11-29T00:00:00Z",
		"an input of no known size");
}

static void
test_values(void)
{
	struct progress_facts large = fit;
	struct progress_status at = { 0, 0, 0, false, WM_TIME_NONE };

	tap_bar(&fit, &at, 60, "  0% [----------------------------------------] 0 rows, 0/s",
		"nothing read, no watermark");
	at = (struct progress_status){ 999, 1, 0, true, -1 };
	tap_bar(&fit, &at, 200,
		" 99% [#######################################-] 1 row, 0/s, 0 late, watermark 1969-12-31T23:59:59Z, "
		"0:00 left",
		"not 100 before the end; a watermark before 1970");
	at = (struct progress_status){ 1000, 99994, 0, false, WM_TIME_NONE };
	tap_bar(&fit, &at, 60, "100% [######################] 99994 rows, 9999/s, 0:00 left", "all read");
	at.bytes = 1001;
	at.rows = 99995000;
	tap_bar(&fit, &at, 60, " 99% [#################-] 99995000 rows, 10.0M/s, 0:00 left", "a file that grows");
	large.bytes_total = UINT64_MAX;
	at = (struct progress_status){ UINT64_MAX / 720, UINT64_MAX, 0, false, WM_TIME_NONE };
	tap_bar(&large, &at, 60, "  0% [------------] 18446744073709551615 rows, 1:59:50 left", "hours");
	at = (struct progress_status){ UINT64_MAX / 100000, 1, 0, false, WM_TIME_NONE };
	tap_bar(&large, &at, 40, "  0% [-------] 1 row, 0/s, 11d 13h left", "days");
}

/* Whatever the numbers and the width, a line stays within it. */
static void
test_any(void)
{
	uint64_t seed = 1;
	struct wm_buf out;
	bool ok = true;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 20000 && ok; i++) {
		struct progress_facts facts = fit;
		struct progress progress;
		struct progress_status at = { tap_random(&seed) >> tap_random(&seed) % 64,
			tap_random(&seed) >> tap_random(&seed) % 64, tap_random(&seed) >> tap_random(&seed) % 64,
			tap_random(&seed) % 2 == 0, (int64_t)(tap_random(&seed) >> 8) };
		unsigned columns = 1 + (unsigned)(tap_random(&seed) % 130);
		size_t width = 0;

		facts.bytes_total = tap_random(&seed) >> tap_random(&seed) % 64;
		facts.is_forced = true;
		facts.is_utf8 = tap_random(&seed) % 2 != 0;
		progress_init(&progress, &facts, 0);
		wm_buf_reset(&out);
		progress_show(&progress, &at, columns, (int64_t)(tap_random(&seed) >> 20), &out);
		for (size_t byte = 4; byte < out.len; byte++)
			width += ((unsigned char)out.data[byte] & 0xC0) != 0x80;
		ok = width < columns;
		if (!ok)
			printf("# %zu wide in %u columns: %.*s\n", width, columns, (int)out.len - 4, out.data + 4);
	}
	tap_ok(ok, "20000 random bars fit their terminals");
	wm_buf_release(&out);
}

static void
test_drawing(void)
{
	struct progress progress;
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	progress_init(&progress, &fit, 0);
	progress_show(&progress, &status, 80, 2 * SECOND - 1, &out);
	progress_hide(&progress, &out);
	tap_int((int64_t)out.len, 0, "nothing was drawn, nothing is wiped");
	progress_show(&progress, &status, 80, 2 * SECOND, &out);
	size_t drawn = out.len;
	tap_ok(drawn > 4, "drawn");
	progress_show(&progress, &status, 80, 2 * SECOND + 99999, &out);
	tap_int((int64_t)out.len, (int64_t)drawn, "not again within 0.1 s");
	progress_show(&progress, &status, 80, 2 * SECOND + 100000, &out);
	tap_ok(out.len > drawn, "but then");
	wm_buf_reset(&out);
	progress_hide(&progress, &out);
	tap_span(wm_buf_span(&out), "\r\033[K", "wiped");
	progress_hide(&progress, &out);
	tap_int((int64_t)out.len, 4, "once");
	wm_buf_reset(&out);
	progress_show(&progress, &status, 80, 3 * SECOND, &out);
	tap_ok(out.len > 4, "it comes back");
	wm_buf_release(&out);
}

int
main(void)
{
	test_where();
	test_widths();
	test_values();
	test_any();
	test_drawing();
	return tap_done();
}
