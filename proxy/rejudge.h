/*
 * rejudge.h - what runs already, judged again.
 *
 * A module of the watcher.  What was allowed to start may not be any more: a runtime's
 * name means another program by now, an engine has restarted what it restarts by itself,
 * the rules have changed.  So all that runs and was made through the gate is read anew,
 * looked at, and judged as its owner's start of it would be, under the rules in force:
 *
 *	- when the gate starts, after each reconnect to the engine, with new rules, and
 *	  when the engine has read its own configuration again: all of it
 *	- what the engine, or somebody past the gate, has started: that
 *
 * What becomes of it says the profile (`running` of settings.def).  Each finding is a
 * record, `rejudged`; a stop is the gate's own doing, with a decision that is durable
 * before anything is sent.  Of one backend a few are looked at at a time, and what is
 * held of the others is their id.
 */
#ifndef PROXY_REJUDGE_H
#define PROXY_REJUDGE_H

#include "proxy/watcher.h"

/* Why something is judged again. */
enum rejudge_cause {
	CAUSE_START = 0,
	CAUSE_RECONNECT,
	CAUSE_RELOAD,
	CAUSE_ENGINE_START,  /* of this one, unasked */
	CAUSE_ENGINE_RELOAD, /* the engine's own configuration */
	CAUSE_AGAIN,         /* it could not be done before */
	CAUSE_QUARANTINE,    /* of its owner, whose workloads are stopped */
	CAUSE_COUNT
};

const char *rejudge_cause_name(enum rejudge_cause c);

extern const struct watcher_module rejudge_module;

/* Nothing that the gate allowed explains that this runs. */
void rejudge_started(struct worker *w, size_t backend, struct span id);

#endif
