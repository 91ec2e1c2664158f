/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/near.h"

#include <stdarg.h>

#include "tests/unit/tap.h"

static void
tap_near(const char *word, const char *want, const char *const *known)
{
	struct wm_near near = wm_near_to(wm_span_of(word));

	for (size_t i = 0; known[i] != NULL; i++)
		wm_near_try(&near, wm_span_of(known[i]));
	if (want == NULL)
		tap_ok(near.best.data == NULL, "nothing is near '%s'", word);
	else
		tap_ok(near.best.data != NULL && wm_span_is(near.best, want), "'%s' is near '%s'", word, want);
}

int
main(void)
{
	static const char *const columns[] = { "time", "updated", "net", "mag", "place", NULL };
	char longest[66];

	memset(longest, 'x', 65);
	longest[65] = '\0';
	tap_near("tmie", "time", columns);        /* swapped */
	tap_near("tim", "time", columns);         /* left out */
	tap_near("updatedd", "updated", columns); /* put in */
	tap_near("palce", "place", columns);
	tap_near("TMIE", "time", columns); /* replaced */
	tap_near("latency", NULL, columns);
	tap_near("xyz", NULL, columns);
	tap_near("x", NULL, columns);
	tap_near("", NULL, columns);
	/* of the different letters of what is meant the word has half, or more */
	tap_near("null", NULL, (const char *const[]){ "fill", NULL });
	tap_near("fall", "fill", (const char *const[]){ "fill", NULL });
	tap_near("on", NULL, (const char *const[]){ "tz", "by", NULL });
	tap_near("FULL", "fill", (const char *const[]){ "fill", NULL });
	tap_near(longest, NULL, (const char *const[]){ longest, NULL }); /* too long to be a slip */
	return tap_done();
}
