/*
 * Callers' connections: accepting them within the caps, knowing who is behind
 * them, noticing that somebody hung up, and handing them to libmicrohttpd.
 */
#include "gate/base/log.h"
#include "proxy/metrics.h"
#include "proxy/token.h"
#include "proxy/worker_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ACCEPT_BATCH 32
#define IDLE_MS      300000 /* a kept connection without a request */
/* Exclusive: one worker is woken for a caller, not all. */
#define LISTEN_EVENTS (EPOLLIN | EPOLLEXCLUSIVE)

/* MHD_add_connection() calls connection_notify() from within. */
static struct conn *being_adopted;

static struct log_kind refused; /* connections above the caps */

static void on_hang_up(struct watch *watch, uint32_t events)
{
	struct conn *c = (struct conn *)watch;

	if (!(events & (EPOLLHUP | EPOLLERR)))
		return;
	c->gone = true;
	if (c->exchange)
		exchange_hang_up(c->exchange);
}

void connection_give_up(struct conn *c)
{
	c->given_up = true;
	shutdown(c->fd, SHUT_RDWR);
}

static void conn_free(struct conn *c)
{
	struct worker *w = c->worker;

	loop_unwatch(&w->loop, &c->watch);
	if (c->wire)
		tls_wire_leave(c->wire);
	inside_end(c);
	if (c->exchange)
		c->exchange->conn = NULL;
	if (c->prev)
		c->prev->next = c->next;
	else
		w->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	w->conn_count--;
	certificate_free(c->certificate);
	free(c);
}

/*
 * MHD gives some malformed requests up without a word: the connection ends
 * though its caller is there and no answer was due.
 */
static bool ended_by_us(const struct conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

	if (c->ended_turn == c->worker->turn || c->exchange || c->given_up)
		return false;
	return poll(&p, 1, 0) == 0;
}

void connection_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
		       enum MHD_ConnectionNotificationCode code)
{
	struct conn *c = *socket_context;

	(void)cls;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*socket_context = being_adopted;
		being_adopted->mhd = mhd;
		being_adopted = NULL;
	} else if (c) {
		*socket_context = NULL;
		if (ended_by_us(c))
			trail_malformed(c);
		conn_free(c);
	}
}

/* Every sign that an identity has must be there; a token that was presented counts, or nobody fits.
 */
static bool fits(const struct conn *c, const struct conf_identity *i, const struct signs *signs)
{
	if (signs->named)
		return !strcmp(i->name, signs->named);
	if (c->listener->as_one)
		return true;
	if (i->has_token != (signs->token.len > 0) ||
	    (i->has_token && !token_matches(&i->token, signs->token)))
		return false;
	if (i->has_cert && !(c->certificate && certificate_fits(c->certificate, &i->cert)))
		return false;
	if (!i->has_uid && !i->has_gid)
		return i->has_token || i->has_cert || i->container.kind != SIGN_NOTHING;
	return c->who.has_cred && (!i->has_uid || i->uid == c->who.uid) &&
	       (!i->has_gid || i->gid == c->who.gid);
}

enum fit { FITS_NOT = 0, FITS, FITS_UNKNOWN };

static enum fit container_fits(const struct conn *c, const struct conf_identity *i,
			       const struct signs *signs)
{
	if (i->container.kind == SIGN_NOTHING || signs->named || c->listener->as_one)
		return FITS;
	if (!c->inside || c->inside->place == CALLER_UNKNOWN)
		return FITS_UNKNOWN;
	if (c->inside->place == CALLER_OUTSIDE)
		return i->container.kind == SIGN_OUTSIDE ? FITS : FITS_NOT;
	return caller_sign_fits(&i->container, &c->inside->container) ? FITS : FITS_NOT;
}

/*
 * Whoever might be somebody, if only it were known where it runs, is nobody: it
 * must not become the next one on the list by that.
 */
static const struct conf_identity *find_identity(struct conn *c, const struct signs *signs)
{
	const struct proxy_conf *conf = c->worker->conf;

	c->not_told = NULL;
	if (c->listener->alone)
		return c->listener->alone;
	for (size_t i = 0; i < c->listener->identity_count; i++) {
		const struct conf_identity *one = &conf->identities[c->listener->identities[i]];

		if (!fits(c, one, signs))
			continue;
		switch (container_fits(c, one, signs)) {
		case FITS:
			return one;
		case FITS_UNKNOWN:
			c->not_told = c->inside ? c->inside->why : "it was not looked at";
			return NULL;
		case FITS_NOT:
			break;
		}
	}
	return NULL;
}

/* The first identity of the listener that fits, else what the listener says. */
void connection_recognise(struct conn *c, const struct signs *signs)
{
	const struct conf_identity *found = signs->odd ? NULL : find_identity(c, signs);
	bool wrong_token = !found && (signs->odd || signs->token.len > 0 || c->not_told);

	c->identity = found;
	c->who.has_token = found && found->has_token && !signs->named;
	c->who.by_container = found && found->container.kind != SIGN_NOTHING && !signs->named &&
			      !c->listener->as_one;
	c->who.name = found ? found->name : "";
	c->who.owner = found ? found->owner : c->owner;
	c->who.profile = found ? found->profile : wrong_token ? "" : c->listener->otherwise;
	c->known = c->who.profile && *c->who.profile;
}

void connection_read_token(struct exchange *x, const struct pair *headers, size_t count)
{
	struct conn *c = x->conn;

	if (!c->listener->takes_tokens || c->worker->check)
		return;
	x->signs.odd = token_presented(headers, count, &x->signs.token) == TOKEN_ODD;
	/* It may be needed only after it is known where the caller runs. */
	if (x->signs.token.len)
		x->signs.token.at = arena_strndup(x->arena, x->signs.token.at, x->signs.token.len);
	if (!x->signs.token.at)
		x->signs.token.len = 0;
	x->signs.odd = x->signs.odd || arena_spent(x->arena);
	connection_recognise(c, &x->signs);
}

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static void print_address(const union any_address *from, char out[CONNECTION_ADDRESS_MAX])
{
	if (from->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &from->v4.sin_addr, out, CONNECTION_ADDRESS_MAX);
	else if (from->any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &from->v6.sin6_addr, out, CONNECTION_ADDRESS_MAX);
}

void connection_address(int fd, char out[CONNECTION_ADDRESS_MAX])
{
	union any_address peer = {.any.sa_family = AF_UNSPEC};
	socklen_t len = sizeof(peer);

	out[0] = '\0';
	if (getpeername(fd, &peer.any, &len) == 0)
		print_address(&peer, out);
}

void connection_own_address(int fd, char out[CONNECTION_ADDRESS_MAX])
{
	union any_address own = {.any.sa_family = AF_UNSPEC};
	socklen_t len = sizeof(own);

	out[0] = '\0';
	if (getsockname(fd, &own.any, &len) == 0)
		print_address(&own, out);
}

static void identify_tcp(struct conn *c, const char *callers)
{
	c->who.address = c->address;
	if (!c->wire) {
		connection_address(c->fd, c->address);
		if (c->listener->looks_inside)
			connection_own_address(c->fd, c->own_address);
	}
	if (c->certificate) {
		c->who.cert = certificate_names(c->certificate);
		snprintf(c->owner, sizeof(c->owner), "cert-%s@%s",
			 certificate_holder(c->certificate), callers);
	} else {
		snprintf(c->owner, sizeof(c->owner), "tcp@%s", callers);
	}
}

/* Who asks, as far as can be told before a request has come. */
static void identify(struct conn *c, const char *named)
{
	const char *callers = c->listener->callers ? c->listener->callers : c->listener->name;
	const struct signs signs = {.named = named};
	struct ucred cred = {.pid = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
	socklen_t len = sizeof(cred);

	c->who.listener = c->listener->name;
	c->who.has_cred = !conf_is_tcp(c->listener) &&
			  getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0;
	c->who.uid = cred.uid;
	c->who.gid = cred.gid;
	c->who.pid = cred.pid;
	if (conf_is_tcp(c->listener))
		identify_tcp(c, callers);
	else
		snprintf(c->owner, sizeof(c->owner), "uid-%u@%s", cred.uid, callers);
	connection_recognise(c, &signs);
}

static struct conn *make(struct worker *w, const struct conf_listener *l, int fd, struct err *err)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		err_sys(err, "allocate a connection");
		return NULL;
	}
	*c = (struct conn){.watch = {.fd = -1}, .worker = w, .listener = l, .fd = fd};
	c->since_ms = w->loop.now_ms;
	return c;
}

/* It is known who that is, as far as it can be; the HTTP library gets it. */
static int hand_over(struct conn *c, struct err *err)
{
	struct sockaddr_un peer = {.sun_family = AF_UNIX};
	struct worker *w = c->worker;
	int fd = c->fd;

	c->next = w->conns;
	if (c->next)
		c->next->prev = c;
	w->conns = c;
	w->conn_count++;
	/* No event is asked for: a hang-up is always told, once (edge-triggered). */
	if (loop_watch(&w->loop, &c->watch, fd, EPOLLET, on_hang_up, err) < 0) {
		close(fd);
		conn_free(c);
		return -1;
	}
	being_adopted = c;
	if (MHD_add_connection(w->mhd, fd, (struct sockaddr *)&peer, sizeof(sa_family_t)) !=
	    MHD_YES) {
		/* MHD has closed the descriptor; if it had begun, the end was told, which freed c.
		 */
		if (being_adopted) {
			loop_forget(&w->loop, &c->watch);
			conn_free(c);
		}
		return err_set(err, ERR_SYSTEM, "the HTTP library refused the connection");
	}
	w->mhd_due = true;
	return 0;
}

int connection_adopt(struct worker *w, const struct conf_listener *l, int fd, const char *identity,
		     struct tls_wire *wire, struct err *err)
{
	struct conn *c = make(w, l, fd, err);

	if (!c)
		return -1;
	if (wire)
		tls_wire_join(wire, c);
	inside_begin(c);
	identify(c, identity);
	return hand_over(c, err);
}

int connection_adopt_behalf(struct worker *w, const struct conf_listener *l, int fd,
			    struct err *err)
{
	struct conn *c = make(w, l, fd, err);

	if (!c)
		return -1;
	c->behalf = true;
	c->pidfd = -1;
	c->who = (struct identity){
		.name = "", .owner = c->owner, .profile = "", .listener = l->name, .address = ""};
	return hand_over(c, err);
}

/* In a container a caller may have any number of users; on a socket of its own they are one. */
bool connection_same_caller(const struct conn *a, const struct conn *b)
{
	if (a->listener->as_one || b->listener->as_one)
		return a->identity && a->identity == b->identity;
	if (conf_is_tcp(a->listener) || conf_is_tcp(b->listener))
		return a->listener == b->listener && !strcmp(a->address, b->address);
	return a->who.uid == b->who.uid;
}

/* Who it is, is found out only where it is needed: below the caps of one caller nobody is above. */
static bool too_many(const struct worker *w, const struct conf_listener *l, int fd)
{
	struct conn newcomer = {.worker = (struct worker *)w, .listener = l, .fd = fd, .pidfd = -1};
	const struct conf_limits *limits = &w->conf->limits;
	struct wire_count wires;
	unsigned n;

	if (l->tls)
		connection_address(fd, newcomer.address);
	tls_wire_count(w, l, newcomer.address, &wires);
	if (w->conn_count + wires.all >= limits->connections)
		return true;
	/* Nobody can keep all others from shaking hands. */
	if (l->tls && (wires.shaking >= limits->handshakes ||
		       wires.own_shaking >= (limits->handshakes + 3) / 4))
		return true;
	if (w->conn_count + wires.all < limits->connections_per_uid)
		return false;
	identify(&newcomer, NULL);
	n = wires.own;
	for (const struct conn *c = w->conns; c; c = c->next)
		n += connection_same_caller(c, &newcomer);
	return n >= limits->connections_per_uid;
}

static int take(struct listener *l, int fd, struct err *err)
{
	return l->tls ? tls_wire_accept(l, fd, err)
		      : connection_adopt(l->worker, l->conf, fd, NULL, NULL, err);
}

static void on_listener(struct watch *watch, uint32_t events)
{
	struct listener *l = (struct listener *)watch;
	struct err err = {0};

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd = accept4(l->conf->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			/* No descriptors or memory: asked again with the next tick. */
			if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
				loop_change(&l->worker->loop, watch, 0);
			return;
		}
		if (too_many(l->worker, l->conf, fd)) {
			log_often(&refused, "listener %s: too many connections; one was closed",
				  l->conf->name);
			metrics_add(l->worker->conf->metrics, METRIC_connections_refused, 1);
			close(fd);
		} else if (take(l, fd, &err) < 0) {
			log_line("listener %s: %s", l->conf->name, err.msg);
		} else {
			metrics_add(l->worker->conf->metrics, METRIC_connections, 1);
		}
	}
}

int connection_watch(struct listener *l, struct err *err)
{
	if (loop_watch(&l->worker->loop, &l->watch, l->conf->fd, LISTEN_EVENTS, on_listener, err) <
	    0)
		return err_wrap(err, "listener %s", l->conf->name);
	return 0;
}

void connection_accept_again(struct listener *l)
{
	if (l->worker) /* it has begun */
		loop_change(&l->worker->loop, &l->watch, LISTEN_EVENTS);
}

int connection_listen(struct worker *w, struct err *err)
{
	for (size_t i = 0; i < w->conf->listener_count; i++) {
		struct listener *l = &w->listeners[i];

		if (w->conf->listeners[i].sandbox_count) /* another process has it */
			continue;
		*l = (struct listener){.watch = {.fd = -1},
				       .worker = w,
				       .conf = &w->conf->listeners[i],
				       .tls = l->tls};
		if (connection_watch(l, err) < 0)
			return -1;
	}
	return runtime_listen(w, err);
}

static bool has_input(const struct conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return (c->wire && tls_wire_has_input(c->wire)) || poll(&p, 1, 0) > 0;
}

/*
 * Other rules may be in force from now on: what has begun, or has arrived, is
 * served to its end, and then the connection ends.
 */
void connection_wind_down(struct worker *w)
{
	for (size_t i = 0; i < w->conf->listener_count; i++)
		loop_unwatch(&w->loop, &w->listeners[i].watch);
	runtime_wind_down(w);
	for (struct conn *c = w->conns; c; c = c->next)
		if (!c->exchange && !has_input(c))
			connection_give_up(c);
}

/* Accepts again after a pause; ends heads that do not come, and connections that nobody uses. */
void connection_tick(struct worker *w)
{
	const struct conf_limits *limits = &w->conf->limits;

	for (size_t i = 0; i < w->conf->listener_count; i++)
		connection_accept_again(&w->listeners[i]);
	runtime_tick(w);
	tls_wire_tick(w);
	for (struct conn *c = w->conns; c; c = c->next) {
		uint64_t idle = w->loop.now_ms - c->since_ms;

		if ((c->exchange && c->exchange->head_seen) || (c->behalf && !c->in_head))
			continue;
		if (idle > (c->used && !c->in_head ? IDLE_MS : limits->head_ms))
			connection_give_up(c);
	}
}
