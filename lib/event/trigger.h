/*
 * trigger - when the watermark moves and results are written.
 *
 * With WM_TRIGGER_EACH that is every record. All others make batches: the
 * records of a batch are judged by the watermark from before it, and after its
 * last one the watermark moves.
 */
#ifndef WM_EVENT_TRIGGER_H
#define WM_EVENT_TRIGGER_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/value.h"

enum wm_trigger_kind {
	WM_TRIGGER_EACH = 0,
	WM_TRIGGER_FILE,   /* each input is a batch, an empty one too */
	WM_TRIGGER_COLUMN, /* until the value of a column changes */
	WM_TRIGGER_EOF,    /* all inputs are one batch */
};

struct wm_trigger {
	enum wm_trigger_kind kind;
	bool is_open; /* the batch has had a record */
	/* WM_TRIGGER_COLUMN: the value of the open batch */
	enum wm_kind value_kind;
	struct wm_buf value;
};

void wm_trigger_init(struct wm_trigger *trigger, enum wm_trigger_kind kind);
void wm_trigger_release(struct wm_trigger *trigger);

/* True if a record with this value of the trigger's column begins another batch than the open one. WM_TRIGGER_COLUMN only. */
bool wm_trigger_begins_batch(const struct wm_trigger *trigger, const struct wm_value *value);

/* A record joins the batch. value is that of the column; NULL for the other kinds. */
void wm_trigger_join(struct wm_trigger *trigger, const struct wm_value *value);

/* The batch has ended. */
void wm_trigger_end(struct wm_trigger *trigger);

void wm_trigger_encode(const struct wm_trigger *trigger, struct wm_buf *out);
WM_MUST_CHECK bool wm_trigger_decode(struct wm_trigger *trigger, struct wm_get *in);

#endif
