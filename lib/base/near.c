/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/near.h"

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/ascii.h"

/* Longer words are not compared: nobody misspells them, they are data. */
#define WORD_MAX 64

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edits that make b of a, whatever the case of letters; both at most WORD_MAX long. */
static size_t
edits_between(struct wm_span a, struct wm_span b)
{
	size_t rows[3][WORD_MAX + 1]; /* of the table of prefixes: a's first i bytes against b's first j */

	for (size_t j = 0; j <= b.len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			char letter = wm_lower(a.data[i - 1]), other = wm_lower(b.data[j - 1]);
			size_t replaced = above[j - 1] + (letter != other);

			row[j] = least(least(row[j - 1], above[j]) + 1, replaced);
			if (i > 1 && j > 1 && letter == wm_lower(b.data[j - 2]) && wm_lower(a.data[i - 2]) == other)
				row[j] = least(row[j], above2[j - 2] + 1);
		}
	}
	return rows[a.len % 3][b.len];
}

/* The letters of a word as bits, whatever their case; all that are no letters are one. */
static uint32_t
letters_of(struct wm_span word)
{
	uint32_t letters = 0;

	for (size_t i = 0; i < word.len; i++) {
		char letter = wm_lower(word.data[i]);

		letters |= (uint32_t)1 << (letter >= 'a' && letter <= 'z' ? letter - 'a' : 26);
	}
	return letters;
}

/* Whether the word has at least half of the candidate's letters: null is no misspelt fill. */
static bool
shares_half(struct wm_span word, struct wm_span candidate)
{
	uint32_t wanted = letters_of(candidate);

	return 2 * __builtin_popcount(wanted & letters_of(word)) >= __builtin_popcount(wanted);
}

struct wm_near
wm_near_to(struct wm_span word)
{
	return (struct wm_near){ .word = word, .best_edits = word.len / 4 + 2 };
}

void
wm_near_try(struct wm_near *near, struct wm_span candidate)
{
	if (near->word.len > WORD_MAX || candidate.len > WORD_MAX)
		return;
	size_t edits = edits_between(near->word, candidate);
	if (edits < near->best_edits && edits < candidate.len && edits < near->word.len &&
		shares_half(near->word, candidate)) {
		near->best = candidate;
		near->best_edits = edits;
	}
}
