/*
 * seccomp_profile.h - filters of system calls for workloads, in the JSON that Docker and
 * runtimes read: parsed, written, compared, compiled.
 *
 * Parsed strictly, so that no reader can take it for another one: keys as they are
 * spelled here, one condition for an argument (runtimes disagree on two), nothing that
 * names a path or another process (listeners).
 *
 * A profile says more or less by the capabilities of the workload (includes, excludes).
 * Comparing goes syscall by syscall and is conservative: what cannot be shown to be no
 * more counts as more.  Actions are ordered as the kernel orders them.
 *
 * Unclear is a syscall with two actions, and one with several rules of which one compares
 * otherwise than by "equal": libseccomp 2.5.4, which engines use, makes other filters of
 * such rules than they say.  It counts as more than anything.
 *
 * Everything lives in the arena that is given; nothing to free.
 */
#ifndef GATE_BASE_SECCOMP_PROFILE_H
#define GATE_BASE_SECCOMP_PROFILE_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECCOMP_TEXT_MAX  ((size_t)256 << 10) /* bytes of JSON */
#define SECCOMP_RULES_MAX 1024                /* entries of "syscalls" */
#define SECCOMP_NAMES_MAX 4096                /* their names, all together */
#define SECCOMP_ARGS_MAX  6

/* From what allows least to what allows most. */
enum seccomp_action {
	SECCOMP_KILL_PROCESS = 0,
	SECCOMP_KILL_THREAD,
	SECCOMP_TRAP,
	SECCOMP_ERRNO,
	SECCOMP_TRACE,
	SECCOMP_LOG,
	SECCOMP_ALLOW,
	SECCOMP_ACTION_COUNT
};

const char *seccomp_action_name(enum seccomp_action a); /* SCMP_ACT_... */

struct seccomp_profile;

/* Whose text it is. */
enum seccomp_form {
	SECCOMP_REQUEST = 0, /* a caller's: no member "sallyport" */
	SECCOMP_FILE /* an operator's, which may say {"sallyport": {"weaker": ["syscall: reason"],
			"newer": ["syscall"]}}: what it allows beyond the engine's default, and
			what libseccomp may not know yet */
};

/* NULL: ERR_INPUT or ERR_LIMIT, which names the entry: "syscalls[3].action: ...". */
const struct seccomp_profile *seccomp_profile_parse(struct arena *a, struct span text,
						    enum seccomp_form form, struct err *err);

/* As JSON on one line, without comments and without "sallyport": the gate's own spelling. */
void seccomp_profile_write(const struct seccomp_profile *p, struct buf *out);

/* The i-th syscall that libseccomp does not know and the file does not call newer; NULL behind the
 * last. */
const char *seccomp_profile_unknown(const struct seccomp_profile *p, size_t i);

/* A syscall that the file says is allowed beyond the engine's default, and why; false behind the
 * last. */
bool seccomp_profile_weaker(const struct seccomp_profile *p, size_t i, struct span *ret_call,
			    struct span *ret_reason);

/* Where a profile is to hold. */
struct seccomp_place {
	uint64_t capabilities; /* of the workload: capability.h */
	const char *machine;   /* as Go names it: "amd64", "arm64"; NULL: this one */
};

/* The name that Go has for what the kernel calls x86_64, aarch64, ...; NULL if it is not known. */
const char *seccomp_machine(struct span kernel_name);

/* Something that the first of two profiles allows and the second does not. */
struct seccomp_more {
	const char
		*call; /* a syscall; "*": all that neither names; SCMP_ARCH_...: an architecture */
	enum seccomp_action inner, outer; /* what the profiles do at most, and at least */
	bool arguments;                   /* it depends on arguments */
	bool unclear;                     /* one of them can be read in two ways here */
};

/*
 * What inner allows that outer is not known to allow.  Writes at most max and returns how
 * many there are in all: 0 means that inner allows no more.  A rule that depends on the
 * kernel's version counts where that says more of inner, and not where it says more of outer.
 */
size_t seccomp_profile_more(const struct seccomp_profile *inner,
			    const struct seccomp_profile *outer, const struct seccomp_place *at,
			    struct seccomp_more *ret, size_t max);

/* The i-th syscall that is unclear there; NULL behind the last. */
const char *seccomp_profile_unclear(const struct seccomp_profile *p, const struct seccomp_place *at,
				    size_t i);

/*
 * The same as seccomp_profile_more() for whatever capabilities a workload may have: with those that
 * engines give, and with each one that either profile names besides and away.
 */
size_t seccomp_profile_more_anywhere(const struct seccomp_profile *inner,
				     const struct seccomp_profile *outer, struct arena *a,
				     struct seccomp_more *ret, size_t max);

/* What a profile does with a call of that number and those arguments, as we read it. */
enum seccomp_action seccomp_profile_action(const struct seccomp_profile *p,
					   const struct seccomp_place *at, int nr,
					   const uint64_t args[SECCOMP_ARGS_MAX]);

/*
 * Compiles it for this machine: a program for seccomp(2), an array of struct sock_filter.
 * Opens a descriptor for a moment: not in a process that is confined already.
 * ERR_INPUT: libseccomp refuses it, it holds a syscall that libseccomp does not know, or an
 * unclear one.
 */
int seccomp_profile_bpf(const struct seccomp_profile *p, uint64_t capabilities, struct buf *ret,
			struct err *err);

#endif
