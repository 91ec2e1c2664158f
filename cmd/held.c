/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/held.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/keep.h"
#include "cmd/matches.h"
#include "cmd/pairs.h"
#include "cmd/windows.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/time/duration.h"

bool
held_fail_options(const struct contents *c, struct wm_err *err)
{
	return sections_damaged(WM_CHECKPOINT_OPTS, c->path, err);
}

static bool
fail_zone(const struct contents *c, struct wm_err *err)
{
	return wm_err_set(err, WM_ERR_IO, "%s: was made with --tz, of a zone that is not known here", c->path);
}

bool
held_windows(struct contents *c, struct wm_windows *windows, bool *has_windows, struct wm_err *err)
{
	const char *tumbling = contents_option(c, "--tumbling"), *sliding = contents_option(c, "--sliding");
	const char *cumulating = contents_option(c, "--cumulating"), *offset = contents_option(c, "--offset");
	int64_t offset_us = 0;
	bool is_read = true;
	struct wm_err why;

	*has_windows = false;
	if (strcmp(c->file.tool, "wm-window") != 0 || (tumbling == NULL && sliding == NULL && cumulating == NULL))
		return true;
	if (c->lacks_zone)
		return fail_zone(c, err);
	if (offset != NULL && !wm_duration_parse_fixed(wm_span_of(offset), &offset_us, &why))
		return held_fail_options(c, err);
	*has_windows = true;
	if (tumbling != NULL)
		is_read = windows_read_tumbling(windows, "--tumbling", tumbling, &c->common, offset_us, &why);
	else if (sliding != NULL)
		is_read = windows_read_sliding(windows, "--sliding", sliding, offset_us, &why);
	else
		is_read = windows_read_cumulating(windows, "--cumulating", cumulating, offset_us, &why);
	return is_read || held_fail_options(c, err);
}

static bool
count_columns(const char *list, size_t *count)
{
	struct wm_span rest = list == NULL ? wm_span(NULL, 0) : wm_span_of(list), part;

	for (*count = 0; wm_list_next(&rest, ',', &part);)
		if (++*count > WM_KEYS_MAX)
			return false;
	return true;
}

static bool
read_mode(const char *text, enum wm_window_mode *mode)
{
	*mode = WM_MODE_APPEND;
	if (text != NULL && strcmp(text, "update") == 0)
		*mode = WM_MODE_UPDATE;
	else if (text != NULL && strcmp(text, "complete") == 0)
		*mode = WM_MODE_COMPLETE;
	else
		return text == NULL || strcmp(text, "append") == 0;
	return true;
}

/* wm-window's operator, new and of the options of the file. */
static bool
open_windowing(struct contents *c, struct held *held, struct wm_err *err)
{
	const char *lateness = contents_option(c, "--allowed-lateness"), *kind = contents_option(c, "--panes");
	const char *early = contents_option(c, "--early");
	const char *fill = contents_option(c, "--fill"), *aggregate = contents_option(c, "--aggregate");
	struct wm_pane_options *panes = &held->panes;
	bool is_spark = c->common.is_spark && c->common.delay.text != NULL, has_windows;
	struct wm_err why;

	if (!held_windows(c, &held->windows, &has_windows, err))
		return false;
	bool is_read = read_mode(contents_option(c, "--mode"), &held->mode) &&
		count_columns(contents_option(c, "--group-by"), &held->keys_count) &&
		(early == NULL || windows_read_early(early, panes, &why));
	if (is_read && lateness != NULL && held->mode != WM_MODE_COMPLETE)
		is_read = wm_duration_parse_fixed(wm_span_of(lateness), &panes->allowed_lateness_us, &why) &&
			panes->allowed_lateness_us >= 0;
	panes->is_discarding = kind != NULL && strcmp(kind, "discarding") == 0;
	bool has_panes = wm_pane_options_many(panes);
	bool is_early = panes->early_rows != 0 || panes->early_period_us != 0 || panes->is_discarding;
	if (!is_read || (is_early && held->mode != WM_MODE_APPEND) || (!has_windows && held->mode == WM_MODE_UPDATE) ||
		(fill != NULL &&
			(!has_windows || has_panes || held->mode != WM_MODE_APPEND ||
				!wm_windows_are_disjoint(&held->windows))))
		return held_fail_options(c, err);
	held->agg = aggregate == NULL ? NULL : wm_agg_parse(wm_span_of(aggregate), &why);
	if (held->agg == NULL)
		return held_fail_options(c, err);
	if (!has_windows) {
		held->sessions =
			wm_sessions_new(held->agg, held->keys_count, held->mode, has_panes ? panes : NULL, is_spark);
		return true;
	}
	held->windowing = wm_windowing_new(
		&held->windows, held->agg, held->keys_count, held->mode, has_panes ? panes : NULL, is_spark);
	if (fill != NULL)
		wm_windowing_fill(held->windowing, strcmp(fill, "prev") == 0);
	return true;
}

static bool
open_dedup(struct contents *c, struct held *held, struct wm_err *err)
{
	const char *remember = contents_option(c, "--remember");
	struct wm_dedup_options options = { .remember_us = c->common.delay.us, .is_spark = c->common.is_spark };
	struct wm_err why;

	options.memory = contents_option(c, "--forever") != NULL ? WM_DEDUP_FOREVER
		: contents_option(c, "--with-time") != NULL      ? WM_DEDUP_WITH_TIME
								 : WM_DEDUP_WITHIN_WATERMARK;
	if (!count_columns(contents_option(c, "--key"), &options.keys_count) ||
		(remember != NULL &&
			(!wm_duration_parse_fixed(wm_span_of(remember), &options.remember_us, &why) ||
				options.remember_us < 0)))
		return held_fail_options(c, err);
	if (options.keys_count == 0)
		options.keys_count = 1; /* the whole record */
	held->keys_count = options.keys_count;
	held->dedup = wm_dedup_new(&options);
	return true;
}

static bool
read_type(const char *text, enum wm_join_type *type)
{
	for (*type = 0; *type < MATCHES_TYPES; (*type)++)
		if (text != NULL && strcmp(text, matches_types[*type]) == 0)
			return true;
	return false;
}

static bool
open_join(struct contents *c, struct held *held, struct wm_err *err)
{
	const char *between = contents_option(c, "--between"), *tumbling = contents_option(c, "--tumbling");
	const char *tolerance = contents_option(c, "--tolerance");
	struct wm_join_options options = { .is_spark = c->common.is_spark, .low.is_open = true, .high.is_open = true };
	struct wm_duration size = { .us = 1 };
	struct wm_err why;

	options.condition = contents_option(c, "--asof") != NULL ? WM_JOIN_AS_OF
		: tumbling != NULL                               ? WM_JOIN_TUMBLING
								 : WM_JOIN_BETWEEN;
	bool is_read = read_type(contents_option(c, "--type"), &options.type) &&
		count_columns(contents_option(c, "--left-key"), &options.keys_count) &&
		(between == NULL || matches_read_between(&options, between, &why)) &&
		(tumbling == NULL || wm_duration_parse(wm_span_of(tumbling), &size, &why));
	options.size_us = size.us;
	options.has_tolerance = tolerance != NULL;
	if (is_read && tolerance != NULL)
		is_read = wm_duration_parse_fixed(wm_span_of(tolerance), &options.tolerance_us, &why) &&
			options.tolerance_us >= 0;
	if (!is_read || size.us <= 0 || !matches_have_type(&options) || !matches_come_to_an_end(&options))
		return held_fail_options(c, err);
	held->keys_count = options.keys_count;
	held->join = wm_join_new(&options);
	return true;
}

/* As what it measures makes no difference to what is kept, nothing is asked for but the groups. */
static bool
open_lag(struct contents *c, struct held *held, struct wm_err *err)
{
	const char *every = contents_option(c, "--every");
	struct wm_lag_options options = { .every = every == NULL ? NULL : &held->windows };
	struct wm_err why;

	if (every != NULL && c->lacks_zone)
		return fail_zone(c, err);
	if (!count_columns(contents_option(c, "--group-by"), &held->keys_count) ||
		(every != NULL && !windows_read_tumbling(&held->windows, "--every", every, &c->common, 0, &why)))
		return held_fail_options(c, err);
	options.keys_count = held->keys_count;
	held->lag = wm_lag_new(&options);
	return true;
}

void
held_close(struct held *held)
{
	wm_windowing_free(held->windowing);
	wm_sessions_free(held->sessions);
	if (held->sort != NULL)
		wm_sort_free(held->sort);
	if (held->dedup != NULL)
		wm_dedup_free(held->dedup);
	wm_join_free(held->join);
	wm_buf_release(&held->waiting);
	if (held->lag != NULL)
		wm_lag_free(held->lag);
	if (held->agg != NULL)
		wm_agg_free(held->agg);
}

/* The operator of the tool. */
static bool
open_operator(struct contents *c, struct held *held, struct wm_err *err)
{
	const char *name = c->file.tool;

	if (strcmp(name, "wm-window") == 0)
		return open_windowing(c, held, err);
	if (strcmp(name, "wm-dedup") == 0)
		return open_dedup(c, held, err);
	if (strcmp(name, "wm-join") == 0)
		return open_join(c, held, err);
	if (strcmp(name, "wm-lag") == 0)
		return open_lag(c, held, err);
	if (strcmp(name, "wm-sort") == 0)
		held->sort = wm_sort_new(c->common.merge, c->common.is_spark);
	else if (strcmp(name, "wm-stamp") == 0)
		held->has_told = true;
	else
		return wm_err_set(
			err, WM_ERR_IO, "%s: is of a tool %s, which this program does not know", c->path, name);
	return true;
}

static bool
decode_join(struct held *held, struct wm_get *in)
{
	struct wm_value stamps[2];
	struct wm_join_row row;
	struct wm_get rows;

	/* i64 watermark in force of each side, and the one of the batch before. */
	for (size_t i = 0; i < WM_JOIN_SIDES + 1; i++)
		(void)wm_get_i64(in);
	if (!wm_join_decode(held->join, in))
		return false;
	struct wm_span waiting = pairs_get_waiting(in);
	wm_buf_add(&held->waiting, waiting.data, waiting.len);
	wm_get_init(&rows, waiting);
	while (pairs_next_waiting(&rows, &row, stamps))
		;
	return !in->failed && !rows.failed;
}

static bool
decode_state(struct held *held, struct wm_get *in)
{
	if (held->windowing != NULL)
		return wm_windowing_decode(held->windowing, in);
	if (held->sessions != NULL)
		return wm_sessions_decode(held->sessions, in);
	if (held->dedup != NULL)
		return wm_dedup_decode(held->dedup, in);
	if (held->join != NULL)
		return decode_join(held, in);
	if (held->lag != NULL)
		return wm_lag_decode(held->lag, in);
	if (held->sort != NULL) {
		(void)wm_get_u8(in); /* whether records came since some were let go */
		return wm_sort_decode(held->sort, in);
	}
	held->told_us = wm_get_i64(in);
	return true;
}

static bool
read_state(struct contents *c, struct held *held, struct wm_err *err)
{
	bool is_anew = c->file.sections[WM_CHECKPOINT_STAT].version == KEEP_STATE_ANEW;
	bool closes =
		held->lag != NULL && contents_option(c, "--every") != NULL && contents_option(c, "--delay") != NULL;
	struct wm_get in;

	/* All have had one version so far, but wm-lag where windows are closed. */
	return sections_open(&c->file, WM_CHECKPOINT_STAT, closes ? 2 : 1, c->path, &in, err) &&
		sections_close(&c->file, WM_CHECKPOINT_STAT, c->path, is_anew || decode_state(held, &in), &in, err);
}

bool
held_open(struct contents *c, struct held *held, struct wm_err *err)
{
	*held = (struct held){ .told_us = WM_TIME_NONE };
	wm_buf_init(&held->waiting, WM_BUF_UNBOUNDED);
	bool is_anew = c->file.sections[WM_CHECKPOINT_STAT].version == KEEP_STATE_ANEW;
	if ((is_anew || open_operator(c, held, err)) && read_state(c, held, err))
		return true;
	held_close(held);
	return false;
}

bool
held_turn_complete(struct contents *c, struct held *held, struct wm_err *err)
{
	wm_windowing_free(held->windowing);
	held->mode = WM_MODE_COMPLETE;
	held->windowing = wm_windowing_new(&held->windows, held->agg, held->keys_count, held->mode, NULL, false);
	return read_state(c, held, err);
}
