/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ascii - what a byte is, whatever the locale: those of <ctype.h> ask it.
 */
#ifndef WM_BASE_ASCII_H
#define WM_BASE_ASCII_H

#include <stdbool.h>

static inline bool
wm_is_digit(char byte)
{
	return (unsigned)((unsigned char)byte - '0') < 10;
}

static inline bool
wm_is_letter(char byte)
{
	return (unsigned)(((unsigned char)byte | 0x20) - 'a') < 26;
}

/* Letters from A to Z as their small ones; any other byte as it is. */
static inline char
wm_lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte + ('a' - 'A')) : byte;
}

#endif
