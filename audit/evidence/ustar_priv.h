/*
 * ustar_priv.h - a tar file (ustar) that says nothing but names, sizes and bytes: the same files
 * give the same archive.  Each file's hash goes into a list as `sha256sum -c` reads it.
 */
#ifndef AUDIT_EVIDENCE_USTAR_PRIV_H
#define AUDIT_EVIDENCE_USTAR_PRIV_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "gate/base/span.h"

#include <stdint.h>

#define USTAR_NAME_MAX 100 /* bytes of a path below the folder */
#define USTAR_SUMS_MAX ((size_t)64 << 20)

struct ustar {
	int fd;
	const char *folder; /* in which everything is; at most 150 bytes */
	struct buf out, sums;
	uint64_t bytes; /* written in all */
	uint64_t left;  /* of the file at hand */
	struct hash_stream hash;
	char path[USTAR_NAME_MAX + 1];
};

void ustar_open(struct ustar *t, int fd, const char *folder);
void ustar_free(struct ustar *t); /* flushes nothing */

/* A file whose bytes are at hand. */
int ustar_add(struct ustar *t, const char *path, struct span text, struct err *err);

/* The first `size` bytes of an open file. */
int ustar_add_file(struct ustar *t, const char *path, int fd, uint64_t size, struct err *err);

/* The list of hashes, as the last file, and the archive's end. *ret: the list's own hash. */
int ustar_end(struct ustar *t, const char *sums, struct hash *ret, struct err *err);

#endif
