/*
 * needs.h - what recorded requests needed of a profile, gathered.
 *
 * Only what was asked, entry by entry: an entry is an exact name, never a
 * pattern.  What no setting can grant, or a person must decide, is kept apart.
 */
#ifndef GATE_NEEDS_H
#define GATE_NEEDS_H

#include "gate/recorded.h"

#define NEEDS_MAX 4096

struct need {
	const char *setting; /* "": a question for a person, in `entry` */
	const char *entry;   /* as Lua has it */
	const char *first;   /* the decision that needed it first */
	uint64_t count;
};

struct limit_seen {
	int64_t most;
	uint64_t with, without; /* launches */
};

struct needs {
	struct arena *arena;
	struct need list[NEEDS_MAX];
	size_t count;
	bool full;
	uint64_t decisions, launches, hardened;
	struct limit_seen memory, nano_cpus, pids;
	enum isolation weakest; /* of all launches */
	bool any_level;
	const char *from, *to; /* times */
};

/* What this decision needed, if it was allowed; what was refused is a question. */
void needs_add(struct needs *n, const struct recorded *r);

#endif
