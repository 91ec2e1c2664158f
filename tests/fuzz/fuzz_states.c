/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_states - bytes as the state of one module, held to two laws:
 *
 *   - they are refused, or taken to their end;
 *   - what was taken is encoded to bytes that are taken as well, and encoded to themselves.
 *
 * The first byte of the input chooses the module, and with it the options that the state belongs to.
 */
#include "cmd/report.h"
#include "lib/agg/agg.h"
#include "lib/base/mem.h"
#include "lib/event/combine.h"
#include "lib/event/guard.h"
#include "lib/event/trigger.h"
#include "lib/event/window.h"
#include "lib/op/dedup.h"
#include "lib/op/join.h"
#include "lib/op/lag.h"
#include "lib/op/sessions.h"
#include "lib/op/sort.h"
#include "lib/op/windowing.h"
#include "tests/fuzz/expect.h"

#define SOURCES 3

static struct wm_agg *agg;
static struct wm_windows tumbling, sliding, cumulating;

static void *
new_combine(void)
{
	struct wm_combine *combine = wm_calloc(1, sizeof(*combine));
	struct wm_watermark own;

	wm_combine_init(combine, WM_POLICY_MIN, 60000000);
	wm_watermark_init(&own, 1000000);
	for (size_t i = 0; i < SOURCES; i++)
		wm_combine_add(combine, &own, 0);
	return combine;
}

static bool
decode_combine(void *combine, struct wm_get *in)
{
	return wm_combine_decode(combine, in);
}

static void
encode_combine(void *combine, struct wm_buf *out)
{
	wm_combine_encode(combine, out);
}

/* What takes part has a place, and moves. */
static void
use_combine(void *self)
{
	struct wm_combine *combine = self;

	for (size_t i = 0; i < SOURCES; i++) {
		(void)wm_combine_speak(combine, i, INT64_C(1700000000000000), 0);
		struct wm_source *source = &combine->sources[i];
		wm_watermark_observe(&source->own, INT64_C(1700000000000000));
		if (source->place != SIZE_MAX && wm_watermark_advance(&source->own))
			(void)wm_combine_moved(combine, i);
		(void)wm_combine_end(combine, i);
	}
}

static void
free_combine(void *combine)
{
	wm_combine_release(combine);
	free(combine);
}

static void *
new_guard(void)
{
	struct wm_guard *guard = wm_calloc(1, sizeof(*guard));

	wm_guard_init(guard, 60000000);
	return guard;
}

static bool
decode_guard(void *guard, struct wm_get *in)
{
	return wm_guard_decode(guard, in);
}

static void
encode_guard(void *guard, struct wm_buf *out)
{
	wm_guard_encode(guard, out);
}

static void
use_guard(void *guard)
{
	bool is_unconfirmed;

	for (int i = 0; i < 2 * WM_GUARD_WINDOW; i++)
		(void)wm_guard_take(guard, 0, i * INT64_C(1000000000), &is_unconfirmed);
}

static void *
new_trigger(void)
{
	struct wm_trigger *trigger = wm_calloc(1, sizeof(*trigger));

	wm_trigger_init(trigger, WM_TRIGGER_COLUMN, 0, 0);
	return trigger;
}

static bool
decode_trigger(void *trigger, struct wm_get *in)
{
	return wm_trigger_decode(trigger, in);
}

static void
encode_trigger(void *trigger, struct wm_buf *out)
{
	wm_trigger_encode(trigger, out);
}

static void
free_trigger(void *trigger)
{
	wm_trigger_release(trigger);
	free(trigger);
}

static void *
new_tumbling(void)
{
	return wm_windowing_new(&tumbling, agg, 1, WM_MODE_APPEND, NULL, false);
}

static void *
new_panes(void)
{
	struct wm_pane_options panes = { .allowed_lateness_us = 60000000, .early_rows = 3 };

	return wm_windowing_new(&sliding, agg, 1, WM_MODE_APPEND, &panes, false);
}

static void *
new_update(void)
{
	return wm_windowing_new(&cumulating, agg, 1, WM_MODE_UPDATE, NULL, false);
}

static void *
new_filled(void)
{
	struct wm_windowing *windowing = new_tumbling();

	wm_windowing_fill(windowing, true);
	return windowing;
}

static bool
decode_windowing(void *windowing, struct wm_get *in)
{
	return wm_windowing_decode(windowing, in);
}

static void
encode_windowing(void *windowing, struct wm_buf *out)
{
	wm_windowing_encode(windowing, out);
}

static void
use_windowing(void *windowing)
{
	struct wm_window_row row;

	wm_windowing_advance(windowing, WM_TIME_END);
	while (wm_windowing_next(windowing, &row))
		;
}

static void
free_windowing(void *windowing)
{
	wm_windowing_free(windowing);
}

static void *
new_sessions(void)
{
	return wm_sessions_new(agg, 1, WM_MODE_APPEND, NULL, false);
}

static bool
decode_sessions(void *sessions, struct wm_get *in)
{
	return wm_sessions_decode(sessions, in);
}

static void
encode_sessions(void *sessions, struct wm_buf *out)
{
	wm_sessions_encode(sessions, out);
}

static void
use_sessions(void *sessions)
{
	struct wm_window_row row;

	wm_sessions_advance(sessions, WM_TIME_END);
	while (wm_sessions_next(sessions, &row))
		;
}

static void
free_sessions(void *sessions)
{
	wm_sessions_free(sessions);
}

static void *
new_dedup(void)
{
	struct wm_dedup_options options = { .keys_count = 1, .remember_us = 30000000 };

	return wm_dedup_new(&options);
}

static bool
decode_dedup(void *dedup, struct wm_get *in)
{
	return wm_dedup_decode(dedup, in);
}

static void
encode_dedup(void *dedup, struct wm_buf *out)
{
	wm_dedup_encode(dedup, out);
}

static void
free_dedup(void *dedup)
{
	wm_dedup_free(dedup);
}

static void *
new_sort(void)
{
	return wm_sort_new(false, false);
}

static bool
decode_sort(void *sort, struct wm_get *in)
{
	return wm_sort_decode(sort, in);
}

static void
encode_sort(void *sort, struct wm_buf *out)
{
	wm_sort_encode(sort, out);
}

static void
use_sort(void *sort)
{
	struct wm_sort_record record;

	wm_sort_advance(sort, WM_TIME_END);
	while (wm_sort_next(sort, &record))
		;
}

static void
free_sort(void *sort)
{
	wm_sort_free(sort);
}

static void *
new_join(void)
{
	struct wm_join_options options = {
		.type = WM_JOIN_FULL_OUTER, .keys_count = 1, .low.us = -30000000, .high.us = 30000000
	};

	return wm_join_new(&options);
}

static void *
new_as_of(void)
{
	struct wm_join_options options = { .type = WM_JOIN_LEFT_OUTER,
		.condition = WM_JOIN_AS_OF,
		.keys_count = 1,
		.has_tolerance = true,
		.tolerance_us = 60000000 };

	return wm_join_new(&options);
}

static bool
decode_join(void *join, struct wm_get *in)
{
	return wm_join_decode(join, in);
}

static void
encode_join(void *join, struct wm_buf *out)
{
	wm_join_encode(join, out);
}

static void
use_join(void *join)
{
	struct wm_join_row row;

	for (int side = 0; side < WM_JOIN_SIDES; side++) {
		wm_join_advance(join, (enum wm_join_side)side, WM_TIME_END);
		while (wm_join_next(join, &row))
			;
	}
}

static void
free_join(void *join)
{
	wm_join_free(join);
}

static void *
new_lag(void)
{
	struct wm_lag_options options = { .keys_count = 1 };

	return wm_lag_new(&options);
}

static void *
new_closing_lag(void)
{
	struct wm_lag_options options = { .keys_count = 1, .every = &tumbling, .closes = true };

	return wm_lag_new(&options);
}

static void
use_closing_lag(void *lag)
{
	struct wm_lag_group group;

	if (!wm_lag_close(lag, WM_TIME_END))
		return;
	while (wm_lag_next(lag, &group))
		;
	wm_lag_forget(lag);
	expect(wm_lag_groups_count(lag) == 0, "all windows are closed in the end");
}

static bool
decode_lag(void *lag, struct wm_get *in)
{
	return wm_lag_decode(lag, in);
}

static void
encode_lag(void *lag, struct wm_buf *out)
{
	wm_lag_encode(lag, out);
}

static void
free_lag(void *lag)
{
	wm_lag_free(lag);
}

static void *
new_report(void)
{
	struct report *report = wm_calloc(1, sizeof(*report));

	report_init(report, "wm-window", "windowing");
	return report;
}

static bool
decode_report(void *report, struct wm_get *in)
{
	return report_decode(report, in);
}

static void
encode_report(void *report, struct wm_buf *out)
{
	report_encode(report, out);
}

static const struct module {
	void *(*create)(void);
	bool (*decode)(void *self, struct wm_get *in);
	void (*encode)(void *self, struct wm_buf *out);
	void (*use)(void *self); /* or NULL */
	void (*destroy)(void *self);
} modules[] = {
	{ new_combine, decode_combine, encode_combine, use_combine, free_combine },
	{ new_guard, decode_guard, encode_guard, use_guard, free },
	{ new_trigger, decode_trigger, encode_trigger, NULL, free_trigger },
	{ new_tumbling, decode_windowing, encode_windowing, use_windowing, free_windowing },
	{ new_panes, decode_windowing, encode_windowing, use_windowing, free_windowing },
	{ new_update, decode_windowing, encode_windowing, use_windowing, free_windowing },
	{ new_filled, decode_windowing, encode_windowing, use_windowing, free_windowing },
	{ new_sessions, decode_sessions, encode_sessions, use_sessions, free_sessions },
	{ new_dedup, decode_dedup, encode_dedup, NULL, free_dedup },
	{ new_sort, decode_sort, encode_sort, use_sort, free_sort },
	{ new_join, decode_join, encode_join, use_join, free_join },
	{ new_as_of, decode_join, encode_join, use_join, free_join },
	{ new_lag, decode_lag, encode_lag, NULL, free_lag },
	{ new_report, decode_report, encode_report, NULL, free },
	{ new_closing_lag, decode_lag, encode_lag, use_closing_lag, free_lag },
};

static void
prepare(void)
{
	static const char list[] = "count,sum:v,avg:v,var:v,p50:v,distinct:v,first:v,last:t,min:v,max:t,share:v:gt:5";
	struct wm_err err;

	agg = wm_agg_parse(wm_span_of(list), &err);
	expect(agg != NULL, "the list is good");
	wm_windows_init(&tumbling, 10000000, 10000000, 0);
	wm_windows_init(&sliding, 25000000, 10000000, 0);
	wm_windows_init_cumulating(&cumulating, 60000000, 10000000, 0);
}

/* Takes the bytes into a new one; NULL if they are refused. */
static void *
taken(const struct module *module, struct wm_span bytes)
{
	void *self = module->create();
	struct wm_get in;

	wm_get_init(&in, bytes);
	if (module->decode(self, &in) && !in.failed && wm_get_left(&in) == 0)
		return self;
	module->destroy(self);
	return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wm_buf first, second;

	if (size == 0)
		return 0;
	if (agg == NULL)
		prepare();
	const struct module *module = &modules[data[0] % (sizeof(modules) / sizeof(modules[0]))];
	void *self = taken(module, wm_span((const char *)data + 1, size - 1));
	if (self == NULL)
		return 0;
	wm_buf_init(&first, WM_BUF_UNBOUNDED);
	wm_buf_init(&second, WM_BUF_UNBOUNDED);
	module->encode(self, &first);
	void *again = taken(module, wm_buf_span(&first));
	expect(again != NULL, "what was encoded is taken");
	module->encode(again, &second);
	expect(wm_span_equal(wm_buf_span(&first), wm_buf_span(&second)), "and encoded to itself");
	module->destroy(again);
	if (module->use != NULL)
		module->use(self);
	module->destroy(self);
	wm_buf_release(&first);
	wm_buf_release(&second);
	return 0;
}
