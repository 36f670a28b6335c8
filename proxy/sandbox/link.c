#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/clock.h"
#include "proxy/behalf.h"

#include <errno.h>
#include <http_parser.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_MAX  32     /* connections that are kept */
#define READY_MIN 4      /* that are to be there before they are needed */
#define COME_MS   10000  /* the supervisor has that long to make one */
#define ANSWER_MS 180000 /* a worker answers within this time, an engine that pulls included */
#define REPLY_MAX (1u << 20)
#define HEAD_MAX  (16u << 10)

void links_init(struct links *l)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->came, &attr);
	pthread_condattr_destroy(&attr);
}

static void drop(struct link *l)
{
	close(l->fd);
	free(l);
}

void links_close(struct links *l)
{
	pthread_mutex_lock(&l->lock);
	l->over = true;
	while (l->idle) {
		struct link *one = l->idle;

		l->idle = one->next;
		drop(one);
	}
	l->idle_count = 0;
	pthread_cond_broadcast(&l->came);
	pthread_mutex_unlock(&l->lock);
}

/* The lock is held. */
static void keep(struct links *l, struct link *one)
{
	if (l->over || l->idle_count == IDLE_MAX) {
		drop(one);
		return;
	}
	one->next = l->idle;
	l->idle = one;
	l->idle_count++;
	pthread_cond_signal(&l->came);
}

void links_add(struct links *l, int fd)
{
	struct link *one = calloc(1, sizeof(*one));

	pthread_mutex_lock(&l->lock);
	if (l->asked)
		l->asked--;
	if (one) {
		one->fd = fd;
		keep(l, one);
	} else {
		close(fd);
	}
	pthread_mutex_unlock(&l->lock);
}

static void give_back(struct sandboxes *s, struct link *one)
{
	one->used = true;
	pthread_mutex_lock(&s->links.lock);
	keep(&s->links, one);
	pthread_mutex_unlock(&s->links.lock);
}

/* A worker that is replaced ends what nobody uses. */
static bool is_alive(const struct link *one)
{
	struct pollfd p = {.fd = one->fd, .events = POLLIN | POLLRDHUP};

	return poll(&p, 1, 0) == 0;
}

/* The lock is held.  How many the supervisor is still to be asked for. */
static unsigned missing(const struct links *l)
{
	unsigned want = READY_MIN + l->waiting, have = l->idle_count + l->asked;

	return want > have ? want - have : 0;
}

static void ask_for_more(struct sandboxes *s)
{
	struct links *l = &s->links;
	unsigned n;

	pthread_mutex_lock(&l->lock);
	n = missing(l);
	l->asked += n;
	pthread_mutex_unlock(&l->lock);
	while (n--)
		server_want_link(s);
}

static struct link *pop(struct links *l)
{
	struct link *one = NULL;

	while (!one && l->idle) {
		one = l->idle;
		l->idle = one->next;
		l->idle_count--;
		if (is_alive(one))
			break;
		drop(one);
		one = NULL;
	}
	return one;
}

/* No worker may be there at the moment: what was asked for long ago is asked for again. */
static struct link *take(struct sandboxes *s)
{
	struct links *l = &s->links;
	uint64_t until = clock_boot_ms() + COME_MS;
	struct link *one;

	pthread_mutex_lock(&l->lock);
	while (!(one = pop(l)) && !l->over && clock_boot_ms() < until) {
		struct timespec at;

		l->waiting++;
		pthread_mutex_unlock(&l->lock);
		ask_for_more(s);
		pthread_mutex_lock(&l->lock);
		clock_gettime(CLOCK_MONOTONIC, &at);
		at.tv_nsec += 200000000;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		if (!l->idle && pthread_cond_timedwait(&l->came, &l->lock, &at) == ETIMEDOUT)
			l->asked = 0;
		l->waiting--;
	}
	pthread_mutex_unlock(&l->lock);
	if (one)
		ask_for_more(s);
	return one;
}

/* --- what is sent --- */

static void put_member(struct buf *out, const char *key, const char *value)
{
	if (!value || !*value)
		return;
	buf_printf(out, ",\"%s\":", key);
	jv_write_str(out, span_of(value));
}

static void put_who(struct buf *out, const struct ask *ask)
{
	const struct caller *who = ask->who;

	buf_puts(out, "{\"listener\":");
	jv_write_str(out, span_of(who->listener));
	if (who->own) {
		buf_puts(out, ",\"own\":true");
		put_member(out, "owner", who->owner);
	}
	put_member(out, "identity", who->identity);
	if (who->has_cred)
		buf_printf(out, ",\"uid\":%u,\"gid\":%u,\"pid\":%d", who->uid, who->gid, who->pid);
	put_member(out, "address", who->address);
	put_member(out, "profile", who->profile);
	put_member(out, "backend", ask->backend);
	buf_puts(out, "}");
}

static void put_request(struct buf *out, const struct ask *ask)
{
	buf_printf(out, "%s %s HTTP/1.1\r\nHost: gate\r\n%s: ", ask->method, ask->target,
		   BEHALF_HEADER);
	put_who(out, ask);
	if (ask->authorization)
		buf_printf(out, "\r\nAuthorization: %s", ask->authorization);
	if (ask->body.len)
		buf_puts(out, "\r\nContent-Type: application/json");
	if (ask->upgrade)
		buf_puts(out, "\r\nConnection: Upgrade\r\nUpgrade: tcp");
	if (strcmp(ask->method, "GET") != 0)
		buf_printf(out, "\r\nContent-Length: %zu", ask->body.len);
	buf_puts(out, "\r\n\r\n");
	buf_put(out, ask->body.at, ask->body.len);
}

static bool wait_for(int fd, short events, uint64_t until_ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t now = clock_boot_ms();

	return now < until_ms && poll(&p, 1, (int)(until_ms - now)) > 0;
}

static bool send_all(int fd, struct span left, uint64_t until_ms)
{
	while (left.len) {
		ssize_t n = send(fd, left.at, left.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			left = span_skip(left, (size_t)n);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR) ||
			 (errno == EAGAIN && !wait_for(fd, POLLOUT, until_ms)))
			return false;
	}
	return true;
}

/* --- what comes back --- */

struct reading {
	struct reply *reply;
	char field[32];
	size_t field_len;
	char *value; /* where the value of this header goes */
	size_t value_room, value_len;
	bool complete, in_value;
};

static int on_field(http_parser *p, const char *at, size_t len)
{
	struct reading *rd = p->data;

	if (rd->in_value)
		rd->field_len = 0;
	rd->in_value = false;
	for (size_t i = 0; i < len && rd->field_len + 1 < sizeof(rd->field); i++)
		rd->field[rd->field_len++] = at[i];
	rd->field[rd->field_len] = '\0';
	return 0;
}

static void choose_value(struct reading *rd)
{
	struct reply *r = rd->reply;

	rd->value = NULL;
	rd->value_len = 0;
	if (strcasecmp(rd->field, BEHALF_ISOLATION) == 0) {
		rd->value = r->isolation;
		rd->value_room = sizeof(r->isolation);
	} else if (strcasecmp(rd->field, "Retry-After") == 0) {
		rd->value = r->retry_after;
		rd->value_room = sizeof(r->retry_after);
	} else if (strcasecmp(rd->field, "Sallyport-Id") == 0) {
		rd->value = r->decision;
		rd->value_room = sizeof(r->decision);
	}
}

static int on_value(http_parser *p, const char *at, size_t len)
{
	struct reading *rd = p->data;

	if (!rd->in_value)
		choose_value(rd);
	rd->in_value = true;
	for (size_t i = 0; rd->value && i < len && rd->value_len + 1 < rd->value_room; i++)
		rd->value[rd->value_len++] = at[i];
	if (rd->value)
		rd->value[rd->value_len] = '\0';
	return 0;
}

static int on_head(http_parser *p)
{
	struct reading *rd = p->data;

	rd->reply->status = (int)p->status_code;
	return p->status_code == 101 ? 2 : 0;
}

static int on_body(http_parser *p, const char *at, size_t len)
{
	struct reading *rd = p->data;

	buf_put(&rd->reply->body, at, len);
	return buf_spent(&rd->reply->body) ? -1 : 0;
}

static int on_complete(http_parser *p)
{
	struct reading *rd = p->data;

	rd->complete = p->status_code >= 200 || p->status_code == 101;
	http_parser_pause(p, rd->complete);
	return 0;
}

static const http_parser_settings settings = {.on_header_field = on_field,
					      .on_header_value = on_value,
					      .on_headers_complete = on_head,
					      .on_body = on_body,
					      .on_message_complete = on_complete};

/* What stands behind a 101 is the command's already.  -1: it is no answer. */
static int take_bytes(http_parser *p, struct reading *rd, struct span got)
{
	size_t used = http_parser_execute(p, &settings, got.at, got.len);
	enum http_errno wrong = HTTP_PARSER_ERRNO(p);

	if (wrong != HPE_OK && wrong != HPE_PAUSED)
		return -1;
	if (rd->complete && p->upgrade && used < got.len)
		buf_put(&rd->reply->early, got.at + used, got.len - used);
	return 0;
}

/* 1: it is complete; 0: the connection ended before anything came; -1: in the middle. */
static int read_reply(int fd, struct reply *r, bool *ret_keep, uint64_t until_ms)
{
	struct reading rd = {.reply = r, .in_value = true};
	char got[16384];
	bool any = false;
	http_parser p;

	http_parser_init(&p, HTTP_RESPONSE);
	p.data = &rd;
	while (!rd.complete) {
		ssize_t n;

		if (!wait_for(fd, POLLIN, until_ms))
			return -1;
		n = recv(fd, got, sizeof(got), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return any ? -1 : 0;
		any = true;
		if (take_bytes(&p, &rd, (struct span){got, (size_t)n}) < 0)
			return -1;
	}
	http_parser_pause(&p, 0);
	*ret_keep = r->status != 101 && http_should_keep_alive(&p);
	return 1;
}

static void reply_init(struct reply *r)
{
	*r = (struct reply){.fd = -1};
	buf_init(&r->body, REPLY_MAX);
	buf_init(&r->early, REPLY_MAX);
}

void reply_fini(struct reply *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	buf_fini(&r->body);
	buf_fini(&r->early);
}

/* 1: answered; 0: it was not taken, so that another connection may be tried; -1. */
static int converse(struct sandboxes *s, struct link *one, struct span request, struct reply *r)
{
	uint64_t until = clock_boot_ms() + ANSWER_MS;
	bool keep_it = false;
	int rc = send_all(one->fd, request, until) ? read_reply(one->fd, r, &keep_it, until) : 0;

	if (rc == 1 && r->status == 101) {
		r->fd = one->fd;
		free(one);
	} else if (rc == 1 && keep_it) {
		give_back(s, one);
	} else {
		drop(one);
	}
	return rc;
}

int link_ask(struct sandboxes *s, const struct ask *ask, struct arena *a, struct reply *ret,
	     struct trouble *t)
{
	struct buf request;
	int rc = 0;

	reply_init(ret);
	buf_init(&request, HEAD_MAX + ask->body.len);
	put_request(&request, ask);
	for (int tries = 0; rc == 0 && tries < 3 && !buf_spent(&request); tries++) {
		struct link *one = take(s);

		if (!one)
			break;
		rc = converse(s, one, buf_span(&request), ret);
	}
	buf_fini(&request);
	if (rc == 1)
		return 0;
	reply_fini(ret);
	return trouble_set(t, a, CODE_unavailable, "%s",
			   rc < 0 ? "the worker that had the request has gone, or does not answer"
				  : "no worker takes requests at the moment");
}
