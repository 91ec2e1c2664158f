/* SPDX-License-Identifier: Apache-2.0 */
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

		wm_combine_init(&combine, policy, 0);
		for (size_t i = 0; i < count; i++) {
			struct wm_watermark fresh;

			wm_watermark_init(&fresh, 0);
			agrees = agrees && wm_combine_add(&combine, &fresh, 0) == i;
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

/* In batches the combined one is worked out at the end of each alone, whatever the order in it; and the clock is apart from the data. */
static void
test_batches(enum wm_policy policy, const char *name)
{
	uint64_t seed = 5;
	bool agrees = true;

	for (int stream = 0; stream < 300 && agrees; stream++) {
		struct wm_combine combine;
		int64_t own[SOURCES], watermark = WM_TIME_NONE, data = WM_TIME_NONE;
		size_t count = 0;

		wm_combine_init(&combine, policy, 0);
		wm_combine_set_batched(&combine);
		for (int step = 0; step < 200 && agrees; step++) {
			size_t i = tap_random(&seed) % (count + (count < SOURCES));
			int64_t time_us = (int64_t)(tap_random(&seed) % 100 + (unsigned)step) * 1000;

			if (i == count) {
				struct wm_watermark fresh;

				wm_watermark_init(&fresh, 0);
				wm_combine_add(&combine, &fresh, 0);
				own[count++] = WM_TIME_NONE;
			}
			own[i] = time_us > own[i] ? time_us : own[i];
			wm_watermark_observe(&combine.sources[i].own, time_us);
			agrees = agrees && !wm_combine_advance(&combine, i) && combine.watermark_us == watermark;
			if (tap_random(&seed) % 6 != 0)
				continue;
			int64_t wanted = policy == WM_POLICY_MAX ? WM_TIME_NONE : WM_TIME_END;
			for (size_t j = 0; j < count; j++)
				if ((own[j] > wanted) == (policy == WM_POLICY_MAX))
					wanted = own[j];
			wm_combine_settle(&combine);
			data = wanted > data ? wanted : data;
			watermark = data > watermark ? data : watermark;
			if (tap_random(&seed) % 4 == 0) {
				watermark += 7000;
				agrees = agrees && wm_combine_raise(&combine, watermark + 999);
			}
			agrees = agrees && combine.watermark_us == watermark && combine.data_us == data;
		}
		wm_combine_release(&combine);
	}
	tap_ok(agrees, "%s", name);
}

static void
saved_and_loaded(struct wm_combine *combine)
{
	struct wm_watermark fresh;
	struct wm_combine back;
	struct wm_buf bytes;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_combine_encode(combine, &bytes);
	wm_combine_init(&back, combine->policy, combine->idle_us);
	wm_watermark_init(&fresh, 0);
	for (size_t i = 0; i < combine->sources_count; i++)
		wm_combine_add(&back, &fresh, 0);
	for (size_t len = 0; len < bytes.len; len += 7) {
		wm_get_init(&in, wm_span(bytes.data, len));
		if (wm_combine_decode(&back, &in))
			tap_ok(false, "a state of %zu bytes of %zu is refused", len, bytes.len);
	}
	wm_get_init(&in, wm_buf_span(&bytes));
	if (!wm_combine_decode(&back, &in) || wm_get_left(&in) != 0)
		tap_ok(false, "a whole state is not refused");
	wm_buf_release(&bytes);
	wm_combine_release(combine);
	*combine = back;
}

/*
 * Idleness, worked out anew at each record: a source takes part unless the highest confirmed time has risen by idle_us since
 * its last record, or since the first confirmation for a record before that.
 */
static void
test_idle(void)
{
	uint64_t seed = 4;
	bool agrees = true;
	int idle_count = 0;

	for (int stream = 0; stream < 300 && agrees; stream++) {
		const int64_t idle = 50000;
		struct wm_combine combine;
		struct wm_guard guard;
		int64_t own[SOURCES], mark[SOURCES], watermark = WM_TIME_NONE, confirmed = WM_TIME_NONE;
		int64_t first_confirmed = WM_TIME_NONE, base = 0;
		bool is_idle[SOURCES] = { false };
		size_t count = 1 + tap_random(&seed) % SOURCES;

		wm_combine_init(&combine, WM_POLICY_MIN, idle);
		wm_guard_init(&guard, idle);
		for (size_t i = 0; i < count; i++) {
			struct wm_watermark fresh;

			wm_watermark_init(&fresh, 0);
			wm_combine_add(&combine, &fresh, 0);
			own[i] = mark[i] = WM_TIME_NONE;
		}
		for (int step = 0; step < 200 && agrees; step++) {
			/* Some sources speak seldom, and now and then a clock is far ahead. */
			size_t i = tap_random(&seed) % 4 == 0 ? tap_random(&seed) % count : 0;
			bool is_wild = tap_random(&seed) % 30 == 0, is_unconfirmed;

			base += (int64_t)(tap_random(&seed) % 4) * 1000;
			int64_t time_us = is_wild ? base + 1000000000 : base;
			confirmed = wm_guard_take(&guard, confirmed, time_us, &is_unconfirmed);
			if (first_confirmed == WM_TIME_NONE)
				first_confirmed = confirmed;
			mark[i] = confirmed;
			for (size_t j = 0; j < count; j++) {
				int64_t since = mark[j] == WM_TIME_NONE ? first_confirmed : mark[j];

				/* A source that became idle stays so until it speaks. */
				is_idle[j] = (is_idle[j] && j != i) ||
					(confirmed != WM_TIME_NONE && confirmed - since >= idle);
				idle_count += is_idle[j];
			}
			wm_combine_speak(&combine, i, time_us, 0);
			if (!is_wild) {
				wm_watermark_observe(&combine.sources[i].own, time_us);
				own[i] = time_us > own[i] ? time_us : own[i];
			}
			wm_combine_advance(&combine, i);
			int64_t least = WM_TIME_END;
			for (size_t j = 0; j < count; j++) {
				agrees = agrees && wm_combine_is_idle(&combine, j) == is_idle[j];
				if (!is_idle[j] && own[j] < least)
					least = own[j];
			}
			if (least != WM_TIME_END && least > watermark)
				watermark = least;
			agrees = agrees && combine.watermark_us == watermark;
			if (step == 100)
				saved_and_loaded(&combine);
		}
		wm_combine_release(&combine);
	}
	tap_ok(agrees && idle_count > 1000,
		"idle sources: 300 random streams as worked out anew, saved and loaded half way");
}

static void
test_idle_wall(void)
{
	struct wm_combine combine;
	struct wm_watermark fresh;

	wm_combine_init(&combine, WM_POLICY_MIN, 0);
	wm_watermark_init(&fresh, 0);
	wm_combine_add(&combine, &fresh, 1000);
	wm_combine_add(&combine, &fresh, 1000);
	wm_watermark_observe(&combine.sources[0].own, 5000000);
	wm_combine_speak(&combine, 0, 5000000, 1500);
	tap_ok(!wm_combine_advance(&combine, 0), "a source that has not spoken holds the watermark");
	tap_int(wm_combine_idle_wall_due_us(&combine, 600), 1600, "it is idle 600 us after it began");
	tap_ok(!wm_combine_idle_wall(&combine, 600, 1599), "not a microsecond earlier");
	tap_ok(wm_combine_idle_wall(&combine, 600, 1600) && combine.watermark_us == 5000000,
		"then it holds nothing back");
	wm_watermark_observe(&combine.sources[1].own, 1000000);
	wm_combine_speak(&combine, 1, 1000000, 1700);
	tap_ok(!wm_combine_advance(&combine, 1) && combine.watermark_us == 5000000,
		"when it speaks the watermark waits");
	wm_watermark_observe(&combine.sources[0].own, 9000000);
	wm_combine_speak(&combine, 0, 9000000, 1800);
	tap_ok(!wm_combine_advance(&combine, 0), "for the one that is behind now");
	/* The second became idle at 2300, and the first at 2400 only: the clock is read later than both. */
	tap_ok(wm_combine_idle_wall(&combine, 600, 5000) && combine.watermark_us == 9000000,
		"of two that become idle the second to do so has had its say");
	wm_combine_release(&combine);
}

/* The bytes of a state of two sources: their numbers, whether they take part and have ended, as given. */
static bool
is_accepted(struct wm_combine *back, const unsigned char each[2][3])
{
	struct wm_watermark fresh;
	struct wm_combine combine;
	struct wm_buf bytes;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_combine_init(&combine, WM_POLICY_MIN, 0);
	wm_put_i64(&bytes, 100000);
	wm_put_i64(&bytes, WM_TIME_NONE);
	wm_put_i64(&bytes, WM_TIME_NONE);
	wm_guard_encode(&combine.guard, &bytes);
	wm_put_varint(&bytes, 2);
	for (size_t i = 0; i < 2; i++) {
		wm_put_varint(&bytes, each[i][0]);
		wm_put_u8(&bytes, each[i][1]);
		wm_put_u8(&bytes, each[i][2]);
		wm_put_i64(&bytes, WM_TIME_NONE);
		wm_put_i64(&bytes, 100000);
		wm_put_i64(&bytes, 100000);
	}
	wm_combine_release(&combine);
	wm_combine_init(back, WM_POLICY_MIN, 0);
	wm_watermark_init(&fresh, 0);
	wm_combine_add(back, &fresh, 0);
	wm_combine_add(back, &fresh, 0);
	wm_get_init(&in, wm_buf_span(&bytes));
	bool is_decoded = wm_combine_decode(back, &in);
	wm_buf_release(&bytes);
	return is_decoded;
}

static void
test_hostile(void)
{
	static const unsigned char refused[][2][3] = {
		{ { 0, 1, 0 }, { 0, 1, 0 } },
		{ { 1, 0, 0 }, { 1, 0, 0 } },
		{ { 0, 0, 0 }, { 0, 1, 0 } },
		{ { 0, 1, 1 }, { 1, 1, 0 } },
		{ { 0, 1, 0 }, { 2, 1, 0 } },
		{ { 0, 1, 0 }, { 1, 2, 1 } },
		{ { 0, 1, 0 }, { 1, 3, 0 } },
	};
	static const unsigned char idle[2][3] = { { 0, 1, 0 }, { 1, 0, 0 } };
	struct wm_combine combine;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		tap_ok(!is_accepted(&combine, refused[i]), "a state in which sources come twice, or not as they can");
		wm_combine_release(&combine);
	}
	/* Idle by the clock in a run before; in this one nothing tells that it speaks. */
	tap_ok(is_accepted(&combine, idle), "a source that takes no part");
	combine.sources[1].own.highest_time_us = 150000;
	tap_ok(!wm_combine_advance(&combine, 1) && combine.watermark_us == 100000, "takes part with its next record");
	combine.sources[0].own.highest_time_us = 200000;
	tap_ok(wm_combine_advance(&combine, 0) && combine.watermark_us == 150000, "and holds the watermark");
	wm_combine_release(&combine);
}

/* A source whose clock may be wrong. */
static void
test_unconfirmed(void)
{
	struct wm_combine combine, back;
	struct wm_watermark fresh;
	struct wm_buf bytes;
	struct wm_get in;

	wm_watermark_init(&fresh, 0);
	wm_combine_init(&combine, WM_POLICY_MIN, 5000000);
	wm_combine_add(&combine, &fresh, 0);
	wm_combine_add(&combine, &fresh, 0);
	wm_combine_wait(&combine, 1);
	combine.sources[0].own.highest_time_us = 100000;
	tap_ok(wm_combine_advance(&combine, 0) && combine.watermark_us == 100000,
		"a source that waits holds nothing back");
	wm_combine_speak(&combine, 1, 50000, 0);
	combine.sources[0].own.highest_time_us = 200000;
	tap_ok(wm_combine_advance(&combine, 0) && combine.watermark_us == 200000, "nor when it has spoken");
	tap_ok(!wm_combine_is_idle(&combine, 1), "and is not idle");
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_combine_encode(&combine, &bytes);
	wm_combine_init(&back, WM_POLICY_MIN, 5000000);
	wm_combine_add(&back, &fresh, 0);
	wm_combine_add(&back, &fresh, 0);
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(wm_combine_decode(&back, &in) && wm_get_left(&in) == 0, "decoded");
	wm_combine_speak(&back, 1, 60000, 0);
	back.sources[0].own.highest_time_us = 300000;
	tap_ok(wm_combine_advance(&back, 0) && back.watermark_us == 300000, "it waits as before");
	wm_combine_confirm(&back, 1);
	back.sources[0].own.highest_time_us = 400000;
	tap_ok(!wm_combine_advance(&back, 0) && back.watermark_us == 300000, "confirmed, it holds the watermark");
	back.sources[1].own.highest_time_us = 350000;
	tap_ok(wm_combine_advance(&back, 1) && back.watermark_us == 350000, "until it has come on");
	wm_combine_release(&combine);
	wm_combine_release(&back);
	wm_buf_release(&bytes);
}

int
main(void)
{
	test_model(WM_POLICY_MIN, "min: 500 random streams as worked out anew");
	test_model(WM_POLICY_MAX, "max: 500 random streams as worked out anew");
	test_batches(WM_POLICY_MIN, "min: 300 random streams in batches, and a clock");
	test_batches(WM_POLICY_MAX, "max: 300 random streams in batches, and a clock");

	struct wm_combine combine;
	struct wm_watermark spark;
	wm_combine_init(&combine, WM_POLICY_MIN, 0);
	wm_watermark_init_spark(&spark, 0);
	wm_combine_add(&combine, &spark, 0);
	tap_int(combine.watermark_us, 0, "Spark's epoch holds before any record");
	wm_combine_release(&combine);
	test_idle();
	test_idle_wall();
	test_hostile();
	test_unconfirmed();
	return tap_done();
}
