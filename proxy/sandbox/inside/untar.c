#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proxy/sandbox/inside/tar.h"
#include "proxy/sandbox/inside/walk.h"

/* One member, by its head and what stood before it. */
struct member {
	char name[TAR_PATH_MAX], link[TAR_PATH_MAX];
	char name_before[TAR_PATH_MAX], link_before[TAR_PATH_MAX]; /* "": the head says */
	long long size, size_before;                               /* -1: the head says */
	mode_t mode;
	time_t mtime;
	char type;
};

static struct member m;
static char block[65536];

unsigned tar_sum(const struct tar_head *h)
{
	const unsigned char *octets = (const unsigned char *)h;
	unsigned sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++)
		sum += i >= offsetof(struct tar_head, sum) && i < offsetof(struct tar_head, type)
			       ? ' '
			       : octets[i];
	return sum;
}

static int malformed(void)
{
	errno = EPROTO;
	return -1;
}

/* A field in octal, or GNU's in base 256.  -1: neither. */
static long long number(const char *field, size_t size)
{
	long long n = 0;
	size_t i = 0;

	if ((unsigned char)field[0] == 0x80) {
		for (i = size - 8; i < size; i++)
			n = n << 8 | (unsigned char)field[i];
		return n;
	}
	while (i < size && field[i] == ' ')
		i++;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
		n = n << 3 | (field[i] - '0');
	return i == size || field[i] == '\0' || field[i] == ' ' ? n : -1;
}

static int skip(const struct tar_source *from, long long size)
{
	while (size > 0) {
		size_t n = size < (long long)sizeof(block) ? (size_t)size : sizeof(block);
		int got = from->read(from->ctx, block, n);

		if (got)
			return got;
		size -= (long long)n;
	}
	return 0;
}

static long long padding(long long size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

/* One record "LENGTH KEY=VALUE\n" at text.  Its length, or -1. */
static long take_record(const char *text, size_t have)
{
	char *key, *value;
	long length = strtol(text, &key, 10);
	size_t room;

	if (length < 5 || (size_t)length > have || key >= text + length || *key != ' ' ||
	    text[length - 1] != '\n')
		return -1;
	key++;
	value = memchr(key, '=', (size_t)(text + length - key));
	if (!value)
		return -1;
	*value++ = '\0';
	room = (size_t)(text + length - 1 - value);
	if (strcmp(key, "path") == 0 || strcmp(key, "linkpath") == 0) {
		char *to = *key == 'p' ? m.name_before : m.link_before;

		if (room >= TAR_PATH_MAX || memchr(value, '\0', room))
			return -1;
		memcpy(to, value, room);
		to[room] = '\0';
	} else if (strcmp(key, "size") == 0) {
		m.size_before = strtoll(value, NULL, 10);
		if (m.size_before < 0)
			return -1;
	} else if (strncmp(key, "GNU.sparse.", 11) == 0)
		return -1;
	return length;
}

/* The records before a member; those of a whole archive ("g") say nothing that is needed here. */
static int read_pax(const struct tar_source *from, bool global)
{
	size_t size = (size_t)m.size, at = 0;
	int got;

	if (m.size > TAR_PAX_MAX - 1)
		return malformed();
	got = from->read(from->ctx, block, size);
	block[size] = '\0';
	while (!got && !global && at < size) {
		long length = take_record(block + at, size - at);

		if (length < 0)
			return malformed();
		at += (size_t)length;
	}
	return got ? got : skip(from, padding((long long)size));
}

/* GNU's way to say a long name. */
static int read_long(const struct tar_source *from, char to[TAR_PATH_MAX])
{
	long long size = m.size;
	int got;

	if (size >= TAR_PATH_MAX)
		return malformed();
	got = from->read(from->ctx, to, (size_t)size);
	to[size] = '\0';
	return got ? got : skip(from, padding(size));
}

/* 1: a member; 0: the end; -1. */
static int read_head(const struct tar_head *h)
{
	static const struct tar_head zero;
	bool ustar = memcmp(h->magic, "ustar\0", 6) == 0;
	long long mode = number(h->mode, sizeof(h->mode)),
		  mtime = number(h->mtime, sizeof(h->mtime));

	if (memcmp(h, &zero, sizeof(zero)) == 0)
		return 0;
	m.size = number(h->size, sizeof(h->size));
	if (number(h->sum, sizeof(h->sum)) != (long long)tar_sum(h) || m.size < 0 || mode < 0)
		return malformed();
	m.type = h->type;
	m.mode = (mode_t)mode & 0777;
	m.mtime = mtime < 0 ? 0 : (time_t)mtime;
	if (ustar && h->prefix[0])
		(void)snprintf(m.name, sizeof(m.name), "%.155s/%.100s", h->prefix, h->name);
	else
		(void)snprintf(m.name, sizeof(m.name), "%.100s", h->name);
	(void)snprintf(m.link, sizeof(m.link), "%.100s", h->link);
	return 1;
}

/* What stood before a member holds for it alone. */
static void apply_before(void)
{
	if (m.name_before[0])
		memcpy(m.name, m.name_before, sizeof(m.name));
	if (m.link_before[0])
		memcpy(m.link, m.link_before, sizeof(m.link));
	if (m.size_before >= 0)
		m.size = m.size_before;
	m.name_before[0] = m.link_before[0] = '\0';
	m.size_before = -1;
}

/* The folder that path is in, beneath folder, and the name there.  -1 with errno. */
static int enter(int folder, const char *path, char name[TAR_NAME_MAX + 1], bool make)
{
	static char way[TAR_PATH_MAX];
	size_t n = strlen(path);
	char *last;

	errno = EXDEV;
	if (path[0] == '/')
		return -1;
	memcpy(way, path, n + 1);
	while (n && way[n - 1] == '/')
		way[--n] = '\0';
	last = strrchr(way, '/');
	last = last ? last + 1 : way;
	if (strcmp(last, "..") == 0)
		return -1;
	errno = ENAMETOOLONG;
	if (strlen(last) > TAR_NAME_MAX)
		return -1;
	memcpy(name, *last ? last : ".", *last ? strlen(last) + 1 : 2);
	*last = '\0';
	return walk_to(folder, way, make, false);
}

static int unpack_folder(int folder, const char *name)
{
	struct stat st;

	if (strcmp(name, ".") == 0)
		return 0;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return 0;
	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return -1;
	return mkdirat(folder, name, m.mode | 0700);
}

static int copy(const struct tar_source *from, int fd)
{
	for (long long left = m.size; left > 0;) {
		size_t n = left < (long long)sizeof(block) ? (size_t)left : sizeof(block);
		int got = from->read(from->ctx, block, n);

		if (got)
			return got;
		for (size_t at = 0; at < n;) {
			ssize_t done = write(fd, block + at, n - at);

			if (done < 0 && errno != EINTR)
				return -1;
			at += done > 0 ? (size_t)done : 0;
		}
		left -= (long long)n;
	}
	return 0;
}

/* What was there is taken away first: nothing is written through a link of either kind. */
static int unpack_file(const struct tar_source *from, int folder, const char *name)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = m.mtime}};
	int fd, done;

	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return -1;
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	done = copy(from, fd);
	if (done == 0 && fchmod(fd, m.mode) < 0)
		done = -1;
	(void)futimens(fd, times);
	if (close(fd) < 0 && done == 0)
		done = -1;
	return done ? done : skip(from, padding(m.size));
}

/* A hard link to what is beneath the folder, too; a link's own file and never what it points to. */
static int unpack_hard(int top, int folder, const char *name)
{
	char other[TAR_NAME_MAX + 1];
	int from = enter(top, m.link, other, false), done, sys;

	if (from < 0)
		return -1;
	done = unlinkat(folder, name, 0) < 0 && errno != ENOENT
		       ? -1
		       : linkat(from, other, folder, name, 0);
	sys = errno;
	(void)close(from);
	errno = sys;
	return done;
}

static int unpack_link(int folder, const char *name)
{
	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return -1;
	return symlinkat(m.link, folder, name);
}

static int unpack_as(const struct tar_source *from, int top, int folder, const char *name)
{
	switch (m.type) {
	case '0':
	case '7':
	case '\0':
		return unpack_file(from, folder, name);
	case '5':
		return unpack_folder(folder, name);
	case '2':
		return unpack_link(folder, name);
	case '1':
		return unpack_hard(top, folder, name);
	}
	errno = EPERM;
	return -1;
}

static int unpack(const struct tar_source *from, int top)
{
	char name[TAR_NAME_MAX + 1];
	int folder, done, sys;

	apply_before();
	folder = enter(top, m.name, name, true);
	if (folder < 0)
		return -1;
	done = unpack_as(from, top, folder, name);
	sys = errno;
	(void)close(folder);
	errno = sys;
	return done;
}

int tar_unpack(int folder, const struct tar_source *from, const char **what)
{
	struct tar_head h;
	int got, is;

	m = (struct member){.size_before = -1};
	*what = m.name;
	for (;;) {
		got = from->read(from->ctx, &h, sizeof(h));
		if (got)
			return got;
		is = read_head(&h);
		if (is <= 0)
			return is;
		if (m.type == 'x' || m.type == 'g')
			got = read_pax(from, m.type == 'g');
		else if (m.type == 'L' || m.type == 'K')
			got = read_long(from, m.type == 'L' ? m.name_before : m.link_before);
		else
			got = unpack(from, folder);
		if (got)
			return got;
	}
}
