/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelves - items that leave memory by the watermark, many at once.
 *
 * An item is a piece of memory with a time. Items stand on shelves, each for a
 * stretch of time and taken down whole: when all of it is over, or as soon as
 * it has begun. A shelf is at most a sixty-fourth as wide as its times were ahead
 * of the watermark when they were put on it. So no item outstays its time by
 * more than about that part of its life, whatever delays and times there are;
 * shelves are few (about 128 for each doubling of that distance); and an item is
 * never moved.
 *
 * What the times mean, and what is exact, is up to the caller, who keeps the
 * time in the item. Which shelf an item stands on depends on the puts alone.
 */
#ifndef WM_STATE_SHELVES_H
#define WM_STATE_SHELVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/span.h"
#include "lib/state/ordered.h"
#include "lib/state/pool.h"

/* When a shelf is taken down. */
enum wm_shelf_turn {
	WM_SHELF_OVER,  /* end <= watermark: all that stands on it is due */
	WM_SHELF_BEGUN, /* start <= watermark: some of it may be */
};

/* A piece of a shelf's memory, items one behind the other. */
struct wm_shelf_chunk;

/*
 * A name of an item of shelves that have numbers for their chunks: the number, then a place in the chunk in steps of 4 bytes. It is
 * neither 0 nor the name that leads nowhere.
 */
#define WM_SHELF_PLACE_BITS 14
#define WM_SHELF_NUMBER_BITS 24
#define WM_SHELF_NAME_BITS (WM_SHELF_NUMBER_BITS + WM_SHELF_PLACE_BITS)
#define WM_SHELF_NAME_MASK ((UINT64_C(1) << WM_SHELF_NAME_BITS) - 1)
#define WM_SHELF_NAME_GONE UINT64_C(1)

/* Numbers for the chunks of one or several shelves. All zero bytes are those of none. Fields are for reading. */
struct wm_shelf_numbers {
	char **items; /* by number, where the items of the chunk begin; NULL: it has gone, or there is none. Number 0 is of none */
	size_t count, capacity;
	uint32_t *unused; /* that were given out before, as many as there is room for numbers */
	size_t unused_count;
	size_t in_use, gone; /* chunks that are there; that have gone, and have their numbers still */
};

/* The shelves are released before. */
void wm_shelf_numbers_release(struct wm_shelf_numbers *numbers);

/* Numbers of chunks that have gone may be given out again: whoever kept names has dropped those that lead nowhere. */
void wm_shelf_numbers_reuse(struct wm_shelf_numbers *numbers);

size_t wm_shelf_numbers_bytes(const struct wm_shelf_numbers *numbers);

/* The item with a name (bits above it do not matter), once names have been given; NULL if it has gone. */
static inline char *
wm_shelf_numbers_item(const struct wm_shelf_numbers *numbers, uint64_t name)
{
	char *items = numbers->items[name >> WM_SHELF_PLACE_BITS & ((1 << WM_SHELF_NUMBER_BITS) - 1)];

	return items == NULL ? NULL : items + (name & ((1 << WM_SHELF_PLACE_BITS) - 1)) * 4;
}

/* Fields are for reading. */
struct wm_shelf {
	int64_t start_us; /* start <= time < end for all its items (at the end of time, <=) */
	int64_t end_us;
	unsigned width_bits;
	uint64_t count; /* items */
	size_t bytes;   /* its memory's */
	struct wm_shelf_chunk *first, *last;
};

/* Fields are for reading. */
struct wm_shelves {
	enum wm_shelf_turn turn;
	struct wm_ordered by_turn;  /* struct wm_shelf */
	struct wm_shelf *recent[2]; /* where the last items went */
	int64_t turn_us;            /* when the next shelf is to be taken down; INT64_MAX: there is none */
	int64_t origin_us;          /* the first time of all, from which distances count while there is no watermark */
	bool has_origin;
	struct wm_shelf_numbers *numbers; /* for the names of items; NULL: they have none */
	struct wm_shelf_chunk *newest;    /* where the item put last is */
	size_t newest_at;
	struct wm_pool chunks; /* the largest of all shelves */
	size_t bytes; /* taken from the system; those of shelves included that were taken down and not dropped yet */
};

void wm_shelves_init(struct wm_shelves *shelves, enum wm_shelf_turn turn);

/* Items will have names. The numbers are borrowed until the shelves are released; all items are of multiples of 4 bytes. */
void wm_shelves_set_numbers(struct wm_shelves *shelves, struct wm_shelf_numbers *numbers);

/* Shelves that were taken down are to be dropped before. */
void wm_shelves_release(struct wm_shelves *shelves);

/*
 * Memory for an item of size bytes, which stays where it is until its shelf is
 * dropped; aligned to 8 where all sizes are multiples of 8, else not at all. Less than 4 GiB.
 * watermark_us: the one in force, or INT64_MIN.
 */
void *wm_shelves_put(struct wm_shelves *shelves, int64_t time_us, int64_t watermark_us, size_t size);

/* The name of the item that was put last. */
uint64_t wm_shelves_name(const struct wm_shelves *shelves);

/* Takes down the shelf whose turn is next, if the watermark has reached it; NULL if not. */
struct wm_shelf *wm_shelves_take(struct wm_shelves *shelves, int64_t watermark_us);

/* Gives back a shelf that was taken down, with all its items. */
void wm_shelves_drop(struct wm_shelves *shelves, struct wm_shelf *shelf);

/* Walks the shelves in order of their turn; *at begins as wm_ordered_seek(&shelves->by_turn, INT64_MIN). NULL at the end. */
struct wm_shelf *wm_shelves_next(const struct wm_shelves *shelves, struct wm_ordered_at *at);

/* Walks a shelf's memory in the order of the puts, whole items at a time; *at begins as NULL. False at the end. */
bool wm_shelf_next(const struct wm_shelf *shelf, const struct wm_shelf_chunk **at, struct wm_span *items);

#endif
