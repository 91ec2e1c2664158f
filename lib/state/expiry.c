#include "lib/state/expiry.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

#define DIGIT_BITS 6
#define DIGIT_MASK (WM_EXPIRY_DIGITS - 1)

/* 512 bytes: so few items that a bucket with one wastes little, so many that the links weigh little. */
#define CHUNK_ITEMS 31

/* Kept for the next bucket: dealing one out gives and takes chunks in turn. */
#define SPARE_MAX 64

struct item {
	int64_t due_us;
	void *item;
};

struct wm_expiry_chunk {
	struct wm_expiry_chunk *older;
	size_t count;
	struct item items[CHUNK_ITEMS];
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
place(struct wm_expiry *expiry, struct item item)
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
			expiry->filled[level] |= UINT64_C(1) << digit;
			expiry->levels |= UINT32_C(1) << level;
		}
		bucket->newest = chunk;
	}
	if (item.due_us < bucket->first_us)
		bucket->first_us = item.due_us;
	chunk->items[chunk->count++] = item;
}

void
wm_expiry_put(struct wm_expiry *expiry, int64_t due_us, void *item)
{
	assert(item != NULL);
	place(expiry, (struct item){ due_us, item });
	expiry->count++;
}

int64_t
wm_expiry_due_us(const struct wm_expiry *expiry)
{
	if (expiry->levels == 0)
		return INT64_MAX;
	/* What differs from the base in a lower digit alone is earlier. */
	unsigned level = (unsigned)__builtin_ctz(expiry->levels);
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

/* Deals the items of the earliest bucket out among lower levels: all agree with its earliest time in this digit. */
static void
deal_out(struct wm_expiry *expiry, unsigned level, unsigned digit)
{
	struct wm_expiry_chunk *chunk = expiry->buckets[level][digit].newest;

	expiry->base = rank_of(expiry->buckets[level][digit].first_us);
	mark_empty(expiry, level, digit);
	while (chunk != NULL) {
		struct wm_expiry_chunk *older = chunk->older;

		for (size_t i = 0; i < chunk->count; i++)
			place(expiry, chunk->items[i]);
		give_chunk(expiry, chunk);
		chunk = older;
	}
}

void *
wm_expiry_take(struct wm_expiry *expiry, int64_t watermark_us)
{
	while (expiry->levels != 0) {
		unsigned level = (unsigned)__builtin_ctz(expiry->levels);
		unsigned digit = (unsigned)__builtin_ctzll(expiry->filled[level]);
		struct wm_expiry_bucket *bucket = &expiry->buckets[level][digit];

		if (bucket->first_us > watermark_us)
			return NULL;
		if (level != 0) {
			deal_out(expiry, level, digit);
			continue;
		}
		struct wm_expiry_chunk *chunk = bucket->newest;
		void *item = chunk->items[--chunk->count].item;
		if (chunk->count == 0) {
			bucket->newest = chunk->older;
			if (bucket->newest == NULL)
				mark_empty(expiry, level, digit);
			give_chunk(expiry, chunk);
		}
		expiry->count--;
		return item;
	}
	return NULL;
}
