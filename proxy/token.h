/*
 * token.h - bearer tokens: "Authorization: Bearer TOKEN".
 *
 * The configuration holds only their SHA-256: whoever reads it cannot use them.
 * That is enough since tokens are long and random (`sallyport token` makes them).
 * The header never crosses to an engine and is never on record.
 */
#ifndef PROXY_TOKEN_H
#define PROXY_TOKEN_H

#include "backends/backend.h"
#include "gate/base/hash.h"

#define TOKEN_LEN_MAX 512 /* bytes */

enum token_fault {
	TOKEN_FINE = 0, /* one was presented */
	TOKEN_NONE,     /* no Authorization header */
	TOKEN_ODD       /* another scheme, twice, empty or too long: it is refused, not ignored */
};

/* names of headers in any case, as they came */
enum token_fault token_presented(const struct pair *headers, size_t count, struct span *ret);

/* Takes the same time wherever they differ. */
bool token_matches(const struct hash *known, struct span token);

#endif
