#include "gate/base/auto.h"
#include "gate/base/confine.h"
#include "gate/base/confine_box.h"
#include "gate/base/io.h"
#include "gate/keeper/box_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

static int write_file(const char *path, const char *text, struct err *err)
{
	auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return err_sys(err, "write %s", path);
	return 0;
}

int box_ids_map(const struct box_plan *p, struct err *err)
{
	char text[64];

	if (write_file("/proc/self/setgroups", "deny", err) < 0)
		return -1;
	snprintf(text, sizeof(text), "%u %u 1", p->head.gid, p->outer_gid);
	if (write_file("/proc/self/gid_map", text, err) < 0)
		return -1;
	snprintf(text, sizeof(text), "%u %u 1", p->head.uid, p->outer_uid);
	return write_file("/proc/self/uid_map", text, err);
}

int box_cgroups_join(const struct box_plan *p, struct err *err)
{
	for (size_t i = 0; i < p->head.cgroup_count; i++)
		if (write(p->cgroups[i], "0", 1) != 1)
			return err_sys(err, "join a cgroup");
	/* From here on the box takes its own folder for the root of them all. */
	if (p->head.mode == BOX_CONFINED && unshare(CLONE_NEWCGROUP) < 0 && errno != EINVAL)
		return err_sys(err, "a cgroup namespace");
	return 0;
}

int box_names_set(const struct box_plan *p, struct err *err)
{
	if (sethostname(p->host_name, strlen(p->host_name)) < 0)
		return err_sys(err, "set the host name");
	return setdomainname("", 0) < 0 ? err_sys(err, "set the domain name") : 0;
}

int box_loopback_up(struct err *err)
{
	auto_fd int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = {.ifr_name = "lo"};

	if (s < 0 || ioctl(s, SIOCGIFFLAGS, &lo) < 0)
		return err_sys(err, "look at lo");
	lo.ifr_flags |= IFF_UP | IFF_RUNNING;
	return ioctl(s, SIOCSIFFLAGS, &lo) < 0 ? err_sys(err, "take lo up") : 0;
}

static int limit(int resource, uint64_t value, const char *what, struct err *err)
{
	struct rlimit now;
	struct rlimit want = {value, value};

	if (getrlimit(resource, &now) < 0)
		return err_sys(err, "limit of %s", what);
	if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
		want.rlim_cur = want.rlim_max = now.rlim_max; /* tighter is well */
	return setrlimit(resource, &want) < 0 ? err_sys(err, "limit of %s", what) : 0;
}

/* Of the command, in its own process: the init needs some room itself. */
int box_limits_set(const struct box_plan *p, struct err *err)
{
	const struct box_limits *l = &p->head.limits;
	uint64_t pids = l->pids ? l->pids : BOX_PIDS_DEFAULT;

	if (limit(RLIMIT_CORE, 0, "core files", err) < 0 ||
	    limit(RLIMIT_NOFILE, l->open_files ? l->open_files : BOX_OPEN_DEFAULT, "open files",
		  err) < 0 ||
	    limit(RLIMIT_MSGQUEUE, 819200, "message queues", err) < 0 ||
	    limit(RLIMIT_MEMLOCK, 65536, "locked memory", err) < 0 ||
	    limit(RLIMIT_RTPRIO, 0, "priority", err) < 0 ||
	    limit(RLIMIT_SIGPENDING, 4096, "signals", err) < 0)
		return -1;
	if (l->file_bytes && limit(RLIMIT_FSIZE, l->file_bytes, "file size", err) < 0)
		return -1;
	if (l->cpu_seconds && limit(RLIMIT_CPU, l->cpu_seconds, "CPU time", err) < 0)
		return -1;
	/* Counted per user namespace; a bare box shares its user with all others. */
	if (p->head.mode == BOX_CONFINED && limit(RLIMIT_NPROC, pids + 1, "processes", err) < 0)
		return -1;
	if (l->memory && !p->head.memory_in_cgroup)
		return limit(RLIMIT_AS, l->memory, "memory", err);
	return 0;
}

static int open_path(const char *path, struct err *err)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? err_sys(err, "%s", path) : fd;
}

#define FIXED     4
#define PATHS_MAX (BOX_BINDS_MAX + BOX_TMPFS_MAX + FIXED)

int box_paths_close(const struct box_plan *p, struct err *err)
{
	static const struct {
		const char *path;
		enum confine_use use;
	} fixed[FIXED] = {{"/", CONFINE_LOOK},
			  {"/proc", CONFINE_DEVICES},
			  {"/dev", CONFINE_DEVICES},
			  {"/dev/shm", CONFINE_WRITE}};
	struct confine_path paths[PATHS_MAX];
	size_t count = 0;
	int status = 0;

	for (size_t i = 0; status == 0 && i < FIXED; i++, count++) {
		paths[count] = (struct confine_path){open_path(fixed[i].path, err), fixed[i].use};
		status = paths[count].fd < 0 ? -1 : 0;
	}
	for (size_t i = 0; status == 0 && i < p->head.bind_count; i++, count++) {
		paths[count] =
			(struct confine_path){open_path(p->binds[i].target, err),
					      p->binds[i].writable ? CONFINE_WRITE : CONFINE_READ};
		status = paths[count].fd < 0 ? -1 : 0;
	}
	for (size_t i = 0; status == 0 && i < p->head.tmpfs_count; i++, count++) {
		paths[count] =
			(struct confine_path){open_path(p->tmpfs[i].target, err), CONFINE_WRITE};
		status = paths[count].fd < 0 ? -1 : 0;
	}
	if (status == 0)
		status = confine_paths(paths, count, p->head.landlock, err);
	for (size_t i = 0; i < count; i++)
		if (paths[i].fd >= 0)
			close(paths[i].fd);
	return status;
}

int box_powers_end(bool all, struct err *err)
{
	if (confine_keyring(err) < 0)
		return -1;
	/* Without a user namespace of its own there may be none to give up. */
	if ((all ? confine_powerless(err) : confine_caps(0, 0, err)) < 0)
		return -1;
	return confine_no_new_privs(err) < 0 ? -1 : confine_no_dumps(err);
}
