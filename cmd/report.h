/*
 * report - the ledger: every data row has exactly one class, and the classes add up to rows_in.
 *
 * Punctuation, rejected (by reason), late, duplicate, used. Beside them what
 * explains late rows: where in the stream they were, the row that moved the
 * watermark farthest, the greatest disorder. From this come the progress
 * objects (Spark's names), the final report and the summary on standard error.
 */
#ifndef WM_CMD_REPORT_H
#define WM_CMD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/decimal.h"

/* Reasons to reject a record; more than there are. */
#define REPORT_REASONS_MAX 16

/* Stretches of the stream in which late rows are counted apart, to see whether they grow in number. */
#define REPORT_STRETCHES 16

/* Event times of a run of rows, as Spark's progress has them. */
struct report_times {
	uint64_t count;
	int64_t min_us;
	int64_t max_us;
	wm_int128 sum_us;
};

struct report {
	const char *tool;
	const char *operator_name; /* in stateOperators; NULL: none */

	uint64_t rows_in;
	uint64_t rows_rejected;
	uint64_t rows_late;
	uint64_t rows_duplicate;
	uint64_t rows_used;
	uint64_t rows_partly_late;
	uint64_t windows_missed;        /* row x window, by late and partly late rows */
	uint64_t windows_missed_partly; /* by partly late rows alone */
	uint64_t rows_out;              /* results written */
	struct {
		const char *reason;
		uint64_t count;
	} reasons[REPORT_REASONS_MAX];
	uint64_t lines_blank;
	uint64_t headers_repeated;
	struct report_times times;

	/* Late rows by stretches of stretch_rows rows. */
	uint64_t stretch_rows;
	uint64_t stretch_late[REPORT_STRETCHES];

	int64_t disorder_max_us;      /* of all rows with a time: a delay that would have dropped none */
	int64_t disorder_used_max_us; /* of the used ones */

	/* The row that raised the highest event time by most, the first row aside. */
	int64_t jump_us;
	int64_t jump_time_us;
	uint64_t jump_line;
	const char *jump_input; /* borrowed; NULL: none */
	uint64_t jump_rows_before;
	uint64_t jump_late_before;

	/* The batch that is open, counted from 0. */
	uint64_t batch_id;
	uint64_t batch_rows_in_before;
	uint64_t batch_rows_out_before;
	uint64_t batch_windows_missed_before;
	int64_t batch_watermark_us; /* in force in it */
	struct report_times batch_times;
};

void report_init(struct report *report, const char *tool, const char *operator_name);

/* Counts a rejected row; true if it is the first of its reason (a static text). */
bool report_reject(struct report *report, const char *reason);

/* Counts a late row; it is in rows_in already. */
void report_late(struct report *report);

static inline void
report_times_add(struct report_times *times, int64_t time_us)
{
	if (times->count++ == 0)
		times->min_us = times->max_us = time_us;
	if (time_us < times->min_us)
		times->min_us = time_us;
	if (time_us > times->max_us)
		times->max_us = time_us;
	times->sum_us += time_us;
}

/* What the operator holds, for stateOperators. */
struct report_state {
	uint64_t groups;
	uint64_t bytes;
};

/* Appends the progress object of the open batch as a line. now_us: the wall clock. */
void report_progress(const struct report *report, const struct report_state *state, int64_t now_us, struct wm_buf *out);

/* The open batch has ended (or the run, before report_final()); watermark_us is in force in the next. */
void report_next_batch(struct report *report, int64_t watermark_us);

/* Appends the final object as a line. watermark_us: WM_TIME_NONE for none; open_count: windows that were not written. */
void report_final(const struct report *report, const struct report_state *state, int64_t watermark_us,
	uint64_t open_count, int status, struct wm_buf *out);

/* What the summary needs to know of the options. */
struct report_context {
	const char *delay_text; /* as given; NULL: no watermark */
	int64_t delay_us;
	const char *late_path;    /* NULL: late rows are only counted */
	const char *rejects_path; /* NULL: rejected rows are only counted */
	bool is_verbose;
};

/* Appends none to three lines in plain words, each without the tool's name; separated by '\n'. */
void report_summary(const struct report *report, const struct report_context *context, struct wm_buf *out);

#endif
