/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/guard.h"

#include <stdlib.h>

#include "lib/event/watermark.h"
#include "lib/time/duration.h"

void
wm_guard_init(struct wm_guard *guard, int64_t max_jump_us)
{
	*guard = (struct wm_guard){ .max_jump_us = max_jump_us };
}

static int
compare_times(const void *a, const void *b)
{
	int64_t time_a = *(const int64_t *)a, time_b = *(const int64_t *)b;

	return (time_a > time_b) - (time_a < time_b);
}

/* The greatest time of the earliest group that confirms itself; WM_TIME_NONE if none does. */
static int64_t
confirmed_time(const struct wm_guard *guard)
{
	int64_t times[WM_GUARD_WINDOW];
	size_t count = 0;

	for (unsigned i = 0; i < guard->count; i++)
		if (guard->last[i].is_unconfirmed)
			times[count++] = guard->last[i].time_us;
	if (count < WM_GUARD_QUORUM)
		return WM_TIME_NONE;
	qsort(times, count, sizeof(times[0]), compare_times);
	for (size_t first = 0; first + WM_GUARD_QUORUM <= count; first++) {
		int64_t reach_us = wm_time_add(times[first], guard->max_jump_us);
		size_t last = first + WM_GUARD_QUORUM - 1;

		if (times[last] > reach_us)
			continue;
		while (last + 1 < count && times[last + 1] <= reach_us)
			last++;
		return times[last];
	}
	return WM_TIME_NONE;
}

int64_t
wm_guard_take(struct wm_guard *guard, int64_t highest_time_us, int64_t time_us, bool *is_unconfirmed)
{
	*is_unconfirmed = highest_time_us == WM_TIME_NONE || time_us > wm_time_add(highest_time_us, guard->max_jump_us);
	guard->last[guard->next].time_us = time_us;
	guard->last[guard->next].is_unconfirmed = *is_unconfirmed;
	guard->next = (guard->next + 1) % WM_GUARD_WINDOW;
	guard->count += guard->count < WM_GUARD_WINDOW;
	if (!*is_unconfirmed)
		return time_us > highest_time_us ? time_us : highest_time_us;
	int64_t risen_us = confirmed_time(guard);
	return risen_us > highest_time_us ? risen_us : highest_time_us;
}

void
wm_guard_encode(const struct wm_guard *guard, struct wm_buf *out)
{
	unsigned oldest = guard->count < WM_GUARD_WINDOW ? 0 : guard->next;

	wm_put_u8(out, (uint8_t)guard->count);
	for (unsigned i = 0; i < guard->count; i++) {
		unsigned at = (oldest + i) % WM_GUARD_WINDOW;

		wm_put_i64(out, guard->last[at].time_us);
		wm_put_u8(out, guard->last[at].is_unconfirmed);
	}
}

bool
wm_guard_decode(struct wm_guard *guard, struct wm_get *in)
{
	uint8_t count = wm_get_u8(in);

	if (in->failed || count > WM_GUARD_WINDOW)
		return false;
	for (unsigned i = 0; i < count; i++) {
		guard->last[i].time_us = wm_get_i64(in);
		guard->last[i].is_unconfirmed = wm_get_u8(in) != 0;
	}
	guard->count = count;
	guard->next = count % WM_GUARD_WINDOW;
	return !in->failed;
}
