/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/shelves.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

/* A shelf is at most 2^-6 as wide as the distance of its times. */
#define SHARE_BITS 6

/* 64 us, which leaves 6 bits free below a shelf's borders; and 4.5 years, so that an offset within a shelf fits 47 bits. */
#define WIDTH_BITS_MIN 6
#define WIDTH_BITS_MAX 47

/*
 * A chunk is a quarter of what its shelf has already: from so few bytes that one item costs little, to what is worth a
 * call. The largest are eight to a block of their pool, with its header.
 */
#define CHUNK_BYTES_MIN ((size_t)256)
#define CHUNK_BYTES_MAX (((size_t)1 << 16) - 16)

/* Memory so far behind an item is fetched when it is put. */
#define AHEAD_BYTES 1024

_Static_assert(CHUNK_BYTES_MAX <= (size_t)4 << WM_SHELF_PLACE_BITS, "a name has room for all places");

struct wm_shelf_chunk {
	struct wm_shelf_chunk *next;
	size_t size;   /* of the whole chunk, this header included */
	uint32_t used; /* of data */
	uint32_t number;
	_Alignas(16) char data[];
};

void
wm_shelves_init(struct wm_shelves *shelves, enum wm_shelf_turn turn)
{
	*shelves = (struct wm_shelves){ .turn = turn, .turn_us = INT64_MAX };
	wm_pool_init(&shelves->chunks, CHUNK_BYTES_MAX);
}

void
wm_shelves_set_numbers(struct wm_shelves *shelves, struct wm_shelf_numbers *numbers)
{
	assert(shelves->bytes == 0);
	shelves->numbers = numbers;
}

void
wm_shelves_release(struct wm_shelves *shelves)
{
	struct wm_shelf *shelf;

	while ((shelf = wm_shelves_take(shelves, INT64_MAX)) != NULL)
		wm_shelves_drop(shelves, shelf);
	assert(shelves->bytes == 0);
	wm_ordered_release(&shelves->by_turn);
}

static int64_t
turn_of(const struct wm_shelves *shelves, const struct wm_shelf *shelf)
{
	return shelves->turn == WM_SHELF_OVER ? shelf->end_us : shelf->start_us;
}

/* Shelves of several widths may share a border: below it, the width tells them apart. */
static int64_t
place_of(const struct wm_shelves *shelves, const struct wm_shelf *shelf)
{
	return (turn_of(shelves, shelf) & -(INT64_C(1) << WIDTH_BITS_MIN)) | shelf->width_bits;
}

static void
set_turn(struct wm_shelves *shelves)
{
	struct wm_ordered_at at = wm_ordered_seek(&shelves->by_turn, INT64_MIN);
	const struct wm_shelf *first = wm_shelves_next(shelves, &at);

	shelves->turn_us = first == NULL ? INT64_MAX : turn_of(shelves, first);
}

static unsigned
width_bits(int64_t time_us, int64_t from_us)
{
	uint64_t distance =
		time_us > from_us ? (uint64_t)time_us - (uint64_t)from_us : (uint64_t)from_us - (uint64_t)time_us;

	if (distance >> (WIDTH_BITS_MIN + SHARE_BITS) == 0)
		return WIDTH_BITS_MIN;
	unsigned bits = 63 - SHARE_BITS - (unsigned)__builtin_clzll(distance);
	return bits < WIDTH_BITS_MAX ? bits : WIDTH_BITS_MAX;
}

static __attribute__((noinline)) struct wm_shelf *
find_shelf(struct wm_shelves *shelves, int64_t start_us, unsigned bits)
{
	struct wm_shelf wanted = { .start_us = start_us, .width_bits = bits };

	if (__builtin_add_overflow(start_us, INT64_C(1) << bits, &wanted.end_us))
		wanted.end_us = INT64_MAX;
	int64_t place = place_of(shelves, &wanted);
	struct wm_shelf *shelf = wm_ordered_find(&shelves->by_turn, place);
	if (shelf == NULL) {
		shelf = wm_malloc(sizeof(*shelf));
		*shelf = wanted;
		shelf->bytes = sizeof(*shelf);
		shelves->bytes += sizeof(*shelf);
		wm_ordered_put(&shelves->by_turn, place, shelf);
		set_turn(shelves);
	}
	shelves->recent[1] = shelves->recent[0];
	shelves->recent[0] = shelf;
	return shelf;
}

/* Numbers */

void
wm_shelf_numbers_release(struct wm_shelf_numbers *numbers)
{
	assert(numbers->in_use == 0);
	free(numbers->items);
	free(numbers->unused);
	*numbers = (struct wm_shelf_numbers){ 0 };
}

void
wm_shelf_numbers_reuse(struct wm_shelf_numbers *numbers)
{
	numbers->unused_count = 0;
	for (size_t number = 1; number < numbers->count; number++)
		if (numbers->items[number] == NULL)
			numbers->unused[numbers->unused_count++] = (uint32_t)number;
	numbers->gone = 0;
}

size_t
wm_shelf_numbers_bytes(const struct wm_shelf_numbers *numbers)
{
	return numbers->capacity * (sizeof(numbers->items[0]) + sizeof(numbers->unused[0]));
}

static void
give_number(struct wm_shelf_numbers *numbers, struct wm_shelf_chunk *chunk)
{
	if (numbers->unused_count != 0) {
		chunk->number = numbers->unused[--numbers->unused_count];
	} else {
		/* More than 2^24 chunks: there is a terabyte of state. */
		if (numbers->count >> WM_SHELF_NUMBER_BITS != 0)
			wm_mem_stop(0);
		if (numbers->count == numbers->capacity) {
			numbers->items =
				wm_grown(numbers->items, numbers->count, &numbers->capacity, sizeof(numbers->items[0]));
			numbers->unused =
				wm_reallocarray(numbers->unused, numbers->capacity, sizeof(numbers->unused[0]));
		}
		if (numbers->count == 0)
			numbers->items[numbers->count++] = NULL;
		chunk->number = (uint32_t)numbers->count++;
	}
	numbers->items[chunk->number] = chunk->data;
	numbers->in_use++;
}

static void
end_number(struct wm_shelf_numbers *numbers, const struct wm_shelf_chunk *chunk)
{
	numbers->items[chunk->number] = NULL;
	numbers->in_use--;
	numbers->gone++;
}

/* Shelves */

static struct wm_shelf_chunk *
new_chunk(struct wm_shelves *shelves, size_t size)
{
	size_t before = shelves->chunks.bytes;
	struct wm_shelf_chunk *chunk = size == CHUNK_BYTES_MAX ? wm_pool_take(&shelves->chunks) : wm_malloc(size);

	shelves->bytes += size == CHUNK_BYTES_MAX ? shelves->chunks.bytes - before : size;
	*chunk = (struct wm_shelf_chunk){ .size = size };
	if (shelves->numbers != NULL)
		give_number(shelves->numbers, chunk);
	return chunk;
}

static void
free_chunk(struct wm_shelves *shelves, struct wm_shelf_chunk *chunk)
{
	size_t before = shelves->chunks.bytes;

	if (shelves->numbers != NULL)
		end_number(shelves->numbers, chunk);
	if (chunk->size != CHUNK_BYTES_MAX) {
		shelves->bytes -= chunk->size;
		free(chunk);
		return;
	}
	wm_pool_give(&shelves->chunks, chunk);
	if (shelves->chunks.count == 0)
		wm_pool_release(&shelves->chunks);
	shelves->bytes -= before - shelves->chunks.bytes;
}

static __attribute__((noinline)) struct wm_shelf_chunk *
add_chunk(struct wm_shelves *shelves, struct wm_shelf *shelf, size_t item_size)
{
	size_t size = shelf->bytes / 4;

	if (size < CHUNK_BYTES_MIN)
		size = CHUNK_BYTES_MIN;
	if (size > CHUNK_BYTES_MAX)
		size = CHUNK_BYTES_MAX;
	if (size < sizeof(struct wm_shelf_chunk) + item_size)
		size = sizeof(struct wm_shelf_chunk) + item_size;
	struct wm_shelf_chunk *chunk = new_chunk(shelves, size);
	if (shelf->last == NULL)
		shelf->first = chunk;
	else
		shelf->last->next = chunk;
	shelf->last = chunk;
	shelf->bytes += size;
	return chunk;
}

static bool
is_shelf(const struct wm_shelf *shelf, int64_t start_us, unsigned bits)
{
	return shelf != NULL && shelf->start_us == start_us && shelf->width_bits == bits;
}

void *
wm_shelves_put(struct wm_shelves *shelves, int64_t time_us, int64_t watermark_us, size_t size)
{
	assert(size <= UINT32_MAX);
	if (watermark_us == INT64_MIN) {
		if (!shelves->has_origin)
			shelves->origin_us = time_us;
		shelves->has_origin = true;
		watermark_us = shelves->origin_us;
	}
	unsigned bits = width_bits(time_us, watermark_us);
	int64_t start_us = time_us & -(INT64_C(1) << bits);
	struct wm_shelf *shelf = is_shelf(shelves->recent[0], start_us, bits) ? shelves->recent[0]
		: is_shelf(shelves->recent[1], start_us, bits)                ? shelves->recent[1]
									      : find_shelf(shelves, start_us, bits);
	struct wm_shelf_chunk *chunk = shelf->last;

	if (chunk == NULL || size > chunk->size - sizeof(*chunk) - chunk->used)
		chunk = add_chunk(shelves, shelf, size);
	shelves->newest = chunk;
	shelves->newest_at = chunk->used;
	chunk->used += (uint32_t)size;
	shelf->count++;
	char *item = chunk->data + shelves->newest_at;
	/* What comes next goes there, mostly: writing would wait for memory as reading does. */
	for (size_t ahead = AHEAD_BYTES; ahead < AHEAD_BYTES + size; ahead += 64)
		__builtin_prefetch((const void *)((uintptr_t)item + ahead), 1);
	return item;
}

uint64_t
wm_shelves_name(const struct wm_shelves *shelves)
{
	return (uint64_t)shelves->newest->number << WM_SHELF_PLACE_BITS | shelves->newest_at / 4;
}

struct wm_shelf *
wm_shelves_take(struct wm_shelves *shelves, int64_t watermark_us)
{
	if (shelves->by_turn.count == 0 || shelves->turn_us > watermark_us)
		return NULL;
	struct wm_ordered_at at = wm_ordered_seek(&shelves->by_turn, INT64_MIN);
	struct wm_shelf *shelf = wm_shelves_next(shelves, &at);
	wm_ordered_take(&shelves->by_turn, place_of(shelves, shelf));
	for (size_t i = 0; i < 2; i++)
		if (shelves->recent[i] == shelf)
			shelves->recent[i] = NULL;
	set_turn(shelves);
	return shelf;
}

void
wm_shelves_drop(struct wm_shelves *shelves, struct wm_shelf *shelf)
{
	struct wm_shelf_chunk *chunk = shelf->first;

	shelves->bytes -= sizeof(*shelf);
	while (chunk != NULL) {
		struct wm_shelf_chunk *next = chunk->next;

		free_chunk(shelves, chunk);
		chunk = next;
	}
	free(shelf);
}

struct wm_shelf *
wm_shelves_next(const struct wm_shelves *shelves, struct wm_ordered_at *at)
{
	return wm_ordered_next(&shelves->by_turn, at, NULL);
}

bool
wm_shelf_next(const struct wm_shelf *shelf, const struct wm_shelf_chunk **at, struct wm_span *items)
{
	*at = *at == NULL ? shelf->first : (*at)->next;
	if (*at == NULL)
		return false;
	*items = wm_span((*at)->data, (*at)->used);
	return true;
}
