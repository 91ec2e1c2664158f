/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/arena.h"

#include <stdlib.h>

#include "lib/base/mem.h"

#define BLOCK_BYTES_MIN ((size_t)1 << 10)
#define BLOCK_BYTES_MAX ((size_t)1 << 18)
#define ALIGNMENT ((size_t)16)

struct wm_arena_block {
	struct wm_arena_block *older;
	size_t size; /* of the whole block, this header included */
};

#define HEADER_BYTES ((sizeof(struct wm_arena_block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

void *
wm_arena_alloc(struct wm_arena *arena, size_t size)
{
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (arena->newest == NULL || size > arena->newest->size - arena->used) {
		size_t block_size = arena->newest == NULL ? BLOCK_BYTES_MIN : arena->newest->size * 2;

		if (block_size > BLOCK_BYTES_MAX)
			block_size = BLOCK_BYTES_MAX;
		if (block_size < HEADER_BYTES + size)
			block_size = HEADER_BYTES + size;
		struct wm_arena_block *block = wm_malloc(block_size);
		block->older = arena->newest;
		block->size = block_size;
		arena->newest = block;
		arena->used = HEADER_BYTES;
		arena->bytes += block_size;
	}
	void *memory = (char *)arena->newest + arena->used;
	arena->used += size;
	return memory;
}

void
wm_arena_release(struct wm_arena *arena)
{
	while (arena->newest != NULL) {
		struct wm_arena_block *older = arena->newest->older;

		free(arena->newest);
		arena->newest = older;
	}
	*arena = (struct wm_arena){ 0 };
}
