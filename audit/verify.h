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

#define VERIFY_KEY_MAX 256

struct verify_options {
	const struct verify_anchor *receipt; /* the log must hold this record */
	const char *from; /* checkpoints, one behind the other, that the log must have grown from */
	const char *key;  /* public key that must have signed last, or announced who did; or NULL */
	const char *witness; /* of whom one of `from` must have a cosignature, or NULL */
	/* Called now and then; NULL: not. */
	void (*progress)(void *arg, uint64_t records);
	void *progress_arg;
};

struct verify_report {
	enum verify_result result;
	uint64_t records, decisions, allowed, denied, outcomes, unknown_outcomes, reads;
	uint64_t open_decisions; /* allowed, and no outcome yet */
	uint64_t first_seq, last_seq;
	struct hash head;         /* hash of the last record */
	struct hash root;         /* of the tree of all records */
	uint64_t checkpoints;     /* records of this type */
	uint64_t signed_size;     /* records that the newest checkpoint covers */
	bool has_checkpoint;      /* the folder has a file checkpoint */
	uint64_t heads_fine;      /* checkpoints in files that the log agrees with */
	uint64_t heads_pruned;    /* ... that are older than what is kept */
	uint64_t witnessed;       /* records that the newest of the witness's covers; 0: none */
	uint64_t witnessed_s;     /* when it was, by the witness's clock */
	char key[VERIFY_KEY_MAX]; /* that signs at the end; "": nobody */
	uint64_t bad_seq;         /* the first record that is wrong */
	char bad_file[32];        /* where it is */
	uint64_t bad_offset;
	bool torn_tail;         /* the last line is incomplete (a running or killed gate) */
	char what[ERR_MSG_MAX]; /* what is wrong, or "" */
};

/* options may be NULL. */
void verify_log(const char *dir, const struct verify_options *options, struct verify_report *ret);

/*
 * Prints records as they stand, the last `count` and then, if follow, new ones
 * as they become durable.  Returns when not following, or on error.
 */
int log_tail(const char *dir, uint64_t count, bool follow, int out_fd, struct err *err);

#endif
