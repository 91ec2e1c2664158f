/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wm-merge - fold late results into a finished table.
 *
 * The late rows are held, MAIN is read twice: first everything is checked,
 * then it is written. What goes wrong is found before the first byte of a
 * result. See wm-merge(1).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cli.h"
#include "cmd/inputs.h"
#include "cmd/outputs.h"
#include "cmd/uses.h"
#include "lib/agg/agg.h"
#include "lib/base/ascii.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/base/shown.h"
#include "lib/op/merge.h"
#include "lib/record/cut.h"
#include "lib/record/fields.h"
#include "lib/record/reader.h"
#include "lib/record/writer.h"
#include "lib/time/instant.h"

/* Copied at once where MAIN is a pipe. */
#define COPY_BYTES ((size_t)256 << 10)

struct options {
	struct cli_common common;
	const char *key;
	const char *sum;
	const char *min;
	const char *max;
	const char *last;
	bool partial;
	bool keep_partial;
	const char *replace;
	bool in_place;
	const char *backup;
	const char *state_limit;
};

/* Drives parsing and --help; tests hold the man page and the completion to it. Of the options that tools share it takes those that are no
   matter of watermarks. */
#define AT(field) offsetof(struct options, field)
static const struct cli_option table[] = {
	CLI_HEADING("Merging"),
	{ 'k', "key", "COLUMNS", "rows with the same values here are one row", CLI_COLUMNS, AT(key), CLI_SCREEN },
	{ 0, "sum", "COLUMNS", "add up (counts, sums)", CLI_COLUMNS, AT(sum), CLI_SCREEN },
	{ 0, "min", "COLUMNS", "take the least", CLI_COLUMNS, AT(min), CLI_SCREEN },
	{ 0, "max", "COLUMNS", "take the greatest", CLI_COLUMNS, AT(max), CLI_SCREEN },
	{ 0, "last", "COLUMNS", "take the late one", CLI_COLUMNS, AT(last), CLI_SCREEN },
	{ 0, "partial", NULL, "all FILEs are of wm-window --partial: combine anything, write results", CLI_FLAG,
		AT(partial), CLI_SCREEN },
	{ 0, "keep-partial", NULL, "the same, but write states again", CLI_FLAG, AT(keep_partial), CLI_SCREEN },
	{ 0, "replace", "FROM,TO", "instead: rows of MAIN with FROM <= time < TO give way to the others", CLI_TEXT,
		AT(replace), CLI_SCREEN },
	{ 't', "time", "COLUMN", "with --replace: the column of the time", CLI_COLUMN, AT(common.time_column),
		CLI_SCREEN },
	{ 0, "time-format", "F", "auto (default), iso, s, ms, us, ns, clf, rfc2822 or a strptime pattern", CLI_TEXT,
		AT(common.time_format), CLI_ALL },
	{ 0, "tz", "ZONE", "zone of times that carry none; default UTC", CLI_TEXT, AT(common.tz), CLI_ALL },
	{ 0, "state-limit", "SIZE|none", "memory for the late rows; default half of what there is", CLI_TEXT,
		AT(state_limit), CLI_ALL },
	CLI_HEADING("Input"),
	{ 'i', "input-format", "auto|csv|tsv|ndjson", "format of the input (default auto: by its first bytes)",
		CLI_CHOICE, AT(common.input_format), CLI_SCREEN },
	{ 'd', "delimiter", "C", "CSV delimiter: one byte, or \\t", CLI_TEXT, AT(common.delimiter), CLI_SCREEN },
	{ 0, "tsv-escapes", "backslash|none",
		"TSV: \\t, \\n, \\r, \\\\ are read and written (default), or bytes stand as they are", CLI_CHOICE,
		AT(common.tsv_escapes), CLI_ALL },
	{ 0, "columns", "NAMES", "names of the columns of CSV without a header; @FILE: from FILE's first line",
		CLI_NAMES, AT(common.columns), CLI_ALL },
	{ 0, "no-header", NULL, "CSV without header or names: columns are 1, 2, ...", CLI_FLAG, AT(common.no_header),
		CLI_ALL },
	{ 0, "null", "LIST", "texts that are no value, as the empty field is: 'NA,NULL,\\N,-'", CLI_TEXT,
		AT(common.null), CLI_ALL },
	{ 0, "null-quoted", NULL, "CSV: where they stand in quotes too", CLI_FLAG, AT(common.null_quoted), CLI_ALL },
	{ 0, "record-limit", "SIZE", "longest record (default 64M)", CLI_SIZE, AT(common.record_limit), CLI_ALL },
	CLI_HEADING("Output"),
	{ 0, "in-place", NULL, "rewrite MAIN, as a whole or not at all", CLI_FLAG, AT(in_place), CLI_SCREEN },
	{ 0, "backup", "SUFFIX", "with --in-place: keep the old MAIN under its name and SUFFIX", CLI_TEXT, AT(backup),
		CLI_SCREEN },
	{ 'o', "output-format", "same|csv|tsv|ndjson", "format of the result (default same: as the input)", CLI_CHOICE,
		AT(common.output_format), CLI_SCREEN },
	{ 0, "ofmt", "FORMAT", "of --partial: printf format of computed fractions (%.3f)", CLI_TEXT, AT(common.ofmt),
		CLI_ALL },
	{ 0, "no-output-header", NULL, "no header line", CLI_FLAG, AT(common.no_output_header), CLI_ALL },
	CLI_END,
};
static const struct cli_tool tool = {
	.name = "wm-merge",
	.summary = "fold late results into a finished table",
	.usage = "[OPTION]... MAIN LATE... > NEW",
	.examples = "wm-merge -k window_start,window_end --sum count daily.csv late.csv > new.csv\n"
		    "wm-merge --replace 2025-11-29,2025-11-30 -t window_start --in-place \\\n"
		    "    daily.csv replay.csv",
	.options = table,
};

/* ---- what was asked for ---- */

static bool
is_standard_input(const char *file)
{
	return strcmp(file, "-") == 0;
}

/* A column that an option names. */
struct named {
	struct wm_column column;
	const char *option;
	enum wm_merge_rule rule;
};

struct plan {
	const struct options *opt;
	struct named *named; /* keys first, or the time */
	size_t named_count;
	struct wm_merge_options merge;
	bool is_final; /* results are written in place of states */
};

static bool
is_of_digits(struct wm_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!wm_is_digit(text.data[i]))
			return false;
	return true;
}

/*
 * The function that wm-window has computed a column with, as its default names tell (ms_p95, rate, ms_avg_if_status_eq_200; a number
 * behind it, as in ms_avg_2, is left aside), if its results cannot be combined; an empty span where nothing is known
 * against it.
 */
static struct wm_span
uncombinable_of(const char *name)
{
	const char *condition = strstr(name, "_if_");
	struct wm_span rest = wm_span(name, condition == NULL ? strlen(name) : (size_t)(condition - name));
	struct wm_span word, last = wm_span("", 0);

	while (wm_list_next(&rest, '_', &word))
		if (last.len == 0 || !is_of_digits(word))
			last = word;
	return wm_agg_is_uncombinable(last) ? last : wm_span("", 0);
}

/* Adds the columns of an option's list. */
static void
name_columns(struct plan *plan, const char *option, const char *list, enum wm_merge_rule rule)
{
	struct wm_span rest = list == NULL ? wm_span(NULL, 0) : wm_span_of(list), part;
	struct wm_err err;

	while (wm_list_next(&rest, ',', &part)) {
		struct named named = { .option = option, .rule = rule };

		if (!wm_column_parse(part, &named.column, &err))
			cli_misuse("%s: %s", option, err.message);
		const char *name = named.column.name;
		for (size_t i = 0; i < plan->named_count; i++)
			if (strcmp(plan->named[i].column.name, name) == 0)
				cli_misuse(
					"%s: '%s' is in %s too: name it in one", option, name, plan->named[i].option);
		struct wm_span word = rule == WM_MERGE_KEY ? wm_span("", 0) : uncombinable_of(name);
		if (word.len != 0)
			cli_misuse(
				"%s: '%s' is a result of %.*s by its name, and two of them do not make one: merge what "
				"wm-window --partial wrote with --partial, or put recomputed rows in place with "
				"--replace",
				option, name, (int)word.len, word.data);
		plan->named = wm_reallocarray(plan->named, plan->named_count + 1, sizeof(plan->named[0]));
		plan->named[plan->named_count++] = named;
	}
}

static int64_t
parse_bound(const struct plan *plan, struct wm_span text)
{
	const struct wm_zone *zone = plan->merge.zone;
	struct wm_err err;
	struct wm_instant_parser *parser =
		wm_instant_parser_new(wm_span_of("auto"), zone, WM_REPEATED_EARLIER, NULL, &err);
	const char *why;
	int64_t time_us;

	if (parser == NULL)
		cli_misuse("--replace: %s", err.message);
	wm_instant_parser_take_edges(parser);
	bool is_time = wm_instant_parse(parser, text, &time_us, &why);
	if (!is_time && wm_instant_parser_is_refused(parser))
		cli_misuse("--replace: '%.*s' could be a date or a number: write it as 2025-11-29", (int)text.len,
			text.data);
	if (!is_time)
		cli_misuse("--replace: '%.*s': %s", (int)text.len, text.data, why);
	wm_instant_parser_free(parser);
	return time_us;
}

static void
plan_range(struct plan *plan)
{
	const char *text = plan->opt->replace;
	struct wm_span rest = wm_span_of(text), from, to, more;

	if (!wm_list_next(&rest, ',', &from) || !wm_list_next(&rest, ',', &to) || wm_list_next(&rest, ',', &more))
		cli_misuse("--replace: '%s': write FROM,TO, as in 2025-11-29,2025-11-30", text);
	if (from.len == 0 && to.len == 0)
		cli_misuse("--replace: '%s': the range has no end at all: write FROM,TO, FROM, or ,TO, as in "
			   "2025-11-29,",
			text);
	plan->merge.is_of_range = true;
	plan->merge.from_us = from.len == 0 ? INT64_MIN : parse_bound(plan, from);
	plan->merge.to_us = to.len == 0 ? INT64_MAX : parse_bound(plan, to);
	if (plan->merge.from_us >= plan->merge.to_us)
		cli_misuse("--replace: '%s': the range is empty: write the earlier time first", text);
	if (plan->opt->common.time_column == NULL)
		cli_misuse("--replace: name the column of the time with -t, such as -t window_start");
	name_columns(plan, "-t", plan->opt->common.time_column, WM_MERGE_KEY);
}

/* Which of the keys has a name; SIZE_MAX: none. */
static size_t
key_of(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->named_count; i++)
		if (strcmp(plan->named[i].column.name, name) == 0)
			return i;
	return SIZE_MAX;
}

static void
plan_keys(struct plan *plan)
{
	const struct options *opt = plan->opt;

	if (opt->key == NULL)
		cli_misuse("name the columns that make rows the same with -k, such as -k window_start,window_end (or "
			   "write --replace FROM,TO)");
	name_columns(plan, "-k", opt->key, WM_MERGE_KEY);
	plan->merge.keys_count = plan->named_count;
	plan->merge.start_key = key_of(plan, "window_start");
	plan->merge.end_key = key_of(plan, "window_end");
	name_columns(plan, "--sum", opt->sum, WM_MERGE_SUM);
	name_columns(plan, "--min", opt->min, WM_MERGE_MIN);
	name_columns(plan, "--max", opt->max, WM_MERGE_MAX);
	name_columns(plan, "--last", opt->last, WM_MERGE_LAST);
	plan->merge.is_of_states = opt->partial || opt->keep_partial;
}

/* Half of the memory that this process may use. */
static size_t
default_limit(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	size_t bytes = pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : SIZE_MAX;
	int fd = open("/sys/fs/cgroup/memory.max", O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t got = fd == -1 ? 0 : read(fd, text, sizeof(text));
	size_t allowed = 0;

	if (fd != -1)
		close(fd);
	for (ssize_t i = 0; i < got && text[i] >= '0' && text[i] <= '9' && allowed < SIZE_MAX / 16; i++)
		allowed = allowed * 10 + (size_t)(text[i] - '0');
	return (allowed != 0 && allowed < bytes ? allowed : bytes) / 2;
}

static size_t
parse_limit(const char *text)
{
	static const char units[] = "KMGT";
	const char *at = text;
	size_t number = 0;
	unsigned shift = 0;

	if (text == NULL)
		return default_limit();
	if (strcmp(text, "none") == 0)
		return SIZE_MAX;
	for (; *at >= '0' && *at <= '9' && number < SIZE_MAX / 16; at++)
		number = number * 10 + (size_t)(*at - '0');
	if (at != text && *at != '\0' && strchr(units, *at) != NULL)
		shift = 10 * (unsigned)(strchr(units, *at++) - units + 1);
	if (at == text || *at != '\0' || number == 0 || number > SIZE_MAX >> shift)
		cli_misuse("--state-limit: '%s' is no size: write 64K, 512M, 2G or none", text);
	return number << shift;
}

static void
check_in_place(const struct options *opt)
{
	if (opt->backup != NULL && !opt->in_place)
		cli_misuse("--backup: only --in-place changes a file: add it, or leave this out");
	if (!opt->in_place)
		return;
	if (opt->sum != NULL || opt->partial || opt->keep_partial)
		cli_misuse(
			"--in-place: %s would count late rows twice if the command is repeated: write a new file, "
			"computed from daily and late: wm-window ... late.csv | wm-merge ... daily.csv - > new && mv "
			"new daily.csv",
			opt->sum != NULL       ? "--sum"
				: opt->partial ? "--partial"
					       : "--keep-partial");
	if (opt->common.output_format != CLI_OUTPUT_SAME || opt->common.no_output_header)
		cli_misuse("--in-place: MAIN stays in its format: leave out %s",
			opt->common.no_output_header ? "--no-output-header" : "-o");
	if (is_standard_input(opt->common.files[0]))
		cli_misuse("--in-place: MAIN is standard input: name a file");
	if (opt->backup != NULL && (opt->backup[0] == '\0' || strchr(opt->backup, '/') != NULL))
		cli_misuse("--backup: '%s' is no end of a file name: write .bak or ~", opt->backup);
}

/* The backup takes the place of what stands under its name. */
static void
check_backup(const struct options *opt)
{
	struct stat backup, file;
	struct wm_buf path;

	wm_buf_init(&path, WM_BUF_UNBOUNDED);
	char *main_path = uses_resolve(opt->common.files[0]);
	wm_buf_addf(&path, "%s%s%c", main_path == NULL ? "" : main_path, opt->backup, '\0');
	for (size_t i = 1; i < opt->common.files_count && uses_find(path.data, &backup); i++) {
		const char *name = opt->common.files[i];

		if ((is_standard_input(name) ? fstat(STDIN_FILENO, &file) == 0 : uses_find(name, &file)) &&
			file.st_dev == backup.st_dev && file.st_ino == backup.st_ino)
			cli_misuse("--backup: %s would be replaced, and is also an input: write another suffix",
				path.data);
	}
	free(main_path);
	wm_buf_release(&path);
}

static void
check_files(const struct options *opt)
{
	size_t count = opt->common.files_count;
	bool is_partial = opt->partial || opt->keep_partial;

	if (count == 0)
		cli_misuse("name MAIN, the finished table, and the late results: wm-merge ... MAIN LATE...");
	if (count == 1 && !is_partial)
		cli_misuse("'%s' is MAIN: name the late results behind it (- is standard input)", opt->common.files[0]);
	uses_check(&opt->common, !opt->in_place);
	if (opt->in_place && opt->backup != NULL)
		check_backup(opt);
}

static void
make_plan(struct plan *plan, const struct options *opt)
{
	bool has_rules = opt->sum != NULL || opt->min != NULL || opt->max != NULL || opt->last != NULL;
	bool is_partial = opt->partial || opt->keep_partial;

	*plan = (struct plan){ .opt = opt, .is_final = is_partial && !opt->keep_partial };
	plan->merge.zone = opt->common.zone == NULL ? wm_zone_utc() : opt->common.zone;
	plan->merge.bytes_max = parse_limit(opt->state_limit);
	if (opt->replace != NULL && (opt->key != NULL || has_rules || is_partial))
		cli_misuse("--replace: whole rows give way by their time: leave out -k, --sum, --min, --max, --last "
			   "and --partial");
	if (opt->replace == NULL && (opt->common.time_column != NULL || opt->common.time_format != NULL))
		cli_misuse("-t and --time-format are of --replace FROM,TO: rows are found by -k otherwise");
	if (is_partial && has_rules)
		cli_misuse("--partial: states know how they combine: leave out --sum, --min, --max and --last");
	if (opt->common.ofmt != NULL && !plan->is_final)
		cli_misuse("--ofmt: nothing is computed but by --partial: leave it out");
	check_files(opt);
	check_in_place(opt);
	if (opt->replace != NULL)
		plan_range(plan);
	else
		plan_keys(plan);
}

static void
release_plan(struct plan *plan)
{
	for (size_t i = 0; i < plan->named_count; i++)
		wm_column_release(&plan->named[i].column);
	free(plan->named);
}

/* ---- inputs ---- */

static const char *
name_of(const char *file)
{
	return is_standard_input(file) ? "standard input" : file;
}

static _Noreturn void
die_of_errno(const char *name)
{
	struct wm_err err;

	(void)wm_err_set(&err, WM_ERR_IO, "%s: %s", name, strerror(errno));
	cli_die(&err);
}

static int
open_input(const char *file)
{
	int fd = is_standard_input(file) ? STDIN_FILENO : cli_open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);

	if (fd == -1)
		die_of_errno(file);
	return fd;
}

/* A reader of MAIN or of late rows: both are asked for the same columns. */
static struct wm_reader *
new_reader(const struct plan *plan)
{
	const struct cli_common *common = &plan->opt->common;
	const struct wm_reader_options options = {
		.format = (enum wm_format)common->input_format,
		.delimiter = common->delimiter_byte,
		.refuse_value = common->tsv_escapes == CLI_TSV_NONE ? cli_refuse_value : NULL,
		.no_header = common->no_header,
		.columns = common->columns,
		.record_bytes_max = common->record_limit,
		.nulls = cli_nulls(common),
	};
	struct wm_err err;
	struct wm_reader *reader = wm_reader_new(&options, &err);

	if (reader == NULL)
		cli_die(&err);
	for (size_t i = 0; i < plan->named_count; i++)
		wm_reader_want(reader, &plan->named[i].column);
	return reader;
}

/* The next record; false at the end of the input. A record that cannot be read ends the run: a table that lacks rows is none. */
static bool
next_record(struct wm_reader *reader, struct wm_record *rec)
{
	struct wm_reject reject;
	struct wm_err err;

	for (;;) {
		switch (wm_reader_next(reader, rec, &reject, &err)) {
		case WM_READ_RECORD:
			return true;
		case WM_READ_END:
			return false;
		case WM_READ_MORE:
			if (!wm_reader_fill(reader, &err))
				cli_die(&err);
			break;
		case WM_READ_REJECTED:
			(void)wm_err_set(&err, WM_ERR_DATA, "%s:%llu: %s: nothing was merged", wm_reader_name(reader),
				(unsigned long long)reject.line, reject.detail);
			cli_die(&err);
		case WM_READ_FAILED:
			cli_die(&err);
		}
	}
}

/* A pipe gives its bytes once, and MAIN is read twice: it goes to a file without a name first. */
static int
keep_pipe(int from, const char *name)
{
	const char *folder = getenv("TMPDIR");
	char *bytes = wm_malloc(COPY_BYTES);
	struct wm_buf path;
	struct wm_err err;
	ssize_t got;

	wm_buf_init(&path, WM_BUF_UNBOUNDED);
	wm_buf_addf(&path, "%s/wm-merge-XXXXXX%c", folder == NULL || *folder == '\0' ? "/tmp" : folder, '\0');
	int to = mkostemp(path.data, O_CLOEXEC);
	if (to == -1)
		die_of_errno(path.data);
	unlink(path.data);
	struct wm_writer *writer = wm_writer_new(dup(to), path.data);
	while ((got = read(from, bytes, COPY_BYTES)) != 0) {
		if (got == -1 && errno != EINTR)
			die_of_errno(name);
		if (got > 0 && !wm_writer_put(writer, wm_span(bytes, (size_t)got), &err))
			cli_die(&err);
	}
	if (!wm_writer_close(writer, &err))
		cli_die(&err);
	if (lseek(to, 0, SEEK_SET) == -1)
		die_of_errno(path.data);
	wm_buf_release(&path);
	free(bytes);
	close(from);
	return to;
}

/* ---- the run ---- */

struct run {
	const struct plan *plan;
	const char *main_name;
	int main_fd;
	off_t main_begin;
	struct stat main_status;
	struct wm_reader *main;
	struct wm_reader *late;
	struct wm_record first; /* of MAIN */
	bool has_first;
	uint64_t main_count; /* rows */
	uint64_t late_count;
	bool has_told_quoted;

	/* Known with the first input that has a header or a record. */
	const struct wm_reader *layout; /* NULL: not yet */
	struct wm_columns columns;
	struct wm_merge *merge;
	struct wm_instant_parser *time_parser; /* --replace */
	struct wm_buf line;

	struct wm_writer *writer;
	struct wm_row_format out_format;
	bool is_rewritten; /* rows are printed value by value */
	struct wm_fields fields;
	struct wm_value *values;
	size_t values_capacity;
	struct wm_buf row;
};

/* Asks for the bytes of MAIN from their begin. The reader takes over a descriptor of its own. */
static void
open_main(struct run *run)
{
	int fd = dup(run->main_fd);

	if (fd == -1 || lseek(fd, run->main_begin, SEEK_SET) == -1)
		die_of_errno(run->main_name);
	wm_reader_open(run->main, fd, run->main_name);
}

/* Names from the first line of a file, as the reader has taken them. */
static void
append_names_file(struct run *run, const char *path)
{
	const struct wm_row_format *format = &run->columns.format;
	const struct wm_reader_options options = {
		.format = format->format,
		.delimiter = format->format == WM_FORMAT_CSV ? format->delimiter : '\0',
		.refuse_value = format->refuse_value,
	};
	struct wm_record rec;
	struct wm_err err;
	struct wm_reader *reader = wm_reader_new(&options, &err);
	int fd = cli_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);

	if (fd == -1)
		die_of_errno(path);
	wm_reader_open(reader, fd, path);
	(void)next_record(reader, &rec);
	wm_columns_append_header(&run->columns, wm_reader_header(reader));
	wm_reader_free(reader);
}

/* The columns of CSV are those of the header, or as the options say; rec is the first record, NULL if there is none. */
static void
begin_columns(struct run *run, const struct wm_record *rec)
{
	const struct cli_common *common = &run->plan->opt->common;
	struct wm_span header = wm_reader_header(run->layout), part;
	struct wm_columns *columns = &run->columns;

	if (columns->format.format == WM_FORMAT_NDJSON)
		return;
	if (header.len != 0) {
		wm_columns_append_header(columns, header);
	} else if (common->columns != NULL && common->columns[0] == '@') {
		append_names_file(run, common->columns + 1);
	} else if (common->columns != NULL) {
		struct wm_span rest = wm_span_of(common->columns);
		struct wm_buf name;

		wm_buf_init(&name, WM_BUF_UNBOUNDED);
		while (wm_list_next(&rest, ',', &part)) {
			wm_buf_reset(&name);
			wm_list_unescape(part, &name);
			wm_columns_append(columns, wm_buf_span(&name));
		}
		wm_buf_release(&name);
	} else if (rec != NULL) {
		struct wm_cut cut = { 0 };

		wm_dialect_cut(&cut, wm_row_dialect(&columns->format), wm_cut_content(rec->raw));
		for (size_t i = 0; i < cut.count; i++) {
			char number[24];
			int len = snprintf(number, sizeof(number), "%zu", i + 1);

			wm_columns_append(columns, wm_span(number, (size_t)len));
		}
		wm_cut_release(&cut);
	}
}

static void
begin_output_format(struct run *run)
{
	static const enum wm_format formats[] = {
		[CLI_OUTPUT_CSV] = WM_FORMAT_CSV,
		[CLI_OUTPUT_TSV] = WM_FORMAT_TSV,
		[CLI_OUTPUT_NDJSON] = WM_FORMAT_NDJSON,
	};
	const struct wm_row_format *in = &run->columns.format;
	int asked = run->plan->opt->common.output_format;

	run->out_format = *in;
	if (asked != CLI_OUTPUT_SAME && formats[asked] != in->format)
		run->out_format = (struct wm_row_format){ formats[asked], formats[asked] == WM_FORMAT_TSV ? '\t' : ',',
			in->line_end, in->refuse_value };
	run->is_rewritten = run->plan->is_final || run->out_format.format != in->format;
}

/* Whether texts are to be told apart from numbers and null in the result. */
static bool
gains_types(const struct run *run)
{
	return run->columns.format.format != WM_FORMAT_NDJSON && run->out_format.format == WM_FORMAT_NDJSON;
}

/* The layout is known: what is merged, and how. */
static void
begin_table(struct run *run, const struct wm_reader *layout, const struct wm_record *rec)
{
	const struct plan *plan = run->plan;
	const struct wm_row_format format = {
		.format = wm_reader_format(layout),
		.delimiter = wm_reader_delimiter(layout),
		.line_end = wm_reader_line_end(layout),
		.refuse_value = wm_reader_refuse_value(layout),
	};
	struct wm_merge_options options = plan->merge;
	struct wm_err err;

	run->layout = layout;
	wm_columns_init(&run->columns, &format);
	run->columns.nulls = cli_nulls(&plan->opt->common);
	begin_columns(run, rec);
	begin_output_format(run);
	wm_fields_init(&run->fields, &run->columns);
	/* The columns of NDJSON in the order of the first record. */
	if (format.format == WM_FORMAT_NDJSON && rec != NULL)
		wm_fields_split(&run->fields, rec->raw);
	options.looks_at_all = run->is_rewritten;
	options.tells_nulls = gains_types(run);
	run->merge = wm_merge_new(&run->columns, &options);
	for (size_t i = 0; i < plan->named_count; i++) {
		const struct named *named = &plan->named[i];
		struct wm_span name = wm_span(named->column.name, named->column.name_len);
		size_t column;

		if (named->column.path_count > 1 && format.format == WM_FORMAT_NDJSON && named->rule != WM_MERGE_KEY)
			cli_misuse("%s: '%s' is a path: only whole members of NDJSON can change (a dot in a name is "
				   "written \\.)",
				named->option, named->column.name);
		if (!wm_columns_find(&run->columns, name, &column)) {
			/* A path of keys is a column of its own for no rule. */
			if (named->column.path_count > 1 || format.format != WM_FORMAT_NDJSON)
				continue;
			wm_columns_append(&run->columns, name);
			column = run->columns.count - 1;
		}
		wm_merge_set_rule(run->merge, column, named->rule);
	}
	if (plan->merge.is_of_range) {
		const char *time_format = plan->opt->common.time_format;

		run->time_parser = wm_instant_parser_new(wm_span_of(time_format == NULL ? "auto" : time_format),
			plan->merge.zone, WM_REPEATED_EARLIER, NULL, &err);
		if (run->time_parser == NULL)
			cli_misuse("--time-format: %s", err.message);
		wm_instant_parser_take_edges(run->time_parser); /* it may be the column of ends of windows */
	}
}

static int64_t
time_of(struct run *run, const struct wm_record *rec, const char *name)
{
	const struct wm_value *value = &rec->fields[0];
	const char *why = "no time", *column = run->plan->named[0].column.name;
	struct wm_buf text;
	struct wm_err err;
	int64_t time_us;

	if (!wm_value_is_empty(value) && wm_instant_parse(run->time_parser, value->text, &time_us, &why))
		return time_us;
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_shown(value->text, &text);
	(void)wm_err_set(&err, WM_ERR_DATA, "%s:%llu: column '%s': '%.*s': %s", name, (unsigned long long)rec->line,
		column, (int)text.len, text.data, why);
	wm_buf_release(&text);
	cli_die(&err);
}

/* A record as the operator takes it: in the layout of the table. name is where it stands. */
static struct wm_merge_row
row_of(struct run *run, struct wm_reader *reader, const struct wm_record *rec, const char *name)
{
	struct wm_merge_row row = { .keys = rec->fields, .input = name, .number = rec->line };

	/* The layout is that of MAIN. */
	row.line = wm_reader_line(reader, rec, &run->line);
	if (run->time_parser != NULL)
		row.time_us = time_of(run, rec, name);
	return row;
}

static void
read_late(struct run *run, const char *file)
{
	const char *name = name_of(file);
	struct wm_record rec;
	struct wm_err err;

	wm_reader_open(run->late, open_input(file), name);
	while (next_record(run->late, &rec)) {
		if (run->layout == NULL)
			begin_table(run, run->late, &rec);
		struct wm_merge_row row = row_of(run, run->late, &rec, name);
		if (!wm_merge_hold(run->merge, &row, &err))
			cli_die(&err);
		run->late_count++;
	}
	inputs_tell_quoted(run->late, &run->has_told_quoted);
}

/* A command before a pipe that has failed leaves no bytes at all, where a table without rows has a header. */
static void
check_late_came(const struct run *run)
{
	bool is_of_range = run->plan->merge.is_of_range;
	struct wm_err err;

	if (run->plan->opt->common.files_count == 1 || wm_reader_counts(run->late).bytes != 0)
		return;
	if (is_of_range)
		(void)wm_err_set(&err, WM_ERR_DATA,
			"--replace: nothing came in place of the rows, not even a header: if the range is to be empty, "
			"name a file with a header alone");
	else if (run->layout != NULL && wm_reader_header(run->layout).len != 0)
		(void)wm_err_set(&err, WM_ERR_DATA,
			"no late results came, not even a header: if a command before a pipe has failed, see to that; "
			"if nothing was late, name a file with a header alone");
	else
		return;
	cli_die(&err);
}

/* All late rows, once the first record of MAIN has told the layout. */
static void
read_late_files(struct run *run)
{
	const struct cli_common *common = &run->plan->opt->common;

	run->late = new_reader(run->plan);
	bool is_held_to_it = run->layout == NULL || wm_reader_adopt(run->late, run->main);
	assert(is_held_to_it);
	(void)is_held_to_it;
	for (size_t i = 1; i < common->files_count; i++)
		read_late(run, common->files[i]);
	if (run->layout == NULL && wm_reader_format(run->late) != WM_FORMAT_AUTO)
		begin_table(run, run->late, NULL);
	check_late_came(run);
}

/* Columns that no record had: in NDJSON this shows at the end. */
static void
check_seen(const struct run *run, const struct wm_reader *reader, uint64_t rows_count, const char *where)
{
	struct wm_err err;

	for (size_t i = 0; i < run->plan->named_count && rows_count > 0; i++) {
		const struct named *named = &run->plan->named[i];

		if (wm_reader_column_seen(reader, i))
			continue;
		(void)wm_err_set(&err, WM_ERR_DATA, "%s: no record has the column '%s' of %s", where,
			named->column.name, named->option);
		cli_die(&err);
	}
}

static void
check_main(struct run *run)
{
	bool has_record = run->has_first;
	struct wm_record rec = run->first;
	struct wm_err err;

	while (has_record) {
		struct wm_merge_row row = row_of(run, run->main, &rec, run->main_name);

		if (!wm_merge_check(run->merge, &row, &err))
			cli_die(&err);
		run->main_count++;
		has_record = next_record(run->main, &rec);
	}
	inputs_tell_quoted(run->main, &run->has_told_quoted);
	check_seen(run, run->main, run->main_count, run->main_name);
	check_seen(run, run->late, run->late_count, "late results");
	if (!wm_merge_settle(run->merge, &err))
		cli_die(&err);
}

/* ---- output ---- */

static void
put(struct run *run, struct wm_span bytes)
{
	struct wm_err err;

	if (!wm_writer_put(run->writer, bytes, &err))
		cli_die(&err);
}

/* Of what is kept beside states nothing is a result. */
static bool
is_left_out(const struct run *run, size_t column)
{
	return run->plan->is_final && wm_merge_leaves_out(run->merge, column);
}

static void
put_header(struct run *run)
{
	struct wm_span header = wm_reader_header(run->layout);
	const struct wm_row_format *format = &run->out_format;
	size_t put_count = 0;

	if (format->format == WM_FORMAT_NDJSON || run->plan->opt->common.no_output_header)
		return;
	if (!run->is_rewritten) {
		put(run, header);
		return;
	}
	if (header.len == 0 && run->columns.format.format != WM_FORMAT_NDJSON)
		return;
	wm_buf_reset(&run->row);
	for (size_t i = 0; i < run->columns.count; i++) {
		struct wm_value name = { run->columns.names[i], WM_KIND_TEXT };

		if (!is_left_out(run, i))
			wm_row_put(&run->row, format, put_count++, name.text, &name);
	}
	wm_row_end(&run->row, format, put_count);
	put(run, wm_buf_span(&run->row));
}

/* What stands in the columns of a line, results in place of states. */
static const struct wm_value *
values_of(struct run *run, struct wm_span line)
{
	const struct wm_value *values;
	struct wm_err err;

	if (run->plan->is_final) {
		if (!wm_merge_print(run->merge, line, run->plan->opt->common.ofmt, &values, &err))
			cli_die(&err);
		return values;
	}
	wm_fields_split(&run->fields, line);
	if (run->values_capacity < run->columns.count) {
		run->values_capacity = run->columns.count;
		run->values = wm_reallocarray(run->values, run->values_capacity, sizeof(run->values[0]));
	}
	for (size_t i = 0; i < run->columns.count; i++)
		run->values[i] = gains_types(run) ? wm_fields_value(&run->fields, i) : wm_fields_at(&run->fields, i);
	return run->values;
}

static void
put_line(struct run *run, struct wm_span line)
{
	const struct wm_row_format *format = &run->out_format;
	bool has_no_types = gains_types(run);

	if (!run->is_rewritten) {
		put(run, line);
		return;
	}
	const struct wm_value *values = values_of(run, line);
	size_t put_count = 0;
	wm_buf_reset(&run->row);
	for (size_t i = 0; i < run->columns.count; i++) {
		if (is_left_out(run, i))
			continue;
		bool is_told = has_no_types && values[i].kind == WM_KIND_TEXT;
		struct wm_value value = is_told ? wm_value_from_csv(values[i].text) : values[i];

		wm_row_put(&run->row, format, put_count++, run->columns.names[i], &value);
	}
	wm_row_end(&run->row, format, put_count);
	put(run, wm_buf_span(&run->row));
}

static void
put_due(struct run *run)
{
	struct wm_span line;

	while (wm_merge_next(run->merge, &line))
		put_line(run, line);
}

static void
write_table(struct run *run)
{
	struct wm_record rec;
	struct wm_err err;

	put_header(run);
	open_main(run);
	while (next_record(run->main, &rec)) {
		struct wm_merge_row row = row_of(run, run->main, &rec, run->main_name);

		if (!wm_merge_take(run->merge, &row, &err))
			cli_die(&err);
		put_due(run);
	}
	wm_merge_end(run->merge);
	put_due(run);
}

/* ---- in place ---- */

/* The new file beside MAIN until it takes its name; removed however the process ends, but for SIGKILL. */
static char new_path[PATH_MAX];
static volatile sig_atomic_t has_new;

static void
remove_new(void)
{
	if (has_new)
		unlink(new_path);
}

static void
remove_and_die(int number)
{
	remove_new();
	signal(number, SIG_DFL);
	raise(number);
}

static void
guard_new(sigset_t *before)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = remove_and_die };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction old;

		sigaddset(&blocked, numbers[i]);
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
	atexit(remove_new);
	sigprocmask(SIG_BLOCK, &blocked, before);
}

/* path is that of MAIN, links resolved. */
static int
open_new(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	sigset_t before;

	if (snprintf(new_path, sizeof(new_path), "%.*s.%s.XXXXXX", (int)(name - path), path, name) >=
		(int)sizeof(new_path)) {
		errno = ENAMETOOLONG;
		die_of_errno(path);
	}
	guard_new(&before);
	int fd = mkostemp(new_path, O_CLOEXEC);
	has_new = fd != -1;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (fd == -1)
		die_of_errno(new_path);
	return fd;
}

/* A second name for the old MAIN, in place of an older backup. */
static void
keep_backup(const char *path, const char *suffix)
{
	char link_path[PATH_MAX + 8];
	struct wm_buf backup;

	wm_buf_init(&backup, WM_BUF_UNBOUNDED);
	wm_buf_addf(&backup, "%s%s%c", path, suffix, '\0');
	snprintf(link_path, sizeof(link_path), "%s.old", new_path);
	if (link(path, link_path) == -1)
		die_of_errno(backup.data);
	if (rename(link_path, backup.data) == -1) {
		int error = errno;

		unlink(link_path);
		errno = error;
		die_of_errno(backup.data);
	}
	/* Where both were one file already the rename has done nothing. */
	unlink(link_path);
	wm_buf_release(&backup);
}

static void
sync_folder(const char *path)
{
	const char *name = strrchr(path, '/');
	char *folder = wm_memdup(path, name == path ? 1 : (size_t)(name - path));
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1 || fsync(fd) == -1)
		die_of_errno(folder);
	close(fd);
	free(folder);
}

/* The new file, whole on disk, takes the name of MAIN, if that is still the file that was read. */
static void
put_in_place(const struct run *run, int fd, const char *path)
{
	const struct stat *old = &run->main_status;
	struct stat now, made;
	struct wm_err err;

	if (fstat(fd, &made) == -1 ||
		((made.st_uid != old->st_uid || made.st_gid != old->st_gid) &&
			fchown(fd, old->st_uid, old->st_gid) == -1)) {
		(void)wm_err_set(&err, WM_ERR_IO, "%s: its owner cannot be kept: %s", run->main_name, strerror(errno));
		cli_die(&err);
	}
	if (fchmod(fd, old->st_mode & 07777) == -1 || fsync(fd) == -1 || close(fd) == -1)
		die_of_errno(new_path);
	if (stat(path, &now) == -1)
		die_of_errno(path);
	if (now.st_dev != old->st_dev || now.st_ino != old->st_ino || now.st_size != old->st_size ||
		now.st_mtim.tv_sec != old->st_mtim.tv_sec || now.st_mtim.tv_nsec != old->st_mtim.tv_nsec) {
		(void)wm_err_set(
			&err, WM_ERR_IO, "%s: was changed by another while it was read: try again", run->main_name);
		cli_die(&err);
	}
	if (run->plan->opt->backup != NULL)
		keep_backup(path, run->plan->opt->backup);
	if (rename(new_path, path) == -1)
		die_of_errno(path);
	has_new = 0;
	sync_folder(path);
}

static void
write_in_place(struct run *run)
{
	char *path = realpath(run->main_name, NULL);
	struct wm_err err;

	if (path == NULL)
		die_of_errno(run->main_name);
	int fd = open_new(path), copy = dup(fd);
	if (copy == -1)
		die_of_errno(new_path);
	run->writer = wm_writer_new(copy, new_path);
	write_table(run);
	if (!wm_writer_close(run->writer, &err))
		cli_die(&err);
	put_in_place(run, fd, path);
	free(path);
}

static void
write_to_output(struct run *run)
{
	struct wm_err err;
	bool was_open;

	run->writer = wm_writer_new(STDOUT_FILENO, "standard output");
	if (!wm_writer_end_line(run->writer, &was_open, &err))
		cli_die(&err);
	if (was_open)
		cli_warn("standard output: its last line had no end, and gets one before rows are added");
	if (run->merge != NULL)
		write_table(run);
	put(run, wm_span(NULL, 0));
	if (!wm_writer_flush(run->writer, &err) || !wm_writer_close(run->writer, &err))
		cli_die(&err);
}

/* ---- main ---- */

/* Opens MAIN and reads its first record, which tells the layout. */
static void
begin_main(struct run *run)
{
	const char *file = run->plan->opt->common.files[0];

	run->main_name = name_of(file);
	run->main_fd = open_input(file);
	if (fstat(run->main_fd, &run->main_status) == -1)
		die_of_errno(run->main_name);
	bool is_regular = S_ISREG(run->main_status.st_mode);
	if (!is_regular && run->plan->opt->in_place)
		cli_misuse("--in-place: %s is no regular file", run->main_name);
	if (!is_regular)
		run->main_fd = keep_pipe(run->main_fd, run->main_name);
	run->main_begin = lseek(run->main_fd, 0, SEEK_CUR);
	run->main = new_reader(run->plan);
	open_main(run);
	run->has_first = next_record(run->main, &run->first);
	if (wm_reader_format(run->main) != WM_FORMAT_AUTO)
		begin_table(run, run->main, run->has_first ? &run->first : NULL);
}

static void
release_run(struct run *run)
{
	close(run->main_fd);
	wm_reader_free(run->main);
	wm_reader_free(run->late);
	if (run->merge != NULL) {
		wm_merge_free(run->merge);
		wm_fields_release(&run->fields);
		wm_columns_release(&run->columns);
	}
	wm_instant_parser_free(run->time_parser);
	wm_buf_release(&run->line);
	wm_buf_release(&run->row);
	free(run->values);
}

int
main(int argc, char **argv)
{
	struct options opt = { 0 };
	struct plan plan;
	struct run run = { .plan = &plan };

	outputs_guard_descriptors();
	cli_parse(&tool, argc, argv, &opt); /* exits 2 on misuse, before anything is read */
	make_plan(&plan, &opt);
	wm_buf_init(&run.line, WM_BUF_UNBOUNDED);
	wm_buf_init(&run.row, WM_BUF_UNBOUNDED);

	begin_main(&run);
	read_late_files(&run);
	if (run.merge != NULL)
		check_main(&run);
	/* Nothing stands against the result any more. */
	if (opt.in_place && run.merge != NULL)
		write_in_place(&run);
	else if (!opt.in_place)
		write_to_output(&run);

	release_run(&run);
	release_plan(&plan);
	cli_release(&opt.common);
	return CLI_DONE;
}
