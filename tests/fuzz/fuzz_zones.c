/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_zones - bytes as a file of a time zone (TZif), held to three laws:
 *
 *   - they are refused with a text, or every time of all years has an offset;
 *   - a local time that means one instant means the one that shows it;
 *   - where offsets are said to be steady they are.
 */
#include "lib/base/limits.h"
#include "lib/base/span.h"
#include "lib/time/civil.h"
#include "lib/time/zone.h"
#include "tests/fuzz/expect.h"

/* Times of each year and some between, as a clock change may be anywhere. */
static int64_t
time_at(int step)
{
	int64_t first_us = wm_civil_days(1, 1, 1) * WM_US_PER_DAY,
		last_us = wm_civil_days(9999, 12, 31) * WM_US_PER_DAY;

	if (step < 100)
		return first_us + (last_us - first_us) / 100 * step;
	return wm_civil_days(1895 + (step - 100) / 2, 1, 1) * WM_US_PER_DAY + (step % 2) * 180 * WM_US_PER_DAY +
		step * INT64_C(7777777);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *why = NULL;
	struct wm_zone *zone = wm_zone_from_tzif(wm_span((const char *)data, size), &why);

	if (zone == NULL) {
		expect(why != NULL && *why != '\0', "a refusal says why");
		return 0;
	}
	for (int step = 0; step < 400; step++) {
		int64_t time_us = time_at(step), offset_us = wm_zone_offset_us(zone, time_us),
			local_us = time_us + offset_us;
		struct wm_zone_steady steady;
		enum wm_local_kind kind;
		int64_t earlier_us = wm_zone_from_local(zone, local_us, WM_REPEATED_EARLIER, &kind);
		int64_t later_us = wm_zone_from_local(zone, local_us, WM_REPEATED_LATER, &kind);

		expect(kind != WM_LOCAL_SKIPPED, "a local time that an instant shows is there");
		expect(earlier_us <= later_us, "the earlier is not later");
		expect(kind == WM_LOCAL_REPEATED || (earlier_us == time_us && later_us == time_us), "once is once");
		expect(wm_zone_offset_us(zone, earlier_us) + earlier_us == local_us &&
				wm_zone_offset_us(zone, later_us) + later_us == local_us,
			"both show it");
		if (wm_zone_steady(zone, local_us, &steady)) {
			expect(steady.from_local_us <= local_us && local_us < steady.to_local_us,
				"a stretch holds its time");
			expect(local_us - steady.offset_us == time_us, "in a stretch the offset is the one");
		}
	}
	wm_zone_close(zone);
	return 0;
}
