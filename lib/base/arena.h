/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - memory that is given back all at once.
 *
 * Blocks start small and double, so that thousands of small arenas cost little.
 * What was allocated stays where it is until wm_arena_release().
 */
#ifndef WM_BASE_ARENA_H
#define WM_BASE_ARENA_H

#include <stddef.h>

struct wm_arena_block;

/* All zero bytes are an empty arena. Fields are for reading. */
struct wm_arena {
	struct wm_arena_block *newest;
	size_t used;  /* of the newest block */
	size_t bytes; /* taken from the system by all blocks */
};

/* size bytes aligned to 16; not zeroed. */
void *wm_arena_alloc(struct wm_arena *arena, size_t size);

void wm_arena_release(struct wm_arena *arena);

#endif
