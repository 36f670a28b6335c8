/*
 * relay.h - raw bytes both ways between a caller and a service, after a 101.
 *
 * Each direction goes through a pipe (splice), so push-back is the kernel's
 * and nothing is buffered here.  The end of one direction is passed on as a
 * half-close; the other goes on.  A peer that is gone altogether ends both, as
 * soon as what it still sent has been passed on.  No timer cuts a relay that
 * both sides keep open.
 */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "proxy/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct relay;

/* done: both directions are over; called once, from the loop, never from relay_start(). */
typedef void relay_done_fn(void *arg, uint64_t to_service, uint64_t to_caller);

/*
 * caller_fd stays the caller's own; service_fd becomes the relay's.  early_*:
 * bytes that already arrived for the other side; their memory is taken over.
 * NULL: no memory or descriptors; service_fd is closed then, too.
 */
struct relay *relay_start(struct loop *l, int caller_fd, struct buf *early_caller, int service_fd,
			  struct buf *early_service, relay_done_fn *done, void *arg,
			  struct err *err);

/*
 * To be called now and then: a service that takes nothing more from a caller
 * who has gone is given RELAY_LINGER_MS, then both are over.  True: it was
 * over, done has been called, r is gone.
 */
#define RELAY_LINGER_MS 800
bool relay_expire(struct relay *r, uint64_t now_ms);

/* Ends it at once; done is not called. */
void relay_stop(struct relay *r);

#endif
