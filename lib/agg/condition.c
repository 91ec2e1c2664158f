/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/condition.h"

#include "lib/agg/part.h"
#include "lib/base/limits.h"

static const char *const names[] = {
	[WM_EQ] = "eq", [WM_NE] = "ne", [WM_LT] = "lt", [WM_LE] = "le", [WM_GT] = "gt", [WM_GE] = "ge"
};

#define NAMES_COUNT (sizeof(names) / sizeof(names[0]))

/* How other languages write them. */
static const struct {
	const char *word;
	enum wm_comparison comparison;
} synonyms[] = { { "==", WM_EQ }, { "=", WM_EQ }, { "!=", WM_NE }, { "<>", WM_NE }, { "<", WM_LT }, { "<=", WM_LE },
	{ ">", WM_GT }, { ">=", WM_GE }, { "gte", WM_GE }, { "lte", WM_LE }, { "neq", WM_NE } };

const char *
wm_comparison_name(enum wm_comparison comparison)
{
	return names[comparison];
}

static bool
find(struct wm_span word, enum wm_comparison *comparison, struct wm_err *err)
{
	int shown = (int)(word.len < WM_SHOWN_BYTES_MAX ? word.len : WM_SHOWN_BYTES_MAX);

	for (size_t i = 0; i < NAMES_COUNT; i++) {
		if (wm_span_is(word, names[i])) {
			*comparison = (enum wm_comparison)i;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (wm_span_is(word, synonyms[i].word))
			return wm_err_set(err, WM_ERR_USAGE, "no comparison '%s': say %s", synonyms[i].word,
				names[synonyms[i].comparison]);
	return wm_err_set(
		err, WM_ERR_USAGE, "no comparison '%.*s'; there are: eq, ne, lt, le, gt, ge", shown, word.data);
}

bool
wm_condition_init(struct wm_condition *condition, size_t column, struct wm_span comparison, struct wm_span value,
	struct wm_err *err)
{
	enum wm_comparison found = WM_EQ;
	struct wm_value text = { .text = value, .kind = WM_KIND_TEXT };

	if (!find(comparison, &found, err))
		return false;
	if (value.len == 0)
		return wm_err_set(err, WM_ERR_USAGE,
			"no value behind '%s': an empty field fulfils no condition, and count:COLUMN counts the others",
			names[found]);
	*condition = (struct wm_condition){ .column = column, .comparison = found };
	wm_reading_take(&condition->value, &text);
	condition->reads_number = condition->value.is_number;
	return true;
}

/* <0, 0, >0 of two numbers. */
static int
compare_numbers(const struct wm_reading *a, const struct wm_reading *b)
{
	return a->number.is_exact && b->number.is_exact
		? wm_decimal_compare_exact(&a->number, &b->number)
		: wm_decimal_compare(&a->number, a->value.text, &b->number, b->value.text);
}

bool
wm_condition_holds(const struct wm_condition *condition, const struct wm_reading *field)
{
	const struct wm_reading *value = &condition->value;
	bool are_numbers = condition->reads_number && field->is_number;
	bool is_order = condition->comparison != WM_EQ && condition->comparison != WM_NE;
	int order;

	if (field->is_empty || (is_order && condition->reads_number && !field->is_number))
		return false;
	if (are_numbers)
		order = compare_numbers(field, value);
	else if (is_order)
		order = wm_span_compare(field->value.text, value->value.text);
	else
		order = wm_span_equal(field->value.text, value->value.text) ? 0 : 1;
	switch (condition->comparison) {
	case WM_EQ:
		return order == 0;
	case WM_NE:
		return order != 0;
	case WM_LT:
		return order < 0;
	case WM_LE:
		return order <= 0;
	case WM_GT:
		return order > 0;
	case WM_GE:
		return order >= 0;
	}
	return false;
}
