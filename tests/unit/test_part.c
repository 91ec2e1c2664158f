/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/part.h"

#include <stdlib.h>

#include "tests/unit/cells.h"

static void
test_extremes(void)
{
	CHECK("min:v,max:v", "v_min=5' v_max=abc'", "5", "abc");
	CHECK("min:v,max:v", "v_min=-2' v_max=10'", "9", "10", "-2", "3");
	CHECK("min:v,max:v", "v_min=+1' v_max=abd'", "abc", "ab", "abd", "+1");
	CHECK("min:v,max:v", "v_min=-1' v_max=zz'", "zz", "-1", "");
	/* of equal numbers the text first in byte order, whatever comes first */
	CHECK("min:v,max:v", "v_min=007' v_max=007'", "7", "7.0", "007");
	CHECK("min:v,max:v", "v_min=007' v_max=007'", "007", "7.0", "7");
	CHECK("min:v,max:v", "v_min=10e39' v_max=10e39'", "1e40", "10e39", "1e40");
	CHECK("max:v", "v_max=0.10000000000000000001'", "0.1", "0.10000000000000000001", "0.1");
	CHECK("min:v", "v_min=1e-999999999'", "1e-20", "1e-999999999", "5e-324");
	/* in NDJSON, of 1 and "1", the number, whatever comes first */
	CHECK("min:v,max:v", "v_min=1 v_max=1", "#1", "\"1", "#1");
	CHECK("min:v,max:v", "v_min=1 v_max=1", "\"1", "#1");
	CHECK("min:v,max:v", "v_min=2 v_max=x'", "\"10", "#2", "\"x");
	/* JSON numbers beyond doubles are no numbers here */
	CHECK("min:v,max:v", "v_min=3 v_max=1e999", "#1e999", "#3");

	struct wm_agg *agg = plan_of("min:v,max:v,first:v,last:v");
	struct group group = group_new(agg);
	static const struct {
		const char *text;
		enum wm_kind kind;
	} values[] = { { "true", WM_KIND_BOOL }, { "[1]", WM_KIND_JSON }, { "tru", WM_KIND_TEXT },
		{ "{}", WM_KIND_JSON } };
	for (size_t i = 0; i < 4; i++) {
		struct wm_reading reading = reading_of(values[i].text, values[i].kind);

		wm_agg_cell_add(agg, group.cell, &group.arena, &reading, (int64_t)i);
	}
	check_cell(&group, "v_min=[1]j v_max={}j v_first=trueb v_last={}j",
		"other kinds compare as texts and keep their kind");
	group_free(&group);
	wm_agg_free(agg);
}

static void
test_first_last(void)
{
	struct wm_agg *agg = plan_of("first:v,last:v");
	struct group group = group_new(agg), later = group_new(agg);

	add_field(&group, "b", 5);
	add_field(&group, "c", 5);
	add_field(&group, "", 1);
	check_cell(&group, "v_first=b' v_last=c'", "ties go by input order; empty is no value");
	add_field(&group, "a", -7);
	add_field(&group, "d", 6);
	add_field(&group, "x", 0);
	check_cell(&group, "v_first=a' v_last=d'", "by event time, not by input order");
	add_field(&later, "tie", -7);
	add_field(&later, "tie too", 6);
	wm_agg_cell_merge(agg, group.cell, &group.arena, later.cell);
	check_cell(&group, "v_first=a' v_last=tie too'", "merged: of ties the cell that is merged into is the earlier");
	add_field(&later, "before", -8);
	add_field(&later, "behind", 7);
	wm_agg_cell_merge(agg, group.cell, &group.arena, later.cell);
	check_cell(&group, "v_first=before' v_last=behind'", "else to the earlier and the later");
	group_free(&group);
	group_free(&later);

	group = group_new(agg);
	add_field(&group, "at the end of time", INT64_MAX);
	add_field(&group, "at its begin", INT64_MIN);
	check_cell(&group, "v_first=at its begin' v_last=at the end of time'", "all times are legal");
	group_free(&group);
	wm_agg_free(agg);
}

/* Texts of any length, and longer ones in place of shorter; room in the arena is used again. */
static void
test_texts(void)
{
	struct wm_agg *agg = plan_of("last:v");
	struct group group = group_new(agg);
	bool ok = true;
	char text[3000];
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (size_t len = 1; len < sizeof(text) && ok; len = len < 70 ? len + 1 : len * 3 / 2) {
		memset(text, 'a' + (char)(len % 26), len);
		text[len] = '\0';
		add_field(&group, text, 0);
		wm_buf_reset(&out);
		wm_agg_cell_print(agg, group.cell, 0, 0, &out);
		ok = wm_span_is(wm_buf_span(&out), text);
	}
	tap_ok(ok, "texts of 1 to some thousand bytes are kept whole");
	size_t bytes = group.arena.bytes;
	for (int i = 0; i < 10000; i++)
		add_field(&group, i % 2 ? text : "short", 0);
	tap_ok(group.arena.bytes == bytes, "shorter and longer by turns take no more room");
	add_field(&group, "short", 0);
	check_cell(&group, "v_last=short'", "a short text in the place of a long one");
	wm_buf_release(&out);
	group_free(&group);
	wm_agg_free(agg);
}

static bool
is_same_sum(const struct wm_decimal_sum *a, const struct wm_decimal_sum *b)
{
	return a->whole == b->whole && a->fraction == b->fraction && a->carry == b->carry && a->rest == b->rest &&
		a->rest_error == b->rest_error;
}

/* Of a part as bytes: what comes back as a part, and whether its sum and its bytes are the same. */
static bool
comes_back(const struct wm_sum *sum, struct wm_arena *arena)
{
	struct wm_sum back = { 0 };
	struct wm_decimal_sum value = wm_sum_value(sum), value_back;
	struct wm_buf bytes, again;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&again, WM_BUF_UNBOUNDED);
	wm_part_encode(WM_PART_SUM, sum, &bytes);
	wm_get_init(&in, wm_buf_span(&bytes));
	bool is_same = wm_part_decode(WM_PART_SUM, &back, arena, &in) && wm_get_left(&in) == 0;
	value_back = wm_sum_value(&back);
	wm_part_encode(WM_PART_SUM, &back, &again);
	is_same =
		is_same && is_same_sum(&value, &value_back) && wm_span_equal(wm_buf_span(&bytes), wm_buf_span(&again));
	wm_buf_release(&bytes);
	wm_buf_release(&again);
	return is_same;
}

/* A part holds what a sum of decimal.h holds, whether or not that fits; merged in two pieces too. */
static void
test_sums(void)
{
	static const char *const texts[] = { "1", "-1", "0.25", "-0.999999999999999999", "9223372036854775807",
		"-9223372036854775808", "0.5", "-0.000000000000000001", "4611686018427387904", "-4611686018427387905",
		"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "1e-30", "1e300",
		"-1e300" };
	struct wm_arena arena = { 0 };
	uint64_t random = 15;
	bool is_same = true, is_back = true, is_merged = true, is_short = true;

	for (int round = 0; round < 3000; round++) {
		struct wm_sum sum = { 0 }, pieces[2] = { { 0 }, { 0 } };
		struct wm_decimal_sum want = { 0 }, wants[2] = { { 0 }, { 0 } };
		size_t kinds = round % 3 == 0 ? 4 : round % 3 == 1 ? 10 : sizeof(texts) / sizeof(texts[0]);

		for (int i = 0; i < 12; i++) {
			struct wm_decimal number;
			bool is_second = tap_random(&random) % 2 != 0;

			if (!wm_decimal_parse(wm_span_of(texts[tap_random(&random) % kinds]), &number))
				abort();
			wm_sum_add(&sum, &arena, &number);
			wm_sum_add(&pieces[is_second], &arena, &number);
			wm_decimal_sum_add(&want, &number);
			wm_decimal_sum_add(&wants[is_second], &number);
		}
		struct wm_decimal_sum got = wm_sum_value(&sum);
		is_same = is_same && is_same_sum(&got, &want);
		is_short = is_short && (kinds != 4 || sum.wide == NULL);
		is_back = is_back && comes_back(&sum, &arena);
		wm_part_merge(WM_PART_SUM, &pieces[0], &arena, &pieces[1]);
		wm_decimal_sum_merge(&wants[0], &wants[1]);
		got = wm_sum_value(&pieces[0]);
		is_merged = is_merged && is_same_sum(&got, &wants[0]);
	}
	tap_ok(is_same, "sums that fit, and such that do not");
	tap_ok(is_short, "small ones take no more room");
	tap_ok(is_back, "and come back from bytes");
	tap_ok(is_merged, "and merge");
	wm_arena_release(&arena);
}

int
main(void)
{
	test_sums();
	test_extremes();
	test_first_last();
	test_texts();
	return tap_done();
}
