/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/scan.h"

#include <stdlib.h>

#include "lib/base/mem.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/platform/x86.h>
#endif

#define BLOCK 64

/* Of one block: bit i speaks of byte i. */
struct masks {
	uint64_t separators; /* delimiters and line feeds */
	uint64_t line_feeds;
	uint64_t marks; /* quotes or backslashes */
};

/* Which bytes are looked for. */
struct bytes {
	char delimiter;
	char mark;
};

static struct masks
masks_plain(const char *text, struct bytes bytes)
{
	struct masks masks = { 0 };

	for (unsigned i = 0; i < BLOCK; i++) {
		masks.separators |= (uint64_t)(text[i] == bytes.delimiter || text[i] == '\n') << i;
		masks.line_feeds |= (uint64_t)(text[i] == '\n') << i;
		masks.marks |= (uint64_t)(text[i] == bytes.mark) << i;
	}
	return masks;
}

/*
 * Writes the positions behind the separators of the block at offset at. Most
 * blocks hold up to 8: one turn without a branch for each, and what is written
 * too much is overwritten by the next block.
 */
__attribute__((always_inline)) static inline void
put_positions(uint32_t *after, size_t at, uint64_t separators)
{
	for (; separators != 0; after += 8) {
#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) {
			after[i] = (uint32_t)at + (uint32_t)__builtin_ctzll(separators | UINT64_C(1) << 63) + 1;
			separators &= separators - 1;
		}
	}
}

/* What a block has to know of those before it. */
struct carry {
	uint64_t inside; /* of CSV, all bits: it begins between quotes */
	uint64_t
		before; /* bit 0: the byte before it closes a quoted field, or is a backslash that takes its first byte along */
};

/* Bit i: the number of bits up to i, itself included, is odd. */
__attribute__((always_inline)) static inline uint64_t
parity_up_to(uint64_t bits)
{
	for (unsigned step = 1; step < BLOCK; step *= 2)
		bits ^= bits << step;
	return bits;
}

/* Of bits behind closing quotes that are no separator and no quote: the first that is not the CR of a CR LF. */
static uint64_t
find_text(const char *block, uint64_t bits)
{
	for (; bits != 0; bits &= bits - 1) {
		int i = __builtin_ctzll(bits);

		if (block[i] != '\r' || block[i + 1] != '\n')
			break;
	}
	return bits & -bits;
}

/*
 * Takes out of the masks what stands between quotes, and all that comes behind
 * the first quote that neither opens nor closes a field. False if there is one.
 */
__attribute__((always_inline)) static inline bool
mask_quoted(struct wm_scan *scan, struct carry *carry, const char *text, size_t at, struct masks *masks)
{
	uint64_t inside = parity_up_to(masks->marks) ^ carry->inside;
	uint64_t opening = masks->marks & inside, closing = masks->marks & ~inside;
	uint64_t separators = masks->separators & ~inside;
	/* Where the block begins; inside quotes nothing opens there. */
	bool may_open = at == 0 || text[at - 1] == scan->dialect.delimiter || text[at - 1] == '\n';
	uint64_t behind = closing << 1 | carry->before;
	/* A quote behind a closing one makes both a doubled one. */
	uint64_t stray = opening & ~(behind | separators << 1 | (uint64_t)may_open);

	behind &= ~(separators | masks->marks);
	if (behind != 0)
		stray |= find_text(text + at, behind);
	uint64_t before = stray == 0 ? ~UINT64_C(0) : (stray & -stray) - 1;
	scan->has_marks = true;
	scan->has_inner_line_feeds |= (masks->line_feeds & inside) != 0;
	masks->separators = separators & before;
	masks->line_feeds &= ~inside & before;
	carry->inside = 0 - (inside >> (BLOCK - 1));
	carry->before = closing >> (BLOCK - 1);
	return stray == 0;
}

/*
 * Takes out of the masks what a backslash takes along. There are few, so they are gone through one by one. A CR takes the
 * LF behind it along; where that is in the next block, the carry says so as a backslash would.
 */
static __attribute__((noinline)) void
mask_escaped(struct wm_scan *scan, struct carry *carry, const char *block, struct masks *masks)
{
	uint64_t taken = carry->before, left = masks->marks & ~taken;

	carry->before = 0;
	for (uint64_t next; left != 0; left &= ~next) {
		uint64_t backslash = left & -left;

		next = backslash << 1;
		taken |= next;
		left &= ~backslash;
		carry->before |= backslash >> (BLOCK - 1);
	}
	for (uint64_t bits = taken; bits != 0; bits &= bits - 1) {
		int i = __builtin_ctzll(bits);

		if (block[i] != '\r' || block[i + 1] != '\n')
			continue;
		taken |= UINT64_C(1) << i << 1;
		carry->before |= UINT64_C(1) << i >> (BLOCK - 1);
	}
	scan->has_marks = true;
	scan->has_inner_line_feeds |= (masks->line_feeds & taken) != 0;
	masks->separators &= ~taken;
	masks->line_feeds &= ~taken;
}

/* What the marks of a block do, by the dialect: false if the batch ends in it. */
__attribute__((always_inline)) static inline bool
mask_marked(struct wm_scan *scan, struct carry *carry, const char *text, size_t at, struct masks *masks)
{
	if (scan->dialect.marks == WM_MARKS_QUOTES)
		return mask_quoted(scan, carry, text, at, masks);
	if (scan->dialect.marks == WM_MARKS_ESCAPES)
		mask_escaped(scan, carry, text + at, masks);
	return true;
}

/*
 * Adds the block at offset at to the index, of which *separators are there.
 * False if the batch ends in it. put is put_positions() or what does the same.
 * Inlined, so that each way gets it in its own instruction set.
 */
__attribute__((always_inline)) static inline bool
take_block(struct wm_scan *scan, size_t *separators, struct carry *carry, const char *text, size_t at,
	struct masks masks, void (*put)(uint32_t *after, size_t at, uint64_t separators))
{
	bool goes_on = true;
	size_t count = *separators;

	if ((masks.marks | carry->inside | carry->before) != 0)
		goes_on = mask_marked(scan, carry, text, at, &masks);
	/* Whether a block holds a line feed is hard to foretell: the first is written anyhow and then counted, or not. */
	uint64_t line_feeds = masks.line_feeds;
	do {
		uint64_t up_to_it = line_feeds ^ (line_feeds - 1);

		scan->rows[scan->rows_count + 1] =
			(uint32_t)count + (uint32_t)__builtin_popcountll(masks.separators & up_to_it);
		scan->rows_count += line_feeds != 0;
		line_feeds &= line_feeds - 1;
	} while (line_feeds != 0);
	*separators = count + (size_t)__builtin_popcountll(masks.separators);
	put(&scan->after[count + 1], at, masks.separators);
	return goes_on;
}

/* The last block of a text: what stands behind the text does not count. */
static struct masks
masks_cut(struct masks masks, size_t len)
{
	uint64_t inside = (UINT64_C(1) << len) - 1;

	return (struct masks){ masks.separators & inside, masks.line_feeds & inside, masks.marks & inside };
}

/* The loop of each way. */
#define TAKE_BLOCKS(masks_of, put)                                                                                     \
	do {                                                                                                           \
		size_t separators = 0, at = 0;                                                                         \
		struct carry carry = { 0 };                                                                            \
		bool goes_on = true;                                                                                   \
		const struct bytes bytes = { scan->dialect.delimiter, scan->mark };                                    \
		for (; goes_on && text.len - at >= BLOCK; at += BLOCK)                                                 \
			goes_on = take_block(                                                                          \
				scan, &separators, &carry, text.data, at, masks_of(text.data + at, bytes), put);       \
		if (goes_on && at < text.len)                                                                          \
			take_block(scan, &separators, &carry, text.data, at,                                           \
				masks_cut(masks_of(text.data + at, bytes), text.len - at), put);                       \
	} while (0)

static void
take_plain(struct wm_scan *scan, struct wm_span text)
{
	TAKE_BLOCKS(masks_plain, put_positions);
}

#if defined(__x86_64__)

static inline uint64_t
bits_sse2(const __m128i *block, char byte)
{
	__m128i wanted = _mm_set1_epi8(byte);
	uint64_t bits = 0;

	for (unsigned i = 0; i < 4; i++)
		bits |= (uint64_t)(uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(block[i], wanted)) << 16 * i;
	return bits;
}

static inline struct masks
masks_sse2(const char *text, struct bytes bytes)
{
	__m128i block[4];

	for (int i = 0; i < 4; i++)
		block[i] = _mm_loadu_si128((const __m128i *)(const void *)(text + 16 * i));
	uint64_t line_feeds = bits_sse2(block, '\n');
	return (struct masks){ bits_sse2(block, bytes.delimiter) | line_feeds, line_feeds,
		bits_sse2(block, bytes.mark) };
}

static void
take_sse2(struct wm_scan *scan, struct wm_span text)
{
	TAKE_BLOCKS(masks_sse2, put_positions);
}

#define AVX2 __attribute__((target("avx2,bmi,popcnt")))

AVX2 static inline uint64_t
bits_avx2(__m256i low, __m256i high, char byte)
{
	__m256i wanted = _mm256_set1_epi8(byte);
	uint32_t low_bits = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted));
	uint32_t high_bits = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted));

	return low_bits | (uint64_t)high_bits << 32;
}

AVX2 static inline struct masks
masks_avx2(const char *text, struct bytes bytes)
{
	__m256i low = _mm256_loadu_si256((const __m256i *)(const void *)text);
	__m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(text + 32));
	uint64_t line_feeds = bits_avx2(low, high, '\n');

	return (struct masks){ bits_avx2(low, high, bytes.delimiter) | line_feeds, line_feeds,
		bits_avx2(low, high, bytes.mark) };
}

AVX2 static void
take_avx2(struct wm_scan *scan, struct wm_span text)
{
	TAKE_BLOCKS(masks_avx2, put_positions);
}

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi,popcnt")))

AVX512 static inline struct masks
masks_avx512(const char *text, struct bytes bytes)
{
	__m512i block = _mm512_loadu_si512(text);
	uint64_t line_feeds = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('\n'));

	return (struct masks){ _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(bytes.delimiter)) | line_feeds,
		line_feeds, _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(bytes.mark)) };
}

/* All positions of a block at once: those of the set bits, moved together, widened and written 16 at a time. */
AVX512 static inline void
put_positions_avx512(uint32_t *after, size_t at, uint64_t separators)
{
	static const unsigned char one_to_64[BLOCK] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
		19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44,
		45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64 };
	__m512i places = _mm512_maskz_compress_epi8(separators, _mm512_loadu_si512(one_to_64));
	__m512i base = _mm512_set1_epi32((int)at);
	size_t count = (size_t)__builtin_popcountll(separators);

	_mm512_storeu_si512(after, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places))));
	if (count <= 16)
		return;
	_mm512_storeu_si512(
		after + 16, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 1))));
	if (count <= 32)
		return;
	_mm512_storeu_si512(
		after + 32, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 2))));
	_mm512_storeu_si512(
		after + 48, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 3))));
}

AVX512 static void
take_avx512(struct wm_scan *scan, struct wm_span text)
{
	TAKE_BLOCKS(masks_avx512, put_positions_avx512);
}

/* As the loader found them: to ask the processor again takes a virtual machine some 7 us a question. */
enum wm_scan_way
wm_scan_best_way(void)
{
	bool has_bits = CPU_FEATURE_ACTIVE(BMI1) && CPU_FEATURE_ACTIVE(POPCNT);

	if (has_bits && CPU_FEATURE_ACTIVE(AVX512BW) && CPU_FEATURE_ACTIVE(AVX512_VBMI) &&
		CPU_FEATURE_ACTIVE(AVX512_VBMI2))
		return WM_SCAN_AVX512;
	return has_bits && CPU_FEATURE_ACTIVE(AVX2) ? WM_SCAN_AVX2 : WM_SCAN_SSE2;
}

#else

enum wm_scan_way
wm_scan_best_way(void)
{
	return WM_SCAN_PLAIN;
}

#endif

/* Without marks it is a byte that UTF-8 never has: should it come all the same, it does nothing. */
static char
mark_of(enum wm_marks marks)
{
	return marks == WM_MARKS_QUOTES ? '"' : marks == WM_MARKS_ESCAPES ? '\\' : '\xFF';
}

struct wm_scan *
wm_scan_new(struct wm_dialect dialect, enum wm_scan_way way)
{
	struct wm_scan *scan = wm_malloc(sizeof(*scan)); /* pages of the index that are not needed are never touched */

	scan->rows_count = 0;
	scan->bytes = 0;
	scan->has_marks = false;
	scan->has_inner_line_feeds = false;
	scan->way = way;
	scan->dialect = dialect;
	scan->mark = mark_of(dialect.marks);
	scan->rows[0] = 0;
	scan->after[0] = 0;
	return scan;
}

void
wm_scan_free(struct wm_scan *scan)
{
	free(scan);
}

void
wm_scan_batch(struct wm_scan *scan, struct wm_span text)
{
	if (text.len > WM_SCAN_BYTES_MAX)
		text.len = WM_SCAN_BYTES_MAX;
	scan->rows_count = 0;
	scan->has_marks = false;
	scan->has_inner_line_feeds = false;
	switch (scan->way) {
#if defined(__x86_64__)
	case WM_SCAN_AVX512:
		take_avx512(scan, text);
		break;
	case WM_SCAN_AVX2:
		take_avx2(scan, text);
		break;
	case WM_SCAN_SSE2:
		take_sse2(scan, text);
		break;
#endif
	default:
		take_plain(scan, text);
		break;
	}
	scan->bytes = scan->after[scan->rows[scan->rows_count]];
}
