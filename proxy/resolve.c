#include "proxy/resolve.h"

#include "gate/base/auto.h"
#include "gate/base/span.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINKS_MAX  40 /* the kernel's own limit */
#define CHAIN_MAX  64
#define STEPS_MAX  1024  /* the resolver serves one at a time, and others wait meanwhile */
#define WINDS_MAX  256   /* steps of a way with links, which can be as long as somebody likes */
#define ANSWER_MAX 60000 /* bytes; fits into one frame with room to spare */
#define TODO_MAX   65536 /* bytes of path that links may leave to be walked */

/* One walk.  at is where it stands: a descriptor, and its path without links. */
struct walk {
	int at;
	char real[PATH_MAX];
	struct buf todo; /* components that were not walked yet */
	unsigned links;
	char *chain[CHAIN_MAX];
	size_t chain_count;
	struct stat st;
	bool movable; /* see resolve.h */
	unsigned steps;
	const char *kind;
	const char *why; /* for "unknown" */
};

static void unknown(struct walk *w, const char *why)
{
	w->kind = "unknown";
	w->why = why;
}

static void unknown_errno(struct walk *w)
{
	unknown(w,
		errno == EACCES || errno == EPERM ? "permission denied" : strerrordesc_np(errno));
}

static void move_to(struct walk *w, int fd)
{
	if (w->at >= 0)
		close(w->at);
	w->at = fd;
}

/* Back to the top, for the start and for absolute links. */
static bool to_root(struct walk *w)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &w->st) < 0) {
		unknown_errno(w);
		if (fd >= 0)
			close(fd);
		return false;
	}
	move_to(w, fd);
	w->real[0] = '\0'; /* so that "/name" can be appended */
	return true;
}

static bool append(struct walk *w, struct span name)
{
	size_t used = strlen(w->real);

	if (used + 1 + name.len >= sizeof(w->real)) {
		unknown(w, "the path is longer than a path can be");
		return false;
	}
	w->real[used] = '/';
	memcpy(w->real + used + 1, name.at, name.len);
	w->real[used + 1 + name.len] = '\0';
	return true;
}

static void note_in_chain(struct walk *w, struct span name)
{
	char *entry;

	if (w->chain_count == CHAIN_MAX ||
	    asprintf(&entry, "%s/%.*s", w->real, SPAN_FMT(name)) < 0) {
		unknown(w, "too many links");
		return;
	}
	w->chain[w->chain_count++] = entry;
}

/* The target takes the link's place in front of what is still to be walked. */
static bool put_in_front(struct walk *w, const char *target)
{
	struct buf todo;

	buf_init(&todo, TODO_MAX);
	buf_puts(&todo, target);
	buf_puts(&todo, "/");
	buf_put(&todo, buf_span(&w->todo).at, buf_len(&w->todo));
	if (buf_spent(&todo)) {
		buf_fini(&todo);
		unknown(w, "the links' targets are too long");
		return false;
	}
	buf_fini(&w->todo);
	w->todo = todo;
	return true;
}

/*
 * Links of /proc are no paths: they lead to open files and other roots, or
 * depend on who looks.  What this process sees there says nothing of the engine.
 */
static bool is_magic(const struct walk *w)
{
	struct statfs fs;

	return fstatfs(w->at, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

static bool follow(struct walk *w, int link, struct span name)
{
	char target[PATH_MAX];
	ssize_t len;

	w->links++;
	note_in_chain(w, name);
	if (w->links > LINKS_MAX)
		unknown(w, "too many links");
	else if (is_magic(w))
		unknown(w, "magic link");
	if (w->kind)
		return false;
	len = readlinkat(link, "", target, sizeof(target));
	if (len <= 0 || (size_t)len >= sizeof(target)) {
		unknown(w, "a link that cannot be read");
		return false;
	}
	target[len] = '\0';
	if (!put_in_front(w, target))
		return false;
	return target[0] != '/' || to_root(w);
}

static bool go_up(struct walk *w)
{
	int fd = openat(w->at, "..", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char *last = strrchr(w->real, '/');

	if (fd < 0 || fstat(fd, &w->st) < 0) {
		unknown_errno(w);
		if (fd >= 0)
			close(fd);
		return false;
	}
	move_to(w, fd);
	if (last)
		*last = '\0';
	return true;
}

/* What is left is appended as it is written; it must not climb out of what is not there. */
static void absent(struct walk *w, struct span name)
{
	struct span rest, part;

	if (!append(w, name))
		return;
	rest = buf_span(&w->todo);
	while (rest.len) {
		span_cut(&rest, '/', &part);
		if (part.len == 0 || span_is(part, "."))
			continue;
		if (span_is(part, "..")) {
			unknown(w, "'..' behind something that does not exist");
			return;
		}
		if (!append(w, part))
			return;
	}
	w->kind = "absent";
}

/* Root could do anything anyway; so can, where the gate was started without root, its one user. */
static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == getauxval(AT_EUID);
}

/* Whether somebody else may put another entry into the place of this one. */
static bool can_be_moved(const struct walk *w, const struct stat *entry)
{
	struct stat dir;
	bool open_to_others;

	if (fstat(w->at, &dir) < 0 || !is_trusted(dir.st_uid))
		return true;
	open_to_others = (dir.st_mode & S_IWOTH) || ((dir.st_mode & S_IWGRP) && dir.st_gid != 0);
	return open_to_others && !((dir.st_mode & S_ISVTX) && is_trusted(entry->st_uid));
}

/* name is NUL-terminated. */
static bool step(struct walk *w, struct span name)
{
	auto_fd int fd = -1;

	if (!S_ISDIR(w->st.st_mode)) {
		unknown(w, "something on the way is no directory");
		return false;
	}
	if (span_is(name, ".."))
		return go_up(w);
	fd = openat(w->at, name.at, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		absent(w, name);
		return false;
	}
	if (fd < 0 || fstat(fd, &w->st) < 0) {
		unknown_errno(w);
		return false;
	}
	w->movable = w->movable || can_be_moved(w, &w->st);
	if (S_ISLNK(w->st.st_mode)) {
		w->st.st_mode = S_IFDIR; /* of where the link stands, until it is followed */
		return follow(w, fd, name);
	}
	if (!append(w, name))
		return false;
	move_to(w, take_fd(fd));
	return true;
}

static const char *kind_of(mode_t mode)
{
	static const struct {
		mode_t type;
		const char *kind;
	} kinds[] = {
		{S_IFREG, "file"},  {S_IFDIR, "directory"}, {S_IFSOCK, "socket"},
		{S_IFBLK, "block"}, {S_IFCHR, "char"},      {S_IFIFO, "fifo"},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if ((mode & S_IFMT) == kinds[i].type)
			return kinds[i].kind;
	return "unknown";
}

static void walk_all(struct walk *w)
{
	while (!w->kind) {
		char text[NAME_MAX + 1];
		struct span rest = buf_span(&w->todo), name;

		while (rest.len && *rest.at == '/')
			rest = span_skip(rest, 1);
		if (!rest.len) {
			w->kind = kind_of(w->st.st_mode);
			return;
		}
		span_cut(&rest, '/', &name);
		if (name.len > NAME_MAX) {
			unknown(w, "a name on the way is too long");
			return;
		}
		/* A copy: following a link replaces what is to be walked. */
		memcpy(text, name.at, name.len);
		text[name.len] = '\0';
		buf_consume(&w->todo, buf_len(&w->todo) - rest.len);
		name.at = text;
		if (++w->steps > (w->links ? WINDS_MAX : STEPS_MAX))
			unknown(w, "the way is too long");
		else if (!span_is(name, ".") && !step(w, name))
			return;
	}
}

/* --- the answer --- */

static void put_text(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, ",\"%s\":", key);
	jv_write_str(out, span_of(value));
}

static void put_chain(struct buf *out, const struct walk *w)
{
	buf_puts(out, ",\"chain\":[");
	for (size_t i = 0; i < w->chain_count; i++) {
		jv_write_str(out, span_of(w->chain[i]));
		buf_puts(out, ",");
	}
	jv_write_str(out, span_of(w->real));
	buf_puts(out, "]}");
}

static void write_known(struct buf *out, const struct walk *w)
{
	buf_printf(out, "{\"kind\":\"%s\"", w->kind);
	put_text(out, "real", w->real);
	buf_printf(out, ",\"links\":%u,\"movable\":%s", w->links, w->movable ? "true" : "false");
	if (strcmp(w->kind, "absent") != 0)
		buf_printf(out, ",\"dev\":\"%u:%u\",\"ino\":%lld", major(w->st.st_dev),
			   minor(w->st.st_dev), (long long)w->st.st_ino);
	put_chain(out, w);
}

static void write_unknown(struct buf *out, const struct walk *w)
{
	buf_printf(out, "{\"kind\":\"unknown\",\"links\":%u", w->links);
	put_text(out, "why", w->why ? w->why : "it is of no known kind");
	buf_puts(out, "}");
}

/* JSON has no place for other bytes; a path that is changed is another path. */
static bool is_exact(const struct buf *out)
{
	return !buf_spent(out) && !memmem(buf_span(out).at, buf_len(out), "\xef\xbf\xbd", 3);
}

void resolve_path(const char *path, struct buf *ret)
{
	struct walk w = {.at = -1};
	struct buf out;

	buf_init(&out, ANSWER_MAX);
	buf_init(&w.todo, TODO_MAX);
	buf_puts(&w.todo, path);
	if (path[0] != '/')
		unknown(&w, "the path is not absolute");
	else if (strlen(path) >= PATH_MAX)
		unknown(&w, "the path is longer than a path can be");
	else if (to_root(&w))
		walk_all(&w);
	if (!w.real[0])
		strcpy(w.real, "/");
	if (strcmp(w.kind, "unknown") != 0) {
		write_known(&out, &w);
		if (!is_exact(&out)) {
			buf_clear(&out);
			unknown(&w, "the path is too long or not UTF-8 text");
		}
	}
	if (!buf_len(&out))
		write_unknown(&out, &w);
	buf_put(ret, buf_span(&out).at, buf_len(&out));
	for (size_t i = 0; i < w.chain_count; i++)
		free(w.chain[i]);
	buf_fini(&w.todo);
	buf_fini(&out);
	move_to(&w, -1);
}
