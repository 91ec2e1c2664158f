/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/partial.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/agg/function.h"
#include "lib/agg/part.h"
#include "lib/agg/plan.h"
#include "lib/base/codec.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/base/shown.h"

#define VERSION "1"

/* What stands before bytes. */
#define BYTES_MARK '~'

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char hex_digits[] = "0123456789ABCDEF";

static const char kind_letters[] = {
	[WM_KIND_TEXT] = 't', [WM_KIND_NUMBER] = 'n', [WM_KIND_BOOL] = 'b', [WM_KIND_JSON] = 'j'
};

/* ---- bytes and texts ---- */

static void
put_bytes(struct wm_span bytes, struct wm_buf *out)
{
	const unsigned char *at = (const unsigned char *)bytes.data;

	wm_buf_add_byte(out, BYTES_MARK);
	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		uint32_t group =
			(uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0);

		for (size_t j = 0; j < (left < 3 ? left + 1 : 4); j++)
			wm_buf_add_byte(out, base64_digits[group >> (18 - 6 * j) & 63]);
	}
}

/* 64 for what is no digit. */
static uint32_t
base64_value(char digit)
{
	const char *at = digit == '\0' ? NULL : strchr(base64_digits, digit);

	return at == NULL ? 64 : (uint32_t)(at - base64_digits);
}

/* Appended to out; false if the text is not what put_bytes() writes. */
static bool
take_bytes(struct wm_span text, struct wm_buf *out)
{
	uint32_t group = 0;
	unsigned bits = 0;

	if (text.len == 0 || text.data[0] != BYTES_MARK || text.len % 4 == 2)
		return false;
	for (size_t i = 1; i < text.len; i++) {
		uint32_t value = base64_value(text.data[i]);

		if (value == 64)
			return false;
		group = group << 6 | value;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			wm_buf_add_byte(out, (char)(group >> bits));
			group &= (1u << bits) - 1;
		}
	}
	return group == 0;
}

static bool
is_plain(char byte)
{
	return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
		(byte != '\0' && strchr("-._/+", byte) != NULL);
}

static void
put_value(const struct wm_kept *kept, struct wm_buf *out)
{
	struct wm_value value = wm_kept_value(kept);

	if (value.kind == WM_KIND_NULL)
		return;
	wm_buf_add_byte(out, kind_letters[value.kind]);
	for (size_t i = 0; i < value.text.len; i++) {
		unsigned char byte = (unsigned char)value.text.data[i];

		if (is_plain(value.text.data[i])) {
			wm_buf_add_byte(out, value.text.data[i]);
		} else {
			wm_buf_add_byte(out, '%');
			wm_buf_add_byte(out, hex_digits[byte >> 4]);
			wm_buf_add_byte(out, hex_digits[byte & 15]);
		}
	}
}

/* Its text stands in scratch. False if the text is not what put_value() writes of a value. */
static bool
take_value(struct wm_span text, struct wm_buf *scratch, struct wm_value *value)
{
	value->kind = WM_KIND_NULL;
	for (enum wm_kind kind = WM_KIND_TEXT; kind <= WM_KIND_JSON; kind++)
		if (text.len > 1 && text.data[0] == kind_letters[kind])
			value->kind = kind;
	for (size_t i = 1; i < text.len; i++) {
		const char *high, *low;

		if (is_plain(text.data[i])) {
			wm_buf_add_byte(scratch, text.data[i]);
			continue;
		}
		if (text.data[i] != '%' || text.len - i < 3 || memchr(text.data + i, '\0', 3) != NULL)
			return false;
		high = strchr(hex_digits, text.data[i + 1]);
		low = strchr(hex_digits, text.data[i + 2]);
		if (high == NULL || low == NULL)
			return false;
		wm_buf_add_byte(scratch, (char)((high - hex_digits) << 4 | (low - hex_digits)));
		i += 2;
	}
	value->text = wm_buf_span(scratch);
	return value->kind != WM_KIND_NULL;
}

static void
put_count(uint64_t count, struct wm_buf *out)
{
	wm_integer_print(count, out);
}

/* An exact number that is whole, as put_count() and event times are. */
static bool
take_whole(struct wm_span text, struct wm_decimal *number)
{
	return wm_decimal_parse(text, number) && number->is_exact && number->fraction == 0;
}

static bool
take_count(struct wm_span text, uint64_t *count)
{
	struct wm_decimal number;

	if (!take_whole(text, &number) || number.whole < 0 || number.whole > UINT64_MAX)
		return false;
	*count = (uint64_t)number.whole;
	return true;
}

/* ---- writing ---- */

static void
put_encoded(enum wm_part part, const void *from, struct wm_buf *out)
{
	struct wm_buf bytes;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_part_encode(part, from, &bytes);
	put_bytes(wm_buf_span(&bytes), out);
	wm_buf_release(&bytes);
}

/* As a number where that reads back as the same sum. */
static void
put_sum(const struct wm_sum *sum, struct wm_buf *out)
{
	size_t begin = out->len;
	struct wm_decimal_sum value = wm_sum_value(sum);
	struct wm_decimal number;

	if (value.rest == 0 && value.rest_error == 0) {
		wm_decimal_sum_print(&value, out);
		if (wm_decimal_parse(wm_span(out->data + begin, out->len - begin), &number) && number.is_exact)
			return;
		out->len = begin;
	}
	put_encoded(WM_PART_SUM, sum, out);
}

static void
put_timed(const struct wm_timed *timed, struct wm_buf *out)
{
	if (timed->kept.kind == WM_KIND_NULL)
		return;
	wm_buf_addf(out, "%lld:", (long long)timed->event_time_us);
	put_value(&timed->kept, out);
}

static void
put_part(enum wm_part part, const void *from, struct wm_buf *out)
{
	switch (part) {
	case WM_PART_COUNT:
		put_count(*(const uint64_t *)from, out);
		break;
	case WM_PART_SUM:
		put_sum(from, out);
		break;
	case WM_PART_MIN:
	case WM_PART_MAX:
		put_value(&((const struct wm_extreme *)from)->kept, out);
		break;
	case WM_PART_FIRST:
	case WM_PART_LAST:
		put_timed(from, out);
		break;
	case WM_PART_SQUARES:
	case WM_PART_QUANTILE:
	case WM_PART_DISTINCT:
		put_encoded(part, from, out);
		break;
	case WM_PARTS_COUNT:
		assert(false);
	}
}

/* Whether the number of the branch's rows belongs to the state: it is all of it, or share's. */
static bool
has_rows(const struct wm_output *output)
{
	return output->measure == NULL || output->function->needs == WM_NEEDS_COMPARISON;
}

void
wm_agg_cell_print_state(const struct wm_agg *agg, const void *cell, size_t output, struct wm_buf *out)
{
	assert(output < agg->outputs_count);
	const struct wm_output *result = &agg->outputs[output];
	const struct wm_measure *measure = result->measure;

	wm_buf_add_text(out, VERSION ":");
	wm_buf_add(out, result->word.data, result->word.len);
	if (has_rows(result)) {
		wm_buf_add_byte(out, ':');
		put_count(*wm_branch_rows_of(result->branch, cell), out);
	}
	for (enum wm_part part = 0; measure != NULL && part < WM_PARTS_COUNT; part++) {
		if ((result->function->parts & WM_PART_BIT(part)) == 0)
			continue;
		wm_buf_add_byte(out, ':');
		put_part(part, wm_measure_part_of(measure, cell, part), out);
	}
}

/* ---- reading ---- */

static bool
fail(struct wm_span state, struct wm_err *err)
{
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	wm_shown(state, &text);
	wm_err_set(err, WM_ERR_DATA, "'%.*s' is no state of an aggregate: it must come from wm-window --partial",
		(int)text.len, text.data);
	wm_buf_release(&text);
	return false;
}

/* Cuts off the version and the function. */
static const struct wm_function *
take_head(struct wm_span state, struct wm_span *rest, struct wm_span *word, uint64_t *percent, struct wm_err *err)
{
	struct wm_span version;
	const struct wm_function *function;
	struct wm_err unknown;
	uint64_t number;

	*rest = state;
	wm_list_next(rest, ':', &version);
	if (!take_count(version, &number) || !wm_list_next(rest, ':', word)) {
		fail(state, err);
		return NULL;
	}
	if (!wm_span_is(version, VERSION)) {
		wm_err_set(err, WM_ERR_DATA, "a state of version %llu: this program reads version " VERSION,
			(unsigned long long)number);
		return NULL;
	}
	function = wm_function_find(*word, percent, &unknown);
	if (function == NULL || rest->data == NULL) {
		fail(state, err);
		return NULL;
	}
	return function;
}

struct wm_agg *
wm_agg_parse_states(const struct wm_span *names, const struct wm_span *states, size_t count, struct wm_err *err)
{
	struct wm_agg *agg = wm_plan_new(count);

	agg->is_of_states = true;
	for (size_t i = 0; i < count; i++) {
		struct wm_output *output = &agg->outputs[i];
		struct wm_span rest, word;

		output->function = take_head(states[i], &rest, &word, &output->percent, err);
		if (output->function == NULL) {
			wm_agg_free(agg);
			return NULL;
		}
		struct wm_branch *branch = wm_plan_branch(agg);
		output->branch = branch;
		output->word = wm_plan_keep(agg, word);
		output->name = wm_plan_keep(agg, names[i]);
		if (output->function->needs >= WM_NEEDS_COMPARISON) {
			output->measure = wm_plan_measure(agg, branch, 0);
			output->measure->parts = output->function->parts;
		}
		agg->outputs_count++;
	}
	wm_plan_lay_out(agg);
	return agg;
}

static bool
take_encoded(enum wm_part part, void *into, struct wm_arena *arena, struct wm_span text, struct wm_buf *scratch)
{
	struct wm_get in;

	if (!take_bytes(text, scratch))
		return false;
	wm_get_init(&in, wm_buf_span(scratch));
	return wm_part_decode(part, into, arena, &in) && wm_get_left(&in) == 0;
}

static bool
take_sum(struct wm_sum *sum, struct wm_arena *arena, struct wm_span text, struct wm_buf *scratch)
{
	struct wm_decimal number;

	if (text.len != 0 && text.data[0] == BYTES_MARK)
		return take_encoded(WM_PART_SUM, sum, arena, text, scratch);
	if (!wm_decimal_parse(text, &number) || !number.is_exact)
		return false;
	wm_sum_add(sum, arena, &number);
	return true;
}

static bool
take_extreme(struct wm_extreme *extreme, struct wm_arena *arena, struct wm_span text, struct wm_buf *scratch)
{
	struct wm_value value;
	struct wm_reading reading;

	if (text.len == 0)
		return true;
	if (!take_value(text, scratch, &value))
		return false;
	wm_reading_take(&reading, &value);
	wm_extreme_add(extreme, arena, &reading, 1);
	return true;
}

/* time is all of it where there is no value. */
static bool
take_timed(struct wm_timed *timed, struct wm_arena *arena, struct wm_span time, struct wm_span *rest,
	struct wm_buf *scratch)
{
	struct wm_decimal number;
	struct wm_span text;
	struct wm_value value;

	if (time.len == 0)
		return true;
	if (!take_whole(time, &number) || number.whole < INT64_MIN || number.whole > INT64_MAX ||
		!wm_list_next(rest, ':', &text) || !take_value(text, scratch, &value))
		return false;
	wm_first_add(timed, arena, &value, (int64_t)number.whole);
	return true;
}

/* The next part of a state, cut off *rest, into a part without values. */
static bool
take_part(enum wm_part part, void *into, struct wm_arena *arena, struct wm_span *rest, struct wm_buf *scratch)
{
	struct wm_span text;

	if (!wm_list_next(rest, ':', &text))
		return false;
	wm_buf_reset(scratch);
	switch (part) {
	case WM_PART_COUNT:
		return take_count(text, into);
	case WM_PART_SUM:
		return take_sum(into, arena, text, scratch);
	case WM_PART_MIN:
	case WM_PART_MAX:
		return take_extreme(into, arena, text, scratch);
	case WM_PART_FIRST:
	case WM_PART_LAST:
		return take_timed(into, arena, text, rest, scratch);
	case WM_PART_SQUARES:
	case WM_PART_QUANTILE:
	case WM_PART_DISTINCT:
		return take_encoded(part, into, arena, text, scratch);
	case WM_PARTS_COUNT:
		break;
	}
	return false;
}

/* The state, as a cell of its own. */
static bool
take_state(const struct wm_output *output, void *cell, struct wm_arena *arena, struct wm_span rest)
{
	struct wm_buf scratch;
	bool ok = true;

	wm_buf_init(&scratch, WM_BUF_UNBOUNDED);
	if (has_rows(output))
		ok = take_part(WM_PART_COUNT, wm_branch_rows(output->branch, cell), arena, &rest, &scratch);
	for (enum wm_part part = 0; output->measure != NULL && ok && part < WM_PARTS_COUNT; part++)
		if (output->measure->parts & WM_PART_BIT(part))
			ok = take_part(part, wm_measure_part(output->measure, cell, part), arena, &rest, &scratch);
	wm_buf_release(&scratch);
	return ok && rest.data == NULL;
}

/* Whether all that two cells count of an output can be counted together. */
static bool
counts_fit(const struct wm_output *output, const void *into, const void *from)
{
	const struct wm_measure *measure = output->measure;
	unsigned has = measure == NULL ? 0 : measure->parts;
	uint64_t sum;

	if (__builtin_add_overflow(
		    *wm_branch_rows_of(output->branch, into), *wm_branch_rows_of(output->branch, from), &sum))
		return false;
	if (has & WM_PART_BIT(WM_PART_COUNT)) {
		const uint64_t *a = wm_measure_part_of(measure, into, WM_PART_COUNT);
		const uint64_t *b = wm_measure_part_of(measure, from, WM_PART_COUNT);

		return !__builtin_add_overflow(*a, *b, &sum);
	}
	if (has & WM_PART_BIT(WM_PART_QUANTILE)) {
		const struct wm_quantile *a = wm_measure_part_of(measure, into, WM_PART_QUANTILE);
		const struct wm_quantile *b = wm_measure_part_of(measure, from, WM_PART_QUANTILE);

		return !__builtin_add_overflow(a->count, b->count, &sum);
	}
	return true;
}

static void
merge_output(const struct wm_output *output, void *into, struct wm_arena *arena, const void *from)
{
	*wm_branch_rows(output->branch, into) += *wm_branch_rows_of(output->branch, from);
	for (enum wm_part part = 0; output->measure != NULL && part < WM_PARTS_COUNT; part++)
		if (output->measure->parts & WM_PART_BIT(part))
			wm_part_merge(part, wm_measure_part(output->measure, into, part), arena,
				wm_measure_part_of(output->measure, from, part));
}

bool
wm_agg_cell_merge_state(const struct wm_agg *agg, void *cell, struct wm_arena *arena, size_t output,
	struct wm_span state, struct wm_err *err)
{
	assert(agg->is_of_states && output < agg->outputs_count);
	const struct wm_output *result = &agg->outputs[output];
	struct wm_span rest, word;
	uint64_t percent;
	struct wm_arena other_arena = { 0 };
	void *other;
	bool ok;

	if (take_head(state, &rest, &word, &percent, err) == NULL)
		return false;
	if (!wm_span_equal(word, result->word))
		return wm_err_set(err, WM_ERR_DATA, "a state of %.*s where states of %.*s stand", (int)word.len,
			word.data, (int)result->word.len, result->word.data);
	other = wm_calloc(1, agg->cell_bytes);
	ok = take_state(result, other, &other_arena, rest);
	if (!ok)
		fail(state, err);
	else if (!counts_fit(result, cell, other))
		ok = wm_err_set(err, WM_ERR_DATA, "states of %.*s count more than 2^64 rows together", (int)word.len,
			word.data);
	else
		merge_output(result, cell, arena, other);
	free(other);
	wm_arena_release(&other_arena);
	return ok;
}
