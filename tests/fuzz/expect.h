/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect - what the fuzz targets share: a law that ends the process where it is broken.
 */
#ifndef WM_TESTS_FUZZ_EXPECT_H
#define WM_TESTS_FUZZ_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool law, const char *name)
{
	if (!law) {
		fprintf(stderr, "broken: %s\n", name);
		abort();
	}
}

#endif
