/* box_layers.c - what this host gives, found by trying: in a child that takes one wall after the
 * other. */
#include "gate/base/auto.h"
#include "gate/base/confine.h"
#include "gate/base/confine_box.h"
#include "gate/keeper/box_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

typedef int try_fn(struct err *err);

static int try_user(struct err *err)
{
	gid_t gid = getegid();
	uid_t uid = geteuid();
	char text[64];
	auto_fd int setgroups = -1, gids = -1, uids = -1;

	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(err, "unshare");
	setgroups = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
	gids = open("/proc/self/gid_map", O_WRONLY | O_CLOEXEC);
	uids = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	snprintf(text, sizeof(text), "%d %u 1", BOX_NOBODY, gid);
	if (write(setgroups, "deny", 4) < 0 || write(gids, text, strlen(text)) < 0)
		return err_sys(err, "map the group");
	snprintf(text, sizeof(text), "%d %u 1", BOX_NOBODY, uid);
	return write(uids, text, strlen(text)) < 0 ? err_sys(err, "map the user") : 0;
}

static int try_unshare(int flag, struct err *err)
{
	return unshare(flag) < 0 ? err_sys(err, "unshare") : 0;
}

static int try_mount(struct err *err)
{
	return try_unshare(CLONE_NEWNS, err);
}

static int try_net(struct err *err)
{
	return try_unshare(CLONE_NEWNET, err);
}

static int try_ipc(struct err *err)
{
	return try_unshare(CLONE_NEWIPC, err);
}

static int try_uts(struct err *err)
{
	return try_unshare(CLONE_NEWUTS, err);
}

static int try_cgroup(struct err *err)
{
	return try_unshare(CLONE_NEWCGROUP, err);
}

static int try_time(struct err *err)
{
	return try_unshare(CLONE_NEWTIME, err);
}

static int try_pid(struct err *err)
{
	return try_unshare(CLONE_NEWPID, err);
}

/* A new proc is only given where the host's own is not covered, as it is in containers. */
static int try_proc(struct err *err)
{
	int mount, status;
	pid_t pid = fork();

	if (pid == 0) {
		mount = box_mount_new("proc", NULL, NULL, err);
		_exit(mount < 0 ? err->sys : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return err_sys(err, "try /proc");
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	return errno ? err_sys(err, "mount /proc") : 0;
}

static int try_pivot(struct err *err)
{
	auto_fd int root = -1;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(err, "private mounts");
	root = box_mount_tmpfs("/", 65536, 0755, err);
	if (root < 0)
		return -1;
	if (box_mount_set(root, MOUNT_ATTR_NOEXEC, true, "/", err) < 0)
		return -1;
	if (move_mount(root, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) < 0 || fchdir(root) < 0)
		return err_sys(err, "mount a root");
	return syscall(SYS_pivot_root, ".", ".") < 0 ? err_sys(err, "pivot_root") : 0;
}

static int try_capabilities(struct err *err)
{
	return confine_powerless(err);
}

static int try_no_new_privs(struct err *err)
{
	return confine_no_new_privs(err);
}

static int try_filter(struct err *err)
{
	if (!confine_has_filter())
		return err_set(err, ERR_SYSTEM, "the kernel has no system call filters");
	return 0;
}

static int try_unfiltered(struct err *err)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
		return err_set(err, ERR_SYSTEM, "what runs in boxes has the starter's filter, too");
	return 0;
}

static int try_landlock(struct err *err)
{
	if (confine_landlock_version() < 1)
		return err_set(err, ERR_SYSTEM, "not in this kernel, or not switched on");
	return 0;
}

static int try_signals(struct err *err)
{
	if (confine_landlock_version() < 6)
		return err_set(err, ERR_SYSTEM, "Landlock ABI %d", confine_landlock_version());
	return 0;
}

static int try_openat2(struct err *err)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = {O_PATH | O_CLOEXEC, 0, 0};
	long fd = syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	if (fd < 0)
		return err_sys(err, "openat2");
	close((int)fd);
	return 0;
}

static int try_groups(struct err *err)
{
	gid_t groups[64];
	int n = getgroups(64, groups);

	for (int i = 0; i < n; i++)
		if (groups[i] != getegid())
			return err_set(err, ERR_SYSTEM, "boxes keep group %u", groups[i]);
	return n < 0 ? err_sys(err, "groups") : 0;
}

/* In this order: later ones are tried behind the earlier. */
static const struct {
	const char *name;
	bool required;
	try_fn *attempt;
	const char *why;
} layers[] = {
	{"openat2", true, try_openat2, "paths are resolved beneath a folder"},
	{"groups", false, try_groups, "no group but its own goes into a box"},
	{"unfiltered", false, try_unfiltered, "no filter but the box's own"},
	{"seccomp", true, try_filter, "system calls are filtered"},
	{"landlock", false, try_landlock, "a second wall over the same paths"},
	{"landlock-signals", false, try_signals, "a bare box cannot send signals out of it"},
	{"user", true, try_user, "nobody inside is anybody outside"},
	{"mount", true, try_mount, "mounts of its own"},
	{"pid", true, try_pid, "other processes are not there"},
	{"net", true, try_net, "no network but lo"},
	{"ipc", true, try_ipc, "no shared memory with others"},
	{"uts", true, try_uts, "a host name of its own"},
	{"cgroup", false, try_cgroup, "cgroup paths of the host are not seen"},
	{"time", false, try_time, "clocks of its own"},
	{"proc", true, try_proc, "a /proc of its own"},
	{"pivot_root", true, try_pivot, "the host's files are not there"},
	{"capabilities", true, try_capabilities, "no capability, and none to be had"},
	{"no_new_privs", true, try_no_new_privs, "executing files gives nothing"},
};
#define LAYERS (sizeof(layers) / sizeof(*layers))
_Static_assert(LAYERS <= BOX_LAYERS_MAX, "all have room");

static void try_all(int to) __attribute__((noreturn));

static void try_all(int to)
{
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	for (size_t i = 0; i < LAYERS; i++) {
		struct err err = {0};
		char told[sizeof(((struct box_layer *)0)->why)] = "";

		if (layers[i].attempt(&err) < 0)
			snprintf(told, sizeof(told), "%.*s", (int)sizeof(told) - 1, err.msg);
		if (write(to, told, sizeof(told)) < 0)
			_exit(1);
	}
	_exit(0);
}

size_t box_layers_probe(struct box_layer out[BOX_LAYERS_MAX])
{
	int ends[2];
	pid_t pid = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();

	if (pid == 0)
		try_all(ends[1]);
	if (pid > 0)
		close(ends[1]);
	for (size_t i = 0; i < LAYERS; i++) {
		char told[sizeof(out->why)];
		bool whole = pid > 0 && read(ends[0], told, sizeof(told)) == sizeof(told);

		snprintf(out[i].name, sizeof(out[i].name), "%s", layers[i].name);
		out[i].required = layers[i].required;
		out[i].there = whole && !*told;
		snprintf(out[i].why, sizeof(out[i].why), "%s",
			 out[i].there ? layers[i].why
			 : whole      ? told
				      : "could not be tried");
	}
	if (pid > 0) {
		close(ends[0]);
		waitpid(pid, NULL, 0);
	}
	return LAYERS;
}
