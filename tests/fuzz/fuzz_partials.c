/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_partials - lines as states of aggregates in text, held to four laws:
 *
 *   - a text is refused with a message, or is a state;
 *   - a state that was merged into nothing is printed as a state, and that one as itself;
 *   - a state that is not taken leaves the cell as it was;
 *   - two states of one function give the same text whichever comes first, where their sums are exact; of a first or last
 *     at one time the one that was merged first, or last, is left.
 */
#include "lib/agg/agg.h"
#include "lib/agg/partial.h"
#include "lib/base/mem.h"
#include "tests/fuzz/expect.h"

#define STATES_MAX 32

struct group {
	struct wm_agg *agg;
	void *cell;
	struct wm_arena arena;
};

static struct group
group_of(struct wm_agg *agg)
{
	struct group group = { .agg = agg, .cell = aligned_alloc(16, wm_agg_cell_bytes(agg)) };

	expect(group.cell != NULL, "memory");
	wm_agg_cell_init(agg, group.cell);
	return group;
}

static void
free_group(struct group *group)
{
	wm_arena_release(&group->arena);
	free(group->cell);
}

static bool
merge(struct group *group, struct wm_span state)
{
	struct wm_err err = { 0 };
	bool is_taken = wm_agg_cell_merge_state(group->agg, group->cell, &group->arena, 0, state, &err);

	expect(is_taken || (err.code == WM_ERR_DATA && err.message[0] != '\0'), "a refusal has its message");
	return is_taken;
}

static void
print(const struct group *group, struct wm_buf *out)
{
	wm_buf_reset(out);
	wm_agg_cell_print_state(group->agg, group->cell, 0, out);
}

/* The plan of one state; NULL if it is none. */
static struct wm_agg *
plan_of(struct wm_span state)
{
	static const struct wm_span name = { "x", 1 };
	struct wm_err err = { 0 };
	struct wm_agg *agg = wm_agg_parse_states(&name, &state, 1, &err);

	expect(agg != NULL || (err.code == WM_ERR_DATA && err.message[0] != '\0'), "a refusal has its message");
	return agg;
}

/* Whether a sum of it went to doubles, or a value of it is kept as bytes: an encoding that an order of additions tells. */
static bool
is_inexact(struct wm_span state)
{
	return memchr(state.data, '~', state.len) != NULL;
}

static bool
has_ties(struct wm_span state)
{
	return memmem(state.data, state.len, "first:", 6) != NULL || memmem(state.data, state.len, "last:", 5) != NULL;
}

/* The text up to its third colon: of a first or last, the function and its time. */
static struct wm_span
timed_head(struct wm_span state)
{
	size_t at = 0;

	for (int colons = 0; at < state.len && colons < 3; at++)
		colons += state.data[at] == ':';
	return wm_span(state.data, at);
}

static bool
starts_with(struct wm_span text, const char *start)
{
	size_t len = strlen(start);

	return text.len >= len && memcmp(text.data, start, len) == 0;
}

/* Whether the order of two states tells which of them is left: values of one time. */
static bool
is_tied(struct wm_span a, struct wm_span b)
{
	return (starts_with(a, "1:first:") || starts_with(a, "1:last:")) && wm_span_equal(timed_head(a), timed_head(b));
}

/* That of two values of one time the right one is left, in text. */
static void
hold_tie(struct wm_agg *agg, struct wm_span left, const struct wm_buf *text)
{
	struct group group = group_of(agg);
	struct wm_buf own;

	wm_buf_init(&own, WM_BUF_UNBOUNDED);
	if (merge(&group, left)) {
		print(&group, &own);
		expect(wm_span_equal(wm_buf_span(&own), wm_buf_span(text)), "of one time the order decides");
	}
	wm_buf_release(&own);
	free_group(&group);
}

static void
hold_pair(struct wm_agg *agg, struct wm_span a, struct wm_span b)
{
	struct group forward = group_of(agg), backward = group_of(agg);
	struct wm_buf text, other;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&other, WM_BUF_UNBOUNDED);
	if (merge(&forward, a) && merge(&backward, b)) {
		print(&forward, &text);
		bool is_taken = merge(&forward, b);
		if (!is_taken) {
			print(&forward, &other);
			expect(wm_span_equal(wm_buf_span(&text), wm_buf_span(&other)),
				"what is not taken changes nothing");
		}
		expect(merge(&backward, a) == is_taken || is_inexact(a), "whichever comes first both are taken");
		print(&forward, &text);
		print(&backward, &other);
		if (is_taken && is_tied(a, b))
			hold_tie(agg, starts_with(a, "1:first:") ? a : b, &text);
		expect(!is_taken || is_tied(a, b) || is_inexact(wm_buf_span(&text)) || is_inexact(a) || is_inexact(b) ||
				has_ties(a) || wm_span_equal(wm_buf_span(&text), wm_buf_span(&other)),
			"whichever comes first it is the same state");
	}
	wm_buf_release(&text);
	wm_buf_release(&other);
	free_group(&forward);
	free_group(&backward);
}

static void
hold_printed(struct wm_agg *agg, struct wm_span state)
{
	struct group first = group_of(agg), second = group_of(agg);
	struct wm_buf text, again;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&again, WM_BUF_UNBOUNDED);
	if (merge(&first, state)) {
		print(&first, &text);
		expect(merge(&second, wm_buf_span(&text)), "a printed state is one");
		print(&second, &again);
		expect(wm_span_equal(wm_buf_span(&text), wm_buf_span(&again)), "and is printed as itself");
	}
	wm_buf_release(&text);
	wm_buf_release(&again);
	free_group(&first);
	free_group(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	struct wm_span before = { NULL, 0 };

	for (size_t count = 0; at < end && count < STATES_MAX; count++) {
		const char *line_feed = memchr(at, '\n', (size_t)(end - at));
		struct wm_span state = wm_span(at, (size_t)((line_feed == NULL ? end : line_feed) - at));
		struct wm_agg *agg = plan_of(state);

		at += state.len + 1;
		if (agg == NULL)
			continue;
		hold_printed(agg, state);
		if (before.data != NULL)
			hold_pair(agg, state, before);
		hold_pair(agg, state, state);
		wm_agg_free(agg);
		before = state;
	}
	return 0;
}
