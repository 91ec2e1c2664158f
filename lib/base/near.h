/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near - the known word that was probably meant.
 *
 *     struct wm_near near = wm_near_to(word);
 *     for each known word: wm_near_try(&near, known);
 *     if (near.best.data != NULL) "did you mean %s?"
 */
#ifndef WM_BASE_NEAR_H
#define WM_BASE_NEAR_H

#include <stddef.h>

#include "lib/base/span.h"

/* Fields are for reading; texts are borrowed. */
struct wm_near {
	struct wm_span word;
	struct wm_span best; /* data is NULL where nothing was near */
	size_t best_edits;   /* letters put in, left out, replaced, or swapped with their neighbour; case aside */
};

struct wm_near wm_near_to(struct wm_span word);

/*
 * Keeps the candidate if it is nearer than what was tried before. More than an edit, and one for each four bytes of the word, is not near; nor is
 * a candidate of whose different letters the word has less than half.
 */
void wm_near_try(struct wm_near *near, struct wm_span candidate);

#endif
