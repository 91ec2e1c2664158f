/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stream_inside.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "cmd/inputs.h"
#include "cmd/keep.h"
#include "cmd/metrics.h"
#include "cmd/outputs.h"
#include "cmd/sources.h"
#include "lib/event/trigger.h"
#include "lib/event/watermark.h"

struct stream_signals stream_signals;

/* Signals */

static void
on_signal(int number)
{
	if (number == SIGUSR1)
		stream_signals.wants_object = 1;
	else if (number == SIGHUP)
		stream_signals.wants_reopen = 1;
	else
		stream_signals.stop_signal = number;
}

static const int caught_signals[] = { SIGINT, SIGTERM, SIGUSR1, SIGHUP };

#define CAUGHT_SIGNALS (sizeof(caught_signals) / sizeof(caught_signals[0]))

void
stream_catch_signals(void)
{
	for (size_t i = 0; i < CAUGHT_SIGNALS; i++) {
		bool is_stop = caught_signals[i] == SIGINT || caught_signals[i] == SIGTERM;
		struct sigaction action = { 0 }, before;

		action.sa_handler = on_signal;
		action.sa_flags = is_stop ? (int)SA_RESETHAND : SA_RESTART;
		sigemptyset(&action.sa_mask);
		if (sigaction(caught_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(caught_signals[i], &action, NULL);
	}
}

int64_t
stream_clock_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Waiting */

static void
notice_no_watermark(struct stream *s)
{
	s->is_notice_due = false;
	cli_warn("without a watermark nothing is written before the input ends: set a delay with -w (0s for input in "
		 "order)");
}

/* When silence moves the watermark: a source has become idle, or windows are due as the watermark goes on with the clock. */
static int64_t
silence_due_us(const struct stream *s)
{
	int64_t until_us = INT64_MAX;

	if (s->common->idle_wall.text != NULL)
		until_us = wm_combine_idle_wall_due_us(&s->sources.combine, s->common->idle_wall.us);
	if (s->common->idle_close.text != NULL && s->watermark_us != WM_TIME_NONE &&
		(s->due_us != WM_TIME_END || s->facts.tells_moves)) {
		int64_t due_us = s->facts.tells_moves ? wm_time_add(s->watermark_us, TICK_US) : s->due_us;
		int64_t needed_us = wm_time_sub(due_us, s->watermark_us);
		int64_t silent_us = needed_us > s->common->idle_close.us ? needed_us : s->common->idle_close.us;
		int64_t close_us = wm_time_add(s->spoke_at_us, silent_us);

		if (close_us < until_us)
			until_us = close_us;
	}
	return until_us;
}

/* When one of two streams is idle by the clock, so that the other need not wait for it. */
static int64_t
yield_due_us(const struct stream *s)
{
	return s->patience == STREAM_WAITS_FOR_IDLE ? wm_time_add(s->fed_at_us, s->common->idle_wall.us) : INT64_MAX;
}

/* Whether there is something to commit, some time. */
static bool
is_commit_to_come(const struct stream *s)
{
	return s->run->keep != NULL && s->run->report.rows_in != s->run->rows_committed &&
		s->run->report.rows_in >= keep_due_row(s->run->keep);
}

bool
stream_is_commit_due(const struct stream *s)
{
	return is_commit_to_come(s) && stream_clock_us(CLOCK_MONOTONIC) >= keep_due_us(s->run->keep);
}

/* How long to wait at most; -1: for ever. */
static int64_t
wait_limit_us(const struct stream *s)
{
	int64_t until_us = wm_trigger_due_us(&s->trigger), now_us;

	if (yield_due_us(s) < until_us)
		until_us = yield_due_us(s);

	if (s->sources.can_be_idle && silence_due_us(s) < until_us)
		until_us = silence_due_us(s);

	if (s->run->is_started && metrics_due_us(&s->run->metrics) < until_us)
		until_us = metrics_due_us(&s->run->metrics);
	if (is_commit_to_come(s) && keep_due_us(s->run->keep) < until_us)
		until_us = keep_due_us(s->run->keep);

	if (s->is_notice_due && s->run->started_us + NOTICE_AFTER_US < until_us)
		until_us = s->run->started_us + NOTICE_AFTER_US;
	if (until_us == INT64_MAX)
		return -1;
	now_us = stream_clock_us(CLOCK_MONOTONIC);
	return until_us > now_us ? until_us - now_us : 0;
}

static bool
is_signalled(void)
{
	return stream_signals.stop_signal != 0 || stream_signals.wants_object != 0 || stream_signals.wants_reopen != 0;
}

/* Whether the other of two streams is read ahead while this one waits. */
static bool
reads_partner_ahead(const struct stream *s)
{
	const struct stream *partner = s->partner;

	return partner != NULL && partner->phase != PHASE_END && inputs_fd(partner->inputs, 0) >= 0 &&
		!inputs_is_ahead_at_end(partner->inputs) && partner->ahead_bytes < AHEAD_BYTES_MAX;
}

static void
read_partner_ahead(struct stream *s)
{
	struct stream *partner = s->partner;
	struct wm_err err;

	if (!inputs_read_ahead(partner->inputs, &partner->ahead_bytes, &err))
		stream_fail(partner, &err);
}

static bool
is_past(int64_t time_us)
{
	return time_us != INT64_MAX && stream_clock_us(CLOCK_MONOTONIC) >= time_us;
}

/* Waits for input, the end of a batch of wall time, or a signal, having written what waits to be written. */
static enum wait_end
wait_for_input(struct stream *s)
{
	struct pollfd inputs[STREAMS_MAX] = { { .fd = inputs_fd(s->inputs, s->input), .events = POLLIN } };
	enum wait_end end = WAIT_INPUT;
	sigset_t caught, before;

	sigemptyset(&caught);
	for (size_t i = 0; i < CAUGHT_SIGNALS; i++)
		sigaddset(&caught, caught_signals[i]);
	/* Blocked from the look at the flags to the wait, so that a signal between them still ends it. */
	sigprocmask(SIG_BLOCK, &caught, &before);
	for (;;) {
		int64_t limit_us = wait_limit_us(s);
		struct timespec limit = { .tv_sec = limit_us / 1000000, .tv_nsec = limit_us % 1000000 * 1000 };

		if (is_signalled()) {
			end = WAIT_SIGNAL;
			break;
		}
		inputs[1] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (reads_partner_ahead(s))
			inputs[1].fd = inputs_fd(s->partner->inputs, 0);
		int ready = ppoll(inputs, STREAMS_MAX, limit_us < 0 ? NULL : &limit, &before);
		if (inputs[0].revents != 0 || (ready == -1 && errno != EINTR))
			break;
		if (ready > 0) {
			read_partner_ahead(s);
			if (s->patience != STREAM_YIELDS)
				continue;
			end = WAIT_YIELD;
			break;
		}
		if (ready == 0 && is_past(yield_due_us(s))) {
			end = WAIT_YIELD;
			break;
		}
		if (ready == 0 && stream_clock_us(CLOCK_MONOTONIC) >= wm_trigger_due_us(&s->trigger)) {
			end = WAIT_BATCH_DUE;
			break;
		}
		if (ready == 0 && s->sources.can_be_idle && stream_clock_us(CLOCK_MONOTONIC) >= silence_due_us(s)) {
			end = WAIT_SILENCE;
			break;
		}
		if (ready == 0 &&
			((s->run->is_started && stream_clock_us(CLOCK_MONOTONIC) >= metrics_due_us(&s->run->metrics)) ||
				stream_is_commit_due(s))) {
			end = WAIT_TICK;
			break;
		}
		if (ready == 0 && s->is_notice_due && s->is_decided)
			notice_no_watermark(s);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return end;
}

enum wait_end
stream_wait(struct stream *s)
{
	struct pollfd input = { .fd = inputs_fd(s->inputs, s->input), .events = POLLIN };

	if (is_signalled())
		return WAIT_SIGNAL;
	if (s->trigger.kind == WM_TRIGGER_WALL && stream_clock_us(CLOCK_MONOTONIC) >= wm_trigger_due_us(&s->trigger))
		return WAIT_BATCH_DUE;
	if (s->sources.can_be_idle && stream_clock_us(CLOCK_MONOTONIC) >= silence_due_us(s))
		return WAIT_SILENCE;
	if (s->is_notice_due && s->is_decided &&
		stream_clock_us(CLOCK_MONOTONIC) - s->run->started_us >= NOTICE_AFTER_US)
		notice_no_watermark(s);
	if ((s->partner != NULL && inputs_has_ahead(s->inputs)) || poll(&input, 1, 0) == 1)
		return WAIT_INPUT;
	if (s->patience == STREAM_YIELDS && stream_is_ready(s->partner))
		return WAIT_YIELD;
	if (s->run->is_started)
		outputs_flush(s->run->outputs);
	int64_t before_us = stream_clock_us(CLOCK_MONOTONIC);
	enum wait_end end = wait_for_input(s);
	s->run->waited_us += stream_clock_us(CLOCK_MONOTONIC) - before_us;
	return end;
}

void
stream_set_patience(struct stream *s, enum stream_patience patience)
{
	s->patience = patience;
}

bool
stream_is_ready(const struct stream *s)
{
	struct pollfd input = { .fd = inputs_fd(s->inputs, 0), .events = POLLIN };

	return s->phase != PHASE_END && (!s->is_hungry || inputs_has_ahead(s->inputs) || poll(&input, 1, 0) == 1);
}
