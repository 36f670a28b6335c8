/*
 * docker_priv.h - the Docker adapter, for its own files and their tests.
 *
 * A request's way through the files:
 *
 *	routes.def, route.c   path -> route; closed query; what kind of body and reply
 *	query.c               values of the query; filters in both encodings
 *	engine.c              what the engine is: version, runtimes (cached), asking for more
 *	object.c              names -> full ids
 *	list.c                lists and the stream of events: what is asked of the engine
 *	events.c              which rows of that stream cross
 *	count.c               what a caller has, for quotas
 *	reach.c               whose an object is, who sees it, the gate's own
 *	fields.def, schema.c  bodies: every field that may stand there, with its type
 *	reference.c           image references, in full
 *	create.c              container create: reading, hardening, the document that is sent
 *	made.c                check(): what was made beside what was judged
 *	replaces.def, update.c  updates: what a create replaces, and what that one was
 *	sealed.c              what of these may be secret, or is more than a fact says, as digests
 *	proc_paths.def        what engines take away from /proc and /sys by themselves
 *	start.c               start, restart, unpause, update: what an existing container is
 *	again.c               what runs, judged again as if it were started now
 *	attest.c              check() of these: what the kernel says of what runs
 *	attest_privileges.c   ... of its privileges
 *	attest_mounts.c       ... and of what is mounted there
 *	exec.c                commands, attach
 *	helper.c              ... by the program that the gate puts into sandboxes
 *	build*.c tar*.c gunzip.c dockerfile*.c   builds: see build_priv.h
 *	image.c publish.c volume.c network.c   the other objects; whole images, new names,
 *registries commit.c              a container made an image prune.c               removing what is
 *not used workload.c            a container's configuration -> facts, by concern: privileges.c
 *mounts.c paths.c networking.c limits.c isolation.c render.c              the request that is sent
 *	reply.c, hide.c       what of a reply crosses; hide.def is the table of what `redact` hides
 *	caller.c networks.c   the container that a caller runs in
 *	docker.c              the table of these functions
 *
 * Every step_*() is run anew from the start each time answers arrive: it asks
 * with docker_ask() for what it needs and gives up quietly where an answer is
 * not there yet.  When nothing is outstanding, what it wrote is complete.
 */
#ifndef BACKENDS_DOCKER_DOCKER_PRIV_H
#define BACKENDS_DOCKER_DOCKER_PRIV_H

#include "backends/backend.h"

#define DOCKER_MINOR_MIN 24 /* API 1.24 */
#define DOCKER_MINOR_MAX 56 /* the newest that routes.def and fields.def were held against */

#define DOCKER_VERSION_FRESH_MS 5000
#define DOCKER_INFO_FRESH_MS    2000

#define DOCKER_RUNTIMES_MAX  32
#define DOCKER_FILTERS_MAX   64 /* keys and values in a `filters` query */
#define DOCKER_NAME_MAX      256
#define DOCKER_PATH_NAME_MAX 512 /* what {id} or {name*} may stand for */

/* --- routes --- */

struct docker_query_key {
	struct span name;
	char kind; /* a letter of query.c */
	bool repeats;
};

struct docker;
struct docker_flavor;
struct docker_reading;
typedef void docker_step_fn(struct docker *d, struct backend_call *call);

struct docker_route {
	const char *method;
	const char *pattern;
	int since, until;
	enum operation op;
	docker_step_fn *step; /* NULL: closed */
	enum reason closed;
	enum body_kind body;
	enum reply_kind reply;
	const char *query;
};

#define DOCKER_QUERY_KEYS_MAX 40

/* A route with its query taken apart; made once in docker_open(). */
struct docker_compiled {
	struct span head; /* the pattern's first segment */
	struct docker_query_key keys[DOCKER_QUERY_KEYS_MAX];
	size_t key_count;
};

extern const struct docker_route docker_routes[];

/*
 * What another service that speaks this API does otherwise: its adapter is this one but for
 * what stands here.  NULL: nothing.
 */
struct docker_flavor {
	const struct backend_ops *ops;
	const struct docker_route *routes;
	size_t route_count;

	/* A path of a tree with versions of its own: 1 and cut, 0 if it is none, -1: refused. */
	int (*take_version)(struct backend_call *call, const char **path);

	/* Whether /version is such a service's; false: refused. */
	bool (*is_it)(struct backend_call *call, const struct jv *version);

	/* What the caller has asked for, beside what all services take.  False: refused. */
	bool (*accepts)(struct docker_reading *r);

	/* Facts of its own, beside what all services have. */
	void (*facts)(struct docker_reading *r);

	/* Where something is asked for; NULL: where all others have it. */
	const char *(*target)(struct backend_call *call, const char *before, struct span name,
			      const char *after);
	const char *(*info_target)(struct backend_call *call);

	/* Rewrites an answer as a Docker engine would have given it. */
	void (*translate)(struct backend_call *call, struct lookup *answer);

	/* The document that is sent, made of the judged one. */
	void (*finish)(struct backend_call *call, struct jv *config, struct jv *host);

	/* Of what was made: the fields of HostConfig that compare() looks at itself, and it. */
	const char *compares;
	void (*compare)(struct backend_call *call, const struct jv *sent, const struct jv *host,
			const struct jv *doc);

	bool filters_are_paths; /* a filter of system calls is a file of its host: none can be sent
				 */
	const char *running;    /* the states of a container that runs, as a JSON array */
	bool runtime_is_fixed;  /* it does not read which runtime a request names */
	bool args_are_hidden;   /* ... nor shows its arguments: those of what runs are judged */
	bool origin_is_hidden;  /* it writes digests for every name of an image, whoever gave it */
	bool image_by_id_only;  /* names may mean different images to it: ids are sent */
	bool no_policy_changes; /* it cannot change the restart policy of what it has made */
};

extern const struct docker_flavor docker_plain;

void docker_compile(struct docker_compiled *ret, const struct docker_route *from);
int docker_route_call(struct backend *be, struct backend_call *call);
enum step docker_caller(struct backend *be, struct caller_call *call);

/* --- commands --- */

struct docker_command {
	const char *user, *program, *workdir;
	bool privileged, has_arguments;
	const struct jv *env;
};

struct docker_words {
	const struct span *list;
	size_t count;
};

/* --- what the engine is --- */

struct docker_runtime {
	const char *name;
	const char *path; /* what its level is from: the path, the type; "" if the engine says
			     neither */
	struct isolation_weighed is;
	bool uses_filters; /* of system calls: runsc only with --oci-seccomp */
};

struct docker_info {
	bool known;
	const char *default_runtime;
	const char *runtime_alias; /* what containers show in place of that; "" if they show it */
	struct docker_runtime runtimes[DOCKER_RUNTIMES_MAX];
	size_t runtime_count;
	bool cgroup_v1;
	bool seccomp;               /* the engine filters system calls */
	bool apparmor;              /* its host has AppArmor */
	const char *machine;        /* of its host, as Go names it; NULL: not known */
	bool unfiltered;            /* it says that it does not, where nothing else is asked for */
	bool rootless, maps_users;  /* userns-remap */
	bool no_new_privileges;     /* the engine's default for all */
	const char *logging_driver; /* its default */
	int64_t cpus;               /* of its host; 0 if it does not say */
};

/* What an owner's volumes, and images, take on disk: engines take long to find out. */
struct docker_space {
	char owner[160];
	bool images;
	uint64_t at_ms;
	int64_t bytes;
};

#define DOCKER_SPACES_MAX     32
#define DOCKER_SPACE_FRESH_MS 5000

struct docker {
	struct backend base;
	const struct docker_flavor *flavor;
	struct docker_compiled *compiled; /* one for each of its routes */

	bool has_version;
	uint64_t version_at_ms;
	int minor;

	uint64_t info_at_ms;
	struct arena *info_arena; /* holds info's strings; NULL if there is none */
	struct docker_info info;

	struct docker_space spaces[DOCKER_SPACES_MAX]; /* what was told last, by owner */
	size_t space_next;
};

struct docker *docker_of(struct backend *be);
struct backend *docker_open_as(const struct docker_flavor *flavor, const struct backend_conf *conf,
			       struct err *err);
void docker_close(struct backend *be);
void docker_forget(struct backend *be);
enum step docker_step(struct backend *be, struct backend_call *call);
const char *docker_created(const struct backend_call *call);
void docker_refusal(const char *message, struct buf *ret_body, const char **ret_content_type);
const char *docker_health_target(struct backend *be);
extern const struct fact_name docker_fact_names[];

/* --- one call --- */

/* Looking at what was started: see attest.c. */
struct docker_attest {
	int rounds;           /* times that the engine was asked for the pid */
	int waits;            /* times that the process had not begun yet */
	bool inspects, looks; /* what is asked for now */
	bool in_vain;         /* of what was not seen, some can never be */
	const char *question;
	struct jv doc; /* the container, as the engine shows it */
};

struct docker_answer {
	struct lookup lookup;
	struct docker_answer *next;
};

struct docker_state {
	const struct docker_flavor *flavor;
	const struct docker_route *route;
	const struct docker_compiled *compiled;
	int asked_minor;    /* the version the caller speaks */
	int minor;          /* the version that is spoken to the engine */
	struct span name;   /* what {id} or {name*} stood for */
	const char *target; /* what stands there in the request that is sent */
	bool from_own;      /* it came by a tree with versions of its own, and left that */
	const char *prefix; /* before the path that is sent, for a tree with versions of its own */
	bool sealed;        /* no more lookups: what is not answered is unknown */
	bool parsed;        /* body holds the checked document */
	bool echoed;        /* the request's body says what its query says, and is not sent */
	struct jv body;     /* the model: the request's document, known fields only */
	struct jv made;     /* start, exec: the inspected container */
	struct jv filters;  /* the query's filters, key -> array of strings */
	struct jv asked;    /* if an object: the query that is sent, instead of the caller's */
	struct docker_answer *answers;
	struct docker_build *build; /* build: what is known of it */
	struct tar *copy;           /* archive.put: its reader */
	struct docker_info *info;   /* this call's copy */
	const char *image_id;       /* create: what the reference resolved to */
	bool image_by_id;           /* create: the id is sent, not the name */
	const char *image_pinned;   /* create: what is sent instead of the name, or NULL */
	struct span log_limits;     /* create: size:files that hardening adds; empty if none */
	struct jv labels_added;     /* create: labels that hardening adds */
	const char *network_name;   /* create: of the network whose id is sent, or NULL */
	const char *created;        /* id of what was made */
	struct jv sent;             /* create: the document that was sent */
	size_t limit; /* container list: how many rows are asked for, where we leave out rows */
	struct docker_attest attest;
};

static inline struct docker_state *docker_state(const struct backend_call *call)
{
	return (struct docker_state *)call->state;
}

/* Adds a refusal of the gate itself; strings that are NULL are "". */
struct violation *docker_refuse(struct backend_call *call, enum reason r, const char *field,
				const char *value);

/* As printf, into the call's arena; "" when it is spent. */
const char *docker_text(struct backend_call *call, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void docker_warn(struct backend_call *call, const char *text);

/* A copy of at most VIOLATION_VALUE_MAX bytes, for people: two of them may look alike. */
const char *docker_cut(struct backend_call *call, struct span s);

/* All of it: for names that are looked up, sent, or looked into. */
const char *docker_whole(struct backend_call *call, struct span s);

/*
 * At most that much, for facts, which are compared: what is too long ends with a digest of all of
 * it, so that no two values are taken for one because they begin alike.
 */
const char *docker_word(struct backend_call *call, struct span s);

/* A URL as facts have it; what is left out of it is noted in call->withheld. */
const char *docker_url_fact(struct backend_call *call, struct span url, enum withheld where);

/*
 * The answer to GET target, or NULL: not there yet (it is asked for now), or
 * the engine cannot be reached (refused).  Offline, what is unknown is an
 * answer with status 0.
 */
const struct lookup *docker_ask(struct backend_call *call, const char *target, const char *table,
				const char *key);

/* The answer about a host path, or NULL: not there yet.  Status 0: unknown. */
const struct lookup *docker_ask_path(struct backend_call *call, const char *path);

/* What the caller took away under that name, or NULL: not there yet. */
const struct lookup *docker_ask_remembered(struct backend_call *call, const char *name);

/* Asks whatever was answered before; *asked says whether it was done already. */
const struct lookup *docker_ask_anew(struct backend_call *call, const struct lookup *question,
				     bool *asked);

/* Moves what the exchange answered into the state. */
void docker_harvest(struct backend_call *call);

/* Sets state->minor; false if that is not known yet or the call was refused. */
bool docker_speak(struct docker *d, struct backend_call *call);

/* Facts about the engine; NULL if not known yet.  info->known is false offline without a file. */
const struct docker_info *docker_know(struct docker *d, struct backend_call *call);

/* Reads an /info document into *ret; strings are taken from a. */
void docker_read_info(struct arena *a, const struct jv *doc, struct docker_info *ret);
void docker_read_runtime(struct arena *a, const char *name, const struct jv *doc,
			 struct docker_runtime *ret);

/* Rewrites the answers of lookups that are read where they stand: see docker_flavor. */
void docker_translate(struct backend_call *call);

/* "/v1.41/containers/<encoded>/json" */
const char *docker_target(struct backend_call *call, const char *before, struct span name,
			  const char *after);

/* --- query --- */

/* Percent-encodes all but unreserved bytes and those in also. */
void docker_encode(struct buf *out, struct span s, const char *also);
const char *docker_encoded(struct backend_call *call, struct span s, const char *also);

const struct pair *docker_query(const struct canonical *req, const char *key);
struct span docker_query_value(const struct canonical *req, const char *key); /* "" if absent */
bool docker_query_true(const struct canonical *req, const char *key);

/* False: the value does not fit the kind. */
bool docker_query_fits(char kind, struct span value);

/* Reads `filters` into state->filters; false: refused. */
bool docker_filters_read(struct backend_call *call);
/* {"label":["a","b"]} -> {"label":{"a":true,"b":true}}, encoded for a query. */
void docker_filters_write(struct buf *out, const struct jv *filters);
/* Adds one condition that must hold beside all others. */
void docker_filters_and(struct backend_call *call, const char *key, const char *value);

/* --- objects --- */

/* An object as the engine shows it: what tells whose it is, and who sees it. */
struct docker_thing {
	enum reach_kind kind;
	const char *id, *name, *created; /* "" where the engine does not say */
	const struct jv *labels;         /* NULL if there are none */
};

/* From a document of inspect, or a row of a list. */
struct docker_thing docker_container_thing(const struct jv *doc);
struct docker_thing docker_volume_thing(const struct jv *doc);
struct docker_thing docker_network_thing(const struct jv *doc);
struct docker_thing docker_row_thing(enum reach_kind kind, const struct jv *row);

const char *docker_kind_name(enum reach_kind kind); /* "container" */
const char *docker_owner(const struct backend_call *call, const struct docker_thing *t);
bool docker_is_mine(const struct backend_call *call, const struct docker_thing *t);
bool docker_sees(const struct backend_call *call, const struct docker_thing *t);
enum access docker_access(const struct backend_call *call, const struct docker_thing *t);
enum access docker_image_access(struct backend_call *call, const struct jv *doc,
				const struct jv *labels);

/* Whether the ledger gives the caller objects of this kind, which carry no label. */
bool docker_has_adopted(const struct backend_call *call, enum reach_kind kind);

/* Whether it belongs to the gate itself.  May ask; false until the answer is there. */
bool docker_is_gates_own(struct backend_call *call, const struct docker_thing *t);

/* Whether a container, by its document, is on a network. */
bool docker_is_on(const struct jv *container, const struct docker_thing *network);

/*
 * Whether the caller may do what it asks for with this object; else refused:
 * as absent, with the engine's words in missing, if it does not see it.
 */
bool docker_admit(struct backend_call *call, const struct docker_thing *t, const char *missing);
bool docker_admit_image(struct backend_call *call, const struct jv *doc, const char *given,
			const char *missing);

/*
 * The container that is named, inspected, if the caller may see it; else NULL
 * (not known yet, or refused like the engine does for what does not exist).
 */
const struct jv *docker_container(struct docker *d, struct backend_call *call, struct span name);
void docker_object(struct backend_call *call, const struct docker_thing *t);

/* Whether a container's document says if it runs; without that nobody knows that it does not. */
bool docker_tells_state(const struct jv *doc);

/* The kind of objects that a list shows. */
enum reach_kind docker_listed_kind(enum operation op);

docker_step_fn docker_step_about, docker_step_plain, docker_step_events, docker_step_list,
	docker_step_container, docker_step_slashed, docker_step_top, docker_step_create,
	docker_step_start, docker_step_rename, docker_step_update, docker_step_attach,
	docker_step_exec_create, docker_step_exec_start, docker_step_exec, docker_step_image,
	docker_step_pull, docker_step_network, docker_step_network_create, docker_step_network_join,
	docker_step_volume, docker_step_volume_create, docker_step_save, docker_step_save_one,
	docker_step_tag, docker_step_push, docker_step_search, docker_step_distribution,
	docker_step_commit, docker_step_prune, docker_step_build, docker_step_tunnel;

/* --- bodies --- */

enum docker_schema {
	SCHEMA_NONE = 0,
#define SCHEMA(name) SCHEMA_##name,
#include "backends/docker/fields.def"
#include "backends/podman/fields.def"
#undef SCHEMA
	SCHEMA_COUNT
};

enum docker_type {
	TYPE_BOOL = 0,
	TYPE_INT,
	TYPE_STRING,
	TYPE_STRINGS,      /* array of strings */
	TYPE_COMMAND,      /* a string, or an array of strings */
	TYPE_INTS,         /* array of integers */
	TYPE_STRING_LISTS, /* array of arrays of strings */
	TYPE_STRING_MAP,   /* object of strings */
	TYPE_SET,          /* object of empty objects */
	TYPE_OBJECT,       /* of a schema */
	TYPE_LIST,         /* array of objects of a schema */
	TYPE_MAP,          /* object of objects of a schema */
	TYPE_LIST_MAP      /* object of arrays of objects of a schema */
};

enum docker_use {
	USE_PASS = 0, /* rendered; what it does is in the facts, or it does nothing to fear */
	USE_DROP,     /* never rendered */
	USE_DENY      /* known, but not interpreted: a value is refused */
};

struct docker_field {
	const char *name;
	enum docker_type type;
	enum docker_schema of; /* TYPE_OBJECT and the like */
	enum docker_use use;
	enum reason deny;
	bool minus_one; /* -1 is neutral too */
};

/*
 * Parses the call's body and checks it against a schema; state->body is then
 * a document of known fields only, in the order of fields.def.  False: refused.
 */
bool docker_body(struct backend_call *call, enum docker_schema schema);

/* Whether a body that is not sent names keys of the query only.  False: refused. */
bool docker_echo(struct backend_call *call);

/* The known members that say something, in the order of fields.def. */
struct jv docker_in_order(struct arena *a, enum docker_schema schema, const struct jv *from);

/* The row for a key, or NULL. */
const struct docker_field *docker_field(enum docker_schema schema, struct span key);

/*
 * Names of an inspected object that fields.def does not know and that carry a
 * value, and known ones that are not interpreted, are refused; the rest is fine.
 */
bool docker_vet(struct backend_call *call, enum docker_schema schema, const struct jv *doc,
		const char *path);

/* Go's folding of keys: ASCII case, U+017F and U+212A. */
bool docker_folds_to(struct span key, const char *known);

/* --- image references --- */

struct docker_reference {
	bool valid;
	const char *name;   /* docker.io/library/alpine */
	const char *tag;    /* "" if none */
	const char *digest; /* sha256:..., "" if none */
};

struct docker_reference docker_reference(struct arena *a, struct span given);
const char *docker_reference_text(struct backend_call *call, const struct docker_reference *ref);
/* As people write it: without docker.io and library. */
const char *docker_reference_familiar(struct backend_call *call,
				      const struct docker_reference *ref);
bool docker_looks_like_id(struct span given);
bool docker_names_registry(const char *given); /* "quay.io/x", "localhost/x"; not "x", "team/x" */

/* `image` and the query's tag together; not valid: refused. */
struct docker_reference docker_reference_with_tag(struct backend_call *call, const char *image,
						  const char *image_key);
bool docker_check_registry_auth(struct backend_call *call);
bool docker_check_registry_config(struct backend_call *call);

/* The registry that is asked for what has this name; a search term is read alike. */
const char *docker_registry_of(struct backend_call *call, struct span name);

/* --- a query that is written anew: state->asked, in the order of the calls --- */

void docker_refuse_query(struct backend_call *call, const char *key, const char *text);
const char *docker_query_text(struct backend_call *call, const char *key); /* "" if absent */
void docker_send(struct backend_call *call, const char *key, const char *value);
void docker_send_given(struct backend_call *call, const char *key);

/* --- facts --- */

/* What is read: a request, or an existing container as the engine shows it. */
struct docker_reading {
	struct docker *d;
	struct backend_call *call;
	const struct docker_info *info;
	const struct jv *config, *host;
	const struct jv *networking; /* endpoint settings by name */
	bool made;                   /* an existing container: the engine filled in its defaults */
	const char *id;              /* of the existing container */
	bool update;        /* read to be compared: what a create that replaces another asks for,
			       or (made) what the other was */
	const char *old_id; /* of the one that it replaces, or NULL */
	struct jv facts;
	struct jv lowered;
	enum isolation level;
};

/* The image that a reference names; NULL: not there yet, or refused. */
const struct lookup *docker_ask_image(struct backend_call *call, const char *given);
void docker_read_image(struct docker_reading *r, const char *given, const struct lookup *answer);
/* Of what was made of the image under that name; answer: about its id. */
void docker_read_made_image(struct docker_reading *r, const char *given, const char *id,
			    const struct lookup *answer);

/* repo and tag of the query: the name that would be written, if any.  False: refused. */
bool docker_read_new_name(struct docker_reading *r);

/* Facts of an existing container with this HostConfig; false: not complete yet, or refused. */
bool docker_read_made(struct docker *d, struct backend_call *call, const struct jv *doc,
		      const struct jv *host, struct docker_reading *ret);
/* ... its beginning, without the image; config: NULL for the container's own. */
bool docker_begin_made(struct docker *d, struct backend_call *call, const struct jv *doc,
		       const struct jv *config, struct docker_reading *ret);
/* ... and the image, from the answer about its id. */
void docker_read_made_as(struct docker_reading *r, const char *id, const struct lookup *answer);
/* The name of the image as it was judged. */
const char *docker_given_image(const struct docker_reading *r);
/* What the engine writes where nothing was asked for is no choice of the caller. */
struct jv docker_without_defaults(struct backend_call *call, const struct jv *host);

/* True where what is read holds the engine's own choices. */
static inline bool docker_engine_filled(const struct docker_reading *r)
{
	return r->made || r->update;
}

/* --- updates --- */

/* Who the container that is made belongs to; "" if it is to be nobody's, as the one before. */
const char *docker_maker(const struct backend_call *call);
/* What the container before was held against when it was judged again, the new one is, too. */
void docker_keep_standard(struct backend_call *call, struct jv *labels);
bool docker_skips_label(const struct docker_reading *r, struct span label);
/* Whether s is a beginning, as long as engines show it, of the container's id, or of that of the
 * one it replaces. */
bool docker_is_own_id(const struct docker_reading *r, struct span s);
void docker_read_sealed(struct docker_reading *r);
void docker_seal_endpoint(struct docker_reading *r, const char *network, const struct jv *endpoint);
/* Set call->replaces; false: not known yet, or refused. */
bool docker_find_replaced(struct docker *d, struct backend_call *call);
bool docker_find_predecessor(struct backend_call *call);
const char *docker_replaced_id(const struct backend_call *call); /* NULL if none is */
/* Whether op takes a container away; and what it was, and would be. */
bool docker_parts(enum operation op);
void docker_read_parting(struct docker *d, struct backend_call *call, const struct jv *doc);
void docker_say_labels(struct docker_reading *r, const struct jv *labels);

/* Sets call->workload; false: not complete yet, or refused. */
bool docker_read_workload(struct docker_reading *r);

void docker_read_privileges(struct docker_reading *r);
void docker_read_user(struct docker_reading *r, const char *image_user, bool image_known);
void docker_read_namespaces(struct docker_reading *r);
void docker_read_mounts(struct docker_reading *r);
void docker_read_network(struct docker_reading *r);
void docker_read_limits(struct docker_reading *r);
void docker_isolation(const struct jv *doc, struct arena *a, struct isolation_service *ret);
void docker_read_isolation(struct docker_reading *r); /* the base; before all others */
void docker_finish_isolation(struct docker_reading *r);

/* Notes that something lowers the level: a row of lowers.def, or another reason. */
void docker_lower(struct docker_reading *r, enum isolation_lower why, const char *field,
		  const char *value);
void docker_lower_by(struct docker_reading *r, const struct isolation_reason *why,
		     const char *field, const char *value);

/* facts[path] as a tree, made on the way: "limits.memory". */
void docker_fact(struct docker_reading *r, const char *path, struct jv value);
/* The array at path, made if it is not there. */
struct jv *docker_fact_list(struct docker_reading *r, const char *path);

/* seccomp.c: filters of system calls and AppArmor; host is HostConfig. */
void docker_begin_security(struct docker_reading *r);
void docker_read_filter(struct docker_reading *r, struct span value, const char *field);
void docker_read_apparmor(struct docker_reading *r, struct span value);
void docker_add_security(struct backend_call *call, struct jv *host, const char *name,
			 struct span value);
int docker_set_seccomp(struct backend_call *call, struct jv *host, struct err *err);
void docker_write_filters(struct backend_call *call, struct jv *host);

/* True if user is root in any spelling; *ret_known: false for a name of which it is not known. */
/* Its name and value: "seccomp=unconfined", "label:disable", "no-new-privileges". */
void docker_split_option(struct span option, struct span *ret_name, struct span *ret_value);
bool docker_option_is_yes(struct span value); /* of no-new-privileges */

bool docker_user_is_root(struct span user, bool *ret_known);

struct docker_proc_path {
	const char *key, *path;
	bool always;
};

extern const struct docker_proc_path docker_proc_paths[]; /* proc_paths.def */
extern const size_t docker_proc_path_count;

/* Whether an existing container's /proc and /sys are protected at least as every engine does. */
bool docker_keeps_proc_paths(const struct jv *host);

/* Upper case without CAP_; "" if it is none. */
const char *docker_capability(struct backend_call *call, struct span given);

/* As path.Clean() of Go for an absolute path. */
const char *docker_clean_path(struct backend_call *call, struct span path);
bool docker_path_within(const char *outer, const char *inner);
bool docker_path_is_root(const char *path); /* see roots.def */
const char *docker_path_protected(const struct backend_call *call, const char *source,
				  const struct jv *resolved);

/* --- the engine's socket in a mount (own_socket.c) --- */

/* "engine" for the engine's socket as callers name it, "own" for the caller's own; else "". */
const char *docker_control(const struct backend_call *call, const char *source,
			   const struct jv *resolved);
/* What can be mounted for the engine's socket; "" if there is nothing, or it is being looked at. */
const char *docker_own_socket(struct backend_call *call);
/* Every mount of the engine's socket in this HostConfig becomes one of the own; sets c->field. */
int docker_change_socket(struct backend_call *call, const struct jv *host, struct change *c,
			 struct err *err);

/* "default", "none", "host", or the name of the network that is meant. */
const char *docker_network_name(struct backend_call *call, const char *given);
/* What is sent for it: of the caller's own the id. */
const char *docker_network_sent(struct backend_call *call, const char *given);
/* "container:web" -> the full id of the container. */
const char *docker_joined_id(struct backend_call *call, struct span mode);
void docker_add_endpoint(struct docker_reading *r, const char *given, const struct jv *endpoint,
			 const char *field);

/* A bind in short form, taken apart as the engine does. */
struct docker_bind {
	struct span source, target, mode; /* source "" for an anonymous volume */
	bool valid, is_path;
};

struct docker_bind docker_bind(struct span text);
bool docker_mode_has(struct span mode, const char *word);

/* --- rendering and replies --- */

int docker_render(struct backend *be, struct backend_call *call, struct outgoing *ret,
		  struct err *err);
int docker_undo(struct backend *be, struct backend_call *call, struct outgoing *ret,
		struct err *err);
int docker_apply(struct backend *be, struct backend_call *call, struct change *changes,
		 size_t count, struct err *err);
enum step docker_check(struct backend *be, struct backend_call *call, struct span reply);
enum step docker_count(struct backend *be, struct backend_call *call);
int64_t docker_nano_cpus(const struct jv *host); /* 0: no limit */

/* --- again.c: judging again what runs --- */

void docker_running(struct backend *be, const char *const *ids, size_t count, struct buf *ret_head);
const char *docker_running_row(struct backend *be, struct backend_call *call, const struct jv *row);
void docker_restart(struct backend *be, const char *id, struct canonical *ret, struct arena *a);
enum step docker_again(struct backend *be, struct backend_call *call, struct again *ret);
int docker_stop(struct backend *be, struct backend_call *call, enum stop_part part,
		struct outgoing *ret, enum operation *ret_op, struct err *err);

bool docker_starts(enum operation op); /* start, restart, unpause */
enum step docker_attest(struct backend_call *call);
void docker_reply_header(struct backend *be, struct backend_call *call, const struct pair *header,
			 bool *ret_keep, const char **ret_value);
/* --- hide.c --- */

/* A reply in which something has to be hidden is held, or looked through by rows. */
void docker_hold_hidden(struct backend_call *call);

/* Hides in a reply what the call hides. */
void docker_hide(const struct backend_call *call, struct arena *a, struct jv *doc);

/* In a sentence of the engine: it does not say on which side of a mount a path is. */
void docker_hide_words(const struct backend_call *call, struct jv *text);

/* happened.c */
void docker_watch(struct backend *be, const char *since, struct buf *ret_head);
int docker_happened(struct backend *be, struct span line, struct arena *a, struct happening *ret);
const char *docker_by_itself(struct backend *be, const struct happening *h,
			     const struct jv *container);
void docker_inspect_target(const char *id, struct buf *ret);
int docker_listed(const struct jv *row, struct arena *a, struct happening *ret, bool *ret_runs);
uint64_t docker_started_ns(const struct jv *container);

bool docker_row(struct backend *be, struct backend_call *call, struct span row, struct arena *a,
		struct span *ret);
int docker_filter(struct backend *be, struct backend_call *call, int status, struct span body,
		  struct buf *ret, struct err *err);

/* The body of a create; kept in state->sent. */
struct jv docker_create_document(struct backend_call *call);
bool docker_check_name(struct backend_call *call); /* query.name; false: refused */

/* The body of a commit. */
struct jv docker_commit_document(struct backend_call *call);

/* The labels that make an object the caller's, set on the document at key. */
void docker_label(struct backend_call *call, struct jv *doc, const char *key);

/* --- helper.c --- */

#define DOCKER_HELPER_TARGET "/.sallyport/inside"

/* Of a mount: it is that program, where it belongs, and can be mounted. */
bool docker_helper_mount(const struct docker_reading *r, const char *source, struct span target,
			 bool read_only);

/*
 * Where a command goes through it, *cmd becomes what it runs, and call->also what it is
 * besides.  False: it was refused.
 */
bool docker_helper_command(struct backend_call *call, const struct jv *doc,
			   const struct docker_words *w, struct docker_command *cmd);

#endif
