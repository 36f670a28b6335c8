/*
 * archive.c - files of a sandbox: tar in, tar out, one path removed. All of it through the fence.
 *
 * What is in memory of a sandbox is there while it runs, so only then it has files; without walls
 * they are in a folder of the keeper's.
 */
#include "gate/base/auto.h"
#include "gate/base/io.h"
#include "gate/keeper/fence.h"
#include "gate/keeper/state_priv.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK       65536
#define ENTRIES_MAX 100000
#define SPOOLED_MAX ((uint64_t)1 << 30) /* of all requests at once */

/* --- where it is --- */

/* The place of the container's files, for the fence; -1: answered. */
static int root_of(struct call *call, struct container *c)
{
	struct box *box;
	int fd = -1;

	pthread_mutex_lock(&call->k->lock);
	box = state_enter(c);
	if (box && c->plan.mode == BOX_CONFINED)
		fd = fcntl(box_root(box), F_DUPFD_CLOEXEC, 3);
	if (c->plan.mode == BOX_BARE && c->folder >= 0)
		fd = fcntl(c->folder, F_DUPFD_CLOEXEC, 3);
	if (box)
		state_leave(call->k, c);
	pthread_mutex_unlock(&call->k->lock);
	if (fd < 0)
		say(call, 409, "the sandbox does not run, and has no files then");
	return fd;
}

/* Its own /proc, /sys and /dev are no files of anybody's. */
static bool is_kernels(const char *path)
{
	static const char *const tops[] = {"/proc", "/sys", "/dev"};

	for (size_t i = 0; i < sizeof(tops) / sizeof(*tops); i++) {
		size_t n = strlen(tops[i]);

		if (!strncmp(path, tops[i], n) && (!path[n] || path[n] == '/'))
			return true;
	}
	return false;
}

/* The path that is asked for, absolute and in its plain form; NULL: answered. */
static const char *path_of(struct call *call)
{
	const char *given = httpd_query(call->r, "path");
	size_t len = given ? strlen(given) : 0, n = 0;
	char *clean = arena_take(call->r->arena, len + 2);
	struct span rest = {given, len}, step;

	if (!len || len >= FENCE_PATH_MAX || !clean) {
		say(call, 400, "path: a path of at most %d bytes is expected", FENCE_PATH_MAX);
		return NULL;
	}
	while (rest.len) {
		span_cut(&rest, '/', &step);
		if (!step.len || span_is(step, "."))
			continue;
		if (span_is(step, "..")) {
			say(call, 400, "path: '..' is not taken");
			return NULL;
		}
		clean[n++] = '/';
		memcpy(clean + n, step.at, step.len);
		n += step.len;
	}
	if (!n)
		clean[n++] = '/';
	clean[n] = '\0';
	if (!is_kernels(clean))
		return clean;
	say(call, 403, "what is below /proc, /sys and /dev is no file of the sandbox's");
	return NULL;
}

static int status_of(const struct err *err)
{
	static const struct {
		int sys, status;
	} rows[] = {
		{ENOENT, 404}, {EEXIST, 409}, {ENOTEMPTY, 409}, {EXDEV, 403},
		{ELOOP, 403},  {EACCES, 403}, {EPERM, 403},     {EROFS, 403},
		{ENOSPC, 507}, {EDQUOT, 507}, {EFBIG, 507},     {ENOTDIR, 400},
	};

	if (err->kind == ERR_INPUT)
		return 400;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].sys == err->sys)
			return rows[i].status;
	return err->kind == ERR_LIMIT ? 413 : 500;
}

static void say_trouble(struct call *call, const struct err *err)
{
	const char *before = err->sys == ENOENT ? "Could not find the file in container: " : "";

	say(call, status_of(err), "%s%s", before, err->msg);
}

struct place_in {
	struct container *c;
	struct fence fence;
	const char *path;
};

static bool open_place(struct call *call, struct place_in *ret)
{
	ret->path = path_of(call);
	ret->c = ret->path ? call_container(call) : NULL;
	ret->fence = (struct fence){.root = ret->c ? root_of(call, ret->c) : -1};
	if (ret->fence.root >= 0)
		return true;
	if (ret->c)
		call_release(call, ret->c);
	return false;
}

static void close_place(struct call *call, const struct place_in *p)
{
	close(p->fence.root);
	call_release(call, p->c);
}

/* --- what it is --- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash[1] ? slash + 1 : "/";
}

static void encode64(struct span s, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < s.len; i += 3) {
		unsigned v = (unsigned char)s.at[i] << 16;
		size_t left = s.len - i;

		if (left > 1)
			v |= (unsigned)(unsigned char)s.at[i + 1] << 8;
		if (left > 2)
			v |= (unsigned char)s.at[i + 2];
		*out++ = digits[v >> 18];
		*out++ = digits[v >> 12 & 63];
		*out++ = left > 1 ? digits[v >> 6 & 63] : '=';
		*out++ = left > 2 ? digits[v & 63] : '=';
	}
	*out = '\0';
}

/* As Go's os.FileMode writes kinds. */
static int64_t go_mode(mode_t mode)
{
	int64_t kind = S_ISDIR(mode) ? INT64_C(1) << 31 : S_ISLNK(mode) ? INT64_C(1) << 27 : 0;

	return kind | (mode & 0777);
}

/* X-Docker-Container-Path-Stat. False: answered. */
static bool add_stat(struct call *call, const struct place_in *p, struct stat *st)
{
	struct arena *a = call->r->arena;
	char target[FENCE_TARGET_MAX], *header;
	struct jv doc = jv_object();
	struct err err = {0};
	struct buf text;

	if (fence_stat(&p->fence, p->path, st, target, &err) < 0) {
		say_trouble(call, &err);
		return false;
	}
	jv_set(a, &doc, "name", jv_string(base_of(p->path)));
	jv_set(a, &doc, "size", jv_int(st->st_size));
	jv_set(a, &doc, "mode", jv_int(go_mode(st->st_mode)));
	jv_set(a, &doc, "mtime",
	       jv_string(time_text(a, (uint64_t)st->st_mtim.tv_sec * 1000000000u +
					      (uint64_t)st->st_mtim.tv_nsec)));
	jv_set(a, &doc, "linkTarget",
	       jv_string(S_ISLNK(st->st_mode) ? keeper_text(a, target) : ""));
	buf_init(&text, 3 * FENCE_PATH_MAX + 4096);
	jv_write(&text, &doc);
	header = arena_take(a, (buf_len(&text) / 3 + 1) * 4 + 1);
	if (header && !buf_spent(&text)) {
		encode64(buf_span(&text), header);
		httpd_reply_header(call->r, "X-Docker-Container-Path-Stat", header);
	}
	buf_fini(&text);
	return true;
}

void route_archive_head(struct call *call)
{
	struct place_in p;
	struct stat st;

	if (!open_place(call, &p))
		return;
	if (add_stat(call, &p, &st))
		say_nothing(call, 200);
	close_place(call, &p);
}

void route_archive_delete(struct call *call)
{
	struct place_in p;
	struct err err = {0};

	if (!open_place(call, &p))
		return;
	if (fence_remove(&p.fence, p.path, query_true(call, "recursive"), &err) < 0)
		say_trouble(call, &err);
	else
		say_nothing(call, 204);
	close_place(call, &p);
}

/* --- out: an entry at a time, as it is taken --- */

struct todo {
	struct todo *next;
	char *path, *name; /* in the sandbox; in the archive */
};

struct sending {
	struct call *call;
	struct place_in place;
	struct archive *tar;
	struct buf out;
	struct todo *todo;
	size_t count;
	int fd; /* of the file that is sent now */
	int64_t left;
	bool over, broken;
};

static la_ssize_t on_written(struct archive *tar, void *arg, const void *bytes, size_t len)
{
	struct sending *s = arg;

	(void)tar;
	buf_put(&s->out, bytes, len);
	return buf_spent(&s->out) ? -1 : (la_ssize_t)len;
}

static void free_todo(struct todo *t)
{
	free(t->path);
	free(t->name);
	free(t);
}

static int push(struct sending *s, const char *folder, const char *name_of, const char *name,
		struct err *err)
{
	struct todo *t = calloc(1, sizeof(*t));
	const char *between = folder[strlen(folder) - 1] == '/' ? "" : "/";

	if (!t || s->count++ == ENTRIES_MAX ||
	    asprintf(&t->path, "%s%s%s", folder, *name ? between : "", name) < 0 ||
	    asprintf(&t->name, "%s%s%s", name_of, *name ? "/" : "", name) < 0) {
		free(t);
		return err_set(err, ERR_LIMIT, "there is too much in this folder");
	}
	t->next = s->todo;
	s->todo = t;
	return 0;
}

struct listing {
	struct sending *s;
	const struct todo *of;
};

static int on_entry(void *arg, const struct fence_entry *e, struct err *err)
{
	const struct listing *l = arg;

	/* Neither sockets nor pipes nor devices go into an archive of files. */
	if (!S_ISREG(e->stat.st_mode) && !S_ISDIR(e->stat.st_mode) && !S_ISLNK(e->stat.st_mode))
		return 0;
	return push(l->s, l->of->path, l->of->name, e->name, err);
}

static int write_head(struct sending *s, const struct todo *t, const struct stat *st,
		      const char *target, struct err *err)
{
	struct archive_entry *e = archive_entry_new();
	int rc;

	if (!e)
		return err_set(err, ERR_LIMIT, "no memory");
	archive_entry_copy_pathname(e, t->name);
	archive_entry_set_mode(e, (st->st_mode & S_IFMT) | (st->st_mode & 0777));
	archive_entry_set_size(e, S_ISREG(st->st_mode) ? st->st_size : 0);
	archive_entry_set_mtime(e, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	archive_entry_set_uid(e, st->st_uid == geteuid() ? s->place.c->plan.uid : 65534);
	archive_entry_set_gid(e, st->st_gid == getegid() ? s->place.c->plan.gid : 65534);
	if (S_ISLNK(st->st_mode))
		archive_entry_copy_symlink(e, target);
	rc = archive_write_header(s->tar, e);
	archive_entry_free(e);
	return rc < ARCHIVE_WARN ? err_set(err, ERR_SYSTEM, "write the archive") : 0;
}

static int open_file(struct sending *s, const struct todo *t, struct stat *st, struct err *err)
{
	s->fd = fence_open(&s->place.fence, t->path, O_RDONLY, 0, err);
	if (s->fd < 0)
		return -1;
	if (fstat(s->fd, st) < 0)
		return err_sys(err, "look at %s", t->path);
	s->left = st->st_size;
	return 0;
}

/* The next entry's head; of a folder also what is in it. */
static int begin_entry(struct sending *s, struct err *err)
{
	struct todo *t = s->todo;
	struct listing l = {s, t};
	char target[FENCE_TARGET_MAX] = "";
	struct stat st;
	int rc;

	s->todo = t->next;
	rc = fence_stat(&s->place.fence, t->path, &st, target, err);
	if (rc == 0 && S_ISREG(st.st_mode))
		rc = open_file(s, t, &st, err);
	if (rc == 0)
		rc = write_head(s, t, &st, target, err);
	if (rc == 0 && S_ISDIR(st.st_mode))
		rc = fence_list(&s->place.fence, t->path, ENTRIES_MAX, on_entry, &l, err);
	free_todo(t);
	return rc;
}

/* Of a file that has become shorter meanwhile zeros are sent, as its head has said its length. */
static int go_on_file(struct sending *s, struct err *err)
{
	char bytes[BLOCK] = {0};
	size_t want = s->left < BLOCK ? (size_t)s->left : BLOCK;
	ssize_t n = want ? read(s->fd, bytes, want) : 0;

	if (n < 0)
		return err_sys(err, "read a file");
	if (n == 0)
		n = (ssize_t)want;
	if (n && archive_write_data(s->tar, bytes, (size_t)n) != n)
		return err_set(err, ERR_SYSTEM, "write the archive");
	s->left -= n;
	if (s->left == 0) {
		close(s->fd);
		s->fd = -1;
	}
	return 0;
}

static int step(struct sending *s, struct err *err)
{
	if (s->fd >= 0)
		return go_on_file(s, err);
	if (s->todo)
		return begin_entry(s, err);
	s->over = true;
	return archive_write_close(s->tar) == ARCHIVE_OK
		       ? 0
		       : err_set(err, ERR_SYSTEM, "write the archive");
}

static ssize_t more_of_archive(struct httpd_request *r, char *at, size_t room)
{
	struct sending *s = call_of(r)->user;
	struct err err = {0};
	struct span have;

	while (!buf_len(&s->out) && !s->over && !s->broken)
		s->broken = step(s, &err) < 0;
	if (s->broken) /* too late to say why: the archive has no end */
		return -1;
	have = buf_span(&s->out);
	if (have.len > room)
		have.len = room;
	memcpy(at, have.at, have.len);
	buf_consume(&s->out, have.len);
	return (ssize_t)have.len;
}

static void end_sending(struct call *call)
{
	struct sending *s = call->user;

	while (s->todo) {
		struct todo *t = s->todo;

		s->todo = t->next;
		free_todo(t);
	}
	archive_write_free(s->tar);
	if (s->fd >= 0)
		close(s->fd);
	buf_fini(&s->out);
	close_place(call, &s->place);
}

static int prepare_tar(struct sending *s)
{
	s->tar = archive_write_new();
	return s->tar && archive_write_set_format_pax_restricted(s->tar) == ARCHIVE_OK &&
			       archive_write_set_bytes_per_block(s->tar, 0) == ARCHIVE_OK &&
			       archive_write_open(s->tar, s, NULL, on_written, NULL) == ARCHIVE_OK
		       ? 0
		       : -1;
}

void route_archive_get(struct call *call)
{
	struct sending *s = arena_take(call->r->arena, sizeof(*s));
	struct err err = {0};
	struct stat st;

	if (!s) {
		say(call, 503, "no memory");
		return;
	}
	*s = (struct sending){.call = call, .fd = -1};
	if (!open_place(call, &s->place))
		return;
	buf_init(&s->out, (size_t)1 << 20);
	call->user = s;
	call->user_done = end_sending;
	if (!add_stat(call, &s->place, &st))
		return;
	if (prepare_tar(s) < 0 || push(s, s->place.path, base_of(s->place.path), "", &err) < 0)
		say(call, 503, "no memory");
	else
		httpd_reply_stream(call->r, 200, "application/x-tar", -1, more_of_archive);
}

/* --- in: spooled, then read --- */

struct taking {
	int fd;
	uint64_t bytes;
	struct err err;
};

static int make_spool(struct call *call)
{
	char id[KEEPER_ID_LEN + 1], name[KEEPER_ID_LEN + 8];
	int fd;

	state_id(id);
	snprintf(name, sizeof(name), "spool-%s", id);
	fd = openat(call->k->conf->state, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlinkat(call->k->conf->state, name, 0);
	return fd;
}

static void end_taking(struct call *call)
{
	struct taking *t = call->user;

	if (t->fd >= 0)
		close(t->fd);
	pthread_mutex_lock(&call->k->lock);
	call->k->spooled -= t->bytes;
	pthread_mutex_unlock(&call->k->lock);
}

void archive_begin(struct call *call)
{
	struct taking *t = arena_take(call->r->arena, sizeof(*t));

	if (!t) {
		say(call, 503, "no memory");
		return;
	}
	*t = (struct taking){.fd = make_spool(call)};
	call->user = t;
	call->user_done = end_taking;
	if (t->fd < 0)
		say(call, 507, "no room for the archive: %s", strerror(errno));
}

bool archive_piece(struct call *call, struct span piece)
{
	struct taking *t = call->user;
	struct err err = {0};
	bool room;

	pthread_mutex_lock(&call->k->lock);
	room = call->k->spooled + piece.len <= SPOOLED_MAX;
	if (room) {
		call->k->spooled += piece.len;
		t->bytes += piece.len;
	}
	pthread_mutex_unlock(&call->k->lock);
	if (!room)
		say(call, 503, "more archives are being taken than there is room for");
	else if (io_write_all(t->fd, piece.at, piece.len, &err) < 0)
		say(call, 507, "no room for the archive: %s", err.msg);
	return !httpd_answered(call->r);
}

/* "./a/b" below the path; NULL: it is none. */
static char *target_of(const char *folder, const char *name)
{
	char *path;

	while (name[0] == '.' && name[1] == '/')
		name += 2;
	if (!*name || !strcmp(name, "."))
		return strdup(folder);
	if (*name == '/' || strlen(name) >= FENCE_PATH_MAX ||
	    asprintf(&path, "%s/%s", folder[1] ? folder : "", name) < 0)
		return NULL;
	while (path[1] && path[strlen(path) - 1] == '/')
		path[strlen(path) - 1] = '\0';
	return path;
}

static int copy_data(struct archive *tar, int fd, struct err *err)
{
	char bytes[BLOCK];
	la_ssize_t n;

	while ((n = archive_read_data(tar, bytes, sizeof(bytes))) > 0)
		if (io_write_all(fd, bytes, (size_t)n, err) < 0)
			return -1;
	return n < 0 ? err_set(err, ERR_INPUT, "the archive is damaged") : 0;
}

static int take_file(const struct fence *f, const char *path, struct archive *tar,
		     struct archive_entry *e, struct err *err)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = archive_entry_mtime(e), .tv_nsec = archive_entry_mtime_nsec(e)}};
	char name[FENCE_NAME_MAX];
	auto_fd int folder = -1;
	int fd = fence_make(f, path, archive_entry_perm(e) & 0777, &folder, name, err), rc;

	if (fd < 0)
		return -1;
	rc = copy_data(tar, fd, err);
	futimens(fd, times);
	if (close(fd) < 0 && rc == 0)
		rc = err_sys(err, "write %s", path);
	if (rc == 0)
		return fence_keep(f, folder, name, path, err);
	unlinkat(folder, name, 0);
	return -1;
}

static int take_link(const struct fence *f, const char *path, const char *text, struct err *err)
{
	struct err none = {0};

	if (fence_symlink(f, text, path, &none) == 0)
		return 0;
	if (none.sys != EEXIST) {
		*err = none;
		return -1;
	}
	return fence_remove(f, path, false, err) < 0 ? -1 : fence_symlink(f, text, path, err);
}

static int take_entry(const struct fence *f, const char *folder, const char *path,
		      struct archive *tar, struct archive_entry *e, struct err *err)
{
	if (is_kernels(path))
		return err_set(err, ERR_INPUT, "%.200s is no file of the sandbox's", path);
	if (archive_entry_hardlink(e))
		return err_set(err, ERR_INPUT, "%.200s: hard links are not kept", path);
	switch (archive_entry_filetype(e)) {
	case AE_IFREG:
		return take_file(f, path, tar, e, err);
	case AE_IFDIR:
		return strcmp(path, folder)
			       ? fence_mkdir(f, path, archive_entry_perm(e) & 0777, true, err)
			       : 0;
	case AE_IFLNK:
		return take_link(f, path, archive_entry_symlink(e) ? archive_entry_symlink(e) : "",
				 err);
	default:
		return err_set(err, ERR_INPUT, "%.200s is neither file, folder nor link", path);
	}
}

/* Archives need not hold the folders that their files are in. */
static int make_parent(const struct fence *f, const char *folder, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *parent;
	int rc;

	if (!slash || strlen(folder) >= (size_t)(slash - path))
		return 0;
	parent = strndup(path, (size_t)(slash - path));
	if (!parent)
		return err_set(err, ERR_LIMIT, "no memory");
	rc = fence_mkdir(f, parent, 0755, true, err);
	free(parent);
	return rc;
}

static int take_one(const struct fence *f, const char *folder, struct archive *tar,
		    struct archive_entry *e, struct err *err)
{
	const char *name = archive_entry_pathname(e);
	char *path = name ? target_of(folder, name) : NULL;
	int rc;

	if (!path)
		return err_set(err, ERR_INPUT, "an entry of the archive has no name that is taken");
	rc = make_parent(f, folder, path, err);
	if (rc == 0)
		rc = take_entry(f, folder, path, tar, e, err);
	free(path);
	return rc;
}

static int take_all(const struct fence *f, const char *folder, struct archive *tar, struct err *err)
{
	struct archive_entry *e;
	size_t count = 0;
	int rc;

	while ((rc = archive_read_next_header(tar, &e)) == ARCHIVE_OK || rc == ARCHIVE_WARN) {
		if (count++ == ENTRIES_MAX)
			return err_set(err, ERR_LIMIT, "the archive has too many entries");
		if (take_one(f, folder, tar, e, err) < 0)
			return -1;
	}
	return rc == ARCHIVE_EOF ? 0 : err_set(err, ERR_INPUT, "the archive is damaged");
}

static int take_archive(const struct place_in *p, int spool, struct err *err)
{
	struct archive *tar = archive_read_new();
	struct stat st;
	int rc = -1;

	if (fence_stat_followed(&p->fence, p->path, &st, err) < 0)
		rc = -1;
	else if (!S_ISDIR(st.st_mode))
		err_set(err, ERR_INPUT, "%s is not a directory", p->path);
	else if (!tar || archive_read_support_format_tar(tar) != ARCHIVE_OK ||
		 lseek(spool, 0, SEEK_SET) < 0 ||
		 archive_read_open_fd(tar, spool, BLOCK) != ARCHIVE_OK)
		err_set(err, ERR_INPUT, "this is no archive");
	else
		rc = take_all(&p->fence, p->path, tar, err);
	archive_read_free(tar);
	return rc;
}

void route_archive_put(struct call *call)
{
	struct taking *t = call->user;
	struct err err = {0};
	struct place_in p;

	if (query_true(call, "copyUIDGID")) {
		say(call, 400, "copyUIDGID: all files of a sandbox are its user's");
		return;
	}
	if (!open_place(call, &p))
		return;
	if (take_archive(&p, t->fd, &err) < 0)
		say_trouble(call, &err);
	else
		say_nothing(call, 200);
	close_place(call, &p);
}
