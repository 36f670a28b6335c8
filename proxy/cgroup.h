/*
 * cgroup.h - which containers a process is in, by the names of its control groups.
 *
 * Pure functions over the text of /proc/PID/cgroup.  Whoever may make control
 * groups below its own chooses their names, so a name proves nothing: it says
 * which container to ask the engine for, and then cgroup_within() holds the
 * groups against those of that container's first process.
 */
#ifndef PROXY_CGROUP_H
#define PROXY_CGROUP_H

#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>

#define CGROUP_ID_LEN  64 /* hexadecimal digits of a container's id */
#define CGROUP_IDS_MAX 4  /* containers in one another */

enum cgroup_place {
	CGROUP_UNKNOWN =
		0,      /* the text is none, or says different things of different controllers */
	CGROUP_OUTSIDE, /* no group is named like a container */
	CGROUP_INSIDE
};

struct cgroup_ids {
	struct span id[CGROUP_IDS_MAX]; /* the outermost first; parts of the text */
	size_t count;
};

/* Names as docker, podman, containerd and CRI-O give them, under systemd and without; and the
 * gate's own keeper. */
enum cgroup_place cgroup_containers(struct span text, struct cgroup_ids *ret);

/*
 * Whether a process is in the container's groups or below them: in each
 * hierarchy in which the first process (init) is in a group that is named like the container,
 * so is the other, in the very same group; and in no other hierarchy.
 */
bool cgroup_within(struct span text, struct span init, struct span id);

#endif
