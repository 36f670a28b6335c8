#include "gate/nearest.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 40 /* of names that are compared */

static size_t least(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits (insert, delete, replace) that turn a into b; both are at most LONGEST. */
static size_t edits(const char *a, const char *b)
{
	size_t row[LONGEST + 1], width = strlen(b);

	for (size_t j = 0; j <= width; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			size_t above = row[j];

			row[j] =
				least(row[j - 1] + 1, above + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[width];
}

struct nearest nearest_to(const char *typed)
{
	/* A third of the letters may be wrong, and one always. */
	return (struct nearest){.typed = typed, .distance = strlen(typed) / 3 + 2};
}

void nearest_try(struct nearest *n, const char *known)
{
	size_t distance;

	if (strlen(n->typed) > LONGEST || strlen(known) > LONGEST)
		return;
	distance = edits(n->typed, known);
	if (distance < n->distance) {
		n->best = known;
		n->distance = distance;
	}
}

const char *nearest_text(const struct nearest *n, char out[NEAREST_TEXT_MAX])
{
	out[0] = '\0';
	if (n->best)
		snprintf(out, NEAREST_TEXT_MAX, " (did you mean '%s'?)", n->best);
	return out;
}
