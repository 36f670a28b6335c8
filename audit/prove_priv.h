/*
 * prove_priv.h - many proofs against one checkpoint.
 *
 * A prover holds the checkpoint that was the newest when it was opened: what the log
 * grows by meanwhile changes nothing.
 */
#ifndef AUDIT_PROVE_PRIV_H
#define AUDIT_PROVE_PRIV_H

#include "audit/note_priv.h"

struct prover;

/* NULL: there is no checkpoint, or the log is not that of it. */
struct prover *prover_open(const char *dir, struct err *err);
void prover_close(struct prover *p); /* NULL is allowed */

const struct checkpoint *prover_head(const struct prover *p);
struct span prover_note(const struct prover *p);

/* Append what log_prove() and log_prove_growth() write (prove.h). */
int prover_inclusion(struct prover *p, uint64_t seq, struct buf *out, struct err *err);
int prover_growth(struct prover *p, uint64_t old, struct buf *out, struct err *err);

#endif
