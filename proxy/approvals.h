/*
 * approvals.h - what rules want a person to allow, and what persons have said.
 *
 * One table in memory that workers and the process behind the admin socket share,
 * made before they are forked, so that it outlives each of them, and reloads; not the
 * gate.  An entry is one question, known by the hash of all that was asked: who, under
 * which rules, what, with which body.  So a changed request is another question, new
 * rules void what was said under the old ones, and whoever asks the same again joins
 * the question that is there.
 *
 *	open      nobody has said anything, or one of two has
 *	granted   passes so often, until then
 *	denied    is refused, until then
 *
 * The asker is in the hash as well, and what it says never counts.  Entries are bounded
 * in number, also for one caller, and in size; a full table is a denial (I2, I8).  Looking
 * and changing is done under one lock, for microseconds and without waiting for anything
 * else; a process that dies with it has it taken by approvals_died().  An entry's state is
 * written last, so that it is never seen half made: who dies before has asked, said or taken
 *nothing, and of what was taken nothing comes back but by who took it.  Times are ms of
 *CLOCK_BOOTTIME.
 */
#ifndef PROXY_APPROVALS_H
#define PROXY_APPROVALS_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct approvals;

#define APPROVALS_MAX       128                     /* questions and answers at a time */
#define APPROVALS_OWN_MAX   16                      /* of these, one caller's */
#define APPROVALS_OPEN_MS   (UINT64_C(3600) * 1000) /* a question nobody waits for ends then */
#define APPROVALS_KEEP_MS   (UINT64_C(600) * 1000)  /* an answer holds, if nothing is said */
#define APPROVALS_LONGEST_S 86400                   /* ... and at most */
#define APPROVALS_TIMES_MAX 1000                    /* one answer lets pass at most */
#define APPROVALS_FACTS_MAX 12288                   /* bytes of facts that are shown */
#define APPROVALS_BY_MAX    2                       /* persons who must say yes */

enum approval_state { APPROVAL_GONE = 0, APPROVAL_OPEN, APPROVAL_GRANTED, APPROVAL_DENIED };

/* What is asked, for people; longer texts are cut. */
struct approval_text {
	char id[40]; /* of the decision that asked first */
	char op[48], object[128], image[160];
	char identity[80], owner[160], listener[80], backend[80];
	char profile[80], rule[80], text[400];
};

/* A question as its asker has it. */
struct approval_question {
	struct hash key;
	struct hash caller;
	struct approval_text what;
	struct span facts;
	bool has_uid;
	uint32_t uid;  /* of the asker */
	uint32_t need; /* persons who must say yes */
};

/* A copy of an entry. */
struct approval_row {
	enum approval_state state;
	struct approval_text what;
	bool has_uid;
	uint32_t uid;
	uint32_t need, said;
	uint32_t by[APPROVALS_BY_MAX]; /* who said so, as users */
	uint32_t waiting;              /* requests that are held for it */
	uint32_t times;                /* granted: passes that are left */
	uint64_t serial;
	uint64_t asked_ms, until_ms;
};

/* Shared by all processes forked from now on; never freed before they end. */
struct approvals *approvals_create(struct err *err);

/* --- of workers --- */

struct approval_ref {
	uint32_t slot;
	uint64_t serial; /* 0: refers to nothing */
};

enum approval_asked {
	ASKED_FULL = 0, /* no room */
	ASKED_LOCKED,   /* another process has the table: in a moment */
	ASKED_OPEN,     /* it waits for an answer; *ret is held until approvals_leave() */
	ASKED_DENIED    /* somebody has said no already */
};

/* *ret_row: the question as it is now; with ASKED_FULL and ASKED_LOCKED there is none. */
enum approval_asked approvals_ask(struct approvals *t, const struct approval_question *q,
				  uint64_t now_ms, struct approval_ref *ret,
				  struct approval_row *ret_row) __attribute__((warn_unused_result));

/* What became of it; GONE too if it is another's by now. */
enum approval_state approvals_look(struct approvals *t, const struct approval_ref *ref,
				   uint64_t now_ms, struct approval_row *ret);

/* Nobody holds it any more on our side.  withdrawn: and if nobody else does, it is no question. */
void approvals_leave(struct approvals *t, struct approval_ref *ref, bool withdrawn);

/* One pass of what was granted.  False: nothing was, or another process has the table: who asks
 * then is told. */
bool approvals_take(struct approvals *t, const struct hash *key, uint64_t now_ms,
		    struct approval_ref *ret, struct approval_row *ret_row)
	__attribute__((warn_unused_result));

/* It was not used: nothing was sent. */
void approvals_give_back(struct approvals *t, const struct approval_ref *ref);

/* --- of operators --- */

enum approval_said {
	SAID_BUSY = 0,
	SAID_MISSING, /* there is no open question of that id */
	SAID_OWN,     /* the asker cannot answer */
	SAID_TWICE,   /* who says so has said so already */
	SAID_MORE,    /* another person must say so as well */
	SAID_DONE
};

struct approval_answer {
	const char *id;
	uint32_t uid; /* who says so */
	bool allow;
	uint64_t for_ms; /* how long it holds */
	uint32_t times;  /* how often it passes */
};

/* only_try: nothing is changed, the answer is what it would be. */
enum approval_said approvals_say(struct approvals *t, const struct approval_answer *a,
				 bool only_try, uint64_t now_ms)
	__attribute__((warn_unused_result));

/* Copies of all, the oldest first; rows: APPROVALS_MAX of them.  *ret_serial: of the newest. */
size_t approvals_list(struct approvals *t, uint64_t now_ms, struct approval_row *rows,
		      uint64_t *ret_serial);

/* A copy of one, and appends its facts, which may be none if they were too long. */
bool approvals_show(struct approvals *t, const char *id, uint64_t now_ms, struct approval_row *ret,
		    struct buf *facts);

uint64_t approvals_serial(struct approvals *t); /* of the newest question; 0: there was none yet */

/* What is open and granted now, for Prometheus. */
void approvals_write(struct approvals *t, uint64_t now_ms, struct buf *out);

/* A process has ended.  For the supervisor: waits for nothing, and trusts nothing in the table. */
void approvals_died(struct approvals *t, pid_t pid);

#endif
