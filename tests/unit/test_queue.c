/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/queue.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define ITEMS 3000
#define SOURCES 3

struct entry {
	int64_t time_us;
	uint64_t order;
};

static int
compare(const void *a, const void *b)
{
	const struct entry *entry_a = a, *entry_b = b;

	if (entry_a->time_us != entry_b->time_us)
		return entry_a->time_us < entry_b->time_us ? -1 : 1;
	return (entry_a->order > entry_b->order) - (entry_a->order < entry_b->order);
}

static bool
is_entry(const struct wm_queued *item, const struct entry *entry)
{
	return item->time_us == entry->time_us && item->order == entry->order && item->len == 8 + entry->order % 5 &&
		item->mark == (uint32_t)entry->order && memcmp(item->bytes, &entry->order, sizeof(entry->order)) == 0;
}

/* What is held is what a sorted array holds; it leaves in that order, and no sooner than the bound says. */
static bool
run(uint64_t seed)
{
	static struct entry model[ITEMS];
	size_t count = 0;
	struct wm_queue queue;
	int64_t bound_us = INT64_MIN, now_us = 0, scale_us = INT64_C(1) << tap_random(&seed) % 30;
	bool ok = true;

	wm_queue_init(&queue, WM_QUEUE_TAKEN);
	for (uint64_t i = 0; i < ITEMS && ok; i++) {
		now_us += scale_us * (int64_t)(tap_random(&seed) % 3);
		struct entry entry = { now_us + scale_us * (int64_t)(tap_random(&seed) % 100),
			tap_random(&seed) % SOURCES << WM_QUEUE_ARRIVAL_BITS | i };
		struct wm_queued *item = wm_queue_put(
			&queue, entry.time_us, entry.order, bound_us, sizeof(entry.order) + entry.order % 5);

		item->mark += (uint32_t)entry.order;
		memcpy(item->bytes, &entry.order, sizeof(entry.order));
		model[count++] = entry;
		ok = queue.lowest_us <= entry.time_us;
		if (tap_random(&seed) % 30 != 0)
			continue;
		uint64_t bound_order = tap_random(&seed) % SOURCES << WM_QUEUE_ARRIVAL_BITS;
		const struct entry bound = { bound_us = now_us, bound_order };
		size_t left = 0;

		qsort(model, count, sizeof(model[0]), compare);
		while (ok && (item = wm_queue_first(&queue, bound_us, bound_order)) != NULL) {
			ok = is_entry(item, &model[left]) && compare(&model[left], &bound) < 0;
			wm_queue_take(&queue);
			ok = ok && is_entry(item, &model[left++]);
		}
		ok = ok && (left == count || compare(&model[left], &bound) >= 0);
		count -= left;
		memmove(model, model + left, count * sizeof(model[0]));
		ok = ok && queue.count == count && (count == 0 || queue.lowest_us <= model[0].time_us);
		struct wm_queued **items = wm_queue_items(&queue);
		for (size_t at = 1; at < count && ok; at++)
			ok = (items[at - 1]->order & WM_QUEUE_ARRIVAL_MASK) <
				(items[at]->order & WM_QUEUE_ARRIVAL_MASK);
		free(items);
	}
	/* With items left at times. */
	if (seed % 2 == 0) {
		while (wm_queue_first(&queue, INT64_MAX, 0) != NULL)
			wm_queue_take(&queue);
		ok = ok && queue.count == 0 && queue.lowest_us == INT64_MAX;
	}
	wm_queue_release(&queue);
	return ok && wm_queue_bytes(&queue) == 0;
}

/* Items that are forgotten: those that are not before the bound are all there, and most of the others soon gone. */
static bool
run_forgotten(uint64_t seed)
{
	static int64_t times_us[ITEMS];
	struct wm_queue queue;
	int64_t bound_us = INT64_MIN, now_us = 0;
	bool ok = true;

	wm_queue_init(&queue, WM_QUEUE_FORGOTTEN);
	for (uint64_t i = 0; i < ITEMS && ok; i++) {
		now_us += (int64_t)(tap_random(&seed) % 30);
		times_us[i] = now_us + (int64_t)(tap_random(&seed) % 2000);
		if (times_us[i] < bound_us)
			times_us[i] = bound_us;
		wm_queue_put(&queue, times_us[i], i, bound_us, tap_random(&seed) % 50);
		if (tap_random(&seed) % 20 != 0)
			continue;
		bound_us = now_us;
		wm_queue_forget(&queue, bound_us);
		uint64_t left = 0, found = 0, outstaying = 0;
		for (uint64_t at = 0; at <= i; at++)
			left += times_us[at] >= bound_us;
		ok = wm_queue_count_from(&queue, bound_us) == left;
		struct wm_queued **items = wm_queue_items(&queue);
		for (uint64_t at = 0; at < queue.count && ok; at++) {
			ok = items[at]->time_us == times_us[items[at]->order];
			found += items[at]->time_us >= bound_us;
			/* None has lived longer than 2000 and the width of its shelf, 64. */
			outstaying += items[at]->time_us < bound_us - 64;
		}
		free(items);
		ok = ok && found == left && outstaying == 0;
	}
	wm_queue_forget(&queue, INT64_MAX);
	ok = ok && queue.count == 0 && queue.lowest_us == INT64_MAX;
	wm_queue_release(&queue);
	return ok && wm_queue_bytes(&queue) == 0;
}

int
main(void)
{
	uint64_t seed = 0, failed = UINT64_MAX;

	for (; seed < 60 && failed == UINT64_MAX; seed++)
		if (!run(seed))
			failed = seed;
	if (!tap_ok(failed == UINT64_MAX, "60 random queues leave as a sorted array, and no sooner than they may"))
		printf("#   seed %" PRIu64 "\n", failed);
	bool ok = true;
	for (seed = 0; seed < 20 && ok; seed++)
		ok = run_forgotten(seed);
	tap_ok(ok, "20 random queues forget what is before the bound, soon, and nothing else");
	return tap_done();
}
