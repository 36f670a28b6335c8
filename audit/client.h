/*
 * client.h - a worker's end of the audit log.
 *
 * The worker queues records; the auditor puts them on disk in groups and
 * answers.  A receipt is the proof that a record is durable: forwarding what
 * changes state takes one, and only this module can make one.
 *
 * Everything is non-blocking and belongs to the worker's loop: watch
 * audit_client_fd() for reading, and for writing while audit_client_waiting().
 * Call audit_client_flush() once a loop turn, and audit_client_tick() when
 * audit_client_deadline() has come (once a second will do, if reads are not held).
 *
 * The auditor may die.  Then every record that waits for a receipt is
 * answered with NULL, audit_client_up() is false, and outcomes that were not
 * acknowledged are kept (capped) and sent again after audit_client_attach().
 * Decisions are never sent again: their requests were refused.
 *
 * Every decision whose receipt was given out must be followed by one outcome.
 * Where a receipt came too late (NULL was answered, or audit_forget()), nothing
 * was forwarded, and the client itself tells the outcome "aborted".
 */
#ifndef AUDIT_CLIENT_H
#define AUDIT_CLIENT_H

#include "audit/record.h"
#include "gate/base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_client;

/* Proof of durability; made only by client.c. */
struct audit_receipt {
	const char *log; /* the log's origin */
	uint64_t seq;
	struct hash hash;
};

/* receipt is NULL when the record could not be made durable. */
typedef void audit_done_fn(void *arg, const struct audit_receipt *receipt);

/* NULL: no memory. */
struct audit_client *audit_client_create(void);
/* Calls no done function any more; audit_client_attach(c, -1) first does. */
void audit_client_destroy(struct audit_client *c);

/*
 * Takes fd (a stream socket to an auditor); replaces a lost one.  Records that
 * waited for a receipt from the one before are answered with NULL.  -1: none.
 */
void audit_client_attach(struct audit_client *c, int fd);

int audit_client_fd(const struct audit_client *c); /* -1: none */
bool audit_client_waiting(const struct audit_client *c);

/* True when the auditor is connected, has answered, and its log is not sealed. */
bool audit_client_up(const struct audit_client *c);

/* Reads answers and calls the done functions.  May find the auditor gone. */
void audit_client_read(struct audit_client *c);
void audit_client_flush(struct audit_client *c);

#define AUDIT_WAIT_MS 2000 /* a record that is not durable by then counts as lost */

/*
 * Answers with NULL what has waited AUDIT_WAIT_MS for its receipt, and sends
 * reads that were held long enough.  now_ms: clock_boot_ms().
 */
void audit_client_tick(struct audit_client *c, uint64_t now_ms);

/* When audit_client_tick() is due next (clock_boot_ms()); UINT64_MAX: not before something new. */
uint64_t audit_client_deadline(const struct audit_client *c);

/*
 * From now on reads may wait this long for company before they are sent: each
 * send wakes the auditor, which costs more than the record.  Whoever asks for
 * it must keep to audit_client_deadline().  0, the value at the start: no wait.
 */
void audit_client_hold_reads(struct audit_client *c, unsigned ms);

/*
 * Queues a record that must be durable before something happens; done is
 * called exactly once, later, never from within.  -1 (done is not called): the
 * log is not up, or the queue is full.
 */
int audit_require(struct audit_client *c, const struct record *r, audit_done_fn *done, void *arg);

/* Asked within a done function: was the record refused because there is too little room? */
bool audit_client_low(const struct audit_client *c);

/* done will not be called for this arg any more (its exchange is gone). */
void audit_forget(struct audit_client *c, const void *arg);

/*
 * Queues a record that waits for nobody: outcomes (kept until acknowledged)
 * and reads.  -1: it could not be queued; the caller counts it.
 */
int audit_tell(struct audit_client *c, const struct record *r);

/*
 * Records that audit_tell() could not queue since the start.  When the log is
 * back, the client tells it by itself how many (a log_alarm record); and so how many
 * records audit_require() refused, or answered with NULL, because there was no log.
 */
uint64_t audit_client_lost(const struct audit_client *c);

#endif
