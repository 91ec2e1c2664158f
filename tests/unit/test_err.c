/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include "tests/unit/tap.h"

int
main(void)
{
	struct wm_err err = { WM_ERR_NONE, "" };
	char text[2000], want[WM_ERR_MESSAGE_MAX + 1];

	tap_ok(!wm_err_set(&err, WM_ERR_DATA, "in.csv:%d: no column '%s'", 17, "ts"), "setting an error is false");
	tap_int(err.code, WM_ERR_DATA, "its code");
	tap_text(err.message, "in.csv:17: no column 'ts'", "its message");
	wm_err_set(&err, WM_ERR_IO, "%s", "");
	tap_ok(err.code == WM_ERR_IO && err.message[0] == '\0', "the next one takes its place");

	/* A message has room for WM_ERR_MESSAGE_MAX - 1 bytes and a NUL. */
	memset(text, 'x', sizeof(text));
	text[WM_ERR_MESSAGE_MAX - 1] = '\0';
	wm_err_set(&err, WM_ERR_LIMIT, "%s", text);
	tap_text(err.message, text, "the longest message is whole");
	text[WM_ERR_MESSAGE_MAX - 1] = 'x';
	text[WM_ERR_MESSAGE_MAX] = '\0';
	memset(want, 'x', sizeof(want));
	memcpy(want + WM_ERR_MESSAGE_MAX - 4, "...", 4);
	wm_err_set(&err, WM_ERR_LIMIT, "%s", text);
	tap_text(err.message, want, "one byte more ends in ...");
	text[WM_ERR_MESSAGE_MAX] = 'x';
	text[sizeof(text) - 1] = '\0';
	wm_err_set(&err, WM_ERR_LIMIT, "%s", text);
	tap_text(err.message, want, "so do many more");
	return tap_done();
}
