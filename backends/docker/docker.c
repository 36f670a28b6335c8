#include "backends/docker/build_priv.h"
#include "backends/list_priv.h"

#include <assert.h>
#include <stdlib.h>

struct docker *docker_of(struct backend *be)
{
	assert(be->ops->close == docker_close); /* all that are made by docker_open_as() */
	return (struct docker *)be;
}

void docker_forget(struct backend *be)
{
	struct docker *d = docker_of(be);

	d->has_version = false;
	arena_destroy(d->info_arena);
	d->info_arena = NULL;
}

void docker_close(struct backend *be)
{
	docker_forget(be);
	free(docker_of(be)->compiled);
	free(be);
}

struct backend *docker_open_as(const struct docker_flavor *flavor, const struct backend_conf *conf,
			       struct err *err)
{
	struct docker *d = calloc(1, sizeof(*d));

	if (!d)
		goto no_memory;
	d->base.ops = flavor->ops;
	d->flavor = flavor;
	d->compiled = calloc(flavor->route_count, sizeof(*d->compiled));
	if (!d->compiled)
		goto no_memory;
	for (size_t i = 0; i < flavor->route_count; i++)
		docker_compile(&d->compiled[i], &flavor->routes[i]);
	return &d->base;
no_memory:
	free(d);
	err_set(err, ERR_SYSTEM, "backend %s: out of memory", conf->name);
	return NULL;
}

static struct backend *docker_open(const struct backend_conf *conf, struct err *err)
{
	return docker_open_as(&docker_plain, conf, err);
}

enum step docker_step(struct backend *be, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);

	docker_harvest(call);
	call->refused = (struct violations){.count = 0};
	if (!st->echoed || docker_echo(call))
		st->route->step(docker_of(be), call);
	if (arena_spent(call->arena))
		docker_refuse(call, REASON_no_memory, NULL, NULL);
	if (call->refused.count)
		return STEP_REFUSED;
	docker_hold_hidden(call);
	return call->lookup_count ? STEP_LOOKUP : STEP_READY;
}

const char *docker_created(const struct backend_call *call)
{
	const struct docker_state *st = docker_state(call);

	return st && st->created ? st->created : "";
}

void docker_refusal(const char *message, struct buf *ret_body, const char **ret_content_type)
{
	buf_puts(ret_body, "{\"message\":");
	jv_write_str(ret_body, span_of(message));
	buf_puts(ret_body, "}\n");
	*ret_content_type = "application/json";
}

const char *docker_health_target(struct backend *be)
{
	(void)be;
	return "/containers/json?limit=1";
}

const struct fact_name docker_fact_names[] = {
#define NAME(fact, field) {fact, field},
#include "backends/docker/names.def"
#undef NAME
	{NULL, NULL},
};

const struct backend_ops backend_docker = {
	.kind = "docker",
	.summary = "Docker Engine, and what speaks its API",
	.fact_names = docker_fact_names,
	.open = docker_open,
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
