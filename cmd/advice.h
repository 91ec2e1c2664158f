/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice - what delays would cost, told honestly (wm-lag --advise).
 *
 * The curve of a group: delays, how many rows are behind under each, and how
 * many windows would drop. What has to be said beside the numbers is a set of
 * notes. Nothing is printed: text is appended to a buffer born WM_BUF_UNBOUNDED.
 */
#ifndef WM_CMD_ADVICE_H
#define WM_CMD_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/op/lag.h"

/* part / whole, at most 1; whole at most WM_PERCENT_ALL. */
struct advice_share {
	int64_t part;
	int64_t whole;
};

/* What was asked for. */
struct advice_plan {
	bool is_wanted; /* --advise; without, the notes are those on the measures alone */
	struct advice_share target;
	const char *target_text; /* as typed */
	int64_t given_us;        /* of -w, to be in the curve; -1: none */
	bool has_arrival;        /* WM_LAG_LAG is measured */
	bool has_windows;        /* WM_LAG_DROPPED is */
};

/* The delays of the curve. P95 of the lag stands for a rule of thumb. */
enum advice_kind {
	ADVICE_NO_DELAY,
	ADVICE_5_PERCENT,
	ADVICE_1_PERCENT,
	ADVICE_01_PERCENT,
	ADVICE_NONE_BEHIND,
	ADVICE_2_P95,
	ADVICE_3_P95,
	ADVICE_GIVEN,
	ADVICE_TARGET,
};
#define ADVICE_KINDS 9

/* "2x-p95-lag", for programs, and "2 x p95 lag, a rule of thumb". */
const char *advice_name(enum advice_kind kind);
const char *advice_words(enum advice_kind kind);

struct advice {
	enum advice_kind kind;
	int64_t delay_us;
	uint64_t behind;
	uint64_t dropped;
};

/* The least delay, in whole milliseconds as the watermark has them, with which no more than this share of the rows is behind. */
int64_t advice_delay_us(const struct wm_lag_series *behind, struct advice_share share);

/* The curve of a group that has rows, by delay; is_rounded: of delays as a person would type them. Returns how many there are. */
size_t advice_make(const struct advice_plan *plan, const struct wm_lag_group *group, bool is_rounded,
	struct advice advice[ADVICE_KINDS]);

/* Notes: bits of a set, in order of weight. */
enum advice_note {
	NOTE_SHORT = 1 << 0,  /* the file is too short for its own advice */
	NOTE_FEW = 1 << 1,    /* its rows are too few for the target */
	NOTE_FUTURE = 1 << 2, /* rows arrived before their event time */
	NOTE_IN_ORDER = 1 << 3,
	NOTE_APPROXIMATE = 1 << 4,
};
#define ADVICE_NOTES 5

unsigned advice_notes(const struct advice_plan *plan, const struct wm_lag_group *group);

/* "short-file", for programs, of the note 1 << index; and one in words, without full stop: group has rows. */
const char *advice_note_name(size_t index);
void advice_print_note(
	enum advice_note note, const struct advice_plan *plan, const struct wm_lag_group *group, struct wm_buf *out);

/* A duration cut to what matters: three digits below a minute, then two units. */
void advice_print_rounded(int64_t us, struct wm_buf *out);

/* Up to what a person would type: at most a tenth more, or 1 ms. */
int64_t advice_rounded_up(int64_t us);

/* As it would be typed: whole days, whole hours, or what is needed. */
void advice_print_delay(int64_t us, struct wm_buf *out);

#endif
