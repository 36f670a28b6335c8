/*
 * loop.h - the worker's event loop: epoll, and what to do after each turn.
 *
 * A watch is embedded in whatever it belongs to and must be taken out before
 * that is freed.  Taking one out also drops its event if one is already
 * waiting in this turn.
 */
#ifndef PROXY_LOOP_H
#define PROXY_LOOP_H

#include "gate/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_BATCH 256 /* events taken in one turn */

struct watch;

typedef void watch_fn(struct watch *w, uint32_t events);

struct watch {
	int fd; /* -1: not watched */
	uint32_t events;
	watch_fn *ready;
};

struct loop {
	int epfd;
	struct epoll_event batch[LOOP_BATCH];
	int batch_at, batch_count;
	uint64_t now_ms; /* CLOCK_BOOTTIME at the start of the turn */
};

int loop_open(struct loop *l, struct err *err);
void loop_close(struct loop *l);

/* Starts watching fd, which w does not own. */
int loop_watch(struct loop *l, struct watch *w, int fd, uint32_t events, watch_fn *ready,
	       struct err *err);

/*
 * events 0 takes the descriptor out of epoll until the next change: an entry
 * without events would still report a hang-up, for ever.
 */
void loop_change(struct loop *l, struct watch *w, uint32_t events);
void loop_unwatch(struct loop *l, struct watch *w); /* fine if it is not watched */

/* The descriptor has been closed by its owner, which took it out of epoll. */
void loop_forget(struct loop *l, struct watch *w);

/* Waits at most timeout_ms and calls what is ready. */
void loop_turn(struct loop *l, int timeout_ms);

#endif
