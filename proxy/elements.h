/*
 * elements.h - cuts a JSON array of objects into its elements as it comes in.
 *
 * A long list of a service need not be held: of it only one element at a time is.
 * What an element holds is not read here; jv_parse() is strict about that.
 */
#ifndef PROXY_ELEMENTS_H
#define PROXY_ELEMENTS_H

#include "gate/base/buf.h"
#include "gate/base/err.h"

#include <stdbool.h>

enum elements_at {
	ELEMENTS_BEFORE = 0, /* the array has not begun */
	ELEMENTS_BETWEEN,
	ELEMENTS_INSIDE, /* one element */
	ELEMENTS_BEHIND  /* the array has ended */
};

struct elements {
	struct buf one;
	enum elements_at at;
	unsigned depth;
	bool in_string, escaped;
};

/* Called with each element, which lives as long as the call. */
typedef void elements_fn(void *arg, struct span element);

/* cap: bytes of one element. */
void elements_init(struct elements *e, size_t cap);
void elements_fini(struct elements *e); /* it can be initialised again */

/* ERR_UPSTREAM: it is no array of objects, or an element is too long; what came before was told. */
int elements_take(struct elements *e, struct span piece, elements_fn *fn, void *arg,
		  struct err *err);

/* All of the array has come. */
bool elements_over(const struct elements *e);

#endif
