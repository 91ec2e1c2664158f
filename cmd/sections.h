/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections - what a checkpoint's sections OPTS, INPT and OUTP consist of, item by item, as bytes and back.
 *
 * The bytes are those of wm-checkpoint(5). cmd/resume goes on from them, cmd/contents shows them. Texts that were got
 * are borrowed from the section. A section is opened, read, and closed, which finds damage that its items did not.
 */
#ifndef WM_CMD_SECTIONS_H
#define WM_CMD_SECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/codec.h"
#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/state/checkpoint.h"

/* Inputs are known by so many bytes at their beginning and before their position: more than any header, and one read. */
#define SECTIONS_KNOWN_BYTES 4096

/* The version in which OPTS, INPT or OUTP is written here, the latest that is read: 2 of INPT, 1 of the others. */
uint32_t sections_version(enum wm_checkpoint_part part);

/*
 * False with WM_ERR_IO if the section is of a later version than version_max: then there is nothing to close. path: of the
 * checkpoint, for messages.
 */
WM_MUST_CHECK bool sections_open(struct wm_checkpoint *checkpoint, enum wm_checkpoint_part part, uint32_t version_max,
	const char *path, struct wm_get *in, struct wm_err *err);

/* False with WM_ERR_IO unless it was decoded, all of it was read, and nothing failed. */
WM_MUST_CHECK bool sections_close(struct wm_checkpoint *checkpoint, enum wm_checkpoint_part part, const char *path,
	bool is_decoded, struct wm_get *in, struct wm_err *err);

/* "FILE: damaged: section OPTS does not hold what belongs in it"; false. */
bool sections_damaged(enum wm_checkpoint_part part, const char *path, struct wm_err *err);

struct sections_option {
	bool may_rise;
	struct wm_span name;
	struct wm_span value;
	int64_t amount; /* 0 unless it may rise */
};

/* OPTS: how many, a varint, and of each: */
void sections_put_option(const struct sections_option *option, struct wm_buf *out);
void sections_get_option(struct wm_get *in, struct sections_option *option);

struct sections_input {
	bool is_pipe;
	bool is_at_end;
	bool is_operand;
	bool has_no_rows;
	struct wm_span path; /* without NUL */
	uint64_t device;
	uint64_t inode;
	int64_t modified_us;
	uint64_t place;
	uint64_t offset; /* of a file */
	uint64_t lines;
	uint64_t head_hash;
	uint64_t last_hash;  /* of a file; of a pipe 0 */
	uint64_t read_bytes; /* of a pipe; of a file 0 */
	struct wm_span head; /* of a pipe */
	struct wm_span tail;
	struct wm_span position;
	struct wm_span positions; /* since version 2, with --source: see positions_next() */
	struct wm_span layout;
};

/* INPT: the floor, how many inputs, and of each: */
void sections_put_input(const struct sections_input *input, struct wm_buf *out);
void sections_get_input(struct wm_get *in, uint32_t version, struct sections_input *input);
uint64_t sections_get_inputs_count(struct wm_get *in); /* no more than there can be in the bytes left */

struct sections_output {
	struct wm_span path;   /* without NUL */
	struct wm_span option; /* so too */
	uint64_t device;
	uint64_t inode;
	uint64_t length;
	uint64_t hash; /* of the last known bytes before length */
	bool is_finished;
};

/* OUTP: closed or not, how many outputs, and of each: */
void sections_put_output(const struct sections_output *output, struct wm_buf *out);
void sections_get_output(struct wm_get *in, struct sections_output *output);
uint64_t sections_get_outputs_count(struct wm_get *in);

#endif
