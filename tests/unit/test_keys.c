/* SPDX-License-Identifier: Apache-2.0 */
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

static int
compare_sorted(const void *a, const void *b)
{
	const struct wm_keys_item *item_a = a, *item_b = b;
	int order = wm_keys_compare(item_a->entry, item_b->entry);

	return order != 0 ? order : (item_a->number > item_b->number) - (item_a->number < item_b->number);
}

/* Texts of a shape: few bytes or many, NUL among them, what they begin with in common, numbers with as many digits. */
static struct wm_value
random_value(uint64_t *random, size_t shape, char *text)
{
	static const size_t lengths[] = { 3, 9, 40, 8, 17 };
	size_t common = shape == 1 ? 5 : shape == 2 ? 25 : 0, len = common + tap_random(random) % lengths[shape];

	memset(text, 'p', common);
	for (size_t i = common; i < len; i++)
		text[i] = shape == 3 ? (char)tap_random(random) : (char)("\0ab0123456789"[tap_random(random) % 13]);
	if (shape == 4)
		len = (size_t)snprintf(text, 64, "user-%08u", (unsigned)(tap_random(random) % 40000));
	enum wm_kind kind = tap_random(random) % 16 == 0 ? WM_KIND_NUMBER : WM_KIND_TEXT;
	if (tap_random(random) % 50 == 0) {
		len = 0;
		kind = tap_random(random) % 2 ? WM_KIND_NULL : WM_KIND_TEXT;
	}
	return (struct wm_value){ wm_span(text, len), kind };
}

static const struct wm_pause none;

/* Items of random keys, some of one key, stand as comparing puts them. */
static bool
sorts(uint64_t *random, size_t count, size_t columns, size_t shape)
{
	struct wm_keys_item *items = calloc(count + 1, sizeof(*items)), *want = calloc(count + 1, sizeof(*want));
	struct wm_table table;
	struct wm_buf text;
	bool is_sorted = true, is_new;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_table_init(&table, 16);
	for (size_t i = 0; i < count; i++) {
		struct wm_value values[3];
		char texts[3][80];
		uint8_t tag;

		/* First columns with few values leave much to the others. */
		for (size_t column = 0; column < columns; column++)
			values[column] = random_value(random, column + 1 < columns ? 0 : shape, texts[column]);
		struct wm_span key = wm_keys_pack(values, columns, &text, &tag);
		items[i].entry = wm_table_put(&table, key, tag, &is_new);
		items[i].number = tap_random(random);
	}
	memcpy(want, items, count * sizeof(*items));
	wm_keys_sort(items, count, columns, &none);
	qsort(want, count, sizeof(*want), compare_sorted);
	for (size_t i = 0; i < count && is_sorted; i++)
		is_sorted = items[i].entry == want[i].entry && items[i].number == want[i].number;
	wm_table_release(&table);
	wm_buf_release(&text);
	free(items);
	free(want);
	return is_sorted;
}

static void
test_sort(void)
{
	static const size_t counts[] = { 0, 1, 2, 24, 25, 200, 5000, 30000 };
	uint64_t random = 14;

	for (size_t columns = 0; columns <= 3; columns++) {
		bool is_well = true;

		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			for (size_t shape = 0; shape < 5 && is_well; shape++)
				for (size_t round = 0; round < 3 && is_well; round++)
					is_well = sorts(&random, counts[i], columns, shape);
		tap_ok(is_well, "random keys of %zu columns are sorted", columns);
	}
}

/* One item of each length, all of one byte: nested as deep as can be. */
static void
test_sort_deep(void)
{
	static char text[4000];
	static struct wm_keys_item items[sizeof(text)];
	struct wm_table table;
	bool is_new, is_sorted = true;

	memset(text, 'z', sizeof(text));
	wm_table_init(&table, 16);
	for (size_t len = 0; len < sizeof(text); len++)
		items[len * 7 % sizeof(text)].entry = wm_table_put(&table, wm_span(text, len), WM_KIND_TEXT, &is_new);
	wm_keys_sort(items, sizeof(text), 1, &none);
	for (size_t len = 0; len < sizeof(text); len++)
		is_sorted = is_sorted && items[len].entry->key_len == len;
	tap_ok(is_sorted, "keys that begin each other are sorted");
	wm_table_release(&table);
}

int
main(void)
{
	uint8_t tag;
	struct wm_buf text;

	test_order(1);
	test_order(2);
	test_sort();
	test_sort_deep();
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	struct wm_span key = wm_keys_pack(pairs[8], 2, &text, &tag);
	tap_ok(!wm_keys_are_valid(wm_span(key.data, key.len - 1), tag, 2), "a key that is cut short is not valid");
	tap_ok(!wm_keys_are_valid(key, tag, 3), "nor one of too few columns");
	tap_ok(wm_keys_are_valid(wm_keys_pack(NULL, 0, &text, &tag), tag, 0), "a key of no columns is valid");
	wm_buf_release(&text);
	return tap_done();
}
