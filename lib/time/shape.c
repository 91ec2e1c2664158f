/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/time/shape.h"

#include <string.h>

#include "lib/base/ascii.h"

/* What was looked at of a text, and what it seems to say so far. */
struct shape {
	const char *at, *end;
	enum wm_shape_order order;
	bool is_ordered;
	bool has_date;
	bool has_year;
};

static size_t
count_digits(const struct shape *shape)
{
	size_t digits = 0;

	while (shape->at + digits < shape->end && wm_is_digit(shape->at[digits]))
		digits++;
	return digits;
}

static size_t
count_letters(const struct shape *shape)
{
	size_t letters = 0;

	while (shape->at + letters < shape->end && wm_is_letter(shape->at[letters]))
		letters++;
	return letters;
}

static char
byte_at(const struct shape *shape, size_t index)
{
	return shape->at + index < shape->end ? shape->at[index] : '\0';
}

/* Whether the letters here begin one of the names, of which each is known by its first three. */
static bool
is_name(const struct shape *shape, const char *names)
{
	char letters[3];

	if (count_letters(shape) < 3)
		return false;
	for (size_t i = 0; i < 3; i++)
		letters[i] = wm_lower(shape->at[i]);
	for (const char *name = names; *name != '\0'; name += 3)
		if (memcmp(name, letters, 3) == 0)
			return true;
	return false;
}

static bool
is_month(const struct shape *shape)
{
	return is_name(shape, "janfebmaraprmayjunjulaugsepoctnovdec");
}

static bool
is_weekday(const struct shape *shape)
{
	return is_name(shape, "sunmontuewedthufrisat");
}

/* "10:00", "10:00:01", "10:00:01.5"; with an AM or PM somewhere behind it, hours are those of half a day. */
static bool
take_clock(struct shape *shape, struct wm_buf *out)
{
	bool is_half = false;

	for (const char *at = shape->at; at + 1 < shape->end; at++)
		is_half |= (wm_lower(*at) == 'a' || wm_lower(*at) == 'p') && wm_lower(at[1]) == 'm';
	shape->at += count_digits(shape);
	wm_buf_add_text(out, is_half ? "%I" : "%H");
	for (const char *part = "MS"; *part != '\0' && byte_at(shape, 0) == ':'; part++) {
		shape->at++;
		if (count_digits(shape) != 2)
			return false;
		wm_buf_addf(out, ":%%%c", *part);
		shape->at += 2;
		if (*part == 'S' && (byte_at(shape, 0) == '.' || byte_at(shape, 0) == ',') &&
			wm_is_digit(byte_at(shape, 1))) {
			wm_buf_addf(out, "%c%%f", *shape->at++);
			shape->at += count_digits(shape);
		}
	}
	return true;
}

/* "2025/11/29", "29.11.2025", "11/29/25", "29/Nov/2025": three parts with the same byte between. */
static bool
take_date(struct shape *shape, size_t digits, struct wm_buf *out)
{
	char separator = byte_at(shape, digits);
	bool is_year_first = digits == 4;

	shape->at += digits + 1;
	size_t second = count_digits(shape);
	bool has_name = second == 0 && is_month(shape);
	if (has_name)
		second = count_letters(shape);
	if ((!has_name && (second == 0 || second > 2)) || byte_at(shape, second) != separator)
		return false;
	shape->at += second + 1;
	size_t third = count_digits(shape);
	if (is_year_first ? third == 0 || third > 2 : third != 2 && third != 4)
		return false;
	shape->at += third;
	const char *month = has_name ? "%b" : "%m";
	const char *year = third == 2 ? "%y" : "%Y";
	bool is_month_first = !has_name && shape->order == WM_SHAPE_MONTH_FIRST;
	if (is_year_first)
		wm_buf_addf(out, "%%Y%c%s%c%%d", separator, month, separator);
	else
		wm_buf_addf(out, "%s%c%s%c%s", is_month_first ? month : "%d", separator, is_month_first ? "%d" : month,
			separator, year);
	shape->is_ordered = !is_year_first && !has_name;
	shape->has_date = shape->has_year = true;
	return true;
}

/* "20251129", "20251129T100001": digits without anything between. */
static bool
take_packed(struct shape *shape, size_t digits, struct wm_buf *out)
{
	static const char *const parts[] = { "%Y%m%d", "%H", "%M", "%S" };
	bool is_clock = shape->has_date;
	size_t left = is_clock ? digits : digits - 8;

	if (!is_clock)
		wm_buf_add_text(out, parts[0]);
	for (size_t part = 1; part < 4 && left >= 2; part++, left -= 2)
		wm_buf_add_text(out, parts[part]);
	shape->has_date = shape->has_year = true;
	shape->at += digits;
	return left == 0;
}

static bool
take_number(struct shape *shape, struct wm_buf *out)
{
	size_t digits = count_digits(shape);
	char next = byte_at(shape, digits);

	if (!shape->has_date && digits <= 4 && next != '\0' && memchr("/-.", next, 3) != NULL)
		return take_date(shape, digits, out);
	if (digits <= 2 && next == ':')
		return take_clock(shape, out);
	if ((!shape->has_date && digits >= 8 && digits <= 14) || (shape->has_year && (digits == 4 || digits == 6)))
		return take_packed(shape, digits, out);
	if (digits == 4 && !shape->has_year) {
		wm_buf_add_text(out, "%Y");
		shape->has_year = true;
	} else if (digits <= 2) {
		wm_buf_add_text(out, "%d");
	} else {
		return false;
	}
	shape->at += digits;
	return true;
}

static bool
take_word(struct shape *shape, struct wm_buf *out)
{
	size_t letters = count_letters(shape);

	if (is_month(shape)) {
		wm_buf_add_text(out, "%b");
		shape->has_date = true;
	} else if (is_weekday(shape)) {
		wm_buf_add_text(out, "%a");
	} else if (letters == 2 && wm_lower(shape->at[1]) == 'm') {
		wm_buf_add_text(out, "%p");
	} else if (letters == 3) {
		wm_buf_add_text(out, "%Z");
	} else if (letters == 1 && (shape->at[0] == 'Z' || shape->at[0] == 'z')) {
		wm_buf_add_text(out, "%z");
	} else if (letters == 1) {
		wm_buf_add_byte(out, shape->at[0]);
	} else {
		return false;
	}
	shape->at += letters;
	return true;
}

/* "+0100", "-05:30" behind a time of day. */
static bool
take_offset(struct shape *shape, struct wm_buf *out)
{
	const char *at = shape->at + 1;

	while (at < shape->end && (wm_is_digit(*at) || *at == ':'))
		at++;
	if (at == shape->at + 1)
		return false;
	wm_buf_add_text(out, "%z");
	shape->at = at;
	return true;
}

static bool
take_piece(struct shape *shape, struct wm_buf *out)
{
	char byte = *shape->at;

	if (wm_is_digit(byte))
		return take_number(shape, out);
	if (wm_is_letter(byte))
		return take_word(shape, out);
	if ((byte == '+' || byte == '-') && shape->has_date && take_offset(shape, out))
		return true;
	if ((unsigned char)byte < ' ' || (unsigned char)byte > '~')
		return false;
	wm_buf_add_text(out, byte == '%' ? "%%" : (char[]){ byte, '\0' });
	shape->at++;
	return true;
}

bool
wm_shape_guess(struct wm_span text, enum wm_shape_order order, bool *is_ordered, struct wm_buf *out)
{
	struct shape shape = { .at = text.data, .end = text.data + text.len, .order = order };
	size_t before = out->len;
	bool is_known = true;

	if (text.len > 1 && text.data[0] == '@' && wm_is_digit(text.data[1])) {
		wm_buf_add_text(out, memchr(text.data, '.', text.len) != NULL ? "@%s.%f" : "@%s");
		*is_ordered = false;
		return true;
	}
	while (is_known && shape.at < shape.end)
		is_known = take_piece(&shape, out);
	*is_ordered = shape.is_ordered;
	if (is_known && shape.has_date)
		return true;
	out->len = before;
	return false;
}
