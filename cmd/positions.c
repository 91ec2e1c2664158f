/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/positions.h"

#include <stdlib.h>

#include "cmd/sources.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/record/record.h"

/* Room in a table's value for a place, in the multiple of 16 that tables want. */
#define PLACE_BYTES 16

static const struct wm_value no_name = { { "", 0 }, WM_KIND_NULL };

void
positions_init(struct positions *positions)
{
	*positions = (struct positions){ 0 };
	wm_table_init(&positions->numbers, PLACE_BYTES);
}

void
positions_release(struct positions *positions)
{
	for (size_t i = 0; i < positions->count; i++)
		wm_buf_release(&positions->list[i].value);
	free(positions->list);
	wm_table_release(&positions->numbers);
	*positions = (struct positions){ 0 };
}

void
positions_forget(struct positions *positions)
{
	uint64_t skipped = positions->skipped;

	positions_release(positions);
	positions_init(positions);
	positions->skipped = skipped;
}

/* That of a source, which is put in if it is new. */
static struct position *
find(struct positions *positions, const struct wm_value *source)
{
	bool is_new;
	uint8_t kind = (uint8_t)sources_kind(source);
	struct wm_entry *entry = wm_table_put(&positions->numbers, source->text, kind, &is_new);
	size_t *place = wm_entry_value(entry);

	if (is_new) {
		positions->list =
			wm_grown(positions->list, positions->count, &positions->capacity, sizeof(positions->list[0]));
		*place = positions->count++;
		positions->list[*place] = (struct position){ .source = wm_entry_key(entry), .kind = kind };
		wm_buf_init(&positions->list[*place].value, WM_BUF_UNBOUNDED);
	}
	return &positions->list[*place];
}

static void
set(struct position *position, struct wm_span value)
{
	position->is_behind = false;
	wm_buf_reset(&position->value);
	wm_buf_add(&position->value, value.data, value.len);
}

/* Whether a position is not behind another. */
static bool
is_up_to(const struct wm_value *value, struct wm_span before)
{
	struct wm_value other = { before, WM_KIND_TEXT };
	struct wm_reading a, b;

	wm_reading_take(&a, value);
	wm_reading_take(&b, &other);
	if (a.is_number && b.is_number)
		return wm_decimal_compare(&a.number, value->text, &b.number, before) <= 0;
	return wm_span_equal(value->text, before);
}

bool
positions_pass(struct positions *positions, const struct wm_value *source, const struct wm_value *value)
{
	if (wm_value_is_empty(value))
		return true;
	struct position *position = find(positions, source == NULL ? &no_name : source);
	if (position->is_behind && is_up_to(value, wm_buf_span(&position->value))) {
		positions->skipped++;
		return false;
	}
	set(position, value->text);
	return true;
}

void
positions_expect(struct positions *positions)
{
	for (size_t i = 0; i < positions->count; i++)
		positions->list[i].is_behind = true;
}

struct wm_span
positions_alone(const struct positions *positions)
{
	return positions->count == 0 ? wm_span("", 0) : wm_buf_span(&positions->list[0].value);
}

void
positions_set_alone(struct positions *positions, struct wm_span value)
{
	if (value.len != 0)
		set(find(positions, &no_name), value);
}

void
positions_encode(const struct positions *positions, struct wm_buf *out)
{
	for (size_t i = 0; i < positions->count; i++) {
		wm_put_span(out, positions->list[i].source);
		wm_put_u8(out, positions->list[i].kind);
		wm_put_span(out, wm_buf_span(&positions->list[i].value));
	}
}

bool
positions_next(struct wm_get *in, struct wm_value *source, struct wm_span *value)
{
	if (in->failed || wm_get_left(in) == 0)
		return false;
	source->text = wm_get_span(in);
	uint8_t kind = wm_get_u8(in);
	*value = wm_get_span(in);
	if (kind > WM_KIND_JSON || value->len == 0)
		wm_get_fail(in);
	source->kind = (enum wm_kind)kind;
	return !in->failed;
}

bool
positions_decode(struct positions *positions, struct wm_span bytes)
{
	struct wm_value source;
	struct wm_span value;
	struct wm_get in;

	wm_get_init(&in, bytes);
	while (positions_next(&in, &source, &value))
		set(find(positions, &source), value);
	return !in.failed;
}
