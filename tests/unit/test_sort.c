/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/sort.h"

#include <stdlib.h>

#include "lib/event/combine.h"
#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

#define ROWS 4000
#define MANY 200000
#define SOURCES 4
#define BYTES_MAX 40

/* A record of the model; its number is that of its arrival. */
struct row {
	int64_t time_us;
	uint32_t source;
	uint32_t number;
};

static int
compare_rows(const void *a, const void *b)
{
	const struct row *row_a = a, *row_b = b;

	if (row_a->time_us != row_b->time_us)
		return row_a->time_us < row_b->time_us ? -1 : 1;
	if (row_a->source != row_b->source)
		return row_a->source < row_b->source ? -1 : 1;
	return (row_a->number > row_b->number) - (row_a->number < row_b->number);
}

/* The bytes of a record: its number, then as many more as that says. One in 500 is larger than what memory is taken in. */
static char long_bytes[100000];

static struct wm_span
bytes_of(uint32_t number)
{
	memcpy(long_bytes, &number, sizeof(number));
	return wm_span(long_bytes, number % 500 == 499 ? sizeof(long_bytes) : sizeof(number) + number % BYTES_MAX);
}

static bool
is_row(const struct wm_sort_record *got, const struct row *want)
{
	return got->event_time_us == want->time_us && got->source == want->source &&
		wm_span_equal(got->bytes, bytes_of(want->number));
}

static struct wm_sort *
resumed(struct wm_sort *sort, bool is_merging, bool is_spark)
{
	struct wm_sort *again = wm_sort_new(is_merging, is_spark);
	struct wm_buf bytes, bytes_again;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&bytes_again, WM_BUF_UNBOUNDED);
	wm_sort_encode(sort, &bytes);
	wm_get_init(&in, wm_buf_span(&bytes));
	bool ok = wm_sort_decode(again, &in) && wm_get_left(&in) == 0;
	wm_sort_encode(again, &bytes_again);
	if (!ok || !wm_span_equal(wm_buf_span(&bytes), wm_buf_span(&bytes_again))) {
		wm_sort_free(again);
		again = NULL;
	}
	wm_buf_release(&bytes);
	wm_buf_release(&bytes_again);
	wm_sort_free(sort);
	return again;
}

/* What the model holds, in order. */
struct model {
	struct row rows[ROWS];
	size_t count;
};

static void
model_add(struct model *model, struct row row)
{
	size_t at = model->count++;

	for (; at > 0 && compare_rows(&model->rows[at - 1], &row) > 0; at--)
		model->rows[at] = model->rows[at - 1];
	model->rows[at] = row;
}

/* Drains the operator; true if it gives the rows of the model up to a watermark and no other. */
static bool
drain(struct wm_sort *sort, struct model *model, int64_t watermark_us, bool is_strict)
{
	struct wm_sort_record record;
	size_t at = 0;

	while (wm_sort_next(sort, &record)) {
		const struct row *row = &model->rows[at];

		if (at == model->count || row->time_us > watermark_us || (is_strict && row->time_us == watermark_us) ||
			!is_row(&record, row)) {
			printf("#   watermark %" PRId64 ": got %" PRId64 " of source %u\n", watermark_us,
				record.event_time_us, (unsigned)record.source);
			return false;
		}
		at++;
	}
	model->count -= at;
	memmove(model->rows, model->rows + at, model->count * sizeof(model->rows[0]));
	if (model->count != 0 &&
		(model->rows[0].time_us < watermark_us || (!is_strict && model->rows[0].time_us == watermark_us))) {
		printf("#   watermark %" PRId64 ": kept %" PRId64 "\n", watermark_us, model->rows[0].time_us);
		return false;
	}
	return wm_sort_count(sort) == model->count;
}

/* A random stream; the watermark moves with each record or with each batch, or never. */
static bool
run(uint64_t seed)
{
	static struct model model;
	bool is_merging = tap_random(&seed) % 2 == 0, is_spark = tap_random(&seed) % 4 == 0, ok = true;
	struct wm_sort *sort = wm_sort_new(is_merging, is_spark);
	int64_t scale_us = INT64_C(1) << (tap_random(&seed) % 40),
		delay_us = scale_us * (int64_t)(tap_random(&seed) % 50);
	int64_t now_us = -scale_us * 100, highest_us = WM_TIME_NONE, watermark_us = WM_TIME_NONE;
	unsigned batch = 1 + (unsigned)(tap_random(&seed) % 2 * (tap_random(&seed) % 100));
	bool has_watermark = tap_random(&seed) % 8 != 0, has_far = tap_random(&seed) % 3 == 0;

	model.count = 0;
	for (uint32_t i = 0; i < ROWS && ok; i++) {
		/* In units of the scale: several at one time. */
		now_us += scale_us * (int64_t)(tap_random(&seed) % 3);
		struct row row = { now_us - scale_us * (int64_t)(tap_random(&seed) % 64), 0, i };
		if (tap_random(&seed) % 4 == 0)
			row.time_us += (int64_t)(tap_random(&seed) % 200);
		if (has_far && tap_random(&seed) % 40 == 0)
			row.time_us += (int64_t)(tap_random(&seed) >> (6 + tap_random(&seed) % 30));
		else if (row.time_us > highest_us)
			highest_us = row.time_us;
		if (is_merging)
			row.source =
				(uint32_t)(tap_random(&seed) % SOURCES) * (WM_SORT_SOURCES_MAX - 1) / (SOURCES - 1);
		if (has_watermark && batch == 1 && highest_us - delay_us > watermark_us) {
			watermark_us = highest_us - delay_us;
			/* Only where the operator asks for it, as a stream does. */
			if (wm_sort_due_us(sort) <= watermark_us) {
				wm_sort_advance(sort, watermark_us);
				ok = drain(sort, &model, watermark_us, is_merging);
			}
		}
		struct wm_sort_record record = { row.time_us, watermark_us, row.source, bytes_of(row.number) };
		bool is_late = row.time_us < watermark_us || (is_spark && row.time_us == watermark_us);
		ok = ok && (wm_sort_add(sort, &record) == WM_SORT_LATE) == is_late;
		if (!is_late)
			model_add(&model, row);
		if (batch == 1 && wm_sort_due_us(sort) <= watermark_us) {
			wm_sort_advance(sort, watermark_us);
			ok = ok && drain(sort, &model, watermark_us, is_merging);
		}
		if (has_watermark && batch > 1 && i % batch == 0 && highest_us - delay_us > watermark_us) {
			watermark_us = highest_us - delay_us;
			wm_sort_advance(sort, watermark_us);
			ok = ok && drain(sort, &model, watermark_us, is_merging);
		}
		/* Nothing is due that the operator does not ask for. */
		if (ok && batch == 1 && model.count != 0 &&
			(model.rows[0].time_us < watermark_us ||
				(!is_merging && model.rows[0].time_us == watermark_us))) {
			printf("#   row %u: what is due is not asked for\n", (unsigned)i);
			ok = false;
		}
		if (ok && tap_random(&seed) % 700 == 0) {
			sort = resumed(sort, is_merging, is_spark);
			ok = sort != NULL;
		}
	}
	if (sort == NULL)
		return false;
	wm_sort_advance(sort, WM_TIME_END);
	ok = ok && drain(sort, &model, WM_TIME_END, is_merging) && model.count == 0 && wm_sort_count(sort) == 0;
	ok = ok && wm_sort_due_us(sort) == WM_TIME_END;
	wm_sort_free(sort);
	return ok;
}

/* So many that shelves are sorted by digits; what qsort makes of them is the answer. */
static void
test_many(void)
{
	struct row *rows = malloc(MANY * sizeof(rows[0]));
	struct wm_sort *sort = wm_sort_new(true, false);
	uint64_t seed = 3, held_max = 0;
	int64_t highest_us = 0, delay_us = 50000000;
	size_t bytes_max = 0, at = 0;
	struct wm_sort_record record;
	bool ok = true;

	for (uint32_t i = 0; i < MANY; i++)
		rows[i] = (struct row){ (int64_t)i * 1000 - (int64_t)(tap_random(&seed) % 50000000),
			(uint32_t)(tap_random(&seed) % SOURCES), i };
	struct row *want = malloc(MANY * sizeof(want[0]));
	memcpy(want, rows, MANY * sizeof(want[0]));
	qsort(want, MANY, sizeof(want[0]), compare_rows);
	for (uint32_t i = 0; i < MANY && ok; i++) {
		char bytes[80] = { 0 };

		if (rows[i].time_us > highest_us)
			highest_us = rows[i].time_us;
		wm_sort_advance(sort, highest_us - delay_us);
		for (; ok && wm_sort_next(sort, &record); at++)
			ok = record.event_time_us == want[at].time_us && record.source == want[at].source &&
				memcmp(record.bytes.data, &want[at].number, sizeof(uint32_t)) == 0;
		memcpy(bytes, &rows[i].number, sizeof(uint32_t));
		record = (struct wm_sort_record){ rows[i].time_us, highest_us - delay_us, rows[i].source,
			wm_span(bytes, sizeof(bytes)) };
		ok = ok && wm_sort_add(sort, &record) == WM_SORT_HELD;
		if (wm_sort_bytes(sort) > bytes_max)
			bytes_max = wm_sort_bytes(sort);
		if (wm_sort_count(sort) > held_max)
			held_max = wm_sort_count(sort);
	}
	wm_sort_advance(sort, WM_TIME_END);
	for (; ok && wm_sort_next(sort, &record); at++)
		ok = record.event_time_us == want[at].time_us;
	tap_ok(ok && at == MANY, "200000 records within the delay leave as a sort puts them");
	if (!tap_ok(bytes_max < held_max * (80 + 60), "and take at most 60 bytes each beside their own"))
		printf("#   %zu bytes for %" PRIu64 "\n", bytes_max, held_max);
	wm_sort_free(sort);
	free(rows);
	free(want);
}

/* Inputs in order, read as the one that is furthest behind: what leaves, and how soon. */
static bool
merge(uint64_t seed)
{
	static struct row inputs[SOURCES][200], want[SOURCES * 200];
	size_t lens[SOURCES], next[SOURCES] = { 0 }, total = 0, at = 0;
	struct wm_sort *sort = wm_sort_new(true, false);
	struct wm_combine combine;
	struct wm_watermark none;
	struct wm_sort_record record;
	size_t source;
	bool ok = true;

	wm_watermark_init(&none, 0);
	wm_combine_init(&combine, WM_POLICY_MIN, 0);
	for (uint32_t i = 0; i < SOURCES; i++) {
		int64_t time_us = 0;

		wm_combine_add(&combine, &none, 0);
		lens[i] = tap_random(&seed) % 200;
		for (size_t row = 0; row < lens[i]; row++) {
			time_us += (int64_t)(tap_random(&seed) % 4);
			want[total] = inputs[i][row] = (struct row){ time_us, i, (uint32_t)total };
			total++;
		}
	}
	qsort(want, total, sizeof(want[0]), compare_rows);
	while (ok && wm_combine_lowest(&combine, &source)) {
		if (next[source] == lens[source]) {
			wm_combine_end(&combine, source);
		} else {
			const struct row *row = &inputs[source][next[source]++];

			record = (struct wm_sort_record){ row->time_us, WM_TIME_NONE, row->source,
				bytes_of(row->number) };
			ok = wm_sort_add(sort, &record) == WM_SORT_HELD;
			combine.sources[source].own.watermark_us = row->time_us;
			wm_combine_moved(&combine, source);
		}
		if (wm_combine_lowest(&combine, &source))
			wm_sort_advance_to(sort, combine.sources[source].own.watermark_us, (uint32_t)source);
		else
			wm_sort_advance(sort, WM_TIME_END);
		while (ok && wm_sort_next(sort, &record))
			ok = at < total && is_row(&record, &want[at++]);
		/* The next one waits for an input that could still have one before it. */
		bool waits = at == total;
		for (uint32_t i = 0; i < SOURCES && at < total; i++) {
			bool has_shown = next[i] > 0;
			const struct row *last = has_shown ? &inputs[i][next[i] - 1] : NULL;
			bool is_open = combine.sources[i].place != SIZE_MAX;

			if (i == want[at].source)
				waits = waits || !has_shown || compare_rows(last, &want[at]) < 0;
			else if (is_open)
				waits = waits || !has_shown || last->time_us < want[at].time_us ||
					(last->time_us == want[at].time_us && i < want[at].source);
		}
		ok = ok && waits;
	}
	wm_combine_release(&combine);
	wm_sort_free(sort);
	return ok && at == total;
}

static enum wm_sort_verdict
add(struct wm_sort *sort, int64_t time_us, uint32_t source, int64_t watermark_us, const char *text)
{
	const struct wm_sort_record record = { time_us, watermark_us, source, wm_span_of(text) };

	return wm_sort_add(sort, &record);
}

/* What leaves, one text behind the other. */
static const char *
leaving(struct wm_sort *sort)
{
	static char text[100];
	struct wm_sort_record record;
	size_t len = 0;

	while (wm_sort_next(sort, &record)) {
		memcpy(text + len, record.bytes.data, record.bytes.len);
		len += record.bytes.len;
	}
	text[len] = '\0';
	return text;
}

static void
test_edges(void)
{
	struct wm_sort *sort = wm_sort_new(false, false);

	tap_int(wm_sort_due_us(sort), WM_TIME_END, "nothing is due where nothing is held");
	add(sort, 5, 0, -10, "b");
	add(sort, 3, 0, -10, "a");
	add(sort, 5, 0, -10, "c");
	add(sort, 6, 0, -10, "d");
	tap_int(wm_sort_due_us(sort), 3, "one input: the earliest record is due at its time");
	wm_sort_advance(sort, 5);
	tap_text(leaving(sort), "abc", "at 5 what is not after it leaves, ties as they came");
	tap_int(add(sort, 4, 0, 5, "x"), WM_SORT_LATE, "what is behind the watermark is late");
	tap_int(add(sort, 5, 0, 5, "e"), WM_SORT_HELD, "what is at it is not");
	wm_sort_advance(sort, 5);
	tap_text(leaving(sort), "e", "and leaves at once");
	wm_sort_advance(sort, WM_TIME_END);
	tap_text(leaving(sort), "d", "at the end everything leaves");
	wm_sort_free(sort);

	sort = wm_sort_new(true, false);
	add(sort, 5, 1, 0, "b");
	tap_int(wm_sort_due_us(sort), 6, "several inputs: it is due when the watermark is past its time");
	wm_sort_advance(sort, 5);
	tap_text(leaving(sort), "", "so it stays at 5");
	add(sort, 5, 0, 5, "a");
	wm_sort_advance(sort, 6);
	tap_text(leaving(sort), "ab", "and the first source comes first");
	wm_sort_free(sort);

	sort = wm_sort_new(false, true);
	tap_int(add(sort, 5, 0, 5, "x"), WM_SORT_LATE, "spark: at the watermark is late");
	wm_sort_free(sort);

	/* Three inputs: a is empty, b has 1 and 3, c has 2, 10 and 1000. */
	sort = wm_sort_new(true, false);
	add(sort, 1, 1, WM_TIME_NONE, "1b ");
	add(sort, 2, 2, WM_TIME_NONE, "2c ");
	wm_sort_advance_to(sort, 1, 1);
	tap_text(leaving(sort), "1b ", "in order: 1b leaves when b and c have shown a record");
	add(sort, 3, 1, WM_TIME_NONE, "3b ");
	wm_sort_advance_to(sort, 2, 2);
	tap_text(leaving(sort), "2c ", "2c when b has shown 3");
	add(sort, 10, 2, WM_TIME_NONE, "10c ");
	wm_sort_advance_to(sort, 3, 1);
	tap_text(leaving(sort), "3b ", "3b when c has shown 10");
	wm_sort_advance_to(sort, 10, 2);
	tap_text(leaving(sort), "10c ", "10c when b has ended, not when c has");
	wm_sort_free(sort);

	sort = wm_sort_new(false, false);
	add(sort, INT64_MAX - 1, 0, WM_TIME_NONE, "b");
	add(sort, INT64_MIN + 1, 0, WM_TIME_NONE, "a");
	wm_sort_advance(sort, 0);
	tap_text(leaving(sort), "a", "the ends of time: the first");
	wm_sort_advance(sort, WM_TIME_END);
	tap_text(leaving(sort), "b", "and the last");
	wm_sort_free(sort);
}

static bool
decodes(struct wm_span bytes, bool *is_sound)
{
	struct wm_sort *sort = wm_sort_new(true, false);
	struct wm_sort_record record;
	struct wm_get in;
	int64_t before_us = WM_TIME_NONE;

	wm_get_init(&in, bytes);
	bool ok = wm_sort_decode(sort, &in);
	wm_sort_advance(sort, WM_TIME_END);
	while (wm_sort_next(sort, &record)) {
		*is_sound = *is_sound && record.event_time_us >= before_us;
		before_us = record.event_time_us;
	}
	*is_sound = *is_sound && (!ok || wm_sort_count(sort) == 0);
	wm_sort_free(sort);
	return ok;
}

static void
test_hostile(void)
{
	static const struct {
		const char *name;
		uint64_t arrivals;
		int64_t time_us;
		uint64_t source, arrival;
		bool is_good;
	} cases[] = {
		{ "two records", 3, 60, 65535, 2, true },
		{ "a record behind the watermark", 3, 49, 0, 2, false },
		{ "a source beyond the last", 3, 60, 65536, 2, false },
		{ "an arrival that has not been", 3, 60, 0, 3, false },
		{ "the same arrival twice", 3, 60, 0, 0, false },
		{ "more arrivals than there can be", UINT64_C(1) << 48, 60, 0, 2, false },
		{ "more records than ever arrived", 1, 60, 0, 1, false },
	};
	struct wm_buf bytes;
	uint64_t seed = 1;
	bool ok = true, is_sound = true;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wm_buf_reset(&bytes);
		wm_put_i64(&bytes, 50);
		wm_put_varint(&bytes, cases[i].arrivals);
		wm_put_varint(&bytes, 2);
		for (uint64_t record = 0; record < 2; record++) {
			wm_put_varint(&bytes, record * cases[i].arrival);
			wm_put_i64(&bytes, cases[i].time_us);
			wm_put_varint(&bytes, cases[i].source);
			wm_put_span(&bytes, wm_span_of("record"));
		}
		tap_ok(decodes(wm_buf_span(&bytes), &is_sound) == cases[i].is_good, "%s: %s", cases[i].name,
			cases[i].is_good ? "taken" : "refused");
	}
	struct wm_sort *sort = wm_sort_new(true, false);
	for (int i = 0; i < 100; i++)
		add(sort, (int64_t)(tap_random(&seed) % 1000), (uint32_t)i % 3, 0, "bytes of a record");
	wm_buf_reset(&bytes);
	wm_sort_encode(sort, &bytes);
	wm_sort_free(sort);
	for (size_t len = 0; len < bytes.len && ok; len++)
		ok = !decodes(wm_span(bytes.data, len), &is_sound);
	tap_ok(ok && decodes(wm_buf_span(&bytes), &is_sound), "a state cut short is refused at any length");
	for (int i = 0; i < 2000; i++) {
		size_t at = tap_random(&seed) % bytes.len;
		char before = bytes.data[at];

		bytes.data[at] = (char)tap_random(&seed);
		decodes(wm_buf_span(&bytes), &is_sound);
		bytes.data[at] = before;
	}
	tap_ok(is_sound, "bytes changed at random are refused, or leave in order all the same");
	wm_buf_release(&bytes);
}

int
main(void)
{
	uint64_t seed = 0, failed = UINT64_MAX;

	test_edges();
	for (; seed < 60 && failed == UINT64_MAX; seed++)
		if (!run(seed))
			failed = seed;
	if (!tap_ok(failed == UINT64_MAX, "60 random streams leave as a sorted list, resumed on the way"))
		printf("#   seed %" PRIu64 "\n", failed);
	failed = UINT64_MAX;
	for (seed = 0; seed < 200 && failed == UINT64_MAX; seed++)
		if (!merge(seed))
			failed = seed;
	if (!tap_ok(failed == UINT64_MAX,
		    "200 merges of inputs in order: sorted, and no record waits longer than it must"))
		printf("#   seed %" PRIu64 "\n", failed);
	test_many();
	test_hostile();
	return tap_done();
}
