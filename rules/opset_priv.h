/*
 * opset_priv.h - sets of operations, and the words that name them.
 *
 * A word is the name of an operation, of a group or of a class, looked up in
 * that order: `exec` is the group, not the class, which is wider.
 */
#ifndef RULES_OPSET_PRIV_H
#define RULES_OPSET_PRIV_H

#include "rules/operation.h"

#include <stdint.h>

struct op_set {
	uint64_t bits[(OP_COUNT + 63) / 64];
};

static inline bool op_set_has(const struct op_set *s, enum operation op)
{
	return op > OP_UNKNOWN && op < OP_COUNT && (s->bits[op / 64] >> (op % 64) & 1);
}

static inline void op_set_add(struct op_set *s, enum operation op)
{
	s->bits[op / 64] |= (uint64_t)1 << (op % 64);
}

/* Adds what word names; false if it names nothing. */
bool op_set_add_word(struct op_set *s, struct span word);

/* What the word grants in a profile's `operations`: of a class, not what only a name grants. */
bool op_set_grant_word(struct op_set *s, struct span word);

/* Whether all of inner is in outer. */
bool op_set_covers(const struct op_set *outer, const struct op_set *inner);

/* The word that is spelt most like the given one, or NULL if none is near. */
const char *op_word_nearest(struct span word);

#endif
