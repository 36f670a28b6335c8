/*
 * rejudge_priv.h - the parts of judging again.
 *
 *	rejudge.c       the module: what is asked for, the lists, whose turn it is
 *	rejudge_look.c  one object: who, which profile, facts, judgement, attestation
 *	rejudge_weigh.c what that makes: pure, and the owner's profiles
 *	rejudge_stop.c  records, and stopping it
 */
#ifndef PROXY_REJUDGE_PRIV_H
#define PROXY_REJUDGE_PRIV_H

#include "gate/base/uuid.h"
#include "proxy/elements.h"
#include "proxy/rejudge.h"
#include "proxy/worker_priv.h"

#define REJUDGE_LOOKS      4     /* at a time, of one backend */
#define REJUDGE_MAX        20000 /* objects of one backend that wait for their turn */
#define REJUDGE_TRIES      3     /* for what could not be judged, or stopped */
#define REJUDGE_PAUSE_MS   2000  /* between these */
#define REJUDGE_AGAIN_MS   5000  /* until all is judged again where that could not be done */
#define REJUDGE_IDS        32    /* asked for in one list; more that were started make it all */
#define REJUDGE_ID_MAX     64
#define REJUDGE_CANDIDATES 8 /* profiles of one owner */

/* --- weighing --- */

enum finding {
	FINDING_UNKNOWN = 0,
	FINDING_FINE,
	FINDING_REPORT,
	FINDING_STOP,
	FINDING_GONE, /* it does not run any more, or is nobody's */
	FINDING_COUNT
};

const char *finding_name(enum finding f);

/* What was found out about an object that runs. */
struct weighing {
	bool judged;             /* what the rules say is known: */
	bool permitted;          /* they would let it start */
	bool has_level, has_min; /* known are: */
	enum isolation level;    /* what the service says that it is held by */
	enum isolation minimum;  /* what it was made with */
	bool was_seen;           /* the kernel was asked, and says: */
	enum isolation seen;
	bool differs;         /* the kernel shows something else than was judged */
	bool wants_attested;  /* the profile says so, and */
	bool lacks;           /* not all of it could be seen */
	enum running running; /* what the profile says */
};

bool rejudge_is_below(const struct weighing *w);

/* last: it is not tried again. */
enum finding rejudge_weigh(const struct weighing *w, bool last);

/* Nothing in the list says more than that something could not be known or done. */
bool rejudge_is_trouble(const struct violations *v);

/* Under what an owner's start would be judged. */
struct candidate {
	const struct profile *profile;
	const struct conf_identity *identity; /* NULL: somebody whom a listener lets in */
	const char *listener;
};

/*
 * What was made through a listener of run time has the profile on it, and no other: neither is it
 * excused by what else its owner may do elsewhere, nor stopped for what he may not; that
 * holds when the listener has ended, too.
 * Else: the profile on the object, if its owner still has it; else all that the owner has, of
 * which one that lets it start is enough; of an owner who has none any more the one on
 * the object.  0: it is not known.
 */
size_t rejudge_candidates(const struct proxy_conf *conf, const struct engine *rules,
			  const struct again *what, struct candidate ret[REJUDGE_CANDIDATES]);

/* --- one object --- */

struct rejudged_id {
	char id[REJUDGE_ID_MAX + 1];
	unsigned tries;   /* that were in vain */
	bool stop_failed; /* a part of its stop did: it may have ended all the same */
	enum rejudge_cause cause;
	uint64_t due_ms;
};

enum look_phase {
	LOOK_WHO = 0, /* what it says of itself */
	LOOK_STEP,    /* its facts, under one of the candidates */
	LOOK_CHECK,   /* what the kernel shows */
	LOOK_RECORD,  /* the decision to stop it is on its way to the log */
	LOOK_STOP     /* it is being stopped */
};

struct rejudging;

struct look {
	struct rejudging *of;
	struct rejudged_id what;
	enum look_phase phase;
	struct exchange *x;
	struct conn conn; /* of nobody: it says who would ask */
	struct conf_listener listener;
	struct again again;
	struct conf_identity maker; /* who made it through a listener of run time */
	struct candidate candidates[REJUDGE_CANDIDATES];
	size_t candidate_count, candidate;
	struct weighing seen;

	enum stop_part part;
	bool failed; /* one part of it did */
	enum operation stop_op;
	struct upcall *up;
	uint64_t sent_ms;
	char stop_id[UUID_TEXT_LEN + 1]; /* the decision's */
	const char *why;                 /* one sentence, in the arena */
};

/* NULL: no memory. */
struct look *look_begin(struct rejudging *of, const struct rejudged_id *what);
void look_go(struct look *l); /* frees it when it is over */
void look_tick(struct look *l);

/* A stop that is on record, or on its way there, must have its outcome. */
bool look_must_end(const struct look *l);
void look_drop(struct look *l);                             /* nothing more is done; frees it */
void look_over(struct look *l, enum finding f, bool again); /* frees it */

/* rejudge_stop.c */
void look_report(struct look *l, enum finding f); /* the record, the line for the operator */
void look_stop(struct look *l);                   /* goes on until look_over() */
void look_keep_ended(struct look *l);             /* likewise; it does not run already */
void look_stop_tick(struct look *l);
void look_stop_drop(struct look *l);

/* --- quarantines that stop what runs: rejudge_quarantine.c --- */

/*
 * What runs is listed when one has begun, and twice again for what was being started then;
 * what is found otherwise later, by the look of a start, a reload or a reconnect, is stopped too.
 */
struct kill_rounds {
	uint64_t last_id; /* of the quarantines that were seen to */
	unsigned left;
	uint64_t due_ms;
};

/* NULL: what this owner runs is not to be stopped for a quarantine. */
const struct quarantine *rejudge_kills(struct worker *w, const char *owner);

/* True: a round is due now, and has been taken. */
bool kill_round_is_due(struct kill_rounds *k, struct worker *w);
void kill_round_failed(struct kill_rounds *k, uint64_t now_ms);

/* True: its owner is under such a quarantine, and it is being stopped. */
bool look_quarantined(struct look *l);

/* --- a backend's --- */

struct rejudge_tally {
	uint64_t judged, reported, stopped, unknown, left_out;
};

struct rejudging {
	struct worker *worker;
	size_t backend;
	bool up;           /* it answers, as far as is known */
	bool wanted;       /* all that runs is to be listed */
	uint64_t again_ms; /* when it is wanted again; 0: not */
	enum rejudge_cause cause;
	char ids[REJUDGE_IDS][REJUDGE_ID_MAX + 1]; /* started unasked */
	size_t id_count;
	struct kill_rounds kills;

	struct upcall *list; /* under way */
	bool lists_all, lists_kill;
	uint64_t list_deadline_ms;
	struct elements elements;
	struct arena *row_arena;

	struct rejudged_id *todo;
	size_t todo_count, todo_size;
	struct look *looks[REJUDGE_LOOKS];
	size_t look_count;
	bool filling;
	bool began; /* something was done since the last summary */
	struct rejudge_tally tally;
};

/* One object's look has ended. */
void rejudging_ended(struct rejudging *r, struct look *l, enum finding f, bool again);

/* All is to be judged again in a while: it could not be done. */
void rejudging_again(struct rejudging *r);

#endif
