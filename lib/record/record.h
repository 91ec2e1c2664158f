/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - one record: its text, and the fields that were asked for.
 *
 * Everything in a record is borrowed from its reader and valid until the next
 * call of the reader.
 */
#ifndef WM_RECORD_RECORD_H
#define WM_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/base/value.h"

/* Fields are for reading. */
struct wm_record {
	struct wm_span raw;            /* as it came, its line end included if it had one */
	uint64_t line;                 /* where it begins in its input, from 1 (lines, not records) */
	const struct wm_value *fields; /* in the order in which they were asked for */
};

/* A column as a user names it. "\" escapes "." and "\"; in CSV a dot is a letter. */
struct wm_column {
	char *name; /* escapes undone: a whole member name, or a CSV header; NUL-terminated */
	size_t name_len;
	char **path; /* parts between unescaped dots; path[0] alone if there is none */
	size_t *path_len;
	size_t path_count; /* at least 1 */
};

/* Of a text such as "user.id". Fails on the empty name and on an empty part of a path that is one. */
WM_MUST_CHECK bool wm_column_parse(struct wm_span text, struct wm_column *column, struct wm_err *err);
void wm_column_release(struct wm_column *column);

#endif
