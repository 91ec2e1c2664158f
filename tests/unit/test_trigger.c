/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event/trigger.h"

#include "tests/unit/tap.h"

static struct wm_value
value(const char *text, enum wm_kind kind)
{
	return (struct wm_value){ wm_span_of(text), kind };
}

static struct wm_trigger
saved_and_loaded(struct wm_trigger *trigger)
{
	struct wm_trigger back;
	struct wm_buf bytes;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_trigger_encode(trigger, &bytes);
	wm_trigger_init(&back, trigger->kind, trigger->rows_max, trigger->period_us);
	wm_get_init(&in, wm_span(bytes.data, bytes.len - 1));
	tap_ok(!wm_trigger_decode(&back, &in), "too few bytes are refused");
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(wm_trigger_decode(&back, &in) && wm_get_left(&in) == 0, "a whole state is not");
	wm_buf_release(&bytes);
	return back;
}

static void
test_column(void)
{
	struct wm_value one = value("1", WM_KIND_TEXT), two = value("2", WM_KIND_TEXT),
			number = value("1", WM_KIND_NUMBER);
	struct wm_trigger trigger;

	wm_trigger_init(&trigger, WM_TRIGGER_COLUMN, 0, 0);
	tap_ok(!wm_trigger_begins_batch(&trigger, &one), "the first record ends no batch");
	wm_trigger_join(&trigger, &one, 0);
	tap_ok(!wm_trigger_begins_batch(&trigger, &one), "the same value goes on");
	tap_ok(wm_trigger_begins_batch(&trigger, &two), "another one ends it");
	tap_ok(wm_trigger_begins_batch(&trigger, &number), "so does another kind of the same text");

	struct wm_trigger back = saved_and_loaded(&trigger);
	tap_ok(!wm_trigger_begins_batch(&back, &one) && wm_trigger_begins_batch(&back, &two),
		"the open batch is loaded");
	wm_trigger_release(&back);
	wm_trigger_end(&trigger);
	tap_ok(!wm_trigger_begins_batch(&trigger, &two), "after its end any value begins the next");
	wm_trigger_join(&trigger, &two, 0);
	tap_ok(wm_trigger_begins_batch(&trigger, &one), "and that one has its own value");
	wm_trigger_release(&trigger);
}

static void
test_rows(void)
{
	struct wm_trigger trigger;

	wm_trigger_init(&trigger, WM_TRIGGER_ROWS, 3, 0);
	for (int i = 1; i <= 2; i++)
		wm_trigger_join(&trigger, NULL, 0);
	tap_ok(!wm_trigger_is_full(&trigger), "two of three records");
	struct wm_trigger back = saved_and_loaded(&trigger);
	wm_trigger_join(&back, NULL, 0);
	tap_ok(wm_trigger_is_full(&back), "three of three, one of them after loading");
	wm_trigger_end(&back);
	tap_ok(!wm_trigger_is_full(&back), "the next batch begins empty");
	wm_trigger_release(&back);
	wm_trigger_release(&trigger);
}

static void
test_event(void)
{
	struct wm_trigger trigger;

	wm_trigger_init(&trigger, WM_TRIGGER_EVENT, 0, 10);
	tap_ok(!wm_trigger_enters(&trigger, -15), "the first record enters no new multiple");
	tap_ok(!wm_trigger_enters(&trigger, -11), "-11 is in [-20, -10) as -15 is");
	tap_ok(wm_trigger_enters(&trigger, -10), "-10 is in the next");
	tap_ok(!wm_trigger_enters(&trigger, -1), "-1 too");
	tap_ok(wm_trigger_enters(&trigger, 0), "0 is not");
	tap_ok(wm_trigger_enters(&trigger, 99), "several at once are one step");
	struct wm_trigger back = saved_and_loaded(&trigger);
	tap_ok(!wm_trigger_enters(&back, 99) && wm_trigger_enters(&back, 100), "the multiple is loaded");
	wm_trigger_release(&back);
	wm_trigger_release(&trigger);
}

static void
test_wall(void)
{
	struct wm_trigger trigger;

	wm_trigger_init(&trigger, WM_TRIGGER_WALL, 0, 10);
	tap_ok(wm_trigger_due_us(&trigger) == INT64_MAX, "without a record nothing is due");
	wm_trigger_join(&trigger, NULL, 1000);
	wm_trigger_join(&trigger, NULL, 1009);
	tap_int(wm_trigger_due_us(&trigger), 1010, "a batch lasts from its first record on");
	wm_trigger_end(&trigger);
	tap_ok(wm_trigger_due_us(&trigger) == INT64_MAX, "until its end");
	wm_trigger_release(&trigger);
}

int
main(void)
{
	test_column();
	test_rows();
	test_event();
	test_wall();
	return tap_done();
}
