/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/series.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* Items of a chunk: so few that moving half of them is cheap, so many that the list of chunks stays short. */
#define CHUNK_ITEMS_MIN 4
#define CHUNK_ITEMS_MAX 128
#define LIST_CHUNKS_MIN 8

/* A chunk of a series is never empty. */
struct wm_series_chunk {
	uint32_t first, end; /* of the items in use */
	uint32_t capacity;
	struct wm_series_item items[];
};

struct wm_series_list {
	size_t first, end; /* of the chunks in use */
	size_t capacity;
	struct wm_series_chunk *chunks[];
};

static size_t
chunk_bytes(size_t capacity)
{
	return sizeof(struct wm_series_chunk) + capacity * sizeof(struct wm_series_item);
}

static size_t
list_bytes(size_t capacity)
{
	return sizeof(struct wm_series_list) + capacity * sizeof(struct wm_series_chunk *);
}

static struct wm_series_chunk *
new_chunk(uint32_t capacity, const struct wm_series_item *items, uint32_t count, size_t *bytes)
{
	struct wm_series_chunk *chunk = wm_malloc(chunk_bytes(capacity));

	chunk->first = 0;
	chunk->end = count;
	chunk->capacity = capacity;
	memcpy(chunk->items, items, count * sizeof(items[0]));
	*bytes += chunk_bytes(capacity);
	return chunk;
}

static void
free_chunk(struct wm_series_chunk *chunk, size_t *bytes)
{
	*bytes -= chunk_bytes(chunk->capacity);
	free(chunk);
}

static struct wm_series_chunk *
with_capacity(struct wm_series_chunk *chunk, uint32_t capacity, size_t *bytes)
{
	struct wm_series_chunk *other =
		new_chunk(capacity, chunk->items + chunk->first, chunk->end - chunk->first, bytes);

	free_chunk(chunk, bytes);
	return other;
}

/* The chunks of a series; none where it has no more than one item. */
static struct wm_series_chunk **
chunks_of(struct wm_series *series)
{
	return series->form == WM_SERIES_LIST ? series->in.list->chunks + series->in.list->first : &series->in.chunk;
}

static size_t
chunks_count(const struct wm_series *series)
{
	return series->form == WM_SERIES_LIST ? series->in.list->end - series->in.list->first
					      : series->form != WM_SERIES_EMPTY;
}

/* The items of a chunk; of a series with one item, that. */
static struct wm_series_item *
items_of(const struct wm_series *series, size_t chunk, size_t *count)
{
	const struct wm_series_chunk *at = series->in.chunk;

	if (series->form == WM_SERIES_ONE) {
		*count = 1;
		return (struct wm_series_item *)(uintptr_t)&series->in.one;
	}
	if (series->form == WM_SERIES_LIST)
		at = series->in.list->chunks[series->in.list->first + chunk];
	*count = at->end - at->first;
	return (struct wm_series_item *)(uintptr_t)(at->items + at->first);
}

void
wm_series_release(struct wm_series *series, size_t *bytes)
{
	if (series->form >= WM_SERIES_CHUNK)
		for (size_t i = 0, count = chunks_count(series); i < count; i++)
			free_chunk(chunks_of(series)[i], bytes);
	if (series->form == WM_SERIES_LIST) {
		*bytes -= list_bytes(series->in.list->capacity);
		free(series->in.list);
	}
	series->form = WM_SERIES_EMPTY;
}

/* Index of the first of some items that is not below a time, or not below or at it. */
static size_t
index_of(const struct wm_series_item *items, size_t count, int64_t time_us, bool is_behind)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (items[middle].time_us < time_us || (is_behind && items[middle].time_us == time_us))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first place not below a time, or behind all that is at it. Its chunk is the last one if it is the end of all. */
static struct wm_series_at
place_of(const struct wm_series *series, int64_t time_us, bool is_behind)
{
	size_t low = 0, high = chunks_count(series) - 1, count;

	/* The first chunk whose last item is not below. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct wm_series_item *last = items_of(series, middle, &count) + count - 1;

		if (last->time_us < time_us || (is_behind && last->time_us == time_us))
			low = middle + 1;
		else
			high = middle;
	}
	const struct wm_series_item *items = items_of(series, low, &count);
	return (struct wm_series_at){ low, index_of(items, count, time_us, is_behind) };
}

struct wm_series_at
wm_series_seek(const struct wm_series *series, int64_t time_us)
{
	if (wm_series_is_empty(series))
		return (struct wm_series_at){ 0, 0 };
	return place_of(series, time_us, false);
}

struct wm_series_item *
wm_series_next(struct wm_series *series, struct wm_series_at *at)
{
	size_t count;

	if (at->chunk >= chunks_count(series))
		return NULL;
	struct wm_series_item *items = items_of(series, at->chunk, &count);
	if (at->index >= count)
		return NULL;
	struct wm_series_item *item = items + at->index;
	if (++at->index == count)
		*at = (struct wm_series_at){ at->chunk + 1, 0 };
	return item;
}

struct wm_series_item *
wm_series_last(struct wm_series *series, int64_t time_us)
{
	size_t count;

	if (wm_series_is_empty(series))
		return NULL;
	struct wm_series_at at = place_of(series, time_us, true);
	if (at.index == 0 && at.chunk-- == 0)
		return NULL;
	struct wm_series_item *items = items_of(series, at.chunk, &count);
	return items + (at.index == 0 ? count : at.index) - 1;
}

static struct wm_series_list *
list_with_capacity(struct wm_series_list *list, size_t capacity, size_t *bytes)
{
	struct wm_series_list *other = wm_malloc(list_bytes(capacity));

	*bytes += list_bytes(capacity) - list_bytes(list->capacity);
	other->first = 0;
	other->end = list->end - list->first;
	other->capacity = capacity;
	memcpy(other->chunks, list->chunks + list->first, other->end * sizeof(list->chunks[0]));
	free(list);
	return other;
}

/* Puts a chunk into the list, which it makes if there was none. */
static void
insert_chunk(struct wm_series *series, size_t at, struct wm_series_chunk *chunk, size_t *bytes)
{
	struct wm_series_list *list = series->in.list;

	if (series->form == WM_SERIES_CHUNK) {
		list = wm_malloc(list_bytes(LIST_CHUNKS_MIN));
		*bytes += list_bytes(LIST_CHUNKS_MIN);
		list->first = 0;
		list->end = 1;
		list->capacity = LIST_CHUNKS_MIN;
		list->chunks[0] = series->in.chunk;
		series->form = WM_SERIES_LIST;
	} else if (list->end == list->capacity) {
		/* As for items of a chunk: half of the room is in front, or there is more. */
		list = list_with_capacity(
			list, list->first * 2 >= list->capacity ? list->capacity : list->capacity * 2, bytes);
	}
	struct wm_series_chunk **place = list->chunks + list->first + at;
	memmove(place + 1, place, (list->end - list->first - at) * sizeof(place[0]));
	*place = chunk;
	list->end++;
	series->in.list = list;
}

/* Puts an item into a chunk that has room on one side at least. */
static void
insert_item(struct wm_series_chunk *chunk, size_t at, struct wm_series_item item)
{
	struct wm_series_item *items = chunk->items + chunk->first;
	size_t count = chunk->end - chunk->first;

	if (chunk->end < chunk->capacity && (chunk->first == 0 || at * 2 >= count)) {
		memmove(items + at + 1, items + at, (count - at) * sizeof(items[0]));
		items[at] = item;
		chunk->end++;
	} else {
		memmove(items - 1, items, at * sizeof(items[0]));
		items[(ptrdiff_t)at - 1] = item;
		chunk->first--;
	}
}

/* A full chunk is cut in two, or, where the item goes behind all others, has a new one put behind it. */
static void
put_beyond(struct wm_series *series, struct wm_series_at at, struct wm_series_item item, size_t *bytes)
{
	struct wm_series_chunk *chunk = chunks_of(series)[at.chunk];
	uint32_t count = chunk->end - chunk->first, kept = count / 2;

	if (at.index == count && at.chunk + 1 == chunks_count(series)) {
		insert_chunk(series, at.chunk + 1, new_chunk(CHUNK_ITEMS_MAX, &item, 1, bytes), bytes);
		return;
	}
	struct wm_series_chunk *upper =
		new_chunk(CHUNK_ITEMS_MAX, chunk->items + chunk->first + kept, count - kept, bytes);
	chunk->end -= count - kept;
	insert_chunk(series, at.chunk + 1, upper, bytes);
	if (at.index > kept)
		insert_item(upper, at.index - kept, item);
	else
		insert_item(chunk, at.index, item);
}

static struct wm_series_at
place_behind(struct wm_series *series, int64_t time_us)
{
	size_t last = chunks_count(series) - 1;
	const struct wm_series_chunk *chunk = chunks_of(series)[last];

	if (chunk->items[chunk->end - 1].time_us <= time_us)
		return (struct wm_series_at){ last, chunk->end - chunk->first };
	return place_of(series, time_us, true);
}

void
wm_series_put(struct wm_series *series, int64_t time_us, void *pointer, size_t *bytes)
{
	struct wm_series_item item = { time_us, pointer };

	if (series->form == WM_SERIES_EMPTY) {
		series->in.one = item;
		series->form = WM_SERIES_ONE;
		return;
	}
	if (series->form == WM_SERIES_ONE) {
		series->in.chunk = new_chunk(CHUNK_ITEMS_MIN, &series->in.one, 1, bytes);
		series->form = WM_SERIES_CHUNK;
	}
	struct wm_series_at at = place_behind(series, time_us);
	struct wm_series_chunk **place = &chunks_of(series)[at.chunk];
	/* Items in front of which there is little room are not moved for one more behind them: that would be done each time. */
	bool is_full = (*place)->end == (*place)->capacity && (*place)->first * 2 < (*place)->capacity &&
		((*place)->first == 0 || at.index == (*place)->end - (*place)->first);
	if (is_full && (*place)->capacity == CHUNK_ITEMS_MAX) {
		put_beyond(series, at, item, bytes);
		return;
	}
	if (is_full)
		*place = with_capacity(*place, (*place)->capacity * 2, bytes);
	else if ((*place)->end == (*place)->capacity && (*place)->first * 2 >= (*place)->capacity) {
		uint32_t count = (*place)->end - (*place)->first;

		memmove((*place)->items, (*place)->items + (*place)->first, count * sizeof((*place)->items[0]));
		(*place)->first = 0;
		(*place)->end = count;
	}
	insert_item(*place, at.index, item);
}

/* Takes items low to high - 1 out of a chunk, which may become empty. */
static void
cut_chunk(struct wm_series_chunk *chunk, uint32_t low, uint32_t high)
{
	uint32_t count = chunk->end - chunk->first;
	struct wm_series_item *items = chunk->items + chunk->first;

	if (low == 0) {
		chunk->first += high;
		return;
	}
	memmove(items + low, items + high, (count - high) * sizeof(items[0]));
	chunk->end -= high - low;
}

/* Few items do not keep the room of many. */
static void
shrink_chunk(struct wm_series_chunk **chunk, size_t *bytes)
{
	uint32_t count = (*chunk)->end - (*chunk)->first, capacity = (*chunk)->capacity;

	while (count * 4 < capacity && capacity > CHUNK_ITEMS_MIN)
		capacity /= 2;
	if (capacity < (*chunk)->capacity)
		*chunk = with_capacity(*chunk, capacity, bytes);
}

/* Takes out empty chunks from one to before another. */
static void
remove_chunks(struct wm_series *series, size_t from, size_t to, size_t *bytes)
{
	struct wm_series_list *list = series->in.list;
	struct wm_series_chunk **chunks = chunks_of(series);
	size_t count = chunks_count(series);

	for (size_t i = from; i < to; i++)
		free_chunk(chunks[i], bytes);
	if (series->form == WM_SERIES_CHUNK) {
		if (to > from)
			series->form = WM_SERIES_EMPTY;
		return;
	}
	if (from == 0) {
		list->first += to;
	} else {
		memmove(chunks + from, chunks + to, (count - to) * sizeof(chunks[0]));
		list->end -= to - from;
	}
	if (list->end - list->first > 1) {
		if ((list->end - list->first) * 4 < list->capacity && list->capacity > LIST_CHUNKS_MIN)
			series->in.list = list_with_capacity(list, list->capacity / 2, bytes);
		return;
	}
	struct wm_series_chunk *left = list->end == list->first ? NULL : list->chunks[list->first];
	*bytes -= list_bytes(list->capacity);
	free(list);
	series->in.chunk = left;
	series->form = left == NULL ? WM_SERIES_EMPTY : WM_SERIES_CHUNK;
}

/* Takes out what stands from one place to before another. */
static void
cut(struct wm_series *series, struct wm_series_at from, struct wm_series_at to, size_t *bytes)
{
	size_t empty_from = from.index == 0 ? from.chunk : from.chunk + 1, empty_to = to.chunk;

	if (from.chunk > to.chunk || (from.chunk == to.chunk && from.index >= to.index))
		return;
	if (series->form == WM_SERIES_ONE) {
		series->form = WM_SERIES_EMPTY;
		return;
	}
	struct wm_series_chunk **chunks = chunks_of(series);
	for (size_t i = from.chunk; i <= to.chunk; i++) {
		uint32_t count = chunks[i]->end - chunks[i]->first;

		cut_chunk(chunks[i], i == from.chunk ? (uint32_t)from.index : 0,
			i == to.chunk ? (uint32_t)to.index : count);
		if (chunks[i]->first != chunks[i]->end)
			shrink_chunk(&chunks[i], bytes);
		else if (i == to.chunk)
			empty_to++;
	}
	if (empty_from < empty_to)
		remove_chunks(series, empty_from, empty_to, bytes);
}

void
wm_series_cut(struct wm_series *series, int64_t from_us, int64_t to_us, size_t *bytes)
{
	if (!wm_series_is_empty(series) && from_us <= to_us)
		cut(series, place_of(series, from_us, false), place_of(series, to_us, true), bytes);
}

void
wm_series_drop(struct wm_series *series, int64_t before_us, size_t *bytes)
{
	size_t count;

	if (wm_series_is_empty(series) || items_of(series, 0, &count)->time_us >= before_us)
		return;
	cut(series, (struct wm_series_at){ 0, 0 }, place_of(series, before_us, false), bytes);
}
