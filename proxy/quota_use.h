/*
 * quota_use.h - what owners have of their quotas, as it was counted last: for people.
 *
 * Nothing is judged by it: each judgement counts anew (quotas.h).  It is written whenever a
 * request of the owner's is counted, and when one that was let pass was answered; what ended
 * by itself shows with the next count.  One table that all workers share; where it is full
 * the owner who was not counted for longest makes room.  Rows are read without waiting, and
 * what is read may have been written by anybody who could write it: texts end in their fields.
 */
#ifndef PROXY_QUOTA_USE_H
#define PROXY_QUOTA_USE_H

#include "gate/base/buf.h"
#include "gate/base/shared.h"
#include "proxy/conf.h"
#include "rules/quota.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOTA_USES      512 /* owners, each under one profile on one backend */
#define QUOTA_USE_SHOWN 64  /* the fullest of them */
#define QUOTA_USE_NAME  128 /* an owner, or a profile, with a longer name is not shown */

struct quota_use {
	uint32_t backend; /* index into proxy_conf.backends */
	unsigned known;   /* bits 1 << enum quota: those that were counted */
	int64_t at;       /* seconds since 1970 of the last count */
	int64_t used[QUOTA_COUNT], limits[QUOTA_COUNT];
	char owner[QUOTA_USE_NAME + 1], profile[QUOTA_USE_NAME + 1];
};

struct quota_uses {
	struct shared_lock lock; /* of writers */
	struct {
		_Atomic uint64_t turn; /* odd while it is written; 0: free */
		struct quota_use use;
	} rows[QUOTA_USES];
};

/* False: a name is too long. */
bool quota_use_name(struct quota_use *to, const char *owner, const char *profile);

/* Of the kinds that it knows nothing of, the row keeps what was known. */
void quota_uses_note(struct quota_uses *u, const struct quota_use *now);

/* The fullest first; how many. */
size_t quota_uses_read(const struct quota_uses *u, struct quota_use ret[QUOTA_USE_SHOWN],
		       size_t *ret_more);

/* Hundredths of its fullest quota. */
unsigned quota_use_percent(const struct quota_use *use);

/* For Prometheus. */
void quota_uses_write(const struct quota_uses *u, const struct proxy_conf *conf, struct buf *out);

#endif
