#include "cmd/held.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/keep.h"
#include "cmd/windows.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/time/duration.h"

bool
held_fail_options(const struct contents *c, struct wm_err *err)
{
	return sections_damaged(WM_CHECKPOINT_OPTS, c->path, err);
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
		return wm_err_set(err, WM_ERR_IO, "%s: was made with --tz, of a zone that is not known here", c->path);
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
	held->dedup = wm_dedup_new(&options);
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
	if (held->agg != NULL)
		wm_agg_free(held->agg);
}

/* The operator of the tool, if it is one that is taken apart. */
static bool
open_operator(struct contents *c, struct held *held, struct wm_err *err)
{
	const char *name = c->file.tool;

	if (strcmp(name, "wm-window") == 0)
		return open_windowing(c, held, err);
	if (strcmp(name, "wm-dedup") == 0)
		return open_dedup(c, held, err);
	if (strcmp(name, "wm-sort") == 0)
		held->sort = wm_sort_new(c->common.merge, c->common.is_spark);
	return true;
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
	(void)wm_get_u8(in); /* whether records came since some were let go */
	return wm_sort_decode(held->sort, in);
}

bool
held_open(struct contents *c, struct held *held, struct wm_err *err)
{
	bool is_anew = c->file.sections[WM_CHECKPOINT_STAT].version == KEEP_STATE_ANEW;
	struct wm_get in;

	*held = (struct held){ 0 };
	bool is_whole = is_anew || open_operator(c, held, err);
	bool is_apart = held->windowing != NULL || held->sessions != NULL || held->sort != NULL || held->dedup != NULL;
	if (is_whole && (is_anew || is_apart))
		/* All tools have had one version so far. */
		is_whole = sections_open(&c->file, WM_CHECKPOINT_STAT, 1, c->path, &in, err) &&
			sections_close(
				&c->file, WM_CHECKPOINT_STAT, c->path, is_anew || decode_state(held, &in), &in, err);
	if (!is_whole)
		held_close(held);
	return is_whole;
}
