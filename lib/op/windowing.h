/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windowing - aggregate records by event-time window and key.
 *
 * Records are added, the watermark is advanced, and what an advance lets go is
 * drained row by row, ordered by window end, window start and key (and by pane
 * index, where one window and key has two):
 *
 *     verdict = wm_windowing_add(w, &record, &missed);
 *     wm_windowing_advance(w, watermark_us);
 *     while (wm_windowing_next(w, &row)) ...
 *
 * Modes are those of Spark. append: a window is written once, when it is
 * complete, and forgotten. update: at each advance the windows that got a
 * record since the one before; forgotten when complete. complete: at each
 * advance everything; nothing is late, nothing forgotten.
 * An advance to WM_TIME_END is a flush: append writes all windows; for update
 * and complete it is no further trigger and writes nothing.
 *
 * A record is late when all its windows are complete. One that missed some of
 * its windows counts in the others (partly late).
 *
 * Allowed lateness: a complete window still takes records, and is kept, until
 * its end + allowed lateness has been reached by the watermark. So long it counts
 * as open in update; in append each record that reaches it leaves a late pane. In
 * complete allowed lateness has no effect.
 * Early and late panes are due at once (WM_TIME_NONE): where the watermark rises
 * with each record, advance to the one in force before the next record raises
 * it; in batches, at their end. What an advance writes of these was judged by
 * the watermark from before it, so an early pane comes before the on-time pane of
 * the same window and advance.
 *
 * Costs. A record goes into one slice, whatever size / slide may be, also with
 * allowed lateness and with early panes by period; a late pane combines the
 * slices of its window for its key alone, and the state has an index for each
 * window and key with an early or late pane. Where windows overlap, early panes by
 * rows and discarding keep a cell for each window and key instead, and cost size / slide
 * with each record.
 *
 * The operator owns no files, clocks or options' texts; several can run at once.
 */
#ifndef WM_OP_WINDOWING_H
#define WM_OP_WINDOWING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/agg/agg.h"
#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/pause.h"
#include "lib/base/value.h"
#include "lib/event/pane.h"
#include "lib/event/window.h"

enum wm_window_mode { WM_MODE_APPEND = 0, WM_MODE_UPDATE, WM_MODE_COMPLETE };

struct wm_windowing;

/*
 * windows and agg are borrowed and must outlive the operator. panes: NULL is all zero; early panes and discarding need
 * append (asserted). spark: the watermark starts at the epoch.
 */
struct wm_windowing *wm_windowing_new(const struct wm_windows *windows, const struct wm_agg *agg, size_t keys_count,
	enum wm_window_mode mode, const struct wm_pane_options *panes, bool spark);

/*
 * Asks for fillers, before the first record (and before a decode): when a window of a key is written, the empty ones
 * since that key's previous one go out in the same advance, as long as these are no more than WM_FILL_WINDOWS_MAX
 * (fill.h). with_previous: with the cell of the window before them, else without one. For windows that are disjoint, in
 * append, without panes (asserted). Each key then stays in state for good.
 */
void wm_windowing_fill(struct wm_windowing *windowing, bool with_previous);

/* What is called while an advance makes very many rows ready; copied. */
void wm_windowing_set_pause(struct wm_windowing *windowing, const struct wm_pause *pause);

void wm_windowing_free(struct wm_windowing *windowing);

enum wm_window_verdict { WM_WINDOW_USED = 0, WM_WINDOW_LATE };

/* A record as an operator on windows takes it; borrowed for the call. */
struct wm_window_record {
	int64_t event_time_us;
	int64_t watermark_us;    /* in force */
	int64_t highest_time_us; /* highest event time so far, this record's included where it may raise it */
	const struct wm_value *keys;
	const struct wm_reading *readings; /* one for each column of the aggregates */
};

/*
 * Takes in one record, judged by the watermark in force, which may be ahead of the last advance as long as it is not due. *missed: how
 * many of its windows are complete already, and past the allowed lateness; for a late record all of them.
 */
enum wm_window_verdict wm_windowing_add(
	struct wm_windowing *windowing, const struct wm_window_record *record, int64_t *missed);

/* The next watermark at which there is something to do: WM_TIME_NONE: at once, WM_TIME_END: at the end alone. */
int64_t wm_windowing_due_us(const struct wm_windowing *windowing);

/* Moves the watermark on (one that is not ahead counts as the one in force) and prepares what is to be written, which has to be drained
   to its end. */
void wm_windowing_advance(struct wm_windowing *windowing, int64_t watermark_us);

/* Fields are for reading, borrowed until the next call of the operator. */
struct wm_window_row {
	int64_t window_start_us;
	int64_t window_end_us;
	const struct wm_value *keys;
	const void *cell;         /* for wm_agg_cell_print(); NULL: a filler without values */
	enum wm_pane_timing pane; /* pane and pane_index: where panes were asked for */
	uint64_t pane_index;
	bool is_filler; /* a window without records, between two of its key */
};

bool wm_windowing_next(struct wm_windowing *windowing, struct wm_window_row *row);

/* Windows and keys held: each pair of an open window and a key with a record in it, and late panes that wait. Costs a walk over the state. */
uint64_t wm_windowing_open_count(struct wm_windowing *windowing);

/* Gaps between two windows of a key that were too long to be filled. */
uint64_t wm_windowing_gaps_skipped(const struct wm_windowing *windowing);

/* Bytes of state, near enough for a report. */
size_t wm_windowing_bytes(const struct wm_windowing *windowing);

/* Groups (a key in a slice; for tumbling windows a key in a window): held now; since the start, those that got a record, each
   once between two advances, and those that were forgotten. spark: where windows overlap, groups is of windows too, which
   costs a walk over the state. updated is counted only where that was asked for: it costs a little with each record. */
struct wm_windowing_counts {
	uint64_t groups;
	uint64_t updated;
	uint64_t removed;
};
void wm_windowing_count_updates(struct wm_windowing *windowing);
struct wm_windowing_counts wm_windowing_counts(struct wm_windowing *windowing);

/* The state between two calls (nothing may be left to drain). Decode into a new operator with the same options. */
void wm_windowing_encode(struct wm_windowing *windowing, struct wm_buf *out);
WM_MUST_CHECK bool wm_windowing_decode(struct wm_windowing *windowing, struct wm_get *in);

#endif
