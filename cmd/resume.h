/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume - how a run goes on where the one before it stopped: the checkpoint's
 * lock, input and output positions, what is cut back, and when it is committed.
 *
 *     r = resume_open(&setup, &err);           the lock; loads FILE, compares the options
 *     resume_add_input(r, name, fd);           each operand, in order
 *     resume_add_output(r, "--late", fd);      each output that is open
 *     resume_decide(r, &err);                  what to do with each; nothing is touched yet
 *     resume_loaded(r)                        the tool and the stream decode their sections
 *     resume_commit_...                        the first commit, which also cuts outputs back
 *     resume_start(r, i), resume_output_length(r, i)
 *     ...                                      read, write; commit now and then
 *     resume_commit_...                        with is_last; nothing but the close comes after it
 *     resume_close(r);
 *
 * A commit is resume_commit_begin(), the state in any number of
 * resume_commit_put(), resume_commit_end(). Before it the caller writes out what is
 * buffered for the outputs, and says with resume_set_input() how far each input was processed.
 * Before the first commit has returned, no byte may be written to an output.
 *
 * What holds then: wherever a run is stopped, by a signal, a failure or the
 * loss of power, FILE says up to which byte inputs were processed and outputs are good,
 * and the two belong together.
 *
 * Everything is asked of the system through struct wm_checkpoint_calls. Failures
 * fill a struct wm_err; after one there is nothing left to call but resume_close().
 */
#ifndef WM_CMD_RESUME_H
#define WM_CMD_RESUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/sections.h"
#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/state/checkpoint.h"

#define RESUME_KNOWN_BYTES SECTIONS_KNOWN_BYTES

/* Input files that are remembered: years of a file each hour, and a checkpoint that is still written in a moment. */
#define RESUME_FILES_MAX 100000

enum resume_mode {
	RESUME_AUTO = 0, /* files are sought, pipes go on */
	RESUME_REPLAY,   /* files are sought, pipes begin again */
	RESUME_PREV      /* from FILE.prev */
};

/* An option that gives the state its meaning, in the order in which they are to stand in the file. */
struct resume_option {
	const char *name;  /* "--tumbling" */
	const char *value; /* canonical, so that equal meanings are equal texts */
	bool may_rise;     /* amount may be greater than it was (a longer delay); the text does not count */
	int64_t amount;    /* with may_rise */
};

/* Texts are borrowed until resume_close(). */
struct resume_setup {
	const struct wm_checkpoint_calls *calls;
	const char *tool;
	const char *path; /* --checkpoint */
	enum resume_mode mode;
	bool new_output;                     /* --new-output */
	bool writes_anew;                    /* each run writes all of its results: outputs may well be emptied */
	int64_t file_age_max_us;             /* --max-file-age; 0: none */
	uint64_t state_bytes_max;            /* --state-limit; UINT64_MAX: none */
	size_t files_max;                    /* 0: RESUME_FILES_MAX */
	const struct resume_option *options; /* those given or with a default that matters; no name twice */
	size_t options_count;
};

struct resume;

/*
 * Takes the lock, loads FILE (or FILE.prev) if there is one and compares its tool and options. NULL on failure; nothing but
 * FILE.lock was touched then.
 */
WM_MUST_CHECK struct resume *resume_open(const struct resume_setup *setup, struct wm_err *err);

/* Gives the lock back; frees. A checkpoint that is not committed is dropped. NULL is none. */
void resume_close(struct resume *r);

/* No checkpoint was there: nothing to decode. */
bool resume_is_fresh(const struct resume *r);

/* The run before flushed all state at its end: there is nothing that new input could be added to. */
bool resume_is_closed(const struct resume *r);

/* The run is refused behind its first commit: a checkpoint that it made, and that says no more than that nothing was done, is removed. */
void resume_withdraw(struct resume *r);

/* A section as loaded: WMRK, CNTR and STAT are the caller's. Until the first commit. Not when fresh. */
struct wm_checkpoint *resume_loaded(struct resume *r);

/* Adds to the message of a damage how to go back to the checkpoint before, where there is one. */
void resume_name_way_back(const struct resume *r, struct wm_err *err);

/* What the run before found out about the input and kept in OPTS (the time family). Until resume_close(). */
struct wm_span resume_found(const struct resume *r);

/*
 * An operand; returns its number, from 0. fd: of standard input, -1: named. Looked at in resume_decide(), where what is no
 * regular file is a pipe.
 */
size_t resume_add_input(struct resume *r, const char *name, int fd);

/*
 * An open output; returns its number, from 0. option: how the command line names it, for messages ("--out", "standard
 * output"). What is no regular file has no position and is not kept.
 */
size_t resume_add_output(struct resume *r, const char *option, int fd);

/*
 * Finds out for each input where to go on and for each output what of it is good. Fails (WM_ERR_IO), with nothing touched,
 * if the outputs are not as the checkpoint says or inputs that are needed are not there.
 */
WM_MUST_CHECK bool resume_decide(struct resume *r, struct wm_err *err);

/* What a person should be told about it, one line each; NULL behind the last. Until resume_close(). */
const char *resume_note(const struct resume *r, size_t number);

enum resume_action {
	RESUME_BEGIN,    /* from the first byte */
	RESUME_SEEK,     /* a file: at offset */
	RESUME_DONE,     /* a file: all of it was processed, and nothing was added */
	RESUME_TOO_OLD,  /* a file older than what is remembered: not to be read; there is a note */
	RESUME_CONTINUE, /* a pipe: its next bytes follow the tail */
	RESUME_SKIP      /* a pipe: its first offset bytes were processed; see resume_check_head() */
};

/* Where an input stood; also what it is told with resume_set_input(). A span of resume_start() is borrowed until another text is set for it. */
struct resume_position {
	uint64_t offset;     /* bytes processed: whole records, the tail not counted */
	uint64_t lines;      /* and lines */
	bool is_at_end;      /* the end was met */
	bool has_no_rows;    /* all that was processed is a header, or blank: another file may begin with the same */
	struct wm_span tail; /* of a pipe: bytes behind offset that are no whole record yet */
	struct wm_span position;  /* --position: the last value of its column */
	struct wm_span positions; /* with --source those of each source, encoded; see positions.h */
	struct wm_span layout;    /* what the reader knows of it: format, delimiter, header */
	uint64_t read_bytes;      /* of a pipe that was read from its first byte: all that was; 0: not known */
	uint64_t read_hash;       /* and wm_hash_stable() of that */
};

struct resume_start {
	enum resume_action action;
	struct resume_position position; /* all zero with RESUME_BEGIN and RESUME_TOO_OLD */
};

/* After resume_decide(). */
struct resume_start resume_start(const struct resume *r, size_t input);

/* Whether it was found to be no regular file. After resume_decide(). */
bool resume_is_pipe(const struct resume *r, size_t input);

/* Whether any input may hold something that was not processed; a pipe may. */
bool resume_has_new_input(const struct resume *r);

/*
 * RESUME_SKIP: the first bytes of the pipe, RESUME_KNOWN_BYTES or offset of them, whichever is less; false if they are not those
 * of the run before.
 */
WM_MUST_CHECK bool resume_check_head(const struct resume *r, size_t input, struct wm_span head, struct wm_err *err);

/* The bytes of a pipe from its position on (of what goes on: the tail first), as they are read; false when no more are needed. */
bool resume_feed(struct resume *r, size_t input, struct wm_span bytes);

/* How far an input was processed, for the commits from now on. fd: where it is open, for files. */
WM_MUST_CHECK bool resume_set_input(
	struct resume *r, size_t input, int fd, const struct resume_position *position, struct wm_err *err);

/* Bytes in an output, once the first commit is made; 0: a header is due. 0 for what is no regular file. */
uint64_t resume_output_length(const struct resume *r, size_t output);

/* The output was opened anew by its name (SIGHUP); between two commits. */
WM_MUST_CHECK bool resume_replace_output(struct resume *r, size_t output, int fd, struct wm_err *err);

struct resume_commit {
	int64_t now_us;
	bool is_last;   /* the run ends well: outputs are finished */
	bool is_closed; /* with is_last: all state was flushed */
	bool is_reopening; /* nothing is written before the next commit: outputs may be other ones by then, and are as they are */
	struct wm_span found;
	struct wm_checkpoint_section watermarks;
	struct wm_checkpoint_section ledger;
	uint32_t state_version;
};

/* Syncs the outputs and begins the file; the state comes next. */
WM_MUST_CHECK bool resume_commit_begin(struct resume *r, const struct resume_commit *commit, struct wm_err *err);
WM_MUST_CHECK bool resume_commit_put(struct resume *r, struct wm_span bytes, struct wm_err *err);
WM_MUST_CHECK bool resume_commit_end(struct resume *r, struct wm_err *err);

#endif
