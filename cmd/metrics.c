/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cli.h"
#include "cmd/uses.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/event/watermark.h"
#include "lib/time/instant.h"

/* Between two writings. */
#define INTERVAL_US 1000000

bool
metrics_init(struct metrics *metrics, const char *path, struct wm_err *err)
{
	struct stat found;

	*metrics = (struct metrics){ .path = path, .due_us = INT64_MIN };
	wm_buf_init(&metrics->text, WM_BUF_UNBOUNDED);
	if (path == NULL)
		return true;
	if (uses_find(path, &found) && !S_ISREG(found.st_mode))
		return wm_err_set(err, WM_ERR_USAGE, "--metrics: %s is no regular file: name one, or a new one", path);
	struct wm_buf beside;
	wm_buf_init(&beside, WM_BUF_UNBOUNDED);
	wm_buf_addf(&beside, "%s.tmp-%ld", path, (long)getpid());
	metrics->path_beside = wm_memdup(beside.data, beside.len);
	wm_buf_release(&beside);
	return true;
}

void
metrics_release(struct metrics *metrics)
{
	free(metrics->path_beside);
	wm_buf_release(&metrics->text);
}

int64_t
metrics_due_us(const struct metrics *metrics)
{
	return metrics->path == NULL ? INT64_MAX : metrics->due_us;
}

/* Text */

/* The text being made, and the labels that all its samples have. */
struct page {
	struct wm_buf *out;
	const char *tool;
	struct wm_span name;
};

void
metrics_add_label_value(struct wm_span text, struct wm_buf *out)
{
	for (size_t at = 0; at < text.len;) {
		size_t len = wm_utf8_len(text.data + at, text.len - at);

		if (len == 0)
			wm_buf_add_text(out, "\xef\xbf\xbd");
		else if (text.data[at] == '\n')
			wm_buf_add_text(out, "\\n");
		else if (text.data[at] == '"' || text.data[at] == '\\')
			wm_buf_addf(out, "\\%c", text.data[at]);
		else
			wm_buf_add(out, text.data + at, len);
		at += len == 0 ? 1 : len;
	}
}

static void
add_family(const struct page *page, const char *family, const char *type, const char *help)
{
	wm_buf_addf(page->out, "# HELP %s %s\n# TYPE %s %s\n", family, help, family, type);
}

/* A sample as far as its value; label NULL: no further one. */
static void
begin_sample(const struct page *page, const char *family, const char *label, const char *value)
{
	wm_buf_addf(page->out, "%s{tool=\"%s\",name=\"", family, page->tool);
	metrics_add_label_value(page->name, page->out);
	if (label != NULL)
		wm_buf_addf(page->out, "\",%s=\"%s", label, value);
	wm_buf_add_text(page->out, "\"} ");
}

static void
add_sample(const struct page *page, const char *family, const char *label, const char *value, uint64_t count)
{
	begin_sample(page, family, label, value);
	wm_buf_addf(page->out, "%" PRIu64 "\n", count);
}

static void
add_counter(const struct page *page, const char *family, const char *help, uint64_t count)
{
	add_family(page, family, "counter", help);
	add_sample(page, family, NULL, NULL, count);
}

static void
add_gauge(const struct page *page, const char *family, const char *help, uint64_t value)
{
	add_family(page, family, "gauge", help);
	add_sample(page, family, NULL, NULL, value);
}

/* A time or a duration, in seconds. */
static void
add_seconds(const struct page *page, const char *family, const char *help, int64_t time_us)
{
	char text[WM_INSTANT_TEXT_MAX];

	add_family(page, family, "gauge", help);
	begin_sample(page, family, NULL, NULL);
	wm_buf_add(page->out, text, wm_instant_print(time_us, WM_UNIT_S, wm_zone_utc(), text));
	wm_buf_add_byte(page->out, '\n');
}

static void
add_rows(const struct page *page, const struct report *report)
{
	add_family(page, "wm_rows_total", "counter", "Rows read, by what became of them.");
	for (size_t i = 0; i < REPORT_CLASSES; i++)
		add_sample(page, "wm_rows_total", "class", report_classes[i].name, report_class_count(report, i));
	if (report->rows_rejected == 0)
		return;
	add_family(page, "wm_rejected_rows_total", "counter", "Rows rejected, by reason.");
	for (size_t i = 0; report->reasons[i].reason != NULL; i++)
		add_sample(
			page, "wm_rejected_rows_total", "reason", report->reasons[i].reason, report->reasons[i].count);
}

/* The highest event time of the batches that ended and of the open one; false if there is none. */
static bool
highest_time(const struct report *report, int64_t *time_us)
{
	const struct report_times *batch = &report->batch_times, *ended = &report->times;

	if (batch->count != 0 && (ended->count == 0 || batch->max_us > ended->max_us))
		*time_us = batch->max_us;
	else
		*time_us = ended->max_us;
	return batch->count + ended->count != 0;
}

void
metrics_print(const struct report *report, const struct report_state *state, struct wm_span name, int64_t watermark_us,
	int64_t wall_us, struct wm_buf *out)
{
	const struct page page = { out, report->tool, name };
	int64_t highest_us;

	add_rows(&page, report);
	add_counter(&page, "wm_partly_late_rows_total", "Rows used that missed some of their windows.",
		report->rows_partly_late);
	add_counter(&page, "wm_windows_missed_total", "Windows that late and partly late rows missed, row by row.",
		report->windows_missed);
	add_counter(&page, "wm_unconfirmed_rows_total", "Rows that --max-jump kept from moving the watermark.",
		report->rows_unconfirmed);
	add_counter(&page, "wm_output_rows_total", "Rows of results written.", report->rows_out);
	if (watermark_us != WM_TIME_NONE)
		add_seconds(&page, "wm_watermark_timestamp_seconds", "Watermark, in event time.", watermark_us);
	if (highest_time(report, &highest_us))
		add_seconds(
			&page, "wm_event_time_max_timestamp_seconds", "Highest event time of all rows.", highest_us);
	add_seconds(&page, "wm_disorder_max_seconds", "Greatest distance of a row behind the highest event time.",
		report->disorder_max_us);
	if (report->operator_name != NULL) {
		add_gauge(&page, "wm_state_groups", "Groups held, such as pairs of a window and a key.", state->groups);
		add_gauge(&page, "wm_state_bytes", "Bytes of state held.", state->bytes);
	}
	add_seconds(&page, "wm_last_update_timestamp_seconds", "When this file was written.", wall_us);
}

/* File */

/* The label of a path: its last part, without ".prom". */
static struct wm_span
name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct wm_span name = wm_span_of(slash == NULL ? path : slash + 1);

	if (name.len > 5 && memcmp(name.data + name.len - 5, ".prom", 5) == 0)
		name.len -= 5;
	return name;
}

static bool
put_all(int fd, struct wm_span bytes)
{
	while (bytes.len != 0) {
		ssize_t put = write(fd, bytes.data, bytes.len);

		if (put == -1 && errno == EINTR)
			continue;
		if (put == -1)
			return false;
		bytes.data += put;
		bytes.len -= (size_t)put;
	}
	return true;
}

/* O_EXCL: what stands under that name is never followed. A process of the same number that was killed may have left it. */
static int
open_beside(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = cli_open(path, flags, 0600);

	if (fd == -1 && errno == EEXIST && unlink(path) == 0)
		fd = cli_open(path, flags, 0600);
	return fd;
}

/* False with errno set. */
static bool
replace_file(const char *path, const char *path_beside, struct wm_span text)
{
	int fd = open_beside(path_beside);

	if (fd == -1)
		return false;
	bool is_done = put_all(fd, text) && fchmod(fd, 0644) == 0;
	int why = errno;
	if (close(fd) == -1 && is_done) {
		is_done = false;
		why = errno;
	}
	if (is_done && rename(path_beside, path) == -1) {
		is_done = false;
		why = errno;
	}
	if (!is_done)
		unlink(path_beside);
	errno = why;
	return is_done;
}

bool
metrics_write(struct metrics *metrics, const struct report *report, const struct report_state *state,
	int64_t watermark_us, int64_t wall_us, int64_t now_us, struct wm_err *err)
{
	wm_buf_reset(&metrics->text);
	metrics_print(report, state, name_of(metrics->path), watermark_us, wall_us, &metrics->text);
	if (!replace_file(metrics->path, metrics->path_beside, wm_buf_span(&metrics->text)))
		return wm_err_set(err, WM_ERR_IO, "%s: %s", metrics->path, strerror(errno));
	metrics->due_us = now_us + INTERVAL_US;
	return true;
}
