/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/sessions.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

#define AGGREGATES "count,sum:v,min:t,first:t,last:t"
#define RECORDS_MAX 90

/*
 * The model keeps all records and works the sessions out anew whenever they are asked for, by sorting. What a session was,
 * it knows by its bounds.
 */
struct model_record {
	int64_t start_us, end_us;
	int key; /* -1: null, 0: "", 1...: a letter */
	int64_t value;
	int number;      /* in order of input */
	bool is_written; /* in a pane */
};

struct model_session {
	int64_t start_us, end_us;
	int key;
	uint64_t index;      /* of its next pane */
	size_t first, count; /* its records, as they are sorted */
};

struct model {
	enum wm_window_mode mode;
	struct wm_pane_options panes;
	bool is_spark;
	int64_t watermark_us, watermark_before_us, multiple;
	bool is_early_due;
	struct model_record records[RECORDS_MAX];
	size_t records_count;
	struct model_session sessions[RECORDS_MAX];
	size_t sessions_count;
	struct wm_buf out;
};

static int
compare_model_records(const void *a, const void *b)
{
	const struct model_record *x = a, *y = b;

	if (x->key != y->key)
		return x->key - y->key;
	if (x->start_us != y->start_us)
		return x->start_us < y->start_us ? -1 : 1;
	return x->number - y->number;
}

static int
compare_model_sessions(const void *a, const void *b)
{
	const struct model_session *x = a, *y = b;

	if (x->end_us != y->end_us)
		return x->end_us < y->end_us ? -1 : 1;
	if (x->start_us != y->start_us)
		return x->start_us < y->start_us ? -1 : 1;
	return x->key - y->key;
}

static void
model_sort(struct model *m)
{
	struct model_session old[RECORDS_MAX];
	size_t old_count = m->sessions_count;

	memcpy(old, m->sessions, old_count * sizeof(old[0]));
	qsort(m->records, m->records_count, sizeof(m->records[0]), compare_model_records);
	m->sessions_count = 0;
	for (size_t i = 0; i < m->records_count;) {
		struct model_session s = { m->records[i].start_us, m->records[i].end_us, m->records[i].key, 0, i, 0 };

		for (; i < m->records_count && m->records[i].key == s.key && m->records[i].start_us <= s.end_us; i++) {
			s.count++;
			if (m->records[i].end_us > s.end_us)
				s.end_us = m->records[i].end_us;
		}
		for (size_t j = 0; j < old_count; j++)
			if (old[j].key == s.key && old[j].start_us == s.start_us && old[j].end_us == s.end_us)
				s.index = old[j].index;
		m->sessions[m->sessions_count++] = s;
	}
	/* Records are found by their place: sessions may be sorted as rows are. */
	qsort(m->sessions, m->sessions_count, sizeof(m->sessions[0]), compare_model_sessions);
}

static bool
model_has_panes(const struct model *m)
{
	return m->mode == WM_MODE_APPEND &&
		(m->panes.allowed_lateness_us > 0 || m->panes.early_rows > 0 || m->panes.early_period_us > 0);
}

static uint64_t
model_new_rows(const struct model *m, const struct model_session *s)
{
	uint64_t rows = 0;

	for (size_t i = s->first; i < s->first + s->count; i++)
		rows += !m->records[i].is_written;
	return rows;
}

static void
print_text(struct wm_buf *out, int64_t value)
{
	wm_buf_addf(out, "value-%02d", (int)value);
	/* Some fit a cell, others do not. */
	for (int64_t i = 0; i < value % 5; i++)
		wm_buf_add_text(out, "-and-more");
}

static void
model_row(struct model *m, struct model_session *s, const char *pane)
{
	bool is_discarding = model_has_panes(m) && m->panes.is_discarding;
	int64_t count = 0, sum = 0;
	const struct model_record *min = NULL, *first = NULL, *last = NULL;
	struct wm_buf least, text;

	wm_buf_init(&least, WM_BUF_UNBOUNDED);
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (size_t i = s->first; i < s->first + s->count; i++) {
		struct model_record *r = &m->records[i];

		if (is_discarding && r->is_written)
			continue;
		wm_buf_reset(&text);
		print_text(&text, r->value);
		if (min == NULL || wm_span_compare(wm_buf_span(&text), wm_buf_span(&least)) < 0) {
			wm_buf_reset(&least);
			print_text(&least, r->value);
			min = r;
		}
		if (first == NULL)
			first = r;
		last = r;
		sum += r->value;
		count++;
	}
	wm_buf_addf(&m->out, "%lld %lld ", (long long)s->start_us, (long long)s->end_us);
	if (s->key < 0)
		wm_buf_add_text(&m->out, "-");
	else if (s->key > 0)
		wm_buf_addf(&m->out, "%c", 'a' + s->key);
	wm_buf_addf(&m->out, " %lld ", (long long)count);
	if (count != 0)
		wm_buf_addf(&m->out, "%lld", (long long)sum);
	for (int i = 0; i < 3; i++) {
		const struct model_record *shown = i == 0 ? min : i == 1 ? first : last;

		wm_buf_add_byte(&m->out, ' ');
		if (shown != NULL)
			print_text(&m->out, shown->value);
	}
	wm_buf_addf(&m->out, " %s %d\n", pane, model_has_panes(m) ? (int)s->index++ : 0);
	for (size_t i = s->first; i < s->first + s->count && model_has_panes(m); i++)
		m->records[i].is_written = true;
	wm_buf_release(&least);
	wm_buf_release(&text);
}

static bool
model_add(struct model *m, const struct model_record *record, int64_t highest_us)
{
	int64_t judge_us = m->mode == WM_MODE_APPEND ? m->watermark_us
		: m->is_spark                        ? m->watermark_before_us
						     : WM_TIME_NONE;

	if (record->end_us + m->panes.allowed_lateness_us <= judge_us)
		return false;
	m->records[m->records_count++] = *record;
	model_sort(m);
	if (m->panes.early_period_us > 0) {
		int64_t multiple = highest_us / m->panes.early_period_us;

		if (multiple > m->multiple && m->multiple >= 0)
			m->is_early_due = true;
		if (multiple > m->multiple)
			m->multiple = multiple;
	}
	return true;
}

static void
model_advance(struct model *m, int64_t watermark_us)
{
	int64_t before_us = m->watermark_us;

	if (watermark_us > m->watermark_us)
		m->watermark_us = watermark_us;
	m->watermark_before_us = before_us;
	for (size_t i = 0; i < m->sessions_count; i++) {
		struct model_session *s = &m->sessions[i];

		if (m->mode == WM_MODE_COMPLETE) {
			if (watermark_us != WM_TIME_END)
				model_row(m, s, "on-time");
			continue;
		}
		if (model_has_panes(m) && model_new_rows(m, s) != 0) {
			if (s->end_us <= before_us)
				model_row(m, s, "late");
			else if (m->is_early_due ||
				(m->panes.early_rows > 0 && model_new_rows(m, s) >= m->panes.early_rows))
				model_row(m, s, "early");
		}
		if (s->end_us > before_us && s->end_us <= m->watermark_us)
			model_row(m, s, "on-time");
	}
	m->is_early_due = false;
	if (m->mode == WM_MODE_COMPLETE)
		return;
	for (size_t i = 0; i < m->sessions_count; i++)
		if (m->sessions[i].end_us + m->panes.allowed_lateness_us <= m->watermark_us)
			for (size_t j = 0; j < m->sessions[i].count; j++)
				m->records[m->sessions[i].first + j].number = -1;
	size_t kept = 0;
	for (size_t i = 0; i < m->records_count; i++)
		if (m->records[i].number >= 0)
			m->records[kept++] = m->records[i];
	m->records_count = kept;
	model_sort(m);
}

/* The operator, printed in the same form. */
static void
drain(struct wm_sessions *w, const struct wm_agg *agg, size_t keys_count, struct wm_buf *out)
{
	struct wm_window_row row;

	while (wm_sessions_next(w, &row)) {
		wm_buf_addf(out, "%lld %lld ", (long long)row.window_start_us, (long long)row.window_end_us);
		if (keys_count > 0) {
			const struct wm_value *key = &row.keys[keys_count - 1];

			if (key->kind == WM_KIND_NULL)
				wm_buf_add_text(out, "-");
			wm_buf_add(out, key->text.data, key->text.len);
		}
		for (size_t i = 0; i < wm_agg_outputs_count(agg); i++) {
			wm_buf_add_byte(out, ' ');
			wm_agg_cell_print(agg, row.cell, i, 0, out);
		}
		wm_buf_addf(out, " %s %d\n", wm_pane_timing_name(row.pane), (int)row.pane_index);
	}
}

static void
advance(struct wm_sessions *w, const struct wm_agg *agg, size_t keys_count, int64_t watermark_us, struct wm_buf *out)
{
	wm_sessions_advance(w, watermark_us);
	drain(w, agg, keys_count, out);
}

struct options {
	enum wm_window_mode mode;
	struct wm_pane_options panes;
	bool is_spark;
	bool is_resumed;
	bool has_own_gaps;
};

static struct wm_sessions *
saved_and_loaded(struct wm_sessions *w, const struct wm_agg *agg, size_t keys_count, const struct options *opt)
{
	struct wm_sessions *back = wm_sessions_new(agg, keys_count, opt->mode, &opt->panes, opt->is_spark);
	struct wm_buf bytes, again;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&again, WM_BUF_UNBOUNDED);
	wm_sessions_encode(w, &bytes);
	wm_get_init(&in, wm_buf_span(&bytes));
	if (!wm_sessions_decode(back, &in) || wm_get_left(&in) != 0)
		tap_ok(false, "state decodes");
	wm_sessions_encode(back, &again);
	if (!wm_span_equal(wm_buf_span(&bytes), wm_buf_span(&again)))
		tap_ok(false, "a decoded state encodes to the same bytes");
	if (wm_sessions_open_count(w) != wm_sessions_open_count(back))
		tap_ok(false, "a decoded state has as many sessions");
	wm_sessions_free(w);
	wm_buf_release(&bytes);
	wm_buf_release(&again);
	return back;
}

struct stream {
	struct wm_sessions *w;
	const struct wm_agg *agg;
	size_t keys_count;
	struct model m;
	struct wm_buf out;
};

/* Both advance; the operator perhaps only because it is due. */
static void
advance_both(struct stream *s, int64_t watermark_us, bool only_if_due)
{
	if (!only_if_due || wm_sessions_due_us(s->w) <= watermark_us)
		advance(s->w, s->agg, s->keys_count, watermark_us, &s->out);
	model_advance(&s->m, watermark_us);
}

static bool
add_both(struct stream *s, const struct model_record *record, int64_t watermark_us, int64_t highest_us)
{
	struct wm_buf number, text;
	char letter[2] = { (char)('a' + record->key), 0 };
	struct wm_value keys[2] = {
		{ wm_span_of("same"), WM_KIND_TEXT },
		{ wm_span(letter, record->key > 0), record->key < 0 ? WM_KIND_NULL : WM_KIND_TEXT },
	};
	struct wm_reading readings[2];
	int64_t missed;

	wm_buf_init(&number, WM_BUF_UNBOUNDED);
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_addf(&number, "%lld", (long long)record->value);
	print_text(&text, record->value);
	wm_reading_take(&readings[0], &(struct wm_value){ wm_buf_span(&number), WM_KIND_TEXT });
	wm_reading_take(&readings[1], &(struct wm_value){ wm_buf_span(&text), WM_KIND_TEXT });
	const struct wm_window_record row = { record->start_us, watermark_us, highest_us, keys + 2 - s->keys_count,
		readings };
	bool is_used = wm_sessions_add(s->w, &row, record->end_us - record->start_us, &missed) == WM_WINDOW_USED;
	/* What was borrowed for the call is not looked at after it. */
	memset(text.data, '#', text.len);
	memset(number.data, '#', number.len);
	wm_buf_release(&number);
	wm_buf_release(&text);
	return is_used == model_add(&s->m, record, highest_us) && missed == !is_used;
}

/* One random stream through the operator and the model; false at the first difference. */
static bool
stream_agrees(uint64_t *seed, const struct options *opt)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of(AGGREGATES), &err);
	struct stream s = { .agg = agg, .keys_count = tap_random(seed) % 3 };
	int64_t delay = (int64_t)(tap_random(seed) % 4) * 12, highest = 500, gap = 1 + (int64_t)(tap_random(seed) % 25);
	bool is_each = tap_random(seed) % 2 == 0 && opt->mode == WM_MODE_APPEND, agrees = true;
	/* Without a watermark until the end, a tenth of the time. */
	bool has_watermark = tap_random(seed) % 10 != 0;
	int keys_many = s.keys_count == 0 ? 1 : 1 + (int)(tap_random(seed) % 5);
	int64_t watermark_us = opt->is_spark ? 0 : WM_TIME_NONE;

	s.m = (struct model){ .mode = opt->mode,
		.panes = opt->panes,
		.is_spark = opt->is_spark,
		.watermark_us = watermark_us,
		.watermark_before_us = watermark_us,
		.multiple = -1 };
	wm_buf_init(&s.m.out, WM_BUF_UNBOUNDED);
	wm_buf_init(&s.out, WM_BUF_UNBOUNDED);
	s.w = wm_sessions_new(agg, s.keys_count, opt->mode, &opt->panes, opt->is_spark);
	for (int i = 0; i < RECORDS_MAX && agrees; i++) {
		int64_t time_us = highest + (int64_t)(tap_random(seed) % 60) - 48;
		struct model_record record = { .start_us = time_us,
			.key = (int)(tap_random(seed) % (uint64_t)keys_many) - 1,
			.value = (int64_t)(tap_random(seed) % 100),
			.number = i };

		if (s.keys_count == 0)
			record.key = 0;
		if (tap_random(seed) % 20 == 0)
			record.start_us += 80;
		record.end_us = record.start_us + (opt->has_own_gaps ? 1 + (int64_t)(tap_random(seed) % 30) : gap);
		if (record.start_us > highest)
			highest = record.start_us;
		if (opt->is_resumed && tap_random(seed) % 20 == 0)
			s.w = saved_and_loaded(s.w, agg, s.keys_count, opt);
		if (is_each && has_watermark) {
			watermark_us = highest - delay;
			advance_both(&s, watermark_us, true);
		}
		agrees = add_both(&s, &record, watermark_us, highest);
		if (is_each) {
			/* What the record let go: it is due whatever the watermark. */
			advance_both(&s, watermark_us, true);
		} else if (tap_random(seed) % 6 == 0) {
			if (has_watermark)
				watermark_us = highest - delay;
			advance_both(&s, watermark_us, false);
		}
		agrees = agrees && wm_span_equal(wm_buf_span(&s.out), wm_buf_span(&s.m.out));
	}
	uint64_t open = s.m.sessions_count;
	agrees = agrees && wm_sessions_open_count(s.w) == open && wm_sessions_counts(s.w).groups == open;
	advance_both(&s, WM_TIME_END, false);
	agrees = agrees && wm_span_equal(wm_buf_span(&s.out), wm_buf_span(&s.m.out)) &&
		(opt->mode == WM_MODE_COMPLETE || wm_sessions_open_count(s.w) == 0);
	if (!agrees)
		printf("# operator\n%.*s# model\n%.*s", (int)s.out.len, s.out.data, (int)s.m.out.len, s.m.out.data);
	wm_sessions_free(s.w);
	wm_agg_free(agg);
	wm_buf_release(&s.out);
	wm_buf_release(&s.m.out);
	return agrees;
}

static void
test_model(struct options opt, const char *name)
{
	uint64_t seed = 1;
	int failed_at = -1;

	for (int i = 0; i < 60 && failed_at < 0; i++) {
		opt.has_own_gaps = i % 2 != 0;
		opt.is_resumed = i % 4 >= 2;
		if (!stream_agrees(&seed, &opt))
			failed_at = i;
	}
	if (!tap_ok(failed_at < 0, "%s: 60 random streams as the model", name))
		printf("#   stream %d\n", failed_at);
}

static void
test_models(void)
{
	static const struct wm_pane_options early[] = {
		{ 0 },
		{ .early_rows = 1 },
		{ .early_rows = 3 },
		{ .early_period_us = 20 },
	};
	static const char *const early_names[] = { "no early panes", "early 1", "early 3", "early by event time" };
	static const int64_t lateness[] = { 0, 10, 100 };
	char name[100];

	test_model((struct options){ .mode = WM_MODE_APPEND }, "append");
	test_model((struct options){ .mode = WM_MODE_APPEND, .is_spark = true }, "append for Spark");
	test_model((struct options){ .mode = WM_MODE_COMPLETE }, "complete");
	test_model((struct options){ .mode = WM_MODE_COMPLETE, .is_spark = true }, "complete for Spark");
	for (size_t l = 0; l < 3; l++) {
		for (size_t e = 0; e < 4; e++) {
			for (int discarding = 0; discarding < 2; discarding++) {
				struct options opt = { .mode = WM_MODE_APPEND, .panes = early[e] };

				opt.panes.allowed_lateness_us = lateness[l];
				opt.panes.is_discarding = discarding != 0;
				if (l == 0 && e == 0)
					continue;
				snprintf(name, sizeof(name), "lateness %d, %s, %s", (int)lateness[l], early_names[e],
					discarding ? "discarding" : "accumulating");
				test_model(opt, name);
			}
		}
	}
}

/* Worked examples: rows as "time key", with one gap. */

struct example {
	struct wm_sessions *w;
	struct wm_agg *agg;
	int64_t gap, delay, highest;
	struct wm_buf out;
};

static void
begin(struct example *e, int64_t gap, int64_t delay, const struct wm_pane_options *panes)
{
	struct wm_err err;

	*e = (struct example){ .gap = gap, .delay = delay, .highest = WM_TIME_NONE };
	e->agg = wm_agg_parse(wm_span_of("count,sum:v"), &err);
	e->w = wm_sessions_new(e->agg, 1, WM_MODE_APPEND, panes, false);
	wm_buf_init(&e->out, WM_BUF_UNBOUNDED);
}

/* The value is one more than the time. True if it was used. */
static bool
row(struct example *e, int64_t time_us, const char *key)
{
	char text[24];
	struct wm_value value = { wm_span(text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)time_us + 1)),
		WM_KIND_TEXT };
	struct wm_value key_value = { wm_span_of(key), WM_KIND_TEXT };
	struct wm_reading reading;
	int64_t missed;

	if (time_us > e->highest)
		e->highest = time_us;
	int64_t watermark_us = e->highest - e->delay;
	if (wm_sessions_due_us(e->w) <= watermark_us)
		advance(e->w, e->agg, 1, watermark_us, &e->out);
	wm_reading_take(&reading, &value);
	const struct wm_window_record record = { time_us, watermark_us, e->highest, &key_value, &reading };
	bool is_used = wm_sessions_add(e->w, &record, e->gap, &missed) == WM_WINDOW_USED;
	if (wm_sessions_due_us(e->w) <= watermark_us)
		advance(e->w, e->agg, 1, watermark_us, &e->out);
	return is_used;
}

static void
end(struct example *e, const char *want, const char *name)
{
	advance(e->w, e->agg, 1, WM_TIME_END, &e->out);
	tap_span(wm_buf_span(&e->out), want, name);
	wm_sessions_free(e->w);
	wm_agg_free(e->agg);
	wm_buf_release(&e->out);
}

/* Rows of a at 0 and 20, and at 10 within the gap of both: one session, in whatever order they come. */
static void
test_bridge(void)
{
	static const int64_t times[] = { 0, 20, 100, 10 };
	static const char *const keys[] = { "a", "a", "b", "a" };
	int agree = 0;

	for (int order = 0; order < 256; order++) {
		int places[] = { order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6 & 3 };
		struct example e;

		if (((1 << places[0]) | (1 << places[1]) | (1 << places[2]) | (1 << places[3])) != 15)
			continue;
		begin(&e, 11, 200, NULL);
		for (int i = 0; i < 4; i++)
			row(&e, times[places[i]], keys[places[i]]);
		advance(e.w, e.agg, 1, WM_TIME_END, &e.out);
		agree += wm_span_is(wm_buf_span(&e.out), "0 31 a 3 33 on-time 0\n100 111 b 1 101 on-time 0\n");
		wm_sessions_free(e.w);
		wm_agg_free(e.agg);
		wm_buf_release(&e.out);
	}
	tap_int(agree, 24, "a bridge joins two sessions in all 24 orders of the rows");
}

static void
test_touching(void)
{
	struct example e;

	begin(&e, 10, 200, NULL);
	for (size_t i = 0; i < 7; i++)
		row(&e, (int64_t[]){ 100, 110, 119, 200, 130, 140, 151 }[i], i == 3 ? "b" : "a");
	end(&e,
		"100 129 a 3 332 on-time 0\n130 150 a 2 272 on-time 0\n151 161 a 1 152 on-time 0\n"
		"200 210 b 1 201 on-time 0\n",
		"exactly one gap apart is one session, a little more is two");

	/* At delay 0 the row that touches raises the watermark to the end of what it touches, which closes first. */
	begin(&e, 10, 0, NULL);
	row(&e, 0, "a");
	row(&e, 10, "a");
	row(&e, 19, "a");
	end(&e, "0 10 a 1 1 on-time 0\n10 29 a 2 31 on-time 0\n",
		"at delay 0 a session that ends at the watermark is closed");
}

static void
test_own_span(void)
{
	struct example e;

	begin(&e, 5, 0, NULL);
	row(&e, 0, "a");
	row(&e, 6, "b");
	tap_ok(row(&e, 3, "a"), "a row behind the watermark whose own span is open counts");
	tap_ok(!row(&e, 1, "a"), "one whose own span ends at the watermark is late");
	row(&e, 7, "a");
	row(&e, 30, "b");
	end(&e, "0 5 a 1 1 on-time 0\n6 11 b 1 7 on-time 0\n3 12 a 2 12 on-time 0\n30 35 b 1 31 on-time 0\n",
		"it begins a session that overlaps one already written");
}

/* Beam's answer to a row that joins a written session and an open one (its times, in half seconds). */
static void
test_reopened(void)
{
	const struct wm_pane_options panes = { .allowed_lateness_us = 120 };
	struct example e;

	begin(&e, 21, 10, &panes);
	for (size_t i = 0; i < 8; i++)
		row(&e, (int64_t[]){ 0, 8, 44, 26, 28, 120, 40, 200 }[i], "a");
	end(&e,
		"0 29 a 2 10 on-time 0\n0 65 a 5 111 on-time 0\n0 65 a 6 152 late 1\n120 141 a 1 121 on-time 0\n"
		"200 221 a 1 201 on-time 0\n",
		"a session that opens again is new, and on time at its new end");
}

static void
test_counts(void)
{
	struct example e;

	begin(&e, 10, 0, NULL);
	wm_sessions_count_updates(e.w);
	row(&e, 0, "a");
	row(&e, 1, "a");
	row(&e, 1, "b");
	row(&e, 5, "b");
	struct wm_windowing_counts counts = wm_sessions_counts(e.w);
	tap_ok(counts.groups == 2 && counts.updated == 2 && counts.removed == 0, "two sessions got rows");
	row(&e, 12, "b");
	counts = wm_sessions_counts(e.w);
	tap_ok(counts.groups == 1 && counts.updated == 3 && counts.removed == 1, "one goes, the other gets one more");
	end(&e, "0 11 a 2 3 on-time 0\n1 22 b 3 21 on-time 0\n", "what they were");

	begin(&e, 10, 100, NULL);
	wm_sessions_count_updates(e.w);
	row(&e, 0, "a");
	row(&e, 15, "a");
	row(&e, 8, "a");
	row(&e, 2, "a");
	counts = wm_sessions_counts(e.w);
	tap_ok(counts.groups == 1 && counts.updated == 2 && counts.removed == 1, "two that got rows are joined");
	end(&e, "0 25 a 4 29 on-time 0\n", "to one");
}

/* Thousands of sessions of a key at once, found in any order; one key is longer than any pool's. */
#define MANY_ROWS 20000
#define MANY_KEYS 3
#define MANY_DISORDER 29000

static int
compare_times(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct model_session *
model_many(int64_t times[MANY_KEYS][MANY_ROWS], const size_t *counts, int64_t gap, size_t *sessions_count)
{
	struct model_session *all = wm_calloc(MANY_ROWS, sizeof(all[0]));
	size_t count = 0;

	for (int key = 0; key < MANY_KEYS; key++) {
		qsort(times[key], counts[key], sizeof(times[key][0]), compare_times);
		for (size_t i = 0; i < counts[key]; i++) {
			struct model_session *last = count == 0 ? NULL : &all[count - 1];

			if (last == NULL || last->key != key || last->end_us < times[key][i])
				all[count++] = (struct model_session){ times[key][i], 0, key, 0, 0, 0 };
			all[count - 1].end_us = times[key][i] + gap;
			all[count - 1].count++;
		}
	}
	qsort(all, count, sizeof(all[0]), compare_model_sessions);
	*sessions_count = count;
	return all;
}

static void
test_many(const struct wm_pane_options *panes, const char *name)
{
	static int64_t times[MANY_KEYS][MANY_ROWS];
	const struct options opt = { .mode = WM_MODE_APPEND,
		.panes = panes != NULL ? *panes : (struct wm_pane_options){ 0 } };
	char longest[400];
	const char *const keys[MANY_KEYS] = { "", "k", longest };
	size_t counts[MANY_KEYS] = { 0 }, sessions_count, differing = 0;
	uint64_t seed = 77, open_most = 0;
	struct example e;
	struct wm_buf want;

	memset(longest, 'l', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	begin(&e, 6, MANY_DISORDER + 1000, panes);
	for (int i = 0; i < MANY_ROWS; i++) {
		int64_t time_us = i * 5 - (int64_t)(tap_random(&seed) % MANY_DISORDER);
		int key = (int)(tap_random(&seed) % MANY_KEYS);

		times[key][counts[key]++] = time_us;
		if (!row(&e, time_us, keys[key]))
			tap_ok(false, "%s: no row is late", name);
		if (i % 6000 == 5999)
			e.w = saved_and_loaded(e.w, e.agg, 1, &opt);
		uint64_t open = wm_sessions_open_count(e.w);
		open_most = open > open_most ? open : open_most;
	}
	advance(e.w, e.agg, 1, WM_TIME_END, &e.out);
	struct model_session *all = model_many(times, counts, e.gap, &sessions_count);
	struct wm_span rest = wm_buf_span(&e.out);
	for (size_t i = 0; i < sessions_count; i++) {
		const struct model_session *m = &all[i];

		wm_buf_reset(&want);
		wm_buf_addf(&want, "%lld %lld %s %zu ", (long long)m->start_us, (long long)m->end_us, keys[m->key],
			m->count);
		bool is_same = rest.len >= want.len && memcmp(rest.data, want.data, want.len) == 0;
		const char *end = rest.len == 0 ? NULL : memchr(rest.data, '\n', rest.len);
		size_t len = end == NULL ? rest.len : (size_t)(end + 1 - rest.data);
		differing += !is_same;
		rest = wm_span(rest.data + len, rest.len - len);
	}
	tap_ok(differing == 0 && rest.len == 0 && open_most > 2000,
		"%s: %zu sessions, %d of them open at once, as the model", name, sessions_count, (int)open_most);
	tap_ok(wm_sessions_bytes(e.w) < 1 << 20, "%s: all their memory is given back", name);
	free(all);
	wm_sessions_free(e.w);
	wm_agg_free(e.agg);
	wm_buf_release(&e.out);
	wm_buf_release(&want);
}

/* A long stream: sessions come and go with long texts, one key's never ends. Memory stays where it was early on. */
static void
test_memory(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,last:t,min:t,p50:v"), &err);
	struct wm_sessions *w = wm_sessions_new(agg, 1, WM_MODE_APPEND, NULL, false);
	char key[16], text[200];
	uint64_t seed = 9;
	size_t early = 0, late = 0;
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 120000; i++) {
		int64_t time_us = i * 10 - (int64_t)(tap_random(&seed) % 500), missed, watermark_us = i * 10 - 5000;
		uint64_t user = tap_random(&seed) % 2000;
		struct wm_value key_value = {
			wm_span(key, (size_t)snprintf(key, sizeof(key), "user-%d", i % 20 == 0 ? 0 : (int)user)),
			WM_KIND_TEXT
		};
		struct wm_value values[2] = { { wm_span(text, 20 + tap_random(&seed) % 180), WM_KIND_TEXT },
			{ wm_span(key + 5, key_value.text.len - 5), WM_KIND_TEXT } };
		struct wm_reading readings[2];

		memset(text, 'a' + (int)(seed % 20), sizeof(text));
		wm_reading_take(&readings[0], &values[0]);
		wm_reading_take(&readings[1], &values[1]);
		if (wm_sessions_due_us(w) <= watermark_us) {
			wm_buf_reset(&out);
			advance(w, agg, 1, watermark_us, &out);
		}
		const struct wm_window_record record = { time_us, watermark_us, i * 10, &key_value, readings };
		wm_sessions_add(w, &record, 1000, &missed);
		size_t bytes = wm_sessions_bytes(w);
		if (i < 30000 && bytes > early)
			early = bytes;
		if (i >= 30000 && bytes > late)
			late = bytes;
	}
	tap_ok(late < early * 11 / 10, "memory stays flat over a long stream (%zu bytes at most early, %zu late)",
		early, late);
	size_t before = wm_sessions_bytes(w);
	wm_buf_reset(&out);
	advance(w, agg, 1, WM_TIME_END, &out);
	tap_ok(wm_sessions_open_count(w) == 0 && wm_sessions_bytes(w) < before / 3,
		"and goes with the sessions (%zu of %zu)", wm_sessions_bytes(w), before);
	wm_sessions_free(w);
	wm_agg_free(agg);
	wm_buf_release(&out);
}

#define BRIDGED 2000

/*
 * Bytes of state after sessions of one value each were bridged to one: from the first on to the right, or from the last on to the
 * left. A session that is merged leaves its texts and values in memory that others share, so what is copied again and
 * again is seen here.
 */
static size_t
bridged_bytes(bool is_to_right)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("distinct:v"), &err);
	struct wm_sessions *w = wm_sessions_new(agg, 1, WM_MODE_APPEND, NULL, false);
	struct wm_value key = { wm_span_of("k"), WM_KIND_TEXT };

	for (int i = 0; i < 2 * BRIDGED; i++) {
		int at = i - BRIDGED;
		int64_t time_us = i < BRIDGED ? i * 20 : (is_to_right ? at : BRIDGED - 1 - at) * 20 + 10, missed;
		char text[16];
		struct wm_value field = { wm_span(text, (size_t)snprintf(text, sizeof(text), "%d", i)), WM_KIND_TEXT };
		struct wm_reading reading;

		wm_reading_take(&reading, &field);
		(void)wm_sessions_add(w,
			&(struct wm_window_record){
				.event_time_us = time_us,
				.highest_time_us = BRIDGED * 20,
				.watermark_us = WM_TIME_NONE,
				.keys = &key,
				.readings = &reading,
			},
			12, &missed);
	}
	bool is_one = wm_sessions_open_count(w) == 1;
	size_t bytes = is_one ? wm_sessions_bytes(w) : SIZE_MAX;
	wm_sessions_free(w);
	wm_agg_free(agg);
	return bytes;
}

static void
test_bridged_bytes(void)
{
	size_t left = bridged_bytes(false), right = bridged_bytes(true);

	tap_ok(left < SIZE_MAX && right <= 2 * left,
		"sessions bridged to the right copy no more than to the left (%zu, %zu)", right, left);
}

/* Every prefix of a state is refused, and a state in which any byte was changed is refused or decoded, never more. */
static void
test_hostile_state(void)
{
	struct wm_err err;
	struct wm_agg *agg = wm_agg_parse(wm_span_of("count,max:v"), &err);
	const struct wm_pane_options panes = { .allowed_lateness_us = 50, .is_discarding = true, .early_rows = 2 };
	struct wm_value keys[2] = { { wm_span_of("k"), WM_KIND_TEXT }, { wm_span("", 0), WM_KIND_NULL } };
	struct wm_value field = { wm_span_of("a text that is too long for its cell"), WM_KIND_TEXT };
	struct wm_reading reading;
	struct wm_buf bytes, out;
	struct wm_get in;
	int64_t missed;
	uint64_t seed = 5;
	bool is_refused = true;

	struct wm_sessions *w = wm_sessions_new(agg, 2, WM_MODE_APPEND, &panes, false);
	wm_reading_take(&reading, &field);
	for (int64_t time_us = 0; time_us < 500; time_us += 37) {
		const struct wm_window_record record = { time_us, 120, time_us, keys, &reading };

		keys[0].text = wm_span_of(time_us % 2 != 0 ? "k" : "l");
		wm_sessions_add(w, &record, 10, &missed);
	}
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_sessions_encode(w, &bytes);
	wm_sessions_free(w);
	for (size_t len = 0; len < bytes.len; len++) {
		w = wm_sessions_new(agg, 2, WM_MODE_APPEND, &panes, false);
		wm_get_init(&in, wm_span(bytes.data, len));
		is_refused = is_refused && !wm_sessions_decode(w, &in);
		wm_sessions_free(w);
	}
	tap_ok(is_refused, "every state that is cut short is refused");
	bytes.data[7] = 0x40; /* the watermark */
	w = wm_sessions_new(agg, 2, WM_MODE_APPEND, &panes, false);
	wm_get_init(&in, wm_buf_span(&bytes));
	tap_ok(!wm_sessions_decode(w, &in), "so is one with sessions that its watermark has passed");
	wm_sessions_free(w);
	bytes.data[7] = 0;
	for (int i = 0; i < 3000; i++) {
		size_t at = tap_random(&seed) % bytes.len;
		char kept = bytes.data[at];

		bytes.data[at] = (char)tap_random(&seed);
		w = wm_sessions_new(agg, 2, WM_MODE_APPEND, &panes, false);
		wm_get_init(&in, wm_buf_span(&bytes));
		if (wm_sessions_decode(w, &in)) {
			wm_buf_reset(&out);
			advance(w, agg, 2, 300, &out);
			advance(w, agg, 2, WM_TIME_END, &out);
		}
		wm_sessions_free(w);
		bytes.data[at] = kept;
	}
	tap_ok(true, "3000 corrupt states end in nothing worse than a refusal");
	wm_agg_free(agg);
	wm_buf_release(&bytes);
	wm_buf_release(&out);
}

int
main(void)
{
	test_bridge();
	test_touching();
	test_own_span();
	test_reopened();
	test_counts();
	test_models();
	test_many(NULL, "many sessions of a key");
	test_many(&(struct wm_pane_options){ .allowed_lateness_us = 500 }, "and kept for late rows");
	test_memory();
	test_bridged_bytes();
	test_hostile_state();
	return tap_done();
}
