#include "cmd/cli.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/near.h"
#include "lib/base/shown.h"
#include "lib/record/writer.h"

/* Rows of an option table, headings included: for arrays on the stack. */
#define OPTIONS_MAX 128

/* What getopt_long() returns for row 0: above every byte. */
#define ROW_FIRST 256

/* Longest word that gets spelling advice; every option and choice is shorter. */
#define WORD_MAX 32

/* The layout of --help. */
#define HELP_WIDTH 80
#define HELP_COLUMN 26

static const char *tool_name = "wm";

/*
 * What other tools call our options. The advice is given by tools that have
 * the option in the second column.
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
	{ "output|out", "output-format", "results go to standard output: write > FILE; their format is -o F" },
	{ "separator|sep|fs|field-separator", "delimiter", "write -d C (--delimiter)" },
	{ "header", "no-header", "the first line of CSV is one; where it is not: --columns NAMES or --no-header" },
	{ "timezone|time-zone|zone", "tz", "write --tz ZONE" },
	{ "date-format|timestamp-format|datetime-format|strptime", "time-format", "write --time-format F" },
	{ "timestamp|ts|event-time|time-column|time-field|date", "time", "write -t COLUMN (--time)" },
	{ "side-output|late-output|late-rows|late-file", "late", "write --late FILE" },
	{ "errors|bad|invalid|dead-letter", "rejects", "write --rejects FILE" },
	{ "silent", "quiet", "write -q (--quiet)" },
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
	fwrite(line.data, 1, line.len, stderr);
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

void
cli_die(const struct wm_err *err)
{
	cli_warn("%s", err->message);
	exit(cli_status_of(err->code));
}

/* ---- words: choices and spelling advice ---- */

static bool
is_heading(const struct cli_option *option)
{
	return option->offset == SIZE_MAX;
}

static const struct cli_option *
find_name(const struct cli_tool *tool, struct wm_span name)
{
	for (const struct cli_option *option = tool->options; option->name != NULL; option++)
		if (!is_heading(option) && wm_span_is(name, option->name))
			return option;
	return NULL;
}

static const struct cli_option *
find_letter(const struct cli_tool *tool, int letter)
{
	for (const struct cli_option *option = tool->options; option->name != NULL; option++)
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
refuse_name(const struct cli_tool *tool, struct wm_span name)
{
	struct wm_near near = wm_near_to(name);
	const struct cli_option *begun[2] = { NULL, NULL }; /* the first and the last that begin with name */

	for (size_t row = 0; row < sizeof(foreign_words) / sizeof(foreign_words[0]); row++)
		if (index_of(foreign_words[row].words, name) >= 0 &&
			find_name(tool, wm_span_of(foreign_words[row].option)) != NULL)
			cli_misuse("no option --%s: %s", shown_span(name).text, foreign_words[row].advice);
	for (const struct cli_option *option = tool->options; option->name != NULL; option++) {
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
	if (is_duration(text))
		return wm_err_set(err, WM_ERR_USAGE,
			"'%s' is a duration, and this option names a file: the delay is -w (a file of that name: ./%s)",
			shown(text).text, shown(text).text);
	return true;
}

/* Stores text in the option's member; name is the option as it was typed. */
static void
take(const struct cli_option *option, const char *name, const char *text, void *options)
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
put_help(struct wm_buf *out, const struct cli_tool *tool, enum cli_level level)
{
	const struct cli_option *heading = NULL;

	wm_buf_addf(out, "Usage: %s %s\n%s - %s\n", tool->name, tool->usage, tool->name, tool->summary);
	for (const struct cli_option *option = tool->options; option->name != NULL; option++) {
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

static _Noreturn void
print_and_exit(struct wm_buf *text)
{
	struct wm_writer *writer = wm_writer_new(STDOUT_FILENO, "standard output");
	struct wm_err err;
	bool is_put = wm_writer_put(writer, wm_buf_span(text), &err);
	bool is_closed = wm_writer_close(writer, &err);

	wm_buf_release(text);
	if (!is_put || !is_closed)
		cli_die(&err);
	exit(CLI_DONE);
}

static _Noreturn void
answer_help(const struct cli_tool *tool, const char *word)
{
	struct wm_buf text;

	if (word != NULL && strcmp(word, "all") != 0)
		refuse_choice("--help", wm_span_of(word), "all");
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	put_help(&text, tool, word == NULL ? CLI_SCREEN : CLI_ALL);
	print_and_exit(&text);
}

static _Noreturn void
answer_version(const struct cli_tool *tool)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_addf(&text, "%s " WM_VERSION "\n", tool->name);
	print_and_exit(&text);
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

static void
check_trigger(struct cli_common *common)
{
	static const char choices[] = "each|file|eof|column:C";
	static const char column[] = "column:";
	const char *text = common->trigger;
	struct wm_err err;

	if (text == NULL || strcmp(text, "each") == 0) {
		common->trigger_word = CLI_TRIGGER_EACH;
	} else if (strcmp(text, "file") == 0) {
		common->trigger_word = CLI_TRIGGER_FILE;
	} else if (strcmp(text, "eof") == 0) {
		common->trigger_word = CLI_TRIGGER_EOF;
	} else if (strncmp(text, column, sizeof(column) - 1) == 0) {
		common->trigger_word = CLI_TRIGGER_COLUMN;
		common->trigger_column = text + sizeof(column) - 1;
		if (!check_column(common->trigger_column, &err))
			cli_misuse("--trigger: %s", err.message);
	} else {
		refuse_choice("--trigger", wm_span_of(text), choices);
	}
}

/* No file is named by two options. What stands below /dev is no file: /dev/null may take all. */
static void
check_paths(const struct cli_tool *tool, const void *options)
{
	for (const struct cli_option *a = tool->options; a->name != NULL; a++) {
		const char *path =
			a->type == CLI_PATH ? *(const char *const *)((const char *)options + a->offset) : NULL;

		if (path == NULL || strncmp(path, "/dev/", 5) == 0)
			continue;
		for (const struct cli_option *b = tool->options; b != a; b++) {
			const char *other =
				b->type == CLI_PATH ? *(const char *const *)((const char *)options + b->offset) : NULL;

			if (other != NULL && strcmp(path, other) == 0)
				cli_misuse("--%s and --%s: both name '%s': give each a file of its own", b->name,
					a->name, shown(path).text);
		}
	}
}

static void
check_common(struct cli_common *common)
{
	struct wm_err err;

	check_delimiter(common);
	check_trigger(common);
	if (common->columns != NULL && common->no_header)
		cli_misuse("--columns and --no-header: both say what the columns are called: give one of them");
	if (common->compat != NULL && strcmp(common->compat, "spark") != 0)
		refuse_choice("--compat", wm_span_of(common->compat), "spark");
	common->is_spark = common->compat != NULL;
	if (common->late_info && common->late_path == NULL)
		cli_misuse("--late-info: there is no --late: name the file of the late rows with --late FILE");
	if (common->append && common->overwrite)
		cli_misuse("--append and --overwrite: give one of them");
	if (common->quiet && common->verbose)
		cli_misuse("-q and -v: give one of them");
	if (common->tz != NULL) {
		common->zone = wm_zone_open(wm_span_of(common->tz), &err);
		if (common->zone == NULL)
			cli_misuse("--tz: %s", err.message);
	}
}

/* ---- parsing ---- */

struct parse {
	const struct cli_tool *tool;
	void *options;
	bool is_given[OPTIONS_MAX]; /* by row of the table */
};

/*
 * getopt_long()'s tables. Options stand in the order of argv, operands among
 * them ("-"), whatever POSIXLY_CORRECT says; it prints nothing itself (":").
 */
static void
fill_tables(const struct cli_tool *tool, char letters[2 + 2 * OPTIONS_MAX + 1], struct option longs[OPTIONS_MAX + 1])
{
	size_t count = 0;

	*letters++ = '-';
	*letters++ = ':';
	for (size_t row = 0; tool->options[row].name != NULL; row++) {
		const struct cli_option *option = &tool->options[row];
		bool is_optional = option->arg != NULL && option->arg[0] == '[';

		assert(row < OPTIONS_MAX);
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
is_option_word(const struct cli_tool *tool, const char *text)
{
	if (text[0] != '-' || text[1] == '\0')
		return false;
	if (text[1] != '-')
		return text[2] == '\0' && find_letter(tool, (unsigned char)text[1]) != NULL;
	return find_name(tool, wm_span(text + 2, strcspn(text + 2, "="))) != NULL;
}

/* One option; word is as typed ("--late=x", "-w"), value what getopt_long() returned. */
static void
parse_option(struct parse *parse, int value, const char *word, bool is_separate)
{
	const struct cli_tool *tool = parse->tool;
	bool is_long = word[1] == '-';
	struct wm_span name = wm_span(word + 2, is_long ? strcspn(word + 2, "=") : 0);
	const struct cli_option *option = is_long ? find_name(tool, name) : find_letter(tool, (unsigned char)word[1]);
	char typed[2 + WORD_MAX + 1];

	if (option == NULL && is_long)
		refuse_name(tool, name);
	if (option == NULL)
		cli_misuse("no option %s: see --help", shown(word).text);
	snprintf(typed, sizeof(typed), "%.*s", is_long ? (int)name.len + 2 : 2, word);
	if (value == ':')
		cli_misuse("%s: needs an argument: write %s %s", typed, typed, option->arg);
	if (value == '?')
		cli_misuse("%s: takes no argument: write %s alone", typed, typed);
	if (strcmp(option->name, "help") == 0)
		answer_help(tool, optarg);
	if (strcmp(option->name, "version") == 0)
		answer_version(tool);
	if (is_separate && is_option_word(tool, optarg))
		cli_misuse("%s: needs an argument, and '%s' is an option: write %s %s", typed, shown(optarg).text,
			typed, option->arg);
	bool *is_given = &parse->is_given[option - tool->options];
	if (*is_given && option->type != CLI_FLAG)
		cli_misuse("%s: given twice: give it once", typed);
	*is_given = true;
	take(option, typed, optarg, parse->options);
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
	fill_tables(tool, letters, longs);
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
	check_paths(tool, options);
	check_common(common);
}

void
cli_release(struct cli_common *common)
{
	if (common->zone != NULL)
		wm_zone_close(common->zone);
	common->zone = NULL;
}
