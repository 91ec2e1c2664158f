/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/function.h"

#include <math.h>

#include "lib/base/ascii.h"
#include "lib/base/limits.h"
#include "lib/base/near.h"

#define MICROSECONDS_PER_SECOND 1000000

static const void *
part_of(const struct wm_output *output, const void *cell, enum wm_part part)
{
	return wm_measure_part_of(output->measure, cell, part);
}

static uint64_t
rows_of(const struct wm_output *output, const void *cell)
{
	return *wm_branch_rows_of(output->branch, cell);
}

static uint64_t
values_of(const struct wm_output *output, const void *cell)
{
	return *(const uint64_t *)part_of(output, cell, WM_PART_COUNT);
}

static struct wm_decimal_sum
sum_of(const struct wm_output *output, const void *cell)
{
	return wm_sum_value(part_of(output, cell, WM_PART_SUM));
}

static enum wm_kind
print_number(double value, struct wm_buf *out)
{
	if (!isfinite(value))
		return WM_KIND_NULL;
	wm_double_print(value, out);
	return WM_KIND_NUMBER;
}

static enum wm_kind
print_integer(uint64_t value, struct wm_buf *out)
{
	wm_integer_print(value, out);
	return WM_KIND_NUMBER;
}

static enum wm_kind
print_count(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	(void)window_us;
	return print_integer(output->measure == NULL ? rows_of(output, cell) : values_of(output, cell), out);
}

static enum wm_kind
print_sum(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	size_t before = out->len;
	struct wm_decimal_sum sum = sum_of(output, cell);

	(void)window_us;
	if (values_of(output, cell) != 0)
		wm_decimal_sum_print(&sum, out);
	return out->len == before ? WM_KIND_NULL : WM_KIND_NUMBER;
}

static enum wm_kind
print_avg(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	uint64_t count = values_of(output, cell);
	size_t before = out->len;
	struct wm_decimal_sum sum = sum_of(output, cell);

	(void)window_us;
	if (count != 0)
		wm_decimal_mean_print(&sum, count, out);
	return out->len == before ? WM_KIND_NULL : WM_KIND_NUMBER;
}

/* Not finite for less than two values. */
static double
variance_of(const struct wm_output *output, const void *cell)
{
	uint64_t count = values_of(output, cell);
	struct wm_decimal_sum sum = sum_of(output, cell);

	return count < 2 ? (double)INFINITY
			 : wm_square_sum_variance(part_of(output, cell, WM_PART_SQUARES), &sum, count);
}

static enum wm_kind
print_var(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	(void)window_us;
	return print_number(variance_of(output, cell), out);
}

static enum wm_kind
print_stddev(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	(void)window_us;
	return print_number(sqrt(variance_of(output, cell)), out);
}

/* Rows a second, as the mean of a sum: so it is rounded once however many rows there are. */
static enum wm_kind
print_rate(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	struct wm_decimal_sum rows = { .whole = (wm_int128)rows_of(output, cell) * MICROSECONDS_PER_SECOND };

	if (rows.whole == 0 || window_us <= 0)
		return WM_KIND_NULL;
	return print_number(wm_decimal_sum_mean(&rows, (uint64_t)window_us), out);
}

/* Of the rows that have a value of the column, those that fulfil the condition. */
static enum wm_kind
print_share(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	uint64_t count = values_of(output, cell);

	(void)window_us;
	return count == 0 ? WM_KIND_NULL : print_number(wm_ratio(rows_of(output, cell), count), out);
}

static enum wm_kind
print_kept(const struct wm_kept *kept, struct wm_buf *out)
{
	struct wm_value value = wm_kept_value(kept);

	wm_buf_add(out, value.text.data, value.text.len);
	return value.kind;
}

static enum wm_kind
print_min(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct wm_extreme *extreme = part_of(output, cell, WM_PART_MIN);

	(void)window_us;
	return print_kept(&extreme->kept, out);
}

static enum wm_kind
print_max(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct wm_extreme *extreme = part_of(output, cell, WM_PART_MAX);

	(void)window_us;
	return print_kept(&extreme->kept, out);
}

static enum wm_kind
print_first(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct wm_timed *timed = part_of(output, cell, WM_PART_FIRST);

	(void)window_us;
	return print_kept(&timed->kept, out);
}

static enum wm_kind
print_last(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct wm_timed *timed = part_of(output, cell, WM_PART_LAST);

	(void)window_us;
	return print_kept(&timed->kept, out);
}

static enum wm_kind
print_median(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct wm_quantile *quantile = part_of(output, cell, WM_PART_QUANTILE);

	(void)window_us;
	if (quantile->count == 0)
		return WM_KIND_NULL;
	wm_quantile_print_median(quantile, out);
	return WM_KIND_NUMBER;
}

static enum wm_kind
print_percentile(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	const struct wm_quantile *quantile = part_of(output, cell, WM_PART_QUANTILE);
	struct wm_decimal_sum sum = { 0 };

	(void)window_us;
	if (quantile->count == 0)
		return WM_KIND_NULL;
	struct wm_decimal value = wm_quantile_at(quantile, wm_quantile_rank(output->percent, quantile->count));
	wm_decimal_sum_add(&sum, &value);
	wm_decimal_sum_print(&sum, out);
	return WM_KIND_NUMBER;
}

static enum wm_kind
print_distinct(const struct wm_output *output, const void *cell, int64_t window_us, struct wm_buf *out)
{
	(void)window_us;
	return print_integer(wm_distinct_count(part_of(output, cell, WM_PART_DISTINCT)), out);
}

#define COUNT WM_PART_BIT(WM_PART_COUNT)
#define SUM WM_PART_BIT(WM_PART_SUM)
#define SQUARES WM_PART_BIT(WM_PART_SQUARES)

static const struct wm_function functions[] = {
	{ "count", WM_NEEDS_OPTIONAL, COUNT, true, true, print_count },
	{ "sum", WM_NEEDS_NUMBER, COUNT | SUM, true, true, print_sum },
	{ "avg", WM_NEEDS_NUMBER, COUNT | SUM, false, false, print_avg },
	{ "min", WM_NEEDS_VALUE, WM_PART_BIT(WM_PART_MIN), false, true, print_min },
	{ "max", WM_NEEDS_VALUE, WM_PART_BIT(WM_PART_MAX), false, true, print_max },
	{ "first", WM_NEEDS_VALUE, WM_PART_BIT(WM_PART_FIRST), false, false, print_first },
	{ "last", WM_NEEDS_VALUE, WM_PART_BIT(WM_PART_LAST), false, true, print_last },
	{ "var", WM_NEEDS_NUMBER, COUNT | SUM | SQUARES, false, false, print_var },
	{ "stddev", WM_NEEDS_NUMBER, COUNT | SUM | SQUARES, false, false, print_stddev },
	{ "median", WM_NEEDS_NUMBER, WM_PART_BIT(WM_PART_QUANTILE), false, false, print_median },
	{ "pNN", WM_NEEDS_NUMBER, WM_PART_BIT(WM_PART_QUANTILE), false, false, print_percentile },
	{ "distinct", WM_NEEDS_VALUE, WM_PART_BIT(WM_PART_DISTINCT), true, false, print_distinct },
	{ "rate", WM_NEEDS_NOTHING, 0, true, false, print_rate },
	{ "share", WM_NEEDS_COMPARISON, COUNT, false, false, print_share },
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
	{ "percentile", "p95" },
	{ "quantile", "p95" },
	{ "pNN", "p95" },
	{ "unique", "distinct" },
	{ "nunique", "distinct" },
	{ "count_distinct", "distinct" },
	{ "approx_count_distinct", "distinct" },
	{ "ratio", "share" },
};

/* 'p', digits, and perhaps a point and digits. */
static bool
looks_like_percentile(struct wm_span word)
{
	size_t points = 0;

	if (word.len < 2 || word.data[0] != 'p' || !wm_is_digit(word.data[1]) || !wm_is_digit(word.data[word.len - 1]))
		return false;
	for (size_t i = 1; i < word.len; i++) {
		points += word.data[i] == '.';
		if (!wm_is_digit(word.data[i]) && word.data[i] != '.')
			return false;
	}
	return points <= 1;
}

static bool
parse_percent(struct wm_span text, uint64_t *percent)
{
	const int64_t unit = WM_FRACTION_ONE / WM_PERCENT_ONE;
	struct wm_decimal number;

	if (!wm_decimal_parse(text, &number) || !number.is_exact || number.fraction % unit != 0 || number.whole > 100 ||
		(number.whole == 100 && number.fraction != 0))
		return false;
	*percent = (uint64_t)(number.whole * WM_PERCENT_ONE + number.fraction / unit);
	return true;
}

static void
fail_unknown(struct wm_span word, struct wm_err *err)
{
	struct wm_near near = wm_near_to(word);
	struct wm_buf list;
	int shown = (int)(word.len < WM_SHOWN_BYTES_MAX ? word.len : WM_SHOWN_BYTES_MAX);

	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++) {
		if (wm_span_is(word, synonyms[i].word)) {
			wm_err_set(err, WM_ERR_USAGE, "no aggregate '%s': say %s", synonyms[i].word, synonyms[i].name);
			return;
		}
	}
	wm_buf_init(&list, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < FUNCTIONS_COUNT; i++) {
		wm_near_try(&near, wm_span_of(functions[i].name));
		wm_buf_addf(&list, "%s%s", i == 0 ? "" : ", ", functions[i].name);
	}
	wm_err_set(err, WM_ERR_USAGE, "no aggregate '%.*s'; %s%.*s%sthere are: %.*s", shown, word.data,
		near.best.data == NULL ? "" : "did you mean ", (int)near.best.len, near.best.data,
		near.best.data == NULL ? "" : "? ", (int)list.len, list.data);
	wm_buf_release(&list);
}

const struct wm_function *
wm_function_find(struct wm_span word, uint64_t *percent, struct wm_err *err)
{
	bool is_percentile = looks_like_percentile(word);

	if (is_percentile && !parse_percent(wm_span(word.data + 1, word.len - 1), percent)) {
		wm_err_set(err, WM_ERR_USAGE,
			"no percentile '%.*s': they are p0 to p100, with up to %d digits after the point",
			(int)(word.len < WM_SHOWN_BYTES_MAX ? word.len : WM_SHOWN_BYTES_MAX), word.data,
			WM_PERCENT_DIGITS_MAX);
		return NULL;
	}
	for (size_t i = 0; i < FUNCTIONS_COUNT; i++)
		if (is_percentile ? functions[i].print == print_percentile
				  : functions[i].print != print_percentile && wm_span_is(word, functions[i].name))
			return &functions[i];
	fail_unknown(word, err);
	return NULL;
}
