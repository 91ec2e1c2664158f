/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/pane.h"

#include "tests/unit/tap.h"

int
main(void)
{
	struct wm_pane_options options = { 0 };

	tap_text(wm_pane_timing_name(WM_PANE_EARLY), "early", "early");
	tap_text(wm_pane_timing_name(WM_PANE_ON_TIME), "on-time", "on time");
	tap_text(wm_pane_timing_name(WM_PANE_LATE), "late", "late");
	tap_ok(!wm_pane_options_many(&options), "nothing asked for: one pane");
	options.is_discarding = true;
	tap_ok(!wm_pane_options_many(&options), "discarding alone makes no second one");
	options.allowed_lateness_us = 1;
	tap_ok(wm_pane_options_many(&options), "lateness does");
	options = (struct wm_pane_options){ .early_rows = 1 };
	tap_ok(wm_pane_options_many(&options), "early panes do");
	options = (struct wm_pane_options){ .early_period_us = 1 };
	tap_ok(wm_pane_options_many(&options), "by period too");
	return tap_done();
}
