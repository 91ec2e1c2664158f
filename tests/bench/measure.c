/*
 * measure - run a command and write what it used to FILE:
 * user and system seconds, wall seconds, greatest resident KiB.
 *
 *   measure FILE COMMAND [ARGUMENT]...
 *
 * A small program of its own because the greatest resident size of a process
 * counts what its parent held when it was started.
 */
#include <stdio.h>
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
	int status;

	if (argc < 3)
		return 2;
	out = fopen(argv[1], "we");
	if (!out) {
		perror(argv[1]);
		return 3;
	}
	clock_gettime(CLOCK_MONOTONIC, &before);
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
		perror("measure");
		return 3;
	}
	clock_gettime(CLOCK_MONOTONIC, &after);
	fprintf(out, "%.6f %.6f %.6f %ld\n", seconds_of(usage.ru_utime), seconds_of(usage.ru_stime),
		(double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9,
		usage.ru_maxrss);
	return fclose(out) != 0 ? 3 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
