#include "gate/supervisor_priv.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes every descriptor but stdin, stdout, stderr and those in keep. */
static void close_others(int *keep, size_t count)
{
	unsigned from = STDERR_FILENO + 1;

	qsort(keep, count, sizeof(*keep), by_number);
	for (size_t i = 0; i < count; i++) {
		if (keep[i] < (int)from)
			continue;
		if (keep[i] > (int)from)
			close_range(from, (unsigned)keep[i] - 1, 0);
		from = (unsigned)keep[i] + 1;
	}
	close_range(from, ~0U, 0);
}

/*
 * A terminal's ^C and a service manager's SIGTERM reach all processes at once;
 * it is the supervisor that ends the others, in order.
 */
static void plain_signals(void)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	sigset_t none;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

bool process_is_coming(const struct supervisor *s, const struct process *p)
{
	return p >= s->coming && p < s->coming + s->conf->workers;
}

static char predecessor[sizeof(((struct process *)0)->lost)];

const char *supervisor_predecessor(void)
{
	return predecessor;
}

static bool is_for_sandboxes(const struct supervisor_conf *c, int listener)
{
	for (size_t i = 0; i < c->sandbox_listener_count; i++)
		if (c->sandbox_listeners[i] == listener)
			return true;
	return false;
}

/* The descriptors besides the control socket that a process of this role is for. */
static size_t kept(const struct supervisor *s, enum role role, int *ret)
{
	const struct supervisor_conf *c = s->conf;
	const struct runtime_listener *l;
	size_t count = 0;

	if (role == ROLE_ADMIN) {
		ret[count++] = c->status;
		if (c->state >= 0)
			ret[count++] = c->state;
	}
	if (role == ROLE_SANDBOX) {
		ret[count++] = c->sandbox_state;
		for (size_t i = 0; i < c->sandbox_listener_count; i++)
			ret[count++] = c->sandbox_listeners[i];
	}
	if (role == ROLE_KEEPER)
		for (size_t i = 0; i < c->keeper_count; i++)
			ret[count++] = c->keeper[i];
	if (role != ROLE_WORKER)
		return count;
	for (size_t i = 0; i < c->listener_count; i++)
		if (!is_for_sandboxes(c, c->listeners[i]))
			ret[count++] = c->listeners[i];
	for (size_t i = 0; c->runtime && (l = c->runtime(c->arg, i)); i++)
		ret[count++] = l->fd;
	return count;
}

static void child_main(struct supervisor *s, const struct process *p, int control)
	__attribute__((noreturn));

static void child_main(struct supervisor *s, const struct process *p, int control)
{
	enum role role = p->role;
	int *keep = calloc(s->conf->listener_count + RUNTIME_MAX + s->conf->keeper_count + 2,
			   sizeof(*keep));
	char name[16]; /* all that the kernel keeps */
	size_t count;

	if (!keep)
		_exit(2);
	count = kept(s, role, keep);
	keep[count] = control;
	close_others(keep, count + 1);
	plain_signals();
	snprintf(name, sizeof(name), "sallyp-%s", role_name(role));
	prctl(PR_SET_NAME, name, 0, 0, 0);
	memcpy(predecessor, p->lost, sizeof(predecessor));
	log_role(role_name(role));
	if (process_is_coming(s, p))
		s->conf->switch_to_next(s->conf->arg);
	_exit(s->conf->run(s->conf->arg, role, control));
}

/* Our end must never wait for a process that does not read. */
static int watch(struct supervisor *s, struct process *p, int control, struct err *err)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};

	if (io_nonblock(control, err) < 0)
		return -1;
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, control, &ev) < 0)
		return err_sys(err, "watch a control socket");
	return 0;
}

static int start(struct supervisor *s, struct process *p, struct err *err)
{
	int ends[2];
	pid_t pid = -1;

	if (io_pair(ends, err) < 0)
		return -1;
	if (watch(s, p, ends[0], err) == 0) {
		pid = fork();
		if (pid == 0)
			child_main(s, p, ends[1]);
		if (pid < 0)
			err_sys(err, "fork");
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	p->pid = pid;
	p->control = ends[0];
	return 0;
}

int process_start(struct supervisor *s, struct process *p)
{
	struct err err = {0};

	p->ready = p->leaving = p->hurried = p->failing = false;
	p->started_ms = clock_boot_ms();
	if (start(s, p, &err) == 0)
		return 0;
	log_line("cannot start the %s: %s", role_name(p->role), err.msg);
	return -1;
}

void process_cut(struct supervisor *s, struct process *p)
{
	if (p->control < 0)
		return;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->control, NULL);
	close(p->control);
	p->control = -1;
}

/* What it may put on record shows by this. */
static char tag_for_auditor(const struct process *p)
{
	if (p->role == ROLE_SANDBOX)
		return 'b';
	return p->role == ROLE_ADMIN ? 'm' : 'w';
}

void process_connect_sandbox(const struct process *sandbox, const struct process *worker)
{
	struct err err = {0};
	int ends[2];

	if (sandbox->control < 0 || worker->control < 0 || io_pair(ends, &err) < 0)
		return;
	if (io_send_fds(worker->control, 'c', &ends[0], 1, &err) == 0)
		io_send_fds(sandbox->control, 'c', &ends[1], 1, &err);
	if (err.kind != ERR_NONE && err.sys != EPIPE)
		log_line("the sandbox process could not be connected: %s", err.msg);
	close(ends[0]);
	close(ends[1]);
}

void process_connect(const struct process *server, const struct process *client)
{
	char tag = server->role == ROLE_AUDITOR ? 'a' : 'r';
	const struct process *at_fault = server;
	struct err err = {0};
	int ends[2];

	if (server->control < 0 || client->control < 0)
		return;
	if (io_pair(ends, &err) < 0) {
		log_line("%s %d cannot be connected (%s): ended", role_name(client->role),
			 (int)client->pid, err.msg);
		kill(client->pid, SIGKILL);
		return;
	}
	if (io_send_fds(server->control, tag_for_auditor(client), &ends[0], 1, &err) == 0) {
		at_fault = client;
		if (io_send_fds(client->control, tag, &ends[1], 1, &err) == 0)
			at_fault = NULL;
	}
	close(ends[0]);
	close(ends[1]);
	if (!at_fault || err.sys == EPIPE)
		return; /* a dead one is noticed by its end */
	log_line("%s %d does not read its control socket (%s): ended", role_name(at_fault->role),
		 (int)at_fault->pid, err.msg);
	kill(at_fault->pid, SIGKILL);
}

void process_ended(struct supervisor *s, const struct process *p, int status, char *out,
		   size_t size)
{
	char call[64] = "";

	if (WIFEXITED(status)) {
		snprintf(out, size, "exit status %d", WEXITSTATUS(status));
		return;
	}
	if (WTERMSIG(status) != SIGSYS) {
		snprintf(out, size, "signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
		return;
	}
	kernel_log_syscall(s->kernel_log, p->pid, call, sizeof(call));
	snprintf(out, size, "killed for a system call that it may not make: %s",
		 *call ? call : "the kernel's log (dmesg, type=1326) says which");
}

void deaths_note(struct deaths *d, uint64_t now_ms)
{
	memmove(d->at_ms, d->at_ms + 1, sizeof(d->at_ms) - sizeof(d->at_ms[0]));
	d->at_ms[DEATHS_MAX - 1] = now_ms;
	if (d->at_ms[0] && now_ms - d->at_ms[0] < DEATHS_MS)
		d->pause_until_ms = now_ms + DEATHS_PAUSE_MS;
}
