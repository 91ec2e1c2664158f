#include "lib/op/windowing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "lib/state/ordered.h"
#include "lib/state/table.h"

/* Tag of a key of several columns: above every enum wm_kind. */
#define TAG_COMPOSITE 15

/* Combined slices: level L holds runs of 2^L slices. More levels than windows can have slices. */
#define LEVELS_MAX 48

struct slice {
	struct wm_slice at;
	struct wm_table table;
};

/* A key with a record in a slice. */
struct member {
	const struct slice *slice;
	struct wm_entry *entry;
};

/* A row that waits to be drained. */
struct ready {
	int64_t window_number;
	uint64_t
		prefix; /* first bytes of the key in order of bytes, or the rank of the key: decides most comparisons */
	const struct wm_entry *entry;
	const void *cell;
};

struct wm_windowing {
	const struct wm_windows *windows;
	const struct wm_agg *agg;
	size_t keys_count;
	enum wm_window_mode mode;
	size_t cell_bytes;

	int64_t watermark_us;
	int64_t window_next; /* all windows before this one are complete, and in append written; settle() brings it up to the watermark */
	int64_t due_us;
	struct wm_ordered slices; /* struct slice by number */
	struct slice *recent[2];  /* where the last records went; records alternate between neighbours */

	/* append: runs of complete slices, combined once for the many windows that hold them */
	struct wm_ordered levels[LEVELS_MAX]; /* struct wm_table by first slice >> level */
	int64_t combined_end;                 /* no run holds this slice or one behind it */
	struct wm_table combined;             /* the window that is being drained */

	/* update, and where updates are counted: what got a record since the last advance */
	struct member *touched;
	size_t touched_count, touched_capacity;
	bool has_touched; /* update, complete: a record came since then */
	bool is_counting;
	struct wm_windowing_counts counts;

	struct ready *ready;
	size_t ready_count, ready_capacity, ready_at;
	bool is_draining;
	struct wm_arena ready_arena; /* of cells combined for update and complete */

	struct wm_buf key_text; /* the key of the current record, where it has several columns */
	struct wm_value *row_keys;
};

struct wm_windowing *
wm_windowing_new(const struct wm_windows *windows, const struct wm_agg *agg, size_t keys_count,
	enum wm_window_mode mode, bool spark)
{
	struct wm_windowing *w = wm_calloc(1, sizeof(struct wm_windowing));

	w->windows = windows;
	w->agg = agg;
	w->keys_count = keys_count;
	w->mode = mode;
	w->cell_bytes = wm_agg_cell_bytes(agg);
	w->watermark_us = spark ? 0 : WM_TIME_NONE;
	w->window_next = wm_window_first_open(windows, w->watermark_us);
	w->due_us = WM_TIME_END;
	w->combined_end = INT64_MIN;
	wm_table_init(&w->combined, w->cell_bytes);
	wm_buf_init(&w->key_text, WM_BUF_UNBOUNDED);
	w->row_keys = wm_calloc(keys_count, sizeof(struct wm_value));
	return w;
}

static void
free_slice(struct slice *slice)
{
	wm_table_release(&slice->table);
	free(slice);
}

/* Takes all values out of a map and frees them. */
static void
free_tables(struct wm_ordered *map)
{
	struct wm_ordered_at at = wm_ordered_seek(map, INT64_MIN);

	for (struct wm_table *table; (table = wm_ordered_next(map, &at, NULL)) != NULL;) {
		wm_table_release(table);
		free(table);
	}
	wm_ordered_release(map);
}

void
wm_windowing_free(struct wm_windowing *w)
{
	if (w == NULL)
		return;
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, INT64_MIN);
	for (struct slice *slice; (slice = wm_ordered_next(&w->slices, &at, NULL)) != NULL;)
		free_slice(slice);
	wm_ordered_release(&w->slices);
	for (size_t level = 0; level < LEVELS_MAX; level++)
		free_tables(&w->levels[level]);
	wm_table_release(&w->combined);
	wm_arena_release(&w->ready_arena);
	free(w->touched);
	free(w->ready);
	wm_buf_release(&w->key_text);
	free(w->row_keys);
	free(w);
}

/* Makes room for one more member of an array that doubles. */
static void *
grown(void *array, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity == 0 ? 16 : *capacity * 2;
	return wm_reallocarray(array, *capacity, size);
}

/* Keys */

/* One column is its text and kind; several are kind, length and text of each, so that no two keys run together. */
static struct wm_span
key_of(struct wm_windowing *w, const struct wm_value *keys, uint8_t *tag)
{
	if (w->keys_count == 1) {
		*tag = (uint8_t)keys[0].kind;
		return keys[0].text;
	}
	*tag = TAG_COMPOSITE;
	wm_buf_reset(&w->key_text);
	for (size_t i = 0; i < w->keys_count; i++) {
		wm_put_u8(&w->key_text, (uint8_t)keys[i].kind);
		wm_put_span(&w->key_text, keys[i].text);
	}
	return wm_buf_span(&w->key_text);
}

static struct wm_value
key_part(struct wm_get *in)
{
	struct wm_value part;

	part.kind = (enum wm_kind)wm_get_u8(in);
	part.text = wm_get_span(in);
	return part;
}

static void
keys_of_entry(const struct wm_windowing *w, const struct wm_entry *entry, struct wm_value *keys)
{
	struct wm_get in;

	if (w->keys_count == 1) {
		keys[0] = (struct wm_value){ wm_entry_key(entry), (enum wm_kind)entry->tag };
		return;
	}
	wm_get_init(&in, wm_entry_key(entry));
	for (size_t i = 0; i < w->keys_count; i++)
		keys[i] = key_part(&in);
}

/* Null before the empty string, then bytes, then kind. */
static int
compare_values(const struct wm_value *a, const struct wm_value *b)
{
	int order = (a->kind != WM_KIND_NULL) - (b->kind != WM_KIND_NULL);

	if (order == 0)
		order = wm_span_compare(a->text, b->text);
	return order != 0 ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

static int
compare_entries(const struct wm_entry *a, const struct wm_entry *b)
{
	struct wm_get in_a, in_b;
	int order = 0;

	if (a->tag != TAG_COMPOSITE) {
		struct wm_value value_a = { wm_entry_key(a), (enum wm_kind)a->tag };
		struct wm_value value_b = { wm_entry_key(b), (enum wm_kind)b->tag };

		return compare_values(&value_a, &value_b);
	}
	wm_get_init(&in_a, wm_entry_key(a));
	wm_get_init(&in_b, wm_entry_key(b));
	while (order == 0 && wm_get_left(&in_a) != 0) {
		struct wm_value value_a = key_part(&in_a), value_b = key_part(&in_b);

		order = compare_values(&value_a, &value_b);
	}
	return order;
}

/* The first bytes of a key as a number that orders like them; composite keys decide in full. */
static uint64_t
key_prefix(const struct wm_entry *entry)
{
	unsigned char bytes[8] = { 0 };

	if (entry->tag == TAG_COMPOSITE)
		return 0;
	memcpy(bytes, entry->key, entry->key_len < sizeof(bytes) ? entry->key_len : sizeof(bytes));
	uint64_t prefix;
	memcpy(&prefix, bytes, sizeof(prefix));
	return __builtin_bswap64(prefix);
}

/* Adding */

static struct slice *
slice_at(struct wm_windowing *w, const struct wm_slice *at)
{
	struct slice *slice = wm_ordered_find(&w->slices, at->number);

	if (slice == NULL) {
		slice = wm_malloc(sizeof(struct slice));
		slice->at = *at;
		wm_table_init(&slice->table, w->cell_bytes);
		wm_ordered_put(&w->slices, at->number, slice);
	}
	return slice;
}

/* When the first window of a slice that is open becomes complete. */
static int64_t
slice_due_us(const struct wm_windowing *w, const struct slice *slice)
{
	if (w->mode == WM_MODE_COMPLETE)
		return WM_TIME_END;
	if (w->mode == WM_MODE_UPDATE)
		return slice->at.window_last_end_us;
	if (slice->at.window_first >= w->window_next)
		return slice->at.window_first_end_us;
	return wm_window_end_us(w->windows, w->window_next);
}

/* All windows that are complete at the watermark are behind: those that hold something were written when it was due. */
static void
settle(struct wm_windowing *w)
{
	int64_t first_open = wm_window_first_open(w->windows, w->watermark_us);

	if (first_open > w->window_next)
		w->window_next = first_open;
}

/* Of the windows of a slice, how many are complete. */
static int64_t
windows_missed(struct wm_windowing *w, const struct wm_slice *at)
{
	if (w->mode == WM_MODE_COMPLETE || !wm_is_complete(at->window_first_end_us, w->watermark_us))
		return 0;
	settle(w);
	int64_t open = at->window_last < w->window_next ? at->window_last + 1 : w->window_next;
	return open - at->window_first;
}

/* Finds the slice of a time, or makes it unless all its windows are complete; then NULL. */
static struct slice *
slice_of(struct wm_windowing *w, int64_t event_time_us, int64_t *missed)
{
	struct wm_slice at;

	wm_windows_slice(w->windows, event_time_us, &at);
	*missed = windows_missed(w, &at);
	if (*missed == at.window_last - at.window_first + 1)
		return NULL;
	struct slice *slice = slice_at(w, &at);
	int64_t due_us = slice_due_us(w, slice);
	if (due_us < w->due_us)
		w->due_us = due_us;
	w->recent[1] = w->recent[0];
	w->recent[0] = slice;
	return slice;
}

static bool
slice_holds(const struct slice *slice, int64_t event_time_us)
{
	return slice != NULL && event_time_us >= slice->at.start_us && event_time_us < slice->at.end_us;
}

static struct wm_entry *
entry_in(const struct wm_windowing *w, struct wm_table *table, struct wm_span key, uint8_t tag)
{
	bool is_new;
	struct wm_entry *entry = wm_table_put(table, key, tag, &is_new);

	if (is_new)
		wm_agg_cell_init(w->agg, wm_entry_value(entry));
	return entry;
}

static void
add_to(const struct wm_windowing *w, struct wm_table *table, struct wm_span key, uint8_t tag,
	const struct wm_reading *readings, int64_t event_time_us)
{
	struct wm_entry *entry = entry_in(w, table, key, tag);

	wm_agg_cell_add(w->agg, wm_entry_value(entry), &table->arena, readings, event_time_us);
}

/* A record that came after its slice was combined into runs counts in these too. */
static void
add_to_runs(struct wm_windowing *w, int64_t slice_number, struct wm_span key, uint8_t tag,
	const struct wm_reading *readings, int64_t event_time_us)
{
	for (size_t level = 1; level < LEVELS_MAX; level++) {
		struct wm_table *run = NULL;

		if (w->levels[level].count != 0)
			run = wm_ordered_find(&w->levels[level], slice_number >> level);
		if (run != NULL)
			add_to(w, run, key, tag, readings, event_time_us);
	}
}

static void
touch(struct wm_windowing *w, const struct slice *slice, struct wm_entry *entry)
{
	if (entry->mark != 0)
		return;
	entry->mark = 1;
	w->touched = grown(w->touched, w->touched_count, &w->touched_capacity, sizeof(w->touched[0]));
	w->touched[w->touched_count++] = (struct member){ slice, entry };
	w->counts.updated++;
}

static void
clear_touched(struct wm_windowing *w)
{
	for (size_t i = 0; i < w->touched_count; i++)
		w->touched[i].entry->mark = 0;
	w->touched_count = 0;
	w->has_touched = false;
}

enum wm_window_verdict
wm_windowing_add(struct wm_windowing *w, const struct wm_window_record *record, int64_t *missed)
{
	const struct wm_reading *readings = record->readings;
	int64_t event_time_us = record->event_time_us;
	struct slice *slice;
	uint8_t tag;

	assert(!w->is_draining);
	if (record->watermark_us > w->watermark_us)
		w->watermark_us = record->watermark_us;
	slice = slice_holds(w->recent[0], event_time_us)   ? w->recent[0]
		: slice_holds(w->recent[1], event_time_us) ? w->recent[1]
							   : NULL;
	if (slice != NULL)
		*missed = windows_missed(w, &slice->at);
	else if ((slice = slice_of(w, event_time_us, missed)) == NULL)
		return WM_WINDOW_LATE;

	struct wm_span key = key_of(w, record->keys, &tag);
	size_t groups_before = slice->table.count;
	struct wm_entry *entry = entry_in(w, &slice->table, key, tag);
	w->counts.groups += slice->table.count - groups_before;
	wm_agg_cell_add(w->agg, wm_entry_value(entry), &slice->table.arena, readings, event_time_us);
	if (slice->at.number < w->combined_end)
		add_to_runs(w, slice->at.number, key, tag, readings, event_time_us);
	if (w->mode != WM_MODE_APPEND) {
		w->has_touched = true;
		w->due_us = WM_TIME_NONE;
	}
	if (w->mode == WM_MODE_UPDATE || w->is_counting)
		touch(w, slice, entry);
	return WM_WINDOW_USED;
}

/* Runs: a run of a level is 2^level slices, from a multiple of that */

static int64_t
run_begin(size_t level, int64_t place)
{
	return place * (INT64_C(1) << level);
}

/* Forgetting */

static void
forget_before(struct wm_windowing *w, int64_t window_number)
{
	if (window_number == INT64_MIN)
		return;
	for (;;) {
		struct wm_ordered_at at = wm_ordered_seek(&w->slices, INT64_MIN);
		struct slice *slice = wm_ordered_next(&w->slices, &at, NULL);

		if (slice == NULL || slice->at.window_last >= window_number)
			break;
		wm_ordered_take(&w->slices, slice->at.number);
		for (size_t i = 0; i < 2; i++)
			if (w->recent[i] == slice)
				w->recent[i] = NULL;
		w->counts.groups -= slice->table.count;
		w->counts.removed += slice->table.count;
		free_slice(slice);
	}
	/* Runs are kept while a slice in them, or one that may still come, belongs to an open window. */
	int64_t slice_first = window_number == INT64_MAX ? INT64_MAX : wm_window_slice_begin(w->windows, window_number);
	for (size_t level = 1; level < LEVELS_MAX; level++) {
		for (;;) {
			struct wm_ordered_at at = wm_ordered_seek(&w->levels[level], INT64_MIN);
			int64_t place;
			struct wm_table *run = wm_ordered_next(&w->levels[level], &at, &place);

			if (run == NULL || run_begin(level, place + 1) > slice_first)
				break;
			wm_ordered_take(&w->levels[level], place);
			wm_table_release(run);
			free(run);
		}
	}
}

static void
set_due(struct wm_windowing *w)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, INT64_MIN);
	const struct slice *first = wm_ordered_next(&w->slices, &at, NULL);

	w->due_us = w->has_touched ? WM_TIME_NONE : first == NULL ? WM_TIME_END : slice_due_us(w, first);
}

/* Writing in append: window by window */

static void
merge_table(const struct wm_windowing *w, struct wm_table *into, const struct wm_table *from)
{
	size_t at = 0;

	for (const struct wm_entry *entry; (entry = wm_table_next(from, &at)) != NULL;) {
		struct wm_entry *target = entry_in(w, into, wm_entry_key(entry), entry->tag);

		wm_agg_cell_merge(w->agg, wm_entry_value(target), &into->arena, wm_entry_value(entry));
	}
}

/* The table of the run of 2^level slices from place << level: made when first asked for. NULL if it holds nothing. */
static const struct wm_table *
run_table(struct wm_windowing *w, size_t level, int64_t place)
{
	int64_t begin = run_begin(level, place), end = run_begin(level, place + 1), number;
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, begin);
	struct slice *only = wm_ordered_next(&w->slices, &at, &number);

	if (only == NULL || number >= end)
		return NULL;
	if (wm_ordered_next(&w->slices, &at, &number) == NULL || number >= end)
		return &only->table;
	struct wm_table *run = wm_ordered_find(&w->levels[level], place);
	if (run != NULL)
		return run;
	run = wm_malloc(sizeof(struct wm_table));
	wm_table_init(run, w->cell_bytes);
	for (int64_t half = 2 * place; half <= 2 * place + 1; half++) {
		const struct wm_table *part = run_table(w, level - 1, half);

		if (part != NULL)
			merge_table(w, run, part);
	}
	wm_ordered_put(&w->levels[level], place, run);
	if (end > w->combined_end)
		w->combined_end = end;
	return run;
}

/* The table of a complete window with a slice in it: that of its only slice, or as few runs as cover it, combined. */
static const struct wm_table *
window_table(struct wm_windowing *w, int64_t window_number)
{
	int64_t begin = wm_window_slice_begin(w->windows, window_number);
	int64_t end = wm_window_slice_end(w->windows, window_number), number;
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, begin);
	struct slice *only = wm_ordered_next(&w->slices, &at, &number);

	assert(only != NULL && number < end);
	if (wm_ordered_next(&w->slices, &at, &number) == NULL || number >= end)
		return &only->table;
	wm_table_release(&w->combined);
	while (begin < end) {
		size_t level = 0;

		while ((begin & ((INT64_C(2) << level) - 1)) == 0 && begin + (INT64_C(2) << level) <= end)
			level++;
		const struct wm_table *run = run_table(w, level, begin >> level);
		if (run != NULL)
			merge_table(w, &w->combined, run);
		begin += INT64_C(1) << level;
	}
	return &w->combined;
}

static struct ready *
add_ready(struct wm_windowing *w)
{
	w->ready = grown(w->ready, w->ready_count, &w->ready_capacity, sizeof(w->ready[0]));
	return &w->ready[w->ready_count++];
}

static int
compare_ready_keys(const void *a, const void *b)
{
	const struct ready *ready_a = a, *ready_b = b;

	if (ready_a->prefix != ready_b->prefix)
		return ready_a->prefix < ready_b->prefix ? -1 : 1;
	return compare_entries(ready_a->entry, ready_b->entry);
}

static void
ready_table(struct wm_windowing *w, int64_t window_number, const struct wm_table *table)
{
	size_t at = 0;

	for (const struct wm_entry *entry; (entry = wm_table_next(table, &at)) != NULL;)
		*add_ready(w) = (struct ready){ window_number, key_prefix(entry), entry, wm_entry_value(entry) };
	qsort(w->ready, w->ready_count, sizeof(w->ready[0]), compare_ready_keys);
}

/* Makes the rows of the next complete window ready and forgets what was drained before; false if there is none. */
static bool
ready_next_window(struct wm_windowing *w)
{
	w->ready_count = w->ready_at = 0;
	forget_before(w, w->window_next);
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, INT64_MIN);
	const struct slice *first = wm_ordered_next(&w->slices, &at, NULL);
	if (first == NULL)
		return false;
	int64_t number = first->at.window_first > w->window_next ? first->at.window_first : w->window_next;
	if (!wm_is_complete(wm_window_end_us(w->windows, number), w->watermark_us))
		return false;
	ready_table(w, number, window_table(w, number));
	w->window_next = number + 1;
	return true;
}

/* Writing in update and complete: key by key, then sorted by window */

static int
compare_members(const void *a, const void *b)
{
	const struct member *member_a = a, *member_b = b;
	int order = compare_entries(member_a->entry, member_b->entry);

	if (order != 0)
		return order;
	return (member_a->slice->at.number > member_b->slice->at.number) -
		(member_a->slice->at.number < member_b->slice->at.number);
}

static int
compare_ready_windows(const void *a, const void *b)
{
	const struct ready *ready_a = a, *ready_b = b;

	if (ready_a->window_number != ready_b->window_number)
		return ready_a->window_number < ready_b->window_number ? -1 : 1;
	return (ready_a->prefix > ready_b->prefix) - (ready_a->prefix < ready_b->prefix);
}

/* Every key of every slice. */
static struct member *
all_members(const struct wm_windowing *w, size_t *count)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, INT64_MIN);
	struct member *members = NULL;
	size_t capacity = 0;

	*count = 0;
	for (const struct slice *slice; (slice = wm_ordered_next(&w->slices, &at, NULL)) != NULL;) {
		size_t place = 0;

		for (struct wm_entry *entry; (entry = wm_table_next(&slice->table, &place)) != NULL;) {
			members = grown(members, *count, &capacity, sizeof(members[0]));
			members[(*count)++] = (struct member){ slice, entry };
		}
	}
	return members;
}

/* A cell of a key in one slice. */
struct part {
	int64_t slice_number;
	const void *cell;
};

static void *
new_cell(struct wm_windowing *w)
{
	void *cell = wm_arena_alloc(&w->ready_arena, w->cell_bytes);

	wm_agg_cell_init(w->agg, cell);
	return cell;
}

static void
merge_cell(struct wm_windowing *w, void *into, const void *from)
{
	wm_agg_cell_merge(w->agg, into, &w->ready_arena, from);
}

/*
 * Combines the parts of one key, in order of slices, into its windows first to
 * last. Each part is merged about three times, however many windows hold it:
 * "front" has the sums from each part up to the turning point, "back" the one
 * running sum behind it; a window is one of the former and the latter.
 */
static void
combine_windows(struct wm_windowing *w, const struct part *parts, size_t parts_count, int64_t first, int64_t last,
	const struct wm_entry *entry, uint64_t rank)
{
	void **front = wm_reallocarray(NULL, parts_count, sizeof(void *));
	void *back = new_cell(w);
	size_t low = 0, high = 0, turn = 0;

	for (int64_t number = first; number <= last; number++) {
		int64_t begin = wm_window_slice_begin(w->windows, number),
			end = wm_window_slice_end(w->windows, number);
		size_t high_before = high;

		while (low < parts_count && parts[low].slice_number < begin)
			low++;
		while (high < parts_count && parts[high].slice_number < end)
			high++;
		if (low >= turn) {
			for (size_t i = high; i-- > low;) {
				front[i] = new_cell(w);
				merge_cell(w, front[i], parts[i].cell);
				if (i + 1 < high)
					merge_cell(w, front[i], front[i + 1]);
			}
			turn = high;
			back = new_cell(w);
		} else {
			for (size_t i = high_before; i < high; i++)
				merge_cell(w, back, parts[i].cell);
		}
		/* Every window asked for holds a part. */
		assert(low < turn);
		void *cell = new_cell(w);
		merge_cell(w, cell, front[low]);
		merge_cell(w, cell, back);
		*add_ready(w) = (struct ready){ number, rank, entry, cell };
	}
	free(front);
}

/* The windows first to last of one key. */
static void
ready_windows(struct wm_windowing *w, struct wm_entry *entry, int64_t first, int64_t last, uint64_t rank)
{
	int64_t end = wm_window_slice_end(w->windows, last), number;
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, wm_window_slice_begin(w->windows, first));
	struct part *parts = NULL;
	size_t parts_count = 0, capacity = 0;

	for (const struct slice *slice; (slice = wm_ordered_next(&w->slices, &at, &number)) != NULL && number < end;) {
		const struct wm_entry *found = wm_table_find(&slice->table, wm_entry_key(entry), entry->tag);

		if (found == NULL)
			continue;
		parts = grown(parts, parts_count, &capacity, sizeof(parts[0]));
		parts[parts_count++] = (struct part){ number, wm_entry_value(found) };
	}
	combine_windows(w, parts, parts_count, first, last, entry, rank);
	free(parts);
}

/* The windows of a member that are open: *first > *last if there is none. */
static void
open_windows(const struct wm_windowing *w, const struct member *member, int64_t *first, int64_t *last)
{
	bool all = w->mode == WM_MODE_COMPLETE || member->slice->at.window_first >= w->window_next;

	*first = all ? member->slice->at.window_first : w->window_next;
	*last = member->slice->at.window_last;
}

/*
 * Walks the windows that hold one of the members, sorted here by key and slice; runs of neighbouring windows of a key together.
 * Makes them ready, or only counts them.
 */
static uint64_t
walk_windows(struct wm_windowing *w, struct member *members, size_t count, bool is_counting)
{
	uint64_t rank = 0, windows_count = 0;

	if (count == 0)
		return 0;
	qsort(members, count, sizeof(members[0]), compare_members);
	for (size_t i = 0; i < count;) {
		int64_t first, last;
		size_t next = i + 1;
		bool is_same = false;

		open_windows(w, &members[i], &first, &last);
		while (next < count && (is_same = compare_entries(members[i].entry, members[next].entry) == 0)) {
			int64_t next_first, next_last;

			open_windows(w, &members[next], &next_first, &next_last);
			if (next_first > last + 1)
				break;
			last = next_last;
			next++;
		}
		if (first <= last)
			windows_count += (uint64_t)(last - first + 1);
		if (first <= last && !is_counting)
			ready_windows(w, members[i].entry, first, last, rank);
		rank += !is_same;
		i = next;
	}
	return windows_count;
}

static void
ready_touched(struct wm_windowing *w)
{
	struct member *members = w->touched;
	size_t count = w->touched_count;

	if (w->mode == WM_MODE_COMPLETE)
		members = all_members(w, &count);
	walk_windows(w, members, count, false);
	if (w->ready_count != 0)
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
		forget_before(w, w->window_next);
	}
	wm_arena_release(&w->ready_arena);
	w->ready_count = w->ready_at = 0;
	w->is_draining = false;
	set_due(w);
}

void
wm_windowing_advance(struct wm_windowing *w, int64_t watermark_us)
{
	assert(!w->is_draining);
	/* Judged by the watermark from before: windows that it completes now got their records in time. */
	if (w->mode != WM_MODE_APPEND && watermark_us != WM_TIME_END)
		ready_touched(w);
	clear_touched(w);
	if (watermark_us > w->watermark_us)
		w->watermark_us = watermark_us;
	w->is_draining = true;
}

bool
wm_windowing_next(struct wm_windowing *w, struct wm_window_row *row)
{
	if (!w->is_draining)
		return false;
	if (w->ready_at == w->ready_count && (w->mode != WM_MODE_APPEND || !ready_next_window(w))) {
		end_draining(w);
		return false;
	}
	const struct ready *ready = &w->ready[w->ready_at++];
	row->window_start_us = wm_window_start_us(w->windows, ready->window_number);
	row->window_end_us = wm_window_end_us(w->windows, ready->window_number);
	keys_of_entry(w, ready->entry, w->row_keys);
	row->keys = w->row_keys;
	row->cell = ready->cell;
	return true;
}

void
wm_windowing_count_updates(struct wm_windowing *w)
{
	w->is_counting = true;
}

struct wm_windowing_counts
wm_windowing_counts(const struct wm_windowing *w)
{
	return w->counts;
}

uint64_t
wm_windowing_open_count(struct wm_windowing *w)
{
	size_t count;
	struct member *members = all_members(w, &count);
	uint64_t open = walk_windows(w, members, count, true);

	free(members);
	return open;
}

size_t
wm_windowing_bytes(const struct wm_windowing *w)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, INT64_MIN);
	size_t bytes = wm_table_bytes(&w->combined) + w->ready_capacity * sizeof(w->ready[0]);

	for (const struct slice *slice; (slice = wm_ordered_next(&w->slices, &at, NULL)) != NULL;)
		bytes += sizeof(*slice) + wm_table_bytes(&slice->table);
	for (size_t level = 1; level < LEVELS_MAX; level++) {
		at = wm_ordered_seek(&w->levels[level], INT64_MIN);
		for (const struct wm_table *run; (run = wm_ordered_next(&w->levels[level], &at, NULL)) != NULL;)
			bytes += sizeof(*run) + wm_table_bytes(run);
	}
	return bytes;
}

/*
 * i64 watermark · i64 next window · u8 touched · varint slices, each: i64 start ·
 * varint entries, each in order of keys: u8 tag · u8 mark · key · cell.
 * Runs are left out: they are made again.
 */
void
wm_windowing_encode(struct wm_windowing *w, struct wm_buf *out)
{
	struct wm_ordered_at at = wm_ordered_seek(&w->slices, INT64_MIN);

	assert(!w->is_draining);
	wm_put_i64(out, w->watermark_us);
	wm_put_i64(out, w->window_next);
	wm_put_u8(out, w->has_touched);
	wm_put_varint(out, w->slices.count);
	for (const struct slice *slice; (slice = wm_ordered_next(&w->slices, &at, NULL)) != NULL;) {
		wm_put_i64(out, slice->at.start_us);
		wm_put_varint(out, slice->table.count);
		ready_table(w, slice->at.window_last, &slice->table);
		for (size_t i = 0; i < w->ready_count; i++) {
			const struct wm_entry *entry = w->ready[i].entry;

			wm_put_u8(out, entry->tag);
			wm_put_u8(out, entry->mark);
			wm_put_span(out, wm_entry_key(entry));
			wm_agg_cell_encode(w->agg, w->ready[i].cell, out);
		}
		w->ready_count = 0;
	}
}

/* Whether a decoded key is one that key_of() could have made. */
static bool
is_key(const struct wm_windowing *w, struct wm_span key, uint8_t tag)
{
	struct wm_get in;

	if (w->keys_count == 1)
		return tag <= WM_KIND_JSON;
	wm_get_init(&in, key);
	for (size_t i = 0; i < w->keys_count; i++)
		if (key_part(&in).kind > WM_KIND_JSON)
			return false;
	return tag == TAG_COMPOSITE && !in.failed && wm_get_left(&in) == 0;
}

static bool
decode_slice(struct wm_windowing *w, struct wm_get *in)
{
	int64_t start_us = wm_get_i64(in);
	uint64_t entries_count = wm_get_varint(in);
	struct wm_slice at;

	if (in->failed || start_us < -WM_DURATION_US_MAX || start_us > WM_DURATION_US_MAX)
		return false;
	wm_windows_slice(w->windows, start_us, &at);
	if (at.start_us != start_us || wm_ordered_find(&w->slices, at.number) != NULL)
		return false;
	struct slice *slice = slice_at(w, &at);
	for (uint64_t i = 0; i < entries_count; i++) {
		uint8_t tag = wm_get_u8(in), mark = wm_get_u8(in);
		struct wm_span key = wm_get_span(in);
		bool is_new;

		if (in->failed || mark > 1 || !is_key(w, key, tag))
			return false;
		struct wm_entry *entry = wm_table_put(&slice->table, key, tag, &is_new);
		if (!is_new || !wm_agg_cell_decode(w->agg, wm_entry_value(entry), &slice->table.arena, in))
			return false;
		w->counts.groups++;
		if (mark != 0 && (w->mode == WM_MODE_UPDATE || w->is_counting))
			touch(w, slice, entry);
	}
	return true;
}

bool
wm_windowing_decode(struct wm_windowing *w, struct wm_get *in)
{
	int64_t watermark_us = wm_get_i64(in);
	int64_t window_next = wm_get_i64(in);
	bool has_touched = wm_get_u8(in) != 0;
	uint64_t slices_count = wm_get_varint(in);

	if (in->failed || w->slices.count != 0)
		return false;
	w->watermark_us = watermark_us;
	w->window_next = window_next;
	for (uint64_t i = 0; i < slices_count; i++)
		if (!decode_slice(w, in))
			return false;
	w->has_touched = has_touched;
	set_due(w);
	return true;
}
