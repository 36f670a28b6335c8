/*
 * tar_priv.h - the archive of a build or of a copy, read strictly and written anew.
 *
 * Readers of tar differ in long names, sparse files, numbers and what stands
 * behind the end.  So each entry is read, in the forms that clients write
 * (ustar, GNU long names, pax), and its head is written in one form; anything
 * else is refused, and extended attributes are dropped.
 *
 * Of a build users and groups become 0, as every client of the classic
 * builder has it.  One file is wanted: its text is kept.  It must come once, as a plain file,
 * and nothing in the archive may be able to put something else in its place:
 * no link or file at one of its parents, and no entry below a link.
 *
 * Of a copy users and groups stay.  Nothing is wanted; files that change who runs
 * them (setuid, setgid) and links that lead out of the archive are refused.
 *
 * A push reader: tar_feed() takes bytes as they come, in pieces of any size.
 */
#ifndef BACKENDS_DOCKER_TAR_PRIV_H
#define BACKENDS_DOCKER_TAR_PRIV_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define TAR_BLOCK       512
#define TAR_NAME_MAX    4096
#define TAR_META_MAX    65536        /* bytes of one pax header or long name */
#define TAR_WANTED_MAX  (1u << 20)   /* bytes of the wanted file */
#define TAR_ENTRIES_MAX 1000000      /* in one archive */
#define TAR_LINKS_MAX   65536        /* of them links */
#define TAR_BYTES_MAX   (8ull << 30) /* of the whole archive */

struct tar;

enum tar_fault {
	TAR_FINE = 0,
	TAR_MALFORMED, /* not a tar in a form that we read, or in two ways at once */
	TAR_ENTRY,     /* an entry that is refused */
	TAR_LARGE,     /* a cap was reached */
	TAR_MEMORY     /* the arena is spent */
};

/* Of a build.  wanted: a path that tar_clean() made.  NULL: the arena is spent. */
struct tar *tar_open(struct arena *a, const char *wanted);

/* Of a copy. */
struct tar *tar_open_copy(struct arena *a);

/* Appends what is to be sent of it to out.  -1: refused, for good; see tar_why(). */
int tar_feed(struct tar *t, struct span piece, struct buf *out);

/* No more comes.  Only now the end is written: what is cut short stays without one. */
int tar_end(struct tar *t, struct buf *out);

/* Whether the wanted file has come completely, and its text. */
bool tar_found(const struct tar *t);
struct span tar_wanted(const struct tar *t);

enum tar_fault tar_fault(const struct tar *t);
const char *tar_why(const struct tar *t);  /* a sentence for people */
const char *tar_name(const struct tar *t); /* the entry that it is about, or "" */

/*
 * "./a//b/" -> "a/b".  False: absolute, with "..", control bytes, or too long.
 * to has room for TAR_NAME_MAX + 1; "" stands for the folder itself.
 */
bool tar_clean(struct span name, char *to);

#endif
