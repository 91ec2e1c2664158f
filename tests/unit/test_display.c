/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/display.h"

#include "lib/base/limits.h"
#include "tests/unit/tap.h"

#define COLUMNS_MAX 8
#define X10 "xxxxxxxxxx"

static struct wm_buf got;

/* Splits "a|b|c"; returns how many. */
static size_t
split(const char *line, struct wm_span *parts)
{
	size_t count = 0;

	for (;;) {
		size_t len = strcspn(line, "|");

		parts[count++] = wm_span(line, len);
		if (line[len] == '\0')
			return count;
		line += len + 1;
	}
}

static void
put(struct wm_display *display, const char *line)
{
	struct wm_span parts[COLUMNS_MAX];
	struct wm_value row[COLUMNS_MAX] = { 0 };

	for (size_t i = split(line, parts); i-- > 0;)
		row[i] = (struct wm_value){ parts[i], WM_KIND_TEXT };
	wm_display_put(display, row, &got);
}

static struct wm_display *
begin(const char *names, size_t width, bool is_utf8)
{
	struct wm_span parts[COLUMNS_MAX];
	size_t count = split(names, parts);

	wm_buf_reset(&got);
	return wm_display_new(parts, count, &(struct wm_display_options){ width, is_utf8 });
}

static void
end(struct wm_display *display, const char *want, const char *name)
{
	wm_display_end(display, &got);
	wm_display_free(display);
	tap_span(wm_buf_span(&got), want, name);
}

/* A table of up to four rows. */
static void
check(size_t width, bool is_utf8, const char *const *lines, const char *want, const char *name)
{
	struct wm_display *display = begin(lines[0], width, is_utf8);

	for (size_t i = 1; lines[i] != NULL; i++)
		put(display, lines[i]);
	end(display, want, name);
}

static void
test_alignment(void)
{
	check(0, true, (const char *const[]){ "page|count|share", "/a|5|0.25", "/long/page|12345|-1e3", "||", NULL },
		"page        count  share\n"
		"──────────  ─────  ─────\n"
		"/a              5   0.25\n"
		"/long/page  12345   -1e3\n"
		"\n",
		"numbers right, texts left, nothing where nothing is");
	check(0, false, (const char *const[]){ "id|n", "007|1", "08|x", NULL },
		"id   n\n"
		"---  -\n"
		"007  1\n"
		"08   x\n",
		"what is not wholly numbers is text");
	check(80, true, (const char *const[]){ "a|b", NULL }, "a  b\n─  ─\n", "a header alone");
	check(80, true, (const char *const[]){ "n|", "1|", NULL }, "n\n─  \n1\n", "a column without a name or value");
}

static void
test_dates(void)
{
	static const char *const day[] = { "start|end|n", "2025-11-29T10:00:00Z|2025-11-29T10:05:00.5Z|1",
		"2025-11-29T10:05:00Z|2025-11-29T10:10:00Z|2", NULL };
	static const char *const days[] = { "start|end", "2025-11-29T23:55:00Z|2025-11-30T00:00:00Z",
		"2025-11-29T23:50:00Z||", "2025-11-29T23:59:00Z|2025-11-29T23:59:30Z", NULL };

	check(80, true, day,
		"start                 end                     n\n"
		"────────────────────  ──────────────────────  ─\n"
		"2025-11-29T10:00:00Z  2025-11-29T10:05:00.5Z  1\n"
		"2025-11-29T10:05:00Z  2025-11-29T10:10:00Z    2\n",
		"where there is room a date stands");
	check(46, true, day,
		"start      end          n\n"
		"─────────  ───────────  ─\n"
		"10:00:00Z  10:05:00.5Z  1\n"
		"10:05:00Z  10:10:00Z    2\n",
		"where there is none it is left away before a column is cut");
	check(36, true, days,
		"start      end\n"
		"─────────  ────────────────────\n"
		"23:55:00Z  2025-11-30T00:00:00Z\n"
		"23:50:00Z\n"
		"23:59:00Z  2025-11-29T23:59:30Z\n",
		"that of a column in which rows have several stays");
	struct wm_display *display = begin("t|text", 20, true);
	put(display, "2025-11-29T10:00:00Z|2025-11-29Tx");
	put(display, "2025-11-29T11:00:00Z|y");
	wm_display_flush(display, &got);
	put(display, "2025-11-29T12:00:00Z|2025-11-29Tz");
	put(display, "2025-11-30T12:00:00Z|z");
	end(display,
		"t          text\n"
		"─────────  ─────────\n"
		"10:00:00Z  2025-11-…\n"
		"11:00:00Z  y\n"
		"12:00:00Z  2025-11-…\n"
		"2025-11-…  z\n",
		"a later row with another date shows it");
}

static void
test_characters(void)
{
	check(0, true,
		(const char *const[]){
			"name|n", "\xE6\x9D\xB1\xE4\xBA\xAC|1", "e\xCC\x81t\xC3\xA9|2", "\xF0\x9F\x98\x80|3", NULL },
		"name  n\n"
		"────  ─\n"
		"\xE6\x9D\xB1\xE4\xBA\xAC  1\n"
		"e\xCC\x81t\xC3\xA9   2\n"
		"\xF0\x9F\x98\x80    3\n",
		"wide characters are two, combining ones none");
	check(0, false, (const char *const[]){ "name|n", "\xC3\xA9|1", NULL },
		"name      n\n"
		"--------  -\n"
		"\\xC3\\xA9  1\n",
		"ASCII alone");
	check(0, true, (const char *const[]){ "a\tb|n", "\x1b[31m|1", "\xff\xE2\x80\xAE|2", "\xC2\x9B|3", NULL },
		"a\\x09b            n\n"
		"────────────────  ─\n"
		"\\x1B[31m          1\n"
		"\\xFF\\xE2\\x80\\xAE  2\n"
		"\\xC2\\x9B          3\n",
		"nothing steers the terminal");
	check(0, true,
		(const char *const[]){
			"t|n", X10 X10 X10 X10 X10 X10 X10 X10 "|1", X10 X10 X10 X10 X10 X10 X10 X10 "y|2", NULL },
		"t                                                                                  n\n"
		"─────────────────────────────────────────────────────────────────────────────────  ─\n" X10 X10 X10 X10
			X10 X10 X10 X10 "   1\n" X10 X10 X10 X10 X10 X10 X10 X10 "…  2\n",
		"80 bytes are shown, of 81 it says that they were more");
	check(0, false, (const char *const[]){ "t", X10 X10 X10 X10 X10 X10 X10 X10 "y", NULL },
		"t\n-----------------------------------------------------------------------------------\n" X10 X10 X10
			X10 X10 X10 X10 X10 "...\n",
		"in ASCII with dots");
}

static void
test_widths(void)
{
	static const char *const lines[] = { "window_start|page|agent|count|bytes_sum",
		"2025-11-29T00:00:00Z|/index/of/all/that/there/is.html|Mozilla/5.0 (X11; Linux x86_64; rv:109.0) "
		"Gecko/20100101|12|3456",
		"2025-11-29T00:05:00Z|/|curl/7.88.1|3|99", NULL };

	check(200, true, lines,
		"window_start          page                              agent                                         "
		"            count  bytes_sum\n"
		"────────────────────  ────────────────────────────────  "
		"────────────────────────────────────────────────────────  ─────  ─────────\n"
		"2025-11-29T00:00:00Z  /index/of/all/that/there/is.html  Mozilla/5.0 (X11; Linux x86_64; rv:109.0) "
		"Gecko/20100101     12       3456\n"
		"2025-11-29T00:05:00Z  /                                 curl/7.88.1                                   "
		"                3         99\n",
		"200 places");
	check(80, true, lines,
		"window_start  page                     agent                    count  bytes_sum\n"
		"────────────  ───────────────────────  ───────────────────────  ─────  ─────────\n"
		"00:00:00Z     /index/of/all/that/the…  Mozilla/5.0 (X11; Linu…     12       3456\n"
		"00:05:00Z     /                        curl/7.88.1                  3         99\n",
		"80 places: the date goes before a text is cut");
	check(20, false, (const char *const[]){ "aa|b", "12345678901234567890|" X10 X10, NULL },
		"       aa  b\n"
		"---------  ---------\n"
		"123456...  xxxxxx...\n",
		"two columns share what there is");
	check(19, false, (const char *const[]){ "n|text", "12345|" X10 X10, NULL },
		"    n  text\n"
		"-----  ------------\n"
		"12345  xxxxxxxxx...\n",
		"the widest is cut first");
	check(5, false, (const char *const[]){ "one|column", "abcdef|abcdef", NULL },
		"one   c...\n"
		"----  ----\n"
		"a...  a...\n",
		"not below four places");
	check(7, true, (const char *const[]){ "t", "\xE6\x9D\xB1\xE4\xBA\xAC\xE6\x9D\xB1\xE4\xBA\xAC", NULL },
		"t\n"
		"───────\n"
		"\xE6\x9D\xB1\xE4\xBA\xAC\xE6\x9D\xB1…\n",
		"a wide character is not cut in two");
}

static void
test_streaming(void)
{
	struct wm_display *display = begin("k|n|t", 0, false);

	wm_display_flush(display, &got);
	tap_span(wm_buf_span(&got), "", "without a row nothing is fixed");
	put(display, "a|1|x");
	tap_span(wm_buf_span(&got), "", "rows are held");
	wm_display_flush(display, &got);
	tap_span(wm_buf_span(&got), "k  n  t\n-  -  -\na  1  x\n", "until it flushes");
	put(display, "bcd|22|");
	put(display, "e|f|yz");
	wm_display_flush(display, &got);
	end(display, "k  n  t\n-  -  -\na  1  x\nbcd  22\ne  f  yz\n", "a wider cell pushes its line");

	display = begin("k|n|t", 9, false);
	put(display, "a|1|x");
	wm_display_flush(display, &got);
	put(display, "bcd|2|x");
	put(display, "b|22222|xxxxxx");
	end(display, "k  n  t\n-  -  -\na  1  x\nbcd  2  x\nb  ...  .\n", "no further than the terminal goes");

	display = begin("n", 0, false);
	for (int i = 0; i < WM_DISPLAY_ROWS_MAX - 1; i++)
		put(display, "1");
	tap_int((int64_t)got.len, 0, "one row less than the most is held");
	put(display, "1");
	tap_int((int64_t)got.len, 2 * (WM_DISPLAY_ROWS_MAX + 2), "with that it is written");
	put(display, "2");
	tap_int((int64_t)got.len, 2 * (WM_DISPLAY_ROWS_MAX + 3), "and each that follows");
	wm_buf_reset(&got);
	end(display, "", "nothing is left at the end");
}

/* No line of random tables is longer than the terminal, and none has more or fewer rows. */
static void
test_random(void)
{
	static const char *const texts[] = { "", "1", "-22.5", "abc", X10 X10, "\xE6\x9D\xB1\xE4\xBA\xAC",
		"\x01\x02\x03", X10 X10 X10 X10 X10 X10 X10 X10 X10 };
	uint64_t random = 3;
	bool is_well = true;

	for (int i = 0; i < 2000 && is_well; i++) {
		size_t columns = 1 + tap_random(&random) % 6, width = 34 + tap_random(&random) % 100,
		       rows = tap_random(&random) % 8;
		struct wm_span names[COLUMNS_MAX];
		struct wm_value row[COLUMNS_MAX] = { 0 };
		size_t lines = 0;

		for (size_t k = 0; k < columns; k++)
			names[k] = wm_span_of(texts[tap_random(&random) % 8]);
		wm_buf_reset(&got);
		struct wm_display *display =
			wm_display_new(names, columns, &(struct wm_display_options){ width, i % 2 == 0 });
		for (size_t k = 0; k < rows; k++) {
			for (size_t n = 0; n < columns; n++)
				row[n] = (struct wm_value){ wm_span_of(texts[tap_random(&random) % 8]), WM_KIND_TEXT };
			wm_display_put(display, row, &got);
			if (tap_random(&random) % 4 == 0)
				wm_display_flush(display, &got);
		}
		wm_display_end(display, &got);
		wm_display_free(display);
		/* What is no ASCII here is three bytes long: a rule, an ellipsis of one place, or an ideograph of two. */
		for (size_t at = 0, places = 0; at < got.len && is_well; at++) {
			unsigned char byte = (unsigned char)got.data[at];

			is_well = byte < 0x80 || i % 2 == 0;
			places += byte >= 0xE3 && byte < 0xF0 ? 2 : byte < 0x80 || byte == 0xE2;
			if (byte == '\n') {
				is_well = is_well && places - 1 <= width;
				places = 0;
				lines++;
			}
		}
		is_well = is_well && lines == rows + 2;
		if (!is_well)
			printf("# width %zu: %zu lines for %zu rows:\n# %.*s\n", width, lines, rows, (int)got.len,
				got.data);
	}
	tap_ok(is_well, "random tables keep to the terminal's width");
}

int
main(void)
{
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	test_alignment();
	test_dates();
	test_characters();
	test_widths();
	test_streaming();
	test_random();
	wm_buf_release(&got);
	return tap_done();
}
