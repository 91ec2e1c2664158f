/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value - a field of a record, whatever format it came in.
 *
 * Texts are borrowed. CSV has texts alone: an empty CSV field is the empty text.
 */
#ifndef WM_BASE_VALUE_H
#define WM_BASE_VALUE_H

#include <stdbool.h>

#include "lib/base/decimal.h"
#include "lib/base/span.h"

/* What a field is. CSV has texts alone; an empty CSV field is the empty text. */
enum wm_kind {
	WM_KIND_NULL = 0, /* JSON null, or no such member */
	WM_KIND_TEXT,     /* CSV field, or JSON string: without quotes, escapes undone */
	WM_KIND_NUMBER,   /* JSON number, its own text */
	WM_KIND_BOOL,     /* JSON true or false */
	WM_KIND_JSON,     /* JSON object or array, its own text */
};

struct wm_value {
	struct wm_span text; /* empty for WM_KIND_NULL */
	enum wm_kind kind;
};

/* No value: JSON null or "", an absent member, an empty CSV field. */
static inline bool
wm_value_is_empty(const struct wm_value *value)
{
	return value->text.len == 0;
}

/* Not even null: the record has no such member. */
static inline bool
wm_value_is_absent(const struct wm_value *value)
{
	return value->kind == WM_KIND_NULL && value->text.data == NULL;
}

/*
 * Copies a value that was written just now, word by word, as it was: read at once, in more than one word, it would have to wait until the
 * writes have left the processor.
 */
static inline void
wm_value_copy(struct wm_value *to, const struct wm_value *from)
{
	to->text.data = from->text.data;
	__asm__ volatile("" ::: "memory"); /* or the compiler makes one copy of the two */
	to->text.len = from->text.len;
	to->kind = from->kind;
}

/* A field read for an aggregate. Fields are for reading; filled by wm_reading_take(). */
struct wm_reading {
	struct wm_value value;
	struct wm_decimal number; /* set where is_number */
	bool is_empty;            /* no value: wm_value_is_empty() */
	bool is_number;           /* a JSON number, or a text that is wholly a number */
};

/* The value's text is borrowed on. JSON true, false, objects and arrays are values, but no numbers. */
static inline void
wm_reading_take(struct wm_reading *reading, const struct wm_value *value)
{
	wm_value_copy(&reading->value, value);
	reading->is_empty = wm_value_is_empty(value);
	reading->is_number = !reading->is_empty && (value->kind == WM_KIND_TEXT || value->kind == WM_KIND_NUMBER) &&
		wm_decimal_parse(value->text, &reading->number);
}

#endif
