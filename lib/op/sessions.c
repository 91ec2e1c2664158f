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
#include "lib/state/pool.h"

/* Starts and ends are sums of a time and a few durations: far inside int64_t. */
#define BOUND_US_MAX (4 * WM_DURATION_US_MAX)

/*
 * A session, then with panes a struct progress, then its cell. It stands in the
 * expiry once, at its end (complete ones that are kept: at the end of that) or
 * earlier, if it has grown since it was put there.
 */
struct session {
	int64_t start_us, end_us;
	struct wm_entry *entry; /* its key; NULL: it was joined to another and waits for its expiry */
	uint32_t home;          /* of what does not fit the cell, counted from 1; 0: there is nothing */
	uint32_t batch;         /* the last in which it got a record, where updates are counted */
};

/* How far the panes of a session have come. */
struct progress {
	uint64_t index; /* of its next pane */
	uint64_t rows;  /* that are in no pane yet */
	size_t changed; /* its place in the list of what changed, from 1; 0: it is not in it */
	bool is_due;    /* it is in the list of what to look at when the watermark is advanced */
};

/* The value of a key: its sessions, which neither overlap nor touch. Most records belong to the newest. */
struct group {
	struct session *newest;
	struct older *older; /* the others in order; NULL or without any: there is one */
};

struct older {
	uint32_t first, count, capacity; /* a power of two */
	struct session *at[];            /* from first on */
};

/* Lists come from pools up to four sizes. */
#define OLDER_CAPACITY_MIN 4
#define OLDER_POOLS 4

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
 * With many keys nearly every record waits for memory, three or four times: for the place of its key, the entry, the newest
 * session. So records that have been judged are held back for a few more, while that memory is fetched step by step, and
 * counted then, in order. What they hold is copied.
 */
struct held {
	int64_t start_us, end_us;
	uint64_t hash;
	struct wm_span key;
	uint8_t tag;
	struct wm_entry *entry; /* NULL: not known, or none yet */
	struct wm_reading *readings;
	char text[HELD_TEXT_MAX]; /* the key, then the values */
};

#define HELD_MAX 16

/* Records between two steps of one: enough that what was asked for has come. */
#define HELD_STEP 4

#define LINE_BYTES ((size_t)64)
#define LINES_WASTE_MAX 6 /* a part of so many */

/* Sessions taken from the expiry at once, and rows ahead for which memory is fetched. */
#define EXPIRE_MAX 32
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
	size_t cell_at; /* in an object of the pool */
	size_t cell_bytes;

	int64_t watermark_us;
	int64_t watermark_before_us;             /* in force before the last advance */
	struct wm_keyed groups;                  /* struct group */
	struct wm_pool pool;                     /* struct session */
	struct wm_expiry expiry;                 /* append */
	struct wm_pool older_pools[OLDER_POOLS]; /* struct older, by capacity */
	size_t older_bytes;                      /* of longer ones */

	struct home *homes;
	size_t homes_count, homes_capacity;
	uint32_t home_free; /* counted from 1 */
	uint32_t home;      /* where new sessions go; 0: a new one */
	void *cell;         /* while a session moves */

	struct held held[HELD_MAX]; /* a ring, by number */
	uint64_t held_next;         /* the number of the next record */
	uint64_t held_placed;       /* of the first whose entry was not asked for yet */
	uint64_t held_found;        /* of the first whose session was not asked for yet */
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

	uint32_t batch; /* advances, to tell what got a record since the last */
	bool is_counting;
	struct wm_windowing_counts counts;

	struct wm_buf key_text; /* the key of the current record, where it has several columns */
	struct wm_value *row_keys;
};

/* Lists of sessions */

static size_t
older_size(size_t capacity)
{
	return sizeof(struct older) + capacity * sizeof(struct session *);
}

/* The pool for lists of a capacity; NULL: they have memory of their own. */
static struct wm_pool *
older_pool(struct wm_sessions *w, size_t capacity)
{
	unsigned number = (unsigned)__builtin_ctzll(capacity / OLDER_CAPACITY_MIN);

	return number < OLDER_POOLS ? &w->older_pools[number] : NULL;
}

static struct older *
older_new(struct wm_sessions *w, size_t capacity)
{
	struct wm_pool *pool = older_pool(w, capacity);
	struct older *older = pool != NULL ? wm_pool_take(pool) : wm_malloc(older_size(capacity));

	assert(capacity <= UINT32_MAX);
	*older = (struct older){ .capacity = (uint32_t)capacity };
	if (pool == NULL)
		w->older_bytes += older_size(capacity);
	return older;
}

static void
older_free(struct wm_sessions *w, struct older *older)
{
	struct wm_pool *pool = older == NULL ? NULL : older_pool(w, older->capacity);

	if (pool != NULL) {
		wm_pool_give(pool, older);
	} else if (older != NULL) {
		w->older_bytes -= older_size(older->capacity);
		free(older);
	}
}

/* Whole lines of the cache, where that wastes little: one less to wait for, for every other session. */
static size_t
object_bytes(size_t bytes)
{
	size_t lines = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;

	return lines - bytes <= bytes / LINES_WASTE_MAX ? lines : bytes;
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
	w->cell_at = sizeof(struct session) + (w->has_panes ? sizeof(struct progress) : 0);
	w->cell_bytes = wm_agg_cell_bytes(agg);
	w->watermark_us = w->watermark_before_us = spark ? 0 : WM_TIME_NONE;
	wm_keyed_init(&w->groups, sizeof(struct group));
	wm_pool_init(&w->pool, object_bytes(w->cell_at + w->cell_bytes));
	for (size_t i = 0; i < OLDER_POOLS; i++)
		wm_pool_init(&w->older_pools[i], older_size((size_t)OLDER_CAPACITY_MIN << i));
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
	for (struct wm_entry *entry; (entry = wm_keyed_next(&w->groups, &at)) != NULL;)
		older_free(w, ((struct group *)wm_entry_value(entry))->older);
	for (size_t i = 0; i < OLDER_POOLS; i++)
		wm_pool_release(&w->older_pools[i]);
	wm_keyed_release(&w->groups);
	wm_pool_release(&w->pool);
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
cell_of(const struct wm_sessions *w, struct session *session)
{
	return (char *)session + w->cell_at;
}

static struct progress *
progress_of(struct session *session)
{
	return (struct progress *)(session + 1);
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

	wm_agg_cell_add(w->agg, cell_of(w, session), &home->arena, readings, event_time_us);
	if (session->home == 0)
		settle(w, session, &before);
}

static void
merge_into_cell(struct wm_sessions *w, struct session *session, const void *from)
{
	struct home *home = session->home != 0 ? home_at(w, session->home) : newest_home(w);
	struct wm_arena before = home->arena;

	wm_agg_cell_merge(w->agg, cell_of(w, session), &home->arena, from);
	if (session->home == 0)
		settle(w, session, &before);
}

static void
move_to_newest_home(struct wm_sessions *w, struct session *session)
{
	struct session old = *session;

	if (old.home == 0 || old.home == w->home)
		return;
	memcpy(w->cell, cell_of(w, session), w->cell_bytes);
	wm_agg_cell_init(w->agg, cell_of(w, session));
	session->home = 0;
	merge_into_cell(w, session, w->cell);
	leave_home(w, &old);
}

static void
empty_cell(struct wm_sessions *w, struct session *session)
{
	wm_agg_cell_init(w->agg, cell_of(w, session));
	leave_home(w, session);
}

/* The sessions of a key, by their place in order */

static size_t
group_count(const struct group *group)
{
	return (group->newest != NULL) + (group->older == NULL ? 0 : group->older->count);
}

static struct session **
group_at(struct group *group, size_t place)
{
	struct older *older = group->older;

	return older == NULL || place == older->count ? &group->newest : &older->at[older->first + place];
}

/* The place of the first session that ends at a time or later. */
static size_t
group_seek(struct group *group, int64_t time_us)
{
	size_t low = 0, high = group_count(group);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((*group_at(group, middle))->end_us < time_us)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Begins the list at its first place, with another capacity or the same. */
static void
older_fit(struct wm_sessions *w, struct group *group, size_t capacity)
{
	struct older *older = group->older;

	if (older == NULL) {
		group->older = older_new(w, capacity);
		return;
	}
	if (capacity == older->capacity) {
		memmove(older->at, older->at + older->first, older->count * sizeof(older->at[0]));
		older->first = 0;
		return;
	}
	group->older = older_new(w, capacity);
	group->older->count = older->count;
	memcpy(group->older->at, older->at + older->first, older->count * sizeof(older->at[0]));
	older_free(w, older);
}

static void
group_insert(struct wm_sessions *w, struct group *group, size_t place, struct session *session)
{
	struct older *older = group->older;

	if (group->newest == NULL) {
		group->newest = session;
		return;
	}
	if (older == NULL)
		older_fit(w, group, OLDER_CAPACITY_MIN);
	else if (older->first + older->count == older->capacity)
		older_fit(w, group, older->first >= older->capacity / 4 ? older->capacity : older->capacity * 2);
	older = group->older;
	if (place > older->count) {
		struct session *newest = group->newest;

		group->newest = session;
		session = newest;
		place = older->count;
	}
	struct session **at = older->at + older->first + place;
	memmove(at + 1, at, (older->count - place) * sizeof(older->at[0]));
	*at = session;
	older->count++;
}

static void
group_remove(struct wm_sessions *w, struct group *group, size_t place)
{
	struct older *older = group->older;

	if (older == NULL || older->count == 0) {
		group->newest = NULL;
		return;
	}
	if (place == older->count) {
		group->newest = older->at[older->first + place - 1];
	} else if (place == 0) {
		older->first++;
	} else {
		struct session **at = older->at + older->first + place;

		memmove(at, at + 1, (older->count - place - 1) * sizeof(older->at[0]));
	}
	older->count--;
	if (older->count < older->capacity / 4 && older->capacity > OLDER_CAPACITY_MIN)
		older_fit(w, group, older->capacity / 2);
}

/* Forgets a session; the key too when it was the last. */
static void
forget(struct wm_sessions *w, struct session *session)
{
	struct wm_entry *entry = session->entry;
	struct group *group = wm_entry_value(entry);

	leave_home(w, session);
	/* Nearly always the oldest: found without a look at the others. */
	group_remove(w, group, *group_at(group, 0) == session ? 0 : group_seek(group, session->end_us));
	wm_pool_give(&w->pool, session);
	w->counts.groups--;
	w->counts.removed++;
	if (group->newest != NULL)
		return;
	older_free(w, group->older);
	for (size_t i = 0; i < HELD_MAX; i++)
		if (w->held[i].entry == entry)
			w->held[i].entry = NULL;
	wm_keyed_take(&w->groups, entry);
}

/* Changed and due sessions */

static void
unlist_changed(struct wm_sessions *w, struct progress *progress)
{
	if (progress->changed == 0)
		return;
	struct session *last = w->changed[--w->changed_count];
	w->changed[progress->changed - 1] = last;
	progress_of(last)->changed = progress->changed;
	progress->changed = 0;
}

/* A session has rows that are in no pane: says when that is to be looked at. */
static void
list_rows(struct wm_sessions *w, struct session *session)
{
	struct progress *progress = progress_of(session);
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
new_session(struct wm_sessions *w, struct wm_entry *entry, int64_t start_us, int64_t end_us)
{
	struct session *session = wm_pool_take(&w->pool);

	*session = (struct session){ .start_us = start_us, .end_us = end_us, .entry = entry };
	if (w->has_panes)
		*progress_of(session) = (struct progress){ 0 };
	wm_agg_cell_init(w->agg, cell_of(w, session));
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
		unlist_changed(w, progress_of(session));
	session->entry = NULL;
	if (w->mode != WM_MODE_APPEND)
		wm_pool_give(&w->pool, session);
}

static void
absorb(struct wm_sessions *w, struct session *into, struct session *from)
{
	merge_into_cell(w, into, cell_of(w, from));
	if (w->has_panes)
		progress_of(into)->rows += progress_of(from)->rows;
	if (from->batch == w->batch)
		into->batch = from->batch;
	retire(w, from);
}

/*
 * Gives a session new bounds, and the number of its next pane with them. A complete one that is open again is put into the expiry
 * anew, at its end, which comes before the time at which it stands there: as another session in its place.
 */
static void
change_bounds(struct wm_sessions *w, struct session **place, int64_t start_us, int64_t end_us)
{
	struct session *session = *place;
	bool was_complete = is_complete(w, session);

	session->start_us = start_us;
	session->end_us = end_us;
	if (!w->has_panes)
		return;
	progress_of(session)->index = 0;
	if (!was_complete || is_complete(w, session))
		return;
	*place = new_session(w, session->entry, start_us, end_us);
	absorb(w, *place, session);
}

/* The session that a record's own one, [start, end), belongs to: a new one, or what it touches, made one. */
static struct session *
session_for(struct wm_sessions *w, struct wm_entry *entry, int64_t start_us, int64_t end_us)
{
	struct group *group = wm_entry_value(entry);
	size_t first, last, count = group_count(group);
	bool is_behind = count == 0 || start_us > group->newest->end_us;

	if (!is_behind && start_us >= group->newest->start_us) {
		if (end_us > group->newest->end_us)
			change_bounds(w, &group->newest, group->newest->start_us, end_us);
		return group->newest;
	}
	first = is_behind ? count : group_seek(group, start_us);
	for (last = first; last < count && (*group_at(group, last))->start_us <= end_us;)
		last++;
	if (first == last) {
		struct session *session = new_session(w, entry, start_us, end_us);

		group_insert(w, group, first, session);
		w->counts.groups++;
		return session;
	}
	/* Into the last: where the result is open and one of its parts was, that was. */
	struct session *into = *group_at(group, last - 1);
	if ((*group_at(group, first))->start_us < start_us)
		start_us = (*group_at(group, first))->start_us;
	if (into->end_us > end_us)
		end_us = into->end_us;
	for (size_t i = first; i < last - 1; i++) {
		absorb(w, into, *group_at(group, first));
		group_remove(w, group, first);
		w->counts.groups--;
		w->counts.removed++;
	}
	if (start_us != into->start_us || end_us != into->end_us)
		change_bounds(w, group_at(group, first), start_us, end_us);
	return *group_at(group, first);
}

static bool
is_late(const struct wm_sessions *w, int64_t end_us)
{
	if (w->mode == WM_MODE_APPEND)
		return wm_is_complete(end_us + w->panes.allowed_lateness_us, w->watermark_us);
	return w->is_spark && wm_is_complete(end_us, w->watermark_before_us);
}

static struct wm_entry *
entry_for(struct wm_sessions *w, struct wm_span key, uint8_t tag, uint64_t hash)
{
	bool is_new;
	struct wm_entry *entry = wm_keyed_put(&w->groups, key, tag, hash, &is_new);

	if (is_new)
		*(struct group *)wm_entry_value(entry) = (struct group){ .newest = NULL };
	return entry;
}

static void
count_record(struct wm_sessions *w, struct wm_entry *entry, const struct wm_reading *readings, int64_t start_us,
	int64_t end_us)
{
	struct session *session = session_for(w, entry, start_us, end_us);

	add_to_cell(w, session, readings, start_us);
	if (w->is_counting && session->batch != w->batch) {
		session->batch = w->batch;
		w->counts.updated++;
	}
	if (w->has_panes) {
		progress_of(session)->rows++;
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
	size_t bytes = w->pool.object_bytes < 256 ? w->pool.object_bytes : 256;

	for (size_t at = 0; at < bytes; at += 64)
		__builtin_prefetch((const char *)session + at);
	__builtin_prefetch((const char *)session + bytes - 1);
}

/* The steps of held records: each takes all before a number on that have not taken it yet. */

static void
step_placed(struct wm_sessions *w, uint64_t until)
{
	for (; w->held_placed < until; w->held_placed++)
		wm_keyed_fetch_entry(&w->groups, held_at(w, w->held_placed)->hash);
}

static void
step_found(struct wm_sessions *w, uint64_t until)
{
	for (; w->held_found < until; w->held_found++) {
		struct held *held = held_at(w, w->held_found);

		held->entry = wm_keyed_find(&w->groups, held->key, held->tag, held->hash);
		if (held->entry == NULL)
			continue;
		const struct group *group = wm_entry_value(held->entry);
		fetch_session(w, group->newest);
		if (group->older != NULL)
			__builtin_prefetch(group->older);
	}
}

static void
step_counted(struct wm_sessions *w, uint64_t until)
{
	for (; w->held_first < until; w->held_first++) {
		struct held *held = held_at(w, w->held_first);
		struct wm_entry *entry = held->entry;

		if (entry == NULL)
			entry = entry_for(w, held->key, held->tag, held->hash);
		held->entry = NULL;
		count_record(w, entry, held->readings, held->start_us, held->end_us);
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
	wm_keyed_fetch_place(&w->groups, held->hash);
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
	count_record(w, entry_for(w, key, tag, wm_hash(key, tag)), record->readings, start_us, end_us);
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

	*ready = (struct ready){ session->end_us, session->start_us, wm_keys_prefix(session->entry), session, 0, pane,
		false };
	if (!w->has_panes)
		return;
	struct progress *progress = progress_of(session);
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
	__builtin_prefetch(((const struct group *)wm_entry_value(session->entry))->older);
}

/* Late panes, and early ones, as the watermark stands before it moves. */
static void
make_due_ready(struct wm_sessions *w)
{
	for (size_t i = 0; i < w->due_count; i++) {
		struct session *session = w->due[i];
		struct progress *progress = progress_of(session);

		progress->is_due = false;
		if (session->entry == NULL)
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
expire(struct wm_sessions *w, struct session *session, int64_t before_us)
{
	if (session->entry == NULL) {
		wm_pool_give(&w->pool, session);
		return;
	}
	if (!is_complete(w, session)) {
		move_to_newest_home(w, session);
		wm_expiry_put(&w->expiry, session->end_us, session);
		return;
	}
	if (!wm_is_complete(session->end_us, before_us))
		make_ready(w, session, WM_PANE_ON_TIME);
	if (wm_is_complete(kept_until_us(w, session), w->watermark_us)) {
		lose(w, session);
		return;
	}
	move_to_newest_home(w, session);
	wm_expiry_put(&w->expiry, kept_until_us(w, session), session);
}

/*
 * Most advances take one session or two, so memory is fetched across them: of sessions that come some places later, then of
 * their keys, then of the lists in those.
 */
__attribute__((always_inline)) static inline void
fetch_ahead(const struct wm_sessions *w)
{
	const struct session *session = wm_expiry_ahead(&w->expiry, 3 * FETCH_AHEAD);

	if (session != NULL)
		fetch_session(w, session);
	session = wm_expiry_ahead(&w->expiry, 2 * FETCH_AHEAD);
	if (session != NULL && session->entry != NULL)
		wm_keyed_fetch(&w->groups, session->entry);
	session = wm_expiry_ahead(&w->expiry, FETCH_AHEAD);
	if (session != NULL && session->entry != NULL)
		__builtin_prefetch(((const struct group *)wm_entry_value(session->entry))->older);
}

/* In groups of which each step has its memory fetched by the one before. */
static void
expire_all(struct wm_sessions *w, int64_t before_us)
{
	struct session *sessions[EXPIRE_MAX];
	size_t sessions_count;

	do {
		sessions_count = 0;
		while (sessions_count < EXPIRE_MAX &&
			(sessions[sessions_count] = wm_expiry_take(&w->expiry, w->watermark_us)) != NULL) {
			fetch_session(w, sessions[sessions_count++]);
			fetch_ahead(w);
		}
		for (size_t i = 0; i < sessions_count; i++)
			wm_keyed_fetch(&w->groups, sessions[i]->entry);
		for (size_t i = 0; i < sessions_count; i++)
			expire(w, sessions[i], before_us);
	} while (sessions_count == EXPIRE_MAX);
}

static void
make_all_ready(struct wm_sessions *w)
{
	size_t at = 0;

	for (struct wm_entry *entry; (entry = wm_keyed_next(&w->groups, &at)) != NULL;) {
		struct group *group = wm_entry_value(entry);

		for (size_t place = 0; place < group_count(group); place++)
			make_ready(w, *group_at(group, place), WM_PANE_ON_TIME);
	}
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
	order = wm_keys_compare(ready_a->session->entry, ready_b->session->entry);
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

static void
end_draining(struct wm_sessions *w)
{
	if (w->panes.is_discarding)
		for (size_t i = 0; i < w->ready_count; i++)
			empty_cell(w, w->ready[i].session);
	for (size_t i = 0; i < w->gone_count; i++) {
		if (i + 2 * FETCH_AHEAD < w->gone_count)
			fetch_session(w, w->gone[i + 2 * FETCH_AHEAD]);
		if (i + FETCH_AHEAD < w->gone_count)
			wm_keyed_fetch(&w->groups, w->gone[i + FETCH_AHEAD]->entry);
		forget(w, w->gone[i]);
	}
	/* A flush of everything is not to be remembered. */
	if (w->ready_capacity > READY_KEPT_MAX || w->gone_capacity > READY_KEPT_MAX) {
		free(w->ready);
		free(w->gone);
		w->ready = NULL;
		w->gone = NULL;
		w->ready_capacity = w->gone_capacity = 0;
	}
	w->ready_count = w->ready_at = w->gone_count = 0;
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
	if (w->mode == WM_MODE_APPEND)
		expire_all(w, before_us);
	else if (watermark_us != WM_TIME_END)
		make_all_ready(w);
	sort_ready(w);
	w->batch++;
	w->is_draining = true;
}

bool
wm_sessions_next(struct wm_sessions *w, struct wm_window_row *row)
{
	if (!w->is_draining)
		return false;
	if (w->ready_at == w->ready_count) {
		end_draining(w);
		return false;
	}
	const struct ready *ready = &w->ready[w->ready_at++];
	if (w->ready_count - w->ready_at > 2 * FETCH_AHEAD)
		fetch_session(w, ready[2 * FETCH_AHEAD].session);
	if (w->ready_count - w->ready_at > FETCH_AHEAD)
		wm_keyed_fetch(&w->groups, ready[FETCH_AHEAD].session->entry);
	wm_keys_unpack(ready->session->entry, w->row_keys, w->keys_count);
	*row = (struct wm_window_row){
		.window_start_us = ready->start_us,
		.window_end_us = ready->end_us,
		.keys = w->row_keys,
		.cell = ready->is_empty ? w->empty_cell : cell_of(w, ready->session),
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
	size_t bytes = w->pool.bytes + w->groups.bytes + w->older_bytes + w->expiry.bytes;

	for (size_t i = 0; i < w->homes_count; i++)
		bytes += w->homes[i].arena.bytes;
	for (size_t i = 0; i < OLDER_POOLS; i++)
		bytes += w->older_pools[i].bytes;
	return bytes + w->ready_capacity * sizeof(w->ready[0]) + w->gone_capacity * sizeof(w->gone[0]) +
		(w->due_capacity + w->changed_capacity) * sizeof(w->due[0]);
}

void
wm_sessions_count_updates(struct wm_sessions *w)
{
	w->is_counting = true;
}

struct wm_windowing_counts
wm_sessions_counts(struct wm_sessions *w)
{
	count_held(w);
	return w->counts;
}

/* Checkpoints */

/* All keys in order. */
static struct wm_entry **
sorted_entries(const struct wm_sessions *w)
{
	struct wm_entry **entries = wm_reallocarray(NULL, w->groups.count, sizeof(struct wm_entry *));
	size_t at = 0;

	for (size_t i = 0; i < w->groups.count; i++)
		entries[i] = wm_keyed_next(&w->groups, &at);
	qsort(entries, w->groups.count, sizeof(struct wm_entry *), wm_keys_compare_pointers);
	return entries;
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
	struct wm_entry **entries = sorted_entries(w);
	wm_put_i64(out, w->watermark_us);
	wm_put_i64(out, w->watermark_before_us);
	wm_put_i64(out, w->multiple);
	wm_put_u8(out, (uint8_t)(w->has_touched | w->is_early_due << 1));
	wm_put_varint(out, w->groups.count);
	for (size_t i = 0; i < w->groups.count; i++) {
		struct group *group = wm_entry_value(entries[i]);

		wm_put_u8(out, entries[i]->tag);
		wm_put_span(out, wm_entry_key(entries[i]));
		wm_put_varint(out, group_count(group));
		for (size_t place = 0; place < group_count(group); place++) {
			struct session *session = *group_at(group, place);

			wm_put_i64(out, session->start_us);
			wm_put_i64(out, session->end_us);
			wm_put_u8(out, session->batch == w->batch);
			if (w->has_panes) {
				wm_put_varint(out, progress_of(session)->index);
				wm_put_varint(out, progress_of(session)->rows);
			}
			wm_agg_cell_encode(w->agg, cell_of(w, session), out);
		}
	}
	free(entries);
}

static bool
decode_panes(struct wm_sessions *w, struct session *session, uint64_t index, uint64_t rows)
{
	uint64_t cell_rows = wm_agg_cell_rows(w->agg, cell_of(w, session));

	if (!w->has_panes)
		return cell_rows != 0;
	if (w->panes.is_discarding ? rows != cell_rows : rows > cell_rows || cell_rows == 0)
		return false;
	progress_of(session)->index = index;
	progress_of(session)->rows = rows;
	if (rows != 0)
		list_rows(w, session);
	return true;
}

/* A session behind those of its key that were decoded before. */
static bool
decode_session(struct wm_sessions *w, struct wm_entry *entry, struct wm_get *in)
{
	struct group *group = wm_entry_value(entry);
	int64_t start_us = wm_get_i64(in), end_us = wm_get_i64(in);
	uint8_t got_record = wm_get_u8(in);
	uint64_t index = w->has_panes ? wm_get_varint(in) : 0, rows = w->has_panes ? wm_get_varint(in) : 0;

	if (in->failed || got_record > 1 || start_us < -BOUND_US_MAX || end_us > BOUND_US_MAX || start_us >= end_us ||
		(group->newest != NULL && group->newest->end_us >= start_us) ||
		(w->mode == WM_MODE_APPEND && is_late(w, end_us)))
		return false;
	struct session *session = new_session(w, entry, start_us, end_us);
	group_insert(w, group, group_count(group), session);
	w->counts.groups++;
	if (got_record != 0)
		session->batch = w->batch;

	struct home *home = newest_home(w);
	struct wm_arena before = home->arena;
	bool is_decoded = wm_agg_cell_decode(w->agg, cell_of(w, session), &home->arena, in);
	settle(w, session, &before);
	return is_decoded && decode_panes(w, session, index, rows);
}

static bool
decode_group(struct wm_sessions *w, struct wm_get *in)
{
	uint8_t tag = wm_get_u8(in);
	struct wm_span key = wm_get_span(in);
	uint64_t sessions_count = wm_get_varint(in);
	size_t groups_before = w->groups.count;

	if (in->failed || sessions_count == 0 || !wm_keys_are_valid(key, tag, w->keys_count))
		return false;
	struct wm_entry *entry = entry_for(w, key, tag, wm_hash(key, tag));
	if (w->groups.count == groups_before)
		return false;
	for (uint64_t i = 0; i < sessions_count; i++) {
		wm_get_give_back(in);
		if (!decode_session(w, entry, in))
			return false;
	}
	return true;
}

bool
wm_sessions_decode(struct wm_sessions *w, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in), watermark_before_us = wm_get_i64(in), multiple = wm_get_i64(in);
	uint8_t flags = wm_get_u8(in);
	uint64_t groups_count = wm_get_varint(in);

	if (in->failed || flags > 3 || w->groups.count != 0)
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
