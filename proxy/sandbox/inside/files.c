/* Files of the sandbox, one at a time: get, put, stat, list, mkdir. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/sandbox/inside/names.h"
#include "proxy/sandbox/inside/place.h"
#include "proxy/sandbox/inside/verbs.h"
#include "proxy/sandbox/inside/wire.h"

static uint8_t block[FRAME_DATA_MAX];
static struct wire_in from_gate;

static int fail_at(const char *what, const struct place *p)
{
	return wire_fail(errno, "%s %.1000s", what, p->said);
}

/* Reads words and finds the place.  0, or -1 and *ret is what main() returns. */
static int find(char **words, struct words *w, struct place *p, const char *verb, int *ret)
{
	if (words_read(w, words) < 0) {
		*ret = wire_fail(EINVAL, "%s: options and one path", verb);
		return -1;
	}
	if (place_find(p, w, w->parents) < 0) {
		*ret = wire_fail(errno, "%s %.1000s", verb, w->said);
		return -1;
	}
	return 0;
}

static int fine(void)
{
	return wire_end(0, 0, false, false);
}

/* A regular file, looked at before it is opened: to open a device can do something. */
static int open_regular(const struct place *p)
{
	struct stat st;
	int fd;

	if (fstatat(p->folder, p->name, &st, p->fenced ? AT_SYMLINK_NOFOLLOW : 0) < 0)
		return -1;
	errno = S_ISDIR(st.st_mode) ? EISDIR : S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
	if (!S_ISREG(st.st_mode))
		return -1;
	fd = place_open(p, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		(void)close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

int verb_get(char **words)
{
	struct words w;
	struct place p;
	ssize_t n;
	int fd, ret;

	if (find(words, &w, &p, "get", &ret) < 0)
		return ret;
	fd = open_regular(&p);
	if (fd < 0)
		return fail_at("get", &p);
	while ((n = read(fd, block, sizeof(block))) > 0)
		if (wire_send(FRAME_STDOUT, block, (size_t)n) == WIRE_GONE)
			return 1;
	return n < 0 ? fail_at("read", &p) : fine();
}

/* A new file beside the one that it will replace; its name goes into name. */
static int open_temporary(const struct place *p, char name[40])
{
	for (int tries = 0; tries < 16; tries++) {
		uint64_t r = 0;
		int fd;

		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return -1;
		(void)snprintf(name, 40, ".sallyport-%016llx", (unsigned long long)r);
		fd = openat(p->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

static int write_block(int fd, size_t length)
{
	for (size_t at = 0; at < length;) {
		ssize_t n = write(fd, block + at, length - at);

		if (n < 0 && errno != EINTR)
			return -1;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* What comes on stdin goes into fd.  0, -1 with errno, or WIRE_GONE. */
static int receive(int fd)
{
	int n;

	while ((n = wire_octets(&from_gate, block, sizeof(block))) > 0)
		if (write_block(fd, (size_t)n) < 0)
			return -1;
	return n;
}

static int refuse_folder(const struct place *p)
{
	struct stat st;

	if (fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return -1;
	}
	return 0;
}

int verb_put(char **words)
{
	char temporary[40];
	struct words w;
	struct place p;
	int fd, ret, done;

	if (find(words, &w, &p, "put", &ret) < 0)
		return ret;
	fd = refuse_folder(&p) < 0 ? -1 : open_temporary(&p, temporary);
	if (fd < 0)
		return fail_at("put", &p);
	done = receive(fd);
	if (done == 0 && fchmod(fd, w.mode) < 0)
		done = -1;
	if (close(fd) < 0 && done == 0)
		done = -1;
	if (done == 0 && renameat(p.folder, temporary, p.folder, p.name) < 0)
		done = -1;
	if (done != 0) {
		int sys = errno;

		(void)unlinkat(p.folder, temporary, 0);
		errno = sys;
	}
	return done == WIRE_GONE ? 1 : done < 0 ? fail_at("put", &p) : fine();
}

static const char *type_name(mode_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	if (S_ISLNK(mode))
		return "link";
	if (S_ISFIFO(mode))
		return "fifo";
	return S_ISSOCK(mode) ? "socket" : "device";
}

/* The line of one entry.  Its length, 0 if it is not there any more. */
static size_t describe(int folder, const char *name, char line[FRAME_LINE_MAX])
{
	char encoded[NAME_ENCODED(NAME_OCTETS_MAX)], target[NAME_ENCODED(4096)], link[4096];
	struct stat st;
	ssize_t length;
	int n;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	n = snprintf(
		line, FRAME_LINE_MAX,
		"{\"name\":\"%s\",\"type\":\"%s\",\"size\":%lld,\"mode\":\"%04o\",\"mtime\":%lld",
		name_encode(encoded, sizeof(encoded), name), type_name(st.st_mode),
		(long long)st.st_size, (unsigned)st.st_mode & 07777, (long long)st.st_mtime);
	length = S_ISLNK(st.st_mode) ? readlinkat(folder, name, link, sizeof(link) - 1) : -1;
	if (length >= 0) {
		link[length] = '\0';
		n += snprintf(line + n, FRAME_LINE_MAX - (size_t)n, ",\"target\":\"%s\"",
			      name_encode(target, sizeof(target), link));
	}
	n += snprintf(line + n, FRAME_LINE_MAX - (size_t)n, "}\n");
	return (size_t)n;
}

int verb_stat(char **words)
{
	static char line[FRAME_LINE_MAX];
	struct words w;
	struct place p;
	size_t n;
	int ret;

	if (find(words, &w, &p, "stat", &ret) < 0)
		return ret;
	n = describe(p.folder, p.name, line);
	if (!n)
		return fail_at("stat", &p);
	return wire_send(FRAME_STDOUT, line, n) == WIRE_GONE ? 1 : fine();
}

/* Entries go out by the frame, as many as fit into one. */
static int send_list(DIR *dir, long long most)
{
	size_t have = 0;
	struct dirent *e;
	bool more = false;

	while ((errno = 0, e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (most-- == 0) {
			more = true;
			break;
		}
		have += describe(dirfd(dir), e->d_name, (char *)block + have);
		if (have + FRAME_LINE_MAX > sizeof(block)) {
			if (wire_send(FRAME_STDOUT, block, have) == WIRE_GONE)
				return 1;
			have = 0;
		}
	}
	if (!more && errno)
		return wire_fail(errno, "list");
	if (have && wire_send(FRAME_STDOUT, block, have) == WIRE_GONE)
		return 1;
	return wire_end(0, 0, false, more);
}

int verb_list(char **words)
{
	struct words w;
	struct place p;
	DIR *dir;
	int fd, ret;

	if (find(words, &w, &p, "list", &ret) < 0)
		return ret;
	fd = place_open(&p, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return fail_at("list", &p);
	ret = send_list(dir, w.most);
	(void)closedir(dir);
	return ret;
}

int verb_mkdir(char **words)
{
	struct words w;
	struct place p;
	struct stat st;
	int ret;

	if (find(words, &w, &p, "mkdir", &ret) < 0)
		return ret;
	if (mkdirat(p.folder, p.name, 0755) == 0)
		return fine();
	if (errno == EEXIST && w.parents &&
	    fstatat(p.folder, p.name, &st, p.fenced ? AT_SYMLINK_NOFOLLOW : 0) == 0) {
		if (S_ISDIR(st.st_mode))
			return fine();
		errno = ENOTDIR;
	}
	return fail_at("mkdir", &p);
}
