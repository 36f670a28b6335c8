/*
 * quotas.h - what was let pass of each owner's quota and does not show yet.
 *
 * What an owner has is what the service shows of him; that outlives every
 * process of the gate and knows of what ended by itself.  Between the moment at
 * which something is let pass and the one at which the service shows it lies
 * a time in which others ask, too.  So what is let pass is held in a table that all
 * workers share, by its id: what is held and shown is one thing, and counts once.
 *
 *	held      let pass; nothing was sent.  Ends with its worker.
 *	sent      the service may be doing it.  Of a dead worker's, or without
 *	          an answer, it is
 *	unsure    until the service shows that it was done, or cannot be done
 *	          any more, or QUOTA_UNSURE_NS have passed.  If the same was sent once
 *	          more meanwhile, what shows may be of that: then until it is gone, or the time
 *	settled   answered: whoever counts from now on is told by the service.  It is kept
 *	          for those who began to count before
 *
 * A count names the time at which it began.  What has been let pass since then counts
 * beside it; if that is what does not fit, the answer is QUOTA_AGAIN, and the
 * count is made anew.  So nothing is let pass above a quota, and nothing is
 * refused by a count that others have overtaken.
 *
 * The table is made before processes are forked and outlives each of them, and
 * reloads.  Looking and taking is done under one lock, for microseconds and without
 * waiting for anything else; a process that dies with it has it taken by quotas_died().
 * An entry's state is written last, so that it is never seen half made.
 */
#ifndef PROXY_QUOTAS_H
#define PROXY_QUOTAS_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "proxy/quota_use.h"
#include "rules/quota.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct quotas;

#define QUOTA_SLOTS     4096                         /* things that are held at once */
#define QUOTA_OWN_SLOTS 512                          /* of these, one owner's */
#define QUOTA_ASKS_MAX  16                           /* things one request makes */
#define QUOTA_THINGS    1024                         /* of one owner, shown and held together */
#define QUOTA_UNSURE_NS (UINT64_C(600) * 1000000000) /* longer than a service works at anything */
#define QUOTA_LOOK_MAX  16 /* unsure ones that are looked at in one count */

/* Shared by all processes forked from now on; never freed before they end. */
struct quotas *quotas_create(struct err *err);

/* Something that takes of a quota. */
struct quota_thing {
	struct hash id; /* quota_id() */
	bool runs;      /* it takes what it takes; else only if something of that id does */
	bool gone;      /* shown: it is no more */
	uint64_t since; /* shown: of its last start, hashed; 0: not known */
	int64_t takes[QUOTA_COUNT]; /* QUOTA_ENDLESS: without a limit */
};

/* A container's own id, as bytes; of other names the hash with their kind. */
struct hash quota_id(const char *kind, const char *id);

/* Their sum, which never overflows: with one that is endless it is endless. */
int64_t quota_plus(int64_t a, int64_t b);

/* Who is counted: an owner on one backend. */
uint64_t quota_key(const char *backend, const char *owner);

struct quota_count {
	uint64_t key;
	uint64_t since_ns; /* CLOCK_BOOTTIME when the count began */
	const struct quota_thing *shown;
	size_t shown_count;
	const struct quota_thing *asked;
	size_t asked_count;
	const int64_t *limits; /* as of profile_quota() */
	bool last;             /* no further count: QUOTA_AGAIN is none of the answers */
};

struct quota_sums {
	int64_t used[QUOTA_COUNT], asked[QUOTA_COUNT];
};

enum quota_answer {
	QUOTA_OVER = 0, /* it does not fit */
	QUOTA_FITS,
	QUOTA_AGAIN,  /* count once more */
	QUOTA_LOCKED, /* another process has the table: the same once more in a moment */
	QUOTA_BUSY    /* the table is full */
};

/* Adds up.  t may be NULL: nothing is held. */
enum quota_answer quotas_look(struct quotas *t, const struct quota_count *c, uint64_t now_ns,
			      struct quota_sums *ret);

/* What one request holds; zeroed memory holds nothing. */
struct quota_hold {
	uint32_t slot[QUOTA_ASKS_MAX];
	uint64_t serial[QUOTA_ASKS_MAX];
	size_t count;
};

/*
 * Looks, and if it fits holds what is asked for.  force: it is held though it does not
 * fit, since rules let that pass.
 */
enum quota_answer quotas_take(struct quotas *t, const struct quota_count *c, uint64_t now_ns,
			      bool force, struct quota_hold *ret)
	__attribute__((warn_unused_result));

void quotas_release(struct quotas *t, struct quota_hold *h);                 /* nothing was sent */
void quotas_sent(struct quotas *t, const struct quota_hold *h);              /* it is being sent */
void quotas_settle(struct quotas *t, struct quota_hold *h, uint64_t now_ns); /* answered */
void quotas_unsure(struct quotas *t, struct quota_hold *h, uint64_t now_ns); /* no answer */

/*
 * Ids of containers of which it is not known whether they were started; *ret_count of them.
 * False: another process has the table.
 */
bool quotas_doubts(struct quotas *t, uint64_t key, struct hash ret[QUOTA_LOOK_MAX],
		   size_t *ret_count) __attribute__((warn_unused_result));

/* What owners had when they were counted last; lives as long as the table. */
struct quota_uses *quotas_uses(struct quotas *t);

/* What is held now, for Prometheus. */
void quotas_write(struct quotas *t, struct buf *out);

/*
 * A process has ended: what it held is let go, what it sent is unsure.  For the
 * supervisor: waits for nothing, and trusts nothing that stands in the table.
 */
void quotas_died(struct quotas *t, pid_t pid, uint64_t now_ns);

#endif
