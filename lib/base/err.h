/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err - what went wrong, as one complete message.
 *
 * A function that can fail returns false, NULL or an enum and fills a struct
 * wm_err that the caller passed in. On success the struct is left untouched.
 * The message is whole: place ("in.csv:17"), what is wrong and what to do;
 * lower case, no full stop, no program name (cmd/ puts that before it).
 */
#ifndef WM_BASE_ERR_H
#define WM_BASE_ERR_H

#include <stdbool.h>

#define WM_MUST_CHECK __attribute__((warn_unused_result))
#define WM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum wm_err_code {
	WM_ERR_NONE = 0,
	WM_ERR_USAGE, /* the command line asks for what cannot be: exit 2 */
	WM_ERR_DATA,  /* the records are not what they should be: exit 1 */
	WM_ERR_IO,    /* input, output or checkpoint: exit 3 */
	WM_ERR_LIMIT, /* a stated limit was passed: exit 4 */
};

/* Longest message that is kept; a longer one ends in "...". */
#define WM_ERR_MESSAGE_MAX 1024

/* Fields are for reading; fill it through wm_err_set(). */
struct wm_err {
	enum wm_err_code code;
	char message[WM_ERR_MESSAGE_MAX];
};

/* Always returns false, so that a failing function can end in `return wm_err_set(...)`. */
bool wm_err_set(struct wm_err *err, enum wm_err_code code, const char *format, ...) WM_PRINTF(3, 4);

#endif
