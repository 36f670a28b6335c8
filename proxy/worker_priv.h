/*
 * worker_priv.h - what the parts of a worker share: the worker, its service
 * pools, its connections, its exchanges.
 */
#ifndef PROXY_WORKER_PRIV_H
#define PROXY_WORKER_PRIV_H

#include "audit/client.h"
#include "backends/backend.h"
#include "gate/base/frame.h"
#include "proxy/canonical.h"
#include "proxy/conf.h"
#include "proxy/engines.h"
#include "proxy/inside.h"
#include "proxy/loop.h"
#include "proxy/relay.h"
#include "proxy/suppressed.h"
#include "proxy/tls_server.h"
#include "proxy/upstream.h"
#include "proxy/watched.h"
#include "proxy/worker.h"
#include "rules/engine.h"

#include <microhttpd.h>

#define WORKER_TICK_MS    250
#define ARENA_CAP         (16u << 20)  /* bytes one request may take in all */
#define ROW_MAX           (256u << 10) /* bytes of one row of a stream; longer ones are left out */
#define HELD_REPLY_MAX    (16u << 20)  /* bytes of a reply that is held and filtered */
#define LOOKUP_REPLY_MAX  (1u << 20)   /* bytes of one lookup's answer */
#define SPARE_MAX         64           /* exchanges kept for the next requests */
#define QUESTIONS_MAX     64           /* asked of the resolver at once, per worker */
#define QUESTIONS_OWN_MAX 8            /* of these, for one owner */
#define QUESTION_MAX      65536        /* bytes */
#define DRAIN_MAX         (8u << 20) /* bytes of a refused upload that are read before the answer */

struct worker;

/* A guarded service: the adapter and the connections to it. */
struct service {
	struct worker *worker;
	const struct conf_backend *conf;
	const struct backend_ops *ops;
	struct backend *backend;
	struct upstream *pool;
};

struct listener {
	struct watch watch; /* first */
	struct worker *worker;
	const struct conf_listener *conf;
	struct tls_server *tls; /* NULL: callers speak plain HTTP */
};

#define CONNECTION_ADDRESS_MAX 48
/* What a caller shows of itself: the kernel's word, a token, and in `check` a name. */
struct signs {
	const char *named; /* NULL: the others count */
	struct span token; /* empty: none was presented */
	bool odd;          /* what was presented is no token: nobody fits */
};

/* What the engine said of a container. */
struct inside_slot {
	const void *listener;
	struct inside *in; /* NULL: free */
};

/* A caller's connection. */
struct conn {
	struct watch watch; /* first: hang-up only, edge-triggered */
	struct worker *worker;
	const struct conf_listener *listener;
	struct identity who;
	const struct conf_identity *identity; /* who, if it is known by name; or NULL */
	char owner[160];
	char address[CONNECTION_ADDRESS_MAX];     /* of a TCP peer */
	struct tls_wire *wire;                    /* what fd leads to, if its caller speaks TLS */
	struct certificate *certificate;          /* genuine; NULL: none was shown */
	bool known;                               /* the listener lets this caller in */
	char own_address[CONNECTION_ADDRESS_MAX]; /* of our end of that */
	int pidfd;      /* of the process that connected; -1: the kernel gives none */
	bool peer_gone; /* it had ended before it was accepted */
	int64_t accepted_unix_ns;
	uint64_t accepted_boot_ns;
	struct inside *inside, *inside_first; /* now, and when it was first known; or NULL */
	struct look_inside *looking;          /* under way, or waiting; or NULL */
	const char *not_told; /* why it is not known whether an identity fits; NULL: it is */
	int fd;
	struct MHD_Connection *mhd;
	struct exchange *exchange; /* the request in progress, or NULL */
	bool gone;                 /* the caller has hung up */
	bool upgraded;             /* the relay watches the descriptor now */
	uint64_t since_ms;         /* of the state below */
	bool in_head;              /* a request line has come, its head is not complete */
	bool given_up;             /* nothing came in time */
	bool behalf;               /* each request says for whom it is: behalf.h */
	bool own;                  /* ... this one: it is the gate's own cleaning up */
	uint64_t ended_turn;       /* of the loop, when its last request ended */
	bool used;                 /* a request has been completed on it */
	struct conn *prev, *next;
};

enum exchange_state {
	X_HEAD = 0, /* the request line has come */
	X_CALLER,   /* it is looked at where the caller runs */
	X_BODY,     /* an inspected body is being collected */
	X_DRAIN,    /* refused; the upload is read and dropped before the answer */
	X_LOOKUP,   /* the adapter's lookups are under way */
	X_ASK,      /* an operator is asked whether it may pass */
	X_RECORD,   /* waiting for the decision to be durable */
	X_SENT,     /* forwarded; a streamed body may still be coming */
	X_HELD,     /* the reply is being collected, to be filtered */
	X_CHECK,    /* what was made is being looked at */
	X_UNDO,     /* what was made is being removed */
	X_ANSWER,   /* the answer is known and can be queued */
	X_REPLYING, /* queued; a streamed body may still be coming */
	X_RELAY,    /* upgraded */
	X_OVER      /* nothing more will happen; MHD has still to let go of it */
};

enum answer_kind {
	ANSWER_NONE = 0, /* end the connection without one */
	ANSWER_LOCAL,    /* status and body of our own */
	ANSWER_STREAM,   /* the service's reply as it comes */
	ANSWER_UPGRADE
};

struct answer {
	enum answer_kind kind;
	int status;
	const char *content_type; /* ANSWER_LOCAL */
	struct buf body;          /* ANSWER_LOCAL */
	struct pair *headers;     /* of the service, those that cross */
	size_t header_count;
	bool close;             /* end the connection behind it */
	unsigned retry_after_s; /* 0: none */
};

struct lookup_run {
	struct exchange *x;
	struct lookup *lookup;
	struct upcall *up; /* NULL: a path, or answered */
	int status;
	struct buf body;
	uint64_t ticket; /* of a question to the resolver */
	bool waits;      /* it was not sent yet: see questions.c */
	bool later;      /* it is asked with the next tick */
};

/* A question that the resolver has and did not answer yet. */
struct question_slot {
	uint64_t ticket; /* 0: free */
	char owner[160];
};

#define PAUSES_MAX 32

/* A caller whose next request is judged later. */
struct pause {
	uint64_t key, until_ms;
	uint64_t taken_until_ms; /* one of its requests is on its turn; it may have ended, too */
};

struct quota_state;
struct asking;

struct exchange {
	struct exchange *prev, *next;
	struct worker *worker;
	struct conn *conn;
	struct service *service;
	struct arena *arena;
	const struct profile *profile;
	enum exchange_state state;

	char id[40];
	struct signs signs;
	struct canonical req;
	struct backend_call call;
	struct decision decision;
	struct jv facts;
	bool has_facts;
	int64_t judged_at;         /* seconds since 1970 */
	uint64_t epoch;            /* of the service, when judging began */
	uint64_t sent_ms;          /* when it was */
	bool permitted;            /* decide() said so */
	char receipt[256];         /* Sallyport-Audit header, "" without */
	bool hardened;             /* what the profile fills in has been filled in */
	int quota_rounds;          /* counts of it, over its turns */
	struct quota_state *quota; /* quota.c; NULL: the profile has none for this */

	struct asking *asking; /* asking.c; NULL: nobody was asked */

	void (*table_free)(
		struct exchange *x); /* tables.c: goes on with it; NULL: none is awaited */
	uint64_t table_until_ms;     /* ... until then; 0: it did not begin to */
	uint64_t turn_since_ms;      /* turns.c: it waits for its turn since; 0: it does not */
	bool turn_taken;             /* ... and now it is its turn: all is looked up anew for it */

	bool suspended;               /* MHD will not call until resumed */
	bool upload_over;             /* MHD has given all of the body */
	bool gone;                    /* the caller has hung up */
	bool head_seen;               /* the handler has been called for it */
	bool first_over;              /* the first call of MHD has ended without being suspended */
	bool in_handler;              /* MHD waits for what we return */
	bool decided;                 /* a decision record was made */
	bool allow_on_record;         /* ... and it allows: an outcome must follow */
	bool forwarded;               /* bytes went to the service */
	deed_ref deeds[DEEDS_OF_ONE]; /* what it lets happen there */
	int service_status;           /* what the service answered; 0: nothing */
	bool check_printed;
	bool recorded; /* its end is on record */
	bool waits_receipt;
	bool known;       /* BODY_REWRITE: what is judged has come */
	bool intake_over; /* ... and all of it */
	bool body_read;   /* BODY_JSON: it is there, and hashed */
	bool upload_sent; /* ... and all of it has been sent */
	struct buf body;  /* inspected request body; BODY_REWRITE: what is to be sent */
	uint64_t drained;

	void (*resume)(struct exchange *x); /* what goes on when lookups are answered; NULL: the
					       caller's request */
	void *look;                         /* ... of what is judged again */
	struct lookup_run *runs; /* LOOKUPS_MAX of them in the arena, once there is one */
	size_t runs_open;
	int steps;

	struct upcall *up;
	struct outgoing out;
	struct buf held;
	size_t charged;   /* of worker.held_bytes */
	struct buf row;   /* REPLY_ROWS: the row that comes in, or goes out */
	bool row_crosses; /* it goes out */
	struct answer answer;
	struct relay *relay;
	struct MHD_UpgradeResponseHandle *upgrade;
	int service_fd;   /* after a 101, until the relay has it */
	struct buf early; /* the service's bytes behind the 101 */

	uint64_t started_ms, deadline_ms;
	int http;           /* what the caller was told, or would have been */
	const char *status; /* ok, fail, aborted, denied */
	char err[200];
	uint64_t bytes_in, bytes_out;
	char sent_sha256[72], body_sha256[72];
};

struct watcher;
struct rejudge;

#define SUPPRESS_TELLINGS 32 /* sums of refusals that a worker has told, and waits for */

struct telling {
	struct suppressed *table; /* NULL: free */
	struct suppressed_ref ref;
};

struct worker {
	const struct proxy_conf *conf;
	struct watcher *watcher; /* in a watcher: takes no callers */
	struct loop loop;
	struct MHD_Daemon *mhd;
	struct watch mhd_watch;
	bool mhd_due;    /* run MHD before the loop waits again */
	bool tables_due; /* exchanges await a table that another process has */
	struct engine *rules;
	struct service *services;
	struct listener *listeners;
	struct conn *conns;
	unsigned conn_count;
	struct tls_wire *wires;        /* of callers that speak TLS */
	struct runtime_entry *runtime; /* listeners made at run time */
	size_t runtime_count;          /* of these, without those that have ended */
	bool listening;                /* was told to go, and not yet to stop */
	struct look_inside *looks;     /* the newest first */
	struct look_inside *looks_over;
	bool pumping;
	struct inside_slot inside_recent[INSIDE_RECENT_MAX];
	struct exchange *exchanges;
	struct exchange *spare; /* kept for the next requests, linked by next */
	unsigned spare_count;
	uint64_t bodies_bytes; /* held by inspected bodies */
	uint64_t held_bytes; /* held by replies that are filtered, until their callers have them */

	struct audit_client *audit;
	struct watch audit_watch;
	struct frame_conn resolver;
	struct watch resolver_watch;
	uint64_t next_ticket;
	struct question_slot questions[QUESTIONS_MAX];
	uint64_t tick_ms;
	uint64_t turn; /* counts turns of the loop; the first is 1 */

	uint64_t audit_seen_ms, resolver_seen_ms; /* when they were last connected */

	int control_fd;
	struct watch control_watch;
	bool stopping;
	bool failed;      /* it could not listen */
	bool ending;      /* nothing is begun any more */
	uint64_t stop_ms; /* what is not finished by then is ended */

	struct pause pauses[PAUSES_MAX]; /* turns.c: of callers */
	uint64_t pauses_until_ms;        /* the last of them ends */
	bool turns_due;                  /* somebody waits */

	struct telling tellings[SUPPRESS_TELLINGS]; /* suppress.c */

	struct rejudge *rejudge; /* in a watcher: what judges again */

	struct emergency_view *emergency; /* what is in force; NULL without conf->emergency */
	uint64_t emergency_seen;          /* the turn whose connections were seen to */

	struct check *check; /* set in `sallyport check`: judge, print, forward nothing */
};

/* worker.c */
struct worker *worker_open_as(const struct proxy_conf *conf, struct watcher *watcher,
			      struct err *err);
void worker_turn(struct worker *w, int timeout_ms); /* one turn of the loop */
void worker_tell(struct worker *w, enum record_type type, const char *text); /* a record */

/* watcher.c: the parts of a worker that watches instead */
int watcher_fill(struct worker *w, struct err *err);
void watcher_begin(struct worker *w);
void watcher_tick(struct worker *w);
bool watcher_idle(const struct worker *w);
void watcher_free(struct worker *w);

/* connection.c */

/* A head has come: on a listener that takes tokens it says who asks. */
void connection_read_token(struct exchange *x, const struct pair *headers, size_t count);
void connection_recognise(struct conn *c, const struct signs *signs);
void connection_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
		       enum MHD_ConnectionNotificationCode code);
void connection_give_up(struct conn *c); /* nothing more is taken from it */
bool connection_same_caller(const struct conn *a, const struct conn *b);
void connection_tick(struct worker *w);
int connection_listen(struct worker *w, struct err *err);
void connection_wind_down(struct worker *w);
/* fd is taken, whatever comes of it.  wire: what it leads to, or NULL. */
int connection_adopt(struct worker *w, const struct conf_listener *l, int fd, const char *identity,
		     struct tls_wire *wire, struct err *err);
/* Of a process of the gate that asks for others: behalf.h. */
int connection_adopt_behalf(struct worker *w, const struct conf_listener *l, int fd,
			    struct err *err);
void connection_address(int fd, char out[CONNECTION_ADDRESS_MAX]);     /* of a TCP peer, or "" */
void connection_own_address(int fd, char out[CONNECTION_ADDRESS_MAX]); /* of our end */

/* tls_wire.c: callers that speak TLS, until they are connections, and what these lead to */
struct wire_count {                    /* without a connection: shaking hands, or lingering */
	unsigned all, own;             /* own: from one address, on one listener */
	unsigned shaking, own_shaking; /* of these, those that shake hands */
};

/* A connection that a listener with TLS has accepted; fd is taken, whatever comes of it. */
int tls_wire_accept(struct listener *l, int fd, struct err *err);
void tls_wire_count(const struct worker *w, const struct conf_listener *l, const char *address,
		    struct wire_count *ret);
void tls_wire_join(struct tls_wire *t, struct conn *c); /* tells c who its caller is */
void tls_wire_leave(struct tls_wire *t);                /* its connection is gone */
bool tls_wire_has_input(const struct tls_wire *t);
void tls_wire_tick(struct worker *w);
void tls_wire_close_all(struct worker *w);

int connection_watch(struct listener *l, struct err *err); /* accepts callers from now on */
void connection_accept_again(struct listener *l);          /* after a pause, if there was one */

/* streams.c: the worker is replaced, by one with the rules of this bundle; takes it */
void streams_follow(struct worker *w, int bundle);

/* quarantine.c */
bool quarantine_is_known(struct worker *w);      /* false: nothing is allowed yet */
bool quarantine_refuses(struct exchange *x);     /* call.refused says why */
bool quarantine_holds(const struct exchange *x); /* by now; nothing is said */
void quarantine_blame(struct violation *v, const struct quarantine *q, struct arena *a);
void quarantine_tick(struct worker *w); /* ends connections */

/* turns.c: whose request took long to judge waits with the next */
void turns_took(struct exchange *x, uint64_t ns, bool limited); /* of processor time */
bool turns_wait(struct exchange *x);                            /* true: it waits, or was refused */
void turns_leave(struct exchange *x);                           /* it is judged, or over */
void turns_tick(struct worker *w);

/* suppress.c: above a rate; what is only counted is decided with that, and has the id of its sum */
void suppress_refusal(struct exchange *x);
void suppress_tick(struct worker *w); /* tells the sums of windows that are over */
void suppress_end(struct worker *w);  /* tells all */

/* override.c: what an operator has put above the modes of a profile; NULL: nothing */
const struct override *override_of(struct worker *w, const struct profile *p, struct arena *a);
bool override_let_pass(const struct decision *d); /* what the profile would refuse, or ask for */

/* runtime.c */
int runtime_inherit(struct worker *w, struct err *err);
int runtime_add(struct worker *w, const struct runtime_row *row, int fd, struct err *err);
void runtime_end(struct worker *w, uint64_t id);
int runtime_listen(struct worker *w, struct err *err);
void runtime_wind_down(struct worker *w);
void runtime_tick(struct worker *w);
void runtime_close(struct worker *w);

/* front.c */
int front_open(struct worker *w, struct err *err);
void front_close(struct worker *w);
void front_tick(struct worker *w);
void front_run(struct worker *w);
void front_resume(struct exchange *x);
enum MHD_Result front_queue(struct exchange *x); /* the answer, from within the handler */

/* exchange.c: what the adapter needs to know, from connection and profile */
void exchange_prepare_call(struct exchange *x);

/* judge.c: the facts that rules see, at this time */
void judge_make_facts(struct exchange *x);

void judge_keep_receipt(struct exchange *x, const struct audit_receipt *receipt);

/* Rules speak of facts; a caller knows the fields of the request. */
void judge_name_fields(struct exchange *x);

/* crowd.c: what is counted of a service, and how many may wait for it */
void service_count(const struct exchange *x, enum engine_counter which, uint64_t n);
bool service_is_crowded(const struct exchange *x);

/* exchange.c: called by the front */
struct exchange *exchange_create(struct conn *c, struct span target);
void exchange_head(struct exchange *x, const struct raw_head *raw);
void exchange_caller_known(struct exchange *x);                /* as far as it can be known */
size_t exchange_upload(struct exchange *x, struct span piece); /* how much was taken */
void exchange_upload_end(struct exchange *x);
void exchange_hang_up(struct exchange *x);
void exchange_not_delivered(struct exchange *x); /* the caller did not get all of the answer */
void exchange_end(struct exchange *x);           /* at once, whatever it was about */
void exchange_destroy(struct exchange *x);       /* MHD has let go of it */
void exchange_free_spare(struct worker *w);
void exchange_tick(struct exchange *x, uint64_t now_ms);
void exchange_relay(struct exchange *x, int caller_fd, struct span extra);

/* exchange.c and judge.c: called by the parts below */
void exchange_refuse(struct exchange *x, enum reason reason, const char *field, const char *text);
void exchange_answer_refusal(struct exchange *x);
void exchange_ready(struct exchange *x); /* the answer is there: let MHD take it */
void exchange_advance(struct exchange *x);
void exchange_deny(struct exchange *x); /* call.refused says why */
void exchange_judge(struct exchange *x);
void exchange_judge_in_turn(struct exchange *x); /* ... when it may be, by what holds then */
void exchange_ask_person(struct exchange *x);    /* the rules have asked for one, or denied */
void exchange_let_pass(struct exchange *x);      /* the rules have allowed it */
void exchange_again(struct exchange *x); /* as if it had just come, with the body that it has */
uint64_t exchange_upload_deadline(const struct exchange *x);
uint64_t exchange_service_deadline(const struct exchange *x);
bool exchange_may_release(const struct exchange *x);

/* quota.c: what the caller has in sum; the exchange goes on with judge.c's exchange_judge() */
bool quota_counts(struct exchange *x); /* true: it is being counted first, or was refused */
void quota_go_on(struct exchange *x);  /* answers have come */
bool quota_is_counting(const struct exchange *x);
bool quota_look(struct exchange *x); /* before rules; false: counted anew, or refused */
const struct jv *quota_facts(const struct exchange *x);
void quota_runs_already(struct exchange *x); /* judged again: nothing comes to what there is */
bool quota_take(struct exchange *x);         /* after them; false: judged anew, or refused */
void quota_sent(struct exchange *x);
void quota_answered(struct exchange *x, int http);
void quota_let_go(struct exchange *x); /* it ended without an answer */

/* tables.c */

/* Again is called with a later turn of the loop.  False: it has waited long enough. */
bool tables_wait(struct exchange *x, void (*again)(struct exchange *x));
void tables_retry(struct worker *w); /* each turn */

/* asking.c: what rules want a person to allow */
bool asking_is_allowed(void *exchange, const struct decision *d); /* for decide() */
bool asking_begin(struct exchange *x); /* true: an operator is asked; false: it is denied */
void asking_tick(struct exchange *x, uint64_t now_ms);
void asking_withdraw(struct exchange *x);        /* its caller has gone */
void asking_let_go(struct exchange *x);          /* of an answer that was not used */
const char *asking_id(const struct exchange *x); /* of the question; "" if there is none */
const char *asking_by(const struct exchange *x); /* who has answered; "" if nobody has */

/* forward.c: sends the judged request and brings the reply back */
int forward_prepare(struct exchange *x); /* renders; -1: it was refused instead */
void forward(struct exchange *x, const struct audit_receipt *receipt);
void forward_upload(struct exchange *x);
void forward_abandon(struct exchange *x);
void forward_timeout(struct exchange *x);
void forward_charge(struct exchange *x, size_t bytes); /* that it holds of a reply */
void forward_check(struct exchange *x);                /* go on after check lookups */
void forward_undo_timeout(struct exchange *x);

/* rows.c: what of a reply of rows may go out now; 0: more must come first, or it is over */
size_t rows_take(struct exchange *x, char *out, size_t max);

/* intake.c: bodies that are read and written anew on their way */
static inline bool exchange_streams(const struct exchange *x)
{
	return x->call.body == BODY_STREAM || x->call.body == BODY_REWRITE;
}

bool bodies_are_many(const struct exchange *x);
void exchange_release_body(struct exchange *x);
void intake_begin(struct exchange *x);
size_t intake_collect(struct exchange *x, struct span piece); /* before it is judged */
void intake_collect_end(struct exchange *x);
size_t intake_pass(struct exchange *x, struct span piece); /* after that */
void intake_flush(struct exchange *x);                     /* sends what is there, and the end */

/* lookup.c */
void lookup_start(struct exchange *x);
bool lookup_tick(struct exchange *x); /* true if something was asked: it may be over by then */
void lookup_abandon(struct exchange *x);
void lookup_path_answer(struct worker *w);
void lookup_resolver_lost(struct worker *w);
void lookup_timeout(struct exchange *x);

/* questions.c: whose question the resolver gets next */
void questions_send(struct worker *w);
void questions_answered(struct worker *w, uint64_t ticket);
void questions_lost(struct worker *w);

/* masked.c: appends a JSON list of the places from which the record leaves something out; nothing
 * if there is none.  The facts are made. */
void masked_write(const struct exchange *x, struct buf *out);

/* trail.c: records */
void trail_decision(const struct exchange *x, struct record *ret, struct arena *a);
void trail_end(struct exchange *x); /* outcome, or the one record of a read */
/* How a question to an operator ended for this request. */
void trail_approval(const struct exchange *x, const char *status, enum reason reason);
void trail_malformed(struct conn *c);

/* A TLS handshake that came to nothing. */
struct handshake {
	const char *listener, *address;
	enum tls_fault fault;
	const char *why;                   /* "" if there is no more to say */
	const struct identity_cert *shown; /* not known to be genuine; NULL: none */
};
void trail_handshake(struct worker *w, const struct handshake *h);

/* refusal.c */
void refusal_message(const struct exchange *x, struct buf *out);

/* check.c */
void check_print(struct exchange *x);
const struct jv *check_facts(const struct worker *w);
void check_malformed(struct worker *w);
void check_lookup(struct worker *w, struct lookup *l, struct arena *a);

#endif
