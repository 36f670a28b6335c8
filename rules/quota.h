/*
 * quota.h - how much a caller may have in sum: rows of quota.def.
 */
#ifndef RULES_QUOTA_H
#define RULES_QUOTA_H

#include "rules/operation.h"

#include <stdint.h>

enum quota {
#define QUOTA(id, setting, fact, unit, of, doc) QUOTA_##id,
#include "rules/quota.def"
#undef QUOTA
	QUOTA_COUNT
};

/* What has to be counted for it. */
enum quota_of {
	QUOTA_OF_RUNNING = 0,
	QUOTA_OF_VOLUMES,
	QUOTA_OF_VOLUME_SPACE,
	QUOTA_OF_IMAGE_SPACE,
	QUOTA_OF_COUNT
};

enum quota_unit { QUOTA_UNIT_NUMBER = 0, QUOTA_UNIT_BYTES, QUOTA_UNIT_CPUS };

/* Of something that has no limit: more than any quota. */
#define QUOTA_ENDLESS INT64_MAX

const char *quota_setting(enum quota q); /* "cpus" */
const char *quota_fact(enum quota q);    /* "nano_cpus" */
enum quota_unit quota_unit(enum quota q);
enum quota_of quota_of(enum quota q);

/* Whether an operation can make more of it. */
bool quota_concerns(enum quota q, enum operation op);

struct profile;

/* The most of each, by enum quota; below 0: no quota.  NULL: the profile has none at all. */
const int64_t *profile_quota(const struct profile *p);

/* Those of them that an operation concerns, as bits 1 << enum quota. */
unsigned profile_counts(const struct profile *p, enum operation op);

#endif
