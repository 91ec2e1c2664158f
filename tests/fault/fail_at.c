/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_at - a library for LD_PRELOAD under which the n-th system call of a kind
 * fails.
 *
 * WM_FAULT=KIND:N:ERRNO[:HOW]. KIND is open, read, write, sync, truncate, link, rename,
 * unlink, seek, stat or close (of what is written to); calls are counted from 1, those on standard error not at all.
 * HOW is "once" (nothing), "on": all calls from the n-th on, or, for a write, "half":
 * half of its bytes are written, and all calls after it fail. ERRNO 0 is no failure: a read
 * or a write of one byte less than half. WM_COUNT=FILE: how many there were is added to it at the end,
 * a line "KIND N" for each kind.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { OPEN, READ, WRITE, SYNC, TRUNCATE, LINK, RENAME, UNLINK, SEEK, STAT, CLOSE, KINDS };

static const char *const names[KINDS] = { "open", "read", "write", "sync", "truncate", "link", "rename", "unlink",
	"seek", "stat", "close" };

static struct {
	int is_read;
	int kind; /* KINDS: none */
	unsigned long at;
	int error;
	char how[8];
} fault;
static unsigned long calls[KINDS];

static void *
real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void
learn(void)
{
	const char *text = getenv("WM_FAULT");
	char name[16];

	fault.is_read = 1;
	fault.kind = KINDS;
	if (text == NULL || strncmp(text, "memory:", 7) == 0)
		return;
	if (sscanf(text, "%15[a-z]:%lu:%d:%7s", name, &fault.at, &fault.error, fault.how) < 3)
		abort();
	for (fault.kind = 0; fault.kind < KINDS && strcmp(names[fault.kind], name) != 0; fault.kind++)
		;
	if (fault.kind == KINDS)
		abort();
}

/* Whether this call is disturbed: 1 the n-th, 2 one behind it. */
static int
turn(enum kind kind)
{
	if (!fault.is_read)
		learn();
	calls[kind]++;
	if (fault.kind != (int)kind || calls[kind] < fault.at)
		return 0;
	if (calls[kind] == fault.at)
		return 1;
	return fault.how[0] != '\0' ? 2 : 0;
}

static int
fails(enum kind kind)
{
	if (turn(kind) == 0)
		return 0;
	errno = fault.error;
	return 1;
}

static __attribute__((destructor)) void
tell(void)
{
	const char *path = getenv("WM_COUNT");
	char text[256];
	int len = 0;

	if (path == NULL)
		return;
	for (int i = 0; i < KINDS; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s %lu\n", names[i], calls[i]);
	FILE *file = fopen(path, "ae");
	if (file == NULL || fwrite(text, 1, (size_t)len, file) != (size_t)len || fclose(file) != 0)
		abort();
}

int
open(const char *path, int flags, ...)
{
	int (*real_open)(const char *, int, ...);
	va_list more;

	*(void **)&real_open = real("open");
	va_start(more, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
	va_end(more);
	return fails(OPEN) ? -1 : real_open(path, flags, mode);
}

ssize_t
read(int fd, void *data, size_t len)
{
	ssize_t (*real_read)(int, void *, size_t);

	*(void **)&real_read = real("read");
	int disturbed = turn(READ);
	if (disturbed != 0 && fault.error != 0) {
		errno = fault.error;
		return -1;
	}
	return real_read(fd, data, disturbed != 0 && len > 2 ? (len - 1) / 2 : len);
}

ssize_t
pread(int fd, void *data, size_t len, off_t offset)
{
	ssize_t (*real_pread)(int, void *, size_t, off_t);

	*(void **)&real_pread = real("pread");
	int disturbed = turn(READ);
	if (disturbed != 0 && fault.error != 0) {
		errno = fault.error;
		return -1;
	}
	return real_pread(fd, data, disturbed != 0 && len > 2 ? (len - 1) / 2 : len, offset);
}

/* How much of a write is let through; -1: none, and it fails. */
static ssize_t
let(size_t len)
{
	int disturbed = turn(WRITE);

	if (disturbed == 0)
		return (ssize_t)len;
	if (len > 2 && (fault.error == 0 || (disturbed == 1 && strcmp(fault.how, "half") == 0)))
		return (ssize_t)(len - 1) / 2;
	errno = fault.error;
	return fault.error == 0 ? (ssize_t)len : -1;
}

ssize_t
write(int fd, const void *data, size_t len)
{
	ssize_t (*real_write)(int, const void *, size_t);

	*(void **)&real_write = real("write");
	ssize_t part = fd == STDERR_FILENO ? (ssize_t)len : let(len);
	return part < 0 ? -1 : real_write(fd, data, (size_t)part);
}

ssize_t
pwrite(int fd, const void *data, size_t len, off_t offset)
{
	ssize_t (*real_pwrite)(int, const void *, size_t, off_t);

	*(void **)&real_pwrite = real("pwrite");
	ssize_t part = let(len);
	return part < 0 ? -1 : real_pwrite(fd, data, (size_t)part, offset);
}

/* What was written outlives the process without it, and the tests are many. */
int
fsync(int fd)
{
	(void)fd;
	return fails(SYNC) ? -1 : 0;
}

int
ftruncate(int fd, off_t len)
{
	int (*real_ftruncate)(int, off_t);

	*(void **)&real_ftruncate = real("ftruncate");
	return fails(TRUNCATE) ? -1 : real_ftruncate(fd, len);
}

int
link(const char *from, const char *to)
{
	int (*real_link)(const char *, const char *);

	*(void **)&real_link = real("link");
	return fails(LINK) ? -1 : real_link(from, to);
}

int
rename(const char *from, const char *to)
{
	int (*real_rename)(const char *, const char *);

	*(void **)&real_rename = real("rename");
	return fails(RENAME) ? -1 : real_rename(from, to);
}

int
unlink(const char *path)
{
	int (*real_unlink)(const char *);

	*(void **)&real_unlink = real("unlink");
	return fails(UNLINK) ? -1 : real_unlink(path);
}

off_t
lseek(int fd, off_t offset, int whence)
{
	off_t (*real_lseek)(int, off_t, int);

	*(void **)&real_lseek = real("lseek");
	return fails(SEEK) ? -1 : real_lseek(fd, offset, whence);
}

int
fstat(int fd, struct stat *found)
{
	int (*real_fstat)(int, struct stat *);

	*(void **)&real_fstat = real("fstat");
	return fails(STAT) ? -1 : real_fstat(fd, found);
}

int
stat(const char *path, struct stat *found)
{
	int (*real_stat)(const char *, struct stat *);

	*(void **)&real_stat = real("stat");
	return fails(STAT) ? -1 : real_stat(path, found);
}

int
lstat(const char *path, struct stat *found)
{
	int (*real_lstat)(const char *, struct stat *);

	*(void **)&real_lstat = real("lstat");
	return fails(STAT) ? -1 : real_lstat(path, found);
}

/* As of a file of a network, which is told only now that there was no room: it is closed all the same. */
int
close(int fd)
{
	int (*real_close)(int);
	int flags = fcntl(fd, F_GETFL);
	int has_failed =
		flags != -1 && (flags & O_ACCMODE) != O_RDONLY && fd != STDERR_FILENO && fails(CLOSE) ? errno : 0;

	*(void **)&real_close = real("close");
	int status = real_close(fd);
	if (has_failed == 0)
		return status;
	errno = has_failed;
	return -1;
}
