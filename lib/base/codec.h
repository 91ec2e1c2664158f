/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec - numbers and texts as bytes of a checkpoint, and back with bounds.
 *
 * Little-endian, whatever the machine. Putting goes to a wm_buf born
 * WM_BUF_UNBOUNDED, or with a sink, and cannot fail. Getting checks every length
 * against the bytes that are left: a reader that ran past its end, or met an impossible
 * value, keeps failing (failed is set, values are 0), so that a decoder may
 * check once at its end; but before memory is taken for a count that was read,
 * compare it with wm_get_left().
 *
 * The bytes are in memory, or come from a source piece by piece. Texts that were
 * got are borrowed from them. Of a source they stay where they are until
 * wm_get_give_back(), which a decoder of many items calls between two of them: one
 * that does not is right as well, and has all of the bytes in memory in the end.
 */
#ifndef WM_BASE_CODEC_H
#define WM_BASE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/span.h"

void wm_put_u8(struct wm_buf *out, uint8_t value);
void wm_put_u32(struct wm_buf *out, uint32_t value);
void wm_put_u64(struct wm_buf *out, uint64_t value);
void wm_put_i64(struct wm_buf *out, int64_t value);
void wm_put_double(struct wm_buf *out, double value);      /* its bits */
void wm_put_varint(struct wm_buf *out, uint64_t value);    /* LEB128 */
void wm_put_span(struct wm_buf *out, struct wm_span text); /* varint length, then bytes */

/* Bytes of a varint. */
static inline size_t
wm_varint_len(uint64_t value)
{
	return (63 - (size_t)__builtin_clzll(value | 1)) / 7 + 1;
}

/* Puts the next len bytes at data, or fails. It is not asked for more than there are. */
struct wm_get_source {
	void *self;
	bool (*read)(void *self, void *data, size_t len);
};

/* What of a source is in memory. */
struct wm_get_pieces;

/* Fields are for reading; begin with wm_get_init() or wm_get_open(). */
struct wm_get {
	const unsigned char *at;
	const unsigned char *end; /* of those at hand */
	bool failed;
	struct wm_get_pieces *pieces; /* NULL: all are at hand */
};

/* The bytes are borrowed, and there is nothing to close. */
void wm_get_init(struct wm_get *in, struct wm_span bytes);

/* len bytes of a source. A read that fails is a failure of the reader as any other; why is between the source and its owner. */
void wm_get_open(struct wm_get *in, const struct wm_get_source *source, uint64_t len);
void wm_get_close(struct wm_get *in); /* and with it goes what was borrowed */

/* Texts that were got until now are needed no longer. */
void wm_get_give_back(struct wm_get *in);

uint8_t wm_get_u8(struct wm_get *in);
uint32_t wm_get_u32(struct wm_get *in);
uint64_t wm_get_u64(struct wm_get *in);
int64_t wm_get_i64(struct wm_get *in);
double wm_get_double(struct wm_get *in);
uint64_t wm_get_varint(struct wm_get *in);
struct wm_span wm_get_span(struct wm_get *in);              /* points into the bytes */
struct wm_span wm_get_bytes(struct wm_get *in, size_t len); /* so too, where the length is known */

/* Bytes not yet read; 0 after a failure. */
size_t wm_get_left(const struct wm_get *in);

/* For decoders that find a value impossible. */
void wm_get_fail(struct wm_get *in);

#endif
