/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function - what can be computed of a group's rows: one row of a table for each.
 *
 * The table in function.c says of a function its name, what it needs and how it prints. Parsing,
 * the list in messages, cells and their states follow from it: an
 * aggregate more is a row more, and a part more where none of part.h will do.
 */
#ifndef WM_AGG_FUNCTION_H
#define WM_AGG_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/agg/plan.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/base/value.h"

enum wm_needs {
	WM_NEEDS_NOTHING,    /* rows alone */
	WM_NEEDS_OPTIONAL,   /* rows, or values of a column, or rows that fulfil a condition */
	WM_NEEDS_COMPARISON, /* the condition is its argument */
	WM_NEEDS_VALUE,
	WM_NEEDS_NUMBER
};

struct wm_function {
	const char *name;
	enum wm_needs needs;
	unsigned parts;        /* of its measure: WM_PART_BIT() of each */
	bool is_zero_for_none; /* of no rows it is 0: what is counted or added up */
	bool is_combinable; /* two results make one, without their states: added up, the lesser, the greater, the later */
	/* As wm_agg_cell_print(). */
	enum wm_kind (*print)(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out);
};

/*
 * The function of a word, NULL and err (WM_ERR_USAGE, with the list) if there is none. *percent, in 10^-15
 * percent, is set for pNN.
 */
const struct wm_function *wm_function_find(struct wm_span word, uint64_t *percent, struct wm_err *err);

#endif
