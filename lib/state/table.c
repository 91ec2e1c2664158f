/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/table.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/state/walk.h"

#define SLOTS_MIN 8

/* Up to so many slots a quarter is used at most, above three quarters. */
#define SLOTS_SPARSE_MAX 128
#define ADDRESS_BITS WM_TABLE_ADDRESS_BITS
#define ADDRESS_MASK ((UINT64_C(1) << ADDRESS_BITS) - 1)

void
wm_table_init(struct wm_table *table, size_t value_bytes)
{
	assert(value_bytes % 16 == 0);
	*table = (struct wm_table){ .value_bytes = value_bytes };
}

void
wm_table_release(struct wm_table *table)
{
	free(table->slots);
	wm_arena_release(&table->arena);
	*table = (struct wm_table){ .value_bytes = table->value_bytes };
}

static struct wm_entry *
entry_of(uint64_t slot)
{
	return (struct wm_entry *)(uintptr_t)(slot & ADDRESS_MASK);
}

/* Whether a slot holds a key of this hash. */
static inline bool
is_at(uint64_t slot, struct wm_span key, uint8_t tag, uint64_t hash)
{
	if (slot == 0 || (slot ^ hash) >> ADDRESS_BITS != 0)
		return false;
	const struct wm_entry *entry = entry_of(slot);
	return entry->tag == tag && wm_span_equal(key, wm_entry_key(entry));
}

/* Slot of a key, or the free one where it would go. */
static inline size_t
slot_of(const struct wm_table *table, struct wm_span key, uint8_t tag, uint64_t hash)
{
	size_t at = hash & table->mask;

	while (table->slots[at] != 0 && !is_at(table->slots[at], key, tag, hash))
		at = (at + 1) & table->mask;
	return at;
}

/* So many places for so many keys: what grows that far is not small. */
#define SLOTS_EXPECTED_MIN 1024

/* Entries ahead that are fetched while a table grows. */
#define FETCH_AHEAD 8

static void
grow(struct wm_table *table)
{
	size_t old_count = table->slots == NULL ? 0 : table->mask + 1;
	size_t new_count = old_count == 0 ? SLOTS_MIN : old_count * 2;
	uint64_t *old = table->slots;

	while (new_count >= SLOTS_EXPECTED_MIN && table->expected / 3 >= new_count / 4)
		new_count *= 2;

	table->slots = wm_calloc_wide(new_count, sizeof(table->slots[0]));
	table->mask = new_count - 1;
	for (size_t i = 0; i < old_count; i++) {
		if (i + FETCH_AHEAD < old_count)
			__builtin_prefetch(entry_of(old[i + FETCH_AHEAD]));
		if (old[i] == 0)
			continue;
		const struct wm_entry *entry = entry_of(old[i]);
		size_t at = wm_hash(wm_entry_key(entry), entry->tag) & table->mask;

		while (table->slots[at] != 0)
			at = (at + 1) & table->mask;
		table->slots[at] = old[i];
	}
	free(old);
}

struct wm_entry *
wm_table_find(const struct wm_table *table, struct wm_span key, uint8_t tag)
{
	if (table->slots == NULL)
		return NULL;
	return entry_of(table->slots[slot_of(table, key, tag, wm_hash(key, tag))]);
}

/* Small tables, which windows with few keys have, are kept so empty that a key is nearly always found at once; large ones small. */
static bool
is_full(const struct wm_table *table)
{
	size_t slots = table->mask + 1, after = table->count + 1;

	return slots <= SLOTS_SPARSE_MAX ? after * 4 > slots : after * 4 > slots * 3;
}

/* The common case is a key that is there: what else there is to do stays out of its way. */
static __attribute__((noinline)) struct wm_entry *
put_new(struct wm_table *table, struct wm_span key, uint8_t tag, uint64_t hash)
{
	if (table->slots == NULL || is_full(table))
		grow(table);
	assert(key.len <= UINT32_MAX);
	size_t value_offset = (offsetof(struct wm_entry, key) + key.len + 15) & ~(size_t)15;
	struct wm_entry *entry = wm_arena_alloc(&table->arena, value_offset + table->value_bytes);

	entry->key_len = (uint32_t)key.len;
	entry->tag = tag;
	entry->mark = 0;
	if (key.len != 0)
		memcpy(entry->key, key.data, key.len);
	assert(((uintptr_t)entry & ~ADDRESS_MASK) == 0);
	table->slots[slot_of(table, key, tag, hash)] =
		(uint64_t)(uintptr_t)entry | (hash >> ADDRESS_BITS << ADDRESS_BITS);
	table->count++;
	return entry;
}

static __attribute__((noinline)) struct wm_entry *
put(struct wm_table *table, struct wm_span key, uint8_t tag, uint64_t hash, bool *is_new)
{
	struct wm_entry *entry = table->slots == NULL ? NULL : entry_of(table->slots[slot_of(table, key, tag, hash)]);

	*is_new = entry == NULL;
	return entry != NULL ? entry : put_new(table, key, tag, hash);
}

struct wm_entry *
wm_table_put_hashed(struct wm_table *table, struct wm_span key, uint8_t tag, uint64_t hash, bool *is_new)
{
	return put(table, key, tag, hash, is_new);
}

static __attribute__((noinline)) struct wm_entry *
put_long(struct wm_table *table, struct wm_span key, uint8_t tag, bool *is_new)
{
	return put(table, key, tag, wm_hash(key, tag), is_new);
}

/* A short key that is in its first slot, as most are, is found without a call to return from, and so without saving a register. */
struct wm_entry *
wm_table_put(struct wm_table *table, struct wm_span key, uint8_t tag, bool *is_new)
{
	if (key.len > WM_SPAN_SHORT_MAX)
		return put_long(table, key, tag, is_new);
	uint64_t hash = wm_hash(key, tag);
	uint64_t slot = table->slots == NULL ? 0 : table->slots[hash & table->mask];
	if (!is_at(slot, key, tag, hash))
		return put(table, key, tag, hash, is_new);
	*is_new = false;
	return entry_of(slot);
}

struct wm_entry *
wm_table_next(const struct wm_table *table, size_t *at)
{
	if (table->slots == NULL)
		return NULL;
	return entry_of(wm_walk_next(table->slots, table->mask, at));
}

size_t
wm_table_bytes(const struct wm_table *table)
{
	return table->arena.bytes + (table->slots == NULL ? 0 : (table->mask + 1) * sizeof(table->slots[0]));
}
