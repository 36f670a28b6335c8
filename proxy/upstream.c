#include "proxy/upstream.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <http_parser.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define IDLE_MAX      64
#define HEADERS_MAX   64
#define HEAD_TEXT_MAX 65536
#define READ_BYTES    65536

struct upstream {
	struct loop *loop;
	struct sockaddr_un addr;
	struct upcall *idle; /* linked by next */
	size_t idle_count;
	void (*lost)(void *arg);
	void *lost_arg;
};

enum head_part { PART_NONE = 0, PART_FIELD, PART_VALUE };

/* One connection, and the call that is on it (if any). */
struct upcall {
	struct watch watch; /* first: the loop hands it back */
	struct upstream *pool;
	struct upcall *next;                    /* in pool->idle */
	const struct upcall_handlers *handlers; /* NULL: idle */
	void *arg;

	struct buf out; /* waits to be sent */
	bool streams_body, chunked, send_ended, wants_room;
	bool unsent; /* some of the request never went out */
	bool is_head, reused, repeatable;
	struct buf again; /* a repeatable request, until the reply begins */

	http_parser parser;
	struct buf text; /* reply headers: names and values, each with a NUL */
	struct {
		size_t key, key_len, value, value_len; /* offsets into text */
	} at[HEADERS_MAX];
	size_t header_count;
	enum head_part part;
	bool head_bad, head_given, complete, keep;
	int status;
	int64_t length;
	struct buf body;
};

static http_parser_settings parser_settings;

/* --- the parser's callbacks: collect, judge nothing --- */

static int on_header_field(http_parser *p, const char *at, size_t len)
{
	struct upcall *c = p->data;

	if (c->part != PART_FIELD) {
		if (c->header_count == HEADERS_MAX) {
			c->head_bad = true;
			return -1;
		}
		buf_put(&c->text, "", 1);
		c->at[c->header_count].key = c->text.end;
		c->at[c->header_count].key_len = 0;
		c->at[c->header_count].value = c->at[c->header_count].value_len = 0;
		c->header_count++;
		c->part = PART_FIELD;
	}
	for (size_t i = 0; i < len; i++) {
		char lower = (char)tolower((unsigned char)at[i]);

		buf_put(&c->text, &lower, 1);
	}
	c->at[c->header_count - 1].key_len += len;
	return 0;
}

static int on_header_value(http_parser *p, const char *at, size_t len)
{
	struct upcall *c = p->data;

	if (!c->header_count)
		return -1;
	if (c->part != PART_VALUE) {
		buf_put(&c->text, "", 1);
		c->at[c->header_count - 1].value = c->text.end;
		c->at[c->header_count - 1].value_len = 0;
		c->part = PART_VALUE;
	}
	buf_put(&c->text, at, len);
	c->at[c->header_count - 1].value_len += len;
	return 0;
}

static int on_message_begin(http_parser *p)
{
	struct upcall *c = p->data;

	buf_clear(&c->text);
	c->header_count = 0;
	c->part = PART_NONE;
	return 0;
}

/* 1: there is no body; 2: nor is there HTTP behind it. */
static int on_headers_complete(http_parser *p)
{
	struct upcall *c = p->data;

	buf_put(&c->text, "", 1);
	c->status = (int)p->status_code;
	if (buf_spent(&c->text) || c->status < 100)
		c->head_bad = true;
	c->length = p->content_length == ULLONG_MAX || (p->flags & F_CHUNKED)
			    ? -1
			    : (int64_t)p->content_length;
	if (c->status == 101)
		return 2;
	return c->is_head || c->status == 304 || c->status == 204 ? 1 : 0;
}

static int on_body(http_parser *p, const char *at, size_t len)
{
	struct upcall *c = p->data;

	buf_put(&c->body, at, len);
	return buf_spent(&c->body) ? -1 : 0;
}

/*
 * A service that answers before it has the whole request would take what
 * follows for the rest of it, and a caller's bytes for a request.
 */
static bool may_keep(const struct upcall *c)
{
	return c->status != 101 && c->send_ended && !c->unsent && !buf_len(&c->out);
}

static int on_message_complete(http_parser *p)
{
	struct upcall *c = p->data;

	if (c->status >= 100 && c->status < 200 && c->status != 101)
		return 0; /* "100 Continue" and its kind: the answer is still to come */
	c->complete = true;
	c->keep = http_should_keep_alive(p) && may_keep(c);
	http_parser_pause(p, 1); /* what follows belongs to no request of ours */
	return 0;
}

static void settings_once(void)
{
	if (parser_settings.on_body)
		return;
	http_parser_settings_init(&parser_settings);
	parser_settings.on_message_begin = on_message_begin;
	parser_settings.on_header_field = on_header_field;
	parser_settings.on_header_value = on_header_value;
	parser_settings.on_headers_complete = on_headers_complete;
	parser_settings.on_body = on_body;
	parser_settings.on_message_complete = on_message_complete;
}

/* --- connections --- */

static void upcall_ready(struct watch *w, uint32_t events);

struct upstream *upstream_open(struct loop *l, const char *socket_path, void (*lost)(void *arg),
			       void *lost_arg)
{
	struct upstream *u = calloc(1, sizeof(*u));

	if (!u || strlen(socket_path) >= sizeof(u->addr.sun_path)) {
		free(u);
		return NULL;
	}
	settings_once();
	u->loop = l;
	u->addr.sun_family = AF_UNIX;
	memcpy(u->addr.sun_path, socket_path, strlen(socket_path) + 1);
	u->lost = lost;
	u->lost_arg = lost_arg;
	return u;
}

static void destroy(struct upcall *c)
{
	int fd = c->watch.fd;

	loop_unwatch(c->pool->loop, &c->watch);
	if (fd >= 0)
		close(fd);
	buf_fini(&c->out);
	buf_fini(&c->again);
	buf_fini(&c->text);
	buf_fini(&c->body);
	free(c);
}

void upstream_close(struct upstream *u)
{
	if (!u)
		return;
	while (u->idle) {
		struct upcall *c = u->idle;

		u->idle = c->next;
		destroy(c);
	}
	free(u);
}

static int dial(struct upstream *u, struct upcall *c, struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(err, "make a socket");
	/* A unix socket connects at once, or its queue is full (EAGAIN): both end here. */
	if (connect(fd, (const struct sockaddr *)&u->addr, sizeof(u->addr)) < 0) {
		err_sys(err, "connect to %s", u->addr.sun_path);
		close(fd);
		return -1;
	}
	if (loop_watch(u->loop, &c->watch, fd, EPOLLIN, upcall_ready, err) < 0) {
		close(fd);
		return -1;
	}
	return 0;
}

static struct upcall *dial_new(struct upstream *u, struct err *err)
{
	struct upcall *c = calloc(1, sizeof(*c));

	if (!c) {
		err_sys(err, "allocate a connection");
		return NULL;
	}
	c->watch.fd = -1;
	c->pool = u;
	buf_init(&c->out, UPCALL_PENDING + 65536);
	buf_init(&c->again, UPCALL_PENDING);
	buf_init(&c->text, HEAD_TEXT_MAX);
	buf_init(&c->body, UPCALL_BUFFER);
	if (dial(u, c, err) < 0) {
		destroy(c);
		return NULL;
	}
	return c;
}

static struct upcall *take_idle(struct upstream *u)
{
	struct upcall *c = u->idle;

	if (!c)
		return NULL;
	u->idle = c->next;
	u->idle_count--;
	c->next = NULL;
	c->reused = true;
	return c;
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
	destroy(dead);
	if (u->lost)
		u->lost(u->lost_arg);
}

/* What the call waits for: push-back is not reading, a full socket is waiting to write. */
static void set_interest(struct upcall *c)
{
	uint32_t events = 0;

	/*
	 * A complete reply is released in a moment, mostly: two changes of
	 * epoll a request are saved by waiting for what else may come first.
	 */
	if (c->complete && !buf_len(&c->out) && c->watch.events == EPOLLIN)
		return;
	if (!c->handlers || (!c->complete && buf_room(&c->body) >= READ_BYTES))
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
static void push_out(struct upcall *c)
{
	while (buf_len(&c->out)) {
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

static void reset_reply(struct upcall *c)
{
	http_parser_init(&c->parser, HTTP_RESPONSE);
	c->parser.data = c;
	buf_clear(&c->text);
	buf_clear(&c->body);
	c->header_count = 0;
	c->part = PART_NONE;
	c->head_bad = c->head_given = c->complete = c->keep = false;
	c->status = 0;
	c->length = -1;
}

static void queue_request(struct upcall *c, const struct upcall_request *req)
{
	c->streams_body = req->streams_body;
	c->chunked = req->chunked;
	c->send_ended = !req->streams_body;
	c->wants_room = c->unsent = false;
	c->is_head = req->is_head;
	c->repeatable = req->repeatable && c->reused && !req->streams_body;
	buf_clear(&c->out);
	buf_put(&c->out, req->head.at, req->head.len);
	buf_put(&c->out, req->body.at, req->body.len);
	buf_clear(&c->again);
	if (c->repeatable) {
		buf_put(&c->again, req->head.at, req->head.len);
		buf_put(&c->again, req->body.at, req->body.len);
	}
}

struct upcall *upcall_start(struct upstream *u, const struct upcall_request *req,
			    const struct upcall_handlers *handlers, void *arg, struct err *err)
{
	struct upcall *c = take_idle(u);

	if (!c)
		c = dial_new(u, err);
	if (!c)
		return NULL;
	c->out.cap = UPCALL_PENDING + 65536 + req->body.len + req->head.len;
	reset_reply(c);
	queue_request(c, req);
	c->handlers = handlers;
	c->arg = arg;
	if (buf_spent(&c->out)) {
		err_set(err, ERR_LIMIT, "the request is too large to be sent");
		destroy(c);
		return NULL;
	}
	push_out(c);
	set_interest(c);
	return c;
}

/* A kept connection may have been closed while the request was on its way. */
static bool try_again(struct upcall *c)
{
	struct err err = {0};
	int old = c->watch.fd;

	if (!c->repeatable || c->head_given || c->text.end)
		return false;
	c->repeatable = false;
	loop_unwatch(c->pool->loop, &c->watch);
	close(old);
	if (dial(c->pool, c, &err) < 0)
		return false;
	reset_reply(c);
	buf_clear(&c->out);
	c->unsent = false;
	buf_put(&c->out, buf_span(&c->again).at, buf_len(&c->again));
	push_out(c);
	set_interest(c);
	return true;
}

static void give_head(struct upcall *c)
{
	struct pair headers[HEADERS_MAX];
	struct reply_head head = {.status = c->status, .headers = headers};

	for (size_t i = 0; i < c->header_count; i++) {
		headers[i].key = (struct span){c->text.mem + c->at[i].key, c->at[i].key_len};
		headers[i].value = (struct span){c->text.mem + c->at[i].value, c->at[i].value_len};
		if (!c->at[i].value)
			headers[i].value = (struct span){"", 0};
	}
	head.header_count = c->header_count;
	c->head_given = true;
	buf_fini(&c->again);
	c->handlers->head(c->arg, &head);
}

static enum upcall_fault feed(struct upcall *c, const char *at, size_t len)
{
	size_t used = http_parser_execute(&c->parser, &parser_settings, at, len);
	enum http_errno fault = HTTP_PARSER_ERRNO(&c->parser);

	if (c->head_bad || (fault != HPE_OK && fault != HPE_PAUSED))
		return c->head_given ? UPCALL_CUT : UPCALL_NONSENSE;
	if (c->status == 101 && c->parser.upgrade) {
		c->complete = true;
		buf_put(&c->body, at + used, len - used);
	} else if (used < len) {
		c->keep = false; /* bytes behind the reply: this connection is not to be trusted */
	}
	return UPCALL_FINE;
}

static enum upcall_fault end_of_file(struct upcall *c)
{
	if (try_again(c))
		return UPCALL_FINE;
	/* Tells the parser, since a reply without a length ends this way. */
	if (c->status)
		http_parser_execute(&c->parser, &parser_settings, "", 0);
	c->keep = false;
	if (c->complete)
		return UPCALL_FINE;
	return c->status ? UPCALL_CUT : UPCALL_UNREACHABLE;
}

static enum upcall_fault read_reply(struct upcall *c)
{
	static char bytes[READ_BYTES];
	ssize_t n;

	if (c->complete || buf_room(&c->body) < READ_BYTES)
		return UPCALL_FINE;
	n = recv(c->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return UPCALL_FINE;
	return n > 0 ? feed(c, bytes, (size_t)n) : end_of_file(c);
}

/* Tells the exchange of what has come; it may release the call in each handler. */
static void report(struct upcall *c)
{
	bool fresh = !c->head_given && c->status >= 200;

	if (c->status == 101 && c->complete && !c->head_given)
		fresh = true;
	if (fresh)
		give_head(c); /* the exchange takes data on its own account from here */
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
	set_interest(c);
	if (!c->head_given || buf_len(&c->body) != had || c->complete)
		report(c);
}

static void upcall_ready(struct watch *w, uint32_t events)
{
	struct upcall *c = (struct upcall *)w;

	if (!c->handlers) {
		drop_idle(c); /* whatever comes while it is idle is the end of it */
		return;
	}
	push_out(c);
	if (events & EPOLLHUP)
		drop_out(c);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		take_reply(c);
		return;
	}
	set_interest(c);
	if (c->wants_room && buf_len(&c->out) < UPCALL_PENDING / 2) {
		c->wants_room = false;
		c->handlers->room(c->arg);
	}
}

/* --- what the exchange calls --- */

size_t upcall_send(struct upcall *c, struct span piece)
{
	size_t room = UPCALL_PENDING > buf_len(&c->out) ? UPCALL_PENDING - buf_len(&c->out) : 0;
	size_t len = piece.len < room ? piece.len : room;

	if (c->complete || !c->handlers) {
		c->unsent = true;
		return piece.len; /* the service has answered: the rest is drained */
	}
	if (len < piece.len)
		c->wants_room = true; /* the caller waits for the rest of its piece to fit */
	if (!len)
		return 0;
	if (c->chunked)
		buf_printf(&c->out, "%zx\r\n", len);
	buf_put(&c->out, piece.at, len);
	if (c->chunked)
		buf_puts(&c->out, "\r\n");
	push_out(c);
	set_interest(c);
	return len;
}

void upcall_send_end(struct upcall *c)
{
	if (c->send_ended)
		return;
	c->send_ended = true;
	if (c->complete || !c->handlers)
		return;
	if (c->chunked)
		buf_puts(&c->out, "0\r\n\r\n");
	push_out(c);
	set_interest(c);
}

struct span upcall_body(const struct upcall *c)
{
	return buf_span(&c->body);
}

void upcall_take(struct upcall *c, size_t len)
{
	buf_consume(&c->body, len);
	if (c->handlers)
		set_interest(c);
}

bool upcall_complete(const struct upcall *c)
{
	return c->complete;
}

int64_t upcall_length(const struct upcall *c)
{
	return c->length;
}

int upcall_hijack(struct upcall *c, struct buf *ret_leftover)
{
	int fd = c->watch.fd;

	assert(c->status == 101);
	loop_unwatch(c->pool->loop, &c->watch);
	*ret_leftover = c->body;
	buf_init(&c->body, UPCALL_BUFFER);
	destroy(c);
	return fd;
}

void upcall_release(struct upcall *c)
{
	struct upstream *u = c->pool;
	bool clean = c->handlers && c->complete && c->keep;

	c->handlers = NULL;
	c->arg = NULL;
	if (!clean || u->idle_count == IDLE_MAX) {
		destroy(c);
		return;
	}
	buf_fini(&c->again);
	buf_clear(&c->text);
	if (c->body.size > 16384)
		buf_fini(&c->body);
	if (c->out.size > 16384)
		buf_fini(&c->out);
	c->next = u->idle;
	u->idle = c;
	u->idle_count++;
	set_interest(c);
}
