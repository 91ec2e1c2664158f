/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8 - what is a character of UTF-8 and what is not.
 */
#ifndef WM_BASE_UTF8_H
#define WM_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest character. */
#define WM_UTF8_LEN_MAX 4

/*
 * Bytes of the character that a text of len bytes (at least 1) begins with; 0
 * where it begins with none: a stray or missing continuation byte, an overlong
 * form, a surrogate, or beyond U+10FFFF.
 */
static inline size_t
wm_utf8_len(const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xBF; /* bounds of the second byte */
	size_t want;

	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xC2 && at[0] <= 0xDF)
		want = 2;
	else if ((at[0] & 0xF0) == 0xE0)
		want = 3;
	else if (at[0] >= 0xF0 && at[0] <= 0xF4)
		want = 4;
	else
		return 0;
	if (at[0] == 0xE0)
		low = 0xA0;
	else if (at[0] == 0xED)
		high = 0x9F;
	else if (at[0] == 0xF0)
		low = 0x90;
	else if (at[0] == 0xF4)
		high = 0x8F;
	if (len < want || at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < want; i++)
		if ((at[i] & 0xC0) != 0x80)
			return 0;
	return want;
}

/*
 * Half of a surrogate pair that a text begins with, in the three bytes of WTF-8; 0 where it begins with none. UTF-8 has
 * no such character, but \u escapes of JSON can write it.
 */
static inline uint32_t
wm_utf8_surrogate(const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text;

	if (len < 3 || at[0] != 0xED || (at[1] & 0xE0) != 0xA0 || (at[2] & 0xC0) != 0x80)
		return 0;
	return UINT32_C(0xD000) | (at[1] & UINT32_C(0x3F)) << 6 | (at[2] & UINT32_C(0x3F));
}

/* Writes a character, or half of a surrogate pair, to out and returns its bytes; U+FFFD in place of what is beyond U+10FFFF. */
static inline size_t
wm_utf8_put(uint32_t code, char out[WM_UTF8_LEN_MAX])
{
	static const unsigned char first[] = { 0, 0xC0, 0xE0, 0xF0 };

	if (code > 0x10FFFF)
		code = 0xFFFD;
	unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

	out[0] = (char)(first[more] | code >> 6 * more);
	for (unsigned i = 1; i <= more; i++)
		out[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3F));
	return more + 1;
}

#endif
