/*
 * pack.h - a signed bundle of rules: files of profiles with who made, approved and
 * ordered them, in one file that only the holder of a key can make.
 *
 *	sallyport-rules 1\n
 *	MANIFEST\n              one line of JSON
 *	\n
 *	— NAME SIGNATURE\n      over the two lines (audit/signed.h)
 *	\n
 *	the files, one behind the other, as long as the manifest says
 *
 * The manifest: {"name","made","commit","author","approver","ticket","files":[{"name","bytes",
 * "sha256"}]}; nothing else may be in it, and nothing behind the last file.
 */
#ifndef GATE_PACK_H
#define GATE_PACK_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "rules/engine.h"

#define PACK_FILES_MAX 256
#define PACK_MAX       ((size_t)16 << 20) /* bytes in all */

struct pack_origin {
	const char *name, *made, *commit, *author, *approver, *ticket; /* "" where not said */
};

struct pack {
	struct pack_origin origin;
	struct span manifest; /* the line, without its end */
	struct span signer;   /* the name of the key */
	struct rule_source files[PACK_FILES_MAX];
	size_t file_count;
};

/* Whether a file's first bytes say that it is one. */
bool pack_is(struct span text);

/* secret: the key as text.  ERR_INPUT: it is no key, or a file has a name that no bundle holds. */
int pack_write(const struct pack_origin *origin, const struct rule_source *files, size_t count,
	       struct span secret, struct buf *out, struct err *err);

/*
 * Reads a whole file, and believes nothing of it but what one of the keys has signed.  What is in
 * *ret lives in text and in the arena.  ERR_INPUT says what is wrong.
 */
int pack_read(struct span text, const char *const *keys, struct arena *a, struct pack *ret,
	      struct err *err);

#endif
