/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/contents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"
#include "lib/time/duration.h"
#include "lib/time/zone.h"

const char *
contents_option(struct contents *contents, const char *name)
{
	for (size_t i = 0; i < contents->options_count; i++) {
		if (!wm_span_is(contents->options[i].name, name))
			continue;
		struct wm_span value = contents->options[i].value;
		contents->texts =
			wm_reallocarray(contents->texts, contents->texts_count + 1, sizeof(contents->texts[0]));
		contents->texts[contents->texts_count++] = wm_memdup(value.data, value.len);
		return contents->texts[contents->texts_count - 1];
	}
	return NULL;
}

/* A duration that an option has; 0 where it was not given. */
static bool
read_duration(struct contents *contents, const char *name, struct cli_duration *duration)
{
	struct wm_err why;

	duration->text = contents_option(contents, name);
	return duration->text == NULL ||
		(wm_duration_parse_fixed(wm_span_of(duration->text), &duration->us, &why) && duration->us >= 0);
}

static bool
read_delay(struct contents *contents)
{
	struct cli_delay *delay = &contents->common.delay;
	struct cli_duration own = { 0 };
	struct wm_span rest, name;
	int64_t us;

	if (!read_duration(contents, "--delay", &own))
		return false;
	delay->text = own.text;
	delay->us = own.us;
	delay->others = contents_option(contents, "-w of sources");
	rest = delay->others == NULL ? wm_span(NULL, 0) : wm_span_of(delay->others);
	while (cli_next_source_delay(&rest, &name, &us))
		if (us < 0)
			return false;
	return rest.data == NULL;
}

/* The options that more than one command wants, back from their texts. */
static bool
read_common(struct contents *contents)
{
	struct cli_common *common = &contents->common;
	const char *policy = contents_option(contents, "--policy");
	const char *tz = contents_option(contents, "--tz");
	struct wm_err why;

	contents->tz = tz;
	common->is_spark = contents_option(contents, "--compat") != NULL;
	common->policy = policy != NULL && strcmp(policy, "max") == 0 ? WM_POLICY_MAX : WM_POLICY_MIN;
	common->trigger = contents_option(contents, "--trigger");
	common->source_column = contents_option(contents, "--source");
	common->merge = contents_option(contents, "--merge") != NULL;
	if (tz != NULL && strcmp(tz, "UTC") != 0) {
		common->zone = wm_zone_open(wm_span_of(tz), &why);
		contents->lacks_zone = common->zone == NULL;
	}
	return read_delay(contents) && read_duration(contents, "--idle", &common->idle) &&
		read_duration(contents, "--max-jump", &common->max_jump);
}

static bool
get_kind(struct wm_get *in, struct contents_kind *kind)
{
	uint8_t family = wm_get_u8(in);

	kind->pattern = wm_get_span(in);
	kind->family = (enum wm_time_family)family;
	return !in->failed && family <= WM_TIME_REFUSED;
}

/* What was found out about times: as many streams as follow in WMRK. */
static bool
decode_found(struct contents *contents, struct wm_get *in)
{
	for (size_t i = 0; wm_get_left(in) != 0; i++) {
		if (i == KEEP_STREAMS_MAX)
			return false;
		struct contents_stream *stream = &contents->streams[i];
		if (!get_kind(in, &stream->times))
			return false;
		stream->has_arrival = wm_get_u8(in) != 0;
		if (stream->has_arrival && !get_kind(in, &stream->arrival_times))
			return false;
	}
	return true;
}

static bool
decode_options(struct contents *contents, struct wm_get *in)
{
	uint64_t count = wm_get_varint(in);
	struct wm_get found;

	/* The shortest is a flag, two lengths and an amount. */
	if (in->failed || count > wm_get_left(in) / 11)
		return false;
	contents->options = wm_calloc((size_t)count + 1, sizeof(contents->options[0]));
	contents->options_count = (size_t)count;
	for (uint64_t i = 0; i < count; i++)
		sections_get_option(in, &contents->options[i]);
	wm_get_init(&found, wm_get_span(in));
	return !in->failed && decode_found(contents, &found) && read_common(contents);
}

static void
skip_texts(struct wm_get *in)
{
	for (uint64_t left = wm_get_varint(in); left > 0 && !in->failed; left--)
		(void)wm_get_span(in);
}

static enum wm_format
format_of(struct wm_span layout)
{
	uint8_t first = layout.len == 0 ? 0 : (uint8_t)layout.data[0];

	return wm_reader_format_kept(first);
}

static bool
decode_sources(struct contents *contents, struct contents_stream *stream, int64_t own_delay_us, struct wm_get *in)
{
	const struct cli_common *common = &contents->common;
	bool is_first = stream == contents->streams;
	size_t count;

	stream->sources = sources_decode_known(in, &count);
	if (stream->sources == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		int64_t delay_us = is_first ? sources_delay_us(common, stream->sources[i].name) : own_delay_us;
		struct wm_watermark own;

		if (stream->sources[i].kind > WM_KIND_JSON)
			return false;
		if (common->is_spark && stream->has_delay)
			wm_watermark_init_spark(&own, delay_us);
		else
			wm_watermark_init(&own, delay_us);
		wm_combine_add(&stream->combine, &own, 0);
	}
	if (!wm_combine_decode(&stream->combine, in))
		return false;
	if (wm_get_u8(in) == 0)
		return true;
	stream->guards = wm_calloc(count + 1, sizeof(stream->guards[0]));
	for (size_t i = 0; i < count; i++)
		if (!wm_guard_decode(&stream->guards[i], in))
			return false;
	return true;
}

static bool
decode_stream(struct contents *contents, struct contents_stream *stream, struct wm_get *in)
{
	struct cli_duration right = { 0 };
	struct contents_kind kind;

	if (!read_duration(contents, "--right-delay", &right))
		return false;
	stream->has_delay = (stream == contents->streams ? contents->common.delay.text : right.text) != NULL;
	stream->format = format_of(wm_get_span(in));
	skip_texts(in);
	stream->is_decided = wm_get_u8(in) != 0;
	stream->has_band = wm_get_u8(in) != 0;
	stream->follows_band = wm_get_u8(in) != 0;
	if (!get_kind(in, &kind))
		return false;
	if (wm_get_u8(in) != 0)
		skip_texts(in);
	stream->highest_us = wm_get_i64(in);
	stream->watermark_us = wm_get_i64(in);
	(void)wm_get_u8(in);
	return wm_trigger_decode(&stream->trigger, in) && decode_sources(contents, stream, right.us, in);
}

static bool
decode_watermarks(struct contents *contents, struct wm_get *in)
{
	contents->is_end = wm_get_u8(in) != 0;
	uint64_t count = wm_get_varint(in);
	if (in->failed || count == 0 || count > KEEP_STREAMS_MAX)
		return false;
	contents->streams_count = (size_t)count;
	for (size_t i = 0; i < count; i++)
		if (!decode_stream(contents, &contents->streams[i], in))
			return false;
	return true;
}

/* Whether the positions of an input can all be read. */
static bool
check_positions(const struct sections_input *input)
{
	struct wm_value source;
	struct wm_span value;
	struct wm_get in;

	wm_get_init(&in, input->positions);
	while (positions_next(&in, &source, &value))
		;
	return !in.failed;
}

static bool
decode_inputs(struct contents *contents, struct wm_get *in)
{
	bool is_decoded = true;

	contents->floor_us = wm_get_i64(in);
	contents->inputs_count = (size_t)sections_get_inputs_count(in);
	contents->inputs = wm_calloc(contents->inputs_count + 1, sizeof(contents->inputs[0]));
	for (size_t i = 0; i < contents->inputs_count; i++)
		sections_get_input(in, contents->file.sections[WM_CHECKPOINT_INPT].version, &contents->inputs[i]);
	for (size_t i = 0; i < contents->inputs_count && !in->failed; i++)
		is_decoded = is_decoded && check_positions(&contents->inputs[i]);
	return is_decoded;
}

static void
decode_outputs(struct contents *contents, struct wm_get *in)
{
	contents->is_closed = wm_get_u8(in) != 0;
	contents->outputs_count = (size_t)sections_get_outputs_count(in);
	contents->outputs = wm_calloc(contents->outputs_count + 1, sizeof(contents->outputs[0]));
	for (size_t i = 0; i < contents->outputs_count; i++)
		sections_get_output(in, &contents->outputs[i]);
}

static bool
decode_part(struct contents *contents, enum wm_checkpoint_part part, struct wm_get *in)
{
	switch (part) {
	case WM_CHECKPOINT_OPTS:
		return decode_options(contents, in);
	case WM_CHECKPOINT_WMRK:
		return decode_watermarks(contents, in);
	case WM_CHECKPOINT_INPT:
		return decode_inputs(contents, in);
	case WM_CHECKPOINT_OUTP:
		decode_outputs(contents, in);
		return true;
	default:
		return report_decode(&contents->ledger, in);
	}
}

/* The latest of a section that is known. */
static uint32_t
version_of(enum wm_checkpoint_part part)
{
	return part == WM_CHECKPOINT_WMRK || part == WM_CHECKPOINT_CNTR ? KEEP_SECTION_VERSION : sections_version(part);
}

static bool
decode(struct contents *contents, struct wm_err *err)
{
	for (enum wm_checkpoint_part part = WM_CHECKPOINT_OPTS; part < WM_CHECKPOINT_STAT; part++) {
		uint32_t version = version_of(part);
		struct wm_get in;

		if (!sections_open(&contents->file, part, version, contents->path, &in, err))
			return false;
		bool is_decoded = decode_part(contents, part, &in);
		if (!sections_close(&contents->file, part, contents->path, is_decoded, &in, err))
			return false;
	}
	return true;
}

bool
contents_load(struct contents *contents, const char *path, struct wm_err *err)
{
	*contents = (struct contents){ .path = path };
	report_init(&contents->ledger, NULL, NULL);
	switch (wm_checkpoint_load(&contents->file, &wm_checkpoint_system, path, UINT64_MAX, err)) {
	case WM_CHECKPOINT_ABSENT:
		return wm_err_set(err, WM_ERR_IO, "%s: cannot open: %s", path, strerror(ENOENT));
	case WM_CHECKPOINT_FAILED:
		return false;
	case WM_CHECKPOINT_LOADED:
		break;
	}
	for (size_t i = 0; i < KEEP_STREAMS_MAX; i++) {
		wm_combine_init(&contents->streams[i].combine, WM_POLICY_MIN, 0);
		wm_trigger_init(&contents->streams[i].trigger, WM_TRIGGER_EACH, 0, 0);
	}
	if (decode(contents, err))
		return true;
	contents_release(contents);
	return false;
}

void
contents_release(struct contents *contents)
{
	for (size_t i = 0; i < KEEP_STREAMS_MAX; i++) {
		wm_combine_release(&contents->streams[i].combine);
		wm_trigger_release(&contents->streams[i].trigger);
		free(contents->streams[i].sources);
		free(contents->streams[i].guards);
	}
	for (size_t i = 0; i < contents->texts_count; i++)
		free(contents->texts[i]);
	free(contents->texts);
	free(contents->options);
	free(contents->inputs);
	free(contents->outputs);
	if (contents->common.zone != NULL)
		wm_zone_close(contents->common.zone);
	wm_checkpoint_release(&contents->file);
}
