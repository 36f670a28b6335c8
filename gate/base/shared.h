/*
 * shared.h - memory that the gate's processes have in common: tables that are made before
 * they are forked, and outlive each of them.
 *
 * Whoever is forked has them all, and could write them all.  A process says with
 * shared_keep() which of them are its own; the others are out of its reach from then on, also for
 * whoever takes it over.
 */
#ifndef GATE_BASE_SHARED_H
#define GATE_BASE_SHARED_H

#include "gate/base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Zeroed.  fd: a file of at least so many bytes behind it, which has what it had; -1: none.
 * what: "the table of rates", for messages.  Never freed before the process ends.
 */
void *shared_create(size_t bytes, int fd, const char *what, struct err *err);

/*
 * A lock in such a table, for microseconds at a time; zeroed, nobody has it.  false: it was not to
 * be had for so many milliseconds, since whoever has it is not let run.  Who serves others
 * meanwhile waits for 0 of them, which are microseconds, and comes again.
 */
struct shared_lock {
	_Atomic int32_t pid; /* of who has it */
};

bool shared_lock(struct shared_lock *l, unsigned patience_ms) __attribute__((warn_unused_result));
void shared_unlock(struct shared_lock *l);

/* That process has ended: it has the lock no more, from now on.  Waits for nothing. */
void shared_lock_died(struct shared_lock *l, pid_t pid);

/* Unmaps all but these; NULL among them is passed over. */
void shared_keep(const void *const *keep, size_t count);

#endif
