/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/dedup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/columns.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/state/index.h"
#include "lib/state/shelves.h"
#include "lib/time/duration.h"

/*
 * A remembered key on its shelf, a multiple of 4 bytes: when it is forgotten (8 bytes), then its columns.
 */
#define DUE_BYTES sizeof(int64_t)

struct wm_dedup {
	struct wm_dedup_options options;
	int64_t watermark_us;
	struct wm_shelves shelves; /* the entries, by when they are forgotten */
	struct wm_index index;     /* of them */
	struct wm_index_ahead ahead;
	uint64_t added;
};

static uint64_t hash_item(const void *self, const char *item);

struct wm_dedup *
wm_dedup_new(const struct wm_dedup_options *options)
{
	struct wm_dedup *d = wm_calloc(1, sizeof(struct wm_dedup));

	assert(options->keys_count > 0 && options->remember_us >= 0);
	d->options = *options;
	if (options->is_spark)
		d->options.remember_us -= options->remember_us % 1000;
	d->watermark_us = WM_TIME_NONE;
	wm_index_init(&d->index, hash_item, d);
	wm_shelves_init(&d->shelves, WM_SHELF_OVER);
	wm_shelves_set_numbers(&d->shelves, &d->index.numbers);
	return d;
}

void
wm_dedup_free(struct wm_dedup *d)
{
	if (d == NULL)
		return;
	wm_shelves_release(&d->shelves);
	wm_index_release(&d->index);
	free(d);
}

/* Entries */

static inline int64_t
due_of(const char *item)
{
	int64_t due_us;

	memcpy(&due_us, item, DUE_BYTES);
	return due_us;
}

static inline size_t
padded(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

static void
put_item(struct wm_dedup *d, const struct wm_value *keys, int64_t due_us)
{
	size_t count = d->options.keys_count, size = DUE_BYTES + wm_columns_len(keys, count, WM_COLUMNS_KIND);
	char *item = wm_shelves_put(&d->shelves, due_us, d->watermark_us, padded(size));

	memcpy(item, &due_us, DUE_BYTES);
	wm_columns_put(item + DUE_BYTES, keys, count, WM_COLUMNS_KIND);
}

static inline bool
has_time(const struct wm_dedup *d)
{
	return d->options.memory == WM_DEDUP_WITH_TIME;
}

/* Where the time is part of the key, when it is forgotten tells it. */
static inline uint64_t
hash_begin(const struct wm_dedup *d, int64_t due_us)
{
	return has_time(d) ? (uint64_t)due_us : 0;
}

static inline uint64_t
hash_keys(const struct wm_dedup *d, const struct wm_value *keys, int64_t due_us)
{
	return wm_columns_hash(hash_begin(d, due_us), keys, d->options.keys_count, WM_COLUMNS_KIND);
}

/* The same of an item. */
static uint64_t
hash_item(const void *self, const char *item)
{
	const struct wm_dedup *d = self;

	return wm_columns_hash_at(
		hash_begin(d, due_of(item)), item + DUE_BYTES, d->options.keys_count, WM_COLUMNS_KIND);
}

static bool
is_item_of(const struct wm_dedup *d, const char *item, const struct wm_value *keys, int64_t due_us)
{
	return (!has_time(d) || due_of(item) == due_us) &&
		wm_columns_are_at(item + DUE_BYTES, keys, d->options.keys_count, WM_COLUMNS_KIND);
}

/* Judging */

static void
forget(struct wm_dedup *d)
{
	struct wm_shelf *shelf;

	while ((shelf = wm_shelves_take(&d->shelves, d->watermark_us)) != NULL)
		wm_shelves_drop(&d->shelves, shelf);
	wm_index_tidy(&d->index);
}

static inline void
move_watermark(struct wm_dedup *d, int64_t watermark_us)
{
	if (watermark_us > d->watermark_us)
		d->watermark_us = watermark_us;
	if (wm_is_complete(d->shelves.turn_us, d->watermark_us))
		forget(d);
}

static int64_t
due_us(const struct wm_dedup *d, int64_t event_time_us)
{
	switch (d->options.memory) {
	case WM_DEDUP_WITHIN_WATERMARK:
		return wm_time_add(event_time_us, d->options.remember_us);
	case WM_DEDUP_WITH_TIME:
		return wm_time_add(event_time_us, d->options.is_spark ? 0 : 1);
	case WM_DEDUP_FOREVER:
		break;
	}
	return WM_TIME_END;
}

/* Remembers a key unless it is: false. */
static bool
remember(struct wm_dedup *d, const struct wm_value *keys, uint64_t number, int64_t due_us)
{
	const char *item;
	uint64_t hash;

	wm_index_reserve(&d->index);
	if (!wm_index_told(&d->ahead, number, &hash))
		hash = hash_keys(d, keys, due_us);
	struct wm_index_at at = wm_index_seek(&d->index, hash);
	while ((item = wm_index_next(&d->index, &at)) != NULL && !is_item_of(d, item, keys, due_us))
		;
	if (item != NULL && !wm_is_complete(due_of(item), d->watermark_us))
		return false;
	put_item(d, keys, due_us);
	/* A key that is forgotten may stand on its shelf for a while. */
	if (item != NULL)
		wm_index_replace(&at, wm_shelves_name(&d->shelves));
	else
		wm_index_put(&d->index, &at, wm_shelves_name(&d->shelves));
	d->added++;
	return true;
}

enum wm_dedup_verdict
wm_dedup_judge(struct wm_dedup *d, const struct wm_dedup_record *record)
{
	move_watermark(d, record->watermark_us);
	if (wm_is_behind(record->event_time_us, d->watermark_us) ||
		(d->options.is_spark && record->event_time_us == d->watermark_us))
		return WM_DEDUP_LATE;
	return remember(d, record->keys, record->number, due_us(d, record->event_time_us)) ? WM_DEDUP_FIRST
											   : WM_DEDUP_DUPLICATE;
}

void
wm_dedup_foresee(struct wm_dedup *d, int64_t event_time_us, const struct wm_value *keys, uint64_t number)
{
	uint64_t hash = hash_keys(d, keys, due_us(d, event_time_us));

	wm_index_tell(&d->ahead, number, hash);
	(void)wm_index_foresee(&d->index, &d->ahead, hash);
}

void
wm_dedup_advance(struct wm_dedup *d, int64_t watermark_us)
{
	move_watermark(d, watermark_us);
}

/* The next item of all that stand on shelves; NULL at the end. */
static const char *
next_item(const struct wm_dedup *d, struct wm_dedup_walk *walk)
{
	struct wm_value column;

	while (walk->items.len == 0) {
		if (walk->shelf == NULL || !wm_shelf_next(walk->shelf, &walk->chunk, &walk->items)) {
			if (!walk->has_begun)
				walk->at = wm_ordered_seek(&d->shelves.by_turn, INT64_MIN);
			walk->has_begun = true;
			walk->shelf = wm_shelves_next(&d->shelves, &walk->at);
			walk->chunk = NULL;
			walk->items = wm_span(NULL, 0);
			if (walk->shelf == NULL)
				return NULL;
		}
	}
	const char *item = walk->items.data, *end = item + DUE_BYTES;
	for (size_t i = 0; i < d->options.keys_count; i++)
		end = wm_column_get(end, &column);
	size_t size = padded((size_t)(end - item));
	walk->items = wm_span(item + size, walk->items.len - size);
	return item;
}

bool
wm_dedup_next(const struct wm_dedup *d, struct wm_dedup_walk *walk, int64_t *until_us, struct wm_value *keys)
{
	const char *item;

	while ((item = next_item(d, walk)) != NULL && wm_is_complete(due_of(item), d->watermark_us))
		;
	if (item == NULL)
		return false;
	*until_us = due_of(item);
	item += DUE_BYTES;
	for (size_t i = 0; i < d->options.keys_count; i++)
		item = wm_column_get(item, &keys[i]);
	return true;
}

struct wm_dedup_counts
wm_dedup_counts(const struct wm_dedup *d)
{
	struct wm_ordered_at at = wm_ordered_seek(&d->shelves.by_turn, INT64_MIN);
	struct wm_dedup_counts counts = { .added = d->added };

	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&d->shelves, &at)) != NULL;) {
		struct wm_dedup_walk walk = { .has_begun = true, .shelf = shelf };

		counts.keys += shelf->count;
		/* Of one that has begun some are forgotten. */
		for (uint64_t i = 0; wm_is_complete(shelf->start_us, d->watermark_us) && i < shelf->count; i++)
			counts.keys -= wm_is_complete(due_of(next_item(d, &walk)), d->watermark_us);
	}
	counts.removed = counts.added - counts.keys;
	return counts;
}

size_t
wm_dedup_bytes(const struct wm_dedup *d)
{
	return d->shelves.bytes + wm_index_bytes(&d->index);
}

/*
 * i64 watermark · varint added · varint keys, each in the order in which memory is given back: i64 due · for each
 * column u8 kind, text.
 */
void
wm_dedup_encode(const struct wm_dedup *d, struct wm_buf *out)
{
	struct wm_value *keys = wm_calloc(d->options.keys_count, sizeof(keys[0]));
	struct wm_dedup_walk walk = { 0 };
	int64_t until_us;

	wm_put_i64(out, d->watermark_us);
	wm_put_varint(out, d->added);
	wm_put_varint(out, wm_dedup_counts(d).keys);
	while (wm_dedup_next(d, &walk, &until_us, keys)) {
		wm_put_i64(out, until_us);
		for (size_t i = 0; i < d->options.keys_count; i++) {
			wm_put_u8(out, (uint8_t)keys[i].kind);
			wm_put_span(out, keys[i].text);
		}
	}
	free(keys);
}

static bool
decode_key(struct wm_dedup *d, struct wm_value *keys, struct wm_get *in)
{
	int64_t due_us = wm_get_i64(in);

	for (size_t i = 0; i < d->options.keys_count; i++) {
		uint8_t kind = wm_get_u8(in);

		keys[i] = (struct wm_value){ wm_get_span(in), (enum wm_kind)kind };
		if (kind > WM_KIND_JSON)
			wm_get_fail(in);
	}
	if (in->failed || wm_is_complete(due_us, d->watermark_us) ||
		(d->options.memory == WM_DEDUP_FOREVER) != (due_us == WM_TIME_END))
		return false;
	return remember(d, keys, 0, due_us);
}

bool
wm_dedup_decode(struct wm_dedup *d, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in);
	uint64_t added = wm_get_varint(in), count = wm_get_varint(in);
	bool ok = !in->failed && d->added == 0 && count <= added;

	if (!ok)
		return false;
	d->watermark_us = watermark_us;
	struct wm_value *keys = wm_calloc(d->options.keys_count, sizeof(keys[0]));
	for (uint64_t i = 0; i < count && ok; i++) {
		wm_get_give_back(in);
		ok = decode_key(d, keys, in);
	}
	free(keys);
	d->added = added;
	return ok;
}
