/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/watermark.h"

#include "lib/time/civil.h"

#define US_PER_MS 1000

void
wm_watermark_init(struct wm_watermark *wm, int64_t delay_us)
{
	*wm = (struct wm_watermark){ delay_us, WM_TIME_NONE, WM_TIME_NONE };
}

void
wm_watermark_init_spark(struct wm_watermark *wm, int64_t delay_us)
{
	*wm = (struct wm_watermark){ delay_us / US_PER_MS * US_PER_MS, WM_TIME_NONE, 0 };
}

bool
wm_watermark_advance(struct wm_watermark *wm)
{
	int64_t reached_us;

	if (wm->highest_time_us == WM_TIME_NONE ||
		__builtin_sub_overflow(wm->highest_time_us, wm->delay_us, &reached_us))
		return false;
	/* Nearly every call ends here; the division below is for those that may move W. */
	if (reached_us < wm->watermark_us)
		return false;
	reached_us = wm_floor_div(reached_us, US_PER_MS) * US_PER_MS;
	if (reached_us <= wm->watermark_us)
		return false;
	wm->watermark_us = reached_us;
	return true;
}

void
wm_watermark_encode(const struct wm_watermark *wm, struct wm_buf *out)
{
	wm_put_i64(out, wm->highest_time_us);
	wm_put_i64(out, wm->watermark_us);
}

bool
wm_watermark_decode(struct wm_watermark *wm, struct wm_get *in)
{
	int64_t highest_time_us = wm_get_i64(in);
	int64_t watermark_us = wm_get_i64(in);

	if (in->failed)
		return false;
	wm->highest_time_us = highest_time_us;
	wm->watermark_us = watermark_us;
	return true;
}
