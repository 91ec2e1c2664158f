/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uses - what a command line does with files, and that no file is two things.
 *
 * Files are compared by what they are: device and inode where they are there,
 * links included; the name that a new one would get where they are not. Inputs,
 * outputs, standard input and output take part, and so do the files that a run
 * makes beside them: FILE.lock, FILE.tmp, FILE.prev and FILE.prev.tmp of a
 * checkpoint, OUTPUT.uncommitted of an output that it knows, and the one that
 * --metrics writes before it is renamed. Of those beside a checkpoint none that
 * holds something else may be there, as it would be replaced.
 *
 * Devices and pipes may have several uses (/dev/null takes all), except that
 * standard input and a pipe with a name give their bytes once.
 */
#ifndef WM_CMD_USES_H
#define WM_CMD_USES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "cmd/cli.h"

/* Exits 2 where a file would be two things. writes_stdout: results go to standard output, where --out does not take them. */
void uses_check(const struct cli_common *common, bool writes_stdout);

/* The name that path leads to, also where nothing is there yet: links resolved. NULL where its folder is not there. Freed by the caller. */
char *uses_resolve(const char *path);

/* Whether a file is there, links followed; found only then. Exits 3 where that cannot be told: two names of one file would pass as two files. */
bool uses_find(const char *path, struct stat *found);

#endif
