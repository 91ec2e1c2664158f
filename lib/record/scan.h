/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan - where fields and records end.
 *
 * A batch is an index over the whole records at the begin of a text: 64 bytes
 * at a time become bit masks of delimiters, line feeds and quotes, and the set
 * bits become positions. What stands between quotes is masked out: in a record
 * without fault each quote opens or closes, so the number of quotes before a
 * byte says whether it is inside.
 *
 * A batch ends before the record with the first quote that does not keep to
 * that (inside an unquoted field, or with text behind it: cut.h reads that
 * one), before a record that is not complete, and after WM_SCAN_BYTES_MAX
 * bytes, so that index and text stay in the cache.
 *
 * Knows nothing of CR, which belongs to the last field here, but that one may
 * stand between a closing quote and the line feed.
 */
#ifndef WM_RECORD_SCAN_H
#define WM_RECORD_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/span.h"
#include "lib/record/dialect.h"

/* Text of one batch: some hundred records. A record longer than this is never whole in one. */
#define WM_SCAN_BYTES_MAX ((size_t)32 << 10)

/* Bytes behind the text that must be readable; what they hold does not matter. */
#define WM_SCAN_SLACK 63

/* All give the same index. */
enum wm_scan_way { WM_SCAN_PLAIN, WM_SCAN_SSE2, WM_SCAN_AVX2, WM_SCAN_AVX512 };

/*
 * Fields are for reading. Record r (from 0) has the separators number
 * rows[r] + 1 to rows[r + 1]; the last is its line feed, so their number is
 * that of its fields. Separator s (from 1) ends at offset after[s]; after[0] is
 * 0. So field f of record r is the bytes from after[rows[r] + f] up to, not
 * including, after[rows[r] + f + 1] - 1, as it stands there
 * (wm_dialect_read).
 */
struct wm_scan {
	size_t rows_count;
	size_t bytes;              /* of these records */
	bool has_marks;            /* else each field says what stands there */
	bool has_inner_line_feeds; /* else each record has one line feed */
	enum wm_scan_way way;
	struct wm_dialect dialect;
	char mark; /* a quote or backslash */
	uint32_t rows[WM_SCAN_BYTES_MAX + 2];
	uint32_t after[WM_SCAN_BYTES_MAX + 1 + 64]; /* positions are written 8, 16 or 64 at a time */
};

/* The best way that this machine has. */
enum wm_scan_way wm_scan_best_way(void);

struct wm_scan *wm_scan_new(struct wm_dialect dialect, enum wm_scan_way way);
void wm_scan_free(struct wm_scan *scan);

/* A new batch; records that were not taken are forgotten. */
void wm_scan_batch(struct wm_scan *scan, struct wm_span text);

#endif
