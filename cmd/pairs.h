/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs - rows of two sides as one: what wm-join writes.
 *
 * The columns are the left's, then the right's without the keys of the same
 * name, which are shown once, from the side that exists. Of a stamped input the
 * watermark is left out, as it speaks of that side alone.
 *
 * A row of one side is kept as the text that it adds to rows of the result, so
 * that a row with many matches is taken apart once.
 */
#ifndef WM_CMD_PAIRS_H
#define WM_CMD_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/cli.h"
#include "cmd/stream.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"
#include "lib/op/join.h"

struct pairs;

struct pairs_options {
	const struct cli_common *common;
	struct stream *streams[WM_JOIN_SIDES];
	const char *keys[WM_JOIN_SIDES];     /* as typed, as many on both sides */
	const char *prefixes[WM_JOIN_SIDES]; /* of columns that both sides have */
	bool is_left_alone;                  /* semi and anti */
	bool is_left_optional;               /* a row may have no left */
	bool is_stamped;                     /* _time and _watermark at the end; the sides' own are left out */
};

/* The options are copied, texts borrowed. Before the streams are begun. */
struct pairs *pairs_open(const struct pairs_options *options);
void pairs_close(struct pairs *pairs);

/* The current record of a side as it is kept: borrowed until the next call. keys: its values. */
struct wm_span pairs_keep(struct pairs *pairs, enum wm_join_side side, const struct wm_value *keys);

/* Whether the columns of the left are not known yet, which those of the right are to be told apart from: it is to be read first. */
bool pairs_needs_left(const struct pairs *pairs);

/* Writes a row; stamps: two values, where is_stamped. */
void pairs_put(struct pairs *pairs, const struct wm_join_row *row, const struct wm_value *stamps);

/*
 * A row of a side as it is kept: its text is what it adds to rows of the result, or, where is_whole, the line as it came. rest: what else
 * stands there. Where it failed, the bytes are no such row, and the texts are empty.
 */
struct pairs_kept {
	bool failed;
	bool is_whole;
	bool has_more; /* members that the first record of the side did not have */
	struct wm_span text;
	struct wm_span rest;
};
struct pairs_kept pairs_kept(struct wm_span bytes);

/* Punctuation, where is_stamped. */
void pairs_put_punctuation(struct pairs *pairs, const struct wm_value *watermark);

/* Rows that were put and wait for the columns of a side: what is kept of them, at the end, for the same sides and options. */
/* Whether rows wait for the columns of both sides to be known. */
bool pairs_has_waiting(const struct pairs *pairs);

void pairs_encode(const struct pairs *pairs, struct wm_buf *out);
WM_MUST_CHECK bool pairs_decode(struct pairs *pairs, struct wm_get *in);

/* What was encoded, without the pairs: the rows, borrowed from *in. Then one after the other; false if there is none, or what is left is none. */
struct wm_span pairs_get_waiting(struct wm_get *in);
WM_MUST_CHECK bool pairs_next_waiting(struct wm_get *rows, struct wm_join_row *row, struct wm_value stamps[2]);

/* Both streams have ended: a result without rows has its header all the same. */
void pairs_end(struct pairs *pairs);

#endif
