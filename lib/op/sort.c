#include "lib/op/sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/state/shelves.h"

/* Order among records of one time: the source, then the number of those that came before. */
#define ARRIVAL_BITS 48
#define ARRIVAL_MASK ((UINT64_C(1) << ARRIVAL_BITS) - 1)
#define SOURCE_BITS 16

/* Fewer items are sorted by insertion. */
#define RADIX_COUNT_MIN 48
#define DIGIT_BITS 8

/* So many records ahead are fetched from memory: about what is written meanwhile hides the wait. */
#define PREFETCH_RECORDS 8
#define CACHE_LINE 64

/* A record as it stands on its shelf. */
struct held {
	int64_t time_us;
	uint64_t order;
	uint32_t len;
	char bytes[];
};

/* A record of a run: offset in the shelf (47 bits), then source. In order of arrival to begin with, which sorting keeps. */
struct item {
	uint64_t rank;
	const struct held *held;
};

/* A shelf that has begun: its records in order. */
struct run {
	struct wm_shelf *shelf;
	struct item *items;
	size_t count;
	size_t at; /* the first that has not left */
};

struct wm_sort {
	bool is_merging;
	bool is_spark;
	int64_t watermark_us;
	/* What is before this, by time and order, may go. */
	int64_t bound_us;
	uint64_t bound_order;

	struct wm_shelves shelves;
	struct run *runs;
	size_t runs_count, runs_capacity;
	struct run *leaving; /* whose record was handed out last */
	size_t items_bytes;  /* of all runs */
	int64_t lowest_us;   /* no record held is earlier */
	uint64_t count;
	uint64_t arrivals;
};

struct wm_sort *
wm_sort_new(bool is_merging, bool is_spark)
{
	struct wm_sort *s = wm_calloc(1, sizeof(struct wm_sort));

	s->is_merging = is_merging;
	s->is_spark = is_spark;
	s->watermark_us = s->bound_us = WM_TIME_NONE;
	s->lowest_us = WM_TIME_END;
	wm_shelves_init(&s->shelves, WM_SHELF_BEGUN);
	return s;
}

static void
drop_run(struct wm_sort *s, struct run *run)
{
	wm_shelves_drop(&s->shelves, run->shelf);
	free(run->items);
	s->items_bytes -= run->count * sizeof(run->items[0]);
	*run = s->runs[--s->runs_count];
}

void
wm_sort_free(struct wm_sort *s)
{
	if (s == NULL)
		return;
	while (s->runs_count != 0)
		drop_run(s, &s->runs[0]);
	free(s->runs);
	wm_shelves_release(&s->shelves);
	free(s);
}

static size_t
held_bytes(size_t len)
{
	return (offsetof(struct held, bytes) + len + 7) & ~(size_t)7;
}

/* The record at an offset of some memory of a shelf. */
static const struct held *
held_at(struct wm_span memory, size_t at)
{
	return (const struct held *)(const void *)(memory.data + at);
}

static void
hold(struct wm_sort *s, int64_t time_us, uint64_t order, struct wm_span bytes)
{
	struct held *held = wm_shelves_put(&s->shelves, time_us, s->watermark_us, held_bytes(bytes.len));

	assert(bytes.len <= UINT32_MAX);
	held->time_us = time_us;
	held->order = order;
	held->len = (uint32_t)bytes.len;
	if (bytes.len != 0)
		memcpy(held->bytes, bytes.data, bytes.len);
	if (time_us < s->lowest_us)
		s->lowest_us = time_us;
	s->count++;
}

enum wm_sort_verdict
wm_sort_add(struct wm_sort *s, const struct wm_sort_record *record)
{
	assert(record->source < WM_SORT_SOURCES_MAX);
	if (record->watermark_us > s->watermark_us)
		s->watermark_us = record->watermark_us;
	if (wm_is_behind(record->event_time_us, s->watermark_us) ||
		(s->is_spark && record->event_time_us == s->watermark_us))
		return WM_SORT_LATE;
	hold(s, record->event_time_us, (uint64_t)record->source << ARRIVAL_BITS | s->arrivals++, record->bytes);
	return WM_SORT_HELD;
}

int64_t
wm_sort_due_us(const struct wm_sort *s)
{
	return s->lowest_us + (s->is_merging && s->lowest_us != WM_TIME_END);
}

static void
move_bound(struct wm_sort *s, int64_t time_us, uint64_t order)
{
	if (time_us > s->watermark_us)
		s->watermark_us = time_us;
	if (time_us < s->bound_us || (time_us == s->bound_us && order < s->bound_order))
		return;
	s->bound_us = time_us;
	s->bound_order = order;
}

void
wm_sort_advance(struct wm_sort *s, int64_t watermark_us)
{
	move_bound(s, watermark_us, s->is_merging ? 0 : UINT64_MAX);
}

void
wm_sort_advance_to(struct wm_sort *s, int64_t time_us, uint32_t source)
{
	assert(source < WM_SORT_SOURCES_MAX);
	move_bound(s, time_us, (uint64_t)source << ARRIVAL_BITS | ARRIVAL_MASK);
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
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		if ((differing >> shift & ((1 << DIGIT_BITS) - 1)) == 0)
			continue;
		deal_out(items, other, count, shift);
		struct item *swap = items;
		items = other;
		other = swap;
	}
	free(other);
	return items;
}

static void
begin_run(struct wm_sort *s, struct wm_shelf *shelf)
{
	const struct wm_shelf_chunk *chunk = NULL;
	struct run run = { .shelf = shelf, .items = wm_reallocarray(NULL, shelf->count, sizeof(run.items[0])) };
	struct wm_span memory;

	while (wm_shelf_next(shelf, &chunk, &memory))
		for (size_t at = 0; at < memory.len;) {
			const struct held *held = held_at(memory, at);
			uint64_t offset = (uint64_t)held->time_us - (uint64_t)shelf->start_us;

			run.items[run.count++] =
				(struct item){ offset << SOURCE_BITS | held->order >> ARRIVAL_BITS, held };
			at += held_bytes(held->len);
		}
	run.items = sorted(run.items, run.count);
	s->items_bytes += run.count * sizeof(run.items[0]);
	s->runs = wm_grown(s->runs, s->runs_count, &s->runs_capacity, sizeof(s->runs[0]));
	s->runs[s->runs_count++] = run;
}

static const struct held *
head_of(const struct run *run)
{
	return run->items[run->at].held;
}

static bool
is_before(const struct held *held, int64_t time_us, uint64_t order)
{
	return held->time_us < time_us || (held->time_us == time_us && held->order < order);
}

/* The run whose head leaves first; NULL if there are no runs. They are few: those of one width follow each other. */
static struct run *
first_run(const struct wm_sort *s)
{
	struct run *first = NULL;

	for (struct run *run = s->runs; run < s->runs + s->runs_count; run++)
		if (first == NULL || is_before(head_of(run), head_of(first)->time_us, head_of(first)->order))
			first = run;
	return first;
}

static void
prefetch_behind(const struct run *run)
{
	if (run->count - run->at <= PREFETCH_RECORDS)
		return;
	const char *held = (const char *)run->items[run->at + PREFETCH_RECORDS].held;
	__builtin_prefetch(held);
	__builtin_prefetch(held + CACHE_LINE);
}

/* What was handed out is the caller's until now. */
static void
end_leaving(struct wm_sort *s)
{
	if (s->leaving != NULL && s->leaving->at == s->leaving->count)
		drop_run(s, s->leaving);
	s->leaving = NULL;
}

bool
wm_sort_next(struct wm_sort *s, struct wm_sort_record *record)
{
	struct wm_shelf *shelf;
	struct run *run;

	end_leaving(s);
	/* A shelf that begins no later than the first record may hold an earlier one. */
	for (;;) {
		run = first_run(s);
		int64_t until_us =
			run != NULL && head_of(run)->time_us < s->bound_us ? head_of(run)->time_us : s->bound_us;
		shelf = wm_shelves_take(&s->shelves, until_us);
		if (shelf == NULL)
			break;
		begin_run(s, shelf);
	}
	if (run == NULL || !is_before(head_of(run), s->bound_us, s->bound_order)) {
		s->lowest_us = run != NULL && head_of(run)->time_us < s->shelves.turn_us ? head_of(run)->time_us
											 : s->shelves.turn_us;
		return false;
	}
	const struct held *held = head_of(run);
	record->event_time_us = held->time_us;
	record->source = (uint32_t)(held->order >> ARRIVAL_BITS);
	record->bytes = wm_span(held->bytes, held->len);
	prefetch_behind(run);
	run->at++;
	s->leaving = run;
	s->count--;
	return true;
}

uint64_t
wm_sort_count(const struct wm_sort *s)
{
	return s->count;
}

size_t
wm_sort_bytes(const struct wm_sort *s)
{
	return s->shelves.bytes + s->items_bytes + s->runs_capacity * sizeof(s->runs[0]);
}

/* All records held, in order of arrival; to be freed. */
static struct item *
all_items(const struct wm_sort *s)
{
	struct wm_ordered_at at = wm_ordered_seek(&s->shelves.by_turn, INT64_MIN);
	struct item *items = wm_reallocarray(NULL, s->count, sizeof(items[0]));
	size_t count = 0;

	for (const struct run *run = s->runs; run < s->runs + s->runs_count; run++)
		for (size_t i = run->at; i < run->count; i++)
			items[count++] = (struct item){ run->items[i].held->order & ARRIVAL_MASK, run->items[i].held };
	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&s->shelves, &at)) != NULL;) {
		const struct wm_shelf_chunk *chunk = NULL;
		struct wm_span memory;

		while (wm_shelf_next(shelf, &chunk, &memory))
			for (size_t i = 0; i < memory.len; i += held_bytes(held_at(memory, i)->len))
				items[count++] =
					(struct item){ held_at(memory, i)->order & ARRIVAL_MASK, held_at(memory, i) };
	}
	assert(count == s->count);
	return sorted(items, count);
}

/* i64 watermark · varint arrivals · varint records, each in order of arrival: varint arrival · i64 time · varint source · bytes. */
void
wm_sort_encode(const struct wm_sort *s, struct wm_buf *out)
{
	struct item *items = all_items(s);

	wm_put_i64(out, s->watermark_us);
	wm_put_varint(out, s->arrivals);
	wm_put_varint(out, s->count);
	for (size_t i = 0; i < s->count; i++) {
		const struct held *held = items[i].held;

		wm_put_varint(out, held->order & ARRIVAL_MASK);
		wm_put_i64(out, held->time_us);
		wm_put_varint(out, held->order >> ARRIVAL_BITS);
		wm_put_span(out, wm_span(held->bytes, held->len));
	}
	free(items);
}

bool
wm_sort_decode(struct wm_sort *s, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in);
	uint64_t arrivals = wm_get_varint(in), count = wm_get_varint(in), arrival_min = 0;

	if (in->failed || s->arrivals != 0 || arrivals > ARRIVAL_MASK)
		return false;
	s->watermark_us = watermark_us;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t arrival = wm_get_varint(in);
		int64_t time_us = wm_get_i64(in);
		uint64_t source = wm_get_varint(in);
		struct wm_span bytes = wm_get_span(in);

		if (in->failed || arrival < arrival_min || arrival >= arrivals || wm_is_behind(time_us, watermark_us) ||
			time_us == WM_TIME_END || source >= WM_SORT_SOURCES_MAX || bytes.len > UINT32_MAX)
			return false;
		arrival_min = arrival + 1;
		hold(s, time_us, source << ARRIVAL_BITS | arrival, bytes);
	}
	s->arrivals = arrivals;
	return true;
}
