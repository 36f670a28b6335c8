#include "proxy/sandbox/inside/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define PATH_UNSET "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What the child tells when it cannot. */
struct trouble {
	int sys;
	enum { AT_TERMINAL, AT_FOLDER, AT_MEMORY, AT_PROGRAM, AT_COUNT } at;
};
static const char *const said[AT_COUNT] = {"set up the terminal", "enter the folder",
					   "set the environment", "run the program"};

/* What the child gets as 0, 1, 2; slave is all three. */
struct theirs {
	int in, out, err, slave, report;
};

static void fail(int report, int at)
{
	struct trouble t = {.sys = errno, .at = at};
	ssize_t done = write(report, &t, sizeof(t));

	_exit(done == sizeof(t) ? 127 : 126);
}

static void become(const struct command *cmd, const struct theirs *t)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL);
	(void)setsid();
	if (cmd->tty) {
		if (ioctl(t->slave, TIOCSCTTY, 0) < 0 || dup2(t->slave, 0) < 0 ||
		    dup2(t->slave, 1) < 0 || dup2(t->slave, 2) < 0)
			fail(t->report, AT_TERMINAL);
	} else if (dup2(t->in, 0) < 0 || dup2(t->out, 1) < 0 || dup2(t->err, 2) < 0)
		fail(t->report, AT_TERMINAL);
	if (cmd->cwd && chdir(cmd->cwd) < 0)
		fail(t->report, AT_FOLDER);
	for (unsigned i = 0; i < cmd->env_count; i++)
		if (putenv(cmd->env[i]) != 0)
			fail(t->report, AT_MEMORY);
	if (!getenv("PATH") && setenv("PATH", PATH_UNSET, 1) < 0)
		fail(t->report, AT_MEMORY);
	(void)execvp(cmd->argv[0], cmd->argv);
	fail(t->report, AT_PROGRAM);
}

static int open_terminal(const struct command *cmd, struct theirs *t, struct ends *e)
{
	struct winsize size = {.ws_row = cmd->rows, .ws_col = cmd->cols};
	char path[32];
	int number, unlock = 0, fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		fd = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	e->in = e->out = fd;
	if (ioctl(fd, TIOCSPTLCK, &unlock) < 0 || ioctl(fd, TIOCGPTN, &number) < 0)
		return -1;
	t->slave = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->slave < 0) {
		(void)snprintf(path, sizeof(path), "/dev/pts/%d", number);
		t->slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	}
	if (t->slave < 0)
		return -1;
	(void)ioctl(fd, TIOCSWINSZ, &size);
	return 0;
}

static int open_pipes(struct theirs *t, struct ends *e)
{
	int in[2], out[2], err[2];

	if (pipe2(in, O_CLOEXEC) < 0)
		return -1;
	t->in = in[0];
	e->in = in[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return -1;
	t->out = out[1];
	e->out = out[0];
	if (pipe2(err, O_CLOEXEC) < 0)
		return -1;
	t->err = err[1];
	e->err = err[0];
	return 0;
}

static void close_theirs(const struct theirs *t)
{
	const int all[] = {t->in, t->out, t->err, t->slave, t->report};

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] >= 0)
			(void)close(all[i]);
}

static int read_report(int fd, pid_t pid, const char **what)
{
	struct trouble t;
	ssize_t n;

	do
		n = read(fd, &t, sizeof(t));
	while (n < 0 && errno == EINTR);
	(void)close(fd);
	if (n == 0)
		return 0;
	(void)waitpid(pid, NULL, 0);
	*what = n == sizeof(t) && (unsigned)t.at < AT_COUNT ? said[t.at] : "start a process";
	errno = n == sizeof(t) ? t.sys : EIO;
	return -1;
}

int spawn(const struct command *cmd, pid_t *ret_pid, struct ends *ret_ends, const char **what)
{
	struct theirs t = {-1, -1, -1, -1, -1};
	int report[2], opened;
	pid_t pid;

	*ret_ends = (struct ends){-1, -1, -1};
	*what = cmd->tty ? "open a terminal (/dev/ptmx, /dev/pts)" : "open pipes";
	opened = cmd->tty ? open_terminal(cmd, &t, ret_ends) : open_pipes(&t, ret_ends);
	if (opened < 0 || pipe2(report, O_CLOEXEC) < 0)
		return -1;
	t.report = report[1];
	*what = "start a process";
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0)
		become(cmd, &t);
	close_theirs(&t);
	if (read_report(report[0], pid, what) < 0)
		return -1;
	for (int i = 0; i < 3; i++) {
		int fd = (const int[]){ret_ends->in, ret_ends->out, ret_ends->err}[i];

		if (fd >= 0)
			(void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	}
	*ret_pid = pid;
	return 0;
}
