/* SPDX-License-Identifier: Apache-2.0 */
#include <simdjson.h>

#include <memory>
#include <new>

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* In C a function may have the name of a struct; C++ takes it for a shadowed constructor. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/ndjson.h"
#include "lib/record/writer.h"
}
#pragma GCC diagnostic pop

namespace
{

using span = struct wm_span; /* the name alone is the function */

/* Members of an object whose places are remembered from line to line. */
constexpr size_t known_max = 64;

/* Bytes of a remembered name that are compared without a loop. */
constexpr size_t head_bytes = 16;

/* A part of a wanted name. The root stands for the line's object; its children are whole names and first parts. */
struct node {
	char *name;
	size_t name_len;
	size_t index; /* the place in an array that the name means */
	bool is_index;
	node *child; /* the first */
	node *sibling;
	uint64_t found_line; /* the line whose value stands here */
	wm_value value;
};

struct column {
	node *whole;
	node *path; /* NULL if it is the same */
	bool is_seen;
};

/* The n-th member's name as it was in a line before, with its quotes. */
struct known {
	uint64_t head[2]; /* its first bytes; 0 where mask is 0 */
	uint64_t mask[2];
	wm_buf name;
	node *match; /* NULL: not wanted */
};

bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

uint64_t
load(const char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

} // namespace

struct wm_ndjson {
	node root;
	column *columns;
	size_t columns_count;

	std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
	span batch;
	size_t next;           /* offset of the next line */
	size_t next_backslash; /* offset of the first one at or behind the next line, or batch.len */
	bool is_indexed;       /* the index holds the whole batch; else each line is indexed for itself */
	const uint32_t *index; /* the next structural character, as an offset from index_base */
	const char *index_base;

	uint64_t line_number;    /* counts all lines; distinguishes the values of this one */
	uint32_t line_end;       /* as an offset from index_base */
	bool line_has_backslash; /* else no string needs a look */
	wm_buf unescaped;        /* of this line's strings; never moves within a line */
	const char *wrong;
	const char *wrong_at;

	known members[known_max];
};

namespace
{

node *
find_child(const node *parent, span name)
{
	for (node *child = parent->child; child != nullptr; child = child->sibling)
		if (child->name_len == name.len && memcmp(child->name, name.data, name.len) == 0)
			return child;
	return nullptr;
}

/* "0", "12": a place in an array. Leading zeros are none. */
bool
read_index(span name, size_t *index)
{
	if (name.len == 0 || name.len > 9 || (name.data[0] == '0' && name.len > 1))
		return false;
	*index = 0;
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] < '0' || name.data[i] > '9')
			return false;
		*index = *index * 10 + static_cast<size_t>(name.data[i] - '0');
	}
	return true;
}

node *
add_child(node *parent, span name)
{
	node *child = find_child(parent, name);

	if (child != nullptr)
		return child;
	child = static_cast<node *>(wm_calloc(1, sizeof(*child)));
	child->name = wm_memdup(name.data, name.len);
	child->name_len = name.len;
	child->is_index = read_index(name, &child->index);
	child->sibling = parent->child;
	parent->child = child;
	return child;
}

void
free_children(node *parent)
{
	for (node *child = parent->child, *next; child != nullptr; child = next) {
		next = child->sibling;
		free_children(child);
		free(child->name);
		free(child);
	}
}

/* A member that came again takes with it all that was found below the one before. */
void
forget_children(node *parent)
{
	for (node *child = parent->child; child != nullptr; child = child->sibling) {
		child->found_line = 0;
		forget_children(child);
	}
}

bool
fail(wm_ndjson *nd, const char *wrong, const char *at)
{
	nd->wrong = wrong;
	nd->wrong_at = at;
	return false;
}

bool
ends_early(wm_ndjson *nd)
{
	return fail(nd, "it ends too early", nd->index_base + nd->line_end);
}

int
hex_value(const char *at)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char byte = at[i];
		int digit = byte >= '0' && byte <= '9' ? byte - '0'
			: byte >= 'a' && byte <= 'f'   ? byte - 'a' + 10
			: byte >= 'A' && byte <= 'F'   ? byte - 'A' + 10
						       : -1;
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* What stands behind a \u; half of a surrogate pair is kept as it is. Sets *at behind all that it took. */
bool
unescape_unicode(wm_ndjson *nd, const char **at, const char *end)
{
	int code = end - *at < 4 ? -1 : hex_value(*at);

	if (code < 0)
		return fail(nd, "\\u without four hexadecimal digits", *at);
	*at += 4;
	if (code >= 0xD800 && code < 0xDC00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
		int low = hex_value(*at + 2);

		if (low >= 0xDC00 && low < 0xE000) {
			*at += 6;
			code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
		}
	}
	char character[WM_UTF8_LEN_MAX];
	wm_buf_add(&nd->unescaped, character, wm_utf8_put(static_cast<uint32_t>(code), character));
	return true;
}

/* The text of a string that holds a backslash; its escapes are checked here. No text is longer than its source. */
bool
unescape(wm_ndjson *nd, span *text)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char meanings[] = "\"\\/\b\f\n\r\t";
	const char *at = text->data, *end = text->data + text->len;
	size_t begin;

	if (nd->unescaped.len == 0) {
		bool fits = wm_buf_reserve(&nd->unescaped, nd->line_end);

		assert(fits);
		(void)fits;
	}
	begin = nd->unescaped.len;
	while (at < end) {
		const void *found = memchr(at, '\\', static_cast<size_t>(end - at));
		const char *backslash = found == nullptr ? end : static_cast<const char *>(found);

		wm_buf_add(&nd->unescaped, at, static_cast<size_t>(backslash - at));
		at = backslash;
		if (at == end)
			break;
		/* A string cannot end in a lone backslash: that would have escaped its quote. */
		const char *letter = at[1] == '\0' ? nullptr : strchr(letters, at[1]);
		at += 2;
		if (letter != nullptr)
			wm_buf_add_byte(&nd->unescaped, meanings[letter - letters]);
		else if (at[-1] != 'u')
			return fail(nd, "no such escape in JSON", at - 2);
		else if (!unescape_unicode(nd, &at, end))
			return false;
	}
	*text = wm_span(nd->unescaped.data + begin, nd->unescaped.len - begin);
	return true;
}

/* The scalar at the next structural character up to the one behind it, blanks dropped. */
span
scalar_text(const wm_ndjson *nd)
{
	const char *begin = nd->index_base + nd->index[0], *end = nd->index_base + nd->index[1];

	while (is_blank(end[-1]))
		end--;
	return wm_span(begin, static_cast<size_t>(end - begin));
}

/* A string that begins at the next structural character: quoted is its own text, *text what it says. */
bool
read_string(wm_ndjson *nd, span quoted, span *text)
{
	*text = wm_span(quoted.data + 1, quoted.len - 2);
	if (!nd->line_has_backslash || text->len == 0 || memchr(text->data, '\\', text->len) == nullptr)
		return true;
	return unescape(nd, text);
}

bool walk_object(wm_ndjson *nd, node *parent, int depth);
bool walk_array(wm_ndjson *nd, node *parent, int depth);

/* A string, number or literal, with a structural character of its line behind it. */
bool
walk_scalar(wm_ndjson *nd, node *match)
{
	span text = scalar_text(nd), said = text;
	wm_kind kind = WM_KIND_NUMBER;

	switch (text.data[0]) {
	case '"':
		kind = WM_KIND_TEXT;
		if (!read_string(nd, text, &said))
			return false;
		break;
	case 't':
	case 'f':
		kind = WM_KIND_BOOL;
		if (!wm_span_is(text, "true") && !wm_span_is(text, "false"))
			return fail(nd, "no JSON value", text.data);
		break;
	case 'n':
		kind = WM_KIND_NULL;
		said.len = 0;
		if (!wm_span_is(text, "null"))
			return fail(nd, "no JSON value", text.data);
		break;
	default:
		if (!wm_json_is_number(text))
			return fail(nd, "no JSON value", text.data);
		break;
	}
	nd->index++;
	if (match != nullptr) {
		match->value = wm_value{ said, kind };
		match->found_line = nd->line_number;
	}
	return true;
}

/* The value at the next structural character, which belongs to the line; match is told of it. */
bool
walk_value(wm_ndjson *nd, node *match, int depth)
{
	const char *begin = nd->index_base + nd->index[0];

	if (match != nullptr && match->found_line == nd->line_number)
		forget_children(match);
	if (*begin != '{' && *begin != '[')
		return nd->index[1] < nd->line_end ? walk_scalar(nd, match) : ends_early(nd);
	if (depth == WM_JSON_DEPTH_MAX)
		return fail(nd, "nested too deep", begin);
	bool is_well = *begin == '{' ? walk_object(nd, match, depth + 1) : walk_array(nd, match, depth + 1);
	if (is_well && match != nullptr) {
		const char *end = nd->index_base + nd->index[-1] + 1;

		match->value = wm_value{ wm_span(begin, static_cast<size_t>(end - begin)), WM_KIND_JSON };
		match->found_line = nd->line_number;
	}
	return is_well;
}

/* Takes the comma or the end behind a member or element: '\0' if there is neither. */
char
take_separator(wm_ndjson *nd, char end)
{
	if (nd->index[0] >= nd->line_end)
		return ends_early(nd), '\0';
	char byte = nd->index_base[nd->index[0]];
	if (byte != ',' && byte != end)
		return fail(nd, "neither a comma nor the end behind a value", nd->index_base + nd->index[0]), '\0';
	nd->index++;
	return byte;
}

bool
walk_array(wm_ndjson *nd, node *parent, int depth)
{
	nd->index++;
	if (nd->index[0] < nd->line_end && nd->index_base[nd->index[0]] == ']') {
		nd->index++;
		return true;
	}
	for (size_t i = 0;; i++) {
		node *match = parent == nullptr ? nullptr : parent->child;

		while (match != nullptr && !(match->is_index && match->index == i))
			match = match->sibling;
		if (nd->index[0] >= nd->line_end)
			return ends_early(nd);
		if (!walk_value(nd, match, depth))
			return false;
		char separator = take_separator(nd, ']');
		if (separator != ',')
			return separator != '\0';
	}
}

void
remember(known *member, span quoted, node *match)
{
	char bytes[head_bytes] = { 0 }, mask[head_bytes] = { 0 };
	size_t len = quoted.len < head_bytes ? quoted.len : head_bytes;

	memcpy(bytes, quoted.data, len);
	memset(mask, 0xFF, len);
	for (int i = 0; i < 2; i++) {
		member->head[i] = load(bytes + 8 * i);
		member->mask[i] = load(mask + 8 * i);
	}
	wm_buf_reset(&member->name);
	wm_buf_add(&member->name, quoted.data, quoted.len);
	member->match = match;
}

/* The slack behind a batch lets the head be loaded whole. */
bool
is_known(const known *member, span quoted)
{
	if (member->name.len != quoted.len || ((load(quoted.data) ^ member->head[0]) & member->mask[0]) != 0 ||
		((load(quoted.data + 8) ^ member->head[1]) & member->mask[1]) != 0)
		return false;
	return quoted.len <= head_bytes ||
		memcmp(quoted.data + head_bytes, member->name.data + head_bytes, quoted.len - head_bytes) == 0;
}

/* The name of a member at the next structural character, and what is wanted of it. */
bool
match_name(wm_ndjson *nd, node *parent, known *member, node **match)
{
	span quoted = scalar_text(nd), name;

	if (member != nullptr && is_known(member, quoted)) {
		*match = member->match;
		return true;
	}
	if (!read_string(nd, quoted, &name))
		return false;
	*match = parent == nullptr ? nullptr : find_child(parent, name);
	if (member != nullptr)
		remember(member, quoted, *match);
	return true;
}

bool
walk_object(wm_ndjson *nd, node *parent, int depth)
{
	const char *base = nd->index_base;

	nd->index++;
	if (nd->index[0] < nd->line_end && base[nd->index[0]] == '}') {
		nd->index++;
		return true;
	}
	for (size_t i = 0;; i++) {
		node *match;

		/* Name, colon, value: three that must belong to this line; behind the last of the batch stand three that do not. */
		if (nd->index[0] < nd->line_end && base[nd->index[0]] != '"')
			return fail(nd, "no name where a member must begin", base + nd->index[0]);
		if (nd->index[2] >= nd->line_end)
			return ends_early(nd);
		if (base[nd->index[1]] != ':')
			return fail(nd, "no colon behind a name", base + nd->index[1]);
		if (!match_name(nd, parent, depth == 1 && i < known_max ? &nd->members[i] : nullptr, &match))
			return false;
		nd->index += 2;
		if (!walk_value(nd, match, depth))
			return false;
		char separator = take_separator(nd, '}');
		if (separator != ',')
			return separator != '\0' &&
				(i < WM_COLUMNS_MAX || depth > 1 ||
					fail(nd, "more than 65535 members", base + nd->index[-1]));
	}
}

/* Builds the index of a text; false if some line of it cannot be well-formed. */
simdjson::error_code
build_index(wm_ndjson *nd, span text)
{
	simdjson::error_code error = simdjson::SUCCESS;

	if (nd->parser == nullptr) {
		error = simdjson::get_active_implementation()->create_dom_parser_implementation(
			text.len < WM_NDJSON_BYTES_MAX ? WM_NDJSON_BYTES_MAX : text.len, WM_JSON_DEPTH_MAX, nd->parser);
	} else if (nd->parser->capacity() < text.len) {
		error = nd->parser->allocate(text.len + text.len / 2, WM_JSON_DEPTH_MAX);
	}
	if (error != simdjson::SUCCESS)
		wm_reallocarray(nullptr, text.len, SIZE_MAX / 8); /* stops the process: out of memory */
	nd->index_base = text.data;
	error = nd->parser->stage1(
		reinterpret_cast<const uint8_t *>(text.data), text.len, simdjson::stage1_mode::regular);
	uint32_t *index = nd->parser->structural_indexes.get();
	if (error == simdjson::EMPTY) {
		nd->parser->n_structural_indexes = 0;
		error = simdjson::SUCCESS;
	}
	/* Three that belong to no line, so that a member can be looked at whole. */
	for (uint32_t i = 0; i < 3; i++)
		index[nd->parser->n_structural_indexes + i] = static_cast<uint32_t>(text.len);
	nd->index = index;
	return error;
}

const char *
describe(simdjson::error_code error)
{
	switch (error) {
	case simdjson::UTF8_ERROR:
		return "invalid UTF-8";
	case simdjson::UNCLOSED_STRING:
		return "a string that never ends";
	default:
		return "a control character in a string";
	}
}

/* A line whose structure is in the index: true if it is one well-formed object. */
bool
walk_line(wm_ndjson *nd)
{
	const char *begin = nd->index_base + nd->index[0];

	if (*begin != '{')
		return fail(nd, "no object", begin);
	if (!walk_object(nd, &nd->root, 1))
		return false;
	if (nd->index[0] < nd->line_end)
		return fail(nd, "more behind the object", nd->index_base + nd->index[0]);
	return true;
}

void
fill_fields(wm_ndjson *nd, wm_value *fields)
{
	for (size_t i = 0; i < nd->columns_count; i++) {
		column *column = &nd->columns[i];
		const node *found = column->whole;

		if (found->found_line != nd->line_number && column->path != nullptr)
			found = column->path;
		if (found->found_line == nd->line_number) {
			fields[i] = found->value;
			column->is_seen = true;
		} else {
			fields[i] = wm_value{ wm_span(nullptr, 0), WM_KIND_NULL };
		}
	}
}

void
stop_without_memory()
{
	wm_mem_stop(0);
}

} // namespace

extern "C" {

struct wm_ndjson *
wm_ndjson_new(const struct wm_column *columns, size_t columns_count)
{
	/* What the parser asks for, and does not get, would end in an abort. */
	std::set_new_handler(stop_without_memory);
	wm_ndjson *nd = new (wm_malloc(sizeof(*nd))) wm_ndjson();

	nd->columns = static_cast<column *>(wm_calloc(columns_count, sizeof(*nd->columns)));
	nd->columns_count = columns_count;
	for (size_t i = 0; i < columns_count; i++) {
		const wm_column *wanted = &columns[i];

		nd->columns[i].whole = add_child(&nd->root, wm_span(wanted->name, wanted->name_len));
		if (wanted->path_count == 1)
			continue;
		node *at = &nd->root;
		for (size_t part = 0; part < wanted->path_count; part++)
			at = add_child(at, wm_span(wanted->path[part], wanted->path_len[part]));
		nd->columns[i].path = at;
	}
	wm_buf_init(&nd->unescaped, WM_BUF_UNBOUNDED);
	for (known &member : nd->members)
		wm_buf_init(&member.name, WM_BUF_UNBOUNDED);
	return nd;
}

void
wm_ndjson_free(struct wm_ndjson *nd)
{
	if (nd == nullptr)
		return;
	free_children(&nd->root);
	free(nd->columns);
	wm_buf_release(&nd->unescaped);
	for (known &member : nd->members)
		wm_buf_release(&member.name);
	nd->~wm_ndjson();
	free(nd);
}

void
wm_ndjson_batch(struct wm_ndjson *nd, struct wm_span lines)
{
	nd->batch = lines;
	nd->next = 0;
	nd->next_backslash = 0;
	nd->is_indexed = build_index(nd, lines) == simdjson::SUCCESS;
}

enum wm_ndjson_result
wm_ndjson_next(struct wm_ndjson *nd, struct wm_ndjson_line *line, struct wm_value *fields)
{
	size_t begin = nd->next, left = nd->batch.len - begin;
	const char *text = nd->batch.data + begin;

	if (left == 0)
		return WM_NDJSON_END;
	const void *line_feed = memchr(text, '\n', left);
	size_t len = line_feed == nullptr ? left : static_cast<size_t>(static_cast<const char *>(line_feed) - text) + 1;
	*line = wm_ndjson_line{ wm_span(text, len), nullptr, 0 };
	nd->next = begin + len;
	nd->line_number++;
	nd->unescaped.len = 0;

	if (nd->next_backslash < begin || begin == 0) {
		const void *found = memchr(text, '\\', left);

		nd->next_backslash = found == nullptr
			? nd->batch.len
			: static_cast<size_t>(static_cast<const char *>(found) - nd->batch.data);
	}
	nd->line_has_backslash = nd->next_backslash < nd->next;

	size_t content_len = line_feed == nullptr ? len : len - 1;
	if (!nd->is_indexed) {
		simdjson::error_code error = build_index(nd, wm_span(text, content_len));
		if (error != simdjson::SUCCESS) {
			line->wrong = describe(error);
			return WM_NDJSON_MALFORMED;
		}
	}
	nd->line_end = static_cast<uint32_t>(text + content_len - nd->index_base);
	if (nd->index[0] >= nd->line_end)
		return WM_NDJSON_BLANK;
	if (walk_line(nd)) {
		fill_fields(nd, fields);
		return WM_NDJSON_RECORD;
	}
	line->wrong = nd->wrong;
	line->wrong_at = static_cast<size_t>(nd->wrong_at - text);
	/* The next line has its own structure. */
	while (nd->index[0] < nd->line_end)
		nd->index++;
	return WM_NDJSON_MALFORMED;
}

size_t
wm_ndjson_left(const struct wm_ndjson *nd)
{
	return nd->batch.len - nd->next;
}

bool
wm_ndjson_seen(const struct wm_ndjson *nd, size_t index)
{
	return nd->columns[index].is_seen;
}
}
