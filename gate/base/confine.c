#include "gate/base/confine.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPS_LAST 63 /* the kernel's mask has 64 bits */

static int caps_set(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.permitted = (uint32_t)permitted, .effective = (uint32_t)effective},
		{.permitted = (uint32_t)(permitted >> 32),
		 .effective = (uint32_t)(effective >> 32)},
	};

	return (int)syscall(SYS_capset, &head, data);
}

uint64_t confine_permitted(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data) < 0)
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

/* Only as far as the process may: without SETPCAP there is nothing to gain either. */
static void cut_bounding(uint64_t keep)
{
	for (int cap = 0; cap <= CAPS_LAST; cap++)
		if (!(keep & CONFINE_CAP(cap)) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int confine_caps(uint64_t permitted, uint64_t effective, struct err *err)
{
	permitted &= confine_permitted();
	cut_bounding(permitted);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (caps_set(permitted, permitted & effective) < 0)
		return err_sys(err, "give up capabilities");
	return 0;
}

static int change_ids(const struct confine_ids *ids, struct err *err)
{
	if (setgroups(ids->group_count, ids->groups) < 0)
		return err_sys(err, "set the groups of uid %u", ids->uid);
	if (setresgid(ids->gid, ids->gid, ids->gid) < 0)
		return err_sys(err, "set gid %u", ids->gid);
	if (setresuid(ids->uid, ids->uid, ids->uid) < 0)
		return err_sys(err, "set uid %u", ids->uid);
	return 0;
}

int confine_become(const struct confine_ids *ids, uint64_t keep, struct err *err)
{
	assert(ids->group_count <= CONFINE_GROUPS_MAX);
	if (ids->uid == 0 || ids->gid == 0)
		return err_set(err, ERR_CONFIG, "refusing to go on as root");
	if (prctl(PR_SET_KEEPCAPS, keep ? 1 : 0, 0, 0, 0) < 0)
		return err_sys(err, "keep capabilities");
	if (change_ids(ids, err) < 0)
		return -1;
	prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	if (confine_caps(keep, keep, err) < 0)
		return -1;
	if (setuid(0) == 0)
		return err_set(err, ERR_SYSTEM, "root could be regained");
	return 0;
}

int confine_no_new_privs(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, "set no_new_privs");
	return 0;
}

int confine_no_dumps(struct err *err)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, "forbid core files");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, "forbid dumps");
	return 0;
}

static int add_rule(scmp_filter_ctx ctx, const struct confine_call *call)
{
	int nr = seccomp_syscall_resolve_name(call->name);
	int rc;

	if (nr == __NR_SCMP_ERROR)
		return -ENOSYS;
	if (call->arg < 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	else
		rc = seccomp_rule_add(
			ctx, SCMP_ACT_ALLOW, nr, 1,
			SCMP_CMP((unsigned)call->arg, SCMP_CMP_MASKED_EQ, UINT32_MAX, call->value));
	/* The same call may be listed for several reasons. */
	return rc == -EEXIST ? 0 : rc;
}

int confine_calls(const struct confine_call *calls, size_t count, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	const char *at = "the whole";
	int rc = ctx ? 0 : -ENOMEM;

	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */
	for (size_t i = 0; rc == 0 && i < count; i++) {
		at = calls[i].name;
		rc = add_rule(ctx, &calls[i]);
	}
	if (rc == 0) {
		at = "the whole";
		rc = seccomp_load(ctx);
	}
	if (ctx)
		seccomp_release(ctx);
	if (rc == 0)
		return 0;
	errno = -rc;
	return err_sys(err, "install the system call filter (%s)", at);
}

void confine_call_name(int nr, char *out, size_t size)
{
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);

	if (name)
		snprintf(out, size, "%s", name);
	else
		snprintf(out, size, "number %d", nr);
	free(name);
}

bool confine_has_filter(void)
{
	/* A NULL program cannot be installed; EFAULT says that it would have been read. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}

int confine_landlock_version(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return v < 0 ? 0 : (int)v;
}
