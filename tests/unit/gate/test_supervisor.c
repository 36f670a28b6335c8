/*
 * The supervisor, with processes that do nothing but say what happens to them:
 * a line each on stderr, which the test reads.
 */
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/jv.h"
#include "gate/listen.h"
#include "gate/supervisor.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS    2
#define PATIENCE_S 20

/* --- the processes of the gate under test --- */

enum habit {
	HABIT_GOOD = 0,
	HABIT_DIES_AT_START, /* the auditor */
	HABIT_WILL_NOT_END,  /* workers */
	HABIT_BABBLES,       /* workers, when they get the resolver */
	HABIT_ASKS,          /* workers, for the resolver again and again when they get it first */
	HABIT_LINGERS,       /* workers, when told to accept no more */
	HABIT_BAD_NEXT,      /* the reader finds a mistake */
	HABIT_READER_DIES,
	HABIT_NEXT_REFUSED, /* what the reader brought cannot be served */
	HABIT_NEXT_DIES     /* workers of the next generation, at their start */
};

static enum habit habit;
static unsigned generation; /* what a worker of this process serves */
static char generation_name[16];

static void say(const char *role, const char *what, int number)
{
	dprintf(STDERR_FILENO, "%s %d %s %d\n", role, (int)getpid(), what, number);
}

/* A server tells each new worker who it is. */
static int serve(const char *role, int control)
{
	int pid = (int)getpid(), fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count;
	char tag;

	while (io_recv_fds(control, &tag, fds, &count, &err) == 1)
		for (size_t i = 0; i < count; i++) {
			if ((tag != 'w' && tag != 'm') || write(fds[i], &pid, sizeof(pid)) < 0)
				say(role, "is-confused", tag);
			close(fds[i]);
		}
	say(role, "ends", 0);
	return 0;
}

static void meet(char tag, int fd)
{
	int pid = 0;

	if (read(fd, &pid, sizeof(pid)) == (ssize_t)sizeof(pid))
		say("worker", tag == 'a' ? "has-auditor" : "has-resolver", pid);
	close(fd);
}

static int work(int control)
{
	bool asked = false;
	int fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count;
	char tag;

	while (io_recv_fds(control, &tag, fds, &count, &err) == 1) {
		if (count)
			meet(tag, fds[0]);
		if (tag == 'g')
			say("worker", "goes-with", (int)generation);
		if (tag == 'd')
			say("worker", "drains", (int)generation);
		if (tag == 'd' && habit != HABIT_LINGERS)
			return 0;
		if (tag == 's')
			say("worker", "is-told-to-end", 0);
		if (tag == 's' && habit != HABIT_WILL_NOT_END)
			return 0;
		if (tag == 'r' && habit == HABIT_BABBLES)
			io_send_fds(control, 'z', NULL, 0, &err);
		for (int i = 0; tag == 'r' && habit == HABIT_ASKS && !asked && i < 5; i++)
			io_send_fds(control, 'r', NULL, 0, &err);
		asked = asked || tag == 'r';
	}
	say("worker", "is-alone", 0);
	return 0;
}

/* It is a client of both servers, as workers are, and lives on until it is told to end. */
static int look_on(int control)
{
	int fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count;
	char tag;

	while (io_recv_fds(control, &tag, fds, &count, &err) == 1) {
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		if (count)
			say("watcher", tag == 'a' ? "meets-auditor" : "meets-resolver", 0);
		if (tag == 'g')
			say("watcher", "watches-with", (int)generation);
		if (tag == 's') {
			say("watcher", "stops", 0);
			return 0;
		}
	}
	return 0;
}

/* A reader's work: any descriptor stands for a bundle. */
static int bring(int control)
{
	static const char mistake[] = "rules.lua:3: a mistake";
	struct err err = {0};

	if (habit == HABIT_READER_DIES)
		return 8;
	if (habit != HABIT_BAD_NEXT)
		return io_send_fds(control, 'b', &control, 1, &err);
	io_send_fds(control, 'e', NULL, 0, &err);
	return io_write_all(control, mistake, sizeof(mistake) - 1, &err);
}

static int next(void *arg, int fd, const char **ret_generation, struct err *err)
{
	(void)arg;
	close(fd);
	if (habit == HABIT_NEXT_REFUSED)
		return err_set(err, ERR_CONFIG, "the log has changed");
	snprintf(generation_name, sizeof(generation_name), "g%u", generation + 1);
	*ret_generation = generation_name;
	return 0;
}

static void switch_to_next(void *arg)
{
	(void)arg;
	generation++;
}

static void forget_next(void *arg)
{
	(void)arg;
	say("gate", "forgets", 0);
}

static int admin_socket = -1;

/* Tells each caller the status, as the supervisor answers it; anything else would be odd. */
static int tell_status(int control)
{
	struct admin_word word = {.ask = ASK_STATUS, .ticket = 7};
	int fds[IO_FDS_MAX], caller;
	struct admin_reply reply;
	struct err err = {0};
	char tag, text[8192];
	size_t count;
	ssize_t n;

	fcntl(admin_socket, F_SETFL, 0); /* waits */
	while ((caller = accept(admin_socket, NULL, NULL)) >= 0) {
		io_send_note(control, 'q', (struct span){(const char *)&word, sizeof(word)}, NULL,
			     0, &err);
		while (io_recv_fds(control, &tag, fds, &count, &err) == 1 && tag != 'k')
			if (count)
				close(fds[0]);
		io_recv_note(control, &reply, sizeof(reply), &err);
		if (count == 1)
			lseek(fds[0], 0, SEEK_SET);
		n = count == 1 && reply.ticket == 7
			    ? read(fds[0], text, sizeof(text))
			    : snprintf(text, sizeof(text), "%s",
				       admin_answer_name((enum admin_answer)reply.code));
		if (n > 0)
			io_write_all(caller, text, (size_t)n, &err);
		close(caller);
		if (count == 1)
			close(fds[0]);
	}
	return 0;
}

static int run(void *arg, enum role role, int control)
{
	struct err err = {0};

	(void)arg;
	if (role == ROLE_AUDITOR && habit == HABIT_DIES_AT_START)
		return 7;
	if (role == ROLE_READER)
		return bring(control);
	if (role == ROLE_WORKER && generation > 0 && habit == HABIT_NEXT_DIES)
		return 9;
	io_send_fds(control, 'y', NULL, 0, &err);
	if (role == ROLE_WORKER)
		return work(control);
	if (role == ROLE_ADMIN)
		return tell_status(control);
	if (role == ROLE_WATCHER)
		return look_on(control);
	return serve(role_name(role), control);
}

static void ready(void *arg)
{
	(void)arg;
	say("gate", "ready", 0);
}

static bool stale_once(void *arg)
{
	bool *now = arg;
	bool was = *now;

	*now = false;
	return was;
}

/* --- the test's side --- */

struct gate {
	pid_t pid;
	int out; /* what it says */
	char text[65536];
	size_t used, seen;
};

static void start(struct gate *g, enum habit with, bool stale, int status)
{
	int ends[2];

	CHECK_INT("pipe", 0, pipe(ends));
	*g = (struct gate){.out = ends[0]};
	g->pid = fork();
	if (g->pid == 0) {
		struct supervisor_conf conf = {.run = run,
					       .ready = ready,
					       .next = next,
					       .switch_to_next = switch_to_next,
					       .forget_next = forget_next,
					       .stale = stale ? stale_once : NULL,
					       .arg = &stale,
					       .workers = WORKERS,
					       .status = status,
					       .state = -1,
					       .generation = "g",
					       .config = "/c"};
		struct err err = {0};
		int rc;

		setpgid(0, 0);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		habit = with;
		rc = supervisor_run(&conf, &err);
		if (rc < 0)
			dprintf(STDERR_FILENO, "failed: %s\n", err.msg);
		_exit(rc < 0 ? 2 : 0);
	}
	close(ends[1]);
}

/* Reads more; false at the end. */
static bool hear(struct gate *g)
{
	struct pollfd watched = {.fd = g->out, .events = POLLIN};
	ssize_t n;

	if (poll(&watched, 1, PATIENCE_S * 1000) != 1)
		fail_msg("nothing more is said; so far:\n%s", g->text);
	n = read(g->out, g->text + g->used, sizeof(g->text) - 1 - g->used);
	if (n <= 0)
		return false;
	g->used += (size_t)n;
	g->text[g->used] = '\0';
	return true;
}

/*
 * The next line, behind those that were looked at, in which `what` stands; its
 * first number is the process, its second what follows.
 */
static int expect(struct gate *g, const char *what, int *ret_second)
{
	for (;;) {
		char *at = strstr(g->text + g->seen, what), *line, *end;
		int first = 0, second = 0;

		end = at ? strchr(at, '\n') : NULL;
		if (!end) {
			if (!hear(g))
				fail_msg("'%s' is not said; only:\n%s", what, g->text);
			continue;
		}
		for (line = at; line > g->text && line[-1] != '\n'; line--)
			;
		sscanf(line, "%*s %d %*s %d", &first, &second);
		g->seen = (size_t)(end - g->text);
		if (ret_second)
			*ret_second = second;
		return first;
	}
}

/* As expect(), from the beginning of all that was said. */
static int expect_anywhere(struct gate *g, const char *what, int *ret_second)
{
	g->seen = 0;
	return expect(g, what, ret_second);
}

static size_t times(const struct gate *g, const char *what)
{
	size_t n = 0;

	for (const char *at = g->text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void wait_for(struct gate *g, const char *what, size_t count)
{
	while (times(g, what) < count)
		if (!hear(g))
			fail_msg("'%s' is said %zu times, not %zu:\n%s", what, times(g, what),
				 count, g->text);
}

static int finish(struct gate *g)
{
	int status;

	while (hear(g))
		;
	close(g->out);
	CHECK_INT("gate", g->pid, waitpid(g->pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* All are ready, and each worker has met both servers. */
static void wait_until_complete(struct gate *g)
{
	wait_for(g, "gate ", 1);
	wait_for(g, "has-auditor", WORKERS);
	wait_for(g, "has-resolver", WORKERS);
}

static void stops_in_order(void **state)
{
	const char *last_worker = NULL;
	struct gate g;

	(void)state;
	start(&g, HABIT_GOOD, false, -1);
	wait_until_complete(&g);
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
	CHECK_INT("workers were told", WORKERS, times(&g, "is-told-to-end"));
	for (const char *at = g.text; (at = strstr(at, "is-told-to-end")); at++)
		last_worker = at;
	CHECK_INT("auditor and resolver end", 2, times(&g, " ends "));
	CHECK_INT("after the workers", 1, strstr(g.text, " ends ") > last_worker);
	CHECK_INT("the watcher ends", 1, times(&g, " stops "));
	CHECK_INT("behind the workers", 1, strstr(g.text, " stops ") > last_worker);
	CHECK_INT("before its servers", 1, strstr(g.text, " stops ") < strstr(g.text, " ends "));
	CHECK_INT("nobody was killed", 0, times(&g, "killed"));
}

/* A service manager sends SIGTERM to every process, a terminal SIGINT. */
static void a_signal_to_all_ends_in_order(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT};

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct gate g;

		start(&g, HABIT_GOOD, false, -1);
		wait_until_complete(&g);
		kill(-g.pid, signals[i]);
		CHECK_INT("status", 0, finish(&g));
		CHECK_INT("workers were told", WORKERS, times(&g, "is-told-to-end"));
		CHECK_INT("auditor and resolver end", 2, times(&g, " ends "));
		CHECK_INT("nobody died of it", 0, times(&g, "ended:"));
	}
}

static void a_dead_server_is_replaced(void **state)
{
	static const struct {
		const char *name, *met;
	} cases[] = {{"auditor", "has-auditor"}, {"resolver", "has-resolver"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char ended[64];
		int old, new;
		struct gate g;

		start(&g, HABIT_GOOD, false, -1);
		wait_until_complete(&g);
		expect_anywhere(&g, cases[i].met, &old);
		kill(old, SIGKILL);
		snprintf(ended, sizeof(ended), "%s %d ended: signal 9 (Killed)", cases[i].name,
			 old);
		expect(&g, ended, NULL);
		wait_for(&g, cases[i].met, 2 * WORKERS);
		expect(&g, cases[i].met, &new);
		CHECK_INT(cases[i].name, 1, new != old &&new > 0);
		kill(g.pid, SIGTERM);
		CHECK_INT("status", 0, finish(&g));
	}
}

static void a_dead_worker_is_replaced(void **state)
{
	struct gate g;
	int old, new;

	(void)state;
	start(&g, HABIT_GOOD, false, -1);
	wait_until_complete(&g);
	old = expect_anywhere(&g, "has-auditor", NULL);
	g.seen = g.used;
	kill(old, SIGKILL);
	new = expect(&g, "has-auditor", NULL);
	CHECK_INT("another one", 1, new != old);
	wait_for(&g, "has-resolver", WORKERS + 1);
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
	CHECK_INT("all that live were told", WORKERS, times(&g, "is-told-to-end"));
}

static void a_dead_watcher_is_replaced(void **state)
{
	struct gate g;
	int old, new;

	(void)state;
	start(&g, HABIT_GOOD, false, -1);
	wait_until_complete(&g);
	wait_for(&g, "watches-with 0", 1);
	old = expect_anywhere(&g, "watches-with", NULL);
	kill(old, SIGKILL);
	wait_for(&g, "watches-with 0", 2);
	new = expect(&g, "watches-with", NULL);
	CHECK_INT("another one", 1, new != old);
	wait_for(&g, "meets-auditor", 2);
	wait_for(&g, "meets-resolver", 2);
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
}

/* A worker that lost a connection gets another one; asking often brings no more. */
static void a_lost_connection_is_given_anew(void **state)
{
	struct gate g;

	(void)state;
	start(&g, HABIT_ASKS, false, -1);
	wait_for(&g, "gate ", 1);
	wait_for(&g, "has-resolver", 2 * WORKERS);
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
	CHECK_INT("one more each", 2 * WORKERS, times(&g, "has-resolver"));
	CHECK_INT("nobody was ended for asking", 0, times(&g, "ended:"));
}

static void many_deaths_are_slowed_down(void **state)
{
	uint64_t before = 0;
	struct gate g;
	int pid;

	(void)state;
	start(&g, HABIT_GOOD, false, -1);
	wait_until_complete(&g);
	pid = expect_anywhere(&g, "has-auditor", NULL);
	for (int i = 0; i < 5; i++) {
		g.seen = g.used;
		before = clock_boot_ms();
		kill(pid, SIGKILL);
		pid = expect(&g, "has-auditor", NULL);
	}
	CHECK_INT("the fifth has to wait", 1, clock_boot_ms() - before >= 900);
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
}

static void a_failed_start_is_told(void **state)
{
	struct gate g;

	(void)state;
	start(&g, HABIT_DIES_AT_START, false, -1);
	CHECK_INT("status", 2, finish(&g));
	CHECK_INT("says why", 1,
		  times(&g, "failed: the auditor could not be started: exit status 7"));
	CHECK_INT("was not ready", 0, times(&g, "gate "));
}

static void who_will_not_end_is_killed(void **state)
{
	struct gate g;

	(void)state;
	start(&g, HABIT_WILL_NOT_END, false, -1);
	wait_until_complete(&g);
	kill(g.pid, SIGTERM);
	wait_for(&g, "is-told-to-end", WORKERS);
	kill(g.pid, SIGTERM); /* asked twice: at once */
	CHECK_INT("status", 0, finish(&g));
	CHECK_INT("killed", WORKERS, times(&g, "did not end in time: killed"));
	CHECK_INT("the auditor ended by itself", 1, times(&g, "auditor ") > 0);
}

/* Old workers are told to accept no more before new ones are told to go. */
static void a_reload_replaces_the_workers(void **state)
{
	struct gate g;

	(void)state;
	start(&g, HABIT_GOOD, false, -1);
	wait_until_complete(&g);
	wait_for(&g, "goes-with 0", WORKERS);
	kill(g.pid, SIGHUP);
	wait_for(&g, "goes-with 1", WORKERS);
	wait_for(&g, "drains 0", WORKERS);
	wait_for(&g, "reload: generation g1 serves", 1);
	wait_for(&g, "watches-with 1", 1);
	kill(g.pid, SIGHUP);
	wait_for(&g, "goes-with 2", WORKERS);
	wait_for(&g, "drains 1", WORKERS);
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
	CHECK_INT("nobody ended before its time", 0, times(&g, "ended:"));
	CHECK_INT("only the last were told to end", WORKERS, times(&g, "is-told-to-end"));
}

static void a_failed_reload_changes_nothing(void **state)
{
	static const struct {
		const char *name;
		enum habit habit;
		const char *said;
		size_t forgotten;
	} cases[] = {
		{"a mistake", HABIT_BAD_NEXT, "reload: rules.lua:3: a mistake; generation g stays",
		 0},
		{"a reader that dies", HABIT_READER_DIES,
		 "reload: the reader of the configuration ended: exit status 8", 0},
		{"not to be served", HABIT_NEXT_REFUSED,
		 "reload: the log has changed; generation g stays", 0},
		{"workers that die", HABIT_NEXT_DIES,
		 "reload: a worker with the new rules ended: exit status 9", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gate g;

		start(&g, cases[i].habit, false, -1);
		wait_until_complete(&g);
		wait_for(&g, "goes-with 0", WORKERS);
		kill(g.pid, SIGHUP);
		wait_for(&g, cases[i].said, 1);
		kill(g.pid, SIGHUP); /* and can be tried again */
		wait_for(&g, cases[i].said, 2);
		kill(g.pid, SIGTERM);
		CHECK_INT(cases[i].name, 0, finish(&g));
		CHECK_INT(cases[i].name, 0, times(&g, "drains"));
		CHECK_INT(cases[i].name, WORKERS, times(&g, "is-told-to-end"));
		CHECK_INT(cases[i].name, 2 * cases[i].forgotten, times(&g, "forgets"));
	}
}

/* Streams outlive a reload, but not any number of them. */
static void old_generations_are_few(void **state)
{
	char said[32];
	struct gate g;

	(void)state;
	start(&g, HABIT_LINGERS, false, -1);
	wait_until_complete(&g);
	for (unsigned i = 1; i <= 6; i++) {
		kill(g.pid, SIGHUP);
		snprintf(said, sizeof(said), "goes-with %u\n", i);
		wait_for(&g, said, WORKERS);
	}
	CHECK_INT("the oldest were told to end", 2 * WORKERS, times(&g, "is-told-to-end"));
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
	CHECK_INT("all were told to end", 7 * WORKERS, times(&g, "is-told-to-end"));
}

/* Nothing but 'y' is ever said over a control socket. */
static void who_babbles_is_killed(void **state)
{
	struct gate g;

	(void)state;
	start(&g, HABIT_BABBLES, false, -1);
	wait_for(&g, "ended: signal 9", 1);
	kill(g.pid, SIGTERM);
	finish(&g);
}

static void nobody_outlives_the_supervisor(void **state)
{
	int status;
	struct gate g;

	(void)state;
	start(&g, HABIT_GOOD, false, -1);
	wait_until_complete(&g);
	kill(g.pid, SIGKILL);
	while (hear(&g)) /* until the last of them has closed its stderr */
		;
	CHECK_INT("workers", WORKERS, times(&g, "is-alone"));
	CHECK_INT("servers", 2, times(&g, " ends "));
	close(g.out);
	waitpid(g.pid, &status, 0);
}

static void stale_workers_are_replaced(void **state)
{
	struct gate g;

	(void)state;
	start(&g, HABIT_GOOD, true, -1);
	wait_until_complete(&g);
	wait_for(&g, "drains", WORKERS);
	wait_for(&g, "has-auditor", 2 * WORKERS);
	wait_for(&g, "has-resolver", 2 * WORKERS);
	CHECK_INT("no death", 0, times(&g, "ended:"));
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
}

static void tells_its_status(void **state)
{
	const struct listen_access access = {geteuid(), getegid(), 0600};
	struct arena *a = arena_create(1 << 20);
	char dir[] = "/tmp/sallyport-test-XXXXXX", path[64], text[4096];
	struct err err = {0};
	enum jv_fault fault;
	struct jv tree;
	struct rlimit before, none;
	struct gate g;
	int status, fd;
	ssize_t n;

	(void)state;
	CHECK_INT("dir", 1, mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/s", dir);
	CHECK_INT(err.msg, 0, listen_unix(path, &access, &status, &err));
	admin_socket = status;
	start(&g, HABIT_GOOD, false, status);
	close(status);
	admin_socket = -1;
	wait_until_complete(&g);
	CHECK_INT(err.msg, 0, listen_connect(path, 5000, &fd, &err));
	n = recv(fd, text, sizeof(text), MSG_WAITALL);
	CHECK_INT("json", 0,
		  jv_parse(a, (struct span){text, n > 0 ? (size_t)n : 0}, &tree, &fault, &err));
	CHECK_STR("generation", "g", jv_str(&tree, "generation", ""));
	CHECK_INT("pid", g.pid, jv_num(&tree, "pid", 0));
	CHECK_INT("ready", true, jv_true(&tree, "ready"));
	CHECK_STR("audit", "up", jv_str(&tree, "audit", ""));
	CHECK_INT("processes", 4 + WORKERS, jv_get(&tree, "processes")->count);
	close(fd);
	/* Without a descriptor for it that is what is said, and not that nothing is there. */
	CHECK_INT("limit", 0, prlimit(g.pid, RLIMIT_NOFILE, NULL, &before));
	none = (struct rlimit){1, before.rlim_max};
	CHECK_INT("limit", 0, prlimit(g.pid, RLIMIT_NOFILE, &none, NULL));
	CHECK_INT(err.msg, 0, listen_connect(path, 5000, &fd, &err));
	n = recv(fd, text, sizeof(text) - 1, MSG_WAITALL);
	text[n > 0 ? n : 0] = '\0';
	CHECK_STR("no descriptor", "no_answer", text);
	close(fd);
	CHECK_INT("limit", 0, prlimit(g.pid, RLIMIT_NOFILE, &before, NULL));
	kill(g.pid, SIGTERM);
	CHECK_INT("status", 0, finish(&g));
	unlink(path);
	rmdir(dir);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stops_in_order),
		cmocka_unit_test(a_signal_to_all_ends_in_order),
		cmocka_unit_test(a_dead_server_is_replaced),
		cmocka_unit_test(a_dead_worker_is_replaced),
		cmocka_unit_test(a_dead_watcher_is_replaced),
		cmocka_unit_test(a_lost_connection_is_given_anew),
		cmocka_unit_test(many_deaths_are_slowed_down),
		cmocka_unit_test(a_failed_start_is_told),
		cmocka_unit_test(who_will_not_end_is_killed),
		cmocka_unit_test(a_reload_replaces_the_workers),
		cmocka_unit_test(a_failed_reload_changes_nothing),
		cmocka_unit_test(old_generations_are_few),
		cmocka_unit_test(who_babbles_is_killed),
		cmocka_unit_test(nobody_outlives_the_supervisor),
		cmocka_unit_test(stale_workers_are_replaced),
		cmocka_unit_test(tells_its_status),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
