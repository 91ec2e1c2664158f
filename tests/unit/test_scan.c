#include "lib/record/scan.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/unit/tap.h"

/* The text with the slack that a scan needs, full of what it must not see. */
static char *
with_slack(struct wm_span text)
{
	char *copy = wm_malloc(text.len + WM_SCAN_SLACK);

	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	for (size_t i = 0; i < WM_SCAN_SLACK; i++)
		copy[text.len + i] = ",\n\""[i % 3];
	return copy;
}

/* Byte by byte. False with a "#" line where the index says something else. */
static bool
agrees(const struct wm_scan *scan, struct wm_span text, char delimiter)
{
	size_t row = 0, separator = 0, rows_count = 0, bytes = 0;
	size_t end = text.len < WM_SCAN_BYTES_MAX ? text.len : WM_SCAN_BYTES_MAX;

	for (size_t at = 0; at < end && text.data[at] != '"'; at++) {
		if (text.data[at] == '\n') {
			rows_count++;
			bytes = at + 1;
		}
	}
	if (scan->rows_count != rows_count || scan->bytes != bytes || scan->rows[0] != 0 || scan->after[0] != 0) {
		printf("# %zu rows in %zu bytes, want %zu in %zu\n", scan->rows_count, scan->bytes, rows_count, bytes);
		return false;
	}
	for (size_t at = 0; at < bytes; at++) {
		if (text.data[at] != delimiter && text.data[at] != '\n')
			continue;
		separator++;
		if (scan->after[separator] != at + 1) {
			printf("# separator %zu at %zu: ends at %u\n", separator, at, scan->after[separator]);
			return false;
		}
		if (text.data[at] == '\n' && scan->rows[++row] != separator) {
			printf("# row %zu: last separator %u, want %zu\n", row, scan->rows[row], separator);
			return false;
		}
	}
	return true;
}

static bool
check(struct wm_scan *scan, struct wm_span text)
{
	char *copy = with_slack(text);
	bool is_well;

	wm_scan_batch(scan, wm_span(copy, text.len));
	is_well = agrees(scan, text, scan->delimiter);
	if (!is_well)
		printf("# '%.*s'\n", (int)(text.len > 200 ? 200 : text.len), text.data);
	free(copy);
	return is_well;
}

static bool
check_random(struct wm_scan *scan)
{
	uint64_t random = 7;
	bool is_well = true;
	char text[400];

	for (int i = 0; i < 20000 && is_well; i++) {
		/* From nearly no separators to nothing else; a quote in every third text. */
		size_t len = tap_random(&random) % sizeof(text), density = 1 + tap_random(&random) % 40;

		for (size_t k = 0; k < len; k++) {
			uint64_t letter = tap_random(&random) % density;

			text[k] = letter == 0 ? '\n' : letter <= 3 ? ',' : "ab;\r"[letter % 4];
		}
		if (len > 0 && i % 3 == 0)
			text[tap_random(&random) % len] = '"';
		is_well = check(scan, wm_span(text, len));
	}
	return is_well;
}

/* Borders of blocks and of the batch. */
static bool
check_borders(struct wm_scan *scan)
{
	static char text[WM_SCAN_BYTES_MAX + 200];
	bool is_well = true;

	for (size_t len = 0; len <= 130 && is_well; len++) {
		memset(text, 'x', sizeof(text));
		is_well = check(scan, wm_span(text, len));
		memset(text, ',', sizeof(text));
		text[len] = '\n';
		is_well = is_well && check(scan, wm_span(text, len + 1));
		memset(text, '\n', sizeof(text));
		text[len] = '"';
		is_well = is_well && check(scan, wm_span(text, 140));
	}
	memset(text, '\n', sizeof(text));
	is_well = is_well && check(scan, wm_span(text, sizeof(text))); /* most rows */
	memset(text, ',', sizeof(text));
	is_well = is_well && check(scan, wm_span(text, sizeof(text))); /* no row in the batch */
	text[WM_SCAN_BYTES_MAX - 1] = '\n';
	is_well = is_well && check(scan, wm_span(text, sizeof(text))); /* one that fills it */
	text[WM_SCAN_BYTES_MAX - 1] = ',';
	text[WM_SCAN_BYTES_MAX] = '\n';
	return is_well && check(scan, wm_span(text, sizeof(text))); /* one byte too long */
}

int
main(void)
{
	static const char *const names[] = { "plain", "SSE2", "AVX2", "AVX-512" };
	struct wm_scan *scan = wm_scan_new(',', wm_scan_best_way());
	char *copy = with_slack(wm_span_of("1,ab\n22,c\r\n\n3,\"d\n"));

	wm_scan_batch(scan, wm_span(copy, 17));
	tap_int((int64_t)scan->rows_count, 3, "the record with a quote is left");
	tap_int((int64_t)scan->bytes, 12, "and does not count");
	tap_int(scan->rows[1], 2, "two fields in the first record");
	tap_int(scan->after[1], 2, "its second begins at 2");
	tap_int(scan->after[2] - 1, 4, "and ends at 4");
	tap_int(scan->rows[3] - scan->rows[2], 1, "an empty line has one");
	wm_scan_batch(scan, wm_span(copy, 4));
	tap_ok(scan->rows_count == 0 && scan->bytes == 0, "half a record is none");
	wm_scan_free(scan);
	scan = wm_scan_new('\t', wm_scan_best_way());
	wm_scan_batch(scan, wm_span(copy, 17));
	tap_int(scan->rows[1], 1, "another delimiter");
	wm_scan_free(scan);
	free(copy);
	for (enum wm_scan_way way = WM_SCAN_PLAIN; way <= wm_scan_best_way(); way++) {
		scan = wm_scan_new(',', way);
		tap_ok(check_random(scan), "%s: random texts as byte by byte", names[way]);
		tap_ok(check_borders(scan), "%s: borders of blocks and of the batch", names[way]);
		wm_scan_free(scan);
	}
	return tap_done();
}
