#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- making facts --- */

/* The object that holds the last step of path; *ret_last is that step. */
static struct jv *holder(struct docker_reading *r, const char *path, struct span *ret_last)
{
	struct span rest = span_of(path), step;
	struct jv *at = &r->facts;

	while (span_cut(&rest, '.', &step)) {
		struct jv *next = (struct jv *)jv_get_span(at, step);

		at = next ? next : jv_set_span(r->call->arena, at, step, jv_object());
	}
	*ret_last = step;
	return at;
}

void docker_fact(struct docker_reading *r, const char *path, struct jv value)
{
	struct span last;
	struct jv *at = holder(r, path, &last);

	jv_set_span(r->call->arena, at, last, value);
}

struct jv *docker_fact_list(struct docker_reading *r, const char *path)
{
	struct span last;
	struct jv *at = holder(r, path, &last);
	struct jv *list = (struct jv *)jv_get_span(at, last);

	return list ? list : jv_set_span(r->call->arena, at, last, jv_array());
}

/* Lists that are known to be empty say so; what is absent is not known. */
static void start_lists(struct docker_reading *r)
{
	static const char *const lists[] = {
		"env",
		"isolation.runtimes",
		"isolation.lowered",
		"isolation.adds",
		"capabilities.add",
		"capabilities.drop",
		"security",
		"user.groups",
		"namespaces",
		"mounts",
		"volumes_from",
		"network.endpoints",
		"network.ports",
		"network.hosts",
		"network.links",
		"devices",
		"sysctls",
		"limits.lifted",
		"annotations",
		"storage_options",
		"labels",
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		docker_fact_list(r, lists[i]);
}

/* --- what is said beside HostConfig --- */

static void read_env(struct docker_reading *r)
{
	const struct jv *env = jv_get(r->config, "Env");
	struct jv *names = docker_fact_list(r, "env");

	for (size_t i = 0; env && env->kind == JV_ARRAY && i < env->count; i++) {
		struct span rest = env->items[i].str, name;

		if (env->items[i].kind != JV_STRING)
			continue;
		span_cut(&rest, '=', &name);
		jv_push(r->call->arena, names, jv_string(docker_word(r->call, name)));
	}
}

static bool given(const struct docker_reading *r, const char *key)
{
	const struct jv *v = jv_get(r->config, key);

	return v && !jv_is_neutral(v);
}

/* An existing container shows the image's entry point and health check as its own. */
static void read_command(struct docker_reading *r)
{
	const struct jv *entry = jv_get(r->config, "Entrypoint");
	const struct jv *test = jv_path(r->config, "Healthcheck.Test");
	bool checks = test && test->kind == JV_ARRAY && test->count &&
		      test->items[0].kind == JV_STRING && test->items[0].str.len &&
		      !span_is(test->items[0].str, "NONE");

	if (r->made && !r->update)
		return;
	if (!r->made && (given(r, "Cmd") || given(r, "Entrypoint") || given(r, "Healthcheck")))
		r->call->withheld |= WITHHELD_COMMAND;
	docker_fact(r, "command.entrypoint_given", jv_bool(entry && entry->kind != JV_NULL));
	docker_fact(r, "command.healthcheck", jv_bool(checks));
}

#define SHORT_ID 12 /* digits that engines show; fewer may be anybody's name */

bool docker_is_own_id(const struct docker_reading *r, struct span s)
{
	const char *const ids[] = {r->id, r->old_id};

	for (size_t i = 0; i < 2; i++)
		if (ids[i] && s.len >= SHORT_ID && strncmp(ids[i], s.at, s.len) == 0)
			return true;
	return false;
}

/* An engine calls a container by its id; one in another network's name space by what that one is
 * called. */
static bool is_engines_hostname(const struct docker_reading *r, const char *name)
{
	const char *mode = jv_str(r->host, "NetworkMode", "");

	return docker_engine_filled(r) &&
	       ((r->made && !r->id) || docker_is_own_id(r, span_of(name)) ||
		strcmp(mode, "host") == 0 || strncmp(mode, "container:", 10) == 0);
}

static void read_hostname(struct docker_reading *r)
{
	const char *name = jv_str(r->config, "Hostname", "");

	if (*name && !is_engines_hostname(r, name))
		docker_fact(r, "hostname", jv_string(name));
}

static void read_identity(struct docker_reading *r)
{
	const struct jv *labels = jv_get(r->config, "Labels");
	struct jv *list = docker_fact_list(r, "labels");
	struct span name = docker_query_value(r->call->req, "name");

	/* Names and labels were judged when it was made, and the engine adds to them. */
	if (r->made && !r->update)
		return;
	for (size_t i = 0; labels && labels->kind == JV_OBJECT && i < labels->count; i++) {
		const char *label = docker_word(r->call, labels->members[i].key);
		struct jv *entry;

		if (docker_skips_label(r, labels->members[i].key))
			continue;
		entry = jv_push(r->call->arena, list, jv_object());
		jv_set(r->call->arena, entry, "name", jv_string(label));
		jv_set(r->call->arena, entry, "field",
		       jv_string(docker_text(r->call, "Labels.%s", label)));
	}
	if (name.len && !r->made)
		docker_fact(r, "name",
			    jv_string(docker_whole(r->call, span_skip(name, *name.at == '/'))));
}

bool docker_read_workload(struct docker_reading *r)
{
	struct backend_call *call = r->call;

	start_lists(r);
	docker_read_isolation(r);
	if (docker_state(call)->flavor->facts)
		docker_state(call)->flavor->facts(r);
	read_command(r);
	read_env(r);
	docker_read_privileges(r);
	docker_read_namespaces(r);
	docker_read_mounts(r);
	docker_read_network(r);
	docker_read_limits(r);
	read_identity(r);
	read_hostname(r);
	docker_read_sealed(r);
	docker_finish_isolation(r);
	call->workload = (struct workload){r->facts, r->level};
	return !call->lookup_count && !call->refused.count;
}
