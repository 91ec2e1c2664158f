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

/* Short texts, which most keys and names are, are compared in place: two loads that may overlap. */
static inline bool
wm_span_equal(struct wm_span a, struct wm_span b)
{
	if (a.len != b.len)
		return false;
	if (a.len > 16)
		return memcmp(a.data, b.data, a.len) == 0;
	if (a.len >= 8)
		return memcmp(a.data, b.data, 8) == 0 && memcmp(a.data + a.len - 8, b.data + b.len - 8, 8) == 0;
	if (a.len >= 4)
		return memcmp(a.data, b.data, 4) == 0 && memcmp(a.data + a.len - 4, b.data + b.len - 4, 4) == 0;
	for (size_t i = 0; i < a.len; i++)
		if (a.data[i] != b.data[i])
			return false;
	return true;
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
