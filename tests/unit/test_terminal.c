/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/tap.h"

static void
set(const char *name, const char *value)
{
	if (value == NULL)
		unsetenv(name);
	else
		setenv(name, value, 1);
}

static void
test_locales(void)
{
	static const struct {
		const char *lc_all, *lc_ctype, *lang;
		bool is_utf8;
	} cases[] = {
		{ NULL, NULL, NULL, false },
		{ NULL, NULL, "en_US.UTF-8", true },
		{ NULL, NULL, "C.utf8", true },
		{ NULL, NULL, "de_DE.utf8@euro", true },
		{ "C", NULL, "en_US.UTF-8", false },
		{ "", "", "en_US.UTF-8", true },
		{ NULL, "de_DE.ISO-8859-1", "en_US.UTF-8", false },
		{ NULL, "C.UTF-8", "C", true },
		{ NULL, NULL, "utf8", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set("LC_ALL", cases[i].lc_all);
		set("LC_CTYPE", cases[i].lc_ctype);
		set("LANG", cases[i].lang);
		tap_int(terminal_is_utf8(), cases[i].is_utf8, "which locales are UTF-8");
	}
}

static void
test_width(void)
{
	struct winsize size = { .ws_col = 132, .ws_row = 24 };
	int controller, terminal, file = open("/dev/null", O_RDONLY);

	tap_int((int64_t)terminal_width(file), 0, "a file has no width");
	close(file);
	tap_ok(openpty(&controller, &terminal, NULL, NULL, &size) == 0, "a terminal is had");
	tap_int((int64_t)terminal_width(terminal), 132, "and says its width");
	close(controller);
	close(terminal);
}

int
main(void)
{
	test_locales();
	test_width();
	return tap_done();
}
