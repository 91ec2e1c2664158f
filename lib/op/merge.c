/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/merge.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/agg/agg.h"
#include "lib/agg/part.h"
#include "lib/agg/partial.h"
#include "lib/base/mem.h"
#include "lib/base/shown.h"
#include "lib/record/cut.h"
#include "lib/state/table.h"
#include "lib/time/instant.h"

/* What an allocation of its own costs beside its bytes, about. */
#define ALLOCATION_BYTES 16

/*
 * Keys as bytes: what is the same key has the same bytes. A column is its tag and, of
 * a time, eight bytes, of other values their kind, length (four bytes) and text.
 */
enum key_tag { KEY_NULL, KEY_TIME, KEY_TEXT };

#define KEY_TEXT_HEAD 6

/* The orders that MAIN may be in. */
enum key_order {
	ORDER_BY_VALUE,
	ORDER_BY_BYTES, /* numbers as bytes too: as wm-window writes keys */
	ORDERS_COUNT
};

/* A late row, or several of one key as one: the value of the table. */
struct held {
	char *line;
	size_t len;
	const char *input; /* where the first of them stands */
	uint64_t number;
	uint64_t main_number; /* line of the row of MAIN that it meets; 0: none so far */
};

/* A row of MAIN, counted from 0, and the late row that it meets. */
struct met {
	uint64_t row;
	struct held *held;
};

/* A row of sessions, or several that have become one. */
struct session {
	struct wm_span line, key; /* in the arena */
	int64_t start_us, end_us;
	uint64_t order; /* of input: MAIN, then the late rows */
	const char *input;
	uint64_t number;
};

/* Late rows are counted from here on. */
#define LATE_FROM (UINT64_C(1) << 63)

#define HELD_BYTES ((sizeof(struct held) + 15) / 16 * 16)

struct wm_merge {
	struct wm_merge_options options;
	struct wm_columns *columns;
	enum wm_merge_rule *rules;
	size_t rules_count;
	struct wm_fields into, from; /* the two rows that are being made one */
	struct wm_buf line;          /* and what becomes of them */

	/* By keys. */
	struct wm_instant_parser *parser;
	struct wm_table table;
	size_t lines_bytes;
	struct wm_buf key, key_before; /* of this row, and of the one before it in MAIN */
	uint64_t number_before;
	uint64_t rows_count;                  /* of MAIN */
	uint64_t ordered_count[ORDERS_COUNT]; /* of these, from the first, that are in order */
	enum key_order order;                 /* that is settled on */
	struct met *met;                      /* in the order of MAIN */
	size_t met_count;
	size_t met_capacity;
	size_t met_at;

	/* Sessions. */
	struct session *sessions;
	size_t sessions_count;
	size_t sessions_capacity;

	/* By range, and of sessions. */
	struct wm_arena range_arena; /* of the lines */
	struct wm_span *lines;
	size_t lines_count;
	size_t lines_capacity;
	int64_t time_before_us;
	bool has_gap; /* rows of MAIN give way */

	/* Writing. */
	struct wm_entry **added; /* by keys: late rows that MAIN does not have, in order */
	size_t added_count;      /* of them, or of the lines */
	size_t added_at;
	size_t due_count; /* of them, before the row */
	uint64_t row_at;
	struct wm_span row;
	bool has_row;

	/* States. */
	struct wm_agg *agg;
	size_t *state_columns;
	size_t states_count;
	size_t planned_count;    /* columns that there were then */
	struct wm_value *values; /* that are printed */
	size_t values_capacity;
	struct wm_buf texts;
	struct wm_instant_parser *window_parser;
};

struct wm_merge *
wm_merge_new(struct wm_columns *columns, const struct wm_merge_options *options)
{
	struct wm_merge *merge = wm_calloc(1, sizeof(*merge));
	struct wm_err err;

	merge->options = *options;
	merge->columns = columns;
	wm_fields_init(&merge->into, columns);
	wm_fields_init(&merge->from, columns);
	wm_buf_init(&merge->line, WM_BUF_UNBOUNDED);
	wm_buf_init(&merge->key, WM_BUF_UNBOUNDED);
	wm_buf_init(&merge->key_before, WM_BUF_UNBOUNDED);
	wm_buf_init(&merge->texts, WM_BUF_UNBOUNDED);
	wm_table_init(&merge->table, HELD_BYTES);
	merge->parser = wm_instant_parser_new(wm_span_of("iso"), options->zone, WM_REPEATED_EARLIER, NULL, &err);
	merge->window_parser =
		wm_instant_parser_new(wm_span_of("auto"), options->zone, WM_REPEATED_EARLIER, NULL, &err);
	assert(merge->parser != NULL && merge->window_parser != NULL);
	wm_instant_parser_trust_numbers(merge->window_parser);
	return merge;
}

static struct held *
held_of(const struct wm_entry *entry)
{
	return wm_entry_value(entry);
}

void
wm_merge_free(struct wm_merge *merge)
{
	struct wm_entry *entry;
	size_t at = 0;

	while ((entry = wm_table_next(&merge->table, &at)) != NULL)
		free(held_of(entry)->line);
	wm_table_release(&merge->table);
	wm_arena_release(&merge->range_arena);
	wm_fields_release(&merge->into);
	wm_fields_release(&merge->from);
	wm_buf_release(&merge->line);
	wm_buf_release(&merge->key);
	wm_buf_release(&merge->key_before);
	wm_buf_release(&merge->texts);
	wm_instant_parser_free(merge->parser);
	wm_instant_parser_free(merge->window_parser);
	wm_agg_free(merge->agg);
	free(merge->rules);
	free(merge->lines);
	free(merge->sessions);
	free(merge->added);
	free(merge->met);
	free(merge->state_columns);
	free(merge->values);
	free(merge);
}

void
wm_merge_set_rule(struct wm_merge *merge, size_t column, enum wm_merge_rule rule)
{
	if (column >= merge->rules_count) {
		merge->rules = wm_reallocarray(merge->rules, column + 1, sizeof(merge->rules[0]));
		while (merge->rules_count <= column)
			merge->rules[merge->rules_count++] = WM_MERGE_EQUAL;
	}
	merge->rules[column] = rule;
}

bool
wm_merge_leaves_out(const struct wm_merge *merge, size_t column)
{
	return merge->options.is_of_states && wm_span_is(merge->columns->names[column], WM_MERGE_GAP) &&
		(column >= merge->rules_count || merge->rules[column] != WM_MERGE_KEY);
}

static bool
is_of_sessions(const struct wm_merge *merge)
{
	size_t column;

	return merge->options.is_of_states && wm_columns_find(merge->columns, wm_span_of(WM_MERGE_GAP), &column) &&
		wm_merge_leaves_out(merge, column);
}

static enum wm_merge_rule
rule_of(const struct wm_merge *merge, size_t column)
{
	enum wm_merge_rule rule = column < merge->rules_count ? merge->rules[column] : WM_MERGE_EQUAL;

	return rule == WM_MERGE_EQUAL && merge->options.is_of_states && !wm_merge_leaves_out(merge, column)
		? WM_MERGE_STATE
		: rule;
}

/* ---- messages ---- */

/* "FILE:LINE: column 'NAME': MESSAGE"; at is of a row's place. */
WM_PRINTF(5, 6)
static bool
fail_column(struct wm_err *err, const struct wm_merge_row *at, const struct wm_merge *merge, size_t column,
	const char *format, ...)
{
	char message[WM_ERR_MESSAGE_MAX];
	struct wm_buf name;
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	wm_buf_init(&name, WM_BUF_UNBOUNDED);
	wm_shown(merge->columns->names[column], &name);
	wm_err_set(err, WM_ERR_DATA, "%s:%llu: column '%.*s': %s", at->input, (unsigned long long)at->number,
		(int)name.len, name.data, message);
	wm_buf_release(&name);
	return false;
}

/* A value for a message: in quotes, or what it is instead of a text. */
static void
add_shown(struct wm_buf *out, const struct wm_value *value)
{
	if (value->kind == WM_KIND_NULL) {
		wm_buf_add_text(out, "null");
		return;
	}
	wm_buf_add_byte(out, '\'');
	wm_shown(value->text, out);
	wm_buf_add_byte(out, '\'');
}

static bool
fail_different(struct wm_err *err, const struct wm_merge *merge, size_t column, const struct wm_merge_row *at,
	const struct wm_value *value, const struct wm_merge_row *other_at, const struct wm_value *other)
{
	struct wm_buf here, there;

	wm_buf_init(&here, WM_BUF_UNBOUNDED);
	wm_buf_init(&there, WM_BUF_UNBOUNDED);
	add_shown(&here, value);
	add_shown(&there, other);
	fail_column(err, at, merge, column,
		"%.*s, but %.*s at %s:%llu, and no option says how to combine them: name it in --sum, --min, --max or "
		"--last; what cannot be combined (averages, percentiles, distinct counts) needs --partial or --replace",
		(int)here.len, here.data, (int)there.len, there.data, other_at->input,
		(unsigned long long)other_at->number);
	wm_buf_release(&here);
	wm_buf_release(&there);
	return false;
}

/* ---- two values as one ---- */

/* Whether a text of a row that is taken apart stands between quotes of CSV. */
static bool
is_quoted(const struct wm_merge *merge, struct wm_span text)
{
	return merge->columns->format.format == WM_FORMAT_CSV &&
		(wm_cut_is_quoted(merge->into.line, text) || wm_cut_is_quoted(merge->from.line, text));
}

static bool
read_number(const struct wm_merge *merge, size_t column, const struct wm_value *value, const struct wm_merge_row *at,
	struct wm_decimal *number, struct wm_err *err)
{
	struct wm_reading reading;
	struct wm_buf text;

	wm_reading_take(&reading, value);
	if (reading.is_number) {
		*number = reading.number;
		return true;
	}
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	add_shown(&text, value);
	wm_buf_add_text(&text, " is no number, and --sum needs one");
	if (wm_nulls_is_usual(value->text)) {
		wm_buf_add_text(&text, ": ");
		(void)wm_nulls_advise(merge->columns->nulls, value->text, is_quoted(merge, value->text), &text);
		wm_buf_add_text(&text, " takes it as missing");
	}
	fail_column(err, at, merge, column, "%.*s", (int)text.len, text.data);
	wm_buf_release(&text);
	return false;
}

/* into and from are not empty. */
static bool
add_up(struct wm_merge *merge, size_t column, const struct wm_merge_row *into_at, const struct wm_merge_row *from_at,
	struct wm_err *err)
{
	struct wm_value into = wm_fields_value(&merge->into, column), from = wm_fields_value(&merge->from, column);
	struct wm_decimal_sum sum = { 0 };
	struct wm_decimal number;
	struct wm_buf text;

	if (!read_number(merge, column, &into, into_at, &number, err))
		return false;
	wm_decimal_sum_add(&sum, &number);
	if (!read_number(merge, column, &from, from_at, &number, err))
		return false;
	wm_decimal_sum_add(&sum, &number);
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_decimal_sum_print(&sum, &text);
	bool is_well = text.len != 0;
	/* In JSON the type stays what it was: a text that is a number remains a text. */
	struct wm_value value = { wm_buf_span(&text), into.kind };
	if (is_well && !wm_span_equal(value.text, into.text))
		wm_fields_set(&merge->into, column, &value);
	wm_buf_release(&text);
	return is_well ||
		fail_column(err, from_at, merge, column, "the sum with %s:%llu is beyond the range of numbers",
			into_at->input, (unsigned long long)into_at->number);
}

static void
take_extreme(struct wm_merge *merge, size_t column, int direction)
{
	struct wm_value into = wm_fields_value(&merge->into, column), from = wm_fields_value(&merge->from, column);
	struct wm_reading into_reading, from_reading;

	wm_reading_take(&into_reading, &into);
	wm_reading_take(&from_reading, &from);
	if (wm_reading_replaces(&from_reading, &into_reading, direction))
		wm_fields_set(&merge->into, column, &from);
}

static bool
is_same(const struct wm_value *a, const struct wm_value *b)
{
	return a->kind == b->kind && wm_span_equal(a->text, b->text);
}

static bool
combine_column(struct wm_merge *merge, size_t column, const struct wm_merge_row *into_at,
	const struct wm_merge_row *from_at, struct wm_err *err)
{
	struct wm_value into = wm_fields_value(&merge->into, column), from = wm_fields_value(&merge->from, column);
	enum wm_merge_rule rule = rule_of(merge, column);

	if (rule == WM_MERGE_KEY || rule == WM_MERGE_STATE)
		return true;
	if (rule == WM_MERGE_EQUAL)
		return is_same(&into, &from) || fail_different(err, merge, column, from_at, &from, into_at, &into);
	if (wm_value_is_empty(&from))
		return true;
	if (wm_value_is_empty(&into) || rule == WM_MERGE_LAST) {
		if (!is_same(&into, &from))
			wm_fields_set(&merge->into, column, &from);
		return true;
	}
	if (rule == WM_MERGE_SUM)
		return add_up(merge, column, into_at, from_at, err);
	take_extreme(merge, column, rule == WM_MERGE_MAX ? 1 : -1);
	return true;
}

/* ---- states ---- */

/* The states of the first row of all say of which functions all are. */
static bool
plan_states(struct wm_merge *merge, const struct wm_fields *fields, const struct wm_merge_row *at, struct wm_err *err)
{
	size_t count = merge->columns->count;

	if (is_of_sessions(merge) && (merge->options.start_key == SIZE_MAX || merge->options.end_key == SIZE_MAX))
		return wm_err_set(err, WM_ERR_DATA,
			"%s:%llu: these are sessions, which are joined by their bounds: name window_start and "
			"window_end in -k too",
			at->input, (unsigned long long)at->number);
	struct wm_span *names = wm_calloc(count + 1, sizeof(names[0]));
	struct wm_span *states = wm_calloc(count + 1, sizeof(states[0]));
	struct wm_err found = { 0 };

	merge->state_columns = wm_calloc(count + 1, sizeof(merge->state_columns[0]));
	merge->planned_count = count;
	for (size_t i = 0; i < count; i++) {
		if (rule_of(merge, i) != WM_MERGE_STATE)
			continue;
		names[merge->states_count] = merge->columns->names[i];
		states[merge->states_count] = wm_fields_at(fields, i).text;
		merge->state_columns[merge->states_count++] = i;
	}
	if (merge->states_count > 0)
		merge->agg = wm_agg_parse_states(names, states, merge->states_count, &found);
	else
		wm_err_set(&found, WM_ERR_DATA, "all columns are keys");
	free(names);
	free(states);
	return merge->agg != NULL ||
		wm_err_set(err, WM_ERR_DATA,
			"%s:%llu: %s: --partial takes what wm-window --partial wrote, and -k all other columns",
			at->input, (unsigned long long)at->number, found.message);
}

/* Merges the states of a row into a cell of them. */
static bool
take_states(struct wm_merge *merge, void *cell, struct wm_arena *arena, const struct wm_fields *fields,
	const struct wm_merge_row *at, struct wm_err *err)
{
	struct wm_err found;

	if (merge->agg == NULL && !plan_states(merge, fields, at, err))
		return false;
	for (size_t i = merge->planned_count; i < fields->count; i++)
		if (fields->fields[i].raw.data != NULL)
			return fail_column(err, at, merge, i, "rows before this one do not have it");
	for (size_t i = 0; i < merge->states_count; i++) {
		size_t column = merge->state_columns[i];

		if (!wm_agg_cell_merge_state(merge->agg, cell, arena, i, wm_fields_at(fields, column).text, &found))
			return fail_column(err, at, merge, column, "%s", found.message);
	}
	return true;
}

/* A cell for the states of rows; its size is known with the first. */
static void *
new_cell(struct wm_merge *merge, const struct wm_fields *fields, const struct wm_merge_row *at, struct wm_err *err)
{
	if (merge->agg == NULL && !plan_states(merge, fields, at, err))
		return NULL;
	void *cell = wm_calloc(1, wm_agg_cell_bytes(merge->agg));
	wm_agg_cell_init(merge->agg, cell);
	return cell;
}

/* Puts the states of a cell in the place of those of a row taken apart. */
static void
set_states(const struct wm_merge *merge, const void *cell, struct wm_fields *fields)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < merge->states_count; i++) {
		wm_buf_reset(&text);
		wm_agg_cell_print_state(merge->agg, cell, i, &text);
		struct wm_value value = { wm_buf_span(&text), WM_KIND_TEXT };
		wm_fields_set(fields, merge->state_columns[i], &value);
	}
	wm_buf_release(&text);
}

static bool
combine_states(struct wm_merge *merge, const struct wm_merge_row *into_at, const struct wm_merge_row *from_at,
	struct wm_err *err)
{
	struct wm_arena arena = { 0 };
	void *cell = new_cell(merge, &merge->into, into_at, err);
	bool is_well = cell != NULL && take_states(merge, cell, &arena, &merge->into, into_at, err) &&
		take_states(merge, cell, &arena, &merge->from, from_at, err);

	if (is_well)
		set_states(merge, cell, &merge->into);
	wm_arena_release(&arena);
	free(cell);
	return is_well;
}

/* Whether the states of a row can be read; into holds it. */
static bool
check_states(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	struct wm_arena arena = { 0 };
	void *cell = new_cell(merge, &merge->into, row, err);
	bool is_well = cell != NULL && take_states(merge, cell, &arena, &merge->into, row, err);

	wm_arena_release(&arena);
	free(cell);
	return is_well;
}

/* ---- two rows as one ---- */

/* The row at into with what from has; in merge->line. */
static bool
combine(struct wm_merge *merge, const struct wm_merge_row *into_at, const struct wm_merge_row *from_at,
	struct wm_err *err)
{
	wm_fields_split(&merge->into, into_at->line);
	wm_fields_split(&merge->from, from_at->line);
	for (size_t i = 0; i < merge->columns->count; i++)
		if (!combine_column(merge, i, into_at, from_at, err))
			return false;
	if (merge->options.is_of_states && !combine_states(merge, into_at, from_at, err))
		return false;
	wm_buf_reset(&merge->line);
	wm_fields_render(&merge->into, &merge->line);
	return true;
}

static struct wm_merge_row
row_of(const struct held *held)
{
	return (struct wm_merge_row){
		.line = wm_span(held->line, held->len),
		.input = held->input,
		.number = held->number,
	};
}

/* ---- keys ---- */

/* A text of four digits, '-', two digits, '-' may be a time; what is not one at first sight is not tried. */
static bool
may_be_time(struct wm_span text)
{
	return text.len >= 10 && text.data[4] == '-' && text.data[7] == '-' && text.data[0] >= '0' &&
		text.data[0] <= '9';
}

static void
build_key(struct wm_merge *merge, const struct wm_value *values)
{
	struct wm_buf *key = &merge->key;
	const char *why;
	int64_t time_us;

	wm_buf_reset(key);
	for (size_t i = 0; i < merge->options.keys_count; i++) {
		struct wm_value value = values[i];

		if (value.kind == WM_KIND_NULL) {
			wm_buf_add_byte(key, KEY_NULL);
		} else if (value.kind == WM_KIND_TEXT && may_be_time(value.text) &&
			wm_instant_parse(merge->parser, value.text, &time_us, &why)) {
			wm_buf_add_byte(key, KEY_TIME);
			wm_buf_add(key, &time_us, sizeof(time_us));
		} else {
			char head[KEY_TEXT_HEAD] = { KEY_TEXT, (char)value.kind };
			uint32_t len = (uint32_t)value.text.len;

			memcpy(head + 2, &len, sizeof(len));
			wm_buf_add(key, head, sizeof(head));
			wm_buf_add(key, value.text.data, value.text.len);
		}
	}
}

/* One column of a key. */
struct part {
	enum key_tag tag;
	int64_t time_us;
	struct wm_value value;
};

static struct part
next_part(const char **at)
{
	struct part part = { .tag = (enum key_tag) * *at };
	uint32_t len;

	if (part.tag == KEY_TIME) {
		memcpy(&part.time_us, *at + 1, sizeof(part.time_us));
		*at += 1 + sizeof(part.time_us);
	} else if (part.tag == KEY_TEXT) {
		memcpy(&len, *at + 2, sizeof(len));
		part.value = (struct wm_value){ wm_span(*at + KEY_TEXT_HEAD, len), (enum wm_kind)(*at)[1] };
		*at += KEY_TEXT_HEAD + len;
	} else {
		*at += 1;
	}
	return part;
}

/* Null, the empty text, numbers, times, texts; by bytes numbers are texts. */
static int
rank_of(const struct part *part, const struct wm_reading *reading)
{
	if (part->tag == KEY_NULL)
		return 0;
	if (part->tag == KEY_TIME)
		return 3;
	return reading->is_empty ? 1 : reading->is_number ? 2 : 4;
}

static int
compare_parts(const struct part *a, const struct part *b, enum key_order order)
{
	struct wm_reading a_reading = { .value = a->value, .is_empty = a->value.text.len == 0 };
	struct wm_reading b_reading = { .value = b->value, .is_empty = b->value.text.len == 0 };

	if (a->tag == KEY_TIME && b->tag == KEY_TIME)
		return (a->time_us > b->time_us) - (a->time_us < b->time_us);
	if (a->tag == KEY_TEXT && b->tag == KEY_TEXT && is_same(&a->value, &b->value))
		return 0;
	if (order == ORDER_BY_VALUE && a->tag == KEY_TEXT)
		wm_reading_take(&a_reading, &a->value);
	if (order == ORDER_BY_VALUE && b->tag == KEY_TEXT)
		wm_reading_take(&b_reading, &b->value);
	int result = rank_of(a, &a_reading) - rank_of(b, &b_reading);
	if (result == 0)
		result = wm_reading_compare(&a_reading, &b_reading);
	/* What is equal by value still stands in one order: "1", then "1.0". */
	if (result == 0)
		result = wm_span_compare(a->value.text, b->value.text);
	return result != 0 ? result : (a->value.kind > b->value.kind) - (a->value.kind < b->value.kind);
}

static int
compare_keys(struct wm_span a, struct wm_span b, enum key_order order)
{
	const char *a_at = a.data, *b_at = b.data;
	int result = 0;

	while (result == 0 && a_at < a.data + a.len) {
		struct part a_part = next_part(&a_at), b_part = next_part(&b_at);

		result = compare_parts(&a_part, &b_part, order);
	}
	return result;
}

static bool
check_bytes(const struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	return wm_merge_bytes(merge) <= merge->options.bytes_max ||
		wm_err_set(err, WM_ERR_LIMIT,
			"%s:%llu: the %s take more than the limit of %zu bytes: raise it with --state-limit, or merge "
			"fewer at a time",
			row->input, (unsigned long long)row->number,
			is_of_sessions(merge) ? "sessions, of MAIN too," : "late rows", merge->options.bytes_max);
}

/* ---- sessions ---- */

/* Sessions of one key stand together, by their starts. */
static int
compare_others(const struct wm_merge *merge, const struct session *a, const struct session *b)
{
	const char *a_at = a->key.data, *b_at = b->key.data;
	int result = 0;

	for (size_t i = 0; result == 0 && i < merge->options.keys_count; i++) {
		struct part a_part = next_part(&a_at), b_part = next_part(&b_at);

		if (i != merge->options.start_key && i != merge->options.end_key)
			result = compare_parts(&a_part, &b_part, ORDER_BY_BYTES);
	}
	return result;
}

static int
compare_by_start(const void *a, const void *b, void *context)
{
	const struct session *left = a, *right = b;
	int result = compare_others(context, left, right);

	return result != 0 ? result : (left->start_us > right->start_us) - (left->start_us < right->start_us);
}

static int
compare_by_input(const void *a, const void *b)
{
	const struct session *left = a, *right = b;

	return (left->order > right->order) - (left->order < right->order);
}

static int
compare_by_key(const void *a, const void *b, void *context)
{
	const struct session *left = a, *right = b;
	const struct wm_merge *merge = context;

	return compare_keys(left->key, right->key, merge->order);
}

static struct wm_span
keep_text(struct wm_merge *merge, struct wm_span text)
{
	char *copy = wm_arena_alloc(&merge->range_arena, text.len);

	return wm_text_copy(&copy, text);
}

static struct wm_merge_row
row_of_session(const struct session *session)
{
	return (struct wm_merge_row){ .line = session->line, .input = session->input, .number = session->number };
}

/* A bound of a session, which is a key. */
static bool
read_bound(struct wm_merge *merge, const struct wm_merge_row *row, size_t key, int64_t *time_us, struct wm_err *err)
{
	const char *why = "no time";
	struct wm_buf shown;

	if (row->keys[key].kind != WM_KIND_NULL &&
		wm_instant_parse(merge->window_parser, row->keys[key].text, time_us, &why))
		return true;
	wm_buf_init(&shown, WM_BUF_UNBOUNDED);
	add_shown(&shown, &row->keys[key]);
	wm_err_set(err, WM_ERR_DATA, "%s:%llu: %.*s bounds no session: %s", row->input, (unsigned long long)row->number,
		(int)shown.len, shown.data, why);
	wm_buf_release(&shown);
	return false;
}

/* All are of one gap, or they would not be the sessions of one run; into holds the row. */
static bool
check_gap(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	size_t column;

	if (merge->sessions_count == 0 || !wm_columns_find(merge->columns, wm_span_of(WM_MERGE_GAP), &column))
		return true;
	struct wm_merge_row first = row_of_session(&merge->sessions[0]);
	wm_fields_split(&merge->from, first.line);
	struct wm_value gap = wm_fields_at(&merge->into, column), other = wm_fields_at(&merge->from, column);
	return is_same(&gap, &other) ||
		fail_column(err, row, merge, column,
			"'%.*s', but '%.*s' at %s:%llu: sessions of different gaps are not joined", (int)gap.text.len,
			gap.text.data, (int)other.text.len, other.text.data, first.input,
			(unsigned long long)first.number);
}

/* Holds a row, whose key is built and which into holds. */
static bool
hold_session(struct wm_merge *merge, const struct wm_merge_row *row, uint64_t order, struct wm_err *err)
{
	struct session session = { .order = order, .input = row->input, .number = row->number };
	size_t start = merge->options.start_key, end = merge->options.end_key;

	if (!read_bound(merge, row, start, &session.start_us, err) ||
		!read_bound(merge, row, end, &session.end_us, err) || !check_gap(merge, row, err))
		return false;
	session.line = keep_text(merge, row->line);
	session.key = keep_text(merge, wm_buf_span(&merge->key));
	merge->sessions =
		wm_grown(merge->sessions, merge->sessions_count, &merge->sessions_capacity, sizeof(merge->sessions[0]));
	merge->sessions[merge->sessions_count++] = session;
	return check_bytes(merge, row, err);
}

/* The key of a session with the bounds of two others. */
static struct wm_span
key_between(
	struct wm_merge *merge, const struct session *session, const struct session *first, const struct session *last)
{
	const char *at = session->key.data, *first_at = first->key.data, *last_at = last->key.data;

	wm_buf_reset(&merge->key);
	for (size_t i = 0; i < merge->options.keys_count; i++) {
		const char *from = at, *first_from = first_at, *last_from = last_at;

		(void)next_part(&at);
		(void)next_part(&first_at);
		(void)next_part(&last_at);
		if (i == merge->options.start_key)
			wm_buf_add(&merge->key, first_from, (size_t)(first_at - first_from));
		else if (i == merge->options.end_key)
			wm_buf_add(&merge->key, last_from, (size_t)(last_at - last_from));
		else
			wm_buf_add(&merge->key, from, (size_t)(at - from));
	}
	return keep_text(merge, wm_buf_span(&merge->key));
}

/* Takes a bound over from another session to the row that into holds. */
static void
set_bound(struct wm_merge *merge, const char *name, const struct session *from)
{
	size_t column;

	wm_fields_split(&merge->from, from->line);
	if (!wm_columns_find(merge->columns, wm_span_of(name), &column))
		return;
	struct wm_value value = wm_fields_at(&merge->from, column), old = wm_fields_at(&merge->into, column);
	if (!is_same(&value, &old))
		wm_fields_set(&merge->into, column, &value);
}

/* Makes one of some sessions, more than one, which come in the order of input. */
static bool
join_sessions(struct wm_merge *merge, const struct session *sessions, size_t count, struct session *joined,
	struct wm_err *err)
{
	const struct session *first = sessions, *last = sessions;
	struct wm_merge_row row = row_of_session(sessions);
	struct wm_arena arena = { 0 };

	wm_fields_split(&merge->from, row.line);
	void *cell = new_cell(merge, &merge->from, &row, err);
	bool is_well = cell != NULL;
	for (size_t i = 0; i < count && is_well; i++) {
		row = row_of_session(&sessions[i]);
		wm_fields_split(&merge->from, row.line);
		is_well = take_states(merge, cell, &arena, &merge->from, &row, err);
		first = sessions[i].start_us < first->start_us ? &sessions[i] : first;
		last = sessions[i].end_us > last->end_us ? &sessions[i] : last;
	}
	if (is_well) {
		wm_fields_split(&merge->into, sessions->line);
		set_states(merge, cell, &merge->into);
		set_bound(merge, "window_start", first);
		set_bound(merge, "window_end", last);
		wm_buf_reset(&merge->line);
		wm_fields_render(&merge->into, &merge->line);
		*joined = *sessions;
		joined->key = key_between(merge, sessions, first, last);
		joined->line = keep_text(merge, wm_buf_span(&merge->line));
	}
	wm_arena_release(&arena);
	free(cell);
	return is_well;
}

static bool
settle_sessions(struct wm_merge *merge, struct wm_err *err)
{
	struct session *all = merge->sessions;
	size_t count = merge->sessions_count, joined_count = 0;

	qsort_r(all, count, sizeof(all[0]), compare_by_start, merge);
	for (size_t i = 0, next; i < count; i = next) {
		int64_t end_us = all[i].end_us;

		for (next = i + 1;
			next < count && compare_others(merge, &all[i], &all[next]) == 0 && all[next].start_us <= end_us;
			next++)
			end_us = all[next].end_us > end_us ? all[next].end_us : end_us;
		struct session joined = all[i];
		if (next - i > 1) {
			qsort(&all[i], next - i, sizeof(all[0]), compare_by_input);
			if (!join_sessions(merge, &all[i], next - i, &joined, err))
				return false;
		}
		all[joined_count++] = joined;
	}
	qsort_r(all, joined_count, sizeof(all[0]), compare_by_key, merge);
	merge->lines = wm_calloc(joined_count + 1, sizeof(merge->lines[0]));
	for (size_t i = 0; i < joined_count; i++)
		merge->lines[i] = all[i].line;
	merge->added_count = joined_count;
	return true;
}

/* ---- late rows ---- */

/* What can be wrong with a late row by itself. */
static bool
check_late(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	struct wm_decimal number;

	wm_fields_split(&merge->into, row->line);
	for (size_t i = 0; i < merge->rules_count; i++) {
		struct wm_value value = wm_fields_value(&merge->into, i);

		if (merge->rules[i] == WM_MERGE_SUM && !wm_value_is_empty(&value) &&
			!read_number(merge, i, &value, row, &number, err))
			return false;
	}
	return !merge->options.is_of_states || check_states(merge, row, err);
}

/* "from FROM to before TO", without an end that is open. */
static void
print_range(const struct wm_merge_options *options, struct wm_buf *out)
{
	char text[WM_INSTANT_TEXT_MAX];

	if (options->from_us != INT64_MIN) {
		wm_buf_add_text(out, "from ");
		wm_buf_add(out, text, wm_instant_print(options->from_us, WM_UNIT_ISO, options->zone, text));
	}
	if (options->from_us != INT64_MIN && options->to_us != INT64_MAX)
		wm_buf_add_byte(out, ' ');
	if (options->to_us != INT64_MAX) {
		wm_buf_add_text(out, "to before ");
		wm_buf_add(out, text, wm_instant_print(options->to_us, WM_UNIT_ISO, options->zone, text));
	}
}

/* A late row that is not of the range. */
static bool
fail_beside_range(const struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	char at[WM_INSTANT_TEXT_MAX];
	size_t at_len = wm_instant_print(row->time_us, WM_UNIT_ISO, merge->options.zone, at);
	struct wm_buf range;

	wm_buf_init(&range, WM_BUF_UNBOUNDED);
	print_range(&merge->options, &range);
	(void)wm_err_set(err, WM_ERR_DATA,
		"%s:%llu: %.*s is outside of the range that is replaced, %.*s: compute that range alone, or name a "
		"wider one",
		row->input, (unsigned long long)row->number, (int)at_len, at, (int)range.len, range.data);
	wm_buf_release(&range);
	return false;
}

static bool
hold_of_range(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	if (row->time_us < merge->options.from_us || row->time_us >= merge->options.to_us)
		return fail_beside_range(merge, row, err);
	if (merge->options.looks_at_all)
		wm_fields_split(&merge->into, row->line);
	merge->lines = wm_grown(merge->lines, merge->lines_count, &merge->lines_capacity, sizeof(merge->lines[0]));
	char *line = wm_arena_alloc(&merge->range_arena, row->line.len);
	memcpy(line, row->line.data, row->line.len);
	merge->lines[merge->lines_count++] = wm_span(line, row->line.len);
	return check_bytes(merge, row, err);
}

bool
wm_merge_hold(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	bool is_new;

	if (merge->options.is_of_range)
		return hold_of_range(merge, row, err);
	if (!check_late(merge, row, err))
		return false;
	build_key(merge, row->keys);
	if (is_of_sessions(merge))
		return hold_session(merge, row, LATE_FROM + merge->sessions_count, err);
	struct wm_entry *entry = wm_table_put(&merge->table, wm_buf_span(&merge->key), 0, &is_new);
	struct held *held = held_of(entry);
	struct wm_span line = row->line;
	if (is_new) {
		*held = (struct held){ .input = row->input, .number = row->number };
		merge->lines_bytes += ALLOCATION_BYTES;
	} else {
		struct wm_merge_row before = row_of(held);

		if (!combine(merge, &before, row, err))
			return false;
		line = wm_buf_span(&merge->line);
		merge->lines_bytes -= held->len;
		free(held->line);
	}
	held->line = wm_memdup(line.data, line.len);
	held->len = line.len;
	merge->lines_bytes += line.len;
	return check_bytes(merge, row, err);
}

/* ---- MAIN, for the first time ---- */

/* Whether MAIN is in order so far. */
static void
note_order(struct wm_merge *merge, const struct wm_merge_row *row)
{
	struct wm_span key = wm_buf_span(&merge->key), before = wm_buf_span(&merge->key_before);
	struct wm_buf swapped = merge->key_before;

	for (enum key_order order = 0; order < ORDERS_COUNT; order++)
		if (merge->ordered_count[order] == merge->rows_count &&
			(merge->rows_count == 0 || compare_keys(before, key, order) < 0))
			merge->ordered_count[order]++;
	merge->rows_count++;
	merge->number_before = row->number;
	merge->key_before = merge->key;
	merge->key = swapped;
}

/* The same, and that no key stands twice in a row. */
static bool
check_order(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	if (merge->rows_count > 0 && wm_span_equal(wm_buf_span(&merge->key), wm_buf_span(&merge->key_before)))
		return wm_err_set(err, WM_ERR_DATA,
			"%s:%llu: the key stands in line %llu already, so a late row could not say which it means: "
			"name more columns with -k",
			row->input, (unsigned long long)row->number, (unsigned long long)merge->number_before);
	note_order(merge, row);
	return true;
}

static bool
is_in_range(const struct wm_merge *merge, int64_t time_us)
{
	return time_us >= merge->options.from_us && time_us < merge->options.to_us;
}

static void
check_of_range(struct wm_merge *merge, const struct wm_merge_row *row)
{
	if (merge->ordered_count[0] == merge->rows_count &&
		(merge->rows_count == 0 || merge->time_before_us <= row->time_us))
		merge->ordered_count[0]++;
	merge->rows_count++;
	merge->time_before_us = row->time_us;
	merge->has_gap = merge->has_gap || is_in_range(merge, row->time_us);
}

bool
wm_merge_check(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	if (merge->options.looks_at_all || merge->options.is_of_states)
		wm_fields_split(&merge->into, row->line);
	if (merge->options.is_of_states && !check_states(merge, row, err))
		return false;
	if (merge->options.is_of_range) {
		check_of_range(merge, row);
		return true;
	}
	build_key(merge, row->keys);
	if (is_of_sessions(merge)) {
		if (!hold_session(merge, row, merge->rows_count, err))
			return false;
		note_order(merge, row);
		return true;
	}
	struct wm_entry *entry = wm_table_find(&merge->table, wm_buf_span(&merge->key), 0);
	if (!check_order(merge, row, err))
		return false;
	if (entry == NULL)
		return true;
	struct held *held = held_of(entry);
	if (held->main_number != 0)
		return wm_err_set(err, WM_ERR_DATA,
			"%s:%llu: the key stands in line %llu already, and %s:%llu could mean either: name more "
			"columns "
			"with -k",
			row->input, (unsigned long long)row->number, (unsigned long long)held->main_number, held->input,
			(unsigned long long)held->number);
	held->main_number = row->number;
	merge->met = wm_grown(merge->met, merge->met_count, &merge->met_capacity, sizeof(merge->met[0]));
	merge->met[merge->met_count++] = (struct met){ merge->rows_count - 1, held };
	struct wm_merge_row late = row_of(held);
	return combine(merge, row, &late, err);
}

static int
compare_entries(const void *a, const void *b, void *context)
{
	const struct wm_entry *left = *(struct wm_entry *const *)a, *right = *(struct wm_entry *const *)b;
	const struct wm_merge *merge = context;

	return compare_keys(wm_entry_key(left), wm_entry_key(right), merge->order);
}

bool
wm_merge_settle(struct wm_merge *merge, struct wm_err *err)
{
	struct wm_entry *entry;
	size_t at = 0;

	merge->added_count = merge->lines_count;
	if (merge->options.is_of_range)
		return true;
	bool is_by_bytes = merge->ordered_count[ORDER_BY_VALUE] < merge->rows_count &&
		merge->ordered_count[ORDER_BY_BYTES] == merge->rows_count;
	merge->order = is_by_bytes ? ORDER_BY_BYTES : ORDER_BY_VALUE;
	if (merge->sessions_count != 0)
		return settle_sessions(merge, err);
	merge->added = wm_calloc(merge->table.count + 1, sizeof(merge->added[0]));
	while ((entry = wm_table_next(&merge->table, &at)) != NULL)
		if (held_of(entry)->main_number == 0)
			merge->added[merge->added_count++] = entry;
	qsort_r(merge->added, merge->added_count, sizeof(merge->added[0]), compare_entries, merge);
	return true;
}

/* ---- MAIN, for the second time ---- */

static bool
fail_changed(const struct wm_merge_row *row, struct wm_err *err)
{
	return wm_err_set(err, WM_ERR_IO, "%s:%llu: the file was changed while it was read: try again", row->input,
		(unsigned long long)row->number);
}

static void
take_of_range(struct wm_merge *merge, const struct wm_merge_row *row)
{
	bool is_ordered = merge->row_at++ < merge->ordered_count[0];

	merge->has_row = !is_in_range(merge, row->time_us);
	if (merge->has_gap ? !merge->has_row : is_ordered && row->time_us >= merge->options.to_us)
		merge->due_count = merge->added_count - merge->added_at;
}

static bool
take_by_keys(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	uint64_t index = merge->row_at++;

	if (index < merge->ordered_count[merge->order] && merge->added_at < merge->added_count) {
		build_key(merge, row->keys);
		struct wm_span key = wm_buf_span(&merge->key);
		while (merge->added_at + merge->due_count < merge->added_count &&
			compare_keys(
				wm_entry_key(merge->added[merge->added_at + merge->due_count]), key, merge->order) < 0)
			merge->due_count++;
	}
	if (merge->met_at == merge->met_count || merge->met[merge->met_at].row != index)
		return true;
	struct held *held = merge->met[merge->met_at++].held;
	struct wm_merge_row late = row_of(held);
	if (held->main_number != row->number || !combine(merge, row, &late, err))
		return fail_changed(row, err);
	merge->row = wm_buf_span(&merge->line);
	return true;
}

bool
wm_merge_take(struct wm_merge *merge, const struct wm_merge_row *row, struct wm_err *err)
{
	assert(merge->due_count == 0 && !merge->has_row);
	if (merge->row_at == merge->rows_count)
		return fail_changed(row, err);
	merge->row = row->line;
	merge->has_row = merge->sessions_count == 0;
	if (merge->sessions_count != 0) {
		merge->row_at++;
		return true;
	}
	if (!merge->options.is_of_range)
		return take_by_keys(merge, row, err);
	take_of_range(merge, row);
	return true;
}

void
wm_merge_end(struct wm_merge *merge)
{
	merge->due_count = merge->added_count - merge->added_at;
}

bool
wm_merge_next(struct wm_merge *merge, struct wm_span *line)
{
	if (merge->due_count > 0) {
		size_t at = merge->added_at++;

		merge->due_count--;
		*line = merge->lines != NULL ? merge->lines[at] : row_of(held_of(merge->added[at])).line;
		return true;
	}
	*line = merge->row;
	bool has_row = merge->has_row;
	merge->has_row = false;
	return has_row;
}

/* ---- results of states ---- */

/* Length of the window of a row; 0 where it does not say. */
static int64_t
window_us_of(struct wm_merge *merge, const struct wm_fields *fields)
{
	int64_t times_us[2], window_us;
	const char *names[] = { "window_start", "window_end" }, *why;

	for (size_t i = 0; i < 2; i++) {
		size_t column;

		if (!wm_columns_find(merge->columns, wm_span_of(names[i]), &column) ||
			!wm_instant_parse(merge->window_parser, wm_fields_at(fields, column).text, &times_us[i], &why))
			return 0;
	}
	return __builtin_sub_overflow(times_us[1], times_us[0], &window_us) ? 0 : window_us;
}

/* A computed number that is no integer, from offset at on, by the format. */
static void
format_fraction(struct wm_buf *texts, size_t at, const char *format)
{
	struct wm_span number = wm_span(texts->data + at, texts->len - at);
	struct wm_buf formatted;

	if (memchr(number.data, '.', number.len) == NULL && memchr(number.data, 'e', number.len) == NULL)
		return;
	wm_buf_init(&formatted, WM_BUF_UNBOUNDED);
	wm_number_format(number, format, &formatted);
	texts->len = at;
	wm_buf_add(texts, formatted.data, formatted.len);
	wm_buf_release(&formatted);
}

bool
wm_merge_print(struct wm_merge *merge, struct wm_span line, const char *format, const struct wm_value **values,
	struct wm_err *err)
{
	struct wm_merge_row row = { .line = line, .input = "results" };
	struct wm_fields *fields = &merge->from;
	struct wm_arena arena = { 0 };
	size_t text_at = 0;

	wm_fields_split(fields, line);
	void *cell = new_cell(merge, fields, &row, err);
	if (cell == NULL || !take_states(merge, cell, &arena, fields, &row, err)) {
		wm_arena_release(&arena);
		free(cell);
		return false;
	}
	if (merge->values_capacity < merge->columns->count) {
		merge->values_capacity = merge->columns->count;
		merge->values = wm_reallocarray(merge->values, merge->values_capacity, sizeof(merge->values[0]));
	}
	for (size_t i = 0; i < merge->columns->count; i++)
		merge->values[i] = merge->options.tells_nulls ? wm_fields_value(fields, i) : wm_fields_at(fields, i);
	/* Lengths first: the buffer may move while it grows. */
	wm_buf_reset(&merge->texts);
	int64_t window_us = window_us_of(merge, fields);
	for (size_t i = 0; i < merge->states_count; i++) {
		size_t before = merge->texts.len;
		struct wm_value *value = &merge->values[merge->state_columns[i]];

		value->kind = wm_agg_cell_print(merge->agg, cell, i, window_us, &merge->texts);
		if (format != NULL && value->kind == WM_KIND_NUMBER && !wm_agg_output_is_chosen(merge->agg, i))
			format_fraction(&merge->texts, before, format);
		value->text.len = merge->texts.len - before;
	}
	for (size_t i = 0; i < merge->states_count; i++) {
		struct wm_value *value = &merge->values[merge->state_columns[i]];

		value->text.data = merge->texts.data + text_at;
		text_at += value->text.len;
	}
	*values = merge->values;
	wm_arena_release(&arena);
	free(cell);
	return true;
}

size_t
wm_merge_bytes(const struct wm_merge *merge)
{
	return wm_table_bytes(&merge->table) + merge->lines_bytes + merge->range_arena.bytes +
		merge->lines_capacity * sizeof(merge->lines[0]) + merge->sessions_capacity * sizeof(merge->sessions[0]);
}
