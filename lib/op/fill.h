/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill - the empty windows between two that a key has.
 *
 * Windows are numbered without gaps, and those of one key come in rising order. What is about to be
 * written is announced first, all of it; then the fillers are asked for,
 * number by number, together with what is written:
 *
 *     wm_fill_announce(fill, number, entry);      for each window and key
 *     while (wm_fill_next(fill, &number) ...)     the next number that has fillers
 *             while ((entry = wm_fill_take(fill, number)) != NULL) ...
 *     wm_fill_written(fill, entry, cell);         in order of numbers
 *
 * One entry a key is kept for good.
 */
#ifndef WM_OP_FILL_H
#define WM_OP_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/agg/agg.h"
#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/state/table.h"

/* Longest gap that is filled: one wrong clock must not write for ever. */
#define WM_FILL_WINDOWS_MAX 100000

struct wm_fill;

/* has_cells: fillers repeat the result of the window before them; else they have none. agg is borrowed. */
struct wm_fill *wm_fill_new(const struct wm_agg *agg, bool has_cells);
void wm_fill_free(struct wm_fill *fill);

/* A window and key about to be written; of entry only the key is used. */
void wm_fill_announce(struct wm_fill *fill, int64_t window_number, const struct wm_entry *entry);

/* The least number of which fillers are left; false if there are none. */
bool wm_fill_next(struct wm_fill *fill, int64_t *window_number);

/* A key that has a filler of this number, which wm_fill_next() gave; NULL when all were taken, as they have to be. */
const struct wm_entry *wm_fill_take(struct wm_fill *fill, int64_t window_number);

/* The cell for a filler of an entry that wm_fill_take() gave; NULL without has_cells. */
const void *wm_fill_cell(const struct wm_fill *fill, const struct wm_entry *entry);

/* A window that was announced is written, with this cell. Spoils cells of fillers. */
void wm_fill_written(struct wm_fill *fill, const struct wm_entry *entry, const void *cell);

/* Gaps that were too long to be filled. */
uint64_t wm_fill_skipped(const struct wm_fill *fill);

size_t wm_fill_bytes(const struct wm_fill *fill);

/* While nothing is announced that was not taken. Decode into a new one; keys_count: columns of the keys. */
void wm_fill_encode(const struct wm_fill *fill, struct wm_buf *out);
WM_MUST_CHECK bool wm_fill_decode(struct wm_fill *fill, size_t keys_count, struct wm_get *in);

#endif
