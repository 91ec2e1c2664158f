/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pairs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/band.h"
#include "cmd/outputs.h"
#include "cmd/passing.h"
#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/record/cut.h"
#include "lib/record/fields.h"
#include "lib/record/stamps.h"

/*
 * A row that is kept begins with the length of what it adds to a row of the result; this: it is kept as it came, behind the length of that,
 * and a right row that may stand alone has its keys behind it.
 */
#define KEPT_WHOLE UINT32_MAX

/* Of such a length: it adds members that the first record of its side did not have, which may be called as others. A record is shorter. */
#define KEPT_MORE (UINT32_C(1) << 31)
static_assert(WM_RECORD_BYTES_HIGHEST < KEPT_MORE - 1, "");

/* Beside the kind of a key that is kept there: its text stands for a missing value. */
#define KEY_IS_MISSING 0x80

/* A key as its row says it. */
struct key {
	struct wm_value said;
	bool is_missing; /* that stands for a missing value */
};

struct side {
	struct stream *stream;
	struct wm_columns *columns; /* of its records; NULL: not known yet, or it ended without any */
	struct wm_fields fields;
	size_t told_count;     /* of the columns, those that the result has */
	bool *is_left_out;     /* of each of these */
	struct wm_span *names; /* of each, in the result; owned */
	size_t names_count;    /* that are in the result */
	bool is_whole;         /* its lines are what the result shows, as they are */
	struct wm_span *keys;  /* unescaped; owned */
	size_t keys_count;
	struct wm_buf
		absent; /* what the result shows where the side has no row; of the left that depends on the keys */
};

struct pairs {
	struct pairs_options options;
	struct outputs *outputs;
	struct side sides[WM_JOIN_SIDES];
	struct wm_row_format format; /* of the result */
	bool is_begun;
	struct wm_span *names; /* of the result; borrowed from the sides */
	size_t names_count;
	struct wm_buf kept;
	struct wm_buf line; /* of the result */
	struct wm_buf name;
	struct wm_buf part;    /* of a line */
	struct wm_buf waiting; /* rows that came before the result could begin */
	struct wm_cut cut;
	struct wm_buf *said; /* of a row that goes into a table */
	struct wm_value *values;
};

static void
take_keys(struct side *side, const char *list)
{
	struct wm_span rest = wm_span_of(list), part;
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	while (wm_list_next(&rest, ',', &part)) {
		wm_buf_reset(&text);
		wm_list_unescape(part, &text);
		side->keys = wm_reallocarray(side->keys, side->keys_count + 1, sizeof(side->keys[0]));
		side->keys[side->keys_count++] = wm_span(wm_memdup(text.data, text.len), text.len);
	}
	wm_buf_release(&text);
}

struct pairs *
pairs_open(const struct pairs_options *options)
{
	struct pairs *p = wm_calloc(1, sizeof(*p));

	p->options = *options;
	p->outputs = stream_outputs(options->streams[0]);
	for (size_t i = 0; i < WM_JOIN_SIDES; i++) {
		p->sides[i].stream = options->streams[i];
		if (options->keys[i] != NULL)
			take_keys(&p->sides[i], options->keys[i]);
		wm_buf_init(&p->sides[i].absent, WM_BUF_UNBOUNDED);
	}
	wm_buf_init(&p->waiting, WM_BUF_UNBOUNDED);
	wm_buf_init(&p->kept, WM_BUF_UNBOUNDED);
	wm_buf_init(&p->line, WM_BUF_UNBOUNDED);
	wm_buf_init(&p->name, WM_BUF_UNBOUNDED);
	wm_buf_init(&p->part, WM_BUF_UNBOUNDED);
	return p;
}

static void
free_texts(struct wm_span *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((void *)(uintptr_t)texts[i].data);
	free(texts);
}

void
pairs_close(struct pairs *p)
{
	for (size_t i = 0; i < WM_JOIN_SIDES; i++) {
		struct side *side = &p->sides[i];

		if (side->columns != NULL)
			wm_fields_release(&side->fields);
		free_texts(side->names, side->told_count);
		free_texts(side->keys, side->keys_count);
		free(side->is_left_out);
		wm_buf_release(&side->absent);
	}
	for (size_t i = 0; p->said != NULL && i < p->names_count; i++)
		wm_buf_release(&p->said[i]);
	free(p->said);
	free(p->values);
	free(p->names);
	wm_cut_release(&p->cut);
	wm_buf_release(&p->waiting);
	wm_buf_release(&p->kept);
	wm_buf_release(&p->line);
	wm_buf_release(&p->name);
	wm_buf_release(&p->part);
	free(p);
}

/* The number of a side's key of that name, if the other side's is called the same: it is shown once. */
static bool
find_shared_key(const struct pairs *p, struct wm_span name, size_t *key)
{
	const struct side *left = &p->sides[WM_JOIN_LEFT], *right = &p->sides[WM_JOIN_RIGHT];

	for (*key = 0; *key < left->keys_count; (*key)++)
		if (wm_span_equal(left->keys[*key], name) && wm_span_equal(right->keys[*key], name))
			return true;
	return false;
}

static bool
has_column(const struct side *side, struct wm_span name)
{
	size_t column;

	return side->columns != NULL && wm_columns_find(side->columns, name, &column) && column < side->told_count &&
		!side->is_left_out[column];
}

static bool
is_left_out(const struct pairs *p, enum wm_join_side number, struct wm_span name)
{
	size_t key;

	if (wm_span_is(name, BAND_WATERMARK) || (p->options.is_stamped && wm_span_is(name, BAND_TIME)))
		return true;
	/* Of a left that has no columns the key is not shown. */
	return number == WM_JOIN_RIGHT && p->sides[WM_JOIN_LEFT].columns != NULL && find_shared_key(p, name, &key);
}

/* What a column is called in the result, appended. */
static void
put_name(const struct pairs *p, enum wm_join_side number, struct wm_span name, struct wm_buf *out)
{
	size_t key;
	bool is_shared = find_shared_key(p, name, &key);

	if (!p->options.is_left_alone && !is_shared && has_column(&p->sides[1 - number], name))
		wm_buf_add_text(out, p->options.prefixes[number]);
	wm_buf_add(out, name.data, name.len);
}

/* The columns of a side are known: which of them the result has. */
static void
learn_columns(struct pairs *p, enum wm_join_side number)
{
	struct side *side = &p->sides[number];
	struct passing *passing = stream_passing(side->stream);
	const struct wm_row_format *layout = passing_layout(passing);

	side->columns = passing_columns(passing, &side->told_count);
	wm_fields_init(&side->fields, side->columns);
	side->is_left_out = wm_calloc(side->told_count, sizeof(side->is_left_out[0]));
	side->is_whole = layout->format == p->format.format && layout->delimiter == p->format.delimiter;
	for (size_t i = 0; i < side->told_count; i++) {
		side->is_left_out[i] = is_left_out(p, number, side->columns->names[i]);
		side->is_whole = side->is_whole && !side->is_left_out[i];
		side->names_count += !side->is_left_out[i];
	}
}

/* Whose columns the result has. */
static size_t
sides_count(const struct pairs *p)
{
	return p->options.is_left_alone ? 1 : WM_JOIN_SIDES;
}

/* The names of a side's columns in the result; those of both sides are known. */
static void
name_columns(struct pairs *p, enum wm_join_side number)
{
	struct side *side = &p->sides[number];
	struct wm_buf name;

	wm_buf_init(&name, WM_BUF_UNBOUNDED);
	side->names = wm_calloc(side->told_count, sizeof(side->names[0]));
	for (size_t i = 0; i < side->told_count; i++) {
		wm_buf_reset(&name);
		put_name(p, number, side->columns->names[i], &name);
		side->names[i] = wm_span(wm_memdup(name.data, name.len), name.len);
		if (p->format.format == WM_FORMAT_NDJSON && !wm_span_equal(side->names[i], side->columns->names[i]))
			side->is_whole = false;
	}
	wm_buf_release(&name);
}

/* Whether values of a side, which are texts, are to be told apart from numbers and null in the result. */
static bool
gains_types(const struct pairs *p, const struct side *side)
{
	return side->columns->format.format != WM_FORMAT_NDJSON && p->format.format == WM_FORMAT_NDJSON;
}

/* A value of a side as the format of the result has it. */
static struct wm_value
told(const struct pairs *p, const struct side *side, struct wm_value value)
{
	return !gains_types(p, side) || value.kind == WM_KIND_NULL ? value : wm_value_from_csv(value.text);
}

/* A side's columns without a value; keys, where given, are those of the other side. */
static void
put_absent(const struct pairs *p, enum wm_join_side number, const struct key *keys, struct wm_buf *out)
{
	const struct side *side = &p->sides[number], *other = &p->sides[1 - number];
	size_t written = 0, key;

	for (size_t i = 0; i < side->told_count; i++) {
		struct wm_value value = { wm_span(NULL, 0), WM_KIND_NULL };

		if (side->is_left_out[i])
			continue;
		if (keys != NULL && find_shared_key(p, side->columns->names[i], &key) &&
			!(keys[key].is_missing && gains_types(p, other)))
			value = told(p, other, keys[key].said);
		if (p->format.format != WM_FORMAT_NDJSON) {
			wm_row_put(out, &p->format, written++, wm_span(NULL, 0), &value);
			continue;
		}
		if (written++ > 0)
			wm_buf_add_byte(out, ',');
		wm_json_put_string(out, side->names[i]);
		wm_buf_add_byte(out, ':');
		wm_json_put_value(out, &value);
	}
}

static int
compare_names(const void *a, const void *b)
{
	return wm_span_compare(*(const struct wm_span *)a, *(const struct wm_span *)b);
}

/* Two columns of one name would make a result that nobody can read by name. A side that has a name twice has it in the result too. */
static void
check_names(const struct pairs *p)
{
	size_t left_count = p->sides[WM_JOIN_LEFT].names_count;
	struct wm_span *sorted;

	if (p->options.is_left_alone || left_count == 0 || left_count == p->names_count)
		return;
	sorted = wm_reallocarray(NULL, left_count, sizeof(sorted[0]));
	memcpy(sorted, p->names, left_count * sizeof(sorted[0]));
	qsort(sorted, left_count, sizeof(sorted[0]), compare_names);
	for (size_t i = left_count; i < p->names_count; i++)
		if (bsearch(&p->names[i], sorted, left_count, sizeof(sorted[0]), compare_names) != NULL)
			cli_misuse("--prefix: the result would have two columns '%.*s': choose prefixes with --prefix "
				   "L,R, as in left_,other_",
				(int)p->names[i].len, p->names[i].data);
	free(sorted);
}

/* The columns of both sides are known, or one has ended without any: the result can begin. */
static void
begin(struct pairs *p)
{
	static const struct wm_span stamps[] = { { BAND_TIME, sizeof(BAND_TIME) - 1 },
		{ BAND_WATERMARK, sizeof(BAND_WATERMARK) - 1 } };
	size_t count = 0;

	p->is_begun = true;
	for (size_t i = 0; i < sides_count(p); i++)
		count += p->sides[i].names_count;
	p->names = wm_calloc(count + 2, sizeof(p->names[0]));
	for (size_t side = 0; side < sides_count(p); side++)
		for (size_t i = 0; i < p->sides[side].told_count; i++)
			if (!p->sides[side].is_left_out[i])
				p->names[p->names_count++] = p->sides[side].names[i];
	for (size_t i = 0; p->options.is_stamped && i < 2; i++)
		p->names[p->names_count++] = stamps[i];
	check_names(p);
	p->values = wm_calloc(p->names_count, sizeof(p->values[0]));
	p->said = wm_calloc(p->names_count, sizeof(p->said[0]));
	for (size_t i = 0; i < p->names_count; i++)
		wm_buf_init(&p->said[i], WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < sides_count(p); i++)
		put_absent(p, (enum wm_join_side)i, NULL, &p->sides[i].absent);
	outputs_begin_rows(p->outputs, p->names, p->names_count);
}

/* Whether a side has a name in the result already, or may have it from another member. */
static bool
is_taken(const struct side *side, struct wm_span column, struct wm_span name)
{
	size_t other;

	for (size_t i = 0; i < side->told_count; i++)
		if (!side->is_left_out[i] && wm_span_equal(side->names[i], name))
			return true;
	return !wm_span_equal(column, name) && wm_columns_find(side->columns, name, &other);
}

/* Puts a prefix before a name. */
static void
put_before(struct wm_buf *name, const char *prefix)
{
	struct wm_buf longer;

	wm_buf_init(&longer, WM_BUF_UNBOUNDED);
	wm_buf_add_text(&longer, prefix);
	wm_buf_add(&longer, name->data, name->len);
	wm_buf_release(name);
	*name = longer;
}

/* A record field by field; true if it has members that the first one did not have. */
static bool
put_fields(struct pairs *p, enum wm_join_side number, struct wm_span line, struct wm_buf *out)
{
	struct side *side = &p->sides[number];
	struct wm_fields *fields = &side->fields;
	bool is_json = p->format.format == WM_FORMAT_NDJSON;
	/* A value from TSV stays as it was written there. */
	bool is_tsv = p->format.format == WM_FORMAT_TSV && side->columns->format.format == WM_FORMAT_TSV;
	size_t written = 0;
	bool has_more = false;

	wm_fields_split(fields, line);
	/* Members that the first record did not have have a place in NDJSON alone. */
	size_t count = is_json ? fields->count : side->told_count;
	for (size_t i = 0; i < count; i++) {
		struct wm_span column = side->columns->names[i];
		struct wm_value value =
			gains_types(p, side) ? told(p, side, wm_fields_value(fields, i)) : wm_fields_at(fields, i);

		if (i < side->told_count ? side->is_left_out[i] : is_left_out(p, number, column))
			continue;
		if (!is_json && is_tsv) {
			wm_row_put_raw(out, &p->format, written++, fields->fields[i].raw);
			continue;
		}
		if (!is_json) {
			wm_row_put(out, &p->format, written++, wm_span(NULL, 0), &value);
			continue;
		}
		if (fields->fields[i].raw.data == NULL)
			continue;
		if (written++ > 0)
			wm_buf_add_byte(out, ',');
		wm_buf_reset(&p->name);
		put_name(p, number, column, &p->name);
		while (i >= side->told_count && is_taken(side, column, wm_buf_span(&p->name)))
			put_before(&p->name, p->options.prefixes[number]);
		wm_json_put_string(out, wm_buf_span(&p->name));
		wm_buf_add_byte(out, ':');
		wm_json_put_value(out, &value);
		has_more |= i >= side->told_count;
	}
	return has_more;
}

/* What stands between the braces of an object. */
static struct wm_span
members_of(struct wm_span line)
{
	const char *begin = memchr(line.data, '{', line.len), *end = memrchr(line.data, '}', line.len);

	return wm_span(begin + 1, (size_t)(end - begin - 1));
}

/*
 * A record as the result has it: as it stands where all of it is in there, else field by field. True if it has members that the first one
 * of its side did not have.
 */
static bool
put_record(struct pairs *p, enum wm_join_side number, struct wm_span line, struct wm_buf *out)
{
	struct side *side = &p->sides[number];
	bool is_json = p->format.format == WM_FORMAT_NDJSON, has_more = false;

	if (!side->is_whole)
		return put_fields(p, number, line, out);
	struct wm_span whole = is_json ? members_of(line) : wm_cut_content(line);
	wm_buf_add(out, whole.data, whole.len);
	if (is_json && !p->options.is_left_alone) {
		wm_fields_split(&side->fields, line);
		for (size_t i = side->told_count; i < side->fields.count && !has_more; i++)
			has_more = side->fields.fields[i].raw.data != NULL;
	}
	return has_more;
}

/* What comes behind something that has been written already. */
static void
put_part(struct pairs *p, struct wm_span part, size_t columns_count, bool *has_any)
{
	bool is_json = p->format.format == WM_FORMAT_NDJSON;

	if (is_json ? part.len == 0 : columns_count == 0)
		return;
	if (*has_any)
		wm_buf_add_byte(&p->line, is_json ? ',' : p->format.delimiter);
	wm_buf_add(&p->line, part.data, part.len);
	*has_any = true;
}

struct pairs_kept
pairs_kept(struct wm_span bytes)
{
	struct pairs_kept kept = { 0 };
	struct wm_get in;
	uint32_t len;

	wm_get_init(&in, bytes);
	struct wm_span head = wm_get_bytes(&in, sizeof(len));
	if (!in.failed) {
		memcpy(&len, head.data, sizeof(len));
		kept.is_whole = len == KEPT_WHOLE;
		kept.has_more = !kept.is_whole && (len & KEPT_MORE) != 0;
		if (kept.has_more)
			len -= KEPT_MORE;
		kept.text = kept.is_whole ? wm_get_span(&in) : wm_get_bytes(&in, len);
		kept.rest = wm_get_bytes(&in, wm_get_left(&in));
	}
	kept.failed = in.failed;
	return kept;
}

/* What the result shows of the left beside a right row that was kept as it came; rest: what stands behind that. */
static struct wm_span
absent_of(struct pairs *p, struct wm_span rest)
{
	struct key keys[WM_KEYS_MAX];
	struct wm_get in;

	wm_get_init(&in, rest);
	for (size_t i = 0; i < p->sides[WM_JOIN_RIGHT].keys_count; i++) {
		uint8_t kind = wm_get_u8(&in);

		keys[i].is_missing = (kind & KEY_IS_MISSING) != 0;
		keys[i].said.kind = (enum wm_kind)(kind & ~KEY_IS_MISSING);
		keys[i].said.text = wm_get_span(&in);
	}
	wm_buf_reset(&p->part);
	put_absent(p, WM_JOIN_LEFT, keys, &p->part);
	return wm_buf_span(&p->part);
}

/* What a side adds to a row; true if that has members that the first record of the side did not have. */
static bool
put_side(struct pairs *p, enum wm_join_side number, const struct wm_join_row *row, bool *has_any)
{
	const struct side *side = &p->sides[number];
	struct wm_span part = wm_buf_span(&side->absent);
	bool has_more = false;

	if (!row->has[number] && number == WM_JOIN_LEFT && p->options.is_left_optional) {
		struct pairs_kept right = pairs_kept(row->bytes[WM_JOIN_RIGHT]);

		part = right.is_whole ? absent_of(p, right.rest) : right.rest;
	} else if (row->has[number]) {
		struct pairs_kept own = pairs_kept(row->bytes[number]);

		part = own.text;
		has_more = own.has_more;
		if (own.is_whole) {
			wm_buf_reset(&p->part);
			has_more = put_record(p, number, own.text, &p->part);
			part = wm_buf_span(&p->part);
		}
	}
	put_part(p, part, side->names_count, has_any);
	return has_more;
}

/* Members of a row that is put together, taken apart again. */
struct members {
	struct wm_buf object;
	struct wm_columns columns;
	struct wm_fields fields;
};

static void
take_members(struct members *members, const struct wm_row_format *format, struct wm_span text)
{
	size_t begin = text.len > 0 && text.data[0] == ',';

	wm_buf_init(&members->object, WM_BUF_UNBOUNDED);
	wm_buf_add_byte(&members->object, '{');
	wm_buf_add(&members->object, text.data + begin, text.len - begin);
	wm_buf_add_text(&members->object, "}\n");
	wm_columns_init(&members->columns, format);
	wm_fields_init(&members->fields, &members->columns);
	wm_fields_split(&members->fields, wm_buf_span(&members->object));
}

static void
release_members(struct members *members)
{
	wm_fields_release(&members->fields);
	wm_columns_release(&members->columns);
	wm_buf_release(&members->object);
}

/* Puts the members of a side, each under a name that the row does not have yet: it gets a prefix as one that both sides have from the first. */
static void
put_members(struct pairs *p, enum wm_join_side number, const struct members *own, const struct members *other,
	struct wm_columns *taken)
{
	const char *const *prefixes = p->options.prefixes;
	const char *again = prefixes[number][0] != '\0' ? prefixes[number] : prefixes[1 - number];
	size_t column;

	for (size_t i = 0; i < own->fields.count; i++) {
		struct wm_span name = own->columns.names[i];

		wm_buf_reset(&p->name);
		if (wm_columns_find(&other->columns, name, &column))
			wm_buf_add_text(&p->name, prefixes[number]);
		wm_buf_add(&p->name, name.data, name.len);
		while (wm_columns_find(taken, wm_buf_span(&p->name), &column))
			put_before(&p->name, again);
		if (taken->count > 0)
			wm_buf_add_byte(&p->line, ',');
		wm_columns_append(taken, wm_buf_span(&p->name));
		wm_json_put_string(&p->line, wm_buf_span(&p->name));
		wm_buf_add_byte(&p->line, ':');
		wm_buf_add(&p->line, own->fields.fields[i].raw.data, own->fields.fields[i].raw.len);
	}
}

/*
 * Puts both sides of an object anew, with names told apart: a member that the first record of its side did not have may be called as one of
 * the other side.
 */
static void
tell_members_apart(struct pairs *p, size_t left_at, size_t right_at)
{
	struct wm_span line = wm_buf_span(&p->line);
	struct members left, right;
	struct wm_columns taken;

	take_members(&left, &p->format, wm_span(line.data + left_at, right_at - left_at));
	take_members(&right, &p->format, wm_span(line.data + right_at, line.len - right_at));
	wm_columns_init(&taken, &p->format);
	p->line.len = left_at;
	put_members(p, WM_JOIN_LEFT, &left, &right, &taken);
	put_members(p, WM_JOIN_RIGHT, &right, &left, &taken);
	wm_columns_release(&taken);
	release_members(&left);
	release_members(&right);
}

/* A row of CSV on its way to a table. */
static void
put_into_table(struct pairs *p)
{
	const struct wm_dialect dialect = wm_row_dialect(&p->format);

	wm_dialect_cut(&p->cut, dialect, wm_cut_content(wm_buf_span(&p->line)));
	for (size_t i = 0; i < p->names_count; i++) {
		struct wm_span text = i < p->cut.count ? p->cut.fields[i] : wm_span(NULL, 0);

		p->values[i] = (struct wm_value){ wm_dialect_read(dialect, text, &p->said[i]), WM_KIND_TEXT };
	}
	outputs_put_row(p->outputs, p->values);
}

static void
put_row(struct pairs *p, const struct wm_join_row *row, const struct wm_value *stamps)
{
	bool is_json = p->format.format == WM_FORMAT_NDJSON, has_any = false;

	wm_buf_reset(&p->line);
	if (is_json)
		wm_buf_add_byte(&p->line, '{');
	size_t left_at = p->line.len;
	bool has_more = put_side(p, WM_JOIN_LEFT, row, &has_any);
	if (!p->options.is_left_alone) {
		size_t right_at = p->line.len;

		has_more |= put_side(p, WM_JOIN_RIGHT, row, &has_any);
		if (is_json && has_more)
			tell_members_apart(p, left_at, right_at);
	}
	for (size_t i = 0; p->options.is_stamped && i < 2; i++) {
		wm_buf_reset(&p->part);
		if (is_json) {
			wm_json_put_string(&p->part, p->names[p->names_count - 2 + i]);
			wm_buf_add_byte(&p->part, ':');
			wm_json_put_value(&p->part, &stamps[i]);
		} else {
			wm_row_put(&p->part, &p->format, 0, wm_span(NULL, 0), &stamps[i]);
		}
		put_part(p, wm_buf_span(&p->part), 1, &has_any);
	}
	if (is_json)
		wm_buf_add_byte(&p->line, '}');
	else if (p->line.len == 0 && p->format.format != WM_FORMAT_TSV)
		wm_buf_add_text(&p->line, "\"\""); /* else the row would be an empty line */
	wm_buf_add_text(&p->line, wm_row_line_end(&p->format, wm_buf_span(&p->line)));
	if (p->options.common->output_format == CLI_OUTPUT_TABLE)
		put_into_table(p);
	else
		outputs_put_text(p->outputs, wm_buf_span(&p->line));
}

static void
wait_for_columns(struct pairs *p, const struct wm_join_row *row, const struct wm_value *stamps)
{
	static const struct wm_value none = { { NULL, 0 }, WM_KIND_NULL };

	for (size_t i = 0; i < WM_JOIN_SIDES; i++) {
		wm_put_u8(&p->waiting, row->has[i]);
		wm_put_span(&p->waiting, row->has[i] ? row->bytes[i] : none.text);
	}
	for (size_t i = 0; i < 2; i++) {
		const struct wm_value *stamp = p->options.is_stamped ? &stamps[i] : &none;

		wm_put_u8(&p->waiting, (uint8_t)stamp->kind);
		wm_put_span(&p->waiting, stamp->text);
	}
}

bool
pairs_next_waiting(struct wm_get *in, struct wm_join_row *row, struct wm_value stamps[2])
{
	if (wm_get_left(in) == 0)
		return false;
	*row = (struct wm_join_row){ 0 };
	for (size_t i = 0; i < WM_JOIN_SIDES; i++) {
		row->has[i] = wm_get_u8(in) != 0;
		row->bytes[i] = wm_get_span(in);
	}
	for (size_t i = 0; i < 2; i++) {
		stamps[i].kind = (enum wm_kind)wm_get_u8(in);
		stamps[i].text = wm_get_span(in);
	}
	return !in->failed;
}

static void
put_waiting(struct pairs *p)
{
	struct wm_value stamps[2];
	struct wm_join_row row;
	struct wm_get in;

	wm_get_init(&in, wm_buf_span(&p->waiting));
	while (pairs_next_waiting(&in, &row, stamps))
		put_row(p, &row, stamps);
	wm_buf_release(&p->waiting);
	wm_buf_init(&p->waiting, WM_BUF_UNBOUNDED);
}

static bool
has_told_columns(const struct side *side)
{
	size_t count = 0;

	if (stream_has_layout(side->stream))
		passing_columns(stream_passing(side->stream), &count);
	return count != 0;
}

/* Whether the columns of a side are known, or it has none. One that is kept for another run may have some in that. */
static bool
is_known(const struct pairs *p, const struct side *side, bool *has_columns)
{
	bool is_kept = p->options.common->checkpoint != NULL && stream_is_held(side->stream);

	*has_columns = has_told_columns(side);
	return *has_columns || (stream_has_ended(side->stream) && !is_kept);
}

/* The result begins as soon as the sides are known. */
static void
learn(struct pairs *p)
{
	bool has_columns[WM_JOIN_SIDES];

	if (p->is_begun)
		return;
	for (size_t i = 0; i < sides_count(p); i++)
		if (!is_known(p, &p->sides[i], &has_columns[i]))
			return;
	p->format = outputs_row_format(p->outputs);
	for (size_t i = 0; i < sides_count(p); i++)
		if (has_columns[i])
			learn_columns(p, (enum wm_join_side)i);
	for (size_t i = 0; i < sides_count(p); i++)
		name_columns(p, (enum wm_join_side)i);
	begin(p);
	put_waiting(p);
}

bool
pairs_needs_left(const struct pairs *p)
{
	const struct side *left = &p->sides[WM_JOIN_LEFT];

	return left->columns == NULL && !stream_has_ended(left->stream) && !has_told_columns(left);
}

/* The keys of a right row that may stand alone. */
static void
say_keys(const struct side *side, const struct wm_value *keys, struct key *said)
{
	for (size_t i = 0; i < side->keys_count; i++) {
		said[i].said = stream_said(side->stream, i);
		said[i].is_missing = keys[i].kind == WM_KIND_NULL && said[i].said.kind != WM_KIND_NULL;
	}
}

struct wm_span
pairs_keep(struct pairs *p, enum wm_join_side number, const struct wm_value *keys)
{
	struct side *side = &p->sides[number];
	struct wm_span line = stream_line(side->stream);
	struct wm_buf *kept = &p->kept;
	uint32_t len = KEPT_WHOLE;
	bool may_be_alone = p->options.is_left_optional && number == WM_JOIN_RIGHT;
	struct key said[WM_KEYS_MAX];

	learn(p);
	wm_buf_reset(kept);
	if (p->options.is_left_alone && number == WM_JOIN_RIGHT)
		return wm_buf_span(kept);
	wm_buf_add(kept, (const char *)&len, sizeof(len));
	if (may_be_alone)
		say_keys(side, keys, said);
	/* Before both sides are known a name may yet need a prefix. */
	if (!p->is_begun) {
		wm_put_span(kept, line);
		for (size_t i = 0; may_be_alone && i < side->keys_count; i++) {
			wm_put_u8(kept, (uint8_t)(said[i].said.kind | (said[i].is_missing ? KEY_IS_MISSING : 0)));
			wm_put_span(kept, said[i].said.text);
		}
		return wm_buf_span(kept);
	}
	bool has_more = put_record(p, number, line, kept);
	len = (uint32_t)(kept->len - sizeof(len)) | (has_more ? KEPT_MORE : 0);
	memcpy(kept->data, &len, sizeof(len));
	if (may_be_alone)
		put_absent(p, WM_JOIN_LEFT, said, kept);
	return wm_buf_span(kept);
}

void
pairs_put(struct pairs *p, const struct wm_join_row *row, const struct wm_value *stamps)
{
	learn(p);
	if (p->is_begun)
		put_row(p, row, stamps);
	else
		wait_for_columns(p, row, stamps);
}

bool
pairs_has_waiting(const struct pairs *p)
{
	return p->waiting.len != 0;
}

void
pairs_encode(const struct pairs *p, struct wm_buf *out)
{
	if (p->waiting.len != 0)
		wm_put_span(out, wm_buf_span(&p->waiting));
}

struct wm_span
pairs_get_waiting(struct wm_get *in)
{
	return wm_get_left(in) == 0 ? wm_span(NULL, 0) : wm_get_span(in);
}

bool
pairs_decode(struct pairs *p, struct wm_get *in)
{
	struct wm_span waiting = pairs_get_waiting(in);
	struct wm_value stamps[2];
	struct wm_join_row row;
	struct wm_get rest;

	wm_get_init(&rest, waiting);
	while (pairs_next_waiting(&rest, &row, stamps))
		for (size_t i = 0; i < WM_JOIN_SIDES; i++)
			if (row.has[i] && pairs_kept(row.bytes[i]).failed)
				return false;
	if (waiting.len != 0)
		wm_buf_add(&p->waiting, waiting.data, waiting.len);
	return !in->failed && !rest.failed;
}

void
pairs_put_punctuation(struct pairs *p, const struct wm_value *watermark)
{
	/* It may be the first that comes behind what an earlier run has written. */
	learn(p);
	if (p->is_begun)
		outputs_put_lone(p->outputs, p->names_count - 1, watermark);
}

void
pairs_end(struct pairs *p)
{
	learn(p);
}
