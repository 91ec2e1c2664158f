/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/index.h"

#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/mem.h"

#define FULL_FROM (WM_SHELF_NAME_BITS + WM_INDEX_TAG_BITS)
#define FULL_MAX (UINT64_C(7))
#define REST_MASK ((UINT64_C(1) << FULL_FROM) - 1)

/* In a line with so many used slots it is worth a look whether some have gone. */
#define CROWDED_SLOTS 6

/* So many lines are counted to know how many items are there, or such a part. */
#define COUNTED_LINES_MIN ((size_t)4096)
#define COUNTED_PART 16

/* Chunks that have gone keep their numbers until so many more have than there are. */
#define GONE_MIN 64

/* What a table without memory looks like; never written to. */
static struct wm_index_line nothing;

static void
set_nothing(struct wm_index *index)
{
	index->lines = &nothing;
	index->mask = index->taken = index->bytes = 0;
}

void
wm_index_init(struct wm_index *index, wm_index_hash hash_of, const void *self)
{
	*index = (struct wm_index){ .hash_of = hash_of, .self = self };
	set_nothing(index);
}

static void
free_lines(struct wm_index *index)
{
	if (index->bytes != 0)
		free(index->lines);
	set_nothing(index);
}

void
wm_index_release(struct wm_index *index)
{
	free_lines(index);
	wm_shelf_numbers_release(&index->numbers);
}

static void
new_lines(struct wm_index *index, size_t count)
{
	index->bytes = count * sizeof(struct wm_index_line);
	index->lines = wm_calloc_wide(count, sizeof(struct wm_index_line));
	index->mask = count - 1;
	index->taken = 0;
}

static uint64_t
full_of(uint64_t slot)
{
	return slot >> FULL_FROM & FULL_MAX;
}

static uint64_t
slot_of(uint64_t rest, size_t full)
{
	return WM_INDEX_USED | (full < FULL_MAX ? full : FULL_MAX) << FULL_FROM | rest;
}

/* What a slot says but for the lines that were full goes into a table from which nothing has gone. */
static void
put_from_home(struct wm_index *index, uint64_t rest, size_t home)
{
	size_t full = 0;
	unsigned used;

	while ((used = wm_index_look(&index->lines[home ^ full], 0).used) == WM_INDEX_ALL_USED)
		full++;
	index->lines[home ^ full].slots[__builtin_ctz(~used)] = slot_of(rest, full);
	index->taken++;
}

/* The line of its own of what stands in a line. */
static size_t
home_of(const struct wm_index *index, uint64_t slot, size_t line)
{
	uint64_t full = full_of(slot);

	return full < FULL_MAX
		? line ^ full
		: index->hash_of(index->self, wm_shelf_numbers_item(&index->numbers, slot)) & index->mask;
}

static bool
is_there(const struct wm_index *index, uint64_t slot)
{
	/* A slot without an item has the name of none. */
	return wm_shelf_numbers_item(&index->numbers, slot) != NULL;
}

/* Items that are there in the first lines. */
static size_t
count_there(const struct wm_index *index, size_t lines)
{
	size_t there = 0;

	for (size_t at = 0; at < lines; at++)
		for (size_t i = 0; i < WM_INDEX_SLOTS; i++)
			there += is_there(index, index->lines[at].slots[i]);
	return there;
}

/* About how many items are there: a table is not for reading through more than once. As hashes are even, a part tells. */
static size_t
estimate_there(const struct wm_index *index)
{
	size_t lines = index->mask + 1, part = lines / COUNTED_PART;

	if (part < COUNTED_LINES_MIN)
		part = lines < COUNTED_LINES_MIN ? lines : COUNTED_LINES_MIN;
	size_t there = count_there(index, part) * (lines / part);
	return there != 0 ? there : count_there(index, lines);
}

struct displaced {
	uint64_t rest;
	size_t home;
};

/* Drops what is gone. What stands away from its own line, as that was full, comes as near as it can now. */
static void
close_gaps(struct wm_index *index)
{
	struct displaced *all = NULL;
	size_t count = 0, capacity = 0;

	index->taken = 0;
	for (size_t at = 0; at <= index->mask; at++)
		for (size_t i = 0; i < WM_INDEX_SLOTS; i++) {
			/* Without a branch, which nobody could predict. */
			uint64_t slot = index->lines[at].slots[i];
			slot &= -(uint64_t)is_there(index, slot);

			if (full_of(slot) != 0) {
				all = wm_grown(all, count, &capacity, sizeof(all[0]));
				all[count++] = (struct displaced){ slot & REST_MASK, home_of(index, slot, at) };
				slot = 0;
			}
			index->lines[at].slots[i] = slot;
			index->taken += slot != 0;
		}
	for (size_t i = 0; i < count; i++)
		put_from_home(index, all[i].rest, all[i].home);
	free(all);
}

/* A table of twice as many lines, or of fewer, without what is gone. Only of a small one the items are looked at: of others, the slots know enough. */
static void
resize(struct wm_index *index, size_t count)
{
	struct wm_index old = *index;
	unsigned bits = (unsigned)__builtin_ctzll(old.mask + 1);

	new_lines(index, count);
	for (size_t at = 0; at <= old.mask && old.bytes != 0; at++)
		for (size_t i = 0; i < WM_INDEX_SLOTS; i++) {
			uint64_t slot = old.lines[at].slots[i];
			size_t home;

			if (!is_there(index, slot))
				continue;
			if (count > old.mask + 1 && bits < WM_INDEX_TAG_FROM)
				home = index->hash_of(index->self, wm_shelf_numbers_item(&index->numbers, slot));
			else
				home = home_of(&old, slot, at);
			if (count > old.mask + 1 && bits >= WM_INDEX_TAG_FROM)
				home |= (slot >> (WM_SHELF_NAME_BITS + bits - WM_INDEX_TAG_FROM) & 1) << bits;
			put_from_home(index, slot & REST_MASK, home & index->mask);
		}
	free_lines(&old);
}

/* Goes through the table: what is left of it has room, and memory that is in proportion. */
static void
go_through(struct wm_index *index)
{
	size_t count = index->mask + 1, slots = count * WM_INDEX_SLOTS, there = estimate_there(index);

	if (there * 8 > slots * 5)
		count *= 2;
	while (count > 1 && there * 4 < count * WM_INDEX_SLOTS)
		count /= 2;
	if (there == 0)
		free_lines(index);
	else if (count != index->mask + 1)
		resize(index, count);
	else
		close_gaps(index);
	wm_shelf_numbers_reuse(&index->numbers);
}

void
wm_index_make_room(struct wm_index *index)
{
	if (index->bytes != 0)
		go_through(index);
	if (index->bytes == 0)
		new_lines(index, 1);
}

void
wm_index_put(struct wm_index *index, const struct wm_index_at *at, uint64_t name)
{
	uint64_t rest = at->tag | name;

	bool is_crowded = at->full != 0 || __builtin_popcount(at->look.used) >= CROWDED_SLOTS;

	/* What is gone makes room, so that the table is seldom gone through. */
	for (size_t full = 0; is_crowded && full <= at->full; full++)
		for (size_t i = 0; i < WM_INDEX_SLOTS; i++) {
			uint64_t *slot = &index->lines[at->home ^ full].slots[i];

			if (*slot != 0 && wm_shelf_numbers_item(&index->numbers, *slot) == NULL) {
				*slot = slot_of(rest, full);
				return;
			}
		}
	*at->slot = slot_of(rest, at->full);
	index->taken++;
}

void
wm_index_tidy(struct wm_index *index)
{
	struct wm_shelf_numbers *numbers = &index->numbers;

	if (numbers->in_use == 0 && numbers->count != 0) {
		free_lines(index);
		wm_shelf_numbers_release(numbers);
	} else if (numbers->gone > GONE_MIN && numbers->gone > numbers->in_use) {
		go_through(index);
	}
}

size_t
wm_index_bytes(const struct wm_index *index)
{
	return index->bytes + wm_shelf_numbers_bytes(&index->numbers);
}
