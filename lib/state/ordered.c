/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/ordered.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* Members of a block: so few that moving half of them is cheap, so many that the list of blocks stays short. */
#define BLOCK_MEMBERS 256

struct wm_ordered_block {
	size_t count;
	int64_t keys[BLOCK_MEMBERS];
	void *values[BLOCK_MEMBERS];
};

void
wm_ordered_release(struct wm_ordered *map)
{
	for (size_t i = 0; i < map->blocks_count; i++)
		free(map->blocks[i]);
	free(map->blocks);
	*map = (struct wm_ordered){ 0 };
}

/* Index of the block that holds or would take key: the last whose first key is not above it, else the first. */
static size_t
block_of(const struct wm_ordered *map, int64_t key)
{
	size_t low = 0, high = map->blocks_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->blocks[middle]->keys[0] <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? 0 : low - 1;
}

/* Index of the first member of a block that is not below key. */
static size_t
index_in(const struct wm_ordered_block *block, int64_t key)
{
	size_t low = 0, high = block->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (block->keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct wm_ordered_at
wm_ordered_seek(const struct wm_ordered *map, int64_t key)
{
	struct wm_ordered_at at = { 0, 0 };

	if (map->blocks_count == 0)
		return at;
	at.block = block_of(map, key);
	at.index = index_in(map->blocks[at.block], key);
	if (at.index == map->blocks[at.block]->count)
		at = (struct wm_ordered_at){ at.block + 1, 0 };
	return at;
}

void *
wm_ordered_next(const struct wm_ordered *map, struct wm_ordered_at *at, int64_t *key)
{
	if (at->block >= map->blocks_count)
		return NULL;
	const struct wm_ordered_block *block = map->blocks[at->block];
	void *value = block->values[at->index];

	if (key != NULL)
		*key = block->keys[at->index];
	if (++at->index == block->count)
		*at = (struct wm_ordered_at){ at->block + 1, 0 };
	return value;
}

void *
wm_ordered_find(const struct wm_ordered *map, int64_t key)
{
	struct wm_ordered_at at = wm_ordered_seek(map, key);

	if (at.block >= map->blocks_count || map->blocks[at.block]->keys[at.index] != key)
		return NULL;
	return map->blocks[at.block]->values[at.index];
}

static void
insert_block(struct wm_ordered *map, size_t at, struct wm_ordered_block *block)
{
	map->blocks =
		wm_grown(map->blocks, map->blocks_count, &map->blocks_capacity, sizeof(struct wm_ordered_block *));
	memmove(map->blocks + at + 1, map->blocks + at, (map->blocks_count - at) * sizeof(struct wm_ordered_block *));
	map->blocks[at] = block;
	map->blocks_count++;
}

static void
insert_member(struct wm_ordered_block *block, size_t at, int64_t key, void *value)
{
	memmove(block->keys + at + 1, block->keys + at, (block->count - at) * sizeof(block->keys[0]));
	memmove(block->values + at + 1, block->values + at, (block->count - at) * sizeof(block->values[0]));
	block->keys[at] = key;
	block->values[at] = value;
	block->count++;
}

void
wm_ordered_put(struct wm_ordered *map, int64_t key, void *value)
{
	assert(value != NULL);
	if (map->blocks_count == 0) {
		struct wm_ordered_block *first = wm_malloc(sizeof(struct wm_ordered_block));

		first->count = 0;
		insert_block(map, 0, first);
	}
	size_t place = block_of(map, key);
	struct wm_ordered_block *block = map->blocks[place];
	size_t index = index_in(block, key);

	assert(index == block->count || block->keys[index] != key);
	if (block->count == BLOCK_MEMBERS) {
		/* Keys mostly come in order: what is put behind the last leaves the full block full. */
		size_t kept = index == BLOCK_MEMBERS ? BLOCK_MEMBERS : BLOCK_MEMBERS / 2;
		struct wm_ordered_block *upper = wm_malloc(sizeof(struct wm_ordered_block));

		upper->count = BLOCK_MEMBERS - kept;
		memcpy(upper->keys, block->keys + kept, upper->count * sizeof(block->keys[0]));
		memcpy(upper->values, block->values + kept, upper->count * sizeof(block->values[0]));
		block->count = kept;
		insert_block(map, place + 1, upper);
		if (index >= kept) {
			block = upper;
			index -= kept;
		}
	}
	insert_member(block, index, key, value);
	map->count++;
}

void *
wm_ordered_take(struct wm_ordered *map, int64_t key)
{
	struct wm_ordered_at at = wm_ordered_seek(map, key);

	if (at.block >= map->blocks_count || map->blocks[at.block]->keys[at.index] != key)
		return NULL;
	struct wm_ordered_block *block = map->blocks[at.block];
	void *value = block->values[at.index];

	block->count--;
	memmove(block->keys + at.index, block->keys + at.index + 1, (block->count - at.index) * sizeof(block->keys[0]));
	memmove(block->values + at.index, block->values + at.index + 1,
		(block->count - at.index) * sizeof(block->values[0]));
	if (block->count == 0) {
		free(block);
		map->blocks_count--;
		memmove(map->blocks + at.block, map->blocks + at.block + 1,
			(map->blocks_count - at.block) * sizeof(struct wm_ordered_block *));
	}
	map->count--;
	return value;
}
