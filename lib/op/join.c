/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/join.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/columns.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/state/expiry.h"
#include "lib/state/index.h"
#include "lib/state/keyed.h"
#include "lib/state/queue.h"
#include "lib/state/series.h"
#include "lib/time/duration.h"

#define LEFT WM_JOIN_LEFT
#define RIGHT WM_JOIN_RIGHT

/* Marks of a row that is held, and of a key. */
#define MARK_MATCHED 1 /* it has matched, where that matters */
#define MARK_GONE 2    /* it has left before its time, and is to be passed over */
#define MARK_RIGHT 4   /* of the right side */
#define MARK_NULL 8    /* without a key */
#define MARK_KEY 16    /* no row, but a key with several */

/*
 * A row stands in the queue of its side, which lets it go in time, and the index has it by its key: itself if it is the only
 * one of that, as most are where keys are many; else a key, which has the rows of both sides by time. A row that goes is not
 * looked up, as that would wait for memory: it goes from the index with its shelf, and the series of its key keeps what was its
 * address, which its time tells from those of rows that are held, until the key is touched or its shelf is over.
 *
 * A key stands on a shelf of a side, at the time of a row of that. When the shelf is over it moves to one for
 * the last row that it still has, if it has any.
 *
 * The item of a row's queue holds its key (4 bytes length, text), as-of the address of its key's entry (NULL: null), then the bytes of the
 * record, or, where rows leave before their time, the address of a copy of them. A key's item is the same thing with two series, then
 * the text.
 */
#define KEY_LEN_BYTES sizeof(uint32_t)
#define ENTRY_BYTES sizeof(struct wm_entry *)
#define KEY_HEAD_BYTES (WM_JOIN_SIDES * sizeof(struct wm_series))

/* As-of: what a record needs comes from memory in steps as well: the place of its key, the entry there, the chunk of its series. */
#define FORESEEN_STEP 4
#define FORESEEN_COUNT (2 * FORESEEN_STEP)

/* Bytes of a record in memory of their own. */
struct copy {
	uint64_t arrival;
	size_t len;
	char bytes[];
};

/* As-of: what a key's entry has: its right rows by time, which are copies. */
struct key {
	struct wm_series series;
	uint64_t references; /* from the queue and from expiry */
};

struct side {
	int64_t watermark_us;
	int64_t bound_us; /* rows before this time leave */
	int64_t stay_us;  /* a row leaves when the watermark is so far past it; of a row with a window: past its end */
	bool is_bounded;
	bool is_preserved; /* rows without a match are written */
	bool is_matchless; /* rows leave at their first match */
	bool is_forgotten; /* rows leave in time without being looked at */
	uint64_t held;     /* of those that are not forgotten */
	uint64_t added;
	struct wm_queue queue;  /* as-of: empty on the right side */
	struct wm_shelves keys; /* by the time of a row of this side */
};

/* A record that was added and is being drained. */
struct arrival {
	bool is_there;
	bool is_searched;
	bool is_matched;
	bool is_single_tried; /* the row that is the only one of its key has had its turn */
	enum wm_join_side side;
	bool is_null; /* its key */
	struct wm_join_record record;
	uint64_t hash;
	struct wm_span key;       /* as-of */
	struct wm_entry *entry;   /* as-of */
	struct wm_index_at place; /* in the index */
	struct wm_queued *found;  /* there: a row or a key; NULL if there is none */
	struct wm_series_at at;   /* among the other side's rows of that key */
	int64_t from_us, to_us;   /* times that match */
};

struct wm_join {
	struct wm_join_options options;
	struct side sides[WM_JOIN_SIDES];
	struct wm_index index; /* rows and keys; as-of: nothing */
	struct wm_index_ahead ahead;
	struct wm_keyed keys; /* as-of: struct key */
	struct arrival arrival;
	struct copy *leaving;              /* handed out last; to be freed */
	struct wm_expiry expiry;           /* as-of: entries by when they may have right rows that no left row needs */
	struct wm_buf text;                /* as-of: of a key of several columns */
	struct wm_value *columns;          /* of a key that is read */
	uint64_t foreseen[FORESEEN_COUNT]; /* as-of: hashes, in turn */
	size_t foreseen_next;
	size_t series_bytes;
	size_t copies_bytes;
};

static uint64_t hash_of(const void *self, const char *item);

static bool
is_as_of(const struct wm_join *j)
{
	return j->options.condition == WM_JOIN_AS_OF;
}

static enum wm_join_side
other_side(enum wm_join_side side)
{
	return side == LEFT ? RIGHT : LEFT;
}

bool
wm_join_is_bounded(const struct wm_join_options *options, enum wm_join_side side)
{
	switch (options->condition) {
	case WM_JOIN_BETWEEN:
		return side == LEFT ? !options->high.is_open : !options->low.is_open;
	case WM_JOIN_TUMBLING:
		return true;
	case WM_JOIN_AS_OF:
		break;
	}
	return side == LEFT || options->has_tolerance;
}

/* How far past a row the watermark is when the row leaves. */
static int64_t
stay_us(const struct wm_join_options *options, enum wm_join_side side)
{
	const struct wm_join_end *end = side == LEFT ? &options->high : &options->low;
	const struct wm_join_end *low = &options->low, *high = &options->high;
	int64_t us = side == LEFT ? end->us : -end->us;

	if (options->condition == WM_JOIN_TUMBLING)
		return 0;
	if (options->condition == WM_JOIN_AS_OF)
		return 1;
	if (end->is_open || end->is_strict)
		return us;
	if (!options->is_spark)
		return wm_time_add(us, 1);
	/* Equality of times has a rule of its own there. */
	bool is_equality =
		!low->is_open && !high->is_open && low->us == 0 && high->us == 0 && !low->is_strict && !high->is_strict;
	return is_equality ? 0 : wm_time_add(us, 1000);
}

struct wm_join *
wm_join_new(const struct wm_join_options *options)
{
	struct wm_join *j = wm_calloc(1, sizeof(struct wm_join));
	enum wm_join_type type = options->type;

	assert(options->condition != WM_JOIN_TUMBLING || options->size_us > 0);
	assert(options->condition != WM_JOIN_AS_OF || type == WM_JOIN_INNER || type == WM_JOIN_LEFT_OUTER);
	assert(!options->has_tolerance || options->tolerance_us >= 0);
	j->options = *options;
	wm_index_init(&j->index, hash_of, j);
	j->sides[LEFT].is_preserved = type == WM_JOIN_LEFT_OUTER || type == WM_JOIN_FULL_OUTER || type == WM_JOIN_ANTI;
	j->sides[RIGHT].is_preserved = type == WM_JOIN_RIGHT_OUTER || type == WM_JOIN_FULL_OUTER;
	j->sides[LEFT].is_matchless = type == WM_JOIN_SEMI || type == WM_JOIN_ANTI;
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		j->sides[s].watermark_us = j->sides[s].bound_us = WM_TIME_NONE;
		j->sides[s].is_bounded = wm_join_is_bounded(options, s);
		j->sides[s].stay_us = stay_us(options, s);
		j->sides[s].is_forgotten = !j->sides[s].is_preserved && !j->sides[s].is_matchless && !is_as_of(j);
		wm_queue_init(&j->sides[s].queue, j->sides[s].is_forgotten ? WM_QUEUE_FORGOTTEN : WM_QUEUE_TAKEN);
		wm_shelves_set_numbers(&j->sides[s].queue.shelves, &j->index.numbers);
		wm_shelves_init(&j->sides[s].keys, WM_SHELF_OVER);
		wm_shelves_set_numbers(&j->sides[s].keys, &j->index.numbers);
	}
	wm_keyed_init(&j->keys, sizeof(struct key));
	wm_buf_init(&j->text, WM_BUF_UNBOUNDED);
	j->columns = wm_calloc(options->keys_count, sizeof(j->columns[0]));
	return j;
}

/* Copies */

static struct copy *
new_copy(struct wm_join *j, uint64_t arrival, struct wm_span bytes)
{
	struct copy *copy = wm_malloc(sizeof(*copy) + bytes.len);

	copy->arrival = arrival;
	copy->len = bytes.len;
	if (bytes.len != 0)
		memcpy(copy->bytes, bytes.data, bytes.len);
	j->copies_bytes += sizeof(*copy) + bytes.len;
	return copy;
}

static void
free_copy(struct wm_join *j, struct copy *copy)
{
	if (copy == NULL)
		return;
	j->copies_bytes -= sizeof(*copy) + copy->len;
	free(copy);
}

/* As-of: entries of keys */

static struct key *
key_of(const struct wm_entry *entry)
{
	return wm_entry_value(entry);
}

/* Takes out an entry that nothing needs. */
static void
drop_if_unused(struct wm_join *j, struct wm_entry *entry)
{
	const struct key *key = key_of(entry);

	if (key->references == 0 && wm_series_is_empty(&key->series))
		wm_keyed_take(&j->keys, entry);
}

static void
release_entry(struct wm_join *j, struct wm_entry *entry)
{
	key_of(entry)->references--;
	drop_if_unused(j, entry);
}

/* Keys of records */

static bool
is_null_key(const struct wm_join *j, const struct wm_value *keys)
{
	for (size_t i = 0; i < j->options.keys_count; i++)
		if (keys[i].kind == WM_KIND_NULL)
			return true;
	return false;
}

/* As-of: one column as it is; of others length and text of each, so that they do not run together. */
static struct wm_span
pack_key(struct wm_join *j, const struct wm_value *keys)
{
	if (j->options.keys_count == 1)
		return keys[0].text;
	wm_buf_reset(&j->text);
	for (size_t i = 0; i < j->options.keys_count; i++)
		wm_put_span(&j->text, keys[i].text);
	return wm_buf_span(&j->text);
}

/* Takes apart what pack_key() may have made; false if it has not. */
static bool
unpack_key(struct wm_join *j, struct wm_span key)
{
	struct wm_get in;

	j->columns[0].text = key;
	if (j->options.keys_count == 1)
		return true;
	wm_get_init(&in, key);
	for (size_t i = 0; i < j->options.keys_count; i++)
		j->columns[i].text = wm_get_span(&in);
	return !in.failed && wm_get_left(&in) == 0;
}

static uint64_t
hash_keys(const struct wm_join *j, const struct wm_value *keys)
{
	return wm_columns_hash(0, keys, j->options.keys_count, WM_COLUMNS_TEXT);
}

static struct wm_entry *
put_entry(struct wm_join *j, struct wm_span text, uint64_t hash)
{
	bool is_new;
	struct wm_entry *entry = wm_keyed_put(&j->keys, text, 0, hash, &is_new);

	if (is_new)
		memset(key_of(entry), 0, sizeof(struct key));
	return entry;
}

/* Rows that are held, and keys */

static struct wm_entry *
entry_of(const struct wm_queued *row)
{
	struct wm_entry *entry;

	memcpy(&entry, row->bytes, sizeof(entry));
	return entry;
}

static uint32_t
key_len(const struct wm_queued *row)
{
	uint32_t len;

	memcpy(&len, row->bytes, sizeof(len));
	return len;
}

/* The columns of a key, or of that of a row (not as-of). */
static struct wm_span
columns_of(const struct wm_queued *item)
{
	if ((item->mark & MARK_KEY) != 0)
		return wm_span(item->bytes + KEY_HEAD_BYTES, item->len - KEY_HEAD_BYTES);
	return wm_span(item->bytes + KEY_LEN_BYTES, key_len(item));
}

static uint64_t
hash_of(const void *self, const char *item)
{
	const struct wm_join *j = self;

	return wm_columns_hash_at(0, columns_of((const struct wm_queued *)(const void *)item).data,
		j->options.keys_count, WM_COLUMNS_TEXT);
}

static struct wm_series *
series_of(struct wm_queued *key)
{
	return (struct wm_series *)(void *)key->bytes;
}

/* What stands before the record in a row's bytes. */
static size_t
head_bytes(const struct wm_join *j, const struct wm_queued *row)
{
	return is_as_of(j) ? ENTRY_BYTES : KEY_LEN_BYTES + key_len(row);
}

static struct copy *
copy_of(const struct wm_join *j, const struct wm_queued *row)
{
	struct copy *copy;

	memcpy(&copy, row->bytes + head_bytes(j, row), sizeof(copy));
	return copy;
}

static struct wm_span
bytes_of(const struct wm_join *j, const struct side *side, const struct wm_queued *row)
{
	size_t head = head_bytes(j, row);

	if (!side->is_matchless)
		return wm_span(row->bytes + head, row->len - head);
	return wm_span(copy_of(j, row)->bytes, copy_of(j, row)->len);
}

static enum wm_join_side
side_of(const struct wm_queued *row)
{
	return (row->mark & MARK_RIGHT) != 0 ? RIGHT : LEFT;
}

/* Whether a row has left, and nobody has looked. */
static bool
is_gone(const struct wm_join *j, const struct wm_queued *row)
{
	return (row->mark & MARK_GONE) != 0 || row->time_us < j->sides[side_of(row)].bound_us;
}

/* Puts the bytes of a row into the queue of its side; the caller fills the first head bytes. */
static struct wm_queued *
enqueue(struct wm_join *j, enum wm_join_side s, int64_t time_us, uint64_t arrival, size_t head, bool is_matched,
	struct wm_span bytes)
{
	struct side *side = &j->sides[s];
	size_t len = head + (side->is_matchless ? sizeof(struct copy *) : bytes.len);
	struct wm_queued *row = wm_queue_put(&side->queue, time_us, arrival, side->bound_us, len);

	if (side->is_matchless) {
		struct copy *copy = new_copy(j, arrival, bytes);
		memcpy(row->bytes + head, &copy, sizeof(copy));
	} else if (bytes.len != 0) {
		memcpy(row->bytes + head, bytes.data, bytes.len);
	}
	row->mark = (s == RIGHT ? MARK_RIGHT : 0) | (is_matched && side->is_preserved ? MARK_MATCHED : 0);
	side->held += !side->is_forgotten;
	return row;
}

/* As-of: puts a left row into its queue. entry is NULL for a null key. */
static void
hold_left(struct wm_join *j, int64_t time_us, uint64_t arrival, struct wm_entry *entry, struct wm_span bytes)
{
	struct wm_queued *row = enqueue(j, LEFT, time_us, arrival, ENTRY_BYTES, false, bytes);

	memcpy(row->bytes, &entry, sizeof(entry));
	if (entry != NULL)
		key_of(entry)->references++;
}

/* The row or the key with these columns; NULL if there is none. */
static struct wm_queued *
find(struct wm_join *j, const struct wm_value *keys, struct wm_index_at *at)
{
	const char *item;

	while ((item = wm_index_next(&j->index, at)) != NULL) {
		struct wm_queued *found = (struct wm_queued *)(uintptr_t)item;

		if (wm_columns_are_at(columns_of(found).data, keys, j->options.keys_count, WM_COLUMNS_TEXT))
			return found;
	}
	return NULL;
}

/* A new key at the time of a row, with the series of another, or empty ones. */
static struct wm_queued *
new_key(struct wm_join *j, struct wm_span columns, enum wm_join_side s, int64_t time_us, const struct wm_series *series)
{
	size_t len = KEY_HEAD_BYTES + columns.len;
	struct wm_queued *key = wm_shelves_put(&j->sides[s].keys, time_us, j->sides[s].bound_us, wm_queued_bytes(len));

	*key = (struct wm_queued){ .time_us = time_us, .len = (uint32_t)len, .mark = MARK_KEY };
	if (series != NULL)
		memcpy(key->bytes, series, KEY_HEAD_BYTES);
	else
		memset(key->bytes, 0, KEY_HEAD_BYTES);
	if (columns.len != 0)
		memcpy(key->bytes + KEY_HEAD_BYTES, columns.data, columns.len);
	return key;
}

static void
drop_gone_rows(struct wm_join *j, struct wm_queued *key)
{
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++)
		wm_series_drop(&series_of(key)[s], j->sides[s].bound_us, &j->series_bytes);
}

/*
 * Puts a row into the queue of its side, and into the index: where the search for its key ended, which began after
 * wm_index_reserve(), or at what that found.
 */
static void
hold(struct wm_join *j, enum wm_join_side s, int64_t time_us, uint64_t arrival, const struct wm_value *keys,
	const struct wm_index_at *place, struct wm_queued *found, bool is_matched, struct wm_span bytes)
{
	size_t count = place == NULL ? 0 : j->options.keys_count;
	uint32_t len = (uint32_t)wm_columns_len(keys, count, WM_COLUMNS_TEXT);
	struct wm_queued *row = enqueue(j, s, time_us, arrival, KEY_LEN_BYTES + len, is_matched, bytes);

	memcpy(row->bytes, &len, sizeof(len));
	wm_columns_put(row->bytes + KEY_LEN_BYTES, keys, count, WM_COLUMNS_TEXT);
	if (place == NULL) {
		row->mark |= MARK_NULL;
		return;
	}
	if (found == NULL) {
		wm_index_put(&j->index, place, wm_shelves_name(&j->sides[s].queue.shelves));
		return;
	}
	if ((found->mark & MARK_KEY) == 0 && is_gone(j, found)) {
		wm_index_replace(place, wm_shelves_name(&j->sides[s].queue.shelves));
		return;
	}
	if ((found->mark & MARK_KEY) != 0) {
		drop_gone_rows(j, found);
	} else {
		struct wm_queued *only = found;

		found = new_key(j, columns_of(only), s, time_us, NULL);
		wm_index_replace(place, wm_shelves_name(&j->sides[s].keys));
		wm_series_put(&series_of(found)[side_of(only)], only->time_us, only, &j->series_bytes);
	}
	wm_series_put(&series_of(found)[s], time_us, row, &j->series_bytes);
}

/* The shelf of a key is over: moves it to the side and the time of a row that it still has. */
static void
move_key(struct wm_join *j, struct wm_queued *key)
{
	struct wm_series *series = series_of(key);

	drop_gone_rows(j, key);
	if (wm_series_is_empty(&series[LEFT]) && wm_series_is_empty(&series[RIGHT]))
		return;
	enum wm_join_side s = wm_series_is_empty(&series[LEFT]) ? RIGHT : LEFT;
	struct wm_index_at at = wm_index_seek(&j->index, hash_of(j, (const char *)key));
	const char *item;

	while ((item = wm_index_next(&j->index, &at)) != NULL && item != (const char *)key)
		;
	assert(item != NULL);
	new_key(j, columns_of(key), s, wm_series_last(&series[s], INT64_MAX)->time_us, series);
	wm_index_replace(&at, wm_shelves_name(&j->sides[s].keys));
}

static void
drop_shelf_of_keys(struct wm_join *j, enum wm_join_side s, struct wm_shelf *shelf,
	void each(struct wm_join *j, struct wm_queued *key))
{
	const struct wm_shelf_chunk *chunk = NULL;
	struct wm_span memory;

	while (wm_shelf_next(shelf, &chunk, &memory))
		for (size_t at = 0; at < memory.len;) {
			struct wm_queued *key = (struct wm_queued *)(uintptr_t)(memory.data + at);

			at += wm_queued_bytes(key->len);
			each(j, key);
		}
	wm_shelves_drop(&j->sides[s].keys, shelf);
}

/* What has gone in time is given back, as far as nobody looks at each row. */
static void
forget(struct wm_join *j)
{
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		struct side *side = &j->sides[s];
		struct wm_shelf *shelf;

		while ((shelf = wm_shelves_take(&side->keys, side->bound_us)) != NULL)
			drop_shelf_of_keys(j, s, shelf, move_key);
		if (side->is_forgotten)
			wm_queue_forget(&side->queue, side->bound_us);
	}
	wm_index_tidy(&j->index);
}

/* A row leaves before its time; its bytes are the caller's to free. It is taken out of its series by the caller as well. */
static struct copy *
leave_early(struct wm_join *j, struct side *side, struct wm_queued *row)
{
	row->mark |= MARK_GONE;
	side->held--;
	return copy_of(j, row);
}

/* As-of: the right rows */

/* Left rows that are held or will come are not before this time. */
static int64_t
needed_from_us(const struct wm_join *j)
{
	int64_t left_us = j->sides[LEFT].watermark_us, right_us = j->sides[RIGHT].watermark_us;

	if (left_us == WM_TIME_END && j->sides[LEFT].held == 0)
		return WM_TIME_END;
	return left_us < right_us ? left_us : right_us;
}

static void
drop_copies(struct wm_join *j, struct wm_series *series, int64_t before_us)
{
	struct wm_series_at at = wm_series_seek(series, INT64_MIN);

	for (struct wm_series_item *item; (item = wm_series_next(series, &at)) != NULL && item->time_us < before_us;) {
		free_copy(j, item->item);
		j->sides[RIGHT].held--;
	}
	wm_series_drop(series, before_us, &j->series_bytes);
}

/* Drops the right rows of a key that no left row from a time on needs. */
static void
trim(struct wm_join *j, struct wm_series *series, int64_t from_us)
{
	const struct wm_series_item *last = wm_series_last(series, from_us);

	if (last == NULL)
		return;
	bool is_too_far = j->options.has_tolerance && wm_time_add(last->time_us, j->options.tolerance_us) < from_us;
	drop_copies(j, series, is_too_far ? last->time_us + 1 : last->time_us);
}

static void
drop_all_copies(struct wm_join *j)
{
	size_t at = 0;

	for (struct wm_entry *entry; (entry = wm_keyed_next(&j->keys, &at)) != NULL;)
		drop_copies(j, &key_of(entry)->series, WM_TIME_END);
}

static void
trim_due(struct wm_join *j)
{
	int64_t from_us = needed_from_us(j);
	struct wm_entry *entry;

	if (from_us == WM_TIME_END && j->keys.places.count != 0) {
		/* No left row is held, so that nothing refers to an entry but what is due. */
		drop_all_copies(j);
		wm_expiry_release(&j->expiry);
		wm_keyed_release(&j->keys);
		return;
	}
	while ((entry = wm_expiry_take(&j->expiry, from_us)) != NULL) {
		trim(j, &key_of(entry)->series, from_us);
		release_entry(j, entry);
	}
}

/* Keeps a right row. Of two at one time the last to come is the answer of all left rows, so that it takes the other's place: false. */
static bool
hold_copy(struct wm_join *j, int64_t time_us, uint64_t arrival, struct wm_entry *entry, struct wm_span bytes)
{
	struct wm_series *series = &key_of(entry)->series;
	struct wm_series_item *last = wm_series_last(series, time_us);
	struct copy *copy = new_copy(j, arrival, bytes);

	if (last != NULL && last->time_us == time_us) {
		free_copy(j, last->item);
		last->item = copy;
		return false;
	}
	wm_series_put(series, time_us, copy, &j->series_bytes);
	j->sides[RIGHT].held++;
	/* Those before it go when all left rows are past it, it goes itself when they are past the tolerance. */
	wm_expiry_put(&j->expiry, time_us, entry);
	key_of(entry)->references++;
	if (j->options.has_tolerance) {
		int64_t past_us = wm_time_add(wm_time_add(time_us, j->options.tolerance_us), 1);
		wm_expiry_put(&j->expiry, past_us, entry);
		key_of(entry)->references++;
	}
	return true;
}

/* The right row for a left row at a time; NULL if there is none. */
static const struct wm_series_item *
nearest(const struct wm_join *j, struct wm_entry *entry, int64_t time_us)
{
	const struct wm_series_item *last = entry == NULL ? NULL : wm_series_last(&key_of(entry)->series, time_us);

	if (last == NULL || (j->options.has_tolerance && last->time_us < wm_time_sub(time_us, j->options.tolerance_us)))
		return NULL;
	return last;
}

/* Times */

static int64_t
window_offset(const struct wm_join *j, int64_t time_us)
{
	int64_t offset_us = time_us % j->options.size_us;

	return offset_us < 0 ? offset_us + j->options.size_us : offset_us;
}

static int64_t
window_end_us(const struct wm_join *j, int64_t time_us)
{
	return wm_time_add(time_us, j->options.size_us - window_offset(j, time_us));
}

/* The watermark at which a row of a side leaves. */
static int64_t
leave_us(const struct wm_join *j, enum wm_join_side s, int64_t time_us)
{
	if (!j->sides[s].is_bounded)
		return WM_TIME_END;
	return j->options.condition == WM_JOIN_TUMBLING ? window_end_us(j, time_us)
							: wm_time_add(time_us, j->sides[s].stay_us);
}

/* The time before which the rows of a side leave at a watermark: those whose leave_us() is not above it. */
static int64_t
bound_us(const struct wm_join *j, enum wm_join_side s, int64_t watermark_us)
{
	if (watermark_us == WM_TIME_NONE || watermark_us == WM_TIME_END)
		return watermark_us;
	if (!j->sides[s].is_bounded)
		return WM_TIME_NONE;
	if (j->options.condition == WM_JOIN_TUMBLING)
		return wm_time_sub(watermark_us, window_offset(j, watermark_us));
	return wm_time_add(wm_time_sub(watermark_us, j->sides[s].stay_us), 1);
}

static void
move_watermark(struct wm_join *j, enum wm_join_side s, int64_t watermark_us)
{
	const struct side *other = &j->sides[other_side(s)];

	if (watermark_us <= j->sides[s].watermark_us)
		return;
	j->sides[s].watermark_us = watermark_us;
	if (!j->options.is_spark) {
		j->sides[other_side(s)].bound_us = bound_us(j, other_side(s), watermark_us);
		return;
	}
	if (other->watermark_us < watermark_us)
		watermark_us = other->watermark_us;
	for (enum wm_join_side of = LEFT; of <= RIGHT; of++)
		j->sides[of].bound_us = bound_us(j, of, watermark_us);
}

static bool
is_late(const struct wm_join *j, enum wm_join_side s, int64_t time_us)
{
	int64_t watermark_us = j->sides[s].watermark_us;

	if (!j->options.is_spark)
		return wm_is_behind(time_us, watermark_us);
	if (j->options.condition == WM_JOIN_TUMBLING)
		time_us = window_end_us(j, time_us);
	return time_us <= watermark_us;
}

/* The times of the other side that match a row, from_us <= time <= to_us. */
static void
set_range(const struct wm_join *j, struct arrival *a)
{
	int64_t time_us = a->record.event_time_us;
	const struct wm_join_end *low = &j->options.low, *high = &j->options.high;

	if (j->options.condition == WM_JOIN_TUMBLING) {
		a->from_us = wm_time_sub(time_us, window_offset(j, time_us));
		a->to_us = wm_time_sub(window_end_us(j, time_us), 1);
		return;
	}
	const struct wm_join_end *first = a->side == LEFT ? low : high, *last = a->side == LEFT ? high : low;
	int64_t first_us = a->side == LEFT ? first->us : -first->us, last_us = a->side == LEFT ? last->us : -last->us;
	a->from_us = first->is_open ? INT64_MIN : wm_time_add(wm_time_add(time_us, first_us), first->is_strict);
	a->to_us = last->is_open ? INT64_MAX : wm_time_sub(wm_time_add(time_us, last_us), last->is_strict);
}

/* Adding */

bool
wm_join_ignores(const struct wm_join *j, enum wm_join_side side, const struct wm_value *keys)
{
	return !j->sides[side].is_preserved && is_null_key(j, keys);
}

enum wm_join_verdict
wm_join_add(struct wm_join *j, enum wm_join_side side, const struct wm_join_record *record)
{
	assert(!j->arrival.is_there);
	assert(record->event_time_us != WM_TIME_NONE && record->event_time_us != WM_TIME_END);
	move_watermark(j, side, record->watermark_us);
	bool is_null = is_null_key(j, record->keys), is_ignored = is_null && !j->sides[side].is_preserved;
	if (j->options.is_spark && is_ignored)
		return WM_JOIN_USED;
	if (is_late(j, side, record->event_time_us))
		return WM_JOIN_LATE;
	if (is_ignored)
		return WM_JOIN_USED;
	j->arrival = (struct arrival){ .is_there = true, .side = side, .is_null = is_null, .record = *record };
	if (!is_null) {
		if (is_as_of(j))
			j->arrival.key = pack_key(j, record->keys);
		j->arrival.hash = is_as_of(j) ? wm_hash(j->arrival.key, 0) : hash_keys(j, record->keys);
	}
	return WM_JOIN_USED;
}

static void
foresee_as_of(struct wm_join *j, uint64_t hash)
{
	size_t turn = j->foreseen_next++;
	struct wm_entry *entry = wm_keyed_like(&j->keys, j->foreseen[turn % FORESEEN_COUNT]);

	if (entry != NULL)
		wm_series_fetch(&key_of(entry)->series);
	wm_keyed_fetch_entry(&j->keys, j->foreseen[(turn - FORESEEN_STEP) % FORESEEN_COUNT]);
	j->foreseen[turn % FORESEEN_COUNT] = hash;
	wm_keyed_fetch_place(&j->keys, hash);
}

void
wm_join_foresee(struct wm_join *j, const struct wm_value *keys)
{
	assert(!j->arrival.is_there);
	if (is_as_of(j)) {
		foresee_as_of(j, wm_hash(pack_key(j, keys), 0));
		return;
	}
	struct wm_queued *item =
		(struct wm_queued *)(uintptr_t)wm_index_foresee(&j->index, &j->ahead, hash_keys(j, keys));
	if (item == NULL)
		return;
	if ((item->mark & MARK_KEY) == 0) {
		__builtin_prefetch((const void *)((uintptr_t)item + 128));
		return;
	}
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++)
		wm_series_fetch(&series_of(item)[s]);
}

void
wm_join_advance(struct wm_join *j, enum wm_join_side side, int64_t watermark_us)
{
	assert(!j->arrival.is_there);
	move_watermark(j, side, watermark_us);
}

/* The watermark that may let a row of a side be written. */
static int64_t
written_from_us(const struct wm_join *j, enum wm_join_side s)
{
	const struct side *side = &j->sides[s];

	if (side->queue.lowest_us == INT64_MAX || (!side->is_preserved && !(is_as_of(j) && s == LEFT)))
		return WM_TIME_END;
	return leave_us(j, s, side->queue.lowest_us);
}

int64_t
wm_join_due_us(const struct wm_join *j, enum wm_join_side side)
{
	int64_t us = written_from_us(j, other_side(side)), own_us = written_from_us(j, side);

	/* There the lower watermark counts, and this may be it. */
	return j->options.is_spark && own_us < us ? own_us : us;
}

/* Draining */

static void
set_side(struct wm_join_row *row, enum wm_join_side side, int64_t time_us, struct wm_span bytes)
{
	row->has[side] = true;
	row->times_us[side] = time_us;
	row->bytes[side] = bytes;
}

static void
set_copy(struct wm_join_row *row, const struct wm_series_item *item)
{
	const struct copy *copy = item->item;

	set_side(row, RIGHT, item->time_us, wm_span(copy->bytes, copy->len));
}

static struct wm_queued *
first_leaving(struct side *side)
{
	return !side->is_forgotten && side->queue.lowest_us < side->bound_us
		? wm_queue_first(&side->queue, side->bound_us, 0)
		: NULL;
}

/* A row that leaves in time; true if it is written. */
static bool
leave(struct wm_join *j, enum wm_join_side s, struct wm_queued *held, struct wm_join_row *row)
{
	struct side *side = &j->sides[s];
	bool is_written = side->is_preserved && (held->mark & MARK_MATCHED) == 0;

	wm_queue_take(&side->queue);
	if ((held->mark & MARK_GONE) != 0)
		return false;
	side->held--;
	set_side(row, s, held->time_us, bytes_of(j, side, held));
	if (side->is_matchless)
		j->leaving = copy_of(j, held);
	if (!is_as_of(j))
		return is_written;
	struct wm_entry *entry = entry_of(held);
	const struct wm_series_item *last = nearest(j, entry, held->time_us);
	if (last != NULL)
		set_copy(row, last);
	if (entry != NULL)
		release_entry(j, entry);
	return is_written || last != NULL;
}

/* The rows that leave in time, of both sides by time, left before right. */
static bool
next_leaving(struct wm_join *j, struct wm_join_row *row)
{
	struct wm_queued *left, *right;

	while (left = first_leaving(&j->sides[LEFT]), right = first_leaving(&j->sides[RIGHT]),
		left != NULL || right != NULL) {
		bool is_left = right == NULL || (left != NULL && left->time_us <= right->time_us);

		*row = (struct wm_join_row){ 0 };
		if (leave(j, is_left ? LEFT : RIGHT, is_left ? left : right, row))
			return true;
		free_copy(j, j->leaving);
		j->leaving = NULL;
	}
	return false;
}

/* Finds the key of the arrival, and where its matches begin. */
static void
search(struct wm_join *j, struct arrival *a)
{
	a->is_searched = true;
	if (a->is_null)
		return;
	bool is_kept = a->record.event_time_us >= j->sides[a->side].bound_us || (is_as_of(j) && a->side == RIGHT);
	if (is_as_of(j)) {
		a->entry = is_kept ? put_entry(j, a->key, a->hash) : wm_keyed_find(&j->keys, a->key, 0, a->hash);
		return;
	}
	if (is_kept)
		wm_index_reserve(&j->index);
	a->place = wm_index_seek(&j->index, a->hash);
	a->found = find(j, a->record.keys, &a->place);
	if (a->found == NULL)
		return;
	set_range(j, a);
	/* What is before the bound has gone. */
	if (a->from_us < j->sides[other_side(a->side)].bound_us)
		a->from_us = j->sides[other_side(a->side)].bound_us;
	if ((a->found->mark & MARK_KEY) != 0)
		a->at = wm_series_seek(&series_of(a->found)[other_side(a->side)], a->from_us);
}

/* The next stored row that the arrival matches; NULL if there is none. */
static struct wm_queued *
next_match(struct arrival *a)
{
	enum wm_join_side other = other_side(a->side);
	struct wm_queued *found = a->found;

	if (found == NULL)
		return NULL;
	if ((found->mark & MARK_KEY) == 0) {
		bool is_match = !a->is_single_tried && side_of(found) == other && (found->mark & MARK_GONE) == 0 &&
			found->time_us >= a->from_us && found->time_us <= a->to_us;

		a->is_single_tried = true;
		a->is_matched = a->is_matched || is_match;
		return is_match ? found : NULL;
	}
	struct wm_series *series = &series_of(found)[other];
	struct wm_series_item *item = wm_series_next(series, &a->at);
	if (item == NULL || item->time_us > a->to_us)
		return NULL;
	a->is_matched = true;
	const struct wm_series_item *behind =
		wm_series_next(series, &(struct wm_series_at){ a->at.chunk, a->at.index });
	if (behind != NULL)
		__builtin_prefetch(behind->item);
	return item->item;
}

/* The next match that is written. */
static bool
next_pair(struct wm_join *j, struct wm_join_row *row)
{
	struct arrival *a = &j->arrival;
	enum wm_join_side s = other_side(a->side);
	struct side *other = &j->sides[s];
	/* One match is enough for a left row that leaves at it. */
	bool is_enough = a->is_matched && j->sides[a->side].is_matchless;

	for (struct wm_queued *held; !is_enough && (held = next_match(a)) != NULL;) {
		if (other->is_preserved)
			held->mark |= MARK_MATCHED;
		if (j->options.type == WM_JOIN_ANTI) {
			if (a->side == LEFT)
				return false;
			free_copy(j, leave_early(j, other, held));
			continue;
		}
		*row = (struct wm_join_row){ 0 };
		set_side(row, a->side, a->record.event_time_us, a->record.bytes);
		set_side(row, s, held->time_us, bytes_of(j, other, held));
		if (other->is_matchless)
			j->leaving = leave_early(j, other, held);
		return true;
	}
	if (a->is_matched && other->is_matchless && (a->found->mark & MARK_KEY) != 0)
		wm_series_cut(&series_of(a->found)[s], a->from_us, a->to_us, &j->series_bytes);
	return false;
}

/* The arrival has had its matches: it is kept if more can come. True if it is written, as none can. */
static bool
settle(struct wm_join *j, struct wm_join_row *row)
{
	struct arrival *a = &j->arrival;
	struct side *side = &j->sides[a->side];
	bool is_due = a->record.event_time_us < side->bound_us;
	bool is_unmatched = side->is_preserved && !a->is_matched;

	if (a->is_matched && side->is_matchless)
		return false;
	if (!is_due) {
		hold(j, a->side, a->record.event_time_us, side->added++, a->record.keys, a->is_null ? NULL : &a->place,
			a->found, a->is_matched, a->record.bytes);
		return false;
	}
	/* Spark stores those and removes them at the end of the batch. */
	side->added += j->options.is_spark && (a->side == LEFT || is_unmatched);
	if (!is_unmatched)
		return false;
	*row = (struct wm_join_row){ 0 };
	set_side(row, a->side, a->record.event_time_us, a->record.bytes);
	return true;
}

/* As-of: a left row is kept until the right watermark has passed it, or has its answer now. True if it is written. */
static bool
settle_as_of(struct wm_join *j, struct wm_join_row *row)
{
	struct arrival *a = &j->arrival;
	struct side *side = &j->sides[a->side];
	int64_t time_us = a->record.event_time_us;

	if (a->side == RIGHT) {
		if (needed_from_us(j) == WM_TIME_END)
			drop_if_unused(j, a->entry);
		else
			hold_copy(j, time_us, side->added++, a->entry, a->record.bytes);
		return false;
	}
	if (time_us >= side->bound_us) {
		hold_left(j, time_us, side->added++, a->entry, a->record.bytes);
		return false;
	}
	const struct wm_series_item *last = nearest(j, a->entry, time_us);
	*row = (struct wm_join_row){ 0 };
	set_side(row, LEFT, time_us, a->record.bytes);
	if (last != NULL)
		set_copy(row, last);
	return last != NULL || side->is_preserved;
}

static bool
next_of_arrival(struct wm_join *j, struct wm_join_row *row)
{
	if (!j->arrival.is_there)
		return false;
	if (!j->arrival.is_searched)
		search(j, &j->arrival);
	if (!is_as_of(j) && next_pair(j, row))
		return true;
	j->arrival.is_there = false;
	return is_as_of(j) ? settle_as_of(j, row) : settle(j, row);
}

bool
wm_join_next(struct wm_join *j, struct wm_join_row *row)
{
	free_copy(j, j->leaving);
	j->leaving = NULL;
	if (next_leaving(j, row) || next_of_arrival(j, row))
		return true;
	if (is_as_of(j))
		trim_due(j);
	else
		forget(j);
	return false;
}

/* State */

static uint64_t
held_count(const struct wm_join *j, enum wm_join_side s)
{
	const struct side *side = &j->sides[s];

	return side->is_forgotten ? wm_queue_count_from(&side->queue, side->bound_us) : side->held;
}

struct wm_join_counts
wm_join_counts(const struct wm_join *j)
{
	struct wm_join_counts counts;

	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		counts.rows[s] = held_count(j, s);
		counts.added[s] = j->sides[s].added;
		counts.removed[s] = counts.added[s] - counts.rows[s];
	}
	return counts;
}

size_t
wm_join_bytes(const struct wm_join *j)
{
	size_t bytes = wm_index_bytes(&j->index) + wm_keyed_bytes(&j->keys) + j->expiry.bytes + j->series_bytes +
		j->copies_bytes;

	for (enum wm_join_side s = LEFT; s <= RIGHT; s++)
		bytes += wm_queue_bytes(&j->sides[s].queue) + j->sides[s].keys.bytes;
	return bytes;
}

static int
compare_held(const void *a, const void *b)
{
	const struct wm_join_held *row_a = a, *row_b = b;

	return (row_a->arrival > row_b->arrival) - (row_a->arrival < row_b->arrival);
}

struct wm_join_held *
wm_join_held(const struct wm_join *j, enum wm_join_side s)
{
	const struct side *side = &j->sides[s];
	uint64_t held = held_count(j, s);
	struct wm_join_held *rows = wm_reallocarray(NULL, held, sizeof(rows[0]));
	struct wm_queued **queued = wm_queue_items(&side->queue);
	size_t count = 0, at_entry = 0;

	for (size_t i = 0; i < side->queue.count; i++) {
		const struct wm_queued *row = queued[i];

		if (is_gone(j, row))
			continue;
		const struct wm_entry *entry = is_as_of(j) ? entry_of(row) : NULL;
		rows[count++] = (struct wm_join_held){
			.time_us = row->time_us,
			.arrival = row->order,
			.is_matched = (row->mark & MARK_MATCHED) != 0,
			.has_key = is_as_of(j) ? entry != NULL : (row->mark & MARK_NULL) == 0,
			.key = !is_as_of(j)     ? columns_of(row)
				: entry != NULL ? wm_entry_key(entry)
						: wm_span("", 0),
			.bytes = bytes_of(j, side, row),
		};
	}
	free(queued);
	if (is_as_of(j) && s == RIGHT) {
		for (struct wm_entry *entry; (entry = wm_keyed_next(&j->keys, &at_entry)) != NULL;) {
			struct wm_series *series = &key_of(entry)->series;
			struct wm_series_at at = wm_series_seek(series, INT64_MIN);

			for (const struct wm_series_item *item; (item = wm_series_next(series, &at)) != NULL;) {
				const struct copy *copy = item->item;

				rows[count++] = (struct wm_join_held){
					.time_us = item->time_us,
					.arrival = copy->arrival,
					.has_key = true,
					.key = wm_entry_key(entry),
					.bytes = wm_span(copy->bytes, copy->len),
				};
			}
		}
		qsort(rows, count, sizeof(rows[0]), compare_held);
	}
	assert(count == held);
	return rows;
}

void
wm_join_unpack(const struct wm_join *j, struct wm_span key, struct wm_span *columns)
{
	const char *at = key.data;
	struct wm_value column;
	struct wm_get in;

	wm_get_init(&in, key);
	for (size_t i = 0; i < j->options.keys_count; i++) {
		if (is_as_of(j)) {
			columns[i] = j->options.keys_count == 1 ? key : wm_get_span(&in);
			continue;
		}
		at = wm_column_get(at, &column);
		columns[i] = column.text;
	}
}

/* A key of one column as its text, of several as a text of their texts. */
static void
put_key(const struct wm_join *j, struct wm_span key, struct wm_span *columns, struct wm_buf *out)
{
	size_t count = j->options.keys_count, len = 0;

	wm_join_unpack(j, key, columns);
	for (size_t i = 0; i < count; i++)
		len += wm_varint_len(columns[i].len) + columns[i].len;
	if (count != 1)
		wm_put_varint(out, len);
	for (size_t i = 0; i < count; i++)
		wm_put_span(out, columns[i]);
}

/* What a row is, in a byte. */
#define HAS_MATCHED 1
#define HAS_KEY 2

/*
 * i64 watermark of each side · of each side: varint added · varint rows, each in order of arrival: varint arrival · i64 time ·
 * u8 what it is · its key, if it has one: of one column the text, of several the texts in a text · bytes.
 */
void
wm_join_encode(const struct wm_join *j, struct wm_buf *out)
{
	assert(!j->arrival.is_there && j->leaving == NULL);
	wm_put_i64(out, j->sides[LEFT].watermark_us);
	wm_put_i64(out, j->sides[RIGHT].watermark_us);
	struct wm_span *columns = wm_calloc(j->options.keys_count, sizeof(columns[0]));
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		const struct side *side = &j->sides[s];
		uint64_t held = held_count(j, s);
		struct wm_join_held *rows = wm_join_held(j, s);

		wm_put_varint(out, side->added);
		wm_put_varint(out, held);
		for (uint64_t i = 0; i < held; i++) {
			wm_put_varint(out, rows[i].arrival);
			wm_put_i64(out, rows[i].time_us);
			wm_put_u8(out,
				(uint8_t)((rows[i].is_matched ? HAS_MATCHED : 0) | (rows[i].has_key ? HAS_KEY : 0)));
			if (rows[i].has_key)
				put_key(j, rows[i].key, columns, out);
			wm_put_span(out, rows[i].bytes);
		}
		free(rows);
	}
	free(columns);
}

/* Reads a row that has arrived when it may have; false if it is none that could be held. */
static bool
decode_row(struct wm_join *j, enum wm_join_side s, uint64_t *arrival_min, struct wm_get *in)
{
	const struct side *side = &j->sides[s];
	uint64_t arrival = wm_get_varint(in);
	int64_t time_us = wm_get_i64(in);
	uint8_t what = wm_get_u8(in);
	bool has_key = (what & HAS_KEY) != 0, is_copied = is_as_of(j) && s == RIGHT;
	struct wm_span key = has_key ? wm_get_span(in) : wm_span(NULL, 0), bytes = wm_get_span(in);

	if (in->failed || arrival < *arrival_min || arrival >= side->added || time_us == WM_TIME_NONE ||
		time_us == WM_TIME_END || (!is_copied && time_us < side->bound_us) || what > (HAS_MATCHED | HAS_KEY) ||
		key.len > UINT32_MAX - KEY_HEAD_BYTES || bytes.len > UINT32_MAX - KEY_HEAD_BYTES - key.len)
		return false;
	if (has_key ? !unpack_key(j, key) : !side->is_preserved)
		return false;
	if ((what & HAS_MATCHED) != 0 && (!has_key || !side->is_preserved || side->is_matchless || is_as_of(j)))
		return false;
	*arrival_min = arrival + 1;
	if (is_as_of(j)) {
		struct wm_entry *entry = has_key ? put_entry(j, key, wm_hash(key, 0)) : NULL;

		if (is_copied)
			return hold_copy(j, time_us, arrival, entry, bytes);
		hold_left(j, time_us, arrival, entry, bytes);
		return true;
	}
	bool has_matched = (what & HAS_MATCHED) != 0;
	if (!has_key) {
		hold(j, s, time_us, arrival, NULL, NULL, NULL, has_matched, bytes);
		return true;
	}
	wm_index_reserve(&j->index);
	struct wm_index_at place = wm_index_seek(&j->index, hash_keys(j, j->columns));
	struct wm_queued *found = find(j, j->columns, &place);
	hold(j, s, time_us, arrival, j->columns, &place, found, has_matched, bytes);
	return true;
}

bool
wm_join_decode(struct wm_join *j, struct wm_get *in)
{
	int64_t watermarks_us[WM_JOIN_SIDES];

	/* Both before any row: together they say what can be held. */
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++)
		watermarks_us[s] = wm_get_i64(in);
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		if (in->failed || j->sides[s].added != 0)
			return false;
		move_watermark(j, s, watermarks_us[s]);
	}
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		uint64_t arrival_min = 0, count;

		j->sides[s].added = wm_get_varint(in);
		count = wm_get_varint(in);
		if (in->failed || j->sides[s].added > WM_QUEUE_ARRIVAL_MASK || count > j->sides[s].added)
			return false;
		for (uint64_t i = 0; i < count; i++) {
			wm_get_give_back(in);
			if (!decode_row(j, s, &arrival_min, in))
				return false;
		}
	}
	return true;
}

static void
release_key(struct wm_join *j, struct wm_queued *key)
{
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++)
		wm_series_release(&series_of(key)[s], &j->series_bytes);
}

void
wm_join_free(struct wm_join *j)
{
	if (j == NULL)
		return;
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		struct wm_queue *queue = &j->sides[s].queue;
		struct wm_queued **rows = j->sides[s].is_matchless ? wm_queue_items(queue) : NULL;

		for (size_t i = 0; rows != NULL && i < queue->count; i++)
			if ((rows[i]->mark & MARK_GONE) == 0)
				free_copy(j, copy_of(j, rows[i]));
		free(rows);
		wm_queue_release(queue);
	}
	free_copy(j, j->leaving);
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		struct wm_shelf *shelf;

		while ((shelf = wm_shelves_take(&j->sides[s].keys, INT64_MAX)) != NULL)
			drop_shelf_of_keys(j, s, shelf, release_key);
		wm_shelves_release(&j->sides[s].keys);
	}
	wm_index_release(&j->index);
	drop_all_copies(j);
	assert(j->copies_bytes == 0 && j->series_bytes == 0);
	wm_keyed_release(&j->keys);
	wm_expiry_release(&j->expiry);
	wm_buf_release(&j->text);
	free(j->columns);
	free(j);
}
