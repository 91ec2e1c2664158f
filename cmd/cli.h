/* SPDX-License-Identifier: Apache-2.0 */
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
#include <sys/types.h>

#include "cmd/progress.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/record/nulls.h"
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
	CLI_NAMES,     /* the same, or "@FILE" */
	CLI_TIME,      /* const char *, checked to be a column, or two with '+' between them */
	CLI_DURATION,  /* struct cli_duration; months and years are misuse; negative ones too */
	CLI_OFFSET,    /* struct cli_duration; may be negative */
	CLI_DELAY,     /* struct cli_delay: "5s", or "5s,web2=10s" */
	CLI_SPAN_LIST, /* const char *: durations and more, parsed by the tool itself */
	CLI_SIZE,      /* size_t; 0 where not given; "64K", "512M", "2G", powers of 1024; 0 is misuse */
	CLI_CHOICE, /* int: index into the choices, which stand in the table's arg ("append|update|complete"); must be set to the default before */
};

struct cli_duration {
	int64_t us;
	const char *text; /* as given; NULL: not given */
};

/* A delay threshold, and those of sources that have one of their own. */
struct cli_delay {
	int64_t us;
	const char *text;   /* the first part as given; NULL: not given */
	const char *others; /* "web2=10s,web3=1m", checked; NULL: none */
};

/* With --tsv-escapes none: a value cannot stand in TSV. Ends the process with status 1. */
void cli_refuse_value(struct wm_span value);

/* The next of these; false when none is left. *rest begins as wm_span_of(others). The name keeps its escapes. */
bool cli_next_source_delay(struct wm_span *rest, struct wm_span *name, int64_t *delay_us);

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

/* The end of a table. */
#define CLI_END                                                                                                        \
	{                                                                                                              \
		0, NULL, NULL, NULL, CLI_FLAG, 0, CLI_SCREEN                                                           \
	}

/* The options that tools share, by their headings in --help. Those of help itself are in every tool. */
enum cli_group {
	CLI_GROUP_INPUT = 1 << 0,
	CLI_GROUP_TIME = 1 << 1, /* event time and watermark */
	CLI_GROUP_REPORTS = 1 << 2,
	CLI_GROUP_OUTPUT = 1 << 3,
	CLI_GROUP_RUNS = 1 << 4, /* what goes on from run to run; shown with the output */
	CLI_GROUP_STREAM = CLI_GROUP_INPUT | CLI_GROUP_TIME | CLI_GROUP_REPORTS | CLI_GROUP_OUTPUT | CLI_GROUP_RUNS,
};

struct cli_tool {
	const char *name;     /* "wm-window" */
	const char *summary;  /* "aggregate by event-time window and key" */
	const char *usage;    /* "[OPTION]... [FILE]..." */
	const char *examples; /* two or three lines at the end of --help, separated by line ends; 78 columns */
	const struct cli_option
		*options;           /* its own, which come first in --help and replace common ones of the same name */
	unsigned groups;            /* of enum cli_group */
	bool measures_arrival;      /* --ingest has a use without --max-ahead */
	const char *const *without; /* names of common options that it lacks, NULL behind the last; NULL: it has all */
	bool takes_two;             /* LEFT and RIGHT, each a source of its own */
	bool merges_files; /* several FILEs are read side by side without --merge too, unless a column tells sources */
};

enum cli_trigger_word {
	CLI_TRIGGER_EACH,
	CLI_TRIGGER_ROWS,  /* 1000rows */
	CLI_TRIGGER_EVENT, /* event:10s */
	CLI_TRIGGER_WALL,  /* wall:10s */
	CLI_TRIGGER_COLUMN,
	CLI_TRIGGER_FILE,
	CLI_TRIGGER_EOF,
};
enum cli_eof { CLI_EOF_DEFAULT = -1, CLI_EOF_FLUSH, CLI_EOF_HOLD, CLI_EOF_TRIGGER };
enum cli_output_format { CLI_OUTPUT_SAME, CLI_OUTPUT_CSV, CLI_OUTPUT_TSV, CLI_OUTPUT_NDJSON, CLI_OUTPUT_TABLE };
enum cli_progress { CLI_PROGRESS_AUTO, CLI_PROGRESS_BAR, CLI_PROGRESS_JSON, CLI_PROGRESS_NONE };
enum cli_order { CLI_ORDER_GIVEN, CLI_ORDER_TIME };
enum cli_resume { CLI_RESUME_AUTO, CLI_RESUME_REPLAY, CLI_RESUME_PREV };
enum cli_tsv_escapes { CLI_TSV_BACKSLASH, CLI_TSV_NONE };
enum cli_unmatched { CLI_UNMATCHED_REJECT, CLI_UNMATCHED_SKIP };

/*
 * What all streaming tools share. It must be the first member ("common") of a
 * tool's options struct. Texts point into argv.
 */
struct cli_common {
	/* input */
	int input_format;      /* enum wm_format */
	const char *delimiter; /* as typed; its byte is in delimiter_byte */
	int tsv_escapes;       /* enum cli_tsv_escapes */
	const char *columns;   /* names, or "@FILE" */
	bool no_header;
	const char *pattern; /* of -i lines */
	int unmatched;       /* enum cli_unmatched */
	const char *null;    /* as typed; NULL: no text stands for a missing value */
	bool null_quoted;
	size_t record_limit;
	int order; /* enum cli_order */
	bool merge;
	const char *files0_from; /* "-": standard input; its names are in files */
	/* event time and watermark */
	const char *time_column; /* as typed: "date+time" is two */
	const char *time_format;
	const char *tz;
	const char *time_reference; /* as typed */
	int repeated_hour;          /* enum wm_repeated_hour */
	struct cli_delay delay;
	const char *watermark_column; /* "none": what is in band is ignored */
	const char *source_column;
	const char *sources; /* a comma list of names, none empty and none twice */
	int policy;          /* enum wm_policy */
	struct cli_duration idle;
	struct cli_duration idle_wall;
	struct cli_duration idle_close;
	struct cli_duration max_jump; /* never 0 where given */
	struct cli_duration max_ahead;
	const char *ingest;  /* a column, or "now"; needed by max_ahead */
	const char *trigger; /* as typed */
	int eof; /* enum cli_eof; a tool sets CLI_EOF_DEFAULT before where it makes a difference; with a checkpoint
				the default is CLI_EOF_HOLD */
	const char *compat; /* "spark" or NULL */
	/* late and rejected rows, reports */
	bool has_sides;              /* of a tool that takes two inputs */
	const char *late_path;       /* of wm-join: late rows of the left */
	const char *late_right_path; /* an option of wm-join */
	bool late_info;
	const char *duplicates_path; /* an option of wm-dedup */
	const char *rejects_path;
	bool append;
	bool overwrite;
	bool strict;
	const char *report_path;
	const char *metrics_path;
	const char *fail_late; /* as typed */
	int progress;          /* enum cli_progress */
	bool explain;
	bool quiet;
	bool verbose;
	/* output */
	int output_format; /* enum cli_output_format */
	int output_time;   /* enum wm_time_unit */
	const char *ofmt;  /* a printf conversion of one double and nothing else, width and precision at most 99 */
	bool no_output_header;
	const char *out_path;
	/* from run to run */
	const char *checkpoint;
	const char *checkpoint_every; /* as typed */
	int resume;                   /* enum cli_resume */
	const char *position;
	struct cli_duration max_file_age;
	bool new_output;
	const char *state_limit; /* as typed */

	/* Filled by cli_parse() from the above. */
	char delimiter_byte;   /* 0: not given */
	struct wm_nulls nulls; /* --null, where it was given */
	enum cli_trigger_word trigger_word;
	uint64_t trigger_rows;      /* of Nrows, at least 1 */
	int64_t trigger_period_us;  /* of event:D and wall:D, above 0 */
	const char *trigger_column; /* of column:C */
	uint64_t checkpoint_rows;   /* of --checkpoint-every Nrows, at least 1; 0: by the clock */
	int64_t checkpoint_us;      /* its period of wall time, with checkpoint_rows 0 */
	uint64_t state_bytes_max;   /* --state-limit; UINT64_MAX: none; 0: not given */
	bool is_spark;              /* --compat spark */
	bool is_ingest_now;         /* --ingest now: by the clock, not by a column */
	struct wm_zone *zone;       /* NULL: UTC */
	int64_t time_reference_us;  /* where time_reference was given */
	/* --fail-late: the share part / whole, exact; at most 1. whole is 0 where it was not given */
	int64_t fail_late_part;
	int64_t fail_late_whole;
	const char *const *files; /* operands, or the names of files0_from; files_count 0: standard input */
	size_t files_count;
	struct wm_buf files_text; /* what files point into with files0_from */
	const char **files_list;  /* and where they stand; NULL without */
};

/*
 * Parses argv into *options (whose choices hold their defaults, all else zero) and checks what the common options can
 * check by themselves. An option with an argument may be given once, a flag again. The operands are
 * moved to the front of argv. Of all inputs only the list of --files0-from is read (with --explain not even that). Exits: 2 on misuse, 0 after --help and --version (3 if standard output cannot be written).
 */
void cli_parse(const struct cli_tool *tool, int argc, char **argv, void *options);

/* The texts that stand for missing values; NULL: there are none. */
const struct wm_nulls *cli_nulls(const struct cli_common *common);

/* Gives back what cli_parse() opened and read. */
void cli_release(struct cli_common *common);

/* Misuse that a tool finds itself: "wm-window: MESSAGE", and status 2. */
_Noreturn void cli_misuse(const char *format, ...) WM_PRINTF(1, 2);

/* Prints text, which is all that there is to write, and gives it back; exits with 3 if standard output cannot be written. */
void cli_write(struct wm_buf *text);

/* Prints what was asked for instead of a run, gives text back, and exits: 0, or 3 if standard output cannot be written. */
_Noreturn void cli_answer(struct wm_buf *text);

/* The status that goes with a failure. */
enum cli_status cli_status_of(enum wm_err_code code);

/* One line on standard error: "wm-window: MESSAGE". */
void cli_warn(const char *format, ...) WM_PRINTF(1, 2);

/* A progress object, whole with its line end, on standard error. */
void cli_progress(struct wm_span line);

/* Draws the bar on standard error, if it is due; it is wiped before any message. cli_bar_end(): it is wiped for good. */
void cli_bar(struct progress *progress, const struct progress_status *status, int64_t now_us);
void cli_bar_end(void);

/* One line on standard error, unless it is NULL, and status 0: there was nothing to do. */
_Noreturn void cli_done(const char *format, ...) WM_PRINTF(1, 2);

/*
 * open(), which an interruption does not end, unless it waits for the other side of a FIFO: then -1 and EINTR, as a signal
 * may have asked for an end.
 */
int cli_open(const char *path, int flags, mode_t mode);

/* Prints err's message and exits with its status. */
_Noreturn void cli_die(const struct wm_err *err);

/* Name of the running tool, for messages and reports. */
const char *cli_tool_name(void);

#endif
