/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory - how much memory this process may use.
 *
 * The least of what its control groups (version 2 or 1) allow, each with all above it, and what the machine has.
 */
#ifndef WM_CMD_MEMORY_H
#define WM_CMD_MEMORY_H

#include <stdint.h>

/* UINT64_MAX where that cannot be found out. */
uint64_t memory_usable(void);

/* What control groups allow alone. groups: a file as /proc/self/cgroup; root: the folder where they are mounted. */
uint64_t memory_of_groups(const char *groups, const char *root);

#endif
