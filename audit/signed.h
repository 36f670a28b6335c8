/*
 * signed.h - texts with Ed25519 signatures, as C2SP's signed-note has them: what the log's
 * checkpoints are, for other texts that must come from somebody.
 *
 *	TEXT\n\n— NAME SIGNATURE\n
 *
 * Keys are written as Go's golang.org/x/mod/sumdb/note writes them: NAME+ID+KEY, and
 * PRIVATE+KEY+NAME+ID+KEY for the secret half.  Any thread; signed_init() once before.
 */
#ifndef AUDIT_SIGNED_H
#define AUDIT_SIGNED_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>

#define SIGNED_KEY_MAX 384 /* bytes of either half as text, with the NUL */

int signed_init(struct err *err);

/* A new key.  ERR_INPUT: the name is empty, too long, or holds '+' or white space. */
int signed_key_make(const char *name, char secret[SIGNED_KEY_MAX], char key[SIGNED_KEY_MAX],
		    struct err *err);

bool signed_key_is_valid(struct span key);

/* Appends the text, which ends with a newline, with its signature.  ERR_INPUT: that is no secret
 * key. */
int signed_write(struct span secret, struct span text, struct buf *out, struct err *err);

/*
 * Cuts a signed text off the front of *rest.  It must be signed by one of the keys; *ret_name is
 * the name of that one, in its key's text.  ERR_INPUT says what is wrong.
 */
int signed_read(struct span *rest, const char *const *keys, struct span *ret_text,
		struct span *ret_name, struct err *err);

#endif
