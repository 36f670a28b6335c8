#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- what an existing container is --- */

/* The name that was judged, where the gate had pinned it to what it stood for. */
const char *docker_given_image(const struct docker_reading *r)
{
	const char *given = jv_str(r->config, "Image", "");
	const struct jv *labels = jv_get(r->config, "Labels");
	const char *judged = jv_str(labels, GATE_LABEL_IMAGE, "");
	struct span rest = span_of(given), name;

	/* Where ids are sent, what is shown is any name of the image. */
	if (docker_state(r->call)->flavor->image_by_id_only)
		return *judged && *jv_str(labels, GATE_LABEL_OWNER, "") ? judged : given;
	return *judged && span_cut(&rest, '@', &name) && span_is(name, judged) ? judged : given;
}

/*
 * The name was resolved when it was made, and may mean another image by now;
 * where the content came from is asked of the image itself.  An id says
 * nothing by itself.
 */
void docker_read_made_as(struct docker_reading *r, const char *id, const struct lookup *answer)
{
	const char *given = docker_given_image(r);
	struct docker_reference ref = docker_reference(r->call->arena, span_of(given));

	if (ref.valid && !docker_looks_like_id(span_of(given)))
		docker_read_made_image(r, given, id, answer);
	else
		docker_read_image(r, given, answer);
	r->call->instead = (struct violation){.reason = REASON_NONE};
}

static bool read_made_image(struct docker_reading *r, const struct jv *doc,
			    const struct lookup **ret)
{
	const char *id = jv_str(doc, "Image", "");

	*ret = docker_ask(r->call, docker_target(r->call, "/images/", span_of(id), "/json"),
			  "images", id);
	if (*ret)
		docker_read_made_as(r, id, *ret);
	return *ret != NULL;
}

struct jv docker_without_defaults(struct backend_call *call, const struct jv *host)
{
	struct jv copy = jv_object();
	int64_t memory = jv_num(host, "Memory", 0);

	for (size_t i = 0; i < host->count; i++) {
		const struct jv_member *m = &host->members[i];
		bool swap = span_is(m->key, "MemorySwap") && memory > 0 &&
			    m->value.kind == JV_INT && m->value.i == memory * 2;
		bool shm = span_is(m->key, "ShmSize") && m->value.kind == JV_INT &&
			   m->value.i == 67108864;

		if (!swap && !shm)
			jv_add(call->arena, &copy, m->key, m->value);
	}
	return copy;
}

static bool begin(struct docker *d, struct backend_call *call, const struct jv *doc,
		  const struct jv *host, struct docker_reading *ret)
{
	const struct docker_info *info = docker_know(d, call);
	const struct jv *config = jv_get(doc, "Config");
	const struct jv *networks = jv_path(doc, "NetworkSettings.Networks");
	struct jv *own = arena_take(call->arena, sizeof(*own));

	if (!info || !own)
		return false;
	if (!config || config->kind != JV_OBJECT || !host || host->kind != JV_OBJECT) {
		docker_refuse(call, REASON_engine_reply, "HostConfig", NULL);
		return false;
	}
	if (!networks || networks->kind != JV_OBJECT) {
		docker_refuse(call, REASON_engine_reply, "NetworkSettings.Networks", NULL);
		return false;
	}
	if (!docker_vet(call, SCHEMA_HOST, host, "HostConfig"))
		return false;
	*own = docker_without_defaults(call, host);
	*ret = (struct docker_reading){
		.d = d,
		.call = call,
		.info = info,
		.config = config,
		.host = own,
		.networking = networks,
		.made = true,
		.id = jv_str(doc, "Id", ""),
		.old_id = docker_replaced_id(call),
		.facts = jv_object(),
	};
	return true;
}

bool docker_begin_made(struct docker *d, struct backend_call *call, const struct jv *doc,
		       const struct jv *config, struct docker_reading *ret)
{
	if (!begin(d, call, doc, jv_get(doc, "HostConfig"), ret))
		return false;
	if (config)
		ret->config = config;
	return true;
}

/* What the image brings is none of the container's own, when that is compared with another. */
static struct jv without_images_env(struct backend_call *call, const struct jv *config,
				    const struct jv *image)
{
	const struct jv *env = jv_get(config, "Env"), *given = jv_path(image, "Config.Env");
	struct jv copy = jv_object(), rest = jv_array();

	for (size_t i = 0; env && env->kind == JV_ARRAY && i < env->count; i++) {
		bool images = false;

		for (size_t k = 0; given && given->kind == JV_ARRAY && k < given->count; k++)
			images = images || jv_equal(&env->items[i], &given->items[k]);
		if (!images)
			jv_push(call->arena, &rest, env->items[i]);
	}
	for (size_t i = 0; i < config->count; i++)
		jv_add(call->arena, &copy, config->members[i].key, config->members[i].value);
	jv_set(call->arena, &copy, "Env", rest);
	return copy;
}

bool docker_read_made(struct docker *d, struct backend_call *call, const struct jv *doc,
		      const struct jv *host, struct docker_reading *ret)
{
	const struct lookup *image;
	struct jv *config;

	if (!begin(d, call, doc, host, ret) || !read_made_image(ret, doc, &image))
		return false;
	if (ret->old_id) {
		config = arena_take(call->arena, sizeof(*config));
		if (!config)
			return false;
		*config = without_images_env(call, ret->config, &image->body);
		ret->config = config;
	}
	docker_read_user(ret, "", true);
	return docker_read_workload(ret);
}

/* --- start, restart, unpause --- */

bool docker_starts(enum operation op)
{
	return op == OP_CONTAINER_START || op == OP_CONTAINER_RESTART || op == OP_CONTAINER_UNPAUSE;
}

/* Engines before 1.24 took a HostConfig here. */
static bool has_start_body(struct backend_call *call)
{
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};
	struct jv doc;

	if (call->op != OP_CONTAINER_START || !call->req->body.len)
		return false;
	if (jv_parse(call->arena, call->req->body, &doc, &fault, &err) < 0)
		return fault != JV_FAULT_EMPTY;
	return doc.kind != JV_NULL && (doc.kind != JV_OBJECT || doc.count);
}

void docker_step_start(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct docker_reading r;
	const struct jv *doc;

	if (has_start_body(call)) {
		docker_refuse(call, REASON_start_body, "body", NULL);
		return;
	}
	doc = docker_container(d, call, st->name);
	if (!doc)
		return;
	st->target = call->object.id;
	if (docker_find_predecessor(call))
		docker_read_made(d, call, doc, jv_get(doc, "HostConfig"), &r);
}

/* --- attach --- */

static void check_input(struct backend_call *call)
{
	struct violation *v;

	if (!docker_query_true(call->req, "stdin") || call->reply == REPLY_HIJACK)
		return;
	v = docker_refuse(call, REASON_upgrade, "query.stdin", "1");
	v->text = "input needs a connection upgrade";
	v->hint = "Send Connection: Upgrade and Upgrade: tcp, or leave stdin out.";
}

/* Who talks to what runs there is held to what a command would be held to. */
void docker_step_attach(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct docker_reading r;
	const struct jv *doc;

	check_input(call);
	doc = docker_container(d, call, st->name);
	if (!doc)
		return;
	st->target = call->object.id;
	if (docker_find_predecessor(call))
		docker_read_made(d, call, doc, jv_get(doc, "HostConfig"), &r);
}

/* --- update --- */

/* For these, zero is a value and not "leave it". */
static bool is_pointer(struct span key)
{
	return span_is(key, "PidsLimit") || span_is(key, "OomKillDisable") ||
	       span_is(key, "MemorySwappiness");
}

static bool changes(const struct jv_member *m)
{
	if (is_pointer(m->key))
		return m->value.kind != JV_NULL;
	if (span_is(m->key, "RestartPolicy"))
		return *jv_str(&m->value, "Name", "") != '\0';
	return !jv_is_neutral(&m->value);
}

/* The container's configuration as it would be afterwards. */
static struct jv updated(struct backend_call *call, const struct jv *host, const struct jv *body)
{
	struct jv copy = jv_object();

	for (size_t i = 0; host && host->kind == JV_OBJECT && i < host->count; i++)
		jv_add(call->arena, &copy, host->members[i].key, host->members[i].value);
	for (size_t i = 0; i < body->count; i++)
		if (changes(&body->members[i]))
			jv_set_span(call->arena, &copy, body->members[i].key,
				    body->members[i].value);
	return copy;
}

void docker_step_update(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct docker_reading r;
	const struct jv *doc;
	struct jv *host = arena_take(call->arena, sizeof(*host));

	if (!host || !docker_body(call, SCHEMA_UPDATE))
		return;
	doc = docker_container(d, call, st->name);
	if (!doc)
		return;
	st->target = call->object.id;
	*host = updated(call, jv_get(doc, "HostConfig"), &st->body);
	docker_read_made(d, call, doc, host, &r);
}
