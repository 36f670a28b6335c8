/*
 * Lists and the stream of events: what is asked of the engine, so that it
 * leaves out what it can.  What it answers is looked through all the same.
 */
#include "backends/docker/docker_priv.h"

#include <stdlib.h>
#include <string.h>

void docker_step_about(struct docker *d, struct backend_call *call)
{
	(void)d;
	(void)call; /* the same for every version, and for everybody */
}

void docker_step_plain(struct docker *d, struct backend_call *call)
{
	if (docker_query(call->req, "filters") && !docker_filters_read(call))
		return;
	if (call->op == OP_IMAGE_LIST && reach_limits_images(call->reach))
		call->reply = REPLY_HELD;
	docker_speak(d, call);
}

/* The engine's answer would tell which containers others have, and when they were made. */
static bool names_seen_containers(struct docker *d, struct backend_call *call)
{
	static const char *const keys[] = {"before", "since"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct jv *names = jv_get(&docker_state(call)->filters, keys[i]);

		for (size_t k = 0; names && k < names->count; k++)
			if (!docker_container(d, call, names->items[k].str))
				return false;
	}
	call->object = (struct object){.kind = "", .id = "", .name = "", .owner = ""};
	return true;
}

enum reach_kind docker_listed_kind(enum operation op)
{
	return op == OP_VOLUME_LIST    ? REACH_VOLUMES
	       : op == OP_NETWORK_LIST ? REACH_NETWORKS
	       : op == OP_IMAGE_LIST   ? REACH_IMAGES
				       : REACH_CONTAINERS;
}

/* Of several conditions an engine wants all; so it is asked where there is one alone. */
static const char *one_label(struct backend_call *call, enum reach_kind kind)
{
	const struct reach_entry *only = reach_only(call->reach, kind);

	if (!only)
		return NULL;
	if (only->by == REACH_BY_OWNER && !docker_has_adopted(call, kind))
		return docker_text(call, "%s=%s", GATE_LABEL_OWNER, call->owner);
	if (only->by != REACH_BY_LABEL || memchr(only->value.at, '*', only->value.len) ||
	    memchr(only->value.at, '?', only->value.len))
		return NULL;
	return docker_text(call, "%.*s%s%.*s", SPAN_FMT(only->label), only->any_value ? "" : "=",
			   SPAN_FMT(only->value));
}

/* The engine would count rows that are left out here. */
static void count_here(struct backend_call *call)
{
	long limit = strtol(docker_query_text(call, "limit"), NULL, 10);

	docker_state(call)->limit = limit > 0 ? (size_t)limit : 0;
}

void docker_step_list(struct docker *d, struct backend_call *call)
{
	enum reach_kind kind = docker_listed_kind(call->op);
	const char *label;

	if (!docker_filters_read(call))
		return;
	if (reach_of_all(call->reach, kind) != ACCESS_NONE) {
		call->reply = REPLY_STREAM;
	} else if (call->op != OP_CONTAINER_LIST || names_seen_containers(d, call)) {
		label = one_label(call, kind);
		if (label)
			docker_filters_and(call, "label", label);
		else if (call->op == OP_CONTAINER_LIST)
			count_here(call);
	}
	docker_speak(d, call);
}

/* Only container events carry labels, so only they can be told apart by the engine. */
static void only_own_events(struct backend_call *call, const char *label)
{
	struct docker_state *st = docker_state(call);
	const struct jv *types = jv_get(&st->filters, "type");
	struct jv only = jv_array();
	bool wanted = !types || !types->count;

	for (size_t i = 0; types && i < types->count; i++)
		wanted = wanted || span_is(types->items[i].str, "container");
	jv_push(call->arena, &only, jv_string("container"));
	jv_set(call->arena, &st->filters, "type", only);
	docker_filters_and(call, "label", label);
	if (!wanted) /* nothing that they may see: an open stream without events */
		docker_filters_and(call, "label", GATE_LABEL_PREFIX "nothing");
}

/* Events of volumes and networks name no owner and no label. */
static bool tells_by_name(const struct reach *r)
{
	for (size_t i = 0; i < r->count; i++)
		if ((r->entries[i].kinds & ~(unsigned)REACH_CONTAINERS) &&
		    (r->entries[i].by == REACH_BY_NAME || r->entries[i].by == REACH_BY_ALL ||
		     (r->entries[i].kinds & REACH_IMAGES)))
			return true;
	return false;
}

void docker_step_events(struct docker *d, struct backend_call *call)
{
	const char *label;

	if (!docker_filters_read(call))
		return;
	if (reach_sees_all(call->reach)) {
		docker_speak(d, call);
		return;
	}
	call->reply = REPLY_ROWS;
	label = tells_by_name(call->reach) || docker_has_adopted(call, REACH_NETWORKS)
			? NULL
			: one_label(call, REACH_CONTAINERS);
	if (label)
		only_own_events(call, label);
	docker_speak(d, call);
}
