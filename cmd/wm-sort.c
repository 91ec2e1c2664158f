/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wm-sort - rows in event-time order.
 *
 * Rows are held until the watermark passes them, and leave in order: what the
 * delay covers is put right, and what it does not is late. See wm-sort(1).
 */
#include "cmd/band.h"
#include "cmd/cli.h"
#include "cmd/explain.h"
#include "cmd/stream.h"
#include "lib/event/watermark.h"
#include "lib/op/sort.h"
#include "lib/time/instant.h"

#include <string.h>

struct options {
	struct cli_common common;
	bool merge_sorted;
};

/* Drives parsing and --help; tests hold the man page and the completion to it. */
#define AT(field) offsetof(struct options, field)
static const struct cli_option table[] = {
	CLI_HEADING("Order"),
	{ 'm', "merge-sorted", NULL, "each FILE is in order already, as for sort -m", CLI_FLAG, AT(merge_sorted),
		CLI_SCREEN },
	CLI_END,
};
static const struct cli_tool tool = {
	.name = "wm-sort",
	.summary = "rows in event-time order",
	.usage = "[OPTION]... [FILE]...",
	.examples = "tail -n +1 -F events.csv | wm-sort -t time -w 30s --late late.csv\n"
		    "wm-sort -m -t time web1.csv web2.csv web3.csv",
	.options = table,
	.groups = CLI_GROUP_STREAM,
	.merges_files = true, /* their rows are put in one order, so none is to run ahead of the others */
};

struct sorter {
	const struct options *opt;
	struct wm_sort *sort;
	bool is_drained; /* since the last record */
};

/*
 * When something may leave. In order (-m) the row that has just come from the FILE furthest behind may itself; but one of the same time from a FILE
 * behind it waits, and is not asked for again and again.
 */
static inline int64_t
due_us(const struct sorter *sorter)
{
	int64_t due_us = wm_sort_due_us(sorter->sort);

	return sorter->opt->merge_sorted && !sorter->is_drained && due_us != WM_TIME_END ? due_us - 1 : due_us;
}

static inline void
judge(struct sorter *sorter, struct stream *s, const struct stream_row *row)
{
	struct wm_sort_record record = {
		.event_time_us = row->event_time_us,
		.watermark_us = row->watermark_us,
		.source = (uint32_t)row->source,
		.bytes = stream_line(s),
	};

	sorter->is_drained = false;
	if (wm_sort_add(sorter->sort, &record) == WM_SORT_LATE)
		stream_late(s, 0);
	else
		stream_used(s, 0);
}

/* Writes what an advance lets go. */
static void
advance(struct sorter *sorter, struct stream *s, const struct stream_row *to)
{
	struct wm_sort_record record;
	bool is_written = false;

	sorter->is_drained = true;
	if (sorter->opt->merge_sorted && to->watermark_us != WM_TIME_END)
		wm_sort_advance_to(sorter->sort, to->watermark_us, (uint32_t)to->source);
	else
		wm_sort_advance(sorter->sort, to->watermark_us);
	for (; wm_sort_next(sorter->sort, &record); is_written = true)
		stream_put_line(s, record.bytes, to->watermark_before_us);
	if ((is_written || to->is_punctuated) && to->watermark_us != WM_TIME_END)
		stream_tell_watermark(s, to->watermark_us);
}

static void
say_state(const struct sorter *sorter, struct stream *s)
{
	struct report_state state = {
		.groups = wm_sort_count(sorter->sort),
		.bytes = wm_sort_bytes(sorter->sort),
	};

	stream_set_state(s, &state);
}

/* What is kept from run to run: u8 drained · the rows held. */

static void
encode(void *self, struct wm_buf *out)
{
	const struct sorter *sorter = self;

	wm_put_u8(out, sorter->is_drained);
	wm_sort_encode(sorter->sort, out);
}

static bool
decode(void *self, struct wm_get *in)
{
	struct sorter *sorter = self;

	sorter->is_drained = wm_get_u8(in) != 0;
	return wm_sort_decode(sorter->sort, in);
}

static size_t
bytes(const void *self)
{
	return wm_sort_bytes(((const struct sorter *)self)->sort);
}

static bool
holds_texts(const void *self)
{
	return wm_sort_count(((const struct sorter *)self)->sort) > 0;
}

static _Noreturn void
explain(const struct options *opt)
{
	const struct cli_common *common = &opt->common;
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	if (opt->merge_sorted) {
		wm_buf_add_text(&text,
			"Each FILE is taken to be in order. A row is written when every other FILE that has not ended "
			"has shown one that is not before it. A row that is out of order is late.\n");
	} else if (common->delay.text != NULL) {
		wm_buf_addf(&text,
			"The watermark is the highest event time so far less %s, moved %s.\n"
			"A row is held until the watermark has passed it, and written in its place.\n",
			common->delay.text,
			common->trigger_word == CLI_TRIGGER_EACH ? "with each row" : "at the end of each batch");
	} else {
		wm_buf_add_text(&text,
			"There is no -w: the watermark is the one that the rows carry; without one all rows are held, "
			"and written when the input ends.\n");
	}
	wm_buf_addf(&text, "Rows behind the watermark %s.\n",
		common->late_path != NULL ? "go to the file of --late"
					  : "are dropped and counted; --late FILE keeps them");
	explain_nulls(common, &text);
	cli_answer(&text);
}

int
main(int argc, char **argv)
{
	struct options opt = { .common.eof = CLI_EOF_DEFAULT };

	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	if (opt.merge_sorted && opt.common.delay.text != NULL)
		cli_misuse("-m and -w: rows that are in order need no delay: give one of them");
	if (opt.merge_sorted && opt.common.trigger_word != CLI_TRIGGER_EACH)
		cli_misuse("-m and --trigger: each row tells how far its FILE has come: leave --trigger out");
	if (opt.merge_sorted && opt.common.is_spark)
		cli_misuse("-m and --compat spark: rows of one time would be late: leave --compat out");
	if (opt.merge_sorted && opt.common.watermark_column != NULL && strcmp(opt.common.watermark_column, "none") != 0)
		cli_misuse("-m and --watermark-column: each row tells how far its FILE has come: give one of them");
	if (opt.common.explain)
		explain(&opt);
	struct sorter sorter = { .opt = &opt };
	const struct keep_state state = {
		.self = &sorter,
		.version = 1,
		.encode = encode,
		.decode = decode,
		.bytes = bytes,
		.holds_texts = holds_texts,
		.is_bound_by_delay = !opt.merge_sorted,
		.is_gone_by_flush = true,
	};
	struct keep_options kept = { 0 };
	keep_option_flag(&kept, "--merge-sorted", opt.merge_sorted);
	const struct stream_facts facts = {
		.operator_name = "sort",
		.state = &state,
		.options = &kept,
		.needs_watermark = true,
		.is_passing = true,
		.is_restating = true,
		.is_in_order = opt.merge_sorted,
		.held_unit = "row",
	};
	struct stream *s = stream_open(&opt.common, &facts);
	sorter.sort = wm_sort_new(opt.common.merge, opt.common.is_spark);
	stream_begin(s, NULL, 0);
	stream_resume(s);

	struct stream_row row;
	enum stream_item item;
	while ((item = stream_next(s, due_us(&sorter), &row)) != STREAM_END) {
		if (item == STREAM_RECORD) {
			judge(&sorter, s, &row);
			continue;
		}
		if (item == STREAM_WATERMARK)
			advance(&sorter, s, &row);
		if (item == STREAM_TICK || stream_wants_state(s))
			say_state(&sorter, s);
	}
	say_state(&sorter, s);
	int status = stream_finish(s, stream_is_held(s) ? wm_sort_count(sorter.sort) : 0);
	wm_sort_free(sorter.sort);
	keep_options_release(&kept);
	cli_release(&opt.common);
	return status;
}
