/*
 * isolation.h - how well a runtime holds what it runs, and what lowers that: one
 * module for all adapters, for `doctor` and for `explain`.
 *
 * The level starts from the program that the service says it would run, never
 * from a name that somebody gave it: a runtime called "gvisor" whose path is runc
 * is runc.  What the tables do not know is ISOLATION_NONE.  Nothing raises a level.
 *
 *	runtimes.def     program, shim, handler -> base level, why, source
 *	flags.def        arguments of a runtime's program
 *	options.def      options of a shim
 *	annotations.def  what an annotation of a workload switches
 *	lowers.def       everything else that lowers it, in a request or in the service
 *
 * Does no I/O and knows no service: adapters translate what theirs says into
 * isolation_facts, and put what comes back into the workload's facts.
 */
#ifndef BACKENDS_ISOLATION_H
#define BACKENDS_ISOLATION_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "rules/workload.h"

/* --- a runtime, as the service shows it --- */

struct isolation_option {
	const char *key, *value; /* value: what is no text as JSON */
};

/* Strings may be NULL; all of it may be wrong, and what is not said is not known. */
struct isolation_facts {
	const char *path;    /* of the program: "/usr/bin/runsc", "runc" */
	const char *type;    /* of a containerd shim: "io.containerd.kata.v2" */
	const char *handler; /* of a Kubernetes RuntimeClass, not its name */
	const struct span *args;
	size_t arg_count;
	bool args_known; /* args are all that there are; false: the service does not show them */
	bool args_unreadable;                   /* among them is something that is no text */
	const struct isolation_option *options; /* of a shim */
	size_t option_count;
};

/* One thing that lowers it, or that is worth knowing: then to is the level as it was. */
struct isolation_line {
	const char *field, *value; /* "network", "host" */
	enum isolation to;         /* what is left after it and all before it */
	enum isolation alone;      /* what would be left if there was nothing else */
	const char *why, *source;  /* of the tables: they live for ever */
	bool unknown;              /* no table has it, so what it does is not known */
};

#define ISOLATION_LINES_MAX 8

struct isolation_weighed {
	const char *program; /* as runtimes.def writes it; "" if it has none */
	const char *from;    /* what told it: "path", "type", "handler", "options.BinaryName", "" */
	enum isolation base, level;
	const char *why, *source; /* of base */
	struct isolation_line lines[ISOLATION_LINES_MAX];
	size_t line_count;
};

/* Strings of lines are taken from a. */
void isolation_weigh(struct arena *a, const struct isolation_facts *facts,
		     struct isolation_weighed *ret);

/* Whether program is this one, by its name in runtimes.def; for what only one does. */
bool isolation_is_krun(const char *program);

/* --- what a request, or the service, does to the level --- */

enum isolation_lower {
#define LOWER(id, effect, level, why, source) LOWER_##id,
#define CAPABILITY(name, level, why, source)
#include "backends/lowers.def"
#undef LOWER
#undef CAPABILITY
	LOWER_COUNT
};

struct isolation_reason {
	enum isolation to; /* at most this is left */
	bool step;         /* one step less is left; to says nothing */
	bool adds;         /* it holds better by something that is no level of its own */
	const char *why, *source;
};

const struct isolation_reason *isolation_reason(enum isolation_lower id);

/* Of a capability in upper case without CAP_; NULL: it lowers nothing. */
const struct isolation_reason *isolation_capability(const char *name);

/* Never NULL: what is not known lowers. */
const struct isolation_reason *isolation_annotation(struct span name, struct span value);

/* The level that is left of this one. */
enum isolation isolation_left(enum isolation level, const struct isolation_reason *why);

/* --- a service: what an adapter reads of it for `doctor` --- */

struct isolation_runtime {
	const char *name; /* as people call it; proves nothing */
	const char *said; /* what is.from names: "/usr/bin/runsc"; "" if it is not said */
	struct isolation_weighed is;
};

#define ISOLATION_RUNTIMES_MAX 32
#define ISOLATION_NOTES_MAX    4

struct isolation_service {
	const char *default_runtime;
	struct isolation_runtime runtimes[ISOLATION_RUNTIMES_MAX];
	size_t runtime_count;
	enum isolation_lower notes[ISOLATION_NOTES_MAX]; /* what it does to all that it runs */
	size_t note_count;
};

/* The best that it offers, by its arguments and options and by what it does to all. */
enum isolation isolation_best(const struct isolation_service *s);

/* --- for people --- */

/*
 * The derivation in lines, from the facts of a workload (the tree at
 * workload.isolation): the base with the fact and the source that it is from, what
 * lowered it, what it adds, the result.  Each line begins with indent.
 */
void isolation_derive(const struct jv *isolation, const char *indent, struct buf *out);

/* The same of one runtime that the service offers. */
void isolation_derive_runtime(const struct isolation_runtime *rt, const char *indent,
			      struct buf *out);

/* Which table's row says so: the source of a reason, by its text; "" if there is none. */
const char *isolation_source(const char *why);

#endif
