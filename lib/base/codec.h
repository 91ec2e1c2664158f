/*
 * codec - numbers and texts as bytes of a checkpoint, and back with bounds.
 *
 * Little-endian, whatever the machine. Putting goes to a wm_buf born
 * WM_BUF_UNBOUNDED and cannot fail. Getting checks every length against the
 * bytes that are left: a reader that ran past its end, or met an impossible
 * value, keeps failing (failed is set, values are 0), so that a decoder may
 * check once at its end; but before memory is taken for a count that was read,
 * compare it with wm_get_left().
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

/* Fields are for reading; begin with wm_get_init(). The bytes are borrowed. */
struct wm_get {
	const unsigned char *at;
	const unsigned char *end;
	bool failed;
};

void wm_get_init(struct wm_get *in, struct wm_span bytes);
uint8_t wm_get_u8(struct wm_get *in);
uint32_t wm_get_u32(struct wm_get *in);
uint64_t wm_get_u64(struct wm_get *in);
int64_t wm_get_i64(struct wm_get *in);
double wm_get_double(struct wm_get *in);
uint64_t wm_get_varint(struct wm_get *in);
struct wm_span wm_get_span(struct wm_get *in); /* points into the bytes */

/* Bytes not yet read; 0 after a failure. */
size_t wm_get_left(const struct wm_get *in);

/* For decoders that find a value impossible. */
void wm_get_fail(struct wm_get *in);

#endif
