/*
 * update_priv.h - a container beside the one that it replaces.
 *
 * Under a profile with `update` what would run is compared, fact by fact, with
 * what ran (update.def): nothing may be looser than it was.  What the standard
 * checks find fault with was then there before, and passes; but not the image,
 * nor what is not known, nor (without `privileged`) what has the host.  Where
 * something is looser and an exception lets that pass, nothing else does: all
 * that the checks find counts.
 *
 * What takes a container away (stop, kill, remove, rename) is judged as if its
 * re-creation came now, by judge.c.
 */
#ifndef RULES_UPDATE_PRIV_H
#define RULES_UPDATE_PRIV_H

#include "gate/base/arena.h"
#include "gate/base/jv.h"
#include "rules/decision.h"
#include "rules/operation.h"

/* Seconds that a profile may remember for. */
#define UPDATE_WITHIN_MAX     86400
#define UPDATE_WITHIN_DEFAULT 600

struct update_row {
	const char *path, *how, *hint;
};

extern const struct update_row update_rows[];
extern const size_t update_row_count;

/*
 * What is wrong with facts as an update: nothing is replaced, it is too long
 * ago, or something is looser than it was.  settings: the profile's `update`.
 * Every violation has its field, value, text and hint, from the arena.
 */
struct violations update_faults(const struct jv *facts, const struct jv *settings,
				enum operation op, struct arena *a);

/* True for what makes, starts or connects a container that may replace another. */
bool update_compares(enum operation op);
/* True for what takes a container away: it is judged as if its re-creation came now. */
bool update_parts(enum operation op);

/*
 * Whether a fault that a standard check has found counts no more, because the
 * container that is replaced had the same.
 */
bool update_keeps(const char *check, enum reason reason, const struct jv *settings);

/* Facts of a re-creation, of those of what takes the container away. */
struct jv update_recreation(const struct jv *facts, struct arena *a);

#endif
