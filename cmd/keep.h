/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep - what a run keeps for the next one: the checkpoint of one or two streams.
 *
 *     k = keep_open(common, tool_options);   NULL without -C
 *     keep_add_stream(k, &kept);             each stream, before its first record
 *     keep_begin(k, ...);                    goes on from the checkpoint, and commits for the first time
 *     keep_commit(k, KEEP_ON, ...);          now and then, between two records
 *     keep_commit(k, KEEP_HELD, ...);        at the end, when all is written; nothing comes after it but
 *     keep_close(k);
 *
 * Sections WMRK and CNTR are made here, of what the streams lend; STAT is the
 * operator's. What resume.h promises holds if commits come between two records
 * alone, when all that the records before let go was written. Failures end the process.
 */
#ifndef WM_CMD_KEEP_H
#define WM_CMD_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/band.h"
#include "cmd/cli.h"
#include "cmd/inputs.h"
#include "cmd/outputs.h"
#include "cmd/passing.h"
#include "cmd/report.h"
#include "cmd/resume.h"
#include "cmd/sources.h"
#include "lib/base/codec.h"
#include "lib/event/trigger.h"
#include "lib/time/instant.h"

/* Version of WMRK and CNTR as they are written here. */
#define KEEP_SECTION_VERSION 1

/* STAT of this version holds nothing: the state begins anew. */
#define KEEP_STATE_ANEW 0

/* What a tool holds between two records. */
struct keep_state {
	void *self;
	uint32_t version; /* of what encode writes; at least 1 */
	void (*encode)(void *self, struct wm_buf *out);
	bool (*decode)(void *self, struct wm_get *in); /* into a new one of the same options */
	size_t (*bytes)(const void *self);             /* what it takes in memory, near enough; NULL: next to nothing */
	bool (*holds_texts)(const void *self);         /* whether it has keys, values or rows; NULL: it never has */
	bool is_bound_by_delay;                        /* what the watermark has passed is forgotten */
	const char *bound;     /* what else bounds it, for a message: "fewer keys (-g)"; NULL: nothing */
	bool writes_anew;      /* results of a run are those of all runs: they may take the place of what is there */
	bool is_gone_by_flush; /* what is written at the end of time is all of it */
};

/* Options that give a state its meaning, as texts that are equal where the meanings are. All zero bytes have none. */
struct keep_options {
	struct resume_option *options;
	size_t count;
};

/* Each is left out where its value is NULL or false. Values are copied. */
void keep_option(struct keep_options *options, const char *name, const char *value);
void keep_option_flag(struct keep_options *options, const char *name, bool is_given);
void keep_option_duration(struct keep_options *options, const char *name, const struct cli_duration *duration);
void keep_option_us(struct keep_options *options, const char *name, int64_t duration_us);
/* The same for a list of durations, such as "1h,5m"; calendar units stay as they are. */
void keep_option_durations(struct keep_options *options, const char *name, const char *list);
void keep_options_release(struct keep_options *options);

/* A stream lends what is kept of it. */
struct keep_stream {
	struct inputs *inputs;
	struct sources *sources;
	struct wm_trigger *trigger;
	struct band *band;
	struct passing *passing; /* NULL: no record passes */
	struct wm_instant_parser *time_parser;
	struct wm_instant_parser *ingest_parser; /* NULL: there is none */
	int64_t *highest_us;
	int64_t *watermark_us;
	bool *is_decided;
	bool *is_punctuated;
};

#define KEEP_STREAMS_MAX 2

struct keep;

/* own: those of the tool; the common ones are added. Both are borrowed. */
struct keep *keep_open(const struct cli_common *common, const struct keep_options *own);
void keep_add_stream(struct keep *keep, const struct keep_stream *stream);

/*
 * Goes on from the checkpoint, creates the outputs, and commits for the first time. state: NULL: there is none but the streams'. The counts
 * of earlier runs are added to *before. wall_us: the clock; steady_us: the one that does not jump. Does not return where there is nothing to do.
 */
void keep_begin(struct keep *keep, struct outputs *outputs, const struct report *report, struct report *before,
	const struct keep_state *state, int64_t wall_us, int64_t steady_us);

enum keep_end {
	KEEP_ON, /* the run goes on */
	KEEP_REOPEN, /* it goes on, and no byte is written before the outputs were opened anew and the next commit is made */
	KEEP_HELD,   /* it ends, and the next one goes on */
	KEEP_CLOSED, /* it ends, and all that came in was written: nothing can be added to it */
	KEEP_ANEW,   /* it ends, and the next one begins with an empty state */
};

/* Writes what is buffered for the outputs, and commits. */
void keep_commit(struct keep *keep, enum keep_end end, int64_t wall_us);

/* A commit (or the first one) took from began_us to now_us, on a clock that does not jump, after so many rows of this run. */
void keep_plan(struct keep *keep, uint64_t rows_in, int64_t began_us, int64_t now_us);

/* With which row, and when, the next one is due: not before both. A clock that never comes: INT64_MAX. */
uint64_t keep_due_row(const struct keep *keep);
int64_t keep_due_us(const struct keep *keep);

/* Between two commits: the side files were opened anew. */
void keep_reopened(struct keep *keep);

void keep_close(struct keep *keep);

#endif
