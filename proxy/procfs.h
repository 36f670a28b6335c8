/*
 * procfs.h - reading what the kernel writes about a process, text by text.
 *
 * Pure functions over text that somebody else read.  Some of it is chosen by
 * the process that is looked at (names, paths, its groups), so nothing here
 * trusts a line to be whole, short or sane: what does not fit is not there.
 */
#ifndef PROXY_PROCFS_H
#define PROXY_PROCFS_H

#include "gate/base/span.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* /proc/PID/status.  false: a field that every kernel of ours writes is missing. */
struct procfs_status {
	unsigned parent;
	unsigned uid, gid; /* effective */
	unsigned depth;    /* of its pid namespace: 1 is the reader's own */
	uint64_t cap_inh, cap_prm, cap_eff, cap_bnd, cap_amb;
	bool no_new_privs;
	int seccomp; /* 0 none, 1 strict, 2 filter */
	int filters; /* -1: the kernel does not say */
};

bool procfs_status(struct span text, struct procfs_status *ret);

/*
 * Start time in clock ticks since boot, of /proc/PID/stat, whatever the program's
 * name holds.  False also for a process that has ended and was not reaped yet, and for
 * one that is ending: it has left its control group and namespaces already.
 */
bool procfs_start_time(struct span text, uint64_t *ret);

/* A line of /proc/PID/mountinfo; spans are still escaped. */
struct procfs_mount {
	int64_t id, parent;
	unsigned major, minor;
	struct span root, point, options, type, source, super;
	const char *propagation; /* private, shared, slave, unbindable */
};

/* Takes the next line that can be read off *rest; lines that cannot are counted in *bad. */
bool procfs_mount(struct span *rest, struct procfs_mount *ret, unsigned *bad);

/* "\040" -> " ".  False: it does not fit, or an escape is none. */
bool procfs_unescape(struct span text, char *out, size_t size);

/* Whether a comma-separated list holds the word. */
bool procfs_has_word(struct span list, const char *word);

/*
 * The path of a controller ("memory") in /proc/PID/cgroup; controller "" is the
 * unified hierarchy.  False: there is none, or it leads out of what is mounted.
 */
bool procfs_cgroup(struct span text, const char *controller, struct span *ret);

#define PROCFS_UNLIMITED INT64_C(-1)

/* A limit as control groups write it: a number, or "max"; v1 writes huge numbers or -1 for that. */
bool procfs_limit(struct span text, int64_t *ret);

#endif
