#include "lib/state/shelves.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

/* A shelf is at most 2^-4 as wide as the distance of its times. */
#define SHARE_BITS 4

/* 64 us, which leaves 6 bits free below a shelf's borders; and 4.5 years, so that an offset within a shelf fits 47 bits. */
#define WIDTH_BITS_MIN 6
#define WIDTH_BITS_MAX 47

/* A chunk is a quarter of what its shelf has already: from so few bytes that one item costs little, to what one allocation is worth. */
#define CHUNK_BYTES_MIN ((size_t)256)
#define CHUNK_BYTES_MAX ((size_t)1 << 16)

struct wm_shelf_chunk {
	struct wm_shelf_chunk *next;
	size_t size; /* of the whole chunk, this header included */
	size_t used; /* of data */
	_Alignas(16) char data[];
};

void
wm_shelves_init(struct wm_shelves *shelves, enum wm_shelf_turn turn)
{
	*shelves = (struct wm_shelves){ .turn = turn, .turn_us = INT64_MAX };
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
	struct wm_shelf_chunk *chunk = wm_malloc(size);
	chunk->next = NULL;
	chunk->size = size;
	chunk->used = 0;
	if (shelf->last == NULL)
		shelf->first = chunk;
	else
		shelf->last->next = chunk;
	shelf->last = chunk;
	shelf->bytes += size;
	shelves->bytes += size;
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
	void *item = chunk->data + chunk->used;
	chunk->used += size;
	shelf->count++;
	return item;
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

	shelves->bytes -= shelf->bytes;
	while (chunk != NULL) {
		struct wm_shelf_chunk *next = chunk->next;

		free(chunk);
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
