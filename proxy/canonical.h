/*
 * canonical.h - one decode, one meaning, or a refusal.
 *
 * Turns what the HTTP library saw of a request's head into `struct canonical`.
 * A change here needs a second reader and a test row for each form.
 */
#ifndef PROXY_CANONICAL_H
#define PROXY_CANONICAL_H

#include "backends/backend.h"
#include "gate/base/arena.h"
#include "gate/base/span.h"
#include "rules/operation.h"

#define CANONICAL_HEADERS_MAX 64
#define CANONICAL_QUERY_MAX   64

struct raw_head {
	struct span method;
	struct span target; /* as on the request line */
	const struct pair *headers;
	size_t header_count;
	bool http10; /* knows neither chunks nor upgrades */
};

/*
 * 0 and *ret filled (strings in the arena, body left empty), or -1 and *ret_why:
 * reasons malformed, framing, header, method, path, query, version, upgrade, no_memory.
 */
int canonical_read(struct arena *a, const struct raw_head *raw, struct canonical *ret,
		   struct violation *ret_why);

/*
 * Percent-decodes once into the arena.  plus: '+' is a space (queries).
 * *ret_slash, if not NULL, tells of an encoded slash.  -1: a bad escape, or memory.
 */
int canonical_decode(struct arena *a, struct span s, bool plus, struct span *ret, bool *ret_slash);

/* The first header of that name (lower case), or NULL. */
const struct pair *canonical_header(const struct canonical *req, const char *name);

#endif
