#include "gate/keeper/state_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

static void ring(int fd)
{
	const uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n; /* full: it is awake already */
}

void state_changed(struct keeper *k)
{
	pthread_cond_broadcast(&k->changed);
	for (struct watcher *w = k->watchers; w; w = w->next)
		ring(w->fd);
	ring(k->wake);
}

void state_poke(struct keeper *k)
{
	ring(k->wake);
}

void state_id(char out[KEEPER_ID_LEN + 1])
{
	unsigned char bytes[KEEPER_ID_LEN / 2];
	size_t got = 0;

	while (got < sizeof(bytes)) {
		ssize_t n = getrandom(bytes + got, sizeof(bytes) - got, 0);

		if (n > 0)
			got += (size_t)n;
	}
	for (size_t i = 0; i < sizeof(bytes); i++) {
		out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	out[KEEPER_ID_LEN] = '\0';
}

/* By its full id, or its name: the gate has made full ids of whatever callers write. */
struct container *state_container(struct keeper *k, const char *name)
{
	for (struct container *c = k->containers; c; c = c->next)
		if (!strcmp(c->id, name) || !strcmp(c->name, *name == '/' ? name + 1 : name)) {
			c->refs++;
			return c;
		}
	return NULL;
}

struct exec *state_exec(struct keeper *k, const char *id)
{
	for (struct exec *e = k->execs; e; e = e->next)
		if (!strcmp(e->id, id)) {
			e->refs++;
			return e;
		}
	return NULL;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void state_drop(struct keeper *k, struct container *c)
{
	(void)k;
	assert(c->refs);
	if (--c->refs)
		return;
	assert(c->stage == STAGE_GONE && !c->box);
	close_one(&c->to_first);
	close_one(&c->from_first[0]);
	close_one(&c->from_first[1]);
	close_one(&c->folder);
	buf_fini(&c->output.frames);
	arena_destroy(c->arena);
	free(c);
}

void state_drop_exec(struct keeper *k, struct exec *e)
{
	struct container *of = e->of;

	assert(e->refs);
	if (--e->refs)
		return;
	close_one(&e->terminal);
	close_one(&e->ended);
	arena_destroy(e->arena);
	free(e);
	state_drop(k, of);
}

static void unlink_exec(struct keeper *k, struct exec *e)
{
	struct exec **at = &k->execs;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	k->exec_count--;
	e->of->execs--;
	state_drop_exec(k, e);
}

void state_remove(struct keeper *k, struct container *c)
{
	struct container **at = &k->containers;

	for (struct exec *e = k->execs, *next; e; e = next) {
		next = e->next;
		if (e->of == c)
			unlink_exec(k, e);
	}
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->stage = STAGE_GONE;
	k->container_count--;
	state_drop(k, c);
	state_changed(k);
}

/* The oldest that has ended goes; who was to ask for its result has had the time. */
bool state_exec_room(struct keeper *k)
{
	struct exec *oldest = NULL;

	if (k->exec_count < k->conf->execs)
		return true;
	for (struct exec *e = k->execs; e; e = e->next) /* the newest stand in front */
		if (e->stage == EXEC_ENDED)
			oldest = e;
	if (oldest)
		unlink_exec(k, oldest);
	return oldest != NULL;
}

void state_wait(struct keeper *k, const struct timespec *until)
{
	if (until)
		pthread_cond_timedwait(&k->changed, &k->lock, until);
	else
		pthread_cond_wait(&k->changed, &k->lock);
}

bool state_watch(struct keeper *k, struct watcher *w)
{
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0)
		return false;
	pthread_mutex_lock(&k->lock);
	w->next = k->watchers;
	k->watchers = w;
	pthread_mutex_unlock(&k->lock);
	return true;
}

void state_unwatch(struct keeper *k, struct watcher *w)
{
	struct watcher **at = &k->watchers;

	pthread_mutex_lock(&k->lock);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	pthread_mutex_unlock(&k->lock);
	close(w->fd);
}

void state_drain(const struct watcher *w)
{
	uint64_t count;
	ssize_t n = read(w->fd, &count, sizeof(count));

	(void)n;
}

struct box *state_enter(struct container *c)
{
	if (c->stage != STAGE_RUNNING || c->removing)
		return NULL;
	c->box_users++;
	return c->box;
}

void state_leave(struct keeper *k, struct container *c)
{
	assert(c->box_users);
	c->box_users--;
	state_changed(k);
}

void state_exec_ended(struct keeper *k, struct exec *e, int code)
{
	if (e->stage == EXEC_ENDED)
		return;
	e->stage = EXEC_ENDED;
	e->code = code;
	ring(e->ended);
	state_changed(k);
}
