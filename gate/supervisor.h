/*
 * supervisor.h - starts the gate's processes, connects them, starts them anew
 * when they die, and ends them in order.
 *
 * What the processes do is not known here: `run` is called in each new one,
 * with its control socket.  Over that socket (io_send_fds) a process gets
 *
 *	auditor, resolver   'w' and a descriptor: a connection to a worker; auditor: 'm', to the
 *	                    admin process, and 'b', to that of the sandbox API
 *	worker, watcher     'a' or 'r' and a descriptor: to the auditor, to the resolver;
 *	                    'l', 'x': a listener comes, goes (proxy/runtime.h; workers only);
 *	                    'g': go, accept callers, or watch; 'd': accept no more, serve to the end
 *	                    what was begun (workers only); 'n': so already, and other rules
 *	                    follow (proxy/worker.h); 's': finish soon and end
 *	admin               'a' and a descriptor; 'k', 'x', 'e': see gate/admin.h
 *	keeper              nothing
 *
 *	sandboxes           'a' and a descriptor; 'c' and one: a connection to a worker
 *	worker              'c' and a descriptor: a connection of that process
 *
 * and says 'y' once when it is ready; a worker or watcher says 'a' or 'r' when it has lost
 * that connection though the other process lives (the admin process 'a'); the admin process
 * says 'q' and a word (gate/admin.h); the process behind the sandbox API says 'c' for each
 * connection to a worker that it wants.  End of file: the supervisor is gone, or
 * (auditor, resolver, keeper) it is time to end.
 *
 * SIGHUP reloads (reload.c): a ROLE_READER process reads the configuration anew and
 * says 'b' with the descriptor of a bundle, or 'e' and, up to its end, why not.  Workers
 * of the next generation start beside the old ones; when all are ready, the
 * old ones are told 'd' and the new ones 'g'; then the watcher is told 's', and another one
 * takes its place.  Any failure: the old ones stay.
 *
 * A process that dies before all were ready once ends the gate: something is
 * wrong that another try would not mend.  Later on a dead one is replaced at
 * once; if a role dies five times within ten seconds, after a second each.
 */
#ifndef GATE_SUPERVISOR_H
#define GATE_SUPERVISOR_H

#include "gate/admin.h"
#include "gate/base/err.h"
#include "gate/privs.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct audit_state;
struct engines;
struct proxy_conf;

struct watched;

struct supervisor_view {
	const struct proxy_conf *proxy;
	const struct engines *engines;
	const struct audit_state *audit;
	struct watched *watched;
};

struct supervisor_conf {
	/* In the new process; returns its exit status. */
	int (*run)(void *arg, enum role role, int control);

	/* Called once, when all is open and no process was started yet.  May be NULL. */
	int (*confine)(void *arg, struct err *err);

	/* Called every two seconds: true when workers should be replaced.  May be NULL. */
	bool (*stale)(void *arg);

	/* Called for each process that has ended.  May be NULL. */
	void (*ended)(void *arg, pid_t pid);

	/* Called once, when all processes were ready for the first time.  May be NULL. */
	void (*ready)(void *arg);

	/*
	 * Reload.  next() takes the descriptor; what it holds is what new workers are to
	 * serve; ERR_CONFIG says why it cannot be.  switch_to_next() makes it what is
	 * served, in this process or in a new worker; forget_next() drops it.  *ret_generation
	 * lives until one of these is called.
	 * All NULL: SIGHUP is refused.
	 */
	int (*next)(void *arg, int fd, const char **ret_generation, struct err *err);
	void (*switch_to_next)(void *arg);
	/* A bundle of before, for next(); -1: there is none that begins so. */
	int (*kept)(void *arg, const char *generation);
	int (*next_bundle)(void *arg); /* of what next() took, a descriptor that stays the owner's;
					  NULL: none */
	void (*forget_next)(void *arg);

	/*
	 * What the admin process asks of the listeners made at run time: fills the reply; *ret_made
	 * is one that workers are to get, and with *ret_gone reply->row is one that they are to
	 * end. expired() ends one whose lifetime is over, due() says when it is to be called;
	 * runtime() gives each that there is, or NULL; status() adds to the status.  All NULL:
	 * there are none.
	 */
	void (*admin)(void *arg, const struct admin_word *w, struct admin_reply *reply,
		      const struct runtime_listener **ret_made, bool *ret_gone);
	bool (*expired)(void *arg, struct runtime_row *ret);
	uint64_t (*due)(void *arg);
	const struct runtime_listener *(*runtime)(void *arg, size_t i);
	void (*status_more)(void *arg, struct arena *a, struct jv *tree);
	/* What the status tells beside the processes, as it is now.  May be NULL. */
	void (*describe)(void *arg, struct supervisor_view *ret);

	/* Whether the auditor makes progress; one that does not for hung_ms is killed.  NULL:
	 * nobody looks. */
	struct audit_state *audit;
	unsigned hung_ms;

	void *arg;
	size_t workers;
	const int *listeners; /* descriptors that workers keep; everything else is closed */
	size_t listener_count;
	int status; /* the admin socket, which the admin process keeps; -1: there is neither */
	int state;  /* a folder that it keeps as well, or -1 */
	const int *sandbox_listeners; /* which of listeners the sandbox process keeps, and no
					 worker; none: there is no such process */
	size_t sandbox_listener_count;
	int sandbox_state;      /* a folder that it keeps as well */
	const int *keeper;      /* descriptors that the keeper keeps */
	size_t keeper_count;    /* 0: there is no keeper */
	const char *generation; /* for the status; next() gives the later ones */
	const char *config;     /* for the status: path of the configuration */
};

/*
 * Serves until SIGTERM or SIGINT, and until all processes are gone.  0, or -1
 * when the gate could not be started.
 */
int supervisor_run(const struct supervisor_conf *conf, struct err *err);

/*
 * In a new process: how the one that had its place before ended, if that was
 * before its time: "worker 4702 ended: signal 6 (Aborted)"; else "".
 */
const char *supervisor_predecessor(void);

/* Exit status of an auditor, and then of the gate, whose log cannot be gone on with (EX_CONFIG). */
#define STATUS_DAMAGED 78

#endif
