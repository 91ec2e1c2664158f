/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nulls - texts that stand for a missing value: NA, NULL, \N, -.
 *
 * Where some are given, a field that holds one of them, and nothing else, is
 * read as WM_KIND_NULL, as the empty field is then. This is the one place that
 * judges a field by them; what a record says as it came is left alone.
 *
 * Without a list there is no struct wm_nulls, and no field is looked at.
 */
#ifndef WM_RECORD_NULLS_H
#define WM_RECORD_NULLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"
#include "lib/base/value.h"

/* Filled by wm_nulls_parse(); fields are for the functions below. */
struct wm_nulls {
	struct wm_span *texts; /* in the order of their bytes, none twice, none empty; they point into bytes */
	size_t count;
	char *bytes;
	bool has_empty; /* the list has the empty text */
	bool takes_quoted;
	uint64_t lengths; /* bit n: a text of n bytes; the last bit: of that many or more */
	bool firsts[256]; /* by first byte */
};

/*
 * Of a comma list in which "\," is a comma and any other backslash is itself. takes_quoted: a quoted field of CSV counts
 * too. Any list is well.
 */
void wm_nulls_parse(struct wm_nulls *nulls, const char *list, bool takes_quoted);
void wm_nulls_release(struct wm_nulls *nulls);

/* The list that means the same, the texts in order, each once; appended. */
void wm_nulls_print(const struct wm_nulls *nulls, struct wm_buf *out);

/* The same without the bits that most texts fail at. */
bool wm_nulls_find(const struct wm_nulls *nulls, struct wm_span text);

static inline bool
wm_nulls_has(const struct wm_nulls *nulls, struct wm_span text)
{
	if (text.len == 0)
		return nulls->has_empty;
	return nulls->firsts[(unsigned char)text.data[0]] &&
		(nulls->lengths >> (text.len < 63 ? text.len : 63) & 1) != 0 && wm_nulls_find(nulls, text);
}

/* Where a value comes from. */
enum wm_nulls_place {
	WM_NULLS_FIELD,  /* of CSV, not quoted, or of a line of text */
	WM_NULLS_QUOTED, /* of CSV, its quotes undone */
	WM_NULLS_JSON,   /* the empty string is missing only where the list has it */
};

/* Whether a field holds no value. */
static inline bool
wm_nulls_are_in(const struct wm_nulls *nulls, const struct wm_value *value, enum wm_nulls_place place)
{
	if (value->kind != WM_KIND_TEXT && value->kind != WM_KIND_NUMBER)
		return false;
	if (place != WM_NULLS_JSON && value->text.len == 0)
		return true;
	return (place != WM_NULLS_QUOTED || nulls->takes_quoted) && wm_nulls_has(nulls, value->text);
}

/* Whether programs write this text where they have no value. */
bool wm_nulls_is_usual(struct wm_span text);

/*
 * The option that takes a text as missing too, as a shell reads it, appended: "--null NA", or "--null 'NA,\N'" where nulls
 * (NULL: none) has NA already. False, with the option alone ("--null LIST"), where the text does not go into a message
 * as it is.
 */
bool wm_nulls_advise(const struct wm_nulls *nulls, struct wm_span text, bool is_quoted, struct wm_buf *out);

#endif
