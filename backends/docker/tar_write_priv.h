/*
 * tar_write_priv.h - the one form in which entries of an archive are written.
 */
#ifndef BACKENDS_DOCKER_TAR_WRITE_PRIV_H
#define BACKENDS_DOCKER_TAR_WRITE_PRIV_H

#include "gate/base/buf.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct tar_entry {
	char type; /* '0' file, '1' hard link, '2' symbolic link, '5' folder */
	struct span name, link;
	unsigned mode;
	uint64_t uid, gid;
	uint64_t size;
	uint64_t mtime; /* seconds */
};

/*
 * extended: with a pax header even if the entry would do without.  The first
 * entry has one, so that the first bytes are ours: engines tell archives that
 * are compressed by them, and a file could be called "BZh".
 */
void tar_write_entry(struct buf *out, const struct tar_entry *e, bool extended);

/* What fills up the last block of size bytes. */
void tar_write_padding(struct buf *out, uint64_t size);

/* The two empty blocks. */
void tar_write_end(struct buf *out);

#endif
