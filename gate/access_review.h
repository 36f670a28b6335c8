/*
 * access_review.h - who may do what, and who did: the profiles in force held against the log.
 *
 * A subject is an identity of the configuration, the callers that only a listener lets in
 * ("otherwise"), a role of the admin socket, or a name that the log has and the configuration
 * has not.  Its grants are what its profile says; each knows how often, and when last, a
 * request that was allowed used it.
 *
 * Memory is bounded by the configuration; of names that only the log has, ACCESS_STRANGERS
 * are kept apart, and the others are counted together.
 */
#ifndef GATE_ACCESS_REVIEW_H
#define GATE_ACCESS_REVIEW_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/clock.h"
#include "gate/base/err.h"
#include "gate/config.h"
#include "rules/engine.h"

#define ACCESS_STRANGERS 200
#define ACCESS_SOON_S    (30 * 86400) /* an exception that ends within this is about to end */
#define ACCESS_OUT_MAX   ((size_t)32 << 20)

struct access_grant {
	const char *kind, *value;
	const char *setting;                 /* of the profile, whose entry it is; NULL: of none */
	const struct jv *entry;              /* as settings have it; NULL: likewise */
	enum operation op;                   /* OP_UNKNOWN: it is none */
	const char *rule, *ticket, *expires; /* of an exception; else "" */
	int64_t ends; /* likewise: the first second in which it does not hold */
	uint64_t used;
	char last[CLOCK_TEXT_MAX];
};

enum access_kind { ACCESS_STRANGER = 0, ACCESS_IDENTITY, ACCESS_OTHERS, ACCESS_ROLE };

struct access_subject {
	enum access_kind kind;
	const char *name, *owner, *profile;
	const char *known_by;        /* "uid 1001", "token" */
	const char *listeners;       /* where; "a, b" */
	const char *listener;        /* ACCESS_OTHERS: that one */
	const struct profile *rules; /* NULL: none */
	struct access_grant *grants;
	size_t grant_count;
	uint64_t allowed, refused, launches, commands;
	char first[CLOCK_TEXT_MAX], last[CLOCK_TEXT_MAX];
};

struct access_review {
	struct arena *arena; /* what lives as long as this */
	const char *log, *generation;
	uint64_t from_ns, to_ns;
	struct access_subject *subjects;
	size_t count, strangers, room;
};

/*
 * Looks at the records from from_ns up to to_ns (not part of it).  eng: of this configuration's
 * rules; both are kept.  -1: ERR_INPUT or ERR_LIMIT; the log cannot be read, or was altered.
 */
int access_review_make(struct access_review *r, const struct config *c, const struct engine *eng,
		       const char *dir, struct err *err);

/* What is noteworthy of a grant or a subject at the end of the period; "" if nothing is. */
void access_grant_flag(const struct access_review *r, const struct access_grant *g, char out[80]);
const char *access_subject_flag(const struct access_subject *s);

void access_review_text(const struct access_review *r, struct buf *out);
void access_review_json(const struct access_review *r, struct buf *out);
void access_review_csv(const struct access_review *r, struct buf *out);

#endif
