/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/keyed.h"

#include <assert.h>
#include <string.h>

#include "lib/base/hash.h"

static uint64_t
hash_of(const void *object)
{
	const struct wm_entry *entry = object;

	return wm_hash(wm_entry_key(entry), entry->tag);
}

static size_t
entry_bytes(const struct wm_keyed *keyed, size_t key_len)
{
	return ((offsetof(struct wm_entry, key) + key_len + 15) & ~(size_t)15) + keyed->value_bytes;
}

void
wm_keyed_init(struct wm_keyed *keyed, size_t value_bytes)
{
	assert(value_bytes % 16 == 0);
	*keyed = (struct wm_keyed){ .value_bytes = value_bytes };
	wm_places_init(&keyed->places, hash_of);
	wm_pools_init(&keyed->pools, entry_bytes(keyed, 0), false);
}

void
wm_keyed_release(struct wm_keyed *keyed)
{
	wm_pools_release(&keyed->pools);
	wm_places_release(&keyed->places);
	wm_keyed_init(keyed, keyed->value_bytes);
}

size_t
wm_keyed_bytes(const struct wm_keyed *keyed)
{
	return wm_places_bytes(&keyed->places) + wm_pools_bytes(&keyed->pools);
}

static __attribute__((noinline)) struct wm_entry *
put_new(struct wm_keyed *keyed, struct wm_span key, uint8_t tag, uint64_t hash)
{
	assert(key.len <= UINT32_MAX);
	struct wm_entry *entry = wm_pools_take(&keyed->pools, entry_bytes(keyed, key.len));

	entry->key_len = (uint32_t)key.len;
	entry->tag = tag;
	entry->mark = 0;
	if (key.len != 0)
		memcpy(entry->key, key.data, key.len);
	wm_places_put(&keyed->places, hash, entry);
	return entry;
}

struct wm_entry *
wm_keyed_find(const struct wm_keyed *keyed, struct wm_span key, uint8_t tag, uint64_t hash)
{
	struct wm_entry *entry;

	for (size_t at = wm_places_seek(&keyed->places, hash);
		(entry = wm_places_next(&keyed->places, hash, &at)) != NULL;)
		if (entry->tag == tag && wm_span_equal(wm_entry_key(entry), key))
			return entry;
	return NULL;
}

struct wm_entry *
wm_keyed_put(struct wm_keyed *keyed, struct wm_span key, uint8_t tag, uint64_t hash, bool *is_new)
{
	struct wm_entry *entry = wm_keyed_find(keyed, key, tag, hash);

	*is_new = entry == NULL;
	return entry != NULL ? entry : put_new(keyed, key, tag, hash);
}

void
wm_keyed_take(struct wm_keyed *keyed, struct wm_entry *entry)
{
	size_t size = entry_bytes(keyed, entry->key_len);

	wm_places_take(&keyed->places, hash_of(entry), entry);
	wm_pools_give(&keyed->pools, entry, size);
	wm_pools_trim(&keyed->pools, size);
}

struct wm_entry *
wm_keyed_next(const struct wm_keyed *keyed, size_t *at)
{
	return wm_places_walk(&keyed->places, at);
}
