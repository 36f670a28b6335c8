/*
 * watched.h - what workers and watchers of one gate have in common, in shared memory.
 *
 * It outlives workers, watchers and reloads, and ends with the gate.
 */
#ifndef PROXY_WATCHED_H
#define PROXY_WATCHED_H

#include "gate/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct watched;

/* Shared by all processes forked from now on; never freed before they end. */
struct watched *watched_create(struct err *err);

/* Notes whose rules a watcher follows; true if the one before followed others, or was none. */
enum watched_turn {
	WATCHED_FIRST = 0, /* of this gate */
	WATCHED_SAME,      /* takes over from one that ended */
	WATCHED_RELOAD     /* other rules are in force since the one before */
};
enum watched_turn watched_take(struct watched *w, const char *generation);

#endif
