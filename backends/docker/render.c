#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- target --- */

static void write_path(const struct backend_call *call, struct buf *out)
{
	const struct docker_state *st = docker_state(call);
	const char *pattern = st->route->pattern, *open = strchr(pattern, '{');

	if (st->prefix)
		buf_puts(out, st->prefix);
	else if (st->minor)
		buf_printf(out, "/v1.%d", st->minor);
	if (!open) {
		buf_puts(out, pattern);
		return;
	}
	buf_put(out, pattern, (size_t)(open - pattern));
	docker_encode(out, span_of(st->target), strchr(open, '*') ? "/:@" : ":");
	buf_puts(out, strchr(open, '}') + 1);
}

static void write_value(struct buf *out, char kind, struct span value)
{
	bool yes = span_is(value, "1") || span_is(value, "true") || span_is(value, "True");

	if (kind == 'b')
		buf_puts(out, yes ? "1" : "0");
	else
		docker_encode(out, value, "");
}

/* In the order of the table, so that one meaning has one spelling. */
static void write_query(const struct backend_call *call, struct buf *out)
{
	const struct docker_state *st = docker_state(call);
	const struct canonical *req = call->req;
	const char *between = "?";

	/* Engines take a limit to mean that stopped ones are wanted, too. */
	if (st->limit) {
		buf_puts(out, "?all=1");
		between = "&";
	}
	for (size_t k = 0; k < st->compiled->key_count; k++) {
		const struct docker_query_key *key = &st->compiled->keys[k];

		if (strchr("dzf", key->kind) ||
		    (st->limit && (span_is(key->name, "all") || span_is(key->name, "limit"))))
			continue;
		for (size_t i = 0; i < req->query_count; i++) {
			if (!span_eq(req->query[i].key, key->name))
				continue;
			buf_puts(out, between);
			buf_put(out, key->name.at, key->name.len);
			buf_puts(out, "=");
			write_value(out, key->kind, req->query[i].value);
			between = "&";
		}
	}
	if (st->filters.kind != JV_OBJECT || !st->filters.count)
		return;
	buf_printf(out, "%sfilters=", between);
	docker_filters_write(out, &st->filters);
}

/* Where a query names images, it does so in our spelling: see docker_send(). */
static void write_asked(const struct backend_call *call, struct buf *out)
{
	const struct jv *asked = &docker_state(call)->asked;
	const char *between = "?";

	for (size_t i = 0; i < asked->count; i++) {
		buf_printf(out, "%s%.*s=", between, SPAN_FMT(asked->members[i].key));
		docker_encode(out, asked->members[i].value.str, "/:");
		between = "&";
	}
}

/* --- head --- */

/* A push without a login says so: engines would look for one in a body. */
static void write_registry_auth(const struct backend_call *call, struct buf *out)
{
	const struct canonical *req = call->req;
	bool found = false;

	for (size_t i = 0; i < req->header_count; i++) {
		if (!span_is(req->headers[i].key, "x-registry-auth"))
			continue;
		buf_printf(out, "X-Registry-Auth: %.*s\r\n", SPAN_FMT(req->headers[i].value));
		found = true;
	}
	if (!found && call->op == OP_IMAGE_PUSH)
		buf_puts(out, "X-Registry-Auth: e30=\r\n");
}

/* A header that comes any number of times. */
static void write_given(const struct backend_call *call, const char *key, const char *name,
			struct buf *out)
{
	const struct canonical *req = call->req;

	for (size_t i = 0; i < req->header_count; i++)
		if (span_is(req->headers[i].key, key))
			buf_printf(out, "%s: %.*s\r\n", name, SPAN_FMT(req->headers[i].value));
}

/* What the client's end of a BuildKit session offers. */
static void write_session(const struct backend_call *call, struct buf *out)
{
	static const char *const names[][2] = {
		{"x-docker-expose-session-uuid", "X-Docker-Expose-Session-Uuid"},
		{"x-docker-expose-session-name", "X-Docker-Expose-Session-Name"},
		{"x-docker-expose-session-sharedkey", "X-Docker-Expose-Session-Sharedkey"},
		{"x-docker-expose-session-grpc-method", "X-Docker-Expose-Session-Grpc-Method"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		write_given(call, names[i][0], names[i][1], out);
}

static void write_body_head(const struct backend_call *call, struct outgoing *ret)
{
	const struct canonical *req = call->req;

	if (call->body == BODY_REWRITE) {
		buf_puts(&ret->head,
			 "Content-Type: application/x-tar\r\nTransfer-Encoding: chunked\r\n");
	} else if (call->body == BODY_STREAM) {
		buf_puts(&ret->head, "Content-Type: application/x-tar\r\n");
		if (req->body_bytes < 0)
			buf_puts(&ret->head, "Transfer-Encoding: chunked\r\n");
		else
			buf_printf(&ret->head, "Content-Length: %lld\r\n",
				   (long long)req->body_bytes);
	} else if (buf_len(&ret->body)) {
		buf_printf(&ret->head, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			   buf_len(&ret->body));
	} else if (strcmp(req->method, "POST") == 0 || strcmp(req->method, "PUT") == 0) {
		buf_puts(&ret->head, "Content-Length: 0\r\n");
	}
}

static void write_body(struct backend_call *call, struct buf *out)
{
	struct jv doc = docker_state(call)->body;

	if (call->op == OP_CONTAINER_CREATE)
		doc = docker_create_document(call);
	if (call->op == OP_CONTAINER_COMMIT)
		doc = docker_commit_document(call);
	if (call->op == OP_VOLUME_CREATE || call->op == OP_NETWORK_CREATE)
		docker_label(call, &doc, "Labels");
	/* Two networks of one name would make the name mean either. */
	if (call->op == OP_NETWORK_CREATE)
		jv_set(call->arena, &doc, "CheckDuplicate", jv_bool(true));
	if (call->op == OP_NETWORK_CREATE)
		doc = docker_in_order(call->arena, SCHEMA_NETWORK, &doc);
	jv_write(out, &doc);
	out->spent = out->spent || arena_spent(call->arena);
}

static int finish(const struct outgoing *ret, struct err *err)
{
	if (buf_spent(&ret->head) || buf_spent(&ret->body))
		return err_set(err, ERR_LIMIT, "the rendered request is too large");
	return 0;
}

int docker_render(struct backend *be, struct backend_call *call, struct outgoing *ret,
		  struct err *err)
{
	const struct docker_state *st = docker_state(call);
	bool asks_registry = call->op == OP_IMAGE_PULL || call->op == OP_IMAGE_PUSH ||
			     call->op == OP_REGISTRY_SEARCH;

	(void)be;
	ret->streams_body = call->body == BODY_STREAM || call->body == BODY_REWRITE;
	if (call->body == BODY_JSON && st->body.kind == JV_OBJECT)
		write_body(call, &ret->body);
	buf_printf(&ret->head, "%s ", call->req->method);
	write_path(call, &ret->head);
	if (st->asked.kind == JV_OBJECT)
		write_asked(call, &ret->head);
	else
		write_query(call, &ret->head);
	buf_puts(&ret->head, " HTTP/1.1\r\nHost: docker\r\n");
	if (asks_registry)
		write_registry_auth(call, &ret->head);
	if (call->op == OP_IMAGE_BUILD)
		write_given(call, "x-registry-config", "X-Registry-Config", &ret->head);
	if (call->op == OP_SYSTEM_SESSION)
		write_session(call, &ret->head);
	if (call->reply == REPLY_HIJACK)
		buf_printf(&ret->head, "Connection: Upgrade\r\nUpgrade: %s\r\n",
			   call->req->upgrade_to);
	write_body_head(call, ret);
	buf_puts(&ret->head, "\r\n");
	return finish(ret, err);
}

int docker_undo(struct backend *be, struct backend_call *call, struct outgoing *ret,
		struct err *err)
{
	const struct docker_state *st = docker_state(call);

	(void)be;
	if (docker_starts(call->op)) {
		buf_printf(&ret->head, "POST /v1.%d/containers/", st->minor);
		docker_encode(&ret->head, span_of(st->target), "");
		buf_puts(&ret->head, "/kill HTTP/1.1\r\nHost: docker\r\nContent-Length: 0\r\n\r\n");
		return finish(ret, err);
	}
	if (!st->created || !*st->created)
		return err_set(err, ERR_UPSTREAM, "the engine did not say what it made");
	buf_printf(&ret->head, "DELETE /v1.%d/containers/", st->minor);
	docker_encode(&ret->head, span_of(st->created), "");
	buf_puts(&ret->head, "?force=1&v=1 HTTP/1.1\r\nHost: docker\r\n\r\n");
	ret->streams_body = false;
	return finish(ret, err);
}
