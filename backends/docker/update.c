/*
 * Updates: which container a create replaces, and what that one was, in the
 * words in which the create is read.  What a client sends back of what inspect
 * showed it holds the engine's own choices; they are read as what they are.
 */
#include "backends/docker/docker_priv.h"
#include "gate/base/hash.h"

#include <string.h>

/* --- whose the new one is --- */

const char *docker_maker(const struct backend_call *call)
{
	if (call->op != OP_CONTAINER_CREATE || call->replaces.kind != JV_OBJECT)
		return call->owner;
	return jv_str(&call->replaces, "owner", "");
}

static const struct {
	const char *label, *fact;
} standards[] = {{GATE_LABEL_PROFILE, "profile"},
		 {GATE_LABEL_ISOLATION, "isolation"},
		 {GATE_LABEL_LISTENER, "listener"}};

void docker_keep_standard(struct backend_call *call, struct jv *labels)
{
	for (size_t i = 0; i < sizeof(standards) / sizeof(*standards); i++) {
		const char *was = jv_str(&call->replaces, standards[i].fact, "");

		if (*was)
			jv_set(call->arena, labels, standards[i].label, jv_string(was));
	}
}

/* The gate writes these itself; a request that repeats what inspect showed has the old ones. */
static bool is_written_by_gate(struct span label)
{
	static const char *const written[] = {GATE_LABEL_OWNER,     GATE_LABEL_ID,
					      GATE_LABEL_IMAGE,     GATE_LABEL_IMAGE_OWNER,
					      GATE_LABEL_IMAGE_ID,  GATE_LABEL_PROFILE,
					      GATE_LABEL_ISOLATION, GATE_LABEL_LISTENER};

	for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++)
		if (span_is(label, written[i]))
			return true;
	return false;
}

static bool names_replaced(struct span label)
{
	static const char *const labels[] = {
#define REPLACES_LABEL(label, doc) label,
#define REPLACES_NAME(doc)
#include "backends/docker/replaces.def"
#undef REPLACES_LABEL
#undef REPLACES_NAME
	};

	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++)
		if (span_is(label, labels[i]))
			return true;
	return false;
}

bool docker_skips_label(const struct docker_reading *r, struct span label)
{
	return r->update && (is_written_by_gate(label) || names_replaced(label));
}

static void drop_gates_labels(struct backend_call *call, struct jv *holder)
{
	const struct jv *labels = jv_get(holder, "Labels");
	struct jv rest = jv_object();

	if (!labels || labels->kind != JV_OBJECT)
		return;
	for (size_t i = 0; i < labels->count; i++)
		if (!is_written_by_gate(labels->members[i].key))
			jv_add(call->arena, &rest, labels->members[i].key,
			       labels->members[i].value);
	jv_set(call->arena, holder, "Labels", rest);
}

static void drop_all_gates_labels(struct backend_call *call)
{
	struct jv *body = &docker_state(call)->body;
	const struct jv *mounts = jv_path(body, "HostConfig.Mounts");

	drop_gates_labels(call, body);
	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++) {
		struct jv *options = (struct jv *)jv_get(&mounts->items[i], "VolumeOptions");

		if (options && options->kind == JV_OBJECT)
			drop_gates_labels(call, options);
	}
}

/* --- what a container was, and what it would be if it were made again now --- */

/* What tools leave out, since it is the image's: a new image may say otherwise. */
static struct jv without_user(struct backend_call *call, const struct jv *config,
			      const struct jv *image)
{
	const char *user = jv_str(config, "User", "");
	struct jv copy = jv_object();
	bool images = strcmp(user, jv_str(jv_get(image, "Config"), "User", "")) == 0;

	for (size_t i = 0; i < config->count; i++)
		if (!images || !span_is(config->members[i].key, "User"))
			jv_add(call->arena, &copy, config->members[i].key,
			       config->members[i].value);
	return copy;
}

struct parting {
	struct docker *d;
	struct backend_call *call;
	const struct jv *doc;
	const struct lookup *image, *now; /* what it was made of; what its name stands for now */
};

static bool begin(const struct parting *p, const struct jv *config, struct docker_reading *ret)
{
	if (!docker_begin_made(p->d, p->call, p->doc, config, ret))
		return false;
	ret->update = true;
	ret->old_id = ret->id;
	return true;
}

static bool read_before(const struct parting *p, struct jv *ret)
{
	struct docker_reading r;

	if (!begin(p, jv_get(p->doc, "Config"), &r))
		return false;
	docker_read_made_as(&r, jv_str(p->doc, "Image", ""), p->image);
	docker_read_user(&r, "", true);
	*ret = r.facts;
	if (!docker_read_workload(&r))
		return false;
	*ret = r.facts;
	return true;
}

static bool read_again(const struct parting *p)
{
	struct jv *config = arena_take(p->call->arena, sizeof(*config));
	struct docker_reading r;

	if (!config)
		return false;
	*config = without_user(p->call, jv_get(p->doc, "Config"), &p->image->body);
	if (!begin(p, config, &r))
		return false;
	docker_read_image(&r, docker_given_image(&r), p->now);
	p->call->instead = (struct violation){.reason = REASON_NONE}; /* it is a fact here */
	docker_read_user(&r, jv_str(jv_get(&p->now->body, "Config"), "User", ""),
			 p->now->status == 200);
	return docker_read_workload(&r);
}

/* Everything that must be there to read it; false: not yet, or refused. */
static bool gather(struct parting *p)
{
	struct backend_call *call = p->call;
	const char *id = jv_str(p->doc, "Image", "");
	struct docker_reading r;

	if (!docker_know(p->d, call) || !docker_begin_made(p->d, call, p->doc, NULL, &r))
		return false;
	p->image = docker_ask(call, docker_target(call, "/images/", span_of(id), "/json"), "images",
			      id);
	p->now = docker_ask_image(call, docker_given_image(&r));
	return p->image && p->now;
}

static struct jv told(const struct parting *p, struct jv workload, const char *by)
{
	struct docker_thing thing = docker_container_thing(p->doc);
	struct arena *a = p->call->arena;
	struct jv ret = jv_object();

	jv_set(a, &ret, "id", jv_string(thing.id));
	jv_set(a, &ret, "name", jv_string(thing.name));
	jv_set(a, &ret, "owner", jv_string(docker_owner(p->call, &thing)));
	jv_set(a, &ret, "by", jv_string(by));
	for (size_t i = 0; i < sizeof(standards) / sizeof(*standards); i++) {
		const char *is = jv_str(thing.labels, standards[i].label, "");

		if (*is)
			jv_set(a, &ret, standards[i].fact, jv_string(is));
	}
	jv_set(a, &workload, "name", jv_string(thing.name));
	jv_set(a, &ret, "workload", workload);
	return ret;
}

/* --- what takes a container away --- */

static bool is_nameless(const struct jv *mount)
{
	const char *name = jv_str(mount, "Name", "");

	return strcmp(jv_str(mount, "Type", ""), "volume") == 0 && hash_is_hex(span_of(name));
}

/* Volumes without a name go with the container, if it is said so or it removes itself. */
static struct jv what_is_lost(const struct parting *p)
{
	const struct jv *mounts = jv_get(p->doc, "Mounts");
	bool itself = jv_true(jv_get(p->doc, "HostConfig"), "AutoRemove");
	bool said = p->call->op == OP_CONTAINER_REMOVE && docker_query_true(p->call->req, "v");
	struct jv list = jv_array();

	if (!said && !(itself && p->call->op != OP_CONTAINER_RENAME))
		return list;
	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++)
		if (is_nameless(&mounts->items[i]))
			jv_push(p->call->arena, &list,
				jv_string(jv_str(&mounts->items[i], "Destination", "")));
	return list;
}

/* What cannot be read cannot be made again. */
static void say_why_not(struct backend_call *call)
{
	struct violation first = call->refused.list[0], *v;

	if (!call->refused.count || reason_status(first.reason) >= 500)
		return;
	call->refused = (struct violations){.count = 0};
	v = docker_refuse(call, REASON_update_would_not_return, first.field, first.value);
	v->text = docker_text(call, "%s: %s: %s", reason_what(REASON_update_would_not_return),
			      reason_name(first.reason),
			      first.text && *first.text ? first.text : reason_what(first.reason));
}

void docker_read_parting(struct docker *d, struct backend_call *call, const struct jv *doc)
{
	struct parting p = {.d = d, .call = call, .doc = doc};
	struct jv before, lost;

	if (gather(&p) && read_before(&p, &before) && read_again(&p)) {
		call->replaces = told(&p, before, "name");
		call->remembers = true;
		jv_set(call->arena, &call->workload.facts, "name",
		       jv_string(docker_container_thing(doc).name));
		lost = what_is_lost(&p);
		if (lost.count)
			jv_set(call->arena, &call->replaces, "loses", lost);
	}
	say_why_not(call);
}

bool docker_parts(enum operation op)
{
	return op == OP_CONTAINER_STOP || op == OP_CONTAINER_KILL || op == OP_CONTAINER_REMOVE ||
	       op == OP_CONTAINER_RENAME;
}

/* --- which one a create replaces --- */

/* One that is there, if the caller may do everything with it.  False: not known yet. */
static bool take_present(struct docker *d, struct backend_call *call, struct span name,
			 const char *by)
{
	const struct lookup *answer =
		docker_ask(call, docker_target(call, "/containers/", name, "/json"), "containers",
			   docker_whole(call, name));
	struct parting p = {.d = d, .call = call, .doc = answer ? &answer->body : NULL};
	struct docker_thing thing;
	struct jv before;

	if (!answer || answer->status != 200 || answer->body.kind != JV_OBJECT)
		return answer != NULL;
	thing = docker_container_thing(p.doc);
	if (docker_access(call, &thing) != ACCESS_FULL || docker_is_gates_own(call, &thing))
		return true;
	if (!gather(&p) || !read_before(&p, &before))
		return false;
	call->replaces = told(&p, before, by);
	return true;
}

/* False: not known yet. */
static bool take_remembered(struct backend_call *call, const char *name)
{
	const struct lookup *answer = docker_ask_remembered(call, name);

	if (answer && answer->status == 200 && answer->body.kind == JV_OBJECT)
		call->replaces = answer->body;
	return answer != NULL;
}

/* By a label of the request; false: not known yet. */
static bool take_labelled(struct docker *d, struct backend_call *call)
{
	static const char *const labels[] = {
#define REPLACES_LABEL(label, doc) label,
#define REPLACES_NAME(doc)
#include "backends/docker/replaces.def"
#undef REPLACES_LABEL
#undef REPLACES_NAME
	};
	const struct jv *given = jv_get(&docker_state(call)->body, "Labels");

	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
		const char *old = jv_str(given, labels[i], "");

		if (*old && call->replaces.kind == JV_NULL &&
		    !take_present(d, call, span_of(old), "label"))
			return false;
	}
	return true;
}

bool docker_find_replaced(struct docker *d, struct backend_call *call)
{
	struct span name = docker_query_value(call->req, "name");

	call->replaces = jv_null();
	if (!call->updates)
		return true;
	if (!take_labelled(d, call))
		return false;
	if (name.len && *name.at == '/')
		name = span_skip(name, 1);
	if (name.len && call->replaces.kind == JV_NULL &&
	    !take_remembered(call, docker_whole(call, name)))
		return false;
	if (name.len && call->replaces.kind == JV_NULL && !take_present(d, call, name, "name"))
		return false;
	if (call->replaces.kind == JV_OBJECT)
		drop_all_gates_labels(call);
	return true;
}

/* Of a container that is there now: what stood under its name before. */
bool docker_find_predecessor(struct backend_call *call)
{
	call->replaces = jv_null();
	return !call->updates || take_remembered(call, call->object.name);
}

const char *docker_replaced_id(const struct backend_call *call)
{
	return call->replaces.kind == JV_OBJECT ? jv_str(&call->replaces, "id", "") : NULL;
}
