/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_checkpoint - bytes as a checkpoint file, held to three laws:
 *
 *   - they are refused with a message, or their sections lie within them;
 *   - so too when the hashes are made right, which no mutation finds by itself;
 *   - what is taken, written again, is taken again with the same sections.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/state/checkpoint.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/seal.h"

/* Files in memory, as many as a commit needs: it never asks for two at once. */
static int
memory_open(void *self, const char *path, int flags, mode_t mode)
{
	(void)flags;
	(void)mode;
	if (strcmp(path, "st.tmp") != 0)
		return memfd_create("folder", MFD_CLOEXEC);
	*(int *)self = memfd_create("st", MFD_CLOEXEC);
	return dup(*(int *)self);
}

static int
memory_link(void *self, const char *from, const char *to)
{
	(void)self;
	(void)from;
	(void)to;
	return 0;
}

static int
memory_unlink(void *self, const char *path)
{
	(void)self;
	(void)path;
	return 0;
}

static void
hold_written(const struct wm_checkpoint *from)
{
	struct wm_checkpoint_calls calls = wm_checkpoint_system;
	struct wm_checkpoint back;
	struct wm_err err;
	int fd = -1;

	calls.self = &fd;
	calls.open = memory_open;
	calls.link = calls.rename = memory_link;
	calls.unlink = memory_unlink;
	struct wm_checkpoint_writer *writer =
		wm_checkpoint_create(&calls, "st", from->tool, from->written_at_us, from->generation, &err);
	expect(writer != NULL, "a file in memory");
	for (int part = 0; part < WM_CHECKPOINT_PARTS; part++) {
		struct wm_checkpoint_section section = from->sections[part];

		if (part % 2 == 0) {
			expect(wm_checkpoint_put_section(writer, (enum wm_checkpoint_part)part, section, &err),
				"a section");
			continue;
		}
		wm_checkpoint_begin_section(writer, (enum wm_checkpoint_part)part, section.version);
		for (size_t at = 0; at < section.payload.len; at++)
			expect(wm_checkpoint_put(writer, wm_span(section.payload.data + at, 1), &err), "a byte");
		expect(wm_checkpoint_end_section(writer, &err), "its end");
	}
	expect(wm_checkpoint_commit(writer, true, &err), "a commit");
	size_t len = (size_t)lseek(fd, 0, SEEK_END);
	char *bytes = wm_malloc(len);
	expect(pread(fd, bytes, len, 0) == (ssize_t)len, "what was written");
	expect(wm_checkpoint_parse(&back, wm_span(bytes, len), "st", UINT64_MAX, &err), "it is taken again");
	expect(strcmp(back.tool, from->tool) == 0 && back.written_at_us == from->written_at_us &&
			back.generation == from->generation,
		"with the same header");
	for (int part = 0; part < WM_CHECKPOINT_PARTS; part++)
		expect(back.sections[part].version == from->sections[part].version &&
				wm_span_equal(back.sections[part].payload, from->sections[part].payload),
			"and the same sections");
	free(bytes);
	close(fd);
}

static void
hold(struct wm_span bytes)
{
	struct wm_checkpoint checkpoint;
	struct wm_err err = { 0 };

	if (!wm_checkpoint_parse(&checkpoint, bytes, "st", UINT64_MAX, &err)) {
		expect(err.code == WM_ERR_IO && strncmp(err.message, "st: ", 4) == 0, "a refusal has its message");
		return;
	}
	for (int part = 0; part < WM_CHECKPOINT_PARTS; part++) {
		struct wm_span payload = checkpoint.sections[part].payload;

		expect(payload.data >= bytes.data && payload.data + payload.len <= bytes.data + bytes.len,
			"sections lie within the file");
	}
	hold_written(&checkpoint);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = wm_malloc(size == 0 ? 1 : size);

	if (size > 0)
		memcpy(bytes, data, size);
	hold(wm_span(bytes, size));
	seal(bytes, size);
	hold(wm_span(bytes, size));
	free(bytes);
	return 0;
}
