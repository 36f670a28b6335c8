/* What is sent to Podman, and what it made of that. */
#include "backends/podman/podman_priv.h"

#include <string.h>

static size_t length(const struct jv *list)
{
	return list && list->kind == JV_ARRAY ? list->count : 0;
}

/* --- what is sent --- */

/* Podman splits options at '=' alone, and knows one spelling of each. */
static struct jv options_of(struct backend_call *call, const struct jv *old)
{
	struct jv list = jv_array();

	for (size_t i = 0; i < length(old); i++) {
		struct span name, value;

		docker_split_option(old->items[i].str, &name, &value);
		if (span_is(name, "no-new-privileges")) {
			if (docker_option_is_yes(value))
				jv_push(call->arena, &list, jv_string("no-new-privileges"));
			continue;
		}
		if (value.len)
			jv_push(call->arena, &list,
				jv_string(docker_text(call, "%.*s=%.*s", SPAN_FMT(name),
						      SPAN_FMT(value))));
		else
			jv_push(call->arena, &list, old->items[i]);
	}
	return list;
}

void podman_finish(struct backend_call *call, struct jv *config, struct jv *host)
{
	const struct jv *options = jv_get(host, "SecurityOpt");

	(void)config;
	jv_set(call->arena, host, "Runtime", jv_null());
	if (options)
		jv_set(call->arena, host, "SecurityOpt", options_of(call, options));
}

/* --- what was made --- */

static void differs(struct backend_call *call, const char *field, const char *made,
		    const char *judged)
{
	docker_refuse(call, REASON_not_as_judged, field, made)->text = docker_text(
		call, "%s is %s in what the engine made; %s was judged", field, made, judged);
}

static bool holds(struct backend_call *call, const struct jv *list, const char *name)
{
	for (size_t i = 0; i < length(list); i++)
		if (list->items[i].kind == JV_STRING &&
		    strcmp(docker_capability(call, list->items[i].str), name) == 0)
			return true;
	return false;
}

/* What engines leave to a container of which nothing was asked: one that leaves more is not judged.
 */
static bool is_ordinary(const char *name)
{
	static const char *const ordinary[] = {
		"AUDIT_WRITE", "CHOWN",   "DAC_OVERRIDE", "FOWNER",     "FSETID",
		"KILL",        "MKNOD",   "NET_RAW",      "SETFCAP",    "NET_BIND_SERVICE",
		"SETGID",      "SETPCAP", "SETUID",       "SYS_CHROOT",
	};

	for (size_t i = 0; i < sizeof(ordinary) / sizeof(*ordinary); i++)
		if (strcmp(ordinary[i], name) == 0)
			return true;
	return false;
}

/* Podman lists what is left, which must be no more than what was sent leaves. */
static void compare_capabilities(struct backend_call *call, const struct jv *sent,
				 const struct jv *doc)
{
	const struct jv *left = jv_get(doc, "BoundingCaps"), *add = jv_get(sent, "CapAdd");
	const struct jv *drop = jv_get(sent, "CapDrop");
	bool none = holds(call, drop, "ALL");

	if (jv_true(sent, "Privileged") || holds(call, add, "ALL"))
		return; /* there is nothing that it could have beside */
	for (size_t i = 0; i < length(left); i++) {
		const char *name = left->items[i].kind == JV_STRING
					   ? docker_capability(call, left->items[i].str)
					   : "";

		if (!holds(call, add, name) &&
		    (none || holds(call, drop, name) || !is_ordinary(name)))
			differs(call, "BoundingCaps", name, "without it");
	}
}

static void compare_runtime(struct backend_call *call, const struct jv *host)
{
	const struct docker_info *info = docker_state(call)->info;
	const char *made = jv_str(host, "Runtime", "");

	if (!*made ||
	    (strcmp(made, info->default_runtime) != 0 && strcmp(made, info->runtime_alias) != 0))
		differs(call, "OCIRuntime", *made ? made : "not told", info->default_runtime);
}

static void compare_limits(struct backend_call *call, const struct jv *sent, const struct jv *host)
{
	int64_t cpus = docker_nano_cpus(sent), made = docker_nano_cpus(host);
	int64_t pids = jv_num(sent, "PidsLimit", 0), made_pids = jv_num(host, "PidsLimit", 0);

	if (cpus != made)
		differs(call, "HostConfig.NanoCpus", docker_text(call, "%lld", (long long)made),
			docker_text(call, "%lld", (long long)cpus));
	/* Where none is asked for the service sets its own. */
	if (pids > 0 && pids != made_pids)
		differs(call, "HostConfig.PidsLimit",
			docker_text(call, "%lld", (long long)made_pids),
			docker_text(call, "%lld", (long long)pids));
}

static bool spreads(const char *propagation)
{
	return *propagation && strcmp(propagation, "rprivate") != 0 &&
	       strcmp(propagation, "private") != 0;
}

static bool was_judged(const struct backend_call *call, const char *target, const char *option)
{
	const struct jv *list = jv_get(&call->workload.facts, "mounts");

	for (size_t i = 0; i < length(list); i++) {
		const struct jv *options = jv_get(&list->items[i], "options");

		for (size_t k = 0; k < length(options); k++)
			if (span_is(options->items[k].str, option) &&
			    strcmp(jv_str(&list->items[i], "target", ""), target) == 0)
				return true;
	}
	return false;
}

static void compare_propagation(struct backend_call *call, const struct jv *doc)
{
	const struct jv *list = jv_get(doc, "Mounts");

	for (size_t i = 0; i < length(list); i++) {
		const char *propagation = jv_str(&list->items[i], "Propagation", "");
		const char *target = jv_str(&list->items[i], "Destination", "");

		if (spreads(propagation) && !was_judged(call, target, propagation))
			differs(call, docker_text(call, "Mounts[%zu].Propagation", i), propagation,
				"private");
	}
}

/* A field that no reading knows: see translate.c. */
static void compare_foreign(struct backend_call *call, const struct jv *host)
{
	static const char *const keys[] = {"Pod",     "Rootfs",      "Cgroups",
					   "Secrets", "Annotations", "CgroupConf"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct jv *v = jv_get(host, keys[i]);

		if (v && !jv_is_neutral(v))
			differs(call, docker_text(call, "HostConfig.%s", keys[i]), "set",
				"nothing");
	}
}

void podman_compare(struct backend_call *call, const struct jv *sent, const struct jv *host,
		    const struct jv *doc)
{
	compare_runtime(call, host);
	compare_capabilities(call, sent, doc);
	compare_limits(call, sent, host);
	compare_propagation(call, doc);
	compare_foreign(call, host);
}
