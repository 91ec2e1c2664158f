/*
 * combine - one watermark of several sources.
 *
 * Each source has a watermark of its own. The combined one is the least (or,
 * by policy, the greatest) of those of the sources that take part, and never
 * moves back: when the sources that are left stand behind it, it waits. A
 * source that has not spoken holds it where it is; one that has ended holds
 * nothing back. When no source takes part it stays.
 */
#ifndef WM_EVENT_COMBINE_H
#define WM_EVENT_COMBINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/event/watermark.h"

enum wm_policy { WM_POLICY_MIN = 0, WM_POLICY_MAX };

struct wm_source {
	struct wm_watermark own;
	size_t place; /* in order, or SIZE_MAX: takes no part */
};

/* Fields are for reading. */
struct wm_combine {
	enum wm_policy policy;
	int64_t watermark_us; /* the combined one, or WM_TIME_NONE */
	struct wm_source *sources;
	size_t sources_count;
	size_t *order; /* a heap of the sources that take part: the one furthest behind first, equal ones by number */
	size_t order_count;
};

void wm_combine_init(struct wm_combine *combine, enum wm_policy policy);
void wm_combine_release(struct wm_combine *combine);

/* Adds a source, which takes part from now on, as its watermark stands; returns its number, from 0. */
size_t wm_combine_add(struct wm_combine *combine, const struct wm_watermark *own);

/* A source's own watermark has moved; true if the combined one has too. */
bool wm_combine_moved(struct wm_combine *combine, size_t source);

/* Moves a source's watermark as far as its records let it; true if the combined one moved. */
static inline bool
wm_combine_advance(struct wm_combine *combine, size_t source)
{
	return wm_watermark_advance(&combine->sources[source].own) && wm_combine_moved(combine, source);
}

/* The source has ended; true if the combined watermark moved. */
bool wm_combine_end(struct wm_combine *combine, size_t source);

/* The source that takes part and is furthest behind; false if none takes part. */
bool wm_combine_lowest(const struct wm_combine *combine, size_t *source);

#endif
