#include "backends/docker/docker_priv.h"

#include <stdlib.h>
#include <string.h>

/* --- headers --- */

/* "1.57" from an engine that is newer than the tables becomes "1.56". */
static bool is_too_new(struct span version)
{
	char text[16];

	if (!span_starts(version, "1.") || version.len >= sizeof(text))
		return false;
	memcpy(text, version.at, version.len);
	text[version.len] = '\0';
	return strtol(text + 2, NULL, 10) > DOCKER_MINOR_MAX;
}

#define TEXT_OF(number)  TEXT_OF_(number)
#define TEXT_OF_(number) #number
static const char newest[] = "1." TEXT_OF(DOCKER_MINOR_MAX);
static const char oldest[] = "1." TEXT_OF(DOCKER_MINOR_MIN);

void docker_reply_header(struct backend *be, struct backend_call *call, const struct pair *header,
			 bool *ret_keep, const char **ret_value)
{
	static const char *const crossing[] = {
		"api-version",
		"builder-version",
		"cache-control",
		"content-type",
		"docker-experimental",
		"libpod-api-version",
		"ostype",
		"pragma",
		"swarm",
		"x-docker-container-path-stat",
	};

	(void)be;
	(void)call;
	*ret_keep = false;
	*ret_value = NULL;
	for (size_t i = 0; i < sizeof(crossing) / sizeof(*crossing); i++)
		*ret_keep = *ret_keep || span_is(header->key, crossing[i]);
	if (span_is(header->key, "api-version") && is_too_new(header->value))
		*ret_value = newest;
	/* 2 would make clients try BuildKit, whose tunnels are closed. */
	if (span_is(header->key, "builder-version"))
		*ret_value = "1";
}

/* --- bodies --- */

struct editing {
	struct arena *arena;
	struct backend_call *call;
};

static bool is_seen(const struct editing *e, enum reach_kind kind, const struct jv *row)
{
	struct docker_thing thing;

	if (kind == REACH_IMAGES)
		return docker_image_access(e->call, row, jv_get(row, "Labels")) != ACCESS_NONE;
	thing = docker_row_thing(kind, row);
	return docker_sees(e->call, &thing);
}

/* Drops the rows that the caller does not see; keeps `most` of the others, if that is not 0. */
static struct jv seen_rows(const struct editing *e, enum reach_kind kind, const struct jv *list,
			   size_t most)
{
	struct jv seen = jv_array();

	if (list->kind == JV_NULL)
		return jv_null();
	for (size_t i = 0; list->kind == JV_ARRAY && i < list->count; i++)
		if ((!most || seen.count < most) && is_seen(e, kind, &list->items[i]))
			jv_push(e->arena, &seen, list->items[i]);
	return seen;
}

static struct jv seen_volumes(const struct editing *e, const struct jv *doc)
{
	static const struct jv none = {.kind = JV_ARRAY};
	const struct jv *list = jv_get(doc, "Volumes");
	struct jv ret = jv_object();

	jv_set(e->arena, &ret, "Volumes", seen_rows(e, REACH_VOLUMES, list ? list : &none, 0));
	jv_set(e->arena, &ret, "Warnings", jv_null());
	return ret;
}

/* Of newer engines: {"Items":[...], "TotalCount":...}. */
static struct jv seen_usage(const struct editing *e, enum reach_kind kind, const struct jv *usage)
{
	const struct jv *items = jv_get(usage, "Items");
	struct jv ret = jv_object();

	if (usage->kind != JV_OBJECT)
		return seen_rows(e, kind, usage, 0);
	if (items)
		jv_set(e->arena, &ret, "Items", seen_rows(e, kind, items, 0));
	return ret;
}

static struct jv seen_df(const struct editing *e, const struct jv *doc)
{
	static const struct {
		const char *key;
		unsigned kind; /* 0: a number that says nothing of one object */
	} keys[] = {
		{"LayersSize", 0},
		{"Images", REACH_IMAGES},
		{"Containers", REACH_CONTAINERS},
		{"Volumes", REACH_VOLUMES},
		{"ImageUsage", REACH_IMAGES},
		{"ImagesDiskUsage", REACH_IMAGES},
		{"ContainerUsage", REACH_CONTAINERS},
		{"ContainersDiskUsage", REACH_CONTAINERS},
		{"VolumeUsage", REACH_VOLUMES},
		{"VolumesDiskUsage", REACH_VOLUMES},
	};
	struct jv ret = jv_object();

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct jv *v = jv_get(doc, keys[i].key);
		enum reach_kind kind = (enum reach_kind)keys[i].kind;

		if (!v)
			continue;
		jv_set(e->arena, &ret, keys[i].key,
		       !keys[i].kind || reach_of_all(e->call->reach, kind) != ACCESS_NONE
			       ? *v
			       : seen_usage(e, kind, v));
	}
	return ret;
}

/* Names of containers that are not shown; see hold_members(). */
static void hide_members(const struct editing *e, struct jv *doc)
{
	static const char *const keys[] = {"Containers", "containers"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (jv_get(doc, keys[i]))
			jv_set(e->arena, doc, keys[i], jv_object());
}

/* What was removed was the caller's: it was asked for so. */
static struct jv removed(const struct editing *e, const struct jv *doc)
{
	static const char *const keys[] = {"ContainersDeleted", "NetworksDeleted", "VolumesDeleted",
					   "SpaceReclaimed"};
	struct jv ret = jv_object();

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct jv *v = jv_get(doc, keys[i]);

		if (v)
			jv_set(e->arena, &ret, keys[i], *v);
	}
	return ret;
}

/* "http://user:pass@proxy:3128" -> "http://proxy:3128" */
static struct jv without_user(const struct editing *e, const struct jv *url)
{
	struct span s = url->kind == JV_STRING ? url->str : (struct span){"", 0};
	const char *scheme = s.len ? memmem(s.at, s.len, "://", 3) : NULL;
	size_t head = scheme ? (size_t)(scheme - s.at) + 3 : 0, at = head;
	char *copy;

	for (size_t i = head; i < s.len; i++)
		if (s.at[i] == '@')
			at = i + 1;
	copy = arena_strndup(e->arena, s.at, head + s.len - at);
	if (!copy)
		return jv_null();
	memcpy(copy + head, s.at + at, s.len - at);
	return jv_string(copy);
}

static void hide_proxies(const struct editing *e, struct jv *doc)
{
	static const char *const keys[] = {"HttpProxy", "HttpsProxy"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct jv *v = jv_get(doc, keys[i]);

		if (v)
			jv_set(e->arena, doc, keys[i], without_user(e, v));
	}
}

static void lower(const struct editing *e, struct jv *doc)
{
	const struct jv *v = jv_get(doc, "ApiVersion");

	if (v && v->kind == JV_STRING && is_too_new(v->str))
		jv_set(e->arena, doc, "ApiVersion", jv_string(newest));
	/* The gate's own: it renders what older clients say in a version that the engine takes. */
	if (jv_get(doc, "MinAPIVersion"))
		jv_set(e->arena, doc, "MinAPIVersion", jv_string(oldest));
}

static void lower_versions(const struct editing *e, struct jv *doc)
{
	struct jv *parts = (struct jv *)jv_get(doc, "Components");

	lower(e, doc);
	for (size_t i = 0; parts && parts->kind == JV_ARRAY && i < parts->count; i++) {
		struct jv *details = (struct jv *)jv_get(&parts->items[i], "Details");

		if (details && details->kind == JV_OBJECT)
			lower(e, details);
	}
}

/* Of an error only the engine's sentence crosses, without the id of who holds a name. */
static struct jv only_message(const struct editing *e, const struct jv *doc)
{
	const char *text = jv_str(doc, "message", "the engine refused without saying why");
	const char *holder = strstr(text, " by container ");
	struct jv ret = jv_object();

	if (holder)
		text = arena_strndup(e->arena, text, (size_t)(holder - text));
	docker_hide_words(e->call, jv_set(e->arena, &ret, "message", jv_string(text)));
	return ret;
}

static struct jv edit(const struct backend_call *call, const struct editing *e, struct jv *doc)
{
	enum operation op = call->op;

	if (op == OP_SYSTEM_VERSION)
		lower_versions(e, doc);
	else if (op == OP_SYSTEM_INFO)
		hide_proxies(e, doc);
	else if (op == OP_CONTAINER_PRUNE || op == OP_NETWORK_PRUNE || op == OP_VOLUME_PRUNE)
		return removed(e, doc);
	else if (op == OP_NETWORK_INSPECT)
		hide_members(e, doc);
	if (op == OP_SYSTEM_DF)
		return reach_sees_all(call->reach) ? *doc : seen_df(e, doc);
	if (op == OP_VOLUME_LIST && !docker_state(call)->prefix)
		return seen_volumes(e, doc);
	if (op == OP_VOLUME_LIST || op == OP_CONTAINER_LIST || op == OP_NETWORK_LIST ||
	    op == OP_IMAGE_LIST)
		return seen_rows(e, docker_listed_kind(op), doc, docker_state(call)->limit);
	return *doc;
}

/* What is no list is not an empty one. */
static bool is_list(const struct backend_call *call, const struct jv *doc)
{
	enum operation op = call->op;
	bool inside = op == OP_VOLUME_LIST && !docker_state(call)->prefix;
	const struct jv *list = inside ? jv_get(doc, "Volumes") : doc;

	if (op != OP_VOLUME_LIST && op != OP_CONTAINER_LIST && op != OP_NETWORK_LIST &&
	    op != OP_IMAGE_LIST)
		return true;
	return list && (list->kind == JV_ARRAY || list->kind == JV_NULL);
}

int docker_filter(struct backend *be, struct backend_call *call, int status, struct span body,
		  struct buf *ret, struct err *err)
{
	const struct editing e = {call->arena, call};
	enum jv_fault fault;
	struct jv doc, out;

	(void)be;
	if (!body.len && (status == 204 || status == 304))
		return 0;
	if (jv_parse(call->arena, body, &doc, &fault, err) < 0)
		return err_wrap(err, "the engine's reply");
	if (status >= 200 && status < 300 && !is_list(call, &doc))
		return err_set(err, ERR_UPSTREAM, "the engine's reply is no list");
	if (status >= 200 && status < 300) {
		out = edit(call, &e, &doc);
		docker_hide(call, call->arena, &out); /* what is seen was decided by all of it */
	} else {
		out = only_message(&e, &doc);
	}
	if (arena_spent(call->arena))
		return err_set(err, ERR_LIMIT, "the engine's reply needs too much memory");
	jv_write(ret, &out);
	buf_put(ret, "\n", 1);
	if (buf_spent(ret))
		return err_set(err, ERR_LIMIT, "the engine's reply is too large");
	return 0;
}
