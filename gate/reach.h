/*
 * reach.h - who else reaches an engine: what is read for that, taken apart.
 *
 * Pure readers of bytes; doctor_reach.c knows where they come from.
 */
#ifndef GATE_REACH_H
#define GATE_REACH_H

#include "gate/base/buf.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stdint.h>

/* /proc/self/mountinfo: something is mounted at this very path. */
bool reach_is_mount_point(struct span mountinfo, const char *path);

/* Of a POSIX access control list (system.posix_acl_access). */
struct reach_acl {
	bool group; /* else a user */
	uint32_t id;
};

#define REACH_ACL_MAX 32

/* Named users and groups that may write, mask applied; -1: it is no such list. */
int reach_acl_read(struct span xattr, struct reach_acl *ret, size_t max, size_t *ret_count);

/*
 * Appends the addresses that dockerd is told to listen on by its arguments
 * (/proc/PID/cmdline: -H X, --host=X ...), one a line; unix sockets as well.
 */
void reach_hosts(struct span cmdline, struct buf *out);

/*
 * Of a systemd socket unit, and then of its drop-ins in their order: the values of
 * ListenStream=, one a line.  An empty one takes back those before it.
 */
void reach_listen_streams(struct span unit, struct buf *out);

/* Likewise the addresses in ExecStart= of a service (as reach_hosts() finds them in arguments). */
void reach_exec_hosts(struct span unit, struct buf *out);

/* A mount of `source` shows what is at `path`: it is that, or a folder above it. */
bool reach_shows(const char *source, const char *path);

#endif
