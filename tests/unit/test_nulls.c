/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/nulls.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/tap.h"

/* A list as it is kept. */
static void
check_printed(const char *list, const char *want)
{
	struct wm_nulls nulls, again;
	struct wm_buf got, got_again;

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	wm_buf_init(&got_again, WM_BUF_UNBOUNDED);
	wm_nulls_parse(&nulls, list, false);
	wm_buf_add_byte(&got, '<');
	wm_nulls_print(&nulls, &got);
	tap_span(wm_span(got.data + 1, got.len - 1), want, list);
	wm_buf_add_byte(&got, '\0');
	wm_nulls_parse(&again, got.data + 1, false);
	wm_buf_add_byte(&got_again, '<');
	wm_nulls_print(&again, &got_again);
	tap_span(wm_span(got_again.data + 1, got_again.len - 1), want, "printed and read again it is the same");
	wm_nulls_release(&nulls);
	wm_nulls_release(&again);
	wm_buf_release(&got);
	wm_buf_release(&got_again);
}

static void
check_lists(void)
{
	check_printed("NA", "NA");
	check_printed("NULL,NA,\\N,-", "-,NA,NULL,\\N");
	check_printed("NA,NA,NA", "NA");
	check_printed("a\\,b,c", "a\\,b,c");
	check_printed("\\\\,x", "\\\\,x"); /* a backslash and a comma */
	check_printed("\\t,\\", "\\t,\\");
	check_printed("z,a\\", "z,a\\");
	check_printed("", "");
	check_printed("NA,", ",NA");
	check_printed(",", "");
}

static bool
is_missing(const char *list, bool takes_quoted, const char *text, enum wm_kind kind, enum wm_nulls_place place)
{
	struct wm_nulls nulls;
	struct wm_value value = { wm_span_of(text), kind };

	wm_nulls_parse(&nulls, list, takes_quoted);
	bool is = wm_nulls_are_in(&nulls, &value, place);
	wm_nulls_release(&nulls);
	return is;
}

static void
check_places(void)
{
	tap_ok(is_missing("NA,-", false, "-", WM_KIND_TEXT, WM_NULLS_FIELD), "a field");
	tap_ok(!is_missing("NA,-", false, "NAN", WM_KIND_TEXT, WM_NULLS_FIELD), "the whole field, not its begin");
	tap_ok(!is_missing("NA", false, "na", WM_KIND_TEXT, WM_NULLS_FIELD), "byte for byte");
	tap_ok(!is_missing("NA", false, " NA", WM_KIND_TEXT, WM_NULLS_FIELD), "blanks belong to it");
	tap_ok(!is_missing("-", false, "-", WM_KIND_TEXT, WM_NULLS_QUOTED), "in quotes it is a text");
	tap_ok(is_missing("-", true, "-", WM_KIND_TEXT, WM_NULLS_QUOTED), "unless these are taken too");
	tap_ok(is_missing("-", false, "", WM_KIND_TEXT, WM_NULLS_FIELD), "the empty field");
	tap_ok(is_missing("-", false, "", WM_KIND_TEXT, WM_NULLS_QUOTED), "in quotes too");
	tap_ok(!is_missing("-", false, "", WM_KIND_TEXT, WM_NULLS_JSON), "the empty string of JSON is a text");
	tap_ok(is_missing(",-", false, "", WM_KIND_TEXT, WM_NULLS_JSON), "unless the list has it");
	tap_ok(is_missing("-9", false, "-9", WM_KIND_NUMBER, WM_NULLS_JSON), "a JSON number by its text");
	tap_ok(!is_missing("-9", false, "-9.0", WM_KIND_NUMBER, WM_NULLS_JSON), "not by its value");
	tap_ok(!is_missing("true", false, "true", WM_KIND_BOOL, WM_NULLS_JSON), "a truth value is none of them");
	tap_ok(!is_missing("[]", false, "[]", WM_KIND_JSON, WM_NULLS_JSON), "nor is an array");
	tap_ok(is_missing("a\\,b", false, "a,b", WM_KIND_TEXT, WM_NULLS_FIELD), "an escaped comma");
	tap_ok(is_missing("\\N", false, "\\N", WM_KIND_TEXT, WM_NULLS_FIELD), "any other backslash is itself");
}

/* Random lists of short texts, held to a search from front to back. */
static void
check_random(void)
{
	static const char letters[] = "ab-\\,";
	unsigned int seed = 1;
	size_t wrong = 0, found = 0;

	for (size_t round = 0; round < 2000; round++) {
		char list[64] = "", texts[4][8], probe[72];
		size_t at = 0, count = (size_t)rand_r(&seed) % 4 + 1;
		struct wm_nulls nulls;

		for (size_t i = 0; i < count; i++) {
			size_t len = (size_t)rand_r(&seed) % 4;

			for (size_t j = 0; j < len; j++)
				texts[i][j] = letters[(size_t)rand_r(&seed) % (sizeof(letters) - 1)];
			/* A backslash before the comma that ends a text would be an escape. */
			if (len != 0 && texts[i][len - 1] == '\\')
				texts[i][len - 1] = 'b';
			texts[i][len] = '\0';
			if (i != 0)
				list[at++] = ',';
			for (size_t j = 0; j < len; j++) {
				if (texts[i][j] == ',')
					list[at++] = '\\';
				list[at++] = texts[i][j];
			}
		}
		list[at] = '\0';
		wm_nulls_parse(&nulls, list, false);
		for (size_t tries = 0; tries < 20; tries++) {
			size_t len = (size_t)rand_r(&seed) % (tries == 0 ? 70 : 4);
			bool is = false;

			for (size_t j = 0; j < len; j++)
				probe[j] = letters[(size_t)rand_r(&seed) % (sizeof(letters) - 1)];
			for (size_t i = 0; i < count; i++)
				is |= strlen(texts[i]) == len && memcmp(texts[i], probe, len) == 0;
			wrong += wm_nulls_has(&nulls, wm_span(probe, len)) != is;
			found += is;
		}
		wm_nulls_release(&nulls);
	}
	tap_int((int64_t)wrong, 0, "random lists have their texts and no others");
	tap_ok(found > 1000, "and these were met");

	char text[101];
	memset(text, 'x', 100);
	text[100] = '\0';
	tap_ok(is_missing(text, false, text, WM_KIND_TEXT, WM_NULLS_FIELD), "a long text");
	tap_ok(!is_missing(text, false, text + 1, WM_KIND_TEXT, WM_NULLS_FIELD), "is not a shorter one");
}

static void
check_advised(const char *list, const char *text, bool is_quoted, const char *want)
{
	struct wm_nulls nulls;
	struct wm_buf got;

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	if (list != NULL)
		wm_nulls_parse(&nulls, list, false);
	wm_nulls_advise(list == NULL ? NULL : &nulls, wm_span_of(text), is_quoted, &got);
	tap_span(wm_buf_span(&got), want, text);
	if (list != NULL)
		wm_nulls_release(&nulls);
	wm_buf_release(&got);
}

int
main(void)
{
	check_lists();
	check_places();
	check_random();

	tap_ok(wm_nulls_is_usual(wm_span_of("\\N")) && wm_nulls_is_usual(wm_span_of("--")),
		"texts that programs write");
	tap_ok(!wm_nulls_is_usual(wm_span_of("n/a?")) && !wm_nulls_is_usual(wm_span_of("")), "others");

	check_advised(NULL, "NA", false, "--null NA");
	check_advised(NULL, "\\N", false, "--null '\\N'");
	check_advised(NULL, "n a", true, "--null 'n a' --null-quoted");
	check_advised("NA", "-", false, "--null NA,-");
	check_advised("NA", "NA", true, "--null NA --null-quoted");
	check_advised(NULL, "a,b", false, "--null 'a\\,b'");
	check_advised(NULL, "it's", false, "--null LIST");
	check_advised(NULL, "\033[1m", false, "--null LIST");
	check_advised("z\\", "NA", false, "--null LIST");
	return tap_done();
}
