/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/dedup.h"

#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/event/watermark.h"
#include "tests/unit/tap.h"

#define COLUMNS_MAX 3
#define TEXTS 12
#define ROWS 6000
#define MODEL_MAX ROWS

/* Values that run into each other where they are joined or their kinds are forgotten. */
static struct wm_value texts[TEXTS];
static char long_text[300], longer_text[70000];

static void
fill_texts(void)
{
	memset(long_text, 'x', sizeof(long_text));
	memset(longer_text, 'y', sizeof(longer_text));
	texts[0] = (struct wm_value){ wm_span("", 0), WM_KIND_NULL };
	texts[1] = (struct wm_value){ wm_span("", 0), WM_KIND_TEXT };
	texts[2] = (struct wm_value){ wm_span_of("1"), WM_KIND_TEXT };
	texts[3] = (struct wm_value){ wm_span_of("1"), WM_KIND_NUMBER };
	texts[4] = (struct wm_value){ wm_span_of("11"), WM_KIND_TEXT };
	texts[5] = (struct wm_value){ wm_span_of("a,b"), WM_KIND_TEXT };
	texts[6] = (struct wm_value){ wm_span_of("a"), WM_KIND_TEXT };
	texts[7] = (struct wm_value){ wm_span_of(",b"), WM_KIND_TEXT };
	texts[8] = (struct wm_value){ wm_span("\0\x09", 2), WM_KIND_TEXT };
	texts[9] = (struct wm_value){ wm_span(long_text, 200), WM_KIND_TEXT };
	texts[10] = (struct wm_value){ wm_span(long_text, 300), WM_KIND_TEXT };
	texts[11] = (struct wm_value){ wm_span(longer_text, sizeof(longer_text)), WM_KIND_JSON };
}

/* The rules, said plainly: a list of what is remembered. */
struct model {
	struct wm_dedup_options options;
	struct {
		uint64_t key; /* the choice of texts */
		int64_t time_us;
	} entries[MODEL_MAX];
	size_t count;
};

static bool
model_forgets(const struct wm_dedup_options *options, int64_t time_us, int64_t watermark_us)
{
	int64_t remember_us = options->remember_us;

	if (watermark_us == WM_TIME_NONE || options->memory == WM_DEDUP_FOREVER)
		return watermark_us == WM_TIME_END;
	if (options->memory == WM_DEDUP_WITH_TIME)
		return options->is_spark ? watermark_us >= time_us : watermark_us > time_us;
	if (options->is_spark)
		remember_us = remember_us / 1000 * 1000;
	return watermark_us >= time_us + remember_us;
}

static void
model_forget(struct model *model, int64_t watermark_us)
{
	size_t kept = 0;

	for (size_t i = 0; i < model->count; i++)
		if (!model_forgets(&model->options, model->entries[i].time_us, watermark_us))
			model->entries[kept++] = model->entries[i];
	model->count = kept;
}

static enum wm_dedup_verdict
model_judge(struct model *model, uint64_t key, int64_t time_us, int64_t watermark_us)
{
	model_forget(model, watermark_us);
	if (time_us < watermark_us || (model->options.is_spark && time_us <= watermark_us))
		return WM_DEDUP_LATE;
	for (size_t i = 0; i < model->count; i++)
		if (model->entries[i].key == key &&
			(model->options.memory != WM_DEDUP_WITH_TIME || model->entries[i].time_us == time_us))
			return WM_DEDUP_DUPLICATE;
	model->entries[model->count].key = key;
	model->entries[model->count++].time_us = time_us;
	return WM_DEDUP_FIRST;
}

static struct wm_dedup *
resumed(struct wm_dedup *dedup, const struct wm_dedup_options *options)
{
	struct wm_dedup *again = wm_dedup_new(options);
	struct wm_buf bytes;
	struct wm_get in;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	wm_dedup_encode(dedup, &bytes);
	wm_get_init(&in, wm_buf_span(&bytes));
	if (!wm_dedup_decode(again, &in) || wm_get_left(&in) != 0) {
		wm_dedup_free(again);
		again = NULL;
	}
	wm_buf_release(&bytes);
	wm_dedup_free(dedup);
	return again;
}

/* A random stream against the model; resumes every so often. Leaves the last state in bytes. */
static bool
run(const struct wm_dedup_options *options, uint64_t seed, bool is_resuming, struct wm_buf *bytes)
{
	static struct model model;
	struct wm_dedup *dedup = wm_dedup_new(options);
	struct wm_value keys[COLUMNS_MAX];
	int64_t delay_us = (int64_t)(tap_random(&seed) % 200000), highest_us = WM_TIME_NONE,
		watermark_us = WM_TIME_NONE;
	int64_t now_us = -3000000;
	unsigned texts_count = 2 + (unsigned)(tap_random(&seed) % (TEXTS - 1)),
		 batch = 1 + (unsigned)(tap_random(&seed) % 7);
	unsigned step = tap_random(&seed) % 2 == 0 ? 1000 : 7;
	uint64_t added = 0;
	bool ok = true;

	model.options = *options;
	model.count = 0;
	for (int i = 0; i < ROWS && ok; i++) {
		uint64_t key = 0;

		for (size_t column = 0; column < options->keys_count; column++) {
			uint64_t text = tap_random(&seed) % texts_count;

			if (text == TEXTS - 1 && i % 100 != 0)
				text = 0;
			keys[column] = texts[text];
			key = key * TEXTS + text;
		}
		now_us += (int64_t)(tap_random(&seed) % 2000);
		if (tap_random(&seed) % 1000 == 0)
			now_us += 10000000;
		int64_t time_us = now_us - (int64_t)(tap_random(&seed) % 300000);
		time_us -= time_us % step;
		if (time_us > highest_us)
			highest_us = time_us;
		if (batch == 1)
			watermark_us = highest_us - delay_us;
		struct wm_dedup_record record = { time_us, watermark_us, keys, 0 };
		if (tap_random(&seed) % 3 == 0) {
			record.number = (uint64_t)i + 1;
			wm_dedup_foresee(dedup, time_us, keys, record.number);
		}
		enum wm_dedup_verdict got = wm_dedup_judge(dedup, &record);
		enum wm_dedup_verdict want = model_judge(&model, key, time_us, watermark_us);
		added += want == WM_DEDUP_FIRST;
		if (got != want) {
			printf("#   row %d: verdict %d, want %d\n", i, (int)got, (int)want);
			ok = false;
		}
		if (batch > 1 && (unsigned)i % batch == 0 && i > 40) {
			watermark_us = highest_us - delay_us;
			wm_dedup_advance(dedup, watermark_us);
			model_forget(&model, watermark_us);
		}
		if (i % 97 == 0 && ok) {
			struct wm_dedup_counts counts = wm_dedup_counts(dedup);

			ok = counts.keys == model.count && counts.added == added &&
				counts.removed == added - model.count;
			if (!ok)
				printf("#   row %d: %" PRIu64 " keys, want %zu\n", i, counts.keys, model.count);
		}
		if (is_resuming && tap_random(&seed) % 500 == 0) {
			dedup = resumed(dedup, options);
			if (dedup == NULL) {
				printf("#   row %d: what was encoded is refused\n", i);
				return false;
			}
		}
	}
	if (bytes != NULL)
		wm_dedup_encode(dedup, bytes);
	wm_dedup_advance(dedup, WM_TIME_END);
	ok = ok && wm_dedup_counts(dedup).keys == 0;
	wm_dedup_free(dedup);
	return ok;
}

static struct wm_dedup_options
random_options(uint64_t *seed)
{
	return (struct wm_dedup_options){
		.keys_count = 1 + tap_random(seed) % COLUMNS_MAX,
		.memory = (enum wm_dedup_memory)(tap_random(seed) % 3),
		.remember_us = (int64_t)(tap_random(seed) % 400000),
		.is_spark = tap_random(seed) % 3 == 0,
	};
}

static void
test_random(void)
{
	uint64_t seed = 11, cases = 0;
	bool ok = true;

	for (; cases < 60 && ok; cases++) {
		struct wm_dedup_options options = random_options(&seed);

		ok = run(&options, tap_random(&seed), cases % 2 == 1, NULL);
	}
	tap_ok(ok, "60 random streams: verdicts and counts are those of a list, half of them resumed on the way");
}

/* The same stream under another secret. */
static void
test_secret(void)
{
	uint64_t seed = 5;
	bool is_same = true;

	for (int i = 0; i < 6; i++) {
		struct wm_dedup_options options = random_options(&seed);
		uint64_t stream = tap_random(&seed), kept = wm_hash_secret[0];
		struct wm_buf bytes[2];

		for (int run_number = 0; run_number < 2; run_number++) {
			wm_buf_init(&bytes[run_number], WM_BUF_UNBOUNDED);
			wm_hash_secret[0] = kept + (uint64_t)run_number;
			is_same = run(&options, stream, true, &bytes[run_number]) && is_same;
		}
		wm_hash_secret[0] = kept;
		is_same = is_same && wm_span_equal(wm_buf_span(&bytes[0]), wm_buf_span(&bytes[1]));
		wm_buf_release(&bytes[0]);
		wm_buf_release(&bytes[1]);
	}
	tap_ok(is_same, "the bytes of the state do not depend on the secret of the hash");
}

/* A secret of zeros gives most texts one hash: then keys are told apart by what they are. */
static void
test_collisions(void)
{
	uint64_t seed = 8, kept[4];
	bool ok = true;

	memcpy(kept, wm_hash_secret, sizeof(kept));
	memset(wm_hash_secret, 0, sizeof(kept));
	for (int i = 0; i < 9 && ok; i++) {
		struct wm_dedup_options options = random_options(&seed);

		options.memory = (enum wm_dedup_memory)(i % 3);
		ok = run(&options, tap_random(&seed), true, NULL);
	}
	memcpy(wm_hash_secret, kept, sizeof(kept));
	tap_ok(ok, "9 random streams where keys share their hash");
}

static enum wm_dedup_verdict
judge(struct wm_dedup *dedup, const char *key, int64_t time_us, int64_t watermark_us)
{
	const struct wm_value keys[COLUMNS_MAX] = { { wm_span_of(key), WM_KIND_TEXT } };
	struct wm_dedup_record record = { time_us, watermark_us, keys, 0 };

	return wm_dedup_judge(dedup, &record);
}

static void
test_edges(void)
{
	struct wm_dedup_options options = { .keys_count = 1, .remember_us = 10 };
	struct wm_dedup *dedup = wm_dedup_new(&options);

	tap_int(judge(dedup, "a", 0, -10), WM_DEDUP_FIRST, "a at 0 is the first");
	tap_int(judge(dedup, "a", 4, -6), WM_DEDUP_DUPLICATE, "a at 4 repeats it");
	tap_int(judge(dedup, "a", 9, 9), WM_DEDUP_DUPLICATE, "so it does while the watermark is at 9");
	tap_int(judge(dedup, "a", 10, 10), WM_DEDUP_FIRST,
		"at 10 a is forgotten, and what is at the watermark is not late");
	tap_int(judge(dedup, "a", 9, 10), WM_DEDUP_LATE, "what is behind it is late before it is a repeat");
	tap_int(judge(dedup, "b", 12, 3), WM_DEDUP_FIRST, "a watermark does not move back");
	tap_int(judge(dedup, "a", 19, 19), WM_DEDUP_DUPLICATE, "nor does a repeat extend the first one's time");
	tap_int(judge(dedup, "a", 20, 20), WM_DEDUP_FIRST, "which ends 10 after it");
	wm_dedup_free(dedup);

	options = (struct wm_dedup_options){ .keys_count = 1, .remember_us = 1500, .is_spark = true };
	dedup = wm_dedup_new(&options);
	tap_int(judge(dedup, "a", 1, 0), WM_DEDUP_FIRST, "spark: 1500 us are 1 ms");
	tap_int(judge(dedup, "a", 1001, 1000), WM_DEDUP_DUPLICATE, "so a is remembered at 1000");
	tap_int(judge(dedup, "a", 1002, 1001), WM_DEDUP_FIRST, "and forgotten at 1001");
	tap_int(judge(dedup, "b", 1001, 1001), WM_DEDUP_LATE, "spark: at the watermark is late");
	wm_dedup_free(dedup);

	options = (struct wm_dedup_options){ .keys_count = 1, .memory = WM_DEDUP_WITH_TIME };
	dedup = wm_dedup_new(&options);
	tap_int(judge(dedup, "a", 5, WM_TIME_NONE), WM_DEDUP_FIRST, "with the time: a at 5");
	tap_int(judge(dedup, "a", 6, 5), WM_DEDUP_FIRST, "a at 6 is another key");
	tap_int(judge(dedup, "a", 5, 5), WM_DEDUP_DUPLICATE, "a at 5 is remembered at 5");
	tap_int((int64_t)wm_dedup_counts(dedup).keys, 2, "two keys");
	wm_dedup_advance(dedup, 6);
	tap_int((int64_t)wm_dedup_counts(dedup).keys, 1, "one of them at 6");
	wm_dedup_free(dedup);

	options = (struct wm_dedup_options){ .keys_count = 1, .remember_us = 10 };
	dedup = wm_dedup_new(&options);
	tap_int(judge(dedup, "a", INT64_MIN + 1, WM_TIME_NONE), WM_DEDUP_FIRST, "the ends of time: the first");
	tap_int(judge(dedup, "b", INT64_MAX - 1, WM_TIME_NONE), WM_DEDUP_FIRST, "and the last");
	tap_int(judge(dedup, "b", INT64_MAX - 1, INT64_MAX - 1), WM_DEDUP_DUPLICATE, "are remembered");
	tap_int((int64_t)wm_dedup_counts(dedup).keys, 1, "and forgotten");
	wm_dedup_free(dedup);
}

/* A key that came again while it was forgotten but not yet gone from memory, and then a table that grows. */
static void
test_again(void)
{
	struct wm_dedup_options options = { .keys_count = 1, .remember_us = 1000000 };
	struct wm_dedup *dedup = wm_dedup_new(&options);
	char key[24];

	judge(dedup, "a", 1, 0);
	tap_int(judge(dedup, "a", 1000001, 1000001), WM_DEDUP_FIRST, "a is forgotten after its span");
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "b%d", i);
		judge(dedup, key, 1000002, 1000002);
	}
	tap_int(judge(dedup, "a", 1000003, 1000003), WM_DEDUP_DUPLICATE,
		"and remembered again, whatever comes between");
	tap_int((int64_t)wm_dedup_counts(dedup).keys, 1001, "once");
	wm_dedup_free(dedup);
}

/* Keys of 16 bytes, more and more, then a steady stream of them. */
static void
test_memory(void)
{
	struct wm_dedup_options options = { .keys_count = 1, .remember_us = 1000000 };
	struct wm_dedup *dedup = wm_dedup_new(&options);
	size_t worst = 0, steady = 0;
	char key[24];

	for (int64_t i = 1; i <= 300000; i++) {
		snprintf(key, sizeof(key), "%016" PRId64, i);
		judge(dedup, key, i, WM_TIME_NONE);
		if (i >= 1000 && wm_dedup_bytes(dedup) / (size_t)i > worst)
			worst = wm_dedup_bytes(dedup) / (size_t)i;
	}
	if (!tap_ok(worst < 64, "a remembered key of 16 bytes takes less than 64, all told"))
		printf("#   %zu bytes\n", worst);
	wm_dedup_free(dedup);

	dedup = wm_dedup_new(&options);
	for (int64_t i = 1; i <= 300000; i++) {
		snprintf(key, sizeof(key), "%016" PRId64, i);
		judge(dedup, key, i * 100, i * 100);
		if (wm_dedup_bytes(dedup) > steady)
			steady = wm_dedup_bytes(dedup);
	}
	/* 10 000 live at any time. */
	if (!tap_ok(steady < 10000 * 80, "memory is bounded by the span, not by the length of the stream"))
		printf("#   %zu bytes\n", steady);
	wm_dedup_free(dedup);
}

/* What is taken can be written and taken again, and used. */
static bool
decodes(const struct wm_dedup_options *options, struct wm_span bytes, bool *is_sound)
{
	struct wm_dedup *dedup = wm_dedup_new(options);
	struct wm_get in;

	wm_get_init(&in, bytes);
	bool ok = wm_dedup_decode(dedup, &in);
	if (ok)
		dedup = resumed(dedup, options);
	*is_sound = *is_sound && dedup != NULL;
	if (dedup != NULL) {
		judge(dedup, "a", 100, 50);
		wm_dedup_advance(dedup, WM_TIME_END);
		*is_sound = *is_sound && (!ok || wm_dedup_counts(dedup).keys == 0);
	}
	wm_dedup_free(dedup);
	return ok;
}

static void
put_key(struct wm_buf *out, int64_t due_us, uint8_t kind, const char *text)
{
	wm_put_i64(out, due_us);
	wm_put_u8(out, kind);
	wm_put_span(out, wm_span_of(text));
}

static void
test_hostile(void)
{
	static const struct {
		const char *name;
		uint64_t added;
		int64_t dues_us[2];
		uint8_t kind;
		const char *keys[2];
		enum wm_dedup_memory memory;
		bool is_good;
	} cases[] = {
		{ "two keys", 2, { 60, 60 }, 1, { "a", "b" }, WM_DEDUP_WITHIN_WATERMARK, true },
		{ "the same key twice", 2, { 60, 61 }, 1, { "a", "a" }, WM_DEDUP_WITHIN_WATERMARK, false },
		{ "with the time, two keys", 2, { 60, 61 }, 1, { "a", "a" }, WM_DEDUP_WITH_TIME, true },
		{ "a key that is forgotten already", 2, { 50, 60 }, 1, { "a", "b" }, WM_DEDUP_WITHIN_WATERMARK, false },
		{ "an unknown kind", 2, { 60, 60 }, 5, { "a", "b" }, WM_DEDUP_WITHIN_WATERMARK, false },
		{ "more keys than were ever added", 1, { 60, 60 }, 1, { "a", "b" }, WM_DEDUP_WITHIN_WATERMARK, false },
		{ "a key for ever where keys go", 2, { WM_TIME_END, 60 }, 1, { "a", "b" }, WM_DEDUP_WITHIN_WATERMARK,
			false },
		{ "a key that goes where they stay", 2, { WM_TIME_END, 60 }, 1, { "a", "b" }, WM_DEDUP_FOREVER, false },
	};
	struct wm_buf bytes;
	uint64_t seed = 1;
	bool ok = true, is_sound = true;

	wm_buf_init(&bytes, WM_BUF_UNBOUNDED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wm_dedup_options options = { .keys_count = 1, .remember_us = 10, .memory = cases[i].memory };

		wm_buf_reset(&bytes);
		wm_put_i64(&bytes, 50);
		wm_put_varint(&bytes, cases[i].added);
		wm_put_varint(&bytes, 2);
		for (size_t key = 0; key < 2; key++)
			put_key(&bytes, cases[i].dues_us[key], cases[i].kind, cases[i].keys[key]);
		tap_ok(decodes(&options, wm_buf_span(&bytes), &is_sound) == cases[i].is_good, "%s: %s", cases[i].name,
			cases[i].is_good ? "taken" : "refused");
	}

	struct wm_dedup_options options = { .keys_count = 2, .remember_us = 100000 };
	wm_buf_reset(&bytes);
	run(&options, 4, false, &bytes);
	for (size_t len = 0; len < bytes.len && ok; len += 1 + len / 50)
		ok = !decodes(&options, wm_span(bytes.data, len), &is_sound);
	tap_ok(ok && decodes(&options, wm_buf_span(&bytes), &is_sound), "a state cut short is refused at any length");
	for (int i = 0; i < 300; i++) {
		size_t at = tap_random(&seed) % bytes.len;
		char before = bytes.data[at];

		bytes.data[at] = (char)tap_random(&seed);
		decodes(&options, wm_buf_span(&bytes), &is_sound);
		bytes.data[at] = before;
	}
	tap_ok(is_sound, "bytes changed at random are refused, or make a state that can be used and written again");
	wm_buf_release(&bytes);
}

int
main(void)
{
	fill_texts();
	test_edges();
	test_random();
	test_secret();
	test_collisions();
	test_again();
	test_memory();
	test_hostile();
	return tap_done();
}
