/*
 * The privileges of a process that was started: at most what was judged.
 */
#include "backends/docker/attest_priv.h"

#include <stdlib.h>
#include <string.h>

static const char *const capability_names[] = {
	"CHOWN",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"KILL",
	"SETGID",
	"SETUID",
	"SETPCAP",
	"LINUX_IMMUTABLE",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_ADMIN",
	"NET_RAW",
	"IPC_LOCK",
	"IPC_OWNER",
	"SYS_MODULE",
	"SYS_RAWIO",
	"SYS_CHROOT",
	"SYS_PTRACE",
	"SYS_PACCT",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_NICE",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"MKNOD",
	"LEASE",
	"AUDIT_WRITE",
	"AUDIT_CONTROL",
	"SETFCAP",
	"MAC_OVERRIDE",
	"MAC_ADMIN",
	"SYSLOG",
	"WAKE_ALARM",
	"BLOCK_SUSPEND",
	"AUDIT_READ",
	"PERFMON",
	"BPF",
	"CHECKPOINT_RESTORE",
};
#define CAPABILITIES (sizeof(capability_names) / sizeof(*capability_names))

static uint64_t bit_of(const char *name)
{
	for (size_t i = 0; i < CAPABILITIES; i++)
		if (strcmp(capability_names[i], name) == 0)
			return UINT64_C(1) << i;
	return strcmp(name, "ALL") == 0 ? ~UINT64_C(0) : 0;
}

/* What engines give where nothing is said. */
static uint64_t default_capabilities(void)
{
	static const char *const names[] = {
		"CHOWN",   "DAC_OVERRIDE", "FSETID",           "FOWNER",
		"MKNOD",   "NET_RAW",      "SETGID",           "SETUID",
		"SETFCAP", "SETPCAP",      "NET_BIND_SERVICE", "SYS_CHROOT",
		"KILL",    "AUDIT_WRITE",
	};
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		all |= bit_of(names[i]);
	return all;
}

static uint64_t judged_capabilities(const struct jv *facts)
{
	const struct jv *add = jv_path(facts, "capabilities.add");
	const struct jv *drop = jv_path(facts, "capabilities.drop");
	uint64_t all = default_capabilities();

	for (size_t i = 0; drop && i < drop->count; i++)
		if (drop->items[i].kind == JV_STRING)
			all &= ~bit_of(drop->items[i].str.at);
	for (size_t i = 0; add && i < add->count; i++)
		all |= bit_of(jv_str(&add->items[i], "name", ""));
	return all;
}

static const char *spell(struct backend_call *call, uint64_t set)
{
	const char *text = "";

	for (size_t i = 0; i < 64; i++)
		if (set & UINT64_C(1) << i)
			text = docker_text(call, "%s%s%s", text, *text ? ", " : "",
					   i < CAPABILITIES ? capability_names[i]
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

static bool asks_for_seccomp(const struct jv *facts)
{
	const struct jv *list = jv_get(facts, "security");

	for (size_t i = 0; list && i < list->count; i++)
		if (strcmp(jv_str(&list->items[i], "name", ""), "seccomp") == 0)
			return true;
	return false;
}

bool docker_expects_filter(const struct docker_attesting *at)
{
	return docker_state(at->call)->info->seccomp && !jv_true(at->facts, "privileged") &&
	       !asks_for_seccomp(at->facts);
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
