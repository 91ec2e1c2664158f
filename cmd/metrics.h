/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - the ledger as a file for the textfile collector of node_exporter (--metrics).
 *
 * Prometheus' text format: each family once, with HELP and TYPE before its
 * samples, and no times beside them (the collector refuses these). Counters
 * begin at 0 with each run that has no checkpoint, as Prometheus expects of a
 * process that was started again. The labels tool and name tell files of one folder apart; name is that
 * of the file without its folder and ".prom". docs/REPORTS.md has every family.
 *
 * A reader never sees a part of a file: it is written beside under another
 * name, which the collector passes over, and renamed. Readable by all, whatever
 * the umask: the collector is another user. The module reads no clock.
 */
#ifndef WM_CMD_METRICS_H
#define WM_CMD_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/report.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Fields are for reading. */
struct metrics {
	const char *path; /* borrowed; NULL: none is asked for */
	char *path_beside;
	int64_t due_us;
	struct wm_buf text;
};

/* Fails (WM_ERR_USAGE) where path is there and no regular file: renaming would put a file in its place. */
WM_MUST_CHECK bool metrics_init(struct metrics *metrics, const char *path, struct wm_err *err);
void metrics_release(struct metrics *metrics);

/* When it is to be written next, a second after it was; INT64_MAX: never. now_us of metrics_write() is the clock: any that never jumps. */
int64_t metrics_due_us(const struct metrics *metrics);

/*
 * Writes the file. watermark_us: WM_TIME_NONE for none. wall_us is told in the file, now_us counts for metrics_due_us().
 * On failure (WM_ERR_IO: "FILE: No space left on device") the file is as it was.
 */
WM_MUST_CHECK bool metrics_write(struct metrics *metrics, const struct report *report, const struct report_state *state,
	int64_t watermark_us, int64_t wall_us, int64_t now_us, struct wm_err *err);

/* What the file holds; name: the label. */
void metrics_print(const struct report *report, const struct report_state *state, struct wm_span name,
	int64_t watermark_us, int64_t wall_us, struct wm_buf *out);

/* Appends the value of a label as the text format has it: escaped, and valid UTF-8. */
void metrics_add_label_value(struct wm_span text, struct wm_buf *out);

#endif
