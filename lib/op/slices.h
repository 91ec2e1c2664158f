/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slices - cells by slice of time and key, and windows combined from them.
 *
 * A record is aggregated once, in the cell of its slice (event/window.h) and
 * key, whatever size / slide may be. A window is combined from its slices when
 * it is written: of all keys by runs, which are combined once for the
 * many windows that hold them, or of one key alone.
 *
 * Apart: every window has cells of its own instead, for what differs from window
 * to window; the "slices" are then the windows, with their numbers, and a record goes into each of its windows.
 *
 * Behind each cell the caller may have bytes of its own, zero in a new entry.
 */
#ifndef WM_OP_SLICES_H
#define WM_OP_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/agg/agg.h"
#include "lib/base/arena.h"
#include "lib/event/window.h"
#include "lib/state/ordered.h"
#include "lib/state/table.h"

/* Level L of the runs holds runs of 2^L slices. More levels than windows can have slices. */
#define WM_SLICES_LEVELS_MAX 48

/* The last two fields are the caller's, zero at first. */
struct wm_cells {
	struct wm_slice at;
	struct wm_table table; /* key to cell */
	size_t packed_bytes;   /* of its arena, when it was last packed */
	int64_t first_gone_us; /* the watermark at which its first window takes no more records */
	size_t changed_count;  /* its members in a list of changed ones */
};

/* A key with a record in a slice. */
struct wm_member {
	struct wm_cells *cells;
	struct wm_entry *entry;
};

/* Fields are for reading. */
struct wm_slices {
	const struct wm_windows *windows;
	const struct wm_agg *agg;
	size_t cell_bytes;
	size_t own_bytes; /* the caller's, behind each cell */
	bool is_apart;
	struct wm_ordered map;                          /* struct wm_cells by number */
	struct wm_ordered levels[WM_SLICES_LEVELS_MAX]; /* struct wm_table by first slice >> level */
	int64_t combined_end;                           /* no run holds this slice or one behind it */
	struct wm_table combined;                       /* the window that was asked for last */
};

/* windows and agg are borrowed; own_bytes is a multiple of 16. */
void wm_slices_init(struct wm_slices *slices, const struct wm_windows *windows, const struct wm_agg *agg,
	size_t own_bytes, bool is_apart);
void wm_slices_release(struct wm_slices *slices);

/* The slice at this place of the time line, made if it is not there. */
struct wm_cells *wm_slices_at(struct wm_slices *slices, const struct wm_slice *at);

/* The place of a slice number; apart: of a window. */
void wm_slices_place(const struct wm_slices *slices, int64_t number, struct wm_slice *at);

/* The first slice with a number not below this one; NULL if there is none. */
struct wm_cells *wm_slices_from(const struct wm_slices *slices, int64_t number);

/* Numbers of the first slice of a window and of the one behind its last. */
int64_t wm_slices_begin(const struct wm_slices *slices, int64_t window_number);
int64_t wm_slices_end(const struct wm_slices *slices, int64_t window_number);

/* Begins the cell of a new entry. */
void wm_slices_begin_cell(const struct wm_slices *slices, const struct wm_table *table, struct wm_entry *entry);

/* The entry of a key in a table of cells, its cell begun if it is new. */
static inline struct wm_entry *
wm_slices_entry(const struct wm_slices *slices, struct wm_table *table, struct wm_span key, uint8_t tag)
{
	bool is_new;
	struct wm_entry *entry = wm_table_put(table, key, tag, &is_new);

	if (is_new)
		wm_slices_begin_cell(slices, table, entry);
	return entry;
}

/* A record was added to a slice: it counts in the runs that hold it too. */
void wm_slices_add_to_runs(struct wm_slices *slices, int64_t number, struct wm_span key, uint8_t tag,
	const struct wm_reading *readings, int64_t event_time_us);

/* All keys of a window with a slice in it; valid until the next call. */
const struct wm_table *wm_slices_window(struct wm_slices *slices, int64_t window_number);

/*
 * The cells of one key in the windows first to last, each of which holds it: pointers into the slices or to cells made in the
 * arena.
 */
void wm_slices_key_windows(struct wm_slices *slices, struct wm_span key, uint8_t tag, int64_t first, int64_t last,
	struct wm_arena *arena, const void **cells);

/* Pairs of a key and a window from this one on that holds it. Costs a walk over all cells. */
uint64_t wm_slices_count_windows(const struct wm_slices *slices, int64_t window_first);

/* Takes out and returns the first slice if all its windows come before this one; NULL: it has none such. For wm_slices_free_cells(). */
struct wm_cells *wm_slices_take_before(struct wm_slices *slices, int64_t window_number);
void wm_slices_free_cells(struct wm_cells *cells);

/* Frees the runs that no window from this one on needs. */
void wm_slices_forget_runs(struct wm_slices *slices, int64_t window_number);

/*
 * Puts all of a slice into a later one; returns how many keys were in both. For windows that share a start: what the next step of a start begins with.
 * Spoils pointers to both.
 */
size_t wm_slices_carry(struct wm_slices *slices, struct wm_cells *from, int64_t to_number);

/* Gives back what cells that were begun anew have left in the arena of a slice, if it is much: true. Spoils pointers to its entries, and clears
   their marks. */
bool wm_slices_pack(const struct wm_slices *slices, struct wm_cells *cells);

size_t wm_slices_bytes(const struct wm_slices *slices);

#endif
