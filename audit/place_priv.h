/*
 * place_priv.h - the log's folder as a place: what file system it is on, and what
 * happens to a log that is damaged.
 *
 * A damaged log is never written to again.  Who accepts the damage has its files
 * moved into damaged-N, and a new log begins under the name ORIGIN/N+1: one name
 * never stands for two trees.
 */
#ifndef AUDIT_PLACE_PRIV_H
#define AUDIT_PLACE_PRIV_H

#include "audit/line_priv.h"
#include "gate/base/err.h"

#include <stdbool.h>

/* Refuses what does not keep what was synced, or may hang: memory, networks, FUSE. */
int place_check_fs(const char *dir, struct err *err);

/* The name of this folder's log; conf's, or with a number behind it. */
int place_origin(int dir_fd, const char *origin, char ret[LINE_ORIGIN_MAX + 1], struct err *err);

#define PLACE_ASIDE_MAX 32

/* Moves the log's files into damaged-N; ret: its name.  Locks the folder meanwhile. */
int place_set_aside(const char *dir, char ret[PLACE_ASIDE_MAX], struct err *err);

#endif
