/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan - a parsed list of aggregates: what stands in a cell, and where.
 *
 * A cell begins with the number of its rows. The rows that fulfil a condition are
 * a branch beside that of all rows, with a number of their own. In each branch a column whose
 * values are looked at has one measure, with the parts that its aggregates need. An output prints
 * one measure, or the number of a branch's rows, or both.
 *
 * For the modules of this folder; the others know the plan by agg.h.
 */
#ifndef WM_AGG_PLAN_H
#define WM_AGG_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/agg/condition.h"
#include "lib/agg/part.h"
#include "lib/base/arena.h"
#include "lib/base/span.h"

struct wm_function;

/* What a cell holds of a column's values in the rows of a branch. */
struct wm_measure {
	struct wm_measure *next; /* of the branch */
	size_t column;
	unsigned parts; /* WM_PART_BIT() of each */
	bool needs_number;
	uint32_t at[WM_PARTS_COUNT]; /* in the cell, of those that it has */
};

/* All rows of a group, or those that fulfil a condition. */
struct wm_branch {
	struct wm_branch *next;
	struct wm_measure *measures;
	struct wm_measure **measures_end;
	size_t rows_at; /* in the cell: uint64_t, rows */
	struct wm_condition condition;
	struct wm_span condition_text; /* "status:ge:500", with its escapes */
};

struct wm_output {
	const struct wm_function *function;
	struct wm_span word; /* the function as it was written: "p99.9" */
	struct wm_span name;
	const struct wm_branch *branch;
	struct wm_measure *measure; /* NULL: rows are counted. share counts both */
	uint64_t percent;           /* of pNN, in 10^-15 percent */
};

struct wm_agg_column {
	struct wm_span text; /* with its escapes */
	bool needs_number;   /* of every row */
	bool is_guarded;     /* of rows that fulfil a condition, a number is needed */
	bool reads_number;
};

struct wm_agg {
	struct wm_arena arena; /* of all names, branches and measures */
	struct wm_branch all;  /* rows; the branches with conditions are behind it */
	struct wm_branch **branches_end;
	struct wm_agg_column *columns;
	size_t columns_count;
	struct wm_output *outputs;
	size_t outputs_count;
	size_t cell_bytes;
	bool is_of_states; /* each output has a branch of its own, and no column */
};

static inline uint64_t *
wm_branch_rows(const struct wm_branch *branch, void *cell)
{
	return (uint64_t *)((char *)cell + branch->rows_at);
}

static inline const uint64_t *
wm_branch_rows_of(const struct wm_branch *branch, const void *cell)
{
	return (const uint64_t *)((const char *)cell + branch->rows_at);
}

static inline void *
wm_measure_part(const struct wm_measure *measure, void *cell, enum wm_part part)
{
	return (char *)cell + measure->at[part];
}

static inline const void *
wm_measure_part_of(const struct wm_measure *measure, const void *cell, enum wm_part part)
{
	return (const char *)cell + measure->at[part];
}

/*
 * For those who make plans: room for so many outputs, then branches, columns and measures as
 * they are asked for, then the places of everything in the cell.
 */
struct wm_agg *wm_plan_new(size_t outputs_max);
struct wm_span wm_plan_keep(struct wm_agg *agg, struct wm_span text);
struct wm_branch *wm_plan_branch(struct wm_agg *agg);
struct wm_measure *wm_plan_measure(struct wm_agg *agg, struct wm_branch *branch, size_t column);
void wm_plan_lay_out(struct wm_agg *agg);

#endif
