/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure - run a command and write what it used to FILE:
 * user and system seconds, wall seconds, greatest resident KiB.
 *
 *   measure FILE COMMAND [ARGUMENT]...
 *
 * A small program of its own because the greatest resident size of a process
 * counts what its parent held when it was started.
 */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double
seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int
main(int argc, char **argv)
{
	struct timespec before, after;
	struct rusage usage;
	FILE *out;
	pid_t pid;
	int failure, status;

	if (argc < 3)
		return 2;
	out = fopen(argv[1], "we");
	if (!out) {
		perror(argv[1]);
		return 3;
	}
	clock_gettime(CLOCK_MONOTONIC, &before);
	/* A fork would copy page tables first, a tenth of what a tool takes to start. */
	failure = posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ);
	if (failure) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(failure));
		return 3;
	}
	if (wait4(pid, &status, 0, &usage) < 0) {
		perror("measure");
		return 3;
	}
	clock_gettime(CLOCK_MONOTONIC, &after);
	fprintf(out, "%.6f %.6f %.6f %ld\n", seconds_of(usage.ru_utime), seconds_of(usage.ru_stime),
		(double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9,
		usage.ru_maxrss);
	return fclose(out) != 0 ? 3 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
