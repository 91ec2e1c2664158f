#include "lib/base/codec.h"

#include <string.h>

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
	in->at = (const unsigned char *)bytes.data;
	in->end = in->at + bytes.len;
	in->failed = false;
}

static uint64_t
get_bytes(struct wm_get *in, size_t size)
{
	uint64_t value = 0;

	if (wm_get_left(in) < size) {
		wm_get_fail(in);
		return 0;
	}
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
	uint64_t len = wm_get_varint(in);

	if (len > wm_get_left(in)) {
		wm_get_fail(in);
		return wm_span("", 0);
	}
	struct wm_span text = wm_span((const char *)in->at, (size_t)len);
	in->at += len;
	return text;
}

size_t
wm_get_left(const struct wm_get *in)
{
	return in->failed ? 0 : (size_t)(in->end - in->at);
}

void
wm_get_fail(struct wm_get *in)
{
	in->failed = true;
}
