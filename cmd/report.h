/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - the ledger: every data row has exactly one class, and the classes add up to rows_in.
 *
 * Punctuation, rejected (by reason), late, duplicate, used. Beside them what
 * explains late rows: where in the stream they were, the row that moved the
 * watermark farthest, the greatest disorder. From this come the progress
 * objects (Spark's names), the final report, the summary on standard error
 * and, in metrics.h, the metrics. docs/REPORTS.md has every member.
 *
 * Fields without a function of their own are set by the caller; all counts are
 * of the whole run and only rise. The module reads no clock.
 */
#ifndef WM_CMD_REPORT_H
#define WM_CMD_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
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

/* A row that a message can point at. */
struct report_place {
	const char *input; /* borrowed; NULL: there is no such row */
	uint64_t line;
	int64_t time_us; /* its event time */
};

/* What the operator holds and did, for stateOperators. updated and removed count from the start of the run. */
struct report_state {
	uint64_t groups;  /* held now */
	uint64_t updated; /* groups that got a row, each once a batch */
	uint64_t removed; /* groups that the watermark let go */
	uint64_t bytes;
};

struct report {
	const char *tool;
	const char *operator_name; /* in stateOperators; NULL: none */

	uint64_t rows_in;
	uint64_t rows_punctuation;
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
	} reasons[REPORT_REASONS_MAX + 1]; /* the one behind the last is NULL */
	uint64_t rows_unconfirmed;         /* by --max-jump, on arrival */
	uint64_t rows_unconfirmed_later;   /* of these, once a time was confirmed: before, all rows are */
	uint64_t rows_repeated_hour;       /* of local times that a clock change repeats */
	uint64_t lines_blank;
	uint64_t headers_repeated;
	uint64_t lines_unmatched;
	uint64_t lines_rejected; /* of rejected records; more than these where some took several */
	struct report_times times;
	struct report_place unconfirmed_first; /* of rows_unconfirmed_later */

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

	const struct report *run; /* of totals over several runs: the counts of this one; NULL: it is the only one */
	int64_t ended_us;         /* wall clock at the end of the run; WM_TIME_NONE: not told */

	/* By report_clock(). */
	bool has_clock;
	int64_t started_steady_us;
	int64_t steady_us;
	int64_t waited_us;

	/* The batch that is open, counted from 0; what had been counted when it began. */
	uint64_t batch_id;
	uint64_t batch_rows_in_before;
	uint64_t batch_rows_late_before;
	uint64_t batch_rows_out_before;
	uint64_t batch_windows_missed_before;
	int64_t batch_steady_before_us;
	int64_t batch_waited_before_us;
	struct report_state batch_state_before;
	struct report_state state_told; /* the last one that was */
	int64_t batch_watermark_us;     /* in force in it */
	struct report_times batch_times;
};

void report_init(struct report *report, const char *tool, const char *operator_name);

/* Counts a rejected row; true if it is the first of its reason (a static text). */
bool report_reject(struct report *report, const char *reason);

/* Counts a late row; it is in rows_in already. */
void report_late(struct report *report);

/* Counts a row that --max-jump did not let move the watermark. has_confirmed: some time had been confirmed before it. */
void report_unconfirmed(struct report *report, bool has_confirmed, const struct report_place *place);

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

void report_times_merge(struct report_times *all, const struct report_times *more);

/* The classes of the ledger, in the order in which they are tested. */
#define REPORT_CLASSES 5
struct report_class {
	const char *name;
	size_t offset; /* of its count in struct report */
};
extern const struct report_class report_classes[REPORT_CLASSES];

static inline uint64_t
report_class_count(const struct report *report, size_t class_index)
{
	return *(const uint64_t *)(const void *)((const char *)report + report_classes[class_index].offset);
}

/* Whether the classes add up to rows_in. */
bool report_is_closed(const struct report *report);

/*
 * What a clock that never jumps says, and how much of its time so far was spent waiting for input. The first call begins the
 * run. Told at the end of each batch and before an object is written; without it the members about time are null.
 */
void report_clock(struct report *report, int64_t steady_us, int64_t waited_us);

/* Appends the progress object of the open batch as a line. now_us: the wall clock. May come more than once a batch. */
void report_progress(struct report *report, const struct report_state *state, int64_t now_us, struct wm_buf *out);

/* The open batch has ended (or the run, before report_final()); watermark_us is in force in the next. */
void report_next_batch(struct report *report, int64_t watermark_us);

/* Appends the final object as a line. watermark_us: WM_TIME_NONE for none; open_count: windows that were not written. */
void report_final(const struct report *report, const struct report_state *state, int64_t watermark_us,
	uint64_t open_count, int status, struct wm_buf *out);

/* Appends the ledger and the counts beside it as members to an object that is begun. */
void report_put_ledger(const struct report *report, struct wm_buf *out);

/* Whether more than part of whole rows (--fail-late 1/1000) were late, wholly or partly. whole > 0; exact. */
bool report_late_share_exceeds(const struct report *report, uint64_t part, uint64_t whole);

/* The counts, for a checkpoint. Decode into a report that was initialised. */
void report_encode(const struct report *report, struct wm_buf *out);
WM_MUST_CHECK bool report_decode(struct report *report, struct wm_get *in);

/* The counts of a run, added to those of the runs before it; the rest of *report is the run's. */
void report_add_before(struct report *report, const struct report *before);

/* What the summary needs to know of the options. */
struct report_context {
	const char *delay_text; /* as given; NULL: no watermark, or one in band */
	int64_t delay_us;
	bool is_in_band;                /* the watermark came with the rows */
	bool is_in_order;               /* inputs were taken to be in order: there is no delay to speak of */
	bool is_spark;                  /* a row at the watermark is late */
	const char *late_fate;          /* what became of late rows; NULL: they were dropped */
	const char *late_path;          /* NULL: late rows are only counted */
	bool has_sides;                 /* late_path is of the left side */
	const char *late_right_path;    /* and this of the right one; NULL: as above */
	const char *rejects_path;       /* NULL: rejected rows are only counted */
	const char *max_jump_text;      /* as given; NULL: no guard */
	bool has_confirmed;             /* with a guard: some event time was */
	const char *repeated_hour_text; /* "earlier" or "later"; NULL: earlier */
	const char *fail_late_text;     /* as given, where that share was passed; else NULL */
	bool is_verbose;
	bool is_quiet; /* only what the exit status says too */
};

/*
 * Appends none to three lines in plain words, each without the tool's name; separated by '\n'. There are none where nothing was
 * late, rejected or kept back by a guard, unless is_verbose. With is_quiet there are only those that say why the run did not end well: rows
 * that were rejected into no file, and a share of late rows that is too great. Blank lines, repeated headers and hours speak up only beside those.
 */
void report_summary(const struct report *report, const struct report_context *context, struct wm_buf *out);

#endif
