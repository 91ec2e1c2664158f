/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns - the columns of a key in one piece, for state with keys.
 *
 * Each is length * 8 + kind (LEB128), then its text; so two keys have the same bytes
 * if they are the same, column by column. Where kinds do not tell keys apart,
 * WM_COLUMNS_TEXT has them all as 0. Everything is taken from the columns one by
 * one, and never from a piece put together just now: what was written in parts
 * and is read at once waits until the writes have left the processor.
 */
#ifndef WM_BASE_COLUMNS_H
#define WM_BASE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/codec.h"
#include "lib/base/hash.h"
#include "lib/base/value.h"

#define WM_COLUMNS_KIND_BITS 3

/* What of its kind a column keeps. */
enum wm_columns_what { WM_COLUMNS_TEXT = 0, WM_COLUMNS_KIND = (1 << WM_COLUMNS_KIND_BITS) - 1 };

static inline uint64_t
wm_column_head(const struct wm_value *column, enum wm_columns_what what)
{
	return (uint64_t)column->text.len << WM_COLUMNS_KIND_BITS | ((uint64_t)column->kind & (uint64_t)what);
}

/* Bytes that columns take. */
static inline size_t
wm_columns_len(const struct wm_value *columns, size_t count, enum wm_columns_what what)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += wm_varint_len(wm_column_head(&columns[i], what)) + columns[i].text.len;
	return len;
}

/* Writes them to a place with room for so many bytes. */
static inline void
wm_columns_put(char *at, const struct wm_value *columns, size_t count, enum wm_columns_what what)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t head = wm_column_head(&columns[i], what);

		for (; head >= 0x80; head >>= 7)
			*at++ = (char)(head | 0x80);
		*at++ = (char)head;
		at = wm_span_copy(at, columns[i].text);
	}
}

/* Reads the column at a place and returns the place behind it. */
static inline const char *
wm_column_get(const char *at, struct wm_value *column)
{
	uint64_t head = 0;
	unsigned char byte;

	for (unsigned shift = 0;; shift += 7) {
		byte = (unsigned char)*at++;
		head |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			break;
	}
	column->kind = (enum wm_kind)(head & WM_COLUMNS_KIND);
	column->text = wm_span(at, head >> WM_COLUMNS_KIND_BITS);
	return at + column->text.len;
}

static inline uint64_t
wm_column_hash(uint64_t hash, const struct wm_value *column, enum wm_columns_what what)
{
	return wm_hash_mix(hash ^ wm_hash_secret[0],
		wm_hash(column->text, (uint64_t)column->kind & (uint64_t)what) ^ wm_hash_secret[1]);
}

/* The hash of columns, and of what is beside them in the key. */
static inline uint64_t
wm_columns_hash(uint64_t beside, const struct wm_value *columns, size_t count, enum wm_columns_what what)
{
	for (size_t i = 0; i < count; i++)
		beside = wm_column_hash(beside, &columns[i], what);
	return beside;
}

/* The same of what was put at a place. */
static inline uint64_t
wm_columns_hash_at(uint64_t beside, const char *at, size_t count, enum wm_columns_what what)
{
	struct wm_value column;

	for (size_t i = 0; i < count; i++) {
		at = wm_column_get(at, &column);
		beside = wm_column_hash(beside, &column, what);
	}
	return beside;
}

/* Whether these columns were put at a place. */
static inline bool
wm_columns_are_at(const char *at, const struct wm_value *columns, size_t count, enum wm_columns_what what)
{
	struct wm_value column;

	for (size_t i = 0; i < count; i++) {
		at = wm_column_get(at, &column);
		if (wm_column_head(&column, what) != wm_column_head(&columns[i], what) ||
			!wm_span_equal(column.text, columns[i].text))
			return false;
	}
	return true;
}

#endif
