#include "gate/base/nearest.h"

#include <stdio.h>

#define LETTERS_MAX 48 /* of names that are compared */

static size_t least(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Letters to insert, drop or change to make b of a; both are at most LETTERS_MAX long. */
static size_t edits(struct span a, struct span b)
{
	size_t row[LETTERS_MAX + 1];

	for (size_t k = 0; k <= b.len; k++)
		row[k] = k;
	for (size_t i = 1; i <= a.len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t k = 1; k <= b.len; k++) {
			size_t above = row[k];

			row[k] = least(row[k - 1] + 1, above + 1,
				       diagonal + (a.at[i - 1] != b.at[k - 1]));
			diagonal = above;
		}
	}
	return row[b.len];
}

struct nearest nearest_to(struct span typed)
{
	return (struct nearest){.typed = typed};
}

void nearest_offer(struct nearest *n, const char *known)
{
	struct span k = span_of(known);
	size_t distance;

	if (!k.len || k.len > LETTERS_MAX || !n->typed.len || n->typed.len > LETTERS_MAX)
		return;
	distance = edits(n->typed, k);
	if (distance * 3 > k.len + 2 || (n->best && distance >= n->distance))
		return;
	n->best = known;
	n->distance = distance;
}

const char *nearest_text(const struct nearest *n, char out[NEAREST_TEXT_MAX])
{
	out[0] = '\0';
	if (n->best)
		snprintf(out, NEAREST_TEXT_MAX, " (did you mean '%s'?)", n->best);
	return out;
}

const char *nearest_said(const char *best, char out[NEAREST_TEXT_MAX])
{
	out[0] = '\0';
	if (best)
		snprintf(out, NEAREST_TEXT_MAX, "; the nearest is %s", best);
	return out;
}
