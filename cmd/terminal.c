/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>

unsigned
terminal_width(int fd)
{
	struct winsize size = { 0 };

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool
terminal_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = getenv(names[i]);

		if (text == NULL || text[0] == '\0')
			continue;
		const char *codeset = strchr(text, '.');
		return codeset != NULL &&
			(strncasecmp(codeset, ".utf-8", 6) == 0 || strncasecmp(codeset, ".utf8", 5) == 0);
	}
	return false;
}
