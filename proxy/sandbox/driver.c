#include "proxy/sandbox/sandbox_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define API      "/v1.41"
#define BODY_CAP (512u << 10)
#define USER     "65534:65534"

static const char *text(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static const char *text(struct arena *a, const char *fmt, ...)
{
	char out[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, sizeof(out), fmt, ap);
	va_end(ap);
	return n < 0 || n >= (int)sizeof(out) ? NULL : arena_strndup(a, out, (size_t)n);
}

static const char *copy(struct arena *a, const struct jv *v)
{
	return v && v->kind == JV_STRING ? arena_strndup(a, v->str.at, v->str.len) : "";
}

int driver_refused(const struct reply *r, struct arena *a, struct trouble *t)
{
	enum jv_fault fault;
	struct err err = {0};
	const struct jv *e;
	struct jv tree;

	if (jv_parse(a, buf_span(&r->body), &tree, &fault, &err) < 0)
		return trouble_set(t, a, CODE_unavailable, "the answer %d cannot be understood",
				   r->status);
	e = jv_get(&tree, "error");
	if (!e) /* the engine's own word */
		return trouble_set(
			t, a, r->status == 404 ? CODE_sandbox_not_found : CODE_unavailable,
			"the engine: %s", jv_str(&tree, "message", "no reason was given"));
	t->status = r->status;
	t->code = copy(a, jv_get(e, "code"));
	t->message = copy(a, jv_get(e, "message"));
	t->hint = copy(a, jv_get(e, "hint"));
	t->decision = copy(a, jv_get(e, "decision"));
	t->violations = jv_get(e, "violations") ? *jv_get(e, "violations") : jv_null();
	t->level = copy(a, jv_get(&tree, "level"));
	t->retry_after =
		*r->retry_after ? arena_strndup(a, r->retry_after, strlen(r->retry_after)) : NULL;
	return -1;
}

static struct span written(struct arena *a, const struct jv *tree)
{
	struct buf out;
	struct span s = {"", 0};
	char *kept;

	buf_init(&out, BODY_CAP);
	jv_write(&out, tree);
	kept = buf_spent(&out) ? NULL : arena_strndup(a, buf_span(&out).at, buf_len(&out));
	if (kept)
		s = (struct span){kept, buf_len(&out)};
	buf_fini(&out);
	return s;
}

/* --- a sandbox --- */

static struct jv words(struct arena *a, const char *const *list)
{
	struct jv out = jv_array();

	for (; *list; list++)
		jv_push(a, &out, jv_string(*list));
	return out;
}

/* In memory, and so bounded by the sandbox's memory as well. */
static struct jv scratch(struct arena *a, int64_t bytes, bool takes_owner)
{
	const char *options = text(a, "size=%lld,mode=1777,nosuid,nodev", (long long)bytes);
	struct jv out = jv_object();

	/* A folder that the image has there would lend it its mode, but not its owner. */
	jv_set(a, &out, "/tmp", jv_string(options));
	jv_set(a, &out, WORK,
	       jv_string(takes_owner ? text(a, "%s,uid=65534,gid=65534", options) : options));
	return out;
}

static const char *kind_of(const struct sandboxes *s, const struct box *b)
{
	const struct proxy_conf *c = s->conf.proxy;

	for (size_t i = 0; i < c->backend_count; i++)
		if (strcmp(c->backends[i].name, b->backend) == 0)
			return c->backends[i].kind;
	return "";
}

static struct jv host_config(const struct sandboxes *s, const struct box *b, struct arena *a)
{
	static const char *const all[] = {"ALL", NULL};
	static const char *const fixed[] = {"no-new-privileges", NULL};
	const char *const binds[] = {
		text(a, "%s:%s:ro", s->conf.proxy->sandboxes.inside, INSIDE_PATH), NULL};
	const struct limits *l = &b->limits;
	struct jv h = jv_object();

	jv_set(a, &h, "NetworkMode", jv_string("none"));
	jv_set(a, &h, "ReadonlyRootfs", jv_bool(true));
	jv_set(a, &h, "Binds", words(a, binds));
	jv_set(a, &h, "Tmpfs", scratch(a, l->disk, strcmp(kind_of(s, b), "docker") == 0));
	jv_set(a, &h, "Memory", jv_int(l->memory));
	jv_set(a, &h, "MemorySwap", jv_int(l->memory));
	jv_set(a, &h, "NanoCpus", jv_int(l->nano_cpus));
	jv_set(a, &h, "PidsLimit", jv_int(l->pids));
	jv_set(a, &h, "CapDrop", words(a, all));
	jv_set(a, &h, "SecurityOpt", words(a, fixed));
	return h;
}

int driver_create(struct sandboxes *s, const struct box *b, struct arena *a, struct reply *ret,
		  struct trouble *t)
{
	static const char *const first[] = {INSIDE_PATH, "idle", NULL};
	struct jv tree = jv_object();
	struct ask ask = {.who = &b->who, .backend = b->backend, .method = "POST"};

	jv_set(a, &tree, "Image", jv_string(b->image));
	jv_set(a, &tree, "User", jv_string(USER));
	jv_set(a, &tree, "Entrypoint", words(a, first));
	jv_set(a, &tree, "HostConfig", host_config(s, b, a));
	ask.target = text(a, API "/containers/create?name=%s", b->id);
	ask.body = written(a, &tree);
	if (!ask.target || !ask.body.len)
		return trouble_set(t, a, CODE_no_memory, "the request is too large");
	if (link_ask(s, &ask, a, ret, t) < 0)
		return -1;
	return ret->status == 201 ? 0 : driver_refused(ret, a, t);
}

/* A request without a body, of which only the status counts. */
static int plain(struct sandboxes *s, const struct ask *ask, struct arena *a, int *ret_status,
		 struct trouble *t)
{
	struct reply r;
	int rc = link_ask(s, ask, a, &r, t);

	if (rc < 0)
		return -1;
	*ret_status = r.status;
	rc = r.status >= 200 && r.status < 400 ? 0 : driver_refused(&r, a, t);
	reply_fini(&r);
	return rc;
}

int driver_start(struct sandboxes *s, const struct box *b, struct arena *a, struct trouble *t)
{
	const struct ask ask = {.who = &b->who,
				.backend = b->backend,
				.method = "POST",
				.target = text(a, API "/containers/%s/start", b->id)};
	int status;

	return plain(s, &ask, a, &status, t);
}

bool driver_delete(struct sandboxes *s, const struct box *b, bool own, struct trouble *t)
{
	struct arena *a = arena_create(REQUEST_ARENA);
	struct caller who = b->who;
	struct ask ask = {.who = &who, .backend = b->backend, .method = "DELETE"};
	struct trouble ignored = {0};
	int status = 0, rc;

	who.own = own;
	if (own)
		who.identity[0] = who.profile[0] = '\0';
	if (!a)
		return false;
	ask.target = text(a, API "/containers/%s?force=1&v=1", b->id);
	rc = plain(s, &ask, a, &status, t ? t : &ignored);
	if (t && rc < 0) { /* its strings live in our arena */
		t->code = t->hint = t->message = t->decision = t->retry_after = NULL;
		t->violations = jv_null();
		t->status = status;
	}
	arena_destroy(a);
	return rc == 0 || status == 404;
}

bool driver_exists(struct sandboxes *s, const struct box *b, bool *ret_known)
{
	struct arena *a = arena_create(REQUEST_ARENA);
	struct caller who = b->who;
	struct ask ask = {.who = &who, .backend = b->backend, .method = "GET"};
	struct trouble t = {0};
	int status = 0, rc = -1;

	who.own = true;
	who.identity[0] = who.profile[0] = '\0';

	if (a) {
		ask.target = text(a, API "/containers/%s/json", b->id);
		rc = plain(s, &ask, a, &status, &t);
	}
	arena_destroy(a);
	*ret_known = rc == 0 || status == 404;
	return rc == 0;
}

/* --- a command --- */

static void add_all(struct arena *a, struct jv *to, const struct jv *from)
{
	for (size_t i = 0; from && from->kind == JV_ARRAY && i < from->count; i++)
		jv_push(a, to, from->items[i]);
}

static struct span exec_body(const struct command *c, struct arena *a)
{
	struct jv tree = jv_object(), cmd = jv_array(), env = jv_array();

	jv_push(a, &cmd, jv_string(INSIDE_PATH));
	for (const char *const *w = c->words; *w; w++)
		jv_push(a, &cmd, jv_string(*w));
	add_all(a, &env, c->env);
	add_all(a, &env, c->more_env);
	jv_set(a, &tree, "AttachStdin", jv_bool(true));
	jv_set(a, &tree, "AttachStdout", jv_bool(true));
	jv_set(a, &tree, "AttachStderr", jv_bool(true));
	jv_set(a, &tree, "User", jv_string(USER));
	jv_set(a, &tree, "Cmd", cmd);
	if (env.count)
		jv_set(a, &tree, "Env", env);
	return written(a, &tree);
}

static int make_exec(struct sandboxes *s, struct ask *ask, const struct box *b, struct arena *a,
		     const char **ret_id, struct trouble *t)
{
	struct reply r;
	enum jv_fault fault;
	struct err err = {0};
	struct jv tree;
	int rc;

	ask->target = text(a, API "/containers/%s/exec", b->id);
	if (link_ask(s, ask, a, &r, t) < 0)
		return -1;
	if (r.status != 201) {
		rc = driver_refused(&r, a, t);
	} else if (jv_parse(a, buf_span(&r.body), &tree, &fault, &err) < 0 ||
		   !*jv_str(&tree, "Id", "")) {
		rc = trouble_set(t, a, CODE_unavailable, "the engine's answer names no command");
	} else {
		*ret_id = copy(a, jv_get(&tree, "Id"));
		rc = 0;
	}
	reply_fini(&r);
	return rc;
}

int driver_exec(struct sandboxes *s, const struct box *b, const struct command *c, struct arena *a,
		struct run *run, struct trouble *t)
{
	struct ask ask = {.who = c->who, .backend = b->backend, .method = "POST"};
	const char *id = "";
	struct reply r;

	ask.body = exec_body(c, a);
	if (!ask.body.len)
		return trouble_set(t, a, CODE_too_large, "the command is too long");
	if (make_exec(s, &ask, b, a, &id, t) < 0)
		return -1;
	ask.target = text(a, API "/exec/%s/start", id);
	ask.body = span_of("{\"Detach\":false,\"Tty\":false}");
	ask.upgrade = true;
	if (!ask.target || link_ask(s, &ask, a, &r, t) < 0)
		return -1;
	if (r.status != 101) {
		driver_refused(&r, a, t);
		reply_fini(&r);
		return -1;
	}
	run_attach(run, r.fd, buf_span(&r.early));
	r.fd = -1;
	reply_fini(&r);
	return 0;
}
