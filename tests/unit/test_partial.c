/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/partial.h"

#include "lib/base/mem.h"
#include "tests/unit/cells.h"

#define STATES_MAX 40

static const char all[] = "count,n=count:a,sum:a,avg:a,min:a,max:a,first:a,last:a,var:a,stddev:a,min:b,max:b,first:b,"
			  "last:b,count:b,rate,median:a,p90:a,p99.9:a,distinct:a,distinct:b,count:b:ge:7,share:b:ge:7,"
			  "max:a:if:b:lt:x,avg:a:if:a:gt:10,rate:if:a:le:0,count:b:if:a:le:0,sum:huge";

static void
random_rows(const struct wm_agg *agg, struct group *const *groups, size_t groups_count, struct group *whole,
	uint64_t *seed, size_t rows)
{
	static const char *const words[] = { "", "x", "a text, with \"quotes\": and\ttabs\n", "7", "07", "7.0", "-3",
		"1e40", "\xc3\xa4\xff%41", "y~z" };

	for (size_t i = 0; i < rows; i++) {
		char a[64], huge[64];
		struct wm_reading readings[3];
		struct group *group = groups[tap_random(seed) % groups_count];

		snprintf(a, sizeof(a), "%s%u.%02u", tap_random(seed) % 4 ? "" : "-", (unsigned)(tap_random(seed) % 50),
			(unsigned)(tap_random(seed) % 100));
		if (tap_random(seed) % 5 == 0)
			*a = '\0';
		snprintf(huge, sizeof(huge), "%u00000000000000000000000000000000000000",
			(unsigned)(tap_random(seed) % 10));
		if (tap_random(seed) % 5 != 0)
			strcpy(huge, "1");
		readings[0] = reading_of(a, WM_KIND_TEXT);
		readings[1] = reading_of(words[tap_random(seed) % 10], WM_KIND_TEXT);
		readings[2] = reading_of(huge, WM_KIND_TEXT);
		wm_agg_cell_add(agg, group->cell, &group->arena, readings, (int64_t)i);
		wm_agg_cell_add(agg, whole->cell, &whole->arena, readings, (int64_t)i);
	}
}

/* The states of a cell, in texts of their own. */
static size_t
states_of(const struct group *group, struct wm_span *names, struct wm_span *states)
{
	size_t count = wm_agg_outputs_count(group->agg);
	struct wm_buf text;

	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < count; i++) {
		wm_buf_reset(&text);
		wm_agg_cell_print_state(group->agg, group->cell, i, &text);
		states[i] = wm_span(wm_memdup(text.data, text.len), text.len);
		names[i] = wm_agg_output_name(group->agg, i);
	}
	wm_buf_release(&text);
	return count;
}

static void
free_states(struct wm_span *states, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((char *)(uintptr_t)states[i].data);
}

static bool
is_field(struct wm_span state)
{
	for (size_t i = 0; i < state.len; i++) {
		unsigned char byte = (unsigned char)state.data[i];

		if (byte <= ' ' || byte >= 0x7f || strchr(",\"'\\;|", byte) != NULL)
			return false;
	}
	return true;
}

/* Rows of random cells; their states, merged in any order, and some by way of one more state, print what one cell prints. */
static void
test_merge_random(void)
{
	struct wm_agg *agg = plan_of(all);
	uint64_t seed = 11;
	bool ok = true, are_fields = true;
	struct wm_buf want, got;

	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	for (int round = 0; round < 60 && ok; round++) {
		struct group parts[4], whole = group_new(agg), target, last;
		struct group *groups[4];
		struct wm_span names[STATES_MAX], states[4][STATES_MAX], again[STATES_MAX];
		struct wm_err err = { 0 };
		size_t count = 0, used = 1 + tap_random(&seed) % 4;

		for (size_t i = 0; i < 4; i++) {
			parts[i] = group_new(agg);
			groups[i] = &parts[i];
		}
		random_rows(agg, groups, used, &whole, &seed, round % 20 == 0 ? 4000 : tap_random(&seed) % 60);
		for (size_t i = 0; i < 4; i++)
			count = states_of(&parts[i], names, states[i]);
		struct wm_agg *merging = wm_agg_parse_states(names, states[0], count, &err);
		if (merging == NULL) {
			printf("# %s\n", err.message);
			ok = false;
			break;
		}
		target = group_new(merging);
		size_t first = tap_random(&seed) % 4;
		for (size_t i = 0; i < 4 && ok; i++)
			for (size_t j = 0; j < count && ok; j++) {
				struct wm_span state = states[(first + i) % 4][j];

				are_fields = are_fields && is_field(state);
				ok = wm_agg_cell_merge_state(merging, target.cell, &target.arena, j, state, &err);
				if (!ok)
					printf("# %s\n", err.message);
			}
		wm_buf_reset(&want);
		wm_buf_reset(&got);
		print_cell(agg, whole.cell, MINUTE_US, &want);
		print_cell(merging, target.cell, MINUTE_US, &got);
		ok = ok && wm_span_equal(wm_buf_span(&want), wm_buf_span(&got));
		/* State again: that of the one cell, and it says the same. */
		last = group_new(merging);
		states_of(&target, names, again);
		for (size_t j = 0; j < count && ok; j++)
			ok = wm_agg_cell_merge_state(merging, last.cell, &last.arena, j, again[j], &err);
		wm_buf_reset(&got);
		print_cell(merging, last.cell, MINUTE_US, &got);
		ok = ok && wm_span_equal(wm_buf_span(&want), wm_buf_span(&got));
		free_states(again, count);
		wm_buf_reset(&want);
		wm_buf_reset(&got);
		for (size_t j = 0; j + 1 < count && ok; j++) { /* but sum:huge, which is rounded */
			wm_agg_cell_print_state(agg, whole.cell, j, &want);
			wm_agg_cell_print_state(merging, target.cell, j, &got);
			ok = wm_span_equal(wm_buf_span(&want), wm_buf_span(&got));
		}
		if (!ok)
			printf("# round %d\n# want %.*s\n# got  %.*s\n", round, (int)want.len, want.data, (int)got.len,
				got.data);
		for (size_t i = 0; i < 4; i++) {
			free_states(states[i], count);
			group_free(&parts[i]);
		}
		group_free(&whole);
		group_free(&target);
		group_free(&last);
		wm_agg_free(merging);
	}
	tap_ok(ok, "states of all aggregates, merged in any order, print what one cell prints");
	tap_ok(are_fields, "no state has a comma, a quote, a blank or a control byte");
	wm_buf_release(&want);
	wm_buf_release(&got);
	wm_agg_free(agg);
}

/* The state of a list's last aggregate over rows of one column, in event time 0, 1, … */
static void
check_state(const char *list, const char *want, size_t count, const char *const *fields)
{
	struct wm_agg *agg = plan_of(list);
	struct group group = group_new(agg);
	struct wm_buf out;

	for (size_t i = 0; i < count; i++)
		add_field(&group, fields[i], (int64_t)i);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	wm_agg_cell_print_state(agg, group.cell, wm_agg_outputs_count(agg) - 1, &out);
	tap_span(wm_buf_span(&out), want, list);
	wm_buf_release(&out);
	group_free(&group);
	wm_agg_free(agg);
}

#define STATE(list, want, ...)                                                                                         \
	check_state(list, want, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *),                         \
		(const char *const[]){ __VA_ARGS__ })

static void
test_texts(void)
{
	STATE("count", "1:count:2", "5", "");
	STATE("count:v", "1:count:1", "5", "");
	STATE("rate", "1:rate:2", "5", "");
	STATE("sum:v", "1:sum:2:-0.25", "0.5", "-.75");
	STATE("avg:v", "1:avg:2:30.01", "10.01", "", "20");
	STATE("sum:v", "1:sum:0:0", "");
	/* struct.pack in Python: -9e37 as 128 bits, no fraction, no carry, 1e38 as a double, no error */
	STATE("sum:v", "1:sum:2:~AAAAAGAUavdeglN7aKFKvAAAAAAAAAAAAAAAAAAAAACxoRYq087SRwAAAAAAAAAA", "1e38", "-9e37");
	STATE("share:v:ge:5", "1:share:1:2", "5", "4", "");
	STATE("sum:v:if:v:ge:5", "1:sum:1:5", "5", "4", "");
	STATE("min:v", "1:min:t-2.50", "-2.50", "7");
	STATE("max:v", "1:max:n7", "#-2.5", "#7");
	STATE("max:v", "1:max:", "");
	STATE("max:v", "1:max:tGET%20/a%2C%25%3A%C3%A4", "GET /a,%:\xc3\xa4");
	STATE("last:v", "1:last:1:tb", "a", "b");
	STATE("first:v", "1:first:", "");
	/* base64 -w0 | tr +/ -_ of 1, form 0, 1 digit, 15 as 8 bytes */
	STATE("p99.9:v", "1:p99.9:~AQABDwAAAAAAAAA", "1.5");
	STATE("median:v", "1:median:~AA", "");
	STATE("distinct:v", "1:distinct:~AA", "");
	STATE("distinct:v", "1:distinct:~AR9Olh62Msbm", "a");
}

/* States come in one after the other; what they give, or the message of the one that is refused. */
static void
check_merge(const char *name, const char *want, size_t count, const char *const *states)
{
	struct wm_err err = { 0 };
	struct wm_span names = wm_span_of("x"), first = wm_span_of(states[0]);
	struct wm_agg *agg = wm_agg_parse_states(&names, &first, 1, &err);
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	if (agg != NULL) {
		struct group group = group_new(agg);
		bool ok = true;

		for (size_t i = 0; i < count && ok; i++) {
			char *copy =
				wm_memdup(states[i], strlen(states[i])); /* so that a read behind the end is seen */

			ok = wm_agg_cell_merge_state(
				agg, group.cell, &group.arena, 0, wm_span(copy, strlen(states[i])), &err);
			free(copy);
		}
		if (ok)
			print_cell(agg, group.cell, MINUTE_US, &out);
		group_free(&group);
	}
	if (err.code != WM_ERR_NONE)
		wm_buf_addf(&out, "%s%s", err.code == WM_ERR_DATA ? "" : "not WM_ERR_DATA: ", err.message);
	tap_span(wm_buf_span(&out), want, name);
	wm_buf_release(&out);
	wm_agg_free(agg);
}

#define MERGE(name, want, ...)                                                                                         \
	check_merge(name, want, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *),                         \
		(const char *const[]){ __VA_ARGS__ })
#define NO_STATE(text) "'" text "' is no state of an aggregate: it must come from wm-window --partial"

static void
test_merges(void)
{
	MERGE("sums", "x=0.75", "1:sum:1:0.5", "1:sum:2:0.25", "1:sum:0:0");
	MERGE("means", "x=2", "1:avg:1:5", "1:avg:2:1");
	MERGE("shares", "x=0.25", "1:share:1:1", "1:share:0:3");
	MERGE("rates", "x=0.05", "1:rate:1", "1:rate:2");
	MERGE("the least", "x=-2.50'", "1:min:t7", "1:min:t-2.50", "1:min:");
	MERGE("the first by event time", "x=b'", "1:first:7:ta", "1:first:-7:tb", "1:first:");
	MERGE("of equal times the last to come", "x=a'", "1:last:7:tb", "1:last:7:ta");
	MERGE("whatever its text", "x=b'", "1:last:7:ta", "1:last:7:tb");
	MERGE("of equal times the first to come", "x=b'", "1:first:7:tb", "1:first:7:ta");
	MERGE("whatever its kind", "x=1", "1:last:7:t1", "1:last:7:n1");
	MERGE("of equal texts the number, whatever comes first", "x=1", "1:max:t1", "1:max:n1");
	MERGE("here too", "x=1", "1:min:n1", "1:min:t1");
	MERGE("any bytes", "x=GET /a,%:\xc3\xa4'", "1:max:tGET%20/a%2C%25%3A%C3%A4");
	MERGE("percentiles", "x=1.5", "1:p99.9:~AQABDwAAAAAAAAA", "1:p99.9:~AA");

	MERGE("empty", NO_STATE(""), "");
	MERGE("a number", NO_STATE("17.5"), "17.5");
	MERGE("a word", NO_STATE("sum:1:2"), "sum:1:2");
	MERGE("no parts", NO_STATE("1:sum"), "1:sum");
	MERGE("no such function", NO_STATE("1:total:5"), "1:total:5");
	MERGE("a later version", "a state of version 2: this program reads version 1", "2:sum:1:5");
	MERGE("another function", "a state of avg where states of sum stand", "1:sum:1:5", "1:avg:1:5");
	MERGE("another percentile", "a state of p95 where states of p90 stand", "1:p90:~AA", "1:p95:~AA");
	MERGE("a part too few", NO_STATE("1:sum:1"), "1:sum:1");
	MERGE("a part too many", NO_STATE("1:sum:1:2:3"), "1:sum:1:2:3");
	MERGE("a count below zero", NO_STATE("1:count:-1"), "1:count:-1");
	MERGE("a count with a fraction", NO_STATE("1:count:1.5"), "1:count:1.5");
	MERGE("a count beyond 64 bits", NO_STATE("1:count:18446744073709551616"), "1:count:18446744073709551616");
	MERGE("counts beyond 64 bits together", "states of count count more than 2^64 rows together",
		"1:count:18446744073709551615", "1:count:1");
	MERGE("a sum that is no number", NO_STATE("1:sum:1:x"), "1:sum:1:x");
	MERGE("a value without a kind", NO_STATE("1:max:x1"), "1:max:x1");
	MERGE("a value without a text", NO_STATE("1:max:t"), "1:max:t");
	MERGE("a blank", NO_STATE("1:max:ta b"), "1:max:ta b");
	MERGE("half an escape", NO_STATE("1:max:ta%4"), "1:max:ta%4");
	MERGE("no escape", NO_STATE("1:max:ta%4g"), "1:max:ta%4g");
	MERGE("a time without a value", NO_STATE("1:first:7"), "1:first:7");
	MERGE("a time beyond 64 bits", NO_STATE("1:first:9223372036854775808:ta"), "1:first:9223372036854775808:ta");
	MERGE("bytes without their mark", NO_STATE("1:median:AA"), "1:median:AA");
	MERGE("a digit too many", NO_STATE("1:median:~AAA"), "1:median:~AAA");
	MERGE("a lone digit", NO_STATE("1:median:~A"), "1:median:~A");
	MERGE("bits too many", NO_STATE("1:median:~AB"), "1:median:~AB");
	MERGE("no base64", NO_STATE("1:median:~A="), "1:median:~A=");
	MERGE("bytes behind the end", NO_STATE("1:median:~AAAA"), "1:median:~AAAA");
}

/* A state that is refused leaves the cell as it was, also where its first part could be read. */
static void
test_refused(void)
{
	struct wm_err err = { 0 };
	struct wm_span name = wm_span_of("x"), state = wm_span_of("1:sum:1:5");
	struct wm_agg *agg = wm_agg_parse_states(&name, &state, 1, &err);
	struct group group = group_new(agg);
	struct wm_buf out;

	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	tap_ok(wm_agg_cell_merge_state(agg, group.cell, &group.arena, 0, state, &err), "a state");
	tap_ok(!wm_agg_cell_merge_state(agg, group.cell, &group.arena, 0, wm_span_of("1:sum:7:x"), &err), "and none");
	wm_agg_cell_print_state(agg, group.cell, 0, &out);
	tap_span(wm_buf_span(&out), "1:sum:1:5", "the cell is as it was");
	wm_buf_release(&out);
	group_free(&group);
	wm_agg_free(agg);
}

/* States with bytes changed are refused or merge; nothing else (the sanitizers watch). */
static void
test_damage(void)
{
	struct wm_agg *agg = plan_of(all);
	struct group group = group_new(agg), whole = group_new(agg), *groups[] = { &group };
	struct wm_span names[STATES_MAX], states[STATES_MAX];
	struct wm_err err = { 0 };
	uint64_t seed = 12;
	size_t accepted = 0, refused = 0;
	struct wm_buf out;

	random_rows(agg, groups, 1, &whole, &seed, 60);
	size_t count = states_of(&group, names, states);
	struct wm_agg *merging = wm_agg_parse_states(names, states, count, &err);
	wm_buf_init(&out, WM_BUF_UNBOUNDED);
	for (int i = 0; i < 6000; i++) {
		struct group target = group_new(merging);
		size_t output = (size_t)i % count, len = states[output].len;
		char *text = wm_memdup(states[output].data, len);

		if (tap_random(&seed) % 4 == 0)
			len = tap_random(&seed) % len;
		for (uint64_t n = tap_random(&seed) % 3; n > 0 && len > 0; n--)
			text[tap_random(&seed) % len] = "0123456789-.:~%tnAz,\n"[tap_random(&seed) % 21];
		char *exact = wm_memdup(text, len);
		if (wm_agg_cell_merge_state(merging, target.cell, &target.arena, output, wm_span(exact, len), &err)) {
			accepted++;
			wm_buf_reset(&out);
			wm_agg_cell_print(merging, target.cell, output, MINUTE_US, &out);
			wm_agg_cell_print_state(merging, target.cell, output, &out);
		} else {
			refused++;
		}
		free(exact);
		free(text);
		group_free(&target);
	}
	tap_ok(accepted > 100 && refused > 100, "damaged states: %zu read, %zu refused, none does harm", accepted,
		refused);
	wm_buf_release(&out);
	free_states(states, count);
	group_free(&group);
	group_free(&whole);
	wm_agg_free(merging);
	wm_agg_free(agg);
}

int
main(void)
{
	test_texts();
	test_merges();
	test_refused();
	test_merge_random();
	test_damage();
	return tap_done();
}
