/* box_spawn.c - from an order to a program that runs; in the init, which has one thread. */
#include "gate/base/auto.h"
#include "gate/base/confine_box.h"
#include "gate/keeper/box_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif
#define TELL 3 /* where a child says what went wrong; closed by execve() */

struct start {
	const struct box_plan *plan;
	const struct box_filters *filters;
	char **argv, **env;
	const char *cwd;
	int stdio[3]; /* -1: as the init has them, which is /dev/null */
	int tty;      /* the side of the command, or -1 */
};

static int words_split(const struct box_order *o, const char *at, size_t len, struct start *s,
		       struct err *err)
{
	const char *end = at + len;

	s->argv = calloc((size_t)o->argc + 1, sizeof(*s->argv));
	s->env = calloc((size_t)o->envc + 1, sizeof(*s->env));
	if (!s->argv || !s->env)
		return err_set(err, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < o->argc; i++)
		s->argv[i] = (char *)(uintptr_t)box_word(&at, end);
	for (size_t i = 0; i < o->envc; i++)
		s->env[i] = (char *)(uintptr_t)box_word(&at, end);
	if (o->has_cwd)
		s->cwd = box_word(&at, end);
	if (at != end || !o->argc)
		return err_set(err, ERR_INPUT, "an order that is not one");
	return 0;
}

static void plain_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int take_stdio(const struct start *s, struct err *err)
{
	if (s->tty >= 0 && ioctl(s->tty, TIOCSCTTY, 0) < 0)
		return err_sys(err, "take the terminal");
	for (int i = 0; i < 3; i++) {
		int from = s->tty >= 0 ? s->tty : s->stdio[i];

		if (from >= 0 && dup2(from, i) < 0)
			return err_sys(err, "stdin, stdout, stderr");
	}
	return 0;
}

static int put_filters(const struct start *s, struct err *err)
{
	bool confined = s->plan->head.mode == BOX_CONFINED;
	struct span own = s->plan->filter.len ? s->plan->filter : buf_span(&s->filters->list);

	if (!confined)
		return s->plan->filter.len ? confine_program(own, err) : 0;
	/* The floor first: what comes behind it need not allow seccomp(). */
	if (confine_program(buf_span(&s->filters->floor), err) < 0)
		return -1;
	return confine_program(own, err);
}

static int become(const struct start *s, struct err *err)
{
	plain_signals();
	setsid();
	umask(022);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(err, "end with the sandbox");
	if (take_stdio(s, err) < 0)
		return -1;
	if (close_range(TELL + 1, ~0U, 0) < 0)
		return err_sys(err, "close what is not the command's");
	if (s->cwd && chdir(s->cwd) < 0)
		return err_sys(err, "enter %s", s->cwd);
	if (box_limits_set(s->plan, err) < 0)
		return -1;
	if (put_filters(s, err) < 0)
		return -1;
	environ = s->env;
	execvp(s->argv[0], s->argv);
	return err_sys(err, "execute %s", s->argv[0]);
}

static void child(struct start *s, int tell) __attribute__((noreturn));

static void child(struct start *s, int tell)
{
	struct err err = {0};

	/* Descriptors that came with the order are above it: the lowest ones are taken. */
	if (tell != TELL) {
		for (int i = 0; i < 3; i++)
			if (s->stdio[i] == TELL)
				s->stdio[i] = dup(TELL); /* NOLINT(android-cloexec-dup) */
		if (s->tty == TELL)
			s->tty = dup(TELL); /* NOLINT(android-cloexec-dup) */
		dup3(tell, TELL, O_CLOEXEC);
	}
	become(s, &err);
	if (write(TELL, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

static int start(struct start *s, pid_t *ret, struct err *err)
{
	auto_fd int from = -1, to = -1;
	struct err said = {0};
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "a pipe");
	from = ends[0];
	to = ends[1];
	pid = fork();
	if (pid == 0)
		child(s, to);
	if (pid < 0)
		return err_sys(err, "fork");
	close(take_fd(to));
	do
		n = read(from, &said, sizeof(said));
	while (n < 0 && errno == EINTR);
	if (n == 0) {
		*ret = pid;
		return 0;
	}
	/* The init reaps it as one that nobody asked for. */
	*err = n == (ssize_t)sizeof(said)
		       ? said
		       : (struct err){ERR_SYSTEM, EIO, "a command did not start"};
	return -1;
}

static int open_tty(const struct box_order *o, int *ret_master, int *ret_slave, struct err *err)
{
	const struct winsize size = {.ws_row = o->rows, .ws_col = o->cols};
	auto_fd int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	const int unlocked = 0;
	int slave;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return err_sys(err, "a terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_sys(err, "a terminal");
	if (o->rows && o->cols)
		ioctl(master, TIOCSWINSZ, &size);
	*ret_master = take_fd(master);
	*ret_slave = slave;
	return 0;
}

int box_fork(const struct box_forking *f, struct box_spawned *ret, struct err *err)
{
	struct start s = {.plan = f->plan, .filters = f->filters, .stdio = {-1, -1, -1}, .tty = -1};
	auto_fd int master = -1, slave = -1;
	int status = words_split(f->order, f->words, f->len, &s, err);

	for (size_t i = 0; i < f->fd_count && i < 3; i++)
		s.stdio[i] = f->fds[i];
	if (status == 0 && f->order->tty) {
		status = open_tty(f->order, &master, &slave, err);
		s.tty = slave;
	}
	if (status == 0)
		status = start(&s, &ret->pid, err);
	if (status == 0)
		ret->tty = take_fd(master);
	free(s.argv);
	free(s.env);
	return status;
}
