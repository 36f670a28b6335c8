#include "gate/admin_sockets.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/log.h"
#include "gate/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_MS 60000 /* the clock may be set, so a lifetime is looked at this often */

struct more {             /* besides what workers need */
	uint64_t ends_ms; /* on clock_boot_ms(): a clock that is set back makes nothing live longer
			   */
	dev_t dev;
	ino_t ino;
};

struct admin_sockets {
	uid_t starter;
	uint64_t last_id;
	size_t count;
	struct runtime_listener list[RUNTIME_MAX];
	struct more more[RUNTIME_MAX];
};

struct admin_sockets *admin_sockets_create(uid_t starter)
{
	struct admin_sockets *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->starter = starter;
	return s;
}

void admin_sockets_destroy(struct admin_sockets *s)
{
	for (size_t i = 0; s && i < s->count; i++)
		close(s->list[i].fd);
	free(s);
}

const struct runtime_listener *admin_sockets_at(const struct admin_sockets *s, size_t i)
{
	return s && i < s->count ? &s->list[i] : NULL;
}

size_t admin_sockets_count(const struct admin_sockets *s)
{
	return s ? s->count : 0;
}

const struct runtime_listener *admin_sockets_all(const struct admin_sockets *s)
{
	return s ? s->list : NULL;
}

/* --- the fence --- */

static int open_step(int from, const char *step, uint64_t resolve)
{
	const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = resolve};

	return (int)syscall(SYS_openat2, from, step, &how, sizeof(how));
}

static int check_folder(const struct admin_sockets *s, int fd, const char *what, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at %s", what);
	if (st.st_uid != 0 && st.st_uid != s->starter)
		return err_set(err, ERR_CONFIG, "%s belongs to uid %u, not to root", what,
			       st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, ERR_CONFIG, "%s can be written by others (mode %04o)", what,
			       (unsigned)st.st_mode & 07777);
	return 0;
}

int admin_sockets_folder(const struct admin_sockets *s, const char *folder, struct err *err)
{
	auto_fd int fd = -1;

	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "make the folder of run-time listeners, %s", folder);
	fd = open_step(AT_FDCWD, folder, RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return err_sys(err, "open the folder of run-time listeners, %s", folder);
	return check_folder(s, fd, folder, err);
}

/* The part of the path that lies in the folder, or NULL. */
static const char *inside(const char *folder, const char *path)
{
	size_t len = strlen(folder);

	return len && strncmp(path, folder, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

/* The folder that the path's last step is in; *ret_file is that step. */
static enum admin_answer open_folder(const struct admin_sockets *s, const struct config *c,
				     const char *path, int *ret_fd, const char **ret_file,
				     struct err *err)
{
	const char *rest = inside(c->admin.sockets, path);
	auto_fd int fd = -1;

	if (!rest) {
		err_set(err, ERR_INPUT, "%s does not lie in %s", path, c->admin.sockets);
		return ANSWER_path_outside;
	}
	fd = open_step(AT_FDCWD, c->admin.sockets, RESOLVE_NO_MAGICLINKS);
	if (fd < 0 || check_folder(s, fd, c->admin.sockets, err) < 0) {
		if (fd < 0)
			err_sys(err, "open %s", c->admin.sockets);
		return ANSWER_path_unsafe;
	}
	for (const char *slash; (slash = strchr(rest, '/')); rest = slash + 1) {
		char step[RUNTIME_NAME_MAX + 1];
		int next;

		snprintf(step, sizeof(step), "%.*s", (int)(slash - rest), rest);
		next = open_step(fd, step,
				 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		if (next < 0) {
			err_sys(err, "open the folder '%s' of %s", step, path);
			return ANSWER_path_unsafe;
		}
		close(fd);
		fd = next;
		if (check_folder(s, fd, step, err) < 0)
			return ANSWER_path_unsafe;
	}
	*ret_fd = take_fd(fd);
	*ret_file = rest;
	return ADMIN_DONE;
}

/* --- what may be added --- */

static bool has_profile(const struct config *c, const char *name)
{
	for (size_t i = 0; c->profile_names && c->profile_names[i]; i++)
		if (strcmp(c->profile_names[i], name) == 0)
			return true;
	return false;
}

static enum admin_answer clashes(const struct admin_sockets *s, const struct config *c,
				 const struct runtime_row *row)
{
	for (size_t i = 0; i < c->proxy.listener_count; i++) {
		if (strcmp(c->proxy.listeners[i].name, row->name) == 0)
			return ANSWER_name_taken;
		if (strcmp(c->proxy.listeners[i].socket, row->path) == 0)
			return ANSWER_path_taken;
	}
	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->list[i].row.name, row->name) == 0)
			return ANSWER_name_taken;
		if (strcmp(s->list[i].row.path, row->path) == 0)
			return ANSWER_path_taken;
	}
	for (size_t i = 0; i < c->proxy.backend_count; i++)
		if (strcmp(c->proxy.backends[i].socket, row->path) == 0)
			return ANSWER_path_taken;
	return strcmp(c->status_socket, row->path) == 0 ? ANSWER_path_taken : ADMIN_DONE;
}

static enum admin_answer stands_in_the_way(int folder, const char *file, struct err *err)
{
	struct stat st;

	if (fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? ADMIN_DONE : ANSWER_path_unsafe;
	if (S_ISSOCK(st.st_mode))
		return ADMIN_DONE; /* a left-over, or listen_unix() finds somebody there */
	err_set(err, ERR_INPUT, "'%s' exists and is no socket", file);
	return ANSWER_path_taken;
}

static enum admin_answer try_fence(const struct admin_sockets *s, const struct config *c,
				   const struct runtime_row *row, struct err *err)
{
	const char *file = "";
	auto_fd int fd = -1;
	enum admin_answer wrong = open_folder(s, c, row->path, &fd, &file, err);

	return wrong ? wrong : stands_in_the_way(fd, file, err);
}

static bool lives_too_long(const struct config *c, const struct runtime_row *row)
{
	int64_t now = (int64_t)(clock_unix_ns() / 1000000000);

	return row->until <= now || row->until - now > (int64_t)c->admin.lifetime_s;
}

enum admin_answer admin_sockets_try(const struct admin_sockets *s, const struct config *c,
				    const struct runtime_row *row, bool restored, struct err *err)
{
	enum admin_answer wrong;

	if (!*c->admin.sockets)
		return ANSWER_not_configured;
	if (!runtime_is_row(row))
		return ANSWER_bad_argument;
	if (row->backend >= c->proxy.backend_count)
		return ANSWER_backend_missing;
	if (!restored && !has_profile(c, row->profile))
		return ANSWER_profile_missing;
	wrong = clashes(s, c, row);
	if (wrong)
		return wrong;
	if (s->count >= c->admin.listeners || s->count >= RUNTIME_MAX)
		return ANSWER_too_many;
	if (!restored && lives_too_long(c, row))
		return ANSWER_too_long;
	return try_fence(s, c, row, err);
}

/* --- making and removing --- */

/* In the folder itself, since a path could lead elsewhere by the time it is used. */
static int bind_in(int folder, const char *file, const struct listen_access *access,
		   struct runtime_listener *to, struct more *more, struct err *err)
{
	struct stat st;
	int rc;

	if (fchdir(folder) < 0)
		return err_sys(err, "go to the folder of '%s'", file);
	rc = listen_unix(file, access, &to->fd, err);
	if (chdir("/") < 0 && rc == 0)
		log_line("cannot go back to /: %s", strerror(errno));
	if (rc < 0)
		return -1;
	if (fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*more = (struct more){.dev = st.st_dev, .ino = st.st_ino};
	return 0;
}

static uint64_t boot_time_of(int64_t until)
{
	int64_t left = until - (int64_t)(clock_unix_ns() / 1000000000);

	return clock_boot_ms() + (left > 0 ? (uint64_t)left * 1000 : 0);
}

/* The admin process was started anew, and the listeners lived on. */
static const struct runtime_listener *find_same(const struct admin_sockets *s,
						const struct runtime_row *row)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->list[i].row.name, row->name) == 0 &&
		    strcmp(s->list[i].row.path, row->path) == 0)
			return &s->list[i];
	return NULL;
}

enum admin_answer admin_sockets_add(struct admin_sockets *s, const struct config *c,
				    struct runtime_row *row, bool restored,
				    const struct runtime_listener **ret, struct err *err)
{
	const struct runtime_listener *there = restored ? find_same(s, row) : NULL;
	struct listen_access access = {s->starter, row->gid, row->mode};
	struct runtime_listener *to = &s->list[s->count];
	enum admin_answer wrong;
	const char *file = "";
	auto_fd int folder = -1;

	*ret = there;
	if (there)
		return ADMIN_DONE;
	wrong = admin_sockets_try(s, c, row, restored, err);
	if (!wrong)
		wrong = open_folder(s, c, row->path, &folder, &file, err);
	if (wrong)
		return wrong;
	if (bind_in(folder, file, &access, to, &s->more[s->count], err) < 0)
		return ANSWER_socket_failed;
	row->id = ++s->last_id;
	row->uid = s->starter;
	to->row = *row;
	s->more[s->count].ends_ms = boot_time_of(row->until);
	s->count++;
	*ret = to;
	return ADMIN_DONE;
}

/* Only what was made here: somebody may have put something else in its place. */
static void remove_file(const struct admin_sockets *s, const struct config *c, const char *path,
			const struct more *made)
{
	const char *file = "";
	struct err err = {0};
	auto_fd int folder = -1;
	struct stat st;

	if (open_folder(s, c, path, &folder, &file, &err) ||
	    fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != made->dev ||
	    st.st_ino != made->ino)
		return;
	if (unlinkat(folder, file, 0) < 0)
		log_line("cannot remove %s: %s", path, strerror(errno));
}

static void drop(struct admin_sockets *s, const struct config *c, size_t i, struct runtime_row *ret)
{
	*ret = s->list[i].row;
	close(s->list[i].fd);
	remove_file(s, c, ret->path, &s->more[i]);
	s->count--;
	s->list[i] = s->list[s->count];
	s->more[i] = s->more[s->count];
}

enum admin_answer admin_sockets_remove(struct admin_sockets *s, const struct config *c,
				       const char *name, struct runtime_row *ret)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->list[i].row.name, name) == 0) {
			drop(s, c, i, ret);
			return ADMIN_DONE;
		}
	return ANSWER_listener_missing;
}

void admin_sockets_clear(const struct admin_sockets *s, const struct config *c, const char *path)
{
	const char *file = "";
	struct err err = {0};
	auto_fd int folder = -1;

	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->list[i].row.path, path) == 0)
			return;
	if (open_folder(s, c, path, &folder, &file, &err) || fchdir(folder) < 0)
		return;
	listen_clear(file, &err);
	if (chdir("/") < 0)
		log_line("cannot go back to /: %s", strerror(errno));
}

static bool is_over(const struct admin_sockets *s, size_t i)
{
	return clock_boot_ms() >= s->more[i].ends_ms ||
	       (int64_t)(clock_unix_ns() / 1000000000) >= s->list[i].row.until;
}

bool admin_sockets_expire(struct admin_sockets *s, const struct config *c, struct runtime_row *ret)
{
	for (size_t i = 0; i < s->count; i++)
		if (is_over(s, i)) {
			drop(s, c, i, ret);
			return true;
		}
	return false;
}

uint64_t admin_sockets_due(const struct admin_sockets *s)
{
	uint64_t due = s->count ? clock_boot_ms() + LOOK_MS : UINT64_MAX;

	for (size_t i = 0; i < s->count; i++)
		if (s->more[i].ends_ms < due)
			due = s->more[i].ends_ms;
	return due;
}
