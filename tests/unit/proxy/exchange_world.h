/*
 * exchange_world.h - a whole worker between a caller and a service, with an adapter and a log of
 * the test's own, turned by hand.
 */
#ifndef TESTS_UNIT_PROXY_EXCHANGE_WORLD_H
#define TESTS_UNIT_PROXY_EXCHANGE_WORLD_H

#include "proxy/worker_priv.h"
#include "tests/unit/check.h"

/* --- allocations that fail, of the worker alone --- */

extern long allocations; /* since armed */

/* --- a log that does as it is told --- */

enum log_mode { LOG_GRANTS = 0, LOG_LOSES, LOG_IS_SILENT, LOG_IS_FULL };

struct audit_client {
	enum log_mode mode;
	struct {
		audit_done_fn *done;
		void *arg;
		bool allow;
	} waiting[8];
	size_t waiting_count;
	int granted, outcomes, reads, denials, aborted_by_client;
	char status[16], reason[32], end_of[40];
};

extern struct audit_client the_log;

/* --- the service and the worker --- */

#define PEERS 8

struct world {
	char path[64];
	int listener;
	struct {
		int fd;
		char text[4096];
		size_t len;
	} peers[PEERS];
	int changes, undos, unproven; /* unproven: came without a grant */
	int lookups;                  /* that were answered */
	bool knows_nothing;           /* they are answered with 404 */
	bool mute;                    /* nothing is answered */
	struct worker *worker;
	int caller;
	char got[4096];
	size_t got_len;
	bool ended; /* the caller saw the end of the connection */
};

extern struct conf_listener listeners[1]; /* otherwise: the profile, of exchange_world.c */
extern struct proxy_conf the_conf;
extern bool count_asks; /* counting needs an answer of the service */

void begin(struct world *o, enum log_mode mode);
void end(struct world *o);
void ask_gate(struct world *o, const char *request);
void hang_up(struct world *o);

/* One turn of everybody; *armed: which of the worker's allocations fails, 0: none. */
void turn(struct world *o, long *armed);
void run(struct world *o, long armed); /* until it is answered */
bool is_answered(const struct world *o);
int status_of(const struct world *o);

/* What must hold whatever goes wrong. */
void check_invariants(const char *label, const struct world *o);

#define HEAD    " HTTP/1.1\r\nHost: d\r\n"
#define JSON    HEAD "Content-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"a\":12}"
#define NOTHING HEAD "\r\n"
#define UPLOAD  HEAD "Content-Type: application/x-tar\r\nContent-Length: 10\r\n\r\n0123456789"

#endif
