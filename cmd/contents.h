/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contents - all that a checkpoint says, decoded without the run that wrote it.
 *
 * For eyes: nothing goes on from it. A file is taken as hostile, whatever its
 * hashes say: what cannot be is WM_ERR_IO with the section's name, or, where
 * the file is of a later version, says so. STAT is left to who knows the tool.
 */
#ifndef WM_CMD_CONTENTS_H
#define WM_CMD_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cli.h"
#include "cmd/keep.h"
#include "cmd/positions.h"
#include "cmd/report.h"
#include "cmd/sections.h"
#include "cmd/sources.h"
#include "lib/event/combine.h"
#include "lib/event/guard.h"
#include "lib/event/trigger.h"
#include "lib/state/checkpoint.h"
#include "lib/time/instant.h"

/* A kind of times, as auto found it. */
struct contents_kind {
	enum wm_time_family family;
	struct wm_span pattern;
};

struct contents_stream {
	struct contents_kind times; /* of OPTS */
	bool has_arrival;
	struct contents_kind arrival_times;
	enum wm_format format; /* WM_FORMAT_AUTO: no record came yet */
	bool is_decided;       /* a record has come */
	bool has_band;         /* records carry a watermark */
	bool follows_band;
	int64_t highest_us;
	int64_t watermark_us; /* in force */
	bool has_delay;
	struct wm_trigger trigger;
	struct sources_known *sources; /* combine.sources_count of them */
	struct wm_combine combine;
	struct wm_guard *guards; /* one a source; NULL: there are none */
};

/* Fields are for reading. Texts are borrowed from the file, which is held until the release. */
struct contents {
	const char *path; /* borrowed */
	struct wm_checkpoint file;
	struct sections_option *options;
	size_t options_count;
	struct cli_common common; /* as far as the options of the file tell it */
	const char *tz;           /* NULL: none told */
	bool lacks_zone;          /* it is none that is known here */
	bool is_end;              /* WMRK was written at the end of a run */
	struct contents_stream streams[KEEP_STREAMS_MAX];
	size_t streams_count;
	int64_t floor_us; /* INT64_MIN: none */
	struct sections_input *inputs;
	size_t inputs_count;
	bool is_closed;
	struct sections_output *outputs;
	size_t outputs_count;
	struct report ledger;
	char **texts; /* of options, for those who want them with an end */
	size_t texts_count;
};

/* On failure there is nothing to release. A file that is not there is WM_ERR_IO too. */
WM_MUST_CHECK bool contents_load(struct contents *contents, const char *path, struct wm_err *err);
void contents_release(struct contents *contents);

/* The value of an option, ended by NUL; NULL where it was not given. Until the release. */
const char *contents_option(struct contents *contents, const char *name);

#endif
