/*
 * Whose an object is, whether the caller sees it, and how much it may do with
 * it: asked of what the engine says of the object now.
 */
#include "backends/docker/docker_priv.h"

#include <stdlib.h>
#include <string.h>

#define ID_PREFIX_MIN 12 /* digits of the gate's own id; a container's host name has so many */

const char *docker_kind_name(enum reach_kind kind)
{
	switch (kind) {
	case REACH_CONTAINERS:
		return "container";
	case REACH_VOLUMES:
		return "volume";
	case REACH_NETWORKS:
		return "network";
	case REACH_IMAGES:
		return "image";
	}
	return "";
}

/* --- whose it is --- */

static int compare_adopted(const void *a, const void *b)
{
	const struct adopted *x = a, *y = b;
	int kind = strcmp(x->kind, y->kind);

	return kind ? kind : strcmp(x->id, y->id);
}

/* A volume's name may be given again: the time at which it was made belongs to what it is. */
static const struct adopted *find_adopted(const struct backend_call *call,
					  const struct docker_thing *t)
{
	const struct adopted key = {.kind = docker_kind_name(t->kind), .id = t->id};
	const struct adopted *found;

	if (!call->adopted_count || !*t->id)
		return NULL;
	found = bsearch(&key, call->adopted, call->adopted_count, sizeof(key), compare_adopted);
	if (!found || (*found->created && strcmp(found->created, t->created) != 0))
		return NULL;
	return found;
}

/* The gate's own label counts before the ledger, which is for what has none. */
const char *docker_owner(const struct backend_call *call, const struct docker_thing *t)
{
	const char *owner = jv_str(t->labels, GATE_LABEL_OWNER, "");
	const struct adopted *found = *owner ? NULL : find_adopted(call, t);

	return found ? found->owner : owner;
}

bool docker_is_mine(const struct backend_call *call, const struct docker_thing *t)
{
	return strcmp(docker_owner(call, t), call->owner) == 0;
}

bool docker_has_adopted(const struct backend_call *call, enum reach_kind kind)
{
	for (size_t i = 0; i < call->adopted_count; i++)
		if (strcmp(call->adopted[i].kind, docker_kind_name(kind)) == 0 &&
		    strcmp(call->adopted[i].owner, call->owner) == 0)
			return true;
	return false;
}

/* --- what it is, by the document that shows it --- */

static const char *without_slash(const char *name)
{
	return *name == '/' ? name + 1 : name;
}

struct docker_thing docker_container_thing(const struct jv *doc)
{
	return (struct docker_thing){
		.kind = REACH_CONTAINERS,
		.id = jv_str(doc, "Id", ""),
		.name = without_slash(jv_str(doc, "Name", "")),
		.created = "",
		.labels = jv_path(doc, "Config.Labels"),
	};
}

struct docker_thing docker_volume_thing(const struct jv *doc)
{
	const char *name = jv_str(doc, "Name", "");

	return (struct docker_thing){
		.kind = REACH_VOLUMES,
		.id = name,
		.name = name,
		.created = jv_str(doc, "CreatedAt", ""),
		.labels = jv_get(doc, "Labels"),
	};
}

struct docker_thing docker_network_thing(const struct jv *doc)
{
	/* As Podman's own tree writes them. */
	bool small = !jv_get(doc, "Id") && jv_get(doc, "id");

	return (struct docker_thing){
		.kind = REACH_NETWORKS,
		.id = jv_str(doc, small ? "id" : "Id", ""),
		.name = jv_str(doc, small ? "name" : "Name", ""),
		.created = "",
		.labels = jv_get(doc, small ? "labels" : "Labels"),
	};
}

/* "/web"; what has a second slash is the name of a link to it.  Podman's own tree writes "web". */
static const char *row_name(const struct jv *row)
{
	const struct jv *names = jv_get(row, "Names");

	for (size_t i = 0; names && names->kind == JV_ARRAY && i < names->count; i++) {
		const struct jv *one = &names->items[i];

		if (one->kind == JV_STRING && one->str.len && *one->str.at == '/' &&
		    !strchr(one->str.at + 1, '/'))
			return one->str.at + 1;
		if (one->kind == JV_STRING && !strchr(one->str.at, '/'))
			return one->str.at;
	}
	return "";
}

struct docker_thing docker_row_thing(enum reach_kind kind, const struct jv *row)
{
	if (kind == REACH_VOLUMES)
		return docker_volume_thing(row);
	if (kind == REACH_NETWORKS)
		return docker_network_thing(row);
	return (struct docker_thing){
		.kind = kind,
		.id = jv_str(row, "Id", ""),
		.name = kind == REACH_CONTAINERS ? row_name(row) : "",
		.created = "",
		.labels = jv_get(row, "Labels"),
	};
}

/* --- how much --- */

enum access docker_access(const struct backend_call *call, const struct docker_thing *t)
{
	const char *const names[] = {t->name, NULL};
	const struct reach_object o = {
		.kind = t->kind,
		.mine = docker_is_mine(call, t),
		.names = names,
		.labels = t->labels,
	};

	return reach_of(call->reach, &o);
}

bool docker_sees(const struct backend_call *call, const struct docker_thing *t)
{
	return docker_access(call, t) != ACCESS_NONE;
}

enum access docker_image_access(struct backend_call *call, const struct jv *doc,
				const struct jv *labels)
{
	static const char *const keys[] = {"RepoTags", "RepoDigests"};
	struct reach_object o = {.kind = REACH_IMAGES, .labels = labels};
	size_t n = 0, count = 0;
	const char **names;

	for (size_t k = 0; k < 2; k++)
		count += jv_get(doc, keys[k]) ? jv_get(doc, keys[k])->count : 0;
	names = arena_take(call->arena, (count + 1) * sizeof(*names));
	if (!names)
		return ACCESS_NONE;
	for (size_t k = 0; k < 2; k++) {
		const struct jv *list = jv_get(doc, keys[k]);

		for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
			if (list->items[i].kind == JV_STRING)
				names[n++] = list->items[i].str.at;
	}
	o.names = names;
	return reach_of(call->reach, &o);
}

static void refuse_access(struct backend_call *call, const char *kind, const char *name,
			  enum access has)
{
	bool data = reach_needed(call->op) == ACCESS_DATA;
	struct violation *v = docker_refuse(call, REASON_read_only, kind, name);

	v->text = docker_text(call, "this %s is shown to you, but %s", kind,
			      data                 ? "what it holds is not"
			      : has == ACCESS_DATA ? "only to be read"
						   : "only to be looked at");
}

/* In the words of the engine for what is not there. */
static bool refuse_absent(struct backend_call *call, const char *kind, const char *missing)
{
	docker_refuse(call, REASON_owner, kind, NULL)->text = missing;
	return false;
}

bool docker_admit(struct backend_call *call, const struct docker_thing *t, const char *missing)
{
	const char *kind = docker_kind_name(t->kind);
	enum access has = docker_access(call, t), needs = reach_needed(call->op);

	if (has == ACCESS_NONE)
		return refuse_absent(call, kind, missing);
	if (needs > ACCESS_READ && docker_is_gates_own(call, t)) {
		docker_refuse(call, REASON_gate_self, kind, t->name);
		return false;
	}
	if (has >= needs)
		return true;
	refuse_access(call, kind, t->name, has);
	return false;
}

/* Before its first start the engine tells a container's networks by name alone. */
bool docker_is_on(const struct jv *container, const struct docker_thing *network)
{
	const struct jv *all = jv_path(container, "NetworkSettings.Networks");

	for (size_t i = 0; all && all->kind == JV_OBJECT && i < all->count; i++)
		if (span_is(all->members[i].key, network->name) ||
		    span_is(all->members[i].key, network->id) ||
		    strcmp(jv_str(&all->members[i].value, "NetworkID", "?"), network->id) == 0)
			return true;
	return false;
}

bool docker_admit_image(struct backend_call *call, const struct jv *doc, const char *given,
			const char *missing)
{
	enum access has = docker_image_access(call, doc, jv_path(doc, "Config.Labels"));

	if (has == ACCESS_NONE)
		return refuse_absent(call, "image", missing);
	if (has >= reach_needed(call->op))
		return true;
	refuse_access(call, "image", given, has);
	return false;
}

/* --- the gate's own --- */

static bool is_self_container(const struct backend_call *call, const struct docker_thing *t)
{
	const char *self = call->self;
	size_t len = self ? strlen(self) : 0;
	bool hex = len >= ID_PREFIX_MIN && strspn(self, "0123456789abcdef") == len;

	return len && (strcmp(self, t->name) == 0 || (hex && strncmp(t->id, self, len) == 0));
}

/* What the gate's container mounts, and the networks that it is on. */
static bool is_used_by_self(const struct docker_thing *t, const struct jv *self)
{
	const struct jv *mounts = jv_get(self, "Mounts");

	for (size_t i = 0;
	     t->kind == REACH_VOLUMES && mounts && mounts->kind == JV_ARRAY && i < mounts->count;
	     i++)
		if (strcmp(jv_str(&mounts->items[i], "Type", ""), "volume") == 0 &&
		    strcmp(jv_str(&mounts->items[i], "Name", ""), t->name) == 0)
			return true;
	return t->kind == REACH_NETWORKS && docker_is_on(self, t);
}

bool docker_is_gates_own(struct backend_call *call, const struct docker_thing *t)
{
	const struct lookup *self;

	if (t->labels && jv_get(t->labels, GATE_LABEL_SELF))
		return true;
	if (t->kind == REACH_CONTAINERS)
		return is_self_container(call, t);
	if (!call->self || !*call->self || t->kind == REACH_IMAGES)
		return false;
	self = docker_ask(call, docker_target(call, "/containers/", span_of(call->self), "/json"),
			  "containers", call->self);
	if (self && self->status >= 500)
		docker_refuse(call, REASON_engine_reply, "container", NULL);
	return self && self->status == 200 && is_used_by_self(t, &self->body);
}
