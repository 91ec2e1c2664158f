/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wm-dedup - pass the first row of each key.
 *
 * A key is remembered for as long as the watermark leaves room for a row of it
 * that is not late, so state does not grow with the input. See wm-dedup(1).
 */
#include "cmd/cli.h"
#include "cmd/explain.h"
#include "cmd/stream.h"
#include "lib/base/limits.h"
#include "lib/event/watermark.h"
#include "lib/op/dedup.h"

#include <string.h>

struct options {
	struct cli_common common;
	const char *key;
	bool within_watermark;
	bool with_time;
	struct cli_duration remember;
	bool forever;
	bool pass_late;
};

/* Drives parsing and --help; tests hold the man page and the completion to it. */
#define AT(field) offsetof(struct options, field)
static const struct cli_option table[] = {
	CLI_HEADING("Duplicates"),
	{ 'k', "key", "COLUMNS", "what makes rows the same (default: the whole record)", CLI_COLUMNS, AT(key),
		CLI_SCREEN },
	{ 0, "within-watermark", NULL, "the key alone, remembered for the delay (the default)", CLI_FLAG,
		AT(within_watermark), CLI_ALL },
	{ 0, "with-time", NULL, "key and event time together", CLI_FLAG, AT(with_time), CLI_SCREEN },
	{ 0, "remember", "D", "how long after its time a key is remembered (default: the delay)", CLI_DURATION,
		AT(remember), CLI_SCREEN },
	{ 0, "forever", NULL, "never forget a key", CLI_FLAG, AT(forever), CLI_SCREEN },
	{ 0, "pass-late", NULL, "late rows pass too, marked _late = 1", CLI_FLAG, AT(pass_late), CLI_ALL },
	{ 0, "duplicates", "FILE", "the rows that were left out, as they came", CLI_PATH, AT(common.duplicates_path),
		CLI_SCREEN },
	CLI_END,
};
static const struct cli_tool tool = {
	.name = "wm-dedup",
	.summary = "pass the first row of each key",
	.usage = "[OPTION]... [FILE]...",
	.examples = "wm-dedup -t time -w 10m -k event_id events.ndjson\n"
		    "wm-stamp -t time -w 1m a.csv | wm-dedup -k id --remember 1m > once.csv",
	.options = table,
	.groups = CLI_GROUP_STREAM,
};

static enum wm_dedup_memory
memory_of(const struct options *opt)
{
	return opt->with_time ? WM_DEDUP_WITH_TIME : opt->forever ? WM_DEDUP_FOREVER : WM_DEDUP_WITHIN_WATERMARK;
}

static void
check_memory(const struct options *opt)
{
	const struct cli_delay *delay = &opt->common.delay;
	int64_t remember_us = opt->remember.text != NULL ? opt->remember.us : delay->us;

	if (opt->within_watermark + opt->with_time + opt->forever > 1)
		cli_misuse("--within-watermark, --with-time and --forever exclude each other");
	if (opt->remember.text != NULL && (opt->with_time || opt->forever))
		cli_misuse("--remember: has no effect with %s: leave it out",
			opt->with_time ? "--with-time" : "--forever");
	if (memory_of(opt) == WM_DEDUP_WITHIN_WATERMARK && remember_us == 0 && !opt->common.is_spark &&
		(opt->remember.text != NULL || delay->text != NULL))
		cli_misuse("%s: a key would be forgotten as soon as it is known: say with --remember D for how long",
			opt->remember.text != NULL ? "--remember 0s" : "-w 0s");
}

/* What is to be said of state that grows with the input; NULL: it does not. */
static const char *
unbounded(const struct options *opt, bool has_watermark)
{
	if (opt->forever)
		return "--forever: every key is remembered: memory grows with the number of keys";
	if (!has_watermark)
		return "without a watermark no key is forgotten: memory grows with the number of keys; set a delay "
		       "with -w";
	return NULL;
}

struct deduper {
	const struct options *opt;
	struct wm_dedup *dedup;
	size_t keys_count;       /* 0: the whole record */
	struct wm_buf identity;  /* of a whole record */
	struct wm_value late[2]; /* values of _late: 0 and 1 */
};

static inline enum wm_dedup_verdict
find_out(struct deduper *d, struct stream *s, const struct stream_row *row)
{
	struct wm_value keys[WM_KEYS_MAX];
	struct wm_dedup_record record = {
		.event_time_us = row->event_time_us,
		.watermark_us = row->watermark_us,
		.keys = keys,
		.number = stream_number(s),
	};

	if (d->keys_count == 1)
		record.keys = &row->readings[0].value; /* stands by itself where it is */
	else
		for (size_t i = 0; i < d->keys_count; i++)
			wm_value_copy(&keys[i], &row->readings[i].value);
	if (d->keys_count == 0) {
		wm_buf_reset(&d->identity);
		stream_identity(s, &d->identity);
		keys[0] = (struct wm_value){ wm_buf_span(&d->identity), WM_KIND_TEXT };
	}
	return wm_dedup_judge(d->dedup, &record);
}

/* So many records ahead the memory that a record needs is asked for, which takes about as long as they do. */
#define FORESEEN_RECORDS 8

/* The time is a part of the key only with --with-time, and is not known beforehand. */
static inline void
foresee(struct deduper *d, struct stream *s)
{
	struct wm_value keys[WM_KEYS_MAX];
	uint64_t number;

	if (d->keys_count != 0 && !d->opt->with_time &&
		stream_foresee(s, FORESEEN_RECORDS, keys, d->keys_count, &number))
		wm_dedup_foresee(d->dedup, 0, keys, number);
}

static inline void
judge(struct deduper *d, struct stream *s, const struct stream_row *row)
{
	switch (find_out(d, s, row)) {
	case WM_DEDUP_FIRST:
		stream_used(s, 0);
		stream_pass(s, &d->late[0]);
		break;
	case WM_DEDUP_DUPLICATE:
		stream_duplicate(s);
		break;
	case WM_DEDUP_LATE:
		stream_late(s, 0);
		if (d->opt->pass_late)
			stream_pass(s, &d->late[1]);
		break;
	}
}

static void
say_state(const struct deduper *d, struct stream *s)
{
	struct wm_dedup_counts counts = wm_dedup_counts(d->dedup);
	struct report_state state = {
		.groups = counts.keys,
		.updated = counts.added,
		.removed = counts.removed,
		.bytes = wm_dedup_bytes(d->dedup),
	};

	stream_set_state(s, &state);
}

/* What is kept from run to run */

static void
encode(void *self, struct wm_buf *out)
{
	wm_dedup_encode(((struct deduper *)self)->dedup, out);
}

static bool
decode(void *self, struct wm_get *in)
{
	return wm_dedup_decode(((struct deduper *)self)->dedup, in);
}

static size_t
bytes(const void *self)
{
	return wm_dedup_bytes(((const struct deduper *)self)->dedup);
}

static bool
holds_texts(const void *self)
{
	return wm_dedup_counts(((const struct deduper *)self)->dedup).keys > 0;
}

static struct keep_options
kept_options(const struct options *opt)
{
	struct keep_options kept = { 0 };

	keep_option(&kept, "--key", opt->key);
	keep_option_flag(&kept, "--with-time", opt->with_time);
	keep_option_flag(&kept, "--forever", opt->forever);
	keep_option_duration(&kept, "--remember", &opt->remember);
	return kept;
}

static _Noreturn void
explain(const struct options *opt)
{
	const struct cli_common *common = &opt->common;
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_addf(&text, "The first row of each %s%s passes, as it came; those like it do not.\n",
		opt->key == NULL ? "record" : opt->key, opt->with_time ? " and event time" : "");
	if (opt->forever || common->delay.text == NULL)
		wm_buf_addf(&text, "%s.\n",
			opt->forever ? "No key is ever forgotten"
				     : "There is no -w: the watermark is the one that the rows carry; without one no "
				       "key is forgotten");
	if (common->delay.text != NULL)
		wm_buf_addf(&text, "The watermark is the highest event time so far less %s, moved %s.\n",
			common->delay.text,
			common->trigger_word == CLI_TRIGGER_EACH ? "with each row" : "at the end of each batch");
	if (opt->with_time)
		wm_buf_add_text(&text, "A key is forgotten when the watermark is past its time.\n");
	else if (!opt->forever && (opt->remember.text != NULL || common->delay.text != NULL))
		wm_buf_addf(&text, "A key is forgotten when the watermark is %s past the time of its first row.\n",
			opt->remember.text != NULL ? opt->remember.text : common->delay.text);
	wm_buf_addf(&text, "Rows behind the watermark %s.\n",
		opt->pass_late                      ? "pass, with _late = 1"
			: common->late_path != NULL ? "go to the file of --late"
						    : "are dropped and counted; --late FILE keeps them");
	explain_nulls(common, &text);
	cli_answer(&text);
}

int
main(int argc, char **argv)
{
	static const struct wm_span late_name = { "_late", 5 };
	struct options opt = { .common.eof = CLI_EOF_DEFAULT };

	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	check_memory(&opt);
	if (opt.pass_late && opt.common.late_path != NULL)
		cli_misuse("--late and --pass-late: late rows go to a file, or on with the others: give one of them");
	if (opt.common.explain)
		explain(&opt);
	enum wm_dedup_memory memory = memory_of(&opt);
	struct deduper d = { .opt = &opt };
	const struct keep_state state = {
		.self = &d,
		.version = 1,
		.encode = encode,
		.decode = decode,
		.bytes = bytes,
		.holds_texts = holds_texts,
		.is_bound_by_delay = !opt.forever,
		.bound = opt.forever                ? "--remember D instead of --forever"
			: opt.remember.text != NULL ? "a shorter --remember"
						    : NULL,
	};
	struct keep_options kept = kept_options(&opt);
	const struct stream_facts facts = {
		.operator_name = "dedup",
		.state = &state,
		.options = &kept,
		.is_passing = true,
		.late_fate = opt.pass_late ? "passed on" : NULL,
		.in_band = memory == WM_DEDUP_WITHIN_WATERMARK && opt.remember.text == NULL
			? "--remember: the watermark comes in band, and nothing tells the delay behind it: say for how "
			  "long a key is remembered"
			: NULL,
		.warn_watermark = unbounded(&opt, true),
		.warn_no_watermark = unbounded(&opt, false),
	};
	struct stream *s = stream_open(&opt.common, &facts);
	d.keys_count = stream_want_keys(s, "-k", opt.key);
	d.late[0] = (struct wm_value){ wm_span("0", 1), WM_KIND_NUMBER };
	d.late[1] = (struct wm_value){ wm_span("1", 1), WM_KIND_NUMBER };
	const struct wm_dedup_options options = {
		.keys_count = d.keys_count == 0 ? 1 : d.keys_count,
		.memory = memory,
		.remember_us = opt.remember.text != NULL ? opt.remember.us : opt.common.delay.us,
		.is_spark = opt.common.is_spark,
	};
	d.dedup = wm_dedup_new(&options);
	wm_buf_init(&d.identity, WM_BUF_UNBOUNDED);
	stream_stamp(s, &late_name, opt.pass_late ? 1 : 0);
	stream_begin(s, NULL, 0);
	stream_resume(s);

	struct stream_row row;
	enum stream_item item;
	/* Nothing is held, so nothing is ever due. */
	while ((item = stream_next(s, WM_TIME_END, &row)) != STREAM_END) {
		if (item == STREAM_RECORD) {
			foresee(&d, s);
			judge(&d, s, &row);
			continue;
		}
		if (item == STREAM_PUNCTUATION)
			stream_pass_punctuation(s);
		else if (item == STREAM_WATERMARK && row.watermark_us != WM_TIME_END)
			wm_dedup_advance(d.dedup, row.watermark_us);
		if (item == STREAM_TICK || stream_wants_state(s))
			say_state(&d, s);
	}
	say_state(&d, s);
	int status = stream_finish(s, 0); /* flushes and checks every output */
	wm_dedup_free(d.dedup);
	wm_buf_release(&d.identity);
	keep_options_release(&kept);
	cli_release(&opt.common);
	return status;
}
