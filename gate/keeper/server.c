#include "gate/keeper/state_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_S 60

static const struct row {
	const char *method, *pattern;
	route_fn *way;
	enum body_kind body;
} rows[] = {
#define ROUTE(method, pattern, way, body) {#method, pattern, route_##way, BODY_##body},
#include "gate/keeper/routes.def"
#undef ROUTE
};

/* --- answers --- */

void say_json(struct call *c, int status, const struct jv *doc)
{
	struct buf out;

	buf_init(&out, KEEPER_ARENA_MAX);
	jv_write(&out, doc);
	buf_puts(&out, "\n");
	if (buf_spent(&out) || arena_spent(c->r->arena))
		httpd_reply(c->r, 500, "application/json",
			    span_of("{\"message\":\"the answer is too large\"}\n"));
	else
		httpd_reply(c->r, status, "application/json", buf_span(&out));
	buf_fini(&out);
}

void say(struct call *c, int status, const char *fmt, ...)
{
	char text[ERR_MSG_MAX + 64];
	struct jv doc = jv_object();
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	jv_set(c->r->arena, &doc, "message", jv_string(text));
	say_json(c, status, &doc);
}

void say_err(struct call *c, const struct err *err)
{
	int status = err->kind == ERR_INPUT || err->kind == ERR_CONFIG ? 400
		     : err->kind == ERR_LIMIT                          ? 503
								       : 500;

	say(c, status, "%s", err->msg);
}

void say_nothing(struct call *c, int status)
{
	httpd_reply(c->r, status, NULL, (struct span){"", 0});
}

/* --- what a request is about --- */

struct container *call_container(struct call *c)
{
	struct container *found;

	pthread_mutex_lock(&c->k->lock);
	found = state_container(c->k, c->name);
	pthread_mutex_unlock(&c->k->lock);
	if (!found)
		say(c, 404, "No such container: %.80s", c->name);
	return found;
}

struct exec *call_exec(struct call *c)
{
	struct exec *found;

	pthread_mutex_lock(&c->k->lock);
	found = state_exec(c->k, c->name);
	pthread_mutex_unlock(&c->k->lock);
	if (!found)
		say(c, 404, "No such exec instance: %.80s", c->name);
	return found;
}

void call_release(struct call *c, struct container *found)
{
	pthread_mutex_lock(&c->k->lock);
	state_drop(c->k, found);
	pthread_mutex_unlock(&c->k->lock);
}

void call_release_exec(struct call *c, struct exec *found)
{
	pthread_mutex_lock(&c->k->lock);
	state_drop_exec(c->k, found);
	pthread_mutex_unlock(&c->k->lock);
}

bool query_true(struct call *c, const char *key)
{
	const char *v = httpd_query(c->r, key);

	return v && (!strcmp(v, "1") || !strcmp(v, "true") || !strcmp(v, "True"));
}

char *keeper_text(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

/* --- routes --- */

/* "/v1.41" in front; callers of other versions do not come: the worker speaks ours. */
static const char *without_version(const char *path)
{
	const char *rest = strncmp(path, "/v1.", 4) == 0 ? strchr(path + 1, '/') : NULL;

	return rest ? rest : path;
}

static bool matches(const char *pattern, const char *path, struct call *c)
{
	size_t same = strcspn(pattern, "{"), len, tail;
	const char *after;

	if (strncmp(pattern, path, same) != 0)
		return false;
	if (!pattern[same])
		return !path[same];
	after = strchr(pattern + same, '}') + 1;
	len = strlen(path + same);
	tail = strlen(after);
	if (len <= tail || strcmp(path + len + same - tail, after) != 0)
		return false;
	if (after[-2] != '*' && memchr(path + same, '/', len - tail))
		return false;
	c->name = arena_strndup(c->r->arena, path + same, len - tail);
	return c->name != NULL;
}

static void find(struct call *c, const char *path)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && !c->row; i++)
		if (!strcmp(rows[i].method, c->r->method) && matches(rows[i].pattern, path, c))
			c->row = &rows[i];
}

static void on_begin(void *arg, struct httpd_request *r)
{
	struct call *c = arena_take(r->arena, sizeof(*c));

	if (!c) {
		httpd_reply(r, 503, NULL, span_of("no memory\n"));
		return;
	}
	*c = (struct call){.k = arg, .r = r, .name = ""};
	r->state = c;
	find(c, without_version(r->path));
	if (!c->row) {
		say(c, 404, "page not found: %s %.200s", r->method, r->path);
		return;
	}
	r->pieces = c->row->body == BODY_STREAM;
	if (r->pieces)
		r->body_max = KEEPER_ARCHIVE_MAX;
	else if (c->row->body == BODY_JSON)
		r->body_max = KEEPER_BODY_MAX;
	if (r->pieces)
		archive_begin(c);
}

static bool on_piece(void *arg, struct httpd_request *r, struct span piece)
{
	(void)arg;
	return archive_piece(call_of(r), piece);
}

static bool read_body(struct call *c)
{
	enum jv_fault fault;
	struct err err = {0};

	c->body = jv_object();
	if (c->row->body != BODY_JSON || !buf_len(&c->r->body))
		return true;
	if (jv_parse(c->r->arena, buf_span(&c->r->body), &c->body, &fault, &err) < 0) {
		say_err(c, &err);
		return false;
	}
	if (c->body.kind == JV_OBJECT)
		return true;
	say(c, 400, "a JSON object is expected");
	return false;
}

static void on_request(void *arg, struct httpd_request *r)
{
	struct call *c = call_of(r);

	(void)arg;
	if (read_body(c))
		c->row->way(c);
	if (!httpd_answered(r))
		say(c, 500, "nothing was answered");
}

static void on_done(void *arg, struct httpd_request *r)
{
	struct call *c = call_of(r);

	(void)arg;
	if (c && c->user_done)
		c->user_done(c);
}

int server_start(struct keeper *k, struct httpd **ret, struct err *err)
{
	const struct httpd_conf conf = {.listener = k->conf->listener,
					.connections = k->conf->connections,
					.idle_s = IDLE_S,
					.held_max = 4096,
					.arena_max = KEEPER_ARENA_MAX,
					.begin = on_begin,
					.piece = on_piece,
					.handle = on_request,
					.done = on_done,
					.arg = k};

	*ret = httpd_start(&conf, err);
	return *ret ? 0 : -1;
}
