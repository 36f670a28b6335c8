/*
 * sink.h - the log, read by itself and brought elsewhere: `audit ship`.
 *
 * One process a sink, beside the gate and no part of it: it reads the log's files,
 * holds each record against the one before, and hands batches over in their order.
 * What a sink has acknowledged is its position (number and hash of a record); it goes
 * on there after any break.  A record is shipped only when it is on disk: what a power
 * cut could still take back has never been told to anybody.
 *
 * postgres keeps the position with the records, in one transaction: no gap and nothing
 * twice.  The others have a state file that is written after the acknowledgement: at
 * least once, and the number tells what comes twice.
 *
 * A sink can be narrowed to some records (only).  Its position goes on behind all of them, so
 * it says nothing of what the sink has: such a sink is no evidence.
 *
 * A log that was altered, cut, rolled back or exchanged is not shipped any further.
 */
#ifndef AUDIT_SINK_H
#define AUDIT_SINK_H

#include "audit/export.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "gate/base/span.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum sink_kind { SINK_NONE = 0, SINK_POSTGRES, SINK_SYSLOG, SINK_JOURNALD, SINK_HTTPS };

/* "postgres" and so on; SINK_NONE: there is no such kind. */
enum sink_kind sink_kind_find(const char *name);

/* What is not given is "". */
struct sink_conf {
	const char *name;
	enum sink_kind kind;
	const char *connection; /* postgres: what libpq takes */
	const char *socket;     /* syslog over a unix socket, journald: its path */
	const char *host;       /* syslog over TLS, https */
	unsigned port;
	const char *path;                         /* https: from the first slash on */
	const char *ca, *cert, *key, *token_file; /* paths */
	const char *state;                        /* the folder of state files */
	enum export_format format;                /* EXPORT_NONE: the record as it stands */
	/*
	 * sink_only_find() of each word; 0: all records.  With `alarms` also what the log
	 * itself cannot say any more: see ship_watch.c.
	 */
	unsigned only;
};

/* What a sink can be narrowed to (sink_only.def).  0: there is no such word. */
unsigned sink_only_find(const char *name);
bool sink_only_at(size_t i, const char **ret_name,
		  const char **ret_doc); /* false behind the last */

/* A TLS connection; who ships gives it, since TLS is not the log's affair. */
struct sink_dialer {
	/* Connects and shakes hands; NULL with *err. */
	void *(*open)(const struct sink_conf *conf, struct err *err);
	/* All of it, or -1. */
	int (*write)(void *link, struct span bytes, struct err *err);
	/* Some of what comes: its length, 0 at the end, -1. */
	long (*read)(void *link, char *out, size_t size, struct err *err);
	/* Waits until the other side's kernel has taken all that was written. */
	int (*drain)(void *link, struct err *err);
	void (*close)(void *link);
};

/* Exit statuses of `audit ship`. */
enum ship_result {
	SHIP_FINE = 0,   /* once: the sink has all; else: it was asked to end */
	SHIP_BEHIND = 1, /* once: the sink did not take all */
	SHIP_CANNOT = 2, /* nothing was tried: configuration, files */
	SHIP_GAP = 3,    /* records were removed from the log before they were shipped */
	SHIP_DAMAGED = 4 /* altered, cut, rolled back, or not the log that was shipped before */
};

struct ship_options {
	bool once;       /* until the log's end, and each thing tried once */
	bool accept_gap; /* go on behind records that are lost */
	const struct sink_dialer *dialer;
	const volatile sig_atomic_t *stop;
	void (*tell)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};

enum ship_result ship(const char *dir, const struct sink_conf *conf,
		      const struct ship_options *options);

/* How far a sink is, by its state file and the log's own; for `doctor`. */
struct sink_lag {
	bool known;          /* it has shipped something */
	uint64_t seq;        /* the last that it acknowledged */
	uint64_t lost;       /* records behind it that are gone already */
	bool needs_oldest;   /* there are several segments, and it still needs the oldest */
	uint64_t log_bytes;  /* of all segments */
	int64_t oldest_days; /* age of the log's first record */
};

int sink_lag(const char *dir, const struct sink_conf *conf, struct sink_lag *ret, struct err *err);

/* The tables and views of the postgres sink, as SQL. */
struct span sink_postgres_schema(void);

#endif
