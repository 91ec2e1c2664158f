/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/list.h"

#include "tests/unit/tap.h"

/* The parts of a list, each with '|' behind it. */
static void
check_parts(const char *list, char separator, const char *want)
{
	struct wm_span rest = wm_span_of(list), part;
	struct wm_buf got;

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	while (wm_list_next(&rest, separator, &part)) {
		wm_buf_add(&got, part.data, part.len);
		wm_buf_add_byte(&got, '|');
	}
	tap_span(wm_buf_span(&got), want, list);
	tap_ok(rest.data == NULL && !wm_list_next(&rest, separator, &part), "then it has ended");
	wm_buf_release(&got);
}

static void
check_unescape(const char *text, const char *want)
{
	struct wm_buf got;

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	wm_buf_add_text(&got, "<");
	wm_list_unescape(wm_span_of(text), &got);
	wm_buf_add_text(&got, ">");
	tap_span(wm_buf_span(&got), want, text);
	wm_buf_release(&got);
}

int
main(void)
{
	check_parts("a,b,c", ',', "a|b|c|");
	check_parts("a", ',', "a|");
	check_parts("a,", ',', "a||");
	check_parts(",a", ',', "|a|");
	check_parts(",", ',', "||");
	check_parts("", ',', "|");
	check_parts("a\\,b,c", ',', "a\\,b|c|");
	check_parts("a\\\\,b", ',', "a\\\\|b|");
	check_parts("a\\\\\\,b", ',', "a\\\\\\,b|");
	check_parts("a,b\\", ',', "a|b\\|");
	check_parts("n=sum:c", '=', "n|sum:c|");
	check_parts("x\\=y=sum:c", '=', "x\\=y|sum:c|");
	check_parts("a,b", ':', "a,b|");

	check_unescape("plain", "<plain>");
	check_unescape("a\\,b", "<a,b>");
	check_unescape("a\\\\b", "<a\\b>");
	check_unescape("\\a\\:\\=\\.", "<a:=.>");
	check_unescape("a\\", "<a\\>");
	check_unescape("", "<>");
	return tap_done();
}
