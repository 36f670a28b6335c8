/* OCSF 1.8: one JSON object a record. */
#include "audit/export_priv.h"

#include <stdio.h>
#include <string.h>

#define VERSION "1.8.0"

struct making {
	const struct fields *f;
	struct arena *a;
	struct jv event;
};

static struct jv *put(struct making *m, struct jv *to, const char *key, struct jv value)
{
	return jv_set(m->a, to, key, value);
}

/* Only what is there. */
static void put_str(struct making *m, struct jv *to, const char *key, const char *value)
{
	if (*value)
		put(m, to, key, jv_string(value));
}

static void put_at(struct making *m, struct jv *to, const char *key, const char *path)
{
	const struct jv *v = export_at(m->f, path);

	if (v)
		put(m, to, key, *v);
}

static const char *keep(struct making *m, const char *text)
{
	const char *copy = arena_strndup(m->a, text, strlen(text));

	return copy ? copy : "";
}

static void put_class(struct making *m)
{
	const struct export_type *t = export_type_of(m->f);
	int activity =
		t->ocsf_activity ? t->ocsf_activity : export_operation_of(m->f)->ocsf_activity;

	put(m, &m->event, "class_uid", jv_int(t->ocsf_class));
	put(m, &m->event, "category_uid", jv_int(t->ocsf_class / 1000));
	put(m, &m->event, "activity_id", jv_int(activity));
	if (activity == 99)
		put(m, &m->event, "activity_name",
		    jv_string(*m->f->op ? m->f->op : m->f->type_name));
	put(m, &m->event, "type_uid", jv_int((int64_t)t->ocsf_class * 100 + activity));
	put(m, &m->event, "time", jv_int((int64_t)(m->f->t_ns / 1000000)));
}

static void put_severity(struct making *m)
{
	static const struct {
		int id;
		const char *name;
	} severities[] = {
		[SEVERITY_USUAL] = {1, "Informational"},
		[SEVERITY_DENIED] = {3, "Medium"},
		[SEVERITY_ALARM] = {5, "Critical"},
	};
	enum export_severity s = export_severity_of(m->f);

	put(m, &m->event, "severity_id", jv_int(severities[s].id));
	put(m, &m->event, "severity", jv_string(severities[s].name));
}

static void put_metadata(struct making *m)
{
	struct jv *meta = put(m, &m->event, "metadata", jv_object()), *product, *profiles;

	put(m, meta, "version", jv_string(VERSION));
	product = put(m, meta, "product", jv_object());
	put(m, product, "name", jv_string("Sallyport"));
	put(m, product, "vendor_name", jv_string("Sallyport"));
	put(m, product, "version", jv_string(SALLYPORT_VERSION));
	put_str(m, meta, "uid", m->f->id);
	put_str(m, meta, "correlation_uid", *m->f->of ? m->f->of : m->f->id);
	put_str(m, meta, "log_name", m->f->log);
	put_at(m, meta, "log_version", "v");
	put(m, meta, "sequence", jv_int((int64_t)m->f->seq));
	put_str(m, meta, "original_time", m->f->time);
	if (!*m->f->verdict)
		return;
	profiles = put(m, meta, "profiles", jv_array());
	jv_push(m->a, profiles, jv_string("security_control"));
}

/* Strings, as OCSF has ids; a number is written out. */
static void put_digits(struct making *m, struct jv *to, const char *key, const char *path)
{
	const struct jv *v = export_at(m->f, path);
	char text[24];

	if (!v || v->kind != JV_INT)
		return;
	snprintf(text, sizeof(text), "%lld", (long long)v->i);
	put(m, to, key, jv_string(keep(m, text)));
}

static void put_actor(struct making *m)
{
	struct jv *actor = put(m, &m->event, "actor", jv_object()), *user, *part;

	user = put(m, actor, "user", jv_object());
	put(m, user, "name", jv_string(*m->f->identity ? m->f->identity : "unknown"));
	put_digits(m, user, "uid", "actor.auth.uid");
	if (*m->f->owner) {
		part = put(m, user, "org", jv_object());
		put(m, part, "name", jv_string(m->f->owner));
	}
	if (!export_at(m->f, "actor.auth.pid"))
		return;
	part = put(m, actor, "process", jv_object());
	put_at(m, part, "pid", "actor.auth.pid");
}

/* Callers on this machine have no address; the listener tells where they came in. */
static void put_endpoint(struct making *m)
{
	struct jv *src = put(m, &m->event, "src_endpoint", jv_object());
	const char *address = jv_str(jv_path(&m->f->tree, "actor.auth"), "addr", "");

	if (*address)
		put(m, src, "ip", jv_string(address));
	put(m, src, "name", jv_string(*m->f->listener ? m->f->listener : "unknown"));
}

static void put_request(struct making *m)
{
	struct jv *api = put(m, &m->event, "api", jv_object()), *part, *url;

	put(m, api, "operation", jv_string(*m->f->op ? m->f->op : m->f->type_name));
	part = put(m, api, "service", jv_object());
	put_at(m, part, "name", "backend");
	if (part->count == 0)
		put(m, part, "name", jv_string("unknown"));
	part = put(m, api, "request", jv_object());
	put_str(m, part, "uid", *m->f->of ? m->f->of : m->f->id);
	if (m->f->http) {
		part = put(m, api, "response", jv_object());
		put(m, part, "code", jv_int(m->f->http));
		put_at(m, part, "error", "outcome.err");
		part = put(m, &m->event, "http_response", jv_object());
		put(m, part, "code", jv_int(m->f->http));
	}
	if (!*m->f->method)
		return;
	part = put(m, &m->event, "http_request", jv_object());
	put(m, part, "http_method", jv_string(m->f->method));
	put_at(m, part, "length", "req.bytes");
	url = put(m, part, "url", jv_object());
	put(m, url, "path", jv_string(m->f->path));
}

static void put_resources(struct making *m)
{
	const struct jv *res = jv_get(&m->f->tree, "res");
	struct jv *list;

	if (!res || res->kind != JV_ARRAY || !res->count)
		return;
	list = put(m, &m->event, "resources", jv_array());
	for (size_t i = 0; i < res->count; i++) {
		struct jv *one = jv_push(m->a, list, jv_object());

		put_str(m, one, "type", jv_str(&res->items[i], "type", ""));
		put_str(m, one, "name", jv_str(&res->items[i], "name", ""));
		put_str(m, one, "uid", jv_str(&res->items[i], "id", ""));
	}
}

/* 1 allowed, 2 denied, 3 observed: what enforcement would have refused, 4 modified. */
static void put_verdict(struct making *m)
{
	bool allow = strcmp(m->f->verdict, "allow") == 0;
	bool observed = allow && *m->f->would && strcmp(m->f->would, "allow") != 0;
	int action = !allow ? 2 : observed ? 3 : jv_get(&m->f->tree, "mut") ? 4 : 1;
	struct jv *list, *one, *policy;

	put(m, &m->event, "action_id", jv_int(action));
	put(m, &m->event, "disposition_id", jv_int(!allow ? 2 : observed ? 15 : 1));
	list = put(m, &m->event, "authorizations", jv_array());
	one = jv_push(m->a, list, jv_object());
	put(m, one, "decision", jv_string(m->f->verdict));
	policy = put(m, one, "policy", jv_object());
	put_at(m, policy, "name", "pol.profile");
	put_at(m, policy, "version", "pol.profile_sha256");
	put_at(m, policy, "uid", "pol.rule");
	put(m, policy, "is_applied", jv_bool(!observed));
	if (!*m->f->rule)
		return;
	one = put(m, &m->event, "firewall_rule", jv_object());
	put(m, one, "name", jv_string(m->f->rule));
	put(m, one, "uid", jv_string(m->f->rule));
}

static void put_status(struct making *m)
{
	const char *status = m->f->status;
	int id = 0;

	if (*status)
		id = strcmp(status, "ok") == 0 ? 1 : strcmp(status, "unknown") == 0 ? 0 : 2;
	else if (*m->f->verdict)
		id = strcmp(m->f->verdict, "allow") == 0 ? 1 : 2;
	else if (m->f->type != RECORD_POLICY_REJECT)
		id = 1;
	else
		id = 2;
	put(m, &m->event, "status_id", jv_int(id));
	put_str(m, &m->event, "status_code", m->f->reason);
	put_str(m, &m->event, "status_detail", status);
	put_at(m, &m->event, "duration", "outcome.dur_ms");
	put_str(m, &m->event, "message", *m->f->text ? m->f->text : export_type_of(m->f)->name);
}

static void put_api(struct making *m)
{
	struct jv *traffic;

	put_actor(m);
	put_endpoint(m);
	put_request(m);
	put_resources(m);
	if (!export_at(m->f, "outcome.in") && !export_at(m->f, "outcome.out"))
		return;
	traffic = put(m, &m->event, "traffic", jv_object());
	put_at(m, traffic, "bytes_in", "outcome.in");
	put_at(m, traffic, "bytes_out", "outcome.out");
}

/* What a class requires besides. */
static void put_required(struct making *m)
{
	struct jv *part;
	char room[192];

	switch (export_type_of(m->f)->ocsf_class) {
	case 6003:
		put_api(m);
		return;
	case 6002:
		part = put(m, &m->event, "app", jv_object());
		put(m, part, "name", jv_string("Sallyport"));
		put(m, part, "vendor_name", jv_string("Sallyport"));
		return;
	case 3004:
		part = put(m, &m->event, "entity", jv_object());
		put(m, part, "type", jv_string("policy"));
		put(m, part, "name", jv_string(*m->f->profile ? m->f->profile : "profiles"));
		put_at(m, part, "uid", "pol.profile_sha256");
		put_at(m, part, "version", "pol.profile_sha256");
		return;
	case 2004:
		part = put(m, &m->event, "finding_info", jv_object());
		put(m, part, "title", jv_string(export_type_of(m->f)->name));
		put(m, part, "uid", jv_string(keep(m, export_place(m->f, room))));
		put(m, &m->event, "is_alert", jv_bool(true));
		return;
	default: /* 1008 */
		put(m, &m->event, "log_name", jv_string(m->f->log));
		put(m, &m->event, "log_provider", jv_string("Sallyport"));
		put_actor(m);
		return;
	}
}

/* Until 1.9 has a place for them. */
static void put_unmapped(struct making *m)
{
	static const char *const paths[] = {
		"h",        "prev",     "would",      "mode",     "judged", "cause",
		"class",    "count",    "violations", "warnings", "mut",    "exceptions",
		"approval", "override", "masked",     "trunc",    "size",   "root"};
	struct jv *un = put(m, &m->event, "unmapped", jv_object());

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		put_at(m, un, paths[i], paths[i]);
}

void export_ocsf(const struct fields *f, struct arena *a, struct buf *out)
{
	struct making m = {.f = f, .a = a, .event = jv_object()};

	put_class(&m);
	put_severity(&m);
	put_metadata(&m);
	put_required(&m);
	if (*f->verdict)
		put_verdict(&m);
	put_status(&m);
	put_unmapped(&m);
	jv_write(out, &m.event);
}
