#include "lib/state/pool.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/mem.h"

#define BLOCK_BYTES_MIN ((size_t)1 << 16)

/* Large objects share a block with so many others that rounding its size up wastes little. */
#define BLOCK_OBJECTS_MIN 8

struct wm_pool_block {
	struct wm_pool_block *next, *previous; /* in its list */
	void **free;                           /* given back; each points to the next */
	size_t used;
	size_t fresh; /* where objects begin that were never taken */
};

#define HEADER_BYTES ((sizeof(struct wm_pool_block) + 15) / 16 * 16)

void
wm_pool_init(struct wm_pool *pool, size_t object_bytes)
{
	assert(object_bytes % 16 == 0 && object_bytes > 0);
	*pool = (struct wm_pool){ .object_bytes = object_bytes, .block_bytes = BLOCK_BYTES_MIN };
	while (pool->block_bytes < HEADER_BYTES + BLOCK_OBJECTS_MIN * object_bytes)
		pool->block_bytes *= 2;
}

static void
free_list(struct wm_pool_block *block)
{
	while (block != NULL) {
		struct wm_pool_block *next = block->next;

		free(block);
		block = next;
	}
}

void
wm_pool_release(struct wm_pool *pool)
{
	free_list(pool->open);
	free_list(pool->full);
	free(pool->spare);
	wm_pool_init(pool, pool->object_bytes);
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

static struct wm_pool_block *
new_block(struct wm_pool *pool)
{
	struct wm_pool_block *block = pool->spare;

	pool->spare = NULL;
	if (block == NULL) {
		/* Twice as much surely holds an aligned block: without memory for it wm_malloc() stops the process. */
		while ((block = aligned_alloc(pool->block_bytes, pool->block_bytes)) == NULL)
			free(wm_malloc(2 * pool->block_bytes));
		pool->bytes += pool->block_bytes;
	}
	*block = (struct wm_pool_block){ .fresh = HEADER_BYTES };
	link_block(&pool->open, block);
	return block;
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
	}
	return object;
}

void
wm_pool_give(struct wm_pool *pool, void *object)
{
	struct wm_pool_block *block = (struct wm_pool_block *)((uintptr_t)object & ~(uintptr_t)(pool->block_bytes - 1));

	if (block->free == NULL && block->fresh + pool->object_bytes > pool->block_bytes) {
		unlink_block(&pool->full, block);
		link_block(&pool->open, block);
	}
	*(void **)object = block->free;
	block->free = object;
	pool->count--;
	if (--block->used != 0)
		return;
	unlink_block(&pool->open, block);
	if (pool->spare == NULL) {
		pool->spare = block;
		return;
	}
	pool->bytes -= pool->block_bytes;
	free(block);
}
