#include "proxy/sandbox/inside/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int step(int folder, const char *name, bool parents, bool follow)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
	int fd = openat(folder, name, flags);

	if (fd < 0 && errno == ENOENT && parents) {
		if (mkdirat(folder, name, 0755) < 0 && errno != EEXIST)
			return -1;
		fd = openat(folder, name, flags);
	}
	/* A link to a folder that is not followed is ENOTDIR; say what it is. */
	if (fd < 0 && errno == ENOTDIR && !follow) {
		struct stat st;

		if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
			errno = ELOOP;
		else
			errno = ENOTDIR;
	}
	return fd;
}

int walk_to(int from, char *path, bool parents, bool follow)
{
	int folder = openat(from, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *rest = path, *name;

	while (folder >= 0 && (name = strsep(&rest, "/"))) {
		int next, sys;

		if (!*name || strcmp(name, ".") == 0)
			continue;
		if (!follow && strcmp(name, "..") == 0) {
			errno = EXDEV;
			next = -1;
		} else
			next = step(folder, name, parents, follow);
		sys = errno;
		(void)close(folder);
		errno = sys;
		folder = next;
	}
	return folder;
}
