/*
 * tree_priv.h - the log as a Merkle tree (RFC 6962), made record by record.
 *
 * A leaf's hash is the `h` of a record: SHA-256(0x00, its bytes).  A node is
 * SHA-256(0x01, left, right).  What is kept is the right edge: for each bit of
 * the size that is set, the root of a full subtree of that many leaves.  From it
 * the root follows, and it is all that is needed to go on.
 */
#ifndef AUDIT_TREE_PRIV_H
#define AUDIT_TREE_PRIV_H

#include "gate/base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREE_LEVELS   64
#define TREE_EDGE_MAX (TREE_LEVELS * (HASH_HEX_LEN + 3) + 2) /* as JSON, with the NUL */

struct tree {
	uint64_t size;                 /* leaves */
	struct hash edge[TREE_LEVELS]; /* [k] counts if bit k of size is set */
};

struct hash tree_node(const struct hash *left, const struct hash *right);

/*
 * Adds a leaf.  Returns the level of the highest full subtree that it completed;
 * nodes, if not NULL, receives the roots of those up to there, the leaf first.
 */
unsigned tree_add(struct tree *t, const struct hash *leaf, struct hash nodes[TREE_LEVELS]);

/* The root; of the empty tree the hash of nothing. */
struct hash tree_root(const struct tree *t);

bool tree_same(const struct tree *a, const struct tree *b);

/* `["hash",...]`, the largest subtree first; "" for the empty tree. */
void tree_edge_format(const struct tree *t, char out[TREE_EDGE_MAX]);

/* The tree of that size with this edge; false if text does not fit the size. */
bool tree_edge_parse(struct span text, uint64_t size, struct tree *ret);

#endif
