/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dedup - the first record of each key, and how long a key is remembered.
 *
 * A record's verdict is first, duplicate or late. Late ones (behind the
 * watermark; with spark also at it) are found out before their key is looked
 * at, and leave no trace. The key of a first record is remembered
 *
 *     within the watermark   until watermark >= its event time + the span
 *     with its time          until watermark > its event time; the time is part of the key
 *     for ever               until the end of time
 *
 * and a duplicate extends nothing. When a key is forgotten stands with it, to
 * the microsecond, so verdicts do not depend on when memory is given back: that
 * happens in bulk, at most about a sixty-fourth of a key's life later.
 *
 * Nothing is held back and nothing becomes due: the operator forgets by the
 * watermark of each record, and wm_dedup_advance() is for watermarks that come
 * without one. It owns no files, clocks or options' texts; several can run at once.
 */
#ifndef WM_OP_DEDUP_H
#define WM_OP_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"
#include "lib/state/shelves.h"

enum wm_dedup_memory { WM_DEDUP_WITHIN_WATERMARK = 0, WM_DEDUP_WITH_TIME, WM_DEDUP_FOREVER };

struct wm_dedup_options {
	size_t keys_count;
	enum wm_dedup_memory memory;
	int64_t remember_us; /* WM_DEDUP_WITHIN_WATERMARK; not below 0 */
	bool is_spark; /* late at the watermark too; the span cut to milliseconds; a key with its time goes at that time */
};

struct wm_dedup;

struct wm_dedup *wm_dedup_new(const struct wm_dedup_options *options);
void wm_dedup_free(struct wm_dedup *dedup);

enum wm_dedup_verdict { WM_DEDUP_FIRST = 0, WM_DEDUP_DUPLICATE, WM_DEDUP_LATE };

/* A record as the operator takes it; borrowed for the call. */
struct wm_dedup_record {
	int64_t event_time_us;
	int64_t watermark_us; /* in force; one behind that of before counts as that */
	const struct wm_value *keys;
	uint64_t number; /* with which it was foreseen; 0: nobody knows */
};

enum wm_dedup_verdict wm_dedup_judge(struct wm_dedup *dedup, const struct wm_dedup_record *record);

/*
 * A record that will be judged a few records from now (8 are enough): what that needs comes from memory meanwhile, for
 * which judging would otherwise wait, about as long as all its other work takes. Changes nothing, and may be left out
 * or be wrong; but a number, which is not 0, is that of one record. event_time_us matters for WM_DEDUP_WITH_TIME alone.
 */
void wm_dedup_foresee(struct wm_dedup *dedup, int64_t event_time_us, const struct wm_value *keys, uint64_t number);

/* Moves the watermark on. WM_TIME_END: everything is forgotten. */
void wm_dedup_advance(struct wm_dedup *dedup, int64_t watermark_us);

/* Keys: remembered now; since the start, taken in and forgotten. Costs a walk over the keys that will be forgotten soon. */
struct wm_dedup_counts {
	uint64_t keys;
	uint64_t added;
	uint64_t removed;
};
struct wm_dedup_counts wm_dedup_counts(const struct wm_dedup *dedup);

/* A walk over the keys that are remembered; all zero bytes to begin with. Spoilt by whatever changes the operator. */
struct wm_dedup_walk {
	bool has_begun;
	struct wm_ordered_at at; /* of the next shelf */
	const struct wm_shelf *shelf;
	const struct wm_shelf_chunk *chunk;
	struct wm_span items; /* of the chunk, that are left */
};

/*
 * The next key, its columns borrowed until then, and the watermark at which it is forgotten; false at the end. They come about by
 * that.
 */
bool wm_dedup_next(const struct wm_dedup *dedup, struct wm_dedup_walk *walk, int64_t *until_us, struct wm_value *keys);

/* Bytes of state. */
size_t wm_dedup_bytes(const struct wm_dedup *dedup);

/* The state between two calls. Decode into a new operator with the same options. */
void wm_dedup_encode(const struct wm_dedup *dedup, struct wm_buf *out);
WM_MUST_CHECK bool wm_dedup_decode(struct wm_dedup *dedup, struct wm_get *in);

#endif
