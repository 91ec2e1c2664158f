/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/keyed.h"

#include <stdlib.h>

#include "lib/base/hash.h"
#include "tests/unit/tap.h"

/* The model: what each key of a small set has as its value; 0: it is not there. */
#define KEYS 3000

static uint64_t values[KEYS];

static struct wm_span
key_of(int i, char *text, uint8_t *tag)
{
	/* Lengths from 0 to 60 bytes, and every text twice, with another tag. */
	int len = i / 2 == 0 ? 0
			     : snprintf(text, 80, "%d%.*s", i / 2, i % 5 * 12,
				       "............................................................");

	*tag = (uint8_t)(i % 2);
	return wm_span(text, (size_t)len);
}

static bool
walks_like_model(const struct wm_keyed *keyed, size_t count)
{
	size_t at = 0, seen = 0;

	for (struct wm_entry *entry; (entry = wm_keyed_next(keyed, &at)) != NULL; seen++) {
		uint64_t i = *(uint64_t *)wm_entry_value(entry) % KEYS;

		if (values[i] != *(uint64_t *)wm_entry_value(entry))
			return false;
	}
	return seen == count;
}

int
main(void)
{
	struct wm_keyed keyed;
	uint64_t seed = 5;
	bool finds = true, counts = true, walks = true;
	size_t count = 0, bytes_empty = 0, found_count = 0, told_count = 0;
	char text[80];

	wm_keyed_init(&keyed, 16);
	tap_ok(wm_keyed_find(&keyed, wm_span_of("a"), 0, wm_hash(wm_span_of("a"), 0)) == NULL &&
			wm_keyed_bytes(&keyed) == 0,
		"an empty one has nothing and takes no memory");
	for (int step = 0; step < 200000; step++) {
		int i = (int)(tap_random(&seed) % KEYS);
		uint8_t tag;
		struct wm_span key = key_of(i, text, &tag);
		uint64_t hash = wm_hash(key, tag);
		/* Grows, then shrinks to nothing, then grows again. */
		bool is_growing = step / 50000 % 2 == 0, is_new;

		wm_keyed_fetch_place(&keyed, hash);
		wm_keyed_fetch_entry(&keyed, hash);
		struct wm_entry *entry = wm_keyed_find(&keyed, key, tag, hash);
		found_count += entry != NULL;
		told_count += entry != NULL && wm_keyed_like(&keyed, hash) == entry;
		finds = finds && (entry != NULL) == (values[i] != 0) &&
			(entry == NULL || *(uint64_t *)wm_entry_value(entry) == values[i]);
		if (is_growing && tap_random(&seed) % 4 != 0) {
			entry = wm_keyed_put(&keyed, key, tag, hash, &is_new);
			finds = finds && is_new == (values[i] == 0) && wm_span_equal(wm_entry_key(entry), key) &&
				entry->tag == tag;
			count += is_new;
			values[i] = (uint64_t)step * KEYS + KEYS + (uint64_t)i;
			*(uint64_t *)wm_entry_value(entry) = values[i];
		} else if (entry != NULL) {
			wm_keyed_take(&keyed, entry);
			values[i] = 0;
			count--;
		}
		counts = counts && keyed.places.count == count;
		if (step % 5000 == 0)
			walks = walks && walks_like_model(&keyed, count);
		if (count == 0)
			bytes_empty = wm_keyed_bytes(&keyed);
	}
	tap_ok(finds, "finds, puts in and takes out what the model has");
	tap_ok(told_count * 50 > found_count * 49, "nearly all entries are told by their hash alone (%zu of %zu)",
		told_count, found_count);
	tap_ok(counts, "counts it");
	tap_ok(walks, "walks it all");
	tap_ok(bytes_empty > 0 && bytes_empty <= 16 * 8, "is small again when all keys have gone (%zu bytes)",
		bytes_empty);
	wm_keyed_release(&keyed);
	return tap_done();
}
