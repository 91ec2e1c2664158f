/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/expiry.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

/* The model: times of items that are in, looked through one by one. */
#define ITEMS 3000

static int64_t times[ITEMS];
static bool is_in[ITEMS];

static int64_t
model_due_us(void)
{
	int64_t due_us = INT64_MAX;

	for (int i = 0; i < ITEMS; i++)
		if (is_in[i] && times[i] < due_us)
			due_us = times[i];
	return due_us;
}

/* Takes all that a watermark has reached: each once, none too early, in order unless put in too late, none left behind. */
static bool
takes_like_model(struct wm_expiry *expiry, int64_t before_us, int64_t watermark_us)
{
	int64_t previous_us = before_us;

	for (bool *item; (item = wm_expiry_take(expiry, watermark_us)) != NULL;) {
		int64_t due_us = times[item - is_in];

		if (!*item || due_us > watermark_us || (due_us > before_us && due_us < previous_us))
			return false;
		*item = false;
		if (due_us > before_us)
			previous_us = due_us;
	}
	return model_due_us() > watermark_us || model_due_us() == INT64_MAX;
}

/* Times ahead of the watermark by up to span_us, some of them on a grid, so that many are equal; a few are late. */
static bool
stream_agrees(uint64_t *seed, int64_t span_us, int items)
{
	struct wm_expiry expiry = { 0 };
	int64_t watermark_us = (int64_t)tap_random(seed) / 4, grid_us = 1 + (int64_t)(tap_random(seed) % 1000);
	bool agrees = true;

	for (int step = 0; step < 60 && agrees; step++) {
		for (int i = 0; i < items; i++) {
			if (is_in[i] || tap_random(seed) % 8 == 0)
				continue;
			int64_t ahead_us = (int64_t)(tap_random(seed) % (uint64_t)span_us);

			times[i] = watermark_us + 1 + ahead_us - ahead_us % grid_us;
			if (tap_random(seed) % 32 == 0)
				times[i] = watermark_us - ahead_us;
			is_in[i] = true;
			wm_expiry_put(&expiry, times[i], &is_in[i]);
		}
		int64_t before_us = watermark_us, parts = 1 + (int64_t)(tap_random(seed) % 20);
		watermark_us += (int64_t)(tap_random(seed) % (uint64_t)(span_us / parts + 1));
		agrees = wm_expiry_due_us(&expiry) == model_due_us() &&
			takes_like_model(&expiry, before_us, watermark_us) &&
			wm_expiry_due_us(&expiry) == model_due_us();
	}
	agrees = agrees && takes_like_model(&expiry, watermark_us, INT64_MAX) && expiry.count == 0;
	wm_expiry_release(&expiry);
	memset(is_in, 0, sizeof(is_in));
	return agrees;
}

static void
test_model(int items, const char *name)
{
	uint64_t seed = 11;
	int failed_at = -1;

	for (int i = 0; i < 40 && failed_at < 0; i++) {
		int64_t span_us = INT64_C(1) << (1 + tap_random(&seed) % 50);

		if (!stream_agrees(&seed, span_us, items))
			failed_at = i;
	}
	if (!tap_ok(failed_at < 0, "%s", name))
		printf("#   stream %d\n", failed_at);
}

/* Nothing but what is in it takes memory: it breathes, and comes back to what it had. */
static void
test_memory(void)
{
	struct wm_expiry expiry = { 0 };
	size_t after_first = 0;
	static char items[100000];
	uint64_t seed = 3;

	for (int round = 0; round < 10; round++) {
		for (size_t i = 0; i < sizeof(items); i++)
			wm_expiry_put(
				&expiry, round * INT64_C(1000000) + (int64_t)(tap_random(&seed) % 1000000), &items[i]);
		if (round == 0)
			tap_ok(expiry.bytes >= sizeof(items) * 16 && expiry.bytes < sizeof(items) * 19,
				"an item takes 16 bytes and little more (%zu bytes for 100000)", expiry.bytes);
		while (wm_expiry_take(&expiry, round * INT64_C(1000000) + 999999) != NULL)
			;
		if (round == 0)
			after_first = expiry.bytes;
	}
	tap_ok(expiry.bytes <= after_first && after_first < 64 * 1024, "what was taken out gives its memory back");
	wm_expiry_release(&expiry);
}

static void
test_edges(void)
{
	struct wm_expiry expiry = { 0 };
	char a, b, c, d;

	tap_ok(wm_expiry_due_us(&expiry) == INT64_MAX && wm_expiry_take(&expiry, INT64_MAX) == NULL,
		"an empty one has nothing due");
	wm_expiry_put(&expiry, INT64_MAX, &d);
	wm_expiry_put(&expiry, -1, &b);
	wm_expiry_put(&expiry, 0, &c);
	wm_expiry_put(&expiry, INT64_MIN, &a);
	tap_ok(wm_expiry_take(&expiry, INT64_MIN) == &a, "the first of all times comes at once");
	tap_ok(wm_expiry_take(&expiry, -2) == NULL, "-1 is not due at -2");
	tap_ok(wm_expiry_take(&expiry, -1) == &b, "but at -1");
	tap_int(wm_expiry_due_us(&expiry), 0, "then comes 0");
	tap_ok(wm_expiry_take(&expiry, 5) == &c, "at 5 too");
	wm_expiry_put(&expiry, 3, &a);
	tap_int(wm_expiry_due_us(&expiry), 3, "what is put in too late is due");
	tap_ok(wm_expiry_take(&expiry, 5) == &a, "and comes out");
	tap_ok(wm_expiry_take(&expiry, INT64_MAX) == &d, "the last of all times comes too");
	wm_expiry_release(&expiry);
}

int
main(void)
{
	test_edges();
	test_model(20, "few items: 40 streams as the model");
	test_model(700, "more than stand in front: 40 streams as the model");
	test_model(ITEMS, "many items: 40 streams as the model");
	test_memory();
	return tap_done();
}
