/*
 * seccomp.h - profiles of system calls by name: those that come with the program, and
 * those that stand beside the operator's trust profiles.
 *
 * A file NAME.seccomp.json beside profiles is the profile NAME.  "default" is what
 * engines do where nothing is said (rules/seccomp/default.json is our account of it): it is
 * never sent, and others are compared with it.
 */
#ifndef RULES_SECCOMP_H
#define RULES_SECCOMP_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/seccomp_profile.h"

#define SECCOMP_DEFAULT "default"
#define SECCOMP_SUFFIX  ".seccomp.json"

/* The files of rules/seccomp, in the program. */
struct seccomp_file {
	const char *name; /* of the profile */
	const char *text;
	size_t length;
};

extern const struct seccomp_file seccomp_files[];
extern const size_t seccomp_file_count;

/* NULL if none of that name comes with the program. */
const struct seccomp_file *seccomp_file_find(const char *name);

/* "default" or one that comes with the program, compiled for this machine: see
 * seccomp_profile_bpf(). */
int seccomp_named_bpf(const char *name, uint64_t capabilities, struct buf *ret, struct err *err);

#endif
