/* output.c - what a first command has written, for logs and for those that are attached. */
#include "gate/base/auto.h"
#include "gate/keeper/state_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_MAX 32768

void frame_head(char out[FRAME_HEAD], int stream, size_t len)
{
	memset(out, 0, FRAME_HEAD);
	out[0] = (char)stream;
	for (int i = 0; i < 4; i++)
		out[4 + i] = (char)(len >> (24 - 8 * i));
}

static size_t frame_size(const char *at)
{
	size_t len = 0;

	for (int i = 4; i < FRAME_HEAD; i++)
		len = len << 8 | (unsigned char)at[i];
	return FRAME_HEAD + len;
}

/* The oldest frames go, but for what somebody who is attached has not had. */
size_t output_room(const struct container *c)
{
	const struct output *o = &c->output;
	uint64_t end = o->begin + buf_len(&o->frames), held = 0;

	for (const struct attached *a = c->attached; a; a = a->next)
		if (end - a->at > held)
			held = end - a->at;
	if (held + FRAME_HEAD >= o->frames.cap)
		return 0;
	return o->frames.cap - (size_t)held - FRAME_HEAD;
}

void output_put(struct container *c, int stream, struct span text)
{
	struct output *o = &c->output;
	char head[FRAME_HEAD];

	while (buf_len(&o->frames) && buf_room(&o->frames) < FRAME_HEAD + text.len) {
		size_t n = frame_size(buf_span(&o->frames).at);

		buf_consume(&o->frames, n);
		o->begin += n;
	}
	frame_head(head, stream, text.len);
	buf_put(&o->frames, head, sizeof(head));
	buf_put(&o->frames, text.at, text.len);
}

/* --- somebody who reads it --- */

struct reader {
	struct call *call;
	struct container *c;
	struct watcher watcher;
	struct attached place;
	bool wants[3];
	bool follows, attached;
	struct buf out; /* what is to be sent */
	struct buf in;  /* what is to be written to the command */
	bool in_over;
};

/* The next frame, with or without its head; false: there is none now. */
static bool take_frame(struct reader *r)
{
	struct output *o = &r->c->output;
	struct span rest, frame;

	if (r->place.at < o->begin)
		r->place.at = o->begin;
	rest = span_skip(buf_span(&o->frames), (size_t)(r->place.at - o->begin));
	if (!rest.len)
		return false;
	frame = (struct span){rest.at, frame_size(rest.at)};
	r->place.at += frame.len;
	if (!r->wants[(unsigned char)frame.at[0] % 3])
		return true;
	if (r->c->plan.tty)
		frame = span_skip(frame, FRAME_HEAD);
	buf_put(&r->out, frame.at, frame.len);
	return true;
}

/* Fills `out` with some of it. False: nothing more will come. */
static bool gather(struct reader *r)
{
	struct keeper *k = r->call->k;
	bool more = true, took = false;

	pthread_mutex_lock(&k->lock);
	while (buf_len(&r->out) < PIECE_MAX && take_frame(r))
		took = true;
	if (!buf_len(&r->out))
		more = r->follows && !r->c->output.over && r->c->stage != STAGE_GONE;
	if (r->attached && took)
		state_poke(k); /* there may be room now */
	pthread_mutex_unlock(&k->lock);
	return more || buf_len(&r->out);
}

static struct reader *make_reader(struct call *call, struct container *c, bool follows)
{
	struct reader *r = arena_take(call->r->arena, sizeof(*r));

	if (!r)
		return NULL;
	r->call = call;
	r->c = c;
	r->follows = follows;
	r->wants[1] = query_true(call, "stdout");
	r->wants[2] = query_true(call, "stderr");
	buf_init(&r->out, c->output.frames.cap + PIECE_MAX);
	buf_init(&r->in, 65536);
	return state_watch(call->k, &r->watcher) ? r : NULL;
}

static void detach(const struct reader *r)
{
	struct attached **at = &r->c->attached;

	while (*at != &r->place)
		at = &(*at)->next;
	*at = r->place.next;
}

static void end_reader(struct reader *r)
{
	struct keeper *k = r->call->k;

	state_unwatch(k, &r->watcher);
	pthread_mutex_lock(&k->lock);
	if (r->attached)
		detach(r);
	state_changed(k);
	state_drop(k, r->c);
	pthread_mutex_unlock(&k->lock);
	buf_fini(&r->out);
	buf_fini(&r->in);
}

/* --- logs --- */

static ssize_t more_logs(struct httpd_request *req, char *at, size_t room)
{
	struct reader *r = call_of(req)->user;
	struct span have;

	for (;;) {
		struct pollfd fds[2] = {{.fd = r->watcher.fd, .events = POLLIN},
					{.fd = req->fd, .events = POLLRDHUP}};

		state_drain(&r->watcher);
		if (!buf_len(&r->out) && !gather(r))
			return 0;
		have = buf_span(&r->out);
		if (have.len)
			break;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -1;
		if (fds[1].revents)
			return -1;
	}
	if (have.len > room)
		have.len = room;
	memcpy(at, have.at, have.len);
	buf_consume(&r->out, have.len);
	return (ssize_t)have.len;
}

static void end_logs(struct call *call)
{
	end_reader(call->user);
}

static const char *stream_type(const struct container *c)
{
	return c->plan.tty ? "application/vnd.docker.raw-stream"
			   : "application/vnd.docker.multiplexed-stream";
}

void route_logs(struct call *call)
{
	struct container *c = call_container(call);
	struct reader *r;

	if (!c)
		return;
	r = make_reader(call, c, query_true(call, "follow"));
	if (!r) {
		call_release(call, c);
		say(call, 503, "no memory");
		return;
	}
	call->user = r;
	call->user_done = end_logs;
	httpd_reply_stream(call->r, 200, stream_type(c), -1, more_logs);
}

/* --- attach --- */

static void close_input(struct reader *r)
{
	struct container *c = r->c;

	pthread_mutex_lock(&r->call->k->lock);
	if (c->to_first >= 0 && !c->plan.tty) {
		close(c->to_first);
		c->to_first = -1;
	}
	pthread_mutex_unlock(&r->call->k->lock);
}

static int input_of(struct reader *r)
{
	int fd;

	pthread_mutex_lock(&r->call->k->lock);
	fd = r->c->to_first >= 0 ? fcntl(r->c->to_first, F_DUPFD_CLOEXEC, 3) : -1;
	pthread_mutex_unlock(&r->call->k->lock);
	return fd;
}

static bool send_some(struct reader *r, int fd)
{
	struct span s = buf_span(&r->out);
	ssize_t n = send(fd, s.at, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		buf_consume(&r->out, (size_t)n);
	return n > 0 || errno == EAGAIN || errno == EINTR;
}

/* False: the connection is gone. */
static bool take_input(struct reader *r, int fd)
{
	char *at = buf_reserve(&r->in, 16384);
	ssize_t n = at ? recv(fd, at, 16384, MSG_DONTWAIT) : -1;

	if (n > 0)
		buf_commit(&r->in, (size_t)n);
	if (n == 0)
		r->in_over = true;
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static void give_input(struct reader *r, int to)
{
	struct span s = buf_span(&r->in);
	ssize_t n = write(to, s.at, s.len);

	if (n > 0)
		buf_consume(&r->in, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		buf_clear(&r->in); /* it reads no more */
}

/* What the caller has sent goes to the command, once there is one; *to: its input, or -1. */
static void end_input(struct reader *r, int *to, bool *closed)
{
	if (*to < 0 && !*closed) /* who attaches comes before the start */
		*to = input_of(r);
	if (!r->in_over || buf_len(&r->in) || *closed || *to < 0)
		return;
	close_input(r);
	close(*to);
	*to = -1;
	*closed = true;
}

/* False: the connection is gone. */
static bool on_caller(struct reader *r, int fd, short got)
{
	bool alive = true;

	if (got & POLLIN)
		alive = take_input(r, fd);
	if (alive && (got & POLLOUT))
		alive = send_some(r, fd);
	return alive && !(got & (POLLERR | POLLHUP));
}

static bool turn(struct reader *r, int fd, int to)
{
	struct pollfd fds[3] = {{.fd = fd},
				{.fd = r->watcher.fd, .events = POLLIN},
				{.fd = buf_len(&r->in) ? to : -1, .events = POLLOUT}};

	if (buf_len(&r->out))
		fds[0].events |= POLLOUT;
	if (!r->in_over && !buf_len(&r->in))
		fds[0].events |= POLLIN;
	if (poll(fds, 3, -1) < 0)
		return errno == EINTR;
	if (fds[2].revents)
		give_input(r, to);
	return on_caller(r, fd, fds[0].revents);
}

static void talk_attached(struct httpd_request *req, struct span extra)
{
	struct reader *r = call_of(req)->user;
	bool closed = !query_true(r->call, "stdin");
	auto_fd int to = -1;

	buf_put(&r->in, extra.at, extra.len);
	do {
		state_drain(&r->watcher);
		end_input(r, &to, &closed);
		if (closed)
			buf_clear(&r->in);
		if (!buf_len(&r->out) && !gather(r))
			break;
	} while (turn(r, req->fd, to));
}

void route_attach(struct call *call)
{
	struct container *c = call_container(call);
	struct reader *r;

	if (!c)
		return;
	r = make_reader(call, c, true);
	if (!r) {
		call_release(call, c);
		say(call, 503, "no memory");
		return;
	}
	pthread_mutex_lock(&call->k->lock);
	r->place.at = c->output.begin;
	if (!query_true(call, "logs"))
		r->place.at += buf_len(&c->output.frames);
	r->place.next = c->attached;
	c->attached = &r->place;
	r->attached = true;
	pthread_mutex_unlock(&call->k->lock);
	call->user = r;
	call->user_done = end_logs;
	httpd_reply_upgrade(call->r, "tcp", stream_type(c), talk_attached);
}

void route_resize(struct call *call)
{
	struct container *c = call_container(call);
	const char *h = httpd_query(call->r, "h"), *w = httpd_query(call->r, "w");
	struct winsize size = {.ws_row = (unsigned short)(h ? strtoul(h, NULL, 10) : 0),
			       .ws_col = (unsigned short)(w ? strtoul(w, NULL, 10) : 0)};

	if (!c)
		return;
	pthread_mutex_lock(&call->k->lock);
	if (c->plan.tty && c->from_first[0] >= 0)
		ioctl(c->from_first[0], TIOCSWINSZ, &size);
	pthread_mutex_unlock(&call->k->lock);
	call_release(call, c);
	say_nothing(call, 200);
}
