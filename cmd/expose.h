/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expose - lag and disorder in Prometheus' text format (wm-lag -o prometheus).
 *
 * A summary for each measure, gauges for the rest; keys are labels. Quantiles
 * are left out where there are no values. For a file of the textfile
 * collector: samples have no times.
 */
#ifndef WM_CMD_EXPOSE_H
#define WM_CMD_EXPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/advice.h"
#include "lib/base/buf.h"
#include "lib/base/span.h"
#include "lib/op/lag.h"

struct expose_plan {
	const struct wm_span *keys;
	size_t keys_count;
	const uint64_t *percentiles; /* in units of quantile.h */
	size_t percentiles_count;
	bool has_arrival;
	bool has_advice;
	struct advice_share target;
};

/* False if a key's label is already taken, by another key or by Prometheus: *key is its index. */
bool expose_can_label(const struct expose_plan *plan, size_t *key);

/* Appended to out (born WM_BUF_UNBOUNDED). */
void expose_lag(const struct expose_plan *plan, struct wm_lag *lag, struct wm_buf *out);

#endif
