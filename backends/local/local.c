/*
 * local.c - the adapter of sandboxes on this host: the service is the gate's own keeper
 * (gate/keeper), which speaks the part of Docker's API that routes.def names, so the adapter is
 * Docker's but for that table, and for one fact: that what runs are programs of the host.
 *
 * There is one image, a view of the folders that the operator named, and there are two runtimes:
 * "confined" and "bare". What holds, and how well, is judged by the same tables as elsewhere.
 */
#include "backends/docker/build_priv.h"
#include "backends/list_priv.h"

#include <string.h>

static const struct docker_route routes[] = {
#define ROUTE(method, pattern, since, until, op, way, body, reply, query)                          \
	{#method,           pattern,     since,       until,         OP_##op,                      \
	 docker_step_##way, REASON_NONE, BODY_##body, REPLY_##reply, query},
#define CLOSED(method, pattern, op, reason)                                                        \
	{#method, pattern, 0, 0, OP_##op, NULL, REASON_##reason, BODY_NONE, REPLY_STREAM, ""},
#define BODY_CONTEXT BODY_REWRITE
#include "backends/local/routes.def"
#undef BODY_CONTEXT
#undef CLOSED
#undef ROUTE
};

/* Whoever answers at the address must be the gate's own: of others this is not judged rightly. */
static bool is_keeper(struct backend_call *call, const struct jv *version)
{
	const struct jv *parts = jv_get(version, "Components");

	for (size_t i = 0; parts && parts->kind == JV_ARRAY && i < parts->count; i++)
		if (strcmp(jv_str(&parts->items[i], "Name", ""), "sallyport-keeper") == 0)
			return true;
	docker_refuse(call, REASON_engine_reply, "Components", NULL)->text =
		"what answers at the backend's address is not the gate's keeper: the operator "
		"must name another address";
	return false;
}

/* The runtime says how it would be run; what is no runtime of the keeper's is granted by nothing.
 */
static void local_facts(struct docker_reading *r)
{
	const char *given = jv_str(r->host, "Runtime", "");

	docker_fact(r, "host_tools", jv_string(*given ? given : "confined"));
}

const struct docker_flavor local_flavor = {
	.ops = &backend_local,
	.routes = routes,
	.route_count = sizeof(routes) / sizeof(*routes),
	.is_it = is_keeper,
	.facts = local_facts,
	.running = "[\"running\"]",
};

static struct backend *local_open(const struct backend_conf *conf, struct err *err)
{
	return docker_open_as(&local_flavor, conf, err);
}

/* Its sandboxes are no containers that a caller could be looked up in: there is no caller(). */
const struct backend_ops backend_local = {
	.kind = "local",
	.summary = "Programs of this host, in sandboxes that the gate keeps itself",
	.fact_names = docker_fact_names,
	.open = local_open,
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
	.refusal = docker_refusal,
	.running = docker_running,
	.running_row = docker_running_row,
	.restart = docker_restart,
	.again = docker_again,
	.stop = docker_stop,
	.isolation_target = "/info",
	.isolation = docker_isolation,
	.health_target = docker_health_target,
	.watch = docker_watch,
	.happened = docker_happened,
	.by_itself = docker_by_itself,
	.list_target = "/containers/json?all=1",
	.inspect_target = docker_inspect_target,
	.listed = docker_listed,
	.started_ns = docker_started_ns,
};
