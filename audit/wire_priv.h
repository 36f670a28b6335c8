/*
 * wire_priv.h - what a worker and the auditor say to each other.
 *
 * Frames (gate/base/frame.h) that begin with one of the structs below, in host
 * byte order: both ends are the same program on the same machine.
 *
 *	worker                             auditor
 *	HELLO, CLAIM*, outcomes again  →
 *	                               ←   UP
 *	RECORD (a decision)            →
 *	                               ←   RECEIPT, when it is on disk, or REFUSED
 *	RECORD (its outcome)           →
 *	                               ←   ACK: all outcomes up to this ticket are on disk
 *	RECORD (a read)                →
 *	                               ←   SEALED: no record will be written any more
 *
 * HELLO is the first frame of a connection.  A CLAIM names allowed decisions
 * of earlier connections whose outcome this worker will still tell.  Tickets
 * are the worker's: numbers that rise by one, of their own for RECEIPTs and for
 * ACKs, and that go on over a change of the auditor.
 *
 * An outcome for a decision that has one already (or that another worker
 * holds) is not written, but acknowledged: so an outcome that is sent again
 * because its ACK was lost does not come twice in the log.
 */
#ifndef AUDIT_WIRE_PRIV_H
#define AUDIT_WIRE_PRIV_H

#include "audit/line_priv.h"
#include "audit/open_set_priv.h"
#include "gate/base/frame.h"
#include "gate/base/hash.h"

#include <stdint.h>

#define WIRE_VERSION 1

enum wire_kind {
	WIRE_NONE = 0,
	/* from the worker */
	WIRE_HELLO,  /* ticket: WIRE_VERSION */
	WIRE_CLAIM,  /* followed by struct decision_id, as many as fit */
	WIRE_RECORD, /* followed by the record's members */
	/* from the auditor */
	WIRE_UP,      /* ticket: epoch; followed by the log's origin */
	WIRE_RECEIPT, /* struct wire_receipt */
	WIRE_REFUSED, /* ticket: of the record that will never be durable */
	WIRE_ACK,     /* ticket: of the newest outcome that is done with */
	WIRE_SEALED
};

enum wire_flag {
	WIRE_RECEIPT_WANTED = 1, /* must be durable before something happens */
	WIRE_OUTCOME = 2,        /* kept by the worker until acknowledged */
	WIRE_READ = 4,           /* nobody waits for it */
	WIRE_LOW = 8             /* of REFUSED: there is too little room for it */
};

struct wire_head {
	uint32_t kind;
	uint32_t flags; /* WIRE_RECORD: exactly one of enum wire_flag; WIRE_REFUSED: WIRE_LOW or
			   0; else 0 */
	uint64_t ticket;
};

struct wire_receipt {
	struct wire_head head;
	uint64_t seq;
	struct hash hash;
};

#define WIRE_CLAIMS_MAX 4096 /* ids in one frame */

_Static_assert(WIRE_CLAIMS_MAX * sizeof(struct decision_id) + sizeof(struct wire_head) <= FRAME_MAX,
	       "a frame of claims fits");

static inline bool wire_put(struct frame_conn *c, struct wire_head head, struct span body)
{
	return frame_put(c, (struct span){(const char *)&head, sizeof(head)}, body);
}

/* Cuts the head off a frame; false if it is too short. */
bool wire_head(struct span *frame, struct wire_head *ret);

/*
 * Like frame_flush(), but an end that cannot be written to is not closed: what
 * the peer sent before it died is still to be read.  False: it cannot be
 * written to; what waited is dropped.
 */
bool wire_flush(struct frame_conn *c);

#endif
