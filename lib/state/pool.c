/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/pool.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/mem.h"

#define BLOCK_BYTES_MIN ((size_t)1 << 16)

/* Large objects share a block with so many others that rounding its size up wastes little. */
#define BLOCK_OBJECTS_MIN 8

/* Such a part of a full block may be free before it is opened again: one look at its neighbours in the lists is for several objects. */
#define FREE_PART 64

/* From this size of a pool on blocks come in regions, each a huge page. */
#define REGIONS_FROM_BYTES ((size_t)2 << 20)
#define REGION_BYTES ((size_t)2 << 20)

struct wm_pool_block {
	struct wm_pool_block *next, *previous; /* in its list */
	struct wm_pool_region *region;         /* NULL: it has memory of its own */
	void **free;                           /* given back; each points to the next */
	size_t used;
	size_t fresh; /* where objects begin that were never taken */
	bool is_open; /* in that list */
};

struct wm_pool_region {
	struct wm_pool_region *next, *previous; /* among those with an unused block */
	char *memory;
	struct wm_pool_block *unused; /* given back */
	size_t used;
	size_t fresh; /* where blocks begin that were never used */
};

/* Of objects that fill whole lines of the cache, none lies across more. */
#define HEADER_BYTES ((sizeof(struct wm_pool_block) + 63) / 64 * 64)

void
wm_pool_init(struct wm_pool *pool, size_t object_bytes)
{
	assert(object_bytes % 16 == 0 && object_bytes > 0);
	*pool = (struct wm_pool){ .object_bytes = object_bytes, .block_bytes = BLOCK_BYTES_MIN };
	while (pool->block_bytes < HEADER_BYTES + BLOCK_OBJECTS_MIN * object_bytes)
		pool->block_bytes *= 2;
	size_t objects = (pool->block_bytes - HEADER_BYTES) / object_bytes;
	pool->reopened_at = objects - objects / FREE_PART - 1;
}

static void
link_block(struct wm_pool_block **list, struct wm_pool_block *block)
{
	block->previous = NULL;
	block->next = *list;
	if (*list != NULL)
		(*list)->previous = block;
	*list = block;
}

static void
unlink_block(struct wm_pool_block **list, struct wm_pool_block *block)
{
	if (block->previous == NULL)
		*list = block->next;
	else
		block->previous->next = block->next;
	if (block->next != NULL)
		block->next->previous = block->previous;
}

static void *
aligned(size_t bytes)
{
	void *memory;

	/* Twice as much surely holds an aligned piece: without memory for it wm_malloc() stops the process. */
	while ((memory = aligned_alloc(bytes, bytes)) == NULL)
		free(wm_malloc(2 * bytes));
	return memory;
}

static void
link_region(struct wm_pool *pool, struct wm_pool_region *region)
{
	region->previous = NULL;
	region->next = pool->regions;
	if (pool->regions != NULL)
		pool->regions->previous = region;
	pool->regions = region;
}

static void
unlink_region(struct wm_pool *pool, struct wm_pool_region *region)
{
	if (region->previous == NULL)
		pool->regions = region->next;
	else
		region->previous->next = region->next;
	if (region->next != NULL)
		region->next->previous = region->previous;
}

static bool
region_is_full(const struct wm_pool_region *region)
{
	return region->unused == NULL && region->fresh == REGION_BYTES;
}

static struct wm_pool_block *
block_of_region(struct wm_pool *pool)
{
	struct wm_pool_region *region = pool->regions;
	struct wm_pool_block *block;

	if (region == NULL) {
		region = wm_calloc(1, sizeof(*region));
		region->memory = aligned(REGION_BYTES);
		/* Where there are none it is memory like any other. */
		(void)madvise(region->memory, REGION_BYTES, MADV_HUGEPAGE);
		link_region(pool, region);
		pool->bytes += REGION_BYTES;
	}
	block = region->unused;
	if (block != NULL) {
		region->unused = block->next;
	} else {
		block = (struct wm_pool_block *)(void *)(region->memory + region->fresh);
		region->fresh += pool->block_bytes;
	}
	block->region = region;
	region->used++;
	if (region_is_full(region))
		unlink_region(pool, region);
	return block;
}

static struct wm_pool_block *
new_block(struct wm_pool *pool)
{
	struct wm_pool_block *block = pool->spare;

	pool->spare = NULL;
	if (block == NULL && pool->bytes >= REGIONS_FROM_BYTES && pool->block_bytes < REGION_BYTES) {
		block = block_of_region(pool);
	} else if (block == NULL) {
		block = aligned(pool->block_bytes);
		block->region = NULL;
		pool->bytes += pool->block_bytes;
	}
	*block = (struct wm_pool_block){ .region = block->region, .fresh = HEADER_BYTES, .is_open = true };
	link_block(&pool->open, block);
	return block;
}

static void
free_block(struct wm_pool *pool, struct wm_pool_block *block)
{
	struct wm_pool_region *region = block->region;

	if (region == NULL) {
		pool->bytes -= pool->block_bytes;
		free(block);
		return;
	}
	if (region_is_full(region))
		link_region(pool, region);
	block->next = region->unused;
	region->unused = block;
	if (--region->used != 0)
		return;
	unlink_region(pool, region);
	pool->bytes -= REGION_BYTES;
	free(region->memory);
	free(region);
}

static void
free_blocks(struct wm_pool *pool, struct wm_pool_block *block)
{
	while (block != NULL) {
		struct wm_pool_block *next = block->next;

		free_block(pool, block);
		block = next;
	}
}

void
wm_pool_release(struct wm_pool *pool)
{
	free_blocks(pool, pool->open);
	free_blocks(pool, pool->full);
	if (pool->spare != NULL)
		free_block(pool, pool->spare);
	wm_pool_init(pool, pool->object_bytes);
}

void *
wm_pool_take(struct wm_pool *pool)
{
	struct wm_pool_block *block = pool->open != NULL ? pool->open : new_block(pool);
	void *object = block->free;

	if (object != NULL) {
		block->free = *(void **)object;
		__builtin_prefetch(block->free);
	} else {
		object = (char *)block + block->fresh;
		block->fresh += pool->object_bytes;
	}
	block->used++;
	pool->count++;
	if (block->free == NULL && block->fresh + pool->object_bytes > pool->block_bytes) {
		unlink_block(&pool->open, block);
		link_block(&pool->full, block);
		block->is_open = false;
	}
	return object;
}

void
wm_pool_give(struct wm_pool *pool, void *object)
{
	struct wm_pool_block *block = (struct wm_pool_block *)((uintptr_t)object & ~(uintptr_t)(pool->block_bytes - 1));

	*(void **)object = block->free;
	block->free = object;
	block->used--;
	pool->count--;
	if (block->used <= pool->reopened_at && !block->is_open) {
		unlink_block(&pool->full, block);
		link_block(&pool->open, block);
		block->is_open = true;
	}
	if (block->used != 0)
		return;
	unlink_block(&pool->open, block);
	if (pool->spare == NULL) {
		pool->spare = block;
		return;
	}
	free_block(pool, block);
}

/* ---- many sizes ---- */

#define STEP_BYTES ((size_t)16)

#define LINE_BYTES ((size_t)64)
#define LINES_WASTE_MAX 6 /* a part of so many */

struct wm_pools_far {
	struct wm_pools_far *next, *previous;
	_Alignas(16) char object[];
};

static size_t
in_whole_lines(size_t bytes)
{
	size_t lines = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;

	return lines - bytes <= bytes / LINES_WASTE_MAX ? lines : bytes;
}

void
wm_pools_init(struct wm_pools *pools, size_t first_bytes, bool in_lines)
{
	*pools = (struct wm_pools){ .first_bytes = first_bytes };
	for (size_t i = 0; i < WM_POOLS; i++) {
		size_t bytes = first_bytes + i * STEP_BYTES;

		wm_pool_init(&pools->pools[i], in_lines ? in_whole_lines(bytes) : bytes);
	}
}

void
wm_pools_release(struct wm_pools *pools)
{
	for (size_t i = 0; i < WM_POOLS; i++)
		wm_pool_release(&pools->pools[i]);
	while (pools->far != NULL) {
		struct wm_pools_far *next = pools->far->next;

		free(pools->far);
		pools->far = next;
	}
	pools->far_bytes = 0;
}

/* The pool for a size; NULL: it has none. */
static struct wm_pool *
pool_for(struct wm_pools *pools, size_t bytes)
{
	size_t number = (bytes - pools->first_bytes) / STEP_BYTES;

	return number < WM_POOLS ? &pools->pools[number] : NULL;
}

static void *
take_far(struct wm_pools *pools, size_t bytes)
{
	struct wm_pools_far *far = wm_malloc(sizeof(*far) + bytes);

	*far = (struct wm_pools_far){ .next = pools->far };
	if (far->next != NULL)
		far->next->previous = far;
	pools->far = far;
	pools->far_bytes += sizeof(*far) + bytes;
	return far->object;
}

static void
give_far(struct wm_pools *pools, void *object, size_t bytes)
{
	struct wm_pools_far *far = (void *)((char *)object - sizeof(*far));

	if (far->previous != NULL)
		far->previous->next = far->next;
	else
		pools->far = far->next;
	if (far->next != NULL)
		far->next->previous = far->previous;
	pools->far_bytes -= sizeof(*far) + bytes;
	free(far);
}

void *
wm_pools_take(struct wm_pools *pools, size_t bytes)
{
	struct wm_pool *pool = pool_for(pools, bytes);

	return pool != NULL ? wm_pool_take(pool) : take_far(pools, bytes);
}

void
wm_pools_give(struct wm_pools *pools, void *object, size_t bytes)
{
	struct wm_pool *pool = pool_for(pools, bytes);

	if (pool != NULL)
		wm_pool_give(pool, object);
	else
		give_far(pools, object, bytes);
}

void
wm_pools_trim(struct wm_pools *pools, size_t bytes)
{
	struct wm_pool *pool = pool_for(pools, bytes);

	if (pool != NULL && pool->count == 0)
		wm_pool_release(pool);
}

size_t
wm_pools_bytes(const struct wm_pools *pools)
{
	size_t bytes = pools->far_bytes;

	for (size_t i = 0; i < WM_POOLS; i++)
		bytes += pools->pools[i].bytes;
	return bytes;
}
