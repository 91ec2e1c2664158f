/*
 * outputs - standard output and the side files of a streaming tool.
 *
 * Side files (--late, --rejects, --report) are refused or accepted before
 * anything is read, and created when the stream begins. Every write is checked;
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

/* Checks the names of the side files; exits 2 for one that is in the way. */
struct outputs *outputs_open(const struct cli_common *common);

/* Creates the side files. Once, when nothing stands against the run any more. */
void outputs_start(struct outputs *outputs);

/* Fixes how results look by the layout of the stream, and writes the header of late rows. Once: when the layout is known, or at
   the end. After outputs_start(). */
void outputs_settle(struct outputs *outputs, const struct wm_reader *reader);

/* Whether results have a form at all: not where nothing told it (an input without a byte). */
bool outputs_has_format(const struct outputs *outputs);
const struct wm_row_format *outputs_row_format(const struct outputs *outputs);

void outputs_put_result(struct outputs *outputs, struct wm_span row);

/* A late row as it came; late_by_us and watermark_us for --late-info. Does nothing without --late. */
void outputs_put_late(struct outputs *outputs, struct wm_reader *reader, const struct wm_record *rec,
	int64_t late_by_us, int64_t watermark_us);
bool outputs_has_late(const struct outputs *outputs);

/* A rejected record. time_us is NULL if it has none. Does nothing without --rejects. */
void outputs_put_reject(
	struct outputs *outputs, const char *input, const struct wm_reject *reject, const int64_t *time_us);
bool outputs_has_rejects(const struct outputs *outputs);

/* A line of the report, with its line end. Does nothing without --report. */
void outputs_put_report(struct outputs *outputs, struct wm_span line);
bool outputs_has_report(const struct outputs *outputs);

/* Writes what is buffered; before a read that would wait. */
void outputs_flush(struct outputs *outputs);

/* Flushes, closes and checks all; frees. */
void outputs_close(struct outputs *outputs);

#endif
