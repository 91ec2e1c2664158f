/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/join.h"

#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

#define LEFT WM_JOIN_LEFT
#define RIGHT WM_JOIN_RIGHT
#define COLUMNS_MAX 2
#define TEXTS 9
#define ROWS 900
#define OUT_MAX 400000
#define NOBODY -1

/* Values of which some are the same bytes of another kind, and some run into each other where they are joined. */
static struct wm_value texts[TEXTS];
static char long_text[100];

static void
fill_texts(void)
{
	memset(long_text, 'x', sizeof(long_text));
	texts[0] = (struct wm_value){ wm_span_of("1"), WM_KIND_TEXT };
	texts[1] = (struct wm_value){ wm_span_of("1"), WM_KIND_NUMBER };
	texts[2] = (struct wm_value){ wm_span("", 0), WM_KIND_TEXT };
	texts[3] = (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
	texts[4] = (struct wm_value){ wm_span_of("\0011"), WM_KIND_TEXT };
	texts[5] = (struct wm_value){ wm_span_of("true"), WM_KIND_BOOL };
	texts[6] = (struct wm_value){ wm_span_of("true"), WM_KIND_TEXT };
	texts[7] = (struct wm_value){ wm_span(long_text, 90), WM_KIND_TEXT };
	texts[8] = (struct wm_value){ wm_span(long_text, 100), WM_KIND_JSON };
}

/*
 * The model: all rows that ever came, of which every pair is looked at. What matches does not depend on what is held;
 * what is held is said apart, by the rules as they stand in the header.
 */
struct row {
	enum wm_join_side side;
	int64_t time_us;
	struct wm_value keys[COLUMNS_MAX];
	bool is_null;
	bool is_matched;
	bool has_left; /* it was due when it came, or has been since; or it left at its match */
};

/* A row that comes out: numbers of rows, or NOBODY. */
struct pair {
	int rows[WM_JOIN_SIDES];
};

struct model {
	struct wm_join_options options;
	int64_t watermarks_us[WM_JOIN_SIDES];
	struct row rows[ROWS];
	int count;
	struct pair out[OUT_MAX]; /* what has come out since it was looked at last */
	size_t out_count;
};

static struct model model;

/* What the random streams have come by. */
static struct {
	uint64_t pairs, lonely[WM_JOIN_SIDES], late, held_max, resumed;
} seen;

static bool
is_preserved(enum wm_join_side side)
{
	enum wm_join_type type = model.options.type;

	if (side == RIGHT)
		return type == WM_JOIN_RIGHT_OUTER || type == WM_JOIN_FULL_OUTER;
	return type == WM_JOIN_LEFT_OUTER || type == WM_JOIN_FULL_OUTER || type == WM_JOIN_ANTI;
}

static bool
is_matchless(void)
{
	return model.options.type == WM_JOIN_SEMI || model.options.type == WM_JOIN_ANTI;
}

static int64_t
window_of(int64_t time_us)
{
	int64_t size_us = model.options.size_us, number = time_us / size_us;

	return number - (time_us < number * size_us);
}

static bool
same_key(const struct row *a, const struct row *b)
{
	for (size_t i = 0; i < model.options.keys_count; i++)
		if (!wm_span_equal(a->keys[i].text, b->keys[i].text))
			return false;
	return !a->is_null && !b->is_null;
}

static bool
times_match(int64_t left_us, int64_t right_us)
{
	const struct wm_join_options *o = &model.options;
	int64_t distance_us = right_us - left_us;

	if (o->condition == WM_JOIN_TUMBLING)
		return window_of(left_us) == window_of(right_us);
	if (o->condition == WM_JOIN_AS_OF)
		return distance_us <= 0 && (!o->has_tolerance || -distance_us <= o->tolerance_us);
	return (o->low.is_open || distance_us > o->low.us || (distance_us == o->low.us && !o->low.is_strict)) &&
		(o->high.is_open || distance_us < o->high.us || (distance_us == o->high.us && !o->high.is_strict));
}

/* Whether no row of the other side can match a row any more, by the watermarks. */
static bool
is_over(const struct row *row)
{
	const struct wm_join_options *o = &model.options;
	int64_t watermark_us = model.watermarks_us[1 - row->side], own_us = model.watermarks_us[row->side];
	const struct wm_join_end *end = row->side == LEFT ? &o->high : &o->low;

	if (o->is_spark && own_us < watermark_us)
		watermark_us = own_us;
	if (watermark_us == WM_TIME_NONE || watermark_us == WM_TIME_END)
		return watermark_us == WM_TIME_END;
	if (o->condition == WM_JOIN_TUMBLING)
		return watermark_us >= (window_of(row->time_us) + 1) * o->size_us;
	if (o->condition == WM_JOIN_AS_OF)
		return watermark_us > row->time_us;
	if (end->is_open)
		return false;
	int64_t last_us = row->time_us + (row->side == LEFT ? end->us : -end->us);
	if (end->is_strict)
		return watermark_us >= last_us;
	if (!o->is_spark)
		return watermark_us > last_us;
	bool is_equality = !o->low.is_open && !o->high.is_open && !o->low.is_strict && !o->high.is_strict &&
		o->low.us == 0 && o->high.us == 0;
	return watermark_us >= last_us + (is_equality ? 0 : 1000);
}

static bool
model_is_late(const struct row *row)
{
	int64_t watermark_us = model.watermarks_us[row->side];

	if (watermark_us == WM_TIME_NONE)
		return false;
	if (!model.options.is_spark)
		return row->time_us < watermark_us;
	if (model.options.condition == WM_JOIN_TUMBLING)
		return (window_of(row->time_us) + 1) * model.options.size_us <= watermark_us;
	return row->time_us <= watermark_us;
}

static void
put_out(int left, int right)
{
	if (model.out_count == OUT_MAX)
		abort();
	model.out[model.out_count++] = (struct pair){ { left, right } };
	seen.pairs += left != NOBODY && right != NOBODY;
	seen.lonely[LEFT] += right == NOBODY;
	seen.lonely[RIGHT] += left == NOBODY;
}

/* By time, left before right, then as they came. */
static int
compare_numbers(const void *a, const void *b)
{
	int number_a = *(const int *)a, number_b = *(const int *)b;
	const struct row *row_a = &model.rows[number_a], *row_b = &model.rows[number_b];

	if (row_a->time_us != row_b->time_us)
		return row_a->time_us < row_b->time_us ? -1 : 1;
	if (row_a->side != row_b->side)
		return row_a->side == LEFT ? -1 : 1;
	return number_a < number_b ? -1 : 1;
}

/* As-of: the answer of a left row, of all right rows there ever were. */
static int
nearest(const struct row *left)
{
	int best = NOBODY;

	for (int i = 0; i < model.count; i++) {
		const struct row *right = &model.rows[i];

		if (right->side == RIGHT && same_key(left, right) && times_match(left->time_us, right->time_us) &&
			(best == NOBODY || right->time_us >= model.rows[best].time_us))
			best = i;
	}
	return best;
}

static void
put_lonely(int number)
{
	const struct row *row = &model.rows[number];
	int right = model.options.condition == WM_JOIN_AS_OF ? nearest(row) : NOBODY;

	if (right != NOBODY)
		put_out(number, right);
	else if (!row->is_matched && is_preserved(row->side))
		put_out(row->side == LEFT ? number : NOBODY, row->side == LEFT ? NOBODY : number);
}

/* What the watermarks let go. */
static void
model_leave(void)
{
	static int leaving[ROWS];
	size_t count = 0;

	for (int i = 0; i < model.count; i++) {
		struct row *row = &model.rows[i];

		if (row->has_left || !is_over(row) || (model.options.condition == WM_JOIN_AS_OF && row->side == RIGHT))
			continue;
		row->has_left = true;
		leaving[count++] = i;
	}
	qsort(leaving, count, sizeof(leaving[0]), compare_numbers);
	for (size_t i = 0; i < count; i++)
		put_lonely(leaving[i]);
}

/* The last row has come, is not late and not ignored. */
static void
model_take(void)
{
	static int matches[ROWS];
	size_t count = 0;
	int number = model.count - 1;
	struct row *row = &model.rows[number];
	enum wm_join_type type = model.options.type;

	for (int i = 0; i < number && model.options.condition != WM_JOIN_AS_OF; i++) {
		const struct row *other = &model.rows[i];
		const struct row *left = row->side == LEFT ? row : other, *right = row->side == LEFT ? other : row;

		if (other->side != row->side && same_key(row, other) && times_match(left->time_us, right->time_us) &&
			!(is_matchless() && left->is_matched))
			matches[count++] = i;
	}
	qsort(matches, count, sizeof(matches[0]), compare_numbers);
	if (is_matchless() && row->side == LEFT && count > 1)
		count = 1;
	for (size_t i = 0; i < count; i++) {
		struct row *other = &model.rows[matches[i]];

		row->is_matched = other->is_matched = true;
		if (is_matchless())
			(row->side == LEFT ? row : other)->has_left = true;
		if (type != WM_JOIN_ANTI)
			put_out(row->side == LEFT ? number : matches[i], row->side == LEFT ? matches[i] : number);
	}
	if (model.options.condition == WM_JOIN_AS_OF && row->side == RIGHT)
		return;
	if (!row->has_left && is_over(row)) {
		row->has_left = true;
		put_lonely(number);
	}
}

/* As-of: whether a right row can be the answer of a left row that is held or will come. */
static bool
is_needed(int number, int64_t from_us)
{
	const struct row *row = &model.rows[number];

	if (from_us == WM_TIME_END ||
		(model.options.has_tolerance && from_us != WM_TIME_NONE &&
			row->time_us + model.options.tolerance_us < from_us))
		return false;
	for (int i = 0; i < model.count; i++) {
		const struct row *other = &model.rows[i];

		if (other->side == RIGHT && same_key(row, other) &&
			((other->time_us == row->time_us && i > number) ||
				(other->time_us > row->time_us && other->time_us <= from_us)))
			return false;
	}
	return true;
}

static uint64_t
model_held(enum wm_join_side side)
{
	int64_t from_us = model.watermarks_us[LEFT];
	bool is_as_of_right = model.options.condition == WM_JOIN_AS_OF && side == RIGHT;
	uint64_t count = 0;

	if (is_as_of_right && (from_us != WM_TIME_END || model_held(LEFT) != 0) && model.watermarks_us[RIGHT] < from_us)
		from_us = model.watermarks_us[RIGHT];
	for (int i = 0; i < model.count; i++)
		if (model.rows[i].side == side)
			count += is_as_of_right ? is_needed(i, from_us) : !model.rows[i].has_left;
	return count;
}

#define BYTES_MAX 64

/* The bytes of a row: its number, then as many more as that says. */
static struct wm_span
bytes_of(int number, char *bytes)
{
	memset(bytes, 'a' + number % 26, BYTES_MAX);
	memcpy(bytes, &number, sizeof(number));
	return wm_span(bytes, sizeof(number) + (size_t)number % (BYTES_MAX - sizeof(number)));
}

static bool
is_side(const struct wm_join_row *got, enum wm_join_side side, int want)
{
	char bytes[BYTES_MAX];

	if (want == NOBODY || !got->has[side])
		return want == NOBODY && !got->has[side] && got->bytes[side].len == 0;
	return got->times_us[side] == model.rows[want].time_us &&
		wm_span_equal(got->bytes[side], bytes_of(want, bytes));
}

/* Drains the operator: it gives what the model has put out, in that order, and holds what the model holds. */
static bool
drain(struct wm_join *join)
{
	struct wm_join_row row;
	size_t at = 0;

	for (; wm_join_next(join, &row); at++)
		if (at == model.out_count || !is_side(&row, LEFT, model.out[at].rows[LEFT]) ||
			!is_side(&row, RIGHT, model.out[at].rows[RIGHT])) {
			printf("#   row %d: what came out as number %zu of %zu is another\n", model.count - 1, at,
				model.out_count);
			return false;
		}
	if (at != model.out_count) {
		printf("#   row %d: %zu came out, want %zu\n", model.count - 1, at, model.out_count);
		return false;
	}
	model.out_count = 0;
	struct wm_join_counts counts = wm_join_counts(join);
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		/* As-of: every pair of right rows is looked at. */
		if (model.options.condition == WM_JOIN_AS_OF && s == RIGHT && model.count > 100 &&
			model.count % 16 != 0)
			continue;
		uint64_t held = model_held(s);

		if (held > seen.held_max)
			seen.held_max = held;
		if (counts.rows[s] != held || counts.added[s] - counts.removed[s] != held) {
			printf("#   row %d: %" PRIu64 " held on side %d, want %" PRIu64 "\n", model.count - 1,
				counts.rows[s], (int)s, held);
			return false;
		}
	}
	return true;
}

static struct wm_join *
resumed(struct wm_join *join, const struct wm_join_options *options)
{
	struct wm_join *again = wm_join_new(options);
	struct wm_buf bytes, bytes_again;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&bytes_again, WM_BUF_UNBOUNDED);
	wm_join_encode(join, &bytes);
	wm_get_init(&in, wm_buf_span(&bytes));
	bool ok = wm_join_decode(again, &in) && wm_get_left(&in) == 0;
	if (ok)
		wm_join_encode(again, &bytes_again);
	if (!ok || !wm_span_equal(wm_buf_span(&bytes), wm_buf_span(&bytes_again))) {
		wm_join_free(again);
		again = NULL;
	}
	wm_buf_release(&bytes);
	wm_buf_release(&bytes_again);
	wm_join_free(join);
	seen.resumed++;
	return again;
}

/* How watermarks reach the operator: where it asks for them, with the record alone, or at the end of a batch. */
enum pace { WHEN_DUE, WITH_RECORD, IN_BATCHES };

static bool
advance(struct wm_join *join, enum pace pace, enum wm_join_side side, int64_t watermark_us)
{
	if (watermark_us <= model.watermarks_us[side])
		return true;
	bool is_due = wm_join_due_us(join, side) <= watermark_us;
	model.watermarks_us[side] = watermark_us;
	model_leave();
	if (pace == WITH_RECORD)
		return true;
	if (pace == WHEN_DUE && !is_due) {
		if (model.out_count != 0)
			printf("#   row %d: what is due is not asked for\n", model.count - 1);
		return model.out_count == 0;
	}
	wm_join_advance(join, side, watermark_us);
	return pace == IN_BATCHES || drain(join);
}

static bool
add(struct wm_join *join, enum wm_join_side side, int64_t time_us, const struct wm_value *keys)
{
	struct row *row = &model.rows[model.count];
	char bytes[BYTES_MAX];
	bool is_ignored;

	*row = (struct row){ .side = side, .time_us = time_us };
	for (size_t i = 0; i < model.options.keys_count; i++) {
		row->keys[i] = keys[i];
		row->is_null = row->is_null || keys[i].kind == WM_KIND_NULL;
	}
	is_ignored = row->is_null && !is_preserved(side);
	if (wm_join_ignores(join, side, keys) != is_ignored) {
		printf("#   row %d: ignored, or not\n", model.count);
		return false;
	}
	struct wm_join_record record = { time_us, model.watermarks_us[side], keys, bytes_of(model.count, bytes) };
	bool is_late = model_is_late(row) && !(model.options.is_spark && is_ignored);
	seen.late += is_late;
	if ((wm_join_add(join, side, &record) == WM_JOIN_LATE) != is_late) {
		printf("#   row %d: late, or not\n", model.count);
		return false;
	}
	/* Numbers stay those of the rows that count. */
	model.count += !is_late && !is_ignored;
	if (!is_late && !is_ignored)
		model_take();
	return drain(join);
}

struct stream {
	int64_t delays_us[WM_JOIN_SIDES];
	int64_t nows_us[WM_JOIN_SIDES];
	int64_t highest_us[WM_JOIN_SIDES];
	bool has_watermark[WM_JOIN_SIDES];
	int64_t unit_us, spread, step;
	unsigned texts_count;
};

static int64_t
watermark_of(const struct stream *stream, enum wm_join_side side)
{
	if (!stream->has_watermark[side] || stream->highest_us[side] == WM_TIME_NONE)
		return WM_TIME_NONE;
	return stream->highest_us[side] - stream->delays_us[side];
}

/* The end of a batch: both sides at once, with spark one watermark. */
static bool
end_batch(struct wm_join *join, const struct stream *stream)
{
	int64_t watermarks_us[WM_JOIN_SIDES] = { watermark_of(stream, LEFT), watermark_of(stream, RIGHT) };

	if (model.options.is_spark && stream->has_watermark[LEFT] && stream->has_watermark[RIGHT])
		watermarks_us[LEFT] = watermarks_us[RIGHT] =
			watermarks_us[LEFT] < watermarks_us[RIGHT] ? watermarks_us[LEFT] : watermarks_us[RIGHT];
	/* What leaves is put out once, of both sides. */
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++)
		if (watermarks_us[s] > model.watermarks_us[s]) {
			model.watermarks_us[s] = watermarks_us[s];
			wm_join_advance(join, s, watermarks_us[s]);
		}
	model_leave();
	return drain(join);
}

static void
begin_stream(struct stream *stream, uint64_t *seed)
{
	stream->unit_us = tap_random(seed) % 2 == 0 ? 1 : 500;
	stream->spread = 1 + (int64_t)(tap_random(seed) % 60);
	stream->step = 1 + (int64_t)(tap_random(seed) % 6);
	stream->texts_count = 1 + (unsigned)(tap_random(seed) % TEXTS);
	for (enum wm_join_side s = LEFT; s <= RIGHT; s++) {
		stream->nows_us[s] = -700 * stream->unit_us + (int64_t)(tap_random(seed) % 40) * stream->unit_us;
		stream->delays_us[s] = (int64_t)(tap_random(seed) % 80) * stream->unit_us;
		stream->highest_us[s] = WM_TIME_NONE;
		stream->has_watermark[s] = tap_random(seed) % 10 != 0;
	}
}

/* Two random sides, one now and then far ahead of the other, against the model; resumed on the way. */
static bool
run(const struct wm_join_options *options, uint64_t seed, struct wm_buf *bytes)
{
	struct wm_join *join = wm_join_new(options);
	enum pace pace = (enum pace)(tap_random(&seed) % 3);
	unsigned batch = 1 + (unsigned)(tap_random(&seed) % 20), lead = 128;
	int rows = 50 + (int)(tap_random(&seed) % (ROWS - 50));
	int64_t ended = (int64_t)(tap_random(&seed) % 4 == 0 ? tap_random(&seed) % (uint64_t)rows : UINT32_MAX);
	enum wm_join_side ended_side = (enum wm_join_side)(tap_random(&seed) % 2);
	struct stream stream;
	bool ok = true;

	begin_stream(&stream, &seed);
	model.options = *options;
	model.count = 0;
	model.out_count = 0;
	model.watermarks_us[LEFT] = model.watermarks_us[RIGHT] = WM_TIME_NONE;
	for (int i = 0; i < rows && ok; i++) {
		struct wm_value keys[COLUMNS_MAX];

		if (tap_random(&seed) % 30 == 0)
			lead = (unsigned)(tap_random(&seed) % 256);
		enum wm_join_side side = tap_random(&seed) % 256 < lead ? LEFT : RIGHT;
		if (i == ended)
			ok = advance(join, WHEN_DUE, ended_side, WM_TIME_END);
		if (i >= ended && side == ended_side)
			side = 1 - side;
		stream.nows_us[side] += (int64_t)(tap_random(&seed) % (uint64_t)stream.step) * stream.unit_us;
		int64_t time_us =
			stream.nows_us[side] - (int64_t)(tap_random(&seed) % (uint64_t)stream.spread) * stream.unit_us;
		for (size_t column = 0; column < options->keys_count; column++)
			keys[column] = texts[tap_random(&seed) % stream.texts_count];
		if (time_us > stream.highest_us[side])
			stream.highest_us[side] = time_us;
		if (ok && tap_random(&seed) % 3 == 0)
			wm_join_foresee(join, keys);
		if (pace != IN_BATCHES)
			ok = ok && advance(join, pace, side, watermark_of(&stream, side));
		ok = ok && add(join, side, time_us, keys);
		if (ok && pace == IN_BATCHES && (unsigned)i % batch == 0)
			ok = end_batch(join, &stream);
		if (ok && tap_random(&seed) % 150 == 0) {
			join = resumed(join, options);
			if (join == NULL) {
				printf("#   row %d: what was encoded is refused, or another\n", i);
				return false;
			}
		}
	}
	if (bytes != NULL)
		wm_join_encode(join, bytes);
	if (ok && tap_random(&seed) % 2 == 0)
		ok = advance(join, WHEN_DUE, RIGHT, WM_TIME_END);
	for (enum wm_join_side s = LEFT; s <= RIGHT && ok; s++) {
		model.watermarks_us[s] = WM_TIME_END;
		wm_join_advance(join, s, WM_TIME_END);
	}
	model_leave();
	ok = ok && drain(join) && model_held(LEFT) + model_held(RIGHT) == 0;
	ok = ok && wm_join_due_us(join, LEFT) == WM_TIME_END && wm_join_due_us(join, RIGHT) == WM_TIME_END;
	wm_join_free(join);
	return ok;
}

static struct wm_join_end
random_end(uint64_t *seed)
{
	int64_t unit_us = tap_random(seed) % 2 == 0 ? 1 : 500;

	return (struct wm_join_end){ .us = ((int64_t)(tap_random(seed) % 60) - 30) * unit_us,
		.is_open = tap_random(seed) % 8 == 0,
		.is_strict = tap_random(seed) % 3 == 0 };
}

static struct wm_join_options
random_options(uint64_t *seed, enum wm_join_type type, enum wm_join_condition condition)
{
	struct wm_join_options options = {
		.type = type,
		.condition = condition,
		.low = random_end(seed),
		.high = random_end(seed),
		.size_us = 1 + (int64_t)(tap_random(seed) % (tap_random(seed) % 2 == 0 ? 40 : 20000)),
		.has_tolerance = tap_random(seed) % 2 == 0,
		.tolerance_us = (int64_t)(tap_random(seed) % (tap_random(seed) % 2 == 0 ? 40 : 20000)),
		.keys_count = tap_random(seed) % (COLUMNS_MAX + 1),
		.is_spark = tap_random(seed) % 4 == 0,
	};

	if (options.high.us < options.low.us && tap_random(seed) % 16 != 0) {
		int64_t low_us = options.high.us;

		options.high.us = options.low.us;
		options.low.us = low_us;
	}
	if (tap_random(seed) % 5 == 0)
		options.low.us = options.high.us = tap_random(seed) % 2 == 0 ? 0 : options.low.us;
	return options;
}

static const char *const type_names[] = { "inner", "left", "right", "full", "semi", "anti" };
static const char *const condition_names[] = { "between", "tumbling", "as-of" };

static bool
is_defined(enum wm_join_type type, enum wm_join_condition condition)
{
	return condition != WM_JOIN_AS_OF || type == WM_JOIN_INNER || type == WM_JOIN_LEFT_OUTER;
}

static void
test_random(void)
{
	for (enum wm_join_condition condition = WM_JOIN_BETWEEN; condition <= WM_JOIN_AS_OF; condition++)
		for (enum wm_join_type type = WM_JOIN_INNER; type <= WM_JOIN_ANTI; type++) {
			uint64_t seed = 100 * (uint64_t)condition + (uint64_t)type;
			bool ok = true, is_lonely = is_defined(type, condition);

			if (!is_defined(type, condition))
				continue;
			memset(&seen, 0, sizeof(seen));
			for (int i = 0; i < 80 && ok; i++) {
				struct wm_join_options options = random_options(&seed, type, condition);

				ok = run(&options, tap_random(&seed), NULL);
			}
			tap_ok(ok, "%s, %s: 80 random streams are what nested loops make of them", type_names[type],
				condition_names[condition]);
			model.options.type = type;
			is_lonely = (!is_preserved(LEFT) || seen.lonely[LEFT] > 1000) &&
				(!is_preserved(RIGHT) || seen.lonely[RIGHT] > 1000);
			if (!tap_ok((type == WM_JOIN_ANTI || seen.pairs > 1000) && is_lonely && seen.late > 1000 &&
					    seen.held_max > 100 && seen.resumed > 100,
				    "with matches, rows without, late rows and states to go on from"))
				printf("#   %" PRIu64 " pairs, %" PRIu64 " left, %" PRIu64 " right, %" PRIu64
				       " late, %" PRIu64 " held, %" PRIu64 " resumed\n",
					seen.pairs, seen.lonely[LEFT], seen.lonely[RIGHT], seen.late, seen.held_max,
					seen.resumed);
		}
}

static struct wm_join_options
any_options(uint64_t *seed)
{
	for (;;) {
		enum wm_join_type type = (enum wm_join_type)(tap_random(seed) % 6);
		enum wm_join_condition condition = (enum wm_join_condition)(tap_random(seed) % 3);

		if (is_defined(type, condition))
			return random_options(seed, type, condition);
	}
}

/* The same stream under another secret. */
static void
test_secret(void)
{
	uint64_t seed = 5;
	bool is_same = true;

	for (int i = 0; i < 30; i++) {
		struct wm_join_options options = any_options(&seed);
		uint64_t stream = tap_random(&seed), kept = wm_hash_secret[0];
		struct wm_buf bytes[2];

		for (int run_number = 0; run_number < 2; run_number++) {
			wm_buf_init(&bytes[run_number], WM_BUF_UNBOUNDED);
			wm_hash_secret[0] = kept + (uint64_t)run_number;
			is_same = run(&options, stream, &bytes[run_number]) && is_same;
		}
		wm_hash_secret[0] = kept;
		is_same = is_same && wm_span_equal(wm_buf_span(&bytes[0]), wm_buf_span(&bytes[1]));
		wm_buf_release(&bytes[0]);
		wm_buf_release(&bytes[1]);
	}
	tap_ok(is_same, "the bytes of the state do not depend on the secret of the hash");
}

/* A secret of zeros gives most texts one hash: then keys are told apart by what they are. */
static void
test_collisions(void)
{
	uint64_t seed = 8, kept[4];
	bool ok = true;

	memcpy(kept, wm_hash_secret, sizeof(kept));
	memset(wm_hash_secret, 0, sizeof(kept));
	for (int i = 0; i < 60 && ok; i++) {
		struct wm_join_options options = any_options(&seed);

		ok = run(&options, tap_random(&seed), NULL);
	}
	memcpy(wm_hash_secret, kept, sizeof(kept));
	tap_ok(ok, "60 random streams where keys share their hash");
}

/* Rows by hand: a name that begins with its key, and ends with what tells it from others. */
static enum wm_join_verdict
give(struct wm_join *join, enum wm_join_side side, int64_t time_us, int64_t watermark_us, const char *name)
{
	static struct wm_value keys[COLUMNS_MAX]; /* borrowed until all is drained */

	for (size_t i = 0; i < COLUMNS_MAX; i++)
		keys[i] = *name == '-' ? (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL }
				       : (struct wm_value){ wm_span(name, 1), WM_KIND_TEXT };
	struct wm_join_record record = { time_us, watermark_us, keys, wm_span_of(name) };

	return wm_join_add(join, side, &record);
}

/* What comes out: "l1+r1 l2+ +r2". */
static const char *
drained(struct wm_join *join)
{
	static char text[400];
	struct wm_join_row row;
	size_t len = 0;

	while (wm_join_next(join, &row)) {
		if (len != 0)
			text[len++] = ' ';
		memcpy(text + len, row.bytes[LEFT].len == 0 ? "" : row.bytes[LEFT].data, row.bytes[LEFT].len);
		len += row.bytes[LEFT].len;
		text[len++] = '+';
		memcpy(text + len, row.bytes[RIGHT].len == 0 ? "" : row.bytes[RIGHT].data, row.bytes[RIGHT].len);
		len += row.bytes[RIGHT].len;
	}
	text[len] = '\0';
	return text;
}

static const char *
given(struct wm_join *join, enum wm_join_side side, int64_t time_us, const char *name)
{
	return give(join, side, time_us, WM_TIME_NONE, name) == WM_JOIN_LATE ? "late" : drained(join);
}

static const char *
advanced(struct wm_join *join, enum wm_join_side side, int64_t watermark_us)
{
	wm_join_advance(join, side, watermark_us);
	return drained(join);
}

static struct wm_join *
between(enum wm_join_type type, int64_t low_us, int64_t high_us, bool is_spark)
{
	return wm_join_new(&(struct wm_join_options){ .type = type,
		.low = { .us = low_us },
		.high = { .us = high_us },
		.keys_count = 1,
		.is_spark = is_spark });
}

static void
test_edges(void)
{
	struct wm_join *join = between(WM_JOIN_FULL_OUTER, -2, 5, false);

	tap_int(wm_join_due_us(join, RIGHT), WM_TIME_END, "nothing is due where nothing is held");
	tap_text(given(join, LEFT, 100, "a1"), "", "left at 100");
	tap_int(wm_join_due_us(join, RIGHT), 106, "it is due when the right watermark is past 105");
	tap_text(given(join, RIGHT, 97, "a2"), "", "right at 97 is before its range");
	tap_text(given(join, RIGHT, 98, "a3"), "a1+a3", "at 98 it matches");
	tap_text(given(join, RIGHT, 105, "a4"), "a1+a4", "and at 105");
	tap_text(given(join, RIGHT, 106, "a5"), "", "at 106 it does not");
	tap_text(given(join, RIGHT, 100, "b1"), "", "nor does another key");
	tap_text(given(join, LEFT, 100, "-1"), "", "nor a null key");
	tap_text(given(join, RIGHT, 100, "-2"), "", "of either side");
	tap_text(advanced(join, RIGHT, 105), "", "a right watermark of 105 lets nothing go");
	tap_text(advanced(join, RIGHT, 106), "-1+", "106 the left rows at 100, of which one had no match");
	tap_int((int64_t)wm_join_counts(join).rows[LEFT], 0, "no left row is held");
	tap_int(give(join, RIGHT, 105, WM_TIME_NONE, "c1"), WM_JOIN_LATE, "right at 105 is late");
	tap_int(wm_join_due_us(join, LEFT), 100, "right at 97 is due when the left watermark is past 99");
	tap_text(advanced(join, LEFT, 100), "+a2", "and leaves then");
	tap_text(given(join, LEFT, 100, "c2"), "c2+", "what can have no match when it comes is written at once");
	tap_int((int64_t)wm_join_counts(join).added[LEFT], 2, "and not taken in");
	tap_text(given(join, LEFT, 103, "a6"), "a6+a4 a6+a5", "matches come by time");
	wm_join_advance(join, LEFT, WM_TIME_END);
	tap_text(advanced(join, RIGHT, WM_TIME_END), "+b1 +-2", "at the end all goes, by time, as they came");
	wm_join_free(join);

	join = wm_join_new(&(struct wm_join_options){ .type = WM_JOIN_FULL_OUTER,
		.low = { .us = 0, .is_strict = true },
		.high = { .us = 5, .is_strict = true },
		.keys_count = 1 });
	given(join, LEFT, 100, "a1");
	tap_text(given(join, RIGHT, 100, "a2"), "", "strict: right at 100 is outside");
	tap_text(given(join, RIGHT, 101, "a3"), "a1+a3", "at 101 inside");
	tap_text(given(join, RIGHT, 105, "a4"), "", "at 105 outside");
	tap_int(wm_join_due_us(join, LEFT), 100, "right at 100 is due at 100");
	tap_text(advanced(join, LEFT, 99), "", "not at 99");
	tap_text(advanced(join, LEFT, 100), "+a2", "and leaves then");
	tap_text(advanced(join, RIGHT, 105), "", "left has had its match");
	tap_int((int64_t)wm_join_counts(join).rows[LEFT], 0, "and leaves at 105");
	wm_join_free(join);

	join = wm_join_new(&(struct wm_join_options){
		.type = WM_JOIN_FULL_OUTER, .condition = WM_JOIN_TUMBLING, .size_us = 10, .keys_count = 1 });
	given(join, LEFT, -1, "a1");
	tap_text(given(join, RIGHT, 0, "a2"), "", "windows: -1 and 0 are in two");
	tap_text(given(join, RIGHT, -10, "a3"), "a1+a3", "-1 and -10 in one");
	given(join, LEFT, -2, "b1");
	tap_int(wm_join_due_us(join, RIGHT), 0, "left at -2 is due when its window ends");
	tap_text(advanced(join, RIGHT, -1), "", "not before");
	tap_text(advanced(join, RIGHT, 0), "b1+", "and leaves then");
	wm_join_free(join);

	join = between(WM_JOIN_SEMI, 0, 5, false);
	given(join, LEFT, 10, "a1");
	given(join, LEFT, 8, "a2");
	tap_text(given(join, RIGHT, 11, "a3"), "a2+a3 a1+a3", "semi: both left rows at their first match");
	tap_text(given(join, RIGHT, 12, "a4"), "", "once");
	tap_int((int64_t)wm_join_counts(join).rows[LEFT], 0, "then they have left");
	tap_text(given(join, LEFT, 9, "a5"), "a5+a3", "one that finds several comes with the first");
	tap_text(advanced(join, RIGHT, WM_TIME_END), "", "without a match none does");
	wm_join_free(join);

	join = between(WM_JOIN_ANTI, 0, 5, false);
	given(join, LEFT, 10, "a1");
	given(join, LEFT, 8, "b1");
	tap_text(given(join, RIGHT, 11, "a3"), "", "anti: a match is silent");
	tap_int((int64_t)wm_join_counts(join).rows[LEFT], 1, "and the left row has left");
	tap_text(given(join, LEFT, 9, "a5"), "", "as does one that finds a match");
	tap_text(advanced(join, RIGHT, 13), "", "the other waits");
	tap_text(advanced(join, RIGHT, 14), "b1+", "until none can come");
	wm_join_free(join);

	join = between(WM_JOIN_INNER, 0, 5, false);
	tap_text(given(join, LEFT, INT64_MIN + 1, "a1"), "", "the ends of time: the first");
	tap_text(given(join, RIGHT, INT64_MAX - 1, "a2"), "", "the last");
	tap_text(given(join, LEFT, INT64_MAX - 1, "a3"), "a3+a2", "which match themselves");
	tap_text(given(join, RIGHT, INT64_MIN + 1, "a4"), "a1+a4", "alone");
	tap_text(advanced(join, RIGHT, INT64_MAX - 1), "", "a watermark near the end");
	tap_int((int64_t)wm_join_counts(join).rows[LEFT], 1, "keeps what is near it");
	wm_join_free(join);
}

static void
test_as_of(void)
{
	struct wm_join_options options = { .type = WM_JOIN_LEFT_OUTER, .condition = WM_JOIN_AS_OF, .keys_count = 1 };
	struct wm_join *join = wm_join_new(&options);

	given(join, LEFT, 100, "a1");
	given(join, RIGHT, 100, "a2");
	given(join, RIGHT, 90, "a3");
	given(join, RIGHT, 100, "a4");
	given(join, LEFT, 99, "a5");
	given(join, LEFT, 80, "b1");
	tap_int((int64_t)wm_join_counts(join).rows[RIGHT], 2, "as-of: one right row a time is kept");
	tap_int(wm_join_due_us(join, RIGHT), 81, "left at 80 is due when the right watermark is past it");
	tap_text(advanced(join, RIGHT, 100), "b1+ a5+a3", "what the right watermark has passed is written");
	tap_text(advanced(join, RIGHT, 101), "a1+a4", "the last at one time is the answer");
	tap_int((int64_t)wm_join_counts(join).rows[RIGHT], 2, "left rows that need 90 may come");
	tap_text(advanced(join, LEFT, 100), "", "until the left watermark is at 100");
	tap_int((int64_t)wm_join_counts(join).rows[RIGHT], 1, "then 100 is all that is needed");
	tap_text(given(join, LEFT, 100, "a6"), "a6+a4", "a row that need not wait is written at once");
	tap_text(advanced(join, RIGHT, 1000), "", "without tolerance a right row");
	tap_text(advanced(join, LEFT, 1000), "", "stays for ever");
	tap_text(given(join, LEFT, 999999, "a7"), "", "and however far back it is");
	tap_text(advanced(join, RIGHT, WM_TIME_END), "a7+a4", "it is the answer");
	tap_text(advanced(join, LEFT, WM_TIME_END), "", "until the end of both sides");
	tap_int((int64_t)wm_join_counts(join).rows[RIGHT], 0, "lets it go");
	wm_join_free(join);

	options.type = WM_JOIN_INNER;
	options.has_tolerance = true;
	options.tolerance_us = 10;
	join = wm_join_new(&options);
	given(join, RIGHT, 100, "a1");
	given(join, LEFT, 110, "a2");
	given(join, LEFT, 111, "a3");
	tap_text(advanced(join, RIGHT, 200), "a2+a1", "tolerance 10: 110 has 100 for an answer, 111 none");
	advanced(join, LEFT, 110);
	tap_int((int64_t)wm_join_counts(join).rows[RIGHT], 1, "it stays while the left watermark is at 110");
	advanced(join, LEFT, 111);
	tap_int((int64_t)wm_join_counts(join).rows[RIGHT], 0, "and goes at 111");
	given(join, LEFT, 210, "a4");
	advanced(join, LEFT, WM_TIME_END);
	given(join, RIGHT, 205, "a5");
	tap_int((int64_t)wm_join_counts(join).added[RIGHT], 2, "while left rows are held, right rows are taken in");
	tap_text(advanced(join, RIGHT, 211), "a4+a5", "also when the left side has ended");
	tap_int((int64_t)wm_join_counts(join).rows[RIGHT], 0, "with the last of them they go");
	given(join, RIGHT, 220, "a6");
	tap_int((int64_t)wm_join_counts(join).added[RIGHT], 2, "and none are taken in any more");
	wm_join_free(join);
}

static void
test_spark(void)
{
	struct wm_join *join = between(WM_JOIN_LEFT_OUTER, 0, 10, true);

	tap_int(give(join, LEFT, 0, 0, "a1"), WM_JOIN_LATE, "spark: at the watermark is late");
	tap_int(give(join, RIGHT, 0, 0, "-1"), WM_JOIN_USED, "but not what disappears before it is judged");
	given(join, LEFT, 5, "a2");
	tap_int(wm_join_due_us(join, RIGHT), 1015, "an inclusive end leaves a millisecond later");
	tap_text(advanced(join, RIGHT, 1015), "", "not by one watermark");
	tap_text(advanced(join, LEFT, 1015), "a2+", "but by both");
	tap_text(given(join, LEFT, 1016, "a3"), "", "1016 is held");
	wm_join_free(join);

	join = between(WM_JOIN_LEFT_OUTER, 0, 0, true);
	given(join, LEFT, 5, "a1");
	wm_join_advance(join, LEFT, 5);
	tap_text(advanced(join, RIGHT, 5), "a1+", "spark: with equal times a row leaves at its time");
	wm_join_free(join);

	join = between(WM_JOIN_INNER, -5, -3, true);
	wm_join_advance(join, LEFT, 4000);
	advanced(join, RIGHT, 4000);
	given(join, LEFT, 4001, "a1");
	tap_int((int64_t)wm_join_counts(join).rows[LEFT], 1, "spark: held while it is not due");
	wm_join_free(join);
	join = between(WM_JOIN_INNER, -5000, -3000, true);
	wm_join_advance(join, LEFT, 4000);
	advanced(join, RIGHT, 4000);
	given(join, LEFT, 4001, "a1");
	tap_int((int64_t)wm_join_counts(join).rows[LEFT], 0, "not where it is due as it comes");
	tap_int((int64_t)wm_join_counts(join).removed[LEFT], 1, "which counts as taken in and removed");
	wm_join_free(join);

	join = wm_join_new(&(struct wm_join_options){ .type = WM_JOIN_INNER,
		.condition = WM_JOIN_TUMBLING,
		.size_us = 10,
		.keys_count = 1,
		.is_spark = true });
	wm_join_advance(join, LEFT, 15);
	tap_int(give(join, LEFT, 11, WM_TIME_NONE, "a1"), WM_JOIN_USED,
		"spark: a row whose window is open is not late");
	drained(join);
	tap_int(give(join, LEFT, 9, WM_TIME_NONE, "a1"), WM_JOIN_LATE, "one whose window is complete is");
	wm_join_free(join);

	struct wm_join_options options = { .low.is_open = true };
	tap_ok(!wm_join_is_bounded(&options, RIGHT) && wm_join_is_bounded(&options, LEFT),
		"an open end bounds the other side alone");
	options.condition = WM_JOIN_AS_OF;
	tap_ok(!wm_join_is_bounded(&options, RIGHT) && wm_join_is_bounded(&options, LEFT),
		"as-of without tolerance keeps right rows");
}

/*
 * A key with very many rows, of which each matches few, or at which each leaves: without places found by time this takes
 * minutes. Times are in the order in which putting in costs most.
 */
static void
test_hot_key(void)
{
	enum { HOT = 300000 };
	struct wm_join *join = between(WM_JOIN_LEFT_OUTER, 0, 1, false);
	uint64_t pairs = 0, lonely = 0;
	struct wm_join_row row;
	bool ok = true;

	for (int i = 0; i < 2 * HOT; i++) {
		struct wm_value key = { wm_span_of("a"), WM_KIND_TEXT };
		struct wm_join_record record = { i < HOT ? -4 * i : -4 * (2 * HOT - 1 - i), WM_TIME_NONE, &key,
			wm_span_of("bytes of a row") };

		ok = wm_join_add(join, i < HOT ? LEFT : RIGHT, &record) == WM_JOIN_USED && ok;
		while (wm_join_next(join, &row))
			pairs++;
	}
	tap_ok(ok && pairs == HOT, "300000 rows a side of one key, each with one match");
	size_t bytes = wm_join_bytes(join);
	if (!tap_ok(bytes < 2 * HOT * (14 + 106), "take less than 106 bytes each beside their own"))
		printf("#   %zu bytes\n", bytes / (2 * HOT));
	for (int i = HOT; i >= 0; i--) {
		wm_join_advance(join, RIGHT, -4 * i);
		while (wm_join_next(join, &row))
			lonely++;
	}
	tap_int((int64_t)wm_join_counts(join).rows[LEFT], 1, "all but one leave by the watermark");
	wm_join_advance(join, LEFT, WM_TIME_END);
	wm_join_advance(join, RIGHT, WM_TIME_END);
	while (wm_join_next(join, &row))
		lonely++;
	tap_int((int64_t)lonely, 0, "none of them without a match");
	tap_ok(wm_join_bytes(join) < 10000, "and what they took is given back");
	wm_join_free(join);

	/* All at one time, of which none match. */
	join = between(WM_JOIN_ANTI, 1, 1, false);
	for (int i = 0; i < 2 * HOT; i++) {
		struct wm_value key = { wm_span_of("a"), WM_KIND_TEXT };
		struct wm_join_record record = { 7, WM_TIME_NONE, &key, wm_span_of("bytes of a row") };

		wm_join_add(join, i % 2 == 0 ? LEFT : RIGHT, &record);
		while (wm_join_next(join, &row))
			pairs++;
	}
	tap_int((int64_t)pairs, HOT, "300000 rows a side of one time, of which none match");
	wm_join_free(join);
}

static void
drain_unseen(struct wm_join *join)
{
	struct wm_join_row row;

	while (wm_join_next(join, &row))
		continue;
}

/* A steady stream of rows of 16 bytes: what is held is what the range needs. */
static void
test_memory(void)
{
	static const enum wm_join_type types[] = { WM_JOIN_INNER, WM_JOIN_FULL_OUTER, WM_JOIN_SEMI, WM_JOIN_ANTI };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct wm_join *join = between(types[i], -500000, 500000, false);
		size_t steady = 0;
		char text[24];

		for (int64_t at = 1; at <= 200000; at++) {
			snprintf(text, sizeof(text), "%016" PRId64, types[i] == WM_JOIN_SEMI ? at / 2 * 2 : at);
			struct wm_value key = { wm_span_of(text), WM_KIND_TEXT };
			struct wm_join_record record = { at * 100, at * 100, &key, wm_span_of(text) };

			wm_join_add(join, at % 2 == 0 ? LEFT : RIGHT, &record);
			drain_unseen(join);
			if (wm_join_bytes(join) > steady)
				steady = wm_join_bytes(join);
		}
		/* 5 000 are held at any time, of keys of their own. */
		if (!tap_ok(steady < 5000 * 320, "%s: memory is bounded by the range, not by the length of the stream",
			    type_names[types[i]]))
			printf("#   %zu bytes\n", steady);
		wm_join_free(join);
	}
}

/* What is taken can be written and taken again, and used. */
static bool
decodes(const struct wm_join_options *options, struct wm_span bytes, bool *is_sound)
{
	struct wm_join *join = wm_join_new(options);
	struct wm_get in;

	wm_get_init(&in, bytes);
	bool ok = wm_join_decode(join, &in);
	if (ok)
		join = resumed(join, options);
	*is_sound = *is_sound && join != NULL;
	if (join == NULL)
		return ok;
	if (ok) {
		give(join, LEFT, 100, 50, "a");
		drain_unseen(join);
		give(join, RIGHT, 100, 50, "a");
		drain_unseen(join);
		wm_join_advance(join, LEFT, WM_TIME_END);
		wm_join_advance(join, RIGHT, WM_TIME_END);
		drain_unseen(join);
		*is_sound = *is_sound && wm_join_counts(join).rows[LEFT] + wm_join_counts(join).rows[RIGHT] == 0;
	}
	wm_join_free(join);
	return ok;
}

static void
put_row(struct wm_buf *out, uint64_t arrival, int64_t time_us, uint8_t what, const char *key)
{
	wm_put_varint(out, arrival);
	wm_put_i64(out, time_us);
	wm_put_u8(out, what);
	if ((what & 2) != 0)
		wm_put_span(out, wm_span_of(key));
	wm_put_span(out, wm_span_of("row"));
}

static void
test_hostile(void)
{
	static const struct {
		const char *name;
		enum wm_join_type type;
		enum wm_join_condition condition;
		uint64_t added;
		uint64_t arrivals[2];
		int64_t time_us;
		uint8_t what;
		bool is_good;
	} cases[] = {
		{ "two left rows", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 0, 1 }, 60, 2, true },
		{ "more rows than were taken in", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 1, { 0, 1 }, 60, 2, false },
		{ "an arrival that has not been", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 0, 2 }, 60, 2, false },
		{ "the same arrival twice", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 1, 1 }, 60, 2, false },
		{ "more arrivals than there can be", WM_JOIN_INNER, WM_JOIN_BETWEEN, UINT64_C(1) << 48, { 0, 1 }, 60, 2,
			false },
		{ "rows that have left", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 0, 1 }, 39, 2, false },
		{ "rows at the bound", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 0, 1 }, 40, 2, true },
		{ "rows at the end of time", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 0, 1 }, INT64_MAX, 2, false },
		{ "rows that have matched", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 0, 1 }, 60, 3, true },
		{ "where that does not matter", WM_JOIN_INNER, WM_JOIN_BETWEEN, 2, { 0, 1 }, 60, 3, false },
		{ "where they have left then", WM_JOIN_ANTI, WM_JOIN_BETWEEN, 2, { 0, 1 }, 60, 3, false },
		{ "rows of a null key", WM_JOIN_ANTI, WM_JOIN_BETWEEN, 2, { 0, 1 }, 60, 0, true },
		{ "that have matched", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 0, 1 }, 60, 1, false },
		{ "that are never held", WM_JOIN_SEMI, WM_JOIN_BETWEEN, 2, { 0, 1 }, 60, 0, false },
		{ "rows of no known kind", WM_JOIN_LEFT_OUTER, WM_JOIN_BETWEEN, 2, { 0, 1 }, 60, 6, false },
		{ "as-of rows", WM_JOIN_LEFT_OUTER, WM_JOIN_AS_OF, 2, { 0, 1 }, 60, 2, true },
		{ "that have matched", WM_JOIN_LEFT_OUTER, WM_JOIN_AS_OF, 2, { 0, 1 }, 60, 3, false },
	};
	struct wm_buf bytes;
	uint64_t seed = 1;
	bool ok = true, is_sound = true;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wm_join_options options = {
			.type = cases[i].type, .condition = cases[i].condition, .high = { .us = 10 }, .keys_count = 1
		};

		wm_buf_reset(&bytes);
		wm_put_i64(&bytes, 30);
		wm_put_i64(&bytes, 50);
		wm_put_varint(&bytes, cases[i].added);
		wm_put_varint(&bytes, 2);
		for (size_t row = 0; row < 2; row++)
			put_row(&bytes, cases[i].arrivals[row], cases[i].time_us, cases[i].what, "a");
		wm_put_varint(&bytes, 1);
		wm_put_varint(&bytes, 1);
		put_row(&bytes, 0, 55, 2, "a");
		tap_ok(decodes(&options, wm_buf_span(&bytes), &is_sound) == cases[i].is_good, "%s: %s", cases[i].name,
			cases[i].is_good ? "taken" : "refused");
	}
	/* A key of two columns: length and text of each. */
	static const struct {
		const char *key;
		bool is_good;
	} keys[] = { { "\1a\1b", true }, { "\1a\2b", false }, { "\1a", false }, { "\1a\1bc", false } };
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct wm_join_options options = { .keys_count = 2 };

		wm_buf_reset(&bytes);
		wm_put_i64(&bytes, WM_TIME_NONE);
		wm_put_i64(&bytes, WM_TIME_NONE);
		wm_put_varint(&bytes, 1);
		wm_put_varint(&bytes, 1);
		put_row(&bytes, 0, 60, 2, keys[i].key);
		wm_put_varint(&bytes, 0);
		wm_put_varint(&bytes, 0);
		tap_ok(decodes(&options, wm_buf_span(&bytes), &is_sound) == keys[i].is_good, "a key of %zu bytes: %s",
			strlen(keys[i].key), keys[i].is_good ? "taken" : "refused");
	}
	for (size_t i = 0; i < 12; i++) {
		struct wm_join_options options = any_options(&seed);

		options.keys_count = 1 + i % 2;
		wm_buf_reset(&bytes);
		ok = run(&options, tap_random(&seed), &bytes) && ok;
		for (size_t len = 0; len < bytes.len && ok; len += 1 + len / 64)
			ok = !decodes(&options, wm_span(bytes.data, len), &is_sound);
		ok = ok && decodes(&options, wm_buf_span(&bytes), &is_sound);
		for (int change = 0; change < 300; change++) {
			size_t at = tap_random(&seed) % bytes.len;
			char before = bytes.data[at];

			bytes.data[at] = (char)tap_random(&seed);
			decodes(&options, wm_buf_span(&bytes), &is_sound);
			bytes.data[at] = before;
		}
	}
	tap_ok(ok, "states cut short are refused at any length");
	tap_ok(is_sound, "bytes changed at random are refused, or make a state that can be used and written again");
	wm_buf_release(&bytes);
}

int
main(void)
{
	fill_texts();
	test_edges();
	test_as_of();
	test_spark();
	test_random();
	test_secret();
	test_collisions();
	test_hot_key();
	test_memory();
	test_hostile();
	return tap_done();
}
