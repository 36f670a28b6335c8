/*
 * decide.h - the one place where a request becomes permitted.
 *
 * Nothing else in the program compares a verdict with "allow".
 */
#ifndef PROXY_DECIDE_H
#define PROXY_DECIDE_H

#include "gate/base/arena.h"
#include "rules/engine.h"

#include <stdbool.h>

struct judgement {
	struct engine *engine;
	const struct profile *profile; /* NULL: denied */
	enum operation op;
	const struct jv *facts;          /* what rules see; NULL when the grant is plain */
	struct violations *refused;      /* canonical refusals; any denies */
	const struct override *override; /* what an operator has put above the profile; or NULL */
	/* Where the rules want a person's yes: whether there is one.  NULL: nobody can be asked. */
	bool (*approved)(void *arg, const struct decision *d);
	void *approved_arg;
};

/*
 * True if the request may be forwarded, and only then is ret->verdict allow.
 * Whatever goes wrong is a denial whose violations say so.
 */
bool decide(const struct judgement *j, struct arena *a, struct decision *ret)
	__attribute__((warn_unused_result));

#endif
