/*
 * box_launch.c - the process that forks the inits of boxes, for a keeper that cannot.
 *
 * Each init's socket of events is held here as well.  When the keeper closes its end, the init is
 * killed here; when an init is dead, what it may have left behind is killed, and only then is the
 * last end closed, by which the keeper knows.
 */
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
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define SOCKET     0   /* where orders come from */
#define SWEEPS_MAX 500 /* of 10 ms: what cannot be killed in five seconds hangs in the kernel */
#define NAMESPACES                                                                                 \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

struct child {
	pid_t pid; /* 0: free */
	int events;
	bool bare, killed;
};

struct launcher {
	bool bare;
	int signals;
	struct box_filters filters;
	struct child children[BOX_BOXES_MAX];
	struct box_layer layers[BOX_LAYERS_MAX];
	size_t layer_count;
};

static struct launcher launcher;
static char message[BOX_MESSAGE_MAX];

static struct child *child_find(pid_t pid)
{
	for (size_t i = 0; i < BOX_BOXES_MAX; i++)
		if (launcher.children[i].pid == pid)
			return &launcher.children[i];
	return NULL;
}

static bool is_init(const void *arg, pid_t pid)
{
	(void)arg;
	return child_find(pid) != NULL;
}

static void refuse(int commands, const char *text, enum err_kind kind)
{
	struct box_answer a = {.error = kind};
	struct err unheard;

	snprintf(a.text, sizeof(a.text), "%.*s", (int)sizeof(a.text) - 1, text);
	box_send(commands, (struct span){(const char *)&a, sizeof(a)}, (struct span){"", 0}, NULL,
		 0, &unheard);
}

static void child_main(const struct box_plan *p) __attribute__((noreturn));

static void child_main(const struct box_plan *p)
{
	box_die_with_launcher(p);
	prctl(PR_SET_NAME, "sallyp-box", 0, 0, 0);
	if (p->head.mode == BOX_BARE)
		box_guard_run(p, &launcher.filters);
	box_init_run(p, &launcher.filters);
}

static int start(const struct box_plan *p, struct err *err)
{
	const struct box_event started = {.kind = BOX_EVENT_STARTED};
	struct child *c = child_find(0);
	bool bare = p->head.mode == BOX_BARE;
	struct box_event e = started;
	long pid;

	if (bare && !launcher.bare)
		return err_set(err, ERR_CONFIG, "no box without walls is started here");
	if (!c)
		return err_set(err, ERR_LIMIT, "more than %d boxes", BOX_BOXES_MAX);
	/* One thread, and nothing but this frame goes on in the child: as good as fork(). */
	pid = syscall(SYS_clone, SIGCHLD | (bare ? 0 : NAMESPACES), NULL, NULL, NULL, NULL);
	if (pid == 0)
		child_main(p);
	if (pid < 0)
		return err_sys(err, "make the namespaces of a box");
	e.id = (uint32_t)pid;
	*c = (struct child){.pid = (pid_t)pid, .events = p->events, .bare = bare};
	if (!bare) /* else the guard says it, whose child it is */
		send(c->events, &e, sizeof(e), MSG_NOSIGNAL | MSG_DONTWAIT);
	return 0;
}

static void tell_layers(int answer)
{
	struct err unheard;

	box_send(answer,
		 (struct span){(const char *)launcher.layers,
			       launcher.layer_count * sizeof(*launcher.layers)},
		 (struct span){"", 0}, NULL, 0, &unheard);
}

/* False: nobody will ask any more. */
static bool obey(void)
{
	int fds[BOX_FDS_MAX];
	struct box_wire_ask ask;
	struct box_plan plan = {.outer_uid = geteuid(), .outer_gid = getegid()};
	struct err err = {0};
	size_t count = 0;
	int kept = -1;
	ssize_t n = box_recv(SOCKET, message, sizeof(message), fds, &count, &err);

	if (n <= 0)
		return false;
	memcpy(&ask, message, sizeof(ask));
	if ((size_t)n >= sizeof(ask) && ask.ask == BOX_ASK_LAYERS && count == 1) {
		tell_layers(fds[0]);
	} else if ((size_t)n >= sizeof(ask) && ask.ask == BOX_ASK_START && count >= 2) {
		if (box_plan_read(message, (size_t)n, fds, count, &plan, &err) == 0 &&
		    start(&plan, &err) == 0)
			kept = plan.events;
		else
			refuse(fds[0], err.msg, err.kind);
	}
	for (size_t i = 0; i < count; i++)
		if (fds[i] != kept)
			close(fds[i]);
	return true;
}

static void sleep_ms(unsigned ms)
{
	const struct timespec t = {0, (long)ms * 1000000};

	nanosleep(&t, NULL);
}

/*
 * Somebody has killed a guard and the init below it: what they left are children of this process
 * now.  A look at all processes takes a while, and who forks meanwhile is not in it: a few looks
 * without anybody are wanted.  reap() buries them.
 */
static void sweep(void)
{
	unsigned nobody = 0;

	for (int i = 0; i < SWEEPS_MAX && nobody < 10; i++) {
		nobody = box_tree_signal(getpid(), SIGKILL, is_init, NULL) ? 0 : nobody + 1;
		sleep_ms(5);
	}
}

static void end_child(struct child *c, int status)
{
	const struct box_event gone = {.kind = BOX_EVENT_GONE};

	if (c->bare && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
		sweep();
	send(c->events, &gone, sizeof(gone), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(c->events);
	*c = (struct child){0};
}

static void reap(void)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(launcher.signals, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct child *c = child_find(pid);

		if (c)
			end_child(c, status);
	}
}

static size_t watch(struct pollfd *p, struct child **of)
{
	size_t count = 2;

	p[0] = (struct pollfd){SOCKET, POLLIN, 0};
	p[1] = (struct pollfd){launcher.signals, POLLIN, 0};
	for (size_t i = 0; i < BOX_BOXES_MAX; i++) {
		struct child *c = &launcher.children[i];

		if (!c->pid || c->killed)
			continue;
		p[count] = (struct pollfd){c->events, POLLRDHUP, 0};
		of[count++] = c;
	}
	return count;
}

/* Behind a pid namespace the kernel kills the rest; a guard does it. */
static void kill_child(struct child *c)
{
	kill(c->pid, c->bare ? SIGTERM : SIGKILL);
	c->killed = true;
}

static void serve(void)
{
	static struct pollfd p[BOX_BOXES_MAX + 2];
	static struct child *of[BOX_BOXES_MAX + 2];

	for (;;) {
		size_t count = watch(p, of);

		if (poll(p, count, -1) < 0)
			continue;
		for (size_t i = 2; i < count; i++)
			if (p[i].revents)
				kill_child(of[i]);
		if (p[1].revents)
			reap();
		if (p[0].revents && !obey())
			return;
	}
}

static int prepare(struct err *err)
{
	struct rlimit files;
	sigset_t set;

	if (geteuid() == 0)
		return err_set(err, ERR_CONFIG, "boxes are not run as root");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, "become a reaper");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	launcher.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (launcher.signals < 0)
		return err_sys(err, "watch children");
	if (confine_programs(&launcher.filters.list, &launcher.filters.floor, err) < 0)
		return -1;
	if (confine_no_new_privs(err) < 0)
		return -1;
	launcher.layer_count = box_layers_probe(launcher.layers);
	return confine_no_dumps(err);
}

/* Everything ends with the launcher, by the signal of its death; and bare boxes' left-overs here.
 */
static void end_all(void)
{
	for (size_t i = 0; i < BOX_BOXES_MAX; i++)
		if (launcher.children[i].pid)
			kill_child(&launcher.children[i]);
	for (int i = 0; i < SWEEPS_MAX; i++) {
		pid_t pid;

		do
			pid = waitpid(-1, NULL, WNOHANG);
		while (pid > 0);
		if (pid < 0)
			return;
		sleep_ms(10);
	}
	box_tree_signal(getpid(), SIGKILL, NULL, NULL);
}

int box_launcher_main(int argc, char **argv)
{
	struct err err = {0};

	close_range(3, ~0U, 0);
	prctl(PR_SET_NAME, "sallyp-launch", 0, 0, 0);
	for (int i = 0; i < argc; i++)
		launcher.bare |= strcmp(argv[i], "bare") == 0;
	if (prepare(&err) < 0) {
		dprintf(STDERR_FILENO, "%s: %s\n", BOX_LAUNCH_VERB, err.msg);
		return 2;
	}
	serve();
	end_all();
	return 0;
}
