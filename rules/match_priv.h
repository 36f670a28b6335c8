/*
 * match_priv.h - the matchers that settings, checks and rules are made of.
 *
 * Pure functions over spans; each takes time in proportion to its input times
 * the pattern's length at most.  What holds a NUL matches nothing.
 *
 * Globs: `?` is one byte but '/', `*` any run without '/', `**` any run.
 *
 * Image patterns: registry/repository[:tag][@digest], each part a glob.  A
 * pattern without tag and digest grants every tag and digest of that name.  One
 * with a tag does not fit a reference with a digest, since the engine then
 * takes what the digest says.  Short names are completed as Docker does:
 * `alpine` is docker.io/library/alpine; a name that begins with `*` is not.
 */
#ifndef RULES_MATCH_PRIV_H
#define RULES_MATCH_PRIV_H

#include "gate/base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define GLOB_MAX     256  /* bytes of a pattern */
#define GLOB_TEXT    4096 /* bytes of a text; longer ones do not match */
#define IMAGE_MAX    1024 /* bytes of an image reference */
#define PATH_MAX_LEN 4096

bool glob_match(struct span pattern, struct span text);

/* False where glob_match() says no only because pattern or text is too long for it. */
bool glob_can_tell(struct span pattern, struct span text);

/* Whether whatever inner matches is matched by outer as well; false when in doubt. */
bool glob_covers(struct span outer, struct span inner);

struct image_ref {
	struct span name, tag, digest; /* empty if there is none */
	char completed[IMAGE_MAX];     /* what name points into when it was completed */
};

/* Splits text, a reference or a pattern of references.  False if it is neither. */
bool image_parse(struct span text, struct image_ref *ret);

bool image_match(const struct image_ref *pattern, struct span name, struct span tag,
		 struct span digest);
bool image_covers(const struct image_ref *outer, const struct image_ref *inner);

/* Absolute, without empty, "." and ".." components; "/" is, "/a/" is not. */
bool path_is_clean(struct span path);

/* Whether path is root or lies below it, by components.  Both must be clean. */
bool path_within(struct span path, struct span root);

struct path_words {              /* what placeholders stand for; empty: not known */
	struct span name, owner; /* {identity.name}, {identity.owner} */
	struct span container_name, container_id; /* {identity.container.name}, ....id} */
};

/*
 * Replaces placeholders.  False if a value that is needed is empty, ".", "..",
 * or holds '/' or a control byte: then the pattern grants nothing.  room: of
 * out, with the NUL.
 */
bool path_fill(struct span pattern, const struct path_words *words, char *out, size_t room);

/* "512", "64m", "2GiB", "1.5g" is refused: whole numbers only.  False if it is no size. */
bool size_parse(struct span text, int64_t *ret_bytes);

/* "90s", "30m", "12h", "7d"; whole numbers only.  False if it is no time. */
bool duration_parse(struct span text, int64_t *ret_seconds);

/* --- match_net.c --- */

#define HOST_MAX 253 /* bytes of a host name */

/* A host name, or "*." before one. */
bool host_pattern_is_valid(struct span pattern);

/* Without regard to case, nor to a dot at the end; "*.a.b" is every name below a.b. */
bool host_match(struct span pattern, struct span name);

enum cidr_answer {
	CIDR_NO = 0, /* also for what is no address */
	CIDR_YES,
	CIDR_MALFORMED /* the network is none */
};

/* network: an address, or one with "/BITS".  ::ffff:1.2.3.4 is 1.2.3.4. */
enum cidr_answer cidr_contains(struct span network, struct span address);

#endif
