/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign - inputs that are no records, and the command that helps.
 *
 * People hand over compressed files, JSON arrays, access logs as CSV, files
 * whose header was cut off. Each is known by its first line, and has its
 * sentence.
 */
#ifndef WM_RECORD_FOREIGN_H
#define WM_RECORD_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/span.h"
#include "lib/record/reader.h"

/*
 * What an input is instead of records, and what to do: "is compressed: read it
 * through zcat"; NULL if it may be records. line is its first one that is not
 * blank (of a very long one the begin), format what was asked for, has_header
 * whether CSV would have one. The text is static.
 */
const char *wm_foreign_find(struct wm_span line, enum wm_format format, bool has_header);

/* Whether a line is "==> NAME <==", which tail writes before each of several files. */
bool wm_foreign_is_tail(struct wm_span line);

/* Whether a field of a header is what no name is: a full date and time, such as "2025-11-29T12:34". */
bool wm_foreign_is_time(struct wm_span field);

/*
 * Advice for a CSV header in which a column was not found: another delimiter
 * if all of it is one name, --columns if a name is a number and so may be a
 * value; NULL if it looks like a header. The text is static.
 */
const char *wm_foreign_advise(const struct wm_span *names, size_t count);

#endif
