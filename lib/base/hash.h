/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash - keyed hashes for tables, and plain ones for file formats.
 *
 * A table's hash is keyed by a secret drawn once per process, so that input
 * cannot be written to collide. Nothing that a user sees may depend on it.
 * wm_hash_stable() is XXH3-64 with seed 0: the same everywhere and for ever.
 */
#ifndef WM_BASE_HASH_H
#define WM_BASE_HASH_H

#include <stdint.h>
#include <string.h>

#include "lib/base/span.h"

/* Drawn by wm_hash_init() from the system; fixed values before that. */
extern uint64_t wm_hash_secret[4];

/* Once, at the start of a program. Tests leave it out to have fixed hashes. */
void wm_hash_init(void);

/* XXH3 with the process's secret; for what the inline path below leaves over. */
uint64_t wm_hash_long(struct wm_span text, uint64_t tag);

/* XXH3-64, seed 0. */
uint64_t wm_hash_stable(struct wm_span text);

/* The same of a text that comes in pieces, of whatever lengths. */
struct wm_hash_stream;
struct wm_hash_stream *wm_hash_stream_new(void);
void wm_hash_stream_free(struct wm_hash_stream *stream); /* NULL is none */
void wm_hash_stream_reset(struct wm_hash_stream *stream);
void wm_hash_stream_add(struct wm_hash_stream *stream, struct wm_span piece);

/* wm_hash_stable() of all pieces so far. */
uint64_t wm_hash_stream_value(const struct wm_hash_stream *stream);

static inline uint64_t
wm_hash_mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Up to so many bytes are read as four words, which overlap. */
#define WM_HASH_MEDIUM_MAX (2 * WM_SPAN_SHORT_MAX)

/* Keyed hash of a text and a small tag (its kind). Of a short text: two loads and two multiplications; of a medium one twice as much. */
static inline uint64_t
wm_hash(struct wm_span text, uint64_t tag)
{
	uint64_t length_and_tag = text.len << 8 | tag;

	if (text.len > WM_HASH_MEDIUM_MAX)
		return wm_hash_long(text, tag);
	if (text.len <= WM_SPAN_SHORT_MAX) {
		struct wm_span_words words = wm_span_words(text);

		return wm_hash_mix(
			wm_hash_mix(words.low ^ wm_hash_secret[0], words.high ^ wm_hash_secret[1]) ^ wm_hash_secret[2],
			length_and_tag ^ wm_hash_secret[3]);
	}
	struct wm_span_words first = wm_span_words(wm_span(text.data, WM_SPAN_SHORT_MAX));
	struct wm_span_words last = wm_span_words(wm_span(text.data + text.len - WM_SPAN_SHORT_MAX, WM_SPAN_SHORT_MAX));
	return wm_hash_mix(
		wm_hash_mix(first.low ^ wm_hash_secret[0], first.high ^ wm_hash_secret[1]) ^ wm_hash_secret[2],
		wm_hash_mix(last.low ^ wm_hash_secret[2], last.high ^ wm_hash_secret[3]) ^ length_and_tag ^
			wm_hash_secret[1]);
}

#endif
