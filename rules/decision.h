/*
 * decision.h - what came out of judging one request.
 *
 * Zeroed memory denies.  Only decide() in proxy/ reads `verdict` to forward;
 * nothing else compares it with VERDICT_ALLOW.
 */
#ifndef RULES_DECISION_H
#define RULES_DECISION_H

#include "rules/operation.h"
#include "rules/workload.h"

enum verdict {
	VERDICT_DENY = 0,
	VERDICT_ASK, /* a person must say yes; treated as a denial until one has */
	VERDICT_ALLOW,
	VERDICT_COUNT
};

enum rule_mode {
	MODE_ENFORCE = 0,
	MODE_WARN,   /* rule violations are passed on as warnings */
	MODE_SHADOW, /* rule violations are only recorded */
	MODE_COUNT
};

const char *verdict_name(enum verdict v);
const char *rule_mode_name(enum rule_mode m);

struct warning {
	const char *rule, *text;
};

#define WARNINGS_MAX 16

/* A violation that an exception of the profile let pass. */
struct exception_use {
	const char *rule, *reason, *field, *value;
	const char *owner, *ticket, *expires;
};

/*
 * An operator's word above a profile, for a while: what it enforces is judged in that mode.
 * Never what floor.def lists, what asks a person, nor what has a mode of its own.
 */
struct override {
	enum rule_mode mode;
	const char *ticket; /* where it is written down why */
};

#define EXCEPTION_USES_MAX 16 /* one more is no exception: its use could not be recorded */

struct decision {
	enum verdict verdict;
	enum verdict would; /* what enforce mode would say; same as verdict in enforce mode */
	bool judged;        /* the profile was asked; else the request was refused before */
	enum verdict said;  /* what it answered, whatever came behind */
	enum rule_mode mode;
	const char *profile;      /* "" if none */
	const char *profile_hash; /* 64 hex digits over the sources that were evaluated */
	const char *rule;         /* the rule that allowed, or the first that denied */
	struct violations violations;
	struct warning warnings[WARNINGS_MAX];
	size_t warning_count;
	struct change changes[CHANGES_MAX]; /* what hardening wanted and the adapter applied */
	size_t change_count;
	struct exception_use excepted[EXCEPTION_USES_MAX];
	size_t excepted_count;
	const struct override *override; /* it was judged under; NULL: none */
};

#endif
