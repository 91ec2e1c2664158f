/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/lag.h"

#include <assert.h>
#include <math.h>
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
#include "lib/time/civil.h"

#define US_PER_MS 1000
#define VALUES_MIN 8

/* Exact values are on the heap, where they can grow in place. */
struct group {
	uint64_t count;
	int64_t first_time_us;
	int64_t last_time_us;
	struct wm_arena sketches; /* of all series */
	struct wm_lag_series series[WM_LAG_KINDS];
};

/* What a time's window tells, kept for the times near it. */
struct place {
	int64_t start_us; /* of the slice; start == end: none yet */
	int64_t end_us;
	int64_t window_end_us; /* of its last window */
};

struct wm_lag {
	struct wm_lag_options options;
	struct wm_keyed groups; /* of struct group, by window and keys */
	struct wm_expiry due;   /* with closes: the entries of groups, by the ends of their windows */
	struct group *only;     /* the one group of a lag that is not grouped */
	struct place every;
	struct place windows;
	uint64_t kept_count; /* values of lag and disorder that are kept */
	bool is_sketched;
	size_t values_bytes; /* of all series that are not */
	size_t sketches_bytes;
	uint64_t overdue_count;
	struct wm_value *parts; /* of a group's key: with every where its window starts, then the keys */
	size_t parts_count;
	struct wm_buf key_text;

	/* a walk over those in order, NULL between walks; or, where is_closing, over those that were closed */
	struct wm_entry **order;
	size_t order_count;
	size_t order_at;
	bool is_closing;
};

static struct group *
group_of(const struct wm_entry *entry)
{
	return wm_entry_value(entry);
}

static void
begin_group(struct group *group)
{
	*group = (struct group){ .first_time_us = INT64_MAX, .last_time_us = INT64_MIN };
}

static inline const struct place *
place_of(struct place *place, const struct wm_windows *windows, int64_t time_us)
{
	struct wm_slice slice;

	if (time_us >= place->start_us && time_us < place->end_us)
		return place;
	wm_windows_slice(windows, time_us, &slice);
	*place = (struct place){ slice.start_us, slice.end_us, slice.window_last_end_us };
	return place;
}

/* A time as bytes that order like it. */
struct time_text {
	char bytes[sizeof(uint64_t)];
};

static struct time_text
time_text_of(int64_t time_us)
{
	uint64_t ordered = __builtin_bswap64((uint64_t)time_us ^ UINT64_C(1) << 63);
	struct time_text text;

	memcpy(text.bytes, &ordered, sizeof(ordered));
	return text;
}

/* False if the text is none. */
static bool
time_of_text(struct wm_span text, int64_t *time_us)
{
	uint64_t ordered;

	if (text.len != sizeof(ordered))
		return false;
	memcpy(&ordered, text.data, sizeof(ordered));
	*time_us = (int64_t)(__builtin_bswap64(ordered) ^ UINT64_C(1) << 63);
	return true;
}

static size_t
values_bytes(const struct wm_lag_series *series)
{
	return series->values_capacity * sizeof(series->values[0]);
}

/* Its memory, and what it counted toward WM_LAG_EXACT_MAX. */
static void
release_group(struct wm_lag *lag, struct group *group)
{
	for (size_t kind = 0; kind < WM_LAG_KINDS; kind++) {
		struct wm_lag_series *series = &group->series[kind];

		if (kind == WM_LAG_LAG || kind == WM_LAG_DISORDER)
			lag->kept_count -= series->values_count;
		lag->values_bytes -= values_bytes(series);
		free(series->values);
	}
	lag->sketches_bytes -= group->sketches.bytes;
	wm_arena_release(&group->sketches);
}

/* The end of the window of an entry, or WM_LAG_NO_WINDOW. */
static int64_t
window_end_us(struct wm_lag *lag, const struct wm_entry *entry)
{
	int64_t start_us = WM_LAG_NO_WINDOW;

	wm_keys_unpack(entry, lag->parts, lag->parts_count);
	if (!time_of_text(lag->parts[0].text, &start_us) || start_us == WM_LAG_NO_WINDOW)
		return WM_LAG_NO_WINDOW;
	return place_of(&lag->every, lag->options.every, start_us)->end_us;
}

/* The group of the key that lag->parts are, begun if there was none. */
static struct group *
put_parts(struct wm_lag *lag)
{
	uint8_t tag;
	bool is_new;
	struct wm_span key = wm_keys_pack(lag->parts, lag->parts_count, &lag->key_text, &tag);
	struct wm_entry *entry = wm_keyed_put(&lag->groups, key, tag, wm_hash(key, tag), &is_new);

	if (is_new)
		begin_group(group_of(entry));
	if (is_new && lag->options.closes)
		wm_expiry_put(&lag->due, window_end_us(lag, entry), entry);
	return group_of(entry);
}

struct wm_lag *
wm_lag_new(const struct wm_lag_options *options)
{
	struct wm_lag *lag = wm_calloc(1, sizeof(*lag));

	assert(options->windows == NULL || options->has_advice);
	assert(options->every != NULL || !options->closes);
	lag->options = *options;
	lag->parts_count = options->keys_count + (options->every != NULL);
	lag->parts = wm_calloc(lag->parts_count, sizeof(lag->parts[0]));
	wm_keyed_init(&lag->groups, sizeof(struct group));
	wm_buf_init(&lag->key_text, WM_BUF_UNBOUNDED);
	if (lag->parts_count == 0)
		lag->only = put_parts(lag);
	return lag;
}

void
wm_lag_set_closes(struct wm_lag *lag)
{
	assert(lag->options.every != NULL && wm_lag_groups_count(lag) == 0);
	lag->options.closes = true;
}

void
wm_lag_free(struct wm_lag *lag)
{
	size_t at = 0;

	if (lag == NULL)
		return;
	for (struct wm_entry *entry; (entry = wm_keyed_next(&lag->groups, &at)) != NULL;)
		release_group(lag, group_of(entry));
	wm_keyed_release(&lag->groups);
	wm_expiry_release(&lag->due);
	wm_buf_release(&lag->key_text);
	free(lag->order);
	free(lag->parts);
	free(lag);
}

/* Values */

static void
sketch_value(struct wm_lag *lag, struct group *group, struct wm_lag_series *series, int64_t value_us)
{
	size_t before = group->sketches.bytes;

	wm_quantile_add_integer(&series->sketch, &group->sketches, value_us);
	lag->sketches_bytes += group->sketches.bytes - before;
}

static void
sketch_series(struct wm_lag *lag, struct group *group, struct wm_lag_series *series)
{
	for (size_t i = 0; i < series->values_count; i++)
		sketch_value(lag, group, series, series->values[i]);
	free(series->values);
	lag->values_bytes -= values_bytes(series);
	series->values = NULL;
	series->values_count = series->values_capacity = 0;
}

__attribute__((noinline, cold)) static void
sketch_all(struct wm_lag *lag)
{
	size_t at = 0;

	for (struct wm_entry *entry; (entry = wm_keyed_next(&lag->groups, &at)) != NULL;)
		for (size_t kind = 0; kind < WM_LAG_KINDS; kind++)
			sketch_series(lag, group_of(entry), &group_of(entry)->series[kind]);
	lag->is_sketched = true;
}

__attribute__((noinline)) static void
grow(struct wm_lag *lag, struct wm_lag_series *series)
{
	lag->values_bytes -= values_bytes(series);
	series->values_capacity = series->values_capacity == 0 ? VALUES_MIN : series->values_capacity * 2;
	series->values = wm_reallocarray(series->values, series->values_capacity, sizeof(series->values[0]));
	lag->values_bytes += values_bytes(series);
}

static inline void
add_value(struct wm_lag *lag, struct group *group, enum wm_lag_kind kind, int64_t value_us)
{
	struct wm_lag_series *series = &group->series[kind];

	series->min_us = series->count == 0 || value_us < series->min_us ? value_us : series->min_us;
	series->max_us = series->count == 0 || value_us > series->max_us ? value_us : series->max_us;
	series->count++;
	series->sum_us += value_us;
	series->negative += value_us < 0;
	if (value_us == 0) {
		series->zeros++;
	} else if (lag->is_sketched) {
		sketch_value(lag, group, series, value_us);
	} else {
		if (series->values_count == series->values_capacity)
			grow(lag, series);
		series->values[series->values_count++] = value_us;
	}
}

/* One that counts toward WM_LAG_EXACT_MAX. */
static inline void
add_counted(struct wm_lag *lag, struct group *group, enum wm_lag_kind kind, int64_t value_us)
{
	if (value_us != 0 && lag->kept_count++ == WM_LAG_EXACT_MAX)
		sketch_all(lag);
	add_value(lag, group, kind, value_us);
}

/* Adding */

static struct group *
find_group(struct wm_lag *lag, const struct wm_lag_record *record)
{
	bool has_window = lag->options.every != NULL;
	struct time_text start;

	if (has_window) {
		const struct place *window = place_of(&lag->every, lag->options.every, record->event_time_us);
		bool is_closed = lag->options.closes && wm_is_complete(window->end_us, record->watermark_us);

		lag->overdue_count += is_closed;
		start = time_text_of(is_closed ? WM_LAG_NO_WINDOW : window->start_us);
		lag->parts[0] = (struct wm_value){ wm_span(start.bytes, sizeof(start.bytes)), WM_KIND_TEXT };
	}
	for (size_t i = 0; i < lag->options.keys_count; i++)
		lag->parts[has_window + i] = record->keys[i];
	return put_parts(lag);
}

/* The least delay with which what ends at end_us is beyond the watermark; never negative. */
static inline int64_t
least_delay_us(int64_t highest_time_us, int64_t end_us)
{
	int64_t end_ms = -wm_floor_div(-end_us, US_PER_MS);
	int64_t delay_us = highest_time_us - end_ms * US_PER_MS + 1;

	return delay_us > 0 ? delay_us : 0;
}

void
wm_lag_add(struct wm_lag *lag, const struct wm_lag_record *record)
{
	struct group *group = lag->only != NULL ? lag->only : find_group(lag, record);
	int64_t time_us = record->event_time_us, disorder_us = 0, behind_us = 0, dropped_us = 0;

	assert(lag->order == NULL);
	group->count++;
	group->first_time_us = time_us < group->first_time_us ? time_us : group->first_time_us;
	group->last_time_us = time_us > group->last_time_us ? time_us : group->last_time_us;
	if (lag->options.has_arrival)
		add_counted(lag, group, WM_LAG_LAG, record->arrival_us - time_us);
	if (record->highest_time_us > time_us)
		disorder_us = record->highest_time_us - time_us;
	add_counted(lag, group, WM_LAG_DISORDER, disorder_us);
	if (!lag->options.has_advice)
		return;
	/* What is in order is never behind. */
	if (disorder_us != 0)
		behind_us = least_delay_us(record->highest_time_us, time_us + 1);
	add_value(lag, group, WM_LAG_BEHIND, behind_us);
	if (lag->options.windows == NULL)
		return;
	if (behind_us != 0)
		dropped_us = least_delay_us(
			record->highest_time_us, place_of(&lag->windows, lag->options.windows, time_us)->window_end_us);
	add_value(lag, group, WM_LAG_DROPPED, dropped_us);
}

/* Reading */

/* By bytes from the lowest up; a byte that all values share costs one look. Negative values stand first. */
static void
sort_values(int64_t *values, size_t count)
{
	uint64_t *from = (uint64_t *)values, *into, *spare;
	bool is_sorted = true;

	for (size_t i = 1; i < count && is_sorted; i++)
		is_sorted = values[i - 1] <= values[i];
	if (is_sorted)
		return;
	into = spare = wm_reallocarray(NULL, count, sizeof(*spare));
	for (size_t i = 0; i < count; i++)
		from[i] ^= UINT64_C(1) << 63;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t places[256] = { 0 }, next = 0;

		for (size_t i = 0; i < count; i++)
			places[from[i] >> shift & 255]++;
		if (places[from[0] >> shift & 255] == count)
			continue;
		for (size_t byte = 0; byte < 256; byte++) {
			size_t first = next;

			next += places[byte];
			places[byte] = first;
		}
		for (size_t i = 0; i < count; i++)
			into[places[from[i] >> shift & 255]++] = from[i];
		uint64_t *filled = into;
		into = from;
		from = filled;
	}
	for (size_t i = 0; i < count; i++)
		from[i] ^= UINT64_C(1) << 63;
	if (from == spare)
		memcpy(values, from, count * sizeof(*values));
	free(spare);
}

static void
sort_order(struct wm_lag *lag)
{
	qsort(lag->order, lag->order_count, sizeof(lag->order[0]), wm_keys_compare_pointers);
	lag->order_at = 0;
}

static void
sort_groups(struct wm_lag *lag)
{
	size_t at = 0;

	lag->order = wm_reallocarray(NULL, lag->groups.places.count + 1, sizeof(lag->order[0]));
	lag->order_count = 0;
	for (struct wm_entry *entry; (entry = wm_keyed_next(&lag->groups, &at)) != NULL;)
		lag->order[lag->order_count++] = entry;
	sort_order(lag);
}

static void
end_walk(struct wm_lag *lag)
{
	free(lag->order);
	lag->order = NULL;
}

bool
wm_lag_next(struct wm_lag *lag, struct wm_lag_group *group)
{
	bool has_window = lag->options.every != NULL;

	if (lag->order == NULL)
		sort_groups(lag);
	if (lag->order_at == lag->order_count) {
		lag->order_at = 0;
		if (!lag->is_closing)
			end_walk(lag);
		return false;
	}
	const struct wm_entry *entry = lag->order[lag->order_at++];
	struct group *found = group_of(entry);
	wm_keys_unpack(entry, lag->parts, lag->parts_count);
	*group = (struct wm_lag_group){ .keys = lag->parts + has_window,
		.first_time_us = found->first_time_us,
		.last_time_us = found->last_time_us,
		.count = found->count,
		.series = found->series };
	if (has_window && time_of_text(lag->parts[0].text, &group->window_start_us))
		group->window_end_us = window_end_us(lag, entry);
	for (size_t kind = 0; kind < WM_LAG_KINDS; kind++)
		sort_values(found->series[kind].values, found->series[kind].values_count);
	return true;
}

int64_t
wm_lag_due_us(const struct wm_lag *lag)
{
	return wm_expiry_due_us(&lag->due);
}

bool
wm_lag_close(struct wm_lag *lag, int64_t watermark_us)
{
	size_t capacity = 0;

	assert(lag->options.closes && lag->order == NULL);
	lag->order_count = 0;
	for (struct wm_entry *entry; (entry = wm_expiry_take(&lag->due, watermark_us)) != NULL;) {
		lag->order = wm_grown(lag->order, lag->order_count, &capacity, sizeof(lag->order[0]));
		lag->order[lag->order_count++] = entry;
	}
	lag->is_closing = lag->order_count != 0;
	if (lag->is_closing)
		sort_order(lag);
	return lag->is_closing;
}

void
wm_lag_forget(struct wm_lag *lag)
{
	assert(lag->is_closing);
	for (size_t i = 0; i < lag->order_count; i++) {
		release_group(lag, group_of(lag->order[i]));
		wm_keyed_take(&lag->groups, lag->order[i]);
	}
	lag->is_closing = false;
	end_walk(lag);
}

int64_t
wm_lag_at(const struct wm_lag_series *series, uint64_t rank)
{
	assert(rank > 0 && rank <= series->count);
	if (rank > series->negative && rank <= series->negative + series->zeros)
		return 0;
	if (rank > series->negative)
		rank -= series->zeros;
	if (series->values_count != 0)
		return series->values[rank - 1];
	struct wm_decimal value = wm_quantile_at(&series->sketch, rank);
	return value.is_exact ? (int64_t)value.whole : (int64_t)llround(value.nearest);
}

int64_t
wm_lag_percentile(const struct wm_lag_series *series, uint64_t percent)
{
	return wm_lag_at(series, wm_quantile_rank(percent, series->count));
}

uint64_t
wm_lag_above(const struct wm_lag_series *series, int64_t delay_us)
{
	/* Ranks that are known to be at or below the delay, and the first that may be above. */
	uint64_t low = series->negative + series->zeros, high = series->count;

	assert(delay_us >= 0);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (wm_lag_at(series, middle + 1) > delay_us)
			high = middle;
		else
			low = middle + 1;
	}
	return series->count - low;
}

/* In seconds. */
static struct wm_decimal_sum
sum_of(const struct wm_lag_series *series)
{
	struct wm_decimal_sum sum = { 0 };
	int64_t rest_us = (int64_t)(series->sum_us % WM_US_PER_SECOND);
	struct wm_decimal number = { .whole = series->sum_us / WM_US_PER_SECOND,
		.fraction = rest_us * (WM_FRACTION_ONE / WM_US_PER_SECOND),
		.is_exact = true };

	wm_decimal_sum_add(&sum, &number);
	return sum;
}

double
wm_lag_mean_s(const struct wm_lag_series *series)
{
	struct wm_decimal_sum sum = sum_of(series);

	return wm_decimal_sum_mean(&sum, series->count);
}

void
wm_lag_print_sum_s(const struct wm_lag_series *series, struct wm_buf *out)
{
	struct wm_decimal_sum sum = sum_of(series);

	wm_decimal_sum_print(&sum, out);
}

uint64_t
wm_lag_groups_count(const struct wm_lag *lag)
{
	return lag->groups.places.count;
}

uint64_t
wm_lag_overdue_count(const struct wm_lag *lag)
{
	return lag->overdue_count;
}

size_t
wm_lag_bytes(const struct wm_lag *lag)
{
	return sizeof(*lag) + wm_keyed_bytes(&lag->groups) + lag->due.bytes + lag->values_bytes + lag->sketches_bytes;
}

/* State */

static void
encode_series(const struct wm_lag_series *series, bool is_sketched, struct wm_buf *out)
{
	wm_put_varint(out, series->count);
	if (series->count == 0)
		return;
	wm_put_varint(out, series->zeros);
	wm_put_varint(out, series->negative);
	wm_put_i64(out, series->min_us);
	wm_put_i64(out, series->max_us);
	wm_put_u64(out, (uint64_t)series->sum_us);
	wm_put_i64(out, (int64_t)(series->sum_us >> 64));
	if (is_sketched)
		wm_quantile_encode(&series->sketch, out);
	else
		for (size_t i = 0; i < series->values_count; i++)
			wm_put_i64(out, series->values[i]);
}

static bool
decode_series(struct wm_lag *lag, struct group *group, enum wm_lag_kind kind, struct wm_get *in)
{
	struct wm_lag_series *series = &group->series[kind];

	series->count = wm_get_varint(in);
	if (series->count == 0)
		return !in->failed;
	series->zeros = wm_get_varint(in);
	series->negative = wm_get_varint(in);
	series->min_us = wm_get_i64(in);
	series->max_us = wm_get_i64(in);
	series->sum_us = wm_get_u64(in);
	series->sum_us += (wm_int128)wm_get_i64(in) * ((wm_int128)1 << 64);
	if (in->failed || series->zeros > series->count || series->negative > series->count - series->zeros)
		return false;
	uint64_t others = series->count - series->zeros;
	if (lag->is_sketched) {
		size_t before = group->sketches.bytes;
		bool is_good = wm_quantile_decode(&series->sketch, &group->sketches, in);

		lag->sketches_bytes += group->sketches.bytes - before;
		return is_good && series->sketch.count == others;
	}
	if (others > wm_get_left(in) / sizeof(int64_t))
		return false;
	uint64_t negative = 0;
	series->values = others == 0 ? NULL : wm_reallocarray(NULL, others, sizeof(series->values[0]));
	series->values_count = series->values_capacity = others;
	lag->values_bytes += values_bytes(series);
	for (size_t i = 0; i < others; i++) {
		series->values[i] = wm_get_i64(in);
		negative += series->values[i] < 0;
		if (series->values[i] == 0)
			return false;
	}
	return negative == series->negative;
}

/*
 * u8 sketched, varint kept values, varint groups, each in order: u8 tag, key, varint records, i64 first and last
 * time, its series.
 */
void
wm_lag_encode(struct wm_lag *lag, struct wm_buf *out)
{
	assert(lag->order == NULL);
	sort_groups(lag);
	wm_put_u8(out, lag->is_sketched);
	wm_put_varint(out, lag->kept_count);
	wm_put_varint(out, lag->order_count);
	for (size_t i = 0; i < lag->order_count; i++) {
		const struct wm_entry *entry = lag->order[i];
		const struct group *group = group_of(entry);

		wm_put_u8(out, entry->tag);
		wm_put_span(out, wm_entry_key(entry));
		wm_put_varint(out, group->count);
		wm_put_i64(out, group->first_time_us);
		wm_put_i64(out, group->last_time_us);
		for (size_t kind = 0; kind < WM_LAG_KINDS; kind++)
			encode_series(&group->series[kind], lag->is_sketched, out);
	}
	end_walk(lag);
}

/* Whether the window of a decoded entry is one of those asked for. */
static bool
is_window(struct wm_lag *lag, const struct wm_entry *entry)
{
	int64_t start_us;
	struct wm_slice window;

	wm_keys_unpack(entry, lag->parts, lag->parts_count);
	if (!time_of_text(lag->parts[0].text, &start_us))
		return false;
	if (start_us == WM_LAG_NO_WINDOW)
		return true;
	if (start_us < -WM_DURATION_US_MAX || start_us > WM_DURATION_US_MAX)
		return false;
	wm_windows_slice(lag->options.every, start_us, &window);
	return window.start_us == start_us;
}

static bool
decode_group(struct wm_lag *lag, struct wm_get *in)
{
	uint8_t tag = wm_get_u8(in);
	struct wm_span key = wm_get_span(in);
	bool is_new;

	if (in->failed || !wm_keys_are_valid(key, tag, lag->parts_count))
		return false;
	struct wm_entry *entry = wm_keyed_put(&lag->groups, key, tag, wm_hash(key, tag), &is_new);
	struct group *group = group_of(entry);
	if (is_new)
		begin_group(group);
	else if (group != lag->only || group->count != 0)
		return false;
	if (lag->options.every != NULL && !is_window(lag, entry))
		return false;
	if (lag->options.closes)
		wm_expiry_put(&lag->due, window_end_us(lag, entry), entry);
	group->count = wm_get_varint(in);
	if (lag->options.every != NULL && window_end_us(lag, entry) == WM_LAG_NO_WINDOW)
		lag->overdue_count += group->count;
	group->first_time_us = wm_get_i64(in);
	group->last_time_us = wm_get_i64(in);
	for (size_t kind = 0; kind < WM_LAG_KINDS; kind++)
		if (!decode_series(lag, group, (enum wm_lag_kind)kind, in))
			return false;
	return true;
}

bool
wm_lag_decode(struct wm_lag *lag, struct wm_get *in)
{
	lag->is_sketched = wm_get_u8(in) != 0;
	lag->kept_count = wm_get_varint(in);
	uint64_t groups_count = wm_get_varint(in);

	for (uint64_t i = 0; i < groups_count && !in->failed; i++) {
		wm_get_give_back(in);
		if (!decode_group(lag, in))
			return false;
	}
	return !in->failed;
}
