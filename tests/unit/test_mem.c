/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/mem.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/tap.h"

#ifndef __SANITIZE_ADDRESS__
/* Runs in a child: the one failure of lib/ that ends the process. */
static int
status_of_too_much(void)
{
	/* What is buffered would be written by both. */
	fflush(stdout);
	pid_t child = fork();
	int status;

	if (child == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		volatile size_t count = SIZE_MAX / 2; /* unknown to the compiler, which would warn */

		free(wm_reallocarray(NULL, count, 4));
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}
#endif

int
main(void)
{
	unsigned char *zeros = wm_calloc(3, 5);
	char *copy = wm_memdup("a\0b", 3);
	bool are_zero = true;

	for (size_t i = 0; i < 15; i++)
		are_zero = are_zero && zeros[i] == 0;
	tap_ok(are_zero, "calloc gives zeros");
	tap_ok(memcmp(copy, "a\0b", 4) == 0, "memdup keeps a NUL and adds one");
	free(zeros);
	free(copy);
	void *nothing = wm_malloc(0);
	tap_ok(nothing != NULL, "no bytes are memory too");
	nothing = wm_reallocarray(nothing, 0, 8);
	tap_ok(nothing != NULL, "as no members are");
	free(nothing);
#ifndef __SANITIZE_ADDRESS__ /* which stops by itself */
	tap_int(status_of_too_much(), 3, "a product that overflows stops the process with status 3");
#endif
	return tap_done();
}
