/* Connections of a pool: dialled, written to, read from, given up. */
#include "proxy/upstream_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void upcall_ready(struct watch *w, uint32_t events);

/* --- dialling --- */

/* Whatever was known of the service may not hold any more. */
static void lost(struct upstream *u)
{
	u->epoch++;
	if (u->lost)
		u->lost(u->lost_arg);
}

static void hang_up(struct upcall *c)
{
	loop_unwatch(c->pool->loop, &c->watch);
	if (c->line.fd >= 0)
		close(c->line.fd);
	c->line.fd = -1;
	tunnel_leave(c->line.tunnel);
	c->line.tunnel = NULL;
}

void upcall_destroy(struct upcall *c)
{
	hang_up(c);
	buf_fini(&c->out);
	buf_fini(&c->again);
	buf_fini(&c->text);
	buf_fini(&c->body);
	free(c);
}

static void drop_all_idle(struct upstream *u)
{
	while (u->idle) {
		struct upcall *c = u->idle;

		u->idle = c->next;
		upcall_destroy(c);
	}
	u->idle_count = 0;
}

static int dial(struct upcall *c, struct err *err)
{
	struct upstream *u = c->pool;

	if (dial_start(u->dial, u->loop, &c->line, err) < 0) {
		dial_is_lost(u->dial);
		lost(u);
		return -1;
	}
	if (loop_watch(u->loop, &c->watch, c->line.fd, EPOLLIN, upcall_ready, err) < 0) {
		hang_up(c);
		return -1;
	}
	u->dials++;
	if (dial_is_another(u->dial, &c->line)) {
		drop_all_idle(u);
		lost(u);
	}
	return 0;
}

struct upcall *upcall_dial(struct upstream *u, struct err *err)
{
	struct upcall *c = calloc(1, sizeof(*c));

	if (!c) {
		err_sys(err, "allocate a connection");
		return NULL;
	}
	c->watch.fd = c->line.fd = -1;
	c->pool = u;
	buf_init(&c->out, UPCALL_PENDING + 65536);
	buf_init(&c->again, UPCALL_PENDING);
	buf_init(&c->text, UPSTREAM_HEAD_TEXT_MAX);
	buf_init(&c->body, UPCALL_BUFFER);
	if (dial(c, err) == 0)
		return c;
	upcall_destroy(c);
	return NULL;
}

static void drop_idle(struct upcall *dead)
{
	struct upstream *u = dead->pool;

	for (struct upcall **at = &u->idle; *at; at = &(*at)->next) {
		if (*at != dead)
			continue;
		*at = dead->next;
		u->idle_count--;
		break;
	}
	upcall_destroy(dead);
	dial_is_lost(u->dial);
	lost(u);
}

void upstream_refresh(struct upstream *u)
{
	char byte;

	while (u->idle) {
		ssize_t n = recv(u->idle->line.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		drop_idle(u->idle);
	}
}

/* --- sending --- */

/* What the call waits for: push-back is not reading, a full socket is waiting to write. */
void upcall_set_interest(struct upcall *c)
{
	uint32_t events = 0;

	/*
	 * A complete reply is released in a moment, mostly: two changes of
	 * epoll a request are saved by waiting for what else may come first.
	 */
	if (c->complete && !buf_len(&c->out) && c->watch.events == EPOLLIN)
		return;
	if (!c->handlers || (!c->complete && buf_room(&c->body) >= UPSTREAM_READ_BYTES))
		events |= EPOLLIN;
	/* Whoever waits for room is told in a turn of its own, also when all has gone out. */
	if (buf_len(&c->out) || c->wants_room)
		events |= EPOLLOUT;
	loop_change(c->pool->loop, &c->watch, events);
}

static void failed(struct upcall *c, enum upcall_fault fault)
{
	const struct upcall_handlers *h = c->handlers;
	void *arg = c->arg;

	c->handlers = NULL;
	c->keep = false;
	loop_change(c->pool->loop, &c->watch, 0);
	h->fail(arg, fault);
}

/* Nobody reads it any more. */
static void drop_out(struct upcall *c)
{
	c->unsent |= buf_len(&c->out) > 0;
	buf_clear(&c->out);
}

/*
 * Sends what the socket takes.  Failing to write is no verdict: the service may
 * have answered already, and if not, the end of file tells.
 */
void upcall_push(struct upcall *c)
{
	while (!c->line.connecting && buf_len(&c->out)) {
		struct span s = buf_span(&c->out);
		ssize_t n = send(c->watch.fd, s.at, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			drop_out(c);
			return;
		}
		buf_consume(&c->out, (size_t)n);
	}
}

/* --- reading --- */

/* A kept connection may have been closed while the request was on its way. */
static bool try_again(struct upcall *c)
{
	struct err err = {0};

	if (!c->repeatable || c->head_given || c->text.end)
		return false;
	c->repeatable = false;
	hang_up(c);
	dial_is_lost(c->pool->dial);
	lost(c->pool);
	c->line.tried = 0;
	if (dial(c, &err) < 0)
		return false;
	upcall_reset_reply(c);
	buf_clear(&c->out);
	c->unsent = false;
	buf_put(&c->out, buf_span(&c->again).at, buf_len(&c->again));
	upcall_push(c);
	upcall_set_interest(c);
	return true;
}

static enum upcall_fault end_of_file(struct upcall *c)
{
	const char *trouble = c->line.tunnel ? tunnel_trouble(c->line.tunnel) : "";

	if (try_again(c))
		return UPCALL_FINE;
	snprintf(c->why, sizeof(c->why), "%s", trouble);
	/* What ends in the middle of TLS was cut by somebody else than the service. */
	if (!*trouble)
		upcall_feed_end(c);
	c->keep = false;
	if (c->complete)
		return UPCALL_FINE;
	return c->status ? UPCALL_CUT : UPCALL_UNREACHABLE;
}

static enum upcall_fault read_reply(struct upcall *c)
{
	static char bytes[UPSTREAM_READ_BYTES];
	ssize_t n;

	if (c->complete || buf_room(&c->body) < UPSTREAM_READ_BYTES)
		return UPCALL_FINE;
	n = recv(c->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return UPCALL_FINE;
	return n > 0 ? upcall_feed(c, bytes, (size_t)n) : end_of_file(c);
}

/* Tells the exchange of what has come; it may release the call in each handler. */
static void report(struct upcall *c)
{
	bool fresh = !c->head_given && c->status >= 200;

	if (c->status == 101 && c->complete && !c->head_given)
		fresh = true;
	if (fresh)
		upcall_give_head(c); /* the exchange takes data on its own account from here */
	else if (c->head_given)
		c->handlers->data(c->arg);
}

/*
 * Each handler may release the call, so nothing touches it behind one: what
 * else is to be done is done in a later turn (events are level-triggered).
 */
static void take_reply(struct upcall *c)
{
	size_t had = buf_len(&c->body);
	enum upcall_fault fault;

	if (c->complete) { /* not released yet, and not to be read: it is set aside */
		c->keep = false;
		loop_change(c->pool->loop, &c->watch, 0);
		return;
	}
	fault = read_reply(c);

	if (fault != UPCALL_FINE) {
		failed(c, fault);
		return;
	}
	upcall_set_interest(c);
	if (!c->head_given || buf_len(&c->body) != had || c->complete)
		report(c);
}

/* False when the call is over, or goes on with another address. */
static bool settle(struct upcall *c)
{
	struct line before = c->line;
	struct err err = {0};

	if (dial_settle(c->pool->dial, &c->line, &err) == 0)
		return true;
	snprintf(c->why, sizeof(c->why), "%.150s", err.msg);
	hang_up(c);
	c->line.tried = before.tried + 1;
	if (dial_has_more(c->pool->dial, &before) && dial(c, &err) == 0)
		upcall_set_interest(c);
	else
		failed(c, UPCALL_UNREACHABLE);
	return false;
}

static void upcall_ready(struct watch *w, uint32_t events)
{
	struct upcall *c = (struct upcall *)w;

	if (!c->handlers) {
		drop_idle(c); /* whatever comes while it is idle is the end of it */
		return;
	}
	if (c->line.connecting && !settle(c))
		return;
	upcall_push(c);
	if (events & EPOLLHUP)
		drop_out(c);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		take_reply(c);
		return;
	}
	upcall_set_interest(c);
	if (c->wants_room && buf_len(&c->out) < UPCALL_PENDING / 2) {
		c->wants_room = false;
		if (c->handlers->room)
			c->handlers->room(c->arg);
	}
}
