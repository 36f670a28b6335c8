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
#include "gate/base/hash.h"
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

#define SECCOMP_PROFILES_MAX 64

/* One that trust profiles can name. */
struct seccomp_known {
	const char *name, *file; /* file: in messages */
	const struct seccomp_profile *profile;
	struct span text;              /* as it is sent; "" for the default, which is not */
	char sha256[HASH_HEX_LEN + 1]; /* of that text */
};

struct seccomp_list {
	struct seccomp_known list[SECCOMP_PROFILES_MAX];
	size_t count;
};

/* Adds those that come with the program; *list is empty.  All in the arena. */
int seccomp_list_begin(struct seccomp_list *list, struct arena *a, struct err *err);

/*
 * Adds an operator's.  ERR_CONFIG "FILE:LINE: ..." for what cannot be read in one way, a syscall
 * that libseccomp does not know, and what allows more than the default without saying so.
 */
int seccomp_list_add(struct seccomp_list *list, const char *file, struct span text, struct arena *a,
		     struct err *err);

const struct seccomp_known *seccomp_list_find(const struct seccomp_list *list, const char *name);

/* The line on which a syscall is named in quotes; 1 if it is not. */
int seccomp_line_of(struct span text, const char *call);

/* Whether the file says that it means to allow this beyond the default, and why. */
bool seccomp_is_marked(const struct seccomp_profile *p, const char *call);

/* "clone (with other arguments)": one thing that is more, for people. */
void seccomp_more_say(const struct seccomp_more *more, char *ret, size_t size);

/* Whether a source of rules is such a file: by its name. */
bool seccomp_is_file(const char *name);

/* NULL if none of that name comes with the program. */
const struct seccomp_file *seccomp_file_find(const char *name);

/* "default" or one that comes with the program, compiled for this machine: see
 * seccomp_profile_bpf(). */
int seccomp_named_bpf(const char *name, uint64_t capabilities, struct buf *ret, struct err *err);

#endif
