/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/lines.h"

#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "tests/unit/tap.h"

static struct wm_buf got;

/* "a,b,c" as a header; to be released. */
static struct wm_header
header_of(const char *list)
{
	struct wm_header header = { 0 };
	struct wm_span names[16];
	size_t count = 0;

	while (*list != '\0') {
		size_t len = strcspn(list, ",");

		names[count++] = wm_span(list, len);
		list += len + (list[len] == ',');
	}
	wm_header_take(&header, names, count);
	return header;
}

/* names: of the groups of a pattern, or the keys of logfmt that are wanted. */
static struct wm_lines *
new_lines(enum wm_format format, const char *pattern, const char *names, struct wm_err *err)
{
	struct wm_header header = header_of(names), none = { 0 };
	struct wm_lines *lines = wm_lines_new(format, pattern, format == WM_FORMAT_LINES ? &header : &none, err);

	for (size_t i = 0; format == WM_FORMAT_LOGFMT && i < header.count; i++)
		wm_lines_want(lines, header.names[i]);
	wm_header_release(&header);
	return lines;
}

/* Reads a line; the log has its columns as "a|b|-", - for no value, or "!" and what is wrong. */
static void
read_line(struct wm_lines *lines, struct wm_span line, size_t columns_count)
{
	const char *wrong = wm_lines_read(lines, line);

	wm_buf_reset(&got);
	if (wrong != NULL) {
		wm_buf_addf(&got, "!%s", wrong);
		return;
	}
	for (size_t i = 0; i < columns_count; i++) {
		struct wm_value value = wm_lines_field(lines, i);

		wm_buf_add_text(&got, i == 0 ? "" : "|");
		if (value.kind == WM_KIND_NULL)
			wm_buf_add_byte(&got, '-');
		else
			wm_buf_add(&got, value.text.data, value.text.len);
	}
}

static void
check(struct wm_lines *lines, const char *line, const char *want, const char *name)
{
	read_line(lines, wm_span_of(line), wm_lines_columns(lines)->count);
	tap_span(wm_buf_span(&got), want, name);
}

/* Columns: host|ident|user|time|method|path|query|protocol|status|bytes|referrer|agent|request|extra. */
static void
test_clf(void)
{
	struct wm_lines *lines = new_lines(WM_FORMAT_CLF, NULL, "", NULL);

	check(lines, "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 2326",
		"127.0.0.1||frank|10/Oct/2000:13:55:36 -0700|GET|/apache_pb.gif||HTTP/1.0|200|2326|||GET "
		"/apache_pb.gif HTTP/1.0|",
		"Common Log Format");
	check(lines,
		"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c&d HTTP/1.0\" 200 2326 "
		"\"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"",
		"127.0.0.1||frank|10/Oct/2000:13:55:36 -0700|GET|/a|b=c&d|HTTP/1.0|200|2326|"
		"http://www.example.com/start.html|Mozilla/4.08 [en] (Win98; I ;Nav)|GET /a?b=c&d HTTP/1.0|",
		"Combined Log Format");
	check(lines,
		"2001:db8::1 - - [29/Nov/2025:00:00:01 +0000] \"POST /login HTTP/2.0\" 302 0 \"-\" \"x\\x22y\\x5Cz "
		"\\xD0\\xAF\" "
		"\"10.0.0.1, 10.0.0.2\" rt=0.012",
		"2001:db8::1|||29/Nov/2025:00:00:01 +0000|POST|/login||HTTP/2.0|302|0||x\"y\\z \xD0\xAF|POST /login "
		"HTTP/2.0|\"10.0.0.1, 10.0.0.2\" rt=0.012",
		"IPv6, the escapes of nginx, fields behind the agent");
	check(lines,
		"::1 - \"\" [29/Nov/2025:00:00:01 +0000] \"GET /\\\"q\\\" HTTP/1.1\" 401 - \"-\" \"say \\\"hi\\\" \\\\ "
		"\\t\\v\\\\\"",
		"::1|||29/Nov/2025:00:00:01 +0000|GET|/\"q\"||HTTP/1.1|401|||say \"hi\" \\ \t\v\\|GET /\"q\" HTTP/1.1|",
		"the escapes of Apache, an empty user");
	check(lines, "h - john smith [x] [01/Jan/2025:00:00:00 +0000] \"GET /a b?c d HTTP/1.1\" 400 5",
		"h||john smith [x]|01/Jan/2025:00:00:00 +0000|GET|/a b|c d|HTTP/1.1|400|5|||GET /a b?c d HTTP/1.1|",
		"blanks and brackets in a user, blanks in a target");
	static const char *const who[][2] = {
		{ "192.0.2.1, 198.51.100.3 - -", "192.0.2.1, 198.51.100.3||" },
		{ "192.0.2.1, 198.51.100.3, 2001:db8::9 - frank", "192.0.2.1, 198.51.100.3, 2001:db8::9||frank" },
		{ "unknown, 198.51.100.3 id -", "unknown, 198.51.100.3|id|" },
		{ "192.0.2.1,198.51.100.3 - ann lee", "192.0.2.1,198.51.100.3||ann lee" },
		{ "\"192.0.2.1, 198.51.100.3\" - -", "192.0.2.1, 198.51.100.3||" },
		{ "\"-\" - -", "||" },
		{ "www.example.com:443 192.0.2.1 - frank", "192.0.2.1||frank" },
		{ "www.example.com:443 192.0.2.1, 198.51.100.3 - -", "192.0.2.1, 198.51.100.3||" },
		{ "example.com 192.0.2.1 - ann lee", "192.0.2.1||ann lee" },
		{ "example.com 2001:db8::1 id ann", "2001:db8::1|id|ann" },
		{ "example.com host.example.net - -", "host.example.net||" },
		{ "example.com:80 host.example.net id -", "host.example.net|id|" },
		{ "192.0.2.7 - ann lee", "192.0.2.7||ann lee" },
		{ "192.0.2.7 id ann lee", "192.0.2.7|id|ann lee" },
		{ "192.0.2.7:5123 - -", "192.0.2.7:5123||" },
		{ "2001:db8::1 - - -", "2001:db8::1||- -" },
		{ "host 192.0.2.7 ann", "host|192.0.2.7|ann" },
		{ "h - a, b", "h||a, b" },
	};
	for (size_t i = 0; i < sizeof(who) / sizeof(*who); i++) {
		char text[200], want[200];

		snprintf(text, sizeof(text), "%s [01/Jan/2025:00:00:00 +0000] \"\" 400 0", who[i][0]);
		snprintf(want, sizeof(want), "%s|01/Jan/2025:00:00:00 +0000|||||400|0||||", who[i][1]);
		check(lines, text, want, who[i][0]);
	}
	check(lines, "h - - [01/Jan/2025:00:00:00 +0000] \"-\" 408 - \"-\" \"-\"",
		"h|||01/Jan/2025:00:00:00 +0000|||||408|||||", "no request");
	check(lines, "h - - [01/Jan/2025:00:00:00 +0000] \"\" 400 0", "h|||01/Jan/2025:00:00:00 +0000|||||400|0||||",
		"an empty request");
	check(lines, "h - - [01/Jan/2025:00:00:00 +0000] \"\\x16\\x03\\x01\\x02\\x01HTTP/\" 400 157 \"-\" \"-\"",
		"h|||01/Jan/2025:00:00:00 +0000|||||400|157|||\x16\x03\x01\x02\x01HTTP/|", "bytes of TLS");
	check(lines, "h - - [01/Jan/2025:00:00:00 +0000] \"GET /\" 200 5",
		"h|||01/Jan/2025:00:00:00 +0000|||||200|5|||GET /|", "a request without protocol is no HTTP");
	check(lines, "h - - [01/Jan/2025:00:00:00 +0000] \"GET  HTTP/1.1\" 400 5",
		"h|||01/Jan/2025:00:00:00 +0000|||||400|5|||GET  HTTP/1.1|", "nor one without target");
	check(lines, "h - - [01/Jan/2025:00:00:00 +0000] \"CONNECT x:443 HTTP/1.1\" 405 5 0.003",
		"h|||01/Jan/2025:00:00:00 +0000|CONNECT|x:443||HTTP/1.1|405|5|||CONNECT x:443 HTTP/1.1|0.003",
		"more behind Common");
	check(lines, "h - - [01/Jan/2025:00:00:00 +0000] \"GET /? HTTP/1.1\" 200 5 \"r\"",
		"h|||01/Jan/2025:00:00:00 +0000|GET|/||HTTP/1.1|200|5|r||GET /? HTTP/1.1|", "a referrer alone");

	static const char *const wrong[][2] = {
		{ "hello", "!no host, identity and user before the time" },
		{ "h - x y z", "!no time in brackets behind host, identity and user" },
		{ "h - - [x] \"GET / HTTP/1.1\" 200 1", "!no time in brackets behind host, identity and user" },
		{ "h - [01/Jan/2025:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1",
			"!no time in brackets behind host, identity and user" },
		{ "h - - [01/Jan/2025:00:00:00", "!the bracket around the time never closes" },
		{ "h - - [01/Jan/2025:00:00:00 +0000]", "!no request in quotes behind the time" },
		{ "h - - [01/Jan/2025:00:00:00 +0000] GET", "!no request in quotes behind the time" },
		{ "h - - [01/Jan/2025:00:00:00 +0000] \"GET / HTTP/1.1\\\" 200 1",
			"!the quotes around the request never close" },
		{ "h - - [01/Jan/2025:00:00:00 +0000] \"GET / HTTP/1.1\"",
			"!no status and number of bytes behind the request" },
		{ "h - - [01/Jan/2025:00:00:00 +0000] \"GET / HTTP/1.1\" 200",
			"!no status and number of bytes behind the request" },
		{ "h - - [01/Jan/2025:00:00:00 +0000] \"GET / HTTP/1.1\" 2x0 5",
			"!no status and number of bytes behind the request" },
		{ "h - - [01/Jan/2025:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"r",
			"!the quotes around the referrer never close" },
		{ "h - - [01/Jan/2025:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"r\" \"a",
			"!the quotes around the agent never close" },
		{ "h - - [01/Jan/2025:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"r\" \"a\"b",
			"!text behind a closing quote" },
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		check(lines, wrong[i][0], wrong[i][1], "what is no access log");
	tap_ok(wm_lines_seen(lines, 0), "its columns are always there");
	wm_lines_free(lines);
}

/* As Apache (letters, \xNN) and as nginx (\xNN alone) write a text between quotes. */
static void
put_escaped(struct wm_buf *out, struct wm_span text, bool is_apache)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];

		if (is_apache && (byte == '"' || byte == '\\'))
			wm_buf_addf(out, "\\%c", byte);
		else if (is_apache && (byte == '\n' || byte == '\t'))
			wm_buf_add_text(out, byte == '\n' ? "\\n" : "\\t");
		else if (byte == '"' || byte == '\\' || byte < 0x20 || byte >= 0x7F)
			wm_buf_addf(out, is_apache ? "\\x%02x" : "\\x%02X", byte);
		else
			wm_buf_add_byte(out, (char)byte);
	}
}

static struct wm_span
random_text(uint64_t *random, const char *letters, size_t letters_count, char *text, size_t len_min)
{
	size_t len = len_min + tap_random(random) % 8;

	for (size_t i = 0; i < len; i++)
		text[i] = letters[tap_random(random) % letters_count];
	return wm_span(text, len);
}

/* What is written as Apache or nginx write it is read as it was. */
static void
test_clf_round_trip(void)
{
	static const char letters[] = "ab/ \"\\x1-\n\t\x01\xff[]=0";
	struct wm_lines *lines = new_lines(WM_FORMAT_CLF, NULL, "", NULL);
	struct wm_buf line, want;
	uint64_t random = 19;
	bool is_well = true;

	wm_buf_init(&line, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 40000 && is_well; i++) {
		char texts[5][16];
		struct wm_span user = random_text(&random, "ab-x", 4, texts[0], 1);
		struct wm_span path = random_text(&random, letters, sizeof(letters) - 1, texts[1], 1);
		struct wm_span query = random_text(&random, letters, sizeof(letters) - 1, texts[2], 0);
		struct wm_span referrer = random_text(&random, letters, sizeof(letters) - 1, texts[3], 0);
		struct wm_span agent = random_text(&random, letters, sizeof(letters) - 1, texts[4], 0);
		bool is_apache = i % 2 == 0, is_combined = i % 3 != 0;
		unsigned status = 100 + (unsigned)(tap_random(&random) % 500);

		wm_buf_reset(&line);
		wm_buf_addf(&line, "10.0.0.1 - %.*s [10/Oct/2000:13:55:36 -0700] \"GET ", (int)user.len, user.data);
		put_escaped(&line, path, is_apache);
		wm_buf_add_byte(&line, '?');
		put_escaped(&line, query, is_apache);
		wm_buf_addf(&line, " HTTP/1.1\" %u -", status);
		if (is_combined) {
			wm_buf_add_text(&line, " \"");
			put_escaped(&line, referrer, is_apache);
			wm_buf_add_text(&line, "\" \"");
			put_escaped(&line, agent, is_apache);
			wm_buf_add_text(&line, "\"");
		} else {
			referrer.len = agent.len = 0;
		}
		struct wm_span *fields[] = { &user, &path, &query, &referrer, &agent };
		for (size_t k = 0; k < 5; k++)
			if (wm_span_is(*fields[k], "-"))
				fields[k]->len = 0;
		wm_buf_reset(&want);
		wm_buf_addf(&want, "10.0.0.1||%.*s|10/Oct/2000:13:55:36 -0700|GET|", (int)user.len, user.data);
		wm_buf_add(&want, path.data, path.len);
		wm_buf_add_byte(&want, '|');
		wm_buf_add(&want, query.data, query.len);
		wm_buf_addf(&want, "|HTTP/1.1|%u||", status);
		wm_buf_add(&want, referrer.data, referrer.len);
		wm_buf_add_byte(&want, '|');
		wm_buf_add(&want, agent.data, agent.len);
		read_line(lines, wm_buf_span(&line), 12);
		is_well = wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
		if (!is_well)
			printf("# '%.*s':\n# got  '%.*s'\n# want '%.*s'\n", (int)line.len, line.data, (int)got.len,
				got.data, (int)want.len, want.data);
	}
	tap_ok(is_well, "40 000 lines as Apache and nginx would write them");
	wm_buf_release(&line);
	wm_buf_release(&want);
	wm_lines_free(lines);
}

static void
check_logfmt(const char *keys, const char *line, const char *want, const char *name)
{
	struct wm_lines *lines = new_lines(WM_FORMAT_LOGFMT, NULL, keys, NULL);
	size_t count = 1;

	for (const char *at = keys; *at != '\0'; at++)
		count += *at == ',';
	read_line(lines, wm_span_of(line), count);
	tap_span(wm_buf_span(&got), want, name);
	wm_lines_free(lines);
}

static void
test_logfmt(void)
{
	struct wm_lines *lines = new_lines(WM_FORMAT_LOGFMT, NULL, "a,b", NULL);

	check_logfmt("time,level,msg,status,none",
		"time=2025-11-29T00:00:00Z level=info msg=\"request \\\"done\\\"\\n\" status=200 debug",
		"2025-11-29T00:00:00Z|info|request \"done\"\n|200|-", "keys, quoted values");
	check_logfmt("at,path,fwd,service",
		"at=info method=GET path=\"/a?b=c\" host=x.example fwd=\"192.0.2.1\" dyno=web.1 connect=1ms "
		"service=18ms",
		"info|/a?b=c|192.0.2.1|18ms", "a line of a router");
	check_logfmt("url,a,b,c", "url=/x?y=z&q=\"1\"  a=\tb=\"\" c", "/x?y=z&q=\"1\"|||-",
		"equals signs and quotes within a value, empty ones, none");
	check_logfmt("a,a b", "a=1 b=2 a=3", "3|-", "the last of one key counts");
	check_logfmt("a", "a=1 a", "-", "also where it has none");
	check_logfmt("m", "m=\"\\u00e9\\U0001F600\\ud83d\\ude00\\ud83d\\x41\\q\\u12\\\\\" x",
		"\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xED\xA0\xBD"
		"A\\q\\u12\\",
		"characters by number, and what is no escape");
	check_logfmt(
		"m", "m=\"\\ud83d\\ue000\"", "\xED\xA0\xBD\xEE\x80\x80", "half of a pair before another character");
	check_logfmt("m", "m=a\\nb", "a\\nb", "outside quotes a backslash is one");
	check_logfmt("a", "  started on port 80", "!no key=value in it", "a line of words");
	check_logfmt("a", "=1 a=2", "!a value without a key", "no key");
	check_logfmt("a", "a=1 b=\"x", "!a quoted value that never ends", "no closing quote");
	check_logfmt("a", "a=1 b=\"x\"y", "!text behind a closing quote", "text behind it");
	read_line(lines, wm_span_of("b=1"), 2);
	tap_ok(!wm_lines_seen(lines, 0) && wm_lines_seen(lines, 1), "keys that some line had");
	wm_lines_free(lines);
}

/* Random pairs, written with as much quoting as they need. */
static void
test_logfmt_round_trip(void)
{
	static const char letters[] = "ab= \"\\n\n\t1";
	static const char *const keys[] = { "a", "bc", "d.e" };
	struct wm_lines *lines = new_lines(WM_FORMAT_LOGFMT, NULL, "a,bc,d.e", NULL);
	struct wm_buf line, want;
	uint64_t random = 23;
	bool is_well = true;

	wm_buf_init(&line, WM_BUF_UNBOUNDED);
	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 40000 && is_well; i++) {
		char texts[3][16];
		struct wm_span values[3] = { 0 };

		wm_buf_reset(&line);
		wm_buf_add_text(&line, "x=");
		for (uint64_t n = tap_random(&random) % 5; n > 0; n--) {
			size_t k = tap_random(&random) % 3;

			values[k] = random_text(&random, letters, sizeof(letters) - 1, texts[k], 0);
			bool is_quoted =
				tap_random(&random) % 4 == 0 || (values[k].len > 0 && values[k].data[0] == '"');
			for (size_t at = 0; at < values[k].len; at++)
				is_quoted |= strchr(" \n\t", values[k].data[at]) != NULL;
			wm_buf_addf(&line, " %s=%s", keys[k], is_quoted ? "\"" : "");
			if (is_quoted)
				put_escaped(&line, values[k], true);
			else
				wm_buf_add(&line, values[k].data, values[k].len);
			wm_buf_add_text(&line, is_quoted ? "\"" : "");
		}
		wm_buf_reset(&want);
		for (size_t k = 0; k < 3; k++) {
			wm_buf_add_text(&want, k == 0 ? "" : "|");
			if (values[k].data == NULL)
				wm_buf_add_byte(&want, '-');
			else
				wm_buf_add(&want, values[k].data, values[k].len);
		}
		read_line(lines, wm_buf_span(&line), 3);
		is_well = wm_span_equal(wm_buf_span(&got), wm_buf_span(&want));
		if (!is_well)
			printf("# '%.*s':\n# got  '%.*s'\n# want '%.*s'\n", (int)line.len, line.data, (int)got.len,
				got.data, (int)want.len, want.data);
	}
	tap_ok(is_well, "40 000 lines of pairs");
	wm_buf_release(&line);
	wm_buf_release(&want);
	wm_lines_free(lines);
}

static void
check_pattern(const char *pattern, const char *names, const char *line, const char *want, const char *name)
{
	struct wm_err err;
	struct wm_lines *lines = new_lines(WM_FORMAT_LINES, pattern, names, &err);

	if (lines == NULL) {
		tap_text(err.message, want, name);
		return;
	}
	check(lines, line, want, name);
	wm_lines_free(lines);
}

/* A pattern that is made of parts, so many of each: whether it is taken. */
static void
check_excess(
	const char *open, int opens, const char *middle, const char *close, int closes, bool is_fine, const char *name)
{
	struct wm_buf pattern;
	struct wm_header none = { 0 };
	struct wm_err err = { 0 };

	wm_buf_init(&pattern, WM_BUF_UNBOUNDED);
	for (int i = 0; i < opens; i++)
		wm_buf_add_text(&pattern, open);
	wm_buf_add_text(&pattern, middle);
	for (int i = 0; i < closes; i++)
		wm_buf_add_text(&pattern, close);
	wm_buf_add_byte(&pattern, '\0');
	struct wm_lines *lines = wm_lines_new(WM_FORMAT_LINES, pattern.data, &none, &err);
	tap_ok((lines != NULL) == is_fine && (is_fine || err.code == WM_ERR_USAGE), "%s", name);
	wm_lines_free(lines);
	wm_buf_release(&pattern);
}

/* What libc has no bound for. */
static void
test_excess(void)
{
	check_excess("(", WM_PATTERN_DEPTH_MAX, "a", ")", WM_PATTERN_DEPTH_MAX, true, "parentheses as deep as may be");
	check_excess("(", WM_PATTERN_DEPTH_MAX + 1, "a", ")", WM_PATTERN_DEPTH_MAX + 1, false, "and one deeper");
	check_excess("(", 20000, "a", ")", 20000, false, "20 000 of them");
	check_excess("(", 20000, "", "", 0, false, "that do not end");
	check_excess("a", WM_PATTERN_SIZE_MAX - 2, "(b)", "", 0, true, "a pattern as long as may be");
	check_excess("a", WM_PATTERN_SIZE_MAX - 1, "(b)", "", 0, false, "and one longer");
	check_excess("(", 1, "a", "{99}", 1, false, "a parenthesis that does not end");
	check_excess("", 0, "(a{100}){99}", "", 0, true, "repetitions of repetitions");
	check_excess("", 0, "(a{100}){101}", "", 0, false, "too many");
	check_excess("(((", 1, "a", "{255})", 3, false, "some gigabytes of them");
	check_excess("", 0, "([0-9]{1,3}[.]){3}([0-9]{1,3}) [[]([^]{]*)[]] (.*)", "", 0, true, "what a log needs");
}

static void
test_patterns(void)
{
	check_pattern(
		"^([0-9]+) ([a-z]*) ?(x)?(.*)$", "", "12 ab cd", "12|ab|-|cd", "groups, one of which took no part");
	check_pattern("([a-z]+)=([0-9]+)", "k,v", ".. a=1 b=2", "a|1", "it may match anywhere, the first time");
	check_pattern("^(a)$", "", "ab", "!it does not match the pattern", "no match");
	check_pattern("(.)$", "", "a\xff", "\xff", "a byte is a letter");
	check_pattern("([[:digit:]]{2})([]x]*)([^]]+)([[.?.]]+)([*?]+)", "", "12]]ab?*?", "12|]]|ab|?|*?",
		"brackets hold what outside would be refused");
	check_pattern("([]*?]+)", "", "a]?*]", "]?*]", "also behind a bracket that is one of them");
	check_pattern("\\@(.*)", "", "@a", "a", "a pattern that begins with @");
	test_excess();
	check_pattern("(\\d+)", "", "", "pattern '(\\d+)': \\d is not known: write [0-9] (in brackets 0-9)", "\\d");
	check_pattern("([\\d.]+)", "", "", "pattern '([\\d.]+)': \\d is not known: write [0-9] (in brackets 0-9)",
		"\\d in brackets");
	check_pattern("(\\D+)", "", "", "pattern '(\\D+)': \\D is not known: write [^0-9]", "\\D");
	check_pattern("(a)\\t", "", "",
		"pattern '(a)\\t': \\t is not known: write a tab itself, in the shell $'...\\t...'", "\\t");
	check_pattern("(\\\\d)", "", "\\d", "\\d", "a backslash and a d");
	check_pattern("(.*?) x", "", "",
		"pattern '(.*?) x': a repetition that stops early (as .*?) is not known: write what it may run over, "
		"as "
		"[^ ]* up to a blank",
		".*?");
	check_pattern("(?:a)(b)", "", "",
		"pattern '(?:a)(b)': (? is not known: write ( alone, every group is a column, and --columns names them",
		"(?");
	check_pattern(
		"a", "", "", "pattern 'a': it has no group: put in parentheses what is to be a column", "no group");
	check_pattern("(a", "", "", "pattern '(a': Unmatched ( or \\(", "what regcomp refuses");
	check_pattern("(a)(b)", "x", "", "pattern '(a)(b)': it has 2 columns, and --columns names 1", "other names");
	check_pattern("(a)", "x,y", "", "pattern '(a)': it has 1 column, and --columns names 2", "or more");
	check_pattern("@syslogd", "", "", "pattern '@syslogd': no such name: did you mean @syslog?", "a name misspelt");
	check_pattern("@x", "", "",
		"pattern '@x': no such name: there are @kubectl, @syslog, @haproxy (write \\@ for a text)", "no name");

	struct wm_lines *lines = new_lines(WM_FORMAT_LINES, "^(x*)$", "", NULL);
	char *text = malloc(WM_PATTERN_LINE_BYTES_MAX + 1);
	memset(text, 'x', WM_PATTERN_LINE_BYTES_MAX + 1);
	tap_ok(wm_lines_read(lines, wm_span(text, WM_PATTERN_LINE_BYTES_MAX)) == NULL &&
			wm_lines_field(lines, 0).text.len == WM_PATTERN_LINE_BYTES_MAX,
		"the longest line");
	tap_text(wm_lines_read(lines, wm_span(text, WM_PATTERN_LINE_BYTES_MAX + 1)), "too long for a pattern",
		"and a longer one");
	text[1] = '\0';
	tap_text(wm_lines_read(lines, wm_span(text, 3)), "it does not match the pattern", "NUL is a byte of the line");
	free(text);
	wm_lines_free(lines);
}

static void
test_named_patterns(void)
{
	struct wm_lines *lines = new_lines(WM_FORMAT_LINES, "@kubectl", "", NULL);
	check(lines, "2025-11-29T10:00:00.123456789Z GET / 200", "2025-11-29T10:00:00.123456789Z|-|-|GET / 200",
		"kubectl logs --timestamps");
	check(lines, "[pod/web-7d4b9/nginx] 2025-11-29T10:00:00.5+01:00 a  b",
		"2025-11-29T10:00:00.5+01:00|web-7d4b9|nginx|a  b", "with --prefix");
	check(lines, "2025-11-29T10:00:00Z ", "2025-11-29T10:00:00Z|-|-|", "an empty message");
	check(lines, "GET / 200", "!it does not match the pattern", "without a time");
	wm_lines_free(lines);

	/* time|host|program|pid|message|priority */
	lines = new_lines(WM_FORMAT_LINES, "@syslog", "", NULL);
	check(lines, "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
		"Oct 11 22:14:15|mymachine|su|-|'su root' failed for lonvick on /dev/pts/8|34", "RFC 3164");
	check(lines, "Nov  9 00:00:01 web1 CRON[123]: (root) CMD (run: x)",
		"Nov  9 00:00:01|web1|CRON|123|(root) CMD (run: x)|-", "what stands in a file");
	check(lines, "2025-11-29T00:00:01.123456+01:00 web1 postfix/smtpd[7]: connect from x",
		"2025-11-29T00:00:01.123456+01:00|web1|postfix/smtpd|7|connect from x|-", "with a time of ISO 8601");
	check(lines, "Nov  9 00:00:01 web1 last message repeated 3 times",
		"Nov  9 00:00:01|web1|-|-|last message repeated 3 times|-", "without a program");
	check(lines, "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - 'su root' failed",
		"2003-10-11T22:14:15.003Z|mymachine.example.com|su|-|'su root' failed|34", "RFC 5424");
	check(lines,
		"<165>1 2003-10-11T22:14:15.003Z h evntslog 12 ID47 [ex@32473 iut=\"3\" s=\"a\\]\\\"]\"][b@1 x=\"2\"] "
		"An [event]",
		"2003-10-11T22:14:15.003Z|h|evntslog|12|An [event]|165", "with structured data");
	check(lines, "-- No entries --", "!it does not match the pattern", "what is no log line");
	wm_lines_free(lines);

	/* time|client|client_port|frontend|backend|server|TR|Tw|Tc|Tr|Ta|status|bytes|termination|method|path|query|protocol|request */
	lines = new_lines(WM_FORMAT_LINES, "@haproxy", "", NULL);
	check(lines,
		"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in "
		"static/srv1 "
		"10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} \"GET /index.html HTTP/1.1\"",
		"06/Feb/2009:12:14:14.655|10.0.1.2|33317|http-in|static|srv1|10|0|30|69|109|200|2750|----|GET|/"
		"index.html|-|"
		"HTTP/1.1|GET /index.html HTTP/1.1",
		"option httplog");
	check(lines,
		"::1:33320 [06/Feb/2009:12:14:15.001] https~ app/<NOSRV> -1/-1/-1/-1/+5 400 +187 - - PR-- 2/1/0/0/+3 "
		"0/0 "
		"\"<BADREQ>\"",
		"06/Feb/2009:12:14:15.001|::1|33320|https~|app|<NOSRV>|-1|-1|-1|-1|+5|400|+187|PR--|-|-|-|-|<BADREQ>",
		"a bad request, without a syslog header");
	check(lines, "haproxy[1]: 10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0",
		"06/Feb/2009:12:12:51.443|10.0.1.2|33313|fnt|bck|srv1|-|0|0|-|5007|-|212|--|-|-|-|-|-",
		"option tcplog");
	check(lines, "Proxy http-in started.", "!it does not match the pattern", "what is no request");
	wm_lines_free(lines);
	check_pattern("@kubectl", "a,b,c,d", "2025-11-29T10:00:00Z x", "2025-11-29T10:00:00Z|-|-|x",
		"other names for its columns");
}

static void
check_object(const char *line, const char *want, const char *name)
{
	wm_buf_reset(&got);
	wm_logfmt_put_object(wm_span_of(line), NULL, &got);
	tap_span(wm_buf_span(&got), want, name);
}

static void
test_logfmt_object(void)
{
	check_object("ts=1 level=info msg=\"a b\"", "{\"ts\":1,\"level\":\"info\",\"msg\":\"a b\"}",
		"keys are members, numbers are numbers");
	check_object("  a=\tb= c=\"\" d\t", "{\"a\":null,\"b\":null,\"c\":null,\"d\":null}", "no value is null");
	check_object("m=\"say \\\"no\\\"\\n\" p=c:\\x", "{\"m\":\"say \\\"no\\\"\\n\",\"p\":\"c:\\\\x\"}",
		"escapes are undone where they are some, and made anew");
	check_object("a=1 a=2", "{\"a\":1,\"a\":2}", "repeated keys: the last counts in JSON too");
	check_object("a=007 b=1e3 c=+1 d=true", "{\"a\":\"007\",\"b\":1e3,\"c\":\"+1\",\"d\":\"true\"}",
		"what is no JSON number is a text");
	check_object("k\"=1 a=\xff", "{\"k\\\"\":1,\"a\":\"\\ufffd\"}", "a quote in a key, a byte that is no UTF-8");
	check_object("", "{}", "nothing at all");
}

int
main(void)
{
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	test_clf();
	test_clf_round_trip();
	test_logfmt();
	test_logfmt_round_trip();
	test_logfmt_object();
	test_patterns();
	test_named_patterns();
	wm_buf_release(&got);
	return tap_done();
}
