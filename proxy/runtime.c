/* runtime.c - a worker's listeners that come and go while it serves. */
#include "proxy/worker_priv.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a row says, in the words of the configuration; it lives as long as a connection needs it. */
struct runtime_entry {
	struct listener listener; /* first */
	struct conf_listener conf;
	struct conf_identity who;
	struct runtime_row row;
	bool ended;
	uint64_t ended_ms;
	struct runtime_entry *next;
};

static void describe(struct runtime_entry *e, int fd)
{
	e->who = (struct conf_identity){.name = e->row.owner,
					.owner = e->row.owner,
					.profile = e->row.profile,
					.own_socket = ""};
	e->conf = (struct conf_listener){.name = e->row.name,
					 .socket = e->row.path,
					 .tcp = "",
					 .fd = fd,
					 .backend = e->row.backend,
					 .otherwise = "",
					 .callers = e->row.name,
					 .as_one = true,
					 .alone = &e->who};
}

int runtime_add(struct worker *w, const struct runtime_row *row, int fd, struct err *err)
{
	struct runtime_entry *e = calloc(1, sizeof(*e));

	if (!e || !runtime_is_row(row) || row->backend >= w->conf->backend_count ||
	    w->runtime_count == RUNTIME_MAX) {
		free(e);
		close(fd);
		return err_set(err, ERR_LIMIT, "a listener that cannot be served");
	}
	e->row = *row;
	describe(e, fd);
	e->listener = (struct listener){.watch = {.fd = -1}, .worker = w, .conf = &e->conf};
	e->next = w->runtime;
	w->runtime = e;
	w->runtime_count++;
	return w->listening && !w->stopping ? connection_watch(&e->listener, err) : 0;
}

static void stop_listening(struct runtime_entry *e)
{
	loop_unwatch(&e->listener.worker->loop, &e->listener.watch);
	if (e->conf.fd >= 0)
		close(e->conf.fd);
	e->conf.fd = -1;
}

/*
 * Its connections end at once.  What an engine has been told already, and what changes
 * something, is finished, looked at and recorded, as for a caller that hung up.
 */
static void end_entry(struct runtime_entry *e)
{
	struct worker *w = e->listener.worker;

	stop_listening(e);
	e->ended = true;
	e->ended_ms = w->loop.now_ms;
	w->runtime_count--;
	for (struct conn *c = w->conns; c; c = c->next)
		if (c->listener == &e->conf)
			connection_give_up(c);
}

void runtime_end(struct worker *w, uint64_t id)
{
	for (struct runtime_entry *e = w->runtime; e; e = e->next)
		if (e->row.id == id && !e->ended)
			end_entry(e);
}

int runtime_listen(struct worker *w, struct err *err)
{
	w->listening = true;
	for (struct runtime_entry *e = w->runtime; e; e = e->next)
		if (!e->ended && connection_watch(&e->listener, err) < 0)
			return -1;
	return 0;
}

void runtime_wind_down(struct worker *w)
{
	w->listening = false;
	for (struct runtime_entry *e = w->runtime; e; e = e->next)
		stop_listening(e);
}

/*
 * What an exchange has of the entry it has through its connection, which is counted by itself.  One
 * that has outlived its connection may have copies of names in its call; it was begun before the
 * end.
 */
static bool is_in_use(const struct worker *w, const struct runtime_entry *e)
{
	for (const struct conn *c = w->conns; c; c = c->next)
		if (c->listener == &e->conf)
			return true;
	for (const struct exchange *x = w->exchanges; x; x = x->next)
		if (!x->conn && x->started_ms <= e->ended_ms)
			return true;
	return false;
}

void runtime_tick(struct worker *w)
{
	for (struct runtime_entry **at = &w->runtime, *e; (e = *at);) {
		if (!e->ended && w->listening)
			connection_accept_again(&e->listener);
		if (e->ended && !is_in_use(w, e)) {
			*at = e->next;
			free(e);
		} else {
			at = &e->next;
		}
	}
}

void runtime_close(struct worker *w)
{
	while (w->runtime) {
		struct runtime_entry *e = w->runtime;

		w->runtime = e->next;
		stop_listening(e);
		free(e);
	}
}

int runtime_inherit(struct worker *w, struct err *err)
{
	for (size_t i = 0; i < w->conf->runtime_count; i++)
		if (runtime_add(w, &w->conf->runtime[i].row, w->conf->runtime[i].fd, err) < 0)
			return -1;
	return 0;
}
