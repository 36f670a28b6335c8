/* What a request may not ask of Podman, beside what rules refuse: words that Docker does not know.
 */
#include "backends/podman/podman_priv.h"

#include <string.h>

/* The service would make it with its own, and say nothing. */
static void check_runtime(struct docker_reading *r)
{
	const char *given = jv_str(r->host, "Runtime", "");
	struct violation *v;

	if (!*given || !r->info->known || strcmp(given, r->info->default_runtime) == 0)
		return;
	v = docker_refuse(r->call, REASON_runtime, "HostConfig.Runtime", given);
	v->text = docker_text(r->call,
			      "Podman does not read which runtime a request names; this service "
			      "starts everything with %s",
			      r->info->default_runtime);
	v->hint = "Leave Runtime out, or use a backend whose service has that runtime.";
}

static void check_option(struct docker_reading *r, size_t i, struct span option)
{
	static const struct {
		const char *name;
		enum reason reason;
	} closed[] = {
		{"mask", REASON_masked_paths},        {"unmask", REASON_masked_paths},
		{"systempaths", REASON_masked_paths}, {"proc-opts", REASON_masked_paths},
		{"seccomp", REASON_security_opt}, /* a path of the host */
	};
	struct span name, value;

	docker_split_option(option, &name, &value);
	for (size_t k = 0; k < sizeof(closed) / sizeof(*closed); k++)
		if (span_is(name, closed[k].name) &&
		    !(closed[k].reason == REASON_security_opt && span_is(value, "unconfined")))
			docker_refuse(r->call, closed[k].reason,
				      docker_text(r->call, "HostConfig.SecurityOpt[%zu]", i),
				      docker_cut(r->call, option));
	if (span_is(name, "label") && span_is(value, "nested"))
		docker_refuse(r->call, REASON_security_opt,
			      docker_text(r->call, "HostConfig.SecurityOpt[%zu]", i),
			      "label=nested");
}

/* Labels of a volume that comes into being by the way are not read, so nobody would own it. */
static void check_volumes(struct docker_reading *r)
{
	const struct jv *list = jv_get(&r->facts, "mounts");

	for (size_t i = 0; list && i < list->count; i++) {
		const struct jv *one = &list->items[i], *exists = jv_get(one, "exists");
		const char *name = jv_str(one, "source", "");
		struct violation *v;

		if (strcmp(jv_str(one, "kind", ""), "volume") != 0 || !*name || !exists ||
		    exists->b)
			continue;
		v = docker_refuse(r->call, REASON_volume_owner, jv_str(one, "field", ""), name);
		v->text = "there is no such volume, and Podman would not note whose it is if this "
			  "made it";
		v->hint = docker_text(r->call, "Make it first: docker volume create %s", name);
	}
}

bool podman_accepts(struct docker_reading *r)
{
	const struct jv *options = jv_get(r->host, "SecurityOpt");

	check_runtime(r);
	check_volumes(r);
	for (size_t i = 0; options && options->kind == JV_ARRAY && i < options->count; i++)
		if (options->items[i].kind == JV_STRING)
			check_option(r, i, options->items[i].str);
	return !r->call->refused.count;
}
