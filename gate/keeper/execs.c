/* execs.c - commands in a sandbox that runs. */
#include "gate/base/auto.h"
#include "gate/keeper/state_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EXEC_ARENA_MAX ((size_t)4 << 20)

/* --- create --- */

static const char *const known[] = {"AttachStdin", "AttachStdout", "AttachStderr", "Tty",
				    "Cmd",         "Env",          "WorkingDir",   "User",
				    "DetachKeys",  "ConsoleSize"};

static int check_members(const struct jv *body, struct err *err)
{
	for (size_t i = 0; i < body->count; i++) {
		bool found = jv_is_neutral(&body->members[i].value);

		for (size_t k = 0; !found && k < sizeof(known) / sizeof(*known); k++)
			found = span_is(body->members[i].key, known[k]);
		if (!found)
			return err_set(err, ERR_INPUT, "%.60s: a local sandbox cannot keep it",
				       body->members[i].key.at);
	}
	return 0;
}

/* All of a sandbox is one user's. */
static int check_user(const struct container *c, const char *user, struct err *err)
{
	const char *own = c->plan.user ? c->plan.user : "";
	size_t n = strlen(user);

	if (!*user || !strcmp(own, user) ||
	    (!strncmp(own, user, n) && own[n] == ':' && !strncmp(own + n + 1, user, n) &&
	     !own[2 * n + 1]))
		return 0;
	return err_set(err, ERR_INPUT, "User: commands run as the sandbox's user, %s",
		       *own ? own : "the keeper's");
}

static const char *folder_of(struct exec *e, const struct container *c, const struct jv *body,
			     struct err *err)
{
	const char *given = jv_str(body, "WorkingDir", "");

	if (!*given)
		return c->plan.cwd;
	if (*given == '/' && strlen(given) < BOX_PATH_MAX)
		return keeper_text(e->arena, given);
	err_set(err, ERR_INPUT, "WorkingDir: an absolute path is expected");
	return NULL;
}

/* What the request's document has goes with it. */
static void keep_all(struct arena *a, const char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		list[i] = keeper_text(a, list[i]);
}

static int read_exec(struct exec *e, struct container *c, const struct jv *body, struct err *err)
{
	const struct jv *cmd = jv_get(body, "Cmd");
	struct err why = {0};

	if (check_members(body, err) < 0 || check_user(c, jv_str(body, "User", ""), err) < 0)
		return -1;
	e->argv = plan_words(e->arena, NULL, cmd, err);
	e->env = e->argv ? plan_env(e->arena, c->plan.env, jv_get(body, "Env"), err) : NULL;
	if (!e->env)
		return -1;
	if (!e->argv[0])
		return err_set(err, ERR_INPUT, "No exec command specified");
	e->cwd = folder_of(e, c, body, &why);
	if (why.kind != ERR_NONE) {
		*err = why;
		return -1;
	}
	keep_all(e->arena, e->argv);
	keep_all(e->arena, e->env);
	e->user = keeper_text(e->arena, jv_str(body, "User", ""));
	e->tty = jv_true(body, "Tty");
	e->in = jv_true(body, "AttachStdin");
	e->out = jv_true(body, "AttachStdout");
	e->err = jv_true(body, "AttachStderr");
	return arena_spent(e->arena) ? err_set(err, ERR_LIMIT, "the command is too long") : 0;
}

static void free_exec(struct exec *e)
{
	if (e->ended >= 0)
		close(e->ended);
	arena_destroy(e->arena);
	free(e);
}

static struct exec *make_exec(struct container *c, const struct jv *body, struct err *err)
{
	struct exec *e = calloc(1, sizeof(*e));

	if (!e) {
		err_set(err, ERR_LIMIT, "no memory");
		return NULL;
	}
	*e = (struct exec){.terminal = -1, .refs = 1, .ended = eventfd(0, EFD_CLOEXEC)};
	e->arena = arena_create(EXEC_ARENA_MAX);
	state_id(e->id);
	if (e->ended >= 0 && e->arena && read_exec(e, c, body, err) == 0)
		return e;
	if (err->kind == ERR_NONE)
		err_set(err, ERR_LIMIT, "no memory");
	free_exec(e);
	return NULL;
}

/* With the lock; 0, or the status of a refusal. */
static int add_exec(struct keeper *k, struct container *c, struct exec *e)
{
	if (c->stage != STAGE_RUNNING)
		return 409;
	if (!state_exec_room(k))
		return 429;
	e->of = c;
	c->refs++;
	c->execs++;
	e->next = k->execs;
	k->execs = e;
	k->exec_count++;
	return 0;
}

void route_exec_create(struct call *call)
{
	struct container *c = call_container(call);
	struct jv doc = jv_object();
	struct err err = {0};
	struct exec *e;
	char id[KEEPER_ID_LEN + 1];
	int status;

	if (!c)
		return;
	e = make_exec(c, &call->body, &err);
	if (!e) {
		say_err(call, &err);
		call_release(call, c);
		return;
	}
	memcpy(id, e->id, sizeof(id));
	pthread_mutex_lock(&call->k->lock);
	status = add_exec(call->k, c, e);
	pthread_mutex_unlock(&call->k->lock);
	if (status) {
		free_exec(e);
		say(call, status,
		    status == 409
			    ? "Container %s is not running"
			    : "there are as many commands as the keeper takes: %s has to wait",
		    c->id);
	} else {
		jv_set(call->r->arena, &doc, "Id", jv_string(id));
		say_json(call, 201, &doc);
	}
	call_release(call, c);
}

/* --- start --- */

static void close_all(int ends[6])
{
	for (size_t i = 0; i < 6; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

/* ends: of stdin, stdout, stderr, each to read and to write. */
static int make_pipes(const struct exec *e, bool detached, int ends[6], struct err *err)
{
	const bool wanted[3] = {e->in, e->out, e->err};

	for (int i = 0; i < 3 && !e->tty && !detached; i++) {
		if (!wanted[i])
			continue;
		if (pipe2(ends + 2 * i, O_CLOEXEC) < 0)
			return err_sys(err, "make a pipe");
		if (fcntl(ends[2 * i + (i == 0)], F_SETFL, O_NONBLOCK) < 0)
			return err_sys(err, "prepare a pipe");
	}
	return 0;
}

/* ours: to the command, from its output, from its errors. */
static int spawn(struct keeper *k, struct exec *e, struct box *box, int ends[6], int ours[3],
		 struct err *err)
{
	struct box_command cmd = {.argv = (const char *const *)e->argv,
				  .env = (const char *const *)e->env,
				  .cwd = e->cwd,
				  .stdio = {ends[0], ends[3], ends[5]},
				  .tty = e->tty,
				  .rows = e->rows,
				  .cols = e->cols};
	struct box_child child;

	if (box_spawn(box, &cmd, &child, err) < 0)
		return err_wrap(err, "%.100s", e->argv[0]);
	pthread_mutex_lock(&k->lock);
	e->child = child.id;
	e->pid = child.pid;
	e->stage = EXEC_RUNNING;
	if (e->tty)
		e->terminal = fcntl(child.tty, F_DUPFD_CLOEXEC, 3);
	pthread_mutex_unlock(&k->lock);
	if (e->tty) {
		fcntl(child.tty, F_SETFL, O_NONBLOCK);
		ours[1] = child.tty;
		ours[0] = e->in ? fcntl(child.tty, F_DUPFD_CLOEXEC, 3) : -1;
		return 0;
	}
	ours[0] = take_fd(ends[1]);
	ours[1] = take_fd(ends[2]);
	ours[2] = take_fd(ends[4]);
	return 0;
}

static int start_exec(struct keeper *k, struct exec *e, bool detached, int ours[3], struct err *err)
{
	int ends[6] = {-1, -1, -1, -1, -1, -1}, rc = -1;
	struct box *box;

	pthread_mutex_lock(&k->lock);
	box = state_enter(e->of);
	pthread_mutex_unlock(&k->lock);
	if (!box)
		return err_set(err, ERR_INPUT, "the sandbox does not run");
	if (make_pipes(e, detached, ends, err) == 0)
		rc = spawn(k, e, box, ends, ours, err);
	close_all(ends);
	pthread_mutex_lock(&k->lock);
	if (rc < 0)
		state_exec_ended(k, e, err->sys == ENOENT ? 127 : 126);
	state_leave(k, e->of);
	pthread_mutex_unlock(&k->lock);
	return rc;
}

/* It is started once. */
static bool take_turn(struct keeper *k, struct exec *e)
{
	bool mine;

	pthread_mutex_lock(&k->lock);
	mine = e->stage == EXEC_CREATED;
	if (mine)
		e->stage = EXEC_STARTING;
	pthread_mutex_unlock(&k->lock);
	return mine;
}

static void read_size(struct exec *e, const struct jv *size)
{
	if (!size || size->kind != JV_ARRAY || size->count != 2 || size->items[0].kind != JV_INT ||
	    size->items[1].kind != JV_INT)
		return;
	e->rows = (uint16_t)size->items[0].i;
	e->cols = (uint16_t)size->items[1].i;
}

static bool wants_upgrade(const struct call *call)
{
	const char *to = httpd_header(call->r, "upgrade");

	return to && !strcmp(to, "tcp");
}

/* A terminal without anybody would be read by nobody. */
static void begin_detached(struct call *call, struct exec *e, int ours[3])
{
	for (int i = 0; i < 3; i++)
		if (ours[i] >= 0)
			close(ours[i]);
	say_nothing(call, 200);
	call_release_exec(call, e);
}

void route_exec_start(struct call *call)
{
	bool detached = jv_true(&call->body, "Detach");
	struct exec *e = call_exec(call);
	int ours[3] = {-1, -1, -1};
	struct err err = {0};

	if (!e)
		return;
	if (!take_turn(call->k, e)) {
		say(call, 409, "Error: Exec command %s is already running or has ended", e->id);
		call_release_exec(call, e);
		return;
	}
	read_size(e, jv_get(&call->body, "ConsoleSize"));
	if (start_exec(call->k, e, detached, ours, &err) < 0) {
		say(call, 400, "OCI runtime exec failed: %s", err.msg);
		call_release_exec(call, e);
		return;
	}
	if (detached)
		begin_detached(call, e, ours);
	else
		talk_begin(call, e, ours, wants_upgrade(call));
}

/* --- looking, resizing --- */

static struct jv process_of(struct arena *a, const struct exec *e)
{
	struct jv process = jv_object(), *list;

	jv_set(a, &process, "tty", jv_bool(e->tty));
	jv_set(a, &process, "entrypoint", jv_string(e->argv[0]));
	list = jv_set(a, &process, "arguments", jv_array());
	for (size_t i = 1; e->argv[i]; i++)
		jv_push(a, list, jv_string(e->argv[i]));
	jv_set(a, &process, "privileged", jv_bool(false));
	jv_set(a, &process, "user", jv_string(e->user));
	return process;
}

void route_exec_inspect(struct call *call)
{
	struct exec *e = call_exec(call);
	struct arena *a = call->r->arena;
	struct jv doc = jv_object();

	if (!e)
		return;
	pthread_mutex_lock(&call->k->lock);
	jv_set(a, &doc, "ID", jv_string(e->id));
	jv_set(a, &doc, "Running", jv_bool(e->stage == EXEC_RUNNING));
	jv_set(a, &doc, "ExitCode", e->stage == EXEC_ENDED ? jv_int(e->code) : jv_null());
	jv_set(a, &doc, "ProcessConfig", process_of(a, e));
	jv_set(a, &doc, "OpenStdin", jv_bool(e->in));
	jv_set(a, &doc, "OpenStdout", jv_bool(e->out));
	jv_set(a, &doc, "OpenStderr", jv_bool(e->err));
	jv_set(a, &doc, "CanRemove", jv_bool(false));
	jv_set(a, &doc, "ContainerID", jv_string(e->of->id));
	jv_set(a, &doc, "DetachKeys", jv_string(""));
	jv_set(a, &doc, "Pid", jv_int(e->stage == EXEC_RUNNING ? e->pid : 0));
	pthread_mutex_unlock(&call->k->lock);
	say_json(call, 200, &doc);
	call_release_exec(call, e);
}

void route_exec_resize(struct call *call)
{
	struct exec *e = call_exec(call);
	const char *h = httpd_query(call->r, "h"), *w = httpd_query(call->r, "w");
	struct winsize size = {.ws_row = (unsigned short)(h ? strtoul(h, NULL, 10) : 0),
			       .ws_col = (unsigned short)(w ? strtoul(w, NULL, 10) : 0)};

	if (!e)
		return;
	pthread_mutex_lock(&call->k->lock);
	if (e->terminal >= 0)
		ioctl(e->terminal, TIOCSWINSZ, &size);
	pthread_mutex_unlock(&call->k->lock);
	call_release_exec(call, e);
	say_nothing(call, 200);
}
