/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/shelves.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define ITEMS 20000
#define FAR INT64_C(300000000000000000)

struct item {
	int64_t time_us;
	int64_t watermark_us; /* when it was put */
	uint64_t number;
};

/* Times of all kinds ahead of the watermark: near, far, in the past, at the ends of what times there are. */
static int64_t
random_time(uint64_t *seed, int64_t watermark_us)
{
	int64_t from_us = watermark_us == INT64_MIN ? 0 : watermark_us;
	int64_t ahead_us = (int64_t)(tap_random(seed) >> (4 + tap_random(seed) % 60));

	if (tap_random(seed) % 50 == 0)
		return tap_random(seed) % 2 == 0 ? FAR : INT64_MAX;
	return from_us > FAR || ahead_us > FAR || tap_random(seed) % 9 == 0 ? from_us - ahead_us % 1000
									    : from_us + ahead_us;
}

/* Every item of a shelf that was taken down is one that stood, in its stretch of time; marks it as gone. */
static const char *
check_shelf(const struct wm_shelf *shelf, enum wm_shelf_turn turn, int64_t watermark_us, const struct item *model,
	bool *gone)
{
	const struct wm_shelf_chunk *chunk = NULL;
	struct wm_span memory;
	uint64_t count = 0, last = 0;

	if ((turn == WM_SHELF_OVER ? shelf->end_us : shelf->start_us) > watermark_us)
		return "a shelf before its turn";
	while (wm_shelf_next(shelf, &chunk, &memory))
		for (size_t at = 0; at < memory.len; at += sizeof(struct item)) {
			struct item item;

			memcpy(&item, memory.data + at, sizeof(item));
			if (gone[item.number] || model[item.number].time_us != item.time_us)
				return "an item that was not there";
			if (item.time_us < shelf->start_us ||
				(item.time_us >= shelf->end_us && item.time_us != INT64_MAX))
				return "an item outside its shelf";
			if (count++ != 0 && item.number < last)
				return "items not in the order of the puts";
			last = item.number;
			gone[item.number] = true;
			/* Widths follow the distance: more than a sixty-fourth only where that is below 64 us. */
			uint64_t width = (uint64_t)shelf->end_us - (uint64_t)shelf->start_us;
			uint64_t life = (uint64_t)item.time_us - (uint64_t)item.watermark_us;
			if (item.watermark_us != INT64_MIN && item.time_us > item.watermark_us && width > 64 &&
				width > life / 64)
				return "a shelf too wide for its items";
		}
	return count == shelf->count ? NULL : "a wrong count";
}

static const char *
run(enum wm_shelf_turn turn, uint64_t seed)
{
	static struct item model[ITEMS];
	static bool gone[ITEMS];
	struct wm_shelves shelves;
	int64_t watermark_us = INT64_MIN;
	const char *fault = NULL;
	size_t shelves_max = 0;

	memset(gone, 0, sizeof(gone));
	wm_shelves_init(&shelves, turn);
	for (size_t i = 0; i < ITEMS && fault == NULL; i++) {
		struct wm_shelf *shelf;

		model[i] = (struct item){ random_time(&seed, watermark_us), watermark_us, i };
		memcpy(wm_shelves_put(&shelves, model[i].time_us, watermark_us, sizeof(model[i])), &model[i],
			sizeof(model[i]));
		if (shelves.by_turn.count > shelves_max)
			shelves_max = shelves.by_turn.count;
		if (tap_random(&seed) % 10 != 0)
			continue;
		int64_t step_us = (int64_t)(tap_random(&seed) >> (20 + tap_random(&seed) % 40));
		watermark_us = watermark_us == INT64_MIN ? -1000000
			: watermark_us > FAR             ? watermark_us
							 : watermark_us + step_us;
		while (fault == NULL && (shelf = wm_shelves_take(&shelves, watermark_us)) != NULL) {
			fault = check_shelf(shelf, turn, watermark_us, model, gone);
			wm_shelves_drop(&shelves, shelf);
		}
		if (fault == NULL && shelves.by_turn.count != 0 && shelves.turn_us <= watermark_us)
			fault = "a shelf left behind its turn";
	}
	for (struct wm_shelf *shelf; fault == NULL && (shelf = wm_shelves_take(&shelves, INT64_MAX)) != NULL;) {
		fault = check_shelf(shelf, turn, INT64_MAX, model, gone);
		wm_shelves_drop(&shelves, shelf);
	}
	for (size_t i = 0; i < ITEMS && fault == NULL; i++)
		if (!gone[i])
			fault = "an item was lost";
	if (fault == NULL && (shelves.bytes != 0 || shelves.turn_us != INT64_MAX))
		fault = "what is empty still counts bytes or has a turn";
	/* 42 widths, at most 129 shelves of each ahead, and before the first watermark as many behind. */
	if (fault == NULL && shelves_max > 42 * 258)
		fault = "too many shelves";
	wm_shelves_release(&shelves);
	return fault;
}

/* Of a steady stream that lives for 10 minutes, what stands is little more than what lives. */
static void
test_steady(void)
{
	struct wm_shelves shelves;
	const int64_t life_us = 600000000, step_us = 10000;
	size_t bytes_max = 0, shelves_max = 0;

	wm_shelves_init(&shelves, WM_SHELF_OVER);
	for (int64_t watermark_us = 0; watermark_us < 4 * life_us; watermark_us += step_us) {
		struct wm_shelf *shelf;

		wm_shelves_put(&shelves, watermark_us + life_us, watermark_us, 32);
		while ((shelf = wm_shelves_take(&shelves, watermark_us)) != NULL)
			wm_shelves_drop(&shelves, shelf);
		if (shelves.bytes > bytes_max)
			bytes_max = shelves.bytes;
		if (shelves.by_turn.count > shelves_max)
			shelves_max = shelves.by_turn.count;
	}
	size_t living = (size_t)(life_us / step_us) * 32;
	tap_ok(bytes_max > living && bytes_max < living * 5 / 4,
		"a steady stream takes at most a quarter more than what lives");
	tap_ok(shelves_max <= 130, "on at most 130 shelves");
	wm_shelves_release(&shelves);
}

int
main(void)
{
	struct wm_shelves shelves;
	const char *fault = NULL;

	for (uint64_t seed = 0; seed < 20 && fault == NULL; seed++)
		fault = run(seed % 2 == 0 ? WM_SHELF_OVER : WM_SHELF_BEGUN, seed);
	if (!tap_ok(fault == NULL, "random times: each item leaves once, on a shelf whose turn it is"))
		printf("#   %s\n", fault);

	wm_shelves_init(&shelves, WM_SHELF_OVER);
	char *small = wm_shelves_put(&shelves, 5, 0, 8), *large = wm_shelves_put(&shelves, 6, 0, 1000000);
	memset(small, 1, 8);
	memset(large, 2, 1000000);
	tap_ok(small[7] == 1 && large[0] == 2 && shelves.by_turn.count == 1,
		"an item larger than a chunk stands beside a small one");
	tap_ok(((uintptr_t)small & 7) == 0 && ((uintptr_t)large & 7) == 0,
		"items of multiples of 8 are aligned to that");
	tap_ok(wm_shelves_take(&shelves, 63) == NULL, "[0, 64) is not over at 63");
	struct wm_shelf *shelf = wm_shelves_take(&shelves, 64);
	tap_ok(shelf != NULL && shelf->start_us == 0 && shelf->end_us == 64, "but at 64");
	wm_shelves_drop(&shelves, shelf);
	tap_int((int64_t)shelves.bytes, 0, "with all its bytes");
	wm_shelves_release(&shelves);

	test_steady();
	return tap_done();
}
