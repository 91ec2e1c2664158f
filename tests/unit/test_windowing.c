#include "lib/op/windowing.h"

#include <stdlib.h>

#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

/*
 * The model: every record that was let in is kept with a flag for each of its windows that it reached, and
 * each advance works everything out anew from them. Values are small integers, so plain arithmetic is exact.
 */
#define RECORDS_MAX 80

struct model_record {
	int64_t time_us;
	int key; /* -1: null, 0: "", 1...: a letter */
	int64_t value;
	int64_t window_first, window_last; /* those that it reached: start = offset + number * slide */
	bool is_new;                       /* since the last advance */
};

struct model {
	int64_t size, slide, offset;
	enum wm_window_mode mode;
	int64_t watermark_us, highest;
	struct model_record records[RECORDS_MAX];
	size_t count;
	int64_t written_until; /* append: windows that end at or before this were written */
	struct wm_buf out;
};

static int64_t
floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* "start end key count sum max first last" of one window and key, if it has a record. */
static void
model_row(struct model *m, int64_t number, int key)
{
	int64_t count = 0, sum = 0, max = 0, first = 0, last = 0, first_time = 0, last_time = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct model_record *r = &m->records[i];

		if (r->key != key || number < r->window_first || number > r->window_last)
			continue;
		if (count == 0 || r->value > max)
			max = r->value;
		if (count == 0 || r->time_us < first_time) {
			first = r->value;
			first_time = r->time_us;
		}
		if (count == 0 || r->time_us >= last_time) {
			last = r->value;
			last_time = r->time_us;
		}
		sum += r->value;
		count++;
	}
	if (count == 0)
		return;
	wm_buf_addf(&m->out, "%lld %lld ", (long long)(m->offset + number * m->slide),
		(long long)(m->offset + number * m->slide + m->size));
	if (key < 0)
		wm_buf_add_text(&m->out, "-");
	else if (key > 0)
		wm_buf_addf(&m->out, "%c", 'a' + key);
	wm_buf_addf(&m->out, " %lld %lld %lld %lld %lld\n", (long long)count, (long long)sum, (long long)max,
		(long long)first, (long long)last);
}

static bool
model_is_touched(const struct model *m, int64_t number, int key)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct model_record *r = &m->records[i];

		if (r->is_new && r->key == key && number >= r->window_first && number <= r->window_last)
			return true;
	}
	return false;
}

static bool
model_add(struct model *m, int64_t time_us, int key, int64_t value, int64_t *missed)
{
	int64_t last = floor_div(time_us - m->offset, m->slide), first = last;

	while ((first - 1) * m->slide + m->offset + m->size > time_us)
		first--;
	int64_t open = first;
	while (m->mode != WM_MODE_COMPLETE && open <= last && open * m->slide + m->offset + m->size <= m->watermark_us)
		open++;
	*missed = open - first;
	if (time_us > m->highest)
		m->highest = time_us;
	if (open > last)
		return false;
	m->records[m->count++] = (struct model_record){ time_us, key, value, open, last, true };
	return true;
}

static void
model_advance(struct model *m, int64_t watermark_us)
{
	int64_t low = floor_div(-600 - m->size - m->offset, m->slide);
	int64_t high = floor_div(m->highest - m->offset, m->slide);

	if (watermark_us == WM_TIME_END && m->mode != WM_MODE_APPEND)
		return;
	if (watermark_us > m->watermark_us)
		m->watermark_us = watermark_us;
	for (int64_t number = low; number <= high; number++) {
		int64_t end = m->offset + number * m->slide + m->size;

		for (int key = -1; key < 5; key++) {
			if (m->mode == WM_MODE_COMPLETE ||
				(m->mode == WM_MODE_UPDATE && model_is_touched(m, number, key)) ||
				(m->mode == WM_MODE_APPEND && end <= m->watermark_us && end > m->written_until))
				model_row(m, number, key);
		}
	}
	m->written_until = m->watermark_us;
	for (size_t i = 0; i < m->count; i++)
		m->records[i].is_new = false;
}

/* The operator, printed in the same form. */
static void
drain(struct wm_windowing *w, const struct wm_agg *agg, size_t keys_count, struct wm_buf *out)
{
	struct wm_window_row row;

	while (wm_windowing_next(w, &row)) {
		const struct wm_value *key = &row.keys[keys_count - 1];

		wm_buf_addf(out, "%lld %lld ", (long long)row.window_start_us, (long long)row.window_end_us);
		if (key->kind == WM_KIND_NULL)
			wm_buf_add_text(out, "-");
		wm_buf_add(out, key->text.data, key->text.len);
		for (size_t i = 0; i < wm_agg_outputs_count(agg); i++) {
			wm_buf_add_byte(out, ' ');
			wm_agg_cell_print(agg, row.cell, i, 0, out);
		}
		wm_buf_add_byte(out, '\n');
	}
}

static enum wm_window_verdict
add(struct wm_windowing *w, int64_t watermark_us, const struct wm_value *keys, const struct wm_reading *readings,
	int64_t event_time_us, int64_t *missed)
{
	const struct wm_window_record record = { event_time_us, watermark_us, event_time_us, keys, readings };

	return wm_windowing_add(w, &record, missed);
}

static struct wm_windowing *
saved_and_loaded(struct wm_windowing *w, const struct wm_windows *windows, const struct wm_agg *agg, size_t keys_count,
	enum wm_window_mode mode)
{
	struct wm_windowing *back = wm_windowing_new(windows, agg, keys_count, mode, false);
	struct wm_buf bytes;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_windowing_encode(w, &bytes);
	wm_get_init(&in, wm_buf_span(&bytes));
	if (!wm_windowing_decode(back, &in) || wm_get_left(&in) != 0)
		tap_ok(false, "state decodes");
	wm_windowing_free(w);
	wm_buf_release(&bytes);
	return back;
}

/* One random stream through the operator and the model; false at the first difference. */
static bool
stream_agrees(uint64_t *seed, enum wm_window_mode mode, bool is_resumed)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,sum:v,max:v,first:v,last:v"), &err);
	static struct model m;
	struct wm_windows windows;
	struct wm_buf out;
	size_t keys_count = 1 + tap_random(seed) % 2;
	int64_t delay = (int64_t)(tap_random(seed) % 60), highest = -500;
	bool is_each = tap_random(seed) % 2 == 0, agrees = true;
	/* Without a watermark until the end, a tenth of the time. */
	bool has_watermark = tap_random(seed) % 10 != 0;
	int64_t watermark_us = WM_TIME_NONE;

	memset(&m, 0, sizeof(m));
	m.size = 1 + (int64_t)(tap_random(seed) % 60);
	m.slide = tap_random(seed) % 3 == 0 ? m.size : 1 + (int64_t)(tap_random(seed) % (uint64_t)m.size);
	m.offset = (int64_t)(tap_random(seed) % (uint64_t)m.slide);
	m.mode = mode;
	m.watermark_us = m.written_until = WM_TIME_NONE;
	m.highest = highest;
	wm_buf_init(&m.out, WM_BUF_UNBOUNDED);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_windows_init(&windows, m.size, m.slide, m.offset);
	struct wm_windowing *w = wm_windowing_new(&windows, agg, keys_count, mode, false);

	for (int i = 0; i < RECORDS_MAX && agrees; i++) {
		int64_t time_us = highest + (int64_t)(tap_random(seed) % 80) - 60, missed, model_missed;
		int key = (int)(tap_random(seed) % 6) - 1;
		int64_t value = (int64_t)(tap_random(seed) % 100);
		char letter[2] = { (char)('a' + key), 0 }, number[24];
		struct wm_value keys[2] = {
			{ wm_span_of("same"), WM_KIND_TEXT },
			{ wm_span(letter, key > 0), key < 0 ? WM_KIND_NULL : WM_KIND_TEXT },
		};
		struct wm_value field = { wm_span(number,
						  (size_t)snprintf(number, sizeof(number), "%lld", (long long)value)),
			WM_KIND_TEXT };
		struct wm_reading reading;

		if (tap_random(seed) % 30 == 0)
			time_us += 70;
		if (time_us > highest)
			highest = time_us;
		if (is_resumed && tap_random(seed) % 20 == 0)
			w = saved_and_loaded(w, &windows, agg, keys_count, mode);
		if (is_each && has_watermark) {
			watermark_us = highest - delay;
			/* The model advances with every record, the operator only when it is due. */
			if (wm_windowing_due_us(w) <= watermark_us) {
				wm_windowing_advance(w, watermark_us);
				drain(w, agg, keys_count, &out);
			}
			model_advance(&m, watermark_us);
		}
		wm_reading_take(&reading, &field);
		bool is_used =
			add(w, watermark_us, keys + 2 - keys_count, &reading, time_us, &missed) == WM_WINDOW_USED;
		agrees = is_used == model_add(&m, time_us, key, value, &model_missed) && missed == model_missed;
		if (!is_each && tap_random(seed) % 8 == 0) {
			watermark_us = has_watermark ? highest - delay : WM_TIME_NONE;
			wm_windowing_advance(w, watermark_us);
			drain(w, agg, keys_count, &out);
			model_advance(&m, watermark_us);
		}
		agrees = agrees && wm_span_equal(wm_buf_span(&out), wm_buf_span(&m.out));
	}
	if (!is_each || mode != WM_MODE_APPEND) {
		wm_windowing_advance(w, WM_TIME_NONE);
		drain(w, agg, keys_count, &out);
		model_advance(&m, WM_TIME_NONE);
	}
	uint64_t open_count = wm_windowing_open_count(w);
	size_t before = out.len;
	wm_windowing_advance(w, WM_TIME_END);
	drain(w, agg, keys_count, &out);
	model_advance(&m, WM_TIME_END);
	agrees = agrees && wm_span_equal(wm_buf_span(&out), wm_buf_span(&m.out));
	if (mode == WM_MODE_APPEND) {
		uint64_t lines = 0;

		for (size_t at = before; at < out.len; at++)
			lines += out.data[at] == '\n';
		agrees = agrees && lines == open_count;
	}
	if (!agrees)
		printf("# size %lld slide %lld offset %lld delay %lld\n# got\n%.*s# want\n%.*s", (long long)m.size,
			(long long)m.slide, (long long)m.offset, (long long)delay, (int)out.len, out.data,
			(int)m.out.len, m.out.data);
	wm_windowing_free(w);
	wm_agg_free(agg);
	wm_buf_release(&out);
	wm_buf_release(&m.out);
	return agrees;
}

static void
test_model(enum wm_window_mode mode, bool is_resumed, const char *name)
{
	uint64_t seed = 42;
	int streams = 0;

	while (streams < 100 && stream_agrees(&seed, mode, is_resumed))
		streams++;
	tap_int(streams, 100, name);
}

/* semantics.md: delay 10 minutes, windows of 10 minutes every 5; times in minutes of the day. */
static void
test_worked_example(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count"), &err);
	struct wm_windows windows;
	struct wm_buf out;
	int64_t missed;

	wm_windows_init(&windows, 10, 5, 0);
	struct wm_windowing *w = wm_windowing_new(&windows, agg, 1, WM_MODE_APPEND, false);
	struct wm_value dog = { wm_span_of("dog"), WM_KIND_TEXT }, cat = { wm_span_of("cat"), WM_KIND_TEXT };
	struct wm_value donkey = { wm_span_of("donkey"), WM_KIND_TEXT };
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	add(w, WM_TIME_NONE, &dog, NULL, 734, &missed);
	wm_windowing_advance(w, 724);
	drain(w, agg, 1, &out);
	tap_ok(add(w, 724, &cat, NULL, 729, &missed) == WM_WINDOW_USED && missed == 0,
		"the cat of 12:09 counts at watermark 12:04");
	tap_int(wm_windowing_due_us(w), 730, "12:00-12:10 is due at its end");
	wm_windowing_advance(w, 729);
	drain(w, agg, 1, &out);
	tap_int((int64_t)out.len, 0, "nothing is written before");
	wm_windowing_advance(w, 731);
	drain(w, agg, 1, &out);
	tap_span(wm_buf_span(&out), "720 730 cat 1\n", "12:00-12:10 is written at watermark 12:11");
	tap_ok(add(w, 731, &donkey, NULL, 724, &missed) == WM_WINDOW_LATE && missed == 2, "a donkey of 12:04 is late");
	wm_windowing_advance(w, WM_TIME_END);
	drain(w, agg, 1, &out);
	tap_span(wm_buf_span(&out), "720 730 cat 1\n725 735 cat 1\n725 735 dog 1\n730 740 dog 1\n",
		"once, and the rest");
	wm_windowing_free(w);
	wm_agg_free(agg);
	wm_buf_release(&out);
}

/* Every prefix and many corruptions of a state are refused or decoded, never more. */
static void
test_hostile_state(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,max:v"), &err);
	struct wm_windows windows;
	struct wm_value keys[2] = { { wm_span_of("k"), WM_KIND_TEXT }, { wm_span("", 0), WM_KIND_NULL } };
	struct wm_value field = { wm_span_of("a text that is too long for its cell"), WM_KIND_TEXT };
	struct wm_reading reading;
	struct wm_buf bytes;
	struct wm_get in;
	int64_t missed;
	uint64_t seed = 5;
	bool is_refused = true;

	wm_windows_init(&windows, 10, 5, 0);
	struct wm_windowing *w = wm_windowing_new(&windows, agg, 2, WM_MODE_UPDATE, false);
	wm_reading_take(&reading, &field);
	for (int64_t time_us = 0; time_us < 50; time_us += 7)
		add(w, WM_TIME_NONE, keys, &reading, time_us, &missed);
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_windowing_encode(w, &bytes);
	wm_windowing_free(w);
	for (size_t len = 0; len < bytes.len; len++) {
		w = wm_windowing_new(&windows, agg, 2, WM_MODE_UPDATE, false);
		wm_get_init(&in, wm_span(bytes.data, len));
		is_refused = is_refused && !wm_windowing_decode(w, &in);
		wm_windowing_free(w);
	}
	tap_ok(is_refused, "every state that is cut short is refused");
	for (int i = 0; i < 3000; i++) {
		size_t at = tap_random(&seed) % bytes.len;
		char kept = bytes.data[at];

		bytes.data[at] = (char)tap_random(&seed);
		w = wm_windowing_new(&windows, agg, 2, WM_MODE_UPDATE, false);
		wm_get_init(&in, wm_buf_span(&bytes));
		if (wm_windowing_decode(w, &in))
			wm_windowing_open_count(w);
		wm_windowing_free(w);
		bytes.data[at] = kept;
	}
	tap_ok(true, "3000 corrupt states end in nothing worse than a refusal");
	wm_agg_free(agg);
	wm_buf_release(&bytes);
}

int
main(void)
{
	test_worked_example();
	test_model(WM_MODE_APPEND, false, "append: 100 random streams as the model");
	test_model(WM_MODE_UPDATE, false, "update: 100 random streams as the model");
	test_model(WM_MODE_COMPLETE, false, "complete: 100 random streams as the model");
	test_model(WM_MODE_APPEND, true, "append, saved and loaded in between");
	test_model(WM_MODE_UPDATE, true, "update, saved and loaded in between");
	test_model(WM_MODE_COMPLETE, true, "complete, saved and loaded in between");
	test_hostile_state();
	return tap_done();
}
