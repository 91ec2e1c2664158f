/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/matches.h"

#include "lib/base/list.h"
#include "lib/time/duration.h"

const char *const matches_types[MATCHES_TYPES] = { "inner", "left", "right", "full", "semi", "anti" };

/* One end of a range: nothing is open. */
static bool
read_end(struct wm_span text, bool is_strict, struct wm_join_end *end, struct wm_err *err)
{
	*end = (struct wm_join_end){ .is_open = text.len == 0, .is_strict = is_strict && text.len != 0 };
	return end->is_open || wm_duration_parse_fixed(text, &end->us, err);
}

bool
matches_read_between(struct wm_join_options *options, const char *between, struct wm_err *err)
{
	struct wm_span text = wm_span_of(between), low, high, more;
	bool is_low_strict = text.len > 0 && text.data[0] == '(';
	bool is_high_strict = text.len > 0 && text.data[text.len - 1] == ')';

	if (text.len > 0 && (text.data[0] == '(' || text.data[0] == '['))
		text = wm_span(text.data + 1, text.len - 1);
	if (text.len > 0 && (text.data[text.len - 1] == ')' || text.data[text.len - 1] == ']'))
		text.len--;
	if (!wm_list_next(&text, ',', &low) || !wm_list_next(&text, ',', &high) || wm_list_next(&text, ',', &more))
		return wm_err_set(err, WM_ERR_USAGE,
			"'%s': write LO,HI, as in -5m,1h; an end left empty is open, one in round brackets strict",
			between);
	if (!read_end(low, is_low_strict, &options->low, err) || !read_end(high, is_high_strict, &options->high, err))
		return false;
	return options->low.is_open || options->high.is_open || options->low.us <= options->high.us ||
		wm_err_set(err, WM_ERR_USAGE, "'%s': LO is greater than HI: nothing would match", between);
}

bool
matches_have_type(const struct wm_join_options *options)
{
	return options->condition != WM_JOIN_AS_OF || options->type == WM_JOIN_INNER ||
		options->type == WM_JOIN_LEFT_OUTER;
}

bool
matches_come_to_an_end(const struct wm_join_options *options)
{
	enum wm_join_type type = options->type;
	bool needs_left = type != WM_JOIN_INNER && type != WM_JOIN_RIGHT_OUTER;
	bool needs_right = type == WM_JOIN_RIGHT_OUTER || type == WM_JOIN_FULL_OUTER;

	return (!needs_left || wm_join_is_bounded(options, WM_JOIN_LEFT)) &&
		(!needs_right || wm_join_is_bounded(options, WM_JOIN_RIGHT));
}
