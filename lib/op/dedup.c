#include "lib/op/dedup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/op/keys.h"
#include "lib/state/shelves.h"
#include "lib/time/duration.h"

/* Slots of the table: 0 is free; else the upper 16 bits of the hash and the address of an entry, or this where one has gone. */
#define SLOT_GONE UINT64_C(1)
#define SLOTS_MIN 8
#define ADDRESS_BITS 48
#define ADDRESS_MASK ((UINT64_C(1) << ADDRESS_BITS) - 1)

/* Entries looked up together, so that their slots come from memory at the same time. */
#define BATCH_MAX 32

/* A remembered key as it stands on its shelf: when it is forgotten (8 bytes), length * 16 + tag (varint), text. */
struct entry {
	int64_t due_us;
	struct wm_span key;
	uint8_t tag;
};

#define DUE_BYTES sizeof(int64_t)
#define TAG_BITS 4

struct wm_dedup {
	struct wm_dedup_options options;
	int64_t watermark_us;
	struct wm_shelves shelves; /* the entries, by when they are forgotten */
	uint64_t *slots;
	size_t mask;         /* slots - 1; there are none while slots is NULL */
	size_t taken_count;  /* slots not free */
	size_t filled_count; /* slots with an entry */
	uint64_t added;
	struct wm_buf key_text;
};

struct wm_dedup *
wm_dedup_new(const struct wm_dedup_options *options)
{
	struct wm_dedup *d = wm_calloc(1, sizeof(struct wm_dedup));

	assert(options->remember_us >= 0);
	d->options = *options;
	if (options->is_spark)
		d->options.remember_us -= options->remember_us % 1000;
	d->watermark_us = WM_TIME_NONE;
	wm_shelves_init(&d->shelves, WM_SHELF_OVER);
	wm_buf_init(&d->key_text, WM_BUF_UNBOUNDED);
	return d;
}

void
wm_dedup_free(struct wm_dedup *d)
{
	if (d == NULL)
		return;
	wm_shelves_release(&d->shelves);
	free(d->slots);
	wm_buf_release(&d->key_text);
	free(d);
}

/* Entries */

/* Reads the entry at a place and returns the place behind it. */
static inline const char *
read_entry(const char *at, struct entry *entry)
{
	uint64_t head = 0;
	unsigned shift = 0;
	unsigned char byte;

	memcpy(&entry->due_us, at, DUE_BYTES);
	at += DUE_BYTES;
	do {
		byte = (unsigned char)*at++;
		head |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) != 0);
	entry->tag = head & ((1 << TAG_BITS) - 1);
	entry->key = wm_span(at, head >> TAG_BITS);
	return at + entry->key.len;
}

static const char *
put_entry(struct wm_dedup *d, const struct entry *entry)
{
	uint64_t head = (uint64_t)entry->key.len << TAG_BITS | entry->tag;
	size_t head_bytes = (size_t)(63 - __builtin_clzll(head | 1)) / 7 + 1;
	char *item =
		wm_shelves_put(&d->shelves, entry->due_us, d->watermark_us, DUE_BYTES + head_bytes + entry->key.len);
	char *at = item;

	assert(entry->tag < 1 << TAG_BITS);
	memcpy(at, &entry->due_us, DUE_BYTES);
	for (at += DUE_BYTES; head >= 0x80; head >>= 7)
		*at++ = (char)(head | 0x80);
	*at++ = (char)head;
	if (entry->key.len != 0)
		memcpy(at, entry->key.data, entry->key.len);
	return item;
}

/* With the time in the key, when it is forgotten tells the time. */
static inline uint64_t
hash_entry(const struct wm_dedup *d, const struct entry *entry)
{
	uint64_t hash = wm_hash(entry->key, entry->tag);

	if (d->options.memory == WM_DEDUP_WITH_TIME)
		hash = wm_hash_mix(hash ^ wm_hash_secret[0], (uint64_t)entry->due_us ^ wm_hash_secret[1]);
	return hash;
}

/* The table */

static inline const char *
entry_in(uint64_t slot)
{
	return (const char *)(uintptr_t)(slot & ADDRESS_MASK);
}

static inline uint64_t
slot_with(const char *item, uint64_t hash)
{
	assert(((uintptr_t)item & ~ADDRESS_MASK) == 0);
	return (uint64_t)(uintptr_t)item | (hash >> ADDRESS_BITS << ADDRESS_BITS);
}

static inline bool
is_entry(const struct wm_dedup *d, uint64_t slot, const struct entry *entry, uint64_t hash)
{
	struct entry other;

	if (slot >> ADDRESS_BITS != hash >> ADDRESS_BITS || slot == SLOT_GONE)
		return false;
	read_entry(entry_in(slot), &other);
	return other.tag == entry->tag && wm_span_equal(other.key, entry->key) &&
		(d->options.memory != WM_DEDUP_WITH_TIME || other.due_us == entry->due_us);
}

/* The slot of a key, *found; else the one where it would go. There is a free slot. */
static inline size_t
slot_of(const struct wm_dedup *d, const struct entry *entry, uint64_t hash, bool *found)
{
	size_t place = SIZE_MAX;

	for (size_t at = hash & d->mask;; at = (at + 1) & d->mask) {
		uint64_t slot = d->slots[at];

		*found = slot != 0 && is_entry(d, slot, entry, hash);
		if (*found)
			return at;
		if (slot == 0)
			return place != SIZE_MAX ? place : at;
		if (slot == SLOT_GONE && place == SIZE_MAX)
			place = at;
	}
}

static void
take_out(struct wm_dedup *d, const char *item, uint64_t hash)
{
	size_t at = hash & d->mask;

	while (d->slots[at] != 0 && entry_in(d->slots[at]) != item)
		at = (at + 1) & d->mask;
	/* A key that came again after it was forgotten has taken the slot over. */
	if (d->slots[at] == 0)
		return;
	d->slots[at] = SLOT_GONE;
	d->filled_count--;
	/* What has gone is in nobody's way where nothing follows. */
	if (d->slots[(at + 1) & d->mask] != 0)
		return;
	for (; d->slots[at] == SLOT_GONE; at = (at - 1) & d->mask) {
		d->slots[at] = 0;
		d->taken_count--;
	}
}

/* Some entries of a shelf. */
struct batch {
	size_t count;
	const char *items[BATCH_MAX];
	int64_t dues_us[BATCH_MAX];
	uint64_t hashes[BATCH_MAX];
};

/* The next entries of some memory of a shelf, their slots on the way. */
static void
next_batch(const struct wm_dedup *d, struct wm_span *items, struct batch *batch)
{
	const char *at = items->data, *end = items->data + items->len;

	for (batch->count = 0; at != end && batch->count < BATCH_MAX; batch->count++) {
		struct entry entry;

		batch->items[batch->count] = at;
		at = read_entry(at, &entry);
		uint64_t hash = hash_entry(d, &entry);
		__builtin_prefetch(&d->slots[hash & d->mask], 1);
		batch->dues_us[batch->count] = entry.due_us;
		batch->hashes[batch->count] = hash;
	}
	*items = wm_span(at, (size_t)(end - at));
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
				size_t at = batch.hashes[i] & d->mask;

				if (wm_is_complete(batch.dues_us[i], d->watermark_us))
					continue;
				while (d->slots[at] != 0)
					at = (at + 1) & d->mask;
				d->slots[at] = slot_with(batch.items[i], batch.hashes[i]);
				d->taken_count++;
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
 * A new table, at least a quarter and after growth at most three eighths full, without what has gone.
 * The entries are walked on their shelves, so that there are never two tables.
 */
static void
rebuild(struct wm_dedup *d)
{
	struct wm_ordered_at at = wm_ordered_seek(&d->shelves.by_turn, INT64_MIN);
	size_t count = d->slots == NULL ? SLOTS_MIN : d->mask + 1;

	if (d->filled_count * 8 > count * 5)
		count *= 2;
	while (count > SLOTS_MIN && d->filled_count * 4 < count)
		count /= 2;
	free(d->slots);
	d->slots = wm_calloc(count, sizeof(d->slots[0]));
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
remember(struct wm_dedup *d, const struct entry *entry)
{
	uint64_t hash = hash_entry(d, entry);
	struct entry before;
	bool found;

	if (d->slots == NULL || (d->taken_count + 1) * 4 > (d->mask + 1) * 3)
		rebuild(d);
	size_t at = slot_of(d, entry, hash, &found);
	if (found) {
		read_entry(entry_in(d->slots[at]), &before);
		if (!wm_is_complete(before.due_us, d->watermark_us))
			return false;
	} else {
		d->taken_count += d->slots[at] == 0;
		d->filled_count++;
	}
	d->slots[at] = slot_with(put_entry(d, entry), hash);
	d->added++;
	return true;
}

enum wm_dedup_verdict
wm_dedup_judge(struct wm_dedup *d, const struct wm_dedup_record *record)
{
	struct entry entry;

	move_watermark(d, record->watermark_us);
	if (wm_is_behind(record->event_time_us, d->watermark_us) ||
		(d->options.is_spark && record->event_time_us == d->watermark_us))
		return WM_DEDUP_LATE;
	entry.key = wm_keys_pack(record->keys, d->options.keys_count, &d->key_text, &entry.tag);
	entry.due_us = due_us(d, record->event_time_us);
	return remember(d, &entry) ? WM_DEDUP_FIRST : WM_DEDUP_DUPLICATE;
}

void
wm_dedup_advance(struct wm_dedup *d, int64_t watermark_us)
{
	move_watermark(d, watermark_us);
}

/* Entries of a shelf that are still remembered. */
static uint64_t
remembered_on(const struct wm_dedup *d, const struct wm_shelf *shelf)
{
	const struct wm_shelf_chunk *chunk = NULL;
	struct wm_span items;
	struct entry entry;
	uint64_t count = 0;

	if (!wm_is_complete(shelf->start_us, d->watermark_us))
		return shelf->count;
	while (wm_shelf_next(shelf, &chunk, &items))
		for (const char *at = items.data; at != items.data + items.len;) {
			at = read_entry(at, &entry);
			count += !wm_is_complete(entry.due_us, d->watermark_us);
		}
	return count;
}

struct wm_dedup_counts
wm_dedup_counts(const struct wm_dedup *d)
{
	struct wm_ordered_at at = wm_ordered_seek(&d->shelves.by_turn, INT64_MIN);
	struct wm_dedup_counts counts = { .added = d->added };

	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&d->shelves, &at)) != NULL;)
		counts.keys += remembered_on(d, shelf);
	counts.removed = counts.added - counts.keys;
	return counts;
}

size_t
wm_dedup_bytes(const struct wm_dedup *d)
{
	return d->shelves.bytes + (d->slots == NULL ? 0 : (d->mask + 1) * sizeof(d->slots[0]));
}

/* i64 watermark · varint added · varint keys, each in the order in which memory is given back: i64 due · u8 tag · key. */
void
wm_dedup_encode(const struct wm_dedup *d, struct wm_buf *out)
{
	struct wm_ordered_at at = wm_ordered_seek(&d->shelves.by_turn, INT64_MIN);

	wm_put_i64(out, d->watermark_us);
	wm_put_varint(out, d->added);
	wm_put_varint(out, wm_dedup_counts(d).keys);
	for (const struct wm_shelf *shelf; (shelf = wm_shelves_next(&d->shelves, &at)) != NULL;) {
		const struct wm_shelf_chunk *chunk = NULL;
		struct wm_span items;
		struct entry entry;

		while (wm_shelf_next(shelf, &chunk, &items))
			for (const char *item = items.data; item != items.data + items.len;) {
				item = read_entry(item, &entry);
				if (wm_is_complete(entry.due_us, d->watermark_us))
					continue;
				wm_put_i64(out, entry.due_us);
				wm_put_u8(out, entry.tag);
				wm_put_span(out, entry.key);
			}
	}
}

bool
wm_dedup_decode(struct wm_dedup *d, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in);
	uint64_t added = wm_get_varint(in), count = wm_get_varint(in);

	if (in->failed || d->added != 0 || count > added)
		return false;
	d->watermark_us = watermark_us;
	for (uint64_t i = 0; i < count; i++) {
		struct entry entry = { .due_us = wm_get_i64(in) };

		entry.tag = wm_get_u8(in);
		entry.key = wm_get_span(in);
		if (in->failed || !wm_keys_are_valid(entry.key, entry.tag, d->options.keys_count) ||
			wm_is_complete(entry.due_us, watermark_us) ||
			(d->options.memory == WM_DEDUP_FOREVER && entry.due_us != WM_TIME_END) || !remember(d, &entry))
			return false;
	}
	d->added = added;
	return true;
}
