/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/agg/quantile.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/mem.h"

__extension__ typedef unsigned __int128 uint128;

/* A double's bucket is its first 7 bits behind the point: an octave has 128. */
#define BUCKETS_PER_OCTAVE 128
#define BUCKET_SHIFT (DBL_MANT_DIG - 1 - 7)
#define BUCKETS_END ((uint32_t)2047 * BUCKETS_PER_OCTAVE) /* of infinity */

/* Octaves are numbered by a double's exponent field: 1 to 2046 for the normal ones. */
#define OCTAVES_END 2047
#define OCTAVES_MIN 4

#define VALUES_MIN 2

static const int64_t power_of_ten[WM_FRACTION_DIGITS_MAX + 1] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000,
	100000000, 1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000,
	1000000000000000, 10000000000000000, 100000000000000000, WM_FRACTION_ONE };

/* A bucket's count is low + high * 2^32; few ever need the high part. */
struct octave {
	uint32_t low[BUCKETS_PER_OCTAVE];
	uint32_t *high; /* NULL: all zero */
};

/* The values of one sign by size. */
struct side {
	struct octave **octaves; /* NULL where there are no values */
	uint32_t first, count;   /* the octaves that have room in the array */
};

struct wm_quantile_sketch {
	struct side positive, negative;
	uint64_t zeros;
	double least_nearest, greatest_nearest;
	struct wm_decimal least, greatest;
	char *spare; /* left of the memory of the exact values */
	size_t spare_bytes;
};

static void *
zeroed(struct wm_arena *arena, size_t size)
{
	return memset(wm_arena_alloc(arena, size), 0, size);
}

/* ---- one value ---- */

/*
 * Never decreasing with the number, the same on every machine, no minus zero, and within 2^-51 of it: a double or
 * two beside the nearest, as a division would cost more than the rest.
 */
static inline double
nearest_of(const struct wm_decimal *number)
{
	int64_t whole = (int64_t)number->whole;

	if (!number->is_exact)
		return number->nearest + 0.0;
	return (whole == number->whole ? (double)whole : (double)number->whole) + (double)number->fraction * 1e-18;
}

/* By value; of those that have the same nearest double, the exact ones first. */
static int
compare(const struct wm_decimal *a, const struct wm_decimal *b)
{
	if (a->is_exact && b->is_exact)
		return wm_decimal_compare_exact(a, b);
	double a_nearest = nearest_of(a), b_nearest = nearest_of(b);
	if (a_nearest != b_nearest)
		return a_nearest < b_nearest ? -1 : 1;
	return (int)b->is_exact - (int)a->is_exact;
}

static struct wm_decimal
decimal_of_double(double value)
{
	return (struct wm_decimal){ .nearest = value };
}

static struct wm_decimal
decimal_of_scaled(int64_t scaled, unsigned digits)
{
	int64_t scale = power_of_ten[digits];

	return (struct wm_decimal){ .whole = scaled / scale,
		.fraction = scaled % scale * power_of_ten[WM_FRACTION_DIGITS_MAX - digits],
		.is_exact = true };
}

/* False if the number needs more digits after the point, or more bits. */
static bool
scale(const struct wm_decimal *number, unsigned digits, int64_t *scaled)
{
	int64_t unit = power_of_ten[WM_FRACTION_DIGITS_MAX - digits], whole = (int64_t)number->whole;

	return number->is_exact && whole == number->whole && number->fraction % unit == 0 &&
		!__builtin_mul_overflow(whole, power_of_ten[digits], scaled) &&
		!__builtin_add_overflow(*scaled, number->fraction / unit, scaled);
}

/* ---- exact values ---- */

static size_t
value_bytes(const struct wm_quantile *quantile)
{
	return quantile->form == WM_QUANTILE_SCALED ? sizeof(quantile->scaled[0]) : sizeof(quantile->decimals[0]);
}

static char *
values_of(const struct wm_quantile *quantile)
{
	return quantile->form == WM_QUANTILE_SCALED ? (char *)quantile->scaled : (char *)quantile->decimals;
}

/* The values, with room for one more. */
static void *
grown(struct wm_quantile *quantile, struct wm_arena *arena)
{
	size_t size = value_bytes(quantile);

	if (quantile->count < quantile->capacity)
		return values_of(quantile);
	quantile->capacity = quantile->capacity == 0 ? VALUES_MIN : (uint16_t)(quantile->capacity * 2);
	void *values = wm_arena_alloc(arena, quantile->capacity * size);
	if (quantile->count != 0)
		memcpy(values, values_of(quantile), quantile->count * size);
	return values;
}

/* The fewest digits, from those up, at which all values and the new one fit 64 bits; false if there are none. */
static bool
rescale(struct wm_quantile *quantile, const struct wm_decimal *number)
{
	unsigned digits = quantile->digits;
	int64_t scaled;

	if (!number->is_exact)
		return false;
	while (number->fraction % power_of_ten[WM_FRACTION_DIGITS_MAX - digits] != 0)
		digits++;
	int64_t factor = power_of_ten[digits - quantile->digits];
	if (!scale(number, digits, &scaled))
		return false;
	for (size_t i = 0; i < quantile->count; i++)
		if (__builtin_mul_overflow(quantile->scaled[i], factor, &scaled))
			return false;
	for (size_t i = 0; i < quantile->count; i++)
		quantile->scaled[i] *= factor;
	quantile->digits = (uint8_t)digits;
	return true;
}

static void
turn_to_decimals(struct wm_quantile *quantile, struct wm_arena *arena)
{
	size_t capacity = quantile->capacity == 0 ? VALUES_MIN : quantile->capacity;
	struct wm_decimal *decimals = wm_arena_alloc(arena, capacity * sizeof(*decimals));

	for (size_t i = 0; i < quantile->count; i++)
		decimals[i] = decimal_of_scaled(quantile->scaled[i], quantile->digits);
	quantile->decimals = decimals;
	quantile->capacity = (uint16_t)capacity;
	quantile->form = WM_QUANTILE_DECIMALS;
	quantile->digits = 0;
}

__attribute__((noinline)) static void
exact_add(struct wm_quantile *quantile, struct wm_arena *arena, const struct wm_decimal *number)
{
	int64_t scaled;

	if (quantile->form == WM_QUANTILE_SCALED) {
		if (scale(number, quantile->digits, &scaled) ||
			(rescale(quantile, number) && scale(number, quantile->digits, &scaled))) {
			quantile->scaled = grown(quantile, arena);
			quantile->scaled[quantile->count++] = scaled;
			return;
		}
		turn_to_decimals(quantile, arena);
	}
	quantile->decimals = grown(quantile, arena);
	quantile->decimals[quantile->count++] = *number;
}

static struct wm_decimal
exact_at(const struct wm_quantile *quantile, size_t index)
{
	return quantile->form == WM_QUANTILE_SCALED ? decimal_of_scaled(quantile->scaled[index], quantile->digits)
						    : quantile->decimals[index];
}

static int
compare_scaled(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static int
compare_decimals(const void *a, const void *b)
{
	return compare(a, b);
}

/* In place: their order means nothing. Values that are in order, as after an earlier call, are left alone. */
static void
sort(const struct wm_quantile *quantile)
{
	int (*order)(const void *, const void *) =
		quantile->form == WM_QUANTILE_SCALED ? compare_scaled : compare_decimals;
	size_t size = value_bytes(quantile);
	char *values = values_of(quantile);

	for (size_t i = 1; i < quantile->count; i++) {
		if (order(values + (i - 1) * size, values + i * size) > 0) {
			qsort(values, quantile->count, size, order);
			break;
		}
	}
}

/* ---- the sketch ---- */

/* The bucket of a size from DBL_MIN up: its exponent field and the first bits behind the point. */
static inline uint32_t
bucket_of(double size)
{
	uint64_t bits;

	memcpy(&bits, &size, sizeof(bits));
	return (uint32_t)(bits >> BUCKET_SHIFT);
}

/* The middle of a bucket, which is a double. */
static double
middle_of(uint32_t bucket)
{
	uint64_t bits = (uint64_t)bucket << BUCKET_SHIFT | UINT64_C(1) << (BUCKET_SHIFT - 1);
	double size;

	memcpy(&size, &bits, sizeof(size));
	return size;
}

/* Room in the array for one more octave: at least twice as much as before, beyond the end that was too near. */
static void
make_room(struct side *side, struct wm_arena *arena, uint32_t number)
{
	uint32_t first = side->first, end = side->first + side->count;
	uint32_t count = side->count == 0 ? OCTAVES_MIN : side->count * 2;

	if (side->count == 0) {
		first = number == 0 ? 0 : number - 1;
		end = first + count < OCTAVES_END ? first + count : OCTAVES_END;
	} else if (number < first) {
		first = end > count ? end - count : 0;
		if (number < first)
			first = number;
	} else {
		end = first + count < OCTAVES_END ? first + count : OCTAVES_END;
		if (number >= end)
			end = number + 1;
	}
	struct octave **octaves = zeroed(arena, (end - first) * sizeof(octaves[0]));
	if (side->count != 0)
		memcpy(octaves + (side->first - first), side->octaves, side->count * sizeof(octaves[0]));
	*side = (struct side){ octaves, first, end - first };
}

__attribute__((noinline, cold)) static struct octave *
new_octave(struct wm_quantile_sketch *sketch, struct side *side, struct wm_arena *arena, uint32_t number)
{
	struct octave *octave;

	if (number - side->first >= side->count)
		make_room(side, arena, number);
	if (sketch->spare_bytes >= sizeof(*octave)) {
		octave = memset(sketch->spare, 0, sizeof(*octave));
		sketch->spare += sizeof(*octave);
		sketch->spare_bytes -= sizeof(*octave);
	} else {
		octave = zeroed(arena, sizeof(*octave));
	}
	side->octaves[number - side->first] = octave;
	return octave;
}

static inline struct octave *
octave_in(struct wm_quantile_sketch *sketch, struct side *side, struct wm_arena *arena, uint32_t number)
{
	uint32_t at = number - side->first;
	struct octave *octave = at < side->count ? side->octaves[at] : NULL;

	return octave != NULL ? octave : new_octave(sketch, side, arena, number);
}

static uint64_t
count_in(const struct octave *octave, size_t bucket)
{
	return octave->low[bucket] | (uint64_t)(octave->high == NULL ? 0 : octave->high[bucket]) << 32;
}

__attribute__((noinline)) static void
add_high(struct octave *octave, struct wm_arena *arena, size_t bucket, uint32_t count)
{
	if (octave->high == NULL)
		octave->high = zeroed(arena, sizeof(octave->low));
	octave->high[bucket] += count;
}

static void
add_count(struct octave *octave, struct wm_arena *arena, size_t bucket, uint64_t count)
{
	uint64_t total = octave->low[bucket] + (count & UINT32_MAX);
	uint32_t high = (uint32_t)((total >> 32) + (count >> 32));

	octave->low[bucket] = (uint32_t)total;
	if (high != 0)
		add_high(octave, arena, bucket, high);
}

__attribute__((noinline)) static void
widen(struct wm_quantile_sketch *sketch, const struct wm_decimal *number, double nearest)
{
	if (compare(number, &sketch->least) < 0) {
		sketch->least = *number;
		sketch->least_nearest = nearest;
	}
	if (compare(number, &sketch->greatest) > 0) {
		sketch->greatest = *number;
		sketch->greatest_nearest = nearest;
	}
}

/* Whether a number may be the least or the greatest of all. */
static inline bool
is_at_an_end(const struct wm_quantile_sketch *sketch, double nearest)
{
	return nearest <= sketch->least_nearest || nearest >= sketch->greatest_nearest;
}

/* Counts a number that is between the ends. */
static inline void
sketch_count(struct wm_quantile_sketch *sketch, struct wm_arena *arena, double nearest)
{
	double size = fabs(nearest);

	if (size < DBL_MIN) {
		sketch->zeros++;
		return;
	}
	struct side *side = nearest < 0 ? &sketch->negative : &sketch->positive;
	uint32_t bucket = bucket_of(size);
	struct octave *octave = octave_in(sketch, side, arena, bucket / BUCKETS_PER_OCTAVE);
	if (++octave->low[bucket % BUCKETS_PER_OCTAVE] == 0)
		add_high(octave, arena, bucket % BUCKETS_PER_OCTAVE, 1);
}

static inline void
sketch_add(struct wm_quantile_sketch *sketch, struct wm_arena *arena, const struct wm_decimal *number)
{
	double nearest = nearest_of(number);

	if (is_at_an_end(sketch, nearest))
		widen(sketch, number, nearest);
	sketch_count(sketch, arena, nearest);
}

static struct wm_quantile_sketch *
sketch_new(struct wm_arena *arena, const struct wm_decimal *least, const struct wm_decimal *greatest)
{
	struct wm_quantile_sketch *sketch = zeroed(arena, sizeof(*sketch));

	sketch->least = *least;
	sketch->least_nearest = nearest_of(least);
	sketch->greatest = *greatest;
	sketch->greatest_nearest = nearest_of(greatest);
	return sketch;
}

/* The memory of the exact values becomes that of the first octaves. */
__attribute__((noinline)) static void
turn_to_sketch(struct wm_quantile *quantile, struct wm_arena *arena)
{
	struct wm_quantile exact = *quantile;
	struct wm_decimal first = exact_at(&exact, 0);
	struct wm_quantile_sketch *sketch = sketch_new(arena, &first, &first);
	size_t size = value_bytes(quantile);
	void *copy = memcpy(wm_malloc(exact.count * size), values_of(quantile), exact.count * size);

	if (exact.form == WM_QUANTILE_SCALED)
		exact.scaled = copy;
	else
		exact.decimals = copy;
	sketch->spare = values_of(quantile);
	sketch->spare_bytes = quantile->capacity * size;
	for (size_t i = 0; i < exact.count; i++) {
		struct wm_decimal number = exact_at(&exact, i);

		sketch_add(sketch, arena, &number);
	}
	free(copy);
	*quantile = (struct wm_quantile){ .count = exact.count, .sketch = sketch, .form = WM_QUANTILE_SKETCH };
}

void
wm_quantile_add(struct wm_quantile *quantile, struct wm_arena *arena, const struct wm_decimal *number)
{
	if (quantile->form != WM_QUANTILE_SKETCH) {
		if (quantile->count < WM_QUANTILE_EXACT_MAX) {
			exact_add(quantile, arena, number);
			return;
		}
		turn_to_sketch(quantile, arena);
	}
	sketch_add(quantile->sketch, arena, number);
	quantile->count++;
}

void
wm_quantile_add_integer(struct wm_quantile *quantile, struct wm_arena *arena, int64_t integer)
{
	if (quantile->form == WM_QUANTILE_SKETCH && !is_at_an_end(quantile->sketch, (double)integer)) {
		sketch_count(quantile->sketch, arena, (double)integer);
		quantile->count++;
		return;
	}
	const struct wm_decimal number = { .whole = integer, .is_exact = true };
	wm_quantile_add(quantile, arena, &number);
}

static void
merge_side(struct wm_quantile_sketch *into, struct side *side, struct wm_arena *arena, const struct side *from)
{
	for (uint32_t i = 0; i < from->count; i++) {
		if (from->octaves[i] == NULL)
			continue;
		struct octave *octave = octave_in(into, side, arena, from->first + i);
		for (size_t bucket = 0; bucket < BUCKETS_PER_OCTAVE; bucket++)
			add_count(octave, arena, bucket, count_in(from->octaves[i], bucket));
	}
}

void
wm_quantile_merge(struct wm_quantile *into, struct wm_arena *arena, const struct wm_quantile *from)
{
	if (from->form != WM_QUANTILE_SKETCH) {
		for (size_t i = 0; i < from->count; i++) {
			struct wm_decimal number = exact_at(from, i);

			wm_quantile_add(into, arena, &number);
		}
		return;
	}
	const struct wm_quantile_sketch *other = from->sketch;
	if (into->count == 0)
		*into = (struct wm_quantile){ .sketch = sketch_new(arena, &other->least, &other->greatest),
			.form = WM_QUANTILE_SKETCH };
	else if (into->form != WM_QUANTILE_SKETCH)
		turn_to_sketch(into, arena);
	struct wm_quantile_sketch *sketch = into->sketch;
	widen(sketch, &other->least, other->least_nearest);
	widen(sketch, &other->greatest, other->greatest_nearest);
	sketch->zeros += other->zeros;
	merge_side(sketch, &sketch->positive, arena, &other->positive);
	merge_side(sketch, &sketch->negative, arena, &other->negative);
	into->count += from->count;
}

/* ---- answers ---- */

uint64_t
wm_quantile_rank(uint64_t percent, uint64_t count)
{
	uint128 rank = ((uint128)percent * count + (WM_PERCENT_ALL - 1)) / WM_PERCENT_ALL;

	assert(count > 0 && percent <= WM_PERCENT_ALL);
	return rank == 0 ? 1 : (uint64_t)rank;
}

/*
 * The bucket of a rank, counted from the least size or from the greatest. 0 where the side has fewer values: then *rank is
 * less by their number.
 */
static uint32_t
bucket_at(const struct side *side, uint64_t *rank, bool from_greatest)
{
	for (uint32_t i = 0; i < side->count; i++) {
		uint32_t at = from_greatest ? side->count - 1 - i : i;
		const struct octave *octave = side->octaves[at];

		for (uint32_t j = 0; octave != NULL && j < BUCKETS_PER_OCTAVE; j++) {
			uint32_t bucket = from_greatest ? BUCKETS_PER_OCTAVE - 1 - j : j;
			uint64_t count = count_in(octave, bucket);

			if (*rank <= count)
				return (side->first + at) * BUCKETS_PER_OCTAVE + bucket;
			*rank -= count;
		}
	}
	return 0;
}

static double
sketch_at(const struct wm_quantile_sketch *sketch, uint64_t rank)
{
	uint32_t bucket = bucket_at(&sketch->negative, &rank, true);

	if (bucket != 0)
		return -middle_of(bucket);
	if (rank <= sketch->zeros)
		return 0;
	rank -= sketch->zeros;
	return middle_of(bucket_at(&sketch->positive, &rank, false));
}

struct wm_decimal
wm_quantile_at(const struct wm_quantile *quantile, uint64_t rank)
{
	assert(rank > 0 && rank <= quantile->count);
	if (quantile->form != WM_QUANTILE_SKETCH) {
		sort(quantile);
		return exact_at(quantile, rank - 1);
	}
	/* No value is beyond the least and the greatest, so no answer is. */
	double answer = sketch_at(quantile->sketch, rank);
	if (rank == 1 || answer < quantile->sketch->least_nearest)
		return quantile->sketch->least;
	if (rank == quantile->count || answer > quantile->sketch->greatest_nearest)
		return quantile->sketch->greatest;
	return decimal_of_double(answer);
}

void
wm_quantile_print_median(const struct wm_quantile *quantile, struct wm_buf *out)
{
	uint64_t count = quantile->count;
	struct wm_decimal low = wm_quantile_at(quantile, (count + 1) / 2);
	struct wm_decimal_sum sum = { 0 };

	wm_decimal_sum_add(&sum, &low);
	if (count % 2 == 1) {
		wm_decimal_sum_print(&sum, out);
		return;
	}
	struct wm_decimal high = wm_quantile_at(quantile, count / 2 + 1);
	wm_decimal_sum_add(&sum, &high);
	double mean = wm_decimal_sum_mean(&sum, 2);
	/* Where the sum is beyond doubles their halves are exact, and the mean is not beyond. */
	wm_double_print(isfinite(mean) ? mean : low.nearest / 2 + high.nearest / 2, out);
}

/* ---- as bytes ---- */

static void
decimal_encode(const struct wm_decimal *number, struct wm_buf *out)
{
	wm_put_u8(out, number->is_exact);
	if (number->is_exact) {
		wm_put_u64(out, (uint64_t)(uint128)number->whole);
		wm_put_u64(out, (uint64_t)((uint128)number->whole >> 64));
		wm_put_i64(out, number->fraction);
	} else {
		wm_put_double(out, number->nearest + 0.0);
	}
}

static struct wm_decimal
decimal_decode(struct wm_get *in)
{
	wm_int128 end = (wm_int128)power_of_ten[18] * power_of_ten[18] * power_of_ten[WM_WHOLE_DIGITS_MAX - 36];
	struct wm_decimal number = { .is_exact = wm_get_u8(in) != 0 };

	if (number.is_exact) {
		uint64_t low = wm_get_u64(in), high = wm_get_u64(in);

		number.whole = (wm_int128)((uint128)high << 64 | low);
		number.fraction = wm_get_i64(in);
		if (number.whole <= -end || number.whole >= end || number.fraction <= -WM_FRACTION_ONE ||
			number.fraction >= WM_FRACTION_ONE || (number.whole < 0 && number.fraction > 0) ||
			(number.whole > 0 && number.fraction < 0))
			wm_get_fail(in);
	} else {
		number.nearest = wm_get_double(in);
		if (!isfinite(number.nearest))
			wm_get_fail(in);
	}
	return in->failed ? decimal_of_double(0) : number;
}

static void
scaled_encode(const struct wm_quantile *quantile, struct wm_buf *out)
{
	int64_t before = 0;

	wm_put_u8(out, quantile->digits);
	for (size_t i = 0; i < quantile->count; i++) {
		int64_t value = quantile->scaled[i];

		if (i == 0)
			wm_put_i64(out, value);
		else
			wm_put_varint(out, (uint64_t)value - (uint64_t)before);
		before = value;
	}
}

static void
exact_encode(const struct wm_quantile *quantile, struct wm_buf *out)
{
	sort(quantile);
	wm_put_u8(out, quantile->form);
	if (quantile->form == WM_QUANTILE_SCALED)
		scaled_encode(quantile, out);
	else
		for (size_t i = 0; i < quantile->count; i++)
			decimal_encode(&quantile->decimals[i], out);
}

static void
scaled_decode(struct wm_quantile *quantile, struct wm_arena *arena, struct wm_get *in, uint64_t count)
{
	unsigned digits = wm_get_u8(in);
	int64_t value = wm_get_i64(in);

	if (digits > WM_FRACTION_DIGITS_MAX)
		wm_get_fail(in);
	for (uint64_t i = 0; i < count && !in->failed; i++) {
		if (i > 0 && __builtin_add_overflow(value, wm_get_varint(in), &value))
			wm_get_fail(in);
		if (in->failed)
			return;
		struct wm_decimal number = decimal_of_scaled(value, digits);
		exact_add(quantile, arena, &number);
	}
}

/* Each bucket that has values: how far behind the one before, and their number. Then a 0. */
static void
side_encode(const struct side *side, struct wm_buf *out)
{
	uint32_t before = 0;

	for (uint32_t at = 0; at < side->count * BUCKETS_PER_OCTAVE; at++) {
		const struct octave *octave = side->octaves[at / BUCKETS_PER_OCTAVE];
		uint64_t count = octave == NULL ? 0 : count_in(octave, at % BUCKETS_PER_OCTAVE);
		uint32_t bucket = side->first * BUCKETS_PER_OCTAVE + at;

		if (count == 0)
			continue;
		wm_put_varint(out, bucket - before);
		wm_put_varint(out, count);
		before = bucket;
	}
	wm_put_varint(out, 0);
}

static void
side_decode(struct wm_quantile *quantile, struct side *side, struct wm_arena *arena, struct wm_get *in)
{
	uint64_t bucket = 0;

	for (;;) {
		uint64_t gap = wm_get_varint(in), count = gap == 0 ? 0 : wm_get_varint(in);

		if (gap == 0)
			return;
		bucket += gap;
		if (gap >= BUCKETS_END || bucket >= BUCKETS_END || bucket < BUCKETS_PER_OCTAVE || count == 0 ||
			__builtin_add_overflow(quantile->count, count, &quantile->count)) {
			wm_get_fail(in);
			return;
		}
		struct octave *octave = octave_in(quantile->sketch, side, arena, (uint32_t)bucket / BUCKETS_PER_OCTAVE);
		add_count(octave, arena, bucket % BUCKETS_PER_OCTAVE, count);
	}
}

static void
sketch_decode(struct wm_quantile *quantile, struct wm_arena *arena, struct wm_get *in, uint64_t count)
{
	struct wm_decimal least = decimal_decode(in), greatest = decimal_decode(in);
	struct wm_quantile_sketch *sketch = sketch_new(arena, &least, &greatest);

	*quantile = (struct wm_quantile){ .count = wm_get_varint(in), .sketch = sketch, .form = WM_QUANTILE_SKETCH };
	sketch->zeros = quantile->count;
	side_decode(quantile, &sketch->negative, arena, in);
	side_decode(quantile, &sketch->positive, arena, in);
	if (compare(&least, &greatest) > 0 || quantile->count != count)
		wm_get_fail(in);
}

void
wm_quantile_encode(const struct wm_quantile *quantile, struct wm_buf *out)
{
	const struct wm_quantile_sketch *sketch = quantile->sketch;

	wm_put_varint(out, quantile->count);
	if (quantile->count == 0)
		return;
	if (quantile->form != WM_QUANTILE_SKETCH) {
		exact_encode(quantile, out);
		return;
	}
	decimal_encode(&sketch->least, out);
	decimal_encode(&sketch->greatest, out);
	wm_put_varint(out, sketch->zeros);
	side_encode(&sketch->negative, out);
	side_encode(&sketch->positive, out);
}

bool
wm_quantile_decode(struct wm_quantile *quantile, struct wm_arena *arena, struct wm_get *in)
{
	uint64_t count = wm_get_varint(in);

	if (count == 0)
		return !in->failed;
	if (count > WM_QUANTILE_EXACT_MAX) {
		sketch_decode(quantile, arena, in, count);
		return !in->failed;
	}
	unsigned form = wm_get_u8(in);
	if (form == WM_QUANTILE_SCALED)
		scaled_decode(quantile, arena, in, count);
	else if (form != WM_QUANTILE_DECIMALS)
		wm_get_fail(in);
	else
		for (uint64_t i = 0; i < count && !in->failed; i++) {
			struct wm_decimal number = decimal_decode(in);

			exact_add(quantile, arena, &number);
		}
	return !in->failed;
}
