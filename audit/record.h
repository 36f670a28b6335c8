/*
 * record.h - one line of the audit log, as its maker fills it.
 *
 * The maker (a worker) knows what happened; the auditor adds log, seq, ep, t,
 * mono, prev and h.  Field names and their order on the line are rows of
 * record.def.  Strings may hold anything: they are escaped, so that a record
 * is always exactly one line.  NULL and "" leave a member out.
 *
 * Secrets must be gone before they come here: redaction precedes hashing.
 */
#ifndef AUDIT_RECORD_H
#define AUDIT_RECORD_H

#include "gate/base/buf.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORD_LINE_MAX                                                                            \
	65535 /* bytes with the closing brace, without the newline (C2SP bundle limit) */

enum record_type {
	RECORD_NONE = 0,
	RECORD_GATE_START,
	RECORD_GATE_STOP,
	RECORD_GATE_RECOVER, /* a torn tail was trimmed */
	RECORD_LOG_OPEN,     /* first of a segment */
	RECORD_LOG_SEAL,     /* last of a segment */
	RECORD_LOG_ALARM,    /* the log could not be written, and until when */
	RECORD_POLICY_LOAD,
	RECORD_POLICY_REJECT,
	RECORD_DECISION,        /* durable before anything is forwarded */
	RECORD_OUTCOME,         /* of = the decision's id */
	RECORD_OUTCOME_UNKNOWN, /* nobody is left who knows */
	RECORD_READ,            /* decision and outcome of a read in one */
	RECORD_MALFORMED,       /* what was no request */
	RECORD_WORKER_LOST,
	RECORD_CHECKPOINT,   /* the signed tree of all records before it */
	RECORD_KEY_ROTATE,   /* the key that signs from here on */
	RECORD_CLOCK_STEP,   /* the clock was set */
	RECORD_LOG_READ,     /* somebody read the log by our commands */
	RECORD_LOG_PRUNE,    /* old segments were removed */
	RECORD_LOG_ERASE,    /* values that records commit to were erased */
	RECORD_ADOPT,        /* whose an object is that is older than the gate */
	RECORD_REJUDGED,     /* what runs and would not be started now; or how many were judged */
	RECORD_ADMIN,        /* a use of the admin socket */
	RECORD_OBSERVED,     /* happened in an engine, and no decision explains it */
	RECORD_OBSERVED_GAP, /* what happened meanwhile may not have been seen */
	RECORD_APPROVAL,     /* a question to an operator ended without letting a request pass */
	RECORD_OBSERVED_SUM, /* how much was seen, and explained */
	RECORD_SUPPRESSED,   /* how many refusals above a rate were only counted */
	RECORD_SANDBOX,      /* the sandbox API refused, made, extended or ended something */
	RECORD_TYPE_COUNT
};

const char *record_type_name(enum record_type t);

struct record {
	enum record_type type;
	const char *id; /* UUIDv7 */
	const char *of; /* outcome: id of the decision */

	/* who */
	const char *surface; /* backend kind: "docker" */
	const char *backend, *listener, *identity, *owner;
	const char *auth_method;                /* "peercred", "token"; NULL: none */
	const char *address;                    /* of a TCP peer */
	const char *cert_subject, *cert_sha256; /* of a TLS client certificate */
	bool has_cred;
	uint32_t uid, gid;
	int32_t pid;
	struct span container; /* JSON text: the container that it runs in; empty leaves it out */

	/* what */
	const char *op, *op_class;
	const char *method, *path; /* canonical path; "" for malformed */
	const char *object_kind, *object_id, *object_name;
	uint64_t body_bytes;
	const char *body_sha256; /* of an inspected body as the caller sent it */
	const char *sent_sha256; /* of the body that is forwarded */

	/* judged how */
	const char *verdict, *would, *mode, *reason, *rule;
	const char *approval_id; /* of the question to an operator; NULL or "": there is none */
	const char *approval_by; /* who has answered it: "uid 1000, uid 1001" */
	const char *override_mode, *override_ticket; /* an operator's word above the profile */
	const char *judged; /* the profile's own answer; "" if it was not asked */
	const char *profile, *profile_sha256;
	/* JSON texts; empty leaves them out */
	struct span facts, violations, changes, warnings, exceptions;
	struct span
		masked; /* ... places from which something was left out, since it may be secret */
	uint32_t eval_us;

	/* came out how */
	const char *status; /* ok, fail, aborted, denied, unknown */
	int http;
	const char *err;
	uint64_t bytes_in, bytes_out; /* caller to engine, engine to caller */
	uint64_t dur_ms;
	const char *created;     /* id of what was made */
	struct span attestation; /* JSON text; empty leaves it out */
	bool client_gone;

	/* log and process records */
	const char *text;
	uint64_t count;
	uint64_t at, bytes; /* gate_recover: where the torn tail began, how long it was */
	const char *sha256; /* gate_recover: of the torn tail */
	const char *file;   /* gate_recover: where it was kept; log_open: the segment before */
	const char *head;   /* log_open: the last hash of the segment before */
	uint64_t open;      /* log_open: allowed decisions without an outcome at this time */
	uint64_t oldest;    /* log_open: the lowest sequence number among these */

	/* the tree */
	struct span edge;     /* log_open: the right edge of the tree before it, as JSON */
	uint64_t size;        /* checkpoint, log_prune: leaves of the tree that root is of */
	const char *root;     /* checkpoint, log_seal, log_prune */
	const char *key;      /* checkpoint: the key's id; key_rotate: the whole public key */
	const char *sig;      /* checkpoint: of its note; key_rotate: by the key before */
	const char *proof;    /* key_rotate: by the new key */
	uint64_t first;       /* log_prune: the lowest sequence number that was removed */
	const char *anchor;   /* log_prune: the checkpoint outside that covers it */
	const char *exported; /* log_prune: how far each sink was: "db 1200, siem 1207" */

	/* observed_sum: of what happened in an engine since the sum before */
	uint64_t seen, by_decision, by_engine, unexplained, garbage;

	const char *first_t, *last_t; /* suppressed: times, as in `t`, of the first and the last */

	/* alarms and clocks */
	const char *cause;         /* log_alarm: one word */
	const char *began, *ended; /* times, as in `t` */
	uint64_t refused;          /* log_alarm that ended: requests that got no record */
	uint64_t free_bytes;       /* log_alarm: of the file system */
	const char *from, *to;     /* clock_step: the time before and after */
	const char *tsync;         /* gate_start, clock_step: synced or unsynced */
	bool erasable;             /* the auditor alone says so: it holds commitments */
};

/*
 * Appends the record's members, from "type" on, without braces:
 * `"type":"decision","id":"..."`.  A record that would pass RECORD_LINE_MAX
 * loses facts, then violations, then the other JSON texts and the ends of long
 * strings; it says "trunc":true and has the hash of what was left out.
 *
 * Takes room for the longest record at once, so out should be kept and used
 * again.  If out has too little room even for the cut record it is spent.
 */
void record_write(struct buf *out, const struct record *r);

#endif
