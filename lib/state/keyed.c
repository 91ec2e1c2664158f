#include "lib/state/keyed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

#define SLOTS_MIN 8
/* Entries ahead that are fetched while the places change. */
#define FETCH_AHEAD 8

#define POOL_STEP ((size_t)16)

#define ADDRESS_BITS WM_KEYED_ADDRESS_BITS
#define ADDRESS_MASK ((UINT64_C(1) << ADDRESS_BITS) - 1)

void
wm_keyed_init(struct wm_keyed *keyed, size_t value_bytes)
{
	assert(value_bytes % 16 == 0);
	*keyed = (struct wm_keyed){ .value_bytes = value_bytes };
	for (size_t i = 0; i < WM_KEYED_POOLS; i++)
		wm_pool_init(&keyed->pools[i], (i + 1) * POOL_STEP);
}

static struct wm_entry *
entry_of(uint64_t slot)
{
	return (struct wm_entry *)(uintptr_t)(slot & ADDRESS_MASK);
}

static uint64_t
hash_of(const struct wm_entry *entry)
{
	return wm_hash(wm_entry_key(entry), entry->tag);
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
	free(keyed->slots);
	wm_keyed_init(keyed, keyed->value_bytes);
}

static void
resize(struct wm_keyed *keyed, size_t new_count)
{
	size_t old_count = keyed->slots == NULL ? 0 : keyed->mask + 1;
	uint64_t *old = keyed->slots;

	keyed->slots = wm_calloc_wide(new_count, sizeof(keyed->slots[0]));
	keyed->mask = new_count - 1;
	keyed->bytes += new_count * sizeof(keyed->slots[0]) - old_count * sizeof(keyed->slots[0]);
	for (size_t i = 0; i < old_count; i++) {
		if (i + FETCH_AHEAD < old_count)
			__builtin_prefetch(entry_of(old[i + FETCH_AHEAD]));
		if (old[i] == 0)
			continue;
		size_t at = hash_of(entry_of(old[i])) & keyed->mask;

		while (keyed->slots[at] != 0)
			at = (at + 1) & keyed->mask;
		keyed->slots[at] = old[i];
	}
	free(old);
}

static __attribute__((noinline)) struct wm_entry *
put_new(struct wm_keyed *keyed, struct wm_span key, uint8_t tag, uint64_t hash)
{
	/* At most three quarters full. */
	if (keyed->slots == NULL)
		resize(keyed, SLOTS_MIN);
	else if ((keyed->count + 1) * 4 > (keyed->mask + 1) * 3)
		resize(keyed, 2 * (keyed->mask + 1));
	assert(key.len <= UINT32_MAX);
	size_t size = entry_bytes(keyed, key.len), at = hash & keyed->mask;
	struct wm_entry *entry = new_entry(keyed, size);

	entry->key_len = (uint32_t)key.len;
	entry->tag = tag;
	entry->mark = 0;
	if (key.len != 0)
		memcpy(entry->key, key.data, key.len);
	assert(((uintptr_t)entry & ~ADDRESS_MASK) == 0);
	while (keyed->slots[at] != 0)
		at = (at + 1) & keyed->mask;
	keyed->slots[at] = (uint64_t)(uintptr_t)entry | (hash >> ADDRESS_BITS << ADDRESS_BITS);
	keyed->count++;
	return entry;
}

struct wm_entry *
wm_keyed_find(const struct wm_keyed *keyed, struct wm_span key, uint8_t tag, uint64_t hash)
{
	uint64_t slot;

	if (keyed->slots == NULL)
		return NULL;
	for (size_t at = hash & keyed->mask; (slot = keyed->slots[at]) != 0; at = (at + 1) & keyed->mask) {
		if (slot >> ADDRESS_BITS != hash >> ADDRESS_BITS)
			continue;
		struct wm_entry *entry = entry_of(slot);
		if (entry->tag == tag && wm_span_equal(wm_entry_key(entry), key))
			return entry;
	}
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
	size_t hole = hash_of(entry) & keyed->mask;

	while (entry_of(keyed->slots[hole]) != entry)
		hole = (hole + 1) & keyed->mask;
	/* What stands behind moves up, unless that would put it before its own place. */
	for (size_t at = (hole + 1) & keyed->mask; keyed->slots[at] != 0; at = (at + 1) & keyed->mask) {
		size_t home = hash_of(entry_of(keyed->slots[at])) & keyed->mask;

		if (((at - home) & keyed->mask) < ((at - hole) & keyed->mask))
			continue;
		keyed->slots[hole] = keyed->slots[at];
		hole = at;
	}
	keyed->slots[hole] = 0;
	keyed->count--;
	free_entry(keyed, entry);
	if (keyed->count * 8 < keyed->mask && keyed->mask >= SLOTS_MIN)
		resize(keyed, (keyed->mask + 1) / 2);
}

struct wm_entry *
wm_keyed_next(const struct wm_keyed *keyed, size_t *at)
{
	if (keyed->slots == NULL)
		return NULL;
	while (*at <= keyed->mask) {
		uint64_t slot = keyed->slots[(*at)++];

		if (slot != 0)
			return entry_of(slot);
	}
	return NULL;
}
