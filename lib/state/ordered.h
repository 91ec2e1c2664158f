/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered - a map from int64_t to pointers, in order.
 *
 * For what stands along the time line (slices by their number): found, put in
 * and taken out anywhere in O(log n), walked from any place. The pointers
 * belong to the caller.
 */
#ifndef WM_STATE_ORDERED_H
#define WM_STATE_ORDERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wm_ordered_block;

/* All zero bytes are an empty map. Fields are for reading. */
struct wm_ordered {
	struct wm_ordered_block **blocks; /* each sorted, and sorted among themselves */
	size_t blocks_count;
	size_t blocks_capacity;
	size_t count;
};

void wm_ordered_release(struct wm_ordered *map);

/* NULL if there is none. */
void *wm_ordered_find(const struct wm_ordered *map, int64_t key);

/* The key must not be there (asserted); value is not NULL. */
void wm_ordered_put(struct wm_ordered *map, int64_t key, void *value);

/* Takes a key out and returns its value; NULL if there was none. */
void *wm_ordered_take(struct wm_ordered *map, int64_t key);

/* A place in a map; spoilt by putting and taking. */
struct wm_ordered_at {
	size_t block;
	size_t index;
};

/* The first place with a key not below this one; INT64_MIN for the first of all. */
struct wm_ordered_at wm_ordered_seek(const struct wm_ordered *map, int64_t key);

/* The value at a place, its key in *key, and the place moved on; NULL at the end. key may be NULL. */
void *wm_ordered_next(const struct wm_ordered *map, struct wm_ordered_at *at, int64_t *key);

#endif
