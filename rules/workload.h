/*
 * workload.h - the vocabulary of what would run: backend-neutral facts.
 *
 * An adapter fills a workload from a request and from what the backend
 * reports; rules read it; the record holds it.  Facts are a tree, because
 * exactly the same bytes go into the log as into Lua.  Every fact that an
 * adapter may write is a row of workload.def; a test holds adapters to it.
 *
 * What is not known is absent, and rules deny what they need and do not find.
 */
#ifndef RULES_WORKLOAD_H
#define RULES_WORKLOAD_H

#include "gate/base/jv.h"

enum isolation {
	ISOLATION_NONE = 0, /* nothing that holds: what zeroed memory says */
	ISOLATION_PROCESS,  /* namespaces, capabilities, seccomp on the host's kernel */
	ISOLATION_KERNEL,   /* a kernel of its own in user space (gVisor) */
	ISOLATION_VM,       /* a virtual machine */
	ISOLATION_COUNT
};

const char *isolation_name(enum isolation level);

/* -1 if name is none of them. */
int isolation_find(struct span name, enum isolation *ret);

/* Facts are refused (facts_too_large) when they take more than this as JSON. */
#define FACTS_MAX 49152 /* bytes */

struct workload {
	struct jv facts; /* JV_OBJECT, rows of workload.def; JV_NULL if nothing would run */
	enum isolation level;
};

/*
 * One change that the rules want before the request is forwarded.  fact is a
 * row of harden.def, the closed list of what may be changed; value is its new
 * value.  Adapters apply it to their model, and the facts are made anew.
 */
enum harden {
	HARDEN_NONE = 0,
#define HARDEN(id, fact, kind, doc) HARDEN_##id,
#include "rules/harden.def"
#undef HARDEN
	HARDEN_COUNT
};

struct change {
	enum harden what;
	struct jv value;   /* of the kind that harden.def gives */
	const char *rule;  /* who wants it */
	const char *field; /* set by the adapter: where in the request it went */
};

#define CHANGES_MAX 32

const char *harden_fact(enum harden what); /* the fact's path */
enum jv_kind harden_kind(enum harden what);
enum harden harden_find(struct span fact); /* HARDEN_NONE if it may not be changed */

#endif
