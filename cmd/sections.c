/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sections.h"

#include <inttypes.h>
#include <string.h>

enum input_flag { INPUT_PIPE = 1, INPUT_AT_END = 2, INPUT_OPERAND = 4, INPUT_NO_ROWS = 8 };

/* Bytes of the shortest items, so that a count can be compared with the bytes left. */
#define INPUT_BYTES_LEAST 70
#define OUTPUT_BYTES_LEAST 35

uint32_t
sections_version(enum wm_checkpoint_part part)
{
	return part == WM_CHECKPOINT_INPT ? 2 : 1;
}

bool
sections_open(struct wm_checkpoint *checkpoint, enum wm_checkpoint_part part, uint32_t version_max, const char *path,
	struct wm_get *in, struct wm_err *err)
{
	const struct wm_checkpoint_section *section = &checkpoint->sections[part];

	if (section->version > version_max)
		return wm_err_set(err, WM_ERR_IO,
			"%s: has section %s in version %" PRIu32 ", and this program knows up to %" PRIu32
			": use the newer wm that wrote it",
			path, wm_checkpoint_part_name(part), section->version, version_max);
	if (part == WM_CHECKPOINT_STAT)
		wm_checkpoint_open_state(checkpoint, in);
	else
		wm_get_init(in, section->payload);
	return true;
}

bool
sections_close(struct wm_checkpoint *checkpoint, enum wm_checkpoint_part part, const char *path, bool is_decoded,
	struct wm_get *in, struct wm_err *err)
{
	bool is_whole = is_decoded && !in->failed && wm_get_left(in) == 0;

	if (part == WM_CHECKPOINT_STAT && !wm_checkpoint_close_state(checkpoint, in, err))
		return false;
	return is_whole || sections_damaged(part, path, err);
}

bool
sections_damaged(enum wm_checkpoint_part part, const char *path, struct wm_err *err)
{
	return wm_err_set(err, WM_ERR_IO, "%s: damaged: section %s does not hold what belongs in it", path,
		wm_checkpoint_part_name(part));
}

void
sections_put_option(const struct sections_option *option, struct wm_buf *out)
{
	wm_put_u8(out, option->may_rise);
	wm_put_span(out, option->name);
	wm_put_span(out, option->value);
	wm_put_i64(out, option->may_rise ? option->amount : 0);
}

void
sections_get_option(struct wm_get *in, struct sections_option *option)
{
	option->may_rise = wm_get_u8(in) != 0;
	option->name = wm_get_span(in);
	option->value = wm_get_span(in);
	option->amount = wm_get_i64(in);
}

/* A path, which ends at no NUL within. */
static struct wm_span
get_path(struct wm_get *in)
{
	struct wm_span path = wm_get_span(in);

	if (path.len != 0 && memchr(path.data, '\0', path.len) != NULL)
		wm_get_fail(in);
	return path;
}

/* An offset or a length, which is one of a file. */
static uint64_t
get_offset(struct wm_get *in)
{
	uint64_t offset = wm_get_u64(in);

	if (offset > INT64_MAX)
		wm_get_fail(in);
	return offset;
}

static uint64_t
get_count(struct wm_get *in, size_t bytes_least)
{
	uint64_t count = wm_get_varint(in);

	if (count > wm_get_left(in) / bytes_least)
		wm_get_fail(in);
	return in->failed ? 0 : count;
}

void
sections_put_input(const struct sections_input *input, struct wm_buf *out)
{
	wm_put_u8(out,
		(uint8_t)((input->is_pipe ? INPUT_PIPE : 0) | (input->is_at_end ? INPUT_AT_END : 0) |
			(input->is_operand ? INPUT_OPERAND : 0) | (input->has_no_rows ? INPUT_NO_ROWS : 0)));
	wm_put_span(out, input->path);
	wm_put_u64(out, input->device);
	wm_put_u64(out, input->inode);
	wm_put_i64(out, input->modified_us);
	wm_put_u64(out, input->place);
	wm_put_u64(out, input->offset);
	wm_put_u64(out, input->lines);
	wm_put_u64(out, input->head_hash);
	wm_put_u64(out, input->is_pipe ? input->read_bytes : input->last_hash);
	wm_put_span(out, input->head);
	wm_put_span(out, input->tail);
	wm_put_span(out, input->position);
	wm_put_span(out, input->positions);
	wm_put_span(out, input->layout);
}

void
sections_get_input(struct wm_get *in, uint32_t version, struct sections_input *input)
{
	uint8_t flags = wm_get_u8(in);

	input->is_pipe = (flags & INPUT_PIPE) != 0;
	input->is_at_end = (flags & INPUT_AT_END) != 0;
	input->is_operand = (flags & INPUT_OPERAND) != 0;
	input->has_no_rows = (flags & INPUT_NO_ROWS) != 0;
	input->path = get_path(in);
	input->device = wm_get_u64(in);
	input->inode = wm_get_u64(in);
	input->modified_us = wm_get_i64(in);
	input->place = wm_get_u64(in);
	input->offset = get_offset(in);
	input->lines = wm_get_u64(in);
	input->head_hash = wm_get_u64(in);
	uint64_t last = wm_get_u64(in);
	input->last_hash = input->is_pipe ? 0 : last;
	input->read_bytes = input->is_pipe ? last : 0;
	input->head = wm_get_span(in);
	input->tail = wm_get_span(in);
	input->position = wm_get_span(in);
	input->positions = version < 2 ? wm_span("", 0) : wm_get_span(in);
	input->layout = wm_get_span(in);
	uint64_t head_len_max = input->offset < SECTIONS_KNOWN_BYTES ? input->offset : SECTIONS_KNOWN_BYTES;
	if (input->head.len > (input->is_pipe ? head_len_max : 0))
		wm_get_fail(in);
}

uint64_t
sections_get_inputs_count(struct wm_get *in)
{
	return get_count(in, INPUT_BYTES_LEAST);
}

void
sections_put_output(const struct sections_output *output, struct wm_buf *out)
{
	wm_put_span(out, output->path);
	wm_put_span(out, output->option);
	wm_put_u64(out, output->device);
	wm_put_u64(out, output->inode);
	wm_put_u64(out, output->length);
	wm_put_u64(out, output->hash);
	wm_put_u8(out, output->is_finished);
}

void
sections_get_output(struct wm_get *in, struct sections_output *output)
{
	output->path = get_path(in);
	output->option = get_path(in);
	output->device = wm_get_u64(in);
	output->inode = wm_get_u64(in);
	output->length = get_offset(in);
	output->hash = wm_get_u64(in);
	output->is_finished = wm_get_u8(in) != 0;
}

uint64_t
sections_get_outputs_count(struct wm_get *in)
{
	return get_count(in, OUTPUT_BYTES_LEAST);
}
