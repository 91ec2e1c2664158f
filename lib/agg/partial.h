/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partial - the state of a result as text, to be combined with others later.
 *
 * A state is printable ASCII without commas, quotes and blanks, so that it is a field of any format:
 *
 *     1:FUNCTION:STATE
 *
 * where 1 is the version and FUNCTION as the list had it ("avg", "p99.9"). STATE is readable where it can be:
 *
 *     count, rate      rows (count:c: values)
 *     share            rows that fulfil the condition : rows that have a value
 *     sum, avg         values : sum
 *     var, stddev      values : sum : squares
 *     min, max         value
 *     first, last      event time in microseconds : value
 *     median, pNN, distinct   bytes
 *
 * Bytes, squares, and a sum that is not exact, are '~' and base64url without padding of what the part's encode gives. A value
 * is a letter for its kind (t text, n JSON number, b true or false, j other JSON) and its text, in which
 * all but letters, digits and "-._/+" is %XX; nothing stands for no value.
 *
 * States of one function combine in any grouping to the state of all rows together, as long as they keep the order of
 * input: where that decides in one run (first and last of one event time, JSON 1 and "1" as min or max), it decides here. All
 * else may come in any order. Sums of numbers that are not exact are the exception: doubles are added as they
 * come, and what is lost on the way depends on the grouping.
 */
#ifndef WM_AGG_PARTIAL_H
#define WM_AGG_PARTIAL_H

#include <stddef.h>

#include "lib/agg/agg.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/span.h"

/* The state of one output, appended to out (born WM_BUF_UNBOUNDED). The cell may be of any plan. */
void wm_agg_cell_print_state(const struct wm_agg *agg, const void *cell, size_t output, struct wm_buf *out);

/*
 * A plan whose outputs take in states like these, in this order: names[i] with the function of states[i]. It has no columns, so
 * cells get no rows, but are merged into, printed (with the same results as those of the plan that the states came from) and
 * printed as states. Fails (WM_ERR_DATA) where a text is no state.
 */
struct wm_agg *wm_agg_parse_states(
	const struct wm_span *names, const struct wm_span *states, size_t count, struct wm_err *err);

/*
 * Merges a state, of rows that came behind those of the cell, into one output of it. The plan is of wm_agg_parse_states(): in
 * others outputs share what they hold.
 * Fails (WM_ERR_DATA), and leaves the cell as it was, where the text is no state, or one of another function.
 */
WM_MUST_CHECK bool wm_agg_cell_merge_state(const struct wm_agg *agg, void *cell, struct wm_arena *arena, size_t output,
	struct wm_span state, struct wm_err *err);

#endif
