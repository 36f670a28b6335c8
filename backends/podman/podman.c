#include "backends/docker/build_priv.h"
#include "backends/list_priv.h"
#include "backends/podman/podman_priv.h"

#include <string.h>

/* --- routes --- */

static const struct docker_route routes[] = {
#define ROUTE(method, pattern, since, until, op, way, body, reply, query)                          \
	{#method,           pattern,     since,       until,         OP_##op,                      \
	 docker_step_##way, REASON_NONE, BODY_##body, REPLY_##reply, query},
#define CLOSED(method, pattern, op, reason)                                                        \
	{#method, pattern, 0, 0, OP_##op, NULL, REASON_##reason, BODY_NONE, REPLY_STREAM, ""},
#define BODY_TAR     BODY_STREAM
#define BODY_CONTEXT BODY_REWRITE
#include "backends/podman/compat.def"
#undef ROUTE
#define ROUTE(method, pattern, op, way, body, reply, query)                                        \
	{#method,     pattern,       0,    0, OP_##op, docker_step_##way, REASON_NONE,             \
	 BODY_##body, REPLY_##reply, query},
#define OWN(method, pattern, op, way, body, reply, query)                                          \
	{#method,     pattern,       0,    0, OP_##op, podman_step_##way, REASON_NONE,             \
	 BODY_##body, REPLY_##reply, query},
#include "backends/podman/libpod.def"
#undef OWN
#undef BODY_CONTEXT
#undef BODY_TAR
#undef CLOSED
#undef ROUTE
};

/* --- what the service is --- */

static bool is_podman(struct backend_call *call, const struct jv *version)
{
	const struct jv *parts = jv_get(version, "Components");

	for (size_t i = 0; parts && parts->kind == JV_ARRAY && i < parts->count; i++)
		if (strcmp(jv_str(&parts->items[i], "Name", ""), "Podman Engine") == 0)
			return true;
	docker_refuse(call, REASON_engine_reply, "Components", NULL)->text =
		"the service is not Podman: the operator must write kind = \"docker\" for a "
		"Docker engine";
	return false;
}

/* --- where things are asked for --- */

/* Podman's own view says what runs a container; the compatible one does not. */
static const char *podman_target(struct backend_call *call, const char *before, struct span name,
				 const char *after)
{
	bool image = strcmp(before, "/images/") == 0;

	if (strcmp(after, "/json") != 0 || (strcmp(before, "/containers/") != 0 && !image))
		return NULL;
	/* Names mean in each tree what they mean there. */
	if (image && !docker_state(call)->prefix && !docker_state(call)->from_own)
		return NULL;
	return docker_text(call, PODMAN_PREFIX "/libpod%s%s%s", before,
			   docker_encoded(call, name, image ? "/:@" : ""), after);
}

static const char *info_target(struct backend_call *call)
{
	(void)call;
	return PODMAN_PREFIX "/libpod/info";
}

const struct docker_flavor podman_flavor = {
	.ops = &backend_podman,
	.routes = routes,
	.route_count = sizeof(routes) / sizeof(*routes),
	.take_version = podman_take_version,
	.is_it = is_podman,
	.accepts = podman_accepts,
	.target = podman_target,
	.info_target = info_target,
	.translate = podman_translate,
	.finish = podman_finish,
	.compares = "Runtime CapAdd CapDrop Binds NanoCpus CpuQuota CpuPeriod PidsLimit",
	.compare = podman_compare,
	.running = "[\"running\",\"paused\"]",
	.filters_are_paths = true,
	.runtime_is_fixed = true,
	.args_are_hidden = true,
	.origin_is_hidden = true,
	.image_by_id_only = true,
	.no_policy_changes = true,
};

/* --- the table of functions --- */

static struct backend *podman_open(const struct backend_conf *conf, struct err *err)
{
	return docker_open_as(&podman_flavor, conf, err);
}

const struct backend_ops backend_podman = {
	.kind = "podman",
	.summary = "Podman's service, by its compatible API and its own",
	.fact_names = docker_fact_names,
	.open = podman_open,
	.close = docker_close,
	.forget = docker_forget,
	.route = docker_route_call,
	.intake = docker_intake,
	.step = docker_step,
	.count = docker_count,
	.apply = docker_apply,
	.render = docker_render,
	.reply_header = docker_reply_header,
	.filter = docker_filter,
	.row = docker_row,
	.check = docker_check,
	.undo = docker_undo,
	.created = docker_created,
	.caller = docker_caller,
	.refusal = podman_refusal,
	.running = docker_running,
	.running_row = docker_running_row,
	.restart = docker_restart,
	.again = docker_again,
	.stop = docker_stop,
	.isolation_target = PODMAN_PREFIX "/libpod/info",
	.isolation = podman_isolation,
	.health_target = docker_health_target,
	.watch = docker_watch,
	.happened = docker_happened,
	.by_itself = docker_by_itself,
	.list_target = "/containers/json?all=1",
	.inspect_target = docker_inspect_target,
	.listed = docker_listed,
	.started_ns = docker_started_ns,
};
