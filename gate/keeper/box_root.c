/*
 * box_root.c - the root of a confined box: a tmpfs that shows what the plan names, and nothing
 * else.
 *
 * Everything is done by descriptors.  A bind comes as a descriptor of the keeper's mount namespace,
 * which cannot be mounted here: the same file or folder is opened again by its name and compared.
 */
#include "gate/base/auto.h"
#include "gate/keeper/box_priv.h"
#include "gate/keeper/fence_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ROOT_BYTES  1048576
#define EMPTY_FILE  ".empty-file"
#define EMPTY_DIR   ".empty"
#define INSIDE_ONLY (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS)

struct building {
	const struct box_plan *plan;
	int root; /* what will be "/" */
	int binds[BOX_BINDS_MAX];
	struct err *err;
};

/* The same thing as this descriptor, in this mount namespace. */
static int here(int there, const char *what, struct err *err)
{
	char self[40], path[BOX_PATH_MAX];
	struct stat want, got;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", there);
	n = readlink(self, path, sizeof(path) - 1);
	if (n < 0)
		return err_sys(err, "where is what shall be at %s", what);
	path[n] = '\0';
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "what shall be at %s", what);
	if (fstat(there, &want) < 0 || fstat(fd, &got) < 0)
		return err_sys(err, "what shall be at %s", what);
	if (want.st_dev != got.st_dev || want.st_ino != got.st_ino)
		return err_set(err, ERR_SYSTEM, "what shall be at %s was moved meanwhile", what);
	return take_fd(fd);
}

/* The tmpfs has to be mounted somewhere until it is the root; where does not matter. */
static int attach(int mount, struct err *err)
{
	static const char *const places[] = {"/tmp", "/proc", "/usr", "/"};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (move_mount(mount, "", AT_FDCWD, places[i], MOVE_MOUNT_F_EMPTY_PATH) == 0)
			return 0;
	return err_sys(err, "mount the root");
}

static int make_parents(int root, const char *target, struct err *err)
{
	char path[BOX_PATH_MAX];

	snprintf(path, sizeof(path), "%s", target + 1);
	for (char *c = strchr(path, '/'); c; c = strchr(c + 1, '/')) {
		auto_fd int folder = -1;
		char *last;

		*c = '\0';
		folder = fence_openat2(root, path, O_PATH | O_DIRECTORY, INSIDE_ONLY);
		last = strrchr(path, '/');
		if (folder < 0 && errno == ENOENT) {
			auto_fd int parent = -1;

			if (last)
				*last = '\0';
			parent = fence_openat2(root, last ? path : ".", O_PATH | O_DIRECTORY,
					       INSIDE_ONLY);
			if (last)
				*last = '/';
			if (parent < 0 || mkdirat(parent, last ? last + 1 : path, 0755) < 0)
				return err_sys(err, "the way to %s", target);
		} else if (folder < 0) {
			return err_sys(err, "the way to %s", target);
		}
		*c = '/';
	}
	return 0;
}

static int parent_of(int root, const char *target, const char **ret_name, struct err *err)
{
	char path[BOX_PATH_MAX];
	const char *last = strrchr(target, '/');
	int fd;

	snprintf(path, sizeof(path), "%.*s", (int)(last - target), target);
	fd = fence_openat2(root, *path ? path + 1 : ".", O_PATH | O_DIRECTORY, INSIDE_ONLY);
	*ret_name = last + 1;
	return fd < 0 ? err_sys(err, "the way to %s", target) : fd;
}

/* A place for a mount: made if it is not there. */
static int place(int root, const char *target, bool folder, struct err *err)
{
	auto_fd int parent = -1;
	const char *name;
	int fd;

	if (make_parents(root, target, err) < 0)
		return -1;
	parent = parent_of(root, target, &name, err);
	if (parent < 0)
		return -1;
	if (folder)
		fd = mkdirat(parent, name, 0755);
	else
		fd = mknodat(parent, name, S_IFREG | 0644, 0);
	if (fd < 0 && errno != EEXIST && errno != EROFS)
		return err_sys(err, "a place for %s", target);
	fd = fence_openat2(parent, name, O_PATH | O_NOFOLLOW | (folder ? O_DIRECTORY : 0),
			   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	return fd < 0 ? err_sys(err, "a place for %s", target) : fd;
}

/* Mounts a detached mount at a path below the root, and closes it. */
static int put(struct building *b, int mount, const char *target, bool folder)
{
	auto_fd int owned = mount, at = -1;

	if (owned < 0)
		return -1;
	at = place(b->root, target, folder, b->err);
	return at < 0 ? -1 : box_mount_put(owned, at, target, b->err);
}

static int bind_one(struct building *b, size_t i)
{
	const struct box_bind *bind = &b->plan->binds[i];
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			      (bind->writable ? 0 : MOUNT_ATTR_RDONLY) |
			      (bind->no_exec ? MOUNT_ATTR_NOEXEC : 0);
	auto_fd int copy = box_mount_copy(b->binds[i], bind->target, b->err);
	struct stat st;

	if (copy < 0 || box_mount_set(copy, attributes, true, bind->target, b->err) < 0)
		return -1;
	if (fstat(copy, &st) < 0)
		return err_sys(b->err, "stat %s", bind->target);
	return put(b, take_fd(copy), bind->target, S_ISDIR(st.st_mode));
}

static int mount_tmpfs(struct building *b, const struct box_tmpfs *t)
{
	auto_fd int mount = box_mount_tmpfs(t->target, t->bytes, t->mode, b->err);
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

	if (mount < 0 || box_mount_set(mount, attributes | (t->exec ? 0 : MOUNT_ATTR_NOEXEC), false,
				       t->target, b->err) < 0)
		return -1;
	return put(b, take_fd(mount), t->target, true);
}

/* Device nodes of the host, which everybody may use there, too. */
static int bind_device(struct building *b, const char *name)
{
	char path[40];
	auto_fd int host = -1, copy = -1;
	struct stat st;

	snprintf(path, sizeof(path), "/dev/%s", name);
	host = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (host < 0 || fstat(host, &st) < 0)
		return err_sys(b->err, "%s", path);
	if (!S_ISCHR(st.st_mode))
		return err_set(b->err, ERR_SYSTEM, "%s is no device on this host", path);
	copy = box_mount_copy(host, path, b->err);
	if (copy < 0 ||
	    box_mount_set(copy, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false,
			  path, b->err) < 0)
		return -1;
	return put(b, take_fd(copy), path, false);
}

static int link_one(struct building *b, const char *target, const char *text)
{
	auto_fd int parent = -1;
	const char *name;

	if (make_parents(b->root, target, b->err) < 0)
		return -1;
	parent = parent_of(b->root, target, &name, b->err);
	if (parent < 0)
		return -1;
	return symlinkat(text, parent, name) < 0 ? err_sys(b->err, "the link %s", target) : 0;
}

static int build_dev(struct building *b)
{
	static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
	static const char *const links[][2] = {
		{"/dev/ptmx", "pts/ptmx"},          {"/dev/fd", "/proc/self/fd"},
		{"/dev/stdin", "/proc/self/fd/0"},  {"/dev/stdout", "/proc/self/fd/1"},
		{"/dev/stderr", "/proc/self/fd/2"},
	};
	const struct box_tmpfs shm = {"/dev/shm", b->plan->head.shm_bytes, 01777, false};

	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		if (bind_device(b, devices[i]) < 0)
			return -1;
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (link_one(b, links[i][0], links[i][1]) < 0)
			return -1;
	if (put(b, box_mount_new("devpts", "ptmxmode", "0666", b->err), "/dev/pts", true) < 0)
		return -1;
	return mount_tmpfs(b, &shm);
}

/* Covers what /proc says of the host, as container runtimes do. */
static int mask(struct building *b, int proc, const char *name)
{
	auto_fd int at = fence_openat2(proc, name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH);
	auto_fd int cover = -1, copy = -1;
	struct stat st;

	if (at < 0)
		return errno == ENOENT ? 0 : err_sys(b->err, "/proc/%s", name);
	if (fstat(at, &st) < 0)
		return err_sys(b->err, "/proc/%s", name);
	cover = openat(b->root, S_ISDIR(st.st_mode) ? EMPTY_DIR : EMPTY_FILE,
		       O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (cover < 0)
		return err_sys(b->err, "a cover for /proc/%s", name);
	copy = box_mount_copy(cover, name, b->err);
	if (copy < 0 || box_mount_set(copy, MOUNT_ATTR_RDONLY, false, name, b->err) < 0)
		return -1;
	return box_mount_put(copy, at, name, b->err);
}

static int make_read_only(struct building *b, int proc, const char *name)
{
	auto_fd int at = fence_openat2(proc, name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH);
	auto_fd int copy = -1;

	if (at < 0)
		return errno == ENOENT ? 0 : err_sys(b->err, "/proc/%s", name);
	copy = box_mount_copy(at, name, b->err);
	if (copy < 0 || box_mount_set(copy, MOUNT_ATTR_RDONLY, false, name, b->err) < 0)
		return -1;
	return box_mount_put(copy, at, name, b->err);
}

/* No user namespaces in this one, whatever a filter lets pass; where the kernel lets us say so. */
static void forbid_namespaces(int proc)
{
	int fd = openat(proc, "sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0)
		errno = 0;
	close(fd);
}

static int build_proc(struct building *b)
{
	static const char *const masked[] = {
		"acpi",       "asound",        "kcore",       "keys",
		"key-users",  "latency_stats", "sched_debug", "scsi",
		"timer_list", "timer_stats",   "kallsyms",    "config.gz",
		"interrupts", "kpagecount",    "kpageflags",  "modules"};
	static const char *const read_only[] = {"bus", "fs", "irq", "sys", "sysrq-trigger"};
	auto_fd int proc = -1;
	int mounted = box_mount_new("proc", NULL, NULL, b->err);

	if (mounted < 0 || box_mount_set(mounted, MOUNT_ATTR_NODEV, false, "/proc", b->err) < 0 ||
	    put(b, mounted, "/proc", true) < 0)
		return -1;
	proc = fence_openat2(b->root, "proc", O_PATH | O_DIRECTORY, INSIDE_ONLY);
	if (proc < 0)
		return err_sys(b->err, "/proc");
	forbid_namespaces(proc);
	for (size_t i = 0; i < sizeof(masked) / sizeof(*masked); i++)
		if (mask(b, proc, masked[i]) < 0)
			return -1;
	for (size_t i = 0; i < sizeof(read_only) / sizeof(*read_only); i++)
		if (make_read_only(b, proc, read_only[i]) < 0)
			return -1;
	return 0;
}

static int make_covers(struct building *b)
{
	if (mkdirat(b->root, EMPTY_DIR, 0555) < 0 ||
	    mknodat(b->root, EMPTY_FILE, S_IFREG | 0444, 0) < 0)
		return err_sys(b->err, "covers");
	return 0;
}

static int fill(struct building *b)
{
	const struct box_plan *p = b->plan;

	if (make_covers(b) < 0)
		return -1;
	for (size_t i = 0; i < p->head.link_count; i++)
		if (link_one(b, p->links[i].target, p->links[i].text) < 0)
			return -1;
	for (size_t i = 0; i < p->head.bind_count; i++)
		if (bind_one(b, i) < 0)
			return -1;
	for (size_t i = 0; i < p->head.tmpfs_count; i++)
		if (mount_tmpfs(b, &p->tmpfs[i]) < 0)
			return -1;
	if (build_dev(b) < 0 || build_proc(b) < 0)
		return -1;
	if (unlinkat(b->root, EMPTY_DIR, AT_REMOVEDIR) < 0 || unlinkat(b->root, EMPTY_FILE, 0) < 0)
		return err_sys(b->err, "covers");
	return 0;
}

/* What was the root is gone for good. */
static int enter(int root, struct err *err)
{
	if (fchdir(root) < 0)
		return err_sys(err, "enter the root");
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(err, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys(err, "let go of the host's root");
	return chdir("/") < 0 ? err_sys(err, "enter the root") : 0;
}

int box_root_build(const struct box_plan *p, struct err *err)
{
	struct building b = {.plan = p, .root = -1, .err = err};
	int status = -1;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(err, "keep mounts to oneself");
	for (size_t i = 0; i < p->head.bind_count; i++) {
		b.binds[i] = here(p->binds[i].fd, p->binds[i].target, err);
		if (b.binds[i] < 0)
			return -1; /* the process ends */
	}
	b.root = box_mount_tmpfs("/", ROOT_BYTES, 0755, err);
	if (b.root < 0)
		return -1;
	/* Devices of the host are opened by name: before anything covers /dev. */
	if (attach(b.root, err) == 0 && fill(&b) == 0 &&
	    box_mount_set(b.root,
			  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				  MOUNT_ATTR_NOEXEC,
			  false, "/", err) == 0)
		status = enter(b.root, err);
	for (size_t i = 0; i < p->head.bind_count; i++)
		close(b.binds[i]);
	close(b.root);
	return status;
}
