/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/places.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/state/walk.h"

#define SLOTS_MIN 8

#define AWAY_MAX (UINT64_C(15))
#define TAG_MASK ((UINT64_C(1) << WM_PLACES_TAG_BITS) - 1)
#define REST_MASK (~AWAY_MAX)

void
wm_places_init(struct wm_places *places, wm_places_hash hash_of)
{
	*places = (struct wm_places){ .hash_of = hash_of };
}

void
wm_places_release(struct wm_places *places)
{
	free(places->slots);
	wm_places_init(places, places->hash_of);
}

static void *
object_of(uint64_t slot)
{
	return (void *)(uintptr_t)(slot & WM_PLACES_ADDRESS_MASK);
}

/* The place that the hash of what stands at another one asks for. */
static size_t
home_of(const struct wm_places *places, uint64_t slot, size_t at)
{
	uint64_t away = slot & AWAY_MAX;

	return (away < AWAY_MAX ? at - away : places->hash_of(object_of(slot))) & places->mask;
}

/* rest: a slot but for how far away it is. */
static void
set_slot(struct wm_places *places, size_t at, size_t home, uint64_t rest)
{
	uint64_t away = (at - home) & places->mask;

	places->slots[at] = rest | (away < AWAY_MAX ? away : AWAY_MAX);
}

static void
put_from_home(struct wm_places *places, size_t home, uint64_t rest)
{
	size_t at = home;

	while (places->slots[at] != 0)
		at = (at + 1) & places->mask;
	set_slot(places, at, home, rest);
}

/* A table twice as large or half. Of a small one that grows, the objects are looked at: of others, the slots know enough. */
static void
resize(struct wm_places *places, size_t new_count)
{
	struct wm_places old = *places;
	size_t old_count = old.slots == NULL ? 0 : old.mask + 1;

	places->slots = wm_calloc_wide(new_count, sizeof(places->slots[0]));
	places->mask = new_count - 1;
	for (size_t at = 0; at < old_count; at++) {
		uint64_t slot = old.slots[at];

		if (slot == 0)
			continue;
		size_t home = home_of(&old, slot, at);
		if (new_count > old_count && old_count < (size_t)1 << WM_PLACES_TAG_FROM)
			home = old.hash_of(object_of(slot));
		else if (new_count > old_count)
			home |= (slot >> WM_PLACES_ADDRESS_BITS << WM_PLACES_TAG_FROM) & old_count;
		put_from_home(places, home & places->mask, slot & REST_MASK);
	}
	free(old.slots);
}

void
wm_places_put(struct wm_places *places, uint64_t hash, void *object)
{
	uint64_t address = (uint64_t)(uintptr_t)object;

	/* At most three quarters full. */
	if (places->slots == NULL)
		resize(places, SLOTS_MIN);
	else if ((places->count + 1) * 4 > (places->mask + 1) * 3)
		resize(places, 2 * (places->mask + 1));
	assert(object != NULL && (address & ~WM_PLACES_ADDRESS_MASK) == 0);
	put_from_home(places, hash & places->mask,
		(hash >> WM_PLACES_TAG_FROM & TAG_MASK) << WM_PLACES_ADDRESS_BITS | address);
	places->count++;
}

static size_t
place_of(const struct wm_places *places, uint64_t hash, const void *object)
{
	size_t at = hash & places->mask;

	while (object_of(places->slots[at]) != object)
		at = (at + 1) & places->mask;
	return at;
}

void
wm_places_replace(struct wm_places *places, uint64_t hash, const void *object, void *by)
{
	uint64_t *slot = &places->slots[place_of(places, hash, object)];

	assert(((uint64_t)(uintptr_t)by & ~WM_PLACES_ADDRESS_MASK) == 0);
	*slot = (*slot & ~WM_PLACES_ADDRESS_MASK) | (uint64_t)(uintptr_t)by;
}

void
wm_places_take(struct wm_places *places, uint64_t hash, const void *object)
{
	size_t hole = place_of(places, hash, object);
	uint64_t slot;

	/* What stands behind moves up, unless that would put it before its own place. */
	for (size_t at = (hole + 1) & places->mask; (slot = places->slots[at]) != 0; at = (at + 1) & places->mask) {
		size_t home = home_of(places, slot, at);

		if (((at - home) & places->mask) < ((at - hole) & places->mask))
			continue;
		set_slot(places, hole, home, slot & REST_MASK);
		hole = at;
	}
	places->slots[hole] = 0;
	places->count--;
	if (places->count * 8 < places->mask && places->mask >= SLOTS_MIN)
		resize(places, (places->mask + 1) / 2);
}

void *
wm_places_walk(const struct wm_places *places, size_t *at)
{
	if (places->slots == NULL)
		return NULL;
	return object_of(wm_walk_next(places->slots, places->mask, at));
}

size_t
wm_places_bytes(const struct wm_places *places)
{
	return places->slots == NULL ? 0 : (places->mask + 1) * sizeof(places->slots[0]);
}
