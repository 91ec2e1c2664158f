/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/list.h"

bool
wm_list_next(struct wm_span *rest, char separator, struct wm_span *part)
{
	if (rest->data == NULL)
		return false;
	for (size_t at = 0; at < rest->len; at++) {
		if (rest->data[at] == '\\') {
			at++;
		} else if (rest->data[at] == separator) {
			*part = wm_span(rest->data, at);
			*rest = wm_span(rest->data + at + 1, rest->len - at - 1);
			return true;
		}
	}
	*part = *rest;
	*rest = wm_span(NULL, 0);
	return true;
}

void
wm_list_unescape(struct wm_span text, struct wm_buf *out)
{
	for (size_t at = 0; at < text.len; at++) {
		if (text.data[at] == '\\' && at + 1 < text.len)
			at++;
		wm_buf_add_byte(out, text.data[at]);
	}
}
