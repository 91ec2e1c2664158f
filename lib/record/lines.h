/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines - lines of text as records with columns: access logs, logfmt, and what
 * a pattern takes apart.
 *
 *   clf     Common and Combined Log Format, as Apache and nginx write them. A
 *           field that is "-" is empty; a request that is no HTTP leaves
 *           method, path, query and protocol empty; what follows the agent is
 *           "extra". Escapes (\" \\ \n \x16) are undone, but in "extra".
 *   logfmt  key=value key="quoted value" key: columns are the keys, by name. A
 *           key without a value has none. Of repeated keys the last counts.
 *   lines   the groups of a POSIX extended regular expression, which may match
 *           anywhere in the line, or of a pattern that has a name here. A group
 *           that took no part has no value.
 *
 * Each line is read whole, so that whether it is one of the format never
 * depends on the columns asked for.
 */
#ifndef WM_RECORD_LINES_H
#define WM_RECORD_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/span.h"
#include "lib/base/value.h"
#include "lib/record/header.h"
#include "lib/record/nulls.h"
#include "lib/record/reader.h"

struct wm_lines;

/*
 * format is one of the three; pattern is for WM_FORMAT_LINES alone: a regular
 * expression, or "@kubectl", "@syslog", "@haproxy". names has those of its
 * groups, or none: then a pattern without a name of its own has "1", "2", ...
 * Fails (WM_ERR_USAGE) on a pattern that cannot be used, and on another number of names.
 */
struct wm_lines *wm_lines_new(
	enum wm_format format, const char *pattern, const struct wm_header *names, struct wm_err *err);
void wm_lines_free(struct wm_lines *lines);

/* The columns, in their order; of logfmt none is known beforehand. */
const struct wm_header *wm_lines_columns(const struct wm_lines *lines);

/* logfmt: asks for a key, and returns the number of its column (from 0, in order of asking). The name is copied. */
size_t wm_lines_want(struct wm_lines *lines, struct wm_span name);

/* Takes a line apart, without its line end, borrowed until the next one. NULL, or what is wrong with it (static). */
const char *wm_lines_read(struct wm_lines *lines, struct wm_span line);

/* What a column of that line says; borrowed until the next line. */
struct wm_value wm_lines_field(struct wm_lines *lines, size_t column);

/*
 * A line of logfmt (one that was read well, without its line end) as an object of JSON: each key a member, one without a value null, as is a text
 * of nulls (NULL: there are none); appended.
 */
void wm_logfmt_put_object(struct wm_span line, const struct wm_nulls *nulls, struct wm_buf *out);

/* Whether any line had the column. */
bool wm_lines_seen(const struct wm_lines *lines, size_t column);

#endif
