/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/expose.h"

#include <inttypes.h>
#include <stdio.h>

#include "cmd/metrics.h"
#include "lib/time/instant.h"

/* A key's name as a label: what may not stand in one is an underscore. */
static void
add_label_name(struct wm_span name, struct wm_buf *out)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

		if (i == 0 && !is_letter)
			wm_buf_add_byte(out, '_');
		wm_buf_add_byte(out, is_letter || (c >= '0' && c <= '9') ? c : '_');
	}
}

/* A sample as far as its value. */
static void
begin_sample(const struct expose_plan *plan, const struct wm_lag_group *group, const char *name, const char *label,
	struct wm_span value, struct wm_buf *out)
{
	bool is_first = true;

	wm_buf_add_text(out, name);
	for (size_t i = 0; i < plan->keys_count; i++) {
		wm_buf_add_byte(out, is_first ? '{' : ',');
		add_label_name(plan->keys[i], out);
		wm_buf_add_text(out, "=\"");
		metrics_add_label_value(group->keys[i].text, out);
		wm_buf_add_byte(out, '"');
		is_first = false;
	}
	if (label != NULL) {
		wm_buf_addf(out, "%c%s=\"%.*s\"", is_first ? '{' : ',', label, (int)value.len, value.data);
		is_first = false;
	}
	wm_buf_add_text(out, is_first ? " " : "} ");
}

static void
add_seconds(int64_t us, struct wm_buf *out)
{
	char text[WM_INSTANT_TEXT_MAX];

	wm_buf_add(out, text, wm_instant_print(us, WM_UNIT_S, NULL, text));
	wm_buf_add_byte(out, '\n');
}

static void
add_family(const char *name, const char *type, const char *help, struct wm_buf *out)
{
	wm_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
expose_summary(
	const struct expose_plan *plan, const struct wm_lag_group *group, enum wm_lag_kind kind, struct wm_buf *out)
{
	const struct wm_lag_series *series = &group->series[kind];
	const char *name = kind == WM_LAG_LAG ? "wm_lag_seconds" : "wm_disorder_seconds";
	struct wm_span none = wm_span("", 0);
	char whole[32];

	for (size_t i = 0; i < plan->percentiles_count && series->count != 0; i++) {
		struct wm_buf quantile;

		wm_buf_init(&quantile, WM_BUF_UNBOUNDED);
		wm_double_print(wm_ratio(plan->percentiles[i], WM_PERCENT_ALL), &quantile);
		begin_sample(plan, group, name, "quantile", wm_buf_span(&quantile), out);
		add_seconds(wm_lag_percentile(series, plan->percentiles[i]), out);
		wm_buf_release(&quantile);
	}
	snprintf(whole, sizeof(whole), "%s_sum", name);
	begin_sample(plan, group, whole, NULL, none, out);
	wm_lag_print_sum_s(series, out);
	wm_buf_add_byte(out, '\n');
	snprintf(whole, sizeof(whole), "%s_count", name);
	begin_sample(plan, group, whole, NULL, none, out);
	wm_buf_addf(out, "%" PRIu64 "\n", series->count);
}

/* What a family says of a group. */
enum gauge { GAUGE_MIN, GAUGE_MAX, GAUGE_NEGATIVE, GAUGE_ADVISED };

static void
expose_gauge(const struct expose_plan *plan, struct wm_lag *lag, enum wm_lag_kind kind, enum gauge gauge,
	const char *name, const char *help, struct wm_buf *out)
{
	struct wm_lag_group group;

	add_family(name, "gauge", help, out);
	while (wm_lag_next(lag, &group)) {
		const struct wm_lag_series *series = &group.series[kind];

		if (series->count == 0)
			continue;
		begin_sample(plan, &group, name, NULL, wm_span("", 0), out);
		if (gauge == GAUGE_NEGATIVE)
			wm_buf_addf(out, "%" PRIu64 "\n", series->negative);
		else
			add_seconds(gauge == GAUGE_MIN       ? series->min_us
					: gauge == GAUGE_MAX ? series->max_us
							     : advice_delay_us(series, plan->target),
				out);
	}
}

void
expose_lag(const struct expose_plan *plan, struct wm_lag *lag, struct wm_buf *out)
{
	struct wm_lag_group group;

	if (plan->has_arrival) {
		add_family("wm_lag_seconds", "summary", "Arrival time - event time of rows.", out);
		while (wm_lag_next(lag, &group))
			expose_summary(plan, &group, WM_LAG_LAG, out);
		expose_gauge(plan, lag, WM_LAG_LAG, GAUGE_MIN, "wm_lag_min_seconds", "Least lag.", out);
		expose_gauge(plan, lag, WM_LAG_LAG, GAUGE_MAX, "wm_lag_max_seconds", "Greatest lag.", out);
		expose_gauge(plan, lag, WM_LAG_LAG, GAUGE_NEGATIVE, "wm_lag_negative_rows",
			"Rows that arrived before their event time.", out);
	}
	add_family("wm_disorder_seconds", "summary", "Highest event time before a row - its event time.", out);
	while (wm_lag_next(lag, &group))
		expose_summary(plan, &group, WM_LAG_DISORDER, out);
	expose_gauge(plan, lag, WM_LAG_DISORDER, GAUGE_MAX, "wm_disorder_max_seconds", "Greatest disorder.", out);
	if (plan->has_advice)
		expose_gauge(plan, lag, WM_LAG_BEHIND, GAUGE_ADVISED, "wm_advised_delay_seconds",
			"Least delay with which no more rows are behind than --target says.", out);
}

bool
expose_can_label(const struct expose_plan *plan, size_t *key)
{
	struct wm_buf names;
	bool is_good = true;

	wm_buf_init(&names, WM_BUF_UNBOUNDED);
	for (*key = 0; *key < plan->keys_count && is_good; *key += is_good) {
		wm_buf_reset(&names);
		add_label_name(plan->keys[*key], &names);
		size_t len = names.len;
		is_good = !wm_span_is(wm_buf_span(&names), "quantile");
		for (size_t other = 0; other < *key && is_good; other++) {
			names.len = len;
			add_label_name(plan->keys[other], &names);
			is_good = !wm_span_equal(wm_span(names.data, len), wm_span(names.data + len, names.len - len));
		}
	}
	wm_buf_release(&names);
	return is_good;
}
