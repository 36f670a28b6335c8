/*
 * backend.h - what the proxy needs to know of a service it guards.
 *
 * An adapter says what a request means, how to render it anew, and what to
 * check afterwards.  It never judges and does no I/O: where it needs to know
 * more it asks for lookups, and the exchange in proxy/ makes them.
 *
 * The life of one call:
 *
 *	route     from method and path alone: operation, body and reply kind
 *	intake    BODY_REWRITE: the body, piece by piece, until it can be judged
 *	step      as often as it asks for lookups: body and answers -> facts
 *	count     where the profile has a quota: what the caller has
 *	apply     hardening, then the facts are made anew
 *	render    the request that is sent: never the caller's bytes
 *	reply     head of the answer: what crosses
 *	filter    body of an answer that was held back: rows and fields
 *	check     a launch: is what was made what was judged?  else undo
 *
 * To add a backend: its folder, its tests, and one line each in registry.c,
 * list_priv.h and meson.build.
 *
 * Threads: an opened backend belongs to one worker.
 */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include "backends/isolation.h"
#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "gate/base/span.h"
#include "rules/hide.h"
#include "rules/identity.h"
#include "rules/operation.h"
#include "rules/reach.h"
#include "rules/workload.h"

#include <stdbool.h>
#include <stdint.h>

/* The label prefix that is the gate's own, on every backend that has labels. */
#define GATE_LABEL_PREFIX "sallyport."
#define GATE_LABEL_OWNER  "sallyport.owner"
#define GATE_LABEL_ID     "sallyport.decision" /* the decision that made the object */
#define GATE_LABEL_SELF   "sallyport.self"     /* an object of the gate itself */

/*
 * Of what runs: the profile that it was made under, and the isolation that it must not
 * fall below: what the profile asked for, as far as it was kept when it was made.
 */
#define GATE_LABEL_PROFILE   "sallyport.profile"
#define GATE_LABEL_ISOLATION "sallyport.isolation"

/* Beside them: it was made through a listener that was made at run time, and this is its name. */
#define GATE_LABEL_LISTENER "sallyport.listener"

/*
 * Who built an image, and by which decision.  Labels of its own: containers take
 * over their image's, and the two above say whose a container is.
 */
#define GATE_LABEL_IMAGE_OWNER "sallyport.image.owner"
#define GATE_LABEL_IMAGE_ID    "sallyport.image.decision"

struct pair {
	struct span key, value;
};
#define GATE_LABEL_IMAGE "sallyport.image" /* the image as it was named, where it was pinned */

/* A request after canonical.c: decoded once, one meaning.  Strings live in the call's arena. */
struct canonical {
	const char *method;       /* "GET": upper case, known */
	const char *path;         /* decoded, clean, with its version prefix if it has one */
	const struct pair *query; /* decoded; unique keys unless the route repeats one */
	size_t query_count;
	const struct pair *headers; /* names in lower case */
	size_t header_count;
	const char *content_type;   /* type/subtype in lower case, without parameters; "" if none */
	const char *content_coding; /* "" or "gzip" */
	bool has_body;              /* a length above 0, or chunked */
	int64_t body_bytes;         /* -1: chunked */
	struct span body;           /* complete, for BODY_JSON, once step() is called */
	bool upgrade;               /* Connection: upgrade with Upgrade: tcp (or h2c, websocket) */
	const char *upgrade_to;     /* "" if none */
};

/* How the request's body is treated. */
enum body_kind {
	BODY_NONE = 0, /* there must be none (an empty one passes) */
	BODY_JSON,     /* held, capped, parsed, rendered anew */
	BODY_STREAM,   /* passed on as it comes, with push-back (archives of images) */
	BODY_REWRITE,  /* streamed, but read by intake(), and written anew by it */
	BODY_KIND_COUNT
};

/* How the reply is treated. */
enum reply_kind {
	REPLY_STREAM = 0, /* passed on as it comes, with push-back, without a timer */
	REPLY_ROWS,       /* like REPLY_STREAM, a line a time: each is looked at by row() */
	REPLY_HELD,       /* a JSON document that is held (capped), filtered, rendered anew */
	REPLY_LAUNCH,     /* like REPLY_HELD, then check(): it was just made, or started */
	REPLY_HIJACK,     /* after a 101 both directions are raw bytes */
	REPLY_KIND_COUNT
};

/* What intake() says of a body. */
enum intake {
	INTAKE_REFUSED = 0, /* call->refused says why; nothing more of it is sent */
	INTAKE_MORE,        /* what has come cannot be judged yet: it is held */
	INTAKE_KNOWN        /* step() can judge; what follows is only written anew */
};

enum lookup_kind {
	LOOKUP_GET = 0,   /* GET target from the service */
	LOOKUP_PATH,      /* ask the resolver what a host path is */
	LOOKUP_PROCESS,   /* ask the resolver what runs under a pid that the service named */
	LOOKUP_REMEMBERED /* ask the gate what it was that the caller took away under a name */
};

/*
 * Something the adapter needs to know.  The adapter fills the upper half, the
 * exchange the lower.  `table` and `key` say where a facts file
 * (sallyport check --facts) holds the same answer.
 */
struct lookup {
	enum lookup_kind kind;
	const char *target; /* GET: path and query as sent; PATH: an absolute, cleaned path;
			       PROCESS: the lines of proxy/resolve.h; REMEMBERED: the name */
	const char *table;  /* "info", "version", "images", "containers", "volumes", "networks",
			       "execs", "files", "updates" */
	const char *key;    /* "" for info and version */
	bool later;         /* asked with the next tick: what it is about takes its time */

	bool answered;
	int status;     /* HTTP status; PATH, PROCESS: 200; 0: no answer (unreachable, timed out, or
			   unknown to the facts file) */
	bool late;      /* with status 0: there was no answer in time */
	struct jv body; /* parsed JSON; PATH, PROCESS: see proxy/resolve.h; JV_NULL if there is none
			 */
};

#define SEAL_KEY_BYTES 32

#define LOOKUPS_MAX     64 /* in one step */
#define STEPS_MAX       8  /* times step() may ask */
#define CHECK_STEPS_MAX 48 /* ... and check(), which waits for what is about to begin or end */

enum step {
	STEP_REFUSED = 0, /* call->refused says why */
	STEP_LOOKUP,      /* call->lookups wait for answers; then call again */
	STEP_READY
};

/* Whose an object is that is older than the gate, on the operator's word. */
struct adopted {
	const char *kind;    /* "container", "network", "volume" */
	const char *id;      /* full id; a volume's name */
	const char *created; /* volumes: when it was made, as the engine says; else "" */
	const char *owner;
};

/* What an operation is about, once it is resolved. */
struct object {
	const char *kind; /* "container", "exec", "image", "volume", "network"; "" if none */
	const char *id;   /* full id */
	const char *name;
	const char *owner; /* who it belongs to; "" if nobody's */
	bool mine;         /* it belongs to the caller */
};

/* What count() is to find out, as bits. */
enum counts {
	COUNT_RUNNING = 1,      /* which containers run, are frozen or about to run again */
	COUNT_LIMITS = 2,       /* ... and what they may take */
	COUNT_VOLUMES = 4,      /* which volumes there are */
	COUNT_VOLUME_SPACE = 8, /* what the caller's volumes take on disk */
	COUNT_IMAGE_SPACE = 16  /* what images take, those aside that others built */
};

/* Something that the caller has.  Limits: 0 if there is none. */
struct counted {
	const char *kind; /* "container", "volume" */
	const char *id;   /* full id; a volume's name */
	const char *name;
	bool runs, gone;
	bool looked_at;    /* the rest is known */
	const char *since; /* of a container's last start; "" if not known */
	int64_t memory, nano_cpus, pids;
};

#define COUNTED_MAX      512 /* of one owner; more are refused */
#define COUNT_LOOKED_MAX 256 /* of them, whose limits can be asked for */
#define COUNT_ALSO_MAX   32

struct counting {
	/* set by the exchange */
	unsigned wants;                   /* enum counts */
	const char *also[COUNT_ALSO_MAX]; /* containers to be looked at, running or not */
	size_t also_count;

	/* set by count() */
	struct counted *list; /* the caller's, and those of `also`; some that do not run */
	size_t count;
	int64_t volume_bytes, image_bytes; /* below 0: the service does not say */
	int round;                         /* the adapter's own; 0 begins a count */
	size_t next;
};

/*
 * What the request holds, or the service's answers, and neither facts nor violations say, since it
 * may be secret: bits.  proxy/masked.def has the places in a record.
 */
enum withheld {
	WITHHELD_COMMAND = 1,   /* the words of a container's command */
	WITHHELD_ARGUMENTS = 2, /* what follows the program of an exec */
	WITHHELD_PULL_URL = 4,  /* user, password and query of a URL to be imported */
	WITHHELD_BUILD_URL = 8, /* ... of one in a Dockerfile */
	WITHHELD_VALUE = 16     /* what stood where a violation is */
};

/* One call: made by the exchange, shared by all functions below. */
struct backend_call {
	/* set by the exchange */
	struct arena *arena;
	const struct canonical *req;
	const char *owner;         /* the caller's owner id; never "" */
	const char *id;            /* the decision's id, for GATE_LABEL_ID */
	const char *profile;       /* its name, for GATE_LABEL_PROFILE; NULL or "": none */
	enum isolation minimum;    /* that the profile asks for, for GATE_LABEL_ISOLATION */
	const char *listener;      /* for GATE_LABEL_LISTENER; NULL or "": none */
	const struct reach *reach; /* what the profile shows of the objects of others */
	struct span seccomp; /* the filter of system calls that the profile gives containers, as
				JSON; "" where that is the service's own */
	const struct adopted *adopted; /* by kind and id, in order */
	size_t adopted_count;
	const char *self;   /* the gate's own container, by id or name; "" or NULL: it is in none */
	const char *helper; /* host path of the program that sandboxes get; "" or NULL: none */
	bool from_sandboxes; /* the process behind the sandbox API asks: it alone may mount that */
	unsigned hides;      /* what replies do not show of what the caller sees: enum hide */
	const char *const
		*protected_paths;        /* host paths that no mount may touch; NULL at the end */
	const char *const *engine_names; /* host paths by which the caller means the service's own
					    socket; NULL at the end, or NULL */
	const char *own_socket; /* what its workloads may get in place of that: a socket of the
				   gate on which they are the same caller; "" or NULL: none */
	uint64_t now_ms;        /* CLOCK_BOOTTIME, for the adapter's caches */
	bool offline; /* `check --facts`: nothing that was cached from a live service counts */
	bool sees_processes; /* what the service starts can be looked at: LOOKUP_PROCESS */
	bool wants_attested; /* the profile takes nothing for granted that was not seen */
	bool updates; /* containers are judged beside those that they replace: rules/update_priv.h
		       */
	const unsigned char *seal_key; /* SEAL_KEY_BYTES, for the facts below "sealed"; or NULL */

	/* set by route() */
	enum operation op;
	enum body_kind body;
	enum reply_kind reply;
	const char *content_types;
	/* space separated, for BODY_STREAM and BODY_JSON; "-" stands for none, "" takes any */
	bool until_close;   /* the caller reads a streamed reply as bytes until the connection ends,
			       and does not know chunks */
	bool looks_for_one; /* among the kinds that clients try one after the other: where the
			       profile does not grant it, it is answered as what is not there */

	/* set by step() and check() */
	struct lookup lookups[LOOKUPS_MAX];
	size_t lookup_count;
	struct violations refused; /* canonical refusals; not empty after STEP_REFUSED */
	struct violation
		instead; /* if reason is set: answer with this if the rules allow (image_absent) */
	struct object object;
	struct workload workload;
	struct counting counting;
	struct warning_text {
		const char *text;
	} warnings[16]; /* fields that were dropped */
	size_t warning_count;
	unsigned withheld;     /* enum withheld */
	enum operation also;   /* is asked for besides op, by a command of that program; or
				  OP_UNKNOWN */
	struct jv replaces;    /* updates: the container that is replaced, or that is taken away
				  and would come again: {id,name,owner,profile,
				  isolation,by,loses,workload}; JV_NULL
				  if there is none */
	bool remembers;        /* ... and is to be remembered under its name */
	struct jv attestation; /* set by check() of what was started, for the record: FORMAT.md;
				  JV_NULL if nothing was */

	void *state; /* the adapter's own, in the arena */

	/*
	 * BODY_REWRITE: what intake() knows of the body, in the arena.  It outlasts the rest: an
	 * exchange that begins anew, since a person was asked, cannot read its body again.
	 */
	void *reading;
};

/* A request to be sent; head and body are complete (a streamed body follows the head). */
struct outgoing {
	struct buf head;   /* request line and headers with the last empty line; initialised by the
			      caller */
	struct buf body;   /* BODY_JSON: the rendered document */
	bool streams_body; /* the caller's body follows, chunked or with req->body_bytes */
};

/* Of a caller's container, of those labels that are shown; one with more, or longer, is not known.
 */
#define CALLER_LABELS_MAX     16
#define CALLER_LABEL_NAME_MAX 128 /* bytes */
#define CALLER_TEXT_MAX       512 /* bytes of a name, an image, a label's value; likewise */
#define CALLER_STEPS_MAX      8

enum caller_place {
	CALLER_UNKNOWN = 0,
	CALLER_OUTSIDE, /* in no container */
	CALLER_INSIDE
};

/*
 * The container that a caller runs in: what the service knows of it.  Asked by
 * ids that its control groups are named by, or by the addresses of its connection.
 */
struct caller_call {
	/* set by the proxy */
	struct arena *arena;
	const char *ids[4]; /* full ids; the first that the service knows is it */
	size_t id_count;
	const char *peer, *own;    /* addresses of both ends; NULL: it is asked by ids */
	int64_t since_ns;          /* when the connection was accepted, since 1970 */
	const char *const *labels; /* globs over names of labels; NULL at the end, or NULL */

	/* set by caller(), which asks one thing at a time; the answer goes into it */
	struct lookup lookup;
	struct caller_container found;
	int32_t init;           /* its first process, by pid of the host */
	const char *started_at; /* when it was started; it is another one after a restart */
	const char *why;        /* STEP_REFUSED: what is not known */
	bool trouble;           /* ... since the service gave no answer */
	void *state;            /* the adapter's own, in the arena */
};

struct reply_head {
	int status;
	const struct pair *headers; /* names in lower case */
	size_t header_count;
};

/* What an object that runs says of itself; strings live in the call's arena. */
struct again {
	bool runs;
	const char *owner;    /* "": it is nobody's, or the gate's own */
	const char *profile;  /* that it was made under; "": that is not on it */
	const char *listener; /* made at run time, through which it was made; "": none */
	bool has_minimum;     /* what it was made with is on it: */
	enum isolation minimum;
	bool comes_back; /* the service starts it anew when it ends, or when the service starts */
};

/* How something that runs is stopped. */
enum stop_part {
	STOP_NOW = 0, /* it ends */
	STOP_FOR_GOOD /* the service does not start it again by itself */
};

/* What a service says has happened there, of the kinds that the gate decides on. */
enum effect {
	EFFECT_NONE = 0,
	EFFECT_CREATE,     /* a container was made */
	EFFECT_START,      /* ... runs */
	EFFECT_EXEC,       /* a command in a container was prepared */
	EFFECT_EXEC_START, /* ... runs */
	EFFECT_TAG,        /* an image got a name */
	EFFECT_IMAGE,      /* an image came: pulled, loaded, imported */
	EFFECT_CONNECT,    /* a container was attached to a network */
	EFFECT_COUNT
};

/* What else happens to a container, by which a start of the service's own is known. */
enum life { LIFE_NONE = 0, LIFE_KILL, LIFE_DIE, LIFE_STOP, LIFE_GONE };

/* A line of watch(), read.  Strings live in the arena it was read into; "" is none. */
struct happening {
	enum effect effect;
	enum life life;
	enum operation op;     /* what somebody would have asked for */
	const char *kind, *id; /* of the object: "container", "exec", "image", "network" */
	const char *name;
	const char *container; /* it, or whose it is */
	const char *image;     /* of a container, as it was named */
	bool image_by_id;
	const char *decision; /* GATE_LABEL_ID of a container */
	const char *command;  /* of an exec: may hold secrets, never goes on record */
	uint64_t at_ns;       /* since 1970, by the service's clock */
};

struct backend;

struct backend_conf {
	const char *name;
};

/* Where a fact stands in this backend's requests: {"privileged", "HostConfig.Privileged"}. */
struct fact_name {
	const char *fact, *field;
};

struct backend_ops {
	const char *kind;                   /* as written in the configuration: "docker" */
	const char *summary;                /* one line, for people */
	const struct fact_name *fact_names; /* ends with {NULL, NULL} */

	/* NULL on error.  conf is valid only during the call. */
	struct backend *(*open)(const struct backend_conf *conf, struct err *err);
	void (*close)(struct backend *be);

	/* The connection to the service was lost or restarted: cached facts are void. */
	void (*forget)(struct backend *be);

	/* 0 or -1; -1 has set call->refused (unknown_endpoint, method, version, query, ...). */
	int (*route)(struct backend *be, struct backend_call *call);

	/*
	 * BODY_REWRITE: takes from *piece and appends to *ret what is to be sent
	 * of it, at most some 100 KiB a call; over: the body's end has come, and
	 * piece is empty.  The rest of a piece that was not taken comes again.
	 */
	enum intake (*intake)(struct backend *be, struct backend_call *call, struct span *piece,
			      bool over, struct buf *ret);

	/*
	 * Reads the request (body complete if BODY_JSON) and the answers so far.
	 * Sets object and workload.  Strings come from the arena.
	 */
	enum step (*step)(struct backend *be, struct backend_call *call);

	/*
	 * Once step() is ready: counts what the caller has, into call->counting, anew each
	 * time that `round` is 0.  Refused: the service does not say, or it is too much.
	 */
	enum step (*count)(struct backend *be, struct backend_call *call);

	/*
	 * Applies hardening to the model, sets each change's `field`, and makes
	 * the facts anew.  -1: a change does not fit (ERR_CONFIG).
	 */
	int (*apply)(struct backend *be, struct backend_call *call, struct change *changes,
		     size_t count, struct err *err);

	/* Writes the judged model.  -1 when a buffer's cap is reached. */
	int (*render)(struct backend *be, struct backend_call *call, struct outgoing *ret,
		      struct err *err);

	/*
	 * Which headers of the reply cross: sets keep[i] for each.  Framing
	 * headers (content-length, transfer-encoding, connection, upgrade) are
	 * the proxy's.  *ret_value: a replacement for header i, or NULL.
	 */
	void (*reply_header)(struct backend *be, struct backend_call *call,
			     const struct pair *header, bool *ret_keep, const char **ret_value);

	/* REPLY_HELD, REPLY_LAUNCH, and an error where REPLY_ROWS was expected, or where
	 * something is hidden: body -> what the caller may see.  -1: it cannot be understood.
	 */
	int (*filter)(struct backend *be, struct backend_call *call, int status, struct span body,
		      struct buf *ret, struct err *err);

	/*
	 * REPLY_ROWS: whether the caller may see this row.  *ret: what it sees of it,
	 * without a line end.  scratch is for this call alone.
	 */
	bool (*row)(struct backend *be, struct backend_call *call, struct span row,
		    struct arena *scratch, struct span *ret);

	/*
	 * REPLY_LAUNCH after a 2xx or a 304: inspects what was made and compares; of what was
	 * started, asks what the kernel says of it.
	 * STEP_REFUSED: it is not what was judged; undo() follows.
	 */
	enum step (*check)(struct backend *be, struct backend_call *call, struct span reply_body);

	/* The request that removes what was just made, or kills what was just started. */
	int (*undo)(struct backend *be, struct backend_call *call, struct outgoing *ret,
		    struct err *err);

	/* The id of what was made, after check(); "" if none. */
	const char *(*created)(const struct backend_call *call);

	/*
	 * Which container a caller runs in: asks until it knows.  STEP_REFUSED: it is not
	 * known, or, without an error, the answers fit more than one.  NULL: the service has none.
	 */
	enum step (*caller)(struct backend *be, struct caller_call *call);

	/* A refusal in the form that this service's clients show to people. */
	void (*refusal)(const char *message, struct buf *ret_body, const char **ret_content_type);

	/*
	 * The head of a request for the stream of what happens in the service, from
	 * `since` on ("": from now on), as the service writes times.  NULL: it has none.
	 */
	void (*watch)(struct backend *be, const char *since, struct buf *ret_head);

	/*
	 * Judging again what runs.  running: the head of a request for all that runs (a
	 * JSON array), or for the `count` objects in ids.  running_row: the full id of what
	 * an element of that array is about, if it is somebody's who came through the gate;
	 * else ""; NULL: it cannot be read.  Of call only arena, owner (of nobody), adopted and
	 * self are set; its object says what it is.
	 */
	void (*running)(struct backend *be, const char *const *ids, size_t count,
			struct buf *ret_head);
	const char *(*running_row)(struct backend *be, struct backend_call *call,
				   const struct jv *row);

	/*
	 * Begins a call as if the object were to be started: route() must have been called
	 * for what restart() says.  Asks what it says of itself; when it is STEP_READY, owner
	 * and profile can be set, and step() and check() follow as after a start.
	 */
	void (*restart)(struct backend *be, const char *id, struct canonical *ret, struct arena *a);
	enum step (*again)(struct backend *be, struct backend_call *call, struct again *ret);

	/* The request that stops it; *ret_op: what that is. */
	int (*stop)(struct backend *be, struct backend_call *call, enum stop_part part,
		    struct outgoing *ret, enum operation *ret_op, struct err *err);

	/* Reads a line of that stream.  -1: it is none. */
	int (*happened)(struct backend *be, struct span line, struct arena *a,
			struct happening *ret);

	/*
	 * The inspected container can have started, or this command in it, without anybody
	 * asking: the service's own restart policy, its own health check.  Why; NULL if not.
	 */
	const char *(*by_itself)(struct backend *be, const struct happening *h,
				 const struct jv *container);

	/* Targets of requests for all containers, and (id) for one of them. */
	const char *list_target;
	void (*inspect_target)(const char *id, struct buf *ret);

	/* A row of that list, as if it had just been made; whether it runs.  -1: it is none. */
	int (*listed)(const struct jv *row, struct arena *a, struct happening *ret, bool *ret_runs);

	/* When an inspected container was started; 0: it does not run, or does not say. */
	uint64_t (*started_ns)(const struct jv *container);

	/*
	 * What the service says of how it holds what it runs, from the answer to a GET of
	 * isolation_target (NULL: it says nothing); strings from a.
	 */
	const char *isolation_target;
	void (*isolation)(const struct jv *doc, struct arena *a, struct isolation_service *ret);

	/* A request that proves the service works (a real list call), for `health`. */
	const char *(*health_target)(struct backend *be);
};

struct backend {
	const struct backend_ops *ops;
};

/* All adapters; NULL behind the last. */
const struct backend_ops *const *backend_all(void);
const struct backend_ops *backend_find(const char *kind); /* NULL if there is none */

#endif
