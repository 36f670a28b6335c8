/*
 * bundle.h - configuration and rules, read once, in one sealed piece of memory.
 *
 * The files hold Lua, so they are read by children without privileges: each
 * reads its files first, then gives everything up, and only then runs Lua.  What
 * they found out comes back in a memory file that nobody can change any more;
 * its hash names the generation.  Whoever works with the bundle, supervisor and
 * workers alike, works from these bytes.
 *
 *	"sallyport-bundle 1\n", then pieces: name length (32 bit), text length (64 bit),
 *	name, text.  The first piece is the configuration's tree as JSON, under the
 *	file's path; the others are files of profiles, and, under their absolute paths,
 *	what else the configuration names (config.h: files).  One without a name holds the
 *	names of the profiles, a line each; that of the name BUNDLE_ORIGIN says which signed
 *	bundles the files of profiles are from.
 *
 * What the configuration names is read by a child of its own, in which no Lua runs.  What callers'
 *TLS needs is in bundles that are served, not in those that other commands make: whoever may read
 *the configuration need not be able to read the keys.  That child also loads it once to find out
 *whether it fits.
 */
#ifndef GATE_BUNDLE_H
#define GATE_BUNDLE_H

#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "gate/base/span.h"
#include "gate/config.h"

#define BUNDLE_CONFIG_MAX  ((size_t)1 << 20)   /* bytes of the configuration file */
#define BUNDLE_SOURCE_MAX  ((size_t)256 << 10) /* bytes of one file of profiles */
#define BUNDLE_SOURCES_MAX 256
#define BUNDLE_FILE_MAX    ((size_t)256 << 10) /* bytes of a key, or a file of certificates */
#define BUNDLE_ORIGIN      "=origin"
#define BUNDLE_MAX         ((size_t)16 << 20) /* bytes in all */

struct bundle {
	int fd;           /* sealed; -1: none */
	struct span text; /* its content, mapped */
	char generation[HASH_HEX_LEN + 1];
};

/*
 * Reads the configuration and all that it names.  ERR_CONFIG says what is wrong
 * with which line of which file; profiles are loaded once to find out, and every
 * profile that the configuration names is known to exist.
 */
int bundle_read(const char *config_path, struct bundle *ret, struct err *err);
/* Likewise, with what callers' TLS needs; ERR_CONFIG as well if that is not right. */
int bundle_read_to_serve(const char *config_path, struct bundle *ret, struct err *err);
void bundle_close(struct bundle *b);

/* In a process that has what it needs of it: nothing of the text, of keys least of all, can be
 * looked at any more. */
void bundle_unmap(struct bundle *b);

/*
 * The configuration with rules and generation.  It lives in the arena and in the
 * bundle.  What the bytes say is checked again: their maker ran Lua.
 */
int bundle_config(const struct bundle *b, struct arena *a, struct config *ret, struct err *err);

/* Seals and maps a memory file, and takes it. */
int bundle_seal(int fd, struct bundle *ret, struct err *err);

/*
 * Takes a descriptor that another process sent: nobody may be able to change its
 * bytes any more.  On failure it is closed.
 */
int bundle_take(int fd, struct bundle *ret, struct err *err);

/* The pieces, written and read. */
void bundle_begin(struct buf *out);
void bundle_put(struct buf *out, struct span name, struct span text);
bool bundle_start(struct span *rest);
bool bundle_next(struct span *rest, struct span *ret_name, struct span *ret_text);

#endif
