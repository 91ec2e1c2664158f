/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zone - offsets of a time zone, read from the system's tz database.
 *
 * "UTC", "Z", an IANA name ("Europe/Berlin") or a fixed offset ("+02:00",
 * "-0330", "+02"). The process's TZ and the C library's zone state play no
 * part; several zones can be open at once. Names are looked up below
 * /usr/share/zoneinfo (TZif version 2 and later, with the rule at the end of
 * the file for times after its last transition); a name that would leave that
 * folder is refused.
 *
 * Local times are microseconds too: those of the same clock reading in UTC.
 */
#ifndef WM_TIME_ZONE_H
#define WM_TIME_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/span.h"

struct wm_zone;

/* Which instant a local time means that a clock change repeats. */
enum wm_repeated_hour { WM_REPEATED_EARLIER = 0, WM_REPEATED_LATER };

/* How a local time was mapped. */
enum wm_local_kind { WM_LOCAL_ONCE = 0, WM_LOCAL_REPEATED, WM_LOCAL_SKIPPED };

/* NULL with a message (WM_ERR_USAGE) that names the nearest known zone for an unknown one. */
struct wm_zone *wm_zone_open(struct wm_span name, struct wm_err *err);
void wm_zone_close(struct wm_zone *zone);

/* A zone from the bytes of a TZif file, which may be damaged: then NULL, and *why a static text. */
struct wm_zone *wm_zone_from_tzif(struct wm_span tzif, const char **why);

/* UTC without opening anything; never closed. */
const struct wm_zone *wm_zone_utc(void);

/* A zone that is never off UTC ("Etc/UTC", "+00:00") is UTC too. */
bool wm_zone_is_utc(const struct wm_zone *zone);

/* Local minus UTC at an instant, in microseconds. */
int64_t wm_zone_offset_us(const struct wm_zone *zone, int64_t time_us);

/*
 * Local times around one that each mean exactly one instant, local - offset_us:
 * for callers that map many and keep this. False near a clock change.
 */
struct wm_zone_steady {
	int64_t from_local_us; /* included */
	int64_t to_local_us;   /* excluded */
	int64_t offset_us;
};
bool wm_zone_steady(const struct wm_zone *zone, int64_t local_us, struct wm_zone_steady *steady);

/* The instant of a local time. A skipped one is moved forward by the gap. kind may be NULL. */
int64_t wm_zone_from_local(
	const struct wm_zone *zone, int64_t local_us, enum wm_repeated_hour repeated, enum wm_local_kind *kind);

#endif
