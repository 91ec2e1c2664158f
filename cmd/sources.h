/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources - whose watermark a record moves.
 *
 * There is one source for all records, one for each FILE (--merge), or one for each
 * value of a column (--source), with a delay and a guard of its own each.
 */
#ifndef WM_CMD_SOURCES_H
#define WM_CMD_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cli.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"
#include "lib/event/combine.h"
#include "lib/event/guard.h"
#include "lib/state/table.h"

/* Fields are for reading. */
struct sources {
	const struct cli_common *common;
	struct wm_combine combine;
	struct wm_guard *guards;  /* one a source; NULL without --max-jump */
	struct wm_table numbers;  /* of --source: which number a value has */
	const char *const *files; /* of --merge: what the sources are called */
	int64_t opened_us;
	bool can_be_idle; /* so that each record is to be told */
};

/* files: one source each, where they are read side by side; files_count 0 elsewhere. now_us: a clock that does not jump. */
void sources_open(struct sources *sources, const struct cli_common *common, const char *const *files,
	size_t files_count, int64_t now_us);
void sources_release(struct sources *sources);

/*
 * What is kept of them; the clock is no state. Decode after sources_open() with the same options; of FILEs those that are named again have what
 * they had, whatever the order, and the others are left out.
 */
void sources_encode(const struct sources *sources, struct wm_buf *out);
WM_MUST_CHECK bool sources_decode(struct sources *sources, struct wm_get *in);

/* The source of a value of --source's column, which takes part from its first record on. False with WM_ERR_LIMIT when there are too many. */
WM_MUST_CHECK bool sources_find(
	struct sources *sources, const struct wm_value *value, int64_t now_us, size_t *source, struct wm_err *err);

/* The kind by which a value tells its source. A number is the source of the same text: 1 and "1" are one host. */
enum wm_kind sources_kind(const struct wm_value *value);

/* Whether a record of this value would be one source too many. */
bool sources_is_full_for(const struct sources *sources, const struct wm_value *value);

/* Bytes of state. */
size_t sources_bytes(const struct sources *sources);

/* A source as it is known from run to run: what sources_encode() begins with. */
struct sources_known {
	struct wm_span name; /* the FILE, or the value of the column; borrowed from what is decoded */
	uint8_t kind;        /* of that value: enum wm_kind, if all is well */
};

/* Freed by the caller; NULL if it is no such list. */
struct sources_known *sources_decode_known(struct wm_get *in, size_t *count);

/* The delay of a source: its own, or that of all others. */
int64_t sources_delay_us(const struct cli_common *common, struct wm_span source);

#endif
