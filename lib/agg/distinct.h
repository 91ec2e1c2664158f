/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distinct - how many different values a group has: exact while they are few, then estimated.
 *
 * A value is its XXH3-64 (seed 0) from its text and kind, so that the JSON number 1 and the
 * text "1" are two. Up to WM_DISTINCT_EXACT_MAX hashes are kept as a set. That is
 * exact but for two values of one hash, which happens once in 2^45 groups of 1024 values. The next one turns the set into a
 * HyperLogLog of 2^12 registers, read by Ertl's improved estimator, which has no
 * bias to correct at any size: standard error 1.04 / sqrt(2^12) = 1.63 %, so
 * that an answer is within 5 % but once in about 500 times.
 *
 * What is kept depends on the set of values alone: any order and any grouping of
 * adding and merging gives the same answers and the same encoded bytes.
 *
 * Memory, from an arena: 32 bytes, from 11 to 22 bytes a value by doubling, then 4096 bytes in
 * the same place. What is outgrown is garbage, at most as much again.
 */
#ifndef WM_AGG_DISTINCT_H
#define WM_AGG_DISTINCT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"

/* Values that are counted exactly; the 1025th makes an estimate. */
#define WM_DISTINCT_EXACT_MAX 1024

/* All zero bytes are no values. Memory is the arena's: nothing to release. Fields are for reading. */
struct wm_distinct {
	union {
		uint64_t *hashes;   /* a hash table; 0: a free place */
		uint8_t *registers; /* of the HyperLogLog */
	};
	uint32_t count;    /* hashes */
	uint16_t capacity; /* of hashes, a power of two */
	bool is_estimate;
};

/* The value is not empty. */
void wm_distinct_add(struct wm_distinct *distinct, struct wm_arena *arena, const struct wm_value *value);

/* from stays as it is; arena is that of into. */
void wm_distinct_merge(struct wm_distinct *into, struct wm_arena *arena, const struct wm_distinct *from);

/* The answer: exact, or the estimate rounded. */
uint64_t wm_distinct_count(const struct wm_distinct *distinct);

void wm_distinct_encode(const struct wm_distinct *distinct, struct wm_buf *out);

/* Into one without values. */
WM_MUST_CHECK bool wm_distinct_decode(struct wm_distinct *distinct, struct wm_arena *arena, struct wm_get *in);

#endif
