/*
 * pairing_priv.h - the rule that joins decisions and outcomes.
 *
 * Each allowed decision has exactly one outcome or outcome_unknown behind it.
 * The auditor keeps to it when it writes, `audit verify` checks it.
 */
#ifndef AUDIT_PAIRING_PRIV_H
#define AUDIT_PAIRING_PRIV_H

#include "audit/open_set_priv.h"
#include "audit/record_priv.h"

enum pairing {
	PAIRING_WRONG = 0, /* an outcome of nothing that is open, an id twice, no id */
	PAIRING_NOTHING,   /* a record that takes no part in it */
	PAIRING_OPENED,
	PAIRING_CLOSED
};

/* Changes open as the record says; on PAIRING_WRONG it stays as it was. */
enum pairing pairing_apply(struct open_set *open, const struct record_peek *peek, uint64_t seq);

#endif
