/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/arena.h"

#include <stdint.h>

#include "tests/unit/tap.h"

int
main(void)
{
	enum { PIECES = 3000 };
	static struct {
		unsigned char *data;
		size_t size;
	} pieces[PIECES];
	struct wm_arena arena = { 0 };
	uint64_t seed = 1;
	size_t wrong = 0, misaligned = 0, total = 0;

	wm_arena_release(&arena);
	tap_ok(arena.newest == NULL && arena.bytes == 0, "an empty arena can be released");

	for (size_t i = 0; i < PIECES; i++) {
		pieces[i].size = tap_random(&seed) % (i % 100 == 0 ? 100000 : 200);
		pieces[i].data = wm_arena_alloc(&arena, pieces[i].size);
		memset(pieces[i].data, (int)(i % 251), pieces[i].size);
		misaligned += (uintptr_t)pieces[i].data % 16 != 0;
		total += pieces[i].size;
	}
	for (size_t i = 0; i < PIECES; i++)
		for (size_t at = 0; at < pieces[i].size; at++)
			wrong += pieces[i].data[at] != i % 251;
	tap_int((int64_t)misaligned, 0, "every piece is aligned to 16");
	tap_int((int64_t)wrong, 0, "pieces do not overlap and stay where they are");
	tap_ok(arena.bytes >= total && arena.bytes < 2 * total + 300000, "bytes counts the blocks: %zu for %zu",
		arena.bytes, total);

	wm_arena_release(&arena);
	tap_ok(arena.newest == NULL && arena.used == 0 && arena.bytes == 0, "released it is empty");
	memset(wm_arena_alloc(&arena, 40), 1, 40);
	tap_ok(arena.bytes > 0 && arena.bytes <= 2048, "and can be used again; small ones cost little: %zu bytes",
		arena.bytes);
	size_t bytes = arena.bytes;
	memset(wm_arena_alloc(&arena, 8 << 20), 2, 8 << 20);
	tap_ok(arena.bytes >= bytes + (8 << 20), "a piece above the block size gets a block of its own");
	wm_arena_release(&arena);
	return tap_done();
}
