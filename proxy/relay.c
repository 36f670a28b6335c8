#include "proxy/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE       65536 /* bytes in one splice */
#define TURN_PIECES 8     /* moved in one go, in one direction */

/* One direction: from -> (early bytes, then the pipe) -> to. */
struct flow {
	struct buf early;
	int pipe[2];
	size_t in_pipe; /* bytes */
	uint64_t total;
	bool from_ended; /* end of file, or an error, on the reading side */
	bool closed;     /* the half-close was passed on: this direction is over */
	bool to_broken;  /* nobody reads there any more */
	bool unfinished; /* it was stopped in favour of others; there may be more */
};

struct side {
	struct watch watch; /* first: the loop hands it back */
	struct relay *relay;
	uint64_t gone_ms; /* when it was found to have hung up altogether; 0: it has not */
};

struct relay {
	struct loop *loop;
	struct side caller, service;
	struct flow up;   /* caller to service */
	struct flow down; /* service to caller */
	relay_done_fn *done;
	void *arg;
};

static void flow_fini(struct flow *f)
{
	buf_fini(&f->early);
	for (int i = 0; i < 2; i++)
		if (f->pipe[i] >= 0)
			close(f->pipe[i]);
	f->pipe[0] = f->pipe[1] = -1;
}

void relay_stop(struct relay *r)
{
	int service_fd = r->service.watch.fd;

	loop_unwatch(r->loop, &r->caller.watch);
	loop_unwatch(r->loop, &r->service.watch);
	if (service_fd >= 0)
		close(service_fd);
	flow_fini(&r->up);
	flow_fini(&r->down);
	free(r);
}

/* False when the receiver takes no more for now. */
static bool send_early(struct flow *f, int to)
{
	while (buf_len(&f->early)) {
		struct span s = buf_span(&f->early);
		ssize_t n = send(to, s.at, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0) {
			f->to_broken = true;
			return false;
		}
		f->total += (uint64_t)n;
		buf_consume(&f->early, (size_t)n);
	}
	return true;
}

static bool fill_pipe(struct flow *f, int from)
{
	ssize_t n;

	if (f->from_ended || f->in_pipe >= PIECE)
		return false;
	n = splice(from, NULL, f->pipe[1], NULL, PIECE - f->in_pipe,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0)
		f->from_ended = errno != EAGAIN && errno != EINTR;
	else if (n == 0)
		f->from_ended = true;
	else
		f->in_pipe += (size_t)n;
	return n > 0 || (n < 0 && errno == EINTR);
}

static bool drain_pipe(struct flow *f, int to)
{
	ssize_t n;

	if (!f->in_pipe)
		return false;
	n = splice(f->pipe[0], NULL, to, NULL, f->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n <= 0) {
		f->to_broken = n < 0 && errno != EAGAIN && errno != EINTR;
		return false;
	}
	f->in_pipe -= (size_t)n;
	f->total += (uint64_t)n;
	return true;
}

/* Moves what can be moved, a bounded number of pieces so that others get their turn. */
static void flow_move(struct flow *f, int from, int to)
{
	f->unfinished = !f->closed && send_early(f, to);
	for (int i = 0; f->unfinished && i < TURN_PIECES; i++) {
		bool in = fill_pipe(f, from), out = drain_pipe(f, to);

		f->unfinished = (in || out) && !f->to_broken;
	}
	if (f->closed)
		return;
	if (f->to_broken || (f->from_ended && !f->in_pipe && !buf_len(&f->early))) {
		shutdown(to, SHUT_WR);
		f->closed = true;
	}
}

/*
 * Edge-triggered, so that a half-close or a hang-up that is known is not told
 * again and again; asking again tells it again, so that needs a reason.
 */
static void ask(struct relay *r, struct watch *w, uint32_t events)
{
	if (events != w->events || r->up.unfinished || r->down.unfinished)
		loop_change(r->loop, w, events);
}

static void set_interest(struct relay *r)
{
	uint32_t caller = EPOLLRDHUP, service = EPOLLRDHUP;

	if (!r->up.closed && !r->up.from_ended && r->up.in_pipe < PIECE)
		caller |= EPOLLIN;
	if (!r->down.closed && (r->down.in_pipe || buf_len(&r->down.early)))
		caller |= EPOLLOUT;
	if (!r->down.closed && !r->down.from_ended && r->down.in_pipe < PIECE)
		service |= EPOLLIN;
	if (!r->up.closed && (r->up.in_pipe || buf_len(&r->up.early)))
		service |= EPOLLOUT;
	ask(r, &r->caller.watch, caller | EPOLLET);
	ask(r, &r->service.watch, service | EPOLLET);
}

/*
 * Over when both directions are, or when one peer is gone: what it sent before
 * has been passed on (its direction is closed), and nobody reads the other.
 */
static bool is_over(const struct relay *r)
{
	if (r->up.closed && r->down.closed)
		return true;
	return (r->caller.gone_ms && r->up.closed) || (r->service.gone_ms && r->down.closed);
}

static void finish(struct relay *r)
{
	relay_done_fn *done = r->done;
	void *arg = r->arg;
	uint64_t up = r->up.total, down = r->down.total;

	relay_stop(r);
	done(arg, up, down);
}

static void side_ready(struct watch *w, uint32_t events)
{
	struct side *side = (struct side *)w;
	struct relay *r = side->relay;

	if ((events & (EPOLLHUP | EPOLLERR)) && !side->gone_ms)
		side->gone_ms = r->loop->now_ms;
	flow_move(&r->up, r->caller.watch.fd, r->service.watch.fd);
	flow_move(&r->down, r->service.watch.fd, r->caller.watch.fd);
	if (is_over(r))
		finish(r);
	else
		set_interest(r);
}

bool relay_expire(struct relay *r, uint64_t now_ms)
{
	if (!r->caller.gone_ms || now_ms - r->caller.gone_ms < RELAY_LINGER_MS)
		return false;
	finish(r);
	return true;
}

static int flow_init(struct flow *f, struct buf *early, struct err *err)
{
	f->early = *early;
	buf_init(early, early->cap);
	if (pipe2(f->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		f->pipe[0] = f->pipe[1] = -1;
		return err_sys(err, "make a pipe");
	}
	return 0;
}

struct relay *relay_start(struct loop *l, int caller_fd, struct buf *early_caller, int service_fd,
			  struct buf *early_service, relay_done_fn *done, void *arg,
			  struct err *err)
{
	struct relay *r = calloc(1, sizeof(*r));

	if (!r) {
		err_sys(err, "allocate a relay");
		close(service_fd);
		return NULL;
	}
	r->loop = l;
	r->done = done;
	r->arg = arg;
	r->caller = (struct side){.watch = {.fd = -1}, .relay = r};
	r->service = (struct side){.watch = {.fd = -1}, .relay = r};
	r->up.pipe[0] = r->up.pipe[1] = r->down.pipe[0] = r->down.pipe[1] = -1;
	/* Both edges come at once for what is there already, and start the flows. */
	if (loop_watch(l, &r->service.watch, service_fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		       side_ready, err) < 0)
		close(service_fd);
	else if (loop_watch(l, &r->caller.watch, caller_fd,
			    EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, side_ready, err) == 0 &&
		 flow_init(&r->up, early_caller, err) == 0 &&
		 flow_init(&r->down, early_service, err) == 0)
		return r;
	relay_stop(r);
	return NULL;
}
