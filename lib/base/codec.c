/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/codec.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* Read from a source at once. */
#define PIECE_BYTES ((size_t)64 << 10)

static void
put_bytes(struct wm_buf *out, uint64_t value, size_t size)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	wm_buf_add(out, bytes, size);
}

void
wm_put_u8(struct wm_buf *out, uint8_t value)
{
	put_bytes(out, value, 1);
}

void
wm_put_u32(struct wm_buf *out, uint32_t value)
{
	put_bytes(out, value, 4);
}

void
wm_put_u64(struct wm_buf *out, uint64_t value)
{
	put_bytes(out, value, 8);
}

void
wm_put_i64(struct wm_buf *out, int64_t value)
{
	put_bytes(out, (uint64_t)value, 8);
}

void
wm_put_double(struct wm_buf *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_bytes(out, bits, 8);
}

void
wm_put_varint(struct wm_buf *out, uint64_t value)
{
	while (value >= 0x80) {
		wm_put_u8(out, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	wm_put_u8(out, (uint8_t)value);
}

void
wm_put_span(struct wm_buf *out, struct wm_span text)
{
	wm_put_varint(out, text.len);
	wm_buf_add(out, text.data, text.len);
}

void
wm_get_init(struct wm_get *in, struct wm_span bytes)
{
	const unsigned char *begin = (const unsigned char *)bytes.data;

	*in = (struct wm_get){ .at = begin, .end = bytes.len == 0 ? begin : begin + bytes.len };
}

struct piece {
	struct piece *before; /* older ones are kept only for what was borrowed of them */
	size_t capacity;
	unsigned char bytes[];
};

struct wm_get_pieces {
	struct wm_get_source source;
	uint64_t behind; /* bytes that were not read yet */
	struct piece *last;
	bool is_lent; /* texts were got since the last give back */
};

void
wm_get_open(struct wm_get *in, const struct wm_get_source *source, uint64_t len)
{
	wm_get_init(in, wm_span("", 0));
	in->pieces = wm_calloc(1, sizeof(*in->pieces));
	in->pieces->source = *source;
	in->pieces->behind = len;
}

static void
free_pieces(struct piece *piece)
{
	while (piece != NULL) {
		struct piece *before = piece->before;

		free(piece);
		piece = before;
	}
}

void
wm_get_close(struct wm_get *in)
{
	if (in->pieces != NULL)
		free_pieces(in->pieces->last);
	free(in->pieces);
	*in = (struct wm_get){ .failed = true };
}

static void
drop_older(struct wm_get_pieces *pieces)
{
	if (pieces->last == NULL)
		return;
	free_pieces(pieces->last->before);
	pieces->last->before = NULL;
}

void
wm_get_give_back(struct wm_get *in)
{
	if (in->pieces == NULL || !in->pieces->is_lent)
		return;
	in->pieces->is_lent = false;
	drop_older(in->pieces);
}

/* Makes the next len bytes, more than are at hand, stand in one piece. */
static bool
fetch(struct wm_get *in, size_t len)
{
	struct wm_get_pieces *pieces = in->pieces;

	/* Before memory is taken. */
	if (wm_get_left(in) < len)
		return false;
	size_t rest = (size_t)(in->end - in->at), capacity = len < PIECE_BYTES ? PIECE_BYTES : len;
	size_t more = capacity - rest < pieces->behind ? capacity - rest : (size_t)pieces->behind;
	if (pieces->is_lent || pieces->last == NULL || pieces->last->capacity < capacity) {
		struct piece *piece = wm_malloc(sizeof(*piece) + capacity);

		piece->before = pieces->last;
		piece->capacity = capacity;
		pieces->last = piece;
	}
	unsigned char *bytes = pieces->last->bytes;
	if (rest != 0)
		memmove(bytes, in->at, rest);
	if (!pieces->is_lent)
		drop_older(pieces);
	in->at = bytes;
	in->end = bytes + rest;
	if (!pieces->source.read(pieces->source.self, bytes + rest, more))
		return false;
	pieces->behind -= more;
	in->end += more;
	return true;
}

/* Whether the next len bytes are at hand; a failure if there are not so many. */
static bool
has_bytes(struct wm_get *in, size_t len)
{
	if (!in->failed && ((size_t)(in->end - in->at) >= len || fetch(in, len)))
		return true;
	wm_get_fail(in);
	return false;
}

static uint64_t
get_bytes(struct wm_get *in, size_t size)
{
	uint64_t value = 0;

	if (!has_bytes(in, size))
		return 0;
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)in->at[i] << (8 * i);
	in->at += size;
	return value;
}

uint8_t
wm_get_u8(struct wm_get *in)
{
	return (uint8_t)get_bytes(in, 1);
}

uint32_t
wm_get_u32(struct wm_get *in)
{
	return (uint32_t)get_bytes(in, 4);
}

uint64_t
wm_get_u64(struct wm_get *in)
{
	return get_bytes(in, 8);
}

int64_t
wm_get_i64(struct wm_get *in)
{
	return (int64_t)get_bytes(in, 8);
}

double
wm_get_double(struct wm_get *in)
{
	uint64_t bits = get_bytes(in, 8);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

uint64_t
wm_get_varint(struct wm_get *in)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = wm_get_u8(in);

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return in->failed ? 0 : value;
	}
	wm_get_fail(in);
	return 0;
}

struct wm_span
wm_get_span(struct wm_get *in)
{
	return wm_get_bytes(in, wm_get_varint(in));
}

struct wm_span
wm_get_bytes(struct wm_get *in, size_t len)
{
	if (!has_bytes(in, len))
		return wm_span("", 0);
	struct wm_span text = wm_span((const char *)in->at, len);
	in->at += len;
	if (in->pieces != NULL)
		in->pieces->is_lent = true;
	return text;
}

size_t
wm_get_left(const struct wm_get *in)
{
	if (in->failed)
		return 0;
	return (size_t)(in->end - in->at) + (in->pieces == NULL ? 0 : (size_t)in->pieces->behind);
}

void
wm_get_fail(struct wm_get *in)
{
	in->failed = true;
}
