#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/keeper/box_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define END_MS     10000
#define PERIOD_US  100000
#define SWAP_FILES 2

bool box_groups_have(const struct box_cgroup *cgroups, size_t count, enum box_controller c)
{
	for (size_t i = 0; i < count; i++)
		if (cgroups[i].controller == c)
			return true;
	return false;
}

int box_unkept(const struct box_conf *c, char *ret, size_t size)
{
	const struct box_limits *l = &c->limits;
	const struct {
		bool asked;
		enum box_controller controller;
		const char *text;
	} rows[] = {
		{l->memory != 0, BOX_CGROUP_MEMORY,
		 "memory is limited for each process, not in sum: no memory cgroup"},
		{l->cpu_milli != 0, BOX_CGROUP_CPU, "CPU is not limited: no cpu cgroup"},
		{c->mode == BOX_BARE, BOX_CGROUP_PIDS,
		 "processes are not limited: no pids cgroup, and no user namespace"},
	};
	size_t len = 0;

	if (box_groups_have(c->cgroups, c->cgroup_count, BOX_CGROUP_V2))
		return 0;
	*ret = '\0';
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!rows[i].asked ||
		    box_groups_have(c->cgroups, c->cgroup_count, rows[i].controller))
			continue;
		snprintf(ret + len, size - len, "%s%s", len ? "; " : "", rows[i].text);
		len = strlen(ret);
	}
	return len > 0;
}

static int put(int folder, const char *name, const char *text, struct err *err)
{
	auto_fd int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return err_sys(err, "cgroup: write %s to %s", text, name);
	return 0;
}

static int put_number(int folder, const char *name, uint64_t value, struct err *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return put(folder, name, text, err);
}

/* Swap is counted only where the kernel was told to. */
static int put_if_there(int folder, const char *name, uint64_t value, struct err *err)
{
	if (faccessat(folder, name, F_OK, 0) < 0)
		return 0;
	return put_number(folder, name, value, err);
}

static int limit_v2(int folder, const struct box_limits *l, struct err *err)
{
	char text[64];

	if (l->memory && (put_number(folder, "memory.max", l->memory, err) < 0 ||
			  put_if_there(folder, "memory.swap.max", l->swap, err) < 0))
		return -1;
	snprintf(text, sizeof(text), "%llu %d",
		 (unsigned long long)l->cpu_milli * (PERIOD_US / 1000), PERIOD_US);
	if (l->cpu_milli && put(folder, "cpu.max", text, err) < 0)
		return -1;
	return put_number(folder, "pids.max", (l->pids ? l->pids : BOX_PIDS_DEFAULT) + 1, err);
}

static int limit_cpu(int folder, const struct box_limits *l, struct err *err)
{
	if (!l->cpu_milli)
		return 0;
	if (put_number(folder, "cpu.cfs_period_us", PERIOD_US, err) < 0)
		return -1;
	return put_number(folder, "cpu.cfs_quota_us", l->cpu_milli * (PERIOD_US / 1000), err);
}

static int limit_memory(int folder, const struct box_limits *l, struct err *err)
{
	if (!l->memory)
		return 0;
	if (put_number(folder, "memory.limit_in_bytes", l->memory, err) < 0)
		return -1;
	return put_if_there(folder, "memory.memsw.limit_in_bytes", l->memory + l->swap, err);
}

static int set_limits(const struct box_group *g, const struct box_limits *l, struct err *err)
{
	switch (g->controller) {
	case BOX_CGROUP_V2:
		return limit_v2(g->folder, l, err);
	case BOX_CGROUP_MEMORY:
		return limit_memory(g->folder, l, err);
	case BOX_CGROUP_PIDS:
		return put_number(g->folder, "pids.max", (l->pids ? l->pids : BOX_PIDS_DEFAULT) + 1,
				  err);
	case BOX_CGROUP_CPU:
		return limit_cpu(g->folder, l, err);
	case BOX_CGROUP_FREEZER:
		return 0;
	}
	return err_set(err, ERR_CONFIG, "cgroup: no such controller");
}

static int make_one(const struct box_conf *c, const char *name, struct box_group *g,
		    struct err *err)
{
	if (mkdirat(g->parent, name, 0755) < 0)
		return err_sys(err, "cgroup: make %s", name);
	g->folder = openat(g->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (g->folder < 0)
		return err_sys(err, "cgroup: open %s", name);
	g->procs = openat(g->folder, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (g->procs < 0)
		return err_sys(err, "cgroup: open cgroup.procs");
	return set_limits(g, &c->limits, err);
}

int box_groups_make(const struct box_conf *c, struct box_groups *ret, struct err *err)
{
	struct err unheard;

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->name, sizeof(ret->name), "%s", c->name);
	for (size_t i = 0; i < c->cgroup_count; i++) {
		struct box_group *g = &ret->of[ret->count++];

		*g = (struct box_group){c->cgroups[i].controller, c->cgroups[i].fd, -1, -1};
		if (make_one(c, ret->name, g, err) < 0) {
			box_groups_end(ret, &unheard);
			return -1;
		}
	}
	return 0;
}

static size_t read_small(int folder, const char *name, char *out, size_t size)
{
	auto_fd int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void kill_all(int folder)
{
	struct err unheard;
	char text[4096];
	char *at = text, *end;

	if (put(folder, "cgroup.kill", "1", &unheard) == 0)
		return;
	read_small(folder, "cgroup.procs", text, sizeof(text));
	for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at, &end, 10)) {
		if (pid > 1)
			kill((pid_t)pid, SIGKILL);
		at = end;
	}
}

/* What was in it may need a moment to be gone for the kernel, too. */
static int remove_one(int parent, int folder, const char *name, struct err *err)
{
	const struct timespec moment = {0, 2000000};
	uint64_t until = clock_boot_ms() + END_MS;

	while (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		if (errno != EBUSY || clock_boot_ms() > until)
			return err_sys(err, "cgroup: remove %s", name);
		kill_all(folder);
		nanosleep(&moment, NULL);
	}
	return 0;
}

int box_groups_end(struct box_groups *g, struct err *err)
{
	int status = 0;

	for (size_t i = 0; i < g->count; i++) {
		struct box_group *one = &g->of[i];

		if (one->procs >= 0)
			close(one->procs);
		if (one->folder >= 0) {
			if (remove_one(one->parent, one->folder, g->name, err) < 0)
				status = -1;
			close(one->folder);
		}
	}
	g->count = 0;
	return status;
}

/* The number behind a word in a file of lines; with no word, the first one. */
static uint64_t number(int folder, const char *file, const char *word)
{
	char text[1024];
	const char *at = text;

	if (!read_small(folder, file, text, sizeof(text)))
		return UINT64_MAX;
	if (word) {
		at = strstr(text, word);
		while (at && at != text && at[-1] != '\n')
			at = strstr(at + 1, word);
	}
	return at ? strtoull(at + (word ? strlen(word) : 0), NULL, 10) : UINT64_MAX;
}

bool box_groups_oom(const struct box_groups *g)
{
	uint64_t kills = 0;

	for (size_t i = 0; i < g->count; i++) {
		if (g->of[i].controller == BOX_CGROUP_V2)
			kills = number(g->of[i].folder, "memory.events", "oom_kill ");
		else if (g->of[i].controller == BOX_CGROUP_MEMORY)
			kills = number(g->of[i].folder, "memory.oom_control", "oom_kill ");
		else
			continue;
		if (kills > 0 && kills != UINT64_MAX)
			return true;
	}
	return false;
}

void box_groups_use(const struct box_groups *g, struct box_use *ret)
{
	uint64_t usec;

	*ret = (struct box_use){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	for (size_t i = 0; i < g->count; i++) {
		int f = g->of[i].folder;

		switch (g->of[i].controller) {
		case BOX_CGROUP_V2:
			usec = number(f, "cpu.stat", "usage_usec ");
			ret->memory = number(f, "memory.current", NULL);
			ret->memory_peak = number(f, "memory.peak", NULL);
			ret->pids = number(f, "pids.current", NULL);
			ret->cpu_ns = usec == UINT64_MAX ? usec : usec * 1000;
			break;
		case BOX_CGROUP_MEMORY:
			ret->memory = number(f, "memory.usage_in_bytes", NULL);
			ret->memory_peak = number(f, "memory.max_usage_in_bytes", NULL);
			break;
		case BOX_CGROUP_PIDS:
			ret->pids = number(f, "pids.current", NULL);
			break;
		case BOX_CGROUP_CPU: /* the time is kept by another hierarchy */
		case BOX_CGROUP_FREEZER:
			break;
		}
	}
}

static int clean_one(int parent, const char *name, struct err *err)
{
	auto_fd int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder < 0)
		return errno == ENOTDIR || errno == ENOENT ? 0
							   : err_sys(err, "cgroup: open %s", name);
	kill_all(folder);
	return remove_one(parent, folder, name, err) < 0 ? -1 : 1;
}

static int clean(const struct box_cgroup *c, const char *prefix, struct err *err)
{
	int copy = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	int count = 0, done = 0;

	if (!d) {
		if (copy >= 0)
			close(copy);
		return err_sys(err, "cgroup: list");
	}
	while (done >= 0 && (e = readdir(d)))
		if (*e->d_name != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0) {
			done = clean_one(c->fd, e->d_name, err);
			count += done > 0;
		}
	closedir(d);
	return done < 0 ? -1 : count;
}

int box_clean(const struct box_cgroup *cgroups, size_t count, const char *prefix, struct err *err)
{
	int most = 0;

	for (size_t i = 0; i < count; i++) {
		int n = clean(&cgroups[i], prefix, err);

		if (n < 0)
			return -1;
		most = n > most ? n : most;
	}
	return most;
}
