/* fence_tree.c - what goes through folders: listing, and removal of all that is in them. */
#include "gate/keeper/fence_priv.h"

#include "gate/base/auto.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PASSES_MAX 16 /* somebody keeps filling what is being emptied */

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}
#define auto_dir __attribute__((cleanup(close_dir)))

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *dir_of(int fd, struct err *err)
{
	DIR *d = fdopendir(fd);

	if (!d) {
		err_sys(err, "list");
		close(fd);
	}
	return d;
}

/* The next name but the dots; NULL at the end (errno 0) or on an error. */
static const char *next_name(DIR *d)
{
	struct dirent *e;

	do {
		errno = 0;
		e = readdir(d);
	} while (e && is_dots(e->d_name));
	return e ? e->d_name : NULL;
}

/* 1: given; 0: it vanished. */
static int give(DIR *d, const char *name, fence_entry_fn *each, void *arg, struct err *err)
{
	char target[FENCE_TARGET_MAX] = "";
	struct fence_entry e = {.name = name, .target = target};
	ssize_t n = 0;

	if (fstatat(dirfd(d), name, &e.stat, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "stat %s", name);
	if (S_ISLNK(e.stat.st_mode))
		n = readlinkat(dirfd(d), name, target, sizeof(target) - 1);
	if (n < 0)
		return 0;
	target[n] = '\0';
	return each(arg, &e, err) < 0 ? -1 : 1;
}

int fence_list(const struct fence *f, const char *path, size_t max, fence_entry_fn *each, void *arg,
	       struct err *err)
{
	int fd = fence_walk(f, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, err);
	auto_dir DIR *d = fd < 0 ? NULL : dir_of(fd, err);
	const char *name;
	size_t count = 0;

	if (!d)
		return -1;
	while ((name = next_name(d))) {
		int given;

		if (count == max)
			return err_set(err, ERR_LIMIT, "%s has more than %zu entries", path, max);
		given = give(d, name, each, arg, err);
		if (given < 0)
			return -1;
		count += (size_t)given;
	}
	return errno ? err_sys(err, "list %s", path) : 0;
}

struct removal {
	size_t left; /* how many more may be removed */
	unsigned depth;
};

static int remove_name(struct removal *r, int folder, const char *name, struct err *err);

static int empty(struct removal *r, int folder, const char *name, struct err *err)
{
	/* No link, no other mount: what is entered is a folder of this very folder. */
	int fd = fence_openat2(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK,
			       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	auto_dir DIR *d = NULL;
	const char *entry;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "open %s", name);
	d = dir_of(fd, err);
	if (!d)
		return -1;
	while ((entry = next_name(d)))
		if (remove_name(r, dirfd(d), entry, err) < 0)
			return -1;
	return errno ? err_sys(err, "list %s", name) : 0;
}

static int remove_folder(struct removal *r, int folder, const char *name, struct err *err)
{
	int status;

	for (int i = 0; i < PASSES_MAX; i++) {
		if (r->depth == FENCE_DEPTH_MAX)
			return err_set(err, ERR_LIMIT, "folders more than %d deep are not removed",
				       FENCE_DEPTH_MAX);
		r->depth++;
		status = empty(r, folder, name, err);
		r->depth--;
		if (status < 0)
			return -1;
		if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			break;
	}
	return err_sys(err, "remove %s", name);
}

static int remove_name(struct removal *r, int folder, const char *name, struct err *err)
{
	if (!r->left)
		return err_set(err, ERR_LIMIT, "more than %d files and folders", FENCE_COUNT_MAX);
	r->left--;
	if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(err, "remove %s", name);
	return remove_folder(r, folder, name, err);
}

int fence_remove(const struct fence *f, const char *path, bool recursive, struct err *err)
{
	struct removal r = {.left = FENCE_COUNT_MAX};
	auto_fd int folder = -1;
	struct fence_place p;
	struct stat st;
	int status;

	if (fence_place(f, path, &p, err) < 0)
		return -1;
	folder = p.folder;
	if (fstatat(folder, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "%s", path);
	if (recursive)
		status = remove_name(&r, folder, p.name, err);
	else if (unlinkat(folder, p.name, 0) == 0 || ((errno == EISDIR || errno == EPERM) &&
						      unlinkat(folder, p.name, AT_REMOVEDIR) == 0))
		status = 0;
	else
		status = err_sys(err, "remove");
	return status < 0 ? err_wrap(err, "%s", path) : 0;
}
