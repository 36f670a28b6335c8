/*
 * tile_priv.h - the tree's hashes in files: tile/LEVEL/NUMBER as C2SP's tlog-tiles has it.
 *
 * A tile is 256 hashes side by side: entry i of tile n of level l is the root of
 * the full subtree of 256^l leaves whose number is n * 256 + i.  Only full tiles
 * are kept: what is missing at the right edge is in the newest records.
 *
 * Tiles say nothing that the records do not say.  A tile that cannot be written
 * seals nothing; whoever reads one checks it against a root.
 */
#ifndef AUDIT_TILE_PRIV_H
#define AUDIT_TILE_PRIV_H

#include "audit/tree_priv.h"
#include "gate/base/hash.h"

#include <stdbool.h>
#include <stdint.h>

#define TILE_HASHES 256
#define TILE_BYTES  (TILE_HASHES * HASH_BYTES)
#define TILE_LEVELS 8
#define TILE_PATH   80 /* bytes with the NUL */

/* What is not a full tile yet, on each level. */
struct tiles {
	struct hash hashes[TILE_LEVELS][TILE_HASHES];
	struct tree tree;
	unsigned failed; /* tiles that could not be written, not told yet */
	int error;       /* errno of the last of these */
};

/* "tile/0/x001/x234/067" */
void tile_path(unsigned level, uint64_t number, char out[TILE_PATH]);

/* Adds a leaf to the tree, and writes each tile that it fills; dir_fd -1 writes none. */
void tiles_add(struct tiles *t, int dir_fd, const struct hash *leaf);

/* Writes one tile: under another name first, then renamed.  -1: errno says why. */
int tile_write(int dir_fd, unsigned level, uint64_t number, const struct hash hashes[TILE_HASHES]);

/* False: it is not there, or not whole. */
bool tile_read(int dir_fd, unsigned level, uint64_t number, struct hash ret[TILE_HASHES]);

/* Puts a tile that was written on disk, its name too.  -1: errno says why. */
int tile_sync(int dir_fd, unsigned level, uint64_t number);

/* The root of a tile's subtree. */
struct hash tile_root(const struct hash hashes[TILE_HASHES]);

/*
 * The tiles of a tree of this size, from files: what tiles_add() goes on with.
 * leaves: the hashes of the last size % 256 records.  False: a tile is missing or
 * does not belong to this tree.
 */
bool tiles_resume(struct tiles *t, int dir_fd, const struct tree *tree, const struct hash *leaves);

#endif
