/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lag - how late records run, and what a delay would cost.
 *
 * Of each record two things are measured, in microseconds:
 *
 *     disorder = highest event time so far - event time, 0 where the record is the highest: what a delay has to cover
 *     lag      = arrival - event time, negative where a clock runs ahead: never clipped
 *
 * and, for advice, two delays that follow from the rules of watermark.h:
 *
 *     behind   the least delay with which the record is not behind the watermark
 *     dropped  the least delay with which one of its windows is still open, so that it counts
 *
 * The watermark of a delay d is highest event time - d cut to the millisecond toward the
 * past, so a thing that ends at e is beyond it from d = highest - ceil_ms(e) + 1 us on. Counting the
 * records above d therefore gives exactly those that a run with the delay d finds behind or drops.
 *
 * Records are measured in groups: by keys, by tumbling windows of event time,
 * or all as one. Windows can be closed by a watermark: their groups are handed out once and forgotten, and records that
 * come later for them are measured together, by their keys, in groups without a window.
 *
 * Values are kept as they are while those of lag and disorder that are not 0
 * number at most WM_LAG_EXACT_MAX in all groups together. From the next one on each series
 * is a sketch (quantile.h): ranks and counts are then approximate, within 0.4 % of a value; counts, sums, least
 * and greatest values, and what is 0, stay exact.
 *
 * The operator owns no files, clocks or options' texts; several can run at once.
 */
#ifndef WM_OP_LAG_H
#define WM_OP_LAG_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/agg/quantile.h"
#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/decimal.h"
#include "lib/base/value.h"
#include "lib/event/window.h"

/* Values that are kept; the next one makes sketches of all. 8 MB, and as much again for each kind of advice. */
#define WM_LAG_EXACT_MAX 1000000

enum wm_lag_kind { WM_LAG_LAG, WM_LAG_DISORDER, WM_LAG_BEHIND, WM_LAG_DROPPED };
#define WM_LAG_KINDS 4

struct wm_lag_options {
	size_t keys_count;
	const struct wm_windows *every;   /* NULL, or tumbling windows to group by; borrowed */
	const struct wm_windows *windows; /* NULL, or what WM_LAG_DROPPED asks about; borrowed */
	bool closes;                      /* with every: wm_lag_close() is called, and records have a watermark */
	bool has_arrival;                 /* measure WM_LAG_LAG */
	bool has_advice;                  /* measure WM_LAG_BEHIND, and with windows WM_LAG_DROPPED */
};

struct wm_lag;

/* options are copied. */
struct wm_lag *wm_lag_new(const struct wm_lag_options *options);
void wm_lag_free(struct wm_lag *lag);

/* A record as the operator takes it; borrowed for the call. */
struct wm_lag_record {
	int64_t event_time_us;
	int64_t highest_time_us; /* so far, this record's included where it may raise it; or WM_TIME_NONE */
	int64_t arrival_us;      /* with has_arrival */
	const struct wm_value *keys;
	int64_t watermark_us; /* with closes: in force, or WM_TIME_NONE */
};

/* Sets closes, with every and before the first record: records turn out to have a watermark. */
void wm_lag_set_closes(struct wm_lag *lag);

void wm_lag_add(struct wm_lag *lag, const struct wm_lag_record *record);

/* Start and end of a group of records whose windows were closed before they came. */
#define WM_LAG_NO_WINDOW INT64_MAX

/* Of one kind in one group. Fields are for reading; all but count mean nothing while that is 0. */
struct wm_lag_series {
	uint64_t count;
	uint64_t zeros;
	uint64_t negative;
	int64_t min_us;
	int64_t max_us;
	wm_int128 sum_us;
	/* the values that are not 0: these, or the sketch */
	int64_t *values;
	size_t values_count;
	size_t values_capacity;
	struct wm_quantile sketch; /* of whole microseconds */
};

/* Fields are for reading, borrowed until the next call of the operator. */
struct wm_lag_group {
	int64_t window_start_us; /* with every; or WM_LAG_NO_WINDOW */
	int64_t window_end_us;
	const struct wm_value *keys;
	int64_t first_time_us; /* least and greatest event time; where count is not 0 */
	int64_t last_time_us;
	uint64_t count;                     /* records */
	const struct wm_lag_series *series; /* by enum wm_lag_kind */
};

/*
 * Walks the groups by window and key, those without a window last; false at the end, after which it begins anew. Without keys and
 * windows there is one group, even of no record. Between wm_lag_close() and wm_lag_forget() these are the closed ones.
 */
bool wm_lag_next(struct wm_lag *lag, struct wm_lag_group *group);

/* With closes: the end of the first window that is open; WM_TIME_END if none is. */
int64_t wm_lag_due_us(const struct wm_lag *lag);

/* Closes the windows that the watermark has passed; WM_TIME_END: everything. False if there is none: nothing to forget then. */
bool wm_lag_close(struct wm_lag *lag, int64_t watermark_us);

/* Forgets the groups that were closed. */
void wm_lag_forget(struct wm_lag *lag);

/* Nearest rank: the least value with at least this percentage (quantile.h) of the values at or below it. count > 0. */
int64_t wm_lag_percentile(const struct wm_lag_series *series, uint64_t percent);

/* The value of a rank, 1 to count. */
int64_t wm_lag_at(const struct wm_lag_series *series, uint64_t rank);

/* How many values are greater than a delay, which is not negative. */
uint64_t wm_lag_above(const struct wm_lag_series *series, int64_t delay_us);

/* Whether ranks and counts of a series are approximate. */
static inline bool
wm_lag_is_approximate(const struct wm_lag_series *series)
{
	return series->sketch.form == WM_QUANTILE_SKETCH;
}

/* The mean in seconds, correctly rounded, for wm_double_print(). count > 0. */
double wm_lag_mean_s(const struct wm_lag_series *series);

/* The sum in seconds, exact; appended to out (born WM_BUF_UNBOUNDED). */
void wm_lag_print_sum_s(const struct wm_lag_series *series, struct wm_buf *out);

/* Groups held, records that came when their window was closed, and bytes of state, near enough for a report. */
uint64_t wm_lag_groups_count(const struct wm_lag *lag);
uint64_t wm_lag_overdue_count(const struct wm_lag *lag);
size_t wm_lag_bytes(const struct wm_lag *lag);

/* The state between two calls. Decode into a new operator with the same options. */
void wm_lag_encode(struct wm_lag *lag, struct wm_buf *out);
WM_MUST_CHECK bool wm_lag_decode(struct wm_lag *lag, struct wm_get *in);

#endif
