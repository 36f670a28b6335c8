/*
 * init.h - a first configuration: for named clients, or of the variables that
 * another docker-socket proxy was run with.
 */
#ifndef GATE_INIT_H
#define GATE_INIT_H

#include "gate/base/buf.h"
#include "gate/base/err.h"

/* A file of rules/profiles, kept in the program (rules/embed.py). */
struct shipped_file {
	const char *name; /* "traefik" */
	const char *text;
	size_t len;
};
extern const struct shipped_file shipped_files[];
extern const size_t shipped_file_count;

/*
 * The profile "from-env" that grants what the variables of init_env.def stand for, with a comment
 * on what each no longer opens.  value(): that of a variable; NULL: it is not set.
 * ERR_INPUT: none is set, or one has a value that is neither yes nor no.
 */
int init_env_profile(const char *(*value)(const char *name), struct buf *out, struct err *err);

#endif
