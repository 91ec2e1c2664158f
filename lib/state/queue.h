/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue - items that leave one by one, in order of time, as a bound passes them.
 *
 * An item is a piece of memory with a time and a place among those of that
 * time. It is put once, stays where it is, and leaves when its turn comes:
 *
 *     item = wm_queue_put(&queue, time_us, order, watermark_us, len);
 *     while ((item = wm_queue_first(&queue, bound_us, bound_order)) != NULL) {
 *             wm_queue_take(&queue);
 *             ... it is the caller's until the next wm_queue_first()
 *     }
 *
 * Items stand on shelves; a shelf is sorted when it has begun. All that is held
 * costs its bytes, about 30 more an item, and 16 where its turn is near; what
 * has left is given back in pieces of about a sixty-fourth of an item's stay.
 * Items that nobody needs when they leave are forgotten shelf by shelf.
 */
#ifndef WM_STATE_QUEUE_H
#define WM_STATE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/state/shelves.h"

/*
 * Order among items of one time: their source, then the number of those that came before, which rises from put to put.
 */
#define WM_QUEUE_ARRIVAL_BITS 48
#define WM_QUEUE_ARRIVAL_MASK ((UINT64_C(1) << WM_QUEUE_ARRIVAL_BITS) - 1)

/* Fields are for reading; mark and bytes are the caller's. */
struct wm_queued {
	int64_t time_us;
	uint64_t order;
	uint32_t len;
	uint32_t mark; /* 0 in a new item */
	char bytes[];  /* aligned to 8 */
};

/* What an item with len bytes takes on its shelf. */
static inline size_t
wm_queued_bytes(size_t len)
{
	return (offsetof(struct wm_queued, bytes) + len + 7) & ~(size_t)7;
}

struct wm_queue_run;

/* How items leave. */
enum wm_queue_kind {
	WM_QUEUE_TAKEN = 0, /* one by one, in order */
	WM_QUEUE_FORGOTTEN, /* without being looked at: wm_queue_forget() instead of wm_queue_first() and wm_queue_take() */
};

/* Fields are for reading. */
struct wm_queue {
	struct wm_shelves shelves;
	struct wm_queue_run *runs;
	size_t runs_count, runs_capacity;
	struct wm_queue_run *first;   /* whose item was returned last; NULL if it was none, or is known no longer */
	struct wm_queue_run *leaving; /* whose item was taken last */
	size_t items_bytes;           /* of all runs */
	int64_t lowest_us;            /* no item is earlier (forgotten: was); INT64_MAX: there is none */
	uint64_t count;               /* items in memory */
};

void wm_queue_init(struct wm_queue *queue, enum wm_queue_kind kind);
void wm_queue_release(struct wm_queue *queue);

/* A new item of len bytes, which are unset. watermark_us: what the bound is now, about, or INT64_MIN. */
struct wm_queued *wm_queue_put(
	struct wm_queue *queue, int64_t time_us, uint64_t order, int64_t watermark_us, size_t len);

/*
 * The first item of all if it stands before a time and order; NULL if not. Bounds do not move back. The item may be gone
 * after the next call, unless that is wm_queue_take() or wm_queue_put().
 */
struct wm_queued *wm_queue_first(struct wm_queue *queue, int64_t bound_us, uint64_t bound_order);

/* Takes out what wm_queue_first() has just returned. */
void wm_queue_take(struct wm_queue *queue);

/* Forgets items before a bound, most of those that have been there for long. Bounds do not move back. */
void wm_queue_forget(struct wm_queue *queue, int64_t bound_us);

/* Items that are not before a bound. Costs a walk over those about to leave. */
uint64_t wm_queue_count_from(const struct wm_queue *queue, int64_t bound_us);

/* All count items in the order in which they were put, whatever their times and sources. An array to be freed. */
struct wm_queued **wm_queue_items(const struct wm_queue *queue);

/* Bytes of state. */
size_t wm_queue_bytes(const struct wm_queue *queue);

#endif
