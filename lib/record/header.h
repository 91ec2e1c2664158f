/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header - the names of the columns of CSV inputs.
 */
#ifndef WM_RECORD_HEADER_H
#define WM_RECORD_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/span.h"

/* Fields are for reading. All zero bytes are a header without columns. */
struct wm_header {
	struct wm_span *names; /* in the order of the fields; the texts belong to the header */
	size_t count;
	char *text;
};

void wm_header_release(struct wm_header *header);

/* Replaces what was there by copies of the names. */
void wm_header_take(struct wm_header *header, const struct wm_span *names, size_t count);

/* The names "1", "2", ... */
void wm_header_number(struct wm_header *header, size_t count);

bool wm_header_has(const struct wm_header *header, struct wm_span name);

/*
 * The index of a column; fails (WM_ERR_USAGE) if there is none of that name,
 * with the nearest and the list, or several. place is "FILE:LINE".
 */
WM_MUST_CHECK bool wm_header_find(
	const struct wm_header *header, struct wm_span name, const char *place, size_t *index, struct wm_err *err);

/*
 * Whether an input has the columns of the stream, in any order (of several of
 * one name the first stands for the first, and so on); fails (WM_ERR_USAGE)
 * with the first column that is missing or new. order[i] is set to the field of
 * the input that is column i of the stream. first_name is the name of the input
 * whose header the stream has.
 */
WM_MUST_CHECK bool wm_header_match(const struct wm_header *stream, const char *first_name,
	const struct wm_header *input, const char *place, uint32_t *order, struct wm_err *err);

/* Index of the first name that stands twice; count if none does. */
size_t wm_header_find_twice(const struct wm_header *header);

#endif
