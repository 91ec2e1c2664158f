/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/agg.h"

#include "lib/base/mem.h"
#include "tests/unit/cells.h"

enum { COLUMNS = 2, ROWS = 60, PARTS = 4 };

static const char all_of_two[] =
	"count,n=count:a,sum:a,avg:a,min:a,max:a,first:a,last:a,var:a,stddev:a,min:b,max:b,first:b,last:b,count:b,rate,"
	"median:a,p90:a,distinct:a,distinct:b,count:b:ge:7,share:b:ge:7,max:a:if:b:lt:x,avg:a:if:a:gt:10,p25:a:if:b:eq:"
	"x,"
	"distinct:a:if:b:eq:x,last:b:if:a:le:0,rate:if:a:le:0,count:b:if:a:le:0";

struct row {
	char text[COLUMNS][64];
	struct wm_reading readings[COLUMNS];
	int64_t event_time_us;
};

static void
random_row(uint64_t *seed, struct row *row)
{
	static const char *const words[] = { "", "x", "abc", "a text that is longer than a cell", "7", "07", "7.0",
		"-3", "1e40", "10000000000000000000000000000000000000000", "1e-25" };

	snprintf(row->text[0], sizeof(row->text[0]), "%s%u.%02u", tap_random(seed) % 4 ? "" : "-",
		(unsigned)(tap_random(seed) % 50), (unsigned)(tap_random(seed) % 100));
	if (tap_random(seed) % 5 == 0)
		*row->text[0] = '\0';
	strcpy(row->text[1], words[tap_random(seed) % (sizeof(words) / sizeof(words[0]))]);
	for (size_t i = 0; i < COLUMNS; i++) {
		struct wm_value value = { .text = wm_span_of(row->text[i]), .kind = WM_KIND_TEXT };

		wm_reading_take(&row->readings[i], &value);
	}
}

/* Rows in random orders, split over cells that are merged, some by way of their encoding: the same results. */
static void
test_merge_random(void)
{
	struct wm_agg *agg = plan_of(all_of_two);
	uint64_t seed = 7;
	bool ok = true;
	struct wm_buf want, got, bytes, again;

	wm_buf_init(&want, WM_BUF_UNBOUNDED);
	wm_buf_init(&got, WM_BUF_UNBOUNDED);
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&again, WM_BUF_UNBOUNDED);
	for (int round = 0; round < 400 && ok; round++) {
		struct row rows[ROWS];
		struct group whole = group_new(agg), parts[PARTS];

		for (size_t i = 0; i < PARTS; i++)
			parts[i] = group_new(agg);
		for (size_t i = 0; i < ROWS; i++) {
			random_row(&seed, &rows[i]);
			rows[i].event_time_us = (int64_t)(i * 1000 + tap_random(&seed) % 1000); /* no ties */
			wm_agg_cell_add(agg, whole.cell, &whole.arena, rows[i].readings, rows[i].event_time_us);
		}
		for (size_t left = ROWS; left > 0; left--) {
			size_t pick = tap_random(&seed) % left;
			struct group *part = &parts[tap_random(&seed) % PARTS];
			struct row row = rows[pick];

			for (size_t i = 0; i < COLUMNS; i++)
				row.readings[i].value.text.data = row.text[i];
			wm_agg_cell_add(agg, part->cell, &part->arena, row.readings, row.event_time_us);
			rows[pick] = rows[left - 1];
			for (size_t i = 0; i < COLUMNS; i++)
				rows[pick].readings[i].value.text.data = rows[pick].text[i];
		}
		for (size_t i = 0; i < PARTS && ok; i++) {
			struct wm_get in;

			if (tap_random(&seed) % 2)
				continue;
			wm_buf_reset(&bytes);
			wm_agg_cell_encode(agg, parts[i].cell, &bytes);
			group_free(&parts[i]);
			parts[i] = group_new(agg);
			wm_get_init(&in, wm_buf_span(&bytes));
			ok = wm_agg_cell_decode(agg, parts[i].cell, &parts[i].arena, &in) && wm_get_left(&in) == 0;
			wm_buf_reset(&again);
			wm_agg_cell_encode(agg, parts[i].cell, &again);
			ok = ok && wm_span_equal(wm_buf_span(&bytes), wm_buf_span(&again));
		}
		for (size_t i = 1; i < PARTS; i++)
			wm_agg_cell_merge(agg, parts[0].cell, &parts[0].arena, parts[i].cell);
		wm_buf_reset(&want);
		wm_buf_reset(&got);
		print_cell(agg, whole.cell, MINUTE_US, &want);
		print_cell(agg, parts[0].cell, MINUTE_US, &got);
		ok = ok && wm_span_equal(wm_buf_span(&want), wm_buf_span(&got));
		wm_buf_reset(&bytes);
		wm_buf_reset(&again);
		wm_agg_cell_encode(agg, whole.cell, &bytes);
		wm_agg_cell_encode(agg, parts[0].cell, &again);
		ok = ok && wm_span_equal(wm_buf_span(&bytes), wm_buf_span(&again));
		if (!ok)
			printf("# whole  %.*s\n# merged %.*s\n", (int)want.len, want.data, (int)got.len, got.data);
		group_free(&whole);
		for (size_t i = 0; i < PARTS; i++)
			group_free(&parts[i]);
	}
	wm_buf_release(&want);
	wm_buf_release(&got);
	wm_buf_release(&bytes);
	wm_buf_release(&again);
	tap_ok(ok, "random splits, orders and encodings give the same results");
	wm_agg_free(agg);
}

/* Values that are no plain addition to a cell, between others that are. */
static void
test_mixed_values(void)
{
	CHECK("count:v,sum:v", "v_count=3 v_sum=1e+40", "2.5", "1e40", "3");
	CHECK("count:v,sum:v,min:v,max:v", "v_count=3 v_sum=1e+40 v_min=2.5' v_max=1e40'", "2.5", "1e40", "3");
	CHECK("sum:v,min:v,max:v", "v_sum=7 v_min=-1e40' v_max=1e40'", "-1e40", "1e40", "1e-30", "7");
	CHECK("count:v,min:v,max:v", "v_count=5 v_min=3' v_max=x'", "9", "", "x", "3", "a", "4");
	CHECK("count:v,min:v,max:v", "v_count=3 v_min=07' v_max=07'", "7.0", "07", "7");
}

/* Results against sums in long long hundredths and comparisons of plain doubles, which are exact for such numbers. */
static void
test_model_random(void)
{
	struct wm_agg *agg = plan_of("count,n=count:a,sum:a,min:a,max:a");
	uint64_t seed = 8;
	bool ok = true;

	for (int round = 0; round < 300 && ok; round++) {
		struct group group = group_new(agg);
		long long total = 0, least = 0, greatest = 0;
		int count = 0, rows = (int)(tap_random(&seed) % 30);
		char text[32], want[200], extremes[2][32];
		struct wm_buf out;

		for (int i = 0; i < rows; i++) {
			long long value = (long long)(tap_random(&seed) % 20000) - 10000;
			bool empty = tap_random(&seed) % 4 == 0;

			snprintf(text, sizeof(text), "%s%lld.%02lld", value < 0 ? "-" : "", llabs(value) / 100,
				llabs(value) % 100);
			add_field(&group, empty ? "" : text, 0);
			if (empty)
				continue;
			if (count == 0 || value < least) {
				least = value;
				strcpy(extremes[0], text);
			}
			if (count == 0 || value > greatest) {
				greatest = value;
				strcpy(extremes[1], text);
			}
			total += value;
			count++;
		}
		int len = snprintf(want, sizeof(want), "count=%d n=%d a_sum=", rows, count);
		if (count == 0) {
			snprintf(want + len, sizeof(want) - (size_t)len, "? a_min=? a_max=?");
		} else {
			len += snprintf(want + len, sizeof(want) - (size_t)len, "%s%lld.%02lld", total < 0 ? "-" : "",
				llabs(total) / 100, llabs(total) % 100);
			while (want[len - 1] == '0')
				len--;
			len -= want[len - 1] == '.';
			snprintf(want + len, sizeof(want) - (size_t)len, " a_min=%s' a_max=%s'", extremes[0],
				extremes[1]);
		}
		wm_buf_init(&out, WM_BUF_UNBOUNDED);
		print_cell(agg, group.cell, MINUTE_US, &out);
		ok = wm_span_is(wm_buf_span(&out), want);
		if (!ok)
			printf("# got  %.*s\n# want %s\n", (int)out.len, out.data, want);
		wm_buf_release(&out);
		group_free(&group);
	}
	tap_ok(ok, "random groups agree with whole hundredths");
	wm_agg_free(agg);
}

/* Conditional aggregates against counts and sums that the test makes row by row; a status and a size, some of both empty. */
static void
test_conditions_random(void)
{
	struct wm_agg *agg = plan_of("n=count:status:ge:500,share=share:status:ge:500,sum=sum:bytes:if:status:ge:500,"
				     "values=count:bytes:if:status:ge:500,max=max:bytes:if:status:lt:300,"
				     "median=median:bytes:if:status:eq:200,big=count:bytes:gt:50,all=count");
	uint64_t seed = 10;
	bool ok = true;

	tap_int((int64_t)wm_agg_columns_count(agg), 2, "a status and a size");
	for (int round = 0; round < 300 && ok; round++) {
		static const int codes[] = { 200, 204, 301, 404, 499, 500, 503 };
		struct group group = group_new(agg);
		int rows = (int)(tap_random(&seed) % 40), n = 0, with_status = 0, sum = 0, values = 0, max = -1,
		    big = 0;
		int middle[40], middle_count = 0;
		char want[300], text[2][16];
		struct wm_buf out;

		for (int i = 0; i < rows; i++) {
			int status = codes[tap_random(&seed) % 7], bytes = (int)(tap_random(&seed) % 100);
			bool has_status = tap_random(&seed) % 5 != 0, has_bytes = tap_random(&seed) % 5 != 0;
			struct wm_reading readings[2];

			/* No digits of nothing are the empty text. */
			snprintf(text[0], sizeof(text[0]), "%.*d", has_status, has_status * status);
			snprintf(text[1], sizeof(text[1]), "%.*d", has_bytes, has_bytes * bytes);
			for (size_t j = 0; j < 2; j++)
				readings[j] = reading_of(text[j], WM_KIND_TEXT);
			wm_agg_cell_add(agg, group.cell, &group.arena, readings, i);
			with_status += has_status;
			big += has_bytes && bytes > 50;
			n += has_status && status >= 500;
			sum += has_status && has_bytes && status >= 500 ? bytes : 0;
			values += has_status && has_bytes && status >= 500;
			if (has_status && has_bytes && status < 300 && bytes > max)
				max = bytes;
			if (has_status && has_bytes && status == 200) {
				int at = middle_count++;

				for (; at > 0 && middle[at - 1] > bytes; at--)
					middle[at] = middle[at - 1];
				middle[at] = bytes;
			}
		}
		int len = snprintf(want, sizeof(want), "n=%d share=", n);
		if (with_status == 0)
			len += snprintf(want + len, sizeof(want) - (size_t)len, "?");
		else
			len += snprintf(want + len, sizeof(want) - (size_t)len, "%.4f", (double)n / with_status);
		len += snprintf(want + len, sizeof(want) - (size_t)len, " sum=");
		len += snprintf(want + len, sizeof(want) - (size_t)len, values == 0 ? "?" : "%d", sum);
		len += snprintf(want + len, sizeof(want) - (size_t)len, " values=%d max=", values);
		len += snprintf(want + len, sizeof(want) - (size_t)len, max < 0 ? "?" : "%d'", max);
		len += snprintf(want + len, sizeof(want) - (size_t)len, " median=");
		if (middle_count == 0)
			len += snprintf(want + len, sizeof(want) - (size_t)len, "?");
		else
			len += snprintf(want + len, sizeof(want) - (size_t)len, "%.1f",
				(middle[(middle_count - 1) / 2] + middle[middle_count / 2]) / 2.0);
		snprintf(want + len, sizeof(want) - (size_t)len, " big=%d all=%d", big, rows);

		/* The share and the median, as numbers, are written as the model writes them. */
		wm_buf_init(&out, WM_BUF_UNBOUNDED);
		for (size_t i = 0; i < wm_agg_outputs_count(agg); i++) {
			size_t begin = out.len;
			struct wm_span name = wm_agg_output_name(agg, i);

			wm_buf_addf(&out, "%s%.*s=", i == 0 ? "" : " ", (int)name.len, name.data);
			begin = out.len;
			enum wm_kind kind = wm_agg_cell_print(agg, group.cell, i, MINUTE_US, &out);
			if (kind == WM_KIND_NULL) {
				wm_buf_add_byte(&out, '?');
			} else if (i == 1 || i == 5) {
				wm_buf_add_byte(&out, '\0');
				double value = strtod(out.data + begin, NULL);
				out.len = begin;
				wm_buf_addf(&out, i == 1 ? "%.4f" : "%.1f", value);
			} else if (kind == WM_KIND_TEXT) {
				wm_buf_add_byte(&out, '\'');
			}
		}
		ok = wm_span_is(wm_buf_span(&out), want);
		if (!ok)
			printf("# got  %.*s\n# want %s\n", (int)out.len, out.data, want);
		wm_buf_release(&out);
		group_free(&group);
	}
	tap_ok(ok, "conditional aggregates of random rows agree with a loop over them");
	wm_agg_free(agg);
}

/* Damaged bytes give an error or a cell that prints, merges and encodes; nothing else (the sanitizers watch). */
static void
test_damage(void)
{
	struct wm_agg *agg = plan_of(all_of_two);
	uint64_t seed = 9;
	struct group group = group_new(agg);
	struct wm_buf bytes, scratch;
	size_t accepted = 0, refused = 0;
	struct wm_get in;

	for (int i = 0; i < 40; i++) {
		struct row row;

		random_row(&seed, &row);
		wm_agg_cell_add(agg, group.cell, &group.arena, row.readings, i);
	}
	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_buf_init(&scratch, WM_BUF_UNBOUNDED);
	wm_agg_cell_encode(agg, group.cell, &bytes);
	for (size_t len = 0; len < bytes.len; len++) {
		struct group other = group_new(agg);
		char *part = wm_memdup(bytes.data, len); /* so that a read behind the end is seen */

		wm_get_init(&in, wm_span(part, len));
		refused += !wm_agg_cell_decode(agg, other.cell, &other.arena, &in);
		free(part);
		group_free(&other);
	}
	tap_int((int64_t)refused, (int64_t)bytes.len, "every shorter encoding is refused");

	refused = 0;
	for (int i = 0; i < 4000; i++) {
		struct group other = group_new(agg);
		char *damaged = wm_memdup(bytes.data, bytes.len);

		for (uint64_t n = 1 + tap_random(&seed) % 3; n > 0; n--)
			damaged[tap_random(&seed) % bytes.len] = (char)tap_random(&seed);
		wm_get_init(&in, wm_span(damaged, bytes.len));
		if (wm_agg_cell_decode(agg, other.cell, &other.arena, &in)) {
			accepted++;
			wm_agg_cell_merge(agg, other.cell, &other.arena, group.cell);
			wm_buf_reset(&scratch);
			print_cell(agg, other.cell, MINUTE_US, &scratch);
			wm_agg_cell_encode(agg, other.cell, &scratch);
		} else {
			refused++;
		}
		free(damaged);
		group_free(&other);
	}
	tap_ok(accepted > 100 && refused > 100, "damaged encodings: %zu read, %zu refused, none does harm", accepted,
		refused);
	wm_buf_release(&bytes);
	wm_buf_release(&scratch);
	group_free(&group);
	wm_agg_free(agg);

	agg = plan_of("count:v");
	group = group_new(agg);
	wm_get_init(&in, wm_span("\1\2", 2));
	tap_ok(!wm_agg_cell_decode(agg, group.cell, &group.arena, &in), "more values than rows are refused");
	group_free(&group);
	wm_agg_free(agg);
	agg = plan_of("count:v:ge:5");
	group = group_new(agg);
	wm_get_init(&in, wm_span("\1\2", 2));
	tap_ok(!wm_agg_cell_decode(agg, group.cell, &group.arena, &in), "more rows that fulfil a condition too");
	group_free(&group);
	wm_agg_free(agg);
	agg = plan_of("median:v");
	group = group_new(agg);
	wm_get_init(&in, wm_span("\1\2\0\0\1\0\0\0\0\0\0\0\1", 13));
	tap_ok(!wm_agg_cell_decode(agg, group.cell, &group.arena, &in), "and more values of a percentile");
	group_free(&group);
	wm_agg_free(agg);
	agg = plan_of("max:v");
	group = group_new(agg);
	wm_get_init(&in, wm_span("\1\5\1x", 4));
	tap_ok(!wm_agg_cell_decode(agg, group.cell, &group.arena, &in), "so is a kind that there is not");
	wm_get_init(&in, wm_span("\1\1\0", 3));
	tap_ok(!wm_agg_cell_decode(agg, group.cell, &group.arena, &in), "and an empty text that is kept");
	group_free(&group);
	wm_agg_free(agg);
}

int
main(void)
{
	test_merge_random();
	test_mixed_values();
	test_model_random();
	test_conditions_random();
	test_damage();
	return tap_done();
}
