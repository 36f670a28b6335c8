/*
 * witness.h - has somebody else sign that he saw the log: a C2SP witness (tlog-witness).
 *
 * It gets the newest checkpoint and the proof that the log has grown from what it saw
 * last, and answers with a cosignature.  Checkpoints with it are appended to a file, which
 * `audit verify --from FILE --witness KEY` takes.  A log that was rolled back or written
 * anew gets none.
 */
#ifndef AUDIT_WITNESS_H
#define AUDIT_WITNESS_H

#include "audit/sink.h"
#include "gate/base/hash.h"

struct witness_conf {
	struct sink_conf at; /* host, port, path, ca */
	const char *key;     /* "NAME+ID+KEY", of algorithm 4 */
	const char *file;
	unsigned limit_ms; /* for all of one asking, however slowly it answers; 0: 30 s */
};

bool witness_key_ok(const char *key);

struct witness_seen {
	uint64_t size;   /* records that are cosigned */
	uint64_t time_s; /* when, by the witness's clock */
	bool again;      /* they were before, so nobody was asked */
};

/* ERR_INPUT: this log is not the one that the witness saw; ERR_UPSTREAM: it has not signed. */
int witness_ask(const char *dir, const struct witness_conf *conf, const struct sink_dialer *dialer,
		struct witness_seen *ret, struct err *err);

/* The newest that is kept in the file and cosigned, of the log of this name. */
struct witness_kept {
	uint64_t size; /* 0: there is none */
	struct hash root;
};

/* -1: the file cannot be read.  Whose it is does not matter: the signature does. */
int witness_kept(const struct witness_conf *conf, const char *origin, struct witness_kept *ret,
		 struct err *err);

#endif
