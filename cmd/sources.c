/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sources.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"

/* Room in a table's value for a number, in the multiple of 16 that tables want. */
#define NUMBER_BYTES 16

int64_t
sources_delay_us(const struct cli_common *common, struct wm_span source)
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
	int64_t delay_us = sources_delay_us(common, name);
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
		.opened_us = now_us,
		.can_be_idle =
			common->idle.text != NULL || common->idle_wall.text != NULL || common->idle_close.text != NULL,
	};
	wm_combine_init(&sources->combine, (enum wm_policy)common->policy, common->idle.us);
	wm_table_init(&sources->numbers, NUMBER_BYTES);
	sources->files = files_count == 0 ? NULL : files;
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

enum wm_kind
sources_kind(const struct wm_value *value)
{
	return value->kind == WM_KIND_NUMBER || value->kind == WM_KIND_BOOL ? WM_KIND_TEXT : value->kind;
}

bool
sources_find(struct sources *sources, const struct wm_value *value, int64_t now_us, size_t *source, struct wm_err *err)
{
	size_t count = sources->combine.sources_count;

	if (!add_value(sources, value->text, sources_kind(value), now_us, source, err))
		return false;
	/* The clock of a new one may be wrong. */
	if (*source == count && sources->guards != NULL)
		wm_combine_wait(&sources->combine, *source);
	return true;
}

bool
sources_is_full_for(const struct sources *sources, const struct wm_value *value)
{
	return sources->combine.sources_count >= WM_SOURCES_MAX &&
		wm_table_find(&sources->numbers, value->text, (uint8_t)sources_kind(value)) == NULL;
}

size_t
sources_bytes(const struct sources *sources)
{
	size_t a_source =
		sizeof(struct wm_source) + sizeof(size_t) + (sources->guards == NULL ? 0 : sizeof(struct wm_guard));

	return sources->common->source_column == NULL
		? 0
		: wm_table_bytes(&sources->numbers) + sources->combine.sources_count * a_source;
}

/* All sources by their numbers; freed by the caller. */
static struct sources_known *
known_sources(const struct sources *sources)
{
	struct sources_known *known = wm_calloc(sources->combine.sources_count + 1, sizeof(known[0]));
	size_t at = 0;

	for (size_t i = 0; i < sources->combine.sources_count && sources->files != NULL; i++)
		known[i] = (struct sources_known){ wm_span_of(sources->files[i]), WM_KIND_TEXT };
	for (const struct wm_entry *entry; (entry = wm_table_next(&sources->numbers, &at)) != NULL;)
		known[*(const size_t *)wm_entry_value(entry)] =
			(struct sources_known){ wm_entry_key(entry), entry->tag };
	return known;
}

/* varint sources, each: text name · u8 kind · combined · flag guards, and if so one for each source. */
void
sources_encode(const struct sources *sources, struct wm_buf *out)
{
	struct sources_known *known = known_sources(sources);
	size_t count = sources->combine.sources_count;

	wm_put_varint(out, count);
	for (size_t i = 0; i < count; i++) {
		wm_put_span(out, known[i].name);
		wm_put_u8(out, known[i].kind);
	}
	free(known);
	wm_combine_encode(&sources->combine, out);
	wm_put_u8(out, sources->guards != NULL);
	for (size_t i = 0; i < count && sources->guards != NULL; i++)
		wm_guard_encode(&sources->guards[i], out);
}

static bool
decode_guards(struct sources *sources, struct wm_get *in)
{
	bool has_guards = wm_get_u8(in) != 0;

	if (in->failed || has_guards != (sources->guards != NULL && sources->combine.sources_count != 0))
		return false;
	for (size_t i = 0; i < sources->combine.sources_count && has_guards; i++)
		if (!wm_guard_decode(&sources->guards[i], in))
			return false;
	return true;
}

/* FILEs of this run that were there before go on as they were. */
static void
copy_files(struct sources *sources, const struct sources *old, const struct sources_known *known)
{
	for (size_t i = 0; i < sources->combine.sources_count; i++) {
		for (size_t j = 0; j < old->combine.sources_count; j++) {
			if (!wm_span_is(known[j].name, sources->files[i]))
				continue;
			wm_combine_copy(&sources->combine, i, &old->combine, j);
			if (sources->guards != NULL)
				sources->guards[i] = old->guards[j];
			break;
		}
	}
}

static bool
decode_files(struct sources *sources, const struct sources_known *known, size_t count, struct wm_get *in)
{
	struct sources old = { .common = sources->common };

	wm_combine_init(&old.combine, sources->combine.policy, sources->combine.idle_us);
	wm_table_init(&old.numbers, NUMBER_BYTES);
	for (size_t i = 0; i < count; i++)
		add(&old, known[i].name, 0);
	bool is_decoded = wm_combine_decode(&old.combine, in) && decode_guards(&old, in);
	if (is_decoded)
		copy_files(sources, &old, known);
	sources_release(&old);
	return is_decoded;
}

/* Only FILEs end. */
static bool
has_ended(const struct wm_combine *combine)
{
	for (size_t i = 0; i < combine->sources_count; i++)
		if (combine->sources[i].has_ended)
			return true;
	return false;
}

static bool
decode_values(struct sources *sources, const struct sources_known *known, size_t count, struct wm_get *in)
{
	struct wm_err err;

	for (size_t i = 0; i < count && sources->common->source_column != NULL; i++) {
		size_t number;

		if (known[i].kind > WM_KIND_JSON ||
			!add_value(sources, known[i].name, (enum wm_kind)known[i].kind, sources->opened_us, &number,
				&err) ||
			number != i)
			return false;
	}
	return sources->combine.sources_count == count && wm_combine_decode(&sources->combine, in) &&
		!has_ended(&sources->combine) && decode_guards(sources, in);
}

struct sources_known *
sources_decode_known(struct wm_get *in, size_t *count)
{
	uint64_t known_count = wm_get_varint(in);

	/* A name takes two bytes at least. */
	if (in->failed || known_count > WM_SOURCES_MAX || known_count > wm_get_left(in) / 2)
		return NULL;
	struct sources_known *known = wm_calloc((size_t)known_count + 1, sizeof(known[0]));
	for (uint64_t i = 0; i < known_count; i++) {
		known[i].name = wm_get_span(in);
		known[i].kind = wm_get_u8(in);
	}
	*count = (size_t)known_count;
	if (!in->failed)
		return known;
	free(known);
	return NULL;
}

bool
sources_decode(struct sources *sources, struct wm_get *in)
{
	size_t count;
	struct sources_known *known = sources_decode_known(in, &count);

	if (known == NULL)
		return false;
	bool is_decoded = sources->files != NULL ? decode_files(sources, known, count, in)
						 : decode_values(sources, known, count, in);
	free(known);
	return is_decoded;
}
