/* supervisor_priv.h - the supervisor's state, between its parts. */
#ifndef GATE_SUPERVISOR_PRIV_H
#define GATE_SUPERVISOR_PRIV_H

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

enum stopping {
	STOPPING_NOT = 0,
	STOPPING_WORKERS, /* they finish their exchanges */
	STOPPING_REST     /* the auditor is last */
};

struct supervisor {
	const struct supervisor_conf *conf;
	struct process auditor, resolver;
	struct process *workers; /* conf->workers of them */
	struct process *leaving; /* replaced workers that still finish; as many */
	struct deaths deaths[ROLE_COUNT];
	enum stopping stopping;
	uint64_t stop_deadline_ms, next_look_ms, started_ms;
	bool servers_ready; /* auditor and resolver were, once */
	bool ever_ready, failed;
	struct err failure;
	int epoll, signals, kernel_log;
};

/* All processes have said that they are ready. */
bool supervisor_ready(const struct supervisor *s);

/* --- process.c --- */

/* Forks; the child runs conf->run and never returns.  -1 if it could not be started. */
int process_start(struct supervisor *s, struct process *p);

/* Closes the control socket; the process is to end or has ended. */
void process_cut(struct supervisor *s, struct process *p);

/* Gives a worker its connection to the auditor or the resolver. */
void process_connect(const struct process *server, const struct process *worker);

/* Says how it ended: "exit status 2", "signal 11 (Segmentation fault)". */
void process_ended(struct supervisor *s, const struct process *p, int status, char *out,
		   size_t size);

void deaths_note(struct deaths *d, uint64_t now_ms);

/* --- status.c --- */

void status_write(const struct supervisor *s, struct buf *out);

/* Takes one connection from conf->status and answers it. */
void status_answer(const struct supervisor *s);

/* --- kernel_log.c --- */

/* The kernel's own messages, for what a filter killed; -1 if they cannot be read. */
int kernel_log_open(void);

/* The name or number of the system call for which pid was killed; "" if unknown. */
void kernel_log_syscall(int fd, pid_t pid, char *out, size_t size);

#endif
