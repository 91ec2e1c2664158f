/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/slices.h"

#include "tests/unit/tap.h"

/* The model: each record with its window numbers, added up anew for each question. Values and keys are small numbers. */
#define RECORDS_MAX 120
#define KEYS 4

struct record {
	int64_t first, last; /* windows */
	int key;
	int64_t value;
};

static struct record records[RECORDS_MAX];
static size_t records_count;

static void
model_sum(int64_t window, int key, int64_t *count, int64_t *sum)
{
	*count = *sum = 0;
	for (size_t i = 0; i < records_count; i++) {
		if (records[i].key == key && window >= records[i].first && window <= records[i].last) {
			*sum += records[i].value;
			(*count)++;
		}
	}
}

static struct wm_span
key_of(int key)
{
	static const char names[] = "abcd";

	return wm_span(names + key, 1);
}

static bool
cell_is(const struct wm_agg *agg, const void *cell, int64_t count, int64_t sum)
{
	struct wm_buf text;
	char want[64];

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_agg_cell_print(agg, cell, 0, 0, &text);
	wm_buf_add_byte(&text, ' ');
	wm_agg_cell_print(agg, cell, 1, 0, &text);
	snprintf(want, sizeof(want), "%lld %lld", (long long)count, (long long)sum);
	bool is_same = wm_span_is(wm_buf_span(&text), want);
	wm_buf_release(&text);
	return is_same;
}

static void
add(struct wm_slices *slices, int64_t time_us, int key, int64_t value)
{
	struct wm_slice at;
	char text[24];
	struct wm_value field = { wm_span(text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)value)),
		WM_KIND_TEXT };
	struct wm_reading reading;

	wm_reading_take(&reading, &field);
	wm_windows_slice(slices->windows, time_us, &at);
	records[records_count++] = (struct record){ at.window_first, at.window_last, key, value };
	int64_t first = slices->is_apart ? at.window_first : at.number,
		last = slices->is_apart ? at.window_last : first;
	for (int64_t number = first; number <= last; number++) {
		if (slices->is_apart)
			wm_slices_place(slices, number, &at);
		struct wm_cells *cells = wm_slices_at(slices, &at);
		struct wm_entry *entry = wm_slices_entry(slices, &cells->table, key_of(key), 1);

		wm_agg_cell_add(slices->agg, wm_entry_value(entry), &cells->table.arena, &reading, time_us);
		if (number < slices->combined_end)
			wm_slices_add_to_runs(slices, number, key_of(key), 1, &reading, time_us);
	}
}

/* Each key of each window from one on, by the table of the window and alone; and how many there are. */
static bool
windows_agree(struct wm_slices *slices, int64_t from)
{
	bool agrees = true;
	int64_t last = INT64_MIN;
	uint64_t pairs_count = 0;

	for (size_t i = 0; i < records_count; i++)
		last = records[i].last > last ? records[i].last : last;
	for (int64_t window = from; window <= last; window++) {
		for (int key = 0; key < KEYS; key++) {
			struct wm_arena arena = { 0 };
			const void *cells[2];
			int64_t count, sum, next_count, next_sum;

			model_sum(window, key, &count, &sum);
			if (count == 0)
				continue;
			pairs_count++;
			const struct wm_entry *entry = wm_table_find(wm_slices_window(slices, window), key_of(key), 1);
			agrees = agrees && entry != NULL && cell_is(slices->agg, wm_entry_value(entry), count, sum);
			model_sum(window + 1, key, &next_count, &next_sum);
			wm_slices_key_windows(
				slices, key_of(key), 1, window, window + (next_count != 0), &arena, cells);
			agrees = agrees && cell_is(slices->agg, cells[0], count, sum) &&
				(next_count == 0 || cell_is(slices->agg, cells[1], next_count, next_sum));
			wm_arena_release(&arena);
		}
	}
	return agrees && wm_slices_count_windows(slices, from) == pairs_count;
}

static bool
stream_agrees(uint64_t *seed, const struct wm_agg *agg, bool is_cumulating, bool is_apart)
{
	int64_t slide = 1 + (int64_t)(tap_random(seed) % 10), size = slide + (int64_t)(tap_random(seed) % 60);
	struct wm_windows windows;
	struct wm_slices slices;
	bool agrees = true;

	if (is_cumulating)
		wm_windows_init_cumulating(&windows, slide * (1 + size % 7), slide, 3);
	else
		wm_windows_init(&windows, size, slide, 3);
	wm_slices_init(&slices, &windows, agg, 0, is_apart);
	records_count = 0;
	for (int64_t time_us = -50; records_count < RECORDS_MAX && agrees; time_us += 3) {
		add(&slices, time_us - (int64_t)(tap_random(seed) % 40), (int)(tap_random(seed) % KEYS),
			(int64_t)(tap_random(seed) % 100));
		if (tap_random(seed) % 20 != 0)
			continue;
		int64_t from = wm_window_first_open(&windows, time_us - 40);
		agrees = windows_agree(&slices, from);
		wm_slices_forget_runs(&slices, from);
		for (struct wm_cells *cells; (cells = wm_slices_take_before(&slices, from)) != NULL;)
			wm_slices_free_cells(cells);
	}
	wm_slices_release(&slices);
	return agrees;
}

static void
test_windows(const struct wm_agg *agg, bool is_cumulating, bool is_apart, const char *name)
{
	uint64_t seed = 23;
	int streams = 0;

	while (streams < 40 && stream_agrees(&seed, agg, is_cumulating, is_apart))
		streams++;
	tap_int(streams, 40, name);
}

/* A slice is carried over an empty place, then into a slice. */
static void
test_carry(const struct wm_agg *agg)
{
	struct wm_windows windows;
	struct wm_slices slices;
	int64_t count, sum;

	wm_windows_init_cumulating(&windows, 40, 10, 0);
	wm_slices_init(&slices, &windows, agg, 0, false);
	records_count = 0;
	add(&slices, 5, 0, 1);
	add(&slices, 5, 1, 2);
	add(&slices, 25, 0, 4);
	add(&slices, 29, 2, 8);
	tap_int((int64_t)wm_slices_carry(&slices, wm_slices_from(&slices, INT64_MIN), 1), 0,
		"carried into an empty place");
	const struct wm_cells *first = wm_slices_from(&slices, INT64_MIN);
	tap_ok(first->at.number == 1 && first->at.start_us == 10 && first->at.end_us == 20 && first->table.count == 2,
		"a slice has its new place");
	tap_int((int64_t)wm_slices_carry(&slices, wm_slices_from(&slices, INT64_MIN), 2), 1,
		"carried into a slice, one key was in both");
	tap_int((int64_t)slices.map.count, 1, "one slice is left");
	const struct wm_table *table = wm_slices_window(&slices, 2);
	bool is_sum = table->count == 3;
	for (int key = 0; key < 3; key++) {
		model_sum(2, key, &count, &sum);
		const struct wm_entry *entry = wm_table_find(table, key_of(key), 1);
		is_sum = is_sum && entry != NULL && cell_is(agg, wm_entry_value(entry), count, sum);
	}
	tap_ok(is_sum, "and is the third step");
	wm_slices_release(&slices);
}

static void
test_pack(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("last:v"), &err);
	struct wm_windows windows;
	struct wm_slices slices;
	struct wm_slice at;
	struct wm_value field = { wm_span_of("a text that is far too long for the few bytes of its cell"),
		WM_KIND_TEXT };
	struct wm_reading reading;
	struct wm_buf text;
	size_t bytes_max = 0;
	int packed = 0;

	wm_reading_take(&reading, &field);
	wm_windows_init(&windows, 10, 10, 0);
	wm_slices_init(&slices, &windows, agg, 16, false);
	wm_windows_slice(&windows, 0, &at);
	struct wm_cells *cells = wm_slices_at(&slices, &at);
	for (int i = 0; i < 1000; i++) {
		struct wm_entry *entry = wm_slices_entry(&slices, &cells->table, key_of(0), 1);
		uint64_t *own = (uint64_t *)(void *)((char *)wm_entry_value(entry) + slices.cell_bytes);

		wm_agg_cell_init(agg, wm_entry_value(entry));
		wm_agg_cell_add(agg, wm_entry_value(entry), &cells->table.arena, &reading, 0);
		if (*own == (uint64_t)i)
			++*own;
		packed += wm_slices_pack(&slices, cells);
		if (wm_slices_bytes(&slices) > bytes_max)
			bytes_max = wm_slices_bytes(&slices);
	}
	const struct wm_entry *entry = wm_table_find(&cells->table, key_of(0), 1);
	tap_ok(packed > 2 && bytes_max < 16000, "what cells that are begun anew leave is given back");
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_agg_cell_print(agg, wm_entry_value(entry), 0, 0, &text);
	tap_ok(wm_span_equal(wm_buf_span(&text), field.text), "a cell is as it was");
	tap_int(*(const int64_t *)(const void *)((const char *)wm_entry_value(entry) + slices.cell_bytes), 1000,
		"and so are the bytes behind it, zero at first");
	wm_buf_release(&text);
	wm_slices_release(&slices);
	wm_agg_free(agg);
}

int
main(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,sum:v"), &err);

	test_windows(agg, false, false, "sliding windows: 40 random streams as the model");
	test_windows(agg, true, false, "cumulating windows");
	test_windows(agg, false, true, "windows apart");
	test_carry(agg);
	test_pack();
	wm_agg_free(agg);
	return tap_done();
}
