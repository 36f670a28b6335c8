/*
 * self.h - the container that the gate itself runs in, if it runs in one.
 *
 * Callers must not touch it.  Engines write the id into what the kernel shows
 * of a process: the control group, or the files that they mount into each
 * container (/etc/hosts and the like lie in a folder of that name).
 */
#ifndef GATE_SELF_H
#define GATE_SELF_H

#include "gate/base/span.h"

#include <stdbool.h>

#define SELF_ID_MAX 64 /* hex digits */

/* False: in none, or in one that does not say so. */
bool self_container(char ret[SELF_ID_MAX + 1]);

/* The texts of /proc/self/cgroup and /proc/self/mountinfo; for tests. */
bool self_in_cgroup(struct span text, char ret[SELF_ID_MAX + 1]);
bool self_in_mounts(struct span text, char ret[SELF_ID_MAX + 1]);

/* A host name of twelve hex digits is the start of the id, where there is a /.dockerenv. */
bool self_in_hostname(const char *name, char ret[SELF_ID_MAX + 1]);

#endif
