/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/progress.h"

#include <inttypes.h>
#include <string.h>

#include "lib/event/watermark.h"
#include "lib/time/instant.h"

/* Work that is done sooner needs no bar. */
#define AFTER_US 2000000
#define INTERVAL_US 100000

#define COLUMNS_DEFAULT 80

/* Cells of the bar; with fewer it says nothing that the percentage does not. */
#define CELLS_MIN 6
#define CELLS_MAX 40

#define WIPE "\r\033[K"

/* What a line may hold beside the percentage. */
enum part {
	PART_BAR = 1 << 0,
	PART_ROWS = 1 << 1,
	PART_RATE = 1 << 2,
	PART_LATE = 1 << 3,
	PART_WATERMARK = 1 << 4,
	PART_LEFT = 1 << 5, /* how long it will take yet */
};

/* From the fullest to the shortest; the first that fits is taken. */
static const unsigned layouts[] = {
	PART_BAR | PART_ROWS | PART_RATE | PART_LATE | PART_WATERMARK | PART_LEFT,
	PART_BAR | PART_ROWS | PART_LATE | PART_WATERMARK | PART_LEFT,
	PART_ROWS | PART_RATE | PART_LATE | PART_WATERMARK | PART_LEFT,
	PART_ROWS | PART_LATE | PART_WATERMARK | PART_LEFT,
	PART_BAR | PART_ROWS | PART_LATE | PART_LEFT,
	PART_ROWS | PART_LATE | PART_LEFT,
	PART_ROWS | PART_LEFT,
	PART_LEFT,
	PART_ROWS,
	0,
};

void
progress_init(struct progress *progress, const struct progress_facts *facts, int64_t now_us)
{
	bool is_capable = facts->term != NULL && facts->term[0] != '\0' && strcmp(facts->term, "dumb") != 0;
	bool is_fit = is_capable && facts->is_input_regular && !facts->is_stdout_terminal;

	*progress = (struct progress){
		.is_wanted = facts->is_stderr_terminal && (facts->is_forced || is_fit),
		.is_utf8 = facts->is_utf8,
		.bytes_total = facts->bytes_total,
		.started_us = now_us,
		.due_us = facts->is_forced ? now_us : now_us + AFTER_US,
	};
}

/* Parts */

/* Whole percents, 100 not before all is done. A file may have grown since it was measured. */
static unsigned
percent_of(const struct progress *progress, uint64_t bytes)
{
	if (bytes >= progress->bytes_total)
		return bytes == progress->bytes_total ? 100 : 99;
	return (unsigned)((double)bytes * 100 / (double)progress->bytes_total);
}

static void
add_bar(struct wm_buf *out, unsigned percent, size_t cells, bool is_utf8_wanted)
{
	size_t full = cells * percent / 100;

	wm_buf_add_text(out, " [");
	for (size_t i = 0; i < cells; i++) {
		if (is_utf8_wanted)
			wm_buf_add_text(out, i < full ? "\xe2\x96\x88" : "\xe2\x96\x91");
		else
			wm_buf_add_byte(out, i < full ? '#' : '-');
	}
	wm_buf_add_byte(out, ']');
}

/* At most four digits: the last of more would change too fast to be read. */
static void
add_rate(struct wm_buf *out, uint64_t rows, int64_t elapsed_us)
{
	double rate = (double)rows * 1e6 / (double)elapsed_us;

	if (rate < 9999.5)
		wm_buf_addf(out, "%.0f/s", rate);
	else if (rate < 999500)
		wm_buf_addf(out, "%.0fk/s", rate / 1e3);
	else
		wm_buf_addf(out, "%.1fM/s", rate / 1e6);
}

/* To the second: fractions of a watermark are noise here. */
static void
add_watermark(struct wm_buf *out, int64_t watermark_us)
{
	char text[WM_INSTANT_TEXT_MAX];
	int64_t second_us = watermark_us % 1000000;
	int64_t whole_us = watermark_us - (second_us < 0 ? second_us + 1000000 : second_us);

	wm_buf_add_text(out, "watermark ");
	wm_buf_add(out, text, wm_instant_print(whole_us, WM_UNIT_ISO, wm_zone_utc(), text));
}

static void
add_left(struct wm_buf *out, const struct progress *progress, uint64_t bytes, int64_t elapsed_us)
{
	uint64_t rest = bytes < progress->bytes_total ? progress->bytes_total - bytes : 0;
	double seconds = (double)elapsed_us / 1e6 * (double)rest / (double)bytes;
	unsigned long long left = seconds < 1e9 ? (unsigned long long)(seconds + 0.5) : 1000000000;

	if (left >= 360000)
		wm_buf_addf(out, "%llud %lluh left", left / 86400, left / 3600 % 24);
	else if (left >= 3600)
		wm_buf_addf(out, "%llu:%02llu:%02llu left", left / 3600, left / 60 % 60, left % 60);
	else
		wm_buf_addf(out, "%llu:%02llu left", left / 60, left % 60);
}

/* The words of a layout, behind the percentage and the bar. */
static void
add_words(struct wm_buf *out, const struct progress *progress, const struct progress_status *status, unsigned layout,
	int64_t elapsed_us)
{
	const char *separator = progress->bytes_total == 0 ? "" : " ";

	for (unsigned part = PART_ROWS; part <= PART_LEFT; part <<= 1) {
		size_t begin = out->len;

		if ((layout & part) == 0)
			continue;
		wm_buf_add_text(out, separator);
		size_t words = out->len;
		if (part == PART_ROWS)
			wm_buf_addf(out, "%" PRIu64 " row%s", status->rows, status->rows == 1 ? "" : "s");
		else if (part == PART_RATE && elapsed_us > 0)
			add_rate(out, status->rows, elapsed_us);
		else if (part == PART_LATE && status->has_watermark)
			wm_buf_addf(out, "%" PRIu64 " late", status->rows_late);
		else if (part == PART_WATERMARK && status->watermark_us != WM_TIME_NONE)
			add_watermark(out, status->watermark_us);
		else if (part == PART_LEFT && progress->bytes_total != 0 && status->bytes != 0)
			add_left(out, progress, status->bytes, elapsed_us);
		/* What has nothing to say takes no separator either. */
		if (out->len == words)
			out->len = begin;
		else
			separator = ", ";
	}
}

/* Appends the line of a layout if it fits the width; the words are all of one column a byte. */
static bool
add_line(struct wm_buf *out, const struct progress *progress, const struct progress_status *status, unsigned layout,
	size_t width, int64_t elapsed_us)
{
	unsigned percent = progress->bytes_total == 0 ? 0 : percent_of(progress, status->bytes);
	size_t head = progress->bytes_total == 0 ? 0 : strlen("100%");
	bool has_bar = (layout & PART_BAR) != 0 && progress->bytes_total != 0;
	size_t cells = 0, begin = out->len;

	add_words(out, progress, status, layout, elapsed_us);
	size_t words = out->len - begin;
	out->len = begin;
	if (has_bar && head + words + strlen(" []") + CELLS_MIN <= width)
		cells = width - head - words - strlen(" []");
	if (head + words > width || (has_bar && cells == 0))
		return false;
	if (head != 0)
		wm_buf_addf(out, "%3u%%", percent);
	if (has_bar)
		add_bar(out, percent, cells < CELLS_MAX ? cells : CELLS_MAX, progress->is_utf8);
	add_words(out, progress, status, layout, elapsed_us);
	return true;
}

void
progress_show(struct progress *progress, const struct progress_status *status, unsigned columns, int64_t now_us,
	struct wm_buf *out)
{
	/* The last column stays free: some terminals go to the next line when it is filled. */
	size_t width = (columns == 0 ? COLUMNS_DEFAULT : columns) - 1;
	size_t layout = 0;

	if (!progress_is_due(progress, now_us))
		return;
	wm_buf_add_text(out, WIPE);
	while (layout < sizeof(layouts) / sizeof(layouts[0]) &&
		!add_line(out, progress, status, layouts[layout], width, now_us - progress->started_us))
		layout++;
	progress->is_visible = true;
	progress->due_us = now_us + INTERVAL_US;
}

void
progress_hide(struct progress *progress, struct wm_buf *out)
{
	if (progress->is_visible)
		wm_buf_add_text(out, WIPE);
	progress->is_visible = false;
}
