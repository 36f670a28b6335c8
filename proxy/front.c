/*
 * The caller's side of HTTP: libmicrohttpd's callbacks, and queueing answers.  MHD runs inside our
 * loop, without a listener of its own.
 *
 * Its traps are handled here and nowhere else: it calls a suspended handler
 * again, it does not watch suspended connections for a hang-up, it answers
 * malformed requests by itself, and it takes an answer early only before the
 * body.
 */
#include "gate/base/log.h"
#include "proxy/behalf.h"
#include "proxy/scrape.h"
#include "proxy/worker_priv.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTION_MEMORY 16384 /* bytes; caps request heads, and most of an idle stream's cost */
#define REPLY_BLOCK       65536
#define CLOSE_WITHIN_S    60u /* any value that is not the default */

/* --- libmicrohttpd's callbacks --- */

/* The target stays as it was sent: canonical.c decodes it, once. */
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *s)
{
	(void)cls;
	(void)mhd;
	return strlen(s);
}

static struct conn *conn_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* A request line has come.  What is returned is the request's context: an exchange, or a target. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
	struct conn *c = conn_of(mhd);

	(void)cls;
	if (!c)
		return NULL;
	c->in_head = true;
	c->since_ms = c->worker->loop.now_ms;
	return c->listener->metrics ? (void *)strdup(target)
				    : (void *)exchange_create(c, span_of(target));
}

struct head_copy {
	struct pair list[CANONICAL_HEADERS_MAX + 1];
	size_t count;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
				 size_t key_len, const char *value, size_t value_len)
{
	struct head_copy *h = cls;

	(void)kind;
	if (h->count <= CANONICAL_HEADERS_MAX)
		h->list[h->count++] =
			(struct pair){{key, key_len}, {value ? value : "", value_len}};
	return MHD_YES;
}

static void take_head(struct exchange *x, struct MHD_Connection *mhd, const char *method,
		      const char *version)
{
	struct head_copy headers = {.count = 0};
	struct raw_head raw = {.method = span_of(method),
			       .target = span_of(x->req.path),
			       .http10 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0};

	MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, on_header, &headers);
	raw.headers = headers.list;
	raw.header_count = headers.count;
	x->head_seen = true;
	x->conn->in_head = false;
	exchange_head(x, &raw);
}

/* True while MHD must not call: there is nothing to give it, or nothing to take. */
static bool must_wait(const struct exchange *x, size_t untaken)
{
	switch (x->state) {
	case X_CALLER:
	case X_LOOKUP:
	case X_ASK:
	case X_CHECK:
	case X_UNDO:
		return true;
	case X_RECORD:
		/* A denied upload is drained meanwhile. */
		return x->upload_over || !x->call.refused.count;
	case X_SENT:
	case X_HELD:
		return x->upload_over || untaken;
	case X_HEAD:
	case X_BODY:
	case X_DRAIN:
	case X_ANSWER:
	case X_REPLYING:
	case X_RELAY:
	case X_OVER:
		break;
	}
	return false;
}

static enum MHD_Result suspend(struct exchange *x)
{
	if (x->worker->ending) { /* MHD must not be stopped with one that is suspended */
		exchange_end(x);
		return MHD_NO;
	}
	x->suspended = true;
	MHD_suspend_connection(x->conn->mhd);
	return MHD_YES;
}

void front_resume(struct exchange *x)
{
	struct worker *w = x->worker;

	if (!x->conn || x->in_handler)
		return;
	if (x->suspended) {
		x->suspended = false;
		MHD_resume_connection(x->conn->mhd);
		w->mhd_due = true;
	}
}

/*
 * MHD takes an answer before the body or behind it, not in the middle.  When a
 * caller must be told in the middle, nothing was sent for this request yet, so
 * the answer is written as it is and the connection ends: `how`, as of shutdown.
 */
static void send_raw(struct exchange *x)
{
	struct span body = buf_span(&x->answer.body);
	char head[320];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %d Refused\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			 "Sallyport-Id: %s\r\nConnection: close\r\n\r\n",
			 x->answer.status,
			 x->answer.content_type ? x->answer.content_type : "text/plain", body.len,
			 x->id);

	/* Best effort: a caller that does not read it is cut off all the same. */
	if (send(x->conn->fd, head, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n)
		x->bytes_out = send(x->conn->fd, body.at, body.len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0
				       ? body.len
				       : 0;
}

static void answer_raw(struct exchange *x, int how)
{
	if (x->answer.kind == ANSWER_LOCAL)
		send_raw(x);
	shutdown(x->conn->fd, how);
	trail_end(x);
	x->state = X_OVER;
}

#define LINGER_MAX (1u << 30) /* bytes of a refused upload that are dropped behind the answer */

/* A connection that ends while the caller sends would take the answer with it. */
static bool lingers(const struct exchange *x)
{
	return x->state == X_OVER && !x->upload_over && x->drained > DRAIN_MAX &&
	       x->drained < LINGER_MAX;
}

/*
 * What MHD is told. An answer in its first call counts as early: it ends the
 * connection. So a request without a body is answered, or suspended, in the
 * second call, which follows at once.
 */
static enum MHD_Result settle(struct exchange *x, size_t untaken, bool first)
{
	if (first && x->upload_over)
		return MHD_YES;
	if (x->state == X_ANSWER && !x->upload_over && !first) {
		answer_raw(x, SHUT_WR);
	} else if (x->state == X_ANSWER) {
		return front_queue(x);
	}
	if (x->state == X_OVER)
		return lingers(x) ? MHD_YES : MHD_NO;
	if (must_wait(x, untaken))
		return suspend(x);
	return MHD_YES;
}

/* MHD repeats its first call when it was suspended in it: nothing was uploaded yet. */
static enum MHD_Result first_call(struct exchange *x, struct MHD_Connection *mhd,
				  const char *method, const char *version)
{
	enum MHD_Result ok;

	if (!x->head_seen) {
		take_head(x, mhd, method, version);
		/* Hung up before there was anybody to tell; it is not told again. */
		if (x->conn->gone)
			exchange_hang_up(x);
	}
	x->in_handler = false;
	ok = settle(x, 0, true);
	x->first_over = !x->suspended;
	return ok;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_len, void **context)
{
	struct conn *c = conn_of(mhd);
	struct exchange *x = *context;

	(void)cls;
	(void)url;
	if (!x || !c)
		return MHD_NO;
	if (c->listener->metrics) {
		bool first = c->in_head; /* an answer to it would end the connection */

		c->in_head = false;
		*upload_len = 0;
		return first ? MHD_YES : scrape_answer(c->worker, mhd, method, *context);
	}
	if (x->suspended)
		return MHD_YES; /* it was buffered before we suspended; MHD keeps it */
	x->in_handler = true;
	if (!x->first_over)
		return first_call(x, mhd, method, version);
	if (*upload_len)
		*upload_len -= exchange_upload(x, (struct span){upload, *upload_len});
	else
		exchange_upload_end(x);
	x->in_handler = false;
	return settle(x, *upload_len, false);
}

/*
 * MHD closes a connection whose reply failed when it looks at it the next time,
 * and with epoll it looks only at what has events, or a time-out of its own.
 */
static void have_it_closed(struct conn *c, struct MHD_Connection *mhd)
{
	MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, CLOSE_WITHIN_S);
	c->worker->mhd_due = true;
}

/* MHD has let go of a request; without a head it was none. */
static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
			 enum MHD_RequestTerminationCode how)
{
	struct exchange *x = *context;
	struct conn *c = conn_of(mhd);

	(void)cls;
	*context = NULL;
	if (c) {
		c->in_head = false;
		c->used = true;
		c->ended_turn = c->worker->turn;
		c->since_ms = c->worker->loop.now_ms;
		if (c->worker->stopping)
			connection_give_up(c);
		if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK)
			have_it_closed(c, mhd);
	}
	if (!x) {
		if (c)
			trail_malformed(c);
		return;
	}
	if (c && c->listener->metrics) {
		free(x);
		return;
	}
	if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK)
		exchange_not_delivered(x);
	exchange_destroy(x);
}

/* --- answers --- */

static ssize_t end_of_reply(struct exchange *x)
{
	upcall_release(x->up);
	x->up = NULL;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

static ssize_t more_rows(struct exchange *x, char *out, size_t max)
{
	size_t n = rows_take(x, out, max);

	x->bytes_out += n;
	if (n)
		return (ssize_t)n;
	if (upcall_complete(x->up))
		return end_of_reply(x);
	if (!x->suspended)
		suspend(x);
	return 0;
}

/* MHD asks for more of a streamed reply. */
static ssize_t on_more(void *cls, uint64_t pos, char *out, size_t max)
{
	struct exchange *x = cls;
	struct span s;
	size_t n;

	(void)pos;
	if (x->answer.kind != ANSWER_STREAM)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (!x->up)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (x->call.reply == REPLY_ROWS)
		return more_rows(x, out, max);
	s = upcall_body(x->up);
	if (!s.len && upcall_complete(x->up))
		return end_of_reply(x);
	if (!s.len) {
		if (!x->suspended)
			suspend(x);
		return 0;
	}
	n = s.len < max ? s.len : max;
	memcpy(out, s.at, n);
	upcall_take(x->up, n);
	x->bytes_out += n;
	return (ssize_t)n;
}

static void on_upgraded(void *cls, struct MHD_Connection *mhd, void *con_cls, const char *extra,
			size_t extra_len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
	struct exchange *x = cls;

	(void)mhd;
	(void)con_cls;
	x->upgrade = urh;
	/* From here on the relay watches the descriptor. */
	loop_unwatch(&x->worker->loop, &x->conn->watch);
	x->conn->upgraded = true;
	exchange_relay(x, sock, (struct span){extra, extra_len});
}

/* A reply that is here already goes out in one piece with its head. */
static struct MHD_Response *whole_reply(struct exchange *x)
{
	struct span body = upcall_body(x->up);
	struct MHD_Response *r = MHD_create_response_from_buffer(
		body.len, (void *)(uintptr_t)body.at, MHD_RESPMEM_MUST_COPY);

	x->bytes_out += body.len;
	upcall_release(x->up);
	x->up = NULL;
	return r;
}

/* MHD gets the memory itself: a caller who does not read costs one copy, not two. */
static struct MHD_Response *local_reply(struct buf *body)
{
	size_t len = buf_len(body);
	void *mem = body->mem;

	if (!mem || body->start)
		return MHD_create_response_from_buffer(len, (void *)(uintptr_t)buf_span(body).at,
						       MHD_RESPMEM_MUST_COPY);
	body->mem = NULL;
	buf_fini(body);
	return MHD_create_response_from_buffer(len, mem, MHD_RESPMEM_MUST_FREE);
}

/*
 * MHD allocates the block at once, but fills chunked replies into the memory of
 * the connection: a stream that may stay idle for days is to cost little.
 */
static size_t block_of(int64_t len)
{
	if (len < 0)
		return 1024;
	return len < REPLY_BLOCK ? (size_t)len + 1 : REPLY_BLOCK;
}

static struct MHD_Response *streamed_reply(struct exchange *x, int64_t len)
{
	struct MHD_Response *r = MHD_create_response_from_callback(
		len < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)len, block_of(len), on_more, x, NULL);

	if (r && x->call.until_close)
		MHD_set_response_options(r, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
	return r;
}

static struct MHD_Response *make_response(struct exchange *x)
{
	struct answer *a = &x->answer;
	bool is_head = !strcmp(x->req.method, "HEAD");
	int64_t len;

	switch (a->kind) {
	case ANSWER_LOCAL:
		return local_reply(&a->body);
	case ANSWER_STREAM:
		if (x->up && x->call.reply == REPLY_ROWS)
			return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block_of(-1),
								 on_more, x, NULL);
		if (x->up && upcall_complete(x->up) && !is_head)
			return whole_reply(x);
		len = x->up ? upcall_length(x->up) : 0;
		/* MHD would put a last chunk behind a head without a length. */
		if (is_head && len < 0)
			len = 0;
		return streamed_reply(x, len);
	case ANSWER_UPGRADE:
		return MHD_create_response_for_upgrade(on_upgraded, x);
	case ANSWER_NONE:
		break;
	}
	return NULL;
}

#define CHANGES_TEXT_MAX 1024

static bool is_told(const struct decision *d, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (d->changes[i].field && !strcmp(d->changes[i].field, d->changes[at].field))
			return true;
	return false;
}

/* What was filled in before forwarding: the caller finds it in what was made, and may wonder. */
static void add_changes(const struct exchange *x, struct MHD_Response *r)
{
	const struct decision *d = &x->decision;
	char text[CHANGES_TEXT_MAX + 1];
	size_t len = 0;

	for (size_t i = 0; x->permitted && i < d->change_count; i++) {
		const char *field = d->changes[i].field;
		size_t more = field ? strlen(field) : 0;

		if (!more || is_told(d, i) || len + more + 2 > CHANGES_TEXT_MAX)
			continue;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "",
					field);
	}
	if (len)
		MHD_add_response_header(r, "Sallyport-Changes", text);
}

static void add_retry_after(const struct answer *a, struct MHD_Response *r)
{
	char seconds[16];

	if (!a->retry_after_s)
		return;
	snprintf(seconds, sizeof(seconds), "%u", a->retry_after_s);
	MHD_add_response_header(r, "Retry-After", seconds);
}

static void add_headers(struct exchange *x, struct MHD_Response *r)
{
	const struct answer *a = &x->answer;

	if (a->content_type)
		MHD_add_response_header(r, "Content-Type", a->content_type);
	for (size_t i = 0; i < a->header_count; i++)
		MHD_add_response_header(r, a->headers[i].key.at, a->headers[i].value.at);
	MHD_add_response_header(r, x->receipt[0] ? "Sallyport-Audit" : "Sallyport-Id",
				x->receipt[0] ? x->receipt : x->id);
	add_changes(x, r);
	if (x->conn->behalf)
		behalf_tell(x, r);
	add_retry_after(a, r);
	if (a->kind == ANSWER_UPGRADE)
		MHD_add_response_header(r, "Upgrade", x->req.upgrade_to);
	if (a->close)
		MHD_add_response_header(r, "Connection", "close");
}

enum MHD_Result front_queue(struct exchange *x)
{
	size_t local_bytes = buf_len(&x->answer.body);
	struct MHD_Response *r = make_response(x);
	enum MHD_Result ok;

	if (!r)
		return MHD_NO;
	if (x->answer.kind == ANSWER_LOCAL)
		x->bytes_out = local_bytes;
	add_headers(x, r);
	x->state = X_REPLYING;
	ok = MHD_queue_response(x->conn->mhd, (unsigned)x->answer.status, r);
	MHD_destroy_response(r);
	if (ok != MHD_YES)
		log_line("%s: the HTTP library refused the answer %d", x->id, x->answer.status);
	return ok;
}

/* --- the daemon --- */

static void on_mhd(struct watch *watch, uint32_t events)
{
	struct worker *w = (struct worker *)((char *)watch - offsetof(struct worker, mhd_watch));

	(void)events;
	w->mhd_due = true;
}

/* Without waiting: what is ready, and what MHD has left to do by itself. */
void front_run(struct worker *w)
{
	MHD_UNSIGNED_LONG_LONG left_ms;

	w->mhd_due = false;
	MHD_run(w->mhd);
	if (MHD_get_timeout(w->mhd, &left_ms) == MHD_YES && left_ms == 0)
		w->mhd_due = true;
}

int front_open(struct worker *w, struct err *err)
{
	const union MHD_DaemonInfo *info;

	w->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE |
					  MHD_USE_NO_LISTEN_SOCKET,
				  0, NULL, NULL, on_request, w, MHD_OPTION_UNESCAPE_CALLBACK,
				  keep_escapes, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_target, w,
				  MHD_OPTION_NOTIFY_COMPLETED, on_completed, w,
				  MHD_OPTION_NOTIFY_CONNECTION, connection_notify, w,
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
				  MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT,
				  w->conf->limits.connections + 16, MHD_OPTION_CONNECTION_TIMEOUT,
				  0u, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	info = w->mhd ? MHD_get_daemon_info(w->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return err_set(err, ERR_SYSTEM, "the HTTP library does not start");
	return loop_watch(&w->loop, &w->mhd_watch, info->epoll_fd, EPOLLIN, on_mhd, err);
}

void front_close(struct worker *w)
{
	if (!w->mhd)
		return;
	loop_unwatch(&w->loop, &w->mhd_watch);
	w->ending = true;
	for (struct exchange *x = w->exchanges; x; x = x->next) {
		bool relayed = x->relay != NULL;

		exchange_end(x);
		if (relayed)
			MHD_upgrade_action(x->upgrade, MHD_UPGRADE_ACTION_CLOSE);
		front_resume(x);
	}
	MHD_run(w->mhd);
	MHD_stop_daemon(w->mhd);
	w->mhd = NULL;
}

/* What takes too long. */
void front_tick(struct worker *w)
{
	connection_tick(w);
	quarantine_tick(w);
	turns_tick(w);
	for (struct exchange *x = w->exchanges, *next; x; x = next) {
		next = x->next;
		exchange_tick(x, w->loop.now_ms);
		if (x->state == X_ANSWER && !x->upload_over && !x->suspended && x->conn)
			answer_raw(x, SHUT_RDWR);
		/* It neither goes on sending nor hangs up. */
		else if (lingers(x) && !x->deadline_ms && x->conn)
			shutdown(x->conn->fd, SHUT_RDWR);
	}
}
