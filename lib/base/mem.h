/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem - allocation that does not fail.
 *
 * Out of memory is the one failure that lib/ does not hand back: the process
 * prints one line and stops with status 3; the last checkpoint stands. Growth
 * that input can drive has to meet a limit of its own long before that.
 * Memory is given back with free().
 */
#ifndef WM_BASE_MEM_H
#define WM_BASE_MEM_H

#include <stddef.h>

void *wm_malloc(size_t size) __attribute__((malloc, returns_nonnull));
void *wm_calloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/*
 * The same for a table that is looked into all over: on large pages where it fills some and the system has them, as finding a page
 * would take longer than reading from it; aligned to a line of the cache.
 */
void *wm_calloc_wide(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/* For memory that a library was to get; 0: nobody knows how much. */
void wm_mem_stop(size_t size) __attribute__((noreturn));

/* Room for count members of size bytes; the product is checked. */
void *wm_reallocarray(void *old, size_t count, size_t size) __attribute__((returns_nonnull));

/* Room for one more member of an array that doubles when it is full: the array, moved perhaps, and *capacity with it. */
static inline void *
wm_grown(void *array, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity == 0 ? 16 : *capacity * 2;
	return wm_reallocarray(array, *capacity, size);
}

/* A copy with a NUL behind it. */
char *wm_memdup(const void *data, size_t len) __attribute__((malloc, returns_nonnull));

#endif
