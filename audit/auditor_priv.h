/*
 * auditor_priv.h - the auditor's parts: its loop (auditor.c), the group of records
 * that is written next (group.c), and what one worker says (session.c).
 */
#ifndef AUDIT_AUDITOR_PRIV_H
#define AUDIT_AUDITOR_PRIV_H

#include "audit/auditor.h"
#include "audit/erasable_priv.h"
#include "audit/log_priv.h"
#include "audit/place_priv.h"
#include "audit/requests_priv.h"
#include "audit/signing_priv.h"
#include "audit/state.h"
#include "audit/wire_priv.h"
#include "audit/witness.h"
#include "gate/base/frame.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUDITOR_CONNS_MAX   128
#define AUDITOR_ANSWERS_MAX 16384 /* receipts in one group */
#define AUDITOR_SIGNALS     5
#define ERASE_TEXT          (REQUEST_WORD_MAX + 1) /* an identity or a ticket, with the NUL */

/* A worker. */
struct conn {
	struct frame_conn fc;
	uint32_t owner;  /* in struct open_decision; never 0, never used twice */
	bool is_sandbox; /* of the process behind the sandbox API: likewise */
	bool is_admin;   /* of the process behind the admin socket, which alone tells of its uses */
	bool greeted;    /* its HELLO has come */
	bool mute;       /* cannot be written to; its end is still to be read */
	bool over;       /* to be closed */
	bool watching_out;
	size_t open; /* its decisions without an outcome */
	bool ack_due;
	uint64_t ack; /* the newest outcome's ticket */
};

/* A record in the group that waits for its receipt. */
struct answer {
	size_t conn;
	uint32_t owner;
	uint64_t ticket;
	struct audit_mark mark;
};

/* How little room there is; see space.c. */
enum space_stage {
	SPACE_WARN = 0,
	SPACE_LOW,     /* only what stops or removes is taken */
	SPACE_RESERVE, /* only outcomes and our own records are, for a little while */
	SPACE_STAGES
};

struct space {
	struct {
		uint64_t limit;             /* free bytes; 0: never */
		char began[CLOCK_TEXT_MAX]; /* "": not in this stage */
		uint64_t refused;           /* allowed decisions that were not taken in it */
	} stages[SPACE_STAGES];
	uint64_t seal_at_ms; /* the reserve is given up; 0: it is there */
	bool was_given_up;   /* by the auditor before */
};

/* Which segments are being removed; see prune.c. */
struct pruning {
	struct retention keep;
	uint64_t outside; /* the records below it are known outside */
	int64_t leap;     /* second at which the clock last leapt forward, or 0 */
	uint64_t look_at_ms;
	bool told;         /* that it cannot go on */
	uint64_t exported; /* the records below it are in every sink */
	/* What is old or too much, and must be kept as evidence: */
	unsigned held_looks;             /* in so many looks, one behind the other */
	char held_since[CLOCK_TEXT_MAX]; /* "": it was not told */
	uint64_t first, size; /* the records that are to go, from first to below size; 0: none */
	const char *why;
	struct tree tree; /* of the records whose tiles are on disk */
};

/* Up to where the log is known outside; see outside.c.  The strongest that there is counts. */
enum outside_by { OUTSIDE_NOWHERE = 0, OUTSIDE_SYSLOG, OUTSIDE_FILE, OUTSIDE_WITNESS };

struct outside {
	enum outside_by by;
	char name[256]; /* for records, in evidence mode */
	struct witness_conf witness;
	uint64_t witnessed; /* that were held against this log */
};

/* How far the sinks are; see exported.c. */
struct sinks {
	const struct sink_conf *list;
	size_t count;
	unsigned late_ms;
	struct sink_pace *paces; /* count of them */
	uint64_t look_at_ms;
	struct audit_sink *seen; /* count of them */
};

/* Values that are being erased, a segment at a time; see erase.c. */
struct erasing {
	bool going;
	char ticket[ERASE_TEXT], identity[ERASE_TEXT];
	int64_t before_s;
	uint32_t uid, gid;
	uint64_t next, until; /* segments that begin from next on, below until */
	uint64_t count;
};

struct auditor {
	struct audit_log *log;
	struct open_set open;
	unsigned flush_ms, claim_ms;
	int epoll_fd;
	struct conn *conns[AUDITOR_CONNS_MAX];
	uint32_t owners; /* given so far */
	struct answer *answers;
	size_t answer_count;
	bool acks_due;
	uint64_t now_ms;
	uint64_t flush_at_ms; /* 0: nothing waits */
	uint64_t claim_until_ms, check_at_ms;
	uint64_t refused; /* records that were none, not told yet */
	struct signing signing;
	unsigned checkpoint_ms, checkpoint_records;
	uint64_t checkpoint_at_ms, checkpoint_was_ms;
	uint64_t covered;           /* records that the newest checkpoint, and its record, cover */
	uint64_t unsigned_since_ms; /* checkpoints fail; 0: they do not */
	bool unpublished_told;
	int64_t clock_offset; /* of the clock from the time since boot */
	bool clock_known;
	struct space space;
	struct audit_state *state;
	void (*tell)(const char *text); /* or NULL */
	char aside[PLACE_ASIDE_MAX];    /* where a damaged log was moved just now, or "" */
	struct err aside_why;
	struct pruning pruning;
	struct sinks sinks;
	struct outside outside;
	struct erasable erasable;
	struct erasing erasing;
	bool stop;
	struct err why;
	struct sigaction old_actions[AUDITOR_SIGNALS];
};

static inline bool auditor_sealed(const struct auditor *a)
{
	return a->log->sealed;
}

/* --- group.c --- */

/* Queues an answer for a worker. */
void auditor_say(struct conn *conn, struct wire_head head, struct span body);

/* All that is in the group becomes durable, then those who wait are told.  May seal. */
void auditor_commit(struct auditor *a);

/* What was promised to someone becomes durable within flush_ms. */
void auditor_flush_soon(struct auditor *a);

/* Commits if the group has no room for a record.  False: the log is sealed. */
bool auditor_make_room(struct auditor *a, size_t body_len);

/* Adds a record to the group.  False: it is not in the log and never will be. */
bool auditor_add(struct auditor *a, struct span body, struct audit_mark *ret);
void auditor_add_own(struct auditor *a, struct record *r);

/* Counts an alarm, and tells it to those outside. */
void auditor_alarm(struct auditor *a, const char *type, const char *cause, const char *text);

/* Tells outcome_unknown for all open decisions of an owner: nobody is left who knows. */
void auditor_give_up(struct auditor *a, uint32_t owner, const char *why);

/* --- checkpoint.c --- */

/* Commits and signs the tree, if there is something new; record: says so in the log. */
void auditor_checkpoint(struct auditor *a, bool record);
bool auditor_checkpoint_due(const struct auditor *a);

/* --- prune.c --- */

/* What opening found, and what is asked for.  -1: it cannot be kept to. */
int auditor_prune_init(struct auditor *a, const struct auditor_conf *conf,
		       const struct audit_log_found *found, struct err *err);

/* Looks now and then what may be removed, and goes on with it; takes a few syncs. */
void auditor_prune(struct auditor *a);

/* The clock was set forward by a day or more: nothing counts as old for a while. */
void auditor_prune_leap(struct auditor *a);

/* --- exported.c --- */

int auditor_sinks_init(struct auditor *a, const struct auditor_conf *conf, struct err *err);
void auditor_sinks_fini(struct auditor *a);

/* Looks now and then how far each sink is, and tells it (state.h). */
void auditor_watch_sinks(struct auditor *a);

/* Looks at once.  The records below it are in every sink that takes all; UINT64_MAX: there is none.
 */
uint64_t auditor_exported(struct auditor *a);

/* For a record: "db 1200, siem 1207". */
void auditor_sinks_format(const struct auditor *a, char *out, size_t size);

/* --- outside.c --- */

int auditor_outside_init(struct auditor *a, const struct auditor_conf *conf, struct err *err);

/* The number of records that are known there. */
uint64_t auditor_outside(struct auditor *a);
const char *auditor_outside_what(const struct auditor *a); /* "the anchor file has a checkpoint" */

/* --- erase.c --- */

/* A request to erase values; false: it is none. */
bool auditor_erase_ask(struct auditor *a, const struct request *request);
/* Goes on with it. */
void auditor_erase(struct auditor *a);
/* At a stop; and at a start, for what a crash left: that it was not ended is on record. */
void auditor_erase_stop(struct auditor *a);
void auditor_erase_begin(struct auditor *a);

/* --- space.c --- */

/* Tells how the log is (state.h). */
void auditor_space_say(struct auditor *a);

/* Makes the reserve.  -1: there is no room for it. */
int auditor_space_init(struct auditor *a, const struct auditor_conf *conf, struct err *err);

/* Says that there is room again, if the auditor before had none. */
void auditor_space_back(struct auditor *a);

/* Looks which stage it is, and tells its beginning and its end. */
void auditor_watch_space(struct auditor *a);

/* There is no room for what must be written next: the reserve is given up. */
void auditor_space_gone(struct auditor *a);

/* Seals a log whose reserve is given up, when the last outcomes are in, or time is up. */
void auditor_space_end(struct auditor *a);

/* Is this allowed decision not taken in this stage?  Counts it. */
bool auditor_space_refuses(struct auditor *a, struct span body);

/* Operations that free something, or end it; NULL behind the last. */
extern const char *const auditor_ending_operations[];

/* --- watch.c --- */

struct request;

const char *auditor_tsync(void); /* does the kernel call the clock synchronised? */
void auditor_watch_clock(struct auditor *a);
void auditor_on_request(void *arg, const struct request *request);

/* --- session.c --- */

/* One frame of a worker.  False: no worker of ours speaks like this. */
bool session_frame(struct auditor *a, size_t index, struct span frame);

#endif
