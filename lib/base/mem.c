/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES ((size_t)64)
#define HUGE_BYTES ((size_t)2 << 20)

void
wm_mem_stop(size_t size)
{
	if (size == 0)
		fputs("wm: out of memory\n", stderr);
	else
		fprintf(stderr, "wm: out of memory: could not get %zu bytes\n", size);
	exit(3);
}

void *
wm_malloc(size_t size)
{
	void *memory = malloc(size == 0 ? 1 : size);

	if (memory == NULL)
		wm_mem_stop(size);
	return memory;
}

void *
wm_calloc(size_t count, size_t size)
{
	void *memory = calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);

	if (memory == NULL)
		wm_mem_stop(count * size);
	return memory;
}

void *
wm_calloc_wide(size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - HUGE_BYTES)
		wm_mem_stop(SIZE_MAX);
	size_t unit = bytes < HUGE_BYTES ? LINE_BYTES : HUGE_BYTES;
	bytes = (bytes / unit + (bytes % unit != 0 || bytes == 0)) * unit;
	void *memory = aligned_alloc(unit, bytes);
	if (memory == NULL)
		wm_mem_stop(bytes);
	/* Where there are no large pages it is memory like any other. */
	if (unit == HUGE_BYTES)
		(void)madvise(memory, bytes, MADV_HUGEPAGE);
	return memset(memory, 0, bytes);
}

void *
wm_reallocarray(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count == 0 ? 1 : count, size == 0 ? 1 : size);

	if (memory == NULL)
		wm_mem_stop(count * size);
	return memory;
}

char *
wm_memdup(const void *data, size_t len)
{
	char *copy = wm_malloc(len + 1);

	if (len != 0)
		memcpy(copy, data, len);
	copy[len] = '\0';
	return copy;
}
