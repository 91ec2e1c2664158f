#include "lib/event/trigger.h"

void
wm_trigger_init(struct wm_trigger *trigger, enum wm_trigger_kind kind)
{
	*trigger = (struct wm_trigger){ .kind = kind };
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
wm_trigger_join(struct wm_trigger *trigger, const struct wm_value *value)
{
	if (value != NULL && !trigger->is_open) {
		trigger->value_kind = value->kind;
		wm_buf_reset(&trigger->value);
		wm_buf_add(&trigger->value, value->text.data, value->text.len);
	}
	trigger->is_open = true;
}

void
wm_trigger_end(struct wm_trigger *trigger)
{
	trigger->is_open = false;
}

void
wm_trigger_encode(const struct wm_trigger *trigger, struct wm_buf *out)
{
	wm_put_u8(out, trigger->is_open);
	wm_put_u8(out, (uint8_t)trigger->value_kind);
	wm_put_span(out, wm_buf_span(&trigger->value));
}

bool
wm_trigger_decode(struct wm_trigger *trigger, struct wm_get *in)
{
	bool is_open = wm_get_u8(in) != 0;
	uint8_t value_kind = wm_get_u8(in);
	struct wm_span value = wm_get_span(in);

	if (in->failed || value_kind > WM_KIND_JSON)
		return false;
	trigger->is_open = is_open;
	trigger->value_kind = (enum wm_kind)value_kind;
	wm_buf_reset(&trigger->value);
	wm_buf_add(&trigger->value, value.data, value.len);
	return true;
}
