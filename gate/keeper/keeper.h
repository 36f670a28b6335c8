/*
 * keeper.h - the process that keeps local sandboxes: the service behind a backend with
 * kind = "local".
 *
 * It speaks the part of the Docker Engine's API that backends/local sends, on a socket that workers
 * alone can open, so that what holds for an engine holds for it: each request was judged, recorded
 * and written anew by a worker. It judges nothing itself, but takes nothing that it cannot keep: a
 * field that it has no way to honour is refused, never ignored.
 *
 *	workers ──HTTP──► server.c ──► routes.def, routes.c ──► containers.c  execs.c  archive.c
 *	                                                            │            │         │
 *	                                                          box.h        box.h    fence.h
 *
 * What it knows is in memory. It dies with the supervisor, and its sandboxes with it; another one
 * begins with nothing, and first removes what was left.
 *
 * Threads: one a connection, and one that waits for the ends of commands. One lock, state_priv.h
 * says of what.
 */
#ifndef GATE_KEEPER_KEEPER_H
#define GATE_KEEPER_KEEPER_H

#include "gate/base/err.h"
#include "gate/keeper/box.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keeper_conf {
	int listener; /* bound; workers connect to it */
	int launcher; /* box.h */
	int state;    /* its folder */
	struct box_cgroup cgroups[BOX_CGROUPS_MAX];
	size_t cgroup_count;

	const char *const *read_only; /* paths of the host; NULL at the end */
	const char *path;             /* PATH of what runs */
	bool bare;                    /* sandboxes without walls may be asked for */
	unsigned sandboxes, execs, connections;
	/* Of a sandbox that asks for none. */
	unsigned pids;
	uint64_t memory, scratch;
	/* Of each. */
	uint64_t file, output;
};

#define KEEPER_FDS_MAX (3 + BOX_CGROUPS_MAX)

/* Begins the names of control groups of sandboxes. */
#define KEEPER_BOX_PREFIX "box-"

/*
 * Serves until the control socket ends; says 'y' over it when it is ready. Returns the process's
 * exit status, or -1 with err.
 */
int keeper_run(const struct keeper_conf *conf, int control, struct err *err);

#endif
