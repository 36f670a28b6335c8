#include "gate/resolver.h"

#include "gate/base/frame.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "proxy/resolve.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define WORKERS_MAX 512     /* connections; old ones end when their worker does */
#define ANSWER_MAX  65536   /* bytes of one answer */
#define ANSWERS_MAX 1048576 /* bytes that wait for one worker */
#define TICKET      sizeof(uint64_t)

struct resolver {
	int epoll, control;
	struct frame_conn *workers[WORKERS_MAX]; /* NULL: free */
};

static void drop(struct resolver *r, size_t i)
{
	frame_close(r->workers[i]); /* which takes it out of the loop as well */
	free(r->workers[i]);
	r->workers[i] = NULL;
}

/* For one more answer; without it questions wait until the worker has taken some. */
static bool has_room(const struct frame_conn *c)
{
	return buf_room(&c->out) >= ANSWER_MAX + 2 * TICKET;
}

static void watch(struct resolver *r, size_t i, int how)
{
	struct frame_conn *c = r->workers[i];
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = i};

	if (frame_waiting(c))
		ev.events = has_room(c) ? EPOLLIN | EPOLLOUT : EPOLLOUT;
	if (epoll_ctl(r->epoll, how, c->fd, &ev) < 0)
		drop(r, i);
}

static void add_worker(struct resolver *r, int fd)
{
	struct err err = {0};
	size_t i = 0;

	while (i < WORKERS_MAX && r->workers[i])
		i++;
	if (i == WORKERS_MAX || io_nonblock(fd, &err) < 0) {
		close(fd);
		return;
	}
	r->workers[i] = calloc(1, sizeof(*r->workers[i]));
	if (!r->workers[i]) {
		close(fd);
		return;
	}
	frame_init(r->workers[i], fd, ANSWERS_MAX);
	watch(r, i, EPOLL_CTL_ADD);
}

/* What is neither a path in its plain form nor about a pid is no question of ours. */
static bool is_question(struct span s)
{
	return s.len > 0 &&
	       (s.at[0] == '/' || span_starts(s, "pid ") || span_starts(s, "caller ")) &&
	       !memchr(s.at, '\0', s.len);
}

static bool resolve(struct span what, struct buf *out)
{
	char *path;

	if (what.at[0] == 'c') {
		resolve_caller(what, out);
		return true;
	}
	if (what.at[0] == 'p') {
		resolve_process(what, out);
		return true;
	}
	path = strndup(what.at, what.len);
	if (path)
		resolve_path(path, out);
	free(path);
	return path != NULL;
}

static bool answer(struct frame_conn *c, struct span question)
{
	struct span ticket = {question.at, TICKET}, what = span_skip(question, TICKET);
	struct buf out;
	bool fine;

	if (question.len < TICKET || !is_question(what))
		return false;
	buf_init(&out, ANSWER_MAX);
	fine = resolve(what, &out) && !buf_spent(&out) && frame_put(c, ticket, buf_span(&out));
	buf_fini(&out);
	return fine;
}

/* Answers what was asked, as long as there is room; false: the connection is to be ended. */
static bool answer_all(struct frame_conn *c)
{
	struct span question;

	for (;;) {
		if (!has_room(c) && !frame_flush(c))
			return false;
		if (!has_room(c))
			return true; /* goes on when the worker has taken some */
		if (!frame_next(c, &question))
			return frame_flush(c);
		if (!answer(c, question))
			return false;
	}
}

static void on_worker(struct resolver *r, size_t i)
{
	struct frame_conn *c = r->workers[i];
	bool alive;

	if (!c)
		return;
	alive = frame_fill(c);
	if (!answer_all(c) || !alive)
		drop(r, i);
	else
		watch(r, i, EPOLL_CTL_MOD);
}

/* False when the supervisor is gone. */
static bool on_control(struct resolver *r)
{
	int fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count;
	char tag;

	if (io_recv_fds(r->control, &tag, fds, &count, &err) <= 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (tag == 'w' && i == 0)
			add_worker(r, fds[i]);
		else
			close(fds[i]);
	return true;
}

static int serve(struct resolver *r)
{
	for (;;) {
		struct epoll_event events[32];
		int count = epoll_wait(r->epoll, events, 32, -1);

		for (int i = 0; i < count; i++)
			if (events[i].data.u64 != WORKERS_MAX)
				on_worker(r, events[i].data.u64);
			else if (!on_control(r))
				return 0;
	}
}

int resolver_run(int control)
{
	struct resolver r = {.epoll = epoll_create1(EPOLL_CLOEXEC), .control = control};
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = WORKERS_MAX};
	int status = 2;

	if (r.epoll < 0 || epoll_ctl(r.epoll, EPOLL_CTL_ADD, control, &ev) < 0)
		log_line("cannot make the event loop");
	else
		status = serve(&r);
	for (size_t i = 0; i < WORKERS_MAX; i++)
		if (r.workers[i])
			drop(&r, i);
	return status;
}
