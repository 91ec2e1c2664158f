/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/tsv.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/unit/tap.h"

static struct wm_buf said;

static void
reads(const char *field, const char *want, const char *name)
{
	tap_span(wm_tsv_read(wm_span_of(field), &said), want, name);
}

static void
puts_as(const char *value, const char *want, const char *name)
{
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_tsv_put(&out, wm_span_of(value));
	tap_span(wm_buf_span(&out), want, name);
	wm_buf_release(&out);
}

/* The end of the record that begins a text, or 0 where there is none; its fields with a bar between. */
static void
cuts(const char *text, bool has_escapes, size_t want_len, const char *want, const char *name)
{
	struct wm_cut_finder finder = { 0 };
	struct wm_cut cut = { 0 };
	struct wm_buf fields;
	bool has_ended;
	size_t len = wm_tsv_find(&finder, has_escapes, wm_span_of(text), &has_ended);

	tap_int((int64_t)(has_ended ? len : 0), (int64_t)want_len, name);
	wm_buf_init(&fields, WM_BUF_UNBOUNDED);
	wm_tsv_cut(&cut, has_escapes, wm_cut_content(wm_span(text, len)));
	for (size_t i = 0; i < cut.count; i++) {
		wm_buf_add_text(&fields, i == 0 ? "" : "|");
		wm_buf_add(&fields, cut.fields[i].data, cut.fields[i].len);
	}
	tap_span(wm_buf_span(&fields), want, name);
	wm_buf_release(&fields);
	wm_cut_release(&cut);
}

/* What is written is one field that says the value, and stays one with a tab and a line end behind it. */
static bool
is_written_and_read(struct wm_span value)
{
	struct wm_cut_finder finder = { 0 };
	struct wm_cut cut = { 0 };
	struct wm_buf line;
	bool has_ended;

	wm_buf_init(&line, WM_BUF_UNBOUNDED);
	wm_tsv_put(&line, value);
	wm_buf_add_byte(&line, '\t');
	wm_tsv_put(&line, value);
	wm_buf_add_byte(&line, '\n');
	bool is_well = wm_tsv_find(&finder, true, wm_buf_span(&line), &has_ended) == line.len && has_ended &&
		finder.lines_count == 1;
	wm_tsv_cut(&cut, true, wm_cut_content(wm_buf_span(&line)));
	is_well = is_well && cut.count == 2;
	for (size_t i = 0; i < 2 && is_well; i++)
		is_well = wm_span_equal(wm_tsv_read(cut.fields[i], &said), value);
	wm_cut_release(&cut);
	wm_buf_release(&line);
	return is_well;
}

/* All values of up to six of the bytes that mean something. */
static void
test_round_trip(void)
{
	static const char bytes[] = "\\\t\n\rtx";
	struct wm_buf value;
	bool is_well = true;

	wm_buf_init(&value, WM_BUF_UNBOUNDED);
	for (size_t len = 0, count = 1; len <= 6; len++, count *= 6) {
		for (size_t number = 0; number < count && is_well; number++) {
			wm_buf_reset(&value);
			for (size_t i = 0, rest = number; i < len; i++, rest /= 6)
				wm_buf_add_byte(&value, bytes[rest % 6]);
			is_well = is_written_and_read(wm_buf_span(&value));
		}
	}
	wm_buf_release(&value);
	tap_ok(is_well, "whatever is written is read as it was");
}

/* A text in pieces of any size ends where it does in one. */
static void
test_pieces(void)
{
	static const char text[] = "a\\\r\nb\\\\\\\n\\\r\tc\\\r\\\nd\\\\\r\nrest";
	size_t want = sizeof(text) - 1 - 4;
	bool is_well = true;

	for (size_t first = 0; first <= want; first++) {
		for (size_t second = first; second <= want; second++) {
			struct wm_cut_finder finder = { 0 };
			size_t len = 0;
			bool has_ended = false;

			for (size_t i = 0; i < 3 && !has_ended; i++) {
				size_t to = i == 0 ? first : i == 1 ? second : sizeof(text) - 1;

				len += wm_tsv_find(&finder, true, wm_span(text + len, to - len), &has_ended);
			}
			is_well = is_well && has_ended && len == want && finder.lines_count == 4 &&
				finder.quote_line == 2;
		}
	}
	tap_ok(is_well, "a record in three pieces ends where it does in one, and its lines are counted");
}

int
main(void)
{
	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	reads("a\\tb\\nc\\rd\\\\e", "a\tb\nc\rd\\e", "what PostgreSQL and MySQL write");
	reads("a\\\tb\\\nc\\\rd\\\r\ne", "a\tb\nc\rd\r\ne", "real tabs and line ends");
	reads("C:\\dir\\x\\", "C:\\dir\\x\\", "any other backslash is itself");
	reads("\\\\t\\\\\\t\\\\", "\\t\\\t\\", "backslashes in pairs");
	reads("\"Weird\"_Al", "\"Weird\"_Al", "quotes are letters");
	reads("\\N\\T\\\"\\0", "\\N\\T\\\"\\0", "letters of other dialects");
	reads("", "", "nothing");
	puts_as("a\tb\nc\rd", "a\\tb\\nc\\rd", "line ends and tabs are escaped");
	puts_as("\"q\" C:\\dir", "\"q\" C:\\dir", "a backslash that escapes nothing stays");
	puts_as("C:\\temp\\new\\run\\", "C:\\\\temp\\\\new\\\\run\\\\", "one that would is escaped");
	puts_as("\\\\x", "\\\\\\x", "of two the first would");
	puts_as("\\\t", "\\\\\\t", "before a tab");
	cuts("a\tb\\\tc\n", true, 7, "a|b\\\tc", "a tab that belongs to a field");
	cuts("a\tb\\\tc\n", false, 7, "a|b\\|c", "not without escapes");
	cuts("\"a\t\"\"\nb", true, 6, "\"a|\"\"", "quotes part nothing");
	cuts("a\\\nb\tc\r\n", true, 8, "a\\\nb|c", "a line end that belongs to a field");
	cuts("a\\\nb\tc\r\n", false, 3, "a\\", "not without escapes, either");
	cuts("a\\\r\nb\r\n", true, 7, "a\\\r\nb", "CR LF that does");
	cuts("a\\\\\nb", true, 4, "a\\\\", "an escaped backslash escapes nothing");
	cuts("a\\\n", true, 0, "a\\", "a record that does not end");
	tap_ok(wm_tsv_is_unfinished(wm_span_of("a\\")) && wm_tsv_is_unfinished(wm_span_of("\\\\\\")) &&
			!wm_tsv_is_unfinished(wm_span_of("a\\\\")) && !wm_tsv_is_unfinished(wm_span_of("")),
		"a lone backslash at the end takes along what comes behind it");
	tap_ok(wm_tsv_is_literal(wm_span_of("a\\t\"\rb")) && wm_tsv_is_literal(wm_span_of("")) &&
			!wm_tsv_is_literal(wm_span_of("a\tb")) && !wm_tsv_is_literal(wm_span_of("a\n")) &&
			!wm_tsv_is_literal(wm_span_of("\r")),
		"what can stand in TSV without escapes");
	test_round_trip();
	test_pieces();
	wm_buf_release(&said);
	return tap_done();
}
