#include "proxy/httpd.h"

#include "proxy/canonical.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define CONNECTION_MEMORY 32768 /* bytes; caps request heads */
#define STREAM_BLOCK      65536
#define DROPPED_MAX       (64u << 20) /* bytes of a refused body that are read to their end */
#define EXTRA_MAX         16
#define STACK_BYTES       (1u << 20)

struct httpd {
	struct MHD_Daemon *mhd;
	struct httpd_conf conf;
};

/* --- the head --- */

static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *s)
{
	(void)cls;
	(void)mhd;
	return strlen(s);
}

/* What on_target() keeps until the head is complete; only once a target came there is a request. */
struct call {
	char *target;
	struct httpd_request r;
	struct {
		httpd_more_fn *more;
		httpd_talk_fn *talk;
	} to;
};

static struct call *call_of(struct httpd_request *r)
{
	return (struct call *)((char *)r - offsetof(struct call, r));
}

static void *on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
	struct call *c = calloc(1, sizeof(*c));

	(void)cls;
	(void)mhd;
	if (c)
		c->target = strdup(target);
	if (c && c->target)
		return c;
	free(c);
	return NULL;
}

struct heads {
	struct arena *arena;
	struct pair list[CANONICAL_HEADERS_MAX];
	size_t count;
	bool spent;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
				 size_t key_len, const char *value, size_t value_len)
{
	struct heads *h = cls;
	char *name = arena_strndup(h->arena, key, key_len);
	char *text = arena_strndup(h->arena, value ? value : "", value ? value_len : 0);

	(void)kind;
	h->spent |= h->count == CANONICAL_HEADERS_MAX || !name || !text;
	if (h->spent)
		return MHD_NO;
	for (size_t i = 0; i < key_len; i++)
		name[i] = (char)tolower((unsigned char)name[i]);
	h->list[h->count++] = (struct pair){{name, key_len}, {text, value ? value_len : 0}};
	return MHD_YES;
}

static bool read_headers(struct httpd_request *r)
{
	struct heads *h = arena_take(r->arena, sizeof(*h));
	const char *length, *coding;

	if (!h)
		return false;
	h->arena = r->arena;
	MHD_get_connection_values_n(r->mhd, MHD_HEADER_KIND, on_header, h);
	r->headers = h->list;
	r->header_count = h->count;
	length = httpd_header(r, "content-length");
	coding = httpd_header(r, "transfer-encoding");
	for (size_t i = 0; i < h->count; i++)
		for (size_t j = 0; j < i; j++)
			if (span_eq(h->list[i].key, h->list[j].key) &&
			    (span_is(h->list[i].key, "content-length") ||
			     span_is(h->list[i].key, "transfer-encoding")))
				return false;
	if (h->spent || (length && coding) || (coding && strcasecmp(coding, "chunked") != 0))
		return false;
	r->length = coding ? -1 : length ? strtoll(length, NULL, 10) : 0;
	return r->length >= -1;
}

static bool holds_nul(struct span s)
{
	return memchr(s.at, '\0', s.len) != NULL;
}

static bool read_query(struct httpd_request *r, struct span rest)
{
	struct pair *list = arena_take(r->arena, sizeof(*list) * CANONICAL_QUERY_MAX);
	struct span one, key;

	r->query = list;
	while (list && rest.len) {
		struct pair *q = &list[r->query_count];

		span_cut(&rest, '&', &one);
		if (!one.len)
			continue;
		span_cut(&one, '=', &key);
		if (r->query_count == CANONICAL_QUERY_MAX ||
		    canonical_decode(r->arena, key, true, &q->key, NULL) < 0 ||
		    canonical_decode(r->arena, one, true, &q->value, NULL) < 0 ||
		    holds_nul(q->key) || holds_nul(q->value) || httpd_query(r, q->key.at))
			return false;
		r->query_count++;
	}
	return list != NULL;
}

static bool read_target(struct httpd_request *r, const char *target)
{
	struct span query = span_of(target), raw, path;

	if (*target != '/')
		return false;
	span_cut(&query, '?', &raw);
	if (canonical_decode(r->arena, raw, false, &path, NULL) < 0 || holds_nul(path))
		return false;
	r->path = path.at;
	return read_query(r, query);
}

static const char *find(const struct pair *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (span_is(list[i].key, name))
			return list[i].value.at;
	return NULL;
}

const char *httpd_query(const struct httpd_request *r, const char *key)
{
	return find(r->query, r->query_count, key);
}

const char *httpd_header(const struct httpd_request *r, const char *name)
{
	return find(r->headers, r->header_count, name);
}

/* --- answers --- */

bool httpd_answered(const struct httpd_request *r)
{
	return r->response != NULL;
}

void httpd_reply_header(struct httpd_request *r, const char *name, const char *value)
{
	if (!r->extra)
		r->extra = arena_take(r->arena, sizeof(*r->extra) * EXTRA_MAX);
	if (r->extra && r->extra_count < EXTRA_MAX)
		r->extra[r->extra_count++] = (struct pair){span_of(name), span_of(value)};
}

static void answer(struct httpd_request *r, int status, const char *content_type,
		   struct MHD_Response *response)
{
	if (r->response) {
		MHD_destroy_response(response);
		return;
	}
	r->response = response;
	r->status = status;
	if (!response)
		return;
	if (content_type)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
	for (size_t i = 0; i < r->extra_count; i++)
		MHD_add_response_header(response, r->extra[i].key.at, r->extra[i].value.at);
}

void httpd_reply(struct httpd_request *r, int status, const char *content_type, struct span body)
{
	answer(r, status, content_type,
	       MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.at,
					       MHD_RESPMEM_MUST_COPY));
}

static ssize_t on_more(void *cls, uint64_t pos, char *out, size_t max)
{
	struct httpd_request *r = cls;
	ssize_t n = call_of(r)->to.more(r, out, max);

	(void)pos;
	if (n > 0)
		return n;
	return n ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
}

/* Who makes the answer may take its time: no clock runs meanwhile. */
void httpd_reply_stream(struct httpd_request *r, int status, const char *content_type,
			int64_t length, httpd_more_fn *more)
{
	call_of(r)->to.more = more;
	MHD_set_connection_option(r->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	answer(r, status, content_type,
	       MHD_create_response_from_callback(length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)length,
						 STREAM_BLOCK, on_more, r, NULL));
}

/* On the thread of the connection, which does nothing else from now on. */
static void on_upgraded(void *cls, struct MHD_Connection *mhd, void *context, const char *extra,
			size_t extra_len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
	struct httpd_request *r = cls;
	int flags = fcntl(sock, F_GETFL);

	(void)mhd;
	(void)context;
	if (flags >= 0 && fcntl(sock, F_SETFL, flags & ~O_NONBLOCK) == 0) {
		r->fd = sock;
		call_of(r)->to.talk(r, (struct span){extra, extra_len});
	}
	MHD_upgrade_action(urh, MHD_UPGRADE_ACTION_CLOSE);
}

void httpd_reply_upgrade(struct httpd_request *r, const char *protocol, const char *content_type,
			 httpd_talk_fn *talk)
{
	struct MHD_Response *response = MHD_create_response_for_upgrade(on_upgraded, r);

	call_of(r)->to.talk = talk;
	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, protocol);
	MHD_set_connection_option(r->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	answer(r, MHD_HTTP_SWITCHING_PROTOCOLS, content_type, response);
}

static void refuse(struct httpd_request *r, int status, const char *text)
{
	httpd_reply(r, status, "text/plain", span_of(text));
}

/* --- a request --- */

static enum MHD_Result queue(struct httpd_request *r)
{
	if (!r->response)
		return MHD_NO;
	return MHD_queue_response(r->mhd, (unsigned)r->status, r->response);
}

static void begin(struct httpd *h, struct call *c, struct MHD_Connection *mhd, const char *method)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct httpd_request *r = &c->r;

	r->began = true;
	r->server = h;
	r->mhd = mhd;
	r->fd = info ? info->connect_fd : -1;
	r->body_max = h->conf.held_max;
	r->arena = arena_create(h->conf.arena_max);
	r->method = r->arena ? arena_strndup(r->arena, method, strlen(method)) : NULL;
	if (!r->method) {
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	} else if (!read_headers(r) || !read_target(r, c->target)) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "this request can be read in more than one way\n");
	} else {
		h->conf.begin(h->conf.arg, r);
		buf_init(&r->body, r->body_max < SIZE_MAX / 2 ? (size_t)r->body_max : SIZE_MAX / 2);
		if (!r->response && r->length > 0 && (uint64_t)r->length > r->body_max)
			refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long\n");
	}
}

/* MHD takes no answer in the middle of a body; what follows is read and dropped, up to a cap. */
static enum MHD_Result take_piece(struct httpd *h, struct httpd_request *r, struct span piece)
{
	r->seen += piece.len;
	if (!r->response && r->seen > r->body_max)
		refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long\n");
	if (r->response) {
		r->dropped += piece.len;
		return r->dropped > DROPPED_MAX ? MHD_NO : MHD_YES;
	}
	if (!r->pieces)
		buf_put(&r->body, piece.at, piece.len);
	else if (!h->conf.piece(h->conf.arg, r, piece) && !r->response)
		return MHD_NO;
	if (!r->pieces && buf_spent(&r->body))
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	return MHD_YES;
}

/* An answer in the first call ends the connection: only where the body is too much to be dropped.
 */
static bool is_told_at_once(const struct httpd_request *r)
{
	return r->response && (r->length > DROPPED_MAX || (r->length && httpd_header(r, "expect")));
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_len, void **context)
{
	struct httpd *h = cls;
	struct call *c = *context;
	struct httpd_request *r;

	(void)url;
	(void)version;
	if (!c)
		return MHD_NO;
	r = &c->r;
	if (!r->began) {
		begin(h, c, mhd, method);
		return is_told_at_once(r) ? queue(r) : MHD_YES;
	}
	if (*upload_len) {
		struct span piece = {upload, *upload_len};

		*upload_len = 0;
		return take_piece(h, r, piece);
	}
	if (!r->response)
		h->conf.handle(h->conf.arg, r);
	return queue(r);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
			 enum MHD_RequestTerminationCode how)
{
	struct httpd *h = cls;
	struct call *c = *context;

	(void)how;
	*context = NULL;
	if (!c)
		return;
	if (h->conf.done && c->r.began && c->r.path)
		h->conf.done(h->conf.arg, &c->r);
	if (c->r.response)
		MHD_destroy_response(c->r.response);
	if (c->r.began)
		MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, h->conf.idle_s);
	buf_fini(&c->r.body);
	arena_destroy(c->r.arena);
	free(c->target);
	free(c);
}

struct httpd *httpd_start(const struct httpd_conf *conf, struct err *err)
{
	struct httpd *h = calloc(1, sizeof(*h));

	if (!h) {
		err_sys(err, "no memory");
		return NULL;
	}
	h->conf = *conf;
	h->mhd = MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
			MHD_ALLOW_UPGRADE | MHD_USE_ITC,
		0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, conf->listener,
		MHD_OPTION_CONNECTION_LIMIT, conf->connections, MHD_OPTION_CONNECTION_TIMEOUT,
		conf->idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_UNESCAPE_CALLBACK,
		keep_escapes, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_END);
	if (h->mhd)
		return h;
	err_sys(err, "start the HTTP server");
	free(h);
	return NULL;
}

void httpd_stop(struct httpd *h)
{
	if (!h)
		return;
	MHD_quiesce_daemon(h->mhd); /* or it would close a listener that is not its own */
	MHD_stop_daemon(h->mhd);
	free(h);
}
