/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results - what wm-window writes of a window: its bounds, keys, aggregates, and
 * where it can be written more than once the pane.
 */
#ifndef WM_CMD_RESULTS_H
#define WM_CMD_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/cli.h"
#include "cmd/stream.h"
#include "lib/agg/agg.h"
#include "lib/base/buf.h"
#include "lib/op/windowing.h"
#include "lib/time/instant.h"

struct results_options {
	const char *group_by; /* as typed; NULL: no keys */
	bool has_panes;       /* columns _pane and _pane_index */
	bool is_partial;      /* states instead of final values */
	const char *gap;      /* of sessions that are partial: a column _gap, by which wm-merge knows them; else NULL */
	bool is_filled_zero;  /* fillers have 0 where that is what no rows give; else they are empty */
	bool is_stamped;      /* columns _time and _watermark, and punctuation */
	int64_t hold_back_us; /* how far behind the watermark a result can be: the allowed lateness */
};

/* Fields are for reading. */
struct results {
	struct results_options options;
	const struct cli_common *common;
	const struct wm_agg *agg;
	const struct wm_zone *zone;
	const char *ofmt; /* NULL: the shortest text that is exact */
	bool is_rounded;  /* a table, for eyes: without --ofmt computed fractions have 6 digits at most */
	struct wm_span *names;
	struct wm_value *values;
	size_t count;
	size_t keys_count;
	struct wm_buf text;                                 /* of the values that are computed */
	struct wm_instant_text start, end, time, watermark; /* many rows share the window that they are of */
	int64_t stamp_us;                                   /* the watermark that results carry now, or WM_TIME_NONE */
	bool is_stamp_due;                                  /* punctuation ends what is being written */
};

/*
 * Asks the stream for the key columns, and then for those of the aggregates: so they stand in row.readings. Exits 2 on names that
 * are taken.
 */
void results_open(struct results *results, struct stream *s, const struct cli_common *common, const struct wm_agg *agg,
	const struct results_options *options);
void results_release(struct results *results);

/* Around what an advance lets go. A stamp is the watermark from before it, less the hold-back; punctuation tells the new one. */
void results_begin(struct results *results, const struct stream_row *to);
void results_end(struct results *results, struct stream *s, const struct stream_row *to);

void results_put(struct results *results, struct stream *s, const struct wm_window_row *row);

#endif
