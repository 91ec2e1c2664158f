/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/agg.h"

#include <assert.h>
#include <string.h>

#include "lib/agg/function.h"
#include "lib/agg/part.h"
#include "lib/agg/plan.h"

/* What add_plainly() does, or can see that there is nothing to do for. */
#define PLAIN_PARTS                                                                                                    \
	(WM_PART_BIT(WM_PART_COUNT) | WM_PART_BIT(WM_PART_SUM) | WM_PART_BIT(WM_PART_MIN) | WM_PART_BIT(WM_PART_MAX))

size_t
wm_agg_cell_bytes(const struct wm_agg *agg)
{
	return agg->cell_bytes;
}

void
wm_agg_cell_init(const struct wm_agg *agg, void *cell)
{
	memset(cell, 0, agg->cell_bytes);
}

static void
add_value(const struct wm_measure *measure, void *cell, struct wm_arena *arena, const struct wm_reading *reading,
	int64_t event_time_us)
{
	unsigned has = measure->parts;

	if (has & WM_PART_BIT(WM_PART_COUNT))
		++*(uint64_t *)wm_measure_part(measure, cell, WM_PART_COUNT);
	if (has & WM_PART_BIT(WM_PART_SUM))
		wm_sum_add(wm_measure_part(measure, cell, WM_PART_SUM), arena, &reading->number);
	if (has & WM_PART_BIT(WM_PART_SQUARES))
		wm_square_sum_add(wm_measure_part(measure, cell, WM_PART_SQUARES), &reading->number);
	if (has & WM_PART_BIT(WM_PART_MIN))
		wm_extreme_add(wm_measure_part(measure, cell, WM_PART_MIN), arena, reading, -1);
	if (has & WM_PART_BIT(WM_PART_MAX))
		wm_extreme_add(wm_measure_part(measure, cell, WM_PART_MAX), arena, reading, 1);
	if (has & WM_PART_BIT(WM_PART_FIRST))
		wm_first_add(wm_measure_part(measure, cell, WM_PART_FIRST), arena, &reading->value, event_time_us);
	if (has & WM_PART_BIT(WM_PART_LAST))
		wm_last_add(wm_measure_part(measure, cell, WM_PART_LAST), arena, &reading->value, event_time_us);
	if (has & WM_PART_BIT(WM_PART_QUANTILE))
		wm_quantile_add(wm_measure_part(measure, cell, WM_PART_QUANTILE), arena, &reading->number);
	if (has & WM_PART_BIT(WM_PART_DISTINCT))
		wm_distinct_add(wm_measure_part(measure, cell, WM_PART_DISTINCT), arena, &reading->value);
}

/*
 * What add_value() comes to for most values of most lists: a count, extremes that are numbers, and an exact number into a sum that
 * fits. False if there is more to it; then add_value() does it, and what is an extreme already changes nothing.
 */
static inline bool
add_plainly(const struct wm_measure *measure, void *cell, const struct wm_reading *reading)
{
	unsigned has = measure->parts;

	if ((has & ~PLAIN_PARTS) != 0 ||
		((has & WM_PART_BIT(WM_PART_MIN)) != 0 &&
			!wm_extreme_add_short(wm_measure_part(measure, cell, WM_PART_MIN), reading, -1)) ||
		((has & WM_PART_BIT(WM_PART_MAX)) != 0 &&
			!wm_extreme_add_short(wm_measure_part(measure, cell, WM_PART_MAX), reading, 1)) ||
		((has & WM_PART_BIT(WM_PART_SUM)) != 0 &&
			!wm_sum_add_short(wm_measure_part(measure, cell, WM_PART_SUM), &reading->number)))
		return false;
	if (has & WM_PART_BIT(WM_PART_COUNT))
		++*(uint64_t *)wm_measure_part(measure, cell, WM_PART_COUNT);
	return true;
}

/* The values of a row, from this measure on. */
static void
add_values(const struct wm_measure *measure, void *cell, struct wm_arena *arena, const struct wm_reading *readings,
	int64_t event_time_us)
{
	for (; measure != NULL; measure = measure->next)
		if (!readings[measure->column].is_empty)
			add_value(measure, cell, arena, &readings[measure->column], event_time_us);
}

/* What is left to do of a row: from this measure on, and the conditions. */
__attribute__((noinline)) static void
add_rest(const struct wm_agg *agg, const struct wm_measure *measure, void *cell, struct wm_arena *arena,
	const struct wm_reading *readings, int64_t event_time_us)
{
	add_values(measure, cell, arena, readings, event_time_us);
	for (const struct wm_branch *branch = agg->all.next; branch != NULL; branch = branch->next) {
		if (!wm_condition_holds(&branch->condition, &readings[branch->condition.column]))
			continue;
		++*wm_branch_rows(branch, cell);
		add_values(branch->measures, cell, arena, readings, event_time_us);
	}
}

bool
wm_agg_takes(const struct wm_agg *agg, const struct wm_reading *readings, size_t *column)
{
	for (const struct wm_branch *branch = agg->all.next; branch != NULL; branch = branch->next) {
		if (!wm_condition_holds(&branch->condition, &readings[branch->condition.column]))
			continue;
		for (const struct wm_measure *measure = branch->measures; measure != NULL; measure = measure->next) {
			const struct wm_reading *reading = &readings[measure->column];

			if (!measure->needs_number || reading->is_empty || reading->is_number)
				continue;
			*column = measure->column;
			return false;
		}
	}
	return true;
}

/* Without a call that it has to return from: then no register is to be saved. */
void
wm_agg_cell_add(const struct wm_agg *agg, void *cell, struct wm_arena *arena, const struct wm_reading *readings,
	int64_t event_time_us)
{
	const struct wm_measure *measure = agg->all.measures;

	++*wm_branch_rows(&agg->all, cell);
	for (; measure != NULL; measure = measure->next)
		if (!readings[measure->column].is_empty && !add_plainly(measure, cell, &readings[measure->column]))
			break;
	if (measure != NULL || agg->all.next != NULL)
		add_rest(agg, measure, cell, arena, readings, event_time_us);
}

bool
wm_agg_is_uncombinable(struct wm_span word)
{
	struct wm_err err;
	uint64_t percent;
	const struct wm_function *function = wm_function_find(word, &percent, &err);

	return function != NULL && !function->is_combinable;
}

void
wm_agg_cell_merge(const struct wm_agg *agg, void *into, struct wm_arena *arena, const void *from)
{
	for (const struct wm_branch *branch = &agg->all; branch != NULL; branch = branch->next) {
		*wm_branch_rows(branch, into) += *wm_branch_rows_of(branch, from);
		for (const struct wm_measure *measure = branch->measures; measure != NULL; measure = measure->next)
			for (enum wm_part part = 0; part < WM_PARTS_COUNT; part++)
				if (measure->parts & WM_PART_BIT(part))
					wm_part_merge(part, wm_measure_part(measure, into, part), arena,
						wm_measure_part_of(measure, from, part));
	}
}

uint64_t
wm_agg_cell_rows(const struct wm_agg *agg, const void *cell)
{
	return *wm_branch_rows_of(&agg->all, cell);
}

bool
wm_agg_output_is_zero_for_none(const struct wm_agg *agg, size_t output)
{
	return agg->outputs[output].function->is_zero_for_none;
}

bool
wm_agg_output_is_chosen(const struct wm_agg *agg, size_t output)
{
	const unsigned chosen = WM_PART_BIT(WM_PART_MIN) | WM_PART_BIT(WM_PART_MAX) | WM_PART_BIT(WM_PART_FIRST) |
		WM_PART_BIT(WM_PART_LAST);

	return (agg->outputs[output].function->parts & chosen) != 0;
}

bool
wm_agg_output_keeps_texts(const struct wm_agg *agg, size_t output)
{
	return agg->outputs[output].function->needs == WM_NEEDS_VALUE;
}

enum wm_kind
wm_agg_cell_print(const struct wm_agg *agg, const void *cell, size_t output, int64_t window_us, struct wm_buf *out)
{
	assert(output < agg->outputs_count);
	return agg->outputs[output].function->print(&agg->outputs[output], cell, window_us, out);
}

void
wm_agg_cell_encode(const struct wm_agg *agg, const void *cell, struct wm_buf *out)
{
	for (const struct wm_branch *branch = &agg->all; branch != NULL; branch = branch->next) {
		wm_put_varint(out, *wm_branch_rows_of(branch, cell));
		for (const struct wm_measure *measure = branch->measures; measure != NULL; measure = measure->next)
			for (enum wm_part part = 0; part < WM_PARTS_COUNT; part++)
				if (measure->parts & WM_PART_BIT(part))
					wm_part_encode(part, wm_measure_part_of(measure, cell, part), out);
	}
}

/* Values of a column that are no more than there are rows. */
static bool
counts_agree(const struct wm_measure *measure, const void *cell, uint64_t rows)
{
	const uint64_t *count = wm_measure_part_of(measure, cell, WM_PART_COUNT);
	const struct wm_quantile *quantile = wm_measure_part_of(measure, cell, WM_PART_QUANTILE);

	return ((measure->parts & WM_PART_BIT(WM_PART_COUNT)) == 0 || *count <= rows) &&
		((measure->parts & WM_PART_BIT(WM_PART_QUANTILE)) == 0 || quantile->count <= rows);
}

bool
wm_agg_cell_decode(const struct wm_agg *agg, void *cell, struct wm_arena *arena, struct wm_get *in)
{
	wm_agg_cell_init(agg, cell);
	for (const struct wm_branch *branch = &agg->all; branch != NULL; branch = branch->next) {
		uint64_t rows = wm_get_varint(in);

		*wm_branch_rows(branch, cell) = rows;
		for (const struct wm_measure *measure = branch->measures; measure != NULL; measure = measure->next) {
			for (enum wm_part part = 0; part < WM_PARTS_COUNT; part++)
				if ((measure->parts & WM_PART_BIT(part)) &&
					!wm_part_decode(part, wm_measure_part(measure, cell, part), arena, in))
					return false;
			if (!counts_agree(measure, cell, rows))
				wm_get_fail(in);
		}
		if (rows > wm_agg_cell_rows(agg, cell))
			wm_get_fail(in);
	}
	return !in->failed;
}
