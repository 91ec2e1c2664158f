#include "cmd/sources.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"

/* Room in a table's value for a number, in the multiple of 16 that tables want. */
#define NUMBER_BYTES 16

/* The delay of a source: its own, or that of all others. */
static int64_t
delay_of(const struct cli_common *common, struct wm_span source)
{
	struct wm_span rest = common->delay.others == NULL ? wm_span(NULL, 0) : wm_span_of(common->delay.others), name;
	int64_t own_us, delay_us = common->delay.us;
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	while (cli_next_source_delay(&rest, &name, &own_us)) {
		wm_buf_reset(&text);
		wm_list_unescape(name, &text);
		if (wm_span_equal(wm_buf_span(&text), source))
			delay_us = own_us;
	}
	wm_buf_release(&text);
	return delay_us;
}

static size_t
add(struct sources *sources, struct wm_span name, int64_t now_us)
{
	const struct cli_common *common = sources->common;
	size_t count = sources->combine.sources_count;
	int64_t delay_us = delay_of(common, name);
	struct wm_watermark own;

	if (common->is_spark && common->delay.text != NULL)
		wm_watermark_init_spark(&own, delay_us);
	else
		wm_watermark_init(&own, delay_us);
	if (common->max_jump.text != NULL) {
		sources->guards = wm_reallocarray(sources->guards, count + 1, sizeof(sources->guards[0]));
		wm_guard_init(&sources->guards[count], common->max_jump.us);
	}
	return wm_combine_add(&sources->combine, &own, now_us);
}

static bool
add_value(struct sources *sources, struct wm_span text, enum wm_kind kind, int64_t now_us, size_t *source,
	struct wm_err *err)
{
	bool is_new;
	struct wm_entry *entry = wm_table_put(&sources->numbers, text, (uint8_t)kind, &is_new);
	size_t *number = wm_entry_value(entry);

	if (is_new && sources->combine.sources_count == WM_SOURCES_MAX)
		return wm_err_set(err, WM_ERR_LIMIT,
			"--source: more than %d sources: is %s the column that tells them apart?", WM_SOURCES_MAX,
			sources->common->source_column);
	if (is_new)
		*number = add(sources, text, now_us);
	*source = *number;
	return true;
}

/* Sources known beforehand are texts; where NDJSON has numbers or truth values for them they count too. */
static void
add_known(struct sources *sources, const char *names, int64_t now_us)
{
	struct wm_span rest = wm_span_of(names), name;
	struct wm_buf text;
	struct wm_err err;
	size_t source;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	while (wm_list_next(&rest, ',', &name)) {
		wm_buf_reset(&text);
		wm_list_unescape(name, &text);
		if (!add_value(sources, wm_buf_span(&text), WM_KIND_TEXT, now_us, &source, &err))
			cli_die(&err);
	}
	wm_buf_release(&text);
}

void
sources_open(struct sources *sources, const struct cli_common *common, const char *const *files, size_t files_count,
	int64_t now_us)
{
	*sources = (struct sources){
		.common = common,
		.can_be_idle =
			common->idle.text != NULL || common->idle_wall.text != NULL || common->idle_close.text != NULL,
	};
	wm_combine_init(&sources->combine, (enum wm_policy)common->policy, common->idle.us);
	wm_table_init(&sources->numbers, NUMBER_BYTES);
	for (size_t i = 0; i < files_count; i++)
		add(sources, wm_span_of(files[i]), now_us);
	if (common->sources != NULL)
		add_known(sources, common->sources, now_us);
	if (files_count == 0 && common->source_column == NULL)
		add(sources, wm_span("", 0), now_us);
}

void
sources_release(struct sources *sources)
{
	wm_combine_release(&sources->combine);
	wm_table_release(&sources->numbers);
	free(sources->guards);
}

bool
sources_find(struct sources *sources, const struct wm_value *value, int64_t now_us, size_t *source, struct wm_err *err)
{
	bool is_scalar = value->kind == WM_KIND_NUMBER || value->kind == WM_KIND_BOOL;

	/* A number is the source of the same text: 1 and "1" are one host. */
	return add_value(sources, value->text, is_scalar ? WM_KIND_TEXT : value->kind, now_us, source, err);
}
