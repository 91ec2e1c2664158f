#include "lib/state/pool.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

#define OBJECTS 20000

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
	holds = holds && pool.count == 0 && pool.bytes == pool.block_bytes;
	wm_pool_release(&pool);
	return holds;
}

static void
test_memory(void)
{
	struct wm_pool pool;

	wm_pool_init(&pool, 96);
	tap_int((int64_t)pool.bytes, 0, "no object, no memory");
	for (int i = 0; i < OBJECTS; i++)
		objects[i] = wm_pool_take(&pool);
	tap_ok(pool.bytes < OBJECTS * 98 + pool.block_bytes,
		"nothing is kept beside an object (%zu bytes for %d of 96)", pool.bytes, OBJECTS);
	/* Every other one goes: no block is empty. Then the rest of the first half: its blocks go. */
	size_t most = pool.bytes;
	for (int i = 0; i < OBJECTS; i += 2)
		wm_pool_give(&pool, objects[i]);
	tap_ok(pool.bytes == most, "a block with one object stays");
	for (int i = 1; i < OBJECTS / 2; i += 2)
		wm_pool_give(&pool, objects[i]);
	tap_ok(pool.bytes < most * 6 / 10, "blocks without one go");
	for (int i = 0; i < OBJECTS / 4; i++)
		objects[i] = wm_pool_take(&pool);
	tap_ok(pool.bytes < most * 6 / 10, "places that are free are used first");
	wm_pool_release(&pool);
	memset(objects, 0, sizeof(objects));
}

int
main(void)
{
	tap_ok(keeps_patterns(16, OBJECTS), "objects of 16 bytes do not touch each other");
	tap_ok(keeps_patterns(176, 5000), "nor do those of 176");
	tap_ok(keeps_patterns(100000, 40), "nor do those that are larger than a usual block");
	test_memory();
	return tap_done();
}
