#include "gate/keeper/box_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PROCESSES_MAX 65536

struct process {
	pid_t pid, parent;
	bool zombie, below;
};

struct processes {
	struct process *all;
	size_t count, room;
};

static bool read_one(pid_t pid, struct process *ret)
{
	char path[40], text[512];
	const char *behind;
	char state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	behind = strrchr(text, ')'); /* the name before it may hold anything */
	if (!behind ||
	    sscanf(behind, ") %c %d", &state, &ret->parent) != 2) /* NOLINT(cert-err34-c) */
		return false;
	ret->pid = pid;
	ret->zombie = state == 'Z' || state == 'X';
	ret->below = false;
	return true;
}

static bool add(struct processes *p, const struct process *one)
{
	if (p->count == p->room) {
		size_t room = p->room ? p->room * 2 : 256;
		struct process *more =
			room > PROCESSES_MAX ? NULL : realloc(p->all, room * sizeof(*more));

		if (!more)
			return false;
		p->all = more;
		p->room = room;
	}
	p->all[p->count++] = *one;
	return true;
}

static void read_all(struct processes *ret)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;
	struct process one;

	while (d && (e = readdir(d))) {
		long pid = strtol(e->d_name, NULL, 10);

		if (pid > 0 && read_one((pid_t)pid, &one) && !add(ret, &one))
			break;
	}
	if (d)
		closedir(d);
}

static bool is_below(const struct processes *p, const struct process *one, pid_t root)
{
	if (one->parent == root)
		return false; /* decided at the start */
	for (size_t i = 0; i < p->count; i++)
		if (p->all[i].below && p->all[i].pid == one->parent)
			return true;
	return false;
}

static void mark(struct processes *p, pid_t root, box_spare_fn *spare, const void *arg)
{
	bool more = true;

	for (size_t i = 0; i < p->count; i++)
		p->all[i].below = p->all[i].parent == root && !(spare && spare(arg, p->all[i].pid));
	while (more) {
		more = false;
		for (size_t i = 0; i < p->count; i++)
			if (!p->all[i].below && is_below(p, &p->all[i], root))
				more = p->all[i].below = true;
	}
}

unsigned box_tree_signal(pid_t root, int signo, box_spare_fn *spare, const void *arg)
{
	const struct rlimit none = {0, 0};
	struct processes p = {0};
	unsigned living = 0;

	read_all(&p);
	mark(&p, root, spare, arg);
	for (size_t i = 0; i < p.count; i++) {
		if (!p.all[i].below || p.all[i].zombie)
			continue;
		living++;
		/* What forks faster than it is killed is stopped from forking. */
		if (signo == SIGKILL)
			prlimit(p.all[i].pid, RLIMIT_NPROC, &none, NULL);
		kill(p.all[i].pid, signo);
	}
	free(p.all);
	return living;
}
