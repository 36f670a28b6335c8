/*
 * open_set_priv.h - which allowed decisions have no outcome yet.
 *
 * Used by the auditor, by recovery, by `audit verify`, and by a worker for what
 * it claims after the auditor's death.  Ids are UUIDs, kept as 16 bytes.
 */
#ifndef AUDIT_OPEN_SET_PRIV_H
#define AUDIT_OPEN_SET_PRIV_H

#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decision_id {
	unsigned char bytes[16];
};

struct open_decision {
	struct decision_id id;
	uint64_t seq;   /* of its record */
	uint32_t owner; /* the worker that knows how it ends; 0: nobody (yet) */
	bool used;
};

struct open_set {
	struct open_decision *slots;
	size_t size, count; /* size: a power of two, or 0 */
	size_t cap;         /* the most decisions that may be held */
	uint64_t seed;      /* so that who picks ids cannot pick slots */
};

/* The 36 characters of a UUID in lower case; -1 if text is none. */
int decision_id_parse(struct span text, struct decision_id *ret);
void decision_id_format(const struct decision_id *id, char out[37]);

void open_set_init(struct open_set *s, size_t cap);
void open_set_fini(struct open_set *s);

/* NULL: it is there already, the cap is reached, or there is no memory. */
struct open_decision *open_set_add(struct open_set *s, const struct decision_id *id);

/* Valid until the next call that adds or drops; NULL if it is not there. */
struct open_decision *open_set_find(const struct open_set *s, const struct decision_id *id);
void open_set_drop(struct open_set *s, const struct decision_id *id);

/*
 * The next one from *slot on, and moves *slot behind it; NULL at the end.
 * Nothing may be added or dropped between two calls.
 */
struct open_decision *open_set_next(const struct open_set *s, size_t *slot);

#endif
