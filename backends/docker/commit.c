#include "backends/docker/docker_priv.h"

#include <string.h>

/* The client sends null where it changes nothing. */
static bool read_body(struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct span body = call->req->body;

	while (body.len && strchr(" \t\r\n", body.at[0]))
		body = span_skip(body, 1);
	while (body.len && strchr(" \t\r\n", body.at[body.len - 1]))
		body.len--;
	if (st->parsed || (body.len && !span_is(body, "null")))
		return docker_body(call, SCHEMA_CONFIG);
	st->body = jv_object();
	st->parsed = true;
	return true;
}

/* What an image cannot hold, and Dockerfile lines, which are another way to say the same. */
static bool check_extras(struct backend_call *call)
{
	static const char *const foreign[] = {"HostConfig", "NetworkingConfig"};
	const struct jv *body = &docker_state(call)->body;

	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++) {
		const struct jv *v = jv_get(body, foreign[i]);

		if (v && !jv_is_neutral(v))
			docker_refuse(call, REASON_json_unknown, foreign[i], NULL)->text =
				"an image has no such settings";
	}
	if (docker_query_value(call->req, "changes").len) {
		call->withheld |= WITHHELD_VALUE;
		docker_refuse(call, REASON_commit, "query.changes", NULL)->text =
			"changes in the form of Dockerfile lines are refused";
	}
	return !call->refused.count;
}

static void say_config(struct docker_reading *r, const struct jv *config)
{
	const struct jv *test = jv_path(config, "Healthcheck.Test"), *env = jv_get(config, "Env");
	bool checks = test && test->count && test->items[0].kind == JV_STRING &&
		      test->items[0].str.len && !span_is(test->items[0].str, "NONE");
	struct jv names = jv_array();

	for (size_t i = 0; env && env->kind == JV_ARRAY && i < env->count; i++) {
		struct span rest = env->items[i].str, name;

		span_cut(&rest, '=', &name);
		jv_push(r->call->arena, &names, jv_string(docker_word(r->call, name)));
	}
	docker_fact(r, "env", names);
	docker_fact(r, "command.healthcheck", jv_bool(checks));
	docker_fact(r, "user.given", jv_string(jv_str(config, "User", "")));
	docker_say_labels(r, jv_get(config, "Labels"));
}

void docker_step_commit(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	struct docker_state *st = docker_state(call);
	struct span name = docker_query_value(call->req, "container");
	const struct jv *doc;

	st->asked = jv_object();
	if (!name.len) {
		docker_refuse_query(call, "container", "no container is named");
		return;
	}
	if (!read_body(call) || !check_extras(call))
		return;
	doc = docker_container(d, call, name);
	if (!doc)
		return;
	st->made = *doc;
	docker_send(call, "container", call->object.id);
	if (!docker_read_new_name(&r))
		return;
	docker_send_given(call, "comment");
	docker_send_given(call, "author");
	if (docker_query(call->req, "pause"))
		docker_send(call, "pause", docker_query_true(call->req, "pause") ? "1" : "0");
	say_config(&r, &st->body);
	call->workload = (struct workload){.facts = r.facts};
}

/*
 * The engine takes a container's labels over into the image, and a label of
 * the gate would make whatever runs from it somebody's: each is overwritten.
 */
static struct jv without_ours(struct backend_call *call, const struct jv *labels,
			      const struct jv *inherited)
{
	struct jv to = jv_object();

	for (size_t i = 0; labels && labels->kind == JV_OBJECT && i < labels->count; i++)
		jv_set_span(call->arena, &to, labels->members[i].key, labels->members[i].value);
	for (size_t i = 0; inherited && inherited->kind == JV_OBJECT && i < inherited->count; i++)
		if (span_starts(inherited->members[i].key, GATE_LABEL_PREFIX))
			jv_set_span(call->arena, &to, inherited->members[i].key, jv_string(""));
	jv_set(call->arena, &to, GATE_LABEL_OWNER, jv_string(""));
	jv_set(call->arena, &to, GATE_LABEL_ID, jv_string(""));
	return to;
}

/* Who changes nothing gets the container's own configuration, as from the engine. */
struct jv docker_commit_document(struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct jv *own = jv_get(&st->made, "Config");
	bool changes = st->body.count > 0;
	struct jv none = jv_object();
	struct jv doc = docker_in_order(
		call->arena, SCHEMA_CONFIG,
		changes || !own || own->kind != JV_OBJECT ? (changes ? &st->body : &none) : own);

	jv_set(call->arena, &doc, "Labels",
	       without_ours(call, jv_get(&doc, "Labels"), jv_path(&st->made, "Config.Labels")));
	return docker_in_order(call->arena, SCHEMA_CONFIG, &doc);
}
