/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/foreign.h"

#include "tests/unit/tap.h"

static void
check(struct wm_span line, enum wm_format format, bool has_header, const char *want, const char *name)
{
	const char *found = wm_foreign_find(line, format, has_header);

	tap_text(found == NULL ? "" : found, want, name);
}

/* The first line of a file that nothing was said of. */
static void
check_auto(const char *line, const char *want, const char *name)
{
	check(wm_span_of(line), WM_FORMAT_AUTO, true, want, name);
}

static void
test_bytes(void)
{
	/* The first bytes that gzip, zstd, xz and bzip2 -9 made of "a,b\n1,2\n"; and of nothing. */
	static const char gz[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\xd4", zst[] = "\x28\xb5\x2f\xfd\x24\x08",
			  xz[] = "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6",
			  bz2[] = "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\xe4",
			  empty_bz2[] = "\x42\x5a\x68\x39\x17\x72\x45\x38\x50\x90\x00";
	static const enum wm_format formats[] = { WM_FORMAT_AUTO, WM_FORMAT_CSV, WM_FORMAT_NDJSON };

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		check(wm_span(gz, sizeof(gz) - 1), formats[i], i != 1, "is compressed: read it through zcat", "gzip");
		check(wm_span(zst, sizeof(zst) - 1), formats[i], true, "is compressed: read it through zstdcat",
			"zstd");
		check(wm_span(xz, sizeof(xz) - 1), formats[i], true, "is compressed: read it through xzcat", "xz");
		check(wm_span(bz2, sizeof(bz2) - 1), formats[i], true, "is compressed: read it through bzcat", "bzip2");
		check(wm_span(empty_bz2, sizeof(empty_bz2) - 1), formats[i], true,
			"is compressed: read it through bzcat", "bzip2 of nothing");
		check(wm_span("\xff\xfe"
			      "a\0,\0b\0\n",
			      9),
			formats[i], true, "is UTF-16: convert it with iconv -f UTF-16 -t UTF-8", "UTF-16 that says so");
		check(wm_span("\xfe\xff\0a\0,\0b\0\n", 10), formats[i], true,
			"is UTF-16: convert it with iconv -f UTF-16 -t UTF-8", "or the other way round");
		check(wm_span("a\0,\0b\0\n", 7), formats[i], true,
			"is UTF-16: convert it with iconv -f UTF-16LE -t UTF-8", "UTF-16 that does not");
		check(wm_span("\0a\0,\0b\0\n", 8), formats[i], true,
			"is UTF-16: convert it with iconv -f UTF-16BE -t UTF-8", "nor here");
	}
	check_auto("BZh9,b\n", "", "a name that begins as bzip2 does");
	check(wm_span("PAR1\0\0\x15\x04\n", 9), WM_FORMAT_AUTO, true,
		"is no text, as its first line holds a NUL byte: convert it to CSV or NDJSON", "a binary file");
	check(wm_span("\0\0\0\0\n", 5), WM_FORMAT_AUTO, true,
		"is no text, as its first line holds a NUL byte: convert it to CSV or NDJSON", "or nothing but NUL");
	check(wm_span("PAR1\0\0\x15\x04\n", 9), WM_FORMAT_CSV, false, "", "which a record may be");
}

static void
test_texts(void)
{
	const char *array = "is a JSON array: make it one object a line with jq -c '.[]'";
	const char *pretty = "is JSON over several lines: make it one object a line with jq -c .";
	const char *html =
		"is an HTML page, not the data: look at it (with -f curl fails where a server answers with an "
		"error)";
	const char *tail = "begins with a line of tail's for one of several files: use tail -q";

	check_auto("[\n", array, "a JSON array");
	check_auto("[{\"a\":1},\n", array, "on one line");
	check_auto("  [ {\"a\":1} ]", array, "with blanks");
	check_auto("[]\n", array, "an empty one");
	check(wm_span_of("[{\"a\":1}]\n"), WM_FORMAT_NDJSON, true, array, "also where NDJSON is said");
	check(wm_span_of("[{\"a\":1}]\n"), WM_FORMAT_CSV, true, "", "not where CSV is");
	check_auto("[a],b\n", "", "a name in brackets");
	check_auto("{\n", pretty, "pretty-printed JSON");
	check_auto("{\r\n", pretty, "with CR LF");
	check_auto("{ \"a\": [\n", pretty, "that begins with a member");
	check_auto("{\"a\": {\"b\": \"}\\\"}\",\n", pretty, "braces within strings do not count");
	check_auto("{\"a\":1}\n", "", "an object");
	check_auto("{\"a\":[1,{\"b\":\"{\"}]}\n", "", "a nested one");
	check_auto("{\"a\":1", "", "one that was cut off");
	check_auto("==> /var/log/x y.csv <==\n", tail, "tail's name of a file");
	check_auto("==> standard input <==\r\n", tail, "or of none");
	check(wm_span_of("==> a <==\n"), WM_FORMAT_NDJSON, true, tail, "whatever the format");
	check_auto("==> a,b <=\n", "", "nearly that");
	check_auto("<!DOCTYPE html>\n", html, "HTML");
	check_auto("  <html lang=\"en\">\n", html, "without a document type");
	check_auto("127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 2326\n",
		"is an access log: read it with -i clf", "an access log");
	check_auto("[x] [10/oct/2000:13:55:36 -0700]\n", "is an access log: read it with -i clf",
		"behind another bracket");
	check(wm_span_of("::1 - - [10/Oct/2000:13:55:36 -0700]\n"), WM_FORMAT_CSV, false, "",
		"unless it has no header");
	check_auto("time,[10/Oct/2000]\n", "", "a bracket alone is none");
	check_auto("a", "", "one letter");
	check_auto(" ", "", "one blank");
}

static void
test_times(void)
{
	tap_ok(wm_foreign_is_time(wm_span_of("2025-11-29T12:34:56Z")), "a time of ISO 8601");
	tap_ok(wm_foreign_is_time(wm_span_of("2025-11-29 12:34")), "with a blank");
	tap_ok(wm_foreign_is_time(wm_span_of("2025-11-29t12:34")), "with a small t");
	tap_ok(!wm_foreign_is_time(wm_span_of("2025-11-29")), "a date alone may be a name");
	tap_ok(!wm_foreign_is_time(wm_span_of("1732881600")), "and a number");
	tap_ok(!wm_foreign_is_time(wm_span_of("2025-11-29T12-34")), "and what is nearly a time");
}

/* The advice for a header whose fields are split at commas holds these words; "" for none. */
static void
check_advice(const char *line, const char *words, const char *what)
{
	struct wm_span names[8];
	size_t count = 0;

	for (const char *at = line;; at++) {
		const char *end = strchr(at, ',');
		names[count++] = wm_span(at, end != NULL ? (size_t)(end - at) : strlen(at));
		if (end == NULL)
			break;
		at = end;
	}
	const char *advice = wm_foreign_advise(names, count);
	tap_ok(words[0] == '\0' ? advice == NULL : advice != NULL && strstr(advice, words) != NULL, "%s", what);
}

static void
test_advice(void)
{
	check_advice("time;id;ms", "-d ';'", "semicolons in the only name");
	check_advice("time|id", "-d '|'", "bars");
	check_advice("time\tid", "-d '\\t'", "tabs");
	check_advice("time id", "-d ' '", "blanks");
	check_advice("time id;x", "-d ';'", "a semicolon counts before a blank");
	check_advice("time;zone,id", "", "not in one of several names");
	check_advice("1700000000,a,1.5", "tail -n +1 -F", "a number is no name");
	check_advice("a,1e3", "--columns", "whatever its form");
	check_advice("p95,id", "", "a name with digits is one");
	check_advice("", "", "the empty name");
	check_advice("a,,b", "", "or one of several");
}

int
main(void)
{
	test_bytes();
	test_texts();
	test_times();
	test_advice();
	return tap_done();
}
