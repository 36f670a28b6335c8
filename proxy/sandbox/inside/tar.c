/* Folders as tar streams, in both directions. */
#include "proxy/sandbox/inside/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/sandbox/inside/names.h"
#include "proxy/sandbox/inside/place.h"
#include "proxy/sandbox/inside/verbs.h"
#include "proxy/sandbox/inside/wire.h"

#define DEPTH_MAX 256

/* The path of the member that is written, relative to where it began. */
struct packing {
	char path[TAR_PATH_MAX];
	size_t length;
};

static struct wire_in from_gate;
static struct packing now;
static char room[FRAME_DATA_MAX];
static size_t used;

static int push(void)
{
	size_t n = used;

	used = 0;
	return n && wire_send(FRAME_STDOUT, room, n) == WIRE_GONE ? WIRE_GONE : 0;
}

static int add(const void *data, size_t size)
{
	const char *from = data;

	while (size) {
		size_t n = size < sizeof(room) - used ? size : sizeof(room) - used;

		if (from)
			memcpy(room + used, from, n);
		else
			memset(room + used, 0, n);
		used += n;
		size -= n;
		from += from ? n : 0;
		if (used == sizeof(room) && push() == WIRE_GONE)
			return WIRE_GONE;
	}
	return 0;
}

static int add_padding(unsigned long long size)
{
	return add(NULL, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

/* A number in octal of width digits, NUL behind them; what does not fit is 0 and stands in a
 * record. */
static void octal(char *field, int width, unsigned long long n)
{
	if (n >> (3 * width))
		n = 0;
	for (field[width] = '\0'; width--; n >>= 3)
		field[width] = (char)('0' + (n & 7));
}

static int add_head(const char *name, const char *link, char type, const struct stat *st,
		    long long size)
{
	struct tar_head h = {.type = type};

	memcpy(h.name, name, strnlen(name, sizeof(h.name)));
	memcpy(h.link, link, strnlen(link, sizeof(h.link)));
	octal(h.mode, 7, st->st_mode & 07777);
	octal(h.uid, 7, st->st_uid);
	octal(h.gid, 7, st->st_gid);
	octal(h.size, 11, (unsigned long long)size);
	octal(h.mtime, 11, st->st_mtime < 0 ? 0 : (unsigned long long)st->st_mtime);
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	octal(h.sum, 6, tar_sum(&h));
	h.sum[7] = ' ';
	return add(&h, sizeof(h));
}

/* "LENGTH KEY=VALUE\n", its own length included. */
static size_t add_record(char *to, const char *key, const char *value)
{
	size_t body = strlen(key) + strlen(value) + 3, length = body + 1;

	for (size_t digits = 1, ten = 10; length >= ten || length < body + digits; ten *= 10)
		length = body + ++digits;
	return (size_t)sprintf(to, "%zu %s=%s\n", length, key, value);
}

static int add_member(const char *link, char type, const struct stat *st, long long size)
{
	static char records[3 * TAR_PATH_MAX];
	const struct stat plain = {.st_mode = 0644};
	char digits[24];
	size_t n = 0;

	if (strlen(now.path) > sizeof(((struct tar_head *)0)->name))
		n += add_record(records + n, "path", now.path);
	if (strlen(link) > sizeof(((struct tar_head *)0)->link))
		n += add_record(records + n, "linkpath", link);
	if (size >> 33) {
		(void)snprintf(digits, sizeof(digits), "%lld", size);
		n += add_record(records + n, "size", digits);
	}
	if (n && (add_head("././@PaxHeader", "", 'x', &plain, (long long)n) || add(records, n) ||
		  add_padding(n)))
		return WIRE_GONE;
	return add_head(now.path, link, type, st, size);
}

/* As many octets as its head said, whatever became of the file meanwhile. */
static int add_file(int folder, const char *name)
{
	static char block[65536];
	struct stat st;
	long long left;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
	    done;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)close(fd);
		return 0;
	}
	done = add_member("", '0', &st, st.st_size);
	for (left = st.st_size; left > 0 && !done;) {
		size_t most = left < (long long)sizeof(block) ? (size_t)left : sizeof(block);
		ssize_t n = read(fd, block, most);

		done = n > 0 ? add(block, (size_t)n) : add(NULL, most);
		left -= n > 0 ? n : (long long)most;
	}
	(void)close(fd);
	return done ? done : add_padding((unsigned long long)st.st_size);
}

static int add_link(int folder, const char *name, const struct stat *st)
{
	static char target[TAR_PATH_MAX];
	ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);

	if (n < 0)
		return errno == ENOENT ? 0 : -1;
	target[n] = '\0';
	return add_member(target, '2', st, 0);
}

static int add_folder(int folder, const char *name, int depth);

static int add_entry(int folder, const char *name, int depth)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	if (S_ISDIR(st.st_mode)) {
		memcpy(now.path + now.length++, "/", 2);
		if (add_member("", '5', &st, 0))
			return WIRE_GONE;
		return add_folder(folder, name, depth + 1);
	}
	if (S_ISREG(st.st_mode))
		return add_file(folder, name);
	return S_ISLNK(st.st_mode) ? add_link(folder, name, &st)
				   : 0; /* sockets and the like stay */
}

/* All of a folder; now.path is its own, with a "/" behind it. */
static int add_all(DIR *dir, int depth)
{
	size_t length = now.length;
	struct dirent *e;
	int done = 0;

	while (!done && (errno = 0, e = readdir(dir))) {
		size_t n = strlen(e->d_name);

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		errno = ENAMETOOLONG;
		if (length + n + 2 >= sizeof(now.path))
			return -1;
		memcpy(now.path + length, e->d_name, n + 1);
		now.length = length + n;
		done = add_entry(dirfd(dir), e->d_name, depth);
		if (!done) {
			now.length = length;
			now.path[length] = '\0';
		}
	}
	return done ? done : errno ? -1 : 0;
}

static int add_folder(int folder, const char *name, int depth)
{
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
	    done, sys;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return -1;
	errno = ELOOP;
	done = depth > DEPTH_MAX ? -1 : add_all(dir, depth);
	sys = errno;
	(void)closedir(dir);
	errno = sys;
	return done;
}

/* A folder's content, or the one file. */
static int pack(const struct place *p)
{
	struct stat st;

	if (fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (S_ISDIR(st.st_mode))
		return add_folder(p->folder, p->name, 0);
	(void)snprintf(now.path, sizeof(now.path), "%s", p->name);
	now.length = strlen(now.path);
	return add_entry(p->folder, p->name, 0);
}

static int find(char **words, struct place *p, const char *verb, int *ret)
{
	struct words w;

	if (words_read(&w, words) < 0)
		*ret = wire_fail(EINVAL, "%s: one path", verb);
	else if (place_find(p, &w, false) < 0)
		*ret = wire_fail(errno, "%s %.1000s", verb, w.said);
	else
		return 0;
	return -1;
}

int verb_tar(char **words)
{
	char name[NAME_ENCODED(1000)];
	struct place p;
	int ret;

	if (find(words, &p, "tar", &ret) < 0)
		return ret;
	ret = pack(&p);
	if (ret == 0 && (add(NULL, (size_t)2 * TAR_BLOCK) || push()))
		ret = WIRE_GONE;
	if (ret == -1)
		return wire_fail(errno, "tar %.800s: %s", p.said,
				 name_encode(name, sizeof(name), now.path));
	return ret ? 1 : wire_end(0, 0, false, false);
}

static int read_stdin(void *ctx, void *buffer, size_t size)
{
	char *to = buffer;

	(void)ctx;
	while (size) {
		int n = wire_octets(&from_gate, to, size);

		if (n < 0)
			return n;
		if (n == 0) { /* it ends where a tar does not */
			errno = EPROTO;
			return -1;
		}
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

/* What follows a tar's end is padding of whoever wrote it. */
static int drain(void)
{
	int n;

	while ((n = wire_octets(&from_gate, room, sizeof(room))) > 0)
		;
	return n;
}

int verb_untar(char **words)
{
	const struct tar_source from = {.read = read_stdin};
	char name[NAME_ENCODED(600)];
	const char *what;
	struct place p;
	int folder, ret;

	if (find(words, &p, "untar", &ret) < 0)
		return ret;
	folder = place_open(&p, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	if (folder < 0)
		return wire_fail(errno, "untar %.1000s", p.said);
	ret = tar_unpack(folder, &from, &what);
	if (ret == 0)
		ret = drain();
	if (ret == -1)
		return wire_fail(errno, "untar %.800s: %s", p.said,
				 name_encode(name, sizeof(name), what));
	return ret ? 1 : wire_end(0, 0, false, false);
}
