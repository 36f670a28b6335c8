#include "proxy/upstream_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MAX 64

struct upstream *upstream_open_dial(struct loop *l, struct dial *d, void (*lost)(void *arg),
				    void *lost_arg)
{
	struct upstream *u = calloc(1, sizeof(*u));

	if (!u) {
		dial_close(d);
		return NULL;
	}
	u->loop = l;
	u->dial = d;
	u->epoch = 1;
	u->lost = lost;
	u->lost_arg = lost_arg;
	return u;
}

struct upstream *upstream_open(struct loop *l, const char *socket_path, void (*lost)(void *arg),
			       void *lost_arg)
{
	struct err err = {0};
	struct dial *d = dial_open_unix(socket_path, &err);

	return d ? upstream_open_dial(l, d, lost, lost_arg) : NULL;
}

void upstream_close(struct upstream *u)
{
	if (!u)
		return;
	while (u->idle) {
		struct upcall *c = u->idle;

		u->idle = c->next;
		upcall_destroy(c);
	}
	dial_close(u->dial);
	free(u);
}

uint64_t upstream_epoch(const struct upstream *u)
{
	return u->epoch;
}

uint64_t upstream_take_dials(struct upstream *u)
{
	uint64_t dials = u->dials;

	u->dials = 0;
	return dials;
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
		c = upcall_dial(u, err);
	if (!c)
		return NULL;
	if (req->epoch && req->epoch != u->epoch) {
		upcall_destroy(c);
		err_set(err, ERR_UPSTREAM, "the engine was started anew while this was judged");
		err->sys = ESTALE;
		return NULL;
	}
	c->why[0] = '\0';
	c->out.cap = UPCALL_PENDING + 65536 + req->body.len + req->head.len;
	upcall_reset_reply(c);
	queue_request(c, req);
	c->handlers = handlers;
	c->arg = arg;
	if (buf_spent(&c->out)) {
		err_set(err, ERR_LIMIT, "the request is too large to be sent");
		upcall_destroy(c);
		return NULL;
	}
	upcall_push(c);
	upcall_set_interest(c);
	return c;
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
	upcall_push(c);
	upcall_set_interest(c);
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
	upcall_push(c);
	upcall_set_interest(c);
}

struct span upcall_body(const struct upcall *c)
{
	return buf_span(&c->body);
}

void upcall_take(struct upcall *c, size_t len)
{
	buf_consume(&c->body, len);
	if (c->handlers)
		upcall_set_interest(c);
}

bool upcall_complete(const struct upcall *c)
{
	return c->complete;
}

int64_t upcall_length(const struct upcall *c)
{
	return c->length;
}

const char *upcall_why(const struct upcall *c)
{
	return c->why;
}

int upcall_hijack(struct upcall *c, struct buf *ret_leftover)
{
	int fd = c->line.fd;

	assert(c->status == 101);
	c->line.fd = -1; /* its tunnel, if it has one, goes on by itself */
	*ret_leftover = c->body;
	buf_init(&c->body, UPCALL_BUFFER);
	upcall_destroy(c);
	return fd;
}

void upcall_release(struct upcall *c)
{
	struct upstream *u = c->pool;
	bool clean = c->handlers && c->complete && c->keep;

	c->handlers = NULL;
	c->arg = NULL;
	if (!clean || u->idle_count == IDLE_MAX) {
		upcall_destroy(c);
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
	upcall_set_interest(c);
}
