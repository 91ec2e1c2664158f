/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/json_model.h"
#include "tests/unit/tap.h"

static struct wm_err err;

static void
put(struct wm_buf *out, const struct wm_row_format *format, size_t index, const char *text, enum wm_kind kind)
{
	struct wm_value value = { wm_span_of(text), kind };

	wm_row_put(out, format, index, wm_span_of(index == 0 ? "a" : "b\"c"), &value);
}

/* A row of one or two texts. */
static void
check_row(enum wm_format kind, char delimiter, const char *line_end, const char *first, const char *second,
	const char *want)
{
	struct wm_row_format format = { kind, delimiter, line_end, NULL };
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	put(&out, &format, 0, first, WM_KIND_TEXT);
	if (second != NULL)
		put(&out, &format, 1, second, WM_KIND_TEXT);
	wm_row_end(&out, &format, second == NULL ? 1 : 2);
	tap_span(wm_buf_span(&out), want, "a row");
	wm_buf_release(&out);
}

static void
test_rows(void)
{
	struct wm_row_format csv = { WM_FORMAT_CSV, ',', "\n", NULL }, ndjson = { WM_FORMAT_NDJSON, 0, "\r\n", NULL };
	struct wm_buf out;

	check_row(WM_FORMAT_CSV, ',', "\n", "x", "y z", "x,y z\n");
	check_row(WM_FORMAT_CSV, ',', "\r\n", "x", "", "x,\r\n");
	check_row(WM_FORMAT_CSV, ',', "\n", "b,1", "say \"hi\"", "\"b,1\",\"say \"\"hi\"\"\"\n");
	check_row(WM_FORMAT_CSV, ',', "\n", "a\nb", "a\rb", "\"a\nb\",\"a\rb\"\n");
	check_row(WM_FORMAT_CSV, ';', "\n", "b,1", "2;3", "b,1;\"2;3\"\n");
	check_row(WM_FORMAT_TSV, ',', "\n", "b,1", "2\t3", "b,1\t2\\t3\n");
	check_row(WM_FORMAT_TSV, ',', "\n", "\"b\"", "C:\\dir\\", "\"b\"\tC:\\dir\\\\\n");
	check_row(WM_FORMAT_TSV, ',', "\n", "", NULL, "\n");
	check_row(WM_FORMAT_CSV, ',', "\n", "", NULL, "\"\"\n");
	check_row(WM_FORMAT_CSV, ',', "\n", "", "", ",\n");
	check_row(WM_FORMAT_CSV, ',', "\n", "\"", NULL, "\"\"\"\"\n");
	check_row(WM_FORMAT_NDJSON, 0, "\n", "x\"\n", "\xc3\xa9", "{\"a\":\"x\\\"\\n\",\"b\\\"c\":\"\xc3\xa9\"}\n");

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	put(&out, &csv, 0, "", WM_KIND_NULL);
	wm_row_end(&out, &csv, 1);
	put(&out, &csv, 0, "", WM_KIND_NULL);
	wm_row_end(&out, &csv, 1);
	tap_span(wm_buf_span(&out), "\"\"\n\"\"\n", "no row is an empty line");
	wm_buf_reset(&out);
	put(&out, &ndjson, 0, "1e5", WM_KIND_NUMBER);
	put(&out, &ndjson, 1, "", WM_KIND_NULL);
	put(&out, &ndjson, 2, "true", WM_KIND_BOOL);
	put(&out, &ndjson, 3, "[1,{}]", WM_KIND_JSON);
	wm_row_end(&out, &ndjson, 4);
	tap_span(wm_buf_span(&out), "{\"a\":1e5,\"b\\\"c\":null,\"b\\\"c\":true,\"b\\\"c\":[1,{}]}\r\n",
		"kinds of JSON");
	wm_buf_reset(&out);
	wm_row_end(&out, &ndjson, 0);
	tap_span(wm_buf_span(&out), "{}\r\n", "a row of nothing");
	wm_buf_release(&out);
}

/* All fields at once give what they give one by one, whatever has to be quoted and wherever it stands. */
static void
test_whole_rows(void)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789,;\t\"\n\r";
	static const struct wm_row_format formats[] = { { WM_FORMAT_CSV, ',', "\n", NULL },
		{ WM_FORMAT_CSV, ';', "\r\n", NULL }, { WM_FORMAT_CSV, '5', "\n", NULL },
		{ WM_FORMAT_TSV, ',', "\n", NULL }, { WM_FORMAT_NDJSON, 0, "\n", NULL } };
	uint64_t random = 9;
	bool is_well = true;
	struct wm_buf got, want;

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 100000 && is_well; i++) {
		const struct wm_row_format *format = &formats[tap_random(&random) % 5];
		struct wm_span names[7];
		struct wm_value values[7];
		char text[7][60];
		size_t count = tap_random(&random) % 8, kinds = i % 4 == 0 ? sizeof(bytes) - 1 : 36;

		for (size_t k = 0; k < count; k++) {
			size_t len = tap_random(&random) % (i % 3 == 0 ? 3 : sizeof(text[k]));

			for (size_t at = 0; at < len; at++)
				text[k][at] = bytes[tap_random(&random) % kinds];
			names[k] = wm_span_of("name");
			values[k] = (struct wm_value){ wm_span(text[k], len), WM_KIND_TEXT };
		}
		if (i % 100 == 0) {
			wm_buf_release(&got);
			wm_buf_init(&got, WM_BUF_UNBOUNDED);
		}
		wm_buf_reset(&got);
		wm_buf_reset(&want);
		wm_buf_add_text(&got, i % 2 ? "before\n" : "");
		wm_buf_add_text(&want, i % 2 ? "before\n" : "");
		wm_row_put_all(&got, format, names, values, count);
		for (size_t k = 0; k < count; k++)
			wm_row_put(&want, format, k, names[k], &values[k]);
		wm_row_end(&want, format, count);
		is_well = wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
		if (!is_well)
			printf("# '%.*s'\n", (int)got.len, got.data);
	}
	tap_ok(is_well, "a row put at once is the same");
	wm_buf_release(&got);
	wm_buf_release(&want);
}

/* Rows of thousands of delimiters, where their counts leave a byte. */
static void
test_long_rows(void)
{
	static char text[20000];
	struct wm_row_format format = { WM_FORMAT_CSV, ',', "\n", NULL };
	bool is_well = true;
	struct wm_buf got, want;

	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	memset(text, ',', sizeof(text));
	for (size_t len = 4000; len <= sizeof(text); len += 16) {
		struct wm_value value = { wm_span(text, len), WM_KIND_TEXT };
		struct wm_span name = wm_span("", 0);

		wm_buf_reset(&got);
		wm_buf_reset(&want);
		wm_row_put_all(&got, &format, &name, &value, 1);
		wm_row_put(&want, &format, 0, name, &value);
		wm_row_end(&want, &format, 1);
		is_well = is_well && wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
	}
	tap_ok(is_well, "and a long one");
	wm_buf_release(&got);
	wm_buf_release(&want);
}

static void
check_string(struct wm_span text, const char *want)
{
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_json_put_string(&out, text);
	tap_span(wm_buf_span(&out), want, "a JSON string");
	wm_buf_release(&out);
}

static void
test_json(void)
{
	static const char letters[] = "0123-+.eE ";
	uint64_t random = 5;
	bool is_well = true;

	check_string(wm_span(NULL, 0), "\"\"");
	check_string(wm_span("a\0\x1f\x7f/", 5), "\"a\\u0000\\u001f\x7f/\"");
	check_string(wm_span_of("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
	check_string(wm_span_of("\xff"
				"a\xc3(\xe2\x82"),
		"\"\\ufffda\\ufffd(\\ufffd\\ufffd\"");
	check_string(wm_span_of("\xed\xa0\xbd\xed\xb0\x80\xed\x9f\xbf\xed\xa0"),
		"\"\\ud83d\\udc00\xed\x9f\xbf\\ufffd\\ufffd\"");
	check_string(wm_span_of("\xf0\x9f\x98\x80"), "\"\xf0\x9f\x98\x80\"");
	for (int i = 0; i < 200000 && is_well; i++) {
		char text[8];
		size_t len = tap_random(&random) % (sizeof(text) + 1);

		for (size_t k = 0; k < len; k++)
			text[k] = letters[tap_random(&random) % (sizeof(letters) - 1)];
		struct json_model model = { (const unsigned char *)text, (const unsigned char *)text + len };
		bool want = json_model_number(&model) && model.at == model.end;
		is_well = wm_json_is_number(wm_span(text, len)) == want;
		if (!is_well)
			printf("# '%.*s'\n", (int)len, text);
	}
	tap_ok(is_well, "wm_json_is_number agrees with the model");
	tap_ok(json_model_is_object("{}", 2) && json_model_is_blank(" ", 1), "whose other parts are sane");
	tap_int(wm_value_from_csv(wm_span_of("-0.5e3")).kind, WM_KIND_NUMBER, "a number of CSV is one of JSON");
	tap_int(wm_value_from_csv(wm_span_of("007")).kind, WM_KIND_TEXT, "leading zeros are text");
	tap_int(wm_value_from_csv(wm_span_of("true")).kind, WM_KIND_TEXT, "and so is true");
	tap_int(wm_value_from_csv(wm_span_of("")).kind, WM_KIND_NULL, "an empty field is null");
}

/* Reads what comes through a pipe; slowly, and checks that byte i is i mod 251. */
static bool
read_slowly(int fd, size_t want)
{
	unsigned char bytes[5000];
	size_t len = 0;
	ssize_t got;

	while ((got = read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < got; i++)
			if (bytes[i] != (len + (size_t)i) % 251)
				return false;
		len += (size_t)got;
		if (len < 100000)
			usleep(500);
	}
	return len == want;
}

/* A pipe that is full most of the time, its end perhaps non-blocking: nothing is lost. */
static void
test_slow_reader(int flags, const char *name)
{
	int ends[2], status;
	size_t want = 0;
	bool is_well = true;

	if (pipe(ends) != 0)
		abort();
	pid_t child = fork();
	if (child == 0) {
		close(ends[1]);
		for (size_t i = 1; i <= 600; i++)
			want += i * 3 % 1000;
		_exit(read_slowly(ends[0], want + 70000) ? 0 : 1);
	}
	close(ends[0]);
	fcntl(ends[1], F_SETFL, flags);
	struct wm_writer *writer = wm_writer_new(ends[1], "pipe");
	static char bytes[70000];
	for (size_t i = 1; i <= 601; i++) {
		size_t len = i == 601 ? 70000 : i * 3 % 1000;

		for (size_t k = 0; k < len; k++)
			bytes[k] = (char)(unsigned char)((want + k) % 251);
		want += len;
		is_well = is_well && wm_writer_put(writer, wm_span(bytes, len), &err);
	}
	is_well = is_well && wm_writer_bytes(writer) == want;
	is_well = wm_writer_close(writer, &err) && is_well;
	waitpid(child, &status, 0);
	tap_ok(is_well && status == 0, "%s", name);
}

static void
test_failures(void)
{
	struct wm_writer *writer = wm_writer_new(open("/dev/full", O_WRONLY), "standard output");
	int ends[2];

	tap_ok(wm_writer_put(writer, wm_span_of("x\n"), &err) && wm_writer_is_pending(writer),
		"bytes wait in the buffer");
	tap_ok(!wm_writer_flush(writer, &err) && err.code == WM_ERR_IO, "a full device is found out at the flush");
	tap_text(err.message, "standard output: No space left on device", "and named");
	err = (struct wm_err){ 0 };
	tap_ok(!wm_writer_put(writer, wm_span_of("y"), &err), "from then on each call fails");
	tap_text(err.message, "standard output: No space left on device", "with the same message");
	err = (struct wm_err){ 0 };
	tap_ok(!wm_writer_close(writer, &err) && err.code == WM_ERR_IO, "closing too");

	writer = wm_writer_new(open("/dev/full", O_WRONLY), "out");
	tap_ok(wm_writer_put(writer, wm_span_of("x\n"), &err) && !wm_writer_close(writer, &err), "or at the close");

	signal(SIGPIPE, SIG_IGN);
	if (pipe(ends) != 0)
		abort();
	close(ends[0]);
	writer = wm_writer_new(ends[1], "out");
	tap_ok(wm_writer_put(writer, wm_span_of("x"), &err) && !wm_writer_flush(writer, &err) &&
			strcmp(err.message, "out: Broken pipe") == 0,
		"a reader that has gone away");
	tap_ok(!wm_writer_close(writer, &err), "is a failure as well");

	writer = wm_writer_new(-1, "closed");
	tap_ok(!wm_writer_close(writer, &err) && strcmp(err.message, "closed: Bad file descriptor") == 0,
		"a closed descriptor");
	writer = wm_writer_new(open("/dev/null", O_WRONLY), "null");
	tap_ok(wm_writer_flush(writer, &err) && wm_writer_close(writer, &err), "nothing written is fine");
}

int
main(void)
{
	test_rows();
	test_whole_rows();
	test_long_rows();
	test_json();
	fflush(stdout);
	test_slow_reader(0, "a slow reader gets every byte");
	fflush(stdout);
	test_slow_reader(O_NONBLOCK, "also through a descriptor that does not block");
	test_failures();
	return tap_done();
}
