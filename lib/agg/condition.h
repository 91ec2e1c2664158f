/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition - a comparison that some rows of a group fulfil: "status:ge:500".
 *
 * Equal: by value where the field and the value are both numbers, else by their
 * bytes. In order: where the value is a number, numbers alone fulfil the
 * condition, by value; else all are compared as bytes. An empty field fulfils no
 * condition, not even ne. A condition rejects no row.
 */
#ifndef WM_AGG_CONDITION_H
#define WM_AGG_CONDITION_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/base/value.h"

enum wm_comparison { WM_EQ, WM_NE, WM_LT, WM_LE, WM_GT, WM_GE };

/* Texts are borrowed. Fields are for reading; filled by wm_condition_init(). */
struct wm_condition {
	size_t column; /* whose field is compared: an index of the caller's */
	enum wm_comparison comparison;
	struct wm_reading value;
	bool reads_number; /* the value is one; else only bytes are compared */
};

/* Fails (WM_ERR_USAGE) on an unknown comparison and an empty value. The value has its escapes undone. */
WM_MUST_CHECK bool wm_condition_init(struct wm_condition *condition, size_t column, struct wm_span comparison,
	struct wm_span value, struct wm_err *err);

/* "ge" for WM_GE */
const char *wm_comparison_name(enum wm_comparison comparison);

bool wm_condition_holds(const struct wm_condition *condition, const struct wm_reading *field);

#endif
