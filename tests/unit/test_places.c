/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/state/places.h"

#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/unit/tap.h"

/* What stands in the table, and the model: whether it does. */
struct object {
	uint64_t hash;
	bool is_in;
} __attribute__((aligned(16)));

#define OBJECTS 60000

static size_t hashes_asked;

static uint64_t
hash_of(const void *object)
{
	hashes_asked++;
	return ((const struct object *)object)->hash;
}

static bool
finds(const struct wm_places *places, const struct object *wanted)
{
	struct object *object;

	for (size_t at = wm_places_seek(places, wanted->hash);
		(object = wm_places_next(places, wanted->hash, &at)) != NULL;)
		if (object == wanted)
			return true;
	return false;
}

static bool
is_like_model(const struct wm_places *places, const struct object *objects)
{
	size_t at = 0, walked = 0, count = 0;

	for (const struct object *object; (object = wm_places_walk(places, &at)) != NULL; walked++)
		if (!object->is_in)
			return false;
	for (size_t i = 0; i < OBJECTS; i++) {
		if (finds(places, &objects[i]) != objects[i].is_in)
			return false;
		count += objects[i].is_in;
	}
	return walked == count && places->count == count;
}

/* Hashes are even, or nearly the same, so that most stand far from their places. */
static void
test_model(bool is_crowded, const char *name)
{
	struct object *objects = wm_calloc(OBJECTS, sizeof(objects[0]));
	struct wm_places places;
	uint64_t seed = 3;
	bool agrees = true;

	wm_places_init(&places, hash_of);
	tap_ok(wm_places_bytes(&places) == 0 && wm_places_like(&places, 1) == NULL, "%s: nothing takes no memory",
		name);
	for (size_t i = 0; i < OBJECTS; i++) {
		uint64_t random = tap_random(&seed) << 32 ^ tap_random(&seed);

		/* Some share all of it. */
		objects[i].hash = is_crowded ? (random & ~UINT64_C(0xffff)) | (i % 700) : random;
		if (i % 50 == 1)
			objects[i].hash = objects[i - 1].hash;
	}
	size_t in_use = is_crowded ? 1500 : OBJECTS;
	for (size_t step = 0; step < 8 * in_use; step++) {
		struct object *object = &objects[tap_random(&seed) % in_use];
		/* Grows, shrinks to little, and grows again. */
		bool is_growing = step / (2 * in_use) % 2 == 0;

		if (!object->is_in && is_growing)
			wm_places_put(&places, object->hash, object);
		else if (object->is_in && (!is_growing || step % 3 == 0))
			wm_places_take(&places, object->hash, object);
		else
			continue;
		object->is_in = !object->is_in;
		if (step % (in_use / 2) == 0)
			agrees = agrees && is_like_model(&places, objects);
	}
	agrees = agrees && is_like_model(&places, objects);
	tap_ok(agrees, "%s: puts, finds, takes and walks as the model", name);
	for (size_t i = 0; i < in_use; i++)
		if (objects[i].is_in)
			wm_places_take(&places, objects[i].hash, &objects[i]);
	tap_ok(places.count == 0 && wm_places_bytes(&places) <= 128, "%s: is small again", name);
	wm_places_release(&places);
	free(objects);
}

static void
test_replace(void)
{
	static struct object objects[3] = { { .hash = 5 }, { .hash = 5 }, { .hash = 5 } };
	struct wm_places places;

	wm_places_init(&places, hash_of);
	wm_places_put(&places, 5, &objects[0]);
	wm_places_put(&places, 5, &objects[1]);
	wm_places_replace(&places, 5, &objects[1], &objects[2]);
	tap_ok(finds(&places, &objects[0]) && !finds(&places, &objects[1]) && finds(&places, &objects[2]) &&
			places.count == 2,
		"one takes the place of another");
	wm_places_take(&places, 5, &objects[0]);
	tap_ok(!finds(&places, &objects[0]) && finds(&places, &objects[2]),
		"and is found when those before it have gone");
	wm_places_release(&places);
}

/* The promise that makes taking out cheap: it is not for the objects to say where others belong. */
static void
test_looks_at_slots(void)
{
	struct object *objects = wm_calloc(OBJECTS, sizeof(objects[0]));
	struct wm_places places;
	uint64_t seed = 11;
	size_t large_from = 8192, told = 0;

	wm_places_init(&places, hash_of);
	for (size_t i = 0; i < OBJECTS; i++) {
		objects[i].hash = tap_random(&seed) << 32 ^ tap_random(&seed);
		if (i == large_from)
			hashes_asked = 0;
		wm_places_put(&places, objects[i].hash, &objects[i]);
	}
	tap_ok(hashes_asked < OBJECTS / 20, "a large table grows with few looks at objects (%zu)", hashes_asked);
	for (size_t i = 0; i < OBJECTS; i++)
		told += wm_places_like(&places, objects[i].hash) == &objects[i];
	tap_ok(told * 50 > (size_t)OBJECTS * 49, "nearly all are told by their hash alone (%zu of %d)", told, OBJECTS);
	hashes_asked = 0;
	for (size_t i = 0; i < OBJECTS / 2; i++)
		wm_places_take(&places, objects[i].hash, &objects[i]);
	tap_ok(hashes_asked < OBJECTS / 100, "objects are taken out with few looks at others (%zu)", hashes_asked);
	wm_places_release(&places);
	free(objects);
}

int
main(void)
{
	test_model(false, "even hashes");
	test_model(true, "crowded hashes");
	test_replace();
	test_looks_at_slots();
	return tap_done();
}
