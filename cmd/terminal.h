/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal - what the terminal behind a descriptor can show.
 */
#ifndef WM_CMD_TERMINAL_H
#define WM_CMD_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Its width in places; 0 if it is no terminal, or one that does not say. */
unsigned terminal_width(int fd);

/*
 * Whether it takes UTF-8, by the text of LC_ALL, LC_CTYPE and LANG in the
 * environment, of which the first that is set and not empty counts. No locale is set for it: nothing
 * else may depend on one.
 */
bool terminal_is_utf8(void);

#endif
