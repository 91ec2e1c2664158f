/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/queue.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"

/* Bits of a source, below the offset of a time in its shelf. */
#define SOURCE_BITS 16

/* Fewer items are sorted by insertion. */
#define RADIX_COUNT_MIN 48
#define DIGIT_BITS 10

/* So many items ahead are fetched from memory: about what is done with one meanwhile hides the wait. */
#define PREFETCH_ITEMS 8
#define PREFETCH_BYTES 4096
#define CACHE_LINE 64

/* An item of a run: offset in the shelf (47 bits), then source. In order of arrival to begin with, which sorting keeps. */
struct item {
	uint64_t rank;
	struct wm_queued *queued;
};

/* A shelf that has begun: its items in order. */
struct wm_queue_run {
	struct wm_shelf *shelf;
	struct item *items;
	size_t count;
	size_t at; /* the first that has not left */
};

void
wm_queue_init(struct wm_queue *queue, enum wm_queue_kind kind)
{
	*queue = (struct wm_queue){ .lowest_us = INT64_MAX };
	wm_shelves_init(&queue->shelves, kind == WM_QUEUE_TAKEN ? WM_SHELF_BEGUN : WM_SHELF_OVER);
}

static void
drop_run(struct wm_queue *queue, struct wm_queue_run *run)
{
	wm_shelves_drop(&queue->shelves, run->shelf);
	free(run->items);
	queue->items_bytes -= run->count * sizeof(run->items[0]);
	*run = queue->runs[--queue->runs_count];
}

void
wm_queue_release(struct wm_queue *queue)
{
	while (queue->runs_count != 0)
		drop_run(queue, &queue->runs[0]);
	free(queue->runs);
	wm_shelves_release(&queue->shelves);
	queue->runs = queue->first = queue->leaving = NULL;
	queue->runs_capacity = 0;
	queue->lowest_us = INT64_MAX;
	queue->count = 0;
}

/* The item at an offset of some memory of a shelf. */
static struct wm_queued *
queued_at(struct wm_span memory, size_t at)
{
	return (struct wm_queued *)(uintptr_t)(memory.data + at);
}

struct wm_queued *
wm_queue_put(struct wm_queue *queue, int64_t time_us, uint64_t order, int64_t watermark_us, size_t len)
{
	struct wm_queued *queued = wm_shelves_put(&queue->shelves, time_us, watermark_us, wm_queued_bytes(len));

	assert(len <= UINT32_MAX);
	queued->time_us = time_us;
	queued->order = order;
	queued->len = (uint32_t)len;
	queued->mark = 0;
	if (time_us < queue->lowest_us)
		queue->lowest_us = time_us;
	queue->count++;
	return queued;
}

/* Runs */

static void
insertion_sort(struct item *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct item item = items[i];
		size_t at = i;

		for (; at > 0 && items[at - 1].rank > item.rank; at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

/* By one digit from one array into another; those of one digit keep their order. */
static void
deal_out(const struct item *from, struct item *to, size_t count, unsigned shift)
{
	size_t places[1 << DIGIT_BITS] = { 0 };
	size_t place = 0;

	for (size_t i = 0; i < count; i++)
		places[from[i].rank >> shift & ((1 << DIGIT_BITS) - 1)]++;
	for (size_t digit = 0; digit < 1 << DIGIT_BITS; digit++) {
		size_t here = places[digit];

		places[digit] = place;
		place += here;
	}
	for (size_t i = 0; i < count; i++)
		to[places[from[i].rank >> shift & ((1 << DIGIT_BITS) - 1)]++] = from[i];
}

/* Sorts an array of count items by rank, those of one rank as they stand; takes it and returns the sorted one. */
static struct item *
sorted(struct item *items, size_t count)
{
	uint64_t differing = 0;

	if (count < RADIX_COUNT_MIN) {
		insertion_sort(items, count);
		return items;
	}
	for (size_t i = 1; i < count; i++)
		differing |= items[i].rank ^ items[0].rank;
	struct item *other = wm_reallocarray(NULL, count, sizeof(items[0]));
	/* Times are mostly whole milliseconds, of one source: low bits are alike. */
	for (unsigned shift = 0; shift < 64 && differing >> shift != 0; shift += DIGIT_BITS) {
		shift += (unsigned)__builtin_ctzll(differing >> shift);
		deal_out(items, other, count, shift);
		struct item *swap = items;
		items = other;
		other = swap;
	}
	free(other);
	return items;
}

static void
begin_run(struct wm_queue *queue, struct wm_shelf *shelf)
{
	const struct wm_shelf_chunk *chunk = NULL;
	struct wm_queue_run run = { .shelf = shelf,
		.items = wm_reallocarray(NULL, shelf->count, sizeof(run.items[0])) };
	struct wm_span memory;

	while (wm_shelf_next(shelf, &chunk, &memory)) {
		size_t fetched = 0;

		for (size_t at = 0; at < memory.len;) {
			struct wm_queued *queued = queued_at(memory, at);
			for (; fetched < at + PREFETCH_BYTES && fetched < memory.len; fetched += CACHE_LINE)
				__builtin_prefetch(memory.data + fetched);
			uint64_t offset = (uint64_t)queued->time_us - (uint64_t)shelf->start_us;

			run.items[run.count++] =
				(struct item){ offset << SOURCE_BITS | queued->order >> WM_QUEUE_ARRIVAL_BITS, queued };
			at += wm_queued_bytes(queued->len);
		}
	}
	run.items = sorted(run.items, run.count);
	queue->items_bytes += run.count * sizeof(run.items[0]);
	queue->runs = wm_grown(queue->runs, queue->runs_count, &queue->runs_capacity, sizeof(struct wm_queue_run));
	queue->runs[queue->runs_count++] = run;
}

static struct wm_queued *
head_of(const struct wm_queue_run *run)
{
	return run->items[run->at].queued;
}

static bool
is_before(const struct wm_queued *queued, int64_t time_us, uint64_t order)
{
	return queued->time_us < time_us || (queued->time_us == time_us && queued->order < order);
}

/* The run whose head leaves first; NULL if there are no runs. They are few: those of one width follow each other. */
static struct wm_queue_run *
first_run(const struct wm_queue *queue)
{
	struct wm_queue_run *first = NULL;

	for (size_t i = 0; i < queue->runs_count; i++) {
		struct wm_queue_run *run = &queue->runs[i];

		if (first == NULL || is_before(head_of(run), head_of(first)->time_us, head_of(first)->order))
			first = run;
	}
	return first;
}

/* Inlined in any case: gcc 12 takes a call of what only fetches for one without effect, and leaves it out. */
__attribute__((always_inline)) static inline void
prefetch_behind(const struct wm_queue_run *run)
{
	if (run->count - run->at <= PREFETCH_ITEMS)
		return;
	const char *queued = (const char *)run->items[run->at + PREFETCH_ITEMS].queued;
	__builtin_prefetch(queued);
	__builtin_prefetch(queued + CACHE_LINE);
	__builtin_prefetch(queued + 2 * CACHE_LINE);
}

/* What was taken is the caller's until now. */
static void
end_leaving(struct wm_queue *queue)
{
	if (queue->leaving != NULL && queue->leaving->at == queue->leaving->count)
		drop_run(queue, queue->leaving);
	queue->leaving = NULL;
}

struct wm_queued *
wm_queue_first(struct wm_queue *queue, int64_t bound_us, uint64_t bound_order)
{
	struct wm_shelf *shelf;
	struct wm_queue_run *run;

	end_leaving(queue);
	/* A shelf that begins no later than the first item may hold an earlier one. */
	for (;;) {
		run = first_run(queue);
		int64_t until_us = run != NULL && head_of(run)->time_us < bound_us ? head_of(run)->time_us : bound_us;
		shelf = wm_shelves_take(&queue->shelves, until_us);
		if (shelf == NULL)
			break;
		begin_run(queue, shelf);
	}
	if (run == NULL || !is_before(head_of(run), bound_us, bound_order)) {
		queue->lowest_us = run != NULL && head_of(run)->time_us < queue->shelves.turn_us
			? head_of(run)->time_us
			: queue->shelves.turn_us;
		queue->first = NULL;
		return NULL;
	}
	queue->first = run;
	return head_of(run);
}

void
wm_queue_take(struct wm_queue *queue)
{
	assert(queue->first != NULL);
	prefetch_behind(queue->first);
	queue->first->at++;
	queue->leaving = queue->first;
	queue->first = NULL;
	queue->count--;
}

void
wm_queue_forget(struct wm_queue *queue, int64_t bound_us)
{
	struct wm_shelf *shelf;

	assert(queue->shelves.turn == WM_SHELF_OVER);
	while ((shelf = wm_shelves_take(&queue->shelves, bound_us)) != NULL) {
		queue->count -= shelf->count;
		wm_shelves_drop(&queue->shelves, shelf);
	}
	if (queue->count == 0)
		queue->lowest_us = INT64_MAX;
}

uint64_t
wm_queue_count_from(const struct wm_queue *queue, int64_t bound_us)
{
	struct wm_ordered_at at = wm_ordered_seek(&queue->shelves.by_turn, INT64_MIN);
	uint64_t count = queue->count;

	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&queue->shelves, &at)) != NULL;) {
		const struct wm_shelf_chunk *chunk = NULL;
		struct wm_span memory;

		while (shelf->start_us < bound_us && wm_shelf_next(shelf, &chunk, &memory))
			for (size_t i = 0; i < memory.len; i += wm_queued_bytes(queued_at(memory, i)->len))
				count -= queued_at(memory, i)->time_us < bound_us;
	}
	return count;
}

struct wm_queued **
wm_queue_items(const struct wm_queue *queue)
{
	struct wm_ordered_at at = wm_ordered_seek(&queue->shelves.by_turn, INT64_MIN);
	struct item *items = wm_reallocarray(NULL, queue->count, sizeof(items[0]));
	struct wm_queued **all = wm_reallocarray(NULL, queue->count, sizeof(struct wm_queued *));
	size_t count = 0;

	for (size_t r = 0; r < queue->runs_count; r++)
		for (size_t i = queue->runs[r].at; i < queue->runs[r].count; i++)
			items[count++].queued = queue->runs[r].items[i].queued;
	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&queue->shelves, &at)) != NULL;) {
		const struct wm_shelf_chunk *chunk = NULL;
		struct wm_span memory;

		while (wm_shelf_next(shelf, &chunk, &memory))
			for (size_t i = 0; i < memory.len; i += wm_queued_bytes(queued_at(memory, i)->len))
				items[count++].queued = queued_at(memory, i);
	}
	assert(count == queue->count);
	for (size_t i = 0; i < count; i++)
		items[i].rank = items[i].queued->order & WM_QUEUE_ARRIVAL_MASK;
	items = sorted(items, count);
	for (size_t i = 0; i < count; i++)
		all[i] = items[i].queued;
	free(items);
	return all;
}

size_t
wm_queue_bytes(const struct wm_queue *queue)
{
	return queue->shelves.bytes + queue->items_bytes + queue->runs_capacity * sizeof(queue->runs[0]);
}
