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

/* Punctuation, where is_stamped. */
void pairs_put_punctuation(struct pairs *pairs, const struct wm_value *watermark);

/* Rows that were put and wait for the columns of a side: what is kept of them, at the end, for the same sides and options. */
void pairs_encode(const struct pairs *pairs, struct wm_buf *out);
WM_MUST_CHECK bool pairs_decode(struct pairs *pairs, struct wm_get *in);

/* Both streams have ended: a result without rows has its header all the same. */
void pairs_end(struct pairs *pairs);

#endif
