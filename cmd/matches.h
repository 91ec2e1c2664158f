/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matches - which rows of two inputs belong together, as the command line gives it.
 *
 * Errors are WM_ERR_USAGE, and begin behind the option's name: whether that was typed now, or stands in a checkpoint, the
 * caller knows.
 */
#ifndef WM_CMD_MATCHES_H
#define WM_CMD_MATCHES_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/op/join.h"

/* In the order of enum wm_join_type. */
#define MATCHES_TYPES 6
extern const char *const matches_types[MATCHES_TYPES];

/* "LO,HI": an end left empty is open, one in round brackets strict. */
WM_MUST_CHECK bool matches_read_between(struct wm_join_options *options, const char *between, struct wm_err *err);

/* Whether the type is one that the condition can have. */
bool matches_have_type(const struct wm_join_options *options);

/* Whether each row that is written for want of a match is so before the end of time. */
bool matches_come_to_an_end(const struct wm_join_options *options);

#endif
