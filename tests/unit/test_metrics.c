/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

static char folder[] = "/tmp/test_metrics.XXXXXX";

/* A path in the test's folder, until the next call. */
static const char *
path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void
test_text(void)
{
	static const char *const want =
		"# HELP wm_rows_total Rows read, by what became of them.\n"
		"# TYPE wm_rows_total counter\n"
		"wm_rows_total{tool=\"wm-window\",name=\"a\\\\b\\\"c\\n\xef\xbf\xbd\",class=\"punctuation\"} 0\n"
		"wm_rows_total{tool=\"wm-window\",name=\"a\\\\b\\\"c\\n\xef\xbf\xbd\",class=\"rejected\"} 1\n"
		"wm_rows_total{tool=\"wm-window\",name=\"a\\\\b\\\"c\\n\xef\xbf\xbd\",class=\"late\"} 2\n"
		"wm_rows_total{tool=\"wm-window\",name=\"a\\\\b\\\"c\\n\xef\xbf\xbd\",class=\"duplicate\"} 0\n"
		"wm_rows_total{tool=\"wm-window\",name=\"a\\\\b\\\"c\\n\xef\xbf\xbd\",class=\"used\"} "
		"18446744073709551615\n"
		"# HELP wm_rejected_rows_total Rows rejected, by reason.\n"
		"# TYPE wm_rejected_rows_total counter\n"
		"wm_rejected_rows_total{tool=\"wm-window\",name=\"a\\\\b\\\"c\\n\xef\xbf\xbd\",reason=\"bad-time\"} "
		"1\n";
	struct report report;
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	report_init(&report, "wm-window", "windowing");
	report.rows_late = 2;
	report.rows_used = UINT64_MAX;
	report_reject(&report, "bad-time");
	metrics_print(&report, &(struct report_state){ 0 }, wm_span_of("a\\b\"c\n\xff"), WM_TIME_NONE, 0, &out);
	tap_ok(out.len > strlen(want) && memcmp(out.data, want, strlen(want)) == 0,
		"rows by class and reason; escapes");
	tap_ok(memmem(out.data, out.len, "wm_watermark", 12) == NULL, "no watermark, no sample");
	tap_ok(memmem(out.data, out.len, "wm_event_time_max", 17) == NULL, "no event time, no sample");

	wm_buf_reset(&out);
	report.operator_name = NULL;
	report_times_add(&report.batch_times, 1500000);
	metrics_print(&report, &(struct report_state){ 0 }, wm_span_of("a"), -1, 1700000000123456, &out);
	static const char *const samples[] = {
		"\nwm_watermark_timestamp_seconds{tool=\"wm-window\",name=\"a\"} -0.000001\n",
		"\nwm_event_time_max_timestamp_seconds{tool=\"wm-window\",name=\"a\"} 1.5\n",
		"\nwm_last_update_timestamp_seconds{tool=\"wm-window\",name=\"a\"} 1700000000.123456\n",
	};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		tap_ok(memmem(out.data, out.len, samples[i], strlen(samples[i])) != NULL, "sample %zu in seconds", i);
	tap_ok(memmem(out.data, out.len, "wm_state", 8) == NULL, "without an operator there is no state");
	report_next_batch(&report, WM_TIME_NONE);
	wm_buf_reset(&out);
	metrics_print(&report, &(struct report_state){ 0 }, wm_span_of("a"), WM_TIME_NONE, 0, &out);
	tap_ok(memmem(out.data, out.len, samples[1], strlen(samples[1])) != NULL, "a batch that ended still counts");
	wm_buf_release(&out);
}

static bool
write_at(struct metrics *metrics, int64_t now_us, struct wm_err *err)
{
	struct report report;

	report_init(&report, "wm-window", NULL);
	return metrics_write(metrics, &report, &(struct report_state){ 0 }, WM_TIME_NONE, 0, now_us, err);
}

/* The first bytes of a file, as a text. */
static const char *
head_of(const char *path)
{
	static char text[32];
	int fd = open(path, O_RDONLY);
	ssize_t got = fd == -1 ? -1 : read(fd, text, sizeof(text) - 1);

	text[got < 0 ? 0 : got] = '\0';
	close(fd);
	return text;
}

static void
test_file(void)
{
	struct metrics metrics;
	struct wm_err err;
	struct stat found;
	mode_t mask = umask(0777);
	char beside[512];
	const char *path = path_of("jobs.prom");
	char kept[256];

	snprintf(kept, sizeof(kept), "%s", path);
	tap_ok(metrics_init(&metrics, kept, &err), "a file that is not there");
	tap_int(metrics_due_us(&metrics), INT64_MIN, "due at once");
	tap_ok(write_at(&metrics, 5000000, &err), "written");
	umask(mask);
	tap_ok(stat(kept, &found) == 0 && (found.st_mode & 07777) == 0644, "for all to read, whatever the umask");
	tap_text(head_of(kept), "# HELP wm_rows_total Rows read,", "what it holds");
	tap_int(metrics_due_us(&metrics), 6000000, "due a second later");

	/* A process of the same number died between writing and renaming, in a container for one: its file is no obstacle. A
	   link put there is taken away too, never followed. */
	snprintf(beside, sizeof(beside), "%s.tmp-%ld", kept, (long)getpid());
	int fd = open(path_of("other"), O_WRONLY | O_CREAT, 0600);
	tap_ok(fd != -1 && close(fd) == 0, "a file that is none of its business");
	tap_ok(symlink(path_of("other"), beside) == 0 && write_at(&metrics, 7000000, &err),
		"a left-over is taken away");
	tap_ok(stat(path_of("other"), &found) == 0 && found.st_size == 0, "without being followed");
	unlink(path_of("other"));
	tap_ok(lstat(beside, &found) == -1 && errno == ENOENT, "and nothing is left over");
	tap_ok(lstat(kept, &found) == 0 && S_ISREG(found.st_mode), "the file is no link");
	metrics_release(&metrics);

	/* The folder goes away: a failure that names the file, and what was there before stays. */
	tap_ok(mkdir(path_of("gone"), 0777) == 0, "another folder");
	snprintf(kept, sizeof(kept), "%s", path_of("gone/x.prom"));
	tap_ok(metrics_init(&metrics, kept, &err) && rmdir(path_of("gone")) == 0, "that goes away");
	tap_ok(!write_at(&metrics, 0, &err) && err.code == WM_ERR_IO, "writing fails");
	snprintf(beside, sizeof(beside), "%s: No such file or directory", kept);
	tap_text(err.message, beside, "and says what failed");
	metrics_release(&metrics);
	tap_ok(!metrics_init(&metrics, "/dev/null", &err) && err.code == WM_ERR_USAGE, "a device is refused");
	metrics_release(&metrics);
	tap_ok(metrics_init(&metrics, NULL, &err) && metrics_due_us(&metrics) == INT64_MAX,
		"none asked for: never due");
	metrics_release(&metrics);
	unlink(path_of("jobs.prom"));
}

int
main(void)
{
	if (!tap_ok(mkdtemp(folder) != NULL, "a folder"))
		return tap_done();
	test_text();
	test_file();
	tap_ok(rmdir(folder) == 0, "no other file was left in the folder");
	return tap_done();
}
