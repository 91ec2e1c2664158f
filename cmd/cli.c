/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cli.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/terminal.h"
#include "cmd/uses.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/base/near.h"
#include "lib/base/shown.h"
#include "lib/record/writer.h"
#include "lib/time/instant.h"

/* Rows of an option table with the groups that it takes, headings included: for arrays on the stack. */
#define OPTIONS_MAX 128

/* The longest list of --files0-from: names for millions of files. */
#define FILES0_BYTES_MAX ((size_t)1 << 28)

/* What getopt_long() returns for row 0: above every byte. */
#define ROW_FIRST 256

/* Longest word that gets spelling advice; every option and choice is shorter. */
#define WORD_MAX 32

/* The layout of --help. */
#define HELP_WIDTH 80
#define HELP_COLUMN 26

static const char *tool_name = "wm";

#define AT(field) offsetof(struct cli_common, field)
static const struct cli_option input_options[] = {
	CLI_HEADING("Input"),
	{ 'i', "input-format", "auto|csv|tsv|ndjson|clf|logfmt|lines",
		"format of the input (default: by its first bytes)", CLI_CHOICE, AT(input_format), CLI_SCREEN },
	{ 'd', "delimiter", "C", "CSV delimiter: one byte, or \\t", CLI_TEXT, AT(delimiter), CLI_SCREEN },
	{ 0, "tsv-escapes", "backslash|none",
		"TSV: \\t, \\n, \\r, \\\\ are read and written (default), or bytes stand as they are", CLI_CHOICE,
		AT(tsv_escapes), CLI_ALL },
	{ 0, "columns", "NAMES", "names of the columns of CSV without a header; @FILE: from FILE's first line",
		CLI_NAMES, AT(columns), CLI_ALL },
	{ 0, "no-header", NULL, "CSV without header or names: columns are 1, 2, ...", CLI_FLAG, AT(no_header),
		CLI_ALL },
	{ 0, "pattern", "REGEX", "with -i lines: groups are the columns; or @kubectl, @syslog, @haproxy", CLI_TEXT,
		AT(pattern), CLI_ALL },
	{ 0, "unmatched", "reject|skip", "lines that are not of the format (default reject)", CLI_CHOICE, AT(unmatched),
		CLI_ALL },
	{ 0, "null", "LIST", "texts that are no value, as the empty field is: 'NA,NULL,\\N,-'", CLI_TEXT, AT(null),
		CLI_ALL },
	{ 0, "null-quoted", NULL, "CSV: where they stand in quotes too", CLI_FLAG, AT(null_quoted), CLI_ALL },
	{ 0, "order", "given|time", "several FILEs: as named (default), or by their first event time", CLI_CHOICE,
		AT(order), CLI_ALL },
	{ 0, "merge", NULL, "several FILEs side by side, each with a watermark of its own", CLI_FLAG, AT(merge),
		CLI_ALL },
	{ 0, "files0-from", "FILE", "names of the inputs, each ended by a NUL byte (find -print0)", CLI_TEXT,
		AT(files0_from), CLI_ALL },
	{ 0, "record-limit", "SIZE", "longest record (default 64M); longer ones are rejected", CLI_SIZE,
		AT(record_limit), CLI_ALL },
	CLI_END,
};
static const struct cli_option time_options[] = {
	CLI_HEADING("Event time and watermark"),
	{ 't', "time", "COLUMN", "column of the event time; date+time: two columns", CLI_TIME, AT(time_column),
		CLI_SCREEN },
	{ 0, "time-format", "F", "auto (default), iso, s, ms, us, ns, clf, rfc2822 or a strptime pattern", CLI_TEXT,
		AT(time_format), CLI_SCREEN },
	{ 0, "tz", "ZONE", "zone of times without one, and of results; default UTC", CLI_TEXT, AT(tz), CLI_SCREEN },
	{ 0, "time-reference", "T", "for times without a year: the year nearest to T", CLI_TEXT, AT(time_reference),
		CLI_ALL },
	{ 0, "repeated-hour", "earlier|later", "which one a time means in the hour that a clock change repeats",
		CLI_CHOICE, AT(repeated_hour), CLI_ALL },
	{ 'w', "delay", "D", "delay threshold: how late rows may run (90s, 10m, 2d)", CLI_DELAY, AT(delay),
		CLI_SCREEN },
	{ 0, "watermark-column", "COLUMN|none", "take the watermark from this column (default _watermark)", CLI_COLUMN,
		AT(watermark_column), CLI_ALL },
	{ 0, "source", "COLUMN", "a watermark for each value of this column; delays of their own: -w D,web2=E",
		CLI_COLUMN, AT(source_column), CLI_ALL },
	{ 0, "sources", "NAMES", "sources known beforehand: each holds the watermark until it has spoken", CLI_TEXT,
		AT(sources), CLI_ALL },
	{ 0, "policy", "min|max", "how the watermarks of sources combine (default min)", CLI_CHOICE, AT(policy),
		CLI_ALL },
	{ 0, "idle", "D", "a source is idle when event time has gone on by D without it", CLI_DURATION, AT(idle),
		CLI_ALL },
	{ 0, "idle-wall", "D", "the same by the clock, for live input", CLI_DURATION, AT(idle_wall), CLI_ALL },
	{ 0, "idle-close", "D", "when nothing has come for D, the watermark goes on with the clock", CLI_DURATION,
		AT(idle_close), CLI_ALL },
	{ 0, "max-jump", "D", "a row more than D ahead of all others does not move the watermark by itself",
		CLI_DURATION, AT(max_jump), CLI_ALL },
	{ 0, "max-ahead", "D", "rows more than D ahead of their arrival (--ingest) are rejected", CLI_DURATION,
		AT(max_ahead), CLI_ALL },
	{ 0, "ingest", "COLUMN|now", "arrival time of a row, for --max-ahead", CLI_COLUMN, AT(ingest), CLI_ALL },
	{ 0, "trigger", "W", "when the watermark moves: each (default), 1000rows, event:D, wall:D, column:C, file, eof",
		CLI_TEXT, AT(trigger), CLI_ALL },
	{ 0, "eof", "flush|hold|trigger",
		"at the end of input: write what is open (default), keep it, or end the batch", CLI_CHOICE, AT(eof),
		CLI_ALL },
	{ 0, "compat", "spark", "judge late rows as Spark does, where the rules differ", CLI_TEXT, AT(compat),
		CLI_ALL },
	CLI_END,
};
static const struct cli_option report_options[] = {
	CLI_HEADING("Late and rejected rows, reports"),
	{ 0, "late", "FILE", "late rows, as they came, header included", CLI_PATH, AT(late_path), CLI_SCREEN },
	{ 0, "late-info", NULL, "add _late_by (seconds) and _late_watermark to them", CLI_FLAG, AT(late_info),
		CLI_ALL },
	{ 0, "rejects", "FILE", "records that cannot be used, with reasons, as NDJSON", CLI_PATH, AT(rejects_path),
		CLI_SCREEN },
	{ 0, "append", NULL, "add to --late, --rejects, --report and --out files that exist", CLI_FLAG, AT(append),
		CLI_ALL },
	{ 0, "overwrite", NULL, "replace them", CLI_FLAG, AT(overwrite), CLI_ALL },
	{ 0, "strict", NULL, "stop at the first record that is rejected", CLI_FLAG, AT(strict), CLI_ALL },
	{ 0, "fail-late", "SHARE", "status 5 if more of the rows were late (1/1000, 0.1%)", CLI_TEXT, AT(fail_late),
		CLI_ALL },
	{ 0, "report", "FILE", "the ledger of all rows, as NDJSON", CLI_PATH, AT(report_path), CLI_SCREEN },
	{ 0, "metrics", "FILE.prom", "the same for Prometheus' textfile collector", CLI_PATH, AT(metrics_path),
		CLI_ALL },
	{ 0, "progress", "auto|bar|json|none", "on standard error: a bar, or an object a batch", CLI_CHOICE,
		AT(progress), CLI_ALL },
	{ 'q', "quiet", NULL, "no summary, unless the status is not 0", CLI_FLAG, AT(quiet), CLI_SCREEN },
	{ 'v', "verbose", NULL, "always a summary on standard error", CLI_FLAG, AT(verbose), CLI_SCREEN },
	{ 0, "explain", NULL, "read nothing: say in words what this command will do", CLI_FLAG, AT(explain),
		CLI_SCREEN },
	CLI_END,
};
static const struct cli_option output_options[] = {
	CLI_HEADING("Output"),
	{ 'o', "output-format", "same|csv|tsv|ndjson|table", "format of the results (default same: as the input)",
		CLI_CHOICE, AT(output_format), CLI_SCREEN },
	{ 0, "output-time", "iso|s|ms|us|ns", "format of times in the results (default iso)", CLI_CHOICE,
		AT(output_time), CLI_ALL },
	{ 0, "ofmt", "FORMAT", "printf format of computed fractions (%.3f)", CLI_TEXT, AT(ofmt), CLI_ALL },
	{ 0, "no-output-header", NULL, "no header line", CLI_FLAG, AT(no_output_header), CLI_ALL },
	{ 0, "out", "FILE", "results here instead of standard output", CLI_PATH, AT(out_path), CLI_ALL },
	CLI_END,
};

/* Without a heading: they follow those of the output. */
static const struct cli_option run_options[] = {
	{ 'C', "checkpoint", "FILE", "state and positions: the next run goes on there", CLI_PATH, AT(checkpoint),
		CLI_SCREEN },
	{ 0, "checkpoint-every", "W", "how often it is written: 30s of wall time (default), 1000000rows", CLI_TEXT,
		AT(checkpoint_every), CLI_ALL },
	{ 0, "resume", "auto|replay|prev", "go on (default), read pipes from their first byte, or go on from FILE.prev",
		CLI_CHOICE, AT(resume), CLI_ALL },
	{ 0, "position", "COLUMN", "keep the last value of COLUMN, for readers that begin there", CLI_COLUMN,
		AT(position), CLI_ALL },
	{ 0, "max-file-age", "D", "input files older than that are forgotten, and not read", CLI_DURATION,
		AT(max_file_age), CLI_ALL },
	{ 0, "new-output", NULL, "accept outputs that were changed since the last run", CLI_FLAG, AT(new_output),
		CLI_ALL },
	{ 0, "state-limit", "SIZE|none", "stop when the state is larger (default: half of the memory)", CLI_TEXT,
		AT(state_limit), CLI_ALL },
	CLI_END,
};
#undef AT

/* cli_parse() answers both itself. */
static const struct cli_option help_options[] = {
	CLI_HEADING("Help"),
	{ 'h', "help", "[=all]", "this page; =all: every option", CLI_FLAG, SIZE_MAX - 1, CLI_SCREEN },
	{ 'V', "version", NULL, "the version", CLI_FLAG, SIZE_MAX - 1, CLI_SCREEN },
	CLI_END,
};

/* In the order of --help; a mask of 0 is in every tool. */
static const struct {
	unsigned mask;
	const struct cli_option *options;
} groups[] = {
	{ CLI_GROUP_INPUT, input_options },
	{ CLI_GROUP_TIME, time_options },
	{ CLI_GROUP_REPORTS, report_options },
	{ CLI_GROUP_OUTPUT, output_options },
	{ CLI_GROUP_RUNS, run_options },
	{ 0, help_options },
};

/*
 * What other tools call our options, or what they have and we do in another way. The advice is given by tools that have the option in
 * the second column (NULL: by all); the first that fits.
 */
static const struct {
	const char *words;
	const char *option;
	const char *advice;
} foreign_words[] = {
	{ "watermark|watermark-delay|delay-threshold|out-of-orderness|max-delay|lag", "delay",
		"the watermark follows from the delay: write -w D (--delay)" },
	{ "lateness|allowed-lateness|grace|late-by|max-lateness", "delay",
		"how late rows may come is the delay: write -w D (--delay)" },
	{ "session-gap|session-window|gap|inactivity", "session", "write --session GAP" },
	{ "cumulate|cumulative", "cumulating", "write --cumulating MAX,STEP" },
	{ "window|windows|window-size|size|interval|tumble|bucket|session|session-gap|cumulating", "tumbling",
		"windows are --tumbling SIZE or --sliding SIZE,SLIDE" },
	{ "slide|hop|hopping|window-slide|every|step", "sliding", "write --sliding SIZE,SLIDE" },
	{ "by|group|groupby|key|keys|partition-by", "group-by", "write -g COLUMNS (--group-by)" },
	{ "group-by|group|groupby|by|keys|id", "key", "write -k COLUMNS (--key)" },
	{ "agg|aggregates|count|sum|avg|mean|min|max|select", "aggregate",
		"write -a LIST (--aggregate), such as -a count,max:mag" },
	{ "output-mode", "mode", "write --mode append, update or complete" },
	{ "format|csv|tsv|json|ndjson|jsonl", "input-format",
		"write -i F for the input, -o F for the output, --time-format F for times" },
	{ "input|file|files", "input-format", "name inputs without an option; their format is -i F" },
	{ "output|output-file|outfile", "out", "write > FILE or --out FILE; the format is -o F" },
	{ "separator|sep|fs|field-separator", "delimiter", "write -d C (--delimiter)" },
	{ "na|na-values|nan|nil|none|missing|missing-values|null-value|null-values|null-string|nulls|nullstr", "null",
		"write --null LIST, as in --null 'NA,NULL,-'" },
	{ "header", "no-header", "the first line of CSV is one; where it is not: --columns NAMES or --no-header" },
	{ "timezone|time-zone|zone", "tz", "write --tz ZONE" },
	{ "date-format|timestamp-format|datetime-format|strptime", "time-format", "write --time-format F" },
	{ "timestamp|ts|event-time|time-column|time-field|date", "time", "write -t COLUMN (--time)" },
	{ "side-output|late-output|late-rows|late-file", "late", "write --late FILE" },
	{ "errors|bad|invalid|dead-letter", "rejects", "write --rejects FILE" },
	{ "silent", "quiet", "write -q (--quiet)" },
	{ "batch|batch-size|flush-interval|emit", "trigger", "write --trigger 1000rows, event:10s or wall:10s" },
	{ "dry-run|describe|plan", "explain", "write --explain" },
	{ "files-from|file-list|inputs", "files0-from", "write --files0-from FILE; its names end in NUL bytes" },
	{ "prometheus", "metrics", "write --metrics FILE.prom" },
	{ "year|reference|base-time", "time-reference", "write --time-reference T" },
	{ "on", "key", "write -k COLUMNS (--key)" },
	{ "on", "group-by", "write -g COLUMNS (--group-by)" },
	{ "on", "time", "name the column of the event time with -t COLUMN" },
	{ "within", "between", "write --between LO,HI, as in --between 0s,10m" },
	{ "within|ttl|expire|retention|state-ttl", "remember", "write --remember D" },
	{ "ttl|expire|retention|state-ttl", "between",
		"a row is kept while it can match: write --between LO,HI; of --asof, --tolerance D" },
	{ "within", "tumbling", "how late rows may come is -w D, how long windows are --tumbling SIZE" },
	{ "within|ttl|expire|retention|state-ttl", "delay",
		"state is kept as long as the watermark asks: write -w D (--delay)" },
	{ "lookup|enrich", "asof", "for the last row of a table at or before each row: --asof backward LEFT TABLE" },
	{ "lookup|enrich", NULL, "wm-join --asof backward finds the last row of a table at or before each row" },
	{ "filter|where", "aggregate",
		"compute under a condition, -a sum:ms:if:status:ge:500; or filter behind wm-stamp, so that all rows "
		"move the watermark: wm-stamp -t ts -w D | grep ... | wm-window ..." },
	{ "filter|where", "delay",
		"filter behind wm-stamp, so that all rows move the watermark: wm-stamp -t ts -w D | grep ... | "
		"wm-..." },
	{ "filter|where", NULL, "filter before or behind the tool: | grep ..." },
	{ "limit|head|first-n", NULL, "write | head -n N" },
	{ "gzip|gz|compress|zstd|decompress", NULL, "read by zcat FILE | wm-..., and write by | gzip" },
	{ "color|colour|colors", NULL, "nothing is coloured: leave it out" },
	{ "avg|mean|average", "percentiles", "the results have a column avg: leave it out" },
	{ "avg|mean|average", NULL, "wm-window -a avg:COLUMN computes averages" },
};

/* ---- messages ---- */

/* A text as messages show it; no memory to give back. */
struct shown {
	char text[4 * WM_SHOWN_BYTES_MAX + 16];
};

static struct shown
shown_span(struct wm_span text)
{
	struct shown shown;
	struct wm_buf buf;

	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	wm_shown(text, &buf);
	size_t len = buf.len < sizeof(shown.text) ? buf.len : sizeof(shown.text) - 1;
	if (len != 0)
		memcpy(shown.text, buf.data, len);
	shown.text[len] = '\0';
	wm_buf_release(&buf);
	return shown;
}

static struct shown
shown(const char *text)
{
	return shown_span(wm_span_of(text));
}

/* What may stand on the terminal, to be wiped before anything else is written there; NULL: nothing. */
static struct progress *bar;

static void
hide_bar(struct wm_buf *out)
{
	if (bar != NULL)
		progress_hide(bar, out);
}

/* One line in one write, whatever bytes the message holds. */
static void
print_message(const char *format, va_list args)
{
	struct wm_buf message, line;
	va_list again;

	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	assert(len >= 0);
	wm_buf_init(&message, WM_BUF_UNBOUNDED);
	bool fits = wm_buf_reserve(&message, (size_t)len + 1);
	assert(fits);
	(void)fits;
	vsnprintf(message.data, (size_t)len + 1, format, args);
	wm_buf_init(&line, WM_BUF_UNBOUNDED);
	hide_bar(&line);
	wm_buf_addf(&line, "%s: ", tool_name);
	for (int at = 0; at < len; at++) {
		unsigned char byte = (unsigned char)message.data[at];

		if (byte < 0x20 || byte == 0x7f)
			wm_buf_addf(&line, "\\x%02X", byte);
		else
			wm_buf_add_byte(&line, (char)byte);
	}
	wm_buf_add_byte(&line, '\n');
	fwrite(line.data, 1, line.len, stderr);
	wm_buf_release(&line);
	wm_buf_release(&message);
}

const char *
cli_tool_name(void)
{
	return tool_name;
}

void
cli_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_message(format, args);
	va_end(args);
}

void
cli_progress(struct wm_span line)
{
	struct wm_buf bytes;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	hide_bar(&bytes);
	wm_buf_add(&bytes, line.data, line.len);
	fwrite(bytes.data, 1, bytes.len, stderr);
	wm_buf_release(&bytes);
}

void
cli_bar(struct progress *progress, const struct progress_status *status, int64_t now_us)
{
	struct wm_buf bytes;

	if (!progress_is_due(progress, now_us))
		return;
	bar = progress;
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	progress_show(progress, status, terminal_width(STDERR_FILENO), now_us, &bytes);
	fwrite(bytes.data, 1, bytes.len, stderr);
	wm_buf_release(&bytes);
}

void
cli_bar_end(void)
{
	if (bar != NULL)
		cli_progress(wm_span(NULL, 0));
	bar = NULL;
}

void
cli_misuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_message(format, args);
	va_end(args);
	exit(CLI_MISUSE);
}

void
cli_done(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_message(format, args);
	va_end(args);
	exit(CLI_DONE);
}

enum cli_status
cli_status_of(enum wm_err_code code)
{
	switch (code) {
	case WM_ERR_NONE:
		return CLI_DONE;
	case WM_ERR_USAGE:
		return CLI_MISUSE;
	case WM_ERR_DATA:
		return CLI_REJECTED;
	case WM_ERR_IO:
		return CLI_IO;
	case WM_ERR_LIMIT:
		return CLI_LIMIT;
	}
	assert(false);
	return CLI_IO;
}

int
cli_open(const char *path, int flags, mode_t mode)
{
	struct stat found;
	int fd;

	do
		fd = open(path, flags, mode);
	while (fd == -1 && errno == EINTR && !(stat(path, &found) == 0 && S_ISFIFO(found.st_mode)));
	return fd;
}

void
cli_die(const struct wm_err *err)
{
	cli_warn("%s", err->message);
	exit((int)cli_status_of(err->code));
}

/* ---- words: choices and spelling advice ---- */

static bool
is_heading(const struct cli_option *option)
{
	return option->offset == SIZE_MAX;
}

static const struct cli_option *
find_name(const struct cli_option *table, struct wm_span name)
{
	for (const struct cli_option *option = table; option->name != NULL; option++)
		if (!is_heading(option) && wm_span_is(name, option->name))
			return option;
	return NULL;
}

static const struct cli_option *
find_letter(const struct cli_option *table, int letter)
{
	for (const struct cli_option *option = table; option->name != NULL; option++)
		if (!is_heading(option) && option->letter != 0 && option->letter == letter)
			return option;
	return NULL;
}

/* Index of word in "a|b|c", or -1. */
static int
index_of(const char *words, struct wm_span word)
{
	struct wm_span rest = wm_span_of(words), each;

	for (int index = 0; wm_list_next(&rest, '|', &each); index++)
		if (wm_span_equal(each, word))
			return index;
	return -1;
}

static _Noreturn void
refuse_choice(const char *option, struct wm_span word, const char *choices)
{
	struct wm_near near = wm_near_to(word);
	struct wm_span rest = wm_span_of(choices), choice;
	char list[256] = "";
	size_t len = 0;

	for (bool is_first = true; wm_list_next(&rest, '|', &choice); is_first = false) {
		const char *before = is_first ? "" : rest.data == NULL ? " or " : ", ";
		int added = snprintf(list + len, sizeof(list) - len, "%s%.*s", before, (int)choice.len, choice.data);

		len += (size_t)added;
		assert(len < sizeof(list));
		wm_near_try(&near, choice);
	}
	if (near.best.data == NULL)
		cli_misuse("%s: no '%s': %s", option, shown_span(word).text, list);
	cli_misuse("%s: no '%s': %s: did you mean %.*s?", option, shown_span(word).text, list, (int)near.best.len,
		near.best.data);
}

/* A long option that the table does not have: a word of another tool, an abbreviation, or misspelt. */
static _Noreturn void
refuse_name(const struct cli_option *table, struct wm_span name)
{
	struct wm_near near = wm_near_to(name);
	const struct cli_option *begun[2] = { NULL, NULL }; /* the first and the last that begin with name */

	for (size_t row = 0; row < sizeof(foreign_words) / sizeof(foreign_words[0]); row++)
		if (index_of(foreign_words[row].words, name) >= 0 &&
			(foreign_words[row].option == NULL ||
				find_name(table, wm_span_of(foreign_words[row].option)) != NULL))
			cli_misuse("no option --%s: %s", shown_span(name).text, foreign_words[row].advice);
	for (const struct cli_option *option = table; option->name != NULL; option++) {
		if (is_heading(option))
			continue;
		wm_near_try(&near, wm_span_of(option->name));
		if (name.len != 0 && strncmp(option->name, name.data, name.len) == 0)
			begun[begun[0] != NULL] = option;
	}
	/* a word that lacks its last byte is misspelt, not an abbreviation */
	if (near.best_edits == 1 || (near.best.data != NULL && begun[0] == NULL))
		cli_misuse("no option --%s: did you mean --%.*s?", shown_span(name).text, (int)near.best.len,
			near.best.data);
	if (begun[1] != NULL)
		cli_misuse("--%s: write --%s or --%s in full", shown_span(name).text, begun[0]->name, begun[1]->name);
	if (begun[0] != NULL)
		cli_misuse("--%s: write --%s in full", shown_span(name).text, begun[0]->name);
	cli_misuse("no option --%s: see --help", shown_span(name).text);
}

/* ---- arguments ---- */

static int
compare_columns(const void *a, const void *b)
{
	const struct wm_column *left = a, *right = b;
	int order = wm_span_compare(wm_span(left->name, left->name_len), wm_span(right->name, right->name_len));

	/* "a.b" is a path, "a\.b" a name: the same bytes, other columns */
	return order != 0 ? order : (left->path_count > right->path_count) - (left->path_count < right->path_count);
}

static bool
check_columns(const char *text, struct wm_err *err)
{
	struct wm_span rest = wm_span_of(text), part;
	struct wm_column *columns = NULL;
	size_t count = 0, capacity = 0;
	bool is_good = true;

	while (is_good && wm_list_next(&rest, ',', &part)) {
		if (count == capacity) {
			capacity = capacity == 0 ? 16 : capacity * 2;
			columns = wm_reallocarray(columns, capacity, sizeof(*columns));
		}
		is_good = wm_column_parse(part, &columns[count], err);
		count += is_good;
	}
	if (is_good)
		qsort(columns, count, sizeof(*columns), compare_columns);
	for (size_t at = 1; is_good && at < count; at++)
		if (compare_columns(&columns[at - 1], &columns[at]) == 0)
			is_good = wm_err_set(err, WM_ERR_USAGE, "'%s' is named twice: name it once",
				shown_span(wm_span(columns[at].name, columns[at].name_len)).text);
	for (size_t at = 0; at < count; at++)
		wm_column_release(&columns[at]);
	free(columns);
	return is_good;
}

static bool
check_column(const char *text, struct wm_err *err)
{
	struct wm_column column;

	if (!wm_column_parse(wm_span_of(text), &column, err))
		return false;
	wm_column_release(&column);
	return true;
}

static bool
check_names(const char *text, struct wm_err *err)
{
	if (text[0] == '@')
		return text[1] != '\0' || wm_err_set(err, WM_ERR_USAGE, "'@' names no file: write @FILE");
	return check_columns(text, err);
}

static bool
check_time(const char *text, struct wm_err *err)
{
	struct wm_span rest = wm_span_of(text), part;
	size_t count = 0;

	while (wm_list_next(&rest, '+', &part)) {
		struct wm_column column;

		if (++count > 2)
			return wm_err_set(err, WM_ERR_USAGE,
				"'%s' is more than two columns: write date+time (a '+' in a name is written \\+)",
				shown(text).text);
		if (!wm_column_parse(part, &column, err))
			return false;
		wm_column_release(&column);
	}
	return true;
}

static bool
parse_duration(const char *text, bool may_be_negative, struct cli_duration *duration, struct wm_err *err)
{
	int64_t us;

	if (!wm_duration_parse_fixed(wm_span_of(text), &us, err))
		return false;
	if (us < 0 && !may_be_negative)
		return wm_err_set(err, WM_ERR_USAGE, "'%s' is negative: write 0s or more", shown(text).text);
	*duration = (struct cli_duration){ us, text };
	return true;
}

bool
cli_next_source_delay(struct wm_span *rest, struct wm_span *name, int64_t *delay_us)
{
	struct wm_span part, length;
	struct wm_err err;

	return wm_list_next(rest, ',', &part) && wm_list_next(&part, '=', name) && wm_list_next(&part, '=', &length) &&
		wm_duration_parse_fixed(length, delay_us, &err);
}

/* "web2=10s": one part of a delay behind the first. */
static bool
check_source_delay(struct wm_span part, struct wm_err *err)
{
	struct wm_span name, length;
	int64_t us;

	if (!wm_list_next(&part, '=', &name) || name.len == 0 || !wm_list_next(&part, '=', &length))
		return wm_err_set(err, WM_ERR_USAGE,
			"'%.*s' is no delay of a source: write the delay of all others first, then NAME=D for each, as "
			"in 5s,web2=10s",
			(int)name.len, name.data);
	if (!wm_duration_parse_fixed(length, &us, err))
		return false;
	if (us < 0)
		return wm_err_set(
			err, WM_ERR_USAGE, "'%.*s' is negative: write 0s or more", (int)length.len, length.data);
	return true;
}

/* The first part is cut off where it stands: argv may be written to. */
static bool
parse_delay(char *text, struct cli_delay *delay, struct wm_err *err)
{
	struct wm_span rest = wm_span_of(text), part;
	struct cli_duration first;
	const char *others = NULL;

	if (!wm_list_next(&rest, ',', &part))
		return false;
	if (rest.data != NULL) {
		others = rest.data;
		text[part.len] = '\0';
	}
	while (wm_list_next(&rest, ',', &part))
		if (!check_source_delay(part, err))
			return false;
	if (!parse_duration(text, false, &first, err))
		return false;
	*delay = (struct cli_delay){ first.us, text, others };
	return true;
}

static bool
parse_size(const char *text, size_t *size, struct wm_err *err)
{
	static const char units[] = "KMGT";
	const char *at = text;
	size_t number = 0;
	unsigned int shift = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		size_t digit = (size_t)(*at - '0');

		if (number > (SIZE_MAX - digit) / 10)
			return wm_err_set(
				err, WM_ERR_USAGE, "'%s' is too large: write 64K, 512M or 2G", shown(text).text);
		number = number * 10 + digit;
	}
	if (at != text && *at != '\0' && strchr(units, *at) != NULL)
		shift = 10 * (unsigned int)(strchr(units, *at++) - units + 1);
	if (at == text || *at != '\0')
		return wm_err_set(err, WM_ERR_USAGE, "'%s' is no size: write 64K, 512M or 2G", shown(text).text);
	if (number > SIZE_MAX >> shift)
		return wm_err_set(err, WM_ERR_USAGE, "'%s' is too large: write 64K, 512M or 2G", shown(text).text);
	if (number == 0)
		return wm_err_set(err, WM_ERR_USAGE, "'%s' is no size: write 1 or more", shown(text).text);
	*size = number << shift;
	return true;
}

static bool
is_duration(const char *text)
{
	struct wm_duration duration;
	struct wm_err ignored;

	return wm_duration_parse(wm_span_of(text), &duration, &ignored);
}

static bool
check_path(const char *text, struct wm_err *err)
{
	if (*text == '\0')
		return wm_err_set(err, WM_ERR_USAGE, "'' is no file name");
	if (strcmp(text, "-") == 0)
		return wm_err_set(err, WM_ERR_USAGE, "'-' is standard output, where the results go: name a file");
	if (is_duration(text))
		return wm_err_set(err, WM_ERR_USAGE,
			"'%s' is a duration, and this option names a file: the delay is -w (a file of that name: ./%s)",
			shown(text).text, shown(text).text);
	return true;
}

/* Stores text in the option's member; name is the option as it was typed. */
static void
take(const struct cli_option *option, const char *name, char *text, void *options)
{
	void *member = (char *)options + option->offset;
	struct wm_err err;
	bool is_good = true;

	switch (option->type) {
	case CLI_FLAG:
		*(bool *)member = true;
		return;
	case CLI_DURATION:
		is_good = parse_duration(text, false, member, &err);
		break;
	case CLI_OFFSET:
		is_good = parse_duration(text, true, member, &err);
		break;
	case CLI_DELAY:
		is_good = parse_delay(text, member, &err);
		break;
	case CLI_SIZE:
		is_good = parse_size(text, member, &err);
		break;
	case CLI_CHOICE:
		*(int *)member = index_of(option->arg, wm_span_of(strcmp(text, "jsonl") == 0 ? "ndjson" : text));
		if (*(int *)member < 0)
			refuse_choice(name, wm_span_of(text), option->arg);
		break;
	case CLI_PATH:
		is_good = check_path(text, &err);
		*(const char **)member = text;
		break;
	case CLI_COLUMN:
		is_good = check_column(text, &err);
		*(const char **)member = text;
		break;
	case CLI_COLUMNS:
		is_good = check_columns(text, &err);
		*(const char **)member = text;
		break;
	case CLI_NAMES:
		is_good = check_names(text, &err);
		*(const char **)member = text;
		break;
	case CLI_TIME:
		is_good = check_time(text, &err);
		*(const char **)member = text;
		break;
	case CLI_TEXT:
	case CLI_SPAN_LIST:
		*(const char **)member = text;
		break;
	}
	if (!is_good)
		cli_misuse("%s: %s", name, err.message);
}

/* ---- --help and --version ---- */

/* Appends text in lines of at most HELP_WIDTH, each begun at the given column; used is what the first line has already. */
static void
put_wrapped(struct wm_buf *out, const char *text, size_t column, size_t used)
{
	struct wm_span rest = wm_span_of(text), word;

	if (used < column)
		wm_buf_addf(out, "%*s", (int)(column - used), "");
	used = used < column ? column : HELP_WIDTH;
	while (wm_list_next(&rest, ' ', &word)) {
		size_t blanks = used > column;

		if (used + blanks + word.len > HELP_WIDTH) {
			wm_buf_addf(out, "\n%*s", (int)column, "");
			used = column;
			blanks = 0;
		}
		wm_buf_addf(out, "%*s%.*s", (int)blanks, "", (int)word.len, word.data);
		used += blanks + word.len;
	}
	wm_buf_add_byte(out, '\n');
}

static void
put_option(struct wm_buf *out, const struct cli_option *option)
{
	size_t begin = out->len;

	if (option->letter != 0)
		wm_buf_addf(out, "  -%c, --%s", option->letter, option->name);
	else
		wm_buf_addf(out, "      --%s", option->name);
	if (option->arg != NULL)
		wm_buf_addf(out, "%s%s", option->arg[0] == '[' ? "" : " ", option->arg);
	size_t used = out->len - begin;
	if (used + 2 <= HELP_COLUMN)
		put_wrapped(out, option->help, HELP_COLUMN, used);
	else if (used + 2 + strlen(option->help) <= HELP_WIDTH)
		wm_buf_addf(out, "  %s\n", option->help);
	else
		put_wrapped(out, option->help, HELP_COLUMN, HELP_WIDTH);
}

static void
put_help(struct wm_buf *out, const struct cli_tool *tool, const struct cli_option *table, enum cli_level level)
{
	const struct cli_option *heading = NULL;

	wm_buf_addf(out, "Usage: %s %s\n%s - %s\n", tool->name, tool->usage, tool->name, tool->summary);
	for (const struct cli_option *option = table; option->name != NULL; option++) {
		if (is_heading(option)) {
			heading = option;
		} else if (option->level <= level) {
			if (heading != NULL)
				wm_buf_addf(out, "%s:\n", heading->name);
			heading = NULL;
			put_option(out, option);
		}
	}
	struct wm_span rest = wm_span_of(tool->examples), line;
	wm_buf_add_text(out, "Examples:\n");
	while (wm_list_next(&rest, '\n', &line))
		wm_buf_addf(out, "  %.*s\n", (int)line.len, line.data);
}

void
cli_write(struct wm_buf *text)
{
	struct wm_writer *writer = wm_writer_new(STDOUT_FILENO, "standard output");
	struct wm_err err;
	bool was_open,
		is_put = wm_writer_end_line(writer, &was_open, &err) && wm_writer_put(writer, wm_buf_span(text), &err);
	bool is_closed = wm_writer_close(writer, &err);

	wm_buf_release(text);
	if (!is_put || !is_closed)
		cli_die(&err);
}

void
cli_answer(struct wm_buf *text)
{
	cli_write(text);
	exit(CLI_DONE);
}

static _Noreturn void
answer_help(const struct cli_tool *tool, const struct cli_option *table, const char *word)
{
	struct wm_buf text;

	if (word != NULL && strcmp(word, "all") != 0)
		refuse_choice("--help", wm_span_of(word), "all");
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	put_help(&text, tool, table, word == NULL ? CLI_SCREEN : CLI_ALL);
	cli_answer(&text);
}

static _Noreturn void
answer_version(const struct cli_tool *tool)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_addf(&text, "%s " WM_VERSION "\n", tool->name);
	cli_answer(&text);
}

void
cli_refuse_value(struct wm_span value)
{
	struct wm_err err;
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_shown(value, &text);
	(void)wm_err_set(&err, WM_ERR_DATA,
		"--tsv-escapes none: '%.*s' holds a tab or line end, and so cannot be a field of TSV: leave the option "
		"out, or write -o csv",
		(int)text.len, text.data);
	cli_die(&err);
}

/* ---- what the common options can check by themselves ---- */

static void
check_delimiter(struct cli_common *common)
{
	const char *text = common->delimiter;

	if (text == NULL)
		return;
	if (common->input_format == WM_FORMAT_TSV || common->input_format == WM_FORMAT_NDJSON)
		cli_misuse("-d: only CSV has a delimiter to choose: leave out -i, or write -i csv");
	if (is_duration(text))
		cli_misuse(
			"-d: '%s': -d is the delimiter of CSV: the delay is -w %s", shown(text).text, shown(text).text);
	bool is_tab = strcmp(text, "\\t") == 0;
	common->delimiter_byte = is_tab ? '\t' : text[0];
	if (text[0] == '\0' || (text[1] != '\0' && !is_tab) || strchr("\"\r\n", text[0]) != NULL)
		cli_misuse("-d: '%s' cannot be a delimiter: write one byte (no quote, no line end), or \\t",
			shown(text).text);
}

/* "1000" of "1000rows"; false where text begins with no digit, or with a number that is too large. */
static bool
parse_number(const char *text, int64_t *number, const char **end)
{
	int64_t value = 0;

	for (*end = text; **end >= '0' && **end <= '9'; ++*end) {
		int64_t digit = **end - '0';

		if (value > (INT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*number = value;
	return *end != text;
}

/* What stands behind "event:" or "column:"; NULL where text does not begin with that word. */
static const char *
behind(const char *text, const char *word)
{
	size_t len = strlen(word);

	return strncmp(text, word, len) == 0 ? text + len : NULL;
}

static void
parse_trigger_period(struct cli_common *common, enum cli_trigger_word word, const char *text)
{
	struct cli_duration period;
	struct wm_err err;

	if (!parse_duration(text, false, &period, &err))
		cli_misuse("--trigger: %s", err.message);
	if (period.us == 0)
		cli_misuse("--trigger: '%s': must be longer than zero", shown(text).text);
	common->trigger_word = word;
	common->trigger_period_us = period.us;
}

/* A trigger that is none of the words, and none with an argument. */
static void
parse_trigger_rows(struct cli_common *common, const char *text)
{
	static const char choices[] = "each|1000rows|event:10s|wall:10s|column:C|file|eof";
	const char *end;
	int64_t rows;

	if (!parse_number(text, &rows, &end)) {
		if (*text >= '0' && *text <= '9')
			cli_misuse("--trigger: '%s': the number is too large", shown(text).text);
		refuse_choice("--trigger", wm_span_of(text), choices);
	}
	if (*end == '\0')
		cli_misuse(
			"--trigger: '%s': %s what? write %srows, event:%ss or wall:%ss", text, text, text, text, text);
	if (is_duration(text))
		cli_misuse("--trigger: '%s': write event:%s (of event time) or wall:%s (of the clock)",
			shown(text).text, shown(text).text, shown(text).text);
	if (strcmp(end, "rows") != 0)
		refuse_choice("--trigger", wm_span_of(text), choices);
	if (rows == 0)
		cli_misuse("--trigger: '%s': write 1rows or more", text);
	common->trigger_word = CLI_TRIGGER_ROWS;
	common->trigger_rows = (uint64_t)rows;
}

static void
check_trigger(struct cli_common *common)
{
	const char *text = common->trigger, *rest;
	struct wm_err err;

	if (text == NULL || strcmp(text, "each") == 0) {
		common->trigger_word = CLI_TRIGGER_EACH;
	} else if (strcmp(text, "file") == 0) {
		common->trigger_word = CLI_TRIGGER_FILE;
	} else if (strcmp(text, "eof") == 0) {
		common->trigger_word = CLI_TRIGGER_EOF;
	} else if ((rest = behind(text, "event:")) != NULL) {
		parse_trigger_period(common, CLI_TRIGGER_EVENT, rest);
	} else if ((rest = behind(text, "wall:")) != NULL) {
		parse_trigger_period(common, CLI_TRIGGER_WALL, rest);
	} else if ((rest = behind(text, "column:")) != NULL) {
		common->trigger_word = CLI_TRIGGER_COLUMN;
		common->trigger_column = rest;
		if (!check_column(rest, &err))
			cli_misuse("--trigger: %s", err.message);
	} else {
		parse_trigger_rows(common, text);
	}
}

/* "1/1000" or "0.1%", as a fraction. */
static void
check_fail_late(struct cli_common *common)
{
	const char *text = common->fail_late, *end;
	int64_t part, whole = 100, digits = 0;
	bool is_good;

	if (text == NULL)
		return;
	is_good = parse_number(text, &part, &end);
	if (is_good && *end == '/') {
		is_good = parse_number(end + 1, &whole, &end) && *end == '\0' && whole != 0;
	} else if (is_good && (*end == '\0' || *end == '.')) {
		const char *point = end;

		if (*point == '.')
			is_good = parse_number(point + 1, &digits, &end) && end - point <= 10;
		if (is_good && *end == '\0')
			cli_misuse("--fail-late: '%s': of what? write 1/1000 or 0.1%%", text);
		for (const char *at = point + 1; is_good && at < end; at++)
			whole *= 10;
		is_good = is_good && strcmp(end, "%") == 0 && part <= 100;
		if (is_good)
			part = part * (whole / 100) + digits;
	} else {
		is_good = is_good && strcmp(end, "%") == 0;
	}
	if (!is_good)
		cli_misuse("--fail-late: '%s' is no share: write 1/1000 or 0.1%%", shown(text).text);
	if (part > whole)
		cli_misuse("--fail-late: '%s' is more than all rows", text);
	common->fail_late_part = part;
	common->fail_late_whole = whole;
}

/* Flags, then a width and a precision of at most two digits, then the letter. */
static void
check_ofmt(const struct cli_common *common)
{
	const char *at = common->ofmt;
	bool is_good = at != NULL && *at++ == '%';

	if (common->ofmt == NULL)
		return;
	if (is_good) {
		at += strspn(at, "-+ #0");
		at += strspn(at, "0123456789") > 2 ? 0 : strspn(at, "0123456789");
		if (*at == '.')
			at += strspn(at + 1, "0123456789") > 2 ? 0 : 1 + strspn(at + 1, "0123456789");
		is_good = *at != '\0' && strchr("efgEFG", *at) != NULL && at[1] == '\0';
	}
	if (!is_good)
		cli_misuse("--ofmt: '%s' is no format of one number: write %%.3f, %%8.2f or %%.6g",
			shown(common->ofmt).text);
}

/* --files0-from: its list becomes the operands. */
static void
read_names(struct cli_common *common)
{
	const char *path = common->files0_from;
	bool is_standard_input = strcmp(path, "-") == 0;
	const char *name = is_standard_input ? "standard input" : path;
	int fd = is_standard_input ? STDIN_FILENO : cli_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
	struct wm_buf *text = &common->files_text;
	struct wm_err err;
	ssize_t got = fd == -1 ? -1 : 0;
	size_t count = 0;

	wm_buf_init(text, FILES0_BYTES_MAX);
	while (got != -1) {
		if (!wm_buf_reserve(text, 1 << 16)) {
			(void)wm_err_set(&err, WM_ERR_LIMIT, "%s: more than %zu MiB of names", shown(name).text,
				FILES0_BYTES_MAX >> 20);
			cli_die(&err);
		}
		got = read(fd, text->data + text->len, 1 << 16);
		if (got == 0)
			break;
		if (got > 0)
			text->len += (size_t)got;
		else if (errno == EINTR)
			got = 0;
	}
	if (got == -1) {
		(void)wm_err_set(&err, WM_ERR_IO, "%s: %s", shown(name).text, strerror(errno));
		cli_die(&err);
	}
	if (!is_standard_input)
		close(fd);
	if (text->len == 0)
		cli_misuse("--files0-from: '%s' names no file", shown(path).text);
	if (memchr(text->data, '\0', text->len) == NULL && memchr(text->data, '\n', text->len) != NULL)
		cli_misuse(
			"--files0-from: '%s' has lines: each name ends in a NUL byte: write find -print0, or tr '\\n' "
			"'\\0'",
			shown(path).text);
	if (text->data[text->len - 1] != '\0')
		text->data[text->len++] = '\0';
	for (size_t at = 0; at < text->len; count++)
		at += strlen(text->data + at) + 1;
	common->files_list = wm_reallocarray(NULL, count, sizeof(common->files_list[0]));
	common->files = common->files_list;
	common->files_count = count;
	for (size_t at = 0, i = 0; i < count; i++) {
		const char *file = text->data + at;

		if (*file == '\0')
			cli_misuse("--files0-from: '%s': name %zu of %zu is empty", shown(path).text, i + 1, count);
		if (is_standard_input && strcmp(file, "-") == 0)
			cli_misuse("--files0-from: name %zu of %zu is '-', but standard input holds the names", i + 1,
				count);
		common->files_list[i] = file;
		at += strlen(file) + 1;
	}
}

static void
check_nulls(struct cli_common *common)
{
	if (common->null_quoted && common->null == NULL)
		cli_misuse("--null-quoted: no text is a missing value: name some with --null LIST");
	if (common->null != NULL)
		wm_nulls_parse(&common->nulls, common->null, common->null_quoted);
}

/* Last of the checks, as it reads the list of names. */
static void
check_inputs(struct cli_common *common)
{
	bool is_list = common->files0_from != NULL;

	if (is_list && *common->files0_from == '\0')
		cli_misuse("--files0-from: '' is no file name");
	if (is_list && common->files_count != 0)
		cli_misuse(
			"--files0-from: '%s' is an input too: name inputs in one place", shown(common->files[0]).text);
	if (common->columns != NULL && common->no_header)
		cli_misuse("--columns and --no-header: both say what the columns are called: give one of them");
	bool is_lines = common->input_format == WM_FORMAT_LINES;
	if (is_lines && common->pattern == NULL)
		cli_misuse("-i lines: needs --pattern REGEX, or --pattern @kubectl, @syslog or @haproxy");
	if (common->pattern != NULL && !is_lines && common->input_format != WM_FORMAT_AUTO)
		cli_misuse("--pattern: is for -i lines");
	if (common->unmatched == CLI_UNMATCHED_SKIP && common->pattern == NULL && common->input_format < WM_FORMAT_CLF)
		cli_misuse("--unmatched skip: is for -i clf, logfmt and lines");
	if (common->merge && common->order == CLI_ORDER_TIME)
		cli_misuse("--merge and --order time: side by side, or one after the other: give one of them");
	if (common->merge && common->trigger_word == CLI_TRIGGER_FILE)
		cli_misuse("--merge and --trigger file: files read side by side do not end one after the other: give "
			   "one of "
			   "them");
	if (is_list && !common->explain)
		read_names(common);
	bool has_standard_input = common->files_count == 0 && !is_list;
	for (size_t i = 0; i < common->files_count; i++)
		has_standard_input = has_standard_input || strcmp(common->files[i], "-") == 0;
	if (common->order == CLI_ORDER_TIME && has_standard_input)
		cli_misuse("--order time: the first event time of standard input is not known beforehand: name files");
}

static void
check_guards(const struct cli_tool *tool, struct cli_common *common)
{
	if (common->max_jump.text != NULL && common->delay.text == NULL)
		cli_misuse("--max-jump: there is no watermark that could jump: give a delay with -w");
	if (common->max_jump.text != NULL && common->max_jump.us == 0)
		cli_misuse("--max-jump: '%s': must be longer than zero", common->max_jump.text);
	if (common->max_ahead.text != NULL && common->ingest == NULL)
		cli_misuse(
			"--max-ahead: ahead of what? name the column of arrival times with --ingest COLUMN, or write "
			"--ingest now");
	if (common->ingest != NULL && common->max_ahead.text == NULL && !tool->measures_arrival)
		cli_misuse("--ingest: nothing asks for the arrival time: give --max-ahead D");
	common->is_ingest_now = common->ingest != NULL && strcmp(common->ingest, "now") == 0;
}

/* Names of sources known beforehand: none empty, none twice. */
static void
check_source_names(const char *text)
{
	struct wm_span rest = wm_span_of(text), name;

	while (wm_list_next(&rest, ',', &name)) {
		struct wm_span others = rest, other;

		if (name.len == 0)
			cli_misuse("--sources: '%s': a name is empty", shown(text).text);
		while (wm_list_next(&others, ',', &other))
			if (wm_span_equal(name, other))
				cli_misuse("--sources: '%s': %.*s stands twice", shown(text).text, (int)name.len,
					name.data);
	}
}

static void
check_band(const struct cli_common *common)
{
	if (common->watermark_column != NULL && common->delay.text != NULL &&
		strcmp(common->watermark_column, "none") != 0)
		cli_misuse("-w and --watermark-column: the watermark is reckoned here, or comes in band: give one of "
			   "them");
}

static void
check_sources(const struct cli_tool *tool, struct cli_common *common)
{
	bool has_sources = common->source_column != NULL || common->merge || tool->takes_two;
	const struct {
		const char *option;
		bool is_given;
	} of_sources[] = {
		{ "--sources", common->sources != NULL },
		{ "--policy max", common->policy != 0 },
		{ "--idle", common->idle.text != NULL },
		{ "--idle-wall", common->idle_wall.text != NULL },
		{ "-w: a delay by source", common->delay.others != NULL },
	};

	for (size_t i = 0; i < sizeof(of_sources) / sizeof(of_sources[0]); i++)
		if (of_sources[i].is_given && !has_sources)
			cli_misuse(
				"%s: there is one source: name the column that tells sources apart with --source, or "
				"--merge FILEs",
				of_sources[i].option);
	if (common->source_column != NULL && common->merge)
		cli_misuse("--source and --merge: with --merge each FILE is a source: give one of them");
	if (common->sources != NULL && common->merge)
		cli_misuse("--sources and --merge: the FILEs are the sources");
	if (has_sources && common->source_column != NULL && common->delay.text == NULL)
		cli_misuse("--source: without a delay there is no watermark: give one with -w");
	if (common->merge && (common->idle.text != NULL || common->idle_wall.text != NULL))
		cli_misuse("--merge: the FILE furthest behind is read next, so none becomes idle: leave out --idle and "
			   "--idle-wall");
	if (common->sources != NULL)
		check_source_names(common->sources);
	if (common->idle_close.text != NULL && common->delay.text == NULL)
		cli_misuse("--idle-close: there is no watermark that could go on: give a delay with -w");
	if ((common->idle.text != NULL && common->idle.us == 0) ||
		(common->idle_wall.text != NULL && common->idle_wall.us == 0) ||
		(common->idle_close.text != NULL && common->idle_close.us == 0))
		cli_misuse("--idle, --idle-wall, --idle-close: must be longer than zero");
}

static void
check_zone_and_reference(struct cli_common *common)
{
	const char *reference = common->time_reference, *why;
	struct wm_err err;

	if (common->tz != NULL) {
		common->zone = wm_zone_open(wm_span_of(common->tz), &err);
		if (common->zone == NULL)
			cli_misuse("--tz: %s", err.message);
	}
	if (reference == NULL)
		return;
	if (common->time_format == NULL || strchr(common->time_format, '%') == NULL)
		cli_misuse("--time-reference: it has a use only with a --time-format without a year, such as '%%b %%d "
			   "%%H:%%M:%%S'");
	struct wm_instant_parser *parser =
		wm_instant_parser_new(wm_span_of("auto"), common->zone == NULL ? wm_zone_utc() : common->zone,
			(enum wm_repeated_hour)common->repeated_hour, NULL, &err);
	assert(parser != NULL);
	bool is_time = wm_instant_parse(parser, wm_span_of(reference), &common->time_reference_us, &why);
	if (!is_time && wm_instant_parser_is_refused(parser))
		why = "it could be a date or a number: write it as 2025-11-29";
	if (!is_time)
		cli_misuse("--time-reference: '%s': %s", shown(reference).text, why);
	wm_instant_parser_free(parser);
}

static void
check_reports(struct cli_common *common)
{
	static const char suffix[] = ".prom";
	const char *metrics = common->metrics_path;

	if (common->late_info && common->has_sides && common->late_path == NULL && common->late_right_path == NULL)
		cli_misuse("--late-info: there are no files of late rows: name them with --late-left FILE and "
			   "--late-right FILE");
	if (common->late_info && !common->has_sides && common->late_path == NULL)
		cli_misuse("--late-info: there is no --late: name the file of the late rows with --late FILE");
	if (common->late_info && (common->input_format >= WM_FORMAT_CLF || common->pattern != NULL))
		cli_misuse("--late-info: a line of a log has no place for more columns, and would not be input again: "
			   "leave "
			   "it out");
	if (common->append && common->overwrite)
		cli_misuse("--append and --overwrite: give one of them");
	if (common->quiet && common->verbose)
		cli_misuse("-q and -v: give one of them");
	size_t len = metrics == NULL ? 0 : strlen(metrics);
	if (metrics != NULL && (len < sizeof(suffix) - 1 || strcmp(metrics + len - (sizeof(suffix) - 1), suffix) != 0))
		cli_misuse("--metrics: '%s' does not end in .prom: the textfile collector reads no other file",
			shown(metrics).text);
	if (metrics != NULL && len >= sizeof(suffix) - 1 &&
		(len == sizeof(suffix) - 1 || metrics[len - sizeof(suffix)] == '/'))
		cli_misuse("--metrics: '%s' has no name before .prom: write NAME.prom", shown(metrics).text);
	check_fail_late(common);
}

static void
parse_checkpoint_every(struct cli_common *common)
{
	const char *text = common->checkpoint_every, *end;
	struct cli_duration period;
	struct wm_err err;
	int64_t rows;

	common->checkpoint_us = 30000000;
	if (text == NULL)
		return;
	if (parse_number(text, &rows, &end) && strcmp(end, "rows") == 0) {
		if (rows == 0)
			cli_misuse("--checkpoint-every: '%s': write 1rows or more", text);
		common->checkpoint_rows = (uint64_t)rows;
		return;
	}
	if (!is_duration(text))
		cli_misuse("--checkpoint-every: '%s': write 1000000rows, or 30s of wall time", shown(text).text);
	if (!parse_duration(text, false, &period, &err))
		cli_misuse("--checkpoint-every: %s", err.message);
	common->checkpoint_us = period.us;
}

static void
check_runs(struct cli_common *common)
{
	const struct {
		const char *option;
		bool is_given;
	} of_checkpoints[] = {
		{ "--checkpoint-every", common->checkpoint_every != NULL },
		{ "--resume", common->resume != CLI_RESUME_AUTO },
		{ "--position", common->position != NULL },
		{ "--max-file-age", common->max_file_age.text != NULL },
		{ "--new-output", common->new_output },
	};
	struct wm_err err;
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(of_checkpoints) / sizeof(of_checkpoints[0]); i++)
		if (of_checkpoints[i].is_given && common->checkpoint == NULL)
			cli_misuse("%s: there is no checkpoint: name one with -C FILE", of_checkpoints[i].option);
	if (common->checkpoint != NULL && common->overwrite)
		cli_misuse("-C and --overwrite: outputs go on where the last run ended: leave out --overwrite");
	if (common->max_file_age.text != NULL && common->max_file_age.us == 0)
		cli_misuse("--max-file-age: '%s': must be longer than zero", common->max_file_age.text);
	parse_checkpoint_every(common);
	if (common->state_limit != NULL && strcmp(common->state_limit, "none") == 0)
		common->state_bytes_max = UINT64_MAX;
	else if (common->state_limit != NULL && !parse_size(common->state_limit, &bytes, &err))
		cli_misuse("--state-limit: %s, or none", err.message);
	else
		common->state_bytes_max = bytes;
	if (common->checkpoint != NULL && common->eof == CLI_EOF_DEFAULT)
		common->eof = CLI_EOF_HOLD;
}

static void
check_common(const struct cli_tool *tool, struct cli_common *common)
{
	if (tool->merges_files && common->files_count > 1 && common->source_column == NULL)
		common->merge = true;
	check_delimiter(common);
	check_trigger(common);
	check_guards(tool, common);
	check_band(common);
	check_sources(tool, common);
	check_zone_and_reference(common);
	check_reports(common);
	check_ofmt(common);
	check_runs(common);
	if (common->compat != NULL && strcmp(common->compat, "spark") != 0)
		refuse_choice("--compat", wm_span_of(common->compat), "spark");
	common->is_spark = common->compat != NULL;
	check_nulls(common);
	check_inputs(common);
}

/* ---- parsing ---- */

struct parse {
	const struct cli_tool *tool;
	struct cli_option table[OPTIONS_MAX]; /* the tool's own options, its groups, and CLI_END */
	void *options;
	bool is_given[OPTIONS_MAX]; /* by row of the table */
};

/* Those that the tool has itself are left out. */
static size_t
add_options(struct parse *parse, size_t count, const struct cli_option *options)
{
	bool is_own = options == parse->tool->options;

	for (; options->name != NULL; options++) {
		if (!is_own && !is_heading(options) &&
			find_name(parse->tool->options, wm_span_of(options->name)) != NULL)
			continue;
		assert(count + 1 < OPTIONS_MAX);
		parse->table[count++] = *options;
	}
	return count;
}

/* Takes out the common options that the tool lacks; returns how many rows are left. */
static size_t
leave_out(struct parse *parse, size_t count)
{
	size_t kept = 0;

	for (size_t row = 0; row < count; row++) {
		const char *const *name = parse->tool->without;

		while (name != NULL && *name != NULL &&
			(is_heading(&parse->table[row]) || strcmp(*name, parse->table[row].name) != 0))
			name++;
		if (name == NULL || *name == NULL)
			parse->table[kept++] = parse->table[row];
	}
	return kept;
}

static void
join_options(struct parse *parse)
{
	size_t count = add_options(parse, 0, parse->tool->options);

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if ((parse->tool->groups & groups[i].mask) == groups[i].mask)
			count = add_options(parse, count, groups[i].options);
	count = leave_out(parse, count);
	parse->table[count] = (struct cli_option)CLI_END;
}

/*
 * getopt_long()'s tables. Options stand in the order of argv, operands among
 * them ("-"), whatever POSIXLY_CORRECT says; it prints nothing itself (":").
 */
static void
fill_tables(const struct cli_option *table, char letters[2 + 2 * OPTIONS_MAX + 1], struct option longs[OPTIONS_MAX + 1])
{
	size_t count = 0;

	*letters++ = '-';
	*letters++ = ':';
	for (size_t row = 0; table[row].name != NULL; row++) {
		const struct cli_option *option = &table[row];
		bool is_optional = option->arg != NULL && option->arg[0] == '[';

		if (is_heading(option))
			continue;
		longs[count++] = (struct option){
			.name = option->name,
			.has_arg = is_optional ? optional_argument
				: option->arg  ? required_argument
					       : no_argument,
			.val = ROW_FIRST + (int)row,
		};
		if (option->letter != 0)
			*letters++ = (char)option->letter;
		if (option->letter != 0 && option->arg != NULL && !is_optional)
			*letters++ = ':';
	}
	longs[count] = (struct option){ 0 };
	*letters = '\0';
}

/* Whether text is one of the tool's options: then it is no argument that was meant. */
static bool
is_option_word(const struct cli_option *table, const char *text)
{
	if (text[0] != '-' || text[1] == '\0')
		return false;
	if (text[1] != '-')
		return text[2] == '\0' && find_letter(table, (unsigned char)text[1]) != NULL;
	return find_name(table, wm_span(text + 2, strcspn(text + 2, "="))) != NULL;
}

/* One option; word is as typed ("--late=x", "-w"), value what getopt_long() returned. */
static void
parse_option(struct parse *parse, int value, const char *word, bool is_separate)
{
	const struct cli_option *table = parse->table;
	bool is_long = word[1] == '-';
	struct wm_span name = wm_span(word + 2, is_long ? strcspn(word + 2, "=") : 0);
	const struct cli_option *option = is_long ? find_name(table, name) : find_letter(table, (unsigned char)word[1]);
	char typed[2 + WORD_MAX + 1];

	if (option == NULL && is_long)
		refuse_name(table, name);
	if (option == NULL)
		cli_misuse("no option %s: see --help", shown(word).text);
	snprintf(typed, sizeof(typed), "%.*s", is_long ? (int)name.len + 2 : 2, word);
	if (value == ':')
		cli_misuse("%s: needs an argument: write %s %s", typed, typed, option->arg);
	if (value == '?')
		cli_misuse("%s: takes no argument: write %s alone", typed, typed);
	if (strcmp(option->name, "help") == 0)
		answer_help(parse->tool, table, optarg);
	if (strcmp(option->name, "version") == 0)
		answer_version(parse->tool);
	if (is_separate && is_option_word(table, optarg))
		cli_misuse("%s: needs an argument, and '%s' is an option: write %s %s", typed, shown(optarg).text,
			typed, option->arg);
	bool *is_given = &parse->is_given[option - table];
	if (*is_given && option->type != CLI_FLAG)
		cli_misuse("%s: given twice: give it once", typed);
	*is_given = true;
	take(option, typed, optarg, parse->options);
}

/* A file that may not grow (ulimit -f) is a write that fails, with a message; and as many FILEs are open as the system lets be. */
static void
settle_limits(void)
{
	struct rlimit files;

	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

void
cli_parse(const struct cli_tool *tool, int argc, char **argv, void *options)
{
	struct parse parse = { .tool = tool, .options = options };
	struct cli_common *common = options;
	char letters[2 + 2 * OPTIONS_MAX + 1];
	struct option longs[OPTIONS_MAX + 1];
	size_t files_count = 0;
	int value;

	tool_name = tool->name;
	settle_limits();
	common->has_sides = tool->takes_two;
	join_options(&parse);
	fill_tables(parse.table, letters, longs);
	while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		bool is_failure = value == '?' || value == ':';
		int code = is_failure ? optopt : value; /* of an unknown long option it is 0 */
		bool is_separate = optarg != NULL && optarg == argv[optind - 1];

		if (value == 1) {
			argv[1 + files_count++] = optarg; /* its own place or one that has been read */
		} else if (code == 0 || code >= ROW_FIRST) {
			parse_option(&parse, value, argv[optind - 1 - is_separate], is_separate);
		} else {
			char word[] = { '-', (char)code, '\0' };

			parse_option(&parse, value, word, is_separate);
		}
	}
	for (; optind < argc; optind++)
		argv[1 + files_count++] = argv[optind];
	common->files = (const char *const *)argv + 1;
	common->files_count = files_count;
	check_common(tool, common);
	if ((tool->groups & CLI_GROUP_INPUT) != 0)
		uses_check(common, true);
}

const struct wm_nulls *
cli_nulls(const struct cli_common *common)
{
	return common->null == NULL ? NULL : &common->nulls;
}

void
cli_release(struct cli_common *common)
{
	wm_nulls_release(&common->nulls);
	if (common->zone != NULL)
		wm_zone_close(common->zone);
	common->zone = NULL;
	wm_buf_release(&common->files_text);
	free(common->files_list);
	common->files_list = NULL;
}
