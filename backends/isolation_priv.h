/*
 * isolation_priv.h - what the files of isolation.h share.
 */
#ifndef BACKENDS_ISOLATION_PRIV_H
#define BACKENDS_ISOLATION_PRIV_H

#include "backends/isolation.h"

/* "*" at the end of pattern stands for anything. */
bool isolation_fits(struct span given, const char *pattern);

/* A row of flags.def for gVisor; NULL: there is none. */
const struct isolation_reason *isolation_gvisor_flag(struct span name, struct span value);

/* Why the program has its level, by its name in runtimes.def; NULL: it has no row. */
const char *isolation_program(const char *name, const char **ret_source);

/* The source of a reason in the tables about runtimes; "" if there is none. */
const char *isolation_runtime_source(const char *why);

#endif
