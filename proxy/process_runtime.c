#include "proxy/process_priv.h"

#include "gate/base/auto.h"
#include "gate/base/jv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARGS_BYTES_MAX 16384
#define ARGS_MAX       64
#define ARG_BYTES_MAX  256
#define MOUNTS_MAX     (1u << 20) /* bytes of a mount table */
#define CGROUP_MAX     16384

/* --- the program --- */

/* Stat follows the link of /proc to the very file, wherever it is mounted; no name is read. */
static bool stat_program(int dir, struct stat *ret)
{
	return fstatat(dir, "exe", ret, 0) == 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static struct span next_arg(struct span *rest)
{
	struct span arg;

	span_cut(rest, '\0', &arg);
	return arg;
}

/* The id, alone or at the end of a path such as the bundle's. */
static bool names(struct span arg, struct span id)
{
	if (arg.len < id.len || !span_eq(span_skip(arg, arg.len - id.len), id))
		return false;
	return arg.len == id.len || arg.at[arg.len - id.len - 1] == '/';
}

static bool has_id(struct span args, struct span id)
{
	while (id.len && args.len)
		if (names(next_arg(&args), id))
			return true;
	return false;
}

static bool has_word(struct span args, const char *word)
{
	while (args.len)
		if (span_is(next_arg(&args), word))
			return true;
	return false;
}

/*
 * The flags that hold for the whole program, and its subcommand: behind that
 * stand descriptors and the container's id.
 */
static void say_args(struct look *l, struct buf *out, struct span args)
{
	size_t n = 0;

	buf_puts(out, ",\"args\":[");
	for (; args.len && n < ARGS_MAX; n++) {
		struct span arg = next_arg(&args);
		bool last = n && (!arg.len || arg.at[0] != '-');

		if (arg.len > ARG_BYTES_MAX) {
			process_unknown(l, "args");
			arg.len = ARG_BYTES_MAX;
		}
		buf_puts(out, n ? "," : "");
		jv_write_str(out, arg);
		if (last)
			break;
	}
	if (n == ARGS_MAX)
		process_unknown(l, "args");
	buf_puts(out, "]");
}

static void say_belonging(struct look *l, struct buf *out)
{
	const char *how = "";
	struct buf text = {0};

	if (l->in_cgroup)
		how = "cgroup";
	if (l->is_runtime && process_read(l->dir, "cmdline", ARGS_BYTES_MAX, &text)) {
		if (!l->in_cgroup && has_id(buf_span(&text), l->id))
			how = "arguments";
		if (*how)
			say_args(l, out, buf_span(&text));
		buf_fini(&text);
	} else if (l->is_runtime) {
		process_unknown(l, "args");
	}
	process_text(out, "belongs", span_of(how));
}

static void say_runtime(struct look *l, struct buf *out, const struct stat *exe)
{
	if (!l->runtime[0])
		return;
	if (fstatat(AT_FDCWD, l->runtime, &l->program, 0) < 0) {
		process_unknown(l, "runtime");
		return;
	}
	l->is_runtime = is_same_file(exe, &l->program);
	buf_printf(out, ",\"runtime\":{\"same\":%s", l->is_runtime ? "true" : "false");
	process_inode(out, &l->program);
	buf_puts(out, "}");
}

void process_say_program(struct look *l, struct buf *out)
{
	char path[PATH_MAX];
	ssize_t len = readlinkat(l->dir, "exe", path, sizeof(path));
	struct stat exe;

	if (len <= 0 || !stat_program(l->dir, &exe)) {
		process_unknown(l, "exe");
		return;
	}
	buf_printf(out, ",\"exe\":{\"deleted\":%s", exe.st_nlink ? "false" : "true");
	process_text(out, "path", (struct span){path, (size_t)(len < 1024 ? len : 1024)});
	process_inode(out, &exe);
	buf_puts(out, "}");
	say_runtime(l, out, &exe);
}

bool process_is_gofer(const struct look *l, int dir)
{
	struct stat exe;
	struct buf text;
	bool is;

	if (!l->is_runtime || !stat_program(dir, &exe) || !is_same_file(&exe, &l->program) ||
	    !process_read(dir, "cmdline", ARGS_BYTES_MAX, &text))
		return false;
	is = has_word(buf_span(&text), "gofer") && has_id(buf_span(&text), l->id);
	buf_fini(&text);
	return is;
}

/* --- control groups --- */

/* Where the hierarchy of a controller is mounted here; "" stands for the unified one. */
static bool find_hierarchy(struct span mounts, const char *controller, char *out, size_t size)
{
	struct procfs_mount m;
	unsigned bad = 0;

	while (procfs_mount(&mounts, &m, &bad)) {
		bool is = *controller ? span_is(m.type, "cgroup") &&
						procfs_has_word(m.super, controller)
				      : span_is(m.type, "cgroup2");

		if (is && span_is(m.root, "/") && procfs_unescape(m.point, out, size))
			return true;
	}
	return false;
}

struct groups {
	struct span own;    /* /proc/PID/cgroup */
	struct span mounts; /* /proc/self/mountinfo */
};

/* The content of a file of the control group that the process is in. */
static bool read_group(const struct groups *g, const char *controller, const char *file,
		       struct buf *ret)
{
	char top[PATH_MAX], path[PATH_MAX * 2 + 64];
	struct span group;

	if (!procfs_cgroup(g->own, controller, &group) || group.len >= PATH_MAX ||
	    !find_hierarchy(g->mounts, controller, top, sizeof(top)))
		return false;
	snprintf(path, sizeof(path), "%s%.*s/%s", top, SPAN_FMT(group), file);
	return process_read(AT_FDCWD, path, 64, ret);
}

/* By version 1 where it holds the controller, else by version 2. */
static bool read_limit(const struct groups *g, const char *controller, const char *v1,
		       const char *v2, int64_t *ret)
{
	struct buf text;
	bool fine;

	if (!read_group(g, controller, v1, &text) && !read_group(g, "", v2, &text))
		return false;
	fine = procfs_limit(buf_span(&text), ret);
	buf_fini(&text);
	return fine;
}

/* "50000 100000" of version 2, or two files of version 1. */
static bool read_cpu(const struct groups *g, int64_t *ret_quota, int64_t *ret_period)
{
	struct span rest, quota;
	struct buf text;
	bool fine;

	if (read_limit(g, "cpu", "cpu.cfs_quota_us", "none", ret_quota) &&
	    read_limit(g, "cpu", "cpu.cfs_period_us", "none", ret_period))
		return true;
	if (!read_group(g, "", "cpu.max", &text))
		return false;
	rest = buf_span(&text);
	fine = span_cut(&rest, ' ', &quota) && procfs_limit(quota, ret_quota) &&
	       procfs_limit(rest, ret_period);
	buf_fini(&text);
	return fine;
}

static void say_limits(struct look *l, struct buf *out, const struct groups *g)
{
	int64_t memory, pids, quota, period;

	if (read_limit(g, "memory", "memory.limit_in_bytes", "memory.max", &memory))
		buf_printf(out, ",\"memory\":%lld", (long long)memory);
	else
		process_unknown(l, "cgroup.memory");
	if (read_limit(g, "pids", "pids.max", "pids.max", &pids))
		buf_printf(out, ",\"pids\":%lld", (long long)pids);
	else
		process_unknown(l, "cgroup.pids");
	if (read_cpu(g, &quota, &period))
		buf_printf(out, ",\"cpu_quota\":%lld,\"cpu_period\":%lld", (long long)quota,
			   (long long)period);
	else
		process_unknown(l, "cgroup.cpu");
}

/* The last part of the path, as it is or as systemd names it: docker-ID.scope. */
static bool is_of_container(struct span path, struct span id)
{
	return id.len && memmem(path.at, path.len, id.at, id.len);
}

static bool find_path(struct span own, struct span *ret)
{
	static const char *const controllers[] = {"memory", "pids", "cpu", ""};

	for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++)
		if (procfs_cgroup(own, controllers[i], ret))
			return true;
	return false;
}

void process_say_cgroup(struct look *l, struct buf *out)
{
	struct buf own, mounts = {0};
	struct groups g;
	struct span path;

	if (!process_read(l->dir, "cgroup", CGROUP_MAX, &own) ||
	    !find_path(buf_span(&own), &path)) {
		process_unknown(l, "cgroup");
	} else {
		process_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX, &mounts);
		g = (struct groups){buf_span(&own), buf_span(&mounts)};
		l->in_cgroup = is_of_container(path, l->id);
		buf_puts(out, ",\"cgroup\":{\"path\":");
		jv_write_str(out, path);
		say_limits(l, out, &g);
		buf_puts(out, "}");
	}
	buf_fini(&own);
	buf_fini(&mounts);
	say_belonging(l, out);
}
