/* serve_keeper.c - what the keeper gets of somebody who is root, before that is given up. */
#include "gate/serve.h"

#include "gate/base/auto.h"
#include "gate/base/hash.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CGROUP_FILE_MAX 65536
#define CGROUP_ROOT     "/sys/fs/cgroup"

static const struct confine_ids *keeper_ids(const struct serve *s)
{
	return s->root ? &s->ids[ROLE_KEEPER] : NULL;
}

static int keep_fd(struct serve *s, int fd)
{
	s->keeper_fds[s->keeper_fd_count++] = fd;
	return fd;
}

/* --- the socket --- */

/* Nobody but workers: their group may write, the owner is who starts the gate. */
static int open_socket(struct serve *s, const char *path, struct err *err)
{
	struct listen_access access = {
		.uid = geteuid(),
		.gid = s->root ? s->ids[ROLE_WORKER].gid : getegid(),
		.mode = s->root ? 0660 : 0600,
	};
	int fd;

	if (listen_unix(path, &access, &fd, err) < 0)
		return err_wrap(err, "the socket of the local backend");
	s->keeper.listener = keep_fd(s, fd);
	return 0;
}

/* --- the folder --- */

static int open_state(struct serve *s, const char *dir, struct err *err)
{
	const struct confine_ids *owner = keeper_ids(s);
	struct stat st;
	int fd;

	if (mkdir(dir, 0700) == 0) {
		if (owner && lchown(dir, owner->uid, owner->gid) < 0)
			return err_sys(err, "give %s to its user", dir);
	} else if (errno != EEXIST) {
		return err_sys(err, "make the folder of the local backend, %s", dir);
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(err, "open the folder of the local backend, %s", dir);
	s->keeper.state = keep_fd(s, fd);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at %s", dir);
	if (st.st_uid != (owner ? owner->uid : geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, ERR_CONFIG,
			       "backend { state }: %s must belong to uid %u and be writable by "
			       "nobody else: name a folder for this alone (a missing one is made)",
			       dir, owner ? owner->uid : geteuid());
	return 0;
}

/* --- control groups --- */

static const struct hierarchy {
	enum box_controller controller;
	const char *name; /* of the controller; "": version 2 */
	const char *mount;
} hierarchies[] = {
	{BOX_CGROUP_MEMORY, "memory", CGROUP_ROOT "/memory"},
	{BOX_CGROUP_PIDS, "pids", CGROUP_ROOT "/pids"},
	{BOX_CGROUP_CPU, "cpu", CGROUP_ROOT "/cpu"},
	{BOX_CGROUP_FREEZER, "freezer", CGROUP_ROOT "/freezer"},
};
static const struct hierarchy version_2 = {BOX_CGROUP_V2, "", CGROUP_ROOT};

static bool has_word(struct span words, char between, const char *word)
{
	struct span one;

	while (words.len) {
		span_cut(&words, between, &one);
		if (span_is(one, word))
			return true;
	}
	return false;
}

/* Where this process is, from the line of /proc/self/cgroup: "4:memory:/a/b". */
static bool own_place(const char *controller, char *ret, size_t size)
{
	struct err err = {0};
	struct buf text;
	struct span rest, line, id, names;
	bool found = false;

	if (io_read_file("/proc/self/cgroup", CGROUP_FILE_MAX, &text, &err) < 0)
		return false;
	rest = buf_span(&text);
	while (!found && rest.len) {
		span_cut(&rest, '\n', &line);
		if (!span_cut(&line, ':', &id) || !span_cut(&line, ':', &names))
			continue;
		found = *controller ? has_word(names, ',', controller) : span_is(id, "0");
		if (found)
			snprintf(ret, size, "%.*s", SPAN_FMT(line));
	}
	buf_fini(&text);
	return found && ret[0] == '/';
}

/*
 * Version 1: below the place of the gate, so that what holds it holds sandboxes too. Version 2
 * takes no processes where there are groups below, so there it is beside.
 */
static void folder_of(const struct serve *s, const struct hierarchy *h, char *ret, size_t size)
{
	const struct config *c = &s->loaded->config;
	char place[PATH_MAX / 2] = "/", hex[HASH_HEX_LEN + 1];
	struct hash hash = hash_of(span_of(c->keeper.state));
	struct stat st;

	hash_hex(&hash, hex);
	if (own_place(h->name, place, sizeof(place))) {
		if (!*h->name)
			*(strrchr(place, '/') + 1) = '\0';
		snprintf(ret, size, "%s%s", h->mount, place);
		if (stat(ret, &st) < 0) /* the mount shows a part of the whole */
			snprintf(place, sizeof(place), "/");
	}
	snprintf(ret, size, "%s%s%ssallyport-%.12s", h->mount, place,
		 place[strlen(place) - 1] == '/' ? "" : "/", hex);
}

static void give(const struct serve *s, int folder, const char *name)
{
	const struct confine_ids *owner = keeper_ids(s);

	if (owner && fchownat(folder, name, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != ENOENT)
		log_line("cannot give %s of a control group to the keeper: %s", name,
			 strerror(errno));
}

static void write_to(int folder, const char *name, const char *text)
{
	auto_fd int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		log_line("cannot write %s of a control group: %s", name, strerror(errno));
}

/* Beside the sandboxes is a group for who starts them: only within what is its own may it move
 * them. */
static void prepare_version_2(const struct serve *s, int folder)
{
	give(s, folder, "cgroup.procs");
	give(s, folder, "cgroup.threads");
	give(s, folder, "cgroup.subtree_control");
	write_to(folder, "cgroup.subtree_control", "+memory +pids +cpu");
	if (mkdirat(folder, "launcher", 0755) < 0 && errno != EEXIST)
		log_line("cannot make a control group: %s", strerror(errno));
	give(s, folder, "launcher");
}

/* False: this host has none there, or does not let it be made. */
static bool open_cgroup(struct serve *s, const struct hierarchy *h)
{
	struct keeper_conf *k = &s->keeper;
	char path[PATH_MAX];
	int fd;

	folder_of(s, h, path, sizeof(path));
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return false;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (h->controller == BOX_CGROUP_V2)
		prepare_version_2(s, fd);
	if (keeper_ids(s) && fchown(fd, keeper_ids(s)->uid, keeper_ids(s)->gid) < 0) {
		close(fd);
		return false;
	}
	k->cgroups[k->cgroup_count++] = (struct box_cgroup){h->controller, keep_fd(s, fd)};
	return true;
}

static bool has_version_2(void)
{
	struct err err = {0};
	struct buf text;
	bool all;

	if (io_read_file(CGROUP_ROOT "/cgroup.controllers", CGROUP_FILE_MAX, &text, &err) < 0)
		return false;
	buf_put(&text, " ", 1);
	all = has_word(buf_span(&text), ' ', "memory") && has_word(buf_span(&text), ' ', "pids");
	buf_fini(&text);
	return all;
}

static void open_cgroups(struct serve *s)
{
	if (has_version_2() && open_cgroup(s, &version_2))
		return;
	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(*hierarchies); i++)
		open_cgroup(s, &hierarchies[i]);
	if (!s->keeper.cgroup_count)
		log_line("the local backend has no control groups: limits of its sandboxes hold "
			 "for each process, not for all together");
}

/* Folders of others' processes stay; the next start finds them. */
static void close_cgroups(struct serve *s)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < s->keeper.cgroup_count; i++) {
		enum box_controller c = s->keeper.cgroups[i].controller;

		if (c == BOX_CGROUP_V2) {
			unlinkat(s->keeper.cgroups[i].fd, "launcher", AT_REMOVEDIR);
			folder_of(s, &version_2, path, sizeof(path));
			unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
			continue;
		}
		for (size_t h = 0; h < sizeof(hierarchies) / sizeof(*hierarchies); h++)
			if (hierarchies[h].controller == c) {
				folder_of(s, &hierarchies[h], path, sizeof(path));
				unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
			}
	}
}

/* --- who starts sandboxes --- */

static void enter_group(const struct serve *s)
{
	for (size_t i = 0; i < s->keeper.cgroup_count; i++)
		if (s->keeper.cgroups[i].controller == BOX_CGROUP_V2)
			write_to(s->keeper.cgroups[i].fd, "launcher/cgroup.procs", "0");
}

/* In a process of its own, which becomes the keeper's user for it. */
static int launch(const struct serve *s, int to)
{
	struct err err = {0}, unheard = {0};
	pid_t pid;
	int fd = -1;

	enter_group(s);
	if (privs_become(ROLE_KEEPER, keeper_ids(s), &err) == 0)
		fd = box_launcher_start(s->keeper.bare, &pid, &err);
	if (fd >= 0)
		return io_send_fds(to, 'l', &fd, 1, &unheard);
	return io_send_note(to, 'e', (struct span){err.msg, sizeof(err.msg)}, NULL, 0, &unheard);
}

static int receive_launcher(struct serve *s, int from, struct err *err)
{
	int fds[IO_FDS_MAX];
	char tag = 0, why[ERR_MSG_MAX] = "";
	size_t count = 0;
	struct err lost = {0};

	if (io_recv_fds(from, &tag, fds, &count, &lost) == 1 && tag == 'l' && count == 1) {
		s->keeper.launcher = keep_fd(s, fds[0]);
		return 0;
	}
	if (tag != 'e' || io_recv_note(from, why, sizeof(why), &lost) < 0)
		snprintf(why, sizeof(why), "it ended");
	why[sizeof(why) - 1] = '\0';
	return err_set(err, ERR_SYSTEM, "start the process that starts sandboxes: %s", why);
}

static int start_launcher(struct serve *s, struct err *err)
{
	int ends[2], rc;
	pid_t pid;

	if (io_pair(ends, err) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		_exit(launch(s, ends[1]) < 0);
	}
	close(ends[1]);
	rc = pid < 0 ? err_sys(err, "fork") : receive_launcher(s, ends[0], err);
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return rc;
}

/* --- all of it --- */

/* What the configuration has does not outlive a reload, and a keeper may be started after one. */
static int copy_settings(struct serve *s, struct err *err)
{
	const struct config_keeper *c = &s->loaded->config.keeper;
	size_t count = 0;
	const char **list;

	while (c->read_only[count])
		count++;
	list = calloc(count + 1, sizeof(*list));
	for (size_t i = 0; list && i < count; i++)
		list[i] = strdup(c->read_only[i]);
	s->keeper.read_only = list;
	s->keeper.path = strdup(c->path);
	if (!list || !s->keeper.path)
		return err_set(err, ERR_SYSTEM, "no memory");
	s->keeper.bare = c->bare;
	s->keeper.sandboxes = c->sandboxes;
	s->keeper.execs = c->execs;
	s->keeper.connections = c->connections;
	s->keeper.pids = c->pids;
	s->keeper.memory = c->memory;
	s->keeper.scratch = c->scratch;
	s->keeper.file = c->file;
	s->keeper.output = c->output;
	return 0;
}

int serve_open_keeper(struct serve *s, struct err *err)
{
	const struct config *c = &s->loaded->config;

	s->keeper = (struct keeper_conf){.listener = -1, .launcher = -1, .state = -1};
	if (!c->keeper.wanted)
		return 0;
	if (copy_settings(s, err) < 0 || open_state(s, c->keeper.state, err) < 0)
		return -1;
	open_cgroups(s);
	if (start_launcher(s, err) < 0)
		return -1;
	return open_socket(s, c->proxy.backends[c->keeper.backend].socket, err);
}

void serve_close_keeper(struct serve *s)
{
	const struct config *c = &s->loaded->config;

	close_cgroups(s);
	for (size_t i = 0; i < s->keeper_fd_count; i++)
		close(s->keeper_fds[i]);
	s->keeper_fd_count = 0;
	if (s->keeper.listener >= 0)
		unlink(c->proxy.backends[c->keeper.backend].socket);
}
