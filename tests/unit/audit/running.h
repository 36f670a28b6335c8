/* running.h - an auditor that runs as a process of its own, and workers that talk to it. */
#ifndef TESTS_UNIT_AUDIT_RUNNING_H
#define TESTS_UNIT_AUDIT_RUNNING_H

#include "audit/auditor.h"
#include "audit/client.h"
#include "tests/unit/audit/faults.h"
#include "tests/unit/audit/fixture.h"

#include <sys/types.h>

#define PATIENCE_MS 20000

/* A running auditor. */
struct gate {
	char dir[FIXTURE_PATH];
	pid_t pid;
	int control;
	int syncs_fd; /* it writes here how often it synced */
	struct fault fault;
	unsigned flush_ms, claim_ms;
	uint64_t segment_bytes;
	struct auditor_conf more; /* what the tests of checkpoints set besides */
};

void gate_init(struct gate *g); /* an empty directory, nothing runs */
void gate_start(struct gate *g);
void gate_refused(const struct gate *g, const char *why); /* it does not start, and says so */
int gate_wait(struct gate *g);                            /* its exit status, or 1000 + signal */
int gate_stop(struct gate *g);
void gate_kill(struct gate *g);

/* A new connection to the auditor. */
int gate_connect(struct gate *g);
int gate_connect_as(struct gate *g, char tag);

/* What the log says; fails the test unless it verifies. */
struct verify_report gate_verified(const struct gate *g);
void gate_check_anchor(const struct gate *g, const struct audit_mark *mark);

/* All lines of the log, one after the other (malloc). */
char *gate_whole_log(const struct gate *g);
int gate_log_count(const struct gate *g, const char *text);

/* Waits until the log says text so often. */
void gate_until_log_says(const struct gate *g, int want, const char *text);

struct asked {
	int calls;
	bool granted;
	struct audit_mark mark;
};

struct audit_client *worker_start(struct gate *g);

/* One turn of a worker's loop. */
void worker_turn(struct audit_client *c, int wait_ms);
void worker_until_up(struct audit_client *c);
void worker_answered(void *arg, const struct audit_receipt *receipt);

/* Asks and waits for the answer. */
struct asked worker_decide(struct audit_client *c, unsigned n, const char *verdict);
void worker_outcome(struct audit_client *c, unsigned n);

#endif
