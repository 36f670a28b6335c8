/*
 * upstream.h - connections to a guarded service, and one request on one of them.
 *
 * A pool keeps idle connections of one backend; a call takes one (or dials),
 * sends a complete head and body, or streams a body, and is told of the reply
 * through its handlers.  Reply bodies are buffered to a cap; beyond it the
 * connection is not read, so push-back reaches the service.  No timer here:
 * the exchange knows what it waits for.
 *
 * Handlers are called from the loop, never from within upcall_start().  After
 * `fail` or after the caller has released the call, none is called any more.
 */
#ifndef PROXY_UPSTREAM_H
#define PROXY_UPSTREAM_H

#include "backends/backend.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "proxy/loop.h"

#include <stdbool.h>

#define UPCALL_BUFFER  131072 /* bytes of a reply body that wait for the caller */
#define UPCALL_PENDING 262144 /* bytes of a request that wait for the service */
#define UPCALL_WHY_MAX 160

struct upstream;
struct upcall;

enum upcall_fault {
	UPCALL_FINE = 0,
	UPCALL_UNREACHABLE, /* no connection, or it ended before a reply began */
	UPCALL_CUT,         /* the reply ended in the middle */
	UPCALL_NONSENSE     /* the reply is not HTTP */
};

struct upcall_handlers {
	void (*head)(void *arg, const struct reply_head *head);
	void (*data)(void *arg); /* there is more to take, or the reply is complete */
	void (*room)(void *arg); /* a streamed request body may go on; NULL: there is none */
	void (*fail)(void *arg, enum upcall_fault fault);
};

/* lost: told when idle connections end, which means that the service restarts; may be NULL. */
struct upstream *upstream_open(struct loop *l, const char *socket_path, void (*lost)(void *arg),
			       void *lost_arg);

/* The same, to wherever it is (dial.h); takes the dial, also when it fails. */
struct dial;
struct upstream *upstream_open_dial(struct loop *l, struct dial *d, void (*lost)(void *arg),
				    void *lost_arg);
void upstream_close(struct upstream *u);

/*
 * Another number each time the service was, or may have been, started anew.  What was
 * learnt of it under one number is not to be relied on under the next.
 */
uint64_t upstream_epoch(const struct upstream *u);

/*
 * Looks whether kept connections have ended, before the loop would tell: for what must
 * not begin with what was learnt of a service that has gone meanwhile.
 */
void upstream_refresh(struct upstream *u);

/* Connections that were made since it was asked last. */
uint64_t upstream_take_dials(struct upstream *u);

struct upcall_request {
	struct span head;  /* complete, with its empty line */
	struct span body;  /* complete; empty when it is streamed */
	bool streams_body; /* upcall_send() follows */
	bool chunked;      /* how the streamed body is framed */
	bool is_head;      /* HEAD: the reply has no body */
	bool repeatable;   /* may be sent again when a kept connection proves dead */
	uint64_t epoch;    /* not 0: sent only while upstream_epoch() is this */
};

/* NULL: the service cannot be reached; or, with ESTALE in err->sys, it is under another epoch. */
struct upcall *upcall_start(struct upstream *u, const struct upcall_request *req,
			    const struct upcall_handlers *handlers, void *arg, struct err *err);

/* Streams a piece of the body; returns how much was taken (0: wait for `room`). */
size_t upcall_send(struct upcall *c, struct span piece);
void upcall_send_end(struct upcall *c);

/* What of the reply's body is there; upcall_take() drops what was used. */
struct span upcall_body(const struct upcall *c);
void upcall_take(struct upcall *c, size_t len);

/* In `fail`: what the system or TLS said, or "". */
const char *upcall_why(const struct upcall *c);

/* True once the whole reply has come (some of it may still wait to be taken). */
bool upcall_complete(const struct upcall *c);

/* -1: the length of the body is not known. */
int64_t upcall_length(const struct upcall *c);

/*
 * After a 101: hands over the descriptor (non-blocking) and what came behind
 * the head.  The call is over; leftover is to be freed by the caller.
 */
int upcall_hijack(struct upcall *c, struct buf *ret_leftover);

/* The end of a call: a complete one goes back to the pool, another is closed. */
void upcall_release(struct upcall *c);

#endif
