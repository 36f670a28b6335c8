/*
 * index.h - a log's index: an SQLite file by which records are found.
 *
 * It is derived: made from the log, at any time again.  It remembers the log's
 * name and the number and hash of the last record it knows; where the log does not
 * hold that record it is made anew, and so is one that is no index, is damaged, or
 * says of a record what its line does not.  What is found is read from the log
 * itself, line by line with its hash.  `audit verify` never looks at it.
 *
 * One process may read it while another brings it up to date.
 */
#ifndef AUDIT_INDEX_H
#define AUDIT_INDEX_H

#include "audit/fields.h"
#include "gate/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_index;

/*
 * Opens the index of the log in dir and brings it up to date.  file: where it is,
 * or NULL: beside the log if that folder is this user's, else in the user's cache.
 */
struct log_index *log_index_open(const char *dir, const char *file, struct err *err);
void log_index_close(struct log_index *ix);

const char *log_index_file(const struct log_index *ix);
bool log_index_was_made(const struct log_index *ix); /* anew, by this call of open */

/* --- query.c --- */

/* What is looked for; NULL and 0 ask for nothing.  All that is given must be met. */
struct log_query {
	const char *identity, *owner, *op, *verdict, *reason, *rule, *profile, *type;
	const char *object;          /* a name or id; 12 or more hexadecimal digits begin one */
	const char *text;            /* words; each must be there; one that ends in * begins one */
	const char *id;              /* of a decision, or of its outcome */
	uint64_t since_ns, until_ns; /* UTC since 1970; until is not part of it */
	uint64_t limit;              /* the newest so many */
};

/* A record, and where it is a decision with an outcome, that one. */
struct log_hit {
	struct span line, outcome_line; /* as they stand in the log; empty: none */
	struct fields fields, outcome;
};

/* Anything but 0 ends it. */
typedef int log_hit_fn(void *arg, const struct log_hit *hit);

/*
 * Calls fn for each hit in the order of the log.  Checkpoints, and what opens and
 * seals segments, are left out unless type, text or id ask for them.  Returns what
 * fn returned last, or -1 with *err.
 */
int log_index_query(struct log_index *ix, const struct log_query *q, log_hit_fn *fn, void *arg,
		    struct err *err);

#endif
