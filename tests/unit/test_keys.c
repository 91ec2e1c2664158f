#include "lib/op/keys.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define KEYS_COUNT 10

/* Two columns each, in the order of results. */
static const struct wm_value pairs[KEYS_COUNT][2] = {
	{ { { "", 0 }, WM_KIND_NULL }, { { "z", 1 }, WM_KIND_TEXT } },
	{ { { "", 0 }, WM_KIND_TEXT }, { { "", 0 }, WM_KIND_NULL } },
	{ { { "", 0 }, WM_KIND_TEXT }, { { "ab", 2 }, WM_KIND_TEXT } },
	{ { { "1", 1 }, WM_KIND_TEXT }, { { "z", 1 }, WM_KIND_TEXT } },
	{ { { "1", 1 }, WM_KIND_NUMBER }, { { "a", 1 }, WM_KIND_TEXT } },
	{ { { "a", 1 }, WM_KIND_TEXT }, { { "b", 1 }, WM_KIND_TEXT } },
	{ { { "a", 1 }, WM_KIND_TEXT }, { { "bc", 2 }, WM_KIND_TEXT } },
	{ { { "ab", 2 }, WM_KIND_TEXT }, { { "", 0 }, WM_KIND_TEXT } },
	{ { { "ab", 2 }, WM_KIND_TEXT }, { { "c", 1 }, WM_KIND_TEXT } },
	{ { { "\xff", 1 }, WM_KIND_TEXT }, { { "a", 1 }, WM_KIND_TEXT } },
};

static int
compare(const void *a, const void *b)
{
	return wm_keys_compare(*(const struct wm_entry *const *)a, *(const struct wm_entry *const *)b);
}

/* The first columns of all pairs as keys of so many columns: sorted, they have the order of the list, and come back as they were. */
static void
test_order(size_t columns)
{
	struct wm_table table;
	struct wm_entry *entries[KEYS_COUNT];
	struct wm_value back[2];
	struct wm_buf text;
	size_t count = 0, at = 0, place = 0;
	bool is_same = true, is_valid = true;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_table_init(&table, 16);
	/* The last first, so that nothing is in order by chance. */
	for (size_t i = KEYS_COUNT; i-- > 0;) {
		uint8_t tag;
		bool is_new;
		struct wm_span key = wm_keys_pack(pairs[i], columns, &text, &tag);

		is_valid = is_valid && wm_keys_are_valid(key, tag, columns) && !wm_keys_are_valid(key, 9, columns);
		wm_table_put(&table, key, tag, &is_new);
	}
	while ((entries[count] = wm_table_next(&table, &at)) != NULL)
		if (++count == KEYS_COUNT)
			break;
	qsort(entries, count, sizeof(entries[0]), compare);
	for (size_t i = 0; i < count; i++, place++) {
		wm_keys_unpack(entries[i], back, columns);
		/* With one column some pairs are one key. */
		while (columns == 1 && place + 1 < KEYS_COUNT && pairs[place][0].kind == pairs[place + 1][0].kind &&
			wm_span_equal(pairs[place][0].text, pairs[place + 1][0].text))
			place++;
		for (size_t column = 0; column < columns; column++)
			is_same = is_same && back[column].kind == pairs[place][column].kind &&
				wm_span_equal(back[column].text, pairs[place][column].text);
		if (i > 0)
			is_same = is_same && wm_keys_prefix(entries[i - 1]) <= wm_keys_prefix(entries[i]);
	}
	tap_int((int64_t)count, columns == 1 ? 7 : KEYS_COUNT, columns == 1 ? "keys of one column" : "of two columns");
	tap_ok(is_same && place == KEYS_COUNT, "they come back in the order of results");
	tap_ok(is_valid, "and are valid, with another tag not");
	wm_table_release(&table);
	wm_buf_release(&text);
}

int
main(void)
{
	uint8_t tag;
	struct wm_buf text;

	test_order(1);
	test_order(2);
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	struct wm_span key = wm_keys_pack(pairs[8], 2, &text, &tag);
	tap_ok(!wm_keys_are_valid(wm_span(key.data, key.len - 1), tag, 2), "a key that is cut short is not valid");
	tap_ok(!wm_keys_are_valid(key, tag, 3), "nor one of too few columns");
	tap_ok(wm_keys_are_valid(wm_keys_pack(NULL, 0, &text, &tag), tag, 0), "a key of no columns is valid");
	wm_buf_release(&text);
	return tap_done();
}
