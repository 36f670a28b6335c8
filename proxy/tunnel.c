#include "proxy/tunnel.h"

#include "gate/base/buf.h"
#include "gate/base/io.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD      16384 /* bytes, the most that one TLS record carries */
#define TURN_ROUNDS 16    /* pieces moved in one go, in each direction */
#define WHY_MAX     160
#define ALL_EVENTS  (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)
#define DEAD_MS     30000 /* what was sent and is not acknowledged by then never will be */
#define PROBE_S     30    /* a silent peer is asked whether it lives */

enum tunnel_state { TUNNEL_CONNECTING = 0, TUNNEL_SHAKING, TUNNEL_OPEN, TUNNEL_OVER };

struct end {
	struct watch watch; /* first: the loop hands it back */
	struct tunnel *tunnel;
};

struct tunnel {
	struct tunnels *all;
	struct tunnel *prev, *next;
	struct loop *loop;
	struct tls_client *tls;
	const struct dial_addresses *to;
	size_t at; /* of `to` */
	struct end plain, net;
	gnutls_session_t session;
	enum tunnel_state state;
	struct buf up;    /* from the plain end, at most one record */
	struct buf down;  /* for the plain end, at most two */
	bool half_sent;   /* a record of `up` is with the TLS library already */
	bool plain_ended; /* its half-close has come ... */
	bool bye_sent;    /* ... and was passed on */
	bool plain_gone;  /* nobody reads there any more */
	bool net_ended;   /* the service's close_notify has come, or it failed ... */
	bool told;        /* ... which was passed on */
	bool left;
	char why[WHY_MAX];
};

/* --- the end --- */

static void unlink_from(struct tunnels *all, struct tunnel *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		all->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
}

static void close_end(struct tunnel *t, struct end *e)
{
	int fd = e->watch.fd;

	loop_unwatch(t->loop, &e->watch);
	if (fd >= 0)
		close(fd);
}

static void finish(struct tunnel *t)
{
	if (t->session)
		gnutls_deinit(t->session);
	t->session = NULL;
	close_end(t, &t->plain);
	close_end(t, &t->net);
	buf_fini(&t->up);
	buf_fini(&t->down);
	unlink_from(t->all, t);
	t->state = TUNNEL_OVER;
	if (t->left)
		free(t);
}

void tunnel_leave(struct tunnel *t)
{
	if (!t)
		return;
	t->left = true;
	if (t->state == TUNNEL_OVER)
		free(t);
}

void tunnels_cut(struct tunnels *all)
{
	for (struct tunnel *t = all->first, *next; t; t = next) {
		next = t->next;
		finish(t);
	}
}

const char *tunnel_trouble(const struct tunnel *t)
{
	return t->why;
}

/* What came before is still passed on; nothing is sent any more. */
static void net_failed(struct tunnel *t, int code)
{
	if (!t->why[0])
		tls_client_why(t->session, code, t->why, sizeof(t->why));
	t->net_ended = t->plain_ended = t->bye_sent = true;
	buf_clear(&t->up);
}

static bool is_later(ssize_t code)
{
	return code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED;
}

/* --- connecting --- */

int tunnel_connect(const struct dial_addresses *to, size_t at, struct err *err)
{
	const struct sockaddr *addr = (const struct sockaddr *)&to->list[at];
	int on = 1, probe = PROBE_S;
	unsigned dead = DEAD_MS;
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(err, "make a socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe, sizeof(probe));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof(dead));
	if (connect(fd, addr, to->len[at]) < 0 && errno != EINPROGRESS) {
		err_sys(err, "connect");
		close(fd);
		return -1;
	}
	return fd;
}

static void end_ready(struct watch *w, uint32_t events);

/* The next address that can be tried at all; -1: there is none. */
static int connect_next(struct tunnel *t, struct err *err)
{
	for (; t->at < t->to->count; t->at++) {
		int fd = tunnel_connect(t->to, t->at, err);

		if (fd < 0)
			continue;
		if (loop_watch(t->loop, &t->net.watch, fd, ALL_EVENTS, end_ready, err) == 0)
			return 0;
		close(fd);
	}
	return -1;
}

/* True once there is a connection and a session on it. */
static bool settle(struct tunnel *t)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(int), peer_len = sizeof(peer);
	struct err err = {0};
	int fault = 0;

	if (getsockopt(t->net.watch.fd, SOL_SOCKET, SO_ERROR, &fault, &len) < 0)
		fault = errno;
	if (!fault && getpeername(t->net.watch.fd, (struct sockaddr *)&peer, &peer_len) < 0)
		return false; /* still on its way */
	if (fault) {
		snprintf(t->why, sizeof(t->why), "connect: %s", strerror(fault));
		close_end(t, &t->net);
		t->at++;
		if (connect_next(t, &err) < 0)
			finish(t);
		return false;
	}
	t->why[0] = '\0';
	if (tls_client_session(t->tls, t->net.watch.fd, &t->session, &err) < 0) {
		snprintf(t->why, sizeof(t->why), "%.150s", err.msg);
		finish(t);
		return false;
	}
	t->state = TUNNEL_SHAKING;
	return true;
}

static bool shake_hands(struct tunnel *t)
{
	int rc = gnutls_handshake(t->session);

	if (rc == GNUTLS_E_SUCCESS) {
		t->state = TUNNEL_OPEN;
		return true;
	}
	if (is_later(rc) || !gnutls_error_is_fatal(rc))
		return false;
	tls_client_why(t->session, rc, t->why, sizeof(t->why));
	gnutls_alert_send_appropriate(t->session, rc);
	finish(t);
	return false;
}

/* --- carrying; each says whether it moved anything --- */

static bool take_plain(struct tunnel *t)
{
	char *at;
	ssize_t n;

	if (t->plain_ended || buf_len(&t->up))
		return false;
	at = buf_reserve(&t->up, RECORD);
	n = at ? recv(t->plain.watch.fd, at, RECORD, MSG_DONTWAIT) : -1;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (n > 0)
		buf_commit(&t->up, (size_t)n);
	else
		t->plain_ended = true;
	return true;
}

static bool give_net(struct tunnel *t)
{
	struct span s = buf_span(&t->up);
	ssize_t n;

	if (!s.len)
		return false;
	n = t->half_sent ? gnutls_record_send(t->session, NULL, 0)
			 : gnutls_record_send(t->session, s.at, s.len);
	t->half_sent = n < 0 && is_later(n);
	if (t->half_sent)
		return false;
	if (n < 0)
		net_failed(t, (int)n);
	else
		buf_consume(&t->up, (size_t)n);
	return true;
}

/* The half-close, behind the last byte. */
static bool say_goodbye(struct tunnel *t)
{
	if (!t->plain_ended || t->bye_sent || buf_len(&t->up))
		return false;
	if (is_later(gnutls_bye(t->session, GNUTLS_SHUT_WR)))
		return false;
	t->bye_sent = true;
	return true;
}

/* What was read was of no interest here (a ticket, say), and more stands behind it. */
static bool net_has_more(const struct tunnel *t)
{
	char byte;

	return recv(t->net.watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static bool take_net(struct tunnel *t)
{
	char *at;
	ssize_t n;

	if (t->net_ended || buf_room(&t->down) < RECORD)
		return false;
	at = buf_reserve(&t->down, RECORD);
	n = at ? gnutls_record_recv(t->session, at, RECORD) : GNUTLS_E_MEMORY_ERROR;
	if (n < 0 && is_later(n))
		return net_has_more(t);
	if (n > 0)
		buf_commit(&t->down, (size_t)n);
	else if (n == 0)
		t->net_ended = true;
	else
		net_failed(t, (int)n); /* a request to shake hands anew is none of ours either */
	return true;
}

static bool give_plain(struct tunnel *t)
{
	struct span s = buf_span(&t->down);
	ssize_t n;

	if (t->plain_gone)
		buf_clear(&t->down);
	if (!s.len || t->plain_gone)
		return false;
	n = send(t->plain.watch.fd, s.at, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		buf_consume(&t->down, (size_t)n);
	else if (errno != EAGAIN && errno != EINTR)
		t->plain_gone = true;
	return n > 0;
}

static void pass_on_end(struct tunnel *t)
{
	if (!t->net_ended || buf_len(&t->down) || t->told)
		return;
	shutdown(t->plain.watch.fd, SHUT_WR);
	t->told = true;
}

static bool carry(struct tunnel *t)
{
	bool moved = take_plain(t);

	moved |= give_net(t);
	moved |= say_goodbye(t);
	moved |= take_net(t);
	moved |= give_plain(t);
	pass_on_end(t);
	return moved;
}

static bool is_over(const struct tunnel *t)
{
	return t->bye_sent && (t->plain_gone || t->told);
}

static void go_on(struct tunnel *t)
{
	bool moved = true;

	if (t->state == TUNNEL_CONNECTING && !settle(t))
		return;
	if (t->state == TUNNEL_SHAKING && !shake_hands(t))
		return;
	for (int i = 0; moved && i < TURN_ROUNDS; i++)
		moved = carry(t);
	if (is_over(t)) {
		finish(t);
	} else if (moved) { /* others get their turn; both edges come again */
		loop_change(t->loop, &t->plain.watch, ALL_EVENTS);
		loop_change(t->loop, &t->net.watch, ALL_EVENTS);
	}
}

static void end_ready(struct watch *w, uint32_t events)
{
	struct end *e = (struct end *)w;
	struct tunnel *t = e->tunnel;

	if (e == &t->plain && (events & EPOLLHUP)) {
		t->plain_gone = true;
		if (t->state != TUNNEL_OPEN) {
			finish(t);
			return;
		}
	}
	go_on(t);
}

/* --- the beginning --- */

static int open_ends(struct tunnel *t, int *ret_fd, struct err *err)
{
	int pair[2];

	if (io_pair(pair, err) < 0)
		return -1;
	if (io_nonblock(pair[0], err) < 0 || io_nonblock(pair[1], err) < 0 ||
	    loop_watch(t->loop, &t->plain.watch, pair[0], ALL_EVENTS, end_ready, err) < 0) {
		close(pair[0]);
		close(pair[1]);
		return -1;
	}
	*ret_fd = pair[1];
	return connect_next(t, err);
}

struct tunnel *tunnel_start(struct tunnels *all, struct loop *l, struct tls_client *tls,
			    const struct dial_addresses *to, int *ret_fd, struct err *err)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t) {
		err_sys(err, "allocate a tunnel");
		return NULL;
	}
	*t = (struct tunnel){.all = all, .next = all->first, .loop = l, .tls = tls, .to = to};
	if (t->next)
		t->next->prev = t;
	all->first = t;
	t->plain = (struct end){.watch = {.fd = -1}, .tunnel = t};
	t->net = (struct end){.watch = {.fd = -1}, .tunnel = t};
	buf_init(&t->up, RECORD);
	buf_init(&t->down, 2 * (size_t)RECORD);
	*ret_fd = -1;
	if (open_ends(t, ret_fd, err) == 0)
		return t;
	if (*ret_fd >= 0)
		close(*ret_fd);
	t->left = true;
	finish(t);
	return NULL;
}
