/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/fill.h"

#include "tests/unit/tap.h"

static struct wm_table table; /* of the keys that are announced */

static const struct wm_entry *
entry_of(const char *key)
{
	bool is_new;

	return wm_table_put(&table, wm_span_of(key), WM_KIND_TEXT, &is_new);
}

/* "3a 3b 4a ": all fillers, those of one number in order of keys. */
static void
take_all(struct wm_fill *fill, struct wm_buf *out)
{
	int64_t number;

	wm_buf_reset(out);
	while (wm_fill_next(fill, &number)) {
		uint32_t keys = 0;

		for (const struct wm_entry *entry; (entry = wm_fill_take(fill, number)) != NULL;)
			keys |= UINT32_C(1) << (entry->key[0] - 'a');
		for (int i = 0; i < 26; i++)
			if ((keys >> i & 1) != 0)
				wm_buf_addf(out, "%d%c ", (int)number, 'a' + i);
	}
}

static void
announce_at(struct wm_fill *fill, int64_t number, const char *key)
{
	wm_fill_announce(fill, number, entry_of(key));
}

static struct wm_fill *
saved_and_loaded(struct wm_fill *fill, const struct wm_agg *agg, bool has_cells)
{
	struct wm_fill *back = wm_fill_new(agg, has_cells);
	struct wm_buf bytes;
	struct wm_get in;
	bool is_refused = true;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_fill_encode(fill, &bytes);
	for (size_t len = 0; len < bytes.len; len++) {
		struct wm_fill *cut = wm_fill_new(agg, has_cells);

		wm_get_init(&in, wm_span(bytes.data, len));
		is_refused = is_refused && !wm_fill_decode(cut, 1, &in);
		wm_fill_free(cut);
	}
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(wm_fill_decode(back, 1, &in) && wm_get_left(&in) == 0 && is_refused,
		"saved and loaded; what is cut short is refused");
	wm_buf_release(&bytes);
	wm_fill_free(fill);
	return back;
}

static void
test_gaps(const struct wm_agg *agg)
{
	struct wm_fill *fill = wm_fill_new(agg, false);
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	announce_at(fill, -2, "a");
	announce_at(fill, 1, "a");
	announce_at(fill, 1, "b");
	announce_at(fill, 2, "c");
	announce_at(fill, 3, "b");
	announce_at(fill, 4, "a");
	take_all(fill, &out);
	tap_span(wm_buf_span(&out), "-1a 0a 2a 2b 3a ", "gaps that overlap come number by number");
	fill = saved_and_loaded(fill, agg, false);
	announce_at(fill, 5, "a");
	announce_at(fill, 5, "b");
	announce_at(fill, 5, "d");
	take_all(fill, &out);
	tap_span(wm_buf_span(&out), "4b ", "neighbours and first windows leave no gap");
	tap_ok(wm_fill_cell(fill, entry_of("a")) == NULL, "without cells fillers have none");
	wm_buf_release(&out);
	wm_fill_free(fill);
}

static void
test_limit(const struct wm_agg *agg)
{
	struct wm_fill *fill = wm_fill_new(agg, false);
	int64_t number, count = 0;

	announce_at(fill, 0, "a");
	announce_at(fill, WM_FILL_WINDOWS_MAX + 1, "a");
	while (wm_fill_next(fill, &number))
		while (wm_fill_take(fill, number) != NULL)
			count++;
	tap_int(count, WM_FILL_WINDOWS_MAX, "the longest gap that is filled");
	tap_int((int64_t)wm_fill_skipped(fill), 0, "is not counted");
	announce_at(fill, 2 * WM_FILL_WINDOWS_MAX + 3, "a");
	tap_ok(!wm_fill_next(fill, &number), "one more is not filled");
	tap_int((int64_t)wm_fill_skipped(fill), 1, "but counted");
	fill = saved_and_loaded(fill, agg, false);
	tap_int((int64_t)wm_fill_skipped(fill), 1, "also when loaded");
	wm_fill_free(fill);
}

static void
test_cells(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("last:v"), &err);
	struct wm_fill *fill = wm_fill_new(agg, true);
	struct wm_arena arena = { 0 };
	struct wm_buf out;
	void *cell = wm_arena_alloc(&arena, wm_agg_cell_bytes(agg));
	const struct wm_entry *entry = NULL;
	int64_t number;
	bool is_last = true;
	size_t bytes = 0;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	/* 500 texts that do not fit a cell, each seen again in the gap behind it. */
	for (int64_t i = 0; i < 500; i++) {
		char text[80];
		struct wm_value field = { wm_span(text, (size_t)snprintf(text, sizeof(text), "%060d", (int)i)),
			WM_KIND_TEXT };
		struct wm_reading reading;

		wm_reading_take(&reading, &field);
		wm_fill_announce(fill, 2 * i, entry_of("a"));
		if (i > 0) {
			is_last = is_last && wm_fill_next(fill, &number) && number == 2 * i - 1 &&
				(entry = wm_fill_take(fill, number)) != NULL;
			wm_buf_reset(&out);
			if (is_last)
				wm_agg_cell_print(agg, wm_fill_cell(fill, entry), 0, 0, &out);
			snprintf(text, sizeof(text), "%060d", (int)i - 1);
			is_last = is_last && wm_span_equal(wm_buf_span(&out), wm_span_of(text)) &&
				wm_fill_take(fill, number) == NULL;
			snprintf(text, sizeof(text), "%060d", (int)i);
		}
		wm_agg_cell_init(agg, cell);
		wm_agg_cell_add(agg, cell, &arena, &reading, i);
		wm_fill_written(fill, entry_of("a"), cell);
		if (i == 100)
			bytes = wm_fill_bytes(fill);
	}
	tap_ok(is_last, "a filler has the cell of the window before it");
	tap_ok(wm_fill_bytes(fill) < 3 * bytes, "what replaced cells leave is given back");
	fill = saved_and_loaded(fill, agg, true);
	wm_buf_release(&out);
	wm_arena_release(&arena);
	wm_fill_free(fill);
	wm_agg_free(agg);
}

int
main(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count"), &err);

	wm_table_init(&table, 16);
	test_gaps(agg);
	test_limit(agg);
	test_cells();
	wm_table_release(&table);
	wm_agg_free(agg);
	return tap_done();
}
