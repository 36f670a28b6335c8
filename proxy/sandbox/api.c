/* api.c - a request from its head to its answer, and what answers have in common. */
#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/clock.h"
#include "proxy/behalf.h"
#include "proxy/worker_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define ANSWER_MAX (48u << 20)

/* --- codes --- */

static const struct {
	const char *name;
	int status;
	const char *text, *hint;
} codes[CODE_COUNT] = {
	[CODE_NONE] = {"", 500, "", ""},
#define CODE(id, status, text, hint) [CODE_##id] = {#id, status, text, hint},
#include "proxy/sandbox/codes.def"
#undef CODE
};

const char *code_name(enum code c)
{
	return codes[c].name;
}

int code_status(enum code c)
{
	return codes[c].status;
}

const char *code_text(enum code c)
{
	return codes[c].text;
}

const char *code_hint(enum code c)
{
	return codes[c].hint;
}

int trouble_set(struct trouble *t, struct arena *a, enum code code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->status = codes[code].status;
	t->code = codes[code].name;
	t->hint = codes[code].hint;
	t->message = arena_strndup(a, text, strlen(text));
	if (!t->message)
		t->message = codes[code].text;
	t->violations = t->backends = jv_null();
	t->decision = NULL;
	return -1;
}

/* --- answers --- */

void api_answer(struct call *c, int status, const struct jv *tree)
{
	struct buf out;

	buf_init(&out, ANSWER_MAX);
	jv_write(&out, tree);
	buf_puts(&out, "\n");
	if (buf_spent(&out) || arena_spent(c->a)) {
		buf_clear(&out);
		buf_puts(&out, "{\"error\":{\"code\":\"no_memory\",\"message\":\"the answer is too "
			       "large\"}}\n");
		status = 503;
	}
	httpd_reply(c->r, status, "application/json", buf_span(&out));
	buf_fini(&out);
}

void api_row(struct call *c, const struct jv *tree)
{
	jv_write(&c->row, tree);
	buf_puts(&c->row, "\n");
}

static void add(struct arena *a, struct jv *to, const char *key, const char *value)
{
	if (value && *value)
		jv_set(a, to, key, jv_string(value));
}

static void add_list(struct arena *a, struct jv *to, const char *key, const struct jv *list)
{
	if (list->kind == JV_ARRAY && list->count)
		jv_set(a, to, key, *list);
}

/* What a worker has refused is on record by it; this API's own refusals by this. */
static void note_refusal(struct call *c)
{
	const struct trouble *t = &c->trouble;
	const char *op = c->route ? c->route->op : "sandbox.request";

	if (c->box && (t->status == 403 || t->status == 429))
		table_deny(c->s, c->box, op, t);
	if (!t->decision || !*t->decision)
		trail_refusal(c->s, op, &c->who, c->box ? c->box->id : NULL, t);
}

void api_fail(struct call *c)
{
	struct trouble *t = &c->trouble;
	struct jv tree = jv_object(), *e = jv_set(c->a, &tree, "error", jv_object());

	if (httpd_answered(c->r))
		return;
	if (!t->status)
		trouble_set(t, c->a, CODE_no_memory, "%s", code_text(CODE_no_memory));
	note_refusal(c);
	add(c->a, e, "code", t->code);
	add(c->a, e, "message", t->message);
	add(c->a, e, "hint", t->hint);
	add(c->a, e, "decision", t->decision);
	add_list(c->a, e, "violations", &t->violations);
	add_list(c->a, e, "backends", &t->backends);
	if (t->retry_after)
		httpd_reply_header(c->r, "Retry-After", t->retry_after);
	if (t->status == 401)
		httpd_reply_header(c->r, "WWW-Authenticate", "Bearer");
	api_answer(c, t->status, &tree);
}

bool api_wants(const struct call *c, const char *type)
{
	const char *accept = httpd_header(c->r, "accept");

	return accept && strcasestr(accept, type);
}

struct jv api_time(struct arena *a, int64_t seconds)
{
	char out[CLOCK_TEXT_MAX];
	char *dot;

	clock_format((uint64_t)seconds * 1000000000, out);
	dot = strchr(out, '.');
	if (dot)
		memcpy(dot, "Z", 2);
	return jv_string(arena_strndup(a, out, strlen(out)));
}

static struct jv limits_tree(struct arena *a, const struct limits *l)
{
	struct jv out = jv_object();

	jv_set(a, &out, "memory", jv_int(l->memory));
	jv_set(a, &out, "cpus", (struct jv){.kind = JV_REAL, .real = (double)l->nano_cpus / 1e9});
	jv_set(a, &out, "pids", jv_int(l->pids));
	jv_set(a, &out, "disk", jv_int(l->disk));
	jv_set(a, &out, "output", jv_int(l->output));
	return out;
}

static struct jv labels_tree(struct arena *a, const char *text)
{
	enum jv_fault fault;
	struct err err = {0};
	struct jv out;

	/* Written by jv_write(): it can be read. */
	return jv_parse(a, span_of(text), &out, &fault, &err) == 0 ? out : jv_object();
}

/* When it would end since nobody uses it; the table's lock is held. */
static struct jv idle_text(struct arena *a, const struct box *b)
{
	uint64_t now_ms = clock_boot_ms();
	int64_t now = (int64_t)(clock_unix_ns() / 1000000000);

	if (!b->idle_at_ms || b->idle_at_ms < now_ms)
		return jv_null();
	return api_time(a, now + (int64_t)((b->idle_at_ms - now_ms) / 1000));
}

struct jv api_box(struct call *c, const struct box *b)
{
	static const char *const states[] = {"creating", "running", "ending"};
	struct jv out = jv_object(), isolation = jv_object();
	struct arena *a = c->a;

	pthread_mutex_lock(&c->s->lock);
	jv_set(a, &out, "id", jv_string(b->id));
	jv_set(a, &out, "state", jv_string(states[b->state]));
	jv_set(a, &out, "profile", jv_string(b->who.profile));
	jv_set(a, &out, "backend", jv_string(b->backend));
	jv_set(a, &isolation, "level", jv_string(b->level));
	jv_set(a, &isolation, "runtime", jv_string(b->runtime));
	jv_set(a, &out, "isolation", isolation);
	jv_set(a, &out, "image", jv_string(b->image));
	jv_set(a, &out, "created", api_time(a, b->created));
	jv_set(a, &out, "expires", api_time(a, b->expires));
	jv_set(a, &out, "idle_expires", idle_text(a, b));
	jv_set(a, &out, "per_call", jv_bool(b->per_call));
	jv_set(a, &out, "labels", labels_tree(a, b->labels));
	jv_set(a, &out, "limits", limits_tree(a, &b->limits));
	pthread_mutex_unlock(&c->s->lock);
	return out;
}

/* --- who asks --- */

static void take_signs(struct call *c)
{
	const struct conf_listener *l = c->front->listener;
	struct ucred cred = {.pid = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
	socklen_t len = sizeof(cred);

	snprintf(c->who.listener, sizeof(c->who.listener), "%s", l->name);
	if (conf_is_tcp(l)) {
		connection_address(c->r->fd, c->who.address);
		return;
	}
	c->who.has_cred = getsockopt(c->r->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0;
	c->who.uid = cred.uid;
	c->who.gid = cred.gid;
	c->who.pid = cred.pid;
}

static bool take(const struct jv *from, const char *key, char *out, size_t size)
{
	const char *text = jv_str(from, key, "");

	if (strlen(text) >= size)
		return false;
	memcpy(out, text, strlen(text) + 1);
	return true;
}

static int understand(struct call *c, struct reply *r)
{
	enum jv_fault fault;
	struct err err = {0};

	if (r->status != 200) {
		driver_refused(r, c->a, &c->trouble);
		if (c->trouble.code && strcmp(c->trouble.code, "identity_unknown") == 0)
			c->trouble.status = 401;
		c->trouble.decision = NULL; /* there is no record but ours */
		return -1;
	}
	if (jv_parse(c->a, buf_span(&r->body), &c->about, &fault, &err) < 0 ||
	    !take(&c->about, "identity", c->who.identity, sizeof(c->who.identity)) ||
	    !take(&c->about, "owner", c->who.owner, sizeof(c->who.owner)) ||
	    !take(&c->about, "profile", c->who.profile, sizeof(c->who.profile)))
		return trouble_set(&c->trouble, c->a, CODE_unavailable,
				   "who asks has names that are too long for sandboxes");
	return 0;
}

int api_identify(struct call *c, const char *profile)
{
	struct ask ask = {.who = &c->who,
			  .backend = "",
			  .authorization = httpd_header(c->r, "authorization"),
			  .method = "GET",
			  .target = BEHALF_WHO};
	struct reply r;
	int rc;

	take_signs(c);
	if (strlen(profile) > SANDBOX_NAME_MAX)
		return trouble_set(&c->trouble, c->a, CODE_invalid, "profile is too long");
	snprintf(c->who.profile, sizeof(c->who.profile), "%s", profile);
	if (link_ask(c->s, &ask, c->a, &r, &c->trouble) < 0)
		return -1;
	rc = understand(c, &r);
	reply_fini(&r);
	return rc;
}

void api_terms(const struct call *c, struct terms *ret)
{
	const struct jv *box = jv_get(&c->about, "sandbox"), *limits = jv_get(&c->about, "limits");

	*ret = (struct terms){
		.image = jv_str(box, "image", ""),
		.lifetime_s = jv_num(box, "lifetime", 0),
		.idle_s = jv_num(box, "idle", 0),
		.most = {.memory = jv_num(limits, "memory", 0),
			 .nano_cpus = jv_num(limits, "nano_cpus", 0),
			 .pids = jv_num(limits, "pids", 0),
			 .disk = jv_num(box, "disk", 0),
			 .output = jv_num(box, "output", 0)},
		.per_call = jv_true(box, "per_call"),
	};
}

/* --- httpd.h --- */

static struct call *make_call(struct front *f, struct httpd_request *r)
{
	struct call *c = arena_take(r->arena, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct call){.front = f, .s = f->s, .r = r, .a = r->arena};
	buf_init(&c->row, 8u << 20);
	r->state = c;
	return c;
}

/* What nearly every path begins with: who asks, and which sandbox is meant. */
static int prepare(struct call *c, const char *id)
{
	if (c->route->identify && api_identify(c, "") < 0)
		return -1;
	if (!c->route->box)
		return 0;
	c->box = table_find(c->s, &c->who, id);
	if (!c->box)
		return trouble_set(&c->trouble, c->a, CODE_sandbox_not_found,
				   "there is no sandbox '%.40s'", id);
	/* It was made under this, which may be stricter than what its owner has. */
	memcpy(c->who.profile, c->box->who.profile, sizeof(c->who.profile));
	return 0;
}

void call_begin(void *arg, struct httpd_request *r)
{
	struct call *c = make_call(arg, r);
	const char *id = "";

	if (!c) {
		httpd_reply(r, 503, "application/json", span_of("{}\n"));
		return;
	}
	if (routes_find(c, &id) < 0 || prepare(c, id) < 0)
		api_fail(c);
	else if (c->route->begin)
		c->route->begin(c);
}

bool call_piece(void *arg, struct httpd_request *r, struct span piece)
{
	(void)arg;
	return exec_piece(r->state, piece);
}

void call_handle(void *arg, struct httpd_request *r)
{
	struct call *c = r->state;

	(void)arg;
	c->route->handle(c);
	if (!httpd_answered(r))
		api_fail(c);
}

/* Whoever hung up in the middle of a command leaves nobody who goes on with it. */
void call_done(void *arg, struct httpd_request *r)
{
	struct call *c = r->state;

	(void)arg;
	if (!c)
		return;
	if (c->run && c->pumps) {
		run_cut(c->run);
		run_to_end(c->run, -1);
	}
	if (c->run)
		run_unref(c->run);
	if (c->parent) {
		end_box(c->s, c->box, "sandbox.destroy", &c->trouble);
		table_touch(c->s, c->parent);
		table_unref(c->s, c->parent);
	}
	if (c->box)
		table_unref(c->s, c->box);
	arena_destroy(c->scratch);
	buf_fini(&c->row);
}
