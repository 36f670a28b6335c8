#include "gate/base/auto.h"
#include "gate/keeper/box_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>

static int set_text(int fs, const char *key, const char *value)
{
	return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0);
}

static int set_number(int fs, const char *key, unsigned long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	return set_text(fs, key, text);
}

static int set_mode(int fs, mode_t mode)
{
	char text[16];

	snprintf(text, sizeof(text), "%o", mode);
	return set_text(fs, "mode", text);
}

static int create(int fs, unsigned attributes)
{
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, attributes);
}

int box_mount_tmpfs(const char *what, uint64_t bytes, mode_t mode, struct err *err)
{
	auto_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	uint64_t inodes = bytes / 4096 + 64;
	int fd = -1;

	if (fs < 0)
		return err_sys(err, "a tmpfs for %s", what);
	if (set_number(fs, "size", bytes) == 0 &&
	    set_number(fs, "nr_inodes", inodes < 1048576 ? inodes : 1048576) == 0 &&
	    set_mode(fs, mode) == 0)
		fd = create(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? err_sys(err, "a tmpfs for %s", what) : fd;
}

int box_mount_new(const char *type, const char *option, const char *value, struct err *err)
{
	auto_fd int fs = fsopen(type, FSOPEN_CLOEXEC);
	unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
	int fd = -1;

	if (fs < 0)
		return err_sys(err, "a mount of %s", type);
	if (!option || set_text(fs, option, value) == 0)
		fd = create(fs, attributes);
	return fd < 0 ? err_sys(err, "a mount of %s", type) : fd;
}

int box_mount_copy(int fd, const char *what, struct err *err)
{
	int copy = open_tree(fd, "",
			     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);

	return copy < 0 ? err_sys(err, "a view of %s", what) : copy;
}

int box_mount_set(int fd, uint64_t attributes, bool below, const char *what, struct err *err)
{
	struct mount_attr attr = {.attr_set = attributes};

	if (mount_setattr(fd, "", AT_EMPTY_PATH | (below ? AT_RECURSIVE : 0), &attr, sizeof(attr)) <
	    0)
		return err_sys(err, "restrict the mount of %s", what);
	return 0;
}

int box_mount_put(int mount, int place, const char *what, struct err *err)
{
	if (move_mount(mount, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(err, "mount %s", what);
	return 0;
}
