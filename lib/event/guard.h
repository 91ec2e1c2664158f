/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard - which event times may raise the highest event time (--max-jump).
 *
 * A clock that is wrong in a minority of the records must not move the
 * watermark; a real gap in the data must. So a time more than max_jump ahead of
 * the highest (before the first confirmation: every time) is unconfirmed, which
 * is decided on arrival. When at least WM_GUARD_QUORUM of the last
 * WM_GUARD_WINDOW records are unconfirmed and lie within max_jump of each
 * other, the highest rises to the greatest of these.
 */
#ifndef WM_EVENT_GUARD_H
#define WM_EVENT_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"

#define WM_GUARD_WINDOW 20
#define WM_GUARD_QUORUM 15

/* Fields are for reading. All zero bytes are a guard that lets every time pass. */
struct wm_guard {
	int64_t max_jump_us; /* 0: no guard */
	unsigned count;      /* records remembered, up to WM_GUARD_WINDOW */
	unsigned next;       /* where the next one goes */
	struct {
		int64_t time_us;
		bool is_unconfirmed;
	} last[WM_GUARD_WINDOW];
};

void wm_guard_init(struct wm_guard *guard, int64_t max_jump_us);

/*
 * Takes in a record's time; highest_time_us is that of the records before it
 * (WM_TIME_NONE: none is confirmed). Returns the highest event time from now on; *is_unconfirmed says what the record is.
 */
int64_t wm_guard_take(struct wm_guard *guard, int64_t highest_time_us, int64_t time_us, bool *is_unconfirmed);

/* max_jump_us is an option and stays. */
void wm_guard_encode(const struct wm_guard *guard, struct wm_buf *out);
WM_MUST_CHECK bool wm_guard_decode(struct wm_guard *guard, struct wm_get *in);

#endif
