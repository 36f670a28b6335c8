/*
 * inside.h - which container a caller runs in: looked at before its first request is
 * judged, and again when that is a while ago, or it was held for an operator's yes.
 *
 * On a unix socket: the resolver reads the control groups of the process that connected, the
 * engine says what the container of that id is and which process is its first, and
 * the resolver holds the two processes against each other.  Where the kernel gives a
 * descriptor of the process (Linux 6.5), the process must still live at the end, so
 * that its number is nobody else's; elsewhere it must have been started before
 * the connection, by the same user.  On TCP: the engine says whose the address is, and since when.
 *
 * A few looks are under way at once, and of these a few of one caller; the others wait.  What the
 * engine said of a container counts for a second.  What is not known in time is unknown.
 */
#ifndef PROXY_INSIDE_H
#define PROXY_INSIDE_H

#include "backends/backend.h"

#include <stdbool.h>
#include <stdint.h>

#define INSIDE_LOOKS_MAX     16   /* under way at once, per worker */
#define INSIDE_LOOKS_OWN_MAX 4    /* of these, of one user or address */
#define INSIDE_RECENT_MAX    32   /* answers of the engine that are kept, per worker */
#define INSIDE_RECENT_MS     1000 /* that long */
#define INSIDE_FRESH_MS      5000 /* before a request that reads is the caller looked at again */
#define INSIDE_CHANGE_MS     1000 /* before any other */
#define INSIDE_LOOK_MS       5000 /* one look, waiting included */

struct conn;
struct exchange;
struct worker;

/* What is known of where a caller runs.  Counted: shared by a connection and those kept. */
struct inside {
	unsigned refs;
	struct arena *arena;
	enum caller_place place;
	const char *why; /* CALLER_UNKNOWN: what is not known */
	bool trouble;    /* ... since something did not answer: it may be known in a moment */
	uint64_t made_ms;
	struct caller_container container; /* CALLER_INSIDE */
	const char *started_at;
	int32_t init;
};

struct inside *inside_ref(struct inside *in);
void inside_unref(struct inside *in); /* NULL is allowed */

/* NULL: no memory.  why is not copied. */
struct inside *inside_unknown(const char *why, bool trouble);
struct inside *inside_outside(void);
struct inside *inside_of(const struct caller_call *call);

/*
 * The head of a request has come.  True: it waits until exchange_caller_known() is called for it;
 * false: what is known counts.  anew: however short a while ago that was found out.
 */
bool inside_look(struct exchange *x, bool anew);
void inside_begin(struct conn *c); /* it was just accepted; in a check: what the facts file says */
void inside_end(struct conn *c);   /* it is over */
void inside_give_up(struct conn *c); /* nobody waits for it any more */
bool inside_answer(struct worker *w, uint64_t ticket, struct span answer); /* false: none of ours */
void inside_resolver_lost(struct worker *w);
void inside_tick(struct worker *w);
void inside_sweep(struct worker *w); /* memory of looks that have ended */

/* inside_recent.c: what the engine said a moment ago; keep: takes a reference of its own */
struct inside *inside_recent(const struct worker *w, const void *listener, const char *id);
void inside_keep(struct worker *w, const void *listener, struct inside *in);
void inside_drop_recent(struct worker *w);

#endif
