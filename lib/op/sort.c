/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/state/queue.h"

struct wm_sort {
	bool is_merging;
	bool is_spark;
	int64_t watermark_us;
	/* What is before this, by time and order, may go. */
	int64_t bound_us;
	uint64_t bound_order;
	struct wm_queue queue;
	uint64_t arrivals;
};

struct wm_sort *
wm_sort_new(bool is_merging, bool is_spark)
{
	struct wm_sort *s = wm_calloc(1, sizeof(struct wm_sort));

	s->is_merging = is_merging;
	s->is_spark = is_spark;
	s->watermark_us = s->bound_us = WM_TIME_NONE;
	wm_queue_init(&s->queue, WM_QUEUE_TAKEN);
	return s;
}

void
wm_sort_free(struct wm_sort *s)
{
	if (s == NULL)
		return;
	wm_queue_release(&s->queue);
	free(s);
}

static void
hold(struct wm_sort *s, int64_t time_us, uint64_t order, struct wm_span bytes)
{
	struct wm_queued *queued = wm_queue_put(&s->queue, time_us, order, s->watermark_us, bytes.len);

	if (bytes.len != 0)
		memcpy(queued->bytes, bytes.data, bytes.len);
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
	hold(s, record->event_time_us, (uint64_t)record->source << WM_QUEUE_ARRIVAL_BITS | s->arrivals++,
		record->bytes);
	return WM_SORT_HELD;
}

int64_t
wm_sort_due_us(const struct wm_sort *s)
{
	return s->queue.lowest_us + (s->is_merging && s->queue.lowest_us != WM_TIME_END);
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
	move_bound(s, time_us, (uint64_t)source << WM_QUEUE_ARRIVAL_BITS | WM_QUEUE_ARRIVAL_MASK);
}

bool
wm_sort_next(struct wm_sort *s, struct wm_sort_record *record)
{
	const struct wm_queued *queued = wm_queue_first(&s->queue, s->bound_us, s->bound_order);

	if (queued == NULL)
		return false;
	record->event_time_us = queued->time_us;
	record->source = (uint32_t)(queued->order >> WM_QUEUE_ARRIVAL_BITS);
	record->bytes = wm_span(queued->bytes, queued->len);
	wm_queue_take(&s->queue);
	return true;
}

uint64_t
wm_sort_count(const struct wm_sort *s)
{
	return s->queue.count;
}

size_t
wm_sort_bytes(const struct wm_sort *s)
{
	return wm_queue_bytes(&s->queue);
}

/* i64 watermark · varint arrivals · varint records, each in order of arrival: varint arrival · i64 time · varint source · bytes. */
void
wm_sort_encode(const struct wm_sort *s, struct wm_buf *out)
{
	struct wm_queued **items = wm_queue_items(&s->queue);

	wm_put_i64(out, s->watermark_us);
	wm_put_varint(out, s->arrivals);
	wm_put_varint(out, s->queue.count);
	for (size_t i = 0; i < s->queue.count; i++) {
		const struct wm_queued *queued = items[i];

		wm_put_varint(out, queued->order & WM_QUEUE_ARRIVAL_MASK);
		wm_put_i64(out, queued->time_us);
		wm_put_varint(out, queued->order >> WM_QUEUE_ARRIVAL_BITS);
		wm_put_span(out, wm_span(queued->bytes, queued->len));
	}
	free(items);
}

bool
wm_sort_decode(struct wm_sort *s, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in);
	uint64_t arrivals = wm_get_varint(in), count = wm_get_varint(in), arrival_min = 0;

	if (in->failed || s->arrivals != 0 || arrivals > WM_QUEUE_ARRIVAL_MASK)
		return false;
	s->watermark_us = watermark_us;
	for (uint64_t i = 0; i < count; i++) {
		wm_get_give_back(in);
		uint64_t arrival = wm_get_varint(in);
		int64_t time_us = wm_get_i64(in);
		uint64_t source = wm_get_varint(in);
		struct wm_span bytes = wm_get_span(in);

		if (in->failed || arrival < arrival_min || arrival >= arrivals || wm_is_behind(time_us, watermark_us) ||
			time_us == WM_TIME_END || source >= WM_SORT_SOURCES_MAX || bytes.len > UINT32_MAX)
			return false;
		arrival_min = arrival + 1;
		hold(s, time_us, source << WM_QUEUE_ARRIVAL_BITS | arrival, bytes);
	}
	s->arrivals = arrivals;
	return true;
}
