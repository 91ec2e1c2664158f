/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/expiry.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

#define DIGIT_BITS 6
#define DIGIT_MASK (WM_EXPIRY_DIGITS - 1)

/* 512 bytes: so few items that a bucket with one wastes little, so many that the links weigh little. */
#define CHUNK_ITEMS 31

#define LINE_BYTES 64

/* Kept for the next bucket: dealing one out gives and takes chunks in turn. */
#define SPARE_MAX 64

/* A bucket with so many items comes to the front as it is; with more at the front than twice that, they are dealt out after all. */
#define FRONT_MAX 256
#define FRONT_CAPACITY (4 * FRONT_MAX)

struct wm_expiry_chunk {
	struct wm_expiry_chunk *older;
	size_t count;
	struct wm_expiry_item items[CHUNK_ITEMS];
};

static void
free_chunks(struct wm_expiry_chunk *chunk)
{
	while (chunk != NULL) {
		struct wm_expiry_chunk *older = chunk->older;

		free(chunk);
		chunk = older;
	}
}

void
wm_expiry_release(struct wm_expiry *expiry)
{
	for (size_t level = 0; level < WM_EXPIRY_LEVELS; level++)
		for (size_t digit = 0; digit < WM_EXPIRY_DIGITS; digit++)
			free_chunks(expiry->buckets[level][digit].newest);
	free_chunks(expiry->spare);
	free(expiry->front);
	*expiry = (struct wm_expiry){ 0 };
}

static struct wm_expiry_chunk *
new_chunk(struct wm_expiry *expiry)
{
	struct wm_expiry_chunk *chunk = expiry->spare;

	if (chunk != NULL) {
		expiry->spare = chunk->older;
		expiry->spare_count--;
		return chunk;
	}
	expiry->bytes += sizeof(*chunk);
	return wm_malloc(sizeof(*chunk));
}

static void
give_chunk(struct wm_expiry *expiry, struct wm_expiry_chunk *chunk)
{
	if (expiry->spare_count == SPARE_MAX) {
		expiry->bytes -= sizeof(*chunk);
		free(chunk);
		return;
	}
	chunk->older = expiry->spare;
	expiry->spare = chunk;
	expiry->spare_count++;
}

/* Times as numbers in the same order, from 0. */
static uint64_t
rank_of(int64_t time_us)
{
	return (uint64_t)time_us ^ (UINT64_C(1) << 63);
}

static void
put_in_bucket(struct wm_expiry *expiry, struct wm_expiry_item item)
{
	uint64_t rank = rank_of(item.due_us);

	if (rank < expiry->base)
		rank = expiry->base;
	uint64_t differing = rank ^ expiry->base;
	unsigned level = differing == 0 ? 0 : (63 - (unsigned)__builtin_clzll(differing)) / DIGIT_BITS;
	unsigned digit = rank >> (level * DIGIT_BITS) & DIGIT_MASK;
	struct wm_expiry_bucket *bucket = &expiry->buckets[level][digit];
	struct wm_expiry_chunk *chunk = bucket->newest;

	if (chunk == NULL || chunk->count == CHUNK_ITEMS) {
		chunk = new_chunk(expiry);
		chunk->older = bucket->newest;
		chunk->count = 0;
		if (bucket->newest == NULL) {
			bucket->first_us = item.due_us;
			bucket->count = 0;
			expiry->filled[level] |= UINT64_C(1) << digit;
			expiry->levels |= UINT32_C(1) << level;
		}
		bucket->newest = chunk;
	}
	if (item.due_us < bucket->first_us)
		bucket->first_us = item.due_us;
	bucket->count++;
	chunk->items[chunk->count++] = item;
}

static void
append_to_front(struct wm_expiry *expiry, struct wm_expiry_item item)
{
	if (expiry->front == NULL) {
		expiry->front = wm_reallocarray(NULL, FRONT_CAPACITY, sizeof(expiry->front[0]));
		expiry->bytes += FRONT_CAPACITY * sizeof(expiry->front[0]);
	}
	if (expiry->front_first + expiry->front_count == FRONT_CAPACITY) {
		memmove(expiry->front, expiry->front + expiry->front_first,
			expiry->front_count * sizeof(expiry->front[0]));
		expiry->front_first = 0;
	}
	expiry->front[expiry->front_first + expiry->front_count++] = item;
}

/* Most items are due after those that are there. */
static void
insert_at_front(struct wm_expiry *expiry, struct wm_expiry_item item)
{
	append_to_front(expiry, item);
	struct wm_expiry_item *front = expiry->front + expiry->front_first;
	size_t at = expiry->front_count - 1;

	for (; at > 0 && front[at - 1].due_us > item.due_us; at--)
		front[at] = front[at - 1];
	front[at] = item;
}

#define PLACE_BITS 8

/* The place of a time among so many of equal width, into which a bucket of a level is divided. */
static size_t
place_of(int64_t time_us, unsigned level)
{
	unsigned bits = level * DIGIT_BITS;

	return (rank_of(time_us) & ((UINT64_C(1) << bits) - 1)) >> (bits > PLACE_BITS ? bits - PLACE_BITS : 0);
}

/* Brings the items of a bucket to the front, which is empty, in order: each to its place, and then there are few left to be moved. */
static void
fill_front(struct wm_expiry *expiry, const struct wm_expiry_chunk *newest, size_t count, unsigned level)
{
	uint16_t next[1 << PLACE_BITS] = { 0 }, at = 0;

	if (expiry->front == NULL) {
		expiry->front = wm_reallocarray(NULL, FRONT_CAPACITY, sizeof(expiry->front[0]));
		expiry->bytes += FRONT_CAPACITY * sizeof(expiry->front[0]);
	}
	struct wm_expiry_item *front = expiry->front;
	for (const struct wm_expiry_chunk *chunk = newest; chunk != NULL; chunk = chunk->older) {
		__builtin_prefetch(chunk->older);
		for (size_t i = 0; i < chunk->count; i++)
			next[place_of(chunk->items[i].due_us, level)]++;
	}
	for (size_t place = 0; place < sizeof(next) / sizeof(next[0]); place++) {
		uint16_t in_place = next[place];

		next[place] = at;
		at = (uint16_t)(at + in_place);
	}
	for (const struct wm_expiry_chunk *chunk = newest; chunk != NULL; chunk = chunk->older)
		for (size_t i = 0; i < chunk->count; i++)
			front[next[place_of(chunk->items[i].due_us, level)]++] = chunk->items[i];
	for (size_t i = 1; i < count; i++) {
		struct wm_expiry_item item = front[i];
		size_t to = i;

		for (; to > 0 && front[to - 1].due_us > item.due_us; to--)
			front[to] = front[to - 1];
		front[to] = item;
	}
	expiry->front_first = 0;
	expiry->front_count = count;
}

/* All that is in front goes back into buckets: the one that it came from has grown. */
static void
deal_out_front(struct wm_expiry *expiry)
{
	size_t count = expiry->front_count;

	expiry->front_count = 0;
	expiry->front_last = 0;
	for (size_t i = 0; i < count; i++)
		put_in_bucket(expiry, expiry->front[expiry->front_first + i]);
}

void
wm_expiry_put(struct wm_expiry *expiry, int64_t due_us, void *item)
{
	assert(item != NULL);
	expiry->count++;
	if (rank_of(due_us) <= expiry->front_last) {
		if (expiry->front_count < 2 * FRONT_MAX) {
			insert_at_front(expiry, (struct wm_expiry_item){ due_us, item });
			return;
		}
		deal_out_front(expiry);
	}
	put_in_bucket(expiry, (struct wm_expiry_item){ due_us, item });
}

/* What differs from the base in a lower digit alone is earlier. */
static unsigned
lowest_level(const struct wm_expiry *expiry)
{
	return (unsigned)__builtin_ctz(expiry->levels);
}

int64_t
wm_expiry_due_us(const struct wm_expiry *expiry)
{
	if (expiry->front_count != 0)
		return expiry->front[expiry->front_first].due_us;
	if (expiry->levels == 0)
		return INT64_MAX;
	unsigned level = lowest_level(expiry);
	return expiry->buckets[level][__builtin_ctzll(expiry->filled[level])].first_us;
}

static void
mark_empty(struct wm_expiry *expiry, unsigned level, unsigned digit)
{
	expiry->buckets[level][digit].newest = NULL;
	expiry->filled[level] &= ~(UINT64_C(1) << digit);
	if (expiry->filled[level] == 0)
		expiry->levels &= ~(UINT32_C(1) << level);
}

/* Empties the earliest bucket: to the front if it is small, else into buckets of lower levels. */
static void
open_bucket(struct wm_expiry *expiry, unsigned level, unsigned digit)
{
	struct wm_expiry_bucket *bucket = &expiry->buckets[level][digit];
	struct wm_expiry_chunk *chunk = bucket->newest;
	bool is_small = bucket->count <= FRONT_MAX;

	expiry->base = rank_of(bucket->first_us);
	mark_empty(expiry, level, digit);
	if (is_small) {
		expiry->front_last = expiry->base | ((UINT64_C(1) << level * DIGIT_BITS) - 1);
		fill_front(expiry, chunk, bucket->count, level);
	}
	while (chunk != NULL) {
		struct wm_expiry_chunk *older = chunk->older;

		for (size_t at = 0; at < sizeof(*chunk) && !is_small; at += LINE_BYTES)
			__builtin_prefetch((const void *)((uintptr_t)older + at));
		for (size_t i = 0; i < chunk->count && !is_small; i++)
			put_in_bucket(expiry, chunk->items[i]);
		give_chunk(expiry, chunk);
		chunk = older;
	}
}

/* All items of a bucket of the lowest level have the same time, or are overdue. */
static void *
take_from_bucket(struct wm_expiry *expiry, unsigned digit)
{
	struct wm_expiry_bucket *bucket = &expiry->buckets[0][digit];
	struct wm_expiry_chunk *chunk = bucket->newest;
	void *item = chunk->items[--chunk->count].item;

	if (chunk->count == 0) {
		bucket->newest = chunk->older;
		give_chunk(expiry, chunk);
	}
	if (--bucket->count == 0)
		mark_empty(expiry, 0, digit);
	return item;
}

void *
wm_expiry_take(struct wm_expiry *expiry, int64_t watermark_us)
{
	while (wm_expiry_due_us(expiry) <= watermark_us && expiry->count != 0) {
		if (expiry->front_count != 0) {
			expiry->count--;
			expiry->front_count--;
			return expiry->front[expiry->front_first++].item;
		}
		unsigned level = lowest_level(expiry), digit = (unsigned)__builtin_ctzll(expiry->filled[level]);
		if (level == 0) {
			expiry->count--;
			return take_from_bucket(expiry, digit);
		}
		open_bucket(expiry, level, digit);
	}
	return NULL;
}
