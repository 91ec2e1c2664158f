/*
 * shelves - items that leave memory by the watermark, many at once.
 *
 * An item is a piece of memory with a time. Items stand on shelves, each for a
 * stretch of time and taken down whole: when all of it is over, or as soon as
 * it has begun. A shelf is at most a sixteenth as wide as its times were ahead
 * of the watermark when they were put on it. So no item outstays its time by
 * more than about a sixteenth of its life, whatever delays and times there are;
 * shelves are few (about 32 for each doubling of that distance); and an item is
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

/* When a shelf is taken down. */
enum wm_shelf_turn {
	WM_SHELF_OVER,  /* end <= watermark: all that stands on it is due */
	WM_SHELF_BEGUN, /* start <= watermark: some of it may be */
};

/* A piece of a shelf's memory, items one behind the other. */
struct wm_shelf_chunk;

/* Fields are for reading. */
struct wm_shelf {
	int64_t start_us; /* start <= time < end for all its items (at the end of time, <=) */
	int64_t end_us;
	unsigned width_bits;
	uint64_t count; /* items */
	size_t bytes;   /* taken from the system */
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
	size_t bytes; /* of all shelves, those included that were taken down and not dropped yet */
};

void wm_shelves_init(struct wm_shelves *shelves, enum wm_shelf_turn turn);

/* Shelves that were taken down are to be dropped before. */
void wm_shelves_release(struct wm_shelves *shelves);

/*
 * Memory for an item of size bytes, which stays where it is until its shelf is
 * dropped; aligned to 8 where all sizes are multiples of 8, else not at all.
 * watermark_us: the one in force, or INT64_MIN.
 */
void *wm_shelves_put(struct wm_shelves *shelves, int64_t time_us, int64_t watermark_us, size_t size);

/* Takes down the shelf whose turn is next, if the watermark has reached it; NULL if not. */
struct wm_shelf *wm_shelves_take(struct wm_shelves *shelves, int64_t watermark_us);

/* Gives back a shelf that was taken down, with all its items. */
void wm_shelves_drop(struct wm_shelves *shelves, struct wm_shelf *shelf);

/* Walks the shelves in order of their turn; *at begins as wm_ordered_seek(&shelves->by_turn, INT64_MIN). NULL at the end. */
struct wm_shelf *wm_shelves_next(const struct wm_shelves *shelves, struct wm_ordered_at *at);

/* Walks a shelf's memory in the order of the puts, whole items at a time; *at begins as NULL. False at the end. */
bool wm_shelf_next(const struct wm_shelf *shelf, const struct wm_shelf_chunk **at, struct wm_span *items);

#endif
