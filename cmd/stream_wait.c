/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stream_inside.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cmd/inputs.h"
#include "cmd/keep.h"
#include "cmd/metrics.h"
#include "cmd/outputs.h"
#include "cmd/sources.h"
#include "lib/event/trigger.h"
#include "lib/event/watermark.h"

struct stream_signals stream_signals;

/* Signals */

/* How often a signal wakes a write that waits, until it has been seen to. */
#define WAKE_US 100000

static void
set_alarm(long every_us)
{
	const struct itimerval every = { { 0, every_us }, { 0, every_us } };

	setitimer(ITIMER_REAL, &every, NULL);
}

/* A signal may come just before a write that then waits for a reader: SIGALRM ends that wait too. One is a system call, and safe here. */
static void
on_alarm(int number)
{
	(void)number;
}

static void
on_signal(int number)
{
	set_alarm(WAKE_US);
	if (number == SIGUSR1) {
		stream_signals.wants_object = 1;
	} else if (number == SIGHUP) {
		stream_signals.wants_reopen = 1;
	} else if (stream_signals.stop_signal == 0) {
		stream_signals.stop_signal = number;
	} else {
		/* The other of the two came before: it comes again as this function ends, and kills. */
		signal(number, SIG_DFL);
		raise(number);
	}
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
	const struct sigaction alarm = { .sa_handler = on_alarm };
	sigaction(SIGALRM, &alarm, NULL);
}

void
stream_calm_signals(void)
{
	if (stream_signals.stop_signal == 0)
		set_alarm(0);
}

void
stream_die_by_signal(void)
{
	int number = (int)stream_signals.stop_signal;

	signal(number, SIG_DFL);
	raise(number);
	_exit(128 + number);
}

bool
stream_is_overdue(struct run *run, int64_t limit_us)
{
	int64_t now_us = stream_clock_us(CLOCK_MONOTONIC);

	if (run->stopping_us == 0)
		run->stopping_us = now_us;
	return now_us - run->stopping_us >= limit_us;
}

/*
 * Whether a run that is killed here loses nothing that was asked for: there is no checkpoint, or what was read since the last commit can
 * be read again. With --eof flush all that is open is to be written.
 */
static bool
can_break_off(const struct run *run)
{
	if (run->keep == NULL && run->streams[0]->common->eof == CLI_EOF_FLUSH)
		return false;
	for (size_t i = 0; i < run->streams_count && run->keep != NULL; i++)
		if (!inputs_is_seekable(run->streams[i]->inputs, run->streams[i]->input))
			return false;
	return true;
}

void
stream_hurry(struct stream *s)
{
	struct run *run = s->run;
	bool is_ending = run->flushed_count == 0;

	/* The rows that a run has at its end are few. */
	for (size_t i = 0; i < run->streams_count; i++)
		is_ending = is_ending && run->streams[i]->phase == PHASE_END;
	if (is_ending || !stream_is_overdue(run, STOP_ROWS_US) || !can_break_off(run))
		return;
	if (run->keep == NULL)
		outputs_flush(run->outputs);
	cli_bar_end();
	cli_warn("stopped by a signal among the rows of results: %s",
		run->keep == NULL ? "the others are not written" : "the next run begins at the last commit");
	stream_die_by_signal();
}

/* While nobody reads, what SIGUSR1 asks for is told of the state as it was last told. */
static void
tell_blocked(struct run *run)
{
	struct report told = run->report;
	struct wm_buf text;

	stream_calm_signals();
	stream_signals.wants_object = 0;
	wm_buf_init(&text, WM_BUF_UNBOUNDED);
	if (run->streams[0]->is_each)
		told.batch_watermark_us = stream_run_watermark_us(run);
	report_clock(&told, stream_clock_us(CLOCK_MONOTONIC), run->waited_us);
	report_progress(&told, &run->state, stream_clock_us(CLOCK_REALTIME), &text);
	cli_progress(wm_buf_span(&text));
	wm_buf_release(&text);
}

void
stream_wait_for_reader(void *self, bool has_written)
{
	struct run *run = self;
	int64_t now_us = stream_clock_us(CLOCK_MONOTONIC);

	if (stream_signals.wants_object != 0)
		tell_blocked(run);
	if (stream_signals.stop_signal == 0)
		return;
	if (has_written || run->blocked_us == 0)
		run->blocked_us = now_us;
	if (now_us - run->blocked_us < STOP_BLOCKED_US)
		return;
	cli_bar_end();
	cli_warn("stopped by a signal while nobody reads the output: what is not written is lost%s",
		run->keep == NULL ? "" : ": the next run begins at the last commit");
	stream_die_by_signal();
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

bool
stream_follows_clock(const struct stream *s)
{
	return s->common->idle_close.text != NULL && s->watermark_us != WM_TIME_NONE && !s->trigger.is_open;
}

/*
 * When the watermark has gone on with the clock so far that the operator is due, or that it is to be told; INT64_MAX: never. What is told
 * stands in the output, so that comes once a second.
 */
static int64_t
close_due_us(const struct stream *s)
{
	bool tells = s->facts.tells_moves;

	if (!stream_follows_clock(s) || (!tells && s->due_us == WM_TIME_END))
		return INT64_MAX;
	int64_t wanted_us = tells ? wm_time_add(s->watermark_us, TICK_US) : s->due_us;
	/* The watermark is whole milliseconds. */
	int64_t needed_us = wm_time_sub(wm_time_add(wanted_us, 999), s->sources.combine.data_us);
	int64_t silent_us = needed_us > s->common->idle_close.us ? needed_us : s->common->idle_close.us;

	return wm_time_add(s->spoke_at_us, silent_us);
}

/* When a source becomes idle by the clock; INT64_MAX: none does. */
static int64_t
idle_due_us(const struct stream *s)
{
	return s->common->idle_wall.text == NULL
		? INT64_MAX
		: wm_combine_idle_wall_due_us(&s->sources.combine, s->common->idle_wall.us);
}

/* When a move of the watermark without a record is seen to: where it is told, once a second at most. */
static int64_t
move_due_us(const struct stream *s, int64_t move_us)
{
	int64_t next_us = wm_time_add(s->told_at_us, TICK_US);

	return s->facts.tells_moves && move_us < next_us ? next_us : move_us;
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

/* What the clock brings first while no input comes: WAIT_INPUT for nothing, and INT64_MAX then. */
struct due {
	int64_t us;
	enum wait_end end;
};

static void
add_due(struct due *due, int64_t us, enum wait_end end)
{
	if (us < due->us)
		*due = (struct due){ us, end };
}

/*
 * All that ends a wait by the clock stands here, once: each of these is done with before the next wait, or later then, so that no wait
 * ends at once for ever.
 */
static struct due
first_due(const struct stream *s)
{
	struct due due = { INT64_MAX, WAIT_INPUT };

	add_due(&due, yield_due_us(s), WAIT_YIELD);
	add_due(&due, wm_trigger_due_us(&s->trigger), WAIT_BATCH_DUE);
	if (s->sources.can_be_idle) {
		add_due(&due, move_due_us(s, idle_due_us(s)), WAIT_IDLE);
		add_due(&due, move_due_us(s, close_due_us(s)), WAIT_SILENCE);
	}
	if (s->run->is_started)
		add_due(&due, metrics_due_us(&s->run->metrics), WAIT_TICK);
	if (is_commit_to_come(s) && stream_can_commit(s->run))
		add_due(&due, keep_due_us(s->run->keep), WAIT_TICK);
	if (s->is_notice_due && s->is_decided)
		add_due(&due, s->run->started_us + NOTICE_AFTER_US, WAIT_NOTICE);
	return due;
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

/* Waits for input, what the clock brings, or a signal, having written what waits to be written. */
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
		struct due due = first_due(s);
		int64_t left_us = wm_time_sub(due.us, stream_clock_us(CLOCK_MONOTONIC));
		int64_t limit_us = left_us > 0 ? left_us : 0;
		struct timespec limit = { .tv_sec = limit_us / 1000000, .tv_nsec = limit_us % 1000000 * 1000 };

		if (is_signalled()) {
			end = WAIT_SIGNAL;
			break;
		}
		inputs[1] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (reads_partner_ahead(s))
			inputs[1].fd = inputs_fd(s->partner->inputs, 0);
		int ready = ppoll(inputs, STREAMS_MAX, due.us == INT64_MAX ? NULL : &limit, &before);
		if (inputs[0].revents != 0 || (ready == -1 && errno != EINTR))
			break;
		if (ready > 0) {
			read_partner_ahead(s);
			if (s->patience != STREAM_YIELDS)
				continue;
			end = WAIT_YIELD;
			break;
		}
		if (ready == -1 || stream_clock_us(CLOCK_MONOTONIC) < due.us)
			continue;
		if (due.end != WAIT_NOTICE) {
			end = due.end;
			break;
		}
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
	/* A source can be idle while others are not. It is no silence while something waits to be read. */
	if (s->sources.can_be_idle && stream_clock_us(CLOCK_MONOTONIC) >= move_due_us(s, idle_due_us(s)))
		return WAIT_IDLE;
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
