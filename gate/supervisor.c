#include "gate/supervisor_priv.h"

#include "audit/auditor.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/notify.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FINISH_MS 10000 /* workers may finish their exchanges for this long */
#define CLOSE_MS  5000  /* the auditor may write its last record for this long */
#define LOOK_MS   2000  /* between two looks at conf->stale() */

/*
 * Processes by place: auditor, resolver, reader, admin, sandbox, keeper; then the watcher and the
 * workers, who are their clients: serving, coming, leaving.
 */
#define FIRST_CLIENT 6
#define FIRST_WORKER 7

static size_t leaving_places(const struct supervisor *s)
{
	return GENERATIONS_MAX * s->conf->workers;
}

static size_t places(const struct supervisor *s)
{
	return FIRST_WORKER + 2 * s->conf->workers + leaving_places(s);
}

static struct process *place(struct supervisor *s, size_t i)
{
	struct process *const single[FIRST_WORKER] = {&s->auditor, &s->resolver, &s->reader,
						      &s->keeper,  &s->admin,    &s->sandbox,
						      &s->watcher};

	if (i < FIRST_WORKER)
		return single[i];
	i -= FIRST_WORKER;
	if (i < s->conf->workers)
		return &s->workers[i];
	i -= s->conf->workers;
	return i < s->conf->workers ? &s->coming[i] : &s->leaving[i - s->conf->workers];
}

static bool is_serving_place(const struct supervisor *s, const struct process *p)
{
	return p >= s->workers && p < s->workers + s->conf->workers;
}

static struct process *by_pid(struct supervisor *s, pid_t pid)
{
	assert(s->workers && s->leaving);
	for (size_t i = 0; i < places(s); i++)
		if (place(s, i)->pid == pid)
			return place(s, i);
	return NULL;
}

bool supervisor_ready(const struct supervisor *s)
{
	for (size_t i = 0; i < s->conf->workers; i++)
		if (!s->workers[i].ready)
			return false;
	return s->auditor.ready && s->resolver.ready && s->watcher.ready &&
	       (s->admin.ready || s->conf->status < 0) &&
	       (s->sandbox.ready || !s->conf->sandbox_listener_count) &&
	       (s->keeper.ready || !s->conf->keeper_count);
}

struct process *supervisor_worker_at(struct supervisor *s, size_t i)
{
	for (size_t at = FIRST_WORKER; at < places(s); at++)
		if (place(s, at)->pid && i-- == 0)
			return place(s, at);
	return NULL;
}

static bool is_client(const struct process *p)
{
	return p->role == ROLE_WORKER || p->role == ROLE_WATCHER;
}

static bool workers_gone(struct supervisor *s)
{
	for (size_t i = FIRST_WORKER; i < places(s); i++)
		if (place(s, i)->pid)
			return false;
	return true;
}

/* Behind them nobody sends the auditor anything. */
static bool clients_gone(struct supervisor *s)
{
	return !s->watcher.pid && workers_gone(s);
}

static bool all_gone(struct supervisor *s)
{
	return !s->auditor.pid && !s->resolver.pid && !s->reader.pid && !s->admin.pid &&
	       !s->sandbox.pid && !s->keeper.pid && clients_gone(s);
}

/* --- starting and connecting --- */

static void connect_new(struct supervisor *s, struct process *p)
{
	if (p->role == ROLE_READER || p->role == ROLE_KEEPER)
		return;
	if (p->role == ROLE_ADMIN || p->role == ROLE_SANDBOX) {
		process_connect(&s->auditor, p);
		return;
	}
	if (p->role == ROLE_AUDITOR) {
		process_connect(p, &s->admin);
		process_connect(p, &s->sandbox);
	}
	if (is_client(p)) {
		process_connect(&s->auditor, p);
		process_connect(&s->resolver, p);
		return;
	}
	for (size_t i = FIRST_CLIENT; i < places(s); i++)
		process_connect(p, place(s, i));
}

/*
 * Clients come when there is a log and a resolver for them, and go before these.
 * Reader and coming workers are a reload's.
 */
static bool is_wanted(const struct supervisor *s, const struct process *p)
{
	if (p == &s->reader)
		return s->reload.phase == RELOAD_READING;
	if (p == &s->keeper && !s->conf->keeper_count)
		return false;
	if (p == &s->admin)
		return s->conf->status >= 0 && s->stopping == STOPPING_NOT;
	if (p == &s->sandbox)
		return s->conf->sandbox_listener_count && s->stopping == STOPPING_NOT;
	if (process_is_coming(s, p))
		return s->reload.phase == RELOAD_STARTING;
	if (is_client(p))
		return s->stopping == STOPPING_NOT && s->servers_ready &&
		       (p == &s->watcher || is_serving_place(s, p));
	return s->stopping != STOPPING_REST;
}

static void start_missing(struct supervisor *s)
{
	uint64_t now = clock_boot_ms();

	for (size_t i = 0; i < places(s); i++) {
		struct process *p = place(s, i);
		struct deaths *d = &s->deaths[p->role];

		if (p->pid || !is_wanted(s, p) || now < d->pause_until_ms)
			continue;
		if (process_start(s, p) == 0)
			connect_new(s, p);
		else if (p == &s->reader || process_is_coming(s, p))
			reload_give_up(s, "no process could be started for it");
		else
			d->pause_until_ms = now + DEATHS_PAUSE_MS;
	}
}

/* --- ending --- */

static void send_word(struct process *p, char word, int fd)
{
	struct err err = {0};

	if (p->control >= 0 && io_send_fds(p->control, word, &fd, fd >= 0, &err) < 0 &&
	    err.sys != EPIPE)
		kill(p->pid, SIGKILL);
}

void supervisor_tell(struct process *p, char word)
{
	send_word(p, word, -1);
}

static void tell_to_finish(struct process *p)
{
	p->leaving = true;
	supervisor_tell(p, 's');
}

/* The end of its control socket is all that it needs to know. */
static void end_asker(struct supervisor *s, struct process *p)
{
	if (!p->pid || p->control < 0)
		return;
	p->leaving = true;
	process_cut(s, p);
}

static void begin_stop(struct supervisor *s)
{
	if (s->stopping) { /* asked twice: at once */
		s->stop_deadline_ms = clock_boot_ms();
		return;
	}
	notify_manager("STOPPING=1");
	reload_give_up(s, "the gate stops");
	s->stopping = STOPPING_WORKERS;
	s->stop_deadline_ms = clock_boot_ms() + FINISH_MS;
	end_asker(s, &s->sandbox); /* what it has begun, workers finish */
	for (size_t i = FIRST_WORKER; i < places(s); i++)
		if (place(s, i)->pid)
			tell_to_finish(place(s, i));
}

/* The servers have not been told to end yet, nor watcher and admin before the workers are gone. */
static bool is_to_end_now(const struct supervisor *s, const struct process *p)
{
	if (s->stopping != STOPPING_WORKERS)
		return true;
	return p == &s->watcher || p == &s->admin || p == &s->sandbox ? p->leaving
								      : p->role == ROLE_WORKER;
}

static void kill_all(struct supervisor *s, const char *why)
{
	for (size_t i = 0; i < places(s); i++) {
		struct process *p = place(s, i);

		if (!p->pid || !is_to_end_now(s, p))
			continue;
		log_line("%s %d %s: killed", role_name(p->role), (int)p->pid, why);
		kill(p->pid, SIGKILL);
	}
}

/* The auditor's control socket ends when nobody can send it anything more. */
static void go_on_stopping(struct supervisor *s)
{
	uint64_t now = clock_boot_ms();

	if (s->stopping == STOPPING_WORKERS && workers_gone(s)) {
		supervisor_end_watcher(s); /* it sees the end of what they began */
		end_asker(s, &s->admin);   /* it has told of the stop as long as there was one */
	}
	if (s->stopping == STOPPING_WORKERS && clients_gone(s) && !s->admin.pid &&
	    !s->sandbox.pid) {
		s->stopping = STOPPING_REST;
		s->stop_deadline_ms = now + CLOSE_MS;
		process_cut(s, &s->resolver);
		process_cut(s, &s->auditor);
		process_cut(s, &s->keeper);
		s->auditor.leaving = s->resolver.leaving = s->keeper.leaving = true;
	} else if (s->stopping && now >= s->stop_deadline_ms) {
		kill_all(s, "did not end in time");
		s->stop_deadline_ms = now + CLOSE_MS;
	}
}

static struct process *free_place(struct supervisor *s)
{
	for (size_t i = 0; i < leaving_places(s); i++)
		if (!s->leaving[i].pid)
			return &s->leaving[i];
	return NULL;
}

static struct process *first_that_left(struct supervisor *s)
{
	struct process *first = NULL;

	for (size_t i = 0; i < leaving_places(s); i++) {
		struct process *p = &s->leaving[i];

		if (p->pid && (!first || p->started_ms < first->started_ms))
			first = p;
	}
	return first;
}

bool supervisor_has_room(struct supervisor *s)
{
	size_t room = 0, hurried = 0;
	struct process *oldest;

	for (size_t i = 0; i < leaving_places(s); i++) {
		room += !s->leaving[i].pid;
		hurried += s->leaving[i].pid && s->leaving[i].hurried;
	}
	if (room >= s->conf->workers)
		return true;
	oldest = first_that_left(s);
	if (hurried == 0 && oldest) {
		log_line("worker %d still serves what was begun under rules of long ago: it is "
			 "told to end",
			 (int)oldest->pid);
		oldest->hurried = true;
		supervisor_tell(oldest, 's');
	}
	return false;
}

void supervisor_move(struct supervisor *s, struct process *from, struct process *to)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = to};

	*to = *from;
	if (to->control >= 0)
		epoll_ctl(s->epoll, EPOLL_CTL_MOD, to->control, &ev);
	*from = (struct process){.role = ROLE_WORKER, .control = -1, .restarts = to->restarts};
}

/* Who left at an earlier reload still has streams. */
static void tell_leaving(struct supervisor *s, int bundle)
{
	for (size_t i = 0; bundle >= 0 && i < leaving_places(s); i++)
		if (s->leaving[i].pid)
			send_word(&s->leaving[i], 'n', bundle);
}

void supervisor_let_go(struct supervisor *s, int bundle)
{
	tell_leaving(s, bundle);
	for (size_t i = 0; i < s->conf->workers; i++) {
		struct process *to = free_place(s);

		if (!s->workers[i].pid)
			continue;
		assert(to);
		supervisor_move(s, &s->workers[i], to);
		to->leaving = true;
		send_word(to, 'd', bundle);
	}
}

void supervisor_end_watcher(struct supervisor *s)
{
	if (!s->watcher.pid || s->watcher.leaving)
		return;
	tell_to_finish(&s->watcher);
}

/* New workers take the places; the old ones finish in a place of their own. */
static void replace_workers(struct supervisor *s)
{
	log_line("the engine sockets' groups changed: replacing the workers");
	s->replace = false;
	supervisor_let_go(s, -1);
	supervisor_end_watcher(s);
	for (size_t i = 0; i < s->conf->workers; i++)
		s->workers[i].restarts++;
}

/* --- events --- */

static void on_death(struct supervisor *s, struct process *p, int status)
{
	bool expected;
	char how[160];

	if (p == &s->reader) /* its last words may still be unread */
		reload_on_reader(s);
	expected = p->leaving && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (s->conf->ended)
		s->conf->ended(s->conf->arg, p->pid);
	process_ended(s, p, status, how, sizeof(how));
	process_cut(s, p);
	if (!expected && p == &s->auditor)
		log_alarm("nobody writes the log: the auditor %d ended: %s", (int)p->pid, how);
	else if (!expected)
		log_line("%s %d ended: %s", role_name(p->role), (int)p->pid, how);
	if (p == &s->reader || process_is_coming(s, p)) {
		reload_on_death(s, p, how);
	} else if (!p->leaving) {
		deaths_note(&s->deaths[p->role], clock_boot_ms());
		snprintf(p->lost, sizeof(p->lost), "%s %d ended: %s", role_name(p->role),
			 (int)p->pid, how);
		p->restarts++;
	}
	if (p == &s->auditor)
		s->sealed = WIFEXITED(status) && (WEXITSTATUS(status) == AUDITOR_SEALED ||
						  WEXITSTATUS(status) == STATUS_DAMAGED);
	if (!s->ever_ready && !s->stopping) {
		s->failed = true;
		err_set(&s->failure,
			WIFEXITED(status) && WEXITSTATUS(status) == STATUS_DAMAGED ? ERR_INPUT
										   : ERR_SYSTEM,
			"the %s could not be started: %s", role_name(p->role), how);
		begin_stop(s);
	}
	p->pid = 0;
	p->ready = p->leaving = false;
}

static void reap(struct supervisor *s)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct process *p = by_pid(s, pid);

		if (p)
			on_death(s, p, status);
	}
}

static void on_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			begin_stop(s);
		else if (info.ssi_signo == SIGHUP)
			reload_ask(s);
	}
	reap(s);
}

static void on_ready(struct supervisor *s, struct process *p)
{
	p->ready = true;
	if (p == &s->auditor)
		s->sealed = false;
	if (is_serving_place(s, p) || p == &s->watcher)
		supervisor_tell(p, 'g');
	s->servers_ready |= s->auditor.ready && s->resolver.ready;
	if (s->ever_ready || !supervisor_ready(s))
		return;
	s->ever_ready = true;
	if (s->conf->ready)
		s->conf->ready(s->conf->arg);
}

/* It is ending, or it cannot be told anything any more. */
static void hung_up(struct supervisor *s, struct process *p)
{
	process_cut(s, p);
	if (!p->leaving)
		kill(p->pid, SIGKILL);
}

/* At most once a second for each client: one that was taken over asks in vain for more. */
static void reconnect(struct process *client, const struct process *server)
{
	uint64_t now = clock_boot_ms();

	if (!server->ready || now - client->asked_ms < ASKED_PAUSE_MS)
		return;
	client->asked_ms = now;
	process_connect(server, client);
}

/* The workers that serve, one after the other. */
static void connect_sandbox(struct supervisor *s)
{
	for (size_t i = 0; i < s->conf->workers; i++) {
		struct process *w = &s->workers[s->next_worker++ % s->conf->workers];

		if (!w->pid || !w->ready || w->leaving)
			continue;
		process_connect_sandbox(&s->sandbox, w);
		return;
	}
}

static void on_control(struct supervisor *s, struct process *p)
{
	char word;
	ssize_t n;

	if (p == &s->reader) {
		reload_on_reader(s);
		return;
	}
	n = recv(p->control, &word, 1, MSG_DONTWAIT);
	if (n == 1 && p == &s->admin && word == 'q') {
		admin_on_word(s);
		return;
	}
	if (n == 1 && p == &s->sandbox && word == 'c')
		connect_sandbox(s);
	else if (n == 1 && word == 'y')
		on_ready(s, p);
	else if (n == 1 && ((is_client(p) && (word == 'a' || word == 'r')) ||
			    ((p == &s->admin || p == &s->sandbox) && word == 'a')))
		reconnect(p, word == 'a' ? &s->auditor : &s->resolver);
	else if (n == 1) /* nothing else is ever said */
		kill(p->pid, SIGKILL);
	else if (n == 0 || errno != EAGAIN)
		hung_up(s, p);
}

static int next_wait_ms(const struct supervisor *s)
{
	uint64_t now = clock_boot_ms(), at = s->next_look_ms;

	for (int role = 0; role < ROLE_COUNT; role++)
		if (s->deaths[role].pause_until_ms > now && s->deaths[role].pause_until_ms < at)
			at = s->deaths[role].pause_until_ms;
	if (s->stopping && s->stop_deadline_ms < at)
		at = s->stop_deadline_ms;
	if (reload_deadline(s) < at)
		at = reload_deadline(s);
	if (admin_due(s) < at)
		at = admin_due(s);
	if (watchdog_due(s) < at)
		at = watchdog_due(s);
	return at > now ? (int)(at - now) : 0;
}

static void look_around(struct supervisor *s)
{
	if (clock_boot_ms() < s->next_look_ms)
		return;
	s->next_look_ms = clock_boot_ms() + LOOK_MS;
	if (s->conf->stale && s->conf->stale(s->conf->arg))
		s->replace = true;
	if (s->replace && !s->stopping && s->reload.phase == RELOAD_IDLE && supervisor_has_room(s))
		replace_workers(s);
}

static void turn(struct supervisor *s)
{
	struct epoll_event events[32];
	int count = epoll_wait(s->epoll, events, 32, next_wait_ms(s));

	for (int i = 0; i < count; i++) {
		void *about = events[i].data.ptr;

		if (about == &s->signals)
			continue; /* last, so that no other event is about who has gone */
		if (((struct process *)about)->control >= 0)
			on_control(s, about);
	}
	on_signals(s);
	look_around(s);
	admin_look_around(s);
	watchdog_look(s);
	go_on_stopping(s);
	reload_go_on(s);
	start_missing(s);
}

/* --- set up --- */

static int watch_fd(struct supervisor *s, int fd, void *about, struct err *err)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = about};

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_sys(err, "watch a descriptor");
	return 0;
}

static int open_loop(struct supervisor *s, struct err *err)
{
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGHUP);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	s->kernel_log = kernel_log_open();
	if (s->epoll < 0 || s->signals < 0)
		return err_sys(err, "make the event loop");
	if (watch_fd(s, s->signals, &s->signals, err) < 0)
		return -1;
	return s->conf->confine ? s->conf->confine(s->conf->arg, err) : 0;
}

static void close_loop(struct supervisor *s)
{
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->signals >= 0)
		close(s->signals);
	if (s->kernel_log >= 0)
		close(s->kernel_log);
	reload_close(s);
	free(s->workers);
	free(s->coming);
	free(s->leaving);
}

static int open_places(struct supervisor *s, struct err *err)
{
	size_t n = s->conf->workers;

	s->workers = calloc(n, sizeof(struct process));
	s->coming = calloc(n, sizeof(struct process));
	s->leaving = calloc(leaving_places(s), sizeof(struct process));
	if (!s->workers || !s->coming || !s->leaving)
		return err_sys(err, "no memory");
	for (size_t i = 0; i < places(s); i++)
		*place(s, i) = (struct process){.role = ROLE_WORKER, .control = -1};
	s->auditor.role = ROLE_AUDITOR;
	s->resolver.role = ROLE_RESOLVER;
	s->reader.role = ROLE_READER;
	s->watcher.role = ROLE_WATCHER;
	s->admin.role = ROLE_ADMIN;
	s->sandbox.role = ROLE_SANDBOX;
	s->keeper.role = ROLE_KEEPER;
	snprintf(s->generation, sizeof(s->generation), "%s", s->conf->generation);
	reload_open(s);
	return 0;
}

int supervisor_run(const struct supervisor_conf *conf, struct err *err)
{
	struct supervisor s = {
		.conf = conf,
		.epoll = -1,
		.signals = -1,
		.kernel_log = -1,
		.started_ms = clock_boot_ms(),
		.next_look_ms = clock_boot_ms() + LOOK_MS,
	};
	int rc = open_places(&s, err) == 0 ? open_loop(&s, err) : -1;

	if (rc == 0) {
		start_missing(&s);
		while (!s.stopping || !all_gone(&s))
			turn(&s);
		if (s.failed) {
			*err = s.failure;
			rc = -1;
		}
	}
	close_loop(&s);
	return rc;
}
