#include "backends/docker/docker_priv.h"

#include <string.h>

static const struct lookup *ask_volume(struct backend_call *call, struct span name)
{
	return docker_ask(call, docker_target(call, "/volumes/", name, ""), "volumes",
			  docker_whole(call, name));
}

void docker_step_volume(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct lookup *answer = docker_speak(d, call) ? ask_volume(call, st->name) : NULL;
	const char *missing =
		docker_text(call, "get %s: no such volume", docker_cut(call, st->name));
	struct docker_thing thing;

	if (!answer)
		return;
	if (answer->status >= 500) {
		docker_refuse(call, REASON_engine_reply, "volume", NULL);
		return;
	}
	if (answer->status != 200) {
		docker_refuse(call, REASON_owner, "volume", NULL)->text = missing;
		return;
	}
	thing = docker_volume_thing(&answer->body);
	if (!docker_admit(call, &thing, missing))
		return;
	docker_object(call, &thing);
	st->target = docker_whole(call, st->name);
}

/* Of a volume by that name the engine would hand out what is there already. */
static bool is_taken(struct backend_call *call, const char *name)
{
	const struct lookup *answer = *name ? ask_volume(call, span_of(name)) : NULL;
	struct docker_thing thing;

	if (!answer || answer->status != 200)
		return false;
	thing = docker_volume_thing(&answer->body);
	if (docker_access(call, &thing) == ACCESS_FULL)
		return false;
	docker_refuse(call, REASON_volume_owner, "Name", name);
	return true;
}

static void say_names(struct docker_reading *r, const struct jv *map, const char *fact)
{
	struct jv *list = docker_fact_list(r, fact);

	for (size_t i = 0; map && map->kind == JV_OBJECT && i < map->count; i++)
		jv_push(r->call->arena, list, jv_string(docker_word(r->call, map->members[i].key)));
}

void docker_say_labels(struct docker_reading *r, const struct jv *labels)
{
	struct jv *list = docker_fact_list(r, "labels");

	for (size_t i = 0; labels && labels->kind == JV_OBJECT && i < labels->count; i++) {
		const char *name = docker_word(r->call, labels->members[i].key);
		struct jv *entry = jv_push(r->call->arena, list, jv_object());

		jv_set(r->call->arena, entry, "name", jv_string(name));
		jv_set(r->call->arena, entry, "field",
		       jv_string(docker_text(r->call, "Labels.%s", name)));
	}
}

void docker_step_volume_create(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	const struct jv *body = &docker_state(call)->body, *cluster;
	const char *name, *driver;

	if (!docker_body(call, SCHEMA_VOLUME) || !docker_speak(d, call))
		return;
	cluster = jv_get(body, "ClusterVolumeSpec");
	name = jv_str(body, "Name", "");
	driver = jv_str(body, "Driver", "");
	if (cluster) {
		docker_refuse(call, REASON_volume_driver, "ClusterVolumeSpec", NULL);
		return;
	}
	if (is_taken(call, name))
		return;
	docker_fact(&r, "volume.driver", jv_string(*driver ? driver : "local"));
	say_names(&r, jv_get(body, "DriverOpts"), "volume.options");
	docker_say_labels(&r, jv_get(body, "Labels"));
	if (*name)
		docker_fact(&r, "name", jv_string(name));
	call->object = (struct object){.kind = "volume", .id = "", .name = name, .owner = ""};
	call->workload = (struct workload){.facts = r.facts};
}
