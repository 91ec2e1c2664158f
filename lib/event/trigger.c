/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/trigger.h"

#include "lib/time/civil.h"
#include "lib/time/duration.h"

void
wm_trigger_init(struct wm_trigger *trigger, enum wm_trigger_kind kind, uint64_t rows_max, int64_t period_us)
{
	*trigger = (struct wm_trigger){
		.kind = kind,
		.rows_max = rows_max,
		.period_us = period_us,
		.multiple = INT64_MIN,
	};
	wm_buf_init(&trigger->value, WM_BUF_UNBOUNDED);
}

void
wm_trigger_release(struct wm_trigger *trigger)
{
	wm_buf_release(&trigger->value);
}

bool
wm_trigger_begins_batch(const struct wm_trigger *trigger, const struct wm_value *value)
{
	return trigger->is_open &&
		(trigger->value_kind != value->kind || !wm_span_equal(wm_buf_span(&trigger->value), value->text));
}

void
wm_trigger_join(struct wm_trigger *trigger, const struct wm_value *value, int64_t now_us)
{
	if (!trigger->is_open) {
		trigger->is_open = true;
		trigger->began_us = now_us;
		if (trigger->kind == WM_TRIGGER_COLUMN) {
			trigger->value_kind = value->kind;
			wm_buf_reset(&trigger->value);
			wm_buf_add(&trigger->value, value->text.data, value->text.len);
		}
	}
	trigger->rows++;
}

bool
wm_trigger_enters(struct wm_trigger *trigger, int64_t highest_time_us)
{
	int64_t multiple = wm_floor_div(highest_time_us, trigger->period_us);
	bool enters = trigger->multiple != INT64_MIN && multiple > trigger->multiple;

	trigger->multiple = multiple;
	return enters;
}

int64_t
wm_trigger_due_us(const struct wm_trigger *trigger)
{
	if (trigger->kind != WM_TRIGGER_WALL || !trigger->is_open)
		return INT64_MAX;
	return wm_time_add(trigger->began_us, trigger->period_us);
}

void
wm_trigger_end(struct wm_trigger *trigger)
{
	trigger->is_open = false;
	trigger->rows = 0;
}

/* The clock is no state: a batch of wall time that goes on after a restart begins anew. */
void
wm_trigger_encode(const struct wm_trigger *trigger, struct wm_buf *out)
{
	wm_put_u8(out, trigger->is_open);
	wm_put_u64(out, trigger->rows);
	wm_put_i64(out, trigger->multiple);
	wm_put_u8(out, (uint8_t)trigger->value_kind);
	wm_put_span(out, wm_buf_span(&trigger->value));
}

bool
wm_trigger_decode(struct wm_trigger *trigger, struct wm_get *in)
{
	bool is_open = wm_get_u8(in) != 0;
	uint64_t rows = wm_get_u64(in);
	int64_t multiple = wm_get_i64(in);
	uint8_t value_kind = wm_get_u8(in);
	struct wm_span value = wm_get_span(in);

	if (in->failed || value_kind > WM_KIND_JSON)
		return false;
	trigger->is_open = is_open;
	trigger->rows = rows;
	trigger->multiple = multiple;
	trigger->value_kind = (enum wm_kind)value_kind;
	wm_buf_reset(&trigger->value);
	wm_buf_add(&trigger->value, value.data, value.len);
	return true;
}
