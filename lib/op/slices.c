/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/slices.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

/* How much of an arena may be left by replaced cells, beside as much as was in use. */
#define LITTER_BYTES 4096

void
wm_slices_init(struct wm_slices *slices, const struct wm_windows *windows, const struct wm_agg *agg, size_t own_bytes,
	bool is_apart)
{
	*slices = (struct wm_slices){
		.windows = windows,
		.agg = agg,
		.cell_bytes = wm_agg_cell_bytes(agg),
		.own_bytes = own_bytes,
		.is_apart = is_apart,
		.combined_end = INT64_MIN,
	};
	wm_table_init(&slices->combined, slices->cell_bytes);
}

void
wm_slices_free_cells(struct wm_cells *cells)
{
	wm_table_release(&cells->table);
	free(cells);
}

void
wm_slices_release(struct wm_slices *slices)
{
	struct wm_ordered_at at = wm_ordered_seek(&slices->map, INT64_MIN);

	for (struct wm_cells *cells; (cells = wm_ordered_next(&slices->map, &at, NULL)) != NULL;)
		wm_slices_free_cells(cells);
	wm_ordered_release(&slices->map);
	for (size_t level = 0; level < WM_SLICES_LEVELS_MAX; level++) {
		at = wm_ordered_seek(&slices->levels[level], INT64_MIN);
		for (struct wm_table *run; (run = wm_ordered_next(&slices->levels[level], &at, NULL)) != NULL;) {
			wm_table_release(run);
			free(run);
		}
		wm_ordered_release(&slices->levels[level]);
	}
	wm_table_release(&slices->combined);
}

struct wm_cells *
wm_slices_at(struct wm_slices *slices, const struct wm_slice *at)
{
	struct wm_cells *cells = wm_ordered_find(&slices->map, at->number);

	if (cells == NULL) {
		const struct wm_cells *before = wm_ordered_find(&slices->map, at->number - 1);

		cells = wm_calloc(1, sizeof(struct wm_cells));
		cells->at = *at;
		wm_table_init(&cells->table, slices->cell_bytes + slices->own_bytes);
		if (before != NULL)
			wm_table_expect(&cells->table, before->table.count);
		wm_ordered_put(&slices->map, at->number, cells);
	}
	return cells;
}

void
wm_slices_place(const struct wm_slices *slices, int64_t number, struct wm_slice *at)
{
	int64_t end_us = wm_window_end_us(slices->windows, number);

	/* Where a slice is asked for by its number, slices end where the windows of their numbers do. */
	if (!slices->is_apart) {
		assert(slices->windows->steps != 0);
		wm_windows_slice(slices->windows, end_us - 1, at);
		return;
	}
	*at = (struct wm_slice){ number, wm_window_start_us(slices->windows, number), end_us, number, number, end_us,
		end_us };
}

struct wm_cells *
wm_slices_from(const struct wm_slices *slices, int64_t number)
{
	struct wm_ordered_at at = wm_ordered_seek(&slices->map, number);

	return wm_ordered_next(&slices->map, &at, NULL);
}

int64_t
wm_slices_begin(const struct wm_slices *slices, int64_t window_number)
{
	return slices->is_apart ? window_number : wm_window_slice_begin(slices->windows, window_number);
}

int64_t
wm_slices_end(const struct wm_slices *slices, int64_t window_number)
{
	return slices->is_apart ? window_number + 1 : wm_window_slice_end(slices->windows, window_number);
}

/* Flat: it is called with every record. */
__attribute__((flatten)) void
wm_slices_begin_cell(const struct wm_slices *slices, const struct wm_table *table, struct wm_entry *entry)
{
	char *cell = wm_entry_value(entry);

	wm_agg_cell_init(slices->agg, cell);
	if (table->value_bytes != slices->cell_bytes)
		memset(cell + slices->cell_bytes, 0, slices->own_bytes);
}

/* Runs: a run of a level is 2^level slices, from a multiple of that */

static int64_t
run_begin(size_t level, int64_t place)
{
	return place * (INT64_C(1) << level);
}

void
wm_slices_add_to_runs(struct wm_slices *slices, int64_t number, struct wm_span key, uint8_t tag,
	const struct wm_reading *readings, int64_t event_time_us)
{
	for (size_t level = 1; level < WM_SLICES_LEVELS_MAX; level++) {
		struct wm_table *run = NULL;

		if (slices->levels[level].count != 0)
			run = wm_ordered_find(&slices->levels[level], number >> level);
		if (run == NULL)
			continue;
		struct wm_entry *entry = wm_slices_entry(slices, run, key, tag);
		wm_agg_cell_add(slices->agg, wm_entry_value(entry), &run->arena, readings, event_time_us);
	}
}

/* Entries of one table on their way into another. With many keys each of these steps would wait for memory, so it is asked for by some at once. */
#define PIECE_MAX 16

struct piece {
	const struct wm_entry *entries[PIECE_MAX];
	struct wm_entry *targets[PIECE_MAX];
	size_t count;
};

/* The next entries of a table, and those of the same keys in another, their cells begun where they are new; false at the end. */
static bool
take_piece(const struct wm_slices *slices, struct wm_table *into, const struct wm_table *from, size_t *at,
	struct piece *piece)
{
	uint64_t hashes[PIECE_MAX];
	const struct wm_entry *entry;

	for (piece->count = 0; piece->count < PIECE_MAX && (entry = wm_table_next(from, at)) != NULL; piece->count++) {
		__builtin_prefetch(entry);
		__builtin_prefetch((const char *)entry + 64);
		piece->entries[piece->count] = entry;
	}
	for (size_t i = 0; i < piece->count; i++) {
		hashes[i] = wm_hash(wm_entry_key(piece->entries[i]), piece->entries[i]->tag);
		if (into->slots != NULL)
			wm_table_fetch_place(into, hashes[i]);
	}
	for (size_t i = 0; i < piece->count && into->slots != NULL; i++)
		wm_table_fetch_entry(into, hashes[i]);
	for (size_t i = 0; i < piece->count; i++) {
		bool is_new;

		entry = piece->entries[i];
		piece->targets[i] = wm_table_put_hashed(into, wm_entry_key(entry), entry->tag, hashes[i], &is_new);
		if (is_new)
			wm_slices_begin_cell(slices, into, piece->targets[i]);
	}
	return piece->count != 0;
}

static void
merge_table(const struct wm_slices *slices, struct wm_table *into, const struct wm_table *from)
{
	struct piece piece;
	size_t at = 0;

	wm_table_expect(into, from->count);
	while (take_piece(slices, into, from, &at, &piece))
		for (size_t i = 0; i < piece.count; i++)
			wm_agg_cell_merge(slices->agg, wm_entry_value(piece.targets[i]), &into->arena,
				wm_entry_value(piece.entries[i]));
}

/* The table of the run of 2^level slices from place << level: made when first asked for. NULL if it holds nothing. */
static const struct wm_table *
run_table(struct wm_slices *slices, size_t level, int64_t place)
{
	int64_t begin = run_begin(level, place), end = run_begin(level, place + 1), number;
	struct wm_ordered_at at = wm_ordered_seek(&slices->map, begin);
	struct wm_cells *only = wm_ordered_next(&slices->map, &at, &number);

	if (only == NULL || number >= end)
		return NULL;
	if (wm_ordered_next(&slices->map, &at, &number) == NULL || number >= end)
		return &only->table;
	struct wm_table *run = wm_ordered_find(&slices->levels[level], place);
	if (run != NULL)
		return run;
	run = wm_malloc(sizeof(struct wm_table));
	wm_table_init(run, slices->cell_bytes);
	for (int64_t half = 2 * place; half <= 2 * place + 1; half++) {
		const struct wm_table *part = run_table(slices, level - 1, half);

		if (part != NULL)
			merge_table(slices, run, part);
	}
	wm_ordered_put(&slices->levels[level], place, run);
	if (end > slices->combined_end)
		slices->combined_end = end;
	return run;
}

/* That of its only slice, or as few runs as cover it, combined. */
const struct wm_table *
wm_slices_window(struct wm_slices *slices, int64_t window_number)
{
	int64_t begin = wm_slices_begin(slices, window_number);
	int64_t end = wm_slices_end(slices, window_number), number;
	struct wm_ordered_at at = wm_ordered_seek(&slices->map, begin);
	struct wm_cells *only = wm_ordered_next(&slices->map, &at, &number);

	assert(only != NULL && number < end);
	if (wm_ordered_next(&slices->map, &at, &number) == NULL || number >= end)
		return &only->table;
	wm_table_release(&slices->combined);
	while (begin < end) {
		size_t level = 0;

		while ((begin & ((INT64_C(2) << level) - 1)) == 0 && begin + (INT64_C(2) << level) <= end)
			level++;
		const struct wm_table *run = run_table(slices, level, begin >> level);
		if (run != NULL)
			merge_table(slices, &slices->combined, run);
		begin += INT64_C(1) << level;
	}
	return &slices->combined;
}

/* One key */

/* Its cell in one slice. */
struct part {
	int64_t number;
	const void *cell;
};

static void *
new_cell(const struct wm_slices *slices, struct wm_arena *arena)
{
	void *cell = wm_arena_alloc(arena, slices->cell_bytes);

	wm_agg_cell_init(slices->agg, cell);
	return cell;
}

/*
 * Combines parts, in order of slices, into windows first to last. Each part is merged about three times, however many
 * windows hold it: "front" has the sums from each part up to the turning point, "back" the one running sum behind it; a
 * window is one of the former and the latter.
 */
static void
combine_parts(const struct wm_slices *slices, const struct part *parts, size_t parts_count, int64_t first, int64_t last,
	struct wm_arena *arena, const void **cells)
{
	void **front = wm_reallocarray(NULL, parts_count, sizeof(void *));
	void *back = new_cell(slices, arena);
	size_t low = 0, high = 0, turn = 0;

	for (int64_t number = first; number <= last; number++) {
		int64_t begin = wm_slices_begin(slices, number), end = wm_slices_end(slices, number);
		size_t high_before = high;

		while (low < parts_count && parts[low].number < begin)
			low++;
		while (high < parts_count && parts[high].number < end)
			high++;
		if (low >= turn) {
			for (size_t i = high; i-- > low;) {
				front[i] = new_cell(slices, arena);
				wm_agg_cell_merge(slices->agg, front[i], arena, parts[i].cell);
				if (i + 1 < high)
					wm_agg_cell_merge(slices->agg, front[i], arena, front[i + 1]);
			}
			turn = high;
			back = new_cell(slices, arena);
		} else {
			for (size_t i = high_before; i < high; i++)
				wm_agg_cell_merge(slices->agg, back, arena, parts[i].cell);
		}
		/* Every window asked for holds a part. */
		assert(low < turn);
		void *cell = new_cell(slices, arena);
		wm_agg_cell_merge(slices->agg, cell, arena, front[low]);
		wm_agg_cell_merge(slices->agg, cell, arena, back);
		cells[number - first] = cell;
	}
	free(front);
}

void
wm_slices_key_windows(struct wm_slices *slices, struct wm_span key, uint8_t tag, int64_t first, int64_t last,
	struct wm_arena *arena, const void **cells)
{
	int64_t end = wm_slices_end(slices, last), number;
	struct wm_ordered_at at = wm_ordered_seek(&slices->map, wm_slices_begin(slices, first));
	struct part *parts = NULL;
	size_t count = 0, capacity = 0;

	for (const struct wm_cells *in; (in = wm_ordered_next(&slices->map, &at, &number)) != NULL && number < end;) {
		const struct wm_entry *entry = wm_table_find(&in->table, key, tag);

		if (entry == NULL)
			continue;
		parts = wm_grown(parts, count, &capacity, sizeof(parts[0]));
		parts[count++] = (struct part){ number, wm_entry_value(entry) };
	}
	if (count == 1)
		for (int64_t window = first; window <= last; window++)
			cells[window - first] = parts[0].cell;
	else
		combine_parts(slices, parts, count, first, last, arena, cells);
	free(parts);
}

/* Of a key, where the next window stands that was not counted; of the size that a table wants. */
struct counted {
	int64_t window_next;
	int64_t unused;
};

/* Counts the windows of the keys of a slice that were not counted with a slice before. */
static uint64_t
count_keys(struct wm_table *keys, const struct wm_cells *cells, int64_t window_first)
{
	uint64_t count = 0;
	size_t place = 0;

	for (const struct wm_entry *entry; (entry = wm_table_next(&cells->table, &place)) != NULL;) {
		bool is_new;
		struct counted *counted = wm_entry_value(wm_table_put(keys, wm_entry_key(entry), entry->tag, &is_new));

		if (is_new || counted->window_next < window_first)
			counted->window_next = window_first;
		/* The one behind the last of the slice before. */
		if (counted->window_next > cells->at.window_last)
			continue;
		count += (uint64_t)(cells->at.window_last - counted->window_next) + 1;
		counted->window_next = cells->at.window_last + 1;
	}
	return count;
}

uint64_t
wm_slices_count_windows(const struct wm_slices *slices, int64_t window_first)
{
	struct wm_ordered_at at = wm_ordered_seek(&slices->map, INT64_MIN);
	const struct wm_cells *cells = wm_ordered_next(&slices->map, &at, NULL), *next;
	struct wm_table keys;
	uint64_t count = 0;

	wm_table_init(&keys, sizeof(struct counted));
	/* From slice to slice neither the first nor the last window goes back. */
	for (bool is_shared = false; cells != NULL; cells = next) {
		int64_t first = cells->at.window_first > window_first ? cells->at.window_first : window_first;
		bool is_shared_before = is_shared;

		next = wm_ordered_next(&slices->map, &at, NULL);
		is_shared = next != NULL && next->at.window_first <= cells->at.window_last;
		if (cells->at.window_last < first)
			continue;
		/* No other slice is in its windows, as in tumbling ones: keys need not be told apart. */
		if (!is_shared && !is_shared_before) {
			count += cells->table.count * ((uint64_t)(cells->at.window_last - first) + 1);
			continue;
		}
		if (!is_shared_before)
			wm_table_release(&keys);
		wm_table_expect(&keys, cells->table.count);
		count += count_keys(&keys, cells, first);
	}
	wm_table_release(&keys);
	return count;
}

/* Forgetting */

struct wm_cells *
wm_slices_take_before(struct wm_slices *slices, int64_t window_number)
{
	struct wm_cells *cells = wm_slices_from(slices, INT64_MIN);

	if (cells == NULL || cells->at.window_last >= window_number)
		return NULL;
	return wm_ordered_take(&slices->map, cells->at.number);
}

void
wm_slices_forget_runs(struct wm_slices *slices, int64_t window_number)
{
	int64_t slice_first = window_number == INT64_MAX ? INT64_MAX : wm_slices_begin(slices, window_number);

	for (size_t level = 1; level < WM_SLICES_LEVELS_MAX; level++) {
		for (;;) {
			struct wm_ordered_at at = wm_ordered_seek(&slices->levels[level], INT64_MIN);
			int64_t place;
			struct wm_table *run = wm_ordered_next(&slices->levels[level], &at, &place);

			/* A slice in it, or one that may still come, belongs to a window that is needed. */
			if (run == NULL || run_begin(level, place + 1) > slice_first)
				break;
			wm_ordered_take(&slices->levels[level], place);
			wm_table_release(run);
			free(run);
		}
	}
}

size_t
wm_slices_carry(struct wm_slices *slices, struct wm_cells *from, int64_t to_number)
{
	struct wm_cells *to = wm_ordered_take(&slices->map, to_number);
	size_t in_both = 0;

	wm_ordered_take(&slices->map, from->at.number);
	if (to != NULL) {
		in_both = from->table.count + to->table.count;
		merge_table(slices, &from->table, &to->table);
		in_both -= from->table.count;
		from->at = to->at;
		wm_slices_free_cells(to);
	} else {
		wm_slices_place(slices, to_number, &from->at);
	}
	wm_ordered_put(&slices->map, to_number, from);
	return in_both;
}

bool
wm_slices_pack(const struct wm_slices *slices, struct wm_cells *cells)
{
	struct wm_table packed;
	struct piece piece;
	size_t at = 0;

	if (cells->table.arena.bytes <= 2 * cells->packed_bytes + LITTER_BYTES)
		return false;

	wm_table_init(&packed, cells->table.value_bytes);
	wm_table_expect(&packed, cells->table.count);
	while (take_piece(slices, &packed, &cells->table, &at, &piece)) {
		for (size_t i = 0; i < piece.count; i++) {
			const char *from = wm_entry_value(piece.entries[i]);
			char *to = wm_entry_value(piece.targets[i]);

			wm_agg_cell_merge(slices->agg, to, &packed.arena, from);
			memcpy(to + slices->cell_bytes, from + slices->cell_bytes, slices->own_bytes);
		}
	}
	wm_table_release(&cells->table);
	cells->table = packed;
	cells->packed_bytes = packed.arena.bytes;
	return true;
}

size_t
wm_slices_bytes(const struct wm_slices *slices)
{
	struct wm_ordered_at at = wm_ordered_seek(&slices->map, INT64_MIN);
	size_t bytes = wm_table_bytes(&slices->combined);

	for (const struct wm_cells *cells; (cells = wm_ordered_next(&slices->map, &at, NULL)) != NULL;)
		bytes += sizeof(*cells) + wm_table_bytes(&cells->table);
	for (size_t level = 1; level < WM_SLICES_LEVELS_MAX; level++) {
		at = wm_ordered_seek(&slices->levels[level], INT64_MIN);
		for (const struct wm_table *run; (run = wm_ordered_next(&slices->levels[level], &at, NULL)) != NULL;)
			bytes += sizeof(*run) + wm_table_bytes(run);
	}
	return bytes;
}
