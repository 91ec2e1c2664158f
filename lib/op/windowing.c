/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/windowing.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/arena.h"
#include "lib/base/hash.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/op/fill.h"
#include "lib/op/keys.h"
#include "lib/op/slices.h"
#include "lib/time/civil.h"

/* Records out of order go to many slices in turn, but those are close together. */
#define NEAR_SLICES 64

/* How many rows ahead the memory of a row is fetched while windows are written. */
#define ROWS_AHEAD 8

/* Rows for which memory is kept from one advance to the next. */
#define READY_KEPT_MAX ((size_t)1 << 16)

/*
 * With many keys a record waits for memory, for the place of its key and for its entry. So records for a slice with so many
 * keys are held back, once they have been judged, for a few more, while that memory is fetched, and
 * counted then, in order. What they hold is copied.
 */
#define HELD_FROM_KEYS 4096
#define HELD_MAX 16
#define HELD_STEP 5       /* records between two steps of one: enough that what was asked for has come */
#define HELD_TEXT_MAX 256 /* more is not worth copying */

struct held {
	struct wm_cells *cells;
	int64_t event_time_us;
	uint64_t hash;
	struct wm_span key;
	uint8_t tag;
	struct wm_reading *readings;
	char text[HELD_TEXT_MAX]; /* the key, then the values */
};

/* Marks of an entry. */
#define MARK_UPDATED 1 /* in touched */
#define MARK_CHANGED 2 /* in changed */
#define MARK_DUE 4     /* in due */

/* What is known of the panes of a window and key. Inline: it stands behind the cell of that window and key. */
struct pane {
	uint64_t count; /* panes written */
	uint64_t rows;  /* records since the last one; inline only */
};

/* An early or late pane that the next advance writes. */
struct due {
	int64_t window_number;
	struct wm_entry *entry; /* with its struct pane */
	const void *cell;
	uint64_t prefix;
};

/*
 * Rows that wait to be drained are struct wm_keys_item: a key, and its cell. In append all are of one window, ready_number,
 * and number is the pane: index, enum wm_pane_timing and whether it is a filler, so that an early pane of a key stands before its on-time
 * pane. In update and complete number is that of the window, and word the rank of the key.
 */
#define PANE_INDEX_MAX ((UINT64_C(1) << 60) - 1)

static uint64_t
pane_number(uint64_t index, enum wm_pane_timing timing, bool is_filler)
{
	return (index & PANE_INDEX_MAX) << 3 | (uint64_t)timing << 1 | is_filler;
}

static uint64_t
pane_index(const struct wm_keys_item *ready)
{
	return ready->number >> 3;
}

static enum wm_pane_timing
pane_timing(const struct wm_keys_item *ready)
{
	return (enum wm_pane_timing)(ready->number >> 1 & 3);
}

static bool
is_filler(const struct wm_keys_item *ready)
{
	return (ready->number & 1) != 0;
}

/* Where nothing else is said it is that of the entry, which is not looked at before it is needed. */
static const void *
cell_of(const struct wm_keys_item *ready)
{
	return ready->value != NULL || is_filler(ready) ? ready->value : wm_entry_value(ready->entry);
}

struct wm_windowing {
	const struct wm_windows *windows;
	const struct wm_agg *agg;
	size_t keys_count;
	enum wm_window_mode mode;
	int64_t lateness_us; /* 0 in complete */
	struct wm_pane_options panes;
	bool has_panes;   /* append: a window may be written more than once */
	bool is_inline;   /* has_panes: struct pane stands with the cells, else in pane_windows */
	bool is_carrying; /* cumulating: what is written goes on into the next step, so that a window is one slice */
	bool is_counting_windows; /* its groups are asked for by window */
	bool is_watching;         /* there is more to do with a record than to aggregate it */

	int64_t watermark_us;
	/*
	 * All windows before window_next are complete, and in append written; those before window_kept take no more
	 * records. settle() brings both up to the watermark.
	 */
	int64_t window_next;
	int64_t window_kept;
	int64_t due_us;
	struct wm_slices slices;
	unsigned near_shift;
	struct wm_cells *near[NEAR_SLICES]; /* by time >> near_shift: where records of it went; NULL: none yet */

	/* update, and where updates are counted: what got a record since the last advance */
	struct wm_member *touched;
	size_t touched_count, touched_capacity;
	bool has_touched; /* update, complete: a record came since then */
	bool is_counting;
	struct wm_windowing_counts counts;

	/* early panes by period: what got a record since the last ones, in slices with open windows */
	struct wm_member *changed;
	size_t changed_count, changed_capacity;
	int64_t multiple; /* of the period, that the highest event time is in; INT64_MIN: before the first record */
	bool is_period_due;

	struct wm_ordered
		pane_windows; /* struct wm_table of struct pane by key, by window number: where one had a pane before or after its completion */
	struct due *due;
	size_t due_count, due_capacity, due_at;
	int64_t due_open; /* due panes of windows before this one are late */
	void *empty_cell; /* discarding: nothing new */

	struct wm_fill *fill;

	struct held held[HELD_MAX]; /* a ring, by number */
	uint64_t held_next;         /* the number of the next record */
	uint64_t held_placed;       /* of the first whose entry was not asked for yet */
	uint64_t held_first;        /* of the first that was not counted yet */
	size_t readings_count;

	struct wm_keys_item *ready;
	size_t ready_count, ready_capacity, ready_at;
	int64_t ready_number, ready_start_us, ready_end_us;
	bool is_draining;
	struct wm_arena ready_arena; /* of cells combined for single keys */
	struct wm_pause pause;       /* while very many rows are made ready */

	struct wm_buf key_text; /* the key of the current record, where it has several columns */
	struct wm_value *row_keys;
};

/* A watermark less a duration; its ends stay. */
static int64_t
watermark_less(int64_t watermark_us, int64_t duration_us)
{
	return watermark_us == WM_TIME_NONE || watermark_us == WM_TIME_END ? watermark_us : watermark_us - duration_us;
}

/* All windows that are complete at the watermark are behind: those that hold something were written when it was due. */
static void
settle(struct wm_windowing *w)
{
	int64_t open_lag_us = w->mode == WM_MODE_UPDATE ? w->lateness_us : 0;
	int64_t next = wm_window_first_open(w->windows, watermark_less(w->watermark_us, open_lag_us));

	if (next > w->window_next)
		w->window_next = next;
	w->window_kept = w->lateness_us == open_lag_us
		? w->window_next
		: wm_window_first_open(w->windows, watermark_less(w->watermark_us, w->lateness_us));
}

struct wm_windowing *
wm_windowing_new(const struct wm_windows *windows, const struct wm_agg *agg, size_t keys_count,
	enum wm_window_mode mode, const struct wm_pane_options *panes, bool spark)
{
	struct wm_windowing *w = wm_calloc(1, sizeof(struct wm_windowing));
	bool is_disjoint = wm_windows_are_disjoint(windows);

	w->windows = windows;
	w->agg = agg;
	w->keys_count = keys_count;
	w->mode = mode;
	if (panes != NULL)
		w->panes = *panes;
	assert(mode == WM_MODE_APPEND ||
		(!w->panes.is_discarding && w->panes.early_rows == 0 && w->panes.early_period_us == 0));
	w->lateness_us = mode == WM_MODE_COMPLETE ? 0 : w->panes.allowed_lateness_us;
	w->has_panes = mode == WM_MODE_APPEND && wm_pane_options_many(&w->panes);
	bool is_apart = w->has_panes && !is_disjoint && (w->panes.is_discarding || w->panes.early_rows != 0);
	w->is_inline = w->has_panes && (is_disjoint || is_apart);
	w->is_carrying = mode == WM_MODE_APPEND && !w->has_panes && windows->steps != 0;
	w->is_watching = mode != WM_MODE_APPEND || w->has_panes;
	w->is_counting_windows = spark && !is_disjoint;
	w->watermark_us = spark ? 0 : WM_TIME_NONE;
	w->window_next = w->window_kept = INT64_MIN;
	settle(w);
	w->due_us = WM_TIME_END;
	/* A slice has one place or two, so that neighbours have places of their own. */
	for (int64_t us = windows->calendar == WM_CALENDAR_NONE ? windows->slide_us : WM_US_PER_DAY; us > 1; us /= 2)
		w->near_shift++;
	w->multiple = INT64_MIN;
	wm_slices_init(&w->slices, windows, agg, w->is_inline ? sizeof(struct pane) : 0, is_apart);
	if (w->has_panes && w->panes.is_discarding) {
		w->empty_cell = wm_malloc(wm_agg_cell_bytes(agg));
		wm_agg_cell_init(agg, w->empty_cell);
	}
	w->readings_count = wm_agg_columns_count(agg);
	for (size_t i = 0; i < HELD_MAX; i++)
		w->held[i].readings = wm_calloc(w->readings_count, sizeof(struct wm_reading));
	wm_buf_init(&w->key_text, WM_BUF_UNBOUNDED);
	w->row_keys = wm_calloc(keys_count, sizeof(struct wm_value));
	return w;
}

void
wm_windowing_fill(struct wm_windowing *w, bool with_previous)
{
	assert(w->mode == WM_MODE_APPEND && !w->has_panes && wm_windows_are_disjoint(w->windows));
	w->fill = wm_fill_new(w->agg, with_previous);
}

void
wm_windowing_set_pause(struct wm_windowing *w, const struct wm_pause *pause)
{
	w->pause = *pause;
}

static void
free_table(struct wm_table *table)
{
	wm_table_release(table);
	free(table);
}

void
wm_windowing_free(struct wm_windowing *w)
{
	if (w == NULL)
		return;
	struct wm_ordered_at at = wm_ordered_seek(&w->pane_windows, INT64_MIN);
	for (struct wm_table *table; (table = wm_ordered_next(&w->pane_windows, &at, NULL)) != NULL;)
		free_table(table);
	wm_ordered_release(&w->pane_windows);
	wm_slices_release(&w->slices);
	wm_fill_free(w->fill);
	wm_arena_release(&w->ready_arena);
	for (size_t i = 0; i < HELD_MAX; i++)
		free(w->held[i].readings);
	free(w->touched);
	free(w->changed);
	free(w->due);
	free(w->empty_cell);
	free(w->ready);
	wm_buf_release(&w->key_text);
	free(w->row_keys);
	free(w);
}

/* Adding */

/* The watermark at which the first window of a slice takes no more records. */
static int64_t
first_gone_us(const struct wm_windowing *w, const struct wm_slice *at)
{
	return w->mode == WM_MODE_COMPLETE ? WM_TIME_END : at->window_first_end_us + w->lateness_us;
}

/* When there is something to do for a slice: a window of it is to be written or forgotten. */
static int64_t
slice_due_us(const struct wm_windowing *w, const struct wm_slice *at)
{
	if (w->mode == WM_MODE_COMPLETE)
		return WM_TIME_END;
	if (w->mode == WM_MODE_UPDATE || at->window_last < w->window_next)
		return at->window_last_end_us + w->lateness_us;
	if (at->window_first >= w->window_next)
		return at->window_first_end_us;
	return wm_window_end_us(w->windows, w->window_next);
}

/* Of the windows of a slice, how many take no more records. */
static int64_t
windows_missed(struct wm_windowing *w, const struct wm_slice *at, int64_t gone_us)
{
	if (!wm_is_complete(gone_us, w->watermark_us) || w->mode == WM_MODE_COMPLETE)
		return 0;
	settle(w);
	int64_t open = at->window_last < w->window_kept ? at->window_last + 1 : w->window_kept;
	return open - at->window_first;
}

static struct wm_cells *
cells_at(struct wm_windowing *w, const struct wm_slice *at)
{
	struct wm_cells *cells = wm_slices_at(&w->slices, at);
	int64_t due_us = slice_due_us(w, at);

	cells->first_gone_us = first_gone_us(w, at);
	if (due_us < w->due_us)
		w->due_us = due_us;
	return cells;
}

/* Where the slice that a time was last in is remembered; another part of the time line may be there: cells_hold() tells. */
static inline struct wm_cells **
near_cells(struct wm_windowing *w, int64_t event_time_us)
{
	return &w->near[(uint64_t)event_time_us >> w->near_shift & (NEAR_SLICES - 1)];
}

static inline bool
cells_hold(const struct wm_cells *cells, int64_t event_time_us)
{
	return cells != NULL && event_time_us >= cells->at.start_us && event_time_us < cells->at.end_us;
}

static void
add_member(struct wm_member **members, size_t *count, size_t *capacity, struct wm_cells *cells, struct wm_entry *entry)
{
	*members = wm_grown(*members, *count, capacity, sizeof(struct wm_member));
	(*members)[(*count)++] = (struct wm_member){ cells, entry };
}

static void
touch(struct wm_windowing *w, struct wm_cells *cells, struct wm_entry *entry)
{
	if ((entry->mark & MARK_UPDATED) != 0)
		return;
	entry->mark |= MARK_UPDATED;
	add_member(&w->touched, &w->touched_count, &w->touched_capacity, cells, entry);
	w->counts.updated++;
}

static void
clear_touched(struct wm_windowing *w)
{
	for (size_t i = 0; i < w->touched_count; i++)
		w->touched[i].entry->mark &= (uint8_t)~MARK_UPDATED;
	w->touched_count = 0;
	w->has_touched = false;
}

/* Panes: what a record leaves to be written */

static struct pane *
pane_of(const struct wm_windowing *w, const struct wm_entry *entry)
{
	char *value = wm_entry_value(entry);

	return (struct pane *)(void *)(value + (w->is_inline ? w->slices.cell_bytes : 0));
}

static void
add_due(struct wm_windowing *w, int64_t window_number, struct wm_entry *entry)
{
	if ((entry->mark & MARK_DUE) != 0)
		return;
	entry->mark |= MARK_DUE;
	w->due = wm_grown(w->due, w->due_count, &w->due_capacity, sizeof(w->due[0]));
	w->due[w->due_count++] = (struct due){ .window_number = window_number, .entry = entry };
	w->due_us = WM_TIME_NONE;
}

static void
add_changed(struct wm_windowing *w, struct wm_cells *cells, struct wm_entry *entry)
{
	if (w->panes.early_period_us == 0 || (entry->mark & MARK_CHANGED) != 0)
		return;
	entry->mark |= MARK_CHANGED;
	cells->changed_count++;
	add_member(&w->changed, &w->changed_count, &w->changed_capacity, cells, entry);
}

/* A slice goes, or its entries move: they are no members of changed any more. */
static void
drop_changed(struct wm_windowing *w, struct wm_cells *cells)
{
	size_t kept = 0;

	if (cells->changed_count == 0)
		return;
	for (size_t i = 0; i < w->changed_count; i++)
		if (w->changed[i].cells != cells)
			w->changed[kept++] = w->changed[i];
	w->changed_count = kept;
	cells->changed_count = 0;
}

static void
enter_period(struct wm_windowing *w, int64_t highest_time_us)
{
	if (w->panes.early_period_us == 0)
		return;
	int64_t multiple = wm_floor_div(highest_time_us, w->panes.early_period_us);
	if (multiple <= w->multiple)
		return;
	if (w->multiple != INT64_MIN) {
		w->is_period_due = true;
		w->due_us = WM_TIME_NONE;
	}
	w->multiple = multiple;
}

/* The pane of a key in a window that has slices, begun if it is new. */
static struct wm_entry *
put_pane(struct wm_windowing *w, int64_t window_number, const struct wm_entry *key, bool *is_new)
{
	struct wm_table *table = wm_ordered_find(&w->pane_windows, window_number);

	if (table == NULL) {
		table = wm_malloc(sizeof(struct wm_table));
		wm_table_init(table, sizeof(struct pane));
		wm_ordered_put(&w->pane_windows, window_number, table);
	}
	struct wm_entry *entry = wm_table_put(table, wm_entry_key(key), key->tag, is_new);
	if (*is_new)
		*pane_of(w, entry) = (struct pane){ 0 };
	return entry;
}

/* Numbers of the nearest slices before and behind one, down to first and up to last, in which its key has an entry too. */
static void
find_neighbours(const struct wm_windowing *w, const struct wm_cells *cells, const struct wm_entry *entry, int64_t first,
	int64_t last, int64_t *before, int64_t *behind)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices.map, first);
	int64_t number;

	*before = INT64_MIN;
	*behind = INT64_MAX;
	for (const struct wm_cells *other;
		(other = wm_ordered_next(&w->slices.map, &at, &number)) != NULL && number <= last;) {
		if (other == cells || wm_table_find(&other->table, wm_entry_key(entry), entry->tag) == NULL)
			continue;
		if (number > cells->at.number) {
			*behind = number;
			return;
		}
		*before = number;
	}
}

/*
 * A record reached windows that are complete. Such a window had an on-time pane
 * if the key was in it before, and this is the first late record; what came later is in its struct pane.
 */
static void
add_late(struct wm_windowing *w, const struct wm_cells *cells, const struct wm_entry *entry, bool is_new)
{
	int64_t first = cells->at.window_first, last = cells->at.window_last;
	int64_t before = cells->at.number, behind = cells->at.number;

	settle(w);
	if (first < w->window_kept)
		first = w->window_kept;
	if (last >= w->window_next)
		last = w->window_next - 1;
	if (is_new)
		find_neighbours(w, cells, entry, wm_slices_begin(&w->slices, first),
			wm_slices_end(&w->slices, last) - 1, &before, &behind);
	for (int64_t number = first; number <= last; number++) {
		struct wm_entry *pane = put_pane(w, number, entry, &is_new);

		if (is_new &&
			(before >= wm_slices_begin(&w->slices, number) || behind < wm_slices_end(&w->slices, number)))
			pane_of(w, pane)->count = 1;
		add_due(w, number, pane);
	}
}

static __attribute__((noinline)) void
watch_panes(
	struct wm_windowing *w, struct wm_cells *cells, struct wm_entry *entry, bool is_new, int64_t highest_time_us)
{
	bool is_open = !wm_is_complete(cells->at.window_last_end_us, w->watermark_us);

	if (is_open)
		add_changed(w, cells, entry);
	if (w->is_inline) {
		uint64_t rows = ++pane_of(w, entry)->rows;

		if (!is_open || (w->panes.early_rows != 0 && rows >= w->panes.early_rows))
			add_due(w, cells->at.number, entry);
	} else if (wm_is_complete(cells->at.window_first_end_us, w->watermark_us)) {
		add_late(w, cells, entry, is_new);
	}
	enter_period(w, highest_time_us);
}

/* What there is to do with a record beside aggregating it. Without panes it costs little, and stays inline. */
static inline void
watch(struct wm_windowing *w, struct wm_cells *cells, struct wm_entry *entry, bool is_new, int64_t highest_time_us)
{
	if (w->mode != WM_MODE_APPEND) {
		w->has_touched = true;
		w->due_us = WM_TIME_NONE;
	}
	if (w->mode == WM_MODE_UPDATE || w->is_counting)
		touch(w, cells, entry);
	if (w->has_panes)
		watch_panes(w, cells, entry, is_new, highest_time_us);
}

/* Finds the slice of a time, or makes it unless none of its windows takes the record; then NULL. */
static struct wm_cells *
cells_of(struct wm_windowing *w, int64_t event_time_us, int64_t *missed)
{
	struct wm_slice at;

	wm_windows_slice(w->windows, event_time_us, &at);
	*missed = windows_missed(w, &at, first_gone_us(w, &at));
	if (*missed == at.window_last - at.window_first + 1)
		return NULL;
	/* Of a start, the steps that are written have gone into the next one. */
	if (w->is_carrying && at.number < w->window_next)
		wm_slices_place(&w->slices, w->window_next, &at);
	return *near_cells(w, event_time_us) = cells_at(w, &at);
}

static inline void
add_to(struct wm_windowing *w, struct wm_cells *cells, struct wm_span key, uint8_t tag,
	const struct wm_window_record *record)
{
	size_t groups_before = cells->table.count;
	struct wm_entry *entry = wm_slices_entry(&w->slices, &cells->table, key, tag);
	bool is_new = cells->table.count != groups_before;

	w->counts.groups += is_new;
	wm_agg_cell_add(w->agg, wm_entry_value(entry), &cells->table.arena, record->readings, record->event_time_us);
	if (w->is_watching)
		watch(w, cells, entry, is_new, record->highest_time_us);
}

/* Held records */

static struct held *
held_at(struct wm_windowing *w, uint64_t number)
{
	return &w->held[number % HELD_MAX];
}

/* Each step takes all before a number on that have not taken it yet. */
static inline void
step_placed(struct wm_windowing *w, uint64_t until)
{
	for (; w->held_placed < until; w->held_placed++) {
		const struct held *held = held_at(w, w->held_placed);

		wm_table_fetch_entry(&held->cells->table, held->hash);
	}
}

static inline void
step_counted(struct wm_windowing *w, uint64_t until)
{
	for (; w->held_first < until; w->held_first++) {
		const struct held *held = held_at(w, w->held_first);
		struct wm_table *table = &held->cells->table;
		bool is_new;
		struct wm_entry *entry = wm_table_put_hashed(table, held->key, held->tag, held->hash, &is_new);

		if (is_new) {
			wm_slices_begin_cell(&w->slices, table, entry);
			w->counts.groups++;
		}
		wm_agg_cell_add(w->agg, wm_entry_value(entry), &table->arena, held->readings, held->event_time_us);
	}
}

static void
count_held(struct wm_windowing *w)
{
	step_placed(w, w->held_next);
	step_counted(w, w->held_next);
}

/* Whether a record can be held back: there is nothing to do with it but to aggregate it, once. */
static bool
can_hold(const struct wm_windowing *w, const struct wm_cells *cells, const struct wm_reading *readings,
	struct wm_span key)
{
	return !w->is_watching && cells->at.number >= w->slices.combined_end &&
		wm_readings_text_bytes(readings, w->readings_count, key) <= HELD_TEXT_MAX;
}

static __attribute__((noinline)) void
hold(struct wm_windowing *w, struct wm_cells *cells, struct wm_span key, uint8_t tag,
	const struct wm_window_record *record)
{
	struct held *held = held_at(w, w->held_next);
	char *at = held->text;

	held->cells = cells;
	held->event_time_us = record->event_time_us;
	held->hash = wm_hash(key, tag);
	wm_table_fetch_place(&cells->table, held->hash);
	held->key = wm_text_copy(&at, key);
	held->tag = tag;
	wm_readings_copy(held->readings, record->readings, w->readings_count, at);

	uint64_t next = ++w->held_next;
	if (next - w->held_placed > HELD_STEP)
		step_placed(w, next - HELD_STEP);
	if (next - w->held_first > 2 * HELD_STEP)
		step_counted(w, next - 2 * HELD_STEP);
}

/* Each window that takes the record has a cell of its own. */
static enum wm_window_verdict
add_apart(struct wm_windowing *w, const struct wm_window_record *record, int64_t *missed)
{
	struct wm_slice at, place;
	uint8_t tag;

	wm_windows_slice(w->windows, record->event_time_us, &at);
	*missed = windows_missed(w, &at, first_gone_us(w, &at));
	struct wm_span key = wm_keys_pack(record->keys, w->keys_count, &w->key_text, &tag);
	for (int64_t number = at.window_first + *missed; number <= at.window_last; number++) {
		wm_slices_place(&w->slices, number, &place);
		add_to(w, cells_at(w, &place), key, tag, record);
	}
	if (*missed <= at.window_last - at.window_first)
		return WM_WINDOW_USED;
	enter_period(w, record->highest_time_us);
	return WM_WINDOW_LATE;
}

enum wm_window_verdict
wm_windowing_add(struct wm_windowing *w, const struct wm_window_record *record, int64_t *missed)
{
	int64_t event_time_us = record->event_time_us;
	struct wm_cells *cells;
	uint8_t tag;

	assert(!w->is_draining);
	if (record->watermark_us > w->watermark_us)
		w->watermark_us = record->watermark_us;
	cells = *near_cells(w, event_time_us);
	if (cells_hold(cells, event_time_us)) {
		*missed = windows_missed(w, &cells->at, cells->first_gone_us);
	} else if (w->slices.is_apart) {
		return add_apart(w, record, missed);
	} else if ((cells = cells_of(w, event_time_us, missed)) == NULL) {
		enter_period(w, record->highest_time_us);
		return WM_WINDOW_LATE;
	}
	struct wm_span key = wm_keys_pack(record->keys, w->keys_count, &w->key_text, &tag);
	if (cells->table.count >= HELD_FROM_KEYS) {
		if (can_hold(w, cells, record->readings, key)) {
			hold(w, cells, key, tag, record);
			return WM_WINDOW_USED;
		}
		count_held(w);
	}
	add_to(w, cells, key, tag, record);
	if (cells->at.number < w->slices.combined_end)
		wm_slices_add_to_runs(&w->slices, cells->at.number, key, tag, record->readings, event_time_us);
	return WM_WINDOW_USED;
}

/* Forgetting */

/* Slices of which all windows come before this one. */
static void
forget_before(struct wm_windowing *w, int64_t window_number)
{
	for (struct wm_cells *cells; (cells = wm_slices_take_before(&w->slices, window_number)) != NULL;) {
		for (size_t i = 0; i < NEAR_SLICES; i++)
			if (w->near[i] == cells)
				w->near[i] = NULL;
		drop_changed(w, cells);
		w->counts.groups -= cells->table.count;
		w->counts.removed += cells->table.count;
		wm_slices_free_cells(cells);
	}
}

static void
forget_panes(struct wm_windowing *w)
{
	for (;;) {
		struct wm_ordered_at at = wm_ordered_seek(&w->pane_windows, INT64_MIN);
		int64_t number;
		struct wm_table *table = wm_ordered_next(&w->pane_windows, &at, &number);

		if (table == NULL || number >= w->window_kept)
			return;
		wm_ordered_take(&w->pane_windows, number);
		free_table(table);
	}
}

/* Of windows that share a start, all that is written goes on into the first that is not. */
static void
carry(struct wm_windowing *w)
{
	struct wm_cells *first = wm_slices_from(&w->slices, INT64_MIN);

	if (first == NULL || first->at.number >= w->window_next)
		return;
	size_t in_both = wm_slices_carry(&w->slices, first, w->window_next);
	first->first_gone_us = first_gone_us(w, &first->at);
	memset(w->near, 0, sizeof(w->near));
	w->counts.groups -= in_both;
	w->counts.removed += in_both;
}

/* The first slice with a window that is not written yet; NULL if there is none. */
static struct wm_cells *
first_open_cells(const struct wm_windowing *w)
{
	if (w->slices.map.count == 0)
		return NULL;
	return wm_slices_from(
		&w->slices, w->window_next == INT64_MIN ? INT64_MIN : wm_slices_begin(&w->slices, w->window_next));
}

static void
set_due(struct wm_windowing *w)
{
	const struct wm_cells *first = wm_slices_from(&w->slices, INT64_MIN);

	if (w->has_touched || w->due_count != 0 || w->is_period_due) {
		w->due_us = WM_TIME_NONE;
		return;
	}
	w->due_us = first == NULL ? WM_TIME_END : slice_due_us(w, &first->at);
	if (w->has_panes && (first = first_open_cells(w)) != NULL) {
		int64_t due_us = slice_due_us(w, &first->at);

		if (due_us < w->due_us)
			w->due_us = due_us;
	}
}

/* Writing in append: window by window */

static struct wm_keys_item *
add_ready(struct wm_windowing *w)
{
	w->ready = wm_grown(w->ready, w->ready_count, &w->ready_capacity, sizeof(w->ready[0]));
	wm_pause_at(&w->pause, w->ready_count);
	return &w->ready[w->ready_count++];
}

static void
add_ready_pane(struct wm_windowing *w, const struct wm_entry *entry, const void *cell, uint64_t number)
{
	*add_ready(w) = (struct wm_keys_item){ .entry = entry, .value = cell, .number = number };
}

static void
ready_table(struct wm_windowing *w, const struct wm_table *table)
{
	size_t at = 0;

	for (const struct wm_entry *entry; (entry = wm_table_next(table, &at)) != NULL;)
		add_ready_pane(w, entry, NULL, pane_number(0, WM_PANE_ON_TIME, false));
}

static void
sort_ready(struct wm_windowing *w)
{
	wm_keys_sort(w->ready, w->ready_count, w->keys_count, &w->pause);
}

/* The cell of a pane that stands inline: in discarding, only what is new. */
static const void *
take_pane(struct wm_windowing *w, const struct wm_entry *entry, const void *cell)
{
	struct pane *pane = pane_of(w, entry);
	bool is_empty = w->panes.is_discarding && pane->rows == 0;

	pane->count++;
	pane->rows = 0;
	return is_empty ? w->empty_cell : cell;
}

/* A window that is complete gives each key its on-time pane, whether or not there is something new. */
static void
ready_window(struct wm_windowing *w, int64_t number)
{
	size_t first = w->ready_count;

	ready_table(w, wm_slices_window(&w->slices, number));
	w->window_next = number + 1;
	if (!w->has_panes)
		return;
	const struct wm_table *panes = w->is_inline ? NULL : wm_ordered_find(&w->pane_windows, number);
	for (size_t i = first; i < w->ready_count && (w->is_inline || panes != NULL); i++) {
		struct wm_keys_item *ready = &w->ready[i];
		const struct wm_entry *entry = ready->entry;

		if (!w->is_inline && (entry = wm_table_find(panes, wm_entry_key(entry), entry->tag)) == NULL)
			continue;
		ready->number = pane_number(pane_of(w, entry)->count, WM_PANE_ON_TIME, false);
		ready->value = take_pane(w, entry, cell_of(ready));
	}
}

static void
ready_due(struct wm_windowing *w, int64_t number)
{
	enum wm_pane_timing timing = number < w->due_open ? WM_PANE_LATE : WM_PANE_EARLY;

	for (; w->due_at < w->due_count && w->due[w->due_at].window_number == number; w->due_at++) {
		const struct due *due = &w->due[w->due_at];
		uint64_t index = pane_of(w, due->entry)->count;

		add_ready_pane(w, due->entry, take_pane(w, due->entry, due->cell), pane_number(index, timing, false));
	}
}

static void
ready_fillers(struct wm_windowing *w, int64_t number)
{
	/* A day that a zone left out has no length, and is no window. */
	bool is_none = w->ready_start_us == w->ready_end_us;

	for (const struct wm_entry *entry; (entry = wm_fill_take(w->fill, number)) != NULL;) {
		if (is_none)
			continue;
		add_ready_pane(w, entry, wm_fill_cell(w->fill, entry), pane_number(0, WM_PANE_ON_TIME, true));
	}
}

/* The rows of a window were drained. */
static void
finish_window(struct wm_windowing *w)
{
	for (size_t i = 0; i < w->ready_count; i++) {
		const struct wm_keys_item *ready = &w->ready[i];

		if (w->fill != NULL && !is_filler(ready))
			wm_fill_written(w->fill, ready->entry, cell_of(ready));
		if (w->empty_cell != NULL)
			wm_agg_cell_init(w->agg, wm_entry_value(ready->entry));
	}
	if (w->empty_cell != NULL && w->ready_count != 0) {
		struct wm_cells *cells = wm_ordered_find(&w->slices.map, w->ready_number);

		if (wm_slices_pack(&w->slices, cells))
			drop_changed(w, cells);
	}
	w->ready_count = w->ready_at = 0;
	/* Panes that wait may be of any window that is kept. */
	if (!w->has_panes) {
		forget_before(w, w->window_next);
		if (w->window_next != INT64_MIN)
			wm_slices_forget_runs(&w->slices, w->window_next);
	}
	if (w->is_carrying)
		carry(w);
}

/* The next window that is complete and holds something. */
static bool
next_complete(const struct wm_windowing *w, int64_t *number)
{
	const struct wm_cells *first = first_open_cells(w);

	if (first == NULL)
		return false;
	*number = first->at.window_first > w->window_next ? first->at.window_first : w->window_next;
	return wm_is_complete(wm_window_end_us(w->windows, *number), w->watermark_us);
}

/* Makes the rows of the next window ready and forgets what was drained before; false if there is none. */
static bool
ready_next_window(struct wm_windowing *w)
{
	int64_t complete = INT64_MAX, due = INT64_MAX, filled = INT64_MAX;

	finish_window(w);
	bool has_complete = next_complete(w, &complete);
	bool has_due = w->due_at < w->due_count;
	bool has_filled = w->fill != NULL && wm_fill_next(w->fill, &filled);
	if (!has_complete && !has_due && !has_filled)
		return false;
	if (!has_complete)
		complete = INT64_MAX;
	if (has_due)
		due = w->due[w->due_at].window_number;
	int64_t number = complete < due ? complete : due;
	if (filled < number)
		number = filled;
	w->ready_number = number;
	w->ready_start_us = wm_window_start_us(w->windows, number);
	w->ready_end_us = wm_window_end_us(w->windows, number);
	if (due == number)
		ready_due(w, number);
	if (complete == number)
		ready_window(w, number);
	if (filled == number)
		ready_fillers(w, number);
	sort_ready(w);
	return true;
}

/* Early and late panes of an advance, before the watermark moves */

static int
compare_due_keys(const void *a, const void *b)
{
	const struct due *due_a = a, *due_b = b;
	int order = wm_keys_compare(due_a->entry, due_b->entry);

	if (order != 0)
		return order;
	return (due_a->window_number > due_b->window_number) - (due_a->window_number < due_b->window_number);
}

static int
compare_due_windows(const void *a, const void *b)
{
	const struct due *due_a = a, *due_b = b;

	if (due_a->window_number != due_b->window_number)
		return due_a->window_number < due_b->window_number ? -1 : 1;
	if (due_a->prefix != due_b->prefix)
		return due_a->prefix < due_b->prefix ? -1 : 1;
	return wm_keys_compare(due_a->entry, due_b->entry);
}

/* The period is over: a pane for each window that is open and changed. */
static void
add_period(struct wm_windowing *w)
{
	for (size_t i = 0; i < w->changed_count; i++) {
		struct wm_cells *cells = w->changed[i].cells;
		struct wm_entry *entry = w->changed[i].entry;
		int64_t number = cells->at.window_first > w->window_next ? cells->at.window_first : w->window_next;
		bool is_new;

		entry->mark &= (uint8_t)~MARK_CHANGED;
		cells->changed_count = 0;
		for (; number <= cells->at.window_last; number++)
			add_due(w, number, w->is_inline ? entry : put_pane(w, number, entry, &is_new));
	}
	w->changed_count = 0;
	w->is_period_due = false;
}

/* Combines the slices of each pane, runs of neighbouring windows of a key together. */
static void
combine_due(struct wm_windowing *w)
{
	const void **cells = wm_reallocarray(NULL, w->due_count, sizeof(void *));

	qsort(w->due, w->due_count, sizeof(w->due[0]), compare_due_keys);
	for (size_t i = 0; i < w->due_count;) {
		const struct wm_entry *entry = w->due[i].entry;
		int64_t first = w->due[i].window_number;
		size_t count = 1;

		while (i + count < w->due_count && w->due[i + count].window_number == first + (int64_t)count &&
			wm_keys_compare(entry, w->due[i + count].entry) == 0)
			count++;
		wm_slices_key_windows(&w->slices, wm_entry_key(entry), entry->tag, first, first + (int64_t)count - 1,
			&w->ready_arena, cells);
		for (size_t j = 0; j < count; j++)
			w->due[i + j].cell = cells[j];
		i += count;
	}
	free(cells);
}

static void
gather_due(struct wm_windowing *w)
{
	settle(w);
	w->due_open = w->window_next;
	if (w->is_period_due)
		add_period(w);
	if (w->due_count == 0)
		return;
	if (!w->is_inline)
		combine_due(w);
	for (size_t i = 0; i < w->due_count; i++) {
		struct due *due = &w->due[i];

		due->prefix = wm_keys_prefix(due->entry);
		due->entry->mark &= (uint8_t)~MARK_DUE;
		if (w->is_inline)
			due->cell = wm_entry_value(due->entry);
	}
	qsort(w->due, w->due_count, sizeof(w->due[0]), compare_due_windows);
}

/* All that this advance writes, for the windows between. */
static void
announce(struct wm_windowing *w)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices.map, INT64_MIN);

	for (const struct wm_cells *cells; (cells = wm_ordered_next(&w->slices.map, &at, NULL)) != NULL &&
		wm_is_complete(cells->at.window_last_end_us, w->watermark_us);) {
		size_t place = 0;

		for (const struct wm_entry *entry; (entry = wm_table_next(&cells->table, &place)) != NULL;)
			wm_fill_announce(w->fill, cells->at.number, entry);
	}
}

/* Writing in update and complete: key by key, then sorted by window */

/* By key, and those of one key by slice. */
static void
sort_members(const struct wm_windowing *w, struct wm_member *members, size_t count)
{
	struct wm_keys_item *items;

	if (count == 1)
		return;
	items = wm_reallocarray(NULL, count, sizeof(items[0]));
	for (size_t i = 0; i < count; i++)
		items[i] = (struct wm_keys_item){ .entry = members[i].entry,
			.value = members[i].cells,
			.number = (uint64_t)members[i].cells->at.number ^ UINT64_C(1) << 63 };
	wm_keys_sort(items, count, w->keys_count, &w->pause);
	for (size_t i = 0; i < count; i++)
		members[i] = (struct wm_member){ (struct wm_cells *)(uintptr_t)items[i].value,
			(struct wm_entry *)(uintptr_t)items[i].entry };
	free(items);
}

static int
compare_ready_windows(const void *a, const void *b)
{
	const struct wm_keys_item *ready_a = a, *ready_b = b;

	if (ready_a->number != ready_b->number)
		return (int64_t)ready_a->number < (int64_t)ready_b->number ? -1 : 1;
	return (ready_a->word > ready_b->word) - (ready_a->word < ready_b->word);
}

/* Every key of every slice. */
static struct wm_member *
all_members(const struct wm_windowing *w, size_t *count)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices.map, INT64_MIN);
	struct wm_member *members = NULL;
	size_t capacity = 0;

	*count = 0;
	for (struct wm_cells *cells; (cells = wm_ordered_next(&w->slices.map, &at, NULL)) != NULL;) {
		size_t place = 0;

		for (struct wm_entry *entry; (entry = wm_table_next(&cells->table, &place)) != NULL;) {
			add_member(&members, count, &capacity, cells, entry);
			wm_pause_at(&w->pause, *count);
		}
	}
	return members;
}

/* The windows first to last of one key. */
static void
ready_windows(struct wm_windowing *w, const struct wm_entry *entry, int64_t first, int64_t last, uint64_t rank)
{
	const void **cells = wm_reallocarray(NULL, (size_t)(last - first + 1), sizeof(void *));

	wm_slices_key_windows(&w->slices, wm_entry_key(entry), entry->tag, first, last, &w->ready_arena, cells);
	for (int64_t number = first; number <= last; number++)
		*add_ready(w) = (struct wm_keys_item){ entry, cells[number - first], (uint64_t)number, rank };
	free(cells);
}

/* The windows of a member that are open: *first > *last if there is none. */
static void
open_windows(const struct wm_windowing *w, const struct wm_member *member, int64_t *first, int64_t *last)
{
	bool all = w->mode == WM_MODE_COMPLETE || member->cells->at.window_first >= w->window_next;

	*first = all ? member->cells->at.window_first : w->window_next;
	*last = member->cells->at.window_last;
}

/* Makes the windows ready that hold one of the members, sorted here by key and slice; runs of neighbouring windows of a key together. */
static void
ready_members(struct wm_windowing *w, struct wm_member *members, size_t count)
{
	uint64_t rank = 0;

	if (count == 0)
		return;
	sort_members(w, members, count);
	for (size_t i = 0; i < count;) {
		int64_t first, last;
		size_t next = i + 1;
		bool is_same = false;

		open_windows(w, &members[i], &first, &last);
		while (next < count && (is_same = wm_keys_compare(members[i].entry, members[next].entry) == 0)) {
			int64_t next_first, next_last;

			open_windows(w, &members[next], &next_first, &next_last);
			if (next_first > last + 1)
				break;
			last = next_last;
			next++;
		}
		if (first <= last)
			ready_windows(w, members[i].entry, first, last, rank);
		rank += !is_same;
		i = next;
	}
}

static void
ready_touched(struct wm_windowing *w)
{
	struct wm_member *members = w->touched;
	size_t count = w->touched_count;

	if (w->mode == WM_MODE_COMPLETE)
		members = all_members(w, &count);
	ready_members(w, members, count);
	/* Those of one window are in order already. */
	bool is_sorted = true;
	for (size_t i = 1; i < w->ready_count && is_sorted; i++)
		is_sorted = compare_ready_windows(&w->ready[i - 1], &w->ready[i]) <= 0;
	if (!is_sorted)
		qsort(w->ready, w->ready_count, sizeof(w->ready[0]), compare_ready_windows);
	if (w->mode == WM_MODE_COMPLETE)
		free(members);
}

/* Advancing */

int64_t
wm_windowing_due_us(const struct wm_windowing *w)
{
	return w->due_us;
}

static void
end_draining(struct wm_windowing *w)
{
	if (w->mode != WM_MODE_COMPLETE) {
		settle(w);
		forget_before(w, w->window_kept);
		if (w->window_next != INT64_MIN)
			wm_slices_forget_runs(&w->slices, w->window_next);
		forget_panes(w);
	}
	wm_arena_release(&w->ready_arena);
	/* A window with very many keys is not to be remembered. */
	if (w->ready_capacity > READY_KEPT_MAX) {
		free(w->ready);
		w->ready = NULL;
		w->ready_capacity = 0;
	}
	w->ready_count = w->ready_at = 0;
	w->due_count = w->due_at = 0;
	w->is_draining = false;
	set_due(w);
}

void
wm_windowing_advance(struct wm_windowing *w, int64_t watermark_us)
{
	assert(!w->is_draining);
	count_held(w);
	/* Judged by the watermark from before: windows that it completes now got their records in time. */
	if (w->mode != WM_MODE_APPEND && watermark_us != WM_TIME_END)
		ready_touched(w);
	if (w->has_panes)
		gather_due(w);
	clear_touched(w);
	if (watermark_us > w->watermark_us)
		w->watermark_us = watermark_us;
	if (w->fill != NULL)
		announce(w);
	w->is_draining = true;
}

bool
wm_windowing_next(struct wm_windowing *w, struct wm_window_row *row)
{
	bool is_append = w->mode == WM_MODE_APPEND;

	if (!w->is_draining)
		return false;
	while (w->ready_at == w->ready_count) {
		if (!is_append || !ready_next_window(w)) {
			end_draining(w);
			return false;
		}
	}
	const struct wm_keys_item *ready = &w->ready[w->ready_at++];
	/* Rows stand in order of keys, their cells all over the memory: those that come soon are fetched ahead. */
	if (w->ready_at + ROWS_AHEAD < w->ready_count) {
		const char *soon = (const char *)ready[ROWS_AHEAD].entry;

		__builtin_prefetch(soon);
		__builtin_prefetch(soon + 64);
		__builtin_prefetch(soon + 128);
	}
	wm_keys_unpack(ready->entry, w->row_keys, w->keys_count);
	row->keys = w->row_keys;
	row->cell = cell_of(ready);
	if (is_append) {
		row->window_start_us = w->ready_start_us;
		row->window_end_us = w->ready_end_us;
		row->pane = pane_timing(ready);
		row->pane_index = pane_index(ready);
		row->is_filler = is_filler(ready);
	} else {
		row->window_start_us = wm_window_start_us(w->windows, (int64_t)ready->number);
		row->window_end_us = wm_window_end_us(w->windows, (int64_t)ready->number);
		row->pane = WM_PANE_ON_TIME;
		row->pane_index = 0;
		row->is_filler = false;
	}
	return true;
}

void
wm_windowing_count_updates(struct wm_windowing *w)
{
	w->is_counting = w->is_watching = true;
}

/* Pairs of a window and a key: of windows that are not written yet, or of all that take records. */
static uint64_t
count_windows(struct wm_windowing *w, bool is_kept)
{
	count_held(w);
	if (w->mode == WM_MODE_COMPLETE)
		return wm_slices_count_windows(&w->slices, INT64_MIN);
	settle(w);
	return wm_slices_count_windows(&w->slices, is_kept ? w->window_kept : w->window_next);
}

struct wm_windowing_counts
wm_windowing_counts(struct wm_windowing *w)
{
	count_held(w);
	struct wm_windowing_counts counts = w->counts;
	if (w->is_counting_windows)
		counts.groups = count_windows(w, true);
	return counts;
}

uint64_t
wm_windowing_open_count(struct wm_windowing *w)
{
	uint64_t open = count_windows(w, false);

	for (size_t i = 0; i < w->due_count; i++)
		open += w->due[i].window_number < w->window_next;
	return open;
}

uint64_t
wm_windowing_gaps_skipped(const struct wm_windowing *w)
{
	return w->fill == NULL ? 0 : wm_fill_skipped(w->fill);
}

size_t
wm_windowing_bytes(const struct wm_windowing *w)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->pane_windows, INT64_MIN);
	size_t bytes = wm_slices_bytes(&w->slices) + w->ready_capacity * sizeof(w->ready[0]) +
		w->due_capacity * sizeof(w->due[0]) + w->changed_capacity * sizeof(w->changed[0]);

	for (const struct wm_table *table; (table = wm_ordered_next(&w->pane_windows, &at, NULL)) != NULL;)
		bytes += sizeof(*table) + wm_table_bytes(table);
	return bytes + (w->fill == NULL ? 0 : wm_fill_bytes(w->fill));
}

/* Encoding */

/* u8 tag · u8 mark · key, of each entry of a table in order of keys; then what "encode_value" makes of it. */
static void
encode_table(struct wm_windowing *w, const struct wm_table *table, struct wm_buf *out,
	void (*encode_value)(const struct wm_windowing *, const struct wm_entry *, struct wm_buf *))
{
	wm_put_varint(out, table->count);
	ready_table(w, table);
	sort_ready(w);
	for (size_t i = 0; i < w->ready_count; i++) {
		const struct wm_entry *entry = w->ready[i].entry;

		wm_put_u8(out, entry->tag);
		wm_put_u8(out, entry->mark);
		wm_put_span(out, wm_entry_key(entry));
		encode_value(w, entry, out);
	}
	w->ready_count = 0;
}

static void
encode_pane(const struct wm_windowing *w, const struct wm_entry *entry, struct wm_buf *out)
{
	wm_put_varint(out, pane_of(w, entry)->count);
	wm_put_varint(out, pane_of(w, entry)->rows);
}

static void
encode_cell(const struct wm_windowing *w, const struct wm_entry *entry, struct wm_buf *out)
{
	wm_agg_cell_encode(w->agg, wm_entry_value(entry), out);
	if (w->is_inline)
		encode_pane(w, entry, out);
}

/*
 * i64 watermark · u8 touched · i64 multiple of the period · u8 period due · varint slices, each: i64 start (apart: end) ·
 * varint entries, each: u8 tag · u8 mark · key · cell, and inline its pane · varint windows with panes that stand alone, each: i64 end ·
 * varint entries, each: u8 tag · u8 mark · key · pane; a pane is varint count · varint rows · with fill its state.
 * Runs are left out: they are made again.
 */
void
wm_windowing_encode(struct wm_windowing *w, struct wm_buf *out)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices.map, INT64_MIN);
	int64_t number;

	assert(!w->is_draining);
	count_held(w);
	wm_put_i64(out, w->watermark_us);
	wm_put_u8(out, w->has_touched);
	wm_put_i64(out, w->multiple);
	wm_put_u8(out, w->is_period_due);
	wm_put_varint(out, w->slices.map.count);
	for (const struct wm_cells *cells; (cells = wm_ordered_next(&w->slices.map, &at, NULL)) != NULL;) {
		wm_put_i64(out, w->slices.is_apart ? cells->at.end_us : cells->at.start_us);
		encode_table(w, &cells->table, out, encode_cell);
	}
	wm_put_varint(out, w->pane_windows.count);
	at = wm_ordered_seek(&w->pane_windows, INT64_MIN);
	for (const struct wm_table *table; (table = wm_ordered_next(&w->pane_windows, &at, &number)) != NULL;) {
		wm_put_i64(out, wm_window_end_us(w->windows, number));
		encode_table(w, table, out, encode_pane);
	}
	if (w->fill != NULL)
		wm_fill_encode(w->fill, out);
}

static bool
is_plausible(int64_t time_us)
{
	/* A watermark is a time of limits.h less a duration, a window start or end no further from one. */
	return time_us >= -2 * WM_DURATION_US_MAX && time_us <= 2 * WM_DURATION_US_MAX;
}

/* The number of the window that ends at a decoded time; windows have different ends. */
static bool
decode_window(const struct wm_windowing *w, struct wm_get *in, int64_t *number)
{
	int64_t end_us = wm_get_i64(in);

	if (in->failed || !is_plausible(end_us))
		return false;
	*number = wm_window_first_open(w->windows, end_us - 1);
	return wm_window_end_us(w->windows, *number) == end_us;
}

/* The place of a decoded slice. */
static bool
decode_place(const struct wm_windowing *w, struct wm_get *in, struct wm_slice *at)
{
	int64_t number;

	if (w->slices.is_apart) {
		if (!decode_window(w, in, &number) || number < w->window_kept)
			return false;
		wm_slices_place(&w->slices, number, at);
		return true;
	}
	int64_t start_us = wm_get_i64(in);
	if (in->failed || !is_plausible(start_us))
		return false;
	wm_windows_slice(w->windows, start_us, at);
	return at->start_us == start_us && (w->mode == WM_MODE_COMPLETE || at->window_last >= w->window_kept);
}

/* The marks that entries may have. */
static uint8_t
marks_of(const struct wm_windowing *w, bool has_pane)
{
	return (uint8_t)(MARK_UPDATED | (w->panes.early_period_us != 0 ? MARK_CHANGED : 0) | (has_pane ? MARK_DUE : 0));
}

/* The next entry of an encoded table, put into one; NULL if it is impossible. Its mark is in *mark alone. */
static struct wm_entry *
decode_entry(const struct wm_windowing *w, struct wm_get *in, struct wm_table *table, uint8_t marks, uint8_t *mark)
{
	wm_get_give_back(in);
	uint8_t tag = wm_get_u8(in);
	bool is_new;

	*mark = wm_get_u8(in);
	struct wm_span key = wm_get_span(in);
	if (in->failed || (*mark & ~marks) != 0 || !wm_keys_are_valid(key, tag, w->keys_count))
		return NULL;
	struct wm_entry *entry = wm_table_put(table, key, tag, &is_new);
	return is_new ? entry : NULL;
}

static void
decode_pane(const struct wm_windowing *w, struct wm_get *in, const struct wm_entry *entry)
{
	pane_of(w, entry)->count = wm_get_varint(in);
	pane_of(w, entry)->rows = wm_get_varint(in);
}

static bool
decode_slice(struct wm_windowing *w, struct wm_get *in)
{
	struct wm_slice at;

	if (!decode_place(w, in, &at) || wm_ordered_find(&w->slices.map, at.number) != NULL)
		return false;
	struct wm_cells *cells = cells_at(w, &at);
	for (uint64_t left = wm_get_varint(in); left > 0; left--) {
		uint8_t mark;
		struct wm_entry *entry = decode_entry(w, in, &cells->table, marks_of(w, w->is_inline), &mark);

		if (entry == NULL || !wm_agg_cell_decode(w->agg, wm_entry_value(entry), &cells->table.arena, in))
			return false;
		if (w->is_inline)
			decode_pane(w, in, entry);
		w->counts.groups++;
		if ((mark & MARK_UPDATED) != 0 && (w->mode == WM_MODE_UPDATE || w->is_counting))
			touch(w, cells, entry);
		if ((mark & MARK_CHANGED) != 0)
			add_changed(w, cells, entry);
		if ((mark & MARK_DUE) != 0)
			add_due(w, at.number, entry);
	}
	return !in->failed && cells->table.count != 0;
}

static bool
is_in_window(const struct wm_windowing *w, int64_t window_number, const struct wm_entry *key)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices.map, wm_slices_begin(&w->slices, window_number));
	int64_t end = wm_slices_end(&w->slices, window_number), number;

	for (const struct wm_cells *cells;
		(cells = wm_ordered_next(&w->slices.map, &at, &number)) != NULL && number < end;)
		if (wm_table_find(&cells->table, wm_entry_key(key), key->tag) != NULL)
			return true;
	return false;
}

static bool
decode_pane_window(struct wm_windowing *w, struct wm_get *in)
{
	int64_t number;

	if (!w->has_panes || w->is_inline || !decode_window(w, in, &number) ||
		wm_ordered_find(&w->pane_windows, number) != NULL)
		return false;
	struct wm_table *table = wm_malloc(sizeof(struct wm_table));
	wm_table_init(table, sizeof(struct pane));
	wm_ordered_put(&w->pane_windows, number, table);
	for (uint64_t left = wm_get_varint(in); left > 0; left--) {
		uint8_t mark;
		struct wm_entry *entry = decode_entry(w, in, table, MARK_DUE, &mark);

		if (entry == NULL)
			return false;
		decode_pane(w, in, entry);
		if (mark != 0 && !is_in_window(w, number, entry))
			return false;
		if (mark != 0)
			add_due(w, number, entry);
	}
	return !in->failed;
}

bool
wm_windowing_decode(struct wm_windowing *w, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in);
	bool has_touched = wm_get_u8(in) != 0;
	int64_t multiple = wm_get_i64(in);
	bool is_period_due = wm_get_u8(in) != 0;

	if (in->failed || w->slices.map.count != 0)
		return false;
	if (watermark_us != WM_TIME_NONE && watermark_us != WM_TIME_END && !is_plausible(watermark_us))
		return false;
	if (is_period_due && w->panes.early_period_us == 0)
		return false;
	w->watermark_us = watermark_us;
	w->multiple = multiple;
	w->has_touched = has_touched;
	w->is_period_due = is_period_due;
	if (w->mode != WM_MODE_COMPLETE)
		settle(w);
	for (uint64_t left = wm_get_varint(in); left > 0; left--)
		if (!decode_slice(w, in))
			return false;
	for (uint64_t left = wm_get_varint(in); left > 0; left--)
		if (!decode_pane_window(w, in))
			return false;
	if (in->failed || (w->fill != NULL && !wm_fill_decode(w->fill, w->keys_count, in)))
		return false;
	set_due(w);
	return true;
}
