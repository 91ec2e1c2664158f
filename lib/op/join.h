/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join - rows of two sides that have a key in common and times that fit.
 *
 * Between: right time in [left time + low, left time + high]. Tumbling: both in
 * the same window. As-of: each left row with the last right row at or before it.
 *
 *     verdict = wm_join_add(join, side, &record);     or wm_join_advance(join, side, watermark_us)
 *     while (wm_join_next(join, &row)) ...            to its end, before anything else
 *
 * Each side has a watermark of its own, or WM_TIME_NONE for ever. A row is late
 * when behind that of its own side, which is judged before it can match; so
 * which rows come out does not depend on how the sides are interleaved. A row
 * stays until no row of the other side can match it any more:
 *
 *     left row at t     right watermark > t + high (strict: >=)      >= the end of its window
 *     right row at t    left watermark > t - low (strict: >=)        >= the end of its window
 *     as-of, left       right watermark > t: then it is written
 *     as-of, right      both watermarks have reached a later one of its key, or are further than the
 *                       tolerance past it; one of each time and key, the last to come, is kept
 *
 * and one for which that is so when it comes is not kept at all. The end of time
 * on a side lets all rows of the other side go. What comes out, in this order:
 *
 *     rows that leave      unmatched ones of the sides that are preserved (left of anti too), as-of's left
 *                          rows; by time, left before right, then as they came
 *     matches of the row   by the time of the other row, then as those came; semi and anti: see below
 *     the row itself       if it is preserved, has no match and can get none any more
 *
 * Semi: a left row is written at its first match, once, and leaves; the right
 * row is told beside it. Anti: a left row leaves silently at its first match,
 * and is written when none can come.
 * A null key (one null column) matches nothing; others are compared by their
 * bytes alone, column by column, so that 1 is "1".
 *
 * Rows stand by key and time: a row costs no more than finding its key, a binary
 * search, and its matches, whatever the stream. Records' memory is given back in
 * pieces of about a sixty-fourth of a row's stay (semi's and anti's left ones at
 * their match), that of a key with several rows about a stay after its last one.
 *
 * Spark: late is also what is at the watermark, with windows the row whose window is complete; rows
 * leave by the lower of both watermarks and not while there is only one, inclusive ends a millisecond
 * later, between 0 and 0 (which is its equality of times) when the watermark has reached them. The
 * caller gives both sides the one global watermark, and where nothing can leave the one of the batch before.
 *
 * The operator owns no files, clocks or options' texts; several can run at once.
 */
#ifndef WM_OP_JOIN_H
#define WM_OP_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"

enum wm_join_side { WM_JOIN_LEFT = 0, WM_JOIN_RIGHT };
#define WM_JOIN_SIDES 2

enum wm_join_type {
	WM_JOIN_INNER = 0,
	WM_JOIN_LEFT_OUTER,
	WM_JOIN_RIGHT_OUTER,
	WM_JOIN_FULL_OUTER,
	WM_JOIN_SEMI,
	WM_JOIN_ANTI
};

enum wm_join_condition { WM_JOIN_BETWEEN = 0, WM_JOIN_TUMBLING, WM_JOIN_AS_OF };

/* An end of a range: right time - left time. */
struct wm_join_end {
	int64_t us; /* of either sign, within WM_DURATION_US_MAX; without meaning where is_open */
	bool is_open;
	bool is_strict; /* the time at the end does not match */
};

struct wm_join_options {
	enum wm_join_type type; /* as-of: inner or left outer */
	enum wm_join_condition condition;
	struct wm_join_end low, high; /* between; a low above the high matches nothing */
	int64_t size_us;              /* tumbling: above 0; windows begin at the epoch */
	bool has_tolerance;           /* as-of */
	int64_t tolerance_us;         /* not below 0: a right row further back does not match */
	size_t keys_count;            /* 0: all rows have one key */
	bool is_spark;
};

/* Whether a watermark short of the end of time lets rows of a side go: if not, state grows with its rows (or, as-of, its keys). */
bool wm_join_is_bounded(const struct wm_join_options *options, enum wm_join_side side);

struct wm_join;

/* The options are copied. */
struct wm_join *wm_join_new(const struct wm_join_options *options);
void wm_join_free(struct wm_join *join);

/*
 * Whether a row with these keys can neither match nor be written: one of its columns is null, and its side not preserved.
 * It counts as used; with spark it is not judged at all, and should not move the watermark.
 */
bool wm_join_ignores(const struct wm_join *join, enum wm_join_side side, const struct wm_value *keys);

/* Borrowed until wm_join_next() has returned false. */
struct wm_join_record {
	int64_t event_time_us; /* above WM_TIME_NONE, below WM_TIME_END */
	int64_t watermark_us;  /* of its side, in force; one behind that of before counts as that */
	const struct wm_value *keys;
	struct wm_span bytes; /* nobody looks into; shorter than 4 GiB - 64 */
};

enum wm_join_verdict { WM_JOIN_USED = 0, WM_JOIN_LATE };

/* A late record leaves no trace, but its watermark counts. */
enum wm_join_verdict wm_join_add(struct wm_join *join, enum wm_join_side side, const struct wm_join_record *record);

/*
 * The keys of a record that will be added a few records from now (12 are enough), of either side: what that needs comes from
 * memory meanwhile, for which adding would otherwise wait, about as long as all its other work takes. Changes nothing, and
 * may be left out or be wrong. Nothing may be left to drain.
 */
void wm_join_foresee(struct wm_join *join, const struct wm_value *keys);

/* Moves the watermark of a side on. WM_TIME_END: it has ended. */
void wm_join_advance(struct wm_join *join, enum wm_join_side side, int64_t watermark_us);

/*
 * The next watermark of a side that may let rows of the other (with spark of either) be written; WM_TIME_END: none will. Rows that leave
 * without being written make nothing due: they go with whatever is drained next.
 */
int64_t wm_join_due_us(const struct wm_join *join, enum wm_join_side side);

/* What comes out: bytes as they were given, borrowed until the next call. Where a side is not there its time is unset and its bytes are empty. */
struct wm_join_row {
	bool has[WM_JOIN_SIDES];
	int64_t times_us[WM_JOIN_SIDES];
	struct wm_span bytes[WM_JOIN_SIDES];
};

/* The next row that comes out; false if there is none, and then all that had to leave has left. */
bool wm_join_next(struct wm_join *join, struct wm_join_row *row);

/*
 * Rows of each side: held now; since the start, taken in and removed (as-of: replaced ones too). With spark those are
 * Spark's numbers, which counts some rows that are not kept.
 */
struct wm_join_counts {
	uint64_t rows[WM_JOIN_SIDES];
	uint64_t added[WM_JOIN_SIDES];
	uint64_t removed[WM_JOIN_SIDES];
};
struct wm_join_counts wm_join_counts(const struct wm_join *join);

/* A row that is held. Texts are borrowed from the operator until its next call. */
struct wm_join_held {
	int64_t time_us;
	uint64_t arrival;   /* of its side */
	bool is_matched;    /* known where that decides whether it is written */
	bool has_key;       /* false: one of its columns is null */
	struct wm_span key; /* for wm_join_unpack() */
	struct wm_span bytes;
};

/* All that a side holds, wm_join_counts().rows of them, in order of arrival; an array to be freed. Nothing may be left to drain. */
struct wm_join_held *wm_join_held(const struct wm_join *join, enum wm_join_side side);

/* The columns of the key of such a row: keys_count of them. */
void wm_join_unpack(const struct wm_join *join, struct wm_span key, struct wm_span *columns);

/* Bytes of state. */
size_t wm_join_bytes(const struct wm_join *join);

/* The state between two calls (nothing may be left to drain). Decode into a new operator with the same options. */
void wm_join_encode(const struct wm_join *join, struct wm_buf *out);
WM_MUST_CHECK bool wm_join_decode(struct wm_join *join, struct wm_get *in);

#endif
