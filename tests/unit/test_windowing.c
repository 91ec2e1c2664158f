/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/windowing.h"

#include <stdlib.h>

#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

/*
 * The model: every record that was let in is kept with the windows that it reached, and each advance works
 * everything out anew from them, window by window and key by key. Values are small integers, so plain arithmetic is exact.
 */
#define RECORDS_MAX 80
#define KEYS 6 /* null, "", and letters */

/* What a stream is run with. */
struct setup {
	enum wm_window_mode mode;
	struct wm_pane_options panes;
	bool is_cumulating;
	bool has_fill, has_previous;
	bool is_resumed;    /* saved and loaded in between */
	bool is_plain_size; /* windows that are disjoint */
};

struct model_record {
	int64_t time_us;
	int key; /* index: 0: null, 1: "", 2...: a letter */
	int64_t value;
	int64_t window_first, window_last; /* those that it reached */
	bool is_new;                       /* since the last advance */
};

/* A window and key. */
struct model_pane {
	uint64_t count;
	size_t records; /* how many the model had at the last pane: those behind are new */
};

#define NUMBER_BASE 1500
#define NUMBERS 4000

struct model {
	const struct setup *setup;
	int64_t size, slide, offset;
	int64_t watermark_us, highest;
	struct model_record records[RECORDS_MAX];
	size_t count;
	struct model_pane panes[NUMBERS][KEYS]; /* by window number + NUMBER_BASE */
	int64_t multiple;
	bool has_multiple, is_period_due;
	bool has_last[KEYS]; /* fill: the window of each key that was written last */
	int64_t last[KEYS];
	struct wm_buf out;
};

static int64_t
floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static int64_t
start_of(const struct model *m, int64_t number)
{
	if (m->setup->is_cumulating)
		return m->offset + floor_div(number * m->slide, m->size) * m->size;
	return m->offset + number * m->slide;
}

static int64_t
end_of(const struct model *m, int64_t number)
{
	return m->setup->is_cumulating ? m->offset + (number + 1) * m->slide : start_of(m, number) + m->size;
}

/* " count sum max first last" of the records of a window and key, from one on. */
static void
model_values(struct model *m, int64_t number, int key, size_t from)
{
	int64_t count = 0, sum = 0, max = 0, first = 0, last = 0, first_time = 0, last_time = 0;

	for (size_t i = from; i < m->count; i++) {
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
		wm_buf_add_text(&m->out, " 0    ");
	else
		wm_buf_addf(&m->out, " %lld %lld %lld %lld %lld", (long long)count, (long long)sum, (long long)max,
			(long long)first, (long long)last);
}

static void
model_window(struct model *m, int64_t number, int key)
{
	wm_buf_addf(&m->out, "%lld %lld ", (long long)start_of(m, number), (long long)end_of(m, number));
	if (key == 0)
		wm_buf_add_text(&m->out, "-");
	else if (key > 1)
		wm_buf_addf(&m->out, "%c", 'a' + key - 1);
}

static void
model_pane(struct model *m, int64_t number, int key, enum wm_pane_timing timing)
{
	struct model_pane *pane = &m->panes[number + NUMBER_BASE][key];

	model_window(m, number, key);
	model_values(m, number, key, m->setup->panes.is_discarding ? pane->records : 0);
	if (wm_pane_options_many(&m->setup->panes) && m->setup->mode == WM_MODE_APPEND)
		wm_buf_addf(&m->out, " %s %d", wm_pane_timing_name(timing), (int)pane->count);
	wm_buf_add_byte(&m->out, '\n');
	pane->count++;
	pane->records = m->count;
}

/* Records of a window and key from one on, in all or only those that are new. */
static uint64_t
model_records(const struct model *m, int64_t number, int key, size_t from, bool only_new)
{
	uint64_t count = 0;

	for (size_t i = from; i < m->count; i++) {
		const struct model_record *r = &m->records[i];

		count += r->key == key && number >= r->window_first && number <= r->window_last &&
			(r->is_new || !only_new);
	}
	return count;
}

static bool
model_add(struct model *m, int64_t time_us, int key, int64_t value, int64_t *missed)
{
	int64_t last = floor_div(time_us - m->offset, m->slide), first = last;
	int64_t period = m->setup->panes.early_period_us;

	if (m->setup->is_cumulating)
		while (start_of(m, last + 1) == start_of(m, first))
			last++;
	else
		while (end_of(m, first - 1) > time_us)
			first--;
	int64_t open = first;
	while (m->setup->mode != WM_MODE_COMPLETE && open <= last &&
		end_of(m, open) + m->setup->panes.allowed_lateness_us <= m->watermark_us)
		open++;
	*missed = open - first;
	if (time_us > m->highest)
		m->highest = time_us;
	if (period != 0) {
		int64_t multiple = floor_div(m->highest, period);

		m->is_period_due = m->is_period_due || (m->has_multiple && multiple > m->multiple);
		m->multiple = multiple;
		m->has_multiple = true;
	}
	if (open > last)
		return false;
	m->records[m->count++] = (struct model_record){ time_us, key, value, open, last, true };
	return true;
}

/* What an advance of the watermark writes of one window and key. */
static void
model_write(struct model *m, int64_t number, int key, int64_t watermark_us)
{
	const struct wm_pane_options *options = &m->setup->panes;
	int64_t end = end_of(m, number);
	bool was_complete = end <= m->watermark_us;

	if (m->setup->mode != WM_MODE_APPEND) {
		if (model_records(m, number, key, 0, m->setup->mode == WM_MODE_UPDATE) != 0)
			model_pane(m, number, key, WM_PANE_ON_TIME);
		return;
	}
	uint64_t rows = model_records(m, number, key, m->panes[number + NUMBER_BASE][key].records, false);
	if (was_complete && rows != 0)
		model_pane(m, number, key, WM_PANE_LATE);
	if (was_complete)
		return;
	if (rows != 0 && ((options->early_rows != 0 && rows >= options->early_rows) || m->is_period_due))
		model_pane(m, number, key, WM_PANE_EARLY);
	if (end <= watermark_us && model_records(m, number, key, 0, false) != 0)
		model_pane(m, number, key, WM_PANE_ON_TIME);
}

/* With fill: whether an empty window lies between two of its key, the later of which is written now. */
static void
model_fill(struct model *m, int64_t number, int key, int64_t high, int64_t watermark_us)
{
	bool is_between = false;

	if (model_records(m, number, key, 0, false) != 0) {
		if (end_of(m, number) <= watermark_us && (!m->has_last[key] || number > m->last[key])) {
			m->last[key] = number;
			m->has_last[key] = true;
		}
		return;
	}
	if (!m->has_last[key] || number < m->last[key])
		return;
	for (int64_t later = number + 1; later <= high; later++)
		is_between = is_between ||
			(end_of(m, later) <= watermark_us && end_of(m, later) > m->watermark_us &&
				model_records(m, later, key, 0, false) != 0);
	if (!is_between)
		return;
	model_window(m, number, key);
	if (m->setup->has_previous)
		model_values(m, m->last[key], key, 0);
	wm_buf_add_text(&m->out, " fill\n");
}

static void
model_advance(struct model *m, int64_t watermark_us)
{
	bool is_flush = watermark_us == WM_TIME_END && m->setup->mode != WM_MODE_APPEND;
	int64_t low = INT64_MAX, high = INT64_MIN;

	for (size_t i = 0; i < m->count; i++) {
		low = m->records[i].window_first < low ? m->records[i].window_first : low;
		high = m->records[i].window_last > high ? m->records[i].window_last : high;
	}
	if (watermark_us < m->watermark_us)
		watermark_us = m->watermark_us;
	for (int64_t number = low; number <= high && !is_flush; number++) {
		/* Of windows that are gone nothing is to be said. */
		if (m->setup->mode == WM_MODE_APPEND && !m->setup->has_fill &&
			end_of(m, number) + m->setup->panes.allowed_lateness_us <= m->watermark_us)
			continue;
		for (int key = 0; key < KEYS; key++) {
			model_write(m, number, key, watermark_us);
			if (m->setup->has_fill)
				model_fill(m, number, key, high, watermark_us);
		}
	}
	if (!is_flush)
		m->watermark_us = watermark_us;
	m->is_period_due = false;
	for (size_t i = 0; i < m->count; i++)
		m->records[i].is_new = false;
}

/* The operator, printed in the same form. */
static void
drain(struct wm_windowing *w, const struct wm_agg *agg, size_t keys_count, bool has_panes, struct wm_buf *out)
{
	struct wm_window_row row;

	while (wm_windowing_next(w, &row)) {
		const struct wm_value *key = &row.keys[keys_count - 1];

		wm_buf_addf(out, "%lld %lld ", (long long)row.window_start_us, (long long)row.window_end_us);
		if (key->kind == WM_KIND_NULL)
			wm_buf_add_text(out, "-");
		wm_buf_add(out, key->text.data, key->text.len);
		for (size_t i = 0; row.cell != NULL && i < wm_agg_outputs_count(agg); i++) {
			wm_buf_add_byte(out, ' ');
			wm_agg_cell_print(agg, row.cell, i, 0, out);
		}
		if (row.is_filler)
			wm_buf_add_text(out, " fill");
		if (has_panes)
			wm_buf_addf(out, " %s %d", wm_pane_timing_name(row.pane), (int)row.pane_index);
		wm_buf_add_byte(out, '\n');
	}
}

/* False if something is due still. */
static bool
advance(struct wm_windowing *w, int64_t watermark_us, const struct wm_agg *agg, size_t keys_count, bool has_panes,
	struct wm_buf *out)
{
	wm_windowing_advance(w, watermark_us);
	drain(w, agg, keys_count, has_panes, out);
	return watermark_us == WM_TIME_END || wm_windowing_due_us(w) > watermark_us;
}

static enum wm_window_verdict
add(struct wm_windowing *w, int64_t watermark_us, int64_t highest, const struct wm_value *keys,
	const struct wm_reading *readings, int64_t event_time_us, int64_t *missed)
{
	const struct wm_window_record record = { event_time_us, watermark_us, highest, keys, readings };

	return wm_windowing_add(w, &record, missed);
}

static struct wm_windowing *
new_operator(const struct setup *setup, const struct wm_windows *windows, const struct wm_agg *agg, size_t keys_count)
{
	struct wm_windowing *w = wm_windowing_new(windows, agg, keys_count, setup->mode, &setup->panes, false);

	if (setup->has_fill)
		wm_windowing_fill(w, setup->has_previous);
	return w;
}

static struct wm_windowing *
saved_and_loaded(struct wm_windowing *w, const struct setup *setup, const struct wm_windows *windows,
	const struct wm_agg *agg, size_t keys_count)
{
	struct wm_windowing *back = new_operator(setup, windows, agg, keys_count);
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

/* Windows of random measures for a model and an operator. */
static void
random_windows(uint64_t *seed, struct model *m, struct wm_windows *windows)
{
	const struct setup *setup = m->setup;

	m->size = 1 + (int64_t)(tap_random(seed) % 60);
	m->slide = tap_random(seed) % 3 == 0 || setup->is_plain_size
		? m->size
		: 1 + (int64_t)(tap_random(seed) % (uint64_t)m->size);
	if (setup->is_cumulating) {
		m->slide = 1 + (int64_t)(tap_random(seed) % 20);
		m->size = m->slide * (1 + (int64_t)(tap_random(seed) % 5));
	}
	m->offset = (int64_t)(tap_random(seed) % (uint64_t)(setup->is_cumulating ? m->size : m->slide));
	if (setup->is_cumulating)
		wm_windows_init_cumulating(windows, m->size, m->slide, m->offset);
	else
		wm_windows_init(windows, m->size, m->slide, m->offset);
}

/* One random stream through the operator and the model; false at the first difference. */
static bool
stream_agrees(uint64_t *seed, struct setup *setup)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,sum:v,max:v,first:v,last:v"), &err);
	static struct model m;
	struct wm_windows windows;
	struct wm_buf out;
	size_t keys_count = 1 + tap_random(seed) % 2;
	int64_t delay = (int64_t)(tap_random(seed) % 60), highest = -500;
	bool is_each = tap_random(seed) % 2 == 0, agrees = true, is_done = true;
	/* Without a watermark until the end, a tenth of the time. */
	bool has_watermark = tap_random(seed) % 10 != 0;
	bool has_panes = setup->mode == WM_MODE_APPEND && wm_pane_options_many(&setup->panes);
	int64_t watermark_us = WM_TIME_NONE;

	memset(&m, 0, sizeof(m));
	m.setup = setup;
	m.watermark_us = WM_TIME_NONE;
	m.highest = highest;
	random_windows(seed, &m, &windows);
	wm_buf_init(&m.out, WM_BUF_UNBOUNDED);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	struct wm_windowing *w = new_operator(setup, &windows, agg, keys_count);

	for (int i = 0; i < RECORDS_MAX && agrees; i++) {
		int64_t time_us = highest + (int64_t)(tap_random(seed) % 80) - 60, missed, model_missed;
		int key = (int)(tap_random(seed) % KEYS);
		int64_t value = (int64_t)(tap_random(seed) % 100);
		char letter[2] = { (char)('a' + key - 1), 0 }, number[24];
		struct wm_value keys[2] = {
			{ wm_span_of("same"), WM_KIND_TEXT },
			{ wm_span(letter, key > 1), key == 0 ? WM_KIND_NULL : WM_KIND_TEXT },
		};
		struct wm_value field = { wm_span(number,
						  (size_t)snprintf(number, sizeof(number), "%lld", (long long)value)),
			WM_KIND_TEXT };
		struct wm_reading reading;

		if (tap_random(seed) % 30 == 0)
			time_us += 70;
		if (time_us > highest)
			highest = time_us;
		if (setup->is_resumed && tap_random(seed) % 5 == 0)
			w = saved_and_loaded(w, setup, &windows, agg, keys_count);
		if (is_each && has_watermark) {
			watermark_us = highest - delay;
			/* The model advances with every record, the operator only when it is due. */
			if (wm_windowing_due_us(w) <= watermark_us)
				is_done = advance(w, watermark_us, agg, keys_count, has_panes, &out) && is_done;
			model_advance(&m, watermark_us);
		}
		wm_reading_take(&reading, &field);
		bool is_used = add(w, watermark_us, highest, keys + 2 - keys_count, &reading, time_us, &missed) ==
			WM_WINDOW_USED;
		agrees = is_used == model_add(&m, time_us, key, value, &model_missed) && missed == model_missed;
		/* Saved with panes that wait, too. */
		if (setup->is_resumed && tap_random(seed) % 5 == 0)
			w = saved_and_loaded(w, setup, &windows, agg, keys_count);
		if (is_each && has_panes) {
			if (wm_windowing_due_us(w) == WM_TIME_NONE)
				is_done = advance(w, watermark_us, agg, keys_count, has_panes, &out) && is_done;
			model_advance(&m, watermark_us);
		}
		if (!is_each && tap_random(seed) % 8 == 0) {
			watermark_us = has_watermark ? highest - delay : WM_TIME_NONE;
			is_done = advance(w, watermark_us, agg, keys_count, has_panes, &out) && is_done;
			model_advance(&m, watermark_us);
		}
		agrees = agrees && wm_span_equal(wm_buf_span(&out), wm_buf_span(&m.out));
	}
	if (!is_each || setup->mode != WM_MODE_APPEND) {
		is_done = advance(w, WM_TIME_NONE, agg, keys_count, has_panes, &out) && is_done;
		model_advance(&m, WM_TIME_NONE);
	}
	uint64_t open_count = wm_windowing_open_count(w);
	size_t before = out.len;
	is_done = advance(w, WM_TIME_END, agg, keys_count, has_panes, &out) && is_done;
	model_advance(&m, WM_TIME_END);
	agrees = agrees && wm_span_equal(wm_buf_span(&out), wm_buf_span(&m.out));
	if (setup->mode == WM_MODE_APPEND && !setup->has_fill) {
		uint64_t lines = 0;

		for (size_t at = before; at < out.len; at++)
			lines += out.data[at] == '\n';
		agrees = agrees && lines == open_count;
	}
	if (setup->mode != WM_MODE_COMPLETE)
		agrees = agrees && wm_windowing_counts(w).groups == 0;
	if (!is_done)
		printf("# an advance has left something that is due\n");
	agrees = agrees && is_done;
	if (!agrees)
		printf("# size %lld slide %lld offset %lld delay %lld lateness %lld rows %d period %lld %s\n# "
		       "got\n%.*s# want\n%.*s",
			(long long)m.size, (long long)m.slide, (long long)m.offset, (long long)delay,
			(long long)setup->panes.allowed_lateness_us, (int)setup->panes.early_rows,
			(long long)setup->panes.early_period_us, setup->panes.is_discarding ? "discarding" : "",
			(int)out.len, out.data, (int)m.out.len, m.out.data);
	wm_windowing_free(w);
	wm_agg_free(agg);
	wm_buf_release(&out);
	wm_buf_release(&m.out);
	return agrees;
}

static void
test_model(struct setup setup, const char *name)
{
	uint64_t seed = 42;
	int streams = 0;

	while (streams < 60 && stream_agrees(&seed, &setup))
		streams++;
	tap_int(streams, 60, name);
}

/* Panes of each kind at once, as the random numbers have it. */
static void
test_panes(bool is_cumulating, bool is_plain_size, bool is_resumed, const char *name)
{
	uint64_t seed = 7;
	int streams = 0;
	bool agrees = true;

	for (; streams < 150 && agrees; streams += agrees) {
		struct setup setup = { .is_cumulating = is_cumulating,
			.is_resumed = is_resumed,
			.is_plain_size = is_plain_size,
			.mode = WM_MODE_APPEND };

		setup.panes.is_discarding = tap_random(&seed) % 2 == 0;
		if (tap_random(&seed) % 4 != 0)
			setup.panes.allowed_lateness_us = (int64_t)(tap_random(&seed) % 80);
		if (tap_random(&seed) % 3 == 0)
			setup.panes.early_rows = 1 + tap_random(&seed) % 3;
		else if (tap_random(&seed) % 2 == 0)
			setup.panes.early_period_us = 1 + (int64_t)(tap_random(&seed) % 40);
		agrees = stream_agrees(&seed, &setup);
	}
	tap_int(streams, 150, name);
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
	struct wm_windowing *w = wm_windowing_new(&windows, agg, 1, WM_MODE_APPEND, NULL, false);
	struct wm_value dog = { wm_span_of("dog"), WM_KIND_TEXT }, cat = { wm_span_of("cat"), WM_KIND_TEXT };
	struct wm_value donkey = { wm_span_of("donkey"), WM_KIND_TEXT };
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	add(w, WM_TIME_NONE, 734, &dog, NULL, 734, &missed);
	wm_windowing_advance(w, 724);
	drain(w, agg, 1, false, &out);
	tap_ok(add(w, 724, 729, &cat, NULL, 729, &missed) == WM_WINDOW_USED && missed == 0,
		"the cat of 12:09 counts at watermark 12:04");
	tap_int(wm_windowing_due_us(w), 730, "12:00-12:10 is due at its end");
	wm_windowing_advance(w, 729);
	drain(w, agg, 1, false, &out);
	tap_int((int64_t)out.len, 0, "nothing is written before");
	wm_windowing_advance(w, 731);
	drain(w, agg, 1, false, &out);
	tap_span(wm_buf_span(&out), "720 730 cat 1\n", "12:00-12:10 is written at watermark 12:11");
	tap_ok(add(w, 731, 724, &donkey, NULL, 724, &missed) == WM_WINDOW_LATE && missed == 2,
		"a donkey of 12:04 is late");
	wm_windowing_advance(w, WM_TIME_END);
	drain(w, agg, 1, false, &out);
	tap_span(wm_buf_span(&out), "720 730 cat 1\n725 735 cat 1\n725 735 dog 1\n730 740 dog 1\n",
		"once, and the rest");
	wm_windowing_free(w);
	wm_agg_free(agg);
	wm_buf_release(&out);
}

static const struct wm_value no_key = { { "", 0 }, WM_KIND_TEXT };

/* Days that are not all of one length, and one that Samoa left out (2011-12-30, when it crossed the date line): by the calendar, hours are of UTC. */
static void
test_calendar(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count"), &err);
	struct wm_zone *berlin = wm_zone_open(wm_span_of("Europe/Berlin"), &err);
	struct wm_zone *apia = wm_zone_open(wm_span_of("Pacific/Apia"), &err);
	const struct wm_pane_options lateness = { .allowed_lateness_us = 3600 * INT64_C(1000000) };
	/* 2025-10-26 begins at 22:00 of the day before and lasts for 25 hours. */
	const int64_t hour = INT64_C(3600000000), october = INT64_C(1761429600) * 1000000;
	/* 2011-12-29 begins at 10:00 and is followed by 2011-12-31. */
	const int64_t december = INT64_C(1325152800) * 1000000;
	struct wm_windows windows;
	struct wm_buf out;
	char want[400];
	int64_t missed;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_windows_init_calendar(&windows, WM_CALENDAR_DAY, 1, 0, berlin);
	struct wm_windowing *w = wm_windowing_new(&windows, agg, 1, WM_MODE_APPEND, &lateness, false);
	add(w, WM_TIME_NONE, 0, &no_key, NULL, october + 24 * hour, &missed);
	advance(w, october + 24 * hour, agg, 1, true, &out);
	tap_int((int64_t)out.len, 0, "a day of 25 hours is not complete after 24");
	advance(w, october + 25 * hour, agg, 1, true, &out);
	add(w, october + 25 * hour, 0, &no_key, NULL, october, &missed);
	advance(w, october + 26 * hour - 1, agg, 1, true, &out);
	snprintf(want, sizeof(want), "%lld %lld  1 on-time 0\n%lld %lld  2 late 1\n", (long long)october,
		(long long)(october + 25 * hour), (long long)october, (long long)(october + 25 * hour));
	tap_span(wm_buf_span(&out), want, "it is after 25, and takes records for one hour more");
	wm_windowing_advance(w, october + 26 * hour);
	drain(w, agg, 1, true, &out);
	tap_ok(add(w, october + 26 * hour, 0, &no_key, NULL, october, &missed) == WM_WINDOW_LATE && missed == 1,
		"not longer");
	wm_windowing_free(w);

	wm_buf_reset(&out);
	wm_windows_init_calendar(&windows, WM_CALENDAR_DAY, 1, 0, apia);
	w = wm_windowing_new(&windows, agg, 1, WM_MODE_APPEND, NULL, false);
	wm_windowing_fill(w, false);
	add(w, WM_TIME_NONE, 0, &no_key, NULL, december - 1, &missed);
	add(w, WM_TIME_NONE, 0, &no_key, NULL, december + 48 * hour, &missed);
	advance(w, WM_TIME_END, agg, 1, false, &out);
	snprintf(want, sizeof(want), "%lld %lld  1\n%lld %lld  fill\n%lld %lld  fill\n%lld %lld  1\n",
		(long long)(december - 24 * hour), (long long)december, (long long)december,
		(long long)(december + 24 * hour), (long long)(december + 24 * hour), (long long)(december + 48 * hour),
		(long long)(december + 48 * hour), (long long)(december + 72 * hour));
	tap_span(wm_buf_span(&out), want, "a day that a zone left out is not filled");
	wm_windowing_free(w);
	wm_zone_close(berlin);
	wm_zone_close(apia);
	wm_agg_free(agg);
	wm_buf_release(&out);
}

/* Records of a stream that reaches far back, with texts too long for their cells, and an advance behind each batch. */
static void
add_some(struct wm_windowing *w, uint64_t *seed, int64_t first, int64_t last, int64_t delay, int64_t *highest)
{
	struct wm_value keys[2] = { { wm_span_of("k"), WM_KIND_TEXT }, { wm_span("", 0), WM_KIND_NULL } };
	struct wm_window_row row;
	int64_t missed;

	for (int64_t i = first; i < last; i++) {
		int64_t time_us = i - (int64_t)(tap_random(seed) % 60);
		char text[64];
		struct wm_value field = { wm_span(text,
						  (size_t)snprintf(text, sizeof(text),
							  "a text that is too long for its cell %d",
							  (int)(tap_random(seed) % 1000))),
			WM_KIND_TEXT };
		struct wm_reading reading;

		keys[1].text = wm_span_of(tap_random(seed) % 2 == 0 ? "a" : "bcd");
		keys[1].kind = WM_KIND_TEXT;
		if (time_us > *highest)
			*highest = time_us;
		wm_reading_take(&reading, &field);
		add(w, *highest - delay, *highest, keys, &reading, time_us, &missed);
		if (wm_windowing_due_us(w) <= *highest - delay) {
			wm_windowing_advance(w, *highest - delay);
			while (wm_windowing_next(w, &row))
				continue;
		}
	}
}

/* All kinds of state: sliding ones, apart ones, panes of their own, fillers. */
#define SETUPS 6
static const struct setup setups[SETUPS] = {
	{ .mode = WM_MODE_UPDATE, .panes = { .allowed_lateness_us = 10 } },
	{ .mode = WM_MODE_APPEND, .panes = { .allowed_lateness_us = 20, .early_period_us = 7 } },
	{ .mode = WM_MODE_APPEND, .panes = { .allowed_lateness_us = 20, .is_discarding = true, .early_rows = 3 } },
	{ .mode = WM_MODE_APPEND, .panes = { .allowed_lateness_us = 20, .is_discarding = true, .early_period_us = 5 } },
	{ .mode = WM_MODE_APPEND, .is_cumulating = true },
	{ .mode = WM_MODE_APPEND, .is_plain_size = true, .has_fill = true, .has_previous = true },
};

static void
init_windows(struct wm_windows *windows, const struct setup *setup)
{
	if (setup->is_cumulating)
		wm_windows_init_cumulating(windows, 20, 4, 0);
	else
		wm_windows_init(windows, 10, setup->is_plain_size ? 10 : 4, 0);
}

static void
test_bytes(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,max:v,last:v,distinct:v"), &err);
	struct wm_windows windows;
	bool is_flat = true;

	for (int i = 0; i < SETUPS; i++) {
		uint64_t seed = 3;
		int64_t highest = INT64_MIN;

		init_windows(&windows, &setups[i]);
		struct wm_windowing *w = new_operator(&setups[i], &windows, agg, 2);
		add_some(w, &seed, 0, 2000, 15, &highest);
		size_t bytes = wm_windowing_bytes(w);
		add_some(w, &seed, 2000, 20000, 15, &highest);
		if (wm_windowing_bytes(w) > 2 * bytes) {
			printf("# setup %d: %zu bytes have become %zu\n", i, bytes, wm_windowing_bytes(w));
			is_flat = false;
		}
		wm_windowing_free(w);
	}
	tap_ok(is_flat, "bytes of state after 20000 records are at most twice those after 2000, in %d setups", SETUPS);
	wm_agg_free(agg);
}

/* One window that is never complete, and a pane for each record. */
static void
test_one_window(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,last:v,distinct:v"), &err);
	const struct setup setup = { .mode = WM_MODE_APPEND, .panes = { .is_discarding = true, .early_rows = 1 } };
	struct wm_windows windows;
	uint64_t seed = 9;
	int64_t highest = INT64_MIN;

	wm_windows_init(&windows, 1000000, 1000000, 0);
	struct wm_windowing *w = new_operator(&setup, &windows, agg, 2);
	add_some(w, &seed, 1000, 1500, 15, &highest);
	size_t bytes = wm_windowing_bytes(w);
	add_some(w, &seed, 1500, 10000, 15, &highest);
	if (!tap_ok(wm_windowing_bytes(w) < 3 * bytes, "discarded panes leave nothing behind"))
		printf("# %zu bytes have become %zu\n", bytes, wm_windowing_bytes(w));
	wm_windowing_free(w);
	wm_agg_free(agg);
}

/* Every prefix and many corruptions of a state are refused or decoded, and then written, never more. */
static void
test_hostile_state(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,max:v"), &err);
	struct wm_windows windows;
	struct wm_buf bytes;
	struct wm_get in;
	struct wm_window_row row;
	uint64_t seed = 5;
	bool is_refused = true;

	for (int setup = 0; setup < SETUPS; setup++) {
		int64_t highest = INT64_MIN;

		init_windows(&windows, &setups[setup]);
		struct wm_windowing *w = new_operator(&setups[setup], &windows, agg, 2);
		add_some(w, &seed, 0, 100, 20, &highest);
		/* Some panes wait. */
		struct wm_value keys[2] = { { wm_span_of("k"), WM_KIND_TEXT }, { wm_span_of("a"), WM_KIND_TEXT } };
		struct wm_value field = { wm_span_of("1"), WM_KIND_TEXT };
		struct wm_reading reading;
		int64_t missed;
		wm_reading_take(&reading, &field);
		for (int64_t back = 0; back < 40; back += 5)
			add(w, highest - 20, highest, keys, &reading, highest - back, &missed);
		wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
		wm_windowing_encode(w, &bytes);
		wm_windowing_free(w);
		for (size_t len = 0; len < bytes.len; len++) {
			w = new_operator(&setups[setup], &windows, agg, 2);
			wm_get_init(&in, wm_span(bytes.data, len));
			is_refused = is_refused && !wm_windowing_decode(w, &in);
			wm_windowing_free(w);
		}
		for (int i = 0; i < 1000; i++) {
			size_t at = tap_random(&seed) % bytes.len;
			char kept = bytes.data[at];

			bytes.data[at] = (char)tap_random(&seed);
			w = new_operator(&setups[setup], &windows, agg, 2);
			wm_get_init(&in, wm_buf_span(&bytes));
			if (wm_windowing_decode(w, &in)) {
				wm_windowing_open_count(w);
				wm_windowing_advance(w, highest);
				for (int rows = 0; rows < 300 && wm_windowing_next(w, &row); rows++)
					continue;
			}
			wm_windowing_free(w);
			bytes.data[at] = kept;
		}
		wm_buf_release(&bytes);
	}
	tap_ok(is_refused, "every state that is cut short is refused");
	tap_ok(true, "1000 corrupt states in each of %d setups end in nothing worse than a refusal", SETUPS);
	wm_agg_free(agg);
}

/* What was drained and what is held, of one of the two streams below. */
struct stream_of_many {
	struct wm_windowing *w;
	struct wm_buf out, state;
};

static void
add_of_many(struct stream_of_many *stream, const struct wm_window_record *record, bool is_counted_at_once)
{
	int64_t missed;

	wm_windowing_add(stream->w, record, &missed);
	if (is_counted_at_once)
		wm_windowing_counts(stream->w);
}

/*
 * With many keys in a slice records are held back for a while: what comes out, and what is saved in between, is the same as where
 * each is counted at once. One of the aggregates tells the order of the records.
 */
static void
test_many_keys(int64_t size_us, int64_t slide_us, const char *name)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,sum:v,max:v,first:t,last:t"), &err);
	struct wm_windows windows;
	struct stream_of_many streams[2];
	uint64_t seed = 16;
	int64_t highest = 0;
	bool is_same = true;
	static char text[400];

	memset(text, 'x', sizeof(text));
	wm_windows_init(&windows, size_us, slide_us, 0);
	for (size_t i = 0; i < 2; i++) {
		streams[i].w = wm_windowing_new(&windows, agg, 1, WM_MODE_APPEND, NULL, false);
		wm_buf_init(&streams[i].out, WM_BUF_UNBOUNDED);
		wm_buf_init(&streams[i].state, WM_BUF_UNBOUNDED);
	}
	for (int64_t i = 0; i < 120000; i++) {
		char key_text[24], value_text[24];
		struct wm_reading readings[2];
		struct wm_value value = { .kind = WM_KIND_TEXT }, key = { .kind = WM_KIND_TEXT };
		int64_t time_us = i - (int64_t)(tap_random(&seed) % (i % 50 == 0 ? 40000 : 3000));

		key.text = wm_span(key_text,
			(size_t)snprintf(key_text, sizeof(key_text), "k%u", (unsigned)(tap_random(&seed) % 9000)));
		value.text = wm_span(value_text,
			(size_t)snprintf(
				value_text, sizeof(value_text), "%d.5", (int)(tap_random(&seed) % 2000) - 1000));
		wm_reading_take(&readings[0], &value);
		snprintf(text, 24, "%d", (int)i);
		text[strlen(text)] = 'x';
		value.text = wm_span(text, i % 97 == 0 ? sizeof(text) : 12);
		wm_reading_take(&readings[1], &value);
		if (time_us > highest)
			highest = time_us;
		struct wm_window_record record = { time_us, highest - 10000, highest, &key, readings };
		bool is_due = wm_windowing_due_us(streams[0].w) <= record.watermark_us;
		for (size_t k = 0; k < 2; k++) {
			if (is_due)
				advance(streams[k].w, record.watermark_us, agg, 1, false, &streams[k].out);
			add_of_many(&streams[k], &record, k == 1);
			if (i % 30011 == 0)
				wm_windowing_encode(streams[k].w, &streams[k].state);
		}
	}
	for (size_t k = 0; k < 2; k++)
		advance(streams[k].w, WM_TIME_END, agg, 1, false, &streams[k].out);
	is_same = wm_span_equal(wm_buf_span(&streams[0].out), wm_buf_span(&streams[1].out)) &&
		wm_span_equal(wm_buf_span(&streams[0].state), wm_buf_span(&streams[1].state));
	tap_ok(is_same && streams[0].out.len > 1000000 && streams[0].state.len > 100000, "%s", name);
	tap_int((int64_t)wm_windowing_counts(streams[0].w).removed, (int64_t)wm_windowing_counts(streams[1].w).removed,
		"as many groups were forgotten");
	for (size_t k = 0; k < 2; k++) {
		wm_windowing_free(streams[k].w);
		wm_buf_release(&streams[k].out);
		wm_buf_release(&streams[k].state);
	}
	wm_agg_free(agg);
}

/* With count and sum a group takes no more than 100 bytes, its place in the table included. */
static void
test_group_bytes(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,sum:v"), &err);
	struct wm_value value = { wm_span_of("12.5"), WM_KIND_TEXT };
	struct wm_reading reading;
	struct wm_windows windows;
	int64_t missed;

	wm_reading_take(&reading, &value);
	wm_windows_init(&windows, 1000000, 1000000, 0);
	for (size_t groups = 10000; groups <= 400000; groups = groups * 3 / 2) {
		struct wm_windowing *w = wm_windowing_new(&windows, agg, 1, WM_MODE_APPEND, NULL, false);

		for (size_t i = 0; i < groups; i++) {
			char text[24];
			struct wm_value key = { .kind = WM_KIND_TEXT };

			key.text = wm_span(text, (size_t)snprintf(text, sizeof(text), "u%08u", (unsigned)i));
			struct wm_window_record record = { 1, WM_TIME_NONE, 1, &key, &reading };
			wm_windowing_add(w, &record, &missed);
		}
		if (wm_windowing_bytes(w) > groups * 100)
			tap_ok(false, "%zu bytes for %zu groups", wm_windowing_bytes(w), groups);
		wm_windowing_free(w);
	}
	tap_ok(true, "a group with count and sum takes 100 bytes at most");
	wm_agg_free(agg);
}

static void
count_pause(void *self)
{
	++*(size_t *)self;
}

/* Very many rows are made ready in steps: no more than WM_PAUSE_STEPS of them between two looks at the caller's. */
static void
test_pauses(void)
{
	static const enum wm_window_mode modes[] = { WM_MODE_APPEND, WM_MODE_UPDATE, WM_MODE_COMPLETE };
	const size_t keys_count = 5 * WM_PAUSE_STEPS;
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count"), &err);
	struct wm_windows windows;

	wm_windows_init(&windows, 10, 10, 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		size_t pauses = 0;
		struct wm_windowing *w = wm_windowing_new(&windows, agg, 1, modes[i], NULL, false);
		struct wm_window_row row;
		size_t rows = 0;

		wm_windowing_set_pause(w, &(struct wm_pause){ count_pause, &pauses });
		for (size_t key = 0; key < keys_count; key++) {
			char text[24];
			struct wm_value value = { wm_span(text, (size_t)snprintf(text, sizeof(text), "%zu", key)),
				WM_KIND_TEXT };
			int64_t missed;

			add(w, WM_TIME_NONE, 5, &value, NULL, 5, &missed);
		}
		wm_windowing_advance(w, 20);
		while (wm_windowing_next(w, &row))
			rows++;
		tap_ok(rows == keys_count && pauses >= 5, "mode %d: %zu rows, %zu pauses", (int)modes[i], rows, pauses);
		wm_windowing_free(w);
	}
	wm_agg_free(agg);
}

int
main(void)
{
	test_pauses();
	test_worked_example();
	test_calendar();
	test_model((struct setup){ .mode = WM_MODE_APPEND }, "append: 60 random streams as the model");
	test_model((struct setup){ .mode = WM_MODE_UPDATE }, "update: 60 random streams as the model");
	test_model((struct setup){ .mode = WM_MODE_COMPLETE }, "complete: 60 random streams as the model");
	test_model((struct setup){ .mode = WM_MODE_APPEND, .is_resumed = true }, "append, saved and loaded in between");
	test_model((struct setup){ .mode = WM_MODE_UPDATE, .is_resumed = true }, "update, saved and loaded in between");
	test_model((struct setup){ .mode = WM_MODE_COMPLETE, .is_resumed = true },
		"complete, saved and loaded in between");
	test_model((struct setup){ .mode = WM_MODE_UPDATE, .panes.allowed_lateness_us = 30, .is_resumed = true },
		"update with allowed lateness");
	test_model((struct setup){ .mode = WM_MODE_COMPLETE, .panes.allowed_lateness_us = 30 },
		"complete, where allowed lateness has no effect");
	test_model((struct setup){ .mode = WM_MODE_APPEND, .is_cumulating = true }, "cumulating");
	test_model((struct setup){ .mode = WM_MODE_APPEND, .is_cumulating = true, .is_resumed = true },
		"cumulating, saved and loaded in between");
	test_model((struct setup){ .mode = WM_MODE_UPDATE, .is_cumulating = true, .is_resumed = true },
		"cumulating in update");
	test_model((struct setup){ .mode = WM_MODE_COMPLETE, .is_cumulating = true }, "cumulating in complete");
	test_model((struct setup){ .mode = WM_MODE_APPEND, .is_plain_size = true, .has_fill = true }, "fill");
	test_model((struct setup){ .mode = WM_MODE_APPEND,
			   .is_plain_size = true,
			   .has_fill = true,
			   .has_previous = true,
			   .is_resumed = true },
		"fill with the window before, saved and loaded in between");
	test_panes(false, false, false, "panes: 150 random streams, windows and options as the model");
	test_panes(false, true, true, "panes of windows that are disjoint, saved and loaded in between");
	test_panes(false, false, true, "panes, saved and loaded in between");
	test_panes(true, false, true, "panes of cumulating windows, saved and loaded in between");
	test_many_keys(50000, 50000, "records of many keys are counted in order");
	test_many_keys(50000, 10000, "and in windows that overlap");
	test_group_bytes();
	test_bytes();
	test_one_window();
	test_hostile_state();
	return tap_done();
}
