#include "gate/keeper/fence_priv.h"

#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AGAIN_MAX  1000 /* a rename at the same time makes the kernel give up on ".." */
#define CREATE_MAX 64   /* how often a name may come and go while it is created */
#define ACCESSES   (O_RDONLY | O_WRONLY | O_RDWR | O_APPEND | O_DIRECTORY)

int fence_openat2(int folder, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = resolve};
	long fd = -1;

	for (int i = 0; i < AGAIN_MAX; i++) {
		fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

int fence_reopen(int fd, int flags)
{
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static uint64_t resolve_flags(const struct fence *f)
{
	return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
	       (f->rules & FENCE_ONE_DEVICE ? RESOLVE_NO_XDEV : 0) |
	       (f->rules & FENCE_NO_LINKS ? RESOLVE_NO_SYMLINKS : 0);
}

/* Without the slashes at both ends; 0 if it is a path at all. */
static int trim(const char *path, char ret[FENCE_PATH_MAX], struct err *err)
{
	size_t len;

	if (!*path)
		return err_set(err, ERR_INPUT, "an empty path");
	path += strspn(path, "/");
	len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	if (len >= FENCE_PATH_MAX)
		return err_set(err, ERR_INPUT, "a path of more than %d bytes", FENCE_PATH_MAX - 1);
	memcpy(ret, len ? path : ".", len ? len : 1);
	ret[len ? len : 1] = '\0';
	return 0;
}

int fence_walk(const struct fence *f, const char *path, int flags, struct err *err)
{
	char at[FENCE_PATH_MAX];
	int fd;

	if (trim(path, at, err) < 0)
		return -1;
	fd = fence_openat2(f->root, at, flags, resolve_flags(f));
	return fd < 0 ? err_sys(err, "%s", at) : fd;
}

int fence_place(const struct fence *f, const char *path, struct fence_place *ret, struct err *err)
{
	char at[FENCE_PATH_MAX];
	char *last;
	int fd;

	if (trim(path, at, err) < 0)
		return -1;
	last = strrchr(at, '/');
	last = last ? last + 1 : at;
	if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return err_set(err, ERR_INPUT, "%s: the last part of the path is no name", at);
	if (strlen(last) >= sizeof(ret->name)) {
		errno = ENAMETOOLONG;
		return err_sys(err, "%s", at);
	}
	memcpy(ret->name, last, strlen(last) + 1);
	*last = '\0';
	fd = fence_walk(f, *at ? at : ".", O_PATH | O_DIRECTORY, err);
	if (fd < 0)
		return -1;
	ret->folder = fd;
	return 0;
}

/* What is there may be opened in this way. */
static int suits(const struct fence *f, const struct stat *st, int flags, struct err *err)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	errno = 0;
	if (S_ISLNK(st->st_mode))
		errno = ELOOP;
	else if (S_ISDIR(st->st_mode))
		errno = writes ? EISDIR : 0;
	else if (flags & O_DIRECTORY)
		errno = ENOTDIR;
	if (errno)
		return err_sys(err, "open");
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) {
		err_set(err, ERR_SYSTEM, "neither a file nor a folder, so it is not opened");
		err->sys = EINVAL;
		return -1;
	}
	if (writes && st->st_nlink > 1 && f->rules & FENCE_NO_HARDLINKS) {
		err_set(err, ERR_SYSTEM, "a file with several names is not written to");
		err->sys = EMLINK;
		return -1;
	}
	return 0;
}

/* From a reference to the thing itself: judged and opened is one and the same inode. */
static int use(const struct fence *f, int ref, int flags, struct err *err)
{
	auto_fd int fd = -1;
	struct stat st;

	if (fstat(ref, &st) < 0)
		return err_sys(err, "stat");
	if (suits(f, &st, flags, err) < 0)
		return -1;
	fd = fence_reopen(ref, flags & ACCESSES);
	if (fd < 0)
		return err_sys(err, "open");
	if (flags & O_TRUNC && ftruncate(fd, 0) < 0)
		return err_sys(err, "truncate");
	return take_fd(fd);
}

/* One name in a folder, which is not followed; made if that is wanted and it is missing. */
static int open_name(const struct fence *f, const struct fence_place *p, int flags, mode_t mode,
		     struct err *err)
{
	const int make = (flags & ACCESSES) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	for (int i = 0; i < CREATE_MAX; i++) {
		auto_fd int ref = openat(p->folder, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		int fd;

		if (ref >= 0 && flags & O_EXCL) {
			errno = EEXIST;
			return err_sys(err, "make");
		}
		if (ref >= 0)
			return use(f, ref, flags, err);
		if (errno != ENOENT || !(flags & O_CREAT))
			return err_sys(err, "open");
		fd = openat(p->folder, p->name, make, mode & 0777);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return err_sys(err, "make");
	}
	errno = EBUSY;
	return err_sys(err, "make");
}

static int open_to_write(const struct fence *f, const char *path, int flags, mode_t mode,
			 struct err *err)
{
	struct fence_place p;
	int fd;

	if (fence_place(f, path, &p, err) < 0)
		return -1;
	fd = open_name(f, &p, flags, mode, err);
	close(p.folder);
	return fd;
}

int fence_open(const struct fence *f, const char *path, int flags, mode_t mode, struct err *err)
{
	auto_fd int ref = -1;
	int fd = -1;

	if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC)) {
		fd = open_to_write(f, path, flags, mode, err);
	} else {
		ref = fence_walk(f, path, O_PATH, err);
		if (ref >= 0)
			fd = use(f, ref, flags, err);
	}
	return fd < 0 ? err_wrap(err, "open %s", path) : fd;
}

/* Whether a folder is there, which is not reached through a link. */
static bool is_folder(const struct fence_place *p)
{
	struct stat st;

	return fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int make_folder(const struct fence *f, const char *path, mode_t mode, bool may_exist,
		       struct err *err)
{
	struct fence_place p;
	auto_fd int folder = -1;

	if (fence_place(f, path, &p, err) < 0)
		return -1;
	folder = p.folder;
	if (mkdirat(folder, p.name, mode & 0777) == 0)
		return 0;
	if (errno == EEXIST && may_exist && is_folder(&p))
		return 0;
	return err_sys(err, "make the folder %s", path);
}

int fence_mkdir(const struct fence *f, const char *path, mode_t mode, bool parents, struct err *err)
{
	char at[FENCE_PATH_MAX];
	struct err ignored;

	if (trim(path, at, err) < 0)
		return -1;
	/* What stands on the way may also be a link to a folder: the next step says whether it
	   leads anywhere. */
	for (char *c = parents ? strchr(at, '/') : NULL; c; c = strchr(c + 1, '/')) {
		*c = '\0';
		make_folder(f, at, 0755, true, &ignored);
		*c = '/';
	}
	if (parents && strcmp(at, ".") == 0)
		return 0;
	return make_folder(f, at, mode, parents, err);
}

int fence_make(const struct fence *f, const char *path, mode_t mode, int *ret_folder,
	       char name[FENCE_NAME_MAX], struct err *err)
{
	struct fence_place p;
	auto_fd int folder = -1;
	uint64_t chance;
	int fd;

	if (fence_place(f, path, &p, err) < 0)
		return -1;
	folder = p.folder;
	if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
		return err_sys(err, "a name for a new file");
	snprintf(name, FENCE_NAME_MAX, ".sallyport-%016llx", (unsigned long long)chance);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    mode & 0777);
	if (fd < 0)
		return err_sys(err, "make %s", path);
	*ret_folder = take_fd(folder);
	return fd;
}

int fence_keep(const struct fence *f, int folder, const char *name, const char *path,
	       struct err *err)
{
	char at[FENCE_PATH_MAX];
	const char *last;

	(void)f;
	if (trim(path, at, err) < 0)
		return -1;
	last = strrchr(at, '/');
	last = last ? last + 1 : at;
	if (renameat2(folder, name, folder, last, 0) == 0)
		return 0;
	err_sys(err, "put %s in its place", path);
	unlinkat(folder, name, 0);
	return -1;
}

int fence_rename(const struct fence *f, const char *from, const char *to, bool replace,
		 struct err *err)
{
	auto_fd int from_folder = -1, to_folder = -1;
	struct fence_place a, b;

	if (fence_place(f, from, &a, err) < 0)
		return -1;
	from_folder = a.folder;
	if (fence_place(f, to, &b, err) < 0)
		return -1;
	to_folder = b.folder;
	if (renameat2(from_folder, a.name, to_folder, b.name, replace ? 0 : RENAME_NOREPLACE) < 0)
		return err_sys(err, "rename %s to %s", from, to);
	return 0;
}

int fence_symlink(const struct fence *f, const char *text, const char *path, struct err *err)
{
	auto_fd int folder = -1;
	struct fence_place p;

	if (fence_place(f, path, &p, err) < 0)
		return -1;
	folder = p.folder;
	return symlinkat(text, folder, p.name) < 0 ? err_sys(err, "make the link %s", path) : 0;
}

int fence_stat(const struct fence *f, const char *path, struct stat *ret,
	       char target[FENCE_TARGET_MAX], struct err *err)
{
	auto_fd int ref = fence_walk(f, path, O_PATH | O_NOFOLLOW, err);
	ssize_t n = 0;

	if (ref < 0)
		return -1;
	if (fstat(ref, ret) < 0)
		return err_sys(err, "stat %s", path);
	if (S_ISLNK(ret->st_mode))
		n = readlinkat(ref, "", target, FENCE_TARGET_MAX - 1);
	if (n < 0)
		return err_sys(err, "read the link %s", path);
	target[n] = '\0';
	return 0;
}

int fence_stat_followed(const struct fence *f, const char *path, struct stat *ret, struct err *err)
{
	auto_fd int ref = fence_walk(f, path, O_PATH, err);

	if (ref < 0)
		return -1;
	return fstat(ref, ret) < 0 ? err_sys(err, "stat %s", path) : 0;
}

int fence_chmod(const struct fence *f, const char *path, mode_t mode, struct err *err)
{
	auto_fd int ref = fence_walk(f, path, O_PATH | O_NOFOLLOW, err);
	char self[40];
	struct stat st;

	if (ref < 0)
		return -1;
	if (mode & ~0777U)
		return err_set(err, ERR_INPUT, "%s: a mode has nine bits", path);
	if (fstat(ref, &st) < 0)
		return err_sys(err, "stat %s", path);
	if (suits(f, &st, S_ISDIR(st.st_mode) ? O_RDONLY : O_WRONLY, err) < 0)
		return err_wrap(err, "%s", path);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", ref);
	return chmod(self, mode) < 0 ? err_sys(err, "change the mode of %s", path) : 0;
}
