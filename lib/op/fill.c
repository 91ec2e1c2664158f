/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/fill.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/op/keys.h"

/* How much of an arena may be left by replaced cells, beside as much as was in use. */
#define LITTER_BYTES 4096

/* What is kept of a key; behind it its cell, where fillers have them. */
struct last {
	int64_t number; /* of its last window that was announced */
	int64_t unused; /* cells are aligned to 16 */
};

/* Empty windows of a key, both ends included. */
struct gap {
	int64_t first;
	int64_t last;
	const struct wm_entry *entry; /* of the table, which keeps its place until that is packed */
};

struct wm_fill {
	const struct wm_agg *agg;
	bool has_cells;
	struct wm_table table;
	size_t packed_bytes; /* of its arena, when it was last packed */
	uint64_t skipped;

	struct gap *gaps; /* those that are still to begin stand from gaps_at on, sorted by first when is_sorted */
	size_t gaps_count, gaps_capacity, gaps_at;
	bool is_sorted;

	struct gap *active; /* those that hold the number that is asked for next; from active_at on not taken yet */
	size_t active_count, active_capacity, active_at;
	int64_t active_number;
};

struct wm_fill *
wm_fill_new(const struct wm_agg *agg, bool has_cells)
{
	struct wm_fill *fill = wm_calloc(1, sizeof(struct wm_fill));

	fill->agg = agg;
	fill->has_cells = has_cells;
	wm_table_init(&fill->table, sizeof(struct last) + (has_cells ? wm_agg_cell_bytes(agg) : 0));
	return fill;
}

void
wm_fill_free(struct wm_fill *fill)
{
	if (fill == NULL)
		return;
	wm_table_release(&fill->table);
	free(fill->gaps);
	free(fill->active);
	free(fill);
}

static void
push(struct gap **gaps, size_t *count, size_t *capacity, const struct gap *gap)
{
	*gaps = wm_grown(*gaps, *count, capacity, sizeof(struct gap));
	(*gaps)[(*count)++] = *gap;
}

static void *
cell_of(const struct wm_entry *entry)
{
	return (struct last *)wm_entry_value(entry) + 1;
}

void
wm_fill_announce(struct wm_fill *fill, int64_t window_number, const struct wm_entry *entry)
{
	bool is_new;
	struct wm_entry *found = wm_table_put(&fill->table, wm_entry_key(entry), entry->tag, &is_new);
	struct last *last = wm_entry_value(found);

	if (is_new && fill->has_cells)
		wm_agg_cell_init(fill->agg, cell_of(found));
	if (!is_new && window_number > last->number) {
		uint64_t empty = (uint64_t)window_number - (uint64_t)last->number - 1;
		const struct gap gap = { window_number - (int64_t)empty, window_number - 1, found };

		if (empty > WM_FILL_WINDOWS_MAX)
			fill->skipped++;
		else if (empty > 0)
			push(&fill->gaps, &fill->gaps_count, &fill->gaps_capacity, &gap);
		fill->is_sorted = false;
	}
	last->number = window_number;
}

static int
compare_gaps(const void *a, const void *b)
{
	const struct gap *gap_a = a, *gap_b = b;

	return (gap_a->first > gap_b->first) - (gap_a->first < gap_b->first);
}

bool
wm_fill_next(struct wm_fill *fill, int64_t *window_number)
{
	if (!fill->is_sorted && fill->gaps_count != 0)
		qsort(fill->gaps + fill->gaps_at, fill->gaps_count - fill->gaps_at, sizeof(struct gap), compare_gaps);
	fill->is_sorted = true;
	if (fill->active_count != 0)
		*window_number = fill->active_number;
	else if (fill->gaps_at < fill->gaps_count)
		*window_number = fill->gaps[fill->gaps_at].first;
	else
		return false;
	return true;
}

const struct wm_entry *
wm_fill_take(struct wm_fill *fill, int64_t window_number)
{
	size_t kept = 0;

	for (; fill->gaps_at < fill->gaps_count && fill->gaps[fill->gaps_at].first == window_number; fill->gaps_at++)
		push(&fill->active, &fill->active_count, &fill->active_capacity, &fill->gaps[fill->gaps_at]);
	if (fill->active_at < fill->active_count)
		return fill->active[fill->active_at++].entry;
	for (size_t i = 0; i < fill->active_count; i++)
		if (fill->active[i].last > window_number)
			fill->active[kept++] = fill->active[i];
	fill->active_count = kept;
	fill->active_at = 0;
	fill->active_number = window_number + 1;
	if (kept == 0 && fill->gaps_at == fill->gaps_count)
		fill->gaps_count = fill->gaps_at = 0;
	return NULL;
}

const void *
wm_fill_cell(const struct wm_fill *fill, const struct wm_entry *entry)
{
	return fill->has_cells ? cell_of(entry) : NULL;
}

/* Gives back what replaced cells have left in the arena. */
static void
pack(struct wm_fill *fill)
{
	struct wm_table packed;
	size_t at = 0;
	bool is_new;

	wm_table_init(&packed, fill->table.value_bytes);
	for (const struct wm_entry *entry; (entry = wm_table_next(&fill->table, &at)) != NULL;) {
		struct wm_entry *target = wm_table_put(&packed, wm_entry_key(entry), entry->tag, &is_new);

		*(struct last *)wm_entry_value(target) = *(const struct last *)wm_entry_value(entry);
		wm_agg_cell_init(fill->agg, cell_of(target));
		wm_agg_cell_merge(fill->agg, cell_of(target), &packed.arena, cell_of(entry));
	}
	wm_table_release(&fill->table);
	fill->table = packed;
	fill->packed_bytes = packed.arena.bytes;
}

void
wm_fill_written(struct wm_fill *fill, const struct wm_entry *entry, const void *cell)
{
	if (!fill->has_cells)
		return;
	struct wm_entry *found = wm_table_find(&fill->table, wm_entry_key(entry), entry->tag);
	assert(found != NULL);
	wm_agg_cell_init(fill->agg, cell_of(found));
	wm_agg_cell_merge(fill->agg, cell_of(found), &fill->table.arena, cell);
	if (fill->gaps_count == 0 && fill->active_count == 0 &&
		fill->table.arena.bytes > 2 * fill->packed_bytes + LITTER_BYTES)
		pack(fill);
}

uint64_t
wm_fill_skipped(const struct wm_fill *fill)
{
	return fill->skipped;
}

size_t
wm_fill_bytes(const struct wm_fill *fill)
{
	return wm_table_bytes(&fill->table) + (fill->gaps_capacity + fill->active_capacity) * sizeof(struct gap);
}

/* varint gaps skipped · varint keys, in order, each: u8 tag · key · i64 last window number · with has_cells its cell. */
void
wm_fill_encode(const struct wm_fill *fill, struct wm_buf *out)
{
	size_t count = fill->table.count, at = 0;
	struct wm_entry **sorted = wm_reallocarray(NULL, count + 1, sizeof(struct wm_entry *));

	assert(fill->gaps_count == 0 && fill->active_count == 0);
	for (size_t i = 0; i < count; i++)
		sorted[i] = wm_table_next(&fill->table, &at);
	qsort(sorted, count, sizeof(sorted[0]), wm_keys_compare_pointers);
	wm_put_varint(out, fill->skipped);
	wm_put_varint(out, count);
	for (size_t i = 0; i < count; i++) {
		const struct last *last = wm_entry_value(sorted[i]);

		wm_put_u8(out, sorted[i]->tag);
		wm_put_span(out, wm_entry_key(sorted[i]));
		wm_put_i64(out, last->number);
		if (fill->has_cells)
			wm_agg_cell_encode(fill->agg, cell_of(sorted[i]), out);
	}
	free(sorted);
}

bool
wm_fill_decode(struct wm_fill *fill, size_t keys_count, struct wm_get *in)
{
	fill->skipped = wm_get_varint(in);
	for (uint64_t left = wm_get_varint(in); left > 0; left--) {
		wm_get_give_back(in);
		uint8_t tag = wm_get_u8(in);
		struct wm_span key = wm_get_span(in);
		bool is_new;

		if (in->failed || !wm_keys_are_valid(key, tag, keys_count))
			return false;
		struct wm_entry *entry = wm_table_put(&fill->table, key, tag, &is_new);
		if (!is_new)
			return false;
		((struct last *)wm_entry_value(entry))->number = wm_get_i64(in);
		if (fill->has_cells && !wm_agg_cell_decode(fill->agg, cell_of(entry), &fill->table.arena, in))
			return false;
	}
	return !in->failed;
}
