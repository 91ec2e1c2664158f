/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/agg/agg.h"
#include "lib/agg/function.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"

#define CELL_ALIGNMENT ((size_t)16)

/* FUNCTION:COLUMN:if:COLUMN:OP:VALUE */
#define WORDS_MAX 6

#define NUMBERS                                                                                                        \
	(WM_PART_BIT(WM_PART_SUM) | WM_PART_BIT(WM_PART_SQUARES) | WM_PART_BIT(WM_PART_MIN) |                          \
		WM_PART_BIT(WM_PART_MAX) | WM_PART_BIT(WM_PART_QUANTILE))

/* One aggregate taken apart. Pieces that are not there have no data; all have their escapes. */
struct piece {
	struct wm_span whole; /* as written, for messages */
	struct wm_span name;  /* with name= */
	struct wm_span word;  /* of the function */
	struct wm_span column;
	struct wm_span condition; /* "status:ge:500" */
	struct wm_span condition_column, comparison, value;
};

struct wm_agg *
wm_plan_new(size_t outputs_max)
{
	struct wm_agg *agg = wm_calloc(1, sizeof(*agg));

	agg->all.measures_end = &agg->all.measures;
	agg->branches_end = &agg->all.next;
	agg->columns = wm_calloc(2 * outputs_max, sizeof(*agg->columns));
	agg->outputs = wm_calloc(outputs_max, sizeof(*agg->outputs));
	return agg;
}

struct wm_span
wm_plan_keep(struct wm_agg *agg, struct wm_span text)
{
	char *copy = wm_arena_alloc(&agg->arena, text.len);

	if (text.len != 0)
		memcpy(copy, text.data, text.len);
	return wm_span(copy, text.len);
}

struct wm_branch *
wm_plan_branch(struct wm_agg *agg)
{
	struct wm_branch *branch = wm_arena_alloc(&agg->arena, sizeof(*branch));

	*branch = (struct wm_branch){ .measures_end = &branch->measures };
	*agg->branches_end = branch;
	agg->branches_end = &branch->next;
	return branch;
}

/* The one of a column; a new one if the branch has not looked at it yet. */
struct wm_measure *
wm_plan_measure(struct wm_agg *agg, struct wm_branch *branch, size_t column)
{
	for (struct wm_measure *measure = branch->measures; measure != NULL; measure = measure->next)
		if (measure->column == column)
			return measure;
	struct wm_measure *measure = wm_arena_alloc(&agg->arena, sizeof(*measure));
	*measure = (struct wm_measure){ .column = column };
	*branch->measures_end = measure;
	branch->measures_end = &measure->next;
	return measure;
}

static size_t
round_up(size_t size, size_t alignment)
{
	return (size + alignment - 1) / alignment * alignment;
}

/* Numbers of rows and counts of all columns first: so that one column's rows, count and sum, and a short key before them, fill 64 bytes. */
void
wm_plan_lay_out(struct wm_agg *agg)
{
	size_t at = 0;

	for (struct wm_branch *branch = &agg->all; branch != NULL; branch = branch->next) {
		branch->rows_at = at;
		at += sizeof(uint64_t);
	}
	for (enum wm_part part = 0; part < WM_PARTS_COUNT; part++) {
		for (struct wm_branch *branch = &agg->all; branch != NULL; branch = branch->next) {
			for (struct wm_measure *measure = branch->measures; measure != NULL; measure = measure->next) {
				if ((measure->parts & WM_PART_BIT(part)) == 0)
					continue;
				at = round_up(at, wm_part_layouts[part].alignment);
				measure->at[part] = (uint32_t)at;
				at += wm_part_layouts[part].size;
			}
		}
	}
	agg->cell_bytes = round_up(at, CELL_ALIGNMENT);
}

/* ---- parsing the list ---- */

/* A piece of the command line as a message shows it. */
static int
shown(struct wm_span text)
{
	return (int)(text.len < WM_SHOWN_BYTES_MAX ? text.len : WM_SHOWN_BYTES_MAX);
}

/* Its index; a new one if the list has not named it yet. */
static size_t
find_column(struct wm_agg *agg, struct wm_span text)
{
	for (size_t i = 0; i < agg->columns_count; i++)
		if (wm_span_equal(agg->columns[i].text, text))
			return i;
	agg->columns[agg->columns_count] = (struct wm_agg_column){ .text = wm_plan_keep(agg, text) };
	return agg->columns_count++;
}

/* The branch of a condition; a new one if the list has not named it yet. NULL on an error. */
static struct wm_branch *
find_branch(struct wm_agg *agg, const struct piece *piece, struct wm_err *err)
{
	struct wm_condition condition;
	struct wm_buf value;

	for (struct wm_branch *branch = agg->all.next; branch != NULL; branch = branch->next)
		if (wm_span_equal(branch->condition_text, piece->condition))
			return branch;
	wm_buf_init(&value, WM_BUF_UNBOUNDED);
	wm_list_unescape(piece->value, &value);
	struct wm_span kept = wm_plan_keep(agg, wm_buf_span(&value));
	wm_buf_release(&value);
	if (!wm_condition_init(&condition, find_column(agg, piece->condition_column), piece->comparison, kept, err))
		return NULL;
	struct wm_branch *branch = wm_plan_branch(agg);
	branch->condition = condition;
	branch->condition_text = wm_plan_keep(agg, piece->condition);
	agg->columns[condition.column].reads_number |= condition.reads_number;
	return branch;
}

/* "status_ge_500". The value's bytes that a name in SQL must not have become '_'. */
static void
add_condition_name(const struct piece *piece, struct wm_buf *text)
{
	wm_list_unescape(piece->condition_column, text);
	wm_buf_add_byte(text, '_');
	wm_buf_add(text, piece->comparison.data, piece->comparison.len);
	wm_buf_add_byte(text, '_');
	size_t begin = text->len;
	wm_list_unescape(piece->value, text);
	for (size_t i = begin; i < text->len; i++) {
		unsigned char byte = (unsigned char)text->data[i];
		bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';

		if (byte < 0x80 && !is_letter && !(byte >= '0' && byte <= '9'))
			text->data[i] = '_';
	}
}

/* "count", "bytes_sum", "status_ge_500_count", "bytes_sum_if_status_ge_500", "count_if_status_ge_500" */
static void
add_name(const struct piece *piece, bool is_argument, struct wm_buf *text)
{
	if (piece->column.data != NULL)
		wm_list_unescape(piece->column, text);
	else if (is_argument)
		add_condition_name(piece, text);
	if (text->len != 0)
		wm_buf_add_byte(text, '_');
	wm_buf_add(text, piece->word.data, piece->word.len);
	if (piece->condition.data != NULL && !is_argument) {
		wm_buf_add_text(text, "_if_");
		add_condition_name(piece, text);
	}
}

/* is_argument: the condition stands in the place of the column, as in count:status:ge:500. */
static bool
add_output(struct wm_agg *agg, const struct piece *piece, const struct wm_function *function, uint64_t percent,
	bool is_argument, struct wm_err *err)
{
	struct wm_output *output = &agg->outputs[agg->outputs_count];
	struct wm_branch *branch = piece->condition.data == NULL ? &agg->all : find_branch(agg, piece, err);
	struct wm_buf text;

	if (branch == NULL)
		return false;
	*output = (struct wm_output){ .function = function, .percent = percent, .branch = branch };
	if (function->needs == WM_NEEDS_COMPARISON)
		output->measure = wm_plan_measure(agg, &agg->all, branch->condition.column);
	else if (piece->column.data != NULL)
		output->measure = wm_plan_measure(agg, branch, find_column(agg, piece->column));
	if (output->measure != NULL) {
		struct wm_agg_column *column = &agg->columns[output->measure->column];

		output->measure->parts |= function->parts;
		if (function->needs == WM_NEEDS_NUMBER) {
			bool is_of_all = branch == &agg->all;

			output->measure->needs_number = true;
			column->needs_number |= is_of_all;
			column->is_guarded |= !is_of_all;
		}
		column->reads_number |= (function->parts & NUMBERS) != 0;
	}
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	if (piece->name.data != NULL)
		wm_list_unescape(piece->name, &text);
	else
		add_name(piece, is_argument, &text);
	output->name = wm_plan_keep(agg, wm_buf_span(&text));
	output->word = wm_plan_keep(agg, piece->word);
	wm_buf_release(&text);
	for (size_t i = 0; i < agg->outputs_count; i++)
		if (wm_span_equal(agg->outputs[i].name, output->name))
			return wm_err_set(err, WM_ERR_USAGE,
				"two aggregates are named '%.*s': rename one with NAME=%.*s", shown(output->name),
				output->name.data, shown(piece->whole), piece->whole.data);
	agg->outputs_count++;
	return true;
}

/* [NAME=]REST. A '=' behind a ':' is meant for a comparison or a value. */
static bool
take_name(struct wm_span part, struct piece *piece, struct wm_err *err)
{
	struct wm_span rest = part, word, colon;

	wm_list_next(&rest, '=', &word);
	piece->whole = part;
	if (rest.data == NULL)
		return true;
	if (word.len == 0)
		return wm_err_set(err, WM_ERR_USAGE, "no name before the '=' of '%.*s'", shown(part), part.data);
	piece->name = word;
	wm_list_next(&word, ':', &colon);
	if (word.data != NULL)
		return wm_err_set(err, WM_ERR_USAGE,
			"a '=' behind a ':' in '%.*s': comparisons are eq, ne, lt, le, gt, ge; write \\= where it "
			"belongs to a value or a name",
			shown(part), part.data);
	wm_list_next(&rest, '=', &piece->whole);
	if (rest.data != NULL)
		return wm_err_set(err, WM_ERR_USAGE,
			"more than one '=' in '%.*s': write \\= where it belongs to a name or a value", shown(part),
			part.data);
	return true;
}

/* The condition is the last three words, which stand one behind the other in the list. */
static void
take_condition(struct piece *piece, const struct wm_span *words)
{
	piece->condition_column = words[0];
	piece->comparison = words[1];
	piece->value = words[2];
	piece->condition = wm_span(words[0].data, (size_t)(words[2].data + words[2].len - words[0].data));
}

/* What a function may have behind it, for the message when it has something else. */
static bool
fail_words(const struct piece *piece, const struct wm_function *function, struct wm_err *err)
{
	int len = (int)piece->word.len;
	const char *word = piece->word.data;

	switch (function->needs) {
	case WM_NEEDS_NOTHING:
		return wm_err_set(err, WM_ERR_USAGE,
			"'%.*s': %.*s takes no column; write %.*s or %.*s:if:COLUMN:OP:VALUE", shown(piece->whole),
			piece->whole.data, len, word, len, word, len, word);
	case WM_NEEDS_COMPARISON:
		return wm_err_set(err, WM_ERR_USAGE, "'%.*s': write %.*s:COLUMN:OP:VALUE, as in %.*s:status:ge:500",
			shown(piece->whole), piece->whole.data, len, word, len, word);
	case WM_NEEDS_OPTIONAL:
		return wm_err_set(err, WM_ERR_USAGE,
			"'%.*s': write %.*s, %.*s:COLUMN, %.*s:COLUMN:OP:VALUE or %.*s:COLUMN:if:COLUMN:OP:VALUE, and "
			"\\: where a ':' belongs to a name or a value",
			shown(piece->whole), piece->whole.data, len, word, len, word, len, word, len, word);
	case WM_NEEDS_VALUE:
	case WM_NEEDS_NUMBER:
		break;
	}
	return wm_err_set(err, WM_ERR_USAGE,
		"'%.*s': write %.*s:COLUMN or %.*s:COLUMN:if:COLUMN:OP:VALUE, and \\: where a ':' belongs to a name or "
		"a value",
		shown(piece->whole), piece->whole.data, len, word, len, word);
}

/* One part of the list: [NAME=]FUNCTION[:COLUMN][:if:COLUMN:OP:VALUE], or [NAME=]FUNCTION:COLUMN:OP:VALUE. */
static bool
parse_part(struct wm_agg *agg, struct wm_span part, struct wm_err *err)
{
	struct piece piece = { 0 };
	struct wm_span rest, words[WORDS_MAX];
	size_t count = 0;
	uint64_t percent = 0;

	if (part.len == 0)
		return wm_err_set(err, WM_ERR_USAGE, "an aggregate is empty: write the list as count,sum:COLUMN");
	if (!take_name(part, &piece, err))
		return false;
	for (rest = piece.whole; count < WORDS_MAX && wm_list_next(&rest, ':', &words[count]);)
		count++;
	piece.word = words[0];
	const struct wm_function *function = wm_function_find(piece.word, &percent, err);
	if (function == NULL)
		return false;
	enum wm_needs needs = function->needs;
	bool takes_column = needs >= WM_NEEDS_VALUE || needs == WM_NEEDS_OPTIONAL;
	bool is_argument = count == 4 && (needs == WM_NEEDS_OPTIONAL || needs == WM_NEEDS_COMPARISON);
	bool is_if = (count == 5 && wm_span_is(words[1], "if") &&
			     (needs == WM_NEEDS_NOTHING || needs == WM_NEEDS_OPTIONAL)) ||
		(count == 6 && wm_span_is(words[2], "if") && takes_column);
	if (is_argument || is_if)
		take_condition(&piece, &words[count - 3]);
	if ((count == 2 || count == 6) && takes_column)
		piece.column = words[1];
	if (rest.data != NULL || (count > 2 && !is_argument && !is_if) || (count == 2 && !takes_column) ||
		(count == 1 && needs == WM_NEEDS_COMPARISON))
		return fail_words(&piece, function, err);
	if ((count == 1 && needs >= WM_NEEDS_VALUE) || (piece.column.data != NULL && piece.column.len == 0) ||
		(piece.condition.data != NULL && piece.condition_column.len == 0))
		return wm_err_set(err, WM_ERR_USAGE, "%.*s needs a column: %.*s:COLUMN%s", (int)piece.word.len,
			piece.word.data, (int)piece.word.len, piece.word.data,
			piece.condition.data == NULL ? ""
				: is_argument        ? ":OP:VALUE"
						     : ":if:COLUMN:OP:VALUE");
	return add_output(agg, &piece, function, percent, is_argument, err);
}

struct wm_agg *
wm_agg_parse(struct wm_span list, struct wm_err *err)
{
	struct wm_span rest = list, part;
	size_t count = 0;

	while (wm_list_next(&rest, ',', &part))
		count++;
	if (count > WM_AGGREGATES_MAX) {
		wm_err_set(err, WM_ERR_USAGE, "%zu aggregates: at most %d in one command", count, WM_AGGREGATES_MAX);
		return NULL;
	}
	struct wm_agg *agg = wm_plan_new(count);
	for (rest = list; wm_list_next(&rest, ',', &part);)
		if (!parse_part(agg, part, err))
			goto fail;
	wm_plan_lay_out(agg);
	return agg;
fail:
	wm_agg_free(agg);
	return NULL;
}

void
wm_agg_free(struct wm_agg *agg)
{
	if (agg == NULL)
		return;
	wm_arena_release(&agg->arena);
	free(agg->columns);
	free(agg->outputs);
	free(agg);
}

size_t
wm_agg_columns_count(const struct wm_agg *agg)
{
	return agg->columns_count;
}

struct wm_span
wm_agg_column(const struct wm_agg *agg, size_t column)
{
	assert(column < agg->columns_count);
	return agg->columns[column].text;
}

bool
wm_agg_column_needs_number(const struct wm_agg *agg, size_t column)
{
	assert(column < agg->columns_count);
	return agg->columns[column].needs_number;
}

bool
wm_agg_has_guards(const struct wm_agg *agg)
{
	for (size_t i = 0; i < agg->columns_count; i++)
		if (agg->columns[i].is_guarded && !agg->columns[i].needs_number)
			return true;
	return false;
}

bool
wm_agg_column_reads_number(const struct wm_agg *agg, size_t column)
{
	assert(column < agg->columns_count);
	return agg->columns[column].reads_number;
}

bool
wm_agg_column_is_ranked(const struct wm_agg *agg, size_t column)
{
	const unsigned extremes = WM_PART_BIT(WM_PART_MIN) | WM_PART_BIT(WM_PART_MAX);

	for (const struct wm_measure *measure = agg->all.measures; measure != NULL; measure = measure->next)
		if (measure->column == column)
			return (measure->parts & extremes) != 0;
	return false;
}

size_t
wm_agg_outputs_count(const struct wm_agg *agg)
{
	return agg->outputs_count;
}

struct wm_span
wm_agg_output_name(const struct wm_agg *agg, size_t output)
{
	assert(output < agg->outputs_count);
	return agg->outputs[output].name;
}

void
wm_agg_fingerprint(const struct wm_agg *agg, struct wm_buf *out)
{
	for (const struct wm_branch *branch = &agg->all; branch != NULL; branch = branch->next) {
		struct wm_span condition = branch->condition_text;

		wm_buf_add_text(out, branch == &agg->all ? "count" : ",if:");
		if (branch != &agg->all)
			wm_buf_add(out, condition.data, condition.len);
		for (const struct wm_measure *measure = branch->measures; measure != NULL; measure = measure->next) {
			struct wm_span column = agg->columns[measure->column].text;

			for (enum wm_part part = 0; part < WM_PARTS_COUNT; part++) {
				if ((measure->parts & WM_PART_BIT(part)) == 0)
					continue;
				wm_buf_addf(out, ",%s:", wm_part_layouts[part].name);
				wm_buf_add(out, column.data, column.len);
			}
		}
	}
}
