#include "proxy/behalf.h"

#include "gate/base/io.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FOR_MAX  4096 /* bytes of the header */
#define TELL_MAX 65536

/* What such a connection is before its first request says for whom that is: nobody's. */
static const struct conf_listener nobody = {
	.name = "sandboxes", .socket = "", .tcp = "", .fd = -1, .otherwise = "", .callers = "-"};

int behalf_adopt(struct worker *w, int fd, struct err *err)
{
	if (io_nonblock(fd, err) < 0) {
		close(fd);
		return -1;
	}
	return connection_adopt_behalf(w, &nobody, fd, err);
}

/* --- the header --- */

static int wrong(struct exchange *x, enum reason reason, const char *value, const char *text)
{
	struct violation *v = violations_add(&x->call.refused, reason);

	v->rule = "canonical";
	v->field = "Sallyport-For";
	v->value = value ? value : "";
	v->text = text;
	return -1;
}

static const struct pair *find_header(const struct raw_head *raw)
{
	const struct pair *found = NULL;

	for (size_t i = 0; i < raw->header_count; i++) {
		const struct pair *h = &raw->headers[i];

		if (h->key.len != strlen(BEHALF_HEADER) ||
		    strncasecmp(h->key.at, BEHALF_HEADER, h->key.len) != 0)
			continue;
		if (found)
			return NULL;
		found = h;
	}
	return found;
}

static int read_tree(struct exchange *x, const struct raw_head *raw, struct jv *ret)
{
	const struct pair *h = find_header(raw);
	enum jv_fault fault;
	struct err err = {0};

	if (!h || h->value.len > FOR_MAX)
		return wrong(x, REASON_header, "", "it does not stand there once");
	if (jv_parse(x->arena, h->value, ret, &fault, &err) < 0 || ret->kind != JV_OBJECT)
		return wrong(x, REASON_header, "", "it is no JSON object");
	return 0;
}

static const struct conf_listener *find_listener(const struct proxy_conf *c, const char *name)
{
	for (size_t i = 0; i < c->listener_count; i++)
		if (c->listeners[i].sandbox_count && !strcmp(c->listeners[i].name, name))
			return &c->listeners[i];
	return NULL;
}

static int choose_service(struct exchange *x, const struct conf_listener *l, const char *name)
{
	struct worker *w = x->worker;

	for (size_t i = 0; i < l->sandbox_count; i++) {
		struct service *s = &w->services[l->sandboxes[i]];

		if (!strcmp(s->conf->name, name) || (!*name && i == 0)) {
			x->service = s;
			return 0;
		}
	}
	return wrong(x, REASON_header, arena_strndup(x->arena, name, strlen(name)),
		     "this listener makes no sandboxes on such a backend");
}

/* What the kernel, or the configuration, said to the process that asks. */
static void take_signs(struct exchange *x, const struct jv *tree)
{
	struct conn *c = x->conn;
	const char *callers = c->listener->callers;

	c->who = (struct identity){.name = "", .listener = c->listener->name};
	c->who.has_cred = jv_get(tree, "uid") != NULL;
	c->who.uid = (uint32_t)jv_num(tree, "uid", UINT32_MAX);
	c->who.gid = (uint32_t)jv_num(tree, "gid", UINT32_MAX);
	c->who.pid = (int32_t)jv_num(tree, "pid", -1);
	snprintf(c->address, sizeof(c->address), "%s", jv_str(tree, "address", ""));
	c->who.address = c->address;
	if (conf_is_tcp(c->listener))
		snprintf(c->owner, sizeof(c->owner), "tcp@%s", callers);
	else
		snprintf(c->owner, sizeof(c->owner), "uid-%u@%s", c->who.uid, callers);
}

static bool extends(const struct profile *p, const struct profile *base)
{
	for (; p; p = profile_parent(p))
		if (p == base)
			return true;
	return false;
}

/* The caller may ask to be judged more strictly, and in no other way otherwise. */
static int narrow(struct exchange *x, const char *wanted)
{
	struct conn *c = x->conn;
	const struct profile *base = engine_profile(x->worker->rules, c->who.profile);
	const struct profile *p = engine_profile(x->worker->rules, wanted);

	if (!*wanted || !c->known || !base)
		return 0;
	if (!p || !extends(p, base))
		return wrong(x, REASON_profile_not_stricter,
			     arena_strndup(x->arena, wanted, strlen(wanted)), "");
	c->who.profile = profile_name(p);
	return 0;
}

/* An owner whose name is in no configuration any more has sandboxes all the same, which must end.
 */
static int take_own(struct exchange *x, const struct jv *tree)
{
	struct conn *c = x->conn;

	c->own = true;
	snprintf(c->owner, sizeof(c->owner), "%s", jv_str(tree, "owner", ""));
	c->who.owner = c->owner;
	c->who.profile = BEHALF_PROFILE;
	c->who.has_cred = false;
	c->known = true;
	return 0;
}

static int recognise(struct exchange *x, const struct jv *tree)
{
	struct conn *c = x->conn;
	const char *identity = jv_str(tree, "identity", NULL);

	c->own = false;
	if (jv_true(tree, "own"))
		return take_own(x, tree);
	x->signs.named = identity && *identity ? identity : NULL;
	connection_recognise(c, &x->signs);
	if (!x->signs.named || c->identity)
		return 0;
	c->known = false;
	c->who.profile = "";
	return wrong(x, REASON_identity_unknown, identity,
		     "this listener lets in no such identity");
}

bool behalf_read(struct exchange *x, const struct raw_head *raw)
{
	const struct conf_listener *l;
	struct jv tree;

	x->conn->listener = &nobody;
	x->conn->known = false;
	x->conn->identity = NULL;
	if (read_tree(x, raw, &tree) < 0)
		return false;
	l = find_listener(x->worker->conf, jv_str(&tree, "listener", ""));
	if (!l) {
		wrong(x, REASON_header, "", "no listener with sandboxes is called so");
		return false;
	}
	x->conn->listener = l;
	take_signs(x, &tree);
	connection_read_token(x, raw->headers, raw->header_count);
	return choose_service(x, l, jv_str(&tree, "backend", "")) == 0 &&
	       recognise(x, &tree) == 0 && narrow(x, jv_str(&tree, "profile", "")) == 0;
}

/* --- answers --- */

static void answer(struct exchange *x, int status, const struct jv *tree)
{
	x->answer.kind = ANSWER_LOCAL;
	x->answer.status = x->http = status;
	x->answer.content_type = "application/json";
	buf_clear(&x->answer.body);
	jv_write(&x->answer.body, tree);
	exchange_ready(x);
}

static void say(struct exchange *x, struct jv *to, const char *key, const char *value)
{
	if (value && *value)
		jv_set(x->arena, to, key, jv_string(value));
}

static void copy_setting(struct exchange *x, struct jv *to, const char *name)
{
	const struct jv *v = jv_get(profile_settings(x->profile), name);

	if (v)
		jv_set(x->arena, to, name, *v);
}

static struct jv describe(struct exchange *x)
{
	static const char *const settings[] = {"sandbox", "limits", "images", "local_images"};
	const struct identity *who = &x->conn->who;
	struct jv tree = jv_object();

	say(x, &tree, "identity", who->name);
	say(x, &tree, "owner", who->owner);
	say(x, &tree, "profile", profile_name(x->profile));
	jv_set(x->arena, &tree, "minimum", jv_string(isolation_name(profile_minimum(x->profile))));
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		copy_setting(x, &tree, settings[i]);
	return tree;
}

bool behalf_answers(struct exchange *x)
{
	struct jv tree;

	if (strcmp(x->req.path, BEHALF_WHO) != 0)
		return false;
	x->recorded = true; /* what comes of it is */
	x->profile = x->conn->known ? engine_profile(x->worker->rules, x->conn->who.profile) : NULL;
	if (!x->profile || quarantine_refuses(x)) {
		if (!x->call.refused.count)
			violations_add(&x->call.refused, REASON_identity_unknown);
		x->decision.violations = x->call.refused;
		exchange_answer_refusal(x);
		return true;
	}
	tree = describe(x);
	x->status = "ok";
	answer(x, 200, &tree);
	return true;
}

static struct jv violations_tree(struct exchange *x)
{
	const struct violations *list = &x->decision.violations;
	struct jv out = jv_array();

	for (size_t i = 0; i < list->count; i++) {
		const struct violation *v = &list->list[i];
		struct jv *one = jv_push(x->arena, &out, jv_object());

		say(x, one, "reason", reason_name(v->reason));
		if (x->profile && profile_tells_codes_only(x->profile))
			continue;
		say(x, one, "rule", v->rule);
		say(x, one, "field", v->field);
		say(x, one, "value", v->value);
		say(x, one, "text", v->text && *v->text ? v->text : reason_what(v->reason));
		say(x, one, "hint", v->hint && *v->hint ? v->hint : reason_hint(v->reason));
	}
	return out;
}

void behalf_refusal(struct exchange *x)
{
	const struct violation *first = &x->decision.violations.list[0];
	bool codes = x->profile && profile_tells_codes_only(x->profile);
	struct jv tree = jv_object(), *e = jv_set(x->arena, &tree, "error", jv_object());

	say(x, e, "code", reason_name(first->reason));
	say(x, e, "message",
	    !codes && first->text && *first->text ? first->text : reason_what(first->reason));
	if (!codes)
		say(x, e, "hint",
		    first->hint && *first->hint ? first->hint : reason_hint(first->reason));
	say(x, e, "decision", x->id);
	jv_set(x->arena, e, "violations", violations_tree(x));
	if (x->call.workload.facts.kind == JV_OBJECT)
		say(x, &tree, "level", isolation_name(x->call.workload.level));
	buf_clear(&x->answer.body);
	jv_write(&x->answer.body, &tree);
	x->answer.content_type = "application/json";
}

void behalf_tell(const struct exchange *x, struct MHD_Response *r)
{
	const struct jv *runtime = jv_path(&x->call.workload.facts, "isolation.runtime");
	char text[160];

	if (x->call.op != OP_CONTAINER_CREATE || x->call.workload.facts.kind != JV_OBJECT)
		return;
	snprintf(text, sizeof(text), "%s %s", isolation_name(x->call.workload.level),
		 runtime && runtime->kind == JV_STRING ? runtime->str.at : "");
	MHD_add_response_header(r, BEHALF_ISOLATION, text);
}
