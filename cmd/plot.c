/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/plot.h"

#include <inttypes.h>
#include <stdio.h>

/* "negative", "to 100ms" */
#define LABEL_PLACES 8

/* On a narrow terminal lines wrap rather than bars vanish. */
#define BAR_PLACES_MIN 10

/* Upper bounds of its bars; the last bar has none. */
static const struct {
	int64_t us;
	const char *text;
} bounds[] = {
	{ 0, "0s" },
	{ 1000, "1ms" },
	{ 3000, "3ms" },
	{ 10000, "10ms" },
	{ 30000, "30ms" },
	{ 100000, "100ms" },
	{ 300000, "300ms" },
	{ 1000000, "1s" },
	{ 3000000, "3s" },
	{ 10000000, "10s" },
	{ 30000000, "30s" },
	{ 60000000, "1m" },
	{ 180000000, "3m" },
	{ 600000000, "10m" },
	{ 1800000000, "30m" },
	{ 3600000000, "1h" },
	{ 10800000000, "3h" },
	{ 21600000000, "6h" },
	{ 43200000000, "12h" },
	{ 86400000000, "1d" },
	{ 259200000000, "3d" },
	{ 604800000000, "1w" },
	{ 2592000000000, "30d" },
	{ 7776000000000, "90d" },
	{ 31536000000000, "365d" },
};
#define BOUNDS_COUNT (sizeof(bounds) / sizeof(bounds[0]))
#define BARS_COUNT (BOUNDS_COUNT + 2) /* negative ones before, and those above all bounds */

/* Full blocks, then eighths of one; count > 0 shows, be it ever so little. */
static void
put_bar(uint64_t count, uint64_t most, size_t places, const struct plot_screen *screen, struct wm_buf *out)
{
	static const char *const eighths[] = { "", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a",
		"\u2589" };
	size_t parts = screen->is_utf8 ? 8 : 1;
	size_t length = (size_t)((wm_int128)count * (wm_int128)(places * parts) / most);

	if (length == 0)
		length = 1;
	wm_buf_add_text(out, screen->has_colour ? "  \033[36m" : "  ");
	for (size_t i = 0; i < length / parts; i++)
		wm_buf_add_text(out, screen->is_utf8 ? "\u2588" : "#");
	if (screen->is_utf8)
		wm_buf_add_text(out, eighths[length % parts]);
	if (screen->has_colour)
		wm_buf_add_text(out, "\033[0m");
}

void
plot_series(const char *name, const struct wm_lag_series *series, const struct plot_screen *screen, struct wm_buf *out)
{
	uint64_t counts[BARS_COUNT], most = 0, above = series->count - series->negative;
	size_t first = BARS_COUNT, last = 0;
	int digits = 1;

	counts[0] = series->negative;
	for (size_t i = 0; i < BOUNDS_COUNT; i++) {
		uint64_t left = wm_lag_above(series, bounds[i].us);

		counts[i + 1] = above - left;
		above = left;
	}
	counts[BARS_COUNT - 1] = above;
	for (size_t i = 0; i < BARS_COUNT; i++) {
		if (counts[i] == 0)
			continue;
		/* the bars between 0 and the least size would be a long nothing */
		first = first < 2 || first > i ? i : first;
		last = i;
		most = counts[i] > most ? counts[i] : most;
	}
	for (uint64_t rest = most; rest >= 10; rest /= 10)
		digits++;
	size_t used = LABEL_PLACES + (size_t)digits + 4;
	size_t places = screen->width > used + BAR_PLACES_MIN ? screen->width - used : BAR_PLACES_MIN;
	wm_buf_addf(out, "%s, rows by size:\n", name);
	for (size_t i = 0; i <= last; i++) {
		if (i < first && counts[i] == 0)
			continue;
		char label[2 * LABEL_PLACES];
		const char *before = i > 1 && i <= BOUNDS_COUNT ? "to " : "";

		snprintf(label, sizeof(label), "%s%s", before,
			i == 0                      ? "negative"
				: i <= BOUNDS_COUNT ? bounds[i - 1].text
						    : "> 365d");
		wm_buf_addf(out, "%*s  %*" PRIu64, LABEL_PLACES, label, digits, counts[i]);
		if (counts[i] != 0)
			put_bar(counts[i], most, places, screen, out);
		wm_buf_add_byte(out, '\n');
	}
}
