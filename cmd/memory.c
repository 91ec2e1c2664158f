/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/list.h"
#include "lib/base/mem.h"

/* More than /proc/self/cgroup has; what is longer says nothing. */
#define GROUPS_BYTES_MAX 65536

/* A file of numbers above this has none: version 1 writes "no limit" as the last page of what a signed number reaches. */
#define LIMIT_MAX ((uint64_t)1 << 60)

static uint64_t
lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The number in a file; UINT64_MAX: there is no file, or no limit in it. */
static uint64_t
read_limit(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long limit = 0;
	uint64_t bytes = 0;
	int digit;

	if (file == NULL)
		return UINT64_MAX;
	bool is_number = false;
	while ((digit = getc(file)) >= '0' && digit <= '9' && limit < LIMIT_MAX) {
		limit = limit * 10 + (unsigned long long)(digit - '0');
		is_number = true;
	}
	fclose(file);
	bytes = limit;
	return is_number && bytes < LIMIT_MAX ? bytes : UINT64_MAX;
}

/* The least of the limits of a group and of all above it. group: "/a/b". */
static uint64_t
limit_of_group(const char *root, const char *folder, struct wm_span group, const char *name)
{
	uint64_t least = UINT64_MAX;
	struct wm_buf path;

	wm_buf_init(&path, WM_BUF_UNBOUNDED);
	for (;;) {
		wm_buf_reset(&path);
		wm_buf_addf(&path, "%s%s%.*s/%s%c", root, folder, (int)group.len, group.len == 0 ? "" : group.data,
			name, '\0');
		least = lesser(least, read_limit(path.data));
		if (group.len == 0)
			break;
		do
			group.len--;
		while (group.len > 0 && group.data[group.len] != '/');
	}
	wm_buf_release(&path);
	return least;
}

/* Whether a comma list has a word. */
static bool
has_word(struct wm_span list, const char *word)
{
	struct wm_span each;

	while (wm_list_next(&list, ',', &each))
		if (wm_span_is(each, word))
			return true;
	return false;
}

uint64_t
memory_of_groups(const char *groups, const char *root)
{
	char *text = wm_malloc(GROUPS_BYTES_MAX);
	FILE *file = fopen(groups, "re");
	uint64_t least = UINT64_MAX;
	struct wm_span rest, line, id, controllers;

	size_t len = file == NULL ? 0 : fread(text, 1, GROUPS_BYTES_MAX, file);
	if (file != NULL)
		fclose(file);
	rest = len == 0 ? wm_span(NULL, 0) : wm_span(text, len);
	/* "0::/a/b" is version 2, "7:memory,pids:/a/b" version 1. */
	while (wm_list_next(&rest, '\n', &line)) {
		if (!wm_list_next(&line, ':', &id) || !wm_list_next(&line, ':', &controllers) || line.data == NULL ||
			line.len == 0 || line.data[0] != '/')
			continue;
		while (line.len > 0 && line.data[line.len - 1] == '/')
			line.len--;
		if (wm_span_is(id, "0") && controllers.len == 0)
			least = lesser(least, limit_of_group(root, "", line, "memory.max"));
		else if (has_word(controllers, "memory"))
			least = lesser(least, limit_of_group(root, "/memory", line, "memory.limit_in_bytes"));
	}
	free(text);
	return least;
}

uint64_t
memory_usable(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t physical = pages <= 0 || page_bytes <= 0 ? UINT64_MAX : (uint64_t)pages * (uint64_t)page_bytes;

	return lesser(physical, memory_of_groups("/proc/self/cgroup", "/sys/fs/cgroup"));
}
