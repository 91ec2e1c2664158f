/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - objects of one size that come and go.
 *
 * Taking and giving back are a few instructions, nothing is kept beside an object, and
 * blocks in which all objects have gone are given back to the system (but one, so that a pool that breathes
 * does not trouble it). A large pool asks for huge pages: objects that are used in no order
 * are reached much faster.
 */
#ifndef WM_STATE_POOL_H
#define WM_STATE_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct wm_pool_block;
struct wm_pool_region;

/* Fields are for reading. */
struct wm_pool {
	size_t object_bytes;
	size_t block_bytes;         /* a power of two; blocks are aligned to it */
	size_t reopened_at;         /* a full block has room again when so few objects are left in it */
	struct wm_pool_block *open; /* with room for an object */
	struct wm_pool_block *full;
	struct wm_pool_region *regions; /* blocks in huge pages: those with a block that is not used */
	struct wm_pool_block *spare;    /* without an object, in neither list */
	size_t count;                   /* objects taken and not given back */
	size_t bytes;                   /* taken from the system */
};

/* Takes no memory until the first object. object_bytes: a multiple of 16. */
void wm_pool_init(struct wm_pool *pool, size_t object_bytes);

/* Whatever was not given back is gone too. */
void wm_pool_release(struct wm_pool *pool);

/* Aligned to 16; not zeroed. */
void *wm_pool_take(struct wm_pool *pool);
void wm_pool_give(struct wm_pool *pool, void *object);

/* Sizes that come from pools, 16 bytes apart. */
#define WM_POOLS 16

struct wm_pools_far;

/* Pools for objects of many sizes; the few that are larger have memory of their own. Fields are for reading. */
struct wm_pools {
	size_t first_bytes;
	struct wm_pool pools[WM_POOLS];
	struct wm_pools_far *far; /* objects that come from no pool */
	size_t far_bytes;
};

/*
 * Takes no memory until the first object. All sizes are multiples of 16, from first_bytes on. in_lines: they are rounded up to whole
 * lines of the cache where that wastes little, so that none lies across one more.
 */
void wm_pools_init(struct wm_pools *pools, size_t first_bytes, bool in_lines);

/* Whatever was not given back is gone too. */
void wm_pools_release(struct wm_pools *pools);

/* An object of so many bytes, as wm_pool_take() gives one; given back with the same size. */
void *wm_pools_take(struct wm_pools *pools, size_t bytes);
void wm_pools_give(struct wm_pools *pools, void *object, size_t bytes);

/* If there is no object of a size any more, nothing is kept for the next. */
void wm_pools_trim(struct wm_pools *pools, size_t bytes);

/* Taken from the system. */
size_t wm_pools_bytes(const struct wm_pools *pools);

#endif
