/*
 * worker.h - one worker process: an event loop around listeners, exchanges,
 * the auditor and the resolver.
 *
 * Control socket from the supervisor (io_recv_fds): tag 'a' and a descriptor:
 * a new connection to an auditor; 'r': a new connection to a resolver; 'g':
 * go, accept callers; 'l', a row (runtime.h) and a descriptor: one more listener; 'x' and a row:
 * that one has ended; 'c' and a descriptor: a connection of the process behind the sandbox API
 * (behalf.h); 'd': accept no more, and end when all that was begun has
 * ended, with the bundle that follows (streams.c), if there is one; 'n' and a bundle: one that
 * follows still later; 's': as 'd', but streams are ended after a few seconds.  The worker sends
 * 'y' once when it is ready to be told 'g', and 'a' or 'r' when it has been without that connection
 * for a while.  End of file: the supervisor is gone; end at once.
 */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H

#include "gate/base/err.h"
#include "proxy/conf.h"

#include <stdio.h>

struct worker;

/* Loads rules and opens backends.  NULL: ERR_CONFIG says what is wrong. */
struct worker *worker_open(const struct proxy_conf *conf, struct err *err);
void worker_close(struct worker *w);

/* Serves until told to stop.  Opens no file and starts no process after this call. */
int worker_run(struct worker *w, int control_fd);

/*
 * `sallyport check` and `explain`: judges the raw HTTP/1.1 requests in text, one
 * after the other, through the same front as on a socket, and prints one JSON
 * line each.  facts: a facts file's tree, or NULL to ask the live backend and
 * resolve paths in this process.  identity: "" takes what the listener gives a
 * caller without a name.  Returns 0 all allowed, 1 some not, 2 nothing could be judged.
 */
struct check_request {
	const char *listener, *identity;
	const struct jv *facts;
	struct span text;
	bool explain;               /* for people instead of JSON */
	struct engine_trace *trace; /* filled by each judgement; may be NULL */
	/* Called behind what is explained of a request, if set; facts: NULL if no rule was asked.
	 */
	void (*more)(const struct check_request *req, const struct jv *facts, const char *op,
		     const struct decision *d);
	FILE *out;
};

int worker_check(struct worker *w, const struct check_request *req, struct err *err);

#endif
