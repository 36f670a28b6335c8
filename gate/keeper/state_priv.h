/*
 * state_priv.h - what the keeper knows, between its files.
 *
 * `lock` is over all that stands here but what says otherwise. Whoever holds it does nothing that
 * takes time; who needs a container or an exec for longer holds a reference. Each change wakes
 * whoever waits: threads by `changed`, and those that wait for descriptors as well by a watcher.
 */
#ifndef GATE_KEEPER_STATE_PRIV_H
#define GATE_KEEPER_STATE_PRIV_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/jv.h"
#include "gate/keeper/keeper.h"
#include "proxy/httpd.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/utsname.h>
#include <time.h>

#define KEEPER_ID_LEN   64
#define KEEPER_NAME_MAX 128
#define KEEPER_BODY_MAX                                                                            \
	((size_t)1 << 20) /* of a document; also what a container may keep of it                   \
			   */
#define KEEPER_ARENA_MAX   ((size_t)8 << 20) /* of a request, and of a container */
#define KEEPER_WORDS_MAX   1024              /* of a command */
#define KEEPER_PLACES_MAX  32                /* binds, and tmpfs, that a request names */
#define KEEPER_ARCHIVE_MAX ((uint64_t)1 << 30)
#define KEEPER_API         "1.41"
#define KEEPER_IMAGE       "host"

enum stage {
	STAGE_CREATED = 0,
	STAGE_STARTING, /* somebody is about to start it */
	STAGE_RUNNING,
	STAGE_ENDING, /* its first command has ended; the rest is being ended */
	STAGE_EXITED,
	STAGE_GONE /* removed; only references are left */
};

struct place {
	const char *source, *target; /* tmpfs: source is NULL */
	uint64_t bytes;
	mode_t mode;
	bool writable, exec;
};

/* How a container is started: what was asked for, as far as it is kept. */
struct plan {
	enum box_mode mode;
	const char *host_name, *cwd, *user;
	uid_t uid;
	gid_t gid;
	const char **argv, **env; /* NULL at the end */
	struct place binds[KEEPER_PLACES_MAX], tmpfs[KEEPER_PLACES_MAX];
	size_t bind_count, tmpfs_count;
	struct box_limits limits;
	uint64_t shm_bytes;
	struct span filter;
	int stop_signal, stop_seconds;
	bool tty, open_stdin, auto_remove;
};

/* What a first command has written: whole frames of the engine's, the oldest go first. */
struct output {
	struct buf frames;
	uint64_t begin; /* place of the first byte that is still there */
	bool over;
};

struct attached {
	struct attached *next;
	uint64_t at; /* place of the next byte that it reads */
};

struct container {
	struct container *next;
	char id[KEEPER_ID_LEN + 1], name[KEEPER_NAME_MAX + 1];
	struct arena *arena; /* of what follows; written once, before it is shown */
	struct jv config, host;
	struct plan plan;

	enum stage stage;
	unsigned refs;
	bool removing;
	struct box *box;    /* RUNNING and ENDING */
	unsigned box_users; /* threads that are in a call on it: it is not ended meanwhile, and no
			       end of a command is heard of before they have noted its begin */
	int folder;         /* of its files, BOX_BARE; -1 */
	pid_t pid, inner;   /* of the first command: as the host, as the box sees it */
	uint32_t first;     /* id of the first command in the box */
	int exit_code;
	bool oom;
	const char *trouble; /* static */
	uint64_t created_ns, started_ns, finished_ns;

	/* The first command's ends of pipes, or the terminal; -1: closed. The main thread reads. */
	int to_first, from_first[2];
	struct output output;
	struct attached *attached; /* who has not read all of it yet holds it up */
	unsigned execs;
};

enum exec_stage { EXEC_CREATED = 0, EXEC_STARTING, EXEC_RUNNING, EXEC_ENDED };

struct exec {
	struct exec *next;
	char id[KEEPER_ID_LEN + 1];
	struct container *of; /* holds a reference */
	struct arena *arena;
	const char **argv, **env;
	const char *cwd, *user;
	bool tty, in, out, err;
	enum exec_stage stage;
	unsigned refs;
	uint32_t child;
	pid_t pid;
	int terminal; /* a copy, for resize; -1 */
	uint16_t rows, cols;
	int code;
	int ended; /* an event descriptor: readable once it has ended */
};

struct watcher {
	struct watcher *next;
	int fd; /* an event descriptor */
};

struct keeper {
	const struct keeper_conf *conf;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int wake; /* the main thread's */
	struct container *containers;
	struct exec *execs;
	struct watcher *watchers;
	unsigned container_count, exec_count;
	uint64_t spooled; /* bytes of archives that are being taken */

	/* Written once, before anybody is served. */
	bool confined_works;
	char missing[256]; /* why confined does not work */
	char image_id[80]; /* sha256: of what the pseudo image shows */
	char user[32];     /* "uid:gid" of the keeper: of sandboxes that name none */
	struct utsname host;
	const char *cgroup_version;
	int64_t cpus, memory; /* of the host */
};

/* --- state.c; with the lock held, unless it says otherwise --- */

void state_changed(struct keeper *k);
void state_poke(struct keeper *k); /* for the main thread alone */
struct container *state_container(struct keeper *k, const char *name); /* with a reference */
struct exec *state_exec(struct keeper *k, const char *id);             /* likewise */
void state_drop(struct keeper *k, struct container *c);
void state_drop_exec(struct keeper *k, struct exec *e);
/* Takes it out of the tables, with its execs. */
void state_remove(struct keeper *k, struct container *c);
/* Room for one more: false if there is none, and none can be made. */
bool state_exec_room(struct keeper *k);
/* Without the lock. */
void state_id(char out[KEEPER_ID_LEN + 1]);
void state_wait(struct keeper *k, const struct timespec *until);
/* Ends from now on wake it; without the lock. False: no descriptor. */
bool state_watch(struct keeper *k, struct watcher *w);
void state_unwatch(struct keeper *k, struct watcher *w);
void state_drain(const struct watcher *w);

/* The container's box, which nobody ends until state_leave(); NULL: it does not run. */
struct box *state_enter(struct container *c);
void state_leave(struct keeper *k, struct container *c);
void state_exec_ended(struct keeper *k, struct exec *e, int code);

/* --- server.c --- */

struct call {
	struct keeper *k;
	struct httpd_request *r;
	const struct row *row;
	const char *name; /* what {id} stood for */
	struct jv body;
	void *user; /* of an answer that is made as it is sent; freed by user_done */
	void (*user_done)(struct call *c);
};

static inline struct call *call_of(struct httpd_request *r)
{
	return r->state;
}

int server_start(struct keeper *k, struct httpd **ret, struct err *err);

/* {"message":...}; also for what err says. */
void say(struct call *c, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void say_err(struct call *c, const struct err *err);
void say_json(struct call *c, int status, const struct jv *doc);
void say_nothing(struct call *c, int status);
/* With a reference, or NULL: answered. */
struct container *call_container(struct call *c);
struct exec *call_exec(struct call *c);
void call_release(struct call *c, struct container *found);
void call_release_exec(struct call *c, struct exec *found);
bool query_true(struct call *c, const char *key);
char *keeper_text(struct arena *a, const char *s);

/* --- plan.c --- */

/* Reads a document of containers/create into a plan; strings are the document's or the arena's. */
int plan_read(const struct keeper *k, struct arena *a, const struct jv *config, struct plan *ret,
	      struct err *err);
/* Entries of a later list take the place of those of the same name; NULL: no memory. */
const char **plan_env(struct arena *a, const char *const *first, const struct jv *more,
		      struct err *err);
const char **plan_words(struct arena *a, const struct jv *entry, const struct jv *more,
			struct err *err);

int plan_signal(const char *text); /* 0: there is none of that name */

/* --- begin.c --- */

int container_begin(struct keeper *k, struct container *c, struct err *err);

/* --- keeper.c --- */

/* Its files, once it was removed; without the lock. */
void container_forget(struct keeper *k, const struct container *c);

/* --- inspect.c --- */

const char *time_text(struct arena *a, uint64_t unix_ns);

/* --- output.c; with the lock held --- */

#define FRAME_HEAD 8
void frame_head(char out[FRAME_HEAD], int stream, size_t len);
void output_put(struct container *c, int stream, struct span text);
/* So much may be read of the command without losing what somebody waits for. */
size_t output_room(const struct container *c);

/* --- talk.c --- */

/* Answers with the output of a started command, to its end; takes ends of pipes and the reference.
 * ours: to the command, from its output, from its errors; -1: there is none. */
void talk_begin(struct call *call, struct exec *e, int ours[3], bool upgrade);

/* --- the routes --- */

typedef void route_fn(struct call *c);
#define ROUTE(method, pattern, way, body) route_fn route_##way;
#include "gate/keeper/routes.def"
#undef ROUTE

/* PUT of an archive takes its body as it comes. */
void archive_begin(struct call *c);
bool archive_piece(struct call *c, struct span piece);

#endif
