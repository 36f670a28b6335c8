#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- names --- */

static bool is_default(const char *name)
{
	return !*name || strcmp(name, "default") == 0 || strcmp(name, "bridge") == 0;
}

/*
 * The network's own name: it may have been given by its id.  A part of an id
 * is taken for networks of the caller only, so that nobody can feel for the
 * names of others'.  A network that is not there keeps the name it was given.
 */
const char *docker_network_name(struct backend_call *call, const char *given)
{
	const struct lookup *answer;
	struct docker_thing thing;
	const char *name;

	if (is_default(given))
		return "default";
	if (strcmp(given, "none") == 0 || strcmp(given, "host") == 0)
		return given;
	answer = docker_ask(call, docker_target(call, "/networks/", span_of(given), ""), "networks",
			    given);
	if (!answer || answer->status != 200)
		return given;
	name = jv_str(&answer->body, "Name", given);
	thing = docker_network_thing(&answer->body);
	if (!*thing.id)
		docker_refuse(call, REASON_engine_reply, "network", given);
	if (strcmp(name, given) != 0 && strcmp(thing.id, given) != 0 &&
	    !docker_sees(call, &thing)) {
		docker_refuse(call, REASON_network, "network", given)->text =
			"networks of others are named in full";
		return given;
	}
	return is_default(name) ? "default" : name;
}

/* Whether the network is the caller's own. */
static bool is_mine(struct backend_call *call, const char *given)
{
	const struct lookup *answer;
	struct docker_thing thing;

	if (is_default(given) || strcmp(given, "none") == 0 || strcmp(given, "host") == 0)
		return false;
	answer = docker_ask(call, docker_target(call, "/networks/", span_of(given), ""), "networks",
			    given);
	if (!answer || answer->status != 200)
		return false;
	thing = docker_network_thing(&answer->body);
	return docker_is_mine(call, &thing) && !docker_is_gates_own(call, &thing);
}

/*
 * A name may be given to another network once this one is gone, and the engine joins whatever has
 * it when it starts the container again.
 */
const char *docker_network_sent(struct backend_call *call, const char *given)
{
	const char *name = docker_network_name(call, given);
	const struct lookup *answer;

	if (docker_state(call)->flavor != &docker_plain || !is_mine(call, given))
		return name;
	answer = docker_ask(call, docker_target(call, "/networks/", span_of(given), ""), "networks",
			    given);
	docker_state(call)->network_name = name;
	return answer ? jv_str(&answer->body, "Id", name) : name;
}

/* --- namespaces --- */

struct joined {
	const char *id;   /* full, or as given if there is none that the caller may see */
	const char *full; /* the same, whoever may see it: for the engine, not for people */
	bool known, mine;
};

/* The container whose namespace is joined.  Whose it is, rules decide. */
static struct joined joined_container(struct backend_call *call, struct span name)
{
	const struct lookup *answer =
		docker_ask(call, docker_target(call, "/containers/", name, "/json"), "containers",
			   docker_whole(call, name));
	const char *given = docker_whole(call, name);
	struct docker_thing thing;
	struct joined j = {.id = given, .full = given};

	if (!answer || !answer->status)
		return j;
	j.known = true;
	if (answer->status != 200)
		return j;
	thing = docker_container_thing(&answer->body);
	j.mine = docker_is_mine(call, &thing) && !docker_is_gates_own(call, &thing);
	j.full = jv_str(&answer->body, "Id", given);
	if (docker_sees(call, &thing))
		j.id = j.full;
	return j;
}

const char *docker_joined_id(struct backend_call *call, struct span mode)
{
	return joined_container(call, span_skip(mode, strlen("container:"))).full;
}

static void add_namespace(struct docker_reading *r, const char *name, const char *mode,
			  const char *field)
{
	struct span given = span_of(mode);
	bool joins = span_starts(given, "container:");
	struct jv *entry;
	struct joined j;

	entry = jv_push(r->call->arena, docker_fact_list(r, "namespaces"), jv_object());
	jv_set(r->call->arena, entry, "name", jv_string(name));
	jv_set(r->call->arena, entry, "mode", jv_string(joins ? "container" : mode));
	jv_set(r->call->arena, entry, "field", jv_string(field));
	if (!joins)
		return;
	j = joined_container(r->call, span_skip(given, strlen("container:")));
	jv_set(r->call->arena, entry, "target", jv_string(j.id));
	if (j.known)
		jv_set(r->call->arena, entry, "mine", jv_bool(j.mine));
}

/* The engine's own choice, which it writes into what it makes. */
static bool is_engines_choice(const struct docker_reading *r, const char *key, const char *mode)
{
	return docker_engine_filled(r) && strcmp(key, "CgroupnsMode") == 0 && r->info->cgroup_v1 &&
	       strcmp(mode, "host") == 0;
}

void docker_read_namespaces(struct docker_reading *r)
{
	static const struct {
		const char *key, *name;
		int with_host; /* enum isolation_lower of mode host; -1: it lowers nothing */
	} modes[] = {
		{"PidMode", "pid", LOWER_PID_HOST},
		{"IpcMode", "ipc", LOWER_IPC_HOST},
		{"UTSMode", "uts", -1},
		{"UsernsMode", "user", LOWER_USER_HOST},
		{"CgroupnsMode", "cgroup", -1},
	};
	const struct jv *drops = jv_path(&r->facts, "capabilities.drop_all");

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		const char *mode = jv_str(r->host, modes[i].key, "");
		const char *field = docker_text(r->call, "HostConfig.%s", modes[i].key);

		if (!*mode || is_engines_choice(r, modes[i].key, mode))
			continue;
		add_namespace(r, modes[i].name, mode, field);
		if (strcmp(mode, "host") != 0 || modes[i].with_host < 0)
			continue;
		if (modes[i].with_host == LOWER_PID_HOST && drops && drops->b)
			docker_lower(r, LOWER_PID_HOST_DROPPED, field, mode);
		else
			docker_lower(r, (enum isolation_lower)modes[i].with_host, field, mode);
	}
}

/* --- endpoints --- */

/* Also neutral: an object of nothing but neutral members. */
static bool says_nothing(const struct jv *v)
{
	if (jv_is_neutral(v))
		return true;
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++)
		if (!jv_is_neutral(&v->members[i].value))
			return false;
	return v->kind == JV_OBJECT;
}

/* The engine gives each container its short id as an alias. */
static bool only_own_id(const struct docker_reading *r, const struct jv *aliases)
{
	if (!docker_engine_filled(r) || (!r->id && !r->old_id) || aliases->kind != JV_ARRAY)
		return false;
	for (size_t i = 0; i < aliases->count; i++) {
		struct span s = aliases->items[i].kind == JV_STRING ? aliases->items[i].str
								    : (struct span){"", 0};

		if (!docker_is_own_id(r, s))
			return false;
	}
	return true;
}

static struct jv settings_of(const struct docker_reading *r, const struct jv *endpoint)
{
	static const struct {
		const char *key;
		bool of_request; /* in an existing container this is what the engine chose */
	} keys[] = {
		{"IPAMConfig", false}, {"Links", false},      {"Aliases", false},
		{"MacAddress", true},  {"DriverOpts", false}, {"GwPriority", false},
	};
	struct jv list = jv_array();

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct jv *v = jv_get(endpoint, keys[i].key);
		bool aliases = strcmp(keys[i].key, "Aliases") == 0;

		if (!v || says_nothing(v) || (keys[i].of_request && docker_engine_filled(r)))
			continue;
		if (!aliases || !only_own_id(r, v))
			jv_push(r->call->arena, &list, jv_string(keys[i].key));
	}
	return list;
}

static void add_endpoint(struct docker_reading *r, const char *name, bool mine, struct jv settings,
			 const char *field)
{
	struct jv *entry =
		jv_push(r->call->arena, docker_fact_list(r, "network.endpoints"), jv_object());

	jv_set(r->call->arena, entry, "name", jv_string(name));
	jv_set(r->call->arena, entry, "mine", jv_bool(mine));
	jv_set(r->call->arena, entry, "settings", settings);
	jv_set(r->call->arena, entry, "field", jv_string(field));
}

void docker_add_endpoint(struct docker_reading *r, const char *given, const struct jv *endpoint,
			 const char *field)
{
	add_endpoint(r, docker_network_name(r->call, given), is_mine(r->call, given),
		     settings_of(r, endpoint), field);
	docker_seal_endpoint(r, given, endpoint);
}

static void read_endpoints(struct docker_reading *r, const char *mode)
{
	const char *mac = jv_str(r->config, "MacAddress", "");

	for (size_t i = 0;
	     r->networking && r->networking->kind == JV_OBJECT && i < r->networking->count; i++) {
		const struct jv_member *m = &r->networking->members[i];
		const char *key = docker_whole(r->call, m->key);
		const char *name = docker_network_name(r->call, key);
		struct jv settings = settings_of(r, &m->value);

		/* The one that the mode says goes without saying. */
		if (!settings.count && strcmp(name, mode) == 0 && !(r->made && r->update))
			continue;
		add_endpoint(r, name, is_mine(r->call, key), settings,
			     docker_text(r->call, "NetworkingConfig.EndpointsConfig.%s", key));
	}
	/* Of an existing container, too, this is what was asked for. */
	if (*mac) {
		struct jv settings = jv_array();

		jv_push(r->call->arena, &settings, jv_string("MacAddress"));
		add_endpoint(r, mode, false, settings, "MacAddress");
	}
}

/* --- ports and names --- */

static void add_port(struct docker_reading *r, const char *port, const struct jv *binding,
		     const char *field)
{
	struct jv *entry =
		jv_push(r->call->arena, docker_fact_list(r, "network.ports"), jv_object());

	jv_set(r->call->arena, entry, "port", jv_string(port));
	jv_set(r->call->arena, entry, "address", jv_string(jv_str(binding, "HostIp", "")));
	jv_set(r->call->arena, entry, "host_port", jv_string(jv_str(binding, "HostPort", "")));
	jv_set(r->call->arena, entry, "field", jv_string(field));
}

static void read_ports(struct docker_reading *r)
{
	const struct jv *map = jv_get(r->host, "PortBindings");

	for (size_t i = 0; map && map->kind == JV_OBJECT && i < map->count; i++) {
		const struct jv *list = &map->members[i].value;
		const char *port = docker_word(r->call, map->members[i].key);
		const char *field = docker_text(r->call, "HostConfig.PortBindings.%s", port);

		/* Without a binding engines have differed in what they publish. */
		if (list->kind != JV_ARRAY || !list->count)
			add_port(r, port, NULL, field);
		for (size_t k = 0; list->kind == JV_ARRAY && k < list->count; k++)
			add_port(r, port, &list->items[k],
				 docker_text(r->call, "%s[%zu]", field, k));
	}
	docker_fact(r, "network.publish_all", jv_bool(jv_true(r->host, "PublishAllPorts")));
}

static void read_values(struct docker_reading *r, const char *key, const char *fact)
{
	const struct jv *list = jv_get(r->host, key);

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct jv *entry;

		if (list->items[i].kind != JV_STRING)
			continue;
		entry = jv_push(r->call->arena, docker_fact_list(r, fact), jv_object());
		jv_set(r->call->arena, entry, "value",
		       jv_string(docker_word(r->call, list->items[i].str)));
		jv_set(r->call->arena, entry, "field",
		       jv_string(docker_text(r->call, "HostConfig.%s[%zu]", key, i)));
	}
}

/* "/db:/web/alias" is how the engine shows what was asked for as db:alias. */
static const char *plain_link(struct docker_reading *r, struct span link)
{
	struct span alias = link, name, step;
	bool more = true;

	if (!r->update && !r->old_id)
		return docker_word(r->call, link);
	if (!span_cut(&alias, ':', &name))
		alias = name;
	if (name.len && *name.at == '/')
		name = span_skip(name, 1);
	while (more)
		more = span_cut(&alias, '/', &step);
	return docker_text(r->call, "%.*s:%.*s", SPAN_FMT(name), SPAN_FMT(step));
}

static void read_links(struct docker_reading *r)
{
	const struct jv *list = jv_get(r->host, "Links");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct jv *entry;

		if (list->items[i].kind != JV_STRING)
			continue;
		entry = jv_push(r->call->arena, docker_fact_list(r, "network.links"), jv_object());
		jv_set(r->call->arena, entry, "value",
		       jv_string(plain_link(r, list->items[i].str)));
		jv_set(r->call->arena, entry, "field",
		       jv_string(docker_text(r->call, "HostConfig.Links[%zu]", i)));
	}
}

/* --- together --- */

void docker_read_network(struct docker_reading *r)
{
	static const char *const hosts[] = {"ExtraHosts", "Dns", "DnsOptions", "DnsSearch"};
	const char *given = jv_str(r->host, "NetworkMode", "");
	bool joins = strncmp(given, "container:", 10) == 0;
	const char *mode = joins ? "container" : docker_network_name(r->call, given);

	docker_fact(r, "network.mode", jv_string(mode));
	if (!joins && is_mine(r->call, given))
		docker_fact(r, "network.mine", jv_bool(true));
	docker_fact(r, "network.given", jv_bool(*given && strcmp(given, "default") != 0));
	if (joins)
		add_namespace(r, "network", given, "HostConfig.NetworkMode");
	if (strcmp(mode, "host") == 0) {
		add_namespace(r, "network", mode, "HostConfig.NetworkMode");
		docker_lower(r, LOWER_NETWORK_HOST, "HostConfig.NetworkMode", given);
	}
	read_endpoints(r, mode);
	read_ports(r);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
		read_values(r, hosts[i], "network.hosts");
	read_links(r);
}
