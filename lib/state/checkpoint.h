/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint - the file that a run goes on from: header, sections, hashes, replacement in one step.
 *
 * The bytes are those of wm-checkpoint(5). The module knows which sections
 * there are, how long they are and whether they are whole; what they hold is
 * up to who encodes them.
 *
 * A file is the old one or the new one, never half: it is written beside
 * (FILE.tmp), synced, and renamed over FILE, which stays as FILE.prev. All of it
 * goes through a table of system calls, so that a test can put a disk of its own under it.
 *
 * The state may be large: its section is written and read piece by piece, so
 * that there is no second copy of it in memory. It is not mapped instead: a disk
 * that fails, or a file that is cut, would kill the program there, where a read
 * says what is wrong.
 *
 * A file is taken as hostile: it is verified as a whole before any section is
 * handed out, and every length is compared with the bytes left. What is read
 * afterwards is hashed once more, and has to be what was verified.
 */
#ifndef WM_STATE_CHECKPOINT_H
#define WM_STATE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/base/codec.h"
#include "lib/base/err.h"
#include "lib/base/span.h"

/*
 * What is asked of the system. self goes to each call; they behave and fail
 * (-1 or NULL, and errno) as their namesakes do.
 */
struct wm_checkpoint_calls {
	void *self;
	int (*open)(void *self, const char *path, int flags, mode_t mode);
	int (*close)(void *self, int fd);
	ssize_t (*pread)(void *self, int fd, void *data, size_t len, off_t offset);
	ssize_t (*write)(void *self, int fd, const void *data, size_t len);
	ssize_t (*pwrite)(void *self, int fd, const void *data, size_t len, off_t offset);
	off_t (*seek)(void *self, int fd, off_t offset); /* from the beginning */
	int (*fsync)(void *self, int fd);
	int (*ftruncate)(void *self, int fd, off_t len);
	int (*stat)(void *self, const char *path, struct stat *found);
	int (*fstat)(void *self, int fd, struct stat *found);
	int (*link)(void *self, const char *from, const char *to);
	int (*rename)(void *self, const char *from, const char *to);
	int (*unlink)(void *self, const char *path);
	int (*lock)(void *self, int fd);                /* an OFD write lock on the whole file, without waiting */
	char *(*resolve)(void *self, const char *path); /* realpath(); freed by the caller */
	char *(*path_of)(void *self, int fd);           /* what an open file is called; NULL: not known */
	int (*reopen)(void *self, int fd);              /* a second descriptor of an open file, for reading */
};

/* Those of the system. */
extern const struct wm_checkpoint_calls wm_checkpoint_system;

/* Writes all of it. */
WM_MUST_CHECK bool wm_checkpoint_write(
	const struct wm_checkpoint_calls *calls, int fd, struct wm_span bytes, const char *path, struct wm_err *err);

/* Reads len bytes, or as many as there are before the end; *got says how many. */
WM_MUST_CHECK bool wm_checkpoint_read(const struct wm_checkpoint_calls *calls, int fd, void *data, size_t len,
	uint64_t offset, size_t *got, const char *path, struct wm_err *err);

/* Syncs the folder that a file stands in, so that its name is there after a crash. */
WM_MUST_CHECK bool wm_checkpoint_sync_folder(
	const struct wm_checkpoint_calls *calls, const char *path, struct wm_err *err);

/* The name of a file beside another: "st" and ".prev". Freed by the caller. */
char *wm_checkpoint_beside(const char *path, const char *suffix);

#define WM_CHECKPOINT_VERSION 1
#define WM_CHECKPOINT_TOOL_BYTES 16

/* The sections of version 1, in the order of the file; END. follows them. */
enum wm_checkpoint_part {
	WM_CHECKPOINT_OPTS, /* options that give the state its meaning */
	WM_CHECKPOINT_WMRK, /* watermarks */
	WM_CHECKPOINT_INPT, /* input positions */
	WM_CHECKPOINT_OUTP, /* output positions */
	WM_CHECKPOINT_CNTR, /* the ledger */
	WM_CHECKPOINT_STAT, /* the tool's own state */
	WM_CHECKPOINT_PARTS
};

/* "OPTS". */
const char *wm_checkpoint_part_name(enum wm_checkpoint_part part);

/* A section as its module encodes it. */
struct wm_checkpoint_section {
	uint32_t version;
	struct wm_span payload;
};

/* The state of a loaded file while it is read. */
struct wm_checkpoint_state;

/* Fields are for reading. Payloads point into the bytes that were parsed, or are held; that of the state of a loaded file has a length alone. */
struct wm_checkpoint {
	uint32_t format_version;
	char tool[WM_CHECKPOINT_TOOL_BYTES + 1];
	int64_t written_at_us; /* wall clock */
	uint64_t generation;   /* counts the commits */
	struct wm_checkpoint_section sections[WM_CHECKPOINT_PARTS];
	struct {
		uint64_t at; /* where the section begins */
		uint64_t hash;
	} places[WM_CHECKPOINT_PARTS];
	/* of a loaded file */
	const struct wm_checkpoint_calls *calls; /* NULL: bytes were parsed */
	char *path;
	int fd;
	char *held; /* all sections but the state's */
	struct wm_checkpoint_state *state;
};

/* Whether a file that begins with these bytes is a checkpoint, whole or not: written in part it may hold less than its first ones. */
bool wm_checkpoint_begins(struct wm_span bytes);

/*
 * Verifies the bytes of a checkpoint, called path in messages, and finds its sections. Sections above section_bytes_max
 * are WM_ERR_LIMIT; all else that is wrong is WM_ERR_IO, and the message says what and where.
 */
WM_MUST_CHECK bool wm_checkpoint_parse(struct wm_checkpoint *checkpoint, struct wm_span bytes, const char *path,
	uint64_t section_bytes_max, struct wm_err *err);

enum wm_checkpoint_found { WM_CHECKPOINT_LOADED, WM_CHECKPOINT_ABSENT, WM_CHECKPOINT_FAILED };

/* The same for a file, which stays open until the release. Only WM_CHECKPOINT_FAILED sets *err. */
WM_MUST_CHECK enum wm_checkpoint_found wm_checkpoint_load(struct wm_checkpoint *checkpoint,
	const struct wm_checkpoint_calls *calls, const char *path, uint64_t section_bytes_max, struct wm_err *err);
void wm_checkpoint_release(struct wm_checkpoint *checkpoint);

/* Begins to read the state, from its beginning; the other sections are read by wm_get_init(). One reader at a time. */
void wm_checkpoint_open_state(struct wm_checkpoint *checkpoint, struct wm_get *in);

/*
 * Closes *in, whatever was read of it. False with WM_ERR_IO if the file could not be read, or holds something else now than
 * when it was loaded; what the state holds is for its decoder to judge.
 */
WM_MUST_CHECK bool wm_checkpoint_close_state(struct wm_checkpoint *checkpoint, struct wm_get *in, struct wm_err *err);

/*
 * A checkpoint in the making. All parts are put, in their order. After a failure only
 * wm_checkpoint_abandon() is left.
 */
struct wm_checkpoint_writer;

/* Creates FILE.tmp, in place of what a killed run may have left. tool: at most WM_CHECKPOINT_TOOL_BYTES of [a-z0-9-]. */
WM_MUST_CHECK struct wm_checkpoint_writer *wm_checkpoint_create(const struct wm_checkpoint_calls *calls,
	const char *path, const char *tool, int64_t now_us, uint64_t generation, struct wm_err *err);

WM_MUST_CHECK bool wm_checkpoint_put_section(struct wm_checkpoint_writer *writer, enum wm_checkpoint_part part,
	struct wm_checkpoint_section section, struct wm_err *err);

/* The same piece by piece: begin, any number of pieces, end. */
void wm_checkpoint_begin_section(struct wm_checkpoint_writer *writer, enum wm_checkpoint_part part, uint32_t version);
WM_MUST_CHECK bool wm_checkpoint_put(struct wm_checkpoint_writer *writer, struct wm_span bytes, struct wm_err *err);
WM_MUST_CHECK bool wm_checkpoint_end_section(struct wm_checkpoint_writer *writer, struct wm_err *err);

/*
 * Makes it the checkpoint; what was there becomes FILE.prev, or, without keeps_old, is dropped and FILE.prev stays (for an old
 * one that is damaged). After a failure the old one is there or the new one. Frees the writer in any case.
 */
WM_MUST_CHECK bool wm_checkpoint_commit(struct wm_checkpoint_writer *writer, bool keeps_old, struct wm_err *err);

/* Drops it and frees the writer; NULL is none. */
void wm_checkpoint_abandon(struct wm_checkpoint_writer *writer);

#endif
