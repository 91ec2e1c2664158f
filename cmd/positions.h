/* SPDX-License-Identifier: Apache-2.0 */
/*
 * positions - the last value of --position's column in one input, of each source.
 *
 * A reader that keeps a position of its own may send again what it had sent: of numbers the rows up to the last one of
 * their source, of texts the first row, if it has the same. Partitions of a topic each count by themselves, so with
 * --source each of its values has a position; without it there is one source, of no name.
 */
#ifndef WM_CMD_POSITIONS_H
#define WM_CMD_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"
#include "lib/state/table.h"

/* Fields are for reading. */
struct positions {
	struct wm_table numbers; /* which place in the list a source has */
	struct position *list;   /* in the order in which they came */
	size_t count;
	size_t capacity;
	uint64_t skipped; /* rows that came again */
};

struct position {
	struct wm_span source; /* in the table */
	uint8_t kind;          /* of it: enum wm_kind */
	struct wm_buf value;
	bool is_behind; /* rows up to it may come once more */
};

void positions_init(struct positions *positions);
void positions_release(struct positions *positions);

/* Another input begins: all but what was skipped is forgotten. */
void positions_forget(struct positions *positions);

/* A row of a source has this value; false if it came before. source: NULL: it has no name. A value that is empty passes, and is not noted. */
bool positions_pass(struct positions *positions, const struct wm_value *source, const struct wm_value *value);

/* The input goes on where its reader was told to: rows up to each position may come once more. */
void positions_expect(struct positions *positions);

/* The value of the source of no name; empty: there is none. */
struct wm_span positions_alone(const struct positions *positions);
void positions_set_alone(struct positions *positions, struct wm_span value);

/* Of each: text source · u8 kind · text value, up to the end of the bytes. Decode into an empty one. */
void positions_encode(const struct positions *positions, struct wm_buf *out);
WM_MUST_CHECK bool positions_decode(struct positions *positions, struct wm_span bytes);

/* The next of what positions_encode() wrote, borrowed from there; false behind the last, or where it is damaged (in->failed). */
bool positions_next(struct wm_get *in, struct wm_value *source, struct wm_span *value);

#endif
