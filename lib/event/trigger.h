/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger - when the watermark moves and results are written.
 *
 * With WM_TRIGGER_EACH that is every record. All others make batches: the
 * records of a batch are judged by the watermark from before it, and after its
 * last one the watermark moves.
 */
#ifndef WM_EVENT_TRIGGER_H
#define WM_EVENT_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"

enum wm_trigger_kind {
	WM_TRIGGER_EACH = 0,
	WM_TRIGGER_ROWS,  /* a number of records */
	WM_TRIGGER_EVENT, /* the record that brings the highest event time into a new multiple of a period is the last */
	WM_TRIGGER_WALL,  /* a period of wall time from the batch's first record on */
	WM_TRIGGER_COLUMN, /* until the value of a column changes */
	WM_TRIGGER_FILE,   /* each input is a batch, an empty one too */
	WM_TRIGGER_EOF,    /* all inputs are one batch */
};

/* Fields are for reading. */
struct wm_trigger {
	enum wm_trigger_kind kind;
	uint64_t rows_max; /* WM_TRIGGER_ROWS: records of a batch */
	int64_t period_us; /* WM_TRIGGER_EVENT, WM_TRIGGER_WALL */
	bool is_open;      /* the batch has had a record */
	uint64_t rows;     /* of the open batch */
	int64_t began_us;  /* WM_TRIGGER_WALL: when its first record came */
	int64_t multiple;  /* WM_TRIGGER_EVENT: which the highest event time is in, or INT64_MIN before the first */
	/* WM_TRIGGER_COLUMN: the value of the open batch */
	enum wm_kind value_kind;
	struct wm_buf value;
};

/* rows_max and period_us are above 0 for the kinds that use them. */
void wm_trigger_init(struct wm_trigger *trigger, enum wm_trigger_kind kind, uint64_t rows_max, int64_t period_us);
void wm_trigger_release(struct wm_trigger *trigger);

/* True if a record with this value of the trigger's column begins another batch than the open one. WM_TRIGGER_COLUMN only. */
bool wm_trigger_begins_batch(const struct wm_trigger *trigger, const struct wm_value *value);

/* A record joins the batch. value is that of the column, for WM_TRIGGER_COLUMN; now_us the wall clock, for WM_TRIGGER_WALL. */
void wm_trigger_join(struct wm_trigger *trigger, const struct wm_value *value, int64_t now_us);

/* WM_TRIGGER_EVENT: true if the highest event time has entered a new multiple, so that the record that raised it is its batch's last.
   The first record of all enters none. */
bool wm_trigger_enters(struct wm_trigger *trigger, int64_t highest_time_us);

/* WM_TRIGGER_ROWS: whether the open batch has all its records. */
static inline bool
wm_trigger_is_full(const struct wm_trigger *trigger)
{
	return trigger->kind == WM_TRIGGER_ROWS && trigger->rows >= trigger->rows_max;
}

/* WM_TRIGGER_WALL: when the open batch is to end; INT64_MAX without one. */
int64_t wm_trigger_due_us(const struct wm_trigger *trigger);

/* The batch has ended. */
void wm_trigger_end(struct wm_trigger *trigger);

void wm_trigger_encode(const struct wm_trigger *trigger, struct wm_buf *out);
WM_MUST_CHECK bool wm_trigger_decode(struct wm_trigger *trigger, struct wm_get *in);

#endif
