/*
 * talk.c - a command's input and output over a connection.
 *
 * Push-back both ways: output is read only when the connection has taken what came before, input
 * only when the command has. Once the command has ended, what it wrote is sent to its end; what
 * processes that it left behind write is not waited for.
 */
#include "gate/base/auto.h"
#include "gate/keeper/state_priv.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 32768

struct talk {
	struct call *call;
	struct exec *e;
	int to, from[2]; /* to the command; its output, its errors */
	struct buf out, in;
	bool in_over; /* the caller has said all */
	bool ended;   /* the command has */
	bool unheard; /* the caller is gone: what is written goes nowhere */
};

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- pieces --- */

/* One read of what the command has written. False: nothing is there now, or no more will be. */
static bool take_output(struct talk *t, int which)
{
	char head[FRAME_HEAD], *at;
	size_t lead = t->e->tty ? 0 : FRAME_HEAD;
	ssize_t n;

	if (t->from[which] < 0)
		return false;
	at = buf_reserve(&t->out, lead + PIECE);
	n = at ? read(t->from[which], at + lead, PIECE) : -1;
	if (n < 0 && at && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) { /* a terminal ends with an error */
		close_one(&t->from[which]);
		return false;
	}
	if (t->unheard)
		return true;
	if (lead) {
		frame_head(head, which + 1, (size_t)n);
		memcpy(at, head, lead);
	}
	buf_commit(&t->out, lead + (size_t)n);
	return true;
}

/* After its end: what is in the pipes now is all that counts. */
static bool is_over(struct talk *t)
{
	if (!t->ended || buf_len(&t->out))
		return false;
	return t->unheard || !(take_output(t, 0) || take_output(t, 1));
}

static void give_input(struct talk *t)
{
	struct span s = buf_span(&t->in);
	ssize_t n = s.len ? write(t->to, s.at, s.len) : 0;

	if (n > 0)
		buf_consume(&t->in, (size_t)n);
	if (n < 0 && errno != EAGAIN && errno != EINTR) { /* it reads no more */
		buf_clear(&t->in);
		close_one(&t->to);
	}
}

/* A terminal has no end of input but the one that is typed. */
static void end_input(struct talk *t)
{
	if (t->in_over && !buf_len(&t->in))
		close_one(&t->to);
}

static void take_input(struct talk *t, int fd)
{
	char *at = buf_reserve(&t->in, PIECE);
	ssize_t n = at ? recv(fd, at, PIECE, MSG_DONTWAIT) : -1;

	if (n > 0)
		buf_commit(&t->in, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		t->in_over = true;
	if (t->to < 0)
		buf_clear(&t->in);
}

static void send_output(struct talk *t, int fd)
{
	struct span s = buf_span(&t->out);
	ssize_t n = send(fd, s.at, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0) {
		buf_consume(&t->out, (size_t)n);
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		t->unheard = true;
		t->in_over = true;
		buf_clear(&t->out);
	}
}

/* --- the loop --- */

struct waiting {
	struct pollfd fds[5]; /* connection, end, output, errors, input */
};

static void prepare(const struct talk *t, int connection, struct waiting *w)
{
	bool room = !buf_len(&t->out);

	*w = (struct waiting){.fds = {
				      {.fd = t->unheard ? -1 : connection},
				      {.fd = t->ended ? -1 : t->e->ended, .events = POLLIN},
				      {.fd = room ? t->from[0] : -1, .events = POLLIN},
				      {.fd = room ? t->from[1] : -1, .events = POLLIN},
				      {.fd = buf_len(&t->in) ? t->to : -1, .events = POLLOUT},
			      }};
	if (buf_len(&t->out))
		w->fds[0].events |= POLLOUT;
	if (!t->in_over && !buf_len(&t->in))
		w->fds[0].events |= POLLIN;
}

static void on_connection(struct talk *t, int fd, short got)
{
	if ((got & POLLIN) || (!t->in_over && (got & POLLHUP)))
		take_input(t, fd);
	if (got & POLLOUT)
		send_output(t, fd);
	if (got & (POLLERR | POLLHUP)) { /* gone both ways */
		t->unheard = t->in_over = true;
		buf_clear(&t->out);
	}
}

static void turn(struct talk *t, int connection)
{
	struct waiting w;

	prepare(t, connection, &w);
	if (poll(w.fds, 5, -1) < 0)
		return;
	if (w.fds[0].revents)
		on_connection(t, connection, w.fds[0].revents);
	if (w.fds[1].revents)
		t->ended = true;
	if (w.fds[2].revents)
		take_output(t, 0);
	if (w.fds[3].revents)
		take_output(t, 1);
	if (w.fds[4].revents)
		give_input(t);
	end_input(t);
}

static void talk_upgraded(struct httpd_request *r, struct span extra)
{
	struct talk *t = call_of(r)->user;

	buf_put(&t->in, extra.at, extra.len);
	while (!is_over(t))
		turn(t, r->fd);
	shutdown(r->fd, SHUT_WR);
}

/* Without an upgrade there is output alone, and MHD sends it. */
static ssize_t talk_streamed(struct httpd_request *r, char *at, size_t room)
{
	struct talk *t = call_of(r)->user;
	struct span have;

	while (!buf_len(&t->out)) {
		struct waiting w;

		if (is_over(t))
			return 0;
		if (buf_len(&t->out))
			break;
		prepare(t, r->fd, &w);
		w.fds[0].events = POLLRDHUP;
		if (poll(w.fds, 4, -1) < 0 && errno != EINTR)
			return -1;
		if (w.fds[0].revents & (POLLRDHUP | POLLHUP | POLLERR))
			return -1;
		t->ended = t->ended || w.fds[1].revents;
		if (w.fds[2].revents)
			take_output(t, 0);
		if (w.fds[3].revents && !buf_len(&t->out))
			take_output(t, 1);
	}
	have = buf_span(&t->out);
	if (have.len > room)
		have.len = room;
	memcpy(at, have.at, have.len);
	buf_consume(&t->out, have.len);
	return (ssize_t)have.len;
}

static void talk_done(struct call *call)
{
	struct talk *t = call->user;

	close_one(&t->to);
	close_one(&t->from[0]);
	close_one(&t->from[1]);
	buf_fini(&t->out);
	buf_fini(&t->in);
	call_release_exec(call, t->e);
}

void talk_begin(struct call *call, struct exec *e, int ours[3], bool upgrade)
{
	const char *type = e->tty ? "application/vnd.docker.raw-stream"
				  : "application/vnd.docker.multiplexed-stream";
	struct talk *t = arena_take(call->r->arena, sizeof(*t));

	if (!t) {
		for (int i = 0; i < 3; i++)
			close_one(&ours[i]);
		call_release_exec(call, e);
		say(call, 503, "no memory");
		return;
	}
	*t = (struct talk){.call = call, .e = e, .to = ours[0], .from = {ours[1], ours[2]}};
	buf_init(&t->out, (size_t)4 * (PIECE + FRAME_HEAD));
	buf_init(&t->in, (size_t)4 * PIECE);
	call->user = t;
	call->user_done = talk_done;
	if (upgrade) {
		httpd_reply_upgrade(call->r, "tcp", type, talk_upgraded);
		return;
	}
	close_one(&t->to);
	t->in_over = true;
	httpd_reply_stream(call->r, 200, type, -1, talk_streamed);
}
