/*
 * observe_priv.h - a module of the watcher: what happens in an engine, held against the
 * decisions.
 *
 * observe.c        reads events, and sees what explains them
 * observe_ask.c    asks the engine where that takes more than the event itself
 * observe_tell.c   records, sums, lines, alarms; what is remembered of containers
 */
#ifndef PROXY_OBSERVE_PRIV_H
#define PROXY_OBSERVE_PRIV_H

#include "gate/base/log.h"
#include "proxy/watched.h"
#include "proxy/watcher.h"
#include "proxy/worker_priv.h"

extern const struct watcher_module observe_module;

#define PENDING_MAX      1024  /* happenings that wait to be explained, of all engines */
#define PENDING_BYTES    8192  /* of one */
#define ASKED_MAX        4     /* requests to an engine at once */
#define GRACE_MS         10000 /* until what belongs to a later start is unexplained */
#define SETTLE_MS        2000  /* after a connection, until the list is looked at */
#define LIST_MAX         (16u << 20)
#define INSPECT_MAX      (1u << 20)
#define ANSWER_WITHIN_MS 10000
#define LIVES_MAX        4096
#define HISTORY_MAX      256 /* happenings that an engine keeps for who comes later */
#define RECORDS_A_MINUTE 100 /* of one engine; what is more is counted in one */
#define SUM_MS           60000
#define STARTED_MS       2000 /* a container that started so long ago has its networks */
#define HASTE_MS         1000 /* for what is pending, when the watcher is to end */
#define FINAL_MS         100  /* before the last sum, for what is still on its way */

enum pending_state {
	PENDING_WAITS = 0, /* for something later that explains it */
	PENDING_ASKS,      /* is to be asked about */
	PENDING_ASKED
};

/* Something that no decision explains so far. */
struct pending {
	struct pending *next;
	struct arena *arena; /* h lives here */
	struct happening h;
	size_t backend;
	enum pending_state state;
	uint64_t read_ms;
	bool past;     /* from before the connection */
	bool found;    /* there when the list was looked at; no event told of it */
	bool by_hand;  /* a start of what somebody had stopped or killed */
	uint64_t line; /* its hash, which is no news once it is explained */
	struct ask *ask;
};

/* What is remembered of a container; the oldest make room. */
struct life_of {
	uint64_t key; /* of its id; 0: free */
	uint64_t at_ms;
	uint64_t started_ns; /* by the engine's clock; 0: not that it was seen */
	bool created, killed, stopped;
};

/* One engine. */
struct observed {
	struct watched_backend *shared; /* NULL: it is not followed */
	enum observe_how how;
	bool up, compared;
	uint64_t since_ns; /* what had been seen before this connection; 0: nothing ever */
	uint64_t look_ms, look_ns;
	unsigned past, asked; /* of its history; requests under way */
	struct ask *list;
	/* records */
	uint64_t minute_ms, alarm_ms, sum_ms;
	unsigned in_minute;
	uint64_t more, alarms; /* not on record one by one; not told in an alarm yet */
	struct log_kind lines;
	char since[40];
};

struct observe {
	struct worker *worker;
	struct observed *of;
	struct pending *first, **last;
	size_t pending_count;
	struct life_of lives[LIVES_MAX];
	struct arena *scratch;
	uint64_t ending_ms;
};

/* observe.c */
void observe_judge(struct observe *o, struct pending *p); /* takes it */
void observe_unexplained(struct observe *o, struct pending *p, const char *cause);

/* observe_ask.c: an answer is collected, and given once; it may be empty (status 0) */
typedef void ask_done(struct observe *o, void *arg, int status, struct span body);
struct ask *observe_ask(struct observe *o, size_t backend, const char *target, size_t most,
			ask_done *done, void *arg);
void observe_ask_end(struct ask *a); /* nobody waits for it any more */
bool observe_ask_late(const struct ask *a, uint64_t after_ms);

/* observe_tell.c */
void observe_seen(struct observe *o, size_t backend);
void observe_tell(struct observe *o, const struct pending *p, const char *cause);
void observe_gap(struct observe *o, size_t backend, const char *cause, const char *text);
void observe_tick(struct observe *o, size_t backend, bool last);
struct life_of *observe_life(struct observe *o, const char *container);

#endif
