#include "lib/base/hash.h"

#include <sys/random.h>

#include <xxhash.h>

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
