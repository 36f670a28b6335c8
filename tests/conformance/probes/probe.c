/*
 * probe.c - tries the ways out of a sandbox, from inside.  A static program without libraries, so
 * that it runs in any image.
 *
 *	probe NAME [ARGUMENT]     one line: "open REASON", "closed REASON" or "absent REASON"
 *	probe all                 one line each: "NAME open|closed|absent REASON"
 *	probe list                the names, with what they try
 *
 * open: the way is there.  closed: the kernel refused.  absent: there is nothing to be tried.
 * Exit status: 0 unless something is open (1) or the name is not known (2).
 *
 * Nothing is changed if a way is open: what would harm is only opened for writing, and what is
 * called is called with arguments that a kernel which allowed it would refuse for another reason,
 * or in a child that ends at once.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef AF_VSOCK
#define AF_VSOCK 40
#endif
#define CONNECT_MS   1000
#define ENGINE_DEPTH 4 /* folders below those where sockets of engines live */

enum verdict {
	CLOSED = 0,
	ABSENT,
	OPEN,
};

struct found {
	enum verdict verdict;
	char why[400];
};

static void say(struct found *f, enum verdict v, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct found *f, enum verdict v, const char *fmt, ...)
{
	va_list args;

	f->verdict = v;
	va_start(args, fmt);
	vsnprintf(f->why, sizeof(f->why), fmt, args);
	va_end(args);
}

/* rc as of a system call that must not succeed. */
static void judge(struct found *f, const char *what, long rc)
{
	if (rc >= 0)
		say(f, OPEN, "%s is possible", what);
	else
		say(f, CLOSED, "%s: %s", what, strerror(errno));
}

/* In a child of its own, since what is tried changes whoever does it. */
static void apart(struct found *f, const char *what, int (*attempt)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int rc = attempt();

		_exit(rc >= 0 ? 0 : errno ? errno : 255);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		say(f, CLOSED, "%s: %s", what, strerror(errno));
		return;
	}
	if (WIFSIGNALED(status)) {
		say(f, CLOSED, "%s: killed by signal %d", what, WTERMSIG(status));
		return;
	}
	errno = WEXITSTATUS(status);
	judge(f, what, WEXITSTATUS(status) ? -1 : 0);
}

/* A file that must not be there, or not be writable. */
static void writable(struct found *f, const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		say(f, OPEN, "%s can be written to", path);
	} else if (errno == ENOENT || errno == ENOTDIR) {
		say(f, ABSENT, "%s is not there", path);
	} else {
		say(f, CLOSED, "%s: %s", path, strerror(errno));
	}
}

static void writable_of(struct found *f, const char *const *paths)
{
	struct found worst = {.verdict = ABSENT, .why = "none of the files is there"};

	for (size_t i = 0; paths[i]; i++) {
		struct found one;

		writable(&one, paths[i]);
		if (one.verdict == OPEN || (one.verdict == CLOSED && worst.verdict == ABSENT))
			worst = one;
		if (worst.verdict == OPEN)
			break;
	}
	*f = worst;
}

static int do_mount(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL);
}

static void probe_mount(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "mount()", do_mount);
}

static int do_new_mount(void)
{
	return (int)syscall(SYS_fsopen, "tmpfs", 0);
}

static void probe_fsopen(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "fsopen()", do_new_mount);
}

static int do_remount(void)
{
	return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL);
}

static void probe_remount(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "making / writable", do_remount);
}

static int do_unshare_user(void)
{
	return unshare(CLONE_NEWUSER);
}

static void probe_unshare_user(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "unshare(CLONE_NEWUSER)", do_unshare_user);
}

static int do_unshare_mount(void)
{
	return unshare(CLONE_NEWNS);
}

static void probe_unshare_mount(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "unshare(CLONE_NEWNS)", do_unshare_mount);
}

static int do_clone_user(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	return (int)pid;
}

static void probe_clone_user(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "clone(CLONE_NEWUSER)", do_clone_user);
}

static int do_setns(void)
{
	int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : setns(fd, CLONE_NEWNS);
}

static void probe_setns(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "setns() to process 1", do_setns);
}

static int do_ptrace(void)
{
	return (int)ptrace(PTRACE_ATTACH, 1, NULL, NULL);
}

static void probe_ptrace(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "ptrace of process 1", do_ptrace);
}

static void probe_memory(struct found *f, const char *arg)
{
	(void)arg;
	writable(f, "/proc/1/mem");
}

static void probe_root_link(struct found *f, const char *arg)
{
	struct stat st;

	(void)arg;
	if (stat("/proc/1/root/.", &st) == 0) {
		struct stat own;

		if (stat("/", &own) == 0 && own.st_ino == st.st_ino && own.st_dev == st.st_dev)
			say(f, ABSENT, "process 1 has the same root");
		else
			say(f, OPEN, "/proc/1/root leads elsewhere");
	} else {
		say(f, errno == ENOENT ? ABSENT : CLOSED, "/proc/1/root: %s", strerror(errno));
	}
}

/* A kernel that would let us gets as far as the arguments, which are wrong. */
static void arguments(struct found *f, const char *what, long rc)
{
	if (rc >= 0 || errno == EFAULT || errno == EINVAL || errno == E2BIG || errno == ENOKEY)
		say(f, OPEN, "%s was looked at by the kernel (%s)", what,
		    rc >= 0 ? "done" : strerror(errno));
	else
		say(f, CLOSED, "%s: %s", what, strerror(errno));
}

static void probe_bpf(struct found *f, const char *arg)
{
	(void)arg;
	arguments(f, "bpf()", syscall(SYS_bpf, 0, NULL, 0));
}

static void probe_perf(struct found *f, const char *arg)
{
	(void)arg;
	arguments(f, "perf_event_open()", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
}

static void probe_userfaultfd(struct found *f, const char *arg)
{
	(void)arg;
	judge(f, "userfaultfd()", syscall(SYS_userfaultfd, O_CLOEXEC));
}

static void probe_io_uring(struct found *f, const char *arg)
{
	(void)arg;
	arguments(f, "io_uring_setup()", syscall(SYS_io_uring_setup, 1, NULL));
}

static void probe_keyctl(struct found *f, const char *arg)
{
	(void)arg;
	/* KEYCTL_GET_KEYRING_ID of the session's */
	arguments(f, "keyctl()", syscall(SYS_keyctl, 0, -3, 0, 0, 0));
}

static void probe_add_key(struct found *f, const char *arg)
{
	(void)arg;
	arguments(f, "add_key()", syscall(SYS_add_key, NULL, NULL, NULL, 0, 0));
}

static void probe_by_handle(struct found *f, const char *arg)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[8];
	} h = {.bytes = 8, .type = 1};
	long rc = syscall(SYS_open_by_handle_at, AT_FDCWD, &h, O_RDONLY);

	(void)arg;
	if (rc >= 0 || errno == ESTALE)
		say(f, OPEN, "open_by_handle_at() was looked at by the kernel");
	else
		say(f, CLOSED, "open_by_handle_at(): %s", strerror(errno));
}

static void probe_modules(struct found *f, const char *arg)
{
	(void)arg;
	arguments(f, "init_module()", syscall(SYS_init_module, NULL, 0, NULL));
}

static void probe_kexec(struct found *f, const char *arg)
{
	(void)arg;
	arguments(f, "kexec_load()", syscall(SYS_kexec_load, 0, 100000, NULL, 0));
}

static void probe_reboot(struct found *f, const char *arg)
{
	(void)arg;
	arguments(f, "reboot()",
		  syscall(SYS_reboot, 0, 0, 0, NULL)); /* without its magic numbers */
}

static int do_hostname(void)
{
	return sethostname("probe", 5);
}

static void probe_hostname(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "sethostname()", do_hostname);
}

static int do_setuid(void)
{
	return geteuid() == 0 ? 0 : setuid(0);
}

static void probe_root(struct found *f, const char *arg)
{
	(void)arg;
	apart(f, "being root", do_setuid);
}

static void probe_chroot(struct found *f, const char *arg)
{
	(void)arg;
	judge(f, "chroot()", chroot("/"));
}

static void probe_tiocsti(struct found *f, const char *arg)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	(void)arg;
	if (fd < 0) {
		say(f, ABSENT, "no terminal: %s", strerror(errno));
		return;
	}
	judge(f, "TIOCSTI", ioctl(fd, TIOCSTI, "x"));
	close(fd);
}

/* One line of /proc/self/status. */
static bool status_line(const char *name, char *out, size_t size)
{
	FILE *s = fopen("/proc/self/status", "re");
	char line[256];
	bool found = false;

	while (s && !found && fgets(line, sizeof(line), s)) {
		size_t len = strlen(name);

		found = strncmp(line, name, len) == 0 && line[len] == ':';
		if (found) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(out, size, "%s", line + len + 1 + strspn(line + len + 1, " \t"));
		}
	}
	if (s)
		fclose(s);
	return found;
}

static void probe_capabilities(struct found *f, const char *arg)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
	char value[64];

	(void)arg;
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		if (!status_line(sets[i], value, sizeof(value))) {
			say(f, ABSENT, "/proc does not say");
			return;
		}
		if (strspn(value, "0") != strlen(value)) {
			say(f, OPEN, "%s is %s", sets[i], value);
			return;
		}
	}
	say(f, CLOSED, "every set is empty");
}

static void probe_no_new_privs(struct found *f, const char *arg)
{
	(void)arg;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		say(f, CLOSED, "no_new_privs is set");
	else
		say(f, OPEN, "no_new_privs is not set");
}

static void probe_seccomp(struct found *f, const char *arg)
{
	char value[64] = "";

	(void)arg;
	if (!status_line("Seccomp", value, sizeof(value)))
		say(f, ABSENT, "/proc does not say");
	else
		say(f, strcmp(value, "2") == 0 ? CLOSED : OPEN, "Seccomp is %s", value);
}

static void probe_proc_write(struct found *f, const char *arg)
{
	static const char *const paths[] = {"/proc/sysrq-trigger",
					    "/proc/sys/kernel/modprobe",
					    "/proc/sys/vm/panic_on_oom",
					    "/proc/sys/kernel/hostname",
					    "/proc/sys/fs/binfmt_misc/register",
					    "/proc/sys/kernel/hotplug",
					    "/proc/irq/default_smp_affinity",
					    "/proc/sys/net/ipv4/ip_forward",
					    NULL};

	(void)arg;
	writable_of(f, paths);
}

static void probe_core_pattern(struct found *f, const char *arg)
{
	(void)arg;
	writable(f, "/proc/sys/kernel/core_pattern");
}

static void probe_sys_write(struct found *f, const char *arg)
{
	static const char *const paths[] = {"/sys/kernel/uevent_helper",
					    "/sys/power/state",
					    "/sys/kernel/mm/ksm/run",
					    "/sys/fs/cgroup/cgroup.procs",
					    "/sys/module/kernel/parameters/panic",
					    NULL};

	(void)arg;
	writable_of(f, paths);
}

static void probe_release_agent(struct found *f, const char *arg)
{
	static const char *const paths[] = {
		"/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/pids/release_agent",
		"/sys/fs/cgroup/cpu/release_agent",    "/sys/fs/cgroup/systemd/release_agent",
		"/sys/fs/cgroup/release_agent",        NULL};

	(void)arg;
	writable_of(f, paths);
}

static void probe_kernel_memory(struct found *f, const char *arg)
{
	static const char *const paths[] = {"/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port",
					    NULL};
	struct stat st;

	(void)arg;
	say(f, ABSENT, "none of the files is there");
	for (size_t i = 0; paths[i]; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		char byte;

		if (fd < 0 && errno != ENOENT && f->verdict == ABSENT)
			say(f, CLOSED, "%s: %s", paths[i], strerror(errno));
		if (fd < 0)
			continue;
		/* A cover is an empty file, or the null device. */
		if (fstat(fd, &st) == 0 && read(fd, &byte, 1) == 1)
			say(f, OPEN, "%s can be read", paths[i]);
		close(fd);
		if (f->verdict == OPEN)
			return;
	}
}

static void probe_kernel_log(struct found *f, const char *arg)
{
	char text[64];

	(void)arg;
	/* SYSLOG_ACTION_READ_ALL; 4.4.0 of gVisor answers with a log of its own */
	judge(f, "reading the kernel's log", syscall(SYS_syslog, 3, text, sizeof(text)));
}

static int try_node(const char *folder, bool block, dev_t dev, char *made, size_t size)
{
	snprintf(made, size, "%s/probe-node", folder);
	unlink(made);
	return mknod(made, (block ? S_IFBLK : S_IFCHR) | 0600, dev);
}

static void probe_device_node(struct found *f, const char *arg)
{
	static const char *const folders[] = {"/tmp", "/work", "/dev/shm", "/dev", "/"};
	char path[64];

	(void)arg;
	say(f, CLOSED, "mknod(): %s", "nowhere to make one");
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		int fd;

		if (try_node(folders[i], false, makedev(1, 1), path, sizeof(path)) < 0) {
			say(f, CLOSED, "mknod() in %s: %s", folders[i], strerror(errno));
			continue;
		}
		fd = open(path, O_RDONLY | O_CLOEXEC);
		unlink(path);
		if (fd >= 0) {
			close(fd);
			say(f, OPEN, "a device node in %s can be made and opened", folders[i]);
			return;
		}
		say(f, CLOSED, "a node in %s can be made, not opened: %s", folders[i],
		    strerror(errno));
	}
}

/* Devices that give the host, or a way to more of the kernel. */
static void probe_devices(struct found *f, const char *arg)
{
	static const char *const allowed[] = {"null",    "zero", "full", "random",
					      "urandom", "tty",  "ptmx", "console"};
	DIR *d = opendir("/dev");
	const struct dirent *e;

	(void)arg;
	say(f, ABSENT, "nothing but the usual ones");
	while (d && f->verdict != OPEN && (e = readdir(d))) {
		struct stat st;
		bool usual = false;

		for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
			usual |= strcmp(e->d_name, allowed[i]) == 0;
		if (usual || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode))
			say(f, OPEN, "/dev/%.100s is there", e->d_name);
	}
	if (d)
		closedir(d);
}

static int dial(int family, const void *at, socklen_t len)
{
	int s = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = {s, POLLOUT, 0};
	socklen_t size = sizeof(errno);
	int rc = s < 0 ? -1 : connect(s, at, len), why = 0;

	if (rc < 0 && s >= 0 && errno == EINPROGRESS) {
		rc = -1;
		if (poll(&p, 1, CONNECT_MS) <= 0)
			errno = ETIMEDOUT;
		else if (getsockopt(s, SOL_SOCKET, SO_ERROR, &why, &size) == 0)
			rc = (errno = why) ? -1 : 0;
	}
	why = errno;
	if (s >= 0)
		close(s);
	errno = why;
	return rc;
}

/* Abstract sockets are in no file system: those of the network namespace are listed in /proc. */
static void probe_abstract(struct found *f, const char *arg)
{
	FILE *s = fopen("/proc/net/unix", "re");
	char line[512];
	unsigned tried = 0;

	say(f, ABSENT, "no abstract socket is to be seen");
	while (s && f->verdict != OPEN && fgets(line, sizeof(line), s)) {
		struct sockaddr_un at = {.sun_family = AF_UNIX};
		const char *name = strstr(line, " @");
		size_t len;

		if (!name)
			continue;
		name += 2;
		len = strcspn(name, "\n");
		if (len == 0 || len >= sizeof(at.sun_path))
			continue;
		memcpy(at.sun_path + 1, name, len);
		tried++;
		if (dial(AF_UNIX, &at,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) == 0)
			say(f, OPEN, "@%.100s answers", at.sun_path + 1);
		else
			say(f, CLOSED, "@%.100s: %s", at.sun_path + 1, strerror(errno));
	}
	if (s)
		fclose(s);
	if (arg && f->verdict != OPEN) { /* one that the caller knows to be there outside */
		struct sockaddr_un at = {.sun_family = AF_UNIX};

		snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s", arg);
		judge(f, arg,
		      dial(AF_UNIX, &at,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(arg))));
	}
	(void)tried;
}

static bool is_engine(const char *name)
{
	static const char *const words[] = {"docker",   "podman",    "containerd", "crio",
					    "buildkit", "sallyport", "dbus",       "systemd",
					    "snapd",    "libvirt",   "lxd"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

/* The path names one of them: its own name, or a folder on the way. */
static void search_sockets(struct found *f, const char *folder, unsigned depth)
{
	DIR *d = opendir(folder);
	const struct dirent *e;

	while (d && f->verdict != OPEN && (e = readdir(d))) {
		struct sockaddr_un at = {.sun_family = AF_UNIX};
		char path[512];
		struct stat st;

		if (*e->d_name == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= (int)sizeof(path) ||
		    lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth)
			search_sockets(f, path, depth - 1);
		if (!S_ISSOCK(st.st_mode) || !is_engine(path) ||
		    strlen(path) >= sizeof(at.sun_path))
			continue;
		strcpy(at.sun_path, path);
		if (dial(AF_UNIX, &at, sizeof(at)) == 0)
			say(f, OPEN, "%.200s answers", path);
		else
			say(f, CLOSED, "%.200s: %s", path, strerror(errno));
	}
	if (d)
		closedir(d);
}

static void probe_engine_socket(struct found *f, const char *arg)
{
	static const char *const folders[] = {"/run",  "/var/run", "/tmp",    "/srv",
					      "/home", "/root",    "/var/lib"};

	say(f, ABSENT, "no socket of an engine is to be seen");
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders) && f->verdict != OPEN; i++)
		search_sockets(f, folders[i], ENGINE_DEPTH);
	if (arg && f->verdict != OPEN) {
		struct sockaddr_un at = {.sun_family = AF_UNIX};

		snprintf(at.sun_path, sizeof(at.sun_path), "%s", arg);
		if (dial(AF_UNIX, &at, sizeof(at)) == 0)
			say(f, OPEN, "%.200s answers", arg);
	}
}

static void try_address(struct found *f, const char *address, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, address, &at.sin_addr);
	if (dial(AF_INET, &at, sizeof(at)) == 0 || errno == ECONNREFUSED)
		say(f, OPEN, "%s:%u is reached", address, port);
	else
		say(f, CLOSED, "%s:%u: %s", address, port, strerror(errno));
}

static void probe_metadata(struct found *f, const char *arg)
{
	(void)arg;
	try_address(f, "169.254.169.254", 80);
}

static void probe_internet(struct found *f, const char *arg)
{
	try_address(f, arg ? arg : "192.0.2.1", 80);
}

static void probe_interfaces(struct found *f, const char *arg)
{
	struct if_nameindex *all = if_nameindex();

	(void)arg;
	say(f, all ? CLOSED : ABSENT, "nothing but lo");
	for (size_t i = 0; all && all[i].if_name; i++)
		if (strcmp(all[i].if_name, "lo") != 0)
			say(f, OPEN, "%s is there", all[i].if_name);
	if (all)
		if_freenameindex(all);
}

static void probe_packet(struct found *f, const char *arg)
{
	(void)arg;
	judge(f, "a socket of AF_PACKET", socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
}

static void probe_raw(struct found *f, const char *arg)
{
	(void)arg;
	judge(f, "a raw socket", socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
}

static void probe_vsock(struct found *f, const char *arg)
{
	(void)arg;
	judge(f, "a socket of AF_VSOCK", socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

/* Others' processes: whatever is no descendant of process 1 here, as far as /proc tells. */
static void probe_processes(struct found *f, const char *arg)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;

	(void)arg;
	if (!d) {
		say(f, ABSENT, "/proc: %s", strerror(errno));
		return;
	}
	say(f, CLOSED, "no thread of the kernel, and nothing of an engine");
	while (f->verdict != OPEN && (e = readdir(d))) {
		char path[300], name[64] = "";
		FILE *s;

		if (*e->d_name < '1' || *e->d_name > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.200s/comm", e->d_name);
		s = fopen(path, "re");
		if (s && fgets(name, sizeof(name), s))
			name[strcspn(name, "\n")] = '\0';
		if (s)
			fclose(s);
		if (strcmp(name, "kthreadd") == 0 || is_engine(name))
			say(f, OPEN, "process %.20s is %s", e->d_name, name);
	}
	closedir(d);
}

static void probe_root_write(struct found *f, const char *arg)
{
	static const char *const folders[] = {"/", "/usr", "/bin", "/lib", "/etc", "/usr/bin"};

	(void)arg;
	say(f, CLOSED, "the image is read-only");
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "%s/.probe", folders[i]);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			continue;
		close(fd);
		unlink(path);
		say(f, OPEN, "files can be made in %s", folders[i]);
	}
}

static void probe_host_files(struct found *f, const char *arg)
{
	static const char *const paths[] = {"/etc/shadow",        "/root",          "/home",
					    "/var/log/sallyport", "/etc/sallyport", "/boot",
					    "/lost+found"};
	int fd = -1;

	say(f, ABSENT, "nothing of the host is to be seen");
	if (arg) { /* one that the caller knows to be there outside */
		fd = open(arg, O_RDONLY | O_CLOEXEC);
		say(f,
		    fd >= 0           ? OPEN
		    : errno == ENOENT ? ABSENT
				      : CLOSED,
		    "%.200s: %s", arg, fd >= 0 ? "opened" : strerror(errno));
		return;
	}
	fd = open(paths[0], O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		say(f, OPEN, "%s can be read", paths[0]);
	fd = open("/etc/sallyport", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		say(f, OPEN, "the gate's configuration is there");
}

/* Descriptors that were left open: beyond stdio there is none but the listing's own. */
static void probe_descriptors(struct found *f, const char *arg)
{
	(void)arg;
	say(f, CLOSED, "nothing but stdin, stdout, stderr");
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			say(f, OPEN, "descriptor %d is open", fd);
}

static void probe_loader_env(struct found *f, const char *arg)
{
	static const char *const names[] = {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT",
					    "GCONV_PATH", "BASH_ENV"};

	(void)arg;
	say(f, ABSENT, "no variable of the loader");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (getenv(names[i]))
			say(f, OPEN, "%s is set", names[i]);
}

static void probe_setuid_file(struct found *f, const char *arg)
{
	static const char *const paths[] = {"/usr/bin/su", "/bin/su",         "/usr/bin/mount",
					    "/bin/mount",  "/usr/bin/passwd", "/usr/bin/sudo"};
	struct stat st;

	(void)arg;
	say(f, ABSENT, "no file gives another user's rights");
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
		say(f, CLOSED, "no_new_privs is set");
		return;
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (stat(paths[i], &st) == 0 && st.st_mode & S_ISUID)
			say(f, OPEN, "%s is setuid, and no_new_privs is not set", paths[i]);
}

static const struct {
	const char *name;
	void (*run)(struct found *f, const char *arg);
	const char *tries;
} probes[] = {
	{"mount", probe_mount, "mounting a file system"},
	{"fsopen", probe_fsopen, "mounting by the newer calls"},
	{"remount", probe_remount, "making the root writable"},
	{"unshare-user", probe_unshare_user, "a user namespace, which would give capabilities"},
	{"unshare-mount", probe_unshare_mount, "a mount namespace"},
	{"clone-user", probe_clone_user, "a user namespace by clone()"},
	{"setns", probe_setns, "entering process 1's namespaces"},
	{"ptrace", probe_ptrace, "taking over process 1"},
	{"memory", probe_memory, "writing process 1's memory"},
	{"root-link", probe_root_link, "files through /proc/1/root"},
	{"bpf", probe_bpf, "programs in the kernel"},
	{"perf", probe_perf, "performance counters"},
	{"userfaultfd", probe_userfaultfd, "handling page faults of the kernel"},
	{"io-uring", probe_io_uring, "calls that no filter sees"},
	{"keyctl", probe_keyctl, "keyrings"},
	{"add-key", probe_add_key, "adding keys"},
	{"by-handle", probe_by_handle, "files by number"},
	{"modules", probe_modules, "kernel modules"},
	{"kexec", probe_kexec, "another kernel"},
	{"reboot", probe_reboot, "rebooting"},
	{"hostname", probe_hostname, "changing the host's name"},
	{"root", probe_root, "becoming root"},
	{"chroot", probe_chroot, "another root"},
	{"tiocsti", probe_tiocsti, "typing into a terminal"},
	{"capabilities", probe_capabilities, "capabilities in any set"},
	{"no-new-privs", probe_no_new_privs, "rights by executing files"},
	{"seccomp", probe_seccomp, "a process without a filter"},
	{"proc-write", probe_proc_write, "settings of the kernel in /proc"},
	{"core-pattern", probe_core_pattern, "a program that the host runs for a core file"},
	{"sys-write", probe_sys_write, "settings of the kernel in /sys"},
	{"release-agent", probe_release_agent, "a program that the host runs for an empty cgroup"},
	{"kernel-memory", probe_kernel_memory, "the kernel's memory"},
	{"kernel-log", probe_kernel_log, "the kernel's log"},
	{"device-node", probe_device_node, "making a device node"},
	{"devices", probe_devices, "devices of the host"},
	{"abstract-socket", probe_abstract, "abstract sockets of the host; ARGUMENT: its name"},
	{"engine-socket", probe_engine_socket, "the socket of an engine; ARGUMENT: one to try"},
	{"metadata", probe_metadata, "the cloud's metadata address"},
	{"network", probe_internet, "an address outside; ARGUMENT: which"},
	{"interfaces", probe_interfaces, "network interfaces beside lo"},
	{"packet", probe_packet, "packets as they are on the wire"},
	{"raw", probe_raw, "raw sockets"},
	{"vsock", probe_vsock, "sockets to the hypervisor"},
	{"processes", probe_processes, "processes of the host"},
	{"root-write", probe_root_write, "changing the image"},
	{"host-files", probe_host_files, "files of the host; ARGUMENT: one to try"},
	{"descriptors", probe_descriptors, "descriptors that were left open"},
	{"loader-env", probe_loader_env, "variables of the dynamic loader"},
	{"setuid-file", probe_setuid_file, "files that give another user's rights"},
};
#define PROBES (sizeof(probes) / sizeof(*probes))

static int run(size_t i, const char *arg, bool named)
{
	static const char *const words[] = {"closed", "absent", "open"};
	struct found f = {.verdict = OPEN, .why = "nothing was tried"};

	errno = 0;
	probes[i].run(&f, arg);
	printf("%s%s%s %s\n", named ? probes[i].name : "", named ? " " : "", words[f.verdict],
	       f.why);
	fflush(stdout);
	return f.verdict == OPEN;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "all";
	int open_ones = 0;

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < PROBES; i++) {
		if (strcmp(name, "list") == 0)
			printf("%s\t%s\n", probes[i].name, probes[i].tries);
		else if (strcmp(name, "all") == 0)
			open_ones |= run(i, NULL, true);
		else if (strcmp(name, probes[i].name) == 0)
			return run(i, argc > 2 ? argv[2] : NULL, false);
	}
	if (strcmp(name, "list") != 0 && strcmp(name, "all") != 0) {
		fprintf(stderr, "probe: %s is not known; see `probe list`\n", name);
		return 2;
	}
	return open_ones;
}
