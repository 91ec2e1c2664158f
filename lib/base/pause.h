/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pause - where a long piece of work lets its caller look around.
 *
 * Work on very many objects calls it now and then, between two of its steps.
 * The call need not return: what is being made is then left as it is.
 */
#ifndef WM_BASE_PAUSE_H
#define WM_BASE_PAUSE_H

#include <stddef.h>

struct wm_pause {
	void (*call)(void *self); /* NULL: nobody looks */
	void *self;
};

/* Steps between two calls: some hundred microseconds of work. */
#define WM_PAUSE_STEPS ((size_t)1 << 12)

/* The work has come to its count-th step. */
static inline void
wm_pause_at(const struct wm_pause *pause, size_t count)
{
	if (count % WM_PAUSE_STEPS == 0 && pause->call != NULL)
		pause->call(pause->self);
}

#endif
