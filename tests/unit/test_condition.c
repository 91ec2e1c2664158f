/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/condition.h"

#include "tests/unit/tap.h"

/* Fields and values, with what they are worth as numbers; in the order of values that are not equal. */
static const struct {
	const char *text;
	int rank; /* equal for equal numbers */
	bool is_number;
} fields[] = { { "-1e300", 0, true }, { "-1", 1, true }, { "-1.0", 1, true }, { "0", 2, true }, { "-0", 2, true },
	{ "5", 3, true }, { "5.0", 3, true }, { "05", 3, true }, { "5.00000000000000000001", 4, true },
	{ "10", 5, true }, { "1e40", 6, true }, { "10e39", 6, true }, { "+5", 7, false }, { "-", 8, false },
	{ "5x", 9, false }, { "NaN", 10, false }, { "abc", 11, false }, { "abcd", 12, false }, { "true", 13, false } };

#define FIELDS_COUNT (sizeof(fields) / sizeof(fields[0]))

static const char *const words[] = { "eq", "ne", "lt", "le", "gt", "ge" };

static bool
model(size_t field, size_t value, size_t comparison)
{
	int left = fields[field].rank, right = fields[value].rank;
	bool is_order = comparison > 1;

	/* In order a number asks for numbers, and a text for the bytes of all. */
	if (is_order && fields[value].is_number && !fields[field].is_number)
		return false;
	if (is_order && !fields[value].is_number) {
		left = strcmp(fields[field].text, fields[value].text);
		right = 0;
	}
	const bool answers[] = { left == right, left != right, left<right, left <= right, left> right, left >= right };

	return answers[comparison];
}

static struct wm_reading
reading_of(const char *text, enum wm_kind kind)
{
	struct wm_reading reading;
	struct wm_value value = { .text = wm_span_of(text), .kind = kind };

	wm_reading_take(&reading, &value);
	return reading;
}

static void
test_all_pairs(void)
{
	bool ok = true;

	for (size_t c = 0; c < 6; c++) {
		for (size_t v = 0; v < FIELDS_COUNT; v++) {
			struct wm_condition condition;
			struct wm_err err = { 0 };

			ok = ok &&
				wm_condition_init(
					&condition, 3, wm_span_of(words[c]), wm_span_of(fields[v].text), &err) &&
				condition.column == 3 &&
				strcmp(wm_comparison_name(condition.comparison), words[c]) == 0 &&
				condition.reads_number == fields[v].is_number;
			for (size_t f = 0; f < FIELDS_COUNT && ok; f++) {
				struct wm_reading reading = reading_of(fields[f].text, WM_KIND_TEXT);

				if (!condition.reads_number)
					reading.is_number = false; /* the caller need not look */
				ok = wm_condition_holds(&condition, &reading) == model(f, v, c);
				if (!ok)
					printf("# %s %s %s\n", fields[f].text, words[c], fields[v].text);
			}
			struct wm_reading empty = reading_of("", WM_KIND_TEXT);
			ok = ok && !wm_condition_holds(&condition, &empty);
		}
	}
	tap_ok(ok,
		"all pairs compare as numbers where the value is one, else as bytes; an empty field fulfils nothing");
}

static bool
holds(const char *field, enum wm_kind kind, const char *comparison, const char *value)
{
	struct wm_condition condition;
	struct wm_err err = { 0 };
	struct wm_reading reading = reading_of(field, kind);

	return wm_condition_init(&condition, 0, wm_span_of(comparison), wm_span_of(value), &err) &&
		wm_condition_holds(&condition, &reading);
}

static void
test_kinds(void)
{
	tap_ok(holds("5.0", WM_KIND_NUMBER, "eq", "5"), "a JSON number is one");
	tap_ok(holds("5.0", WM_KIND_TEXT, "eq", "5"), "so is a text that is wholly one");
	tap_ok(holds("true", WM_KIND_BOOL, "eq", "true"), "true is a text");
	tap_ok(holds("false", WM_KIND_BOOL, "ne", "true"), "and false another");
	tap_ok(!holds("[5]", WM_KIND_JSON, "gt", "7"), "an array is no number to compare with one");
	tap_ok(!holds("", WM_KIND_NULL, "ne", "x"), "null is not even ne");
	tap_ok(holds("a,b:c=d", WM_KIND_TEXT, "eq", "a,b:c=d"), "any bytes");
}

static void
check_error(const char *comparison, const char *value, const char *message)
{
	struct wm_condition condition;
	struct wm_err err = { 0 };

	tap_ok(!wm_condition_init(&condition, 0, wm_span_of(comparison), wm_span_of(value), &err) &&
			err.code == WM_ERR_USAGE,
		"'%s' '%s' is refused", comparison, value);
	tap_text(err.message, message, "with its message");
}

int
main(void)
{
	test_all_pairs();
	test_kinds();
	check_error(">=", "5", "no comparison '>=': say ge");
	check_error("GE", "5", "no comparison 'GE'; there are: eq, ne, lt, le, gt, ge");
	check_error("", "5", "no comparison ''; there are: eq, ne, lt, le, gt, ge");
	check_error("lt", "",
		"no value behind 'lt': an empty field fulfils no condition, and count:COLUMN counts the others");
	return tap_done();
}
