#include "gate/base/confine_box.h"

#include "gate/base/auto.h"
#include "gate/base/confine.h"
#include "gate/base/io.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Newer than the headers of Debian 12. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SCOPE_SIGNAL        (1ULL << 1)
#define ABI_REFER           2
#define ABI_TRUNCATE        3
#define ABI_IOCTL           5
#define ABI_SCOPES          6

/* The kernel reads as much of it as it knows. */
struct ruleset {
	uint64_t fs, net, scoped;
};

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | \
	 CLONE_NEWCGROUP)

struct call {
	const char *name;
	int answer; /* 0: allowed */
};

static const struct call list[] = {
#define ALLOW(name)       {#name, 0},
#define REFUSE(name, why) {#name, EPERM},
#define FLOOR(name, answer, why)
#include "gate/base/confine_box.def"
#undef ALLOW
#undef REFUSE
#undef FLOOR
};

static const struct call floor_calls[] = {
#define ALLOW(name)
#define REFUSE(name, why)
#define FLOOR(name, answer, why) {#name, answer},
#include "gate/base/confine_box.def"
#undef ALLOW
#undef REFUSE
#undef FLOOR
};

static int add_calls(scmp_filter_ctx ctx, const struct call *calls, size_t count)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		int nr = seccomp_syscall_resolve_name(calls[i].name);

		/* Not of this architecture, or not known to the library: not allowed then. */
		if (nr < 0)
			continue;
		rc = seccomp_rule_add(ctx,
				      calls[i].answer ? SCMP_ACT_ERRNO((unsigned)calls[i].answer)
						      : SCMP_ACT_ALLOW,
				      nr, 0);
	}
	return rc;
}

static int refuse_if(scmp_filter_ctx ctx, int call, int answer, unsigned arg, uint64_t mask,
		     uint64_t value)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO((unsigned)answer), call, 1,
				SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, value));
}

/* Families of sockets: the one that is refused is every one but these. */
static int refuse_families(scmp_filter_ctx ctx)
{
	static const int known[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
	int rc = 0;

	for (int family = 0; rc == 0 && family < AF_MAX + 16; family++) {
		bool is_known = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			is_known |= family == known[i];
		if (!is_known)
			rc = refuse_if(ctx, SCMP_SYS(socket), EAFNOSUPPORT, 0, UINT32_MAX,
				       (uint64_t)family);
	}
	/* Of netlink only routes, which getifaddrs() asks for: protocol 0. */
	for (unsigned bit = 0; rc == 0 && bit < 32; bit++)
		rc = seccomp_rule_add(
			ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 2,
			SCMP_CMP(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_NETLINK),
			SCMP_CMP(2, SCMP_CMP_MASKED_EQ, UINT64_C(1) << bit, UINT64_C(1) << bit));
	return rc;
}

static int add_floor(scmp_filter_ctx ctx)
{
	int rc = add_calls(ctx, floor_calls, sizeof(floor_calls) / sizeof(*floor_calls));

	for (unsigned bit = 0; rc == 0 && bit < 32; bit++)
		if ((unsigned)NEW_NAMESPACES & 1U << bit)
			rc = refuse_if(ctx, SCMP_SYS(clone), EPERM, 0, UINT64_C(1) << bit,
				       UINT64_C(1) << bit);
	if (rc == 0)
		rc = refuse_if(ctx, SCMP_SYS(ioctl), EPERM, 1, UINT32_MAX, TIOCSTI);
	if (rc == 0)
		rc = refuse_if(ctx, SCMP_SYS(ioctl), EPERM, 1, UINT32_MAX, TIOCLINUX);
	return rc == 0 ? refuse_families(ctx) : rc;
}

/* libseccomp writes programs to descriptors only. */
static int export(scmp_filter_ctx ctx, struct buf *ret, struct err *err)
{
	auto_fd int fd = memfd_create("filter", MFD_CLOEXEC);
	int rc;

	if (fd < 0)
		return err_sys(err, "a place for a filter");
	rc = seccomp_export_bpf(ctx, fd);
	if (rc < 0) {
		errno = -rc;
		return err_sys(err, "write a filter");
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "read a filter");
	return io_read_fd(fd, CONFINE_PROGRAM_MAX, ret, err);
}

static int make(uint32_t otherwise, int (*add)(scmp_filter_ctx ctx), struct buf *ret,
		struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(otherwise);
	int rc = ctx ? seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) : -ENOMEM;

	if (rc == 0)
		rc = add(ctx);
	if (rc < 0) {
		errno = -rc;
		err_sys(err, "make a system call filter");
	} else {
		rc = export(ctx, ret, err);
	}
	if (ctx)
		seccomp_release(ctx);
	return rc < 0 ? -1 : 0;
}

static int add_list(scmp_filter_ctx ctx)
{
	return add_calls(ctx, list, sizeof(list) / sizeof(*list));
}

int confine_programs(struct buf *ret_list, struct buf *ret_floor, struct err *err)
{
	if (make(SCMP_ACT_ERRNO(ENOSYS), add_list, ret_list, err) < 0)
		return -1;
	if (make(SCMP_ACT_ALLOW, add_floor, ret_floor, err) == 0)
		return 0;
	buf_fini(ret_list);
	return -1;
}

int confine_program(struct span program, struct err *err)
{
	struct sock_fprog f = {.len = (unsigned short)(program.len / sizeof(struct sock_filter)),
			       .filter = (struct sock_filter *)(uintptr_t)program.at};

	if (program.len > CONFINE_PROGRAM_MAX || program.len % sizeof(struct sock_filter) ||
	    !program.len)
		return err_set(err, ERR_CONFIG, "that is no system call filter");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f) < 0)
		return err_sys(err, "install a system call filter");
	return 0;
}

int confine_powerless(struct err *err)
{
	const unsigned long locked = SECURE_ALL_BITS | SECURE_ALL_LOCKS;

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_sys(err, "cut the bounding set");
	if (prctl(PR_SET_SECUREBITS, locked & ~(unsigned long)SECBIT_KEEP_CAPS, 0, 0, 0) < 0)
		return err_sys(err, "lock the secure bits");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(err, "clear the ambient set");
	return confine_caps(0, 0, err);
}

int confine_keyring(struct err *err)
{
	/* Where the kernel has no keys there is nothing to be shared. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return err_sys(err, "a session keyring");
	return 0;
}

#define RIGHTS_FILE                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |                              \
	 LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |                              \
	 LANDLOCK_ACCESS_FS_IOCTL_DEV)
#define RIGHTS_MAKE                                                                                \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                          \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |                               \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |                             \
	 LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)
#define RIGHTS_READ                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

static uint64_t rights(enum confine_use use)
{
	switch (use) {
	case CONFINE_LOOK:
		return LANDLOCK_ACCESS_FS_READ_DIR;
	case CONFINE_READ:
		return RIGHTS_READ;
	case CONFINE_WRITE:
		return RIGHTS_READ | RIGHTS_MAKE | LANDLOCK_ACCESS_FS_WRITE_FILE |
		       LANDLOCK_ACCESS_FS_TRUNCATE;
	case CONFINE_DEVICES:
		return LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
		       LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_IOCTL_DEV |
		       LANDLOCK_ACCESS_FS_TRUNCATE;
	}
	return 0;
}

static uint64_t handled(int abi)
{
	uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

	all |= abi >= ABI_REFER ? LANDLOCK_ACCESS_FS_REFER : 0;
	all |= abi >= ABI_TRUNCATE ? LANDLOCK_ACCESS_FS_TRUNCATE : 0;
	return all | (abi >= ABI_IOCTL ? LANDLOCK_ACCESS_FS_IOCTL_DEV : 0);
}

static int ruleset_make(const struct ruleset *r, int abi, struct err *err)
{
	/* A kernel of before the scopes knows no more than these parts of it. */
	size_t size = abi >= ABI_SCOPES ? sizeof(*r) : sizeof(r->fs);
	long fd = syscall(SYS_landlock_create_ruleset, r, size, 0);

	return fd < 0 ? err_sys(err, "make a Landlock ruleset") : (int)fd;
}

static int ruleset_add(int ruleset, uint64_t all, const struct confine_path *p, struct err *err)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights(p->use) & all,
						  .parent_fd = p->fd};
	struct stat st;

	if (fstat(p->fd, &st) < 0)
		return err_sys(err, "stat");
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= RIGHTS_FILE;
	if (rule.allowed_access &&
	    syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_sys(err, "add to a Landlock ruleset");
	return 0;
}

static int ruleset_enter(int ruleset, struct err *err)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0
		       ? err_sys(err, "enter a Landlock ruleset")
		       : 0;
}

int confine_paths(const struct confine_path *paths, size_t count, unsigned least, struct err *err)
{
	int abi = confine_landlock_version();
	struct ruleset r = {.fs = handled(abi), .scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL};
	auto_fd int ruleset = -1;

	if (abi < (int)least)
		return err_set(err, ERR_SYSTEM, "Landlock: the kernel has ABI %d, wanted is %u",
			       abi, least);
	if (abi < 1)
		return 0;
	ruleset = ruleset_make(&r, abi, err);
	if (ruleset < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (ruleset_add(ruleset, r.fs, &paths[i], err) < 0)
			return -1;
	return ruleset_enter(ruleset, err);
}

int confine_signals(struct err *err)
{
	const struct ruleset r = {.scoped = SCOPE_SIGNAL};
	int abi = confine_landlock_version();
	auto_fd int ruleset = -1;

	if (abi < ABI_SCOPES)
		return 0;
	ruleset = ruleset_make(&r, abi, err);
	return ruleset < 0 ? -1 : ruleset_enter(ruleset, err);
}
