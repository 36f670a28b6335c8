/* Removes what a path names, and with --recursive all that is below it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/sandbox/inside/place.h"
#include "proxy/sandbox/inside/verbs.h"
#include "proxy/sandbox/inside/wire.h"

/* Folders that are open at once.  What is deeper is moved to the top, and goes with the next round.
 */
#define DEPTH_MAX  64
#define ROUNDS_MAX 4096 /* somebody who goes on making folders is not waited for */

struct removal {
	int top;
	unsigned long moved;
	bool again; /* something was moved */
};

static int open_folder(int folder, const char *name)
{
	return openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* A link is removed and never followed; whoever swaps names gains nothing. */
static int unlink_any(int folder, const char *name)
{
	if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	if (unlinkat(folder, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno == ENOTDIR)
		errno = EPERM;
	return -1;
}

static int move_up(struct removal *r, int folder, const char *name)
{
	char to[48];

	(void)snprintf(to, sizeof(to), ".sallyport-removed-%lu", r->moved++);
	r->again = true;
	return renameat(folder, name, r->top, to);
}

static int empty(struct removal *r, int fd, int depth);

static int remove_folder(struct removal *r, int folder, const char *name, int depth)
{
	int fd;

	if (depth > DEPTH_MAX)
		return move_up(r, folder, name);
	fd = open_folder(folder, name);
	if (fd < 0 || empty(r, fd, depth) < 0)
		return -1;
	return unlinkat(folder, name, AT_REMOVEDIR);
}

/* Empties a folder; takes fd. */
static int empty(struct removal *r, int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int done = 0, sys;

	if (!dir)
		return -1;
	while (done == 0 && (errno = 0, e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlink_any(dirfd(dir), e->d_name) == 0)
			continue;
		done = errno == ENOTEMPTY || errno == EEXIST
			       ? remove_folder(r, dirfd(dir), e->d_name, depth + 1)
			       : -1;
	}
	sys = errno;
	(void)closedir(dir);
	errno = sys;
	return done;
}

static int remove_all(const struct place *p)
{
	struct removal r = {.again = true};

	r.top = open_folder(p->folder, p->name);
	if (r.top < 0)
		return -1;
	for (int rounds = 0; r.again; rounds++) {
		int fd = open_folder(r.top, ".");

		r.again = false;
		if (rounds == ROUNDS_MAX) {
			errno = EBUSY;
			return -1;
		}
		if (fd < 0 || empty(&r, fd, 0) < 0)
			return -1;
	}
	(void)close(r.top);
	return unlinkat(p->folder, p->name, AT_REMOVEDIR);
}

int verb_remove(char **words)
{
	struct words w;
	struct place p;

	if (words_read(&w, words) < 0)
		return wire_fail(EINVAL, "remove: options and one path");
	if (place_find(&p, &w, false) < 0)
		return wire_fail(errno, "remove %.1000s", w.said);
	if (strcmp(p.name, ".") == 0)
		return wire_fail(EBUSY, "remove %.1000s", w.said);
	if (unlink_any(p.folder, p.name) < 0 &&
	    !(w.recursive && (errno == ENOTEMPTY || errno == EEXIST) && remove_all(&p) == 0))
		return wire_fail(errno, "remove %.1000s", w.said);
	return wire_end(0, 0, false, false);
}
