/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver - runs every file of a folder through a fuzz target that was built
 * without a fuzzer, each in a process of its own, and prints TAP.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* True if the target came back. */
static bool
run_file(const char *folder, const char *name)
{
	char path[4096];
	size_t size = 0, capacity = 1 << 16, got;
	uint8_t *data = wm_malloc(capacity);
	int status;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "rb");
	if (file == NULL) {
		free(data);
		return false;
	}
	while ((got = fread(data + size, 1, capacity - size, file)) > 0) {
		size += got;
		if (size == capacity)
			data = wm_reallocarray(data, capacity *= 2, 1);
	}
	bool is_read = ferror(file) == 0;
	fclose(file);
	pid_t child = fork();
	if (child == 0)
		_exit(LLVMFuzzerTestOneInput(data, size));
	free(data);
	return is_read && child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int
main(int argc, char **argv)
{
	struct dirent **entries;
	int count, failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	count = scandir(argv[1], &entries, is_input, alphasort);
	if (count <= 0) {
		fprintf(stderr, "%s: no inputs in %s\n", argv[0], argv[1]);
		return 2;
	}
	for (int i = 0; i < count; i++) {
		fflush(stdout); /* a child must not print it again */
		bool is_well = run_file(argv[1], entries[i]->d_name);

		printf("%sok %d - %s\n", is_well ? "" : "not ", i + 1, entries[i]->d_name);
		failed += !is_well;
		free(entries[i]);
	}
	free(entries);
	printf("1..%d\n", count);
	return failed != 0;
}
