/*
 * suppressed.h - what was refused above a rate, counted by all workers together.
 *
 * Of one caller's refusals in one class the first in a window is recorded whole; those that
 * follow in that window are counted here, and become one record: else whoever asks in vain
 * as fast as it can fills the log.  Whatever cannot be counted is recorded whole.
 *
 * One table in memory that processes share, made before they are forked, so that it
 * outlives each of them, and reloads; not the gate.  A slot has one 64-bit word, its state
 * and its count, which is moved by compare-and-swap: no lock, and exact whatever many workers do
 * at once and wherever one dies.  (Two that begin a window at the same moment record one whole
 * each.)  A sum stays until it is on disk; it has its id from the beginning, so that the auditor
 * knows one that is told twice.
 */
#ifndef PROXY_SUPPRESSED_H
#define PROXY_SUPPRESSED_H

#include "gate/base/err.h"
#include "rules/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct suppressed;

#define SUPPRESSED_SLOTS 1024 /* windows, and sums that are not on disk yet, at a time */

/*
 * A caller costs two records a window and class.  A second is short enough to see when
 * something was, and all that a death of the whole gate can lose.
 */
#define SUPPRESSED_WINDOW_NS UINT64_C(1000000000)

/* A sum is told again after this long without an answer: the log's client gives up sooner. */
#define SUPPRESSED_AGAIN_NS UINT64_C(5000000000)

/* Shared by all processes forked from now on; never freed before they end. */
struct suppressed *suppressed_create(struct err *err);

struct suppressed_time {
	uint64_t boot_ns, unix_ns;
};

#define SUPPRESSED_ID 40 /* bytes of an id, with the NUL */

/*
 * True: it is counted, ret_id is that of the record which will say so.  False: it is to be
 * recorded whole.
 */
bool suppressed_count(struct suppressed *t, const struct identity *who, const char *op_class,
		      const struct suppressed_time *now, char ret_id[SUPPRESSED_ID])
	__attribute__((warn_unused_result));

struct suppressed_ref {
	uint32_t slot;
	uint64_t word;
};

/* A sum that is to be recorded. */
struct suppressed_sum {
	struct suppressed_ref ref;
	char id[SUPPRESSED_ID]; /* of its record, whoever tells it */
	char identity[160], owner[160], profile[160], listener[160], op_class[32];
	uint64_t count, first_ns, last_ns; /* since 1970 */
};

/*
 * The next sum from slot *at on whose window is over, and that nobody is telling.  all: of any
 * window, and whoever is at it.  False: there is no more.
 */
bool suppressed_next(struct suppressed *t, uint64_t boot_ns, bool all, size_t *at,
		     struct suppressed_sum *ret);

/* It is on disk.  False: who told it as well was first to say so. */
bool suppressed_told(struct suppressed *t, const struct suppressed_ref *ref);

/* It could not be recorded: whoever comes next tells it. */
void suppressed_untold(struct suppressed *t, const struct suppressed_ref *ref);

/* A process has ended.  For the supervisor: waits for nothing. */
void suppressed_died(struct suppressed *t, pid_t pid);

#endif
