/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/dialect.h"

#include "tests/unit/tap.h"

/* The first record of a text in a dialect: its fields as they say, with a bar between. */
static void
reads(struct wm_dialect dialect, const char *text, const char *want, const char *name)
{
	struct wm_cut_finder finder = { 0 };
	struct wm_cut cut = { 0 };
	struct wm_buf got, said;
	bool has_ended;
	size_t len = wm_dialect_find(&finder, dialect, wm_span_of(text), &has_ended);

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	wm_dialect_cut(&cut, dialect, wm_cut_content(wm_span(text, len)));
	for (size_t i = 0; i < cut.count; i++) {
		struct wm_span field = wm_dialect_read(dialect, cut.fields[i], &said);

		wm_buf_add_text(&got, i == 0 ? "" : "|");
		wm_buf_add(&got, field.data, field.len);
	}
	wm_buf_add_text(&got, has_ended ? "." : wm_cut_is_open(finder.state) ? " open" : " whole");
	tap_span(wm_buf_span(&got), want, name);
	wm_buf_release(&got);
	wm_buf_release(&said);
	wm_cut_release(&cut);
}

int
main(void)
{
	static const struct wm_dialect csv = { ',', WM_MARKS_QUOTES }, tabs = { '\t', WM_MARKS_QUOTES },
				       tsv = { '\t', WM_MARKS_ESCAPES }, literal = { '\t', WM_MARKS_NONE };
	static const char text[] = "a,\\tb\t\"c\t\"\"\"\\\nd\r\ne";

	reads(csv, text, "a|\\tb\t\"c\t\"\"\"\\.", "commas part, and a quote inside a field is a letter");
	reads(tabs, "a,\\tb\t\"c\t\"\"\nd\"\r\ne", "a,\\tb|c\t\"\nd.",
		"in quotes stand tabs, line ends and doubled quotes");
	reads(tsv, text, "a,\tb|\"c|\"\"\"\nd.", "behind backslashes stand tabs and line ends, and quotes are letters");
	reads(literal, text, "a,\\tb|\"c|\"\"\"\\.", "each byte is itself");
	reads(tsv, "a\tb\\\n", "a|b\\ open", "a line end that belongs to a field, and nothing behind it");
	reads(literal, "a\tb\\\n", "a|b\\.", "which it does not here");
	reads(tsv, "a\tb\\", "a|b\\ whole", "a backslash at the end of the input is itself");
	tap_ok(wm_dialect_equal(csv, csv) && !wm_dialect_equal(csv, tabs) && !wm_dialect_equal(tabs, tsv) &&
			!wm_dialect_equal(tsv, literal),
		"the delimiter and the marks tell them apart");
	return tap_done();
}
