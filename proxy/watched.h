/*
 * watched.h - what workers and watchers of one gate have in common, in shared memory:
 * what engines were asked for, and what was seen there.
 *
 * It outlives workers, watchers and reloads, and ends with the gate.  A worker notes a deed
 * before it sends the request, so that whatever comes of it is seen later; the watcher,
 * of which there is one at a time, uses deeds up.  The table is a ring: a deed that
 * was not used up when its place is needed is counted as lost, and while that happens
 * nothing is called unexplained.
 */
#ifndef PROXY_WATCHED_H
#define PROXY_WATCHED_H

#include "backends/backend.h"
#include "gate/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct watched;

#define WATCHED_BACKENDS 64   /* what happens in others is not followed */
#define WATCHED_DEEDS    8192 /* kept at once, of all backends */
#define WATCHED_KEY      136
#define WATCHED_LINES    512 /* hashes of the last lines of events, of each backend */
#define WATCHED_FOUND    256 /* what a list told before its event did */
#define DEED_FAILED_MS   5000
#define DEED_LATE_MS     60000
#define DEED_MANY_MS     10000

/* Shared by all processes forked from now on; never freed before they end. */
struct watched *watched_create(struct err *err);

/* Notes whose rules a watcher follows, and says what was there before. */
enum watched_turn {
	WATCHED_FIRST = 0, /* of this gate */
	WATCHED_SAME,      /* takes over from one that ended */
	WATCHED_RELOAD     /* other rules are in force since the one before */
};
enum watched_turn watched_take(struct watched *w, const char *generation);

/* --- deeds --- */

/* What a worker may do with a deed of its own; 0: none. */
typedef uint64_t deed_ref;

struct deed_text {
	size_t backend;
	enum effect effect;
	const char *key; /* "": whatever it is about */
	const char *decision;
	bool before; /* also of what was read before it was noted */
	bool many;   /* until it has ended, as often as it happens */
};

#define DEEDS_OF_ONE 3 /* rows of observe.def for one operation, at most */

/* What this operation lets happen, noted; refs[DEEDS_OF_ONE].  w may be NULL. */
void watched_note(struct watched *w, size_t backend, enum operation op, const char *object,
		  const char *decision, deed_ref *refs);

/* It was answered: HTTP status, or 0 if nobody knows.  sent: false if it never was. */
void watched_ended(struct watched *w, const deed_ref *refs, bool sent, int http);

deed_ref watched_add(struct watched *w, const struct deed_text *text);

/* How the watcher came to know of something. */
struct watched_read {
	uint64_t at_ms; /* when it was read; clock_boot_ms() */
	uint64_t line;  /* watched_line() of its event; 0: of none */
	bool past;      /* it is from before: decisions are not too old for it */
};

/*
 * The watcher: was there a decision that explains this?  It is used up then, but for the same
 * line: who read it may have died before it was known.
 */
bool watched_explain(struct watched *w, size_t backend, const struct happening *h,
		     const struct watched_read *r);

/*
 * The same, of decisions from before it happened, by the engine's clock and ours: for what
 * something else may explain as well, so that a watcher who reads late mixes nothing up.
 */
bool watched_explain_in_order(struct watched *w, size_t backend, const struct happening *h,
			      const struct watched_read *r);

/* A start of this container was decided, and has not been seen. */
bool watched_starts(const struct watched *w, size_t backend, const char *container);

/* Deeds that had to make room before they were used up. */
uint64_t watched_lost(const struct watched *w);

/* That worker has ended: what it had begun comes soon, or never. */
void watched_died(struct watched *w, pid_t pid);

/* --- what was seen, by backend --- */

struct watched_sums {
	uint64_t seen, judged, by_engine, unexplained, garbage;
};

struct watched_backend {
	struct watched_sums sums; /* since the gate was started */
	struct watched_sums told; /* of these, in records observed_sum */
	uint64_t last_ns;         /* when the last happening was, by the engine's clock; 0: none */
	uint64_t resume_ns;       /* from where a watcher that takes over has to read */
	uint64_t began_ns;        /* what the next sum is of */
	uint64_t lost_told;       /* of watched_lost(), those that are on record */
	uint64_t lines[WATCHED_LINES]; /* hashes; a line that comes again is no news */
	unsigned next_line;
	uint64_t found[WATCHED_FOUND]; /* hashes, 0: none */
	unsigned next_found;
};

struct watched_backend *watched_of(struct watched *w, size_t backend); /* NULL: not followed */

/* A line of events that was done with; it may be told again. */
uint64_t watched_line(struct span line);
void watched_known(struct watched_backend *b, uint64_t line);
bool watched_is_known(const struct watched_backend *b, uint64_t line);

/*
 * A list told of it, and it has been counted.  Its event may come all the same, from another
 * connection or later than the list: that tells nothing new, once.
 */
void watched_found(struct watched_backend *b, const struct happening *h);
bool watched_was_found(struct watched_backend *b, const struct happening *h);

#endif
