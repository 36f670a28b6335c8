/*
 * serve.h - the gate as a whole: its sockets, its users, what each process does.
 */
#ifndef GATE_SERVE_H
#define GATE_SERVE_H

#include "gate/admin.h"
#include "gate/bundle.h"
#include "gate/keeper/keeper.h"
#include "gate/privs.h"
#include "gate/self.h"

#include <time.h>

#define CONFIG_ARENA_MAX ((size_t)64 << 20)

/* A configuration that was read, with the memory it lives in. */
struct loaded {
	struct bundle bundle;
	struct arena *arena;
	struct config config;
};

int load(const char *config_path, struct loaded *ret, struct err *err);
/* With the keys of listeners with TLS, which not everybody can read. */
int load_to_serve(const char *config_path, struct loaded *ret, struct err *err);
/* For those who mend the ledger. */
int load_without_ledger(const char *config_path, struct loaded *ret, struct err *err);
void unload(struct loaded *l);

#define KEPT_MAX   4                  /* generations that can be returned to */
#define KEPT_BYTES ((size_t)32 << 20) /* of all of them */

/* What was in force before: the sealed bundle. */
struct kept_bundle {
	int fd;
	size_t bytes;
	time_t until; /* when it was replaced */
	char generation[HASH_HEX_LEN + 1];
};

struct serve {
	struct loaded *loaded;
	struct kept_bundle kept[KEPT_MAX]; /* the oldest first */
	size_t kept_count;
	struct loaded next;      /* read by a reload, not in force yet */
	struct bundle successor; /* what workers that are replaced get of it */
	pid_t supervisor;
	bool root;                          /* the processes get users of their own */
	struct confine_ids ids[ROLE_COUNT]; /* if root */
	int *listeners;                     /* descriptors, one a listener */
	int status;                         /* the admin socket */
	int state;                          /* the folder of admin { state }; -1: none */
	int *sandbox_listeners;             /* of these, those that serve the sandbox API */
	size_t sandbox_listener_count;
	int sandbox_state;             /* the folder of sandboxes { state }; -1: none */
	struct admin_sockets *sockets; /* listeners made at run time */
	bool accept_damage;            /* of the log */
	struct audit_state *audit_state;
	struct engines *engines;        /* likewise */
	struct metrics *metrics;        /* likewise */
	struct rates *rates;            /* shared by all workers, of every generation */
	struct suppressed *suppressed;  /* likewise */
	struct quotas *quotas;          /* shared by all workers, likewise */
	struct updates *updates;        /* likewise */
	struct approvals *approvals;    /* of workers and the process behind the admin socket */
	struct emergency *emergency;    /* likewise, written by the admin process */
	struct watched *watched;        /* ... and by watchers */
	struct keeper_conf keeper;      /* if the configuration wants one */
	int keeper_fds[KEEPER_FDS_MAX]; /* all that it names */
	size_t keeper_fd_count;
	char self[SELF_ID_MAX + 1];       /* the container that it runs in, or "" */
	struct dial_addresses *addresses; /* one a backend; of those at tcp:// */
};

/* Looks up the users; refuses root and users that do not exist. */
int serve_users(struct serve *s, struct err *err);

/* Which container is the gate's own, unless the configuration says so. */
void serve_own_container(const struct serve *s, struct config *c);

/* Makes the log's folder if it is missing; the auditor must own it. */
int serve_log_folder(const struct serve *s, struct err *err);

/* Makes the folders of admin { sockets, state } if they are missing. */
int serve_open_admin(struct serve *s, struct err *err);
void serve_close_admin(struct serve *s);

/* What the process behind the sandbox API needs, if there is one; sockets are open. */
int serve_open_sandboxes(struct serve *s, struct err *err);
void serve_close_sandboxes(struct serve *s);

/* supervisor.h: admin, expired, due, runtime, status_more */
void serve_admin(void *arg, const struct admin_word *w, struct admin_reply *reply,
		 const struct runtime_listener **ret_made, bool *ret_gone);
bool serve_expired(void *arg, struct runtime_row *ret);
uint64_t serve_due(void *arg);
const struct runtime_listener *serve_runtime(void *arg, size_t i);
void serve_status_more(void *arg, struct arena *a, struct jv *tree);

/*
 * What the keeper gets of somebody who is root: its socket, its folder, control groups, and the
 * process that starts what runs in sandboxes. Before the supervisor is confined.
 */
int serve_open_keeper(struct serve *s, struct err *err);
void serve_close_keeper(struct serve *s);

int serve_open_sockets(struct serve *s, struct err *err);
void serve_close_sockets(struct serve *s);

/* Where the engines at tcp:// are; a name that is not known is said in the log. */
int serve_look_up(struct serve *s, struct err *err);

/* To a configuration that was read later: backends are the same in every generation. */
int serve_give_addresses(const struct serve *s, struct config *c, struct arena *a, struct err *err);

/*
 * The groups of the engines' sockets, which workers need to connect.  True if
 * they are not what they were at the last call; a missing socket changes nothing.
 */
bool serve_engine_groups(struct serve *s);

/*
 * A reload (supervisor.h: next, switch_to_next, forget_next).  What only a restart
 * can change, the rows of restart.def, must be as it was.
 */
int serve_next(struct serve *s, int fd, const char **ret_generation, struct err *err);
void serve_switch(struct serve *s);
void serve_forget(struct serve *s);

/*
 * A bundle that was in force before, whose generation begins so: a descriptor for the caller,
 * to be given to serve_next().  -1: there is none, or more than one.
 */
int serve_kept(void *arg, const char *generation);

/* ERR_CONFIG names the first setting that differs and needs a restart. */
int restart_needed(const struct config *now, const struct config *next, struct err *err);

/* What a process does from its start to its end; returns its exit status. */
int serve_role(struct serve *s, enum role role, int control);

#endif
