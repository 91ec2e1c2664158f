/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wm-stamp - give each row its event time, watermark and lag.
 *
 * Rows pass through byte for byte; columns are added at their ends, or replaced
 * where an input is stamped already. The watermark in them is what the other
 * tools follow, so that there is one along a pipe. See wm-stamp(1).
 */
#include "cmd/band.h"
#include "cmd/cli.h"
#include "cmd/explain.h"
#include "cmd/stream.h"
#include "cmd/windows.h"
#include "lib/base/list.h"
#include "lib/base/near.h"
#include "lib/event/watermark.h"
#include "lib/event/window.h"
#include "lib/time/instant.h"

#include <string.h>

struct options {
	struct cli_common common;
	const char *add;
	const char *tumbling;
	bool drop_late;
	const char *not_before;
	const char *not_after;
};

/* Drives parsing and --help; tests hold the man page and the completion to it. */
#define AT(field) offsetof(struct options, field)
static const struct cli_option table[] = {
	CLI_HEADING("Stamps"),
	{ 0, "add", "LIST", "of time, watermark, lag, late, ingest, window (default time,watermark)", CLI_TEXT, AT(add),
		CLI_SCREEN },
	{ 0, "tumbling", "SIZE", "with --add window: the window that the row is in", CLI_SPAN_LIST, AT(tumbling),
		CLI_SCREEN },
	{ 0, "drop-late", NULL, "rows behind the watermark leave the stream (and go to --late)", CLI_FLAG,
		AT(drop_late), CLI_SCREEN },
	{ 0, "not-before", "T", "reject event times before T", CLI_TEXT, AT(not_before), CLI_ALL },
	{ 0, "not-after", "T", "reject event times after T", CLI_TEXT, AT(not_after), CLI_ALL },
	{ 0, "ingest", "COLUMN|now", "arrival time of a row, for --add lag and ingest, and --max-ahead", CLI_COLUMN,
		AT(common.ingest), CLI_SCREEN },
	CLI_END,
};
static const struct cli_tool tool = {
	.name = "wm-stamp",
	.summary = "give each row its event time, watermark and lag",
	.usage = "[OPTION]... [FILE]...",
	.examples = "tail -n +1 -F access.csv | wm-stamp -t time -w 30s | wm-window --tumbling 1m\n"
		    "wm-stamp -t time --ingest received --add time,lag events.ndjson",
	.options = table,
	.groups = CLI_GROUP_STREAM,
	.measures_arrival = true,
};

enum stamp {
	STAMP_TIME,
	STAMP_WATERMARK,
	STAMP_LAG,
	STAMP_LATE,
	STAMP_INGEST,
	STAMP_WINDOW, /* two columns */
};
static const char *const stamp_words[] = { "time", "watermark", "lag", "late", "ingest", "window" };

#define STAMPS (sizeof(stamp_words) / sizeof(stamp_words[0]))
#define COLUMNS_MAX (STAMPS + 1)

struct stamper {
	const struct options *opt;
	enum stamp stamps[STAMPS];
	size_t stamps_count;
	bool has[STAMPS];
	struct wm_span names[COLUMNS_MAX];
	struct wm_value values[COLUMNS_MAX];
	size_t columns_count;
	struct wm_windows windows;
	struct wm_instant_text time, watermark, ingest, start, end;
	char lag[WM_INSTANT_TEXT_MAX];
	int64_t told_us; /* the watermark that was written last */
};

static _Noreturn void
refuse_stamp(struct wm_span word, const struct wm_near *near)
{
	if (near->best.data == NULL)
		cli_misuse("--add: no '%.*s': time, watermark, lag, late, ingest, window", (int)word.len, word.data);
	cli_misuse("--add: no '%.*s': time, watermark, lag, late, ingest, window: did you mean %.*s?", (int)word.len,
		word.data, (int)near->best.len, near->best.data);
}

static void
add_stamp(struct stamper *st, struct wm_span word)
{
	static const char *const names[] = { BAND_TIME, BAND_WATERMARK, "_lag", "_late", "_ingest", "_window_start" };
	struct wm_near near = wm_near_to(word);
	size_t which = 0;

	for (; which < STAMPS && !wm_span_is(word, stamp_words[which]); which++)
		wm_near_try(&near, wm_span_of(stamp_words[which]));
	if (which == STAMPS)
		refuse_stamp(word, &near);
	if (st->has[which])
		cli_misuse("--add: '%.*s' stands twice", (int)word.len, word.data);
	st->has[which] = true;
	st->stamps[st->stamps_count++] = (enum stamp)which;
	st->names[st->columns_count++] = wm_span_of(names[which]);
	if (which == STAMP_WINDOW)
		st->names[st->columns_count++] = wm_span_of("_window_end");
}

static void
open_stamper(struct stamper *st, const struct options *opt)
{
	const struct cli_common *common = &opt->common;
	struct wm_span rest = wm_span_of(opt->add == NULL ? "time,watermark" : opt->add), word;

	*st = (struct stamper){
		.opt = opt,
		.told_us = WM_TIME_NONE,
	};
	while (wm_list_next(&rest, ',', &word))
		add_stamp(st, word);
	bool needs_arrival = st->has[STAMP_LAG] || st->has[STAMP_INGEST];
	if (needs_arrival && common->ingest == NULL)
		cli_misuse(
			"--add %s: needs the arrival time: name its column with --ingest COLUMN, or write --ingest now",
			st->has[STAMP_LAG] ? "lag" : "ingest");
	if (!needs_arrival && common->ingest != NULL && common->max_ahead.text == NULL)
		cli_misuse("--ingest: nothing asks for the arrival time: --add lag or ingest, or give --max-ahead D");
	if (st->has[STAMP_WINDOW] && opt->tumbling == NULL)
		cli_misuse("--add window: of what size? give --tumbling SIZE");
	if (!st->has[STAMP_WINDOW] && opt->tumbling != NULL)
		cli_misuse("--tumbling: is for --add window, which is not asked for");
	if (opt->tumbling != NULL)
		windows_tumbling(&st->windows, "--tumbling", opt->tumbling, common, 0);
	if (common->late_path != NULL && !opt->drop_late)
		cli_misuse(
			"--late: rows behind the watermark pass on with the others: say --drop-late to take them out");
}

static int64_t
parse_bound(const struct cli_common *common, const char *option, const char *text)
{
	struct wm_err err;
	struct wm_instant_parser *parser = wm_instant_parser_new(wm_span_of("auto"),
		common->zone == NULL ? wm_zone_utc() : common->zone, WM_REPEATED_EARLIER, NULL, &err);
	const char *why;
	int64_t time_us;

	if (parser == NULL || !wm_instant_parse(parser, wm_span_of(text), &time_us, &why))
		cli_misuse("%s: '%s' is no time: write 2025-11-29 or 2025-11-29T12:00:00Z", option, text);
	wm_instant_parser_free(parser);
	return time_us;
}

/* Sets the values of a row's stamps. */
static inline void
stamp(struct stamper *st, const struct stream_row *row, bool is_late)
{
	struct wm_value *value = st->values;
	struct wm_slice slice;

	for (size_t i = 0; i < st->stamps_count; i++) {
		switch (st->stamps[i]) {
		case STAMP_TIME:
			band_put_time(value++, &st->time, &st->opt->common, row->event_time_us);
			break;
		case STAMP_WATERMARK:
			band_put_time(value++, &st->watermark, &st->opt->common, row->watermark_us);
			break;
		case STAMP_LAG: {
			size_t len = wm_instant_print(row->arrival_us - row->event_time_us, WM_UNIT_S, NULL, st->lag);

			*value++ = (struct wm_value){ wm_span(st->lag, len), WM_KIND_NUMBER };
			break;
		}
		case STAMP_LATE:
			*value++ = (struct wm_value){ wm_span(is_late ? "1" : "0", 1), WM_KIND_NUMBER };
			break;
		case STAMP_INGEST:
			band_put_time(value++, &st->ingest, &st->opt->common, row->arrival_us);
			break;
		case STAMP_WINDOW:
			wm_windows_slice(&st->windows, row->event_time_us, &slice);
			band_put_time(value++, &st->start, &st->opt->common, slice.start_us);
			band_put_time(value++, &st->end, &st->opt->common, slice.end_us);
			break;
		}
	}
}

/* The watermark has moved by itself, or at the end of a batch: the rows that tell of it may be long in coming. */
static void
punctuate(struct stamper *st, struct stream *s, int64_t watermark_us)
{
	if (!st->has[STAMP_WATERMARK] || watermark_us == WM_TIME_NONE || watermark_us == WM_TIME_END ||
		watermark_us == st->told_us)
		return;
	struct wm_value value = band_time(&st->watermark, &st->opt->common, watermark_us);
	stream_put_lone(s, wm_span_of(BAND_WATERMARK), &value);
	st->told_us = watermark_us;
}

/*
 * Punctuation of a stamped input. The watermark that it tells of may not be in force here: other FILEs hold it back, or the
 * batch goes on.
 */
static void
restate(struct stamper *st, struct stream *s, int64_t watermark_us)
{
	if (st->has[STAMP_WATERMARK])
		punctuate(st, s, watermark_us);
	else
		stream_pass_punctuation(s);
}

static inline void
judge(struct stamper *st, struct stream *s, const struct stream_row *row)
{
	bool is_late = wm_is_behind(row->event_time_us, row->watermark_us) ||
		(st->opt->common.is_spark && row->event_time_us == row->watermark_us);

	if (is_late)
		stream_late(s, 0);
	else
		stream_used(s, 0);
	if (is_late && st->opt->drop_late)
		return;
	stamp(st, row, is_late);
	stream_pass(s, st->values);
	st->told_us = row->watermark_us;
}

/* What is kept from run to run: i64 the watermark that was written last. */

static void
encode(void *self, struct wm_buf *out)
{
	wm_put_i64(out, ((const struct stamper *)self)->told_us);
}

static bool
decode(void *self, struct wm_get *in)
{
	((struct stamper *)self)->told_us = wm_get_i64(in);
	return true;
}

static _Noreturn void
explain(const struct stamper *st)
{
	const struct cli_common *common = &st->opt->common;
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_addf(&text, "Every row passes on as it came, with the column%s", st->columns_count == 1 ? "" : "s");
	for (size_t i = 0; i < st->columns_count; i++)
		wm_buf_addf(&text, "%s %.*s", i == 0 ? "" : ",", (int)st->names[i].len, st->names[i].data);
	wm_buf_addf(&text, " at its end, or in %s where it has %s.\n",
		st->columns_count == 1 ? "its place" : "their places", st->columns_count == 1 ? "it" : "them");
	if (common->delay.text != NULL)
		wm_buf_addf(&text, "The watermark is the highest event time so far less %s, moved %s.\n",
			common->delay.text,
			common->trigger_word == CLI_TRIGGER_EACH ? "with each row" : "at the end of each batch");
	else
		wm_buf_add_text(&text, "There is no -w: the watermark is the one that the rows carry, or none.\n");
	wm_buf_addf(&text, "Rows behind the watermark %s.\n",
		!st->opt->drop_late                 ? "are counted as late, and pass on"
			: common->late_path != NULL ? "leave the stream, into the file of --late"
						    : "are dropped and counted; --late FILE keeps them");
	explain_nulls(common, &text);
	cli_answer(&text);
}

int
main(int argc, char **argv)
{
	struct options opt = { .common.eof = CLI_EOF_DEFAULT };
	struct stamper st;

	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	open_stamper(&st, &opt);
	const struct keep_state state = { .self = &st, .version = 1, .encode = encode, .decode = decode };
	struct stream_facts facts = {
		.operator_name = "stamp",
		.state = &state,
		.wants_arrival = st.has[STAMP_LAG] || st.has[STAMP_INGEST],
		.is_passing = true,
		.late_fate = opt.drop_late ? NULL : "passed on",
		.tells_moves = true,
		.is_bounded = opt.not_before != NULL || opt.not_after != NULL,
		.not_before_us = INT64_MIN,
		.not_after_us = INT64_MAX,
		/* The tools behind find the column, and wait for what never comes. */
		.warn_no_watermark = st.has[STAMP_WATERMARK] && opt.common.watermark_column == NULL
			? "without a delay _watermark stays empty, and what follows it waits for the end of the input: "
			  "set one with -w (0s for input in order), or leave it out with --add time"
			: NULL,
	};
	if (opt.not_before != NULL)
		facts.not_before_us = parse_bound(&opt.common, "--not-before", opt.not_before);
	if (opt.not_after != NULL)
		facts.not_after_us = parse_bound(&opt.common, "--not-after", opt.not_after);
	if (facts.not_before_us > facts.not_after_us)
		cli_misuse("--not-before, --not-after: no time is between them");
	if (opt.common.explain)
		explain(&st);

	struct stream *s = stream_open(&opt.common, &facts);
	stream_stamp(s, st.names, st.columns_count);
	stream_begin(s, NULL, 0);
	stream_resume(s);
	struct stream_row row;
	enum stream_item item;
	/* Nothing is held, so nothing is ever due. */
	while ((item = stream_next(s, WM_TIME_END, &row)) != STREAM_END) {
		if (item == STREAM_RECORD)
			judge(&st, s, &row);
		else if (item == STREAM_WATERMARK)
			punctuate(&st, s, row.watermark_us);
		else if (item == STREAM_PUNCTUATION && stream_is_in_band(s))
			restate(&st, s, row.watermark_us);
	}
	int status = stream_finish(s, 0); /* flushes and checks every output */
	cli_release(&opt.common);
	return status;
}
