#include "lib/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
wm_mem_stop(size_t size)
{
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
