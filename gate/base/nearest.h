/*
 * nearest.h - "did you mean": the known name that a mistyped one is closest to.
 */
#ifndef GATE_BASE_NEAREST_H
#define GATE_BASE_NEAREST_H

#include "gate/base/span.h"

struct nearest {
	struct span typed;
	const char *best; /* NULL: nothing is close enough */
	size_t distance;
};

/*
 * Begin with one per mistyped name, offer every known one, then read best.
 * What differs in more than a third of its letters is not near; of two that
 * are equally near the first one stays.
 */
struct nearest nearest_to(struct span typed);
void nearest_offer(struct nearest *n, const char *known);

/* " (did you mean 'x'?)" or "" into out, for the end of a message. */
#define NEAREST_TEXT_MAX 96
const char *nearest_text(const struct nearest *n, char out[NEAREST_TEXT_MAX]);

/* "; the nearest is x", or "" where best is NULL: likewise, as rules and settings say it. */
const char *nearest_said(const char *best, char out[NEAREST_TEXT_MAX]);

#endif
