/*
 * nearest.h - "did you mean": the known name that a mistyped one is closest to.
 */
#ifndef GATE_NEAREST_H
#define GATE_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *typed;
	const char *best; /* NULL: nothing is close enough */
	size_t distance;
};

/* Begin with one per mistyped name, offer every known one, then read best. */
struct nearest nearest_to(const char *typed);
void nearest_try(struct nearest *n, const char *known);

/* " (did you mean 'x'?)" or "" into out, for the end of a message. */
#define NEAREST_TEXT_MAX 96
const char *nearest_text(const struct nearest *n, char out[NEAREST_TEXT_MAX]);

#endif
