/* SPDX-License-Identifier: Apache-2.0 */
/*
 * combine - one watermark of several sources.
 *
 * Each source has a watermark of its own. The combined one is the least (or,
 * by policy, the greatest) of those of the sources that take part, and never
 * moves back: when the sources that are left stand behind it, it waits. A
 * source that has not spoken holds it where it is; one that has ended, is idle
 * or waits to be confirmed holds nothing back. When no source takes part it
 * stays.
 *
 * In batches the combined one stays until wm_combine_settle() at the end of a
 * batch, and then all sources count that have spoken in it: which of them came
 * first does not matter.
 *
 * Idle by event time: the highest event time of all sources, confirmed as
 * by a guard of the same length, has risen by idle_us since the source's last
 * record (for one that has not spoken: since the first record of any). Idle by the
 * wall clock: it has not spoken for so long. An idle source that speaks takes part again at once.
 */
#ifndef WM_EVENT_COMBINE_H
#define WM_EVENT_COMBINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/event/guard.h"
#include "lib/event/watermark.h"

enum wm_policy { WM_POLICY_MIN = 0, WM_POLICY_MAX };

struct wm_source {
	struct wm_watermark own;
	size_t place;        /* in order, or SIZE_MAX: takes no part */
	bool has_ended;      /* for good */
	bool is_unconfirmed; /* takes no part until wm_combine_confirm() */
	int64_t mark_us;     /* the highest confirmed time of all at its last record; WM_TIME_NONE: before any was */
	int64_t spoke_at_us; /* wall clock of its last record, or of its beginning */
	size_t older, newer; /* neighbours in the order of last records; SIZE_MAX: none */
};

/* Fields are for reading. */
struct wm_combine {
	enum wm_policy policy;
	int64_t idle_us;      /* 0: no source is idle by event time */
	bool is_batched;      /* records move the combined one at wm_combine_settle() alone */
	int64_t watermark_us; /* the combined one, or WM_TIME_NONE */
	int64_t data_us;      /* the same without wm_combine_raise() */
	int64_t highest_us;   /* the highest of all sources' own, by the policy "max" */
	struct wm_source *sources;
	size_t sources_count;
	size_t *order; /* a heap of the sources that take part: the one furthest behind first, equal ones by number */
	size_t order_count;
	struct wm_guard guard;      /* over all records, for idle_us */
	int64_t highest_time_us;    /* of all sources, confirmed; only with idle_us */
	int64_t first_confirmed_us; /* the first value of that */
	size_t oldest, newest;      /* by last record */
};

/* idle_us: 0, or how far event time goes on before a silent source is idle. */
void wm_combine_init(struct wm_combine *combine, enum wm_policy policy, int64_t idle_us);

/* Records come in batches from now on. */
void wm_combine_set_batched(struct wm_combine *combine);
void wm_combine_release(struct wm_combine *combine);

/* Adds a source, which takes part from now on, as its watermark stands; returns its number, from 0. now_us: wall clock. */
size_t wm_combine_add(struct wm_combine *combine, const struct wm_watermark *own, int64_t now_us);

/* A source that was just added takes part only once it is confirmed: its clock may be wrong. */
void wm_combine_wait(struct wm_combine *combine, size_t source);

/* A source's clock is right: it takes part as its watermark stands, if it was made to wait. Before its watermark is advanced. */
void wm_combine_confirm(struct wm_combine *combine, size_t source);

/*
 * A source has a record; only needed where sources can be idle. It takes part again; others may become idle by it. True if the combined
 * watermark moved. Before its watermark is advanced.
 */
bool wm_combine_speak(struct wm_combine *combine, size_t source, int64_t event_time_us, int64_t now_us);

/*
 * Sources that have not spoken for idle_wall_us at now_us become idle, the one that spoke longest ago first, so that how often this is
 * called does not matter; true if the combined watermark moved.
 */
bool wm_combine_idle_wall(struct wm_combine *combine, int64_t idle_wall_us, int64_t now_us);

/* When the next source becomes idle by that; INT64_MAX: none does. */
int64_t wm_combine_idle_wall_due_us(const struct wm_combine *combine, int64_t idle_wall_us);

/* A batch has ended: the combined watermark moves as far as the sources let it. */
void wm_combine_settle(struct wm_combine *combine);

/* The combined watermark goes on by itself, cut to the millisecond (--idle-close); true if it moved. */
bool wm_combine_raise(struct wm_combine *combine, int64_t watermark_us);

/* A source's own watermark has moved; true if the combined one has too. */
bool wm_combine_moved(struct wm_combine *combine, size_t source);

/* Moves a source's watermark as far as its records let it; true if the combined one moved. */
static inline bool
wm_combine_advance(struct wm_combine *combine, size_t source)
{
	return wm_watermark_advance(&combine->sources[source].own) && wm_combine_moved(combine, source);
}

/* The source has ended; true if the combined watermark moved. */
bool wm_combine_end(struct wm_combine *combine, size_t source);

/* Its input is there again: it takes part as its watermark stands. */
void wm_combine_begin(struct wm_combine *combine, size_t source);

/* Takes over a source of another combine, and how far the combined watermark had come there. */
void wm_combine_copy(struct wm_combine *combine, size_t source, const struct wm_combine *from, size_t from_source);

/* The source that takes part and is furthest behind; false if none takes part. */
bool wm_combine_lowest(const struct wm_combine *combine, size_t *source);

static inline bool
wm_combine_is_idle(const struct wm_combine *combine, size_t source)
{
	const struct wm_source *asked = &combine->sources[source];

	return asked->place == SIZE_MAX && !asked->has_ended && !asked->is_unconfirmed;
}

/* Delays, policy, idle_us and whether there are batches are options and stay; the wall clock is no state. Decode into a combine with as many sources added, in the same order. */
void wm_combine_encode(const struct wm_combine *combine, struct wm_buf *out);
WM_MUST_CHECK bool wm_combine_decode(struct wm_combine *combine, struct wm_get *in);

#endif
