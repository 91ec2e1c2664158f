/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - keyed state: a key to a value of fixed size.
 *
 * A key is a text and a small tag (its kind), so that texts of different kinds
 * are different keys. Keys are copied; entries stay where they are until the
 * table is released, all at once. The order of a walk depends on the hash's
 * secret: whatever is written has to be sorted first.
 */
#ifndef WM_STATE_TABLE_H
#define WM_STATE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/span.h"

/* Fields are for reading; key and mark through the functions below. */
struct wm_entry {
	uint32_t key_len;
	uint8_t tag;
	uint8_t mark; /* the caller's; 0 in a new entry */
	char key[];   /* then the value, aligned to 16 */
};

struct wm_table {
	uint64_t *slots; /* upper 16 bits of the hash | address of the entry; 0: free */
	size_t mask;     /* slots - 1; there are none while slots is NULL */
	size_t count;
	size_t value_bytes;
	size_t expected;       /* keys */
	struct wm_arena arena; /* of the entries; the caller may keep more in it that lives as long */
};

/* Takes no memory until the first key. value_bytes: size of a value, a multiple of 16. */
void wm_table_init(struct wm_table *table, size_t value_bytes);
void wm_table_release(struct wm_table *table);

/* About how many keys will come. A table that turns out not to be small has places for so many then, and does not grow step by step. */
static inline void
wm_table_expect(struct wm_table *table, size_t count)
{
	table->expected = count;
}

/* The entry of a key; NULL if there is none. */
struct wm_entry *wm_table_find(const struct wm_table *table, struct wm_span key, uint8_t tag);

/* The entry of a key, put in if there was none; *is_new says so: then its value is unset. Keys are shorter than 4 GiB. */
struct wm_entry *wm_table_put(struct wm_table *table, struct wm_span key, uint8_t tag, bool *is_new);

/* The same where hash is wm_hash(key, tag). */
struct wm_entry *wm_table_put_hashed(
	struct wm_table *table, struct wm_span key, uint8_t tag, uint64_t hash, bool *is_new);

/* Slots hold an address in so many bits. */
#define WM_TABLE_ADDRESS_BITS 48

/*
 * In a large table a look-up waits for memory twice. Who knows a key some time before it is needed has its place fetched, and some
 * time later what is there, which is most likely its entry. For tables with a key. Inlined, as gcc 12 takes a call of
 * what only fetches for one without effect, and leaves it out.
 */
__attribute__((always_inline)) static inline void
wm_table_fetch_place(const struct wm_table *table, uint64_t hash)
{
	__builtin_prefetch(&table->slots[hash & table->mask]);
}

__attribute__((always_inline)) static inline void
wm_table_fetch_entry(const struct wm_table *table, uint64_t hash)
{
	uint64_t slot = table->slots[hash & table->mask];
	/* A number, as the slot may be empty: a pointer may not be moved off nothing. */
	uintptr_t entry = (uintptr_t)(slot & ((UINT64_C(1) << WM_TABLE_ADDRESS_BITS) - 1));

	__builtin_prefetch((const void *)entry);
	/* Of a value that is not large, with a short key. */
	__builtin_prefetch((const void *)(entry + 64));
	__builtin_prefetch((const void *)(entry + 15 + table->value_bytes));
}

static inline struct wm_span
wm_entry_key(const struct wm_entry *entry)
{
	return wm_span(entry->key, entry->key_len);
}

static inline void *
wm_entry_value(const struct wm_entry *entry)
{
	size_t offset = (offsetof(struct wm_entry, key) + entry->key_len + 15) & ~(size_t)15;

	return (char *)(uintptr_t)entry + offset;
}

/* Walks all entries in no order; *at begins as 0. NULL at the end. */
struct wm_entry *wm_table_next(const struct wm_table *table, size_t *at);

/* Bytes that the table has taken, the arena included. */
size_t wm_table_bytes(const struct wm_table *table);

#endif
