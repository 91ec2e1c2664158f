/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_memory - a library for LD_PRELOAD under which the n-th request for memory
 * is not met.
 *
 * WM_FAULT=memory:N, from 1; others are not for this library. WM_COUNT=FILE: how many there were is
 * added to it at the end. Not with a build that has an allocator of its own.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t unit, size_t size);

static unsigned long requests, refused;
static int is_read;

static int
is_refused(void)
{
	static const char name[] = "memory:";

	if (!is_read) {
		const char *text = getenv("WM_FAULT");

		is_read = 1;
		if (text != NULL && strncmp(text, name, sizeof(name) - 1) == 0)
			refused = strtoul(text + sizeof(name) - 1, NULL, 10);
	}
	if (++requests != refused)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *
malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *old, size_t size)
{
	return is_refused() ? NULL : __libc_realloc(old, size);
}

void *
reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return is_refused() ? NULL : __libc_realloc(old, bytes);
}

void *
aligned_alloc(size_t unit, size_t size)
{
	return is_refused() ? NULL : __libc_memalign(unit, size);
}

int
posix_memalign(void **memory, size_t unit, size_t size)
{
	void *got = is_refused() ? NULL : __libc_memalign(unit, size);

	if (got == NULL)
		return ENOMEM;
	*memory = got;
	return 0;
}

static __attribute__((destructor)) void
tell(void)
{
	const char *path = getenv("WM_COUNT");
	unsigned long count = requests;

	if (path == NULL)
		return;
	FILE *file = fopen(path, "ae");
	if (file == NULL || fprintf(file, "memory %lu\n", count) < 0 || fclose(file) != 0)
		abort();
}
