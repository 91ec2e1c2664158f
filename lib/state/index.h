/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index - finds by a key what stands on shelves.
 *
 * Items of one or several shelves are named by their chunk and their place in it,
 * and stand here by the hash of their key. One that goes with its shelf is not
 * taken out: its name leads nowhere from then on, and its place is free. So
 * forgetting costs no look at what is forgotten, and no wait for its memory.
 *
 *     wm_index_reserve(&index);
 *     struct wm_index_at at = wm_index_seek(&index, hash);
 *     while ((item = wm_index_next(&index, &at)) != NULL && ... it has another key)
 *             ;
 *     if (item == NULL)
 *             wm_index_put(&index, &at, wm_shelves_name(&shelves));    what was put there just now
 *
 * The table is one of lines: 8 slots of 8 bytes, one line of the processor's
 * cache. An item stands in the first line that had room, from its own on: the one
 * beside it, with which processors fetch it, then those of the next pair, and so
 * on. So of a key that is new, as most are, as a rule one line comes from memory
 * and nothing else. A slot: a bit that it is used, how many lines were full (3
 * bits, all set: so many or more), 22 bits of the hash, the item's name; else 0.
 * The table grows and shrinks with what stands: an item costs between 10 and 26
 * bytes, as does one that is gone until its slot is needed.
 *
 * What order equal hashes come in depends on the puts; nothing else of the table is seen.
 */
#ifndef WM_STATE_INDEX_H
#define WM_STATE_INDEX_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/state/shelves.h"

#define WM_INDEX_SLOTS 8

/* Of the hash, in a slot: these bits, from this one on. The lowest ones are the number of its line. */
#define WM_INDEX_TAG_BITS 22
#define WM_INDEX_TAG_FROM 13
#define WM_INDEX_TAG_MASK (((UINT64_C(1) << WM_INDEX_TAG_BITS) - 1) << WM_SHELF_NAME_BITS)
#define WM_INDEX_USED (UINT64_C(1) << 63)

/* Vector instructions read it: the one without anything, which is no table, has to be aligned too. */
struct wm_index_line {
	alignas(WM_INDEX_SLOTS * sizeof(uint64_t)) uint64_t slots[WM_INDEX_SLOTS];
};

/* The hash that an item was put with: for a table that grows. */
typedef uint64_t (*wm_index_hash)(const void *self, const char *item);

/* Fields are for reading. */
struct wm_index {
	struct wm_shelf_numbers numbers; /* shelves whose items stand here take theirs from it */
	struct wm_index_line *lines;     /* aligned to their size; one without anything while bytes is 0 */
	size_t mask;                     /* lines - 1 */
	size_t taken;                    /* slots that are not 0 */
	size_t bytes;                    /* of the table */
	wm_index_hash hash_of;
	const void *self;
};

/* Takes no memory until something is reserved. hash_of is called with self. */
void wm_index_init(struct wm_index *index, wm_index_hash hash_of, const void *self);

/* The shelves are released before. */
void wm_index_release(struct wm_index *index);

/* Slots of a line, as bits. */
struct wm_index_look {
	unsigned like; /* used, with a tag */
	unsigned used;
};

/* A place while one looks for an item. Spoilt by wm_index_reserve() and wm_index_tidy(). Fields are the index's. */
struct wm_index_at {
	uint64_t tag;              /* where it is in a slot */
	size_t home, full;         /* the line of its own; lines that had no room */
	struct wm_index_look look; /* at the line behind those */
	uint64_t *slot;            /* the last item's; at the end one that was never used */
};

#ifdef __SSE2__
/* The tag and whether a slot is used are in its upper half. */
static inline struct wm_index_look
wm_index_look(const struct wm_index_line *line, uint64_t tag)
{
	const __m128i mask = _mm_set1_epi32((int)((WM_INDEX_USED | WM_INDEX_TAG_MASK) >> 32));
	const __m128i wanted = _mm_set1_epi32((int)((WM_INDEX_USED | tag) >> 32));
	struct wm_index_look look = { 0, 0 };

	for (unsigned i = 0; i < WM_INDEX_SLOTS; i += 4) {
		__m128 low = _mm_load_ps((const float *)(const void *)&line->slots[i]);
		__m128 high = _mm_load_ps((const float *)(const void *)&line->slots[i + 2]);
		__m128 upper = _mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1));
		__m128i equal = _mm_cmpeq_epi32(_mm_and_si128(_mm_castps_si128(upper), mask), wanted);

		look.like |= (unsigned)_mm_movemask_ps(_mm_castsi128_ps(equal)) << i;
		look.used |= (unsigned)_mm_movemask_ps(upper) << i;
	}
	return look;
}
#else
static inline struct wm_index_look
wm_index_look(const struct wm_index_line *line, uint64_t tag)
{
	struct wm_index_look look = { 0, 0 };

	for (unsigned i = 0; i < WM_INDEX_SLOTS; i++) {
		uint64_t slot = line->slots[i];

		look.like |= (unsigned)((slot & (WM_INDEX_USED | WM_INDEX_TAG_MASK)) == (WM_INDEX_USED | tag)) << i;
		look.used |= (unsigned)(slot >> 63) << i;
	}
	return look;
}
#endif

#define WM_INDEX_ALL_USED ((1U << WM_INDEX_SLOTS) - 1)

static inline uint64_t
wm_index_tag(uint64_t hash)
{
	return hash >> WM_INDEX_TAG_FROM << WM_SHELF_NAME_BITS & WM_INDEX_TAG_MASK;
}

/*
 * What is needed to find some items, on its way from memory in steps of which each needs the one before: the line; the line
 * beside it if that is full, and the item. Steps are so many hashes apart; a power of two. All zero bytes to begin with.
 */
#define WM_INDEX_STEP 4

/* So many hashes are known until they are looked for. */
#define WM_INDEX_TOLD 16

struct wm_index_ahead {
	uint64_t hashes[WM_INDEX_STEP], names[WM_INDEX_STEP]; /* in turn */
	unsigned turn;
	struct {
		uint64_t number, hash;
	} told[WM_INDEX_TOLD]; /* by number */
};

/* What has a number, which is not 0 and nobody else's, has this hash. */
static inline void
wm_index_tell(struct wm_index_ahead *ahead, uint64_t number, uint64_t hash)
{
	ahead->told[number % WM_INDEX_TOLD].number = number;
	ahead->told[number % WM_INDEX_TOLD].hash = hash;
}

/* The hash of what has a number, if it was told not long ago; false: it is not known. */
static inline bool
wm_index_told(const struct wm_index_ahead *ahead, uint64_t number, uint64_t *hash)
{
	*hash = ahead->told[number % WM_INDEX_TOLD].hash;
	return number != 0 && ahead->told[number % WM_INDEX_TOLD].number == number;
}

/*
 * A hash that will be looked for a few times from now, 8 or more. Returns the item that has most likely the one of twice
 * WM_INDEX_STEP times ago, on its way for as long; NULL: none is known. Inlined in any case: the compiler drops calls of what only fetches.
 */
__attribute__((always_inline)) static inline const char *
wm_index_foresee(const struct wm_index *index, struct wm_index_ahead *ahead, uint64_t hash)
{
	unsigned turn = ahead->turn++ % WM_INDEX_STEP;
	uint64_t before = ahead->hashes[turn], found = ahead->names[turn];
	const struct wm_index_line *line = &index->lines[before & index->mask];
	struct wm_index_look look = wm_index_look(line, wm_index_tag(before));

	ahead->hashes[turn] = hash;
	ahead->names[turn] = 0;
	__builtin_prefetch(&index->lines[hash & index->mask], 1);
	__builtin_prefetch(&index->lines[(hash & index->mask) ^ (index->mask != 0)], 1);
	if (look.used == WM_INDEX_ALL_USED)
		__builtin_prefetch(&index->lines[(before & index->mask) ^ (index->mask & 2)], 1);
	if (look.like != 0) {
		uint64_t name = line->slots[__builtin_ctz(look.like)] & WM_SHELF_NAME_MASK;
		const char *item = wm_shelf_numbers_item(&index->numbers, name);

		ahead->names[turn] = name;
		__builtin_prefetch(item);
		__builtin_prefetch((const void *)((uintptr_t)item + 64));
	}
	/* Numbers may have been released meanwhile. */
	return found == 0 || found >> WM_SHELF_PLACE_BITS >= index->numbers.count
		? NULL
		: wm_shelf_numbers_item(&index->numbers, found);
}

static inline struct wm_index_at
wm_index_seek(const struct wm_index *index, uint64_t hash)
{
	struct wm_index_at at = { .tag = wm_index_tag(hash), .home = hash & index->mask };

	at.look = wm_index_look(&index->lines[at.home], at.tag);
	return at;
}

/* The next item that may have the hash (an item with another is as good as never among them); NULL at the end. */
static inline const char *
wm_index_next(const struct wm_index *index, struct wm_index_at *at)
{
	for (;;) {
		struct wm_index_line *line = &index->lines[at->home ^ at->full];

		while (at->look.like != 0) {
			at->slot = &line->slots[__builtin_ctz(at->look.like)];
			at->look.like &= at->look.like - 1;
			const char *item = wm_shelf_numbers_item(&index->numbers, *at->slot);
			if (item != NULL)
				return item;
		}
		if (at->look.used != WM_INDEX_ALL_USED) {
			at->slot = &line->slots[__builtin_ctz(~at->look.used)];
			return NULL;
		}
		at->full++;
		at->look = wm_index_look(&index->lines[at->home ^ at->full], at->tag);
	}
}

/* What wm_index_reserve() does when there is none. */
void wm_index_make_room(struct wm_index *index);

/* Makes room for one more item. */
static inline void
wm_index_reserve(struct wm_index *index)
{
	if (index->bytes == 0 || (index->taken + 1) * 16 > (index->mask + 1) * WM_INDEX_SLOTS * 13)
		wm_index_make_room(index);
}

/* Puts an item where the search for its hash ended, which began after wm_index_reserve(). */
void wm_index_put(struct wm_index *index, const struct wm_index_at *at, uint64_t name);

/* What was found is now another item, of the same hash. */
static inline void
wm_index_replace(const struct wm_index_at *at, uint64_t name)
{
	*at->slot = (*at->slot & ~WM_SHELF_NAME_MASK) | name;
}

/* Takes out what was found. */
static inline void
wm_index_take(const struct wm_index_at *at)
{
	wm_index_replace(at, WM_SHELF_NAME_GONE);
}

/* After shelves have gone: gives back memory that is worth it. */
void wm_index_tidy(struct wm_index *index);

/* Bytes of state, without the shelves. */
size_t wm_index_bytes(const struct wm_index *index);

#endif
