#include "lib/agg/agg.h"

#include <assert.h>
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/base/near.h"

#define MICROSECONDS_PER_SECOND 1000000
#define CELL_ALIGNMENT ((size_t)16)

/* Texts up to here stand in the cell itself. */
#define NEAR_BYTES_MAX 16

/* The least room that a longer text takes in the arena. */
#define FAR_BYTES_MIN ((size_t)32)

/* A text that a cell keeps. Once it has room in the arena it stays there, and takes new room only to grow. */
struct kept {
	union {
		char near[NEAR_BYTES_MAX];
		struct {
			char *data;
			size_t capacity;
		} far;
	};
	size_t len;
	enum wm_kind kind; /* WM_KIND_NULL: no value yet */
	bool is_far;
	bool is_number; /* for extremes */
};

/* min and max */
struct extreme {
	struct wm_decimal number; /* set where kept.is_number */
	struct kept kept;
};

/* first and last */
struct timed {
	int64_t event_time_us;
	struct kept kept;
};

/* What a cell may hold for a column: only what the column's aggregates need. All zero bytes are an empty part. */
enum part { PART_COUNT, PART_SUM, PART_SQUARES, PART_MIN, PART_MAX, PART_FIRST, PART_LAST, PARTS_COUNT };

static const struct {
	const char *name;
	size_t size, alignment;
} parts[PARTS_COUNT] = {
	[PART_COUNT] = { "count", sizeof(uint64_t), alignof(uint64_t) },
	[PART_SUM] = { "sum", sizeof(struct wm_decimal_sum), alignof(struct wm_decimal_sum) },
	[PART_SQUARES] = { "squares", sizeof(struct wm_square_sum), alignof(struct wm_square_sum) },
	[PART_MIN] = { "min", sizeof(struct extreme), alignof(struct extreme) },
	[PART_MAX] = { "max", sizeof(struct extreme), alignof(struct extreme) },
	[PART_FIRST] = { "first", sizeof(struct timed), alignof(struct timed) },
	[PART_LAST] = { "last", sizeof(struct timed), alignof(struct timed) },
};

#define HAS(part) (1u << (part))
#define NEEDS_READING (HAS(PART_SUM) | HAS(PART_SQUARES) | HAS(PART_MIN) | HAS(PART_MAX))

struct column {
	struct wm_span text; /* with its escapes */
	unsigned parts;      /* bits HAS() */
	bool needs_number;
	size_t at[PARTS_COUNT]; /* in the cell, of those that it has */
};

enum needs { NEEDS_NOTHING, NEEDS_OPTIONAL, NEEDS_VALUE, NEEDS_NUMBER };

struct output {
	const struct function *function;
	struct wm_span name;
	size_t column; /* SIZE_MAX: none */
};

struct wm_agg {
	struct wm_arena arena; /* holds the names and columns */
	struct column *columns;
	size_t columns_count;
	struct output *outputs;
	size_t outputs_count;
	size_t cell_bytes;
};

static inline const void *
part_of(const struct column *column, const void *cell, enum part part)
{
	return (const char *)cell + column->at[part];
}

static inline void *
part_in(const struct column *column, void *cell, enum part part)
{
	return (char *)cell + column->at[part];
}

static inline uint64_t
rows_of(const void *cell)
{
	return *(const uint64_t *)cell;
}

static inline uint64_t
values_of(const struct column *column, const void *cell)
{
	return *(const uint64_t *)part_of(column, cell, PART_COUNT);
}

/* ---- results ---- */

static enum wm_kind
print_number(double value, struct wm_buf *out)
{
	if (!isfinite(value))
		return WM_KIND_NULL;
	wm_double_print(value, out);
	return WM_KIND_NUMBER;
}

static enum wm_kind
print_count(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	struct wm_decimal_sum count = { .whole = column == NULL ? rows_of(cell) : values_of(column, cell) };

	(void)window_us;
	wm_decimal_sum_print(&count, out);
	return WM_KIND_NUMBER;
}

static enum wm_kind
print_sum(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	size_t before = out->len;

	(void)window_us;
	if (values_of(column, cell) != 0)
		wm_decimal_sum_print(part_of(column, cell, PART_SUM), out);
	return out->len == before ? WM_KIND_NULL : WM_KIND_NUMBER;
}

static enum wm_kind
print_avg(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	uint64_t count = values_of(column, cell);

	(void)window_us;
	return count == 0 ? WM_KIND_NULL
			  : print_number(wm_decimal_sum_mean(part_of(column, cell, PART_SUM), count), out);
}

/* Not finite for less than two values. */
static double
variance_of(const struct column *column, const void *cell)
{
	uint64_t count = values_of(column, cell);

	return count < 2
		? (double)INFINITY
		: wm_square_sum_variance(part_of(column, cell, PART_SQUARES), part_of(column, cell, PART_SUM), count);
}

static enum wm_kind
print_var(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	(void)window_us;
	return print_number(variance_of(column, cell), out);
}

static enum wm_kind
print_stddev(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	(void)window_us;
	return print_number(sqrt(variance_of(column, cell)), out);
}

/* Rows a second, as the mean of a sum: so it is rounded once however many rows there are. */
static enum wm_kind
print_rate(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	struct wm_decimal_sum rows = { .whole = (wm_int128)rows_of(cell) * MICROSECONDS_PER_SECOND };

	(void)column;
	if (rows.whole == 0 || window_us <= 0)
		return WM_KIND_NULL;
	return print_number(wm_decimal_sum_mean(&rows, (uint64_t)window_us), out);
}

static struct wm_span
kept_text(const struct kept *kept)
{
	return wm_span(kept->is_far ? kept->far.data : kept->near, kept->len);
}

static enum wm_kind
print_kept(const struct kept *kept, struct wm_buf *out)
{
	struct wm_span text = kept_text(kept);

	wm_buf_add(out, text.data, text.len);
	return kept->kind;
}

static enum wm_kind
print_min(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct extreme *extreme = part_of(column, cell, PART_MIN);

	(void)window_us;
	return print_kept(&extreme->kept, out);
}

static enum wm_kind
print_max(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct extreme *extreme = part_of(column, cell, PART_MAX);

	(void)window_us;
	return print_kept(&extreme->kept, out);
}

static enum wm_kind
print_first(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct timed *timed = part_of(column, cell, PART_FIRST);

	(void)window_us;
	return print_kept(&timed->kept, out);
}

static enum wm_kind
print_last(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct timed *timed = part_of(column, cell, PART_LAST);

	(void)window_us;
	return print_kept(&timed->kept, out);
}

/* The table: an aggregate more is a row more, and a part more where none of those above will do. */
static const struct function {
	const char *name;
	enum needs needs;
	unsigned parts; /* of its column */
	enum wm_kind (*print)(const struct column *column, const void *cell, int64_t window_us, struct wm_buf *out);
} functions[] = {
	{ "count", NEEDS_OPTIONAL, HAS(PART_COUNT), print_count },
	{ "sum", NEEDS_NUMBER, HAS(PART_COUNT) | HAS(PART_SUM), print_sum },
	{ "avg", NEEDS_NUMBER, HAS(PART_COUNT) | HAS(PART_SUM), print_avg },
	{ "min", NEEDS_VALUE, HAS(PART_MIN), print_min },
	{ "max", NEEDS_VALUE, HAS(PART_MAX), print_max },
	{ "first", NEEDS_VALUE, HAS(PART_FIRST), print_first },
	{ "last", NEEDS_VALUE, HAS(PART_LAST), print_last },
	{ "var", NEEDS_NUMBER, HAS(PART_COUNT) | HAS(PART_SUM) | HAS(PART_SQUARES), print_var },
	{ "stddev", NEEDS_NUMBER, HAS(PART_COUNT) | HAS(PART_SUM) | HAS(PART_SQUARES), print_stddev },
	{ "rate", NEEDS_NOTHING, 0, print_rate },
};

#define FUNCTIONS_COUNT (sizeof(functions) / sizeof(functions[0]))

/* What other tools call them, where the letters are too far off to guess. */
static const struct {
	const char *word, *name;
} synonyms[] = {
	{ "mean", "avg" },
	{ "average", "avg" },
	{ "std", "stddev" },
	{ "sd", "stddev" },
	{ "variance", "var" },
	{ "total", "sum" },
};

/* ---- parsing the list ---- */

/* A piece of the command line as a message shows it. */
static int
shown(struct wm_span text)
{
	return (int)(text.len < WM_SHOWN_BYTES_MAX ? text.len : WM_SHOWN_BYTES_MAX);
}

static bool
fail_unknown(struct wm_span word, struct wm_err *err)
{
	struct wm_near near = wm_near_to(word);
	struct wm_buf list;

	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (wm_span_is(word, synonyms[i].word))
			return wm_err_set(
				err, WM_ERR_USAGE, "no aggregate '%s': say %s", synonyms[i].word, synonyms[i].name);
	wm_buf_init(&list, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < FUNCTIONS_COUNT; i++) {
		wm_near_try(&near, wm_span_of(functions[i].name));
		wm_buf_addf(&list, "%s%s", i == 0 ? "" : ", ", functions[i].name);
	}
	wm_err_set(err, WM_ERR_USAGE, "no aggregate '%.*s'; %s%.*s%sthere are: %.*s", shown(word), word.data,
		near.best.data == NULL ? "" : "did you mean ", (int)near.best.len, near.best.data,
		near.best.data == NULL ? "" : "? ", (int)list.len, list.data);
	wm_buf_release(&list);
	return false;
}

static const struct function *
find_function(struct wm_span word)
{
	for (size_t i = 0; i < FUNCTIONS_COUNT; i++)
		if (wm_span_is(word, functions[i].name))
			return &functions[i];
	return NULL;
}

static struct wm_span
keep_text(struct wm_agg *agg, struct wm_span text)
{
	char *copy = wm_arena_alloc(&agg->arena, text.len);

	memcpy(copy, text.data, text.len);
	return wm_span(copy, text.len);
}

/* Its index; a new one if the list has not named it yet. */
static size_t
find_column(struct wm_agg *agg, struct wm_span text)
{
	for (size_t i = 0; i < agg->columns_count; i++)
		if (wm_span_equal(agg->columns[i].text, text))
			return i;
	agg->columns[agg->columns_count] = (struct column){ .text = keep_text(agg, text) };
	return agg->columns_count++;
}

/* name: as written with name=, else its data is NULL. */
static bool
add_output(struct wm_agg *agg, struct wm_span name, const struct function *function, struct wm_span column,
	struct wm_err *err)
{
	struct output *output = &agg->outputs[agg->outputs_count];
	struct wm_buf text;
	bool has_column = column.data != NULL;

	*output = (struct output){ .function = function, .column = has_column ? find_column(agg, column) : SIZE_MAX };
	if (has_column) {
		agg->columns[output->column].parts |= function->parts;
		agg->columns[output->column].needs_number |= function->needs == NEEDS_NUMBER;
	}
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	if (name.data != NULL) {
		wm_list_unescape(name, &text);
	} else {
		if (has_column) {
			wm_list_unescape(column, &text);
			wm_buf_add_byte(&text, '_');
		}
		wm_buf_add_text(&text, function->name);
	}
	output->name = keep_text(agg, wm_buf_span(&text));
	wm_buf_release(&text);
	for (size_t i = 0; i < agg->outputs_count; i++)
		if (wm_span_equal(agg->outputs[i].name, output->name))
			return wm_err_set(err, WM_ERR_USAGE,
				"two aggregates are named '%.*s': rename one with NAME=%s%s%.*s", shown(output->name),
				output->name.data, function->name, has_column ? ":" : "",
				has_column ? shown(column) : 0, has_column ? column.data : "");
	agg->outputs_count++;
	return true;
}

/* One part of the list: [NAME=]FUNCTION[:COLUMN]. */
static bool
parse_part(struct wm_agg *agg, struct wm_span part, struct wm_err *err)
{
	struct wm_span rest = part, name = { NULL, 0 }, word, column = { NULL, 0 };
	const struct function *function;

	if (part.len == 0)
		return wm_err_set(err, WM_ERR_USAGE, "an aggregate is empty: write the list as count,sum:COLUMN");
	wm_list_next(&rest, '=', &word);
	if (rest.data != NULL) {
		name = word;
		if (name.len == 0)
			return wm_err_set(
				err, WM_ERR_USAGE, "no name before the '=' of '%.*s'", shown(part), part.data);
		wm_list_next(&rest, '=', &word);
		if (rest.data != NULL)
			return wm_err_set(err, WM_ERR_USAGE,
				"more than one '=' in '%.*s': write \\= where it belongs to a name", shown(part),
				part.data);
	}
	rest = word;
	wm_list_next(&rest, ':', &word);
	function = find_function(word);
	if (function == NULL)
		return fail_unknown(word, err);
	bool has_column = wm_list_next(&rest, ':', &column);
	if (rest.data != NULL)
		return wm_err_set(err, WM_ERR_USAGE,
			"'%.*s': %s takes one column: write \\: where a ':' belongs to its name", shown(part),
			part.data, function->name);
	if (has_column && function->needs == NEEDS_NOTHING)
		return wm_err_set(err, WM_ERR_USAGE, "%s takes no column, but has '%.*s'", function->name,
			shown(column), column.data);
	if (has_column ? column.len == 0 : function->needs > NEEDS_OPTIONAL)
		return wm_err_set(err, WM_ERR_USAGE, "%s needs a column: %s:COLUMN", function->name, function->name);
	return add_output(agg, name, function, column, err);
}

static size_t
round_up(size_t size, size_t alignment)
{
	return (size + alignment - 1) / alignment * alignment;
}

/* Counts of all columns first: so that one column's rows, count and sum fill 64 bytes. */
static void
lay_out(struct wm_agg *agg)
{
	size_t at = sizeof(uint64_t);

	for (enum part part = 0; part < PARTS_COUNT; part++) {
		for (size_t i = 0; i < agg->columns_count; i++) {
			if ((agg->columns[i].parts & HAS(part)) == 0)
				continue;
			at = round_up(at, parts[part].alignment);
			agg->columns[i].at[part] = at;
			at += parts[part].size;
		}
	}
	agg->cell_bytes = round_up(at, CELL_ALIGNMENT);
}

struct wm_agg *
wm_agg_parse(struct wm_span list, struct wm_err *err)
{
	struct wm_agg *agg = wm_calloc(1, sizeof(*agg));
	struct wm_span rest = list, part;
	size_t count = 0;

	while (wm_list_next(&rest, ',', &part))
		count++;
	if (count > WM_AGGREGATES_MAX) {
		wm_err_set(err, WM_ERR_USAGE, "%zu aggregates: at most %d in one command", count, WM_AGGREGATES_MAX);
		goto fail;
	}
	agg->columns = wm_calloc(count, sizeof(*agg->columns));
	agg->outputs = wm_calloc(count, sizeof(*agg->outputs));
	for (rest = list; wm_list_next(&rest, ',', &part);)
		if (!parse_part(agg, part, err))
			goto fail;
	lay_out(agg);
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
wm_agg_column_reads_number(const struct wm_agg *agg, size_t column)
{
	assert(column < agg->columns_count);
	return (agg->columns[column].parts & NEEDS_READING) != 0;
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

/* ---- cells ---- */

size_t
wm_agg_cell_bytes(const struct wm_agg *agg)
{
	return agg->cell_bytes;
}

void
wm_agg_cell_init(const struct wm_agg *agg, void *cell)
{
	memset(cell, 0, agg->cell_bytes);
}

static void
kept_set(struct kept *kept, struct wm_arena *arena, const struct wm_value *value)
{
	size_t room = kept->is_far ? kept->far.capacity : sizeof(kept->near);

	if (value->text.len > room) {
		room = FAR_BYTES_MIN;
		while (room < value->text.len)
			room *= 2;
		kept->far.data = wm_arena_alloc(arena, room);
		kept->far.capacity = room;
		kept->is_far = true;
	}
	memcpy(kept->is_far ? kept->far.data : kept->near, value->text.data, value->text.len);
	kept->len = value->text.len;
	kept->kind = value->kind;
}

static struct wm_value
kept_value(const struct kept *kept)
{
	return (struct wm_value){ .text = kept_text(kept), .kind = kept->kind };
}

/* Numbers before texts, numbers by value, texts as bytes. */
static int
compare(const struct wm_reading *reading, const struct extreme *extreme)
{
	struct wm_span text = kept_text(&extreme->kept);

	if (reading->is_number != extreme->kept.is_number)
		return reading->is_number ? -1 : 1;
	return reading->is_number ? wm_decimal_compare(&reading->number, reading->value.text, &extreme->number, text)
				  : wm_span_compare(reading->value.text, text);
}

/* direction: -1 for min, 1 for max. Of equal values the text first in byte order stays, of equal texts the first to come. */
__attribute__((noinline)) static void
extreme_take(struct extreme *extreme, struct wm_arena *arena, const struct wm_reading *reading, int direction)
{
	if (extreme->kept.kind != WM_KIND_NULL) {
		int order = compare(reading, extreme) * direction;

		if (order < 0 || (order == 0 && wm_span_compare(reading->value.text, kept_text(&extreme->kept)) >= 0))
			return;
	}
	if (reading->is_number)
		extreme->number = reading->number;
	extreme->kept.is_number = reading->is_number;
	kept_set(&extreme->kept, arena, &reading->value);
}

/* The common case, two exact numbers of which the new one is inside, is decided here. */
static inline void
extreme_add(struct extreme *extreme, struct wm_arena *arena, const struct wm_reading *reading, int direction)
{
	if (extreme->kept.is_number && reading->is_number && extreme->number.is_exact && reading->number.is_exact &&
		wm_decimal_compare_exact(&reading->number, &extreme->number) * direction < 0)
		return;
	extreme_take(extreme, arena, reading, direction);
}

static void
extreme_merge(struct extreme *into, struct wm_arena *arena, const struct extreme *from, int direction)
{
	if (from->kept.kind != WM_KIND_NULL) {
		struct wm_reading reading = { .value = kept_value(&from->kept), .is_number = from->kept.is_number };

		if (reading.is_number)
			reading.number = from->number;
		extreme_add(into, arena, &reading, direction);
	}
}

static inline void
first_add(struct timed *first, struct wm_arena *arena, const struct wm_value *value, int64_t event_time_us)
{
	if (first->kept.kind == WM_KIND_NULL || event_time_us < first->event_time_us) {
		first->event_time_us = event_time_us;
		kept_set(&first->kept, arena, value);
	}
}

static inline void
last_add(struct timed *last, struct wm_arena *arena, const struct wm_value *value, int64_t event_time_us)
{
	if (last->kept.kind == WM_KIND_NULL || event_time_us >= last->event_time_us) {
		last->event_time_us = event_time_us;
		kept_set(&last->kept, arena, value);
	}
}

void
wm_agg_cell_add(const struct wm_agg *agg, void *cell, struct wm_arena *arena, const struct wm_reading *readings,
	int64_t event_time_us)
{
	++*(uint64_t *)cell;
	for (size_t i = 0; i < agg->columns_count; i++) {
		const struct column *column = &agg->columns[i];
		const struct wm_reading *reading = &readings[i];
		unsigned has = column->parts;

		if (reading->is_empty)
			continue;
		if (has & HAS(PART_COUNT))
			++*(uint64_t *)part_in(column, cell, PART_COUNT);
		if (has & HAS(PART_SUM))
			wm_decimal_sum_add(part_in(column, cell, PART_SUM), &reading->number);
		if (has & HAS(PART_SQUARES))
			wm_square_sum_add(part_in(column, cell, PART_SQUARES), &reading->number);
		if (has & HAS(PART_MIN))
			extreme_add(part_in(column, cell, PART_MIN), arena, reading, -1);
		if (has & HAS(PART_MAX))
			extreme_add(part_in(column, cell, PART_MAX), arena, reading, 1);
		if (has & HAS(PART_FIRST))
			first_add(part_in(column, cell, PART_FIRST), arena, &reading->value, event_time_us);
		if (has & HAS(PART_LAST))
			last_add(part_in(column, cell, PART_LAST), arena, &reading->value, event_time_us);
	}
}

/* Ties in event time go to into, in both. */
static void
timed_merge(struct timed *into, struct wm_arena *arena, const struct timed *from, bool is_last)
{
	struct wm_value value = kept_value(&from->kept);

	if (value.kind == WM_KIND_NULL)
		return;
	if (!is_last)
		first_add(into, arena, &value, from->event_time_us);
	else if (into->kept.kind == WM_KIND_NULL || from->event_time_us > into->event_time_us)
		last_add(into, arena, &value, from->event_time_us);
}

static void
part_merge(enum part part, void *into, struct wm_arena *arena, const void *from)
{
	switch (part) {
	case PART_COUNT:
		*(uint64_t *)into += *(const uint64_t *)from;
		break;
	case PART_SUM:
		wm_decimal_sum_merge(into, from);
		break;
	case PART_SQUARES:
		wm_square_sum_merge(into, from);
		break;
	case PART_MIN:
	case PART_MAX:
		extreme_merge(into, arena, from, part == PART_MIN ? -1 : 1);
		break;
	case PART_FIRST:
	case PART_LAST:
		timed_merge(into, arena, from, part == PART_LAST);
		break;
	case PARTS_COUNT:
		assert(false);
	}
}

void
wm_agg_cell_merge(const struct wm_agg *agg, void *into, struct wm_arena *arena, const void *from)
{
	*(uint64_t *)into += rows_of(from);
	for (size_t i = 0; i < agg->columns_count; i++) {
		const struct column *column = &agg->columns[i];

		for (enum part part = 0; part < PARTS_COUNT; part++)
			if (column->parts & HAS(part))
				part_merge(part, part_in(column, into, part), arena, part_of(column, from, part));
	}
}

uint64_t
wm_agg_cell_rows(const struct wm_agg *agg, const void *cell)
{
	(void)agg;
	return rows_of(cell);
}

enum wm_kind
wm_agg_cell_print(const struct wm_agg *agg, const void *cell, size_t output, int64_t window_us, struct wm_buf *out)
{
	assert(output < agg->outputs_count);
	const struct output *result = &agg->outputs[output];
	const struct column *column = result->column == SIZE_MAX ? NULL : &agg->columns[result->column];

	return result->function->print(column, cell, window_us, out);
}

/* ---- checkpoints ---- */

static void
kept_encode(const struct kept *kept, struct wm_buf *out)
{
	wm_put_u8(out, (uint8_t)kept->kind);
	if (kept->kind != WM_KIND_NULL)
		wm_put_span(out, kept_text(kept));
}

/* The value points into the bytes read; WM_KIND_NULL if none was kept, or it is an impossible one. */
static struct wm_value
kept_decode(struct wm_get *in)
{
	struct wm_value value = { .text = wm_span("", 0), .kind = WM_KIND_NULL };
	unsigned kind = wm_get_u8(in);

	if (kind != WM_KIND_NULL)
		value.text = wm_get_span(in);
	if (kind > WM_KIND_JSON || (kind != WM_KIND_NULL && value.text.len == 0))
		wm_get_fail(in);
	else
		value.kind = (enum wm_kind)kind;
	return value;
}

static void
part_encode(enum part part, const void *from, struct wm_buf *out)
{
	const struct timed *timed;

	switch (part) {
	case PART_COUNT:
		wm_put_varint(out, *(const uint64_t *)from);
		break;
	case PART_SUM:
		wm_decimal_sum_encode(from, out);
		break;
	case PART_SQUARES:
		wm_square_sum_encode(from, out);
		break;
	case PART_MIN:
	case PART_MAX: /* the number is read anew from the text */
		kept_encode(&((const struct extreme *)from)->kept, out);
		break;
	case PART_FIRST:
	case PART_LAST:
		timed = from;
		kept_encode(&timed->kept, out);
		if (timed->kept.kind != WM_KIND_NULL)
			wm_put_i64(out, timed->event_time_us);
		break;
	case PARTS_COUNT:
		assert(false);
	}
}

static bool
part_decode(enum part part, void *into, struct wm_arena *arena, struct wm_get *in)
{
	struct wm_value value;
	struct wm_reading reading;

	switch (part) {
	case PART_COUNT:
		*(uint64_t *)into = wm_get_varint(in);
		break;
	case PART_SUM:
		return wm_decimal_sum_decode(into, in);
	case PART_SQUARES:
		return wm_square_sum_decode(into, in);
	case PART_MIN:
	case PART_MAX:
		value = kept_decode(in);
		if (value.kind != WM_KIND_NULL) {
			wm_reading_take(&reading, &value);
			extreme_take(into, arena, &reading, 1);
		}
		break;
	case PART_FIRST:
	case PART_LAST:
		value = kept_decode(in);
		if (value.kind != WM_KIND_NULL)
			first_add(into, arena, &value, wm_get_i64(in));
		break;
	case PARTS_COUNT:
		assert(false);
	}
	return !in->failed;
}

void
wm_agg_cell_encode(const struct wm_agg *agg, const void *cell, struct wm_buf *out)
{
	wm_put_varint(out, rows_of(cell));
	for (size_t i = 0; i < agg->columns_count; i++) {
		const struct column *column = &agg->columns[i];

		for (enum part part = 0; part < PARTS_COUNT; part++)
			if (column->parts & HAS(part))
				part_encode(part, part_of(column, cell, part), out);
	}
}

bool
wm_agg_cell_decode(const struct wm_agg *agg, void *cell, struct wm_arena *arena, struct wm_get *in)
{
	wm_agg_cell_init(agg, cell);
	*(uint64_t *)cell = wm_get_varint(in);
	for (size_t i = 0; i < agg->columns_count; i++) {
		const struct column *column = &agg->columns[i];

		for (enum part part = 0; part < PARTS_COUNT; part++)
			if ((column->parts & HAS(part)) && !part_decode(part, part_in(column, cell, part), arena, in))
				return false;
		if ((column->parts & HAS(PART_COUNT)) && values_of(column, cell) > rows_of(cell))
			wm_get_fail(in);
	}
	return !in->failed;
}

void
wm_agg_fingerprint(const struct wm_agg *agg, struct wm_buf *out)
{
	wm_buf_add_text(out, "count");
	for (size_t i = 0; i < agg->columns_count; i++) {
		const struct column *column = &agg->columns[i];

		for (enum part part = 0; part < PARTS_COUNT; part++) {
			if ((column->parts & HAS(part)) == 0)
				continue;
			wm_buf_addf(out, ",%s:", parts[part].name);
			wm_buf_add(out, column->text.data, column->text.len);
		}
	}
}
