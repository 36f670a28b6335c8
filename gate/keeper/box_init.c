/* box_init.c - the first process of a box: builds the walls, starts commands, reaps, and ends with
   everything when nobody holds the box any more. */
#include "gate/base/auto.h"
#include "gate/base/confine.h"
#include "gate/base/confine_box.h"
#include "gate/keeper/box_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

struct running {
	uint32_t id; /* 0: free */
	pid_t pid;
	bool ended; /* the keeper has not been told yet */
	int status;
};

struct init {
	const struct box_plan *plan;
	const struct box_filters *filters;
	int signals;
	struct running running[BOX_COMMANDS_MAX];
	uint32_t last_id;
};

#define KILLS_MAX 5000 /* of a millisecond and a look each */

static char order_room[BOX_MESSAGE_MAX];

static void die(const struct init *in) __attribute__((noreturn));

/*
 * Whatever is an orphan becomes a child of this process, a subreaper, so that it has children as
 * long as anything is left; a look at all processes alone would miss who was forked meanwhile.
 */
static void kill_below(void)
{
	const struct timespec moment = {0, 1000000};

	for (int i = 0; i < KILLS_MAX; i++) {
		pid_t pid;

		do
			pid = waitpid(-1, NULL, WNOHANG);
		while (pid > 0);
		if (pid < 0)
			return; /* no child any more */
		box_tree_signal(getpid(), SIGKILL, NULL, NULL);
		nanosleep(&moment, NULL);
	}
	_exit(1); /* something hangs in the kernel */
}

/* Behind a pid namespace the kernel kills the rest. */
static void die(const struct init *in)
{
	if (in->plan->head.mode == BOX_BARE)
		kill_below();
	_exit(0);
}

static int null_stdio(struct err *err)
{
	auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return err_sys(err, "open /dev/null");
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return err_sys(err, "stdio");
	return 0;
}

/* Nothing of the host stays open, nor what the launcher has of other boxes. */
static void close_others(const struct box_plan *p)
{
	unsigned low = (unsigned)(p->commands < p->events ? p->commands : p->events);
	unsigned high = (unsigned)(p->commands < p->events ? p->events : p->commands);

	if (low > 3)
		close_range(3, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

static void guard(const struct box_plan *p, pid_t init) __attribute__((noreturn));

static void guard(const struct box_plan *p, pid_t init)
{
	const struct box_event started = {.kind = BOX_EVENT_STARTED, .id = (uint32_t)init};
	bool alive = true;
	sigset_t set;
	int got;

	send(p->events, &started, sizeof(started), MSG_NOSIGNAL | MSG_DONTWAIT);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	while (alive) {
		if (sigwait(&set, &got) != 0 || got == SIGTERM)
			break;
		for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
			alive = alive && pid != init;
	}
	kill_below();
	_exit(0);
}

void box_guard_run(const struct box_plan *p, const struct box_filters *f)
{
	struct err err;
	pid_t pid;

	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	pid = fork();
	if (pid == 0) {
		box_die_with_launcher(p);
		box_init_run(p, f);
	}
	close_others(p);
	close(p->commands); /* the init's alone, or its end would not be seen */
	if (pid < 0 || null_stdio(&err) < 0)
		_exit(1);
	guard(p, pid);
}

static int confine(const struct box_plan *p, struct err *err)
{
	/* Who is not dumpable has no files in /proc, and so no ids. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return err_sys(err, "become dumpable");
	if (box_ids_map(p, err) < 0 || box_cgroups_join(p, err) < 0)
		return -1;
	/* Nothing hangs on it: no clock can be set without capabilities. */
	if (unshare(CLONE_NEWTIME) < 0 && errno != EINVAL && errno != EPERM)
		return err_sys(err, "a time namespace");
	if (box_names_set(p, err) < 0 || box_loopback_up(err) < 0 || box_root_build(p, err) < 0)
		return -1;
	close_others(p);
	if (null_stdio(err) < 0 || box_powers_end(true, err) < 0)
		return -1;
	return box_paths_close(p, err);
}

static int settle(const struct box_plan *p, struct err *err)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, "become a reaper");
	if (box_cgroups_join(p, err) < 0)
		return -1;
	if ((p->folder >= 0 ? fchdir(p->folder) : chdir("/")) < 0)
		return err_sys(err, "enter the folder");
	close_others(p);
	if (null_stdio(err) < 0 || box_powers_end(false, err) < 0)
		return -1;
	return confine_signals(err);
}

static void answer(const struct init *in, const struct err *err, pid_t pid, int fd)
{
	struct box_answer a = {.sys = err->sys, .error = err->kind, .pid = pid};
	struct err unheard;

	snprintf(a.text, sizeof(a.text), "%.*s", (int)sizeof(a.text) - 1, err->msg);
	if (box_send(in->plan->commands, (struct span){(const char *)&a, sizeof(a)},
		     (struct span){"", 0}, &fd, fd >= 0 ? 1 : 0, &unheard) < 0)
		die(in);
}

static struct running *running_find(struct init *in, uint32_t id)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (in->running[i].id == id)
			return &in->running[i];
	return NULL;
}

static void spawn(struct init *in, const struct box_forking *f)
{
	struct running *r = running_find(in, 0);
	struct box_spawned made = {.tty = -1};
	struct err err = {0};

	if (!r)
		err_set(&err, ERR_LIMIT, "more than %d commands at once", BOX_COMMANDS_MAX);
	else if (box_fork(f, &made, &err) == 0)
		*r = (struct running){.id = f->order->id, .pid = made.pid};
	answer(in, &err, made.pid, made.tty);
	if (made.tty >= 0)
		close(made.tty);
}

static int send_signal(struct init *in, uint32_t id, int signo)
{
	const struct running *r;

	if (id == 0 && in->plan->head.mode == BOX_BARE)
		return box_tree_signal(getpid(), signo, NULL, NULL) ? 0 : -1;
	if (id == 0)
		return kill(-1, signo);
	r = running_find(in, id);
	if (!r || r->ended) {
		errno = ESRCH;
		return -1;
	}
	return kill(-r->pid, signo); /* it leads a session of its own */
}

static void order_signal(struct init *in, const struct box_order *o)
{
	struct err err = {0};

	if (send_signal(in, o->id, o->signo) < 0 && (o->id != 0 || errno != ESRCH))
		err_sys(&err, "signal %d", o->signo);
	answer(in, &err, 0, -1);
}

static void obey(struct init *in)
{
	int fds[BOX_FDS_MAX];
	struct box_order o;
	struct err err;
	size_t count = 0;
	ssize_t n = box_recv(in->plan->commands, order_room, sizeof(order_room), fds, &count, &err);

	if (n < (ssize_t)sizeof(o))
		die(in);
	memcpy(&o, order_room, sizeof(o));
	switch ((enum box_order_kind)o.kind) {
	case BOX_ORDER_SPAWN:
		spawn(in, &(struct box_forking){.plan = in->plan,
						.filters = in->filters,
						.order = &o,
						.words = order_room + sizeof(o),
						.len = (size_t)n - sizeof(o),
						.fds = fds,
						.fd_count = count});
		break;
	case BOX_ORDER_SIGNAL:
		order_signal(in, &o);
		break;
	}
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

/* What the keeper has not been told yet, as far as the socket takes it. */
static bool tell(struct init *in)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++) {
		struct running *r = &in->running[i];
		const struct box_event e = {BOX_EVENT_ENDED, r->id, r->status};

		if (!r->id || !r->ended)
			continue;
		if (send(in->plan->events, &e, sizeof(e), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return errno != EAGAIN; /* gone: the poll will say so */
		*r = (struct running){0};
	}
	return true;
}

static void reap(struct init *in)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(in->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGTERM)
			die(in);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
			if (in->running[i].id && in->running[i].pid == pid) {
				in->running[i].ended = true;
				in->running[i].status = status;
			}
}

static void serve(struct init *in) __attribute__((noreturn));

static void serve(struct init *in)
{
	bool all_told = true;

	for (;;) {
		struct pollfd p[] = {
			{in->plan->events, (short)(POLLRDHUP | (all_told ? 0 : POLLOUT)), 0},
			{in->signals, POLLIN, 0},
			{in->plan->commands, POLLIN, 0},
		};

		if (poll(p, 3, -1) < 0)
			continue;
		if (p[0].revents & (POLLRDHUP | POLLHUP | POLLERR))
			die(in);
		if (p[1].revents)
			reap(in);
		if (p[2].revents)
			obey(in);
		all_told = tell(in);
	}
}

void box_die_with_launcher(const struct box_plan *p)
{
	prctl(PR_SET_PDEATHSIG, p->head.mode == BOX_BARE ? SIGTERM : SIGKILL, 0, 0, 0);
}

void box_init_run(const struct box_plan *p, const struct box_filters *f)
{
	struct init in = {.plan = p, .filters = f};
	struct err err = {0};
	sigset_t all;
	int root = -1;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if ((p->head.mode == BOX_CONFINED ? confine(p, &err) : settle(p, &err)) < 0) {
		answer(&in, &err, 0, -1);
		_exit(1);
	}
	box_die_with_launcher(p); /* what was given up on the way has cleared it */
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	if (p->head.mode == BOX_BARE)
		sigaddset(&all, SIGTERM);
	in.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->head.mode == BOX_CONFINED)
		root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	answer(&in, &err, 0, root);
	if (root >= 0)
		close(root);
	if (in.signals < 0)
		die(&in);
	serve(&in);
}
