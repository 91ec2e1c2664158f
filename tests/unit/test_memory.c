/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/tap.h"

static char folder[] = "/tmp/wm-memory-XXXXXX";

static void
put(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0)
		abort();
}

static uint64_t
limit(const char *groups)
{
	char path[128];

	put("groups", groups);
	snprintf(path, sizeof(path), "%s/groups", folder);
	return memory_of_groups(path, folder);
}

static void
add_folder(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (mkdir(path, 0777) != 0)
		abort();
}

int
main(void)
{
	if (mkdtemp(folder) == NULL)
		abort();
	add_folder("a");
	add_folder("a/b");
	add_folder("memory");
	add_folder("memory/c");
	put("a/memory.max", "1000000\n");
	put("a/b/memory.max", "max\n");
	put("memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("memory/c/memory.limit_in_bytes", "5000\n");
	tap_ok(limit("0::/a\n") == 1000000, "version 2: the limit of the group");
	tap_ok(limit("0::/a/b\n") == 1000000, "one without a limit has that of the group above it");
	tap_ok(limit("0::/a/b/c/d\n") == 1000000, "as has one that cannot be seen");
	tap_ok(limit("0::/\n") == UINT64_MAX, "none at the root");
	tap_ok(limit("12:cpu:/a\n7:pids,memory:/c\n0::/\n") == 5000, "version 1: the controller of memory");
	tap_ok(limit("7:memory:/\n") == UINT64_MAX, "a number beyond memory is none");
	tap_ok(limit("7:memory:/c\n0::/a\n") == 5000, "of both the lesser");
	tap_ok(limit("nonsense\n::\n0::a\n") == UINT64_MAX, "what cannot be read says nothing");
	tap_ok(memory_of_groups("/nowhere/cgroup", folder) == UINT64_MAX, "no file, no limit");
	tap_ok(memory_usable() > (1 << 20), "this machine has more than a megabyte");
	if (chdir(folder) != 0 || system("rm -r groups a memory") != 0 || rmdir(folder) != 0)
		abort();
	return tap_done();
}
