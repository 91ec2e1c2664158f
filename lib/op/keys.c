#include "lib/op/keys.h"

#include <string.h>

#include "lib/base/codec.h"

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
wm_keys_unpack(const struct wm_entry *entry, struct wm_value *values, size_t count)
{
	struct wm_get in;

	if (count == 1) {
		values[0] = (struct wm_value){ wm_entry_key(entry), (enum wm_kind)entry->tag };
		return;
	}
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
	unsigned char bytes[8] = { 0 };
	uint64_t prefix;

	/* The lengths in it do not order like the texts. */
	if (entry->tag == TAG_COMPOSITE)
		return 0;
	memcpy(bytes, entry->key, entry->key_len < sizeof(bytes) ? entry->key_len : sizeof(bytes));
	memcpy(&prefix, bytes, sizeof(prefix));
	return __builtin_bswap64(prefix);
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
