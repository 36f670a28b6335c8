/*
 * fence_priv.h - how a path becomes a descriptor; the rest of the fence is built on it.
 */
#ifndef GATE_KEEPER_FENCE_PRIV_H
#define GATE_KEEPER_FENCE_PRIV_H

#include "gate/keeper/fence.h"

#include <linux/openat2.h>

/* A folder, and one name in it that is neither "", "." nor "..". */
struct fence_place {
	int folder; /* the caller closes it */
	char name[FENCE_NAME_MAX];
};

/* Opens beneath the root; -1: errno is in err. */
int fence_walk(const struct fence *f, const char *path, int flags, struct err *err);

/* The folder that the last component is in.  0 or -1. */
int fence_place(const struct fence *f, const char *path, struct fence_place *ret, struct err *err);

/* openat2() with these RESOLVE_ flags; tries again while others rename.  -1: errno. */
int fence_openat2(int folder, const char *path, int flags, uint64_t resolve);

/* The same thing again, with rights to use it: what fd (O_PATH) refers to, whatever its name is. */
int fence_reopen(int fd, int flags);

#endif
