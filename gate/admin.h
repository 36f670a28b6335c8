/*
 * admin.h - the admin socket: what can be asked there, by whom, and how the process that
 * serves it speaks to the supervisor.
 *
 * A caller sends one line of JSON and gets one line of JSON; then the connection ends:
 *
 *	{"verb":"listener.remove","args":{"name":"agent-7"}}
 *	{"ok":true,"id":"0198...","status":{...}}
 *	{"ok":false,"id":"0198...","reason":"listener_missing","text":"..."}
 *
 * Verbs and arguments are rows of admin.def, reasons of admin_answers.def.  Each use is on
 * record (`admin`): who asked, what, and what was decided, on disk before it is done; how it
 * came out behind it.
 */
#ifndef GATE_ADMIN_H
#define GATE_ADMIN_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/span.h"
#include "gate/config.h"
#include "proxy/approvals.h"
#include "proxy/runtime.h"

#include <stdio.h>
#include <sys/types.h>

#define ADMIN_REQUEST_MAX 4096              /* bytes of a request's line */
#define ADMIN_ANSWER_MAX  ((size_t)1 << 20) /* bytes of an answer's line */
#define ADMIN_ARGS_MAX    8                 /* of one verb */
#define ADMIN_WORK_MS                                                                              \
	270000 /* for what was asked for, above all that the gate itself waits for                 \
		*/

/* A reload waits so long for its reader, and as long for its workers; one goes on, ours follows. */
#define RELOAD_PATIENCE_MS 60000
_Static_assert(ADMIN_WORK_MS > 4 * RELOAD_PATIENCE_MS, "a reload may be the second");

enum admin_role { ADMIN_OPERATE = 1, ADMIN_APPROVE = 2, ADMIN_AUDIT = 4 };

enum admin_verb {
#define ADMIN_VERB(id, name, roles, acts, doc) VERB_##id,
#define ADMIN_ARG(verb, key, kind, need, least, most, doc)
#include "gate/admin.def"
#undef ADMIN_VERB
#undef ADMIN_ARG
	VERB_COUNT
};

enum admin_answer {
	ADMIN_DONE = 0,
#define ADMIN_ANSWER(id, doc) ANSWER_##id,
#include "gate/admin_answers.def"
#undef ADMIN_ANSWER
	ADMIN_ANSWER_COUNT
};

/* "listener_missing"; "" for ADMIN_DONE and what is none. */
const char *admin_answer_name(enum admin_answer a);
const char *admin_answer_text(enum admin_answer a);

const char *admin_verb_name(enum admin_verb v);
unsigned admin_verb_roles(enum admin_verb v); /* enum admin_role, those that may */
bool admin_verb_acts(enum admin_verb v);

/* `sallyport help admin` */
void admin_help(FILE *out);

/* --- admin_request.c: what a caller sent --- */

struct admin_value {
	bool given;
	const char *text; /* "" where it was not given, and for numbers */
	uint64_t number;
};

struct admin_request {
	enum admin_verb verb;
	struct admin_value args[ADMIN_ARGS_MAX]; /* in the order of admin.def */
	const struct jv *given;                  /* the object of all arguments, or NULL */
};

/*
 * Reads a line without its newline.  ADMIN_DONE, or what is wrong with it; then *ret has the
 * verb if that was understood (else VERB_COUNT).  Everything lives in the arena.
 */
enum admin_answer admin_request_read(struct arena *a, struct span line, struct admin_request *ret,
				     struct err *err);

/* The argument of that key, which its verb must have. */
const struct admin_value *admin_arg(const struct admin_request *r, const char *key);

/* --- admin_roles.c: who asks --- */

#define ADMIN_GROUPS_MAX 1024 /* of a caller; with more, groups give no role */

struct admin_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	gid_t groups[ADMIN_GROUPS_MAX]; /* supplementary */
	size_t group_count;
};

/* As the kernel says who connected; -1: it does not. */
int admin_peer_of(int fd, struct admin_peer *ret);

/* root and starter, who started the gate, may operate and audit; others what the lists say. */
unsigned admin_roles_of(const struct config_admin *c, const struct admin_peer *p, uid_t starter);

/* "operate", "operate,audit"; "none" */
void admin_roles_text(unsigned roles, char out[32]);

/* --- admin_state.c: what is kept over a restart --- */

struct admin_kept {
	struct runtime_row row; /* without id and backend */
	char backend[RUNTIME_NAME_MAX + 1];
};

struct admin_state {
	struct admin_kept *list; /* RUNTIME_MAX of them */
	size_t count;
};

#define ADMIN_STATE_FILE      "listeners.json"
#define ADMIN_STATE_BYTES_MAX ((size_t)1 << 20)

/* Takes the text apart; ERR_CONFIG says what is wrong.  An empty text is an empty list. */
int admin_state_parse(struct span text, struct admin_state *ret, struct err *err);

/* The file in that folder; none is an empty list. */
int admin_state_read(int folder, struct admin_state *ret, struct err *err);

/*
 * Files of that folder: at most ADMIN_STATE_BYTES_MAX bytes, and written by nobody else.  1: read;
 * 0: there is none.  ret is initialised by the call.
 */
int admin_file_read(int folder, const char *name, struct buf *ret, struct err *err);

/* A new file takes the place of the old one, and is on disk. */
int admin_file_write(int folder, const char *name, const struct buf *text, struct err *err);
int admin_state_write(int folder, const struct admin_state *s, struct err *err);

void admin_state_text(const struct admin_state *s, struct buf *out);
struct admin_kept *admin_state_find(struct admin_state *s, const char *name);
void admin_state_drop(struct admin_state *s, struct admin_kept *k);

/* --- the words between the process and the supervisor --- */

enum admin_ask {
	ASK_NOTHING = 0,
	ASK_STATUS,   /* answered with a descriptor: the status as JSON */
	ASK_RELOAD,   /* answered at once; 'e' comes whenever one has ended */
	ASK_TRY,      /* could this row be added? */
	ASK_ADD,      /* answered with the row as it is now */
	ASK_RESTORE,  /* ASK_ADD of one that was there before: its profile may be missing */
	ASK_REMOVE,   /* by row.name */
	ASK_CLEAR,    /* what a gate before left at row.path */
	ASK_ROLLBACK, /* to the generation that begins as row.name says; else as ASK_RELOAD */
	ASK_OWNER,    /* answered with text: whose owner the name in row.path means */
	ASK_PROFILE,  /* is that of row.profile loaded? */
	ASK_OWN /* is who the asker is, in the configuration in force, the user row.uid as well?
		   Then ANSWER_own_request */
};

/* Who asks what a person is to allow, as the table of questions has it (approvals.h): cut. */
struct admin_asker {
	char identity[sizeof((struct approval_text){0}.identity)];
	char owner[sizeof((struct approval_text){0}.owner)];
};

/* From the process, behind the tag 'q'. */
struct admin_word {
	uint32_t ask, zero;
	uint64_t ticket;
	struct runtime_row row;
	struct admin_asker asker; /* ASK_OWN */
};

/*
 * From the supervisor: behind 'k' the answer to a word, behind 'x' (ticket 0) the row whose
 * lifetime has ended, behind 'e' nothing: a reload has ended.
 */
struct admin_reply {
	uint32_t code;           /* enum admin_answer */
	uint32_t owner_is_known; /* ASK_TRY: identity has that owner in the configuration, too;
				    ASK_OWNER: somebody has it now */
	uint64_t ticket;
	uint64_t reloads; /* ASK_RELOAD: how many had ended before */
	struct runtime_row row;
	char identity[RUNTIME_NAME_MAX + 1];
	char text[ERR_MSG_MAX];
};

/* --- admin_process.c --- */

struct admin_conf {
	const struct config *config;
	int socket;    /* listening */
	int state;     /* the folder; -1: none */
	uid_t starter; /* of the gate */
	gid_t group;   /* likewise */
	struct metrics *metrics;
	struct emergency *emergency; /* which this process alone writes */
	struct approvals *approvals;
};

/* Serves until the control socket ends.  The exit status. */
int admin_run(const struct admin_conf *conf, int control);

#endif
