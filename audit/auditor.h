/*
 * auditor.h - the process that writes the log.
 *
 * One writer: it gathers what the workers sent, writes it with one pwritev()
 * and one fdatasync(), and answers each worker.  Any write error seals the
 * log: it is never retried, and nothing that changes state is served until
 * the log has been opened anew.
 *
 * The supervisor gives it worker connections over the control socket (tag 'w'; 'm' for
 * that of the admin process, which sends records of its uses and nothing else;
 * one descriptor).  End of file there means: write gate_stop and end.
 */
#ifndef AUDIT_AUDITOR_H
#define AUDIT_AUDITOR_H

#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct auditor;
struct sink_conf;

/* The bit of a word of `log { erasable }` for struct auditor_conf; 0: it is none. */
unsigned erasable_word(const char *word);

/* An entry of the ledger of objects that are older than the gate. */
struct audit_adoption {
	const char *backend, *kind, *id, *name, *owner;
	struct span entry; /* as it stands there */
};

/* Which segments may be removed; the newest never is. */
enum retention_mode {
	RETENTION_FOREVER = 0, /* none */
	RETENTION_SIGNED,      /* what a signed checkpoint covers */
	RETENTION_EVIDENCE,    /* what is known outside (outside.c), and every sink has */
	RETENTION_MODE_COUNT
};

/* A segment is removed when it is older than this, or when all take more than this. */
struct retention {
	enum retention_mode mode;
	unsigned days;  /* 0: however old */
	uint64_t bytes; /* 0: however many */
};

struct auditor_conf {
	const char *dir;        /* must exist and be writable */
	const char *origin;     /* the log's name, e.g. "host/sallyport" */
	uint64_t segment_bytes; /* a new file is begun behind this size */
	unsigned flush_ms;      /* reads are on disk within this time (5) */
	unsigned claim_ms;      /* workers have this long to claim open decisions after a start */
	struct audit_state *state; /* state.h; NULL: nobody wants to know */
	const char *build;         /* version string, for gate_start */
	const char *keys;          /* folder of the signing key; NULL: dir */
	const char *anchor_file;   /* checkpoints are appended to it; NULL: none */
	bool anchor_syslog;
	const char *witness_file; /* where checkpoints that a witness signed are kept; NULL: none */
	const char *witness_key;  /* whose signatures count: NAME+ID+KEY */
	uint64_t warn_free_bytes; /* less room than this is an alarm; 0: never */
	uint64_t low_free_bytes;  /* with less only what stops or removes is taken; 0: never */
	uint64_t reserve_bytes;   /* kept for the last records; 0: none */
	struct retention retention;
	const struct sink_conf *sinks; /* how far each is, is looked at now and then (sink.h) */
	size_t sink_count;
	unsigned sinks_late_ms; /* one that gets nothing for so long is an alarm; 0: never */
	unsigned hung_ms; /* for who watches over it: without progress for so long it is ended */
	/* Called with each alarm, whether or not it can be written; must not wait. */
	void (*tell)(const char *text);
	unsigned erasable;      /* erasable_priv.h: which values are kept aside */
	bool unsafe_fs;         /* take any file system */
	bool accept_damage;     /* a log that cannot be gone on with is moved aside */
	unsigned checkpoint_ms; /* a checkpoint is signed this often; 0: at seals and stops only */
	unsigned checkpoint_records; /* ... or behind so many records */
	const struct audit_adoption
		*adoptions; /* written behind gate_start, before anybody is served */
	size_t adoption_count;
};

/* What auditor_run() returns. */
enum auditor_status {
	AUDITOR_STOPPED = 0, /* asked to; gate_stop is the last record */
	AUDITOR_FAILED = 1,  /* its loop could not go on */
	AUDITOR_SEALED = 3   /* the log could not be written: start a new auditor */
};

/*
 * Locks the directory, recovers a torn tail, opens the newest segment and writes
 * gate_start.  NULL: the directory is in use, the log is damaged (ERR_INPUT), or
 * the file system refuses.  Until auditor_close() the process ignores SIGTERM,
 * SIGINT, SIGHUP, SIGPIPE and SIGXFSZ.
 */
struct auditor *auditor_open(const struct auditor_conf *conf, struct err *err);

/*
 * Serves until the control socket ends.  Returns the process's exit status.  When
 * the log is sealed the workers are told, and it returns AUDITOR_SEALED at once.
 */
int auditor_run(struct auditor *a, int control_fd);

/* Why auditor_run() returned something else than AUDITOR_STOPPED; "" if it did not. */
const char *auditor_why(const struct auditor *a);

void auditor_close(struct auditor *a);

#endif
