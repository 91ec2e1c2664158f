/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/index.h"

#include <stdlib.h>

#include "lib/base/hash.h"
#include "tests/unit/tap.h"

/* What stands on the shelves: its key and when it goes. */
struct item {
	uint64_t key;
	int64_t due_us;
};

/* How keys are hashed: well, into few values, or all alike. */
static uint64_t
hash_of_key(const void *self, uint64_t key)
{
	const uint64_t *values = self;

	return wm_hash_mix(*values == 0 ? key : key % *values, UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t
hash_of(const void *self, const char *item)
{
	return hash_of_key(self, ((const struct item *)(const void *)item)->key);
}

#define KEYS 300000

/* By key, the item that stands; due_us 0: none does. */
static struct item model[KEYS];

static const struct item *
find(const struct wm_index *index, uint64_t key, struct wm_index_at *at)
{
	const char *item;

	*at = wm_index_seek(index, hash_of_key(index->self, key));
	while ((item = wm_index_next(index, at)) != NULL && ((const struct item *)(const void *)item)->key != key)
		;
	return (const struct item *)(const void *)item;
}

/* Whether a key is found as the model has it: it is there until the watermark is at its due time, and gone when its shelf is. */
static bool
is_right(const struct wm_index *index, uint64_t key, int64_t watermark_us)
{
	struct wm_index_at at;
	const struct item *item = find(index, key, &at);

	if (model[key].due_us > watermark_us)
		return item != NULL && item->due_us == model[key].due_us;
	return item == NULL || item->due_us == model[key].due_us;
}

/* Keys come, come again, are taken out and go with their shelves. */
static bool
run(uint64_t values, size_t keys, size_t steps, uint64_t seed)
{
	struct wm_index index;
	struct wm_shelves shelves[2];
	struct wm_shelf *shelf;
	struct wm_index_ahead ahead = { 0 };
	int64_t watermark_us = 1;
	size_t bytes_max = 0;
	bool ok = true;

	memset(model, 0, sizeof(model));
	wm_index_init(&index, hash_of, &values);
	for (size_t i = 0; i < 2; i++) {
		wm_shelves_init(&shelves[i], WM_SHELF_OVER);
		wm_shelves_set_numbers(&shelves[i], &index.numbers);
	}
	for (size_t step = 0; step < steps && ok; step++) {
		uint64_t key = tap_random(&seed) % keys, what = tap_random(&seed) % 16;
		struct item put = { key, watermark_us + 1 + (int64_t)(tap_random(&seed) % steps) };
		struct wm_index_at at;

		ok = is_right(&index, key, watermark_us);
		(void)wm_index_foresee(&index, &ahead, hash_of_key(&values, key));
		wm_index_reserve(&index);
		const struct item *item = find(&index, key, &at);
		if (what == 0 && item != NULL) {
			wm_index_take(&at);
			model[key].due_us = 0;
		} else if (what < 12 || item == NULL) {
			struct wm_shelves *to = &shelves[what % 2];

			memcpy(wm_shelves_put(to, put.due_us, watermark_us, sizeof(put)), &put, sizeof(put));
			if (item != NULL)
				wm_index_replace(&at, wm_shelves_name(to));
			else
				wm_index_put(&index, &at, wm_shelves_name(to));
			model[key] = put;
		}
		if (wm_index_bytes(&index) > bytes_max)
			bytes_max = wm_index_bytes(&index);
		watermark_us += step % 3 == 0;
		/* Now and then a part of what stands goes, or all of it. */
		if (tap_random(&seed) % (steps / 20) == 0)
			watermark_us += (int64_t)(steps / (1 + tap_random(&seed) % 4));
		for (size_t i = 0; i < 2; i++)
			while ((shelf = wm_shelves_take(&shelves[i], watermark_us)) != NULL)
				wm_shelves_drop(&shelves[i], shelf);
		wm_index_tidy(&index);
	}
	for (uint64_t key = 0; key < keys && ok; key++)
		ok = is_right(&index, key, watermark_us);
	for (size_t i = 0; i < 2; i++)
		wm_shelves_release(&shelves[i]);
	/* What is gone leads nowhere. */
	struct wm_index_at at;
	for (uint64_t key = 0; key < keys && ok && index.numbers.count != 0; key += 7)
		ok = find(&index, key, &at) == NULL;
	wm_index_tidy(&index);
	wm_index_release(&index);
	return ok && wm_index_bytes(&index) == 0 && bytes_max < keys * 40 + 4096;
}

int
main(void)
{
	bool ok = true;

	for (uint64_t seed = 1; seed <= 20 && ok; seed++)
		ok = run(0, 5 + (seed * 997) % 4000, 20000, seed);
	tap_ok(ok, "20 random histories: what is found is what a list has");
	for (uint64_t seed = 1; seed <= 9 && ok; seed++)
		ok = run(1 + seed % 3 * 20, 400, 4000, seed);
	tap_ok(ok, "the same with few hashes, and with one");
	ok = run(0, KEYS, 2000000, 3);
	tap_ok(ok, "and with so many keys that the slots alone tell where they go");
	return tap_done();
}
