/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outputs - results and the side files of a streaming tool.
 *
 * Results go to standard output or --out. Side files (--late, --duplicates,
 * --rejects, --report) and --out are created when the stream begins. Every write is checked;
 * a failure ends the process with status 3 and one line (none where the reader of
 * standard output has gone away).
 */
#ifndef WM_CMD_OUTPUTS_H
#define WM_CMD_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cli.h"
#include "lib/base/span.h"
#include "lib/record/reader.h"
#include "lib/record/writer.h"

struct outputs;

/* Descriptors 0, 1 and 2, where closed, are made to fail when used, so that no file is opened in their place. First of all. */
void outputs_guard_descriptors(void);

/* Their names were checked by uses_check(). */
struct outputs *outputs_open(const struct cli_common *common);

/* Told while a write waits for whoever reads. Before outputs_start(). */
void outputs_set_wait(struct outputs *outputs, const struct wm_writer_wait *wait);

/* Creates the side files. Once, when nothing stands against the run any more. */
void outputs_start(struct outputs *outputs);

/*
 * Results and side files as files that a checkpoint knows, from 0, once they were created: what the command line calls it (NULL: there are no
 * more) and its descriptor, or -1 where it was not asked for; and how long it is, which says whether a header is due.
 */
const char *outputs_option(const struct outputs *outputs, size_t number, int *fd);
void outputs_begin_at(struct outputs *outputs, size_t number, uint64_t length);

/* Fixes how results look by the layout of the stream. Once: when the layout is known, or at the end. After outputs_start(). */
void outputs_settle(struct outputs *outputs, const struct wm_reader *reader);

/* The layout of one of the streams is known: writes the headers of its rows in side files. After outputs_settle(), and after outputs_reopen(). */
void outputs_begin_side(struct outputs *outputs, size_t stream, const struct wm_reader *reader);

/* Names of the columns of results, borrowed; before outputs_start(). Without it outputs_begin_rows() names them later. */
void outputs_set_columns(struct outputs *outputs, const struct wm_span *names, size_t count);

/* The format of results, after outputs_settle(); WM_FORMAT_AUTO: nothing told it. A table counts as CSV. */
enum wm_format outputs_format(const struct outputs *outputs);

/* How rows of results look, after outputs_settle(). */
struct wm_row_format outputs_row_format(const struct outputs *outputs);

/* Names the columns of results, borrowed, and begins them; once, after outputs_settle(). */
void outputs_begin_rows(struct outputs *outputs, const struct wm_span *names, size_t count);

/* A header line as it is, where one is due. */
void outputs_put_header(struct outputs *outputs, struct wm_span line);

/*
 * Writes one row of results: a value for each column. The header goes before the first, and alone where there is none (but not where
 * nothing told the format: an input without a byte). Fields that come from CSV are texts, and become numbers in NDJSON where they are.
 */
void outputs_put_row(struct outputs *outputs, const struct wm_value *values);

/* A row with a value in one column alone; of NDJSON it has no other member. There is none in a table, which is for eyes. */
void outputs_put_lone(struct outputs *outputs, size_t column, const struct wm_value *value);

/* Results that are no rows, as they are; without columns there is no header. */
void outputs_put_text(struct outputs *outputs, struct wm_span text);

/* The same for a text that is put together where it goes out: see wm_writer_room(). */
char *outputs_room(struct outputs *outputs, size_t len);
void outputs_take(struct outputs *outputs, size_t len);

/*
 * A late row of a stream of the run (0; of a join 0 and 1), in its layout, which is known to outputs_begin_side(); late_by_us and watermark_us for --late-info. Does nothing without
 * --late.
 */
void outputs_put_late(
	struct outputs *outputs, size_t stream, struct wm_span row, int64_t late_by_us, int64_t watermark_us);

/* A row that was left out as a duplicate, in the layout of the stream. Only with --duplicates. */
void outputs_put_duplicate(struct outputs *outputs, struct wm_span row);
bool outputs_has_late(const struct outputs *outputs);

/* A rejected record. time_us is NULL if it has none. Does nothing without --rejects. */
void outputs_put_reject(
	struct outputs *outputs, const char *input, const struct wm_reject *reject, const int64_t *time_us);
bool outputs_has_rejects(const struct outputs *outputs);

/* A line of the report, with its line end. Does nothing without --report. */
void outputs_put_report(struct outputs *outputs, struct wm_span line);
bool outputs_has_report(const struct outputs *outputs);

/* Whether this run has written anything, headers included. */
bool outputs_have_written(const struct outputs *outputs);

/* Writes what is buffered; before a read that would wait. */
void outputs_flush(struct outputs *outputs);

/*
 * After SIGHUP: closes --out, where it is a regular file, and the side files, and opens them by their names again, which may be new files now. Then the headers, once
 * they may be written: outputs_begin_again() for results, outputs_begin_side() for the others.
 */
void outputs_reopen(struct outputs *outputs);
void outputs_begin_again(struct outputs *outputs);

/* All results have come: writes what is left, the end of a table too, so that messages about them stand behind them. */
void outputs_end(struct outputs *outputs);

/* The same, then closes and checks all; frees. */
void outputs_close(struct outputs *outputs);

#endif
