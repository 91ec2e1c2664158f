/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/lines.h"

#include <assert.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/near.h"
#include "lib/base/shown.h"
#include "lib/base/utf8.h"
#include "lib/record/writer.h"

/* Ways in which lines of one named pattern may be written; the first that fits counts. */
#define WAYS_MAX 2

enum clf_column {
	CLF_HOST,
	CLF_IDENT,
	CLF_USER,
	CLF_TIME,
	CLF_METHOD,
	CLF_PATH,
	CLF_QUERY,
	CLF_PROTOCOL,
	CLF_STATUS,
	CLF_BYTES,
	CLF_REFERRER,
	CLF_AGENT,
	CLF_REQUEST,
	CLF_EXTRA,
};

static const char clf_names[] =
	"host,ident,user,time,method,path,query,protocol,status,bytes,referrer,agent,request,extra";

/*
 * groups names the columns of the groups in order; "-" is one that is no
 * column. One name more is that of what stands behind the match: a message that
 * the library need not walk through.
 */
struct named_pattern {
	const char *name;
	const char *columns;
	struct {
		const char *expression;
		const char *groups;
	} ways[WAYS_MAX];
};

#define NUMBER "([+-]?[0-9]+)"
#define SYSLOG_TIME                                                                                                    \
	"([A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]+[^ ]*)"
#define HAPROXY_BEGIN "([^ ]+):([0-9]+) \\[([^]]+)\\] ([^ ]+) ([^ /]+)/([^ ]+) "
#define HAPROXY_COUNTS "([^ ]+) [0-9]+/[0-9]+/[0-9]+/[0-9]+/[+]?[0-9]+ [0-9]+/[0-9]+"

static const struct named_pattern named_patterns[] = {
	/* kubectl logs --timestamps, with --prefix or without. */
	{ "@kubectl", "time,pod,container,message",
		{ { "^(\\[pod/([^/]+)/([^]]+)\\] )?([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+))( |$)",
			"-,pod,container,time,-,-,message" } } },
	/* RFC 5424; and what syslogd writes into files: RFC 3164, or ISO 8601 in place of its time. */
	{ "@syslog", "time,host,program,pid,message,priority",
		{ { "^<([0-9]{1,3})>1 ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) [^ ]+ "
		    "(-|(\\[([^]\"]|\"([^\"\\]|\\\\.)*\")*\\])+)( |$)",
			  "priority,time,host,program,pid,-,-,-,-,-,message" },
			{ "^(<([0-9]{1,3})>)?" SYSLOG_TIME " ([^ ]+) (([^] :[]+)(\\[([^]]*)\\])?: ?)?",
				"-,priority,time,host,-,program,-,pid,message" } } },
	/* "option httplog", and "option tcplog", behind whatever the syslog daemon puts before them. */
	{ "@haproxy",
		"time,client,client_port,frontend,backend,server,TR,Tw,Tc,Tr,Ta,status,bytes,termination,method,path,"
		"query,protocol,request",
		{ { HAPROXY_BEGIN NUMBER "/" NUMBER "/" NUMBER "/" NUMBER "/" NUMBER " " NUMBER " " NUMBER
					 " [^ ]+ [^ ]+ " HAPROXY_COUNTS "( [{][^}]*[}])?( [{][^}]*[}])? "
					 "\"(([A-Z]+) ([^ ?]*)([?]([^ ]*))? (HTTP/[0-9.]+)|.*)\"",
			  "client,client_port,time,frontend,backend,server,TR,Tw,Tc,Tr,Ta,status,bytes,termination,-,-,"
			  "request,method,path,-,query,protocol" },
			{ HAPROXY_BEGIN NUMBER "/" NUMBER "/" NUMBER " " NUMBER " " HAPROXY_COUNTS,
				"client,client_port,time,frontend,backend,server,Tw,Tc,Ta,bytes,termination" } } },
};

struct way {
	regex_t expression;
	size_t groups_count;
	size_t *columns; /* of each group, and of what stands behind the match; or SIZE_MAX */
};

struct wm_lines {
	enum wm_format format;
	struct wm_header columns; /* of logfmt those that were asked for */
	struct wm_span *names;    /* those, while they grow */
	struct wm_value *fields;  /* of the line, escapes not undone */
	bool *is_escaped;         /* it has escapes to undo, if it has backslashes */
	bool *is_seen;
	struct wm_buf *said; /* of each column: what a field with escapes says */
	size_t fields_count;
	struct way ways[WAYS_MAX];
	size_t ways_count;
	regmatch_t *matches; /* of the way with the most groups */
	size_t matches_count;
	struct wm_buf line; /* that a pattern is tried on, with a NUL behind it */
};

/* ---- texts ---- */

static int
hex_value(char byte)
{
	char lower = (char)(byte | 0x20);

	return wm_is_digit(byte) ? byte - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Reads count hexadecimal digits; false if they are not there. */
static bool
read_hex(struct wm_span text, size_t count, uint32_t *value)
{
	*value = 0;
	for (size_t i = 0; i < count; i++) {
		int digit = i < text.len ? hex_value(text.data[i]) : -1;

		if (digit < 0)
			return false;
		*value = *value << 4 | (uint32_t)digit;
	}
	return true;
}

/* Bytes of the escape behind a backslash that says a character by its number; 0 if it is none. */
static size_t
unescape_number(struct wm_span text, struct wm_buf *out)
{
	size_t digits = text.data[0] == 'x' ? 2
		: text.data[0] == 'u'       ? 4
		: text.data[0] == 'U'       ? 8
					    : 0,
	       len = digits + 1;
	uint32_t code, low;
	char bytes[WM_UTF8_LEN_MAX];

	if (digits == 0 || !read_hex(wm_span(text.data + 1, text.len - 1), digits, &code))
		return 0;
	if (digits == 2) {
		wm_buf_add_byte(out, (char)code);
		return len;
	}
	if (code >= 0xD800 && code < 0xDC00 && text.len > len + 2 && text.data[len] == '\\' &&
		text.data[len + 1] == 'u' && read_hex(wm_span(text.data + len + 2, text.len - len - 2), 4, &low) &&
		low >= 0xDC00 && low < 0xE000) {
		code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
		len += 6;
	}
	wm_buf_add(out, bytes, wm_utf8_put(code, bytes));
	return len;
}

/* What is no escape stays as it is. */
static struct wm_span
unescape(struct wm_span text, struct wm_buf *out)
{
	static const char letters[] = "\"\\/nrtbfva", meant[] = "\"\\/\n\r\t\b\f\v\a";

	wm_buf_reset(out);
	while (text.len > 0) {
		const char *backslash = memchr(text.data, '\\', text.len);
		size_t plain = backslash == NULL ? text.len : (size_t)(backslash - text.data), len = 0;

		wm_buf_add(out, text.data, plain);
		text = wm_span(text.data + plain, text.len - plain);
		if (text.len == 0)
			break;
		if (text.len > 1) {
			struct wm_span rest = { text.data + 1, text.len - 1 };
			const char *letter = memchr(letters, rest.data[0], sizeof(letters) - 1);

			len = letter != NULL ? 1 : unescape_number(rest, out);
			if (letter != NULL)
				wm_buf_add_byte(out, meant[letter - letters]);
		}
		if (len == 0)
			wm_buf_add_byte(out, '\\');
		text = wm_span(text.data + 1 + len, text.len - 1 - len);
	}
	return wm_buf_span(out);
}

/* The quote that ends a text which begins behind its first one; NULL if it never ends. A backslash takes its meaning. */
static const char *
find_quote(const char *begin, const char *end)
{
	const char *quote = begin;

	while ((quote = memchr(quote, '"', (size_t)(end - quote))) != NULL) {
		const char *before = quote;

		while (before > begin && before[-1] == '\\')
			before--;
		if ((quote - before) % 2 == 0)
			return quote;
		quote++;
	}
	return NULL;
}

/* ---- columns ---- */

/* Room for one more. */
static size_t
add_column(struct wm_lines *lines)
{
	size_t index = lines->fields_count++, count = index + 1;

	lines->fields = wm_reallocarray(lines->fields, count, sizeof(*lines->fields));
	lines->is_escaped = wm_reallocarray(lines->is_escaped, count, sizeof(*lines->is_escaped));
	lines->is_seen = wm_reallocarray(lines->is_seen, count, sizeof(*lines->is_seen));
	lines->said = wm_reallocarray(lines->said, count, sizeof(*lines->said));
	lines->fields[index] = (struct wm_value){ 0 };
	lines->is_escaped[index] = false;
	lines->is_seen[index] = false;
	wm_buf_init(&lines->said[index], WM_BUF_UNBOUNDED);
	return index;
}

/* Of a list "a,b,c". */
static void
set_columns(struct wm_lines *lines, const char *list)
{
	struct wm_span *names = NULL;
	size_t count = 0;

	for (const char *at = list;; at++) {
		size_t len = strcspn(at, ",");

		names = wm_reallocarray(names, count + 1, sizeof(*names));
		names[count++] = wm_span(at, len);
		at += len;
		if (*at == '\0')
			break;
	}
	wm_header_take(&lines->columns, names, count);
	free(names);
}

/* ---- clf ---- */

static void
set_clf(struct wm_lines *lines, enum clf_column column, const char *begin, const char *end)
{
	bool is_none = end - begin == 1 && *begin == '-';

	lines->fields[column].text = wm_span(begin, is_none ? 0 : (size_t)(end - begin));
}

/* "METHOD TARGET HTTP/1.1": the target may hold blanks, as what is logged was not always well-formed. */
static void
read_request(struct wm_lines *lines, const char *begin, const char *end)
{
	const char *method_end = begin, *protocol = end, *question;

	set_clf(lines, CLF_REQUEST, begin, end);
	while (method_end < end && *method_end >= 'A' && *method_end <= 'Z')
		method_end++;
	while (protocol > method_end && protocol[-1] != ' ')
		protocol--;
	if (method_end == begin || end - protocol < 6 || memcmp(protocol, "HTTP/", 5) != 0 || *method_end != ' ' ||
		protocol - method_end < 3)
		begin = method_end = protocol = end; /* no HTTP */
	set_clf(lines, CLF_METHOD, begin, method_end);
	set_clf(lines, CLF_PROTOCOL, protocol, end);
	if (begin == end) {
		set_clf(lines, CLF_PATH, end, end);
		set_clf(lines, CLF_QUERY, end, end);
		return;
	}
	begin = method_end + 1;
	end = protocol - 1;
	question = memchr(begin, '?', (size_t)(end - begin));
	set_clf(lines, CLF_PATH, begin, question == NULL ? end : question);
	set_clf(lines, CLF_QUERY, question == NULL ? end : question + 1, end);
}

/* The bracket before "dd/"; what stands before it may hold brackets itself. */
static const char *
find_time(const char *at, const char *end)
{
	while ((at = memchr(at, '[', (size_t)(end - at))) != NULL) {
		if (end - at > 3 && wm_is_digit(at[1]) && wm_is_digit(at[2]) && at[3] == '/' && at[-1] == ' ')
			return at;
		at++;
	}
	return NULL;
}

/* Digits or "-", up to a blank or the end. */
static const char *
read_number(struct wm_lines *lines, enum clf_column column, const char *at, const char *end)
{
	const char *begin = at;

	if (at < end && *at == '-')
		at++;
	else
		while (at < end && wm_is_digit(*at))
			at++;
	if (at == begin || (at < end && *at != ' '))
		return NULL;
	set_clf(lines, column, begin, at);
	return at;
}

/* Behind a word that a blank follows; NULL: there is none. A host may be a list of addresses ("a, b"), or stand in quotes. */
static const char *
word_end(const char *at, const char *end, bool is_host)
{
	const char *blank;

	if (is_host && at < end && *at == '"') {
		blank = find_quote(at + 1, end);
		return blank != NULL && end - blank > 1 && blank[1] == ' ' ? blank + 1 : NULL;
	}
	blank = memchr(at, ' ', (size_t)(end - at));
	while (is_host && blank != NULL && blank > at && blank[-1] == ',' && end - blank > 1 && blank[1] != ' ')
		blank = memchr(blank + 1, ' ', (size_t)(end - blank - 1));
	return blank == at ? NULL : blank;
}

/* Whether a host begins as an address of IPv4 or IPv6 does. */
static bool
is_address(const char *at, const char *end)
{
	size_t dots = 0, colons = 0;

	at += at < end && *at == '"';
	for (; at < end && *at != ',' && *at != '"'; at++) {
		dots += *at == '.';
		colons += *at == ':';
		if (!wm_is_digit(*at) && *at != '.' && *at != ':' && !((*at | 0x20) >= 'a' && (*at | 0x20) <= 'f'))
			return false;
	}
	return dots == 3 || colons > 1;
}

/* "example.com:443" */
static bool
has_port(const char *at, const char *end)
{
	const char *colon = memchr(at, ':', (size_t)(end - at));

	if (colon == NULL || colon == at || colon + 1 == end)
		return false;
	while (++colon < end)
		if (!wm_is_digit(*colon))
			return false;
	return true;
}

/*
 * Whether a word before the time is a virtual host, with host, identity and user behind it: then these are four or
 * more, the second is no identity, and one of them shows what it is. So a user with blanks is none.
 */
static bool
has_virtual_host(const char *first, const char *time)
{
	const char *first_end = word_end(first, time, true);
	const char *second = first_end + 1, *second_end = word_end(second, time, true);
	const char *third = second_end == NULL ? NULL : second_end + 1;
	const char *third_end = third == NULL ? NULL : word_end(third, time, false);

	if (third_end == NULL || third_end + 1 >= time || (second_end - second == 1 && *second == '-'))
		return false;
	return has_port(first, first_end) || is_address(second, second_end) ||
		(third_end - third == 1 && *third == '-');
}

/* Host, identity and user; *at is moved to the bracket of the time. NULL, or what is wrong. */
static const char *
read_who(struct wm_lines *lines, const char **at, const char *end)
{
	const char *host = *at, *host_end = word_end(host, end, true), *time;

	if (host_end == NULL || word_end(host_end + 1, end, false) == NULL)
		return "no host, identity and user before the time";
	time = find_time(host_end + 1, end);
	if (time == NULL)
		return "no time in brackets behind host, identity and user";
	if (has_virtual_host(host, time)) {
		host = host_end + 1;
		host_end = word_end(host, time, true);
	}
	const char *ident = host_end + 1, *ident_end = word_end(ident, time, false);
	if (ident_end == NULL || ident_end + 1 >= time)
		return "no time in brackets behind host, identity and user";
	bool is_quoted = *host == '"';
	set_clf(lines, CLF_HOST, host + is_quoted, host_end - is_quoted);
	set_clf(lines, CLF_IDENT, ident, ident_end);
	set_clf(lines, CLF_USER, ident_end + 1, time - 1);
	*at = time;
	return NULL;
}

static const char *
read_clf(struct wm_lines *lines, struct wm_span line)
{
	const char *at = line.data, *end = line.data + line.len, *next;
	const char *wrong = read_who(lines, &at, end);

	if (wrong != NULL)
		return wrong;
	next = at;
	if (wm_span_is(lines->fields[CLF_USER].text, "\"\""))
		lines->fields[CLF_USER].text.len = 0; /* so Apache writes an empty name */
	at = memchr(next, ']', (size_t)(end - next));
	if (at == NULL)
		return "the bracket around the time never closes";
	set_clf(lines, CLF_TIME, next + 1, at);
	if (end - at < 3 || at[1] != ' ' || at[2] != '"')
		return "no request in quotes behind the time";
	next = find_quote(at + 3, end);
	if (next == NULL)
		return "the quotes around the request never close";
	read_request(lines, at + 3, next);
	at = next + 1;
	for (enum clf_column column = CLF_STATUS; column <= CLF_BYTES; column++) {
		at = at < end && *at == ' ' ? read_number(lines, column, at + 1, end) : NULL;
		if (at == NULL)
			return "no status and number of bytes behind the request";
	}
	set_clf(lines, CLF_REFERRER, end, end);
	set_clf(lines, CLF_AGENT, end, end);
	for (enum clf_column column = CLF_REFERRER; column <= CLF_AGENT && end - at > 1 && at[1] == '"'; column++) {
		next = find_quote(at + 2, end);
		if (next == NULL)
			return column == CLF_REFERRER ? "the quotes around the referrer never close"
						      : "the quotes around the agent never close";
		set_clf(lines, column, at + 2, next);
		at = next + 1;
		if (at < end && *at != ' ')
			return "text behind a closing quote";
	}
	set_clf(lines, CLF_EXTRA, at < end ? at + 1 : end, end);
	return NULL;
}

/* ---- logfmt ---- */

static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

static void
set_key(struct wm_lines *lines, struct wm_span key, struct wm_value value, bool is_escaped)
{
	for (size_t i = 0; i < lines->fields_count; i++) {
		if (!wm_span_equal(lines->names[i], key))
			continue;
		lines->fields[i] = value;
		lines->is_escaped[i] = is_escaped;
		lines->is_seen[i] = true;
	}
}

struct pair {
	struct wm_span key;
	struct wm_value value; /* as it stands there, without quotes; WM_KIND_NULL: a key alone */
	bool is_quoted;
};

/* The next pair of a line; false at its end, and where something is wrong (*wrong: what). */
static bool
next_pair(const char **next, const char *end, struct pair *pair, const char **wrong)
{
	const char *at = *next, *begin;

	*pair = (struct pair){ 0 };
	while (at < end && is_blank(*at))
		at++;
	if (at == end)
		return false;
	for (begin = at; at < end && *at != '=' && !is_blank(*at); at++)
		;
	pair->key = wm_span(begin, (size_t)(at - begin));
	if (at < end && *at == '=') {
		if (pair->key.len == 0) {
			*wrong = "a value without a key";
			return false;
		}
		pair->value.kind = WM_KIND_TEXT;
		begin = ++at;
		pair->is_quoted = at < end && *at == '"';
		if (pair->is_quoted) {
			at = find_quote(++begin, end);
			if (at == NULL) {
				*wrong = "a quoted value that never ends";
				return false;
			}
			pair->value.text = wm_span(begin, (size_t)(at++ - begin));
			if (at < end && !is_blank(*at)) {
				*wrong = "text behind a closing quote";
				return false;
			}
		} else {
			while (at < end && !is_blank(*at))
				at++;
			pair->value.text = wm_span(begin, (size_t)(at - begin));
		}
	}
	*next = at;
	return true;
}

static const char *
read_logfmt(struct wm_lines *lines, struct wm_span line)
{
	const char *at = line.data, *end = line.data + line.len, *wrong = NULL;
	bool has_value = false;
	struct pair pair;

	for (size_t i = 0; i < lines->fields_count; i++)
		lines->fields[i] = (struct wm_value){ 0 };
	while (next_pair(&at, end, &pair, &wrong)) {
		has_value |= pair.value.kind == WM_KIND_TEXT;
		set_key(lines, pair.key, pair.value, pair.is_quoted);
	}
	return wrong != NULL || has_value ? wrong : "no key=value in it";
}

void
wm_logfmt_put_object(struct wm_span line, const struct wm_nulls *nulls, struct wm_buf *out)
{
	const char *at = line.data, *end = line.data + line.len, *wrong = NULL;
	struct wm_buf said;
	struct pair pair;
	char before = '{';

	wm_buf_init(&said, WM_BUF_UNBOUNDED);
	for (; next_pair(&at, end, &pair, &wrong); before = ',') {
		if (pair.is_quoted)
			pair.value.text = unescape(pair.value.text, &said);
		struct wm_value value = wm_value_from_csv(pair.value.text);
		if (nulls != NULL && wm_nulls_are_in(nulls, &value, WM_NULLS_FIELD))
			value = (struct wm_value){ wm_span(NULL, 0), WM_KIND_NULL };
		wm_buf_add_byte(out, before);
		wm_json_put_string(out, pair.key);
		wm_buf_add_byte(out, ':');
		wm_json_put_value(out, &value);
	}
	wm_buf_add_text(out, before == '{' ? "{}" : "}");
	wm_buf_release(&said);
}

/* ---- patterns ---- */

static bool
refuse_pattern(struct wm_err *err, const char *pattern, const char *what)
{
	struct wm_buf shown;

	wm_buf_init(&shown, WM_BUF_UNBOUNDED);
	wm_shown(wm_span_of(pattern), &shown);
	wm_err_set(err, WM_ERR_USAGE, "pattern '%.*s': %s", (int)shown.len, shown.data, what);
	wm_buf_release(&shown);
	return false;
}

/* What other tools' expressions have, and POSIX's would silently take for something else; NULL if there is none. */
static const char *
find_other_dialect(const char *at)
{
	bool in_brackets = false;

	for (; *at != '\0'; at++) {
		if (*at == '\\' && at[1] == 'd')
			return "\\d is not known: write [0-9] (in brackets 0-9)";
		if (*at == '\\' && at[1] == 'D')
			return "\\D is not known: write [^0-9]";
		if (*at == '\\' && at[1] == 't')
			return "\\t is not known: write a tab itself, in the shell $'...\\t...'";
		if (in_brackets) {
			/* "[:alpha:]" and its like end behind their own bracket. */
			if (*at == '[' && at[1] != '\0' && strchr(":.=", at[1]) != NULL) {
				char mark = at[1];

				for (at += 2; at[0] != '\0' && !(at[0] == mark && at[1] == ']'); at++)
					;
				if (*at == '\0')
					return NULL;
				at++;
			} else {
				in_brackets = *at != ']';
			}
		} else if (*at == '\\' && at[1] != '\0') {
			at++;
		} else if (*at == '[') {
			in_brackets = true;
			at += at[1] == '^';
			at += at[1] == ']';
		} else if (*at == '(' && at[1] == '?') {
			return "(? is not known: write ( alone, every group is a column, and --columns names them";
		} else if (strchr("*+?}", *at) != NULL && at[1] == '?') {
			return "a repetition that stops early (as .*?) is not known: write what it may run over, as "
			       "[^ ]* up to a blank";
		}
	}
	return NULL;
}

/* Reads the digits at *at and goes behind them: their number, or one above the greatest pattern where it is greater; 0: there are none. */
static size_t
take_times(const char **at)
{
	size_t times = 0;

	for (; **at >= '0' && **at <= '9'; ++*at)
		times = times > WM_PATTERN_SIZE_MAX ? times : times * 10 + (size_t)(**at - '0');
	return times;
}

/* How many times at most the braces at at repeat what stands before them: 1 where they are none that libc takes. */
static size_t
times_of(const char *at)
{
	at++;
	size_t times = take_times(&at);

	if (*at == ',' && at[1] >= '0' && at[1] <= '9') {
		at++;
		times = take_times(&at);
	} else if (*at == ',') {
		times++;
	}
	return times > WM_PATTERN_SIZE_MAX ? WM_PATTERN_SIZE_MAX + 1 : times == 0 ? 1 : times;
}

/*
 * What would take libc more stack or memory than any log line is worth; NULL if there is nothing of it. A parenthesis
 * in brackets counts as one: that can only refuse what nobody writes.
 */
static const char *
find_excess(const char *at)
{
	/* Of each parenthesis that is open, how long what stands in it is, and how long the last part of that. */
	size_t sizes[WM_PATTERN_DEPTH_MAX + 1] = { 0 }, last = 0, depth = 0;

	for (; *at != '\0'; at++) {
		if (*at == '(') {
			if (depth == WM_PATTERN_DEPTH_MAX)
				return "its parentheses are nested too deep: 100 are allowed";
			sizes[++depth] = 0;
			continue;
		}
		if (*at == '{') {
			size_t times = times_of(at);

			sizes[depth] += last * (times - 1);
			last *= times;
			while (at[1] != '\0' && strchr("0123456789,}", at[1]) != NULL && *at != '}')
				at++;
		} else if (*at == ')' && depth > 0) {
			last = sizes[depth--] + 1;
			sizes[depth] += last;
		} else {
			at += *at == '\\' && at[1] != '\0';
			last = 1;
			sizes[depth]++;
		}
		if (sizes[depth] > WM_PATTERN_SIZE_MAX)
			return "it is too long, with its {n} written out: 10000 characters are allowed";
	}
	return NULL;
}

/* The index of the next name of a list that there may be; SIZE_MAX where it is no column. */
static size_t
next_column(const struct wm_lines *lines, const char **list)
{
	struct wm_span name = { *list, strcspn(*list, ",") };
	size_t column = 0;

	*list += name.len + ((*list)[name.len] == ',');
	while (column < lines->columns.count && !wm_span_equal(lines->columns.names[column], name))
		column++;
	return column < lines->columns.count ? column : SIZE_MAX;
}

/* groups: as in named_pattern, or NULL: each group is a column. */
static bool
add_way(struct wm_lines *lines, const char *pattern, const char *expression, const char *groups, struct wm_err *err)
{
	struct way *way = &lines->ways[lines->ways_count];
	int failed = regcomp(&way->expression, expression, REG_EXTENDED);
	char text[128];

	if (failed != 0) {
		regerror(failed, &way->expression, text, sizeof(text));
		return refuse_pattern(err, pattern, text);
	}
	lines->ways_count++;
	way->groups_count = way->expression.re_nsub;
	way->columns = wm_calloc(way->groups_count + 1, sizeof(*way->columns));
	for (size_t i = 0; i <= way->groups_count; i++)
		way->columns[i] = groups != NULL ? next_column(lines, &groups) : i < way->groups_count ? i : SIZE_MAX;
	if (way->groups_count + 1 > lines->matches_count) {
		lines->matches_count = way->groups_count + 1;
		lines->matches = wm_reallocarray(lines->matches, lines->matches_count, sizeof(*lines->matches));
	}
	return true;
}

static bool
refuse_name(struct wm_err *err, const char *pattern)
{
	struct wm_near near = wm_near_to(wm_span_of(pattern));
	char text[128];

	for (size_t i = 0; i < sizeof(named_patterns) / sizeof(*named_patterns); i++)
		wm_near_try(&near, wm_span_of(named_patterns[i].name));
	if (near.best.data != NULL)
		snprintf(text, sizeof(text), "no such name: did you mean %s?", near.best.data);
	else
		snprintf(text, sizeof(text),
			"no such name: there are @kubectl, @syslog, @haproxy (write \\@ for a text)");
	return refuse_pattern(err, pattern, text);
}

static bool
take_pattern(struct wm_lines *lines, const char *pattern, const struct wm_header *names, struct wm_err *err)
{
	const struct named_pattern *named = NULL;
	const char *wrong;
	char text[128];

	if (*pattern == '@') {
		size_t i = 0, count = sizeof(named_patterns) / sizeof(*named_patterns);

		while (i < count && strcmp(named_patterns[i].name, pattern) != 0)
			i++;
		if (i == count)
			return refuse_name(err, pattern);
		named = &named_patterns[i];
		set_columns(lines, named->columns);
		for (size_t k = 0; k < WAYS_MAX && named->ways[k].expression != NULL; k++)
			if (!add_way(lines, pattern, named->ways[k].expression, named->ways[k].groups, err))
				return false;
	} else {
		wrong = find_other_dialect(pattern);
		if (wrong == NULL)
			wrong = find_excess(pattern);
		if (wrong != NULL)
			return refuse_pattern(err, pattern, wrong);
		if (!add_way(
			    lines, pattern, pattern[0] == '\\' && pattern[1] == '@' ? pattern + 1 : pattern, NULL, err))
			return false;
		if (lines->ways[0].expression.re_nsub == 0)
			return refuse_pattern(
				err, pattern, "it has no group: put in parentheses what is to be a column");
		wm_header_number(&lines->columns, lines->ways[0].expression.re_nsub);
	}
	if (names->count == 0)
		return true;
	if (names->count != lines->columns.count) {
		snprintf(text, sizeof(text), "it has %zu column%s, and --columns names %zu", lines->columns.count,
			lines->columns.count == 1 ? "" : "s", names->count);
		return refuse_pattern(err, pattern, text);
	}
	wm_header_take(&lines->columns, names->names, names->count);
	return true;
}

static void
set_part(struct wm_lines *lines, size_t column, struct wm_span line, regoff_t begin, regoff_t end)
{
	if (column != SIZE_MAX)
		lines->fields[column] =
			(struct wm_value){ wm_span(line.data + begin, (size_t)(end - begin)), WM_KIND_TEXT };
}

static const char *
read_pattern(struct wm_lines *lines, struct wm_span line)
{
	for (size_t i = 0; i < lines->columns.count; i++)
		lines->fields[i] = (struct wm_value){ 0 };
	/* The library's memory grows with the line and the pattern. */
	if (line.len > WM_PATTERN_LINE_BYTES_MAX)
		return "too long for a pattern";
	/* It is told where the line ends, but a line may hold NUL, and those who watch over memory look for one. */
	wm_buf_reset(&lines->line);
	wm_buf_add(&lines->line, line.data, line.len);
	wm_buf_add_byte(&lines->line, '\0');
	for (size_t k = 0; k < lines->ways_count; k++) {
		const struct way *way = &lines->ways[k];

		lines->matches[0] = (regmatch_t){ .rm_so = 0, .rm_eo = (regoff_t)line.len };
		int result = regexec(
			&way->expression, lines->line.data, way->groups_count + 1, lines->matches, REG_STARTEND);
		if (result == REG_NOMATCH)
			continue;
		if (result != 0)
			return "the pattern needs too much memory for it";
		for (size_t i = 0; i < way->groups_count; i++) {
			const regmatch_t *match = &lines->matches[i + 1];

			if (match->rm_so >= 0)
				set_part(lines, way->columns[i], line, match->rm_so, match->rm_eo);
		}
		set_part(lines, way->columns[way->groups_count], line, lines->matches[0].rm_eo, (regoff_t)line.len);
		return NULL;
	}
	return "it does not match the pattern";
}

/* ---- all ---- */

struct wm_lines *
wm_lines_new(enum wm_format format, const char *pattern, const struct wm_header *names, struct wm_err *err)
{
	struct wm_lines *lines = wm_calloc(1, sizeof(*lines));

	lines->format = format;
	wm_buf_init(&lines->line, WM_BUF_UNBOUNDED);
	if (format == WM_FORMAT_CLF)
		set_columns(lines, clf_names);
	else if (format == WM_FORMAT_LINES && !take_pattern(lines, pattern, names, err))
		goto fail;
	for (size_t i = 0; i < lines->columns.count; i++) {
		size_t column = add_column(lines);

		lines->fields[column].kind = WM_KIND_TEXT;
		lines->is_escaped[column] = format == WM_FORMAT_CLF && column != CLF_EXTRA;
		lines->is_seen[column] = true;
	}
	return lines;

fail:
	wm_lines_free(lines);
	return NULL;
}

void
wm_lines_free(struct wm_lines *lines)
{
	if (lines == NULL)
		return;
	for (size_t i = 0; i < lines->ways_count; i++) {
		regfree(&lines->ways[i].expression);
		free(lines->ways[i].columns);
	}
	free(lines->matches);
	wm_buf_release(&lines->line);
	for (size_t i = 0; i < lines->fields_count; i++)
		wm_buf_release(&lines->said[i]);
	for (size_t i = 0; lines->format == WM_FORMAT_LOGFMT && i < lines->fields_count; i++)
		free((char *)lines->names[i].data);
	free(lines->names);
	free(lines->said);
	free(lines->is_seen);
	free(lines->is_escaped);
	free(lines->fields);
	wm_header_release(&lines->columns);
	free(lines);
}

const struct wm_header *
wm_lines_columns(const struct wm_lines *lines)
{
	return &lines->columns;
}

size_t
wm_lines_want(struct wm_lines *lines, struct wm_span name)
{
	size_t column = add_column(lines);

	assert(lines->format == WM_FORMAT_LOGFMT);
	lines->names = wm_reallocarray(lines->names, column + 1, sizeof(*lines->names));
	lines->names[column] = wm_span(wm_memdup(name.data, name.len), name.len);
	return column;
}

const char *
wm_lines_read(struct wm_lines *lines, struct wm_span line)
{
	switch (lines->format) {
	case WM_FORMAT_CLF:
		return read_clf(lines, line);
	case WM_FORMAT_LOGFMT:
		return read_logfmt(lines, line);
	default:
		return read_pattern(lines, line);
	}
}

struct wm_value
wm_lines_field(struct wm_lines *lines, size_t column)
{
	struct wm_value value = lines->fields[column];

	if (lines->is_escaped[column] && value.text.len > 0 && memchr(value.text.data, '\\', value.text.len) != NULL)
		value.text = unescape(value.text, &lines->said[column]);
	return value;
}

bool
wm_lines_seen(const struct wm_lines *lines, size_t column)
{
	return lines->is_seen[column];
}
