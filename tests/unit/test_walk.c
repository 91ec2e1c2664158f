/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/walk.h"

#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/state/keyed.h"
#include "lib/state/table.h"
#include "tests/unit/tap.h"

#define SLOTS_MAX ((size_t)1 << 16)

static void
test_order(void)
{
	static unsigned char met[SLOTS_MAX];
	bool is_whole = true;

	for (size_t count = 1; count <= SLOTS_MAX; count *= 2) {
		memset(met, 0, count);
		for (size_t at = 0; at < count; at++) {
			size_t slot = wm_walk_slot(count - 1, at);

			is_whole = is_whole && slot < count && met[slot]++ == 0;
		}
	}
	tap_ok(is_whole, "every slot is visited once, of tables of all sizes up to %zu", SLOTS_MAX);
}

/* Slots that were looked at to put an entry where it stands. */
static uint64_t
steps_to(const uint64_t *slots, size_t mask, uint64_t address_mask, const struct wm_entry *entry)
{
	size_t home = wm_hash(wm_entry_key(entry), entry->tag) & mask;
	uint64_t steps = 1;

	while ((slots[(home + steps - 1) & mask] & address_mask) != (uint64_t)(uintptr_t)entry)
		steps++;
	return steps;
}

static void
put_key(struct wm_table *table, char kind, size_t number)
{
	char text[32];
	bool is_new;
	int len = snprintf(text, sizeof(text), "%c%zu", kind, number);

	(void)wm_table_put(table, wm_span(text, (size_t)len), 0, &is_new);
}

/* Copies a table into one that holds others already: the slots that are searched for a key, in the mean. */
static double
copy_to_table(size_t count, size_t others_count)
{
	struct wm_table from, into;
	uint64_t steps = 0;
	size_t at = 0;
	bool is_new;

	wm_table_init(&from, 16);
	wm_table_init(&into, 16);
	for (size_t i = 0; i < count; i++)
		put_key(&from, 'k', i);
	for (size_t i = 0; i < others_count; i++)
		put_key(&into, 'o', i);
	for (const struct wm_entry *entry; (entry = wm_table_next(&from, &at)) != NULL;) {
		const struct wm_entry *put = wm_table_put(&into, wm_entry_key(entry), entry->tag, &is_new);

		steps += steps_to(into.slots, into.mask, (UINT64_C(1) << WM_TABLE_ADDRESS_BITS) - 1, put);
	}
	wm_table_release(&from);
	wm_table_release(&into);
	return (double)steps / (double)count;
}

/* The same from keyed state into keyed state. */
static double
copy_to_keyed(size_t count)
{
	struct wm_keyed from, into;
	uint64_t steps = 0;
	size_t at = 0;
	bool is_new;

	wm_keyed_init(&from, 16);
	wm_keyed_init(&into, 16);
	for (size_t i = 0; i < count; i++) {
		struct wm_span key = wm_span((const char *)&i, sizeof(i));

		(void)wm_keyed_put(&from, key, 0, wm_hash(key, 0), &is_new);
	}
	for (const struct wm_entry *entry; (entry = wm_keyed_next(&from, &at)) != NULL;) {
		struct wm_span key = wm_entry_key(entry);
		const struct wm_entry *put = wm_keyed_put(&into, key, 0, wm_hash(key, 0), &is_new);

		steps += steps_to(into.places.slots, into.places.mask, WM_PLACES_ADDRESS_MASK, put);
	}
	wm_keyed_release(&from);
	wm_keyed_release(&into);
	return (double)steps / (double)count;
}

/* In no order they need 4 while a table grows; in pieces of neighbours twice as many. In the order of the slots it is thousands. */
#define STEPS_MAX 12.0

int
main(void)
{
	static const size_t counts[] = { 1000, 20000, 90000, 190000 };
	bool is_even = true;
	double most = 0;

	test_order();
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		static const size_t shares[] = { 0, 30, 70, 100, 150 };

		for (size_t j = 0; j < sizeof(shares) / sizeof(shares[0]); j++) {
			double steps = copy_to_table(counts[i], counts[i] * shares[j] / 100);

			most = steps > most ? steps : most;
		}
		double steps = copy_to_keyed(counts[i]);
		most = steps > most ? steps : most;
		is_even = is_even && most < STEPS_MAX;
	}
	tap_ok(is_even, "what is copied into another table needs few steps a key, however many there are (%.1f)", most);
	return tap_done();
}
