/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/op/keys.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/codec.h"
#include "lib/base/mem.h"

/* Tag of a key of several columns (or none): above every enum wm_kind. */
#define TAG_COMPOSITE 15

struct wm_span
wm_keys_pack_several(const struct wm_value *values, size_t count, struct wm_buf *text, uint8_t *tag)
{
	*tag = TAG_COMPOSITE;
	wm_buf_reset(text);
	for (size_t i = 0; i < count; i++) {
		wm_put_u8(text, (uint8_t)values[i].kind);
		wm_put_span(text, values[i].text);
	}
	return wm_buf_span(text);
}

static struct wm_value
get_part(struct wm_get *in)
{
	struct wm_value part;

	part.kind = (enum wm_kind)wm_get_u8(in);
	part.text = wm_get_span(in);
	return part;
}

void
wm_keys_unpack_several(const struct wm_entry *entry, struct wm_value *values, size_t count)
{
	struct wm_get in;

	wm_get_init(&in, wm_entry_key(entry));
	for (size_t i = 0; i < count; i++)
		values[i] = get_part(&in);
}

static int
compare_values(const struct wm_value *a, const struct wm_value *b)
{
	int order = (a->kind != WM_KIND_NULL) - (b->kind != WM_KIND_NULL);

	if (order == 0)
		order = wm_span_compare(a->text, b->text);
	return order != 0 ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

int
wm_keys_compare(const struct wm_entry *a, const struct wm_entry *b)
{
	struct wm_get in_a, in_b;
	int order = 0;

	if (a->tag != TAG_COMPOSITE) {
		struct wm_value value_a = { wm_entry_key(a), (enum wm_kind)a->tag };
		struct wm_value value_b = { wm_entry_key(b), (enum wm_kind)b->tag };

		return compare_values(&value_a, &value_b);
	}
	wm_get_init(&in_a, wm_entry_key(a));
	wm_get_init(&in_b, wm_entry_key(b));
	while (order == 0 && wm_get_left(&in_a) != 0) {
		struct wm_value value_a = get_part(&in_a), value_b = get_part(&in_b);

		order = compare_values(&value_a, &value_b);
	}
	return order;
}

int
wm_keys_compare_pointers(const void *a, const void *b)
{
	return wm_keys_compare(*(struct wm_entry *const *)a, *(struct wm_entry *const *)b);
}

uint64_t
wm_keys_prefix(const struct wm_entry *entry)
{
	uint64_t prefix;

	/* The lengths in it do not order like the texts. */
	if (entry->tag == TAG_COMPOSITE || entry->key_len == 0)
		return 0;
	/* What is behind a shorter key belongs to the entry too: its value is aligned to 16. */
	memcpy(&prefix, entry->key, sizeof(prefix));
	prefix = __builtin_bswap64(prefix);
	return entry->key_len >= sizeof(prefix) ? prefix : prefix & ~(~UINT64_C(0) >> 8 * entry->key_len);
}

/* Sorting */

/* So few items are compared. */
#define COMPARED_MAX 24

/* How many bits are looked at, and in one step, by the number of items: what these leave in one place is sorted for itself. */
#define FEW_ITEMS ((size_t)1 << 10)
#define MANY_ITEMS ((size_t)1 << 20)
#define DIGIT_BITS_FEW 16
#define DIGIT_BITS 22
#define DIGIT_BITS_MAX 32
#define STEP_BITS_FEW 8
#define STEP_BITS_MAX 11

/* Sorted within each other; deeper, keys are made to be bad, and compared. */
#define LEVELS_MAX 64

/* Items ahead whose keys are fetched. */
#define FETCH_AHEAD 16

#define WORD_BYTES 8

/* Where in keys that are the same up to there sorting goes on. */
struct place {
	size_t column;
	size_t offset; /* in its text */
};

/* The bits of a word in which some differ, from the highest: up to so many, as pieces of its bytes. */
struct digit {
	size_t pieces_count;
	unsigned bits;
	struct {
		uint8_t shift, width;
	} pieces[WORD_BYTES];
};

static int
compare_items(const void *a, const void *b)
{
	const struct wm_keys_item *item_a = a, *item_b = b;
	int order = wm_keys_compare(item_a->entry, item_b->entry);

	return order != 0 ? order : (item_a->number > item_b->number) - (item_a->number < item_b->number);
}

/* The value of a column. */
static struct wm_value
value_at(const struct wm_entry *entry, size_t column, size_t columns_count)
{
	struct wm_value value;
	struct wm_get in;

	if (columns_count == 1)
		return (struct wm_value){ wm_entry_key(entry), (enum wm_kind)entry->tag };
	wm_get_init(&in, wm_entry_key(entry));
	do
		value = get_part(&in);
	while (column-- > 0);
	return value;
}

/* Bytes of a text from an offset on, the first one highest, and zeros behind the last. */
static inline uint64_t
word_at(struct wm_span text, size_t offset)
{
	size_t left = text.len > offset ? text.len - offset : 0;
	const char *at = text.data + (left == 0 ? 0 : offset);
	uint64_t word = 0;

	if (left >= WORD_BYTES) {
		memcpy(&word, at, WORD_BYTES);
		return be64toh(word);
	}
	if (left >= WORD_BYTES / 2) {
		uint32_t head, tail;

		memcpy(&head, at, sizeof(head));
		memcpy(&tail, at + left - sizeof(tail), sizeof(tail));
		return (uint64_t)be32toh(head) << 32 | (uint64_t)be32toh(tail) << 8 * (WORD_BYTES - left);
	}
	for (size_t i = 0; i < left; i++)
		word |= (uint64_t)(unsigned char)at[i] << 8 * (WORD_BYTES - 1 - i);
	return word;
}

static void
load_words(struct wm_keys_item *items, size_t count, size_t columns_count, const struct place *place)
{
	for (size_t i = 0; i < count; i++) {
		const struct wm_entry *entry = items[i].entry;

		if (i + FETCH_AHEAD < count)
			__builtin_prefetch(items[i + FETCH_AHEAD].entry);
		items[i].word = word_at(
			columns_count == 1 ? wm_entry_key(entry) : value_at(entry, place->column, columns_count).text,
			place->offset);
	}
}

/* Of items that are the same in the word at a place, the next place; false if there is nothing more that could be told by words. */
static bool
move_on(const struct wm_keys_item *items, size_t count, size_t columns_count, struct place *place)
{
	struct wm_value first = value_at(items[0].entry, place->column, columns_count);
	bool is_same = true;

	for (size_t i = 0; i < count; i++) {
		struct wm_value value = value_at(items[i].entry, place->column, columns_count);

		if (value.text.len > place->offset + WORD_BYTES) {
			place->offset += WORD_BYTES;
			return true;
		}
		is_same = is_same && value.text.len == first.text.len && value.kind == first.kind;
	}
	place->column++;
	place->offset = 0;
	return is_same && place->column < columns_count;
}

static uint64_t
differing_bits(const struct wm_keys_item *items, size_t count)
{
	uint64_t bits = 0;

	for (size_t i = 1; i < count; i++)
		bits |= items[i].word ^ items[0].word;
	return bits;
}

static struct digit
digit_of(uint64_t differing, unsigned bits_max)
{
	struct digit digit = { .bits = 0 };

	for (unsigned byte = WORD_BYTES; byte-- > 0 && digit.bits < bits_max;) {
		unsigned bits = (unsigned)(differing >> 8 * byte) & 0xff, left = bits_max - digit.bits;

		if (bits == 0)
			continue;
		unsigned low = (unsigned)__builtin_ctz(bits), width = 32 - (unsigned)__builtin_clz(bits) - low;
		if (width > left) {
			low += width - left;
			width = left;
		}
		digit.pieces[digit.pieces_count].shift = (uint8_t)(8 * byte + low);
		digit.pieces[digit.pieces_count++].width = (uint8_t)width;
		digit.bits += width;
	}
	return digit;
}

static inline uint64_t
digit_value(const struct digit *digit, uint64_t word)
{
	uint64_t value = 0;

	for (size_t i = 0; i < digit->pieces_count; i++) {
		unsigned width = digit->pieces[i].width;

		value = value << width | ((word >> digit->pieces[i].shift) & ((1u << width) - 1));
	}
	return value;
}

/* Sorts by so many bits of each number, and leaves those that are the same in them in their order. */
static void
deal_out(const uint64_t *from, uint64_t *to, size_t count, unsigned shift, unsigned bits)
{
	uint32_t next[1 << STEP_BITS_MAX], at = 0;
	size_t values_count = (size_t)1 << bits;

	memset(next, 0, values_count * sizeof(next[0]));
	for (size_t i = 0; i < count; i++)
		next[from[i] >> shift & (values_count - 1)]++;
	for (size_t value = 0; value < values_count; value++) {
		uint32_t with_value = next[value];

		next[value] = at;
		at += with_value;
	}
	for (size_t i = 0; i < count; i++)
		to[next[from[i] >> shift & (values_count - 1)]++] = from[i];
}

#define PLACE_MASK UINT64_C(0xffffffff)

/* Moves the item of each place in order to where that stands; its place becomes that one. */
static void
move_items(struct wm_keys_item *items, size_t count, uint64_t *order)
{
	for (size_t first = 0; first < count; first++) {
		struct wm_keys_item item = items[first];
		size_t to = first;

		for (size_t from; (from = order[to] & PLACE_MASK) != first; to = from) {
			items[to] = items[from];
			order[to] = (order[to] & ~PLACE_MASK) | to;
		}
		if (to == first)
			continue;
		items[to] = item;
		order[to] = (order[to] & ~PLACE_MASK) | to;
	}
}

/* Sorts by a digit, which then stands in the upper half of each number of order; other is room for as many. */
static void
sort_by_digit(struct wm_keys_item *items, size_t count, const struct digit *digit, uint64_t *order, uint64_t *other)
{
	unsigned step_max = count < FEW_ITEMS ? STEP_BITS_FEW : STEP_BITS_MAX;
	unsigned steps = (digit->bits + step_max - 1) / step_max, step_bits = (digit->bits + steps - 1) / steps;
	uint64_t *from = order, *to = other;

	for (size_t i = 0; i < count; i++)
		from[i] = digit_value(digit, items[i].word) << 32 | i;
	for (unsigned step = 0; step < steps; step++) {
		uint64_t *dealt = to;

		deal_out(from, to, count, 32 + step * step_bits, step_bits);
		to = from;
		from = dealt;
	}
	if (from != order)
		memcpy(order, from, count * sizeof(order[0]));
	move_items(items, count, order);
}

/* Few items, of which the words are loaded. */
static void
insert(struct wm_keys_item *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct wm_keys_item item = items[i];
		size_t at = i;

		for (; at > 0 && items[at - 1].word >= item.word; at--) {
			if (items[at - 1].word == item.word && compare_items(&items[at - 1], &item) <= 0)
				break;
			items[at] = items[at - 1];
		}
		items[at] = item;
	}
}

static unsigned
digit_bits(size_t count)
{
	return count < FEW_ITEMS ? DIGIT_BITS_FEW : count < MANY_ITEMS ? DIGIT_BITS : DIGIT_BITS_MAX;
}

/* Items that are the same before a place, for which their words are loaded. order and other: room for a number for each. */
static void
sort_from(struct wm_keys_item *items, size_t count, size_t columns_count, struct place place, unsigned level,
	uint64_t *order, uint64_t *other, const struct wm_pause *pause)
{
	uint64_t differing;

	if (count <= COMPARED_MAX) {
		insert(items, count);
		return;
	}
	wm_pause_at(pause, 0);
	while ((differing = differing_bits(items, count)) == 0) {
		if (level == LEVELS_MAX || !move_on(items, count, columns_count, &place)) {
			qsort(items, count, sizeof(items[0]), compare_items);
			return;
		}
		load_words(items, count, columns_count, &place);
	}
	struct digit digit = digit_of(differing, digit_bits(count));
	sort_by_digit(items, count, &digit, order, other);
	for (size_t first = 0, next; first < count; first = next) {
		uint64_t value = order[first] >> 32;

		for (next = first + 1; next < count && order[next] >> 32 == value;)
			next++;
		if (next - first > 1)
			sort_from(items + first, next - first, columns_count, place, level + 1, order + first,
				other + first, pause);
	}
}

void
wm_keys_sort(struct wm_keys_item *items, size_t count, size_t columns_count, const struct wm_pause *pause)
{
	struct place place = { 0, 0 };

	if (columns_count == 0 || count > UINT32_MAX) {
		qsort(items, count, sizeof(items[0]), compare_items);
		return;
	}
	load_words(items, count, columns_count, &place);
	if (count <= COMPARED_MAX) {
		insert(items, count);
		return;
	}
	uint64_t *order = wm_reallocarray(NULL, count, 2 * sizeof(uint64_t));
	sort_from(items, count, columns_count, place, 0, order, order + count, pause);
	free(order);
}

bool
wm_keys_are_valid(struct wm_span key, uint8_t tag, size_t count)
{
	struct wm_get in;

	if (count == 1)
		return tag <= WM_KIND_JSON;
	wm_get_init(&in, key);
	for (size_t i = 0; i < count; i++)
		if (get_part(&in).kind > WM_KIND_JSON)
			return false;
	return tag == TAG_COMPOSITE && !in.failed && wm_get_left(&in) == 0;
}
