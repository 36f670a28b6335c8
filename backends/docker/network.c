#include "backends/docker/docker_priv.h"

#include <string.h>

static const struct lookup *ask_network(struct backend_call *call, struct span name)
{
	return docker_ask(call, docker_target(call, "/networks/", name, ""), "networks",
			  docker_whole(call, name));
}

static const char *missing(struct backend_call *call)
{
	return docker_text(call, "network %s not found",
			   docker_cut(call, docker_state(call)->name));
}

/* Who else is on a network that is not the caller's own, is theirs. */
static void hold_members(struct backend_call *call)
{
	bool shown =
		call->object.mine || reach_of_all(call->reach, REACH_CONTAINERS) != ACCESS_NONE;

	if (call->op == OP_NETWORK_INSPECT && !shown)
		call->reply = REPLY_HELD;
}

void docker_step_network(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct lookup *answer = docker_speak(d, call) ? ask_network(call, st->name) : NULL;
	struct docker_thing thing;

	if (!answer)
		return;
	if (answer->status >= 500) {
		docker_refuse(call, REASON_engine_reply, "network", NULL);
		return;
	}
	if (answer->status != 200) {
		docker_refuse(call, REASON_owner, "network", NULL)->text = missing(call);
		return;
	}
	thing = docker_network_thing(&answer->body);
	if (!docker_admit(call, &thing, missing(call)))
		return;
	docker_object(call, &thing);
	st->target = call->object.id;
	hold_members(call);
}

/* --- create --- */

struct creating {
	struct docker_reading *r;
	struct jv *options;
};

static void say(const struct creating *c, const char *name)
{
	jv_push(c->r->call->arena, c->options, jv_string(docker_word(c->r->call, span_of(name))));
}

/* Whatever is more than a plain bridge is listed among the options. */
static void say_settings(const struct creating *c, const struct jv *body)
{
	/* Attachable says nothing of a bridge: it is meant for networks of a swarm. */
	static const char *const switches[] = {"Ingress", "ConfigOnly", "EnableIPv6"};
	const struct jv *ipam = jv_get(body, "IPAM"), *v4 = jv_get(body, "EnableIPv4");
	const struct jv *config = jv_get(ipam, "Config"), *options = jv_get(ipam, "Options");
	const char *driver = jv_str(ipam, "Driver", "");

	for (size_t i = 0; i < sizeof(switches) / sizeof(*switches); i++)
		if (jv_true(body, switches[i]))
			say(c, switches[i]);
	if (v4 && v4->kind == JV_BOOL && !v4->b)
		say(c, "EnableIPv4");
	if (*jv_str(jv_get(body, "ConfigFrom"), "Network", ""))
		say(c, "ConfigFrom");
	if (*jv_str(body, "Scope", "") && strcmp(jv_str(body, "Scope", ""), "local") != 0)
		say(c, "Scope");
	if (*driver && strcmp(driver, "default") != 0)
		say(c, "IPAM.Driver");
	if (config && !jv_is_neutral(config))
		say(c, "IPAM.Config");
	if (options && !jv_is_neutral(options))
		say(c, "IPAM.Options");
}

void docker_step_network_create(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	const struct jv *body = &docker_state(call)->body, *options;
	struct creating c = {&r, NULL};
	const char *driver;

	if (!docker_body(call, SCHEMA_NETWORK) || !docker_speak(d, call))
		return;
	driver = jv_str(body, "Driver", "");
	options = jv_get(body, "Options");
	docker_fact(&r, "name", jv_string(jv_str(body, "Name", "")));
	docker_fact(&r, "net.driver", jv_string(*driver ? driver : "bridge"));
	docker_fact(&r, "net.internal", jv_bool(jv_true(body, "Internal")));
	c.options = docker_fact_list(&r, "net.options");
	for (size_t i = 0; options && options->kind == JV_OBJECT && i < options->count; i++)
		say(&c, docker_whole(call, options->members[i].key));
	say_settings(&c, body);
	docker_say_labels(&r, jv_get(body, "Labels"));
	call->object = (struct object){
		.kind = "network", .id = "", .name = jv_str(body, "Name", ""), .owner = ""};
	call->workload = (struct workload){.facts = r.facts};
}

/* --- connect and disconnect --- */

/*
 * A container may be taken off a network that is not shown to its owner; the
 * engine's answer for one that it is not on would tell that there is such a network.
 */
static bool is_hidden(const struct backend_call *call, const struct lookup *network,
		      const struct jv *container)
{
	const struct docker_thing thing = docker_network_thing(&network->body);

	return call->op == OP_NETWORK_DISCONNECT && network->status == 200 &&
	       !docker_sees(call, &thing) && !docker_is_on(container, &thing);
}

/*
 * The network need not be the caller's: rules say which may be used.  One that
 * is not there is judged by its name first, so that nobody learns which exist.
 */
void docker_step_network_join(struct docker *d, struct backend_call *call)
{
	bool connects = call->op == OP_NETWORK_CONNECT;
	struct docker_state *st = docker_state(call);
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	const char *given = docker_whole(call, st->name);
	const struct jv *container;
	const struct lookup *answer;

	if (!docker_body(call, connects ? SCHEMA_CONNECT : SCHEMA_DISCONNECT) ||
	    !docker_speak(d, call))
		return;
	answer = ask_network(call, st->name);
	container = docker_container(d, call, span_of(jv_str(&st->body, "Container", "")));
	if (!answer || !container)
		return;
	if (answer->status >= 500) {
		docker_refuse(call, REASON_engine_reply, "network", NULL);
		return;
	}
	st->target = jv_str(&answer->body, "Id", given);
	jv_set(call->arena, &st->body, "Container", jv_string(call->object.id));
	if ((answer->status && answer->status != 200) || is_hidden(call, answer, container))
		call->instead = (struct violation){.reason = REASON_owner,
						   .rule = "canonical",
						   .field = "network",
						   .value = "",
						   .text = missing(call),
						   .hint = ""};
	if (connects && !docker_find_predecessor(call))
		return;
	r.update = call->replaces.kind == JV_OBJECT;
	r.old_id = docker_replaced_id(call);
	docker_add_endpoint(&r, given, jv_get(&st->body, "EndpointConfig"), "EndpointConfig");
	call->workload = (struct workload){.facts = r.facts};
}
