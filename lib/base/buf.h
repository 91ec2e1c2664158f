/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf - a growing byte buffer that knows its maximum.
 *
 * A buffer owns its memory and never grows beyond the maximum that it was born
 * with; what would pass it is refused whole. Where nothing but the program's
 * own text goes in, the maximum is WM_BUF_UNBOUNDED and appending cannot fail.
 *
 * One with a sink is unbounded and holds no more than a piece: what is full is
 * handed on, and len counts what is not. So what is written may be larger than memory.
 */
#ifndef WM_BASE_BUF_H
#define WM_BASE_BUF_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/span.h"

#define WM_BUF_UNBOUNDED SIZE_MAX

/* Takes bytes, which are borrowed until put returns. What fails there is between the sink and its owner. */
struct wm_buf_sink {
	void *self;
	void (*put)(void *self, struct wm_span bytes);
};

/* Fields are for reading; data is not NUL-terminated. */
struct wm_buf {
	char *data;
	size_t len;
	size_t capacity;
	size_t len_max;
	const struct wm_buf_sink *sink; /* NULL: none; borrowed */
};

void wm_buf_init(struct wm_buf *buf, size_t len_max);
void wm_buf_init_sink(struct wm_buf *buf, const struct wm_buf_sink *sink);
void wm_buf_release(struct wm_buf *buf);

/* What wm_buf_reserve() does where the room is not there yet. */
WM_MUST_CHECK bool wm_buf_grow(struct wm_buf *buf, size_t extra);

/* Room for extra more bytes behind len; false if that would pass the maximum. */
WM_MUST_CHECK static inline bool
wm_buf_reserve(struct wm_buf *buf, size_t extra)
{
	return extra <= buf->capacity - buf->len || wm_buf_grow(buf, extra);
}

/* False, and nothing appended, if that would pass the maximum. */
WM_MUST_CHECK bool wm_buf_append(struct wm_buf *buf, const void *data, size_t len);

/* The same for a buffer born WM_BUF_UNBOUNDED, where it cannot fail (asserted). */
void wm_buf_add(struct wm_buf *buf, const void *data, size_t len);
void wm_buf_add_text(struct wm_buf *buf, const char *text);
void wm_buf_addf(struct wm_buf *buf, const char *format, ...) WM_PRINTF(2, 3);

/* The same for what is written in place: where it goes, with room for len bytes, of which the caller adds to buf->len what it used. */
char *wm_buf_room_grown(struct wm_buf *buf, size_t len);

static inline char *
wm_buf_room(struct wm_buf *buf, size_t len)
{
	return len <= buf->capacity - buf->len ? buf->data + buf->len : wm_buf_room_grown(buf, len);
}

static inline void
wm_buf_add_byte(struct wm_buf *buf, char byte)
{
	*wm_buf_room(buf, 1) = byte;
	buf->len++;
}

/* Hands on what is left, at the end. Only with a sink. */
void wm_buf_flush(struct wm_buf *buf);

/* Empties it and keeps the memory. */
static inline void
wm_buf_reset(struct wm_buf *buf)
{
	buf->len = 0;
}

static inline struct wm_span
wm_buf_span(const struct wm_buf *buf)
{
	return wm_span(buf->data, buf->len);
}

#endif
