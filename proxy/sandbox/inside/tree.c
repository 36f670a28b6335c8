#include "proxy/sandbox/inside/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PID_LIMIT   4194304 /* of Linux */
#define SEEN_MAX    32768   /* more are met by the next look */
#define PATIENCE_MS 10000   /* how long something that was killed may take to die */

static struct seen {
	pid_t pid, parent;
	unsigned long long began; /* in ticks since the system's start */
} seen[SEEN_MAX];
static bool adopts = true; /* the kernel has subreapers */
static unsigned long long began;
static uint8_t below[PID_LIMIT / 8]; /* a bit for each process of the tree */

static bool is_below(pid_t pid)
{
	return below[pid / 8] & (1 << pid % 8);
}

static void set_below(pid_t pid, bool on)
{
	below[pid / 8] =
		(uint8_t)(on ? below[pid / 8] | 1 << pid % 8 : below[pid / 8] & ~(1 << pid % 8));
}

/* By /proc/PID/stat.  The name in it can hold anything: the last ")" ends it.  0, or -1. */
static int read_stat(int proc, const char *pid, struct seen *ret)
{
	char path[64], text[1024], *at;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/stat", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = strrchr(text, ')');
	if (!at || strlen(at) < 5)
		return -1;
	ret->parent = (pid_t)strtol(at + 4, NULL, 10);
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	ret->began = at ? strtoull(at + 1, NULL, 10) : 0;
	return 0;
}

static size_t look(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	while (proc && n < SEEN_MAX && (e = readdir(proc))) {
		struct seen one = {.pid = (pid_t)strtol(e->d_name, NULL, 10)};

		if (one.pid <= 0 || one.pid >= PID_LIMIT ||
		    read_stat(dirfd(proc), e->d_name, &one) < 0)
			continue;
		if (one.parent > 0 && one.parent < PID_LIMIT)
			seen[n++] = one;
	}
	if (proc)
		(void)closedir(proc);
	return n;
}

static bool is_root(const struct seen *one, bool orphans)
{
	return one->parent == getpid() ||
	       (orphans && one->parent == 1 && one->pid != getpid() && one->began >= began);
}

/* How many got it. */
static size_t signal_all(int number, bool orphans)
{
	size_t n = look(), count = 0;
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++)
			if (!is_below(seen[i].pid) &&
			    (is_root(&seen[i], orphans) || is_below(seen[i].parent))) {
				set_below(seen[i].pid, true);
				(void)kill(seen[i].pid, number);
				count++;
				more = true;
			}
	}
	for (size_t i = 0; i < n; i++)
		set_below(seen[i].pid, false);
	return count;
}

void tree_signal(int number)
{
	(void)signal_all(number, false);
}

int tree_init(void)
{
	struct seen self;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (proc < 0)
		return -1;
	rc = read_stat(proc, "self", &self);
	(void)close(proc);
	if (rc < 0)
		return -1;
	began = self.began;
	adopts = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
	return adopts || errno == EINVAL ? 0 : -1;
}

bool tree_reap(pid_t main_pid, int *status, bool *none)
{
	bool found = false;
	int one;
	pid_t pid;

	while ((pid = waitpid(-1, &one, WNOHANG)) > 0)
		if (pid == main_pid) {
			found = true;
			*status = one;
		}
	*none = pid < 0 && errno == ECHILD;
	return found;
}

int tree_kill(pid_t main_pid, bool *found, int *status)
{
	struct timespec wait = {0, 1000000};
	bool none = false;

	for (long waited = 0; waited < PATIENCE_MS; waited += wait.tv_nsec / 1000000) {
		size_t left = signal_all(SIGKILL, !adopts);

		if (tree_reap(main_pid, status, &none))
			*found = true;
		if (none && (adopts || !left))
			return 0;
		(void)nanosleep(&wait, NULL);
		if (wait.tv_nsec < 16000000)
			wait.tv_nsec *= 2;
	}
	return -1;
}
