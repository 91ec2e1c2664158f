/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_model - whether a line is one JSON object, by plain descent: what the
 * reader of NDJSON is held to.
 */
#ifndef WM_TESTS_UNIT_JSON_MODEL_H
#define WM_TESTS_UNIT_JSON_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JSON_MODEL_DEPTH_MAX 64

struct json_model {
	const unsigned char *at;
	const unsigned char *end;
};

static bool json_model_value(struct json_model *in, int depth);

static void
json_model_blanks(struct json_model *in)
{
	while (in->at < in->end && memchr(" \t\r\n", *in->at, 4) != NULL)
		in->at++;
}

static bool
json_model_take(struct json_model *in, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
		return false;
	in->at += len;
	return true;
}

static bool
json_model_one_of(struct json_model *in, const char *bytes)
{
	if (in->at == in->end || *in->at == '\0' || strchr(bytes, *in->at) == NULL)
		return false;
	in->at++;
	return true;
}

static bool
json_model_digits(struct json_model *in)
{
	bool any = false;

	while (json_model_one_of(in, "0123456789"))
		any = true;
	return any;
}

static bool
json_model_number(struct json_model *in)
{
	json_model_take(in, "-");
	if (!json_model_take(in, "0") && !json_model_digits(in))
		return false;
	if (json_model_take(in, ".") && !json_model_digits(in))
		return false;
	if (json_model_one_of(in, "eE")) {
		json_model_one_of(in, "+-");
		return json_model_digits(in);
	}
	return true;
}

/* A character beyond ASCII: decoded, then judged by its value. */
static bool
json_model_utf8(struct json_model *in)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	unsigned char first = *in->at++;
	int more = first >= 0xF8 ? -1 : first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : -1;
	uint32_t code;

	if (more < 0 || in->end - in->at < more)
		return false;
	code = first & (0x3Fu >> more);
	for (int i = 0; i < more; i++, in->at++) {
		if ((*in->at & 0xC0) != 0x80)
			return false;
		code = code << 6 | (*in->at & 0x3F);
	}
	return code >= least[more] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

static bool
json_model_string(struct json_model *in)
{
	if (!json_model_take(in, "\""))
		return false;
	while (in->at < in->end) {
		if (json_model_take(in, "\""))
			return true;
		if (json_model_take(in, "\\u")) {
			for (int i = 0; i < 4; i++)
				if (!json_model_one_of(in, "0123456789abcdefABCDEF"))
					return false;
		} else if (json_model_take(in, "\\")) {
			if (!json_model_one_of(in, "\"\\/bfnrt"))
				return false;
		} else if (*in->at >= 0x80) {
			if (!json_model_utf8(in))
				return false;
		} else if (*in->at++ < 0x20) {
			return false;
		}
	}
	return false;
}

static bool
json_model_group(struct json_model *in, bool is_object, int depth)
{
	const char *end = is_object ? "}" : "]";

	json_model_blanks(in);
	if (json_model_take(in, end))
		return true;
	for (;;) {
		json_model_blanks(in);
		if (is_object) {
			if (!json_model_string(in))
				return false;
			json_model_blanks(in);
			if (!json_model_take(in, ":"))
				return false;
		}
		if (!json_model_value(in, depth))
			return false;
		json_model_blanks(in);
		if (json_model_take(in, end))
			return true;
		if (!json_model_take(in, ","))
			return false;
	}
}

static bool
json_model_value(struct json_model *in, int depth)
{
	json_model_blanks(in);
	if (json_model_take(in, "{"))
		return depth < JSON_MODEL_DEPTH_MAX && json_model_group(in, true, depth + 1);
	if (json_model_take(in, "["))
		return depth < JSON_MODEL_DEPTH_MAX && json_model_group(in, false, depth + 1);
	if (in->at < in->end && *in->at == '"')
		return json_model_string(in);
	return json_model_take(in, "true") || json_model_take(in, "false") || json_model_take(in, "null") ||
		json_model_number(in);
}

static bool
json_model_is_blank(const char *data, size_t len)
{
	struct json_model in = { (const unsigned char *)data, (const unsigned char *)data + len };

	json_model_blanks(&in);
	return in.at == in.end;
}

static bool
json_model_is_object(const char *data, size_t len)
{
	struct json_model in = { (const unsigned char *)data, (const unsigned char *)data + len };

	json_model_blanks(&in);
	if (!json_model_take(&in, "{") || !json_model_group(&in, true, 1))
		return false;
	json_model_blanks(&in);
	return in.at == in.end;
}

#endif
