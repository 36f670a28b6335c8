/*
 * seccomp_priv.h - a profile of system calls in memory: seccomp_profile.h.
 */
#ifndef GATE_BASE_SECCOMP_PRIV_H
#define GATE_BASE_SECCOMP_PRIV_H

#include "gate/base/seccomp_profile.h"

#define SECCOMP_ARCHES_MAX 64
#define SECCOMP_NO_NUMBER  (-1) /* libseccomp does not know the name */

enum seccomp_operator {
	SECCOMP_NE = 0,
	SECCOMP_LT,
	SECCOMP_LE,
	SECCOMP_EQ,
	SECCOMP_GE,
	SECCOMP_GT,
	SECCOMP_MASKED_EQ,
	SECCOMP_OPERATOR_COUNT
};

struct seccomp_condition {
	unsigned index;
	enum seccomp_operator op;
	uint64_t value, two; /* MASKED_EQ: the mask, and what is left under it */
};

struct seccomp_name {
	struct span text;
	int nr; /* of this machine; pseudo numbers of other machines are below -1 */
};

/* What includes and excludes ask for. */
struct seccomp_when {
	uint64_t capabilities;
	const struct span *machines;
	size_t machine_count;
	struct span kernel; /* "" if none */
};

struct seccomp_rule {
	struct seccomp_name *names;
	size_t name_count;
	enum seccomp_action action;
	int errno_ret; /* below 0: none is said */
	struct seccomp_condition args[SECCOMP_ARGS_MAX];
	size_t arg_count; /* all must hold */
	struct seccomp_when includes, excludes;
};

/* A native architecture and those that its kernel runs besides. */
struct seccomp_arches {
	struct span native; /* "" in a plain list of architectures */
	const struct span *others;
	size_t other_count;
};

struct seccomp_mark {
	struct span call, reason;
};

struct seccomp_profile {
	enum seccomp_action action; /* defaultAction */
	int errno_ret;              /* defaultErrnoRet; below 0: none */
	bool logs;                  /* SECCOMP_FILTER_FLAG_LOG */
	bool mapped;                /* archMap, not architectures */
	struct seccomp_arches *arches;
	size_t arch_count;
	struct seccomp_rule *rules;
	size_t rule_count, name_total;
	struct seccomp_mark *weaker;
	size_t weaker_count;
	const struct span *newer; /* may be unknown to libseccomp */
	size_t newer_count;
};

/* A native architecture's name for libseccomp by Go's; NULL if it is not known. */
const char *seccomp_arch_of(const char *machine);
const char *seccomp_this_machine(void); /* as Go names it */

/* Whether a rule counts there.  more: where the kernel's version decides, take what allows more. */
bool seccomp_rule_counts(const struct seccomp_profile *p, const struct seccomp_rule *r,
			 const struct seccomp_place *at, bool more);

/* Whether the file says that libseccomp may not know the call yet. */
bool seccomp_is_newer(const struct seccomp_profile *p, struct span call);

const char *seccomp_operator_name(enum seccomp_operator op);

#endif
