/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells - the few lines that tests of aggregates share: a cell with its arena, rows of one column, results as text.
 */
#ifndef WM_TESTS_UNIT_CELLS_H
#define WM_TESTS_UNIT_CELLS_H

#include <stdlib.h>

#include "lib/agg/agg.h"
#include "tests/unit/tap.h"

#define MINUTE_US INT64_C(60000000)

__attribute__((unused)) static struct wm_agg *
plan_of(const char *list)
{
	struct wm_err err = { 0 };
	struct wm_agg *agg = wm_agg_parse(wm_span_of(list), &err);

	if (agg == NULL) {
		printf("Bail out! '%s': %s\n", list, err.message);
		exit(1);
	}
	return agg;
}

/* One cell with its arena. */
struct group {
	const struct wm_agg *agg;
	void *cell;
	struct wm_arena arena;
};

__attribute__((unused)) static struct group
group_new(const struct wm_agg *agg)
{
	struct group group = { .agg = agg, .cell = aligned_alloc(16, wm_agg_cell_bytes(agg)) };

	memset(group.cell, 0xa5, wm_agg_cell_bytes(agg));
	wm_agg_cell_init(agg, group.cell);
	return group;
}

__attribute__((unused)) static void
group_free(struct group *group)
{
	free(group->cell);
	wm_arena_release(&group->arena);
}

__attribute__((unused)) static struct wm_reading
reading_of(const char *text, enum wm_kind kind)
{
	struct wm_reading reading;
	struct wm_value value = { .text = wm_span_of(text), .kind = kind };

	wm_reading_take(&reading, &value);
	return reading;
}

/* Adds one field as a row: "" is empty; a text of '"' and more is a JSON string, of '#' a JSON number, else CSV. */
__attribute__((unused)) static void
add_field(struct group *group, const char *field, int64_t event_time_us)
{
	struct wm_reading reading = *field == '"' ? reading_of(field + 1, WM_KIND_TEXT)
		: *field == '#'                   ? reading_of(field + 1, WM_KIND_NUMBER)
						  : reading_of(field, WM_KIND_TEXT);

	wm_agg_cell_add(group->agg, group->cell, &group->arena, &reading, event_time_us);
}

/* All outputs of a cell, "name=text" with the kinds that are no numbers behind: "?" null, "'" text, "b" bool, "j" JSON. */
__attribute__((unused)) static void
print_cell(const struct wm_agg *agg, const void *cell, int64_t window_us, struct wm_buf *out)
{
	for (size_t i = 0; i < wm_agg_outputs_count(agg); i++) {
		struct wm_span name = wm_agg_output_name(agg, i);

		if (i > 0)
			wm_buf_add_byte(out, ' ');
		wm_buf_add(out, name.data, name.len);
		wm_buf_add_byte(out, '=');
		switch (wm_agg_cell_print(agg, cell, i, window_us, out)) {
		case WM_KIND_NULL:
			wm_buf_add_byte(out, '?');
			break;
		case WM_KIND_TEXT:
			wm_buf_add_byte(out, '\'');
			break;
		case WM_KIND_BOOL:
			wm_buf_add_byte(out, 'b');
			break;
		case WM_KIND_JSON:
			wm_buf_add_byte(out, 'j');
			break;
		case WM_KIND_NUMBER:
			break;
		}
	}
}

__attribute__((unused)) static void
check_cell(const struct group *group, const char *want, const char *name)
{
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	print_cell(group->agg, group->cell, MINUTE_US, &out);
	tap_span(wm_buf_span(&out), want, name);
	wm_buf_release(&out);
}

/* Rows of one column, in event time 0, 1, …; what the list gives of them. */
__attribute__((unused)) static void
check_fields(const char *list, const char *const *fields, size_t count, const char *want)
{
	struct wm_agg *agg = plan_of(list);
	struct group group = group_new(agg);

	for (size_t i = 0; i < count; i++)
		add_field(&group, fields[i], (int64_t)i);
	check_cell(&group, want, list);
	group_free(&group);
	wm_agg_free(agg);
}

#define CHECK(list, want, ...)                                                                                         \
	check_fields(list, (const char *const[]){ __VA_ARGS__ },                                                       \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), want)

#endif
