/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/hash.h"

#include <stdlib.h>
#include <sys/random.h>

#include <xxhash.h>

#include "lib/base/mem.h"

/* Fixed odd numbers until wm_hash_init(): the fraction digits of the golden ratio and of square roots. */
uint64_t wm_hash_secret[4] = { UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x6a09e667f3bcc909), UINT64_C(0xbb67ae8584caa73b),
	UINT64_C(0x3c6ef372fe94f82b) };

void
wm_hash_init(void)
{
	uint64_t drawn[4];

	/* Without the system's randomness the fixed secret stays: results do not depend on it, only the guard against crafted keys. */
	if (getrandom(drawn, sizeof(drawn), GRND_NONBLOCK) == (ssize_t)sizeof(drawn))
		memcpy(wm_hash_secret, drawn, sizeof(drawn));
}

uint64_t
wm_hash_long(struct wm_span text, uint64_t tag)
{
	return wm_hash_mix(XXH3_64bits_withSeed(text.data, text.len, wm_hash_secret[0]) ^ wm_hash_secret[1],
		tag ^ wm_hash_secret[2]);
}

uint64_t
wm_hash_stable(struct wm_span text)
{
	return XXH3_64bits(text.data, text.len);
}

struct wm_hash_stream {
	XXH3_state_t *state; /* is aligned more than malloc() does */
};

struct wm_hash_stream *
wm_hash_stream_new(void)
{
	struct wm_hash_stream *stream = wm_calloc(1, sizeof(*stream));

	stream->state = XXH3_createState();
	if (stream->state == NULL)
		wm_mem_stop(sizeof(XXH3_state_t *));
	wm_hash_stream_reset(stream);
	return stream;
}

void
wm_hash_stream_free(struct wm_hash_stream *stream)
{
	if (stream == NULL)
		return;
	XXH3_freeState(stream->state);
	free(stream);
}

void
wm_hash_stream_reset(struct wm_hash_stream *stream)
{
	XXH3_64bits_reset(stream->state);
}

void
wm_hash_stream_add(struct wm_hash_stream *stream, struct wm_span piece)
{
	XXH3_64bits_update(stream->state, piece.data, piece.len);
}

uint64_t
wm_hash_stream_value(const struct wm_hash_stream *stream)
{
	return XXH3_64bits_digest(stream->state);
}
