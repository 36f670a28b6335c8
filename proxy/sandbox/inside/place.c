#include "proxy/sandbox/inside/place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proxy/sandbox/inside/names.h"
#include "proxy/sandbox/inside/verbs.h"
#include "proxy/sandbox/inside/walk.h"

static int read_flag(struct words *w, const char *name)
{
	if (strcmp(name, "--parents") == 0)
		w->parents = true;
	else if (strcmp(name, "--recursive") == 0)
		w->recursive = true;
	else
		return -1;
	return 0;
}

static int read_value(struct words *w, const char *name, const char *value)
{
	long long n;

	if (strcmp(name, "--beneath") == 0 && !w->beneath) {
		w->beneath = value;
		return 0;
	}
	if (strcmp(name, "--mode") == 0 && number_read(value, 8, 0777, &n) == 0) {
		w->mode = (mode_t)n;
		return 0;
	}
	return strcmp(name, "--max") == 0 ? number_read(value, 10, 1000000, &w->most) : -1;
}

int words_read(struct words *w, char **words)
{
	*w = (struct words){.mode = 0644, .most = 10000};
	for (; *words; words++) {
		if (strncmp(*words, "--", 2) != 0) {
			if (w->path)
				return -1;
			w->path = w->said = *words;
		} else if (read_flag(w, *words) < 0) {
			if (!words[1] || read_value(w, words[0], words[1]) < 0)
				return -1;
			words++;
		}
	}
	return w->path ? 0 : -1;
}

/* -1 with ENOSYS where it is not there; seccomp filters of older engines say EPERM. */
static int open_resolved(int folder, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC, .resolve = resolve};
	long fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));

	if (fd < 0 && errno == EPERM)
		errno = ENOSYS;
	return (int)fd;
}

static int find_folder(int from, char *path, bool parents, bool fenced)
{
	const uint64_t resolve = RESOLVE_NO_MAGICLINKS | (fenced ? RESOLVE_BENEATH : 0);
	int folder = open_resolved(from, *path ? path : ".", O_PATH | O_DIRECTORY, resolve);

	if (folder >= 0 || (errno != ENOSYS && !(errno == ENOENT && parents)))
		return folder;
	return walk_to(from, path, parents, !fenced);
}

/* Cuts the last component off.  0, or -1: it names nothing. */
static int split(char *path, char *name)
{
	size_t n = strlen(path);
	char *last;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	last = strrchr(path, '/');
	last = last ? last + 1 : path;
	if (strlen(last) > NAME_OCTETS_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (strcmp(last, "..") == 0 || (!*last && strcmp(path, "/") != 0)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(name, *last ? last : ".", strlen(last) + 1);
	if (!*last)
		memcpy(name, ".", 2);
	*last = '\0';
	return 0;
}

int place_find(struct place *p, const struct words *w, bool parents)
{
	char path[4096], beneath[4096] = "/";
	const char *start = path;
	int from, sys;

	if (strlen(w->path) >= sizeof(path) ||
	    (w->beneath && strlen(w->beneath) >= sizeof(beneath))) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(path, w->path, strlen(w->path) + 1);
	if (w->beneath)
		memcpy(beneath, w->beneath, strlen(w->beneath) + 1);
	errno = EINVAL;
	if (name_decode(path) < 0 || name_decode(beneath) < 0 || (!w->beneath && *path != '/'))
		return -1;
	if (w->beneath && *path == '/') {
		errno = EXDEV;
		return -1;
	}
	*p = (struct place){.fenced = w->beneath, .said = w->said};
	if (split(path, p->name) < 0)
		return -1;
	while (*start == '/')
		start++;
	from = open(beneath, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return -1;
	p->folder = find_folder(from, path + (start - path), parents, p->fenced);
	sys = errno;
	(void)close(from);
	errno = sys;
	return p->folder < 0 ? -1 : 0;
}

int place_open(const struct place *p, int flags)
{
	int fd;

	/* Beneath a fence a link as the last component could lead anywhere: it is not followed. */
	if (p->fenced)
		flags |= O_NOFOLLOW;
	fd = open_resolved(p->folder, p->name, flags, RESOLVE_NO_MAGICLINKS);
	return fd < 0 && errno == ENOSYS ? openat(p->folder, p->name, flags | O_CLOEXEC) : fd;
}
