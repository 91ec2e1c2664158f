/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal - the hashes of a checkpoint made right, which no mutation finds by itself.
 */
#ifndef WM_TESTS_FUZZ_SEAL_H
#define WM_TESTS_FUZZ_SEAL_H

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/codec.h"
#include "lib/base/hash.h"

static void
seal_u64(char *at, uint64_t value)
{
	for (size_t i = 0; i < 8; i++)
		at[i] = (char)(value >> (8 * i));
}

/* As far as the lengths lead. */
static void
seal(char *bytes, size_t len)
{
	struct wm_buf hashes;
	struct wm_get in;
	size_t at = 64;

	if (len < at)
		return;
	seal_u64(bytes + 56, wm_hash_stable(wm_span(bytes, 56)));
	wm_buf_init(&hashes, WM_BUF_UNBOUNDED);
	while (len - at >= 24) {
		wm_get_init(&in, wm_span(bytes + at + 8, 8));
		uint64_t length = wm_get_u64(&in);
		if (length > len - at - 24 || (length + 7) / 8 * 8 > len - at - 24)
			break;
		size_t hashed = 16 + (size_t)(length + 7) / 8 * 8;
		if (memcmp(bytes + at, "END.", 4) == 0 && length == 8)
			seal_u64(bytes + at + 16, wm_hash_stable(wm_buf_span(&hashes)));
		uint64_t hash = wm_hash_stable(wm_span(bytes + at, hashed));
		seal_u64(bytes + at + hashed, hash);
		wm_put_u64(&hashes, hash);
		at += hashed + 8;
	}
	wm_buf_release(&hashes);
}

#endif
