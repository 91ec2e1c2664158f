/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watermark - how far the event time of one source has come.
 *
 * A watermark W says: no record with event_time < W is expected any more.
 * All comparisons of the project follow from that one line, with no "minus one":
 *
 *     a record is behind               event_time < W
 *     window [start, end) is complete  end <= W
 *     its state may be dropped         end + allowed_lateness <= W
 *
 * Records are observed one by one; W moves only when advanced: with every
 * record, or at the end of a batch. Invariant: W never moves back, whatever
 * order the records come in. The module reads no clock and no file.
 */
#ifndef WM_EVENT_WATERMARK_H
#define WM_EVENT_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"

/* Before the first record: below every event time, so nothing is late. */
#define WM_TIME_NONE INT64_MIN

/* The end of time: above every event time and window end. A flush is a watermark of this. */
#define WM_TIME_END INT64_MAX

/* Fields are for reading; change them through the functions below. */
struct wm_watermark {
	int64_t delay_us;        /* delay threshold; never negative */
	int64_t highest_time_us; /* of the records observed, or WM_TIME_NONE */
	int64_t watermark_us;    /* W, or WM_TIME_NONE */
};

void wm_watermark_init(struct wm_watermark *wm, int64_t delay_us);

/* As Spark keeps it: the delay cut to milliseconds, and W at the epoch from the start, never below. */
void wm_watermark_init_spark(struct wm_watermark *wm, int64_t delay_us);

/* Take in one record's event time. Does not move W. */
static inline void
wm_watermark_observe(struct wm_watermark *wm, int64_t event_time_us)
{
	if (event_time_us > wm->highest_time_us)
		wm->highest_time_us = event_time_us;
}

/*
 * Move W to the highest event time - delay, cut to the millisecond toward the
 * past, if that is ahead; true if it moved. Where the subtraction would leave
 * int64_t, W stays.
 */
bool wm_watermark_advance(struct wm_watermark *wm);

static inline bool
wm_is_behind(int64_t event_time_us, int64_t watermark_us)
{
	return event_time_us < watermark_us;
}

/* A window, or anything that lasts until end_us, is complete. */
static inline bool
wm_is_complete(int64_t end_us, int64_t watermark_us)
{
	return end_us <= watermark_us;
}

/* The delay is an option, not state: a decoded watermark keeps the one that it was initialised with. */
void wm_watermark_encode(const struct wm_watermark *wm, struct wm_buf *out);
WM_MUST_CHECK bool wm_watermark_decode(struct wm_watermark *wm, struct wm_get *in);

#endif
