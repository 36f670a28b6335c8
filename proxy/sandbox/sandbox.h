/*
 * sandbox.h - the process behind the sandbox API.
 *
 * Callers speak HTTP and JSON to it (`sallyport help sandbox`, /v1/openapi.json): make a
 * sandbox, run commands in it, copy files, end it.  It starts nothing by itself and reaches no
 * engine: what is asked for it asks of workers, for whoever asked, over connections that the
 * supervisor makes (proxy/behalf.h).  So everything is judged, recorded and attested as if the
 * caller had spoken to the engine.  What it adds is order: lifetimes, which are kept over a
 * restart, and the choice of a backend.
 *
 * A thread a caller (httpd.h), and one that ends what has lived long enough; they block.  The
 * thread that calls sandboxes_run() has the control socket and the auditor.
 *
 * Control socket from the supervisor (io_recv_fds): 'a' and a descriptor, a connection to an
 * auditor; 'c' and one, a connection to a worker, for each 'c' that was asked for.  The end of
 * file: end.
 */
#ifndef PROXY_SANDBOX_SANDBOX_H
#define PROXY_SANDBOX_SANDBOX_H

#include "gate/base/err.h"
#include "proxy/conf.h"

struct sandboxes;

struct sandbox_conf {
	const struct proxy_conf *proxy;
	int state; /* the folder that keeps them */
	int control;
};

/* Reads what there was before; nobody is served yet.  NULL: it cannot be. */
struct sandboxes *sandboxes_open(const struct sandbox_conf *conf, struct err *err);

/* Serves until the control socket ends.  The exit status. */
int sandboxes_run(struct sandboxes *s);
void sandboxes_close(struct sandboxes *s);

#endif
