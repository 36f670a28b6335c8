/* containers.c - sandboxes, from their making to their end. */
#include "gate/base/clock.h"
#include "gate/keeper/state_priv.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_MAX_S 300

/* --- create --- */

static bool is_name(const char *s)
{
	size_t n = strlen(s);

	return n > 1 && n <= KEEPER_NAME_MAX &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       n &&
	       !strchr("_.-", *s);
}

static int name_it(struct container *c, const char *given, struct err *err)
{
	if (given && *given == '/')
		given++;
	if (!given || !*given) {
		snprintf(c->name, sizeof(c->name), "sandbox_%.12s", c->id);
		return 0;
	}
	if (!is_name(given))
		return err_set(err, ERR_INPUT, "Invalid container name (%.80s)", given);
	snprintf(c->name, sizeof(c->name), "%s", given);
	return 0;
}

/* The document once more, in memory that lives as long as the container. */
static int keep_document(struct container *c, const struct jv *body, struct jv *ret,
			 struct err *err)
{
	enum jv_fault fault;
	struct buf text;
	int rc = -1;

	buf_init(&text, 2 * KEEPER_BODY_MAX);
	jv_write(&text, body);
	if (buf_spent(&text))
		err_set(err, ERR_LIMIT, "the document is too large");
	else
		rc = jv_parse(c->arena, buf_span(&text), ret, &fault, err);
	buf_fini(&text);
	return rc;
}

static struct container *make_container(const struct keeper *k, const struct jv *body,
					const char *name, struct err *err)
{
	struct container *c = calloc(1, sizeof(*c));
	const struct jv *host;

	if (!c) {
		err_set(err, ERR_LIMIT, "no memory");
		return NULL;
	}
	*c = (struct container){
		.refs = 1, .folder = -1, .to_first = -1, .from_first = {-1, -1}, .exit_code = 0};
	c->arena = arena_create(KEEPER_ARENA_MAX);
	buf_init(&c->output.frames, k->conf->output);
	c->created_ns = clock_unix_ns();
	state_id(c->id);
	if (c->arena && name_it(c, name, err) == 0 &&
	    keep_document(c, body, &c->config, err) == 0 &&
	    plan_read(k, c->arena, &c->config, &c->plan, err) == 0 && !arena_spent(c->arena)) {
		host = jv_get(&c->config, "HostConfig");
		c->host = host && host->kind == JV_OBJECT ? *host : jv_object();
		return c;
	}
	if (err->kind == ERR_NONE)
		err_set(err, ERR_LIMIT, "no memory");
	arena_destroy(c->arena);
	buf_fini(&c->output.frames);
	free(c);
	return NULL;
}

static void free_unseen(struct container *c)
{
	arena_destroy(c->arena);
	buf_fini(&c->output.frames);
	free(c);
}

/* With the lock; 0, or the status of a refusal. */
static int add_container(struct keeper *k, struct container *c)
{
	for (const struct container *other = k->containers; other; other = other->next)
		if (!strcmp(other->name, c->name))
			return 409;
	if (k->container_count >= k->conf->sandboxes)
		return 429;
	c->next = k->containers;
	k->containers = c;
	k->container_count++;
	return 0;
}

void route_create(struct call *call)
{
	struct jv doc = jv_object();
	struct err err = {0};
	struct container *c =
		make_container(call->k, &call->body, httpd_query(call->r, "name"), &err);
	char id[KEEPER_ID_LEN + 1];
	int status;

	if (!c) {
		say_err(call, &err);
		return;
	}
	memcpy(id, c->id, sizeof(id));
	pthread_mutex_lock(&call->k->lock);
	status = add_container(call->k, c);
	pthread_mutex_unlock(&call->k->lock);
	if (status == 409)
		say(call, 409, "Conflict. The container name \"/%s\" is already in use", c->name);
	else if (status)
		say(call, status, "there are as many sandboxes as the backend says: %u",
		    call->k->conf->sandboxes);
	if (status) {
		free_unseen(c);
		return;
	}
	jv_set(call->r->arena, &doc, "Id", jv_string(id));
	jv_set(call->r->arena, &doc, "Warnings", jv_array());
	say_json(call, 201, &doc);
}

/* --- start --- */

/* With the lock: 0 it is ours to start, or the status of the answer. */
static int take_start(struct container *c)
{
	if (c->stage == STAGE_RUNNING)
		return 304;
	if (c->removing || (c->stage != STAGE_CREATED && c->stage != STAGE_EXITED))
		return 409;
	if (c->stage == STAGE_EXITED && (c->from_first[0] >= 0 || c->from_first[1] >= 0))
		return 409; /* its output is still being read */
	c->stage = STAGE_STARTING;
	return 0;
}

static void note_start(struct keeper *k, struct container *c, bool fine, const struct err *err)
{
	pthread_mutex_lock(&k->lock);
	if (fine) {
		c->stage = STAGE_RUNNING;
		c->started_ns = clock_unix_ns();
		c->finished_ns = 0;
		c->exit_code = 0;
		c->oom = false;
		c->output.over = false;
	} else {
		c->stage = STAGE_CREATED;
		c->exit_code = err->sys == ENOENT ? 127 : 126;
	}
	state_changed(k);
	pthread_mutex_unlock(&k->lock);
}

void route_start(struct call *call)
{
	struct container *c = call_container(call);
	struct err err = {0};
	int status;

	if (!c)
		return;
	pthread_mutex_lock(&call->k->lock);
	status = take_start(c);
	pthread_mutex_unlock(&call->k->lock);
	if (status == 304) {
		say_nothing(call, 304);
	} else if (status) {
		say(call, status, "the sandbox is about to start or to end");
	} else if (container_begin(call->k, c, &err) < 0) {
		note_start(call->k, c, false, &err);
		say(call, err.kind == ERR_LIMIT ? 503 : 400, "the sandbox could not be started: %s",
		    err.msg);
	} else {
		note_start(call->k, c, true, &err);
		say_nothing(call, 204);
	}
	call_release(call, c);
}

/* --- ends --- */

static bool is_up(const struct container *c)
{
	return c->stage == STAGE_STARTING || c->stage == STAGE_RUNNING || c->stage == STAGE_ENDING;
}

/* Until it has ended. False: it did not, in time. With the lock. */
static bool wait_for_end(struct keeper *k, struct container *c, int seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	while (is_up(c)) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		if (seconds >= 0 && (now.tv_sec > until.tv_sec ||
				     (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec)))
			return false;
		state_wait(k, seconds >= 0 ? &until : NULL);
	}
	return true;
}

static int send_signal(struct keeper *k, struct container *c, int signo, struct err *err)
{
	struct box *box;
	uint32_t first;
	int rc;

	pthread_mutex_lock(&k->lock);
	box = state_enter(c);
	first = c->first;
	pthread_mutex_unlock(&k->lock);
	if (!box)
		return err_set(err, ERR_INPUT, "Container %s is not running", c->id);
	rc = box_signal(box, first, signo, err);
	if (rc < 0 && err->sys == ESRCH) /* it has ended just now */
		rc = 0;
	pthread_mutex_lock(&k->lock);
	state_leave(k, c);
	pthread_mutex_unlock(&k->lock);
	return rc;
}

/* Whatever it does: it ends now. With the lock. */
static void end_for_sure(struct keeper *k, struct container *c)
{
	if (c->stage != STAGE_RUNNING)
		return;
	c->stage = STAGE_ENDING;
	c->exit_code = 128 + SIGKILL;
	state_changed(k);
}

void route_kill(struct call *call)
{
	struct container *c = call_container(call);
	const char *name = httpd_query(call->r, "signal");
	int signo = name && *name ? plan_signal(name) : SIGKILL;
	struct err err = {0};

	if (!c)
		return;
	if (!signo)
		say(call, 400, "Invalid signal: %.40s", name);
	else if (send_signal(call->k, c, signo, &err) < 0)
		say(call, err.kind == ERR_INPUT ? 409 : 500, "%s", err.msg);
	else
		say_nothing(call, 204);
	if (signo == SIGKILL) { /* as engines do: it is over when they answer, or soon */
		pthread_mutex_lock(&call->k->lock);
		end_for_sure(call->k, c);
		wait_for_end(call->k, c, 10);
		pthread_mutex_unlock(&call->k->lock);
	}
	call_release(call, c);
}

void route_stop(struct call *call)
{
	struct container *c = call_container(call);
	const char *t = httpd_query(call->r, "t"), *name = httpd_query(call->r, "signal");
	struct err err = {0};
	int signo, seconds;
	bool up;

	if (!c)
		return;
	signo = name && *name ? plan_signal(name) : c->plan.stop_signal;
	seconds = t ? (int)strtol(t, NULL, 10) : c->plan.stop_seconds;
	if (seconds < 0 || seconds > STOP_MAX_S)
		seconds = STOP_MAX_S;
	pthread_mutex_lock(&call->k->lock);
	up = is_up(c);
	pthread_mutex_unlock(&call->k->lock);
	if (!signo) {
		say(call, 400, "Invalid signal: %.40s", name);
	} else if (!up) {
		say_nothing(call, 304);
	} else {
		send_signal(call->k, c, signo, &err);
		pthread_mutex_lock(&call->k->lock);
		if (!wait_for_end(call->k, c, seconds)) {
			end_for_sure(call->k, c);
			wait_for_end(call->k, c, -1);
		}
		pthread_mutex_unlock(&call->k->lock);
		say_nothing(call, 204);
	}
	call_release(call, c);
}

/* Its files as well: removed() is called without the lock. */
void route_remove(struct call *call)
{
	struct container *c = call_container(call);
	bool force = query_true(call, "force"), mine = false, refused = false;
	struct keeper *k = call->k;

	if (!c)
		return;
	pthread_mutex_lock(&k->lock);
	if (!c->removing && c->stage != STAGE_GONE) {
		refused = is_up(c) && !force;
		mine = c->removing = !refused;
	}
	if (mine) {
		end_for_sure(k, c);
		wait_for_end(k, c, -1);
		state_remove(k, c);
	}
	pthread_mutex_unlock(&k->lock);
	if (mine)
		container_forget(k, c);
	if (refused)
		say(call, 409,
		    "You cannot remove a running container %s. Stop the container before "
		    "attempting removal or force remove",
		    c->id);
	else if (!mine)
		say(call, 409, "removal of container %s is already in progress", c->id);
	else
		say_nothing(call, 204);
	call_release(call, c);
}

/* --- wait --- */

struct waiter {
	struct call *call;
	struct container *c;
	struct watcher watcher;
	uint64_t since; /* started_ns when it was asked */
	bool until_removed, next, told;
};

/* With the lock. */
static bool is_awaited(const struct waiter *w)
{
	const struct container *c = w->c;

	if (c->stage == STAGE_GONE)
		return true;
	if (w->until_removed || is_up(c))
		return false;
	if (w->next)
		return c->started_ns != w->since && c->finished_ns;
	return c->stage == STAGE_EXITED;
}

static ssize_t more_of_wait(struct httpd_request *r, char *at, size_t room)
{
	struct waiter *w = call_of(r)->user;
	struct keeper *k = w->call->k;
	bool over = false;
	int code;

	if (w->told)
		return 0;
	while (!over) {
		struct pollfd fds[2] = {{.fd = w->watcher.fd, .events = POLLIN},
					{.fd = r->fd, .events = POLLRDHUP}};

		state_drain(&w->watcher);
		pthread_mutex_lock(&k->lock);
		over = is_awaited(w);
		code = w->c->exit_code;
		pthread_mutex_unlock(&k->lock);
		if (over)
			break;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -1;
		if (fds[1].revents)
			return -1;
	}
	w->told = true;
	return snprintf(at, room, "{\"StatusCode\":%d}\n", code);
}

static void end_wait(struct call *call)
{
	struct waiter *w = call->user;

	state_unwatch(call->k, &w->watcher);
	call_release(call, w->c);
}

void route_wait(struct call *call)
{
	struct container *c = call_container(call);
	const char *condition = httpd_query(call->r, "condition");
	struct waiter *w = c ? arena_take(call->r->arena, sizeof(*w)) : NULL;

	if (!c)
		return;
	if (!w || !state_watch(call->k, &w->watcher)) {
		say(call, 503, "no memory");
		call_release(call, c);
		return;
	}
	w->call = call;
	w->c = c;
	pthread_mutex_lock(&call->k->lock);
	w->since = is_up(c) ? 0 : c->started_ns;
	pthread_mutex_unlock(&call->k->lock);
	w->until_removed = condition && !strcmp(condition, "removed");
	w->next = condition && !strcmp(condition, "next-exit");
	call->user = w;
	call->user_done = end_wait;
	httpd_reply_stream(call->r, 200, "application/json", -1, more_of_wait);
}
