/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/sessions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/hash.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/op/keys.h"
#include "lib/state/expiry.h"
#include "lib/state/keyed.h"
#include "lib/state/ordered.h"
#include "lib/state/places.h"
#include "lib/state/pool.h"

/* Starts and ends are sums of a time and a few durations: far inside int64_t. */
#define BOUND_US_MAX (4 * WM_DURATION_US_MAX)

/*
 * A session, its key, its cell, then with panes a struct progress, and where updates are counted a struct update. Sessions of a
 * key, which neither overlap nor touch, are linked in order; the newest of them, which most records belong to, stands in the table
 * of keys. So a record needs no memory but that of a place in the table and of its session.
 *
 * A session stands in the expiry once, at its end (complete ones that are kept: at the end of that) or earlier, if it has grown since
 * it was put there.
 */
struct session {
	int64_t start_us, end_us;
	struct session *newer, *older; /* of the key; NULL: there is none */
	uint32_t home;                 /* of what does not fit the cell, counted from 1; 0: there is nothing */
	char key[];                    /* struct wm_entry; its mark is an enum mark */
};

#define KEY_AT offsetof(struct session, key)

enum mark {
	MARK_NONE,
	MARK_INDEXED, /* there are many of the key, and an index of them */
	MARK_RETIRED, /* it was joined to another and waits for its expiry */
};

/* Bytes of an index for each, about: a key and a pointer, in blocks that are half full at the least. */
#define INDEXED_BYTES ((size_t)32)

/* How far the panes of a session have come. */
struct progress {
	uint64_t index; /* of its next pane */
	uint64_t rows;  /* that are in no pane yet */
	size_t changed; /* its place in the list of what changed, from 1; 0: it is not in it */
	bool is_due;    /* it is in the list of what to look at when the watermark is advanced */
};

struct update {
	uint32_t batch; /* the last in which the session got a record */
};

/* From so many steps to a session on, the key has an index, until there are so few. */
#define INDEX_FROM 64
#define INDEX_UNTIL 16

/*
 * What does not fit the cells of many sessions (long texts, the values of percentiles) shares an
 * arena that goes when the last of them has gone. A session that outlives the time at which it stands in the expiry
 * moves to the newest home, so that none is kept for the few that last.
 */
struct home {
	struct wm_arena arena;
	uint64_t sessions;
	uint32_t next_free;
};

#define HOME_BYTES_MAX ((size_t)1 << 16)

/* More text than this is not worth copying. */
#define HELD_TEXT_MAX 256

/*
 * With many keys nearly every record waits for memory, two or three times: for the place of its key, the newest session, an
 * older one. So records that have been judged are held back for a few more, while that memory is fetched step by step, and
 * counted then, in order. What they hold is copied.
 */
struct held {
	int64_t start_us, end_us;
	uint64_t hash;
	struct wm_span key;
	uint8_t tag;
	struct wm_reading *readings;
	char text[HELD_TEXT_MAX]; /* the key, then the values */
};

#define HELD_MAX 16

/* Records between two steps of one: enough that what was asked for has come. */
#define HELD_STEP 4

/* Sessions taken from the expiry at once, and how many ahead memory is fetched for. */
#define PIECE_MAX 64
#define FETCH_AHEAD 8

#define SORT_BY_INSERTION_MAX 128

/* Rows for which memory is kept from one advance to the next. */
#define READY_KEPT_MAX 4096

/* A row that waits to be drained. */
struct ready {
	int64_t end_us, start_us;
	uint64_t prefix; /* of the key */
	struct session *session;
	uint64_t pane_index;
	enum wm_pane_timing pane;
	bool is_empty; /* discarding, and nothing is new */
};

struct wm_sessions {
	const struct wm_agg *agg;
	size_t keys_count;
	enum wm_window_mode mode;
	struct wm_pane_options panes;
	bool has_panes; /* a session can be written more than once */
	bool is_spark;
	size_t cell_bytes;
	size_t progress_at, update_at; /* from the cell on */
	size_t behind_key;             /* bytes of a session from the cell on */

	int64_t watermark_us;
	int64_t watermark_before_us; /* in force before the last advance */
	struct wm_places newest;     /* session of each key */
	struct wm_pools pools;       /* of sessions, whose sizes differ by the length of the key */
	struct wm_keyed indexes;     /* struct wm_ordered of sessions by start, of keys with many */
	size_t indexed;              /* sessions in those */
	struct wm_expiry expiry;     /* append */

	struct home *homes;
	size_t homes_count, homes_capacity;
	uint32_t home_free; /* counted from 1 */
	uint32_t home;      /* where new sessions go; 0: a new one */
	void *cell;         /* while a session moves */

	struct held held[HELD_MAX]; /* a ring, by number */
	uint64_t held_next;         /* the number of the next record */
	uint64_t held_placed;       /* of the first whose newest session was not asked for yet */
	uint64_t held_found;        /* of the first whose older session was not asked for yet */
	uint64_t held_first;        /* of the first that was not counted yet */
	int64_t held_start_us;      /* no held record begins before this, */
	int64_t held_end_us;        /* or ends before this */
	size_t readings_count;

	bool has_touched; /* complete: a record came since the last advance */

	/* panes: sessions to look at when the watermark is advanced, and, for early panes by event time, those that changed */
	struct session **due;
	size_t due_count, due_capacity;
	struct session **changed;
	size_t changed_count, changed_capacity;
	int64_t multiple; /* of the early period, which the highest event time is in; INT64_MIN before the first */
	bool is_early_due;
	void *empty_cell;

	struct ready *ready;
	size_t ready_count, ready_capacity, ready_at;
	struct session **gone; /* forgotten when the rows have been drained */
	size_t gone_count, gone_capacity;
	bool is_draining;
	bool is_expiring; /* there may be more that the watermark has reached */

	uint32_t batch; /* advances, to tell what got a record since the last */
	bool is_counting;
	struct wm_windowing_counts counts;

	struct wm_buf key_text; /* the key of the current record, where it has several columns */
	struct wm_value *row_keys;
};

/* Memory of sessions */

static struct wm_entry *
key_of(const struct session *session)
{
	return (struct wm_entry *)(uintptr_t)session->key;
}

static uint64_t
hash_of(const void *object)
{
	const struct wm_entry *key = key_of(object);

	return wm_hash(wm_entry_key(key), key->tag);
}

/* Where the cell begins. */
static size_t
cell_at(size_t key_len)
{
	return (KEY_AT + offsetof(struct wm_entry, key) + key_len + 15) & ~(size_t)15;
}

static size_t
session_bytes(const struct wm_sessions *w, size_t key_len)
{
	return (cell_at(key_len) + w->behind_key + 15) & ~(size_t)15;
}

static void
give_session(struct wm_sessions *w, struct session *session)
{
	wm_pools_give(&w->pools, session, session_bytes(w, key_of(session)->key_len));
}

/* Before the first session. */
static void
lay_out(struct wm_sessions *w)
{
	w->progress_at = (w->cell_bytes + 15) & ~(size_t)15;
	w->update_at = w->progress_at + (w->has_panes ? sizeof(struct progress) : 0);
	w->behind_key = w->update_at + (w->is_counting ? sizeof(struct update) : 0);
	wm_pools_init(&w->pools, session_bytes(w, 0), true);
}

struct wm_sessions *
wm_sessions_new(const struct wm_agg *agg, size_t keys_count, enum wm_window_mode mode,
	const struct wm_pane_options *panes, bool spark)
{
	struct wm_sessions *w = wm_calloc(1, sizeof(struct wm_sessions));

	assert(mode != WM_MODE_UPDATE);
	w->agg = agg;
	w->keys_count = keys_count;
	w->mode = mode;
	w->is_spark = spark;
	w->has_panes = panes != NULL && mode == WM_MODE_APPEND && wm_pane_options_many(panes);
	if (w->has_panes)
		w->panes = *panes;
	w->cell_bytes = wm_agg_cell_bytes(agg);
	w->watermark_us = w->watermark_before_us = spark ? 0 : WM_TIME_NONE;
	wm_places_init(&w->newest, hash_of);
	wm_keyed_init(&w->indexes, sizeof(struct wm_ordered));
	lay_out(w);
	w->cell = wm_malloc(w->cell_bytes);
	w->empty_cell = wm_malloc(w->cell_bytes);
	wm_agg_cell_init(agg, w->empty_cell);
	w->multiple = INT64_MIN;
	w->batch = 1;
	w->held_start_us = w->held_end_us = WM_TIME_END;
	w->readings_count = wm_agg_columns_count(agg);
	for (size_t i = 0; i < HELD_MAX; i++)
		w->held[i].readings = wm_calloc(w->readings_count, sizeof(struct wm_reading));
	wm_buf_init(&w->key_text, WM_BUF_UNBOUNDED);
	w->row_keys = wm_calloc(keys_count, sizeof(struct wm_value));
	return w;
}

void
wm_sessions_free(struct wm_sessions *w)
{
	size_t at = 0;

	if (w == NULL)
		return;
	for (struct wm_entry *entry; (entry = wm_keyed_next(&w->indexes, &at)) != NULL;)
		wm_ordered_release(wm_entry_value(entry));
	wm_keyed_release(&w->indexes);
	wm_pools_release(&w->pools);
	wm_places_release(&w->newest);
	wm_expiry_release(&w->expiry);
	for (size_t i = 0; i < w->homes_count; i++)
		wm_arena_release(&w->homes[i].arena);
	for (size_t i = 0; i < HELD_MAX; i++)
		free(w->held[i].readings);
	free(w->homes);
	free(w->cell);
	free(w->empty_cell);
	free(w->due);
	free(w->changed);
	free(w->ready);
	free(w->gone);
	wm_buf_release(&w->key_text);
	free(w->row_keys);
	free(w);
}

static void *
cell_of(const struct session *session)
{
	return (char *)(uintptr_t)session + cell_at(key_of(session)->key_len);
}

static struct progress *
progress_of(const struct wm_sessions *w, const struct session *session)
{
	return (struct progress *)(void *)((char *)cell_of(session) + w->progress_at);
}

/* Whether the session has got a record since the last advance. */
static bool
is_updated(const struct wm_sessions *w, const struct session *session)
{
	const struct update *update = (const void *)((const char *)cell_of(session) + w->update_at);

	return w->is_counting && update->batch == w->batch;
}

static void
set_updated(const struct wm_sessions *w, const struct session *session, bool is)
{
	struct update *update = (void *)((char *)cell_of(session) + w->update_at);

	if (w->is_counting)
		update->batch = is ? w->batch : w->batch - 1;
}

static bool
is_complete(const struct wm_sessions *w, const struct session *session)
{
	return wm_is_complete(session->end_us, w->watermark_us);
}

/* When a complete session is forgotten. */
static int64_t
kept_until_us(const struct wm_sessions *w, const struct session *session)
{
	return session->end_us + w->panes.allowed_lateness_us;
}

/* Homes */

static struct home *
home_at(struct wm_sessions *w, uint32_t home)
{
	return &w->homes[home - 1];
}

static void
leave_home(struct wm_sessions *w, struct session *session)
{
	uint32_t number = session->home;

	if (number == 0)
		return;
	struct home *home = home_at(w, number);
	session->home = 0;
	if (--home->sessions != 0)
		return;
	wm_arena_release(&home->arena);
	if (number != w->home) {
		home->next_free = w->home_free;
		w->home_free = number;
	}
}

/* The home that new sessions go to. */
static struct home *
newest_home(struct wm_sessions *w)
{
	if (w->home != 0)
		return home_at(w, w->home);
	if (w->home_free != 0) {
		w->home = w->home_free;
		w->home_free = home_at(w, w->home)->next_free;
	} else {
		w->homes = wm_grown(w->homes, w->homes_count, &w->homes_capacity, sizeof(w->homes[0]));
		w->homes[w->homes_count++] = (struct home){ 0 };
		w->home = (uint32_t)w->homes_count;
	}
	return home_at(w, w->home);
}

/* A session without a home has been changed with the arena of the newest: it lives there if it has put something into it. */
static void
settle(struct wm_sessions *w, struct session *session, const struct wm_arena *before)
{
	struct home *home = home_at(w, w->home);

	if (home->arena.bytes == before->bytes && home->arena.used == before->used)
		return;
	session->home = w->home;
	home->sessions++;
	if (home->arena.bytes >= HOME_BYTES_MAX)
		w->home = 0;
}

static void
add_to_cell(struct wm_sessions *w, struct session *session, const struct wm_reading *readings, int64_t event_time_us)
{
	struct home *home = session->home != 0 ? home_at(w, session->home) : newest_home(w);
	struct wm_arena before = home->arena;

	wm_agg_cell_add(w->agg, cell_of(session), &home->arena, readings, event_time_us);
	if (session->home == 0)
		settle(w, session, &before);
}

static void
merge_into_cell(struct wm_sessions *w, struct session *session, const void *from)
{
	struct home *home = session->home != 0 ? home_at(w, session->home) : newest_home(w);
	struct wm_arena before = home->arena;

	wm_agg_cell_merge(w->agg, cell_of(session), &home->arena, from);
	if (session->home == 0)
		settle(w, session, &before);
}

static void
move_to_newest_home(struct wm_sessions *w, struct session *session)
{
	struct session old = *session;

	if (old.home == 0 || old.home == w->home)
		return;
	memcpy(w->cell, cell_of(session), w->cell_bytes);
	wm_agg_cell_init(w->agg, cell_of(session));
	session->home = 0;
	merge_into_cell(w, session, w->cell);
	leave_home(w, &old);
}

static void
empty_cell(struct wm_sessions *w, struct session *session)
{
	wm_agg_cell_init(w->agg, cell_of(session));
	leave_home(w, session);
}

/* The sessions of a key */

/* The newest; NULL if there is none. */
static struct session *
newest_of(const struct wm_sessions *w, struct wm_span text, uint8_t tag, uint64_t hash)
{
	struct session *session;

	for (size_t at = wm_places_seek(&w->newest, hash); (session = wm_places_next(&w->newest, hash, &at)) != NULL;) {
		const struct wm_entry *key = key_of(session);

		if (key->tag == tag && wm_span_equal(wm_entry_key(key), text))
			return session;
	}
	return NULL;
}

static struct wm_ordered *
index_of(const struct wm_sessions *w, const struct session *session)
{
	const struct wm_entry *key = key_of(session);
	struct wm_entry *entry = wm_keyed_find(&w->indexes, wm_entry_key(key), key->tag, hash_of(session));

	return wm_entry_value(entry);
}

static void
make_index(struct wm_sessions *w, struct session *newest)
{
	const struct wm_entry *key = key_of(newest);
	bool is_new;
	struct wm_entry *entry = wm_keyed_put(&w->indexes, wm_entry_key(key), key->tag, hash_of(newest), &is_new);
	struct wm_ordered *index = wm_entry_value(entry);

	*index = (struct wm_ordered){ 0 };
	for (struct session *session = newest; session != NULL; session = session->older) {
		key_of(session)->mark = MARK_INDEXED;
		wm_ordered_put(index, session->start_us, session);
	}
	w->indexed += index->count;
}

static void
drop_index(struct wm_sessions *w, struct wm_ordered *index)
{
	struct wm_ordered_at at = wm_ordered_seek(index, INT64_MIN);
	struct session *session, *last = NULL;

	while ((session = wm_ordered_next(index, &at, NULL)) != NULL) {
		key_of(session)->mark = MARK_NONE;
		last = session;
	}
	w->indexed -= index->count;
	wm_ordered_release(index);
	const struct wm_entry *key = key_of(last);
	wm_keyed_take(&w->indexes, wm_keyed_find(&w->indexes, wm_entry_key(key), key->tag, hash_of(last)));
}

static void
put_into_index(struct wm_sessions *w, struct session *session)
{
	key_of(session)->mark = MARK_INDEXED;
	wm_ordered_put(index_of(w, session), session->start_us, session);
	w->indexed++;
}

static void
take_from_index(struct wm_sessions *w, struct session *session)
{
	struct wm_ordered *index = index_of(w, session);

	key_of(session)->mark = MARK_NONE;
	wm_ordered_take(index, session->start_us);
	w->indexed--;
	if (index->count == INDEX_UNTIL)
		drop_index(w, index);
}

/* The last session of a key that begins at a time or before, and in *newer the one behind it; NULL: there is none. */
static struct session *
seek(struct wm_sessions *w, struct session *newest, int64_t time_us, struct session **newer)
{
	struct session *session = newest;

	*newer = NULL;
	for (size_t steps = 0; session != NULL && session->start_us > time_us; steps++) {
		if (steps >= INDEX_FROM && key_of(newest)->mark != MARK_INDEXED)
			make_index(w, newest);
		if (key_of(newest)->mark == MARK_INDEXED) {
			struct wm_ordered *index = index_of(w, newest);
			struct wm_ordered_at first = wm_ordered_seek(index, time_us + 1);

			session = wm_ordered_next(index, &first, NULL);
		}
		*newer = session;
		session = session->older;
	}
	return session;
}

/* Puts a session between two of its key, of which either may be NULL; the hash is that of the key. */
static void
link_session(
	struct wm_sessions *w, struct session *session, uint64_t hash, struct session *older, struct session *newer)
{
	const struct session *other = older != NULL ? older : newer;

	session->newer = newer;
	session->older = older;
	if (older != NULL)
		older->newer = session;
	if (newer != NULL)
		newer->older = session;
	else if (older != NULL)
		wm_places_replace(&w->newest, hash, older, session);
	else
		wm_places_put(&w->newest, hash, session);
	if (other != NULL && key_of(other)->mark == MARK_INDEXED)
		put_into_index(w, session);
}

/* Takes a session out; the key with it when it was the last. */
static void
unlink_session(struct wm_sessions *w, struct session *session)
{
	if (key_of(session)->mark == MARK_INDEXED)
		take_from_index(w, session);
	if (session->older != NULL)
		session->older->newer = session->newer;
	if (session->newer != NULL)
		session->newer->older = session->older;
	else if (session->older != NULL)
		wm_places_replace(&w->newest, hash_of(session), session, session->older);
	else
		wm_places_take(&w->newest, hash_of(session), session);
}

static void
forget(struct wm_sessions *w, struct session *session)
{
	leave_home(w, session);
	unlink_session(w, session);
	give_session(w, session);
	w->counts.groups--;
	w->counts.removed++;
}

/* Changed and due sessions */

static void
unlist_changed(struct wm_sessions *w, struct progress *progress)
{
	if (progress->changed == 0)
		return;
	struct session *last = w->changed[--w->changed_count];
	w->changed[progress->changed - 1] = last;
	progress_of(w, last)->changed = progress->changed;
	progress->changed = 0;
}

/* A session has rows that are in no pane: says when that is to be looked at. */
static void
list_rows(struct wm_sessions *w, struct session *session)
{
	struct progress *progress = progress_of(w, session);
	bool has_early = w->panes.early_rows > 0 && progress->rows >= w->panes.early_rows;

	if (!progress->is_due && (has_early || is_complete(w, session))) {
		w->due = wm_grown(w->due, w->due_count, &w->due_capacity, sizeof(w->due[0]));
		w->due[w->due_count++] = session;
		progress->is_due = true;
	}
	if (w->panes.early_period_us > 0 && progress->changed == 0) {
		w->changed = wm_grown(w->changed, w->changed_count, &w->changed_capacity, sizeof(w->changed[0]));
		w->changed[w->changed_count++] = session;
		progress->changed = w->changed_count;
	}
}

/* Adding */

static struct session *
new_session(struct wm_sessions *w, struct wm_span text, uint8_t tag, int64_t start_us, int64_t end_us)
{
	assert(text.len <= UINT32_MAX);
	struct session *session = wm_pools_take(&w->pools, session_bytes(w, text.len));
	struct wm_entry *key = key_of(session);

	session->start_us = start_us;
	session->end_us = end_us;
	session->home = 0;
	*key = (struct wm_entry){ .key_len = (uint32_t)text.len, .tag = tag, .mark = MARK_NONE };
	wm_span_copy(key->key, text);
	if (w->has_panes)
		*progress_of(w, session) = (struct progress){ 0 };
	set_updated(w, session, false);
	wm_agg_cell_init(w->agg, cell_of(session));
	if (w->mode == WM_MODE_APPEND)
		wm_expiry_put(&w->expiry, end_us, session);
	return session;
}

/* A session whose content went to another. While it stands in the expiry its memory has to stay. */
static void
retire(struct wm_sessions *w, struct session *session)
{
	leave_home(w, session);
	if (w->has_panes)
		unlist_changed(w, progress_of(w, session));
	unlink_session(w, session);
	key_of(session)->mark = MARK_RETIRED;
	if (w->mode != WM_MODE_APPEND)
		give_session(w, session);
}

/* Both are of one key, so their cells are of one size. */
static void
swap_cells(struct wm_sessions *w, struct session *a, struct session *b)
{
	uint32_t home = a->home;

	memcpy(w->cell, cell_of(a), w->cell_bytes);
	memcpy(cell_of(a), cell_of(b), w->cell_bytes);
	memcpy(cell_of(b), w->cell, w->cell_bytes);
	a->home = b->home;
	b->home = home;
}

/* The cell with fewer rows is merged into the other: a large session that is joined to one small one after the other costs what those cost. */
static void
absorb(struct wm_sessions *w, struct session *into, struct session *from)
{
	if (wm_agg_cell_rows(w->agg, cell_of(from)) > wm_agg_cell_rows(w->agg, cell_of(into)))
		swap_cells(w, into, from);
	merge_into_cell(w, into, cell_of(from));
	if (w->has_panes)
		progress_of(w, into)->rows += progress_of(w, from)->rows;
	if (is_updated(w, from))
		set_updated(w, into, true);
	retire(w, from);
}

static void
set_bounds(struct wm_sessions *w, struct session *session, int64_t start_us, int64_t end_us)
{
	if (key_of(session)->mark == MARK_INDEXED && start_us != session->start_us) {
		struct wm_ordered *index = index_of(w, session);

		wm_ordered_take(index, session->start_us);
		wm_ordered_put(index, start_us, session);
	}
	session->start_us = start_us;
	session->end_us = end_us;
}

/*
 * Gives a session new bounds, and the number of its next pane with them. A complete one that is open again is put into the expiry
 * anew, at its end, which comes before the time at which it stands there: as another session in its place, which is returned.
 */
static struct session *
change_bounds(struct wm_sessions *w, struct session *session, int64_t start_us, int64_t end_us)
{
	bool was_complete = is_complete(w, session);

	set_bounds(w, session, start_us, end_us);
	if (!w->has_panes)
		return session;
	progress_of(w, session)->index = 0;
	if (!was_complete || is_complete(w, session))
		return session;
	const struct wm_entry *key = key_of(session);
	struct session *again = new_session(w, wm_entry_key(key), key->tag, start_us, end_us);
	struct session *older = session->older, *newer = session->newer;
	absorb(w, again, session);
	link_session(w, again, hash_of(again), older, newer);
	return again;
}

/* Makes one session of those that end at start_us or later, of which into is the last; returns where they begin. */
static int64_t
join_older(struct wm_sessions *w, struct session *into, int64_t start_us)
{
	struct session *from = into;

	while (from->older != NULL && from->older->end_us >= start_us)
		from = from->older;
	int64_t first_us = from->start_us;
	while (from != into) {
		struct session *newer = from->newer;

		absorb(w, into, from);
		w->counts.groups--;
		w->counts.removed++;
		from = newer;
	}
	return first_us;
}

/* The session that a record's own one, [start, end), belongs to: a new one, or what it touches, made one. */
static struct session *
session_for(struct wm_sessions *w, struct wm_span text, uint8_t tag, uint64_t hash, int64_t start_us, int64_t end_us)
{
	struct session *newest = newest_of(w, text, tag, hash);
	struct session *older = newest, *newer = NULL;

	if (newest != NULL && start_us >= newest->start_us && start_us <= newest->end_us)
		return end_us > newest->end_us ? change_bounds(w, newest, newest->start_us, end_us) : newest;
	if (newest != NULL && start_us < newest->start_us)
		older = seek(w, newest, end_us, &newer);
	if (older == NULL || older->end_us < start_us) {
		struct session *session = new_session(w, text, tag, start_us, end_us);

		link_session(w, session, hash, older, newer);
		w->counts.groups++;
		return session;
	}
	/* Into the last: where the result is open and one of its parts was, that was. */
	struct session *into = older;
	int64_t first_us = join_older(w, into, start_us);
	if (first_us < start_us)
		start_us = first_us;
	if (into->end_us > end_us)
		end_us = into->end_us;
	return start_us != into->start_us || end_us != into->end_us ? change_bounds(w, into, start_us, end_us) : into;
}

static bool
is_late(const struct wm_sessions *w, int64_t end_us)
{
	if (w->mode == WM_MODE_APPEND)
		return wm_is_complete(end_us + w->panes.allowed_lateness_us, w->watermark_us);
	return w->is_spark && wm_is_complete(end_us, w->watermark_before_us);
}

static void
count_record(struct wm_sessions *w, struct wm_span text, uint8_t tag, uint64_t hash, const struct wm_reading *readings,
	int64_t start_us, int64_t end_us)
{
	struct session *session = session_for(w, text, tag, hash, start_us, end_us);

	add_to_cell(w, session, readings, start_us);
	if (w->is_counting && !is_updated(w, session)) {
		set_updated(w, session, true);
		w->counts.updated++;
	}
	if (w->has_panes) {
		progress_of(w, session)->rows++;
		list_rows(w, session);
	}
}

/* Held records */

static struct held *
held_at(struct wm_sessions *w, uint64_t number)
{
	return &w->held[number % HELD_MAX];
}

/* Inlined, as all that only fetches: gcc 12 takes a call of such a function for one without effect, and leaves it out. */
__attribute__((always_inline)) static inline void
fetch_session(const struct wm_sessions *w, const struct session *session)
{
	size_t least = w->pools.pools[0].object_bytes, bytes = least < 256 ? least : 256;

	/* Where there is none an address is computed that nobody reads: as a number, as a pointer may not be moved off nothing. */
	for (size_t at = 0; at < bytes; at += 64)
		__builtin_prefetch((const void *)((uintptr_t)session + at));
	__builtin_prefetch((const void *)((uintptr_t)session + bytes - 1));
}

/* The steps of held records: each takes all before a number on that have not taken it yet. */

static void
step_placed(struct wm_sessions *w, uint64_t until)
{
	for (; w->held_placed < until; w->held_placed++)
		fetch_session(w, wm_places_like(&w->newest, held_at(w, w->held_placed)->hash));
}

static void
step_found(struct wm_sessions *w, uint64_t until)
{
	for (; w->held_found < until; w->held_found++) {
		const struct held *held = held_at(w, w->held_found);
		const struct session *newest = wm_places_like(&w->newest, held->hash);

		/* Most likely it is of the key, and an older session is needed. */
		if (newest != NULL && newest->start_us > held->start_us && newest->older != NULL)
			fetch_session(w, newest->older);
	}
}

static void
step_counted(struct wm_sessions *w, uint64_t until)
{
	for (; w->held_first < until; w->held_first++) {
		struct held *held = held_at(w, w->held_first);

		count_record(w, held->key, held->tag, held->hash, held->readings, held->start_us, held->end_us);
	}
}

static void
count_held(struct wm_sessions *w)
{
	step_placed(w, w->held_next);
	step_found(w, w->held_next);
	step_counted(w, w->held_next);
	w->held_start_us = w->held_end_us = WM_TIME_END;
}

/* Whether a record can be held back: nothing comes due by it before its own session ends. */
static bool
can_hold(const struct wm_sessions *w, const struct wm_reading *readings, struct wm_span key, int64_t end_us)
{
	if (w->panes.early_rows > 0 || w->panes.early_period_us > 0 || wm_is_complete(end_us, w->watermark_us))
		return false;
	return wm_readings_text_bytes(readings, w->readings_count, key) <= HELD_TEXT_MAX;
}

static __attribute__((noinline)) void
hold(struct wm_sessions *w, const struct wm_window_record *record, struct wm_span key, uint8_t tag, int64_t end_us)
{
	struct held *held = held_at(w, w->held_next);
	char *at = held->text;

	held->start_us = record->event_time_us;
	held->end_us = end_us;
	held->hash = wm_hash(key, tag);
	wm_places_fetch(&w->newest, held->hash);
	held->key = wm_text_copy(&at, key);
	held->tag = tag;
	wm_readings_copy(held->readings, record->readings, w->readings_count, at);
	if (held->start_us < w->held_start_us)
		w->held_start_us = held->start_us;
	if (end_us < w->held_end_us)
		w->held_end_us = end_us;
	w->held_next++;

	uint64_t next = w->held_next;
	if (next - w->held_placed > HELD_STEP)
		step_placed(w, next - HELD_STEP);
	if (next - w->held_found > 2 * HELD_STEP)
		step_found(w, next - 2 * HELD_STEP);
	if (next - w->held_first > 3 * HELD_STEP)
		step_counted(w, next - 3 * HELD_STEP);
}

/* What changed is written early when the highest event time enters a new multiple of the period; the first record of all enters none. */
static void
note_highest(struct wm_sessions *w, int64_t highest_time_us)
{
	int64_t period = w->panes.early_period_us;
	int64_t multiple = highest_time_us / period - (highest_time_us % period < 0);

	if (multiple <= w->multiple)
		return;
	w->is_early_due = w->multiple != INT64_MIN;
	w->multiple = multiple;
}

enum wm_window_verdict
wm_sessions_add(struct wm_sessions *w, const struct wm_window_record *record, int64_t gap_us, int64_t *missed)
{
	int64_t start_us = record->event_time_us, end_us = start_us + gap_us;
	uint8_t tag;

	assert(!w->is_draining && gap_us > 0);
	if (record->watermark_us > w->watermark_us)
		w->watermark_us = record->watermark_us;
	/* Spark's judgement of the next batch depends on this one's, whatever is in it. */
	w->has_touched = w->mode == WM_MODE_COMPLETE;
	*missed = is_late(w, end_us);
	if (*missed)
		return WM_WINDOW_LATE;
	struct wm_span key = wm_keys_pack(record->keys, w->keys_count, &w->key_text, &tag);
	if (can_hold(w, record->readings, key, end_us)) {
		hold(w, record, key, tag, end_us);
		return WM_WINDOW_USED;
	}
	count_held(w);
	count_record(w, key, tag, wm_hash(key, tag), record->readings, start_us, end_us);
	if (w->panes.early_period_us > 0)
		note_highest(w, record->highest_time_us);
	return WM_WINDOW_USED;
}

int64_t
wm_sessions_due_us(const struct wm_sessions *w)
{
	int64_t due_us = wm_expiry_due_us(&w->expiry);

	if (w->has_touched || w->due_count != 0 || w->is_early_due)
		return WM_TIME_NONE;
	return w->held_end_us < due_us ? w->held_end_us : due_us;
}

/* Writing */

static void
make_ready(struct wm_sessions *w, struct session *session, enum wm_pane_timing pane)
{
	w->ready = wm_grown(w->ready, w->ready_count, &w->ready_capacity, sizeof(w->ready[0]));
	struct ready *ready = &w->ready[w->ready_count++];

	*ready = (struct ready){ session->end_us, session->start_us, wm_keys_prefix(key_of(session)), session, 0, pane,
		false };
	if (!w->has_panes)
		return;
	struct progress *progress = progress_of(w, session);
	ready->pane_index = progress->index++;
	ready->is_empty = w->panes.is_discarding && progress->rows == 0;
	progress->rows = 0;
	unlist_changed(w, progress);
}

static void
lose(struct wm_sessions *w, struct session *session)
{
	w->gone = wm_grown(w->gone, w->gone_count, &w->gone_capacity, sizeof(w->gone[0]));
	w->gone[w->gone_count++] = session;
	__builtin_prefetch(session->newer);
}

/* Late panes, and early ones, as the watermark stands before it moves. */
static void
make_due_ready(struct wm_sessions *w)
{
	for (size_t i = 0; i < w->due_count; i++) {
		struct session *session = w->due[i];
		struct progress *progress = progress_of(w, session);

		progress->is_due = false;
		if (key_of(session)->mark == MARK_RETIRED)
			continue;
		if (is_complete(w, session))
			make_ready(w, session, WM_PANE_LATE);
		else if (w->panes.early_rows > 0 && progress->rows >= w->panes.early_rows)
			make_ready(w, session, WM_PANE_EARLY);
	}
	w->due_count = 0;
	while (w->is_early_due && w->changed_count > 0)
		make_ready(w, w->changed[w->changed_count - 1], WM_PANE_EARLY);
	w->is_early_due = false;
}

/* What the watermark has reached: sessions that are complete by it and were not by the one before, and what need not be kept. */
static void
expire(struct wm_sessions *w, struct session *session, int64_t watermark_us)
{
	if (key_of(session)->mark == MARK_RETIRED) {
		give_session(w, session);
		return;
	}
	if (!wm_is_complete(session->end_us, watermark_us)) {
		move_to_newest_home(w, session);
		wm_expiry_put(&w->expiry, session->end_us, session);
		return;
	}
	if (!wm_is_complete(session->end_us, w->watermark_before_us))
		make_ready(w, session, WM_PANE_ON_TIME);
	if (wm_is_complete(kept_until_us(w, session), watermark_us)) {
		lose(w, session);
		return;
	}
	move_to_newest_home(w, session);
	wm_expiry_put(&w->expiry, kept_until_us(w, session), session);
}

/* Most advances take one session or two, so memory is fetched across them: of sessions that come some places later. */
__attribute__((always_inline)) static inline void
fetch_ahead(const struct wm_sessions *w)
{
	const struct session *session = wm_expiry_ahead(&w->expiry, FETCH_AHEAD);

	if (session != NULL)
		fetch_session(w, session);
}

static void
make_all_ready(struct wm_sessions *w)
{
	size_t at = 0;

	for (struct session *session; (session = wm_places_walk(&w->newest, &at)) != NULL;)
		for (; session != NULL; session = session->older)
			make_ready(w, session, WM_PANE_ON_TIME);
}

static int
compare_ready(const void *a, const void *b)
{
	const struct ready *ready_a = a, *ready_b = b;
	int order;

	if (ready_a->end_us != ready_b->end_us)
		return ready_a->end_us < ready_b->end_us ? -1 : 1;
	if (ready_a->start_us != ready_b->start_us)
		return ready_a->start_us < ready_b->start_us ? -1 : 1;
	if (ready_a->prefix != ready_b->prefix)
		return ready_a->prefix < ready_b->prefix ? -1 : 1;
	order = wm_keys_compare(key_of(ready_a->session), key_of(ready_b->session));
	if (order != 0)
		return order;
	return (ready_a->pane_index > ready_b->pane_index) - (ready_a->pane_index < ready_b->pane_index);
}

/* What few sessions the watermark has reached come nearly in order. */
static void
sort_ready(struct wm_sessions *w)
{
	if (w->ready_count > SORT_BY_INSERTION_MAX) {
		qsort(w->ready, w->ready_count, sizeof(w->ready[0]), compare_ready);
		return;
	}
	for (size_t i = 1; i < w->ready_count; i++) {
		struct ready ready = w->ready[i];
		size_t at = i;

		for (; at > 0 && compare_ready(&w->ready[at - 1], &ready) > 0; at--)
			w->ready[at] = w->ready[at - 1];
		w->ready[at] = ready;
	}
}

/*
 * Takes sessions that the watermark has reached, and prepares what is to be written of them. If there are more than a piece, those
 * that end up to some time alone: the rest is for later, so that it takes no memory, and comes nearly in order. (With panes, rows
 * of all kinds come in one order.)
 */
static void
expire_piece(struct wm_sessions *w)
{
	struct session *sessions[PIECE_MAX], *session;
	size_t count = 0;
	int64_t until_us = w->watermark_us;

	while (count < PIECE_MAX && (session = wm_expiry_take(&w->expiry, until_us)) != NULL) {
		fetch_session(w, session);
		fetch_ahead(w);
		sessions[count++] = session;
	}
	w->is_expiring = count == PIECE_MAX && wm_expiry_due_us(&w->expiry) <= until_us && w->expiry.count != 0;
	if (w->is_expiring && !w->has_panes)
		until_us = wm_expiry_due_us(&w->expiry);
	for (size_t i = 0; i < count; i++)
		expire(w, sessions[i], until_us);
	while (w->is_expiring && (session = wm_expiry_take(&w->expiry, until_us)) != NULL)
		expire(w, session, until_us);
	w->is_expiring &= until_us != w->watermark_us;
	sort_ready(w);
}

/* All that was prepared has been written. */
static void
end_piece(struct wm_sessions *w)
{
	if (w->panes.is_discarding)
		for (size_t i = 0; i < w->ready_count; i++)
			empty_cell(w, w->ready[i].session);
	for (size_t i = 0; i < w->gone_count; i++) {
		if (i + FETCH_AHEAD < w->gone_count)
			fetch_session(w, w->gone[i + FETCH_AHEAD]);
		forget(w, w->gone[i]);
	}
	w->ready_count = w->ready_at = w->gone_count = 0;
}

static void
end_draining(struct wm_sessions *w)
{
	end_piece(w);
	for (; w->is_expiring; end_piece(w))
		expire_piece(w);
	/* A flush of everything is not to be remembered. */
	if (w->ready_capacity > READY_KEPT_MAX || w->gone_capacity > READY_KEPT_MAX) {
		free(w->ready);
		free(w->gone);
		w->ready = NULL;
		w->gone = NULL;
		w->ready_capacity = w->gone_capacity = 0;
	}
	w->is_draining = false;
}

void
wm_sessions_advance(struct wm_sessions *w, int64_t watermark_us)
{
	int64_t before_us = w->watermark_us;
	int64_t after_us = watermark_us > before_us ? watermark_us : before_us;

	if (w->is_draining)
		end_draining(w);
	/* Held records that begin after the watermark touch nothing that it completes. */
	if (w->mode != WM_MODE_APPEND || w->held_start_us <= after_us)
		count_held(w);
	make_due_ready(w);
	w->watermark_us = after_us;
	w->watermark_before_us = before_us;
	w->has_touched = false;
	if (w->mode == WM_MODE_APPEND) {
		expire_piece(w);
	} else if (watermark_us != WM_TIME_END) {
		make_all_ready(w);
		sort_ready(w);
	}
	w->batch++;
	w->is_draining = true;
}

bool
wm_sessions_next(struct wm_sessions *w, struct wm_window_row *row)
{
	if (!w->is_draining)
		return false;
	while (w->ready_at == w->ready_count && w->is_expiring) {
		end_piece(w);
		expire_piece(w);
	}
	if (w->ready_at == w->ready_count) {
		end_draining(w);
		return false;
	}
	const struct ready *ready = &w->ready[w->ready_at++];
	if (w->ready_count - w->ready_at > FETCH_AHEAD)
		fetch_session(w, ready[FETCH_AHEAD].session);
	wm_keys_unpack(key_of(ready->session), w->row_keys, w->keys_count);
	*row = (struct wm_window_row){
		.window_start_us = ready->start_us,
		.window_end_us = ready->end_us,
		.keys = w->row_keys,
		.cell = ready->is_empty ? w->empty_cell : cell_of(ready->session),
		.pane = ready->pane,
		.pane_index = ready->pane_index,
	};
	return true;
}

uint64_t
wm_sessions_open_count(struct wm_sessions *w)
{
	count_held(w);
	return w->counts.groups;
}

size_t
wm_sessions_bytes(const struct wm_sessions *w)
{
	size_t bytes = wm_pools_bytes(&w->pools) + wm_places_bytes(&w->newest) + w->expiry.bytes;

	for (size_t i = 0; i < w->homes_count; i++)
		bytes += w->homes[i].arena.bytes;
	bytes += wm_keyed_bytes(&w->indexes) + w->indexed * INDEXED_BYTES;
	return bytes + w->ready_capacity * sizeof(w->ready[0]) + w->gone_capacity * sizeof(w->gone[0]) +
		(w->due_capacity + w->changed_capacity) * sizeof(w->due[0]);
}

void
wm_sessions_count_updates(struct wm_sessions *w)
{
	assert(w->newest.count == 0);
	w->is_counting = true;
	lay_out(w);
}

struct wm_windowing_counts
wm_sessions_counts(struct wm_sessions *w)
{
	count_held(w);
	return w->counts;
}

/* Checkpoints */

static int
compare_keys(const void *a, const void *b)
{
	return wm_keys_compare(key_of(*(struct session *const *)a), key_of(*(struct session *const *)b));
}

/* The newest session of each key, in the order of the keys. */
static struct session **
sorted_keys(const struct wm_sessions *w)
{
	struct session **all = wm_reallocarray(NULL, w->newest.count, sizeof(all[0]));
	size_t at = 0;

	for (size_t i = 0; i < w->newest.count; i++)
		all[i] = wm_places_walk(&w->newest, &at);
	qsort(all, w->newest.count, sizeof(all[0]), compare_keys);
	return all;
}

static void
encode_session(const struct wm_sessions *w, const struct session *session, struct wm_buf *out)
{
	wm_put_i64(out, session->start_us);
	wm_put_i64(out, session->end_us);
	wm_put_u8(out, is_updated(w, session));
	if (w->has_panes) {
		wm_put_varint(out, progress_of(w, session)->index);
		wm_put_varint(out, progress_of(w, session)->rows);
	}
	wm_agg_cell_encode(w->agg, cell_of(session), out);
}

/*
 * i64 watermark · i64 the one before · i64 multiple · u8 touched | early due << 1 · varint keys, each in order: u8 tag · key ·
 * varint sessions, each: i64 start · i64 end · u8 got a record since the last advance · with panes varint index · varint rows · cell.
 */
void
wm_sessions_encode(struct wm_sessions *w, struct wm_buf *out)
{
	assert(!w->is_draining);
	count_held(w);
	struct session **all = sorted_keys(w);
	wm_put_i64(out, w->watermark_us);
	wm_put_i64(out, w->watermark_before_us);
	wm_put_i64(out, w->multiple);
	wm_put_u8(out, (uint8_t)(w->has_touched | w->is_early_due << 1));
	wm_put_varint(out, w->newest.count);
	for (size_t i = 0; i < w->newest.count; i++) {
		const struct wm_entry *key = key_of(all[i]);
		const struct session *session = all[i];
		uint64_t count = 1;

		for (; session->older != NULL; session = session->older)
			count++;
		wm_put_u8(out, key->tag);
		wm_put_span(out, wm_entry_key(key));
		wm_put_varint(out, count);
		for (; session != NULL; session = session->newer)
			encode_session(w, session, out);
	}
	free(all);
}

static bool
decode_panes(struct wm_sessions *w, struct session *session, uint64_t index, uint64_t rows)
{
	uint64_t cell_rows = wm_agg_cell_rows(w->agg, cell_of(session));

	if (!w->has_panes)
		return cell_rows != 0;
	if (w->panes.is_discarding ? rows != cell_rows : rows > cell_rows || cell_rows == 0)
		return false;
	progress_of(w, session)->index = index;
	progress_of(w, session)->rows = rows;
	if (rows != 0)
		list_rows(w, session);
	return true;
}

/* A session behind those of its key that were decoded before, of which *newest is the last; NULL: there is none. */
static bool
decode_session(struct wm_sessions *w, struct wm_span key, uint8_t tag, struct session **newest, struct wm_get *in)
{
	int64_t start_us = wm_get_i64(in), end_us = wm_get_i64(in);
	uint8_t got_record = wm_get_u8(in);
	uint64_t index = w->has_panes ? wm_get_varint(in) : 0, rows = w->has_panes ? wm_get_varint(in) : 0;

	if (in->failed || got_record > 1 || start_us < -BOUND_US_MAX || end_us > BOUND_US_MAX || start_us >= end_us ||
		(*newest != NULL && (*newest)->end_us >= start_us) || (w->mode == WM_MODE_APPEND && is_late(w, end_us)))
		return false;
	struct session *session = new_session(w, key, tag, start_us, end_us);
	link_session(w, session, hash_of(session), *newest, NULL);
	*newest = session;
	w->counts.groups++;
	set_updated(w, session, got_record != 0);

	struct home *home = newest_home(w);
	struct wm_arena before = home->arena;
	bool is_decoded = wm_agg_cell_decode(w->agg, cell_of(session), &home->arena, in);
	settle(w, session, &before);
	return is_decoded && decode_panes(w, session, index, rows);
}

static bool
decode_group(struct wm_sessions *w, struct wm_get *in)
{
	uint8_t tag = wm_get_u8(in);
	struct wm_span key = wm_get_span(in);
	uint64_t sessions_count = wm_get_varint(in);
	struct session *newest = NULL;

	if (in->failed || sessions_count == 0 || !wm_keys_are_valid(key, tag, w->keys_count) ||
		newest_of(w, key, tag, wm_hash(key, tag)) != NULL)
		return false;
	for (uint64_t i = 0; i < sessions_count; i++) {
		if (!decode_session(w, newest == NULL ? key : wm_entry_key(key_of(newest)), tag, &newest, in))
			return false;
		wm_get_give_back(in);
	}
	return true;
}

bool
wm_sessions_decode(struct wm_sessions *w, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in), watermark_before_us = wm_get_i64(in), multiple = wm_get_i64(in);
	uint8_t flags = wm_get_u8(in);
	uint64_t groups_count = wm_get_varint(in);

	if (in->failed || flags > 3 || w->newest.count != 0)
		return false;
	w->watermark_us = watermark_us;
	w->watermark_before_us = watermark_before_us;
	w->multiple = multiple;
	for (uint64_t i = 0; i < groups_count; i++)
		if (!decode_group(w, in))
			return false;
	w->has_touched = w->mode == WM_MODE_COMPLETE && (flags & 1) != 0;
	w->is_early_due = w->panes.early_period_us > 0 && (flags & 2) != 0;
	return true;
}
