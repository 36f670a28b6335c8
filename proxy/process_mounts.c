/*
 * What is mounted in the place where the workload lives.  The table says where;
 * each entry is then opened by that path inside the process's own root, without
 * following any link, and counts only if the kernel says that this very mount
 * was met: the workload may rename what lies on the way.
 */
#include "proxy/process_priv.h"

#include "gate/base/auto.h"
#include "gate/base/jv.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TABLE_MAX    (1u << 20) /* bytes of a mount table */
#define MOUNTS_MAX   256        /* mounts of one workload */
#define DEVICES_MAX  8192       /* file systems of the host */
#define TASKS_MAX    64         /* threads of the shim */
#define CHILDREN_MAX 64         /* of all of them */

/* --- file systems of the host --- */

struct devices {
	uint64_t *list;
	size_t count;
	bool complete;
};

static uint64_t device_of(const struct procfs_mount *m)
{
	return (uint64_t)m->major << 32 | m->minor;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void read_devices(struct devices *ret)
{
	struct procfs_mount m;
	unsigned bad = 0;
	struct span rest;
	struct buf text;

	*ret = (struct devices){.list = malloc(sizeof(*ret->list) * DEVICES_MAX)};
	if (ret->list && process_read(AT_FDCWD, "/proc/self/mountinfo", TABLE_MAX, &text)) {
		rest = buf_span(&text);
		while (ret->count < DEVICES_MAX && procfs_mount(&rest, &m, &bad))
			ret->list[ret->count++] = device_of(&m);
		ret->complete = !bad && !rest.len && !buf_spent(&text);
		buf_fini(&text);
		qsort(ret->list, ret->count, sizeof(*ret->list), by_value);
	}
}

/* These alone can be new and empty; all others hold what was there before. */
static bool is_of_host(const struct devices *d, const struct procfs_mount *m)
{
	static const char *const fresh[] = {"tmpfs",  "overlay", "proc",   "sysfs",
					    "devpts", "mqueue",  "cgroup", "cgroup2"};
	uint64_t device = device_of(m);
	bool may_be_fresh = false;

	for (size_t i = 0; i < sizeof(fresh) / sizeof(*fresh); i++)
		may_be_fresh = may_be_fresh || span_is(m->type, fresh[i]);
	return !may_be_fresh || !d->complete ||
	       bsearch(&device, d->list, d->count, sizeof(*d->list), by_value);
}

/* --- one mount --- */

/*
 * By steps, each of which stays where it is when it meets a link: nothing can be
 * opened below one.  openat2() could do it in one, but its flags are out of a
 * filter's sight, and this process must not be able to write.
 */
static int walk(int root, const char *point)
{
	auto_fd int at = openat(root, ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct span rest = span_of(point), step;
	bool more = true;

	while (more && at >= 0) {
		char name[NAME_MAX + 1];
		int next;

		more = span_cut(&rest, '/', &step);
		if (!step.len)
			continue;
		if (step.len > NAME_MAX || span_is(step, ".."))
			return -1;
		memcpy(name, step.at, step.len);
		name[step.len] = '\0';
		next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
	}
	return take_fd(at);
}

/* What the entry's path leads to, if that is the entry's own mount. */
static bool stat_mount(int root, const char *point, int64_t id, struct stat *ret)
{
	auto_fd int fd = walk(root, point);
	struct statx stx;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &stx) < 0 ||
	    !(stx.stx_mask & STATX_MNT_ID) || (int64_t)stx.stx_mnt_id != id)
		return false;
	*ret = (struct stat){.st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
			     .st_ino = stx.stx_ino};
	return true;
}

static void say_field(struct buf *out, const char *key, struct span escaped)
{
	char text[PATH_MAX];

	if (procfs_unescape(escaped, text, sizeof(text)))
		process_text(out, key, span_of(text));
}

static void say_mount(struct buf *out, int root, const struct procfs_mount *m, bool host)
{
	char point[PATH_MAX];
	struct stat st;

	buf_printf(out, "{\"id\":%lld,\"parent\":%lld", (long long)m->id, (long long)m->parent);
	say_field(out, "point", m->point);
	say_field(out, "root", m->root);
	say_field(out, "type", m->type);
	say_field(out, "source", m->source);
	process_text(out, "propagation", span_of(m->propagation));
	buf_printf(out, ",\"ro\":%s,\"host\":%s",
		   procfs_has_word(m->options, "ro") ? "true" : "false", host ? "true" : "false");
	if (procfs_unescape(m->point, point, sizeof(point)) && stat_mount(root, point, m->id, &st))
		process_inode(out, &st);
	buf_puts(out, "}");
}

static void say_table(struct look *l, struct buf *out, int dir, const char *whose)
{
	auto_fd int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct procfs_mount m;
	struct devices host;
	struct span rest;
	struct buf text;
	unsigned bad = 0;
	size_t n = 0;

	if (root < 0 || !process_read(dir, "mountinfo", TABLE_MAX, &text)) {
		process_unknown(l, "mounts");
		return;
	}
	read_devices(&host);
	rest = buf_span(&text);
	process_text(out, "mounts_of", span_of(whose));
	buf_puts(out, ",\"mounts\":[");
	while (n < MOUNTS_MAX && process_in_time(l) && procfs_mount(&rest, &m, &bad)) {
		buf_puts(out, n++ ? "," : "");
		say_mount(out, root, &m, is_of_host(&host, &m));
	}
	buf_printf(out, "],\"mounts_cut\":%s",
		   bad || rest.len || buf_spent(&text) ? "true" : "false");
	free(host.list);
	buf_fini(&text);
}

/* --- gVisor --- */

/* Among those that a thread of the shim has started: its folder in /proc, opened; -1: none. */
static int find_gofer_in(const struct look *l, struct span children, int *budget)
{
	while (children.len && (*budget)-- > 0) {
		char path[32];
		struct span word;
		auto_fd int dir = -1;

		span_cut(&children, ' ', &word);
		if (!word.len || word.len > 9)
			continue;
		snprintf(path, sizeof(path), "/proc/%.*s", SPAN_FMT(word));
		dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir >= 0 && process_is_gofer(l, dir))
			return take_fd(dir);
	}
	return -1;
}

static int find_gofer(const struct look *l)
{
	char path[64];
	auto_fd int tasks = -1;
	int budget = CHILDREN_MAX, found = -1;
	struct dirent *entry;
	DIR *list;

	snprintf(path, sizeof(path), "/proc/%u/task", l->status.parent);
	tasks = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list = tasks >= 0 ? fdopendir(tasks) : NULL;
	if (!list)
		return -1;
	for (int n = 0; found < 0 && n < TASKS_MAX && (entry = readdir(list)); n++) {
		struct buf text;

		snprintf(path, sizeof(path), "%.16s/children", entry->d_name);
		if (*entry->d_name == '.' || !process_in_time(l) ||
		    !process_read(tasks, path, 4096, &text))
			continue;
		found = find_gofer_in(l, buf_span(&text), &budget);
		buf_fini(&text);
	}
	(void)take_fd(tasks); /* the list's */
	closedir(list);
	return found;
}

void process_say_mounts(struct look *l, struct buf *out)
{
	auto_fd int gofer = -1;

	if (!l->is_runtime) {
		say_table(l, out, l->dir, "process");
		return;
	}
	/* The sandbox's own root is empty. */
	gofer = l->has_status ? find_gofer(l) : -1;
	if (gofer >= 0)
		say_table(l, out, gofer, "gofer");
	else
		process_unknown(l, "mounts");
}
