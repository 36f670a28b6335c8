#include "gate/doctor.h"

#include "gate/base/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_root(struct findings *f)
{
	if (geteuid() != 0) {
		finding_add(f, FINDING_WEAK,
			    "Without root all its processes are one user: a worker that was taken "
			    "over could alter the log, and mount sources in other users' folders "
			    "cannot be looked at.",
			    "Start it as root; it gives up everything it does not need.",
			    "the gate would run as one user (uid %u)", geteuid());
		return;
	}
	if (!(confine_permitted() & CONFINE_CAP(CAP_DAC_READ_SEARCH)))
		finding_add(f, FINDING_WEAK,
			    "The resolver cannot look into folders of other users; mounts from "
			    "there are unknown, and unknown is denied.",
			    "Add the capability DAC_READ_SEARCH (--cap-add in a container).",
			    "root without DAC_READ_SEARCH");
	else if (!(confine_permitted() & CONFINE_CAP(CAP_SYS_PTRACE)))
		finding_add(f, FINDING_WEAK,
			    "The resolver cannot look at what engines start, so little of it is "
			    "attested.",
			    "Add the capability SYS_PTRACE (--cap-add in a container).",
			    "root without SYS_PTRACE");
	else
		finding_add(f, FINDING_FINE, "", "", "started as root, with what it needs");
}

static long number_in(const char *path)
{
	FILE *in = fopen(path, "re");
	char text[32] = "", *end = text;
	long n = -1;

	if (!in)
		return -1;
	errno = 0;
	if (fgets(text, sizeof(text), in))
		n = strtol(text, &end, 10);
	fclose(in);
	return end == text || errno ? -1 : n;
}

static void check_kernel(struct findings *f)
{
	if (confine_has_filter())
		finding_add(f, FINDING_FINE, "", "", "the kernel filters system calls (seccomp)");
	else
		finding_add(f, FINDING_WEAK,
			    "The gate's processes could not be confined, so it does not start.",
			    "Use a kernel with CONFIG_SECCOMP_FILTER.",
			    "the kernel does not filter system calls (seccomp)");
	if (confine_landlock_version() > 0)
		finding_add(f, FINDING_FINE, "", "", "the kernel has Landlock (version %d)",
			    confine_landlock_version());
	else
		finding_add(f, FINDING_NOTE,
			    "Tools that run on the host itself would be fenced less tightly.",
			    "Use a kernel from 5.13 on with 'landlock' in its lsm= list.",
			    "the kernel has no Landlock");
	if (number_in("/proc/sys/user/max_user_namespaces") == 0 ||
	    number_in("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		finding_add(f, FINDING_NOTE,
			    "Rootless engines and some sandboxes need them; a host without them is "
			    "a smaller target.",
			    "", "user namespaces are off for ordinary users");
}

static void check_user(struct findings *f, const char *name, const char *role)
{
	const struct passwd *pw = getpwnam(name);

	if (!pw)
		finding_add(f, geteuid() == 0 ? FINDING_WEAK : FINDING_NOTE,
			    "Started as root, the gate does not run without it.",
			    "useradd --system --user-group --no-create-home --shell "
			    "/usr/sbin/nologin NAME, or name another one under 'users'.",
			    "the %s's user '%s' does not exist", role, name);
	else if (pw->pw_uid == 0 || pw->pw_gid == 0)
		finding_add(f, FINDING_WEAK, "The gate refuses to run its processes as root.",
			    "Name an ordinary user under 'users'.", "the %s's user '%s' is root",
			    role, name);
	else
		finding_add(f, FINDING_FINE, "", "", "the %s's user '%s' exists (uid %u)", role,
			    name, pw->pw_uid);
}

void doctor_host(struct findings *f)
{
	const struct config_users *u = f->config ? &f->config->users : &config_default_users;

	check_root(f);
	check_kernel(f);
	check_user(f, u->worker, "worker");
	check_user(f, u->auditor, "auditor");
	check_user(f, u->resolver, "resolver");
	check_user(f, u->admin, "admin process");
	if (f->config && config_has_sandboxes(f->config))
		check_user(f, u->sandbox, "sandbox process");
	if (f->config && f->config->keeper.wanted)
		check_user(f, u->keeper, "keeper");
	if (strcmp(u->worker, u->auditor) == 0)
		finding_add(f, FINDING_WEAK, "A worker that was taken over could alter the log.",
			    "Name two users under 'users'.",
			    "worker and auditor are the same user '%s'", u->worker);
}
