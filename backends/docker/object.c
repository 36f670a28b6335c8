#include "backends/docker/docker_priv.h"

#include <string.h>

void docker_object(struct backend_call *call, const struct docker_thing *t)
{
	const char *owner = docker_owner(call, t);

	call->object = (struct object){
		.kind = docker_kind_name(t->kind),
		.id = t->id,
		.name = t->name,
		.owner = owner,
		.mine = strcmp(owner, call->owner) == 0,
	};
}

bool docker_tells_state(const struct jv *doc)
{
	const struct jv *running = jv_get(jv_get(doc, "State"), "Running");

	return running && running->kind == JV_BOOL;
}

/* Whatever is not there for the caller is refused in the same words. */
static const void *absent(struct backend_call *call, const char *kind, const char *text)
{
	struct violation *v = docker_refuse(call, REASON_owner, kind, NULL);

	v->text = text;
	return NULL;
}

/* The inspected document, or NULL: not known yet, or refused. */
static const struct jv *inspect(struct backend_call *call, const struct lookup *answer,
				const char *kind, const char *missing)
{
	if (!answer)
		return NULL;
	if (answer->status >= 500) {
		docker_refuse(call, REASON_engine_reply, kind, NULL);
		return NULL;
	}
	if (answer->status != 200 || answer->body.kind != JV_OBJECT)
		return absent(call, kind, missing);
	return &answer->body;
}

const struct jv *docker_container(struct docker *d, struct backend_call *call, struct span name)
{
	const char *given = docker_cut(call, name);
	const char *missing = docker_text(call, "No such container: %s", given);
	const struct jv *doc;
	struct docker_thing thing;

	if (!docker_speak(d, call))
		return NULL;
	doc = inspect(call,
		      docker_ask(call, docker_target(call, "/containers/", name, "/json"),
				 "containers", docker_whole(call, name)),
		      "container", missing);
	if (!doc)
		return NULL;
	thing = docker_container_thing(doc);
	if (!docker_admit(call, &thing, missing))
		return NULL;
	if (!*thing.id) {
		docker_refuse(call, REASON_engine_reply, "container.Id", NULL);
		return NULL;
	}
	docker_object(call, &thing);
	return doc;
}

/* Resolves {id} to a container; NULL: not known yet, or refused. */
static const struct jv *resolve_container(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct jv *doc = docker_container(d, call, st->name);

	if (doc)
		st->target = call->object.id;
	return doc;
}

/*
 * For every copy the engine mounts anew what the container has, and follows
 * links that may have been put there since it was made.
 */
static bool mounts_anew(enum operation op)
{
	return op == OP_CONTAINER_ARCHIVE_GET || op == OP_CONTAINER_ARCHIVE_PUT;
}

void docker_step_container(struct docker *d, struct backend_call *call)
{
	const struct jv *doc = resolve_container(d, call);
	struct docker_reading r;

	if (doc && call->updates && docker_parts(call->op))
		docker_read_parting(d, call, doc);
	else if (doc && mounts_anew(call->op))
		docker_read_made(d, call, doc, jv_get(doc, "HostConfig"), &r);
}

/* Engines know no such names either. */
void docker_step_slashed(struct docker *d, struct backend_call *call)
{
	const char *name = docker_cut(call, docker_state(call)->name);
	const char *kind = call->op == OP_CONTAINER_INSPECT ? "container"
			   : call->op == OP_NETWORK_INSPECT ? "network"
							    : "volume";

	(void)d;
	absent(call, kind, docker_text(call, "No such %s: %s", kind, name));
}

void docker_step_top(struct docker *d, struct backend_call *call)
{
	/* Without a dash, "e" makes ps print environments. */
	static const char *const fine[] = {"", "-ef", "aux"};
	struct span args = docker_query_value(call->req, "ps_args");
	bool known = false;

	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++)
		known = known || span_is(args, fine[i]);
	if (!known)
		docker_refuse(call, REASON_top_args, "query.ps_args", docker_cut(call, args));
	resolve_container(d, call);
}

/* What is sent is the id: a name may be given to another image meanwhile. */
static void admit_image(struct backend_call *call, const char *name)
{
	const char *missing = docker_text(call, "No such image: %s", name);
	const struct lookup *answer = docker_ask(
		call, docker_target(call, "/images/", span_of(name), "/json"), "images", name);
	const struct jv *doc = inspect(call, answer, "image", missing);

	if (!doc || !docker_admit_image(call, doc, name, missing))
		return;
	call->object.id = jv_str(doc, "Id", "");
	if (call->op != OP_IMAGE_REMOVE && *call->object.id)
		docker_state(call)->target = call->object.id;
}

void docker_step_image(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const char *name = docker_whole(call, st->name);
	bool plugin = call->op == OP_PLUGIN_READ;

	call->object = (struct object){
		.kind = plugin ? "plugin" : "image", .id = "", .name = name, .owner = ""};
	st->target = name;
	if (docker_speak(d, call) && !plugin && reach_limits_images(call->reach))
		admit_image(call, name);
}

void docker_step_rename(struct docker *d, struct backend_call *call)
{
	struct span name = docker_query_value(call->req, "name");
	const char *text = docker_whole(call, name);
	const struct jv *doc;

	if (*text == '/')
		text++;
	doc = docker_check_name(call) ? resolve_container(d, call) : NULL;
	if (!doc)
		return;
	call->workload = (struct workload){.facts = jv_object()};
	if (call->updates)
		docker_read_parting(d, call, doc);
	jv_set(call->arena, &call->workload.facts, "name", jv_string(text));
}
