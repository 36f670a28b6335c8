/*
 * history_priv.h - the tree as it was: from what the segments and tiles on disk say.
 *
 * The hashes are taken as the lines say them; who needs to know that they are
 * right compares the root with one that is known.
 */
#ifndef AUDIT_HISTORY_PRIV_H
#define AUDIT_HISTORY_PRIV_H

#include "audit/note_priv.h"
#include "audit/segment_priv.h"
#include "audit/tile_priv.h"
#include "gate/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The tree of all records before a segment, as its first line says. */
int history_edge(int dir_fd, uint64_t first, struct tree *ret, struct err *err);

/* When a segment was begun, in seconds since 1970: all records before it are older. */
int history_begun(int dir_fd, uint64_t first, int64_t *ret, struct err *err);

/* Adds the records of a segment that are numbered below `until`; writes tiles. */
int history_add_segment(int dir_fd, uint64_t first, uint64_t until, struct tiles *tiles,
			struct err *err);

/* The tree of the first `size` records.  -1: they are not all there (ERR_INPUT), or an error. */
int history_tree(int dir_fd, const struct segments *all, uint64_t size, struct tree *ret,
		 struct err *err);

/* The hashes of records from..until; ret has room for them.  False: they are not all there. */
bool history_leaves(int dir_fd, const struct segments *all, uint64_t from, uint64_t until,
		    struct hash *ret);

/*
 * The key that signs at the end of a segment, as its lines say: "" if none.  It
 * stands in a log_open, or in a key_rotate behind it.
 */
int history_key(int dir_fd, uint64_t first, char ret[NOTE_VKEY_MAX], struct err *err);

/* The segment that holds this record, or would; false if it is before all of them. */
bool history_find(const struct segments *all, uint64_t seq, size_t *ret);

#endif
