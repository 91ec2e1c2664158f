#include "lib/state/keyed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define POOL_STEP ((size_t)16)

static uint64_t
hash_of(const void *object)
{
	const struct wm_entry *entry = object;

	return wm_hash(wm_entry_key(entry), entry->tag);
}

void
wm_keyed_init(struct wm_keyed *keyed, size_t value_bytes)
{
	assert(value_bytes % 16 == 0);
	*keyed = (struct wm_keyed){ .value_bytes = value_bytes };
	wm_places_init(&keyed->places, hash_of);
	for (size_t i = 0; i < WM_KEYED_POOLS; i++)
		wm_pool_init(&keyed->pools[i], (i + 1) * POOL_STEP);
}

static size_t
entry_bytes(const struct wm_keyed *keyed, size_t key_len)
{
	return ((offsetof(struct wm_entry, key) + key_len + 15) & ~(size_t)15) + keyed->value_bytes;
}

/* The pool for entries of so many bytes; NULL: they have memory of their own. */
static struct wm_pool *
pool_of(struct wm_keyed *keyed, size_t size)
{
	return size <= WM_KEYED_POOLS * POOL_STEP ? &keyed->pools[size / POOL_STEP - 1] : NULL;
}

static struct wm_entry *
new_entry(struct wm_keyed *keyed, size_t size)
{
	struct wm_pool *pool = pool_of(keyed, size);

	if (pool == NULL) {
		keyed->bytes += size;
		return wm_malloc(size);
	}
	size_t before = pool->bytes;
	struct wm_entry *entry = wm_pool_take(pool);
	keyed->bytes += pool->bytes - before;
	return entry;
}

static void
free_entry(struct wm_keyed *keyed, struct wm_entry *entry)
{
	size_t size = entry_bytes(keyed, entry->key_len);
	struct wm_pool *pool = pool_of(keyed, size);

	if (pool == NULL) {
		keyed->bytes -= size;
		free(entry);
		return;
	}
	size_t before = pool->bytes;
	wm_pool_give(pool, entry);
	/* One that nothing is in keeps nothing. */
	if (pool->count == 0)
		wm_pool_release(pool);
	keyed->bytes -= before - pool->bytes;
}

void
wm_keyed_release(struct wm_keyed *keyed)
{
	size_t at = 0;

	for (struct wm_entry *entry; (entry = wm_keyed_next(keyed, &at)) != NULL;)
		if (pool_of(keyed, entry_bytes(keyed, entry->key_len)) == NULL)
			free(entry);
	for (size_t i = 0; i < WM_KEYED_POOLS; i++)
		wm_pool_release(&keyed->pools[i]);
	wm_places_release(&keyed->places);
	wm_keyed_init(keyed, keyed->value_bytes);
}

static __attribute__((noinline)) struct wm_entry *
put_new(struct wm_keyed *keyed, struct wm_span key, uint8_t tag, uint64_t hash)
{
	assert(key.len <= UINT32_MAX);
	struct wm_entry *entry = new_entry(keyed, entry_bytes(keyed, key.len));
	size_t before = wm_places_bytes(&keyed->places);

	entry->key_len = (uint32_t)key.len;
	entry->tag = tag;
	entry->mark = 0;
	if (key.len != 0)
		memcpy(entry->key, key.data, key.len);
	wm_places_put(&keyed->places, hash, entry);
	keyed->bytes += wm_places_bytes(&keyed->places) - before;
	keyed->count++;
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
	size_t before = wm_places_bytes(&keyed->places);

	wm_places_take(&keyed->places, hash_of(entry), entry);
	keyed->bytes -= before - wm_places_bytes(&keyed->places);
	keyed->count--;
	free_entry(keyed, entry);
}

struct wm_entry *
wm_keyed_next(const struct wm_keyed *keyed, size_t *at)
{
	return wm_places_walk(&keyed->places, at);
}
