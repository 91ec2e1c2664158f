/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wm-window - aggregate by event-time window and key.
 *
 * A window is written when the watermark (highest event time - delay) has
 * reached its end; records that come after that are late. See wm-window(1).
 */
#include "cmd/cli.h"
#include "cmd/explain.h"
#include "cmd/results.h"
#include "cmd/stream.h"
#include "cmd/windows.h"
#include "lib/agg/agg.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/op/fill.h"
#include "lib/op/sessions.h"
#include "lib/op/windowing.h"
#include "lib/time/duration.h"

#include <inttypes.h>
#include <string.h>

struct options {
	struct cli_common common;
	const char *tumbling;
	const char *sliding;
	const char *session;
	const char *cumulating;
	struct cli_duration offset;
	const char *group_by;
	const char *aggregate;
	int mode; /* enum wm_window_mode */
	struct cli_duration allowed_lateness;
	int panes; /* enum panes */
	const char *early;
	int fill; /* enum fill; -1: none */
	bool partial;
	bool stamp;
};

enum panes { PANES_ACCUMULATING, PANES_DISCARDING };
enum fill { FILL_ZERO, FILL_NULL, FILL_PREV };
static const char *const fills[] = { "zero", "null", "prev" };

/* Drives parsing and --help; tests hold the man page and the completion to it. */
#define AT(field) offsetof(struct options, field)
static const struct cli_option table[] = {
	CLI_HEADING("Windows"),
	{ 0, "tumbling", "SIZE", "windows of SIZE, one after the other (5m, 1h, 1d)", CLI_SPAN_LIST, AT(tumbling),
		CLI_SCREEN },
	{ 0, "sliding", "SIZE,SLIDE", "windows of SIZE, one every SLIDE", CLI_SPAN_LIST, AT(sliding), CLI_SCREEN },
	{ 0, "session", "GAP", "windows per key, closed by GAP of silence (30s)", CLI_TEXT, AT(session), CLI_SCREEN },
	{ 0, "cumulating", "MAX,STEP", "windows that share a start and grow by STEP up to MAX", CLI_SPAN_LIST,
		AT(cumulating), CLI_ALL },
	{ 0, "offset", "D", "shift of the window grid, also negative", CLI_OFFSET, AT(offset), CLI_ALL },
	{ 'g', "group-by", "COLUMNS", "keys: each has windows of its own; name=COLUMN renames", CLI_COLUMNS,
		AT(group_by), CLI_SCREEN },
	{ 'a', "aggregate", "LIST",
		"count (default), count:c, sum:c, avg:c, min:c, max:c, first:c, last:c, var:c, stddev:c, median:c, "
		"p95:c, distinct:c, rate, share:c:OP:V, any AGG:c:if:c2:OP:V with OP one of eq ne lt le gt ge; "
		"name=AGG renames",
		CLI_TEXT, AT(aggregate), CLI_SCREEN },
	{ 0, "mode", "append|update|complete", "write windows when complete (default), changed, or all", CLI_CHOICE,
		AT(mode), CLI_SCREEN },
	{ 0, "allowed-lateness", "D",
		"keep complete windows for D more, and write them again when late rows reach them", CLI_DURATION,
		AT(allowed_lateness), CLI_ALL },
	{ 0, "panes", "accumulating|discarding", "what is written again: all of a window (default), or what is new",
		CLI_CHOICE, AT(panes), CLI_ALL },
	{ 0, "early", "Nrows|event:D",
		"also write windows that are not complete: after N rows, or each D of event time", CLI_TEXT, AT(early),
		CLI_ALL },
	{ 0, "fill", "zero|null|prev", "also write the empty windows between two of a key", CLI_CHOICE, AT(fill),
		CLI_ALL },
	{ 0, "partial", NULL, "states that wm-merge can combine instead of final values", CLI_FLAG, AT(partial),
		CLI_ALL },
	{ 0, "stamp", NULL, "add _time and _watermark, for another wm tool", CLI_FLAG, AT(stamp), CLI_ALL },
	CLI_END,
};
static const struct cli_tool tool = {
	.name = "wm-window",
	.summary = "aggregate by event-time window and key",
	.usage = "[OPTION]... [FILE]...",
	.examples = "wm-window -t time -w 10m --tumbling 1m -g status access.csv\n"
		    "tail -n +1 -F events.ndjson | wm-window -t ts -w 30s --sliding 5m,1m -a avg:ms",
	.options = table,
	.groups = CLI_GROUP_STREAM,
};

/* What does the work: the operator on sessions, or the one on windows of the time line. */
struct engine {
	struct wm_windows windows;
	struct wm_pane_options panes;
	struct wm_windowing *windowing;
	struct wm_sessions *sessions; /* --session; else NULL */
	int64_t gap_us;               /* of all rows; 0: of each its own, in the reading number gap_reading */
	size_t gap_reading;
	bool keeps_texts; /* keys, or values of columns as they came */
};

static void
check_kind(const struct options *opt)
{
	int given =
		(opt->tumbling != NULL) + (opt->sliding != NULL) + (opt->session != NULL) + (opt->cumulating != NULL);

	if (given == 0)
		cli_misuse("no window given: say --tumbling SIZE, --sliding SIZE,SLIDE, --session GAP or --cumulating "
			   "MAX,STEP");
	if (given > 1)
		cli_misuse("--tumbling, --sliding, --session and --cumulating exclude each other");
	if (opt->session != NULL && opt->mode == WM_MODE_UPDATE)
		cli_misuse("--session: sessions grow together, so that none can be updated: --mode append or complete");
	if (opt->session != NULL && opt->offset.text != NULL)
		cli_misuse("--offset: sessions stand on no grid that could be shifted");
}

static void
check_panes(const struct options *opt)
{
	bool has_panes = opt->allowed_lateness.us > 0 || opt->early != NULL;

	if (opt->mode != WM_MODE_APPEND && opt->early != NULL)
		cli_misuse("--early: needs --mode append");
	if (opt->mode != WM_MODE_APPEND && opt->panes == PANES_DISCARDING)
		cli_misuse("--panes discarding: needs --mode append");
	if (opt->panes == PANES_DISCARDING && opt->allowed_lateness.text == NULL && opt->early == NULL)
		cli_misuse("--panes: each window is written once: give --allowed-lateness or --early");
	if (opt->mode == WM_MODE_COMPLETE && opt->allowed_lateness.us > 0)
		cli_warn("--allowed-lateness has no effect with --mode complete, where nothing is late");
	if (opt->stamp && (opt->mode != WM_MODE_APPEND || opt->early != NULL || opt->fill >= 0))
		cli_misuse("--stamp: results of --mode update and complete, --early and --fill may be behind any "
			   "watermark: leave "
			   "them out");
	if (opt->fill >= 0 && (opt->tumbling == NULL || opt->mode != WM_MODE_APPEND || has_panes))
		cli_misuse("--fill: is for --tumbling windows in --mode append, each written once");
}

/* Each window and key is to have one state, and be the same window in all files that are merged. */
static void
check_partial(const struct options *opt)
{
	bool is_once = opt->common.trigger == NULL || strcmp(opt->common.trigger, "eof") == 0;
	const struct {
		bool is_given;
		const char *option;
		const char *why;
	} clashes[] = {
		{ opt->fill >= 0, "--fill", "an empty window has no state" },
		{ opt->allowed_lateness.us > 0, "--allowed-lateness",
			"a window would have several states, of which none is the last" },
		{ opt->early != NULL, "--early", "a window would have several states, of which none is the last" },
		{ opt->mode == WM_MODE_UPDATE, "--mode update",
			"a window would have several states, of which none is the last" },
		{ opt->mode == WM_MODE_COMPLETE && !is_once, "--mode complete",
			"with this --trigger a window would have several states, of which none is the last" },
		{ opt->stamp, "--stamp", "its columns are no states" },
	};

	for (size_t i = 0; i < sizeof(clashes) / sizeof(clashes[0]) && opt->partial; i++)
		if (clashes[i].is_given)
			cli_misuse("--partial and %s: %s, which wm-merge could not combine: leave one of them out",
				clashes[i].option, clashes[i].why);
}

static struct wm_pane_options
parse_panes(const struct options *opt)
{
	struct wm_pane_options panes = {
		.allowed_lateness_us = opt->mode == WM_MODE_COMPLETE ? 0 : opt->allowed_lateness.us,
		.is_discarding = opt->panes == PANES_DISCARDING,
	};

	struct wm_err err;

	check_panes(opt);
	check_partial(opt);
	if (opt->early != NULL && !windows_read_early(opt->early, &panes, &err))
		cli_misuse("%s", err.message);
	return panes;
}

/* What stands behind "column:" where each row has a gap of its own; else NULL. */
static const char *
gap_column(const struct options *opt)
{
	static const char prefix[] = "column:";
	bool is_column = opt->session != NULL && strncmp(opt->session, prefix, sizeof(prefix) - 1) == 0;

	return is_column ? opt->session + sizeof(prefix) - 1 : NULL;
}

/* Overlapping windows are many by a slip of the unit. Discarding panes have cells of their own for each, so that a row takes as many steps. */
static void
check_windows_a_row(const struct engine *op, const struct options *opt)
{
	const struct wm_windows *windows = &op->windows;
	int64_t overlapping = windows->slide_us > 0 ? windows->size_us / windows->slide_us : 0;
	int64_t count = windows->steps != 0 ? windows->steps : overlapping;
	const char *option = opt->sliding != NULL ? "--sliding" : "--cumulating";

	if (count <= WM_WINDOWS_A_ROW_MANY)
		return;
	if (op->panes.is_discarding)
		cli_misuse("%s: each row would be in %" PRId64
			   " windows, and --panes discarding takes a step for each: "
			   "%d are the most",
			option, count, WM_WINDOWS_A_ROW_MANY);
	if (!opt->common.quiet)
		cli_warn("%s: each row is in %" PRId64 " windows, and each of these is written", option, count);
}

static void
parse_windows(struct engine *op, const struct options *opt)
{
	check_kind(opt);
	op->panes = parse_panes(opt);
	if (opt->tumbling != NULL)
		windows_tumbling(&op->windows, "--tumbling", opt->tumbling, &opt->common, opt->offset.us);
	else if (opt->sliding != NULL)
		windows_sliding(&op->windows, "--sliding", opt->sliding, opt->offset.us);
	else if (opt->cumulating != NULL)
		windows_cumulating(&op->windows, "--cumulating", opt->cumulating, opt->offset.us);
	else if (gap_column(opt) == NULL)
		op->gap_us = windows_length_us("--session", wm_span_of(opt->session));
	check_windows_a_row(op, opt);
}

/* "column:C,s": a number of that unit. */
static int64_t
gap_unit_us(struct wm_span unit)
{
	static const struct {
		const char *name;
		int64_t us;
	} units[] = { { "us", 1 }, { "ms", 1000 }, { "s", 1000000 }, { "m", 60000000 }, { "h", 3600000000 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (wm_span_is(unit, units[i].name))
			return units[i].us;
	cli_misuse("--session: '%.*s' is no unit of a number: us, ms, s, m or h", (int)unit.len, unit.data);
}

/* Asks for the column of the gaps, behind all others. */
static void
want_gaps(struct engine *op, struct stream *s, const char *text)
{
	struct wm_span rest = wm_span_of(text), column, unit, more;
	int64_t unit_us = 0;

	if (wm_list_next(&rest, ',', &column) && wm_list_next(&rest, ',', &unit))
		unit_us = gap_unit_us(unit);
	if (column.len == 0 || wm_list_next(&rest, ',', &more))
		cli_misuse("--session: 'column:%s': write column:C, or column:C,s for a number of seconds", text);
	op->gap_reading = stream_want_length(s, column, unit_us);
}

static void
open_engine(struct engine *op, const struct options *opt, const struct wm_agg *agg, size_t keys_count, bool is_counting)
{
	bool is_spark = opt->common.is_spark && opt->common.delay.text != NULL;
	enum wm_window_mode mode = (enum wm_window_mode)opt->mode;
	const struct wm_pane_options *panes = wm_pane_options_many(&op->panes) ? &op->panes : NULL;

	if (opt->session != NULL) {
		op->sessions = wm_sessions_new(agg, keys_count, mode, panes, is_spark);
		if (is_counting)
			wm_sessions_count_updates(op->sessions);
		return;
	}
	op->windowing = wm_windowing_new(&op->windows, agg, keys_count, mode, panes, is_spark);
	if (opt->fill >= 0)
		wm_windowing_fill(op->windowing, opt->fill == FILL_PREV);
	if (is_counting)
		wm_windowing_count_updates(op->windowing);
}

static void
close_engine(struct engine *op)
{
	wm_windowing_free(op->windowing);
	wm_sessions_free(op->sessions);
}

static inline int64_t
due_us(const struct engine *op)
{
	return op->windowing != NULL ? wm_windowing_due_us(op->windowing) : wm_sessions_due_us(op->sessions);
}

static inline enum wm_window_verdict
add(struct engine *op, const struct wm_window_record *record, const struct wm_reading *all, int64_t *missed)
{
	if (op->windowing != NULL)
		return wm_windowing_add(op->windowing, record, missed);
	int64_t gap_us = op->gap_us != 0 ? op->gap_us : (int64_t)all[op->gap_reading].number.whole;
	return wm_sessions_add(op->sessions, record, gap_us, missed);
}

/* Adds a record, or says that it is late. keys is room for its keys. */
static inline void
judge(struct engine *op, struct stream *s, const struct stream_row *row, size_t keys_count, struct wm_value *keys)
{
	struct wm_window_record record = {
		.event_time_us = row->event_time_us,
		.watermark_us = row->watermark_us,
		.highest_time_us = row->highest_time_us,
		.keys = keys,
		.readings = row->readings + keys_count,
	};
	int64_t missed;

	if (keys_count == 1)
		record.keys = &row->readings[0].value; /* stands by itself where it is */
	else
		for (size_t i = 0; i < keys_count; i++)
			wm_value_copy(&keys[i], &row->readings[i].value);
	if (add(op, &record, row->readings, &missed) == WM_WINDOW_LATE)
		stream_late(s, missed);
	else
		stream_used(s, missed);
}

/* Writes what an advance lets go. */
static void
advance(struct engine *op, struct stream *s, struct results *results, const struct stream_row *to)
{
	struct wm_window_row row;

	results_begin(results, to);
	if (op->windowing != NULL) {
		wm_windowing_advance(op->windowing, to->watermark_us);
		while (wm_windowing_next(op->windowing, &row))
			results_put(results, s, &row);
	} else {
		wm_sessions_advance(op->sessions, to->watermark_us);
		while (wm_sessions_next(op->sessions, &row))
			results_put(results, s, &row);
	}
	results_end(results, s, to);
}

static uint64_t
open_count(struct engine *op)
{
	return op->windowing != NULL ? wm_windowing_open_count(op->windowing) : wm_sessions_open_count(op->sessions);
}

static void
say_state(const struct engine *op, struct stream *s)
{
	struct wm_windowing_counts counts =
		op->windowing != NULL ? wm_windowing_counts(op->windowing) : wm_sessions_counts(op->sessions);
	struct report_state state = {
		.groups = counts.groups,
		.updated = counts.updated,
		.removed = counts.removed,
		.bytes = op->windowing != NULL ? wm_windowing_bytes(op->windowing) : wm_sessions_bytes(op->sessions),
	};

	stream_set_state(s, &state);
}

/* What is kept from run to run */

static void
encode(void *self, struct wm_buf *out)
{
	struct engine *op = self;

	if (op->windowing != NULL)
		wm_windowing_encode(op->windowing, out);
	else
		wm_sessions_encode(op->sessions, out);
}

static bool
decode(void *self, struct wm_get *in)
{
	struct engine *op = self;

	return op->windowing != NULL ? wm_windowing_decode(op->windowing, in) : wm_sessions_decode(op->sessions, in);
}

static size_t
bytes(const void *self)
{
	const struct engine *op = self;

	return op->windowing != NULL ? wm_windowing_bytes(op->windowing) : wm_sessions_bytes(op->sessions);
}

static bool
holds_texts(const void *self)
{
	const struct engine *op = self;
	struct wm_windowing_counts counts =
		op->windowing != NULL ? wm_windowing_counts(op->windowing) : wm_sessions_counts(op->sessions);

	return op->keeps_texts && counts.groups > 0;
}

static struct keep_options
kept_options(const struct options *opt)
{
	static const char *const modes[] = { "append", "update", "complete" };
	struct keep_options kept = { 0 };

	keep_option_durations(&kept, "--tumbling", opt->tumbling);
	keep_option_durations(&kept, "--sliding", opt->sliding);
	keep_option_durations(&kept, "--session", opt->session);
	keep_option_durations(&kept, "--cumulating", opt->cumulating);
	keep_option_us(&kept, "--offset", opt->offset.us);
	keep_option(&kept, "--group-by", opt->group_by);
	keep_option(&kept, "--aggregate", opt->aggregate == NULL ? "count" : opt->aggregate);
	keep_option(&kept, "--mode", modes[opt->mode]);
	keep_option_us(&kept, "--allowed-lateness", opt->allowed_lateness.us);
	keep_option(&kept, "--panes", opt->panes == PANES_DISCARDING ? "discarding" : "accumulating");
	keep_option(&kept, "--early", opt->early);
	keep_option(&kept, "--fill", opt->fill < 0 ? NULL : fills[opt->fill]);
	return kept;
}

/* Gaps that are too long to fill would be results left out in silence. */
static void
warn_unfilled(const struct engine *op, const struct cli_common *common)
{
	uint64_t skipped = op->windowing == NULL ? 0 : wm_windowing_gaps_skipped(op->windowing);

	if (skipped != 0 && !common->quiet)
		cli_warn("--fill: %" PRIu64 " gap%s of more than %d empty windows %s not filled", skipped,
			skipped == 1 ? "" : "s", WM_FILL_WINDOWS_MAX, skipped == 1 ? "was" : "were");
}

static _Noreturn void
answer_explain(const struct options *opt, const struct engine *engine)
{
	const struct explain_windowing op = {
		.windows = &engine->windows,
		.windows_text = opt->tumbling != NULL ? opt->tumbling
			: opt->sliding != NULL        ? opt->sliding
			: opt->cumulating != NULL     ? opt->cumulating
						      : opt->session,
		.is_session = opt->session != NULL,
		.gap_us = engine->gap_us,
		.panes = &engine->panes,
		.mode = (enum wm_window_mode)opt->mode,
		.group_by = opt->group_by,
		.aggregate = opt->aggregate == NULL ? "count" : opt->aggregate,
		.fill = opt->fill < 0 ? NULL : fills[opt->fill],
		.is_partial = opt->partial,
	};
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	explain_windowing(&opt->common, &op, &text);
	cli_answer(&text);
}

/* The gap of sessions, in one spelling for one length; NULL: there are none. */
static const char *
gap_text(const struct engine *op, const struct options *opt, struct wm_buf *text)
{
	if (opt->session == NULL || op->gap_us == 0)
		return opt->session;
	wm_duration_print(op->gap_us, text);
	wm_buf_add_byte(text, '\0');
	return text->data;
}

int
main(int argc, char **argv)
{
	struct options opt = { .common.eof = CLI_EOF_DEFAULT, .fill = -1 };
	struct engine op = { 0 };
	struct wm_err err;

	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	parse_windows(&op, &opt);
	struct wm_agg *agg = wm_agg_parse(wm_span_of(opt.aggregate == NULL ? "count" : opt.aggregate), &err);
	if (agg == NULL)
		cli_misuse("--aggregate: %s", err.message);
	/* Everything, once: what a complete result is asked for. */
	if (opt.mode == WM_MODE_COMPLETE && opt.common.trigger == NULL)
		opt.common.trigger_word = CLI_TRIGGER_EOF;

	op.keeps_texts = opt.group_by != NULL;
	for (size_t i = 0; i < wm_agg_outputs_count(agg); i++)
		op.keeps_texts |= wm_agg_output_keeps_texts(agg, i);
	const struct keep_state state = {
		.self = &op,
		.version = 1,
		.encode = encode,
		.decode = decode,
		.bytes = bytes,
		.holds_texts = holds_texts,
		.is_bound_by_delay = opt.mode != WM_MODE_COMPLETE,
		.bound = opt.group_by != NULL ? "fewer keys (-g)" : NULL,
		.writes_anew = opt.mode == WM_MODE_COMPLETE,
		.is_gone_by_flush = true,
	};
	struct keep_options kept = kept_options(&opt);
	const struct stream_facts facts = {
		.operator_name = "windowing",
		.state = &state,
		.options = &kept,
		.needs_watermark = opt.mode == WM_MODE_APPEND,
		.no_watermark = opt.allowed_lateness.us > 0
			? "--allowed-lateness: without a watermark nothing is late: give a delay with -w"
			: NULL,
		.is_restating = opt.stamp,
	};
	struct wm_buf gap;
	wm_buf_init(&gap, WM_BUF_UNBOUNDED);
	const struct results_options form = {
		.group_by = opt.group_by,
		.has_panes = opt.mode == WM_MODE_APPEND && wm_pane_options_many(&op.panes),
		.is_partial = opt.partial,
		.gap = opt.partial ? gap_text(&op, &opt, &gap) : NULL,
		.is_filled_zero = opt.fill == FILL_ZERO,
		.is_stamped = opt.stamp,
		.hold_back_us = op.panes.allowed_lateness_us,
	};
	struct stream *s = stream_open(&opt.common, &facts);
	struct results results;
	results_open(&results, s, &opt.common, agg, &form);
	if (gap_column(&opt) != NULL)
		want_gaps(&op, s, gap_column(&opt));
	if (opt.common.explain)
		answer_explain(&opt, &op);
	stream_begin(s, results.names, results.count);
	open_engine(&op, &opt, agg, results.keys_count, stream_has_progress(s));
	if (op.windowing != NULL)
		wm_windowing_set_pause(op.windowing, &(struct wm_pause){ stream_pause, s });
	stream_resume(s);

	struct wm_value keys[WM_KEYS_MAX];
	struct stream_row row;
	enum stream_item item;
	while ((item = stream_next(s, due_us(&op), &row)) != STREAM_END) {
		if (item == STREAM_RECORD) {
			judge(&op, s, &row, results.keys_count, keys);
			continue;
		}
		if (item == STREAM_WATERMARK)
			advance(&op, s, &results, &row);
		if (item == STREAM_TICK || stream_wants_state(s))
			say_state(&op, s);
	}
	say_state(&op, s);
	warn_unfilled(&op, &opt.common);

	int status = stream_finish(s, stream_is_held(s) ? open_count(&op) : 0); /* flushes and checks every output */
	close_engine(&op);
	keep_options_release(&kept);
	wm_agg_free(agg);
	results_release(&results);
	wm_buf_release(&gap);
	cli_release(&opt.common);
	return status;
}
