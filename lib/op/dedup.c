#include "lib/op/dedup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/state/shelves.h"
#include "lib/time/duration.h"

/*
 * The table is one of lines: 8 slots, one line of the processor's cache. A key stands in the first line from its own on
 * that had room; of a key that is new, as most are, as a rule one line comes from memory and nothing else.
 * A slot: 0 is free; else the upper 16 bits of the hash and the address of an entry, or this where one has gone from a
 * line that was full, so that what went past it is still found.
 */
#define SLOT_GONE UINT64_C(1)
#define LINE_SLOTS 8
#define LINES_MIN 1
#define ADDRESS_BITS 48
#define ADDRESS_MASK ((UINT64_C(1) << ADDRESS_BITS) - 1)

struct line {
	uint64_t slots[LINE_SLOTS];
};

/* Entries looked up together, so that their slots come from memory at the same time. */
#define BATCH_MAX 32

/* A remembered key on its shelf: when it is forgotten (8 bytes), then for each column length * 8 + kind (varint) and text. */
#define DUE_BYTES sizeof(int64_t)
#define KIND_BITS 3

struct wm_dedup {
	struct wm_dedup_options options;
	int64_t watermark_us;
	struct wm_shelves shelves; /* the entries, by when they are forgotten */
	struct line *lines;        /* aligned to their size */
	size_t mask;               /* lines - 1; there are none while lines is NULL */
	size_t taken_count;        /* slots not free */
	size_t filled_count;       /* slots with an entry */
	uint64_t added;
};

struct wm_dedup *
wm_dedup_new(const struct wm_dedup_options *options)
{
	struct wm_dedup *d = wm_calloc(1, sizeof(struct wm_dedup));

	assert(options->keys_count > 0 && options->remember_us >= 0);
	d->options = *options;
	if (options->is_spark)
		d->options.remember_us -= options->remember_us % 1000;
	d->watermark_us = WM_TIME_NONE;
	wm_shelves_init(&d->shelves, WM_SHELF_OVER);
	return d;
}

void
wm_dedup_free(struct wm_dedup *d)
{
	if (d == NULL)
		return;
	wm_shelves_release(&d->shelves);
	free(d->lines);
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

/* Reads the column at a place and returns the place behind it. */
static inline const char *
read_column(const char *at, struct wm_value *column)
{
	uint64_t head = 0;
	unsigned char byte;

	for (unsigned shift = 0;; shift += 7) {
		byte = (unsigned char)*at++;
		head |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			break;
	}
	column->kind = (enum wm_kind)(head & ((1 << KIND_BITS) - 1));
	column->text = wm_span(at, head >> KIND_BITS);
	return at + column->text.len;
}

static inline uint64_t
column_head(const struct wm_value *column)
{
	return (uint64_t)column->text.len << KIND_BITS | (uint64_t)column->kind;
}

static const char *
put_item(struct wm_dedup *d, const struct wm_value *keys, int64_t due_us)
{
	size_t size = DUE_BYTES;

	for (size_t i = 0; i < d->options.keys_count; i++)
		size += (63 - (size_t)__builtin_clzll(column_head(&keys[i]) | 1)) / 7 + 1 + keys[i].text.len;
	char *item = wm_shelves_put(&d->shelves, due_us, d->watermark_us, size);
	memcpy(item, &due_us, DUE_BYTES);
	char *at = item + DUE_BYTES;
	for (size_t i = 0; i < d->options.keys_count; i++) {
		uint64_t head = column_head(&keys[i]);

		for (; head >= 0x80; head >>= 7)
			*at++ = (char)(head | 0x80);
		*at++ = (char)head;
		if (keys[i].text.len != 0)
			memcpy(at, keys[i].text.data, keys[i].text.len);
		at += keys[i].text.len;
	}
	return item;
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
hash_column(uint64_t hash, const struct wm_value *column)
{
	return wm_hash_mix(hash ^ wm_hash_secret[0], wm_hash(column->text, (uint64_t)column->kind) ^ wm_hash_secret[1]);
}

static inline uint64_t
hash_keys(const struct wm_dedup *d, const struct wm_value *keys, int64_t due_us)
{
	uint64_t hash = hash_begin(d, due_us);

	for (size_t i = 0; i < d->options.keys_count; i++)
		hash = hash_column(hash, &keys[i]);
	return hash;
}

/* The same of an item; returns the place behind it. */
static inline const char *
hash_item(const struct wm_dedup *d, const char *item, uint64_t *hash)
{
	const char *at = item + DUE_BYTES;
	struct wm_value column;

	*hash = hash_begin(d, due_of(item));
	for (size_t i = 0; i < d->options.keys_count; i++) {
		at = read_column(at, &column);
		*hash = hash_column(*hash, &column);
	}
	return at;
}

static bool
is_item_of(const struct wm_dedup *d, const char *item, const struct wm_value *keys, int64_t due_us)
{
	const char *at = item + DUE_BYTES;
	struct wm_value column;

	if (has_time(d) && due_of(item) != due_us)
		return false;
	for (size_t i = 0; i < d->options.keys_count; i++) {
		at = read_column(at, &column);
		if (column.kind != keys[i].kind || !wm_span_equal(column.text, keys[i].text))
			return false;
	}
	return true;
}

/* The table */

static inline const char *
item_in(uint64_t slot)
{
	return (const char *)(uintptr_t)(slot & ADDRESS_MASK);
}

static inline uint64_t
slot_with(const char *item, uint64_t hash)
{
	assert(((uintptr_t)item & ~ADDRESS_MASK) == 0);
	return (uint64_t)(uintptr_t)item | (hash >> ADDRESS_BITS << ADDRESS_BITS);
}

/* Bits of the slots of a line whose upper 16 bits are those of a hash, or that hold a value. */
static inline unsigned
slots_like(const struct line *line, uint64_t hash)
{
	unsigned bits = 0;

#pragma GCC unroll 8
	for (unsigned i = 0; i < LINE_SLOTS; i++)
		bits |= (unsigned)(line->slots[i] >> ADDRESS_BITS == hash >> ADDRESS_BITS) << i;
	return bits;
}

static inline unsigned
slots_with(const struct line *line, uint64_t value)
{
	unsigned bits = 0;

#pragma GCC unroll 8
	for (unsigned i = 0; i < LINE_SLOTS; i++)
		bits |= (unsigned)(line->slots[i] == value) << i;
	return bits;
}

/* The slot of a key, *found; else the one where it would go. There is a free slot. */
static inline uint64_t *
slot_of(const struct wm_dedup *d, const struct wm_value *keys, int64_t due_us, uint64_t hash, bool *found)
{
	uint64_t *place = NULL;

	for (size_t at = hash & d->mask;; at = (at + 1) & d->mask) {
		struct line *line = &d->lines[at];

		for (unsigned like = slots_like(line, hash); like != 0; like &= like - 1) {
			uint64_t *slot = &line->slots[__builtin_ctz(like)];

			*found = *slot > SLOT_GONE && is_item_of(d, item_in(*slot), keys, due_us);
			if (*found)
				return slot;
		}
		unsigned gone = place != NULL || d->taken_count == d->filled_count ? 0 : slots_with(line, SLOT_GONE);
		if (gone != 0)
			place = &line->slots[__builtin_ctz(gone)];
		unsigned vacant = slots_with(line, 0);
		if (vacant != 0)
			return place != NULL ? place : &line->slots[__builtin_ctz(vacant)];
	}
}

/* The entry leaves the table; one that is not there any more, as its key came again after it was forgotten, does nothing. */
static void
take_out(struct wm_dedup *d, const char *item, uint64_t hash)
{
	uint64_t wanted = slot_with(item, hash);

	for (size_t at = hash & d->mask;; at = (at + 1) & d->mask) {
		struct line *line = &d->lines[at];
		unsigned found = slots_with(line, wanted), vacant = slots_with(line, 0);

		if (found != 0) {
			line->slots[__builtin_ctz(found)] = vacant != 0 ? 0 : SLOT_GONE;
			d->taken_count -= vacant != 0;
			d->filled_count--;
		}
		if ((found | vacant) != 0)
			return;
	}
}

/* Some entries of a shelf. */
struct batch {
	size_t count;
	const char *items[BATCH_MAX];
	uint64_t hashes[BATCH_MAX];
};

/* The next entries of some memory of a shelf, their slots on the way. */
static void
next_batch(const struct wm_dedup *d, struct wm_span *items, struct batch *batch)
{
	const char *at = items->data, *end = items->data + items->len;

	for (batch->count = 0; at != end && batch->count < BATCH_MAX; batch->count++) {
		uint64_t *hash = &batch->hashes[batch->count];

		batch->items[batch->count] = at;
		at = hash_item(d, at, hash);
		__builtin_prefetch(&d->lines[*hash & d->mask], 1);
	}
	*items = wm_span(at, (size_t)(end - at));
}

/* An entry whose key is known not to be there joins a table from which nothing has gone. */
static void
put_in(struct wm_dedup *d, const char *item, uint64_t hash)
{
	size_t at = hash & d->mask;
	unsigned vacant;

	while ((vacant = slots_with(&d->lines[at], 0)) == 0)
		at = (at + 1) & d->mask;
	d->lines[at].slots[__builtin_ctz(vacant)] = slot_with(item, hash);
	d->taken_count++;
}

static void
put_in_shelf(struct wm_dedup *d, const struct wm_shelf *shelf)
{
	const struct wm_shelf_chunk *chunk = NULL;
	struct wm_span items;
	struct batch batch;

	while (wm_shelf_next(shelf, &chunk, &items))
		while (items.len != 0) {
			next_batch(d, &items, &batch);
			for (size_t i = 0; i < batch.count; i++) {
				if (!wm_is_complete(due_of(batch.items[i]), d->watermark_us))
					put_in(d, batch.items[i], batch.hashes[i]);
			}
		}
}

static void
take_out_shelf(struct wm_dedup *d, const struct wm_shelf *shelf)
{
	const struct wm_shelf_chunk *chunk = NULL;
	struct wm_span items;
	struct batch batch;

	while (wm_shelf_next(shelf, &chunk, &items))
		while (items.len != 0) {
			next_batch(d, &items, &batch);
			for (size_t i = 0; i < batch.count; i++)
				take_out(d, batch.items[i], batch.hashes[i]);
		}
}

/*
 * A new table without what has gone: after growth about a third full. The entries are walked on their shelves, so that
 * there are never two tables.
 */
static void
rebuild(struct wm_dedup *d)
{
	struct wm_ordered_at at = wm_ordered_seek(&d->shelves.by_turn, INT64_MIN);
	size_t count = d->lines == NULL ? LINES_MIN : d->mask + 1;

	if (d->filled_count * 8 > count * LINE_SLOTS * 5)
		count *= 2;
	while (count > LINES_MIN && d->filled_count * 4 < count * LINE_SLOTS)
		count /= 2;
	free(d->lines);
	d->lines = wm_calloc_wide(count, sizeof(struct line));
	d->mask = count - 1;
	d->taken_count = 0;
	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&d->shelves, &at)) != NULL;)
		put_in_shelf(d, shelf);
	d->filled_count = d->taken_count;
}

/* Judging */

static void
forget(struct wm_dedup *d)
{
	struct wm_shelf *shelf;

	while ((shelf = wm_shelves_take(&d->shelves, d->watermark_us)) != NULL) {
		take_out_shelf(d, shelf);
		wm_shelves_drop(&d->shelves, shelf);
	}
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
remember(struct wm_dedup *d, const struct wm_value *keys, int64_t due_us)
{
	uint64_t hash = hash_keys(d, keys, due_us);
	bool found = false;

	if (d->lines == NULL || (d->taken_count + 1) * 4 > (d->mask + 1) * LINE_SLOTS * 3)
		rebuild(d);
	uint64_t *slot = slot_of(d, keys, due_us, hash, &found);
	if (found && !wm_is_complete(due_of(item_in(*slot)), d->watermark_us))
		return false;
	if (!found) {
		d->taken_count += *slot != SLOT_GONE;
		d->filled_count++;
	}
	*slot = slot_with(put_item(d, keys, due_us), hash);
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
	return remember(d, record->keys, due_us(d, record->event_time_us)) ? WM_DEDUP_FIRST : WM_DEDUP_DUPLICATE;
}

void
wm_dedup_foresee(struct wm_dedup *d, int64_t event_time_us, const struct wm_value *keys)
{
	if (d->lines != NULL)
		__builtin_prefetch(&d->lines[hash_keys(d, keys, due_us(d, event_time_us)) & d->mask], 1);
}

void
wm_dedup_advance(struct wm_dedup *d, int64_t watermark_us)
{
	move_watermark(d, watermark_us);
}

/* Walks the keys of a shelf that are still remembered; counts them, and writes them where out is not NULL. */
static uint64_t
walk_shelf(const struct wm_dedup *d, const struct wm_shelf *shelf, struct wm_buf *out)
{
	const struct wm_shelf_chunk *chunk = NULL;
	struct wm_span items;
	struct wm_value column;
	uint64_t count = 0;

	while (wm_shelf_next(shelf, &chunk, &items))
		for (const char *at = items.data; at != items.data + items.len;) {
			int64_t due_us = due_of(at);
			bool is_remembered = !wm_is_complete(due_us, d->watermark_us);

			count += is_remembered;
			if (is_remembered && out != NULL)
				wm_put_i64(out, due_us);
			at += DUE_BYTES;
			for (size_t i = 0; i < d->options.keys_count; i++) {
				at = read_column(at, &column);
				if (!is_remembered || out == NULL)
					continue;
				wm_put_u8(out, (uint8_t)column.kind);
				wm_put_span(out, column.text);
			}
		}
	return count;
}

struct wm_dedup_counts
wm_dedup_counts(const struct wm_dedup *d)
{
	struct wm_ordered_at at = wm_ordered_seek(&d->shelves.by_turn, INT64_MIN);
	struct wm_dedup_counts counts = { .added = d->added };

	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&d->shelves, &at)) != NULL;)
		counts.keys +=
			wm_is_complete(shelf->start_us, d->watermark_us) ? walk_shelf(d, shelf, NULL) : shelf->count;
	counts.removed = counts.added - counts.keys;
	return counts;
}

size_t
wm_dedup_bytes(const struct wm_dedup *d)
{
	return d->shelves.bytes + (d->lines == NULL ? 0 : (d->mask + 1) * sizeof(struct line));
}

/*
 * i64 watermark · varint added · varint keys, each in the order in which memory is given back: i64 due · for each
 * column u8 kind, text.
 */
void
wm_dedup_encode(const struct wm_dedup *d, struct wm_buf *out)
{
	struct wm_ordered_at at = wm_ordered_seek(&d->shelves.by_turn, INT64_MIN);

	wm_put_i64(out, d->watermark_us);
	wm_put_varint(out, d->added);
	wm_put_varint(out, wm_dedup_counts(d).keys);
	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&d->shelves, &at)) != NULL;)
		walk_shelf(d, shelf, out);
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
	return remember(d, keys, due_us);
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
