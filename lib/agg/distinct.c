/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/distinct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define PRECISION 12
#define REGISTERS_COUNT (1 << PRECISION)

/* A register holds the place of the first bit set in what the hash has beside the register's number; all zero gives one more. */
#define RANK_BITS (64 - PRECISION)
#define RANK_MAX (RANK_BITS + 1)

#define CAPACITY_MIN 4

/* 1 / (2 ln 2): Ertl's alpha for infinitely many registers. */
#define ALPHA 0.7213475204444817

/* Registers have 6 bits in an encoding: four stand in three bytes. */
#define REGISTERS_BYTES (REGISTERS_COUNT / 4 * 3)

/* Another kind of value with the same text has another hash. 0 is left for free places. */
static inline uint64_t
hash_of(const struct wm_value *value)
{
	uint64_t hash =
		wm_hash_stable(value->text) ^ (uint64_t)(value->kind - WM_KIND_TEXT) * UINT64_C(0x9e3779b97f4a7c15);

	return hash != 0 ? hash : 1;
}

static inline void
register_raise(uint8_t *registers, uint64_t hash)
{
	uint64_t rest = hash << PRECISION;
	uint8_t rank = rest == 0 ? RANK_MAX : (uint8_t)(__builtin_clzll(rest) + 1);
	uint8_t *at = &registers[hash >> RANK_BITS];

	if (rank > *at)
		*at = rank;
}

/* The place of a hash, or the free one where it belongs. There is one: the table is never full. */
static uint64_t *
place_of(uint64_t *hashes, size_t capacity, uint64_t hash)
{
	size_t at = hash & (capacity - 1);

	while (hashes[at] != 0 && hashes[at] != hash)
		at = (at + 1) & (capacity - 1);
	return &hashes[at];
}

static void
grow(struct wm_distinct *distinct, struct wm_arena *arena)
{
	size_t capacity = distinct->capacity == 0 ? CAPACITY_MIN : (size_t)distinct->capacity * 2;
	uint64_t *hashes = wm_arena_alloc(arena, capacity * sizeof(*hashes));

	memset(hashes, 0, capacity * sizeof(*hashes));
	for (size_t i = 0; i < distinct->capacity; i++)
		if (distinct->hashes[i] != 0)
			*place_of(hashes, capacity, distinct->hashes[i]) = distinct->hashes[i];
	distinct->hashes = hashes;
	distinct->capacity = (uint16_t)capacity;
}

/* Where a set stands that is as large as sets get, there is room for the registers. */
__attribute__((noinline)) static void
turn_to_estimate(struct wm_distinct *distinct, struct wm_arena *arena)
{
	size_t capacity = distinct->capacity, bytes = capacity * sizeof(uint64_t);
	uint64_t *hashes = wm_malloc(bytes + 1);
	uint8_t *registers =
		bytes >= REGISTERS_COUNT ? (uint8_t *)distinct->hashes : wm_arena_alloc(arena, REGISTERS_COUNT);

	if (capacity != 0)
		memcpy(hashes, distinct->hashes, bytes);
	memset(registers, 0, REGISTERS_COUNT);
	for (size_t i = 0; i < capacity; i++)
		if (hashes[i] != 0)
			register_raise(registers, hashes[i]);
	free(hashes);
	*distinct = (struct wm_distinct){ .registers = registers, .is_estimate = true };
}

static void
hash_add(struct wm_distinct *distinct, struct wm_arena *arena, uint64_t hash)
{
	if (distinct->is_estimate) {
		register_raise(distinct->registers, hash);
		return;
	}
	if (distinct->capacity == 0)
		grow(distinct, arena);
	uint64_t *place = place_of(distinct->hashes, distinct->capacity, hash);
	if (*place != 0)
		return;
	if (distinct->count == WM_DISTINCT_EXACT_MAX) {
		turn_to_estimate(distinct, arena);
		register_raise(distinct->registers, hash);
		return;
	}
	*place = hash;
	distinct->count++;
	if (distinct->count > distinct->capacity * 3u / 4)
		grow(distinct, arena);
}

void
wm_distinct_add(struct wm_distinct *distinct, struct wm_arena *arena, const struct wm_value *value)
{
	hash_add(distinct, arena, hash_of(value));
}

void
wm_distinct_merge(struct wm_distinct *into, struct wm_arena *arena, const struct wm_distinct *from)
{
	if (!from->is_estimate) {
		for (size_t i = 0; i < from->capacity; i++)
			if (from->hashes[i] != 0)
				hash_add(into, arena, from->hashes[i]);
		return;
	}
	if (!into->is_estimate)
		turn_to_estimate(into, arena);
	for (size_t i = 0; i < REGISTERS_COUNT; i++)
		if (from->registers[i] > into->registers[i])
			into->registers[i] = from->registers[i];
}

/* ---- the estimate: O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithm 6 ---- */

/* x + sum of x^(2^k) 2^(k-1) from k = 1 on; x < 1. */
static double
sigma(double x)
{
	double sum = x, before, factor = 1;

	do {
		x *= x;
		before = sum;
		sum += x * factor;
		factor += factor;
	} while (sum != before);
	return sum;
}

/* (1 - x - sum of (1 - x^(2^-k))^2 2^-k from k = 1 on) / 3 */
static double
tau(double x)
{
	double sum = 1 - x, before, factor = 1;

	if (x == 0 || x == 1)
		return 0;
	do {
		x = sqrt(x);
		before = sum;
		factor *= 0.5;
		sum -= (1 - x) * (1 - x) * factor;
	} while (sum != before);
	return sum / 3;
}

/* Multiplications, additions and square roots alone: the same on every machine. */
static double
estimate(const uint8_t *registers)
{
	uint32_t counts[RANK_MAX + 1] = { 0 };
	const double all = REGISTERS_COUNT;

	for (size_t i = 0; i < REGISTERS_COUNT; i++)
		counts[registers[i]]++;
	double sum = all * tau(1 - counts[RANK_MAX] / all);
	for (size_t rank = RANK_BITS; rank > 0; rank--)
		sum = 0.5 * (sum + counts[rank]);
	return counts[0] == REGISTERS_COUNT ? 0 : ALPHA * all * all / (sum + all * sigma(counts[0] / all));
}

/* Never less than the number of values that made it an estimate, nor more than there are hashes. */
uint64_t
wm_distinct_count(const struct wm_distinct *distinct)
{
	if (!distinct->is_estimate)
		return distinct->count;
	double count = estimate(distinct->registers);
	if (count < WM_DISTINCT_EXACT_MAX + 1)
		return WM_DISTINCT_EXACT_MAX + 1;
	return count < 0x1p64 ? (uint64_t)(count + 0.5) : UINT64_MAX;
}

/* ---- as bytes: the number of hashes and these in order, or a number above the maximum and the registers ---- */

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

void
wm_distinct_encode(const struct wm_distinct *distinct, struct wm_buf *out)
{
	size_t count = 0;

	wm_put_varint(out, distinct->is_estimate ? WM_DISTINCT_EXACT_MAX + 1 : distinct->count);
	if (distinct->is_estimate) {
		for (size_t i = 0; i < REGISTERS_COUNT; i += 4) {
			const uint8_t *four = &distinct->registers[i];

			wm_put_u8(out, (uint8_t)(four[0] << 2 | four[1] >> 4));
			wm_put_u8(out, (uint8_t)((four[1] & 15) << 4 | four[2] >> 2));
			wm_put_u8(out, (uint8_t)((four[2] & 3) << 6 | four[3]));
		}
		return;
	}
	uint64_t *hashes = wm_malloc(distinct->count * sizeof(*hashes) + 1);
	for (size_t i = 0; i < distinct->capacity; i++)
		if (distinct->hashes[i] != 0)
			hashes[count++] = distinct->hashes[i];
	qsort(hashes, count, sizeof(*hashes), compare_hashes);
	for (size_t i = 0; i < count; i++)
		wm_put_u64(out, hashes[i]);
	free(hashes);
}

bool
wm_distinct_decode(struct wm_distinct *distinct, struct wm_arena *arena, struct wm_get *in)
{
	uint64_t count = wm_get_varint(in), before = 0;

	if (count > WM_DISTINCT_EXACT_MAX + 1 ||
		(count > WM_DISTINCT_EXACT_MAX ? REGISTERS_BYTES : count * sizeof(uint64_t)) > wm_get_left(in))
		wm_get_fail(in);
	if (count > WM_DISTINCT_EXACT_MAX && !in->failed) {
		turn_to_estimate(distinct, arena);
		for (size_t i = 0; i < REGISTERS_COUNT; i += 4) {
			uint32_t bytes = (uint32_t)wm_get_u8(in) << 16;

			bytes |= (uint32_t)wm_get_u8(in) << 8;
			bytes |= wm_get_u8(in);
			for (size_t j = 0; j < 4; j++) {
				distinct->registers[i + j] = bytes >> (18 - 6 * j) & 63;
				if (distinct->registers[i + j] > RANK_MAX)
					wm_get_fail(in);
			}
		}
		return !in->failed;
	}
	for (uint64_t i = 0; i < count && !in->failed; i++) {
		uint64_t hash = wm_get_u64(in);

		if (hash <= before)
			wm_get_fail(in);
		else
			hash_add(distinct, arena, hash);
		before = hash;
	}
	return !in->failed;
}
