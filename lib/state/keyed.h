/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyed - keyed state whose keys come and go one by one.
 *
 * Entries are those of table.h: a key, a tag and a value of fixed size. Each has
 * memory of its own, given back when it is taken out: small ones come from pools of
 * their size. An entry
 * stays where it is until then. The order of a walk depends on the hash's secret:
 * whatever is written has to be sorted first.
 *
 * With many keys nearly every look-up waits for memory, twice. Who knows a key some
 * time before it is needed can have that memory fetched meanwhile.
 */
#ifndef WM_STATE_KEYED_H
#define WM_STATE_KEYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/state/places.h"
#include "lib/state/pool.h"
#include "lib/state/table.h"

/* Fields are for reading. */
struct wm_keyed {
	struct wm_places places; /* its count is that of the entries */
	size_t value_bytes;
	struct wm_pools pools;
};

/* Takes no memory until the first key. value_bytes: size of a value, a multiple of 16. */
void wm_keyed_init(struct wm_keyed *keyed, size_t value_bytes);
void wm_keyed_release(struct wm_keyed *keyed);

/* Taken from the system. */
size_t wm_keyed_bytes(const struct wm_keyed *keyed);

/* In what follows hash is wm_hash(key, tag). */

/* Has the place of a key fetched. */
__attribute__((always_inline)) static inline void
wm_keyed_fetch_place(const struct wm_keyed *keyed, uint64_t hash)
{
	wm_places_fetch(&keyed->places, hash);
}

/* Has an entry with a key of up to some 40 bytes fetched, which may lie across three lines. NULL will do. */
__attribute__((always_inline)) static inline void
wm_keyed_fetch(const struct wm_keyed *keyed, const struct wm_entry *entry)
{
	__builtin_prefetch(entry);
	__builtin_prefetch((const void *)((uintptr_t)entry + 15 + keyed->value_bytes));
	__builtin_prefetch((const void *)((uintptr_t)entry + 47 + keyed->value_bytes));
}

/* What is most likely the entry of a key, by its hash alone; NULL: there is none. */
static inline struct wm_entry *
wm_keyed_like(const struct wm_keyed *keyed, uint64_t hash)
{
	return wm_places_like(&keyed->places, hash);
}

/* Has it fetched. It is not read, so it does not matter whether it is there. */
__attribute__((always_inline)) static inline void
wm_keyed_fetch_entry(const struct wm_keyed *keyed, uint64_t hash)
{
	wm_keyed_fetch(keyed, wm_keyed_like(keyed, hash));
}

/* The entry of a key; NULL if there is none. */
struct wm_entry *wm_keyed_find(const struct wm_keyed *keyed, struct wm_span key, uint8_t tag, uint64_t hash);

/* The entry of a key, put in if there was none; *is_new says so: then its value is unset. Keys are shorter than 4 GiB. */
struct wm_entry *wm_keyed_put(struct wm_keyed *keyed, struct wm_span key, uint8_t tag, uint64_t hash, bool *is_new);

/* Takes an entry out and frees it. */
void wm_keyed_take(struct wm_keyed *keyed, struct wm_entry *entry);

/* Walks all entries in no order; *at begins as 0. NULL at the end. Spoilt by putting and taking. */
struct wm_entry *wm_keyed_next(const struct wm_keyed *keyed, size_t *at);

#endif
