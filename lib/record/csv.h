/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv - one CSV record through libcsv.
 *
 * The judge: the tests and the fuzz target hold the cutter (cut.h) and the scan
 * (scan.h) to what libcsv says. Records are not read through it, as it looks at
 * each byte several times and copies every field.
 */
#ifndef WM_RECORD_CSV_H
#define WM_RECORD_CSV_H

#include <stddef.h>

#include "lib/base/span.h"

struct wm_csv;

struct wm_csv *wm_csv_new(void);
void wm_csv_free(struct wm_csv *csv);

/*
 * The fields of a record that wm_cut_find() found well-formed, without its line
 * end; an empty text has none. Returns how many; at most WM_COLUMNS_MAX of them are kept.
 * They are valid until the next call.
 */
size_t wm_csv_split(struct wm_csv *csv, char delimiter, struct wm_span content, const struct wm_span **fields);

#endif
