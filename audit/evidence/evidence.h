/*
 * evidence.h - one archive with which an auditor checks a period without this host.
 *
 * It holds the log's segments of the period, the newest checkpoint and its key, what ties the
 * two together, rules, a page a control with samples and their proofs, what cannot be
 * excluded, and a program in Python that checks all of it (verify.py).
 *
 * The same log, period, seed and files give the same bytes.  Memory does not grow with the log:
 * it is read line by line, and segments are copied piece by piece.
 */
#ifndef AUDIT_EVIDENCE_EVIDENCE_H
#define AUDIT_EVIDENCE_EVIDENCE_H

#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVIDENCE_FILES_MAX 1024 /* that are brought along */
#define EVIDENCE_SEED_MAX  128  /* bytes with the NUL */

/* A file that is brought along: rules, a review of access. */
struct evidence_file {
	const char *path; /* below the archive's folder: letters, digits and ._-/ */
	struct span text;
};

struct evidence_ask {
	const char *dir;       /* the log's folder */
	const char *framework; /* one that evidence_framework() knows */
	const char *seed; /* samples are chosen by it; NULL: the root of the newest checkpoint */
	uint64_t from_ns, to_ns;
	const char *anchor; /* a file of checkpoints that are kept elsewhere; NULL: none is known */
	bool syslog;        /* checkpoints are told to syslog, too */
	const struct evidence_file *files;
	size_t file_count;
	struct span rules; /* JSON: what the files of rules are; empty: there are none */
	int out_fd;
};

struct evidence_made {
	uint64_t records;  /* of the period */
	uint64_t segments; /* in the archive */
	uint64_t samples, bytes;
	char seed[EVIDENCE_SEED_MAX];
	char sums[HASH_HEX_LEN +
		  1]; /* the hash of SHA256SUMS, which names each file with its own */
};

enum evidence_answer {
	EVIDENCE_TROUBLE = 0, /* *err says what; what was written is no archive */
	EVIDENCE_MADE,
	EVIDENCE_EMPTY, /* there is no record in the period; nothing was written, *err says more */
	EVIDENCE_NOT_WHOLE /* the log was altered or cut; nothing was written, *err says where */
};

enum evidence_answer evidence_make(const struct evidence_ask *ask, struct evidence_made *ret,
				   struct err *err);

/* -1: no framework is called so; *err names the nearest. */
int evidence_framework(const char *name, struct err *err);

/* The text of verify.py. */
struct span evidence_verifier(void);

#endif
