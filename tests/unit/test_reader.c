/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/record/cut.h"
#include "lib/record/ndjson.h"
#include "lib/record/scan.h"
#include "tests/unit/csv_model.h"
#include "tests/unit/json_model.h"
#include "tests/unit/tap.h"

#define INPUTS_MAX 3

/* What is read: texts, under the names a, b, c; ended by one without data. */
struct job {
	struct wm_reader_options options;
	const char *wants; /* parted by blanks; with a "?" behind it one is optional */
	struct wm_span inputs[INPUTS_MAX];
	bool has_details; /* the log has them */
	bool is_rendered; /* the log is what wm_reader_render() gives, the header first */
};

#define SPAN(text)                                                                                                     \
	{                                                                                                              \
		text, sizeof(text) - 1                                                                                 \
	}

static struct wm_buf got;

static int
open_text(struct wm_span text)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return fd;
}

static void
log_record(struct wm_reader *reader, const struct job *job, const struct wm_record *rec, size_t wants_count)
{
	if (job->is_rendered) {
		wm_reader_render(reader, rec, &got);
		return;
	}
	wm_buf_addf(&got, "%" PRIu64 "(", rec->line);
	for (size_t i = 0; i < wants_count; i++) {
		wm_buf_add_text(&got, i == 0 ? "" : "|");
		if (rec->fields[i].kind == WM_KIND_NULL)
			wm_buf_add_byte(&got, '-');
		else
			wm_buf_add(&got, rec->fields[i].text.data, rec->fields[i].text.len);
	}
	wm_buf_add_text(&got, ") ");
}

static void
log_reject(const struct job *job, const struct wm_reject *reject)
{
	wm_buf_addf(&got, "%" PRIu64 "!%s", reject->line, reject->reason);
	if (job->has_details)
		wm_buf_addf(&got, "{%s}", reject->detail);
	wm_buf_add_text(&got, " ");
}

/* Reads one input to its end; false if it failed. */
static bool
read_input(struct wm_reader *reader, const struct job *job, size_t wants_count)
{
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err = { 0 };

	for (;;) {
		switch (wm_reader_next(reader, &rec, &reject, &err)) {
		case WM_READ_RECORD:
			log_record(reader, job, &rec, wants_count);
			break;
		case WM_READ_REJECTED:
			log_reject(job, &reject);
			break;
		case WM_READ_MORE:
			if (wm_reader_fill(reader, &err))
				break;
			/* fallthrough */
		case WM_READ_FAILED:
			wm_buf_addf(&got, "FAILED %d %s", (int)err.code, err.message);
			return false;
		case WM_READ_END:
			return true;
		}
	}
}

static struct wm_reader *
new_reader(const struct job *job, size_t *wants_count)
{
	struct wm_err err;
	struct wm_reader *reader = wm_reader_new(&job->options, &err);
	const char *names = job->wants == NULL ? "" : job->wants;

	if (reader == NULL) {
		wm_buf_addf(&got, "REFUSED %s", err.message);
		return NULL;
	}
	*wants_count = 0;
	while (*names != '\0') {
		size_t len = strcspn(names, " ");
		bool is_optional = names[len - 1] == '?';
		struct wm_column column;

		if (!wm_column_parse(wm_span(names, len - is_optional), &column, &err))
			abort();
		size_t index = is_optional ? wm_reader_want_optional(reader, &column) : wm_reader_want(reader, &column);
		if (index == *wants_count)
			++*wants_count;
		wm_column_release(&column);
		names += len + (names[len] == ' ');
	}
	return reader;
}

/* Does the job; the log is in got. The reader is for questions, and to be freed. */
static struct wm_reader *
run(const struct job *job)
{
	static const char *const names[INPUTS_MAX] = { "a", "b", "c" };
	size_t wants_count;

	wm_buf_reset(&got);
	struct wm_reader *reader = new_reader(job, &wants_count);
	for (size_t i = 0; reader != NULL && i < INPUTS_MAX && job->inputs[i].data != NULL; i++) {
		wm_reader_open(reader, open_text(job->inputs[i]), names[i]);
		bool is_well = read_input(reader, job, wants_count);
		if (job->is_rendered && i == 0) {
			/* The header is known by now. */
			struct wm_span header = wm_reader_header(reader);
			char *rows = wm_memdup(got.data, got.len);
			size_t rows_len = got.len;

			wm_buf_reset(&got);
			wm_buf_add(&got, header.data, header.len);
			wm_buf_add(&got, rows, rows_len);
			free(rows);
		}
		if (!is_well)
			break;
	}
	return reader;
}

/* With usual reads, and byte by byte. */
static void
check_job(struct job job, const char *want, const char *name)
{
	static const size_t reads[] = { 0, 1, 7 };

	for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++) {
		job.options.read_bytes_max = reads[i];
		wm_reader_free(run(&job));
		if (!wm_span_is(wm_buf_span(&got), want)) {
			tap_span(wm_buf_span(&got), want, name);
			printf("#   with reads of %zu bytes\n", reads[i]);
			return;
		}
	}
	tap_ok(true, "%s", name);
}

static void
check(const char *wants, const char *text, const char *want, const char *name)
{
	check_job((struct job){ .wants = wants, .inputs = { wm_span_of(text) } }, want, name);
}

static void
test_csv(void)
{
	check("ts key", "\xef\xbb\xbfts,key\n1,a\n2,a\n", "2(1|a) 3(2|a) ", "a byte order mark");
	check("ts key", "\xef\xbb\xbf\"ts\",\"key\"\n1,a\n2,a\n", "2(1|a) 3(2|a) ", "before a quoted header");
	check("key", "ts,v,key\r\n1,10,\"a\"\r\n2,20,\"a\"\r\n3,30,\"x\r\ny\"\r\n", "2(a) 3(a) 4(x\r\ny) ",
		"CR LF and quotes");
	check("ts v", "ts,key,key,v\n1,a,b,10\n2,a,c,20\n", "2(1|10) 3(2|20) ", "a name twice that is not wanted");
	check("ts key", "ts,key,key,v\n1,a,b,10\n", "FAILED 1 a:1: column 'key' is there twice: give each its own name",
		"and one that is");
	check("key note",
		"ts,key,note\n1,a,\"line one\nline two\"\n2,a,\"ends in newline\n\"\n3,\"b,1\",\"say "
		"\"\"hi\"\"\"\n4,b,\"\"\"\"\n",
		"2(a|line one\nline two) 4(a|ends in newline\n) 6(b,1|say \"hi\") 7(b|\") ",
		"line ends inside quotes count as lines");
	check("ts", "", "", "no bytes");
	check("ts", "\n", "", "a line feed alone");
	check("ts", "\r\n \n\t\n\r", "", "blank lines alone");
	check("ts key", "ts,key\n", "", "a header alone");
	check("ts key", "ts,key", "", "and without a line feed");
	check("ts key", "\n\r\n  \nts,key\n1,a\n", "5(1|a) ", "blank lines before the header");
	check("ts key", "ts,key\n1,a\n2,b", "2(1|a) 3(2|b) ", "no line feed at the end");
	check("ts key", "ts,key\n1,a\n2,\"b\"", "2(1|a) 3(2|b) ", "behind a quote");
	check("ts key", "ts,key\r\n1,a\r\n2,b", "2(1|a) 3(2|b) ", "with CR LF before");
	check("ts key", "ts,key\r\n1,a\r\n2,b\r", "2(1|a) 3(2|b) ", "with half of one");
	check("ts key v", "ts,key,v\n1,a\n2,a,5,extra,extra2\n3,a,7\n4\n\n5,b,1\n",
		"2!ragged 3!ragged 4(3|a|7) 5!ragged 7(5|b|1) ", "ragged rows and an empty line");
	check("ts key", "ts,key\n1,a\nts,key\n2,b\r\nts,key\r\n\"ts\",key\nts,kez\n3,c\nts,key",
		"2(1|a) 4(2|b) 6(ts|key) 7(ts|kez) 8(3|c) ", "headers repeated byte for byte are skipped");
	check("a", "\"a\"\n\"a\"\n1\n", "3(1) ", "also a quoted one");
	check("a", "a\n\"\"\n\n1\n\r\n", "2() 4(1) ",
		"one column: a quoted empty field is a record, an empty line is not");
	check("a b", "a,b\n1,x\"y\"\n\"2\"z,w\n3,v\n", "2(1|x\"y\") 3!malformed-csv 4(3|v) ",
		"quotes where they do not belong");
	check("a b", "a,b\n1,\"x\"y\n2,w\n", "2!malformed-csv 3(2|w) ", "reading goes on at the next line");
	check("a b", "a,b\n1,\"x\ny\"z\n2,w\n", "2!malformed-csv 3!ragged 4(2|w) ",
		"also where the record goes on in it");
	check("a b", "a,b\n1,x\n2,\"y\n3,z\n", "2(1|x) 3!malformed-csv 4(3|z) ",
		"a quoted field that never ends costs a line");
	check("a b", "a,b\n1,\"x\n2\n3\",\"y\n4,z\n5,w\n", "2!malformed-csv 5(4|z) 6(5|w) ",
		"or those from the record's begin to its last quoted field");
	check("a b", "a,b\n1,\"x\n2,y\n3\",z,4\n5,w\n", "2!ragged 3(2|y) 4!ragged 5(5|w) ",
		"a ragged record of several lines");
	check("", "a,b\n1,2\n", "2() ", "nothing wanted");
	check("b a b", "a,b\n1,2\n", "2(2|1) ", "a column wanted twice is one");
	check("b", "a\tb,c\n1\t2\n", "FAILED 1 a:1: no column 'b': there are: a\\x09b, c", "a tab beside a comma");
	check("b", "a\tb\n1,5\t2\n", "2(2) ", "TSV");
	check("tmie", "id,time,user\n",
		"FAILED 1 a:1: no column 'tmie': did you mean 'time'? there are: id, time, user", "an unknown column");
	check("x", "\n\na,b\n", "FAILED 1 a:3: no column 'x': there are: a, b", "with the line of the header");
	check("a", "a,\"b\n1,2\n", "FAILED 1 a:1: the header cannot be read: a quoted name never ends",
		"a header without end");
	check("a", "a,\"b\"c\n1,2\n", "FAILED 1 a:1: the header cannot be read: text behind a closing quote",
		"a bad header");
	check("a", "1,2025-11-29T12:34:56Z\n",
		"FAILED 1 a:1: the first line holds a time, so the header is missing: name the columns with --columns, "
		"or let it "
		"through (tail -n +1 -F)",
		"a header that was cut off");
	check("a", "\x1f\x8b\x08\n", "FAILED 1 a:1: is compressed: read it through zcat", "gzip");
	check("a",
		"\xff\xfe"
		"a\n",
		"FAILED 1 a:1: is UTF-16: convert it with iconv -f UTF-16 -t UTF-8", "UTF-16");
	check("a", "[{\"a\":1},\n", "FAILED 1 a:1: is a JSON array: make it one object a line with jq -c '.[]'",
		"a JSON array");
	check("a", "{\n", "FAILED 1 a:1: is JSON over several lines: make it one object a line with jq -c .",
		"pretty JSON");

	struct job job = {
		.wants = "a", .has_details = true, .inputs = { wm_span_of("a,b\n1\n1,2,3\n1,\"x\"y\n1,\"\n") }
	};
	check_job(job,
		"2!ragged{1 field, the header has 2} 3!ragged{3 fields, the header has 2} "
		"4!malformed-csv{text behind a closing quote} 5!malformed-csv{the quoted field that begins in line 5 "
		"never ends} ",
		"what is wrong");
	job.inputs[0] = wm_span("a,b\n\0,\xff\n", 8);
	job.wants = "b";
	check_job(job, "2(\xff) ", "NUL and bytes that are no UTF-8");
}

static void
test_options(void)
{
	struct job job = { .wants = "3 1",
		.options = { .no_header = true },
		.inputs = { wm_span_of("\nx,y,z\n1,2,3\n1,2\nx,y,z\n") } };

	check_job(job, "2(z|x) 3(3|1) 4!ragged 5(z|x) ", "without a header columns are numbers");
	job.wants = "4";
	check_job(job, "FAILED 1 a:2: no column '4': there are: 1, 2, 3", "as many as the first record has");
	job = (struct job){ .wants = "1",
		.options = { .no_header = true, .format = WM_FORMAT_TSV },
		.inputs = { wm_span_of("\t\n \n1\t2\n") } };
	check_job(job, "1() 2!ragged 3(1) ", "blanks may be a record then");
	job = (struct job){ .wants = "1", .options = { .no_header = true }, .inputs = { wm_span_of("\"a\"b\n1,2\n") } };
	check_job(job, "1!malformed-csv 2(1) ", "the first that can be read says how many");
	job = (struct job){ .wants = "user",
		.options = { .columns = "time,user" },
		.has_details = true,
		.inputs = { wm_span_of("1,2\n3\n"), wm_span_of("time,user\n") } };
	check_job(job, "1(2) 2!ragged{1 field, --columns names 2} 1(user) ", "named columns: every line is data");
	job.wants = "usr";
	check_job(job, "FAILED 1 a:1: no column 'usr': did you mean 'user'? there are: time, user",
		"and wanted by these names");
	job = (struct job){ .options = { .columns = "a,b\\,c" }, .wants = "b,c", .inputs = { wm_span_of("1,2\n") } };
	check_job(job, "1(2) ", "a name with a comma");
	job = (struct job){ .options = { .columns = "a,b" }, .wants = "c", .inputs = { wm_span_of("{\"c\":1}\n") } };
	check_job(job, "1(1) ", "of NDJSON they say nothing");
	job = (struct job){ .options = { .columns = "a,b,a" } };
	check_job(job, "REFUSED column 'a' is named twice: give each its own name", "names twice");
	job = (struct job){ .options = { .delimiter = ';' }, .wants = "b", .inputs = { wm_span_of("a;b\n1,5;2\n") } };
	check_job(job, "2(2) ", "another delimiter");
	job.options.format = WM_FORMAT_NDJSON;
	check_job(job, "REFUSED NDJSON has no delimiter: leave it out, or read CSV", "a delimiter for NDJSON");
	job.options.format = WM_FORMAT_TSV;
	check_job(job, "REFUSED TSV has a tab as its delimiter: leave yours out, or read CSV", "another for TSV");
	job = (struct job){ .options = { .delimiter = '"' } };
	check_job(
		job, "REFUSED a quote or line end cannot be the delimiter: name another byte", "a quote as delimiter");
	job = (struct job){ .options = { .record_bytes_max = WM_RECORD_BYTES_HIGHEST + 1 } };
	check_job(job, "REFUSED a record limit of 1073741825 bytes is too high: 1073741824 is the highest",
		"a limit beyond the highest");
	job = (struct job){
		.options = { .format = WM_FORMAT_CSV }, .wants = "{b", .inputs = { wm_span_of("{a,{b\n{1,2}\n") }
	};
	check_job(job, "2(2}) ", "CSV that is called CSV may begin with a brace");
	job = (struct job){ .options = { .format = WM_FORMAT_NDJSON },
		.wants = "a",
		.inputs = { wm_span_of("a,b\n[1]\n{\"a\":1}\n") } };
	check_job(job, "1!malformed-json 2!malformed-json 3(1) ", "what is called NDJSON is no CSV");
}

static void
test_ndjson(void)
{
	check("ts key",
		"\xef\xbb\xbf{\"ts\":1,\"key\":\"a\"}\r\n\r\n   \n{\"ts\":2,\"key\":\"a\"}\n\n{\"ts\":3,\"key\":\"b\"}",
		"1(1|a) 4(2|a) 6(3|b) ", "blank lines, CR LF, byte order mark");
	check("ts key",
		"{\"ts\":1,\"key\":\"a\"}\n{\"ts\":2,\"key\":\"a\"}{\"ts\":3,\"key\":\"b\"}\n{\"ts\":4,\"key\":\"b\"} "
		"x\n{\"ts\":5,\"key\":\"c\"},\n{\"ts\":6,\"key\":\"c\",}\n{\"ts\":7,\"key\":\"d\"}\n",
		"1(1|a) 2!malformed-json 3!malformed-json 4!malformed-json 5!malformed-json 6(7|d) ",
		"two objects on a line");
	check("a", "\n \n  {\"a\":1}\n", "3(1) ", "blanks before the first brace");
	struct job job = {
		.wants = "a", .has_details = true, .inputs = { wm_span_of("{\"a\":1}\n{\"a\":NaN}\n{\"a\":\"x\n") }
	};
	check_job(job,
		"1(1) 2!malformed-json{no JSON value, at byte 6} 3!malformed-json{a string that never ends, at byte "
		"1} ",
		"what is wrong, and where");
}

static void
test_inputs(void)
{
	struct job job = { .wants = "b a",
		.inputs = { wm_span_of("a,b\n1,2\n"), wm_span_of("\n"), wm_span_of("b,a\n3,4\n\"5\",6\n") } };

	check_job(job, "2(2|1) 2(3|4) 3(5|6) ", "columns in another order");
	job.inputs[2] = wm_span_of("a\tb\n3\t4\na,b\t\n");
	check_job(job, "2(2|1) 2(4|3) 3(|a,b) ", "another delimiter");
	job.inputs[1] = wm_span_of("a,c\n");
	check_job(job, "2(2|1) FAILED 1 b:1: no column 'b': inputs must have the columns of a", "a column is missing");
	job.inputs[1] = wm_span_of("\n{\"a\":1}\n");
	check_job(job, "2(2|1) FAILED 1 b:2: is NDJSON, but a is CSV: name inputs of one format",
		"formats that do not go together");
	job.inputs[0] = wm_span_of("{\"a\":1}\n");
	job.inputs[1] = wm_span_of("a,b\n");
	check_job(job, "1(-|1) FAILED 1 b:1: is CSV, but a is NDJSON: name inputs of one format", "nor this way");
	job.inputs[0] = wm_span_of(" \n");
	job.inputs[1] = wm_span_of("");
	job.inputs[2] = wm_span_of("{\"a\":1}\n");
	check_job(job, "1(-|1) ", "empty inputs fix nothing");

	job = (struct job){ .is_rendered = true,
		.inputs = { wm_span_of("a,b,c\n1,\"2\",3\n4,5,6"), wm_span_of("c,a,b\n3,1,2\n\"x,y\",,\"\"\"\"\n"),
			wm_span_of("a;b;c\n") } };
	job.inputs[2] = wm_span_of("a\tb\tc\r\n1,5\t2\t3\r\n\\\t\t\t");
	check_job(job, "a,b,c\n1,\"2\",3\n4,5,6\n1,2,3\n,\"\"\"\",\"x,y\"\n\"1,5\",2,3\n\t,,\n",
		"rendered in the layout of the first");
	job = (struct job){ .is_rendered = true,
		.inputs = { wm_span_of("a,b\r\n1,2\r\n3,4"), wm_span_of("a,b\n\"5\",6\n7,8"),
			wm_span_of("b,a\n9,\"x\ny\"\n") } };
	check_job(job, "a,b\r\n1,2\r\n3,4\r\n\"5\",6\r\n7,8\r\n\"x\ny\",9\r\n", "line ends are those of the first");
	job = (struct job){ .is_rendered = true, .inputs = { wm_span_of("a\n\"\"\n"), wm_span_of("a\r\n\"\"\r\n") } };
	check_job(job, "a\n\"\"\n\"\"\n", "one column, empty");
	job = (struct job){ .is_rendered = true,
		.inputs = { wm_span_of("{\"a\":1.10, \"b\":-0}\n\n{\"a\":2}"), wm_span_of("{\"a\":3}\r\n{\"a\":4}") } };
	check_job(job, "{\"a\":1.10, \"b\":-0}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n", "NDJSON passes as it came");
	job = (struct job){ .is_rendered = true, .inputs = { wm_span_of("a,b\n1,2\r\n3,4\r") } };
	check_job(job, "a,b\n1,2\r\n3,4\n", "a mixture of line ends within an input stays");
}

static void
test_questions(void)
{
	struct job job = { .wants = "a b",
		.inputs = { wm_span_of("\xef\xbb\xbf\na;b\r\n\r\n1;2\r\na;b\r\n") },
		.options = { .delimiter = ';' } };
	struct wm_reader *reader = run(&job);

	tap_int(wm_reader_format(reader), WM_FORMAT_CSV, "the format");
	tap_int(wm_reader_delimiter(reader), ';', "the delimiter");
	tap_text(wm_reader_line_end(reader), "\r\n", "the line end");
	tap_span(wm_reader_header(reader), "a;b\r\n", "the header without byte order mark");
	tap_int((int64_t)wm_reader_counts(reader).bytes, 21, "bytes");
	tap_int((int64_t)wm_reader_counts(reader).lines_blank, 2, "blank lines");
	tap_int((int64_t)wm_reader_counts(reader).headers_repeated, 1, "repeated headers");
	tap_int(wm_reader_fd(reader), -1, "no descriptor between inputs");
	tap_text(wm_reader_name(reader), "a", "the name stays");
	tap_ok(wm_reader_column_seen(reader, 1), "columns of the header are there");
	wm_reader_free(reader);

	job = (struct job){ .wants = "a x m.t", .inputs = { wm_span_of("\n{\"a\":1}\r\n{\"m\":{\"t\":null}}\n") } };
	reader = run(&job);
	tap_int(wm_reader_format(reader), WM_FORMAT_NDJSON, "NDJSON");
	tap_text(wm_reader_line_end(reader), "\r\n", "its first line end");
	tap_span(wm_reader_header(reader), "", "no header");
	tap_ok(wm_reader_column_seen(reader, 0) && !wm_reader_column_seen(reader, 1) &&
			wm_reader_column_seen(reader, 2),
		"columns that some record had");
	wm_reader_free(reader);

	job.inputs[0] = wm_span_of(" \n");
	reader = run(&job);
	tap_ok(wm_reader_format(reader) == WM_FORMAT_AUTO && !wm_reader_column_seen(reader, 0) &&
			strcmp(wm_reader_line_end(reader), "\n") == 0,
		"nothing is known before the first header or record");
	wm_reader_free(reader);
	job.options.columns = "x,a,m.t";
	job.inputs[0] = wm_span_of("1\t2\t3");
	reader = run(&job);
	tap_ok(wm_reader_format(reader) == WM_FORMAT_TSV && wm_reader_delimiter(reader) == '\t' &&
			wm_reader_header(reader).len == 0,
		"named columns have no header line");
	wm_reader_free(reader);
}

static bool
check_ahead(struct wm_reader *reader, const char *text, const char *name, struct wm_err *err)
{
	int fd = open_text(wm_span_of(text));

	lseek(fd, 1, SEEK_SET);
	bool is_well = wm_reader_check(reader, fd, name, err);
	if (lseek(fd, 0, SEEK_CUR) != 1)
		tap_ok(false, "the offset of %s has moved", name);
	close(fd);
	return is_well;
}

static void
test_check(void)
{
	struct job job = { .wants = "a" };
	size_t wants_count;
	struct wm_reader *reader = new_reader(&job, &wants_count);
	struct wm_err err = { 0 };
	int directory = open("/", O_RDONLY);

	tap_ok(check_ahead(reader, "_", "empty.csv", &err), "an empty input can be read");
	tap_ok(check_ahead(reader, "_a,b\n1,2\n", "a.csv", &err), "the first fixes the header");
	tap_ok(check_ahead(reader, "_b,a\n1,2\n", "b.csv", &err) && err.code == WM_ERR_NONE,
		"another may change its order");
	tap_ok(!check_ahead(reader, "_a,c\n1,2\n", "c.csv", &err), "but not its columns");
	tap_text(err.message, "c.csv:1: no column 'b': inputs must have the columns of a.csv", "and is named");
	tap_ok(!check_ahead(reader, "_{\"a\":1}\n", "d.json", &err), "another format");
	tap_text(err.message, "d.json:1: is NDJSON, but a.csv is CSV: name inputs of one format", "is refused");
	tap_ok(wm_reader_check(reader, directory, "/", &err), "what cannot be read will say so when it is read");
	close(directory);
	tap_ok(wm_reader_format(reader) == WM_FORMAT_AUTO && wm_reader_fd(reader) == -1,
		"nothing has changed for reading");
	wm_buf_reset(&got);
	wm_reader_open(reader, open_text(wm_span_of("x\ta\n1\t2\n")), "e.tsv");
	read_input(reader, &job, wants_count);
	tap_span(wm_buf_span(&got), "2(2) ", "which may begin with quite another input");
	wm_reader_free(reader);
}

/* Readers side by side, which share the layout of the first. */
static void
test_adopt(void)
{
	struct job job = { .wants = "b a", .options = { .read_buffer_bytes = 16 } }, rendered = { .is_rendered = true };
	size_t wants_count;
	struct wm_reader *first = new_reader(&job, &wants_count), *second = new_reader(&job, &wants_count);
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err;

	tap_ok(!wm_reader_adopt(second, first), "nothing to take over before a header has come");
	wm_reader_open(first, open_text(wm_span_of("\na,b\r\n1,2\r\n3,4")), "first");
	while (wm_reader_next(first, &rec, &reject, &err) == WM_READ_MORE && wm_reader_fill(first, &err))
		;
	tap_ok(wm_reader_adopt(second, first), "a layout is taken over");
	tap_ok(wm_reader_format(second) == WM_FORMAT_CSV && wm_reader_delimiter(second) == ',' &&
			strcmp(wm_reader_line_end(second), "\r\n") == 0 &&
			wm_span_is(wm_reader_header(second), "a,b\r\n"),
		"with all that is known");
	wm_reader_open(second, open_text(wm_span_of("b\ta\n5\t6\\\n7\n,\t8")), "second");
	wm_buf_reset(&got);
	read_input(second, &rendered, wants_count);
	tap_span(wm_buf_span(&got), "\"6\n7\",5\r\n8,\",\"\r\n", "another order, delimiter and line end are put right");
	tap_ok(rec.line == 3 && wm_span_is(rec.fields[0].text, "2"), "the first reader's record is still there");
	wm_buf_reset(&got);
	read_input(first, &rendered, wants_count);
	tap_span(wm_buf_span(&got), "3,4\r\n", "and it goes on");
	wm_reader_free(second);

	second = new_reader(&job, &wants_count);
	tap_ok(wm_reader_adopt(second, first), "also from one that is at its end");
	wm_reader_open(second, open_text(wm_span_of("a,c\n")), "second");
	wm_buf_reset(&got);
	read_input(second, &rendered, wants_count);
	tap_span(wm_buf_span(&got), "FAILED 1 second:1: no column 'b': inputs must have the columns of first",
		"inputs are held to it");
	wm_reader_free(second);
	wm_reader_free(first);

	job = (struct job){ .wants = "2", .options = { .no_header = true } };
	first = new_reader(&job, &wants_count);
	second = new_reader(&job, &wants_count);
	tap_ok(check_ahead(first, "_1\t2\n3\t4\n", "first", &err) && wm_reader_adopt(second, first),
		"a layout that was looked at");
	wm_reader_open(second, open_text(wm_span_of("1,2,3\n4,5\n")), "second");
	wm_buf_reset(&got);
	read_input(second, &job, wants_count);
	tap_span(wm_buf_span(&got), "1!ragged 2(5) ", "without a header the number of columns belongs to it");
	wm_reader_free(second);
	wm_reader_free(first);

	job = (struct job){ .wants = "a" };
	first = new_reader(&job, &wants_count);
	second = new_reader(&job, &wants_count);
	tap_ok(check_ahead(first, "_{\"a\":1}\n", "first", &err) && wm_reader_adopt(second, first) &&
			!wm_reader_column_seen(second, 0),
		"NDJSON");
	wm_reader_open(second, open_text(wm_span_of("a,b\n")), "second");
	wm_buf_reset(&got);
	read_input(second, &job, wants_count);
	tap_span(wm_buf_span(&got), "FAILED 1 second:1: is CSV, but first is NDJSON: name inputs of one format",
		"is a layout too");
	wm_reader_free(second);
	wm_reader_free(first);
}

static void
check_optional(const char *wants, const char *input, const char *want, const char *name)
{
	struct job job = { .wants = wants, .inputs = { wm_span_of(input) } };

	wm_reader_free(run(&job));
	tap_span(wm_buf_span(&got), want, name);
	/* The same a byte at a time. */
	job.options.read_bytes_max = 1;
	wm_reader_free(run(&job));
	tap_span(wm_buf_span(&got), want, name);
}

/* Columns that an input may lack. */
static void
test_optional(void)
{
	struct job job = { .wants = "a x? b y?", .inputs = { wm_span_of("b,a\n1,2\n"), wm_span_of("a,b\n3,4\n") } };
	struct wm_reader *reader = run(&job);
	struct wm_err err;
	size_t wants_count;

	tap_span(wm_buf_span(&got), "2(2|-|1|-) 2(3|-|4|-) ", "two columns that are not there");
	tap_ok(wm_reader_column_seen(reader, 0) && !wm_reader_column_seen(reader, 1) &&
			wm_reader_column_seen(reader, 2) && !wm_reader_column_seen(reader, 3),
		"which is known");
	wm_reader_free(reader);

	check_optional("a x?", "a,b\n1,2\n3,4\n", "2(1|-) 3(3|-) ", "absent behind the others");
	check_optional("x? b", "a,b\n1,2\n3,4\n", "2(-|2) 3(-|4) ", "absent before another");
	check_optional("a x? b", "a,b\r\n1,2\r\n3,4\r\n", "2(1|-|2) 3(3|-|4) ", "CR LF, absent in the middle");
	check_optional("b x?", "a,b\r\n1,2\r\n3,4\r\n", "2(2|-) 3(4|-) ", "CR LF, absent behind the others");
	check_optional("a x? b", "a,b\r\n1,2\n3,4\r\n5,6", "2(1|-|2) 3(3|-|4) 4(5|-|6) ", "line ends of both kinds");
	check_optional("a x? b y?", "a,b\n\"1\"\"\",\"2\n\"\n3,\"4\"\n5,6\n", "2(1\"|-|2\n|-) 4(3|-|4|-) 5(5|-|6|-) ",
		"fields in quotes");
	check_optional("x? b? a", "a,b\n1,2\n3\n\"4\",5\n", "2(-|2|1) 3!ragged 4(-|5|4) ", "one is there");
	check_optional("x? y?", "a\n1\n\"2\"\n", "2(-|-) 3(-|-) ", "nothing is there");
	check_optional(
		"b? b", "a,c\n", "FAILED 1 a:1: no column 'b': there are: a, c", "one that is also asked for as usual");
	check_optional("b b?", "a,c\n", "FAILED 1 a:1: no column 'b': there are: a, c", "or before");
	check_optional("x? a", "x,a,x\n", "FAILED 1 a:1: column 'x' is there twice: give each its own name",
		"one that is there twice");
	check_optional("x? a", "{\"a\":1}\n{\"x\":2,\"a\":3}\n{\"a\":4}\n", "1(-|1) 2(2|3) 3(-|4) ", "NDJSON");
	job = (struct job){ .wants = "3? 1", .options = { .no_header = true }, .inputs = { wm_span_of("5,6\n7,8\n") } };
	wm_reader_free(run(&job));
	tap_span(wm_buf_span(&got), "1(-|5) 2(-|7) ", "columns without names");
	job.options = (struct wm_reader_options){ .columns = "1,3" };
	wm_reader_free(run(&job));
	tap_span(wm_buf_span(&got), "1(6|5) 2(8|7) ", "or with names that are told");
	job = (struct job){ .wants = "x? path",
		.options = { .format = WM_FORMAT_CLF },
		.inputs = { wm_span_of("h - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 1\n") } };
	reader = run(&job);
	tap_span(wm_buf_span(&got), "1(-|/a) ", "lines of text");
	tap_ok(!wm_reader_column_seen(reader, 0), "which is known");
	wm_reader_free(reader);

	/* What was looked at, and what was taken over from another. */
	job = (struct job){ .wants = "a x? b? y?" };
	reader = new_reader(&job, &wants_count);
	struct wm_reader *other = new_reader(&job, &wants_count);
	tap_ok(!wm_reader_checked_lacks(reader, 1), "nothing was looked at");
	tap_ok(check_ahead(reader, "_b,a\n1,2\n", "first", &err) && wm_reader_checked_lacks(reader, 1) &&
			!wm_reader_checked_lacks(reader, 2) && wm_reader_checked_lacks(reader, 3),
		"a header that was looked at lacks two");
	tap_ok(wm_reader_adopt(other, reader), "it is taken over");
	wm_reader_open(other, open_text(wm_span_of("a\tb\n3\t4\n")), "second");
	wm_buf_reset(&got);
	read_input(other, &job, wants_count);
	tap_span(wm_buf_span(&got), "2(3|-|4|-) ", "and read by");
	wm_reader_free(other);
	wm_reader_free(reader);
	reader = new_reader(&job, &wants_count);
	tap_ok(check_ahead(reader, "_{\"a\":1}\n", "first", &err) && !wm_reader_checked_lacks(reader, 1),
		"of NDJSON nothing is known beforehand");
	wm_reader_free(reader);
}

/* A file with the text, under a name that is good until the next call. */
static const char *
write_file(struct wm_span text)
{
	static char name[64];
	static int fd = -1;

	if (fd >= 0)
		close(fd);
	fd = open_text(text);
	snprintf(name, sizeof(name), "@/proc/self/fd/%d", fd);
	return name;
}

static void
check_names_file(const char *file, const char *input, const char *want, const char *name)
{
	struct job job = { .wants = "time b,c", .inputs = { wm_span_of(input) } };

	job.options.columns = write_file(wm_span_of(file));
	wm_reader_free(run(&job));
	/* Not the number of the descriptor. */
	const char *path = memmem(got.data, got.len, "/proc/self/fd/", 14);
	if (path != NULL) {
		size_t at = (size_t)(path - got.data), end = at + 14;

		while (end < got.len && got.data[end] >= '0' && got.data[end] <= '9')
			end++;
		memmove(got.data + at + 1, got.data + end, got.len - end);
		got.data[at] = 'F';
		got.len -= end - at - 1;
	}
	tap_span(wm_buf_span(&got), want, name);
}

static void
test_names_file(void)
{
	check_names_file("time,\"b,c\"\n5,6\n", "1,2\ntime,\"b,c\"\n", "1(1|2) 2(time|b,c) ", "names from a file");
	check_names_file(
		"\xef\xbb\xbf\r\n\"time\",\"b,c\"\r\n", "1,2\n", "1(1|2) ", "with byte order mark, quotes, CR LF");
	check_names_file("", "1,2\n", "REFUSED F: is empty: its first line is to name the columns", "an empty file");
	check_names_file("{\"time\":1}\n", "1,2\n",
		"REFUSED F: is NDJSON: --columns @FILE takes names from a header of CSV", "NDJSON");
	check_names_file("time,\"b", "1,2\n", "REFUSED F:1: the header cannot be read: a quoted name never ends",
		"a header that cannot be read");
	check_names_file("time,x\n", "1,2\n", "FAILED 1 a:1: no column 'b,c': there are: time, x", "a column it lacks");
	struct job job = { .options = { .columns = "@/" } };
	check_job(job, "REFUSED /: Is a directory", "a directory");
	job.options.columns = "@/none/such";
	check_job(job, "REFUSED /none/such: No such file or directory", "no file");
	job = (struct job){ .options = { .columns = "\\@x,y" }, .wants = "@x", .inputs = { wm_span_of("1,2\n") } };
	check_job(job, "1(1) ", "a name that begins with @");
	job = (struct job){ .wants = "b", .inputs = { wm_span_of("1\t2,5\n") } };
	job.options.columns = write_file(wm_span_of("a\tb\n"));
	job.inputs[0] = wm_span_of("1\t2,5\n");
	wm_reader_free(run(&job));
	tap_span(wm_buf_span(&got), "1(2,5) ", "the file says what the delimiter is");
	job.inputs[0] = wm_span_of("{\"b\":7}\n");
	wm_reader_free(run(&job));
	tap_span(wm_buf_span(&got), "1(7) ", "but of NDJSON nothing");
}

static void
test_foreign(void)
{
	struct job job = { .wants = "a", .has_details = true };

	job.inputs[0] = wm_span_of("a,b\n1,2\n\n==> x.csv <==\n3,4\n");
	check_job(job,
		"2(1) 4!ragged{1 field, the header has 2: tail wrote this line between files, use tail -q} 5(3) ",
		"a line of tail's between records");
	job.inputs[0] = wm_span_of("{\"a\":1}\n==> x <==\n");
	check_job(job, "1(1) 2!malformed-json{no object, at byte 1: tail wrote this line between files, use tail -q} ",
		"also in NDJSON");
	job.inputs[0] = wm_span("a\0,b\n1,2\n", 9);
	check_job(job, "FAILED 1 a:1: is no text, as its first line holds a NUL byte: convert it to CSV or NDJSON",
		"NUL in a header");
	job.options.no_header = true;
	job.wants = "1";
	job.inputs[0] = wm_span("a\0,b\n", 5);
	wm_reader_free(run(&job));
	tap_ok(wm_span_equal(wm_buf_span(&got), wm_span("1(a\0) ", 6)), "NUL in a record");
}

static void
test_text_lines(void)
{
	static const char access[] = "::1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/1.0\" 200 5\r\n"
				     "\r\n"
				     "hello\n"
				     "==> b.log <==\n"
				     "h - u [11/Oct/2000:13:55:36 -0700] \"GET /\\x22 HTTP/1.0\" 404 -";
	struct job job = { .options = { .format = WM_FORMAT_CLF },
		.wants = "path status user",
		.has_details = true,
		.inputs = { wm_span_of(access) } };

	check_job(job,
		"1(/a|200|) 3!malformed-line{no host, identity and user before the time} 4!malformed-line{no time in "
		"brackets behind host, identity and user: tail wrote this line between files, use tail -q} "
		"5(/\"|404|u) ",
		"an access log");
	job.options.skips_unmatched = true;
	check_job(job, "1(/a|200|) 5(/\"|404|u) ", "what is none may be skipped");
	struct wm_reader *reader = run(&job);
	tap_int((int64_t)wm_reader_counts(reader).lines_unmatched, 2, "and is counted");
	tap_int((int64_t)wm_reader_counts(reader).lines_blank, 1, "blank lines apart");
	tap_ok(wm_reader_format(reader) == WM_FORMAT_CLF && wm_reader_delimiter(reader) == ',' &&
			wm_reader_header(reader).len == 0 && strcmp(wm_reader_line_end(reader), "\r\n") == 0,
		"its layout");
	wm_reader_free(reader);
	job.wants = "pth";
	check_job(job,
		"FAILED 1 a:1: no column 'pth': did you mean 'path'? there are: host, ident, user, time, method, path, "
		"query, protocol, status, bytes, ... (14 in all)",
		"its columns are known");
	job = (struct job){ .options = { .format = WM_FORMAT_CLF, .record_bytes_max = 59 }, .has_details = true };
	job.inputs[0] = wm_span_of("h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 555\n"
				   "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5555\n"
				   "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5");
	check_job(job, "1() 2!too-long{longer than the record limit of 59 bytes} 3() ", "the record limit");
	job = (struct job){ .options = { .format = WM_FORMAT_CLF }, .is_rendered = true };
	job.inputs[0] = wm_span_of("h - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 -");
	job.inputs[1] = wm_span_of("h - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 -\r\n");
	check_job(job,
		"h - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 -\nh - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 -\n",
		"lines pass as they came");

	job = (struct job){ .options = { .format = WM_FORMAT_LOGFMT },
		.wants = "m.x a none",
		.inputs = { wm_span_of("a=1 m.x=\"y z\"\n  \n\nb\nm.x=2\n"), wm_span_of("a=\n") } };
	check_job(job, "1(y z|1|-) 2!malformed-line 4!malformed-line 5(2|-|-) 1(-||-) ", "logfmt");
	reader = run(&job);
	tap_ok(wm_reader_column_seen(reader, 0) && !wm_reader_column_seen(reader, 2), "keys that came");
	wm_reader_free(reader);

	job = (struct job){ .options = { .pattern = "^([a-z]+) ([0-9]+)$" },
		.wants = "2 1",
		.inputs = { wm_span_of("==> a <==\nab 12\n ab 1\n") } };
	check_job(job, "1!malformed-line 2(12|ab) 3!malformed-line ", "a pattern means lines of text");
	job.options.columns = "word,number";
	job.wants = "word";
	check_job(job, "1!malformed-line 2(ab) 3!malformed-line ", "whose groups may have names");
	job.options.columns = "word";
	check_job(
		job, "REFUSED pattern '^([a-z]+) ([0-9]+)$': it has 2 columns, and --columns names 1", "for each one");
	job.options.columns = write_file(wm_span_of("w,n\n"));
	job.wants = "n";
	wm_reader_free(run(&job));
	tap_span(wm_buf_span(&got), "1!malformed-line 2(12) 3!malformed-line ", "from a file too");
	job.options.columns = NULL;
	job.options.format = WM_FORMAT_CSV;
	check_job(job, "REFUSED a pattern is for lines of text: read lines, or leave it out", "a pattern for CSV");
	job = (struct job){ .options = { .format = WM_FORMAT_LINES } };
	check_job(job, "REFUSED lines need a pattern: give --pattern REGEX, or @kubectl, @syslog, @haproxy",
		"no pattern");
	job = (struct job){ .options = { .format = WM_FORMAT_CLF, .delimiter = ';' } };
	check_job(job, "REFUSED lines of text have no delimiter: leave it out, or read CSV", "a delimiter");
	job = (struct job){ .options = { .format = WM_FORMAT_CLF, .columns = "a" } };
	check_job(job, "REFUSED the columns of clf and logfmt have names of their own: leave --columns out",
		"names of columns");

	job = (struct job){ .options = { .format = WM_FORMAT_CLF }, .wants = "host" };
	size_t wants_count;
	reader = new_reader(&job, &wants_count);
	struct wm_reader *second = new_reader(&job, &wants_count);
	struct wm_err err;
	tap_ok(check_ahead(reader, "_x - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 -\n", "first", &err) &&
			wm_reader_adopt(second, reader),
		"a layout that was looked at");
	wm_reader_open(second, open_text(wm_span_of("h - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 -\n")), "second");
	wm_buf_reset(&got);
	read_input(second, &job, wants_count);
	tap_span(wm_buf_span(&got), "1(h) ", "and taken over");
	wm_reader_free(second);
	wm_reader_free(reader);
}

#define FORESEEN_LINES 400
#define FORESEEN_MAX 4096

/* Lines of all kinds: ordinary ones, and such as are no record, or take another way to be one. */
static void
add_random_line(struct wm_buf *text, uint64_t *seed, bool has_quotes, const char *line_end, int number)
{
	switch (has_quotes ? tap_random(seed) % 200 : 1 + tap_random(seed) % 40) {
	case 0:
		wm_buf_addf(text, "\"q%d\",2%s", number, line_end);
		break;
	case 1:
		wm_buf_add_text(text, line_end);
		break;
	case 2:
		wm_buf_addf(text, "short%d%s", number, line_end);
		break;
	case 3:
		wm_buf_addf(text, "a,b%s", line_end);
		break;
	default:
		wm_buf_addf(text, "%d,%d%s", number, number, line_end);
	}
}

/* What was foreseen under a number is what the record with that number says, and no two have one. */
static void
test_foreseen(void)
{
	static struct wm_buf said[FORESEEN_MAX];
	uint64_t seed = 31, last = 0;
	size_t right = 0, wrong = 0, again = 0, unnumbered = 0, missing = 0;
	struct wm_nulls nulls;

	wm_nulls_parse(&nulls, "20,21,22,23,24,25,26,27,28,29,103,105,210,213,217,300,301,302,303,304,399", false);

	for (int round = 0; round < 40; round++) {
		struct job job = { .options = { .format = WM_FORMAT_CSV }, .wants = "a b" };
		struct wm_err err;
		size_t wants_count;

		job.options.read_buffer_bytes = job.options.read_bytes_max =
			round % 2 == 0 ? 0 : 64 + (size_t)round * 20;
		job.options.nulls = round % 7 < 3 ? &nulls : NULL;
		struct wm_reader *reader = new_reader(&job, &wants_count);
		for (size_t i = 0; i < FORESEEN_MAX; i++)
			wm_buf_init(&said[i], WM_BUF_UNBOUNDED);
		last = 0;
		for (int input = 0; input < 3; input++) {
			struct wm_buf text;
			struct wm_record rec;
			struct wm_reject reject;
			enum wm_read_result result;

			wm_buf_init(&text, WM_BUF_UNBOUNDED);
			const char *line_end = round % 5 < 2 ? "\r\n" : "\n";
			wm_buf_addf(&text, "a,b%s", line_end);
			for (int i = 0; i < FORESEEN_LINES; i++)
				add_random_line(&text, &seed, round % 3 == 0, line_end, round % 4 < 2 ? i : i % 7);
			wm_reader_open(reader, open_text(wm_buf_span(&text)), "f");
			while ((result = wm_reader_next(reader, &rec, &reject, &err)) != WM_READ_END) {
				uint64_t number = wm_reader_number(reader);
				struct wm_value value;

				if (result == WM_READ_MORE && !wm_reader_fill(reader, &err))
					abort();
				if (result != WM_READ_RECORD)
					continue;
				unnumbered += number == 0;
				again += number != 0 && number <= last;
				last = number > last ? number : last;
				if (number != 0 && said[number].len != 0) {
					/* The last column alone ends where the line does. */
					struct wm_span text_said = { said[number].data + 1, said[number].len - 1 };
					bool is_same = wm_span_equal(rec.fields[1].text, text_said) &&
						rec.fields[1].kind == (enum wm_kind)said[number].data[0];

					right += is_same;
					wrong += !is_same;
					missing += rec.fields[1].kind == WM_KIND_NULL;
				}
				for (size_t ahead = 1; ahead <= 3; ahead++)
					if (wm_reader_foresee(reader, ahead, 1, &value, &number)) {
						wm_buf_reset(&said[number]);
						wm_buf_add_byte(&said[number], (char)value.kind);
						wm_buf_add(&said[number], value.text.data, value.text.len);
					}
			}
			wm_buf_release(&text);
		}
		for (size_t i = 0; i < FORESEEN_MAX; i++)
			wm_buf_release(&said[i]);
		wm_reader_free(reader);
	}
	wm_nulls_release(&nulls);
	tap_ok(wrong == 0 && again == 0 && right > 1000 && unnumbered > 1000 && missing > 100,
		"records say what was foreseen under their numbers (%zu; %zu others, %zu numbers twice)", right, wrong,
		again);
}

static void
test_io_errors(void)
{
	struct job job = { .wants = "a" };
	size_t wants_count;
	struct wm_reader *reader = new_reader(&job, &wants_count);
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err;

	wm_buf_reset(&got);
	wm_reader_open(reader, open("/", O_RDONLY), "some/folder");
	tap_ok(!read_input(reader, &job, wants_count), "a directory cannot be read");
	tap_span(wm_buf_span(&got), "FAILED 3 some/folder: Is a directory", "and says so");
	tap_int(wm_reader_next(reader, &rec, &reject, &err), WM_READ_END, "the stream is at its end");
	wm_reader_free(reader);
}

/* Records of the limit and one byte more, line end aside, in every way of reading. */
static void
test_limit(void)
{
	struct job job = { .wants = "a", .options = { .record_bytes_max = 10 }, .has_details = true };
	const char *long_detail = "!too-long{longer than the record limit of 10 bytes} ";
	char want[1000];

	job.inputs[0] = wm_span_of("a,b\n1,34567890\n2,345678901\n3,\"567890\"\n4,\"5678901\"\n5,34567890\r\n6,"
				   "345678901\r\n7,3456\"789\n8,3\"5678901\n9,x\n");
	snprintf(want, sizeof(want), "2(1) 3%s4(3) 5%s6(5) 7%s8(7) 9%s10(9) ", long_detail, long_detail, long_detail,
		long_detail);
	check_job(job, want, "CSV records of 10 and 11 bytes");
	job.inputs[0] = wm_span_of("a,b\n1,34567890");
	check_job(job, "2(1) ", "the last one without line end, 10");
	job.inputs[0] = wm_span_of("a,b\n1,34567890\r");
	check_job(job, "2(1) ", "or with half of one");
	job.inputs[0] = wm_span_of("a,b\n1,345678901");
	snprintf(want, sizeof(want), "2%s", long_detail);
	check_job(job, want, "and 11 bytes");
	job.inputs[0] = wm_span_of("a,b\n1,\"\n2,x\n3,y\n4,z\n5,w\n");
	check_job(job,
		"2!too-long{longer than the record limit of 10 bytes: a quoted field begins in line 2: reading goes on "
		"in "
		"line 3} 3(2) 4(3) 5(4) 6(5) ",
		"of one of several lines the line with the quote is");
	job.inputs[0] = wm_span_of("a,b\n1,\"3\n4567890\n2,x\n");
	check_job(job,
		"2!too-long{longer than the record limit of 10 bytes: a quoted field begins in line 2: reading goes on "
		"in "
		"line 3} 3!ragged{1 field, the header has 2} 4(2) ",
		"which is known by the bytes from the record's begin");
	job.inputs[0] = wm_span_of("a,b\n1,\"34567890123\n2,x\n");
	snprintf(want, sizeof(want), "2%s3(2) ", long_detail);
	check_job(job, want, "a line with the quote that is too long itself");
	job.inputs[0] = wm_span_of("a,b\n1,\"x\"y         \n2,\"x\"y  \n3,\"            ");
	snprintf(want, sizeof(want), "2%s3!malformed-csv{text behind a closing quote} 4%s", long_detail, long_detail);
	check_job(job, want, "too long goes before malformed");
	job.inputs[0] = wm_span_of("a,b,c,d,e,f\n");
	check_job(job, "FAILED 1 a:1: the header is longer than the record limit of 10 bytes: raise --record-limit",
		"a header");
	job.inputs[0] = wm_span_of("{\"a\":1234}\n{\"a\":12345}\n{\"a\":1,}  \n{\"a\":1,}   \n           \n         "
				   " \n{\"a\":1234}\r\n{\"a\":12345");
	snprintf(want, sizeof(want),
		"1(1234) 2%s3!malformed-json{no name where a member must begin, at byte 8} 4%s5%s7(1234) "
		"8!malformed-json{it ends too early, at byte 11} ",
		long_detail, long_detail, long_detail);
	check_job(job, want, "NDJSON");
	job.inputs[0] = wm_span_of("{\"a\":123456789}\n{\"a\":1}\n");
	snprintf(want, sizeof(want), "1%s2(1) ", long_detail);
	check_job(job, want, "also its first line");
	job.inputs[0] = wm_span_of("           \n{\"a\":1}\n");
	check_job(job, "FAILED 1 a:1: the header is longer than the record limit of 10 bytes: raise --record-limit",
		"a line of blanks that is too long is no blank line");
	job = (struct job){ .options = { .record_bytes_max = 10, .no_header = true }, .is_rendered = true };
	job.inputs[0] = wm_span_of("1234567890,\r\n1\t2\n");
	check_job(job, "1!too-long 1\t2\n", "a first line that is too long says no more than its begin");
}

/* A line of 5 MB without quotes, one with line ends inside, and what comes behind them. */
static void
test_long(void)
{
	struct job job = { .wants = "ts key note" };
	struct wm_buf text;
	size_t wants_count, records = 0;
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err;
	bool is_well = true;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_add_text(&text, "ts,key,note\n1,a,short\n2,a,");
	for (int i = 0; i < 10000; i++)
		for (int k = 0; k < 500; k += 100)
			wm_buf_addf(&text, "%0100d", 0);
	wm_buf_add_text(&text, "\n3,b,\"");
	for (int i = 0; i < 10000; i++)
		wm_buf_addf(&text, "%0499d\n", 0);
	wm_buf_add_text(&text, "\"\n");
	for (int i = 0; i < 1000; i++)
		wm_buf_add_text(&text, "4,c,s\n");
	struct wm_reader *reader = new_reader(&job, &wants_count);
	wm_reader_open(reader, open_text(wm_buf_span(&text)), "long.csv");
	for (;;) {
		enum wm_read_result result = wm_reader_next(reader, &rec, &reject, &err);

		if (result == WM_READ_MORE && wm_reader_fill(reader, &err))
			continue;
		if (result != WM_READ_RECORD)
			break;
		size_t want = records == 1 || records == 2 ? 5000000 : records == 0 ? 5 : 1;
		is_well = is_well && rec.fields[2].text.len == want &&
			rec.line == (records <= 2 ? records + 2 : records + 10002);
		records++;
	}
	tap_ok(is_well && records == 1003, "fields of 5 MB, quoted or not, and 1 001 short rows");
	wm_reader_free(reader);
	wm_buf_release(&text);
}

/* Where the line ends in which offset at stands: behind its line feed, or at the end of the text. */
static size_t
line_end_of(struct wm_span text, size_t at)
{
	while (at < text.len && text.data[at] != '\n')
		at++;
	return at < text.len ? at + 1 : at;
}

static uint64_t
lines_of(struct wm_span text, size_t begin, size_t end)
{
	uint64_t lines = 0;

	for (size_t i = begin; i < end; i++)
		lines += text.data[i] == '\n';
	return lines;
}

/*
 * What the rules say of a text of CSV or TSV with the columns a and b; wants is "a b". A record that is rejected goes up to the
 * end of the line in which its last quoted field begins; of one that is too long the fields count that begin within the
 * limit. Returns how far the text is taken.
 */
static size_t
model_csv(struct wm_span text, const struct wm_reader_options *options, struct wm_buf *want)
{
	bool is_tsv = options->format == WM_FORMAT_TSV, has_escapes = options->refuse_value == NULL;
	struct csv_model model = { 0 };
	struct wm_span header = { NULL, 0 };
	uint64_t line = 1;
	size_t limit = options->record_bytes_max, at = 0;

	wm_buf_init(&model.fields, WM_BUF_UNBOUNDED);
	for (size_t next; at < text.len; line += lines_of(text, at, next), at = next) {
		model.bound = SIZE_MAX;
		next = is_tsv ? tsv_model_read(&model, text, has_escapes, at) : csv_model_read(&model, text, ',', at);
		struct wm_span content = wm_cut_content(wm_span(text.data + at, next - at));
		bool is_long = content.len > limit, has_ended = text.data[next - 1] == '\n' && !model.is_open;
		if (!is_long && !has_ended && (options->keeps_partial || (options->keeps_quoted && model.is_open)))
			break;
		if (model.is_blank || (header.data != NULL && wm_span_equal(content, header)))
			continue;
		if (header.data == NULL) {
			header = content;
			continue;
		}
		wm_buf_addf(want, "%" PRIu64, line);
		if (!is_long && !model.is_malformed && model.fields_count == 2) {
			wm_buf_addf(want, "%.*s ", (int)model.fields.len, model.fields.data);
			continue;
		}
		wm_buf_add_text(want,
			is_long                       ? "!too-long "
				: !model.is_malformed ? "!ragged "
				: is_tsv              ? "!malformed-tsv "
						      : "!malformed-csv ");
		if (is_long) {
			model.bound = at + limit;
			(void)(is_tsv ? tsv_model_read(&model, text, has_escapes, at)
				      : csv_model_read(&model, text, ',', at));
		}
		next = line_end_of(text, model.quoted > at ? model.quoted : at);
	}
	wm_buf_release(&model.fields);
	return at;
}

/* Rewrites "(x|y)" as "[1:x][1:y]" is hard where fields hold such bytes, so the log itself is made that way. */
static size_t
read_as_model(const struct job *job)
{
	size_t wants_count;
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err;
	struct wm_reader *reader = new_reader(job, &wants_count);

	wm_reader_open(reader, open_text(job->inputs[0]), "random");
	for (;;) {
		enum wm_read_result result = wm_reader_next(reader, &rec, &reject, &err);

		if (result == WM_READ_MORE && wm_reader_fill(reader, &err))
			continue;
		if (result == WM_READ_REJECTED) {
			log_reject(job, &reject);
		} else if (result == WM_READ_RECORD) {
			wm_buf_addf(&got, "%" PRIu64, rec.line);
			for (size_t i = 0; i < wants_count; i++) {
				wm_buf_addf(&got, "[%zu:", rec.fields[i].text.len);
				wm_buf_add(&got, rec.fields[i].text.data, rec.fields[i].text.len);
				wm_buf_add_byte(&got, ']');
			}
			wm_buf_add_byte(&got, ' ');
		} else {
			break;
		}
	}
	size_t taken = (size_t)wm_reader_position(reader).offset;
	wm_reader_free(reader);
	return taken;
}

/* Whether reads of three sizes, two of them random, give the log of the model, and take as much. */
static bool
reads_as_model(struct job *job, size_t taken, struct wm_span want, uint64_t *random)
{
	for (size_t k = 0; k < 3; k++) {
		job->options.read_bytes_max = k == 0 ? 0 : 1 + tap_random(random) % (k == 1 ? 3 : 30);
		wm_buf_reset(&got);
		size_t got_taken = read_as_model(job);
		if (wm_span_equal(wm_buf_span(&got), want) && got_taken == taken)
			continue;
		printf("# limit %zu, reads of %zu, keeps %d %d, text '%.*s'\n# got  %zu: %.*s\n# want %zu: %.*s\n",
			job->options.record_bytes_max, job->options.read_bytes_max, job->options.keeps_partial,
			job->options.keeps_quoted, (int)job->inputs[0].len, job->inputs[0].data, got_taken,
			(int)got.len, got.data, taken, (int)want.len, want.data);
		return false;
	}
	return true;
}

static void
test_csv_against_model(void)
{
	static const char *const headers[] = { "a,b\n", "a,b\r\n", "\"a\",b\n", "\n\r\nb,a\n",
		"\xef\xbb\xbf\x61,\"b\"\r\n" };
	static const char *const pieces[] = { "a,b", "x", "\"", ",", "\n", "\r\n", "\r", "1,2\n", "\"x\",y\n", "\"\n\"",
		"\"\"", "\",", ",\"x\"", "x,\"y\n" };
	uint64_t random = 11;
	struct wm_buf text, want;
	bool is_well = true;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 20000 && is_well; i++) {
		size_t header = tap_random(&random) % 5, limit = i % 3 == 0 ? 9 + tap_random(&random) % 12 : 1000;
		struct job job = { .wants = header == 3 ? "b a" : "a b", .options = { .record_bytes_max = limit } };

		job.options.keeps_partial = i % 5 == 1;
		job.options.keeps_quoted = i % 5 >= 3;

		wm_buf_reset(&text);
		wm_buf_reset(&want);
		wm_buf_add_text(&text, headers[header]);
		for (uint64_t n = tap_random(&random) % 24; n-- > 0;)
			wm_buf_add_text(&text, pieces[tap_random(&random) % 14]);
		job.inputs[0] = wm_buf_span(&text);
		size_t mark = header == 4 ? 3 : 0;
		size_t taken = mark + model_csv(wm_span(text.data + mark, text.len - mark), &job.options, &want);
		is_well = reads_as_model(&job, taken, wm_buf_span(&want), &random);
	}
	tap_ok(is_well, "random CSV, any read sizes: records, rejects and lines as the model has them");
	wm_buf_release(&text);
	wm_buf_release(&want);
}

static void
ignore_value(struct wm_span value)
{
	(void)value;
}

static void
test_tsv_against_model(void)
{
	static const char *const headers[] = { "a\tb\n", "a\tb\r\n", "\n\r\na\tb\n", "\xef\xbb\xbf\x61\tb\r\n" };
	static const char *const pieces[] = { "a\tb", "x", "\"", "\t", "\n", "\r\n", "\r", "1\t2\n", "\\", "\\t",
		"\\\n", "\\\r\n", "\\\\", "\\\t", "y\tz\r\n", "\"q\"\tC:\\dir\n" };
	uint64_t random = 17;
	struct wm_buf text, want;
	bool is_well = true;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 20000 && is_well; i++) {
		size_t header = tap_random(&random) % 4, limit = i % 3 == 0 ? 9 + tap_random(&random) % 12 : 1000;
		struct job job = { .wants = "a b", .options = { .format = WM_FORMAT_TSV, .record_bytes_max = limit } };

		job.options.keeps_partial = i % 5 == 1;
		job.options.keeps_quoted = i % 5 >= 3;
		job.options.refuse_value = i % 7 == 0 ? ignore_value : NULL;

		wm_buf_reset(&text);
		wm_buf_reset(&want);
		wm_buf_add_text(&text, headers[header]);
		for (uint64_t n = tap_random(&random) % 24; n-- > 0;)
			wm_buf_add_text(&text, pieces[tap_random(&random) % 16]);
		job.inputs[0] = wm_buf_span(&text);
		size_t mark = header == 3 ? 3 : 0;
		size_t taken = mark + model_csv(wm_span(text.data + mark, text.len - mark), &job.options, &want);
		is_well = reads_as_model(&job, taken, wm_buf_span(&want), &random);
	}
	tap_ok(is_well, "random TSV, any read sizes: records, rejects and lines as the model has them");
	wm_buf_release(&text);
	wm_buf_release(&want);
}

/* A field as it stands in a file whose lines end in CR, and what it says; NULL: its line is rejected. */
struct cr_field {
	const char *raw;
	const char *said;
};

/* A log as read_as_model() makes it, known by how the text was made. */
static void
add_cr_row(struct wm_buf *text, struct wm_buf *want, const struct cr_field *fields, size_t count, char delimiter,
	uint64_t *random)
{
	struct cr_field row[2];
	uint64_t line = 1;

	for (const char *at = text->data; (at = memchr(at, '\r', (size_t)(text->data + text->len - at))) != NULL; at++)
		line++;
	for (size_t i = 0; i < 2; i++)
		row[i] = fields[tap_random(random) % count];
	/* A rejected record of several lines would be cut back: that is tried elsewhere. */
	for (size_t i = 0; i < 2; i++)
		if (row[i].said == NULL && strchr(row[1 - i].raw, '\r') != NULL)
			row[1 - i] = fields[0];
	wm_buf_addf(text, "%s%c%s\r", row[0].raw, delimiter, row[1].raw);
	wm_buf_addf(want, "%" PRIu64, line);
	if (row[0].said == NULL || row[1].said == NULL) {
		wm_buf_add_text(want, "!bad-line-end ");
		return;
	}
	for (size_t i = 0; i < 2; i++)
		wm_buf_addf(want, "[%zu:%s]", strlen(row[i].said), row[i].said);
	wm_buf_add_byte(want, ' ');
}

static void
test_cr_alone(void)
{
	static const struct cr_field csv[] = { { "x", "x" }, { "\"\"", "" }, { "\"p\nq\"", "p\nq" },
		{ "\"p\rq\"", "p\rq" }, { "\"p\r\n\"\"q\"\"\"", "p\r\n\"q\"" }, { "p\nq", NULL }, { "\np", NULL },
		{ "p\n", NULL }, { "a\"b", "a\"b" } };
	static const struct cr_field tsv[] = { { "x", "x" }, { "\"", "\"" }, { "p\\nq", "p\nq" }, { "p\\\rq", "p\rq" },
		{ "p\\\nq", "p\nq" }, { "\\r\\t", "\r\t" }, { "p\nq", NULL }, { "\\\\\np", NULL },
		{ "C:\\x", "C:\\x" } };
	uint64_t random = 19;
	struct wm_buf text, want;
	bool is_well = true;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 60 && is_well; i++) {
		bool is_tsv = i % 2 == 0;
		char delimiter = is_tsv ? '\t' : ',';
		struct job job = { .wants = "a b" };

		wm_buf_reset(&text);
		wm_buf_reset(&want);
		wm_buf_addf(&text, "a%cb\r", delimiter);
		/* No LF for so long. */
		for (uint64_t line = 2; text.len < (size_t)64 << 10; line++) {
			wm_buf_addf(&text, "%0400d%c1\r", (int)line, delimiter);
			wm_buf_addf(&want, "%" PRIu64 "[400:%0400d][1:1] ", line, (int)line);
		}
		for (uint64_t n = tap_random(&random) % 40; n-- > 0;)
			add_cr_row(&text, &want, is_tsv ? tsv : csv, 9, delimiter, &random);
		job.inputs[0] = wm_buf_span(&text);
		job.options.read_bytes_max = i % 3 == 0 ? 0 : 1 + tap_random(&random) % (i % 3 == 1 ? 300 : 100000);
		wm_buf_reset(&got);
		is_well = read_as_model(&job) == text.len && wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
		if (!is_well)
			printf("# reads of %zu, text ends '%s'\n# got  %s\n# want %s\n", job.options.read_bytes_max,
				text.data + text.len - 100, got.data + got.len - 100, want.data + want.len - 100);
	}
	tap_ok(is_well, "lines that end in CR alone: fields, rejects and lines, any read sizes");
	wm_buf_release(&text);
	wm_buf_release(&want);

	check("a b", "a,b\r1,2\r3,4\r", "2(1|2) 3(3|4) ", "a short file");
	check("a b", "a,b\r1,2", "2(1|2) ", "whose last line needs no end");
	check("a b", "\xef\xbb\xbf\x61,b\r\r1,2\ra,b\r3,4\r", "3(1|2) 5(3|4) ", "mark, empty line, header again");
	check("a b", "a,\"b\"\r1,\"2\r\"\r", "2(1|2\r) ", "a CR in quotes is a letter");
	check("b\r", "a,b\r\n1,2\n", "FAILED 1 a:1: no column 'b\\x0D': there are: a, b", "one LF, and it is not so");
	check("a b", "a,b\r", "", "a header that may go on with an LF");
	check("a", "\"a\rb\"", "FAILED 1 a:1: no column 'a': there are: a\\x0Db", "no CR outside quotes");
	struct job job = { .is_rendered = true,
		.inputs = { wm_span_of("a,b\r1,2\r3,4\r"), wm_span_of("b,a\n\"5\n\",6\n") } };
	check_job(job, "a,b\n1,2\n3,4\n6,\"5\n\"\n", "rendered with LF");
	job.inputs[0] = wm_span_of("a,b\r\n0,0\r\n");
	job.inputs[1] = wm_span_of("a,b\r1,\"2\r\"\r\"x,\",4\r");
	check_job(job, "a,b\r\n0,0\r\n1,\"2\r\"\r\n\"x,\",4\r\n",
		"in the layout of another, with what is in quotes as it came");
}

/* Enough rows for several batches and buffers, some quoted, some bad. */
static void
test_many_rows(void)
{
	static const char *const rows[] = { "1,2\n", "\"q,\",\"w\nv\"\n", "\n", "1\r\n", "abc,defghij\r\n",
		"\"a\"b,c\n", ",\n" };
	uint64_t random = 13;
	struct wm_buf text, want;
	struct job job = { .wants = "a b" };
	bool is_well = true;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	wm_buf_add_text(&text, "a,b\n");
	for (int i = 0; i < 60000; i++) {
		/* Runs of plain rows, so that batches fill. */
		uint64_t kind = i / 3000 % 2 == 0 ? 4 : tap_random(&random) % 7;

		wm_buf_add_text(&text, rows[kind]);
		if (i % 9000 == 0)
			wm_buf_addf(&text, "%040000d,1\n", i);
	}
	job.options.record_bytes_max = WM_RECORD_BYTES_DEFAULT;
	model_csv(wm_buf_span(&text), &job.options, &want);
	job.inputs[0] = wm_buf_span(&text);
	static const size_t reads[] = { 0, 65536, 4096, 777 };
	for (size_t i = 0; i < 4 && is_well; i++) {
		job.options.read_bytes_max = reads[i];
		wm_buf_reset(&got);
		read_as_model(&job);
		is_well = wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
	}
	tap_ok(is_well, "60 000 rows over many batches");
	wm_buf_release(&text);
	wm_buf_release(&want);
}

static void
test_ndjson_against_model(void)
{
	static const char *const pieces[] = { "{\"a\":1,\"b\":2}", "{\"a\":\"x\"}", "\"", "}", "\n", "\r\n", " ", "\\",
		"\xff", "{}\n", "{\"a\":[]}\n", "\n{\"a\":{\"b\":1}}\r\n" };
	uint64_t random = 17;
	struct wm_buf text, want;
	size_t records = 0;
	bool is_well = true;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 6000 && is_well; i++) {
		size_t limit = i % 3 == 0 ? 12 + tap_random(&random) % 6 : 1000;
		struct job job = { .options = { .record_bytes_max = limit, .format = WM_FORMAT_NDJSON } };
		uint64_t line = 1;

		wm_buf_reset(&text);
		wm_buf_reset(&want);
		for (uint64_t n = tap_random(&random) % 24; n-- > 0;)
			wm_buf_add_text(&text, pieces[tap_random(&random) % 12]);
		if (text.len == 0)
			continue;
		for (size_t at = 0, len; at < text.len; at += len, line++) {
			const char *line_feed = memchr(text.data + at, '\n', text.len - at);

			len = line_feed == NULL ? text.len - at : (size_t)(line_feed - (text.data + at)) + 1;
			bool is_blank = json_model_is_blank(text.data + at, len);
			size_t content_len = wm_cut_content(wm_span(text.data + at, len)).len;
			if (is_blank && content_len <= limit)
				continue;
			bool is_object = json_model_is_object(text.data + at, len);
			records += is_object;
			wm_buf_addf(&want, "%" PRIu64 "%s ", line,
				content_len > limit ? "!too-long"
					: is_object ? ""
						    : "!malformed-json");
		}
		job.inputs[0] = wm_buf_span(&text);
		for (size_t k = 0; k < 3 && is_well; k++) {
			job.options.read_bytes_max = k == 0 ? 0 : 1 + tap_random(&random) % (k == 1 ? 3 : 30);
			wm_buf_reset(&got);
			read_as_model(&job);
			is_well = wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
			if (!is_well)
				printf("# limit %zu, reads of %zu, text '%.*s'\n# got  %.*s\n# want %.*s\n", limit,
					job.options.read_bytes_max, (int)text.len, text.data, (int)got.len, got.data,
					(int)want.len, want.data);
		}
	}
	tap_ok(is_well && records > 3000,
		"random NDJSON, any read sizes: records, rejects and lines as the model has them");
	wm_buf_release(&text);
	wm_buf_release(&want);
}

/* A live pipe: a record comes out as soon as its line feed is there, and nothing waits. */
static void
test_pipe(void)
{
	struct job job = { .wants = "a" };
	size_t wants_count;
	struct wm_reader *reader = new_reader(&job, &wants_count);
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err;
	int ends[2];

	if (pipe(ends) != 0)
		abort();
	wm_reader_open(reader, ends[0], "pipe");
	tap_int(wm_reader_fd(reader), ends[0], "the descriptor to poll");
	bool is_well = wm_reader_next(reader, &rec, &reject, &err) == WM_READ_MORE;
	is_well = is_well && write(ends[1], "a\n1\n2", 5) == 5 && wm_reader_fill(reader, &err);
	is_well =
		is_well && wm_reader_next(reader, &rec, &reject, &err) == WM_READ_RECORD && wm_span_is(rec.raw, "1\n");
	is_well = is_well && wm_reader_next(reader, &rec, &reject, &err) == WM_READ_MORE;
	is_well = is_well && write(ends[1], "3\n", 2) == 2 && wm_reader_fill(reader, &err);
	is_well =
		is_well && wm_reader_next(reader, &rec, &reject, &err) == WM_READ_RECORD && wm_span_is(rec.raw, "23\n");
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	is_well =
		is_well && wm_reader_fill(reader, &err) && wm_reader_next(reader, &rec, &reject, &err) == WM_READ_MORE;
	close(ends[1]);
	is_well = is_well && wm_reader_fill(reader, &err) && wm_reader_next(reader, &rec, &reject, &err) == WM_READ_END;
	is_well = is_well && wm_reader_next(reader, &rec, &reject, &err) == WM_READ_END;
	tap_ok(is_well, "records of a pipe come one by one");
	wm_reader_free(reader);
}

/* Reads on until so many records and rejects have come; false at the end of the input. */
static bool
read_some(struct wm_reader *reader, const struct job *job, size_t wants_count, size_t count)
{
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_err err = { 0 };

	while (count > 0) {
		switch (wm_reader_next(reader, &rec, &reject, &err)) {
		case WM_READ_RECORD:
			log_record(reader, job, &rec, wants_count);
			count--;
			break;
		case WM_READ_REJECTED:
			log_reject(job, &reject);
			count--;
			break;
		case WM_READ_MORE:
			if (wm_reader_fill(reader, &err))
				break;
			/* fallthrough */
		case WM_READ_FAILED:
			wm_buf_addf(&got, "FAILED %s", err.message);
			return false;
		case WM_READ_END:
			return false;
		}
	}
	return true;
}

enum way { WAY_SEEK, WAY_CONTINUE, WAY_REPLAY, WAYS };

static int
open_pipe(struct wm_span text)
{
	int ends[2];

	if (pipe(ends) != 0 || write(ends[1], text.data, text.len) != (ssize_t)text.len)
		abort();
	close(ends[1]);
	return ends[0];
}

/* Frees a reader, and adds its counts to those of the readers before it. */
static void
end_counted(struct wm_reader *reader, struct wm_reader_counts *sum)
{
	struct wm_reader_counts counts = wm_reader_counts(reader);

	sum->lines_blank += counts.lines_blank;
	sum->headers_repeated += counts.headers_repeated;
	wm_reader_free(reader);
}

static void
log_counts(const struct wm_reader_counts *sum)
{
	wm_buf_addf(&got, "%llu blank, %llu headers", (unsigned long long)sum->lines_blank,
		(unsigned long long)sum->headers_repeated);
}

/* The log of an input that is left after count records, and gone on with by another reader. */
static void
read_in_two(const struct job *job, size_t count, enum way way)
{
	struct wm_span text = job->inputs[0];
	struct wm_buf layout, input, rest;
	struct wm_get in;
	struct wm_reader_counts sum = { 0 };
	size_t wants_count;

	wm_buf_init(&layout, WM_BUF_UNBOUNDED);
	wm_buf_init(&input, WM_BUF_UNBOUNDED);
	wm_buf_init(&rest, WM_BUF_UNBOUNDED);
	struct wm_reader *reader = new_reader(job, &wants_count);
	wm_reader_open(reader, way == WAY_SEEK ? open_text(text) : open_pipe(text), "a");
	read_some(reader, job, wants_count, count);
	struct wm_reader_position at = wm_reader_position(reader);
	wm_reader_encode_layout(reader, &layout);
	wm_reader_encode_input(reader, &input);
	/* What was not read when it was left comes through the next pipe. */
	wm_buf_add(&rest, at.rest.data, at.rest.len);
	end_counted(reader, &sum);

	reader = new_reader(job, &wants_count);
	wm_get_init(&in, layout.len == 0 ? wm_span("", 0) : wm_buf_span(&layout));
	if (!wm_reader_decode_layout(reader, &in))
		wm_buf_add_text(&got, "NO LAYOUT ");
	const struct wm_reader_start start = {
		.offset = at.offset,
		.lines = at.lines,
		.input = wm_buf_span(&input),
		.is_continued = way == WAY_CONTINUE,
		.rest = way == WAY_CONTINUE && rest.len != 0 ? wm_buf_span(&rest) : wm_span("", 0),
	};
	size_t read_len = (size_t)at.offset + rest.len;
	int fd = way == WAY_SEEK    ? open_text(text)
		: way == WAY_REPLAY ? open_pipe(text)
				    : open_pipe(wm_span(text.data + read_len, text.len - read_len));
	wm_reader_open_at(reader, fd, "a", &start);
	read_some(reader, job, wants_count, SIZE_MAX);
	end_counted(reader, &sum);
	log_counts(&sum);
	wm_buf_release(&layout);
	wm_buf_release(&input);
	wm_buf_release(&rest);
}

/* An input that is left anywhere and gone on with gives what it gives in one piece. */
static void
test_going_on(void)
{
	static const struct {
		const char *name;
		struct job job;
	} jobs[] = {
		{ "CSV", { .wants = "b a", .inputs = { SPAN("a,b\n1,2\n\n3,4\nx\na,b\n5,6\n7,8\n") } } },
		{ "CSV with quotes, a mark and CR LF",
			{ .wants = "a b",
				.inputs = { SPAN("\xEF\xBB\xBF"
						 "a,b\r\n\"1\r\n1\",\"2\"\"\"\r\n3,4\r\n\"x\"y,\r\n5,\"6") } } },
		{ "CSV without header",
			{ .options.no_header = true, .wants = "2", .inputs = { SPAN("1,2\n3,4\n\n5,6\n7") } } },
		{ "CSV behind blank lines", { .wants = "a", .inputs = { SPAN("\n\r\na,b\n\n1,2\na,b\n3,4\n") } } },
		{ "CSV with names", { .options.columns = "k,v", .wants = "v", .inputs = { SPAN("1,2\n3,4\n5,6\n") } } },
		{ "NDJSON", { .wants = "a", .inputs = { SPAN("\n{\"a\":1}\n{\"b\":2}\nx\n\n{\"a\":3}\n{\"a\":4}") } } },
		{ "logfmt",
			{ .options.format = WM_FORMAT_LOGFMT,
				.wants = "a",
				.inputs = { SPAN("\na=1 b=2\n\na=3\nb=4\n") } } },
		{ "CSV with records that are too long",
			{ .options.record_bytes_max = 9,
				.wants = "a",
				.inputs = { SPAN(
					"a,b\n1,2\n\"too\n long\",in two lines\n3,4\nfar,too long\n5,6\n") } } },
		{ "NDJSON with lines that are too long",
			{ .options.record_bytes_max = 12,
				.wants = "a",
				.inputs = { SPAN("{\"a\":1}\n{\"a\":\"far too long\"}\n{\"a\":2}\n") } } },
	};
	static const char *const ways[] = { "sought", "continued", "replayed" };
	struct wm_buf whole;

	wm_buf_init(&whole, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		for (enum way way = 0; way < WAYS; way++) {
			bool is_same = true;

			for (size_t read_bytes = 1; read_bytes <= 4096 && is_same; read_bytes = read_bytes * 7 + 1) {
				struct job job = jobs[i].job;
				size_t wants_count;

				job.options.read_bytes_max = read_bytes;
				wm_buf_reset(&whole);
				wm_buf_reset(&got);
				struct wm_reader *reader = new_reader(&job, &wants_count);
				wm_reader_open(reader, open_text(job.inputs[0]), "a");
				read_some(reader, &job, wants_count, SIZE_MAX);
				struct wm_reader_counts sum = { 0 };
				end_counted(reader, &sum);
				log_counts(&sum);
				wm_buf_add(&whole, got.data, got.len);
				for (size_t count = 0; count < 9 && is_same; count++) {
					wm_buf_reset(&got);
					read_in_two(&job, count, way);
					is_same = wm_span_equal(wm_buf_span(&got), wm_buf_span(&whole));
				}
			}
			if (!tap_ok(is_same, "%s: left anywhere and %s, the same records", jobs[i].name, ways[way]))
				printf("#   got  '%.*s'\n#   want '%.*s'\n", (int)got.len, got.data, (int)whole.len,
					whole.data);
		}
	}
	wm_buf_release(&whole);
}

/* What the end cuts off is left for later, where that is asked for. */
static void
test_partial(void)
{
	static const struct {
		const char *name;
		struct job job;
		const char *want;
		uint64_t offset;
	} cases[] = {
		{ "a CSV record", { .wants = "a", .inputs = { SPAN("a\n1\n2") } }, "2(1) ", 4 },
		{ "a quoted field", { .wants = "a", .inputs = { SPAN("a\n1\n\"2\n") } }, "2(1) ", 4 },
		{ "a header", { .wants = "a", .inputs = { SPAN("\na,b") } }, "", 1 },
		{ "a line of NDJSON", { .wants = "a", .inputs = { SPAN("{\"a\":1}\n{\"a\":2}") } }, "1(1) ", 8 },
		{ "a line of text",
			{ .options.format = WM_FORMAT_LOGFMT, .wants = "a", .inputs = { SPAN("a=1\na=2") } }, "1(1) ",
			4 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct job job = cases[i].job;
		size_t wants_count;

		job.options.keeps_partial = true;
		wm_buf_reset(&got);
		struct wm_reader *reader = new_reader(&job, &wants_count);
		wm_reader_open(reader, open_text(job.inputs[0]), "a");
		read_some(reader, &job, wants_count, SIZE_MAX);
		struct wm_reader_position at = wm_reader_position(reader);
		tap_ok(wm_span_is(got.len == 0 ? wm_span("", 0) : wm_buf_span(&got), cases[i].want) && at.is_at_end &&
				at.offset == cases[i].offset && at.rest.len == job.inputs[0].len - cases[i].offset,
			"%s that the end cuts off is left", cases[i].name);
		wm_reader_free(reader);
	}
}

int
main(void)
{
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	test_csv();
	test_options();
	test_ndjson();
	test_inputs();
	test_questions();
	test_check();
	test_adopt();
	test_optional();
	test_names_file();
	test_foreign();
	test_text_lines();
	test_foreseen();
	test_io_errors();
	test_limit();
	test_long();
	test_csv_against_model();
	test_tsv_against_model();
	test_cr_alone();
	test_many_rows();
	test_ndjson_against_model();
	test_pipe();
	test_going_on();
	test_partial();
	wm_buf_release(&got);
	return tap_done();
}
