/* begin.c - a container's plan, made into a box with its first command. */
#include "gate/base/auto.h"
#include "gate/base/io.h"
#include "gate/keeper/state_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STATUS_MAX 65536

struct beginning {
	struct keeper *k;
	struct container *c;
	struct err *err;
	struct box_bind binds[BOX_BINDS_MAX];
	size_t bind_count;
	struct box_link links[BOX_LINKS_MAX];
	char texts[BOX_LINKS_MAX][256];
	size_t link_count;
	struct box_tmpfs tmpfs[BOX_TMPFS_MAX];
	size_t tmpfs_count;
};

/* --- the host's folders --- */

static int add_bind(struct beginning *b, int fd, const char *target, bool writable)
{
	if (b->bind_count == BOX_BINDS_MAX) {
		close(fd);
		return err_set(b->err, ERR_LIMIT, "more places than are taken");
	}
	b->binds[b->bind_count++] =
		(struct box_bind){.fd = fd, .target = target, .writable = writable};
	return 0;
}

static int add_link(struct beginning *b, const char *path)
{
	char *text = b->texts[b->link_count];
	ssize_t n;

	if (b->link_count == BOX_LINKS_MAX)
		return err_set(b->err, ERR_LIMIT, "more links than are taken");
	n = readlink(path, text, sizeof(b->texts[0]) - 1);
	if (n < 0)
		return err_sys(b->err, "read the link %s", path);
	text[n] = '\0';
	b->links[b->link_count++] = (struct box_link){path, text};
	return 0;
}

/* What the operator named, as far as it is there. */
static int add_folder(struct beginning *b, const char *path)
{
	struct stat st;
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		err_sys(b->err, "open %s", path);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (!S_ISLNK(st.st_mode))
		return add_bind(b, fd, path, false);
	close(fd);
	return add_link(b, path);
}

/*
 * What a request names: it was judged with all links followed, so there is none left; whoever has
 * put one there since gains nothing.
 */
static int open_source(const char *path, struct err *err)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd >= 0)
		return fd;
	if (errno == ELOOP)
		return err_set(err, ERR_INPUT, "a link lies on the way to %s: name the real path",
			       path);
	if (errno == ENOENT)
		return err_set(err, ERR_INPUT, "bind source path does not exist: %s", path);
	return err_sys(err, "open %s as the keeper's user", path);
}

static int add_places(struct beginning *b)
{
	const struct plan *p = &b->c->plan;

	for (size_t i = 0; b->k->conf->read_only[i]; i++)
		if (add_folder(b, b->k->conf->read_only[i]) < 0)
			return -1;
	for (size_t i = 0; i < p->bind_count; i++) {
		int fd = open_source(p->binds[i].source, b->err);

		if (fd < 0 || add_bind(b, fd, p->binds[i].target, p->binds[i].writable) < 0)
			return -1;
	}
	return 0;
}

/* --- memory that looks like folders --- */

static bool is_there(const struct plan *p, const char *target)
{
	for (size_t i = 0; i < p->tmpfs_count; i++)
		if (!strcmp(p->tmpfs[i].target, target))
			return true;
	for (size_t i = 0; i < p->bind_count; i++)
		if (!strncmp(p->binds[i].target, target, strlen(target)))
			return true;
	return false;
}

static int add_memory(struct beginning *b)
{
	const struct plan *p = &b->c->plan;

	if (p->tmpfs_count >= BOX_TMPFS_MAX)
		return err_set(b->err, ERR_LIMIT, "more places in memory than are taken");
	for (size_t i = 0; i < p->tmpfs_count; i++)
		b->tmpfs[b->tmpfs_count++] = (struct box_tmpfs){.target = p->tmpfs[i].target,
								.bytes = p->tmpfs[i].bytes,
								.mode = p->tmpfs[i].mode,
								.exec = p->tmpfs[i].exec};
	if (!is_there(p, "/tmp"))
		b->tmpfs[b->tmpfs_count++] =
			(struct box_tmpfs){.target = "/tmp", .bytes = b->k->conf->scratch};
	return 0;
}

/* --- together --- */

/* Files of a program without walls. */
static int make_folder(struct beginning *b)
{
	struct container *c = b->c;

	if (mkdirat(b->k->conf->state, c->id, 0700) < 0 && errno != EEXIST)
		return err_sys(b->err, "make the folder of a sandbox");
	c->folder =
		openat(b->k->conf->state, c->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return c->folder < 0 ? err_sys(b->err, "open the folder of a sandbox") : 0;
}

static struct box *start_box(struct beginning *b)
{
	const struct plan *p = &b->c->plan;
	char name[KEEPER_ID_LEN + 8], host_name[13];
	bool own = p->mode == BOX_CONFINED; /* without walls nothing can be said of it */
	struct box_conf conf = {.mode = p->mode,
				.name = name,
				.host_name = p->host_name ? p->host_name : host_name,
				.uid = p->user ? p->uid
				       : own   ? geteuid()
					       : 0,
				.gid = p->user ? p->gid
				       : own   ? getegid()
					       : 0,
				.binds = b->binds,
				.bind_count = b->bind_count,
				.tmpfs = b->tmpfs,
				.tmpfs_count = b->tmpfs_count,
				.links = b->links,
				.link_count = b->link_count,
				.shm_bytes = p->shm_bytes,
				.filter = p->filter,
				.folder = b->c->folder,
				.cgroups = b->k->conf->cgroups,
				.cgroup_count = b->k->conf->cgroup_count,
				.limits = p->limits};

	snprintf(name, sizeof(name), KEEPER_BOX_PREFIX "%s", b->c->id);
	snprintf(host_name, sizeof(host_name), "%.12s", b->c->id);
	return box_start(b->k->conf->launcher, &conf, b->err);
}

static void close_ends(int ends[6])
{
	for (size_t i = 0; i < 6; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

static int make_pipes(const struct plan *p, int ends[6], struct err *err)
{
	for (int i = 0; i < 3; i++) {
		if (p->tty || (i == 0 && !p->open_stdin))
			continue;
		if (pipe2(ends + 2 * i, O_CLOEXEC) < 0)
			return err_sys(err, "make a pipe");
		/* Ours: the end that is written to for input, read from for output. */
		if (fcntl(ends[2 * i + (i == 0)], F_SETFL, O_NONBLOCK) < 0)
			return err_sys(err, "prepare a pipe");
	}
	return 0;
}

static void take_terminal(struct container *c, int tty)
{
	fcntl(tty, F_SETFL, O_NONBLOCK);
	c->from_first[0] = tty;
	if (c->plan.open_stdin)
		c->to_first = fcntl(tty, F_DUPFD_CLOEXEC, 3);
}

static int start_first(struct container *c, struct box *box, struct err *err)
{
	const struct plan *p = &c->plan;
	int ends[6] = {-1, -1, -1, -1, -1, -1};
	struct box_command cmd = {.argv = p->argv, .env = p->env, .cwd = p->cwd, .tty = p->tty};
	struct box_child child;

	if (make_pipes(p, ends, err) == 0) {
		cmd.stdio[0] = ends[0];
		cmd.stdio[1] = ends[3];
		cmd.stdio[2] = ends[5];
		if (box_spawn(box, &cmd, &child, err) == 0) {
			c->first = child.id;
			c->inner = child.pid;
			c->to_first = take_fd(ends[1]);
			c->from_first[0] = take_fd(ends[2]);
			c->from_first[1] = take_fd(ends[4]);
			if (p->tty)
				take_terminal(c, child.tty);
			close_ends(ends);
			return 0;
		}
	}
	close_ends(ends);
	return err_wrap(err, "%.100s", p->argv[0]);
}

/* --- which process it is, for whoever looks at it --- */

/* The last number behind "NSpid:" is the pid that the innermost namespace knows it by. */
static bool is_inner(long pid, pid_t inner)
{
	char path[64], *at, *end;
	struct err err = {0};
	struct buf text;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%ld/status", pid);
	if (io_read_file(path, STATUS_MAX, &text, &err) < 0)
		return false;
	buf_put(&text, "", 1);
	at = strstr((char *)(uintptr_t)buf_span(&text).at, "\nNSpid:");
	end = at ? strchr(at + 1, '\n') : NULL;
	if (end) {
		*end = '\0';
		at = strrchr(at + 1, '\t');
		found = at && strtol(at + 1, NULL, 10) == inner;
	}
	buf_fini(&text);
	return found;
}

/*
 * The first command as the host sees it: it is what the walls are about, and its init has no filter
 * of system calls. 0: it has ended already; the init's, where the kernel does not say.
 */
static pid_t first_pid(pid_t init, pid_t inner)
{
	char path[96], *rest;
	struct err err = {0};
	struct buf text;
	pid_t found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)init, (int)init);
	if (io_read_file(path, STATUS_MAX, &text, &err) < 0)
		return init;
	buf_put(&text, "", 1);
	rest = (char *)(uintptr_t)buf_span(&text).at;
	while (*rest && !found) {
		char *end;
		long pid = strtol(rest, &end, 10);

		if (end == rest)
			break;
		if (is_inner(pid, inner))
			found = (pid_t)pid;
		rest = end;
	}
	buf_fini(&text);
	return found;
}

int container_begin(struct keeper *k, struct container *c, struct err *err)
{
	struct beginning *b = calloc(1, sizeof(*b));
	struct box *box = NULL;
	int rc = -1;

	if (!b)
		return err_set(err, ERR_LIMIT, "no memory");
	*b = (struct beginning){.k = k, .c = c, .err = err};
	if (c->plan.mode == BOX_CONFINED && !k->confined_works)
		err_set(err, ERR_SYSTEM, "this host cannot confine: %s", k->missing);
	else if (c->plan.mode == BOX_BARE ? make_folder(b) == 0
					  : add_places(b) == 0 && add_memory(b) == 0)
		box = start_box(b);
	for (size_t i = 0; i < b->bind_count; i++)
		close(b->binds[i].fd);
	free(b);
	if (box)
		rc = start_first(c, box, err);
	if (box && rc < 0) {
		struct err unheard = {0};

		box_end(box, &unheard);
	}
	if (rc < 0)
		return -1;
	c->pid = c->plan.mode == BOX_CONFINED ? first_pid(box_pid(box), c->inner) : c->inner;
	c->box = box;
	return 0;
}
