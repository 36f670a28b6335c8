/* admin_priv.h - the process behind the admin socket, between its loop and its verbs. */
#ifndef GATE_ADMIN_PRIV_H
#define GATE_ADMIN_PRIV_H

#include "audit/client.h"
#include "gate/admin.h"
#include "gate/base/buf.h"
#include "gate/base/uuid.h"
#include "proxy/emergency.h"
#include "proxy/loop.h"

#define ADMIN_USES_MAX 32 /* connections at once */
#define ADMIN_USES_UID 8  /* of one user; the rest is for others */

struct admin_use;

typedef void admin_reply_fn(struct admin_use *u, const struct admin_reply *reply, struct span text);
typedef void admin_step_fn(struct admin_use *u);

/* One request, from its connection to its answer; the process's own work is one without a caller.
 */
struct admin_use {
	struct watch watch; /* first */
	struct admin *a;
	int fd; /* -1: nobody waits for the answer (any more) */
	struct admin_peer peer;
	unsigned roles;
	char roles_text[32];
	bool own;      /* the process's own work */
	bool answered; /* the answer is on its way; nothing else happens */
	bool waits;    /* for its turn, or until the process is ready: then begin is called */
	uint64_t since_ms, deadline_ms;
	struct buf in, out;
	struct arena *arena;
	struct admin_request req;
	const char *op;
	char id[UUID_TEXT_LEN + 1];
	admin_step_fn *act;    /* when the decision is on disk */
	admin_reply_fn *reply; /* when the supervisor has answered */
	uint64_t ticket;       /* of what it was asked; 0: nothing */
	uint64_t reloads;
	uint64_t after,
		wait_ms;        /* approvals.wait: what is known; until when. 0: it does not wait */
	struct admin_kept kept; /* the listener that it is about */
	char owner[EMERGENCY_OWNER_MAX + 1]; /* ... or whose quarantine; "" */
	char profile[RUNTIME_NAME_MAX + 1];  /* ... or which is to warn only; "" */
	char note[160];                      /* for its records, or "" */
	bool owner_known;                    /* somebody has that owner now */
	enum admin_answer answer;
	char text[ERR_MSG_MAX];
	struct buf result; /* members of the answer, as JSON */
};

struct admin {
	const struct admin_conf *conf;
	struct loop loop;
	struct watch listen_watch, control_watch, audit_watch;
	int control;
	struct audit_client *audit;
	struct admin_use *uses[ADMIN_USES_MAX]; /* of callers */
	struct admin_use *holder;               /* changes the listeners now: one at a time */
	struct admin_use keeper;                /* restores listeners when the process starts */
	struct admin_state state;
	struct emergency_view emergency; /* what is in force */
	size_t restored;                 /* so many of the state have been seen to */
	bool damaged;                    /* the state cannot be read, so nothing is added to it */
	bool ready;                      /* and has said so */
	uint64_t started_ms, log_seen_ms, tick_ms, next_ticket;
	bool over;
};

/* --- admin_process.c, for the verbs --- */

/* Asks the supervisor; u->reply is called with its answer. */
void admin_ask(struct admin_use *u, enum admin_ask ask, const struct runtime_row *row,
	       admin_reply_fn *reply);

void admin_ask_word(struct admin_use *u, struct admin_word *word, admin_reply_fn *reply);

/*
 * Says whether it may be done (ADMIN_DONE) or why not; note is for the record, and may be NULL.
 * Then, when that is on disk, u->act is called, or the refusal is answered.
 */
void admin_decide(struct admin_use *u, enum admin_answer how, const char *note);

/* It has been done, or why not; u->text says more.  The outcome goes on record, then the answer. */
void admin_finish(struct admin_use *u, enum admin_answer how);

/* What has ended, or is there again, without anybody having asked, goes on record. */
struct admin_noted {
	const char *op, *kind, *name, *text;
	struct span facts; /* JSON text */
};

void admin_note(struct admin *a, const struct admin_noted *what);
void admin_note_row(struct admin *a, const char *op, const struct runtime_row *row,
		    const char *text);

/* --- admin_emergency.c --- */

/*
 * When the process starts: what is kept comes into force, if this is the gate's start; else the
 * file gets what is in force.
 */
void admin_emergency_open(struct admin *a);

/* 0 also where nothing can be kept, for want of a folder. */
int admin_emergency_keep(struct admin *a, const struct emergency_view *view, struct err *err);

void admin_begin_quarantine(struct admin_use *u);
void admin_begin_quarantine_release(struct admin_use *u);
void admin_begin_quarantine_list(struct admin_use *u);

/* --- admin_modes.c --- */

void admin_begin_mode_warn(struct admin_use *u);
void admin_begin_mode_enforce(struct admin_use *u);
void admin_begin_mode_list(struct admin_use *u);
void admin_modes_tick(struct admin *a);

/* --- admin_verbs.c --- */

/* The request has been read and its caller may: what is next. */
void admin_begin(struct admin_use *u);

/* It changes listeners, which one does at a time. */
bool admin_needs_turn(const struct admin_use *u);

/* Restores the next listener of the state; false: all have been seen to. */
bool admin_restore_next(struct admin *a);

/* --- admin_approvals.c --- */

void admin_begin_approvals_list(struct admin_use *u);
void admin_begin_approvals_wait(struct admin_use *u);
void admin_begin_approvals_show(struct admin_use *u);
void admin_begin_approvals_allow(struct admin_use *u);
void admin_begin_approvals_deny(struct admin_use *u);
void admin_approvals_tick(struct admin *a);

/* --- admin_verbs.c --- */

void admin_on_ended(struct admin *a, const struct runtime_row *row);
void admin_on_reloaded(struct admin *a);

#endif
