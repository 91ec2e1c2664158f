/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk - the order in which the slots of a hash table are visited.
 *
 * A walk in the order of the slots is a walk in the order of the hashes' lowest bits. Whoever puts what it meets into
 * another table with the same hash fills that one from the front: the part that has been filled is
 * overcrowded long before the table is full enough to grow, and every step searches all of it. Copying costs
 * the square of the number of keys then.
 *
 * So pieces of the table are visited in an order that has nothing to do with their number. To the other table the keys
 * come as if at random, whether it is empty or half full, small or large. The slots of a piece are in one
 * line of the cache, and stay together.
 */
#ifndef WM_STATE_WALK_H
#define WM_STATE_WALK_H

#include <stddef.h>
#include <stdint.h>

/* Slots in a piece, as a power of two: a line of 64 bytes. */
#define WM_WALK_PIECE_BITS 3
#define WM_WALK_PIECE_MASK (((size_t)1 << WM_WALK_PIECE_BITS) - 1)

/* Tables up to so many slots are visited from the front: they are too small to be worth more. */
#define WM_WALK_PLAIN_MAX 256

/* So many steps before a piece is visited it is fetched. */
#define WM_WALK_FETCH_AHEAD 64

/* The piece that is visited as the at-th: each of mask + 1 pieces, a power of two, once. */
static inline size_t
wm_walk_piece(size_t mask, size_t at)
{
	unsigned half = (unsigned)(64 - __builtin_clzll(mask) + 1) / 2;

	/* Each step can be taken back, so no two pieces become one. The numbers are odd. */
	at = (at ^ at >> half) * (size_t)UINT64_C(0x9e3779b97f4a7c15) & mask;
	at = (at ^ at >> half) * (size_t)UINT64_C(0xbf58476d1ce4e5b9) & mask;
	return at ^ at >> half;
}

/* The slot that is visited as the at-th, of mask + 1. */
static inline size_t
wm_walk_slot(size_t mask, size_t at)
{
	if (mask < WM_WALK_PLAIN_MAX)
		return at;
	return wm_walk_piece(mask >> WM_WALK_PIECE_BITS, at >> WM_WALK_PIECE_BITS) << WM_WALK_PIECE_BITS |
		(at & WM_WALK_PIECE_MASK);
}

/* The next slot that is not free, which is 0; 0 at the end. *at is how many were visited. */
static inline uint64_t
wm_walk_next(const uint64_t *slots, size_t mask, size_t *at)
{
	while (*at <= mask) {
		const uint64_t *slot = &slots[wm_walk_slot(mask, *at)];

		if ((*at & WM_WALK_PIECE_MASK) == 0)
			__builtin_prefetch(&slots[wm_walk_slot(mask, (*at + WM_WALK_FETCH_AHEAD) & mask)]);
		do {
			++*at;
			if (*slot != 0)
				return *slot;
			slot++;
		} while ((*at & WM_WALK_PIECE_MASK) != 0);
	}
	return 0;
}

#endif
