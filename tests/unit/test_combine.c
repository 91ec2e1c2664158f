#include "lib/event/combine.h"

#include "tests/unit/tap.h"

#define SOURCES 12

/* The model: the least or greatest over an array, worked out anew each time. */
static void
test_model(enum wm_policy policy, const char *name)
{
	uint64_t seed = 21;
	bool agrees = true;

	for (int stream = 0; stream < 500 && agrees; stream++) {
		struct wm_combine combine;
		int64_t own[SOURCES], watermark = WM_TIME_NONE;
		bool takes_part[SOURCES];
		size_t count = 1 + tap_random(&seed) % SOURCES;

		wm_combine_init(&combine, policy);
		for (size_t i = 0; i < count; i++) {
			struct wm_watermark fresh;

			wm_watermark_init(&fresh, 0);
			agrees = agrees && wm_combine_add(&combine, &fresh) == i;
			own[i] = WM_TIME_NONE;
			takes_part[i] = true;
		}
		for (int step = 0; step < 200 && agrees; step++) {
			size_t i = tap_random(&seed) % count;
			int64_t before = watermark,
				time_us = (int64_t)(tap_random(&seed) % 100 + (unsigned)step) * 1000;
			bool moved;

			if (!takes_part[i])
				continue;
			if (tap_random(&seed) % 60 == 0) {
				takes_part[i] = false;
				moved = wm_combine_end(&combine, i);
			} else {
				wm_watermark_observe(&combine.sources[i].own, time_us);
				own[i] = time_us > own[i] ? time_us : own[i];
				moved = wm_combine_advance(&combine, i);
			}
			int64_t least = WM_TIME_END, greatest = WM_TIME_NONE;
			size_t lowest = count;
			for (size_t j = 0; j < count; j++) {
				if (!takes_part[j])
					continue;
				if (own[j] < least) {
					least = own[j];
					lowest = j;
				}
				greatest = own[j] > greatest ? own[j] : greatest;
			}
			int64_t wanted = policy == WM_POLICY_MAX ? greatest
				: least == WM_TIME_END           ? WM_TIME_NONE
								 : least;
			watermark = wanted > watermark ? wanted : watermark;
			size_t found = count;
			bool has_lowest = wm_combine_lowest(&combine, &found);
			agrees = combine.watermark_us == watermark && moved == (watermark > before) &&
				has_lowest == (lowest < count) && (!has_lowest || found == lowest);
		}
		wm_combine_release(&combine);
	}
	tap_ok(agrees, "%s", name);
}

int
main(void)
{
	test_model(WM_POLICY_MIN, "min: 500 random streams as worked out anew");
	test_model(WM_POLICY_MAX, "max: 500 random streams as worked out anew");

	struct wm_combine combine;
	struct wm_watermark spark;
	wm_combine_init(&combine, WM_POLICY_MIN);
	wm_watermark_init_spark(&spark, 0);
	wm_combine_add(&combine, &spark);
	tap_int(combine.watermark_us, 0, "Spark's epoch holds before any record");
	wm_combine_release(&combine);
	return tap_done();
}
