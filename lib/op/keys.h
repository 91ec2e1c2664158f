/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys - the key columns of a record as one key of a table, and back.
 *
 * One column is its text, and its kind the tag of the entry; several are kind,
 * length and text of each, so that no two keys run together. The order is that
 * of results: column by column null before the empty string, then bytes, then
 * kind.
 */
#ifndef WM_OP_KEYS_H
#define WM_OP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/pause.h"
#include "lib/base/span.h"
#include "lib/base/value.h"
#include "lib/state/table.h"

/* wm_keys_pack() of another number of columns than one. */
struct wm_span wm_keys_pack_several(const struct wm_value *values, size_t count, struct wm_buf *text, uint8_t *tag);

/* The key of count values and its tag. text (born WM_BUF_UNBOUNDED) holds it where it is of several columns. */
static inline struct wm_span
wm_keys_pack(const struct wm_value *values, size_t count, struct wm_buf *text, uint8_t *tag)
{
	if (count != 1)
		return wm_keys_pack_several(values, count, text, tag);
	*tag = (uint8_t)values[0].kind;
	return values[0].text;
}

void wm_keys_unpack_several(const struct wm_entry *entry, struct wm_value *values, size_t count);

/* The values of an entry's key, borrowed from it. */
static inline void
wm_keys_unpack(const struct wm_entry *entry, struct wm_value *values, size_t count)
{
	if (count == 1)
		values[0] = (struct wm_value){ wm_entry_key(entry), (enum wm_kind)entry->tag };
	else
		wm_keys_unpack_several(entry, values, count);
}

/* The order of two entries with keys of equally many columns. */
int wm_keys_compare(const struct wm_entry *a, const struct wm_entry *b);

/* The same for qsort() of an array of pointers to entries. */
int wm_keys_compare_pointers(const void *a, const void *b);

/* A number that orders like the first bytes of the key: decides most comparisons. Equal ones say nothing. */
uint64_t wm_keys_prefix(const struct wm_entry *entry);

/* What is put into the order of its key. number and value are the caller's, who sets word to 0 or leaves it. */
struct wm_keys_item {
	const struct wm_entry *entry;
	const void *value;
	uint64_t number;
	uint64_t word; /* of the sorting */
};

/*
 * Sorts items with keys of equally many columns; those of one key by number. Mostly without comparing: by
 * what bits differ, as many at a time as there is use for. pause: called by the way.
 */
void wm_keys_sort(struct wm_keys_item *items, size_t count, size_t columns_count, const struct wm_pause *pause);

/* Whether wm_keys_pack() could have made this key of count columns. */
bool wm_keys_are_valid(struct wm_span key, uint8_t tag, size_t count);

#endif
