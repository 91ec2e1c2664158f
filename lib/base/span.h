/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span - borrowed text: a pointer and a length.
 *
 * The bytes belong to somebody else and may hold NUL. A span that came from a
 * reader is valid until the next read; whoever keeps the text copies it.
 */
#ifndef WM_BASE_SPAN_H
#define WM_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wm_span {
	const char *data;
	size_t len;
};

static inline struct wm_span
wm_span(const char *data, size_t len)
{
	return (struct wm_span){ data, len };
}

/* The text of a C string, without its NUL. */
static inline struct wm_span
wm_span_of(const char *text)
{
	return (struct wm_span){ text, strlen(text) };
}

/* Texts of up to so many bytes, which most keys and names are, are loaded in two words. */
#define WM_SPAN_SHORT_MAX 16

/* A short text in two words, which may overlap: texts of one length that have the same words are equal. */
struct wm_span_words {
	uint64_t low;
	uint64_t high;
};

static inline struct wm_span_words
wm_span_words(struct wm_span text)
{
	struct wm_span_words words = { 0, 0 };

	if (text.len >= 8) {
		memcpy(&words.low, text.data, 8);
		memcpy(&words.high, text.data + text.len - 8, 8);
	} else if (text.len >= 4) {
		uint32_t head, tail;

		memcpy(&head, text.data, 4);
		memcpy(&tail, text.data + text.len - 4, 4);
		words.low = head;
		words.high = tail;
	} else if (text.len > 0) {
		words.low = (unsigned char)text.data[0] | (uint64_t)(unsigned char)text.data[text.len / 2] << 8 |
			(uint64_t)(unsigned char)text.data[text.len - 1] << 16;
	}
	return words;
}

/*
 * Copies a text, and returns the place behind the copy; nothing beyond either end is touched. Most are short, and a call for
 * each would cost more than the copying.
 */
static inline char *
wm_span_copy(char *to, struct wm_span text)
{
	if (text.len > 2 * WM_SPAN_SHORT_MAX) {
		memcpy(to, text.data, text.len);
	} else if (text.len > WM_SPAN_SHORT_MAX) {
		char head[WM_SPAN_SHORT_MAX], tail[WM_SPAN_SHORT_MAX];

		memcpy(head, text.data, sizeof(head));
		memcpy(tail, text.data + text.len - sizeof(tail), sizeof(tail));
		memcpy(to, head, sizeof(head));
		memcpy(to + text.len - sizeof(tail), tail, sizeof(tail));
	} else if (text.len >= 8) {
		struct wm_span_words words = wm_span_words(text);

		memcpy(to, &words.low, 8);
		memcpy(to + text.len - 8, &words.high, 8);
	} else if (text.len >= 4) {
		struct wm_span_words words = wm_span_words(text);

		memcpy(to, &words.low, 4);
		memcpy(to + text.len - 4, &words.high, 4);
	} else if (text.len > 0) {
		to[0] = text.data[0];
		to[text.len / 2] = text.data[text.len / 2];
		to[text.len - 1] = text.data[text.len - 1];
	}
	return to + text.len;
}

static inline bool
wm_span_equal(struct wm_span a, struct wm_span b)
{
	if (a.len != b.len)
		return false;
	if (a.len > WM_SPAN_SHORT_MAX)
		return memcmp(a.data, b.data, a.len) == 0;
	struct wm_span_words words_a = wm_span_words(a), words_b = wm_span_words(b);
	return ((words_a.low ^ words_b.low) | (words_a.high ^ words_b.high)) == 0;
}

static inline bool
wm_span_is(struct wm_span a, const char *text)
{
	return wm_span_equal(a, wm_span_of(text));
}

/* Order by bytes, a prefix before what it begins: <0, 0, >0. */
static inline int
wm_span_compare(struct wm_span a, struct wm_span b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int order = common == 0 ? 0 : memcmp(a.data, b.data, common);

	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
