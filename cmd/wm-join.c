/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wm-join - join two inputs in event time.
 *
 * Rows of two sides belong together where their keys are equal and their times
 * fit. Each side has a watermark of its own; a row is kept for as long as one of
 * the other side may still match it. See wm-join(1).
 */
#include "cmd/band.h"
#include "cmd/cli.h"
#include "cmd/explain.h"
#include "cmd/keep.h"
#include "cmd/matches.h"
#include "cmd/pairs.h"
#include "cmd/stream.h"
#include "cmd/windows.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/event/combine.h"
#include "lib/event/watermark.h"
#include "lib/op/join.h"
#include "lib/time/duration.h"
#include "lib/time/instant.h"

#include <string.h>

#define LEFT WM_JOIN_LEFT
#define RIGHT WM_JOIN_RIGHT
#define SIDES WM_JOIN_SIDES

struct options {
	struct cli_common common;
	int type; /* enum wm_join_type */
	const char *key;
	const char *side_key[SIDES];
	const char *side_time[SIDES];
	const char *side_delay[SIDES];
	const char *between;
	const char *tumbling;
	int as_of; /* -1: none; 0: backward */
	struct cli_duration tolerance;
	bool eager;
	const char *prefix;
	int stamp; /* enum stamp, or -1 */
};

enum stamp { STAMP_LATER, STAMP_LEFT, STAMP_RIGHT };

/* Drives parsing and --help; tests hold the man page and the completion to it. */
#define AT(field) offsetof(struct options, field)
static const struct cli_option table[] = {
	CLI_HEADING("Join"),
	{ 0, "type", "inner|left|right|full|semi|anti", "which rows are written (default inner)", CLI_CHOICE, AT(type),
		CLI_SCREEN },
	{ 'k', "key", "COLUMNS", "equal on both sides", CLI_COLUMNS, AT(key), CLI_SCREEN },
	{ 0, "left-key", "COLUMNS", "their names on the left, where not -k; and --right-key", CLI_COLUMNS,
		AT(side_key[LEFT]), CLI_SCREEN },
	{ 0, "right-key", "COLUMNS", "their names on the right", CLI_COLUMNS, AT(side_key[RIGHT]), CLI_ALL },
	{ 0, "between", "LO,HI", "right time from left time + LO to left time + HI", CLI_SPAN_LIST, AT(between),
		CLI_SCREEN },
	{ 0, "tumbling", "SIZE", "instead: both in the same window", CLI_SPAN_LIST, AT(tumbling), CLI_SCREEN },
	{ 0, "asof", "backward", "instead: with the last right row not after it", CLI_CHOICE, AT(as_of), CLI_SCREEN },
	{ 0, "tolerance", "D", "of --asof: a right row further back does not match", CLI_DURATION, AT(tolerance),
		CLI_ALL },
	{ 0, "left-time", "COLUMN", "event time of the left, where not -t; and --right-time", CLI_TIME,
		AT(side_time[LEFT]), CLI_SCREEN },
	{ 0, "right-time", "COLUMN", "event time of the right", CLI_TIME, AT(side_time[RIGHT]), CLI_ALL },
	{ 0, "left-delay", "D|none", "delay of the left, where not -w; and --right-delay", CLI_TEXT,
		AT(side_delay[LEFT]), CLI_SCREEN },
	{ 0, "right-delay", "D|none", "delay of the right", CLI_TEXT, AT(side_delay[RIGHT]), CLI_ALL },
	{ 0, "late-left", "FILE", "late rows of the left, as they came, header included", CLI_PATH,
		AT(common.late_path), CLI_SCREEN },
	{ 0, "late-right", "FILE", "late rows of the right", CLI_PATH, AT(common.late_right_path), CLI_SCREEN },
	{ 0, "eager", NULL, "process whichever side is ready, not the one that is behind", CLI_FLAG, AT(eager),
		CLI_ALL },
	{ 0, "prefix", "L,R", "of columns that both sides have (default: ,right_)", CLI_TEXT, AT(prefix), CLI_ALL },
	{ 0, "stamp", "later|left|right", "add _time and _watermark, for another wm tool", CLI_CHOICE, AT(stamp),
		CLI_ALL },
	CLI_END,
};
static const char *const without[] = { "order", "merge", "files0-from", "source", "sources", "idle", "idle-close",
	"ingest", "max-ahead", "late", NULL };
static const struct cli_tool tool = {
	.name = "wm-join",
	.summary = "join two inputs in event time",
	.usage = "[OPTION]... LEFT RIGHT",
	.examples = "wm-join -t time -w 5m -k id --between 0s,1h --type left orders.csv paid.csv\n"
		    "tail -n +1 -F a.csv | wm-join -t time -w 10s -k host --asof backward - b.csv",
	.options = table,
	.groups = CLI_GROUP_STREAM,
	.without = without,
	.takes_two = true,
};

/* A join that runs. */
struct joiner {
	const struct options *opt;
	struct wm_join_options options;
	struct wm_join *join;
	struct cli_common common[SIDES];
	struct stream *streams[SIDES];
	struct pairs *pairs;
	size_t keys_count;
	int64_t in_force_us[SIDES]; /* WM_TIME_NONE: there is none; WM_TIME_END: the side has ended */
	int64_t spark_before_us;    /* the one of both, of the batch before */
	bool is_closed[SIDES];      /* the stream has nothing more */
	bool is_idle[SIDES];
	bool is_bounded;
	int64_t hold_back_us;
	struct wm_instant_text time_text, watermark_text;
};

static void
misuse_of(const char *option, const struct wm_err *err)
{
	cli_misuse("%s: %s", option, err->message);
}

static void
parse_condition(struct joiner *j)
{
	const struct options *opt = j->opt;
	struct wm_join_options *options = &j->options;
	struct wm_err err;
	int given = (opt->between != NULL) + (opt->tumbling != NULL) + (opt->as_of >= 0);

	if (given > 1)
		cli_misuse("--between, --tumbling and --asof exclude each other");
	if (opt->tolerance.text != NULL && opt->as_of < 0)
		cli_misuse("--tolerance: is for --asof");
	options->type = (enum wm_join_type)opt->type;
	options->is_spark = opt->common.is_spark;
	options->low.is_open = options->high.is_open = true;
	if (opt->between != NULL) {
		if (!matches_read_between(options, opt->between, &err))
			misuse_of("--between", &err);
	} else if (opt->tumbling != NULL) {
		options->condition = WM_JOIN_TUMBLING;
		options->size_us = windows_grid_us("--tumbling", wm_span_of(opt->tumbling), &opt->common);
	} else if (opt->as_of >= 0) {
		options->condition = WM_JOIN_AS_OF;
		options->has_tolerance = opt->tolerance.text != NULL;
		options->tolerance_us = opt->tolerance.us;
		if (!matches_have_type(options))
			cli_misuse("--asof: is for --type inner and left");
	}
}

/* Rows that are written for want of a match wait for the end of their range. */
static void
check_bounds(struct joiner *j)
{
	if (!matches_come_to_an_end(&j->options))
		cli_misuse("--type %s: a row would wait for ever to be matched: bound its wait with --between LO,HI, "
			   "--tumbling SIZE or --asof backward",
			matches_types[j->options.type]);
	j->is_bounded = wm_join_is_bounded(&j->options, LEFT) && wm_join_is_bounded(&j->options, RIGHT);
}

/* How far behind the watermark the time of a result can be (wm-watermark(7), "In band"). */
static int64_t
hold_back_us(const struct joiner *j)
{
	const struct wm_join_options *o = &j->options;
	int stamp = j->opt->stamp;
	bool writes_unmatched = o->type != WM_JOIN_INNER && o->type != WM_JOIN_SEMI;

	if (stamp < 0)
		return 0;
	if (o->condition == WM_JOIN_AS_OF) {
		if (stamp != STAMP_RIGHT)
			return 0;
		if (!o->has_tolerance)
			cli_misuse("--stamp right: with --asof the right row may be of any time before: give "
				   "--tolerance D");
		return o->tolerance_us;
	}
	if (o->condition == WM_JOIN_TUMBLING)
		return stamp == STAMP_LATER && !writes_unmatched ? 0 : o->size_us;
	bool needs_high = stamp == STAMP_LEFT || writes_unmatched, needs_low = stamp == STAMP_RIGHT || writes_unmatched;
	if ((needs_high && o->high.is_open) || (needs_low && o->low.is_open))
		cli_misuse("--stamp: results may be of any time before: close the range with --between LO,HI");
	int64_t high_us = needs_high && o->high.us > 0 ? o->high.us : 0;
	int64_t low_us = needs_low && o->low.us < 0 ? -o->low.us : 0;
	return high_us > low_us ? high_us : low_us;
}

/* The options of one side. */
static void
set_side(struct joiner *j, enum wm_join_side side)
{
	static const char *const names[SIDES] = { "--left-delay", "--right-delay" };
	const struct options *opt = j->opt;
	struct cli_common *common = &j->common[side];
	const char *delay = opt->side_delay[side];
	struct wm_err err;

	*common = opt->common;
	common->files = opt->common.files + side;
	common->files_count = 1;
	if (opt->side_time[side] != NULL)
		common->time_column = opt->side_time[side];
	if (delay == NULL)
		return;
	common->delay = (struct cli_delay){ 0 };
	if (strcmp(delay, "none") == 0)
		return;
	if (!wm_duration_parse_fixed(wm_span_of(delay), &common->delay.us, &err))
		misuse_of(names[side], &err);
	if (common->delay.us < 0)
		cli_misuse("%s: '%s': a delay is not negative", names[side], delay);
	common->delay.text = delay;
}

/* A prefix of each side; an empty one is none. */
static void
parse_prefixes(const char *text, struct wm_buf *out, const char *prefixes[SIDES])
{
	struct wm_span rest = wm_span_of(text), left, right, more;

	if (!wm_list_next(&rest, ',', &left) || !wm_list_next(&rest, ',', &right) || wm_list_next(&rest, ',', &more))
		cli_misuse("--prefix: '%s': write L,R, as in left_,right_; one may be empty", text);
	if (wm_span_equal(left, right))
		cli_misuse("--prefix: '%s': both are the same: columns could not be told apart", text);
	wm_list_unescape(left, out);
	wm_buf_add_byte(out, '\0');
	size_t second = out->len;
	wm_list_unescape(right, out);
	wm_buf_add_byte(out, '\0');
	prefixes[LEFT] = out->data;
	prefixes[RIGHT] = out->data + second;
}

static void
check_options(const struct options *opt)
{
	if (opt->common.files_count != 2)
		cli_misuse("name two inputs, LEFT and RIGHT; one of them may be - for standard input");
	if (opt->key != NULL && (opt->side_key[LEFT] != NULL || opt->side_key[RIGHT] != NULL))
		cli_misuse("-k, or --left-key and --right-key: the keys have one name, or two");
	if ((opt->side_key[LEFT] == NULL) != (opt->side_key[RIGHT] == NULL))
		cli_misuse("--left-key and --right-key: give both");
	if (opt->common.policy != 0 && !opt->common.is_spark)
		cli_misuse("--policy: each side has its own watermark; one for both is for --compat spark");
	if (opt->eager && opt->common.idle_wall.text != NULL)
		cli_misuse("--eager and --idle-wall: nothing is waited for with --eager: give one of them");
}

/* Running */

/* Whether rows of the side are written that have no match. */
static bool
is_preserved(const struct joiner *j, enum wm_join_side side)
{
	enum wm_join_type type = j->options.type;

	return type == WM_JOIN_FULL_OUTER ||
		(side == LEFT ? type == WM_JOIN_LEFT_OUTER || type == WM_JOIN_ANTI : type == WM_JOIN_RIGHT_OUTER);
}

static bool
is_sharing_batches(const struct joiner *j)
{
	return j->opt->common.trigger_word == CLI_TRIGGER_COLUMN;
}

static bool
has_watermark(const struct joiner *j, enum wm_join_side side)
{
	return j->common[side].delay.text != NULL || stream_is_in_band(j->streams[side]);
}

/* The lower (or, by --policy, the greater) of both watermarks; of a side that has ended the other's. */
static int64_t
combined_us(const struct joiner *j)
{
	int64_t left_us = j->in_force_us[LEFT], right_us = j->in_force_us[RIGHT];

	/* In Spark the watermark of one side is that of the whole query. */
	for (enum wm_join_side side = LEFT; j->options.is_spark && side <= RIGHT; side++)
		if (!has_watermark(j, side))
			return j->in_force_us[1 - side];
	bool is_max = j->opt->common.policy == WM_POLICY_MAX && left_us != WM_TIME_END && right_us != WM_TIME_END;

	return is_max == (left_us > right_us) ? left_us : right_us;
}

/* The watermark of a side that the operator is told: with --compat spark there is one for both. */
static int64_t
told_us(const struct joiner *j, enum wm_join_side side)
{
	if (!j->options.is_spark || j->in_force_us[side] == WM_TIME_END || !has_watermark(j, side))
		return j->in_force_us[side];
	/* Where no row can leave, Spark runs no batch without data, and judges by the watermark of the batch before. */
	bool can_leave = has_watermark(j, LEFT) && has_watermark(j, RIGHT) &&
		(wm_join_is_bounded(&j->options, LEFT) || wm_join_is_bounded(&j->options, RIGHT));
	return can_leave || j->opt->common.trigger_word == CLI_TRIGGER_EACH ? combined_us(j) : j->spark_before_us;
}

static struct wm_value
watermark_value(struct joiner *j, int64_t watermark_us)
{
	bool is_any = watermark_us != WM_TIME_NONE && watermark_us != WM_TIME_END;

	return band_time(&j->watermark_text, &j->opt->common,
		is_any ? wm_time_sub(watermark_us, j->hold_back_us) : watermark_us);
}

/* Which time a result has: of a row without the side that was asked for that of the other. */
static int64_t
time_of(const struct joiner *j, const struct wm_join_row *row)
{
	const int64_t *times = row->times_us;

	if (!row->has[LEFT] || !row->has[RIGHT])
		return row->has[LEFT] ? times[LEFT] : times[RIGHT];
	if (j->opt->stamp == STAMP_LATER)
		return times[LEFT] > times[RIGHT] ? times[LEFT] : times[RIGHT];
	return times[j->opt->stamp == STAMP_LEFT ? LEFT : RIGHT];
}

/* Writes what comes out, which carries this watermark; true if anything did. */
static bool
drain(struct joiner *j, int64_t watermark_us)
{
	struct wm_value stamps[2];
	struct wm_join_row row;
	bool is_written = false;

	for (; wm_join_next(j->join, &row); is_written = true) {
		if (j->opt->stamp >= 0) {
			stamps[0] = band_time(&j->time_text, &j->opt->common, time_of(j, &row));
			stamps[1] = watermark_value(j, watermark_us);
		}
		pairs_put(j->pairs, &row, stamps);
		stream_count_row(j->streams[LEFT]);
	}
	return is_written;
}

static void
punctuate(struct joiner *j)
{
	int64_t watermark_us = combined_us(j);

	if (j->opt->stamp < 0 || watermark_us == WM_TIME_NONE || watermark_us == WM_TIME_END)
		return;
	struct wm_value value = watermark_value(j, watermark_us);
	pairs_put_punctuation(j->pairs, &value);
}

/* So many records ahead the memory that a record needs is asked for, which takes about as long as they do. */
#define FORESEEN_RECORDS 12

static inline void
foresee(struct joiner *j, enum wm_join_side side)
{
	struct wm_value keys[WM_KEYS_MAX];
	uint64_t number;

	if (j->keys_count != 0 && stream_foresee(j->streams[side], FORESEEN_RECORDS, keys, j->keys_count, &number))
		wm_join_foresee(j->join, keys);
}

static inline void
judge(struct joiner *j, enum wm_join_side side, const struct stream_row *row)
{
	struct stream *s = j->streams[side];
	struct wm_value keys[WM_KEYS_MAX];

	for (size_t i = 0; i < j->keys_count; i++)
		wm_value_copy(&keys[i], &row->readings[i].value);
	/* In a batch the watermark stays where it is. */
	if (!is_sharing_batches(j))
		j->in_force_us[side] = row->watermark_us;
	struct wm_join_record record = {
		.event_time_us = row->event_time_us,
		.watermark_us = told_us(j, side),
		.keys = keys,
		.bytes = pairs_keep(j->pairs, side, keys),
	};
	if (wm_join_add(j->join, side, &record) == WM_JOIN_LATE)
		stream_late(s, 0);
	else
		stream_used(s, 0);
	drain(j, combined_us(j));
	foresee(j, side);
}

/* The watermark of a side has moved, or it has ended. */
static void
advance(struct joiner *j, enum wm_join_side side, const struct stream_row *row)
{
	int64_t before_us = combined_us(j);

	j->spark_before_us = before_us;
	j->in_force_us[side] = row->watermark_us;
	if (j->options.is_spark)
		wm_join_advance(j->join, (enum wm_join_side)(1 - side), told_us(j, (enum wm_join_side)(1 - side)));
	wm_join_advance(j->join, side, told_us(j, side));
	bool is_batch = j->opt->common.trigger_word != CLI_TRIGGER_EACH;
	if (drain(j, before_us) || row->is_punctuated || (is_batch && combined_us(j) != before_us))
		punctuate(j);
}

static struct report_state
state_of(const struct joiner *j)
{
	struct wm_join_counts counts = wm_join_counts(j->join);
	uint64_t removed = 0;

	/* Of a side that is preserved Spark counts none. */
	for (enum wm_join_side side = LEFT; side <= RIGHT; side++)
		removed += j->options.is_spark && is_preserved(j, side) ? 0 : counts.removed[side];

	return (struct report_state){
		.groups = counts.rows[LEFT] + counts.rows[RIGHT],
		.updated = counts.added[LEFT] + counts.added[RIGHT],
		.removed = removed,
		.bytes = wm_join_bytes(j->join),
	};
}

/*
 * The next watermark of a side at which a row can leave. In Spark the one of both decides: with the lower of them a side that is ahead lets
 * nothing go by itself, and where one side has none nothing leaves before it has ended.
 */
static int64_t
due_us(const struct joiner *j, enum wm_join_side side)
{
	enum wm_join_side other = (enum wm_join_side)(1 - side);
	int64_t next_us = wm_join_due_us(j->join, side);

	if (!j->options.is_spark || j->in_force_us[other] == WM_TIME_END)
		return next_us;
	if (!has_watermark(j, LEFT) || !has_watermark(j, RIGHT))
		return WM_TIME_END;
	return j->opt->common.policy == WM_POLICY_MAX || next_us <= j->in_force_us[other] ? next_us : WM_TIME_END;
}

/* Which side is to be read: the one that is behind, the left if none is. */
static enum wm_join_side
next_side(const struct joiner *j, enum wm_join_side last)
{
	int64_t left_us = stream_position_us(j->streams[LEFT]), right_us = stream_position_us(j->streams[RIGHT]);
	enum wm_join_side behind = right_us < left_us ? RIGHT : LEFT;

	if (j->is_closed[LEFT] || j->is_closed[RIGHT])
		return j->is_closed[LEFT] ? RIGHT : LEFT;
	if (pairs_needs_left(j->pairs))
		return LEFT;
	if (j->opt->eager)
		return last;
	return j->is_idle[behind] ? (enum wm_join_side)(1 - behind) : behind;
}

/* How long to wait for a side. */
static enum stream_patience
patience(const struct joiner *j, enum wm_join_side side)
{
	enum wm_join_side other = (enum wm_join_side)(1 - side);

	if (j->is_closed[other] || pairs_needs_left(j->pairs))
		return STREAM_WAITS;
	if (j->opt->eager || j->is_idle[other])
		return STREAM_YIELDS;
	return j->opt->common.idle_wall.text != NULL ? STREAM_WAITS_FOR_IDLE : STREAM_WAITS;
}

/* Each side by itself, by turns. */
static void
run(struct joiner *j)
{
	enum wm_join_side side = LEFT;
	struct stream_row row;

	while (!j->is_closed[LEFT] || !j->is_closed[RIGHT]) {
		if (j->is_idle[1 - side] && stream_is_ready(j->streams[1 - side]))
			j->is_idle[1 - side] = false;
		if (!stream_is_amid(j->streams[side]))
			side = next_side(j, side);
		struct stream *s = j->streams[side];
		stream_set_patience(s, patience(j, side));
		switch (stream_next(s, due_us(j, side), &row)) {
		case STREAM_RECORD:
			judge(j, side, &row);
			break;
		case STREAM_WATERMARK:
			advance(j, side, &row);
			break;
		case STREAM_YIELD:
			j->in_force_us[side] = row.watermark_us;
			if (!j->opt->eager)
				j->is_idle[side] = !j->is_idle[1 - side];
			j->is_idle[1 - side] = false;
			side = (enum wm_join_side)(1 - side);
			break;
		case STREAM_END:
			j->is_closed[side] = true;
			if (j->in_force_us[side] != WM_TIME_END)
				j->in_force_us[side] = stream_watermark_us(s);
			break;
		case STREAM_TICK:
		case STREAM_PUNCTUATION:
			j->in_force_us[side] = row.watermark_us;
			break;
		}
		if (stream_wants_state(s)) {
			struct report_state state = state_of(j);

			stream_set_state(s, &state);
		}
	}
}

/* One side's rows of the batch that is next there; false if its end was not met. */
static bool
run_batch(struct joiner *j, enum wm_join_side side, int64_t *watermark_us)
{
	struct stream_row row;
	enum stream_item item;

	while ((item = stream_next(j->streams[side], WM_TIME_END, &row)) == STREAM_RECORD || item == STREAM_TICK ||
		item == STREAM_PUNCTUATION)
		if (item == STREAM_RECORD)
			judge(j, side, &row);
	if (item == STREAM_WATERMARK && row.watermark_us != WM_TIME_END)
		*watermark_us = row.watermark_us;
	return item == STREAM_WATERMARK;
}

/* Whether the run stops here, and what is left of the batch is for the next one. Without -C there is none. */
static bool
is_stopping(const struct joiner *j)
{
	return j->opt->common.checkpoint != NULL && stream_is_stopping(j->streams[LEFT]);
}

/*
 * The sides that have rows of the batch that is next, or may have: one that is open, as the run before was stopped in it, goes before
 * all others. False if there is none.
 */
static bool
find_batch(const struct joiner *j, bool has[SIDES])
{
	int64_t numbers[SIDES];
	bool is_open[SIDES];

	for (size_t i = 0; i < SIDES; i++)
		has[i] = is_open[i] = stream_open_batch(j->streams[i], &numbers[i]);
	for (size_t i = 0; i < SIDES; i++)
		if (!is_open[i])
			has[i] = stream_peek_batch(j->streams[i], &numbers[i]);
	if (!has[LEFT] || !has[RIGHT] || numbers[LEFT] == numbers[RIGHT])
		return has[LEFT] || has[RIGHT];
	bool is_left = is_open[LEFT] == is_open[RIGHT] ? numbers[LEFT] < numbers[RIGHT] : is_open[LEFT];
	has[is_left ? RIGHT : LEFT] = false;
	return true;
}

/*
 * Batches that both sides have in common, by number: left rows before right ones (of Spark's semi join behind), then both watermarks
 * move. False if the run was stopped: in the rows of one side, with those of the batch behind it not read; or between two batches.
 */
static bool
run_common_batches(struct joiner *j)
{
	enum wm_join_side first = j->options.is_spark && j->options.type == WM_JOIN_SEMI ? RIGHT : LEFT;
	int64_t next_us[SIDES];
	bool has[SIDES];

	while (find_batch(j, has) && !is_stopping(j)) {
		/* Of a side that was through with the batch when the run before was stopped it has moved already. */
		for (size_t i = 0; i < SIDES; i++)
			next_us[i] = stream_watermark_us(j->streams[i]);
		for (size_t i = 0; i < SIDES; i++) {
			enum wm_join_side side = i == 0 ? first : (enum wm_join_side)(1 - first);

			if (has[side] && !run_batch(j, side, &next_us[side]) && is_stopping(j))
				return false;
		}
		int64_t before_us = combined_us(j);
		j->spark_before_us = before_us;
		for (size_t i = 0; i < SIDES; i++)
			j->in_force_us[i] = next_us[i];
		for (size_t i = 0; i < SIDES; i++)
			wm_join_advance(j->join, (enum wm_join_side)i, told_us(j, (enum wm_join_side)i));
		if (drain(j, before_us) || combined_us(j) != before_us)
			punctuate(j);
		struct report_state state = state_of(j);
		stream_end_common_batch(j->streams[LEFT], &state, combined_us(j));
	}
	return !is_stopping(j);
}

/* What is kept from run to run: i64 watermark in force of the left · of the right · of the batch before · the rows held. */

static void
encode(void *self, struct wm_buf *out)
{
	const struct joiner *j = self;

	for (size_t i = 0; i < SIDES; i++)
		wm_put_i64(out, j->in_force_us[i]);
	wm_put_i64(out, j->spark_before_us);
	wm_join_encode(j->join, out);
	pairs_encode(j->pairs, out);
}

static bool
decode(void *self, struct wm_get *in)
{
	struct joiner *j = self;

	for (size_t i = 0; i < SIDES; i++)
		j->in_force_us[i] = wm_get_i64(in);
	j->spark_before_us = wm_get_i64(in);
	return wm_join_decode(j->join, in) && pairs_decode(j->pairs, in);
}

static size_t
bytes(const void *self)
{
	return wm_join_bytes(((const struct joiner *)self)->join);
}

static bool
holds_texts(const void *self)
{
	const struct joiner *j = self;

	return state_of(j).groups > 0 || pairs_has_waiting(j->pairs);
}

/* Rows are held as the result shows them, so that its form is part of what they mean. */
static struct keep_options
kept_options(const struct joiner *j)
{
	static const char *const forms[] = { "same", "csv", "tsv", "ndjson", "table" };
	static const char *const stamps[] = { "later", "left", "right" };
	const struct options *opt = j->opt;
	const struct cli_common *right = &j->common[RIGHT];
	struct keep_options kept = { 0 };

	keep_option(&kept, "--type", matches_types[opt->type]);
	keep_option(&kept, "--left-key", opt->key != NULL ? opt->key : opt->side_key[LEFT]);
	keep_option(&kept, "--right-key", opt->key != NULL ? opt->key : opt->side_key[RIGHT]);
	keep_option(&kept, "--right-time", right->time_column);
	if (right->delay.text != NULL)
		keep_option_us(&kept, "--right-delay", right->delay.us);
	keep_option(&kept, "--between", opt->between);
	keep_option_durations(&kept, "--tumbling", opt->tumbling);
	keep_option(&kept, "--asof", opt->as_of < 0 ? NULL : "backward");
	keep_option_duration(&kept, "--tolerance", &opt->tolerance);
	keep_option(&kept, "--prefix", opt->prefix);
	keep_option(&kept, "--output-format", forms[opt->common.output_format]);
	keep_option(&kept, "--stamp", opt->stamp < 0 ? NULL : stamps[opt->stamp]);
	return kept;
}

static _Noreturn void
explain(const struct joiner *j)
{
	static const char *const written[] = { "Each pair is written",
		"Each pair is written, and each left row that has none",
		"Each pair is written, and each right row that has none",
		"Each pair is written, and each row of either side that has none",
		"Each left row that has a match is written, once", "Each left row that has no match is written" };
	const struct options *opt = j->opt;
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	if (opt->between != NULL)
		wm_buf_addf(&text, "A right row fits a left one if its time less that of the left is in %s.\n",
			opt->between);
	else if (opt->tumbling != NULL)
		wm_buf_addf(
			&text, "A right row fits a left one if both are in the same window of %s.\n", opt->tumbling);
	else if (opt->as_of >= 0)
		wm_buf_addf(&text, "To each left row belongs the last right row at or before it%s%s.\n",
			opt->tolerance.text == NULL ? "" : ", no further back than ",
			opt->tolerance.text == NULL ? "" : opt->tolerance.text);
	else
		wm_buf_add_text(&text, "A right row fits a left one whatever their times: no row is ever forgotten.\n");
	if (opt->key != NULL)
		wm_buf_addf(&text, "Both have the same %s.\n", opt->key);
	else if (opt->side_key[LEFT] != NULL)
		wm_buf_addf(&text, "%s of the left is %s of the right.\n", opt->side_key[LEFT], opt->side_key[RIGHT]);
	wm_buf_addf(&text, "%s.\n", written[opt->type]);
	for (size_t i = 0; i < SIDES; i++)
		wm_buf_addf(&text, "The watermark of the %s is %s%s.\n", i == LEFT ? "left" : "right",
			j->common[i].delay.text == NULL ? "the one that its rows carry, or none"
							: "its highest event time so far less ",
			j->common[i].delay.text == NULL ? "" : j->common[i].delay.text);
	wm_buf_addf(&text, "The side that is behind is read next%s.\n",
		opt->eager ? ", unless it would have to be waited for (--eager)" : ", and waited for");
	explain_nulls(&opt->common, &text);
	cli_answer(&text);
}

int
main(int argc, char **argv)
{
	struct options opt = { .common.eof = CLI_EOF_DEFAULT, .as_of = -1, .stamp = -1 };
	struct joiner j = { .opt = &opt, .spark_before_us = WM_TIME_NONE };
	struct wm_buf prefixes;

	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	check_options(&opt);
	parse_condition(&j);
	check_bounds(&j);
	j.hold_back_us = hold_back_us(&j);
	for (size_t i = 0; i < SIDES; i++)
		set_side(&j, (enum wm_join_side)i);
	if (opt.common.explain)
		explain(&j);

	const struct keep_state state = {
		.self = &j,
		.version = 1,
		.encode = encode,
		.decode = decode,
		.bytes = bytes,
		.holds_texts = holds_texts,
		.is_bound_by_delay = true,
		.bound = opt.as_of >= 0        ? "--tolerance D"
			: opt.tumbling != NULL ? "a shorter --tumbling"
					       : "a closer --between",
		.is_gone_by_flush = true,
	};
	struct keep_options kept = kept_options(&j);
	struct stream_facts facts = {
		.operator_name = "symmetricHashJoin",
		.state = &state,
		.options = &kept,
		.held_unit = "row",
		.is_passing = true,
		.is_part = true,
		.is_restating = opt.stamp >= 0,
		.holds_without_watermark = opt.as_of >= 0 || (opt.type != WM_JOIN_INNER && opt.type != WM_JOIN_SEMI),
		.batches_are_numbers = is_sharing_batches(&j),
		.shares_batches = is_sharing_batches(&j),
	};
	/* Spark takes rows that can neither match nor be written away before it looks at their times. */
	facts.nulls_move_nothing = opt.common.is_spark && !is_preserved(&j, LEFT);
	j.streams[LEFT] = stream_open(&j.common[LEFT], &facts);
	facts.nulls_move_nothing = opt.common.is_spark && !is_preserved(&j, RIGHT);
	j.streams[RIGHT] = stream_open_beside(j.streams[LEFT], &j.common[RIGHT], &facts);
	struct pairs_options pairs_options = {
		.common = &opt.common,
		.streams = { j.streams[LEFT], j.streams[RIGHT] },
		.prefixes = { "", "right_" },
		.is_left_alone = opt.type == WM_JOIN_SEMI || opt.type == WM_JOIN_ANTI,
		.is_left_optional = opt.type == WM_JOIN_RIGHT_OUTER || opt.type == WM_JOIN_FULL_OUTER,
		.is_stamped = opt.stamp >= 0,
	};
	wm_buf_init(&prefixes, WM_BUF_UNBOUNDED);
	if (opt.prefix != NULL)
		parse_prefixes(opt.prefix, &prefixes, pairs_options.prefixes);
	for (size_t i = 0; i < SIDES; i++) {
		const char *key = opt.key != NULL ? opt.key : opt.side_key[i];
		size_t count = stream_want_keys(j.streams[i], "-k", key);

		if (i == RIGHT && count != j.keys_count)
			cli_misuse("--left-key and --right-key: name as many columns on both sides");
		pairs_options.keys[i] = key;
		j.keys_count = count;
	}
	j.pairs = pairs_open(&pairs_options);
	j.options.keys_count = j.keys_count;
	j.join = wm_join_new(&j.options);
	for (size_t i = 0; i < SIDES; i++)
		stream_begin(j.streams[i], NULL, 0);
	if (!j.is_bounded && !opt.common.quiet)
		cli_warn("no bound says when a row can be forgotten: memory grows with the %s",
			opt.as_of >= 0 ? "number of keys: give --tolerance D" : "input: give --between LO,HI");
	for (size_t i = 0; i < SIDES; i++)
		j.in_force_us[i] = stream_watermark_us(j.streams[i]);
	stream_resume(j.streams[LEFT]);
	if (!is_sharing_batches(&j) || run_common_batches(&j))
		run(&j);

	struct report_state held = state_of(&j);
	stream_set_state(j.streams[LEFT], &held);
	pairs_end(j.pairs);
	int status = stream_finish(j.streams[LEFT], stream_is_held(j.streams[LEFT]) ? held.groups : 0);
	pairs_close(j.pairs);
	keep_options_release(&kept);
	wm_join_free(j.join);
	wm_buf_release(&prefixes);
	cli_release(&opt.common);
	return status;
}
