/* supervisor_priv.h - the supervisor's state, between its parts. */
#ifndef GATE_SUPERVISOR_PRIV_H
#define GATE_SUPERVISOR_PRIV_H

#include "gate/admin.h"
#include "gate/base/buf.h"
#include "gate/supervisor.h"

#include <stdint.h>
#include <sys/types.h>

#define DEATHS_MAX      5 /* of one role, within ... */
#define DEATHS_MS       10000
#define DEATHS_PAUSE_MS 1000
#define ASKED_PAUSE_MS  1000

struct process {
	enum role role;
	pid_t pid;   /* 0: none */
	int control; /* our end; -1: closed */
	bool ready;
	bool leaving; /* was told to end */
	bool hurried; /* ... and, serving what was begun, to end soon */
	bool failing; /* the reader: has begun to say what is wrong */
	uint64_t started_ms;
	unsigned restarts; /* of this place, since the gate was started */
	uint64_t asked_ms; /* when it last asked for a connection that it had lost */
	char lost[224];    /* how the last one in this place ended before its time, or "" */
};

/* When processes of one role died, the oldest first. */
struct deaths {
	uint64_t at_ms[DEATHS_MAX];
	uint64_t pause_until_ms;
};

#define GENERATION_MAX  80 /* bytes of its name */
#define GENERATIONS_MAX 4  /* whose workers may still finish what was begun */

enum reload_phase {
	RELOAD_IDLE = 0,
	RELOAD_READING, /* the reader is at work */
	RELOAD_STARTING /* workers of the next generation get ready */
};

struct reload {
	enum reload_phase phase;
	bool again; /* asked for once more meanwhile */
	uint64_t deadline_ms;
	char generation[GENERATION_MAX]; /* of the next one */
	struct buf why;                  /* what the reader says went wrong */
	unsigned count;                  /* that have ended, one way or the other */
	bool failed;                     /* the last one */
	char reason[ERR_MSG_MAX];        /* why, or "" */
	int64_t ended_at;                /* the last one; seconds since 1970 */
};

/* Of the auditor's progress. */
struct watchdog {
	pid_t pid;
	uint64_t beats;     /* when it last made some */
	uint64_t looked_ms; /* 0: not yet */
	uint64_t still_ms;  /* without any, as far as this process itself has seen */
};

enum stopping {
	STOPPING_NOT = 0,
	STOPPING_WORKERS, /* they finish their exchanges */
	STOPPING_REST     /* the auditor is last */
};

struct supervisor {
	const struct supervisor_conf *conf;
	struct process auditor, resolver, reader, watcher, admin, sandbox, keeper;
	struct process *workers; /* conf->workers of them */
	struct process *coming;  /* of the next generation; as many */
	struct process *leaving; /* replaced workers that still finish; GENERATIONS_MAX times */
	struct deaths deaths[ROLE_COUNT];
	enum stopping stopping;
	uint64_t stop_deadline_ms, next_look_ms, started_ms;
	bool servers_ready; /* auditor and resolver were, once */
	bool ever_ready, failed;
	bool sealed; /* the last auditor ended because of its log */
	struct err failure;
	struct watchdog watchdog;
	int epoll, signals, kernel_log;
	struct reload reload;
	size_t next_worker;              /* that gets a connection of the sandbox process */
	bool replace;                    /* workers are to be replaced when there is time */
	char generation[GENERATION_MAX]; /* of those that serve */
};

/* All processes have said that they are ready. */
bool supervisor_ready(const struct supervisor *s);

/* One word without a descriptor; a process that does not read it is killed. */
void supervisor_tell(struct process *p, char word);

/* Worker i of all that live, of every generation; NULL behind the last. */
struct process *supervisor_worker_at(struct supervisor *s, size_t i);

/* Gives a process another place; the old one is empty then. */
void supervisor_move(struct supervisor *s, struct process *from, struct process *to);

/* All workers could leave now; if not, the one that left first is told to hurry. */
bool supervisor_has_room(struct supervisor *s);

/*
 * The serving workers accept nobody any more and get other places, where they serve
 * to its end what was begun.  There is room for them.  bundle: what follows, or -1.
 */
void supervisor_let_go(struct supervisor *s, int bundle);

/*
 * The watcher is to end; unless the gate stops, another one takes its place, under what is
 * in force by then.
 */
void supervisor_end_watcher(struct supervisor *s);

/* --- reload.c --- */

void reload_open(struct supervisor *s);
void reload_close(struct supervisor *s);

/* SIGHUP */
void reload_ask(struct supervisor *s);

/* What was in force before, by the same way; the bundle is taken. */
bool reload_can_go_back(const struct supervisor *s);
void reload_go_back(struct supervisor *s, int bundle);

/* The reader's control socket has something to read, or ended. */
void reload_on_reader(struct supervisor *s);

/* One of the reader and the coming workers ended before its time. */
void reload_on_death(struct supervisor *s, const struct process *p, const char *how);

/* Called every turn: the switch, when all are ready and there is room; the end of patience. */
void reload_go_on(struct supervisor *s);

/* When reload_go_on() is to be called at the latest, on clock_boot_ms(). */
uint64_t reload_deadline(const struct supervisor *s);

/* The gate stops. */
void reload_give_up(struct supervisor *s, const char *why);

/* --- watchdog.c --- */

/* Called every turn: ends an auditor that hangs; and when to look next, on clock_boot_ms(). */
void watchdog_look(struct supervisor *s);
uint64_t watchdog_due(const struct supervisor *s);

/* --- process.c --- */

/*
 * Forks; the child runs conf->run and never returns, a coming worker behind
 * conf->switch_to_next.  -1 if it could not be started.
 */
int process_start(struct supervisor *s, struct process *p);

/* It is of the next generation. */
bool process_is_coming(const struct supervisor *s, const struct process *p);

/* Closes the control socket; the process is to end or has ended. */
void process_cut(struct supervisor *s, struct process *p);

/* Gives a worker or a watcher its connection to the auditor or the resolver. */
void process_connect(const struct process *server, const struct process *client);

/* Connects the sandbox process with a worker, by the same tag for both. */
void process_connect_sandbox(const struct process *sandbox, const struct process *worker);

/* Says how it ended: "exit status 2", "signal 11 (Segmentation fault)". */
void process_ended(struct supervisor *s, const struct process *p, int status, char *out,
		   size_t size);

void deaths_note(struct deaths *d, uint64_t now_ms);

/* --- status.c --- */

void status_write(const struct supervisor *s, struct buf *out);

/* --- supervisor_admin.c --- */

/* The admin process has said 'q'. */
void admin_on_word(struct supervisor *s);
void admin_on_reload_ended(struct supervisor *s);

/* Ends listeners whose lifetime is over; and when that is to be done next, on clock_boot_ms(). */
void admin_look_around(struct supervisor *s);
uint64_t admin_due(const struct supervisor *s);

/* --- kernel_log.c --- */

/* The kernel's own messages, for what a filter killed; -1 if they cannot be read. */
int kernel_log_open(void);

/* The name or number of the system call for which pid was killed; "" if unknown. */
void kernel_log_syscall(int fd, pid_t pid, char *out, size_t size);

#endif
