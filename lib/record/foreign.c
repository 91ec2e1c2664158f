/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/foreign.h"

#include <string.h>
#include <strings.h>

#include "lib/base/decimal.h"
#include "lib/record/cut.h"

/* In a shape 'd' is a digit, 'a' a letter, 't' what stands between date and time; all else is itself. */
static bool
has_shape(struct wm_span text, const char *shape)
{
	for (size_t i = 0; shape[i] != '\0'; i++) {
		char byte = i < text.len ? text.data[i] : '\0', lower = (char)(byte | 0x20);
		bool fits = shape[i] == 'd' ? byte >= '0' && byte <= '9'
			: shape[i] == 'a'   ? lower >= 'a' && lower <= 'z'
			: shape[i] == 't'   ? byte == ' ' || lower == 't'
					    : byte == shape[i];
		if (!fits)
			return false;
	}
	return true;
}

bool
wm_foreign_is_time(struct wm_span field)
{
	return has_shape(field, "dddd-dd-ddtdd:dd");
}

const char *
wm_foreign_advise(const struct wm_span *names, size_t count)
{
	static const struct {
		char delimiter;
		const char *advice;
	} others[] = {
		{ ';', "if ';' is the delimiter, say -d ';'" },
		{ '|', "if '|' is the delimiter, say -d '|'" },
		{ '\t', "if a tab is the delimiter, say -d '\\t'" },
		{ ',', "if ',' is the delimiter, say -d ," },
		{ ' ', "if a blank is the delimiter, say -d ' '" },
	};
	struct wm_decimal number;

	for (size_t i = 0; count == 1 && i < sizeof(others) / sizeof(*others); i++)
		if (memchr(names[0].data, others[i].delimiter, names[0].len) != NULL)
			return others[i].advice;
	for (size_t i = 0; i < count; i++)
		if (wm_decimal_parse(names[i], &number))
			return "if the header is missing, name the columns with --columns, or let it through (tail -n "
			       "+1 -F)";
	return NULL;
}

static bool
begins_with(struct wm_span text, const char *bytes, size_t len)
{
	return text.len >= len && memcmp(text.data, bytes, len) == 0;
}

/* Whatever the case of letters. */
static bool
begins_with_word(struct wm_span text, const char *word)
{
	size_t len = strlen(word);

	return text.len >= len && strncasecmp(text.data, word, len) == 0;
}

bool
wm_foreign_is_tail(struct wm_span line)
{
	struct wm_span content = wm_cut_content(line);

	return content.len > 8 && begins_with(content, "==> ", 4) &&
		memcmp(content.data + content.len - 4, " <==", 4) == 0;
}

/* Every second byte from at is NUL, and no other. */
static bool
has_nul_at(struct wm_span line, size_t at)
{
	size_t len = line.len < 16 ? line.len & ~(size_t)1 : 16;

	for (size_t i = 0; i < len; i++)
		if ((line.data[i] == '\0') != (i % 2 == at))
			return false;
	return len >= 4;
}

static struct wm_span
trim(struct wm_span line)
{
	while (line.len > 0 && (line.data[0] == ' ' || line.data[0] == '\t'))
		line = wm_span(line.data + 1, line.len - 1);
	while (line.len > 0 && memchr(" \t\r\n", line.data[line.len - 1], 4) != NULL)
		line.len--;
	return line;
}

/* Whether a line of JSON ends with objects or arrays open, outside a string. */
static bool
is_open_json(struct wm_span line)
{
	size_t depth = 0;
	bool is_text = false;

	for (size_t i = 0; i < line.len; i++) {
		char byte = line.data[i];

		if (is_text && byte == '\\')
			i++;
		else if (byte == '"')
			is_text = !is_text;
		else if (!is_text && (byte == '{' || byte == '['))
			depth++;
		else if (!is_text && (byte == '}' || byte == ']') && depth > 0)
			depth--;
	}
	return depth > 0 && !is_text;
}

static const char *
find_json(struct wm_span line)
{
	struct wm_span content = trim(line), rest;
	bool is_whole = line.data[line.len - 1] == '\n';

	if (content.len == 0)
		return NULL;
	if (content.data[0] == '[') {
		rest = trim(wm_span(content.data + 1, content.len - 1));
		if (rest.len == 0 || rest.data[0] == '{' || wm_span_is(rest, "]"))
			return "is a JSON array: make it one object a line with jq -c '.[]'";
	}
	if (content.data[0] == '{' && is_whole && is_open_json(content))
		return "is JSON over several lines: make it one object a line with jq -c .";
	return NULL;
}

/* "[10/Oct/2000:13:55:36 " stands in it. */
static bool
is_access_log(struct wm_span line)
{
	const char *at = line.data, *end = line.data + line.len;

	while ((at = memchr(at, '[', (size_t)(end - at))) != NULL) {
		if (has_shape(wm_span(at, (size_t)(end - at)), "[dd/aaa/dddd:dd:dd:dd "))
			return true;
		at++;
	}
	return false;
}

const char *
wm_foreign_find(struct wm_span line, enum wm_format format, bool has_header)
{
	bool may_be_csv = format == WM_FORMAT_AUTO || format == WM_FORMAT_CSV || format == WM_FORMAT_TSV;
	const char *found = NULL;

	if (begins_with(line, "\x1F\x8B", 2))
		return "is compressed: read it through zcat";
	if (begins_with(line, "\x28\xB5\x2F\xFD", 4))
		return "is compressed: read it through zstdcat";
	if (begins_with(line,
		    "\xFD"
		    "7zXZ\0",
		    6))
		return "is compressed: read it through xzcat";
	if (begins_with(line, "BZh", 3) && (has_shape(line, "BZhd1AY&SY") || has_shape(line, "BZhd\x17rE8P\x90")))
		return "is compressed: read it through bzcat";
	if (begins_with(line, "\xFF\xFE", 2) || begins_with(line, "\xFE\xFF", 2))
		return "is UTF-16: convert it with iconv -f UTF-16 -t UTF-8";
	if (has_nul_at(line, 1))
		return "is UTF-16: convert it with iconv -f UTF-16LE -t UTF-8";
	if (has_nul_at(line, 0))
		return "is UTF-16: convert it with iconv -f UTF-16BE -t UTF-8";
	/* A pattern may want it. */
	if (format != WM_FORMAT_LINES && wm_foreign_is_tail(line))
		return "begins with a line of tail's for one of several files: use tail -q";
	if (begins_with_word(trim(line), "<!doctype html") || begins_with_word(trim(line), "<html"))
		return "is an HTML page, not the data: look at it (with -f curl fails where a server answers with an "
		       "error)";
	if (format == WM_FORMAT_AUTO || format == WM_FORMAT_NDJSON)
		found = find_json(line);
	if (found == NULL && may_be_csv && has_header && is_access_log(line))
		return "is an access log: read it with -i clf";
	if (found == NULL && may_be_csv && has_header && memchr(line.data, '\0', line.len) != NULL)
		return "is no text, as its first line holds a NUL byte: convert it to CSV or NDJSON";
	return found;
}
