/*
 * sandbox_priv.h - the parts of the sandbox API.
 *
 *	server.c     the process: its loop, its listeners, who asks
 *	routes.c     paths -> functions
 *	openapi.c    the document that describes the API: openapi.json
 *	api.c        answers, errors, and what they have in common; codes.def
 *	request.c    bodies of requests, read strictly
 *	create.c     making a sandbox: which backend, and undoing what did not come about
 *	exec.c       commands: their answers, kept output, input
 *	files.c      files and archives
 *	driver.c     what is asked of workers: documents of the engine's API
 *	link.c       connections to workers: HTTP/1.1, blocking
 *	stream.c     what a command says: the engine's frames, and in them those of `inside`
 *	run.c        one command while it runs
 *	table.c      which sandboxes there are
 *	kept.c       ... in files
 *	lifetimes.c  which of them have to end
 *	trail.c      what goes on record
 *
 * Locks: struct sandboxes.lock guards the table and every field of a sandbox that says so; a run's
 * own lock its fields; neither is held while something blocks.  Order: table before run.
 */
#ifndef PROXY_SANDBOX_SANDBOX_PRIV_H
#define PROXY_SANDBOX_SANDBOX_PRIV_H

#include "audit/record.h"
#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/hash.h"
#include "gate/base/jv.h"
#include "proxy/httpd.h"
#include "proxy/sandbox/inside/frames.h"
#include "proxy/sandbox/sandbox.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_ID_LEN   30 /* "sbx-" and 26 characters */
#define SANDBOX_NAME_MAX 64
#define SANDBOX_OWNER    160
#define EXEC_ID_LEN      21 /* "exe-" and 17 characters */

#define WORK            "/work"    /* where commands run, and what is theirs */
#define BODY_MAX        (1u << 20) /* JSON of a request; files in it included */
#define UPLOAD_MAX      (1ull << 40)
#define REQUEST_ARENA   (16u << 20)
#define ARGV_MAX        1024 /* words */
#define ARGV_BYTES_MAX  (96u << 10)
#define ENV_MAX         256
#define ENV_BYTES_MAX   (64u << 10)
#define LABELS_MAX      32
#define LABEL_BYTES_MAX 1024 /* name and value */
#define FILES_MAX       64
#define PATH_BYTES_MAX  3072
#define STDIN_QUEUE_MAX (256u << 10)
#define RUNS_KEPT_MAX   32           /* ended, of one sandbox */
#define KEPT_BYTES_MAX  (128u << 20) /* output of ended runs, in all */

struct sandboxes;
struct run;

/* --- codes.def --- */

enum code {
	CODE_NONE = 0,
#define CODE(id, status, text, hint) CODE_##id,
#include "proxy/sandbox/codes.def"
#undef CODE
	CODE_COUNT
};

const char *code_name(enum code c);
int code_status(enum code c);
const char *code_text(enum code c);
const char *code_hint(enum code c);

/* What is wrong with a request; strings live in the request's arena. */
struct trouble {
	int status; /* 0: nothing */
	const char *code, *message, *hint;
	const char *decision;    /* id of the record; NULL or "": none */
	struct jv violations;    /* as a worker told; JV_NULL: none */
	struct jv backends;      /* create: why each falls short; JV_NULL: none */
	const char *retry_after; /* seconds; NULL: none */
	const char *level;       /* create: what that backend would have reached */
};

/* -1, so that `return trouble_set(...)` is the whole way out. */
int trouble_set(struct trouble *t, struct arena *a, enum code code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* --- who asks --- */

struct caller {
	char listener[SANDBOX_NAME_MAX + 1];
	char identity[SANDBOX_NAME_MAX + 1]; /* "": known by its user alone */
	char owner[SANDBOX_OWNER];
	char profile[SANDBOX_NAME_MAX + 1]; /* what it is judged by */
	char address[48];
	bool has_cred;
	uint32_t uid, gid;
	int32_t pid;
	bool own; /* the gate itself cleans up */
};

struct limits { /* 0: not said */
	int64_t memory, nano_cpus, pids, disk, output;
};

/* What a profile says of sandboxes. */
struct terms {
	const char *image; /* "" if it names none */
	int64_t lifetime_s, idle_s;
	struct limits most; /* that may be asked for; 0: no bound of its own */
	bool per_call;
};

/* --- sandboxes --- */

#define DENIALS_MAX 32

/* What was refused in it lately. */
struct denial {
	int64_t at; /* seconds since 1970 */
	char op[32], code[48], decision[40], message[200];
};

enum box_state { BOX_CREATING = 0, BOX_RUNNING, BOX_ENDING };

struct box {
	char id[SANDBOX_ID_LEN + 1]; /* also its container's name */
	struct caller who;           /* whose it is; pid is of no meaning */
	char backend[SANDBOX_NAME_MAX + 1];
	char image[512];
	char level[16], runtime[SANDBOX_NAME_MAX];
	int64_t created; /* seconds since 1970 */
	int64_t idle_s;  /* 0: it never idles */
	struct limits limits;
	char *labels;                      /* JSON object */
	char *env;                         /* JSON array of "NAME=value" */
	char key[SANDBOX_NAME_MAX + 1];    /* Idempotency-Key, or "" */
	char key_sha256[HASH_HEX_LEN + 1]; /* of the request that it came with */
	bool per_call;

	/* under the table's lock */
	enum box_state state;
	int64_t expires;     /* seconds since 1970 */
	uint64_t ends_ms;    /* the same on clock_boot_ms() */
	uint64_t idle_at_ms; /* ends then, unless something happens; 0: something runs, or never */
	unsigned refs;       /* of threads that have it in hand */
	struct run *runs;    /* the newest first */
	unsigned run_count, running;
	bool hidden;                        /* it is another one's, for one command */
	struct denial denials[DENIALS_MAX]; /* a ring */
	unsigned denied;                    /* how many there were */
	uint64_t retry_ms;                  /* it could not be ended: tried again then */
	struct box *next;
};

struct box *box_create(void);
void box_free(struct box *b);

/* --- table.c --- */

struct box *table_find(struct sandboxes *s, const struct caller *who, const char *id); /* a ref */
void table_deny(struct sandboxes *s, struct box *b, const char *op, const struct trouble *t);
void table_unreserve(struct sandboxes *s);
void table_unref(struct sandboxes *s, struct box *b);
/* Takes the box, with one reference for whoever adds it; a place was reserved. */
/* NULL, or the one that came with the same key before: then b is not taken. */
struct box *table_add(struct sandboxes *s, struct box *b);
void table_remove(struct sandboxes *s, struct box *b); /* it is freed with its last reference */
int table_reserve(struct sandboxes *s, const struct caller *who, struct arena *a,
		  struct trouble *t);
void table_touch(struct sandboxes *s, struct box *b); /* it is not idle now */
/* Under its lock: outputs of the oldest that ended go, as long as all of them take too much. */
void table_trim(struct sandboxes *s);
/* A command begins in it, and takes a reference of its own.  -1: there are too many. */
int table_add_run(struct sandboxes *s, struct box *b, struct run *r, struct arena *a,
		  struct trouble *t);
void table_drop_run(struct sandboxes *s, struct box *b, struct run *r); /* it did not begin */
struct run *table_find_run(struct sandboxes *s, const struct box *b, const char *id); /* a ref */
void table_id(char *out, const char *prefix, size_t letters);

/* --- kept.c --- */

int kept_write(struct sandboxes *s, const struct box *b, struct err *err);
void kept_remove(struct sandboxes *s, const struct box *b);
int kept_parse(struct span text, struct box *ret, struct err *err);
void kept_text(const struct box *b, struct buf *out);
int kept_read_all(struct sandboxes *s, struct err *err);

/* --- link.c --- */

struct link {
	int fd;
	bool used;
	struct link *next;
};

/* One request to a worker. */
struct ask {
	const struct caller *who;
	const char *backend;       /* "": the listener's first */
	const char *authorization; /* NULL: the identity is named */
	const char *method;
	const char *target;
	struct span body; /* of JSON */
	bool upgrade;
};

struct reply {
	int status; /* 0: there was none */
	struct buf body;
	char isolation[96], retry_after[16], decision[64];
	int fd;           /* behind a 101; else -1 */
	struct buf early; /* ... what came with it */
};

void reply_fini(struct reply *r);

struct links {
	pthread_mutex_t lock;
	pthread_cond_t came;
	struct link *idle;
	unsigned idle_count, asked; /* asked: of the supervisor, and not there yet */
	unsigned waiting;
	bool over;
};

void links_init(struct links *l);
void links_close(struct links *l);
void links_add(struct links *l, int fd); /* a new one has come */

/* 0: *ret is filled, whatever the status; -1: trouble says what is wrong. */
int link_ask(struct sandboxes *s, const struct ask *ask, struct arena *a, struct reply *ret,
	     struct trouble *t);

/* --- stream.c --- */

struct stream {
	uint8_t outer[8]; /* the engine's head */
	size_t outer_have;
	uint32_t outer_left;
	bool outer_err; /* what comes is the engine's stderr */
	uint8_t head[FRAME_HEAD];
	size_t head_have;
	uint32_t left;
	enum frame_type type;
	bool bad;  /* it made no sense: nothing more is read */
	bool over; /* the end has come */
	char end[FRAME_END_MAX + 1];
	size_t end_len;
	char said[512]; /* what the engine says beside it */
	size_t said_len;
};

typedef void stream_fn(void *arg, enum frame_type type, struct span data);
void stream_feed(struct stream *st, struct span bytes, stream_fn *got, void *arg);

/* --- run.c --- */

enum run_state { RUN_RUNNING = 0, RUN_ENDED, RUN_LOST };

struct run {
	char id[EXEC_ID_LEN + 1];
	char program[128];
	struct sandboxes *s;
	struct box *box; /* a reference, as long as it runs */
	int fd, wake;
	bool flows; /* output is taken by one reader, and not kept */
	bool tty;
	int64_t started;
	uint64_t began_ms, ended_ms, deadline_ms;
	struct stream stream; /* of whoever pumps */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	struct buf in;     /* frames that wait to be sent */
	bool in_over;      /* the end of stdin is among them, or was sent */
	struct buf out;    /* chunks: type, length, octets */
	uint64_t out_from; /* octets of chunks that were dropped from its front */
	enum run_state state;
	bool killed, cut; /* cut: its caller has gone, or it is to end */
	bool truncated, timed_out, failed;
	bool forgotten; /* its output is kept no more */
	int code, signal;
	char error[32], message[256];

	/* under the table's lock */
	unsigned refs;
	bool listed;
	struct run *next;
};

#define CHUNK_HEAD 5u

struct run *run_create(struct sandboxes *s, struct box *b, int64_t output);
void run_attach(struct run *r, int fd, struct span early);
void run_unref(struct run *r); /* takes the table's lock */
void run_unref_locked(struct run *r);
void run_forget_output(struct run *r); /* under the table's lock; if it is over */

/*
 * Goes on with it: sends what waits, reads what comes; at most timeout_ms.  Whoever calls this
 * is the only one.  caller_fd: of who waits for it, or -1; the run ends when that hangs up.
 * False: it is over.
 */
bool run_step(struct run *r, int caller_fd, int timeout_ms);
void run_to_end(struct run *r, int caller_fd);

/* Frames for it; false: it is over, or there is no room for `wait_ms`. */
bool run_send(struct run *r, enum frame_type type, struct span data, int wait_ms);
void run_cut(struct run *r);
bool run_detach(struct run *r); /* a thread of its own pumps it; takes the caller's reference */

/* The next chunk at *at, which goes on behind it; false: there is none yet. */
bool run_chunk(struct run *r, uint64_t *at, enum frame_type *ret_type, struct span *ret,
	       struct arena *a);

/* --- driver.c --- */

struct making {
	const char *image;
	struct limits limits;
};

int driver_create(struct sandboxes *s, const struct box *b, struct arena *a, struct reply *ret,
		  struct trouble *t);
int driver_start(struct sandboxes *s, const struct box *b, struct arena *a, struct trouble *t);
/* True: it is gone, or was. */
bool driver_delete(struct sandboxes *s, const struct box *b, bool own, struct trouble *t);
bool driver_exists(struct sandboxes *s, const struct box *b, bool *ret_known);

/* Begins `inside` with these words; the run has its connection. */
struct command {
	const struct caller *who;
	const char *const *words;        /* behind the helper's own path; NULL at the end */
	const struct jv *env, *more_env; /* arrays of "NAME=value", or NULL */
};
int driver_exec(struct sandboxes *s, const struct box *b, const struct command *c, struct arena *a,
		struct run *r, struct trouble *t);

/* What a worker refused, in the form of this API; -1. */
int driver_refused(const struct reply *r, struct arena *a, struct trouble *t);

/* --- trail.c --- */

struct note {
	struct record record;
	bool done, durable;
	struct note *next;
};

/* What is told; why: of a refusal, else NULL; facts, text: if there is anything to say. */
struct told {
	const char *op;
	const struct caller *who;
	const char *id; /* of the sandbox, or NULL */
	const struct trouble *why;
	struct span facts;
	const char *text;
};

/* On record, and on disk, when it returns true.  Its id is made by it. */
bool trail_note(struct sandboxes *s, const struct told *what);

/* A refusal of this API; above a rate they are counted, and told with the next. */
void trail_refusal(struct sandboxes *s, const char *op, const struct caller *who, const char *id,
		   const struct trouble *why);

/* --- request.c --- */

struct wanted_file {
	const char *path, *mode;
	struct span content;
};

struct wanted {
	const char *profile, *image, *backend;
	struct jv env, labels; /* env: array of "NAME=value" */
	struct wanted_file *files;
	size_t file_count;
	struct limits limits;
	int64_t lifetime_s, idle_s; /* 0: not said */
	int per_call;               /* -1: not said */
};

struct wanted_exec {
	const char **argv; /* NULL at the end */
	const char *cwd;
	struct jv env;
	struct span input;
	bool input_streams, detach;
	int64_t timeout_ms, output;
	int rows, cols; /* 0: no terminal */
};

int request_object(struct httpd_request *r, struct jv *ret, struct trouble *t);
int request_create(struct httpd_request *r, struct wanted *ret, struct trouble *t);
int request_exec(struct httpd_request *r, struct wanted_exec *ret, struct trouble *t);
int request_lifetime(struct httpd_request *r, int64_t *ret_s, struct trouble *t);
int request_size(struct httpd_request *r, int *ret_rows, int *ret_cols, struct trouble *t);
int request_signal(struct httpd_request *r, int *ret, struct trouble *t);
int request_query(struct httpd_request *r, const char *const *known, struct trouble *t);

/* --- the process --- */

struct front {
	struct sandboxes *s;
	const struct conf_listener *listener;
	struct httpd *http;
};

struct trail {
	pthread_mutex_t lock;
	pthread_cond_t done;
	uint64_t full_at_ms; /* refusals: all that may be told at once is there again */
	unsigned untold;
	struct note *first, **last;
	int wake;
	bool over;
};

struct sandboxes {
	struct sandbox_conf conf;
	struct front *fronts;
	size_t front_count;
	struct links links;
	struct trail trail;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct box *boxes;
	unsigned box_count;  /* with those that are being made */
	uint64_t kept_bytes; /* output of ended runs */
	bool over;
	pthread_mutex_t control_lock;
};

void server_want_link(struct sandboxes *s); /* a connection to a worker is to come */

/* One request, from its head to its answer. */
struct call {
	struct front *front;
	struct sandboxes *s;
	struct httpd_request *r;
	struct arena *a;
	struct caller who;
	struct jv about; /* what the worker says of who asks */
	struct trouble trouble;
	struct box *box;    /* a reference, or NULL */
	struct box *parent; /* per_call: box is for this command alone, and ends with it */
	struct run *run;    /* likewise */
	const struct route *route;
	const char *rest; /* of the path, where the route has one */
	const char *exec_id;
	bool pumps;  /* nobody else goes on with the run */
	uint64_t at; /* of the run's output */
	int phase;
	struct buf row;
	struct arena *scratch;
};

typedef void route_fn(struct call *c);
struct route {
	const char *method, *pattern;
	route_fn *begin; /* with pieces of a body; or NULL */
	route_fn *handle;
	bool identify, box;
	const char *op; /* on record */
};

void call_begin(void *arg, struct httpd_request *r);
bool call_piece(void *arg, struct httpd_request *r, struct span piece);
void call_handle(void *arg, struct httpd_request *r);
void call_done(void *arg, struct httpd_request *r);

/* Who asks, by a worker's word; profile: what is wanted, "" for its own. */
void api_row(struct call *c, const struct jv *tree); /* a line of a stream */
int api_identify(struct call *c, const char *profile);
void api_terms(const struct call *c, struct terms *ret);
void api_answer(struct call *c, int status, const struct jv *tree);
void api_fail(struct call *c);
struct jv api_time(struct arena *a, int64_t seconds);
struct jv api_box(struct call *c, const struct box *b);
bool api_wants(const struct call *c, const char *type); /* in Accept */

/* c->route, and what stands in the path. */
int routes_find(struct call *c, const char **ret_id);

void openapi_handle(struct call *c);
void box_list(struct call *c);
void box_show(struct call *c);
void box_patch(struct call *c);
void box_delete(struct call *c);
void box_denials(struct call *c);
void create_handle(struct call *c);
/* per_call: c->box is one like it from here on, which has what is in its /work. */
int create_for_call(struct call *c);
int end_box(struct sandboxes *s, struct box *b, const char *op, struct trouble *t);
struct jv exec_tree(struct arena *a, struct run *r);
void exec_handle(struct call *c);
void exec_list(struct call *c);
void exec_show(struct call *c);
void exec_output(struct call *c);
void exec_stdin_begin(struct call *c);
void exec_stdin(struct call *c);
void exec_resize(struct call *c);
void exec_kill(struct call *c);
/* Begins `inside` in c->box; c->run is it, and the caller goes on with it. */
int exec_begin(struct call *c, const struct command *cmd, int64_t output, bool flows,
	       const char *program);
struct span exec_joined(struct call *c, enum frame_type wanted); /* all of one stream */
bool exec_piece(struct call *c, struct span piece);
int exec_find(struct call *c);
void files_get(struct call *c);
void files_put_begin(struct call *c);
void files_put(struct call *c);
void files_delete(struct call *c);
void tar_get(struct call *c);
void tar_put_begin(struct call *c);
/* What is below a folder of one sandbox goes to another one. */
int files_copy(struct call *c, struct box *from, struct box *to, const char *path);
int files_write(struct call *c, const struct wanted_file *f);

void *lifetimes_main(void *arg); /* a thread */
/* What is to be ended now, with a reference, or NULL; *ret_next_ms: when to look again. */
struct box *lifetimes_due(struct sandboxes *s, uint64_t now_ms, const char **ret_op,
			  uint64_t *ret_next_ms);

#endif
