/*
 * recorded.h - decisions as the log has them, to be judged again.
 *
 * A record holds all that its decision depended on: what was asked, the facts,
 * who asked, the clock.  `judged` in it is what the rules said; what came
 * behind them (an absent engine, a full disk) is no part of that.
 */
#ifndef GATE_RECORDED_H
#define GATE_RECORDED_H

#include "gate/base/arena.h"
#include "gate/base/jv.h"
#include "gate/config.h"
#include "rules/engine.h"

struct recorded {
	struct jv record; /* the whole line */
	const char *id, *time, *op_name, *verdict, *would, *reason, *profile, *hash, *identity;
	const char *judged; /* "": the rules were not asked */
	enum operation op;
	const struct jv *facts;      /* NULL: not recorded */
	const struct jv *violations; /* NULL: none */
};

/* Called for each decision, reads included, in the order of the log; valid during the call. */
typedef int recorded_fn(void *arg, const struct recorded *r, struct arena *a);

/* -1 with *err; else what fn returned last, 0 at the end. */
int recorded_each(const char *dir, recorded_fn *fn, void *arg, struct err *err);

/* The profile that this configuration gives that caller, or NULL. */
const struct profile *recorded_profile(const struct recorded *r, const struct proxy_conf *conf,
				       const struct engine *eng);

enum rejudged {
	REJUDGED = 0,
	REJUDGED_UNASKED,      /* it was refused before the rules were asked */
	REJUDGED_WITHOUT_FACTS /* these rules need facts that the record does not have */
};

/* Judges it by p (NULL denies).  *ret is filled for REJUDGED. */
enum rejudged recorded_judge(const struct recorded *r, struct engine *eng, const struct profile *p,
			     struct arena *a, struct decision *ret);

#endif
