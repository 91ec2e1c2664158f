/* SPDX-License-Identifier: Apache-2.0 */
/*
 * band - the watermark that a stamped stream carries in its rows.
 *
 * wm-stamp writes into each row the watermark in force (_watermark), and rows
 * that have that and nothing else: punctuation. A tool that finds the column
 * follows it instead of reckoning one of its own, so that there is one watermark
 * along a pipe. See wm-watermark(7), "In band".
 */
#ifndef WM_CMD_BAND_H
#define WM_CMD_BAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cli.h"
#include "cmd/inputs.h"
#include "lib/record/fields.h"
#include "lib/record/reader.h"
#include "lib/time/instant.h"

/* Names of the columns that wm-stamp writes and all tools look for. */
#define BAND_TIME "_time"
#define BAND_WATERMARK "_watermark"

/* Fields are for reading. */
struct band {
	const char *column; /* as typed */
	bool is_there;      /* it does, once band_decide() has seen the first record */
	bool is_followed;   /* it is the watermark */
	size_t field;       /* in rec.fields */
	struct wm_instant_parser *parser;
	struct wm_buf text; /* of the last value: the next one is mostly the same */
	int64_t watermark_us;
	struct wm_columns columns; /* of the stream, as its records have them */
	struct wm_fields fields;
	size_t own; /* among these */
	struct wm_buf line;
	struct wm_buf restated;
};

/* Asks for the column. Behind all other columns: where it is absent, it costs nothing then. */
void band_open(struct band *band, struct inputs *inputs, const struct cli_common *common);
void band_release(struct band *band);

/* A time as the columns in band have it: of UTC, in the unit of --output-time; null where there is none, and for the end of time. Borrowed from last. */
struct wm_value band_time(struct wm_instant_text *last, const struct cli_common *common, int64_t time_us);

/* The same for what is used at once: put word by word, see wm_value_copy(). */
static inline void
band_put_time(struct wm_value *to, struct wm_instant_text *last, const struct cli_common *common, int64_t time_us)
{
	struct wm_value value = band_time(last, common, time_us);

	wm_value_copy(to, &value);
}

/* The first record has come. is_reckoned: the tool has a watermark of its own, even without -w. */
void band_decide(struct band *band, const struct inputs *inputs, const struct cli_common *common, bool is_reckoned);

/* What was decided, and what kind of time the watermark is. Decode after band_open(); layout: that of the stream. */
void band_encode(const struct band *band, struct wm_buf *out);
WM_MUST_CHECK bool band_decode(struct band *band, const struct wm_reader *layout, struct wm_get *in);

/* Reads a record's watermark: WM_TIME_NONE where it says nothing. False for what is no time; *why says what is wrong. */
WM_MUST_CHECK bool band_read(struct band *band, const struct wm_record *rec, int64_t *watermark_us, const char **why);

/* Whether a record without event time is punctuation: a watermark and nothing else. Only where is_there. */
bool band_is_punctuation(struct band *band, struct wm_reader *reader, const struct wm_record *rec);

/* A record, as a line in the layout of the stream, with another watermark (null: none); borrowed until the next call. Only where is_there. */
struct wm_span band_restate(struct band *band, struct wm_span line, const struct wm_value *watermark);

#endif
