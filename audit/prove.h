/*
 * prove.h - what an outsider can check without the log: proofs in C2SP's form.
 *
 * Hashes come from the tiles, and from the records where there is no full tile.
 * A proof is given only if it leads to the root of the newest checkpoint.
 */
#ifndef AUDIT_PROVE_H
#define AUDIT_PROVE_H

#include "gate/base/buf.h"
#include "gate/base/err.h"

#include <stdint.h>

#define PROOF_MAX 8192 /* bytes; a buf of this size is enough */

/* The newest signed checkpoint (a signed note). */
int log_checkpoint(const char *dir, struct buf *out, struct err *err);

/* The public key that signs. */
int log_key(const char *dir, struct buf *out, struct err *err);

/* A c2sp.org/tlog-proof that record seq is in the newest checkpoint's tree. */
int log_prove(const char *dir, uint64_t seq, struct buf *out, struct err *err);

/*
 * That the newest checkpoint's tree has grown from one of `old` records: the body
 * of a C2SP witness's add-checkpoint ("old N", hashes, the checkpoint).
 */
int log_prove_growth(const char *dir, uint64_t old, struct buf *out, struct err *err);

#endif
