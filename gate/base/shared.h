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

#include <stddef.h>

/*
 * Zeroed.  fd: a file of at least so many bytes behind it, which has what it had; -1: none.
 * what: "the table of rates", for messages.  Never freed before the process ends.
 */
void *shared_create(size_t bytes, int fd, const char *what, struct err *err);

/* Unmaps all but these; NULL among them is passed over. */
void shared_keep(const void *const *keep, size_t count);

#endif
