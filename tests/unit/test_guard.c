/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/guard.h"

#include <stdlib.h>

#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

/*
 * The rule, by trying every group: some record among the last 20 that are
 * unconfirmed begins a group of 15 or more within D behind it.
 */
static int64_t
model_risen(const int64_t *times, const bool *is_unconfirmed, int count, int64_t max_jump, int64_t highest)
{
	int begin = count > WM_GUARD_WINDOW ? count - WM_GUARD_WINDOW : 0;
	int64_t best_start = INT64_MAX, risen = highest;

	for (int i = begin; i < count; i++) {
		int members = 0;
		int64_t greatest = times[i];

		if (!is_unconfirmed[i] || times[i] >= best_start)
			continue;
		for (int j = begin; j < count; j++) {
			if (!is_unconfirmed[j] || times[j] < times[i] || times[j] - times[i] > max_jump)
				continue;
			members++;
			greatest = times[j] > greatest ? times[j] : greatest;
		}
		if (members >= WM_GUARD_QUORUM) {
			best_start = times[i];
			risen = greatest > highest ? greatest : highest;
		}
	}
	return risen;
}

static void
test_model(void)
{
	uint64_t seed = 9;
	bool agrees = true;
	int confirmations = 0;

	for (int stream = 0; stream < 2000 && agrees; stream++) {
		struct wm_guard guard, back;
		struct wm_buf bytes;
		struct wm_get in;
		int64_t highest = WM_TIME_NONE, times[100];
		bool is_unconfirmed[100];
		int64_t base = 0, wild = (int64_t)(tap_random(&seed) % 4);

		wm_guard_init(&guard, 50);
		for (int i = 0; i < 100 && agrees; i++) {
			base += tap_random(&seed) % 40 == 0 ? 200 : 3;
			times[i] = base - (int64_t)(tap_random(&seed) % 20);
			if ((int64_t)(tap_random(&seed) % 10) < wild)
				times[i] += (int64_t)(tap_random(&seed) % 5) * 30 + 1000;
			bool want = highest == WM_TIME_NONE || times[i] > highest + 50;
			int64_t before = highest, got;

			is_unconfirmed[i] = want;
			highest = want               ? model_risen(times, is_unconfirmed, i + 1, 50, highest)
				: times[i] > highest ? times[i]
						     : highest;
			confirmations += want && highest != before;
			if (i == 50) {
				wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
				wm_guard_encode(&guard, &bytes);
				wm_guard_init(&back, 50);
				wm_get_init(&in, wm_buf_span(&bytes));
				agrees = wm_guard_decode(&back, &in) && wm_get_left(&in) == 0;
				guard = back;
				wm_buf_release(&bytes);
			}
			bool is;
			got = wm_guard_take(&guard, before, times[i], &is);
			agrees = agrees && got == highest && is == want;
		}
	}
	tap_ok(agrees && confirmations > 1000, "2000 random streams as the rule, saved and loaded half way");
}

static void
test_minority(void)
{
	struct wm_guard guard;
	int64_t highest = WM_TIME_NONE;
	bool is_unconfirmed;

	/* One record in five is a year ahead, the first of all too. */
	wm_guard_init(&guard, 3600);
	for (int i = 0; i < 1000; i++)
		highest = wm_guard_take(&guard, highest, i % 5 == 0 ? 31536000 + i : i, &is_unconfirmed);
	tap_int(highest, 999, "a clock that is wrong in a fifth of the records does not move it");
	/* A real gap of a day: the fifteenth record behind it confirms. */
	int needed = 0;
	while (highest < 86400 && needed < 100)
		highest = wm_guard_take(&guard, highest, 86400 + needed++, &is_unconfirmed);
	tap_int(needed, 15, "fifteen records behind a real gap do");
}

static void
test_edge(void)
{
	struct wm_guard guard;
	bool is_unconfirmed;

	wm_guard_init(&guard, 50);
	tap_ok(wm_guard_take(&guard, 100, 150, &is_unconfirmed) == 150 && !is_unconfirmed,
		"a record that is just so far ahead moves it at once");
	tap_ok(wm_guard_take(&guard, 150, 201, &is_unconfirmed) == 150 && is_unconfirmed,
		"one that is a microsecond further does not");
}

int
main(void)
{
	test_model();
	test_minority();
	test_edge();
	return tap_done();
}
