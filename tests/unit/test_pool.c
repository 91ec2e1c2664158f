/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/pool.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define OBJECTS 60000

/* What one block that is kept may hold on to: a huge page. */
#define KEPT_BYTES_MAX ((size_t)2 << 20)

static unsigned char *objects[OBJECTS];

/* Objects are taken and given back in disorder; each is filled with a pattern of its own, which must last. */
static bool
keeps_patterns(size_t object_bytes, size_t objects_count)
{
	struct wm_pool pool;
	uint64_t seed = object_bytes;
	size_t count = 0;
	bool holds = true;

	wm_pool_init(&pool, object_bytes);
	for (size_t step = 0; step < 6 * objects_count && holds; step++) {
		size_t i = tap_random(&seed) % objects_count;
		unsigned char pattern = (unsigned char)(i % 251);

		if (objects[i] == NULL) {
			objects[i] = wm_pool_take(&pool);
			holds = (uintptr_t)objects[i] % 16 == 0;
			memset(objects[i], pattern, object_bytes);
			count++;
		} else {
			for (size_t at = 0; at < object_bytes; at++)
				holds = holds && objects[i][at] == pattern;
			wm_pool_give(&pool, objects[i]);
			objects[i] = NULL;
			count--;
		}
		holds = holds && pool.count == count;
	}
	for (size_t i = 0; i < objects_count; i++) {
		if (objects[i] != NULL)
			wm_pool_give(&pool, objects[i]);
		objects[i] = NULL;
	}
	holds = holds && pool.count == 0 &&
		pool.bytes <= (objects_count * object_bytes < ((size_t)4 << 20) ? pool.block_bytes : KEPT_BYTES_MAX);
	wm_pool_release(&pool);
	return holds;
}

static void
test_memory(size_t objects_count, size_t grain_bytes)
{
	struct wm_pool pool;

	wm_pool_init(&pool, 96);
	tap_int((int64_t)pool.bytes, 0, "no object, no memory");
	for (size_t i = 0; i < objects_count; i++)
		objects[i] = wm_pool_take(&pool);
	tap_ok(pool.bytes < objects_count * 98 + grain_bytes,
		"nothing is kept beside an object (%zu bytes for %zu of 96)", pool.bytes, objects_count);
	/* Every other one goes: no block is empty. Then the rest of the first half: its blocks go. */
	size_t most = pool.bytes;
	for (size_t i = 0; i < objects_count; i += 2)
		wm_pool_give(&pool, objects[i]);
	tap_ok(pool.bytes == most, "a block with one object stays");
	for (size_t i = 1; i < objects_count / 2; i += 2)
		wm_pool_give(&pool, objects[i]);
	size_t half = pool.bytes;
	tap_ok(half <= most / 2 + 2 * grain_bytes, "blocks without one go (%zu bytes are left)", half);
	for (size_t i = 0; i < objects_count / 4; i++)
		objects[i] = wm_pool_take(&pool);
	tap_ok(pool.bytes == half, "places that are free are used first");
	wm_pool_release(&pool);
	memset(objects, 0, sizeof(objects));
}

#define SIZES 40

/* Objects of all sizes from 32 bytes on, most of them larger than those of any pool; some are never given back. */
static void
test_sizes(bool in_lines)
{
	struct wm_pools pools;
	size_t sizes[400] = { 0 };
	uint64_t seed = 8;
	bool holds = true;

	wm_pools_init(&pools, 32, in_lines);
	tap_ok(wm_pools_bytes(&pools) == 0, "no object of any size, no memory");
	for (size_t step = 0; step < 20000 && holds; step++) {
		size_t i = tap_random(&seed) % 400;
		unsigned char pattern = (unsigned char)(i % 251);

		if (sizes[i] == 0) {
			sizes[i] = 32 + 16 * (tap_random(&seed) % SIZES);
			objects[i] = wm_pools_take(&pools, sizes[i]);
			holds = (uintptr_t)objects[i] % 16 == 0;
			memset(objects[i], pattern, sizes[i]);
			continue;
		}
		for (size_t at = 0; at < sizes[i]; at++)
			holds = holds && objects[i][at] == pattern;
		wm_pools_give(&pools, objects[i], sizes[i]);
		wm_pools_trim(&pools, sizes[i]);
		sizes[i] = 0;
	}
	size_t held = 0;
	for (size_t i = 0; i < 400; i++)
		held += sizes[i];
	tap_ok(holds && wm_pools_bytes(&pools) >= held, "objects of many sizes do not touch each other");
	for (size_t i = 0; i < 200; i++) {
		if (sizes[i] != 0)
			wm_pools_give(&pools, objects[i], sizes[i]);
		sizes[i] = 0;
	}
	wm_pools_release(&pools);
	tap_ok(wm_pools_bytes(&pools) == 0, "all of their memory goes with the pools");
	for (size_t size = 32; size < 32 + 16 * SIZES; size += 16)
		objects[size / 16] = wm_pools_take(&pools, size);
	for (size_t size = 32; size < 32 + 16 * SIZES; size += 16) {
		wm_pools_give(&pools, objects[size / 16], size);
		wm_pools_trim(&pools, size);
	}
	tap_ok(wm_pools_bytes(&pools) == 0, "they serve again, and nothing is kept of a size that has gone");
	memset(objects, 0, sizeof(objects));
}

int
main(void)
{
	tap_ok(keeps_patterns(16, 20000), "objects of 16 bytes do not touch each other");
	tap_ok(keeps_patterns(176, 5000), "nor do those of 176");
	tap_ok(keeps_patterns(176, OBJECTS), "nor do those of a large pool");
	tap_ok(keeps_patterns(100000, 40), "nor do those that are larger than a usual block");
	test_memory(20000, (size_t)64 << 10);
	test_memory(OBJECTS, (size_t)2 << 20);
	test_sizes(false);
	test_sizes(true);
	return tap_done();
}
