/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series - pointers of one key along the time line.
 *
 * For keyed state where a key has any number of items, each with a time: they
 * stand in order of time, ties in the order of the puts. Found by binary search,
 * put in anywhere, and taken out in stretches. Most keys have one item or a few,
 * and then a series is small (nothing beside itself for one); a key with a
 * million has its items in chunks, so that none of this costs more than moving
 * a chunk. Times mostly rise, and then putting is appending.
 *
 * The pointers belong to the caller. Functions that take or give back memory
 * keep the caller's count of bytes.
 */
#ifndef WM_STATE_SERIES_H
#define WM_STATE_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fields are for reading; item may be replaced. */
struct wm_series_item {
	int64_t time_us;
	void *item;
};

enum wm_series_form { WM_SERIES_EMPTY = 0, WM_SERIES_ONE, WM_SERIES_CHUNK, WM_SERIES_LIST };

struct wm_series_chunk;
struct wm_series_list;

/* All zero bytes are an empty series. */
struct wm_series {
	union {
		struct wm_series_item one;
		struct wm_series_chunk *chunk;
		struct wm_series_list *list;
	} in;
	enum wm_series_form form;
};

static inline bool
wm_series_is_empty(const struct wm_series *series)
{
	return series->form == WM_SERIES_EMPTY;
}

/*
 * Has what is not in the series itself fetched from memory, if it is not much. Inlined in any case: the compiler drops
 * calls of what only fetches.
 */
__attribute__((always_inline)) static inline void
wm_series_fetch(const struct wm_series *series)
{
	if (series->form < WM_SERIES_CHUNK)
		return;
	__builtin_prefetch(series->in.chunk);
	__builtin_prefetch((const void *)((uintptr_t)series->in.chunk + 64));
}

/* Empties it. */
void wm_series_release(struct wm_series *series, size_t *bytes);

/* Behind all items of its time. */
void wm_series_put(struct wm_series *series, int64_t time_us, void *item, size_t *bytes);

/* A place in a series; spoilt by putting and cutting. */
struct wm_series_at {
	size_t chunk;
	size_t index;
};

/* The first place with a time not below this one; INT64_MIN for the first of all. */
struct wm_series_at wm_series_seek(const struct wm_series *series, int64_t time_us);

/* The item at a place, and the place moved on; NULL at the end. Valid as long as places are. */
struct wm_series_item *wm_series_next(struct wm_series *series, struct wm_series_at *at);

/* The last item with a time not above this one; NULL if there is none. */
struct wm_series_item *wm_series_last(struct wm_series *series, int64_t time_us);

/* Takes out the items with from_us <= time <= to_us. */
void wm_series_cut(struct wm_series *series, int64_t from_us, int64_t to_us, size_t *bytes);

/* Takes out the items before a time. */
void wm_series_drop(struct wm_series *series, int64_t before_us, size_t *bytes);

#endif
