/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/shown.h"

#include "lib/base/limits.h"
#include "lib/base/utf8.h"

/* C0, DEL, and C1, which some terminals obey as well. */
static bool
is_control(const char *text, size_t len)
{
	unsigned char first = (unsigned char)text[0];

	return first < 0x20 || first == 0x7F || (len == 2 && first == 0xC2 && (unsigned char)text[1] < 0xA0);
}

void
wm_shown(struct wm_span text, struct wm_buf *out)
{
	size_t len;

	for (size_t at = 0; at < text.len; at += len) {
		size_t character_len = wm_utf8_len(text.data + at, text.len - at);

		len = character_len == 0 ? 1 : character_len;
		if (at + len > WM_SHOWN_BYTES_MAX) {
			wm_buf_add_text(out, "...");
			return;
		}
		if (character_len != 0 && !is_control(text.data + at, len)) {
			wm_buf_add(out, text.data + at, len);
			continue;
		}
		for (size_t i = 0; i < len; i++)
			wm_buf_addf(out, "\\x%02X", (unsigned char)text.data[at + i]);
	}
}
