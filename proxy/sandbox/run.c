#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLOW_MAX (512u << 10) /* output that waits for its reader */
#define READ_MAX 65536u
#define CUT_MS   5000 /* what was cut has that long to say how it ended */

struct run *run_create(struct sandboxes *s, struct box *b, int64_t output)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->s = s;
	r->box = b;
	r->fd = -1;
	r->refs = 1;
	r->started = (int64_t)(clock_unix_ns() / 1000000000);
	r->began_ms = clock_boot_ms();
	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	table_id(r->id, "exe-", EXEC_ID_LEN - 4);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	buf_init(&r->in, STDIN_QUEUE_MAX + FRAME_DATA_MAX + 64);
	/* Many small pieces take more than they hold; what does not fit is cut, and said to be. */
	buf_init(&r->out, (size_t)output * 2 + 2 * READ_MAX);
	if (r->wake >= 0)
		return r;
	run_unref(r);
	return NULL;
}

static void run_free(struct run *r)
{
	if (r->fd >= 0)
		close(r->fd);
	if (r->wake >= 0)
		close(r->wake);
	buf_fini(&r->in);
	buf_fini(&r->out);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void run_forget_output(struct run *r)
{
	pthread_mutex_lock(&r->lock);
	if (r->state != RUN_RUNNING) {
		r->s->kept_bytes -= r->out.size;
		buf_fini(&r->out);
		r->forgotten = true;
	}
	pthread_mutex_unlock(&r->lock);
}

void run_unref_locked(struct run *r)
{
	if (--r->refs)
		return;
	if (r->state != RUN_RUNNING)
		r->s->kept_bytes -= r->out.size;
	run_free(r);
}

void run_unref(struct run *r)
{
	struct sandboxes *s = r->s;

	pthread_mutex_lock(&s->lock);
	run_unref_locked(r);
	pthread_mutex_unlock(&s->lock);
}

/* --- what comes --- */

static void put_chunk(struct run *r, enum frame_type type, struct span data)
{
	unsigned char head[CHUNK_HEAD] = {(unsigned char)type};
	uint32_t len = (uint32_t)data.len;

	if (buf_room(&r->out) < sizeof(head) + data.len) {
		r->truncated = true;
		return;
	}
	memcpy(head + 1, &len, sizeof(len));
	buf_put(&r->out, head, sizeof(head));
	buf_put(&r->out, data.at, data.len);
}

static void on_output(void *arg, enum frame_type type, struct span data)
{
	struct run *r = arg;

	pthread_mutex_lock(&r->lock);
	put_chunk(r, type, data);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static void copy_text(char *out, size_t size, const struct jv *v)
{
	size_t n = v && v->kind == JV_STRING ? v->str.len : 0;

	n = n < size - 1 ? n : size - 1;
	if (n)
		memcpy(out, v->str.at, n);
	out[n] = '\0';
}

/* The lock is held. */
static void read_end(struct run *r)
{
	struct arena *a = arena_create(65536);
	enum jv_fault fault;
	struct err err = {0};
	struct jv end;

	if (!a ||
	    jv_parse(a, (struct span){r->stream.end, r->stream.end_len}, &end, &fault, &err) < 0) {
		r->state = RUN_LOST;
		arena_destroy(a);
		return;
	}
	r->state = RUN_ENDED;
	r->code = (int)jv_num(&end, "code", 0);
	r->signal = (int)jv_num(&end, "signal", 0);
	r->timed_out = jv_true(&end, "timed_out");
	r->truncated = r->truncated || jv_true(&end, "truncated");
	r->failed = jv_get(&end, "error") != NULL;
	copy_text(r->error, sizeof(r->error), jv_get(&end, "error"));
	copy_text(r->message, sizeof(r->message), jv_get(&end, "message"));
	arena_destroy(a);
}

/* Nothing more will come.  Output that was kept stays. */
static void finish(struct run *r)
{
	struct sandboxes *s = r->s;
	struct box *b;

	pthread_mutex_lock(&r->lock);
	if (r->stream.over) {
		read_end(r);
	} else if (r->killed) {
		r->state = RUN_ENDED;
		r->signal = SIGKILL;
		r->code = 128 + SIGKILL;
	} else {
		r->state = RUN_LOST;
		snprintf(r->message, sizeof(r->message), "%.250s", r->stream.said);
	}
	r->ended_ms = clock_boot_ms();
	close(r->fd);
	r->fd = -1;
	buf_fini(&r->in);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_mutex_lock(&s->lock);
	b = r->box;
	b->running--;
	s->kept_bytes += r->out.size;
	table_trim(s);
	pthread_mutex_unlock(&s->lock);
	table_touch(s, b);
}

/* False: that was all. */
static bool receive(struct run *r)
{
	char got[READ_MAX];
	ssize_t n = recv(r->fd, got, sizeof(got), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	stream_feed(&r->stream, (struct span){got, (size_t)n}, on_output, r);
	return !r->stream.over && !r->stream.bad;
}

void run_attach(struct run *r, int fd, struct span early)
{
	r->fd = fd;
	if (early.len)
		stream_feed(&r->stream, early, on_output, r);
}

/* --- what is sent --- */

/* The lock is held. */
static void put_frame(struct run *r, enum frame_type type, struct span data)
{
	uint8_t head[FRAME_HEAD];

	frame_head(head, type, (uint32_t)data.len);
	buf_put(&r->in, head, sizeof(head));
	buf_put(&r->in, data.at, data.len);
}

static void wake(const struct run *r)
{
	uint64_t one = 1;

	if (write(r->wake, &one, sizeof(one)) < 0)
		return; /* it is awake already */
}

static void until(struct timespec *at, int ms)
{
	clock_gettime(CLOCK_REALTIME, at);
	at->tv_sec += ms / 1000;
	at->tv_nsec += (long)(ms % 1000) * 1000000;
	at->tv_sec += at->tv_nsec / 1000000000;
	at->tv_nsec %= 1000000000;
}

bool run_send(struct run *r, enum frame_type type, struct span data, int wait_ms)
{
	struct timespec at;
	bool sent = false;

	until(&at, wait_ms);
	pthread_mutex_lock(&r->lock);
	while (r->state == RUN_RUNNING && !r->cut && buf_len(&r->in) >= STDIN_QUEUE_MAX)
		if (wait_ms <= 0 || pthread_cond_timedwait(&r->changed, &r->lock, &at) == ETIMEDOUT)
			break;
	if (r->state == RUN_RUNNING && !r->cut && buf_len(&r->in) < STDIN_QUEUE_MAX &&
	    !(r->in_over && (type == FRAME_STDIN || type == FRAME_STDIN_END))) {
		put_frame(r, type, data);
		r->in_over = r->in_over || type == FRAME_STDIN_END;
		sent = true;
	}
	pthread_mutex_unlock(&r->lock);
	if (sent)
		wake(r);
	return sent;
}

/* False: the other side takes nothing any more. */
static bool send_some(struct run *r)
{
	struct span left;
	ssize_t n = 0;

	pthread_mutex_lock(&r->lock);
	left = buf_span(&r->in);
	if (left.len && !r->cut)
		n = send(r->fd, left.at, left.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0) {
		buf_consume(&r->in, (size_t)n);
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* What runs is killed with all that it has started: `inside` sees that the gate is gone. */
void run_cut(struct run *r)
{
	pthread_mutex_lock(&r->lock);
	if (r->state == RUN_RUNNING && !r->cut) {
		r->cut = true;
		r->deadline_ms = clock_boot_ms() + CUT_MS;
		if (r->fd >= 0)
			shutdown(r->fd, SHUT_WR);
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	wake(r);
}

/* --- pumping --- */

struct wants {
	bool to_send, to_read;
	uint64_t deadline_ms;
};

static struct wants look(struct run *r)
{
	struct wants w;

	pthread_mutex_lock(&r->lock);
	w.to_send = buf_len(&r->in) && !r->cut;
	w.to_read = !r->flows || buf_len(&r->out) < FLOW_MAX || r->cut;
	w.deadline_ms = r->deadline_ms;
	pthread_mutex_unlock(&r->lock);
	return w;
}

static bool has_hung_up(const struct pollfd *p)
{
	return p->fd >= 0 && (p->revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) > 0)
		;
}

bool run_step(struct run *r, int caller_fd, int timeout_ms)
{
	struct wants w = look(r);
	uint64_t now = clock_boot_ms();
	struct pollfd p[3] = {
		{.fd = r->fd,
		 .events = (short)((w.to_read ? POLLIN : 0) | (w.to_send ? POLLOUT : 0))},
		{.fd = r->wake, .events = POLLIN},
		{.fd = caller_fd, .events = POLLRDHUP},
	};

	if (r->fd < 0)
		return false;
	if (r->stream.over || r->stream.bad || (w.deadline_ms && now >= w.deadline_ms)) {
		finish(r);
		return false;
	}
	if (w.deadline_ms && w.deadline_ms - now < (uint64_t)timeout_ms)
		timeout_ms = (int)(w.deadline_ms - now);
	poll(p, 3, timeout_ms);
	drain(r->wake);
	if (has_hung_up(&p[2]))
		run_cut(r);
	if (((p[0].revents & POLLOUT) && !send_some(r)) ||
	    ((p[0].revents & (POLLIN | POLLHUP | POLLERR)) && !receive(r))) {
		finish(r);
		return false;
	}
	return true;
}

void run_to_end(struct run *r, int caller_fd)
{
	while (run_step(r, caller_fd, 60000))
		;
}

static void *pump_main(void *arg)
{
	struct run *r = arg;
	struct sandboxes *s = r->s;
	struct box *b = r->box;

	run_to_end(r, -1);
	run_unref(r);
	table_unref(s, b);
	return NULL;
}

bool run_detach(struct run *r)
{
	pthread_attr_t attr;
	pthread_t thread;
	bool begun;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256u << 10);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	begun = pthread_create(&thread, &attr, pump_main, r) == 0;
	pthread_attr_destroy(&attr);
	return begun;
}

/* --- reading what was kept --- */

bool run_chunk(struct run *r, uint64_t *at, enum frame_type *ret_type, struct span *ret,
	       struct arena *a)
{
	bool found = false;
	struct span all;

	pthread_mutex_lock(&r->lock);
	all = buf_span(&r->out);
	if (*at < r->out_from)
		*at = r->out_from;
	if (*at - r->out_from < all.len) {
		const char *head = all.at + (*at - r->out_from);
		uint32_t len;

		memcpy(&len, head + 1, sizeof(len));
		*ret_type = (enum frame_type)(unsigned char)head[0];
		ret->len = len;
		ret->at = arena_strndup(a, head + CHUNK_HEAD, len);
		found = ret->at != NULL;
		if (found)
			*at += CHUNK_HEAD + len;
	}
	if (found && r->flows) {
		size_t before = (size_t)(*at - r->out_from);

		buf_consume(&r->out, before);
		r->out_from = *at;
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}
