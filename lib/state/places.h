/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places - a table that finds objects by the hash of their key.
 *
 * The objects are the caller's, aligned to 16, and stay where they are; the table has a slot of 8
 * bytes for each, and knows nothing of keys. One looks through those that may have a hash:
 *
 *     for (size_t at = wm_places_seek(&places, hash); (object = wm_places_next(&places, hash, &at)) != NULL;)
 *             if (... it has the key)
 *                     return object;
 *
 * Besides the address a slot has some bits of the hash, and how far it is from the place that the hash asks for. So
 * nothing but the slots is looked at when an object is taken out, or when a large table grows, which would be a wait for
 * memory for each object on the way.
 *
 * The order of a walk, and of objects that share a hash, depends on the hash's secret: whatever is written has to be
 * sorted first.
 */
#ifndef WM_STATE_PLACES_H
#define WM_STATE_PLACES_H

#include <stddef.h>
#include <stdint.h>

/* The hash that an object was put with. */
typedef uint64_t (*wm_places_hash)(const void *object);

/* Fields are for reading. */
struct wm_places {
	/* Of each the upper 16 bits are the hash's, the lowest 4 how many places it is away (all set: so many or more), between them
	   stands the address. 0: it is free. */
	uint64_t *slots;
	size_t mask; /* slots - 1; there are none while slots is NULL */
	size_t count;
	wm_places_hash hash_of;
};

/* Of the hash, in a slot: these bits, from this one on. The lowest ones are the number of its place. */
#define WM_PLACES_TAG_BITS 16
#define WM_PLACES_TAG_FROM 13

#define WM_PLACES_ADDRESS_BITS 48
#define WM_PLACES_ADDRESS_MASK ((UINT64_C(1) << WM_PLACES_ADDRESS_BITS) - 16)

/* Takes no memory until something is put. */
void wm_places_init(struct wm_places *places, wm_places_hash hash_of);
void wm_places_release(struct wm_places *places);

/* Has the place of a hash fetched. Inlined, as all that only fetches: gcc 12 takes a call of such a function for one without effect, and leaves it out. */
__attribute__((always_inline)) static inline void
wm_places_fetch(const struct wm_places *places, uint64_t hash)
{
	if (places->slots != NULL)
		__builtin_prefetch(&places->slots[hash & places->mask]);
}

/* Where the search for a hash begins. Spoilt by putting and taking. */
static inline size_t
wm_places_seek(const struct wm_places *places, uint64_t hash)
{
	return hash & places->mask;
}

/* The next object that may have the hash (one with another is seldom among them, but may be); NULL at the end. */
static inline void *
wm_places_next(const struct wm_places *places, uint64_t hash, size_t *at)
{
	uint64_t slot, tag = hash >> WM_PLACES_TAG_FROM << WM_PLACES_ADDRESS_BITS;

	if (places->slots == NULL)
		return NULL;
	while ((slot = places->slots[*at]) != 0) {
		*at = (*at + 1) & places->mask;
		if ((slot ^ tag) >> WM_PLACES_ADDRESS_BITS == 0)
			return (void *)(uintptr_t)(slot & WM_PLACES_ADDRESS_MASK);
	}
	return NULL;
}

/* What most likely has a hash, by the slots alone; NULL if nothing has. */
static inline void *
wm_places_like(const struct wm_places *places, uint64_t hash)
{
	size_t at = wm_places_seek(places, hash);

	return wm_places_next(places, hash, &at);
}

/* Puts an object that is not there. */
void wm_places_put(struct wm_places *places, uint64_t hash, void *object);

/* What is there is now another object, of the same hash. */
void wm_places_replace(struct wm_places *places, uint64_t hash, const void *object, void *by);

/* Takes an object out, which is there. */
void wm_places_take(struct wm_places *places, uint64_t hash, const void *object);

/* Walks all objects in no order; *at begins as 0. NULL at the end. Spoilt by putting and taking. */
void *wm_places_walk(const struct wm_places *places, size_t *at);

/* Bytes taken from the system, those of the objects not among them. */
size_t wm_places_bytes(const struct wm_places *places);

#endif
