/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_at - a library for LD_PRELOAD under which a process is killed, as kill -9
 * would, at one of its system calls.
 *
 * WM_KILL_AT=N is the N-th call of read, write, pwrite, fsync, ftruncate, link,
 * rename and unlink, from 1: before it is made, or, for a write whose number is
 * even, when half of its bytes are written. 0 or nothing: never. WM_KILL_CALL=NAME:
 * the N-th call of that name; WM_KILL_LATER=M: M calls of any name behind it.
 * WM_COUNT=FILE: how many calls there were is written there at the end.
 * WM_LOG=FILE: each but read is a line there, "rename FROM TO" or with the path
 * of its descriptor. fsync() does nothing: what was written outlives the process
 * without it, and the tests are many.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static unsigned long calls;   /* of any name */
static unsigned long counted; /* of those that WM_KILL_AT counts */
static unsigned long met;     /* the number in calls of the one it names; 0: not yet */

static void *
real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static unsigned long
number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text == NULL ? 0 : strtoul(text, NULL, 10);
}

/* Whether this call is the one; for a write half of it is to be done first. */
static int
is_the_one(const char *call)
{
	const char *wanted = getenv("WM_KILL_CALL");

	calls++;
	counted += wanted == NULL || strcmp(wanted, call) == 0;
	if (met == 0 && counted != 0 && counted == number_of("WM_KILL_AT"))
		met = calls;
	return met != 0 && calls == met + number_of("WM_KILL_LATER");
}

/* A line of WM_LOG; a descriptor by its path. */
static void
note(const char *call, int fd, const char *from, const char *to)
{
	ssize_t (*real_write)(int, const void *, size_t);
	static int log_fd = -1;
	char link[64], path[1024] = "", line[4096];

	if (getenv("WM_LOG") == NULL)
		return;
	*(void **)&real_write = real("write");
	if (log_fd == -1)
		log_fd = open(getenv("WM_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (from == NULL) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (readlink(link, path, sizeof(path) - 1) == -1)
			abort();
	}
	int len = snprintf(line, sizeof(line), "%s %s%s%s\n", call, from == NULL ? path : from, to == NULL ? "" : " ",
		to == NULL ? "" : to);
	if (real_write(log_fd, line, (size_t)len) != len)
		abort();
}

static void
pass(const char *call)
{
	if (is_the_one(call))
		raise(SIGKILL);
}

static __attribute__((destructor)) void
tell(void)
{
	const char *path = getenv("WM_COUNT");
	ssize_t (*real_write)(int, const void *, size_t);
	char text[32];

	if (path == NULL)
		return;
	*(void **)&real_write = real("write");
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int len = snprintf(text, sizeof(text), "%lu\n", calls);
	if (fd == -1 || real_write(fd, text, (size_t)len) != len)
		abort();
	close(fd);
}

ssize_t
read(int fd, void *data, size_t len)
{
	ssize_t (*real_read)(int, void *, size_t);

	*(void **)&real_read = real("read");
	pass("read");
	return real_read(fd, data, len);
}

ssize_t
write(int fd, const void *data, size_t len)
{
	ssize_t (*real_write)(int, const void *, size_t);

	note("write", fd, NULL, NULL);
	*(void **)&real_write = real("write");
	if (is_the_one("write")) {
		if (calls % 2 == 0 && real_write(fd, data, len / 2) < 0)
			abort();
		raise(SIGKILL);
	}
	return real_write(fd, data, len);
}

ssize_t
pwrite(int fd, const void *data, size_t len, off_t offset)
{
	ssize_t (*real_pwrite)(int, const void *, size_t, off_t);

	note("write", fd, NULL, NULL);
	*(void **)&real_pwrite = real("pwrite");
	pass("pwrite");
	return real_pwrite(fd, data, len, offset);
}

int
fsync(int fd)
{
	note("fsync", fd, NULL, NULL);
	pass("fsync");
	return 0;
}

int
ftruncate(int fd, off_t len)
{
	int (*real_ftruncate)(int, off_t);

	note("ftruncate", fd, NULL, NULL);
	*(void **)&real_ftruncate = real("ftruncate");
	pass("ftruncate");
	return real_ftruncate(fd, len);
}

int
link(const char *from, const char *to)
{
	int (*real_link)(const char *, const char *);

	note("link", -1, from, to);
	*(void **)&real_link = real("link");
	pass("link");
	return real_link(from, to);
}

int
rename(const char *from, const char *to)
{
	int (*real_rename)(const char *, const char *);

	note("rename", -1, from, to);
	*(void **)&real_rename = real("rename");
	pass("rename");
	return real_rename(from, to);
}

int
unlink(const char *path)
{
	int (*real_unlink)(const char *);

	note("unlink", -1, path, NULL);
	*(void **)&real_unlink = real("unlink");
	pass("unlink");
	return real_unlink(path);
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*real_gettime)(clockid_t, struct timespec *);

	*(void **)&real_gettime = real("clock_gettime");
	if (clock != CLOCK_MONOTONIC || getenv("WM_STILL_CLOCK") == NULL)
		return real_gettime(clock, now);
	*now = (struct timespec){ .tv_sec = 1000 };
	return 0;
}
