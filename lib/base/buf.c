/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 64

/* Of a buffer with a sink: so much that what a call of it costs is nothing beside the bytes. */
#define PIECE_BYTES ((size_t)64 << 10)

void
wm_buf_init(struct wm_buf *buf, size_t len_max)
{
	*buf = (struct wm_buf){ .len_max = len_max };
}

void
wm_buf_init_sink(struct wm_buf *buf, const struct wm_buf_sink *sink)
{
	*buf = (struct wm_buf){
		.data = wm_malloc(PIECE_BYTES), .capacity = PIECE_BYTES, .len_max = WM_BUF_UNBOUNDED, .sink = sink
	};
}

void
wm_buf_flush(struct wm_buf *buf)
{
	if (buf->len != 0)
		buf->sink->put(buf->sink->self, wm_buf_span(buf));
	buf->len = 0;
}

void
wm_buf_release(struct wm_buf *buf)
{
	free(buf->data);
	*buf = (struct wm_buf){ 0 };
}

bool
wm_buf_grow(struct wm_buf *buf, size_t extra)
{
	if (buf->sink != NULL) {
		wm_buf_flush(buf);
		if (extra <= buf->capacity)
			return true;
	}
	if (extra > buf->len_max - buf->len)
		return false;
	size_t capacity = buf->capacity < CAPACITY_FIRST ? CAPACITY_FIRST : buf->capacity;
	while (capacity - buf->len < extra)
		capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
	if (capacity > buf->len_max)
		capacity = buf->len_max;
	buf->data = wm_reallocarray(buf->data, capacity, 1);
	buf->capacity = capacity;
	return true;
}

bool
wm_buf_append(struct wm_buf *buf, const void *data, size_t len)
{
	if (buf->sink != NULL && len > PIECE_BYTES) {
		wm_buf_flush(buf);
		buf->sink->put(buf->sink->self, wm_span(data, len));
		return true;
	}
	if (!wm_buf_reserve(buf, len))
		return false;
	if (len != 0)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	return true;
}

void
wm_buf_add(struct wm_buf *buf, const void *data, size_t len)
{
	bool fits = wm_buf_append(buf, data, len);

	assert(fits && buf->len_max == WM_BUF_UNBOUNDED);
	(void)fits;
}

void
wm_buf_add_text(struct wm_buf *buf, const char *text)
{
	wm_buf_add(buf, text, strlen(text));
}

char *
wm_buf_room_grown(struct wm_buf *buf, size_t len)
{
	bool fits = wm_buf_reserve(buf, len);

	assert(fits && buf->len_max == WM_BUF_UNBOUNDED);
	(void)fits;
	return buf->data + buf->len;
}

void
wm_buf_addf(struct wm_buf *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	assert(len >= 0);
	bool fits = wm_buf_reserve(buf, (size_t)len + 1);
	assert(fits);
	(void)fits;
	va_start(args, format);
	vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
	va_end(args);
	buf->len += (size_t)len;
}
