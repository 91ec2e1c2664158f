#include "lib/event/trigger.h"

#include "tests/unit/tap.h"

static struct wm_value
value(const char *text, enum wm_kind kind)
{
	return (struct wm_value){ wm_span_of(text), kind };
}

int
main(void)
{
	struct wm_value one = value("1", WM_KIND_TEXT), two = value("2", WM_KIND_TEXT),
			number = value("1", WM_KIND_NUMBER);
	struct wm_trigger trigger, back;
	struct wm_buf bytes;
	struct wm_get in;

	wm_trigger_init(&trigger, WM_TRIGGER_COLUMN);
	tap_ok(!wm_trigger_begins_batch(&trigger, &one), "the first record ends no batch");
	wm_trigger_join(&trigger, &one);
	tap_ok(!wm_trigger_begins_batch(&trigger, &one), "the same value goes on");
	tap_ok(wm_trigger_begins_batch(&trigger, &two), "another one ends it");
	tap_ok(wm_trigger_begins_batch(&trigger, &number), "so does another kind of the same text");

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_trigger_encode(&trigger, &bytes);
	wm_trigger_init(&back, WM_TRIGGER_COLUMN);
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(wm_trigger_decode(&back, &in) && wm_get_left(&in) == 0, "decodes");
	tap_ok(!wm_trigger_begins_batch(&back, &one) && wm_trigger_begins_batch(&back, &two), "to the same open batch");
	wm_get_init(&in, wm_span(bytes.data, bytes.len - 1));
	tap_ok(!wm_trigger_decode(&back, &in), "too few bytes are refused");

	wm_trigger_end(&trigger);
	tap_ok(!wm_trigger_begins_batch(&trigger, &two), "after its end any value begins the next");
	wm_trigger_join(&trigger, &two);
	tap_ok(wm_trigger_begins_batch(&trigger, &one), "and that one has its own value");
	wm_buf_release(&bytes);
	wm_trigger_release(&trigger);
	wm_trigger_release(&back);
	return tap_done();
}
