/*
 * watcher.h - the process that looks at engines instead of serving callers.
 *
 * It is a struct worker (worker_priv.h) without listeners and without a front: the
 * same loop, rules, adapters, pools of connections, auditor and resolver, so that what
 * works in an exchange works here.  There is one; a dead one is replaced; at a reload
 * another one with the new rules takes its place.  When the gate stops it ends behind
 * the workers.
 *
 * What it does is done by modules.  To add one: a file with a struct watcher_module,
 * and a row in modules[] of watcher.c.  All functions but open may be NULL; all are called from
 * the loop, and must not wait.  A module may use w->loop, w->rules, w->audit (with
 * worker_tell(), audit_tell(), audit_require()), w->services[backend] (ops, backend, and
 * upcall_start() on its pool), and questions to the resolver.
 */
#ifndef PROXY_WATCHER_H
#define PROXY_WATCHER_H

#include "gate/base/err.h"
#include "gate/base/span.h"
#include "proxy/conf.h"

struct worker;

enum watcher_why {
	WATCHER_START = 0, /* the first time since the gate was started */
	WATCHER_RECONNECT, /* the engine, or the watcher before this one, had gone */
	WATCHER_RELOAD     /* other rules are in force than when it was last looked at */
};

struct watcher_module {
	const char *name;

	/* NULL: err says why, and the process ends. */
	void *(*open)(struct worker *w, struct err *err);
	void (*close)(void *module);

	/* The engine answers, and its events are followed from now on. */
	void (*look)(void *module, size_t backend, enum watcher_why why);

	/* The connection has ended, or could not be made; look() follows when it is back. */
	void (*lost)(void *module, size_t backend);

	/*
	 * Where its events are to begin, as the engine writes times; the first module that
	 * has this function says it.  "": from now on.
	 */
	const char *(*since)(void *module, size_t backend);

	/* A line of the engine's events, without its end; whatever the engine makes of it. */
	void (*event)(void *module, size_t backend, struct span line);

	/* Every WORKER_TICK_MS. */
	void (*tick)(void *module);

	/* Nothing that was begun is left; a watcher that is to end waits some seconds for it. */
	bool (*idle)(const void *module);
};

/* Then worker_run() and worker_close(). */
struct worker *watcher_open(const struct proxy_conf *conf, struct err *err);

#endif
