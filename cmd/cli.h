/*
 * cli - the command line of every tool: one table of options drives parsing,
 * --help, --help=all and the spelling advice; tests hold man page and
 * completions to it.
 *
 * Misuse ends the process with status 2 and one line on standard error, before
 * anything is read or written. This is the only place that prints messages.
 */
#ifndef WM_CMD_CLI_H
#define WM_CMD_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/record/reader.h"
#include "lib/record/record.h"
#include "lib/time/duration.h"
#include "lib/time/zone.h"

enum cli_status {
	CLI_DONE = 0,
	CLI_REJECTED = 1,
	CLI_MISUSE = 2,
	CLI_IO = 3,
	CLI_LIMIT = 4,
	CLI_TOO_LATE = 5,
};

/* What an option's argument is, and so the type of the member at its offset. */
enum cli_type {
	CLI_FLAG,      /* bool */
	CLI_TEXT,      /* const char *, NULL where not given */
	CLI_PATH,      /* const char *; the empty name is misuse */
	CLI_COLUMN,    /* const char *, checked to be a column (wm_column_parse) */
	CLI_COLUMNS,   /* const char *, checked to be a comma list of columns, none twice */
	CLI_DURATION,  /* struct cli_duration; months and years are misuse; negative ones too */
	CLI_OFFSET,    /* struct cli_duration; may be negative */
	CLI_SPAN_LIST, /* const char *: durations and more, parsed by the tool itself */
	CLI_SIZE,      /* size_t; 0 where not given; "64K", "512M", "2G", powers of 1024; 0 is misuse */
	CLI_CHOICE, /* int: index into the choices, which stand in the table's arg ("append|update|complete"); must be set to the default before */
};

struct cli_duration {
	int64_t us;
	const char *text; /* as given; NULL: not given */
};

/* Where --help shows an option: on its one screen, or with --help=all alone. */
enum cli_level { CLI_SCREEN, CLI_ALL };

struct cli_option {
	int letter; /* 0: none */
	const char *
		name; /* NULL ends a table; with letter 0, type CLI_FLAG and offset SIZE_MAX it is a heading of --help */
	const char *arg;  /* NULL for CLI_FLAG */
	const char *help; /* lower case, no full stop */
	enum cli_type type;
	size_t offset; /* into the tool's options struct */
	enum cli_level level;
};

#define CLI_HEADING(text)                                                                                              \
	{                                                                                                              \
		0, text, NULL, NULL, CLI_FLAG, SIZE_MAX, CLI_SCREEN                                                    \
	}

struct cli_tool {
	const char *name;     /* "wm-window" */
	const char *summary;  /* "aggregate by event-time window and key" */
	const char *usage;    /* "[OPTION]... [FILE]..." */
	const char *examples; /* two or three lines at the end of --help, separated by line ends; 78 columns */
	const struct cli_option *options;
};

enum cli_trigger_word { CLI_TRIGGER_EACH, CLI_TRIGGER_FILE, CLI_TRIGGER_COLUMN, CLI_TRIGGER_EOF };
enum cli_eof { CLI_EOF_DEFAULT = -1, CLI_EOF_FLUSH, CLI_EOF_HOLD, CLI_EOF_TRIGGER };
enum cli_output_format { CLI_OUTPUT_SAME, CLI_OUTPUT_CSV, CLI_OUTPUT_TSV, CLI_OUTPUT_NDJSON };
enum cli_progress { CLI_PROGRESS_NONE, CLI_PROGRESS_JSON };

/*
 * What all streaming tools share. It must be the first member ("common") of a
 * tool's options struct. Texts point into argv.
 */
struct cli_common {
	/* input */
	int input_format;      /* enum wm_format */
	const char *delimiter; /* as typed; its byte is in delimiter_byte */
	const char *columns;
	bool no_header;
	size_t record_limit;
	/* event time and watermark */
	const char *time_column;
	const char *time_format;
	const char *tz;
	struct cli_duration delay;
	const char *trigger; /* as typed */
	int eof;             /* enum cli_eof; a tool sets CLI_EOF_DEFAULT before where it makes a difference */
	const char *compat;  /* "spark" or NULL */
	/* late and rejected rows, reports */
	const char *late_path;
	bool late_info;
	const char *rejects_path;
	bool append;
	bool overwrite;
	bool strict;
	const char *report_path;
	int progress; /* enum cli_progress */
	bool quiet;
	bool verbose;
	/* output */
	int output_format; /* enum cli_output_format */

	/* Filled by cli_parse() from the above. */
	char delimiter_byte; /* 0: not given */
	enum cli_trigger_word trigger_word;
	const char *trigger_column; /* of column:C */
	bool is_spark;              /* --compat spark */
	struct wm_zone *zone;       /* NULL: UTC */
	const char *const *files;   /* operands; files_count 0: standard input */
	size_t files_count;
};

#define CLI_COMMON_INPUT                                                                                               \
	CLI_HEADING("Input"),                                                                                          \
		{ 'i', "input-format", "auto|csv|tsv|ndjson",                                                          \
			"format of the input (default auto: by its first bytes)", CLI_CHOICE,                          \
			offsetof(struct cli_common, input_format), CLI_SCREEN },                                       \
		{ 'd', "delimiter", "C", "CSV delimiter: one byte, or \\t", CLI_TEXT,                                  \
			offsetof(struct cli_common, delimiter), CLI_SCREEN },                                          \
		{ 0, "columns", "NAMES", "names of the columns of CSV without a header", CLI_COLUMNS,                  \
			offsetof(struct cli_common, columns), CLI_ALL },                                               \
		{ 0, "no-header", NULL, "CSV without header or names: columns are 1, 2, ...", CLI_FLAG,                \
			offsetof(struct cli_common, no_header), CLI_ALL },                                             \
	{                                                                                                              \
		0, "record-limit", "SIZE", "longest record (default 64M); longer ones are rejected", CLI_SIZE,         \
			offsetof(struct cli_common, record_limit), CLI_ALL                                             \
	}

#define CLI_COMMON_TIME                                                                                                \
	CLI_HEADING("Event time and watermark"),                                                                       \
		{ 't', "time", "COLUMN", "column that holds the event time", CLI_COLUMN,                               \
			offsetof(struct cli_common, time_column), CLI_SCREEN },                                        \
		{ 0, "time-format", "F", "auto (default), iso, s, ms, us, ns, clf, rfc2822 or a strptime pattern",     \
			CLI_TEXT, offsetof(struct cli_common, time_format), CLI_SCREEN },                              \
		{ 0, "tz", "ZONE", "zone of times without one, and of results; default UTC", CLI_TEXT,                 \
			offsetof(struct cli_common, tz), CLI_SCREEN },                                                 \
		{ 'w', "delay", "D", "delay threshold: how late rows may run (90s, 10m, 2d)", CLI_DURATION,            \
			offsetof(struct cli_common, delay), CLI_SCREEN },                                              \
		{ 0, "trigger", "W", "when the watermark moves: each (default), file, column:C or eof", CLI_TEXT,      \
			offsetof(struct cli_common, trigger), CLI_SCREEN },                                            \
		{ 0, "eof", "flush|hold|trigger",                                                                      \
			"at the end of input: write what is open (default), keep it, or end the batch", CLI_CHOICE,    \
			offsetof(struct cli_common, eof), CLI_ALL },                                                   \
	{                                                                                                              \
		0, "compat", "spark", "judge as Spark does where our edge differs", CLI_TEXT,                          \
			offsetof(struct cli_common, compat), CLI_ALL                                                   \
	}

#define CLI_COMMON_REPORTS                                                                                             \
	CLI_HEADING("Late and rejected rows, reports"),                                                                \
		{ 0, "late", "FILE", "late rows, as they came, header included", CLI_PATH,                             \
			offsetof(struct cli_common, late_path), CLI_SCREEN },                                          \
		{ 0, "late-info", NULL, "add _late_by (seconds) and _late_watermark to them", CLI_FLAG,                \
			offsetof(struct cli_common, late_info), CLI_ALL },                                             \
		{ 0, "rejects", "FILE", "records of no use, each with its reason, as NDJSON", CLI_PATH,                \
			offsetof(struct cli_common, rejects_path), CLI_SCREEN },                                       \
		{ 0, "append", NULL, "add to --late, --rejects and --report files that exist", CLI_FLAG,               \
			offsetof(struct cli_common, append), CLI_ALL },                                                \
		{ 0, "overwrite", NULL, "replace them", CLI_FLAG, offsetof(struct cli_common, overwrite), CLI_ALL },   \
		{ 0, "strict", NULL, "stop at the first record that is rejected", CLI_FLAG,                            \
			offsetof(struct cli_common, strict), CLI_SCREEN },                                             \
		{ 0, "report", "FILE", "the ledger of all rows, as NDJSON", CLI_PATH,                                  \
			offsetof(struct cli_common, report_path), CLI_SCREEN },                                        \
		{ 0, "progress", "none|json", "json: an object a batch on standard error", CLI_CHOICE,                 \
			offsetof(struct cli_common, progress), CLI_ALL },                                              \
		{ 'q', "quiet", NULL, "no summary on standard error", CLI_FLAG, offsetof(struct cli_common, quiet),    \
			CLI_SCREEN },                                                                                  \
	{                                                                                                              \
		'v', "verbose", NULL, "always a summary on standard error", CLI_FLAG,                                  \
			offsetof(struct cli_common, verbose), CLI_SCREEN                                               \
	}

#define CLI_COMMON_OUTPUT                                                                                              \
	CLI_HEADING("Output"),                                                                                         \
	{                                                                                                              \
		'o', "output-format", "same|csv|tsv|ndjson", "format of the results (default same: as the input)",     \
			CLI_CHOICE, offsetof(struct cli_common, output_format), CLI_SCREEN                             \
	}

/* Every table ends with this. cli_parse() answers both itself. */
#define CLI_COMMON_HELP                                                                                                \
	CLI_HEADING("Help"),                                                                                           \
		{ 'h', "help", "[=all]", "this page; =all: every option", CLI_FLAG, SIZE_MAX - 1, CLI_SCREEN },        \
		{ 'V', "version", NULL, "the version", CLI_FLAG, SIZE_MAX - 1, CLI_SCREEN },                           \
	{                                                                                                              \
		0, NULL, NULL, NULL, CLI_FLAG, 0, CLI_SCREEN                                                           \
	}

/*
 * Parses argv into *options (whose choices hold their defaults, all else zero) and checks what the common options can
 * check by themselves. An option with an argument may be given once, a flag again. The operands are
 * moved to the front of argv. Exits: 2 on misuse, 0 after --help and --version (3 if standard output cannot be written).
 */
void cli_parse(const struct cli_tool *tool, int argc, char **argv, void *options);

/* Gives back what cli_parse() opened. */
void cli_release(struct cli_common *common);

/* Misuse that a tool finds itself: "wm-window: MESSAGE", and status 2. */
_Noreturn void cli_misuse(const char *format, ...) WM_PRINTF(1, 2);

/* The status that goes with a failure. */
enum cli_status cli_status_of(enum wm_err_code code);

/* One line on standard error: "wm-window: MESSAGE". */
void cli_warn(const char *format, ...) WM_PRINTF(1, 2);

/* A progress object, with its line end, on standard error as it is: one write, no tool's name. */
void cli_progress(struct wm_span line);

/* A progress object, whole with its line end, on standard error. */
void cli_progress(struct wm_span line);

/* Prints err's message and exits with its status. */
_Noreturn void cli_die(const struct wm_err *err);

/* Name of the running tool, for messages and reports. */
const char *cli_tool_name(void);

#endif
