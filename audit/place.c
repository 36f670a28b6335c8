#include "audit/place_priv.h"
#include "audit/requests_priv.h"

#include "audit/log_priv.h"
#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define ASIDE_MAX 1000

/* Some are in no header. */
static const struct {
	unsigned magic;
	const char *name;
	const char *why;
} unsafe[] = {
	{TMPFS_MAGIC, "tmpfs", "it is memory: nothing survives a restart"},
	{RAMFS_MAGIC, "ramfs", "it is memory: nothing survives a restart"},
	{NFS_SUPER_MAGIC, "nfs", "another machine keeps it, and may lose what was synced"},
	{SMB_SUPER_MAGIC, "smb", "another machine keeps it, and may lose what was synced"},
	{0xFE534D42, "smb", "another machine keeps it, and may lose what was synced"},
	{0xFF534D42, "cifs", "another machine keeps it, and may lose what was synced"},
	{V9FS_MAGIC, "9p", "another machine keeps it, and may lose what was synced"},
	{AFS_SUPER_MAGIC, "afs", "another machine keeps it, and may lose what was synced"},
	{0x00C36400, "ceph", "another machine keeps it, and may lose what was synced"},
	{FUSE_SUPER_MAGIC, "fuse", "a program keeps it, and may lose what was synced"},
};

int place_check_fs(const char *dir, struct err *err)
{
	auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return audit_log_no_folder(dir, err);
	if (fstatfs(fd, &fs) < 0)
		return err_sys(err, "look at the file system of %s", dir);
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++)
		if (unsafe[i].magic == (unsigned)fs.f_type)
			return err_set(err, ERR_CONFIG,
				       "the log's folder %s is on %s: %s; name another one, or set "
				       "log { unsafe_fs = true }",
				       dir, unsafe[i].name, unsafe[i].why);
	return 0;
}

static void aside_name(unsigned n, char out[PLACE_ASIDE_MAX])
{
	snprintf(out, PLACE_ASIDE_MAX, "damaged-%u", n);
}

/* How many logs were set aside here. */
static unsigned count_aside(int dir_fd)
{
	char name[PLACE_ASIDE_MAX];
	struct stat st;
	unsigned n = 0;

	do
		aside_name(++n, name);
	while (n < ASIDE_MAX && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return n - 1;
}

int place_origin(int dir_fd, const char *origin, char ret[LINE_ORIGIN_MAX + 1], struct err *err)
{
	unsigned aside = count_aside(dir_fd);
	int n = aside ? snprintf(ret, LINE_ORIGIN_MAX + 1, "%s/%u", origin, aside + 1)
		      : snprintf(ret, LINE_ORIGIN_MAX + 1, "%s", origin);

	if (n > LINE_ORIGIN_MAX || !line_origin_ok(ret))
		return err_set(err, ERR_CONFIG,
			       "the log's name must be 1 to %d letters, digits or ._-/:+",
			       LINE_ORIGIN_MAX);
	return 0;
}

static int move(int dir_fd, int to_fd, const char *name, struct err *err)
{
	if (renameat(dir_fd, name, to_fd, name) < 0 && errno != ENOENT)
		return err_sys(err, "set %s of the damaged log aside", name);
	return 0;
}

static int move_all(int dir_fd, int to_fd, struct err *err)
{
	static const char *const others[] = {"tile", "torn", "checkpoint"};
	char name[SEGMENT_NAME_MAX];
	struct segments all;
	int result = 0;

	if (segments_list(dir_fd, &all, err) < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < all.count; i++) {
		segment_name(all.first[i], name);
		result = move(dir_fd, to_fd, name, err);
	}
	segments_free(&all);
	for (size_t i = 0; result == 0 && i < sizeof(others) / sizeof(*others); i++)
		result = move(dir_fd, to_fd, others[i], err);
	if (result == 0 && (fsync(to_fd) < 0 || fsync(dir_fd) < 0))
		result = err_sys(err, "fsync the log directory");
	return result;
}

int place_set_aside(const char *dir, char ret[PLACE_ASIDE_MAX], struct err *err)
{
	auto_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int lock_fd = -1, to_fd = -1;

	if (dir_fd < 0)
		return err_sys(err, "open the log directory %s", dir);
	lock_fd = openat(dir_fd, WRITER_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock_fd < 0 || flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(err, "lock %s/" WRITER_LOCK, dir);
	aside_name(count_aside(dir_fd) + 1, ret);
	if (mkdirat(dir_fd, ret, 0750) < 0)
		return err_sys(err, "create %s/%s", dir, ret);
	to_fd = openat(dir_fd, ret, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to_fd < 0)
		return err_sys(err, "open %s/%s", dir, ret);
	return move_all(dir_fd, to_fd, err);
}
