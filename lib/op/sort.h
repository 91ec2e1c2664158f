/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort - records in order of event time, as far as the watermark has come.
 *
 * A record is bytes that nobody looks into. It is held until the watermark
 * passes it and leaves in order of event time, ties by source and then in the
 * order in which they came:
 *
 *     verdict = wm_sort_add(sort, &record);
 *     wm_sort_advance(sort, watermark_us);
 *     while (wm_sort_next(sort, &row)) ...
 *
 * One input: a record leaves when its time <= watermark, as what comes later at
 * that time belongs behind it. Several (is_merging): when its time < watermark,
 * as another source may still have one of that time that belongs before it.
 * Inputs that are in order already are let go by wm_sort_advance_to() instead.
 *
 * A late record (behind the watermark; with spark also at it) is not taken:
 * what leaves is in order, always. All that is held costs its bytes, about 30
 * more a record, and 16 where its turn is near; what has left is given back in
 * pieces of about a sixty-fourth of the delay.
 *
 * The operator owns no files, clocks or options' texts; several can run at once.
 */
#ifndef WM_OP_SORT_H
#define WM_OP_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/span.h"

/* Sources are numbered from 0, in the order in which their ties leave. */
#define WM_SORT_SOURCES_MAX 65536

struct wm_sort;

struct wm_sort *wm_sort_new(bool is_merging, bool is_spark);
void wm_sort_free(struct wm_sort *sort);

enum wm_sort_verdict { WM_SORT_HELD = 0, WM_SORT_LATE };

/* Borrowed for the call, or, where it came from wm_sort_next(), until the next call of the operator. */
struct wm_sort_record {
	int64_t event_time_us;
	int64_t watermark_us; /* of wm_sort_add(): in force; one behind that of before counts as that */
	uint32_t source;
	struct wm_span bytes; /* shorter than 4 GiB */
};

enum wm_sort_verdict wm_sort_add(struct wm_sort *sort, const struct wm_sort_record *record);

/* The next watermark that may let a record go; WM_TIME_END: nothing is held. */
int64_t wm_sort_due_us(const struct wm_sort *sort);

/* Moves the watermark on. WM_TIME_END: everything goes. */
void wm_sort_advance(struct wm_sort *sort, int64_t watermark_us);

/*
 * For inputs in order, each with a watermark that is the time of its last
 * record: the lowest of them, and the source that it is of (of equal ones the first). Lets
 * go what is before that in the order of leaving, and the records of that time and source.
 */
void wm_sort_advance_to(struct wm_sort *sort, int64_t time_us, uint32_t source);

/* The next record that may go, its watermark_us unset; false if there is none. */
bool wm_sort_next(struct wm_sort *sort, struct wm_sort_record *record);

/* Records held. */
uint64_t wm_sort_count(const struct wm_sort *sort);

/* Bytes of state. */
size_t wm_sort_bytes(const struct wm_sort *sort);

/* The state between two calls (nothing may be left to drain). Decode into a new operator with the same options. */
void wm_sort_encode(const struct wm_sort *sort, struct wm_buf *out);
WM_MUST_CHECK bool wm_sort_decode(struct wm_sort *sort, struct wm_get *in);

#endif
