/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions - aggregate records by session and key.
 *
 * A session is a key's records with less than a gap of silence, or just a gap,
 * between them: [first, last + gap). A record is [t, t + gap) by itself, with a
 * gap of its own; what overlaps or touches is one, so that a record may join several
 * sessions. The operator has the shape of windowing.h: records are added, the
 * watermark is advanced, and what an advance lets go is drained row by row,
 * ordered by session end, session start, key and pane.
 *
 * Append: a session is written once, when it is complete, and forgotten; or, with panes, as below. Complete: at
 * each advance everything; nothing is late (for Spark: late by the watermark before the last advance), nothing forgotten. Sessions have
 * no update mode. An advance to WM_TIME_END is a flush: append writes all sessions; for
 * complete it is no further trigger and writes nothing.
 *
 * A record is late when its own [t, t + gap) is complete, past the allowed lateness; what sessions there are does
 * not matter. So one that is not late may begin a session that overlaps one which was written and forgotten.
 *
 * Panes: a session is known by its start, end and key. A record that changes the
 * bounds makes it a new one, whose panes are counted from 0 and which, if its end
 * is ahead of the watermark, is written at that end, even where the old one was
 * written. A record in a complete session that was kept, or one that makes a
 * complete session, gives a late pane at the next advance. Early panes come at the next
 * advance too. Accumulating panes hold all records of the session, discarding ones those that were never
 * written.
 *
 * The operator owns no files, clocks or options' texts; several can run at once.
 */
#ifndef WM_OP_SESSIONS_H
#define WM_OP_SESSIONS_H

#include "lib/op/windowing.h"

struct wm_sessions;

/*
 * agg is borrowed and must outlive the operator. mode: append or complete. panes: what was asked for (append), or NULL. spark: the
 * watermark starts at the epoch, and complete drops late records.
 */
struct wm_sessions *wm_sessions_new(const struct wm_agg *agg, size_t keys_count, enum wm_window_mode mode,
	const struct wm_pane_options *panes, bool spark);
void wm_sessions_free(struct wm_sessions *sessions);

/*
 * Takes in one record whose own session lasts gap_us > 0, judged by the watermark in force, which may be ahead of the last advance as
 * long as it is not due. *missed: 1 for a late record, else 0.
 */
enum wm_window_verdict wm_sessions_add(
	struct wm_sessions *sessions, const struct wm_window_record *record, int64_t gap_us, int64_t *missed);

/*
 * The next watermark at which there may be something to do: WM_TIME_NONE: at once, WM_TIME_END: at the end alone. An advance may find
 * nothing to write: the session has grown since.
 */
int64_t wm_sessions_due_us(const struct wm_sessions *sessions);

/* Moves the watermark on (one that is not ahead counts as the one in force) and prepares what is to be written. Rows
   not drained since the last advance are dropped. */
void wm_sessions_advance(struct wm_sessions *sessions, int64_t watermark_us);

/* Fields are for reading, borrowed until the next call of the operator. */
bool wm_sessions_next(struct wm_sessions *sessions, struct wm_window_row *row);

/* Sessions held that are not complete, and complete ones that are kept for late records. */
uint64_t wm_sessions_open_count(struct wm_sessions *sessions);

/* Bytes of state, near enough for a report. */
size_t wm_sessions_bytes(const struct wm_sessions *sessions);

/* A session is a group. Those that were joined to another count as removed. */
void wm_sessions_count_updates(struct wm_sessions *sessions);
struct wm_windowing_counts wm_sessions_counts(struct wm_sessions *sessions);

/* The state between two calls (nothing may be left to drain). Decode into a new operator with the same options. */
void wm_sessions_encode(struct wm_sessions *sessions, struct wm_buf *out);
WM_MUST_CHECK bool wm_sessions_decode(struct wm_sessions *sessions, struct wm_get *in);

#endif
