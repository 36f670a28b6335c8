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

static struct {
	pid_t pid, parent;
} seen[SEEN_MAX];
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

/* The parent by /proc/PID/stat, or -1.  The name in it can hold anything: the last ")" ends it. */
static pid_t parent_of(int proc, const char *pid)
{
	char path[64], text[512], *end;
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
	end = strrchr(text, ')');
	return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : -1;
}

static size_t look(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	while (proc && n < SEEN_MAX && (e = readdir(proc))) {
		pid_t parent, pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0 || pid >= PID_LIMIT)
			continue;
		parent = parent_of(dirfd(proc), e->d_name);
		if (parent <= 0 || parent >= PID_LIMIT)
			continue;
		seen[n].pid = pid;
		seen[n++].parent = parent;
	}
	if (proc)
		(void)closedir(proc);
	return n;
}

void tree_signal(int number)
{
	size_t n = look();
	bool more = true;

	set_below(getpid(), true);
	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++)
			if (!is_below(seen[i].pid) && is_below(seen[i].parent)) {
				set_below(seen[i].pid, true);
				(void)kill(seen[i].pid, number);
				more = true;
			}
	}
	set_below(getpid(), false);
	for (size_t i = 0; i < n; i++)
		set_below(seen[i].pid, false);
}

int tree_init(void)
{
	if (access("/proc/self/stat", R_OK) < 0)
		return -1;
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
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
		tree_signal(SIGKILL);
		if (tree_reap(main_pid, status, &none))
			*found = true;
		if (none)
			return 0;
		(void)nanosleep(&wait, NULL);
		if (wait.tv_nsec < 16000000)
			wait.tv_nsec *= 2;
	}
	return -1;
}
