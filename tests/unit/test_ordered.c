/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/ordered.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define KEYS 4000

/* The model: an array with a flag for each key that may be there. */
static char values[KEYS];
static bool is_there[KEYS];

static bool
walks_like_model(const struct wm_ordered *map, int from)
{
	struct wm_ordered_at at = wm_ordered_seek(map, from - KEYS / 2);

	for (int i = from; i < KEYS; i++) {
		int64_t key;

		if (!is_there[i])
			continue;
		if (wm_ordered_next(map, &at, &key) != &values[i] || key != i - KEYS / 2)
			return false;
	}
	return wm_ordered_next(map, &at, NULL) == NULL;
}

int
main(void)
{
	struct wm_ordered map = { 0 };
	uint64_t seed = 7;
	bool finds = true, walks = true, counts = true;
	size_t count = 0;

	tap_ok(wm_ordered_find(&map, 0) == NULL && wm_ordered_take(&map, 0) == NULL, "an empty map has nothing");
	for (int step = 0; step < 200000; step++) {
		int i = (int)(tap_random(&seed) % KEYS);
		int64_t key = i - KEYS / 2;
		/* Grows, then shrinks to nothing, then grows again. */
		bool is_growing = step / 50000 % 2 == 0;

		finds = finds && wm_ordered_find(&map, key) == (is_there[i] ? &values[i] : NULL);
		if (is_there[i] && (!is_growing || tap_random(&seed) % 4 == 0)) {
			finds = finds && wm_ordered_take(&map, key) == &values[i];
			is_there[i] = false;
			count--;
		} else if (!is_there[i] && is_growing) {
			wm_ordered_put(&map, key, &values[i]);
			is_there[i] = true;
			count++;
		}
		counts = counts && map.count == count;
		if (step % 2000 == 0)
			walks = walks && walks_like_model(&map, 0) && walks_like_model(&map, i);
	}
	tap_ok(finds, "finds and takes what the model has");
	tap_ok(counts, "counts it");
	tap_ok(walks, "walks it in order, from anywhere");
	wm_ordered_release(&map);

	for (int i = 0; i < KEYS; i++)
		wm_ordered_put(&map, KEYS - i, &values[i]);
	struct wm_ordered_at at = wm_ordered_seek(&map, INT64_MIN);
	bool is_reversed = true;
	for (int i = KEYS - 1; i >= 0; i--)
		is_reversed = is_reversed && wm_ordered_next(&map, &at, NULL) == &values[i];
	tap_ok(is_reversed, "put in falling order, walked in rising");
	wm_ordered_release(&map);
	return tap_done();
}
