/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expiry - what comes due at which watermark.
 *
 * Items are put in with the time at which they are due, and taken out, earliest
 * first, once the watermark has reached that. Putting and taking cost the same
 * however many there are: times stand in buckets by their highest digit, to
 * base 64, in which they differ from the earliest time of before. When its turn comes, a bucket is
 * dealt out into finer ones if it holds many items, and sorted if it holds few.
 *
 * An item whose time moves on need not be found again: when its old time
 * comes, whoever takes it looks at the true one, which stands with the item, and puts it
 * back. Items are pointers of the caller's; what order those of one time come in depends on the puts
 * and takes alone.
 */
#ifndef WM_STATE_EXPIRY_H
#define WM_STATE_EXPIRY_H

#include <stddef.h>
#include <stdint.h>

/* Digits of 6 bits in 64. */
#define WM_EXPIRY_LEVELS 11
#define WM_EXPIRY_DIGITS 64

struct wm_expiry_chunk;

struct wm_expiry_bucket {
	struct wm_expiry_chunk *newest;
	size_t count;     /* items */
	int64_t first_us; /* the earliest time in it */
};

struct wm_expiry_item {
	int64_t due_us;
	void *item;
};

/* All zero bytes are an empty one. Fields are for reading. */
struct wm_expiry {
	struct wm_expiry_item *front; /* what comes first, sorted: from front_first on */
	size_t front_first, front_count;
	/* Times as numbers from 0: what is not above front_last is in front, all else in buckets; what is in those differs from base
	   at its level, and is not below it. */
	uint64_t front_last;
	uint64_t base;
	uint32_t levels;                   /* bits: those with an item */
	uint64_t filled[WM_EXPIRY_LEVELS]; /* bits: buckets with an item */
	struct wm_expiry_bucket buckets[WM_EXPIRY_LEVELS][WM_EXPIRY_DIGITS];
	struct wm_expiry_chunk *spare;
	size_t spare_count;
	size_t count; /* items */
	size_t bytes; /* taken from the system */
};

void wm_expiry_release(struct wm_expiry *expiry);

/* Any time will do, one that has passed too. */
void wm_expiry_put(struct wm_expiry *expiry, int64_t due_us, void *item);

/* The earliest time; INT64_MAX if there is nothing. */
int64_t wm_expiry_due_us(const struct wm_expiry *expiry);

/* The item that many places behind the next, where that is known already; else NULL. For those who have its memory fetched in time. */
static inline void *
wm_expiry_ahead(const struct wm_expiry *expiry, size_t places)
{
	return places < expiry->front_count ? expiry->front[expiry->front_first + places].item : NULL;
}

/* Takes out an item with the earliest time if the watermark has reached it; NULL if not. The watermark does not move back. */
void *wm_expiry_take(struct wm_expiry *expiry, int64_t watermark_us);

#endif
