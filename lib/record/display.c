/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/display.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "lib/base/limits.h"
#include "lib/base/shown.h"
#include "lib/record/writer.h"

#define GAP_PLACES 2     /* between columns */
#define CUT_PLACES_MIN 4 /* a letter and three dots */
#define DATE_BYTES 11    /* 2025-11-29T */

/* Text of rows that are held until the widths are known: a bound where rows have very many columns. */
#define HELD_BYTES_MAX ((size_t)4 << 20)

struct cell {
	size_t at; /* in display->text */
	size_t len;
	size_t places;
};

struct column {
	size_t places;
	bool has_number;
	bool has_text;         /* something that is no number */
	char date[DATE_BYTES]; /* that is left away where a cell begins with it */
	bool has_date;
};

struct wm_display {
	struct wm_display_options options;
	struct column *columns;
	size_t columns_count;
	struct cell *cells; /* of the header, and of the rows that are held */
	size_t cells_count;
	size_t cells_capacity;
	struct wm_buf text; /* of the cells */
	struct wm_buf shown;
	bool is_begun;       /* the header is written, the widths are fixed */
	size_t spare_places; /* of a line, for cells that are wider than their column */
};

/* Characters that turn the direction of a line, break it, or are not seen. */
static bool
is_steering(utf8proc_int32_t character)
{
	return character == 0x061C || character == 0xFEFF || character == 0x200E || character == 0x200F ||
		(character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

/* The character that a text begins with, which is UTF-8; sets its bytes and places. */
static utf8proc_int32_t
first_character(struct wm_span text, size_t *len, size_t *places)
{
	utf8proc_int32_t character;
	utf8proc_ssize_t got =
		utf8proc_iterate((const utf8proc_uint8_t *)text.data, (utf8proc_ssize_t)text.len, &character);

	assert(got > 0);
	*len = (size_t)got;
	*places = (size_t)utf8proc_charwidth(character);
	return character;
}

static const char *
ellipsis(const struct wm_display *display)
{
	return display->options.is_utf8 ? "\xE2\x80\xA6" : "...";
}

static size_t
ellipsis_places(const struct wm_display *display)
{
	return display->options.is_utf8 ? 1 : 3;
}

/* Appends a text to display->text as eyes may see it. */
static struct cell
add_cell(struct wm_display *display, struct wm_span text)
{
	struct wm_buf *shown = &display->shown, *out = &display->text;
	struct cell cell = { .at = out->len };
	bool is_cut = text.len > WM_SHOWN_BYTES_MAX;

	wm_buf_reset(shown);
	wm_shown(text, shown);
	if (is_cut)
		shown->len -= 3; /* its dots */
	for (size_t at = 0, len, places; at < shown->len; at += len) {
		struct wm_span rest = { shown->data + at, shown->len - at };
		utf8proc_int32_t character = first_character(rest, &len, &places);

		if (character < 0x80 || (display->options.is_utf8 && !is_steering(character))) {
			wm_buf_add(out, rest.data, len);
			cell.places += places;
			continue;
		}
		for (size_t i = 0; i < len; i++)
			wm_buf_addf(out, "\\x%02X", (unsigned char)rest.data[i]);
		cell.places += 4 * len;
	}
	if (is_cut) {
		wm_buf_add_text(out, ellipsis(display));
		cell.places += ellipsis_places(display);
	}
	cell.len = out->len - cell.at;
	return cell;
}

static void
hold(struct wm_display *display, struct cell cell)
{
	display->cells =
		wm_grown(display->cells, display->cells_count, &display->cells_capacity, sizeof(*display->cells));
	display->cells[display->cells_count++] = cell;
}

struct wm_display *
wm_display_new(const struct wm_span *names, size_t columns_count, const struct wm_display_options *options)
{
	struct wm_display *display = wm_calloc(1, sizeof(*display));

	display->options = *options;
	display->columns = wm_calloc(columns_count, sizeof(*display->columns));
	display->columns_count = columns_count;
	wm_buf_init(&display->text, WM_BUF_UNBOUNDED);
	wm_buf_init(&display->shown, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < columns_count; i++) {
		struct cell cell = add_cell(display, names[i]);

		display->columns[i].places = cell.places;
		hold(display, cell);
	}
	return display;
}

void
wm_display_free(struct wm_display *display)
{
	if (display == NULL)
		return;
	wm_buf_release(&display->text);
	wm_buf_release(&display->shown);
	free(display->cells);
	free(display->columns);
	free(display);
}

static void
put_blanks(struct wm_buf *out, size_t count)
{
	while (count-- > 0)
		wm_buf_add_byte(out, ' ');
}

/* Writes as much of a cell as room allows; returns the places that it took. */
static size_t
put_cell(const struct wm_display *display, const struct cell *cell, size_t room, struct wm_buf *out)
{
	struct wm_span text = { cell->len == 0 ? "" : display->text.data + cell->at, cell->len };
	size_t taken = 0, at = 0, len, places;

	if (cell->places <= room) {
		if (cell->len > 0)
			wm_buf_add(out, text.data, text.len);
		return cell->places;
	}
	/* A column may be too narrow for the dots. */
	size_t dots = ellipsis_places(display) < room ? ellipsis_places(display) : room;
	room -= dots;
	for (; at < text.len; at += len, taken += places) {
		first_character(wm_span(text.data + at, text.len - at), &len, &places);
		if (taken + places > room)
			break;
	}
	wm_buf_add(out, text.data, at);
	if (dots > 0)
		wm_buf_add(out, ellipsis(display), display->options.is_utf8 ? strlen(ellipsis(display)) : dots);
	return taken + dots;
}

/* One line of the table, without blanks at its end. */
static void
put_line(const struct wm_display *display, const struct cell *cells, struct wm_buf *out)
{
	size_t spare = display->spare_places, begin = out->len;

	for (size_t i = 0; i < display->columns_count; i++) {
		const struct column *column = &display->columns[i];
		size_t room = column->places, wanted = cells[i].places;

		if (wanted > room) {
			size_t more = wanted - room < spare ? wanted - room : spare;

			room += more;
			spare -= more;
		}
		if (i > 0)
			put_blanks(out, GAP_PLACES);
		if (column->has_number && !column->has_text && wanted < room)
			put_blanks(out, room - wanted);
		size_t taken = put_cell(display, &cells[i], room, out);
		if ((!column->has_number || column->has_text) && taken < room)
			put_blanks(out, room - taken);
	}
	while (out->len > begin && out->data[out->len - 1] == ' ')
		out->len--;
	wm_buf_add_byte(out, '\n');
}

/* The places that columns take which are cut at so many each. */
static size_t
places_within(const struct wm_display *display, size_t most)
{
	size_t sum = 0;

	for (size_t i = 0; i < display->columns_count; i++)
		sum += display->columns[i].places < most ? display->columns[i].places : most;
	return sum;
}

/* Cuts the widest columns to one width, so that all have room; what is left over goes to the first of them. */
static void
fit_columns(struct wm_display *display)
{
	size_t gaps = GAP_PLACES * (display->columns_count - 1), room, low = CUT_PLACES_MIN, high = 0, left;

	if (display->options.width == 0) {
		display->spare_places = SIZE_MAX;
		return;
	}
	room = display->options.width > gaps ? display->options.width - gaps : 0;
	for (size_t i = 0; i < display->columns_count; i++)
		if (display->columns[i].places > high)
			high = display->columns[i].places;
	if (places_within(display, high) <= room) {
		display->spare_places = room - places_within(display, high);
		return;
	}
	/* The highest width that fits, or the lowest that is allowed. */
	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (places_within(display, middle) <= room)
			low = middle;
		else
			high = middle - 1;
	}
	left = places_within(display, low) < room ? room - places_within(display, low) : 0;
	for (size_t i = 0; i < display->columns_count; i++) {
		if (display->columns[i].places <= low)
			continue;
		display->columns[i].places = low + (left > 0);
		left -= left > 0;
	}
	display->spare_places = left;
}

/* Whether a text is a time with its date before it. */
static bool
begins_with_date(const char *text, size_t len)
{
	static const char form[DATE_BYTES + 1] = "dddd-dd-ddT";

	for (size_t i = 0; i < DATE_BYTES && len > DATE_BYTES; i++)
		if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return false;
	return len > DATE_BYTES;
}

/* Takes a column's date from a cell, if that begins with it. */
static void
leave_date(const struct wm_display *display, const struct column *column, struct cell *cell)
{
	if (!column->has_date || cell->len <= DATE_BYTES ||
		memcmp(display->text.data + cell->at, column->date, DATE_BYTES) != 0)
		return;
	cell->at += DATE_BYTES;
	cell->len -= DATE_BYTES;
	cell->places -= DATE_BYTES;
}

/* Leaves away the date of a column in which all rows that are held share one; cells without a text aside. */
static void
leave_dates(struct wm_display *display)
{
	for (size_t k = 0; k < display->columns_count; k++) {
		struct column *column = &display->columns[k];
		size_t places = display->cells[k].places;
		bool is_shared = true;

		for (size_t i = display->columns_count + k; i < display->cells_count; i += display->columns_count) {
			const struct cell *cell = &display->cells[i];
			const char *text = display->text.data + cell->at;

			if (cell->len == 0)
				continue;
			if (!column->has_date && is_shared && begins_with_date(text, cell->len)) {
				memcpy(column->date, text, DATE_BYTES);
				column->has_date = true;
			}
			is_shared = is_shared && column->has_date && begins_with_date(text, cell->len) &&
				memcmp(text, column->date, DATE_BYTES) == 0;
		}
		column->has_date = column->has_date && is_shared;
		for (size_t i = display->columns_count + k; i < display->cells_count && column->has_date;
			i += display->columns_count) {
			leave_date(display, column, &display->cells[i]);
			if (display->cells[i].places > places)
				places = display->cells[i].places;
		}
		if (column->has_date)
			column->places = places;
	}
}

static void
begin(struct wm_display *display, struct wm_buf *out)
{
	size_t gaps = GAP_PLACES * (display->columns_count - 1);

	if (display->options.width != 0 && places_within(display, SIZE_MAX) + gaps > display->options.width)
		leave_dates(display);
	fit_columns(display);
	display->is_begun = true;
	for (size_t i = 0; i < display->cells_count; i += display->columns_count) {
		put_line(display, &display->cells[i], out);
		for (size_t k = 0; i == 0 && k < display->columns_count; k++) {
			if (k > 0)
				put_blanks(out, GAP_PLACES);
			for (size_t n = display->columns[k].places; n > 0; n--)
				wm_buf_add_text(out, display->options.is_utf8 ? "\xE2\x94\x80" : "-");
		}
		if (i == 0)
			wm_buf_add_byte(out, '\n');
	}
	display->cells_count = 0;
	wm_buf_reset(&display->text);
}

void
wm_display_put(struct wm_display *display, const struct wm_value *row, struct wm_buf *out)
{
	for (size_t i = 0; i < display->columns_count; i++) {
		struct column *column = &display->columns[i];
		struct cell cell = add_cell(display, row[i].text);

		hold(display, cell);
		if (display->is_begun || row[i].text.len == 0)
			continue;
		if (cell.places > column->places)
			column->places = cell.places;
		if (wm_json_is_number(row[i].text))
			column->has_number = true;
		else
			column->has_text = true;
	}
	if (display->is_begun) {
		for (size_t i = 0; i < display->columns_count; i++)
			leave_date(display, &display->columns[i], &display->cells[i]);
		put_line(display, display->cells, out);
		display->cells_count = 0;
		wm_buf_reset(&display->text);
	} else if (display->cells_count / display->columns_count > WM_DISPLAY_ROWS_MAX ||
		display->text.len > HELD_BYTES_MAX) {
		begin(display, out);
	}
}

void
wm_display_flush(struct wm_display *display, struct wm_buf *out)
{
	if (!display->is_begun && display->cells_count > display->columns_count)
		begin(display, out);
}

void
wm_display_end(struct wm_display *display, struct wm_buf *out)
{
	if (!display->is_begun)
		begin(display, out);
}
