/*
 * Callers that speak TLS.  A wire shakes hands, and then carries bytes between the
 * network and one end of a socket pair, of which the HTTP library and the relay have
 * the other: to them it is a connection like one on a unix socket.
 *
 * The library's own TLS is not used: once a connection is upgraded it forwards
 * through a pair of its own, ends both directions when one ends, and hides the
 * descriptor that the gate watches for a hang-up and writes last words to.
 *
 * A half-close of the plain end becomes close_notify and the other way round.  An end
 * of the network connection itself is the caller's hang-up: TLS has a word for "no
 * more from me", and whoever cuts a line must not be able to say it for the caller.
 */
#include "gate/base/log.h"
#include "proxy/metrics.h"
#include "proxy/worker_priv.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE       16384 /* bytes of one record */
#define TURN_PIECES 8     /* moved in one go, in one direction */
#define LINGER_MS   2000  /* for what we said last to arrive, before the connection is closed */
#define REST_TIMES  10    /* body_ms: for a caller to take the rest, once its connection is over */
#define ALL_EVENTS  (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

enum wire_state {
	WIRE_SHAKING = 0,
	WIRE_OPEN,
	WIRE_LINGERING, /* all is said; what still comes is dropped */
};

struct tls_wire {
	struct watch net; /* first */
	struct watch inner;
	struct worker *worker;
	const struct conf_listener *listener;
	struct conn *conn; /* whose it is, until either is gone */
	struct tls_session *session;
	enum wire_state state;
	int fd, inner_fd;
	char address[CONNECTION_ADDRESS_MAX];
	uint64_t since_ms;       /* of the state; WIRE_OPEN: when its connection was gone */
	struct buf pending;      /* plain bytes that the gate did not take yet: of one record */
	bool up_over, down_over; /* nothing more goes that way */
	bool sending;            /* the session holds bytes that the network did not take */
	bool saying_end;         /* ... or the word that nothing more comes */
	bool hung_up;            /* the network connection has ended on the caller's side */
	bool heard;              /* a byte has come */
	bool unfinished;         /* it was stopped in favour of others */
	struct tls_wire *prev, *next;
};

static struct log_kind refused;

#define WIRE_OF(member, ptr) ((struct tls_wire *)((char *)(ptr)-offsetof(struct tls_wire, member)))

/* --- beginning and end --- */

static void wire_end(struct tls_wire *t)
{
	struct worker *w = t->worker;

	loop_unwatch(&w->loop, &t->net);
	loop_unwatch(&w->loop, &t->inner);
	if (t->conn)
		t->conn->wire = NULL;
	if (t->prev)
		t->prev->next = t->next;
	else
		w->wires = t->next;
	if (t->next)
		t->next->prev = t->prev;
	tls_session_close(t->session);
	close(t->fd);
	if (t->inner_fd >= 0)
		close(t->inner_fd);
	buf_fini(&t->pending);
	free(t);
}

/* --- lingering --- */

static void linger(struct tls_wire *t)
{
	char dropped[PIECE];
	ssize_t n = 1;

	for (int i = 0; n > 0 && i < TURN_PIECES; i++)
		n = recv(t->fd, dropped, sizeof(dropped), MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		wire_end(t);
	else if (n > 0)
		loop_change(&t->worker->loop, &t->net, ALL_EVENTS);
}

/* Closing at once with unread input would take from the caller what was said last. */
static void begin_linger(struct tls_wire *t)
{
	t->state = WIRE_LINGERING;
	t->since_ms = t->worker->loop.now_ms;
	loop_unwatch(&t->worker->loop, &t->inner);
	if (t->inner_fd >= 0)
		close(t->inner_fd);
	t->inner_fd = -1;
	shutdown(t->fd, SHUT_WR);
	linger(t);
}

/* --- carrying --- */

/* False: the gate takes no more for now. */
static bool hand_over(struct tls_wire *t)
{
	while (buf_len(&t->pending)) {
		struct span s = buf_span(&t->pending);
		ssize_t n = send(t->inner_fd, s.at, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0) {
			t->up_over = true; /* nobody reads there any more */
			break;
		}
		buf_consume(&t->pending, (size_t)n);
	}
	buf_fini(&t->pending); /* an idle wire costs none */
	return !t->up_over;
}

/* TLS_FINE: something was moved.  TLS_AGAIN: not now.  Else the connection is broken. */
static enum tls_fault move_up(struct tls_wire *t)
{
	char plain[PIECE];
	enum tls_fault fault;
	size_t len = 0;

	if (t->up_over || !hand_over(t))
		return TLS_AGAIN;
	fault = tls_receive(t->session, plain, sizeof(plain), &len);
	if (fault == TLS_END) {
		shutdown(t->inner_fd, SHUT_WR);
		t->up_over = true;
		return TLS_AGAIN;
	}
	if (fault != TLS_FINE)
		return fault;
	buf_init(&t->pending, PIECE);
	buf_put(&t->pending, plain, len);
	if (buf_spent(&t->pending))
		return TLS_CUT;
	hand_over(t);
	return TLS_FINE;
}

static enum tls_fault say_end(struct tls_wire *t)
{
	enum tls_fault fault = tls_send_end(t->session);

	t->saying_end = fault == TLS_AGAIN;
	t->down_over = fault == TLS_FINE;
	return fault == TLS_FINE ? TLS_AGAIN : fault;
}

static enum tls_fault move_down(struct tls_wire *t)
{
	size_t most = tls_send_max(t->session);
	char plain[PIECE];
	enum tls_fault fault;
	ssize_t n;

	if (t->down_over)
		return TLS_AGAIN;
	if (t->saying_end)
		return say_end(t);
	if (t->sending) {
		fault = tls_flush(t->session);
		t->sending = fault == TLS_AGAIN;
		return fault;
	}
	n = recv(t->inner_fd, plain, most < sizeof(plain) ? most : sizeof(plain), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return TLS_AGAIN;
	if (n <= 0)
		return say_end(t);
	fault = tls_send(t->session, plain, (size_t)n);
	t->sending = fault == TLS_AGAIN;
	return fault;
}

/* Moves what can be moved, a bounded number of pieces; false: the connection is broken. */
static bool move(struct tls_wire *t, enum tls_fault (*one)(struct tls_wire *t))
{
	enum tls_fault fault = TLS_FINE;

	for (int i = 0; fault == TLS_FINE && i < TURN_PIECES; i++)
		fault = one(t);
	t->unfinished = t->unfinished || fault == TLS_FINE;
	return fault == TLS_FINE || fault == TLS_AGAIN;
}

static void carry(struct tls_wire *t)
{
	struct loop *l = &t->worker->loop;

	t->unfinished = false;
	/* A caller who said that no more comes, and then left, waits for no answer. */
	if (!move(t, move_up) || !move(t, move_down) || (t->hung_up && t->up_over)) {
		wire_end(t);
		return;
	}
	if (t->down_over && (t->up_over || t->conn == NULL)) {
		begin_linger(t);
		return;
	}
	if (t->unfinished) { /* asking again has the edges told again */
		loop_change(l, &t->net, ALL_EVENTS);
		loop_change(l, &t->inner, ALL_EVENTS);
	}
}

static void on_inner(struct watch *watch, uint32_t events)
{
	(void)events;
	carry(WIRE_OF(inner, watch));
}

/* --- the handshake --- */

static enum metric metric_of(enum tls_fault fault)
{
	switch (fault) {
	case TLS_NO_CERTIFICATE:
		return METRIC_tls_no_certificate;
	case TLS_BAD_CERTIFICATE:
		return METRIC_tls_bad_certificate;
	case TLS_EXPIRED:
		return METRIC_tls_expired;
	case TLS_VERSION:
		return METRIC_tls_version;
	case TLS_PEER_REFUSED:
		return METRIC_tls_peer_refused;
	case TLS_LATE:
		return METRIC_tls_late;
	case TLS_FINE:
	case TLS_AGAIN:
	case TLS_END:
	case TLS_CUT:
	case TLS_NO_TLS:
	case TLS_RENEGOTIATION:
	case TLS_FAULT_COUNT:
		break;
	}
	return METRIC_tls_garbage;
}

/* Whoever only looks whether the port is open leaves no record. */
static void wire_refuse(struct tls_wire *t, enum tls_fault fault)
{
	struct certificate *shown = NULL;
	struct handshake h = {.listener = t->listener->name,
			      .address = t->address,
			      .fault = fault,
			      .why = tls_session_why(t->session)};

	metrics_add(t->worker->conf->metrics, metric_of(fault), 1);
	if (t->heard) {
		shown = tls_session_shown(t->session);
		h.shown = shown ? certificate_names(shown) : NULL;
		trail_handshake(t->worker, &h);
		log_often(&refused, "listener %s: %s: %s%s%s", h.listener, t->address,
			  tls_fault_text(fault), *h.why ? ": " : "", h.why);
		certificate_free(shown);
	}
	/* So that the caller gets to read why, whatever it has sent meanwhile. */
	if (t->heard && fault != TLS_CUT)
		begin_linger(t);
	else
		wire_end(t);
}

/* From here on it is a connection. */
static void wire_open(struct tls_wire *t)
{
	struct worker *w = t->worker;
	struct err err = {0};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
		log_line("listener %s: make a pair of sockets: %s", t->listener->name,
			 strerror(errno));
		wire_end(t);
		return;
	}
	t->state = WIRE_OPEN;
	t->inner_fd = ends[0];
	metrics_add(w->conf->metrics, METRIC_tls_handshakes, 1);
	if (loop_watch(&w->loop, &t->inner, t->inner_fd, ALL_EVENTS, on_inner, &err) < 0) {
		close(ends[1]);
	} else if (connection_adopt(w, t->listener, ends[1], NULL, t, &err) == 0) {
		carry(t);
		return;
	}
	log_line("listener %s: %s", t->listener->name, err.msg);
	wire_end(t);
}

static void shake(struct tls_wire *t)
{
	enum tls_fault fault;

	/* The caller begins.  What it says must be heard before the session takes it. */
	if (!t->heard) {
		char first;
		ssize_t n = recv(t->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return;
		t->heard = n > 0;
	}
	fault = tls_handshake(t->session);
	if (fault == TLS_FINE)
		wire_open(t);
	else if (fault != TLS_AGAIN)
		wire_refuse(t, fault);
}

static void on_net(struct watch *watch, uint32_t events)
{
	struct tls_wire *t = WIRE_OF(net, watch);

	t->hung_up = t->hung_up || (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
	if (events & (EPOLLHUP | EPOLLERR) && t->state != WIRE_SHAKING) {
		wire_end(t);
		return;
	}
	switch (t->state) {
	case WIRE_SHAKING:
		shake(t);
		break;
	case WIRE_OPEN:
		carry(t);
		break;
	case WIRE_LINGERING:
		linger(t);
		break;
	}
}

/* --- what the rest of the worker asks --- */

int tls_wire_accept(struct listener *l, int fd, struct err *err)
{
	struct worker *w = l->worker;
	struct tls_wire *t = calloc(1, sizeof(*t));

	if (!t) {
		close(fd);
		return err_sys(err, "allocate a connection");
	}
	*t = (struct tls_wire){.net = {.fd = -1},
			       .inner = {.fd = -1},
			       .worker = w,
			       .listener = l->conf,
			       .fd = fd,
			       .inner_fd = -1,
			       .since_ms = w->loop.now_ms};
	buf_init(&t->pending, PIECE);
	connection_address(fd, t->address);
	t->next = w->wires;
	if (t->next)
		t->next->prev = t;
	w->wires = t;
	t->session = tls_session_open(l->tls, fd);
	if (!t->session)
		err_set(err, ERR_SYSTEM, "the TLS library has no memory");
	else if (loop_watch(&w->loop, &t->net, fd, ALL_EVENTS, on_net, err) == 0)
		return 0;
	wire_end(t);
	return -1;
}

void tls_wire_count(const struct worker *w, const struct conf_listener *l, const char *address,
		    struct wire_count *ret)
{
	*ret = (struct wire_count){.all = 0};
	for (const struct tls_wire *t = w->wires; t; t = t->next) {
		bool same = t->listener == l && strcmp(t->address, address) == 0;

		if (t->conn)
			continue;
		ret->all++;
		ret->own += same;
		ret->shaking += t->state == WIRE_SHAKING;
		ret->own_shaking += same && t->state == WIRE_SHAKING;
	}
}

void tls_wire_join(struct tls_wire *t, struct conn *c)
{
	t->conn = c;
	c->wire = t;
	memcpy(c->address, t->address, sizeof(c->address));
	if (c->listener->looks_inside)
		connection_own_address(t->fd, c->own_address);
	c->certificate = tls_session_genuine(t->session);
}

void tls_wire_leave(struct tls_wire *t)
{
	t->conn = NULL;
	t->since_ms = t->worker->loop.now_ms;
}

bool tls_wire_has_input(const struct tls_wire *t)
{
	char byte;

	return buf_len(&t->pending) || recv(t->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Of a connection that is there the worker itself has the time. */
static void wire_tick(struct tls_wire *t)
{
	const struct conf_limits *limits = &t->worker->conf->limits;
	uint64_t passed = t->worker->loop.now_ms - t->since_ms;

	switch (t->state) {
	case WIRE_SHAKING:
		if (passed > limits->head_ms)
			wire_refuse(t, TLS_LATE);
		break;
	case WIRE_OPEN:
		if (!t->conn && passed > (uint64_t)REST_TIMES * limits->body_ms)
			wire_end(t);
		break;
	case WIRE_LINGERING:
		if (passed > LINGER_MS)
			wire_end(t);
		break;
	}
}

void tls_wire_tick(struct worker *w)
{
	for (struct tls_wire *t = w->wires, *next; t; t = next) {
		next = t->next;
		wire_tick(t);
	}
}

void tls_wire_close_all(struct worker *w)
{
	for (struct tls_wire *t = w->wires, *next; t; t = next) {
		next = t->next;
		wire_end(t);
	}
}
