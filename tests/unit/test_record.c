/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/record.h"

#include "tests/unit/tap.h"

/* "name|part|part", or the message of a refusal. */
static void
check(const char *text, const char *want)
{
	struct wm_column column;
	struct wm_err err = { 0 };
	char got[1200];
	size_t len = 0;

	if (!wm_column_parse(wm_span_of(text), &column, &err)) {
		snprintf(got, sizeof(got), "%s", err.message);
	} else {
		len += (size_t)snprintf(got, sizeof(got), "%s", column.name);
		for (size_t i = 0; i < column.path_count; i++)
			len += (size_t)snprintf(got + len, sizeof(got) - len, "|%s", column.path[i]);
		wm_column_release(&column);
	}
	tap_text(got, want, *text == '\0' ? "the empty text" : text);
}

int
main(void)
{
	struct wm_column column;
	struct wm_err err = { 0 };

	check("time", "time|time");
	check("user.id", "user.id|user|id");
	check("items.0.id", "items.0.id|items|0|id");
	check("meta\\.time", "meta.time|meta.time");
	check("a\\.b.c", "a.b.c|a.b|c");
	check("a\\\\.b", "a\\.b|a\\|b");
	check("a b", "a b|a b");
	check("", "empty column name: name a column");
	check("a..b", "column 'a..b' has an empty part: write '\\.' for a dot that belongs to a name");
	check(".a", "column '.a' has an empty part: write '\\.' for a dot that belongs to a name");
	check("a.", "column 'a.' has an empty part: write '\\.' for a dot that belongs to a name");
	check("a\\.", "a.|a.");
	tap_ok(!wm_column_parse(wm_span_of("x\033."), &column, &err) && strstr(err.message, "'x\\x1B.'") != NULL,
		"messages show control bytes as \\xNN");
	tap_int(err.code, WM_ERR_USAGE, "and are usage errors");
	tap_ok(wm_column_parse(wm_span("a\0b", 3), &column, &err) && column.name_len == 3 && column.path_len[0] == 3 &&
			memcmp(column.name, "a\0b", 4) == 0,
		"a name may hold NUL");
	wm_column_release(&column);
	return tap_done();
}
