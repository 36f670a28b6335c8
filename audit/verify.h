/*
 * verify.h - checks a log from its files alone; needs no key and no process.
 */
#ifndef AUDIT_VERIFY_H
#define AUDIT_VERIFY_H

#include "gate/base/err.h"
#include "gate/base/hash.h"

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of `audit verify`. */
enum verify_result {
	VERIFY_FINE = 0,
	VERIFY_ALTERED = 1,
	VERIFY_CUT = 2, /* shorter than, or different from, a given anchor */
	VERIFY_GAP = 3, /* sequence numbers or segments are missing */
	VERIFY_UNREADABLE = 4
};

struct verify_anchor { /* from a Sallyport-Audit reply header */
	uint64_t seq;
	struct hash hash;
};

struct verify_report {
	enum verify_result result;
	uint64_t records, decisions, allowed, denied, outcomes, unknown_outcomes, reads;
	uint64_t open_decisions; /* allowed, and no outcome yet */
	uint64_t first_seq, last_seq;
	struct hash head;       /* hash of the last record */
	uint64_t bad_seq;       /* the first record that is wrong */
	bool torn_tail;         /* the last line is incomplete (a running or killed gate) */
	char what[ERR_MSG_MAX]; /* what is wrong, or "" */
};

/* anchor may be NULL. */
void verify_log(const char *dir, const struct verify_anchor *anchor, struct verify_report *ret);

/*
 * Prints records as they stand, the last `count` and then, if follow, new ones
 * as they become durable.  Returns when not following, or on error.
 */
int log_tail(const char *dir, uint64_t count, bool follow, int out_fd, struct err *err);

#endif
