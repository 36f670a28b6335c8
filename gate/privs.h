/*
 * privs.h - what each kind of process may still do.
 *
 * privs_become() comes first; a role may then open what it needs (the log, the
 * rules); privs_filter() ends that.  A process in which one of them failed must
 * exit.
 */
#ifndef GATE_PRIVS_H
#define GATE_PRIVS_H

#include "gate/base/confine.h"
#include "gate/base/err.h"

/* A sanitizer opens files for its reports, so these builds are confined less. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define PRIVS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PRIVS_SANITIZED 1
#endif
#ifndef PRIVS_SANITIZED
#define PRIVS_SANITIZED 0
#endif

enum role {
	ROLE_SUPERVISOR = 0, /* starts and watches the others; its list holds theirs */
	ROLE_WORKER,         /* parses requests, judges, talks to engines */
	ROLE_AUDITOR,        /* writes the log */
	ROLE_RESOLVER,       /* looks at host paths */
	ROLE_READER,         /* reads configuration and rules once */
	ROLE_WATCHER,        /* follows what engines do besides */
	ROLE_ADMIN,          /* serves the admin socket */
	ROLE_SANDBOX,        /* serves the sandbox API */
	ROLE_KEEPER,         /* keeps local sandboxes: gate/keeper */
	ROLE_COUNT
};

const char *role_name(enum role role);

/*
 * Takes the ids (NULL: stays who it is, when not started as root), keeps the
 * role's capabilities, sets no_new_privs and forbids dumps.
 */
int privs_become(enum role role, const struct confine_ids *ids, struct err *err)
	__attribute__((warn_unused_result));

/*
 * In the process that reads at a reload: it may see files that only others may
 * read, as the supervisor could when it was started.
 */
int privs_read(struct err *err) __attribute__((warn_unused_result));

/*
 * An engine is at tcp://: lists that privs_filter() installs from now on hold what that
 * takes.  For the process that calls it, and those that it starts.
 */
void privs_reach_tcp(void);

/* Installs the role's list of syscalls.def. */
int privs_filter(enum role role, struct err *err) __attribute__((warn_unused_result));

/* Row i of syscalls.def for `help syscalls`; false behind the last. */
struct privs_row {
	const char *role, *name, *reason;
	bool limited; /* only with this value of an argument */
	uint64_t value;
};
bool privs_row(size_t i, struct privs_row *ret);

#endif
