/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/table.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define KEYS 20000

int
main(void)
{
	struct wm_table table;
	uint64_t seed = 3;
	static uint64_t model[KEYS];
	size_t distinct = 0;
	bool is_new, agrees = true;
	char text[40];

	wm_table_init(&table, 16);
	tap_ok(wm_table_find(&table, wm_span_of("a"), 0) == NULL, "an empty table has nothing");
	tap_int((int64_t)wm_table_bytes(&table), 0, "and has taken no memory");
	for (int i = 0; i < 200000; i++) {
		int key = (int)(tap_random(&seed) % KEYS);
		/* Keys of many lengths, some with a NUL inside. */
		int len = snprintf(text, sizeof(text), "%.*s%d", key % 30, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", key);
		text[0] = key % 30 != 0 && key % 5 == 0 ? '\0' : text[0];
		struct wm_entry *entry = wm_table_put(&table, wm_span(text, (size_t)len), (uint8_t)(key % 3), &is_new);
		uint64_t *count = wm_entry_value(entry);

		agrees = agrees && is_new == (model[key] == 0) && ((uintptr_t)count & 15) == 0;
		if (is_new)
			*count = 0;
		distinct += is_new;
		++*count;
		++model[key];
		agrees = agrees && *count == model[key];
	}
	tap_ok(agrees, "counts of 200000 random keys are those of an array");
	tap_int((int64_t)table.count, (int64_t)distinct, "so is their number");

	size_t at = 0, walked = 0;
	uint64_t sum = 0;
	for (const struct wm_entry *entry; (entry = wm_table_next(&table, &at)) != NULL; walked++)
		sum += *(const uint64_t *)wm_entry_value(entry);
	tap_ok(walked == distinct && sum == 200000, "a walk meets each once");
	wm_table_release(&table);

	wm_table_init(&table, 16);
	struct wm_entry *a = wm_table_put(&table, wm_span_of("1"), 1, &is_new);
	struct wm_entry *b = wm_table_put(&table, wm_span_of("1"), 2, &is_new);
	tap_ok(a != b && is_new, "the same text with another tag is another key");
	tap_ok(wm_table_find(&table, wm_span_of("1"), 2) == b && wm_table_find(&table, wm_span_of("1"), 3) == NULL,
		"and found by both");
	struct wm_entry *empty = wm_table_put(&table, wm_span("", 0), 0, &is_new);
	tap_ok(is_new && wm_table_find(&table, wm_span("", 0), 0) == empty, "the empty text is a key");
	wm_table_release(&table);
	return tap_done();
}
