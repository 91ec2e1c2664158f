/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_reads - a library for LD_PRELOAD under which read() returns fewer bytes
 * than asked for, at random, as pipes, sockets and terminals may.
 *
 * WM_SHORT_READS_SEED chooses the sequence. End of file and errors are as ever.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t __read_chk(int fd, void *buffer, size_t count, size_t buffer_size);

static uint64_t state;

/* Mostly a few bytes, so that records, fields and even UTF-8 sequences are cut; at times many. */
static size_t
shortened(size_t count)
{
	const char *seed = getenv("WM_SHORT_READS_SEED");
	size_t limit;

	if (state == 0)
		state = seed ? strtoull(seed, NULL, 10) * 2 + 1 : 1;
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	limit = state >> 60 < 12 ? 1 + (state >> 33) % 61 : 1 + (state >> 33) % 9973;
	return count < limit ? count : limit;
}

ssize_t
read(int fd, void *buffer, size_t count)
{
	ssize_t (*real)(int, void *, size_t);

	*(void **)&real = dlsym(RTLD_NEXT, "read");
	return real(fd, buffer, count > 0 ? shortened(count) : 0);
}

/* What read() becomes in programs built with _FORTIFY_SOURCE. */
ssize_t
__read_chk(int fd, void *buffer, size_t count, size_t buffer_size)
{
	return read(fd, buffer, count < buffer_size ? count : buffer_size);
}
