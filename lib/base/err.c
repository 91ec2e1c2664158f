/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

bool
wm_err_set(struct wm_err *err, enum wm_err_code code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int len = vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(err->message))
		memcpy(err->message + sizeof(err->message) - 4, "...", 4);
	err->code = code;
	return false;
}
