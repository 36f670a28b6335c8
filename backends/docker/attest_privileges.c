/*
 * The privileges of a process that was started: at most what was judged.
 */
#include "backends/docker/attest_priv.h"
#include "gate/base/capability.h"

#include <stdlib.h>
#include <string.h>

static uint64_t judged_capabilities(const struct jv *facts)
{
	const struct jv *add = jv_path(facts, "capabilities.add");
	const struct jv *drop = jv_path(facts, "capabilities.drop");
	uint64_t all = capability_engine_default();

	for (size_t i = 0; drop && i < drop->count; i++)
		if (drop->items[i].kind == JV_STRING)
			all &= ~capability_bit(drop->items[i].str);
	for (size_t i = 0; add && i < add->count; i++)
		all |= capability_bit(span_of(jv_str(&add->items[i], "name", "")));
	return all;
}

static const char *spell(struct backend_call *call, uint64_t set)
{
	const char *text = "";

	for (unsigned i = 0; i < 64; i++)
		if (set & UINT64_C(1) << i)
			text = docker_text(call, "%s%s%s", text, *text ? ", " : "",
					   capability_name(i) ? capability_name(i)
							      : "one that is not known");
	return *text ? text : "none";
}

void docker_attest_capabilities(const struct docker_attesting *at)
{
	static const char *const sets[] = {"bnd", "prm", "eff", "amb", "inh"};
	uint64_t judged = judged_capabilities(at->facts), more = 0;
	const struct jv *seen = docker_told(at->seen, "caps");

	if (!seen) {
		docker_not_seen(at, "capabilities");
		return;
	}
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		more |= strtoull(jv_str(seen, sets[i], "0"), NULL, 16) & ~judged;
	if (more && !jv_true(at->facts, "privileged"))
		docker_differs(at, "HostConfig.CapAdd",
			       docker_text(at->call, "%s besides", spell(at->call, more)),
			       spell(at->call, judged));
}

static bool is_unfiltered(const struct jv *facts)
{
	return strcmp(jv_str(jv_get(facts, "seccomp"), "given", ""), "unconfined") == 0;
}

bool docker_expects_filter(const struct docker_attesting *at)
{
	return docker_state(at->call)->info->seccomp && !jv_true(at->facts, "privileged") &&
	       !is_unfiltered(at->facts);
}

/*
 * The filter is the last thing that a runtime sets before the workload takes its
 * place; a workload's program lies in its own root.
 */
bool docker_is_runtime_still(const struct jv *seen)
{
	const struct jv *mounts = jv_get(seen, "mounts"), *exe = jv_get(seen, "exe");

	for (size_t i = 0; mounts && i < mounts->count; i++)
		if (strcmp(jv_str(&mounts->items[i], "point", ""), "/") == 0)
			return strcmp(jv_str(&mounts->items[i], "dev", "-"),
				      jv_str(exe, "dev", "+")) != 0;
	return true;
}

void docker_attest_seccomp(const struct docker_attesting *at)
{
	const struct jv *mode = docker_told(at->seen, "seccomp");

	if (!mode)
		docker_not_seen(at, "seccomp");
	else if (mode->i != 2)
		docker_differs(at, "HostConfig.SecurityOpt", "no filter of system calls",
			       "the engine's");
}

void docker_attest_no_new_privs(const struct docker_attesting *at)
{
	if (!jv_true(at->facts, "no_new_privileges"))
		return;
	if (!docker_told(at->seen, "no_new_privs"))
		docker_not_seen(at, "no_new_privs");
	else if (!jv_true(at->seen, "no_new_privs"))
		docker_differs(at, "HostConfig.SecurityOpt", "set-id programs that gain privileges",
			       "no-new-privileges");
}
