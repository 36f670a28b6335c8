/*
 * The engine's socket in a mount.  Tools that run in containers ask for it (Ryuk,
 * job runners); what they can get is a socket of the gate on which they are the
 * same caller as who made the container.
 */
#include "backends/docker/docker_priv.h"

#include <string.h>

static bool is_engine_name(const struct backend_call *call, const char *path)
{
	for (const char *const *p = call->engine_names; p && *p; p++)
		if (strcmp(*p, path) == 0)
			return true;
	return false;
}

static const char *own_of(const struct backend_call *call)
{
	return call->own_socket ? call->own_socket : "";
}

const char *docker_control(const struct backend_call *call, const char *source,
			   const struct jv *resolved)
{
	const char *own = own_of(call);

	if (*own && strcmp(source, own) == 0)
		return "own";
	/* What it leads to counts as well: it is replaced as a whole. */
	if (is_engine_name(call, source) || is_engine_name(call, jv_str(resolved, "real", "")))
		return "engine";
	return "";
}

const char *docker_own_socket(struct backend_call *call)
{
	const char *own = own_of(call);

	/* Asked now: once the change is made, nothing more can be. */
	return *own && docker_ask_path(call, own) ? own : "";
}

static bool is_engines(struct backend_call *call, const char *source)
{
	const struct lookup *answer = docker_ask_path(call, source);
	const struct jv *seen = answer && answer->status == 200 ? &answer->body : NULL;

	return strcmp(docker_control(call, source, seen), "engine") == 0;
}

static void note(struct backend_call *call, const char *field, const char **fields)
{
	*fields = **fields ? docker_text(call, "%s, %s", *fields, field) : field;
}

static void change_binds(struct backend_call *call, const struct jv *host, const char **fields)
{
	struct jv *list = (struct jv *)jv_get(host, "Binds");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct docker_bind b = docker_bind(list->items[i].str);

		if (!b.valid || !b.is_path || !is_engines(call, docker_clean_path(call, b.source)))
			continue;
		list->items[i] = jv_string(docker_text(call, "%s:%.*s%s%.*s", own_of(call),
						       SPAN_FMT(b.target), b.mode.len ? ":" : "",
						       SPAN_FMT(b.mode)));
		note(call, docker_text(call, "HostConfig.Binds[%zu]", i), fields);
	}
}

static void change_mounts(struct backend_call *call, const struct jv *host, const char **fields)
{
	struct jv *list = (struct jv *)jv_get(host, "Mounts");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const char *source = jv_str(&list->items[i], "Source", "");

		if (strcmp(jv_str(&list->items[i], "Type", ""), "bind") != 0 || *source != '/' ||
		    !is_engines(call, docker_clean_path(call, span_of(source))))
			continue;
		jv_set(call->arena, &list->items[i], "Source", jv_string(own_of(call)));
		note(call, docker_text(call, "HostConfig.Mounts[%zu]", i), fields);
	}
}

int docker_change_socket(struct backend_call *call, const struct jv *host, struct change *c,
			 struct err *err)
{
	const char *fields = "";

	if (!*own_of(call) || !span_is(c->value.str, own_of(call)))
		return err_set(err, ERR_CONFIG, "this is not the caller's own socket");
	change_binds(call, host, &fields);
	change_mounts(call, host, &fields);
	if (!*fields)
		return err_set(err, ERR_CONFIG, "no mount is one of the engine's socket");
	c->field = fields;
	return 0;
}
