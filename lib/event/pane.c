/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/pane.h"

const char *
wm_pane_timing_name(enum wm_pane_timing timing)
{
	switch (timing) {
	case WM_PANE_EARLY:
		return "early";
	case WM_PANE_LATE:
		return "late";
	case WM_PANE_ON_TIME:
		break;
	}
	return "on-time";
}
